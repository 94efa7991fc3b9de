//! Checks of stages: `course check` with a training that is only pretended, and the criteria of single stages.

use perflings::course::check::{Metric, Target, Test};
use perflings::course::{Course, Stage, metric};
use perflings::judge::Outcome;
use perflings::judge::course::stage_trials;
use perflings::judge::stage::{StageFacts, evaluate};
use protocol::config::{Data, RunConfig};
use protocol::{Finished, Pair, PhaseTimes, Verdict};

use super::ExampleCourse;

/// Pretends to train. The loss falls unless the configuration has a fault of the example course.
fn pretend_to_train(config: &RunConfig, steps: u64) -> Result<Finished, String> {
    let learns = config.train.data == Data::Markov && config.train.learning_rate < 0.1;
    let loss_last = if learns { 6.2 } else { 6.94 };
    Ok(Finished {
        steps,
        loss_first: 6.93.into(),
        loss_last: loss_last.into(),
        ln_vocab: config.ln_vocab(),
        ..Finished::default()
    })
}

#[test]
fn course_check_passes_starters_that_fail_and_solutions_that_pass() {
    let example = ExampleCourse::new();
    let results = stage_trials(&example.open(), &mut pretend_to_train, None);
    assert_eq!(results.len(), 4);
    for result in &results {
        assert_eq!(result.passed, Some(true), "{results:#?}");
    }
    assert!(results[0].detail.contains("`the model learns`"));
}

#[test]
fn course_check_names_a_starter_that_passes_and_a_solution_that_fails() {
    let example = ExampleCourse::new();
    let stage = "exercises/01-nothing-to-learn";
    let learns = "[train]\ndata = \"markov\"\nseed = 43\n";
    let does_not_learn = "[train]\ndata = \"noise\"\nseed = 43\n";
    example.write(&format!("{stage}/config.toml"), learns);
    example.write(&format!("{stage}/solution/config.toml"), does_not_learn);
    let results = stage_trials(&example.open(), &mut pretend_to_train, None);
    let passed: Vec<Option<bool>> = results.iter().map(|result| result.passed).collect();
    assert_eq!(passed, [false, false, true, true].map(Some));
    assert_eq!(results[0].name, "1 nothing-to-learn, starter");
    for (result, detail) in [
        (&results[0], "must fail: `the model learns`"),
        (&results[1], "must pass: `the model learns`"),
    ] {
        assert!(result.detail.starts_with(detail), "{result:#?}");
    }
}

/// Returns a run of stage 1 that meets its criteria.
fn good_run_of_broken_init(stage: &Stage) -> Finished {
    let mut run = Finished {
        steps: 60,
        loss_first: 6.93.into(),
        loss_last: 6.1.into(),
        ln_vocab: stage.fixed.ln_vocab(),
        ..Finished::default()
    };
    run.grad.tensors = 38;
    run.grad.with_grad = 38;
    run.grad.params_pct = 100.0;
    run
}

#[test]
fn a_good_run_passes_each_criterion_and_leaves_the_quiz_unmeasured() {
    let course = Course::builtin();
    let stage = course.stage_by_id("broken-init").expect("stage 1");
    let run = good_run_of_broken_init(stage);
    let facts = StageFacts {
        config: Some(&stage.fixed),
        finished: Some(&run),
        ..StageFacts::default()
    };
    let report = evaluate(stage, facts);
    assert!(report.passed(), "{report:#?}");
    let first_loss = "loss_first within 3 % of 6.93 (formula.first_loss)";
    assert_eq!(report.lines[1].asked, first_loss);
    let quiz = report.lines.last().expect("the quiz");
    assert_eq!(quiz.outcome, Outcome::NotMeasured);
}

#[test]
fn criteria_are_not_measured_without_a_run() {
    let course = Course::builtin();
    let stage = course.stage_by_id("broken-init").expect("stage 1");
    let facts = StageFacts {
        config: Some(&stage.fixed),
        ..StageFacts::default()
    };
    assert_eq!(evaluate(stage, facts).outcome(), Outcome::NotMeasured);
}

#[test]
fn a_changed_seed_fails_the_stage() {
    let course = Course::builtin();
    let stage = course.stage_by_id("broken-init").expect("stage 1");
    let run = good_run_of_broken_init(stage);
    let mut other_seed = stage.fixed.clone();
    other_seed.train.seed = 7;
    let facts = StageFacts {
        config: Some(&other_seed),
        finished: Some(&run),
        ..StageFacts::default()
    };
    let report = evaluate(stage, facts);
    assert_eq!(report.outcome(), Outcome::Failed);
    assert_eq!(report.lines[0].measured, "train.seed differs");
}

#[test]
fn an_unclear_ratio_passes_only_if_its_whole_interval_does() {
    let course = Course::builtin();
    let stage = course.stage_by_id("naive-swiglu").expect("stage 4");
    for (low, verdict, expected) in [
        (Some(0.97), Verdict::Unclear, Outcome::NotMeasured),
        (Some(2.5), Verdict::Unclear, Outcome::Passed),
        (Some(2.5), Verdict::Faster, Outcome::Passed),
        (Some(0.98), Verdict::Same, Outcome::Failed),
        (None, Verdict::Unclear, Outcome::NotMeasured),
    ] {
        let pair = Pair {
            n: 30,
            ratio: 3.0,
            low,
            high: Some(3.5),
            verdict,
            ..Pair::default()
        };
        let facts = StageFacts {
            pair: Some(&pair),
            ..StageFacts::default()
        };
        let report = evaluate(stage, facts);
        let mut lines = report.lines.iter();
        let ratio = lines.find(|line| line.asked.starts_with("ratio"));
        assert_eq!(ratio.expect("a ratio").outcome, expected, "{pair:?}");
    }
}

#[test]
fn a_ratio_that_must_be_small_is_judged_by_its_high_end() {
    let course = Course::builtin();
    let mut stage = course.stage_by_id("naive-swiglu").expect("stage 4").clone();
    stage.checks.retain(|check| check.metric == Metric::Ratio);
    stage.checks[0].test = Test::Below(Target::Number(1.0));
    for (high, outcome) in [(1.2, Outcome::Failed), (0.9, Outcome::Passed)] {
        let pair = Pair {
            n: 30,
            ratio: 0.8,
            low: Some(0.7),
            high: Some(high),
            verdict: Verdict::Slower,
            ..Pair::default()
        };
        let facts = StageFacts {
            pair: Some(&pair),
            ..StageFacts::default()
        };
        assert_eq!(evaluate(&stage, facts).outcome(), outcome);
    }
}

#[test]
fn a_share_misses_by_percentage_points_and_a_figure_by_its_unit() {
    let course = Course::builtin();
    let stage = course.stage_by_id("missing-sync").expect("stage 3");
    let run = Finished {
        steps: 60,
        phases_ms: Some(PhaseTimes::from_parts([0.1, 0.1, 0.1], 300.0)),
        ..Finished::default()
    };
    let measured = StageFacts {
        config: Some(&stage.fixed),
        finished: Some(&run),
        ..StageFacts::default()
    };
    let report = evaluate(stage, measured);
    let (shares, figures): (Vec<_>, Vec<_>) = report
        .lines
        .iter()
        .filter(|line| line.outcome == Outcome::Failed)
        .partition(|line| line.asked.contains("_pct"));
    let share = &shares[0].measured;
    assert!(
        share.contains("99.9 %, 94.9 percentage points too high"),
        "{share}"
    );
    for figure in figures {
        assert!(!figure.measured.contains("points"), "{figure:?}");
    }
}

#[test]
fn memory_is_counted_in_mib() {
    let mut run = Finished::default();
    run.memory.weights = 3 << 20;
    assert_eq!(metric::value("memory.weights_mib", &run), Some(3.0));
    run.memory.peak_bytes = Some(1 << 30);
    assert_eq!(metric::value("memory.peak_mib", &run), Some(1024.0));
}
