//! Which panel goes where at which size. Pure arithmetic over the size and the state: the drawing and the mouse use
//! the same answer.

use ratatui::layout::Rect;

use super::panels::{help, stages, welcome};
use super::theme::{Terminal, Theme};
use crate::app::{App, Overlay, Panel, Room, ThemeName, View};

/// Where everything is in one frame. An empty rectangle: not shown.
#[derive(Clone, Debug, Default)]
pub struct Arrangement {
    pub room: Option<Room>,
    pub header: Rect,
    pub vitals: Rect,
    /// Between the top lines and the bottom lines.
    pub body: Rect,
    pub panels: Vec<(Panel, Rect)>,
    pub guide: Rect,
    pub status: Rect,
    pub footer: Rect,
    /// What lies on top.
    pub overlay: Option<(Overlay, Rect)>,
}

impl Arrangement {
    /// The panel under a cell.
    pub fn panel_at(&self, x: u16, y: u16) -> Option<Panel> {
        let hit = |area: &Rect| area.contains((x, y).into());
        self.panels
            .iter()
            .rev()
            .find(|(_, area)| hit(area))
            .map(|(panel, _)| *panel)
    }
}

/// Arranges a frame.
pub fn arrange(area: Rect, app: &App) -> Arrangement {
    let room = room_of(area, app);
    let mut it = Arrangement {
        room: Some(room),
        ..Arrangement::default()
    };
    if room == Room::Numbers {
        return it;
    }
    let mut rest = area;
    it.header = take_top(&mut rest, u16::from(area.height >= 20));
    it.vitals = take_top(&mut rest, 1);
    it.footer = take_bottom(&mut rest, 1);
    it.status = take_bottom(&mut rest, 1);
    let guide = match app.mode.beat() {
        // What the room reads has up to three lines.
        Some(_) if rest.height >= 12 => 3,
        // So has what a pointer of the evidence says.
        None if app.study.pointer.is_some() && rest.height >= 12 => 3,
        _ => 1,
    };
    it.guide = take_bottom(&mut rest, guide);
    it.body = rest;
    it.overlay = app
        .view
        .overlay
        .map(|overlay| (overlay, overlay_area(overlay, rest, app)));
    it.panels = match (app.view.focus, room) {
        (Some(panel), _) if app.view.expanded => vec![(panel, rest)],
        (_, Room::Compact) if app.view.lesson_open => vec![(Panel::Lesson, rest)],
        (_, Room::Compact) => strips(rest),
        (_, Room::Split) => split(rest, app),
        _ => full(rest, app),
    };
    it
}

/// The class of a size, as the state sees it.
fn room_of(area: Rect, app: &App) -> Room {
    let view = View {
        size: (area.width, area.height),
        theme: app.view.theme,
        ..View::default()
    };
    view.room()
}

fn take_top(rest: &mut Rect, rows: u16) -> Rect {
    let rows = rows.min(rest.height);
    let taken = Rect {
        height: rows,
        ..*rest
    };
    rest.y += rows;
    rest.height -= rows;
    taken
}

fn take_bottom(rest: &mut Rect, rows: u16) -> Rect {
    let rows = rows.min(rest.height);
    rest.height -= rows;
    Rect {
        y: rest.y + rest.height,
        height: rows,
        ..*rest
    }
}

fn take_left(rest: &mut Rect, columns: u16) -> Rect {
    let columns = columns.min(rest.width);
    let taken = Rect {
        width: columns,
        ..*rest
    };
    rest.x += columns;
    rest.width -= columns;
    taken
}

/// Three strips: the loss, the throughput in large numerals, the longest operations.
fn strips(mut rest: Rect) -> Vec<(Panel, Rect)> {
    let throughput = if rest.height >= 16 { 5 } else { 3 };
    let kernels = match rest.height {
        0..=12 => 4,
        13..=20 => 5,
        tall => tall / 3,
    };
    let kernels = take_bottom(&mut rest, kernels);
    let throughput = take_bottom(&mut rest, throughput);
    vec![
        (Panel::Loss, rest),
        (Panel::Throughput, throughput),
        (Panel::Kernels, kernels),
    ]
}

/// The lesson left, three panels right: the loss, the throughput, and what the stage or the focus points at.
fn split(mut rest: Rect, app: &App) -> Vec<(Panel, Rect)> {
    let width = rest.width;
    let lesson = take_left(&mut rest, (width * 2 / 5).min(80));
    let mut right = rest;
    let loss = take_top(&mut right, rest.height * 2 / 5);
    let pairs = app.run.pairing || app.study.pair.is_some();
    let throughput = take_top(&mut right, if pairs { 10 } else { 7 });
    vec![
        (Panel::Lesson, lesson),
        (Panel::Loss, loss),
        (Panel::Throughput, throughput),
        (third_panel(app), right),
    ]
}

/// The focused panel, else the first that the stage's evidence names, else the kernels.
fn third_panel(app: &App) -> Panel {
    let shown = |panel: &Panel| !matches!(panel, Panel::Lesson | Panel::Loss | Panel::Throughput);
    let pointed = || {
        let stage = app.stage()?;
        stage
            .evidence
            .iter()
            .filter_map(|pointer| Panel::parse(&pointer.panel))
            .find(shown)
    };
    app.view
        .third
        .filter(shown)
        .or_else(pointed)
        .unwrap_or(Panel::Kernels)
}

/// Every panel: the lesson, the curves of the run, what it is made of.
fn full(mut rest: Rect, app: &App) -> Vec<(Panel, Rect)> {
    let width = rest.width;
    let lesson = take_left(&mut rest, (width * 36 / 100).clamp(56, 80));
    let width = rest.width;
    let mut middle = take_left(&mut rest, width / 2);
    let mut right = rest;
    let ledger = take_bottom(&mut middle, 11);
    let throughput = take_bottom(&mut middle, 9);
    let lints = take_bottom(&mut right, 8);
    let evidence = take_bottom(&mut right, 10);
    let mut pair = take_bottom(&mut right, 9);
    let width = pair.width;
    let gradients = take_left(&mut pair, width / 2);
    // The roofline is another view of the same rows, and takes their place while it was asked for last.
    let kernels = match app.view.third {
        Some(Panel::Roofline) => Panel::Roofline,
        _ => Panel::Kernels,
    };
    vec![
        (Panel::Lesson, lesson),
        (Panel::Loss, middle),
        (Panel::Throughput, throughput),
        (Panel::Ledger, ledger),
        (kernels, right),
        (Panel::Gradients, gradients),
        (Panel::Memory, pair),
        (Panel::Evidence, evidence),
        (Panel::Lints, lints),
    ]
}

/// Panels narrower or lower than this beside a card read as a part of it: the card then takes their place.
const SLIVER: (u16, u16) = (6, 3);

fn overlay_area(overlay: Overlay, rest: Rect, app: &App) -> Rect {
    let lines = |count: usize| u16::try_from(count).unwrap_or(u16::MAX);
    // The room that text takes is the same in every theme.
    let plain = || Theme::new(ThemeName::Mono, app.view.markers, Terminal::default());
    let (columns, rows) = match overlay {
        Overlay::Help => help::size(rest.width, &plain()),
        Overlay::Welcome => welcome::size(app, rest.width, &plain()),
        Overlay::Stages => (90, lines(stages::length(app)).saturating_add(2)),
        Overlay::Devices => (
            90,
            lines(app.devices.known.len())
                .saturating_mul(2)
                .saturating_add(9),
        ),
        Overlay::Log => (110, rest.height),
        Overlay::Problems => (
            110,
            lines(app.course.problems.len())
                .saturating_mul(3)
                .saturating_add(4),
        ),
        Overlay::Glossary => (84, rest.height),
        Overlay::Solution => (100, rest.height),
    };
    let whole = |wanted: u16, room: u16, least: u16| match room.saturating_sub(wanted) {
        left if left < 2 * least => room,
        _ => wanted,
    };
    centred(
        rest,
        whole(columns, rest.width, SLIVER.0),
        whole(rows, rest.height, SLIVER.1),
    )
}

/// A rectangle of at most this size in the middle.
pub fn centred(area: Rect, columns: u16, rows: u16) -> Rect {
    let (width, height) = (columns.min(area.width), rows.min(area.height));
    Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    }
}
