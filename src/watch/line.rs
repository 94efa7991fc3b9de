//! Reads one line that a watched program wrote, such as `{"event":"step","step":7,"loss":6.9,"ms":20.1}`. Every field but the name
//! of the event may be missing.

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
    /// The first line of a file. It comes again when the job begins again.
    Hello(Hello),
    Run(ForeignRun),
    Step(WatchStep),
    Gradients(Gradients),
    Memory(Memory),
    /// The program has written a trace of a step into the folder.
    Profile {
        #[serde(default)]
        step: u64,
        /// The length of the step in milliseconds.
        #[serde(default)]
        ms: Option<f64>,
        file: String,
    },
    /// A sign of life, written every few seconds while there is no other line to write.
    Alive {
        /// The phase that the process is in.
        #[serde(default)]
        phase: Option<String>,
    },
    Log(LogMessage),
    /// The end of the training.
    Ended {
        /// The reason of an early end. `None` if the training is complete.
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
    /// The times of phases by their names.
    pub phases: BTreeMap<String, f64>,
    /// The part of the step that the program spent on being watched.
    pub own_ms: Option<f64>,
}

/// The names of the phases that a step may have.
const PHASES: [&str; 5] = ["data", "forward", "backward", "communication", "optimizer"];

impl WatchStep {
    /// Converts the step to an event. A step without `ms` takes the sum of its phases.
    pub(super) fn into_step(self, slot: Slot) -> Step {
        let phase = |name: &str| self.phases.get(name).copied();
        let phases_ms = PHASES
            .iter()
            .filter_map(|name| phase(name))
            .fold(0.0, |sum, ms| sum + ms);
        let ms = self.ms.unwrap_or(phases_ms);
        let phases = (!self.phases.is_empty()).then(|| PhaseTimes {
            forward: phase("forward").unwrap_or_default(),
            backward: phase("backward").unwrap_or_default(),
            optimizer: phase("optimizer").unwrap_or_default(),
            data: phase("data"),
            communication: phase("communication"),
            residual: ms - phases_ms,
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

    /// Returns a sentence about the first field with an impossible value, and what to write instead. `None` if every field is possible.
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

/// Reads a line.
///
/// # Errors
/// Returns a sentence that names the wrong field or column and what to write instead.
pub(super) fn read(text: &str) -> Result<WatchLine, String> {
    let line: WatchLine = protocol::read(text).map_err(|why| {
        let is_bare = |word: &&str| text.contains(*word) && !text.contains("\"NaN\"");
        match ["NaN", "Infinity"].into_iter().find(is_bare) {
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
    fault.map_or(Ok(line), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the step of a line as an event of A.
    fn read_step(text: &str) -> Step {
        match read(text).expect("a step").event {
            WatchEvent::Step(step) => step.into_step(Slot::A),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_step_needs_nothing_but_its_name() {
        let step = read_step(r#"{"event":"step"}"#);

        assert_eq!((step.step, step.loss, step.phases), (0, None, None));
    }

    #[test]
    fn the_rest_of_a_step_is_its_length_without_its_phases() {
        let step = read_step(r#"{"event":"step","ms":10,"phases":{"data":1,"forward":3}}"#);

        let phases = step.phases.expect("phases");
        assert_eq!(phases.residual, 10.0 - 1.0 - 3.0);
        assert_eq!((phases.data, phases.communication), (Some(1.0), None));
    }

    #[test]
    fn a_loss_that_is_not_a_number_is_written_as_text() {
        let step = read_step(r#"{"event":"step","loss":"NaN"}"#);

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
