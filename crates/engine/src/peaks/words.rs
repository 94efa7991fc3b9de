//! The sentences about peaks on which two measurements of one device disagree.

use std::path::Path;

use protocol::Peaks;
use protocol::stats::roofline::repeats;

/// Two measurements agree if they differ by no more than this share of the earlier one.
const AGREEMENT: f64 = 0.15;

/// Returns a sentence for each peak that was measured far from the peak on file. It names the one that is kept, and why. `file` is the file
/// with the peaks.
pub fn disagreements(before: &Peaks, now: &Peaks, file: Option<&Path>) -> Vec<String> {
    let mut peaks = vec![
        ("arithmetic", &before.flops, &now.flops, "FLOP/s"),
        ("memory", &before.bytes, &now.bytes, "B/s"),
    ];
    if let (Some(old), Some(new)) = (&before.matrix_cores, &now.matrix_cores) {
        peaks.push(("matrix cores", old, new, "FLOP/s"));
    }
    let mut sentences = Vec::new();
    for (peak, old, new, unit) in peaks {
        let change = new.best / old.best - 1.0;
        if !change.is_finite() || change.abs() <= AGREEMENT {
            continue;
        }
        let percent = 100.0 * change.abs();
        let kept = repeats(old, unit);
        let measured = repeats(new, unit);
        let date = &before.date;
        sentences.push(if change > 0.0 {
            format!(
                "peak of {peak}: {measured}, {percent:.0} % above the {kept} of {date}, \
                 which something else on this machine slowed: the new peak is kept"
            )
        } else {
            let hint = file.map_or_else(String::new, |file| {
                format!(
                    "; if the device did become slower, remove {} first",
                    file.display()
                )
            });
            format!(
                "peak of {peak}: only {measured}, {percent:.0} % below the {kept} of {date}, \
                 which is kept, because other programs can only slow a measurement. \
                 Measure again while nothing else runs{hint}"
            )
        });
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::Rate;

    fn peaks(flops: f64, bytes: f64) -> Peaks {
        let rate = |best: f64| Rate {
            best,
            median: 0.9 * best,
            p25: 0.8 * best,
            p75: 0.95 * best,
            n: 9,
            load: None,
        };
        Peaks {
            matrix_cores: None,
            flops: rate(flops),
            bytes: rate(bytes),
            clock: "host".to_owned(),
            date: "2026-01-02".to_owned(),
        }
    }

    #[test]
    fn small_differences_are_not_reported() {
        let before = peaks(200e9, 20e9);
        for (flops, bytes) in [(200e9, 20e9), (171e9, 22.9e9), (229e9, 17.1e9)] {
            assert!(disagreements(&before, &peaks(flops, bytes), None).is_empty());
        }
    }

    #[test]
    fn a_disagreement_says_which_peak_is_kept_and_why() {
        let before = peaks(200e9, 20e9);
        let file = Path::new("/caches/roofs.json");
        let sentences = disagreements(&before, &peaks(140e9, 30e9), Some(file));
        let [slower, faster] = sentences.as_slice() else {
            panic!("both peaks differ: {sentences:?}");
        };
        for part in [
            "arithmetic: only 140.0 GFLOP/s (9 repeats, middle half 112.0-133.0), \
             30 % below the 200.0 GFLOP/s",
            "of 2026-01-02, which is kept, because other programs can only slow a measurement",
            "remove /caches/roofs.json first",
        ] {
            assert!(slower.contains(part), "{slower}");
        }
        assert!(faster.contains("50 % above the 20.0 GB/s"), "{faster}");
        assert!(faster.ends_with("the new peak is kept"), "{faster}");
    }

    #[test]
    fn an_empty_peak_is_not_compared() {
        assert!(disagreements(&Peaks::default(), &peaks(1e9, 1e9), None).is_empty());
    }
}
