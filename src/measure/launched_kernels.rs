//! The kernels that a step of a configuration launches, with the texts that the driver compiles. A separate engine runs one step and sends the
//! texts, so that a measured run compiles as always.

use std::path::Path;

use anyhow::{Result, bail};

use super::runner::{EngineTask, Runner};
use crate::files;
use protocol::config::RunConfig;
use protocol::stats::operations::formula;
use protocol::{CompiledKernel, Event, KernelRow, StepProfile};

/// Reads the texts, the kernel with the longest time first. `runner` drives an engine that does nothing else.
///
/// # Errors
/// Returns an error if the run breaks off, or if no step could be profiled.
pub fn read_kernels(
    runner: &mut Runner,
    device: &str,
    config: &RunConfig,
) -> Result<Vec<CompiledKernel>> {
    let work = EngineTask::run("custom", config, 1);
    let mut compiled = Vec::new();
    let mut profile = None;
    runner.measure(device, &work, |line, _| {
        match &line.event {
            Event::CompiledKernel(text) => add(&mut compiled, text),
            Event::Kernels(kernels) => profile = Some(kernels.clone()),
            _ => {}
        }
        Ok(())
    })?;
    let Some(profile) = profile else {
        bail!("the engine profiled no step");
    };
    if let Some(reason) = &profile.reason {
        bail!("{reason}");
    }
    Ok(launched(&profile, &compiled))
}

/// Adds a kernel to the list. For a text that is already in the list, adds only the rows that launch it.
fn add(all: &mut Vec<CompiledKernel>, compiled: &CompiledKernel) {
    let with_text = all
        .iter_mut()
        .find(|earlier| earlier.kernel == compiled.kernel && earlier.text == compiled.text);
    match with_text {
        Some(earlier) => earlier.rows.extend(compiled.rows.iter().cloned()),
        None => all.push(compiled.clone()),
    }
}

/// Returns the texts of the kernels in a profile, each once. A function of the CPU has its formula instead of a text.
fn launched(profile: &StepProfile, compiled: &[CompiledKernel]) -> Vec<CompiledKernel> {
    let mut rows: Vec<&KernelRow> = profile.rows.iter().collect();
    rows.sort_by(|row, other| other.ms.total_cmp(&row.ms));
    let mut texts: Vec<CompiledKernel> = Vec::new();
    for row in rows {
        let mut own: Vec<CompiledKernel> = compiled
            .iter()
            .filter(|text| text.kernel == row.kernel)
            .cloned()
            .collect();
        if own.is_empty() {
            own.push(CompiledKernel {
                kernel: format!("{}, {}", row.op, row.kernel),
                text: formula(&row.op).to_owned(),
                ..CompiledKernel::default()
            });
        }
        if !texts.iter().any(|text| text.kernel == own[0].kernel) {
            texts.append(&mut own);
        }
    }
    texts
}

/// Writes each kernel of the GPU into a file `NAME.wgsl`, the second one of a name into `NAME-2.wgsl`, and all functions of the CPU with their
/// formulas into `functions.txt`. Returns the number of files.
///
/// # Errors
/// Returns an error if a file cannot be written.
pub fn write_kernels(folder: &Path, texts: &[CompiledKernel]) -> Result<usize> {
    std::fs::create_dir_all(folder)?;
    let mut files_written = 0;
    let mut functions = String::new();
    for (index, compiled) in texts.iter().enumerate() {
        if compiled.workgroup.is_empty() {
            functions += &format!("{}: {}\n", compiled.kernel, compiled.text);
            continue;
        }
        let earlier = texts[..index]
            .iter()
            .filter(|other| other.kernel == compiled.kernel);
        let name = match earlier.count() {
            0 => format!("{}.wgsl", compiled.kernel),
            count => format!("{}-{}.wgsl", compiled.kernel, count + 1),
        };
        // Some texts begin with the name of their file, which is written below for all kernels.
        let body = match compiled.text.split_once('\n') {
            Some((first, body)) if first.starts_with("// crates/") => body,
            _ => &compiled.text,
        };
        let rows = match &compiled.rows[..] {
            [] => String::new(),
            rows => format!("// launched by: {}\n", rows.join(", ")),
        };
        let content = format!("// {}\n{rows}{body}\n", compiled.file);
        files::write(&folder.join(name), content.as_bytes())?;
        files_written += 1;
    }
    if !functions.is_empty() {
        files::write(&folder.join("functions.txt"), functions.as_bytes())?;
        files_written += 1;
    }
    Ok(files_written)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(kernel: &str, op: &str, ms: f64) -> KernelRow {
        KernelRow {
            kernel: kernel.to_owned(),
            op: op.to_owned(),
            ms,
            ..KernelRow::default()
        }
    }

    /// Returns a text of the kernel `norm`, launched by these rows.
    fn norm(text: &str, rows: &[&str]) -> CompiledKernel {
        CompiledKernel {
            kernel: "norm".to_owned(),
            file: "crates/norm.rs".to_owned(),
            workgroup: "64".to_owned(),
            text: text.to_owned(),
            rows: rows.iter().map(|row| (*row).to_owned()).collect(),
        }
    }

    #[test]
    fn each_kernel_comes_once_and_the_longest_comes_first() {
        let profile = StepProfile {
            rows: vec![
                row("rope", "rope", 1.0),
                row("norm", "rms-norm", 3.0),
                row("rope", "rope", 2.0),
            ],
            ..StepProfile::default()
        };

        let texts = launched(&profile, &[norm("one", &[]), norm("two", &[])]);

        let names: Vec<&str> = texts.iter().map(|text| text.kernel.as_str()).collect();
        assert_eq!(names, ["norm", "norm", "rope, rope"]);
        assert!(texts[2].text.starts_with("(a, b)"), "{}", texts[2].text);
    }

    #[test]
    fn a_text_that_comes_again_adds_its_rows() {
        let mut texts = vec![norm("one", &["norm1 fwd"]), norm("two", &[])];

        add(&mut texts, &norm("one", &["norm2 fwd"]));

        assert_eq!(texts.len(), 2);
        assert_eq!(texts[0].rows, ["norm1 fwd", "norm2 fwd"]);
    }

    #[test]
    fn kernels_are_written_into_files_and_functions_into_one() {
        let function = CompiledKernel {
            kernel: "rope, rope".to_owned(),
            text: "(a, b)".to_owned(),
            ..CompiledKernel::default()
        };
        let first = norm("// crates/norm.rs\none", &["norm1 fwd", "norm2 fwd"]);
        let folder = tempfile::tempdir().expect("a folder");

        let count = write_kernels(folder.path(), &[first, norm("two", &[]), function]);

        assert_eq!(count.expect("written"), 3);
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect("read");
        assert_eq!(
            read("norm.wgsl"),
            "// crates/norm.rs\n// launched by: norm1 fwd, norm2 fwd\none\n"
        );
        assert_eq!(read("norm-2.wgsl"), "// crates/norm.rs\ntwo\n");
        assert_eq!(read("functions.txt"), "rope, rope: (a, b)\n");
    }
}
