//! Draws the counts of a vote as bars.

use ratatui::style::Style;
use ratatui::text::Span;

use super::text;
use super::theme::Theme;
use crate::class::board::VoteTally;

/// Returns a bar for a count of votes. The largest count of the vote, over all choices and rounds, fills `columns`.
pub(super) fn bar(
    vote: &VoteTally,
    count: u32,
    columns: usize,
    style: Style,
    theme: &Theme,
) -> Span<'static> {
    let largest = vote.rounds.iter().flatten().max().copied().unwrap_or(0);
    let length = (count as usize * columns).div_ceil(largest.max(1) as usize);
    Span::styled(theme.symbols.fills[0].repeat(length), style)
}

/// Returns a bar and its count for each round of a choice. The longest bar of the vote takes `columns`.
pub(super) fn bars(
    vote: &VoteTally,
    choice: usize,
    columns: usize,
    theme: &Theme,
) -> Vec<Span<'static>> {
    let mut spans = Vec::new();
    for (count, style) in vote.votes(choice).into_iter().zip([theme.a, theme.b]) {
        let bar = bar(vote, count, columns, style, theme);
        let number = text::left(&format!(" {count}"), columns + 5 - bar.width());
        spans.push(bar);
        spans.push(Span::styled(number, theme.strong));
    }
    spans
}
