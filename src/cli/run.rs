//! `perflings run`: one stage or configuration without a screen. Progress goes to stderr; the summary, or with
//! `--json` the whole stream, to stdout.

use anyhow::Result;

use super::variant::{change, preset_of};
use super::{As, RunArgs, summary};
use crate::course::named::NamedConfig;
use crate::measure::drive::{Drive, Ending, Flow, engine_command};
use crate::measure::machine;
use crate::out::{Exit, progress, result};
use crate::protocol::{Command, Event, Finished, RunSpec, Slot};
use crate::units::show;

pub fn run(args: &RunArgs) -> Result<Exit> {
    let preset = preset_of(&args.change)?;
    let mut subject = match (&args.config, &args.stage) {
        (Some(file), _) => NamedConfig::file(file, preset)?,
        (None, Some(name)) => {
            let context = args.course.load()?;
            let stage = context.stage(name)?;
            match args.variant {
                Some(As::Broken) => NamedConfig::broken(stage, preset),
                Some(As::Fixed) => NamedConfig::fixed(stage, preset),
                None => {
                    let (mine, path) = context.learner(stage, preset)?;
                    super::check::yours(stage, path.as_deref());
                    mine
                }
            }
        }
        (None, None) => return Err(crate::out::usage("name a stage, or a file with --config")),
    };
    change(&mut subject.config, &args.change)?;
    let command = engine_command(args.engine.engine.as_deref())?;
    if command.is_own() {
        machine::check_memory(&args.engine.device, &[&subject.config])?;
    }
    let mut drive = Drive::new(command, args.record.as_deref())?;
    let spec = RunSpec {
        stage: subject.stage,
        variant: subject.variant.clone(),
        slot: Slot::A,
        config: subject.config,
        steps: Some(args.steps),
    };
    let mut finished = None;
    let mut reporter = Reporter {
        steps: args.steps,
        latest: None,
    };
    let start = Command::Start {
        device: args.engine.device.clone(),
        run: spec,
    };
    let ending = drive.converse(start, |line, text| {
        if args.json {
            result(text)?;
        } else {
            reporter.hear(&line.event);
        }
        if let Event::Finished(summary) = &line.event {
            finished = Some(summary.clone());
            return Ok(Flow::Done);
        }
        Ok(Flow::Go)
    })?;
    let Some(finished) = finished else {
        return Ok(Exit::Interrupted);
    };
    if !args.json {
        result(&summary::text(&finished))?;
    }
    Ok(exit_of(ending, &finished))
}

/// A run that ended before its steps were done, other than by request, broke off.
fn exit_of(ending: Ending, finished: &Finished) -> Exit {
    match (ending, &finished.ended) {
        (Ending::Interrupted, _) => Exit::Interrupted,
        (Ending::Done, None) => Exit::Ok,
        (Ending::Done, Some(_)) => Exit::Failed,
    }
}

/// A few lines of progress: what is opened, what is compiled, about ten steps.
struct Reporter {
    steps: u64,
    latest: Option<f64>,
}

impl Reporter {
    fn hear(&mut self, event: &Event) {
        match event {
            Event::Compiling { kernels, latest } if kernels.is_power_of_two() => {
                progress(&format!(
                    "compiling kernels: {kernels} so far, now {latest}"
                ));
            }
            Event::Started(started) => progress(&format!(
                "stage {} {} on {}: {} parameters, ln V = {:.3}",
                started.run.stage,
                started.run.variant,
                started.device.name,
                show(started.parameters as f64, 0),
                started.ln_vocab
            )),
            Event::Throughput(throughput) => self.latest = Some(throughput.samples_per_s),
            Event::Step(step) => {
                let every = (self.steps / 10).max(1);
                if step.step % every == 0 || step.step + 1 == self.steps {
                    let speed = self
                        .latest
                        .map(|s| format!(", {} samples/s", show(s, 1)))
                        .unwrap_or_default();
                    let profiled = if step.profiled { " (profiled)" } else { "" };
                    progress(&format!(
                        "step {:>5}  loss {:<9.4}  {:.1} ms{profiled}{speed}",
                        step.step, step.loss.0, step.ms
                    ));
                }
            }
            Event::Log(log) if log.level != "info" => {
                progress(&format!("{}: {}", log.level, log.text))
            }
            _ => {}
        }
    }
}
