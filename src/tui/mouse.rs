//! Turns clicks, the wheel and dragging into actions. A click marks a panel, a second click expands it; a click in a list takes the line; the
//! wheel scrolls the panel under the pointer. On the timeline a second click marks the slice under the pointer, the wheel zooms and dragging
//! pans.

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

/// Returns the action that a mouse event means in the present state, or `None` if it means nothing.
pub fn action(event: MouseEvent, app: &App) -> Option<Action> {
    let (width, height) = app.view.size;
    let arrangement = arrange(Rect::new(0, 0, width, height), app);
    if let Some(change) = on_timeline(&arrangement, event, app) {
        return Some(Action::Timeline(change));
    }
    match event.kind {
        MouseEventKind::ScrollDown => Some(wheel(&arrangement, event, WHEEL, app)),
        MouseEventKind::ScrollUp => Some(wheel(&arrangement, event, -WHEEL, app)),
        MouseEventKind::Down(MouseButton::Left) => click(&arrangement, event, app),
        _ => None,
    }
}

/// Returns the change of the timeline that a mouse event means; `None` if the timeline is not under the pointer.
fn on_timeline(arrangement: &Arrangement, event: MouseEvent, app: &App) -> Option<TimelineMove> {
    let uncovered = arrangement.overlay.is_none() && app.view.confirm.is_none();
    let (panel, area) = arrangement.panel_at(event.column, event.row)?;
    if !uncovered || panel != Panel::Timeline || app.reading().withholds("clocks") {
        return None;
    }
    let inner = inside(area);
    let cell = (
        event.column.checked_sub(inner.x)?,
        event.row.checked_sub(inner.y)?,
    );
    let size = (inner.width, inner.height);
    let under = timeline::at(&app.view.timeline_of(app.shown_run())?.view, cell, size)?;
    let focused = app.view.focus == Some(Panel::Timeline);
    let presses = matches!(
        event.kind,
        MouseEventKind::Down(_) | MouseEventKind::Drag(_)
    );
    if presses && !focused {
        return None;
    }
    timeline_move(event.kind, under)
}

/// Returns the change of a timeline that a mouse event means. The pointer is on the row `row` at the time `time`, and a column of cells has
/// the duration `column`, both in ns.
pub fn timeline_move(
    kind: MouseEventKind,
    (row, time, column): (usize, i64, u64),
) -> Option<TimelineMove> {
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

fn wheel(arrangement: &Arrangement, event: MouseEvent, lines: i32, app: &App) -> Action {
    match (
        arrangement.overlay,
        arrangement.panel_at(event.column, event.row),
    ) {
        (Some((Overlay::Stages | Overlay::Devices, _)), _) => Action::Scroll(lines.signum()),
        (None, Some((Panel::Lesson, _))) if app.knobs_open() => Action::KnobRow(lines.signum()),
        (None, Some((panel, _))) => Action::ScrollPanel(panel, lines),
        _ => Action::Scroll(lines),
    }
}

fn click(arrangement: &Arrangement, event: MouseEvent, app: &App) -> Option<Action> {
    if app.view.confirm.is_some() {
        return None;
    }
    let Some((overlay, area)) = arrangement.overlay else {
        let (panel, area) = arrangement.panel_at(event.column, event.row)?;
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
