//! A section of a report shows the runs of one configuration of a stage, with their figures.

use serde::{Deserialize, Serialize};

use super::{device_in_words, in_words, loss_in_words};
use crate::pages::sheet::{SheetBlock, SheetTable, absent};
use crate::sanitize;
use protocol::stats::roofline::reached;
use protocol::stats::typical::step_of;
use protocol::story::{RunDescription, RunStory};
use protocol::units::{Digits, bytes, or_dash, show};
use protocol::*;

/// The number of rows of a list of kernels.
const ROWS: usize = 10;

/// The runs of one configuration of a stage.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Section {
    #[serde(rename = "started", with = "as_started")]
    pub(super) run: RunDescription,
    /// The date in the engine's greeting.
    pub(super) date: String,
    /// The step and the loss of the first step.
    pub(super) first: Option<(u64, Num)>,
    /// The step and the loss of the last step.
    pub(super) last: Option<(u64, Num)>,
    /// The step and the loss of every point of the curve.
    pub(super) curve: Vec<(u64, Num)>,
    /// The number of steps from one point of the curve to the next.
    pub(super) every: u64,
    pub(super) throughput: Option<Throughput>,
    pub(super) kernels: Option<StepProfile>,
    pub(super) gradients: Option<Gradients>,
    pub(super) memory: Option<Memory>,
    pub(super) lints: Vec<Lint>,
    /// Why the run ended before its last step; `None` if it did not.
    pub(super) ended: Option<String>,
    /// The share of the machine that other programs used, 0 to 1.
    pub(super) others: Option<f64>,
}

/// In a file, a run is described by the event with which it began.
mod as_started {
    use serde::de::Deserializer;
    use serde::ser::{Error, Serializer};
    use serde::{Deserialize, Serialize};

    use super::{RunDescription, Started};

    pub(super) fn serialize<S: Serializer>(run: &RunDescription, to: S) -> Result<S::Ok, S::Error> {
        let Some(started) = run.started() else {
            return Err(Error::custom("only runs of our engine are kept"));
        };
        started.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<RunDescription, D::Error> {
        Ok((&Started::deserialize(from)?).into())
    }
}

impl Section {
    /// Joins the runs of one configuration. There is at least one run, and the oldest comes first.
    pub(super) fn from_runs(mut runs: Vec<&RunStory>) -> Self {
        // A curve from step 0 shows more than a curve that continues from other weights, and this shows more than the steps of pairs. Of
        // several curves from step 0 the longest counts, and of several that continue the last one.
        runs.sort_by_key(|run| {
            let whole = run.first_loss().is_some();
            let steps = if whole { run.steps() } else { run.number };
            std::cmp::Reverse((!run.of_pairs, whole, steps))
        });
        let shown = runs[0];
        let point = |(step, loss): (u64, f64)| (step, Num(loss));
        // A figure that the shown run lacks comes from the next run that has it.
        let mut by_rank = runs.iter();
        Self {
            run: shown.description.clone(),
            date: shown.date.clone(),
            first: shown.loss.first().map(point),
            last: shown.own_loss().map(point),
            curve: shown.curve.points.clone(),
            every: shown.curve.every,
            throughput: by_rank.clone().find_map(|run| run.throughput.clone()),
            kernels: by_rank.clone().find_map(|run| run.kernels.clone()),
            gradients: by_rank.clone().find_map(|run| run.own_gradients().cloned()),
            memory: by_rank.find_map(|run| run.memory.clone()),
            lints: shown.lints.clone(),
            ended: shown.finished.as_ref().and_then(|end| end.ended.clone()),
            others: shown.finished.as_ref().and_then(|end| end.others),
        }
    }

    pub(super) fn stage(&self) -> u32 {
        self.run.stage
    }

    /// Returns the figures of the section in the form of the event that ends a run, without evidence.
    pub(super) fn summed_up(&self) -> Finished {
        let mut run = RunStory::new(self.run.clone());
        run.throughput.clone_from(&self.throughput);
        run.kernels.clone_from(&self.kernels);
        run.gradients.clone_from(&self.gradients);
        let loss = |point: Option<(u64, Num)>| point.map_or(Num(f64::NAN), |(_, loss)| loss);
        Finished {
            steps: self.last.map_or(0, |(step, _)| step + 1),
            loss_first: loss(self.first),
            loss_last: loss(self.last),
            memory: self.memory.clone().unwrap_or_default(),
            ..run.summed_up(self.run.ln_vocab.unwrap_or(f64::NAN))
        }
    }

    /// Returns the figures of the section. `changes` names the values that differ from the stage as found.
    pub(super) fn blocks(&self, changes: &str) -> Vec<SheetBlock> {
        let run = &self.run;
        let mut title = match run.stage {
            0 if run.is_foreign() && run.slot == Slot::B => format!("B: {}", run.name),
            0 => run.name.clone(),
            stage => format!("Stage {stage}, {}", run.name),
        };
        if let Some(rank) = run.rank {
            title += &format!(", rank {rank}");
        }
        if !changes.is_empty() {
            title += &format!(": {changes}");
        }
        let place = device_in_words(run).replacen("on", "On", 1);
        let parameters = match run.parameters {
            Some(count) => format!("{} parameters", show(count as f64, 0)),
            None => "Parameters: not reported".to_owned(),
        };
        let mut intro = format!("{place}. {parameters}");
        // The stream of a mystery does not tell its configuration.
        if let Some(hash) = &run.hash
            && !run.sealed
        {
            intro += &format!("; configuration {}", sanitize::line(hash));
        }
        intro += ".";
        if let Some(why) = &self.ended {
            intro += &format!(" Ended early: {why}.");
        }
        let mut blocks = vec![
            SheetBlock::Heading(title),
            SheetBlock::Intro(intro),
            SheetBlock::Table(SheetTable::figures(["figure", "value"], self.figures())),
        ];
        if let Some(kernels) = &self.kernels {
            blocks.extend(self.profile(kernels));
        }
        blocks.extend(self.lints.iter().map(in_words).map(SheetBlock::Remark));
        blocks
    }

    /// Returns the figures as rows of a name and a value.
    fn figures(&self) -> Vec<(&'static str, String)> {
        let loss = |point: Option<(u64, Num)>| match point {
            Some((step, loss)) => format!("{} at step {step}", loss_in_words(loss)),
            None => absent("no step was made"),
        };
        let nats = |loss: Option<f64>| match loss {
            Some(loss) => format!("{:.3}", Digits(loss)),
            None => absent("unknown"),
        };
        let mut rows = vec![
            ("loss, first", loss(self.first)),
            ("loss, last", loss(self.last)),
            ("ln V", nats(self.run.ln_vocab)),
            ("entropy of the data", nats(self.run.entropy)),
        ];
        match &self.throughput {
            Some(throughput) => rows.extend(throughput_rows(throughput)),
            None => rows.push((
                "samples/s",
                absent("too few synchronised, unprofiled steps"),
            )),
        }
        let share = match &self.gradients {
            Some(audit) => {
                let share = Digits(audit.params_pct);
                let with = audit.with_grad;
                format!("{share:.1} % ({with} of {} tensors)", audit.tensors)
            }
            None => absent("no audit was made"),
        };
        rows.push(("parameters with a gradient", share));
        let memory = self.memory.as_ref();
        let peak = match memory.and_then(|memory| memory.peak_bytes) {
            Some(peak) => bytes(peak),
            None => {
                let reason = memory.and_then(|memory| memory.reason.as_deref());
                absent(reason.unwrap_or("not reported"))
            }
        };
        rows.push(("memory, peak", peak));
        if let Some(share) = self.others {
            let text = format!("{:.0} % of the cores", Digits(100.0 * share));
            rows.push(("other programs", text));
        }
        rows
    }

    /// Returns the list of kernels of a profiled step, or the reason why there is none.
    fn profile(&self, profile: &StepProfile) -> Vec<SheetBlock> {
        if let Some(reason) = &profile.reason {
            return vec![SheetBlock::Intro(format!("Kernels: {}.", absent(reason)))];
        }
        let peaks = self.run.peaks.as_deref();
        let figure = |value: Option<f64>| or_dash(value, |value| format!("{:.2}", Digits(value)));
        let giga = |value: Option<f64>| figure(value.map(|value| value / 1e9));
        let percent = |share: f64| format!("{:.1} %", Digits(100.0 * share));
        let table = SheetTable::filled(
            profile.rows.iter().take(ROWS),
            &[
                ("kernel", &|row| row.kernel.clone()),
                ("part", &|row| row.part.clone()),
                ("phase", &|row| row.phase.clone()),
                ("calls", &|row| row.calls.to_string()),
                ("ms", &|row| format!("{:.3}", Digits(row.ms))),
                ("GFLOP/s", &|row| giga(reached(row, peaks).flops_per_s)),
                ("GB/s", &|row| giga(reached(row, peaks).bytes_per_s)),
                ("FLOP/byte", &|row| figure(reached(row, peaks).intensity)),
                ("of the roof", &|row| {
                    or_dash(reached(row, peaks).share, percent)
                }),
            ],
        );
        vec![
            SheetBlock::Intro(format!(
                "One profiled step: {} launches, {} kinds, {:.2} ms on the {} clock, \
                 coverage {:.0} % of {}, unbracketed {:.2} ms.",
                profile.launches,
                profile.unique,
                Digits(profile.device_ms),
                profile.clock,
                Digits(100.0 * profile.coverage),
                step_of(profile.coverage),
                Digits(profile.unbracketed_ms)
            )),
            SheetBlock::Table(table),
            SheetBlock::Intro(peaks_in_words(peaks)),
        ]
    }
}

/// Returns the speed and the times of a step as rows of a name and a value.
fn throughput_rows(throughput: &Throughput) -> Vec<(&'static str, String)> {
    let speed = Digits(throughput.samples_per_s);
    let samples = format!(
        "{speed:.2} ({}, clock {})",
        throughput.state, throughput.clock
    );
    let ms = &throughput.step_ms;
    let [median, p25, p75, p95] = [ms.median, ms.p25, ms.p75, ms.p95].map(Digits);
    let step = format!(
        "median {median:.3}, quartiles {p25:.3} to {p75:.3}, p95 {p95:.3}, n = {}",
        ms.n
    );
    let mut rows = vec![("samples/s", samples), ("step, ms", step)];
    if let Some(phases) = &throughput.phases {
        let [forward, backward] = [phases.forward, phases.backward].map(Digits);
        let [optimizer, rest] = [phases.optimizer, phases.residual].map(Digits);
        let times = format!("{forward:.3}, {backward:.3}, {optimizer:.3}, {rest:+.3}");
        rows.push(("forward, backward, optimizer, unaccounted, ms", times));
    }
    rows
}

/// Returns a sentence about the measured peaks of the device, or about their absence.
fn peaks_in_words(peaks: Option<&Peaks>) -> String {
    let Some(peaks) = peaks else {
        let unknown = absent("this device's peaks were not known");
        return format!("The roof: {unknown}.");
    };
    let matrix_cores = peaks.matrix_cores.map_or_else(String::new, |peak| {
        format!(" ({:.1} in f16 on matrix cores)", Digits(peak.best / 1e9))
    });
    let load = peaks.load().map_or("", |_| ", beside other programs");
    format!(
        "The roof: {:.1} GFLOP/s{matrix_cores} and {:.1} GB/s, measured on {} on the {} clock{load} \
         (best of {}; medians {:.1} and {:.1}). A dash means that the work of the row is unknown, \
         or that the row is faster than a peak that was measured beside other programs.",
        Digits(peaks.flops.best / 1e9),
        Digits(peaks.bytes.best / 1e9),
        peaks.date,
        peaks.clock,
        peaks.flops.n,
        Digits(peaks.flops.median / 1e9),
        Digits(peaks.bytes.median / 1e9),
    )
}
