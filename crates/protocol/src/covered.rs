//! What a learner is to find out must not be read off a recording, `--json` or a report: of an open mystery's run they say everything
//! but its configuration. The stream between the engine and its reader has it in clear: a race is on trust.

use super::Event;
use crate::config::RunConfig;

impl Event {
    /// Whether it names a value, a key or a fault of a configuration.
    pub fn names_configuration(&self) -> bool {
        matches!(
            self,
            Self::Started(_) | Self::Lints { .. } | Self::Pair(_) | Self::Finished(_)
        )
    }

    /// As a recording and `--json` have it: what the event of a sealed run would tell of the configuration is left out.
    #[must_use]
    pub fn covered(mut self) -> Self {
        match &mut self {
            Self::Started(started) => {
                let plain = RunConfig::preset(started.run.config.preset);
                (started.config, started.run.config) = (plain.hash(), plain);
            }
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
        self
    }

    /// The run that begins is sealed, or is not; none where the event begins none.
    pub fn begins_sealed(&self) -> Option<bool> {
        match self {
            Self::Started(started) => Some(started.run.sealed),
            _ => None,
        }
    }
}
