//! Sizes that a learner cannot know in advance: each check draws them from the ranges in `[hidden]` of exercise.toml. Each size in
//! turn is near the end of its range while the others are small. Checks also use sizes that the learner's text names, because a
//! kernel that is wrong at one size, or above it, has to name that size. A number outside of the sizes of the exercise is none.

use std::collections::BTreeMap;

use serde::Deserialize;

use protocol::random::Rng;
use protocol::{KernelFill, KernelShape, MAX_SIZE};

/// A drawn size is divisible by none of these, and therefore not a multiple of a tile or a workgroup.
const DIVISORS: [u64; 4] = [2, 3, 5, 7];
const TRIES: usize = 32;
/// How many numbers of a text are tried as sizes, the bound on such a number, and the largest product of a shape's sizes.
const WRITTEN_SIZES: usize = 8;
const WRITTEN_SIZE: f64 = 1e5;
const WRITTEN_ELEMENTS: u64 = 500_000;
/// A second size is this much larger than such a number: more than a tile.
const PAST: u64 = 33;
/// Elements of a line of memory; a row of this length shows whether neighbouring elements are accessed together.
const ROW: f64 = 32.0;
/// Numbers of a text that are tried as values. Larger ones stand for infinity, smaller ones for zero.
const WRITTEN_VALUES: std::ops::RangeInclusive<f64> = 1e-12..=1e12;
/// Rows lie below every number of the text where one is at least this large; other kinds of values lie below smaller ones.
const BENEATH: f64 = 100.0;

/// The ranges of an exercise, by the name of a size; without them nothing is drawn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DrawnSizes {
    /// The idea that a kernel misses if it fails at drawn sizes.
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
    /// A size from the last quarter of the range.
    fn large(self, rng: &mut Rng) -> u64 {
        let (from, to) = (self.from / self.step, self.to / self.step);
        let (from, to) = (to - (to - from) / 4, to);
        let mut draw = || from + rng.below((to - from + 1) as usize) as u64;
        let odd = |n: &u64| DIVISORS.iter().all(|divisor| !n.is_multiple_of(*divisor));
        let mut tries = (0..TRIES).map(|_| draw());
        let found = tries.find(odd);
        self.step * found.unwrap_or(to)
    }

    /// One of the four smallest sizes.
    fn small(self, rng: &mut Rng) -> u64 {
        (self.from + self.step * rng.below(4) as u64).min(self.to)
    }

    /// A size near the geometric mean of the range's ends, and at least a row of memory if the range allows it.
    fn middle(self, rng: &mut Rng) -> u64 {
        let middle = (self.from as f64 * self.to as f64).sqrt();
        let n = (middle * (0.8 + 0.4 * rng.uniform())).max(ROW.min(self.to as f64 / 2.0));
        self.from(n as u64).clamp(self.from, self.to)
    }

    /// The smallest size of the range's step that is at least `n`.
    const fn from(self, n: u64) -> u64 {
        n.next_multiple_of(self.step)
    }
}

impl DrawnSizes {
    /// One shape for each size, one with medium sizes, and the shapes for sizes named in the texts. Of those, numbers that do not
    /// occur in the course's `own` texts come first, and larger ones before smaller ones. The exercise itself has the shapes `fixed`.
    pub fn shapes(
        &self,
        seed: u64,
        fixed: &[KernelShape],
        texts: &[&str],
        own: &[&str],
    ) -> Vec<KernelShape> {
        let all = |texts: &[&str]| texts.iter().flat_map(|text| numbers(text)).collect();
        let (written, own): (Vec<f64>, Vec<f64>) = (all(texts), all(own));
        let values = written.iter().copied();
        let values: Vec<f64> = values.filter(|it| WRITTEN_VALUES.contains(it)).collect();
        let kinds = KernelFill::DRAWN.into_iter();
        let kinds = kinds.filter(|kind| match kind {
            KernelFill::Written => !values.is_empty(),
            KernelFill::Beneath => values.iter().any(|value| *value >= BENEATH),
            _ => true,
        });
        let kinds: Vec<KernelFill> = kinds.collect();
        let mut rng = Rng::named(seed, "kernel sizes", 0);
        let shape = |large: Option<&String>| {
            let sizes = self.ranges.iter().map(|(name, range)| {
                let size = match large {
                    None => range.middle(&mut rng),
                    Some(large) if large == name => range.large(&mut rng),
                    Some(_) => range.small(&mut rng),
                };
                (name.clone(), size)
            });
            let what = large.map_or("medium sizes".to_owned(), |it| format!("{it} large"));
            KernelShape {
                label: format!("drawn, {what}"),
                idea: self.idea.clone(),
                values: kinds.clone(),
                numbers: values.clone(),
                counted: large.is_none(),
                sizes: sizes.collect(),
                ..KernelShape::default()
            }
        };
        let middle = (!self.ranges.is_empty()).then_some(None);
        let named = self.ranges.keys().map(Some).chain(middle);
        let mut shapes: Vec<KernelShape> = named.map(shape).collect();
        // A condition on a number between two sizes changes from the lower one to the next.
        let of_text = |number: f64| (number.floor() as u64, own.contains(&number));
        let sizes = written.into_iter();
        let sizes = sizes.filter(|number| (3.0..WRITTEN_SIZE).contains(number));
        let mut sizes: Vec<(u64, bool)> = sizes.map(of_text).collect();
        sizes.sort_by(|a, b| a.1.cmp(&b.1).then(b.0.cmp(&a.0)));
        sizes.dedup_by_key(|(size, _)| *size);
        let names = self.ranges.keys().map(|name| Some(name.as_str()));
        let names: Vec<Option<&str>> = names.chain([None]).collect();
        // The largest size of a name that the exercise has; of all names, the smallest of those.
        let largest = |name: Option<&str>| {
            let of = self.ranges.iter();
            let of = of.filter(|(other, _)| name.is_none_or(|name| name == *other));
            let most = of.map(|(other, range)| {
                let own = fixed.iter().filter_map(|shape| shape.sizes.get(other));
                own.copied().fold(range.to, u64::max)
            });
            most.min().unwrap_or(0)
        };
        for (size, _) in sizes.into_iter().take(WRITTEN_SIZES) {
            for name in &names {
                let (of, most) = (name.unwrap_or("all sizes"), largest(*name));
                if size <= most {
                    let at = format!("{of} = {size}, as in the text");
                    shapes.extend(self.written(at, size, *name, &values, &mut rng));
                }
                let past = (size + PAST).min(most);
                if size < past {
                    let after = format!("{of} = {past}, past {size} in the text");
                    shapes.extend(self.written(after, past, *name, &values, &mut rng));
                }
            }
        }
        shapes
    }

    /// The shape in which the size `name` is `size` and the others are small; without a name, all are `size`. `None` if it is too large.
    fn written(
        &self,
        label: String,
        size: u64,
        name: Option<&str>,
        values: &[f64],
        rng: &mut Rng,
    ) -> Option<KernelShape> {
        let with = |others: &mut dyn FnMut(SizeRange) -> u64| {
            let sizes = self.ranges.iter().map(|(other, range)| {
                let of_text = name.is_none_or(|name| name == other);
                let size = if of_text {
                    range.from(size)
                } else {
                    others(*range)
                };
                (other.clone(), size)
            });
            let sizes: BTreeMap<String, u64> = sizes.collect();
            let elements = sizes.values().try_fold(1_u64, |all, n| all.checked_mul(*n));
            elements.filter(|it| *it <= WRITTEN_ELEMENTS).map(|_| sizes)
        };
        let sizes =
            with(&mut |range| range.small(rng)).or_else(|| with(&mut |range| range.from))?;
        Some(KernelShape {
            label,
            idea: self.idea.clone(),
            values: KernelFill::OF_TEXT.to_vec(),
            numbers: values.to_vec(),
            sizes,
            ..KernelShape::default()
        })
    }
}

/// The numbers of a WGSL text.
fn numbers(text: &str) -> Vec<f64> {
    let mut last = ' ';
    let words = text.split(|c: char| {
        let exponent = matches!(last, 'e' | 'E') && matches!(c, '+' | '-');
        last = c;
        !(c.is_alphanumeric() || matches!(c, '.' | '_') || exponent)
    });
    let words = words.filter(|word| word.starts_with(|c: char| c.is_ascii_digit() || c == '.'));
    let number = |word: &str| match word.strip_prefix("0x") {
        Some(digits) => {
            let digits = digits.trim_end_matches(['u', 'i']);
            u32::from_str_radix(digits, 16).ok().map(f64::from)
        }
        None => word.trim_end_matches(['u', 'i', 'f', 'h']).parse().ok(),
    };
    let mut numbers: Vec<f64> = words.filter_map(number).collect();
    numbers.sort_by(f64::total_cmp);
    numbers.dedup();
    numbers
}

impl DrawnSizes {
    /// The largest shapes that can be drawn: one for each size at the end of its range.
    pub fn largest(&self) -> impl Iterator<Item = KernelShape> {
        self.ranges.keys().map(|large| KernelShape {
            label: format!("drawn, {large} large"),
            sizes: self
                .ranges
                .iter()
                .map(|(name, range)| {
                    let small = range.from + 3 * range.step;
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
        let has = |name: &str, size: u64| shapes.iter().any(|it| it.sizes[name] == size);
        assert!([1024, 1057, 16, 49].iter().all(|size| has("T", *size)) && has("D", 50));
        assert!(shapes.iter().all(|it| it.numbers == [16.0, 45.0, 1024.0]));
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
