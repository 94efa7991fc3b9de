//! The instructor's board on the terminal. It shows where the participants are, the votes and the races, and the keys that open them. It
//! also has screens for a projector: how to join, and the wall.

mod act;
mod join;
mod people;
mod results;
mod wall;

pub use act::{BoardScreen, BoardView, Confirmation, RoomControl, WallPart, act};

use std::time::{Duration, Instant};

use anyhow::Result;
use crossterm::event::Event;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Block;

use super::keys::board::{BoardAction, action, footer};
use super::panels::footer::line_of_keys;
use super::run::{self, SessionEnd};
use super::surface::{height, put, take_bottom, take_top};
use super::text;
use super::theme::Theme;
use crate::class::board::Board;
use act::{Typing, warnings};

/// The time between two updates from the room.
const UPDATE_INTERVAL: Duration = Duration::from_millis(250);
/// The time for which a message stays.
const NOTICE_TIME: Duration = Duration::from_secs(8);

/// The board on the screen, from its start to its end.
struct BoardSession<'a> {
    room: &'a mut dyn RoomControl,
    board: Board,
    view: BoardView,
    began: Instant,
    /// The time at which the last message appeared.
    notice_began: Instant,
}

/// Shows the board until the instructor quits.
///
/// # Errors
/// If the terminal fails.
pub fn show(room: &mut dyn RoomControl, theme: &Theme, view: BoardView) -> Result<SessionEnd> {
    let mut session = BoardSession {
        board: room.board(),
        room,
        view,
        began: Instant::now(),
        notice_began: Instant::now(),
    };
    run::show(
        &mut session,
        UPDATE_INTERVAL,
        SessionEnd::Signal,
        |session, frame| {
            let BoardSession { room, view, .. } = session;
            if session.notice_began.elapsed() > NOTICE_TIME {
                view.notice = None;
            }
            session.board = room.board();
            view.reached = room.reached();
            view.open_s = session.began.elapsed().as_secs();
            draw(frame, &session.board, view, theme);
            None
        },
        |session, event| {
            let Event::Key(key) = event else { return None };
            let BoardSession { room, view, .. } = session;
            let action = action(key, view.typing.is_some())?;
            if action == BoardAction::Quit && view.unconfirmed == Some(Confirmation::Quit) {
                return Some(SessionEnd::Quit);
            }
            if let Some(message) = act(action, &mut **room, &session.board, view) {
                view.notice = Some(message);
                session.notice_began = Instant::now();
            }
            None
        },
    )
}

/// Draws one frame.
pub fn draw(frame: &mut Frame<'_>, board: &Board, view: &BoardView, theme: &Theme) {
    let area = frame.area();
    frame.render_widget(Block::new().style(theme.text), area);
    let mut rest = area;
    let columns = usize::from(area.width);
    if view.screen != BoardScreen::Wall || view.typing.is_some() {
        let keys = take_bottom(&mut rest, 1);
        put(frame, keys, foot(view, columns, theme));
    }
    match view.screen {
        BoardScreen::Board => draw_board(frame, rest, board, view, theme),
        BoardScreen::Join => join::draw(frame, rest, board, view, theme),
        BoardScreen::Wall => wall::draw(frame, rest, board, view, theme),
        BoardScreen::Own => put(frame, rest, own_lines(view, columns, theme)),
    }
    theme.symbols.finish(frame.buffer_mut());
}

/// Returns the lines with the instructor's own addresses.
fn own_lines(view: &BoardView, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    if !view.serves() {
        let advice = " A room in a folder has no page of its own: see --page";
        return vec![Line::raw(advice)];
    }
    let mut lines = Vec::new();
    for address in &view.own_addresses {
        let span = Span::styled(address, theme.text);
        lines.extend(text::wrap(&[span], columns, " ", "   "));
    }
    lines
}

fn draw_board(frame: &mut Frame<'_>, area: Rect, board: &Board, view: &BoardView, theme: &Theme) {
    let mut rest = area;
    let columns = usize::from(rest.width);
    let head = head(board, view, columns, theme);
    put(frame, take_top(&mut rest, height(head.len())), head);
    let messages = messages(board, view, columns, theme);
    let message_rows = height(messages.len()).min(rest.height / 3);
    put(frame, take_bottom(&mut rest, message_rows), messages);
    // A vote and a race leave a few rows to the table of participants.
    if let Some(vote) = &board.vote {
        let mut lines = results::vote_lines(vote, columns, theme);
        if board.race.is_some() && !vote.open {
            lines.truncate(1);
        }
        let vote_rows = height(lines.len()).min(rest.height.saturating_sub(4));
        put(frame, take_top(&mut rest, vote_rows), lines);
    }
    if let Some(race) = &board.race {
        let mut lines = results::race_lines(race, columns, theme);
        let race_rows = height(lines.len()).min(rest.height / 2);
        let left_out = lines.len().saturating_sub(usize::from(race_rows));
        if left_out > 0 && race_rows > 1 {
            lines.truncate(usize::from(race_rows) - 1);
            let more = format!("      and {} more", left_out + 1);
            lines.push(Line::styled(more, theme.dim));
        }
        put(frame, take_top(&mut rest, race_rows), lines);
    }
    people::draw(frame, rest, board, view, theme);
}

/// Returns the lines at the top: the counts of participants, the command that joins, and the stages.
fn head(board: &Board, view: &BoardView, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let stuck = board.rows.iter().filter(|row| row.stuck).count();
    let mut spans = vec![
        Span::styled(" perflings room ", theme.title_focused),
        Span::styled(format!(" {} here", board.here), theme.strong),
    ];
    for (count, state, style) in [
        (board.not_started, "not started", theme.text),
        (stuck, "long in one stage", theme.warning),
        (board.raised, "raised a hand", theme.warning),
    ] {
        if count > 0 {
            spans.push(Span::styled(format!(" · {count} {state}"), style));
        }
    }
    for (is_shown, badge) in [
        (board.closed, " closed "),
        (board.locked, " locked "),
        (board.names_required, " names "),
    ] {
        if is_shown {
            spans.push(Span::styled(badge, theme.badge));
        }
    }
    if !view.selected.is_empty() {
        let badge = format!(" {} selected ", view.selected.len());
        spans.push(Span::styled(badge, theme.badge));
    }
    let mut lines = text::wrap(&spans, columns, "", " ");
    if let Some(place) = view.places.get(view.place) {
        let command = format!("perflings --room {place} --name NICKNAME");
        let span = Span::styled(command, theme.text);
        lines.extend(text::wrap(&[span], columns, " ", "   "));
    }
    lines.extend(stage_lines(board, view, columns, theme));
    lines
}

/// Returns two lines: all stages, each with the number of participants who are in it and who have passed it; and the marked stage with its
/// title.
fn stage_lines(board: &Board, view: &BoardView, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    let Some(marked) = board.stages.get(view.marked) else {
        return Vec::new();
    };
    // Each stage in three forms, the widest first.
    let mut stages = Vec::new();
    for (index, stage) in board.stages.iter().enumerate() {
        let style = theme.among(index == view.marked, theme.text);
        let number = stage.number;
        let here = stage.here;
        let passed = stage.passed;
        let forms = [
            format!(" {number}: {here} here, {passed} passed "),
            format!(" {number}: {here}/{passed} "),
            format!(" {number}:{here} "),
        ];
        stages.push((forms, style));
    }
    let width_of = |form: usize| -> usize {
        let widths = stages.iter().map(|(forms, _)| text::width(&forms[form]));
        widths.sum()
    };
    let form = (0..2).find(|form| width_of(*form) < width).unwrap_or(2);
    let heading = ["", " here/passed", " here"][form];
    let mut spans = Vec::new();
    if width_of(form) + text::width(heading) < width {
        spans.push(Span::styled(heading, theme.dim));
    }
    for (forms, style) in &stages {
        spans.push(Span::styled(forms[form].clone(), *style));
    }
    let mut about = format!(" stage {} {}", marked.number, marked.title);
    if form > 0 {
        about += &format!(": {} here, {} passed", marked.here, marked.passed);
    }
    if let Some(offer) = &board.offer {
        about += &format!("; everybody is invited to {offer}");
    }
    vec![
        Line::from(spans),
        Line::styled(text::cut(&about, width), theme.dim),
    ]
}

/// Returns the last message and the first two warnings that were not dismissed.
fn messages(board: &Board, view: &BoardView, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut warnings = warnings(board);
    warnings.retain(|warning| !view.dismissed.contains(warning));
    let more = match warnings.len() {
        0..=2 => String::new(),
        count => format!("; {} more", count - 2),
    };
    let mark = theme.symbols.warning;
    let mut messages: Vec<String> = view.notice.iter().cloned().collect();
    for warning in warnings.iter().take(2) {
        messages.push(format!("{mark} {warning}{more}"));
    }
    let mut lines = Vec::new();
    for message in messages {
        let span = Span::styled(message, theme.warning);
        lines.extend(text::wrap(&[span], columns, " ", "   "));
    }
    lines
}

/// Returns the bottom row: the line that is being typed, or the keys.
fn foot(view: &BoardView, columns: usize, theme: &Theme) -> Line<'static> {
    if let Some((purpose, line)) = &view.typing {
        let typed = typed_line(*purpose, line, columns);
        return Line::styled(text::cut(&typed, columns), theme.strong);
    }
    let mut keys = footer(view.screen);
    let line =
        |keys: &[(String, &'static str)], gap| line_of_keys(keys.iter().cloned(), gap, theme);
    let with_wide_gaps = line(&keys, "  ");
    // The gap after the last label may be cut.
    if with_wide_gaps.width() <= columns + 2 {
        return with_wide_gaps;
    }
    // The last key is the one that quits; it always stays.
    while line(&keys, " ").width() > columns + 1 && keys.len() > 1 {
        keys.remove(keys.len() - 2);
    }
    line(&keys, " ")
}

/// Returns an instruction for the line that is being typed, and the end of this line.
fn typed_line(purpose: Typing, line: &str, columns: usize) -> String {
    let instruction = match purpose {
        Typing::Race => {
            "race: a mystery's seed and level, or an exercise, such as 7 2, k04 or k04 15 min"
        }
        Typing::Question => "ask, such as \"Who has seen this?\" yes no",
        Typing::Names => "select everybody whose name contains these letters; empty: nobody",
    };
    let shown = text::cut(instruction, columns.saturating_sub(text::width(line) + 4));
    let columns_left = columns.saturating_sub(text::width(&shown) + 4);
    let hidden = text::width(line).saturating_sub(columns_left);
    let end: String = line.chars().skip(hidden).collect();
    format!(" {shown}: {end}_")
}

/// Returns a rule with a title.
fn rule(title: &str, columns: usize, theme: &Theme) -> Line<'static> {
    let rule = text::rule(theme.symbols.rule, title, columns);
    Line::styled(text::cut(&rule, columns), theme.border)
}
