//! The figures for a lesson's placeholders, from the runs on the screen. A run in progress is summed up so far; what was not measured
//! stays missing.

use super::App;
use crate::course::placeholder::FigureSources;
use protocol::Slot;
use protocol::story::RunStory;

/// All figures known now; `None` without a stage.
pub fn figures(app: &App) -> Option<FigureSources<'_>> {
    let stage = app.stage()?;
    let wanted = app.bench.run.wanted.as_ref().map(|run| &run.config);
    Some(FigureSources {
        config: wanted.unwrap_or(&stage.broken),
        slots: [app.bench.run.story.longest_a(), app.b_of_lesson()].map(RunStory::summary),
        shown: app.bench.run.active,
        pair: app.lesson.study.pair.as_ref(),
        choice: app.lesson.study.answered(stage),
        estimate: app.lesson.study.of(stage).estimate,
    })
}

/// The same figures for texts about the stage as the learner found it: `run` is A's run, whichever slot is active.
pub fn as_found<'a>(app: &'a App, now: &FigureSources<'a>) -> FigureSources<'a> {
    let found = app.bench.run.slot(Slot::A).description.config.as_ref();
    FigureSources {
        config: found.unwrap_or(now.config),
        shown: now.slots[0].as_ref().map_or(now.shown, |_| Slot::A),
        ..now.clone()
    }
}
