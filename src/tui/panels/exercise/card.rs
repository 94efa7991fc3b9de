//! The card of an exercise: what the last check or measurement found or how far the present one has come, what the learner
//! answered before it, and whether the learner's kernel computes for the model.

use ratatui::text::{Line, Span};

use crate::app::exercise::measuring::{AnswerFile, Measurement, Measuring};
use crate::app::exercise::{AnswerChoice, ExerciseState, InModel};
use crate::app::{Action, App, Overlay};
use crate::course::Exercise;
use crate::course::sweep::SweepTable;
use crate::judge::kernel::CardLine;
use crate::tui::prose::ProseWriter;
use crate::tui::text;

/// Writes it; nothing where nothing was done yet.
pub(super) fn write(known: &ExerciseState, w: &mut ProseWriter<'_>) {
    check_of_kernel(known, w);
    in_model(known, w);
    match (&known.measuring, &known.measured, &known.answer) {
        (Some(measuring), ..) => in_progress(measuring, w),
        (None, Some(found), answer) => measured(found, answer, w),
        (None, None, AnswerFile::Unread) => {}
        (None, None, AnswerFile::Open(problems)) => asked(problems, w),
        (None, None, AnswerFile::Given(words)) => {
            w.rule("your answer");
            for (key, word) in words {
                let marker = format!("{} {key}  ", w.theme.symbols.pointer);
                w.item_in(&marker, w.theme.key, word, w.theme.strong);
            }
            let said = "{} measures it; the stage's run waits meanwhile.";
            w.keys(said, &[Action::Pair]);
        }
    }
}

/// What goes on now, and since when.
fn now(what: &str, since_ms: u64, w: &mut ProseWriter<'_>) {
    let seconds = w.app.clock.now_ms.saturating_sub(since_ms) / 1000;
    let said = format!("{what}, {seconds} s");
    w.marked(w.theme.waiting(), &said, w.theme.text);
}

fn check_of_kernel(known: &ExerciseState, w: &mut ProseWriter<'_>) {
    if let Some(checking) = &known.checking {
        w.rule("checking");
        checking.card.iter().for_each(|line| card_line(line, w));
        return now(&checking.now, checking.since_ms, w);
    }
    let Some(report) = &known.report else { return };
    let open = report
        .criteria
        .iter()
        .filter(|line| line.outcome.decided().is_none());
    w.rule(match (report.passed, &report.facts.failed) {
        (_, Some(_)) => "not checked",
        (true, None) if open.count() > 0 => "passed, not all was checked",
        (true, None) => "passed",
        (false, None) => "not yet",
    });
    report.card.iter().for_each(|line| card_line(line, w));
    if report.facts.files.iter().any(|it| it.fault.is_some()) {
        let threads = [Action::Open(Overlay::Lanes)];
        w.keys("{} shows it: what each lane does, line by line.", &threads);
    }
    if let (Some(device), None) = (&report.facts.device, &report.facts.failed) {
        let slow = match device.kind.as_str() {
            "vulkan-cpu" => ", a CPU driver: results count, speed does not",
            _ => "",
        };
        let (seconds, name) = (report.facts.seconds, &device.name);
        w.dim(&format!("checked in {seconds:.1} s on {name}{slow}"));
    }
}

fn card_line(line: &CardLine, w: &mut ProseWriter<'_>) {
    let theme = w.theme;
    let mark = line.good.map_or((" ", theme.dim), |good| theme.mark(good));
    let wrong = line.good == Some(false);
    let style = if wrong { theme.strong } else { theme.text };
    w.marked(mark, &line.text, style);
}

/// Whether the open exercise's kernel can replace a part of the model.
fn replaces(app: &App) -> bool {
    let kernels = app.exercise().and_then(Exercise::kernels);
    kernels.is_some_and(|kernels| kernels.replaces.is_some())
}

fn in_model(known: &ExerciseState, w: &mut ProseWriter<'_>) {
    let theme = w.theme;
    let (mark, said) = match &known.in_model {
        InModel::No if known.holds_run && known.checking.is_none() => {
            let said = match w.app.devices.keeps_own_kernels() {
                Some(why) if replaces(w.app) => format!("the model waits: {why}"),
                None if replaces(w.app) => {
                    "the model waits until your kernel computes in it".to_owned()
                }
                _ => "the model waits: this kernel is no part of it".to_owned(),
            };
            (theme.waiting(), said)
        }
        InModel::No => return,
        InModel::Asked => {
            let said = "your kernel takes over at the next step".to_owned();
            (theme.waiting(), said)
        }
        InModel::Since(step) => {
            let good = known.report.as_ref().is_none_or(|report| report.passed);
            let which = if good { "kernel" } else { "last good kernel" };
            let since = step.map_or_else(String::new, |step| format!(" since step {step}"));
            let said = format!("the model computes with your {which}{since}");
            ((theme.symbols.live, theme.good), said)
        }
        InModel::Not(why) => {
            let said = format!("the model waits and keeps its own kernel: {why}");
            ((theme.symbols.circle, theme.dim), said)
        }
    };
    w.marked(mark, &said, theme.text);
}

/// The open question with its words, and where else the answer may be written.
fn asked(problems: &[String], w: &mut ProseWriter<'_>) {
    w.rule("predict before you measure");
    if let Some(choice) = w.app.picking() {
        answers(&choice, w);
    }
    let theme = w.theme;
    for problem in problems {
        w.marked(theme.waiting(), problem, theme.dim);
    }
}

fn answers(choice: &AnswerChoice, w: &mut ProseWriter<'_>) {
    let theme = w.theme;
    let key = format!("{}: ", choice.key);
    w.course_text(&key, theme.key, &choice.ask);
    if !choice.taken.is_empty() {
        let so_far = format!("{}, then", choice.taken.join(", "));
        w.course_text("so far: ", theme.dim, &so_far);
    }
    let words = choice.words.iter().enumerate();
    if choice.words.iter().any(|(_, label)| !label.is_empty()) {
        for (at, (word, label)) in words {
            let mark = theme.symbols.pointer_at(at == choice.at);
            let style = if at == choice.at {
                theme.strong
            } else {
                theme.text
            };
            w.item_in(&format!("{mark} {word}  "), theme.key, label, style);
        }
    } else {
        let words = words.flat_map(|(at, (word, _))| {
            let mark = theme.symbols.pointer_at(at == choice.at);
            let style = theme.among(at == choice.at, theme.text);
            [
                Span::styled(format!("{mark}{word} "), style),
                Span::styled(" ", theme.text),
            ]
        });
        w.runs(&words.collect::<Vec<_>>(), "", "");
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
    let what = match (measuring.begun, sweep.of) {
        (false, _) if w.app.devices.warms_up() => "waits for the GPU to warm up".to_owned(),
        (false, _) => "waits until the stage's run pauses".to_owned(),
        (true, 0) => "an engine starts".to_owned(),
        _ => format!("{}: {}", sweep.what, sweep.done),
    };
    now(&what, measuring.since_ms, w);
    let said = "The stage's run waits. {} stops this.";
    w.keys(said, &[Action::StopMeasuring]);
}

fn measured(found: &Measurement, answer: &AnswerFile, w: &mut ProseWriter<'_>) {
    let theme = w.theme;
    w.rule(match (&found.failed, found.passed) {
        (Some(_), _) => "not measured",
        (None, true) => "passed",
        (None, false) => "not yet",
    });
    table(&found.table, w);
    if let Some(why) = &found.failed {
        w.marked(theme.mark(false), why, theme.strong);
        return w.keys("{} tries again.", &[Action::Pair]);
    }
    found.lines.iter().for_each(|line| criterion(line, w));
    w.dim(&format!(
        "measured in {:.1} s on {}",
        found.seconds, found.device
    ));
    if !found.passed && matches!(answer, AnswerFile::Given(_)) {
        let keys = [Action::OpenEditor, Action::Pair];
        w.keys("{} opens your answer, {} measures again.", &keys);
    }
}

fn criterion(line: &crate::judge::CriterionResult, w: &mut ProseWriter<'_>) {
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

/// The table where it fits, else a paragraph for each row.
fn table(table: &SweepTable, w: &mut ProseWriter<'_>) {
    if table.rows.is_empty() {
        return;
    }
    let theme = w.theme;
    let lines = table.lines();
    if lines.iter().all(|line| text::width(line) <= w.columns) {
        let styles = std::iter::once(theme.dim).chain(std::iter::repeat(theme.figure));
        let lines = lines.into_iter().zip(styles);
        w.lines
            .extend(lines.map(|(line, style)| Line::styled(line, style)));
    } else {
        for row in &table.rows {
            let figures = table.head.iter().skip(1).zip(&row.cells);
            let parts =
                figures.filter_map(|(head, cell)| Some(format!("{head} {}", cell.as_ref()?)));
            let parts: Vec<String> = parts.collect();
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
