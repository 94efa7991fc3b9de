//! One kernel at one shape: run it on known numbers and say whether what it wrote is right. Outputs are poisoned before,
//! so that what was not written shows; a second run on longer buffers shows what was written or read past the end.

use burn_wgpu::wgpu;

use super::gpu::{Gpu, Pipeline, Trouble};
use super::reference;
use super::template::Filled;
use crate::protocol::{
    KernelFault, KernelFaultKind as Kind, KernelFile, KernelMatch, KernelRole, KernelShape,
};

/// Numbers behind the end of each buffer in the second run.
const GUARD: usize = 8192;
/// A NaN that no arithmetic makes: what was never written.
const POISON: u32 = 0x7fc0_dead;
/// Behind the end of an output; a finite number, so that reading it is seen as well.
const SENTINEL: u32 = 0x5bad_c0de;
/// Of the inputs; any other would do.
const SEED: u64 = 42;

/// A kernel at a shape.
pub struct Trial<'a> {
    pub gpu: &'a Gpu,
    pub file: &'a KernelFile,
    pub shape: &'a KernelShape,
    /// Elements of each buffer.
    pub counts: &'a [usize],
    pub grid: [u32; 3],
    /// Whether the kernel asks for the length of a buffer.
    pub array_length: bool,
    /// The learner's text, and as it is compiled.
    pub text: &'a str,
    pub filled: &'a Filled,
    /// Whether this is the real size, at which a probe in every index would take too long.
    pub real: bool,
}

/// What the outputs have to be.
pub struct Expected {
    /// For each output in binding order.
    pub values: Vec<Vec<f32>>,
    /// `reference` or `solution`.
    pub from: &'static str,
}

/// Right, or wrong in this way.
pub type Verdict = Result<KernelMatch, Box<KernelFault>>;

impl Trial<'_> {
    /// Numbers for the buffers that are read, in binding order.
    pub fn inputs(&self) -> Result<Vec<Vec<f32>>, Trouble> {
        reference::inputs(&self.file.spec.bindings, &self.shape.sizes, SEED)
            .map_err(Trouble::Refused)
    }

    /// What the plain Rust reference makes of the inputs.
    pub fn reference(&self, inputs: &[Vec<f32>]) -> Expected {
        Expected {
            values: reference::of(self.file.spec.reference)(inputs, &self.shape.sizes),
            from: "reference",
        }
    }

    /// What a kernel that is known to be right makes of them.
    pub fn solution(&self, pipeline: &Pipeline, inputs: &[Vec<f32>]) -> Result<Expected, Trouble> {
        let found = self.run(pipeline, inputs, 0)?;
        let outputs = self
            .file
            .spec
            .bindings
            .iter()
            .zip(found)
            .filter(|(binding, _)| binding.role != KernelRole::In);
        Ok(Expected {
            values: outputs.map(|(_, values)| values).collect(),
            from: "solution",
        })
    }

    /// Runs it and judges. The kernel with probes comes first: where a loop has no end, the plain one is never run.
    pub fn judge(
        &self,
        pipeline: &Pipeline,
        inputs: &[Vec<f32>],
        expected: &Expected,
    ) -> Result<Verdict, Trouble> {
        let outside = match self.probe(inputs)? {
            Some(fault) if fault.kind == Kind::Endless => return Ok(Err(Box::new(fault))),
            outside => outside,
        };
        let exact = self.run(pipeline, inputs, 0)?;
        let guarded = self.run(pipeline, inputs, GUARD)?;
        if let Some(fault) = self
            .wrote_input(inputs, &exact)
            .or(outside)
            .or_else(|| self.wrote_past_end(&guarded))
        {
            return Ok(Err(Box::new(fault)));
        }
        let matched = match self.compare(&exact, expected) {
            Ok(matched) => matched,
            Err(mut fault) => {
                if self.first_difference(&exact, &guarded).is_some() {
                    fault.text += "; and two runs differ: do invocations race?";
                }
                return Ok(Err(fault));
            }
        };
        if let Some(place) = self.first_difference(&exact, &guarded) {
            let again = self.run(pipeline, inputs, 0)?;
            return Ok(Err(Box::new(self.unsteady(&exact, &again, place))));
        }
        Ok(Ok(matched))
    }

    /// The contents of all buffers after a launch, each with `guard` numbers behind its end that the kernel may reach.
    fn run(
        &self,
        pipeline: &Pipeline,
        inputs: &[Vec<f32>],
        guard: usize,
    ) -> Result<Vec<Vec<f32>>, Trouble> {
        let mut lengths = self.counts.to_vec();
        lengths.iter_mut().for_each(|length| *length += guard);
        let buffers = self.fill(inputs, guard)?;
        let bound = self.gpu.bind(pipeline, &buffers, &lengths)?;
        self.gpu.launch(pipeline, &bound, self.grid)?;
        buffers
            .iter()
            .zip(lengths)
            .map(|(buffer, length)| self.gpu.read(buffer, length))
            .collect()
    }

    /// Buffers with the inputs in them, and poison in the outputs.
    pub(super) fn fill(
        &self,
        inputs: &[Vec<f32>],
        guard: usize,
    ) -> Result<Vec<wgpu::Buffer>, Trouble> {
        let mut given = inputs.iter();
        let mut buffers = Vec::with_capacity(self.counts.len());
        for (binding, count) in self.file.spec.bindings.iter().zip(self.counts) {
            let mut values = match binding.role {
                KernelRole::Out => vec![f32::from_bits(POISON); *count],
                KernelRole::In | KernelRole::InOut => given.next().cloned().unwrap_or_default(),
            };
            let behind = if binding.role == KernelRole::In {
                POISON
            } else {
                SENTINEL
            };
            values.resize(count + guard, f32::from_bits(behind));
            buffers.push(self.gpu.upload(&values)?);
        }
        Ok(buffers)
    }

    fn wrote_input(&self, inputs: &[Vec<f32>], found: &[Vec<f32>]) -> Option<KernelFault> {
        let mut given = inputs.iter();
        for (binding, found) in self.file.spec.bindings.iter().zip(found) {
            let given = if binding.role == KernelRole::Out {
                None
            } else {
                given.next()
            };
            if binding.role != KernelRole::In {
                continue;
            }
            let changed = given.and_then(|given| {
                given
                    .iter()
                    .zip(found)
                    .position(|(a, b)| a.to_bits() != b.to_bits())
            });
            if let Some(at) = changed {
                let text = format!(
                    "writes to `{}[{at}]`, which is only to be read",
                    binding.name
                );
                return Some(self.fault(Kind::WroteInput, &binding.name, Some(at), text));
            }
        }
        None
    }

    fn wrote_past_end(&self, guarded: &[Vec<f32>]) -> Option<KernelFault> {
        for ((binding, count), found) in
            self.file.spec.bindings.iter().zip(self.counts).zip(guarded)
        {
            let behind = if binding.role == KernelRole::In {
                POISON
            } else {
                SENTINEL
            };
            let tail = found.get(*count..).unwrap_or_default();
            let Some(past) = tail.iter().position(|x| x.to_bits() != behind) else {
                continue;
            };
            let (name, at) = (&binding.name, count + past);
            let why = if self.array_length {
                "a buffer may be longer than its tensor, so compare with the size and not with arrayLength"
            } else {
                "compare the index with the size before writing"
            };
            let text = format!(
                "writes out of bounds: `{name}[{at}]`, and `{name}` has {count} elements; {why}"
            );
            return Some(self.fault(Kind::OutOfBounds, name, Some(at), text));
        }
        None
    }

    fn compare(&self, found: &[Vec<f32>], expected: &Expected) -> Verdict {
        let tolerance = if expected.from == "reference" {
            self.file.spec.tolerance
        } else {
            2.0 * self.file.spec.tolerance
        };
        let mut worst = 0.0_f64;
        let outputs = self
            .file
            .spec
            .bindings
            .iter()
            .zip(found)
            .filter(|(binding, _)| binding.role != KernelRole::In);
        for ((binding, found), expected) in outputs.zip(&expected.values) {
            let name = &binding.name;
            let unwritten = found.iter().filter(|x| x.to_bits() == POISON).count();
            if let Some(at) = found.iter().position(|x| x.to_bits() == POISON) {
                let text = format!(
                    "never writes {unwritten} of the {} elements of `{name}`, first `{name}[{at}]`",
                    found.len()
                );
                return Err(Box::new(self.fault(Kind::Unwritten, name, Some(at), text)));
            }
            let Some(most) = reference::difference(expected, found) else {
                continue;
            };
            if most.error > tolerance {
                return Err(Box::new(
                    self.wrong(name, expected, found, &most, tolerance),
                ));
            }
            worst = worst.max(most.error);
        }
        Ok(KernelMatch {
            shape: self.shape.label.clone(),
            error: worst,
            against: expected.from.to_owned(),
        })
    }

    /// The first element that differs between two runs, as binding and index.
    pub(super) fn first_difference(
        &self,
        one: &[Vec<f32>],
        other: &[Vec<f32>],
    ) -> Option<(usize, usize)> {
        (0..one.len()).find_map(|binding| {
            let at = one[binding]
                .iter()
                .zip(&other[binding])
                .position(|(a, b)| a.to_bits() != b.to_bits())?;
            Some((binding, at))
        })
    }
}
