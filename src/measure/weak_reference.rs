//! Finds out if the reference of a kernel exercise can tell right outputs from wrong ones. A reference cannot if the error that it allows is
//! larger than the values: then zeros, or an input as it is, would pass a check.

use protocol::reference::{self, Difference, Reference, cost};
use protocol::{KernelFill, KernelRole, KernelShape, KernelSpec, KernelType, with_names};
use wgsl_lockstep::exact::Real;

/// The largest number of floating-point operations of a shape that is run.
const MAX_FLOPS: f64 = 2e7;
/// The largest number of floating-point operations of a shape that is run with every kind of values.
const MAX_FLOPS_ALL_KINDS: f64 = 1e6;
/// The factor of outputs that are 1 % too large.
const ONE_PERCENT_OFF: f64 = 1.01;

/// Returns the kinds of drawn values with which a kernel is run at a shape, or `None` if the shape takes too long.
pub(super) fn kinds_to_run<'a>(
    spec: &KernelSpec,
    shape: &'a KernelShape,
) -> Option<&'a [KernelFill]> {
    let flops = cost::flops(spec, &shape.sizes);
    if flops > MAX_FLOPS {
        return None;
    }
    let first = shape.values.len().min(1);
    Some(if flops <= MAX_FLOPS_ALL_KINDS {
        &shape.values
    } else {
        &shape.values[..first]
    })
}

/// Returns a sentence about wrong outputs that would pass at one of these shapes: zeros, an input as it is, or outputs that are 1 % off.
/// `None` if no such outputs would pass.
///
/// # Errors
/// Returns an error if the reference does not run.
pub fn weakness(
    spec: &KernelSpec,
    shapes: &[KernelShape],
    seed: u64,
) -> Result<Option<String>, String> {
    for shape in shapes {
        let Some(kinds) = kinds_to_run(spec, shape) else {
            continue;
        };
        let reference = Reference::parse(spec, &shape.sizes)?;
        let passing_with = |kind: &KernelFill| {
            let inputs = reference::inputs(&spec.bindings, shape, Some(*kind), seed)?;
            let expected = reference.outputs(spec, &shape.sizes, &inputs, true)?;
            let tolerance = shape.tolerance.or(spec.tolerance);
            Ok(passing_outputs(spec, &inputs, &expected, tolerance))
        };
        let passing: Vec<Vec<WrongOutput>> = kinds
            .iter()
            .map(passing_with)
            .collect::<Result<_, String>>()?;
        // The reference is weak if an output passes with every kind of values and is wrong with one of them.
        let passes_and_differs = |candidate: &&WrongOutput| {
            let is_same = |other: &&WrongOutput| {
                other.output == candidate.output && other.name == candidate.name
            };
            let found: Vec<&WrongOutput> = passing.iter().flatten().filter(is_same).collect();
            found.len() == kinds.len() && found.iter().any(|output| output.differs)
        };
        if let Some(wrong) = passing.iter().flatten().find(passes_and_differs) {
            let name = &wrong.name;
            let sizes = with_names(&shape.sizes);
            return Ok(Some(format!(
                "{name} would pass at {sizes}: the allowed error is larger than the values"
            )));
        }
    }
    Ok(None)
}

/// Values that a wrong kernel could store in an output without computing it.
struct WrongOutput {
    /// The index of the output.
    output: usize,
    /// The name of the values, such as `zeros`.
    name: String,
    /// True if the values differ from the right ones by more than rounding.
    differs: bool,
}

/// Returns the wrong outputs that would pass with these inputs.
fn passing_outputs(
    spec: &KernelSpec,
    inputs: &[Vec<u32>],
    expected: &[Vec<Real>],
    tolerance: Option<f64>,
) -> Vec<WrongOutput> {
    let bindings_except = |role: KernelRole| {
        let bindings = spec.bindings.iter();
        bindings.filter(move |binding| binding.role != role)
    };
    let outputs = bindings_except(KernelRole::In);
    let mut passing = Vec::new();
    for (index, (output, expected)) in outputs.zip(expected).enumerate() {
        let values = expected.iter().map(|real| real.value.abs());
        let largest = values.fold(0.0, f64::max);
        let max_error = tolerance.map_or(f64::INFINITY, |tolerance| tolerance * largest);
        let mut candidates = vec![("zeros".to_owned(), vec![0; expected.len()])];
        if output.element == KernelType::F32 {
            let off = |real: &Real| ((real.value * ONE_PERCENT_OFF) as f32).to_bits();
            let name = format!("`{}` 1 % off", output.name);
            candidates.push((name, expected.iter().map(off).collect()));
        }
        for (input, words) in bindings_except(KernelRole::Out).zip(inputs) {
            if input.element == output.element {
                candidates.push((format!("`{}` as it is", input.name), words.clone()));
            }
        }
        for (name, words) in candidates {
            let differences = reference::differences(expected, &words, output.element, max_error);
            if let Some(mut differences) = differences
                && differences
                    .clone()
                    .all(|difference| difference.share <= 1.0)
            {
                passing.push(WrongOutput {
                    output: index,
                    name,
                    differs: differences.any(is_more_than_rounding),
                });
            }
        }
    }
    passing
}

/// Returns true if a value differs from the right one by more than one rounding to f32.
fn is_more_than_rounding(difference: Difference) -> bool {
    let rounding = f64::from(f32::EPSILON) * difference.expected.abs();
    !difference.expected.is_finite() || difference.error() > rounding
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::{KernelBinding, KernelFill, SizeProduct};

    /// Returns the weakness of a reference that computes `y` from `x` with this line.
    fn weakness_of(line: &str) -> Option<String> {
        let buffer = |name: &str, role: KernelRole| KernelBinding {
            name: name.to_owned(),
            role,
            count: SizeProduct::parse("N").expect("a count"),
            ..KernelBinding::default()
        };
        let spec = KernelSpec {
            reference: format!(
                "@group(0) @binding(0) var<storage, read_write> x: array<f32>;
                 @group(0) @binding(1) var<storage, read_write> y: array<f32>;
                 @compute @workgroup_size(64)
                 fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
                     let i = id.x;
                     if (i < {{{{N}}}}u) {{ {line} }}
                 }}"
            ),
            bindings: vec![buffer("x", KernelRole::In), buffer("y", KernelRole::Out)],
            grid: vec![SizeProduct::parse("N / WX").expect("a grid")],
            ..KernelSpec::default()
        };
        let shape = KernelShape {
            label: "drawn".to_owned(),
            values: KernelFill::DRAWN[..3].to_vec(),
            sizes: [("N".to_owned(), 131)].into(),
            ..KernelShape::default()
        };
        weakness(&spec, &[shape], 1).expect("runs")
    }

    #[test]
    fn a_reference_that_finds_wrong_outputs_is_not_weak() {
        assert_eq!(weakness_of("y[i] = 3.0 * x[i];"), None);
        // Here the input as it is passes, and is right.
        assert_eq!(weakness_of("y[i] = x[i];"), None);
    }

    #[test]
    fn a_reference_that_accepts_the_input_as_it_is_is_weak() {
        // The product is x with two roundings up. Eight multiplications allow for more.
        let up = "1.0000001";
        let down = "0.9999999";
        let line =
            format!("y[i] = x[i] * {up} * {up} * {up} * {down} * {up} * {down} * {up} * {down};");

        let sentence = weakness_of(&line).expect("is weak");

        assert!(sentence.starts_with("`x` as it is"), "{sentence}");
    }

    #[test]
    fn a_reference_without_exact_digits_is_weak() {
        // The sum has no digit of x any more.
        assert!(weakness_of("y[i] = (x[i] + 1e12) - 1e12;").is_some());
        assert!(weakness_of("y[i] = sin(x[i]) / (x[i] - x[i]);").is_some());
    }
}
