//! Reads one stage: `stage.toml`, its two configurations and its kernels, raw to checked. A stage with a fault is
//! reported and left out; a removed control character is reported and the stage kept.

mod cues;
mod files;

use super::fields::{Fields, Table, root};
use super::source::Source;
use super::{Claim, Estimate, Lesson, Level, Pointer, Question, Stage, StageFile, check};
use crate::config::file::FileError;
use crate::config::{KNOBS, Preset, RunConfig, Value, nearest};
use files::{config, kernels, scope_problems};

const KEYS: &[&str] = &[
    "id",
    "title",
    "level",
    "symptom",
    "fault",
    "fix",
    "cpu-note",
    "varies",
    "steps",
    "files",
    "lesson",
    "hints",
    "prediction",
    "estimate",
    "evidence",
    "quiz",
    "claim",
    "check",
    "beat",
];

/// Panels that a pointer may name.
pub const PANELS: &[&str] = &[
    "loss",
    "throughput",
    "kernels",
    "ledger",
    "gradients",
    "memory",
    "evidence",
    "lints",
    "roofline",
];

/// What was read from a stage's folder, before its lesson is known.
pub struct Read {
    pub stage: Stage,
    /// Path of the lesson inside the course, without a language.
    pub lesson: String,
}

/// Reads the folder `exercises/NN-name`. `None`: it cannot be used, and `problems` says why.
pub fn read(
    source: &Source,
    folder: &str,
    number: u32,
    problems: &mut Vec<FileError>,
) -> Option<Read> {
    let path = format!("exercises/{folder}");
    let toml = format!("{path}/stage.toml");
    let raw = source
        .read(&toml)
        .map_err(|error| problems.push(error))
        .ok()?;
    let mut fields = Fields::new(&raw, &source.shown(&toml));
    let document = fields.document();
    let read = document
        .as_ref()
        .map(|document| checked(&mut fields, root(document), folder, number));
    let failed = fields.failed;
    problems.append(&mut fields.problems);
    let mut read = read?;
    read.stage.path.clone_from(&path);

    let broken = config(source, &format!("{path}/config.toml"), problems);
    let fixed = config(source, &format!("{path}/solution/config.toml"), problems);
    let kernels = kernels(source, &path, &read.stage.files, problems);
    let ((starter, broken), (solution, fixed), kernels) = (broken?, fixed?, kernels?);
    if failed {
        return None;
    }
    let stage = &mut read.stage;
    stage.files = vec![StageFile {
        name: "config.toml".to_owned(),
        starter,
        solution,
    }];
    stage.files.extend(kernels);
    (stage.broken, stage.fixed) = (broken, fixed);
    let found = scope_problems(stage);
    let failed = !found.is_empty();
    problems.extend(found.into_iter().map(|what| FileError {
        path: source.shown(&toml),
        line: 0,
        what,
    }));
    (!failed).then_some(read)
}

fn checked(fields: &mut Fields<'_>, t: Table<'_>, folder: &str, number: u32) -> Read {
    fields.known(t, KEYS);
    let id = fields.text(t, "id");
    if !id.is_empty() && !plain_name(&id) {
        let line = fields.line_of(t, "id");
        fields.fail(
            line,
            "`id` takes lower-case letters, digits and `-`, such as \"broken-init\"".to_owned(),
        );
    }
    let level = fields
        .word(t, "level", Level::NAMES)
        .and_then(|word| Level::parse(&word));
    if level.is_none() && !Fields::has(t, "level") {
        fields.missing(t, "level", "= \"beginner\"");
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
    let prediction = fields
        .table(t, "prediction")
        .map(|table| question(fields, table))
        .unwrap_or_default();
    if !Fields::has(t, "prediction") && !fields.was_meant(t, "prediction") {
        fields.fail(
            1,
            "has no question; write a table `[prediction]`".to_owned(),
        );
    }
    let estimate = fields
        .table(t, "estimate")
        .map(|table| estimate(fields, table));
    let evidence = fields
        .tables(t, "evidence")
        .into_iter()
        .map(|table| pointer(fields, table))
        .collect();
    let quiz = fields
        .tables(t, "quiz")
        .into_iter()
        .map(|table| question(fields, table))
        .collect();
    let claims = fields
        .tables(t, "claim")
        .into_iter()
        .map(|table| claim(fields, table))
        .collect();
    let checks: Vec<_> = fields
        .tables(t, "check")
        .into_iter()
        .map(|table| check::read(fields, table))
        .collect();
    if checks.is_empty() {
        fields.fail(1, "has no check; write at least one `[[check]]`".to_owned());
    }
    let files = fields.texts(t, "files");
    for name in files
        .iter()
        .filter(|name| !plain_file(name, &["toml", "wgsl"]))
    {
        let line = fields.line_of(t, "files");
        fields.fail(
            line,
            format!(
                "`files` names `{name}`; name files beside stage.toml, such as \"kernel.wgsl\""
            ),
        );
    }
    let stage = Stage {
        id,
        number,
        title: fields.text(t, "title"),
        level: level.unwrap_or_default(),
        symptom: fields.text(t, "symptom"),
        prediction,
        estimate,
        evidence,
        hints,
        quiz,
        broken: RunConfig::preset(Preset::default()),
        fixed: RunConfig::preset(Preset::default()),
        varies: varies(fields, t),
        claims,
        checks,
        lesson: Lesson::default(),
        fault: fields.text(t, "fault"),
        fix: fields.text(t, "fix"),
        cpu_note: fields.optional_text(t, "cpu-note"),
        files: files
            .into_iter()
            .map(|name| StageFile {
                name,
                ..StageFile::default()
            })
            .collect(),
        steps: fields.whole(t, "steps").unwrap_or(20),
        cues: cues::cues(fields, t),
        lesson_file: String::new(),
        language: "en".to_owned(),
        path: String::new(),
        id_line: fields.line_of(t, "id"),
    };
    let lesson = fields
        .optional_text(t, "lesson")
        .unwrap_or_else(|| format!("{folder}.md"));
    if !plain_file(&lesson, &["md"]) {
        let line = fields.line_of(t, "lesson");
        fields.fail(
            line,
            format!("`lesson` is `{lesson}`; name a file of lessons/, such as \"{folder}.md\""),
        );
    }
    Read { stage, lesson }
}

const QUESTION: &[&str] = &["prompt", "choices", "answer", "explanation"];

pub(super) fn question(fields: &mut Fields<'_>, t: Table<'_>) -> Question {
    fields.known(t, QUESTION);
    let choices = fields.texts(t, "choices");
    if choices.len() != 4 {
        let line = fields.line_of(t, "choices");
        fields.fail(
            line,
            format!("has {} choices; write 4, a to d", choices.len()),
        );
    }
    let answer = fields.word(t, "answer", &["a", "b", "c", "d"]);
    if answer.is_none() && !Fields::has(t, "answer") {
        fields.missing(t, "answer", "= \"a\"");
    }
    let answer = answer
        .and_then(|letter| ["a", "b", "c", "d"].iter().position(|l| *l == letter))
        .unwrap_or(0);
    Question {
        prompt: fields.text(t, "prompt"),
        choices,
        answer,
        explanation: fields.text(t, "explanation"),
    }
}

fn estimate(fields: &mut Fields<'_>, t: Table<'_>) -> Estimate {
    fields.known(t, &["prompt", "of", "unit", "from", "to", "log"]);
    let of = fields.text(t, "of");
    if let Some(what) = super::placeholder::problem(&of).filter(|_| !of.is_empty()) {
        let line = fields.line_of(t, "of");
        fields.fail(line, what);
    }
    let (from, to) = (fields.number(t, "from"), fields.number(t, "to"));
    let log = fields.flag(t, "log").unwrap_or(false);
    let (from, to) = (from.unwrap_or(0.0), to.unwrap_or(0.0));
    if from >= to || (log && from <= 0.0) {
        let line = fields.line_of(t, "from");
        fields.fail(
            line,
            "the scale needs `from` below `to`, and above 0 when `log = true`".to_owned(),
        );
    }
    let unit = fields.optional_text(t, "unit").unwrap_or_default();
    Estimate {
        prompt: fields.text(t, "prompt"),
        of,
        unit,
        from,
        to,
        log,
    }
}

fn pointer(fields: &mut Fields<'_>, t: Table<'_>) -> Pointer {
    fields.known(t, &["panel", "text"]);
    let panel = fields.word(t, "panel", PANELS);
    if panel.is_none() && !Fields::has(t, "panel") {
        fields.missing(t, "panel", "= \"loss\"");
    }
    Pointer {
        panel: panel.unwrap_or_default(),
        text: fields.text(t, "text"),
    }
}

fn claim(fields: &mut Fields<'_>, t: Table<'_>) -> Claim {
    fields.known(t, &["text", "source"]);
    Claim {
        text: fields.text(t, "text"),
        source: fields.text(t, "source"),
    }
}

fn varies(fields: &mut Fields<'_>, t: Table<'_>) -> Vec<String> {
    let found = fields.texts(t, "varies");
    let line = fields.line_of(t, "varies");
    if found.is_empty() {
        fields.fail(
            line,
            "`varies` names no key; list the keys under study, such as [\"model.init\"]".to_owned(),
        );
    }
    for path in &found {
        if !KNOBS.iter().any(|knob| knob.path == path) {
            let near = nearest(path, KNOBS.iter().map(|knob| knob.path));
            fields.fail(
                line,
                format!(
                    "`varies` names an unknown key `{path}`; the nearest known key is `{near}`"
                ),
            );
        }
    }
    found
}

/// Lower-case letters, digits and `-`.
pub fn plain_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 64
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

/// A file name without a folder, with one of these endings.
pub fn plain_file(name: &str, endings: &[&str]) -> bool {
    name.rsplit_once('.')
        .is_some_and(|(stem, ending)| plain_name(stem) && endings.contains(&ending))
}

impl Stage {
    /// The starter at another preset: sizes follow, but for those the stage sets itself.
    pub fn broken_at(&self, preset: Preset) -> RunConfig {
        at_preset(&self.broken, preset)
    }

    /// The solution at another preset.
    pub fn fixed_at(&self, preset: Preset) -> RunConfig {
        at_preset(&self.fixed, preset)
    }
}

fn at_preset(config: &RunConfig, preset: Preset) -> RunConfig {
    if preset == config.preset {
        return config.clone();
    }
    let plain = RunConfig::preset(config.preset);
    let mut moved = RunConfig::preset(preset);
    for knob in KNOBS
        .iter()
        .filter(|knob| knob.path != "preset" && (knob.get)(config) != (knob.get)(&plain))
    {
        // A value that a configuration already holds is one its key takes.
        let _ = knob.set(&mut moved, &Value::from_word(&(knob.get)(config)));
    }
    if moved.problems().is_empty() {
        return moved;
    }
    let mut sized = config.clone();
    sized.set_preset(preset);
    sized
}
