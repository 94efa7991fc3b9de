//! A learner's kernel in the running model: what the model computes is the same with it as without, forward and
//! backward. On a CPU driver of Vulkan or a GPU; says so where there is neither.

#[path = "../crates/tiny-llama/tests/support/adapter.rs"]
mod adapter;

use burn::tensor::{Device, Tensor};
use engine::devices;
use engine::kernel_check::learner_kernel::{self, LearnerKernels};
use engine::kernel_check::{CheckDevice, CheckLimits, adopt, check, reason_unused};
use perflings::course::Course;
use perflings::judge::kernel::verdict;
use protocol::config::{Preset, RunConfig};
use protocol::{KernelJob, KernelSwap};
use tiny_llama::data::BatchSource;
use tiny_llama::model::{Model, Tokens, weights};

/// The check of a solution, marked as somebody's own work.
fn own(id: &str) -> KernelJob {
    let course = Course::builtin();
    let exercise = course
        .exercises
        .iter()
        .find(|it| it.id == id)
        .expect("the exercise exists");
    let kernels = exercise.kernels().expect("it is about kernels");
    let kernels = kernels.clone().in_model(&small());
    let text = |name: &str| {
        let file = kernels.kernels.iter().find(|it| it.file.name == name);
        Ok(format!(
            "// Mine.\n{}",
            file.expect("the file exists").file.solution
        ))
    };
    kernels.job(&exercise.id, text)
}

/// A model that is trained quickly, and whose long products are computed in parts on every device.
fn small() -> RunConfig {
    let mut config = RunConfig::preset(Preset::Tiny);
    (config.model.hidden, config.model.layers) = (64, 2);
    (config.train.batch, config.train.context) = (1, 32);
    config
}

/// Logits, loss and gradients of one batch.
fn computed(config: &RunConfig, device: &Device) -> Vec<(String, Vec<f64>)> {
    let device = device.clone().autodiff();
    let initial = weights::initial(&config.model, config.train.seed);
    let model = Model::new(config, &initial, &device).expect("a model");
    let tokens = Tokens::new(&BatchSource::new(config).batch(0), &device);
    let values = |tensor: Tensor<2>| tensor.into_data().iter::<f64>().collect::<Vec<_>>();
    let loss = model.loss(&tokens, None);
    let mut out = vec![
        (
            "logits".to_owned(),
            values(model.logits(&tokens, None).inner()),
        ),
        ("loss".to_owned(), values(loss.clone().inner())),
    ];
    let mut gradients = loss.backward();
    for parameter in model.parameters() {
        let gradient = parameter.value.grad_remove(&mut gradients);
        let gradient = gradient.expect("every parameter has a gradient");
        out.push((parameter.name.clone(), values(gradient)));
    }
    out
}

/// Largest difference over the largest value.
fn difference(one: &[f64], other: &[f64]) -> f64 {
    assert_eq!(one.len(), other.len());
    let largest = one.iter().fold(1e-30_f64, |m, x| m.max(x.abs()));
    let pairs = one.iter().zip(other);
    pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) / largest
}

#[test]
fn the_model_computes_the_same_with_a_learner_s_kernels() {
    let opened = ["vulkan-cpu", "gpu"]
        .into_iter()
        .find_map(|select| Some((select, devices::open(select).ok()?)));
    let Some((select, opened)) = opened else {
        return adapter::skip("neither vulkan-cpu nor gpu opens");
    };
    let device = opened.device;
    let (learner, kept) = (LearnerKernels::default(), CheckDevice::default());
    learner.enter();
    let mut config = small();
    let before = computed(&config, &device);
    // Our fused backward of the norms goes on from a learner's forward as well.
    let mut fused = config.clone();
    fused.model.norm = protocol::config::Norm::Fused;
    let before_fused = computed(&fused, &device);
    let mut swaps: Vec<KernelSwap> = Vec::new();
    for id in ["swiglu", "rms-norm", "rope"] {
        let job = own(id);
        let report = verdict(
            &job,
            check(&job, select, &kept, CheckLimits::default(), |_| ()),
        );
        if let Some(why) = report.facts.failed {
            return adapter::skip(&why);
        }
        let swap = report.swap.expect("it passed, and it replaces a part");
        adopt(&learner, &swap).expect("fits");
        let part = &swap.part;
        assert!(
            reason_unused(&learner, part, false).is_some(),
            "{part}: not launched yet"
        );
        let after = computed(&config, &device);
        assert_eq!(
            reason_unused(&learner, part, false),
            None,
            "{part} computes"
        );
        for ((name, old), (_, new)) in before.iter().zip(&after) {
            let error = difference(old, new);
            println!("{id} {name}: {error:.1e}");
            assert!(error < 1e-4, "{id}: {name} differs by {error:e}");
        }
        swaps.push(swap);
    }
    // All at once.
    for (config, before) in [(&config, &before), (&fused, &before_fused)] {
        let after = computed(config, &device);
        for ((name, old), (_, new)) in before.iter().zip(&after) {
            assert!(difference(old, new) < 1e-4, "{name}");
        }
    }
    // Where our products leave sums to a norm of ours, they leave none to a learner's: it computes in every layer.
    let mut products = fused.clone();
    products.model.matmul = protocol::config::Matmul::Own;
    let norms = |config: &RunConfig| {
        let norm = learner.of("norm1").expect("is in");
        let before = norm.launches();
        computed(config, &device);
        norm.launches() - before
    };
    assert_eq!(norms(&products), norms(&fused));
    // At another size nothing was proven: the part keeps its own kernel and says so.
    let mut larger = config.clone();
    larger.train.batch = 3;
    let before = computed(&larger, &device);
    adopt(&learner, &swaps[0]).expect("fits");
    let after = computed(&larger, &device);
    assert!(difference(&before[0].1, &after[0].1) < 1e-4);
    let why = reason_unused(&learner, "mlp.activation", false).expect("not launched");
    assert!(
        why.contains("the kernel was not checked at this model's N = "),
        "{why}"
    );
    // One that is wrong all the same, forward or backward, never reaches the model: it is taken out, and the reason kept.
    let (own, _) = (computed(&config, &device), learner.take_dropped());
    for file in 0..2 {
        let mut swap = swaps[0].clone();
        let text = &mut swap.kernels[file].text;
        let wrong = text.replace("s * up[i];", "s * up[i] * 1.5;");
        *text = wrong.replace("* g * s;", "* g * s * 1.5;");
        adopt(&learner, &swap).expect("reads");
        let after = computed(&config, &device);
        for ((name, old), (_, new)) in own.iter().zip(&after) {
            assert!(difference(old, new) < 1e-4, "{name}");
        }
        let dropped = learner.take_dropped();
        assert_eq!(dropped.len(), 1, "{dropped:?}");
        assert_eq!(
            (dropped[0].exercise.as_str(), dropped[0].part),
            ("swiglu", "mlp.activation")
        );
        assert!(
            dropped[0].why.contains("but the model's own kernel gives"),
            "{dropped:?}"
        );
        assert!(learner.of("mlp.activation").is_none());
    }
    adopt(&learner, &swaps[0]).expect("fits");
    computed(&config, &device);
    // What does not fit leaves the last good kernels where they are.
    let mut wrong = swaps[0].clone();
    wrong.kernels[0].text = "nonsense".to_owned();
    adopt(&learner, &wrong).expect_err("does not read");
    let kept = learner.of("mlp.activation").expect("is still in");
    assert!(kept.launches() > 0, "the one that computed");
    // A form of the part that the kernel does not know is left to our own, and named.
    config.model.swiglu = protocol::config::Swiglu::FusedActivation;
    adopt(&learner, &swaps[0]).expect("fits");
    computed(&config, &device);
    let why = reason_unused(&learner, "mlp.activation", false).expect("not launched");
    assert!(why.contains("no `mlp.activation` of this form"), "{why}");
    let why = reason_unused(&learner, "mlp.activation", true).expect("not launched");
    assert!(why.contains("on the CPU"), "{why}");
    learner.clear(None);
    assert!(!learner_kernel::any());
    // A thread that has not entered has none of them.
    adopt(&learner, &swaps[0]).expect("fits");
    let elsewhere = std::thread::spawn(learner_kernel::any);
    assert!(learner_kernel::any() && !elsewhere.join().expect("no panic"));
}
