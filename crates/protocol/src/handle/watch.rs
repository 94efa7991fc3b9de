//! Watches the progress of a command by numbers that no engine can increase for ever.

use std::time::{Duration, Instant};

use super::{EngineEnd, EngineHandle, EngineMessage, HandleState};
use crate::{Command, Event};

/// The number of steps that an engine may make besides those asked for, for warm-up and profiles.
const MORE_STEPS: u64 = 1000;
/// The divisor of a command's time limit that gives the time after which a lack of progress is reported.
const NOTICE: u32 = 5;

/// A watched command in progress.
#[derive(Debug)]
pub(super) struct ProgressWatch {
    command: Command,
    pub last_progress: Instant,
    /// True once a command without progress was reported.
    reported: bool,
    /// The largest number so far of steps, or of parts of a kernel check.
    steps: u64,
    /// The largest number so far of compiled kernels.
    kernels: u64,
    /// The largest number so far of pairs.
    pairs: u64,
    most_steps: u64,
    most_pairs: u64,
}

impl ProgressWatch {
    pub(super) fn begin(command: Command) -> Self {
        let (steps, pairs) = match &command {
            Command::Start { run, .. } => (run.steps.unwrap_or(u64::MAX), 0),
            // The engine decides on the number of pairs, and reports its limit.
            Command::Pair { pairs: 0, .. } => (u64::MAX, u64::MAX),
            Command::Pair { pairs, .. } => (u64::MAX, u64::from(*pairs)),
            _ => (0, 0),
        };
        let with_margin = |n: u64| n.saturating_mul(10).saturating_add(MORE_STEPS);
        Self {
            command,
            last_progress: Instant::now(),
            reported: false,
            steps: 0,
            kernels: 0,
            pairs: 0,
            most_steps: with_margin(steps),
            most_pairs: with_margin(pairs),
        }
    }

    /// Takes the progress from an event. Returns true if the event is the answer to the command.
    pub(super) fn on_event(&mut self, event: &Event) -> bool {
        let (largest, number) = match (&self.command, event) {
            (_, Event::Failed(_))
            | (Command::Start { .. } | Command::Pair { .. }, Event::Finished(_))
            | (Command::Probe, Event::Devices { .. })
            | (Command::Open { .. }, Event::DeviceReady { .. })
            | (Command::Calibrate { .. }, Event::Calibrated { .. }) => return true,
            (Command::CheckKernel { job, .. }, Event::KernelChecked { report }) => {
                return report.id == job.id;
            }
            // The parts of a check have no numbers, so the watch counts them.
            (Command::CheckKernel { job, .. }, Event::KernelChecking { progress }) => {
                let parts = self.steps + u64::from(progress.id == job.id);
                (&mut self.steps, parts)
            }
            (_, Event::Step(step)) => (&mut self.steps, step.step + 1),
            (_, Event::Compiling { kernels, .. }) => (&mut self.kernels, u64::from(*kernels)),
            (_, Event::Pair(pair)) => {
                if pair.limit_pairs > 0 {
                    self.most_pairs = u64::from(pair.limit_pairs).saturating_add(MORE_STEPS);
                }
                (&mut self.pairs, u64::from(pair.n))
            }
            _ => return false,
        };
        if number > *largest {
            *largest = number;
            self.last_progress = Instant::now();
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
        if watch.reported || watch.last_progress.elapsed() <= notice {
            return None;
        }
        watch.reported = true;
        Some(EngineMessage::Slow {
            seconds: notice.as_secs(),
            limit_s: limit.as_secs(),
        })
    }

    /// Returns the reason to end the engine; `None` while its command may go on.
    fn overdue(&self) -> Option<EngineEnd> {
        let watch = self.watch.as_ref()?;
        let limits = &self.limits;
        let silent = match self.state {
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
        if watch.is_run() && (watch.steps > watch.most_steps || watch.pairs > watch.most_pairs) {
            return Some(EngineEnd::Endless);
        }
        let waited = watch.last_progress.elapsed();
        if waited > limits.task {
            return Some(if watch.is_run() {
                EngineEnd::NoStep(waited.as_secs())
            } else {
                EngineEnd::NoAnswer(limits.task.as_secs())
            });
        }
        let stuck = self.idle() > limits.device && silent.is_none();
        stuck.then(|| EngineEnd::DeviceStuck(self.idle().as_secs()))
    }
}
