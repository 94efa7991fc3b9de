//! Tries one kernel at one shape: runs it on known inputs and compares its outputs. Outputs hold a marker before the run, so that elements
//! which were not written show. A second run on longer buffers shows accesses past the end.

use burn_wgpu::wgpu;

use super::check::FileEnd;
use super::gpu::{Gpu, GpuError, KernelPipeline};
use protocol::reference::{self, Difference, POISON, marker_past_end};
use protocol::validate::ParsedText;
use protocol::{
    KernelBinding, KernelFault, KernelFaultKind as Kind, KernelFile, KernelFill, KernelMatch,
    KernelRole, KernelShape, KernelType,
};
use wgsl_lockstep::exact::Real;

/// The number of elements past the end of each buffer in the second run.
pub(super) const GUARD: usize = 8192;
/// The largest error of an output that is compared with the solution's, divided by the largest value, unless the exercise names a
/// tolerance.
const TOLERANCE: f64 = 1e-4;

/// A kernel that is tried at a shape.
pub(super) struct KernelTrial<'a> {
    pub file: &'a KernelFile,
    pub shape: &'a KernelShape,
    pub text: &'a ParsedText,
    /// The kind of numbers in all buffers; `None` for the kinds that the exercise names.
    pub values: Option<KernelFill>,
    pub seed: u64,
}

/// The right outputs at a shape.
pub(super) struct ExpectedOutputs {
    /// The elements of each output, in binding order.
    pub values: Vec<Vec<Real>>,
    /// The kernel that computed them: `reference` or `solution`.
    pub from: &'static str,
}

/// The result of a trial: a match, or the fault.
pub(super) type TrialResult = Result<KernelMatch, Box<KernelFault>>;

impl KernelTrial<'_> {
    /// Returns the contents of the buffers that the kernel reads, in binding order.
    pub(super) fn inputs(&self) -> Result<Vec<Vec<u32>>, String> {
        let bindings = &self.file.spec.bindings;
        reference::inputs(bindings, self.shape, self.values, self.seed)
    }

    /// Returns the outputs of the exercise's reference, a plain loop. Their bounds hold for a kernel on a device if `device` is true, else
    /// on the host.
    pub(super) fn expected(
        &self,
        inputs: &[Vec<u32>],
        device: bool,
    ) -> Result<ExpectedOutputs, String> {
        let spec = &self.file.spec;
        let sizes = &self.shape.sizes;
        Ok(ExpectedOutputs {
            values: self
                .text
                .reference(spec, sizes)?
                .outputs(spec, sizes, inputs, device)?,
            from: "reference",
        })
    }

    /// Returns true if a device's outputs have no wider bounds than the host's.
    pub(super) fn is_same_on_device(&self) -> Result<bool, String> {
        let reference = self.text.reference(&self.file.spec, &self.shape.sizes)?;
        Ok(!reference.is_less_exact_on_a_device())
    }

    /// Returns the outputs of a kernel that is known to be right, with bounds from the tolerance.
    pub(super) fn solution(
        &self,
        gpu: &Gpu,
        kernel: &KernelPipeline,
        inputs: &[Vec<u32>],
    ) -> Result<ExpectedOutputs, GpuError> {
        let found = self.run(gpu, kernel, inputs, 0)?;
        let tolerance = 2.0 * self.tolerance().unwrap_or(TOLERANCE);
        let mut values = Vec::new();
        for (binding, words) in self.outputs(&found) {
            let exact: Vec<Real> = words
                .iter()
                .map(|word| Real::exact(binding.element.number(*word)))
                .collect();
            let error = match binding.element {
                KernelType::F32 => tolerance * largest(&exact),
                KernelType::U32 | KernelType::I32 => 0.0,
            };
            values.push(exact.into_iter().map(|real| real.off_by(error)).collect());
        }
        Ok(ExpectedOutputs {
            values,
            from: "solution",
        })
    }

    /// Makes the driver finish compiling, which it may otherwise do at the first launch. It launches no workgroups.
    pub(super) fn prepare(
        &self,
        gpu: &Gpu,
        kernel: &KernelPipeline,
        inputs: &[Vec<u32>],
    ) -> Result<(), GpuError> {
        let bound = gpu.bind(kernel, &self.fill(gpu, inputs, 0)?, &self.text.counts)?;
        gpu.launch(kernel, &bound, [0; 3])
    }

    /// Runs the kernel on a device and judges its outputs.
    pub(super) fn judge(
        &self,
        gpu: &Gpu,
        kernel: &KernelPipeline,
        inputs: &[Vec<u32>],
        expected: &ExpectedOutputs,
    ) -> Result<KernelMatch, FileEnd> {
        let exact = self.run(gpu, kernel, inputs, 0)?;
        let guarded = self.run(gpu, kernel, inputs, GUARD)?;
        let wrong_write = self
            .wrote_input(inputs, &exact)
            .or_else(|| self.wrote_past_end(&guarded));
        if let Some(fault) = wrong_write {
            return Err(Box::new(fault).into());
        }
        let difference = first_difference(&exact, &guarded);
        let matched = self.compare(&exact, expected).map_err(|mut fault| {
            fault.unsteady = difference.is_some();
            fault
        })?;
        let Some((binding, at)) = difference else {
            return Ok(matched);
        };
        // The kernel was right once. If another run changes its outputs, it races; if only longer buffers do, it reads past the end.
        let again = self.run(gpu, kernel, inputs, 0)?;
        let kind = if first_difference(&exact, &again).is_some() {
            Kind::Races
        } else {
            Kind::ReadsPastEnd
        };
        let name = &self.file.spec.bindings[binding].name;
        Err(Box::new(self.fault(kind, name, at)).into())
    }

    /// Returns the contents of all buffers after a launch, each with `guard` elements past its end that the kernel can access.
    fn run(
        &self,
        gpu: &Gpu,
        kernel: &KernelPipeline,
        inputs: &[Vec<u32>],
        guard: usize,
    ) -> Result<Vec<Vec<u32>>, GpuError> {
        let lengths: Vec<usize> = self.text.counts.iter().map(|count| count + guard).collect();
        let buffers = self.fill(gpu, inputs, guard)?;
        let bound = gpu.bind(kernel, &buffers, &lengths)?;
        gpu.launch(kernel, &bound, kernel.grid)?;
        buffers.iter().map(|buffer| gpu.read(buffer)).collect()
    }

    /// Returns the buffers that the kernel has to write, with their contents after a launch.
    pub(super) fn outputs<'a>(
        &'a self,
        found: &'a [Vec<u32>],
    ) -> impl Iterator<Item = (&'a KernelBinding, &'a Vec<u32>)> {
        self.file
            .spec
            .bindings
            .iter()
            .zip(found)
            .filter(|(binding, _)| binding.role != KernelRole::In)
    }

    /// Uploads all buffers before a launch on a device, each with `guard` elements past its end.
    pub(super) fn fill(
        &self,
        gpu: &Gpu,
        inputs: &[Vec<u32>],
        guard: usize,
    ) -> Result<Vec<wgpu::Buffer>, GpuError> {
        let contents = reference::contents(&self.file.spec, &self.text.counts, inputs, guard);
        contents.iter().map(|words| gpu.upload(words)).collect()
    }

    /// Returns the fault of a kernel that wrote to a buffer which is only for reading; `None` if it did not. `found` are the contents of all
    /// buffers after the launch.
    pub(super) fn wrote_input(
        &self,
        inputs: &[Vec<u32>],
        found: &[Vec<u32>],
    ) -> Option<KernelFault> {
        let spec = &self.file.spec;
        reference::contents(spec, &self.text.counts, inputs, 0)
            .iter()
            .zip(found)
            .zip(&spec.bindings)
            .filter(|(_, binding)| binding.role == KernelRole::In)
            .find_map(|((before, after), binding)| {
                let at = first_different(before, after)?;
                Some(self.fault(Kind::WroteInput, &binding.name, at))
            })
    }

    /// Returns the fault of a kernel that wrote past the end of a buffer; `None` if it did not. `guarded` are the contents of all buffers
    /// with their guards after the launch.
    pub(super) fn wrote_past_end(&self, guarded: &[Vec<u32>]) -> Option<KernelFault> {
        self.file
            .spec
            .bindings
            .iter()
            .zip(&self.text.counts)
            .zip(guarded)
            .find_map(|((binding, count), words)| {
                let marker = marker_past_end(binding);
                let past = words.iter().skip(*count).position(|word| *word != marker)?;
                Some(KernelFault {
                    of: *count as u64,
                    ..self.fault(Kind::OutOfBounds, &binding.name, count + past)
                })
            })
    }

    /// Returns the largest error that the exercise allows, divided by the largest expected value; `None` if it names none.
    fn tolerance(&self) -> Option<f64> {
        self.shape.tolerance.or(self.file.spec.tolerance)
    }

    /// Compares the outputs of a launch with the right ones. `found` are the contents of all buffers after the launch.
    pub(super) fn compare(&self, found: &[Vec<u32>], expected: &ExpectedOutputs) -> TrialResult {
        let mut matched = KernelMatch {
            shape: self.shape.label.clone(),
            against: expected.from.to_owned(),
            ..KernelMatch::default()
        };
        for ((binding, words), right) in self.outputs(found).zip(&expected.values) {
            let name = &binding.name;
            if let Some(at) = words.iter().position(|word| *word == POISON) {
                return Err(Box::new(KernelFault {
                    count: count_unwritten(words) as u64,
                    of: words.len() as u64,
                    ..self.fault(Kind::Unwritten, name, at)
                }));
            }
            let scale = largest(right).max(f64::MIN_POSITIVE);
            let most = match self.tolerance() {
                Some(tolerance) => tolerance * scale,
                None => f64::INFINITY,
            };
            let Some(differences) = reference::differences(right, words, binding.element, most)
            else {
                continue;
            };
            // Of equal shares, the first element counts.
            let worse = |worst: Difference, next: Difference| {
                if next.share > worst.share {
                    next
                } else {
                    worst
                }
            };
            let Some(worst) = differences.clone().reduce(worse) else {
                continue;
            };
            if worst.share > 1.0 {
                return Err(Box::new(KernelFault {
                    expected: Some(worst.expected.into()),
                    found: Some(worst.found.into()),
                    error: Some((worst.error() / scale).into()),
                    allowed: Some(worst.bound / scale),
                    count: differences
                        .filter(|difference| difference.share > 1.0)
                        .count() as u64,
                    of: words.len() as u64,
                    ..self.fault(Kind::Wrong, name, worst.at)
                }));
            }
            let largest_error = differences
                .map(|difference| difference.error())
                .filter(|error| error.is_finite())
                .fold(0.0, f64::max);
            matched.error = matched.error.max(largest_error / scale);
            matched.share = matched.share.max(worst.share);
        }
        Ok(matched)
    }

    /// Returns a fault at an element of a buffer.
    pub(super) fn fault(&self, kind: Kind, buffer: &str, at: usize) -> KernelFault {
        KernelFault {
            kind,
            shape: self.shape.label.clone(),
            values: self.values,
            buffer: buffer.to_owned(),
            at: i64::try_from(at).ok(),
            ..KernelFault::default()
        }
    }
}

/// Counts the elements of an output that were never written.
pub(super) fn count_unwritten(words: &[u32]) -> usize {
    words.iter().filter(|word| **word == POISON).count()
}

/// Returns the largest magnitude of some values.
fn largest(values: &[Real]) -> f64 {
    values
        .iter()
        .map(|real| real.value.abs())
        .fold(0.0, f64::max)
}

/// Returns the index of the first element that differs.
fn first_different(one: &[u32], other: &[u32]) -> Option<usize> {
    one.iter().zip(other).position(|(a, b)| a != b)
}

/// Returns the binding and the index of the first element that differs between two runs.
pub(super) fn first_difference(one: &[Vec<u32>], other: &[Vec<u32>]) -> Option<(usize, usize)> {
    one.iter()
        .zip(other)
        .enumerate()
        .find_map(|(binding, (one, other))| Some((binding, first_different(one, other)?)))
}
