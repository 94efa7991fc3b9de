//! The summaries of runs: lints name each fault, and a sound run has none.

use super::*;

fn lint_names(finished: &Finished) -> Vec<&str> {
    finished
        .lints
        .iter()
        .map(|lint| lint.name.as_str())
        .collect()
}

#[test]
fn the_summary_of_a_sound_run_has_no_gaps() {
    let mut engine = Engine::start();
    let (_, summary) = engine.run(small(&[]), 12);
    assert_eq!(summary.grad.with_grad, summary.grad.tensors);
    assert!((summary.grad.params_pct - 100.0).abs() < 1e-9);
    assert_eq!(lint_names(&summary), Vec::<&str>::new());
    let coverage = summary.kernels.coverage;
    assert!(coverage > 0.5 && coverage <= 1.0, "{coverage}");
    let memory = &summary.memory;
    assert!(memory.peak_bytes > Some(memory.weights + memory.moments));
}

#[test]
fn a_detached_gradient_is_named_by_a_lint_and_needs_fewer_moments() {
    let mut engine = Engine::start();
    let (_, detached) = engine.run(small(&[("model.gradient", "detached-norm")]), 12);
    let lints = lint_names(&detached);
    assert!(lints.contains(&"gradient-coverage"), "{lints:?}");
    assert_eq!((detached.grad.with_grad, detached.grad.tensors), (1, 20));
    assert!(detached.memory.moments < detached.memory.weights);
    assert_eq!(detached.enqueue_samples_per_s, None);
}

#[test]
fn a_missing_sync_is_named_by_a_lint_and_gives_two_rates() {
    let mut engine = Engine::start();
    let (_, unsynced) = engine.run(small(&[("measure.sync", "never")]), 40);
    let lints = lint_names(&unsynced);
    assert!(lints.contains(&"ledger-open"), "{lints:?}");
    assert_eq!(unsynced.clock, "enqueue");
    assert!(unsynced.samples_per_s.is_some());
    assert!(unsynced.enqueue_samples_per_s.is_some());
}

#[test]
fn assumed_strides_are_named_by_a_lint_and_real_ones_are_not() {
    let mut engine = Engine::start();
    let assumed = [
        ("model.kv-layout", "assumed"),
        ("model.attention", "kernel"),
    ];
    let strided = [("model.kv-layout", "strided")];
    for (knobs, is_wrong) in [(&assumed[..], true), (&strided[..], false)] {
        let (_, finished) = engine.run(small(knobs), 12);
        let lints = lint_names(&finished);
        assert_eq!(lints.contains(&"wrong-logits"), is_wrong, "{lints:?}");
    }
}

#[test]
fn a_loss_that_is_not_a_number_stops_the_run_and_names_a_tensor() {
    let mut engine = Engine::start();
    let (_, finished) = engine.run(small(&[("train.learning-rate", "1e30")]), 50);
    assert!(finished.steps < 50);
    let ended = finished.ended.as_deref().unwrap_or_default();
    assert!(ended.starts_with("not-finite: "), "{ended}");
    assert!(lint_names(&finished).contains(&"not-finite"));
}

#[test]
fn an_overflow_at_scale_1_ends_the_run_with_the_name_of_the_tensor() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = Process::new(env!("CARGO_BIN_EXE_perflings"))
        .env("XDG_CACHE_HOME", folder.path())
        .env("XDG_STATE_HOME", folder.path())
        .args([
            "run", "7", "--as", "fixed", "--device", "cpu", "--steps", "20",
        ])
        .args([
            "--set",
            "train.precision=f16",
            "--set",
            "train.loss-scaling=none",
        ])
        .args(["--set", "train.learning-rate=1e4", "--set", "train.batch=4"])
        .output()
        .expect("it starts");
    let output = String::from_utf8_lossy(&run.stdout);
    assert!(output.contains("not-finite: the "), "{output}");
}
