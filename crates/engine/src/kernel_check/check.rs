//! One check from beginning to end, on a thread with a large stack. A file's text is parsed once for each size (`parse`), interpreted on the
//! host (`host_stage`), run on a device, and timed; each stage uses the results of the stage before. A hang, a panic or an error of the
//! driver becomes a line of the report. A watcher reports work that takes too long, and stops waiting for it.

use std::collections::BTreeMap;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;

use super::clock::WorkClock;
use super::gpu::{Gpu, GpuError, KernelPipeline, no_adapter};
use super::parse::parse;
use super::timing;
use super::trial::{ExpectedOutputs, KernelTrial};
use super::watch::{CheckLimits, CheckNews, CheckState, fault, watch};
use protocol::reference::cost;
use protocol::validate::ParsedText;
use protocol::{
    KernelFault, KernelFile, KernelJob, KernelProgress, KernelReport, KernelShape, KernelUntimed,
    same_text,
};
use wgsl_lockstep::STACK_BYTES;

/// The floating-point operations up to which a CPU driver also runs the last shape, and up to which the last shape is compared with the
/// exercise's plain loop on every device.
pub(super) const CPU_FLOPS: f64 = 1e8;

/// The device of the last check, and the value of `--device` that selected it. It stays open for the next check, because opening a device takes
/// longer than most checks.
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

/// Checks a learner's kernels on `device`: `auto`, `cpu`, `gpu`, `gpu:N` or `vulkan-cpu`. It always returns a report. `on_progress` is called
/// on the way.
pub fn check(
    job: &KernelJob,
    device: &str,
    kept: &CheckDevice,
    limits: CheckLimits,
    on_progress: impl Fn(KernelProgress),
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
    let mut job = job.clone();
    let device = device.to_owned();
    let kept = kept.clone();
    let mut news = CheckNews {
        state: state.clone(),
        outbox,
    };
    let work = move || {
        let parsed = parse(&mut job, &mut news);
        let mut worker = CheckWorker {
            job: &job,
            parsed: &parsed,
            real_inputs: None,
            news,
        };
        worker.run(&device, &kept);
        worker.news.send();
    };
    let thread = Builder::new().name("kernel check".into());
    let mut report = match thread.stack_size(STACK_BYTES).spawn(work) {
        Ok(thread) => watch(state, &inbox, thread, limits, on_progress),
        Err(error) => KernelReport {
            failed: Some(format!("the check could not be started: {error}")),
            ..state.report
        },
    };
    report.seconds = clock.wall().as_secs_f64();
    report.processor_seconds = clock.spent().processor.map(|time| time.as_secs_f64());
    report
}

/// The results of the runs on the host that the runs on a device use.
#[derive(Default)]
pub(super) struct Interpreted {
    /// The numbers of the shapes at which the kernel's loops are too long for a CPU driver.
    pub long: Vec<usize>,
    /// The right outputs at shapes of the exercise, by the number of the shape, if their bounds hold for a device too.
    pub expected: BTreeMap<usize, ExpectedOutputs>,
}

/// The reason why the check of a file ends early.
pub(super) enum FileEnd {
    /// The kernel is wrong.
    Fault(Box<KernelFault>),
    /// The device does not run the kernel.
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

/// A check after its texts were parsed. An error of a stage ends the check of the file.
pub(super) struct CheckWorker<'a> {
    pub job: &'a KernelJob,
    /// The texts of each file at all shapes; `None` for a file with an error.
    parsed: &'a [Option<Vec<ParsedText>>],
    /// The index of a file, and its inputs at the last, large shape, which are drawn once for all stages.
    pub real_inputs: Option<(usize, Vec<Vec<u32>>)>,
    pub news: CheckNews,
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
        let needs_matrix_cores = self.job.files.iter().any(|file| file.spec.matrix_cores);
        let gpu = opened
            .as_ref()
            .filter(|gpu| gpu.matrix_cores || !needs_matrix_cores);
        let report = &mut self.news.state.report;
        report.device = opened.as_ref().map(|gpu| gpu.info.clone());
        report.host_only = match (&opened, gpu) {
            (_, Some(_)) => None,
            (None, None) => Some(no_adapter()),
            (Some(gpu), None) => Some(format!(
                "{} does not multiply 16×16 matrices of f16 with sums in f32; \
                 a GPU with matrix cores does",
                gpu.info.name
            )),
        };
        for (index, texts) in self.parsed.iter().enumerate() {
            let Some(texts) = texts else { continue };
            let Err(end) = self.check_file(index, texts, gpu) else {
                continue;
            };
            let fault = match end {
                FileEnd::Fault(fault) => *fault,
                FileEnd::Device(error) => {
                    let is_lost = matches!(error, GpuError::Lost(_));
                    self.news.state.report.restart |= is_lost;
                    fault(&error, &self.news.state)
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
        self.news.report_try(None, "", false);
        match kept.take() {
            Some((select, gpu)) if select == device => Ok(Some(gpu)),
            _ => Gpu::open(device),
        }
    }

    /// Checks a file from its parsed texts to its time.
    fn check_file(
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

    /// Runs the shapes on the device. A CPU driver skips shapes at which loops are long, and a GPU times the last shape. Drawn shapes that
    /// were right on the host are not run again.
    fn on_device(
        &mut self,
        gpu: &Gpu,
        index: usize,
        texts: &[ParsedText],
        mut interpreted: Interpreted,
    ) -> Result<(), FileEnd> {
        let shapes = &self.job.shapes;
        let last = shapes.len().saturating_sub(1);
        let is_timed = self.job.timed && !gpu.on_cpu;
        for (number, shape) in shapes.iter().enumerate() {
            let is_last = number == last && number > 0;
            let runs_last =
                self.job.timed && (!gpu.on_cpu || self.flops(index, shape) <= CPU_FLOPS);
            if is_last && !runs_last {
                self.news.result(index).skipped = Some(shape.label.clone());
                break;
            }
            let matched = &self.news.result(index).shapes;
            let was_right =
                shape.is_drawn() && matched.iter().any(|other| other.shape == shape.label);
            if was_right || gpu.on_cpu && interpreted.long.contains(&number) {
                continue;
            }
            let expected = interpreted.expected.remove(&number);
            let place = (index, number);
            self.check_shape(gpu, place, &texts[number], expected, is_timed && is_last)?;
        }
        self.news.result(index).time_reason = match last {
            0 => Some(KernelUntimed::OneShape),
            _ if gpu.on_cpu => Some(KernelUntimed::CpuDriver),
            _ if !is_timed => Some(KernelUntimed::NotAsked),
            _ => None,
        };
        Ok(())
    }

    /// Runs a file at one shape on the device, judges its outputs, and times it if `timed` is true. `from_host` has the right outputs if the host
    /// has computed them.
    fn check_shape(
        &mut self,
        gpu: &Gpu,
        (index, number): (usize, usize),
        text: &ParsedText,
        from_host: Option<ExpectedOutputs>,
        timed: bool,
    ) -> Result<(), FileEnd> {
        let job = self.job;
        let file = &job.files[index];
        let shape = &job.shapes[number];
        let trial = self.trial(index, number, text);
        let flops = self.flops(index, shape);
        self.news.report_try(Some(index), &shape.label, false);
        let is_real = number + 1 == job.shapes.len();
        let drawn = self
            .real_inputs
            .take_if(|(file, _)| is_real && *file == index);
        let inputs = match drawn {
            Some((_, inputs)) => inputs,
            None => trial.inputs()?,
        };
        self.news.report_compiling(index, &shape.label);
        let kernel = gpu.compile(&text.filled.text, text.grid)?;
        trial.prepare(gpu, &kernel, &inputs)?;
        self.news.report_try(Some(index), &shape.label, false);
        let solution = if timed {
            compile_other(gpu, &file.solution, file, shape)?
        } else {
            None
        };
        let expected = match (&solution, from_host) {
            (_, Some(expected)) => expected,
            (Some(solution), None) if !job.thorough && flops > CPU_FLOPS => {
                self.news.report_try(Some(index), &shape.label, true);
                trial.solution(gpu, solution, &inputs)?
            }
            // The time of the plain loop is not limited.
            _ => trial.expected(&inputs, true)?,
        };
        self.news.report_try(Some(index), &shape.label, true);
        let matched = trial.judge(gpu, &kernel, &inputs, &expected)?;
        self.news.add_match(index, matched);
        if timed {
            let is_other = |text: &str| !same_text(text, &file.text);
            let starter = if is_other(&file.starter) {
                compile_other(gpu, &file.starter, file, shape)?
            } else {
                None
            };
            let solution = if is_other(&file.solution) {
                solution
            } else {
                None
            };
            // A round of timing launches several kernels, each with its own limit.
            self.news.report_try(Some(index), &shape.label, false);
            let others = [starter.as_ref(), solution.as_ref()];
            let time = timing::time(gpu, &trial, &inputs, &kernel, others)?;
            self.news.result(index).time = Some(time);
        }
        Ok(())
    }

    /// Returns the trial of a file at a shape. At a drawn shape it has the first kind of numbers.
    pub(super) fn trial<'t>(
        &self,
        index: usize,
        number: usize,
        text: &'t ParsedText,
    ) -> KernelTrial<'t>
    where
        'a: 't,
    {
        let job: &'a KernelJob = self.job;
        let shape = &job.shapes[number];
        KernelTrial {
            file: &job.files[index],
            shape,
            text,
            values: shape.values.first().copied(),
            seed: job.seed,
        }
    }

    /// Returns the floating-point operations of a file at a shape.
    pub(super) fn flops(&self, index: usize, shape: &KernelShape) -> f64 {
        cost::flops(&self.job.files[index].spec, &shape.sizes)
    }
}

/// Compiles a kernel of the course at this shape; `None` if its text cannot be used.
fn compile_other(
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
