//! The mouse: a click marks a panel, a second one expands it; in a list it takes the line; the wheel scrolls what is
//! under the pointer.

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Rect;

use super::layout::{Arrangement, arrange};
use super::panels::{devices, stages};
use crate::app::{Action, App, Overlay};

/// Lines per turn of the wheel.
const WHEEL: i32 = 3;

/// What a mouse event asks for now.
pub fn action(event: MouseEvent, app: &App) -> Option<Action> {
    let (width, height) = app.view.size;
    let it = arrange(Rect::new(0, 0, width, height), app);
    match event.kind {
        MouseEventKind::ScrollDown => Some(wheel(&it, event, WHEEL)),
        MouseEventKind::ScrollUp => Some(wheel(&it, event, -WHEEL)),
        MouseEventKind::Down(MouseButton::Left) => click(&it, event, app),
        _ => None,
    }
}

fn wheel(it: &Arrangement, event: MouseEvent, lines: i32) -> Action {
    match (it.overlay, it.panel_at(event.column, event.row)) {
        (Some((Overlay::Stages | Overlay::Devices, _)), _) => Action::Scroll(lines.signum()),
        (None, Some(panel)) => Action::ScrollPanel(panel, lines),
        _ => Action::Scroll(lines),
    }
}

fn click(it: &Arrangement, event: MouseEvent, app: &App) -> Option<Action> {
    if app.view.confirm.is_some() {
        return None;
    }
    let Some((overlay, area)) = it.overlay else {
        return it.panel_at(event.column, event.row).map(Action::Focus);
    };
    if overlay == Overlay::Welcome || !area.contains((event.column, event.row).into()) {
        return Some(Action::Close);
    }
    let entry_at = match overlay {
        Overlay::Stages => stages::entry_at,
        Overlay::Devices => devices::entry_at,
        _ => return None,
    };
    // The border is one line more.
    let line = (event.row - area.y).checked_sub(1)?;
    let entry = entry_at(line, area.height.saturating_sub(2), app);
    entry.map(Action::ChooseLine)
}
