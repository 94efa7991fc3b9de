//! The figures for a lesson's placeholders, from the runs on the screen. A run in progress is summed up so far; what was not measured
//! stays missing.

use super::App;
use crate::course::Stage;
use crate::course::placeholder::{FigureSources, fill_known, settled};
use protocol::story::RunStory;
use protocol::{Finished, Slot};

/// All figures known now; `None` without a stage.
pub fn figures(app: &App) -> Option<FigureSources<'_>> {
    let stage = app.stage()?;
    let wanted = app.shown_run().wanted.as_ref().map(|run| &run.config);
    Some(FigureSources {
        config: wanted.unwrap_or(&stage.broken),
        slots: [
            app.shown_run().story.longest_a(),
            app.shown_bench().b_of_lesson(),
        ]
        .map(RunStory::summary),
        shown: app.shown_run().active,
        pair: app.shown_pair(),
        choice: app.lesson.study.answered(stage),
        estimate: app.lesson.study.of(stage).estimate,
    })
}

/// The same figures for texts about the stage as the learner found it: `run` is A's run, whichever slot is active.
pub fn as_found<'a>(app: &'a App, now: &FigureSources<'a>) -> FigureSources<'a> {
    let found = app.shown_run().slot(Slot::A).description.config.as_ref();
    FigureSources {
        config: found.unwrap_or(now.config),
        shown: now.slots[0].as_ref().map_or(now.shown, |_| Slot::A),
        ..now.clone()
    }
}

/// The last loss that counts is that of the step at which the stage's checks end, as in a run without a screen.
pub(super) fn count_loss_of(stage: &Stage, run: &mut Finished, of: &RunStory) {
    if let Some(loss) = of.loss.at(stage.steps.saturating_sub(1)) {
        run.loss_last = loss.into();
    }
}

/// The figure that the stage's estimate is about, once it is measured.
pub fn truth(app: &App, stage: &Stage) -> Option<f64> {
    let (study, of) = (&app.lesson.study, &stage.estimate.as_ref()?.of);
    let pairs = study.pair.as_ref().filter(|pair| pair.done);
    if of.starts_with("pair.") && (pairs.is_none() || study.beside(stage).is_some()) {
        return None;
    }
    let mut known = figures(app)?;
    if let Some(run) = &mut known.slots[Slot::B as usize] {
        count_loss_of(stage, run, app.bench.b_of_lesson());
    }
    settled(of, &known, stage.steps)
}

/// Why the right choice of the stage's prediction is right, as far as its figures are known.
pub fn reason_of_answer(app: &App) -> Option<String> {
    let now = figures(app)?;
    Some(fill_known(&app.stage()?.prediction.explanation, &now))
}
