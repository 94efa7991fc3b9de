//! What is asked at the foot of the lesson: a question with its choices, or a figure to guess as a range on a scale.

use ratatui::text::{Line, Span};

use crate::app::Action;
use crate::app::estimate::{POINTS, points};
use crate::course::save_file::letter;
use crate::course::{Estimate, Question, Stage};
use crate::tui::prose::{ProseWriter, READING};
use crate::tui::{keys, text};
use protocol::units::{bounds, number};

/// Writes what a stage asks now; nothing when it asks nothing.
pub(super) fn of_stage(stage: &Stage, w: &mut ProseWriter<'_>) {
    let study = &w.app.lesson.study;
    if w.app.beat().is_some() {
        // The room is asked again, whatever was answered before.
        w.rule("predict");
        return choices(&stage.prediction, w);
    }
    if let Some(of) = study.estimate(stage) {
        w.rule("how much");
        w.body(&of.prompt, w.theme.strong);
        let range = study.range.map(|range| range.values(of));
        scale(of, range, None, w);
        if !study.typed.is_empty() {
            w.dim(&format!("Around {}", unit(of, &study.typed)));
        }
        return;
    }
    let asked = study.question(stage);
    if let Some((quiz, question)) = asked.filter(|(_, it)| !it.choices.is_empty()) {
        w.rule(quiz.map_or("predict", |_| "question"));
        choices(question, w);
    }
}

/// A question and its choices, each behind its key.
pub(super) fn choices(question: &Question, w: &mut ProseWriter<'_>) {
    let app = w.app;
    let key = |at| match keys::label(Action::Answer(at), app) {
        none if none.is_empty() => letter(at),
        key => key,
    };
    choices_behind(key, question, w);
}

/// A question and its choices, each behind what `key` says of its place.
pub(super) fn choices_behind(
    key: impl Fn(usize) -> String,
    question: &Question,
    w: &mut ProseWriter<'_>,
) {
    w.body(&question.prompt, w.theme.strong);
    for (at, choice) in question.choices.iter().enumerate() {
        let marker = format!(" {}  ", key(at));
        w.course_text(&marker, w.theme.key, choice);
    }
}

/// Where what was measured lies, and the points for it.
pub(super) fn judged(of: &Estimate, range: (f64, f64), truth: f64) -> String {
    match points(of, range, truth) {
        0 => "outside".to_owned(),
        points => format!("inside, {points} of {POINTS} points"),
    }
}

/// What the last run measured, where it is another figure than the one that judged the range.
pub(super) fn later(of: &Estimate, first: f64, later: f64, w: &mut ProseWriter<'_>) {
    let (first, now) = (with_unit(of, first), with_unit(of, later));
    if first != now {
        let said =
            format!("Measured since: {now}; the first measurement, {first}, counts for the score.");
        w.dim(&said);
    }
}

/// A value of the estimate: `3.1x`, `6.9 nats`.
pub(super) fn with_unit(of: &Estimate, value: f64) -> String {
    unit(of, &number(value))
}

/// The bounds of a range, each with its unit.
pub(super) fn bounds_with_unit(of: &Estimate, (low, high): (f64, f64)) -> [String; 2] {
    bounds(low, high).map(|it| unit(of, &it))
}

fn unit(of: &Estimate, value: &str) -> String {
    match text::cut(&of.unit, 12).as_str() {
        "x" => format!("{value}x"),
        unit => format!("{value} {unit}").trim_end().to_owned(),
    }
}

/// A scale, with the range on it once it is placed, and the truth once it is known.
pub(super) fn scale(
    of: &Estimate,
    range: Option<(f64, f64)>,
    truth: Option<f64>,
    w: &mut ProseWriter<'_>,
) {
    let theme = w.theme;
    let (from, to) = (number(of.from), number(of.to));
    let ends = text::width(&from) + text::width(&to) + 4;
    let room = w.columns.clamp(1, READING).saturating_sub(ends).max(4);
    let cell = |value: f64| ((of.share(value) * (room - 1) as f64).round() as usize).min(room - 1);
    let cells = range.map(|range| (cell(range.0), cell(range.1).max(cell(range.0))));
    let mark = truth.map(cell);
    let upright = theme.symbols.vertical;
    let mut spans = vec![Span::styled(format!("{from} {upright}"), theme.dim)];
    spans.extend((0..room).map(|at| match at {
        _ if mark == Some(at) => Span::styled(theme.symbols.points[1], theme.strong),
        _ if cells.is_some_and(|(low, high)| (low..=high).contains(&at)) => {
            Span::styled(theme.symbols.fills[1], theme.b)
        }
        _ => Span::styled(theme.symbols.rule, theme.border),
    }));
    spans.push(Span::styled(format!("{upright} {to}"), theme.dim));
    w.lines.push(Line::from(spans));
    let Some(range) = range else {
        let said = "No range yet: an arrow key or a figure places it. A narrow range that contains the figure earns more.";
        return w.dim(said);
    };
    let [low, high] = bounds_with_unit(of, range);
    let mut words = format!("between {low} and {high}");
    if let Some(truth) = truth {
        let inside = judged(of, range, truth);
        words += &format!(", measured {}: {inside}", with_unit(of, truth));
    }
    w.text(&words);
}
