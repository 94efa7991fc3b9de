//! The page of a mystery stands in the place of the lesson: the task and its rules, the learner's changes so far, the last verdict; at the
//! end the faults.

use ratatui::text::Span;

use super::cards;
use crate::app::Action;
use crate::app::mystery::{JudgeStep, MysteryEnd, MysteryRun};
use crate::course::mystery::{FAULT_POINTS, FAULTS, Mystery, scoring};
use crate::judge::mystery::STEPS;
use crate::judge::{CriterionResult, Outcome};
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

fn task(open: &MysteryRun, w: &mut ProseWriter<'_>) {
    let theme = w.theme;
    let text = match open.mystery.level() {
        1 => "This run has one fault: a knob with a faulty value, or a few that belong together. Find it in the \
              panels and fix it in B."
            .to_owned(),
                count => format!(
            "This run has {count} faults, each a knob with a faulty value or a few that belong together. Find them in the \
             panels and fix them in B."
        ),
    };
    w.plain(&text, theme.strong);
    w.blank();
    let mut changes = w.app.shown_bench().comparison.differences();
    if changes.is_empty() {
        changes = "nothing yet".to_owned();
    }
    w.item("B: ", theme.b, &changes);
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

/// Writes the progress of the judge or its last verdict on B: the criteria, never a knob.
fn verdict(open: &MysteryRun, w: &mut ProseWriter<'_>) {
    let (app, theme) = (w.app, w.theme);
    match &open.judging {
        Some(JudgeStep::Run) => {
            w.heading("The verdict");
            let step = app.shown_run().step().map_or(0, |step| step.min(STEPS));
            w.text(&format!("A fresh run of B: step {step} of {STEPS}"));
        }
        Some(JudgeStep::Pairs(_)) => {
            w.heading("The verdict");
            let text = "All but the speed of B is right. Its speed is now compared with a known-good configuration, in pairs:";
            w.text(text);
            w.blank();
            let lines = cards::verdict(app, w.columns, theme);
            w.lines.extend(lines);
        }
        None => {}
    }
    let (Some(report), None) = (&open.report, &open.judging) else {
        return;
    };
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

fn rules(open: &MysteryRun, w: &mut ProseWriter<'_>) {
    w.heading("How");
    w.keys(
        "{} opens the knobs: A's values stay hidden, B's until you turn them. {} toggles A and B. {} asks for the verdict on B. {} gives up.",
        &[Action::Knobs, Action::Toggle, Action::Pair, Action::Solution],
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

fn ended(open: &MysteryRun, end: MysteryEnd, w: &mut ProseWriter<'_>) {
    let theme = w.theme;
    match end {
        MysteryEnd::Solved { points, seconds } => {
            let whole = FAULT_POINTS * u32::from(open.mystery.level());
            let text = format!("Solved: {points} of {whole} points, in {}", time(seconds));
            w.marked((theme.symbols.good, theme.good), &text, theme.strong);
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
            let text = "B still has this fault. The pairs did not measure a slowdown from it on this device.";
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
