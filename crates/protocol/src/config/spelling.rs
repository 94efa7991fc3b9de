//! Finds the known word that a misspelt word probably means. All command lines and files use it.

/// Words of this program, each with its names in other programs that are not similar to it.
static OTHER_NAMES: &[(&str, &[&str])] = &[
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

/// Returns the candidate that `word` probably means: the one with this name in another program, the one that `word` abbreviates, or
/// the one with the fewest edits. Capitals make no difference, nor do `_` and `-` between words. A word in a section (`train.lr`) is
/// compared with the names in all sections. Returns an empty text if there is no candidate but `word` itself.
pub fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> &'a str {
    closest(word, candidates).map_or("", |(_, candidate)| candidate)
}

/// Returns the candidate that `word` misspells. A third of its letters may be wrong, and one letter in a short word. `None` if no
/// candidate is that close.
pub fn close<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (word.chars().count() / 3).max(1);
    let (distance, candidate) = closest(word, candidates)?;
    (distance <= limit).then_some(candidate)
}

/// Returns the message for a word in a file that is not a known word.
pub fn unknown<'a>(kind: &str, word: &str, known: impl Iterator<Item = &'a str>) -> String {
    match nearest(word, known) {
        "" => format!("unknown {kind} `{word}`; no other {kind} is known here"),
        near => format!("unknown {kind} `{word}`; the nearest known {kind} is `{near}`"),
    }
}

/// Returns the candidate nearest to `word`, with its distance. Of two equally near candidates the shorter one counts.
fn closest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<(usize, &'a str)> {
    let wanted = normalized(word);
    candidates
        .filter(|candidate| *candidate != word)
        .map(|candidate| (distance(&wanted, candidate), candidate))
        .min_by_key(|(distance, candidate)| (*distance, candidate.len()))
}

fn normalized(word: &str) -> String {
    word.to_lowercase().replace(['_', ' '], "-")
}

/// Returns the distance of a normalized word from a candidate.
fn distance(word: &str, candidate: &str) -> usize {
    let (section, name) = section_and_name(word);
    if OTHER_NAMES
        .iter()
        .any(|(known, names)| *known == candidate && names.contains(&name))
    {
        return 0;
    }
    let known = normalized(candidate);
    let (known_section, known_name) = section_and_name(&known);
    let name_edits = edits(name, known_name);
    let to_name = abbreviation_distance(name, known_name).map_or(name_edits, |n| n.min(name_edits));
    let to_section = usize::from(section != known_section);
    edits(word, &known).min(to_name + to_section)
}

/// Splits `train.learning-rate` into `train` and `learning-rate`. A path without a section has an empty one.
fn section_and_name(path: &str) -> (&str, &str) {
    path.rsplit_once('.').unwrap_or(("", path))
}

/// Returns the distance of an abbreviation from a longer word: 1 if it is one of its parts (`rate`) or their first letters (`lr`), 2 if it
/// has the first letter and others in their order (`ctx`). `None` if `short` is no abbreviation of `long`.
fn abbreviation_distance(short: &str, long: &str) -> Option<usize> {
    if !(2..long.len()).contains(&short.len()) {
        return None;
    }
    let mut parts = long.split('-');
    let initials = parts.clone().filter_map(|part| part.chars().next());
    if parts.any(|part| part == short) || initials.eq(short.chars()) {
        return Some(1);
    }
    let mut letters = long.chars();
    let in_order = short.chars().all(|wanted| letters.any(|c| c == wanted));
    (short.chars().next() == long.chars().next() && in_order).then_some(2)
}

/// Returns the Levenshtein distance of the first 64 characters of two words.
fn edits(a: &str, b: &str) -> usize {
    let [a, b] = [a, b].map(|word| word.chars().take(64).collect::<String>());
    strsim::levenshtein(&a, &b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_abbreviation_is_near() {
        let known = [
            "model.ffn",
            "model.kv-heads",
            "model.layers",
            "train.data",
            "train.context",
            "train.learning-rate",
        ];
        for (word, meant) in [
            ("train.lr", "train.learning-rate"),
            ("LR", "train.learning-rate"),
            ("optimizer.learning_rate", "train.learning-rate"),
            ("train.rate", "train.learning-rate"),
            ("ctx", "train.context"),
            ("layer", "model.layers"),
            ("model.kv_heads", "model.kv-heads"),
            ("train.dta", "train.data"),
        ] {
            assert_eq!(nearest(word, known.into_iter()), meant, "{word}");
        }
    }

    #[test]
    fn only_a_misspelling_is_close() {
        let known = || ["hybrid", "strides", "broken-init"].into_iter();
        assert_eq!(close("broken-int", known()), Some("broken-init"));
        assert_eq!(close("stride", known()), Some("strides"));
        assert_eq!(close("zzz", known()), None);
        assert_eq!(nearest("zzz", known()), "hybrid");
        assert_eq!(close("x", std::iter::empty()), None);
    }

    fn words_with_other_names() -> impl Iterator<Item = &'static str> {
        OTHER_NAMES.iter().map(|(word, _)| *word)
    }

    #[test]
    fn a_name_in_another_program_leads_to_ours() {
        for (word, names) in OTHER_NAMES {
            for name in *names {
                assert_eq!(nearest(name, words_with_other_names()), *word, "{name}");
            }
        }
    }

    #[test]
    fn the_word_itself_is_never_suggested() {
        for word in words_with_other_names() {
            assert_ne!(nearest(word, words_with_other_names()), word);
            assert_eq!(close(word, std::iter::once(word)), None);
        }
        assert!(!unknown("size", "N", std::iter::once("N")).contains("nearest"));
    }
}
