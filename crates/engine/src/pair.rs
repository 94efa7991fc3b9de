//! A comparison of two configurations in pairs of steps. Both train on one device, with one seed and the same batches. Their steps are interleaved
//! A B B A or B A A B, so that drift cancels.
//!
//! Both sides run on one thread. On threads of their own, the system's choice of cores favoured one of them for many steps. The order of the
//! sides is drawn for every four steps, with a seed of its own for each comparison.
//!
//! The plan is fixed before the first pair, from the pace of the warm-up. It has a limit of pairs, and a limit of time that is half as much again
//! as these pairs should take. The first `Pair` event, with `n` 0, carries both. If the time ends the comparison, the pairs so far are the last
//! look. Ratio, interval and both medians belong to one look; `stats::sequential` decides when to look and computes them. If the launches of one
//! side are recorded, neither side waits between phases. A change of B begins the pairs again.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::Result;

use super::devices::OpenDevice;
use super::host::ensure_memory;
use super::queue::Queue;
use super::trainer::{announce, start_event};
use super::wire::EventSender;
use super::worker::{PhaseTasks, TO_RECORD, Worker};
use protocol::config::{Knob, RunConfig, Sync};
use protocol::random::Rng;
use protocol::stats::robust::{median, spread};
use protocol::stats::sequential::{FIRST_LOOK, PairPlan, ratio};
use protocol::{Event, Finished, Look, Num, Pair, RunSpec, Slot, Step, Verdict};
use tiny_llama::data::BatchSource;

/// The seconds that the pairs may take if the command does not give their number.
const SECONDS: f64 = 60.0;
/// The fewest pairs that are planned if the command does not give their number.
const FEWEST: u32 = 2 * FIRST_LOOK;
/// The most pairs that are planned if the command does not give their number.
const MOST: u32 = 16 * FIRST_LOOK;
/// The pairs end after this many times the time that they would take at the pace of the warm-up.
const PATIENCE: f64 = 1.5;

/// A comparison in progress.
pub(crate) struct Paired {
    opened: OpenDevice,
    sides: [Side; 2],
    both: BothWorkers,
    plan: PairPlan,
    /// Milliseconds of A and B in each pair.
    times: Vec<(f64, f64)>,
    /// The seed from which the order of the sides is drawn.
    seed: u64,
    began: Instant,
    /// The latest `Pair` event.
    pub last: Pair,
    /// The side whose loss is not finite, and the sentence about it. It ends the pairs, because the ratio would mean nothing.
    diverged: Option<(Slot, String)>,
    outlet: EventSender,
}

/// The workers of both sides, which take turns on one thread. On threads of their own one of them might get a better core.
struct BothWorkers {
    queue: Queue,
    /// The worker of the side that is not in the queue.
    parked: Option<Worker>,
    /// The side whose worker is in the queue.
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

    /// Puts the worker of this side into the queue, and returns the queue.
    fn activate(&mut self, slot: Slot) -> Result<&mut Queue> {
        if slot != self.active
            && let Some(other) = self.parked.take()
        {
            let queue = &mut self.queue;
            let swapped = queue.ask(move |worker| std::mem::replace(worker, other))?;
            self.parked = Some(swapped);
            self.active = slot;
        }
        Ok(&mut self.queue)
    }
}

/// One of the two configurations.
struct Side {
    spec: RunSpec,
    source: BatchSource,
    step: u64,
    /// The tasks that the host submits for a step.
    tasks: PhaseTasks,
    /// True if the host waits after each task.
    waits_between_phases: bool,
}

impl Side {
    /// Makes a side. A side waits between phases only if `phases` is true, which means that the steps of both sides have phases. Otherwise the sides
    /// would not wait equally often.
    fn new(spec: RunSpec, on_cpu: bool, phases: bool) -> Self {
        Self {
            source: BatchSource::new(&spec.config),
            step: 0,
            tasks: Worker::tasks(&spec.config, on_cpu),
            waits_between_phases: phases && spec.config.measure.sync == Sync::PerPhase,
            spec,
        }
    }

    /// Takes one step, bracketed by syncs, and returns its milliseconds; the syncs that the configuration asks for are part of them. The inner
    /// error is the reason why the comparison ends: the loss is not finite.
    ///
    /// # Errors
    /// Fails when the device was lost or the device thread ended.
    fn step(
        &mut self,
        both: &mut BothWorkers,
        outlet: &EventSender,
    ) -> Result<Result<f64, String>> {
        let queue = both.activate(self.spec.slot)?;
        let batch = self.source.batch(self.step);
        queue.ask(move |worker| worker.load(&batch))?;
        let (ms, loss) = queue.bracketed_step(self.tasks, self.waits_between_phases)?;
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

    /// Takes at most `steps` steps, of which there is at least one. Returns the median of their seconds, and the reason if the loss stopped being
    /// finite.
    ///
    /// # Errors
    /// Fails when the device was lost or the device thread ended.
    fn warm_up(
        &mut self,
        steps: u64,
        both: &mut BothWorkers,
        outlet: &EventSender,
    ) -> Result<(f64, Option<String>)> {
        let mut seconds = Vec::new();
        let mut ended = None;
        while ended.is_none() && (seconds.len() as u64) < steps {
            let began = Instant::now();
            ended = self.step(both, outlet)?.err();
            seconds.push(began.elapsed().as_secs_f64());
        }
        // The first step may compile or fill caches, so it does not count if there are others.
        Ok((median(&seconds[1.min(seconds.len() - 1)..]), ended))
    }
}

impl Paired {
    /// Builds both models, warms them up and plans the pairs. With `pairs` 0 their number follows from the pace of the warm-up.
    ///
    /// # Errors
    /// Fails when memory does not suffice for two models, or the device was lost.
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
        let differs: Vec<String> = a
            .config
            .differences(&b.config)
            .into_iter()
            .map(str::to_owned)
            .collect();
        let changes_tokens = |path: &String| Knob::known(path).is_some_and(Knob::changes_tokens);
        let tokens_differ = differs.iter().any(changes_tokens);
        let tokens_per_step = [&a, &b].map(|side| side.config.tokens_per_step() as u64);
        let records =
            Worker::records(&a.config, opened.queued) || Worker::records(&b.config, opened.queued);
        let mut warmup = a.config.measure.warmup.clamp(2, 10);
        if records {
            warmup = warmup.max(TO_RECORD + 1);
        }
        let a = RunSpec { slot: Slot::A, ..a };
        let b = RunSpec { slot: Slot::B, ..b };
        let mut both = BothWorkers::new(&a, &b, &opened)?;
        let mut sides = [a, b].map(|spec| Side::new(spec, opened.queued, !records));
        for side in &mut sides {
            let queue = both.activate(side.spec.slot)?;
            let mut started = start_event(request, &side.spec, &opened, queue, &side.source)?;
            started.paired = true;
            announce(started, &outlet);
        }
        let mut pace = 0.0;
        let mut diverged = None;
        for side in &mut sides {
            let (seconds, ended) = side.warm_up(warmup, &mut both, &outlet)?;
            pace += seconds;
            if let Some(why) = ended {
                diverged.get_or_insert((side.spec.slot, why));
            }
        }
        let limit_pairs = if pairs == 0 {
            affordable_pairs(pace)
        } else {
            pairs
        };
        let plan = PairPlan::new(limit_pairs);
        let looks: Vec<Look> = plan.looks().into_iter().map(planned_look).collect();
        let limit_s = (PATIENCE * pace * f64::from(limit_pairs)).ceil();
        let last = Pair {
            wanted: looks.first().map_or(limit_pairs, |look| look.pairs),
            remaining_s: pace * f64::from(limit_pairs),
            limit_pairs,
            limit_s,
            looks,
            differs,
            tokens: tokens_differ.then_some(tokens_per_step),
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
    ///
    /// # Errors
    /// Fails when the device was lost or the device thread ended.
    pub(crate) fn advance(&mut self) -> Result<()> {
        let [a, b] = &mut self.sides;
        let in_order = if a_goes_first(self.seed, self.times.len()) {
            [a, b]
        } else {
            [b, a]
        };
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
        let another_exceeds_limit = n >= pair.limit_pairs || elapsed + pace > pair.limit_s;
        if another_exceeds_limit && pair.wanted > n {
            pair.looks.retain(|look| look.pairs < n);
            pair.looks.push(planned_look(n));
            pair.wanted = n;
        }
        pair.n = n;
        let time_left = (pair.limit_s - elapsed).max(0.0);
        pair.remaining_s = (pace * f64::from(pair.limit_pairs - n)).min(time_left);
        if n <= FIRST_LOOK || n == pair.wanted {
            self.judge(another_exceeds_limit);
        }
        self.outlet.send(Event::Pair(self.last.clone()));
        Ok(())
    }

    /// Computes the ratio of the pairs so far, and at a look also the verdict, which may end the comparison. `is_last` is true if no other pair
    /// follows.
    fn judge(&mut self, is_last: bool) {
        let pair = &mut self.last;
        let [a_tokens, b_tokens] = pair.tokens.unwrap_or([1, 1]).map(|tokens| tokens as f64);
        let per_token: Vec<(f64, f64)> = self
            .times
            .iter()
            .map(|(a_ms, b_ms)| (a_ms / a_tokens, b_ms / b_tokens))
            .collect();
        let (a_times, b_times): (Vec<f64>, Vec<f64>) = self.times.iter().copied().unzip();
        pair.a_ms = spread(&a_times);
        pair.b_ms = spread(&b_times);
        if pair.n < pair.wanted {
            pair.ratio = ratio(&per_token);
            return;
        }
        let found = self.plan.look(&per_token, is_last);
        let (low, high) = found.interval.unzip();
        pair.ratio = found.ratio;
        pair.low = low;
        pair.high = high;
        pair.verdict = found.verdict;
        pair.done = is_last || found.verdict != Verdict::Unclear;
        for look in &mut pair.looks {
            if look.pairs == pair.n {
                look.low = low;
                look.high = high;
            } else if look.pairs > pair.n && !pair.done {
                pair.wanted = look.pairs;
                break;
            }
        }
    }

    /// Returns true if both sides compute on the queued CPU device.
    pub(crate) fn on_cpu(&self) -> bool {
        self.opened.queued
    }

    /// Returns the summary. `why` is the reason if a command cut the pairs short. If a side diverged, the summary has its slot and its reason.
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

/// Returns a look after this many pairs that has no interval yet.
fn planned_look(pairs: u32) -> Look {
    Look {
        pairs,
        ..Look::default()
    }
}

/// Returns the number of pairs of `pace` seconds that fit into a minute: 160, 80 or 40, and 20 if even 40 take too long.
fn affordable_pairs(pace: f64) -> u32 {
    let mut pairs = MOST;
    while pairs > FEWEST && pace * f64::from(pairs) > SECONDS {
        pairs /= 2;
    }
    pairs
}

/// Returns true if A runs first in a pair. The order is A B B A or B A A B, and either cancels linear drift. One of the two is drawn for every four
/// steps, so that a disturbance with this period, such as a scheduler's tick, does not always slow one side.
fn a_goes_first(seed: u64, pair: usize) -> bool {
    let first = Rng::named(seed, "order", pair as u64 / 2).bits() >> 63 == 0;
    pair.is_multiple_of(2) == first
}

#[cfg(test)]
mod tests {
    use super::a_goes_first;

    #[test]
    fn both_sides_go_first_equally_often_and_without_a_period() {
        let order: Vec<bool> = (0..400).map(|pair| a_goes_first(0, pair)).collect();

        assert!(order.chunks(2).all(|two| two[0] != two[1]));
        let starts: Vec<bool> = order.iter().copied().step_by(2).collect();
        for period in 1..20 {
            let equal = starts
                .iter()
                .zip(&starts[period..])
                .filter(|(earlier, later)| earlier == later)
                .count();
            let share = equal as f64 / (starts.len() - period) as f64;
            assert!((0.3..0.7).contains(&share), "period {period}: {share}");
        }
    }
}
