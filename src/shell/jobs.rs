//! Begins the jobs behind the screen, each in a thread and with an engine of its own. When a job is cancelled, its engine ends at once.

use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::Instant;

use crate::app::Message;
use crate::app::exercise::ExerciseNews;
use crate::app::exercise::measuring::{Measurement, Sweep};
use crate::app::source::FromEngine;
use crate::course::exercise::Configs;
use crate::course::exercise::config::Answers;
use crate::course::sweep::table;
use crate::judge::{StageReport, configs as judge, kernel};
use crate::measure::background_job::BackgroundJob;
use crate::measure::exercise::measure_exercise;
use crate::measure::kernel_checker::Checker;
use crate::measure::launched_kernels;
use crate::measure::plan::MeasureEvent;
use crate::measure::runner::Runner;
use protocol::config::RunConfig;
use protocol::handle::EngineCommand;
use protocol::story::StreamStory;
use protocol::{Event, KernelJob, KernelReport, Slot};

/// Begins to measure a configuration exercise, with the runs and the judgement of `perflings check c01`. The last message has a
/// `Measurement`.
///
/// # Errors
/// Fails when no thread can be started.
pub(super) fn measure(
    command: EngineCommand,
    exercise: &str,
    device: &str,
    configs: &Configs,
    answers: Answers,
) -> io::Result<BackgroundJob<Message>> {
    let id = exercise.to_owned();
    let device = device.to_owned();
    let configs = configs.clone();
    let failed = Measurement::failed("the measurement broke off; the log may say why");
    let broke_off = news(&id, ExerciseNews::Measured(Box::new(failed)));
    let work = move |stop, outbox: Sender<Message>| {
        let strays = outbox.clone();
        let notify = Box::new(move |text: &str| {
            let _ = strays.send(Message::Engine(FromEngine::Stray(text.to_owned())));
        });
        let runner = Runner::in_background(command, stop, notify);
        // If the receiver is gone, the stop flag is set as well.
        let report = |update| drop(outbox.send(news(&id, update)));
        if let Some(measured) = run_sweep(runner, &device, &configs, &answers, &report) {
            report(ExerciseNews::Measured(Box::new(measured)));
        }
    };
    let thread = Builder::new().name("measurement".to_owned());
    BackgroundJob::begin(thread, work, broke_off)
}

/// Begins to check the kernels of an exercise. The last message has a verdict. The process that checks is kept for the next check.
///
/// # Errors
/// Fails when no thread can be started.
pub(super) fn check(
    checker: Arc<Mutex<Checker>>,
    device: String,
    job: KernelJob,
) -> io::Result<BackgroundJob<Message>> {
    let checked = |job: &KernelJob, report: KernelReport| {
        let verdict = Box::new(kernel::verdict(job, report));
        news(&job.exercise, ExerciseNews::Checked(verdict))
    };
    let failed = job.failed("the check broke off; the log may say why".to_owned());
    let broke_off = checked(&job, failed);
    let work = move |stop: Arc<AtomicBool>, outbox: Sender<Message>| {
        let mut locked = checker.lock().unwrap_or_else(PoisonError::into_inner);
        let report = locked.check_with_progress(&device, &job, &stop, |progress| {
            let checking = Box::new(kernel::checking(&job, progress));
            let _ = outbox.send(news(&job.exercise, ExerciseNews::Progress(checking)));
        });
        let _ = outbox.send(checked(&job, report));
    };
    let thread = Builder::new().name("kernel-check".to_owned());
    BackgroundJob::begin(thread, work, broke_off)
}

fn news(exercise: &str, news: ExerciseNews) -> Message {
    Message::Exercise {
        exercise: exercise.to_owned(),
        news,
    }
}

/// Begins to read the texts of the kernels that a configuration launches. `command` starts an engine that sends texts.
///
/// # Errors
/// Fails when no thread can be started.
pub(super) fn read_kernels(
    command: EngineCommand,
    device: String,
    config: Box<RunConfig>,
) -> io::Result<BackgroundJob<Message>> {
    let read_message = |device: &str, config: &RunConfig, texts| Message::KernelsRead {
        device: device.to_owned(),
        config: Box::new(config.clone()),
        texts,
    };
    let why = "reading the kernels broke off; the log may say why";
    let broke_off = read_message(&device, &config, Err(why.to_owned()));
    let work = move |stop, outbox: Sender<Message>| {
        let mut runner = Runner::in_background(command, stop, Box::new(|_: &str| {}));
        let texts = launched_kernels::read_kernels(&mut runner, &device, &config);
        // The engine ends before the result is sent, because the receiver of the result waits for this thread.
        drop(runner);
        // If the reading was cancelled, the receiver is gone.
        let _ = outbox.send(read_message(
            &device,
            &config,
            texts.map_err(|error| format!("{error:#}")),
        ));
    };
    BackgroundJob::begin(Builder::new().name("kernels".to_owned()), work, broke_off)
}

/// Makes the runs of an exercise and judges them. `report` passes the progress to the screen. `None` if the measurement was cancelled.
fn run_sweep(
    mut runner: Runner,
    device: &str,
    configs: &Configs,
    answers: &Answers,
    report: &dyn Fn(ExerciseNews),
) -> Option<Measurement> {
    let began = Instant::now();
    let mut sweep = Sweep::default();
    let mut story = StreamStory::default();
    let mut device_name = String::new();
    let measured = measure_exercise(&mut runner, configs, device, true, |progress, runs| {
        match progress.event {
            MeasureEvent::Begins { number, of } => {
                sweep.number = number;
                sweep.of = of;
                story = StreamStory::default();
                sweep.what.clone_from(&progress.job.label);
                "starts".clone_into(&mut sweep.done);
            }
            MeasureEvent::Line(line, _) => {
                story.on_event(&line.event, 0);
                let run = story.slot(Slot::A);
                if let Some(described) = &run.description.device {
                    device_name.clone_from(&described.name);
                }
                sweep.done = match &line.event {
                    // The progress of two runs in turns is counted in pairs.
                    Event::Step(_) if !run.of_pairs => {
                        let steps = run.steps().min(configs.steps);
                        format!("step {steps} of {}", configs.steps)
                    }
                    Event::Pair(pair) if pair.n > 0 => {
                        format!("{} pairs, {:.2}x so far", pair.n, pair.ratio)
                    }
                    Event::Compiling { kernels, .. } => format!("{kernels} kernels compiled"),
                    _ => return,
                };
            }
            MeasureEvent::Measured(_) | MeasureEvent::Failed(_) => {
                sweep.table = table(configs, runs)
            }
        }
        report(ExerciseNews::Measuring(Box::new(sweep.clone())));
    });
    let runs = match measured {
        Ok(runs) => runs?,
        // The figures from before the failure are still shown.
        Err(error) => {
            return Some(Measurement {
                table: sweep.table,
                ..Measurement::failed(&format!("{error:#}"))
            });
        }
    };
    let judged = StageReport {
        stage: String::new(),
        lines: judge::lines(configs, answers, &runs),
    };
    Some(Measurement {
        passed: judged.passed(),
        lines: judged.lines,
        table: table(configs, &runs),
        device: device_name,
        seconds: began.elapsed().as_secs_f64(),
        failed: None,
    })
}
