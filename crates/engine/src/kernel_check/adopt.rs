//! Gives kernels that passed their check to the running model. The session does this between two steps, when it reads commands.

use super::learner_kernel::{self, LearnerKernels};
use protocol::{KernelSwap, Sizes, template};

/// Replaces a part of the model with a learner's kernels. A swap without kernels restores the model's own ones. After an error, the part
/// keeps the kernels that it has.
///
/// # Errors
/// Fails if the part is unknown, or if a text does not compile with the sizes of the part.
pub fn adopt(learner: &LearnerKernels, swap: &KernelSwap) -> Result<(), String> {
    let sizes: Sizes = learner_kernel::sizes(&swap.part)?
        .iter()
        .map(|name| ((*name).to_owned(), 64))
        .collect();
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

/// Returns the reason why the adopted kernels of a part were not used in the last step; `None` if they were used.
pub fn reason_unused(learner: &LearnerKernels, part: &str, on_cpu: bool) -> Option<String> {
    let Some(live) = learner.part_in_use(part) else {
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
