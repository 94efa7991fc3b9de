//! A recording as a table: one line per step, per kernel row of a profiled step, or per tensor of a gradient audit.
//! An empty cell was not measured; NaN is written as NaN.

use crate::profile::roofline::reached;
use crate::protocol::{Event, Line, Num, Roof, Slot};

/// Every step.
pub fn steps(lines: impl Iterator<Item = Line>) -> String {
    let mut out = String::from(
        "t_s,slot,stage,variant,step,loss,step_ms,synced,profiled,forward_ms,backward_ms,optimizer_ms,residual_ms\n",
    );
    let mut runs = [(0, String::new()), (0, String::new())];
    for line in lines {
        match line.event {
            Event::Started(started) => {
                runs[started.run.slot as usize] = (started.run.stage, started.run.variant)
            }
            Event::Step(s) => {
                let (stage, variant) = &runs[s.slot as usize];
                let phases = s.phases.map_or_else(
                    || ",,,".to_owned(),
                    |p| {
                        format!(
                            "{},{},{},{}",
                            p.forward, p.backward, p.optimizer, p.residual
                        )
                    },
                );
                out.push_str(&format!(
                    "{},{},{stage},{},{},{},{},{},{},{phases}\n",
                    line.t,
                    slot(s.slot),
                    cell(variant),
                    s.step,
                    s.loss,
                    s.ms,
                    s.synced,
                    s.profiled
                ));
            }
            _ => {}
        }
    }
    out
}

/// Every kernel row of every profiled step. Shares of the roof are against the peaks that the run before it names.
pub fn kernels(lines: impl Iterator<Item = Line>) -> String {
    let mut out = String::from(
        "t_s,slot,step,part,phase,op,kernel,layers,calls,ms,share_pct,flops,bytes,gflop_per_s,gb_per_s,flop_per_byte,\
         roof_pct,memory_bound,no_work,clock\n",
    );
    let mut roofs: [Option<Box<Roof>>; 2] = [None, None];
    let side = |slot: Slot| usize::from(slot == Slot::B);
    for line in lines {
        let k = match line.event {
            Event::Started(started) => {
                roofs[side(started.run.slot)] = started.roof;
                continue;
            }
            Event::Kernels(k) => k,
            _ => continue,
        };
        for row in &k.rows {
            let share = (k.device_ms > 0.0).then(|| 100.0 * row.ms / k.device_ms);
            let reached = reached(row, roofs[side(k.slot)].as_deref());
            let cells = [
                share,
                row.flops,
                row.bytes,
                reached.flops_per_s.map(|it| it / 1e9),
                reached.bytes_per_s.map(|it| it / 1e9),
                reached.intensity,
                reached.share.map(|it| 100.0 * it),
            ]
            .map(|it| it.map(|it| it.to_string()).unwrap_or_default())
            .join(",");
            out.push_str(&format!(
                "{},{},{},{},{},{},{},{},{},{},{cells},{},{},{}\n",
                line.t,
                slot(k.slot),
                k.step,
                cell(&row.part),
                cell(&row.phase),
                cell(&row.op),
                cell(&row.kernel),
                row.layers,
                row.calls,
                row.ms,
                reached
                    .memory_bound
                    .map(|it| it.to_string())
                    .unwrap_or_default(),
                cell(row.no_work.as_deref().unwrap_or_default()),
                cell(&k.clock)
            ));
        }
    }
    out
}

/// Every tensor of every gradient audit; an empty norm means that no gradient arrived.
pub fn gradients(lines: impl Iterator<Item = Line>) -> String {
    let mut out = String::from("t_s,slot,step,tensor,parameters,norm\n");
    for line in lines {
        let Event::Gradients(g) = line.event else {
            continue;
        };
        for row in &g.rows {
            let norm = row.norm.as_ref().map(Num::to_string).unwrap_or_default();
            out.push_str(&format!(
                "{},{},{},{},{},{norm}\n",
                line.t,
                slot(g.slot),
                g.step,
                cell(&row.name),
                row.parameters
            ));
        }
    }
    out
}

fn slot(slot: Slot) -> &'static str {
    match slot {
        Slot::A => "a",
        Slot::B => "b",
    }
}

/// Quotes a text where it would break the table, and where a spreadsheet would take it for a formula.
fn cell(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@']);
    if formula || text.contains(['"', ',', '\n', '\r']) {
        let guard = if formula { "'" } else { "" };
        format!("\"{guard}{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{KernelRow, Kernels, Step};

    fn line(event: Event) -> Line {
        Line { t: 1.5, event }
    }

    #[test]
    fn nan_and_missing_are_not_zero() {
        let step = Step {
            slot: Slot::B,
            step: 3,
            loss: Num(f64::NAN),
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
        let k = Kernels {
            rows: vec![row],
            device_ms: 4.0,
            ..Kernels::default()
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
