//! The choice of the lines that a recording keeps of a long run: all lines of the first minute, and then only a few in a second. Starts,
//! lints, verdicts, failures and summaries are always kept, heartbeats never.

use std::collections::HashMap;

use protocol::{Event, Slot};

/// All lines of the stream's first seconds are kept.
const WHOLE_S: f64 = 60.0;

/// Chooses the lines of one recording.
#[derive(Debug, Default)]
pub(super) struct Thinning {
    /// The time of the last line that was kept, in seconds, by kind of line and slot.
    last: HashMap<(&'static str, Slot), f64>,
}

impl Thinning {
    /// Returns true if a line at `t` seconds is kept. An hour takes about 29 MB: 10 MB for 10 steps a second of 250 bytes each, and 19 MB
    /// for a profile of 26 KB every 5 seconds.
    pub(super) fn keeps(&mut self, t: f64, event: &Event) -> bool {
        if event.begins_run().is_some() || matches!(event, Event::Run(_)) {
            self.last.clear();
        }
        let (kind, slot, interval_s) = match event {
            Event::Heartbeat { .. } => return false,
            Event::Step(step) => ("step", step.slot, 0.1),
            Event::Throughput(throughput) => ("throughput", throughput.slot, 1.0),
            Event::Kernels(kernels) => ("kernels", kernels.slot, 5.0),
            Event::Gradients(gradients) => ("gradients", gradients.slot, 5.0),
            Event::Evidence(evidence) => ("evidence", evidence.slot, 5.0),
            Event::Memory(memory) => ("memory", memory.slot, 5.0),
            Event::Load(_) => ("load", Slot::A, 2.0),
            Event::Ranks { .. } => ("ranks", Slot::A, 2.0),
            Event::Pair(pair) if !pair.done => ("pair", Slot::A, 1.0),
            _ => return true,
        };
        let last = self.last.entry((kind, slot)).or_insert(f64::NEG_INFINITY);
        if t < WHOLE_S || t - *last >= interval_s {
            *last = t;
            return true;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::config::{Preset, RunConfig};
    use protocol::{
        Device, KernelRow, Num, PhaseTimes, RunSpec, Started, Step, StepProfile, StreamLine,
    };

    #[test]
    fn the_first_lines_of_every_run_are_kept() {
        let started = Event::Started(Started {
            run: RunSpec::new("custom", &RunConfig::preset(Preset::Tiny)),
            config: String::new(),
            device: Device::default(),
            parameters: 1,
            tensors: 1,
            ln_vocab: 6.9,
            entropy: None,
            forward_flops: 1.0,
            from_step: 0,
            peaks: None,
            paired: false,
            matrix_cores: false,
            request: 0,
        });
        let profile = Event::Kernels(StepProfile::default());
        let mut thin = Thinning::default();
        assert!(thin.keeps(100.0, &profile) && !thin.keeps(101.0, &profile));
        assert!(thin.keeps(102.0, &started) && thin.keeps(103.0, &profile));
        assert!(!thin.keeps(104.0, &profile));
    }

    #[test]
    fn an_hour_stays_below_fifty_megabytes() {
        let mut thin = Thinning::default();
        let mut bytes = 0;
        let row = KernelRow {
            part: "mlp.gate".to_owned(),
            phase: "backward".to_owned(),
            op: "linear".to_owned(),
            kernel: "matmul_tiled_64x64_f32".to_owned(),
            layers: 8,
            calls: 8,
            ms: 12.345_678_9,
            slices: vec![(123_456_789, 1_543_209); 8],
            flops: Some(1.25e11),
            bytes: Some(3.5e8),
            ..KernelRow::default()
        };
        let rows = vec![row; 60];
        // 200 steps a second, every twentieth profiled.
        for i in 0_u64..720_000 {
            let t = i as f64 * 0.005;
            let phase = 1.234_567_8;
            let step = Event::Step(Step {
                slot: Slot::A,
                step: i,
                loss: Some(Num(6.123_456_789)),
                ms: 4.987_654_321,
                synced: true,
                profiled: i % 20 == 0,
                phases: Some(PhaseTimes {
                    forward: phase,
                    backward: phase,
                    optimizer: phase,
                    residual: phase,
                    step: phase,
                    ..PhaseTimes::default()
                }),
                clocks: None,
            });
            let profile = Event::Kernels(StepProfile {
                rows: if i % 20 == 0 {
                    rows.clone()
                } else {
                    Vec::new()
                },
                step: i,
                ..StepProfile::default()
            });
            let written = if i % 20 == 0 { 2 } else { 1 };
            for event in [step, profile].into_iter().take(written) {
                if thin.keeps(t, &event) {
                    let line = serde_json::to_string(&StreamLine { t, event });
                    bytes += line.expect("plain data").len();
                }
            }
        }
        assert!(bytes < 50_000_000, "{bytes} bytes");
    }
}
