//! A beat of presenter mode fills the screen with one thing that the back row can read: a curve, the phases of a step, the kernels in
//! question, the pairs with their narrowing interval, one figure in large glyphs, or the choices of a vote.

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
use crate::course::lesson::plain;
use crate::course::placeholder::NOT_MEASURED;
use crate::course::save_file::letter;
use crate::course::{Beat, BeatChange, Stage, TextBlock};
use crate::panel::Panel;
use crate::tui::prose::{ProseWriter, filled_as_found, lines_as_found};
use crate::tui::surface::{height, take_bottom, take_left, take_top, widest};
use crate::tui::theme::Theme;
use crate::tui::votes::bars;
use crate::tui::{digits, drawing, keys, text};
use protocol::Pair;

/// Draws the beat. Returns how many lines it can scroll; only a panel of the workshop scrolls.
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

/// Returns the area without a margin on the left, right and top. Small areas have no margin.
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

/// Draws the first drawing of the pages about the cause in the middle. Where the drawing does not fit, the last hint stands there.
fn diagram(s: &mut Surface<'_, '_>) -> u16 {
    let (app, theme) = (s.app, s.theme);
    let Some(stage) = app.stage() else { return 0 };
    let mut writer = s.writer();
    let drawing = lesson::sections(LessonPage::Cause, stage)
        .flat_map(|section| &section.blocks)
        .find_map(|block| match block {
            TextBlock::Code { text, .. } => Some(text),
            _ => None,
        });
    for line in drawing.into_iter().flat_map(|text| text.lines()) {
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
        let shown = app.beat().map_or(0, |beat| beat.hints).max(1) as usize;
        let place = (app, theme, s.area.width);
        lines = match stage.hints.get(shown - 1) {
            Some(hint) => lines_as_found(place, ("", theme.dim), hint, theme.text),
            None => Vec::new(),
        };
    }
    s.put_centred(lines);
    0
}

/// Draws the first table of the lesson after the heading that contains these words.
fn table(s: &mut Surface<'_, '_>, heading: &str) -> u16 {
    let app = s.app;
    let is_heading = |block: &TextBlock| match block {
        TextBlock::Heading(_, words) => plain(words).contains(heading),
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
    let (app, theme) = (s.app, s.theme);
    let pair = match app.shown_pair() {
        Some(pair) if pair.n > 0 => pair,
        _ => {
            let text = "A and B warm up; then they run in turns";
            s.put(s.area, Line::styled(text, theme.dim));
            return 0;
        }
    };
    let rows = s.area.height / 3;
    large::headline(s, &format!("{:.2}x", pair.ratio), rows, theme.strong);
    let mut lines = cards::verdict(app, usize::from(s.area.width), theme);
    // The last line of the verdict has the looks, which are drawn below.
    lines.truncate(lines.len().saturating_sub(1).max(1));
    let gap = u16::from(s.area.height > 12);
    let area = take_top(&mut s.area, height(lines.len()) + gap);
    s.put(area, lines);
    if !pair.done {
        // A bar shows how far the next look is.
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
    let theme = s.theme;
    let known: Vec<(u32, f64, f64)> = pair
        .looks
        .iter()
        .filter_map(|look| Some((look.pairs, look.low?, look.high?)))
        .filter(|(_, low, high)| low <= high)
        .collect();
    let lowest = known.iter().map(|(_, low, _)| *low).fold(1.0, f64::min);
    let highest = known.iter().map(|(.., high)| *high).fold(1.0, f64::max);
    let span = (highest - lowest).max(0.01) * 1.1;
    let from = lowest - 0.05 * span;
    let room = s.area.width.saturating_sub(12 + 18);
    if room < 10 || known.is_empty() {
        return;
    }
    let cell = |value: f64| (((value - from) / span * f64::from(room)) as u16).min(room - 1);
    let thick = (s.area.height / known.len().max(1) as u16).clamp(1, 3);
    for (pairs, low, high) in known {
        let mut area = take_top(&mut s.area, thick);
        let words = take_left(&mut area, 12);
        s.put(words, Line::styled(format!("{pairs:>5} pairs "), theme.dim));
        let (begin, end, one) = (cell(low), cell(high), cell(1.0));
        let bar: Line<'static> = (0..room)
            .map(|x| {
                if (begin..=end).contains(&x) {
                    Span::styled(theme.symbols.fills[0], theme.b)
                } else if x == one {
                    Span::styled(theme.symbols.vertical, theme.strong)
                } else {
                    Span::styled(" ", theme.text)
                }
            })
            .collect();
        let rows = area.height.saturating_sub(u16::from(thick > 2));
        let mut lines = vec![bar; usize::from(rows.max(1))];
        lines[0].push_span(Span::styled(format!(" {low:.3}–{high:.3}"), theme.text));
        s.put(area, lines);
    }
    if s.area.height > 0 {
        let indent = usize::from(12 + cell(1.0)).saturating_sub(13);
        let text = format!("{}equally fast ^", " ".repeat(indent));
        s.put(s.area, Line::styled(text, theme.dim));
    }
}

/// Draws the question and its choices over the whole screen. After the vote each choice has bars, and the answer its reason.
fn choices(s: &mut Surface<'_, '_>, stage: &Stage) {
    let (app, theme) = (s.app, s.theme);
    s.area = inset(s.area);
    let question = &stage.prediction;
    let answered = app.presenter.answer_shown(app.lesson.learner.at);
    let written = |columns: u16, text: &str, style: Style| {
        lines_as_found((app, theme, columns), ("", theme.dim), text, style)
    };
    let mut rest = s.area;
    let mut prompt = written(rest.width, &question.prompt, theme.heading);
    let tally = app.tally();
    if tally.is_some_and(|tally| !tally.open && tally.rounds.len() > 1) {
        let text = "left: the first vote; right: the one after the discussion";
        prompt.extend(written(rest.width, text, theme.dim));
    }
    let area = take_top(&mut rest, height(prompt.len()));
    s.put(area, prompt);
    if answered && let Some(reason) = reason_of_answer(app) {
        let mut writer = ProseWriter::new(app, theme, rest.width);
        writer.widest = writer.columns;
        writer.body(&reason, theme.text);
        // The choices keep three rows each.
        let most = rest
            .height
            .saturating_sub(3 * height(question.choices.len()));
        let area = take_bottom(&mut rest, height(writer.lines.len()).min(most.max(1)));
        s.put(area, writer.lines);
    }
    // The votes are shown after the vote is closed.
    let closed = tally.filter(|tally| !tally.open);
    let all = height(question.choices.len()).max(1);
    // Letters are large where every choice has room for a large letter beside its words.
    let largest = digits::size("A", 16, (rest.height / all).saturating_sub(1));
    let columns = rest.width.saturating_sub(4 * largest + 2);
    // Below the words stand a gap and, once the vote is closed, a bar of two rows.
    let below = 1 + 2 * u16::from(closed.is_some());
    let rows_of = |(large, plain): &(Vec<String>, String)| {
        digits::rows_of(large.len()) + u16::from(!plain.is_empty())
    };
    // Words are large where those of every choice fit: all words, or those before a colon with the others below in plain letters.
    let large = [false, true].into_iter().find_map(|splits| {
        let mut parts = Vec::new();
        for choice in &question.choices {
            let words = filled_as_found(app, choice).unwrap_or_else(|| choice.clone());
            let (head, plain) = match words.split_once(": ") {
                Some((head, plain)) if splits => (format!("{head}:"), plain.to_owned()),
                _ => (words, String::new()),
            };
            if text::width(&plain) > usize::from(columns) {
                return None;
            }
            parts.push((digits::wrap(head.trim(), columns)?, plain));
        }
        let rows: u16 = parts.iter().map(|part| rows_of(part) + below).sum();
        (rows <= rest.height + 1).then_some(parts)
    });
    let large_rows = |choice: usize| large.as_ref().map_or(0, |parts| rows_of(&parts[choice]));
    let rows = (0..question.choices.len()).map(large_rows);
    let spare = rest.height.saturating_sub(rows.clone().sum()) / all;
    let size = largest.min(digits::size("A", 16, rows.min().unwrap_or(0) + spare));
    for (at, words) in question.choices.iter().enumerate() {
        let each = large_rows(at) + spare;
        let mut area = take_top(&mut rest, each);
        let mut left = take_left(&mut area, if size > 0 { 4 * size + 2 } else { 3 });
        let style = if !answered {
            theme.strong
        } else if at == question.answer {
            theme.good.add_modifier(Modifier::BOLD)
        } else {
            theme.dim
        };
        let mut lines = match &large {
            Some(parts) => {
                let (large, plain) = &parts[at];
                let mut lines = vec![Line::default(); digits::rows_of(large.len()).into()];
                if !plain.is_empty() {
                    lines.push(Line::styled(plain.clone(), style));
                }
                lines
            }
            None => written(area.width, words, style),
        };
        if answered && at == question.answer && large.is_none() {
            let mark = format!("{} ", theme.symbols.good);
            lines[0].spans.insert(0, Span::styled(mark, theme.good));
        }
        if let Some(tally) = closed {
            let columns = usize::from(area.width) / (2 * tally.rounds.len().max(1));
            let bars = bars(tally, at, columns.saturating_sub(5), theme);
            // The bars are as thick as there is room for; the numbers, every second span, stand in the first row only.
            let room = each.saturating_sub(height(lines.len()) + 1).clamp(1, 5);
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
            lines.push(Line::from(bars));
            lines.extend(vec![without_numbers; usize::from(room - 1)]);
        }
        let tall = digits::rows(size).max(height(lines.len()));
        let above = each.saturating_sub(tall).div_ceil(2);
        take_top(&mut left, above);
        if size == 0 {
            s.put(left, Line::styled(format!(" {}", letter(at)), theme.key));
        } else {
            let corner = (left.x, left.y);
            let buffer = s.frame.buffer_mut();
            digits::draw(buffer, corner, &letter(at), size, theme.key);
        }
        take_top(&mut area, above + (tall - height(lines.len())) / 2);
        s.put(area, lines);
        if let Some(parts) = &large {
            let corner = (area.x, area.y);
            digits::draw_lines(s.frame.buffer_mut(), corner, &parts[at].0, style);
        }
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
    let room = columns.saturating_sub(text::width_of(&right) + 1);
    let left = text::left(&text::cut(&place, room), room + 1);
    let mut spans = vec![Span::styled(left, theme.dim)];
    spans.append(&mut right);
    Some(Line::from(spans))
}

/// Returns the notice at the end of the bottom line that the screen is frozen.
pub fn frozen(app: &App, theme: &Theme) -> Line<'static> {
    let key = keys::label(Action::FreezeScreen, app);
    Line::styled(format!(" frozen: {key} goes on "), theme.badge).right_aligned()
}
