//! What a bench measures and what became of it: the figures of one configuration on one device, over all its runs. A figure
//! that is not there comes with its reason.

use serde::{Deserialize, Serialize};

use super::runner::{EngineTask, TaskResult};
use protocol::config::Preset;
use protocol::stats::robust::median;
use protocol::{
    self, Device, ENQUEUE, Finished, GradSummary, KernelSummary, Lint, Num, Spread, TimingState,
};

/// One configuration on one device, or two that are compared there.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Subjects of one group are measured in turns.
    pub group: usize,
    pub device: String,
    pub preset: Preset,
    /// `v1`, or `v1+train.batch=4`.
    pub version: String,
    pub work: EngineTask,
}

/// One device × preset × version, over all its rounds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BenchCell {
    /// As it was asked for.
    pub select: String,
    pub device: Device,
    pub preset: String,
    pub version: String,
    /// Content hash of the configuration.
    pub config: String,
    pub batch: u64,
    pub context: u64,
    pub rounds: u32,
    pub speed: Option<CellSpeed>,
    /// Why there is no speed.
    pub speed_reason: Option<String>,
    pub clock: String,
    /// Seconds from the engine's start to the first loss: of the first round, and the median of the later ones.
    pub first_point_s: Option<f64>,
    pub later_points_s: Option<f64>,
    /// The profile of the round whose device time is the middle one, with the three operations that take longest.
    pub kernels: Option<KernelSummary>,
    pub kernels_reason: Option<String>,
    pub memory: CellMemory,
    /// Of the round that had the fewest.
    pub grad: GradSummary,
    pub loss_first: Num,
    pub loss_last: Num,
    /// Every lint of every round, once.
    pub lints: Vec<Lint>,
    /// The largest share of the machine that other programs used in a round, where the system tells.
    pub others: Option<f64>,
    /// What became of it since an earlier result, where it was compared with one.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub since: Option<BaselineVerdict>,
}

/// Tokens per second over those of a baseline, and where that lies given both spreads.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    pub ratio: f64,
    pub low: f64,
    pub high: f64,
}

/// A cell beside the same cell of an earlier result.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BaselineVerdict {
    Pass(Ratio),
    /// Surely below the ratio asked for.
    Slower(Ratio),
    /// The reason. Such a cell never counts as passed.
    NotComparable(String),
}

/// Speed over the rounds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CellSpeed {
    /// batch / median step time.
    pub samples_per_s: f64,
    pub tokens_per_s: f64,
    /// Each figure is the median of the rounds'; `n` counts the steps of all.
    pub step_ms: Spread,
    /// Where the median step time lies: the hull of the rounds' medians and of median ± 1.57·IQR/√n (McGill, Tukey
    /// and Larsen, 1978).
    pub low_ms: f64,
    pub high_ms: f64,
    /// Median step time of each round.
    pub rounds_ms: Vec<f64>,
    /// The least settled of the rounds.
    pub state: TimingState,
}

/// Bytes by kind; the largest of the rounds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellMemory {
    pub weights: u64,
    pub gradients: u64,
    pub moments: u64,
    pub peak: Option<u64>,
    /// Why there is no peak.
    pub reason: Option<String>,
}

impl BenchCell {
    /// None without a run.
    pub fn of(subject: &Subject, runs: &[&TaskResult]) -> Option<Self> {
        let finished: Vec<&Finished> = runs.iter().filter_map(|r| r.finished.as_ref()).collect();
        let (first, last) = (*finished.first()?, *finished.last()?);
        let train = &subject.work.configs()[0].train;
        let speed = CellSpeed::of(&finished, train.batch as f64, train.context as f64);
        let no_speed = match last.clock.as_str() {
            ENQUEUE => "no step waited for the device; give more --steps",
            _ => "no synchronised, unprofiled step after warm-up; give more --steps",
        };
        let kernels = middle_profile(&finished);
        let no_kernels = last.kernels.reason.clone();
        let no_kernels = no_kernels.unwrap_or_else(|| "no step was profiled".to_owned());
        let later: Vec<f64> = runs[1..].iter().filter_map(|r| r.first_loss_s).collect();
        let fewest = finished.iter().map(|f| &f.grad);
        let fewest = fewest.min_by(|a, b| a.params_pct.total_cmp(&b.params_pct));
        let mut lints: Vec<Lint> = Vec::new();
        for lint in finished.iter().flat_map(|f| &f.lints) {
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
            later_points_s: (!later.is_empty()).then(|| median(&later)),
            kernels_reason: kernels.is_none().then_some(no_kernels),
            kernels,
            memory: CellMemory::of(&finished),
            grad: fewest.cloned().unwrap_or_default(),
            loss_first: first.loss_first,
            loss_last: last.loss_last,
            others: finished.iter().filter_map(|f| f.others).reduce(f64::max),
            lints,
            since: None,
        })
    }

    /// Speed per token over a baseline's, so that a batch of its own is not compared by its steps; or why there is none.
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

    fn ms_per_token(&self) -> Result<[f64; 3], String> {
        let why = || self.speed_reason.clone().unwrap_or_default();
        let speed = self.speed.as_ref().ok_or_else(why)?;
        let tokens = (self.batch * self.context) as f64;
        let times = [speed.step_ms.median, speed.low_ms, speed.high_ms].map(|ms| ms / tokens);
        match times.iter().all(|x| x.is_finite() && *x > 0.0) {
            true => Ok(times),
            false => Err("its step time is not a positive number".to_owned()),
        }
    }

    /// Judges the cell by the same one of an earlier result.
    pub fn judge(&mut self, earlier: &[Self], min_ratio: f64) {
        let then = earlier.iter().find(|other| self.same_version(other));
        let ratio = match then {
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
            // Even at the favourable ends of both intervals it is too slow.
            Ok(ratio) if ratio.high < min_ratio => BaselineVerdict::Slower(ratio),
            Ok(ratio) => BaselineVerdict::Pass(ratio),
            Err(why) => BaselineVerdict::NotComparable(why),
        });
    }

    /// `cpu tiny v3`.
    pub fn name(&self) -> String {
        format!("{} {} {}", self.select, self.preset, self.version)
    }

    /// Whether the speed is that of the whole run, because no step waited for the device.
    pub fn by_wall_time(&self) -> bool {
        self.clock == ENQUEUE && self.speed.is_some()
    }

    /// Whether both measure the same version of the same preset on the same device.
    pub fn same_version(&self, other: &Self) -> bool {
        (&self.select, &self.preset, &self.version)
            == (&other.select, &other.preset, &other.version)
    }
}

fn middle_profile(runs: &[&Finished]) -> Option<KernelSummary> {
    let seen = runs.iter().map(|f| &f.kernels);
    let mut seen: Vec<_> = seen
        .filter(|k| k.reason.is_none() && k.device_ms > 0.0)
        .collect();
    seen.sort_by(|a, b| a.device_ms.total_cmp(&b.device_ms));
    let mut middle = (*seen.get(seen.len().saturating_sub(1) / 2)?).clone();
    middle.top.truncate(3);
    Some(middle)
}

/// The time of a step that nobody waited for, from the rate by wall time: its spread is not known.
fn by_wall(batch: f64, finished: &Finished) -> Option<Spread> {
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
    /// None where no round timed a step against the device's clock, or knows its rate by wall time.
    fn of(runs: &[&Finished], batch: f64, context: f64) -> Option<Self> {
        let timed: Vec<(Spread, TimingState)> = runs
            .iter()
            .filter_map(|f| match f.clock.as_str() {
                ENQUEUE => Some((by_wall(batch, f)?, f.state)),
                _ => Some((f.step_ms?, f.state)),
            })
            .filter(|(ms, _)| ms.n > 0 && ms.median.is_finite() && ms.median > 0.0)
            .collect();
        let over = |figure: fn(&Spread) -> f64| {
            median(&timed.iter().map(|(ms, _)| figure(ms)).collect::<Vec<_>>())
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
            median: over(|ms| ms.median),
            p25: over(|ms| ms.p25),
            p75: over(|ms| ms.p75),
            p95: over(|ms| ms.p95),
            n: timed.iter().map(|(ms, _)| ms.n).sum(),
        };
        let rounds_ms: Vec<f64> = timed.iter().map(|(ms, _)| ms.median).collect();
        let notch = 1.57 * (step_ms.p75 - step_ms.p25) / (step_ms.n as f64).sqrt();
        let least = rounds_ms.iter().copied().fold(f64::INFINITY, f64::min);
        let most = rounds_ms.iter().copied().fold(0.0, f64::max);
        let samples_per_s = 1e3 * batch / step_ms.median;
        Some(Self {
            samples_per_s,
            tokens_per_s: samples_per_s * context,
            // A wide notch of few steps must not reach below zero.
            low_ms: least.min((step_ms.median - notch).max(step_ms.median / 10.0)),
            high_ms: most.max(step_ms.median + notch),
            step_ms,
            rounds_ms,
            state,
        })
    }
}

impl CellMemory {
    fn of(runs: &[&Finished]) -> Self {
        let all = || runs.iter().map(|f| &f.memory);
        let most = |kind: fn(&protocol::Memory) -> u64| all().map(kind).max().unwrap_or(0);
        let peak = all().filter_map(|m| m.peak_bytes).max();
        let reason = all().find_map(|m| m.reason.clone());
        let reason = reason.unwrap_or_else(|| "the engine did not say".to_owned());
        Self {
            weights: most(|m| m.weights),
            gradients: most(|m| m.gradients),
            moments: most(|m| m.moments),
            peak,
            reason: peak.is_none().then_some(reason),
        }
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use protocol::config::RunConfig;

    /// A cell of v1 at `tiny` on the CPU, of rounds with these step times in ms and `n` steps each.
    pub fn cell(version: &str, rounds: &[f64], n: u64) -> BenchCell {
        let runs: Vec<TaskResult> = rounds.iter().map(|ms| run(*ms, n)).collect();
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
        let runs: Vec<&TaskResult> = runs.iter().collect();
        BenchCell::of(&subject, &runs).expect("runs")
    }

    fn run(ms: f64, n: u64) -> TaskResult {
        let step_ms = Spread {
            median: ms,
            p25: ms * 0.99,
            p75: ms * 1.01,
            p95: ms * 1.05,
            n,
        };
        TaskResult {
            first_loss_s: Some(ms / 100.0),
            finished: Some(Finished {
                config: "c0".to_owned(),
                device: Device {
                    kind: "cpu".to_owned(),
                    name: "Chip".to_owned(),
                },
                step_ms: (n > 0).then_some(step_ms),
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
        assert_eq!((speed.step_ms.median, speed.step_ms.n), (21.0, 75));
        assert_eq!(speed.samples_per_s, 8e3 / 21.0);
        assert_eq!((speed.low_ms, speed.high_ms), (20.0, 30.0));
        assert_eq!(cell.first_point_s, Some(0.2));
        assert_eq!(cell.later_points_s, Some(0.255));
        assert_eq!(cell.kernels.expect("seen").device_ms, 21.0 * 0.9);
    }

    #[test]
    fn one_round_has_the_interval_of_its_steps() {
        let speed = cell("v1", &[20.0], 25).speed.expect("speed");
        let notch = 1.57 * (20.0 * 0.02) / 5.0;
        assert!((speed.high_ms - 20.0 - notch).abs() < 1e-9);
    }

    #[test]
    fn a_missing_figure_has_its_reason() {
        let mut silent = run(20.0, 0);
        let finished = silent.finished.as_mut().expect("a summary");
        finished.kernels.reason = Some("no timestamps".to_owned());
        let cell = cell_of("v1", &[silent.clone()]);
        assert!(cell.speed_reason.expect("why").contains("more --steps"));
        assert_eq!(cell.kernels_reason.as_deref(), Some("no timestamps"));
        assert_eq!(
            cell.memory.reason.as_deref(),
            Some("the engine did not say")
        );
        silent.finished.as_mut().expect("a summary").clock = ENQUEUE.to_owned();
        let reason = cell_of("v1", &[silent]).speed_reason;
        assert!(reason.expect("why").contains("waited"));
    }

    #[test]
    fn a_run_in_which_no_step_waits_has_its_speed_by_wall_time() {
        let of = |samples_per_s| {
            // Steps are submitted in a tenth of the time that they take.
            let mut run = run(2.0, 25);
            let finished = run.finished.as_mut().expect("a summary");
            (finished.clock, finished.steps) = (ENQUEUE.to_owned(), 25);
            finished.samples_per_s = Some(samples_per_s);
            run
        };
        let cell = cell_of("v1", &[400.0, 320.0, 500.0].map(of));
        assert!(cell.by_wall_time() && cell.speed_reason.is_none());
        let speed = cell.speed.expect("speed");
        assert_eq!(speed.samples_per_s, 400.0);
        assert_eq!((speed.low_ms, speed.high_ms), (16.0, 25.0));
    }

    #[test]
    fn slower_is_only_what_is_slower_beyond_both_intervals() {
        let then = [cell("v1", &[20.0, 20.1, 20.2], 25)];
        for (ms, slower) in [
            ([20.0, 20.1, 20.2], false),
            ([10.0, 10.1, 10.2], false),
            ([30.0, 30.1, 30.2], true),
            // The median is 1.5 times as slow, but one round was as fast as ever.
            ([20.0, 30.1, 30.2], false),
        ] {
            let mut now = cell("v1", &ms, 25);
            now.judge(&then, 0.95);
            match now.since.clone().expect("a verdict") {
                BaselineVerdict::Slower(_) => assert!(slower, "{ms:?}"),
                BaselineVerdict::Pass(_) => assert!(!slower, "{ms:?}"),
                BaselineVerdict::NotComparable(why) => panic!("{why}"),
            }
            now.judge(&then, 0.5);
            assert!(matches!(now.since, Some(BaselineVerdict::Pass(_))));
        }
    }

    #[test]
    fn what_cannot_be_compared_never_passes() {
        let mut now = cell("v1", &[20.0], 25);
        let other = |change: fn(&mut BenchCell)| {
            let mut cell = cell("v1", &[20.0], 25);
            change(&mut cell);
            vec![cell]
        };
        for (then, says) in [
            (
                other(|cell| cell.device.name = "Other".to_owned()),
                "other device: `Other` then, `Chip` now",
            ),
            (
                other(|cell| cell.config = "c1".to_owned()),
                "other configuration: c1 then, c0 now",
            ),
            (other(|cell| cell.speed = None), "no baseline"),
            (
                other(|cell| cell.speed = Some(Default::default())),
                "is not a positive number",
            ),
            (Vec::new(), "the baseline does not have it"),
        ] {
            now.judge(&then, 0.95);
            let Some(BaselineVerdict::NotComparable(why)) = &now.since else {
                panic!("{:?}", now.since);
            };
            assert!(why.contains(says), "{says}: {why}");
        }
    }
}
