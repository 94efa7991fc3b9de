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

/// Why a line means nothing, if it is one of those.
pub fn harmless(line: &str) -> Option<&'static str> {
    KNOWN
        .iter()
        .find(|(text, _)| line.contains(text))
        .map(|(_, why)| *why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::log::{Log, LogLevel};

    #[test]
    fn known_lines_are_kept_and_not_counted_others_count() {
        let mut log = Log::default();
        for line in [
            "error: XDG_RUNTIME_DIR is invalid or not set in the environment.",
            "WARNING: lavapipe is not a conformant vulkan implementation, testing use only.",
        ] {
            log.add(LogLevel::Stray, line);
        }
        assert_eq!((log.entries.len(), log.unseen), (2, 0));
        for entry in &log.entries {
            assert_eq!(entry.level, LogLevel::Harmless);
            assert!(entry.why.is_some_and(|why| why.contains("here")));
        }
        for line in [
            "error: XDG_RUNTIME_DIR is not a directory",
            "VK_ERROR_DEVICE_LOST",
        ] {
            assert_eq!(harmless(line), None);
            log.add(LogLevel::Stray, line);
        }
        // What the engine says itself is never taken for a driver's habit.
        log.add(
            LogLevel::Error,
            "lavapipe is not a conformant vulkan implementation, testing use only",
        );
        assert_eq!((log.entries.len(), log.unseen), (5, 3));
    }
}
