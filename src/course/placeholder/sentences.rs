//! Fills in texts, sentence by sentence, whose figures may still be missing. [`fill_with_notices`] replaces a sentence without its figures by
//! a notice that says how to get them; [`fill_known`] ends it before its first clause without a figure. `The loss falls: to {{run.loss_last}}.`
//! becomes a notice, or `The loss falls.`

use protocol::config::RunConfig;

use super::{
    FigureSources, NOT_MEASURED, RUNS, TextPiece, fill, measured_text, pieces, problem, resolve,
};

/// The text of a cell of a table whose figure is missing.
pub const NO_FIGURE: &str = "–";

/// Returns the notice to show in place of the figures with these names while they can still come; `None` if none of them is awaited.
/// `key` is the key that measures pairs.
pub fn notice<'a>(
    names: impl Iterator<Item = &'a str>,
    from: &FigureSources<'_>,
    key: &str,
) -> Option<String> {
    // Pairs measure both runs, so they bring the other figures as well.
    let pairs_or = |earlier, next| {
        if earlier == Awaited::Pairs {
            earlier
        } else {
            next
        }
    };
    let awaited = names
        .filter_map(|name| awaited_event(name, from))
        .reduce(pairs_or);
    Some(match awaited? {
        Awaited::Run => {
            "(The figures of this run appear here once it has made enough steps.)".to_owned()
        }
        Awaited::Fixed => {
            "(The figures of the fixed run appear here once it has made enough steps.)".to_owned()
        }
        Awaited::Pairs => {
            format!("({key} measures both runs in turns; then the figures appear here.)")
        }
    })
}

/// The event that brings missing figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaited {
    /// The run makes more steps.
    Run,
    /// The solution runs.
    Fixed,
    /// Broken and fixed are measured against each other.
    Pairs,
}

/// Returns the event that brings the figure with this name; `None` if the figure is there. A figure that is missing although everything was
/// measured once will not come, so no event brings it.
fn awaited_event(name: &str, from: &FigureSources<'_>) -> Option<Awaited> {
    if problem(name).is_some() || measured_text(name, from).is_some() {
        return None;
    }
    let measure = &from.config.measure;
    let due = measure.warmup.saturating_add(measure.profile_every);
    // After this many steps, everything has been measured once.
    let pending = |run: &str| from.run(run).is_none_or(|run| run.steps <= due);
    match name.split('.').next().unwrap_or(name) {
        "pair" => Some(Awaited::Pairs),
        "ratio" => (pending("broken") || pending("fixed")).then_some(Awaited::Pairs),
        "fixed" => pending("fixed").then_some(Awaited::Fixed),
        head => (RUNS.contains(&head) && pending(head)).then_some(Awaited::Run),
    }
}

/// Returns the text of a figure in a sentence, or words in brackets that say why it is missing.
pub fn figure(name: &str, from: &FigureSources<'_>) -> String {
    match resolve(name, from) {
        text if text != NOT_MEASURED => text,
        _ if name.starts_with("prediction.") => "(skipped)".to_owned(),
        _ => "(not measured)".to_owned(),
    }
}

/// Fills in the figures of a text. One notice replaces the sentences whose figures are still to come.
pub fn fill_with_notices(text: &str, from: &FigureSources<'_>, key: &str) -> String {
    let mut shown: Vec<String> = Vec::new();
    for sentence in sentences(text) {
        let parts = pieces(sentence);
        let names = parts.iter().filter_map(|piece| match piece {
            TextPiece::Name(name) => Some(*name),
            TextPiece::Text(_) => None,
        });
        let fill_piece = |piece: &TextPiece<'_>| match piece {
            TextPiece::Text(text) => (*text).to_owned(),
            TextPiece::Name(name) => figure(name, from),
        };
        let sentence_or_notice =
            notice(names, from, key).unwrap_or_else(|| parts.iter().map(fill_piece).collect());
        if !shown.contains(&sentence_or_notice) {
            shown.push(sentence_or_notice);
        }
    }
    shown.join(" ")
}

/// Fills in the known figures of a text. Each sentence ends before its first clause with an unknown figure.
pub fn fill_known(text: &str, from: &FigureSources<'_>) -> String {
    let mut shown: Vec<String> = Vec::new();
    for sentence in sentences(text.trim()) {
        let filled: String = sentence
            .split_inclusive([':', ';'])
            .map(|clause| fill(clause, from))
            .take_while(|clause| !clause.contains(NOT_MEASURED))
            .collect();
        match filled.strip_suffix([':', ';']) {
            Some(clause) => shown.push(format!("{clause}.")),
            None if filled.is_empty() => {}
            None => shown.push(filled),
        }
    }
    shown.join(" ")
}

/// Returns the first sentence of a text that [`fill_known`] leaves out as a whole before any run of this configuration.
pub fn first_omitted_sentence<'t>(text: &'t str, config: &RunConfig) -> Option<&'t str> {
    let none = FigureSources::none(config);
    sentences(text.trim())
        .into_iter()
        .find(|sentence| fill_known(sentence, &none).is_empty())
}

/// Splits a text into sentences. A full stop, question mark or exclamation mark, a blank and a capital letter separate two sentences.
fn sentences(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = 0;
    for (end, _) in text.match_indices(['.', '?', '!']) {
        let after = &text[end + 1..];
        let next = after.trim_start();
        let begins = next.starts_with(|c: char| c.is_uppercase() || c == '{');
        if after.len() > next.len() && begins {
            found.push(text[start..=end].trim());
            start = end + 1;
        }
    }
    let last = text[start..].trim();
    if !last.is_empty() {
        found.push(last);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::Finished;
    use protocol::config::Preset;

    #[test]
    fn a_sentence_ends_before_the_first_clause_without_its_figures() {
        let config = RunConfig::preset(Preset::Tiny);
        let none = FigureSources::none(&config);
        let text = "ln V is {{ln_vocab}}. The rms is flat: {{run.rms_first}}, then more. It took \
                    {{run.step_ms}}: long; too long. So the head it is: always.";
        assert_eq!(
            fill_known(text, &none),
            "ln V is 6.908. The rms is flat. So the head it is: always."
        );
    }

    #[test]
    fn sentences_wait_for_their_figures_and_the_others_stay() {
        let config = RunConfig::preset(Preset::Tiny);
        let none = FigureSources::none(&config);
        let text =
            "ln V is {{ln_vocab}}. It took {{run.step_ms}}. {{run.parity}} off, i.e. wrong! Why?";
        assert_eq!(
            fill_with_notices(text, &none, "T"),
            "ln V is 6.908. (The figures of this run appear here once it has made enough steps.) Why?"
        );
        for text in [
            "Wrong by {{pair.ratio}}",
            "{{ratio.step_ms}} of {{fixed.step_ms}}",
        ] {
            assert_eq!(
                fill_with_notices(text, &none, "T"),
                "(T measures both runs in turns; then the figures appear here.)"
            );
        }
        assert_eq!(
            fill_with_notices("You: {{prediction.choice}}", &none, "T"),
            "You: (skipped)"
        );
        let long = Finished {
            steps: 1_000_000,
            ..Finished::default()
        };
        let figures = FigureSources {
            slots: [Some(long), None],
            ..none
        };
        assert_eq!(
            fill_with_notices("It took {{run.step_ms}}.", &figures, "T"),
            "It took (not measured).",
            "it never comes"
        );
    }
}
