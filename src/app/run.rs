//! The state of the requested run, and the curves and figures of all runs of A and B so far.

use protocol::story::{RunStory, StreamStory};
use protocol::{Device, FailedKind, RunSpec, Slot};

/// The state of the run. A request (`Pausing`) and its confirmation (`Paused`) are two states.
#[derive(Clone, Debug, Default, PartialEq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum RunState {
    /// No run was requested yet.
    #[default]
    Idle,
    /// The run was requested, and the engine has not answered.
    Starting,
    /// The engine opens the device, compiles kernels or warms up. No step has come.
    #[strum(serialize = "warming up")]
    Warming,
    Running,
    Pausing,
    Paused,
    Resuming,
    Finished,
    /// The run failed for a reason that the engine gave.
    Failed {
        kind: FailedKind,
        reason: String,
    },
    /// The engine has ended.
    #[strum(serialize = "engine gone")]
    EngineGone {
        reason: String,
    },
}

impl RunState {
    /// Returns true if no step of the run comes any more.
    pub fn has_ended(&self) -> bool {
        matches!(
            self,
            Self::Finished | Self::Failed { .. } | Self::EngineGone { .. }
        )
    }

    /// Returns true if the run has begun or was requested, and has not ended. A paused run is active.
    pub fn is_active(&self) -> bool {
        *self != Self::Idle && !self.has_ended()
    }

    /// Returns true if the run is paused, or about to be.
    pub fn is_paused(&self) -> bool {
        matches!(self, Self::Paused | Self::Pausing)
    }

    /// Returns true if the run makes steps, or the device gets ready for them.
    pub fn is_moving(&self) -> bool {
        matches!(self, Self::Running | Self::Warming | Self::Resuming)
    }

    /// Returns true if the engine has ended or failed on its own. It may have lost its device and is replaced before the next command.
    pub fn broke_off(&self) -> bool {
        match self {
            Self::EngineGone { .. } => true,
            Self::Failed { kind, .. } => *kind == FailedKind::Internal,
            _ => false,
        }
    }
}

/// The requested run, and the story of all runs.
#[derive(Clone, Debug, Default)]
pub struct RequestedRun {
    pub state: RunState,
    /// The curves and figures of the runs of A and B.
    pub story: StreamStory,
    /// The slot that runs. The other slot keeps its curves and figures.
    pub active: Slot,
    /// The last run that was requested.
    pub wanted: Option<RunSpec>,
    /// The number of kernels compiled so far, and the name of the latest one. `None` while none is compiled.
    pub compiling: Option<(u32, String)>,
    /// The time of the request, in milliseconds since the program began, like the next two.
    pub asked_ms: u64,
    /// The time of the last step.
    pub step_ms: u64,
    /// The time of the device's last progress that the engine reported.
    pub progress_ms: u64,
}

impl RequestedRun {
    /// Returns the story of a slot's run.
    pub fn slot(&self, slot: Slot) -> &RunStory {
        self.story.slot(slot)
    }

    /// Returns the story of the running slot.
    pub fn shown(&self) -> &RunStory {
        self.slot(self.active)
    }

    /// Returns the story of the other slot. `None` if nothing has run there.
    pub fn other(&self) -> Option<&RunStory> {
        let other = self.slot(self.active.other());
        other.has_begun().then_some(other)
    }

    /// Returns the letter of a slot and the name of its run, as in `A broken`.
    pub fn slot_name(&self, slot: Slot) -> String {
        let letter = if slot == Slot::A { 'A' } else { 'B' };
        match &*self.slot(slot).description.name {
            "" => letter.to_string(),
            variant => format!("{letter} {variant}"),
        }
    }

    /// Returns the device of the running slot. `None` until the engine has named it.
    pub fn device(&self) -> Option<&Device> {
        self.shown().description.device.as_ref()
    }

    /// Returns the last step of the running slot. `None` before its first step.
    pub fn step(&self) -> Option<u64> {
        self.shown().last.as_ref().map(|step| step.step)
    }

    /// Returns the loss of step 0, before any update, of the weights that train now.
    pub fn first_loss(&self) -> Option<f64> {
        self.story.first_loss(self.shown())
    }
}
