//! The parts of a step by name, because steps of other programs can have parts that ours do not have.

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
    /// The time of the step that no other part explains. It is negative if the parts claim more time than the step took.
    #[strum(serialize = "unaccounted")]
    Rest,
}

impl PhaseTimes {
    /// Returns the parts that the step has, in the order in which they ran, with their times in milliseconds. The rest is the last one.
    pub fn parts(&self) -> impl Iterator<Item = (PhaseName, f64)> + use<> {
        [
            (PhaseName::Data, self.data),
            (PhaseName::Forward, Some(self.forward)),
            (PhaseName::Backward, Some(self.backward)),
            (PhaseName::Communication, self.communication),
            (PhaseName::Optimizer, Some(self.optimizer)),
            (PhaseName::Rest, Some(self.residual)),
        ]
        .into_iter()
        .filter_map(|(name, ms)| Some((name, ms?)))
    }

    /// Returns the parts that have timers: all but the rest.
    pub fn timed_parts(&self) -> impl Iterator<Item = (PhaseName, f64)> + use<> {
        self.parts().filter(|(name, _)| *name != PhaseName::Rest)
    }

    /// Returns the time of a part in milliseconds; `None` if the step has no such part.
    pub fn time_of(&self, name: PhaseName) -> Option<f64> {
        self.parts()
            .find(|(part, _)| *part == name)
            .map(|(_, ms)| ms)
    }
}
