//! The figures of a bench as data: what `--json` writes and `--baseline` reads. A cell is made of its runs; a figure
//! that is not there comes with its reason.

use serde::{Deserialize, Serialize};

use super::missing::Missing;
use super::plan::Job;
use crate::profile::stats::median;
use crate::protocol::{Device, Finished, GradSummary, Hello, Lint, Num, Spread, State, TopKernel};

/// Version of the JSON form. A larger one is refused.
pub const FORMAT: u32 = 1;

/// A whole result of versions or of a sweep.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// `versions` or `sweep`.
    pub bench: String,
    pub format: u32,
    pub machine: Machine,
    /// Steps of each run, and runs of each cell asked for.
    pub steps: u64,
    pub rounds: u32,
    pub cells: Vec<Cell>,
    pub missing: Vec<Missing>,
    /// Whether it was broken off before all was measured.
    pub interrupted: bool,
}

/// What ran the engine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Version of the program.
    pub version: String,
    pub os: String,
    pub cores: u32,
    /// `YYYY-MM-DD`, UTC.
    pub date: String,
}

impl Machine {
    pub fn of(hello: &Hello) -> Self {
        Self {
            version: hello.version.clone(),
            os: hello.os.clone(),
            cores: hello.cores,
            date: hello.date.clone(),
        }
    }
}

/// One run's summary, and when its first loss came, in seconds since its engine started.
#[derive(Clone, Debug)]
pub struct Run {
    pub first_point_s: Option<f64>,
    pub finished: Finished,
}

/// One device × preset × version (× value of a sweep), over all its rounds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// As it was asked for.
    pub select: String,
    pub device: Device,
    pub preset: String,
    pub version: String,
    pub value: Option<u64>,
    /// Content hash of the configuration.
    pub config: String,
    pub batch: u64,
    pub context: u64,
    pub rounds: u32,
    pub speed: Option<Speed>,
    /// Why there is no speed.
    pub speed_reason: Option<String>,
    pub clock: String,
    /// Seconds from the engine's start to the first loss: of the first round, and the median of the later ones.
    pub first_point_s: Option<f64>,
    pub later_points_s: Option<f64>,
    pub kernels: Option<Kernels>,
    pub kernels_reason: Option<String>,
    pub memory: Memory,
    /// Of the round that had the fewest.
    pub grad: GradSummary,
    pub loss_first: Num,
    pub loss_last: Num,
    /// Every lint of every round, once.
    pub lints: Vec<Lint>,
}

/// Speed over the rounds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Speed {
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
    pub state: State,
}

/// The profile of the round whose device time is the middle one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Kernels {
    pub launches_per_step: u32,
    pub unique: u32,
    pub device_ms: f64,
    pub coverage: f64,
    /// The three that take longest.
    pub top: Vec<TopKernel>,
}

/// Bytes by kind; the largest of the rounds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    pub weights: u64,
    pub gradients: u64,
    pub moments: u64,
    pub peak: Option<u64>,
    /// Why there is no peak.
    pub reason: Option<String>,
}

impl Cell {
    /// None without a run.
    pub fn of(job: &Job, runs: &[Run]) -> Option<Self> {
        let first = &runs.first()?.finished;
        let last = &runs.last()?.finished;
        let train = &job.config.train;
        let speed = Speed::of(runs, train.batch as f64, train.context as f64);
        let kernels = Kernels::of(runs);
        let later: Vec<f64> = runs[1..].iter().filter_map(|r| r.first_point_s).collect();
        let mut lints: Vec<Lint> = Vec::new();
        for lint in runs.iter().flat_map(|r| &r.finished.lints) {
            if !lints.iter().any(|l| l.name == lint.name) {
                lints.push(lint.clone());
            }
        }
        let grads = runs.iter().map(|r| &r.finished.grad);
        Some(Self {
            select: job.device.clone(),
            device: first.device.clone(),
            preset: job.preset.to_string(),
            version: job.version.clone(),
            value: job.value,
            config: first.config.clone(),
            batch: train.batch as u64,
            context: train.context as u64,
            rounds: runs.len() as u32,
            speed_reason: speed.is_none().then(|| why_no_speed(last)),
            speed,
            clock: last.clock.clone(),
            first_point_s: runs[0].first_point_s,
            later_points_s: (!later.is_empty()).then(|| median(&later)),
            kernels_reason: kernels.is_none().then(|| why_no_kernels(last)),
            kernels,
            memory: Memory::of(runs),
            grad: grads
                .min_by(|a, b| a.params_pct.total_cmp(&b.params_pct))
                .cloned()
                .unwrap_or_default(),
            loss_first: first.loss_first,
            loss_last: last.loss_last,
            lints,
        })
    }
}

fn why_no_speed(run: &Finished) -> String {
    if run.clock == "enqueue" {
        "no step waited for the device".to_owned()
    } else {
        "no synchronised, unprofiled step after warm-up; give more --steps".to_owned()
    }
}

fn why_no_kernels(run: &Finished) -> String {
    let reason = run.kernels.reason.clone();
    reason.unwrap_or_else(|| "no step was profiled".to_owned())
}

impl Speed {
    /// None where no round timed a step against the device's clock.
    fn of(runs: &[Run], batch: f64, context: f64) -> Option<Self> {
        let timed: Vec<(&Spread, State)> = runs
            .iter()
            .map(|r| &r.finished)
            .filter(|f| f.clock != "enqueue")
            .filter_map(|f| Some((f.step_ms.as_ref()?, f.state)))
            .filter(|(ms, _)| ms.n > 0 && ms.median.is_finite() && ms.median > 0.0)
            .collect();
        let over = |figure: fn(&Spread) -> f64| {
            median(&timed.iter().map(|(ms, _)| figure(ms)).collect::<Vec<_>>())
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

/// How far a series is from one that can be trusted.
fn unrest(state: &State) -> u8 {
    match state {
        State::Steady => 0,
        State::Settling => 1,
        State::Noisy => 2,
        State::Drifting => 3,
        State::Warming => 4,
    }
}

impl Kernels {
    fn of(runs: &[Run]) -> Option<Self> {
        let mut seen: Vec<_> = runs
            .iter()
            .map(|r| &r.finished.kernels)
            .filter(|k| k.reason.is_none() && k.device_ms > 0.0)
            .collect();
        seen.sort_by(|a, b| a.device_ms.total_cmp(&b.device_ms));
        let middle = seen.get(seen.len().saturating_sub(1) / 2)?;
        Some(Self {
            launches_per_step: middle.launches_per_step,
            unique: middle.unique,
            device_ms: middle.device_ms,
            coverage: middle.coverage,
            top: middle.top.iter().take(3).cloned().collect(),
        })
    }
}

impl Memory {
    fn of(runs: &[Run]) -> Self {
        let all = || runs.iter().map(|r| &r.finished.memory);
        let most = |kind: fn(&crate::protocol::Memory) -> u64| all().map(kind).max().unwrap_or(0);
        let peak = all().filter_map(|m| m.peak_bytes).max();
        let reason = all().find_map(|m| m.reason.clone());
        Self {
            weights: most(|m| m.weights),
            gradients: most(|m| m.gradients),
            moments: most(|m| m.moments),
            peak,
            reason: match peak {
                Some(_) => None,
                None => Some(reason.unwrap_or_else(|| "the engine did not say".to_owned())),
            },
        }
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::config::{Preset, RunConfig};
    use crate::protocol::KernelSummary;

    pub fn job(version: &str) -> Job {
        Job {
            group: 0,
            device: "cpu".to_owned(),
            preset: Preset::Tiny,
            version: version.to_owned(),
            value: None,
            config: RunConfig::preset(Preset::Tiny),
        }
    }

    pub fn run(ms: f64, n: u64) -> Run {
        let step_ms = Spread {
            median: ms,
            p25: ms * 0.99,
            p75: ms * 1.01,
            p95: ms * 1.05,
            n,
        };
        Run {
            first_point_s: Some(ms / 100.0),
            finished: Finished {
                config: "c0".to_owned(),
                device: Device {
                    kind: "cpu".to_owned(),
                    name: "Chip".to_owned(),
                },
                samples_per_s: Some(8e3 / ms),
                step_ms: (n > 0).then_some(step_ms),
                clock: "host-sync".to_owned(),
                state: State::Steady,
                kernels: KernelSummary {
                    launches_per_step: 40,
                    unique: 9,
                    device_ms: ms * 0.9,
                    coverage: 0.9,
                    ..KernelSummary::default()
                },
                ..Finished::default()
            },
        }
    }

    #[test]
    fn a_cell_is_the_median_of_its_rounds() {
        let runs = [run(20.0, 25), run(30.0, 25), run(21.0, 25)];
        let cell = Cell::of(&job("v1"), &runs).expect("runs");
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
        let speed = Cell::of(&job("v1"), &[run(20.0, 25)]).and_then(|c| c.speed);
        let speed = speed.expect("speed");
        let notch = 1.57 * (20.0 * 0.02) / 5.0;
        assert!((speed.high_ms - 20.0 - notch).abs() < 1e-9);
    }

    #[test]
    fn what_is_not_there_says_why() {
        let mut silent = run(20.0, 0);
        silent.finished.kernels.reason = Some("no timestamps".to_owned());
        let cell = Cell::of(&job("v1"), &[silent.clone()]).expect("a run");
        assert!(cell.speed_reason.expect("why").contains("more --steps"));
        assert_eq!(cell.kernels_reason.as_deref(), Some("no timestamps"));
        assert_eq!(
            cell.memory.reason.as_deref(),
            Some("the engine did not say")
        );
        silent.finished.clock = "enqueue".to_owned();
        let cell = Cell::of(&job("v1"), &[silent]).expect("a run");
        assert!(cell.speed_reason.expect("why").contains("waited"));
        assert!(Cell::of(&job("v1"), &[]).is_none());
    }
}
