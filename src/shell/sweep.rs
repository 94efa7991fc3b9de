//! A config exercise measured behind the screen: the same runs and the same judgement as `perflings check c01`, in a
//! thread and with an engine of its own. Giving it up ends that engine at once.

use std::sync::mpsc::Sender;
use std::time::Instant;

use anyhow::Result;

use super::background_job::BackgroundJob;
use crate::app::Message;
use crate::app::exercise::ExerciseNews;
use crate::app::exercise::measuring::{Measurement, Sweep};
use crate::app::source::FromEngine;
use crate::course::exercise::Configs;
use crate::course::exercise::config::Answers;
use crate::course::sweep::table;
use crate::judge::{StageReport, configs as judge};
use crate::measure::exercise::measure_exercise;
use crate::measure::plan::MeasureEvent;
use crate::measure::runner::Runner;
use protocol::handle::EngineCommand;
use protocol::story::StreamStory;
use protocol::{Event, Slot};

/// Begins a measurement; it ends with a `Measurement`.
///
/// # Errors
/// When no thread can be started.
pub(super) fn begin(
    command: EngineCommand,
    exercise: &str,
    device: &str,
    configs: &Configs,
    answers: Answers,
) -> Result<BackgroundJob> {
    let (device, configs) = (device.to_owned(), configs.clone());
    let exercise = exercise.to_owned();
    let news_of = move |news| Message::Exercise {
        exercise: exercise.clone(),
        news,
    };
    let broke_off = news_of.clone();
    let work = move |stop, outbox: Sender<Message>| {
        let strays = outbox.clone();
        let notify = Box::new(move |text: &str| {
            let _ = strays.send(Message::Engine(FromEngine::Stray(text.to_owned())));
        });
        let runner = Runner::in_background(command, stop, notify);
        // Where nobody listens any more, the flag says so too.
        let tell = |news| drop(outbox.send(news_of(news)));
        if let Some(measured) = measure(runner, &device, &configs, &answers, &tell) {
            tell(ExerciseNews::Measured(Box::new(measured)));
        }
    };
    BackgroundJob::begin("measurement", work, move || {
        let failed = Measurement::failed("the measurement broke off; the log may say why");
        broke_off(ExerciseNews::Measured(Box::new(failed)))
    })
}

/// Makes the runs and judges them; none when it was given up.
fn measure(
    mut runner: Runner,
    device: &str,
    configs: &Configs,
    answers: &Answers,
    tell: &dyn Fn(ExerciseNews),
) -> Option<Measurement> {
    let began = Instant::now();
    let mut sweep = Sweep::default();
    let (mut story, mut device_name) = (StreamStory::default(), String::new());
    let found = measure_exercise(&mut runner, configs, device, true, |now, runs| {
        match now.news {
            MeasureEvent::Begins { number, of } => {
                (sweep.number, sweep.of) = (number, of);
                story = StreamStory::default();
                sweep.what.clone_from(&now.job.label);
                "starts".clone_into(&mut sweep.done);
            }
            MeasureEvent::Line(line, _) => {
                story.hear(&line.event, 0);
                let run = story.slot(Slot::A);
                if let Some(device) = &run.description.device {
                    device_name.clone_from(&device.name);
                }
                sweep.done = match &line.event {
                    // Of two runs in turns the pairs count.
                    Event::Step(_) if !run.of_pairs => {
                        let (steps, of) = (run.steps(), configs.steps);
                        format!("step {} of {of}", of.min(steps))
                    }
                    Event::Pair(pair) if pair.n > 0 => {
                        format!("{} pairs, {:.2}x so far", pair.n, pair.ratio)
                    }
                    Event::Compiling { kernels, .. } => format!("{kernels} kernels compiled"),
                    _ => return,
                };
            }
            MeasureEvent::Measured(_) | MeasureEvent::Failed(_) => {
                sweep.table = table(configs, runs)
            }
        }
        tell(ExerciseNews::Measuring(Box::new(sweep.clone())));
    });
    let runs = match found {
        Ok(runs) => runs?,
        // What was measured before it broke off is worth seeing.
        Err(error) => {
            return Some(Measurement {
                table: sweep.table,
                ..Measurement::failed(&format!("{error:#}"))
            });
        }
    };
    let report = StageReport {
        stage: String::new(),
        lines: judge::lines(configs, answers, &runs),
    };
    Some(Measurement {
        passed: report.passed(),
        lines: report.lines,
        table: table(configs, &runs),
        device: device_name,
        seconds: began.elapsed().as_secs_f64(),
        failed: None,
    })
}
