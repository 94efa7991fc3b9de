//! Hands kernels that passed their check to the running model, at the step boundary at which commands are read.

use std::collections::BTreeMap;

use super::live;
use crate::protocol::KernelSwap;
use crate::template;

/// Lets the kernels take over their part; none at all gives the part its own back. The last good ones stay where these
/// do not fit.
///
/// # Errors
/// When the part is unknown, or a text would not compile with the sizes that the part has.
pub fn adopt(swap: &KernelSwap) -> Result<(), String> {
    let sizes = live::sizes(&swap.part)?.iter();
    let sizes: BTreeMap<String, u64> = sizes.map(|name| ((*name).to_owned(), 64)).collect();
    if swap.kernels.is_empty() {
        live::clear(Some(&swap.part));
        return Ok(());
    }
    let mut kernels = Vec::new();
    for kernel in &swap.kernels {
        let filled = template::fill(&kernel.text, &sizes)
            .map_err(|unknown| format!("`{}` is no size of `{}`", unknown.name, swap.part))?;
        naga::front::wgsl::parse_str(&filled.text).map_err(|error| error.message().to_owned())?;
        kernels.push((kernel.text.clone(), kernel.workgroup));
    }
    live::install(&swap.part, &swap.exercise, &kernels, &swap.sizes)
}

/// Why the kernels of a part do not compute for the model although they were let in; asked after a step. None: they do.
pub fn why_not(part: &str, on_cpu: bool) -> Option<String> {
    let Some(live) = live::of(part) else {
        return Some("it was taken out again".to_owned());
    };
    if live.launches() > 0 {
        return None;
    }
    Some(live.refused().unwrap_or_else(|| {
        if on_cpu {
            "this run computes on the CPU, and WGSL runs on a GPU or on vulkan-cpu".to_owned()
        } else {
            format!("this run's configuration has no `{part}` of this form")
        }
    }))
}
