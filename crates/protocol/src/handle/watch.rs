//! Watches the progress of a command, by numbers that no engine can increase for ever.

use std::time::{Duration, Instant};

use super::{EngineEnd, EngineHandle, EngineMessage, HandleState};
use crate::{Command, Event};

/// The number of steps that an engine may make besides those asked for, for warm-up and profiles.
const MORE_STEPS: u64 = 1000;
/// A command without progress is reported after this part of its time: one in 5.
const NOTICE: u32 = 5;

/// A watched command in progress.
#[derive(Debug)]
pub(super) struct ProgressWatch {
    command: Command,
    /// The time of the last progress.
    pub further: Instant,
    noticed: bool,
    /// The largest numbers so far: of a step, of compiled kernels, and of pairs.
    most: [u64; 3],
    /// The largest possible numbers of steps and of pairs.
    limits: [u64; 2],
}

impl ProgressWatch {
    pub(super) fn begin(command: Command) -> Self {
        let (steps, pairs) = match &command {
            Command::Start { run, .. } => (run.steps.unwrap_or(u64::MAX), 0),
            // The engine says how many there are at most.
            Command::Pair { pairs: 0, .. } => (u64::MAX, u64::MAX),
            Command::Pair { pairs, .. } => (u64::MAX, u64::from(*pairs)),
            _ => (0, 0),
        };
        Self {
            command,
            further: Instant::now(),
            noticed: false,
            most: [0; 3],
            limits: [steps, pairs].map(|n| n.saturating_mul(10).saturating_add(MORE_STEPS)),
        }
    }

    /// Records the progress that an event shows. Returns true if the event is the answer to the command.
    pub(super) fn is_answered(&mut self, event: &Event) -> bool {
        let (which, number) = match (&self.command, event) {
            (_, Event::Failed(_))
            | (Command::Start { .. } | Command::Pair { .. }, Event::Finished(_))
            | (Command::Probe, Event::Devices { .. })
            | (Command::Open { .. }, Event::DeviceReady { .. })
            | (Command::Calibrate { .. }, Event::Calibrated { .. }) => return true,
            (Command::CheckKernel { job, .. }, Event::KernelChecked { report }) => {
                return report.id == job.id;
            }
            // Its parts are not numbered.
            (Command::CheckKernel { job, .. }, Event::KernelChecking { progress }) => {
                (0, self.most[0] + u64::from(progress.id == job.id))
            }
            (_, Event::Step(step)) => (0, step.step + 1),
            (_, Event::Compiling { kernels, .. }) => (1, u64::from(*kernels)),
            (_, Event::Pair(pair)) => {
                if pair.limit_pairs > 0 {
                    self.limits[1] = u64::from(pair.limit_pairs).saturating_add(MORE_STEPS);
                }
                (2, u64::from(pair.n))
            }
            _ => return false,
        };
        if number > self.most[which] {
            self.most[which] = number;
            self.further = Instant::now();
        }
        false
    }

    fn is_run(&self) -> bool {
        matches!(self.command, Command::Start { .. } | Command::Pair { .. })
    }
}

impl EngineHandle {
    /// Ends the engine if its command takes too long. A command without progress is reported once before.
    pub(super) fn check_watch(&mut self) -> Option<EngineMessage> {
        if let Some(end) = self.overdue() {
            self.end(Duration::ZERO);
            return Some(EngineMessage::Over(end));
        }
        let watch = self.watch.as_mut()?;
        let limit = self.limits.task;
        let notice = limit / NOTICE;
        if watch.noticed || watch.further.elapsed() <= notice {
            return None;
        }
        watch.noticed = true;
        Some(EngineMessage::Slow {
            seconds: notice.as_secs(),
            limit_s: limit.as_secs(),
        })
    }

    /// Returns the reason to end the engine; `None` while its command may go on.
    fn overdue(&self) -> Option<EngineEnd> {
        let watch = self.watch.as_ref()?;
        let limits = &self.limits;
        let silent = match self.phase {
            HandleState::Talking { silent } => silent,
            _ => None,
        };
        let (patience, end) = if self.command.is_own() {
            (limits.patience, EngineEnd::Silent)
        } else {
            let shorter = limits.patience.min(limits.silence);
            (shorter, EngineEnd::CutOff(self.command.to_string()))
        };
        if silent.is_some_and(|since| since.elapsed() > patience) {
            return Some(end);
        }
        let [steps, _, pairs] = watch.most;
        if watch.is_run() && (steps > watch.limits[0] || pairs > watch.limits[1]) {
            return Some(EngineEnd::Endless);
        }
        let after = watch.further.elapsed();
        if after > limits.task {
            return Some(if watch.is_run() {
                EngineEnd::NoStep(after.as_secs())
            } else {
                EngineEnd::NoAnswer(limits.task.as_secs())
            });
        }
        let stuck = self.idle() > limits.device && silent.is_none();
        stuck.then(|| EngineEnd::DeviceStuck(self.idle().as_secs()))
    }
}
