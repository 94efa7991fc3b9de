//! The kernels that a step of a configuration launches, with the texts that the driver gets. A separate engine runs one step and sends
//! them, so that reading them does not change how a measured run compiles.

use std::path::Path;

use anyhow::{Result, bail};

use super::runner::{EngineTask, Runner};
use crate::files;
use protocol::config::RunConfig;
use protocol::stats::operations::formula;
use protocol::{CompiledKernel, Event, StepProfile};

/// Reads the texts, the kernel with the longest time first. `runner` drives an engine that was started for this.
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

/// Adds a kernel. If its text is already there, adds only the rows that launch it.
fn add(all: &mut Vec<CompiledKernel>, compiled: &CompiledKernel) {
    let known = all
        .iter_mut()
        .find(|other| other.kernel == compiled.kernel && other.text == compiled.text);
    match known {
        Some(other) => other.rows.extend(compiled.rows.iter().cloned()),
        None => all.push(compiled.clone()),
    }
}

/// Returns the texts of the kernels in a profile. A function of the CPU has no text, so it gets its formula.
fn launched(profile: &StepProfile, compiled: &[CompiledKernel]) -> Vec<CompiledKernel> {
    let mut rows: Vec<_> = profile.rows.iter().collect();
    rows.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    let mut texts: Vec<CompiledKernel> = Vec::new();
    for row in rows {
        let known = |name: &str| texts.iter().any(|text| text.kernel == name);
        let mut own = compiled
            .iter()
            .filter(|text| text.kernel == row.kernel)
            .peekable();
        let function = format!("{}, {}", row.op, row.kernel);
        match own.peek() {
            Some(_) if known(&row.kernel) => {}
            Some(_) => texts.extend(own.cloned()),
            None if known(&function) => {}
            None => texts.push(CompiledKernel {
                kernel: function,
                text: formula(&row.op).to_owned(),
                ..CompiledKernel::default()
            }),
        }
    }
    texts
}

/// Writes each kernel of the GPU into a file `NAME.wgsl`, with a number if the name is taken, and all functions of the CPU with their
/// formulas into `functions.txt`. Returns the number of files.
///
/// # Errors
/// Returns an error if a file cannot be written.
pub fn write_kernels(folder: &Path, texts: &[CompiledKernel]) -> Result<usize> {
    std::fs::create_dir_all(folder)?;
    let mut written = 0;
    let mut functions = String::new();
    for (at, compiled) in texts.iter().enumerate() {
        if compiled.workgroup.is_empty() {
            functions += &format!("{}: {}\n", compiled.kernel, compiled.text);
            continue;
        }
        let earlier = texts[..at]
            .iter()
            .filter(|other| other.kernel == compiled.kernel);
        let name = match earlier.count() {
            0 => format!("{}.wgsl", compiled.kernel),
            before => format!("{}-{}.wgsl", compiled.kernel, before + 1),
        };
        // The text of our own kernels begins with the name of their file, which is written below for all kernels.
        let body = match compiled.text.strip_prefix("// crates/") {
            Some(named) => named.split_once('\n').map(|(_, body)| body),
            None => None,
        };
        let body = body.unwrap_or(&compiled.text);
        let rows = match &compiled.rows[..] {
            [] => String::new(),
            rows => format!("// launched by: {}\n", rows.join(", ")),
        };
        let content = format!("// {}\n{rows}{body}\n", compiled.file);
        files::write(&folder.join(name), content.as_bytes())?;
        written += 1;
    }
    if !functions.is_empty() {
        files::write(&folder.join("functions.txt"), functions.as_bytes())?;
        written += 1;
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::KernelRow;

    #[test]
    fn each_kernel_is_written_once_and_the_longest_comes_first() {
        let row = |kernel: &str, op: &str, ms: f64| KernelRow {
            kernel: kernel.to_owned(),
            op: op.to_owned(),
            ms,
            ..KernelRow::default()
        };
        let profile = StepProfile {
            rows: vec![
                row("rope", "rope", 1.0),
                row("norm", "rms-norm", 3.0),
                row("rope", "rope", 2.0),
            ],
            ..StepProfile::default()
        };
        let text = |text: &str| CompiledKernel {
            kernel: "norm".to_owned(),
            file: "crates/norm.rs".to_owned(),
            workgroup: "64".to_owned(),
            text: text.to_owned(),
            rows: Vec::new(),
        };
        let mut all = Vec::new();
        add(&mut all, &text("one"));
        add(&mut all, &text("two"));
        for row in ["norm1 fwd", "norm2 fwd"] {
            let rows = vec![row.to_owned()];
            add(
                &mut all,
                &CompiledKernel {
                    rows,
                    ..text("one")
                },
            );
        }
        let texts = launched(&profile, &all);
        let names: Vec<&str> = texts.iter().map(|text| text.kernel.as_str()).collect();
        assert_eq!(names, ["norm", "norm", "rope, rope"]);
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(write_kernels(folder.path(), &texts).expect("written"), 3);
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect("read");
        let first = "// crates/norm.rs\n// launched by: norm1 fwd, norm2 fwd\none\n";
        assert_eq!(read("norm.wgsl"), first);
        assert_eq!(read("norm-2.wgsl"), "// crates/norm.rs\ntwo\n");
        assert!(read("functions.txt").starts_with("rope, rope: (a, b)"));
    }
}
