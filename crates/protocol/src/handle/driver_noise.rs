//! Harmless lines that drivers and libraries write at every start on some machines. A line is harmless only if it has the whole text:
//! anything else deserves a look.

/// Texts of harmless lines, each with the reason why it is harmless.
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
        "Mesa says this of its own Vulkan on the CPU; figures are checked here",
    ),
    (
        "MESA-INTEL: warning: Performance support disabled",
        "it is about the driver's own counters, which are not used here",
    ),
];

/// Returns the reason why a line is harmless; `None` for other lines.
pub fn harmless(line: &str) -> Option<&'static str> {
    KNOWN
        .iter()
        .find(|(text, _)| line.contains(text))
        .map(|(_, why)| *why)
}
