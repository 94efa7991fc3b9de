//! Whether the reference of a kernel exercise can tell right from wrong: a bound wider than the values is no check.

use protocol::reference::{self, Reference, cost};
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
        let most = match flops <= EVERY_KIND {
            true => shape.values.len(),
            false => 1,
        };
        // By output and name: what has passed with every kind of values so far.
        let mut passing: Option<Vec<(usize, String)>> = None;
        for kind in shape.values.iter().copied().take(most) {
            let inputs = reference::inputs(&spec.bindings, shape, Some(kind), seed)?;
            let expected = reference.outputs(spec, &shape.sizes, &inputs, true)?;
            let tolerance = shape.tolerance.or(spec.tolerance);
            let found = passes(spec, &inputs, &expected, tolerance);
            passing = Some(match passing {
                None => found,
                Some(before) => before
                    .into_iter()
                    .filter(|one| found.contains(one))
                    .collect(),
            });
        }
        if let Some((_, what)) = passing.iter().flatten().next() {
            let at = with_names(&shape.sizes);
            return Ok(Some(format!(
                "{what} would pass at {at}: the bound is wider than the values"
            )));
        }
    }
    Ok(None)
}

/// The wrong outputs that would pass.
fn passes(
    spec: &KernelSpec,
    inputs: &[Vec<u32>],
    expected: &[Vec<Real>],
    tolerance: Option<f64>,
) -> Vec<(usize, String)> {
    let named = |is: fn(KernelRole) -> bool| spec.bindings.iter().filter(move |it| is(it.role));
    let written = named(|role| role != KernelRole::In);
    let outputs = written.zip(expected).enumerate();
    let each = outputs.flat_map(|(number, (output, expected))| {
        let largest = expected
            .iter()
            .fold(0.0_f64, |most, it| most.max(it.value.abs()));
        let most = tolerance.map_or(f64::INFINITY, |it| it * largest);
        let is_right = move |words: &[u32]| {
            let all = reference::differences(expected, words, output.element, most);
            all.is_some_and(|mut all| all.all(|it| it.share <= 1.0))
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
        let wrong = all.filter(|(_, words): &(String, Vec<u32>)| is_right(words));
        wrong.map(|(what, _)| (number, what)).collect::<Vec<_>>()
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
        let says = |line: &str, words: &str| {
            let said = weakness_of(line).expect("is weak");
            assert!(said.starts_with(words), "{said}");
        };
        says("y[i] = x[i];", "`x` as it is");
        says("y[i] = 0.0 * x[i];", "zeros");
        // Nothing is left of the digits of x.
        says("y[i] = (x[i] + 1e12) - 1e12;", "zeros");
        says("y[i] = sin(x[i]) / (x[i] - x[i]);", "zeros");
    }
}
