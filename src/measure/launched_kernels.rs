//! The kernels that a step of a configuration launches, with the texts that the driver gets: an engine of its own runs one
//! step and sends them, so that no run that is measured compiles differently.

use std::path::Path;

use anyhow::{Result, bail};

use super::runner::{EngineTask, Runner};
use crate::files;
use protocol::config::RunConfig;
use protocol::stats::operations::formula;
use protocol::{CompiledKernel, Event, StepProfile};

/// Reads the texts, those that take the longest first. `runner` drives an engine that was started for them.
///
/// # Errors
/// When the run breaks off, or no step could be profiled.
pub fn read_kernels(
    runner: &mut Runner,
    device: &str,
    config: &RunConfig,
) -> Result<Vec<CompiledKernel>> {
    let work = EngineTask::run("custom", config, 1);
    let (mut compiled, mut profile) = (Vec::new(), None);
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

/// Adds a text, or to the same text the rows that launch it.
fn add(all: &mut Vec<CompiledKernel>, it: &CompiledKernel) {
    let same = |other: &&mut CompiledKernel| other.kernel == it.kernel && other.text == it.text;
    match all.iter_mut().find(same) {
        Some(other) => other.rows.extend(it.rows.iter().cloned()),
        None => all.push(it.clone()),
    }
}

/// The texts of the kernels in a profile. A function of the CPU has no text: its formula stands for it.
fn launched(profile: &StepProfile, compiled: &[CompiledKernel]) -> Vec<CompiledKernel> {
    let mut rows: Vec<_> = profile.rows.iter().collect();
    rows.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    let mut texts: Vec<CompiledKernel> = Vec::new();
    for row in rows {
        let known = |name: &str| texts.iter().any(|it| it.kernel == name);
        let mut own = compiled
            .iter()
            .filter(|it| it.kernel == row.kernel)
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

/// Writes each kernel into a file of its own: those of the GPU as `NAME.wgsl`, further ones of the same name numbered, and all
/// functions of the CPU with their formulas into `functions.txt`. The result is the number of files.
///
/// # Errors
/// When a file cannot be written.
pub fn write_kernels(folder: &Path, texts: &[CompiledKernel]) -> Result<usize> {
    std::fs::create_dir_all(folder)?;
    let mut written = 0;
    let mut functions = String::new();
    for (at, it) in texts.iter().enumerate() {
        if it.workgroup.is_empty() {
            functions += &format!("{}: {}\n", it.kernel, it.text);
            continue;
        }
        let same = |other: &&CompiledKernel| other.kernel == it.kernel;
        let name = match texts[..at].iter().filter(same).count() {
            0 => format!("{}.wgsl", it.kernel),
            before => format!("{}-{}.wgsl", it.kernel, before + 1),
        };
        // A file of ours names itself.
        let named = it
            .text
            .strip_prefix("// crates/")
            .and_then(|it| it.split_once('\n'));
        let text = named.map_or(it.text.as_str(), |(_, text)| text);
        let rows = match &it.rows[..] {
            [] => String::new(),
            rows => format!("// launched by: {}\n", rows.join(", ")),
        };
        let text = format!("// {}\n{rows}{text}\n", it.file);
        files::write(&folder.join(name), text.as_bytes())?;
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
        let names: Vec<&str> = texts.iter().map(|it| it.kernel.as_str()).collect();
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
