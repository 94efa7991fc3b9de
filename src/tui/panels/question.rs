//! The question at the foot of the lesson: a question with its choices, or a figure to guess as a range on a scale.

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
        // The room is asked again, even if the learner has answered before.
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
        none if none.is_empty() => letter(choice),
        key => key,
    };
    choices_with_keys(key, question, w);
}

/// Writes a question and its choices. `key` returns the key of the choice with a number.
pub(super) fn choices_with_keys(
    key: impl Fn(usize) -> String,
    question: &Question,
    w: &mut ProseWriter<'_>,
) {
    w.body(&question.prompt, w.theme.strong);
    for (number, choice) in question.choices.iter().enumerate() {
        let marker = format!(" {}  ", key(number));
        w.course_text(&marker, w.theme.key, choice);
    }
}

/// Says whether the measured figure lies inside the range, and how many points that gives.
pub(super) fn judged(estimate: &Estimate, range: (f64, f64), truth: f64) -> String {
    match points(estimate, range, truth) {
        0 => "outside".to_owned(),
        points => format!("inside, {points} of {POINTS} points"),
    }
}

/// Writes the figure of the last run, if it differs from the first figure, which judged the range.
pub(super) fn later(estimate: &Estimate, first: f64, later: f64, w: &mut ProseWriter<'_>) {
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

/// Writes the scale of an estimate, with the range if it is placed and the truth if it is known.
pub(super) fn scale(
    estimate: &Estimate,
    range: Option<(f64, f64)>,
    truth: Option<f64>,
    w: &mut ProseWriter<'_>,
) {
    let theme = w.theme;
    let (from, to) = (number(estimate.from), number(estimate.to));
    let ends = text::width(&from) + text::width(&to) + 4;
    let room = w.columns.clamp(1, READING).saturating_sub(ends).max(4);
    let cell = |value: f64| {
        let position = estimate.scale().share(value) * (room - 1) as f64;
        (position.round() as usize).min(room - 1)
    };
    let filled = range.map(|(low, high)| cell(low)..=cell(high).max(cell(low)));
    let mark = truth.map(cell);
    let end = theme.symbols.vertical;
    let mut spans = vec![Span::styled(format!("{from} {end}"), theme.dim)];
    for column in 0..room {
        spans.push(if mark == Some(column) {
            Span::styled(theme.symbols.points[1], theme.strong)
        } else if filled.as_ref().is_some_and(|cells| cells.contains(&column)) {
            Span::styled(theme.symbols.fills[1], theme.b)
        } else {
            Span::styled(theme.symbols.rule, theme.border)
        });
    }
    spans.push(Span::styled(format!("{end} {to}"), theme.dim));
    w.lines.push(Line::from(spans));
    let Some(range) = range else {
        return w.dim("No range yet: an arrow key or a figure places it. A narrow range that contains the figure earns more.");
    };
    let [low, high] = bounds_with_unit(estimate, range);
    let mut words = format!("between {low} and {high}");
    if let Some(truth) = truth {
        let judged = judged(estimate, range, truth);
        words += &format!(", measured {}: {judged}", with_unit(estimate, truth));
    }
    w.text(&words);
}
