//! Exercises beside the stages: a kernel to write in WGSL, runs to think through before they are made, or a recorded run
//! with a fault to name. Data with its checks; what is launched and measured is the engine's business. `exercise.toml` is
//! read here; what a kernel computes and on which buffers is a `KernelSpec`, which the engine gets as it is.

pub mod answers;
pub mod config;
mod detective;
mod parts;
mod read;
mod vary;

pub use config::{ConfigCheck, ConfigMetric};
pub use detective::Detective;
pub use read::read;

use super::placeholder::{Piece, pieces};
use super::{Level, Question, StageFile};
use crate::config::{KNOBS, Knob, RunConfig, Value, nearest};
use crate::protocol::{
    KernelCheck, KernelError, KernelFile, KernelJob, KernelShape, KernelSpec, Sizes,
};

/// One task.
#[derive(Clone, Debug, PartialEq)]
pub struct Exercise {
    /// Key of the learner's progress.
    pub id: String,
    pub title: String,
    pub level: Level,
    /// What to do.
    pub task: String,
    /// `about 3 lines`.
    pub size: String,
    /// Exactly three.
    pub hints: Vec<String>,
    /// Lesson that explains the background.
    pub lesson: Option<String>,
    pub quiz: Vec<Question>,
    /// What to see in a config exercise's figures, once they are there.
    pub debrief: Option<String>,
    pub body: Body,
    /// `exercises/k01-swiglu`.
    pub path: String,
}

impl Exercise {
    /// Its short name: `k01`.
    pub fn label(&self) -> &str {
        let folder = self.path.rsplit('/').next().unwrap_or_default();
        folder.split('-').next().unwrap_or(folder)
    }

    /// Its kernels, if it is about kernels.
    pub fn kernels(&self) -> Option<&Kernels> {
        match &self.body {
            Body::Kernel(kernels) => Some(kernels),
            Body::Config(_) | Body::Detective(_) => None,
        }
    }

    /// Its runs, if it is about runs.
    pub fn configs(&self) -> Option<&Configs> {
        match &self.body {
            Body::Config(configs) => Some(configs),
            Body::Kernel(_) | Body::Detective(_) => None,
        }
    }
}

/// What kind of task it is.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    Kernel(Kernels),
    Config(Configs),
    Detective(Detective),
}

impl Exercise {
    /// `k01-swiglu`
    pub fn folder(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// Whether a learner means this exercise: by its number, its folder or its id.
    pub fn answers_to(&self, name: &str) -> bool {
        self.id == name || self.folder() == name || self.label() == name
    }

    /// What the learner edits.
    pub fn files(&self) -> Vec<StageFile> {
        match &self.body {
            Body::Kernel(kernels) => kernels.kernels.iter().map(|k| k.file.clone()).collect(),
            Body::Config(configs) => vec![StageFile {
                name: config::ANSWERS.to_owned(),
                starter: configs.answers.clone(),
                solution: String::new(),
            }],
            Body::Detective(_) => Vec::new(),
        }
    }
}

/// A kernel exercise: one file, or a forward and a backward one, on the same sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernels {
    pub kernels: Vec<Kernel>,
    /// Sizes to try, small and odd ones first; the last is the one to time.
    pub shapes: Vec<KernelShape>,
    /// Part of the model whose kernel this can replace while it trains.
    pub replaces: Option<String>,
    pub checks: Vec<KernelCheck>,
}

/// One WGSL file.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    pub file: StageFile,
    pub spec: KernelSpec,
}

impl Kernels {
    /// The job for the engine: each file by its name, as `read` finds it.
    pub fn job(
        &self,
        exercise: &str,
        read: impl Fn(&str) -> Result<String, KernelError>,
    ) -> KernelJob {
        let files = self.kernels.iter().map(|kernel| {
            let (text, unreadable) = match read(&kernel.file.name) {
                Ok(text) => (text, None),
                Err(error) => (String::new(), Some(error)),
            };
            KernelFile {
                name: kernel.file.name.clone(),
                text,
                unreadable,
                starter: kernel.file.starter.clone(),
                solution: kernel.file.solution.clone(),
                spec: kernel.spec.clone(),
            }
        });
        KernelJob {
            id: 0,
            exercise: exercise.to_owned(),
            files: files.collect(),
            shapes: self.shapes.clone(),
            checks: self.checks.clone(),
            replaces: self.replaces.clone(),
            timed: true,
            thorough: false,
        }
    }
}

/// The WGSL text with every `{{N}}` replaced by its number; the error has the line of the place, from 1.
pub fn substitute(text: &str, sizes: &Sizes) -> Result<String, (usize, String)> {
    let mut out = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Name(name) => match sizes.get(name) {
                Some(n) => out.push_str(&n.to_string()),
                None => return Err((out.lines().count().max(1), unknown_size(name, sizes))),
            },
        }
    }
    Ok(out)
}

fn unknown_size(name: &str, sizes: &Sizes) -> String {
    let near = nearest(name, sizes.keys().map(String::as_str));
    format!("unknown size `{name}`; the nearest known one is `{near}`")
}

/// A config exercise: one configuration, what to vary, and what to say about it before it is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Configs {
    pub text: String,
    pub config: RunConfig,
    /// `answer.toml` as it begins: every answer is still a question mark.
    pub answers: String,
    pub checks: Vec<ConfigCheck>,
    /// Steps of each run.
    pub steps: u64,
    pub sweep: Option<Sweep>,
    /// Changes to put in order, by their effect on the step time, before they are measured.
    pub rank: Vec<Change>,
}

/// One key over several values.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    pub key: String,
    pub values: Vec<String>,
    /// Other settings to repeat the sweep with, such as `model.attention=flash`.
    pub with: Vec<String>,
    /// Metrics to tabulate.
    pub metrics: Vec<String>,
}

/// One optimisation to rank.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    pub label: String,
    /// `model.norm=fused`
    pub set: Vec<String>,
}

impl Configs {
    /// The letters of the changes to rank.
    pub fn letters(&self) -> Vec<String> {
        (b'a'..=b'z')
            .take(self.rank.len())
            .map(|letter| char::from(letter).to_string())
            .collect()
    }

    /// Every run of the sweep, in order: the setting it is repeated with, and the value.
    pub fn points(&self) -> Vec<(Option<&str>, &str)> {
        let Some(sweep) = &self.sweep else {
            return Vec::new();
        };
        let with: Vec<Option<&str>> = match sweep.with.as_slice() {
            [] => vec![None],
            with => with.iter().map(|set| Some(set.as_str())).collect(),
        };
        with.into_iter()
            .flat_map(|with| sweep.values.iter().map(move |value| (with, value.as_str())))
            .collect()
    }
}

/// The configuration with `section.key=value` applied, if that can run.
pub fn apply(config: &RunConfig, assignment: &str) -> Result<RunConfig, String> {
    let (path, word) = assignment
        .split_once('=')
        .ok_or_else(|| format!("`{assignment}` has no `=`; write model.norm=fused"))?;
    let mut changed = config.clone();
    let knob = KNOBS.iter().find(|knob| knob.path == path.trim());
    let knob = knob.map_or_else(|| Knob::find(path.trim()), Ok)?;
    knob.set(&mut changed, &Value::from_word(word.trim()))?;
    match changed.problems().first() {
        None => Ok(changed),
        Some(problem) => Err(problem.what.clone()),
    }
}
