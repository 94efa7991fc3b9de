//! Sizes that nobody can know before: each check draws them from the exercise's ranges, `[hidden]` in exercise.toml. In turn each
//! size is near the end of its range while the others are small.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::protocol::{KernelFill, KernelShape, MAX_SIZE};
use crate::random::Rng;

/// Divisors that a drawn size has none of, so that it is a multiple of no tile and of no workgroup.
const DIVISORS: [u64; 4] = [2, 3, 5, 7];
const TRIES: usize = 32;

/// The ranges of an exercise, by the name of a size; without them nothing is drawn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DrawnSizes {
    /// What a kernel that is wrong there has to think about.
    pub idea: Option<String>,
    pub ranges: BTreeMap<String, SizeRange>,
}

/// `[1, 300]`, or `[16, 320, 16]` for multiples of 16.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Vec<u64>")]
pub struct SizeRange {
    pub from: u64,
    pub to: u64,
    step: u64,
}

impl TryFrom<Vec<u64>> for SizeRange {
    type Error = String;

    fn try_from(numbers: Vec<u64>) -> Result<Self, String> {
        let (from, to, step) = match numbers[..] {
            [from, to] => (from, to, 1),
            [from, to, step] => (from, to, step),
            _ => return Err("a range is [1, 300], or [16, 320, 16] for multiples of 16".to_owned()),
        };
        let fits = 0 < step && step <= from && from < to && to <= MAX_SIZE;
        if !fits || !from.is_multiple_of(step) || !to.is_multiple_of(step) {
            return Err(format!(
                "[{from}, {to}, {step}] is no range: from the smallest to the largest size, both multiples of the third number"
            ));
        }
        Ok(Self { from, to, step })
    }
}

impl SizeRange {
    /// From the last quarter, or from the first eighth.
    fn draw(self, large: bool, rng: &mut Rng) -> u64 {
        let (from, to) = (self.from / self.step, self.to / self.step);
        let (from, to) = match large {
            true => (to - (to - from) / 4, to),
            false => (from, from + (to - from) / 8),
        };
        let mut draw = || from + rng.below((to - from + 1) as usize) as u64;
        let odd = |n: &u64| DIVISORS.iter().all(|divisor| !n.is_multiple_of(*divisor));
        let mut tries = (0..TRIES).map(|_| draw());
        let found = tries.find(|n| !large || odd(n));
        self.step * found.unwrap_or(to)
    }
}

impl DrawnSizes {
    /// One shape for each size.
    pub fn shapes(&self, seed: u64) -> Vec<KernelShape> {
        let mut rng = Rng::named(seed, "kernel sizes", 0);
        let shape = |large: &String| KernelShape {
            label: format!("drawn, {large} large"),
            idea: self.idea.clone(),
            values: KernelFill::DRAWN.to_vec(),
            sizes: self
                .ranges
                .iter()
                .map(|(name, range)| (name.clone(), range.draw(name == large, &mut rng)))
                .collect(),
            ..KernelShape::default()
        };
        self.ranges.keys().map(shape).collect()
    }
}

impl DrawnSizes {
    /// The largest that may be drawn: in turn each size at its end.
    pub fn largest(&self) -> impl Iterator<Item = KernelShape> {
        self.ranges.keys().map(|large| KernelShape {
            label: format!("drawn, {large} large"),
            sizes: self
                .ranges
                .iter()
                .map(|(name, range)| {
                    let small = range.from + (range.to - range.from) / 8;
                    (name.clone(), if name == large { range.to } else { small })
                })
                .collect(),
            ..KernelShape::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawn_sizes_keep_their_range() {
        let range = |numbers: &[u64]| SizeRange::try_from(numbers.to_vec());
        for wrong in [
            &[5][..],
            &[0, 5],
            &[5, 5],
            &[16, 40, 16],
            &[1, 2, 0],
            &[1, 1 << 40],
        ] {
            assert!(range(wrong).is_err(), "{wrong:?}");
        }
        let drawn = DrawnSizes {
            idea: None,
            ranges: BTreeMap::from([
                ("D".to_owned(), range(&[2, 160, 2]).expect("a range")),
                ("T".to_owned(), range(&[3, 4300]).expect("a range")),
            ]),
        };
        for seed in 0..200 {
            let shapes = drawn.shapes(seed);
            let [wide, long] = &shapes[..] else {
                panic!("one for each size")
            };
            assert!(wide.is_drawn() && wide.label != long.label);
            assert!(wide.sizes["D"] >= 121 && wide.sizes["D"] % 4 == 2 && wide.sizes["T"] <= 541);
            assert!(long.sizes["T"] >= 3226 && long.sizes["T"] <= 4300 && long.sizes["D"] <= 22);
            assert!(!long.sizes["T"].is_multiple_of(2) && !long.sizes["T"].is_multiple_of(3));
        }
        assert_ne!(drawn.shapes(1), drawn.shapes(2));
        assert_eq!(drawn.shapes(1), drawn.shapes(1));
    }
}
