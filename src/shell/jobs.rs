//! What runs behind the screen, each in a thread and with an engine of its own. Giving it up ends that engine at once.

use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::Result;

use crate::app::Message;
use crate::app::exercise::ExerciseNews;
use crate::app::exercise::measuring::{Measurement, Sweep};
use crate::app::source::FromEngine;
use crate::course::exercise::Configs;
use crate::course::exercise::config::Answers;
use crate::course::sweep::table;
use crate::judge::{StageReport, configs as judge, kernel};
use crate::measure::exercise::measure_exercise;
use crate::measure::job::Job;
use crate::measure::kernel_checker::Checker;
use crate::measure::launched_kernels;
use crate::measure::plan::MeasureEvent;
use crate::measure::runner::Runner;
use protocol::config::RunConfig;
use protocol::handle::EngineCommand;
use protocol::{Event, KernelJob};

/// Begins to measure a config exercise: the same runs and the same judgement as `perflings check c01`. It ends with a `Measurement`.
///
/// # Errors
/// When no thread can be started.
pub(super) fn measure(
    command: EngineCommand,
    exercise: &str,
    device: &str,
    configs: &Configs,
    answers: Answers,
) -> Result<Job<Message>> {
    let (device, configs) = (device.to_owned(), configs.clone());
    let work = move |stop, outbox: &dyn Fn(ExerciseNews), strays: Sender<Message>| {
        let notify = Box::new(move |text: &str| {
            let _ = strays.send(Message::Engine(FromEngine::Stray(text.to_owned())));
        });
        let runner = Runner::in_background(command, stop, notify);
        if let Some(measured) = sweep(runner, &device, &configs, &answers, outbox) {
            outbox(ExerciseNews::Measured(Box::new(measured)));
        }
    };
    let failed = || Measurement::failed("the measurement broke off; the log may say why");
    begin("measurement", exercise, work, move || {
        ExerciseNews::Measured(Box::new(failed()))
    })
}

/// Begins to check the kernels of an exercise. It ends with a verdict. The process that checks is kept for the next check.
///
/// # Errors
/// When no thread can be started.
pub(super) fn check(
    checker: &Arc<Mutex<Checker>>,
    device: &str,
    job: &KernelJob,
) -> Result<Job<Message>> {
    let (checker, device, on) = (Arc::clone(checker), device.to_owned(), job.clone());
    let work = move |stop: Arc<AtomicBool>, tell: &dyn Fn(ExerciseNews), _| {
        let mut checker = checker.lock().unwrap_or_else(PoisonError::into_inner);
        let report = checker.check_with_progress(&device, &on, &stop, |progress| {
            tell(ExerciseNews::Progress(Box::new(kernel::checking(
                &on, progress,
            ))));
        });
        tell(ExerciseNews::Checked(Box::new(kernel::verdict(
            &on, report,
        ))));
    };
    let job = job.clone();
    begin("kernel-check", &job.exercise.clone(), work, move || {
        let report = job.failed("the check broke off; the log may say why".to_owned());
        ExerciseNews::Checked(Box::new(kernel::verdict(&job, report)))
    })
}

/// Begins a job that has news of an exercise.
fn begin(
    name: &str,
    exercise: &str,
    work: impl FnOnce(Arc<AtomicBool>, &dyn Fn(ExerciseNews), Sender<Message>) + Send + 'static,
    broke_off: impl Fn() -> ExerciseNews + 'static,
) -> Result<Job<Message>> {
    let exercise = exercise.to_owned();
    let news_of = move |news| Message::Exercise {
        exercise: exercise.clone(),
        news,
    };
    let of_end = news_of.clone();
    let work = move |stop, outbox: Sender<Message>| {
        // Where nobody listens any more, the flag says so too.
        let tell = |news| drop(outbox.send(news_of(news)));
        work(stop, &tell, outbox.clone());
    };
    Job::begin(name, work, move || of_end(broke_off()))
}

/// Begins to read the texts of the kernels that a configuration launches. `command` starts an engine that sends texts.
///
/// # Errors
/// When no thread can be started.
pub(super) fn read_kernels(
    command: EngineCommand,
    device: String,
    config: Box<RunConfig>,
) -> Result<Job<Message>> {
    let (on, of) = (device.clone(), config.clone());
    let read = move |texts| Message::KernelsRead {
        device: device.clone(),
        config: config.clone(),
        texts,
    };
    let broke_off = read.clone();
    let work = move |stop, outbox: Sender<Message>| {
        let mut runner = Runner::in_background(command, stop, Box::new(|_: &str| {}));
        let texts = launched_kernels::read_kernels(&mut runner, &on, &of);
        // The engine ends first: whoever hears the result waits for this thread.
        drop(runner);
        // Nobody listens any more where the reading was given up.
        let _ = outbox.send(read(texts.map_err(|error| format!("{error:#}"))));
    };
    Job::begin("kernels", work, move || {
        broke_off(Err(
            "reading the kernels broke off; the log may say why".to_owned()
        ))
    })
}

/// Makes the runs and judges them; none when it was given up.
fn sweep(
    mut runner: Runner,
    device: &str,
    configs: &Configs,
    answers: &Answers,
    tell: &dyn Fn(ExerciseNews),
) -> Option<Measurement> {
    let began = Instant::now();
    let mut sweep = Sweep::default();
    let (mut steps, mut paired, mut name) = (0, false, String::new());
    let found = measure_exercise(&mut runner, configs, device, true, |now, runs| {
        match now.news {
            MeasureEvent::Begins { number, of } => {
                (sweep.number, sweep.of) = (number, of);
                sweep.what.clone_from(&now.job.label);
                "starts".clone_into(&mut sweep.done);
            }
            MeasureEvent::Line(line, _) => match &line.event {
                Event::Started(started) => {
                    (steps, paired) = (0, started.paired);
                    name.clone_from(&started.device.name);
                    return;
                }
                // Of two runs in turns the pairs count.
                Event::Step(_) if !paired => {
                    steps += 1;
                    sweep.done = format!("step {} of {}", configs.steps.min(steps), configs.steps);
                }
                Event::Pair(pair) if pair.n > 0 => {
                    sweep.done = format!("{} pairs, {:.2}x so far", pair.n, pair.ratio);
                }
                Event::Compiling { kernels, .. } => {
                    sweep.done = format!("{kernels} kernels compiled");
                }
                _ => return,
            },
            MeasureEvent::Measured(_) | MeasureEvent::Failed(_) => {
                sweep.table = table(configs, runs)
            }
        }
        tell(ExerciseNews::Measuring(Box::new(sweep.clone())));
    });
    let runs = match found {
        Ok(runs) => runs?,
        // What was measured before it broke off is worth seeing.
        Err(error) => {
            return Some(Measurement {
                table: sweep.table,
                ..Measurement::failed(&format!("{error:#}"))
            });
        }
    };
    let report = StageReport {
        stage: String::new(),
        lines: judge::lines(configs, answers, &runs),
    };
    Some(Measurement {
        passed: report.passed(),
        lines: report.lines,
        table: table(configs, &runs),
        device: name,
        seconds: began.elapsed().as_secs_f64(),
        failed: None,
    })
}
