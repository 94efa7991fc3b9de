//! The last lines that drivers, libraries and the engine wrote outside the stream, and how many there were.

use std::collections::VecDeque;

use crate::sanitize;

use crate::protocol::handle::driver_noise::harmless;

/// Lines kept.
const LINES: usize = 500;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    Info,
    Warning,
    Error,
    /// Output of a driver or a library.
    Stray,
    /// The same, where it is known to be harmless, with the reason.
    Harmless,
}

impl LogLevel {
    /// In one short word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Stray => "output",
            Self::Harmless => "note",
        }
    }
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
