//! Gives kernels that passed their check to the running model, between two steps, when commands are read.
//!
//! # How a kernel is adopted
//!
//! 1. A saved file is checked in an engine process of its own, also at the sizes at which the model that trains would launch it
//!    (`engine::kernel_check`). Only a kernel that passed goes on.
//! 2. The screen sends `Command::UseKernel` to the engine that trains. Between two steps `adopt` compiles the text once more with the sizes of
//!    its part and hands it to `ops::learner_kernel`. The last good kernel stays where the new one does not fit.
//! 3. The operation asks `ops::learner_kernel` before it launches its own kernel. It takes the learner's kernel only at sizes at which that
//!    was right, and its own kernel at all others.
//! 4. The results of the first 32 launches are compared with those of the operation's own kernel. Where they differ by more than 0.5 % of the
//!    largest value, the learner's kernel is taken out and the screen says so.
//! 5. `Event::KernelUsed` says after the next step whether the kernel computed, and if not, why.
//!
//! Stages are measured without it: leaving an exercise takes its kernel out of the model. The reference for the evidence never uses one.

use std::collections::BTreeMap;

use super::learner_kernel;
use crate::protocol::KernelSwap;
use crate::template;

/// Replaces a part of the model with these kernels; with none, restores the model's own. If these do not fit, the last good ones stay.
///
/// # Errors
/// When the part is unknown, or a text does not compile with the sizes of the part.
pub fn adopt(swap: &KernelSwap) -> Result<(), String> {
    let sizes = learner_kernel::sizes(&swap.part)?.iter();
    let sizes: BTreeMap<String, u64> = sizes.map(|name| ((*name).to_owned(), 64)).collect();
    if swap.kernels.is_empty() {
        learner_kernel::clear(Some(&swap.part));
        return Ok(());
    }
    let mut kernels = Vec::new();
    for kernel in &swap.kernels {
        let filled = template::fill(&kernel.text, &sizes)
            .map_err(|unknown| format!("`{}` is no size of `{}`", unknown.name, swap.part))?;
        naga::front::wgsl::parse_str(&filled.text).map_err(|error| error.message().to_owned())?;
        kernels.push((kernel.text.clone(), kernel.workgroup));
    }
    learner_kernel::install(&swap.part, &swap.exercise, &kernels, &swap.sizes)
}

/// Why the adopted kernels of a part were not used in the last step; `None` if they were.
pub fn reason_unused(part: &str, on_cpu: bool) -> Option<String> {
    let Some(live) = learner_kernel::of(part) else {
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
