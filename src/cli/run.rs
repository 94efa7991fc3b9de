//! `perflings run`: one stage or configuration without a screen. Progress goes to stderr; the summary, or with
//! `--json` the whole stream, to stdout.

use anyhow::Result;

use super::args::{As, RunArgs};
use super::journey::{self, ALL};
use super::progress::say_file;
use super::summary;
use super::variant::change;
use crate::course::named::NamedConfig;
use crate::measure::runner::{Measured, Runner, Work, engine_command};
use crate::out::{self, Exit, Stop, progress, result, usage};
use crate::protocol::{Event, RunSpec, Slot};
use crate::units::show;

pub fn run(args: &RunArgs) -> Result<Exit> {
    if args.stage.as_deref() == Some(ALL) {
        return journey::run(args);
    }
    for (given, flag) in [
        (args.out.is_some(), "--out"),
        (args.rounds.is_some(), "--rounds"),
        (args.markdown, "--markdown"),
    ] {
        if given {
            return Err(usage(format!(
                "{flag} belongs to `run all`; of one run, --record FILE keeps the stream"
            )));
        }
    }
    let preset = args.change.preset;
    let mut named = match (&args.config, &args.stage) {
        (Some(file), _) => NamedConfig::file(file, preset)?,
        (None, Some(name)) => {
            let context = args.course.load()?;
            let stage = context.stage(name)?;
            match args.variant {
                Some(As::Broken) => NamedConfig::broken(stage, preset),
                Some(As::Fixed) => NamedConfig::fixed(stage, preset),
                None => {
                    let (mine, path) = context.learner(stage, preset)?;
                    say_file(stage, path.as_deref());
                    mine
                }
            }
        }
        (None, None) => return Err(usage("name a stage, or a file with --config")),
    };
    change(&mut named.config, &args.change)?;
    let command = engine_command(args.engine.engine.as_deref())?;
    let mut runner = Runner::new(command, args.record.as_deref())?;
    let work = Work::Run(RunSpec {
        stage: named.stage,
        variant: named.variant,
        slot: Slot::A,
        config: named.config,
        steps: Some(args.steps),
    });
    let mut reporter = Reporter {
        steps: args.steps,
        latest: None,
    };
    let mut on_matrix_cores = false;
    let measured = runner.measure(&args.engine.device, &work, |line, text| {
        if let Event::Started(started) = &line.event {
            on_matrix_cores = started.format().is_some() && !started.emulated;
        }
        if args.json {
            out::json_line(text)?;
        } else {
            reporter.hear(&line.event);
        }
        Ok(())
    });
    let measured = measured.inspect_err(|error| {
        let stop = error.downcast_ref::<Stop>();
        let broke_off = stop.is_some_and(|stop| stop.exit == Exit::Failed);
        if on_matrix_cores && broke_off {
            progress("With --set train.precision=f32 it runs without matrix cores.");
        }
    })?;
    if let Some(finished) = measured.finished.as_ref().filter(|_| !args.json) {
        result(&summary::text(finished))?;
    }
    Ok(exit_of(&measured))
}

/// A run that ended before its steps were done, other than by request, broke off.
fn exit_of(measured: &Measured) -> Exit {
    match &measured.finished {
        _ if measured.interrupted => Exit::Interrupted,
        Some(finished) if finished.ended.is_none() => Exit::Ok,
        _ => Exit::Failed,
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
                "stage {} {} on {}{}: {} parameters, ln V = {:.3}",
                started.run.stage,
                started.run.variant,
                started.device.name,
                started
                    .format()
                    .map_or(String::new(), |it| format!(" ({it})")),
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
            Event::Log(log) if log.level != "info" => out::log(&log.level, &log.text),
            _ => {}
        }
    }
}
