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
use crate::app::notes::{AgendaItem, SpeakerNotes, SpeakerRequest};
use crate::app::{Markers, ThemeName};
use crate::course::Agenda;

/// The time to wait for a key before the next frame.
const WAIT: Duration = Duration::from_millis(100);

/// The badge that is shown after the speaker has left the presentation on the other terminal.
const NO_PRESENTATION: &str = "no presentation; shift-F5 on that terminal continues it";

/// The state of the speaker view.
#[derive(Default)]
struct SpeakerState {
    notes: SpeakerNotes,
    /// The stage and the beat that the speaker's keys asked for; `None` once the notes have followed.
    asked_beat: Option<(u32, usize)>,
    /// True once the speaker has asked for the end of the presentation.
    ended: bool,
}

/// Shows the notes that come from `news` until a key or the end of the presentation ends the view. `news` sends `None` when the
/// speaker leaves the presentation; `send` passes on the speaker's requests. Returns `None` if the presentation is over.
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
    run::show(
        &mut SpeakerState::default(),
        WAIT,
        Some(SessionEnd::Signal),
        |state, frame| {
            loop {
                match news.try_recv() {
                    Ok(None) if state.ended => return Some(None),
                    Ok(None) => state.notes.covered = NO_PRESENTATION.to_owned(),
                    Ok(Some(next)) => {
                        if beat_of(&next) != beat_of(&state.notes) {
                            state.asked_beat = None;
                        }
                        state.notes = next;
                    }
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return Some(None),
                }
            }
            draw(frame, &state.notes, agenda, &clock(), &theme);
            None
        },
        |state, event| {
            let Event::Key(key) = event else { return None };
            send(match keys::speaker(key)? {
                SpeakerKey::Leave => return Some(Some(SessionEnd::Quit)),
                SpeakerKey::By(by) => {
                    let from = state.asked_beat.unwrap_or_else(|| beat_of(&state.notes));
                    let (stage, beat) = state.notes.beat_from(from, by)?;
                    state.asked_beat = Some((stage, beat));
                    SpeakerRequest::GoTo(stage, beat)
                }
                SpeakerKey::Ask(request) => {
                    state.ended |= request == SpeakerRequest::End;
                    request
                }
            });
            None
        },
    )
}

/// Draws the notes on the left and the agenda on the right. On a narrow screen the agenda is below the notes, and where it does not fit
/// there, only the remaining time is shown.
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
    let agenda_columns = widest(&agenda);
    let is_wide = rest.width >= agenda_columns + 50;
    let mut side = rest;
    if is_wide {
        side = take_left(&mut rest, area.width - agenda_columns - 4);
        side.width = side.width.saturating_sub(2);
        put(frame, rest, agenda.clone());
    }
    let mut lines = note_lines(notes, clock, usize::from(side.width.min(100)), theme);
    if !is_wide {
        let rows_left = side.height.saturating_sub(height(lines.len()) + 1);
        if rows_left >= height(agenda.len()) {
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
    let is_late = notes.planned_s > 0 && notes.used_s > notes.planned_s;
    let mut head = vec![Span::styled(format!("{clock}  "), theme.strong)];
    // A blank or frozen screen comes first, because the speaker must not miss it.
    if !notes.covered.is_empty() {
        let warning = format!(" the room sees: {} ", notes.covered);
        head.push(Span::styled(warning, theme.badge));
        head.push(Span::raw("  "));
    }
    let place = format!("stage {}, beat {}/{}  ", notes.stage, notes.beat, notes.of);
    head.push(Span::styled(place, theme.text));
    let used = format!("{} of {}  ", time(notes.used_s), time(notes.planned_s));
    let used_style = if is_late { theme.warning } else { theme.dim };
    head.push(Span::styled(used, used_style));
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

/// The largest number of columns of a name in the agenda.
const MAX_NAME: usize = 32;

fn agenda_line(name: &str, planned: &str, used: &str, style: Style) -> Line<'static> {
    let padded_name = text::left(&text::cut(name, MAX_NAME), MAX_NAME + 1);
    Line::styled(format!("{padded_name}{planned:>7}{used:>8}"), style)
}

/// A row of the agenda: a part of the agenda that the speaker chose, or a stage.
struct AgendaRow<'a> {
    name: String,
    planned_s: u64,
    /// The planned time in words, such as `10-30` (minutes since the beginning) or `12:00` (a duration).
    planned: String,
    /// The numbers of the stages whose time counts for this row.
    stages: &'a [u32],
}

impl AgendaRow<'_> {
    /// Returns the line of the row. The present stage is strong, and a row that takes longer than planned is a warning.
    fn line(&self, notes: &SpeakerNotes, theme: &Theme) -> Line<'static> {
        let counts = |stage: &&AgendaItem| self.stages.contains(&stage.number);
        let stages = notes.agenda.iter().filter(counts);
        let used_s: u64 = stages.map(|stage| stage.used_s).sum();
        let style = if self.stages.contains(&notes.stage) {
            theme.strong
        } else if self.planned_s > 0 && used_s > self.planned_s {
            theme.warning
        } else {
            theme.text
        };
        let used = if self.stages.is_empty() {
            String::new()
        } else {
            time(used_s)
        };
        agenda_line(&self.name, &self.planned, &used, style)
    }
}

/// Returns the planned time in seconds and the lines of the agenda: the parts of the chosen agenda, or else the stages. Each line has the
/// time that its stages have used.
fn agenda(
    chosen: Option<&Agenda>,
    notes: &SpeakerNotes,
    theme: &Theme,
) -> (u64, Vec<Line<'static>>) {
    let mut rows = Vec::new();
    let heading;
    let planned;
    let planned_s;
    if let Some(agenda) = chosen {
        let mut begin = 0;
        for part in &agenda.parts {
            let end = begin + part.minutes;
            rows.push(AgendaRow {
                name: part.topic.clone(),
                planned_s: 60 * u64::from(part.minutes),
                planned: format!("{begin}-{end}"),
                stages: &part.stages,
            });
            begin = end;
        }
        heading = "minutes";
        planned = format!("0-{}", agenda.minutes);
        planned_s = 60 * u64::from(agenda.minutes);
    } else {
        for stage in &notes.agenda {
            rows.push(AgendaRow {
                name: format!("{} {}", stage.number, stage.title),
                planned_s: stage.planned_s,
                planned: time(stage.planned_s),
                stages: std::slice::from_ref(&stage.number),
            });
        }
        heading = "planned";
        planned_s = rows.iter().map(|row| row.planned_s).sum();
        planned = time(planned_s);
    }
    let remaining = time_left(planned_s, notes);
    let mut lines = vec![agenda_line(&remaining, heading, "used", theme.dim)];
    lines.extend(rows.iter().map(|row| row.line(notes, theme)));
    let used = time(notes.used_in_all_s());
    lines.push(agenda_line("all", &planned, &used, theme.strong));
    (planned_s, lines)
}

/// Returns the minutes of the planned time that are left, or by which it is exceeded, in words.
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
    use crate::course::AgendaPart;

    fn screen(
        (columns, rows): (u16, u16),
        notes: &SpeakerNotes,
        agenda: Option<&Agenda>,
    ) -> String {
        let theme = Theme::plain(Markers::Braille);
        let mut terminal = Terminal::new(TestBackend::new(columns, rows)).expect("a terminal");
        terminal
            .draw(|frame| draw(frame, notes, agenda, "14:05", &theme))
            .expect("drawn");
        terminal.backend().to_string()
    }

    #[test]
    fn the_speaker_sees_a_frozen_screen_and_the_remaining_time_at_every_size() {
        let stage = |number| AgendaItem {
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
            agenda: [1, 2, 3].map(stage).to_vec(),
            ..SpeakerNotes::default()
        };
        let part = |minutes, topic: &str, stages: &[u32]| AgendaPart {
            minutes,
            topic: topic.to_owned(),
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
            let has_agenda = size.1 > 16;
            for part in ["10-30", "10:00", "set-up"] {
                let is_right = !has_agenda || text.contains(part);
                assert!(is_right, "{part} at {size:?}:\n{text}");
            }
        }
        assert!(screen((120, 36), &notes, None).contains("15 min left"));
        // Long notes wrap on the left of the agenda, so two blanks are before each of its lines.
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
