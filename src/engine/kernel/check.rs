//! One check from beginning to end, on a thread of its own with a large stack: what hangs, panics or breaks the driver
//! ends as a line of the report. A watcher gives up what takes too long and reports it without waiting any more.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::Instant;

use super::card;
use super::gpu::{Gpu, Trouble};
use super::timing::{self, Runner};
use super::trial::Trial;
use super::validate::{self, Checked};
use super::watch::{At, Desk, Limits, Shared, fault, lock, watch};
use crate::protocol::{
    KernelFile, KernelJob, KernelProgress, KernelReport, KernelResult, KernelShape,
};

/// Deep expressions are walked by recursion, here and in the libraries.
const STACK: usize = 256 << 20;

/// An open device outlives a check, because opening one takes longer than most checks.
static OPEN: Mutex<Option<(String, Gpu)>> = Mutex::new(None);

/// Checks a learner's kernels on `device`: `auto`, `cpu`, `gpu`, `gpu:N` or `vulkan-cpu`. Always answers.
pub fn check(job: &KernelJob, device: &str, limits: Limits) -> KernelReport {
    check_telling(job, device, limits, |_| ())
}

/// As `check`, and tells how far it has come.
pub fn check_telling(
    job: &KernelJob,
    device: &str,
    limits: Limits,
    tell: impl Fn(KernelProgress),
) -> KernelReport {
    let began = Instant::now();
    let at = At {
        since: began,
        file: 0,
        shape: String::new(),
        running: false,
    };
    let report = KernelReport {
        id: job.id,
        exercise: job.exercise.clone(),
        ..KernelReport::default()
    };
    let desk: Shared = Arc::new(Mutex::new(Desk { report, at }));
    let (done, finished) = channel();
    let worker = Worker {
        job: job.clone(),
        device: device.to_owned(),
        limits,
        desk: desk.clone(),
    };
    let spawned = Builder::new()
        .name("kernel check".into())
        .stack_size(STACK)
        .spawn(move || {
            if catch_unwind(AssertUnwindSafe(|| worker.run())).is_err() {
                lock(&worker.desk).report.failed =
                    Some("the check panicked; the log has its text".to_owned());
            }
            let _ = done.send(());
        });
    if let Err(error) = spawned {
        lock(&desk).report.failed = Some(format!("the check could not be started: {error}"));
    } else {
        let mut last = KernelProgress::default();
        watch(&desk, &finished, limits, |desk| {
            let now = card::progress(&desk.report, job, &desk.at);
            if now != last {
                tell(now.clone());
                last = now;
            }
        });
    }
    let mut report = lock(&desk).report.clone();
    report.seconds = began.elapsed().as_secs_f64();
    card::finish(&mut report, job);
    report
}

struct Worker {
    job: KernelJob,
    device: String,
    limits: Limits,
    desk: Shared,
}

impl Worker {
    fn run(&self) {
        let texts: Vec<Option<Checked>> = self
            .job
            .files
            .iter()
            .map(|file| self.validate(file))
            .collect();
        if texts.iter().all(Option::is_none) {
            return;
        }
        let gpu = match self.open() {
            Ok(gpu) => gpu,
            Err(why) => {
                lock(&self.desk).report.failed = Some(why);
                return;
            }
        };
        lock(&self.desk).report.device = Some(gpu.info.clone());
        for (index, checked) in texts.iter().enumerate() {
            let Some(checked) = checked else { continue };
            if let Err((shape, trouble)) = self.file(&gpu, index, checked) {
                let gone = matches!(trouble, Trouble::Endless | Trouble::Lost(_));
                let mut desk = lock(&self.desk);
                desk.report.files[index].fault = Some(fault(&trouble, &shape, self.limits));
                if gone {
                    desk.report.restart = true;
                    // Closing a device waits for what runs on it.
                    std::mem::forget(gpu);
                    return;
                }
            }
        }
        *OPEN.lock().unwrap_or_else(PoisonError::into_inner) = Some((self.device.clone(), gpu));
    }

    fn validate(&self, file: &KernelFile) -> Option<Checked> {
        let checked = match &file.unreadable {
            Some(error) => Err(error.clone()),
            None => validate::validate(&file.text, &file.spec, &self.job.shapes),
        };
        let mut result = KernelResult {
            name: file.name.clone(),
            ..KernelResult::default()
        };
        let checked = match checked {
            Ok(checked) => {
                result.facts = Some(checked.facts);
                Some(checked)
            }
            Err(error) => {
                result.error = Some(error);
                None
            }
        };
        lock(&self.desk).report.files.push(result);
        checked
    }

    fn open(&self) -> Result<Gpu, String> {
        self.at(usize::MAX, "", false);
        let kept = OPEN.lock().unwrap_or_else(PoisonError::into_inner).take();
        match kept {
            Some((select, mut gpu)) if select == self.device => {
                gpu.limit = self.limits.launch;
                Ok(gpu)
            }
            _ => Gpu::open(&self.device, self.limits.launch),
        }
    }

    fn at(&self, file: usize, shape: &str, running: bool) {
        lock(&self.desk).at = At {
            since: Instant::now(),
            file,
            shape: shape.to_owned(),
            running,
        };
    }

    /// Every shape of a file, then its time.
    fn file(&self, gpu: &Gpu, index: usize, checked: &Checked) -> Result<(), (String, Trouble)> {
        let job = &self.job;
        let last = job.shapes.len().saturating_sub(1);
        let real = job.timed && !gpu.on_cpu;
        for (number, shape) in job.shapes.iter().enumerate() {
            if number == last && number > 0 && !real {
                let why = if gpu.on_cpu {
                    "on a CPU driver being right counts, and speed does not"
                } else {
                    "nobody asked for it"
                };
                lock(&self.desk).report.files[index].skipped = Some(format!(
                    "`{}` was neither run nor timed: {why}",
                    shape.label
                ));
                break;
            }
            let right = self
                .shape(gpu, index, checked, number)
                .map_err(|trouble| (shape.label.clone(), trouble))?;
            if !right {
                return Ok(());
            }
        }
        if !real || last == 0 {
            let why = if last == 0 {
                "there is one shape only, and the last of several is the one to time"
            } else if gpu.on_cpu {
                "a CPU driver's time says nothing about a GPU"
            } else {
                "nobody asked for it"
            };
            lock(&self.desk).report.files[index].time_reason = Some(why.to_owned());
        }
        Ok(())
    }

    /// One shape; at the last one, on a GPU, its time as well. Says whether it was right.
    fn shape(
        &self,
        gpu: &Gpu,
        index: usize,
        checked: &Checked,
        number: usize,
    ) -> Result<bool, Trouble> {
        let (job, file) = (&self.job, &self.job.files[index]);
        let shape = &job.shapes[number];
        let real = number + 1 == job.shapes.len() && number > 0;
        let trial = Trial {
            gpu,
            file,
            shape,
            counts: &checked.counts[number],
            grid: checked.grids[number],
            array_length: checked.facts.array_length,
            text: &file.text,
            filled: &checked.texts[number],
            real,
        };
        self.at(index, &shape.label, false);
        let inputs = trial.inputs()?;
        let kernel = Runner {
            pipeline: gpu.compile(&checked.texts[number].text, file.spec.bindings.len())?,
            grid: trial.grid,
        };
        let solution = if real {
            self.other(gpu, &file.solution, file, number)?
        } else {
            None
        };
        self.at(index, &shape.label, true);
        let expected = match &solution {
            Some(solution) if !job.thorough => Trial {
                grid: solution.grid,
                ..trial
            }
            .solution(&solution.pipeline, &inputs)?,
            _ => {
                // The plain reference may take its time.
                self.at(index, &shape.label, false);
                trial.reference(&inputs)
            }
        };
        self.at(index, &shape.label, true);
        match trial.judge(&kernel.pipeline, &inputs, &expected)? {
            Err(fault) => {
                lock(&self.desk).report.files[index].fault = Some(*fault);
                return Ok(false);
            }
            Ok(matched) => lock(&self.desk).report.files[index].shapes.push(matched),
        }
        if real {
            let starter = self
                .other(gpu, &file.starter, file, number)?
                .filter(|_| !same(&file.starter, &file.text));
            let solution = solution.filter(|_| !same(&file.solution, &file.text));
            // A round launches several kernels, and each launch has its own limit.
            self.at(index, &shape.label, false);
            let time = timing::time(
                &trial,
                &inputs,
                &kernel,
                starter.as_ref(),
                solution.as_ref(),
            )?;
            lock(&self.desk).report.files[index].time = Some(time);
        }
        Ok(true)
    }

    /// The course's own kernel at this shape; `None` when the course's text is not usable.
    fn other(
        &self,
        gpu: &Gpu,
        text: &str,
        file: &KernelFile,
        number: usize,
    ) -> Result<Option<Runner>, Trouble> {
        let shapes: &[KernelShape] = &self.job.shapes;
        let Ok(checked) = validate::validate(text, &file.spec, shapes) else {
            return Ok(None);
        };
        let pipeline = gpu.compile(&checked.texts[number].text, file.spec.bindings.len())?;
        Ok(Some(Runner {
            pipeline,
            grid: checked.grids[number],
        }))
    }
}

/// Whether two texts are one, whatever the editor does to the ends of lines.
pub fn same(one: &str, other: &str) -> bool {
    let lines = |text: &'_ str| {
        text.trim()
            .lines()
            .map(|line| line.trim_end().to_owned())
            .collect::<Vec<_>>()
    };
    lines(one) == lines(other)
}

/// A report about a check that could not be made at all.
pub fn not_made(job: &KernelJob, why: String) -> KernelReport {
    let mut report = KernelReport {
        id: job.id,
        exercise: job.exercise.clone(),
        failed: Some(why),
        ..KernelReport::default()
    };
    let unreadable = job
        .files
        .iter()
        .filter_map(|file| Some((file, file.unreadable.clone()?)));
    report.files = unreadable
        .map(|(file, error)| KernelResult {
            name: file.name.clone(),
            error: Some(error),
            ..KernelResult::default()
        })
        .collect();
    card::finish(&mut report, job);
    report
}
