//! The story of a stream of events. Screen, report, summary, tables and lints read it, and do not work out anything from events themselves.
//!
//! A [`RunStory`] has all figures of one run; a figure is reached only through its run. A [`StreamStory`] has the runs of a stream and
//! decides, each time a run begins, to which run the next events belong:
//!
//! - A run that begins at step 0 has weights of its own. It is a new run, also where its configuration ran before.
//! - A run that begins later goes on with the weights that were trained last. Where its configuration ran on these weights before,
//!   it goes on with that run's curve and figures; else it is a new run, which notes whose weights it took.
//! - Where another configuration has trained the weights in between, the loss and the gradients of a run stay what they were before that
//!   ([`RunStory::own_loss`]): later figures belong to weights that both trained.
//! - Two trainings of other programs that are watched side by side never go on with each other's weights: a run that begins later goes
//!   on with the weights of its own slot.
//! - The two sides of pairs measure times. Their steps belong to no run; where a configuration never ran alone, they are shown as a run
//!   of pairs.
//!
//! Each slot shows one run, the others are kept. Beside B stands the longest run of A, which began with the same weights and batches.

mod description;
mod phases;
mod ranks;
mod run;
mod series;
mod unpaired;

pub use description::RunDescription;
pub use phases::{PhaseName, Phases};
pub use ranks::{RankPhase, rank_phases};
pub use run::{RunStory, StepReading, Told};
pub use series::{Bucket, Series, ThinCurve};
pub use unpaired::{Unpaired, unpaired};

use crate::stats::roofline::better;
use crate::{Event, Hello, Load, Pair, RankReading, Slot};

/// The largest number of runs that are kept besides those that the slots show.
const KEPT: usize = 48;

/// The run whose steps the engine makes.
#[derive(Clone, Copy, Debug)]
struct Training {
    number: u64,
    slot: Slot,
    weights: u32,
}

/// The story of a stream so far: its runs, and the run that each slot shows.
#[derive(Clone, Debug, Default)]
pub struct StreamStory {
    /// The engine's greeting.
    pub hello: Hello,
    /// The load of the machine by other programs.
    pub load: Option<Load>,
    /// What each process of a watched training does; empty where none is watched.
    pub ranks: Vec<RankReading>,
    /// The run that the stream began with.
    pub first: Option<RunDescription>,
    /// The runs that A and B show; an empty story for a slot that shows none.
    pub slots: [RunStory; 2],
    /// Runs that neither shows, in the order in which they were put aside.
    earlier: Vec<RunStory>,
    /// The last paired comparison of each stage.
    pairs: Vec<(u32, Pair)>,
    /// The number of starts from step 0 so far.
    starts: u32,
    /// The number of runs so far.
    begun: u64,
    training: Option<Training>,
    /// The number of the run that the events of each slot are about; 0 before the first.
    told: [u64; 2],
    /// True for a slot whose steps belong to pairs.
    paired: [bool; 2],
    /// An audience reads it: a rate stays longer than for one reader.
    for_audience: bool,
}

impl StreamStory {
    /// An empty story whose rates stay until they are of twice as many steps, because an audience reads them.
    pub fn for_audience() -> Self {
        Self {
            for_audience: true,
            ..Self::default()
        }
    }

    /// Takes an event in. `at_ms` is the reader's clock in milliseconds.
    pub fn hear(&mut self, event: &Event, at_ms: u64) {
        match event {
            Event::Hello(hello) => self.hello.clone_from(hello),
            Event::Load(load) => self.load = Some(load.clone()),
            Event::Ranks { ranks } => self.ranks.clone_from(ranks),
            Event::Started(started) => self.begin(started.into(), at_ms),
            Event::Run(run) => self.begin(run.into(), at_ms),
            Event::Calibrated { .. } => {
                let runs = self.slots.iter_mut().chain(&mut self.earlier);
                runs.for_each(|run| run.note(event, at_ms));
            }
            Event::Pair(pair) => self.note_pair(pair),
            Event::Finished(finished) => match &finished.pair {
                // The summary of a comparison is about no single run.
                Some(pair) => self.note_pair(pair),
                None => self.note(finished.slot, event, at_ms),
            },
            other => {
                if let Some(slot) = other.slot() {
                    self.note(slot, other, at_ms);
                }
            }
        }
    }

    /// A run begins: it goes on from one that is known, or is a new one, or is one side of pairs.
    pub fn begin(&mut self, run: RunDescription, at_ms: u64) {
        let slot = run.slot;
        self.first.get_or_insert_with(|| run.clone());
        self.paired[slot as usize] = run.paired;
        if run.paired {
            self.begin_side(run, at_ms);
        } else {
            self.begin_run(run, at_ms);
        }
        self.told[slot as usize] = self.slot(slot).number;
        // A later run of another program does not repeat an earlier one: only its latest run stands beside B.
        if slot == Slot::B && self.slot(Slot::A).description.hash.is_some() {
            self.show_longest_a();
        }
        self.share_peaks();
    }

    fn begin_run(&mut self, run: RunDescription, at_ms: u64) {
        let slot = run.slot;
        let from_step = run.from_step;
        let training = self.training.take();
        let before = match (from_step, run.apart) {
            (0, _) => None,
            (_, false) => training,
            (_, true) => self.told(slot).map(|own| Training {
                number: own.number,
                slot,
                weights: own.weights,
            }),
        };
        if let Some(before) = before
            && let Some(trained) = self.numbered(before.number)
        {
            trained.trained_to = Some(from_step);
        }
        self.starts += u32::from(before.is_none());
        let weights = before.map_or(self.starts, |before| before.weights);
        let continues = |other: &RunStory| {
            let is_later = other.loss.last().is_none_or(|(last, _)| last < from_step);
            other.is_of(&run) && other.weights == weights && !other.of_pairs && is_later
        };
        if !continues(self.slot(slot)) {
            self.put_aside(slot, continues);
        }
        if let Some(new) = self.new_in(slot, at_ms) {
            new.weights = weights;
            new.went_on_from = before.map(|before| before.slot);
        }
        self.slots[slot as usize].begin(run);
        self.training = Some(Training {
            number: self.slot(slot).number,
            slot,
            weights,
        });
    }

    /// Begins one side of pairs. A run of this configuration keeps its figures, because pairs measure times only.
    fn begin_side(&mut self, run: RunDescription, at_ms: u64) {
        let slot = run.slot;
        let ran_alone = |other: &RunStory| other.is_of(&run) && !other.of_pairs;
        if !ran_alone(self.slot(slot)) {
            self.put_aside(slot, ran_alone);
        }
        if let Some(new) = self.new_in(slot, at_ms) {
            new.of_pairs = true;
            new.begin(run);
        }
    }

    /// Returns a new run in a slot; `None` if the slot shows a run already.
    fn new_in(&mut self, slot: Slot, at_ms: u64) -> Option<&mut RunStory> {
        let new = &mut self.slots[slot as usize];
        if new.has_begun() {
            return None;
        }
        self.begun += 1;
        new.number = self.begun;
        new.began_ms = at_ms;
        new.for_audience = self.for_audience;
        new.date.clone_from(&self.hello.date);
        Some(new)
    }

    /// Puts the run of a slot aside, and shows there the latest one put aside that is `wanted`, or nothing.
    fn put_aside(&mut self, slot: Slot, wanted: impl Fn(&RunStory) -> bool) {
        let found = self.earlier.iter().rposition(wanted);
        let found = found.map(|at| self.earlier.remove(at));
        let old = std::mem::replace(&mut self.slots[slot as usize], found.unwrap_or_default());
        if old.has_begun() {
            self.earlier.push(old);
        }
        if self.earlier.len() > KEPT {
            // A run with a longer repeat has no further figures, unless pairs belong to it.
            let is_repeated = |run: &RunStory| {
                let is_longer =
                    |other: &RunStory| other.number != run.number && other.steps() >= run.steps();
                run.pair.is_none() && self.alike(run).any(is_longer)
            };
            let mut slots = self.earlier.iter().map(|run| run.description.slot);
            let oldest = self.earlier.iter().position(is_repeated);
            let of_b = || slots.position(|slot| slot == Slot::B);
            let at = oldest.or_else(of_b).unwrap_or_default();
            self.earlier.remove(at);
        }
    }

    /// Shows this configuration's run in slot B, or nothing. Runs of another B are kept.
    pub fn show_b(&mut self, wanted: impl Fn(&RunStory) -> bool) {
        let is_b = |run: &RunStory| run.description.slot == Slot::B && wanted(run);
        if !is_b(self.slot(Slot::B)) {
            self.put_aside(Slot::B, is_b);
        }
    }

    /// Shows the longest run of A.
    fn show_longest_a(&mut self) {
        let longest = self.longest_a().number;
        if longest != self.slot(Slot::A).number {
            self.put_aside(Slot::A, |run| run.number == longest);
        }
    }

    /// Returns the longest run of A. Later runs of A repeat it from the start.
    pub fn longest_a(&self) -> &RunStory {
        let shown = self.slot(Slot::A);
        let longest = self.alike(shown).max_by_key(|run| run.steps());
        longest
            .filter(|run| run.steps() > shown.steps())
            .unwrap_or(shown)
    }

    /// Returns the runs put aside that have the configuration of a run.
    fn alike<'a>(&'a self, run: &'a RunStory) -> impl Iterator<Item = &'a RunStory> {
        self.earlier.iter().filter(|other| other.is_like(run))
    }

    /// Returns the run that a slot shows, which may be empty.
    pub fn slot(&self, slot: Slot) -> &RunStory {
        &self.slots[slot as usize]
    }

    /// Returns all runs: first those put aside, from the oldest on, then those of A and B.
    pub fn runs(&self) -> impl DoubleEndedIterator<Item = &RunStory> {
        let all = self.earlier.iter().chain(&self.slots);
        all.filter(|run| run.has_begun())
    }

    /// Returns the run that the events of a slot belong to; `None` before the first run, and for a run that was forgotten.
    pub fn told(&self, slot: Slot) -> Option<&RunStory> {
        let number = self.told[slot as usize];
        self.runs().find(|run| run.number == number)
    }

    /// Returns the last paired comparison of each stage.
    pub fn pairs(&self) -> &[(u32, Pair)] {
        &self.pairs
    }

    /// Returns the loss of step 0 of the weights that a run trains, before any update. A run that continues with the weights of another run
    /// has the first loss of that run.
    pub fn first_loss(&self, run: &RunStory) -> Option<f64> {
        let mut with_weights = self
            .runs()
            .filter(|other| other.weights == run.weights && !other.of_pairs);
        run.first_loss()
            .or_else(|| with_weights.find_map(RunStory::first_loss))
    }

    /// Forgets all runs, because figures of another stage or device are not compared.
    pub fn forget(&mut self) {
        (self.slots, self.earlier) = Default::default();
    }

    fn numbered(&mut self, number: u64) -> Option<&mut RunStory> {
        let mut runs = self.slots.iter_mut().chain(&mut self.earlier);
        runs.find(|run| run.has_begun() && run.number == number)
    }

    fn note(&mut self, slot: Slot, event: &Event, at_ms: u64) {
        let in_pairs = self.paired[slot as usize];
        if let Some(run) = self.numbered(self.told[slot as usize]) {
            // Steps of pairs begin at 0 again. They are drawn only if no run has a curve.
            if run.of_pairs || !(in_pairs && matches!(event, Event::Step(_))) {
                run.note(event, at_ms);
            }
        }
    }

    fn note_pair(&mut self, pair: &Pair) {
        if pair.n == 0 {
            return;
        }
        let stage = self.told(Slot::A).map_or(0, |run| run.description.stage);
        self.pairs.retain(|(of, _)| *of != stage);
        self.pairs.push((stage, pair.clone()));
        if let Some(b) = self.numbered(self.told[Slot::B as usize])
            && pair.done
        {
            b.pair = Some(pair.clone());
        }
    }

    /// A and B are shown against the best peaks that are known of their device.
    fn share_peaks(&mut self) {
        let [a, b] = self.slots.each_mut().map(|run| &mut run.description);
        if let (Some(of_a), Some(of_b)) = (&mut a.roof, &mut b.roof)
            && a.device == b.device
        {
            **of_a = better(of_a.as_ref().clone(), of_b.as_ref().clone());
            of_b.clone_from(of_a);
        }
    }
}

#[cfg(test)]
mod tests;
