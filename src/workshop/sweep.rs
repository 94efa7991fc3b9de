//! A config exercise measured behind the screen: the same runs and the same judgement as `perflings check c01`, in a
//! thread and with an engine of its own. Giving it up ends that engine at once.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Instant;

use anyhow::{Context, Result};

use crate::app::exercise::measuring::{Measured, Sweep};
use crate::cli::check::judge;
use crate::course::check::Report;
use crate::course::exercise::Configs;
use crate::course::exercise::config::Answers;
use crate::course::sweep::table;
use crate::engine::client::EngineCommand;
use crate::measure::bench::Bench;
use crate::measure::sweep::{Told, measure};
use crate::protocol::Event;

/// A measurement in progress. Dropping it gives it up.
pub struct Sweeping {
    inbox: Receiver<Said>,
    given_up: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    sweep: Sweep,
    over: bool,
}

/// What comes from the thread.
enum Said {
    Sweep(Box<dyn FnOnce(&mut Sweep) + Send>),
    Stray(String),
    Over(Box<Measured>),
}

/// What is to be told of it.
pub enum News {
    Sweep(Box<Sweep>),
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
        let work = Work {
            command,
            device: device.to_owned(),
            configs: configs.clone(),
            answers,
            given_up: Arc::clone(&given_up),
            outbox,
        };
        let thread = Builder::new()
            .name("measurement".to_owned())
            .spawn(move || work.run())
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
            match self.inbox.try_recv() {
                Ok(Said::Sweep(change)) => {
                    change(&mut self.sweep);
                    changed = true;
                }
                Ok(Said::Stray(text)) => return Some(News::Stray(text)),
                Ok(Said::Over(mut found)) => {
                    self.over = true;
                    // What was measured before it broke off is worth seeing.
                    if found.failed.is_some() {
                        found.table = self.sweep.table.clone();
                    }
                    return Some(News::Over(found));
                }
                Err(TryRecvError::Disconnected) => {
                    self.over = true;
                    let why = "the measurement broke off; the log may say why";
                    return Some(News::Over(Box::new(Measured {
                        table: self.sweep.table.clone(),
                        failed: Some(why.to_owned()),
                        ..Measured::default()
                    })));
                }
                Err(TryRecvError::Empty) => break,
            }
        }
        changed.then(|| News::Sweep(Box::new(self.sweep.clone())))
    }
}

impl Drop for Sweeping {
    fn drop(&mut self) {
        self.given_up.store(true, Ordering::Relaxed);
        // It looks several times a second, and ends its engine.
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Work {
    command: EngineCommand,
    device: String,
    configs: Configs,
    answers: Answers,
    given_up: Arc<AtomicBool>,
    outbox: Sender<Said>,
}

/// Nobody listens any more where this fails; the flag says so too.
fn say(outbox: &Sender<Said>, change: impl FnOnce(&mut Sweep) + Send + 'static) {
    let _ = outbox.send(Said::Sweep(Box::new(change)));
}

impl Work {
    fn run(self) {
        let began = Instant::now();
        let measured = match self.measure() {
            Ok(Some(mut measured)) => {
                measured.seconds = began.elapsed().as_secs_f64();
                measured
            }
            // Given up: nobody waits for a word.
            Ok(None) => return,
            Err(error) => Measured {
                failed: Some(format!("{error:#}")),
                ..Measured::default()
            },
        };
        let _ = self.outbox.send(Said::Over(Box::new(measured)));
    }

    fn measure(&self) -> Result<Option<Measured>> {
        let (strays, events) = (self.outbox.clone(), self.outbox.clone());
        let (mut steps, mut in_turns) = (0, false);
        let device = Rc::new(RefCell::new(String::new()));
        let (wanted, named) = (self.configs.steps, Rc::clone(&device));
        let heard = move |event: &Event| match event {
            Event::Started(started) => {
                (steps, in_turns) = (0, started.paired);
                named.borrow_mut().clone_from(&started.device.name);
            }
            // Of two runs in turns the pairs count.
            Event::Step(_) if in_turns => {}
            Event::Step(_) => {
                steps += 1;
                let done = format!("step {} of {wanted}", wanted.min(steps));
                say(&events, |sweep| sweep.done = done);
            }
            Event::Pair(pair) => {
                let done = format!("{} pairs, {:.2}x so far", pair.n, pair.ratio);
                say(&events, |sweep| sweep.done = done);
            }
            Event::Compiling { kernels, .. } => {
                let done = format!("{kernels} kernels compiled");
                say(&events, |sweep| sweep.done = done);
            }
            _ => {}
        };
        let mut bench = Bench::behind(
            self.command.clone(),
            &self.device,
            Arc::clone(&self.given_up),
            Box::new(move |text| {
                let _ = strays.send(Said::Stray(text.to_owned()));
            }),
            Box::new(heard),
        )?;
        let found = measure(&mut bench, &self.configs, true, &mut |told| match told {
            Told::Begins { number, of, what } => {
                let what = what.to_owned();
                say(&self.outbox, move |sweep| {
                    (sweep.number, sweep.of, sweep.what) = (number, of, what);
                    "starts".clone_into(&mut sweep.done);
                });
            }
            Told::Found(found) => {
                let table = table(&self.configs, found);
                say(&self.outbox, |sweep| sweep.table = table);
            }
        })?;
        Ok(found.map(|found| {
            let lines = judge::lines(&self.configs, &self.answers, &found);
            let report = Report {
                stage: String::new(),
                lines,
            };
            Measured {
                passed: report.passed(),
                lines: report.lines,
                table: table(&self.configs, &found),
                device: device.borrow().clone(),
                seconds: 0.0,
                failed: None,
            }
        }))
    }
}
