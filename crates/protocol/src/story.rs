//! The story of a stream of events. Screen, report, summary, tables and lints read their figures here, and work nothing out from events.
//!
//! A [`RunStory`] has all figures of one run, and a figure is reached only through its run. A [`StreamStory`] has the runs of a stream.
//! When a run begins, it decides to which run the next events belong:
//!
//! - A run that begins at step 0 has weights of its own. It is always a new run, even if its configuration ran before.
//! - A run that begins later goes on with the weights that were trained last. If its configuration ran on these weights before, it goes on
//!   with that run's curve and figures. Else it is a new run, which records the slot whose weights it took.
//! - If another configuration trained the weights in between, a run keeps the loss and the gradients from before that
//!   ([`RunStory::own_loss`]), because later figures belong to weights that both trained.
//! - Two trainings of other programs that are watched side by side never go on with each other's weights: a run that begins later goes
//!   on with the weights of its own slot.
//! - The two sides of a paired comparison measure times only. Their steps belong to no run. If a configuration never ran alone, its side is
//!   shown as a run of pairs.
//!
//! Each slot shows one run, and other runs are kept. A shows its longest run beside B: all runs of A began with equal weights and batches.

mod description;
mod phases;
mod ranks;
mod run;
mod series;
mod unpaired;

pub use description::RunDescription;
pub use phases::PhaseName;
pub use ranks::{RankPhase, rank_phases};
pub use run::{RunStory, StepReading};
pub use series::{Bucket, Series, ThinCurve};
pub use unpaired::{Unpaired, compare_unpaired};

use crate::stats::roofline::better;
use crate::{Event, Hello, Load, Pair, RankReading, Slot};

/// The largest number of runs that are kept besides those that the slots show.
const KEPT: usize = 48;

/// The run whose steps the engine makes.
#[derive(Clone, Copy, Debug)]
struct Training {
    /// [`RunStory::number`].
    number: u64,
    slot: Slot,
    /// [`RunStory::weights`].
    weights: u32,
}

/// The story of a stream so far: its runs, and the run that each slot shows.
#[derive(Clone, Debug, Default)]
pub struct StreamStory {
    /// The engine's greeting.
    pub hello: Hello,
    /// The load of the machine by other programs.
    pub load: Option<Load>,
    /// The state of each process of a watched training; empty if none is watched.
    pub ranks: Vec<RankReading>,
    /// The run that the stream began with.
    pub first: Option<RunDescription>,
    /// The runs that A and B show; an empty story for a slot that shows none.
    pub slots: [RunStory; 2],
    /// The runs that no slot shows, in the order in which they were put aside.
    earlier: Vec<RunStory>,
    /// The last paired comparison of each stage.
    pairs: Vec<(u32, Pair)>,
    /// The number of starts from step 0 so far.
    starts: u32,
    /// The number of runs so far.
    begun: u64,
    training: Option<Training>,
    /// The number of the run that the events of each slot belong to; 0 before the first run.
    current: [u64; 2],
    /// True for a slot whose steps belong to pairs.
    paired: [bool; 2],
    /// True if an audience reads the figures, for which a rate stays longer on the screen.
    for_audience: bool,
}

impl StreamStory {
    /// Returns an empty story for an audience: a rate stays until the next one is measured from twice as many steps.
    pub fn for_audience() -> Self {
        Self {
            for_audience: true,
            ..Self::default()
        }
    }

    /// Adds an event to the story. `at_ms` is the reader's clock in milliseconds.
    pub fn on_event(&mut self, event: &Event, at_ms: u64) {
        match event {
            Event::Hello(hello) => self.hello.clone_from(hello),
            Event::Load(load) => self.load = Some(load.clone()),
            Event::Ranks { ranks } => self.ranks.clone_from(ranks),
            Event::Started(started) => self.begin(started.into(), at_ms),
            Event::Run(run) => self.begin(run.into(), at_ms),
            Event::Calibrated { .. } => {
                for run in self.slots.iter_mut().chain(&mut self.earlier) {
                    run.on_event(event, at_ms);
                }
            }
            Event::Pair(pair) => self.keep_pair(pair),
            Event::Finished(finished) => match &finished.pair {
                // The summary of a comparison belongs to no single run.
                Some(pair) => self.keep_pair(pair),
                None => self.pass_on(finished.slot, event, at_ms),
            },
            other => {
                if let Some(slot) = other.slot() {
                    self.pass_on(slot, other, at_ms);
                }
            }
        }
    }

    /// Begins a run, which may be a new one, one that goes on, or one side of a paired comparison.
    pub fn begin(&mut self, run: RunDescription, at_ms: u64) {
        let slot = run.slot;
        self.first.get_or_insert_with(|| run.clone());
        self.paired[slot as usize] = run.paired;
        if run.paired {
            self.begin_side(run, at_ms);
        } else {
            self.begin_run(run, at_ms);
        }
        self.current[slot as usize] = self.slot(slot).number;
        // A later run of another program does not repeat an earlier one: only its latest run stands beside B.
        if slot == Slot::B && self.slot(Slot::A).description.hash.is_some() {
            self.show_longest_a();
        }
        self.share_peaks();
    }

    /// Begins a run that trains alone: a new run, or one that goes on.
    fn begin_run(&mut self, run: RunDescription, at_ms: u64) {
        let slot = run.slot;
        let from_step = run.from_step;
        let training = self.training.take();
        let before = if from_step == 0 {
            None
        } else if run.apart {
            self.current(slot).map(|own| Training {
                number: own.number,
                slot,
                weights: own.weights,
            })
        } else {
            training
        };
        if let Some(before) = before
            && let Some(trained) = self.run_mut(before.number)
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

    /// Begins one side of a paired comparison. A run of this configuration keeps its figures, because pairs measure times only.
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

    /// Puts the run of a slot aside. In its place the slot shows the latest earlier run that is `wanted`, or nothing.
    fn put_aside(&mut self, slot: Slot, wanted: impl Fn(&RunStory) -> bool) {
        let next = match self.earlier.iter().rposition(wanted) {
            Some(index) => self.earlier.remove(index),
            None => RunStory::default(),
        };
        let old = std::mem::replace(&mut self.slots[slot as usize], next);
        if old.has_begun() {
            self.earlier.push(old);
        }
        if self.earlier.len() > KEPT {
            let least_useful = self.least_useful();
            self.earlier.remove(least_useful);
        }
    }

    /// Returns the index of the earlier run to forget first: the oldest that a longer run repeats and that no pairs belong to, else the
    /// oldest of B, else the oldest.
    fn least_useful(&self) -> usize {
        let is_repeated = |run: &RunStory| {
            let is_longer =
                |other: &RunStory| other.number != run.number && other.steps() >= run.steps();
            run.pair.is_none() && self.alike(run).any(is_longer)
        };
        let earlier = &self.earlier;
        earlier
            .iter()
            .position(is_repeated)
            .or_else(|| {
                earlier
                    .iter()
                    .position(|run| run.description.slot == Slot::B)
            })
            .unwrap_or_default()
    }

    /// Shows the latest run of B that is `wanted`, or nothing.
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
        self.alike(shown)
            .max_by_key(|run| run.steps())
            .filter(|run| run.steps() > shown.steps())
            .unwrap_or(shown)
    }

    /// Returns the earlier runs that have the configuration of `run`.
    fn alike<'a>(&'a self, run: &'a RunStory) -> impl Iterator<Item = &'a RunStory> {
        self.earlier.iter().filter(|other| other.is_like(run))
    }

    /// Returns the run that a slot shows, which may be empty.
    pub fn slot(&self, slot: Slot) -> &RunStory {
        &self.slots[slot as usize]
    }

    /// Returns all runs: first those put aside, from the oldest on, then those of A and B.
    pub fn runs(&self) -> impl DoubleEndedIterator<Item = &RunStory> {
        self.earlier
            .iter()
            .chain(&self.slots)
            .filter(|run| run.has_begun())
    }

    /// Returns the run that the events of a slot belong to; `None` before the first run, and for a run that was forgotten.
    fn current(&self, slot: Slot) -> Option<&RunStory> {
        let number = self.current[slot as usize];
        self.runs().find(|run| run.number == number)
    }

    /// Returns the last paired comparison of each stage.
    pub fn pairs(&self) -> &[(u32, Pair)] {
        &self.pairs
    }

    /// Returns the loss of step 0 of the weights that a run trains, before any update. A run that continues with the weights of another run
    /// has the first loss of that run.
    pub fn first_loss(&self, run: &RunStory) -> Option<f64> {
        run.first_loss().or_else(|| {
            self.runs()
                .filter(|other| other.weights == run.weights && !other.of_pairs)
                .find_map(RunStory::first_loss)
        })
    }

    /// Forgets all runs, because figures of another stage or device are not compared.
    pub fn forget(&mut self) {
        self.slots = Default::default();
        self.earlier.clear();
    }

    /// Returns the run with this number; `None` if it was forgotten.
    fn run_mut(&mut self, number: u64) -> Option<&mut RunStory> {
        self.slots
            .iter_mut()
            .chain(&mut self.earlier)
            .find(|run| run.has_begun() && run.number == number)
    }

    /// Passes an event on to the run that the events of a slot belong to.
    fn pass_on(&mut self, slot: Slot, event: &Event, at_ms: u64) {
        let in_pairs = self.paired[slot as usize];
        if let Some(run) = self.run_mut(self.current[slot as usize]) {
            // The steps of pairs begin at 0 again, and must not change the curve of a run.
            if run.of_pairs || !(in_pairs && matches!(event, Event::Step(_))) {
                run.on_event(event, at_ms);
            }
        }
    }

    /// Keeps a report of a comparison, which replaces the earlier ones of its stage.
    fn keep_pair(&mut self, pair: &Pair) {
        if pair.n == 0 {
            return;
        }
        let stage = self.current(Slot::A).map_or(0, |run| run.description.stage);
        self.pairs.retain(|(other, _)| *other != stage);
        self.pairs.push((stage, pair.clone()));
        if let Some(b) = self.run_mut(self.current[Slot::B as usize])
            && pair.done
        {
            b.pair = Some(pair.clone());
        }
    }

    /// Gives A and B the best peaks that are known of their device, if it is one device.
    fn share_peaks(&mut self) {
        let [a, b] = self.slots.each_mut().map(|run| &mut run.description);
        if let (Some(peaks_a), Some(peaks_b)) = (&mut a.peaks, &mut b.peaks)
            && a.device == b.device
        {
            **peaks_a = better(peaks_a.as_ref().clone(), peaks_b.as_ref().clone());
            peaks_b.clone_from(peaks_a);
        }
    }
}

#[cfg(test)]
mod tests;
