//! What a misspelt word was probably meant to be.

/// The candidate with the fewest edits to `word`.
pub fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> &'a str {
    candidates
        .min_by_key(|candidate| edits(word, candidate))
        .unwrap_or("")
}

/// The nearest candidate when at most a third of the word, and at least one letter, may be wrong: nothing else is a
/// misspelling of it.
pub fn close<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let near = nearest(word, candidates);
    let limit = (word.chars().count() / 3).max(1);
    (!near.is_empty() && edits(word, near) <= limit).then_some(near)
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
    fn only_a_misspelling_is_close() {
        let all = || ["hybrid", "strides", "broken-init"].into_iter();
        assert_eq!(close("broken-int", all()), Some("broken-init"));
        assert_eq!(close("stride", all()), Some("strides"));
        assert_eq!(close("zzz", all()), None);
        assert_eq!(nearest("zzz", all()), "hybrid");
        assert_eq!(close("x", std::iter::empty()), None);
    }
}
