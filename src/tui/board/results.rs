//! Draws the results on the board: the vote as a histogram, and the race as a list of places.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::rule;
use crate::class::board::{Race, RaceRank, VoteTally, duration};
use crate::course::save_file::letter;
use crate::tui::text;
use crate::tui::theme::Theme;
use crate::tui::votes::bars;
use protocol::units::or_dash;

/// Returns the histogram of a vote. The bars of the second round are beside those of the first.
pub(super) fn vote_lines(vote: &VoteTally, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let state = if vote.open {
        "the vote is open"
    } else {
        "the votes"
    };
    let again = if vote.round > 1 { ", second round" } else { "" };
    let title = format!("{}: {state}{again}, {}", vote.title(), vote.turnout());
    let mut lines = vec![rule(&title, columns, theme)];
    if vote.stage == 0 {
        lines.extend(indented(&vote.prompt, columns, theme));
    }
    for choice in 0..vote.choices.len() {
        lines.extend(choice_lines(vote, choice, columns, theme));
    }
    if let Some(answer) = &vote.answer {
        lines.extend(indented(&answer.reason, columns, theme));
    }
    if !vote.ranges.is_empty() {
        let sentence = format!(" {}", ranges_in_words(vote));
        lines.push(Line::styled(text::cut(&sentence, columns), theme.text));
    }
    lines
}

/// Returns a text in lines that begin with a space.
fn indented(text: &str, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    text::wrap(&[Span::styled(text, theme.text)], columns, " ", " ")
}

/// Returns the lines of a choice: its letter, its bars, and its text beside them.
fn choice_lines(
    vote: &VoteTally,
    choice: usize,
    width: usize,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let parts = if vote.rounds.len() > 1 { 6 } else { 3 };
    let bar_columns = (width / parts).clamp(6, 40);
    let answer = vote.answer.as_ref();
    let is_right = answer.is_some_and(|answer| answer.choice == choice);
    let (mark, style) = if is_right {
        (theme.symbols.good, theme.good)
    } else {
        (" ", theme.text)
    };
    let mut spans = vec![
        Span::styled(mark, style),
        Span::styled(format!("{}  ", letter(choice)), theme.strong),
    ];
    spans.extend(bars(vote, choice, bar_columns, theme));
    let indent = text::width_of(&spans);
    let text_columns = width.saturating_sub(indent + 1);
    let mut lines = Vec::new();
    for line in text::wrapped(&vote.choices[choice], style, text_columns) {
        spans.extend(line.spans);
        lines.push(Line::from(std::mem::take(&mut spans)));
        spans.push(Span::raw(" ".repeat(indent)));
    }
    lines
}

/// Returns a sentence about the ranges that contain the measured figure.
fn ranges_in_words(vote: &VoteTally) -> String {
    let drawn = vote.ranges.len();
    let Some(measured) = vote.measured else {
        return format!("{drawn} ranges were drawn; nothing is measured yet");
    };
    let contains = |[low, high]: &&[f64; 2]| (*low..=*high).contains(&measured);
    let right = vote.ranges.iter().filter(contains).count();
    let figure = format!("{measured:.2} {}", vote.unit);
    format!(
        "{drawn} ranges were drawn; {right} contain the measured {}",
        figure.trim_end()
    )
}

/// Returns the lines of a race, the best result first.
pub(super) fn race_lines(race: &Race, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let remaining = race
        .remaining_s
        .map(|remaining_s| format!(", {} left", duration(remaining_s)));
    let title = format!("race: {}{}", race.task, remaining.unwrap_or_default());
    let mut lines = vec![rule(&title, columns, theme)];
    lines.extend(rank_lines(&race.ranks, theme.strong, theme, |rank| {
        let result = text::left(&result_in_words(rank), 30);
        let line = format!("{}  {result}  {}", place_and_name(rank), rank.device);
        text::cut(&line, columns)
    }));
    lines
}

/// Returns a line for each result. Results in the first place have the style `first_style`.
pub(super) fn rank_lines(
    ranks: &[RaceRank],
    first_style: Style,
    theme: &Theme,
    line_of: impl Fn(&RaceRank) -> String,
) -> Vec<Line<'static>> {
    if ranks.is_empty() {
        return vec![Line::styled(" nobody has a result yet", theme.dim)];
    }
    let mut lines = Vec::new();
    for rank in ranks {
        let is_first = rank.place == Some(1);
        let style = if is_first { first_style } else { theme.text };
        lines.push(Line::styled(line_of(rank), style));
    }
    lines
}

/// Returns the place and the name of a participant, each in the width of its column.
pub(super) fn place_and_name(rank: &RaceRank) -> String {
    let place = or_dash(rank.place, |place| place.to_string());
    format!(" {place:>3}  {}", text::name(&rank.name, 24))
}

/// Returns the result of a mystery or of a kernel exercise in words.
pub(super) fn result_in_words(rank: &RaceRank) -> String {
    match (rank.result.mystery, rank.result.ratio) {
        (Some(mystery), _) if mystery.points > 0 => format!(
            "{} points, {}, {} tried",
            mystery.points,
            duration(mystery.seconds),
            mystery.configurations
        ),
        (Some(_), _) => "gave up".to_owned(),
        (None, Some([ratio, low, high])) => format!("{ratio:.2}x [{low:.2}, {high:.2}]"),
        (None, None) => String::new(),
    }
}
