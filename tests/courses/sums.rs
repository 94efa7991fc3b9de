//! Numbers in the course that follow from others. Each is computed here, and its sentence must contain it, rounded to the digits that the
//! sentence gives. `docs/sources.md` lists the numbers that were measured or published, with a quotation of their sentences.

use std::fs;
use std::path::Path;

/// A file, a part of a sentence in it with `{}` in place of a number, the number, and its digits after the point.
type Sum = (&'static str, &'static str, f64, usize);

fn sums() -> Vec<Sum> {
    vec![
        (
            "lessons/01-broken-init.md",
            "the rows of the head are {} times smaller",
            1.0 / 0.02,
            0,
        ),
        (
            "lessons/01-broken-init.md",
            "the logits are {} times smaller",
            1.0 / 0.02,
            0,
        ),
        ("lessons/02-strides.md", "strides ({}, 4, 1)", 3.0 * 4.0, 0),
        (
            "lessons/02-strides.md",
            "15.2 to 310.8 samples/s on an MI325X, {} times",
            310.8 / 15.2,
            0,
        ),
        (
            "lessons/02-strides.md",
            "more than {} % of the step",
            100.0 * (1.0 - 15.2 / 310.8),
            0,
        ),
        (
            "lessons/02-strides.md",
            "at their sizes it is {} % of the arithmetic",
            100.0 * 4.0 * 8.0 * 128.0 * 128.0 * 512.0 * 8.0 / 67.6e9,
            0,
        ),
        (
            "lessons/03-missing-sync.md",
            "{} ms a step",
            8e3 / 305.9 - 8e3 / 310.8,
            2,
        ),
        (
            "lessons/04-naive-swiglu.md",
            "ridge of about {} FLOP per byte in f32",
            67.0 / 3.35,
            0,
        ),
        (
            "lessons/04-naive-swiglu.md",
            "that of an MI325X about {}",
            163.4 / 6.0,
            0,
        ),
        (
            "lessons/04-naive-swiglu.md",
            "are then {} GFLOP/s",
            4.0 / 0.491,
            1,
        ),
        (
            "lessons/04-naive-swiglu.md",
            "{} bytes for every step of the sums",
            3.0 * 4.0,
            0,
        ),
        (
            "lessons/04-naive-swiglu.md",
            "That is 4 FLOP for {} bytes",
            3.0 * 4.0,
            0,
        ),
        (
            "lessons/05-hybrid.md",
            "{} bytes of traffic per parameter",
            7.0 * 4.0,
            0,
        ),
        (
            "lessons/05-hybrid.md",
            "Fusing by hand: {} times",
            344.1 / 238.5,
            1,
        ),
        (
            "lessons/06-too-good-to-be-true.md",
            "{} bytes a parameter",
            4.0 * 4.0,
            0,
        ),
        (
            "lessons/06-too-good-to-be-true.md",
            "they reach {} and 1.09 times the baseline",
            244.6 / 238.5,
            2,
        ),
        (
            "lessons/06-too-good-to-be-true.md",
            "they reach 1.03 and {} times the baseline",
            260.4 / 238.5,
            2,
        ),
        (
            "lessons/06-too-good-to-be-true.md",
            "8 B × 31,465,984 = {} MiB",
            8.0 * 31_465_984.0 / 1_048_576.0,
            2,
        ),
        (
            "lessons/06-too-good-to-be-true.md",
            "8 B × {} = 240.07 MiB",
            31_977_984.0 - 512_000.0,
            0,
        ),
        (
            "lessons/06-too-good-to-be-true.md",
            "9.95 TFLOP in 52.3 ms is {} TFLOP/s",
            9.946 / 0.0523,
            0,
        ),
        (
            "lessons/06-too-good-to-be-true.md",
            "ln 1000 = {}",
            1000_f64.ln(),
            3,
        ),
        (
            "lessons/counting.md",
            "a parameter costs {} bytes",
            4.0 * 4.0,
            0,
        ),
        (
            "exercises/07-nothing-to-compute/stage.toml",
            "{} ms for one row",
            0.8 + 0.1,
            1,
        ),
        (
            "exercises/07-nothing-to-compute/stage.toml",
            "{} ms for eight: 8 · 0.9 / 1.6 = 4.5",
            0.8 + 8.0 * 0.1,
            1,
        ),
        (
            "exercises/07-nothing-to-compute/stage.toml",
            "8 · 0.9 / 1.6 = {}",
            8.0 * 0.9 / 1.6,
            1,
        ),
        (
            "exercises/07-nothing-to-compute/stage.toml",
            "so {} times is the limit",
            0.9 / 0.1,
            0,
        ),
        (
            "exercises/08-out-of-memory/stage.toml",
            "{}, 3.2, 12.8 and 51.2 GB",
            4.0 * 0.2,
            1,
        ),
        (
            "exercises/08-out-of-memory/stage.toml",
            "0.8, {}, 12.8 and 51.2 GB",
            16.0 * 0.2,
            1,
        ),
        (
            "exercises/08-out-of-memory/stage.toml",
            "0.8, 3.2, {} and 51.2 GB",
            64.0 * 0.2,
            1,
        ),
        (
            "exercises/08-out-of-memory/stage.toml",
            "0.8, 3.2, 12.8 and {} GB",
            256.0 * 0.2,
            1,
        ),
        (
            "exercises/08-out-of-memory/stage.toml",
            "tokens would need {} GB",
            16.0 * 0.2,
            1,
        ),
        (
            "exercises/02-strides/stage.toml",
            "(4, {}, 1)",
            2.0 * 4.0,
            0,
        ),
        (
            "exercises/02-strides/stage.toml",
            "1 / (1 − 0.03 + 0.03/20) = {}",
            1.0 / (1.0 - 0.03 + 0.03 / 20.0),
            2,
        ),
        (
            "exercises/02-strides/stage.toml",
            "about {} times",
            1.0 / (1.0 - 0.03 + 0.03 / 20.0),
            2,
        ),
        (
            "exercises/02-strides/stage.toml",
            "more than {} % of it",
            100.0 * (1.0 - 1.0 / 20.0),
            0,
        ),
        (
            "exercises/02-strides/stage.toml",
            "uses {} of its 32 bytes",
            32.0 / 8.0,
            0,
        ),
        (
            "exercises/02-strides/stage.toml",
            "the other {} bytes",
            32.0 - 4.0,
            0,
        ),
        (
            "exercises/03-missing-sync/stage.toml",
            "other {} ms are gaps",
            42.0 - 39.0,
            0,
        ),
        (
            "exercises/04-naive-swiglu/stage.toml",
            "60 / 3 = {} FLOP per byte",
            60.0 / 3.0,
            0,
        ),
        (
            "exercises/04-naive-swiglu/stage.toml",
            "1 / (0.4 + 0.6/10) = {}",
            1.0 / (1.0 - 60.0 / 100.0 + 60.0 / 100.0 / 10.0),
            2,
        ),
        (
            "exercises/04-naive-swiglu/stage.toml",
            "about {} times faster",
            1.0 / (0.4 + 0.6 / 10.0),
            1,
        ),
        (
            "exercises/05-hybrid/stage.toml",
            "2,500 × 5 µs = {} ms",
            2500.0 * 5.0 / 1000.0,
            1,
        ),
        (
            "exercises/06-too-good-to-be-true/stage.toml",
            "{} bytes times",
            2.0 * 4.0,
            0,
        ),
        (
            "exercises/06-too-good-to-be-true/stage.toml",
            "9.95 / 0.0523 = {} TFLOP/s",
            9.95 / 0.0523,
            0,
        ),
        (
            "exercises/06-too-good-to-be-true/stage.toml",
            "9.95 / {} = 190 TFLOP/s",
            52.3 / 1000.0,
            4,
        ),
        (
            "exercises/06-too-good-to-be-true/stage.toml",
            "8 × 31,465,984 B = {} MiB",
            8.0 * 31_465_984.0 / 1_048_576.0,
            2,
        ),
        (
            "exercises/06-too-good-to-be-true/stage.toml",
            "8 × {} B = 240.07 MiB",
            31_977_984.0 - 512_000.0,
            0,
        ),
        (
            "exercises/06-too-good-to-be-true/stage.toml",
            "{} B × (31,977,984 − 512,000)",
            2.0 * 4.0,
            0,
        ),
        (
            "exercises/09-half-the-bits/stage.toml",
            "It begins at ln V, about {}",
            16_384_f64.ln(),
            1,
        ),
        (
            "exercises/c02-context/exercise.toml",
            "{} bytes for each parameter",
            4.0 * 4.0,
            0,
        ),
        (
            "exercises/c03-rank/exercise.toml",
            "{} % if each saves a time of its own",
            5.0 * 10.0,
            0,
        ),
        (
            "exercises/c04-precision/exercise.toml",
            "ends at {}",
            (2.0 - 1.0 / 1024.0) * 32_768.0,
            0,
        ),
        (
            "exercises/c04-precision/exercise.toml",
            "Below {}e-8 an f16 is 0",
            1e8 / f64::from(1 << 25),
            0,
        ),
        (
            "exercises/c04-precision/exercise.toml",
            "2^−13, about {}e-4",
            1e4 / f64::from(1 << 13),
            1,
        ),
        (
            "exercises/k01-swiglu/exercise.toml",
            "for g = 2 the sigmoid is {}. What is silu(2)?",
            1.0 / (1.0 + (-2_f64).exp()),
            2,
        ),
        (
            "exercises/k02-rms-norm/exercise.toml",
            "{} lanes add the sums of the other 32",
            64.0 / 2.0,
            0,
        ),
        (
            "exercises/k02-rms-norm/exercise.toml",
            "then {}",
            64.0 / 4.0,
            0,
        ),
        (
            "exercises/k06-softmax/exercise.toml",
            "e^0 = {}",
            0_f64.exp(),
            0,
        ),
    ]
}

/// Returns a text without line breaks and without the commas between thousands.
fn normalized(text: &str) -> String {
    let without_commas = text.replace("\\\n", " ").replace(',', "");
    let words: Vec<&str> = without_commas.split_whitespace().collect();
    words.join(" ")
}

fn normalized_file(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    normalized(&fs::read_to_string(path).unwrap_or_else(|error| panic!("{file}: {error}")))
}

/// Returns true if a text contains a sentence whose numbers do not continue before or after it.
fn states(text: &str, sentence: &str) -> bool {
    text.match_indices(sentence).any(|(start, _)| {
        let before = &text[..start];
        let after = &text[start + sentence.len()..];
        let decimals = after.strip_prefix('.').unwrap_or(after);
        !before.ends_with(|c: char| c.is_ascii_digit() || c == '.')
            && !decimals.starts_with(|c: char| c.is_ascii_digit())
    })
}

#[test]
fn numbers_that_follow_from_others_are_right_in_their_sentences() {
    let mut wrong = Vec::new();
    for (file, pattern, number, digits) in sums() {
        let sentence = normalized(&pattern.replace("{}", &format!("{number:.digits$}")));
        if !states(&normalized_file(file), &sentence) {
            wrong.push(format!("{file} does not say “{sentence}”"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_sentence_does_not_begin_or_end_in_the_midst_of_a_number() {
    assert!(states("about 20 times", "20 times"));
    assert!(!states("about 120 times", "20 times"));
    assert!(!states("ln is 6.908", "ln is 6.9"));
}

#[test]
fn the_texts_contain_the_sentences_that_the_table_of_sources_quotes() {
    let table = include_str!("../../docs/sources.md");
    let mut quotes = 0;
    for row in table.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let text = normalized_file(cells[1].trim_matches('`'));
        for quote in cells[2].split(['“', '”']).skip(1).step_by(2) {
            assert!(text.contains(&normalized(quote)), "{}: “{quote}”", cells[1]);
            quotes += 1;
        }
    }
    assert!(quotes > 20, "{quotes}");
}
