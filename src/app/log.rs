//! The log: the last lines that drivers, libraries and the engine wrote outside the stream of events.

use std::collections::VecDeque;

use crate::sanitize;

use protocol::handle::driver_noise::harmless;

/// The number of lines that the log keeps.
const LINES: usize = 500;

/// The origin and weight of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum LogLevel {
    Info,
    Warning,
    Error,
    /// Output of a driver or a library.
    #[strum(serialize = "output")]
    Stray,
    /// Output of a driver or a library that is known to be harmless.
    #[strum(serialize = "note")]
    Harmless,
}

/// One line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    pub level: LogLevel,
    pub text: String,
    /// The reason why the line is harmless. `None` for other lines.
    pub why: Option<&'static str>,
    /// How often the line came in a row.
    pub times: u64,
}

/// The last lines, and the counts of lines that deserve attention.
#[derive(Clone, Debug, Default)]
pub struct Log {
    pub entries: VecDeque<LogEntry>,
    /// The number of warnings and errors since the log was last opened.
    pub unseen: u64,
    /// The number of lines of the engine that were no valid events.
    pub malformed: u64,
}

impl Log {
    /// Adds one line. If it repeats the last line, only the count of that line grows.
    pub fn add(&mut self, origin: LogLevel, line: &str) {
        let text = sanitize::line(line.trim_end());
        if text.is_empty() {
            return;
        }
        let why = match origin {
            LogLevel::Stray => harmless(&text),
            _ => None,
        };
        let level = if why.is_some() {
            LogLevel::Harmless
        } else {
            origin
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
        // A line of the engine itself is never taken for harmless output of a driver.
        log.add(
            LogLevel::Error,
            "lavapipe is not a conformant vulkan implementation, testing use only",
        );
        assert_eq!((log.entries.len(), log.unseen), (5, 3));
    }
}
