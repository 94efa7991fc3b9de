//! The bars of a vote: how many chose one thing, in each round.

use ratatui::text::Span;

use super::text;
use super::theme::Theme;
use crate::class::board::VoteTally;

/// A bar and its number for each round of a choice; the longest bar of the vote has this number of columns.
pub(super) fn bars(
    vote: &VoteTally,
    choice: usize,
    columns: usize,
    theme: &Theme,
) -> Vec<Span<'static>> {
    let all = vote.rounds.iter().flatten().copied();
    let most = all.max().unwrap_or(0).max(1) as usize;
    let mut spans = Vec::new();
    for (round, n) in vote.votes(choice).into_iter().enumerate() {
        let full = (n as usize * columns).div_ceil(most);
        let style = if round == 0 { theme.a } else { theme.b };
        spans.push(Span::styled(theme.symbols.fills[0].repeat(full), style));
        let number = text::left(&format!(" {n}"), columns + 5 - full);
        spans.push(Span::styled(number, theme.strong));
    }
    spans
}
