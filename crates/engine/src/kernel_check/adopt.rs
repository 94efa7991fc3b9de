//! Gives kernels that passed their check to the running model, between two steps, when commands are read.

use super::learner_kernel::{self, LearnerKernels};
use protocol::{KernelSwap, Sizes, template};

/// Replaces a part of the model with these kernels; with none, restores the model's own. If these do not fit, the last good ones stay.
///
/// # Errors
/// When the part is unknown, or a text does not compile with the sizes of the part.
pub fn adopt(learner: &LearnerKernels, swap: &KernelSwap) -> Result<(), String> {
    let sizes = learner_kernel::sizes(&swap.part)?.iter();
    let sizes: Sizes = sizes.map(|name| ((*name).to_owned(), 64)).collect();
    if swap.kernels.is_empty() {
        learner.clear(Some(&swap.part));
        return Ok(());
    }
    for kernel in &swap.kernels {
        let filled = template::fill(&kernel.text, &sizes)
            .map_err(|unknown| format!("`{}` is not a size of `{}`", unknown.name, swap.part))?;
        naga::front::wgsl::parse_str(&filled.text).map_err(|error| error.message().to_owned())?;
    }
    learner.install(swap.clone())
}

/// Why the adopted kernels of a part were not used in the last step; `None` if they were.
pub fn reason_unused(learner: &LearnerKernels, part: &str, on_cpu: bool) -> Option<String> {
    let Some(live) = learner.of(part) else {
        return Some("it was removed from the model".to_owned());
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
