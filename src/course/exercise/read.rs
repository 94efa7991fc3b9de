//! Reads one `exercise.toml` with the files beside it, and reports the first fault.

mod config_check;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use super::config::{ANSWERS, starter};
use super::{
    Configs, Detective, DrawnSizes, Exercise, ExerciseKind, Kernel, Kernels, RankedChange,
    SizeRange, Sweep, WrongSolution, apply,
};
use crate::clean::one_line;
use crate::config::file::FileError;
use crate::config::nearest;
use crate::course::metric;
use crate::course::source::Loader;
use crate::course::stage::{
    Question, StageFile, StageLevel, check_head, check_keys, check_question, plain_file,
};
use crate::course::toml_file::{self, TomlFile};
use crate::protocol::{
    KernelBinding, KernelCheck, KernelFill, KernelMetric, KernelReference, KernelRole, KernelShape,
    KernelSpec, KernelStarter, MAX_SIZE, SizeProduct, is_size_name,
};
use config_check::{ConfigCheckToml, config_check};

/// Most elements of a buffer: 256 MiB.
const MAX_COUNT: u64 = 1 << 26;

/// A kind of exercise.
pub struct KindRow {
    /// Name in `exercise.toml`.
    pub name: &'static str,
    /// First letter of its folders.
    pub letter: char,
    /// Words before the size of the task.
    pub asks: &'static str,
    read: fn(&Loader<'_>, &str) -> Result<Exercise, FileError>,
}

/// Every kind, in the order of the variants.
#[rustfmt::skip] // One line for each kind.
pub static KINDS: [KindRow; 3] = [
    KindRow { name: "kernel", letter: 'k', asks: "To write: ", read: |it, path| of_kind(it, path, |it, toml| it.kernels(toml)) },
    KindRow { name: "config", letter: 'c', asks: "To answer: ", read: |it, path| of_kind(it, path, |it, toml| it.configs(toml)) },
    KindRow { name: "detective", letter: 'd', asks: "To answer: ", read: |it, path| of_kind(it, path, |it, toml| it.detective(toml)) },
];

impl ExerciseKind {
    pub fn row(&self) -> &'static KindRow {
        match self {
            Self::Kernel(_) => &KINDS[0],
            Self::Config(_) => &KINDS[1],
            Self::Detective(_) => &KINDS[2],
        }
    }
}

/// Whether a text is the label of an exercise, such as `k03`: the letter of a kind and two digits.
pub fn is_label(text: &str) -> bool {
    let digits = text.strip_prefix(|letter: char| KINDS.iter().any(|row| row.letter == letter));
    digits.is_some_and(|it| it.len() == 2 && it.bytes().all(|b| b.is_ascii_digit()))
}

/// The contents of `exercise.toml`; the kind determines the fields of a `[[check]]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, bound = "C: Deserialize<'de>")]
struct ExerciseToml<C> {
    id: String,
    kind: String,
    title: String,
    level: Option<StageLevel>,
    task: String,
    size: String,
    #[serde(default)]
    hints: Vec<String>,
    lesson: Option<String>,
    #[serde(default)]
    quiz: Vec<Question>,
    debrief: Option<String>,
    #[serde(default)]
    check: Vec<C>,
    // Kernel exercises.
    replaces: Option<String>,
    #[serde(default)]
    shape: Vec<BTreeMap<String, ShapeValue>>,
    #[serde(default)]
    kernel: Vec<KernelToml>,
    #[serde(default)]
    hidden: BTreeMap<String, HiddenValue>,
    // Config exercises.
    steps: Option<u64>,
    sweep: Option<Sweep>,
    #[serde(default)]
    rank: Vec<RankedChange>,
    // Recorded runs.
    question: Option<Question>,
    recording: Option<String>,
    #[serde(default)]
    hide: Vec<String>,
    // Profiles of another program.
    profile: Option<String>,
    device: Option<String>,
    date: Option<String>,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "it takes a whole number, or a text for `label` and `idea`, a number for `tolerance`, a table for `fill`"
)]
enum ShapeValue {
    Size(i64),
    Tolerance(f64),
    Text(String),
    Fill(BTreeMap<String, KernelFill>),
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "it takes a range such as [1, 300], [16, 320, 16] for multiples of 16, or a text for `idea`"
)]
enum HiddenValue {
    Range(SizeRange),
    Text(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct KernelToml {
    #[serde(default = "starter_file")]
    starter: String,
    #[serde(default = "solution_file")]
    solution: String,
    reference: KernelReference,
    #[serde(default)]
    grid: Vec<SizeProduct>,
    tolerance: Option<f64>,
    #[serde(default)]
    matrix_cores: bool,
    #[serde(default)]
    binding: Vec<KernelBinding>,
}

/// A wrong solution in `wrong.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrongToml {
    /// Name of the learner's file it replaces, if not the first.
    file: Option<String>,
    /// Words of the expected message.
    refused: String,
    /// Words of the solution, and their replacements.
    change: BTreeMap<String, String>,
}

const LARGEST: i64 = MAX_SIZE as i64;

fn starter_file() -> String {
    "starter.wgsl".to_owned()
}

fn solution_file() -> String {
    "kernel.wgsl".to_owned()
}

/// Reads the folder `exercises/kNN-name`, `cNN-name` or `dNN-name`.
///
/// # Errors
/// With the first fault.
pub fn read(loader: &Loader<'_>, folder: &str) -> Result<Exercise, FileError> {
    #[derive(Deserialize)]
    struct KindToml {
        kind: String,
    }
    let path = format!("exercises/{folder}");
    let toml = format!("{path}/exercise.toml");
    let kind = toml::from_str(&loader.text(&toml)?).map(|found: KindToml| found.kind);
    let row = KINDS.iter().find(|row| Ok(row.name) == kind.as_deref());
    match row {
        Some(row) => (row.read)(loader, &path),
        // Another fault of the file may come first.
        None => of_kind::<IgnoredAny>(loader, &path, |it, found| {
            let known = KINDS.iter().map(|row| row.name);
            Err(it.file.unknown("kind", "kind", &found.kind, known))
        }),
    }
}

fn of_kind<C: DeserializeOwned>(
    loader: &Loader<'_>,
    path: &str,
    body: impl Fn(&Reader<'_>, &mut ExerciseToml<C>) -> Result<ExerciseKind, FileError>,
) -> Result<Exercise, FileError> {
    let toml = format!("{path}/exercise.toml");
    toml_file::read(loader, &toml, |file, mut found: ExerciseToml<C>| {
        check_head(file, (&found.id, "swiglu"), &found.hints, &found.quiz)?;
        let body = body(&Reader { loader, path, file }, &mut found)?;
        Ok(Exercise {
            id: found.id,
            title: found.title,
            level: found.level.unwrap_or(StageLevel::Advanced),
            task: found.task,
            size: found.size,
            hints: found.hints,
            lesson: found.lesson,
            quiz: found.quiz,
            debrief: found.debrief,
            body,
            path: path.to_owned(),
        })
    })
}

struct Reader<'a> {
    loader: &'a Loader<'a>,
    path: &'a str,
    file: &'a TomlFile<'a>,
}

impl Reader<'_> {
    fn kernels(&self, found: &mut ExerciseToml<KernelCheck>) -> Result<ExerciseKind, FileError> {
        let fault = |path: &str, what: &str| Err(self.file.fault(path, what));
        if found.shape.is_empty() {
            let what = "has no shape; write at least one `[[shape]]` with a label and its sizes";
            return fault("shape", what);
        }
        if found.kernel.is_empty() {
            return fault("kernel", "has no kernel; write at least one `[[kernel]]`");
        }
        let shapes = std::mem::take(&mut found.shape).into_iter().enumerate();
        let shapes = shapes.map(|(at, raw)| self.shape(&format!("shape.{at}"), raw));
        let shapes = shapes.collect::<Result<Vec<KernelShape>, _>>()?;
        for (at, check) in found.check.iter().enumerate() {
            let limited = matches!(
                check.metric,
                KernelMetric::Speed | KernelMetric::Invocations | KernelMetric::Neighbours
            );
            if limited && check.at_least == 0.0 {
                return Err(self.file.missing(&format!("check.{at}.at-least"), "1.5"));
            }
            if check.metric == KernelMetric::Fetches && check.at_most == 0.0 {
                return Err(self.file.missing(&format!("check.{at}.at-most"), "8"));
            }
        }
        let fails = |check: &KernelCheck| check.starter == KernelStarter::Fails;
        if !found.check.iter().any(fails) {
            let what = "no check fails on the starter; leave out `starter` on one";
            return fault("check", what);
        }
        let hidden = self.hidden(std::mem::take(&mut found.hidden), shapes.first())?;
        let mut launched = shapes.clone();
        launched.extend(hidden.largest());
        let kernels = std::mem::take(&mut found.kernel).into_iter().enumerate();
        let kernels = kernels.map(|(at, raw)| self.kernel(&format!("kernel.{at}"), raw, &launched));
        let kernels = kernels.collect::<Result<Vec<Kernel>, _>>()?;
        let bindings = kernels.iter().flat_map(|kernel| &kernel.spec.bindings);
        let read = bindings.filter(|binding| binding.role != KernelRole::Out);
        let read: Vec<&str> = read.map(|binding| binding.name.as_str()).collect();
        for (at, shape) in shapes.iter().enumerate() {
            let mut names = shape.fill.keys();
            if let Some(name) = names.find(|name| !read.contains(&name.as_str())) {
                let near = nearest(name, read.iter().copied());
                let what =
                    format!("`{name}` is not a buffer that is read; the nearest is `{near}`");
                return fault(&format!("shape.{at}.fill"), &what);
            }
        }
        Ok(ExerciseKind::Kernel(Kernels {
            wrong: self.wrong(&kernels),
            kernels,
            shapes,
            hidden,
            replaces: found.replaces.take(),
            checks: std::mem::take(&mut found.check),
        }))
    }

    /// `[hidden]`: a range for each size of the shapes, and an idea.
    fn hidden(
        &self,
        raw: BTreeMap<String, HiddenValue>,
        shape: Option<&KernelShape>,
    ) -> Result<DrawnSizes, FileError> {
        let mut drawn = DrawnSizes::default();
        let sizes = shape.map(|shape| &shape.sizes);
        let known = || sizes.into_iter().flat_map(|sizes| sizes.keys());
        for (key, value) in raw {
            match value {
                HiddenValue::Text(text) if key == "idea" => drawn.idea = Some(text),
                HiddenValue::Range(range) if known().any(|name| *name == key) => {
                    drawn.ranges.insert(key, range);
                }
                _ => {
                    let near = nearest(&key, known().map(String::as_str).chain(["idea"]));
                    let what = format!(
                        "`{key}` is neither a size with a range nor an `idea` with a text; the nearest is `{near}`"
                    );
                    return Err(self.file.fault(&format!("hidden.{key}"), what));
                }
            }
        }
        let mut missing = known().filter(|name| !drawn.ranges.contains_key(*name));
        if let Some(name) = missing.next().filter(|_| !drawn.ranges.is_empty()) {
            let what = format!("`{name}` has no range; write `{name} = [1, 300]`");
            return Err(self.file.fault("hidden", what));
        }
        Ok(drawn)
    }

    fn shape(
        &self,
        path: &str,
        raw: BTreeMap<String, ShapeValue>,
    ) -> Result<KernelShape, FileError> {
        let mut shape = KernelShape::default();
        for (key, value) in raw {
            let fail = |what: &str| {
                let what = format!("`{key}` {what}");
                Err(self.file.fault(&format!("{path}.{key}"), what))
            };
            match (key.as_str(), value) {
                ("label", ShapeValue::Text(text)) => shape.label = text,
                ("idea", ShapeValue::Text(text)) => shape.idea = Some(text),
                ("fill", ShapeValue::Fill(fill)) => shape.fill = fill,
                ("tolerance", ShapeValue::Tolerance(most)) => shape.tolerance = Some(most),
                (name, ShapeValue::Size(n @ 1..=LARGEST)) if is_size_name(name) => {
                    shape.sizes.insert(key, n as u64);
                }
                ("label" | "idea", _) => return fail("takes a quoted text"),
                ("fill", _) => return fail("takes a table, such as { x = \"large\" }"),
                ("tolerance", _) => return fail("takes a number, such as 1e-6"),
                (name, _) if is_size_name(name) => {
                    return fail(&format!("takes a whole number from 1 to {MAX_SIZE}"));
                }
                _ => return fail("is not a size; name sizes in capitals, such as N"),
            }
        }
        match shape.label.is_empty() {
            true => Err(self.file.missing(&format!("{path}.label"), "\"…\"")),
            false => Ok(shape),
        }
    }

    /// The wrong solutions of `wrong.toml`: each changes a solution and misses an idea.
    fn wrong(&self, kernels: &[Kernel]) -> Vec<WrongSolution> {
        let path = format!("{}/wrong.toml", self.path);
        if !self.loader.source.exists(&path) {
            return Vec::new();
        }
        type All = BTreeMap<String, WrongToml>;
        let read = toml_file::read(self.loader, &path, |file, found: All| {
            let all = found.into_iter();
            all.map(|(name, raw)| changed(file, &name, raw, kernels))
                .collect()
        });
        self.loader.usable(read).unwrap_or_default()
    }

    fn kernel(
        &self,
        path: &str,
        raw: KernelToml,
        shapes: &[KernelShape],
    ) -> Result<Kernel, FileError> {
        let file = self.file;
        for (key, name) in [("starter", &raw.starter), ("solution", &raw.solution)] {
            if !plain_file(name, &["wgsl"]) {
                let what = format!("`{key}` is `{name}`; name a .wgsl file beside exercise.toml");
                return Err(file.fault(&format!("{path}.{key}"), what));
            }
        }
        let mut bindings = raw.binding.iter();
        if bindings.all(|binding| binding.role == KernelRole::In) {
            let what = "writes no buffer; give one `[[kernel.binding]]` the role \"out\"";
            return Err(file.fault(path, what));
        }
        for (at, binding) in raw.binding.iter().enumerate() {
            let at = format!("{path}.binding.{at}.count");
            fits(file, &at, &binding.count, shapes, &[], MAX_COUNT)?;
        }
        for (at, product) in raw.grid.iter().enumerate() {
            let at = format!("{path}.grid.{at}");
            fits(file, &at, product, shapes, &["WX", "WY", "WZ"], MAX_SIZE)?;
        }
        Ok(Kernel {
            file: StageFile {
                starter: self.text(&raw.starter)?,
                solution: self.text(&format!("solution/{}", raw.solution))?,
                name: raw.starter,
            },
            spec: KernelSpec {
                reference: raw.reference,
                bindings: raw.binding,
                grid: raw.grid.into_iter().take(3).collect(),
                tolerance: raw.tolerance,
                matrix_cores: raw.matrix_cores,
            },
        })
    }

    fn configs(
        &self,
        found: &mut ExerciseToml<ConfigCheckToml>,
    ) -> Result<ExerciseKind, FileError> {
        let file = self.file;
        let (text, answers) = (self.text("config.toml")?, self.text(ANSWERS)?);
        let path = format!("{}/config.toml", self.path);
        let config = self.loader.config(&path, &text)?;
        let try_set = |path: &str, assignment: &str| {
            apply(&config, assignment).map_err(|what| file.fault(path, what))
        };
        let (sweep, rank) = (found.sweep.take(), std::mem::take(&mut found.rank));
        if let Some(sweep) = &sweep {
            if sweep.values.len() < 2 {
                let what = "`values` needs at least two values to compare";
                return Err(file.fault("sweep.values", what));
            }
            for value in &sweep.values {
                try_set("sweep.values", &format!("{}={value}", sweep.key))?;
            }
            for set in &sweep.with {
                try_set("sweep.with", set)?;
            }
            let mut metrics = sweep.metrics.iter();
            if let Some(name) = metrics.find(|name| !metric::known(name)) {
                let known = metric::METRICS.iter().map(|metric| metric.name);
                return Err(file.unknown("sweep.metrics", "metric", name, known));
            }
        } else if rank.is_empty() {
            let what = "varies nothing; write a `[sweep]` or several `[[rank]]`";
            return Err(file.fault("sweep", what));
        }
        for (at, change) in rank.iter().enumerate() {
            let at = format!("rank.{at}.set");
            if change.set.is_empty() {
                let what = "`set` changes nothing; write set = [\"model.norm=fused\"]";
                return Err(file.fault(&at, what));
            }
            for set in &change.set {
                try_set(&at, set)?;
            }
        }
        let checks = std::mem::take(&mut found.check).into_iter().enumerate();
        let checks = checks.map(|(at, raw)| {
            let at = format!("check.{at}");
            config_check(file, &at, raw, sweep.as_ref(), rank.len())
        });
        let checks = checks.collect::<Result<Vec<_>, _>>()?;
        if checks.iter().all(|check| check.answer.is_none()) {
            let what =
                "no check asks for an answer; give one `answer = \"batch\"` and `ask = \"…\"`";
            return Err(file.fault("check", what));
        }
        let path = format!("{}/{ANSWERS}", self.path);
        starter(&answers, &self.loader.source.shown(&path), &checks)?;
        Ok(ExerciseKind::Config(Configs {
            text,
            config,
            answers,
            checks,
            steps: found.steps.unwrap_or(12).max(1),
            sweep,
            rank,
        }))
    }

    fn detective(&self, found: &mut ExerciseToml<IgnoredAny>) -> Result<ExerciseKind, FileError> {
        let file = self.file;
        let question = found.question.take();
        let question = question
            .ok_or_else(|| file.fault("question", "has no question; write a table `[question]`"))?;
        check_question(file, "question", &question)?;
        if let Some(profile) = found.profile.take() {
            let (device, date) = (found.device.take(), found.date.take());
            let (device, date) = (device.unwrap_or_default(), date.unwrap_or_default());
            let detective = Detective::of_profile(question, profile, device, date);
            return Ok(ExerciseKind::Detective(detective));
        }
        if found.hide.is_empty() {
            return Err(file.missing("hide", "[\"model.init\"]"));
        }
        check_keys(file, "hide", &found.hide)?;
        let name = found.recording.as_deref().unwrap_or("run.jsonl");
        if !plain_file(name, &["jsonl"]) {
            let what = "name a .jsonl file beside exercise.toml";
            return Err(file.fault("recording", format!("`recording` is `{name}`; {what}")));
        }
        let path = format!("{}/{name}", self.path);
        let recording = self.loader.text(&path)?;
        let shown = self.loader.source.shown(&path);
        let hide = std::mem::take(&mut found.hide);
        Detective::new(question, hide, recording, shown).map(ExerciseKind::Detective)
    }

    /// The text of a file beside exercise.toml.
    fn text(&self, name: &str) -> Result<String, FileError> {
        self.loader.clean(&format!("{}/{name}", self.path))
    }
}

/// Applies a change to a solution, which must contain the changed words once.
fn changed(
    file: &TomlFile<'_>,
    name: &str,
    raw: WrongToml,
    kernels: &[Kernel],
) -> Result<WrongSolution, FileError> {
    let names = || kernels.iter().map(|kernel| kernel.file.name.as_str());
    let asked = raw.file.as_deref().or(names().next()).unwrap_or_default();
    let kernel = names().position(|known| known == asked);
    let kernel =
        kernel.ok_or_else(|| file.unknown(&format!("{name}.file"), "file", asked, names()))?;
    let mut text = kernels[kernel].file.solution.clone();
    for (from, to) in &raw.change {
        let found = text.matches(from.as_str()).count();
        if found != 1 {
            let what = "of the solution; quote words that occur once";
            let what = format!("`{from}` occurs in {found} places {what}");
            return Err(file.fault(&format!("{name}.change"), what));
        }
        text = text.replacen(from.as_str(), to, 1);
    }
    Ok(WrongSolution {
        name: one_line(name),
        kernel,
        text,
        refused: raw.refused,
    })
}

/// Refuses a product that has no value or more than `most` at one of the shapes; the engine fills in the names `extra`.
fn fits(
    file: &TomlFile<'_>,
    path: &str,
    product: &SizeProduct,
    shapes: &[KernelShape],
    extra: &[&str],
    most: u64,
) -> Result<(), FileError> {
    for shape in shapes {
        let mut sizes = shape.sizes.clone();
        sizes.extend(extra.iter().map(|name| ((*name).to_owned(), 64)));
        let what = match product.value(&sizes) {
            Ok(n) if n <= most => continue,
            Ok(n) => format!("`{product}` is {n}; at most {most} is allowed"),
            Err(what) => what,
        };
        return Err(file.fault(path, format!("{what}, in shape `{}`", shape.label)));
    }
    Ok(())
}
