//! The card at the foot of an exercise's page shows the progress of a check or measurement, or the result of the last one. Before a
//! measurement it shows the learner's answer. Below the check of a kernel it says if the kernel computes in the model.
//!
//! ```text
//! ── not yet ───────────────────────────────────
//! ✓ compiles: workgroups of 64 × 1 × 1
//! ✗ fails at `one element` (N = 1): `out[0]` is
//!   -0.46133 and should be 0.15789
//! checked in 0.4 s on EPYC 9654, 2 threads
//! ○ the model waits until your kernel computes
//!   in it
//! ```

use ratatui::text::Span;

use crate::app::exercise::measuring::{AnswerFile, Measurement, Measuring};
use crate::app::exercise::{AnswerChoice, ExerciseState, InModel};
use crate::app::{Action, App, Overlay};
use crate::course::Exercise;
use crate::course::sweep::SweepTable;
use crate::judge::CriterionResult;
use crate::judge::kernel::CardLine;
use crate::tui::prose::ProseWriter;
use crate::tui::text;

/// Writes the card, or nothing before the first check or measurement.
pub(super) fn write(state: &ExerciseState, w: &mut ProseWriter<'_>) {
    check_of_kernel(state, w);
    in_model(state, w);
    match (&state.measuring, &state.measured, &state.answer) {
        (Some(measuring), ..) => in_progress(measuring, w),
        (None, Some(found), answer) => measurement(found, answer, w),
        (None, None, AnswerFile::Unread) => {}
        (None, None, AnswerFile::Open(problems)) => open_question(problems, w),
        (None, None, AnswerFile::Given(answers)) => {
            w.rule("your answer");
            for (key, answer) in answers {
                let marker = format!("{} {key}  ", w.theme.symbols.pointer);
                w.item_in(&marker, w.theme.key, answer, w.theme.strong);
            }
            let text = "{} measures it; the stage's run waits meanwhile.";
            w.keys(text, &[Action::Pair]);
        }
    }
}

/// Writes an activity of the program and how long it has lasted. It began at `since_ms` on the session's clock.
fn progress(activity: &str, since_ms: u64, w: &mut ProseWriter<'_>) {
    let seconds = w.app.clock.now_ms.saturating_sub(since_ms) / 1000;
    let text = format!("{activity}, {seconds} s");
    w.marked(w.theme.waiting(), &text, w.theme.text);
}

fn check_of_kernel(state: &ExerciseState, w: &mut ProseWriter<'_>) {
    if let Some(checking) = &state.checking {
        w.rule("checking");
        for line in &checking.card {
            card_line(line, w);
        }
        return progress(&checking.now, checking.since_ms, w);
    }
    let Some(report) = &state.report else { return };
    let is_unchecked = |line: &CriterionResult| line.outcome.decided().is_none();
    w.rule(if report.facts.failed.is_some() {
        "not checked"
    } else if !report.passed {
        "not yet"
    } else if report.criteria.iter().any(is_unchecked) {
        "passed, not all was checked"
    } else {
        "passed"
    });
    for line in &report.card {
        card_line(line, w);
    }
    if report.facts.files.iter().any(|file| file.fault.is_some()) {
        let lanes = [Action::Open(Overlay::Lanes)];
        w.keys("{} shows what each lane does, line by line.", &lanes);
    }
    if let (Some(device), None) = (&report.facts.device, &report.facts.failed) {
        let slow = if device.kind == "vulkan-cpu" {
            ", a CPU driver: results count, speed does not"
        } else {
            ""
        };
        let seconds = report.facts.seconds;
        w.dim(&format!(
            "checked in {seconds:.1} s on {}{slow}",
            device.name
        ));
    }
}

fn card_line(line: &CardLine, w: &mut ProseWriter<'_>) {
    let theme = w.theme;
    let mark = line.good.map_or((" ", theme.dim), |good| theme.mark(good));
    let is_wrong = line.good == Some(false);
    let style = if is_wrong { theme.strong } else { theme.text };
    w.marked(mark, &line.text, style);
}

/// Returns true if the open exercise's kernel can replace a part of the model.
fn replaces(app: &App) -> bool {
    let kernels = app.exercise().and_then(Exercise::kernels);
    kernels.is_some_and(|kernels| kernels.replaces.is_some())
}

/// Writes since when the learner's kernel computes in the model, or why it does not.
fn in_model(state: &ExerciseState, w: &mut ProseWriter<'_>) {
    let theme = w.theme;
    let (mark, text) = match &state.in_model {
        InModel::No if state.holds_run && state.checking.is_none() => {
            let text = match w.app.devices.keeps_own_kernels() {
                Some(why) if replaces(w.app) => format!("the model waits: {why}"),
                None if replaces(w.app) => {
                    "the model waits until your kernel computes in it".to_owned()
                }
                _ => "the model waits: this kernel is no part of it".to_owned(),
            };
            (theme.waiting(), text)
        }
        InModel::No => return,
        InModel::Asked => {
            let text = "your kernel takes over at the next step".to_owned();
            (theme.waiting(), text)
        }
        InModel::Since(step) => {
            let good = state.report.as_ref().is_none_or(|report| report.passed);
            let which = if good { "kernel" } else { "last good kernel" };
            let since = step.map_or_else(String::new, |step| format!(" since step {step}"));
            let text = format!("the model computes with your {which}{since}");
            ((theme.symbols.live, theme.good), text)
        }
        InModel::Not(why) => {
            let text = format!("the model waits and keeps its own kernel: {why}");
            ((theme.symbols.circle, theme.dim), text)
        }
    };
    w.marked(mark, &text, theme.text);
}

/// Writes the open question with its answers, and the problems of the learner's answer file.
fn open_question(problems: &[String], w: &mut ProseWriter<'_>) {
    w.rule("predict before you measure");
    if let Some(choice) = w.app.picking() {
        answers(&choice, w);
    }
    let theme = w.theme;
    for problem in problems {
        w.marked(theme.waiting(), problem, theme.dim);
    }
}

/// Writes the question of one key of the answer file, and the answers to choose from: a line for each answer where answers have labels,
/// else all answers on one line.
fn answers(choice: &AnswerChoice, w: &mut ProseWriter<'_>) {
    let theme = w.theme;
    let key = format!("{}: ", choice.key);
    w.course_text(&key, theme.key, &choice.ask);
    if !choice.taken.is_empty() {
        let so_far = format!("{}, then", choice.taken.join(", "));
        w.course_text("so far: ", theme.dim, &so_far);
    }
    let has_labels = choice.words.iter().any(|(_, label)| !label.is_empty());
    let mut on_one_line = Vec::new();
    for (index, (answer, label)) in choice.words.iter().enumerate() {
        let selected = index == choice.at;
        let mark = theme.symbols.pointer_at(selected);
        if has_labels {
            let style = if selected { theme.strong } else { theme.text };
            w.item_in(&format!("{mark} {answer}  "), theme.key, label, style);
        } else {
            let style = theme.among(selected, theme.text);
            on_one_line.push(Span::styled(format!("{mark}{answer} "), style));
            on_one_line.push(Span::styled(" ", theme.text));
        }
    }
    if !has_labels {
        w.runs(&on_one_line, "", "");
    }
    let keys = [
        Action::PickOther(-1),
        Action::PickOther(1),
        Action::PickThis,
    ];
    w.keys("{} and {} mark another answer, {} chooses it.", &keys);
}

fn in_progress(measuring: &Measuring, w: &mut ProseWriter<'_>) {
    let sweep = &measuring.sweep;
    match sweep.of {
        0 => w.rule("measuring"),
        of => w.rule(&format!("measuring, {} of {of}", sweep.number)),
    }
    table(&sweep.table, w);
    let activity = if !measuring.begun && w.app.devices.warms_up() {
        "waits for the GPU to warm up".to_owned()
    } else if !measuring.begun {
        "waits until the stage's run pauses".to_owned()
    } else if sweep.of == 0 {
        "an engine starts".to_owned()
    } else {
        format!("{}: {}", sweep.what, sweep.done)
    };
    progress(&activity, measuring.since_ms, w);
    let text = "The stage's run waits. {} stops this.";
    w.keys(text, &[Action::StopMeasuring]);
}

fn measurement(found: &Measurement, answer: &AnswerFile, w: &mut ProseWriter<'_>) {
    let theme = w.theme;
    w.rule(if found.failed.is_some() {
        "not measured"
    } else if found.passed {
        "passed"
    } else {
        "not yet"
    });
    table(&found.table, w);
    if let Some(why) = &found.failed {
        w.marked(theme.mark(false), why, theme.strong);
        return w.keys("{} tries again.", &[Action::Pair]);
    }
    for line in &found.lines {
        criterion(line, w);
    }
    w.dim(&format!(
        "measured in {:.1} s on {}",
        found.seconds, found.device
    ));
    if !found.passed && matches!(answer, AnswerFile::Given(_)) {
        let keys = [Action::OpenEditor, Action::Pair];
        w.keys("{} opens your answer, {} measures again.", &keys);
    }
}

fn criterion(line: &CriterionResult, w: &mut ProseWriter<'_>) {
    let theme = w.theme;
    w.marked(theme.outcome(line.outcome), &line.name, theme.strong);
    for (head, body) in [("asked: ", &line.asked), ("measured: ", &line.measured)] {
        let runs = [
            Span::styled(head, theme.dim),
            Span::styled(body, theme.text),
        ];
        w.runs(&runs, "  ", "  ");
    }
}

/// Writes the table where it fits, else a paragraph for each row. Below it stand the reasons of the rows without figures.
fn table(table: &SweepTable, w: &mut ProseWriter<'_>) {
    if table.rows.is_empty() {
        return;
    }
    let theme = w.theme;
    let lines = table.lines();
    if lines.iter().all(|line| text::width(line) <= w.columns) {
        for (index, line) in lines.into_iter().enumerate() {
            let is_head = index == 0;
            w.line(line, if is_head { theme.dim } else { theme.figure });
        }
    } else {
        for row in &table.rows {
            let heads = table.head.iter().skip(1);
            let parts: Vec<String> = heads
                .zip(&row.cells)
                .filter_map(|(head, cell)| Some(format!("{head} {}", cell.as_ref()?)))
                .collect();
            if !parts.is_empty() || row.why.is_none() {
                let marker = format!("{}  ", row.name);
                w.course_text(&marker, theme.key, &parts.join(", "));
            }
        }
    }
    for row in &table.rows {
        if let Some(why) = &row.why {
            w.course_text(&format!("{}  ", row.name), theme.warning, why);
        }
    }
}
