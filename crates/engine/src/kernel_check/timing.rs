//! Times one launch at the real size, and compares it with the starter's and the solution's. The three alternate, which spreads
//! drift evenly, and each launch works on buffers that the last few launches did not touch, which keeps them out of caches.

use std::time::{Duration, Instant};

use super::gpu::{Gpu, GpuError, KernelPipeline};
use super::trial::KernelTrial;
use crate::roof::WARM_UP;
use protocol::reference::cost;
use protocol::stats::sequential::{FIRST_LOOK, PairPlan};
use protocol::stats::{robust, roofline};
use protocol::{KernelRatio, KernelTime};

/// Bytes of other buffers that are used before a buffer is used again, and the most sets of buffers.
const TURNOVER: usize = 256 << 20;
const MAX_SETS: usize = 16;
/// Most rounds, and fewest rounds when a round takes long.
const ROUNDS: u32 = 40;
const MIN_ROUNDS: u32 = FIRST_LOOK;
const BUDGET: Duration = Duration::from_millis(1500);

/// Times `kernel`, and beside it the starter and the solution where they are other kernels.
///
/// # Errors
/// When a launch fails.
pub(super) fn time(
    gpu: &Gpu,
    trial: &KernelTrial<'_>,
    inputs: &[Vec<u32>],
    kernel: &KernelPipeline,
    [starter, solution]: [Option<&KernelPipeline>; 2],
) -> Result<KernelTime, GpuError> {
    let counts = &trial.text.counts;
    let bytes = 4 * counts.iter().sum::<usize>();
    let sets = TURNOVER.div_ceil(bytes.max(1)).clamp(1, MAX_SETS);
    let sets = (0..sets).map(|_| trial.fill(gpu, inputs, 0));
    let sets = sets.collect::<Result<Vec<_>, _>>()?;
    let runners = [Some(kernel), starter, solution].into_iter().flatten();
    let runners: Vec<&KernelPipeline> = runners.collect();
    let bind = |runner: &&KernelPipeline| -> Result<Vec<_>, GpuError> {
        let bound = sets.iter();
        bound.map(|set| gpu.bind(runner, set, counts)).collect()
    };
    let bound: Vec<_> = runners.iter().map(bind).collect::<Result<_, _>>()?;
    let mut turn = 0;
    // Milliseconds of each kernel, launched in this order or in reverse.
    let mut round = |backwards: bool| -> Result<Vec<f64>, GpuError> {
        let mut order: Vec<_> = runners.iter().zip(&bound).collect();
        if backwards {
            order.reverse();
        }
        let launches = order.into_iter().map(|(runner, sets)| {
            turn += 1;
            (*runner, &sets[turn % sets.len()])
        });
        let mut times = gpu.time(&launches.collect::<Vec<_>>())?;
        if backwards {
            times.reverse();
        }
        Ok(times.into_iter().map(|seconds| seconds * 1e3).collect())
    };
    // The first launches compile, and an idle GPU keeps a low clock.
    let began = Instant::now();
    for index in 0.. {
        round(index % 2 == 1)?;
        if index > 0 && (gpu.on_cpu || began.elapsed() >= WARM_UP) {
            break;
        }
    }
    let began = Instant::now();
    let mut rounds: Vec<Vec<f64>> = Vec::new();
    for index in 0..ROUNDS {
        if index >= MIN_ROUNDS && began.elapsed() > BUDGET {
            break;
        }
        rounds.push(round(index % 2 == 1)?);
    }
    let column = |which: usize| -> Vec<f64> { rounds.iter().map(|round| round[which]).collect() };
    let against = |which: usize| {
        let pairs = rounds.iter().map(|round| (round[which], round[0]));
        let found = PairPlan::new(ROUNDS).look(&pairs.collect::<Vec<_>>(), true);
        let (low, high) = found.interval?;
        let ratio = found.ratio;
        Some(KernelRatio { ratio, low, high })
    };
    let starter = starter.map(|_| 1);
    let solution = solution.map(|_| 1 + usize::from(starter.is_some()));
    Ok(KernelTime {
        shape: trial.shape.label.clone(),
        ms: robust::spread(&column(0)),
        starter_ms: starter.map(|which| robust::spread(&column(which))),
        solution_ms: solution.map(|which| robust::spread(&column(which))),
        against_starter: starter.and_then(against),
        against_solution: solution.and_then(against),
        clock: if gpu.timestamps { "device" } else { "host" }.to_owned(),
        ..shares(gpu, trial, robust::median(&column(0)))
    })
}

/// The work at this shape, and the share of the device's peak that a launch of `ms` reaches.
fn shares(gpu: &Gpu, trial: &KernelTrial<'_>, ms: f64) -> KernelTime {
    let flops = cost::flops(&trial.file.spec, &trial.shape.sizes);
    let bytes = cost::bytes(&trial.file.spec.bindings, &trial.text.counts);
    let roof = gpu.roof();
    let roof = roof.and_then(|roof| roofline::bounding(roof, trial.file.spec.matrix_cores));
    let reached = roofline::rates(Some((flops, bytes)), ms * 1e-3, roof.as_ref());
    KernelTime {
        flops,
        bytes,
        share_of_peak: reached.share,
        memory_bound: reached.memory_bound.unwrap_or(true),
        ..KernelTime::default()
    }
}
