//! Compares a changed kernel with the solution that it was made from. Both run on the host, at many sizes and with many kinds of values. A
//! check allows every error that the arithmetic can explain; this comparison allows only the solution's own rounding, and takes longer.

use super::weak_reference::kinds_to_run;
use protocol::reference;
use protocol::validate::ParsedText;
use protocol::{KernelFile, KernelRole, KernelShape, with_names};
use wgsl_lockstep::Launch;
use wgsl_lockstep::exact::Real;

/// The largest number of elements of all buffers together.
const MOST_ELEMENTS: usize = 300_000;
/// The number of neighbouring outputs whose largest errors are compared.
const NEIGHBOURS: usize = 16;
/// An error is rounding if it is at most this many times the solution's error.
const ROUNDING: f64 = 4.0;
/// An error is also rounding if it is at most this share of the error that a check allows.
const ALLOWED: f64 = 0.125;

/// Checks that the outputs of `text` differ from those of the solution of `file` by rounding only. Shapes that take too long are left out.
///
/// # Errors
/// Returns the sizes at which the outputs differ, such as `N = 64`.
pub fn equal(
    file: &KernelFile,
    shapes: &[KernelShape],
    text: &str,
    seed: u64,
) -> Result<(), String> {
    for (number, shape) in (0..).zip(shapes) {
        let sizes = with_names(&shape.sizes);
        let parse =
            |text: &str| ParsedText::parse(text, &file.spec, shape).map_err(|_| sizes.clone());
        let solution = parse(&file.solution)?;
        let changed = parse(text)?;
        let reference = solution.reference(&file.spec, &shape.sizes)?;
        let elements: usize = solution.counts.iter().sum();
        let Some(drawn_kinds) = kinds_to_run(&file.spec, shape) else {
            continue;
        };
        if elements > MOST_ELEMENTS {
            continue;
        }
        let mut kinds: Vec<_> = drawn_kinds.iter().copied().map(Some).collect();
        if !shape.is_drawn() {
            kinds.push(None);
        }
        for kind in kinds {
            let shape_seed = seed.wrapping_add(number);
            let inputs = reference::inputs(&file.spec.bindings, shape, kind, shape_seed)?;
            let expected = reference.outputs(&file.spec, &shape.sizes, &inputs, false)?;
            let run = |text: &ParsedText| outputs(file, text, &inputs).ok_or_else(|| sizes.clone());
            let right = run(&solution)?;
            let found = run(&changed)?;
            for ((expected, right), found) in expected.iter().zip(&right).zip(&found) {
                if !is_rounding(expected, right, found) {
                    return Err(sizes);
                }
            }
        }
    }
    Ok(())
}

/// Returns the values of all output buffers. `None` if the kernel has a fault or leaves an output unwritten.
fn outputs(file: &KernelFile, text: &ParsedText, inputs: &[Vec<u32>]) -> Option<Vec<Vec<f64>>> {
    let mut buffers = reference::buffers(&file.spec, &text.counts, inputs, 0);
    let report = text
        .shader
        .run(&Launch::new(text.grid), &mut buffers, &mut ())
        .ok()?;
    if !report.complete || report.faults().next().is_some() || !report.unwritten.is_empty() {
        return None;
    }
    let mut outputs = Vec::new();
    for (binding, buffer) in file.spec.bindings.iter().zip(&buffers) {
        if binding.role != KernelRole::In {
            let words = buffer.to_u32().into_iter();
            outputs.push(words.map(|word| binding.element.number(word)).collect());
        }
    }
    Some(outputs)
}

/// Returns true if the errors of `found` are everywhere at most a few times those of `right`, the solution's outputs.
fn is_rounding(expected: &[Real], right: &[f64], found: &[f64]) -> bool {
    let neighbours = expected
        .chunks(NEIGHBOURS)
        .zip(right.chunks(NEIGHBOURS))
        .zip(found.chunks(NEIGHBOURS));
    for ((expected, right), found) in neighbours {
        let values = expected.iter().map(|real| real.value.abs());
        let epsilon = f64::from(f32::EPSILON) * values.fold(0.0, f64::max);
        let allowed_by_solution = ROUNDING * (largest_error(expected, right) + epsilon);
        let allowed_by_check = expected.iter().map(|real| ALLOWED * real.bound());
        let allowed = allowed_by_check.fold(allowed_by_solution, f64::max);
        // Where a sum overflows, both kernels have equal bits that are no numbers.
        let right_bits = right.iter().map(|value| value.to_bits());
        let has_equal_bits = right_bits.eq(found.iter().map(|value| value.to_bits()));
        let is_within = largest_error(expected, found) <= allowed;
        if !(has_equal_bits || is_within) {
            return false;
        }
    }
    true
}

/// Returns the largest difference from the expected values. A difference that is not a number counts as the largest.
fn largest_error(expected: &[Real], found: &[f64]) -> f64 {
    expected
        .iter()
        .zip(found)
        .map(|(expected, found)| (expected.value - found).abs())
        .max_by(f64::total_cmp)
        .unwrap_or(0.0)
}
