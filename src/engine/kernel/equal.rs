//! Whether a changed kernel computes the same as the solution that it was made from: both run on the host, at many sizes and with
//! many kinds of values, and are held against the plain reference. Stricter than a check, and slower.

use super::cost;
use super::reference;
use super::validate::{self, SizedText};
use crate::lockstep::{Buffer, Launch, Program};
use crate::protocol::{KernelFile, KernelFill, KernelRole, KernelShape};
use crate::random::Rng;

/// Sizes that are drawn, beside those of the exercise.
const DRAWN: u64 = 40;
/// Floating-point operations and elements of a size that is still run.
const MOST_FLOPS: f64 = 3e7;
const MOST_ELEMENTS: usize = 300_000;
/// Outputs next to each other that share a largest error, and how many times that of the solution is still rounding.
const NEIGHBOURS: usize = 16;
const ROUNDING: f64 = 4.0;

/// Whether `text` and the solution of `file` differ by rounding only. Where they differ, the label of a shape or its sizes.
///
/// # Errors
/// With the sizes at which they differ.
pub fn equal(
    file: &KernelFile,
    shapes: &[KernelShape],
    text: &str,
    seed: u64,
) -> Result<(), String> {
    let given = shapes.len().saturating_sub(1).max(1);
    let mut all: Vec<KernelShape> = shapes[..given.min(shapes.len())].to_vec();
    all.extend((0..DRAWN).map(|number| drawn(file, shapes, Rng::named(seed, "sizes", number))));
    for (number, shape) in (0..).zip(&all) {
        let named = || {
            let sizes = shape
                .sizes
                .iter()
                .map(|(name, size)| format!("{name} {size}"));
            sizes.collect::<Vec<_>>().join(", ")
        };
        if cost::flops(file.spec.reference, &shape.sizes) > MOST_FLOPS {
            continue;
        }
        let sized = |text: &str| {
            let found = validate::validate(text, &file.spec, std::slice::from_ref(shape));
            found.ok().and_then(|mut found| found.texts.pop())
        };
        let (Some(solution), Some(text)) = (sized(&file.solution), sized(text)) else {
            return Err(named());
        };
        if solution.counts.iter().sum::<usize>() > MOST_ELEMENTS {
            continue;
        }
        let inputs = reference::inputs(&file.spec.bindings, shape, seed.wrapping_add(number))?;
        let expected = reference::outputs(file.spec.reference, &inputs, &shape.sizes);
        let run = |text: &SizedText| outputs(file, text, &inputs).ok_or_else(named);
        let (right, found) = (run(&solution)?, run(&text)?);
        let mut pairs = expected.iter().zip(right.iter().zip(&found));
        if !pairs.all(|(expected, (right, found))| is_rounding(expected, right, found)) {
            return Err(named());
        }
    }
    Ok(())
}

/// A shape whose sizes and values an exercise does not name, and could.
fn drawn(file: &KernelFile, shapes: &[KernelShape], mut rng: Rng) -> KernelShape {
    let mut shape = KernelShape::default();
    for name in shapes.iter().flat_map(|shape| shape.sizes.keys()) {
        let sizes = || {
            shapes
                .iter()
                .filter_map(|shape| shape.sizes.get(name).copied())
        };
        let common = sizes().fold(0, gcd).max(1);
        let largest = sizes().max().unwrap_or(1).min(4096) / common;
        // As many small ones as large ones.
        let size = (largest as f64 * 1.2).powf(rng.uniform()).ceil() as u64;
        shape.sizes.insert(name.clone(), size.max(1) * common);
    }
    for binding in &file.spec.bindings {
        let mut fills: Vec<KernelFill> = shapes
            .iter()
            .filter_map(|shape| shape.fill.get(&binding.name).copied())
            .chain([binding.fill, binding.fill])
            .collect();
        if matches!(binding.fill, KernelFill::Normal | KernelFill::Large) {
            fills.extend([KernelFill::Small, KernelFill::Above, KernelFill::Normal]);
        }
        let fill = fills[rng.below(fills.len())];
        shape.fill.insert(binding.name.clone(), fill);
    }
    shape
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// What a kernel writes; nothing where it does anything that is found fault with.
fn outputs(file: &KernelFile, text: &SizedText, inputs: &[Vec<f32>]) -> Option<Vec<Vec<f32>>> {
    let program = Program::parse(&text.filled.text).ok()?;
    let mut inputs = inputs.iter();
    let bindings = (0..).zip(file.spec.bindings.iter().zip(&text.counts));
    let buffers = bindings.map(|(number, (binding, count))| match binding.role {
        KernelRole::Out => Some(Buffer::unwritten(0, number, 4 * count)),
        KernelRole::In | KernelRole::InOut => Some(Buffer::from_f32(0, number, inputs.next()?)),
    });
    let mut buffers: Vec<Buffer> = buffers.collect::<Option<_>>()?;
    let report = program
        .run(&Launch::new(text.grid), &mut buffers, &mut ())
        .ok()?;
    if !report.complete || !report.findings.is_empty() || !report.unwritten.is_empty() {
        return None;
    }
    let all = file.spec.bindings.iter().zip(&buffers);
    let written = all.filter(|(binding, _)| binding.role != KernelRole::In);
    Some(written.map(|(_, buffer)| buffer.to_f32()).collect())
}

/// Whether a kernel is no farther from the expected values than a few times what the solution is, everywhere.
fn is_rounding(expected: &[f32], right: &[f32], found: &[f32]) -> bool {
    let largest_error = |expected: &[f32], found: &[f32]| {
        let pairs = expected.iter().zip(found);
        let errors = pairs.map(|(e, f)| (f64::from(*e) - f64::from(*f)).abs());
        errors.fold(
            0.0,
            |most, it| if it >= most || it.is_nan() { it } else { most },
        )
    };
    let parts = expected.chunks(NEIGHBOURS).zip(right.chunks(NEIGHBOURS));
    let mut parts = parts.zip(found.chunks(NEIGHBOURS));
    parts.all(|((expected, right), found)| {
        let largest = largest_error(expected, &vec![0.0; expected.len()]);
        let allowed =
            ROUNDING * (largest_error(expected, right) + f64::from(f32::EPSILON) * largest);
        right == found || largest_error(expected, found) <= allowed
    })
}
