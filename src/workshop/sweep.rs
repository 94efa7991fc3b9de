//! A config exercise measured behind the screen: the same runs and the same judgement as `perflings check c01`, in a
//! thread and with an engine of its own. Giving it up ends that engine at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Instant;

use anyhow::{Context, Result};

use crate::app::exercise::measuring::{Measured, Sweep};
use crate::course::exercise::Configs;
use crate::course::exercise::config::Answers;
use crate::course::sweep::table;
use crate::engine::client::EngineCommand;
use crate::judge::{Report, configs as judge};
use crate::measure::exercise::measure_exercise;
use crate::measure::plan::News as Step;
use crate::measure::runner::Runner;
use crate::protocol::Event;

/// A measurement in progress. Dropping it gives it up.
pub struct Sweeping {
    inbox: Receiver<News>,
    given_up: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    sweep: Sweep,
    over: bool,
}

/// What is to be told of it.
pub enum News {
    /// How far it has come.
    Sweep(Box<Sweep>),
    /// A line that the engine wrote beside its stream.
    Stray(String),
    Over(Box<Measured>),
}

impl Sweeping {
    /// Begins.
    pub fn begin(
        command: EngineCommand,
        device: &str,
        configs: &Configs,
        answers: Answers,
    ) -> Result<Self> {
        let (outbox, inbox) = channel();
        let given_up = Arc::new(AtomicBool::new(false));
        let (device, configs, stop) = (device.to_owned(), configs.clone(), given_up.clone());
        let work = move || {
            let began = Instant::now();
            let measured = match measure(command, &device, &configs, &answers, stop, &outbox) {
                Ok(Some(measured)) => Measured {
                    seconds: began.elapsed().as_secs_f64(),
                    ..measured
                },
                // Given up: nobody waits for an answer.
                Ok(None) => return,
                Err(error) => failed(&format!("{error:#}")),
            };
            let _ = outbox.send(News::Over(Box::new(measured)));
        };
        let thread = Builder::new()
            .name("measurement".to_owned())
            .spawn(work)
            .context("Failed to begin the measurement")?;
        Ok(Self {
            inbox,
            given_up,
            thread: Some(thread),
            sweep: Sweep::default(),
            over: false,
        })
    }

    /// What is new; a measurement ends with exactly one `Over`.
    pub fn news(&mut self) -> Option<News> {
        let mut changed = false;
        while !self.over {
            let mut measured = match self.inbox.try_recv() {
                Ok(News::Sweep(sweep)) => {
                    self.sweep = *sweep;
                    changed = true;
                    continue;
                }
                Ok(News::Stray(text)) => return Some(News::Stray(text)),
                Ok(News::Over(measured)) => measured,
                Err(TryRecvError::Disconnected) => {
                    Box::new(failed("the measurement broke off; the log may say why"))
                }
                Err(TryRecvError::Empty) => break,
            };
            self.over = true;
            // What was measured before it broke off is worth seeing.
            if measured.failed.is_some() {
                measured.table = self.sweep.table.clone();
            }
            return Some(News::Over(measured));
        }
        changed.then(|| News::Sweep(Box::new(self.sweep.clone())))
    }
}

impl Drop for Sweeping {
    fn drop(&mut self) {
        self.given_up.store(true, Ordering::Relaxed);
        // The thread looks several times a second, and ends its engine.
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn failed(why: &str) -> Measured {
    Measured {
        failed: Some(why.to_owned()),
        ..Measured::default()
    }
}

/// Makes the runs and judges them; none when it was given up.
fn measure(
    command: EngineCommand,
    device: &str,
    configs: &Configs,
    answers: &Answers,
    stop: Arc<AtomicBool>,
    outbox: &Sender<News>,
) -> Result<Option<Measured>> {
    let strays = outbox.clone();
    let notify = Box::new(move |text: &str| {
        let _ = strays.send(News::Stray(text.to_owned()));
    });
    let mut runner = Runner::in_background(command, stop, notify);
    let mut sweep = Sweep::default();
    let (mut steps, mut paired, mut name) = (0, false, String::new());
    let found = measure_exercise(&mut runner, configs, device, true, |now, runs| {
        match now.news {
            Step::Begins { number, of } => {
                (sweep.number, sweep.of) = (number, of);
                sweep.what.clone_from(&now.job.label);
                "starts".clone_into(&mut sweep.done);
            }
            Step::Event(Event::Started(started)) => {
                (steps, paired) = (0, started.paired);
                name.clone_from(&started.device.name);
                return;
            }
            // Of two runs in turns the pairs count.
            Step::Event(Event::Step(_)) if !paired => {
                steps += 1;
                sweep.done = format!("step {} of {}", configs.steps.min(steps), configs.steps);
            }
            Step::Event(Event::Pair(pair)) => {
                sweep.done = format!("{} pairs, {:.2}x so far", pair.n, pair.ratio);
            }
            Step::Event(Event::Compiling { kernels, .. }) => {
                sweep.done = format!("{kernels} kernels compiled");
            }
            Step::Event(_) => return,
            Step::Measured(_) | Step::Failed(_) => sweep.table = table(configs, runs),
        }
        // Where nobody listens any more, the flag says so too.
        let _ = outbox.send(News::Sweep(Box::new(sweep.clone())));
    })?;
    Ok(found.map(|runs| {
        let report = Report {
            stage: String::new(),
            lines: judge::lines(configs, answers, &runs),
        };
        Measured {
            passed: report.passed(),
            lines: report.lines,
            table: table(configs, &runs),
            device: name,
            seconds: 0.0,
            failed: None,
        }
    }))
}
