//! What a stream showed, as a page: a live session and a recording give the same one. A page has one entry for each configuration of a stage:
//! its longest run, and of its other runs the figures that this one lacks.

use serde::{Deserialize, Serialize};

use super::sheet::{Curve, Sheet, SheetBlock, SheetChart, SheetTable, absent};
use crate::sanitize;
use protocol::stats::roofline::reached;
use protocol::stats::typical::step_of;
use protocol::story::{RunDescription, RunStory, StreamStory};
use protocol::units::{Digits, bytes, or_dash, show};
use protocol::*;

/// A run with fewer points does not take the place of one that was kept.
const FEW: usize = 10;
/// Rows of a kernel list.
const ROWS: usize = 10;

/// What is shown of the runs of a stream. It is also what a file keeps of the last runs of each stage.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RunReport {
    hello: Hello,
    sections: Vec<Section>,
    /// The last paired comparison of each stage.
    pairs: Vec<(u32, Pair)>,
}

/// What is shown of a configuration.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Section {
    #[serde(rename = "started", with = "as_started")]
    run: RunDescription,
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

/// In a file, a run is described by the event that began it.
mod as_started {
    use serde::de::Deserializer;
    use serde::ser::{Error, Serializer};
    use serde::{Deserialize, Serialize};

    use super::{RunDescription, Started};

    pub(super) fn serialize<S: Serializer>(run: &RunDescription, to: S) -> Result<S::Ok, S::Error> {
        let started = run.started();
        let started = started.ok_or_else(|| Error::custom("only runs of our engine are kept"))?;
        started.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<RunDescription, D::Error> {
        Ok((&Started::deserialize(from)?).into())
    }
}

impl RunReport {
    /// Of the runs of a stream, in the order in which their configurations began.
    pub fn of(story: &StreamStory) -> Self {
        let mut runs: Vec<&RunStory> = story.runs().collect();
        runs.sort_by_key(|run| run.number);
        let mut groups: Vec<Vec<&RunStory>> = Vec::new();
        for run in runs {
            let same = |group: &&mut Vec<&RunStory>| is_shown_with(group[0], run);
            match groups.iter_mut().find(same) {
                Some(group) => group.push(run),
                None => groups.push(vec![run]),
            }
        }
        Self {
            hello: story.hello.clone(),
            sections: groups.into_iter().map(Section::of).collect(),
            pairs: story.pairs().to_vec(),
        }
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
            sections.retain(|it| it.stage() != section.stage() || it.run.name != section.run.name);
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

    /// What is known of the runs of a stage, as found and fixed, for texts with figures.
    pub fn figures(&self, stage: u32) -> [Option<Finished>; 2] {
        let runs = self.runs(stage);
        let named = |names: &[&str]| {
            let mut runs = runs.iter().rev();
            let run = runs.find(|it| names.contains(&it.run.name.as_str()));
            run.map(|run| run.summed_up())
        };
        [named(&["broken"]), named(&["fixed", "custom"])]
    }

    /// A stage's curves, and where and when they were measured.
    pub fn of_stage(&self, stage: u32) -> Vec<SheetBlock> {
        let runs = self.runs(stage);
        let origin = runs.iter().map(|run| {
            let (name, on) = (&run.run.name, on(&run.run));
            SheetBlock::Remark(format!("{name}: {on}, {}", dated(&run.date)))
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
            let found = runs.iter().find(|it| it.run.slot == Slot::A);
            let found = found.and_then(|it| it.run.config.as_ref());
            for run in &runs {
                let configs = run.run.config.as_ref().zip(found);
                let beside = configs.map(|(config, found)| config.beside(found));
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

/// Whether both runs are of one configuration of a stage, in whichever slot.
fn is_shown_with(one: &RunStory, other: &RunStory) -> bool {
    let slot = one.description.slot;
    let other = RunDescription {
        slot,
        ..other.description.clone()
    };
    one.description.is_like(&other) && one.description.name == other.name
}

/// `on EPYC 9654, 2 threads (cpu)`.
fn on(run: &RunDescription) -> String {
    match &run.device {
        Some(device) => format!("on {} ({})", device.name, device.kind),
        None => "on a device that is not told".to_owned(),
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
        name: run.run.name.clone(),
        points: run.curve.iter().map(point).collect(),
    };
    let long = runs.iter().filter(|it| it.curve.len() > 1);
    let curves: Vec<Curve> = long.map(curve).collect();
    let first = runs.first().filter(|_| !curves.is_empty())?;
    let name = match stage {
        0 => "Loss over steps".to_owned(),
        stage => format!("Loss over steps, stage {stage}"),
    };
    let level = |name: &str, loss: Option<f64>| loss.map(|loss| (name.to_owned(), loss));
    let ln_vocab = level("ln V", first.run.ln_vocab);
    let levels = ln_vocab.into_iter();
    let levels = levels.chain(level("entropy", first.run.entropy)).collect();
    Some(SheetBlock::Chart(SheetChart {
        name,
        curves,
        levels,
    }))
}

impl Section {
    /// Of the runs of one configuration, at least one, the oldest first.
    fn of(mut runs: Vec<&RunStory>) -> Self {
        // A curve from step 0 says more than one that goes on from others' weights, and that more than the steps of pairs. The later ones
        // repeat the longest; of two that went on, the later one counts.
        runs.sort_by_key(|run| {
            let whole = run.first_loss().is_some();
            let steps = if whole { run.steps() } else { run.number };
            std::cmp::Reverse((!run.of_pairs, whole, steps))
        });
        let shown = runs[0];
        let point = |(step, loss): (u64, f64)| (step, Num(loss));
        let others = runs.iter();
        Self {
            run: shown.description.clone(),
            date: shown.date.clone(),
            first: shown.loss.first().map(point),
            last: shown.own_loss().map(point),
            curve: shown.curve.points.clone(),
            every: shown.curve.every,
            throughput: others.clone().find_map(|run| run.throughput.clone()),
            kernels: others.clone().find_map(|run| run.kernels.clone()),
            gradients: others.clone().find_map(|run| run.own_gradients().cloned()),
            memory: others
                .clone()
                .find_map(|run| Some(run.memory.as_ref()?.figure.clone())),
            lints: shown.lints.clone(),
            ended: shown.finished.as_ref().and_then(|it| it.ended.clone()),
            others: shown.finished.as_ref().and_then(|it| it.others),
        }
    }

    fn stage(&self) -> u32 {
        self.run.stage
    }

    /// What it shows, as the summary of a run. It keeps no evidence.
    fn summed_up(&self) -> Finished {
        let mut run = RunStory::of(self.run.clone());
        run.throughput.clone_from(&self.throughput);
        run.kernels.clone_from(&self.kernels);
        run.gradients.clone_from(&self.gradients);
        let loss = |found: Option<(u64, Num)>| found.map_or(Num(f64::NAN), |it| it.1);
        Finished {
            steps: self.last.map_or(0, |it| it.0 + 1),
            loss_first: loss(self.first),
            loss_last: loss(self.last),
            memory: self.memory.clone().unwrap_or_default(),
            ..run.summed_up(self.run.ln_vocab.unwrap_or(f64::NAN))
        }
    }

    /// Its figures; `beside` names what it has that the stage as found has not.
    fn blocks(&self, beside: &str) -> Vec<SheetBlock> {
        let run = &self.run;
        let mut title = match run.stage {
            0 => run.name.clone(),
            stage => format!("Stage {stage}, {}", run.name),
        };
        if let Some(rank) = run.rank {
            title += &format!(", rank {rank}");
        }
        if !beside.is_empty() {
            title += &format!(": {beside}");
        }
        // A mystery's stream does not tell its configuration.
        let hash = run.hash.as_ref().filter(|_| !run.sealed);
        let config = hash.map(|hash| format!("; configuration {}", sanitize::line(hash)));
        let parameters = run.parameters.map_or_else(
            || "Parameters: not reported".to_owned(),
            |it| format!("{} parameters", show(it as f64, 0)),
        );
        let early = self.ended.as_ref();
        let early = early.map(|why| format!(" Ended early: {why}."));
        let on = on(run).replacen("on", "On", 1);
        let mut blocks = vec![
            SheetBlock::Heading(title),
            SheetBlock::Intro(format!(
                "{on}. {parameters}{}.{}",
                config.unwrap_or_default(),
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
        let nats = |loss: Option<f64>| {
            let known = loss.map(|loss| format!("{:.3}", Digits(loss)));
            known.unwrap_or(absent("unknown"))
        };
        let mut rows = vec![
            ("loss, first", loss(self.first)),
            ("loss, last", loss(self.last)),
            ("ln V", nats(self.run.ln_vocab)),
            ("entropy of the data", nats(self.run.entropy)),
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
                    let [forward, backward, optimizer, rest] = ms.map(Digits);
                    rows.push((
                        "forward, backward, optimizer, unaccounted, ms",
                        format!("{forward:.3}, {backward:.3}, {optimizer:.3}, {rest:+.3}"),
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
        let roof = self.run.roof.as_deref();
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
                "One profiled step: {} launches, {} kinds, {:.2} ms on the {} clock, coverage {:.0} % of {}, unbracketed {:.2} ms.",
                k.launches,
                k.unique,
                Digits(k.device_ms),
                k.clock,
                Digits(100.0 * k.coverage),
                step_of(k.coverage),
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

    fn begun(learning_rate: f64, from_step: u64, paired: bool) -> Event {
        let mut config = RunConfig::preset(Preset::Tiny);
        config.train.learning_rate = learning_rate;
        let run = RunSpec {
            stage: 1,
            ..RunSpec::new("broken", &config)
        };
        Event::Started(Started {
            run,
            config: config.hash(),
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
            request: 0,
        })
    }

    /// Plays runs with two learning rates: where each begins, whether it is a side of pairs, and the steps that it makes.
    fn played(runs: &[(f64, u64, bool, std::ops::Range<u64>)]) -> StreamStory {
        let mut story = StreamStory::default();
        for (peak, (rate, from, paired, made)) in (1..).zip(runs.iter().cloned()) {
            story.hear(&begun(rate, from, paired), 0);
            steps(&mut story, made);
            story.hear(
                &Event::Memory(Memory {
                    peak_bytes: Some(peak),
                    ..Memory::default()
                }),
                0,
            );
        }
        story
    }

    fn steps(story: &mut StreamStory, steps: std::ops::Range<u64>) {
        for step in steps {
            let step = Step {
                step,
                loss: Some(Num(7.0 - step as f64 / 1000.0)),
                ..Step::default()
            };
            story.hear(&Event::Step(step), 0);
        }
    }

    fn points(report: &RunReport) -> Vec<(f64, f64)> {
        let blocks = report.blocks(true);
        let chart = blocks.iter().find_map(|block| match block {
            SheetBlock::Chart(chart) => Some(chart),
            _ => None,
        });
        chart.expect("a curve").curves[0].points.clone()
    }

    #[test]
    fn peaks_that_were_measured_after_the_first_loss_are_in_the_report() {
        let mut story = played(&[(0.1, 0, false, 0..1)]);
        let calibrated = Event::Calibrated {
            device: Device::default(),
            roof: Roof::default(),
        };
        story.hear(&calibrated, 0);
        assert!(RunReport::of(&story).sections[0].run.roof.is_some());
    }

    #[test]
    fn a_curve_never_runs_back() {
        let mut runs = vec![
            (0.1, 0, false, 0..50),
            // Pairs begin at step 0 and are no part of the curve.
            (0.1, 0, true, 0..20),
            (0.1, 50, false, 50..60),
            // Another run trains these weights in between.
            (0.2, 60, false, 60..90),
            (0.1, 90, false, 90..99),
            // Begun again: the same numbers, and not as far.
            (0.1, 0, false, 0..30),
        ];
        let ends = |runs: &[(f64, u64, bool, std::ops::Range<u64>)]| {
            let report = RunReport::of(&played(runs));
            let points = points(&report);
            assert!(points.is_sorted_by(|a, b| a.0 < b.0), "{points:?}");
            assert_eq!(report.sections.len(), 2);
            let last = report.sections[0].last.map(|it| it.0);
            (points.last().map(|it| it.0), last)
        };
        assert_eq!(ends(&runs), (Some(59.0), Some(59)));
        runs.push((0.1, 0, false, 0..80));
        assert_eq!(ends(&runs), (Some(79.0), Some(79)));
    }

    #[test]
    fn a_run_that_goes_on_joins_its_curve() {
        let report = RunReport::of(&played(&[(0.1, 0, false, 0..50), (0.1, 50, false, 50..60)]));
        let last = report.sections[0].last;
        assert_eq!(last.map(|(step, _)| step), Some(59));
    }

    #[test]
    fn figures_are_those_of_the_run_whose_curve_is_drawn() {
        let runs = [
            (0.1, 0, false, 0..50),
            (0.1, 0, false, 0..30),
            (0.2, 30, false, 30..60),
            // It goes on with weights that another run has trained.
            (0.1, 60, false, 60..90),
            // It repeats the first one and gets further.
            (0.1, 0, false, 0..60),
        ];
        for (number, expected) in [(1, 1), (2, 1), (3, 1), (4, 1), (5, 5)] {
            let report = RunReport::of(&played(&runs[..number]));
            let memory = report.sections[0].memory.as_ref();
            assert_eq!(memory.and_then(|it| it.peak_bytes), Some(expected));
        }
    }

    #[test]
    fn what_a_run_did_not_tell_has_its_reason() {
        let mut story = StreamStory::default();
        let run = RunDescription {
            name: "train.py".to_owned(),
            rank: Some(3),
            ..RunDescription::default()
        };
        story.begin(run, 0);
        steps(&mut story, 0..3);
        let text = RunReport::of(&story).sheet().markdown();
        assert!(text.contains("train.py, rank 3"), "{text}");
        let row = text.lines().find(|line| line.contains("ln V"));
        assert!(
            row.is_some_and(|row| row.contains(&absent("unknown"))),
            "{text}"
        );
    }

    /// A file of the version before this one.
    #[test]
    fn runs_that_were_kept_are_read_back() {
        let kept = r#"{"hello":{"protocol":1,"version":"0.1.0","pid":1,"os":"linux","cores":2,"date":"2026-11-21"},"sections":[{"started":STARTED,"date":"2026-11-20","first":[0,6.9],"last":[40,"NaN"],"curve":[[0,6.9],[2,6.8]],"every":2,"throughput":null,"kernels":null,"gradients":null,"memory":null,"lints":[],"ended":null,"others":null}],"pairs":[]}"#;
        let Event::Started(started) = begun(0.1, 0, false) else {
            unreachable!()
        };
        let started = serde_json::to_string(&started).expect("plain data");
        let kept = kept.replace("STARTED", &started);
        let report: RunReport = serde_json::from_str(&kept).expect("a file of today");
        assert_eq!(report.sections[0].curve[1], (2, Num(6.8)));
        assert_eq!(serde_json::to_string(&report).expect("plain data"), kept);
    }
}
