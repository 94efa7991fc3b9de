//! A mystery run: A trains with faults that nobody names, the learner changes B until it is judged right. The judge takes a
//! fresh run of B first, and pairs with the known-good configuration only where that run leaves nothing but the speed open.

use std::collections::BTreeSet;

use super::fix::Fix;
use super::view::{Confirm, Overlay};
use super::{Action, App, Effect, Mode, Panel, SlotRun};
use crate::config::Preset;
use crate::course::mystery::{LEVELS, Riddle, offers, score};
use crate::course::progress::{MysteryScore, Progress};
use crate::judge::Report;
use crate::judge::mystery::{STEPS, evaluate, only_speed_is_open};
use crate::judge::stage::Measured;
use crate::protocol::{Command, Finished, RunSpec, Slot, Started};

/// What is known of the open mystery.
#[derive(Clone, Debug)]
pub struct Mystery {
    pub riddle: Riddle,
    pub began_ms: u64,
    /// Panels that were brought into focus.
    pub looked: BTreeSet<Panel>,
    /// Configurations of B that ran, by hash.
    pub tried: BTreeSet<String>,
    pub judging: Option<Judging>,
    /// The last pairs had the known-good configuration as A.
    pub in_pairs: bool,
    /// The last verdict.
    pub report: Option<Report>,
    pub end: Option<End>,
}

/// What the judge measures now.
#[derive(Clone, Debug)]
pub enum Judging {
    /// So many steps of B from its beginning.
    Run,
    /// The known-good configuration against B; what the run before has shown.
    Pairs(Box<Finished>),
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Solved { points: u32, seconds: u64 },
    GivenUp,
}

impl Mystery {
    fn new(riddle: Riddle, began_ms: u64) -> Self {
        Self {
            riddle,
            began_ms,
            looked: BTreeSet::new(),
            tried: BTreeSet::new(),
            judging: None,
            in_pairs: false,
            report: None,
            end: None,
        }
    }

    pub fn seconds(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.began_ms) / 1000
    }

    /// The name of its line in the progress: `7-2`.
    pub fn name(&self) -> String {
        format!("{}-{}", self.riddle.seed, self.riddle.level())
    }
}

/// The first seed of the level that the learner has not solved.
pub fn unsolved(progress: &Progress, level: u8) -> u64 {
    let solved = |seed: &u64| progress.mysteries.contains_key(&format!("{seed}-{level}"));
    (1..).find(|seed| !solved(seed)).unwrap_or(1)
}

/// Solved mysteries of a level after which the list offers the next level.
const ENOUGH: usize = 3;

/// The level that the list offers.
pub fn next_level(progress: &Progress) -> u8 {
    let solved = |level: &u8| {
        let end = format!("-{level}");
        let names = progress.mysteries.keys();
        names.filter(|name| name.ends_with(&end)).count()
    };
    (1..LEVELS)
        .find(|level| solved(level) < ENOUGH)
        .unwrap_or(LEVELS)
}

impl App {
    /// The open mystery.
    pub fn mystery(&self) -> Option<&Mystery> {
        match &self.mode {
            Mode::Mystery(mystery) => Some(mystery),
            _ => None,
        }
    }

    fn mystery_mut(&mut self) -> Option<&mut Mystery> {
        match &mut self.mode {
            Mode::Mystery(mystery) => Some(mystery),
            _ => None,
        }
    }

    /// Runs the riddle of a seed.
    pub(super) fn run_mystery(&mut self, seed: u64, level: u8) {
        self.leave_exercise();
        let riddle = Riddle::draw(seed, level, self.preset.unwrap_or(Preset::Tiny));
        let paths: Vec<String> = offers().map(|knob| knob.path.to_owned()).collect();
        self.fix = Fix::new(0, "mystery", riddle.broken.clone(), &paths);
        self.fix.hidden = true;
        (self.mode, self.presentation) = (
            Mode::Mystery(Box::new(Mystery::new(riddle, self.now_ms))),
            None,
        );
        (self.study.pair, self.study.report) = (None, None);
        self.view.scroll.clear();
        (self.view.overlay, self.view.confirm, self.view.third) = (None, None, None);
        let first = self.run.wanted.is_none();
        self.run.slots = [SlotRun::default(), SlotRun::default()];
        self.start(self.fix.a());
        self.show_text();
        if first {
            self.first_contact();
        }
    }

    /// What an action means in a mystery; false where it means there what it means everywhere.
    pub(super) fn act_in_mystery(&mut self, action: Action) -> bool {
        let open = self.riddle();
        match action {
            Action::Solution if open => self.view.confirm = Some(Confirm::GiveUp),
            Action::Report if open => {
                self.tell(
                    "A report would name the faults: end the mystery first",
                    false,
                );
            }
            Action::Pair if open => self.ask_for_verdict(),
            Action::NextStage if !open => {
                let (seed, level) = self.mystery().map_or((1, 1), |it| {
                    (it.riddle.seed.wrapping_add(1), it.riddle.level())
                });
                self.run_mystery(seed, level);
            }
            Action::Choose | Action::ChooseLine(_)
                if self.view.overlay != Some(Overlay::Stages) =>
            {
                return false;
            }
            Action::Choose => self.leave_mystery(self.view.selected),
            Action::ChooseLine(line) => self.leave_mystery(line),
            Action::Stage(number) => {
                let mut stages = self.course.stages.iter();
                match stages.position(|stage| stage.number == number) {
                    Some(at) => self.leave_mystery(at),
                    None => return false,
                }
            }
            Action::NextStage | Action::PreviousStage => self.leave_mystery(self.study.at),
            Action::Reset => self.tell("There is nothing to put back here", false),
            _ => return false,
        }
        true
    }

    /// Notes what was looked at and tried.
    pub(super) fn note_looks(&mut self) {
        let (focus, covered) = (self.view.focus, self.view.overlay.is_some());
        if let Some(mystery) = self.mystery_mut()
            && let Some(panel) = focus.filter(|panel| *panel != Panel::Lesson && !covered)
            && mystery.end.is_none()
        {
            mystery.looked.insert(panel);
        }
    }

    /// A run of B has begun: another configuration was tried.
    pub(super) fn note_tried(&mut self, started: &Started) {
        if started.run.slot == Slot::B
            && let Some(mystery) = self.mystery_mut()
            && mystery.end.is_none()
        {
            mystery.tried.insert(started.config.clone());
        }
    }

    /// Goes to another line of the list; an unfinished mystery is asked about first.
    fn leave_mystery(&mut self, to: usize) {
        if self.riddle() {
            self.view.overlay = None;
            self.view.confirm = Some(Confirm::LeaveMystery { to });
        } else {
            self.left_mystery(to);
        }
    }

    pub(super) fn left_mystery(&mut self, to: usize) {
        self.mode = Mode::Stage;
        (self.fix, self.run.slots) = (Fix::default(), Default::default());
        // A stage is entered anew, also the one from which the mystery was begun.
        let stages = self.course.stages.len();
        self.enter(if to < stages { to } else { self.study.at });
        if to >= stages {
            self.view.overlay = Some(Overlay::Stages);
            self.choose(to);
        }
    }

    /// Gives up, or ends as solved: the faults are shown, and the knobs hide nothing any more.
    fn end_mystery(&mut self, end: End) {
        self.fix.hidden = false;
        self.view.knobs = false;
        let Some(mystery) = self.mystery_mut() else {
            return;
        };
        (mystery.end, mystery.judging) = (Some(end), None);
        let (name, faults) = (mystery.name(), mystery.riddle.faults.len());
        if let End::Solved { points, .. } = end {
            let known = self.study.progress.mysteries.entry(name.clone());
            let score = known.or_default();
            (score.last, score.best) = (points, score.best.max(points));
            let score = *score;
            self.effects.push(Effect::SaveMystery { name, score });
            let text = format!("Solved: {points} of {} points", 100 * faults);
            self.tell(&text, false);
        }
        self.show_text();
    }

    pub(super) fn give_up(&mut self) {
        self.end_mystery(End::GivenUp);
    }

    /// Judges B: a fresh run of it comes first.
    pub(super) fn ask_for_verdict(&mut self) {
        if self.knobs_first() {
            return;
        }
        self.fix.due_ms = None;
        let run = RunSpec {
            steps: Some(STEPS),
            ..self.fix.b()
        };
        self.study.pair = None;
        self.start(run);
        self.show_text();
        if let Some(mystery) = self.mystery_mut() {
            (mystery.judging, mystery.report) = (Some(Judging::Run), None);
        }
    }

    /// After the end A is what was found again, in pairs as well.
    pub(super) fn pairs_of_a_and_b(&mut self) {
        if let Some(mystery) = self.mystery_mut() {
            mystery.in_pairs = false;
        }
    }

    /// B changed, or something else runs: there will be no verdict.
    pub(super) fn no_verdict(&mut self) {
        if let Some(mystery) = self.mystery_mut() {
            mystery.judging = None;
        }
    }

    /// The run that is judged has ended.
    pub(super) fn judged_run(&mut self, finished: &Finished) {
        let judging = self.mystery().and_then(|it| it.judging.as_ref());
        if !matches!(judging, Some(Judging::Run)) || finished.slot != Slot::B {
            return;
        }
        let report = evaluate(Measured {
            config: Some(&self.fix.mine),
            finished: Some(finished),
            ..Measured::default()
        });
        if !only_speed_is_open(&report) {
            return self.verdict(report);
        }
        let (b, good) = (
            self.fix.b(),
            self.mystery().map(|it| it.riddle.good.clone()),
        );
        let Some(good) = good else {
            return;
        };
        let a = RunSpec {
            slot: Slot::A,
            variant: "known good".to_owned(),
            config: good,
            ..b.clone()
        };
        self.expect(vec![a.clone(), b.clone()]);
        self.run.pairing = true;
        if let Some(mystery) = self.mystery_mut() {
            mystery.judging = Some(Judging::Pairs(Box::new(finished.clone())));
            mystery.in_pairs = true;
            mystery.report = Some(report);
        }
        self.send(Command::Pair {
            device: self.devices.using.clone(),
            stage: 0,
            a,
            b,
            pairs: 0,
        });
    }

    /// The pairs with the known-good configuration have ended.
    pub(super) fn judged_pairs(&mut self) {
        let judging = self.mystery().and_then(|it| it.judging.clone());
        if let Some(Judging::Pairs(finished)) = judging {
            let report = evaluate(Measured {
                config: Some(&self.fix.mine),
                finished: Some(&finished),
                pair: self.study.pair.as_ref(),
                quiz_right: None,
            });
            self.verdict(report);
        }
    }

    fn verdict(&mut self, report: Report) {
        let passed = report.passed();
        let now_ms = self.now_ms;
        let Some(mystery) = self.mystery_mut() else {
            return;
        };
        (mystery.report, mystery.judging) = (Some(report), None);
        let (seconds, level) = (mystery.seconds(now_ms), mystery.riddle.level());
        let points = score(level, mystery.looked.len(), mystery.tried.len(), seconds);
        if passed {
            self.end_mystery(End::Solved { points, seconds });
        } else {
            self.tell("Not solved yet: the verdict names what is not right", true);
            self.show_text();
        }
        self.start(self.fix.b());
    }
}

impl App {
    /// The best score of the open mystery, from this session or an earlier one.
    pub fn mystery_score(&self) -> Option<MysteryScore> {
        let name = self.mystery()?.name();
        self.study.progress.mysteries.get(&name).copied()
    }
}
