//! The parts of a step as a list, so that steps of other programs can have other parts than ours.

use crate::PhaseTimes;

/// A part of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum PhaseName {
    /// Waiting for the next batch.
    Data,
    Forward,
    Backward,
    /// Exchanging gradients or weights with other processes.
    Communication,
    Optimizer,
    /// The step's time that no other part explains; below 0 where the parts claim more than the step took.
    #[strum(serialize = "unaccounted")]
    Rest,
}

/// The parts of one step in milliseconds, in the order in which they ran.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Phases {
    /// The rest is the last one, where the step's own length is known.
    pub parts: Vec<(PhaseName, f64)>,
    /// Length of the step.
    pub step: f64,
}

impl From<&PhaseTimes> for Phases {
    fn from(times: &PhaseTimes) -> Self {
        let parts = [
            (PhaseName::Data, times.data),
            (PhaseName::Forward, Some(times.forward)),
            (PhaseName::Backward, Some(times.backward)),
            (PhaseName::Communication, times.communication),
            (PhaseName::Optimizer, Some(times.optimizer)),
            (PhaseName::Rest, Some(times.residual)),
        ];
        let known = parts.into_iter().filter_map(|(name, ms)| Some((name, ms?)));
        Self {
            parts: known.collect(),
            step: times.step,
        }
    }
}

impl Phases {
    /// Returns the time of a part in milliseconds; `None` if the step has no such part.
    pub fn time_of(&self, name: PhaseName) -> Option<f64> {
        let found = self.parts.iter().find(|(part, _)| *part == name);
        found.map(|(_, ms)| *ms)
    }

    /// Returns the parts that ran, without the rest.
    pub fn timed(&self) -> impl Iterator<Item = (PhaseName, f64)> + '_ {
        let parts = self.parts.iter().copied();
        parts.filter(|(name, _)| *name != PhaseName::Rest)
    }
}
