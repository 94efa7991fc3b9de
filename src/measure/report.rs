//! The report of a bench as data: measured cells, pairs, and the cells that are missing. `bench --json` writes it, and `bench --baseline` reads
//! an earlier one and compares every cell with it.

use std::path::Path;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::cell::{BaselineVerdict, BenchCell, Subject};
use super::plan::{self, MeasureJob, PlanProgress};
use super::runner::{EngineTask, Runner, TaskResult};
use crate::course::config_file::read_text;
use crate::out::{Exit, usage};
use protocol::{Device, Hello, Pair};

/// The version of the JSON form. A file with a larger one is refused.
pub const FORMAT: u32 = 1;
/// The size of the largest baseline that is read, in bytes.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// The result of a bench.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BenchReport {
    /// The kind of bench: `versions` or `pairs`.
    pub bench: String,
    pub format: u32,
    pub machine: Machine,
    /// The requested steps of each run. `None` for pairs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// The requested runs of each cell. `None` for pairs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds: Option<u32>,
    pub cells: Vec<BenchCell>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pairs: Vec<PairedRow>,
    pub missing: Vec<MissingCell>,
    /// True if the bench was interrupted before everything was measured.
    pub interrupted: bool,
    /// The names of the cells that only the earlier result has. `None` without an earlier result.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub only_then: Option<Vec<String>>,
}

/// The machine and the program that measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The version of the program.
    pub version: String,
    pub os: String,
    pub cores: u32,
    /// The date as `YYYY-MM-DD`, in UTC.
    pub date: String,
}

/// A requested cell without figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingCell {
    pub kind: MissingKind,
    pub device: String,
    /// The preset. `None` means that all cells of the device are missing.
    pub preset: Option<String>,
    pub version: Option<String>,
    pub reason: String,
}

/// The kind of reason why a cell has no figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MissingKind {
    /// This machine does not have the device.
    NoDevice,
    /// The engine refused the configuration.
    Refused,
    /// The run failed.
    Failed,
    Interrupted,
}

/// A version measured in pairs of steps with the first one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairedRow {
    /// The device as it was named on the command line.
    pub select: String,
    pub device: Device,
    pub preset: String,
    /// The version with which `version` is compared.
    pub first: String,
    pub version: String,
    pub pair: Pair,
}

/// Measures every subject in `rounds` rounds and calls `on_progress` with each event. Each run has an engine of its own. Comparisons share one.
///
/// # Errors
/// Returns an error if a subject does not fit into the memory of this machine, and the errors of `plan::measure`.
pub fn measure(
    runner: &mut Runner,
    subjects: &[Subject],
    rounds: u32,
    on_progress: &mut dyn FnMut(PlanProgress<'_>) -> Result<()>,
) -> Result<BenchReport> {
    let job = |(index, subject): (usize, &Subject)| MeasureJob {
        label: subject.name(),
        subject: index,
        device: subject.device.clone(),
        work: subject.work.clone(),
        fresh: matches!(subject.work, EngineTask::Run(_)),
        must_finish: true,
    };
    let jobs: Vec<MeasureJob> = subjects.iter().enumerate().map(job).collect();
    // Nothing starts if one of the jobs does not fit into the memory of this machine.
    for job in &jobs {
        runner.check_memory(&job.device, &job.work)?;
    }
    let rounds = plan::in_rounds(&jobs, |job| subjects[job.subject].group, rounds);
    let outcome = plan::measure(runner, &rounds, on_progress)?;
    let mut report = BenchReport {
        format: FORMAT,
        machine: runner.hello().map(Machine::from_hello).unwrap_or_default(),
        interrupted: outcome.interrupted,
        ..BenchReport::default()
    };
    for failure in &outcome.failures {
        let kind = match failure.stop.exit {
            _ if failure.no_device => MissingKind::NoDevice,
            Exit::Usage => MissingKind::Refused,
            _ => MissingKind::Failed,
        };
        let missing = MissingCell::new(&subjects[failure.subject], kind, &failure.stop.text);
        report.missing.push(missing);
    }
    for (index, subject) in subjects.iter().enumerate() {
        let runs: Vec<&TaskResult> = outcome
            .measured
            .iter()
            .filter(|(subject, _)| *subject == index)
            .map(|(_, measured)| measured)
            .collect();
        if let EngineTask::Pair { a, .. } = &subject.work {
            let paired = |measured: &&TaskResult| {
                Some(PairedRow {
                    select: subject.device.clone(),
                    device: measured.finished.as_ref()?.device.clone(),
                    preset: subject.preset.to_string(),
                    first: a.variant.clone(),
                    version: subject.version.clone(),
                    pair: measured.pair.clone()?,
                })
            };
            report.pairs.extend(runs.iter().filter_map(paired));
        } else if let Some(cell) = BenchCell::from_runs(subject, &runs) {
            report.cells.push(cell);
        } else if !outcome.skips(index, &subject.device) {
            let missing = MissingCell::new(subject, MissingKind::Interrupted, "interrupted");
            report.missing.push(missing);
        }
    }
    Ok(report)
}

impl BenchReport {
    /// Reads the output of an earlier `bench --json`.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, holds something else, or has a newer format.
    pub fn read(path: &Path) -> Result<Self> {
        let refuse = |problem: String| {
            let shown = path.display();
            usage(format!(
                "{shown} {problem}; write one with `perflings bench --json --output FILE`"
            ))
        };
        let text = read_text(path, MAX_BYTES)?;
        let value: serde_json::Value = serde_json::from_str(text.trim())
            .map_err(|error| refuse(format!("is not a result of `bench` ({error})")))?;
        let problem = match (value["bench"].as_str(), value["format"].as_u64()) {
            (Some("versions"), Some(format)) if format > u64::from(FORMAT) => format!(
                "has format {format}, and this program reads up to {FORMAT}: use a newer perflings"
            ),
            (Some("versions"), Some(_)) => {
                return serde_json::from_value(value)
                    .map_err(|error| refuse(format!("is damaged: {error}")));
            }
            (Some(other), _) => format!(
                "is the result of another kind of bench (`{}`), and a baseline is one of versions",
                crate::sanitize::line(other)
            ),
            (None, _) => "is not a result of `bench`".to_owned(),
        };
        Err(refuse(problem))
    }

    /// Compares every cell with an earlier result. A cell is slower if its speed is less than `min_ratio` of the earlier one.
    pub fn compare(&mut self, earlier: &Self, min_ratio: f64) {
        for cell in &mut self.cells {
            cell.judge(&earlier.cells, min_ratio);
        }
        let is_dropped = |cell: &&BenchCell| !self.cells.iter().any(|now| now.same_version(cell));
        let dropped = earlier.cells.iter().filter(is_dropped);
        self.only_then = Some(dropped.map(BenchCell::name).collect());
    }

    /// Returns true if something passed and nothing got slower since the earlier result, and a summary such as
    /// `2 passed, 1 slower (cpu tiny v3), 1 not comparable`. `None` without an earlier result.
    pub fn compared(&self) -> Option<(bool, String)> {
        let mut passed = 0;
        let mut slower = Vec::new();
        let mut other = self.only_then.as_ref()?.len();
        for cell in &self.cells {
            match &cell.since {
                Some(BaselineVerdict::Pass(_)) => passed += 1,
                Some(BaselineVerdict::Slower(_)) => slower.push(cell.name()),
                Some(BaselineVerdict::NotComparable(_)) | None => other += 1,
            }
        }
        let named = match slower.len() {
            0 => String::new(),
            _ => format!(" ({})", slower.join(", ")),
        };
        let nothing = match passed + slower.len() {
            0 => "; nothing was comparable, so nothing passed",
            _ => "",
        };
        let count = slower.len();
        let text =
            format!("{passed} passed, {count} slower{named}, {other} not comparable{nothing}");
        Some((passed > 0 && slower.is_empty(), text))
    }

    /// Returns the exit code: interrupted, failed if a run failed or got slower, or no device if nothing ran.
    pub fn exit(&self) -> Exit {
        let any = !self.cells.is_empty() || !self.pairs.is_empty();
        let is_failure = |missing: &&MissingCell| missing.kind != MissingKind::NoDevice;
        match (any, self.missing.iter().find(is_failure)) {
            _ if self.interrupted => Exit::Interrupted,
            (true, None) if self.compared().is_some_and(|(passed, _)| !passed) => Exit::Failed,
            (true, None) => Exit::Ok,
            (false, None) => Exit::NoDevice,
            (false, Some(failed)) if failed.kind == MissingKind::Refused => Exit::Usage,
            _ => Exit::Failed,
        }
    }
}

impl Subject {
    /// Returns the name of the subject in messages.
    fn name(&self) -> String {
        format!("{} {} on {}", self.preset, self.version, self.device)
    }
}

impl Machine {
    fn from_hello(hello: &Hello) -> Self {
        Self {
            version: hello.version.clone(),
            os: hello.os.clone(),
            cores: hello.cores,
            date: hello.date.clone(),
        }
    }
}

impl MissingCell {
    fn new(subject: &Subject, kind: MissingKind, reason: &str) -> Self {
        let named = kind != MissingKind::NoDevice;
        Self {
            kind,
            device: subject.device.clone(),
            preset: named.then(|| subject.preset.to_string()),
            version: named.then(|| subject.version.clone()),
            reason: reason.to_owned(),
        }
    }

    /// Returns the sentence about the cell, as in `gpu is skipped: this machine has none`.
    pub fn text(&self) -> String {
        let name = match (&self.preset, &self.version) {
            (Some(preset), Some(version)) => format!("{preset} {version} on {}", self.device),
            _ => self.device.clone(),
        };
        let verb = match self.kind {
            MissingKind::NoDevice => "is skipped",
            MissingKind::Refused => "was refused",
            MissingKind::Failed => "failed",
            MissingKind::Interrupted => "was not measured",
        };
        format!("{name} {verb}: {}", self.reason)
    }
}

#[cfg(test)]
mod tests {
    use super::super::cell::tests::cell;
    use super::*;

    /// Makes a report with these cells.
    fn report(cells: Vec<BenchCell>) -> BenchReport {
        BenchReport {
            bench: "versions".to_owned(),
            format: FORMAT,
            cells,
            ..BenchReport::default()
        }
    }

    /// Makes the missing cell of a device, with a reason of this kind.
    fn missing(kind: MissingKind) -> MissingCell {
        MissingCell {
            kind,
            device: "gpu".to_owned(),
            preset: None,
            version: None,
            reason: "none".to_owned(),
        }
    }

    #[test]
    fn the_exit_code_reports_the_worst_cell() {
        use MissingKind::{Failed, NoDevice, Refused};
        for (measured, kinds, expected) in [
            (1, vec![], Exit::Ok),
            (1, vec![NoDevice], Exit::Ok),
            (0, vec![NoDevice], Exit::NoDevice),
            (1, vec![NoDevice, Failed], Exit::Failed),
            (0, vec![Refused, NoDevice], Exit::Usage),
        ] {
            let mut report = report(vec![BenchCell::default(); measured]);
            report.missing = kinds.iter().copied().map(missing).collect();

            assert_eq!(report.exit(), expected, "{measured} cells, {kinds:?}");

            report.interrupted = true;
            assert_eq!(report.exit(), Exit::Interrupted);
        }
    }

    #[test]
    fn a_cell_with_half_the_speed_fails_the_comparison() {
        let earlier = report(vec![cell("v1", &[20.0], 25)]);
        let mut now = report(vec![cell("v1", &[40.0], 25)]);

        now.compare(&earlier, 0.95);

        let summary = "0 passed, 1 slower (cpu tiny v1), 0 not comparable";
        assert_eq!(now.compared(), Some((false, summary.to_owned())));
        assert_eq!(now.exit(), Exit::Failed);
    }

    #[test]
    fn a_cell_above_the_required_ratio_passes() {
        let earlier = report(vec![cell("v1", &[20.0], 25)]);
        let mut now = report(vec![cell("v1", &[30.0], 25)]);

        now.compare(&earlier, 0.5);

        assert_eq!(now.compared().map(|(passed, _)| passed), Some(true));
    }

    #[test]
    fn a_comparison_without_a_common_cell_does_not_pass() {
        let mut now = report(Vec::new());
        assert_eq!(now.compared(), None, "not compared yet");

        now.compare(&report(vec![cell("v1", &[20.0], 25)]), 0.95);

        let (passed, summary) = now.compared().expect("compared");
        assert!(!passed && summary.ends_with("nothing passed"), "{summary}");
    }

    #[test]
    fn a_baseline_is_read_back_or_refused_with_its_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("b.json");
        let report = report(vec![cell("v1", &[20.0], 25)]);
        let written = serde_json::to_string(&report).expect("plain data");
        std::fs::write(&path, &written).expect("writes");
        assert_eq!(BenchReport::read(&path).expect("reads"), report);
        for (text, says) in [
            ("[1]", "not a result of `bench`"),
            (r#"{"bench":"pairs","format":1}"#, "(`pairs`)"),
            (r#"{"bench":"versions","format":9}"#, "format 9"),
            (r#"{"bench":"versions","format":1}"#, "is damaged"),
            (&written[..written.len() / 2], "not a result of `bench`"),
        ] {
            std::fs::write(&path, text).expect("writes");
            let error = BenchReport::read(&path).expect_err(says).to_string();
            assert!(error.contains(says) && error.contains("b.json"), "{error}");
        }
    }
}
