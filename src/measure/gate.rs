//! A report compared with an earlier one, cell by cell. What cannot be compared is named and never counts as passed.

use std::path::Path;

use anyhow::Result;
use serde::Serialize;

use super::report::{Cell, FORMAT, Report};
use crate::config::file::read_text;
use crate::out::usage;

/// Largest baseline that is read.
const MAX_BYTES: u64 = 16 * 1024 * 1024;
/// The smallest ratio of speeds that passes where `--min-ratio` names none.
pub const MIN_RATIO: f64 = 0.95;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Judgement {
    Pass,
    /// Surely below the ratio asked for.
    Slower,
    NotComparable,
}

/// One cell against its baseline.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judged {
    pub device: String,
    pub preset: String,
    pub version: String,
    pub judgement: Judgement,
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
    pub cells: Vec<Judged>,
}

/// Reads an earlier `bench --json`.
pub fn read(path: &Path) -> Result<Report> {
    let refuse = |what: String| {
        let shown = path.display();
        usage(format!(
            "{shown} {what}; write one with `perflings bench --json --output FILE`"
        ))
    };
    let text = read_text(path, MAX_BYTES)?;
    let value: serde_json::Value = serde_json::from_str(text.trim())
        .map_err(|error| refuse(format!("is not a result of `bench` ({error})")))?;
    match (value["bench"].as_str(), value["format"].as_u64()) {
        (Some("versions"), Some(format)) if format <= u64::from(FORMAT) => {}
        (Some("versions"), Some(format)) => {
            return Err(refuse(format!(
                "has format {format}, and this program reads up to {FORMAT}: use a newer perflings"
            )));
        }
        (Some(other), _) => {
            return Err(refuse(format!(
                "is the result of another kind of bench (`{}`), and a baseline is one of versions",
                other.escape_debug()
            )));
        }
        _ => return Err(refuse("is not a result of `bench`".to_owned())),
    }
    serde_json::from_value(value).map_err(|error| refuse(format!("is damaged: {error}")))
}

/// Compares every cell of either report.
pub fn gate(now: &Report, then: &Report, min_ratio: f64) -> Gate {
    let mut cells = Vec::new();
    for cell in &now.cells {
        let compared = match then.cells.iter().find(|other| same_subject(cell, other)) {
            Some(earlier) => compare(cell, earlier),
            None => Err("the baseline does not have it".to_owned()),
        };
        cells.push(judged(cell, compared, min_ratio));
    }
    for earlier in &then.cells {
        if !now.cells.iter().any(|cell| same_subject(cell, earlier)) {
            let why = Err("it was not measured now".to_owned());
            cells.push(judged(earlier, why, min_ratio));
        }
    }
    Gate { min_ratio, cells }
}

fn same_subject(a: &Cell, b: &Cell) -> bool {
    (&a.select, &a.preset, &a.version) == (&b.select, &b.preset, &b.version)
}

fn judged(cell: &Cell, compared: Result<[f64; 3], String>, min_ratio: f64) -> Judged {
    let judgement = match compared {
        // Even at the favourable ends of both intervals it is too slow.
        Ok([_, _, high]) if high < min_ratio => Judgement::Slower,
        Ok(_) => Judgement::Pass,
        Err(_) => Judgement::NotComparable,
    };
    let [ratio, low, high] = compared.as_ref().map_or([None; 3], |ratio| ratio.map(Some));
    Judged {
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
fn compare(now: &Cell, then: &Cell) -> Result<[f64; 3], String> {
    let same = |what: &str, now: &str, then: &str, equal: bool| match equal {
        true => Ok(()),
        false => Err(format!("other {what}: {then} then, {now} now")),
    };
    let name = |cell: &Cell| format!("`{}`", cell.device.name);
    let equal = now.device == then.device;
    same("device", &name(now), &name(then), equal)?;
    let equal = now.config == then.config;
    same("configuration", &now.config, &then.config, equal)?;
    let times = |cell: &Cell, when: &str| {
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
    let ([now, now_low, now_high], [then, then_low, then_high]) =
        (times(now, "now")?, times(then, "then")?);
    Ok([then / now, then_low / now_high, then_high / now_low])
}

impl Gate {
    fn count(&self, judgement: Judgement) -> usize {
        self.cells
            .iter()
            .filter(|cell| cell.judgement == judgement)
            .count()
    }

    /// Something passed and nothing got slower.
    pub fn passed(&self) -> bool {
        self.count(Judgement::Pass) > 0 && self.count(Judgement::Slower) == 0
    }

    /// `2 passed, 1 slower (cpu tiny v3), 1 not comparable`.
    pub fn summary(&self) -> String {
        let slower: Vec<String> = self
            .cells
            .iter()
            .filter(|cell| cell.judgement == Judgement::Slower)
            .map(|cell| format!("{} {} {}", cell.device, cell.preset, cell.version))
            .collect();
        let named = if slower.is_empty() {
            String::new()
        } else {
            format!(" ({})", slower.join(", "))
        };
        let nothing = if self.count(Judgement::Pass) + slower.len() == 0 {
            "; nothing was comparable, so nothing passed"
        } else {
            ""
        };
        format!(
            "{} passed, {} slower{named}, {} not comparable{nothing}",
            self.count(Judgement::Pass),
            slower.len(),
            self.count(Judgement::NotComparable)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::cell;
    use super::*;

    fn report(ms: &[f64]) -> Report {
        Report {
            bench: "versions".to_owned(),
            format: FORMAT,
            cells: vec![cell("v1", ms, 25)],
            ..Report::default()
        }
    }

    fn verdict(now: &Report, then: &Report) -> (Judgement, Option<String>) {
        let gate = gate(now, then, 0.95);
        (gate.cells[0].judgement, gate.cells[0].reason.clone())
    }

    #[test]
    fn slower_is_only_what_is_slower_beyond_both_intervals() {
        let then = report(&[20.0, 20.1, 20.2]);
        for (ms, expected) in [
            ([20.0, 20.1, 20.2], Judgement::Pass),
            ([10.0, 10.1, 10.2], Judgement::Pass),
            ([30.0, 30.1, 30.2], Judgement::Slower),
            // The median is 1.5 times as slow, but one round was as fast as ever.
            ([20.0, 30.1, 30.2], Judgement::Pass),
        ] {
            assert_eq!(verdict(&report(&ms), &then).0, expected, "{ms:?}");
        }
        let slow = gate(&report(&[30.0]), &then, 0.95);
        assert!(!slow.passed());
        assert_eq!(
            slow.summary(),
            "0 passed, 1 slower (cpu tiny v1), 0 not comparable"
        );
        assert!(gate(&report(&[30.0]), &then, 0.5).passed());
    }

    #[test]
    fn what_cannot_be_compared_never_passes() {
        let now = report(&[20.0]);
        let mut other = now.clone();
        other.cells[0].device.name = "Other".to_owned();
        let mut changed = now.clone();
        changed.cells[0].config = "c1".to_owned();
        let mut unmeasured = now.clone();
        unmeasured.cells[0].speed = None;
        let mut nonsense = now.clone();
        if let Some(speed) = &mut nonsense.cells[0].speed {
            speed.low_ms = 0.0;
        }
        for (then, says) in [
            (other, "other device: `Other` then, `Chip` now"),
            (changed, "other configuration: c1 then, c0 now"),
            (unmeasured, "not measured then"),
            (nonsense, "is not a positive number"),
            (Report::default(), "the baseline does not have it"),
        ] {
            let (judgement, reason) = verdict(&now, &then);
            assert_eq!(judgement, Judgement::NotComparable);
            assert!(reason.expect("a reason").contains(says), "{says}");
            assert!(!gate(&now, &then, 0.95).passed());
        }
        let none = gate(&Report::default(), &now, 0.95);
        assert_eq!(
            none.cells[0].reason.as_deref(),
            Some("it was not measured now")
        );
        assert!(none.summary().ends_with("nothing passed"));
    }

    #[test]
    fn a_baseline_is_read_back_or_refused_with_its_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("b.json");
        let written = serde_json::to_string(&report(&[20.0])).expect("plain data");
        std::fs::write(&path, &written).expect("writes");
        assert_eq!(read(&path).expect("reads"), report(&[20.0]));
        for (text, says) in [
            ("", "not a result of `bench`"),
            ("[1]", "not a result of `bench`"),
            (
                r#"{"bench":"sweep","format":1}"#,
                "another kind of bench (`sweep`)",
            ),
            (r#"{"bench":"versions","format":9}"#, "format 9"),
            (r#"{"bench":"versions","format":1}"#, "is damaged"),
            (&written[..written.len() / 2], "not a result of `bench`"),
        ] {
            std::fs::write(&path, text).expect("writes");
            let error = read(&path).expect_err(says).to_string();
            assert!(error.contains(says) && error.contains("b.json"), "{error}");
        }
        assert!(read(&folder.path().join("none.json")).is_err());
    }
}
