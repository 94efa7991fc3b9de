//! The sizes of the shapes at which a check runs a learner's kernel, beside those of the exercise. A learner cannot know them in advance,
//! because each check draws them from the ranges in `[hidden]` of exercise.toml. Each size in turn is near the end of its range while the
//! others are small.
//!
//! A kernel that is wrong only at one size, or only above it, has to name that size in its text. A check therefore also runs a kernel at
//! the numbers in its text, as far as the exercise can have such sizes.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Deserialize;

use protocol::random::Rng;
use protocol::{KernelFill, KernelShape, MAX_SIZE};

/// The numbers of which none divides a drawn size, so that the size is not a multiple of a tile or a workgroup.
const DIVISORS: [u64; 4] = [2, 3, 5, 7];
/// The number of draws before a size may be divisible by these numbers.
const TRIES: usize = 32;
/// The largest number of sizes that are taken from a text.
const WRITTEN_SIZES: usize = 8;
/// A number of a text that is this large, or larger, is not taken as a size.
const WRITTEN_SIZE: f64 = 1e5;
/// The largest product of the sizes of a shape with a size from a text.
const WRITTEN_ELEMENTS: u64 = 500_000;
/// The distance from a size in a text to the second size that is tried for it. It is longer than a tile.
const PAST: u64 = 33;
/// The number of elements in a line of memory. A row of this length shows if neighbouring elements are accessed together.
const ROW: f64 = 32.0;
/// The numbers of a text that are tried as values. Larger numbers stand for infinity, smaller ones for zero.
const WRITTEN_VALUES: std::ops::RangeInclusive<f64> = 1e-12..=1e12;
/// If a number of a text is at least this large, rows of values below all its numbers are tried. Other kinds of values are small already.
const BENEATH: f64 = 100.0;

/// The ranges from which the sizes of an exercise are drawn, by the name of the size. Without ranges, nothing is drawn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DrawnSizes {
    /// The idea that a kernel misses if it fails at drawn sizes.
    pub idea: Option<String>,
    pub ranges: BTreeMap<String, SizeRange>,
}

/// A range of sizes. The file has it as `[1, 300]`, or as `[16, 320, 16]` for multiples of 16.
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
    /// Draws a size from the last quarter of the range.
    fn large(self, rng: &mut Rng) -> u64 {
        let last = self.to / self.step;
        let first = last - (last - self.from / self.step) / 4;
        let is_odd = |n: &u64| DIVISORS.iter().all(|divisor| !n.is_multiple_of(*divisor));
        let mut draws = (0..TRIES).map(|_| first + rng.below((last - first + 1) as usize) as u64);
        self.step * draws.find(is_odd).unwrap_or(last)
    }

    /// Draws one of the four smallest sizes.
    fn small(self, rng: &mut Rng) -> u64 {
        (self.from + self.step * rng.below(4) as u64).min(self.to)
    }

    /// Draws a size near the geometric mean of the ends. It is at least a row of memory, if the range is long enough.
    fn middle(self, rng: &mut Rng) -> u64 {
        let middle = (self.from as f64 * self.to as f64).sqrt();
        let n = (middle * (0.8 + 0.4 * rng.uniform())).max(ROW.min(self.to as f64 / 2.0));
        self.at_least(n as u64).clamp(self.from, self.to)
    }

    /// Returns the smallest multiple of the step that is at least `n`.
    const fn at_least(self, n: u64) -> u64 {
        n.next_multiple_of(self.step)
    }
}

impl DrawnSizes {
    /// Returns the shapes to check: one in which each size is large, one with medium sizes, and those with sizes from the learner's
    /// `texts`. Numbers that the course's `own` texts do not contain come first, and large numbers before small ones. `fixed` are the
    /// shapes of the exercise itself.
    pub fn shapes(
        &self,
        seed: u64,
        fixed: &[KernelShape],
        texts: &[&str],
        own: &[&str],
    ) -> Vec<KernelShape> {
        let written: Vec<f64> = texts.iter().flat_map(|text| numbers(text)).collect();
        let own_numbers: Vec<f64> = own.iter().flat_map(|text| numbers(text)).collect();
        let mut values = written.clone();
        values.retain(|value| WRITTEN_VALUES.contains(value));
        let mut kinds = KernelFill::DRAWN.to_vec();
        kinds.retain(|kind| match kind {
            KernelFill::Written => !values.is_empty(),
            KernelFill::Beneath => values.iter().any(|value| *value >= BENEATH),
            _ => true,
        });
        let mut rng = Rng::named(seed, "kernel sizes", 0);
        let mut shapes = Vec::new();
        let medium = (!self.ranges.is_empty()).then_some(None);
        for large in self.ranges.keys().map(Some).chain(medium) {
            let draw = |(name, range): (&String, &SizeRange)| {
                let size = match large {
                    None => range.middle(&mut rng),
                    Some(large) if large == name => range.large(&mut rng),
                    Some(_) => range.small(&mut rng),
                };
                (name.clone(), size)
            };
            let sizes = self.ranges.iter().map(draw).collect();
            let message = large.map_or("medium sizes".to_owned(), |name| format!("{name} large"));
            shapes.push(KernelShape {
                label: format!("drawn, {message}"),
                idea: self.idea.clone(),
                values: kinds.clone(),
                numbers: values.clone(),
                counted: large.is_none(),
                sizes,
                ..KernelShape::default()
            });
        }
        // A condition on a number between two sizes changes from the lower size to the next.
        let mut sizes: Vec<(bool, Reverse<u64>)> = written
            .iter()
            .filter(|number| (3.0..WRITTEN_SIZE).contains(*number))
            .map(|number| (own_numbers.contains(number), Reverse(number.floor() as u64)))
            .collect();
        sizes.sort_unstable();
        sizes.dedup_by_key(|(_, size)| *size);
        for (_, Reverse(size)) in sizes.into_iter().take(WRITTEN_SIZES) {
            for name in self.ranges.keys().map(Some).chain([None]) {
                let message = name.map_or("all sizes", String::as_str);
                let most = self.largest_of(name, fixed);
                let past = (size + PAST).min(most);
                let mut tried = Vec::new();
                if size <= most {
                    tried.push((size, format!("{message} = {size}, as in the text")));
                }
                if size < past {
                    tried.push((past, format!("{message} = {past}, past {size} in the text")));
                }
                for (size, label) in tried {
                    let sizes = self.with_written(size, name, &mut rng);
                    shapes.extend(sizes.map(|sizes| KernelShape {
                        label,
                        idea: self.idea.clone(),
                        values: KernelFill::OF_TEXT.to_vec(),
                        numbers: values.clone(),
                        sizes,
                        ..KernelShape::default()
                    }));
                }
            }
        }
        shapes
    }

    /// Returns the largest value that the size with this name has in the exercise. Without a name, returns the largest value that all
    /// sizes can have at once.
    fn largest_of(&self, name: Option<&String>, fixed: &[KernelShape]) -> u64 {
        let named = self.ranges.iter();
        let largest = named
            .filter(|(other, _)| name.is_none_or(|name| name == *other))
            .map(|(other, range)| {
                let own = fixed.iter().filter_map(|shape| shape.sizes.get(other));
                own.copied().fold(range.to, u64::max)
            });
        largest.min().unwrap_or(0)
    }

    /// Returns the sizes of a shape in which the size with this name is `written` and the others are small. Without a name, all sizes
    /// are `written`. `None` if the shape is too large.
    fn with_written(
        &self,
        written: u64,
        name: Option<&String>,
        rng: &mut Rng,
    ) -> Option<BTreeMap<String, u64>> {
        let beside = |small: &mut dyn FnMut(SizeRange) -> u64| {
            let mut sizes = BTreeMap::new();
            for (other, range) in &self.ranges {
                let is_written = name.is_none_or(|name| name == other);
                let size = if is_written {
                    range.at_least(written)
                } else {
                    small(*range)
                };
                sizes.insert(other.clone(), size);
            }
            let elements = sizes
                .values()
                .try_fold(1_u64, |all, n| all.checked_mul(*n))?;
            (elements <= WRITTEN_ELEMENTS).then_some(sizes)
        };
        beside(&mut |range| range.small(rng)).or_else(|| beside(&mut |range| range.from))
    }

    /// Returns the largest shapes that can be drawn: one for each size at the end of its range.
    pub fn largest(&self) -> impl Iterator<Item = KernelShape> {
        self.ranges.keys().map(|large| {
            let size = |(name, range): (&String, &SizeRange)| {
                let small = range.from + 3 * range.step;
                (name.clone(), if name == large { range.to } else { small })
            };
            KernelShape {
                label: format!("drawn, {large} large"),
                sizes: self.ranges.iter().map(size).collect(),
                ..KernelShape::default()
            }
        })
    }
}

/// Returns the numbers in a WGSL text, sorted, each once.
fn numbers(text: &str) -> Vec<f64> {
    let mut last = ' ';
    let is_between = |c: char| {
        let is_sign = matches!(last, 'e' | 'E') && matches!(c, '+' | '-');
        last = c;
        !(c.is_alphanumeric() || matches!(c, '.' | '_') || is_sign)
    };
    let number = |word: &str| {
        if !word.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            return None;
        }
        match word.strip_prefix("0x") {
            Some(digits) => {
                let plain = digits.trim_end_matches(['u', 'i']);
                u32::from_str_radix(plain, 16).ok().map(f64::from)
            }
            None => word.trim_end_matches(['u', 'i', 'f', 'h']).parse().ok(),
        }
    };
    let mut numbers: Vec<f64> = text.split(is_between).filter_map(number).collect();
    numbers.sort_by(f64::total_cmp);
    numbers.dedup();
    numbers
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
            let shapes = drawn.shapes(seed, &[], &[], &[]);
            let [wide, long, middle] = &shapes[..] else {
                panic!("one for each size, and one in the middle")
            };
            assert!(wide.is_drawn() && wide.label != long.label);
            assert!(wide.sizes["D"] >= 121 && wide.sizes["D"] % 4 == 2 && wide.sizes["T"] <= 6);
            assert!(long.sizes["T"] >= 3226 && long.sizes["T"] <= 4300 && long.sizes["D"] <= 8);
            assert!(!long.sizes["T"].is_multiple_of(2) && !long.sizes["T"].is_multiple_of(3));
            assert!(middle.counted && (90..140).contains(&middle.sizes["T"]));
        }
        let text = "if (T == 1024u || d > 0x10u) { return min(x, 4.5e1); } // value-1, {{T}}u";
        assert_eq!(numbers(text), [16.0, 45.0, 1024.0]);
        let shapes = drawn.shapes(1, &[], &[text], &[]);
        let has = |name: &str, size: u64| shapes.iter().any(|shape| shape.sizes[name] == size);
        assert!([1024, 1057, 16, 49].iter().all(|size| has("T", *size)) && has("D", 50));
        assert!(
            shapes
                .iter()
                .all(|shape| shape.numbers == [16.0, 45.0, 1024.0])
        );
        assert_ne!(
            drawn.shapes(1, &[], &[], &[]),
            drawn.shapes(2, &[], &[], &[])
        );
        assert_eq!(
            drawn.shapes(1, &[], &[], &[]),
            drawn.shapes(1, &[], &[], &[])
        );
    }
}
