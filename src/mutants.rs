//! Kernels made from one that is right: wrong ones, each with one change, and right ones that another person might have
//! written. Mutation testing asks with them how good a check is. An operator edits tokens and knows no types; what naga does not
//! accept is left out.

mod right;
mod tokens;
mod wrong;

use std::collections::HashSet;

use crate::random::Rng;
use tokens::{Operator, Tokens};

/// How many right kernels the operators start from, beside the one that is given.
const BASES: usize = 2;

/// A kernel that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutant {
    /// Number of the kernel that it was made from.
    pub kernel: usize,
    /// What was changed: `drop a barrier`.
    pub operator: &'static str,
    pub text: String,
}

/// Makes so many different kernels, as far as there are so many, from all of these and with all operators in turn. `accepts` says of a
/// kernel's number and a text whether it is a program. Equal seeds make equal kernels.
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
    let mut rng = Rng::named(seed, "mutants", u64::from(right));
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
    let mut seen: HashSet<String> = kernels.iter().map(|it| (*it).to_owned()).collect();
    let (mut made, mut round, mut last) = (Vec::new(), 0, 0);
    // A small number of them already has many operators: each kernel begins with another one.
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

/// What an operator makes of a text, in an order of chance.
fn texts(base: &str, operator: Operator, rng: &mut Rng) -> Vec<String> {
    let tokens = Tokens::read(base);
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

/// The first lines that differ: number from 1, the line as it was, the line as it is.
pub fn first_change(original: &str, text: &str) -> (usize, String, String) {
    let (mut old, mut new) = (original.lines(), text.lines());
    let mut line = 0;
    loop {
        line += 1;
        let pair = (old.next(), new.next());
        if pair.0 != pair.1 || pair.0.is_none() {
            let shown = |line: Option<&str>| line.unwrap_or_default().trim().to_owned();
            return (line, shown(pair.0), shown(pair.1));
        }
    }
}
