//! What a misspelt word was probably meant to be.

/// The candidate that `word` abbreviates, or the one with the fewest edits to it. Capitals, and whether words are joined by
/// `_` or `-`, make no difference; a word in a section (`train.lr`) is compared with the names in all sections.
pub fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> &'a str {
    let word = plain(word);
    candidates
        .min_by_key(|candidate| distance(&word, &plain(candidate)))
        .unwrap_or("")
}

/// The candidate with the fewest edits when at most a third of the word, and at least one letter, may be wrong: nothing else
/// is a misspelling of it.
pub fn close<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let near = candidates.min_by_key(|candidate| edits(word, candidate))?;
    let limit = (word.chars().count() / 3).max(1);
    (edits(word, near) <= limit).then_some(near)
}

fn plain(word: &str) -> String {
    word.to_lowercase().replace(['_', ' '], "-")
}

/// How far a word is from a candidate; of two equal distances the one to the shorter candidate counts.
fn distance(word: &str, candidate: &str) -> (usize, usize) {
    let whole = edits(word, candidate);
    let (section, name) = in_section(word);
    let (of, other) = in_section(candidate);
    let elsewhere = usize::from(section != of);
    let part = match abbreviates(name, other) {
        true => 1,
        false => edits(name, other),
    };
    (whole.min(part + elsewhere), candidate.len())
}

/// `learning-rate` of `train.learning-rate`, and its section.
fn in_section(path: &str) -> (&str, &str) {
    path.rsplit_once('.').unwrap_or(("", path))
}

/// Whether a short word is a part of a longer one (`rate`), or has its first letter and others in their order (`lr`, `ctx`).
fn abbreviates(short: &str, long: &str) -> bool {
    let mut letters = long.chars();
    let in_order = short.chars().all(|c| letters.any(|it| it == c));
    let same_first = short.chars().next() == long.chars().next();
    let is_part = long.split('-').any(|part| part == short);
    (2..long.len()).contains(&short.len()) && (is_part || same_first && in_order)
}

/// Levenshtein distance, on the first 64 characters.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().take(64).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let above = row[j + 1];
            row[j + 1] = (diagonal + usize::from(x != *y))
                .min(above + 1)
                .min(row[j] + 1);
            diagonal = above;
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_abbreviation_is_near() {
        let near = |word| {
            let all = ["model.ffn", "model.kv-heads", "train.data", "train.context"];
            nearest(word, all.into_iter().chain(["train.learning-rate"]))
        };
        assert_eq!(near("train.lr"), "train.learning-rate");
        assert_eq!(near("LR"), "train.learning-rate");
        assert_eq!(near("optimizer.learning_rate"), "train.learning-rate");
        assert_eq!(near("ctx"), "train.context");
        assert_eq!(near("train.rate"), "train.learning-rate");
        assert_eq!(near("model.kv_heads"), "model.kv-heads");
        assert_eq!(near("train.dta"), "train.data");
        assert_eq!(near("ö"), "model.ffn", "nothing is near");
    }

    #[test]
    fn only_a_misspelling_is_close() {
        let all = || ["hybrid", "strides", "broken-init"].into_iter();
        assert_eq!(close("broken-int", all()), Some("broken-init"));
        assert_eq!(close("stride", all()), Some("strides"));
        assert_eq!(close("zzz", all()), None);
        assert_eq!(nearest("zzz", all()), "hybrid");
        assert_eq!(close("x", std::iter::empty()), None);
    }
}
