//! The devices that were found, where the run is now, and what each can time.

use crate::app::App;
use crate::app::devices::GpuWarmUp;
use crate::app::guide::gpu_warm_up;
use crate::tui::prose::sentence;
use crate::tui::surface::{Surface, chooses, height};
use crate::tui::text;

/// Columns and rows that the card wants.
pub fn size(app: &App) -> (u16, u16) {
    let devices = height(app.devices.known.len());
    (90, devices.saturating_mul(2).saturating_add(9))
}

/// Lines above the first device.
const HEAD: u16 = 2;

/// First line shown of a card with so many rows inside: the selected one stays in view.
fn scrolled(app: &App, rows: u16) -> u16 {
    (app.view.selected as u16 + HEAD + 2).saturating_sub(rows)
}

/// The device on a line inside the card, of which `rows` are shown.
pub fn entry_at(line: u16, rows: u16, app: &App) -> Option<usize> {
    let at = usize::from((line + scrolled(app, rows)).checked_sub(HEAD)?);
    (at < app.devices.known.len()).then_some(at)
}

pub fn draw(s: &mut Surface<'_, '_>) -> u16 {
    let (app, theme) = (s.app, s.theme);
    let aside = chooses("moves the run", app);
    s.card("devices", &aside, theme.border_focused);
    let mut w = s.writer();
    let (asked, using) = (&app.devices.asked, &app.devices.using);
    w.line(
        format!("requested: {asked}, computing on: {using}"),
        theme.dim,
    );
    w.blank();
    for (at, info) in app.devices.known.iter().enumerate() {
        let here = match info.select == *using {
            true => theme.symbols.pointer,
            false => " ",
        };
        let clock = match info.timestamps {
            true => "device clock",
            false => "host clock only",
        };
        let room = w.columns.saturating_sub(2 + 12 + 12 + 17);
        let (select, name) = (
            text::name(&info.select, 12),
            text::name(&info.device.name, room),
        );
        let backend = text::left(&format!("  {}", info.backend), 12);
        let line = text::left(&format!("{here} {select}{name}{backend}{clock}"), w.columns);
        let selected = at == app.view.selected;
        w.line(line, if selected { theme.selected } else { theme.text });
    }
    if !app.devices.probed {
        w.line("the engine is looking for devices", theme.dim);
    }
    w.blank();
    for info in app.devices.known.iter().filter(|it| !it.note.is_empty()) {
        w.item(
            &format!("{}: ", info.select),
            theme.dim,
            &info.note,
            theme.text,
        );
    }
    if let GpuWarmUp::Failed { reason } = &app.devices.gpu_warm_up {
        w.item("gpu: ", theme.bad, reason, theme.text);
    } else if let Some(light) = gpu_warm_up(app) {
        w.lines.push(sentence(&light, app, theme, theme.text));
    }
    w.line(
        "Figures of different devices are never compared.",
        theme.dim,
    );
    s.show(s.area, w.lines, scrolled(app, s.area.height))
}
