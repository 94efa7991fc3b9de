//! Whether a command that an engine was given comes further, by what no engine can repeat for ever.

use std::time::{Duration, Instant};

use super::{EngineCommand, EngineEnd, EngineLimits};
use crate::{Command, Event};

/// Steps beyond those asked for: warm-up and profiles.
const MORE_STEPS: u64 = 1000;

/// A command without an answer.
#[derive(Debug)]
pub(super) struct Watch {
    command: Asked,
    began: Instant,
    /// When it last came further.
    further: Instant,
    noticed: bool,
    stopped: Option<Instant>,
    /// The largest number of a step, of kernels compiled and of pairs.
    most: [u64; 3],
    /// Steps, and pairs, after which there is nothing more to do.
    limits: [u64; 2],
}

/// What was asked for, as far as its answer tells.
#[derive(Debug)]
enum Asked {
    /// A run or pairs.
    Run,
    /// A check of kernels with this id.
    Check(u64),
    Probe,
    Open,
    Calibrate,
    /// Only a failure answers it.
    Nothing,
}

impl Watch {
    pub(super) fn begin(command: &Command) -> Self {
        let (asked, steps, pairs) = match command {
            Command::Start { run, .. } => (Asked::Run, run.steps.unwrap_or(u64::MAX), 0),
            // The engine says how many there are at most.
            Command::Pair { pairs: 0, .. } => (Asked::Run, u64::MAX, u64::MAX),
            Command::Pair { pairs, .. } => (Asked::Run, u64::MAX, u64::from(*pairs)),
            Command::CheckKernel { job, .. } => (Asked::Check(job.id), 0, 0),
            Command::Probe => (Asked::Probe, 0, 0),
            Command::Open { .. } => (Asked::Open, 0, 0),
            Command::Calibrate { .. } => (Asked::Calibrate, 0, 0),
            _ => (Asked::Nothing, 0, 0),
        };
        let more = |n: u64| n.saturating_mul(10).saturating_add(MORE_STEPS);
        let now = Instant::now();
        Self {
            command: asked,
            began: now,
            further: now,
            noticed: false,
            stopped: None,
            most: [0; 3],
            limits: [more(steps), more(pairs)],
        }
    }

    /// It was asked to stop.
    pub(super) fn stop(&mut self) {
        self.stopped.get_or_insert_with(Instant::now);
    }

    /// Nobody looked for a while, so nothing is known of that time.
    pub(super) fn look_again(&mut self) {
        self.further = Instant::now();
    }

    /// Notes how far it came. Whether this is the answer.
    pub(super) fn is_answered(&mut self, event: &Event) -> bool {
        let further = match (&self.command, event) {
            (_, Event::Failed(_))
            | (Asked::Run, Event::Finished(_))
            | (Asked::Probe, Event::Devices { .. })
            | (Asked::Open, Event::DeviceReady { .. })
            | (Asked::Calibrate, Event::Calibrated { .. }) => return true,
            (Asked::Check(id), Event::KernelChecked { report }) => return report.id == *id,
            (Asked::Check(id), Event::KernelChecking { progress }) => progress.id == *id,
            (Asked::Run, Event::Step(step)) => self.exceeds(0, step.step + 1),
            (Asked::Run, Event::Compiling { kernels, .. }) => self.exceeds(1, u64::from(*kernels)),
            (Asked::Run, Event::Pair(pair)) => {
                if pair.limit_pairs > 0 {
                    self.limits[1] = u64::from(pair.limit_pairs).saturating_add(MORE_STEPS);
                }
                self.exceeds(2, u64::from(pair.n))
            }
            _ => false,
        };
        if further {
            self.further = Instant::now();
        }
        false
    }

    fn exceeds(&mut self, which: usize, number: u64) -> bool {
        let more = number > self.most[which];
        self.most[which] = self.most[which].max(number);
        more
    }

    /// Why the engine is given up. `idle`: how long its device has made no progress. `silent`: since when it is said that nothing comes, and
    /// for how long nothing has come.
    pub(super) fn overdue(
        &self,
        limits: &EngineLimits,
        idle: Duration,
        silent: Option<(Instant, Duration)>,
        command: &EngineCommand,
    ) -> Option<EngineEnd> {
        if self
            .stopped
            .is_some_and(|since| since.elapsed() > limits.stop)
        {
            return Some(EngineEnd::NotStopped);
        }
        let own = command.is_own();
        let patience = match own {
            true => limits.patience,
            false => limits.patience.min(limits.silence),
        };
        if let Some((since, after)) = silent
            && since.elapsed() > patience
        {
            let line = (!own).then(|| command.to_string());
            return Some(EngineEnd::Silent { after, line });
        }
        let [steps, _, pairs] = self.most;
        if steps > self.limits[0] || pairs > self.limits[1] {
            return Some(EngineEnd::Endless);
        }
        let after = self.further.elapsed();
        if after > limits.task {
            return Some(match self.command {
                Asked::Run => EngineEnd::NoStep(after),
                _ => EngineEnd::NoAnswer(limits.task),
            });
        }
        let idle = idle.min(self.began.elapsed());
        (idle > limits.device && silent.is_none()).then_some(EngineEnd::DeviceStuck(idle))
    }

    /// Whether it is to be said now that it comes no further.
    pub(super) fn is_slow(&mut self, limits: &EngineLimits) -> bool {
        let slow = !self.noticed && self.further.elapsed() > limits.notice;
        self.noticed |= slow;
        slow
    }
}
