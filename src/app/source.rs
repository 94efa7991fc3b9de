//! Where events come from: a running engine or a recording. The screen asks, and polls for answers; it never waits.
//! Starting processes, threads and reading files belong to the implementations.

use protocol::{Command, StreamLine};

/// Something that speaks the protocol.
pub trait EventSource {
    /// Sends a command without waiting; one to an engine that is still starting is kept for it.
    fn send(&mut self, command: Command);
    /// The next report, if one is there.
    fn try_recv(&mut self) -> Option<FromEngine>;
    /// Replaces the engine by a new one. Whatever the old one still says is dropped.
    fn restart(&mut self);
    /// Ends the engine at once.
    fn kill(&mut self);
    /// Controls the replay of a recording. A live engine ignores it.
    fn replay(&mut self, _control: ReplayControl) {}
}

/// What a source reports.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all are lines, and none is kept"
)]
#[derive(Clone, Debug, PartialEq)]
pub enum FromEngine {
    Line(StreamLine),
    /// The engine ended; no more lines follow until a restart.
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

/// How a recording is shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReplayControl {
    Pause,
    Resume,
    /// Up to and including the next step.
    Step,
    /// Times the recorded pace.
    Speed(f64),
    /// What comes from now on is shown as B; for a training that is watched.
    MarkB,
}
