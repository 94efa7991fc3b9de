//! The speaker view on a second terminal shows the notes of the beat that a room sees, the next beat, the agenda and the clock. It knows
//! nothing about the run; it draws the notes that it receives.

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

/// The time to wait for a key before the next frame.
const WAIT: Duration = Duration::from_millis(100);

/// The note that stands beside the last notes after the presentation was left.
const LEFT: &str = "no presentation; shift-F5 there goes on with it";

/// Shows the notes that come from `news` until a key or the end of the presentation ends the view. `news` sends `None` when the
/// presentation was left; `send` passes on the speaker's requests. Returns `None` if the presentation is over.
pub fn show(
    news: &Receiver<Option<SpeakerNotes>>,
    theme: ThemeName,
    agenda: Option<&Agenda>,
    clock: impl Fn() -> String,
    mut send: impl FnMut(SpeakerRequest),
) -> Result<Option<SessionEnd>> {
    let abilities = terminal::abilities(|name| std::env::var(name).ok());
    let theme = Theme::new(theme, Markers::Braille, abilities);
    let beat_of = |notes: &SpeakerNotes| (notes.stage, notes.beat);
    // The notes, the beat that the keys asked for until the notes show it, and whether the speaker has ended the presentation.
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
                        if beat_of(&next) != beat_of(notes) {
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
                    let from = ahead.unwrap_or_else(|| beat_of(notes));
                    let to = notes.beat_from(from, by)?;
                    *ahead = Some(to);
                    SpeakerRequest::GoTo(to.0, to.1)
                }
                SpeakerKey::Ask(request) => {
                    *ended |= request == SpeakerRequest::End;
                    request
                }
            });
            None
        },
    )
}

/// Draws the notes on the left and, where there is room for both, the agenda on the right; else the agenda below the notes.
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
    let mut lines = note_lines(notes, clock, usize::from(side.width.min(100)), theme);
    if !beside {
        let room = side.height.saturating_sub(height(lines.len()) + 1);
        if room >= height(agenda.len()) {
            lines.push(Line::default());
            lines.extend(agenda);
        } else {
            lines.insert(1, Line::styled(time_left(planned_s, notes), theme.dim));
        }
    }
    put(frame, side, lines);
    theme.symbols.finish(frame.buffer_mut());
}

fn note_lines(
    notes: &SpeakerNotes,
    clock: &str,
    columns: usize,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let wrapped = |text: &str, style: Style| text::wrapped(text, style, columns);
    let late = notes.planned_s > 0 && notes.used_s > notes.planned_s;
    let mut head = vec![Span::styled(format!("{clock}  "), theme.strong)];
    // A blank or frozen screen is said first, because the speaker must not miss it.
    if !notes.covered.is_empty() {
        let warning = format!(" the room sees: {} ", notes.covered);
        head.push(Span::styled(warning, theme.badge));
        head.push(Span::raw("  "));
    }
    let place = format!("stage {}, beat {}/{}  ", notes.stage, notes.beat, notes.of);
    head.push(Span::styled(place, theme.text));
    let used = format!("{} of {}  ", time(notes.used_s), time(notes.planned_s));
    let style = if late { theme.warning } else { theme.dim };
    head.push(Span::styled(used, style));
    let mut lines = text::wrap(&head, columns, "", "");
    lines.extend(wrapped(&notes.run, theme.dim));
    let next = match notes.next.as_str() {
        "" => "This is the last beat.".to_owned(),
        next => format!("next: {next}"),
    };
    let choices = notes
        .vote
        .iter()
        .flat_map(|choice| wrapped(choice, theme.text));
    let mut paragraphs = vec![
        wrapped(&notes.says, theme.heading),
        wrapped(&notes.notes, theme.text),
        choices.collect(),
        wrapped(&notes.votes, theme.strong),
        wrapped(&next, theme.dim),
    ];
    paragraphs.retain(|paragraph| paragraph.iter().any(|line| line.width() > 0));
    for paragraph in paragraphs {
        lines.push(Line::default());
        lines.extend(paragraph);
    }
    lines
}

/// The most columns of a name in the agenda.
const NAME: usize = 32;

fn agenda_line(name: &str, planned: &str, used: &str, style: Style) -> Line<'static> {
    let name = text::left(&text::cut(name, NAME), NAME + 1);
    Line::styled(format!("{name}{planned:>7}{used:>8}"), style)
}

/// Returns the planned time in seconds and the lines of the agenda: the parts of the chosen agenda with their minutes, or else the stages.
/// Each line has the time that its stages have used.
fn agenda(
    chosen: Option<&Agenda>,
    notes: &SpeakerNotes,
    theme: &Theme,
) -> (u64, Vec<Line<'static>>) {
    let mut from = 0;
    // Each item has a name, its planned seconds, a text for these, and its stages.
    let (heading, all_s, all, items): (_, u64, _, Vec<_>) = match chosen {
        Some(agenda) => {
            let items = agenda.parts.iter().map(|part| {
                let planned = format!("{from}-{}", from + part.minutes);
                from += part.minutes;
                let planned_s = 60 * u64::from(part.minutes);
                (part.what.clone(), planned_s, planned, &part.stages[..])
            });
            let all_s = 60 * u64::from(agenda.minutes);
            let all = format!("0-{}", agenda.minutes);
            ("minutes", all_s, all, items.collect())
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
    let left = time_left(all_s, notes);
    let mut lines = vec![agenda_line(&left, heading, "used", theme.dim)];
    for (name, planned_s, planned, stages) in items {
        let used_s: u64 = notes
            .agenda
            .iter()
            .filter(|item| stages.contains(&item.number))
            .map(|item| item.used_s)
            .sum();
        let style = if stages.contains(&notes.stage) {
            theme.strong
        } else if planned_s > 0 && used_s > planned_s {
            theme.warning
        } else {
            theme.text
        };
        let used = if stages.is_empty() {
            String::new()
        } else {
            time(used_s)
        };
        lines.push(agenda_line(&name, &planned, &used, style));
    }
    let used = time(notes.used_in_all_s());
    lines.push(agenda_line("all", &all, &used, theme.strong));
    (all_s, lines)
}

/// Says how many minutes of the planned time are left, or how many it is over.
fn time_left(planned_s: u64, notes: &SpeakerNotes) -> String {
    let used_s = notes.used_in_all_s();
    match planned_s.checked_sub(used_s) {
        Some(left) => format!("agenda: {} min left", left.div_ceil(60)),
        None => format!("agenda: {} min over", (used_s - planned_s).div_ceil(60)),
    }
}

/// Returns a time in minutes and seconds, such as `7:05`.
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
            crate::tui::theme::TerminalAbilities::default(),
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
            .find(|line| line.contains("1 Stage of"))
            .expect("the agenda");
        assert!(row.contains("  1 Stage of number 1"), "{text}");
    }
}
