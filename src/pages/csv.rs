//! Writes a recording as a table: one line per step, per kernel row of a profiled step, or per tensor of a gradient audit. An empty cell
//! was not measured; NaN is written as NaN.

use std::fmt::Display;

use crate::sanitize::csv as cell;
use protocol::stats::roofline::reached;
use protocol::story::StreamStory;
use protocol::{Event, Slot, StreamLine};

/// Writes a line for every step.
pub fn steps(lines: impl Iterator<Item = StreamLine>) -> String {
    let mut out = String::from(
        "t_s,slot,stage,variant,step,loss,step_ms,synced,profiled,forward_ms,backward_ms,optimizer_ms,residual_ms\n",
    );
    let mut story = StreamStory::default();
    for line in lines {
        story.on_event(&line.event, 0);
        if let Event::Step(step) = line.event {
            let run = &story.slot(step.slot).description;
            let phases = step.phases.as_ref();
            #[rustfmt::skip] // One line for each group of columns.
            push_row(&mut out, &[
                &line.t as &dyn Display, &slot(step.slot), &run.stage, &cell(&run.name),
                &step.step, &or_empty(step.loss), &step.ms, &step.synced, &step.profiled,
                &or_empty(phases.map(|ms| ms.forward)), &or_empty(phases.map(|ms| ms.backward)),
                &or_empty(phases.map(|ms| ms.optimizer)), &or_empty(phases.map(|ms| ms.residual)),
            ]);
        }
    }
    out
}

/// Writes a line for every kernel row of every profiled step. A share of the roof refers to the peaks that the stream had reported by then.
pub fn kernels(lines: impl Iterator<Item = StreamLine>) -> String {
    let mut out = String::from(
        "t_s,slot,step,part,phase,op,kernel,layers,calls,ms,share_pct,flops,bytes,gflop_per_s,gb_per_s,flop_per_byte,\
         roof_pct,memory_bound,no_work,clock\n",
    );
    let mut story = StreamStory::default();
    for line in lines {
        story.on_event(&line.event, 0);
        let Event::Kernels(profile) = line.event else {
            continue;
        };
        let peaks = story.slot(profile.slot).description.peaks.as_deref();
        for row in &profile.rows {
            let share = (profile.device_ms > 0.0).then(|| 100.0 * row.ms / profile.device_ms);
            let reached = reached(row, peaks);
            let giga = |figure: Option<f64>| or_empty(figure.map(|figure| figure / 1e9));
            let no_work = row.no_work.as_deref().unwrap_or_default();
            #[rustfmt::skip] // One line for each group of columns.
            push_row(&mut out, &[
                &line.t as &dyn Display, &slot(profile.slot), &profile.step,
                &cell(&row.part), &cell(&row.phase), &cell(&row.op), &cell(&row.kernel),
                &row.layers, &row.calls, &row.ms, &or_empty(share), &or_empty(row.flops), &or_empty(row.bytes),
                &giga(reached.flops_per_s), &giga(reached.bytes_per_s), &or_empty(reached.intensity),
                &or_empty(reached.share.map(|share| 100.0 * share)), &or_empty(reached.memory_bound),
                &cell(no_work), &cell(&profile.clock),
            ]);
        }
    }
    out
}

/// Writes a line for every tensor of every gradient audit. An empty norm means that no gradient arrived.
pub fn gradients(lines: impl Iterator<Item = StreamLine>) -> String {
    let mut out = String::from("t_s,slot,step,tensor,parameters,norm\n");
    for line in lines {
        let Event::Gradients(audit) = line.event else {
            continue;
        };
        for tensor in &audit.rows {
            let cells: [&dyn Display; 6] = [
                &line.t,
                &slot(audit.slot),
                &audit.step,
                &cell(&tensor.name),
                &tensor.parameters,
                &or_empty(tensor.norm.as_ref()),
            ];
            push_row(&mut out, &cells);
        }
    }
    out
}

/// Appends a line with these cells to the table `out`.
pub fn push_row(out: &mut String, cells: &[impl Display]) {
    let texts: Vec<String> = cells.iter().map(|cell| cell.to_string()).collect();
    out.push_str(&texts.join(","));
    out.push('\n');
}

/// Returns the cell of a figure; empty for an unknown figure.
pub fn or_empty(figure: Option<impl Display>) -> String {
    figure.map(|figure| figure.to_string()).unwrap_or_default()
}

fn slot(slot: Slot) -> String {
    slot.into_str().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::{KernelRow, Num, Step, StepProfile};

    fn line(event: Event) -> StreamLine {
        StreamLine { t: 1.5, event }
    }

    #[test]
    fn a_loss_of_nan_and_missing_phases_are_not_written_as_zero() {
        let step = Step {
            slot: Slot::B,
            step: 3,
            loss: Some(Num(f64::NAN)),
            ms: 2.5,
            synced: true,
            profiled: false,
            phases: None,
            clocks: None,
        };
        let table = steps([line(Event::Step(step))].into_iter());
        assert_eq!(
            table.lines().nth(1),
            Some("1.5,b,0,,3,NaN,2.5,true,false,,,,")
        );
    }

    #[test]
    fn names_with_commas_stay_one_cell() {
        let row = KernelRow {
            kernel: "void f<float, 2>(\"x\")".to_owned(),
            ms: 2.0,
            flops: Some(4e9),
            bytes: Some(1e9),
            ..KernelRow::default()
        };
        let k = StepProfile {
            rows: vec![row],
            device_ms: 4.0,
            ..StepProfile::default()
        };
        let table = kernels([line(Event::Kernels(k))].into_iter());
        let row = table.lines().nth(1).expect("one row");
        assert!(row.contains("\"void f<float, 2>(\"\"x\"\")\""), "{row}");
        assert!(
            row.contains(",2,50,4000000000,1000000000,2000,500,4,,,,"),
            "{row}"
        );
    }
}
