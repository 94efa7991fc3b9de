//! From an exercise of the course to a job for the engine: every expression becomes a number, one for each shape.

use super::source;
use crate::course::exercise::size::{Product, Sizes};
use crate::course::exercise::{
    Binding, Exercise, Fill, Kernel, KernelMetric as Asked, Kernels, Role, Shape,
};
use crate::protocol::{
    KernelAsk, KernelBinding, KernelError, KernelFile, KernelFill, KernelGrid, KernelJob,
    KernelMetric, KernelRole, KernelShape,
};

/// The files of a kernel exercise, by name, each as read from the learner's folder.
///
/// # Errors
/// When the exercise does not add up: a size that is missing, or a grid that follows no single axis of the workgroup.
pub fn job(
    exercise: &Exercise,
    kernels: &Kernels,
    read: impl Fn(&str) -> Result<String, KernelError>,
) -> Result<KernelJob, String> {
    let files = kernels
        .kernels
        .iter()
        .map(|kernel| file(kernel, &kernels.shapes, &read));
    Ok(KernelJob {
        id: 0,
        exercise: exercise.id.clone(),
        files: files.collect::<Result<_, _>>()?,
        shapes: kernels
            .shapes
            .iter()
            .map(|s| KernelShape {
                label: s.label.clone(),
                sizes: s.sizes.clone(),
            })
            .collect(),
        asks: kernels
            .checks
            .iter()
            .map(|check| KernelAsk {
                name: check.name.clone(),
                metric: metric(check.metric),
                starter_fails: check.starter_fails,
            })
            .collect(),
        replaces: kernels.replaces.clone(),
        timed: true,
        thorough: false,
    })
}

/// As `job`, with the learner's files in `folder`.
///
/// # Errors
/// As `job`.
pub fn from_folder(
    exercise: &Exercise,
    kernels: &Kernels,
    folder: &std::path::Path,
) -> Result<KernelJob, String> {
    job(exercise, kernels, |name| source::read(&folder.join(name)))
}

fn file(
    kernel: &Kernel,
    shapes: &[Shape],
    read: impl Fn(&str) -> Result<String, KernelError>,
) -> Result<KernelFile, String> {
    let (text, unreadable) = match read(&kernel.file.name) {
        Ok(text) => (text, None),
        Err(error) => (String::new(), Some(error)),
    };
    let bindings = kernel
        .bindings
        .iter()
        .map(|binding| self::binding(binding, shapes));
    let [x, y, z] = &kernel.grid;
    Ok(KernelFile {
        name: kernel.file.name.clone(),
        text,
        unreadable,
        starter: kernel.file.starter.clone(),
        solution: kernel.file.solution.clone(),
        reference: kernel.reference.clone(),
        bindings: bindings.collect::<Result<_, _>>()?,
        grid: [grid(x, shapes)?, grid(y, shapes)?, grid(z, shapes)?],
        tolerance: kernel.tolerance,
    })
}

fn binding(binding: &Binding, shapes: &[Shape]) -> Result<KernelBinding, String> {
    Ok(KernelBinding {
        name: binding.name.clone(),
        role: match binding.role {
            Role::In => KernelRole::In,
            Role::Out => KernelRole::Out,
            Role::InOut => KernelRole::InOut,
        },
        fill: match binding.fill {
            Fill::Normal => KernelFill::Normal,
            Fill::Large => KernelFill::Large,
            Fill::Positive => KernelFill::Positive,
        },
        counts: shapes
            .iter()
            .map(|shape| binding.count.value(&shape.sizes))
            .collect::<Result<_, _>>()?,
    })
}

fn metric(asked: Asked) -> KernelMetric {
    match asked {
        Asked::Correct => KernelMetric::Correct,
        Asked::Speed(least) => KernelMetric::Speed(least),
        Asked::Invocations(least) => KernelMetric::Invocations(least),
        Asked::Shared => KernelMetric::Shared,
    }
}

/// A workgroup's size is known only once the learner's text is read, so what crosses is the number to cover and the axis
/// that covers it: both are found by trying sizes.
fn grid(product: &Product, shapes: &[Shape]) -> Result<KernelGrid, String> {
    let at = |shape: &Shape, size: [u64; 3]| {
        let mut sizes: Sizes = shape.sizes.clone();
        sizes.extend(["WX", "WY", "WZ"].map(str::to_owned).into_iter().zip(size));
        product.value(&sizes)
    };
    let counts = shapes
        .iter()
        .map(|shape| at(shape, [1; 3]))
        .collect::<Result<Vec<_>, _>>()?;
    let follows = |per: Option<usize>| -> Result<bool, String> {
        for (shape, count) in shapes.iter().zip(&counts) {
            for size in [[3, 5, 7], [64, 2, 1], [1, 256, 4], [16, 16, 11]] {
                if at(shape, size)? != count.div_ceil(per.map_or(1, |axis| size[axis])) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    };
    for per in [None, Some(0), Some(1), Some(2)] {
        if follows(per)? {
            return Ok(KernelGrid {
                counts,
                per: per.map(|axis| axis as u8),
            });
        }
    }
    Err("the grid follows no single axis of the workgroup; write for example \"N / WX\"".to_owned())
}
