//! The course of a mystery. The judge first makes a fresh run of B, because a fault may have ruined the present weights. It measures
//! pairs with the known-good configuration only if that run meets every criterion except speed.

use super::{JudgeStep, MysteryEnd, MysteryRun, name};
use crate::app::bench::Bench;
use crate::app::comparison::Comparison;
use crate::app::learner::LearnerState;
use crate::app::part::{FollowUp, FollowUps, Place};
use crate::app::view::{Confirm, Overlay, View};
use crate::app::{Action, App, Mode};
use crate::course::mystery::{Mystery, offers, score};
use crate::course::save_file::MysteryScore;
use crate::judge::StageReport;
use crate::judge::mystery::{STEPS, evaluate, only_speed_is_open};
use crate::judge::stage::StageFacts;
use crate::panel::Panel;
use protocol::config::Preset;
use protocol::{Finished, RunSpec, Slot, Started};

/// The time that a configuration has to run before it counts as tried.
const TRIED_MS: u64 = 2_000;

/// The other parts of `App` that a mystery reads.
pub(in crate::app) struct Context<'a> {
    pub learner: &'a LearnerState,
    pub bench: &'a Bench,
    /// In milliseconds since the program began.
    pub now_ms: u64,
}

impl App {
    /// Begins the mystery of this seed and level.
    pub(in crate::app) fn run_mystery(&mut self, seed: u64, level: u8) {
        self.leave_exercise();
        self.end_presentation();
        let mystery = Mystery::draw(seed, level, self.bench.preset.unwrap_or(Preset::Tiny));
        let paths: Vec<String> = offers().map(|knob| knob.path.to_owned()).collect();
        let comparison = Comparison::new(0, "mystery", mystery.broken.clone(), &paths);
        self.bench.compare(comparison);
        self.bench.comparison.hidden = true;
        let known = &self.lesson.learner.progress.mysteries;
        let is_first = !known.contains_key(&name(seed, level));
        let run = MysteryRun::new(mystery, self.clock.now_ms, is_first);
        self.mode = Mode::Mystery(Box::new(run));
        self.lesson.learner.forget_results();
        self.view.scroll.clear();
        self.view.overlay = None;
        self.view.confirm = None;
        self.view.third = None;
        self.begin_with_a();
        self.view.show_text();
    }

    /// Goes to another line of the list. Asks for confirmation first if the mystery is not solved.
    pub(in crate::app) fn leave_mystery(&mut self, to: usize) {
        if self.is_unsolved() {
            self.view.overlay = None;
            self.view.confirm = Some(Confirm::LeaveMystery { to });
        } else {
            self.enter_from_mystery(to);
        }
    }

    /// Goes from a mystery to another line of the list.
    pub(in crate::app) fn enter_from_mystery(&mut self, to: usize) {
        if to < self.lesson.course.stages.len() {
            self.go_to(to);
        } else {
            // An exercise opens over a stage, so the stage from which the mystery began is entered again first.
            self.go_to(self.lesson.learner.at);
            self.view.overlay = Some(Overlay::Stages);
            self.choose(to);
        }
    }

    /// Begins to judge B, with a fresh run of it.
    pub(in crate::app) fn ask_for_verdict(&mut self) {
        if !self.open_knobs_if_b_equals_a() {
            self.bench.pending.due_ms = None;
            self.lesson.learner.pair = None;
            self.in_mystery(MysteryRun::run_for_verdict);
        }
    }

    /// Ends the judging without a verdict, because B changed or something else runs.
    pub(in crate::app) fn cancel_verdict(&mut self) {
        if let Some(mystery) = self.mode.mystery_mut() {
            mystery.set_judging(None, self.clock.now_ms);
        }
    }
}

impl MysteryRun {
    /// Returns the scores of this mystery, from this session or an earlier one. `None` if it was never solved.
    pub fn score(&self, learner: &LearnerState) -> Option<MysteryScore> {
        learner.progress.mysteries.get(&self.name()).copied()
    }

    /// Carries out an action that a mystery handles itself. `None` for any other action.
    pub(in crate::app) fn update(&self, action: Action) -> Option<FollowUps> {
        Some(match action {
            Action::Solution => vec![FollowUp::Confirm(Confirm::GiveUp)],
            Action::NextStage if self.end.is_some() => vec![FollowUp::Go(Place::Mystery {
                seed: self.mystery.seed.wrapping_add(1),
                level: self.mystery.level(),
            })],
            _ => return None,
        })
    }

    /// Counts the panel that the learner brought onto the screen. A panel that is always on the screen costs nothing.
    pub(in crate::app) fn count_opened_panel(&mut self, view: &View) {
        if let Some(panel) = view.focus
            && panel != Panel::Lesson
            && !view.always_shows(panel)
            && view.overlay.is_none()
            && self.end.is_none()
        {
            self.opened_panels.insert(panel);
        }
    }

    /// Handles the start of a run. If it is B's, its configuration counts as tried once it has run for `TRIED_MS`.
    pub(in crate::app) fn on_start(&mut self, started: &Started, now_ms: u64) {
        let run = &started.run;
        self.present = (run.slot == Slot::B).then(|| (run.config.clone(), now_ms));
    }

    /// Counts B's configuration as tried once it has run for `TRIED_MS`, so that values which the learner only steps over do not count.
    pub(in crate::app) fn on_tick(&mut self, now_ms: u64) {
        if self.end.is_none()
            && let Some((config, _)) = self
                .present
                .take_if(|(_, since_ms)| *since_ms + TRIED_MS <= now_ms)
        {
            self.count_tried(&config);
        }
    }

    /// Ends the mystery as solved or given up, and shows the faults and A's values.
    pub(in crate::app) fn finish(&mut self, end: MysteryEnd, now_ms: u64) -> FollowUps {
        self.end = Some(end);
        self.set_judging(None, now_ms);
        let mut follows = vec![FollowUp::Reveal];
        if let MysteryEnd::Solved { points, .. } = end {
            let possible = 100 * self.mystery.faults.len();
            follows.push(FollowUp::KeepScore(self.name(), points));
            follows.push(FollowUp::tell(format!(
                "Solved: {points} of {possible} points"
            )));
        }
        follows.push(FollowUp::ShowText);
        follows
    }

    /// Begins to judge B with a fresh run.
    fn run_for_verdict(&mut self, context: &Context) -> FollowUps {
        self.count_tried(&context.bench.comparison.config_b);
        self.set_judging(Some(JudgeStep::Run), context.now_ms);
        self.report = None;
        let run = RunSpec {
            steps: Some(STEPS),
            ..context.bench.comparison.run_b()
        };
        vec![FollowUp::Run(run), FollowUp::ShowText]
    }

    /// Judges the fresh run of B once it has ended. If only the speed is still open, measures pairs.
    pub(in crate::app) fn judge_run(
        &mut self,
        finished: &Finished,
        context: &Context,
    ) -> FollowUps {
        if !matches!(self.judging, Some(JudgeStep::Run)) || finished.slot != Slot::B {
            return Vec::new();
        }
        let report = evaluate(StageFacts {
            config: Some(&context.bench.comparison.config_b),
            finished: Some(finished),
            ..StageFacts::default()
        });
        if !only_speed_is_open(&report) {
            return self.verdict(report, context);
        }
        let b = context.bench.comparison.run_b();
        let a = RunSpec {
            slot: Slot::A,
            variant: "known good".to_owned(),
            config: self.mystery.good.clone(),
            ..b.clone()
        };
        let step = JudgeStep::Pairs(Box::new(finished.clone()));
        self.set_judging(Some(step), context.now_ms);
        self.paired_with_good = true;
        self.report = Some(report);
        vec![FollowUp::Pairs([a, b])]
    }

    /// Judges the pairs with the known-good configuration once they have ended.
    pub(in crate::app) fn judge_pairs(&mut self, context: &Context) -> FollowUps {
        let Some(JudgeStep::Pairs(finished)) = self.judging.clone() else {
            return Vec::new();
        };
        let report = evaluate(StageFacts {
            config: Some(&context.bench.comparison.config_b),
            finished: Some(&finished),
            pair: context.learner.pair.as_ref(),
            quiz_right: None,
        });
        self.verdict(report, context)
    }

    /// Shows the judge's report and runs B again. If the report passed, the mystery is solved.
    fn verdict(&mut self, report: StageReport, context: &Context) -> FollowUps {
        let passed = report.passed();
        let now_ms = context.now_ms;
        self.report = Some(report);
        self.set_judging(None, now_ms);
        let seconds = self.seconds(now_ms);
        let panels = self.opened_panels.len();
        let points = score(self.mystery.level(), panels, self.changes, seconds);
        let mut follows = if passed {
            self.finish(MysteryEnd::Solved { points, seconds }, now_ms)
        } else {
            let text = "Not solved yet: the verdict names what is not right";
            vec![FollowUp::Warn(text.to_owned()), FollowUp::ShowText]
        };
        follows.push(FollowUp::Run(RunSpec {
            sealed: !passed,
            ..context.bench.comparison.run_b()
        }));
        follows
    }
}
