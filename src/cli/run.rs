//! `perflings run`: trains one stage or configuration without a screen, and prints the summary or, with `--json`, the engine's stream.

use anyhow::Result;

use super::args::training::{RunArgs, StageVariant};
use super::meter::ProgressMeter;
use super::saved::report_file;
use super::stage_table::{self, ALL};
use super::summary;
use super::variant::{changed, stage_named};
use crate::course::named::NamedConfig;
use crate::measure::runner::{EngineTask, TaskResult};
use crate::out::{self, Exit, ExitError, notice, result, usage};
use protocol::story::StreamStory;
use protocol::{Event, RunSpec, Slot};

pub(super) fn run(args: &RunArgs) -> Result<Exit> {
    if args.stage.as_deref() == Some(ALL) {
        return stage_table::run(args);
    }
    for (given, flag) in [
        (args.out.is_some(), "--out"),
        (args.rounds.is_some(), "--rounds"),
        (args.markdown, "--markdown"),
    ] {
        if given {
            return Err(usage(format!(
                "{flag} belongs to `run all`; for a single run, --record FILE keeps the stream"
            )));
        }
    }
    let named = changed(configuration(args)?, &args.change)?;
    let mut runner = args.engine.runner(args.record.as_deref())?;
    let task = EngineTask::Run(RunSpec {
        steps: Some(args.steps),
        ..named.spec(Slot::A)
    });
    let mut story = StreamStory::default();
    let meter = ProgressMeter::begin();
    let outcome = runner.measure(&args.engine.device, &task, |line, text| {
        story.on_event(&line.event, 0);
        show_progress(&meter, args.steps, &line.event);
        if args.json {
            out::json_line(text)?
        } else {
            out::log(&line.event)
        }
        Ok(())
    });
    let run = &story.slot(Slot::A).description;
    let measured = outcome.inspect_err(|error| {
        let has_failed = error
            .downcast_ref::<ExitError>()
            .is_some_and(|error| error.exit == Exit::Failed);
        if run.matrix_cores && has_failed {
            notice(
                "--set train.precision=f32 --set model.matmul=own runs it without matrix cores.",
            );
        }
    })?;
    drop(meter);
    if !args.json
        && let Some(finished) = &measured.finished
    {
        result(&summary::text(finished, true))?;
        if let Some(format) = run.format() {
            result(&format!("  products  {format}"))?;
        }
    }
    Ok(exit_of(&measured))
}

/// Returns the configuration that the arguments name, before the changes of `--set`. Prints a notice if it is the learner's own.
fn configuration(args: &RunArgs) -> Result<NamedConfig> {
    let preset = args.change.preset;
    if let Some(file) = &args.config {
        return NamedConfig::file(file, preset);
    }
    let Some(name) = &args.stage else {
        return Err(usage("name a stage, or a file with --config"));
    };
    let context = args.course.load()?;
    let stage = stage_named(name, &context)?;
    Ok(match args.variant {
        Some(StageVariant::Broken) => NamedConfig::broken(stage, preset),
        Some(StageVariant::Fixed) => NamedConfig::fixed(stage, preset),
        None => {
            let (named, path) = context.learner_config(stage, preset)?;
            report_file(stage, path.as_deref());
            named
        }
    })
}

/// Returns the exit code of a run. A run that ended by itself before its last step has failed.
fn exit_of(measured: &TaskResult) -> Exit {
    if measured.interrupted {
        return Exit::Interrupted;
    }
    match &measured.finished {
        Some(finished) if finished.ended.is_none() => Exit::Ok,
        _ => Exit::Failed,
    }
}

/// Shows an event of the run as progress: a kernel that is compiled, or a step with its loss.
fn show_progress(meter: &ProgressMeter, steps: u64, event: &Event) {
    match event {
        Event::Compiling { kernels, latest } => {
            meter.set_work(format!("compiling kernels: {kernels}, now {latest}"));
        }
        Event::Step(step) => {
            meter.set_done(step.step as usize, steps as usize);
            let loss = step.loss.map_or(f64::NAN, |loss| loss.0);
            meter.set_work(format!("loss {loss:.4}, {:.1} ms a step", step.ms));
        }
        _ => {}
    }
}
