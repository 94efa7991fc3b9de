//! The last lines that drivers, libraries and the engine wrote outside the stream, and how many there were.

use std::collections::VecDeque;

use crate::sanitize;

use protocol::handle::driver_noise::harmless;

/// Lines kept.
const LINES: usize = 500;

#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum LogLevel {
    Info,
    Warning,
    Error,
    /// Output of a driver or a library.
    #[strum(serialize = "output")]
    Stray,
    /// The same, where it is known to be harmless, with the reason.
    #[strum(serialize = "note")]
    Harmless,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    pub level: LogLevel,
    pub text: String,
    /// Why it is harmless, where that is known.
    pub why: Option<&'static str>,
    /// How often it came in a row.
    pub times: u64,
}

#[derive(Clone, Debug, Default)]
pub struct Log {
    pub entries: VecDeque<LogEntry>,
    /// Warnings and errors since the log was last opened.
    pub unseen: u64,
    /// How many lines of the engine were no valid events.
    pub malformed: u64,
}

impl Log {
    /// Adds one line; a repetition only counts up.
    pub fn add(&mut self, level: LogLevel, text: &str) {
        let text = sanitize::line(text.trim_end());
        if text.is_empty() {
            return;
        }
        let why = (level == LogLevel::Stray)
            .then(|| harmless(&text))
            .flatten();
        let level = if why.is_some() {
            LogLevel::Harmless
        } else {
            level
        };
        self.unseen += u64::from(!matches!(level, LogLevel::Info | LogLevel::Harmless));
        if let Some(last) = self.entries.back_mut()
            && last.level == level
            && last.text == text
        {
            last.times += 1;
            return;
        }
        if self.entries.len() == LINES {
            self.entries.pop_front();
        }
        self.entries.push_back(LogEntry {
            level,
            text,
            why,
            times: 1,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
