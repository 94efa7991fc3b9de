//! Measured peaks in words, and the messages when two measurements of one device do not agree.

use std::path::Path;

use protocol::Roof;
use protocol::stats::roofline::repeats;

/// Two measurements that differ by less than this share of the earlier one agree.
const AGREE: f64 = 0.15;

/// A sentence for each peak that was measured far from what is on file, with the one that is kept and why. `file` is where
/// peaks are kept.
pub fn disagreements(before: &Roof, now: &Roof, file: Option<&Path>) -> Vec<String> {
    let peaks = [
        ("arithmetic", &before.flops, &now.flops, "FLOP/s"),
        ("memory", &before.bytes, &now.bytes, "B/s"),
    ];
    let cores = before.matrix_cores.as_ref().zip(now.matrix_cores.as_ref());
    let cores = cores.map(|(old, new)| ("matrix cores", old, new, "FLOP/s"));
    let mut said = Vec::new();
    for (what, old, new, unit) in peaks.into_iter().chain(cores) {
        let change = new.best / old.best - 1.0;
        if !change.is_finite() || change.abs() <= AGREE {
            continue;
        }
        let (percent, then) = (100.0 * change.abs(), repeats(old, unit));
        let now = repeats(new, unit);
        said.push(if change > 0.0 {
            format!(
                "peak of {what}: {now}, {percent:.0} % above the {then} of {}, which something else on this machine \
                 slowed: the new one is kept",
                before.date
            )
        } else {
            let forget = file.map_or_else(String::new, |file| {
                format!("; if the device did become slower, remove {} first", file.display())
            });
            format!(
                "peak of {what}: only {now}, {percent:.0} % below the {then} of {}, which is kept: noise only slows. \
                 Measure again while nothing else runs{forget}",
                before.date
            )
        });
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::Rate;

    fn roof(flops: f64, bytes: f64) -> Roof {
        let rate = |best: f64| Rate {
            best,
            median: 0.9 * best,
            p25: 0.8 * best,
            p75: 0.95 * best,
            n: 9,
            load: None,
        };
        Roof {
            matrix_cores: None,
            flops: rate(flops),
            bytes: rate(bytes),
            clock: "host".to_owned(),
            date: "2026-01-02".to_owned(),
        }
    }

    #[test]
    fn small_differences_are_not_reported() {
        let before = roof(200e9, 20e9);
        for (flops, bytes) in [(200e9, 20e9), (171e9, 22.9e9), (229e9, 17.1e9)] {
            assert!(disagreements(&before, &roof(flops, bytes), None).is_empty());
        }
    }

    #[test]
    fn which_of_two_is_kept_is_said_with_the_reason() {
        let before = roof(200e9, 20e9);
        let file = Path::new("/caches/roofs.json");
        let said = disagreements(&before, &roof(140e9, 30e9), Some(file));
        let [slower, faster] = said.as_slice() else {
            panic!("both lie apart: {said:?}");
        };
        for part in [
            "arithmetic: only 140.0 GFLOP/s (9 repeats, middle half 112.0-133.0), 30 % below the 200.0 GFLOP/s",
            "of 2026-01-02, which is kept: noise only slows",
            "remove /caches/roofs.json first",
        ] {
            assert!(slower.contains(part), "{slower}");
        }
        assert!(faster.contains("50 % above the 20.0 GB/s"), "{faster}");
        assert!(faster.ends_with("the new one is kept"), "{faster}");
    }

    #[test]
    fn a_peak_of_nothing_is_compared_with_nothing() {
        assert!(disagreements(&Roof::default(), &roof(1e9, 1e9), None).is_empty());
    }
}
