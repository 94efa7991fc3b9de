//! The table of `run all`: every stage of a course, broken and fixed, and the plain baseline, each measured in turns at one size on one
//! device. A table as data: the command prints it, and whoever shows it later reads the same rows.
//!
//! Every stage, broken and fixed, and the plain baseline `v1` are subjects of one bench, so that rounds go forwards and backwards through all of
//! them. A stage with sizes of its own has a baseline with the sizes of its fixed variant, and the ratio is of times per token: a stage that
//! changes the batch is compared with the work it does. What does not fit, or what the device cannot run, is a row with its reason.

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::cell::{BenchCell, Ratio, Subject};
use super::plan::PlanProgress;
use super::report::{self, BenchReport, Machine, MissingCell, MissingKind};
use super::runner::{EngineTask, Runner};
use crate::course::{Course, Stage};
use crate::exit::Exit;
use protocol::config::{Changes, KNOBS, KnobValue, Preset, RunConfig};

/// Version of the JSON form.
pub const FORMAT: u32 = 1;
/// What the stages are compared with: every operation in its plain version.
pub const BASELINE: &str = "v1";

/// What is asked for.
#[derive(Clone, Debug)]
pub struct StageTablePlan {
    pub preset: Preset,
    pub device: String,
    /// Steps of each run.
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
    /// Baselines first, then the stages in their order, broken before fixed.
    pub rows: Vec<StageTiming>,
    /// Whether it was broken off before all was measured.
    pub interrupted: bool,
}

/// One configuration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StageTiming {
    /// 0: a baseline.
    pub stage: u32,
    /// Of the stage; empty for a baseline.
    pub id: String,
    pub title: String,
    /// `broken`, `fixed`; of a baseline its version, and the stages for whose sizes it is.
    pub variant: String,
    /// What is wrong, or what was changed, in a phrase.
    pub phrase: String,
    /// What was measured.
    pub cell: Option<BenchCell>,
    /// Why nothing was, and of what kind that is.
    pub reason: Option<String>,
    pub missing: Option<MissingKind>,
    /// Speed over that of the baseline with the same model and context; none for a baseline.
    pub ratio: Option<Ratio>,
    /// Why there is no ratio.
    pub ratio_reason: Option<String>,
    /// Files about it, where they were asked for.
    #[serde(default)]
    pub files: Vec<String>,
}

/// A row that is to be measured.
struct Planned {
    row: StageTiming,
    config: RunConfig,
    /// Its place among the baselines, or that of the one it is compared with.
    baseline: usize,
}

/// What is measured: the baseline at the preset's sizes, at those of each stage that has its own, and every stage twice.
fn planned(course: &Course, preset: Preset) -> Vec<Planned> {
    let mut baselines = vec![RunConfig::preset(preset)];
    let mut stages = Vec::new();
    for stage in &course.stages {
        let fixed = stage.fixed_at(preset);
        let plain = plain(&fixed, preset);
        let known = baselines.iter().position(|it| *it == plain);
        let baseline = known.unwrap_or(baselines.len());
        if known.is_none() {
            baselines.push(plain);
        }
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
    let baseline = |(at, config): (usize, RunConfig)| {
        let of: Vec<String> = stages
            .iter()
            .filter(|it| it.baseline == at && it.row.variant == "fixed")
            .map(|it| it.row.stage.to_string())
            .collect();
        let row = StageTiming {
            title: "plain baseline".to_owned(),
            variant: match at {
                0 => BASELINE.to_owned(),
                _ => format!("{BASELINE} for {}", of.join(", ")),
            },
            phrase: match at {
                0 => "every operation in its plain version".to_owned(),
                _ => format!("the same at the sizes of stage {}", of.join(", ")),
            },
            ..StageTiming::default()
        };
        Planned {
            row,
            config,
            baseline: at,
        }
    };
    let mut all: Vec<Planned> = baselines.into_iter().enumerate().map(baseline).collect();
    all.append(&mut stages);
    all
}

/// The baseline with the sizes of a configuration.
fn plain(like: &RunConfig, preset: Preset) -> RunConfig {
    let mut plain = RunConfig::preset(preset);
    for knob in KNOBS.iter().filter(|it| it.changes == Changes::Size) {
        // A value that a configuration already holds is one its key takes.
        let _ = knob.set(&mut plain, &KnobValue::from_word(&(knob.get)(like)));
    }
    plain
}

/// What the stage says is wrong: its first clause that needs no measured figure. Of the fixed variant, what was changed.
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

/// Measures every row in so many rounds. A configuration that does not fit into this machine's memory is a row with its reason.
/// `tell` learns which row a job belongs to.
///
/// # Errors
/// What `tell` said, or an engine that never greeted.
pub fn measure(
    runner: &mut Runner,
    course: &Course,
    plan: &StageTablePlan,
    tell: &mut dyn FnMut(&StageTiming, PlanProgress<'_>) -> Result<()>,
) -> Result<StageTable> {
    let mut all = planned(course, plan.preset);
    let mut subjects = Vec::new();
    // The row of each subject.
    let mut places = Vec::new();
    for (at, it) in all.iter_mut().enumerate() {
        let work = EngineTask::run(&it.row.variant, &it.config, plan.steps);
        let work = work.of_stage(it.row.stage);
        if let Err(why) = runner.check_memory(&plan.device, &work) {
            it.row.reason = Some(format!("{why:#}"));
            it.row.missing = Some(MissingKind::Refused);
            continue;
        }
        places.push(at);
        subjects.push(Subject {
            group: 0,
            device: plan.device.clone(),
            preset: plan.preset,
            version: it.row.name(),
            work,
        });
    }
    let rows: Vec<&StageTiming> = places.iter().map(|at| &all[*at].row).collect();
    let report = report::measure(runner, &subjects, plan.rounds, &mut |now| {
        tell(rows[now.job.subject], now)
    })?;
    Ok(table(all, report, plan))
}

/// Puts what was measured into the rows.
fn table(mut all: Vec<Planned>, report: BenchReport, plan: &StageTablePlan) -> StageTable {
    for it in &mut all {
        let name = it.row.name();
        it.row.cell = report
            .cells
            .iter()
            .find(|cell| cell.version == name)
            .cloned();
        let about = |missing: &&MissingCell| missing.version.as_ref().is_none_or(|of| *of == name);
        if it.row.cell.is_none() && it.row.reason.is_none() {
            let missing = report.missing.iter().find(about);
            it.row.reason = missing.map(|it| it.reason.clone());
            it.row.missing = missing.map(|it| it.kind);
        }
    }
    let baselines = all.iter().filter(|it| it.row.stage == 0);
    let baselines: Vec<StageTiming> = baselines.map(|it| it.row.clone()).collect();
    for it in all.iter_mut().filter(|it| it.row.stage > 0) {
        match against(&it.row, &baselines[it.baseline]) {
            Ok(ratio) => it.row.ratio = Some(ratio),
            Err(why) => it.row.ratio_reason = Some(why),
        }
    }
    StageTable {
        format: FORMAT,
        machine: report.machine,
        preset: plan.preset.to_string(),
        steps: plan.steps,
        rounds: plan.rounds,
        rows: all.into_iter().map(|it| it.row).collect(),
        interrupted: report.interrupted,
    }
}

fn against(row: &StageTiming, baseline: &StageTiming) -> Result<Ratio, String> {
    let missing = |row: &StageTiming| row.reason.clone().unwrap_or_default();
    let cell = row.cell.as_ref().ok_or_else(|| missing(row))?;
    let base = baseline.cell.as_ref();
    cell.against(base.ok_or_else(|| format!("no baseline: {}", missing(baseline)))?)
}

impl StageTiming {
    /// `stage 2 broken`, `v1 for 2`.
    pub fn name(&self) -> String {
        match self.stage {
            0 => self.variant.clone(),
            stage => format!("stage {stage} {}", self.variant),
        }
    }
}

impl StageTable {
    /// The exit code: a row that cannot be measured here is no failure, a run that broke off is.
    pub fn exit(&self) -> Exit {
        let lacks = |kind| self.rows.iter().any(|row| row.missing == Some(kind));
        match self.rows.iter().any(|row| row.cell.is_some()) {
            _ if self.interrupted => Exit::Interrupted,
            _ if lacks(MissingKind::Failed) => Exit::Failed,
            true => Exit::Ok,
            false if lacks(MissingKind::NoDevice) => Exit::NoDevice,
            false => Exit::Usage,
        }
    }
}
