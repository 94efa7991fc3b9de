//! What a stream showed, as Markdown: collected while it passes, so that a live session and a recording give the same
//! report. It keeps the last figures of each run, not the stream.

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
}

impl Collector {
    /// Takes an event in.
    pub fn hear(&mut self, event: &Event) {
        match event {
            Event::Hello(hello) => self.hello = hello.clone(),
            Event::Started(started) => self.start(started),
            Event::Step(step) => {
                if let Some(section) = self.section(step.slot) {
                    section.first.get_or_insert((step.step, step.loss));
                    section.last = Some((step.step, step.loss));
                }
            }
            Event::Throughput(it) => self.keep(it.slot, |s| s.throughput = Some(it.clone())),
            Event::Kernels(it) => self.keep(it.slot, |s| s.kernels = Some(it.clone())),
            Event::Gradients(it) => self.keep(it.slot, |s| s.gradients = Some(it.clone())),
            Event::Memory(it) => self.keep(it.slot, |s| s.memory = Some(it.clone())),
            Event::Lints { slot, lints } => self.keep(*slot, |s| s.lints.clone_from(lints)),
            Event::Finished(f) => {
                self.keep(f.slot, |s| {
                    s.lints.clone_from(&f.lints);
                    s.ended.clone_from(&f.ended);
                });
                if let Some(pair) = &f.pair {
                    self.pair(pair);
                }
            }
            Event::Pair(pair) => self.pair(pair),
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
        let at = self
            .sections
            .iter()
            .position(same)
            .unwrap_or(self.sections.len());
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
        };
        // Seen again: the later run replaces the earlier one, and a side of a comparison none.
        if at == self.sections.len() {
            self.sections.push(fresh);
        } else if !started.paired {
            self.sections[at] = fresh;
        }
        self.current[started.run.slot as usize] = Some(at);
    }

    fn section(&mut self, slot: Slot) -> Option<&mut Section> {
        self.sections.get_mut(self.current[slot as usize]?)
    }

    fn keep(&mut self, slot: Slot, write: impl FnOnce(&mut Section)) {
        if let Some(section) = self.section(slot) {
            write(section);
        }
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
        let date = if self.hello.date.is_empty() {
            "date unknown"
        } else {
            &self.hello.date
        };
        let mut out = format!(
            "# perflings report\n\nMeasured on {date} by perflings {}, {}, {} cores.\n",
            plain(&self.hello.version),
            plain(&self.hello.os),
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
        let title = if run.stage == 0 {
            plain(&run.variant)
        } else {
            format!("Stage {}, {}", run.stage, plain(&run.variant))
        };
        let early = self
            .ended
            .as_ref()
            .map(|why| format!(" Ended early: {}.", plain(why)))
            .unwrap_or_default();
        out.push_str(&format!(
            "\n## {title}\n\nOn {} ({}). {} parameters; configuration `{}`.{early}\n\n| figure | value |\n|---|---|\n",
            plain(&self.started.device.name),
            plain(&self.started.device.kind),
            show(self.started.parameters as f64, 0),
            plain(&self.started.config)
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
        row(
            "entropy of the data",
            self.started
                .entropy
                .map_or(missing("unknown"), |h| format!("{h:.3}")),
        );
        match &self.throughput {
            None => row(
                "samples/s",
                missing("too few synchronised, unprofiled steps"),
            ),
            Some(t) => {
                row(
                    "samples/s",
                    format!(
                        "{:.2} ({}, clock {})",
                        t.samples_per_s,
                        t.state,
                        plain(&t.clock)
                    ),
                );
                let s = &t.step_ms;
                row(
                    "step, ms",
                    format!(
                        "median {:.3}, quartiles {:.3} to {:.3}, p95 {:.3}, n = {}",
                        s.median, s.p25, s.p75, s.p95, s.n
                    ),
                );
                if let Some(p) = &t.phases {
                    let text = "forward, backward, optimizer, residual, ms";
                    row(
                        text,
                        format!(
                            "{:.3}, {:.3}, {:.3}, {:+.3}",
                            p.forward, p.backward, p.optimizer, p.residual
                        ),
                    );
                }
            }
        }
        row(
            "parameters with a gradient",
            self.gradients
                .as_ref()
                .map_or(missing("no audit was made"), |g| {
                    format!(
                        "{:.1} % ({} of {} tensors)",
                        g.params_pct, g.with_grad, g.tensors
                    )
                }),
        );
        row(
            "memory, peak",
            match &self.memory {
                Some(Memory {
                    peak_bytes: Some(peak),
                    ..
                }) => bytes(*peak),
                Some(Memory {
                    reason: Some(reason),
                    ..
                }) => missing(reason),
                _ => missing("not reported"),
            },
        );
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
                "\nThe roof: {:.1} GFLOP/s and {:.1} GB/s, measured on {} on the {} clock (best of {}; medians {:.1} and {:.1}). \
                 A dash: the work is not known there.\n",
                roof.flops.best / 1e9,
                roof.bytes.best / 1e9,
                plain(&roof.date),
                plain(&roof.clock),
                roof.flops.n,
                roof.flops.median / 1e9,
                roof.bytes.median / 1e9,
            ),
        });
    }
}

fn comparison(stage: u32, pair: &Pair) -> String {
    let title = if stage == 0 {
        "Comparison".to_owned()
    } else {
        format!("Comparison, stage {stage}")
    };
    let verdict = if pair.verdict == Verdict::Unclear {
        format!("unclear (n={})", pair.n)
    } else {
        format!("B is {}", pair.verdict)
    };
    format!(
        "\n## {title}\n\n{verdict}: time of A over time of B {:.3}, 95 % interval {:.3} to {:.3}, n = {} pairs.\n\
         A median {:.3} ms, B median {:.3} ms. They differ in {}.\n",
        pair.ratio,
        pair.low,
        pair.high,
        pair.n,
        pair.a_ms.median,
        pair.b_ms.median,
        if pair.differs.is_empty() {
            "nothing".to_owned()
        } else {
            plain(&pair.differs.join(", "))
        }
    )
}

fn missing(why: &str) -> String {
    format!("not measured: {}", plain(why))
}

fn short(x: Num) -> String {
    if x.0.is_finite() {
        format!("{:.4}", x.0)
    } else {
        x.to_string()
    }
}

/// A text that cannot break a table or act on a terminal.
fn plain(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect::<String>()
        .replace('|', "\\|")
}
