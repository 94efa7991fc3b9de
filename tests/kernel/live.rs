//! A learner's kernels in the running model: which are adopted, and what a launch computes.

use burn::tensor::{Device, DeviceKind, Tensor};
use burn_cubecl::CubeBackend;
use engine::kernel_check::learner_kernel::{self, LearnerKernels, LiveKernel, WorkgroupCount};
use engine::kernel_check::{CheckLimits, adopt};
use protocol::{KernelSwap, KernelText};

use super::{adapter, check, edited, solution_of};

/// Returns a swap of a part for kernels with these texts.
fn swap(part: &str, texts: &[&str]) -> KernelSwap {
    KernelSwap {
        exercise: "test".to_owned(),
        part: part.to_owned(),
        kernels: texts
            .iter()
            .map(|text| KernelText {
                text: (*text).to_owned(),
                workgroup: [64, 1, 1],
            })
            .collect(),
        sizes: Vec::new(),
    }
}

#[test]
fn only_kernels_that_fit_a_part_are_adopted() {
    let learner = LearnerKernels::default();
    let good = "fn f() -> u32 { return {{ ROWS }}u * {{COLS}}u; }";
    assert_eq!(
        adopt(&learner, &swap("norm9", &[good])),
        Err(
            "no part of the model is called `norm9`; these can be replaced: \
             mlp.activation, norm1, attention.rope"
                .to_owned()
        )
    );
    assert_eq!(
        adopt(&learner, &swap("norm1", &[good, good])),
        Err("`norm1` needs 1 kernels, and there are 2".to_owned())
    );
    assert!(learner.part_in_use("norm1").is_none());
    assert_eq!(adopt(&learner, &swap("norm1", &[good])), Ok(()));
    let first = learner.part_in_use("norm1").expect("it was adopted");
    assert_eq!(first.swap.exercise, "test");
    // A kernel that does not fit leaves the one before it in use.
    assert_eq!(
        adopt(
            &learner,
            &swap("norm1", &["fn f() -> u32 { return {{N}}u; }"])
        ),
        Err("`N` is not a size of `norm1`".to_owned())
    );
    assert!(
        adopt(&learner, &swap("norm1", &["nonsense"]))
            .expect_err("does not read")
            .starts_with("expected global item")
    );
    assert!(std::sync::Arc::ptr_eq(
        &first,
        &learner.part_in_use("norm1").expect("it stays in use")
    ));
    // No kernel restores the model's own.
    assert_eq!(adopt(&learner, &swap("norm1", &[])), Ok(()));
    assert!(learner.part_in_use("norm1").is_none());
}

/// A passing kernel computes in the model's own memory, on the model's own device.
#[test]
fn a_kernel_that_passed_computes_for_the_model() {
    let job = edited("swiglu", "// One invocation", "// Mine: one invocation");
    let report = check(&job, "vulkan-cpu", CheckLimits::default());
    if let Some(why) = report.facts.failed {
        return adapter::skip(why);
    }
    let swap = report.swap.expect("it passed, and it replaces a part");
    let Ok(device) = Device::wgpu_options().device_kind(DeviceKind::Cpu).init() else {
        return adapter::skip("vulkan-cpu does not open");
    };
    let learner = LearnerKernels::default();
    adopt(&learner, &swap).expect("fits");
    let live = learner
        .part_in_use("mlp.activation")
        .expect("it was adopted");

    let count = 997_usize;
    let values = |shift: f32| {
        (0..count)
            .map(|i| (i as f32 * 0.37 + shift).sin() * 3.0)
            .collect::<Vec<f32>>()
    };
    let gate = values(0.0);
    let up = values(1.0);
    let on_device = |values: &[f32]| {
        Tensor::<1>::from_floats(values, &device)
            .try_into_primitive::<CubeBackend>()
            .expect("the tensor is on the device")
    };
    let [g, u, out] = [&gate, &up, &vec![0.0; count]].map(|values| on_device(values));
    let whole = LiveKernel {
        live: &live,
        which: 0,
        sizes: &[("N", count as u64)],
        cover: WorkgroupCount::Invocations(count as u64),
        shares: 1,
    };
    assert!(whole.launch(&[&g, &u, &out]));
    let found = Tensor::<1>::from_primitive::<CubeBackend>(out)
        .into_data()
        .try_to_vec::<f32>()
        .expect("the device answers");
    for ((g, u), found) in gate.iter().zip(&up).zip(&found) {
        assert!((g / (1.0 + (-g).exp()) * u - found).abs() < 1e-5);
    }
    let cover = WorkgroupCount::Groups(65_536);
    assert!(
        !LiveKernel { cover, ..whole }.launch(&[&g]),
        "a grid over the limit is left to the model's own kernel"
    );
    let third = LiveKernel { which: 2, ..whole };
    assert!(!third.launch(&[&g]), "there is no third kernel");
}

#[test]
fn every_part_that_an_exercise_replaces_exists_with_its_kernels_and_sizes() {
    for (exercise, kernels) in super::exercises() {
        let Some(part) = &kernels.replaces else {
            continue;
        };
        let job = solution_of(&exercise.id);
        let kernels = job
            .files
            .iter()
            .map(|file| KernelText {
                text: file.text.clone(),
                workgroup: [64, 1, 1],
            })
            .collect();
        let known = learner_kernel::PARTS
            .iter()
            .find(|known| known.name == part)
            .unwrap_or_else(|| panic!("{part} is no part"));
        let swap = KernelSwap {
            exercise: exercise.id.clone(),
            part: part.clone(),
            kernels,
            ..KernelSwap::default()
        };
        assert_eq!(known.kernels, swap.kernels.len());
        let sizes: Vec<&str> = job.shapes[0].sizes.keys().map(String::as_str).collect();
        assert!(
            sizes.iter().all(|size| known.sizes.contains(size)),
            "{part}: {sizes:?}"
        );
    }
}
