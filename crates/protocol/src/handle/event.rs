//! The messages that a reader receives from an engine, and the texts about an engine's end.

use std::process::ExitStatus;
use std::time::Duration;

use crate::{PROTOCOL, StreamLine};

/// One message from an engine.
#[derive(Clone, Debug, PartialEq)]
pub enum EngineMessage {
    /// A line of the stream, with its text. In a sealed run, the text leaves out the configuration.
    Line(Box<StreamLine>, String),
    /// Something written to stderr: a driver's warning, a wrapper's complaint.
    Stray(String),
    /// A line on stdout that is no event of the protocol, and the reason.
    Malformed { line: String, why: String },
    /// Nothing came for this time. Each silence is reported once; the next line ends it.
    Silent(Duration),
    /// The command has made no progress for `seconds`; at `limit_s` the engine is ended. Each command reports this once.
    Slow { seconds: u64, limit_s: u64 },
    /// The engine is gone; nothing follows.
    Over(EngineEnd),
}

/// The reason why an engine is gone. It is shown as a text: what happened and, if possible, what to do.
#[derive(Clone, Debug, PartialEq, Eq, strum::Display)]
pub enum EngineEnd {
    /// The handshake failed: wrong protocol, unreadable lines, or no greeting in time.
    #[strum(to_string = "{0}")]
    Refused(String),
    /// The engine ended by itself after the handshake.
    #[strum(to_string = "{0}")]
    Ended(String),
    /// The owner of the handle ended the engine.
    #[strum(to_string = "the engine was stopped")]
    Killed,
    /// An engine on this machine fell silent while it had a command.
    #[strum(to_string = "the engine was silent, so it was ended")]
    Silent,
    /// An engine that this command started fell silent while it had a command. It may be behind a connection to another machine.
    #[strum(
        to_string = "nothing more comes from `{0}`: its connection is cut, or its machine is gone; \
                     see that it answers and run this again"
    )]
    CutOff(String),
    /// The engine is alive, but its device made no progress for this number of seconds.
    #[strum(
        to_string = "the engine is alive, but its device made no progress for {0} s, \
                     so it was ended"
    )]
    DeviceStuck(u64),
    /// The engine is alive, but a run made no step for this number of seconds.
    #[strum(to_string = "the engine is alive, but finished no step in {0} s, so it was ended")]
    NoStep(u64),
    /// The engine is alive, but a command other than a run had no answer for this number of seconds.
    #[strum(to_string = "no answer within {0} s")]
    NoAnswer(u64),
    /// The engine makes far more steps than it was asked for.
    #[strum(
        to_string = "the engine goes on far beyond the steps it was asked for, so it was ended"
    )]
    Endless,
    /// The engine was asked to stop and did not.
    #[strum(to_string = "the engine did not stop in time and was ended")]
    NotStopped,
}

/// Returns the text that refuses the greeting of a newer protocol: both versions, and what to update.
pub(super) fn newer_protocol(protocol: u32, version: &str) -> String {
    let ours = env!("CARGO_PKG_VERSION");
    format!(
        "the engine is perflings {version} and speaks protocol {protocol}; \
         this is perflings {ours} with protocol {PROTOCOL}. Update perflings on this machine"
    )
}

/// Returns the text that refuses a greeting with protocol 0, because versions begin at 1.
pub(super) fn protocol_zero(version: &str) -> String {
    format!(
        "the engine is perflings {version} and says that it speaks protocol 0; \
         there are 1 to {PROTOCOL}. Update perflings on the engine's machine"
    )
}

/// Returns true if a process could print the reason for its end, which one that was killed from outside could not.
pub(super) fn could_print_reason(status: ExitStatus) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::process::ExitStatusExt;
        !matches!(status.signal(), Some(9 | 15))
    }
    #[cfg(not(unix))]
    {
        let _ = status;
        true
    }
}

/// Returns true for a line of a stack trace, which does not help a learner.
pub(super) fn is_trace(line: &str) -> bool {
    let text = line.trim_start();
    let is_frame = text.split_once(": ").is_some_and(|(number, _)| {
        !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit())
    });
    let is_place = text
        .strip_prefix("at ")
        .is_some_and(|place| place.contains(".rs:"));
    let heads = [
        "stack backtrace:",
        "note: Some details",
        "note: run with `RUST_BACKTRACE",
        "skipping backtrace printing",
    ];
    is_frame || is_place || heads.iter().any(|head| text.starts_with(head))
}

/// Returns the words for the end of a process: `exited with status 1`.
pub(super) fn describe_end(status: ExitStatus) -> String {
    #[cfg(unix)]
    {
        use std::os::unix::process::ExitStatusExt;
        if let Some(signal) = status.signal() {
            let name = match signal {
                4 => " (illegal instruction)",
                6 => " (abort)",
                7 => {
                    " (bus error; this happens when a disk is full: \
                     see `df` for /tmp and the cache)"
                }
                9 => " (kill; the system does this when memory runs out)",
                11 => " (segmentation fault)",
                15 => " (terminate)",
                24 => " (limit of processor time, `ulimit -t`)",
                _ => "",
            };
            return format!("was ended by signal {signal}{name}");
        }
    }
    match status.code() {
        Some(code) => format!("exited with status {code}"),
        None => "ended".to_owned(),
    }
}
