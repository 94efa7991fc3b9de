//! `perflings run all`: every stage broken and fixed against the plain baseline, as one table; and in a folder, for each of them,
//! a log, its kernels and a trace. Measuring is `measure::stage_table`'s; here it is printed and written.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::args::RunArgs;
use super::bench::tables;
use super::list::ensure_new;
use super::meter::ProgressMeter;
use crate::course::journey as kept;
use crate::course::workspace::write;
use crate::measure::cell::BenchCell;
use crate::measure::plan::{MeasureEvent, PlanProgress};
use crate::measure::stage_table::{self, BASELINE, StageTable, StageTablePlan, StageTiming};
use crate::out::{self, Exit, notice, usage};
use crate::pages::report::short;
use crate::pages::sheet::{Sheet, SheetBlock, SheetTable};
use crate::pages::{csv, perfetto};
use crate::record::{Recording, RecordingWriter};
use protocol::config::Preset;

/// The word that stands for every stage.
pub(super) const ALL: &str = "all";
/// Runs of each configuration, where `--rounds` does not say.
const ROUNDS: u32 = 3;

pub(super) fn run(args: &RunArgs) -> Result<Exit> {
    for (given, flag) in [
        (args.variant.is_some(), "--as"),
        (!args.change.sets.is_empty(), "--set"),
        (args.record.is_some(), "--record"),
    ] {
        if given {
            return Err(usage(format!(
                "`run all` takes no {flag}: it runs every stage as shipped, broken and fixed, and --out DIR keeps their logs"
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
    let tell = &mut |row: &StageTiming, now: PlanProgress<'_>| {
        if let (Some(folder), MeasureEvent::Line(line, text)) = (&mut folder, now.news) {
            folder.recorder(row)?.add(line, text)?;
        }
        match now.news {
            MeasureEvent::Begins { number, of } => {
                meter.at(number - 1, of);
                meter.doing(row.name());
            }
            MeasureEvent::Line(line, _) => out::log(&line.event),
            MeasureEvent::Failed(stop) => notice(&format!("{}: {}", row.name(), stop.text)),
            MeasureEvent::Measured(_) => {}
        }
        Ok(())
    };
    let mut found = stage_table::measure(&mut runner, &context.course, &plan, tell)?;
    drop(meter);
    if let Some(folder) = folder {
        folder.finish(&mut found)?;
    }
    if let Some(state) = &context.state
        && kept::save(state, &shown(&found))?
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

/// Where files go: all rounds of a row are one log.
struct RecordingFolder {
    path: PathBuf,
    recorders: BTreeMap<String, RecordingWriter>,
}

impl RecordingFolder {
    /// A folder that is not there yet, or is empty: nobody's files are mixed with others.
    fn create(path: &Path) -> Result<Self> {
        let taken = |path: &Path| ensure_new(path).is_err();
        if taken(path) {
            let free = (2..).map(|n| PathBuf::from(format!("{}-{n}", path.display())));
            let free = free.into_iter().find(|it| !taken(it)).unwrap_or_default();
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

    fn recorder(&mut self, row: &StageTiming) -> Result<&mut RecordingWriter> {
        let name = file_name(row);
        let path = self.path.join(format!("{name}.jsonl"));
        Ok(match self.recorders.entry(name) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(free) => free.insert(RecordingWriter::create(&path)?),
        })
    }

    /// Completes the logs, and writes reports and the table.
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

/// `2-strides-broken`, `v1`, `v1-for-2-7`.
fn file_name(row: &StageTiming) -> String {
    if row.stage > 0 {
        return format!("{}-{}-{}", row.stage, row.id, row.variant);
    }
    let words = row.variant.split([' ', ',']).filter(|it| !it.is_empty());
    words.collect::<Vec<_>>().join("-")
}

/// The table for people.
fn sheet(found: &StageTable) -> Sheet {
    let mut blocks = vec![SheetBlock::Title(format!(
        "Every stage at {}",
        found.preset
    ))];
    let device = found.rows.iter().find_map(|row| row.cell.as_ref());
    let device = device.map_or(String::new(), |it| format!(" on {}", it.device.name));
    blocks.push(SheetBlock::Intro(tables::how(
        found.steps,
        found.rounds,
        &device,
        &found.machine,
    )));
    blocks.push(SheetBlock::Intro(format!(
        "samples/s: the median step, and where it lies over the runs. ratio: tokens/s over those of the plain baseline ({BASELINE}) with \
         the same model and context, so that a stage with sizes of its own is compared with what they cost."
    )));
    let cells = found.rows.iter().filter_map(|row| row.cell.as_ref());
    blocks.extend(tables::disturbances(found.interrupted, cells));
    blocks.push(SheetBlock::Heading("Stages".to_owned()));
    blocks.push(SheetBlock::Table(table(found)));
    for row in &found.rows {
        let missing = row.reason.iter().map(|why| format!("not measured: {why}"));
        let why = missing.chain(row.cell.iter().flat_map(tables::reasons));
        blocks.extend(why.map(|why| SheetBlock::Remark(format!("{}: {why}", row.name()))));
    }
    Sheet(blocks)
}

fn measured(found: &StageTable) -> impl Iterator<Item = &StageTiming> {
    found.rows.iter().filter(|row| row.cell.is_some())
}

/// The rows that were measured.
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
                cell(row, &|it| Some(short(it.loss_first)))
            }),
            ("last", &|row| cell(row, &|it| Some(short(it.loss_last)))),
            ("samples/s", &|row| cell(row, &tables::samples)),
            ("ratio", &|row| {
                let ratio = row.ratio.map(tables::ratio);
                ratio.unwrap_or_else(|| if row.stage == 0 { "1" } else { "-" }.to_owned())
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

/// What the ending shows of it.
fn shown(found: &StageTable) -> kept::LastJourney {
    let (head, rows) = table(found).cells();
    let stages = measured(found).map(|row| row.stage);
    let rows = stages.zip(rows);
    let rows = rows
        .map(|(stage, cells)| kept::JourneyRow { stage, cells })
        .collect();
    let device = found.rows.iter().find_map(|row| row.cell.as_ref());
    kept::LastJourney {
        device: device.map_or_else(String::new, |it| it.device.name.clone()),
        preset: found.preset.clone(),
        date: found.machine.date.clone(),
        interrupted: found.interrupted,
        head,
        rows,
        days: 0,
    }
}
