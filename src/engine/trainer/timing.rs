//! Times one step with the host's clock: its phases, and what handing the work over takes beside waiting for it.

use std::time::Instant;

use anyhow::Result;

use super::super::worker::Worker;
use super::{AUDIT_EVERY, Trainer};
use crate::config::Sync;
use crate::protocol::{Clocks, Event, Phases};

/// What one step was measured to take.
pub(super) struct Timing {
    pub ms: f64,
    pub synced: bool,
    pub phases: Option<Phases>,
    /// Where the step ended with a sync.
    pub clocks: Option<Clocks>,
}

impl Trainer {
    /// One step, timed as `measure.sync` says. `drained`: an unsynchronised run brackets this one with a sync.
    pub(super) fn time_one(&mut self, drained: bool) -> Result<Timing> {
        let sync = self.spec.config.measure.sync;
        let phases = sync == Sync::PerPhase;
        let mut enqueue = 0.0;
        let mut phase = |trainer: &mut Self, task: fn(&mut Worker)| -> Result<Instant> {
            let began = Instant::now();
            trainer.place.submit(task)?;
            enqueue += began.elapsed().as_secs_f64() * 1e3;
            if phases {
                trainer.place.sync()?;
            }
            Ok(Instant::now())
        };
        let computed = self.place.busy();
        let t0 = Instant::now();
        let t1 = phase(self, Worker::forward)?;
        let t2 = phase(self, Worker::backward)?;
        let t3 = phase(self, Worker::update)?;
        if sync == Sync::PerStep || drained {
            self.place.sync()?;
        }
        let t4 = Instant::now();
        let computed = self
            .place
            .busy()
            .zip(computed)
            .map(|(now, before)| now - before);
        let ms = |a: Instant, b: Instant| (b - a).as_secs_f64() * 1e3;
        let (forward, backward, optimizer) = (ms(t0, t1), ms(t1, t2), ms(t2, t3));
        let bracket = ms(t0, t4);
        let ledger = Phases {
            forward,
            backward,
            optimizer,
            residual: bracket - (forward + backward + optimizer),
            step: bracket,
        };
        let synced = sync != Sync::Never;
        let clocks = (synced || drained).then(|| Clocks {
            enqueue,
            host_sync: bracket,
            device: computed.map(|it| it.as_secs_f64() * 1e3),
        });
        Ok(Timing {
            ms: if synced { bracket } else { ms(t0, t3) },
            synced,
            phases: (synced || drained).then_some(ledger),
            clocks,
        })
    }

    /// Keeps the three readings of a step, and tells them now and then: steps that compile are not among them.
    pub(super) fn tell_clocks(&mut self, clocks: Option<Clocks>) {
        let Some(clocks) = clocks.filter(|_| self.counted >= self.warmup()) else {
            return;
        };
        let first = self.clocks.is_none();
        // The evidence has one device time for every device: that of the latest profiled step.
        let device = self.kernels.as_ref().map(|kernels| kernels.device_ms);
        self.clocks = Some(Clocks { device, ..clocks });
        if first || self.counted.is_multiple_of(AUDIT_EVERY) {
            self.show_clocks();
        }
    }

    /// The profiled step's device time joins the two of the host, and the evidence goes out with them.
    pub(super) fn show_clocks(&mut self) {
        let device = self.kernels.as_ref().map(|kernels| kernels.device_ms);
        let clocks = self.clocks.as_mut().map(|clocks| {
            clocks.device = device.or(clocks.device);
            *clocks
        });
        if let (Some(evidence), Some(clocks)) = (&mut self.evidence, clocks) {
            // The rest of it stays what was seen at its own step.
            evidence.clocks = Some(clocks);
            self.outlet.send(Event::Evidence(evidence.clone()));
        }
    }
}
