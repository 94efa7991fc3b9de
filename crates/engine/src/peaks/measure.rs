//! The measurement of a device's peaks. Launches on a GPU are timed on its own clock if it has one; work on the CPU is timed on the host's.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};
use burn::backend::Cube;
use burn::tensor::{Device, Tensor};
use burn_cubecl::tensor::CubeTensor;

use super::super::devices::OpenDevice;
use super::super::host::{memory_available, today};
use super::super::observer;
use super::host::{self, REPEATS, TimedWork};
use protocol::stats::roofline::rate;
use protocol::{Peaks, Rate};
use tiny_llama::ops::gpu::peaks as gpu;
use tiny_llama::ops::primitive;

/// The seconds of a launch that is timed on the device's clock.
const LENGTH: f64 = 4e-3;
/// The seconds of a launch that is timed together with its submission.
const LENGTH_WITH_SUBMISSION: f64 = 20e-3;
/// The time for which a GPU works before it is timed. An idle one keeps a fraction of its clock for a third of a second after work begins: an H200
/// then computes 11 in place of 65 TFLOP/s.
pub const WARM_UP: Duration = Duration::from_millis(1500);
/// The number of workgroups that fill a small device.
const FEW: u32 = 1024;
/// The number of workgroups that fill a large device.
const MANY: u32 = 16_384;
/// The FLOP/s from which a device is large.
const LARGE: f64 = 1e12;
/// The bytes of one of the triad's arrays on a GPU.
const ARRAY: usize = 256 << 20;
/// The bytes of one of the triad's arrays if a GPU has no room for larger ones.
const SMALL_ARRAY: usize = 32 << 20;

/// Measures the peaks of an opened device, and dates them today.
///
/// # Errors
/// Fails when the device was lost, or its clock stands still.
pub(super) fn measure(opened: &OpenDevice) -> Result<Peaks> {
    if !opened.queued {
        return peaks_of_gpu(opened);
    }
    let threads = rayon::current_num_threads();
    let array = host::array_bytes(memory_available());
    Ok(Peaks {
        bytes: rate_of(&host::bytes(threads, array))?,
        flops: rate_of(&host::flops(threads))?,
        matrix_cores: None,
        clock: "host".to_owned(),
        date: today(),
    })
}

/// Returns the rate of timed work.
fn rate_of(timed: &TimedWork) -> Result<Rate> {
    rate(timed.work, &timed.seconds).ok_or_else(|| anyhow!("the device's clock stands still"))
}

/// Measures the peaks of a GPU, or of a driver that computes on the CPU.
fn peaks_of_gpu(opened: &OpenDevice) -> Result<Peaks> {
    let device = &opened.device;
    let out = buffer(device, gpu::outputs(MANY));
    let on_cpu = opened.info.kind == "vulkan-cpu";
    let warm_up = if on_cpu { Duration::ZERO } else { WARM_UP };
    let (flops, clock) = arithmetic(device, warm_up, gpu::flops, |groups, rounds| {
        gpu::multiply_add(&out, groups, rounds);
    })?;
    let mut matrix_cores = None;
    if opened.matrix_cores {
        let out = buffer(device, gpu::MATRIX_OUTPUTS);
        let products = |groups, rounds| gpu::matrix_products(&out, groups, rounds);
        let (timed, _) = arithmetic(device, Duration::ZERO, gpu::matrix_flops, products)?;
        matrix_cores = Some(rate_of(&timed)?);
    }
    let array = if on_cpu {
        host::array_bytes(memory_available())
    } else {
        ARRAY
    };
    let bytes = triad(device, array).or_else(|_| triad(device, SMALL_ARRAY));
    // The arrays are not needed again.
    device.memory_cleanup();
    Ok(Peaks {
        flops: rate_of(&flops)?,
        matrix_cores,
        bytes: rate_of(&bytes?)?,
        clock: clock.to_owned(),
        date: today(),
    })
}

/// Returns a buffer of f32 values on the device.
fn buffer(device: &Device, values: usize) -> CubeTensor {
    primitive::<Cube>(Tensor::<2>::empty([1, values], device))
}

/// Measures a kernel that only computes. `launch` runs it with a number of workgroups and of rounds of its loop, and `flops` counts the operations
/// of such a launch. Returns the work, and the clock that timed it.
fn arithmetic(
    device: &Device,
    warm_up: Duration,
    flops: fn(u32, usize) -> f64,
    launch: impl Fn(u32, usize),
) -> Result<(TimedWork, &'static str)> {
    let once = |groups, rounds| timed(device, || launch(groups, rounds));
    // The first launch compiles.
    once(FEW, 1)?;
    let mut groups = FEW;
    let mut rounds = 4;
    let mut clock = "device";
    let mut warm = warm_up.is_zero();
    // Launches get longer until the resolution of the clock no longer matters, and once more after the warm-up.
    for _ in 0..8 {
        let (seconds, timed_by) = once(groups, rounds)?;
        clock = timed_by;
        let reached = flops(groups, rounds) / seconds;
        if reached >= LARGE {
            groups = MANY;
        }
        let length = if clock == "device" {
            LENGTH
        } else {
            LENGTH_WITH_SUBMISSION
        };
        let wanted = length * reached / flops(groups, 1);
        rounds = (wanted as usize).clamp(1, 1 << 16);
        if seconds > length / 2.0 {
            if warm {
                break;
            }
            warm = true;
            let began = Instant::now();
            while began.elapsed() < warm_up {
                once(groups, rounds)?;
            }
        }
    }
    let seconds = repeat(|| once(groups, rounds))?;
    let work = flops(groups, rounds);
    Ok((TimedWork { work, seconds }, clock))
}

/// Measures a triad over three arrays of at most `array` bytes each.
fn triad(device: &Device, array: usize) -> Result<TimedWork> {
    let out = buffer(device, 4);
    let most = out.client.properties().memory.max_page_size;
    let len = array.min(usize::try_from(most).unwrap_or(array)) / 16 * 4;
    let [a, b, out] = [(); 3].map(|()| buffer(device, len));
    let once = || timed(device, || gpu::triad(&a, &b, &out, len));
    // The first launch compiles, and writes to new pages.
    once()?;
    let seconds = repeat(once)?;
    Ok(TimedWork {
        work: gpu::bytes(len),
        seconds,
    })
}

/// Returns the seconds of each of [`REPEATS`] launches.
fn repeat(mut once: impl FnMut() -> Result<(f64, &'static str)>) -> Result<Vec<f64>> {
    (0..REPEATS)
        .map(|_| once().map(|(seconds, _)| seconds))
        .collect()
}

/// Returns the seconds of one launch, and the clock that timed it.
///
/// # Errors
/// Fails when the device was lost, the launch was not seen, or the clock stands still.
fn timed(device: &Device, launch: impl FnOnce()) -> Result<(f64, &'static str)> {
    let sync = || {
        device
            .sync()
            .map_err(|error| anyhow!("the device was lost: {error:?}"))
    };
    sync()?;
    let profile = observer::start_launches();
    launch();
    sync()?;
    let (lengths, clock) = profile.lengths();
    ensure!(lengths.len() == 1, "the launch was not seen");
    ensure!(!lengths[0].is_zero(), "the device's clock stands still");
    Ok((lengths[0].as_secs_f64(), clock))
}
