//! The instructor's board on the terminal: who is where, votes and races, and the keys that open them; and how to join, for the
//! projector.

use std::time::{Duration, Instant};

use anyhow::Result;
use crossterm::event::Event;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Block;

use super::keys::board::{BoardAction, action, footer};
use super::panels::footer::line_of_keys;
use super::run::{self, SessionEnd};
use super::surface::{height, put, take_bottom, take_top};
use super::table::{Columns, FigureColumn};
use super::text;
use super::theme::Theme;
use super::votes::bars;
use crate::class::board::{Board, ParticipantRow, Presence, Race, RaceRank, VoteTally, duration};
use crate::course::save_file::letter;
use protocol::units::or_dash;

mod act;
mod join;
mod wall;

pub use act::{BoardScreen, BoardView, Confirmation, RoomControl, WallPart, act};
use act::{Typing, warnings};

/// Time between two updates from the room.
const LOOK: Duration = Duration::from_millis(250);
/// How long a message stays.
const NOTICE: Duration = Duration::from_secs(8);

/// Shows the board until the instructor quits.
pub fn show(room: &mut dyn RoomControl, theme: &Theme, view: BoardView) -> Result<SessionEnd> {
    let (board, began) = (room.board(), Instant::now());
    let mut state = (room, board, view, Instant::now());
    run::show(
        &mut state,
        LOOK,
        SessionEnd::Signal,
        |(room, board, view, told), frame| {
            if told.elapsed() > NOTICE {
                view.notice = None;
            }
            *board = room.board();
            (view.reached, view.open_s) = (room.reached(), began.elapsed().as_secs());
            draw(frame, board, view, theme);
            None
        },
        |(room, board, view, told), event| {
            let Event::Key(key) = event else { return None };
            let asked = action(key, view.typing.is_some())?;
            if asked == BoardAction::Quit && view.asked == Some(Confirmation::Quit) {
                return Some(SessionEnd::Quit);
            }
            if let Some(said) = act(asked, &mut **room, board, view) {
                (view.notice, *told) = (Some(said), Instant::now());
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
        BoardScreen::Own => {
            let own = view.own.iter().map(|it| Span::styled(it, theme.text));
            let mut lines: Vec<_> = own
                .flat_map(|it| text::wrap(&[it], wide, " ", "   "))
                .collect();
            if !view.serves() {
                let said = " A room in a folder has no page of its own: see --page";
                lines = vec![Line::raw(said)];
            }
            put(frame, rest, lines);
        }
    }
    theme.symbols.finish(frame.buffer_mut());
}

fn draw_board(
    frame: &mut Frame<'_>,
    mut rest: Rect,
    board: &Board,
    view: &BoardView,
    theme: &Theme,
) {
    let wide = usize::from(rest.width);
    let top = head(board, view, wide, theme);
    let rows = height(top.len());
    put(frame, take_top(&mut rest, rows), top);
    let below = said(board, view, wide, theme);
    let below_rows = height(below.len()).min(rest.height / 3);
    put(frame, take_bottom(&mut rest, below_rows), below);
    // The table keeps a few rows beside a vote or a race.
    if let Some(vote) = &board.vote {
        let mut lines = votes(vote, wide, theme);
        if board.race.is_some() && !vote.open {
            lines.truncate(1);
        }
        let rows = height(lines.len()).min(rest.height.saturating_sub(4));
        put(frame, take_top(&mut rest, rows), lines);
    }
    if let Some(race) = &board.race {
        let mut lines = ranks(race, wide, theme);
        let rows = height(lines.len()).min(rest.height / 2);
        let left_out = lines.len().saturating_sub(usize::from(rows));
        if left_out > 0 && rows > 1 {
            lines.truncate(usize::from(rows) - 1);
            let said = format!("      and {} more", left_out + 1);
            lines.push(Line::styled(said, theme.dim));
        }
        put(frame, take_top(&mut rest, rows), lines);
    }
    people(frame, rest, board, view, theme);
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
    let stuck = board.rows.iter().filter(|row| row.stuck).count();
    more(stuck, "long in one stage", theme.warning);
    more(board.raised, "raised a hand", theme.warning);
    for (is, said) in [
        (board.closed, " closed "),
        (board.locked, " locked "),
        (board.names_required, " names "),
    ] {
        if is {
            spans.push(Span::styled(said, theme.badge));
        }
    }
    if !view.selected.is_empty() {
        let said = format!(" {} selected ", view.selected.len());
        spans.push(Span::styled(said, theme.badge));
    }
    let mut lines = text::wrap(&spans, wide, "", " ");
    let address = |it: &String| {
        let said = format!("perflings --room {it} --name NICKNAME");
        text::wrap(&[Span::styled(said, theme.text)], wide, " ", "   ")
    };
    lines.extend(view.places.get(view.place).into_iter().flat_map(address));
    lines.extend(stages(board, view, wide, theme));
    lines
}

/// Every stage with how many are in it and have passed it, the marked one with its title.
fn stages(board: &Board, view: &BoardView, wide: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut parts = Vec::new();
    for (at, stage) in board.stages.iter().enumerate() {
        let style = theme.among(at == view.marked, theme.text);
        let (number, here, passed) = (stage.number, stage.here, stage.passed);
        let forms = [
            format!(" {number}: {here} here, {passed} passed "),
            format!(" {number}: {here}/{passed} "),
            format!(" {number}:{here} "),
        ];
        parts.push(forms.map(|said| (said, style)));
    }
    let wide_of = |form: usize| -> usize {
        let widths = parts.iter().map(|part| text::width(&part[form].0));
        widths.sum()
    };
    let form = (0..2).find(|form| wide_of(*form) < wide).unwrap_or(2);
    let heading = ["", " here/passed", " here"][form];
    let named = wide_of(form) + text::width(heading) < wide;
    let heading = Span::styled(if named { heading } else { "" }, theme.dim);
    let mut spans = vec![heading];
    for part in parts {
        let (said, style) = &part[form];
        spans.push(Span::styled(said.clone(), *style));
    }
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
    let state = match vote.open {
        true => "the vote is open",
        false => "the votes",
    };
    let again = if vote.round > 1 { ", second round" } else { "" };
    let title = format!("{}: {state}{again}, {}", vote.named(), vote.who());
    let mut lines = vec![rule(&title, wide, theme)];
    if vote.stage == 0 {
        let prompt = Span::styled(vote.prompt.clone(), theme.text);
        lines.extend(text::wrap(&[prompt], wide, " ", " "));
    }
    let both = vote.rounds.len() > 1;
    let bar = (wide / if both { 6 } else { 3 }).clamp(6, 40);
    let right = vote.answer.as_ref();
    for (at, choice) in vote.choices.iter().enumerate() {
        let (mark, style) = match right {
            Some(it) if it.choice == at => (theme.symbols.good, theme.good),
            _ => (" ", theme.text),
        };
        let mut spans = vec![
            Span::styled(mark, style),
            Span::styled(format!("{}  ", letter(at)), theme.strong),
        ];
        spans.extend(bars(vote, at, bar, theme));
        let indent = text::width_of(&spans);
        let said = [Span::styled(choice.clone(), style)];
        let left = wide.saturating_sub(indent + 1);
        for line in text::wrap(&said, left, "", "") {
            spans.extend(line.spans);
            lines.push(Line::from(std::mem::take(&mut spans)));
            spans.push(Span::raw(" ".repeat(indent)));
        }
    }
    if let Some(answer) = right {
        let reason = Span::styled(answer.reason.clone(), theme.text);
        lines.extend(text::wrap(&[reason], wide, " ", " "));
    }
    if !vote.ranges.is_empty() {
        let found = match vote.measured {
            Some(truth) => {
                let holds = |range: &&[f64; 2]| (range[0]..=range[1]).contains(&truth);
                let held = vote.ranges.iter().filter(holds).count();
                let measured = format!("{truth:.2} {}", vote.unit);
                format!("{held} hold the measured {}", measured.trim_end())
            }
            None => "nothing is measured yet".to_owned(),
        };
        let said = format!(" {} ranges were drawn; {found}", vote.ranges.len());
        lines.push(Line::styled(text::cut(&said, wide), theme.text));
    }
    lines
}

/// The race, the best first.
fn ranks(race: &Race, wide: usize, theme: &Theme) -> Vec<Line<'static>> {
    let left = race
        .left_s
        .map_or_else(String::new, |left| format!(", {} left", duration(left)));
    let mut lines = vec![rule(&format!("race: {}{left}", race.task), wide, theme)];
    if race.ranks.is_empty() {
        lines.push(Line::styled(" nobody has a result yet", theme.dim));
    }
    for rank in &race.ranks {
        let place = or_dash(rank.place, |place| place.to_string());
        let (name, figures) = (text::name(&rank.name, 24), text::left(&result(rank), 30));
        let line = format!(" {place:>3}  {name}  {figures}  {}", rank.device);
        let style = match rank.place {
            Some(1) => theme.strong,
            _ => theme.text,
        };
        lines.push(Line::styled(text::cut(&line, wide), style));
    }
    lines
}

/// A result in words.
fn result(rank: &RaceRank) -> String {
    match (rank.result.mystery, rank.result.ratio) {
        (Some(it), _) if it.points > 0 => {
            let (points, tried) = (it.points, it.configurations);
            format!("{points} points, {}, {tried} tried", duration(it.seconds))
        }
        (Some(_), _) => "gave up".to_owned(),
        (None, Some([ratio, low, high])) => format!("{ratio:.2}x [{low:.2}, {high:.2}]"),
        (None, None) => String::new(),
    }
}

#[rustfmt::skip]
const COLUMNS: [FigureColumn; 7] = [
    ("at", 12),
    ("for", 12),
    ("passed", 8),
    ("checks", 8),
    ("hints", 7),
    ("best", 8),
    ("hand", 8),
];

fn people(frame: &mut Frame<'_>, mut rest: Rect, board: &Board, view: &BoardView, theme: &Theme) {
    let wide = usize::from(rest.width);
    let title = take_top(&mut rest, 1);
    // Below it stands the head of the table. The chosen one is on the screen.
    let high = usize::from(rest.height.saturating_sub(1));
    let chosen = view.chosen(board);
    let skipped = chosen.map_or(0, |at| (at + 1).saturating_sub(high));
    let (all, last) = (board.rows.len(), board.rows.len().min(skipped + high));
    let said = match last - skipped < all {
        true => format!("participants {} to {last} of {all}", skipped + 1),
        false => "participants".to_owned(),
    };
    put(frame, title, rule(&said, wide, theme));
    if board.rows.is_empty() {
        let line = Line::styled(" nobody has joined yet", theme.dim);
        return put(frame, rest, line);
    }
    let mut room = wide.saturating_sub(1 + 16);
    let columns = Columns::fit(COLUMNS, &[0, 6, 1, 2, 5, 3, 4], &mut room);
    let name = 16 + room.min(12);
    let device = room.saturating_sub(12);
    let device = device.saturating_sub(2);
    let (named, on) = (text::left("name", name), text::cut("device", device));
    let top = Line::styled(format!(" {named}{}  {on}", columns.heads()), theme.dim);
    put(frame, take_top(&mut rest, 1), top);
    let shown = board.rows.iter().enumerate().skip(skipped).take(high);
    let lines = shown.map(|(at, row)| {
        let selected = view.selected.contains(&row.id);
        let style = match row.presence {
            _ if chosen == Some(at) || selected => theme.selected,
            Presence::Here => theme.text,
            _ => theme.dim,
        };
        let mark = if selected { "*" } else { " " };
        let named = format!("{mark}{}", text::name(&row.name, name));
        let mut spans = vec![Span::styled(named, style)];
        spans.extend(columns.cells(figures(row, style, theme)));
        let on = format!("  {}", text::shorten(&row.device, device));
        spans.push(Span::styled(on, theme.dim));
        Line::from(spans)
    });
    put(frame, rest, lines.collect::<Vec<_>>());
}

fn figures(row: &ParticipantRow, style: Style, theme: &Theme) -> [(String, Style); 7] {
    let at = match row.presence {
        Presence::Left => "left".to_owned(),
        Presence::Away => "away".to_owned(),
        Presence::Here if row.at.parse::<u32>().is_ok() => format!("stage {}", row.at),
        Presence::Here => row.at.clone(),
    };
    let long = match row.at.as_str() {
        "" => String::new(),
        _ => duration(row.at_s),
    };
    let checks = or_dash(row.checks, |[met, all]| format!("{met}/{all}"));
    let hand = row.hand.map(|place| format!("hand {place}"));
    [
        (at, style),
        (long, if row.stuck { theme.warning } else { style }),
        (row.passed.to_string(), style),
        (checks, style),
        (row.hints.to_string(), style),
        (or_dash(row.best, |it| format!("{it:.2}x")), style),
        (hand.unwrap_or_default(), theme.warning),
    ]
}

/// What could not be read, and the last message.
fn said(board: &Board, view: &BoardView, wide: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mark = theme.symbols.warning;
    let all = warnings(board);
    let shown = all
        .iter()
        .filter(|warning| !view.dismissed.contains(*warning));
    let shown: Vec<&String> = shown.collect();
    let more = match shown.len() {
        0..=2 => String::new(),
        faults => format!("; {} more", faults - 2),
    };
    let faults = shown.iter().take(2);
    let faults = faults.map(|fault| format!("{mark} {fault}{more}"));
    let lines = view.notice.iter().cloned().chain(faults);
    let wrapped = lines.flat_map(|line| {
        let line = Span::styled(line, theme.warning);
        text::wrap(&[line], wide, " ", "   ")
    });
    wrapped.collect()
}

fn foot(view: &BoardView, wide: usize, theme: &Theme) -> Line<'static> {
    if let Some((what, word)) = &view.typing {
        let asked = match what {
            Typing::Race => {
                "race: a mystery's seed and level, or an exercise, such as 7 2, k04 or k04 15 min"
            }
            Typing::Question => "ask, such as \"Who has seen this?\" yes no",
            Typing::Names => "select everybody whose name contains these letters; empty: nobody",
        };
        // The end of a long line is what is typed.
        let left = wide.saturating_sub(text::width(word) + 4);
        let asked = text::cut(asked, left);
        let from = text::width(word).saturating_sub(wide.saturating_sub(text::width(&asked) + 4));
        let end: String = word.chars().skip(from).collect();
        return Line::styled(text::cut(&format!(" {asked}: {end}_"), wide), theme.strong);
    }
    let line =
        |named: &[(String, &'static str)], gap| line_of_keys(named.iter().cloned(), gap, theme);
    let mut named = footer();
    let open = match view.screen {
        BoardScreen::Board => "",
        BoardScreen::Join => "join",
        BoardScreen::Own => "my page",
        BoardScreen::Wall => "wall",
    };
    for (_, label) in named.iter_mut().filter(|it| it.1 == open) {
        *label = "board";
    }
    let wide_line = line(&named, "  ");
    if wide_line.width() <= wide + 2 {
        return wide_line;
    }
    // The last one says how to quit; those before it go first.
    while line(&named, " ").width() > wide + 1 && named.len() > 1 {
        named.remove(named.len() - 2);
    }
    line(&named, " ")
}

fn rule(title: &str, wide: usize, theme: &Theme) -> Line<'static> {
    let rule = text::rule(theme.symbols.rule, title, wide);
    Line::styled(text::cut(&rule, wide), theme.border)
}
