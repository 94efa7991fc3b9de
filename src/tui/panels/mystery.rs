//! The page of a mystery, in the place of the lesson: the task, the learner's changes so far, the last verdict and the rules. At the end the
//! page names the faults.
//!
//! ```text
//! This run has one fault: a knob with a faulty value, or a few
//! that belong together. Find it in the panels and fix it in B.
//!
//! B: model.norm composed
//! 2 panels brought up, 1 change tried, 3 min
//!
//! The verdict: not yet
//! ▲ the loss must fall
//!   6.940 after 60 steps
//! ✓ the loss must start near ln V
//! ```

use ratatui::text::Span;

use super::cards;
use crate::app::Action;
use crate::app::mystery::{JudgeStep, MysteryEnd, MysteryRun};
use crate::course::mystery::{FAULT_POINTS, FAULTS, Mystery, scoring};
use crate::judge::mystery::STEPS;
use crate::judge::{CriterionResult, Outcome, StageReport};
use crate::tui::prose::ProseWriter;
use crate::tui::speaker::time;

/// Writes the page of the open mystery.
pub(super) fn page(open: &MysteryRun, w: &mut ProseWriter<'_>) {
    match open.end {
        Some(end) => ended(open, end, w),
        None => {
            task(open, w);
            verdict(open, w);
            rules(open, w);
        }
    }
}

/// Writes the task, the learner's changes and the effort so far.
fn task(open: &MysteryRun, w: &mut ProseWriter<'_>) {
    let text = match open.mystery.level() {
        1 => "This run has one fault: a knob with a faulty value, or a few that belong together. \
              Find it in the panels and fix it in B."
            .to_owned(),
        count => format!(
            "This run has {count} faults, each a knob with a faulty value or a few that belong together. \
             Find them in the panels and fix them in B."
        ),
    };
    w.plain(&text, w.theme.strong);
    w.blank();
    let changes = match w.app.shown_bench().comparison.differences() {
        none if none.is_empty() => "nothing yet".to_owned(),
        changes => changes,
    };
    w.item("B: ", w.theme.b, &changes);
    let minutes = open.seconds(w.app.clock.now_ms) / 60;
    w.dim(&format!("{}, {minutes} min", effort(open)));
}

/// Returns the learner's effort in words: `3 panels brought up, 2 changes tried`.
fn effort(open: &MysteryRun) -> String {
    let counted = |count: usize, noun: &str| match count {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    };
    format!(
        "{} brought up, {} tried",
        counted(open.opened_panels.len(), "panel"),
        counted(open.changes, "change")
    )
}

/// Writes the progress of the judge, or its last verdict on B.
fn verdict(open: &MysteryRun, w: &mut ProseWriter<'_>) {
    match (&open.judging, &open.report) {
        (Some(JudgeStep::Run), _) => {
            w.heading("The verdict");
            let step = w.app.shown_run().step().unwrap_or(0).min(STEPS);
            w.text(&format!("A fresh run of B: step {step} of {STEPS}"));
        }
        (Some(JudgeStep::Pairs(_)), _) => {
            w.heading("The verdict");
            w.text(
                "All but the speed of B is right. Its speed is now compared with a known-good \
                 configuration, in pairs:",
            );
            w.blank();
            let lines = cards::verdict(w.app, w.columns, w.theme);
            w.lines.extend(lines);
        }
        (None, Some(report)) => criteria(report, w),
        (None, None) => {}
    }
}

/// Writes the criteria of a verdict. They never name a knob.
fn criteria(report: &StageReport, w: &mut ProseWriter<'_>) {
    let theme = w.theme;
    w.heading(if report.passed() {
        "The verdict: B is right"
    } else {
        "The verdict: not yet"
    });
    // Failed criteria come first, because a small screen has no room for all.
    let order = [Outcome::Failed, Outcome::NotMeasured, Outcome::Passed];
    let rank = |line: &&CriterionResult| order.iter().position(|kind| *kind == line.outcome);
    let mut lines: Vec<&CriterionResult> = report.lines.iter().collect();
    lines.sort_by_key(rank);
    for line in lines {
        let (mark, style) = match line.outcome {
            Outcome::Passed => (theme.symbols.good, theme.good),
            Outcome::Failed => (theme.symbols.warning, theme.bad),
            Outcome::NotMeasured => (theme.symbols.circle, theme.dim),
        };
        w.marked((mark, style), &line.name, theme.text);
        if line.outcome != Outcome::Passed {
            w.item_in("  ", theme.dim, &line.measured, theme.dim);
        }
    }
}

/// Writes the keys, the scoring, and the learner's best score.
fn rules(open: &MysteryRun, w: &mut ProseWriter<'_>) {
    w.heading("How");
    w.keys(
        "{} opens the knobs: A's values stay hidden, B's until you turn them. {} toggles A and B. \
         {} asks for the verdict on B. {} gives up.",
        &[
            Action::Knobs,
            Action::Toggle,
            Action::Pair,
            Action::Solution,
        ],
    );
    w.heading("Points");
    let scoring = scoring(open.mystery.level());
    w.text(&format!(
        "{scoring} Values that you pass over and the time of the verdict cost nothing."
    ));
    if let Some(score) = open.score(&w.app.lesson.learner) {
        w.dim(&format!("Your best so far: {}", score.best));
    }
}

/// Writes the page after the end: the points, the faults, and the keys that go on.
fn ended(open: &MysteryRun, end: MysteryEnd, w: &mut ProseWriter<'_>) {
    let theme = w.theme;
    match end {
        MysteryEnd::Solved { points, seconds } => {
            let most = FAULT_POINTS * u32::from(open.mystery.level());
            let text = format!("Solved: {points} of {most} points, in {}", time(seconds));
            w.marked(theme.mark(true), &text, theme.strong);
            let best = open
                .score(&w.app.lesson.learner)
                .map_or(points, |score| score.best);
            w.dim(&format!("{}; your best {best}", effort(open)));
        }
        MysteryEnd::GivenUp => w.plain("Given up: no points for this one.", theme.strong),
    }
    let many = open.mystery.faults.len() > 1;
    w.heading(if many { "The faults" } else { "The fault" });
    faults(&open.mystery, end, w);
    w.blank();
    w.keys(
        "The knobs ({}) now show A's values. {} begins the next mystery.",
        &[Action::Knobs, Action::NextStage],
    );
    if end != MysteryEnd::GivenUp {
        verdict(open, w);
    }
}

/// Writes each fault: its knobs with the faulty and the good values, its effect, and the number of faults that look alike.
fn faults(mystery: &Mystery, end: MysteryEnd, w: &mut ProseWriter<'_>) {
    let theme = w.theme;
    for fault in &mystery.faults {
        for (path, _) in fault.sets {
            let Some(knob) = protocol::config::Knob::known(path) else {
                continue;
            };
            let runs = [
                Span::styled((*path).to_owned(), theme.key),
                Span::styled(" was ", theme.text),
                Span::styled((knob.get)(&mystery.broken), theme.a),
                Span::styled("; known good is ", theme.text),
                Span::styled((knob.get)(&mystery.good), theme.b),
            ];
            w.runs(&runs, "", "  ");
        }
        w.text(fault.effect);
        if end != MysteryEnd::GivenUp && fault.is_in(&w.app.shown_bench().comparison.config_b) {
            let text = "B still has this fault. The pairs did not measure a slowdown from it on this \
                        device.";
            w.plain(text, theme.warning);
        }
        let alike = FAULTS
            .iter()
            .filter(|other| other.symptom == fault.symptom)
            .count();
        let others = match alike - 1 {
            1 => "as does 1 other fault".to_owned(),
            others => format!("as do {others} other faults"),
        };
        w.dim(&format!(
            "It looks like {}, {others}.",
            fault.symptom.into_str()
        ));
        w.blank();
    }
}
