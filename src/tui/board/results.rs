//! The vote and the race on the board: histograms, and places with results.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::rule;
use crate::class::board::{Race, RaceRank, VoteTally, duration};
use crate::course::save_file::letter;
use crate::tui::text;
use crate::tui::theme::Theme;
use crate::tui::votes::bars;
use protocol::units::or_dash;

/// Returns the histogram of a vote, the second round beside the first.
pub(super) fn vote_lines(vote: &VoteTally, wide: usize, theme: &Theme) -> Vec<Line<'static>> {
    let state = if vote.open {
        "the vote is open"
    } else {
        "the votes"
    };
    let again = if vote.round > 1 { ", second round" } else { "" };
    let title = format!("{}: {state}{again}, {}", vote.title(), vote.turnout());
    let mut lines = vec![rule(&title, wide, theme)];
    if vote.stage == 0 {
        lines.extend(indented(&vote.prompt, wide, theme));
    }
    for at in 0..vote.choices.len() {
        lines.extend(choice_lines(vote, at, wide, theme));
    }
    if let Some(answer) = &vote.answer {
        lines.extend(indented(&answer.reason, wide, theme));
    }
    if !vote.ranges.is_empty() {
        let said = format!(" {}", ranges_in_words(vote));
        lines.push(Line::styled(text::cut(&said, wide), theme.text));
    }
    lines
}

/// Returns a text in lines that begin with a space.
fn indented(said: &str, wide: usize, theme: &Theme) -> Vec<Line<'static>> {
    text::wrap(&[Span::styled(said, theme.text)], wide, " ", " ")
}

/// Returns the lines of a choice: its letter, its bars, and its text beside them.
fn choice_lines(vote: &VoteTally, at: usize, wide: usize, theme: &Theme) -> Vec<Line<'static>> {
    let parts = if vote.rounds.len() > 1 { 6 } else { 3 };
    let bar = (wide / parts).clamp(6, 40);
    let is_right = vote
        .answer
        .as_ref()
        .is_some_and(|answer| answer.choice == at);
    let (mark, style) = if is_right {
        (theme.symbols.good, theme.good)
    } else {
        (" ", theme.text)
    };
    let mut spans = vec![
        Span::styled(mark, style),
        Span::styled(format!("{}  ", letter(at)), theme.strong),
    ];
    spans.extend(bars(vote, at, bar, theme));
    let indent = text::width_of(&spans);
    let mut lines = Vec::new();
    for line in text::wrapped(&vote.choices[at], style, wide.saturating_sub(indent + 1)) {
        spans.extend(line.spans);
        lines.push(Line::from(std::mem::take(&mut spans)));
        spans.push(Span::raw(" ".repeat(indent)));
    }
    lines
}

/// Returns how many ranges hold what was measured, in words.
fn ranges_in_words(vote: &VoteTally) -> String {
    let drawn = vote.ranges.len();
    let Some(measured) = vote.measured else {
        return format!("{drawn} ranges were drawn; nothing is measured yet");
    };
    let holds = |range: &&[f64; 2]| (range[0]..=range[1]).contains(&measured);
    let held = vote.ranges.iter().filter(holds).count();
    let figure = format!("{measured:.2} {}", vote.unit);
    format!(
        "{drawn} ranges were drawn; {held} contain the measured {}",
        figure.trim_end()
    )
}

/// Returns the lines of a race, the best result first.
pub(super) fn race_lines(race: &Race, wide: usize, theme: &Theme) -> Vec<Line<'static>> {
    let left = race
        .remaining_s
        .map(|remaining_s| format!(", {} left", duration(remaining_s)));
    let title = format!("race: {}{}", race.task, left.unwrap_or_default());
    let mut lines = vec![rule(&title, wide, theme)];
    lines.extend(rank_lines(&race.ranks, theme.strong, theme, |rank| {
        let result = text::left(&result_in_words(rank), 30);
        text::cut(
            &format!("{}  {result}  {}", place_and_name(rank), rank.device),
            wide,
        )
    }));
    lines
}

/// Returns a line for each result; those in the first place have the style `first`.
pub(super) fn rank_lines(
    ranks: &[RaceRank],
    first: Style,
    theme: &Theme,
    line_of: impl Fn(&RaceRank) -> String,
) -> Vec<Line<'static>> {
    if ranks.is_empty() {
        return vec![Line::styled(" nobody has a result yet", theme.dim)];
    }
    let styled = ranks.iter().map(|rank| {
        let is_first = rank.place == Some(1);
        Line::styled(line_of(rank), if is_first { first } else { theme.text })
    });
    styled.collect()
}

/// Returns the place and the name of a participant, each in the width of its column.
pub(super) fn place_and_name(rank: &RaceRank) -> String {
    let place = or_dash(rank.place, |place| place.to_string());
    format!(" {place:>3}  {}", text::name(&rank.name, 24))
}

/// Returns a result in words.
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
