//! The devices that were found, where the run is now, and what each can time.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{card, chooses, sentence, show};
use crate::app::App;
use crate::app::devices::FirstLight;
use crate::app::guide::first_light;
use crate::tui::text;
use crate::tui::theme::Theme;

/// Lines above the first device.
pub const HEAD: u16 = 2;

pub fn render(frame: &mut Frame<'_>, area: Rect, app: &App, theme: &Theme) -> u16 {
    let inner = card(
        frame,
        area,
        "devices",
        &chooses("moves the run", app),
        theme.border_focused,
        theme,
    );
    let columns = usize::from(inner.width);
    let asked = format!(
        "asked for: {}, computing on: {}",
        app.devices.asked, app.devices.using
    );
    let mut lines = vec![Line::styled(asked, theme.dim), Line::default()];
    for (at, info) in app.devices.known.iter().enumerate() {
        let here = if info.select == app.devices.using {
            theme.symbols.pointer
        } else {
            " "
        };
        let style = if at == app.view.selected {
            theme.selected
        } else {
            theme.text
        };
        let clock = if info.timestamps {
            "device clock"
        } else {
            "host clock only"
        };
        let room = columns.saturating_sub(2 + 12 + 12 + 17);
        let cells = format!(
            "{here} {}{}{}{clock}",
            text::left(&info.select, 12),
            text::left(&info.device.name, room),
            text::left(&format!("  {}", info.backend), 12)
        );
        lines.push(Line::styled(text::left(&cells, columns), style));
    }
    if !app.devices.probed {
        lines.push(Line::styled("the engine is looking for devices", theme.dim));
    }
    lines.push(Line::default());
    for info in app
        .devices
        .known
        .iter()
        .filter(|info| !info.note.is_empty())
    {
        let marker = format!("{}: ", info.select);
        lines.extend(text::wrap_item(
            &marker, theme.dim, &info.note, columns, theme.text,
        ));
    }
    if let FirstLight::Failed { reason } = &app.devices.first_light {
        lines.extend(text::wrap_item(
            "gpu: ", theme.bad, reason, columns, theme.text,
        ));
    } else if let Some(light) = first_light(app) {
        lines.push(sentence(&light, app, theme, theme.text));
    }
    lines.push(Line::from(Span::styled(
        "Figures of two devices are never compared.",
        theme.dim,
    )));
    let end = app.view.selected as u16 + HEAD + 2;
    show(frame, inner, lines, end.saturating_sub(inner.height), theme)
}
