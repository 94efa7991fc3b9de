//! The question at the foot of the lesson: a question with its choices, or a figure to guess as a range on a scale.
//!
//! ```text
//! ── how much ──────────────────────────────────────────────
//! What will the first loss be once the fault is fixed?
//! 0.10 │──────────────────▓▓▓▓▓▓▓──────────────────│ 1,000
//! between 7.36 nats and 18.48 nats
//! ```

use ratatui::text::{Line, Span};

use crate::app::Action;
use crate::app::estimate::{POINTS, points};
use crate::course::save_file::letter;
use crate::course::{Estimate, Question, Stage};
use crate::tui::prose::{ProseWriter, READING};
use crate::tui::{keys, text};
use protocol::units::{bounds, number};

/// Writes the open question of a stage, or nothing if none is open.
pub(super) fn write_open(stage: &Stage, w: &mut ProseWriter<'_>) {
    let learner = &w.app.lesson.learner;
    if w.app.beat().is_some() {
        // The room is asked even if the learner has answered before.
        w.rule("predict");
        return choices(&stage.prediction, w);
    }
    if let Some(estimate) = learner.estimate(stage) {
        w.rule("how much");
        w.body(&estimate.prompt, w.theme.strong);
        let range = learner.range.map(|range| range.values(estimate));
        scale(estimate, range, None, w);
        if !learner.typed.is_empty() {
            w.dim(&format!("Around {}", add_unit(estimate, &learner.typed)));
        }
        return;
    }
    if let Some((quiz, question)) = learner.question(stage)
        && !question.choices.is_empty()
    {
        let is_quiz = quiz.is_some();
        w.rule(if is_quiz { "question" } else { "predict" });
        choices(question, w);
    }
}

/// Writes a question and its choices, each after its key.
pub(super) fn choices(question: &Question, w: &mut ProseWriter<'_>) {
    let app = w.app;
    let key = |choice| match keys::label(Action::Answer(choice), app) {
        key if key.is_empty() => letter(choice),
        key => key,
    };
    choices_with_keys(key, question, w);
}

/// Writes a question and its choices. `key` returns the key of a choice by its index.
pub(super) fn choices_with_keys(
    key: impl Fn(usize) -> String,
    question: &Question,
    w: &mut ProseWriter<'_>,
) {
    w.body(&question.prompt, w.theme.strong);
    for (index, choice) in question.choices.iter().enumerate() {
        let marker = format!(" {}  ", key(index));
        w.course_text(&marker, w.theme.key, choice);
    }
}

/// Returns `outside`, or `inside` with the points of the range, for the measured figure `truth`.
pub(super) fn judged(estimate: &Estimate, range: (f64, f64), truth: f64) -> String {
    match points(estimate, range, truth) {
        0 => "outside".to_owned(),
        points => format!("inside, {points} of {POINTS} points"),
    }
}

/// Writes the figure of the last run, if it differs from the first one, which judged the range.
pub(super) fn write_later(estimate: &Estimate, first: f64, later: f64, w: &mut ProseWriter<'_>) {
    let first = with_unit(estimate, first);
    let now = with_unit(estimate, later);
    if first != now {
        w.dim(&format!(
            "Measured since: {now}; the first measurement, {first}, counts for the score."
        ));
    }
}

/// Returns a value of the estimate with its unit, such as `3.1x` or `6.9 nats`.
pub(super) fn with_unit(estimate: &Estimate, value: f64) -> String {
    add_unit(estimate, &number(value))
}

/// Returns the bounds of a range, each with its unit.
pub(super) fn bounds_with_unit(estimate: &Estimate, (low, high): (f64, f64)) -> [String; 2] {
    bounds(low, high).map(|bound| add_unit(estimate, &bound))
}

fn add_unit(estimate: &Estimate, value: &str) -> String {
    match text::cut(&estimate.unit, 12).as_str() {
        "x" => format!("{value}x"),
        unit => format!("{value} {unit}").trim_end().to_owned(),
    }
}

/// Writes the scale of an estimate, with the learner's range once it is placed and the measured figure `truth` once it is known.
pub(super) fn scale(
    estimate: &Estimate,
    range: Option<(f64, f64)>,
    truth: Option<f64>,
    w: &mut ProseWriter<'_>,
) {
    let theme = w.theme;
    let from = number(estimate.from);
    let to = number(estimate.to);
    let ends = text::width(&from) + text::width(&to) + 4;
    let cells = w.columns.clamp(1, READING).saturating_sub(ends).max(4);
    let cell_of = |value: f64| {
        let position = estimate.scale().share(value) * (cells - 1) as f64;
        (position.round() as usize).min(cells - 1)
    };
    let filled = range.map(|(low, high)| cell_of(low)..=cell_of(high).max(cell_of(low)));
    let mark = truth.map(cell_of);
    let end = theme.symbols.vertical;
    let mut spans = vec![Span::styled(format!("{from} {end}"), theme.dim)];
    for cell in 0..cells {
        spans.push(if mark == Some(cell) {
            Span::styled(theme.symbols.points[1], theme.strong)
        } else if filled.as_ref().is_some_and(|filled| filled.contains(&cell)) {
            Span::styled(theme.symbols.fills[1], theme.b)
        } else {
            Span::styled(theme.symbols.rule, theme.border)
        });
    }
    spans.push(Span::styled(format!("{end} {to}"), theme.dim));
    w.lines.push(Line::from(spans));
    let Some(range) = range else {
        return w.dim(
            "No range yet: an arrow key or a figure places it. A narrow range that contains the figure \
             earns more.",
        );
    };
    let [low, high] = bounds_with_unit(estimate, range);
    let mut phrase = format!("between {low} and {high}");
    if let Some(truth) = truth {
        let judged = judged(estimate, range, truth);
        phrase += &format!(", measured {}: {judged}", with_unit(estimate, truth));
    }
    w.text(&phrase);
}
