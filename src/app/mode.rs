//! What the screen is used for. There is one mode at a time:
//!
//! | mode | its run | its text | progress is kept |
//! |---|---|---|---|
//! | `Stage` | live | the stage's | yes |
//! | `Exercise` | live; it pauses for a measurement | the exercise's | yes |
//! | `Watching` | the exercise's recording; the stage's run is paused | the exercise's | yes |
//! | `Free` | live, of no stage | none: the knobs | no |
//! | `MysteryRun` | live, of no stage, its faults hidden | the task, then the faults | its score |
//! | `Replay` | the recording named on the command line | the stage's, nothing hidden | no |
//!
//! Beside it there may be a presentation (`App::presentation`): it shows the stage by beats, waits while an exercise is open, and
//! keeps no progress. `exercise/visit.rs` opens and leaves exercises, `beats.rs` shows beats, begins and ends presentations; `Replay` lasts
//! for the whole session.

use std::collections::{BTreeMap, BTreeSet};

use super::comparison::Comparison;
use super::mystery::MysteryRun;
use super::run::{RequestedRun, SlotRun};
use super::study::Study;
use crate::judge::Report;
use crate::protocol::{Device, Pair};

/// What the screen is used for now.
#[derive(Clone, Debug, Default)]
pub enum Mode {
    #[default]
    Stage,
    Exercise(OpenExercise),
    Watching {
        exercise: OpenExercise,
        recording: Recording,
        /// The engine ended meanwhile; leaving starts a new one.
        engine_gone: bool,
        /// The stage's run, which waits meanwhile; none where it could not.
        held: Option<Box<HeldRun>>,
    },
    Free,
    Mystery(Box<MysteryRun>),
    Replay(Recording),
}

/// Stages shown to an audience, beat by beat.
#[derive(Clone, Debug)]
pub struct Presentation {
    /// Index into the beats of the stage.
    pub beat: usize,
    /// What was measured in other stages, to be shown again.
    pub kept: BTreeMap<usize, StageRuns>,
    pub audience_screen: AudienceScreen,
    /// Stages whose right choice is marked at the beat of the vote.
    pub answered: BTreeSet<usize>,
    /// How long each beat was shown, by stage and place.
    pub used_ms: BTreeMap<(usize, usize), u64>,
    /// The learner's own study, which comes back afterwards.
    pub own: Box<Study>,
    pub own_comparison: Box<Comparison>,
}

/// Whether the audience sees what happens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AudienceScreen {
    #[default]
    Live,
    /// The screen is empty.
    Blank,
    /// The screen stays as it was then: `App::frozen`.
    Frozen,
}

/// The runs and the pairs of a stage.
#[derive(Clone, Debug)]
pub struct StageRuns {
    pub slots: [SlotRun; 2],
    pub pair: Option<Pair>,
}

/// The stage's run while a recorded one is watched.
#[derive(Clone, Debug)]
pub struct HeldRun {
    pub run: RequestedRun,
    /// It was running and goes on.
    pub resumes: bool,
    pub pair: Option<Pair>,
    pub report: Option<Report>,
}

/// The exercise that stands in the place of the stage's text.
#[derive(Clone, Copy, Debug)]
pub struct OpenExercise {
    /// Index into the course's exercises.
    pub at: usize,
    /// The task or a hint comes first on the page, not the last check: until the learner saves.
    pub text_first: bool,
}

/// A recording that is shown, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    pub file: String,
    pub device: Device,
    pub date: String,
    pub paused: bool,
    pub speed: f64,
    /// It holds a fault to be named: what would name it at a glance is not shown.
    pub unsolved: bool,
}

impl Mode {
    /// The open exercise.
    pub fn exercise(&self) -> Option<&OpenExercise> {
        match self {
            Self::Exercise(exercise) | Self::Watching { exercise, .. } => Some(exercise),
            Self::Stage | Self::Free | Self::Mystery(_) | Self::Replay(_) => None,
        }
    }

    /// The same, to be changed.
    pub(super) fn exercise_mut(&mut self) -> Option<&mut OpenExercise> {
        match self {
            Self::Exercise(exercise) | Self::Watching { exercise, .. } => Some(exercise),
            Self::Stage | Self::Free | Self::Mystery(_) | Self::Replay(_) => None,
        }
    }

    /// The recording whose events fill the panels; without one they are a live engine's.
    pub fn recording(&self) -> Option<&Recording> {
        match self {
            Self::Watching { recording, .. } | Self::Replay(recording) => Some(recording),
            Self::Stage | Self::Free | Self::Mystery(_) | Self::Exercise(_) => None,
        }
    }

    /// The same, to be changed.
    pub(super) fn recording_mut(&mut self) -> Option<&mut Recording> {
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
