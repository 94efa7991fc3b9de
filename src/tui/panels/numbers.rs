//! The smallest screens: numbers only, the most important first, as many as there are rows.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::exercise;
use super::status::unsaved;
use crate::app::guide::{FigureState, RunFigure, confirmation, next_move, vitals};
use crate::app::{App, RunState};
use crate::tui::prose::ProseWriter;
use crate::tui::theme::Theme;
use protocol::units::{ms, number};

pub fn lines(app: &App, theme: &Theme, area: Rect) -> Vec<Line<'static>> {
    let run = app.shown_run().shown();
    let mut w = ProseWriter::new(app, theme, area.width);
    w.lines.extend(unsaved(app, theme, area.width));
    if let Some(confirm) = app.view.confirm {
        w.sentence(&confirmation(confirm, app), theme.warning);
    }
    if let Some(open) = app.exercise() {
        w.lines.push(exercise::headline(app, open, theme));
    }
    let state = app.shown_run().state.into_str();
    match &app.shown_run().state {
        RunState::EngineGone { reason } | RunState::Failed { reason, .. } => {
            w.line(format!("{state} {reason}"), theme.bad);
        }
        _ => {
            let step = app.shown_run().step();
            let step = step.map_or_else(String::new, |step| format!(" {step}"));
            let name = app.shown_run().slot_name(app.shown_run().active);
            w.line(format!("{state}{step} {name}"), theme.text);
        }
    }
    let mut vitals = vitals(app).into_iter().map(|it| vital(&it, theme));
    w.lines.extend(vitals.next());
    if let Some(it) = &run.throughput {
        let step = format!("{} ms", ms(it.step_ms.median));
        w.lines.push(Line::from(vec![
            Span::styled(number(it.samples_per_s), theme.strong),
            Span::styled(" samples/s ", theme.dim),
            Span::styled(step, theme.text),
        ]));
    }
    w.lines.extend(vitals);
    for lint in &run.lints {
        let line = format!("{} {}", theme.symbols.warning, lint.name);
        w.line(line, theme.bad);
    }
    if let (None, Some(stage)) = (app.exercise(), app.stage()) {
        let line = format!("stage {} {}", stage.number, stage.title);
        w.line(line, theme.text);
    }
    w.line("enlarge to 60x16 to see the panels", theme.dim);
    if app.view.confirm.is_none() && area.height > 8 {
        w.sentence(&next_move(app), theme.text);
    }
    w.lines
}

fn vital(one: &RunFigure, theme: &Theme) -> Line<'static> {
    let (mark, style) = match one.mark {
        FigureState::Open => (" ", theme.text),
        mark => theme.mark(mark == FigureState::Good),
    };
    Line::from(vec![
        Span::styled(format!("{} ", one.label), theme.dim),
        Span::styled(format!("{mark} {}", one.value), style),
    ])
}
