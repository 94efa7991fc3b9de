//! Hides the configuration of a mystery: a recording, `--json` and a report of its run must not give away what the learner is to find
//! out. The stream between the engine and its reader is not covered, because a learner who reads it is trusted not to cheat.

use super::{Event, StreamLine};
use crate::config::RunConfig;

impl StreamLine {
    /// Returns the text of the line without the configuration of a sealed run, for recordings and `--json`.
    pub(crate) fn covered_text(&self) -> String {
        let covered = Self {
            t: self.t,
            event: self.event.clone().covered(),
        };
        serde_json::to_string(&covered).unwrap_or_default()
    }
}

impl Event {
    /// Returns true if the event names a value, a key or a fault of a configuration.
    pub fn names_configuration(&self) -> bool {
        matches!(
            self,
            Self::Started(_) | Self::Lints { .. } | Self::Pair(_) | Self::Finished(_)
        )
    }

    /// Returns the event for recordings and `--json`. For a sealed run, everything about the configuration is left out.
    #[must_use]
    pub fn covered(mut self) -> Self {
        match &mut self {
            Self::Lints { lints, .. } => lints.clear(),
            Self::Pair(pair) => pair.differs.clear(),
            Self::Finished(finished) => {
                finished.lints.clear();
                finished.config.clear();
                if let Some(pair) = &mut finished.pair {
                    pair.differs.clear();
                }
            }
            _ => {}
        }
        self.with_config(|config| *config = RunConfig::preset(config.preset))
    }

    /// Changes the configuration of the run that begins with this event, if one does.
    #[must_use]
    pub fn with_config(mut self, change: impl FnOnce(&mut RunConfig)) -> Self {
        if let Self::Started(started) = &mut self {
            change(&mut started.run.config);
            started.config = started.run.config.hash();
        }
        self
    }

    /// Returns true if this event begins a sealed run, false if it begins another run, and `None` if it begins no run.
    pub fn begins_sealed(&self) -> Option<bool> {
        self.begins_run().map(|started| started.run.sealed)
    }
}
