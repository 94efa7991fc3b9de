//! What a stream of events shows, worked out once: screen, report, summary, tables and lints read it and fold no events themselves.
//!
//! A [`RunStory`] is what one run showed; a figure is reached only through its run. A [`StreamStory`] holds the runs of a stream and
//! decides, each time a run begins, to which run the events that follow belong:
//!
//! - A run that begins at step 0 has weights of its own. It is a new run, also where its configuration ran before.
//! - A run that begins later goes on with the weights that were trained last. Where its configuration ran on these weights before,
//!   it goes on with that run's curve and figures; else it is a new run, which notes whose weights it took.
//! - Where another configuration has trained the weights in between, the loss and the gradients of a run stay what they were before that
//!   ([`RunStory::own_loss`]): what it shows since is of weights that both trained.
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

/// Most runs that are kept besides those that the slots show.
const KEPT: usize = 48;

/// The run whose steps the engine makes.
#[derive(Clone, Copy, Debug)]
struct Training {
    number: u64,
    slot: Slot,
    weights: u32,
}

/// What a stream showed so far: its runs, and which of them each slot shows.
#[derive(Clone, Debug, Default)]
pub struct StreamStory {
    /// The engine's greeting.
    pub hello: Hello,
    /// What other programs take of the machine.
    pub load: Option<Load>,
    /// What each process of a watched training does; empty where none is watched.
    pub ranks: Vec<RankReading>,
    /// The run that the stream began with.
    pub first: Option<RunDescription>,
    /// What A and B show; an empty story where that is nothing.
    pub slots: [RunStory; 2],
    /// Runs that neither shows, in the order in which they were put aside.
    earlier: Vec<RunStory>,
    /// The last paired comparison of each stage.
    pairs: Vec<(u32, Pair)>,
    /// Starts from step 0, and runs, so far.
    starts: u32,
    begun: u64,
    training: Option<Training>,
    /// The number of the run that the events of each slot are about; 0 before the first.
    told: [u64; 2],
    /// Whether the steps of a slot are those of pairs.
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
        if slot == Slot::B {
            self.show_longest_a();
        }
        self.share_peaks();
    }

    fn begin_run(&mut self, run: RunDescription, at_ms: u64) {
        let (slot, from_step) = (run.slot, run.from_step);
        let before = self.training.take().filter(|_| from_step > 0);
        if let Some(run) = before.and_then(|it| self.numbered(it.number)) {
            run.trained_to = Some(from_step);
        }
        self.starts += u32::from(before.is_none());
        let weights = before.map_or(self.starts, |it| it.weights);
        let goes_on = |it: &RunStory| {
            let further = it.loss.last().is_none_or(|(last, _)| last < from_step);
            it.is_of(&run) && it.weights == weights && !it.of_pairs && further
        };
        if !goes_on(self.slot(slot)) {
            self.put_aside(slot, goes_on);
        }
        if let Some(new) = self.new_in(slot, at_ms) {
            (new.weights, new.went_on_from) = (weights, before.map(|it| it.slot));
        }
        self.slots[slot as usize].begin(run);
        self.training = Some(Training {
            number: self.slot(slot).number,
            slot,
            weights,
        });
    }

    /// What a run with the same configuration showed stays, because pairs measure times only.
    fn begin_side(&mut self, run: RunDescription, at_ms: u64) {
        let slot = run.slot;
        let ran_alone = |it: &RunStory| it.is_of(&run) && !it.of_pairs;
        if !ran_alone(self.slot(slot)) {
            self.put_aside(slot, ran_alone);
        }
        if let Some(new) = self.new_in(slot, at_ms) {
            new.of_pairs = true;
            new.begin(run);
        }
    }

    /// A new run, where the slot shows nothing.
    fn new_in(&mut self, slot: Slot, at_ms: u64) -> Option<&mut RunStory> {
        let shown = Some(&mut self.slots[slot as usize]);
        let new = shown.filter(|it| !it.has_begun())?;
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
            // A repeat that came less far than another run says nothing more, unless pairs belong to it.
            let repeats = |run: &RunStory| {
                let longer = |it: &RunStory| it.number != run.number && it.steps() >= run.steps();
                run.pair.is_none() && self.alike(run).any(longer)
            };
            let earlier = &self.earlier;
            let oldest = earlier.iter().position(repeats);
            let of_b = || earlier.iter().position(|it| it.description.slot == Slot::B);
            let at = oldest.or_else(of_b).unwrap_or_default();
            self.earlier.remove(at);
        }
    }

    /// Shows this configuration's run in slot B, or nothing. Runs of another B are kept.
    pub fn show_b(&mut self, wanted: impl Fn(&RunStory) -> bool) {
        let is_b = |it: &RunStory| it.description.slot == Slot::B && wanted(it);
        if !is_b(self.slot(Slot::B)) {
            self.put_aside(Slot::B, is_b);
        }
    }

    /// Shows the longest run of A.
    fn show_longest_a(&mut self) {
        let longest = self.longest_a().number;
        if longest != self.slot(Slot::A).number {
            self.put_aside(Slot::A, |it| it.number == longest);
        }
    }

    /// The longest run of A; later runs of A repeat it from the start.
    pub fn longest_a(&self) -> &RunStory {
        let shown = self.slot(Slot::A);
        let longest = self.alike(shown).max_by_key(|it| it.steps());
        longest
            .filter(|it| it.steps() > shown.steps())
            .unwrap_or(shown)
    }

    /// Runs put aside, of the same configuration as this one.
    fn alike<'a>(&'a self, run: &'a RunStory) -> impl Iterator<Item = &'a RunStory> {
        self.earlier.iter().filter(|it| it.is_like(run))
    }

    /// What a slot shows.
    pub fn slot(&self, slot: Slot) -> &RunStory {
        &self.slots[slot as usize]
    }

    /// Every run: those put aside, the oldest first, then those of A and B.
    pub fn runs(&self) -> impl DoubleEndedIterator<Item = &RunStory> {
        let all = self.earlier.iter().chain(&self.slots);
        all.filter(|it| it.has_begun())
    }

    /// The run that the events of a slot are about; none before the first, and none that was forgotten.
    pub fn told(&self, slot: Slot) -> Option<&RunStory> {
        let number = self.told[slot as usize];
        self.runs().find(|it| it.number == number)
    }

    /// The last paired comparison of each stage.
    pub fn pairs(&self) -> &[(u32, Pair)] {
        &self.pairs
    }

    /// The loss of step 0, before any update, of the weights that this run trains: a run that went on with another's weights has
    /// that one's.
    pub fn first_loss(&self, run: &RunStory) -> Option<f64> {
        let mut same = self
            .runs()
            .filter(|it| it.weights == run.weights && !it.of_pairs);
        run.first_loss()
            .or_else(|| same.find_map(RunStory::first_loss))
    }

    /// Forgets all runs, because figures of another stage or device are not compared.
    pub fn forget(&mut self) {
        (self.slots, self.earlier) = Default::default();
    }

    fn numbered(&mut self, number: u64) -> Option<&mut RunStory> {
        let mut runs = self.slots.iter_mut().chain(&mut self.earlier);
        runs.find(|it| it.has_begun() && it.number == number)
    }

    fn note(&mut self, slot: Slot, event: &Event, at_ms: u64) {
        let in_pairs = self.paired[slot as usize];
        if let Some(run) = self.numbered(self.told[slot as usize]) {
            // Steps of pairs begin at 0 again: they are drawn only where no run has a curve.
            if run.of_pairs || !(in_pairs && matches!(event, Event::Step(_))) {
                run.note(event, at_ms);
            }
        }
    }

    fn note_pair(&mut self, pair: &Pair) {
        if pair.n == 0 {
            return;
        }
        let stage = self.told(Slot::A).map_or(0, |it| it.description.stage);
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
        let [a, b] = self.slots.each_mut().map(|it| &mut it.description);
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
