//! The parent's side of kernel checks. Checks run in a separate engine process, so that a faulty kernel cannot disturb the training.
//! Every job gets exactly one report, even if that process ends, hangs or cannot be started.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use protocol::handle::{
    CommandEnd, EngineCommand, EngineHandle, EngineLimits, EngineMessage, Interruption,
};
use protocol::{Command, Event, KernelJob, KernelProgress, KernelReport};

/// The longest time without a message during a check. The process itself stops single launches much earlier, and a thread of its own sends
/// heartbeats, so that a silent process has stopped as a whole.
const LIMIT: Duration = Duration::from_secs(180);

/// Checks kernels in a separate process, one job after the other.
#[derive(Debug)]
pub struct Checker {
    command: EngineCommand,
    engine: Option<EngineHandle>,
    last_id: u64,
}

impl Checker {
    /// Makes a checker. The process starts with the first check. `command` is the command that started the training engine.
    pub fn new(command: EngineCommand) -> Self {
        Self {
            command,
            engine: None,
            last_id: 0,
        }
    }

    /// Checks the kernels of a job and waits for the report.
    pub fn check(&mut self, device: &str, job: &KernelJob) -> KernelReport {
        self.check_with_progress(device, job, &AtomicBool::new(false), |_| ())
    }

    /// Checks the kernels of a job and calls `on_progress` several times a second. Setting `given_up` cancels the check and ends the process.
    pub fn check_with_progress(
        &mut self,
        device: &str,
        job: &KernelJob,
        given_up: &AtomicBool,
        mut on_progress: impl FnMut(&KernelProgress),
    ) -> KernelReport {
        self.last_id += 1;
        let id = self.last_id;
        let numbered = KernelJob { id, ..job.clone() };
        let limits = EngineLimits {
            patience: Duration::ZERO,
            device: LIMIT,
            task: LIMIT,
            ..EngineLimits::default()
        };
        let running = self.engine.take().filter(|engine| !engine.is_over());
        let engine = running.map_or_else(|| EngineHandle::start(self.command.clone(), limits), Ok);
        let mut engine = match engine {
            Ok(engine) => engine,
            Err(error) => {
                let why = "the process that checks kernels could not be started";
                return numbered.failed(format!("{why}: {error:#}"));
            }
        };
        let command = Command::CheckKernel {
            device: device.to_owned(),
            job: Box::new(numbered.clone()),
        };
        let mut found = None;
        let outcome = engine.drive(command, Some((given_up, Interruption::Kill)), |message| {
            if let EngineMessage::Line(line, _) = message {
                match &line.event {
                    Event::KernelChecked { report } if report.id == id => {
                        found = Some(report.clone());
                    }
                    Event::KernelChecking { progress } if progress.id == id => {
                        on_progress(progress);
                    }
                    _ => {}
                }
            }
            Ok(())
        });
        let report = found.map_or_else(|| unanswered(&numbered, outcome), |report| *report);
        if report.restart {
            engine.kill();
        } else {
            self.engine = Some(engine);
        }
        report
    }

    /// Ends the process at once. The next check starts another one.
    pub fn end(&mut self) {
        if let Some(mut engine) = self.engine.take() {
            engine.kill();
        }
    }
}

/// Makes the report of a job for which the process sent none.
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
