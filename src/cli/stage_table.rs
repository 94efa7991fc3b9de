//! `perflings run all`: measures every stage, broken and fixed, and prints a table that compares them with the plain baseline. With
//! `--out DIR` it also writes a log, the kernels and a trace for each row. `measure::stage_table` makes the runs.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::args::training::RunArgs;
use super::bench::tables;
use super::list::ensure_new;
use super::meter::ProgressMeter;
use crate::course::journey::{self, JourneyRow, LastJourney};
use crate::course::workspace::write;
use crate::measure::cell::BenchCell;
use crate::measure::plan::{MeasureEvent, PlanProgress};
use crate::measure::stage_table::{self, BASELINE, StageTable, StageTablePlan, StageTiming};
use crate::out::{self, Exit, notice, usage};
use crate::pages::report::loss_in_words;
use crate::pages::sheet::{Sheet, SheetBlock, SheetTable};
use crate::pages::{csv, perfetto};
use crate::record::{Recording, RecordingWriter};
use protocol::config::Preset;

/// The word for every stage.
pub(super) const ALL: &str = "all";
/// The number of runs of each configuration, unless `--rounds` names another.
const ROUNDS: u32 = 3;

pub(super) fn run(args: &RunArgs) -> Result<Exit> {
    for (given, flag) in [
        (args.variant.is_some(), "--as"),
        (!args.change.sets.is_empty(), "--set"),
        (args.record.is_some(), "--record"),
    ] {
        if given {
            return Err(usage(format!(
                "`run all` takes no {flag}: it runs every stage as shipped, broken and fixed, \
                 and --out DIR keeps their logs"
            )));
        }
    }
    let context = args.course.open()?;
    let mut folder = args
        .out
        .as_deref()
        .map(RecordingFolder::create)
        .transpose()?;
    let mut runner = args.engine.runner(None)?;
    let plan = StageTablePlan {
        preset: args.change.preset.unwrap_or(Preset::Tiny),
        device: args.engine.device.clone(),
        steps: args.steps,
        rounds: args.rounds.unwrap_or(ROUNDS),
    };
    let meter = ProgressMeter::begin();
    let on_progress = &mut |row: &StageTiming, now: PlanProgress<'_>| {
        if let (Some(folder), MeasureEvent::Line(line, text)) = (&mut folder, now.event) {
            folder.recorder(row)?.add(line, text)?;
        }
        match now.event {
            MeasureEvent::Begins { number, of } => {
                meter.set_done(number - 1, of);
                meter.set_work(row.name());
            }
            MeasureEvent::Line(line, _) => out::log(&line.event),
            MeasureEvent::Failed(stop) => notice(&format!("{}: {}", row.name(), stop.text)),
            MeasureEvent::Measured(_) => {}
        }
        Ok(())
    };
    let mut found = stage_table::measure(&mut runner, &context.course, &plan, on_progress)?;
    drop(meter);
    if let Some(folder) = folder {
        folder.finish(&mut found)?;
    }
    if let Some(state) = &context.state
        && journey::save(state, &last_journey(&found))?
    {
        notice("the workshop's ending shows this table, too (key J).");
    }
    out::json_or_text(args.json, &found, || {
        if args.markdown {
            sheet(&found).markdown()
        } else {
            sheet(&found).text()
        }
    })?;
    Ok(found.exit())
}

/// The folder of `--out`. All runs of a row are recorded in one log.
struct RecordingFolder {
    path: PathBuf,
    /// The open logs, by `file_name`.
    recorders: BTreeMap<String, RecordingWriter>,
}

impl RecordingFolder {
    /// Creates the folder.
    ///
    /// # Errors
    /// If the folder is not empty, so that its files are not mixed with others; or if it cannot be created.
    fn create(path: &Path) -> Result<Self> {
        let is_taken = |path: &Path| ensure_new(path).is_err();
        if is_taken(path) {
            let free = (2..)
                .map(|number| PathBuf::from(format!("{}-{number}", path.display())))
                .find(|path| !is_taken(path))
                .unwrap_or_default();
            return Err(usage(format!(
                "--out: {} exists and is not empty; write --out {}, or remove it",
                path.display(),
                free.display()
            )));
        }
        std::fs::create_dir_all(path)
            .map_err(|error| usage(format!("--out: cannot make {}: {error}", path.display())))?;
        Ok(Self {
            path: path.to_owned(),
            recorders: BTreeMap::new(),
        })
    }

    /// Returns the log of a row, and creates it for the first run.
    fn recorder(&mut self, row: &StageTiming) -> Result<&mut RecordingWriter> {
        let name = file_name(row);
        let path = self.path.join(format!("{name}.jsonl"));
        Ok(match self.recorders.entry(name) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(free) => free.insert(RecordingWriter::create(&path)?),
        })
    }

    /// Completes the logs, and writes the kernels and the trace of each row, and the table. Adds the names of the files to the rows.
    fn finish(self, found: &mut StageTable) -> Result<()> {
        for (name, recorder) in self.recorders {
            let log = recorder.finish()?.path;
            let recording = Recording::read(&log)?;
            let files = [".jsonl", "-kernels.csv", ".pftrace"].map(|end| format!("{name}{end}"));
            let [_, kernels, trace] = &files;
            write(&self.path.join(kernels), csv::kernels(recording.iter()))?;
            let bytes = perfetto::trace(recording.iter(), &recording.badge());
            write(&self.path.join(trace), bytes)?;
            if let Some(row) = found.rows.iter_mut().find(|row| file_name(row) == name) {
                row.files = files.into();
            }
        }
        out::file(
            &self.path.join("journey.json"),
            serde_json::to_string(found)?.as_bytes(),
        )?;
        out::file(
            &self.path.join("journey.md"),
            sheet(found).markdown().as_bytes(),
        )
    }
}

/// Returns the name of a row's files without their endings: `2-strides-broken`, `v1`, or `v1-for-2-7` for the baseline of two stages.
fn file_name(row: &StageTiming) -> String {
    if row.stage > 0 {
        return format!("{}-{}-{}", row.stage, row.id, row.variant);
    }
    let words: Vec<&str> = row
        .variant
        .split([' ', ','])
        .filter(|word| !word.is_empty())
        .collect();
    words.join("-")
}

/// Returns the table as a page for people.
fn sheet(found: &StageTable) -> Sheet {
    let mut blocks = vec![SheetBlock::Title(format!(
        "Every stage at {}",
        found.preset
    ))];
    let on_device = match device_name(found) {
        Some(name) => format!(" on {name}"),
        None => String::new(),
    };
    blocks.push(SheetBlock::Intro(tables::how(
        found.steps,
        found.rounds,
        &on_device,
        &found.machine,
    )));
    blocks.push(SheetBlock::Intro(format!(
        "samples/s: from the median step, with its range over the runs. \
         ratio: tokens/s over the tokens/s of the plain baseline ({BASELINE}) \
         at the model size and context of the stage."
    )));
    let cells = found.rows.iter().filter_map(|row| row.cell.as_ref());
    blocks.extend(tables::disturbances(found.interrupted, cells));
    blocks.push(SheetBlock::Heading("Stages".to_owned()));
    blocks.push(SheetBlock::Table(table(found)));
    for row in &found.rows {
        let missing = row.reason.iter().map(|why| format!("not measured: {why}"));
        for reason in missing.chain(row.cell.iter().flat_map(tables::reasons)) {
            blocks.push(SheetBlock::Remark(format!("{}: {reason}", row.name())));
        }
    }
    Sheet(blocks)
}

/// Returns the name of the device of the first measured row; `None` if nothing was measured.
fn device_name(found: &StageTable) -> Option<&str> {
    let cell = found.rows.iter().find_map(|row| row.cell.as_ref())?;
    Some(&cell.device.name)
}

fn measured(found: &StageTable) -> impl Iterator<Item = &StageTiming> {
    found.rows.iter().filter(|row| row.cell.is_some())
}

/// Returns the table of the measured rows.
fn table(found: &StageTable) -> SheetTable {
    let cell = |row: &&StageTiming, figure: &dyn Fn(&BenchCell) -> Option<String>| {
        tables::or_dash(row.cell.as_ref().and_then(figure))
    };
    SheetTable::filled(
        measured(found),
        &[
            ("stage", &|row| match row.stage {
                0 => row.variant.clone(),
                stage => format!("{stage} {}", row.variant),
            }),
            ("first loss", &|row| {
                cell(row, &|cell| Some(loss_in_words(cell.loss_first)))
            }),
            ("last", &|row| {
                cell(row, &|cell| Some(loss_in_words(cell.loss_last)))
            }),
            ("samples/s", &|row| cell(row, &tables::samples)),
            ("ratio", &|row| match row.ratio {
                Some(ratio) => tables::ratio(ratio),
                None if row.stage == 0 => "1".to_owned(),
                None => "-".to_owned(),
            }),
            ("launches", &|row| cell(row, &tables::launches)),
            ("device ms", &|row| cell(row, &tables::device_ms)),
            ("memory", &|row| cell(row, &tables::memory)),
            ("trained", &|row| cell(row, &tables::trained)),
            ("top kernel", &|row| cell(row, &tables::top_kernel)),
            ("what it is", &|row| row.phrase.clone()),
        ],
    )
}

/// Returns the table in the form that is saved for the summary on the workshop's screen.
fn last_journey(found: &StageTable) -> LastJourney {
    let SheetTable { head, rows } = table(found);
    LastJourney {
        rows: measured(found)
            .zip(rows)
            .map(|(timing, cells)| JourneyRow {
                stage: timing.stage,
                cells,
            })
            .collect(),
        device: device_name(found).unwrap_or_default().to_owned(),
        preset: found.preset.clone(),
        date: found.machine.date.clone(),
        interrupted: found.interrupted,
        head,
        days: 0,
    }
}
