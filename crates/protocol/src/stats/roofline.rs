//! The roofline (Williams, Waterman and Patterson, 2009): how fast work of a given arithmetic intensity can be on a device
//! with measured roofs, and how near a kernel comes. Pure arithmetic.

use super::robust::spread;
use crate::story::RunDescription;
use crate::units;
use crate::{Device, KernelRow, Rate, Roof, TopKernel};

/// No existing device reaches these rates; a stopped clock or a kernel that did not run would show them.
const MOST_FLOPS: f64 = 1e15;
const MOST_MATRIX_FLOPS: f64 = 1e16;
const MOST_BYTES: f64 = 1e14;
/// Every computer since the 1970s is faster; a lower rate means that the measurement failed.
const LEAST: f64 = 1e6;

/// A rate from repeats of the same work. None without a repeat that took time.
pub fn rate(work: f64, seconds: &[f64]) -> Option<Rate> {
    let took_time = |seconds: &&f64| **seconds > 0.0 && seconds.is_finite();
    let rates = seconds.iter().filter(took_time).map(|it| work / it);
    let rates: Vec<f64> = rates.collect();
    let best = rates.iter().copied().reduce(f64::max)?;
    let it = spread(&rates);
    Some(Rate {
        best,
        median: it.median,
        p25: it.p25,
        p75: it.p75,
        n: rates.len() as u32,
        load: None,
    })
}

/// Returns the reason why measured roofs cannot be true; `None` for plausible roofs.
///
/// # Errors
/// With the number and the bound that it breaks.
pub fn plausible(roof: &Roof) -> Result<(), String> {
    let check = |what: &str, rate: &Rate, most: f64| {
        let all = [rate.best, rate.median, rate.p25, rate.p75];
        if rate.n == 0 || all.iter().any(|it| !it.is_finite() || *it < LEAST) {
            Err(format!(
                "{what} of {:.3e} a second is not a plausible measurement",
                rate.best
            ))
        } else if rate.best > most {
            Err(format!(
                "{what} of {:.3e} a second is more than any device reaches ({most:.0e})",
                rate.best
            ))
        } else {
            Ok(())
        }
    };
    check("an f32 peak", &roof.flops, MOST_FLOPS)?;
    if let Some(cores) = &roof.matrix_cores {
        check("a peak of matrix cores", cores, MOST_MATRIX_FLOPS)?;
    }
    check("a memory bandwidth", &roof.bytes, MOST_BYTES)
}

/// The largest share of a roof of arithmetic that noise explains.
const MOST_OF_ARITHMETIC: f64 = 1.05;

/// Returns true if the repeats are so far apart that something else was running: the middle half spans a quarter of the median.
pub fn unsteady(rate: &Rate) -> bool {
    rate.p75 - rate.p25 > 0.25 * rate.median
}

/// Joins two measurements of one device. Noise only slows, so of each rate the measurement with the higher best counts. A measurement
/// without other programs clears the mark of one that they disturbed.
pub fn better(before: Roof, now: Roof) -> Roof {
    let higher = |a: Rate, b: Rate| Rate {
        load: a.load.zip(b.load).map(|(a, b)| a.min(b)),
        ..if a.best > b.best { a } else { b }
    };
    let cores = before.matrix_cores.zip(now.matrix_cores);
    let cores = cores.map(|(before, now)| higher(before, now));
    Roof {
        flops: higher(before.flops, now.flops),
        matrix_cores: cores.or(before.matrix_cores).or(now.matrix_cores),
        bytes: higher(before.bytes, now.bytes),
        ..now
    }
}

/// Gives a run on `device` the peaks that were measured since it began; higher ones that it has are kept.
pub fn note_peaks(run: &mut RunDescription, device: &Device, roof: &Roof) {
    if run.device.as_ref() == Some(device) {
        let best = match run.roof.take() {
            Some(before) => better(*before, roof.clone()),
            None => roof.clone(),
        };
        run.roof = Some(Box::new(best));
    }
}

/// Returns the roof of work on matrix cores, or of other work: its `flops` is the peak that limits this work. `None` if that was not
/// measured.
pub fn bounding(roof: &Roof, matrix_cores: bool) -> Option<Roof> {
    let mut roof = roof.clone();
    if matrix_cores {
        roof.flops = roof.matrix_cores?;
    }
    Some(roof)
}

/// `61.2 TFLOP/s (9 repeats, middle half 60.8-61.1)`: the best, and how far the repeats lie apart.
pub fn repeats(it: &Rate, unit: &str) -> String {
    let (divisor, prefix) = units::prefix(it.best);
    let [best, p25, p75] = [it.best, it.p25, it.p75].map(|x| x / divisor);
    format!(
        "{best:.1} {prefix}{unit} ({} repeats, middle half {p25:.1}-{p75:.1})",
        it.n
    )
}

/// `peak 265 GFLOP/s, 38.1 GB/s (measured under load)`, the matrix cores' between the two.
pub fn words(roof: &Roof) -> String {
    let rate = |it: &Rate, unit: &str| {
        let (divisor, prefix) = units::prefix(it.best);
        format!("{} {prefix}{unit}", units::digits(it.best / divisor, 3))
    };
    let load = roof.load().map_or("", |_| " (measured under load)");
    let cores = roof.matrix_cores.map_or_else(String::new, |it| {
        format!(" (matrix cores {})", rate(&it, "FLOP/s"))
    });
    format!(
        "peak {}{cores}, {}{load}",
        rate(&roof.flops, "FLOP/s"),
        rate(&roof.bytes, "B/s")
    )
}

/// Returns the FLOP/s that the device allows at an intensity in FLOP per byte.
pub fn ceiling(roof: &Roof, intensity: f64) -> f64 {
    (roof.bytes.best * intensity).min(roof.flops.best)
}

/// Returns the intensity in FLOP per byte at which the two roofs meet: above it arithmetic is the limit, below it memory.
pub fn ridge(roof: &Roof) -> f64 {
    roof.flops.best / roof.bytes.best
}

/// Returns the shortest possible time of some work in seconds, and true if memory is its limit.
pub fn least(roof: &Roof, flops: f64, bytes: f64) -> (f64, bool) {
    let computing = flops / roof.flops.best;
    let moving = bytes / roof.bytes.best;
    (computing.max(moving), moving >= computing)
}

/// The speed of the work in a kernel row.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RowRates {
    pub flops_per_s: Option<f64>,
    pub bytes_per_s: Option<f64>,
    /// The intensity in FLOP per byte.
    pub intensity: Option<f64>,
    /// The shortest time that the device allows over the time taken: 1 is the roof.
    pub share: Option<f64>,
    /// True if memory is the limit at this intensity.
    pub memory_bound: Option<bool>,
}

/// Returns the speed of a row, compared with the device's roofs. Figures are `None` if the work or the roofs are not known.
pub fn reached(row: &KernelRow, roof: Option<&Roof>) -> RowRates {
    let ms = row.work_ms.unwrap_or(row.ms);
    // Older recordings contain two zeros where the work was counted in another row.
    let work = row.flops.zip(row.bytes);
    let work = work.filter(|(flops, bytes)| flops + bytes > 0.0);
    let roof = roof.and_then(|roof| bounding(roof, row.matrix_cores));
    rates(work, ms * 1e-3, roof.as_ref())
}

/// Returns a row in the form of a summary.
pub fn top(row: &KernelRow, roof: Option<&Roof>) -> TopKernel {
    let reached = reached(row, roof);
    TopKernel {
        kernel: row.kernel.clone(),
        scope: format!("{}/{}", row.part, row.phase),
        op: row.op.clone(),
        calls: row.calls,
        ms: row.ms,
        gflop_per_s: reached.flops_per_s.map(|rate| rate / 1e9),
        gb_per_s: reached.bytes_per_s.map(|rate| rate / 1e9),
        flop_per_byte: reached.intensity,
        roof_share: reached.share,
        no_work: row.no_work.clone(),
    }
}

/// Returns the speed of any work, in FLOP and bytes, that took `seconds`.
pub fn rates(work: Option<(f64, f64)>, seconds: f64, roof: Option<&Roof>) -> RowRates {
    let per_second = |work: Option<f64>| {
        if seconds > 0.0 {
            work.map(|work| work / seconds)
        } else {
            None
        }
    };
    let bound = work.zip(roof);
    let bound = bound.map(|((flops, bytes), roof)| least(roof, flops, bytes));
    let memory_bound = bound.map(|(_, memory)| memory);
    // Caches may be faster than memory. But nothing computes faster than arithmetic allows: then the measured roof is too low, which is
    // possible if it was measured under load.
    let loaded = roof.is_some_and(|roof| roof.load().is_some());
    let most = match memory_bound {
        _ if loaded => 1.0,
        Some(true) => f64::INFINITY,
        _ => MOST_OF_ARITHMETIC,
    };
    RowRates {
        flops_per_s: per_second(work.map(|(flops, _)| flops)),
        bytes_per_s: per_second(work.map(|(_, bytes)| bytes)),
        intensity: work
            .filter(|(_, bytes)| *bytes > 0.0)
            .map(|(flops, bytes)| flops / bytes),
        share: per_second(bound.map(|(seconds, _)| seconds)).filter(|share| *share <= most),
        memory_bound,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steady(best: f64) -> Rate {
        rate(best, &[1.0; 5]).expect("it took time")
    }

    /// 100 FLOP/s and 10 B/s, times a million: ten FLOP per byte at the ridge.
    fn roof() -> Roof {
        Roof {
            flops: steady(100e6),
            bytes: steady(10e6),
            matrix_cores: None,
            clock: "host".to_owned(),
            date: "2026-01-02".to_owned(),
        }
    }

    #[test]
    fn the_best_repeat_is_the_roof_and_the_rest_its_spread() {
        let it = rate(8.0, &[1.0, 2.0, 4.0, 0.0, f64::NAN]).expect("some took time");
        assert_eq!((it.best, it.median, it.n), (8.0, 4.0, 3));
        assert_eq!(rate(8.0, &[]), None);
        assert_eq!(rate(8.0, &[0.0]), None);
        assert!(unsteady(&it) && !unsteady(&steady(3.0)));
    }

    #[test]
    fn impossible_peaks_are_refused_with_a_reason() {
        assert_eq!(plausible(&roof()), Ok(()));
        for wrong in [0.0, f64::NAN, f64::INFINITY, 1e17] {
            let flops = Roof {
                flops: steady(wrong),
                ..roof()
            };
            assert!(plausible(&flops).expect_err("refused").contains("f32 peak"));
            let bytes = Roof {
                bytes: steady(wrong),
                ..roof()
            };
            assert!(
                plausible(&bytes)
                    .expect_err("refused")
                    .contains("bandwidth")
            );
        }
        assert!(plausible(&Roof::default()).is_err());
    }

    #[test]
    fn memory_binds_below_the_ridge_and_arithmetic_above() {
        assert_eq!(ridge(&roof()), 10.0);
        assert_eq!(
            (ceiling(&roof(), 2.0), ceiling(&roof(), 50.0)),
            (20e6, 100e6)
        );
        assert_eq!(least(&roof(), 100e6, 1e6), (1.0, false));
        assert_eq!(least(&roof(), 1e6, 10e6), (1.0, true));
    }

    #[test]
    fn a_row_reaches_a_share_of_the_roof_at_its_intensity() {
        let mut row = KernelRow {
            ms: 500.0,
            flops: Some(10e6),
            bytes: Some(2.5e6),
            ..KernelRow::default()
        };
        let it = reached(&row, Some(&roof()));
        assert_eq!(
            (
                it.flops_per_s,
                it.bytes_per_s,
                it.intensity,
                it.share,
                it.memory_bound
            ),
            (Some(20e6), Some(5e6), Some(4.0), Some(0.5), Some(true))
        );
        // The work of several kernels took the time of all of them.
        row.work_ms = Some(1000.0);
        assert_eq!(reached(&row, Some(&roof())).share, Some(0.25));
        assert_eq!(reached(&row, None).share, None);
        // A cache can serve more than memory; but a roof that was measured under load may just be too low.
        row.work_ms = Some(100.0);
        let mut roof = roof();
        assert_eq!(reached(&row, Some(&roof)).share, Some(2.5));
        roof.bytes.load = Some(0.6);
        assert_eq!(reached(&row, Some(&roof)).share, None);
    }

    #[test]
    fn work_on_matrix_cores_has_a_roof_of_its_own() {
        let mut row = KernelRow {
            ms: 500.0,
            flops: Some(500e6),
            bytes: Some(1e6),
            matrix_cores: true,
            ..KernelRow::default()
        };
        // 1000 MFLOP/s where f32 allows 100: no share of the wrong roof.
        assert_eq!(reached(&row, Some(&roof())).share, None);
        let both = Roof {
            matrix_cores: Some(steady(2e9)),
            ..roof()
        };
        let it = reached(&row, Some(&both));
        assert_eq!((it.share, it.memory_bound), (Some(0.5), Some(false)));
        // No cache computes: more than noise explains is no share, because the roof is too low.
        row.ms = 240.0;
        assert!(reached(&row, Some(&both)).share.is_some_and(|it| it > 1.0));
        row.ms = 200.0;
        assert_eq!(reached(&row, Some(&both)).share, None);
        assert_eq!(better(both, roof()).matrix_cores, Some(steady(2e9)));
    }

    #[test]
    fn work_that_is_not_known_gives_no_rate() {
        let mut row = KernelRow {
            ms: 5.0,
            ..KernelRow::default()
        };
        assert_eq!(reached(&row, Some(&roof())), RowRates::default());
        (row.flops, row.bytes) = (Some(0.0), Some(0.0));
        assert_eq!(reached(&row, Some(&roof())), RowRates::default());
        // A copy has bytes and no arithmetic; a row without time has no rate.
        row.bytes = Some(5e4);
        assert_eq!(reached(&row, Some(&roof())).share, Some(1.0));
        row.ms = 0.0;
        assert_eq!(reached(&row, Some(&roof())).share, None);
    }

    #[test]
    fn of_two_measurements_each_rate_keeps_its_higher_best() {
        let slow = Roof {
            flops: steady(50e6),
            bytes: steady(20e6),
            ..roof()
        };
        let it = better(slow, roof());
        assert_eq!((it.flops.best, it.bytes.best), (100e6, 20e6));
    }

    #[test]
    fn a_disturbed_measurement_lowers_nothing_and_a_quiet_one_clears_the_mark() {
        let of = |best: f64, load: Option<f64>| Roof {
            flops: Rate {
                load,
                ..steady(best)
            },
            ..roof()
        };
        let cases = [
            // Kept, measured now, and what is kept then.
            ((265e6, None), (65e6, Some(0.6)), (265e6, None)),
            ((65e6, Some(0.6)), (265e6, None), (265e6, None)),
            ((265e6, Some(0.6)), (260e6, None), (265e6, None)),
            ((65e6, Some(0.6)), (90e6, Some(0.3)), (90e6, Some(0.3))),
            ((90e6, Some(0.3)), (65e6, Some(0.6)), (90e6, Some(0.3))),
        ];
        for ((then, then_load), (now, now_load), (best, load)) in cases {
            let it = better(of(then, then_load), of(now, now_load));
            assert_eq!((it.flops.best, it.flops.load), (best, load), "{then} {now}");
            assert_eq!(it.load(), load);
        }
    }

    #[test]
    fn peaks_in_words_say_that_they_were_disturbed() {
        let mut it = Roof {
            flops: steady(265.4e9),
            bytes: steady(38.06e9),
            ..roof()
        };
        assert_eq!(words(&it), "peak 265 GFLOP/s, 38.1 GB/s");
        it.bytes.load = Some(0.4);
        let said = "peak 265 GFLOP/s, 38.1 GB/s (measured under load)";
        assert_eq!(words(&it), said);
    }
}
