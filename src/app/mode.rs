//! What the screen is used for. There is one mode at a time, and each holds what is suspended under it:
//!
//! | mode | its run | its text | progress is kept | suspended under it |
//! |---|---|---|---|---|
//! | `Stage` | live | the stage's | yes | nothing |
//! | `Presenting` | live | the stage's, by beats | no | the learner's own study |
//! | `Exercise` | live; it pauses for a measurement | the exercise's | yes | the stage, or a presentation (then nothing is kept) |
//! | `Watching` | the exercise's recording | the exercise's | as above | as above; the engine is stopped |
//! | `Replay` | the recording named on the command line | the stage's, nothing hidden | no | while presented: the study |
//!
//! `exercise/visit.rs` opens and leaves exercises, `beats.rs` begins and ends presentations; `Replay` lasts for the whole
//! session.

use super::study::Study;
use crate::protocol::Device;

/// What the screen is used for now.
#[derive(Clone, Debug, Default)]
pub enum Mode {
    #[default]
    Stage,
    Presenting(Presentation),
    Exercise(OpenExercise),
    Watching {
        exercise: OpenExercise,
        recording: Recording,
        /// The engine ended meanwhile; leaving starts a new one.
        engine_gone: bool,
    },
    Replay {
        recording: Recording,
        presentation: Option<Presentation>,
    },
}

/// Stages shown to an audience, beat by beat.
#[derive(Clone, Debug)]
pub struct Presentation {
    /// Index into the beats of the stage.
    pub beat: usize,
    /// The learner's own study, which comes back afterwards.
    pub own: Box<Study>,
}

/// The exercise that stands in the place of the stage's text.
#[derive(Clone, Debug, Default)]
pub struct OpenExercise {
    /// Index into the course's exercises.
    pub at: usize,
    /// Hints on screen.
    pub hints: u32,
    /// The task or a hint comes first on the page, not the last check: until the learner saves.
    pub text_first: bool,
    /// The presentation that goes on when the exercise is left.
    pub under: Option<Presentation>,
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
    pub riddle: bool,
}

impl Mode {
    /// The open exercise.
    pub fn exercise(&self) -> Option<&OpenExercise> {
        match self {
            Self::Exercise(exercise) | Self::Watching { exercise, .. } => Some(exercise),
            Self::Stage | Self::Presenting(_) | Self::Replay { .. } => None,
        }
    }

    /// The same, to be changed.
    pub(super) fn exercise_mut(&mut self) -> Option<&mut OpenExercise> {
        match self {
            Self::Exercise(exercise) | Self::Watching { exercise, .. } => Some(exercise),
            Self::Stage | Self::Presenting(_) | Self::Replay { .. } => None,
        }
    }

    /// The recording whose events fill the panels; without one they are a live engine's.
    pub fn recording(&self) -> Option<&Recording> {
        match self {
            Self::Watching { recording, .. } | Self::Replay { recording, .. } => Some(recording),
            Self::Stage | Self::Presenting(_) | Self::Exercise(_) => None,
        }
    }

    /// The same, to be changed.
    pub(super) fn recording_mut(&mut self) -> Option<&mut Recording> {
        match self {
            Self::Watching { recording, .. } | Self::Replay { recording, .. } => Some(recording),
            Self::Stage | Self::Presenting(_) | Self::Exercise(_) => None,
        }
    }

    /// Whether the recorded run of an exercise is watched.
    pub fn is_watching(&self) -> bool {
        matches!(self, Self::Watching { .. })
    }

    /// The beat on the screen.
    pub fn beat(&self) -> Option<usize> {
        match self {
            Self::Presenting(presentation) => Some(presentation.beat),
            Self::Replay { presentation, .. } => Some(presentation.as_ref()?.beat),
            Self::Stage | Self::Exercise(_) | Self::Watching { .. } => None,
        }
    }

    /// Goes to another beat of the presentation on the screen.
    pub(super) fn set_beat(&mut self, beat: usize) {
        match self {
            Self::Presenting(presentation)
            | Self::Replay {
                presentation: Some(presentation),
                ..
            } => presentation.beat = beat,
            _ => {}
        }
    }

    /// Whether what happens now is the learner's own progress.
    pub fn keeps_progress(&self) -> bool {
        match self {
            Self::Stage => true,
            Self::Exercise(exercise) | Self::Watching { exercise, .. } => exercise.under.is_none(),
            Self::Presenting(_) | Self::Replay { .. } => false,
        }
    }
}
