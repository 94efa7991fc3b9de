//! Kernels to write in WGSL, and their check: the files, the sizes and the numbers of a job for the engine, which launches and
//! measures. What a kernel computes and on which buffers is a `KernelSpec`, which the engine gets unchanged.

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

/// Seed of checks that have to be the same every time.
const SEED: u64 = 42;

/// A kernel exercise: one file, or a forward and a backward one, on the same sizes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kernels {
    pub kernels: Vec<Kernel>,
    /// Shapes of a check, small and odd ones first; the last is timed.
    pub shapes: Vec<KernelShape>,
    /// Ranges from which a check draws further shapes.
    pub hidden: DrawnSizes,
    /// Part of the model whose kernel this can replace while it trains.
    pub replaces: Option<String>,
    pub checks: Vec<KernelCheck>,
    pub wrong: Vec<WrongSolution>,
}

/// A solution that looks right and misses an idea. `course check` verifies that it is refused and that the message names the idea.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongSolution {
    /// `no-running-maximum`.
    pub name: String,
    /// Number of the kernel it replaces.
    pub kernel: usize,
    pub text: String,
    /// Words of the expected message.
    pub refused: String,
}

/// One WGSL file.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    pub file: StageFile,
    pub spec: KernelSpec,
}

impl Kernels {
    /// What is wrong with the texts of the files; `toml` names exercise.toml in messages.
    pub(super) fn problems(&self, toml: &str) -> Vec<FileError> {
        let mut found = Vec::new();
        for Kernel { file, spec } in &self.kernels {
            let mut fail = |what| found.push(FileError::new(toml, 0, what));
            let name = &file.name;
            if file.starter == file.solution {
                let what = "and its solution say the same; the starter must hold a task";
                fail(format!("{name} {what}"));
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

    /// Inserts the shapes at which a model of this configuration launches the kernels, before the timed one.
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
            let sizes = sizes.into_iter().map(|(name, n)| (name.to_owned(), n));
            let shape = KernelShape {
                label: label.to_owned(),
                sizes: sizes.collect(),
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

    /// The job for the engine, with always the same numbers; `read` reads a file by its name.
    pub fn job(
        &self,
        exercise: &str,
        read: impl Fn(&str) -> Result<String, KernelError>,
    ) -> KernelJob {
        self.job_of_seed(exercise, SEED, read)
    }

    /// The job with the numbers and the drawn sizes of a seed.
    pub fn job_of_seed(
        &self,
        exercise: &str,
        seed: u64,
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
        let files: Vec<KernelFile> = files.collect();
        let texts: Vec<&str> = files.iter().map(|it| it.text.as_str()).collect();
        let own = files
            .iter()
            .flat_map(|it| [it.starter.as_str(), it.solution.as_str()]);
        let own: Vec<&str> = own.collect();
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
