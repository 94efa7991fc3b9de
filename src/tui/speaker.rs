//! The speaker view on a second terminal: the notes of the beat that a room sees, the next beat, the agenda and the clock. It knows
//! nothing of the run; it draws what it was told.

use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

use anyhow::{Context, Result};
use crossterm::event::Event;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph};

use super::input::Input;
use super::keys;
use super::run::{SessionEnd, Signals};
use super::surface::{height, take_bottom, take_left};
use super::symbols;
use super::terminal::{self, Screen};
use super::text;
use super::theme::Theme;
use crate::app::notes::Notes;
use crate::app::{Action, Markers, ThemeName};

/// How long to wait for a key.
const WAIT: Duration = Duration::from_millis(100);

/// Shows what comes until a key ends it, or the presentation ends; `send` passes on what the speaker asks for. None is the
/// end of the presentation.
pub fn show(
    news: &Receiver<Notes>,
    theme: ThemeName,
    clock: impl Fn() -> String,
    mut send: impl FnMut(Action) -> Result<()>,
) -> Result<Option<SessionEnd>> {
    let abilities = terminal::abilities(|name| std::env::var(name).ok());
    let theme = Theme::new(theme, Markers::Braille, abilities);
    let signals = Signals::watch().context("Failed to watch for signals")?;
    let mut screen = Screen::take()?;
    let mut input = Input::default();
    let mut notes = Notes::default();
    loop {
        if signals.ends() {
            return Ok(Some(SessionEnd::Signal));
        }
        loop {
            match news.try_recv() {
                Ok(next) => notes = next,
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return Ok(None),
            }
        }
        let time = clock();
        screen
            .draw(|frame| draw(frame, &notes, &time, &theme))
            .context("The terminal is gone")?;
        if let Some(Event::Key(key)) = input.next(WAIT).context("The terminal is gone")? {
            match keys::speaker(key) {
                _ if keys::interrupts(key) => return Ok(Some(SessionEnd::Signal)),
                Some(Action::Quit) => return Ok(Some(SessionEnd::Quit)),
                Some(action) => send(action)?,
                None => {}
            }
        }
    }
}

/// Draws the notes: left what is said now and next, right the agenda, where there is room for both.
pub fn draw(frame: &mut Frame<'_>, notes: &Notes, clock: &str, theme: &Theme) {
    let area = frame.area();
    frame.render_widget(Block::new().style(theme.text), area);
    let mut rest = Rect {
        x: area.x + 1,
        width: area.width.saturating_sub(2),
        ..area
    };
    let foot = take_bottom(&mut rest, 1);
    let keys = " PgDn PgUp beats   b blank   F freeze   q leaves";
    frame.render_widget(Paragraph::new(Line::styled(keys, theme.dim)), foot);
    let agenda = agenda(notes, clock, theme);
    let wide = agenda.iter().map(Line::width).max().unwrap_or(0) as u16;
    let beside = rest.width >= wide + 50;
    let mut left = rest;
    if beside {
        left = take_left(&mut rest, area.width - wide - 4);
        frame.render_widget(Paragraph::new(agenda.clone()), rest);
    }
    let mut lines = said(notes, clock, usize::from(left.width.min(100)), theme);
    if !beside {
        let room = left.height.saturating_sub(height(lines.len()) + 1);
        if room >= height(agenda.len()) {
            lines.push(Line::default());
            lines.extend(agenda);
        }
    }
    frame.render_widget(Paragraph::new(lines), left);
    symbols::sanitize(frame.buffer_mut());
    if theme.symbols.ascii {
        symbols::fold_to_ascii(frame.buffer_mut());
    }
}

fn said(notes: &Notes, clock: &str, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let wrapped = |text: &str, style: Style| {
        let span = Span::styled(text.to_owned(), style);
        text::wrap(&[span], columns, "", "")
    };
    let late = notes.planned_s > 0 && notes.used_s > notes.planned_s;
    let mut head = vec![
        Span::styled(format!("{}  ", clock), theme.strong),
        Span::styled(
            format!("stage {}, beat {}/{}  ", notes.stage, notes.beat, notes.of),
            theme.text,
        ),
        Span::styled(
            format!("{} of {}", time(notes.used_s), time(notes.planned_s)),
            if late { theme.warning } else { theme.dim },
        ),
        Span::styled(format!("  {}", notes.run), theme.dim),
    ];
    if !notes.covered.is_empty() {
        head.push(Span::styled(
            format!("  the room sees: {}", notes.covered),
            theme.badge,
        ));
    }
    let mut lines = vec![Line::from(head), Line::default()];
    lines.extend(wrapped(&notes.says, theme.heading));
    lines.push(Line::default());
    lines.extend(wrapped(&notes.notes, theme.text));
    if !notes.vote.is_empty() {
        lines.push(Line::default());
        let choices = notes.vote.iter();
        lines.extend(choices.flat_map(|choice| wrapped(choice, theme.text)));
    }
    if !notes.votes.is_empty() {
        lines.push(Line::default());
        lines.extend(wrapped(&notes.votes, theme.strong));
    }
    lines.push(Line::default());
    let next = match notes.next.as_str() {
        "" => "This is the last beat.".to_owned(),
        next => format!("next: {next}"),
    };
    lines.extend(wrapped(&next, theme.dim));
    lines
}

/// A line for each stage: planned and used, and their sums.
fn agenda(notes: &Notes, clock: &str, theme: &Theme) -> Vec<Line<'static>> {
    let line = |name: &str, planned: u64, used: u64, style: Style| {
        let name = text::left(&text::cut(name, 32), 33);
        let (planned, used) = (time(planned), time(used));
        Line::styled(format!("{name}{planned:>7}{used:>8}"), style)
    };
    let head = text::left(&format!("agenda  {clock}"), 33);
    let mut lines = vec![Line::styled(format!("{head}planned    used"), theme.dim)];
    for (at, item) in notes.agenda.iter().enumerate() {
        let late = item.used_s > item.planned_s && item.planned_s > 0;
        let style = match at + 1 == notes.stage as usize {
            true => theme.strong,
            false if late => theme.warning,
            false => theme.text,
        };
        let name = format!("{} {}", at + 1, item.title);
        lines.push(line(&name, item.planned_s, item.used_s, style));
    }
    let planned = notes.agenda.iter().map(|item| item.planned_s).sum();
    let used = notes.agenda.iter().map(|item| item.used_s).sum();
    lines.push(line("all", planned, used, theme.strong));
    lines
}

/// Minutes and seconds: `7:05`.
fn time(seconds: u64) -> String {
    format!("{}:{:02}", seconds / 60, seconds % 60)
}
