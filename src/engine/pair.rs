//! Two configurations on one device, the same seed and batches, interleaved A B B A or B A A B, so that drift cancels.

use std::time::Instant;

use anyhow::{Result, ensure};

use super::devices::Opened;
use super::host::ensure_memory;
use super::queue::Queue;
use super::trainer::started;
use super::wire::Outlet;
use super::worker::Worker;
use crate::config::Sync;
use crate::data::Source;
use crate::profile::stats::{MIN_PAIRS, compare, spread};
use crate::protocol::{Event, Num, Pair, RunSpec, Slot, Started, Step, Verdict};
use crate::random::Rng;

/// Most pairs that are taken while the verdict stays unclear and no number was asked for.
const MAX_PAIRS: u32 = 240;

/// A comparison in progress.
pub struct Paired {
    sides: [Side; 2],
    wanted: u32,
    asked: bool,
    times: Vec<(f64, f64)>,
    began: Instant,
    pub last: Pair,
    outlet: Outlet,
    differs: Vec<String>,
}

struct Side {
    spec: RunSpec,
    queue: Queue,
    source: Source,
    step: u64,
}

impl Side {
    fn new(spec: RunSpec, opened: &Opened) -> Result<Self> {
        let (config, device) = (spec.config.clone(), opened.device.clone());
        let queue = Queue::new(opened.queued, move || Worker::new(&config, &device))?;
        Ok(Self {
            source: Source::new(&spec.config),
            spec,
            queue,
            step: 0,
        })
    }

    /// One step in milliseconds, bracketed by syncs; inside, the syncs its configuration asks for.
    fn step(&mut self, outlet: &Outlet) -> Result<f64> {
        let batch = self.source.batch(self.step);
        self.queue.ask(move |worker| worker.load(&batch))?;
        self.queue.sync()?;
        let phases = self.spec.config.measure.sync == Sync::PerPhase;
        let began = Instant::now();
        for task in [Worker::forward, Worker::backward, Worker::update] {
            self.queue.submit(task)?;
            if phases {
                self.queue.sync()?;
            }
        }
        self.queue.sync()?;
        let ms = began.elapsed().as_secs_f64() * 1e3;
        let loss = self.queue.ask(Worker::losses)??.pop().unwrap_or(f64::NAN);
        outlet.send(Event::Step(Step {
            slot: self.spec.slot,
            step: self.step,
            loss: Num(loss),
            ms,
            synced: true,
            ..Step::default()
        }));
        ensure!(
            loss.is_finite(),
            "the loss of {} is {} at step {}",
            self.spec.variant,
            Num(loss),
            self.step
        );
        self.step += 1;
        Ok(ms)
    }
}

impl Paired {
    /// Builds both models and warms both up.
    pub fn new(
        a: RunSpec,
        b: RunSpec,
        pairs: u32,
        opened: &Opened,
        outlet: Outlet,
    ) -> Result<Self> {
        if opened.queued {
            // Two parameter sets with their moments, and one set of activations.
            let (one, other) = (&a.config, &b.config);
            let need = one.memory_estimate().max(other.memory_estimate())
                + 12 * one.parameters().min(other.parameters());
            ensure_memory("a paired run holds two models:", need)?;
        }
        let differs = a.config.differences(&b.config).into_iter();
        let differs = differs.map(str::to_owned).collect();
        let warmup = a.config.measure.warmup.clamp(2, 10);
        let a = RunSpec { slot: Slot::A, ..a };
        let b = RunSpec { slot: Slot::B, ..b };
        let mut sides = [Side::new(a, opened)?, Side::new(b, opened)?];
        for side in &mut sides {
            let tensors = side
                .queue
                .ask(|worker| worker.model.parameters().len() as u32)?;
            outlet.send(Event::Started(Started {
                paired: true,
                ..started(&side.spec, opened, tensors, &side.source)
            }));
        }
        for side in &mut sides {
            for _ in 0..warmup {
                side.step(&outlet)?;
            }
        }
        let wanted = if pairs == 0 { MIN_PAIRS as u32 } else { pairs };
        Ok(Self {
            sides,
            wanted,
            asked: pairs > 0,
            times: Vec::new(),
            began: Instant::now(),
            last: Pair::default(),
            outlet,
            differs,
        })
    }

    /// Whether the verdict is in, or will not come.
    pub fn done(&self) -> bool {
        self.last.done
    }

    /// Measures one pair.
    pub fn advance(&mut self) -> Result<()> {
        let [a, b] = &mut self.sides;
        if a_goes_first(self.times.len()) {
            let first = a.step(&self.outlet)?;
            self.times.push((first, b.step(&self.outlet)?));
        } else {
            let first = b.step(&self.outlet)?;
            self.times.push((a.step(&self.outlet)?, first));
        }
        let n = self.times.len() as u32;
        // Intervals cost a few milliseconds; early ones and every tenth are enough to watch.
        if n.is_multiple_of(5) || n >= self.wanted || n < 5 {
            self.report(n);
        }
        Ok(())
    }

    fn report(&mut self, n: u32) {
        let result = compare(&self.times);
        if result.verdict == Verdict::Unclear
            && n >= self.wanted
            && !self.asked
            && self.wanted < MAX_PAIRS
        {
            self.wanted = (self.wanted * 2).min(MAX_PAIRS);
        }
        let (a, b): (Vec<f64>, Vec<f64>) = self.times.iter().copied().unzip();
        let pace = self.began.elapsed().as_secs_f64() / f64::from(n);
        self.last = Pair {
            n,
            wanted: self.wanted,
            ratio: result.ratio,
            low: result.low,
            high: result.high,
            verdict: result.verdict,
            a_ms: spread(&a),
            b_ms: spread(&b),
            remaining_s: pace * f64::from(self.wanted.saturating_sub(n)),
            done: n >= self.wanted,
            differs: self.differs.clone(),
        };
        self.outlet.send(Event::Pair(self.last.clone()));
    }

    /// The B side's specification, for the summary.
    pub fn fixed(&self) -> &RunSpec {
        &self.sides[1].spec
    }
}

/// A B B A or B A A B: either order cancels linear drift. Which of the two it is gets drawn for every four steps, so that a
/// disturbance of the same period, such as a scheduler's tick, does not always fall on one side.
fn a_goes_first(pair: usize) -> bool {
    let first = Rng::named(0, "order", pair as u64 / 2).bits() >> 63 == 0;
    pair.is_multiple_of(2) == first
}

#[cfg(test)]
mod tests {
    use super::a_goes_first;

    #[test]
    fn both_go_first_equally_often_and_without_a_period() {
        let order: Vec<bool> = (0..400).map(a_goes_first).collect();
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
