//! A kernel exercise: the kernels that a learner writes in WGSL, and the job for the engine that checks them, with its files, sizes and
//! numbers. A `KernelSpec` says what a kernel computes and on which buffers; the engine gets it unchanged.

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

/// The seed of checks that use the same numbers every time.
pub const SEED: u64 = 42;

/// A kernel exercise. It has one file, or a forward and a backward one with equal sizes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kernels {
    pub kernels: Vec<Kernel>,
    /// The shapes at which a check runs the kernels, small and odd ones first. The last shape is timed.
    pub shapes: Vec<KernelShape>,
    /// The ranges from which a check draws further shapes.
    pub hidden: DrawnSizes,
    /// The part of the model whose kernel the learner's kernel can replace while the model trains.
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
                fail(format!(
                    "{name} and its solution say the same; the starter must hold a task"
                ));
            }
            let texts = [
                ("", &file.starter),
                ("the solution of ", &file.solution),
                ("the reference of ", &spec.reference),
            ];
            for (role, text) in texts {
                if let Some(shape) = self.shapes.first()
                    && let Err(other) = template::fill(text, &shape.sizes)
                {
                    let line = line_of(text, other.place.start);
                    let known = shape.sizes.keys().map(String::as_str);
                    let problem = unknown("size", &other.name, known);
                    fail(format!("{role}{name}, line {line}: {problem}"));
                }
            }
        }
        found
    }

    /// Adds the shapes at which a model of this configuration launches the kernels, before the shape that is timed.
    pub fn in_model(mut self, config: &RunConfig) -> Self {
        for shape in self.launches(config) {
            let last = self.shapes.len().saturating_sub(1);
            let is_new = |other: &KernelShape| other.sizes != shape.sizes;
            if self.shapes[..last].iter().all(is_new) {
                self.shapes.insert(last, shape);
            }
        }
        self
    }

    /// Returns the shapes at which a model of this configuration launches the kernels; empty if it does not use them.
    fn launches(&self, config: &RunConfig) -> Vec<KernelShape> {
        let model = &config.model;
        let context = config.train.context;
        let tokens = config.train.batch * context;
        let head = model.hidden / model.heads.max(1);
        match self.replaces.as_deref() {
            Some("mlp.activation") => vec![shape("this model", &[("N", tokens * model.ffn)])],
            Some("norm1") => {
                let sizes = [("ROWS", tokens), ("COLS", model.hidden)];
                vec![shape("this model", &sizes)]
            }
            Some("attention.rope") => {
                let queries = [("T", context), ("H", model.heads), ("D", head)];
                let keys = [("T", context), ("H", model.kv_heads), ("D", head)];
                vec![
                    shape("this model's queries", &queries),
                    shape("this model's keys", &keys),
                ]
            }
            _ => Vec::new(),
        }
    }

    /// Returns the job for the engine. `seed` determines its numbers and drawn sizes; `read` returns the text of the learner's file with a
    /// given name.
    pub fn job(
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
        let texts: Vec<&str> = files.iter().map(|file| file.text.as_str()).collect();
        let course_texts: Vec<&str> = files
            .iter()
            .flat_map(|file| [file.starter.as_str(), &file.solution])
            .collect();
        let drawn = self
            .hidden
            .shapes(seed, &self.shapes, &texts, &course_texts);
        let mut shapes = self.shapes.clone();
        let last = shapes.len().saturating_sub(1);
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

/// Returns the shape with this label and these sizes.
fn shape(label: &str, sizes: &[(&str, usize)]) -> KernelShape {
    KernelShape {
        label: label.to_owned(),
        sizes: sizes
            .iter()
            .map(|(name, size)| ((*name).to_owned(), *size as u64))
            .collect(),
        ..KernelShape::default()
    }
}
