//! A learner's kernel in the running model: the model computes the same with it as without it, forward and backward. This needs a GPU or a CPU
//! driver of Vulkan; without either, the test reports that it was skipped.

#[path = "../crates/tiny-llama/tests/support/adapter.rs"]
mod adapter;

use burn::tensor::{Device, Tensor};
use engine::devices;
use engine::kernel_check::learner_kernel::{self, LearnerKernels};
use engine::kernel_check::{CheckDevice, CheckLimits, adopt, check, reason_unused};
use perflings::course::Course;
use perflings::course::exercise::kernel::SEED;
use perflings::judge::kernel::verdict;
use protocol::config::{Matmul, Norm, Preset, RunConfig, Swiglu};
use protocol::{KernelJob, KernelSwap};
use tiny_llama::data::BatchSource;
use tiny_llama::model::{Model, Tokens, weights};

/// The name of a tensor and its values.
type NamedValues = (String, Vec<f64>);

/// Returns the job that checks an exercise's solution, whose text differs from the course's by a comment.
fn job_of_solution(id: &str) -> KernelJob {
    let course = Course::builtin();
    let exercise = course
        .exercises
        .iter()
        .find(|exercise| exercise.id == id)
        .expect("the exercise exists");
    let kernels = exercise
        .kernels()
        .expect("it is about kernels")
        .clone()
        .in_model(&small());
    let text = |name: &str| {
        let mut files = kernels.kernels.iter().map(|kernel| &kernel.file);
        let file = files.find(|file| file.name == name).expect("a file");
        Ok(format!("// Mine.\n{}", file.solution))
    };
    kernels.job(&exercise.id, SEED, text)
}

/// Returns a model that is trained quickly, and whose long products are computed in parts on every device.
fn small() -> RunConfig {
    let mut config = RunConfig::preset(Preset::Tiny);
    config.model.hidden = 64;
    config.model.layers = 2;
    config.train.batch = 1;
    config.train.context = 32;
    config
}

/// Returns the small model with our fused norms.
fn with_fused_norms() -> RunConfig {
    let mut config = small();
    config.model.norm = Norm::Fused;
    config
}

/// Returns the logits, the loss and the gradients of one batch.
fn compute(config: &RunConfig, device: &Device) -> Vec<NamedValues> {
    let autodiff = device.clone().autodiff();
    let initial = weights::initial(&config.model, config.train.seed);
    let model = Model::new(config, &initial, &autodiff).expect("a model");
    let tokens = Tokens::new(&BatchSource::new(config).batch(0), &autodiff);
    let values = |tensor: Tensor<2>| tensor.into_data().iter::<f64>().collect::<Vec<_>>();
    let loss = model.loss(&tokens, None);
    let logits = model.logits(&tokens, None).inner();
    let mut tensors = vec![
        ("logits".to_owned(), values(logits)),
        ("loss".to_owned(), values(loss.clone().inner())),
    ];
    let mut gradients = loss.backward();
    for parameter in model.parameters() {
        let gradient = parameter
            .value
            .grad_remove(&mut gradients)
            .expect("every parameter has a gradient");
        tensors.push((parameter.name.clone(), values(gradient)));
    }
    tensors
}

/// Returns the largest difference of two tensors, divided by the largest value.
fn difference(one: &[f64], other: &[f64]) -> f64 {
    assert_eq!(one.len(), other.len());
    let largest = one
        .iter()
        .fold(1e-30_f64, |most, value| most.max(value.abs()));
    one.iter()
        .zip(other)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f64::max)
        / largest
}

/// Fails if a tensor differs by more than rounding.
fn assert_equal(with: &str, before: &[NamedValues], after: &[NamedValues]) {
    for ((name, old), (_, new)) in before.iter().zip(after) {
        let error = difference(old, new);
        println!("{with} {name}: {error:.1e}");
        assert!(error < 1e-4, "{with}: {name} differs by {error:e}");
    }
}

/// A model on a device, and the learner's kernels that it may use.
struct LearnerModel {
    select: &'static str,
    device: Device,
    learner: LearnerKernels,
}

impl LearnerModel {
    fn open() -> Option<Self> {
        let (select, opened) = ["vulkan-cpu", "gpu"]
            .into_iter()
            .find_map(|select| Some((select, devices::open(select).ok()?)))?;
        let learner = LearnerKernels::default();
        learner.enter();
        Some(Self {
            select,
            device: opened.device,
            learner,
        })
    }

    fn compute(&self, config: &RunConfig) -> Vec<NamedValues> {
        compute(config, &self.device)
    }

    /// Checks the solution of an exercise. Returns the swap of a part that follows, or the reason why nothing was checked.
    fn check(&self, id: &str, kept: &CheckDevice) -> Result<KernelSwap, String> {
        let job = job_of_solution(id);
        let found = check(&job, self.select, kept, CheckLimits::default(), |_| ());
        let report = verdict(&job, found);
        match report.facts.failed {
            Some(why) => Err(why),
            None => Ok(report.swap.expect("it passed, and it replaces a part")),
        }
    }

    fn adopt(&self, swap: &KernelSwap) {
        adopt(&self.learner, swap).expect("fits");
    }

    fn reason_unused(&self, part: &str) -> Option<String> {
        reason_unused(&self.learner, part, false)
    }

    /// Returns the number of launches of the learner's first norm in one batch.
    fn norm_launches(&self, config: &RunConfig) -> u64 {
        let norm = self.learner.part_in_use("norm1").expect("is in");
        let before = norm.launches();
        self.compute(config);
        norm.launches() - before
    }
}

/// The part that the exercise `swiglu` replaces.
const ACTIVATION: &str = "mlp.activation";

// The steps below are one test: a check counts the processor time of the whole process, so two of them would disturb each other.

#[test]
fn the_model_computes_the_same_with_a_learner_s_kernels() {
    let Some(model) = LearnerModel::open() else {
        return adapter::skip("neither vulkan-cpu nor gpu opens");
    };
    let kept = CheckDevice::default();
    let before = model.compute(&small());
    let before_fused = model.compute(&with_fused_norms());
    let mut swaps = Vec::new();
    for id in ["swiglu", "rms-norm", "rope"] {
        let swap = match model.check(id, &kept) {
            Ok(swap) => swap,
            Err(why) => return adapter::skip(&why),
        };
        each_kernel_alone_computes_the_same(&model, &swap, &before);
        swaps.push(swap);
    }
    // Our fused backward of the norms goes on from a learner's forward as well.
    assert_equal("all kernels", &before, &model.compute(&small()));
    assert_equal(
        "all kernels, fused norms",
        &before_fused,
        &model.compute(&with_fused_norms()),
    );
    a_learner_s_norm_computes_in_every_layer_with_our_products(&model);
    let activation = &swaps[0];
    a_size_that_was_not_checked_keeps_the_model_s_own_kernel(&model, activation);
    a_wrong_kernel_is_taken_out_and_the_model_computes_the_same(&model, activation);
    a_text_that_does_not_fit_leaves_the_last_good_kernel(&model, activation);
    an_unknown_form_of_the_part_is_left_to_our_own_kernel(&model, activation);
    only_a_thread_that_entered_has_the_learner_s_kernels(&model, activation);
}

fn each_kernel_alone_computes_the_same(
    model: &LearnerModel,
    swap: &KernelSwap,
    before: &[NamedValues],
) {
    let part = &swap.part;
    model.adopt(swap);
    assert!(
        model.reason_unused(part).is_some(),
        "{part}: not launched yet"
    );
    let after = model.compute(&small());
    assert_eq!(model.reason_unused(part), None, "{part} computes");
    assert_equal(part, before, &after);
}

/// Our products leave sums to a norm of ours, and none to a learner's.
fn a_learner_s_norm_computes_in_every_layer_with_our_products(model: &LearnerModel) {
    let mut own_products = with_fused_norms();
    own_products.model.matmul = Matmul::Own;
    assert_eq!(
        model.norm_launches(&own_products),
        model.norm_launches(&with_fused_norms())
    );
}

fn a_size_that_was_not_checked_keeps_the_model_s_own_kernel(
    model: &LearnerModel,
    swap: &KernelSwap,
) {
    let mut larger = small();
    larger.train.batch = 3;
    let before = model.compute(&larger);
    model.adopt(swap);
    let after = model.compute(&larger);
    assert!(difference(&before[0].1, &after[0].1) < 1e-4);
    let why = model.reason_unused(ACTIVATION).expect("not launched");
    assert!(
        why.contains("the kernel was not checked at this model's N = "),
        "{why}"
    );
}

/// The fault is in the forward pass or in the backward pass.
fn a_wrong_kernel_is_taken_out_and_the_model_computes_the_same(
    model: &LearnerModel,
    swap: &KernelSwap,
) {
    let own = model.compute(&small());
    model.learner.take_dropped();
    for file in 0..2 {
        let mut wrong = swap.clone();
        let text = &mut wrong.kernels[file].text;
        *text = text
            .replace("s * up[i];", "s * up[i] * 1.5;")
            .replace("* g * s;", "* g * s * 1.5;");
        model.adopt(&wrong);
        assert_equal("a wrong kernel", &own, &model.compute(&small()));
        let all_dropped = model.learner.take_dropped();
        let [dropped] = all_dropped.as_slice() else {
            panic!("{all_dropped:?}")
        };
        assert_eq!(
            (dropped.exercise.as_str(), dropped.part),
            ("swiglu", ACTIVATION)
        );
        assert!(
            dropped.why.contains("but the model's own kernel gives"),
            "{dropped:?}"
        );
        assert!(model.learner.part_in_use(ACTIVATION).is_none());
    }
}

fn a_text_that_does_not_fit_leaves_the_last_good_kernel(model: &LearnerModel, swap: &KernelSwap) {
    model.adopt(swap);
    model.compute(&small());
    let mut nonsense = swap.clone();
    nonsense.kernels[0].text = "nonsense".to_owned();
    adopt(&model.learner, &nonsense).expect_err("does not read");
    let kept = model.learner.part_in_use(ACTIVATION).expect("is still in");
    assert!(kept.launches() > 0, "the one that computed");
}

fn an_unknown_form_of_the_part_is_left_to_our_own_kernel(model: &LearnerModel, swap: &KernelSwap) {
    let mut other_form = small();
    other_form.model.swiglu = Swiglu::FusedActivation;
    model.adopt(swap);
    model.compute(&other_form);
    let why = model.reason_unused(ACTIVATION).expect("not launched");
    assert!(why.contains("no `mlp.activation` of this form"), "{why}");
    let why_on_cpu = reason_unused(&model.learner, ACTIVATION, true).expect("not launched");
    assert!(why_on_cpu.contains("on the CPU"), "{why_on_cpu}");
}

fn only_a_thread_that_entered_has_the_learner_s_kernels(model: &LearnerModel, swap: &KernelSwap) {
    model.learner.clear(None);
    assert!(!learner_kernel::any());
    model.adopt(swap);
    assert!(learner_kernel::any());
    let elsewhere = std::thread::spawn(learner_kernel::any);
    assert!(!elsewhere.join().expect("no panic"));
}
