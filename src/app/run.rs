//! The state of the run, with request and confirmation kept apart, and what the runs of A and B have shown so far.
//! It reads events and decides nothing.

use protocol::story::{RunStory, StreamStory};
use protocol::{Device, FailedKind, RunSpec, Slot};

/// Where the run is. A request (`Pausing`) is not its confirmation (`Paused`).
#[derive(Clone, Debug, Default, PartialEq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum RunState {
    /// Nothing was requested yet.
    #[default]
    Idle,
    /// Requested; the engine has not answered.
    Starting,
    /// The engine opens the device, compiles kernels or warms up; no step has come.
    #[strum(serialize = "warming up")]
    Warming,
    Running,
    Pausing,
    Paused,
    Resuming,
    Finished,
    /// The engine could not do it, and says why.
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
    /// Whether steps are coming or about to.
    pub fn is_active(&self) -> bool {
        !matches!(
            self,
            Self::Idle | Self::Finished | Self::Failed { .. } | Self::EngineGone { .. }
        )
    }

    /// Whether it is paused, or about to be.
    pub fn is_paused(&self) -> bool {
        matches!(self, Self::Paused | Self::Pausing)
    }

    /// Whether steps are made, or the device gets ready for them.
    pub fn is_moving(&self) -> bool {
        matches!(self, Self::Running | Self::Warming | Self::Resuming)
    }

    /// Whether the engine is gone, or failed on its own: it may have lost its device and is replaced before the next command.
    pub fn broke_off(&self) -> bool {
        match self {
            Self::EngineGone { .. } => true,
            Self::Failed { kind, .. } => *kind == FailedKind::Internal,
            _ => false,
        }
    }
}

/// The run that was asked for, and what came of it.
#[derive(Clone, Debug, Default)]
pub struct RequestedRun {
    pub state: RunState,
    /// What the runs of A and B showed.
    pub story: StreamStory,
    /// The slot that runs; the other keeps what it showed.
    pub active: Slot,
    /// The last run that was asked for.
    pub wanted: Option<RunSpec>,
    /// Kernels compiled so far, and the latest.
    pub compiling: Option<(u32, String)>,
    /// When the run was asked for.
    pub asked_ms: u64,
    /// When the last step came.
    pub step_ms: u64,
    /// When the device last made progress, as far as the engine reported.
    pub progress_ms: u64,
}

impl RequestedRun {
    /// What a slot has shown.
    pub fn slot(&self, slot: Slot) -> &RunStory {
        self.story.slot(slot)
    }

    /// What the running slot has shown.
    pub fn shown(&self) -> &RunStory {
        self.slot(self.active)
    }

    /// The other slot, if anything ran there.
    pub fn other(&self) -> Option<&RunStory> {
        Some(self.slot(self.active.other())).filter(|it| it.has_begun())
    }

    /// The slot's letter and what runs there: `A broken`.
    pub fn slot_name(&self, slot: Slot) -> String {
        let letter = if slot == Slot::A { 'A' } else { 'B' };
        match &*self.slot(slot).description.name {
            "" => letter.to_string(),
            variant => format!("{letter} {variant}"),
        }
    }

    /// The device that the run computes on, once it is known.
    pub fn device(&self) -> Option<&Device> {
        self.shown().description.device.as_ref()
    }

    /// The last step of the running slot.
    pub fn step(&self) -> Option<u64> {
        self.shown().last.as_ref().map(|step| step.step)
    }

    /// The loss of step 0, before any update, of the weights that train now.
    pub fn first_loss(&self) -> Option<f64> {
        self.story.first_loss(self.shown())
    }
}
