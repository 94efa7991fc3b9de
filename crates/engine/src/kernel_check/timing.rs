//! Times one launch at the real size, and compares it with launches of the starter and of the solution. The three kernels take turns, which
//! spreads drift evenly, and each launch uses buffers that the last few launches did not touch, so that they are in no cache.

use std::time::{Duration, Instant};

use burn_wgpu::wgpu;

use super::gpu::{Gpu, GpuError, KernelPipeline};
use super::trial::KernelTrial;
use crate::peaks::WARM_UP;
use protocol::reference::cost;
use protocol::stats::sequential::{FIRST_LOOK, PairPlan};
use protocol::stats::{robust, roofline};
use protocol::{KernelRatio, KernelTime, Spread};

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

/// The kernels that take turns, each with its bindings to all sets of buffers.
struct TimedKernels<'a> {
    gpu: &'a Gpu,
    kernels: Vec<(&'a KernelPipeline, Vec<wgpu::BindGroup>)>,
    /// The number of launches so far. It selects the set of buffers.
    launches: usize,
}

impl<'a> TimedKernels<'a> {
    /// Fills the sets of buffers and binds each kernel to them.
    fn new(
        gpu: &'a Gpu,
        trial: &KernelTrial<'_>,
        inputs: &[Vec<u32>],
        pipelines: impl Iterator<Item = &'a KernelPipeline>,
    ) -> Result<Self, GpuError> {
        let counts = &trial.text.counts;
        let bytes = 4 * counts.iter().sum::<usize>();
        let sets = (0..TURNOVER.div_ceil(bytes.max(1)).clamp(1, MAX_SETS))
            .map(|_| trial.fill(gpu, inputs, 0))
            .collect::<Result<Vec<_>, _>>()?;
        let bind_to_all = |pipeline| {
            let bound = sets.iter().map(|set| gpu.bind(pipeline, set, counts));
            Ok((pipeline, bound.collect::<Result<Vec<_>, _>>()?))
        };
        Ok(Self {
            gpu,
            kernels: pipelines.map(bind_to_all).collect::<Result<_, _>>()?,
            launches: 0,
        })
    }

    /// Launches each kernel once and returns the milliseconds of each, in the order of the kernels. Every second round launches them in reverse.
    fn round(&mut self, index: u32) -> Result<Vec<f64>, GpuError> {
        let is_reversed = index % 2 == 1;
        let mut order: Vec<_> = self.kernels.iter().collect();
        if is_reversed {
            order.reverse();
        }
        let mut launches = Vec::new();
        for (pipeline, bound) in order {
            self.launches += 1;
            launches.push((*pipeline, &bound[self.launches % bound.len()]));
        }
        let mut times = self.gpu.time(&launches)?;
        if is_reversed {
            times.reverse();
        }
        Ok(times.into_iter().map(|seconds| seconds * 1e3).collect())
    }
}

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
    let pipelines = [Some(kernel), starter, solution].into_iter().flatten();
    let mut kernels = TimedKernels::new(gpu, trial, inputs, pipelines)?;
    // The first launches compile, and an idle GPU keeps a low clock.
    let warm_up_began = Instant::now();
    for index in 0.. {
        kernels.round(index)?;
        if index > 0 && (gpu.on_cpu || warm_up_began.elapsed() >= WARM_UP) {
            break;
        }
    }
    let began = Instant::now();
    let mut rounds: Vec<Vec<f64>> = Vec::new();
    for index in 0..ROUNDS {
        if index >= MIN_ROUNDS && began.elapsed() > BUDGET {
            break;
        }
        rounds.push(kernels.round(index)?);
    }
    let spread_of = |column: usize| {
        let times: Vec<f64> = rounds.iter().map(|round| round[column]).collect();
        robust::spread(&times)
    };
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
    let ms = spread_of(0);
    Ok(KernelTime {
        shape: trial.shape.label.clone(),
        starter_ms: starter_column.map(spread_of),
        solution_ms: solution_column.map(spread_of),
        against_starter: starter_column.and_then(ratio_to),
        against_solution: solution_column.and_then(ratio_to),
        clock: if gpu.timestamps { "device" } else { "host" }.to_owned(),
        ..work(gpu, trial, ms)
    })
}

/// Returns the time of a launch, its work, and the share of the device's peak that its median reaches. The other fields are empty.
fn work(gpu: &Gpu, trial: &KernelTrial<'_>, ms: Spread) -> KernelTime {
    let flops = cost::flops(&trial.file.spec, &trial.shape.sizes);
    let bytes = cost::bytes(&trial.file.spec.bindings, &trial.text.counts);
    let bounding = gpu
        .peaks()
        .and_then(|peaks| roofline::bounding(peaks, trial.file.spec.matrix_cores));
    let reached = roofline::rates(Some((flops, bytes)), ms.median * 1e-3, bounding.as_ref());
    KernelTime {
        ms,
        flops,
        bytes,
        share_of_peak: reached.share,
        memory_bound: reached.memory_bound.unwrap_or(true),
        ..KernelTime::default()
    }
}
