//! The speaker view on a second terminal: the notes of the beat that a room sees, the next beat, the agenda and the clock. It knows
//! nothing of the run; it draws the notes that it receives.

use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

use anyhow::Result;
use crossterm::event::Event;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Block;

use super::keys::{self, SpeakerKey};
use super::run::{self, SessionEnd};
use super::surface::{height, put, take_bottom, take_left, widest};
use super::terminal;
use super::text;
use super::theme::Theme;
use crate::app::notes::{SpeakerNotes, SpeakerRequest};
use crate::app::{Markers, ThemeName};
use crate::course::Agenda;

/// How long to wait for a key.
const WAIT: Duration = Duration::from_millis(100);

/// What stands beside the last notes once the presentation was left.
const LEFT: &str = "no presentation; shift-F5 there goes on with it";

/// Shows what comes until a key ends it, or the presentation; `send` passes on what the speaker asks for. No notes come where the
/// presentation was left. The result is None once the speaker has ended it.
pub fn show(
    news: &Receiver<Option<SpeakerNotes>>,
    theme: ThemeName,
    agenda: Option<&Agenda>,
    clock: impl Fn() -> String,
    mut send: impl FnMut(SpeakerRequest),
) -> Result<Option<SessionEnd>> {
    let abilities = terminal::abilities(|name| std::env::var(name).ok());
    let theme = Theme::new(theme, Markers::Braille, abilities);
    let place = |notes: &SpeakerNotes| (notes.stage, notes.beat);
    // The notes; the beat that the keys asked for and that the notes do not show yet; whether the speaker has ended it.
    let mut state = (SpeakerNotes::default(), None, false);
    run::show(
        &mut state,
        WAIT,
        Some(SessionEnd::Signal),
        |(notes, ahead, ended), frame| {
            loop {
                match news.try_recv() {
                    Ok(None) if *ended => return Some(None),
                    Ok(None) => notes.covered = LEFT.to_owned(),
                    Ok(Some(next)) => {
                        if place(&next) != place(notes) {
                            *ahead = None;
                        }
                        *notes = next;
                    }
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return Some(None),
                }
            }
            draw(frame, notes, agenda, &clock(), &theme);
            None
        },
        |(notes, ahead, ended), event| {
            let Event::Key(key) = event else { return None };
            send(match keys::speaker(key)? {
                SpeakerKey::Leave => return Some(Some(SessionEnd::Quit)),
                SpeakerKey::By(by) => {
                    let from = ahead.unwrap_or_else(|| place(notes));
                    let to = notes.beat_from(from, by)?;
                    *ahead = Some(to);
                    SpeakerRequest::GoTo(to.0, to.1)
                }
                SpeakerKey::Ask(asked) => {
                    *ended |= asked == SpeakerRequest::End;
                    asked
                }
            });
            None
        },
    )
}

/// Draws the notes: left what is said now and next, right the agenda, where there is room for both.
pub fn draw(
    frame: &mut Frame<'_>,
    notes: &SpeakerNotes,
    chosen: Option<&Agenda>,
    clock: &str,
    theme: &Theme,
) {
    let area = frame.area();
    frame.render_widget(Block::new().style(theme.text), area);
    let mut rest = Rect {
        x: area.x + 1,
        width: area.width.saturating_sub(2),
        ..area
    };
    let foot = take_bottom(&mut rest, 1);
    let keys = " PgDn PgUp beat 1-9 stage b blank F freeze X end q leave";
    put(frame, foot, Line::styled(keys, theme.dim));
    let (planned_s, agenda) = agenda(chosen, notes, theme);
    let wide = widest(&agenda);
    let beside = rest.width >= wide + 50;
    let mut side = rest;
    if beside {
        side = take_left(&mut rest, area.width - wide - 4);
        side.width = side.width.saturating_sub(2);
        put(frame, rest, agenda.clone());
    }
    let mut lines = said(notes, clock, usize::from(side.width.min(100)), theme);
    if !beside {
        let room = side.height.saturating_sub(height(lines.len()) + 1);
        if room >= height(agenda.len()) {
            lines.push(Line::default());
            lines.extend(agenda);
        } else {
            lines.insert(1, Line::styled(left(planned_s, notes), theme.dim));
        }
    }
    put(frame, side, lines);
    theme.symbols.finish(frame.buffer_mut());
}

fn said(notes: &SpeakerNotes, clock: &str, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let wrapped = |text: &str, style: Style| text::wrapped(text, style, columns);
    let late = notes.planned_s > 0 && notes.used_s > notes.planned_s;
    let mut head = vec![Span::styled(format!("{clock}  "), theme.strong)];
    // That the room sees nothing comes first: the speaker must not miss it.
    if !notes.covered.is_empty() {
        let said = format!(" the room sees: {} ", notes.covered);
        head.push(Span::styled(said, theme.badge));
        head.push(Span::raw("  "));
    }
    let place = format!("stage {}, beat {}/{}  ", notes.stage, notes.beat, notes.of);
    head.push(Span::styled(place, theme.text));
    let clock = format!("{} of {}  ", time(notes.used_s), time(notes.planned_s));
    let style = if late { theme.warning } else { theme.dim };
    head.push(Span::styled(clock, style));
    let mut lines = text::wrap(&head, columns, "", "");
    lines.extend(wrapped(&notes.run, theme.dim));
    lines.push(Line::default());
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

/// Columns of a name in the agenda.
const NAME: usize = 32;

fn agenda_line(name: &str, planned: &str, used: &str, style: Style) -> Line<'static> {
    let name = text::left(&text::cut(name, NAME), NAME + 1);
    Line::styled(format!("{name}{planned:>7}{used:>8}"), style)
}

/// The seconds planned, and the lines of the agenda: the parts of the one that was chosen, from minute to minute, with what their
/// stages have used; else the stages.
fn agenda(
    chosen: Option<&Agenda>,
    notes: &SpeakerNotes,
    theme: &Theme,
) -> (u64, Vec<Line<'static>>) {
    let mut from = 0;
    // Of each: its name, the seconds planned, in words, and its stages.
    let (what, all_s, all, items): (_, u64, _, Vec<_>) = match chosen {
        Some(agenda) => {
            let items = agenda.parts.iter().map(|part| {
                let planned = format!("{from}-{}", from + part.minutes);
                from += part.minutes;
                let planned_s = 60 * u64::from(part.minutes);
                (part.what.clone(), planned_s, planned, &part.stages[..])
            });
            let (all_s, all) = (60 * u64::from(agenda.minutes), agenda.minutes);
            ("minutes", all_s, format!("0-{all}"), items.collect())
        }
        None => {
            let all_s = notes.agenda.iter().map(|item| item.planned_s).sum();
            let items = notes.agenda.iter().map(|item| {
                let name = format!("{} {}", item.number, item.title);
                let stages = std::slice::from_ref(&item.number);
                (name, item.planned_s, time(item.planned_s), stages)
            });
            ("planned", all_s, time(all_s), items.collect())
        }
    };
    let mut lines = vec![agenda_line(&left(all_s, notes), what, "used", theme.dim)];
    for (name, planned_s, planned, stages) in items {
        let of_item = notes
            .agenda
            .iter()
            .filter(|item| stages.contains(&item.number));
        let used_s: u64 = of_item.map(|item| item.used_s).sum();
        let style = match planned_s {
            _ if stages.contains(&notes.stage) => theme.strong,
            1.. if used_s > planned_s => theme.warning,
            _ => theme.text,
        };
        let used = match stages {
            [] => String::new(),
            _ => time(used_s),
        };
        lines.push(agenda_line(&name, &planned, &used, style));
    }
    let used = time(notes.used_in_all_s());
    lines.push(agenda_line("all", &all, &used, theme.strong));
    (all_s, lines)
}

/// How much of the planned time is left.
fn left(planned_s: u64, notes: &SpeakerNotes) -> String {
    let used_s = notes.used_in_all_s();
    match planned_s.checked_sub(used_s) {
        Some(left) => format!("agenda: {} min left", left.div_ceil(60)),
        None => format!("agenda: {} min over", (used_s - planned_s).div_ceil(60)),
    }
}

/// Minutes and seconds: `7:05`.
pub(super) fn time(seconds: u64) -> String {
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::app::notes::AgendaItem;
    use crate::course::AgendaPart;

    fn screen(
        (columns, rows): (u16, u16),
        notes: &SpeakerNotes,
        agenda: Option<&Agenda>,
    ) -> String {
        let theme = Theme::new(
            ThemeName::Dark,
            Markers::Braille,
            crate::tui::theme::Terminal::default(),
        );
        let mut terminal = Terminal::new(TestBackend::new(columns, rows)).expect("a terminal");
        terminal
            .draw(|frame| draw(frame, notes, agenda, "14:05", &theme))
            .expect("drawn");
        terminal.backend().to_string()
    }

    #[test]
    fn what_the_room_does_not_see_and_the_time_left_are_there_at_every_width() {
        let item = |number| AgendaItem {
            number,
            beats: 6,
            title: format!("Stage of number {number}"),
            planned_s: 600,
            used_s: 300,
        };
        let notes = SpeakerNotes {
            stage: 3,
            beat: 2,
            of: 6,
            says: "A sentence.".to_owned(),
            covered: "frozen".to_owned(),
            run: "compiling kernels".to_owned(),
            agenda: [1, 2, 3].map(item).to_vec(),
            ..SpeakerNotes::default()
        };
        let part = |minutes, what: &str, stages: &[u32]| AgendaPart {
            minutes,
            what: what.to_owned(),
            stages: stages.to_vec(),
        };
        let agenda = Agenda {
            minutes: 30,
            parts: vec![part(10, "set-up", &[]), part(20, "stages 1 and 2", &[1, 2])],
        };
        for size in [(60, 16), (80, 24), (120, 36), (200, 50)] {
            let text = screen(size, &notes, Some(&agenda));
            for part in [
                "frozen",
                "compiling kernels",
                "14:05",
                "15 min left",
                "q leave",
            ] {
                assert!(text.contains(part), "{part} at {size:?}:\n{text}");
            }
            for part in ["10-30", "10:00", "set-up"] {
                let kept = size.1 > 16;
                assert!(!kept || text.contains(part), "{part} at {size:?}:\n{text}");
            }
        }
        assert!(screen((120, 36), &notes, None).contains("15 min left"));
        // The notes end before the agenda begins.
        let notes = SpeakerNotes {
            notes: "ab ".repeat(200),
            ..notes
        };
        let text = screen((100, 30), &notes, None);
        let row = text
            .lines()
            .find(|it| it.contains("1 Stage of"))
            .expect("the agenda");
        assert!(row.contains("  1 Stage of number 1"), "{text}");
    }
}
