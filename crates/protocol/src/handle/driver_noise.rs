//! Lines that drivers and libraries write on every start of some machines, and that mean nothing here. A line counts as
//! known only with its whole wording: anything else stays worth a look.

/// What a line holds, and why it means nothing.
const KNOWN: &[(&str, &str)] = &[
    (
        "XDG_RUNTIME_DIR is invalid or not set in the environment",
        "the Wayland library looked for a display; no window is opened here",
    ),
    (
        "XDG_RUNTIME_DIR not set in the environment",
        "the Wayland library looked for a display; no window is opened here",
    ),
    (
        "lavapipe is not a conformant vulkan implementation, testing use only",
        "Mesa's Vulkan on the CPU says so of itself; figures are checked here",
    ),
    (
        "MESA-INTEL: warning: Performance support disabled",
        "it is about the driver's own counters, which are not used here",
    ),
];

/// Returns the reason why a line means nothing; `None` for other lines.
pub fn harmless(line: &str) -> Option<&'static str> {
    KNOWN
        .iter()
        .find(|(text, _)| line.contains(text))
        .map(|(_, why)| *why)
}
