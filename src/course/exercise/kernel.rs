//! The kernels that a learner writes in WGSL, and the job for the engine that checks them: files, sizes and numbers. A `KernelSpec` says
//! what a kernel computes and on which buffers; the engine gets it unchanged.

mod drawn;
mod read;

pub use drawn::{DrawnSizes, SizeRange};
pub(super) use read::read;

use crate::course::StageFile;
use crate::course::config_file::{FileError, line_of};
use protocol::config::{RunConfig, unknown};
use protocol::{
    KernelCheck, KernelError, KernelFile, KernelJob, KernelShape, KernelSpec, template,
};

/// The seed of checks that have to be equal every time.
const SEED: u64 = 42;

/// A kernel exercise. It has one file, or a forward and a backward one with equal sizes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kernels {
    pub kernels: Vec<Kernel>,
    /// The shapes of a check, small and odd ones first. The last shape is timed.
    pub shapes: Vec<KernelShape>,
    /// The ranges from which a check draws further shapes.
    pub hidden: DrawnSizes,
    /// The part of the model whose kernel this one can replace while the model trains.
    pub replaces: Option<String>,
    pub checks: Vec<KernelCheck>,
    pub wrong: Vec<WrongSolution>,
}

/// A solution that looks right and misses an idea. `course check` expects that it is refused with a message that names the idea.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongSolution {
    /// The name: `no-running-maximum`.
    pub name: String,
    /// The index of the kernel that it replaces.
    pub kernel: usize,
    pub text: String,
    /// The words that the message must contain.
    pub refused: String,
}

/// A WGSL file, and what it has to compute.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    pub file: StageFile,
    pub spec: KernelSpec,
}

impl Kernels {
    /// Returns the faults of the texts. `toml` is the name of exercise.toml in messages.
    pub(super) fn problems(&self, toml: &str) -> Vec<FileError> {
        let mut found = Vec::new();
        for Kernel { file, spec } in &self.kernels {
            let mut fail = |message| found.push(FileError::new(toml, 0, message));
            let name = &file.name;
            if file.starter == file.solution {
                let message = "and its solution say the same; the starter must hold a task";
                fail(format!("{name} {message}"));
            }
            for text in [&file.starter, &file.solution, &spec.reference] {
                if let Some(shape) = self.shapes.first()
                    && let Err(other) = template::fill(text, &shape.sizes)
                {
                    let known = shape.sizes.keys().map(String::as_str);
                    fail(format!(
                        "{name}, its solution or its reference, line {}: {}",
                        line_of(text, other.place.start),
                        unknown("size", &other.name, known)
                    ));
                }
            }
        }
        found
    }

    /// Adds the shapes at which a model of this configuration launches the kernels, before the shape that is timed.
    pub fn in_model(mut self, config: &RunConfig) -> Self {
        let (model, train) = (&config.model, &config.train);
        let tokens = (train.batch * train.context) as u64;
        let head = (model.hidden / model.heads.max(1)) as u64;
        let rotated = |heads: usize| {
            vec![
                ("T", train.context as u64),
                ("H", heads as u64),
                ("D", head),
            ]
        };
        let launches = match self.replaces.as_deref() {
            Some("mlp.activation") => vec![("this model", vec![("N", tokens * model.ffn as u64)])],
            Some("norm1") => {
                let sizes = vec![("ROWS", tokens), ("COLS", model.hidden as u64)];
                vec![("this model", sizes)]
            }
            Some("attention.rope") => vec![
                ("this model's queries", rotated(model.heads)),
                ("this model's keys", rotated(model.kv_heads)),
            ],
            _ => Vec::new(),
        };
        for (label, sizes) in launches {
            let named = sizes.into_iter().map(|(name, n)| (name.to_owned(), n));
            let shape = KernelShape {
                label: label.to_owned(),
                sizes: named.collect(),
                ..KernelShape::default()
            };
            let last = self.shapes.len().saturating_sub(1);
            let mut others = self.shapes[..last].iter();
            if others.all(|other| other.sizes != shape.sizes) {
                self.shapes.insert(last, shape);
            }
        }
        self
    }

    /// Returns the job for the engine, with equal numbers every time. `read` reads the learner's file with a name.
    pub fn job(
        &self,
        exercise: &str,
        read: impl Fn(&str) -> Result<String, KernelError>,
    ) -> KernelJob {
        self.job_of_seed(exercise, SEED, read)
    }

    /// Returns the job with the numbers and the drawn sizes of a seed.
    pub fn job_of_seed(
        &self,
        exercise: &str,
        seed: u64,
        read: impl Fn(&str) -> Result<String, KernelError>,
    ) -> KernelJob {
        let mut files = Vec::new();
        for Kernel { file, spec } in &self.kernels {
            let (text, unreadable) = match read(&file.name) {
                Ok(text) => (text, None),
                Err(error) => (String::new(), Some(error)),
            };
            files.push(KernelFile {
                name: file.name.clone(),
                text,
                unreadable,
                starter: file.starter.clone(),
                solution: file.solution.clone(),
                spec: spec.clone(),
            });
        }
        let mut texts: Vec<&str> = Vec::new();
        let mut own: Vec<&str> = Vec::new();
        for file in &files {
            texts.push(&file.text);
            own.extend([file.starter.as_str(), &file.solution]);
        }
        let mut shapes = self.shapes.clone();
        let last = shapes.len().saturating_sub(1);
        let drawn = self.hidden.shapes(seed, &self.shapes, &texts, &own);
        shapes.splice(last..last, drawn);
        KernelJob {
            id: 0,
            exercise: exercise.to_owned(),
            files,
            shapes,
            seed,
            checks: self.checks.clone(),
            replaces: self.replaces.clone(),
            timed: true,
            thorough: false,
        }
    }
}
