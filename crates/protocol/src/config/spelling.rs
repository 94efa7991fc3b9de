//! Finds the word that a misspelt word was probably meant to be, for all command lines and files.

/// What other programs call a word of this one, where that is neither its beginning nor an abbreviation of it.
static ELSEWHERE: &[(&str, &[&str])] = &[
    ("model.hidden", &["d-model", "n-embd", "dim", "width"]),
    ("model.layers", &["n-layer", "n-layers", "depth"]),
    ("model.heads", &["n-head", "n-heads"]),
    ("model.kv-heads", &["n-kv-head", "n-kv-heads"]),
    ("model.ffn", &["intermediate-size", "d-ff", "mlp"]),
    ("train.batch", &["bs", "batch-size", "micro-batch"]),
    (
        "train.context",
        &["block-size", "seq-len", "sequence-length"],
    ),
    ("train.precision", &["dtype", "amp"]),
    ("train.launches", &["cuda-graph", "cuda-graphs", "graph"]),
    (
        "gpu",
        &[
            "cuda", "nvidia", "rocm", "hip", "amd", "metal", "mps", "vulkan", "wgpu",
        ],
    ),
    ("vulkan-cpu", &["lavapipe", "llvmpipe", "swiftshader"]),
];

/// The candidate that `word` stands for: another program's name for it, a word or an abbreviation of it, or the one with the fewest
/// edits. Capitals, and whether words are joined by `_` or `-`, make no difference; a word in a section (`train.lr`) is compared with
/// the names in all sections. It is never `word` itself, and empty where there is no other candidate.
pub fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> &'a str {
    ranked(word, candidates).map_or("", |(_, candidate)| candidate)
}

/// As [`nearest`], when at most a third of the word, and at least one letter, may be wrong: nothing else is a misspelling of it.
pub fn close<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (word.chars().count() / 3).max(1);
    let (distance, candidate) = ranked(word, candidates)?;
    (distance <= limit).then_some(candidate)
}

/// Returns the message for a word in a file that is not a known word.
pub fn unknown<'a>(kind: &str, word: &str, known: impl Iterator<Item = &'a str>) -> String {
    match nearest(word, known) {
        "" => format!("unknown {kind} `{word}`; no other {kind} is known here"),
        near => format!("unknown {kind} `{word}`; the nearest known {kind} is `{near}`"),
    }
}

/// The nearest candidate and how far it is; of two equal distances the shorter candidate counts.
fn ranked<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<(usize, &'a str)> {
    let wanted = plain(word);
    let others = candidates.filter(|candidate| *candidate != word);
    let ranked = others.map(|candidate| (distance(&wanted, candidate), candidate));
    ranked.min_by_key(|(distance, candidate)| (*distance, candidate.len()))
}

fn plain(word: &str) -> String {
    word.to_lowercase().replace(['_', ' '], "-")
}

/// Returns the distance of a word from a candidate.
fn distance(word: &str, candidate: &str) -> usize {
    let (section, name) = in_section(word);
    let known = |(of, names): &(&str, &[&str])| *of == candidate && names.contains(&name);
    if ELSEWHERE.iter().any(known) {
        return 0;
    }
    let candidate = plain(candidate);
    let (of, other) = in_section(&candidate);
    let elsewhere = usize::from(section != of);
    let part = edits(name, other).min(abbreviates(name, other).unwrap_or(usize::MAX - 1));
    edits(word, &candidate).min(part + elsewhere)
}

/// `learning-rate` of `train.learning-rate`, and its section.
fn in_section(path: &str) -> (&str, &str) {
    path.rsplit_once('.').unwrap_or(("", path))
}

/// How far a short word is from a longer one that it abbreviates: it is one of its words (`rate`) or their first letters (`lr`), or
/// has the first letter and others in their order (`ctx`).
fn abbreviates(short: &str, long: &str) -> Option<usize> {
    if !(2..long.len()).contains(&short.len()) {
        return None;
    }
    let parts = || long.split('-');
    let initials = parts().filter_map(|part| part.chars().next());
    if parts().any(|part| part == short) || initials.eq(short.chars()) {
        return Some(1);
    }
    let mut letters = long.chars();
    let in_order = short
        .chars()
        .all(|wanted| letters.any(|found| found == wanted));
    (short.chars().next() == long.chars().next() && in_order).then_some(2)
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
            let others = ["model.layers", "train.learning-rate"];
            nearest(word, all.into_iter().chain(others))
        };
        assert_eq!(near("train.lr"), "train.learning-rate");
        assert_eq!(near("LR"), "train.learning-rate");
        assert_eq!(near("optimizer.learning_rate"), "train.learning-rate");
        assert_eq!(near("ctx"), "train.context");
        assert_eq!(near("layer"), "model.layers");
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

    #[test]
    fn what_was_typed_is_never_suggested() {
        for (path, names) in ELSEWHERE {
            let all = || ELSEWHERE.iter().map(|(path, _)| *path);
            assert_ne!(nearest(path, all()), *path);
            assert!(close(path, std::iter::once(*path)).is_none());
            for name in *names {
                assert_eq!(nearest(name, all()), *path, "{name}");
            }
        }
        assert!(!unknown("size", "N", std::iter::once("N")).contains("nearest"));
    }
}
