//! `perflings export` converts a recording for other tools, or writes the kernels of a configuration. `perflings report` writes a page about
//! a recording, or about what the learner did.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::args::recordings::{ExportArgs, ExportFormat, ExportTable, ReportArgs};
use super::exercise::detective::refuse_as_file;
use super::saved::progress_of;
use super::variant::{changed, named};
use crate::files;
use crate::measure::launched_kernels::{read_kernels, write_kernels};
use crate::measure::runner::Runner;
use crate::out::{self, Exit, notice, usage};
use crate::pages::{csv, html, perfetto, report::RunReport};
use crate::record::Recording;
use crate::run_trace;
use crate::shell::runs;
use gputrace::summary::summary;
use gputrace::write::rocprof_csv;

pub(super) fn export(args: &ExportArgs) -> Result<Exit> {
    if let Some(folder) = &args.kernels {
        return export_kernels(args, folder);
    }
    let (Some(file), Some(format)) = (&args.file, args.format) else {
        return Err(usage(
            "name a recording and a --format, or a folder with --kernels",
        ));
    };
    refuse_as_file(file, &args.course)?;
    refuse_to_replace(file, args.out.as_deref())?;
    let recording = open_recording(file)?;
    let trace = || {
        let source = file.display().to_string();
        run_trace::stream(recording.iter(), &source, &recording.badge())
    };
    let bytes = match (format, args.table) {
        (ExportFormat::Perfetto, _) => perfetto::trace(recording.iter(), &recording.badge()),
        (ExportFormat::KernelTrace, _) => rocprof_csv::kernel_trace(trace().counted()).into_bytes(),
        (ExportFormat::KernelStats, _) => {
            rocprof_csv::kernel_stats(&summary(&trace())).into_bytes()
        }
        (ExportFormat::Csv, ExportTable::Steps) => csv::steps(recording.iter()).into_bytes(),
        (ExportFormat::Csv, ExportTable::Kernels) => csv::kernels(recording.iter()).into_bytes(),
        (ExportFormat::Csv, ExportTable::Gradients) => {
            csv::gradients(recording.iter()).into_bytes()
        }
    };
    match &args.out {
        Some(path) => out::file(path, &bytes)?,
        None if format == ExportFormat::Perfetto && out::is_terminal() => {
            return Err(usage(
                "a trace is binary; write it with --out run.pftrace and open it in ui.perfetto.dev",
            ));
        }
        None => out::bytes(&bytes)?,
    }
    Ok(Exit::Ok)
}

/// The error for a file that is no configuration.
const NO_CONFIGURATION: &str = "--kernels takes a stage variant such as 5:fixed, \
    a version such as small:v3 or a configuration file";

/// Writes the texts of the kernels that a step of a configuration launches into a folder.
fn export_kernels(args: &ExportArgs, folder: &Path) -> Result<Exit> {
    let context = args.course.load()?;
    let named = match &args.file {
        Some(file) => {
            let found = named(&file.display().to_string(), &context, &args.change);
            let is_toml = file.extension().is_some_and(|ending| ending == "toml");
            if file.is_file() && !is_toml {
                found.context(NO_CONFIGURATION)?
            } else {
                found?
            }
        }
        None => {
            let stage = progress_of(&context)
                .current
                .and_then(|id| context.course.stage_by_id(&id))
                .or(context.course.stages.first())
                .ok_or_else(|| usage("name what to run, such as 4:fixed"))?;
            changed(
                context.learner_config(stage, args.change.preset)?.0,
                &args.change,
            )?
        }
    };
    let mut runner = Runner::new(args.engine.command()?.with_kernel_texts(), None)?;
    let texts = read_kernels(&mut runner, &args.engine.device, &named.config)?;
    let files = write_kernels(folder, &texts)
        .with_context(|| format!("Failed to write to {}", folder.display()))?;
    let name = &named.name;
    let shown = folder.display();
    let has_texts = texts.iter().any(|kernel| !kernel.workgroup.is_empty());
    notice(&if has_texts {
        format!("{files} files with the kernels of a step of {name} are in {shown}")
    } else {
        format!(
            "the CPU has no kernel texts; \
             functions.txt in {shown} has the formulas of a step of {name}"
        )
    });
    Ok(Exit::Ok)
}

pub(super) fn report(args: &ReportArgs) -> Result<Exit> {
    let sheet = match &args.file {
        Some(file) => {
            refuse_as_file(file, &args.course)?;
            refuse_to_replace(file, args.out.as_deref())?;
            RunReport::from_story(&open_recording(file)?.story).sheet()
        }
        None => {
            let context = args.course.open()?;
            runs::learner_sheet(&context, &progress_of(&context), None)?
        }
    };
    let is_html = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "html");
    let text = if args.html || args.out.as_ref().is_some_and(is_html) {
        html::page(&sheet)
    } else {
        sheet.markdown()
    };
    match &args.out {
        Some(path) => out::file(path, text.as_bytes())?,
        None => out::result(text.trim_end())?,
    }
    Ok(Exit::Ok)
}

/// Refuses an output file `out` that is the file to `read`.
fn refuse_to_replace(read: &Path, out: Option<&Path>) -> Result<()> {
    match out {
        Some(out) if files::is_same(read, out) => Err(usage(format!(
            "--out {}: this is the recording that is read; name another file",
            out.display()
        ))),
        _ => Ok(()),
    }
}

/// Reads a recording, and prints a notice if it is incomplete.
pub(super) fn open_recording(path: &Path) -> Result<Recording> {
    let recording = Recording::read(path)?;
    if let Some(text) = &recording.notice {
        notice(text);
    }
    Ok(recording)
}
