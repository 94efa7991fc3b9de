//! Whether a changed kernel computes the same as the solution it was made from: both run on the host, at many sizes and with many
//! kinds of values, and are compared with the plain reference. Stricter than a check, and slower.

use protocol::reference::{self, cost};
use protocol::validate::ParsedText;
use protocol::{KernelFile, KernelRole, KernelShape, with_names};
use wgsl_lockstep::Launch;
use wgsl_lockstep::exact::Real;

/// Largest size that is run, in floating-point operations and in elements of all buffers; and up to which every kind of values is.
const MOST_FLOPS: f64 = 2e7;
const EVERY_KIND: f64 = 1e6;
const MOST_ELEMENTS: usize = 300_000;
/// Number of neighbouring outputs whose largest error is compared. The difference is rounding up to `ROUNDING` times the solution's
/// error, or up to `ALLOWED` of what a check allows.
const NEIGHBOURS: usize = 16;
const ROUNDING: f64 = 4.0;
const ALLOWED: f64 = 0.125;

/// Checks that `text` and the solution of `file` differ by rounding only, at each shape that is not too large.
///
/// # Errors
/// With the sizes at which they differ.
pub fn equal(
    file: &KernelFile,
    shapes: &[KernelShape],
    text: &str,
    seed: u64,
) -> Result<(), String> {
    for (number, shape) in (0..).zip(shapes) {
        let sizes = with_names(&shape.sizes);
        let parsed = |text: &str| ParsedText::parse(text, &file.spec, shape);
        let (Ok(solution), Ok(text)) = (parsed(&file.solution), parsed(text)) else {
            return Err(sizes);
        };
        let reference = solution.reference(&file.spec, &shape.sizes)?;
        let elements: usize = solution.counts.iter().sum();
        let flops = cost::flops(&file.spec, &shape.sizes);
        if flops > MOST_FLOPS || elements > MOST_ELEMENTS {
            continue;
        }
        let most = if flops > EVERY_KIND {
            1
        } else {
            shape.values.len()
        };
        let kinds = shape.values.iter().copied().take(most).map(Some);
        let own = [None].into_iter().filter(|_| !shape.is_drawn());
        for kind in kinds.chain(own) {
            let seed = seed.wrapping_add(number);
            let inputs = reference::inputs(&file.spec.bindings, shape, kind, seed)?;
            let expected = reference.outputs(&file.spec, &shape.sizes, &inputs, false)?;
            let run = |text: &ParsedText| outputs(file, text, &inputs).ok_or_else(|| sizes.clone());
            let (right, found) = (run(&solution)?, run(&text)?);
            let mut pairs = expected.iter().zip(right.iter().zip(&found));
            if !pairs.all(|(expected, (right, found))| is_rounding(expected, right, found)) {
                return Err(sizes);
            }
        }
    }
    Ok(())
}

/// The outputs of a kernel; `None` if the kernel has any fault.
fn outputs(file: &KernelFile, text: &ParsedText, inputs: &[Vec<u32>]) -> Option<Vec<Vec<f64>>> {
    let mut buffers = reference::buffers(&file.spec, &text.counts, inputs, 0);
    let report = text
        .shader
        .run(&Launch::new(text.grid), &mut buffers, &mut ())
        .ok()?;
    if !report.complete || report.faults().next().is_some() || !report.unwritten.is_empty() {
        return None;
    }
    let all = file.spec.bindings.iter().zip(&buffers);
    let written = all.filter(|(binding, _)| binding.role != KernelRole::In);
    let numbers = written.map(|(binding, buffer)| {
        let words = buffer.to_u32().into_iter();
        words.map(|word| binding.element.number(word)).collect()
    });
    Some(numbers.collect())
}

/// Returns true if the kernel's error is everywhere at most a few times the solution's.
fn is_rounding(expected: &[Real], right: &[f64], found: &[f64]) -> bool {
    let largest_error = |expected: &[Real], found: &[f64]| {
        let pairs = expected.iter().zip(found);
        let errors = pairs.map(|(expected, found)| (expected.value - found).abs());
        errors.fold(
            0.0,
            |most: f64, it| if it >= most || it.is_nan() { it } else { most },
        )
    };
    let parts = expected.chunks(NEIGHBOURS).zip(right.chunks(NEIGHBOURS));
    let mut parts = parts.zip(found.chunks(NEIGHBOURS));
    parts.all(|((expected, right), found)| {
        let largest = expected.iter().map(|it| it.value.abs()).fold(0.0, f64::max);
        let epsilon = f64::from(f32::EPSILON) * largest;
        let bounds = expected.iter().map(|it| ALLOWED * it.bound());
        let allowed = bounds.fold(
            ROUNDING * (largest_error(expected, right) + epsilon),
            f64::max,
        );
        // Numbers that are none, as where a sum overflows, are the same too.
        let bits = |it: &[f64]| it.iter().map(|it| it.to_bits()).collect::<Vec<_>>();
        bits(right) == bits(found) || largest_error(expected, found) <= allowed
    })
}
