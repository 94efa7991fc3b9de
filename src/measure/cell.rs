//! The cells of a bench: the figures of one configuration on one device, over all its runs. A missing figure comes with its reason.
//!
//! ```text
//! rounds  20.0 ms, 30.0 ms, 21.0 ms   ─▶  step 21.0 ms, interval 20.0 to 30.0 ms
//! ```

use serde::{Deserialize, Serialize};

use super::runner::{EngineTask, TaskResult};
use protocol::config::Preset;
use protocol::stats::robust::median;
use protocol::{
    self, Device, ENQUEUE, Finished, GradSummary, KernelSummary, Lint, Num, Spread, TimingState,
};

/// The subject of a measurement: one configuration on one device, or two configurations that are compared there.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The number of the group. Subjects of one group are measured in turns.
    pub group: usize,
    pub device: String,
    pub preset: Preset,
    /// The name of the configuration, as in `v1` or `v1+train.batch=4`.
    pub version: String,
    pub work: EngineTask,
}

/// The figures of one version at one preset on one device, over all rounds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BenchCell {
    /// The device as it was named on the command line.
    pub select: String,
    pub device: Device,
    pub preset: String,
    pub version: String,
    /// The hash of the configuration's content.
    pub config: String,
    pub batch: u64,
    pub context: u64,
    pub rounds: u32,
    pub speed: Option<CellSpeed>,
    /// The reason why there is no speed.
    pub speed_reason: Option<String>,
    pub clock: String,
    /// The seconds from the engine's start to the first loss in the first round.
    pub first_point_s: Option<f64>,
    /// The median seconds from the engine's start to the first loss over the later rounds.
    pub later_points_s: Option<f64>,
    /// The profile of the round with the median device time, with its three longest operations.
    pub kernels: Option<KernelSummary>,
    /// The reason why there is no profile.
    pub kernels_reason: Option<String>,
    pub memory: CellMemory,
    /// The gradients of the round in which the fewest parameters had one.
    pub grad: GradSummary,
    pub loss_first: Num,
    pub loss_last: Num,
    /// Every lint of every round, once.
    pub lints: Vec<Lint>,
    /// The largest share of the machine that other programs used in a round. `None` if the system does not report it.
    pub others: Option<f64>,
    /// The comparison with an earlier result. `None` if there was none.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub since: Option<BaselineVerdict>,
}

/// The tokens per second over the tokens per second of a baseline, and the interval that follows from both intervals.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    pub ratio: f64,
    pub low: f64,
    pub high: f64,
}

/// The comparison of a cell with the cell of an earlier result.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BaselineVerdict {
    Pass(Ratio),
    /// The whole interval is below the required ratio.
    Slower(Ratio),
    /// The cells cannot be compared for this reason. Such a cell never counts as passed.
    NotComparable(String),
}

/// The speed over all rounds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CellSpeed {
    /// The batch divided by the median step time.
    pub samples_per_s: f64,
    pub tokens_per_s: f64,
    /// The spread of step times. Each figure is the median over the rounds. `n` counts the steps of all rounds.
    pub step_ms: Spread,
    /// The lower end of the interval of the median step time. The interval covers the medians of all rounds and median ± 1.57·IQR/√n
    /// (McGill, Tukey and Larsen, 1978).
    pub low_ms: f64,
    /// The upper end of that interval.
    pub high_ms: f64,
    /// The median step time of each round.
    pub rounds_ms: Vec<f64>,
    /// The state of the least settled round.
    pub state: TimingState,
}

/// The memory by kind, in bytes. Each figure is the largest of all rounds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellMemory {
    pub weights: u64,
    pub gradients: u64,
    pub moments: u64,
    pub peak: Option<u64>,
    /// The reason why there is no peak.
    pub reason: Option<String>,
}

impl BenchCell {
    /// Sums up the runs of a subject. `None` without a finished run.
    pub fn from_runs(subject: &Subject, runs: &[&TaskResult]) -> Option<Self> {
        let finished: Vec<&Finished> = runs
            .iter()
            .filter_map(|run| run.finished.as_ref())
            .collect();
        let first = *finished.first()?;
        let last = *finished.last()?;
        let train = &subject.work.configs()[0].train;
        let speed = CellSpeed::from_runs(&finished, train.batch as f64, train.context as f64);
        let no_speed = match last.clock.as_str() {
            ENQUEUE => "no step waited for the device; give more --steps",
            _ => "no synchronised, unprofiled step after warm-up; give more --steps",
        };
        let kernels = middle_profile(&finished);
        let no_kernels = last
            .kernels
            .reason
            .clone()
            .unwrap_or_else(|| "no step was profiled".to_owned());
        let later_starts: Vec<f64> = runs[1..]
            .iter()
            .filter_map(|run| run.first_loss_s)
            .collect();
        let fewest_gradients = finished
            .iter()
            .map(|run| &run.grad)
            .min_by(|grad, other| grad.params_pct.total_cmp(&other.params_pct));
        let mut lints: Vec<Lint> = Vec::new();
        for lint in finished.iter().flat_map(|run| &run.lints) {
            if !lints.iter().any(|known| known.name == lint.name) {
                lints.push(lint.clone());
            }
        }
        Some(Self {
            select: subject.device.clone(),
            device: first.device.clone(),
            preset: subject.preset.to_string(),
            version: subject.version.clone(),
            config: first.config.clone(),
            batch: train.batch as u64,
            context: train.context as u64,
            rounds: runs.len() as u32,
            speed_reason: speed.is_none().then(|| no_speed.to_owned()),
            speed,
            clock: last.clock.clone(),
            first_point_s: runs[0].first_loss_s,
            later_points_s: (!later_starts.is_empty()).then(|| median(&later_starts)),
            kernels_reason: kernels.is_none().then_some(no_kernels),
            kernels,
            memory: CellMemory::from_runs(&finished),
            grad: fewest_gradients.cloned().unwrap_or_default(),
            loss_first: first.loss_first,
            loss_last: last.loss_last,
            others: finished
                .iter()
                .filter_map(|run| run.others)
                .reduce(f64::max),
            lints,
            since: None,
        })
    }

    /// Returns the ratio of the speed per token to a baseline's, so that configurations with different batches can be compared.
    ///
    /// # Errors
    /// Returns the reason why there is no ratio.
    pub fn against(&self, baseline: &Self) -> Result<Ratio, String> {
        let [now, low, high] = self.ms_per_token()?;
        let [base, base_low, base_high] = baseline
            .ms_per_token()
            .map_err(|why| format!("no baseline: {why}"))?;
        Ok(Ratio {
            ratio: base / now,
            low: base_low / high,
            high: base_high / low,
        })
    }

    /// Returns the median time of a token and the ends of its interval in ms, or the reason why there are none.
    fn ms_per_token(&self) -> Result<[f64; 3], String> {
        let reason = || self.speed_reason.clone().unwrap_or_default();
        let speed = self.speed.as_ref().ok_or_else(reason)?;
        let tokens = (self.batch * self.context) as f64;
        let times = [speed.step_ms.median, speed.low_ms, speed.high_ms].map(|ms| ms / tokens);
        if times.iter().all(|ms| ms.is_finite() && *ms > 0.0) {
            Ok(times)
        } else {
            Err("its step time is not a positive number".to_owned())
        }
    }

    /// Compares the cell with its counterpart in an earlier result. The cell is slower if even the favourable ends of both intervals give a
    /// ratio below `min_ratio`.
    pub fn judge(&mut self, earlier: &[Self], min_ratio: f64) {
        let ratio = match earlier.iter().find(|other| self.same_version(other)) {
            None => Err("the baseline does not have it".to_owned()),
            Some(then) if then.device != self.device => Err(format!(
                "other device: `{}` then, `{}` now",
                then.device.name, self.device.name
            )),
            Some(then) if then.config != self.config => Err(format!(
                "other configuration: {} then, {} now",
                then.config, self.config
            )),
            Some(then) => self.against(then),
        };
        self.since = Some(match ratio {
            Ok(ratio) if ratio.high < min_ratio => BaselineVerdict::Slower(ratio),
            Ok(ratio) => BaselineVerdict::Pass(ratio),
            Err(why) => BaselineVerdict::NotComparable(why),
        });
    }

    /// Returns the name of the cell, as in `cpu tiny v3`.
    pub fn name(&self) -> String {
        format!("{} {} {}", self.select, self.preset, self.version)
    }

    /// Returns true if the speed is computed from the time of the whole run, because no step waited for the device.
    pub fn by_wall_time(&self) -> bool {
        self.clock == ENQUEUE && self.speed.is_some()
    }

    /// Returns true if both cells have the same device, preset and version.
    pub fn same_version(&self, other: &Self) -> bool {
        (&self.select, &self.preset, &self.version)
            == (&other.select, &other.preset, &other.version)
    }
}

/// Returns the profile with the median device time, cut to its three longest operations. `None` if no run has a profile.
fn middle_profile(runs: &[&Finished]) -> Option<KernelSummary> {
    let mut profiles: Vec<&KernelSummary> = runs
        .iter()
        .map(|run| &run.kernels)
        .filter(|profile| profile.reason.is_none() && profile.device_ms > 0.0)
        .collect();
    profiles.sort_by(|profile, other| profile.device_ms.total_cmp(&other.device_ms));
    let mut middle = (*profiles.get(profiles.len().saturating_sub(1) / 2)?).clone();
    middle.top.truncate(3);
    Some(middle)
}

/// Returns the step time of a run in which no step waited for the device, from its rate by wall time. The spread of the steps is not known, so
/// all quantiles are equal.
fn step_by_wall_time(batch: f64, finished: &Finished) -> Option<Spread> {
    let ms = 1e3 * batch / finished.samples_per_s?;
    Some(Spread {
        median: ms,
        p25: ms,
        p75: ms,
        p95: ms,
        n: finished.steps,
    })
}

impl CellSpeed {
    /// Sums up the rounds. `None` if no round has a synchronised step or a rate by wall time.
    fn from_runs(runs: &[&Finished], batch: f64, context: f64) -> Option<Self> {
        let timed: Vec<(Spread, TimingState)> = runs
            .iter()
            .filter_map(|run| match run.clock.as_str() {
                ENQUEUE => Some((step_by_wall_time(batch, run)?, run.state)),
                _ => Some((run.step_ms?, run.state)),
            })
            .filter(|(ms, _)| ms.n > 0 && ms.median.is_finite() && ms.median > 0.0)
            .collect();
        let median_of = |figure: fn(&Spread) -> f64| {
            let figures: Vec<f64> = timed.iter().map(|(ms, _)| figure(ms)).collect();
            median(&figures)
        };
        let unrest = |state: &TimingState| match state {
            TimingState::Steady => 0,
            TimingState::Settling => 1,
            TimingState::Noisy => 2,
            TimingState::Drifting => 3,
            TimingState::Warming => 4,
        };
        let state = timed.iter().map(|(_, state)| *state).max_by_key(unrest)?;
        let step_ms = Spread {
            median: median_of(|ms| ms.median),
            p25: median_of(|ms| ms.p25),
            p75: median_of(|ms| ms.p75),
            p95: median_of(|ms| ms.p95),
            n: timed.iter().map(|(ms, _)| ms.n).sum(),
        };
        let rounds_ms: Vec<f64> = timed.iter().map(|(ms, _)| ms.median).collect();
        let notch = 1.57 * (step_ms.p75 - step_ms.p25) / (step_ms.n as f64).sqrt();
        let shortest = rounds_ms.iter().copied().fold(f64::INFINITY, f64::min);
        let longest = rounds_ms.iter().copied().fold(0.0, f64::max);
        let samples_per_s = 1e3 * batch / step_ms.median;
        Some(Self {
            samples_per_s,
            tokens_per_s: samples_per_s * context,
            // A wide notch of few steps must not reach below zero.
            low_ms: shortest.min((step_ms.median - notch).max(step_ms.median / 10.0)),
            high_ms: longest.max(step_ms.median + notch),
            step_ms,
            rounds_ms,
            state,
        })
    }
}

impl CellMemory {
    fn from_runs(runs: &[&Finished]) -> Self {
        let all = || runs.iter().map(|run| &run.memory);
        let largest = |kind: fn(&protocol::Memory) -> u64| all().map(kind).max().unwrap_or(0);
        let peak = all().filter_map(|memory| memory.peak_bytes).max();
        let reason = all()
            .find_map(|memory| memory.reason.clone())
            .unwrap_or_else(|| "the engine did not say".to_owned());
        Self {
            weights: largest(|memory| memory.weights),
            gradients: largest(|memory| memory.gradients),
            moments: largest(|memory| memory.moments),
            peak,
            reason: peak.is_none().then_some(reason),
        }
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use protocol::config::RunConfig;

    /// Makes a cell at `tiny` on the CPU, from rounds with these step times in ms and `steps` steps each.
    pub fn cell(version: &str, rounds: &[f64], steps: u64) -> BenchCell {
        let runs: Vec<TaskResult> = rounds.iter().map(|ms| run(*ms, steps)).collect();
        cell_of(version, &runs)
    }

    fn cell_of(version: &str, runs: &[TaskResult]) -> BenchCell {
        let subject = Subject {
            group: 0,
            device: "cpu".to_owned(),
            preset: Preset::Tiny,
            version: version.to_owned(),
            work: EngineTask::run(version, &RunConfig::preset(Preset::Tiny), 30),
        };
        let results: Vec<&TaskResult> = runs.iter().collect();
        BenchCell::from_runs(&subject, &results).expect("runs")
    }

    /// Makes a run with this median step time. Its middle half spans 2 % of the median, and its first loss comes after `ms` / 100 seconds.
    fn run(ms: f64, steps: u64) -> TaskResult {
        let step_ms = Spread {
            median: ms,
            p25: ms * 0.99,
            p75: ms * 1.01,
            p95: ms * 1.05,
            n: steps,
        };
        TaskResult {
            first_loss_s: Some(ms / 100.0),
            finished: Some(Finished {
                config: "c0".to_owned(),
                device: Device {
                    kind: "cpu".to_owned(),
                    name: "Chip".to_owned(),
                },
                step_ms: (steps > 0).then_some(step_ms),
                clock: "host-sync".to_owned(),
                state: TimingState::Steady,
                kernels: KernelSummary {
                    launches_per_step: 40,
                    unique: 9,
                    device_ms: ms * 0.9,
                    coverage: 0.9,
                    ..KernelSummary::default()
                },
                ..Finished::default()
            }),
            ..TaskResult::default()
        }
    }

    #[test]
    fn a_cell_is_the_median_of_its_rounds() {
        let cell = cell("v1", &[20.0, 30.0, 21.0], 25);

        let speed = cell.speed.expect("speed");
        assert_eq!(speed.step_ms.median, 21.0);
        assert_eq!(speed.step_ms.n, 3 * 25);
        let batch = cell.batch as f64;
        assert_eq!(speed.samples_per_s, 1e3 * batch / 21.0);
        assert_eq!(cell.kernels.expect("a profile").device_ms, 21.0 * 0.9);
    }

    #[test]
    fn the_interval_of_a_cell_covers_its_rounds() {
        let cell = cell("v1", &[20.0, 30.0, 21.0], 25);

        let speed = cell.speed.expect("speed");
        assert_eq!((speed.low_ms, speed.high_ms), (20.0, 30.0));
    }

    #[test]
    fn the_first_start_is_apart_from_the_later_ones() {
        let cell = cell("v1", &[20.0, 30.0, 21.0], 25);

        assert_eq!(cell.first_point_s, Some(0.2));
        // The median of 0.30 and 0.21 s.
        assert_eq!(cell.later_points_s, Some(0.255));
    }

    #[test]
    fn one_round_has_the_interval_of_its_steps() {
        let speed = cell("v1", &[20.0], 25).speed.expect("speed");

        let notch = 1.57 * (20.0 * 0.02) / 25f64.sqrt();
        assert!((speed.high_ms - 20.0 - notch).abs() < 1e-9);
        assert!((speed.low_ms - 20.0 + notch).abs() < 1e-9);
    }

    #[test]
    fn a_missing_figure_has_its_reason() {
        let mut without_steps = run(20.0, 0);
        let finished = without_steps.finished.as_mut().expect("a summary");
        finished.kernels.reason = Some("no timestamps".to_owned());

        let cell = cell_of("v1", &[without_steps]);

        let speed_reason = "no synchronised, unprofiled step after warm-up; give more --steps";
        assert_eq!(cell.speed_reason.as_deref(), Some(speed_reason));
        assert_eq!(cell.kernels_reason.as_deref(), Some("no timestamps"));
        let memory_reason = cell.memory.reason.as_deref();
        assert_eq!(memory_reason, Some("the engine did not say"));
    }

    #[test]
    fn a_run_in_which_no_step_waits_has_its_speed_by_wall_time() {
        let run_at_rate = |samples_per_s| {
            // Steps are submitted in a tenth of the time that they take.
            let mut result = run(2.0, 25);
            let finished = result.finished.as_mut().expect("a summary");
            finished.clock = ENQUEUE.to_owned();
            finished.steps = 25;
            finished.samples_per_s = samples_per_s;
            result
        };
        let rates = [400.0, 320.0, 500.0].map(Some);

        let cell = cell_of("v1", &rates.map(run_at_rate));
        let without_rate = cell_of("v1", &[run_at_rate(None)]);

        assert!(cell.by_wall_time() && cell.speed_reason.is_none());
        let speed = cell.speed.expect("speed");
        assert_eq!(speed.samples_per_s, 400.0);
        // Steps of 8 samples at 500 and at 320 samples/s.
        assert_eq!((speed.low_ms, speed.high_ms), (16.0, 25.0));
        let reason = without_rate.speed_reason.expect("a reason");
        assert!(
            reason.starts_with("no step waited for the device"),
            "{reason}"
        );
    }

    #[test]
    fn a_cell_is_slower_only_if_the_whole_interval_is() {
        let earlier = [cell("v1", &[20.0, 20.1, 20.2], 25)];
        for (rounds, is_slower) in [
            ([20.0, 20.1, 20.2], false),
            ([10.0, 10.1, 10.2], false),
            ([30.0, 30.1, 30.2], true),
            // The median takes 1.5 times as long, but one round was as fast as before.
            ([20.0, 30.1, 30.2], false),
        ] {
            let mut now = cell("v1", &rounds, 25);

            now.judge(&earlier, 0.95);
            let found_slower = matches!(now.since, Some(BaselineVerdict::Slower(_)));
            let passes = matches!(now.since, Some(BaselineVerdict::Pass(_)));
            assert_eq!(
                (found_slower, passes),
                (is_slower, !is_slower),
                "{rounds:?}"
            );

            now.judge(&earlier, 0.5);
            assert!(matches!(now.since, Some(BaselineVerdict::Pass(_))));
        }
    }

    #[test]
    fn a_cell_that_cannot_be_compared_never_passes() {
        let changed = |change: fn(&mut BenchCell)| {
            let mut cell = cell("v1", &[20.0], 25);
            change(&mut cell);
            vec![cell]
        };
        for (earlier, expected) in [
            (
                changed(|cell| cell.device.name = "Other".to_owned()),
                "other device: `Other` then, `Chip` now",
            ),
            (
                changed(|cell| cell.config = "c1".to_owned()),
                "other configuration: c1 then, c0 now",
            ),
            (changed(|cell| cell.speed = None), "no baseline: "),
            (
                changed(|cell| cell.speed = Some(CellSpeed::default())),
                "no baseline: its step time is not a positive number",
            ),
            (Vec::new(), "the baseline does not have it"),
        ] {
            let mut now = cell("v1", &[20.0], 25);

            now.judge(&earlier, 0.95);

            let reason = BaselineVerdict::NotComparable(expected.to_owned());
            assert_eq!(now.since, Some(reason));
        }
    }
}
