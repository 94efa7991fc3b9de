//! The parent's side of kernel checks. They run in a separate engine process, and training continues whatever a kernel does.
//! Every job is answered by exactly one report, even if that process ends, hangs or cannot be started.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use protocol::handle::{
    CommandEnd, EngineCommand, EngineHandle, EngineLimits, EngineMessage, Interruption,
};
use protocol::{Command, Event, KernelJob, KernelProgress, KernelReport};

/// Longest wait for news of a check; the process itself gives up single launches much earlier. A separate thread of it sends the
/// heartbeats: a silent process has stopped as a whole.
const LIMIT: Duration = Duration::from_secs(180);

/// Checks kernels in a separate process, one job after the other.
#[derive(Debug)]
pub struct Checker {
    command: EngineCommand,
    engine: Option<EngineHandle>,
    last_id: u64,
}

impl Checker {
    /// Starts no process yet. `command` is the one that started the training engine.
    pub fn new(command: EngineCommand) -> Self {
        Self {
            command,
            engine: None,
            last_id: 0,
        }
    }

    /// Checks and waits.
    pub fn check(&mut self, device: &str, job: &KernelJob) -> KernelReport {
        self.check_with_progress(device, job, &AtomicBool::new(false), |_| ())
    }

    /// As `check`, and tells its progress. A check that is given up ends the process.
    pub fn check_with_progress(
        &mut self,
        device: &str,
        job: &KernelJob,
        given_up: &AtomicBool,
        mut tell: impl FnMut(&KernelProgress),
    ) -> KernelReport {
        self.last_id += 1;
        let id = self.last_id;
        let job = KernelJob { id, ..job.clone() };
        let limits = EngineLimits {
            patience: Duration::ZERO,
            device: LIMIT,
            task: LIMIT,
            ..EngineLimits::default()
        };
        let engine = self.engine.take().filter(|engine| !engine.is_over());
        let started = engine.map_or_else(|| EngineHandle::start(self.command.clone(), limits), Ok);
        let mut engine = match started {
            Ok(engine) => engine,
            Err(error) => {
                let why =
                    format!("the process that checks kernels could not be started: {error:#}");
                return job.failed(why);
            }
        };
        let command = Command::CheckKernel {
            device: device.to_owned(),
            job: Box::new(job.clone()),
        };
        let mut found = None;
        let outcome = engine.drive(command, Some((given_up, Interruption::Kill)), |heard| {
            if let EngineMessage::Line(line, _) = heard {
                match &line.event {
                    Event::KernelChecked { report } if report.id == id => {
                        found = Some(report.clone());
                    }
                    Event::KernelChecking { progress } if progress.id == id => tell(progress),
                    _ => {}
                }
            }
            Ok(())
        });
        let report = found.map_or_else(|| unanswered(&job, outcome), |report| *report);
        match report.restart {
            true => engine.kill(),
            false => self.engine = Some(engine),
        }
        report
    }

    /// Ends the process at once; the next check starts another.
    pub fn end(&mut self) {
        if let Some(mut engine) = self.engine.take() {
            engine.kill();
        }
    }
}

/// The report where the process sent none.
fn unanswered(job: &KernelJob, outcome: anyhow::Result<CommandEnd>) -> KernelReport {
    let why = match outcome {
        Ok(CommandEnd::Failed(failed)) => {
            format!("the process that checks kernels refused: {}", failed.reason)
        }
        Ok(CommandEnd::Over(end)) => format!("the process that checks kernels ended: {end}"),
        Ok(CommandEnd::Answered) => "the process that checks kernels sent no report".to_owned(),
        Err(error) => format!("{error:#}"),
    };
    KernelReport {
        restart: true,
        ..job.failed(why)
    }
}
