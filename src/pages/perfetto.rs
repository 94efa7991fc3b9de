//! Writes a recording as a Perfetto trace for ui.perfetto.dev: steps, phases, profiled kernels, lints, loss and speed.

use crate::run_trace;
use gputrace::write;
use protocol::StreamLine;

/// Returns the bytes of the trace. `badge` names the device and the date of the run.
pub fn trace(lines: impl Iterator<Item = StreamLine>, badge: &str) -> Vec<u8> {
    write::perfetto::write(&run_trace::stream(lines, "", badge))
}

#[cfg(test)]
mod tests {
    use gputrace::model::SliceKind;
    use gputrace::{read, summary::summary};
    use protocol::{Event, KernelRow, Num, PhaseTimes, Slot, Step, StepProfile, StreamLine};

    #[test]
    fn a_written_trace_is_read_back_with_its_steps_phases_and_kernels() {
        let step = |number: u64| Step {
            slot: Slot::A,
            step: number,
            loss: Some(Num(6.9)),
            ms: 10.0,
            synced: true,
            profiled: number == 2,
            phases: (number < 2).then_some(PhaseTimes {
                forward: 3.0,
                backward: 5.0,
                optimizer: 1.0,
                residual: 1.0,
                step: 10.0,
                ..PhaseTimes::default()
            }),
            clocks: None,
        };
        // A step takes 10 ms. The second line was written early, so its step would begin before the end of the first one.
        let mut lines: Vec<StreamLine> = [0.010, 0.019, 0.030]
            .into_iter()
            .zip(0..)
            .map(|(t, number)| StreamLine {
                t,
                event: Event::Step(step(number)),
            })
            .collect();
        let row = |phase: &str, calls| KernelRow {
            part: "mlp.up".to_owned(),
            phase: phase.to_owned(),
            op: "linear".to_owned(),
            kernel: "own".to_owned(),
            calls,
            ms: 2.0,
            ..KernelRow::default()
        };
        lines.push(StreamLine {
            t: 0.031,
            event: Event::Kernels(StepProfile {
                step: 2,
                rows: vec![row("backward", 4), row("forward", 2)],
                ..StepProfile::default()
            }),
        });
        let bytes = super::trace(lines.into_iter(), "cpu, 2026-11-21");
        let total = bytes.len() as u64;
        let back = read("a", std::io::Cursor::new(bytes), total).expect("a trace");
        let figures = summary(&back);
        assert_eq!(figures.kernels, 4 + 2, "the calls of both rows");
        assert_eq!(figures.distinct_names, 1);
        assert_eq!(figures.kernel_ns, 4_000_000, "2 ms for each row");
        let steps = figures.steps.expect("steps");
        assert_eq!(steps.len(), 2, "the profiled step has another name");
        let names: Vec<&str> = back
            .slices_of(SliceKind::Annotation)
            .map(|range| back.name(range.name))
            .collect();
        assert_eq!(names[..4], ["step 0", "forward", "backward", "optimizer"]);
        assert!(
            back.lanes
                .iter()
                .any(|lane| lane.name.contains("profiled steps"))
        );
        let has_loss = back
            .counters
            .iter()
            .any(|counter| counter.name.contains("loss"));
        assert!(has_loss);
        let starts: Vec<i64> = back
            .slices_of(SliceKind::Annotation)
            .map(|range| range.start)
            .collect();
        assert!(starts.is_sorted(), "{starts:?}");
    }
}
