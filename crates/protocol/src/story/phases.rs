//! The parts of a step as a list, because steps of other programs can have parts that ours do not have.

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

/// The parts of one step in milliseconds, in the order in which they ran.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Phases {
    /// The parts with their times; `PhaseName::Rest` is the last one.
    pub parts: Vec<(PhaseName, f64)>,
    /// The length of the step.
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
        Self {
            parts: parts
                .into_iter()
                .filter_map(|(name, ms)| Some((name, ms?)))
                .collect(),
            step: times.step,
        }
    }
}

impl Phases {
    /// Returns the time of a part in milliseconds; `None` if the step has no such part.
    pub fn time_of(&self, name: PhaseName) -> Option<f64> {
        self.parts
            .iter()
            .find(|(part, _)| *part == name)
            .map(|(_, ms)| *ms)
    }

    /// Returns the parts that have timers: all but the rest.
    pub fn timed(&self) -> impl Iterator<Item = (PhaseName, f64)> + '_ {
        self.parts
            .iter()
            .copied()
            .filter(|(name, _)| *name != PhaseName::Rest)
    }
}
