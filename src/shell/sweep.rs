//! A config exercise measured behind the screen: the same runs and the same judgement as `perflings check c01`, in a
//! thread and with an engine of its own. Giving it up ends that engine at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Instant;

use anyhow::{Context, Result};

use crate::app::Message;
use crate::app::exercise::ExerciseNews;
use crate::app::exercise::measuring::{Measurement, Sweep};
use crate::app::source::FromEngine;
use crate::course::exercise::Configs;
use crate::course::exercise::config::Answers;
use crate::course::sweep::table;
use crate::judge::{StageReport, configs as judge};
use crate::measure::exercise::measure_exercise;
use crate::measure::plan::MeasureEvent;
use crate::measure::runner::Runner;
use protocol::Event;
use protocol::handle::EngineCommand;

/// A measurement in progress. Dropping it gives it up.
pub(super) struct SweepRun {
    exercise: String,
    inbox: Receiver<Message>,
    given_up: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl SweepRun {
    /// Begins.
    pub(super) fn begin(
        command: EngineCommand,
        exercise: &str,
        device: &str,
        configs: &Configs,
        answers: Answers,
    ) -> Result<Self> {
        let (outbox, inbox) = channel();
        let given_up = Arc::new(AtomicBool::new(false));
        let (id, device) = (exercise.to_owned(), device.to_owned());
        let (configs, stop) = (configs.clone(), given_up.clone());
        let work = move || {
            let strays = outbox.clone();
            let notify = Box::new(move |text: &str| {
                let _ = strays.send(Message::Engine(FromEngine::Stray(text.to_owned())));
            });
            let runner = Runner::in_background(command, stop, notify);
            // Where nobody listens any more, the flag says so too.
            let tell = |news| {
                let exercise = id.clone();
                let _ = outbox.send(Message::Exercise { exercise, news });
            };
            if let Some(measured) = measure(runner, &device, &configs, &answers, &tell) {
                tell(ExerciseNews::Measured(Box::new(measured)));
            }
        };
        let thread = Builder::new()
            .name("measurement".to_owned())
            .spawn(work)
            .context("Failed to begin the measurement")?;
        Ok(Self {
            exercise: exercise.to_owned(),
            inbox,
            given_up,
            thread: Some(thread),
        })
    }

    /// What is new; a measurement ends with `Measurement`.
    pub(super) fn next_message(&self) -> Option<Message> {
        match self.inbox.try_recv() {
            Ok(message) => Some(message),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                let failed = Measurement::failed("the measurement broke off; the log may say why");
                Some(Message::Exercise {
                    exercise: self.exercise.clone(),
                    news: ExerciseNews::Measured(Box::new(failed)),
                })
            }
        }
    }
}

impl Drop for SweepRun {
    fn drop(&mut self) {
        self.given_up.store(true, Ordering::Relaxed);
        // The thread looks several times a second, and ends its engine.
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Makes the runs and judges them; none when it was given up.
fn measure(
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
