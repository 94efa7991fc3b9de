//! The mouse: a click marks a panel, a second one expands it; in a list it takes the line; the wheel scrolls what is
//! under the pointer. On the timeline a second click marks what is there, the wheel zooms and dragging pans.

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Rect;

use super::layout::{Arrangement, arrange};
use super::panels::{self, knobs, timeline};
use super::surface::inside;
use crate::app::timeline::TimelineMove;
use crate::app::{Action, App, Overlay};
use crate::panel::Panel;

/// Lines per turn of the wheel.
const WHEEL: i32 = 3;

/// What a mouse event asks for now.
pub fn action(event: MouseEvent, app: &App) -> Option<Action> {
    let (width, height) = app.view.size;
    let it = arrange(Rect::new(0, 0, width, height), app);
    if let Some(found) = on_timeline(&it, event, app) {
        return Some(Action::Timeline(found));
    }
    match event.kind {
        MouseEventKind::ScrollDown => Some(wheel(&it, event, WHEEL, app)),
        MouseEventKind::ScrollUp => Some(wheel(&it, event, -WHEEL, app)),
        MouseEventKind::Down(MouseButton::Left) => click(&it, event, app),
        _ => None,
    }
}

/// What it asks of the timeline, where that is under the pointer.
fn on_timeline(it: &Arrangement, event: MouseEvent, app: &App) -> Option<TimelineMove> {
    let uncovered = it.overlay.is_none() && app.view.confirm.is_none();
    let (panel, area) = it.panel_at(event.column, event.row)?;
    if !uncovered || panel != Panel::Timeline || app.reading().withholds("clocks") {
        return None;
    }
    let inner = inside(area);
    let cell = (
        event.column.checked_sub(inner.x)?,
        event.row.checked_sub(inner.y)?,
    );
    let size = (inner.width, inner.height);
    let under = timeline::at(&app.view.timeline_of(app.shown_run())?.0, cell, size)?;
    let focused = app.view.focus == Some(Panel::Timeline);
    let presses = |kind| matches!(kind, MouseEventKind::Down(_) | MouseEventKind::Drag(_));
    timeline_move(event.kind, under).filter(|_| focused || !presses(event.kind))
}

/// What the mouse does to a timeline, `under` it a row, a time and how long a column lasts.
pub fn timeline_move(kind: MouseEventKind, under: (usize, i64, u64)) -> Option<TimelineMove> {
    let (row, time, column) = under;
    Some(match kind {
        MouseEventKind::ScrollUp => TimelineMove::ZoomAt(time, 1),
        MouseEventKind::ScrollDown => TimelineMove::ZoomAt(time, -1),
        MouseEventKind::ScrollLeft => TimelineMove::Pan(-1),
        MouseEventKind::ScrollRight => TimelineMove::Pan(1),
        MouseEventKind::Down(MouseButton::Left) => TimelineMove::Pick(row, time, column),
        MouseEventKind::Drag(MouseButton::Left) => TimelineMove::Drag(time),
        _ => return None,
    })
}

fn wheel(it: &Arrangement, event: MouseEvent, lines: i32, app: &App) -> Action {
    match (it.overlay, it.panel_at(event.column, event.row)) {
        (Some((Overlay::Stages | Overlay::Devices, _)), _) => Action::Scroll(lines.signum()),
        (None, Some((Panel::Lesson, _))) if app.knobs_open() => Action::KnobRow(lines.signum()),
        (None, Some((panel, _))) => Action::ScrollPanel(panel, lines),
        _ => Action::Scroll(lines),
    }
}

fn click(it: &Arrangement, event: MouseEvent, app: &App) -> Option<Action> {
    if app.view.confirm.is_some() {
        return None;
    }
    let Some((overlay, area)) = it.overlay else {
        let (panel, area) = it.panel_at(event.column, event.row)?;
        if panel == Panel::Lesson && app.knobs_open() {
            return knobs::row_at(event.row, area, app).map(Action::KnobAt);
        }
        return Some(Action::Focus(panel));
    };
    if overlay == Overlay::Welcome || !area.contains((event.column, event.row).into()) {
        return Some(Action::Close);
    }
    let entry = panels::entry_at(overlay, event.row, area, app);
    entry.map(Action::ChooseLine)
}
