//! The texts of the kernels that a run compiles. cubecl writes each text into its log before the driver gets it, if the log is turned on before
//! a device is opened. Drivers then check more, so an engine that measures leaves the log off. For our own WGSL we also know which rows of a
//! profile launch it.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use burn::cubecl::config::{CubeClRuntimeConfig, RuntimeConfig};

use protocol::CompiledKernel;
use protocol::stats::operations;
use tiny_llama::ops::gpu::wgsl;

/// The target under which cubecl logs compilations.
pub(crate) const TARGET: &str = "cubecl::compilation";

/// Makes cubecl log the texts. It has no effect once a device is open.
pub(crate) fn log_texts() {
    let full = "[compilation.logger]\nlevel = \"full\"\nlog = \"info\"\n";
    if let Ok(config) = toml::from_str(full) {
        CubeClRuntimeConfig::try_set(config);
    }
}

/// Sends each text of ours once for each row of the profiled step that launches it, with the row's name.
pub(crate) fn send_rows(send: impl Fn(CompiledKernel) + Send + Sync + 'static) {
    let sent = Mutex::new(BTreeSet::new());
    wgsl::read_launches(Box::new(move |row, kernel, hash, text| {
        let name = operations::name(row.op, row.scope.part, row.phase.into_str());
        let mut sent_rows = sent.lock().unwrap_or_else(PoisonError::into_inner);
        if sent_rows.insert((name.clone(), hash)) {
            send(CompiledKernel {
                rows: vec![name],
                ..compiled(kernel, &text())
            });
        }
    }));
}

/// Reads a kernel from a message of the log: its name from the line `name: …`, and its text from between the lines with three backquotes. Returns
/// `None` for any other message.
pub(crate) fn read(message: &str) -> Option<CompiledKernel> {
    let name = message
        .lines()
        .find_map(|line| line.strip_prefix("name: "))?;
    let (_, fenced) = message.split_once("\n```")?;
    let (_language, rest) = fenced.split_once('\n')?;
    let (text, _) = rest.rsplit_once("\n```")?;
    Some(compiled(name, text))
}

/// Describes a compiled kernel. `name` may be a path with types.
fn compiled(name: &str, text: &str) -> CompiledKernel {
    let after = text.split_once("@workgroup_size(");
    let workgroup = after.and_then(|(_, rest)| rest.split_once(')'));
    CompiledKernel {
        kernel: short_name(name),
        file: source_file(name, text),
        workgroup: workgroup.map_or_else(String::new, |(size, _)| size.to_owned()),
        text: text.trim_end().to_owned(),
        rows: Vec::new(),
    }
}

/// Returns `kernel_name` for `path::to::kernel_name<f32, …>`.
pub(crate) fn short_name(kernel: &str) -> String {
    let path = kernel.split(['<', '(']).next().unwrap_or(kernel);
    path.rsplit("::").next().unwrap_or(path).to_owned()
}

/// Returns the file that the kernel is written in, or the library that it comes from. Our WGSL names its file in its first line; a kernel that
/// is a function has the path of its file in its name.
fn source_file(name: &str, text: &str) -> String {
    if let Some(rest) = text.strip_prefix("// crates/") {
        return format!("crates/{}", rest.lines().next().unwrap_or_default());
    }
    let path = name.split(['<', '(']).next().unwrap_or(name).trim();
    let mut modules: Vec<&str> = path.split("::").collect();
    // The last two are the function, and the type that cubecl makes of it.
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
        let message = "[START_KERNEL_COMPILATION]\n\
                       name: tiny_llama::ops::rope::fused_gpu::rope_kernel::RopeKernel<\n    f32,\n>\nid: 3\n\
                       source:\n```wgsl\n@compute @workgroup_size(64, 1, 1)\nfn main() {}\n```\n[END_KERNEL_COMPILATION]\n";

        let found = read(message).expect("a kernel");

        assert_eq!(found.file, "crates/tiny-llama/src/ops/rope/fused_gpu.rs");
        assert_eq!(found.workgroup, "64, 1, 1");
        assert_eq!(
            found.text,
            "@compute @workgroup_size(64, 1, 1)\nfn main() {}"
        );
        assert_eq!(read("[Compiling kernel] x"), None);
    }

    #[test]
    fn a_kernel_names_its_file_or_its_library() {
        let ours = "// crates/tiny-llama/src/ops/x/x.wgsl\nfn main() {}";
        assert_eq!(source_file("x", ours), "crates/tiny-llama/src/ops/x/x.wgsl");
        assert_eq!(
            source_file("cubek_matmul::a::b::C<f32>", ""),
            "the library cubek_matmul"
        );
    }
}
