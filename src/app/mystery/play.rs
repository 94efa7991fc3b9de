//! How a mystery is played. The judge first makes a fresh run of B, because weights that a fault has ruined say nothing about B. It
//! measures pairs with the known-good configuration only if that run meets every criterion but speed.

use super::{JudgeStep, MysteryEnd, MysteryRun};
use crate::app::bench::Bench;
use crate::app::comparison::Comparison;
use crate::app::part::{Follow, Follows, Place};
use crate::app::study::Study;
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

/// How long a configuration runs before it counts as tried.
const TRIED_MS: u64 = 2_000;

/// What a mystery reads of other parts.
pub(in crate::app) struct Context<'a> {
    pub study: &'a Study,
    pub bench: &'a Bench,
    /// In milliseconds since the program began.
    pub now_ms: u64,
}

impl App {
    /// Runs the mystery of a seed.
    pub(in crate::app) fn run_mystery(&mut self, seed: u64, level: u8) {
        self.leave_exercise();
        self.end_presentation();
        let mystery = Mystery::draw(seed, level, self.bench.preset.unwrap_or(Preset::Tiny));
        let paths: Vec<String> = offers().map(|knob| knob.path.to_owned()).collect();
        let comparison = Comparison::new(0, "mystery", mystery.broken.clone(), &paths);
        self.bench.compare(comparison);
        self.bench.comparison.hidden = true;
        let solved = &self.lesson.study.progress.mysteries;
        let unsolved = !solved.contains_key(&format!("{seed}-{level}"));
        let run = MysteryRun::new(mystery, self.clock.now_ms, unsolved);
        self.mode = Mode::Mystery(Box::new(run));
        (self.lesson.study.pair, self.lesson.study.report) = (None, None);
        self.view.scroll.clear();
        (self.view.overlay, self.view.confirm, self.view.third) = (None, None, None);
        self.begin_with_a();
        self.view.show_text();
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

    /// Judges B: a fresh run of it comes first.
    pub(in crate::app) fn ask_for_verdict(&mut self) {
        if !self.open_knobs_if_same() {
            self.bench.pending.due_ms = None;
            self.lesson.study.pair = None;
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
    /// The best score of this mystery, from this session or an earlier one.
    pub fn score(&self, study: &Study) -> Option<MysteryScore> {
        study.progress.mysteries.get(&self.name()).copied()
    }

    /// Carries out an action that a mystery handles itself.
    pub(in crate::app) fn update(&self, action: Action) -> Option<Follows> {
        Some(match action {
            Action::Solution => vec![Follow::Confirm(Confirm::GiveUp)],
            Action::NextStage if self.end.is_some() => {
                let (seed, level) = (self.mystery.seed.wrapping_add(1), self.mystery.level());
                vec![Follow::Go(Place::Mystery { seed, level })]
            }
            _ => return None,
        })
    }

    /// Notes which panel was brought up. One that is on the screen anyway costs nothing.
    pub(in crate::app) fn note_looks(&mut self, view: &View) {
        let brought = |panel: &Panel| *panel != Panel::Lesson && !view.always_shows(*panel);
        let panel = view.focus.filter(brought);
        if view.overlay.is_none() && self.end.is_none() {
            self.looked.extend(panel);
        }
    }

    /// A run has begun. If it is B's, its configuration counts as tried once it has run for a while.
    pub(in crate::app) fn note_start(&mut self, started: &Started, now_ms: u64) {
        let run = &started.run;
        self.present = (run.slot == Slot::B).then(|| (run.config.clone(), now_ms));
    }

    /// A configuration counts as tried once it has run for a while; values that were passed over do not count.
    pub(in crate::app) fn note_time(&mut self, now_ms: u64) {
        let ran = |(_, since): &mut (_, u64)| *since + TRIED_MS <= now_ms;
        if self.end.is_none()
            && let Some((config, _)) = self.present.take_if(ran)
        {
            self.note_tried(&config);
        }
    }

    /// Ends as solved or given up: the faults and A's values are shown.
    pub(in crate::app) fn finish(&mut self, end: MysteryEnd, now_ms: u64) -> Follows {
        self.end = Some(end);
        self.set_judging(None, now_ms);
        let mut follows = vec![Follow::Reveal];
        if let MysteryEnd::Solved { points, .. } = end {
            let of = 100 * self.mystery.faults.len();
            let name = self.name();
            follows.push(Follow::KeepScore(name, points));
            follows.push(Follow::tell(format!("Solved: {points} of {of} points")));
        }
        follows.push(Follow::ShowText);
        follows
    }

    /// Begins to judge B.
    fn run_for_verdict(&mut self, context: &Context) -> Follows {
        self.note_tried(&context.bench.comparison.config_b);
        self.set_judging(Some(JudgeStep::Run), context.now_ms);
        self.report = None;
        let run = RunSpec {
            steps: Some(STEPS),
            ..context.bench.comparison.run_b()
        };
        vec![Follow::Run(run), Follow::ShowText]
    }

    /// Judges the fresh run of B once it has ended; if only speed is left, measures pairs.
    pub(in crate::app) fn judge_run(&mut self, finished: &Finished, context: &Context) -> Follows {
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
        vec![Follow::Pairs([a, b])]
    }

    /// Judges the pairs with the known-good configuration once they have ended.
    pub(in crate::app) fn judge_pairs(&mut self, context: &Context) -> Follows {
        let Some(JudgeStep::Pairs(finished)) = self.judging.clone() else {
            return Vec::new();
        };
        let report = evaluate(StageFacts {
            config: Some(&context.bench.comparison.config_b),
            finished: Some(&finished),
            pair: context.study.pair.as_ref(),
            quiz_right: None,
        });
        self.verdict(report, context)
    }

    fn verdict(&mut self, report: StageReport, context: &Context) -> Follows {
        let (passed, now_ms) = (report.passed(), context.now_ms);
        self.report = Some(report);
        self.set_judging(None, now_ms);
        let (seconds, level) = (self.seconds(now_ms), self.mystery.level());
        let points = score(level, self.looked.len(), self.changes, seconds);
        let mut follows = if passed {
            self.finish(MysteryEnd::Solved { points, seconds }, now_ms)
        } else {
            let text = "Not solved yet: the verdict names what is not right";
            vec![Follow::Warn(text.to_owned()), Follow::ShowText]
        };
        follows.push(Follow::Run(RunSpec {
            sealed: !passed,
            ..context.bench.comparison.run_b()
        }));
        follows
    }
}
