//! Whether the reference of a kernel exercise can tell right from wrong: a bound wider than the values is no check.

use protocol::reference::{self, Difference, Reference, cost};
use protocol::{KernelRole, KernelShape, KernelSpec, KernelType, with_names};
use wgsl_lockstep::exact::Real;

/// Largest size that is tried, in floating-point operations, and up to which every kind of values is.
const MOST_FLOPS: f64 = 2e7;
const EVERY_KIND: f64 = 1e6;
/// Outputs that must not pass, beside inputs: all zeros, and all values that much too large.
const OFF: f64 = 1.01;

/// What would pass at one of these sizes although it is wrong: zeros, an input as it is, or outputs that are 1 % off.
///
/// # Errors
/// When the reference does not run.
pub fn weakness(
    spec: &KernelSpec,
    shapes: &[KernelShape],
    seed: u64,
) -> Result<Option<String>, String> {
    for shape in shapes {
        let flops = cost::flops(spec, &shape.sizes);
        if flops > MOST_FLOPS {
            continue;
        }
        let reference = Reference::parse(spec, &shape.sizes)?;
        let most = if flops <= EVERY_KIND {
            shape.values.len()
        } else {
            1
        };
        // What has passed with every kind of values so far.
        let mut passing: Option<Vec<WrongOutput>> = None;
        for kind in shape.values.iter().copied().take(most) {
            let inputs = reference::inputs(&spec.bindings, shape, Some(kind), seed)?;
            let expected = reference.outputs(spec, &shape.sizes, &inputs, true)?;
            let tolerance = shape.tolerance.or(spec.tolerance);
            let found = passes(spec, &inputs, &expected, tolerance);
            let still = |mut before: WrongOutput| {
                let mut same = found.iter();
                let now = same.find(|now| (now.output, &now.what) == (before.output, &before.what));
                before.differs |= now?.differs;
                Some(before)
            };
            passing = Some(match passing {
                None => found,
                Some(before) => before.into_iter().filter_map(still).collect(),
            });
        }
        let mut all = passing.into_iter().flatten();
        if let Some(WrongOutput { what, .. }) = all.find(|it| it.differs) {
            let at = with_names(&shape.sizes);
            return Ok(Some(format!(
                "{what} would pass at {at}: the bound is wider than the values"
            )));
        }
    }
    Ok(None)
}

/// What somebody could store in an output without computing it.
struct WrongOutput {
    output: usize,
    what: String,
    /// True if it is not simply the right values.
    differs: bool,
}

/// The wrong outputs that would pass.
fn passes(
    spec: &KernelSpec,
    inputs: &[Vec<u32>],
    expected: &[Vec<Real>],
    tolerance: Option<f64>,
) -> Vec<WrongOutput> {
    let named = |is: fn(KernelRole) -> bool| spec.bindings.iter().filter(move |it| is(it.role));
    let written = named(|role| role != KernelRole::In);
    let outputs = written.zip(expected).enumerate();
    let each = outputs.flat_map(|(number, (output, expected))| {
        let largest = expected
            .iter()
            .fold(0.0_f64, |most, it| most.max(it.value.abs()));
        let most = tolerance.map_or(f64::INFINITY, |it| it * largest);
        let tried = move |(what, words): (String, Vec<u32>)| {
            let all = reference::differences(expected, &words, output.element, most)?;
            let is_right = all.clone().all(|it| it.share <= 1.0);
            let rounding = f64::from(f32::EPSILON);
            let differs = |it: Difference| {
                !it.expected.is_finite() || it.error() > rounding * it.expected.abs()
            };
            let differs = all.into_iter().any(differs);
            is_right.then_some(WrongOutput {
                output: number,
                what,
                differs,
            })
        };
        let zeros = ("zeros".to_owned(), vec![0; expected.len()]);
        let off = expected
            .iter()
            .map(|it| ((it.value * OFF) as f32).to_bits());
        let off = (format!("`{}` 1 % off", output.name), off.collect());
        let off = (output.element == KernelType::F32).then_some(off);
        let read = named(|role| role != KernelRole::Out).zip(inputs);
        let same = read.filter(|(input, _)| input.element == output.element);
        let same = same.map(|(input, words)| (format!("`{}` as it is", input.name), words.clone()));
        let all = std::iter::once(zeros).chain(off).chain(same);
        all.filter_map(tried).collect::<Vec<_>>()
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::{KernelBinding, KernelFill, SizeProduct};

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
    fn a_reference_that_accepts_anything_is_refused() {
        assert_eq!(weakness_of("y[i] = 3.0 * x[i];"), None);
        // What is right is not wrong.
        assert_eq!(weakness_of("y[i] = x[i];"), None);
        // Eight products allow for twice the two ups that remain.
        let (up, down) = ("1.0000001", "0.9999999");
        let line =
            format!("y[i] = x[i] * {up} * {up} * {up} * {down} * {up} * {down} * {up} * {down};");
        let said = weakness_of(&line).expect("is weak");
        assert!(said.starts_with("`x` as it is"), "{said}");
        // Nothing is left of the digits of x.
        assert!(weakness_of("y[i] = (x[i] + 1e12) - 1e12;").is_some());
        assert!(weakness_of("y[i] = sin(x[i]) / (x[i] - x[i]);").is_some());
    }
}
