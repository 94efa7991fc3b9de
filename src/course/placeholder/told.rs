//! A text whose figures may still be missing, as a learner reads it: sentences that wait for figures give way to one that
//! says what brings them. A table keeps its place and gets that line below it.

use super::{Awaited, Lookup, NOT_MEASURED, Piece, awaited, pieces, resolve};

/// Where a cell of a table has no figure.
pub const NO_FIGURE: &str = "–";

/// What is said in the place of missing figures, in one language.
struct Words {
    language: &'static str,
    run: &'static str,
    /// `{}` is the key that measures pairs.
    mended: &'static str,
    pairs: &'static str,
    never: &'static str,
    skipped: &'static str,
}

/// English first: other languages fall back to it.
const WORDS: &[Words] = &[
    Words {
        language: "en",
        run: "(Figures of the run belong here; they come when it has made its steps.)",
        mended: "(Figures of the mended run belong here; they come when it has made its steps.)",
        pairs: "({} measures both in turns; the figures that belong here come then.)",
        never: "(not measured)",
        skipped: "(skipped)",
    },
    Words {
        language: "de",
        run: "(Hier stehen Zahlen des Laufs, sobald er seine Schritte gemacht hat.)",
        mended: "(Hier stehen Zahlen des behobenen Laufs, sobald er seine Schritte gemacht hat.)",
        pairs: "({} misst beide im Wechsel; dann stehen hier die Zahlen.)",
        never: "(nicht gemessen)",
        skipped: "(übersprungen)",
    },
];

fn words(language: &str) -> &'static Words {
    let found = WORDS.iter().find(|words| words.language == language);
    found.unwrap_or(&WORDS[0])
}

/// What stands for figures that these names wait for, if they do; `key` measures pairs.
pub fn notice<'a>(
    names: impl Iterator<Item = &'a str>,
    from: &dyn Lookup,
    key: &str,
) -> Option<String> {
    let words = words(from.language());
    Some(match awaited(names, from)? {
        Awaited::Run => words.run.to_owned(),
        Awaited::Mended => words.mended.to_owned(),
        Awaited::Pairs => words.pairs.replace("{}", key),
    })
}

/// A single figure as it stands in a sentence.
pub fn figure(name: &str, from: &dyn Lookup) -> String {
    let words = words(from.language());
    match resolve(name, from) {
        text if text != NOT_MEASURED => text,
        _ if name.starts_with("prediction.") => words.skipped.to_owned(),
        _ => words.never.to_owned(),
    }
}

/// The text with its figures. Sentences that wait for some are left out, and one notice says so.
pub fn told(text: &str, from: &dyn Lookup, key: &str) -> String {
    let mut out: Vec<String> = Vec::new();
    for sentence in sentences(text) {
        let parts = pieces(sentence);
        let names = parts.iter().filter_map(|piece| match piece {
            Piece::Name(name) => Some(*name),
            Piece::Text(_) => None,
        });
        let said = notice(names, from, key).unwrap_or_else(|| {
            let filled = parts.iter().map(|piece| match piece {
                Piece::Text(text) => (*text).to_owned(),
                Piece::Name(name) => figure(name, from),
            });
            filled.collect()
        });
        if !out.contains(&said) {
            out.push(said);
        }
    }
    out.join(" ")
}

/// Sentences, split where one ends and a blank follows. Text without an end is one.
fn sentences(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut from = 0;
    for (at, _) in text.match_indices(['.', '?', '!']) {
        let after = &text[at + 1..];
        let next = after.trim_start();
        let begins = next.starts_with(|c: char| c.is_uppercase() || c == '{');
        if after.len() > next.len() && begins {
            found.push(text[from..=at].trim());
            from = at + 1;
        }
    }
    let last = text[from..].trim();
    if !last.is_empty() {
        found.push(last);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Preset, RunConfig};
    use crate::course::placeholder::{Figures, Subject};
    use crate::protocol::{Finished, Pair};

    struct German<'a>(Figures<'a>);

    impl Lookup for German<'_> {
        fn finished(&self, subject: Subject) -> Option<&Finished> {
            self.0.finished(subject)
        }
        fn pair(&self) -> Option<&Pair> {
            self.0.pair()
        }
        fn config(&self) -> &RunConfig {
            self.0.config()
        }
        fn language(&self) -> &str {
            "de"
        }
    }

    #[test]
    fn sentences_wait_for_their_figures_and_the_others_stay() {
        let config = RunConfig::preset(Preset::Tiny);
        let none = Figures::none(&config);
        let text =
            "ln V is {{ln_vocab}}. It took {{run.step_ms}}. {{run.parity}} off, i.e. wrong! Why?";
        assert_eq!(
            told(text, &none, "T"),
            "ln V is 6.908. (Figures of the run belong here; they come when it has made its steps.) Why?"
        );
        assert_eq!(
            told("Wrong by {{pair.ratio}}", &German(none.clone()), "T"),
            "(T misst beide im Wechsel; dann stehen hier die Zahlen.)"
        );
        let long = Finished {
            steps: 1_000_000,
            ..Finished::default()
        };
        let figures = Figures {
            run: Some(&long),
            ..none
        };
        assert_eq!(
            told("It took {{run.step_ms}}.", &figures, "T"),
            "It took (not measured).",
            "it never comes"
        );
    }
}
