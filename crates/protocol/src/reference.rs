//! Everything that the outputs of a kernel are compared with: the numbers in its buffers, drawn from a seed; the right outputs, which
//! the exercise's plain loop in WGSL computes with numbers that carry their error; and the difference of each element.

pub mod cost;

use naga::Scalar;
use wgsl_lockstep::exact::{Accuracy, Real};
use wgsl_lockstep::{Buffer, LaunchLimits, Shader};

use super::kernel::{KernelBinding, KernelFill, KernelRole, KernelShape, KernelSpec, KernelType};
use super::size::Sizes;
use super::template;
use crate::random::{Rng, hash};

/// The marker of elements that were never written: a NaN that no arithmetic produces.
pub const POISON: u32 = 0x7fc0_dead;
/// The marker of elements past the end of an output. As a float it is finite, so a kernel that reads it computes another result.
pub const SENTINEL: u32 = 0x5bad_c0de;
/// The limits of a reference, which may run for minutes.
const LIMITS: LaunchLimits = LaunchLimits {
    steps_per_workgroup: 1 << 32,
    steps: 1 << 32,
    memory: 1 << 30,
    findings: 1,
};

impl From<KernelType> for Scalar {
    fn from(element: KernelType) -> Self {
        match element {
            KernelType::F32 => Self::F32,
            KernelType::U32 => Self::U32,
            KernelType::I32 => Self::I32,
        }
    }
}

/// The parsed plain loop of an exercise at the sizes of one shape.
#[derive(Debug)]
pub struct Reference {
    shader: Shader,
}

impl Reference {
    /// Parses the plain loop of a kernel at these sizes.
    ///
    /// # Errors
    /// Fails when the text is not WGSL, or when it names an unknown size.
    pub fn parse(spec: &KernelSpec, sizes: &Sizes) -> Result<Self, String> {
        let filled = template::fill(&spec.reference, sizes).map_err(|unknown| {
            format!(
                "the reference names `{}`, which is not a size of this exercise",
                unknown.name
            )
        })?;
        let shader =
            Shader::parse(&filled.text).map_err(|error| format!("the reference: {error}"))?;
        Ok(Self { shader })
    }

    /// Returns true if the error bounds are wider for a kernel on a device than for one on the host.
    pub fn is_less_exact_on_a_device(&self) -> bool {
        self.shader.is_less_exact_on_a_device()
    }

    /// Computes the right outputs, one for each `out` and `inout` buffer in binding order, with their error bounds. `inputs` are the
    /// `in` and `inout` buffers in binding order. The bounds hold for a kernel that runs on a device if `device` is true, else for one
    /// that runs on the host.
    ///
    /// # Errors
    /// Fails when the reference does not fit its buffers, or when it is not a plain loop.
    pub fn outputs(
        &self,
        spec: &KernelSpec,
        sizes: &Sizes,
        inputs: &[Vec<u32>],
        device: bool,
    ) -> Result<Vec<Vec<Real>>, String> {
        let counts = spec.counts(sizes)?;
        let entry_point = self.shader.entry_points().next();
        let groups = spec.groups(sizes, entry_point.map_or([1; 3], |(_, size)| size))?;
        let buffers = buffers(spec, &counts, inputs, 0);
        let accuracy = Accuracy {
            device,
            cuts_sums: spec.matrix_cores,
        };
        let all = self
            .shader
            .exact(groups.map(|count| count as u32), &buffers, accuracy, LIMITS)
            .map_err(|error| format!("the reference: {error}"))?;
        spec.bindings
            .iter()
            .zip(all)
            .filter(|(binding, _)| binding.role != KernelRole::In)
            .map(|(binding, values)| {
                if values.is_empty() {
                    return Err(format!("the reference never writes `{}`", binding.name));
                }
                Ok(values)
            })
            .collect()
    }
}

/// Returns the words of all buffers before a launch, in binding order: inputs hold `inputs`, outputs hold `POISON`. Each buffer has
/// `guard` elements past its end, which hold `marker_past_end`.
pub fn contents(
    spec: &KernelSpec,
    counts: &[usize],
    inputs: &[Vec<u32>],
    guard: usize,
) -> Vec<Vec<u32>> {
    let mut next_inputs = inputs.iter();
    spec.bindings
        .iter()
        .zip(counts)
        .map(|(binding, count)| {
            let mut words = match binding.role {
                KernelRole::Out => Vec::new(),
                KernelRole::In | KernelRole::InOut => {
                    next_inputs.next().cloned().unwrap_or_default()
                }
            };
            words.resize(*count, POISON);
            words.resize(count + guard, marker_past_end(binding));
            words
        })
        .collect()
}

/// Returns the word that fills the memory past the end of a buffer.
pub fn marker_past_end(binding: &KernelBinding) -> u32 {
    match binding.role {
        KernelRole::In => POISON,
        KernelRole::Out | KernelRole::InOut => SENTINEL,
    }
}

/// Returns `contents` as buffers for a launch on the host. With a guard, every element counts as written.
pub fn buffers(
    spec: &KernelSpec,
    counts: &[usize],
    inputs: &[Vec<u32>],
    guard: usize,
) -> Vec<Buffer> {
    let contents = contents(spec, counts, inputs, guard);
    (0..)
        .zip(spec.bindings.iter().zip(contents))
        .map(|(number, (binding, words))| Buffer {
            initialized: guard > 0 || binding.role != KernelRole::Out,
            ..Buffer::from_u32(0, number, &words)
        })
        .collect()
}

/// Draws the contents of the buffers that a kernel reads at a shape, in binding order; equal seeds give equal contents. `values` fills
/// all buffers with one kind of numbers, positive ones where the exercise needs them. Without `values`, each buffer gets the kind that
/// the exercise names.
///
/// # Errors
/// Fails when a size is missing, or when a buffer would be too large.
pub fn inputs(
    bindings: &[KernelBinding],
    shape: &KernelShape,
    values: Option<KernelFill>,
    seed: u64,
) -> Result<Vec<Vec<u32>>, String> {
    // Each drawn shape has its own numbers.
    let shape_seed = if shape.is_drawn() {
        seed ^ hash(shape.label.bytes())
    } else {
        seed
    };
    let mut read = Vec::new();
    for (number, binding) in (0..).zip(bindings) {
        if binding.role == KernelRole::Out {
            continue;
        }
        let mut rng = Rng::named(shape_seed, "kernel input", number);
        let count = binding.count.value(&shape.sizes)?;
        let own = *shape.fill.get(&binding.name).unwrap_or(&binding.fill);
        if let Some(below) = &binding.below {
            let kind = values.map_or(own, kind_of_integers);
            let limit = below.value(&shape.sizes)?;
            read.push(draw_integers(kind, limit, count, &mut rng));
            continue;
        }
        let row = binding.count.row(&shape.sizes).max(1);
        let kind = values.unwrap_or(own);
        let mut drawn = draw_floats(kind, &shape.numbers, count, row, &mut rng);
        let far = matches!(kind, KernelFill::Far | KernelFill::Beneath);
        if far && number.is_multiple_of(2) {
            drawn.iter_mut().for_each(|x| *x = -*x);
        }
        if own == KernelFill::Positive {
            drawn.iter_mut().for_each(|x| *x = x.abs());
        }
        read.push(drawn.into_iter().map(f32::to_bits).collect());
    }
    Ok(read)
}

/// Returns the kind of integers for a buffer of indices, if all other buffers hold numbers of `kind`.
fn kind_of_integers(kind: KernelFill) -> KernelFill {
    let kinds = KernelFill::OF_INTEGERS;
    let index = KernelFill::DRAWN.iter().position(|drawn| *drawn == kind);
    kinds[index.unwrap_or(0) % kinds.len()]
}

/// Draws `count` integers that are smaller than `below`.
fn draw_integers(kind: KernelFill, below: u64, count: u64, rng: &mut Rng) -> Vec<u32> {
    let mut draw = || rng.below(below.max(1) as usize) as u32;
    let few = [draw(), draw(), draw()];
    let mut drawn: Vec<u32> = (0..count).map(|_| draw()).collect();
    match kind {
        KernelFill::Repeated => drawn
            .iter_mut()
            .for_each(|x| *x = few[*x as usize % few.len()]),
        KernelFill::Sorted => drawn.sort_unstable(),
        _ => {}
    }
    drawn
}

/// Draws the `count` elements of a buffer whose rows have `row` elements. `numbers` are those of the learner's text.
fn draw_floats(kind: KernelFill, numbers: &[f64], count: u64, row: u64, rng: &mut Rng) -> Vec<f32> {
    let mut constant = 0.0;
    let mut outlier = 0;
    let mut between = |from: f64, to: f64| from * (to / from).powf(rng.uniform());
    let size = match kind {
        KernelFill::Far => between(1e5, 1e8),
        KernelFill::Huge => between(1e4, 1e8),
        KernelFill::Outlier => between(8.0, 2e3),
        KernelFill::Beneath => numbers.iter().copied().fold(1.0, f64::max),
        _ => 0.0,
    };
    let draw = |index: u64| {
        match kind {
            // A multiple of 1/8, because f32 sums of such a number and of its square are exact.
            KernelFill::Constant if index == 0 => constant = (1 + rng.below(24)) as f64 / 8.0,
            KernelFill::Outlier if index.is_multiple_of(row) => {
                outlier = index + rng.below(row as usize) as u64;
            }
            _ => {}
        }
        let drawn = match kind {
            KernelFill::Positive => rng.uniform(),
            KernelFill::Normal => rng.normal(),
            KernelFill::Large => 100.0 * rng.normal(),
            KernelFill::Small => 1e-3 * rng.normal(),
            KernelFill::Tiny => 1e-8 * rng.normal(),
            KernelFill::Zero => 0.0,
            KernelFill::Constant => constant,
            KernelFill::Outlier if index == outlier => size,
            KernelFill::Outlier => rng.normal(),
            KernelFill::Written if numbers.is_empty() || rng.below(4) == 0 => rng.normal(),
            KernelFill::Written => {
                let near = [1.0, 0.99, 1.01, 1.5][rng.below(4)];
                let sign = [1.0, -1.0][rng.below(2)];
                sign * near * numbers[rng.below(numbers.len())]
            }
            KernelFill::Above => 5.0 + rng.normal(),
            KernelFill::Below => 10.0 * rng.normal() - 200.0,
            KernelFill::Far => size * (1.0 + 0.25 * rng.normal()),
            KernelFill::Beneath => size * (1.25 + 0.25 * rng.uniform()),
            // Only one in eight is 0, because equal terms of a sum all round the same way.
            KernelFill::Sparse if rng.below(8) == 0 => 0.0,
            KernelFill::Sparse => rng.normal(),
            KernelFill::Huge => size * rng.normal(),
            KernelFill::Rising => rng.normal() + 4.0 * index as f64,
            KernelFill::Falling => rng.normal() - 4.0 * index as f64,
            // `draw_integers` draws these.
            KernelFill::Index | KernelFill::Repeated | KernelFill::Sorted => 0.0,
        };
        drawn as f32
    };
    (0..count).map(draw).collect()
}

/// An element that a kernel wrote, compared with its expected value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The error divided by `bound`: above 1, the element is wrong. Infinite for an unexpected NaN.
    pub share: f64,
    /// The index of the element.
    pub at: usize,
    pub expected: f64,
    pub found: f64,
    /// The largest error that is allowed.
    pub bound: f64,
}

impl Difference {
    /// Returns the absolute error.
    pub fn error(&self) -> f64 {
        (self.found - self.expected).abs()
    }
}

/// Compares each element with its expected value. The bound of an error is what rounding explains, but at most `most`. Returns `None` if the
/// lengths differ.
pub fn differences<'a>(
    expected: &'a [Real],
    found: &'a [u32],
    element: KernelType,
    most: f64,
) -> Option<impl Iterator<Item = Difference> + Clone + use<'a>> {
    let all = (expected.iter().zip(found).enumerate()).map(move |(at, (real, word))| {
        let found = element.number(*word);
        let bound = real.bound().min(most);
        // An element beyond the range of f32 has no right value, so any value is accepted.
        let accepted =
            found == real.value || real.value.is_nan() || real.value.abs() > f64::from(f32::MAX);
        let error = (found - real.value).abs();
        let share = if accepted || error.is_infinite() && bound.is_infinite() {
            0.0
        } else if error.is_nan() {
            f64::INFINITY
        } else {
            error / bound
        };
        Difference {
            share,
            at,
            expected: real.value,
            found,
            bound,
        }
    });
    (expected.len() == found.len()).then_some(all)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Returns the error of each element, in multiples of its bound.
    fn shares(expected: &[Real], found: &[u32], element: KernelType) -> Option<Vec<f64>> {
        let differences = differences(expected, found, element, 9.0)?;
        Some(differences.map(|difference| difference.share).collect())
    }

    #[test]
    fn an_error_is_measured_in_multiples_of_its_bound() {
        let expected = [1.0, -4.0].map(|x| Real::exact(x).off_by(0.25));
        let found = [1.0, -3.0].map(f32::to_bits);

        let shares = shares(&expected, &found, KernelType::F32).expect("equal lengths");

        assert_eq!(shares[0], 0.0);
        assert_eq!(shares[1].round(), 4.0);
    }

    #[test]
    fn an_unexpected_nan_is_infinitely_wrong() {
        let expected = [Real::exact(1.0).off_by(0.25)];

        let shares = shares(&expected, &[f32::NAN.to_bits()], KernelType::F32);

        assert_eq!(shares, Some(vec![f64::INFINITY]));
    }

    #[test]
    fn an_exact_value_allows_no_error() {
        let floats = [Real::exact(1.0)];
        let integers = [7.0, -2.0].map(Real::exact);

        let of_floats = shares(&floats, &[1.000_000_1_f32.to_bits()], KernelType::F32);
        let of_integers = shares(&integers, &[8, -2_i32 as u32], KernelType::I32);

        assert_eq!(of_floats, Some(vec![f64::INFINITY]));
        assert_eq!(of_integers, Some(vec![f64::INFINITY, 0.0]));
    }

    #[test]
    fn outputs_of_another_length_are_not_compared() {
        let expected = [1.0, -4.0].map(Real::exact);
        assert_eq!(shares(&expected, &[0], KernelType::F32), None);
    }

    #[test]
    fn indices_are_in_range_repeated_or_sorted() {
        let mut rng = Rng::named(1, "indices", 0);

        let [any, repeated, sorted] =
            KernelFill::OF_INTEGERS.map(|kind| draw_integers(kind, 50, 400, &mut rng));

        for drawn in [&any, &repeated, &sorted] {
            assert!(drawn.len() == 400 && drawn.iter().all(|index| *index < 50));
        }
        let count_different = |drawn: &[u32]| drawn.iter().collect::<BTreeSet<_>>().len();
        assert!(!any.is_sorted() && count_different(&any) > 40);
        assert!(!repeated.is_sorted() && count_different(&repeated) <= 3);
        assert!(sorted.is_sorted() && count_different(&sorted) > 40);
    }
}
