//! One check from beginning to end, on a thread with a large stack: a file's text is parsed once for each size, interpreted on the host,
//! run on a device, and timed. Each stage takes what the one before it made. A hang, a panic or an error of the driver becomes a line of the
//! report. A watcher reports what takes too long and stops waiting for it.

use std::collections::BTreeMap;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;

use super::access::HostRun;
use super::clock::WorkClock;
use super::gpu::{Gpu, GpuError, KernelPipeline, no_adapter};
use super::interpret::{HostLaunch, Remarks, STEPS, STEPS_ALONE, STEPS_DRAWN, too_long};
use super::timing;
use super::trial::{ExpectedOutputs, KernelTrial};
use super::watch::{CheckLimits, CheckState, fault, watch};
use protocol::random::Rng;
use protocol::reference::cost;
use protocol::validate::{self, ParsedText};
use protocol::{
    KernelAccess, KernelError, KernelFault, KernelFile, KernelFill, KernelJob, KernelMatch,
    KernelProgress, KernelReport, KernelResult, KernelShape, KernelUntimed, same_text,
};
use wgsl_lockstep::STACK_BYTES;

/// Floating-point operations up to which a CPU driver also runs the last shape, and up to which the last shape is compared with the
/// plain reference on every device.
const CPU_FLOPS: f64 = 1e8;
/// Steps of some workgroups at the last, real shape.
const STEPS_REAL: u64 = 2 * STEPS;
/// Largest text, in bytes, that is parsed again for each size named in it.
const READ_AGAIN: usize = 16 << 10;
/// Loop iterations after which llvmpipe, the CPU driver, silently ends an invocation.
const CPU_ROUNDS: u64 = 65_000;
/// Floating-point operations up to which a drawn shape is tried with every kind of values; a larger one is tried with the first kind only.
const EVERY_KIND: f64 = 1e7;

/// The device of the last check, which stays open for the next: opening one takes longer than most checks.
#[derive(Clone, Default)]
pub struct CheckDevice(Arc<Mutex<Option<(String, Gpu)>>>);

impl CheckDevice {
    fn take(&self) -> Option<(String, Gpu)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn keep(&self, opened: Option<(String, Gpu)>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = opened;
    }
}

/// Checks a learner's kernels on `device`: `auto`, `cpu`, `gpu`, `gpu:N` or `vulkan-cpu`. Always answers. `tell` hears of its progress.
pub fn check(
    job: &KernelJob,
    device: &str,
    kept: &CheckDevice,
    limits: CheckLimits,
    tell: impl Fn(KernelProgress),
) -> KernelReport {
    let mut clock = WorkClock::start();
    let state = CheckState {
        report: KernelReport {
            id: job.id,
            exercise: job.exercise.clone(),
            seed: job.seed,
            ..KernelReport::default()
        },
        file: Some(0),
        ..CheckState::default()
    };
    let (outbox, inbox) = channel();
    let (mut own_job, device, own_state) = (job.clone(), device.to_owned(), state.clone());
    let kept = kept.clone();
    let work = move || {
        let mut news = CheckNews {
            state: own_state,
            outbox,
        };
        let parsed = parse(&mut own_job, &mut news);
        let mut worker = CheckWorker {
            job: &own_job,
            parsed: &parsed,
            real_inputs: None,
            news,
        };
        worker.run(&device, &kept);
        worker.news.tell();
    };
    let thread = Builder::new().name("kernel check".into());
    let mut report = match thread.stack_size(STACK_BYTES).spawn(work) {
        Ok(thread) => watch(state, &inbox, thread, limits, tell),
        Err(error) => KernelReport {
            failed: Some(format!("the check could not be started: {error}")),
            ..state.report
        },
    };
    report.seconds = clock.wall().as_secs_f64();
    report.processor_seconds = clock.spent().processor.map(|it| it.as_secs_f64());
    report
}

/// Parses every file at every shape; a file with an error has no texts. Leaves out the sizes taken from a learner's text that a file does
/// not fit, or that would take too long.
fn parse(job: &mut KernelJob, news: &mut CheckNews) -> Vec<Option<Vec<ParsedText>>> {
    let mut all: Vec<Option<Vec<Option<ParsedText>>>> = Vec::new();
    for (index, file) in job.files.iter().enumerate() {
        news.state.report.files.push(KernelResult {
            name: file.name.clone(),
            ..KernelResult::default()
        });
        news.compiles(index, "");
        let texts = match &file.unreadable {
            Some(error) => Err(error.clone()),
            None => job
                .shapes
                .iter()
                .map(|shape| parsed_at(file, shape))
                .collect(),
        };
        let result = news.result(index);
        result.error = texts.as_ref().err().cloned();
        all.push(texts.ok());
    }
    let fits = |number: usize| {
        let mut files = all.iter();
        files.all(|texts| texts.as_ref().is_some_and(|texts| texts[number].is_some()))
    };
    let shapes = job.shapes.iter().enumerate();
    let kept = shapes.map(|(number, shape)| !shape.is_of_text() || fits(number));
    let kept: Vec<bool> = kept.collect();
    let mut kept_shapes = kept.iter();
    job.shapes
        .retain(|_| kept_shapes.next().is_some_and(|kept| *kept));
    let remaining = all.into_iter().enumerate().map(|(index, texts)| {
        let texts = texts?.into_iter().zip(&kept);
        let texts = texts.filter_map(|(text, kept)| text.filter(|_| *kept));
        let texts: Vec<ParsedText> = texts.collect();
        news.result(index).facts = Some(validate::facts(&texts));
        Some(texts)
    });
    remaining.collect()
}

/// A file at a shape; `None` where the shape is one of the text that the file does not fit.
///
/// # Errors
/// With what is wrong with the text.
fn parsed_at(file: &KernelFile, shape: &KernelShape) -> Result<Option<ParsedText>, KernelError> {
    let parse = || ParsedText::parse(&file.text, &file.spec, shape);
    if !shape.is_of_text() {
        return parse().map(Some);
    }
    let fits = file.text.len() <= READ_AGAIN && cost::flops(&file.spec, &shape.sizes) <= CPU_FLOPS;
    Ok(if fits { parse().ok() } else { None })
}

/// What the watcher hears of the worker.
struct CheckNews {
    state: CheckState,
    outbox: Sender<CheckState>,
}

impl CheckNews {
    fn result(&mut self, index: usize) -> &mut KernelResult {
        &mut self.state.report.files[index]
    }

    /// Records that a shape is right, with the largest error of all tries at it.
    fn matched(&mut self, index: usize, mut matched: KernelMatch) {
        let known = &mut self.result(index).shapes;
        if let Some(at) = known.iter().position(|it| it.shape == matched.shape) {
            let before = known.remove(at);
            matched.error = matched.error.max(before.error);
            matched.share = matched.share.max(before.share);
        }
        known.push(matched);
    }

    /// Tells the watcher what the worker does next.
    fn at(&mut self, file: Option<usize>, shape: &str, running: bool) {
        self.state.file = file;
        self.state.shape = shape.to_owned();
        (self.state.running, self.state.compiling) = (running, false);
        self.tell();
    }

    /// Tells the watcher that a file is now read or compiled.
    fn compiles(&mut self, file: usize, shape: &str) {
        self.at(Some(file), shape, false);
        self.state.compiling = true;
        self.tell();
    }

    fn tell(&self) {
        let _ = self.outbox.send(self.state.clone());
    }
}

/// What a run of all small shapes on the host leaves to a device.
#[derive(Default)]
struct Interpreted {
    /// The shapes at which the kernel's loops are too long for a CPU driver.
    long: Vec<usize>,
    /// Outputs at shapes of the exercise, where they are the same for a device.
    expected: BTreeMap<usize, ExpectedOutputs>,
}

/// Why the check of a file ends early.
enum FileEnd {
    /// The kernel is wrong.
    Fault(Box<KernelFault>),
    /// The device does not run it.
    Device(GpuError),
    /// The exercise itself cannot be checked.
    Exercise(String),
}

impl From<Box<KernelFault>> for FileEnd {
    fn from(fault: Box<KernelFault>) -> Self {
        Self::Fault(fault)
    }
}

impl From<GpuError> for FileEnd {
    fn from(error: GpuError) -> Self {
        Self::Device(error)
    }
}

impl From<String> for FileEnd {
    fn from(why: String) -> Self {
        Self::Exercise(why)
    }
}

/// A check after its texts were parsed. Each stage returns what it found, or why the check of the file ends there.
struct CheckWorker<'a> {
    job: &'a KernelJob,
    /// By file and shape.
    parsed: &'a [Option<Vec<ParsedText>>],
    /// The numbers of a file at the last, large shape.
    real_inputs: Option<(usize, Vec<Vec<u32>>)>,
    news: CheckNews,
}

impl<'a> CheckWorker<'a> {
    fn run(&mut self, device: &str, kept: &CheckDevice) {
        if self.parsed.iter().all(Option::is_none) {
            return;
        }
        let opened = match self.open(device, kept) {
            Ok(opened) => opened,
            Err(why) => {
                self.news.state.report.failed = Some(why);
                return;
            }
        };
        let report = &mut self.news.state.report;
        report.device = opened.as_ref().map(|gpu| gpu.info.clone());
        let matrix_cores = self.job.files.iter().any(|file| file.spec.matrix_cores);
        let gpu = opened.as_ref();
        let gpu = gpu.filter(|gpu| gpu.matrix_cores || !matrix_cores);
        report.host_only = match (&opened, gpu) {
            (_, Some(_)) => None,
            (None, None) => Some(no_adapter()),
            (Some(gpu), None) => Some(format!(
                "{} does not multiply 16×16 matrices of f16 with sums in f32; a GPU with matrix cores does",
                gpu.info.name
            )),
        };
        for (index, texts) in self.parsed.iter().enumerate() {
            let Some(texts) = texts else { continue };
            let Err(end) = self.file(index, texts, gpu) else {
                continue;
            };
            let fault = match end {
                FileEnd::Fault(fault) => *fault,
                FileEnd::Device(trouble) => {
                    let is_lost = matches!(trouble, GpuError::Lost(_));
                    self.news.state.report.restart |= is_lost;
                    fault(&trouble, &self.news.state)
                }
                FileEnd::Exercise(why) => {
                    self.news.state.report.failed = Some(why);
                    break;
                }
            };
            self.news.result(index).fault = Some(fault);
            if self.news.state.report.restart {
                // Closing a device would wait for its running work.
                std::mem::forget(opened);
                return;
            }
        }
        kept.keep(opened.map(|gpu| (device.to_owned(), gpu)));
    }

    fn open(&mut self, device: &str, kept: &CheckDevice) -> Result<Option<Gpu>, String> {
        self.news.at(None, "", false);
        match kept.take() {
            Some((select, gpu)) if select == device => Ok(Some(gpu)),
            _ => Gpu::open(device),
        }
    }

    /// Takes a file from its parsed texts to its time.
    fn file(
        &mut self,
        index: usize,
        texts: &[ParsedText],
        gpu: Option<&Gpu>,
    ) -> Result<(), FileEnd> {
        let interpreted = self.interpret(index, texts, gpu.is_none())?;
        match gpu {
            Some(gpu) => self.on_device(gpu, index, texts, interpreted),
            None => Ok(()),
        }
    }

    /// Runs every shape of a file except the last, real one on the host. With `alone` no device will run it, so the host runs more steps.
    fn interpret(
        &mut self,
        index: usize,
        texts: &[ParsedText],
        alone: bool,
    ) -> Result<Interpreted, FileEnd> {
        let job = self.job;
        let small = job.shapes.len().saturating_sub(1).max(1);
        let most = if alone { STEPS_ALONE } else { STEPS };
        let (mut access, mut interpreted) = (Vec::new(), Interpreted::default());
        // Remaining steps for all kinds of values except the first, for all sizes of the text, and for single workgroups at large sizes.
        let (mut of_kinds, mut of_text, mut of_groups) = (STEPS_DRAWN, STEPS_DRAWN, STEPS_DRAWN);
        let mut ends = false;
        let mut remarks = Remarks::default();
        for (number, shape) in job.shapes.iter().enumerate().take(small) {
            self.news.at(Some(index), &shape.label, false);
            let mut trial = self.trial(index, number, &texts[number]);
            for (nth, values) in self.kinds(index, shape).into_iter().enumerate() {
                trial.values = values;
                let inputs = trial.inputs()?;
                let of_shape = match shape.is_drawn() {
                    true if shape.is_of_text() => STEPS,
                    true => STEPS_DRAWN,
                    false => most,
                };
                let mut own = of_shape;
                let left = match nth {
                    _ if shape.is_of_text() => &mut of_text,
                    0 => &mut own,
                    _ => &mut of_kinds,
                };
                let launch = HostLaunch {
                    steps: of_shape.min(*left),
                    ends,
                    counted: shape.counted && nth == 0,
                    ..HostLaunch::default()
                };
                let run = trial.interpret(&inputs, 0, launch)?;
                *left = left.saturating_sub(run.report.steps);
                if run.report.rounds > CPU_ROUNDS {
                    interpreted.long.push(number);
                }
                if !run.report.complete {
                    // Some workgroups are still run there.
                    if nth == 0 && shape.is_drawn() {
                        let mut own = STEPS_DRAWN;
                        let left = match shape.is_of_text() {
                            true => &mut of_groups,
                            false => &mut own,
                        };
                        let steps = STEPS.min(*left);
                        let run = self.some_workgroups(index, &trial, &inputs, steps)?;
                        *left = left.saturating_sub(run.report.steps);
                    }
                    break;
                }
                let expected = trial.expected(&inputs, false)?;
                let matched = trial.judge_on_host(&run, &inputs, &expected, launch)?;
                remarks.note(&trial, &run.report);
                trial.take_liberties(&run, &inputs, &expected, launch, &mut remarks)?;
                self.news.matched(index, matched);
                if !shape.is_drawn() && trial.is_same_on_device()? {
                    interpreted.expected.insert(number, expected);
                }
                ends = true;
                if launch.counted {
                    trial.count(&run, &mut access);
                    if trial.file.spec.matrix_cores {
                        let launch = HostLaunch {
                            without_products: true,
                            ..launch
                        };
                        let without = trial.interpret(&inputs, 0, launch)?;
                        let made = differ(&run.found, &without.found);
                        if let Some(facts) = &mut self.news.result(index).facts {
                            facts.matrix_cores = made;
                        }
                    }
                }
            }
        }
        if !ends {
            return Err(Box::new(too_long(&self.news.state.shape)).into());
        }
        self.count_real(index, texts, &mut access)?;
        let result = self.news.result(index);
        result.access = access;
        result.remarks = remarks.list(&job.files[index].text);
        Ok(interpreted)
    }

    /// Counts the accesses of some workgroups at the last, real shape.
    fn count_real(
        &mut self,
        index: usize,
        texts: &[ParsedText],
        access: &mut Vec<KernelAccess>,
    ) -> Result<(), FileEnd> {
        let last = self.job.shapes.len().saturating_sub(1);
        let trial = self.trial(index, last, &texts[last]);
        self.news.at(Some(index), &trial.shape.label, false);
        let inputs = trial.inputs()?;
        let run = self.some_workgroups(index, &trial, &inputs, STEPS_REAL)?;
        trial.count(&run, access);
        self.real_inputs = Some((index, inputs));
        Ok(())
    }

    /// Runs some workgroups of a launch on the host and counts their accesses: one chosen by the seed, the last and the first of all,
    /// and along each axis the last and the first beside the chosen one.
    fn some_workgroups(
        &self,
        index: usize,
        trial: &KernelTrial<'_>,
        inputs: &[Vec<u32>],
        steps: u64,
    ) -> Result<HostRun, Box<KernelFault>> {
        let mut rng = Rng::named(self.job.seed, "workgroup", index as u64);
        let last = trial.text.grid.map(|groups| groups.saturating_sub(1));
        let drawn = last.map(|last| rng.below(last as usize + 1) as u32);
        let beside = (0..3).flat_map(|axis| {
            [last[axis], 0].map(|end| {
                let mut group = drawn;
                group[axis] = end;
                group
            })
        });
        let mut groups: Vec<[u32; 3]> = Vec::new();
        for group in [drawn, last, [0; 3]].into_iter().chain(beside) {
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
        let launch = HostLaunch {
            steps,
            ends: true,
            only: &groups,
            counted: true,
            ..HostLaunch::default()
        };
        trial.interpret(inputs, 0, launch)
    }

    /// The kinds of values that a shape is tried with; `None` stands for the exercise's own.
    fn kinds(&self, index: usize, shape: &KernelShape) -> Vec<Option<KernelFill>> {
        let most = match self.flops(index, shape) <= EVERY_KIND {
            true => shape.values.len(),
            false => 1,
        };
        match shape.is_drawn() {
            true => shape.values.iter().copied().take(most).map(Some).collect(),
            false => vec![None],
        }
    }

    /// Runs every shape on the device; a CPU driver skips those at which loops are long, a GPU times the last one. Drawn shapes that the
    /// host has judged are not run again.
    fn on_device(
        &mut self,
        gpu: &Gpu,
        index: usize,
        texts: &[ParsedText],
        mut interpreted: Interpreted,
    ) -> Result<(), FileEnd> {
        let shapes = &self.job.shapes;
        let last = shapes.len().saturating_sub(1);
        let timed = self.job.timed && !gpu.on_cpu;
        for (number, shape) in shapes.iter().enumerate() {
            let runs = self.job.timed && (!gpu.on_cpu || self.flops(index, shape) <= CPU_FLOPS);
            if number == last && number > 0 && !runs {
                self.news.result(index).skipped = Some(shape.label.clone());
                break;
            }
            let known = &self.news.result(index).shapes;
            let judged = shape.is_drawn() && known.iter().any(|it| it.shape == shape.label);
            if judged || gpu.on_cpu && interpreted.long.contains(&number) {
                continue;
            }
            let timed = timed && number == last && number > 0;
            let known = interpreted.expected.remove(&number);
            self.shape(gpu, (index, number), &texts[number], known, timed)?;
        }
        self.news.result(index).time_reason = match last {
            0 => Some(KernelUntimed::OneShape),
            _ if gpu.on_cpu => Some(KernelUntimed::CpuDriver),
            _ if !timed => Some(KernelUntimed::NotAsked),
            _ => None,
        };
        Ok(())
    }

    /// Runs one shape, whose outputs may be known, and times it if `timed`.
    fn shape(
        &mut self,
        gpu: &Gpu,
        (index, number): (usize, usize),
        text: &ParsedText,
        known: Option<ExpectedOutputs>,
        timed: bool,
    ) -> Result<(), FileEnd> {
        let (job, file) = (self.job, &self.job.files[index]);
        let shape = &job.shapes[number];
        let trial = self.trial(index, number, text);
        let flops = self.flops(index, shape);
        self.news.at(Some(index), &shape.label, false);
        let is_real = number + 1 == job.shapes.len();
        let drawn = self.real_inputs.take_if(|(of, _)| is_real && *of == index);
        let inputs = match drawn {
            Some((_, inputs)) => inputs,
            None => trial.inputs()?,
        };
        self.news.compiles(index, &shape.label);
        let kernel = gpu.compile(&text.filled.text, text.grid)?;
        trial.prepare(gpu, &kernel, &inputs)?;
        self.news.at(Some(index), &shape.label, false);
        let solution = match timed {
            true => other(gpu, &file.solution, file, shape)?,
            false => None,
        };
        let expected = match (&solution, known) {
            (_, Some(known)) => known,
            (Some(solution), None) if !job.thorough && flops > CPU_FLOPS => {
                self.news.at(Some(index), &shape.label, true);
                trial.solution(gpu, solution, &inputs)?
            }
            // The time of the plain reference is not limited.
            _ => trial.expected(&inputs, true)?,
        };
        self.news.at(Some(index), &shape.label, true);
        let matched = trial.judge(gpu, &kernel, &inputs, &expected)??;
        self.news.matched(index, matched);
        if timed {
            let starter = other(gpu, &file.starter, file, shape)?;
            let starter = starter.filter(|_| !same_text(&file.starter, &file.text));
            let solution = solution.filter(|_| !same_text(&file.solution, &file.text));
            // A round of timing launches several kernels, each with its own limit.
            self.news.at(Some(index), &shape.label, false);
            let others = [starter.as_ref(), solution.as_ref()];
            let time = timing::time(gpu, &trial, &inputs, &kernel, others)?;
            self.news.result(index).time = Some(time);
        }
        Ok(())
    }

    /// A file at a shape; a drawn shape has its first kind of values.
    fn trial<'t>(&self, index: usize, number: usize, text: &'t ParsedText) -> KernelTrial<'t>
    where
        'a: 't,
    {
        let job: &'a KernelJob = self.job;
        let (file, shape) = (&job.files[index], &job.shapes[number]);
        KernelTrial {
            file,
            shape,
            text,
            values: shape.values.first().copied(),
            seed: job.seed,
        }
    }

    fn flops(&self, index: usize, shape: &KernelShape) -> f64 {
        cost::flops(&self.job.files[index].spec, &shape.sizes)
    }
}

/// The course's own kernel at this shape; `None` when that text is not usable.
fn other(
    gpu: &Gpu,
    text: &str,
    file: &KernelFile,
    shape: &KernelShape,
) -> Result<Option<KernelPipeline>, GpuError> {
    let Ok(parsed) = ParsedText::parse(text, &file.spec, shape) else {
        return Ok(None);
    };
    gpu.compile(&parsed.filled.text, parsed.grid).map(Some)
}

/// Returns true if most elements of the buffers differ.
fn differ(one: &[Vec<u32>], other: &[Vec<u32>]) -> bool {
    let pairs = one.iter().zip(other).filter(|(one, other)| one != other);
    let (changed, all) = pairs.fold((0, 0), |(changed, all), (one, other)| {
        let differ = one.iter().zip(other).filter(|(a, b)| a != b).count();
        (changed + differ, all + one.len())
    });
    2 * changed > all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_keeps_the_largest_error_of_its_tries() {
        let (outbox, _inbox) = channel();
        let mut state = CheckState::default();
        state.report.files.push(KernelResult::default());
        let mut news = CheckNews { state, outbox };
        for (error, share) in [(1e-3, 0.1), (1e-6, 0.9), (1e-5, 0.2)] {
            news.matched(
                0,
                KernelMatch {
                    shape: "7 × 3".to_owned(),
                    error,
                    share,
                    against: "reference".to_owned(),
                },
            );
        }
        let shapes = &news.state.report.files[0].shapes;
        let found: Vec<_> = shapes.iter().map(|it| (it.error, it.share)).collect();
        assert_eq!(found, [(1e-3, 0.9)]);
    }
}
