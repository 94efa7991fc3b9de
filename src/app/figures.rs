//! The figures for a lesson's placeholders, from the runs on the screen. A run in progress counts as far as it has come. A figure
//! that was not measured stays missing.

use super::App;
use crate::course::Stage;
use crate::course::placeholder::{FigureSources, fill_known, settled};
use protocol::story::RunStory;
use protocol::{Finished, Slot};

/// Returns all figures known now. `None` without a stage.
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
        choice: app.lesson.learner.answered(stage),
        estimate: app.lesson.learner.progress_of(stage).estimate,
    })
}

/// Returns the figures for texts about the stage as the learner found it. In these texts `run` names A's run, even while B is active.
pub fn as_found<'a>(app: &'a App, present: &FigureSources<'a>) -> FigureSources<'a> {
    let config_a = app.shown_run().slot(Slot::A).description.config.as_ref();
    FigureSources {
        config: config_a.unwrap_or(present.config),
        shown: present.slots[0].as_ref().map_or(present.shown, |_| Slot::A),
        ..present.clone()
    }
}

/// Sets the last loss of `summary` to the loss of `run` at the step where the stage's checks end, as in a run without a screen.
pub(super) fn set_loss_of_check(stage: &Stage, summary: &mut Finished, run: &RunStory) {
    if let Some(loss) = run.loss.at(stage.steps.saturating_sub(1)) {
        summary.loss_last = loss.into();
    }
}

/// Returns the measured figure that the stage's estimate is about. `None` until it is measured.
pub fn truth(app: &App, stage: &Stage) -> Option<f64> {
    let learner = &app.lesson.learner;
    let figure = &stage.estimate.as_ref()?.of;
    if figure.starts_with("pair.") {
        let has_pairs = learner.pair.as_ref().is_some_and(|pair| pair.done);
        if !has_pairs || learner.other_differing_knob(stage).is_some() {
            return None;
        }
    }
    let mut sources = figures(app)?;
    if let Some(run) = &mut sources.slots[Slot::B as usize] {
        set_loss_of_check(stage, run, app.bench.b_of_lesson());
    }
    settled(figure, &sources, stage.steps)
}

/// Returns the explanation of the right choice of the stage's prediction, with the figures known so far.
pub fn reason_of_answer(app: &App) -> Option<String> {
    let now = figures(app)?;
    Some(fill_known(&app.stage()?.prediction.explanation, &now))
}
