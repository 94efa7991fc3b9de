//! The devices that were found, where the run is now, and what each can time.

use ratatui::layout::Rect;
use ratatui::text::Line;

use super::content::Content;
use crate::app::App;
use crate::app::devices::GpuWarmUp;
use crate::app::guide::gpu_warm_up;
use crate::tui::prose::ProseWriter;
use crate::tui::surface::chooses;
use crate::tui::text;
use crate::tui::theme::Theme;

/// The devices, and below them what is known about them.
pub(super) fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let columns = usize::from(area.width);
    let mut list = Content::titled("devices", Vec::new());
    list.aside = chooses("moves the run", app);
    let (asked, using) = (&app.devices.asked, &app.devices.using);
    let said = format!("requested: {asked}, computing on: {using}");
    list.between([Line::styled(said, theme.dim), Line::default()]);
    for (at, info) in app.devices.known.iter().enumerate() {
        let here = theme.symbols.pointer_at(info.select == *using);
        let clock = match info.timestamps {
            true => "device clock",
            false => "host clock only",
        };
        let room = columns.saturating_sub(2 + 12 + 12 + 17);
        let (select, name) = (text::name(&info.select, 12), &info.device.name);
        let name = text::name(name, room);
        let backend = text::left(&format!("  {}", info.backend), 12);
        let line = text::left(&format!("{here} {select}{name}{backend}{clock}"), columns);
        let selected = at == app.view.selected;
        let style = theme.among(selected, theme.text);
        list.entry(at, Line::styled(line, style));
    }
    let mut w = ProseWriter::new(app, theme, columns);
    if !app.devices.probed {
        w.line("the engine is looking for devices", theme.dim);
    }
    w.blank();
    for info in app.devices.known.iter().filter(|it| !it.note.is_empty()) {
        let marker = format!("{}: ", info.select);
        w.item(&marker, theme.dim, &info.note);
    }
    if let GpuWarmUp::Failed { reason } = &app.devices.gpu_warm_up {
        w.item("gpu: ", theme.bad, reason);
    } else if let Some(light) = gpu_warm_up(app) {
        w.sentence(&light, theme.text);
    }
    let said = "Figures of different devices are never compared.";
    w.line(said, theme.dim);
    list.between(w.lines);
    list.mark(app.view.selected);
    list
}
