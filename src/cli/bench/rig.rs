//! Runs jobs, each in an engine of its own: its first point pays for opening and compiling, its memory is its own.
//! A device that is not here is skipped with its reason; a run that breaks off is named and not tried again.

use anyhow::Result;

use super::figures::{Cell, Machine, Run};
use super::missing::{Kind, Missing};
use super::plan::{self, Job};
use super::sheet::digits;
use crate::engine::client::EngineCommand;
use crate::measure::drive::{Drive, Ending, Flow};
use crate::out::{Exit, Stop, progress};
use crate::protocol::{Command, Event, Finished, Pair, RunSpec, Slot};

pub struct Rig {
    drive: Drive,
    pub machine: Option<Machine>,
}

/// What became of one conversation.
pub enum Outcome<T> {
    Done(T),
    Interrupted,
    Absent(String),
    Failed(Exit, String),
}

/// What became of all.
pub struct Measured {
    pub cells: Vec<Cell>,
    pub missing: Vec<Missing>,
    pub interrupted: bool,
}

impl Measured {
    /// How the command ends, where nothing else went wrong.
    pub fn exit(&self) -> Exit {
        exit_of(self.interrupted, !self.cells.is_empty(), &self.missing)
    }
}

/// Interrupted; or failed where a run broke off; or the device's fault, where nothing ran.
pub fn exit_of(interrupted: bool, any: bool, missing: &[Missing]) -> Exit {
    if interrupted {
        return Exit::Interrupted;
    }
    let failed = missing.iter().find(|m| m.kind != Kind::NoDevice);
    match (any, failed) {
        (true, None) => Exit::Ok,
        (false, None) => Exit::NoDevice,
        (false, Some(failed)) if failed.kind == Kind::Refused => Exit::Usage,
        _ => Exit::Failed,
    }
}

impl Rig {
    pub fn new(command: EngineCommand) -> Result<Self> {
        Ok(Self {
            drive: Drive::new(command, None)?,
            machine: None,
        })
    }

    /// Every job in so many rounds.
    pub fn measure(&mut self, jobs: &[Job], steps: u64, rounds: u32) -> Result<Measured> {
        let mut runs: Vec<Vec<Run>> = vec![Vec::new(); jobs.len()];
        let mut missing: Vec<Missing> = Vec::new();
        let mut interrupted = false;
        'all: for group in plan::groups(jobs) {
            for round in 0..rounds {
                for at in plan::order(group.clone(), round) {
                    let job = &jobs[at];
                    if missing.iter().any(|m| m.covers(job)) {
                        continue;
                    }
                    let label = format!("round {} of {rounds}, {}", round + 1, job.name());
                    match self.run(job, steps)? {
                        Outcome::Done(run) => {
                            progress(&format!("{label}: {}", run.headline()));
                            runs[at].push(run);
                        }
                        Outcome::Interrupted => {
                            interrupted = true;
                            break 'all;
                        }
                        Outcome::Absent(reason) => {
                            let ran = jobs.iter().zip(&runs).any(|(other, runs)| {
                                other.device == job.device && !runs.is_empty()
                            });
                            progress(&format!("{label}: {reason}"));
                            missing.push(if ran {
                                Missing::of(job, Kind::Failed, reason)
                            } else {
                                Missing::device(&job.device, reason)
                            });
                        }
                        Outcome::Failed(exit, reason) => {
                            progress(&format!("{label}: {reason}"));
                            missing.push(Missing::of(job, kind_of(exit), reason));
                        }
                    }
                }
            }
        }
        let mut cells = Vec::new();
        for (job, runs) in jobs.iter().zip(&runs) {
            match Cell::of(job, runs) {
                Some(cell) => cells.push(cell),
                None if interrupted && !missing.iter().any(|m| m.covers(job)) => {
                    missing.push(Missing::of(
                        job,
                        Kind::Interrupted,
                        "interrupted".to_owned(),
                    ));
                }
                None => {}
            }
        }
        Ok(Measured {
            cells,
            missing,
            interrupted,
        })
    }

    /// One run in a fresh engine.
    fn run(&mut self, job: &Job, steps: u64) -> Result<Outcome<Run>> {
        let start = Command::Start {
            device: job.device.clone(),
            run: spec(&job.version, Slot::A, job.config.clone(), Some(steps)),
        };
        let mut first_point_s = None;
        let outcome = self.ask(start, |event, t| {
            if matches!(event, Event::Step(_)) {
                first_point_s.get_or_insert(t);
            }
        })?;
        self.drive.part();
        Ok(match outcome {
            Outcome::Done(finished) => match &finished.ended {
                Some(why) => Outcome::Failed(Exit::Failed, format!("ended early: {why}")),
                None => Outcome::Done(Run {
                    first_point_s,
                    finished: *finished,
                }),
            },
            Outcome::Interrupted => Outcome::Interrupted,
            Outcome::Absent(reason) => Outcome::Absent(reason),
            Outcome::Failed(exit, reason) => Outcome::Failed(exit, reason),
        })
    }

    /// Two configurations in pairs, `a` over `b`; the engine stays for the next two.
    pub fn pair(
        &mut self,
        device: &str,
        a: RunSpec,
        b: RunSpec,
        pairs: u32,
    ) -> Result<Outcome<(Pair, String)>> {
        let command = Command::Pair {
            device: device.to_owned(),
            stage: 0,
            a,
            b,
            pairs,
        };
        Ok(match self.ask(command, |_, _| {})? {
            Outcome::Done(finished) => match finished.pair {
                Some(pair) if pair.n > 0 => Outcome::Done((pair, finished.device.name)),
                _ => Outcome::Failed(Exit::Failed, "no pair was measured".to_owned()),
            },
            Outcome::Interrupted => Outcome::Interrupted,
            Outcome::Absent(reason) => Outcome::Absent(reason),
            Outcome::Failed(exit, reason) => Outcome::Failed(exit, reason),
        })
    }

    /// One conversation up to its summary. An engine that never greets ends the command.
    fn ask(
        &mut self,
        command: Command,
        mut hear: impl FnMut(&Event, f64),
    ) -> Result<Outcome<Box<Finished>>> {
        if self.drive.interrupted() {
            return Ok(Outcome::Interrupted);
        }
        let mut finished = None;
        let machine = &mut self.machine;
        let ending = self.drive.converse(command, |line, _| {
            match &line.event {
                Event::Hello(hello) => *machine = Some(Machine::of(hello)),
                Event::Finished(summary) => {
                    finished = Some(summary.clone());
                    return Ok(Flow::Done);
                }
                Event::Log(log) if log.level == "error" => {
                    progress(&format!("error: {}", log.text))
                }
                event => hear(event, line.t),
            }
            Ok(Flow::Go)
        });
        match (ending, finished) {
            (Ok(Ending::Done), Some(finished)) => Ok(Outcome::Done(finished)),
            (Ok(_), _) => Ok(Outcome::Interrupted),
            (Err(error), _) if self.drive.interrupted() => {
                progress(&format!("{error:#}"));
                Ok(Outcome::Interrupted)
            }
            (Err(error), _) if self.machine.is_none() => Err(error),
            (Err(error), _) => {
                let stop = error.downcast::<Stop>()?;
                Ok(match stop.exit {
                    Exit::NoDevice => Outcome::Absent(stop.text),
                    exit => Outcome::Failed(exit, stop.text),
                })
            }
        }
    }

    /// Ends the engine.
    pub fn end(&mut self) {
        self.drive.part();
    }
}

pub fn kind_of(exit: Exit) -> Kind {
    if exit == Exit::Usage {
        Kind::Refused
    } else {
        Kind::Failed
    }
}

/// A configuration as the engine takes it, outside any stage.
pub fn spec(
    name: &str,
    slot: Slot,
    config: crate::config::RunConfig,
    steps: Option<u64>,
) -> RunSpec {
    RunSpec {
        stage: 0,
        variant: name.to_owned(),
        slot,
        config,
        steps,
    }
}

impl Run {
    /// What a line of progress says of it.
    fn headline(&self) -> String {
        match (self.finished.samples_per_s, &self.finished.step_ms) {
            (Some(speed), Some(ms)) => {
                format!("{} samples/s, step {} ms", digits(speed), digits(ms.median))
            }
            _ => "no step was timed".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_says_what_is_worst() {
        let no = Missing::device("gpu", "none".to_owned());
        let failed = Missing {
            kind: Kind::Failed,
            ..no.clone()
        };
        let refused = Missing {
            kind: Kind::Refused,
            ..no.clone()
        };
        assert_eq!(exit_of(false, true, std::slice::from_ref(&no)), Exit::Ok);
        assert_eq!(
            exit_of(false, false, std::slice::from_ref(&no)),
            Exit::NoDevice
        );
        assert_eq!(
            exit_of(false, true, &[no.clone(), failed.clone()]),
            Exit::Failed
        );
        assert_eq!(exit_of(false, false, &[refused, no]), Exit::Usage);
        assert_eq!(exit_of(true, true, &[failed]), Exit::Interrupted);
    }
}
