//! The instructor's board on the terminal: who is where, votes and races, and the keys that open them; and how to join, for the
//! projector.

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
const LOOK: Duration = Duration::from_millis(250);
/// The time for which a message stays.
const NOTICE: Duration = Duration::from_secs(8);

/// The board on the screen.
struct BoardSession<'a> {
    room: &'a mut dyn RoomControl,
    board: Board,
    view: BoardView,
    began: Instant,
    /// The time of the last message.
    told: Instant,
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
        told: Instant::now(),
    };
    run::show(
        &mut session,
        LOOK,
        SessionEnd::Signal,
        |session, frame| {
            let BoardSession { room, view, .. } = session;
            if session.told.elapsed() > NOTICE {
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
            let asked = action(key, view.typing.is_some())?;
            if asked == BoardAction::Quit && view.unconfirmed == Some(Confirmation::Quit) {
                return Some(SessionEnd::Quit);
            }
            if let Some(said) = act(asked, &mut **room, &session.board, view) {
                view.notice = Some(said);
                session.told = Instant::now();
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
    let wide = usize::from(area.width);
    if view.screen != BoardScreen::Wall || view.typing.is_some() {
        let keys = take_bottom(&mut rest, 1);
        put(frame, keys, foot(view, wide, theme));
    }
    match view.screen {
        BoardScreen::Board => draw_board(frame, rest, board, view, theme),
        BoardScreen::Join => join::draw(frame, rest, board, view, theme),
        BoardScreen::Wall => wall::draw(frame, rest, board, view, theme),
        BoardScreen::Own => put(frame, rest, own_lines(view, wide, theme)),
    }
    theme.symbols.finish(frame.buffer_mut());
}

/// Returns the instructor's own addresses.
fn own_lines(view: &BoardView, wide: usize, theme: &Theme) -> Vec<Line<'static>> {
    if !view.serves() {
        let said = " A room in a folder has no page of its own: see --page";
        return vec![Line::raw(said)];
    }
    let mut lines = Vec::new();
    for own in &view.own_addresses {
        let own = [Span::styled(own, theme.text)];
        lines.extend(text::wrap(&own, wide, " ", "   "));
    }
    lines
}

fn draw_board(frame: &mut Frame<'_>, area: Rect, board: &Board, view: &BoardView, theme: &Theme) {
    let mut rest = area;
    let wide = usize::from(rest.width);
    let top = head(board, view, wide, theme);
    let rows = height(top.len());
    put(frame, take_top(&mut rest, rows), top);
    let messages = messages(board, view, wide, theme);
    let rows = height(messages.len()).min(rest.height / 3);
    put(frame, take_bottom(&mut rest, rows), messages);
    // The table keeps a few rows beside a vote or a race.
    if let Some(vote) = &board.vote {
        let mut lines = results::vote_lines(vote, wide, theme);
        if board.race.is_some() && !vote.open {
            lines.truncate(1);
        }
        let rows = height(lines.len()).min(rest.height.saturating_sub(4));
        put(frame, take_top(&mut rest, rows), lines);
    }
    if let Some(race) = &board.race {
        let mut lines = results::race_lines(race, wide, theme);
        let rows = height(lines.len()).min(rest.height / 2);
        let left_out = lines.len().saturating_sub(usize::from(rows));
        if left_out > 0 && rows > 1 {
            lines.truncate(usize::from(rows) - 1);
            let more = format!("      and {} more", left_out + 1);
            lines.push(Line::styled(more, theme.dim));
        }
        put(frame, take_top(&mut rest, rows), lines);
    }
    people::draw(frame, rest, board, view, theme);
}

/// Returns the counts, how to join, and the stages.
fn head(board: &Board, view: &BoardView, wide: usize, theme: &Theme) -> Vec<Line<'static>> {
    let stuck = board.rows.iter().filter(|row| row.stuck).count();
    let mut spans = vec![
        Span::styled(" perflings room ", theme.title_focused),
        Span::styled(format!(" {} here", board.here), theme.strong),
    ];
    for (count, what, style) in [
        (board.not_started, "not started", theme.text),
        (stuck, "long in one stage", theme.warning),
        (board.raised, "raised a hand", theme.warning),
    ] {
        if count > 0 {
            spans.push(Span::styled(format!(" · {count} {what}"), style));
        }
    }
    for (is_so, said) in [
        (board.closed, " closed "),
        (board.locked, " locked "),
        (board.names_required, " names "),
    ] {
        if is_so {
            spans.push(Span::styled(said, theme.badge));
        }
    }
    if !view.selected.is_empty() {
        let said = format!(" {} selected ", view.selected.len());
        spans.push(Span::styled(said, theme.badge));
    }
    let mut lines = text::wrap(&spans, wide, "", " ");
    if let Some(place) = view.places.get(view.place) {
        let said = format!("perflings --room {place} --name NICKNAME");
        lines.extend(text::wrap(
            &[Span::styled(said, theme.text)],
            wide,
            " ",
            "   ",
        ));
    }
    lines.extend(stage_lines(board, view, wide, theme));
    lines
}

/// Returns a line with every stage, how many are in it and have passed it, and a line about the marked one.
fn stage_lines(board: &Board, view: &BoardView, wide: usize, theme: &Theme) -> Vec<Line<'static>> {
    let Some(marked) = board.stages.get(view.marked) else {
        return Vec::new();
    };
    // Each stage in three forms, the widest first.
    let mut stages = Vec::new();
    for (at, stage) in board.stages.iter().enumerate() {
        let style = theme.among(at == view.marked, theme.text);
        let (number, here, passed) = (stage.number, stage.here, stage.passed);
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
    let form = (0..2).find(|form| width_of(*form) < wide).unwrap_or(2);
    let heading = ["", " here/passed", " here"][form];
    let mut spans = Vec::new();
    if width_of(form) + text::width(heading) < wide {
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
        Line::styled(text::cut(&about, wide), theme.dim),
    ]
}

/// Returns the last message, and the warnings that were not dismissed.
fn messages(board: &Board, view: &BoardView, wide: usize, theme: &Theme) -> Vec<Line<'static>> {
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
        let message = [Span::styled(message, theme.warning)];
        lines.extend(text::wrap(&message, wide, " ", "   "));
    }
    lines
}

/// Returns the last row: the line that is typed, or the keys.
fn foot(view: &BoardView, wide: usize, theme: &Theme) -> Line<'static> {
    if let Some((purpose, line)) = &view.typing {
        let said = typed_line(*purpose, line, wide);
        return Line::styled(text::cut(&said, wide), theme.strong);
    }
    let mut keys = footer();
    let shown = match view.screen {
        BoardScreen::Board => "",
        BoardScreen::Join => "join",
        BoardScreen::Own => "my page",
        BoardScreen::Wall => "wall",
    };
    for (_, label) in &mut keys {
        // The key of the screen that is shown goes back to the board.
        if *label == shown {
            *label = "board";
        }
    }
    let line =
        |keys: &[(String, &'static str)], gap| line_of_keys(keys.iter().cloned(), gap, theme);
    let with_wide_gaps = line(&keys, "  ");
    if with_wide_gaps.width() <= wide + 2 {
        return with_wide_gaps;
    }
    // The last one says how to quit; those before it go first.
    while line(&keys, " ").width() > wide + 1 && keys.len() > 1 {
        keys.remove(keys.len() - 2);
    }
    line(&keys, " ")
}

/// Returns what to type, and the end of what is typed.
fn typed_line(purpose: Typing, line: &str, wide: usize) -> String {
    let asked = match purpose {
        Typing::Race => {
            "race: a mystery's seed and level, or an exercise, such as 7 2, k04 or k04 15 min"
        }
        Typing::Question => "ask, such as \"Who has seen this?\" yes no",
        Typing::Names => "select everybody whose name contains these letters; empty: nobody",
    };
    let asked = text::cut(asked, wide.saturating_sub(text::width(line) + 4));
    let room = wide.saturating_sub(text::width(&asked) + 4);
    let hidden = text::width(line).saturating_sub(room);
    let end: String = line.chars().skip(hidden).collect();
    format!(" {asked}: {end}_")
}

/// Returns a rule with a title.
fn rule(title: &str, wide: usize, theme: &Theme) -> Line<'static> {
    let rule = text::rule(theme.symbols.rule, title, wide);
    Line::styled(text::cut(&rule, wide), theme.border)
}
