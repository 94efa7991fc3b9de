//! Shares the learner's record with the room. Four times a second the record is made anew; it is sent only if it changed.

use std::collections::BTreeMap;

use super::{Link, Membership};
use crate::app::mode::Mode;
use crate::app::mystery::{MysteryEnd, MysteryRun};
use crate::app::part::{FollowUp, FollowUps};
use crate::app::{App, Effect};
use crate::class::record::{MysteryResult, Participant, RaceResult, SharedWork};
use crate::course::save_file::{Prediction, StageProgress, StageState};
use crate::judge::Outcome;

/// The time between two checks for something new to share, in milliseconds.
const CHECK_MS: u64 = 250;

impl App {
    /// Returns the id of the open stage, exercise or mystery. Empty in a free run.
    pub(super) fn task(&self) -> String {
        match (&self.mode, self.exercise(), self.stage()) {
            (Mode::Mystery(mystery), ..) => format!("mystery {}", mystery.name()),
            (_, Some(exercise), _) => exercise.id.clone(),
            (_, None, Some(stage)) => stage.id.clone(),
            (_, None, None) => String::new(),
        }
    }

    /// Returns the part of a stage's or an exercise's progress that is shared.
    fn shared(&self, id: &str, progress: &StageProgress) -> SharedWork {
        SharedWork {
            state: progress.state.into_str().to_owned(),
            vote: match progress.prediction {
                Some(Prediction::Choice { choice, .. }) => Some(choice),
                _ => None,
            },
            range: progress.estimate.map(|(low, high)| [low, high]),
            measured: progress.measured,
            ratio: progress.ratio,
            checks: self.checks_met(id),
            hints: progress.hints,
        }
    }

    /// Returns the number of required checks that are met, and the number of all required checks. `None` for a stage that is not open or
    /// not judged.
    fn checks_met(&self, id: &str) -> Option<[u32; 2]> {
        let report = self.lesson.learner.report.as_ref()?;
        if self.stage()?.id != id {
            return None;
        }
        let required = report.lines.iter().filter(|line| !line.optional);
        let met = required
            .clone()
            .filter(|line| line.outcome == Outcome::Passed);
        Some([met.count() as u32, required.count() as u32])
    }

    /// Returns the result of the open task: of a mystery that ended, or of a kernel that passed. `None` if there is none.
    fn race_result(&self) -> Option<RaceResult> {
        if let Mode::Mystery(run) = &self.mode {
            return self.mystery_result(run);
        }
        let report = self.open_state()?.report.as_ref()?;
        if !report.passed {
            return None;
        }
        let slowest = report
            .facts
            .files
            .iter()
            .filter_map(|file| file.time.as_ref()?.against_starter)
            .min_by(|a, b| a.low.total_cmp(&b.low))?;
        Some(RaceResult {
            ratio: Some([slowest.ratio, slowest.low, slowest.high]),
            mystery: None,
        })
    }

    /// Returns the result of a mystery. `None` if it was solved or given up before, because its faults are known then.
    fn mystery_result(&self, run: &MysteryRun) -> Option<RaceResult> {
        if !run.first {
            return None;
        }
        let (points, seconds) = match run.end? {
            MysteryEnd::Solved { points, seconds } => (points, seconds),
            MysteryEnd::GivenUp => (0, run.seconds(self.clock.now_ms)),
        };
        let mut ratio = None;
        if points > 0 {
            let pair = self.lesson.learner.pair.as_ref()?;
            if !pair.done || !run.paired_with_good {
                return None;
            }
            ratio = pair
                .low
                .zip(pair.high)
                .map(|(low, high)| [pair.ratio, low, high]);
        }
        Some(RaceResult {
            ratio,
            mystery: Some(MysteryResult {
                points,
                seconds,
                configurations: run.configurations(),
            }),
        })
    }
}

impl Membership {
    /// Shares the learner's record if it changed, at a tick of the clock. For a presenter, opens and closes the vote of the beat instead.
    pub(in crate::app) fn share(&mut self, app: &App) -> FollowUps {
        let now_ms = app.clock.now_ms;
        let is_over = matches!(self.link, Link::Over(_));
        if is_over || now_ms.saturating_sub(self.checked_ms) < CHECK_MS {
            return Vec::new();
        }
        if self.me.instructor {
            return self.lead(app);
        }
        if app.presenter.presentation.is_some() {
            return Vec::new();
        }
        self.checked_ms = now_ms;
        if let Some((number, choice)) = self.predicted_in_round(app) {
            self.ballots.entry(number).or_insert(choice);
        }
        let task = app.task();
        if self.task.0 != task {
            self.task = (task.clone(), now_ms);
        }
        if let Some(mut result) = app.race_result() {
            if let Some(earlier) = self.races.get(&task) {
                result.choose_between(earlier);
            }
            self.races.insert(task, result);
        }
        let record = self.participant(app);
        // The time in the task alone is no reason to share.
        let at_shared_time = Participant {
            open_s: self.shared.open_s,
            ..record.clone()
        };
        if at_shared_time == self.shared && !self.shared.id.is_empty() {
            return Vec::new();
        }
        self.shared = record.clone();
        vec![FollowUp::Effect(Effect::Share(Box::new(record)))]
    }

    /// Returns the learner's record.
    fn participant(&self, app: &App) -> Participant {
        let device = match app.shown_run().device() {
            Some(device) if device.name.is_empty() => device.kind.clone(),
            Some(device) => format!("{}: {}", device.kind, device.name),
            None => String::new(),
        };
        let mut stages = BTreeMap::new();
        for (id, progress) in &app.lesson.learner.progress.stages {
            if progress.state != StageState::New {
                stages.insert(id.clone(), app.shared(id, progress));
            }
        }
        let (task, opened_ms) = &self.task;
        Participant {
            id: self.me.id.clone(),
            name: self.me.name.clone(),
            device,
            open_task: task.clone(),
            open_s: app.clock.now_ms.saturating_sub(*opened_ms) / 1000,
            raised: self.raised,
            stages,
            ballots: self.ballots.clone(),
            races: self.races.clone(),
            ..Participant::default()
        }
    }
}
