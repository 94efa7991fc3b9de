//! Numbers in the course that follow from others: each is computed here and has to stand in its sentence with the digits that
//! the sentence states. `docs/sources.md` lists the numbers that were measured or published, beside the words they stand in.

use std::fs;
use std::path::Path;

/// A file, words of it with `{}` in the place of a number, what the number has to be, and its digits after the point.
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

/// The words of a text, without line breaks and without the commas between thousands.
fn words(text: &str) -> String {
    let text = text.replace("\\\n", " ").replace(',', "");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn words_of(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    words(&fs::read_to_string(path).unwrap_or_else(|error| panic!("{file}: {error}")))
}

/// Whether the words stand in the text, and no number goes on before or behind them.
fn states(text: &str, sentence: &str) -> bool {
    text.match_indices(sentence).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + sentence.len()..]);
        let decimal = after.strip_prefix('.').unwrap_or(after);
        !before.ends_with(|c: char| c.is_ascii_digit() || c == '.')
            && !decimal.starts_with(|c: char| c.is_ascii_digit())
    })
}

#[test]
fn the_numbers_of_a_text_follow_from_each_other() {
    let mut wrong = Vec::new();
    for (file, sentence, number, digits) in sums() {
        let sentence = words(&sentence.replace("{}", &format!("{number:.digits$}")));
        if !states(&words_of(file), &sentence) {
            wrong.push(format!("{file} does not say “{sentence}”"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(states("about 20 times", "20 times"));
    assert!(!states("about 120 times", "20 times") && !states("ln is 6.908", "ln is 6.9"));
}

#[test]
fn the_texts_say_what_the_table_of_sources_quotes() {
    let table = include_str!("../../docs/sources.md");
    let mut quotes = 0;
    for row in table.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let text = words_of(cells[1].trim_matches('`'));
        for quote in cells[2].split(['“', '”']).skip(1).step_by(2) {
            assert!(text.contains(&words(quote)), "{}: “{quote}”", cells[1]);
            quotes += 1;
        }
    }
    assert!(quotes > 20, "{quotes}");
}
