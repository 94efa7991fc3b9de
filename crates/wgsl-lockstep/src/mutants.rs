//! Makes kernels from a right one: wrong kernels with one change each, and right kernels that another person might have written.
//! Mutation testing uses them to measure how good a check is. An operator edits tokens and knows no types; kernels that naga does
//! not accept are left out.
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

/// The number of right kernels that the operators start from, beside the given one.
const BASES: usize = 2;

/// A kernel made by an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutant {
    /// The number of the kernel that it was made from.
    pub kernel: usize,
    /// The operator's name: `drop a barrier`.
    pub operator: &'static str,
    /// The whole source of the kernel.
    pub text: String,
}

/// Makes up to `count` different kernels from the given ones, with all operators in turn: right kernels if `right`, wrong ones otherwise. A
/// wrong one may happen to compute the right result. `accepts` says whether a text is a valid shader in place of the kernel with this
/// number. Equal seeds make equal kernels.
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
    let mut pools: Vec<Vec<Vec<String>>> = Vec::new();
    for (number, kernel) in kernels.iter().enumerate() {
        let mut bases = vec![(*kernel).to_owned()];
        for _ in 0..BASES {
            let (_, operator) = right::OPERATORS[rng.below(right::OPERATORS.len())];
            let texts = texts(kernel, operator, &mut rng);
            bases.extend(texts.into_iter().find(|text| accepts(number, text)));
        }
        let pool = operators.iter().map(|(_, operator)| {
            let all = bases
                .iter()
                .flat_map(|base| texts(base, *operator, &mut rng));
            let mut all: Vec<String> = all.collect();
            shuffle(&mut all, &mut rng);
            all
        });
        pools.push(pool.collect());
    }
    let mut seen: HashSet<String> = kernels.iter().map(|kernel| (*kernel).to_owned()).collect();
    let (mut made, mut round, mut last) = (Vec::new(), 0, 0);
    // Each kernel begins with another operator, so that few mutants already use many operators.
    while made.len() < count && round - last <= operators.len() {
        for (kernel, pool) in pools.iter_mut().enumerate() {
            let at = (round + kernel * operators.len() / kernels.len()) % operators.len();
            let next = std::iter::from_fn(|| pool[at].pop());
            let mut fresh = next.filter(|text| accepts(kernel, text) && seen.insert(text.clone()));
            if made.len() < count
                && let Some(text) = fresh.next()
            {
                last = round;
                made.push(Mutant {
                    kernel,
                    operator: operators[at].0,
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
    let edits = operator(&tokens, rng).into_iter();
    let mut all: Vec<String> = edits.map(|edit| tokens.apply(edit)).collect();
    shuffle(&mut all, rng);
    all
}

fn shuffle(all: &mut [String], rng: &mut Rng) {
    for last in (1..all.len()).rev() {
        all.swap(last, rng.below(last + 1));
    }
}

/// Returns the first line that differs: its number from 1, the old line, the new line.
pub fn first_change(original: &str, text: &str) -> (usize, String, String) {
    let pairs = original.lines().zip(text.lines());
    let same = pairs.take_while(|(old, new)| old == new).count();
    let shown = |text: &str| text.lines().nth(same).unwrap_or_default().trim().to_owned();
    (same + 1, shown(original), shown(text))
}
