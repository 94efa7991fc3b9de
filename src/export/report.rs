//! What a stream showed, as Markdown: collected while it passes, so that a live session and a recording give the same
//! report. It keeps the last figures of each run, not the stream.

use crate::clean::{self, markdown as plain};
use crate::profile::roofline::reached;
use crate::protocol::*;
use crate::record::Recording;
use crate::units::{bytes, show};

/// The last figures of every run of a stream.
#[derive(Clone, Debug, Default)]
pub struct Collector {
    hello: Hello,
    sections: Vec<Section>,
    /// Which section each slot writes to.
    current: [Option<usize>; 2],
    /// The last paired comparison of each stage.
    pairs: Vec<(u32, Pair)>,
}

/// What a recording showed.
pub fn collect(recording: &Recording) -> Collector {
    let mut collector = Collector::default();
    recording
        .iter()
        .for_each(|line| collector.hear(&line.event));
    collector
}

#[derive(Clone, Debug)]
struct Section {
    started: Started,
    first: Option<(u64, Num)>,
    last: Option<(u64, Num)>,
    throughput: Option<Throughput>,
    kernels: Option<Kernels>,
    gradients: Option<Gradients>,
    memory: Option<Memory>,
    lints: Vec<Lint>,
    ended: Option<String>,
    /// The share of the machine that other programs used.
    others: Option<f64>,
}

impl Collector {
    /// Takes an event in.
    pub fn hear(&mut self, event: &Event) {
        match event {
            Event::Hello(hello) => self.hello = hello.clone(),
            Event::Started(started) => self.start(started),
            Event::Step(step) => self.keep(step.slot, |s| {
                s.first.get_or_insert((step.step, step.loss));
                s.last = Some((step.step, step.loss));
            }),
            Event::Throughput(it) => self.keep(it.slot, |s| s.throughput = Some(it.clone())),
            Event::Kernels(it) => self.keep(it.slot, |s| s.kernels = Some(it.clone())),
            Event::Gradients(it) => self.keep(it.slot, |s| s.gradients = Some(it.clone())),
            Event::Memory(it) => self.keep(it.slot, |s| s.memory = Some(it.clone())),
            Event::Lints { slot, lints } => self.keep(*slot, |s| s.lints.clone_from(lints)),
            Event::Finished(f) => {
                self.keep(f.slot, |s| {
                    s.lints.clone_from(&f.lints);
                    s.ended.clone_from(&f.ended);
                    s.others = f.others;
                });
                if let Some(pair) = &f.pair {
                    self.pair(pair);
                }
            }
            Event::Pair(pair) if pair.n > 0 => self.pair(pair),
            _ => {}
        }
    }

    fn start(&mut self, started: &Started) {
        let same = |s: &Section| {
            s.started.config == started.config
                && s.started.device == started.device
                && s.started.run.stage == started.run.stage
                && s.started.run.variant == started.run.variant
        };
        let at = self.sections.iter().position(same);
        let at = at.unwrap_or(self.sections.len());
        let fresh = Section {
            started: started.clone(),
            first: None,
            last: None,
            throughput: None,
            kernels: None,
            gradients: None,
            memory: None,
            lints: Vec::new(),
            ended: None,
            others: None,
        };
        // Seen again: the later run replaces the earlier one, and a side of a comparison none.
        if at == self.sections.len() {
            self.sections.push(fresh);
        } else if !started.paired {
            self.sections[at] = fresh;
        }
        self.current[started.run.slot as usize] = Some(at);
    }

    fn keep(&mut self, slot: Slot, write: impl FnOnce(&mut Section)) {
        let section = self.current[slot as usize].and_then(|at| self.sections.get_mut(at));
        section.map(write);
    }

    fn pair(&mut self, pair: &Pair) {
        let stage = self.current[0]
            .and_then(|at| self.sections.get(at))
            .map_or(0, |s| s.started.run.stage);
        self.pairs.retain(|(of, _)| *of != stage);
        self.pairs.push((stage, pair.clone()));
    }

    /// The date of the stream; empty where it did not say.
    pub fn date(&self) -> &str {
        &self.hello.date
    }

    /// The report. Every figure in it is one that the stream carried.
    pub fn markdown(&self) -> String {
        let date = match self.hello.date.as_str() {
            "" => "date unknown",
            date => date,
        };
        let [date, version, os] = [date, &self.hello.version, &self.hello.os].map(plain);
        let mut out = format!(
            "# perflings report\n\nMeasured on {date} by perflings {version}, {os}, {} cores.\n",
            self.hello.cores
        );
        if self.sections.is_empty() {
            out.push_str("\nNo run was started.\n");
        }
        for section in &self.sections {
            section.write(&mut out);
        }
        for (stage, pair) in &self.pairs {
            out.push_str(&comparison(*stage, pair));
        }
        out
    }
}

impl Section {
    fn write(&self, out: &mut String) {
        let run = &self.started.run;
        let title = match run.stage {
            0 => plain(&run.variant),
            stage => format!("Stage {stage}, {}", plain(&run.variant)),
        };
        let early = self.ended.as_ref();
        let early = early.map(|why| format!(" Ended early: {}.", plain(why)));
        let early = early.unwrap_or_default();
        out.push_str(&format!(
            "\n## {title}\n\nOn {} ({}). {} parameters; configuration `{}`.{early}\n\n| figure | value |\n|---|---|\n",
            plain(&self.started.device.name),
            plain(&self.started.device.kind),
            show(self.started.parameters as f64, 0),
            clean::line(&self.started.config).replace('`', "'")
        ));
        let mut row = |name: &str, value: String| out.push_str(&format!("| {name} | {value} |\n"));
        let loss = |found: Option<(u64, Num)>| {
            found.map_or(missing("no step was made"), |(step, x)| {
                format!("{} at step {step}", short(x))
            })
        };
        row("loss, first", loss(self.first));
        row("loss, last", loss(self.last));
        row("ln V", format!("{:.3}", self.started.ln_vocab));
        let entropy = self.started.entropy.map(|h| format!("{h:.3}"));
        row("entropy of the data", entropy.unwrap_or(missing("unknown")));
        if let Some(t) = &self.throughput {
            let (speed, clock) = (t.samples_per_s, plain(&t.clock));
            row(
                "samples/s",
                format!("{speed:.2} ({}, clock {clock})", t.state),
            );
            let Spread {
                median,
                p25,
                p75,
                p95,
                n,
            } = &t.step_ms;
            row(
                "step, ms",
                format!(
                    "median {median:.3}, quartiles {p25:.3} to {p75:.3}, p95 {p95:.3}, n = {n}"
                ),
            );
            if let Some(p) = &t.phases {
                let (forward, backward) = (p.forward, p.backward);
                let (optimizer, residual) = (p.optimizer, p.residual);
                row(
                    "forward, backward, optimizer, residual, ms",
                    format!("{forward:.3}, {backward:.3}, {optimizer:.3}, {residual:+.3}"),
                );
            }
        } else {
            row(
                "samples/s",
                missing("too few synchronised, unprofiled steps"),
            );
        }
        let share = self.gradients.as_ref().map(|g| {
            let (share, with, of) = (g.params_pct, g.with_grad, g.tensors);
            format!("{share:.1} % ({with} of {of} tensors)")
        });
        let share = share.unwrap_or(missing("no audit was made"));
        row("parameters with a gradient", share);
        let memory = self.memory.as_ref();
        let peak = memory.and_then(|m| m.peak_bytes).map(bytes);
        let reason = memory.and_then(|m| m.reason.as_deref());
        let peak = peak.unwrap_or(missing(reason.unwrap_or("not reported")));
        row("memory, peak", peak);
        if let Some(others) = self.others {
            row(
                "other programs",
                format!("{:.0} % of the cores", 100.0 * others),
            );
        }
        self.write_kernels(out);
        for lint in &self.lints {
            out.push_str(&format!(
                "\n- **{}**: {}. Next: {}\n",
                plain(&lint.name),
                plain(lint.why.trim_end_matches('.')),
                plain(&lint.next)
            ));
        }
    }

    fn write_kernels(&self, out: &mut String) {
        let Some(k) = &self.kernels else { return };
        let roof = self.started.roof.as_deref();
        if let Some(reason) = &k.reason {
            out.push_str(&format!("\nKernels: {}.\n", missing(reason)));
            return;
        }
        out.push_str(&format!(
            "\nOne profiled step: {} launches, {} kinds, {:.2} ms on the {} clock, coverage {:.0} %, unbracketed {:.2} ms.\n\n\
             | kernel | part | phase | calls | ms | GFLOP/s | GB/s | FLOP/byte | of the roof |\n\
             |---|---|---|---:|---:|---:|---:|---:|---:|\n",
            k.launches,
            k.unique,
            k.device_ms,
            plain(&k.clock),
            100.0 * k.coverage,
            k.unbracketed_ms
        ));
        for row in k.rows.iter().take(10) {
            let cells = [&row.kernel, &row.part, &row.phase].map(|text| plain(text));
            let reached = reached(row, roof);
            let figure = |value: Option<f64>, digits: usize| {
                value.map_or_else(|| "-".to_owned(), |it| format!("{it:.digits$}"))
            };
            out.push_str(&format!(
                "| {} | {} | {} | {} | {:.3} | {} | {} | {} | {} |\n",
                cells[0],
                cells[1],
                cells[2],
                row.calls,
                row.ms,
                figure(reached.flops_per_s.map(|it| it / 1e9), 2),
                figure(reached.bytes_per_s.map(|it| it / 1e9), 2),
                figure(reached.intensity, 2),
                reached
                    .share
                    .map_or_else(|| "-".to_owned(), |it| format!("{:.1} %", 100.0 * it)),
            ));
        }
        out.push_str(&match roof {
            None => format!("\nThe roof: {}.\n", missing("this device's peaks were not known")),
            Some(roof) => format!(
                "\nThe roof: {:.1} GFLOP/s{} and {:.1} GB/s, measured on {} on the {} clock{} (best of {}; medians {:.1} and {:.1}). \
                 A dash: the work is not known there.\n",
                roof.flops.best / 1e9,
                roof.matrix_cores.map_or_else(String::new, |it| {
                    format!(" ({:.1} in f16 on matrix cores)", it.best / 1e9)
                }),
                roof.bytes.best / 1e9,
                plain(&roof.date),
                plain(&roof.clock),
                roof.load().map_or("", |_| ", beside other programs"),
                roof.flops.n,
                roof.flops.median / 1e9,
                roof.bytes.median / 1e9,
            ),
        });
    }
}

fn comparison(stage: u32, pair: &Pair) -> String {
    let title = match stage {
        0 => "Comparison".to_owned(),
        stage => format!("Comparison, stage {stage}"),
    };
    let verdict = match pair.verdict {
        Verdict::Unclear => format!("unclear (n={})", pair.n),
        Verdict::Same => "A and B differ by less than 1 %".to_owned(),
        verdict => format!("B is {verdict}"),
    };
    let per_step = pair.tokens.map_or_else(String::new, |[a, b]| {
        format!(" for {a} and {b} tokens a step")
    });
    let differs = match plain(&pair.differs.join(", ")) {
        none if none.is_empty() => "nothing".to_owned(),
        differs => differs,
    };
    format!(
        "\n## {title}\n\n{verdict}: time of A over time of B {} (95 % interval), n = {} pairs.\n\
         A median {:.3} ms, B median {:.3} ms{per_step}. They differ in {differs}.\n",
        pair.figures(),
        pair.n,
        pair.a_ms.median,
        pair.b_ms.median
    )
}

fn missing(why: &str) -> String {
    format!("not measured: {}", plain(why))
}

/// A loss with as many digits as it needs; NaN as NaN.
pub fn short(x: Num) -> String {
    match x.0.is_finite() {
        true => format!("{:.4}", x.0),
        false => x.to_string(),
    }
}
