//! What the screen is used for. There is one mode at a time:
//!
//! | mode | its run | its text | progress is kept |
//! |---|---|---|---|
//! | `Stage` | live | the stage's | yes |
//! | `Exercise` | live; it pauses for a measurement | the exercise's | yes |
//! | `Watching` | the exercise's recording; the stage's run is paused | the exercise's | yes |
//! | `Free` | live, of no stage | none: the knobs | no |
//! | `Mystery` | live, of no stage, its faults hidden | the task, then the faults | its score |
//! | `Replay` | the recording named on the command line | that of its stage, nothing hidden; none for a free run | no |
//!
//! `behaviour.rs` says what a key, a message and a tick do in each; the methods of `Mode` say what a mode allows.
//!
//! Beside it there may be a presentation (`App::presentation`): it shows the stage by beats, waits while an exercise is open, and
//! keeps no progress. `exercise/visit.rs` opens and leaves exercises, `beats.rs` shows beats, `presenter.rs` begins and ends presentations;
//! `Replay` lasts for the whole session.

mod behaviour;

use super::mystery::MysteryRun;
use super::run::RequestedRun;
use crate::judge::StageReport;
use protocol::{Device, Pair};

/// What the screen is used for now.
#[derive(Clone, Debug, Default)]
pub enum Mode {
    #[default]
    Stage,
    /// An exercise stands in the place of the stage's text: its place in the course.
    Exercise(usize),
    Watching {
        exercise: usize,
        recording: Replay,
        /// The engine ended meanwhile; leaving starts a new one.
        engine_gone: bool,
        /// The stage's run, which waits meanwhile; none where it could not.
        held: Option<Box<HeldRun>>,
    },
    Free,
    Mystery(Box<MysteryRun>),
    Replay(Replay),
}

/// The stage's run while a recorded one is watched.
#[derive(Clone, Debug)]
pub struct HeldRun {
    pub run: RequestedRun,
    /// It was running and goes on.
    pub resumes: bool,
    pub pair: Option<Pair>,
    pub report: Option<StageReport>,
}

/// A recording that is shown, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    pub file: String,
    pub device: Device,
    pub date: String,
    /// The stage that its first run is of; none for a free run.
    pub stage: Option<u32>,
    pub paused: bool,
    pub speed: f64,
    /// It holds a fault to be named: what would name it at a glance is not shown.
    pub unsolved: bool,
    /// It is no recording yet: a training of another program that goes on.
    pub watched: bool,
}

impl Mode {
    /// A live engine computes what is shown: it can be paused, changed and measured.
    pub fn is_live(&self) -> bool {
        self.recording().is_none()
    }

    /// Everything is read from a recording, and nothing of it is the learner's own work.
    pub fn is_replay(&self) -> bool {
        matches!(self, Self::Replay(_))
    }

    /// Live runs of A and B are all that is shown: they can be toggled, paired and changed.
    pub fn compares(&self) -> bool {
        matches!(self, Self::Stage | Self::Free | Self::Mystery(_))
    }

    /// The learner is in a stage, though an exercise may cover its text.
    pub fn has_stage(&self) -> bool {
        match self {
            Self::Replay(recording) => recording.stage.is_some(),
            _ => !matches!(self, Self::Free | Self::Mystery(_)),
        }
    }

    /// The stage's text is what is read.
    pub fn reads_stage(&self) -> bool {
        matches!(self, Self::Stage) || self.is_replay() && self.has_stage()
    }

    /// An exercise stands in the place of the stage's text.
    pub fn is_exercise(&self) -> bool {
        matches!(self, Self::Exercise(_) | Self::Watching { .. })
    }

    /// The open mystery.
    pub fn mystery(&self) -> Option<&MysteryRun> {
        match self {
            Self::Mystery(mystery) => Some(mystery),
            _ => None,
        }
    }

    /// The same, to be changed.
    pub(super) fn mystery_mut(&mut self) -> Option<&mut MysteryRun> {
        match self {
            Self::Mystery(mystery) => Some(mystery),
            _ => None,
        }
    }

    /// A mystery whose faults are still to be found.
    pub fn plays_mystery(&self) -> bool {
        self.mystery().is_some_and(|it| it.end.is_none())
    }

    /// The last pairs had the known-good configuration of a mystery as A.
    pub fn pairs_with_good(&self) -> bool {
        self.mystery().is_some_and(|it| it.paired_with_good)
    }

    /// The place of the open exercise in the course.
    pub fn exercise(&self) -> Option<usize> {
        match self {
            Self::Exercise(at) | Self::Watching { exercise: at, .. } => Some(*at),
            Self::Stage | Self::Free | Self::Mystery(_) | Self::Replay(_) => None,
        }
    }

    /// A training of another program is shown while it runs.
    pub fn watches(&self) -> bool {
        self.recording().is_some_and(|it| it.watched)
    }

    /// The recording whose events fill the panels; without one they are a live engine's.
    pub fn recording(&self) -> Option<&Replay> {
        match self {
            Self::Watching { recording, .. } | Self::Replay(recording) => Some(recording),
            Self::Stage | Self::Free | Self::Mystery(_) | Self::Exercise(_) => None,
        }
    }

    /// The same, to be changed.
    pub(super) fn recording_mut(&mut self) -> Option<&mut Replay> {
        match self {
            Self::Watching { recording, .. } | Self::Replay(recording) => Some(recording),
            Self::Stage | Self::Free | Self::Mystery(_) | Self::Exercise(_) => None,
        }
    }

    /// Whether the recorded run of an exercise is watched.
    pub fn is_watching(&self) -> bool {
        matches!(self, Self::Watching { .. })
    }
}
