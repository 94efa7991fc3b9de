//! Draws sizes at which a check runs a learner's kernel, in addition to the sizes that the exercise states. A learner cannot know them in
//! advance, because each check draws them from the ranges in `[hidden]` of exercise.toml. Each size in turn is near the end of its range
//! while the others are small: with `T = [3, 4300]` and `D = [2, 160, 2]`, a check runs T = 4219, D = 4 and T = 5, D = 142.
//!
//! A kernel that is wrong only at one size, or only above it, has to name that size in its text. A check therefore also runs a kernel at
//! the numbers in its text, as far as the exercise can have such sizes.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};

use serde::Deserialize;

use protocol::random::Rng;
use protocol::{KernelFill, KernelShape, MAX_SIZE};

/// The numbers of which none divides a drawn size, so that the size is not a multiple of a tile or a workgroup.
const DIVISORS: [u64; 4] = [2, 3, 5, 7];
/// The number of draws before a size may be divisible by one of these numbers.
const TRIES: usize = 32;
/// The largest number of sizes that are taken from a text.
const MAX_WRITTEN_SIZES: usize = 8;
/// The numbers of a text that are taken as sizes.
const WRITTEN_SIZES: Range<f64> = 3.0..1e5;
/// The largest product of the sizes of a shape with a size from a text.
const MAX_WRITTEN_ELEMENTS: u64 = 500_000;
/// The distance from a size in a text to the second size that is tried for it. It is longer than a tile.
const DISTANCE_PAST: u64 = 33;
/// The number of f32 elements in a line of memory. A row of this length shows if neighbouring elements are accessed together.
const MEMORY_LINE: f64 = 32.0;
/// The numbers of a text that are tried as values. Larger numbers mean infinity in a kernel, smaller ones zero.
const WRITTEN_VALUES: RangeInclusive<f64> = 1e-12..=1e12;
/// If a number of a text is at least this large, rows of values below all its numbers are tried. Other kinds of values are small already.
const MIN_BENEATH: f64 = 100.0;

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
    type Error = &'static str;

    fn try_from(numbers: Vec<u64>) -> Result<Self, Self::Error> {
        let (from, to, step) = match numbers[..] {
            [from, to] => (from, to, 1),
            [from, to, step] => (from, to, step),
            _ => (0, 0, 0),
        };
        let is_ordered = 0 < step && step <= from && from < to && to <= MAX_SIZE;
        if is_ordered && from.is_multiple_of(step) && to.is_multiple_of(step) {
            Ok(Self { from, to, step })
        } else {
            Err("write a range such as [1, 300], or [16, 320, 16] for multiples of 16")
        }
    }
}

impl SizeRange {
    /// Draws a size from the last quarter of the range.
    fn large(self, rng: &mut Rng) -> u64 {
        let last = self.to / self.step;
        let first = last - (last - self.from / self.step) / 4;
        let is_odd = |steps: &u64| {
            DIVISORS
                .iter()
                .all(|divisor| !steps.is_multiple_of(*divisor))
        };
        let mut draws = (0..TRIES).map(|_| first + rng.below((last - first + 1) as usize) as u64);
        self.step * draws.find(is_odd).unwrap_or(last)
    }

    /// Draws one of the four smallest sizes.
    fn small(self, rng: &mut Rng) -> u64 {
        (self.from + self.step * rng.below(4) as u64).min(self.to)
    }

    /// Draws a size near the geometric mean of the ends. It is at least a line of memory, if the range is long enough.
    fn medium(self, rng: &mut Rng) -> u64 {
        let middle = (self.from as f64 * self.to as f64).sqrt();
        let least = MEMORY_LINE.min(self.to as f64 / 2.0);
        let size = (middle * (0.8 + 0.4 * rng.uniform())).max(least);
        self.at_least(size as u64).clamp(self.from, self.to)
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
        let mut values = written.clone();
        values.retain(|value| WRITTEN_VALUES.contains(value));
        let mut rng = Rng::named(seed, "kernel sizes", 0);
        let mut shapes = self.drawn_shapes(&values, &mut rng);
        let own_numbers: Vec<f64> = own.iter().flat_map(|text| numbers(text)).collect();
        // A condition on a number between two sizes changes from the lower size to the next.
        let mut sizes: Vec<(bool, Reverse<u64>)> = written
            .iter()
            .filter(|number| WRITTEN_SIZES.contains(*number))
            .map(|number| (own_numbers.contains(number), Reverse(number.floor() as u64)))
            .collect();
        sizes.sort_unstable();
        sizes.dedup_by_key(|(_, size)| *size);
        for (_, Reverse(size)) in sizes.into_iter().take(MAX_WRITTEN_SIZES) {
            for name in self.ranges.keys().map(Some).chain([None]) {
                let most = self.largest_of(name, fixed);
                shapes.extend(self.written_shapes(size, name, most, &values, &mut rng));
            }
        }
        shapes
    }

    /// Returns one shape for each size, in which this size is large and the others are small, and one shape with medium sizes.
    fn drawn_shapes(&self, values: &[f64], rng: &mut Rng) -> Vec<KernelShape> {
        let mut fills = KernelFill::DRAWN.to_vec();
        fills.retain(|fill| match fill {
            KernelFill::Written => !values.is_empty(),
            KernelFill::Beneath => values.iter().any(|value| *value >= MIN_BENEATH),
            _ => true,
        });
        let mut shapes = Vec::new();
        let medium = (!self.ranges.is_empty()).then_some(None);
        for large in self.ranges.keys().map(Some).chain(medium) {
            let mut sizes = BTreeMap::new();
            for (name, range) in &self.ranges {
                let size = match large {
                    None => range.medium(rng),
                    Some(large) if large == name => range.large(rng),
                    Some(_) => range.small(rng),
                };
                sizes.insert(name.clone(), size);
            }
            shapes.push(KernelShape {
                label: match large {
                    None => "drawn, medium sizes".to_owned(),
                    Some(name) => format!("drawn, {name} large"),
                },
                idea: self.idea.clone(),
                values: fills.clone(),
                numbers: values.to_vec(),
                counted: large.is_none(),
                sizes,
                ..KernelShape::default()
            });
        }
        shapes
    }

    /// Returns the shapes in which the size with this name, or each size without a name, is a number from a text, and one that is somewhat
    /// larger. Neither is larger than `most`.
    fn written_shapes(
        &self,
        written: u64,
        name: Option<&String>,
        most: u64,
        values: &[f64],
        rng: &mut Rng,
    ) -> Vec<KernelShape> {
        let shown = name.map_or("all sizes", String::as_str);
        let past = (written + DISTANCE_PAST).min(most);
        let mut tried = Vec::new();
        if written <= most {
            tried.push((written, format!("{shown} = {written}, as in the text")));
        }
        if written < past {
            let label = format!("{shown} = {past}, past {written} in the text");
            tried.push((past, label));
        }
        let mut shapes = Vec::new();
        for (size, label) in tried {
            let sizes = self
                .with_written(size, name, |range| range.small(rng))
                .or_else(|| self.with_written(size, name, |range| range.from));
            shapes.extend(sizes.map(|sizes| KernelShape {
                label,
                idea: self.idea.clone(),
                values: KernelFill::OF_TEXT.to_vec(),
                numbers: values.to_vec(),
                sizes,
                ..KernelShape::default()
            }));
        }
        shapes
    }

    /// Returns the largest value that the size with this name has in the exercise. Without a name, returns the largest value that all
    /// sizes can have at once.
    fn largest_of(&self, name: Option<&String>, fixed: &[KernelShape]) -> u64 {
        self.ranges
            .iter()
            .filter(|(other, _)| name.is_none_or(|name| name == *other))
            .map(|(other, range)| {
                let own = fixed.iter().filter_map(|shape| shape.sizes.get(other));
                own.copied().fold(range.to, u64::max)
            })
            .min()
            .unwrap_or(0)
    }

    /// Returns the sizes of a shape in which the size with this name is `written`, and `small` chooses the others. Without a name, all
    /// sizes are `written`. `None` if the shape is too large.
    fn with_written(
        &self,
        written: u64,
        name: Option<&String>,
        mut small: impl FnMut(SizeRange) -> u64,
    ) -> Option<BTreeMap<String, u64>> {
        let mut sizes = BTreeMap::new();
        let mut elements: u64 = 1;
        for (other, range) in &self.ranges {
            let is_written = name.is_none_or(|name| name == other);
            let size = if is_written {
                range.at_least(written)
            } else {
                small(*range)
            };
            elements = elements.saturating_mul(size);
            sizes.insert(other.clone(), size);
        }
        (elements <= MAX_WRITTEN_ELEMENTS).then_some(sizes)
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
    let mut previous = ' ';
    let is_between = |c: char| {
        let is_sign = matches!(previous, 'e' | 'E') && matches!(c, '+' | '-');
        previous = c;
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

    fn range(numbers: &[u64]) -> Result<SizeRange, &'static str> {
        SizeRange::try_from(numbers.to_vec())
    }

    /// Returns the sizes of an exercise with even D and any T.
    fn d_and_t() -> DrawnSizes {
        DrawnSizes {
            idea: None,
            ranges: BTreeMap::from([
                ("D".to_owned(), range(&[2, 160, 2]).expect("a range")),
                ("T".to_owned(), range(&[3, 4300]).expect("a range")),
            ]),
        }
    }

    #[test]
    fn a_range_rises_in_steps_from_at_least_one_step() {
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
        assert!(range(&[1, 300]).is_ok() && range(&[16, 320, 16]).is_ok());
    }

    #[test]
    fn each_size_is_large_once_and_stays_in_its_range() {
        for seed in 0..200 {
            let shapes = d_and_t().shapes(seed, &[], &[], &[]);
            let [wide, long, medium] = &shapes[..] else {
                panic!("one for each size, and one with medium sizes")
            };
            assert!(wide.is_drawn() && wide.label != long.label);
            // The last quarter of D begins at 121, and that of T at 3226. No large size is a multiple of 2 or 3 steps.
            assert!((121..=160).contains(&wide.sizes["D"]) && wide.sizes["T"] <= 6);
            assert_eq!(wide.sizes["D"] % 4, 2);
            assert!((3226..=4300).contains(&long.sizes["T"]) && long.sizes["D"] <= 8);
            assert!(!long.sizes["T"].is_multiple_of(2) && !long.sizes["T"].is_multiple_of(3));
            // The geometric mean of 3 and 4300 is 114.
            assert!(medium.counted && (90..140).contains(&medium.sizes["T"]));
        }
    }

    #[test]
    fn numbers_of_a_text_are_tried_as_sizes_and_as_values() {
        let text = "if (T == 1024u || d > 0x10u) { return min(x, 4.5e1); } // value-1, {{T}}u";
        assert_eq!(numbers(text), [16.0, 45.0, 1024.0]);
        let shapes = d_and_t().shapes(1, &[], &[text], &[]);
        let has = |name: &str, size: u64| shapes.iter().any(|shape| shape.sizes[name] == size);
        // 1057 is 33 past 1024, and 49 is 33 past 16. D is even, so 49 becomes 50.
        for (name, size) in [("T", 1024), ("T", 1057), ("T", 16), ("T", 49), ("D", 50)] {
            assert!(has(name, size), "{name} = {size}");
        }
        for shape in &shapes {
            assert_eq!(shape.numbers, [16.0, 45.0, 1024.0]);
        }
    }

    #[test]
    fn a_seed_draws_the_same_sizes_again_and_another_seed_draws_others() {
        let drawn = |seed| d_and_t().shapes(seed, &[], &[], &[]);
        assert_eq!(drawn(1), drawn(1));
        assert_ne!(drawn(1), drawn(2));
    }
}
