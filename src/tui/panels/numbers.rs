//! The smallest screens have no panels. They show the most important numbers, as many as there are rows:
//!
//! ```text
//! running 60 B fixed
//! loss ✓ 5.52 of ln V 6.91
//! 44.35 samples/s 180.4 ms
//! trained ✓ 100 % of parameters
//! ```

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::exercise;
use super::status::unsaved;
use crate::app::guide::{FigureState, RunFigure, confirmation, next_move, vitals};
use crate::app::{App, RunState};
use crate::tui::prose::ProseWriter;
use crate::tui::theme::Theme;
use protocol::units::{ms, number};

/// Returns the lines for a screen of this area.
pub fn lines(app: &App, theme: &Theme, area: Rect) -> Vec<Line<'static>> {
    let run = app.shown_run().shown();
    let mut writer = ProseWriter::new(app, theme, area.width);
    writer.lines.extend(unsaved(app, theme, area.width));
    if let Some(confirm) = app.view.confirm {
        writer.sentence(&confirmation(confirm, app), theme.warning);
    }
    if let Some(open) = app.exercise() {
        writer.lines.push(exercise::headline(app, open, theme));
    }
    let state = app.shown_run().state.into_str();
    match &app.shown_run().state {
        RunState::EngineGone { reason } | RunState::Failed { reason, .. } => {
            writer.line(format!("{state} {reason}"), theme.bad);
        }
        _ => {
            let mut line = state.to_owned();
            if let Some(step) = app.shown_run().step() {
                line += &format!(" {step}");
            }
            let name = app.shown_run().slot_name(app.shown_run().active);
            writer.line(format!("{line} {name}"), theme.text);
        }
    }
    let mut vitals = vitals(app).into_iter().map(|vital| figure(&vital, theme));
    writer.lines.extend(vitals.next());
    if let Some(throughput) = &run.throughput {
        let step = format!("{} ms", ms(throughput.step_ms.median));
        writer.lines.push(Line::from(vec![
            Span::styled(number(throughput.samples_per_s), theme.strong),
            Span::styled(" samples/s ", theme.dim),
            Span::styled(step, theme.text),
        ]));
    }
    writer.lines.extend(vitals);
    for lint in &run.lints {
        let line = format!("{} {}", theme.symbols.warning, lint.name);
        writer.line(line, theme.bad);
    }
    if let (None, Some(stage)) = (app.exercise(), app.stage()) {
        let line = format!("stage {} {}", stage.number, stage.title);
        writer.line(line, theme.text);
    }
    writer.line("enlarge to 60x16 to see the panels", theme.dim);
    if app.view.confirm.is_none() && area.height > 8 {
        writer.sentence(&next_move(app), theme.text);
    }
    writer.lines
}

fn figure(vital: &RunFigure, theme: &Theme) -> Line<'static> {
    let (mark, style) = match vital.mark {
        FigureState::Open => (" ", theme.text),
        mark => theme.mark(mark == FigureState::Good),
    };
    Line::from(vec![
        Span::styled(format!("{} ", vital.label), theme.dim),
        Span::styled(format!("{mark} {}", vital.value), style),
    ])
}
