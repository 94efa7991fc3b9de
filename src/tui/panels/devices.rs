//! The card with the list of the devices that were found. A pointer marks the device of the run.
//!
//! ```text
//! requested: auto, computing on: cpu
//!
//! ▸ cpu         EPYC 9654, 2 threads        flex      host clock only
//!   gpu         NVIDIA H100                 vulkan    device clock
//!
//! Figures of different devices are never compared.
//! ```

use ratatui::layout::Rect;
use ratatui::text::Line;

use super::content::Content;
use crate::app::App;
use crate::app::devices::GpuWarmUp;
use crate::app::guide::gpu_warm_up;
use crate::tui::prose::ProseWriter;
use crate::tui::surface::choose_hint;
use crate::tui::text;
use crate::tui::theme::Theme;

/// Returns the list of devices, with notes about them below.
pub(super) fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let columns = usize::from(area.width);
    let mut list = Content::titled("devices", Vec::new());
    list.aside = choose_hint("moves the run", app);
    let using = &app.devices.using;
    let head = format!("requested: {}, computing on: {using}", app.devices.asked);
    list.between([Line::styled(head, theme.dim), Line::default()]);
    for (index, info) in app.devices.known.iter().enumerate() {
        let pointer = theme.symbols.pointer_at(info.select == *using);
        let clock = if info.timestamps {
            "device clock"
        } else {
            "host clock only"
        };
        let name_width = columns.saturating_sub(2 + 12 + 12 + 17);
        let select = text::name(&info.select, 12);
        let name = text::name(&info.device.name, name_width);
        let backend = text::left(&format!("  {}", info.backend), 12);
        let line = format!("{pointer} {select}{name}{backend}{clock}");
        list.entry(index, Line::styled(line, theme.text));
    }
    let mut writer = ProseWriter::new(app, theme, columns);
    if !app.devices.probed {
        writer.line("the engine is looking for devices", theme.dim);
    }
    writer.blank();
    for info in &app.devices.known {
        if !info.note.is_empty() {
            let marker = format!("{}: ", info.select);
            writer.item(&marker, theme.dim, &info.note);
        }
    }
    if let GpuWarmUp::Failed { reason } = &app.devices.gpu_warm_up {
        writer.item("gpu: ", theme.bad, reason);
    } else if let Some(progress) = gpu_warm_up(app) {
        writer.sentence(&progress, theme.text);
    }
    let text = "Figures of different devices are never compared.";
    writer.line(text, theme.dim);
    list.between(writer.lines);
    list.mark(app.view.selected);
    list
}
