//! What a stream showed: collected while it passes, so that a live session and a recording give the same report. It keeps the
//! last figures of each run and a thinned curve of its loss, not the stream.

use serde::{Deserialize, Serialize};

use super::sheet::{Curve, Sheet, SheetBlock, SheetChart, SheetTable, absent};
use crate::record::Recording;
use crate::sanitize;
use protocol::stats::roofline::{self, reached};
use protocol::units::{Digits, bytes, or_dash, show};
use protocol::*;

/// Points of a curve; where there are more, every second one is left out.
const POINTS: usize = 400;
/// A run with fewer points does not take the place of one that was kept.
const FEW: usize = 10;
/// Rows of a kernel list.
const ROWS: usize = 10;

/// The last figures of every run of a stream.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RunCollector {
    hello: Hello,
    sections: Vec<Section>,
    /// Which section each slot writes to, and what of the slot's run belongs there.
    #[serde(skip)]
    current: [Option<usize>; 2],
    #[serde(skip)]
    belongs: [Belongs; 2],
    /// Starts from step 0 so far.
    #[serde(skip)]
    starts: u32,
    /// The last paired comparison of each stage.
    pairs: Vec<(u32, Pair)>,
}

/// What a recording showed.
pub fn collect(recording: &Recording) -> RunCollector {
    let mut collector = RunCollector::default();
    recording
        .iter()
        .for_each(|line| collector.hear(&line.event));
    collector
}

/// What of a run belongs to its section. Figures belong there with the curve; of another run a section takes those that it lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Belongs {
    /// Its curve is another run's.
    #[default]
    Nothing,
    /// It repeats the curve from step 0, and takes over beyond its end.
    Beyond,
    All,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Section {
    started: Started,
    /// Which start its curve goes on from; none where it is made of a comparison's steps.
    #[serde(skip)]
    start: Option<u32>,
    /// As the engine's greeting had it.
    date: String,
    first: Option<(u64, Num)>,
    last: Option<(u64, Num)>,
    /// The loss at every so many steps.
    curve: Vec<(u64, Num)>,
    every: u64,
    throughput: Option<Throughput>,
    kernels: Option<StepProfile>,
    gradients: Option<Gradients>,
    memory: Option<Memory>,
    lints: Vec<Lint>,
    ended: Option<String>,
    /// The share of the machine that other programs used.
    others: Option<f64>,
}

impl RunCollector {
    /// Takes an event in.
    pub fn hear(&mut self, event: &Event) {
        match event {
            Event::Hello(hello) => self.hello = hello.clone(),
            Event::Started(started) => self.start(started),
            Event::Calibrated { device, roof } => {
                let runs = self.sections.iter_mut().map(|it| &mut it.started);
                runs.for_each(|run| roofline::note_peaks(run, device, roof));
            }
            Event::Step(step) => self.step(step),
            Event::Throughput(it) => self.keep(it.slot, |s, own| put(&mut s.throughput, it, own)),
            Event::Kernels(it) => self.keep(it.slot, |s, own| put(&mut s.kernels, it, own)),
            Event::Gradients(it) => self.keep(it.slot, |s, own| put(&mut s.gradients, it, own)),
            Event::Memory(it) => self.keep(it.slot, |s, own| put(&mut s.memory, it, own)),
            Event::Lints { slot, lints } => self.keep(*slot, |s, own| {
                if own {
                    s.lints.clone_from(lints);
                }
            }),
            Event::Finished(f) => {
                self.keep(f.slot, |s, own| {
                    if own {
                        s.lints.clone_from(&f.lints);
                        s.ended.clone_from(&f.ended);
                        s.others = f.others;
                    }
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
        let began = started.from_step == 0;
        self.starts += u32::from(began && !started.paired);
        let start = (!started.paired).then_some(self.starts);
        let fresh = Section {
            started: started.clone(),
            start,
            date: self.hello.date.clone(),
            first: None,
            last: None,
            curve: Vec::new(),
            every: 1,
            throughput: None,
            kernels: None,
            gradients: None,
            memory: None,
            lints: Vec::new(),
            ended: None,
            others: None,
        };
        let slot = started.run.slot as usize;
        (self.current[slot], self.belongs[slot]) = (Some(at), Belongs::All);
        let Some(known) = self.sections.get_mut(at) else {
            return self.sections.push(fresh);
        };
        // Seen again: a curve goes on where its weights do, and is never joined with that of other weights.
        let whole = known.start.is_some() && known.first.is_some_and(|(step, _)| step == 0);
        // Unless another run has trained these weights since.
        let joins = known
            .last
            .is_none_or(|(last, _)| started.from_step <= last + 1);
        self.belongs[slot] = match started.paired {
            true if known.start.is_some() => Belongs::Nothing,
            true => Belongs::All,
            false if known.start == start && joins => {
                (known.started, known.ended) = (started.clone(), None);
                Belongs::All
            }
            false if whole && began => Belongs::Beyond,
            false if whole || known.start == start => Belongs::Nothing,
            false => {
                *known = fresh;
                Belongs::All
            }
        };
    }

    fn step(&mut self, step: &Step) {
        let slot = step.slot as usize;
        let section = self.current[slot].and_then(|at| self.sections.get_mut(at));
        let belongs = &mut self.belongs[slot];
        let Some(s) = section.filter(|_| *belongs != Belongs::Nothing) else {
            return;
        };
        if s.last.is_some_and(|(last, _)| step.step <= last) {
            return;
        }
        if *belongs == Belongs::Beyond {
            (s.start, s.ended, *belongs) = (Some(self.starts), None, Belongs::All);
        }
        s.first.get_or_insert((step.step, step.loss));
        s.last = Some((step.step, step.loss));
        s.draw(step.step, step.loss);
    }

    /// Writes to the section of a slot; `write` hears whether it is told of the run whose curve is drawn there.
    fn keep(&mut self, slot: Slot, write: impl FnOnce(&mut Section, bool)) {
        let own = self.belongs[slot as usize] == Belongs::All;
        let section = self.current[slot as usize].and_then(|at| self.sections.get_mut(at));
        if let Some(section) = section {
            write(section, own);
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
    pub fn sheet(&self) -> Sheet {
        let mut blocks = vec![
            SheetBlock::Title("perflings report".to_owned()),
            self.origin(),
        ];
        if self.sections.is_empty() {
            blocks.push(SheetBlock::Intro("No run was started.".to_owned()));
        }
        blocks.extend(self.blocks(true));
        Sheet(blocks)
    }

    /// The last run of each variant of a stage, without the comparisons; the earlier one where this stream has none to speak of.
    pub fn kept(&self, earlier: &Self) -> Self {
        let told = |it: &&Section| it.stage() > 0 && it.curve.len() >= FEW;
        let mut sections: Vec<Section> = Vec::new();
        for section in earlier.sections.iter().chain(&self.sections).filter(told) {
            sections.retain(|it| {
                it.stage() != section.stage()
                    || it.started.run.variant != section.started.run.variant
            });
            sections.push(section.clone());
        }
        let hello = match self.hello.date.is_empty() {
            true => &earlier.hello,
            false => &self.hello,
        };
        Self {
            hello: hello.clone(),
            sections,
            ..Self::default()
        }
    }

    pub fn is_empty(&self) -> bool {
        self.sections.is_empty()
    }

    fn runs(&self, stage: u32) -> Vec<&Section> {
        let runs = self.sections.iter();
        runs.filter(|it| it.stage() == stage).collect()
    }

    /// A stage's curves, and where and when they were measured.
    pub fn of_stage(&self, stage: u32) -> Vec<SheetBlock> {
        let runs = self.runs(stage);
        let origin = runs.iter().map(|run| {
            let (variant, device) = (&run.started.run.variant, &run.started.device);
            SheetBlock::Remark(format!(
                "{variant}: on {} ({}), {}",
                device.name,
                device.kind,
                dated(&run.date)
            ))
        });
        let curves = curves(stage, &runs);
        curves.into_iter().chain(origin).collect()
    }

    /// The runs and the comparisons; with the curves of stages, too, where `drawn`.
    pub fn blocks(&self, drawn: bool) -> Vec<SheetBlock> {
        let mut stages: Vec<u32> = self.sections.iter().map(Section::stage).collect();
        stages.sort_unstable();
        stages.dedup();
        let mut blocks = Vec::new();
        for stage in stages {
            let runs = self.runs(stage);
            let mut after = curves(stage, &runs).filter(|_| drawn || stage == 0);
            let found = runs.iter().find(|it| it.started.run.slot == Slot::A);
            let found = found.map(|it| &it.started.run.config);
            for run in &runs {
                let beside = found.map(|found| run.started.run.config.beside(found));
                blocks.extend(run.blocks(&beside.unwrap_or_default()));
                blocks.extend(after.take());
            }
            let pairs = self.pairs.iter().filter(|(of, _)| *of == stage);
            blocks.extend(pairs.flat_map(|(stage, pair)| comparison(*stage, pair)));
        }
        blocks
    }

    /// When, and on what.
    pub fn origin(&self) -> SheetBlock {
        let date = dated(&self.hello.date);
        let (version, os, cores) = (&self.hello.version, &self.hello.os, self.hello.cores);
        SheetBlock::Intro(format!(
            "Measured on {date} by perflings {version}, {os}, {cores} cores."
        ))
    }
}

/// Puts a figure where it belongs, or where there is none.
fn put<T: Clone>(place: &mut Option<T>, found: &T, belongs: bool) {
    if belongs || place.is_none() {
        *place = Some(found.clone());
    }
}

fn dated(date: &str) -> &str {
    match date {
        "" => "date unknown",
        date => date,
    }
}

/// The losses of a stage's runs, one over the other.
fn curves(stage: u32, runs: &[&Section]) -> Option<SheetBlock> {
    let point = |(step, loss): &(u64, Num)| (*step as f64, loss.0);
    let curve = |run: &&Section| Curve {
        name: run.started.run.variant.clone(),
        points: run.curve.iter().map(point).collect(),
    };
    let long = runs.iter().filter(|it| it.curve.len() > 1);
    let curves: Vec<Curve> = long.map(curve).collect();
    let first = runs.first().filter(|_| !curves.is_empty())?;
    let name = match stage {
        0 => "Loss over steps".to_owned(),
        stage => format!("Loss over steps, stage {stage}"),
    };
    let floor = first.started.entropy.map(|it| ("entropy".to_owned(), it));
    let levels = [Some(("ln V".to_owned(), first.started.ln_vocab)), floor];
    let levels = levels.into_iter().flatten().collect();
    Some(SheetBlock::Chart(SheetChart {
        name,
        curves,
        levels,
    }))
}

impl Section {
    fn stage(&self) -> u32 {
        self.started.run.stage
    }

    /// Takes a point in, and thins the curve out where it has too many.
    fn draw(&mut self, step: u64, loss: Num) {
        if !step.is_multiple_of(self.every) {
            return;
        }
        self.curve.push((step, loss));
        if self.curve.len() > POINTS {
            self.every *= 2;
            let every = self.every;
            self.curve.retain(|(step, _)| step.is_multiple_of(every));
        }
    }

    /// Its figures; `beside` names what it has that the stage as found has not.
    fn blocks(&self, beside: &str) -> Vec<SheetBlock> {
        let run = &self.started.run;
        let mut title = match run.stage {
            0 => run.variant.clone(),
            stage => format!("Stage {stage}, {}", run.variant),
        };
        if !beside.is_empty() {
            title += &format!(": {beside}");
        }
        // A mystery's stream does not tell its configuration.
        let config = match run.sealed {
            true => String::new(),
            false => format!("; configuration {}", sanitize::line(&self.started.config)),
        };
        let early = self.ended.as_ref();
        let early = early.map(|why| format!(" Ended early: {why}."));
        let device = &self.started.device;
        let mut blocks = vec![
            SheetBlock::Heading(title),
            SheetBlock::Intro(format!(
                "On {} ({}). {} parameters{config}.{}",
                device.name,
                device.kind,
                show(self.started.parameters as f64, 0),
                early.unwrap_or_default()
            )),
            SheetBlock::Table(SheetTable::figures(["figure", "value"], self.figures())),
        ];
        if let Some(kernels) = &self.kernels {
            blocks.extend(self.profile(kernels));
        }
        blocks.extend(self.lints.iter().map(in_words).map(SheetBlock::Remark));
        blocks
    }

    fn figures(&self) -> Vec<(&'static str, String)> {
        let loss = |found: Option<(u64, Num)>| {
            found.map_or(absent("no step was made"), |(step, x)| {
                format!("{} at step {step}", short(x))
            })
        };
        let entropy = self.started.entropy.map(|h| format!("{:.3}", Digits(h)));
        let mut rows = vec![
            ("loss, first", loss(self.first)),
            ("loss, last", loss(self.last)),
            ("ln V", format!("{:.3}", Digits(self.started.ln_vocab))),
            ("entropy of the data", entropy.unwrap_or(absent("unknown"))),
        ];
        match &self.throughput {
            Some(t) => {
                let (speed, clock) = (Digits(t.samples_per_s), &t.clock);
                let speed = format!("{speed:.2} ({}, clock {clock})", t.state);
                rows.push(("samples/s", speed));
                let (ms, n) = (&t.step_ms, t.step_ms.n);
                let ms = [ms.median, ms.p25, ms.p75, ms.p95];
                let [median, p25, p75, p95] = ms.map(Digits);
                let step = format!(
                    "median {median:.3}, quartiles {p25:.3} to {p75:.3}, p95 {p95:.3}, n = {n}"
                );
                rows.push(("step, ms", step));
                if let Some(p) = &t.phases {
                    let ms = [p.forward, p.backward, p.optimizer, p.residual];
                    let [forward, backward, optimizer, residual] = ms.map(Digits);
                    rows.push((
                        "forward, backward, optimizer, residual, ms",
                        format!("{forward:.3}, {backward:.3}, {optimizer:.3}, {residual:+.3}"),
                    ));
                }
            }
            None => rows.push((
                "samples/s",
                absent("too few synchronised, unprofiled steps"),
            )),
        }
        let share = self.gradients.as_ref().map(|g| {
            let (share, with, of) = (Digits(g.params_pct), g.with_grad, g.tensors);
            format!("{share:.1} % ({with} of {of} tensors)")
        });
        let share = share.unwrap_or(absent("no audit was made"));
        rows.push(("parameters with a gradient", share));
        let memory = self.memory.as_ref();
        let peak = memory.and_then(|m| m.peak_bytes).map(bytes);
        let reason = memory.and_then(|m| m.reason.as_deref());
        let peak = peak.unwrap_or(absent(reason.unwrap_or("not reported")));
        rows.push(("memory, peak", peak));
        if let Some(others) = self.others {
            let others = format!("{:.0} % of the cores", Digits(100.0 * others));
            rows.push(("other programs", others));
        }
        rows
    }

    fn profile(&self, k: &StepProfile) -> Vec<SheetBlock> {
        if let Some(reason) = &k.reason {
            return vec![SheetBlock::Intro(format!("Kernels: {}.", absent(reason)))];
        }
        let roof = self.started.roof.as_deref();
        let figure = |value: Option<f64>, digits: usize| {
            or_dash(value, |it| format!("{:.digits$}", Digits(it)))
        };
        let giga = |value: Option<f64>| figure(value.map(|it| it / 1e9), 2);
        let percent = |share: f64| format!("{:.1} %", Digits(100.0 * share));
        let table = SheetTable::filled(
            k.rows.iter().take(ROWS),
            &[
                ("kernel", &|it| it.kernel.clone()),
                ("part", &|it| it.part.clone()),
                ("phase", &|it| it.phase.clone()),
                ("calls", &|it| it.calls.to_string()),
                ("ms", &|it| format!("{:.3}", Digits(it.ms))),
                ("GFLOP/s", &|it| giga(reached(it, roof).flops_per_s)),
                ("GB/s", &|it| giga(reached(it, roof).bytes_per_s)),
                ("FLOP/byte", &|it| figure(reached(it, roof).intensity, 2)),
                ("of the roof", &|it| {
                    or_dash(reached(it, roof).share, percent)
                }),
            ],
        );
        let roof = match roof {
            None => format!(
                "The roof: {}.",
                absent("this device's peaks were not known")
            ),
            Some(roof) => format!(
                "The roof: {:.1} GFLOP/s{} and {:.1} GB/s, measured on {} on the {} clock{} (best of {}; medians {:.1} and {:.1}). \
                 A dash: the work is not known there, or it is faster than a peak that was measured beside other programs.",
                Digits(roof.flops.best / 1e9),
                roof.matrix_cores.map_or_else(String::new, |it| {
                    format!(" ({:.1} in f16 on matrix cores)", Digits(it.best / 1e9))
                }),
                Digits(roof.bytes.best / 1e9),
                roof.date,
                roof.clock,
                roof.load().map_or("", |_| ", beside other programs"),
                roof.flops.n,
                Digits(roof.flops.median / 1e9),
                Digits(roof.bytes.median / 1e9),
            ),
        };
        vec![
            SheetBlock::Intro(format!(
                "One profiled step: {} launches, {} kinds, {:.2} ms on the {} clock, coverage {:.0} %, unbracketed {:.2} ms.",
                k.launches,
                k.unique,
                Digits(k.device_ms),
                k.clock,
                Digits(100.0 * k.coverage),
                Digits(k.unbracketed_ms)
            )),
            SheetBlock::Table(table),
            SheetBlock::Intro(roof),
        ]
    }
}

fn comparison(stage: u32, pair: &Pair) -> [SheetBlock; 2] {
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
    let differs = differing(pair);
    let said = format!(
        "{verdict}: time of A over time of B {} (95 % interval), n = {} pairs. \
         A median {:.3} ms, B median {:.3} ms{per_step}. They differ in {differs}.",
        pair.figures(),
        pair.n,
        Digits(pair.a_ms.median),
        Digits(pair.b_ms.median)
    );
    [SheetBlock::Heading(title), SheetBlock::Intro(said)]
}

/// The keys in which A and B differ.
pub fn differing(pair: &Pair) -> String {
    match pair.differs.join(", ") {
        none if none.is_empty() => "nothing".to_owned(),
        differs => differs,
    }
}

/// A lint with its reason and what to do next.
pub fn in_words(lint: &Lint) -> String {
    let why = lint.why.trim_end_matches('.');
    format!("{}: {why}. Next: {}", lint.name, lint.next)
}

/// A loss with as many digits as it needs; NaN as NaN.
pub fn short(x: Num) -> String {
    match x.0.is_finite() {
        true => format!("{:.4}", Digits(x.0)),
        false => x.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::config::{Preset, RunConfig};

    fn begun(from_step: u64, paired: bool) -> Event {
        let run = RunSpec {
            stage: 1,
            ..RunSpec::new("broken", &RunConfig::preset(Preset::Tiny))
        };
        Event::Started(Started {
            run,
            config: String::new(),
            device: Device::default(),
            parameters: 1,
            tensors: 1,
            ln_vocab: 6.9,
            entropy: None,
            forward_flops: 1.0,
            from_step,
            roof: None,
            paired,
            matrix_cores: false,
        })
    }

    #[test]
    fn peaks_that_were_measured_after_the_first_loss_are_in_the_report() {
        let mut collector = RunCollector::default();
        collector.hear(&begun(0, false));
        collector.hear(&Event::Calibrated {
            device: Device::default(),
            roof: Roof::default(),
        });
        assert!(collector.sections[0].started.roof.is_some());
    }

    fn steps(collector: &mut RunCollector, steps: std::ops::Range<u64>) {
        for step in steps {
            collector.hear(&Event::Step(Step {
                step,
                loss: Num(7.0 - step as f64 / 1000.0),
                ..Step::default()
            }));
        }
    }

    fn points(collector: &RunCollector) -> Vec<(f64, f64)> {
        let blocks = collector.blocks(true);
        let chart = blocks.iter().find_map(|block| match block {
            SheetBlock::Chart(chart) => Some(chart),
            _ => None,
        });
        chart.expect("a curve").curves[0].points.clone()
    }

    #[test]
    fn a_curve_never_runs_back() {
        let mut collector = RunCollector::default();
        let runs = [
            (0, false, 0..50),
            // Pairs begin at step 0 and are no part of the curve.
            (0, true, 0..20),
            (50, false, 50..60),
            // Another run has trained these weights in between.
            (90, false, 90..99),
            // Begun again: the same numbers, until it gets further.
            (0, false, 0..30),
            (0, false, 0..80),
        ];
        for (from, paired, made) in runs {
            collector.hear(&begun(from, paired));
            steps(&mut collector, made);
        }
        let points = points(&collector);
        assert!(points.is_sorted_by(|a, b| a.0 < b.0), "{points:?}");
        assert_eq!(points.last().map(|it| it.0), Some(79.0));
        assert_eq!(collector.sections.len(), 1);
        assert_eq!(collector.sections[0].last.map(|it| it.0), Some(79));
    }

    #[test]
    fn a_run_that_goes_on_joins_its_curve() {
        let mut collector = RunCollector::default();
        for (from, made) in [(0, 0..50), (50, 50..60)] {
            collector.hear(&begun(from, false));
            steps(&mut collector, made);
        }
        assert_eq!(points(&collector).last().map(|it| it.0), Some(59.0));
    }

    #[test]
    fn figures_are_those_of_the_run_whose_curve_is_drawn() {
        let mut collector = RunCollector::default();
        let shown = |collector: &RunCollector| {
            let memory = collector.sections[0].memory.as_ref();
            memory.and_then(|it| it.peak_bytes)
        };
        // The third goes on from weights of another run; the last repeats the first and gets further.
        for (from, made, peak, expected) in [
            (0, 0..50, 1, 1),
            (0, 0..30, 2, 1),
            (30, 30..90, 3, 1),
            (0, 0..60, 4, 4),
        ] {
            collector.hear(&begun(from, false));
            steps(&mut collector, made);
            collector.hear(&Event::Memory(Memory {
                peak_bytes: Some(peak),
                ..Memory::default()
            }));
            assert_eq!(shown(&collector), Some(expected));
        }
    }

    #[test]
    fn a_long_curve_is_thinned_and_keeps_its_ends() {
        let mut collector = RunCollector::default();
        collector.hear(&begun(0, false));
        steps(&mut collector, 0..5_000);
        let points = points(&collector);
        assert!(points.len() <= POINTS, "{}", points.len());
        assert_eq!(points.first(), Some(&(0.0, 7.0)));
        assert!(points.last().is_some_and(|it| it.0 > 4_950.0), "{points:?}");
    }
}
