//! What a kernel of an exercise is held against: the numbers in its buffers, drawn by seed; the right outputs, from the exercise's own
//! plain loop in WGSL, run with numbers that carry their error; and how far outputs are off.

pub mod cost;

use naga::Scalar;
use wgsl_lockstep::exact::{Accuracy, Real};
use wgsl_lockstep::{Buffer, LaunchLimits, Shader};

use super::kernel::{KernelBinding, KernelFill, KernelRole, KernelShape, KernelSpec, KernelType};
use super::size::Sizes;
use super::template;
use crate::random::{Rng, hash};

/// A NaN that no arithmetic produces: marks elements that were never written.
pub const POISON: u32 = 0x7fc0_dead;
/// Marks elements past the end of an output. As a float it is finite, so a kernel that reads it gives another result.
pub const SENTINEL: u32 = 0x5bad_c0de;
/// Limits of a reference: minutes.
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

/// The plain loop of an exercise at the sizes of one shape, parsed.
#[derive(Debug)]
pub struct Reference {
    shader: Shader,
}

impl Reference {
    /// Reads the reference of a kernel at these sizes.
    ///
    /// # Errors
    /// When it is no WGSL, or names a size that there is not.
    pub fn parse(spec: &KernelSpec, sizes: &Sizes) -> Result<Self, String> {
        let filled = template::fill(&spec.reference, sizes).map_err(|unknown| {
            format!(
                "the reference names `{}`, which is not a size of this exercise",
                unknown.name
            )
        })?;
        let shader = Shader::parse(&filled.text);
        let shader = shader.map_err(|error| format!("the reference: {error}"))?;
        Ok(Self { shader })
    }

    /// Returns true if the bounds are wider for a device than for the host.
    pub fn is_less_exact_on_a_device(&self) -> bool {
        self.shader.is_less_exact_on_a_device()
    }

    /// The outputs for these inputs (`in` and `inout` buffers in binding order): one for each `out` and `inout` buffer. The bounds hold
    /// for a kernel that runs on a device, or else on the host.
    ///
    /// # Errors
    /// When the reference does not fit its buffers, or is no plain loop.
    pub fn outputs(
        &self,
        spec: &KernelSpec,
        sizes: &Sizes,
        inputs: &[Vec<u32>],
        device: bool,
    ) -> Result<Vec<Vec<Real>>, String> {
        let counts = spec.counts(sizes)?;
        let workgroup = self.shader.entry_points().next();
        let workgroup = workgroup.map_or([1; 3], |(_, size)| size);
        let groups = spec.groups(sizes, workgroup)?;
        let buffers = buffers(spec, &counts, inputs, 0);
        let accuracy = Accuracy {
            device,
            cuts_sums: spec.matrix_cores,
        };
        let all = self
            .shader
            .exact(groups.map(|count| count as u32), &buffers, accuracy, LIMITS)
            .map_err(|error| format!("the reference: {error}"))?;
        let outputs = spec.bindings.iter().zip(all);
        let outputs = outputs.filter(|(binding, _)| binding.role != KernelRole::In);
        outputs
            .map(|(binding, values)| {
                if values.is_empty() {
                    return Err(format!("the reference never writes `{}`", binding.name));
                }
                Ok(values)
            })
            .collect()
    }
}

/// The words of all buffers before a launch, in binding order: the inputs, and `POISON` in the outputs. Each has `guard` elements past
/// its end.
pub fn contents(
    spec: &KernelSpec,
    counts: &[usize],
    inputs: &[Vec<u32>],
    guard: usize,
) -> Vec<Vec<u32>> {
    let mut inputs = inputs.iter();
    let each = spec.bindings.iter().zip(counts).map(|(binding, count)| {
        let mut words = match binding.role {
            KernelRole::Out => Vec::new(),
            KernelRole::In | KernelRole::InOut => inputs.next().cloned().unwrap_or_default(),
        };
        words.resize(*count, POISON);
        words.resize(count + guard, marker_past_end(binding));
        words
    });
    each.collect()
}

/// The marker past the end of a buffer.
pub fn marker_past_end(binding: &KernelBinding) -> u32 {
    match binding.role {
        KernelRole::In => POISON,
        KernelRole::Out | KernelRole::InOut => SENTINEL,
    }
}

/// The same as buffers of a launch on the host. What lies past the end counts as written.
pub fn buffers(
    spec: &KernelSpec,
    counts: &[usize],
    inputs: &[Vec<u32>],
    guard: usize,
) -> Vec<Buffer> {
    let contents = contents(spec, counts, inputs, guard);
    let numbered = (0..).zip(spec.bindings.iter().zip(contents));
    let each = numbered.map(|(number, (binding, words))| Buffer {
        initialized: guard > 0 || binding.role != KernelRole::Out,
        ..Buffer::from_u32(0, number, &words)
    });
    each.collect()
}

/// Values of the buffers that a kernel reads at a shape, in binding order; equal seeds give equal values. `values` fills all buffers
/// with one kind of values, positive where the exercise needs that; without it, each buffer gets the kind that the exercise names.
///
/// # Errors
/// If a size is missing, or a buffer would be too large.
pub fn inputs(
    bindings: &[KernelBinding],
    shape: &KernelShape,
    values: Option<KernelFill>,
    seed: u64,
) -> Result<Vec<Vec<u32>>, String> {
    // Each drawn shape has its own numbers.
    let seed = match shape.is_drawn() {
        true => seed ^ hash(shape.label.bytes()),
        false => seed,
    };
    let read = (0..)
        .zip(bindings)
        .filter(|it| it.1.role != KernelRole::Out);
    read.map(|(number, binding)| {
        let count = binding.count.value(&shape.sizes)?;
        let own = shape.fill.get(&binding.name).unwrap_or(&binding.fill);
        let mut rng = Rng::named(seed, "kernel input", number);
        if let Some(below) = &binding.below {
            let kind = values.map_or(*own, of_integers);
            return Ok(integers(kind, below.value(&shape.sizes)?, count, &mut rng));
        }
        let row = binding.count.row(&shape.sizes).max(1);
        let fill = values.unwrap_or(*own);
        let mut drawn = draw(fill, &shape.numbers, count, row, &mut rng);
        let far = matches!(fill, KernelFill::Far | KernelFill::Beneath);
        if far && number.is_multiple_of(2) {
            drawn.iter_mut().for_each(|x| *x = -*x);
        }
        if *own == KernelFill::Positive {
            drawn.iter_mut().for_each(|x| *x = x.abs());
        }
        Ok(drawn.into_iter().map(f32::to_bits).collect())
    })
    .collect()
}

/// What integers are where all buffers hold numbers of one kind: each kind stands for one of theirs.
fn of_integers(kind: KernelFill) -> KernelFill {
    let kinds = KernelFill::OF_INTEGERS;
    let at = KernelFill::DRAWN.iter().position(|drawn| *drawn == kind);
    kinds[at.unwrap_or(0) % kinds.len()]
}

/// `count` integers below `below`.
fn integers(kind: KernelFill, below: u64, count: u64, rng: &mut Rng) -> Vec<u32> {
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

/// The `count` elements of a buffer whose rows have `row` elements.
fn draw(fill: KernelFill, numbers: &[f64], count: u64, row: u64, rng: &mut Rng) -> Vec<f32> {
    let (mut constant, mut outlier) = (0.0, 0);
    let mut between = |from: f64, to: f64| from * (to / from).powf(rng.uniform());
    let size = match fill {
        KernelFill::Far => between(1e5, 1e8),
        KernelFill::Huge => between(1e4, 1e8),
        KernelFill::Outlier => between(8.0, 2e3),
        KernelFill::Beneath => numbers.iter().copied().fold(1.0, f64::max),
        _ => 0.0,
    };
    let draw = |at: u64| {
        match fill {
            // In eighths: f32 sums of such a number and of its square are exact.
            KernelFill::Constant if at == 0 => constant = (1 + rng.below(24)) as f64 / 8.0,
            KernelFill::Outlier if at.is_multiple_of(row) => {
                outlier = at + rng.below(row as usize) as u64;
            }
            _ => {}
        }
        let drawn = match fill {
            KernelFill::Positive => rng.uniform(),
            KernelFill::Normal => rng.normal(),
            KernelFill::Large => 100.0 * rng.normal(),
            KernelFill::Small => 1e-3 * rng.normal(),
            KernelFill::Tiny => 1e-8 * rng.normal(),
            KernelFill::Zero => 0.0,
            KernelFill::Constant => constant,
            KernelFill::Outlier if at == outlier => size,
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
            KernelFill::Rising => rng.normal() + 4.0 * at as f64,
            KernelFill::Falling => rng.normal() - 4.0 * at as f64,
            // Of integers.
            KernelFill::Index | KernelFill::Repeated | KernelFill::Sorted => 0.0,
        };
        drawn as f32
    };
    (0..count).map(draw).collect()
}

/// An element that a kernel wrote, and its expected value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The error over the largest error that rounding explains; infinite for an unexpected NaN.
    pub share: f64,
    pub at: usize,
    pub expected: f64,
    pub found: f64,
    /// The largest error that rounding explains.
    pub bound: f64,
}

impl Difference {
    pub fn off(&self) -> f64 {
        (self.found - self.expected).abs()
    }
}

/// The difference of each element, which may be at most `most`. `None` when the lengths differ.
pub fn differences<'a>(
    expected: &'a [Real],
    found: &'a [u32],
    element: KernelType,
    most: f64,
) -> Option<impl Iterator<Item = Difference> + Clone + use<'a>> {
    let pairs = expected.iter().zip(found).enumerate();
    let all = pairs.map(move |(at, (real, found))| {
        let (found, bound) = (element.number(*found), real.bound().min(most));
        // An element beyond the range of f32 has no right value.
        let any =
            found == real.value || real.value.is_nan() || real.value.abs() > f64::from(f32::MAX);
        let share = match (found - real.value).abs() {
            0.0 => 0.0,
            off if off.is_nan() => f64::INFINITY,
            off => off / bound,
        };
        Difference {
            // Any number is right there, also one that overflowed.
            share: if any || share.is_nan() { 0.0 } else { share },
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
    use super::*;

    #[test]
    fn a_wrong_element_is_found() {
        let expected = [1.0, -4.0].map(|x| Real::exact(x).off_by(0.25));
        let all = |expected: &[Real], found: &[f32]| {
            let words: Vec<u32> = found.iter().map(|x| x.to_bits()).collect();
            let all = differences(expected, &words, KernelType::F32, 9.0)?;
            Some(all.map(|it| it.share).collect::<Vec<f64>>())
        };
        assert_eq!(all(&expected, &[1.0]), None);
        let shares = |found: &[f32]| -> Vec<f64> {
            let all = all(&expected, found).expect("equal lengths");
            all.into_iter().map(f64::round).collect()
        };
        assert_eq!(shares(&[1.0, -3.0]), [0.0, 4.0]);
        assert_eq!(shares(&[f32::NAN, -4.0]), [f64::INFINITY, 0.0]);
        let exact = [Real::exact(1.0)];
        assert_eq!(all(&exact, &[1.000_000_1]), Some(vec![f64::INFINITY]));
        let whole = [7.0, -2.0].map(Real::exact);
        let found = [8, -2_i32 as u32];
        let shares = differences(&whole, &found, KernelType::I32, 9.0).expect("equal lengths");
        let shares: Vec<f64> = shares.map(|it| it.share).collect();
        assert_eq!(shares, [f64::INFINITY, 0.0]);
    }

    #[test]
    fn indices_are_in_range_repeated_or_sorted() {
        let mut rng = Rng::named(1, "indices", 0);
        let [any, few, sorted] =
            KernelFill::OF_INTEGERS.map(|kind| integers(kind, 50, 400, &mut rng));
        for all in [&any, &few, &sorted] {
            assert!(all.len() == 400 && all.iter().all(|index| *index < 50));
        }
        let different = |all: &[u32]| {
            let mut all = all.to_vec();
            all.sort_unstable();
            all.dedup();
            all.len()
        };
        assert!(!any.is_sorted() && different(&any) > 40);
        assert!(different(&few) <= 3 && !few.is_sorted());
        assert!(sorted.is_sorted() && different(&sorted) > 40);
    }
}
