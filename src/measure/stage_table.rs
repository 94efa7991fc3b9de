//! The table of `run all`: every stage of a course, broken and fixed, and a plain baseline, measured in turns at one size on one device. The
//! command prints the table, and a card and the reports show its saved rows.
//!
//! ```text
//! v1        6.908  6.412  210.5 [201.1, 214.9]  1
//! 4 broken  6.908  6.410  21.40 [20.97, 22.03]  0.1017 [0.09758, 0.1095]
//! 4 fixed   6.908  6.412  244.0 [240.1, 247.6]  1.159 [1.117, 1.231]
//! ```
//!
//! All rows are subjects of one bench, so that rounds go forwards and backwards through all of them. A stage with its own sizes has a baseline
//! with the sizes of its fixed variant. The ratio compares times per token, so that a change of the batch is no advantage. A configuration
//! that does not fit, or that the device cannot run, is a row with its reason.

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::cell::{BenchCell, Ratio, Subject};
use super::plan::PlanProgress;
use super::report::{self, BenchReport, Machine, MissingCell, MissingKind};
use super::runner::{EngineTask, Runner};
use crate::course::{Course, Stage};
use crate::exit::Exit;
use protocol::config::{Changes, KNOBS, KnobValue, Preset, RunConfig};

/// The version of the JSON form.
pub const FORMAT: u32 = 1;
/// The version with which the stages are compared: every operation in its plain form.
pub const BASELINE: &str = "v1";

/// The request for a table.
#[derive(Clone, Debug)]
pub struct StageTablePlan {
    pub preset: Preset,
    pub device: String,
    /// The number of steps of each run.
    pub steps: u64,
    pub rounds: u32,
}

/// The whole table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StageTable {
    pub format: u32,
    pub machine: Machine,
    pub preset: String,
    pub steps: u64,
    pub rounds: u32,
    /// The rows: baselines first, then the stages in their order, broken before fixed.
    pub rows: Vec<StageTiming>,
    /// True if the measurement was interrupted before everything was measured.
    pub interrupted: bool,
}

/// A row of the table, about one configuration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StageTiming {
    /// The number of the stage, or 0 for a baseline.
    pub stage: u32,
    /// The id of the stage. Empty for a baseline.
    pub id: String,
    pub title: String,
    /// `broken` or `fixed`. For a baseline, its version and the stages whose sizes it has.
    pub variant: String,
    /// A phrase that describes the fault or the fix.
    pub phrase: String,
    /// The measured figures.
    pub cell: Option<BenchCell>,
    /// The reason why there are no figures.
    pub reason: Option<String>,
    /// The kind of that reason.
    pub missing: Option<MissingKind>,
    /// The speed over the speed of the baseline with equal sizes. `None` for a baseline.
    pub ratio: Option<Ratio>,
    /// The reason why there is no ratio.
    pub ratio_reason: Option<String>,
    /// The paths of the files that were written about this row, if they were requested.
    #[serde(default)]
    pub files: Vec<String>,
}

/// A row that will be measured.
struct Planned {
    row: StageTiming,
    config: RunConfig,
    /// The index of the row's baseline. For a baseline its own index.
    baseline: usize,
}

/// Returns the rows to measure: a baseline at the preset's sizes, one at the sizes of each stage that has its own, and every stage twice.
fn planned(course: &Course, preset: Preset) -> Vec<Planned> {
    let mut baselines = vec![RunConfig::preset(preset)];
    let mut stages = Vec::new();
    for stage in &course.stages {
        let fixed = stage.fixed_at(preset);
        let plain = plain(&fixed, preset);
        let existing = baselines.iter().position(|config| *config == plain);
        let baseline = existing.unwrap_or_else(|| {
            baselines.push(plain);
            baselines.len() - 1
        });
        for (variant, config) in [("broken", stage.broken_at(preset)), ("fixed", fixed)] {
            let row = StageTiming {
                stage: stage.number,
                id: stage.id.clone(),
                title: stage.title.clone(),
                variant: variant.to_owned(),
                phrase: phrase(stage, variant),
                ..StageTiming::default()
            };
            stages.push(Planned {
                row,
                config,
                baseline,
            });
        }
    }
    let baseline = |(index, config): (usize, RunConfig)| {
        let numbers = stages
            .iter()
            .filter(|stage| stage.baseline == index && stage.row.variant == "fixed")
            .map(|stage| stage.row.stage.to_string())
            .collect::<Vec<String>>()
            .join(", ");
        let (variant, phrase) = if index == 0 {
            (
                BASELINE.to_owned(),
                "every operation in its plain version".to_owned(),
            )
        } else {
            (
                format!("{BASELINE} for {numbers}"),
                format!("the same at the sizes of stage {numbers}"),
            )
        };
        Planned {
            row: StageTiming {
                title: "plain baseline".to_owned(),
                variant,
                phrase,
                ..StageTiming::default()
            },
            config,
            baseline: index,
        }
    };
    let mut all: Vec<Planned> = baselines.into_iter().enumerate().map(baseline).collect();
    all.append(&mut stages);
    all
}

/// Returns the baseline with the sizes of a configuration.
fn plain(sizes: &RunConfig, preset: Preset) -> RunConfig {
    let mut plain = RunConfig::preset(preset);
    for knob in KNOBS.iter().filter(|knob| knob.changes == Changes::Size) {
        // This cannot fail, because the value comes from a valid configuration.
        let _ = knob.set(&mut plain, &KnobValue::from_word(&(knob.get)(sizes)));
    }
    plain
}

/// Returns the fix of a stage for the fixed variant, or for the broken variant the first clause about the fault that needs no measured figure.
fn phrase(stage: &Stage, variant: &str) -> String {
    if variant == "fixed" {
        return stage.fix.trim().to_owned();
    }
    let marks = ['.', ':', ';'];
    let words: Vec<&str> = stage.fault.split_whitespace().collect();
    words
        .split_inclusive(|word| word.ends_with(marks))
        .map(|clause| clause.join(" ").trim_end_matches(marks).to_owned())
        .find(|clause| !clause.is_empty() && !clause.contains("{{"))
        .unwrap_or_else(|| stage.title.clone())
}

/// Measures every row in the planned rounds and calls `on_progress` with each event and its row. A configuration that does not fit into this
/// machine's memory is a row with its reason.
///
/// # Errors
/// Returns an error of `on_progress`, and an error if the engine never sent its greeting.
pub fn measure(
    runner: &mut Runner,
    course: &Course,
    plan: &StageTablePlan,
    on_progress: &mut dyn FnMut(&StageTiming, PlanProgress<'_>) -> Result<()>,
) -> Result<StageTable> {
    let mut all = planned(course, plan.preset);
    let mut subjects = Vec::new();
    // The index of each subject's row.
    let mut row_indices = Vec::new();
    for (index, planned) in all.iter_mut().enumerate() {
        let row = &mut planned.row;
        let work = EngineTask::run(&row.variant, &planned.config, plan.steps).of_stage(row.stage);
        if let Err(why) = runner.check_memory(&plan.device, &work) {
            row.reason = Some(format!("{why:#}"));
            row.missing = Some(MissingKind::Refused);
            continue;
        }
        row_indices.push(index);
        subjects.push(Subject {
            group: 0,
            device: plan.device.clone(),
            preset: plan.preset,
            version: row.name(),
            work,
        });
    }
    let report = report::measure(runner, &subjects, plan.rounds, &mut |progress| {
        let planned = &all[row_indices[progress.job.subject]];
        on_progress(&planned.row, progress)
    })?;
    Ok(table(all, report, plan))
}

/// Puts the measured figures, or the reasons why there are none, into the rows.
fn table(mut all: Vec<Planned>, report: BenchReport, plan: &StageTablePlan) -> StageTable {
    for planned in &mut all {
        let row = &mut planned.row;
        let name = row.name();
        let mut cells = report.cells.iter();
        row.cell = cells.find(|cell| cell.version == name).cloned();
        let is_about_row = |missing: &&MissingCell| {
            let version = missing.version.as_ref();
            version.is_none_or(|version| *version == name)
        };
        if row.cell.is_none()
            && row.reason.is_none()
            && let Some(missing) = report.missing.iter().find(is_about_row)
        {
            row.reason = Some(missing.reason.clone());
            row.missing = Some(missing.kind);
        }
    }
    let baselines: Vec<StageTiming> = all
        .iter()
        .filter(|planned| planned.row.stage == 0)
        .map(|planned| planned.row.clone())
        .collect();
    for planned in all.iter_mut().filter(|planned| planned.row.stage > 0) {
        match against(&planned.row, &baselines[planned.baseline]) {
            Ok(ratio) => planned.row.ratio = Some(ratio),
            Err(why) => planned.row.ratio_reason = Some(why),
        }
    }
    StageTable {
        format: FORMAT,
        machine: report.machine,
        preset: plan.preset.to_string(),
        steps: plan.steps,
        rounds: plan.rounds,
        rows: all.into_iter().map(|planned| planned.row).collect(),
        interrupted: report.interrupted,
    }
}

/// Returns the ratio of a row's speed to its baseline's, or the reason why there is none.
fn against(row: &StageTiming, baseline: &StageTiming) -> Result<Ratio, String> {
    let missing = |row: &StageTiming| row.reason.clone().unwrap_or_default();
    let cell = row.cell.as_ref().ok_or_else(|| missing(row))?;
    let base = baseline.cell.as_ref();
    cell.against(base.ok_or_else(|| format!("no baseline: {}", missing(baseline)))?)
}

impl StageTiming {
    /// Returns the name of the row, as in `stage 2 broken` or `v1 for 2`.
    pub fn name(&self) -> String {
        match self.stage {
            0 => self.variant.clone(),
            stage => format!("stage {stage} {}", self.variant),
        }
    }
}

impl StageTable {
    /// Returns the exit code. A run that failed is a failure. A row that cannot be measured on this machine is none.
    pub fn exit(&self) -> Exit {
        let lacks = |kind| self.rows.iter().any(|row| row.missing == Some(kind));
        if self.interrupted {
            Exit::Interrupted
        } else if lacks(MissingKind::Failed) {
            Exit::Failed
        } else if self.rows.iter().any(|row| row.cell.is_some()) {
            Exit::Ok
        } else if lacks(MissingKind::NoDevice) {
            Exit::NoDevice
        } else {
            Exit::Usage
        }
    }
}
