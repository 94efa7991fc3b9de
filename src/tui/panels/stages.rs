//! The course at a glance: how far each stage has come, which predictions came true, and the score over all of them.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{card, chooses, show};
use crate::app::App;
use crate::course::Stage;
use crate::course::progress::{Prediction, State};
use crate::tui::text;
use crate::tui::theme::Theme;

/// Lines above the first stage.
pub const HEAD: u16 = 2;

pub fn render(frame: &mut Frame<'_>, area: Rect, app: &App, theme: &Theme) -> u16 {
    let inner = card(
        frame,
        area,
        "stages",
        &chooses("goes there", app),
        theme.border_focused,
        theme,
    );
    let columns = usize::from(inner.width);
    let mut lines = vec![
        Line::styled(app.course.title.clone(), theme.heading),
        Line::default(),
    ];
    lines.extend(
        app.course
            .stages
            .iter()
            .enumerate()
            .map(|(at, stage)| row(app, at, stage, columns, theme)),
    );
    lines.push(Line::default());
    let score = app.study.progress.calibration();
    let said = match score.answered {
        0 => "no prediction made yet".to_owned(),
        made => format!("{} of {made} predictions came true", score.right),
    };
    lines.push(Line::from(vec![
        Span::styled("calibration: ", theme.dim),
        Span::styled(said, theme.strong),
    ]));
    if score.ranges > 0 {
        let held = format!(
            "{} of {} ranges held the measured figure",
            score.held, score.ranges
        );
        lines.push(Line::styled(held, theme.text));
    }
    // The selected line stays in view.
    let end = app.view.selected as u16 + HEAD + 2;
    show(frame, inner, lines, end.saturating_sub(inner.height), theme)
}

fn row(app: &App, at: usize, stage: &Stage, columns: usize, theme: &Theme) -> Line<'static> {
    let known = app.study.of(stage);
    let (mark, style) = match known.state {
        State::Passed => (theme.symbols.good, theme.good),
        State::New => (" ", theme.dim),
        _ => (theme.symbols.ghost, theme.text),
    };
    let predicted = match known.prediction {
        Some(Prediction::Choice { right: true, .. }) => "predicted rightly",
        Some(Prediction::Choice { right: false, .. }) => "predicted wrongly",
        Some(Prediction::Skipped) => "prediction skipped",
        None => "",
    };
    let here = if at == app.study.at {
        theme.symbols.pointer
    } else {
        " "
    };
    let room = columns.saturating_sub(6 + 13 + 10 + 19);
    let cells = format!(
        "{here} {mark} {} {}  {}  {}",
        stage.number,
        text::left(&stage.title, room),
        text::left(stage.level.name(), 12),
        text::left(known.state.name(), 9)
    );
    let selected = at == app.view.selected;
    let style = if selected { theme.selected } else { style };
    Line::from(vec![
        Span::styled(cells, style),
        Span::styled(
            format!(" {predicted}"),
            if selected { style } else { theme.dim },
        ),
    ])
}
