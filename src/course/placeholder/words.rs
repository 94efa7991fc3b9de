//! Figures of a run that are words or lists of numbers: its device, its clock, its lints, its longest kernel.

use super::show;
use crate::protocol::Finished;

/// Their names.
pub const TEXTS: &[&str] = &[
    "device",
    "clock",
    "state",
    "lints",
    "rms",
    "strides",
    "top_kernel",
];

/// What one stands for in this run; nothing where it was not seen.
pub fn words(name: &str, run: &Finished) -> Option<String> {
    let some = |text: String| (!text.is_empty()).then_some(text);
    match name {
        "device" => some(run.device.name.clone()),
        "clock" => some(run.clock.clone()),
        "state" => some(run.state.to_string()),
        "lints" if run.lints.is_empty() => Some("none".to_owned()),
        "lints" => some(
            run.lints
                .iter()
                .map(|lint| lint.name.as_str())
                .collect::<Vec<_>>()
                .join(", "),
        ),
        "rms" => {
            let rms = &run.evidence.as_ref()?.rms;
            some(
                rms.iter()
                    .map(|x| show(x.0, 3))
                    .collect::<Vec<_>>()
                    .join(" "),
            )
        }
        "strides" => {
            let strides = &run.evidence.as_ref()?.strides;
            some(
                strides
                    .iter()
                    .map(|(name, s)| format!("{name} {s:?}"))
                    .collect::<Vec<_>>()
                    .join("  "),
            )
        }
        "top_kernel" => {
            let top = run.kernels.top.first()?;
            some(format!(
                "{} ({}), {} ms",
                top.scope,
                top.kernel,
                show(top.ms, 2)
            ))
        }
        _ => None,
    }
}
