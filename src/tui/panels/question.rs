//! What is asked at the foot of the lesson: a question with its choices, or a figure to guess as a range on a scale.

use ratatui::text::{Line, Span};

use crate::app::estimate::share;
use crate::app::figures::letter;
use crate::app::guide::number;
use crate::app::{Action, App};
use crate::course::placeholder::Lookup;
use crate::course::{Estimate, Question};
use crate::tui::theme::Theme;
use crate::tui::{keys, prose, text};

/// What is asked, as lines; none when nothing is.
pub fn lines(
    app: &App,
    columns: usize,
    figures: Option<&dyn Lookup>,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let Some(stage) = app.stage() else {
        return Vec::new();
    };
    if app.mode.beat().is_some() {
        // The room is asked anew, whatever was answered before.
        let mut out = vec![rule("predict", columns, theme)];
        out.extend(choices(&stage.prediction, app, columns, figures, theme));
        return out;
    }
    if let Some(of) = app.study.estimate(stage) {
        let mut out = vec![rule("how much", columns, theme)];
        out.extend(prose::item(
            "",
            theme.dim,
            &of.prompt,
            columns,
            theme.strong,
            figures,
        ));
        out.extend(scale(of, app.study.guess.values(of), None, columns, theme));
        return out;
    }
    match app.study.question(stage) {
        Some((quiz, question)) if !question.choices.is_empty() => {
            let title = if quiz.is_some() {
                "question"
            } else {
                "predict"
            };
            let mut out = vec![rule(title, columns, theme)];
            out.extend(choices(question, app, columns, figures, theme));
            out
        }
        _ => Vec::new(),
    }
}

pub fn rule(title: &str, columns: usize, theme: &Theme) -> Line<'static> {
    let rest = theme
        .symbols
        .rule
        .repeat(columns.saturating_sub(title.len() + 4));
    Line::styled(
        format!("{0}{0} {title} {rest}", theme.symbols.rule),
        theme.border_focused,
    )
}

pub fn choices(
    question: &Question,
    app: &App,
    columns: usize,
    figures: Option<&dyn Lookup>,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let mut out = prose::item(
        "",
        theme.dim,
        &question.prompt,
        columns,
        theme.strong,
        figures,
    );
    for (at, choice) in question.choices.iter().enumerate() {
        let key = keys::label(Action::Answer(at), app);
        let key = if key.is_empty() { letter(at) } else { key };
        out.extend(prose::item(
            &format!(" {key}  "),
            theme.key,
            choice,
            columns,
            theme.text,
            figures,
        ));
    }
    out
}

/// A range on its scale, with the truth on it once it is known.
pub fn scale(
    of: &Estimate,
    range: (f64, f64),
    truth: Option<f64>,
    columns: usize,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let unit = text::cut(&of.unit, 12);
    let with_unit = |value: f64| match unit.as_str() {
        "x" => format!("{}x", number(value)),
        "" => number(value),
        unit => format!("{} {unit}", number(value)),
    };
    let (from, to) = (number(of.from), number(of.to));
    let room = columns
        .clamp(1, prose::READING)
        .saturating_sub(text::width(&from) + text::width(&to) + 4)
        .max(4);
    let cell = |value: f64| ((share(of, value) * (room - 1) as f64).round() as usize).min(room - 1);
    let (low, high) = (cell(range.0), cell(range.1).max(cell(range.0)));
    let mark = truth.map(cell);
    let mut spans = vec![Span::styled(
        format!("{from} {}", theme.symbols.vertical),
        theme.dim,
    )];
    for at in 0..room {
        spans.push(match at {
            _ if mark == Some(at) => Span::styled(theme.symbols.points[1], theme.strong),
            _ if (low..=high).contains(&at) => Span::styled(theme.symbols.fills[1], theme.b),
            _ => Span::styled(theme.symbols.rule, theme.border),
        });
    }
    spans.push(Span::styled(
        format!("{} {to}", theme.symbols.vertical),
        theme.dim,
    ));
    let mut words = vec![format!(
        "between {} and {}",
        with_unit(range.0),
        with_unit(range.1)
    )];
    if let Some(truth) = truth {
        let held = (range.0..=range.1).contains(&truth);
        words.push(format!(
            "measured {}: {}",
            with_unit(truth),
            if held { "inside" } else { "outside" }
        ));
    }
    let mut lines = vec![Line::from(spans)];
    lines.extend(text::wrap_plain(
        &words.join(", "),
        columns.max(1),
        theme.text,
    ));
    lines
}
