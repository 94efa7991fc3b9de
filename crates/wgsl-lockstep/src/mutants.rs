//! Makes kernels from a right one: wrong kernels with one change each, and right kernels that another person might have written.
//! Mutation testing measures with them how good a check is. An operator edits tokens and knows no types, so the caller leaves out
//! kernels that are not valid.
//!
//! ```
//! use wgsl_lockstep::Shader;
//! use wgsl_lockstep::mutants::{first_change, make};
//! let right = "@group(0) @binding(0) var<storage, read_write> x: array<f32>;
//! @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
//!     let i = id.x;
//!     if (i >= arrayLength(&x)) { return; }
//!     x[i] = 2.0 * x[i] + 1.0;
//! }";
//! let wrong = make(&[right], false, 10, 1, |_, text| Shader::parse(text).is_ok());
//! assert!(!wrong.is_empty() && wrong.iter().all(|mutant| mutant.text != right));
//! let (line, was, is) = first_change(right, &wrong[0].text);
//! println!("{}, line {line}: {was} is now {is}", wrong[0].operator);
//! ```

mod right;
mod rng;
mod tokens;
mod wrong;

use std::collections::HashSet;

use rng::Rng;
use tokens::{Operator, WgslTokens};

/// The number of right kernels that the operators change in addition to the given one.
const BASES: usize = 2;

/// A kernel made by an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutant {
    /// The index of the kernel that it was made from.
    pub kernel: usize,
    /// The operator's name: `drop a barrier`.
    pub operator: &'static str,
    /// The whole source of the kernel.
    pub text: String,
}

/// Makes up to `count` different kernels from the given ones, with all operators in turn: right kernels if `right` is true, otherwise wrong
/// ones, of which a few may happen to compute the right result. `accepts(index, text)` returns true if a text is valid in place of the
/// kernel with this index. Equal seeds make equal kernels.
pub fn make(
    kernels: &[&str],
    right: bool,
    count: usize,
    seed: u64,
    accepts: impl Fn(usize, &str) -> bool,
) -> Vec<Mutant> {
    let operators = if right {
        right::OPERATORS
    } else {
        wrong::OPERATORS
    };
    let mut rng = Rng::new(seed, right.into());
    // For each kernel and each operator, the texts that can still be taken.
    let mut pools: Vec<Vec<Vec<String>>> = Vec::new();
    for (index, kernel) in kernels.iter().enumerate() {
        let mut bases = vec![(*kernel).to_owned()];
        for _ in 0..BASES {
            let (_, operator) = right::OPERATORS[rng.below(right::OPERATORS.len())];
            let texts = texts(kernel, operator, &mut rng);
            bases.extend(texts.into_iter().find(|text| accepts(index, text)));
        }
        let mut pool = Vec::new();
        for (_, operator) in operators {
            let mut all = Vec::new();
            for base in &bases {
                all.extend(texts(base, *operator, &mut rng));
            }
            shuffle(&mut all, &mut rng);
            pool.push(all);
        }
        pools.push(pool);
    }
    let mut seen: HashSet<String> = kernels.iter().map(|kernel| (*kernel).to_owned()).collect();
    let mut made = Vec::new();
    let mut round = 0;
    let mut last_success = 0;
    // Each kernel begins with another operator, so that few mutants already use many operators.
    while made.len() < count && round - last_success <= operators.len() {
        for (kernel, pool) in pools.iter_mut().enumerate() {
            let operator = (round + kernel * operators.len() / kernels.len()) % operators.len();
            let candidates = std::iter::from_fn(|| pool[operator].pop());
            let mut fresh =
                candidates.filter(|text| accepts(kernel, text) && seen.insert(text.clone()));
            if made.len() < count
                && let Some(text) = fresh.next()
            {
                last_success = round;
                made.push(Mutant {
                    kernel,
                    operator: operators[operator].0,
                    text,
                });
            }
        }
        round += 1;
    }
    made
}

/// Returns the texts that an operator makes, in random order.
fn texts(base: &str, operator: Operator, rng: &mut Rng) -> Vec<String> {
    let tokens = WgslTokens::read(base);
    let mut all: Vec<String> = operator(&tokens, rng)
        .into_iter()
        .map(|edit| tokens.apply(edit))
        .collect();
    shuffle(&mut all, rng);
    all
}

fn shuffle(all: &mut [String], rng: &mut Rng) {
    for last in (1..all.len()).rev() {
        all.swap(last, rng.below(last + 1));
    }
}

/// Returns the first line that differs between two texts: its number from 1, the old line and the new line.
pub fn first_change(original: &str, text: &str) -> (usize, String, String) {
    let pairs = original.lines().zip(text.lines());
    let index = pairs.take_while(|(old, new)| old == new).count();
    let line = |text: &str| {
        text.lines()
            .nth(index)
            .unwrap_or_default()
            .trim()
            .to_owned()
    };
    (index + 1, line(original), line(text))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::Shader;

    /// A kernel to which each operator applies. `{{N}}` is filled with a size before it is parsed.
    const KERNEL: &str = "const N: u32 = {{N}}u;
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
var<workgroup> sums: array<f32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lane: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let start = group.x * N;
    if (start + lane >= arrayLength(&x)) { return; }
    var sum = 0.5;
    for (var k = 0u; k < N; k += 2u) { sum += max(sum, x[start + k]) * x[start + k]; }
    sums[lane] = sqrt(sum);
    workgroupBarrier();
    let first = sums[0];
    x[start + lane] = first * 2.0 + sums[lane];
}";

    #[track_caller]
    fn assert_every_operator_makes_a_kernel(right: bool, operators: &[(&str, Operator)]) {
        let is_valid = |text: &str| Shader::parse(&text.replace("{{N}}", "64")).is_ok();
        assert!(is_valid(KERNEL));
        let mutants = make(&[KERNEL], right, 10_000, 1, |_, text| is_valid(text));
        let found: BTreeSet<&str> = mutants.iter().map(|mutant| mutant.operator).collect();
        let expected: BTreeSet<&str> = operators.iter().map(|(name, _)| *name).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn every_operator_makes_a_valid_right_kernel() {
        assert_every_operator_makes_a_kernel(true, right::OPERATORS);
    }

    #[test]
    fn every_operator_makes_a_valid_wrong_kernel() {
        assert_every_operator_makes_a_kernel(false, wrong::OPERATORS);
    }
}
