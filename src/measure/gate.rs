//! Cells compared with those of an earlier report. What cannot be compared is named and never counts as passed.

use serde::Serialize;

use super::cell::BenchCell;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GateVerdict {
    Pass,
    /// Surely below the ratio asked for.
    Slower,
    NotComparable,
}

/// One cell against its baseline.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GatedCell {
    pub device: String,
    pub preset: String,
    pub version: String,
    pub judgement: GateVerdict,
    /// Speed now / speed then, and where it lies given both intervals.
    pub ratio: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// Why it cannot be compared.
    pub reason: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gate {
    pub min_ratio: f64,
    pub cells: Vec<GatedCell>,
}

/// Compares every cell of either report.
pub fn gate(now: &[BenchCell], then: &[BenchCell], min_ratio: f64) -> Gate {
    let earlier = |cell: &BenchCell| then.iter().find(|other| cell.same_version(other));
    let measured = now.iter().map(|cell| {
        let compared = match earlier(cell) {
            Some(earlier) => compare(cell, earlier),
            None => Err("the baseline does not have it".to_owned()),
        };
        judged(cell, compared, min_ratio)
    });
    let dropped = then
        .iter()
        .filter(|cell| !now.iter().any(|other| cell.same_version(other)))
        .map(|cell| judged(cell, Err("it was not measured now".to_owned()), min_ratio));
    Gate {
        min_ratio,
        cells: measured.chain(dropped).collect(),
    }
}

fn judged(cell: &BenchCell, compared: Result<[f64; 3], String>, min_ratio: f64) -> GatedCell {
    let judgement = match compared {
        // Even at the favourable ends of both intervals it is too slow.
        Ok([_, _, high]) if high < min_ratio => GateVerdict::Slower,
        Ok(_) => GateVerdict::Pass,
        Err(_) => GateVerdict::NotComparable,
    };
    let [ratio, low, high] = compared.as_ref().map_or([None; 3], |ratio| ratio.map(Some));
    GatedCell {
        device: cell.select.clone(),
        preset: cell.preset.clone(),
        version: cell.version.clone(),
        judgement,
        ratio,
        low,
        high,
        reason: compared.err(),
    }
}

/// Speed now over speed then with its ends, or why there is none.
fn compare(now: &BenchCell, then: &BenchCell) -> Result<[f64; 3], String> {
    if now.device != then.device {
        let (now, then) = (&now.device.name, &then.device.name);
        return Err(format!("other device: `{then}` then, `{now}` now"));
    }
    if now.config != then.config {
        let (now, then) = (&now.config, &then.config);
        return Err(format!("other configuration: {then} then, {now} now"));
    }
    let times = |cell: &BenchCell, when: &str| {
        let Some(speed) = &cell.speed else {
            let reason = cell.speed_reason.as_deref().unwrap_or("no reason given");
            return Err(format!("not measured {when}: {reason}"));
        };
        let times = [speed.step_ms.median, speed.low_ms, speed.high_ms];
        match times.iter().all(|x| x.is_finite() && *x > 0.0) {
            true => Ok(times),
            false => Err(format!("its step time {when} is not a positive number")),
        }
    };
    let [now, now_low, now_high] = times(now, "now")?;
    let [then, then_low, then_high] = times(then, "then")?;
    Ok([then / now, then_low / now_high, then_high / now_low])
}

impl Gate {
    fn are(&self, judgement: GateVerdict) -> impl Iterator<Item = &GatedCell> {
        let cells = self.cells.iter();
        cells.filter(move |cell| cell.judgement == judgement)
    }

    /// Something passed and nothing got slower.
    pub fn passed(&self) -> bool {
        self.are(GateVerdict::Pass).count() > 0 && self.are(GateVerdict::Slower).count() == 0
    }

    /// `2 passed, 1 slower (cpu tiny v3), 1 not comparable`.
    pub fn summary(&self) -> String {
        let passed = self.are(GateVerdict::Pass).count();
        let slower: Vec<String> = self
            .are(GateVerdict::Slower)
            .map(|cell| format!("{} {} {}", cell.device, cell.preset, cell.version))
            .collect();
        let named = match slower.len() {
            0 => String::new(),
            _ => format!(" ({})", slower.join(", ")),
        };
        let nothing = match passed + slower.len() {
            0 => "; nothing was comparable, so nothing passed",
            _ => "",
        };
        let other = self.are(GateVerdict::NotComparable).count();
        format!(
            "{passed} passed, {} slower{named}, {other} not comparable{nothing}",
            slower.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::cell::tests::cell;
    use super::*;

    #[test]
    fn slower_is_only_what_is_slower_beyond_both_intervals() {
        let then = [cell("v1", &[20.0, 20.1, 20.2], 25)];
        for (ms, expected) in [
            ([20.0, 20.1, 20.2], GateVerdict::Pass),
            ([10.0, 10.1, 10.2], GateVerdict::Pass),
            ([30.0, 30.1, 30.2], GateVerdict::Slower),
            // The median is 1.5 times as slow, but one round was as fast as ever.
            ([20.0, 30.1, 30.2], GateVerdict::Pass),
        ] {
            let gate = gate(&[cell("v1", &ms, 25)], &then, 0.95);
            assert_eq!(gate.cells[0].judgement, expected, "{ms:?}");
        }
        let now = [cell("v1", &[30.0], 25)];
        let slow = gate(&now, &then, 0.95);
        assert!(!slow.passed());
        assert_eq!(
            slow.summary(),
            "0 passed, 1 slower (cpu tiny v1), 0 not comparable"
        );
        assert!(gate(&now, &then, 0.5).passed());
    }

    #[test]
    fn what_cannot_be_compared_never_passes() {
        let now = cell("v1", &[20.0], 25);
        let other = |change: fn(&mut BenchCell)| {
            let mut cell = now.clone();
            change(&mut cell);
            vec![cell]
        };
        for (then, says) in [
            (
                other(|cell| cell.device.name = "Other".to_owned()),
                "other device: `Other` then, `Chip` now",
            ),
            (
                other(|cell| cell.config = "c1".to_owned()),
                "other configuration: c1 then, c0 now",
            ),
            (other(|cell| cell.speed = None), "not measured then"),
            (
                other(|cell| cell.speed = Some(Default::default())),
                "is not a positive number",
            ),
            (Vec::new(), "the baseline does not have it"),
        ] {
            let gate = gate(std::slice::from_ref(&now), &then, 0.95);
            assert_eq!(gate.cells[0].judgement, GateVerdict::NotComparable);
            let reason = gate.cells[0].reason.as_deref();
            assert!(reason.expect("a reason").contains(says), "{says}");
            assert!(!gate.passed());
        }
        let none = gate(&[], &[now], 0.95);
        let reason = none.cells[0].reason.as_deref();
        assert_eq!(reason, Some("it was not measured now"));
        assert!(none.summary().ends_with("nothing passed"));
    }
}
