//! Whether a command that an engine was given comes further, by what no engine can repeat for ever.

use std::time::{Duration, Instant};

use super::{EngineEnd, EngineHandle, EngineMessage, HandleState};
use crate::{Command, Event};

/// Steps beyond those asked for: warm-up and profiles.
const MORE_STEPS: u64 = 1000;
/// After this part of its time it is said that a command comes no further.
const NOTICE: u32 = 5;

/// Watches a command in progress: whether the engine comes further with it.
#[derive(Debug)]
pub(super) struct Watch {
    command: Command,
    /// When it last came further.
    pub further: Instant,
    noticed: bool,
    /// The largest number of a step, of kernels compiled and of pairs.
    most: [u64; 3],
    /// Steps, and pairs, after which there is nothing more to do.
    limits: [u64; 2],
}

impl Watch {
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

    /// Notes how far it came. Whether this is the answer.
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
            (self.most[which], self.further) = (number, Instant::now());
        }
        false
    }

    fn is_run(&self) -> bool {
        matches!(self.command, Command::Start { .. } | Command::Pair { .. })
    }
}

impl EngineHandle {
    /// Ends the engine where the command that it was given takes too long; tells once that it comes no further.
    pub(super) fn check_watch(&mut self) -> Option<EngineMessage> {
        if let Some(end) = self.overdue() {
            self.end(Duration::ZERO);
            return Some(EngineMessage::Over(end));
        }
        let watch = self.watch.as_mut()?;
        let (limit, notice) = (self.limits.task, self.limits.task / NOTICE);
        let slow = !watch.noticed && watch.further.elapsed() > notice;
        watch.noticed |= slow;
        let (seconds, limit_s) = (notice.as_secs(), limit.as_secs());
        slow.then_some(EngineMessage::Slow { seconds, limit_s })
    }

    /// Why the engine is given up.
    fn overdue(&self) -> Option<EngineEnd> {
        let (watch, limits) = (self.watch.as_ref()?, &self.limits);
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
            return Some(match watch.is_run() {
                true => EngineEnd::NoStep(after.as_secs()),
                false => EngineEnd::NoAnswer(limits.task.as_secs()),
            });
        }
        let stuck = self.idle() > limits.device && silent.is_none();
        stuck.then(|| EngineEnd::DeviceStuck(self.idle().as_secs()))
    }
}
