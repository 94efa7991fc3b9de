//! Times one launch at the real size, and compares it with launches of the starter and of the solution. The three kernels take turns, which
//! spreads drift evenly, and each launch uses buffers that the last few launches did not touch, so that they are in no cache.

use std::time::{Duration, Instant};

use super::gpu::{Gpu, GpuError, KernelPipeline};
use super::trial::KernelTrial;
use crate::peaks::WARM_UP;
use protocol::reference::cost;
use protocol::stats::sequential::{FIRST_LOOK, PairPlan};
use protocol::stats::{robust, roofline};
use protocol::{KernelRatio, KernelTime};

/// The bytes of buffers that are used before a buffer is used again.
const TURNOVER: usize = 256 << 20;
/// The largest number of sets of buffers.
const MAX_SETS: usize = 16;
/// The largest number of rounds.
const ROUNDS: u32 = 40;
/// The number of rounds that are made however long they take.
const MIN_ROUNDS: u32 = FIRST_LOOK;
/// The time after which no round above `MIN_ROUNDS` begins.
const BUDGET: Duration = Duration::from_millis(1500);

/// Times `kernel` in turns with the starter and the solution, each of which is `None` if it is no other kernel.
///
/// # Errors
/// Fails when a launch fails.
pub(super) fn time(
    gpu: &Gpu,
    trial: &KernelTrial<'_>,
    inputs: &[Vec<u32>],
    kernel: &KernelPipeline,
    [starter, solution]: [Option<&KernelPipeline>; 2],
) -> Result<KernelTime, GpuError> {
    let counts = &trial.text.counts;
    let bytes = 4 * counts.iter().sum::<usize>();
    let sets = (0..TURNOVER.div_ceil(bytes.max(1)).clamp(1, MAX_SETS))
        .map(|_| trial.fill(gpu, inputs, 0))
        .collect::<Result<Vec<_>, _>>()?;
    // Each kernel with its bindings to all sets of buffers.
    let mut kernels = Vec::new();
    for pipeline in [Some(kernel), starter, solution].into_iter().flatten() {
        let bound = sets
            .iter()
            .map(|set| gpu.bind(pipeline, set, counts))
            .collect::<Result<Vec<_>, _>>()?;
        kernels.push((pipeline, bound));
    }
    let mut turn = 0;
    // Launches each kernel once, in this order or in reverse, and returns its milliseconds in this order.
    let mut round = |backwards: bool| -> Result<Vec<f64>, GpuError> {
        let mut order: Vec<_> = kernels.iter().collect();
        if backwards {
            order.reverse();
        }
        let mut launches = Vec::new();
        for (pipeline, bound) in order {
            turn += 1;
            launches.push((*pipeline, &bound[turn % bound.len()]));
        }
        let mut times = gpu.time(&launches)?;
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
    let times_of =
        |column: usize| -> Vec<f64> { rounds.iter().map(|round| round[column]).collect() };
    let ratio_to = |column: usize| {
        let pairs: Vec<_> = rounds
            .iter()
            .map(|round| (round[column], round[0]))
            .collect();
        let look = PairPlan::new(ROUNDS).look(&pairs, true);
        let (low, high) = look.interval?;
        Some(KernelRatio {
            ratio: look.ratio,
            low,
            high,
        })
    };
    let starter_column = starter.map(|_| 1);
    let solution_column = solution.map(|_| 1 + usize::from(starter.is_some()));
    Ok(KernelTime {
        shape: trial.shape.label.clone(),
        ms: robust::spread(&times_of(0)),
        starter_ms: starter_column.map(|column| robust::spread(&times_of(column))),
        solution_ms: solution_column.map(|column| robust::spread(&times_of(column))),
        against_starter: starter_column.and_then(ratio_to),
        against_solution: solution_column.and_then(ratio_to),
        clock: if gpu.timestamps { "device" } else { "host" }.to_owned(),
        ..work(gpu, trial, robust::median(&times_of(0)))
    })
}

/// Returns the work at this shape, and the share of the device's peak that a launch of `ms` milliseconds reaches. The other fields are empty.
fn work(gpu: &Gpu, trial: &KernelTrial<'_>, ms: f64) -> KernelTime {
    let flops = cost::flops(&trial.file.spec, &trial.shape.sizes);
    let bytes = cost::bytes(&trial.file.spec.bindings, &trial.text.counts);
    let bounding = gpu
        .peaks()
        .and_then(|peaks| roofline::bounding(peaks, trial.file.spec.matrix_cores));
    let reached = roofline::rates(Some((flops, bytes)), ms * 1e-3, bounding.as_ref());
    KernelTime {
        flops,
        bytes,
        share_of_peak: reached.share,
        memory_bound: reached.memory_bound.unwrap_or(true),
        ..KernelTime::default()
    }
}
