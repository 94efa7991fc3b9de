//! The layout gives every panel, line and card of a frame its rectangle. It depends only on the size and the state, so the drawing and the
//! mouse both ask it.

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

/// The rectangles of a frame. An empty rectangle is not drawn.
#[derive(Clone, Debug, Default)]
pub struct Arrangement {
    pub screen_size: ScreenSize,
    /// The notice that says why progress is not saved.
    pub unsaved: Rect,
    pub header: Rect,
    pub vitals: Rect,
    /// The notice that other programs keep the machine busy.
    pub busy: Rect,
    /// The rows between the top lines and the bottom lines.
    pub body: Rect,
    pub panels: Vec<(Panel, Rect)>,
    pub guide: Rect,
    pub status: Rect,
    pub footer: Rect,
    /// The card over the panels.
    pub overlay: Option<(Overlay, Rect)>,
}

impl Arrangement {
    /// Returns the panel under a cell and its area, or `None` if no panel is there.
    pub fn panel_at(&self, x: u16, y: u16) -> Option<(Panel, Rect)> {
        let mut panels = self.panels.iter().copied();
        panels.rfind(|(_, area)| area.contains((x, y).into()))
    }
}

/// Arranges a frame.
pub fn arrange(area: Rect, app: &App) -> Arrangement {
    let screen_size = View {
        size: (area.width, area.height),
        theme: app.view.theme,
        ..View::default()
    }
    .screen_size();
    let mut arrangement = Arrangement {
        screen_size,
        ..Arrangement::default()
    };
    if screen_size == ScreenSize::Numbers {
        return arrangement;
    }
    let theme = &Theme::plain(app.view.markers);
    let mut rest = area;
    if app.beat().is_some() {
        // One panel fills the screen. Below it are the beat's sentence and one line with its place in the course.
        arrangement.footer = take_bottom(&mut rest, 1);
        let sentence_rows = status::rows(app, theme, area.width);
        let max_rows = (rest.height / 2).max(2);
        arrangement.guide = take_bottom(&mut rest, sentence_rows.clamp(2, max_rows));
        arrangement.body = rest;
        arrangement.overlay = place_overlay(app, rest);
        let panel = match app.view.focus {
            Some(panel) if app.view.expanded && !app.knobs_open() => panel,
            _ => Panel::Lesson,
        };
        arrangement.panels = vec![(panel, rest)];
        return arrangement;
    }
    let unsaved_rows = height(status::unsaved(app, theme, area.width).len());
    arrangement.unsaved = take_top(&mut rest, unsaved_rows.min(3));
    arrangement.header = take_top(&mut rest, u16::from(area.height >= 20));
    arrangement.vitals = take_top(&mut rest, 1);
    arrangement.busy = take_top(&mut rest, u16::from(busy::wordings(app).is_some()));
    arrangement.footer = take_bottom(&mut rest, 1);
    arrangement.status = take_bottom(&mut rest, 1);
    // A pointer of the evidence always has three rows, so that panels seldom move.
    let min_rows = if app.lesson.learner.pointer.is_some() {
        3
    } else {
        1
    };
    let guide_rows = match rest.height {
        0..12 => 1,
        height => status::rows(app, theme, area.width).clamp(min_rows, height - MIN_PANEL_ROWS),
    };
    arrangement.guide = take_bottom(&mut rest, guide_rows);
    arrangement.body = rest;
    arrangement.overlay = place_overlay(app, rest);
    arrangement.panels = match (app.view.focus, screen_size) {
        (Some(panel), _) if app.view.expanded => vec![(panel, rest)],
        (_, ScreenSize::Compact) if app.view.lesson_open || app.knobs_open() => {
            vec![(Panel::Lesson, rest)]
        }
        (_, ScreenSize::Compact) => strips(rest),
        (_, ScreenSize::Split) => split(rest, app),
        _ => full(rest, app),
    };
    arrangement
}

/// The rows that the panels keep where the guide is long.
const MIN_PANEL_ROWS: u16 = 9;

/// Returns three strips: the loss, the throughput in large numerals, the longest operations.
fn strips(mut rest: Rect) -> Vec<(Panel, Rect)> {
    let throughput_rows = if rest.height >= 16 { 5 } else { 3 };
    // A long sentence of the guide takes rows from the operations first, so that the loss keeps its curve.
    let kernel_rows = match rest.height {
        0..=9 => 2,
        10 => 3,
        11..=12 => 4,
        13..=20 => 5,
        tall => tall / 3,
    };
    let kernels = take_bottom(&mut rest, kernel_rows);
    let throughput = take_bottom(&mut rest, throughput_rows);
    vec![
        (Panel::Loss, rest),
        (Panel::Throughput, throughput),
        (Panel::Kernels, kernels),
    ]
}

/// Puts the lesson on the left and three panels on the right: the loss, the throughput, and the panel that the stage or the focus names.
fn split(mut rest: Rect, app: &App) -> Vec<(Panel, Rect)> {
    let drawing = drawing_columns(app).min(rest.width.saturating_sub(MIN_PANEL_COLUMNS));
    let columns = (rest.width * 2 / 5).min(80).max(drawing);
    let mut lesson = take_left(&mut rest, columns);
    let half = lesson.height / 2;
    let below_text = take_spare_rows(&mut lesson, half, app);
    let loss_rows = rest.height * 2 / 5;
    let loss = take_top(&mut rest, loss_rows);
    let pairs = app.shown_bench().pairing() || app.shown_pair().is_some();
    let throughput = take_top(&mut rest, if pairs { 10 } else { 7 });
    let mut others = others(app);
    let mut panels = vec![
        (Panel::Lesson, lesson),
        (Panel::Loss, loss),
        (Panel::Throughput, throughput),
    ];
    panels.extend(others.next().map(|panel| (panel, rest)));
    panels.extend(others.next().zip(below_text));
    panels
}

/// Takes `rows` rows off the bottom of the lesson's column for other panels. Returns `None` where the text needs these rows. In a mystery it
/// also returns `None`: each panel on the screen costs points there, so no panel may appear by itself.
fn take_spare_rows(lesson: &mut Rect, rows: u16, app: &App) -> Option<Rect> {
    if app.mode.mystery().is_some() {
        return None;
    }
    let columns = usize::from(lesson.width).saturating_sub(FRAME);
    let text_rows = lesson::rows(app, &Theme::plain(app.view.markers), columns)?;
    let fits = text_rows + BORDERS <= usize::from(lesson.height.saturating_sub(rows));
    fits.then(|| take_bottom(lesson, rows))
}

/// The rows that a panel's borders take.
const BORDERS: usize = 2;

/// The columns that the panels beside the lesson keep where a drawing is wide.
const MIN_PANEL_COLUMNS: u16 = 40;

/// Returns the columns that the widest drawing on the lesson's page takes, with the panel's frame; 0 where the page has no drawing.
fn drawing_columns(app: &App) -> u16 {
    if app.mode.is_exercise() {
        return 0;
    }
    let Some(stage) = app.stage() else { return 0 };
    lesson::sections(app.reading().page().0, stage)
        .flat_map(|section| &section.blocks)
        .filter_map(|block| match block {
            TextBlock::Code { text: code, .. } => code.lines().map(text::width).max(),
            _ => None,
        })
        .max()
        .map_or(0, |widest| height(widest + FRAME))
}

/// Returns the panels that may be beside the lesson, the loss and the throughput, the most wanted first: the focused panel, then those that
/// the stage's evidence names once the learner may know them, then the others.
fn others(app: &App) -> impl Iterator<Item = Panel> {
    let always = [Panel::Lesson, Panel::Loss, Panel::Throughput];
    // Until the learner has chosen the panel that shows the fault, the order of the panels must not give it away.
    let stage = app.stage().filter(|stage| app.reading().points_out(stage));
    let evidence = stage.map_or(&[][..], |stage| &stage.evidence);
    let pointed_out = evidence.iter().map(|pointer| pointer.panel);
    let rest = [Panel::Kernels, Panel::Ledger, Panel::Evidence];
    let focused = app.view.third.into_iter();
    let mut wanted: Vec<Panel> = Vec::new();
    for panel in focused.chain(pointed_out).chain(rest) {
        if !always.contains(&panel) && !wanted.contains(&panel) {
            wanted.push(panel);
        }
    }
    wanted.into_iter()
}

/// Places every panel as its row of `PANELS` says: the lesson on the left, the curves of the run in the middle, its parts on the right.
fn full(mut rest: Rect, app: &App) -> Vec<(Panel, Rect)> {
    let lesson_columns = (rest.width * 36 / 100).clamp(56, 80);
    let mut lesson = take_left(&mut rest, lesson_columns);
    let middle_columns = rest.width / 2;
    let mut middle = take_left(&mut rest, middle_columns);
    let mut right = rest;
    // The lowest panels on the right go below a short text.
    let low_rows = PANELS
        .iter()
        .map(|row| match row.position {
            PanelPosition::Right(rows) => rows,
            _ => 0,
        })
        .sum();
    let mut below_text = take_spare_rows(&mut lesson, low_rows, app);
    let mut panels = vec![(Panel::Lesson, lesson)];
    // Two panels share a row of the right column. This is its half that is still free.
    let mut free_half = Rect::default();
    // Panels with a fixed height are placed from the bottom up.
    for row in PANELS.iter().rev() {
        let area = match row.position {
            PanelPosition::Middle(rows) if rows > 0 => take_bottom(&mut middle, rows),
            PanelPosition::Right(rows) if rows > 0 => {
                take_bottom(below_text.as_mut().unwrap_or(&mut right), rows)
            }
            PanelPosition::HalfRight(_) if !free_half.is_empty() => std::mem::take(&mut free_half),
            PanelPosition::HalfRight(rows) => {
                let mut pair = take_bottom(&mut right, rows);
                let columns = pair.width / 2;
                free_half = take_left(&mut pair, columns);
                pair
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
        let replaces = |other: &&PanelRow| {
            other.position == PanelPosition::InsteadOf(row.panel)
                && app.view.third == Some(other.panel)
        };
        let shown = PANELS.iter().find(replaces).unwrap_or(row);
        panels.push((shown.panel, area));
    }
    panels
}

/// The fewest columns and rows that stay free on each side of a card. A narrower strip would look like a part of the card, so the card covers
/// it.
const MIN_STRIP: (u16, u16) = (6, 3);

/// Returns the open card and its area in the middle of `rest`; `None` where no card is open.
fn place_overlay(app: &App, rest: Rect) -> Option<(Overlay, Rect)> {
    let overlay = app.view.overlay?;
    let card = CARDS.iter().find(|card| card.overlay == overlay)?;
    let wanted = card.size(app, rest, &Theme::plain(app.view.markers));
    let length = |wanted: u16, available: u16, min_strip: u16| {
        if available.saturating_sub(wanted) < 2 * min_strip {
            available
        } else {
            wanted
        }
    };
    let columns = length(wanted.0, rest.width, MIN_STRIP.0);
    let rows = length(wanted.1, rest.height, MIN_STRIP.1);
    Some((overlay, centred(rest, columns, rows)))
}
