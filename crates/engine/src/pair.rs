//! Two configurations on one device, the same seed and batches, interleaved A B B A or B A A B, so that drift cancels.
//!
//! Both sides run on one thread. On threads of their own, the system's choice of cores favoured one of them for many steps. The order of the
//! sides is drawn for every four steps, with a seed of its own for each comparison.
//!
//! The plan is fixed before the first pair, from the pace of the warm-up: a limit of pairs, and a limit of time that is half as much again as
//! these pairs should take. The first `Pair` event, with `n` 0, carries both. Where the time ends the comparison, the pairs so far are the last
//! look. Ratio, interval and both medians are those of one look (`stats::sequential` says when it is looked and what a look says). In a pair
//! with a side whose launches are recorded, neither side waits between phases. A change of B begins the pairs again.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::Result;

use super::devices::OpenDevice;
use super::host::ensure_memory;
use super::queue::Queue;
use super::trainer::{announce, started};
use super::wire::EventSender;
use super::worker::{PhaseTasks, TO_RECORD, Worker};
use protocol::config::{Knob, RunConfig, Sync};
use protocol::random::Rng;
use protocol::stats::robust::{median, spread};
use protocol::stats::sequential::{FIRST_LOOK, PairPlan, ratio};
use protocol::{Event, Finished, Look, Num, Pair, RunSpec, Slot, Started, Step, Verdict};
use tiny_llama::data::BatchSource;

/// Where no number of pairs is asked for: the seconds that they may take, and the fewest and most of them.
const SECONDS: f64 = 60.0;
const FEWEST: u32 = 2 * FIRST_LOOK;
const MOST: u32 = 16 * FIRST_LOOK;
/// How many times as long as at the warm-up's pace the pairs may take before they are ended.
const PATIENCE: f64 = 1.5;

/// A comparison in progress.
pub(crate) struct Paired {
    opened: OpenDevice,
    sides: [Side; 2],
    both: BothWorkers,
    plan: PairPlan,
    times: Vec<(f64, f64)>,
    /// For the order in which the sides run.
    seed: u64,
    began: Instant,
    pub last: Pair,
    /// The side whose loss is not finite, and why that ends the pairs: there is no ratio of what diverged.
    diverged: Option<(Slot, String)>,
    outlet: EventSender,
}

/// The workers of both sides in turn on one thread, so that where the system runs it does not favour one of them.
struct BothWorkers {
    queue: Queue,
    /// The worker of the side that is not in the queue.
    parked: Option<Worker>,
    active: Slot,
}

impl BothWorkers {
    fn new(a: &RunSpec, b: &RunSpec, opened: &OpenDevice) -> Result<Self> {
        let [make_a, make_b] = [a, b].map(|spec| Worker::maker(&spec.config, opened));
        let mut queue = Queue::new(opened.queued, make_a)?;
        let parked = Some(queue.ask(move |_| make_b())??);
        Ok(Self {
            queue,
            parked,
            active: Slot::A,
        })
    }

    /// The queue with the worker of this side.
    fn of(&mut self, slot: Slot) -> Result<&mut Queue> {
        if slot != self.active
            && let Some(other) = self.parked.take()
        {
            let queue = &mut self.queue;
            let swapped = queue.ask(move |worker| std::mem::replace(worker, other))?;
            (self.parked, self.active) = (Some(swapped), slot);
        }
        Ok(&mut self.queue)
    }
}

struct Side {
    spec: RunSpec,
    source: BatchSource,
    step: u64,
    /// What the host submits for a step, and whether it waits after each part.
    tasks: PhaseTasks,
    waits: bool,
}

impl Side {
    /// `alike`: both sides have phases to wait between, so that they wait equally often.
    fn new(spec: RunSpec, on_cpu: bool, alike: bool) -> Self {
        Self {
            source: BatchSource::new(&spec.config),
            step: 0,
            tasks: Worker::tasks(&spec.config, on_cpu),
            waits: alike && spec.config.measure.sync == Sync::PerPhase,
            spec,
        }
    }

    /// Makes one step and returns its milliseconds, bracketed by syncs, or why the pairs end: the loss is not finite. Inside the step are the
    /// syncs that its configuration asks for.
    fn step(
        &mut self,
        both: &mut BothWorkers,
        outlet: &EventSender,
    ) -> Result<Result<f64, String>> {
        let queue = both.of(self.spec.slot)?;
        let batch = self.source.batch(self.step);
        queue.ask(move |worker| worker.load(&batch))?;
        queue.sync()?;
        let began = Instant::now();
        for task in self.tasks {
            queue.submit(*task)?;
            if self.waits {
                queue.sync()?;
            }
        }
        queue.sync()?;
        let ms = began.elapsed().as_secs_f64() * 1e3;
        let loss = queue.ask(Worker::losses)??.pop().unwrap_or(f64::NAN);
        outlet.send(Event::Step(Step {
            slot: self.spec.slot,
            step: self.step,
            loss: Some(Num(loss)),
            ms,
            synced: true,
            ..Step::default()
        }));
        if !loss.is_finite() {
            return Ok(Err(format!("not-finite: loss at step {}", self.step)));
        }
        self.step += 1;
        Ok(Ok(ms))
    }
}

impl Paired {
    /// Builds both models and warms both up.
    pub(crate) fn new(
        request: u64,
        [a, b]: [RunSpec; 2],
        pairs: u32,
        opened: OpenDevice,
        outlet: EventSender,
    ) -> Result<Self> {
        if opened.queued {
            let need = RunConfig::memory_in_turns(&[&a.config, &b.config]);
            ensure_memory("a paired run holds two models:", need, 0)?;
        }
        let differs = a.config.differences(&b.config).into_iter();
        let differs: Vec<_> = differs.map(str::to_owned).collect();
        let other_tokens = |path: &String| Knob::known(path).is_some_and(Knob::changes_tokens);
        let tokens = [&a, &b].map(|side| side.config.tokens_per_step() as u64);
        let tokens = differs.iter().any(other_tokens).then_some(tokens);
        let records = [&a, &b].map(|side| Worker::records(&side.config, opened.queued));
        let records = records.contains(&true);
        let warmup = a.config.measure.warmup.clamp(2, 10);
        let warmup = warmup.max(if records { TO_RECORD + 1 } else { 0 });
        let a = RunSpec { slot: Slot::A, ..a };
        let b = RunSpec { slot: Slot::B, ..b };
        let mut both = BothWorkers::new(&a, &b, &opened)?;
        let mut sides = [a, b].map(|spec| Side::new(spec, opened.queued, !records));
        for side in &mut sides {
            let queue = both.of(side.spec.slot)?;
            let begun = started(request, &side.spec, &opened, queue, &side.source)?;
            let paired = true;
            announce(Started { paired, ..begun }, &outlet);
        }
        let mut pace = 0.0;
        let mut diverged = None;
        for side in &mut sides {
            let mut seconds = Vec::new();
            for _ in 0..warmup {
                let began = Instant::now();
                let ended = side.step(&mut both, &outlet)?.err();
                seconds.push(began.elapsed().as_secs_f64());
                if let Some(why) = ended {
                    diverged.get_or_insert((side.spec.slot, why));
                    break;
                }
            }
            // The first step may compile or fill caches.
            pace += median(&seconds[1.min(seconds.len() - 1)..]);
        }
        let limit_pairs = match pairs {
            0 => affordable(pace),
            asked => asked,
        };
        let plan = PairPlan::new(limit_pairs);
        let looks: Vec<Look> = plan.looks().into_iter().map(planned).collect();
        let limit_s = (PATIENCE * pace * f64::from(limit_pairs)).ceil();
        let last = Pair {
            wanted: looks.first().map_or(limit_pairs, |look| look.pairs),
            remaining_s: pace * f64::from(limit_pairs),
            limit_pairs,
            limit_s,
            looks,
            differs,
            tokens,
            request,
            ..Pair::default()
        };
        outlet.send(Event::Pair(last.clone()));
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        Ok(Self {
            opened,
            sides,
            both,
            plan,
            times: Vec::new(),
            seed: now.map_or(0, |now| now.as_nanos() as u64),
            began: Instant::now(),
            last,
            diverged,
            outlet,
        })
    }

    /// Returns true if there is a verdict, a limit was reached, or a side diverged.
    pub(crate) fn done(&self) -> bool {
        self.last.done || self.diverged.is_some()
    }

    /// Measures one pair.
    pub(crate) fn advance(&mut self) -> Result<()> {
        let [a, b] = &mut self.sides;
        let a_first = a_goes_first(self.seed, self.times.len());
        let in_order = if a_first { [a, b] } else { [b, a] };
        let mut times = [0.0; 2];
        for side in in_order {
            match side.step(&mut self.both, &self.outlet)? {
                Ok(ms) => times[side.spec.slot as usize] = ms,
                Err(why) => {
                    self.diverged = Some((side.spec.slot, why));
                    return Ok(());
                }
            }
        }
        self.times.push(times.into());
        let elapsed = self.began.elapsed().as_secs_f64();
        let n = self.times.len() as u32;
        let pace = elapsed / f64::from(n);
        let pair = &mut self.last;
        // Another pair would go beyond a limit.
        let last = n >= pair.limit_pairs || elapsed + pace > pair.limit_s;
        if last && pair.wanted > n {
            pair.looks.retain(|look| look.pairs < n);
            pair.looks.push(planned(n));
            pair.wanted = n;
        }
        pair.n = n;
        let most = (pair.limit_s - elapsed).max(0.0);
        pair.remaining_s = (pace * f64::from(pair.limit_pairs - n)).min(most);
        if n <= FIRST_LOOK || n == pair.wanted {
            self.look(last);
        }
        self.outlet.send(Event::Pair(self.last.clone()));
        Ok(())
    }

    /// Judges the pairs so far; at a look it may end the comparison.
    fn look(&mut self, last: bool) {
        let pair = &mut self.last;
        let [a, b] = pair.tokens.unwrap_or([1, 1]).map(|tokens| tokens as f64);
        let per_token = self.times.iter().map(|times| (times.0 / a, times.1 / b));
        let pairs: Vec<_> = per_token.collect();
        let (a, b): (Vec<f64>, Vec<f64>) = self.times.iter().copied().unzip();
        (pair.a_ms, pair.b_ms) = (spread(&a), spread(&b));
        if pair.n < pair.wanted {
            pair.ratio = ratio(&pairs);
            return;
        }
        let found = self.plan.look(&pairs, last);
        let (low, high) = found.interval.unzip();
        (pair.ratio, pair.low, pair.high, pair.verdict) = (found.ratio, low, high, found.verdict);
        pair.done = last || found.verdict != Verdict::Unclear;
        for look in &mut pair.looks {
            if look.pairs == pair.n {
                (look.low, look.high) = (low, high);
            } else if look.pairs > pair.n && !pair.done {
                pair.wanted = look.pairs;
                break;
            }
        }
    }

    /// Whether both sides compute on the CPU device of ours.
    pub(crate) fn on_cpu(&self) -> bool {
        self.opened.queued
    }

    /// Returns the summary. `why` says what cut the pairs short; a side that diverged says so itself, and the summary has its slot.
    pub(crate) fn finish(self, why: Option<&str>) -> Finished {
        let [_, Side { spec, .. }] = self.sides;
        let (slot, ended) = match self.diverged {
            Some((slot, why)) => (slot, Some(why)),
            None => (spec.slot, why.map(str::to_owned)),
        };
        Finished {
            stage: spec.stage,
            variant: "pair".to_owned(),
            slot,
            config: spec.config.hash(),
            device: self.opened.info,
            ln_vocab: spec.config.ln_vocab(),
            clock: "host-sync".to_owned(),
            ended,
            request: self.last.request,
            pair: Some(self.last),
            ..Finished::default()
        }
    }
}

fn planned(pairs: u32) -> Look {
    Look {
        pairs,
        ..Look::default()
    }
}

/// As many pairs of `pace` seconds as the time allows: 20, 40, 80 or 160.
fn affordable(pace: f64) -> u32 {
    let doubled = std::iter::successors(Some(MOST), |n| Some(n / 2));
    let mut fitting = doubled.take_while(|n| *n > FEWEST);
    fitting
        .find(|n| pace * f64::from(*n) <= SECONDS)
        .unwrap_or(FEWEST)
}

/// A B B A or B A A B: either order cancels linear drift. Which of the two it is gets drawn for every four steps, so that a
/// disturbance of the same period, such as a scheduler's tick, does not always fall on one side.
fn a_goes_first(seed: u64, pair: usize) -> bool {
    let first = Rng::named(seed, "order", pair as u64 / 2).bits() >> 63 == 0;
    pair.is_multiple_of(2) == first
}

#[cfg(test)]
mod tests {
    use super::a_goes_first;

    #[test]
    fn both_go_first_equally_often_and_without_a_period() {
        let order: Vec<bool> = (0..400).map(|pair| a_goes_first(0, pair)).collect();
        assert!(order.chunks(2).all(|two| two[0] != two[1]));
        let starts: Vec<bool> = order.iter().copied().step_by(2).collect();
        for period in 1..20 {
            let same = starts
                .iter()
                .zip(&starts[period..])
                .filter(|(a, b)| a == b)
                .count();
            let share = same as f64 / (starts.len() - period) as f64;
            assert!((0.3..0.7).contains(&share), "period {period}: {share}");
        }
    }
}
