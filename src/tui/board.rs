//! The instructor's board on the terminal: who is where, votes and races, and the keys that open them.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use crossterm::event::Event;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph};

use super::input::Input;
use super::keys::board::{BoardAction, action, footer};
use super::keys::interrupts;
use super::run::{SessionEnd, Signals};
use super::surface::{height, take_bottom, take_top};
use super::symbols;
use super::table::{Column, cells, fit, heads, or_dash};
use super::terminal::Screen;
use super::text;
use super::theme::Theme;
use super::votes::bars;
use crate::course::progress::letter;
use crate::room::board::{Board, ParticipantRow, Presence, Race, VoteTally, duration, offer_of};
use crate::room::record::InstructorRequest;

/// Between two looks at the room.
const LOOK: Duration = Duration::from_millis(250);
/// How long a sentence stays.
const NOTICE: Duration = Duration::from_secs(8);

/// What the instructor looks at.
#[derive(Clone, Debug, Default)]
pub struct BoardView {
    /// How learners join, and where the page is.
    pub addresses: Vec<String>,
    /// The marked stage, as its place in the course.
    pub marked: usize,
    /// The chosen participant: none until the first press of a key.
    pub chosen: Option<String>,
    /// Asked whether the chosen one is to be removed.
    pub removing: bool,
    /// The race that is being named.
    pub naming: Option<String>,
    pub notice: Option<String>,
}

impl BoardView {
    /// The chosen participant's place.
    fn chosen(&self, board: &Board) -> Option<usize> {
        let chosen = self.chosen.as_ref()?;
        board.rows.iter().position(|row| row.id == *chosen)
    }
}

/// The room behind the board.
pub trait RoomControl {
    fn board(&mut self) -> Board;
    /// The course's id of the stage at a place.
    fn stage(&self, at: usize) -> Option<String>;
    /// The task that a line names, such as `7 2` or `k04`, or what to write instead.
    fn race(&self, named: &str) -> Result<String, String>;
    fn order(&mut self, order: InstructorRequest) -> Result<(), String>;
}

/// Shows the board until the instructor quits.
pub fn show(room: &mut dyn RoomControl, theme: &Theme, mut view: BoardView) -> Result<SessionEnd> {
    let signals = Signals::watch().context("Failed to watch for signals")?;
    let mut screen = Screen::take()?;
    let mut input = Input::default();
    let mut told = Instant::now();
    loop {
        if signals.ends() {
            return Ok(SessionEnd::Signal);
        }
        if told.elapsed() > NOTICE {
            view.notice = None;
        }
        let board = room.board();
        screen
            .draw(|frame| draw(frame, &board, &view, theme))
            .context("The terminal is gone")?;
        let mut wait = LOOK;
        let drawn = Instant::now();
        while drawn.elapsed() < 2 * LOOK
            && let Some(event) = input.next(wait).context("The terminal is gone")?
        {
            wait = Duration::ZERO;
            let Event::Key(key) = event else {
                continue;
            };
            if interrupts(key) {
                return Ok(SessionEnd::Signal);
            }
            match action(key, view.naming.is_some()) {
                Some(BoardAction::Quit) => return Ok(SessionEnd::Quit),
                Some(asked) => {
                    if let Some(said) = act(asked, room, &board, &mut view) {
                        (view.notice, told) = (Some(said), Instant::now());
                    }
                }
                None => {}
            }
        }
    }
}

/// Does what a key asked for; the result is a sentence for the board.
pub fn act(
    asked: BoardAction,
    room: &mut dyn RoomControl,
    board: &Board,
    view: &mut BoardView,
) -> Option<String> {
    let removing = std::mem::take(&mut view.removing);
    let order = match asked {
        BoardAction::Mark(by) => {
            let last = board.stages.len().saturating_sub(1);
            view.marked = view.marked.saturating_add_signed(by as isize).min(last);
            return None;
        }
        BoardAction::Choose(by) => {
            let last = board.rows.len().saturating_sub(1);
            let at = view
                .chosen(board)
                .map_or(0, |at| at.saturating_add_signed(by as isize));
            view.chosen = board.rows.get(at.min(last)).map(|row| row.id.clone());
            return None;
        }
        BoardAction::Remove => {
            let Some(row) = view.chosen(board).and_then(|at| board.rows.get(at)) else {
                return Some("Choose a participant with the arrows down and up first".to_owned());
            };
            if !removing {
                view.removing = true;
                return Some(format!(
                    "The same key again removes {} and keeps them out; another one does not",
                    row.name
                ));
            }
            InstructorRequest::Remove(row.id.clone())
        }
        BoardAction::LetIn => InstructorRequest::LetIn,
        BoardAction::Vote if board.vote.as_ref().is_some_and(|vote| vote.open) => {
            InstructorRequest::CloseVote
        }
        BoardAction::Vote => InstructorRequest::OpenVote(room.stage(view.marked)?),
        BoardAction::Offer => {
            let marked = board.stages.get(view.marked)?;
            let offered = board.offer == Some(offer_of(marked.number, &marked.title));
            let stage = room.stage(view.marked)?;
            InstructorRequest::Offer((!offered).then_some(stage))
        }
        BoardAction::Race if board.race.is_some() => InstructorRequest::Race(None),
        BoardAction::Race => {
            view.naming = Some(String::new());
            return None;
        }
        BoardAction::Close => InstructorRequest::Close(!board.closed),
        BoardAction::Type(letter) => {
            let name = view.naming.as_mut()?;
            if name.len() < 32 && !crate::clean::harmful(letter) {
                name.push(letter);
            }
            return None;
        }
        BoardAction::Erase => {
            view.naming.as_mut()?.pop();
            return None;
        }
        BoardAction::Take => match room.race(&view.naming.take()?) {
            Ok(task) => InstructorRequest::Race(Some(task)),
            Err(why) => return Some(why),
        },
        BoardAction::Drop => {
            view.naming = None;
            return None;
        }
        BoardAction::Quit => return None,
    };
    room.order(order).err()
}

/// Draws one frame.
pub fn draw(frame: &mut Frame<'_>, board: &Board, view: &BoardView, theme: &Theme) {
    let area = frame.area();
    frame.render_widget(Block::new().style(theme.text), area);
    let mut rest = area;
    let wide = usize::from(area.width);
    let keys = take_bottom(&mut rest, 1);
    put(frame, keys, vec![foot(view, wide, theme)]);
    let top = head(board, view, wide, theme);
    let rows = height(top.len());
    put(frame, take_top(&mut rest, rows), top);
    let below = said(board, view, wide, theme);
    let below_rows = height(below.len()).min(3);
    put(frame, take_bottom(&mut rest, below_rows), below);
    // The table keeps a few rows beside a vote or a race.
    if let Some(vote) = &board.vote {
        let lines = votes(vote, wide, theme);
        let rows = height(lines.len()).min(rest.height.saturating_sub(4));
        put(frame, take_top(&mut rest, rows), lines);
    }
    if let Some(race) = &board.race {
        let lines = ranks(race, wide, theme);
        let rows = height(lines.len()).min(rest.height / 2);
        put(frame, take_top(&mut rest, rows), lines);
    }
    people(frame, rest, board, view, theme);
    symbols::sanitize(frame.buffer_mut());
    if theme.symbols.ascii {
        symbols::fold_to_ascii(frame.buffer_mut());
    }
}

fn put(frame: &mut Frame<'_>, area: Rect, lines: Vec<Line<'static>>) {
    frame.render_widget(Paragraph::new(lines), area);
}

/// The counts, how to join, and the stages.
fn head(board: &Board, view: &BoardView, wide: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut spans = vec![
        Span::styled(" perflings room ", theme.title_focused),
        Span::styled(format!(" {} here", board.here), theme.strong),
    ];
    let mut more = |n: usize, what: &str, style: Style| {
        if n > 0 {
            spans.push(Span::styled(format!(" · {n} {what}"), style));
        }
    };
    more(board.not_started, "not started", theme.text);
    more(
        board.rows.iter().filter(|it| it.stuck).count(),
        "long in a stage",
        theme.warning,
    );
    more(board.raised, "raised a hand", theme.warning);
    if board.closed {
        spans.push(Span::styled(" closed ", theme.badge));
    }
    let mut lines = text::wrap(&spans, wide, "", " ");
    let address =
        |it: &String| text::wrap(&[Span::styled(it.clone(), theme.text)], wide, " ", "   ");
    lines.extend(view.addresses.iter().flat_map(address));
    lines.extend(stages(board, view, wide, theme));
    lines
}

/// Every stage with how many are in it and have passed it, the marked one with its title.
fn stages(board: &Board, view: &BoardView, wide: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut parts = Vec::new();
    for (at, stage) in board.stages.iter().enumerate() {
        let style = if at == view.marked {
            theme.selected
        } else {
            theme.text
        };
        let (number, here, passed) = (stage.number, stage.here, stage.passed);
        let forms = [
            format!(" {number}: {here} here, {passed} passed "),
            format!(" {number}: {here}/{passed} "),
            format!(" {number}:{here} "),
        ];
        parts.push(forms.map(|said| (said, style)));
    }
    let wide_of = |form: usize| {
        parts
            .iter()
            .map(|it| text::width(&it[form].0))
            .sum::<usize>()
    };
    let form = (0..2).find(|form| wide_of(*form) < wide).unwrap_or(2);
    let spans: Vec<Span<'static>> = parts
        .into_iter()
        .map(|mut it| std::mem::take(&mut it[form]))
        .map(|(said, style)| Span::styled(said, style))
        .collect();
    let Some(marked) = board.stages.get(view.marked) else {
        return Vec::new();
    };
    let mut of = format!(" stage {} {}", marked.number, marked.title);
    if form > 0 {
        of += &format!(": {} here, {} passed", marked.here, marked.passed);
    }
    if let Some(offer) = &board.offer {
        of += &format!("; everybody is invited to {offer}");
    }
    let mut lines = vec![Line::from(spans)];
    lines.push(Line::styled(text::cut(&of, wide), theme.dim));
    lines
}

/// The histogram of a vote, the second round beside the first.
fn votes(vote: &VoteTally, wide: usize, theme: &Theme) -> Vec<Line<'static>> {
    let state = if vote.open {
        "the vote is open"
    } else {
        "the votes"
    };
    let again = if vote.round > 1 { ", second round" } else { "" };
    let title = format!(
        "stage {}: {state}{again}, {} of {}",
        vote.stage, vote.voted, vote.of
    );
    let mut lines = vec![rule(&title, wide, theme)];
    let both = vote.rounds.len() > 1;
    let bar = (wide / if both { 6 } else { 3 }).clamp(6, 40);
    for (at, choice) in vote.choices.iter().enumerate() {
        let mut spans = vec![Span::styled(format!(" {}  ", letter(at)), theme.strong)];
        spans.extend(bars(vote, at, bar, theme));
        let left = wide.saturating_sub(text::width_of(&spans) + 1);
        spans.push(Span::styled(text::cut(choice, left), theme.text));
        lines.push(Line::from(spans));
    }
    if !vote.ranges.is_empty() {
        let held = |truth: f64| {
            vote.ranges
                .iter()
                .filter(|it| (it[0]..=it[1]).contains(&truth))
                .count()
        };
        let unit = if vote.unit.is_empty() {
            String::new()
        } else {
            format!(" {}", vote.unit)
        };
        let said = match vote.measured {
            Some(truth) => format!(
                " {} ranges were drawn; {} hold the measured {:.2}{unit}",
                vote.ranges.len(),
                held(truth),
                truth
            ),
            None => format!(
                " {} ranges were drawn; nothing is measured yet",
                vote.ranges.len()
            ),
        };
        lines.push(Line::styled(text::cut(&said, wide), theme.text));
    }
    lines
}

/// The race, the best of each kind of device first.
fn ranks(race: &Race, wide: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut lines = vec![rule(&format!("race: {}", race.task), wide, theme)];
    if race.ranks.is_empty() {
        lines.push(Line::styled(" nobody has measured it yet", theme.dim));
    }
    let (mut device, mut place) = ("", 0);
    for rank in &race.ranks {
        place = if device == rank.device { place + 1 } else { 1 };
        device = &rank.device;
        let figures = format!("{:.2}x [{:.2}, {:.2}]", rank.ratio, rank.low, rank.high);
        let line = format!(
            " {place:>3}  {}  {}  {device}",
            text::left(&rank.name, 24),
            text::left(&figures, 22)
        );
        let style = if place == 1 { theme.strong } else { theme.text };
        lines.push(Line::styled(text::cut(&line, wide), style));
    }
    lines
}

#[rustfmt::skip]
const COLUMNS: [Column; 7] = [
    Column { head: "at", wide: 12 },
    Column { head: "for", wide: 12 },
    Column { head: "passed", wide: 8 },
    Column { head: "checks", wide: 8 },
    Column { head: "hints", wide: 7 },
    Column { head: "best", wide: 8 },
    Column { head: "hand", wide: 8 },
];

fn people(frame: &mut Frame<'_>, mut rest: Rect, board: &Board, view: &BoardView, theme: &Theme) {
    let wide = usize::from(rest.width);
    put(
        frame,
        take_top(&mut rest, 1),
        vec![rule("participants", wide, theme)],
    );
    if board.rows.is_empty() {
        let line = Line::styled(" nobody has joined yet", theme.dim);
        return put(frame, rest, vec![line]);
    }
    let mut room = wide.saturating_sub(1 + 16);
    let widths = fit(&COLUMNS, &[0, 6, 1, 2, 5, 3, 4], &mut room);
    let name = 16 + room.min(12);
    let device = room.saturating_sub(12);
    let top = format!(
        " {}{}  {}",
        text::left("name", name),
        heads(&COLUMNS, &widths),
        text::cut("device", device.saturating_sub(2))
    );
    put(
        frame,
        take_top(&mut rest, 1),
        vec![Line::styled(top, theme.dim)],
    );
    // The chosen one is on the screen.
    let (chosen, high) = (view.chosen(board), usize::from(rest.height));
    let skipped = chosen.map_or(0, |at| (at + 1).saturating_sub(high));
    let shown = board.rows.iter().enumerate().skip(skipped).take(high);
    let lines = shown.map(|(at, row)| {
        let style = match row.presence {
            _ if chosen == Some(at) => theme.selected,
            Presence::Here => theme.text,
            _ => theme.dim,
        };
        let mut spans = vec![Span::styled(
            format!(" {}", text::left(&row.name, name)),
            style,
        )];
        spans.extend(cells(figures(row, style, theme), &widths));
        spans.push(Span::styled(
            format!("  {}", text::cut(&row.device, device.saturating_sub(2))),
            theme.dim,
        ));
        Line::from(spans)
    });
    put(frame, rest, lines.collect());
}

fn figures(row: &ParticipantRow, style: Style, theme: &Theme) -> [(String, Style); 7] {
    let at = match row.presence {
        Presence::Left => "left".to_owned(),
        Presence::Away => "away".to_owned(),
        Presence::Here if row.at.parse::<u32>().is_ok() => format!("stage {}", row.at),
        Presence::Here => row.at.clone(),
    };
    let long = if row.at.is_empty() {
        String::new()
    } else {
        duration(row.at_s)
    };
    [
        (at, style),
        (long, if row.stuck { theme.warning } else { style }),
        (row.passed.to_string(), style),
        (
            or_dash(row.checks, |[met, all]| format!("{met}/{all}")),
            style,
        ),
        (row.hints.to_string(), style),
        (or_dash(row.best, |it| format!("{it:.2}x")), style),
        (
            if row.raised { "raised" } else { "" }.to_owned(),
            theme.warning,
        ),
    ]
}

/// What could not be read, and the last sentence.
fn said(board: &Board, view: &BoardView, wide: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mark = theme.symbols.warning;
    let more = board.faults.len().saturating_sub(2);
    let faults = board.faults.iter().take(2).map(|it| {
        let more = if more > 0 {
            format!("; {more} more")
        } else {
            String::new()
        };
        Line::styled(
            text::cut(&format!(" {mark} {it}{more}"), wide),
            theme.warning,
        )
    });
    let notice = view
        .notice
        .iter()
        .map(|it| Line::styled(text::cut(&format!(" {it}"), wide), theme.warning));
    notice.chain(faults).collect()
}

fn foot(view: &BoardView, wide: usize, theme: &Theme) -> Line<'static> {
    if let Some(name) = &view.naming {
        let asked = format!(
            " race: a mystery's seed and level, or an exercise, such as 7 2 or k04: {name}_"
        );
        return Line::styled(text::cut(&asked, wide), theme.strong);
    }
    let keys = |gap: &str| {
        let mut spans = vec![Span::raw(" ")];
        for (key, label) in footer() {
            spans.push(Span::styled(key, theme.key));
            spans.push(Span::styled(format!(" {label}{gap}"), theme.dim));
        }
        Line::from(spans)
    };
    let line = keys("  ");
    if line.width() > wide + 2 {
        keys(" ")
    } else {
        line
    }
}

fn rule(title: &str, wide: usize, theme: &Theme) -> Line<'static> {
    let symbol = theme.symbols.rule;
    let title = text::cut(&format!("{symbol}{symbol} {title} "), wide);
    let rest = wide.saturating_sub(text::width(&title));
    Line::styled(title + &symbol.repeat(rest), theme.border)
}
