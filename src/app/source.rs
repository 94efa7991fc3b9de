//! The source of events: a running engine or a recording. The screen sends commands and polls for answers; it never waits.
//! Implementations start processes and threads, and read files.

use protocol::{Command, StreamLine};

/// A source of events.
pub trait EventSource {
    /// Sends a command without waiting. A command to an engine that is still starting is kept for it.
    fn send(&mut self, command: Command);
    /// Returns the next report; `None` if none has come yet.
    fn try_recv(&mut self) -> Option<FromEngine>;
    /// Replaces the engine by a new one. Later reports of the old one are dropped.
    fn restart(&mut self);
    /// Ends the engine at once.
    fn kill(&mut self);
    /// Controls the replay of a recording. A live engine ignores it.
    fn replay(&mut self, _control: ReplayControl) {}
}

/// A report that a source of events gives.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all are lines, and none is kept"
)]
#[derive(Clone, Debug, PartialEq)]
pub enum FromEngine {
    Line(StreamLine),
    /// The engine has ended for this reason. No more lines follow until a restart.
    Gone {
        reason: String,
    },
    /// Output of a driver or a library that is no event.
    Stray(String),
    /// A line that should have been an event.
    Malformed {
        line: String,
        why: String,
    },
    /// The heartbeat stopped.
    Silent,
}

/// A command to the replay of a recording.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReplayControl {
    Pause,
    Resume,
    /// Shows the events up to and including the next step.
    Step,
    /// Sets the speed as a multiple of the recorded pace.
    Speed(f64),
    /// Shows later events as B, in a training that is watched.
    MarkB,
}
