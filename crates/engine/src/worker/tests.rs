//! Tests of a worker on the CPU, and on a GPU if there is one.

use super::*;
use crate::testing;
use protocol::config::{Knob, KnobValue, Precision};
use protocol::{KernelSwap, KernelText};
use tiny_llama::data::BatchSource;
use tiny_llama::ops::learner_kernel::LearnerKernels;

/// Returns a version of the model with one layer.
fn small_version(version: &str, context: usize) -> RunConfig {
    let mut config = RunConfig::version(version).expect("a version");
    config.model.layers = 1;
    config.train.context = context;
    config
}

/// Returns a version of the model in f16 with a context of 16.
fn small_f16(version: &str) -> RunConfig {
    let mut config = small_version(version, 16);
    config.train.precision = Precision::F16;
    config.train.optimizer = protocol::config::Optimizer::Fused;
    assert_eq!(config.problems(), []);
    config
}

fn set(config: &mut RunConfig, path: &str, value: &str) {
    let knob = Knob::find(path).expect("a knob");
    let result = knob.set(config, &KnobValue::from_word(value));
    result.expect("a value of the knob");
}

#[test]
fn a_host_that_never_waits_stays_near_the_device() {
    let Some((device, gpu)) = testing::any_gpu_and_queue() else {
        return;
    };
    let config = small_version("v1", 16);
    let source = BatchSource::new(&config);
    let mut worker = Worker::new(&config, &device, false).expect("it fits");
    worker.gpu = Some(gpu);
    let mut ahead = Vec::new();
    for step in 0..6 {
        worker.load(&source.batch(step));
        worker.step();
        worker.keep_pace().expect("the device works");
        ahead.push(worker.ahead.len());
    }
    assert_eq!(ahead, [1, STEPS_AHEAD, 2, 2, 2, 2]);
    let losses = worker.losses().expect("the device works");
    assert_eq!(losses.len(), 6);
}

/// Trains 15 steps, and changes knobs twice on the way. Then it checks that a step with a learner's kernel is launched. Returns the losses of the
/// steps, and true if the last ones were replayed.
fn train_15_steps(device: &Device, mut config: RunConfig) -> (Vec<Vec<f64>>, bool) {
    assert_eq!(config.problems(), []);
    let source = BatchSource::new(&config);
    let mut worker = Worker::new(&config, device, false).expect("it fits");
    let mut losses = Vec::new();
    for step in 0..15 {
        if step % 5 == 0 {
            // Parameters without a gradient must not count the updates of others.
            let gradient = ["attached", "detached-norm", "attached"][step / 5];
            set(&mut config, "model.gradient", gradient);
            worker.reconfigure(&config);
        }
        worker.load(&source.batch(step as u64));
        worker.step();
        losses.push(worker.losses().expect("the device works"));
    }
    let recorded = worker.recorded.is_some();
    // These kernels were proven at no size, so the model of no other test uses them.
    let swap = KernelSwap {
        part: "mlp.activation".to_owned(),
        kernels: vec![KernelText::default(); 2],
        ..KernelSwap::default()
    };
    let learner = LearnerKernels::default();
    learner.enter();
    learner.install(swap).expect("a part");
    worker.step();
    assert!(worker.recorded.is_none(), "its kernels may change");
    learner.clear(None);
    (losses, recorded)
}

#[test]
fn replayed_steps_train_as_launched_ones_do() {
    let Some(device) = testing::any_gpu() else {
        return;
    };
    // With `in-parts` the loss of 320 rows is computed in two parts, the first of 192 rows.
    for (version, precision, loss, context) in
        [("v1", "f32", "composed", 16), ("v3", "f16", "in-parts", 40)]
    {
        let mut config = small_version(version, context);
        set(&mut config, "train.optimizer", "fused");
        set(&mut config, "model.loss", loss);
        set(&mut config, "train.precision", precision);
        let mut recording = config.clone();
        set(&mut config, "train.launches", "each-step");
        set(&mut recording, "train.launches", "recorded");

        let (launched, recorded) = train_15_steps(&device, config);

        assert!(!recorded && launched.iter().all(|step| step.len() == 1));
        assert_eq!(train_15_steps(&device, recording), (launched, true));
    }
}

#[test]
fn the_norm_of_the_gradients_is_reported_without_the_loss_scale() {
    let device = Device::flex();
    let config = small_f16("v1");
    let mut worker = Worker::new(&config, &device, false).expect("it fits");
    worker.load(&BatchSource::new(&config).batch(0));
    let [small, large] = [1024.0, 4096.0].map(|factor| {
        worker.loss_scale = Some(LossScale::at(factor, &device));
        worker.forward();
        worker.backward();
        crate::audit::gradients(&worker).norm.0
    });
    assert!((small / large - 1.0).abs() < 0.01, "{small} and {large}");
}

fn all_finite(gradients: &[&Tensor<2>]) -> bool {
    gradients
        .iter()
        .all(|gradient| gradient.to_data().iter::<f32>().all(f32::is_finite))
}

#[test]
fn the_gradients_that_loss_scaling_looks_at_are_finite_only_if_all_are() {
    let mut devices = vec![(Device::flex(), false)];
    if let Some(gpu) = testing::any_gpu() {
        devices.push((gpu, testing::has_matrix_cores()));
    }
    for (device, matrix_cores) in devices {
        for version in ["v1", "v3"] {
            let mut config = small_f16(version);
            config.model.layers = 2;
            let mut worker = Worker::new(&config, &device, matrix_cores).expect("it fits");
            worker.load(&BatchSource::new(&config).batch(0));
            let mut counts = [0, 0];
            for power in (12..36).step_by(2) {
                worker.loss_scale = Some(LossScale::at(2f32.powi(power), &device));
                worker.forward();
                worker.backward();
                let all: Vec<_> = worker.gradients.iter().flatten().collect();
                let checked_finite = all_finite(&loss_scale::to_check(&worker.gradients));
                assert_eq!(checked_finite, all_finite(&all), "{version} at 2^{power}");
                counts[usize::from(checked_finite)] += 1;
            }
            assert!(
                counts.iter().all(|count| *count > 0),
                "{version}: {counts:?}"
            );
        }
    }
}
