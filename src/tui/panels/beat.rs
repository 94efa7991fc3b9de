//! A beat of presenter mode fills the screen with one thing that the back row can read: a curve, the phases of a step, some kernels, the
//! pairs with their narrowing interval, one figure in large glyphs, or the choices of a vote.
//!
//! ```text
//!  ▀█   ▀█  █ █
//!   █    █  ▀▀█ ▀▄▀          the ratio of the pairs
//!  ▀▀▀ ▀ ▀▀▀  ▀ ▀ ▀
//!  ✓ B is faster  1.138x pair by pair  95 %: 1.083–1.207
//!
//!     10 pairs   ████████████████████████████████ 0.991–1.262
//!     20 pairs    │       ██████████████████ 1.083–1.207
//!    equally fast ^
//!
//! 4 The busy kernel  7/7                                 cpu  PgDn PgUp esc
//! ```

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::large::{self, Surface};
use super::{cards, lesson};
use crate::app::beats::{BeatState, VoteState};
use crate::app::figures::{figures, reason_of_answer};
use crate::app::learner::LessonPage;
use crate::app::{Action, App, RunState};
use crate::class::board::VoteTally;
use crate::course::lesson::plain;
use crate::course::placeholder::NOT_MEASURED;
use crate::course::save_file::letter;
use crate::course::{Beat, BeatChange, Question, Stage, TextBlock};
use crate::panel::Panel;
use crate::tui::prose::{filled_as_found, lines_as_found};
use crate::tui::surface::{height, take_bottom, take_left, take_top, widest};
use crate::tui::theme::Theme;
use crate::tui::votes::bars;
use crate::tui::{digits, drawing, keys, text};
use protocol::Pair;

/// Draws the beat, or the panel in its box where no beat is presented. Returns how many lines it can scroll.
pub fn draw(panel: Panel, area: Rect, app: &App, theme: &Theme, frame: &mut Frame<'_>) -> u16 {
    let (Some(beat), Some(cue), Some(stage)) = (app.beat(), app.cue(), app.stage()) else {
        return super::draw(panel, area, app, theme, frame);
    };
    if beat.panel != panel {
        // The presenter has opened another panel.
        return super::draw(panel, area, app, theme, frame);
    }
    let s = &mut Surface {
        frame,
        area,
        app,
        theme,
    };
    if beat.vote == VoteState::Open && panel == Panel::Lesson {
        choices(s, stage);
        return 0;
    }
    s.area = inset(s.area);
    figure(s, &cue);
    body(s, beat, &cue)
}

/// Returns the area inside a margin on the left, right and top. Small areas have no margin.
fn inset(area: Rect) -> Rect {
    let x = if area.width >= 40 { 2 } else { 0 };
    let y = u16::from(area.height >= 24);
    Rect::new(area.x + x, area.y + y, area.width - 2 * x, area.height - y)
}

/// Draws the beat's figure in large glyphs, if it has one that is known.
fn figure(s: &mut Surface<'_, '_>, cue: &Beat) {
    let Some(text) = filled_as_found(s.app, &cue.large) else {
        return;
    };
    if !cue.large.is_empty() && !text.contains(NOT_MEASURED) {
        let rows = s.area.height * 2 / 5;
        large::headline(s, &text, rows, s.theme.strong);
    }
}

/// Draws what the beat shows below its figure. Returns how many lines it can scroll.
fn body(s: &mut Surface<'_, '_>, beat: BeatState, cue: &Beat) -> u16 {
    match beat.panel {
        panel if s.app.reading().withholds(panel.into_str()) => {
            super::draw(panel, s.area, s.app, s.theme, s.frame)
        }
        _ if beat.pairs => pairs(s),
        Panel::Lesson if cue.does == BeatChange::Hint => diagram(s),
        Panel::Lesson if !cue.row.is_empty() => table(s, &cue.row),
        panel => large::draw(s, panel),
    }
}

/// Draws the first drawing of the pages about the cause in the middle, or the last hint where the drawing does not fit.
fn diagram(s: &mut Surface<'_, '_>) -> u16 {
    let app = s.app;
    let theme = s.theme;
    let Some(stage) = app.stage() else { return 0 };
    let mut writer = s.writer();
    let drawing = lesson::sections(LessonPage::Cause, stage)
        .flat_map(|section| &section.blocks)
        .find_map(|block| match block {
            TextBlock::Code { text, .. } => Some(text.as_str()),
            _ => None,
        });
    for line in drawing.unwrap_or_default().lines() {
        writer.code("", line);
    }
    let mut lines = writer.lines;
    let drawn: Vec<String> = lines.iter().map(ToString::to_string).collect();
    let fits = widest(&lines) <= s.area.width && height(lines.len()) <= s.area.height;
    if fits && !drawn.is_empty() {
        lines = drawing::stretched(&drawn, (s.area.width, s.area.height))
            .into_iter()
            .map(|line| Line::styled(line, theme.code))
            .collect();
    } else {
        let hints = app.beat().map_or(0, |beat| beat.hints).max(1) as usize;
        let place = (app, theme, s.area.width);
        lines = match stage.hints.get(hints - 1) {
            Some(hint) => lines_as_found(place, ("", theme.dim), hint, theme.text),
            None => Vec::new(),
        };
    }
    s.put_centred(lines);
    0
}

/// Draws the first table of the lesson after the heading that contains the text `heading`.
fn table(s: &mut Surface<'_, '_>, heading: &str) -> u16 {
    let app = s.app;
    let is_heading = |block: &TextBlock| match block {
        TextBlock::Heading(_, spans) => plain(spans).contains(heading),
        _ => false,
    };
    let table = app
        .stage()
        .into_iter()
        .flat_map(|stage| &stage.lesson.sections)
        .flat_map(|section| &section.blocks)
        .skip_while(|block| !is_heading(block))
        .find(|block| matches!(block, TextBlock::Table { .. }));
    let Some(table) = table else {
        return super::draw(Panel::Lesson, s.area, s.app, s.theme, s.frame);
    };
    let figures = figures(app);
    let mut writer = s.writer();
    writer.figures = figures.as_ref();
    writer.blocks(std::slice::from_ref(table));
    s.put_centred(writer.lines);
    0
}

/// Draws the ratio in large glyphs and its interval at each look.
fn pairs(s: &mut Surface<'_, '_>) -> u16 {
    let theme = s.theme;
    let pair = match s.app.shown_pair() {
        Some(pair) if pair.n > 0 => pair,
        _ => {
            let text = "A and B warm up; then they run in turns";
            s.put(s.area, Line::styled(text, theme.dim));
            return 0;
        }
    };
    let rows = s.area.height / 3;
    large::headline(s, &format!("{:.2}x", pair.ratio), rows, theme.strong);
    let mut lines = cards::verdict(s.app, usize::from(s.area.width), theme);
    // The last line of the verdict has the looks, which are drawn below.
    lines.truncate(lines.len().saturating_sub(1).max(1));
    let gap = u16::from(s.area.height > 12);
    let area = take_top(&mut s.area, height(lines.len()) + gap);
    s.put(area, lines);
    if !pair.done {
        // A bar fills until the next look.
        let mut area = take_top(&mut s.area, 3);
        area.height = area.height.saturating_sub(1);
        let share = f64::from(pair.n) / f64::from(pair.wanted.max(1));
        let bar = Line::styled(theme.symbols.bar(share, area.width), theme.dim);
        s.put(area, vec![bar; usize::from(area.height)]);
    }
    looks(s, pair);
    0
}

/// Draws a row for each look: its interval on a common scale, with a mark at 1, where A and B are equally fast.
fn looks(s: &mut Surface<'_, '_>, pair: &Pair) {
    /// The columns of the number of pairs before a bar.
    const BEFORE: u16 = 12;
    /// The columns of the interval after a bar.
    const AFTER: u16 = 18;
    let theme = s.theme;
    let intervals: Vec<(u32, f64, f64)> = pair
        .looks
        .iter()
        .filter_map(|look| Some((look.pairs, look.low?, look.high?)))
        .filter(|(_, low, high)| low <= high)
        .collect();
    let cells = s.area.width.saturating_sub(BEFORE + AFTER);
    if cells < 10 || intervals.is_empty() {
        return;
    }
    let lowest = intervals.iter().map(|(_, low, _)| *low).fold(1.0, f64::min);
    let highest = intervals.iter().map(|(.., high)| *high).fold(1.0, f64::max);
    let span = (highest - lowest).max(0.01) * 1.1;
    let first = lowest - 0.05 * span;
    let cell_of = |value: f64| (((value - first) / span * f64::from(cells)) as u16).min(cells - 1);
    let equal = cell_of(1.0);
    let thickness = (s.area.height / intervals.len() as u16).clamp(1, 3);
    for (pairs, low, high) in intervals {
        let mut area = take_top(&mut s.area, thickness);
        let label = take_left(&mut area, BEFORE);
        s.put(label, Line::styled(format!("{pairs:>5} pairs "), theme.dim));
        let filled = cell_of(low)..=cell_of(high);
        let bar: Line<'static> = (0..cells)
            .map(|cell| {
                if filled.contains(&cell) {
                    Span::styled(theme.symbols.fills[0], theme.b)
                } else if cell == equal {
                    Span::styled(theme.symbols.vertical, theme.strong)
                } else {
                    Span::styled(" ", theme.text)
                }
            })
            .collect();
        let rows = area.height.saturating_sub(u16::from(thickness > 2));
        let mut lines = vec![bar; usize::from(rows.max(1))];
        lines[0].push_span(Span::styled(format!(" {low:.3}–{high:.3}"), theme.text));
        s.put(area, lines);
    }
    if s.area.height > 0 {
        const LABEL: &str = "equally fast ";
        let indent = usize::from(BEFORE + equal).saturating_sub(LABEL.len());
        let text = format!("{}{LABEL}^", " ".repeat(indent));
        s.put(s.area, Line::styled(text, theme.dim));
    }
}

/// Draws the question and its choices over the whole screen. After the vote each choice has bars, and the answer its reason.
fn choices(s: &mut Surface<'_, '_>, stage: &Stage) {
    s.area = inset(s.area);
    prompt(s, stage);
    let app = s.app;
    let question = &stage.prediction;
    let answered = app.presenter.answer_shown(app.lesson.learner.at);
    if answered && let Some(reason) = reason_of_answer(app) {
        let mut writer = s.writer();
        writer.widest = writer.columns;
        writer.body(&reason, s.theme.text);
        // The choices keep three rows each.
        let of_choices = 3 * height(question.choices.len());
        let most = s.area.height.saturating_sub(of_choices).max(1);
        let area = take_bottom(&mut s.area, height(writer.lines.len()).min(most));
        s.put(area, writer.lines);
    }
    // The votes are shown after the vote is closed.
    let votes = app.tally().filter(|tally| !tally.open);
    let count = height(question.choices.len()).max(1);
    // Letters are large where every choice has room for a large letter beside its text.
    let max_size = digits::size("A", 16, (s.area.height / count).saturating_sub(1));
    let columns = s.area.width.saturating_sub(4 * max_size + 2);
    // Below the text of a choice stand a gap and, once the vote is closed, a bar of two rows.
    let below = 1 + 2 * u16::from(votes.is_some());
    let texts = large_texts(question, app, columns, s.area.height, below);
    let large_rows = |choice: usize| texts.as_ref().map_or(0, |texts| texts[choice].rows());
    let rows = (0..question.choices.len()).map(large_rows);
    let spare = s.area.height.saturating_sub(rows.clone().sum()) / count;
    let letter_size = max_size.min(digits::size("A", 16, rows.min().unwrap_or(0) + spare));
    for (number, text) in question.choices.iter().enumerate() {
        let is_answer = answered && number == question.answer;
        let style = if is_answer {
            s.theme.good.add_modifier(Modifier::BOLD)
        } else if answered {
            s.theme.dim
        } else {
            s.theme.strong
        };
        let choice = Choice {
            number,
            text,
            style,
            is_answer,
            large: texts.as_ref().map(|texts| &texts[number]),
            letter_size,
            votes,
        };
        choice.draw(s, large_rows(number) + spare);
    }
}

/// Draws the question at the top of the area and takes its rows off the area.
fn prompt(s: &mut Surface<'_, '_>, stage: &Stage) {
    let prompt = &stage.prediction.prompt;
    let mut lines = course_text(s, s.area.width, prompt, s.theme.heading);
    let tally = s.app.tally();
    if tally.is_some_and(|tally| !tally.open && tally.rounds.len() > 1) {
        let text = "left: the first vote; right: the one after the discussion";
        lines.extend(course_text(s, s.area.width, text, s.theme.dim));
    }
    let area = take_top(&mut s.area, height(lines.len()));
    s.put(area, lines);
}

/// Returns the lines of a text of the course, with the figures of the run as it was found.
fn course_text(s: &Surface<'_, '_>, columns: u16, text: &str, style: Style) -> Vec<Line<'static>> {
    lines_as_found((s.app, s.theme, columns), ("", s.theme.dim), text, style)
}

/// The text of a choice in large letters.
struct LargeText {
    lines: Vec<String>,
    /// A text below the large lines, in plain letters. May be empty.
    plain: String,
}

impl LargeText {
    fn rows(&self) -> u16 {
        digits::rows_of(self.lines.len()) + u16::from(!self.plain.is_empty())
    }
}

/// Returns the texts of all choices in large letters: whole, or the words before a colon with the others below in plain letters. `None` if
/// they do not all fit into `columns` and, with the rows `below` each, into `height`.
fn large_texts(
    question: &Question,
    app: &App,
    columns: u16,
    height: u16,
    below: u16,
) -> Option<Vec<LargeText>> {
    let texts_of = |splits: bool| {
        let mut texts = Vec::new();
        for choice in &question.choices {
            let text = filled_as_found(app, choice).unwrap_or_else(|| choice.clone());
            let (large, plain) = match text.split_once(": ") {
                Some((head, plain)) if splits => (format!("{head}:"), plain.to_owned()),
                _ => (text, String::new()),
            };
            if text::width(&plain) > usize::from(columns) {
                return None;
            }
            let lines = digits::wrap(large.trim(), columns)?;
            texts.push(LargeText { lines, plain });
        }
        let rows: u16 = texts.iter().map(|text| text.rows() + below).sum();
        (rows <= height + 1).then_some(texts)
    };
    texts_of(false).or_else(|| texts_of(true))
}

/// A choice as it is drawn.
struct Choice<'a> {
    /// The number of the choice, from 0.
    number: usize,
    text: &'a str,
    style: Style,
    /// True for the right choice, once the answer is shown.
    is_answer: bool,
    /// The text in large letters, if the texts of all choices fit so.
    large: Option<&'a LargeText>,
    /// The size of the large letter before the text. 0 for a plain letter.
    letter_size: u16,
    /// The votes, once the vote is closed.
    votes: Option<&'a VoteTally>,
}

impl Choice<'_> {
    /// Draws the choice into the top `rows` rows of the area and takes them off the area: its letter, its text and its votes.
    fn draw(&self, s: &mut Surface<'_, '_>, rows: u16) {
        let theme = s.theme;
        let size = self.letter_size;
        let mut area = take_top(&mut s.area, rows);
        let mut left = take_left(&mut area, if size > 0 { 4 * size + 2 } else { 3 });
        let mut lines = self.lines(s, area.width);
        if let Some(votes) = self.votes {
            // The bars are as thick as there is room for.
            let rows_left = rows.saturating_sub(height(lines.len()) + 1).clamp(1, 5);
            lines.extend(self.bars(votes, area.width, rows_left, theme));
        }
        let text_rows = height(lines.len());
        let all_rows = digits::rows(size).max(text_rows);
        let above = rows.saturating_sub(all_rows).div_ceil(2);
        take_top(&mut left, above);
        let letter = letter(self.number);
        if size == 0 {
            s.put(left, Line::styled(format!(" {letter}"), theme.key));
        } else {
            let buffer = s.frame.buffer_mut();
            digits::draw(buffer, (left.x, left.y), &letter, size, theme.key);
        }
        take_top(&mut area, above + (all_rows - text_rows) / 2);
        s.put(area, lines);
        if let Some(text) = self.large {
            let buffer = s.frame.buffer_mut();
            digits::draw_lines(buffer, (area.x, area.y), &text.lines, self.style);
        }
    }

    /// Returns the lines of the text. Lines in large letters are empty, because the letters are drawn over them.
    fn lines(&self, s: &Surface<'_, '_>, columns: u16) -> Vec<Line<'static>> {
        if let Some(text) = self.large {
            let mut lines = vec![Line::default(); digits::rows_of(text.lines.len()).into()];
            if !text.plain.is_empty() {
                lines.push(Line::styled(text.plain.clone(), self.style));
            }
            return lines;
        }
        let mut lines = course_text(s, columns, self.text, self.style);
        if self.is_answer {
            let mark = format!("{} ", s.theme.symbols.good);
            lines[0].spans.insert(0, Span::styled(mark, s.theme.good));
        }
        lines
    }

    /// Returns the bars of the votes in `rows` rows. The numbers of votes stand in the first row only.
    fn bars(
        &self,
        votes: &VoteTally,
        columns: u16,
        rows: u16,
        theme: &Theme,
    ) -> impl Iterator<Item = Line<'static>> {
        let width = usize::from(columns) / (2 * votes.rounds.len().max(1));
        let bars = bars(votes, self.number, width.saturating_sub(5), theme);
        // Every second span is a number.
        let without_numbers: Line<'static> = bars
            .iter()
            .enumerate()
            .map(|(index, span)| {
                if index % 2 == 0 {
                    span.clone()
                } else {
                    Span::raw(" ".repeat(span.width()))
                }
            })
            .collect();
        let others = std::iter::repeat_n(without_numbers, usize::from(rows - 1));
        std::iter::once(Line::from(bars)).chain(others)
    }
}

/// Returns the bottom line of a beat: the place in the course on the left, the run and the presenter's keys on the right. `None` where no
/// beat is presented.
pub fn foot(app: &App, theme: &Theme, columns: u16) -> Option<Line<'static>> {
    let (beat, stage) = app.beat().zip(app.stage())?;
    let columns = usize::from(columns);
    let dots = format!("{}/{}", beat.at + 1, beat.of);
    let place = format!(" {} {}  {dots}", stage.number, stage.title);
    let state = match &app.shown_run().state {
        RunState::Running | RunState::Finished | RunState::Paused | RunState::Pausing => app
            .shown_run()
            .device()
            .map_or(String::new(), |device| device.kind.clone()),
        state => state.into_str().to_owned(),
    };
    let keys = [Action::NextBeat, Action::PreviousBeat, Action::Present]
        .map(|action| keys::label(action, app))
        .join(" ");
    let mut right = vec![Span::styled(format!("{state}  "), theme.text)];
    right.push(match &app.view.unsaved {
        None => Span::styled(format!("{keys} "), theme.dim),
        Some(why) => {
            let warning = format!("{} not saved: {why} ", theme.symbols.warning);
            Span::styled(text::cut(&warning, columns * 2 / 3), theme.bad)
        }
    });
    let free = columns.saturating_sub(text::width_of(&right) + 1);
    let left = text::left(&text::cut(&place, free), free + 1);
    let mut spans = vec![Span::styled(left, theme.dim)];
    spans.append(&mut right);
    Some(Line::from(spans))
}

/// Returns the notice at the end of the bottom line that the screen is frozen.
pub fn frozen(app: &App, theme: &Theme) -> Line<'static> {
    let key = keys::label(Action::FreezeScreen, app);
    Line::styled(format!(" frozen: {key} goes on "), theme.badge).right_aligned()
}
