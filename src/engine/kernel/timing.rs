//! How long one launch at the real size takes, beside the starter's and the solution's. The three take turns, so that
//! drift hits all alike, and each launch works on buffers that the last few did not touch, so that caches help none.

use std::time::{Duration, Instant};

use burn_wgpu::wgpu;

use super::gpu::{Gpu, Pipeline, Trouble};
use super::trial::Trial;
use super::work;
use crate::profile::{roofline, stats};
use crate::protocol::{KernelRatio, KernelRole, KernelTime};

/// Bytes to go through before a buffer is used again, and sets of buffers at most.
const TURNOVER: usize = 256 << 20;
const MAX_SETS: usize = 16;
/// Rounds; fewer than the first when a round takes long.
const ROUNDS: u32 = 40;
const MIN_ROUNDS: u32 = 6;
const BUDGET: Duration = Duration::from_millis(1500);

/// A kernel in the race.
pub struct Runner {
    pub pipeline: Pipeline,
    pub grid: [u32; 3],
}

/// Times `kernel`, and beside it the starter and the solution where they are other kernels.
///
/// # Errors
/// When a launch fails.
pub fn time(
    trial: &Trial<'_>,
    inputs: &[Vec<f32>],
    kernel: &Runner,
    starter: Option<&Runner>,
    solution: Option<&Runner>,
) -> Result<KernelTime, Trouble> {
    let gpu = trial.gpu;
    let sets = Sets::new(trial, inputs)?;
    let runners: Vec<&Runner> = [Some(kernel), starter, solution]
        .into_iter()
        .flatten()
        .collect();
    let bound = runners
        .iter()
        .map(|runner| sets.bind(gpu, runner, trial))
        .collect::<Result<Vec<_>, _>>()?;
    let mut turn = 0;
    let mut round = |backwards: bool| -> Result<Vec<f64>, Trouble> {
        let mut order: Vec<usize> = (0..runners.len()).collect();
        if backwards {
            order.reverse();
        }
        let launches: Vec<_> = order
            .iter()
            .map(|&which| {
                turn += 1;
                let set = &bound[which][turn % bound[which].len()];
                (&runners[which].pipeline, set, runners[which].grid)
            })
            .collect();
        let times = gpu.time(&launches)?;
        let mut sorted = vec![0.0; times.len()];
        order
            .iter()
            .zip(times)
            .for_each(|(which, seconds)| sorted[*which] = seconds * 1e3);
        Ok(sorted)
    };
    for backwards in [false, true] {
        round(backwards)?;
    }
    let began = Instant::now();
    let mut rounds: Vec<Vec<f64>> = Vec::new();
    for index in 0..ROUNDS {
        if index >= MIN_ROUNDS && began.elapsed() > BUDGET {
            break;
        }
        rounds.push(round(index % 2 == 1)?);
    }
    let column = |which: usize| {
        rounds
            .iter()
            .map(|round| round[which])
            .collect::<Vec<f64>>()
    };
    let against = |which: usize| {
        let pairs: Vec<_> = rounds
            .iter()
            .map(|round| (round[which], round[0]))
            .collect();
        let found = stats::compare(&pairs);
        KernelRatio {
            ratio: found.ratio,
            low: found.low,
            high: found.high,
        }
    };
    let starter = starter.map(|_| 1);
    let solution = solution.map(|_| 1 + usize::from(starter.is_some()));
    Ok(KernelTime {
        shape: trial.shape.label.clone(),
        ms: stats::spread(&column(0)),
        starter_ms: starter.map(|which| stats::spread(&column(which))),
        solution_ms: solution.map(|which| stats::spread(&column(which))),
        against_starter: starter.map(against),
        against_solution: solution.map(against),
        clock: if gpu.timestamps { "device" } else { "host" }.to_owned(),
        ..shares(trial, stats::median(&column(0)))
    })
}

/// Work by shape, and how close a launch of `ms` comes to the device's roof.
fn shares(trial: &Trial<'_>, ms: f64) -> KernelTime {
    let flops = work::flops(trial.file.spec.reference, &trial.shape.sizes);
    let bytes = work::bytes(&trial.file.spec.bindings, trial.counts);
    let least = trial
        .gpu
        .roof()
        .map(|roof| roofline::least(roof, flops, bytes));
    KernelTime {
        flops,
        bytes,
        share_of_peak: least
            .map(|(seconds, _)| seconds * 1e3 / ms)
            .filter(|share| share.is_finite()),
        memory_bound: least.is_none_or(|(_, memory)| memory),
        ..KernelTime::default()
    }
}

/// Copies of all buffers.
struct Sets(Vec<Vec<wgpu::Buffer>>);

impl Sets {
    fn new(trial: &Trial<'_>, inputs: &[Vec<f32>]) -> Result<Self, Trouble> {
        let bytes: usize = trial.counts.iter().sum::<usize>() * 4;
        let sets = TURNOVER.div_ceil(bytes.max(1)).clamp(1, MAX_SETS);
        let set = || {
            let mut given = inputs.iter();
            let buffers =
                trial
                    .file
                    .spec
                    .bindings
                    .iter()
                    .zip(trial.counts)
                    .map(|(binding, count)| match binding.role {
                        KernelRole::Out => trial.gpu.storage(*count),
                        KernelRole::In | KernelRole::InOut => {
                            trial.gpu.upload(given.next().map_or(&[], Vec::as_slice))
                        }
                    });
            buffers.collect::<Result<Vec<_>, _>>()
        };
        Ok(Self((0..sets).map(|_| set()).collect::<Result<_, _>>()?))
    }

    fn bind(
        &self,
        gpu: &Gpu,
        runner: &Runner,
        trial: &Trial<'_>,
    ) -> Result<Vec<wgpu::BindGroup>, Trouble> {
        self.0
            .iter()
            .map(|buffers| gpu.bind(&runner.pipeline, buffers, trial.counts))
            .collect()
    }
}
