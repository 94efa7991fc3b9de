//! Right and wrong answers to the shipped config exercises, compared with invented measurements.

use super::*;
use crate::course::Course;
use crate::course::exercise::Exercise;
use crate::course::sweep::SweepPoint as Point;
use crate::judge::Outcome;
use protocol::{Memory, Spread, Verdict};

fn configs(id: &str) -> Configs {
    let course = Course::builtin();
    let found = course.exercise_by_id(id).and_then(Exercise::configs);
    found.expect("a config exercise").clone()
}

fn answer(key: &str, list: &str) -> Answers {
    let words = list.split(',').map(str::to_owned).collect();
    Answers::from([(key.to_owned(), words)])
}

/// Returns the outcome of the first criterion for an answer.
fn outcome(configs: &Configs, found: &SweepRuns, key: &str, list: &str) -> Outcome {
    lines(configs, &answer(key, list), found)[0].outcome
}

fn run(step_ms: f64, mib: f64) -> Finished {
    Finished {
        steps: 12,
        loss_first: 6.93.into(),
        step_ms: Some(Spread {
            median: step_ms,
            n: 10,
            ..Spread::default()
        }),
        memory: Memory {
            peak_bytes: Some((mib * 1024.0 * 1024.0) as u64),
            ..Memory::default()
        },
        ..Finished::default()
    }
}

fn points(configs: &Configs, of: impl Fn(Option<&str>, f64) -> Finished) -> SweepRuns {
    let points = configs.points().into_iter().map(|(with, value)| Point {
        with: with.map(str::to_owned),
        value: value.to_owned(),
        run: Ok(of(with, value.parse().expect("a number"))),
    });
    SweepRuns {
        points: points.collect(),
        ..SweepRuns::default()
    }
}

#[test]
fn the_bend_is_the_last_cheap_doubling() {
    let configs = configs("batch");
    // A step takes 2 ms up to batch 8, because launches dominate, and twice as long with each doubling after that.
    let found = points(&configs, |_, batch| run(2.0f64.max(batch / 4.0), 1.0));
    assert_eq!(right_answers(&configs, &found)["batch"], ["8"]);
    for (answer, expected) in [
        ("8", Outcome::Passed),
        ("16", Outcome::Passed),
        ("32", Outcome::Failed),
    ] {
        assert_eq!(outcome(&configs, &found, "batch", answer), expected);
    }
}

#[test]
fn the_bend_of_a_flat_curve_is_at_its_end_and_that_of_a_steep_one_at_its_beginning() {
    let configs = configs("batch");
    let flat = points(&configs, |_, _| run(2.0, 1.0));
    assert_eq!(right_answers(&configs, &flat)["batch"], ["64"]);
    let steep = points(&configs, |_, batch| run(batch, 1.0));
    assert_eq!(right_answers(&configs, &steep)["batch"], ["1"]);
}

#[test]
fn the_quadratic_term_leads_with_scores_in_memory_and_is_small_with_flash() {
    let configs = configs("context");
    // 2e-4·s² is the largest of the three terms from s = 512 on.
    let found = points(&configs, |with, s| {
        let composed = with == Some("model.attention=composed");
        let square = if composed { 2e-4 * s * s } else { 0.0 };
        run(1.0, 18.0 + 0.06 * s + square)
    });
    let right = right_answers(&configs, &found);
    assert_eq!(right["context"], ["512"]);
    for line in lines(&configs, &right, &found) {
        assert_eq!(line.outcome, Outcome::Passed, "{line:#?}");
    }
    let wrong = outcome(&configs, &found, "context", "64");
    assert_eq!(wrong, Outcome::Failed);
}

#[test]
fn memory_without_a_counter_is_not_judged() {
    let configs = configs("context");
    let found = points(&configs, |_, _| {
        let mut run = run(1.0, 0.0);
        run.memory.peak_bytes = None;
        run.memory.reason = Some("no counter".to_owned());
        run
    });
    let line = &lines(&configs, &answer("context", "512"), &found)[0];
    assert_eq!(line.outcome, Outcome::NotMeasured);
    assert_eq!(line.measured, "not measured: no counter");
}

#[test]
fn an_order_fails_on_pairs_that_are_clearly_apart() {
    let configs = configs("rank");
    let pair = |ratio: f64| {
        Ok(Pair {
            n: 30,
            ratio,
            low: Some(ratio - 0.02),
            high: Some(ratio + 0.02),
            ..Pair::default()
        })
    };
    let found = SweepRuns {
        changes: vec![pair(1.0), pair(1.1), pair(1.3), pair(1.01), pair(1.2)],
        ..SweepRuns::default()
    };
    let right = right_answers(&configs, &found);
    assert_eq!(right["order"], ["c", "e", "b", "d", "a"]);
    for (order, expected) in [
        // The intervals of a and d overlap, so their order does not count.
        ("c,e,b,a,d", Outcome::Passed),
        // One mistake is allowed.
        ("e,c,b,d,a", Outcome::Passed),
        ("a,b,c,d,e", Outcome::Failed),
    ] {
        assert_eq!(outcome(&configs, &found, "order", order), expected);
    }
}

#[test]
fn an_order_that_lacks_a_change_is_not_an_answer() {
    let configs = configs("rank");
    let results = unanswered(&configs, &answer("order", "a,b"));
    let message = "`a,b` does not put all of them in order; \
                   write each of a, b, c, d, e once, such as a,b,c,d,e";
    assert!(results[0].measured.starts_with(message), "{results:?}");
}

#[test]
fn a_refusal_is_an_answer_and_an_unclear_comparison_is_not() {
    let configs = configs("precision");
    let mut found = SweepRuns::default();
    for value in ["f32", "f16", "bf16"] {
        found.points.push(Point {
            with: None,
            value: value.to_owned(),
            run: if value == "bf16" {
                Err("not computed here".to_owned())
            } else {
                Ok(run(1.0, 1.0))
            },
        });
    }
    let pair = |verdict| Pair {
        n: 30,
        verdict,
        ..Pair::default()
    };
    found.speeds = vec![("f16".to_owned(), Ok(pair(Verdict::Faster)))];
    let right = right_answers(&configs, &found);
    assert_eq!(right["f16"], ["faster"]);
    assert_eq!(right["bf16"], ["refused"]);
    found.speeds = vec![("f16".to_owned(), Ok(pair(Verdict::Unclear)))];
    let line = &lines(&configs, &right, &found)[0];
    assert_eq!(line.outcome, Outcome::NotMeasured);
    assert_eq!(unanswered(&configs, &Answers::new()).len(), 2);
}
