//! The mode of the screen. There is one mode at a time:
//!
//! | mode | run | text | saved progress |
//! |---|---|---|---|
//! | `Stage` | live | the stage's | yes |
//! | `Exercise` | live; it pauses for a measurement | the exercise's | yes |
//! | `Watching` | the exercise's recording; the stage's run is paused | the exercise's | yes |
//! | `Free` | live, without a stage | the knobs only | no |
//! | `Mystery` | live, without a stage, its faults hidden | the task, then the faults | the score |
//! | `Replay` | the recording named on the command line | its stage's, with nothing hidden; none for a free run | no |
//!
//! `behaviour.rs` carries out keys, messages and ticks in each mode; the methods of `Mode` say what a mode allows.
//!
//! A presentation (`App::presenter`) can be shown in several modes. It shows the stage by beats, waits while an exercise is open, and
//! saves no progress. `exercise/visit.rs` opens and leaves exercises, `beats.rs` shows beats, `presenter.rs` begins and ends presentations.
//! `Replay` lasts for the whole session.

mod behaviour;

use super::mystery::MysteryRun;
use super::run::RequestedRun;
use crate::judge::StageReport;
use protocol::{Device, Pair};

/// The mode of the screen.
#[derive(Clone, Debug, Default)]
pub enum Mode {
    #[default]
    Stage,
    /// The exercise at this index is open instead of the stage's text.
    Exercise(usize),
    /// The recorded run of the exercise at this index is shown instead of the live run.
    Watching {
        exercise: usize,
        recording: Replay,
        /// The engine ended meanwhile. Leaving the exercise starts a new one.
        engine_gone: bool,
        /// The stage's run, which is paused meanwhile. `None` if it could not wait.
        held: Option<Box<HeldRun>>,
    },
    Free,
    Mystery(Box<MysteryRun>),
    Replay(Replay),
}

/// The stage's run while a recorded run is watched.
#[derive(Clone, Debug)]
pub struct HeldRun {
    pub run: RequestedRun,
    /// The run made steps and has to be resumed.
    pub resumes: bool,
    pub pair: Option<Pair>,
    pub report: Option<StageReport>,
}

/// A recording on the screen, and the state of its replay.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Replay {
    pub file: String,
    pub device: Device,
    pub date: String,
    /// The number of the stage of its first run. `None` for a free run.
    pub stage: Option<u32>,
    pub paused: bool,
    /// The speed as a multiple of the recorded pace.
    pub speed: f64,
    /// The learner has to find a fault in it, so that signs which reveal the fault at a glance are hidden.
    pub unsolved: bool,
    /// The events come from another program that is still training.
    pub watched: bool,
}

impl Mode {
    /// Returns true if a live engine computes the run on the screen, so that it can be paused, changed and measured.
    pub fn is_live(&self) -> bool {
        self.recording().is_none()
    }

    /// Returns true if the whole session shows a recording, and none of it is the learner's own work.
    pub fn is_replay(&self) -> bool {
        matches!(self, Self::Replay(_))
    }

    /// Returns true if live runs of A and B are on the screen without an exercise, so that they can be toggled, paired and changed.
    pub fn compares(&self) -> bool {
        matches!(self, Self::Stage | Self::Free | Self::Mystery(_))
    }

    /// Returns true if the learner is in a stage. An open exercise may cover its text.
    pub fn has_stage(&self) -> bool {
        match self {
            Self::Replay(recording) => recording.stage.is_some(),
            _ => !matches!(self, Self::Free | Self::Mystery(_)),
        }
    }

    /// Returns true if the stage's text is on the screen, not the text of an exercise.
    pub fn reads_stage(&self) -> bool {
        matches!(self, Self::Stage) || self.is_replay() && self.has_stage()
    }

    /// Returns true if an exercise is open.
    pub fn is_exercise(&self) -> bool {
        matches!(self, Self::Exercise(_) | Self::Watching { .. })
    }

    /// Returns the open mystery.
    pub fn mystery(&self) -> Option<&MysteryRun> {
        match self {
            Self::Mystery(mystery) => Some(mystery),
            _ => None,
        }
    }

    pub(super) fn mystery_mut(&mut self) -> Option<&mut MysteryRun> {
        match self {
            Self::Mystery(mystery) => Some(mystery),
            _ => None,
        }
    }

    /// Returns true if a mystery is open whose faults are still to be found.
    pub fn plays_mystery(&self) -> bool {
        self.mystery().is_some_and(|mystery| mystery.end.is_none())
    }

    /// Returns true if the last pairs had the known-good configuration of a mystery as A.
    pub fn pairs_with_good(&self) -> bool {
        self.mystery()
            .is_some_and(|mystery| mystery.paired_with_good)
    }

    /// Returns the index of the open exercise in the course.
    pub fn exercise(&self) -> Option<usize> {
        match self {
            Self::Exercise(at) | Self::Watching { exercise: at, .. } => Some(*at),
            Self::Stage | Self::Free | Self::Mystery(_) | Self::Replay(_) => None,
        }
    }

    /// Returns true if the screen shows a training of another program while it runs.
    pub fn watches(&self) -> bool {
        self.recording().is_some_and(|recording| recording.watched)
    }

    /// Returns the recording whose events fill the panels. `None` if the events come from a live engine.
    pub fn recording(&self) -> Option<&Replay> {
        match self {
            Self::Watching { recording, .. } | Self::Replay(recording) => Some(recording),
            Self::Stage | Self::Free | Self::Mystery(_) | Self::Exercise(_) => None,
        }
    }

    /// Returns true if the recorded run of an exercise is on the screen.
    pub fn is_watching(&self) -> bool {
        matches!(self, Self::Watching { .. })
    }
}
