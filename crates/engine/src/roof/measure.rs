//! Measures a device's roofs. A GPU's launches are timed on its own clock where it has one; the CPU's on the host's.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};
use burn::backend::Cube;
use burn::tensor::{Device, Tensor};
use burn_cubecl::tensor::CubeTensor;

use super::super::devices::OpenDevice;
use super::super::host::{memory_available, today};
use super::super::observer;
use super::host::{self, HostRates, REPEATS};
use protocol::Roof;
use protocol::stats::roofline::rate;
use tiny_llama::ops::gpu::roof as gpu;
use tiny_llama::ops::primitive;

/// Length of a timed launch: on the device's clock, and where submitting it counts.
const LENGTH: f64 = 4e-3;
const LENGTH_WITH_SUBMISSION: f64 = 20e-3;
/// How long a GPU works before it is timed. An idle one keeps a fraction of its clock for a third of a second after work begins: an H200
/// then computes 11 in place of 65 TFLOP/s.
pub const WARM_UP: Duration = Duration::from_millis(1500);
/// Workgroups that fill a small device, and a large one.
const FEW: u32 = 1024;
const MANY: u32 = 16_384;
/// From this rate on, in FLOP/s, the many are used.
const LARGE: f64 = 1e12;
/// Bytes of one of the triad's arrays on a GPU, and what is tried where that is too much.
const ARRAYS: [usize; 2] = [256 << 20, 32 << 20];

/// Both roofs of an opened device, today's date on them.
pub(super) fn roof(opened: &OpenDevice) -> Result<Roof> {
    let (flops, cores, bytes, clock) = if opened.queued {
        let threads = rayon::current_num_threads();
        let array = host::array_bytes(memory_available());
        let bytes = host::bytes(threads, array);
        (host::flops(threads), None, bytes, "host")
    } else {
        on_gpu(opened)?
    };
    let rated = |it: &HostRates| {
        rate(it.work, &it.seconds).ok_or_else(|| anyhow!("the device's clock stands still"))
    };
    Ok(Roof {
        flops: rated(&flops)?,
        matrix_cores: cores.as_ref().map(rated).transpose()?,
        bytes: rated(&bytes)?,
        clock: clock.to_owned(),
        date: today(),
    })
}

/// f32, matrix cores, memory, and the clock.
fn on_gpu(opened: &OpenDevice) -> Result<(HostRates, Option<HostRates>, HostRates, &'static str)> {
    let device = &opened.device;
    let out = buffer(device, gpu::outputs(MANY));
    let on_cpu = opened.info.kind == "vulkan-cpu";
    let warm_up = if on_cpu { Duration::ZERO } else { WARM_UP };
    let (flops, clock) = arithmetic(device, warm_up, gpu::flops, |groups, rounds| {
        gpu::multiply_add(&out, groups, rounds);
    })?;
    let cores = match opened.matrix_cores {
        true => {
            let out = buffer(device, gpu::MATRIX_OUTPUTS);
            let products = |groups, rounds| gpu::matrix_products(&out, groups, rounds);
            Some(arithmetic(device, Duration::ZERO, gpu::matrix_flops, products)?.0)
        }
        false => None,
    };
    let first = if on_cpu {
        host::array_bytes(memory_available())
    } else {
        ARRAYS[0]
    };
    let bytes = triad(device, first).or_else(|_| triad(device, ARRAYS[1]));
    // The arrays are not needed again.
    device.memory_cleanup();
    Ok((flops, cores, bytes?, clock))
}

fn buffer(device: &Device, values: usize) -> CubeTensor {
    primitive::<Cube>(Tensor::<2>::empty([1, values], device))
}

/// The rate of a kernel that only computes: so many operations for so many workgroups and rounds of its loop.
fn arithmetic(
    device: &Device,
    warm_up: Duration,
    flops: fn(u32, usize) -> f64,
    launch: impl Fn(u32, usize),
) -> Result<(HostRates, &'static str)> {
    let once = |groups, rounds| timed(device, || launch(groups, rounds));
    // The first launch compiles.
    once(FEW, 1)?;
    let (mut groups, mut rounds) = (FEW, 4);
    let mut clock = "device";
    let mut warm = warm_up.is_zero();
    // Longer until the clock's steps no longer matter, then once more after the warm-up.
    for _ in 0..8 {
        let (seconds, by) = once(groups, rounds)?;
        clock = by;
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
    Ok((HostRates { work, seconds }, clock))
}

/// `array`: bytes of one of three arrays, at most.
fn triad(device: &Device, array: usize) -> Result<HostRates> {
    let out = buffer(device, 4);
    let most = out.client.properties().memory.max_page_size;
    let len = array.min(usize::try_from(most).unwrap_or(array)) / 16 * 4;
    let [a, b, out] = [(); 3].map(|()| buffer(device, len));
    let once = || timed(device, || gpu::triad(&a, &b, &out, len));
    // The first launch compiles and meets pages that were never written.
    once()?;
    let seconds = repeat(once)?;
    Ok(HostRates {
        work: gpu::bytes(len),
        seconds,
    })
}

fn repeat(mut once: impl FnMut() -> Result<(f64, &'static str)>) -> Result<Vec<f64>> {
    (0..REPEATS)
        .map(|_| once().map(|(seconds, _)| seconds))
        .collect()
}

/// Seconds of one launch, and on which clock.
fn timed(device: &Device, launch: impl FnOnce()) -> Result<(f64, &'static str)> {
    let sync = || {
        let synced = device.sync();
        synced.map_err(|error| anyhow!("the device was lost: {error:?}"))
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
