//! Reads one `exercise.toml` with the files beside it, raw to checked. An exercise with a fault is reported and left out.

use super::parts::{binding, check, of_word, product, shape};
use super::vary::{change, sweep};
use super::{Body, Change, Configs, Detective, Exercise, Kernel, Kernels, config, detective};
use crate::config::file::{self, FileError};
use crate::course::fields::{Fields, Table, root};
use crate::course::load::cleaned;
use crate::course::source::Source;
use crate::course::stage::{plain_file, plain_name, question};
use crate::course::{Level, StageFile};
use crate::protocol::{
    KernelBinding, KernelCheck, KernelRole, KernelShape, KernelSpec, KernelStarter,
};

const KEYS: &[&str] = &[
    "id",
    "kind",
    "title",
    "level",
    "task",
    "size",
    "hints",
    "lesson",
    "quiz",
    "replaces",
    "kernel",
    "shape",
    "check",
    "sweep",
    "rank",
    "steps",
    "debrief",
    "question",
    "recording",
    "hide",
];

/// As `KernelReference` has them.
const REFERENCES: &[&str] = &[
    "swiglu",
    "swiglu-backward",
    "rms-norm",
    "heads-first",
    "matmul",
    "rope",
    "softmax",
    "attention",
    "adamw",
    "residual",
];

/// Reads the folder `exercises/kNN-name`, `cNN-name` or `dNN-name`.
pub fn read(source: &Source, folder: &str, problems: &mut Vec<FileError>) -> Option<Exercise> {
    let path = format!("exercises/{folder}");
    let toml = format!("{path}/exercise.toml");
    let raw = source
        .read(&toml)
        .map_err(|error| problems.push(error))
        .ok()?;
    let mut fields = Fields::new(&raw, &source.shown(&toml));
    let document = fields.document();
    let mut reader = Reader {
        source,
        path: &path,
        problems: Vec::new(),
        missing: false,
    };
    let found = document
        .as_ref()
        .map(|document| reader.exercise(&mut fields, root(document)));
    let failed = fields.failed || reader.missing;
    problems.append(&mut fields.problems);
    problems.append(&mut reader.problems);
    found.flatten().filter(|_| !failed)
}

struct Reader<'a> {
    source: &'a Source,
    path: &'a str,
    problems: Vec<FileError>,
    missing: bool,
}

impl Reader<'_> {
    fn exercise(&mut self, fields: &mut Fields<'_>, t: Table<'_>) -> Option<Exercise> {
        fields.known(t, KEYS);
        let id = fields.text(t, "id");
        if !id.is_empty() && !plain_name(&id) {
            let line = fields.line_of(t, "id");
            fields.fail(
                line,
                "`id` takes lower-case letters, digits and `-`, such as \"swiglu\"".to_owned(),
            );
        }
        let hints = fields.texts(t, "hints");
        if hints.len() != 3 && !fields.was_meant(t, "hints") {
            let line = fields.line_of(t, "hints");
            fields.fail(
                line,
                format!(
                    "has {} hints; write exactly 3, the last all but gives it away",
                    hints.len()
                ),
            );
        }
        let quiz = fields
            .tables(t, "quiz")
            .into_iter()
            .map(|table| question(fields, table))
            .collect();
        let kind = fields.word(t, "kind", &["kernel", "config", "detective"]);
        if kind.is_none() && !Fields::has(t, "kind") {
            fields.missing(t, "kind", "= \"kernel\"");
        }
        let body = match kind?.as_str() {
            "kernel" => Body::Kernel(self.kernels(fields, t)),
            "config" => Body::Config(self.configs(fields, t)?),
            _ => Body::Detective(self.detective(fields, t)?),
        };
        let level = fields
            .word(t, "level", Level::NAMES)
            .and_then(|word| Level::parse(&word))
            .unwrap_or(Level::Advanced);
        Some(Exercise {
            id,
            title: fields.text(t, "title"),
            level,
            task: fields.text(t, "task"),
            size: fields.text(t, "size"),
            hints,
            lesson: fields.optional_text(t, "lesson"),
            quiz,
            debrief: fields.optional_text(t, "debrief"),
            body,
            path: self.path.to_owned(),
        })
    }

    fn kernels(&mut self, fields: &mut Fields<'_>, t: Table<'_>) -> Kernels {
        let shapes: Vec<KernelShape> = fields
            .tables(t, "shape")
            .into_iter()
            .map(|table| shape(fields, table))
            .collect();
        if shapes.is_empty() {
            fields.fail(
                1,
                "has no shape; write at least one `[[shape]]` with a label and its sizes"
                    .to_owned(),
            );
        }
        let kernels: Vec<Kernel> = fields
            .tables(t, "kernel")
            .into_iter()
            .map(|table| self.kernel(fields, table, &shapes))
            .collect();
        if kernels.is_empty() {
            fields.fail(
                1,
                "has no kernel; write at least one `[[kernel]]`".to_owned(),
            );
        }
        let checks: Vec<KernelCheck> = fields
            .tables(t, "check")
            .into_iter()
            .map(|table| check(fields, table))
            .collect();
        if !checks
            .iter()
            .any(|check| check.starter == KernelStarter::Fails)
        {
            fields.fail(
                1,
                "no check fails on the starter; leave out `starter` on one".to_owned(),
            );
        }
        Kernels {
            kernels,
            shapes,
            replaces: fields.optional_text(t, "replaces"),
            checks,
        }
    }

    fn kernel(&mut self, fields: &mut Fields<'_>, t: Table<'_>, shapes: &[KernelShape]) -> Kernel {
        fields.known(
            t,
            &[
                "starter",
                "solution",
                "reference",
                "grid",
                "tolerance",
                "binding",
            ],
        );
        let starter = fields
            .optional_text(t, "starter")
            .unwrap_or_else(|| "starter.wgsl".to_owned());
        let solution = fields
            .optional_text(t, "solution")
            .unwrap_or_else(|| "kernel.wgsl".to_owned());
        let mut named = true;
        for (key, name) in [("starter", &starter), ("solution", &solution)] {
            if !plain_file(name, &["wgsl"]) {
                named = false;
                let line = fields.line_of(t, key);
                fields.fail(
                    line,
                    format!("`{key}` is `{name}`; name a .wgsl file beside exercise.toml"),
                );
            }
        }
        let reference = fields.word(t, "reference", REFERENCES);
        if reference.is_none() && !Fields::has(t, "reference") {
            fields.missing(t, "reference", "= \"matmul\"");
        }
        let bindings: Vec<KernelBinding> = fields
            .tables(t, "binding")
            .into_iter()
            .map(|table| binding(fields, table, shapes))
            .collect();
        if !bindings
            .iter()
            .any(|binding| binding.role != KernelRole::In)
        {
            fields.fail(
                t.line,
                "writes no buffer; give one `[[kernel.binding]]` the role \"out\"".to_owned(),
            );
        }
        let line = fields.line_of(t, "grid");
        let grid = fields.texts(t, "grid");
        let grid = grid
            .iter()
            .take(3)
            .map(|text| product(fields, line, text, shapes, &["WX", "WY", "WZ"]))
            .collect();
        let paths = [
            format!("{}/{starter}", self.path),
            format!("{}/solution/{solution}", self.path),
        ];
        // A name that is none was reported; nothing is read in its place.
        let [task, solved] = paths.map(|path| match named {
            true => self.text(&path),
            false => String::new(),
        });
        let file = StageFile {
            starter: task,
            solution: solved,
            name: starter,
        };
        Kernel {
            file,
            spec: KernelSpec {
                reference: of_word(reference),
                bindings,
                grid,
                tolerance: fields.number(t, "tolerance").unwrap_or(1e-4),
            },
        }
    }

    fn configs(&mut self, fields: &mut Fields<'_>, t: Table<'_>) -> Option<Configs> {
        let path = format!("{}/config.toml", self.path);
        let raw = self.text(&path);
        let config = match file::parse(&raw, &self.source.shown(&path)) {
            Ok(config) => config,
            Err(error) => {
                self.problems.push(error);
                self.missing = true;
                return None;
            }
        };
        let sweep = fields
            .table(t, "sweep")
            .map(|table| sweep(fields, table, &config));
        let rank: Vec<Change> = fields
            .tables(t, "rank")
            .into_iter()
            .map(|table| change(fields, table, &config))
            .collect();
        if sweep.is_none() && rank.is_empty() {
            fields.fail(
                1,
                "varies nothing; write a `[sweep]` or several `[[rank]]`".to_owned(),
            );
        }
        let answers = self.text(&format!("{}/{}", self.path, config::ANSWERS));
        let checks = config::read(fields, t, sweep.as_ref(), rank.len());
        let shown = self
            .source
            .shown(&format!("{}/{}", self.path, config::ANSWERS));
        if let (Err((line, what)), false) = (config::starter(&answers, &checks), self.missing) {
            self.problems.push(FileError {
                path: shown,
                line,
                what,
            });
            self.missing = true;
        }
        Some(Configs {
            text: raw,
            config,
            answers,
            checks,
            steps: fields.whole(t, "steps").unwrap_or(12).max(1),
            sweep,
            rank,
        })
    }

    fn detective(&mut self, fields: &mut Fields<'_>, t: Table<'_>) -> Option<Detective> {
        let name = fields
            .optional_text(t, "recording")
            .unwrap_or_else(|| "run.jsonl".to_owned());
        if !plain_file(&name, &["jsonl"]) {
            let line = fields.line_of(t, "recording");
            fields.fail(
                line,
                format!("`recording` is `{name}`; name a .jsonl file beside exercise.toml"),
            );
            return None;
        }
        let path = format!("{}/{name}", self.path);
        let raw = match self.source.read(&path) {
            Ok(raw) => raw,
            Err(error) => {
                self.problems.push(error);
                self.missing = true;
                return None;
            }
        };
        detective::read(fields, t, raw, &self.source.shown(&path))
    }

    fn text(&mut self, path: &str) -> String {
        match self.source.read(path) {
            Ok(raw) => cleaned(&raw, &self.source.shown(path), &mut self.problems),
            Err(error) => {
                self.problems.push(error);
                self.missing = true;
                String::new()
            }
        }
    }
}
