//! Measurements made up for each kind of criterion, against right and wrong answers.

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

fn answer(key: &str, words: &str) -> Answers {
    let words = words.split(',').map(str::to_owned).collect();
    Answers::from([(key.to_owned(), words)])
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
    // Launch-bound up to 8, then bound by work.
    let found = points(&configs, |_, batch| run(2.0f64.max(batch / 4.0), 1.0));
    assert_eq!(truth(&configs, &found)["batch"], ["8"]);
    let outcome = |said: &str| lines(&configs, &answer("batch", said), &found)[0].outcome;
    assert_eq!(outcome("8"), Outcome::Passed);
    assert_eq!(outcome("16"), Outcome::Passed, "a neighbour is near enough");
    assert_eq!(outcome("32"), Outcome::Failed);
    let flat = points(&configs, |_, _| run(2.0, 1.0));
    assert_eq!(truth(&configs, &flat)["batch"], ["64"]);
    let steep = points(&configs, |_, batch| run(batch, 1.0));
    assert_eq!(truth(&configs, &steep)["batch"], ["1"]);
}

#[test]
fn the_quadratic_term_is_found_and_flash_has_none() {
    let configs = configs("context");
    let found = points(&configs, |with, s| {
        let composed = with == Some("model.attention=composed");
        let square = if composed { 2e-4 * s * s } else { 0.0 };
        run(1.0, 18.0 + 0.06 * s + square)
    });
    let right = truth(&configs, &found);
    assert_eq!(right["context"], ["512"]);
    let said = lines(&configs, &right, &found);
    assert!(
        said.iter().all(|line| line.outcome == Outcome::Passed),
        "{said:#?}"
    );
    let wrong = lines(&configs, &answer("context", "64"), &found);
    assert_eq!(wrong[0].outcome, Outcome::Failed);
    let mut unmeasured = found.clone();
    for point in &mut unmeasured.points {
        if let Ok(run) = &mut point.run {
            run.memory.peak_bytes = None;
            run.memory.reason = Some("no counter".to_owned());
        }
    }
    let line = &lines(&configs, &right, &unmeasured)[0];
    assert_eq!(
        (line.outcome, line.measured.as_str()),
        (Outcome::NotMeasured, "not measured: no counter")
    );
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
    assert_eq!(truth(&configs, &found)["order"], ["c", "e", "b", "d", "a"]);
    let outcome = |said: &str| lines(&configs, &answer("order", said), &found)[0].outcome;
    assert_eq!(outcome("c,e,b,a,d"), Outcome::Passed, "a and d overlap");
    assert_eq!(
        outcome("e,c,b,d,a"),
        Outcome::Passed,
        "one mistake is allowed"
    );
    assert_eq!(outcome("a,b,c,d,e"), Outcome::Failed);
    let words = unanswered(&configs, &answer("order", "a,b"));
    assert!(
        words[0]
            .measured
            .contains("does not put all of them in order"),
        "{words:?}"
    );
}

#[test]
fn a_refusal_is_an_answer_and_unclear_is_none() {
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
    let right = truth(&configs, &found);
    assert_eq!(
        (&right["f16"][0][..], &right["bf16"][0][..]),
        ("faster", "refused")
    );
    found.speeds = vec![("f16".to_owned(), Ok(pair(Verdict::Unclear)))];
    let line = &lines(&configs, &right, &found)[0];
    assert_eq!(line.outcome, Outcome::NotMeasured);
    assert_eq!(unanswered(&configs, &Answers::new()).len(), 2);
}
