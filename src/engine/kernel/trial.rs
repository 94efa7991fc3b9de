//! One kernel at one shape: runs it on known numbers and compares what it wrote. Outputs are filled with a marker before,
//! so that what was not written shows; a second run on longer buffers shows what was written or read past the end.

use std::ops::Range;

use burn_wgpu::wgpu;

use super::gpu::{Gpu, Pipeline, Trouble};
use super::message;
use super::probe;
use super::reference::{self, Difference};
use super::template::Filled;
use crate::protocol::{
    KernelFault, KernelFaultKind as Kind, KernelFile, KernelMatch, KernelRole, KernelShape,
};

/// Numbers behind the end of each buffer in the second run.
const GUARD: usize = 8192;
/// A NaN that no arithmetic produces: marks what was never written.
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
                fault.unsteady = self.first_difference(&exact, &guarded).is_some();
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
    fn fill(&self, inputs: &[Vec<f32>], guard: usize) -> Result<Vec<wgpu::Buffer>, Trouble> {
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
                return Some(self.fault(Kind::WroteInput, &binding.name, at));
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
            return Some(KernelFault {
                of: *count as u64,
                ..self.fault(Kind::OutOfBounds, &binding.name, count + past)
            });
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
                return Err(Box::new(KernelFault {
                    count: unwritten as u64,
                    of: found.len() as u64,
                    ..self.fault(Kind::Unwritten, name, at)
                }));
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
    fn first_difference(&self, one: &[Vec<f32>], other: &[Vec<f32>]) -> Option<(usize, usize)> {
        (0..one.len()).find_map(|binding| {
            let at = one[binding]
                .iter()
                .zip(&other[binding])
                .position(|(a, b)| a.to_bits() != b.to_bits())?;
            Some((binding, at))
        })
    }

    /// An output with a number that is too far off.
    fn wrong(
        &self,
        name: &str,
        expected: &[f32],
        found: &[f32],
        most: &Difference,
        allowed: f64,
    ) -> KernelFault {
        let off = |(e, f): (&f32, &f32)| {
            let error = (f64::from(*e) - f64::from(*f)).abs();
            error.is_nan() || error > allowed * most.scale
        };
        KernelFault {
            expected: Some(f64::from(most.expected).into()),
            found: Some(f64::from(most.found).into()),
            error: Some(most.error.into()),
            allowed: Some(allowed),
            count: expected.iter().zip(found).filter(|pair| off(*pair)).count() as u64,
            of: expected.len() as u64,
            ..self.fault(Kind::Wrong, name, most.at)
        }
    }

    /// A kernel that was right once, and differs when its buffers are longer, or when it runs again.
    fn unsteady(
        &self,
        one: &[Vec<f32>],
        again: &[Vec<f32>],
        (binding, at): (usize, usize),
    ) -> KernelFault {
        let kind = match self.first_difference(one, again) {
            Some(_) => Kind::Races,
            None => Kind::ReadsPastEnd,
        };
        self.fault(kind, &self.file.spec.bindings[binding].name, at)
    }

    fn fault(&self, kind: Kind, buffer: &str, at: usize) -> KernelFault {
        KernelFault {
            kind,
            shape: self.shape.label.clone(),
            buffer: buffer.to_owned(),
            at: i64::try_from(at).ok(),
            ..KernelFault::default()
        }
    }

    /// What the kernel with probes finds: a loop without end, or the first index outside of its array.
    fn probe(&self, inputs: &[Vec<f32>]) -> Result<Option<KernelFault>, Trouble> {
        let mut lengths = self.counts.to_vec();
        // CPU drivers cut loops short on their own, after 65,535 rounds.
        let rounds = if self.gpu.on_cpu { 1 << 15 } else { 1 << 21 };
        let Some(probed) = probe::probe(&self.filled.text, &lengths, rounds, !self.real) else {
            return Ok(None);
        };
        // A text that cannot be probed is still held against everything else.
        let Ok(pipeline) = self.gpu.compile(&probed.text, lengths.len() + 1) else {
            return Ok(None);
        };
        let mut buffers = self.fill(inputs, 0)?;
        buffers.push(self.gpu.upload(&[0.0; probe::WORDS])?);
        lengths.push(probe::WORDS);
        let bound = self.gpu.bind(&pipeline, &buffers, &lengths)?;
        self.gpu.launch(&pipeline, &bound, self.grid)?;
        let words: Vec<u32> = self
            .gpu
            .read(&buffers[lengths.len() - 1], probe::WORDS)?
            .into_iter()
            .map(f32::to_bits)
            .collect();
        let place = |range: &Range<usize>| {
            let (message, instead) = (String::new(), String::new());
            message::error(self.text, &self.filled.origin(range), message, instead)
        };
        let found = |kind| KernelFault {
            kind,
            shape: self.shape.label.clone(),
            ..KernelFault::default()
        };
        if words[3] > 0 {
            return Ok(Some(KernelFault {
                place: probed.loops.get(words[4] as usize).map(place),
                limit: f64::from(rounds),
                ..found(Kind::Endless)
            }));
        }
        let site = probed.sites.get(words[1] as usize).filter(|_| words[0] > 0);
        Ok(site.map(|site| KernelFault {
            buffer: site.array.clone(),
            // What lies beyond the largest i32 is a negative number, read as an unsigned one.
            at: Some(i64::from(words[2] as i32)),
            of: site.count,
            place: Some(place(&site.range)),
            ..found(Kind::OutOfBounds)
        }))
    }
}
