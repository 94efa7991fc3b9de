//! How a mystery is played. The judge first makes a fresh run of B, because weights that a fault has ruined say nothing about B. It
//! measures pairs with the known-good configuration only if that run meets every criterion but speed.

use super::{JudgeStep, MysteryEnd, MysteryRun};
use crate::app::comparison::Comparison;
use crate::app::view::{Confirm, Overlay};
use crate::app::{Action, App, Effect, Mode};
use crate::course::mystery::{Mystery, offers, score};
use crate::course::save_file::{MysteryScore, ProgressChange};
use crate::judge::StageReport;
use crate::judge::mystery::{STEPS, evaluate, only_speed_is_open};
use crate::judge::stage::StageFacts;
use crate::panel::Panel;
use protocol::config::Preset;
use protocol::{Finished, RunSpec, Slot, Started};

/// How long a configuration runs before it counts as tried.
const TRIED_MS: u64 = 2_000;

impl App {
    /// Runs the mystery of a seed.
    pub(in crate::app) fn run_mystery(&mut self, seed: u64, level: u8) {
        self.leave_exercise();
        self.end_presentation();
        let mystery = Mystery::draw(seed, level, self.bench.preset.unwrap_or(Preset::Tiny));
        let paths: Vec<String> = offers().map(|knob| knob.path.to_owned()).collect();
        self.bench.comparison = Comparison::new(0, "mystery", mystery.broken.clone(), &paths);
        self.bench.comparison.hidden = true;
        let solved = &self.lesson.study.progress.mysteries;
        let unsolved = !solved.contains_key(&format!("{seed}-{level}"));
        let run = MysteryRun::new(mystery, self.clock.now_ms, unsolved);
        self.mode = Mode::Mystery(Box::new(run));
        (self.lesson.study.pair, self.lesson.study.report) = (None, None);
        self.view.scroll.clear();
        (self.view.overlay, self.view.confirm, self.view.third) = (None, None, None);
        self.begin_with_a();
        self.show_text();
    }

    /// Carries out an action that a mystery handles itself; false for all others.
    pub(in crate::app) fn act_in_mystery(&mut self, action: Action) -> bool {
        let open = self.is_unsolved();
        match action {
            Action::Solution => self.view.confirm = Some(Confirm::GiveUp),
            Action::Pair if open => self.ask_for_verdict(),
            Action::NextStage if !open => {
                let (seed, level) = self.mystery().map_or((1, 1), |it| {
                    (it.mystery.seed.wrapping_add(1), it.mystery.level())
                });
                self.run_mystery(seed, level);
            }
            _ => return false,
        }
        true
    }

    /// Notes which panel was brought up. One that is on the screen anyway costs nothing.
    pub(in crate::app) fn note_looks(&mut self) {
        let (focus, covered) = (self.view.focus, self.view.overlay.is_some());
        let covered = covered || focus.is_some_and(|panel| self.view.always_shows(panel));
        if let Some(mystery) = self.mode.mystery_mut()
            && let Some(panel) = focus.filter(|panel| *panel != Panel::Lesson && !covered)
            && mystery.end.is_none()
        {
            mystery.looked.insert(panel);
        }
    }

    /// A run has begun. If it is B's, its configuration counts as tried once it has run for a while.
    pub(in crate::app) fn note_start(&mut self, started: &Started) {
        let now_ms = self.clock.now_ms;
        if let Some(mystery) = self.mode.mystery_mut() {
            let run = &started.run;
            mystery.present = (run.slot == Slot::B).then(|| (run.config.clone(), now_ms));
        }
    }

    /// A configuration counts as tried once it has run for a while; values that were passed over do not count.
    pub(in crate::app) fn note_tried(&mut self) {
        let now_ms = self.clock.now_ms;
        if let Some(mystery) = self.mode.mystery_mut()
            && mystery.end.is_none()
            && let Some((config, _)) = mystery
                .present
                .take_if(|(_, since)| *since + TRIED_MS <= now_ms)
        {
            mystery.note_tried(&config);
        }
    }

    /// Goes to another line of the list; an unfinished mystery is asked about first.
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
        // A stage is entered anew, also the one from which the mystery was begun.
        let stages = self.lesson.course.stages.len();
        self.go_to(if to < stages {
            to
        } else {
            self.lesson.study.at
        });
        if to >= stages {
            self.view.overlay = Some(Overlay::Stages);
            self.choose(to);
        }
    }

    /// Ends as solved or given up: the faults and A's values are shown.
    pub(in crate::app) fn end_mystery(&mut self, end: MysteryEnd) {
        self.bench.comparison.hidden = false;
        self.view.knobs = false;
        let now_ms = self.clock.now_ms;
        let Some(mystery) = self.mode.mystery_mut() else {
            return;
        };
        mystery.end = Some(end);
        mystery.set_judging(None, now_ms);
        let (name, faults) = (mystery.name(), mystery.mystery.faults.len());
        if let MysteryEnd::Solved { points, .. } = end {
            let known = self.lesson.study.progress.mysteries.entry(name.clone());
            let score = known.or_default();
            (score.last, score.best) = (points, score.best.max(points));
            let score = *score;
            let change = ProgressChange::Mystery(name, score);
            self.effects.push(Effect::Save(change));
            let text = format!("Solved: {points} of {} points", 100 * faults);
            self.tell(&text, false);
        }
        self.show_text();
    }

    /// Judges B: a fresh run of it comes first.
    pub(in crate::app) fn ask_for_verdict(&mut self) {
        if self.open_knobs_if_same() {
            return;
        }
        self.bench.pending.due_ms = None;
        let run = RunSpec {
            steps: Some(STEPS),
            ..self.bench.comparison.run_b()
        };
        self.lesson.study.pair = None;
        self.start(run);
        self.show_text();
        let now_ms = self.clock.now_ms;
        if let Some(mystery) = self.mode.mystery_mut() {
            mystery.note_tried(&self.bench.comparison.config_b);
            mystery.set_judging(Some(JudgeStep::Run), now_ms);
            mystery.report = None;
        }
    }

    /// Notes that pairs compare with A as it was found from now on.
    pub(in crate::app) fn note_pairs_with_a(&mut self) {
        if let Some(mystery) = self.mode.mystery_mut() {
            mystery.paired_with_good = false;
        }
    }

    /// Ends the judging without a verdict, because B changed or something else runs.
    pub(in crate::app) fn cancel_verdict(&mut self) {
        let now_ms = self.clock.now_ms;
        if let Some(mystery) = self.mode.mystery_mut() {
            mystery.set_judging(None, now_ms);
        }
    }

    /// Judges the fresh run of B once it has ended; if only speed is left, measures pairs.
    pub(in crate::app) fn judge_run(&mut self, finished: &Finished) {
        let judging = self.mystery().and_then(|it| it.judging.as_ref());
        if !matches!(judging, Some(JudgeStep::Run)) || finished.slot != Slot::B {
            return;
        }
        let report = evaluate(StageFacts {
            config: Some(&self.bench.comparison.config_b),
            finished: Some(finished),
            ..StageFacts::default()
        });
        if !only_speed_is_open(&report) {
            return self.verdict(report);
        }
        let Some(good) = self.mystery().map(|it| it.mystery.good.clone()) else {
            return;
        };
        let b = self.bench.comparison.run_b();
        let a = RunSpec {
            slot: Slot::A,
            variant: "known good".to_owned(),
            config: good,
            ..b.clone()
        };
        let now_ms = self.clock.now_ms;
        if let Some(mystery) = self.mode.mystery_mut() {
            mystery.set_judging(Some(JudgeStep::Pairs(Box::new(finished.clone()))), now_ms);
            mystery.paired_with_good = true;
            mystery.report = Some(report);
        }
        self.run_pairs(a, b);
    }

    /// Judges the pairs with the known-good configuration once they have ended.
    pub(in crate::app) fn judge_pairs(&mut self) {
        let judging = self.mystery().and_then(|it| it.judging.clone());
        if let Some(JudgeStep::Pairs(finished)) = judging {
            let report = evaluate(StageFacts {
                config: Some(&self.bench.comparison.config_b),
                finished: Some(&finished),
                pair: self.lesson.study.pair.as_ref(),
                quiz_right: None,
            });
            self.verdict(report);
        }
    }

    fn verdict(&mut self, report: StageReport) {
        let passed = report.passed();
        let now_ms = self.clock.now_ms;
        let Some(mystery) = self.mode.mystery_mut() else {
            return;
        };
        mystery.report = Some(report);
        mystery.set_judging(None, now_ms);
        let (seconds, level) = (mystery.seconds(now_ms), mystery.mystery.level());
        let points = score(level, mystery.looked.len(), mystery.changes, seconds);
        if passed {
            self.end_mystery(MysteryEnd::Solved { points, seconds });
        } else {
            self.tell("Not solved yet: the verdict names what is not right", true);
            self.show_text();
        }
        self.start(self.bench.comparison.run_b());
    }

    /// The best score of the open mystery, from this session or an earlier one.
    pub fn mystery_score(&self) -> Option<MysteryScore> {
        let name = self.mystery()?.name();
        self.lesson.study.progress.mysteries.get(&name).copied()
    }
}
