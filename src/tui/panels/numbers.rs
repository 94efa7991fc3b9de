//! The smallest screens: numbers only, the most important first, as many as there are rows.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::{ms, sentence};
use crate::app::guide::{Mark, Vital, confirmation, next_move, number, vitals};
use crate::app::{App, RunState};
use crate::tui::theme::Theme;

pub fn render(frame: &mut Frame<'_>, area: Rect, app: &App, theme: &Theme) {
    let run = app.run.shown();
    let mut lines = Vec::new();
    match &app.run.state {
        RunState::EngineGone { reason } | RunState::Failed { reason, .. } => {
            lines.push(Line::styled(
                format!("{} {}", app.run.state.words(), reason),
                theme.bad,
            ));
        }
        state => {
            let step = app
                .step()
                .map_or_else(String::new, |step| format!(" {step}"));
            lines.push(Line::styled(
                format!("{}{step} {}", state.words(), app.slot_name(app.run.active)),
                theme.text,
            ));
        }
    }
    let all = vitals(app);
    lines.extend(all.iter().take(1).map(|one| vital(one, theme)));
    if let Some(it) = &run.throughput {
        lines.push(Line::from(vec![
            Span::styled(number(it.samples_per_s), theme.strong),
            Span::styled(" samples/s ", theme.dim),
            Span::styled(format!("{} ms", ms(it.step_ms.median)), theme.text),
        ]));
    }
    lines.extend(all.iter().skip(1).map(|one| vital(one, theme)));
    lines.extend(run.lints.iter().map(|lint| {
        Line::styled(
            format!("{} {}", theme.symbols.warning, lint.name),
            theme.bad,
        )
    }));
    if let Some(exercise) = app.exercise() {
        lines.insert(0, super::exercise::headline(app, exercise, theme));
    } else if let Some(stage) = app.stage() {
        lines.push(Line::styled(
            format!("stage {} {}", stage.number, stage.title),
            theme.text,
        ));
    }
    lines.push(Line::styled(
        "enlarge to 60x16 to see the panels",
        theme.dim,
    ));
    if let Some(confirm) = app.view.confirm {
        lines.insert(
            0,
            sentence(&confirmation(confirm, app), app, theme, theme.warning),
        );
    } else if area.height > 8 {
        lines.push(sentence(&next_move(app), app, theme, theme.text));
    }
    frame.render_widget(Paragraph::new(lines), area);
}

fn vital(one: &Vital, theme: &Theme) -> Line<'static> {
    let (mark, style) = match one.mark {
        Mark::Good => (theme.symbols.good, theme.good),
        Mark::Bad => (theme.symbols.bad, theme.bad),
        Mark::Open => (" ", theme.text),
    };
    Line::from(vec![
        Span::styled(format!("{} ", one.label), theme.dim),
        Span::styled(format!("{mark} {}", one.value), style),
    ])
}
