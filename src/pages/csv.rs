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
        story.hear(&line.event, 0);
        if let Event::Step(s) = line.event {
            let run = &story.slot(s.slot).description;
            let p = s.phases.as_ref();
            #[rustfmt::skip] // One line for each group of columns.
            push_row(&mut out, &[
                &line.t as &dyn Display, &slot(s.slot), &run.stage, &cell(&run.name), &s.step, &or_empty(s.loss), &s.ms, &s.synced, &s.profiled,
                &or_empty(p.map(|p| p.forward)), &or_empty(p.map(|p| p.backward)),
                &or_empty(p.map(|p| p.optimizer)), &or_empty(p.map(|p| p.residual)),
            ]);
        }
    }
    out
}

/// Writes a line for every kernel row of every profiled step. Shares of the roof refer to the peaks that were known at that time.
pub fn kernels(lines: impl Iterator<Item = StreamLine>) -> String {
    let mut out = String::from(
        "t_s,slot,step,part,phase,op,kernel,layers,calls,ms,share_pct,flops,bytes,gflop_per_s,gb_per_s,flop_per_byte,\
         roof_pct,memory_bound,no_work,clock\n",
    );
    let mut story = StreamStory::default();
    for line in lines {
        story.hear(&line.event, 0);
        let Event::Kernels(k) = line.event else {
            continue;
        };
        let roof = story.slot(k.slot).description.roof.as_deref();
        for r in &k.rows {
            let share = (k.device_ms > 0.0).then(|| 100.0 * r.ms / k.device_ms);
            let reached = reached(r, roof);
            let giga = |x: Option<f64>| or_empty(x.map(|x| x / 1e9));
            let no_work = r.no_work.as_deref().unwrap_or_default();
            #[rustfmt::skip] // One line for each group of columns.
            push_row(&mut out, &[
                &line.t as &dyn Display, &slot(k.slot), &k.step, &cell(&r.part), &cell(&r.phase), &cell(&r.op), &cell(&r.kernel),
                &r.layers, &r.calls, &r.ms, &or_empty(share), &or_empty(r.flops), &or_empty(r.bytes),
                &giga(reached.flops_per_s), &giga(reached.bytes_per_s), &or_empty(reached.intensity),
                &or_empty(reached.share.map(|x| 100.0 * x)), &or_empty(reached.memory_bound), &cell(no_work), &cell(&k.clock),
            ]);
        }
    }
    out
}

/// Writes a line for every tensor of every gradient audit. An empty norm means that no gradient arrived.
pub fn gradients(lines: impl Iterator<Item = StreamLine>) -> String {
    let mut out = String::from("t_s,slot,step,tensor,parameters,norm\n");
    for line in lines {
        let Event::Gradients(g) = line.event else {
            continue;
        };
        for r in &g.rows {
            let cells: [&dyn Display; 6] = [
                &line.t,
                &slot(g.slot),
                &g.step,
                &cell(&r.name),
                &r.parameters,
                &or_empty(r.norm.as_ref()),
            ];
            push_row(&mut out, &cells);
        }
    }
    out
}

/// Appends a line with these cells.
pub fn push_row(out: &mut String, cells: &[impl Display]) {
    let cells: Vec<String> = cells.iter().map(|cell| cell.to_string()).collect();
    out.push_str(&cells.join(","));
    out.push('\n');
}

/// Writes a figure; an unknown figure is an empty cell.
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
    fn nan_and_missing_are_not_zero() {
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
