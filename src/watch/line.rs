//! Reads one line that a watched program wrote. Every field but the name of the event may be missing.

use std::collections::BTreeMap;

use serde::Deserialize;

use protocol::{
    ForeignRun, Gradients, Hello, LogMessage, Memory, Num, PROTOCOL, PhaseTimes, Slot, Step,
};

/// One line that a program wrote: its event, and the time in seconds since the program began to write.
#[derive(Debug, Deserialize)]
pub(super) struct WatchLine {
    #[serde(default)]
    pub t: f64,
    #[serde(flatten)]
    pub event: WatchEvent,
}

/// An event of a training, as `docs/watch.md` describes it.
#[derive(Debug, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub(super) enum WatchEvent {
    /// Begins each file, and comes again when a job was begun again.
    Hello(Hello),
    Run(ForeignRun),
    Step(WatchStep),
    Gradients(Gradients),
    Memory(Memory),
    /// A trace of a step was written into the folder.
    Profile {
        #[serde(default)]
        step: u64,
        /// Length of that step in milliseconds.
        #[serde(default)]
        ms: Option<f64>,
        file: String,
    },
    /// Written every few seconds while no other line is due.
    Alive {
        /// The phase that the process is in.
        #[serde(default)]
        phase: Option<String>,
    },
    Log(LogMessage),
    /// The training is over; with `why` it ended early.
    Ended {
        #[serde(default)]
        why: Option<String>,
    },
}

/// One step of the optimizer. Times are in milliseconds.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WatchStep {
    pub step: u64,
    pub ms: Option<f64>,
    pub loss: Option<Num>,
    pub profiled: bool,
    pub phases: BTreeMap<String, f64>,
    /// The time in which the program served the watching.
    pub own_ms: Option<f64>,
}

/// The names of the phases that a step may tell.
pub(super) const PHASES: [&str; 5] = ["data", "forward", "backward", "communication", "optimizer"];

impl WatchStep {
    /// The step as an event. Without a length of its own it has that of its phases.
    pub(super) fn into_step(self, slot: Slot) -> Step {
        let phase = |name: &str| self.phases.get(name).copied();
        let told = PHASES
            .iter()
            .filter_map(|name| phase(name))
            .fold(0.0, |sum, ms| sum + ms);
        let ms = self.ms.unwrap_or(told);
        let phases = (!self.phases.is_empty()).then(|| PhaseTimes {
            forward: phase("forward").unwrap_or_default(),
            backward: phase("backward").unwrap_or_default(),
            optimizer: phase("optimizer").unwrap_or_default(),
            data: phase("data"),
            communication: phase("communication"),
            residual: ms - told,
            step: ms,
        });
        Step {
            slot,
            step: self.step,
            loss: self.loss,
            ms,
            synced: true,
            profiled: self.profiled,
            phases,
            clocks: None,
        }
    }

    /// Returns the first field that no step can have, and what to write instead; `None` if there is none.
    fn fault(&self) -> Option<String> {
        let unknown = self
            .phases
            .keys()
            .find(|name| !PHASES.contains(&name.as_str()));
        if let Some(name) = unknown {
            let known = PHASES.join(", ");
            return Some(format!("`phases.{name}` is no phase; there are {known}"));
        }
        let is_time = |ms: f64| ms.is_finite() && ms >= 0.0;
        if let Some((name, ms)) = self.phases.iter().find(|(_, ms)| !is_time(**ms)) {
            return Some(format!(
                "`phases.{name}` is {ms}: write milliseconds, 0 or more"
            ));
        }
        let ms = self.ms.filter(|ms| !is_time(*ms))?;
        Some(format!("`ms` is {ms}: write milliseconds, 0 or more"))
    }
}

/// Reads a line; the error says which field or column is wrong and what to write.
pub(super) fn read(text: &str) -> Result<WatchLine, String> {
    let line: WatchLine = protocol::read(text).map_err(|why| {
        let bare = |word: &&str| text.contains(*word) && !text.contains("\"NaN\"");
        match ["NaN", "Infinity"].into_iter().find(bare) {
            Some(word) => {
                format!("{why}; JSON has no {word}: write it as text, \"NaN\" or \"inf\"")
            }
            None => why,
        }
    })?;
    let fault = match &line.event {
        WatchEvent::Hello(hello) if hello.protocol > PROTOCOL => Some(format!(
            "`protocol` is {}, this program reads up to {PROTOCOL}: update perflings on this machine",
            hello.protocol
        )),
        WatchEvent::Step(step) => step.fault(),
        _ => None,
    };
    match fault {
        Some(fault) => Err(fault),
        None => Ok(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_needs_nothing_but_its_name() {
        let line = read(r#"{"event":"step"}"#).expect("a step");
        let WatchEvent::Step(step) = line.event else {
            panic!("another event");
        };
        let step = step.into_step(Slot::A);
        assert_eq!((step.step, step.loss, step.phases), (0, None, None));
    }

    #[test]
    fn the_rest_of_a_step_is_what_its_phases_leave() {
        let text =
            r#"{"event":"step","step":3,"ms":10,"loss":"NaN","phases":{"data":1,"forward":3}}"#;
        let WatchEvent::Step(step) = read(text).expect("a step").event else {
            panic!("another event");
        };
        let step = step.into_step(Slot::B);
        let phases = step.phases.expect("phases");
        assert_eq!(
            (phases.residual, phases.data, phases.communication),
            (6.0, Some(1.0), None)
        );
        assert!(step.loss.is_some_and(|loss| loss.0.is_nan()));
    }

    #[test]
    fn faults_name_the_field_and_what_to_write() {
        let faults = [
            (r#"{"event":"step","ms":-1}"#, "`ms` is -1"),
            (
                r#"{"event":"step","phases":{"fwd":1}}"#,
                "`phases.fwd` is no phase",
            ),
            (r#"{"event":"step","loss":NaN}"#, "write it as text"),
            (r#"{"event":"hello","protocol":99}"#, "update perflings"),
            (r#"{"event":"stepp"}"#, "unknown variant `stepp`"),
            ("loss 3.4", "column"),
        ];
        for (text, expected) in faults {
            let why = read(text).expect_err(text);
            assert!(why.contains(expected), "{text}: {why}");
        }
    }
}
