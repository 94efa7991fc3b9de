//! Which panel goes where at which size. Pure arithmetic over the size and the state: the drawing and the mouse use
//! the same answer.

use ratatui::layout::Rect;

use super::panels::{CARDS, PANELS, PanelPosition, PanelRow};
use super::panels::{lesson, status};
use super::prose::FRAME;
use super::surface::{centred, height, take_bottom, take_left, take_top};
use super::text;
use super::theme::Theme;
use crate::app::busy;
use crate::app::{App, Overlay, ScreenSize, View};
use crate::course::TextBlock;
use crate::panel::Panel;

/// Where everything is in one frame. An empty rectangle: not shown.
#[derive(Clone, Debug, Default)]
pub struct Arrangement {
    pub room: Option<ScreenSize>,
    /// Why progress is not saved.
    pub unsaved: Rect,
    pub header: Rect,
    pub vitals: Rect,
    /// The notice that other programs keep the machine busy.
    pub busy: Rect,
    /// Between the top lines and the bottom lines.
    pub body: Rect,
    pub panels: Vec<(Panel, Rect)>,
    pub guide: Rect,
    pub status: Rect,
    pub footer: Rect,
    /// The card over the panels.
    pub overlay: Option<(Overlay, Rect)>,
}

impl Arrangement {
    /// The panel under a cell, and where it is.
    pub fn panel_at(&self, x: u16, y: u16) -> Option<(Panel, Rect)> {
        let mut panels = self.panels.iter().copied();
        panels.rfind(|(_, area)| area.contains((x, y).into()))
    }
}

/// Arranges a frame.
pub fn arrange(area: Rect, app: &App) -> Arrangement {
    let room = View {
        size: (area.width, area.height),
        theme: app.view.theme,
        ..View::default()
    }
    .screen_size();
    let mut it = Arrangement {
        room: Some(room),
        ..Arrangement::default()
    };
    if room == ScreenSize::Numbers {
        return it;
    }
    let theme = &Theme::plain(app.view.markers);
    let mut rest = area;
    if app.beat().is_some() {
        // One thing fills the screen; below it stand the beat's sentence and one line with its place in the course.
        it.footer = take_bottom(&mut rest, 1);
        let said = status::rows(app, theme, area.width);
        let most = (rest.height / 2).max(2);
        it.guide = take_bottom(&mut rest, said.clamp(2, most));
        it.body = rest;
        it.overlay = overlay_of(app, rest);
        let panel = app
            .view
            .focus
            .filter(|_| app.view.expanded && !app.knobs_open());
        it.panels = vec![(panel.unwrap_or(Panel::Lesson), rest)];
        return it;
    }
    let unsaved = height(status::unsaved(app, theme, area.width).len());
    it.unsaved = take_top(&mut rest, unsaved.min(3));
    it.header = take_top(&mut rest, u16::from(area.height >= 20));
    it.vitals = take_top(&mut rest, 1);
    it.busy = take_top(&mut rest, u16::from(busy::wordings(app).is_some()));
    it.footer = take_bottom(&mut rest, 1);
    it.status = take_bottom(&mut rest, 1);
    // Three lines for a pointer of the evidence, so that panels seldom move.
    let least = match app.lesson.study.pointer.is_some() {
        true => 3,
        false => 1,
    };
    let guide = match rest.height {
        0..12 => 1,
        height => status::rows(app, theme, area.width).clamp(least, height - BODY),
    };
    it.guide = take_bottom(&mut rest, guide);
    it.body = rest;
    it.overlay = overlay_of(app, rest);
    it.panels = match (app.view.focus, room) {
        (Some(panel), _) if app.view.expanded => vec![(panel, rest)],
        (_, ScreenSize::Compact) if app.view.lesson_open || app.knobs_open() => {
            vec![(Panel::Lesson, rest)]
        }
        (_, ScreenSize::Compact) => strips(rest),
        (_, ScreenSize::Split) => split(rest, app),
        _ => full(rest, app),
    };
    it
}

/// Rows that the panels keep beside the guide.
const BODY: u16 = 9;

/// Three strips: the loss, the throughput in large numerals, the longest operations.
fn strips(mut rest: Rect) -> Vec<(Panel, Rect)> {
    let throughput = if rest.height >= 16 { 5 } else { 3 };
    // A long sentence below takes rows of the operations first: the loss keeps its curve.
    let kernels = match rest.height {
        0..=9 => 2,
        10 => 3,
        11..=12 => 4,
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
    let drawing = drawing(app).min(rest.width.saturating_sub(LEAST));
    let columns = (rest.width * 2 / 5).min(80).max(drawing);
    let mut lesson = take_left(&mut rest, columns);
    let half = lesson.height / 2;
    let spare = spare(&mut lesson, half, app);
    let rows = rest.height * 2 / 5;
    let loss = take_top(&mut rest, rows);
    let pairs = app.shown_bench().pairing() || app.shown_pair().is_some();
    let throughput = take_top(&mut rest, if pairs { 10 } else { 7 });
    let mut others = others(app);
    let mut panels = vec![
        (Panel::Lesson, lesson),
        (Panel::Loss, loss),
        (Panel::Throughput, throughput),
    ];
    panels.extend(others.next().map(|panel| (panel, rest)));
    panels.extend(others.next().zip(spare));
    panels
}

/// Takes so many rows off the lesson's column where its text leaves them empty. A mystery counts which panels were looked at:
/// there none comes by itself.
fn spare(lesson: &mut Rect, rows: u16, app: &App) -> Option<Rect> {
    let columns = usize::from(lesson.width).saturating_sub(FRAME);
    let text = lesson::rows(app, &Theme::plain(app.view.markers), columns)
        .filter(|_| app.mode.mystery().is_none())?;
    let fits = text + BORDERS <= usize::from(lesson.height.saturating_sub(rows));
    fits.then(|| take_bottom(lesson, rows))
}

/// Rows of a panel's borders.
const BORDERS: usize = 2;

/// Columns that the panels beside the lesson keep.
const LEAST: u16 = 40;

/// Columns that the widest drawing of the lesson's page takes.
fn drawing(app: &App) -> u16 {
    let Some(stage) = app.stage().filter(|_| !app.mode.is_exercise()) else {
        return 0;
    };
    let blocks =
        lesson::sections(app.reading().page().0, stage).flat_map(|section| &section.blocks);
    let widths = blocks.map(|block| match block {
        TextBlock::Code { text: code, .. } => code.lines().map(text::width).max().unwrap_or(0),
        _ => 0,
    });
    match widths.max() {
        Some(wide) if wide > 0 => height(wide + FRAME),
        _ => 0,
    }
}

/// Panels beside the lesson, the loss and the throughput, the most wanted first: the focused one, those that the stage's
/// evidence names once they may be told, then the others.
fn others(app: &App) -> impl Iterator<Item = Panel> {
    let always = [Panel::Lesson, Panel::Loss, Panel::Throughput];
    // Before the learner has said where the fault shows, the order says nothing about it.
    let told = app.stage().filter(|stage| app.reading().points_out(stage));
    let pointers = told.into_iter().flat_map(|stage| &stage.evidence);
    let pointed = pointers.map(|pointer| pointer.panel);
    let rest = [Panel::Kernels, Panel::Ledger, Panel::Evidence];
    let all = app.view.third.into_iter().chain(pointed).chain(rest);
    let mut wanted: Vec<Panel> = Vec::new();
    for panel in all.filter(|panel| !always.contains(panel)) {
        if !wanted.contains(&panel) {
            wanted.push(panel);
        }
    }
    wanted.into_iter()
}

/// Every panel where its row says: the lesson, the curves of the run, what it is made of.
fn full(mut rest: Rect, app: &App) -> Vec<(Panel, Rect)> {
    let columns = (rest.width * 36 / 100).clamp(56, 80);
    let mut lesson = take_left(&mut rest, columns);
    let columns = rest.width / 2;
    let mut middle = take_left(&mut rest, columns);
    let mut right = rest;
    // The lowest panels on the right go below a short text.
    let low = PANELS.iter().map(|row| match row.position {
        PanelPosition::Right(rows) => rows,
        _ => 0,
    });
    let mut low = spare(&mut lesson, low.sum(), app);
    let mut panels = vec![(Panel::Lesson, lesson)];
    let mut half = Rect::default();
    // From the bottom up.
    for row in PANELS.iter().rev() {
        let area = match row.position {
            PanelPosition::Middle(rows) if rows > 0 => take_bottom(&mut middle, rows),
            PanelPosition::Right(rows) if rows > 0 => {
                take_bottom(low.as_mut().unwrap_or(&mut right), rows)
            }
            PanelPosition::HalfRight(_) if !half.is_empty() => std::mem::take(&mut half),
            PanelPosition::HalfRight(rows) => {
                let mut rows = take_bottom(&mut right, rows);
                let columns = rows.width / 2;
                half = take_left(&mut rows, columns);
                rows
            }
            _ => continue,
        };
        panels.push((row.panel, area));
    }
    for row in &PANELS {
        let area = match row.position {
            PanelPosition::Middle(0) => middle,
            PanelPosition::Right(0) => right,
            _ => continue,
        };
        let asked = |it: &&PanelRow| app.view.third == Some(it.panel);
        let mut others = PANELS.iter().filter(asked);
        let instead = others.find(|it| it.position == PanelPosition::InsteadOf(row.panel));
        panels.push((instead.unwrap_or(row).panel, area));
    }
    panels
}

/// Columns and rows. Less than this beside a card would look like a part of it, so the card takes it as well.
const SLIVER: (u16, u16) = (6, 3);

fn overlay_of(app: &App, rest: Rect) -> Option<(Overlay, Rect)> {
    let overlay = app.view.overlay?;
    let card = CARDS.iter().find(|card| card.overlay == overlay)?;
    let wanted = card.size(app, rest, &Theme::plain(app.view.markers));
    let whole = |wanted: u16, room: u16, least: u16| match room.saturating_sub(wanted) {
        left if left < 2 * least => room,
        _ => wanted,
    };
    let columns = whole(wanted.0, rest.width, SLIVER.0);
    let rows = whole(wanted.1, rest.height, SLIVER.1);
    Some((overlay, centred(rest, columns, rows)))
}
