//! The roofline (Williams, Waterman and Patterson, 2009): how fast work of a given arithmetic intensity can be on a device with measured
//! peaks, and how near a kernel comes to that.

use super::robust::spread;
use crate::units;
use crate::{KernelRow, Peaks, Rate, TopKernel};

/// The limits of plausible peaks, in FLOP/s and bytes a second. No existing device is as fast; a stopped clock or a kernel that did not
/// run would seem to be.
const MOST_FLOPS: f64 = 1e15;
const MOST_MATRIX_FLOPS: f64 = 1e16;
const MOST_BYTES: f64 = 1e14;
/// The lowest plausible rate per second. Every computer since the 1970s is faster, so a lower rate means that the measurement failed.
const LEAST: f64 = 1e6;
/// The largest share of a peak of arithmetic that noise explains.
const MOST_OF_ARITHMETIC: f64 = 1.05;

/// Returns the rate of some work that was repeated, from the time of each repeat; `None` if no repeat took time.
pub fn rate(work: f64, seconds: &[f64]) -> Option<Rate> {
    let rates: Vec<f64> = seconds
        .iter()
        .filter(|seconds| **seconds > 0.0 && seconds.is_finite())
        .map(|seconds| work / seconds)
        .collect();
    let spread = spread(&rates);
    Some(Rate {
        best: rates.iter().copied().reduce(f64::max)?,
        median: spread.median,
        p25: spread.p25,
        p75: spread.p75,
        n: rates.len() as u32,
        load: None,
    })
}

/// Checks that measured peaks can be true.
///
/// # Errors
/// Names the peak and the limit that it breaks.
pub fn plausible(peaks: &Peaks) -> Result<(), String> {
    let check = |name: &str, rate: &Rate, most: f64| {
        let figures = [rate.best, rate.median, rate.p25, rate.p75];
        let failed = |figure: &f64| !figure.is_finite() || *figure < LEAST;
        if rate.n == 0 || figures.iter().any(failed) {
            Err(format!(
                "{name} of {:.3e} a second is not a plausible measurement",
                rate.best
            ))
        } else if rate.best > most {
            Err(format!(
                "{name} of {:.3e} a second is more than any device reaches ({most:.0e})",
                rate.best
            ))
        } else {
            Ok(())
        }
    };
    check("an f32 peak", &peaks.flops, MOST_FLOPS)?;
    if let Some(cores) = &peaks.matrix_cores {
        check("a peak of matrix cores", cores, MOST_MATRIX_FLOPS)?;
    }
    check("a memory bandwidth", &peaks.bytes, MOST_BYTES)
}

/// Returns true if the repeats are so far apart that something else was running: the middle half spans a quarter of the median.
pub fn unsteady(rate: &Rate) -> bool {
    rate.p75 - rate.p25 > 0.25 * rate.median
}

/// Joins two measurements of one device. Noise only slows, so each rate comes from the measurement whose best repeat is higher. Only a peak that
/// was disturbed in both measurements stays marked as disturbed.
pub fn better(before: Peaks, now: Peaks) -> Peaks {
    let higher = |a: Rate, b: Rate| Rate {
        load: a.load.zip(b.load).map(|(a, b)| a.min(b)),
        ..if a.best > b.best { a } else { b }
    };
    Peaks {
        flops: higher(before.flops, now.flops),
        matrix_cores: match (before.matrix_cores, now.matrix_cores) {
            (Some(before), Some(now)) => Some(higher(before, now)),
            (before, now) => before.or(now),
        },
        bytes: higher(before.bytes, now.bytes),
        ..now
    }
}

/// Returns the peaks that limit work on matrix cores, or other work: `flops` of the result is the peak of that arithmetic. `None` if that
/// was not measured.
pub fn bounding(peaks: &Peaks, matrix_cores: bool) -> Option<Peaks> {
    let flops = if matrix_cores {
        peaks.matrix_cores?
    } else {
        peaks.flops
    };
    Some(Peaks {
        flops,
        ..peaks.clone()
    })
}

/// Returns a rate with the spread of its repeats: `61.2 TFLOP/s (9 repeats, middle half 60.8-61.1)`.
pub fn repeats(rate: &Rate, unit: &str) -> String {
    let (divisor, prefix) = units::prefix(rate.best);
    let [best, p25, p75] = [rate.best, rate.p25, rate.p75].map(|x| x / divisor);
    format!(
        "{best:.1} {prefix}{unit} ({} repeats, middle half {p25:.1}-{p75:.1})",
        rate.n
    )
}

/// Returns the peaks as a text, that of matrix cores between the other two: `peak 265 GFLOP/s, 38.1 GB/s (measured under load)`.
pub fn describe(peaks: &Peaks) -> String {
    let peak = |rate: &Rate, unit: &str| {
        let (divisor, prefix) = units::prefix(rate.best);
        format!("{} {prefix}{unit}", units::digits(rate.best / divisor, 3))
    };
    let load = peaks.load().map_or("", |_| " (measured under load)");
    let cores = peaks.matrix_cores.map_or_else(String::new, |cores| {
        format!(" (matrix cores {})", peak(&cores, "FLOP/s"))
    });
    format!(
        "peak {}{cores}, {}{load}",
        peak(&peaks.flops, "FLOP/s"),
        peak(&peaks.bytes, "B/s")
    )
}

/// Returns the FLOP/s that the device allows at an intensity in FLOP per byte.
pub fn ceiling(peaks: &Peaks, intensity: f64) -> f64 {
    (peaks.bytes.best * intensity).min(peaks.flops.best)
}

/// Returns the intensity in FLOP per byte above which arithmetic limits, and below which memory does.
pub fn ridge(peaks: &Peaks) -> f64 {
    peaks.flops.best / peaks.bytes.best
}

/// Returns the shortest possible time of some work in seconds, and true if memory is its limit.
pub fn shortest_seconds(peaks: &Peaks, flops: f64, bytes: f64) -> (f64, bool) {
    let computing = flops / peaks.flops.best;
    let moving = bytes / peaks.bytes.best;
    (computing.max(moving), moving >= computing)
}

/// The speed of the work in a kernel row.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RowRates {
    pub flops_per_s: Option<f64>,
    pub bytes_per_s: Option<f64>,
    /// The intensity in FLOP per byte.
    pub intensity: Option<f64>,
    /// The shortest time that the device's peaks allow, divided by the time taken: 1 is the best possible.
    pub share: Option<f64>,
    /// True if memory is the limit at this intensity.
    pub memory_bound: Option<bool>,
}

/// Returns the speed of a row, compared with the device's peaks. Figures are `None` if the work or the peaks are not known.
pub fn reached(row: &KernelRow, peaks: Option<&Peaks>) -> RowRates {
    let ms = row.work_ms.unwrap_or(row.ms);
    let work = row
        .flops
        .zip(row.bytes)
        // Older recordings contain two zeros where the work was counted in another row.
        .filter(|(flops, bytes)| flops + bytes > 0.0);
    let bounding = peaks.and_then(|peaks| bounding(peaks, row.matrix_cores));
    rates(work, ms * 1e-3, bounding.as_ref())
}

/// Returns a row in the form of a summary.
pub fn top(row: &KernelRow, peaks: Option<&Peaks>) -> TopKernel {
    let reached = reached(row, peaks);
    TopKernel {
        kernel: row.kernel.clone(),
        scope: format!("{}/{}", row.part, row.phase),
        op: row.op.clone(),
        calls: row.calls,
        ms: row.ms,
        gflop_per_s: reached.flops_per_s.map(|rate| rate / 1e9),
        gb_per_s: reached.bytes_per_s.map(|rate| rate / 1e9),
        flop_per_byte: reached.intensity,
        peak_share: reached.share,
        no_work: row.no_work.clone(),
    }
}

/// Returns the speed of any work, in FLOP and bytes, that took `seconds`.
pub fn rates(work: Option<(f64, f64)>, seconds: f64, peaks: Option<&Peaks>) -> RowRates {
    let over_time = |amount: Option<f64>| {
        if seconds > 0.0 {
            amount.map(|amount| amount / seconds)
        } else {
            None
        }
    };
    let (shortest, memory_bound) = work
        .zip(peaks)
        .map(|((flops, bytes), peaks)| shortest_seconds(peaks, flops, bytes))
        .unzip();
    // A larger share than this means that the measured peak is too low, and is no figure. A cache can be faster than memory, but nothing
    // computes faster than arithmetic allows. A peak that was measured under load can always be too low.
    let most_share = if peaks.is_some_and(|peaks| peaks.load().is_some()) {
        1.0
    } else if memory_bound == Some(true) {
        f64::INFINITY
    } else {
        MOST_OF_ARITHMETIC
    };
    RowRates {
        flops_per_s: over_time(work.map(|(flops, _)| flops)),
        bytes_per_s: over_time(work.map(|(_, bytes)| bytes)),
        intensity: work
            .filter(|(_, bytes)| *bytes > 0.0)
            .map(|(flops, bytes)| flops / bytes),
        share: over_time(shortest).filter(|share| *share <= most_share),
        memory_bound,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steady(best: f64) -> Rate {
        rate(best, &[1.0; 5]).expect("it took time")
    }

    /// Returns peaks of 100 MFLOP/s and 10 MB/s, which meet at 10 FLOP per byte.
    fn example_peaks() -> Peaks {
        Peaks {
            flops: steady(100e6),
            bytes: steady(10e6),
            matrix_cores: None,
            clock: "host".to_owned(),
            date: "2026-01-02".to_owned(),
        }
    }

    #[test]
    fn the_best_repeat_is_the_peak() {
        let rate = rate(8.0, &[1.0, 2.0, 4.0, 0.0, f64::NAN]).expect("some took time");
        assert_eq!((rate.best, rate.median, rate.n), (8.0, 4.0, 3));
    }

    #[test]
    fn without_a_repeat_that_took_time_there_is_no_rate() {
        assert_eq!(rate(8.0, &[]), None);
        assert_eq!(rate(8.0, &[0.0]), None);
    }

    #[test]
    fn repeats_that_are_far_apart_are_unsteady() {
        let rate = rate(8.0, &[1.0, 2.0, 4.0]).expect("all took time");
        assert!(unsteady(&rate));
        assert!(!unsteady(&steady(3.0)));
    }

    #[test]
    fn impossible_peaks_are_refused_with_a_reason() {
        assert_eq!(plausible(&example_peaks()), Ok(()));
        for wrong in [0.0, f64::NAN, f64::INFINITY, 1e17] {
            let flops = Peaks {
                flops: steady(wrong),
                ..example_peaks()
            };
            assert!(plausible(&flops).expect_err("refused").contains("f32 peak"));
            let bytes = Peaks {
                bytes: steady(wrong),
                ..example_peaks()
            };
            assert!(
                plausible(&bytes)
                    .expect_err("refused")
                    .contains("bandwidth")
            );
        }
        assert!(plausible(&Peaks::default()).is_err());
    }

    #[test]
    fn memory_binds_below_the_ridge_and_arithmetic_above() {
        assert_eq!(ridge(&example_peaks()), 10.0);
        assert_eq!(
            (
                ceiling(&example_peaks(), 2.0),
                ceiling(&example_peaks(), 50.0)
            ),
            (20e6, 100e6)
        );
        assert_eq!(shortest_seconds(&example_peaks(), 100e6, 1e6), (1.0, false));
        assert_eq!(shortest_seconds(&example_peaks(), 1e6, 10e6), (1.0, true));
    }

    fn row(ms: f64, flops: f64, bytes: f64) -> KernelRow {
        KernelRow {
            ms,
            flops: Some(flops),
            bytes: Some(bytes),
            ..KernelRow::default()
        }
    }

    #[test]
    fn a_row_reaches_a_share_of_what_its_intensity_allows() {
        let reached = reached(&row(500.0, 10e6, 2.5e6), Some(&example_peaks()));

        let expected = RowRates {
            flops_per_s: Some(20e6),
            bytes_per_s: Some(5e6),
            intensity: Some(4.0),
            share: Some(0.5),
            memory_bound: Some(true),
        };
        assert_eq!(reached, expected);
    }

    #[test]
    fn the_work_of_several_kernels_took_the_time_of_all_of_them() {
        let mut row = row(500.0, 10e6, 2.5e6);
        row.work_ms = Some(1000.0);
        assert_eq!(reached(&row, Some(&example_peaks())).share, Some(0.25));
    }

    #[test]
    fn a_cache_can_be_faster_than_memory() {
        let row = row(100.0, 10e6, 2.5e6);
        let mut peaks = example_peaks();
        assert_eq!(reached(&row, Some(&peaks)).share, Some(2.5));

        peaks.bytes.load = Some(0.6);

        let share = reached(&row, Some(&peaks)).share;
        assert_eq!(share, None, "a disturbed peak may be too low");
    }

    /// Returns the share that 500 MFLOP on matrix cores reach in a time.
    fn share_on_matrix_cores(ms: f64, matrix_cores: Option<Rate>) -> Option<f64> {
        let row = KernelRow {
            matrix_cores: true,
            ..row(ms, 500e6, 1e6)
        };
        let peaks = Peaks {
            matrix_cores,
            ..example_peaks()
        };
        reached(&row, Some(&peaks)).share
    }

    #[test]
    fn work_on_matrix_cores_is_compared_with_their_peak() {
        let peak = Some(steady(2e9));
        assert_eq!(share_on_matrix_cores(500.0, None), None);
        assert_eq!(share_on_matrix_cores(500.0, peak), Some(0.5));
    }

    #[test]
    fn a_share_of_arithmetic_above_1_is_noise_or_no_share() {
        let peak = Some(steady(2e9));
        let share = share_on_matrix_cores(240.0, peak).expect("noise explains it");
        assert!(share > 1.0);
        assert_eq!(share_on_matrix_cores(200.0, peak), None);
    }

    #[test]
    fn work_that_is_not_known_gives_no_rate() {
        let unknown = KernelRow {
            ms: 5.0,
            ..KernelRow::default()
        };
        let in_another_row = row(5.0, 0.0, 0.0);
        for row in [unknown, in_another_row] {
            assert_eq!(reached(&row, Some(&example_peaks())), RowRates::default());
        }
    }

    #[test]
    fn a_copy_has_bytes_and_no_arithmetic() {
        assert_eq!(
            reached(&row(5.0, 0.0, 5e4), Some(&example_peaks())).share,
            Some(1.0)
        );
    }

    #[test]
    fn a_row_without_time_has_no_rate() {
        assert_eq!(
            reached(&row(0.0, 0.0, 5e4), Some(&example_peaks())).share,
            None
        );
    }

    #[test]
    fn of_two_measurements_each_rate_keeps_its_higher_best() {
        let before = Peaks {
            flops: steady(50e6),
            bytes: steady(20e6),
            matrix_cores: Some(steady(2e9)),
            ..example_peaks()
        };

        let joined = better(before, example_peaks());

        assert_eq!((joined.flops.best, joined.bytes.best), (100e6, 20e6));
        assert_eq!(joined.matrix_cores, Some(steady(2e9)));
    }

    #[test]
    fn a_disturbed_measurement_lowers_nothing_and_a_quiet_one_clears_the_mark() {
        let measured = |(best, load): (f64, Option<f64>)| Peaks {
            flops: Rate {
                load,
                ..steady(best)
            },
            ..example_peaks()
        };
        // Each row has the FLOP/s and the load of the measurement before, of the one now, and of both joined.
        let cases = [
            ((265e6, None), (65e6, Some(0.6)), (265e6, None)),
            ((65e6, Some(0.6)), (265e6, None), (265e6, None)),
            ((265e6, Some(0.6)), (260e6, None), (265e6, None)),
            ((65e6, Some(0.6)), (90e6, Some(0.3)), (90e6, Some(0.3))),
            ((90e6, Some(0.3)), (65e6, Some(0.6)), (90e6, Some(0.3))),
        ];
        for (before, now, (best, load)) in cases {
            let joined = better(measured(before), measured(now));
            assert_eq!(joined.flops.best, best, "{before:?} {now:?}");
            assert_eq!(joined.load(), load, "{before:?} {now:?}");
        }
    }

    #[test]
    fn peaks_in_words_say_that_they_were_disturbed() {
        let mut peaks = Peaks {
            flops: steady(265.4e9),
            bytes: steady(38.06e9),
            ..example_peaks()
        };
        assert_eq!(describe(&peaks), "peak 265 GFLOP/s, 38.1 GB/s");

        peaks.bytes.load = Some(0.4);

        assert_eq!(
            describe(&peaks),
            "peak 265 GFLOP/s, 38.1 GB/s (measured under load)"
        );
    }
}
