//! The texts of the kernels that a run compiles. cubecl writes each into its log before the driver gets it, if asked to
//! before a device is opened; drivers then check more, so an engine that measures does not ask. For our own WGSL we also know which rows
//! of a profile launch it.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use burn::cubecl::config::{CubeClRuntimeConfig, RuntimeConfig};

use protocol::CompiledKernel;
use protocol::stats::operations;
use tiny_llama::ops::gpu::wgsl;

/// Where cubecl's log speaks of compilation.
pub(crate) const TARGET: &str = "cubecl::compilation";

/// Asks cubecl for the texts. No effect once a device is open.
pub(crate) fn ask() {
    let full = "[compilation.logger]\nlevel = \"full\"\nlog = \"info\"\n";
    if let Ok(config) = toml::from_str(full) {
        CubeClRuntimeConfig::try_set(config);
    }
}

/// Gives our texts to `send` once more for each row of the profiled step that launches them, with the row's name.
pub(crate) fn send_rows(send: impl Fn(CompiledKernel) + Send + Sync + 'static) {
    let sent = Mutex::new(BTreeSet::new());
    wgsl::read_launches(Box::new(move |row, kernel, hash, text| {
        let name = operations::name(row.op, row.scope.part, row.phase.into_str());
        let mut sent = sent.lock().unwrap_or_else(PoisonError::into_inner);
        if sent.insert((name.clone(), hash)) {
            let rows = vec![name];
            let compiled = compiled(kernel, &text());
            send(CompiledKernel { rows, ..compiled });
        }
    }));
}

/// The kernel in a message of the log: `name: …`, and the source between a line that begins with three backquotes and one
/// that is three backquotes.
pub(crate) fn read(message: &str) -> Option<CompiledKernel> {
    let name = message.lines().find_map(|it| it.strip_prefix("name: "))?;
    let (_, source) = message.split_once("\n```")?;
    let (_, source) = source.split_once('\n')?;
    let (text, _) = source.rsplit_once("\n```")?;
    Some(compiled(name, text))
}

/// A kernel by its name, which may be a path with types.
fn compiled(name: &str, text: &str) -> CompiledKernel {
    let workgroup = text.split_once("@workgroup_size(");
    let workgroup = workgroup.and_then(|(_, rest)| Some(rest.split_once(')')?.0.to_owned()));
    CompiledKernel {
        kernel: short(name),
        file: file(name, text),
        workgroup: workgroup.unwrap_or_default(),
        text: text.trim_end().to_owned(),
        rows: Vec::new(),
    }
}

/// `path::to::kernel_name<f32, …>` as `kernel_name`.
pub(crate) fn short(kernel: &str) -> String {
    let plain = kernel.split(['<', '(']).next().unwrap_or(kernel);
    plain.rsplit("::").next().unwrap_or(plain).to_owned()
}

/// Where the kernel is written: a file of ours names itself in its first line, and a function's path begins with its file's.
fn file(name: &str, text: &str) -> String {
    if let Some(rest) = text.strip_prefix("// crates/") {
        return format!("crates/{}", rest.lines().next().unwrap_or_default());
    }
    let path = name.split(['<', '(']).next().unwrap_or(name).trim();
    let mut modules: Vec<&str> = path.split("::").collect();
    // The function, and the type that cubecl makes of it.
    modules.truncate(modules.len().saturating_sub(2));
    match modules.split_first() {
        Some((&"tiny_llama", rest)) => format!("crates/tiny-llama/src/{}.rs", rest.join("/")),
        Some((library, _)) => format!("the library {library}"),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_is_read_from_the_log() {
        let message = "[START_KERNEL_COMPILATION]\nname: tiny_llama::ops::rope::fused_gpu::rope_kernel::RopeKernel<\n    f32,\n>\nid: 3\n\
                       source:\n```wgsl\n@compute @workgroup_size(64, 1, 1)\nfn main() {}\n```\n[END_KERNEL_COMPILATION]\n";
        let found = read(message).expect("a kernel");
        assert_eq!(found.file, "crates/tiny-llama/src/ops/rope/fused_gpu.rs");
        assert_eq!(found.workgroup, "64, 1, 1");
        assert_eq!(
            found.text,
            "@compute @workgroup_size(64, 1, 1)\nfn main() {}"
        );
        assert_eq!(read("[Compiling kernel] x"), None);
        let ours = "// crates/tiny-llama/src/ops/x/x.wgsl\nfn main() {}";
        assert_eq!(file("x", ours), "crates/tiny-llama/src/ops/x/x.wgsl");
        assert_eq!(
            file("cubek_matmul::a::b::C<f32>", ""),
            "the library cubek_matmul"
        );
    }
}
