//! A beat of presenter mode, for the back row: one thing fills the screen. A curve, the phases of a step, the kernels in question,
//! the pairs with their narrowing interval, one figure in large glyphs, or the choices of a vote.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::large::{self, Surface};
use super::{cards, lesson};
use crate::app::beats::{BeatState, VoteState};
use crate::app::figures::{figures, reason_of_answer};
use crate::app::study::LessonPage;
use crate::app::{Action, App, RunState};
use crate::course::lesson::plain;
use crate::course::placeholder::NOT_MEASURED;
use crate::course::save_file::letter;
use crate::course::{Beat, BeatChange, Stage, TextBlock};
use crate::panel::Panel;
use crate::tui::prose::{ProseWriter, filled_as_found, told_as_found};
use crate::tui::surface::{height, take_bottom, take_left, take_top, widest};
use crate::tui::theme::Theme;
use crate::tui::votes::bars;
use crate::tui::{digits, drawing, keys, text};
use protocol::Pair;

/// Draws the beat; none of it scrolls, unless it is a panel of the workshop.
pub fn draw(panel: Panel, area: Rect, app: &App, theme: &Theme, frame: &mut Frame<'_>) -> u16 {
    let shown = app.beat().zip(app.cue()).zip(app.stage());
    let Some(((beat, cue), stage)) = shown.filter(|((beat, _), _)| beat.panel == panel) else {
        // The presenter has opened another panel.
        return super::draw(panel, area, app, theme, frame);
    };
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

/// A panel as the workshop shows it.
fn workshop(panel: Panel, s: &mut Surface<'_, '_>) -> u16 {
    super::draw(panel, s.area, s.app, s.theme, s.frame)
}

/// A little room on all sides, where there is any.
fn inset(area: Rect) -> Rect {
    let (x, y) = (
        u16::from(area.width >= 40) * 2,
        u16::from(area.height >= 24),
    );
    Rect::new(area.x + x, area.y + y, area.width - 2 * x, area.height - y)
}

/// The beat's figure in large glyphs, where it is known.
fn figure(s: &mut Surface<'_, '_>, cue: &Beat) {
    let Some(said) = filled_as_found(s.app, &cue.large) else {
        return;
    };
    if !cue.large.is_empty() && !said.contains(NOT_MEASURED) {
        let rows = s.area.height * 2 / 5;
        large::headline(s, &said, rows, s.theme.strong);
    }
}

fn body(s: &mut Surface<'_, '_>, beat: BeatState, cue: &Beat) -> u16 {
    match beat.panel {
        panel if s.app.reading().withholds(panel.into_str()) => workshop(panel, s),
        _ if beat.pairs => pairs(s),
        Panel::Lesson if cue.does == BeatChange::Hint => diagram(s),
        Panel::Lesson if !cue.row.is_empty() => table(s, &cue.row),
        panel => large::draw(s, panel),
    }
}

/// The first drawing of what the cause is, in the middle; where it does not fit, the last hint.
fn diagram(s: &mut Surface<'_, '_>) -> u16 {
    let (app, theme) = (s.app, s.theme);
    let Some(stage) = app.stage() else { return 0 };
    let why = lesson::sections(LessonPage::Cause, stage);
    let mut blocks = why.flat_map(|section| &section.blocks);
    let mut w = s.writer();
    if let Some(TextBlock::Code { text, .. }) =
        blocks.find(|block| matches!(block, TextBlock::Code { .. }))
    {
        text.lines().for_each(|line| w.code("", line));
    }
    let mut lines = w.lines;
    let drawn: Vec<String> = lines.iter().map(ToString::to_string).collect();
    let whole = widest(&lines) <= s.area.width && height(lines.len()) <= s.area.height;
    if whole && !drawn.is_empty() {
        let stretched = drawing::stretched(&drawn, (s.area.width, s.area.height));
        let code = |line| Line::styled(line, theme.code);
        lines = stretched.into_iter().map(code).collect();
    } else {
        let shown = app.beat().map_or(0, |beat| beat.hints).max(1) as usize;
        let hint = stage.hints.get(shown - 1);
        let place = (app, theme, s.area.width);
        let told = |hint: &String| told_as_found(place, ("", theme.dim), hint, theme.text);
        lines = hint.map_or_else(Vec::new, told);
    }
    s.put_centred(lines);
    0
}

/// The table in the lesson below the heading with these words.
fn table(s: &mut Surface<'_, '_>, heading: &str) -> u16 {
    let app = s.app;
    let sections = app.stage().into_iter().flat_map(|it| &it.lesson.sections);
    let blocks = sections.flat_map(|it| &it.blocks);
    let begins = |it: &&TextBlock| matches!(it, TextBlock::Heading(_, words) if plain(words).contains(heading));
    let mut below = blocks.skip_while(|it| !begins(it));
    let Some(table) = below.find(|it| matches!(it, TextBlock::Table { .. })) else {
        return workshop(Panel::Lesson, s);
    };
    let now = figures(app);
    let mut w = s.writer();
    w.figures = now.as_ref();
    w.blocks(std::slice::from_ref(table));
    s.put_centred(w.lines);
    0
}

/// The ratio in large glyphs, and its interval at each look, narrowing.
fn pairs(s: &mut Surface<'_, '_>) -> u16 {
    let (app, theme) = (s.app, s.theme);
    let Some(pair) = app.shown_pair().filter(|pair| pair.n > 0) else {
        let said = Line::styled("A and B warm up; then they run in turns", theme.dim);
        s.put(s.area, said);
        return 0;
    };
    let rows = s.area.height / 3;
    large::headline(s, &format!("{:.2}x", pair.ratio), rows, theme.strong);
    let lines = cards::verdict(app, usize::from(s.area.width), theme);
    // The last line of the verdict has the looks, which are drawn here.
    let kept = lines.len().saturating_sub(1).max(1);
    let lines: Vec<Line<'static>> = lines.into_iter().take(kept).collect();
    let gap = u16::from(s.area.height > 12);
    let area = take_top(&mut s.area, height(lines.len()) + gap);
    s.put(area, lines);
    if !pair.done {
        // How far the next look is.
        let mut area = take_top(&mut s.area, 3);
        area.height = area.height.saturating_sub(1);
        let share = f64::from(pair.n) / f64::from(pair.wanted.max(1));
        let bar = Line::styled(theme.symbols.bar(share, area.width), theme.dim);
        s.put(area, vec![bar; usize::from(area.height)]);
    }
    looks(s, pair);
    0
}

/// A row for each look: its interval on one scale, with a mark at 1, where neither is faster.
fn looks(s: &mut Surface<'_, '_>, pair: &Pair) {
    let theme = s.theme;
    let looks = pair.looks.iter();
    let known = looks.filter_map(|look| Some((look.pairs, look.low?, look.high?)));
    let known: Vec<(u32, f64, f64)> = known.filter(|(_, low, high)| low <= high).collect();
    let low = known.iter().map(|it| it.1).fold(1.0, f64::min);
    let high = known.iter().map(|it| it.2).fold(1.0, f64::max);
    let span = (high - low).max(0.01) * 1.1;
    let from = low - 0.05 * span;
    let room = s.area.width.saturating_sub(12 + 18);
    if room < 10 || known.is_empty() {
        return;
    }
    let cell = |value: f64| (((value - from) / span * f64::from(room)) as u16).min(room - 1);
    let thick = (s.area.height / known.len().max(1) as u16).clamp(1, 3);
    for (n, low, high) in known {
        let mut area = take_top(&mut s.area, thick);
        let words = take_left(&mut area, 12);
        s.put(words, Line::styled(format!("{n:>5} pairs "), theme.dim));
        let (begin, end, one) = (cell(low), cell(high), cell(1.0));
        let spans = (0..room).map(|x| match x {
            _ if (begin..=end).contains(&x) => Span::styled(theme.symbols.fills[0], theme.b),
            _ if x == one => Span::styled(theme.symbols.vertical, theme.strong),
            _ => Span::styled(" ", theme.text),
        });
        let bar: Line<'static> = spans.collect();
        let rows = area.height.saturating_sub(u16::from(thick > 2));
        let mut lines = vec![bar; usize::from(rows.max(1))];
        lines[0].push_span(Span::styled(format!(" {low:.3}–{high:.3}"), theme.text));
        s.put(area, lines);
    }
    if s.area.height > 0 {
        let at = usize::from(12 + cell(1.0)).saturating_sub(10);
        let said = format!("{}equally fast ^", " ".repeat(at.saturating_sub(3)));
        s.put(s.area, Line::styled(said, theme.dim));
    }
}

/// The question, and its choices over the whole screen.
fn choices(s: &mut Surface<'_, '_>, stage: &Stage) {
    let (app, theme) = (s.app, s.theme);
    s.area = inset(s.area);
    let question = &stage.prediction;
    let answered = app.presenter.answer_shown(app.lesson.study.at);
    let written = |columns: u16, what: &str, style: Style| {
        told_as_found((app, theme, columns), ("", theme.dim), what, style)
    };
    let mut rest = s.area;
    let mut prompt = written(rest.width, &question.prompt, theme.heading);
    let tally = app.tally();
    if tally.is_some_and(|tally| !tally.open && tally.rounds.len() > 1) {
        let said = "left: the first vote; right: the one after the discussion";
        prompt.extend(written(rest.width, said, theme.dim));
    }
    let area = take_top(&mut rest, height(prompt.len()));
    s.put(area, prompt);
    let reason = answered.then(|| reason_of_answer(app)).flatten();
    if let Some(reason) = reason {
        let mut w = ProseWriter::new(app, theme, rest.width);
        w.widest = w.columns;
        w.body(&reason, theme.text);
        // The choices keep three rows each.
        let most = rest
            .height
            .saturating_sub(3 * height(question.choices.len()));
        let area = take_bottom(&mut rest, height(w.lines.len()).min(most.max(1)));
        s.put(area, w.lines);
    }
    // What was chosen is shown once the vote is closed.
    let tally = tally.filter(|tally| !tally.open);
    let all = height(question.choices.len()).max(1);
    let each = rest.height / all;
    // A large letter, where every choice has room for it and its words; and large words, where all have.
    let size = digits::size("A", 16, each.saturating_sub(1));
    let columns = rest.width.saturating_sub(4 * size + 2);
    // A gap, and a bar of two rows.
    let below = 1 + 2 * u16::from(tally.is_some());
    let said = question
        .choices
        .iter()
        .map(|words| filled_as_found(app, words).unwrap_or_else(|| words.clone()));
    let rows_of = |(large, others): &(Vec<String>, String)| {
        digits::rows_of(large.len()) + u16::from(!others.is_empty())
    };
    // All words of each choice, or those before its colon, with the others below in plain letters.
    let large = [false, true].into_iter().find_map(|splits| {
        let parts = said.clone().map(|words| {
            let (head, others) = match words.split_once(": ").filter(|_| splits) {
                Some((head, others)) => (format!("{head}:"), others.to_owned()),
                None => (words, String::new()),
            };
            let fits = text::width(&others) <= usize::from(columns);
            Some((digits::wrap(head.trim(), columns).filter(|_| fits)?, others))
        });
        let parts = parts.collect::<Option<Vec<(Vec<String>, String)>>>()?;
        let rows = parts.iter().map(|it| rows_of(it) + below);
        (rows.sum::<u16>() <= rest.height + 1).then_some(parts)
    });
    let taken = |at: usize| large.as_ref().map_or(0, |parts| rows_of(&parts[at]));
    let rows = (0..question.choices.len()).map(taken);
    let spare = rest.height.saturating_sub(rows.clone().sum()) / all;
    let size = size.min(digits::size("A", 16, rows.min().unwrap_or(0) + spare));
    for (at, words) in question.choices.iter().enumerate() {
        let each = taken(at) + spare;
        let mut area = take_top(&mut rest, each);
        let left = take_left(&mut area, if size > 0 { 4 * size + 2 } else { 3 });
        let style = match answered {
            true if at == question.answer => theme.good.add_modifier(Modifier::BOLD),
            true => theme.dim,
            false => theme.strong,
        };
        let mut lines = match &large {
            Some(parts) => {
                let (large, others) = &parts[at];
                let mut lines = vec![Line::default(); digits::rows_of(large.len()).into()];
                lines.extend((!others.is_empty()).then(|| Line::styled(others.clone(), style)));
                lines
            }
            None => written(area.width, words, style),
        };
        if answered && at == question.answer && large.is_none() {
            let mark = format!("{} ", theme.symbols.good);
            lines[0].spans.insert(0, Span::styled(mark, theme.good));
        }
        if let Some(tally) = tally {
            let columns = usize::from(area.width) / (2 * tally.rounds.len().max(1));
            let bars = bars(tally, at, columns.saturating_sub(5), theme);
            // The bars are as thick as there is room for.
            let room = each.saturating_sub(height(lines.len()) + 1).clamp(1, 5);
            let without_numbers = bars.iter().enumerate().map(|(at, span)| match at % 2 {
                0 => span.clone(),
                _ => Span::raw(" ".repeat(span.width())),
            });
            let below: Line<'static> = without_numbers.collect();
            lines.push(Line::from(bars));
            lines.extend(vec![below; usize::from(room - 1)]);
        }
        let tall = digits::rows(size).max(height(lines.len()));
        let above = each.saturating_sub(tall).div_ceil(2);
        if size == 0 {
            let mut left = left;
            take_top(&mut left, above);
            s.put(left, Line::styled(format!(" {}", letter(at)), theme.key));
        } else {
            let (buffer, said) = (s.frame.buffer_mut(), letter(at));
            digits::draw(buffer, (left.x, left.y + above), &said, size, theme.key);
        }
        take_top(&mut area, above + (tall - height(lines.len())) / 2);
        s.put(area, lines);
        if let Some(parts) = &large {
            let at_top = (area.x, area.y);
            digits::draw_lines(s.frame.buffer_mut(), at_top, &parts[at].0, style);
        }
    }
}

/// The one line below, at a beat: where in the course this is, and what a presenter has to know.
pub fn foot(app: &App, theme: &Theme, columns: u16) -> Option<Line<'static>> {
    let (beat, stage) = app.beat().zip(app.stage())?;
    let columns = usize::from(columns);
    let dots = format!("{}/{}", beat.at + 1, beat.of);
    let place = format!(" {} {}  {dots}", stage.number, stage.title);
    let state = match &app.shown_run().state {
        RunState::Running | RunState::Finished | RunState::Paused | RunState::Pausing => app
            .shown_run()
            .device()
            .map_or(String::new(), |it| it.kind.clone()),
        state => state.into_str().to_owned(),
    };
    let keys = [Action::NextBeat, Action::PreviousBeat, Action::Present];
    let keys = keys.map(|it| keys::label(it, app)).join(" ");
    let mut right = vec![Span::styled(format!("{state}  "), theme.text)];
    right.push(match &app.view.unsaved {
        None => Span::styled(format!("{keys} "), theme.dim),
        Some(why) => {
            let said = format!("{} not saved: {why} ", theme.symbols.warning);
            let said = text::cut(&said, columns * 2 / 3);
            Span::styled(said, theme.bad)
        }
    });
    let room = columns.saturating_sub(text::width_of(&right) + 1);
    let place = text::left(&text::cut(&place, room), room + 1);
    let mut spans = vec![Span::styled(place, theme.dim)];
    spans.append(&mut right);
    Some(Line::from(spans))
}

/// At the end of that line: the screen stays as it was.
pub fn frozen(app: &App, theme: &Theme) -> Line<'static> {
    let key = keys::label(Action::FreezeScreen, app);
    let said = format!(" frozen: {key} goes on ");
    Line::styled(said, theme.badge).right_aligned()
}
