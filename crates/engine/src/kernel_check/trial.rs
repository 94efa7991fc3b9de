//! One kernel at one shape: runs it on known inputs and compares its outputs. Outputs hold a marker before the run, which shows
//! elements that were not written; a second run on longer buffers shows accesses past the end.

use burn_wgpu::wgpu;

use super::gpu::{Gpu, GpuError, KernelPipeline};
use protocol::reference::{self, Difference, POISON, marker_past_end};
use protocol::validate::ParsedText;
use protocol::{
    KernelBinding, KernelFault, KernelFaultKind as Kind, KernelFile, KernelFill, KernelMatch,
    KernelRole, KernelShape, KernelType,
};
use wgsl_lockstep::exact::Real;

/// Elements past the end of each buffer in the second run.
pub(super) const GUARD: usize = 8192;
/// Largest error over the largest value of an output that is compared with the solution's, unless the exercise names a tolerance.
const TOLERANCE: f64 = 1e-4;

/// A kernel at a shape.
pub(super) struct KernelTrial<'a> {
    pub file: &'a KernelFile,
    pub shape: &'a KernelShape,
    pub text: &'a ParsedText,
    /// Kind of values in all buffers of a drawn shape.
    pub values: Option<KernelFill>,
    pub seed: u64,
}

/// The right outputs.
pub(super) struct ExpectedOutputs {
    /// One vector for each output, in binding order.
    pub values: Vec<Vec<Real>>,
    /// `reference` or `solution`.
    pub from: &'static str,
}

/// A match, or the fault.
pub(super) type TrialResult = Result<KernelMatch, Box<KernelFault>>;

impl KernelTrial<'_> {
    /// Values of the buffers that are read, in binding order.
    pub(super) fn inputs(&self) -> Result<Vec<Vec<u32>>, String> {
        let bindings = &self.file.spec.bindings;
        reference::inputs(bindings, self.shape, self.values, self.seed)
    }

    /// Outputs of the exercise's plain loop, for a kernel on a device or on the host.
    pub(super) fn expected(
        &self,
        inputs: &[Vec<u32>],
        device: bool,
    ) -> Result<ExpectedOutputs, String> {
        let (spec, sizes) = (&self.file.spec, &self.shape.sizes);
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

    /// Outputs of a kernel that is known to be right.
    pub(super) fn solution(
        &self,
        gpu: &Gpu,
        kernel: &KernelPipeline,
        inputs: &[Vec<u32>],
    ) -> Result<ExpectedOutputs, GpuError> {
        let found = self.run(gpu, kernel, inputs, 0)?;
        let tolerance = 2.0 * self.tolerance().unwrap_or(TOLERANCE);
        let values = self.outputs(&found).map(|(binding, found)| {
            let exact = found
                .iter()
                .map(|word| Real::exact(binding.element.number(*word)));
            let exact: Vec<Real> = exact.collect();
            let error = match binding.element {
                KernelType::F32 => tolerance * largest(&exact),
                KernelType::U32 | KernelType::I32 => 0.0,
            };
            exact.into_iter().map(|it| it.off_by(error)).collect()
        });
        Ok(ExpectedOutputs {
            values: values.collect(),
            from: "solution",
        })
    }

    /// Makes the driver finish compiling, which it may otherwise do at the first launch: launches no workgroups.
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
    ) -> Result<TrialResult, GpuError> {
        let exact = self.run(gpu, kernel, inputs, 0)?;
        let guarded = self.run(gpu, kernel, inputs, GUARD)?;
        let wrote = self.wrote_input(inputs, &exact);
        if let Some(fault) = wrote.or_else(|| self.wrote_past_end(&guarded)) {
            return Ok(Err(Box::new(fault)));
        }
        let matched = match self.compare(&exact, expected) {
            Ok(matched) => matched,
            Err(mut fault) => {
                fault.unsteady = first_difference(&exact, &guarded).is_some();
                return Ok(Err(fault));
            }
        };
        // The kernel was right once, and gives other outputs with longer buffers or in another run.
        if let Some((binding, at)) = first_difference(&exact, &guarded) {
            let again = self.run(gpu, kernel, inputs, 0)?;
            let kind = match first_difference(&exact, &again) {
                Some(_) => Kind::Races,
                None => Kind::ReadsPastEnd,
            };
            let name = &self.file.spec.bindings[binding].name;
            return Ok(Err(Box::new(self.fault(kind, name, at))));
        }
        Ok(Ok(matched))
    }

    /// The contents of all buffers after a launch, each with `guard` elements past its end that the kernel can access.
    fn run(
        &self,
        gpu: &Gpu,
        kernel: &KernelPipeline,
        inputs: &[Vec<u32>],
        guard: usize,
    ) -> Result<Vec<Vec<u32>>, GpuError> {
        let lengths: Vec<usize> = self.text.counts.iter().map(|it| it + guard).collect();
        let buffers = self.fill(gpu, inputs, guard)?;
        let bound = gpu.bind(kernel, &buffers, &lengths)?;
        gpu.launch(kernel, &bound, kernel.grid)?;
        buffers.iter().map(|buffer| gpu.read(buffer)).collect()
    }

    /// The buffers in binding order, each with its length and, if it is read, its contents before the launch.
    fn buffers<'a>(
        &'a self,
        inputs: &'a [Vec<u32>],
    ) -> impl Iterator<Item = (&'a KernelBinding, usize, Option<&'a Vec<u32>>)> {
        let mut inputs = inputs.iter();
        let bindings = self.file.spec.bindings.iter();
        bindings
            .zip(&self.text.counts)
            .map(move |(binding, count)| match binding.role {
                KernelRole::Out => (binding, *count, None),
                KernelRole::In | KernelRole::InOut => (binding, *count, inputs.next()),
            })
    }

    /// The buffers that the kernel has to write, with their contents after a launch.
    pub(super) fn outputs<'a>(
        &'a self,
        found: &'a [Vec<u32>],
    ) -> impl Iterator<Item = (&'a KernelBinding, &'a Vec<u32>)> {
        let all = self.file.spec.bindings.iter().zip(found);
        all.filter(|(binding, _)| binding.role != KernelRole::In)
    }

    /// All buffers before a launch on a device, each with `guard` elements past its end.
    pub(super) fn fill(
        &self,
        gpu: &Gpu,
        inputs: &[Vec<u32>],
        guard: usize,
    ) -> Result<Vec<wgpu::Buffer>, GpuError> {
        let contents = reference::contents(&self.file.spec, &self.text.counts, inputs, guard);
        contents.iter().map(|words| gpu.upload(words)).collect()
    }

    pub(super) fn wrote_input(
        &self,
        inputs: &[Vec<u32>],
        found: &[Vec<u32>],
    ) -> Option<KernelFault> {
        self.buffers(inputs)
            .zip(found)
            .filter(|((binding, ..), _)| binding.role == KernelRole::In)
            .find_map(|((binding, _, input), found)| {
                let at = differs(input?, found)?;
                Some(self.fault(Kind::WroteInput, &binding.name, at))
            })
    }

    pub(super) fn wrote_past_end(&self, guarded: &[Vec<u32>]) -> Option<KernelFault> {
        self.buffers(&[])
            .zip(guarded)
            .find_map(|((binding, count, _), found)| {
                let mut tail = found.iter().skip(count);
                let past = tail.position(|word| *word != marker_past_end(binding))?;
                Some(KernelFault {
                    of: count as u64,
                    ..self.fault(Kind::OutOfBounds, &binding.name, count + past)
                })
            })
    }

    /// The largest error that the exercise allows, over the largest expected value.
    fn tolerance(&self) -> Option<f64> {
        self.shape.tolerance.or(self.file.spec.tolerance)
    }

    pub(super) fn compare(&self, found: &[Vec<u32>], expected: &ExpectedOutputs) -> TrialResult {
        let mut matched = KernelMatch {
            shape: self.shape.label.clone(),
            against: expected.from.to_owned(),
            ..KernelMatch::default()
        };
        for ((binding, found), expected) in self.outputs(found).zip(&expected.values) {
            let name = &binding.name;
            if let Some(at) = found.iter().position(|word| *word == POISON) {
                return Err(Box::new(KernelFault {
                    count: unwritten(found) as u64,
                    of: found.len() as u64,
                    ..self.fault(Kind::Unwritten, name, at)
                }));
            }
            let largest = largest(expected).max(f64::MIN_POSITIVE);
            let most = self.tolerance().map_or(f64::INFINITY, |it| it * largest);
            let Some(all) = reference::differences(expected, found, binding.element, most) else {
                continue;
            };
            let worse = |worst: Difference, next: Difference| match next.share > worst.share {
                true => next,
                false => worst,
            };
            let Some(worst) = all.clone().reduce(worse) else {
                continue;
            };
            if worst.share > 1.0 {
                return Err(Box::new(KernelFault {
                    expected: Some(worst.expected.into()),
                    found: Some(worst.found.into()),
                    error: Some((worst.error() / largest).into()),
                    allowed: Some(worst.bound / largest),
                    count: all.filter(|it| it.share > 1.0).count() as u64,
                    of: found.len() as u64,
                    ..self.fault(Kind::Wrong, name, worst.at)
                }));
            }
            let off = all
                .map(|difference| difference.error())
                .filter(|off| off.is_finite());
            matched.error = matched.error.max(off.fold(0.0, f64::max) / largest);
            matched.share = matched.share.max(worst.share);
        }
        Ok(matched)
    }

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

/// How many elements of an output were never written.
pub(super) fn unwritten(found: &[u32]) -> usize {
    found.iter().filter(|word| **word == POISON).count()
}

/// The largest of the expected values, by magnitude.
fn largest(expected: &[Real]) -> f64 {
    let sizes = expected.iter().map(|it| it.value.abs());
    sizes.fold(0.0, f64::max)
}

/// The first element that differs.
fn differs(one: &[u32], other: &[u32]) -> Option<usize> {
    let mut pairs = one.iter().zip(other);
    pairs.position(|(a, b)| a != b)
}

/// The first element that differs between two runs, as binding and index.
pub(super) fn first_difference(one: &[Vec<u32>], other: &[Vec<u32>]) -> Option<(usize, usize)> {
    let mut pairs = one.iter().zip(other).enumerate();
    pairs.find_map(|(binding, (one, other))| Some((binding, differs(one, other)?)))
}
