//! One kernel at one shape: runs it on known numbers and compares what it wrote. Outputs are filled with a marker before,
//! so that what was not written shows; a second run on longer buffers shows what was written or read past the end.

use std::ops::Range;

use burn_wgpu::wgpu;

use super::gpu::{CompiledKernel, Gpu, GpuError};
use super::interpret;
use super::message;
use super::probe::{self, Memory, Probed, Seen};
use super::reference::{self, Difference};
use super::validate::SizedText;
use crate::protocol::{
    KernelAccess, KernelBinding, KernelFault, KernelFaultKind as Kind, KernelFile, KernelMatch,
    KernelRole, KernelShape,
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
pub struct KernelTrial<'a> {
    pub gpu: &'a Gpu,
    pub file: &'a KernelFile,
    pub shape: &'a KernelShape,
    pub text: &'a SizedText,
    /// Whether this is the real size, at which a probe in every index would take too long.
    pub real: bool,
}

/// What the outputs have to be.
pub struct ExpectedOutputs {
    /// For each output in binding order.
    pub values: Vec<Vec<f32>>,
    /// `reference` or `solution`.
    pub from: &'static str,
}

/// Right, or wrong in this way.
pub type TrialResult = Result<KernelMatch, Box<KernelFault>>;

impl KernelTrial<'_> {
    /// Numbers for the buffers that are read, in binding order.
    pub fn inputs(&self) -> Result<Vec<Vec<f32>>, GpuError> {
        reference::inputs(&self.file.spec.bindings, self.shape, SEED).map_err(GpuError::Refused)
    }

    /// What the plain Rust reference makes of the inputs.
    pub fn reference(&self, inputs: &[Vec<f32>]) -> ExpectedOutputs {
        ExpectedOutputs {
            values: reference::outputs(self.file.spec.reference, inputs, &self.shape.sizes),
            from: "reference",
        }
    }

    /// What a kernel that is known to be right makes of them.
    pub fn solution(
        &self,
        kernel: &CompiledKernel,
        inputs: &[Vec<f32>],
    ) -> Result<ExpectedOutputs, GpuError> {
        let found = self.run(kernel, inputs, 0)?;
        Ok(ExpectedOutputs {
            values: self
                .outputs(&found)
                .map(|(_, found)| found.clone())
                .collect(),
            from: "solution",
        })
    }

    /// Runs it and judges, and adds to what is known of its access to arrays. The kernel with probes comes first: where a loop
    /// has no end, the plain one is never run.
    pub fn judge(
        &self,
        kernel: &CompiledKernel,
        inputs: &[Vec<f32>],
        expected: &ExpectedOutputs,
        access: &mut Vec<KernelAccess>,
    ) -> Result<TrialResult, GpuError> {
        let outside = match self.probe(inputs, access)? {
            Some(fault) if fault.kind == Kind::Endless => return Ok(Err(Box::new(fault))),
            outside => outside,
        };
        let exact = self.run(kernel, inputs, 0)?;
        let guarded = self.run(kernel, inputs, GUARD)?;
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
                fault.unsteady = first_difference(&exact, &guarded).is_some();
                return Ok(Err(fault));
            }
        };
        if let Some(place) = first_difference(&exact, &guarded) {
            let again = self.run(kernel, inputs, 0)?;
            return Ok(Err(Box::new(self.unsteady(&exact, &again, place))));
        }
        // What came out right here may come out wrong elsewhere.
        Ok(match self.interpret(inputs) {
            Some(fault) => Err(Box::new(fault)),
            None => Ok(matched),
        })
    }

    /// The contents of all buffers after a launch, each with `guard` numbers behind its end that the kernel may reach.
    fn run(
        &self,
        kernel: &CompiledKernel,
        inputs: &[Vec<f32>],
        guard: usize,
    ) -> Result<Vec<Vec<f32>>, GpuError> {
        let lengths: Vec<usize> = self.text.counts.iter().map(|it| it + guard).collect();
        let buffers = self.fill(inputs, guard)?;
        let bound = self.gpu.bind(kernel, &buffers, &lengths)?;
        self.gpu.launch(kernel, &bound)?;
        buffers.iter().map(|buffer| self.gpu.read(buffer)).collect()
    }

    /// The buffers in binding order, each with its length and, where it is read, what it holds before.
    fn buffers<'a>(
        &'a self,
        inputs: &'a [Vec<f32>],
    ) -> impl Iterator<Item = (&'a KernelBinding, usize, Option<&'a Vec<f32>>)> {
        let mut inputs = inputs.iter();
        let bindings = self.file.spec.bindings.iter();
        bindings
            .zip(&self.text.counts)
            .map(move |(binding, count)| match binding.role {
                KernelRole::Out => (binding, *count, None),
                KernelRole::In | KernelRole::InOut => (binding, *count, inputs.next()),
            })
    }

    /// What a launch left in the buffers that it is to write.
    fn outputs<'a>(
        &'a self,
        found: &'a [Vec<f32>],
    ) -> impl Iterator<Item = (&'a KernelBinding, &'a Vec<f32>)> {
        let all = self.file.spec.bindings.iter().zip(found);
        all.filter(|(binding, _)| binding.role != KernelRole::In)
    }

    /// Buffers with the inputs in them, and poison in the outputs.
    pub fn fill(&self, inputs: &[Vec<f32>], guard: usize) -> Result<Vec<wgpu::Buffer>, GpuError> {
        self.buffers(inputs)
            .map(|(binding, count, input)| {
                let mut values = input.cloned().unwrap_or_default();
                values.resize(count, f32::from_bits(POISON));
                values.resize(count + guard, f32::from_bits(behind(binding)));
                self.gpu.upload(&values)
            })
            .collect()
    }

    fn wrote_input(&self, inputs: &[Vec<f32>], found: &[Vec<f32>]) -> Option<KernelFault> {
        self.buffers(inputs)
            .zip(found)
            .filter(|((binding, ..), _)| binding.role == KernelRole::In)
            .find_map(|((binding, _, input), found)| {
                let at = differs(input?, found)?;
                Some(self.fault(Kind::WroteInput, &binding.name, at))
            })
    }

    fn wrote_past_end(&self, guarded: &[Vec<f32>]) -> Option<KernelFault> {
        self.buffers(&[])
            .zip(guarded)
            .find_map(|((binding, count, _), found)| {
                let mut tail = found.iter().skip(count);
                let past = tail.position(|x| x.to_bits() != behind(binding))?;
                Some(KernelFault {
                    of: count as u64,
                    ..self.fault(Kind::OutOfBounds, &binding.name, count + past)
                })
            })
    }

    fn compare(&self, found: &[Vec<f32>], expected: &ExpectedOutputs) -> TrialResult {
        let tolerance = self.shape.tolerance.unwrap_or(self.file.spec.tolerance);
        let tolerance = match expected.from {
            "reference" => tolerance,
            _ => 2.0 * tolerance,
        };
        let mut worst = 0.0_f64;
        for ((binding, found), expected) in self.outputs(found).zip(&expected.values) {
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
        let kind = match first_difference(one, again) {
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

    /// What running it on the host shows, at the small shapes.
    fn interpret(&self, inputs: &[Vec<f32>]) -> Option<KernelFault> {
        if self.real {
            return None;
        }
        let filled = &self.text.filled;
        let buffers = self.buffers(inputs);
        let buffers = buffers.map(|(_, count, input)| input.map(Vec::as_slice).ok_or(count));
        let found = interpret::fault(&filled.text, self.text.grid, buffers.collect())?;
        let range = filled.origin(&found.location.span);
        let advice = interpret::advice(found.kind).to_owned();
        let place = message::error(&self.file.text, &range, String::new(), advice);
        // The finding names its line; the place says it, too.
        let told = found.to_string();
        let told = told.split_once(": ").map_or(&*told, |(_, told)| told);
        Some(KernelFault {
            kind: Kind::Memory,
            shape: self.shape.label.clone(),
            buffer: found.variable.clone().unwrap_or_default(),
            reason: told.to_owned(),
            place: Some(place),
            ..KernelFault::default()
        })
    }

    /// What the kernel with probes finds: a loop without end, or the first index outside of its array.
    fn probe(
        &self,
        inputs: &[Vec<f32>],
        access: &mut Vec<KernelAccess>,
    ) -> Result<Option<KernelFault>, GpuError> {
        let mut lengths = self.text.counts.clone();
        // CPU drivers cut loops short on their own, after 65,535 rounds.
        let rounds = if self.gpu.on_cpu { 1 << 15 } else { 1 << 21 };
        let filled = &self.text.filled;
        let Some(probed) = probe::probe(&filled.text, &lengths, self.text.grid, rounds, !self.real)
        else {
            return Ok(None);
        };
        // A text that cannot be probed is still checked in every other way.
        let Ok(kernel) = self.gpu.compile(&probed.text, self.text.grid) else {
            return Ok(None);
        };
        let mut buffers = self.fill(inputs, 0)?;
        let seen = self.gpu.upload(&vec![0.0; probed.words()])?;
        buffers.push(seen.clone());
        lengths.push(probed.words());
        let bound = self.gpu.bind(&kernel, &buffers, &lengths)?;
        self.gpu.launch(&kernel, &bound)?;
        let words = self.gpu.read(&seen)?.into_iter().map(f32::to_bits);
        let seen = probed.read(&words.collect::<Vec<u32>>());
        let place = |range: &Range<usize>| {
            let (message, instead) = (String::new(), String::new());
            message::error(&self.file.text, &filled.origin(range), message, instead)
        };
        let found = |kind| KernelFault {
            kind,
            shape: self.shape.label.clone(),
            ..KernelFault::default()
        };
        if let Some(endless) = seen.endless {
            return Ok(Some(KernelFault {
                place: probed.loops.get(endless).map(place),
                limit: f64::from(rounds),
                ..found(Kind::Endless)
            }));
        }
        for (number, site) in probed.sites.iter().enumerate() {
            if let Some(memory) = site.memory {
                let place = place(&site.range);
                add_access(access, &probed, &seen, number, memory, place.line);
            }
        }
        let race = seen.race.and_then(|(site, index)| {
            let site = probed.sites.get(site)?;
            Some(KernelFault {
                buffer: site.array.clone(),
                at: Some(i64::from(index)),
                place: Some(place(&site.range)),
                ..found(Kind::Races)
            })
        });
        let outside = seen.outside.and_then(|(site, index)| {
            let site = probed.sites.get(site)?;
            Some(KernelFault {
                buffer: site.array.clone(),
                // What lies beyond the largest i32 is a negative number, read as an unsigned one.
                at: Some(i64::from(index as i32)),
                of: site.count,
                place: Some(place(&site.range)),
                ..found(Kind::OutOfBounds)
            })
        });
        Ok(outside.or(race))
    }
}

/// Adds what a launch showed of site `number` to what is known from other shapes.
fn add_access(
    access: &mut Vec<KernelAccess>,
    probed: &Probed,
    seen: &Seen,
    number: usize,
    memory: Memory,
    line: u32,
) {
    let site = &probed.sites[number];
    let sites = probed.sites.iter().zip(&seen.sites);
    let same = sites.filter(|(other, _)| other.array == site.array);
    let taken: u64 = same.map(|(_, (times, _))| u64::from(*times)).sum();
    let fetches = taken as f64 / site.count.max(1) as f64;
    let neighbours = seen.sites.get(number).map_or(0, |(_, lanes)| *lanes as u64);
    match access.iter_mut().find(|known| known.site == number as u64) {
        Some(known) => {
            known.fetches = known.fetches.max(fetches);
            known.neighbours = known.neighbours.max(neighbours);
        }
        None => access.push(KernelAccess {
            site: number as u64,
            array: site.array.clone(),
            line,
            binding: match memory {
                Memory::Buffer(binding) => Some(binding as u64),
                Memory::Workgroup => None,
            },
            fetches,
            neighbours,
        }),
    }
}

/// What lies behind the end of a buffer.
fn behind(binding: &KernelBinding) -> u32 {
    match binding.role {
        KernelRole::In => POISON,
        KernelRole::Out | KernelRole::InOut => SENTINEL,
    }
}

/// The first element that differs, bit for bit.
fn differs(one: &[f32], other: &[f32]) -> Option<usize> {
    let mut pairs = one.iter().zip(other);
    pairs.position(|(a, b)| a.to_bits() != b.to_bits())
}

/// The first element that differs between two runs, as binding and index.
fn first_difference(one: &[Vec<f32>], other: &[Vec<f32>]) -> Option<(usize, usize)> {
    let mut pairs = one.iter().zip(other).enumerate();
    pairs.find_map(|(binding, (one, other))| Some((binding, differs(one, other)?)))
}
