//! The figures for a lesson's placeholders, from the runs on the screen. A run in progress is summed up so far; what was not measured
//! stays missing.

use super::{App, SlotRun};
use crate::course::placeholder::FigureSources;
use protocol::stats::roofline::top;
use protocol::*;

/// All figures known now; `None` without a stage.
pub fn figures(app: &App) -> Option<FigureSources<'_>> {
    let stage = app.stage()?;
    let wanted = app.shown_run().wanted.as_ref().map(|run| &run.config);
    Some(FigureSources {
        config: wanted.unwrap_or(&stage.broken),
        slots: [app.shown_run().fullest_a(), app.b_of_lesson()].map(summary),
        shown: app.shown_run().active,
        pair: app.shown_pair(),
        choice: app.lesson.study.answered(stage),
        estimate: app.lesson.study.of(stage).estimate,
    })
}

/// The same figures for texts about the stage as the learner found it: `run` is A's run, whichever slot is active.
pub fn as_found<'a>(app: &'a App, now: &FigureSources<'a>) -> FigureSources<'a> {
    let started = app.shown_run().slot(Slot::A).started.as_ref();
    FigureSources {
        config: started.map_or(now.config, |started| &started.run.config),
        shown: now.slots[0].as_ref().map_or(now.shown, |_| Slot::A),
        ..now.clone()
    }
}

/// The run's own summary, or what it has shown so far.
pub fn summary(slot: &SlotRun) -> Option<Finished> {
    if let Some(finished) = &slot.finished {
        return Some(finished.clone());
    }
    let started = slot.started.as_ref()?;
    let (_, first) = slot.loss.first()?;
    let throughput = slot.throughput.as_ref().filter(|t| t.step_ms.n > 0);
    let kernels = slot.typical();
    Some(Finished {
        stage: started.run.stage,
        variant: started.run.variant.clone(),
        slot: started.run.slot,
        config: started.config.clone(),
        device: started.device.clone(),
        steps: slot.last.as_ref().map_or(0, |step| step.step + 1),
        // A run that went on from another's weights has no loss before any update.
        loss_first: slot.first_loss().unwrap_or(f64::NAN).into(),
        loss_last: slot.own_loss().map_or(first, |it| it.1).into(),
        ln_vocab: started.ln_vocab,
        entropy: started.entropy,
        samples_per_s: throughput.map(|t| t.samples_per_s),
        tokens_per_s: throughput.map(|t| t.tokens_per_s),
        enqueue_samples_per_s: throughput.and_then(|t| t.enqueue_samples_per_s),
        step_ms: throughput.map(|t| t.step_ms),
        phases_ms: slot.phases(),
        clock: throughput.map(|t| t.clock.clone()).unwrap_or_default(),
        state: throughput.map(|t| t.state).unwrap_or_default(),
        grad: slot
            .gradients
            .as_ref()
            .map_or_else(GradSummary::default, GradSummary::from),
        kernels: kernels.map_or_else(not_profiled, |k| KernelSummary {
            launches_per_step: k.launches,
            unique: k.unique,
            device_ms: k.device_ms,
            coverage: k.coverage,
            top: k
                .rows
                .iter()
                .map(|row| top(row, started.roof.as_deref()))
                .collect(),
            profiles: u32::try_from(slot.profiles.len()).unwrap_or(u32::MAX),
            discarded: slot.profiles.iter().map(|it| it.discarded).sum(),
            reason: k.reason.clone(),
        }),
        memory: slot.memory.clone().unwrap_or_default(),
        evidence: slot.evidence.clone().map(|it| Evidence {
            clocks: slot.clocks().map(|(clocks, _)| clocks),
            ..it
        }),
        lints: slot.lints.clone(),
        pair: None,
        others: None,
        ended: None,
    })
}

fn not_profiled() -> KernelSummary {
    KernelSummary {
        reason: Some("no step was profiled yet".to_owned()),
        ..KernelSummary::default()
    }
}
