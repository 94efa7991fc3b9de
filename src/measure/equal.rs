//! Decides whether a changed kernel still computes the result of the solution it was made from. Both run on the host, at many sizes and
//! with many kinds of values, and are compared with the plain reference. This is stricter than a check, and slower.

use super::lanes::host_buffers;
use protocol::reference::real::{Functions, Real};
use protocol::reference::{self, cost};
use protocol::validate::{SizedText, validate};
use protocol::{KernelFile, KernelRole, KernelShape, with_names};
use wgsl_lockstep::{Launch, Shader};

/// A shape with more floating-point operations is not run.
const MOST_FLOPS: f64 = 2e7;
/// A shape with more floating-point operations is run with one kind of values only.
const EVERY_KIND: f64 = 1e6;
/// A shape with more elements in all buffers is not run.
const MOST_ELEMENTS: usize = 300_000;
/// The number of neighbouring outputs whose largest errors are compared.
const NEIGHBOURS: usize = 16;
/// An error of at most this many times the solution's error counts as rounding.
const ROUNDING: f64 = 4.0;
/// An error of at most this share of what a check allows counts as rounding.
const ALLOWED: f64 = 0.125;

/// Checks that `text` and the solution of `file` differ only by rounding, at each shape that is not too large.
///
/// # Errors
/// Returns the sizes at which they differ.
pub fn equal(
    file: &KernelFile,
    shapes: &[KernelShape],
    text: &str,
    seed: u64,
) -> Result<(), String> {
    for (number, shape) in (0..).zip(shapes) {
        let sizes = with_names(&shape.sizes);
        let sized = |text: &str| {
            let found = validate(text, &file.spec, std::slice::from_ref(shape));
            found.ok().and_then(|mut found| found.texts.pop())
        };
        let (Some(solution), Some(text)) = (sized(&file.solution), sized(text)) else {
            return Err(sizes);
        };
        let elements: usize = solution.counts.iter().sum();
        let flops = cost::flops(file.spec.reference, &shape.sizes);
        if flops > MOST_FLOPS || elements > MOST_ELEMENTS {
            continue;
        }
        let most = if flops > EVERY_KIND {
            1
        } else {
            shape.values.len()
        };
        // `None` stands for the values that the bindings name.
        let mut kinds: Vec<_> = shape.values.iter().copied().take(most).map(Some).collect();
        if !shape.is_drawn() {
            kinds.push(None);
        }
        for kind in kinds {
            let shape_seed = seed.wrapping_add(number);
            let inputs = reference::inputs(&file.spec.bindings, shape, kind, shape_seed)?;
            let expected =
                reference::outputs(file.spec.reference, &inputs, &shape.sizes, Functions::Host);
            let run = |text: &SizedText| outputs(file, text, &inputs).ok_or_else(|| sizes.clone());
            let (right, found) = (run(&solution)?, run(&text)?);
            let mut pairs = expected.iter().zip(right.iter().zip(&found));
            if !pairs.all(|(expected, (right, found))| is_rounding(expected, right, found)) {
                return Err(sizes);
            }
        }
    }
    Ok(())
}

/// Returns the outputs of a kernel. `None` if the kernel has any fault.
fn outputs(file: &KernelFile, text: &SizedText, inputs: &[Vec<f32>]) -> Option<Vec<Vec<f32>>> {
    let program = Shader::parse(&text.filled.text).ok()?;
    let mut buffers = host_buffers(&file.spec, &text.counts, inputs);
    let report = program
        .run(&Launch::new(text.grid), &mut buffers, &mut ())
        .ok()?;
    if !report.complete || report.faults().next().is_some() || !report.unwritten.is_empty() {
        return None;
    }
    let outputs = file
        .spec
        .bindings
        .iter()
        .zip(&buffers)
        .filter(|(binding, _)| binding.role != KernelRole::In)
        .map(|(_, buffer)| buffer.to_f32());
    Some(outputs.collect())
}

/// Returns true if the kernel's error is everywhere at most a few times the solution's.
fn is_rounding(expected: &[Real], right: &[f32], found: &[f32]) -> bool {
    expected
        .chunks(NEIGHBOURS)
        .zip(right.chunks(NEIGHBOURS))
        .zip(found.chunks(NEIGHBOURS))
        .all(|((expected, right), found)| {
            let largest = expected
                .iter()
                .map(|number| number.value.abs())
                .fold(0.0, f64::max);
            let epsilon = f64::from(f32::EPSILON) * largest;
            let allowed = expected.iter().map(|number| ALLOWED * number.bound()).fold(
                ROUNDING * (largest_error(expected, right) + epsilon),
                f64::max,
            );
            // Comparing bits accepts NaN and infinity, for example where a sum overflows.
            bits(right) == bits(found) || largest_error(expected, found) <= allowed
        })
}

/// Returns the largest error, or NaN if an output is NaN.
fn largest_error(expected: &[Real], found: &[f32]) -> f64 {
    let mut largest = 0.0;
    for (expected, found) in expected.iter().zip(found) {
        let error = (expected.value - f64::from(*found)).abs();
        if error >= largest || error.is_nan() {
            largest = error;
        }
    }
    largest
}

fn bits(numbers: &[f32]) -> Vec<u32> {
    numbers.iter().map(|number| number.to_bits()).collect()
}
