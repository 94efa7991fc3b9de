//! Reads one `exercise.toml` with the files beside it. An exercise with a fault is reported and left out.

mod config_check;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use super::config::{ANSWERS, starter};
use super::{
    Configs, Detective, Exercise, ExerciseKind, Kernel, Kernels, RankedChange, Sweep,
    WrongSolution, apply,
};
use crate::config::nearest;
use crate::course::metric;
use crate::course::source::Loader;
use crate::course::stage::{
    Question, StageFile, StageLevel, check_head, check_keys, check_question, plain_file,
};
use crate::course::text::one_line;
use crate::course::toml_file::TomlFile;
use crate::protocol::{
    KernelBinding, KernelCheck, KernelFill, KernelMetric, KernelReference, KernelRole, KernelShape,
    KernelSpec, KernelStarter, MAX_SIZE, Product, is_size_name,
};
use config_check::{ConfigCheckToml, config_check};

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Kernel,
    Config,
    Detective,
}

/// `exercise.toml` as it is written; its kind decides what a `[[check]]` holds.
#[derive(Deserialize)]
struct ExerciseToml<C> {
    id: String,
    #[serde(rename = "kind")]
    _kind: Kind,
    title: String,
    level: Option<StageLevel>,
    task: String,
    size: String,
    hints: Vec<String>,
    lesson: Option<String>,
    quiz: Vec<Question>,
    debrief: Option<String>,
    check: Vec<C>,
    // Of a kernel exercise.
    replaces: Option<String>,
    shape: Vec<BTreeMap<String, ShapeValue>>,
    kernel: Vec<KernelToml>,
    // Of a config exercise.
    steps: Option<u64>,
    sweep: Option<Sweep>,
    rank: Vec<RankedChange>,
    // Of a recorded run.
    question: Option<Question>,
    recording: Option<String>,
    hide: Vec<String>,
    // Of a profile of another program.
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
#[serde(rename_all = "kebab-case")]
struct KernelToml {
    #[serde(default = "starter_file")]
    starter: String,
    #[serde(default = "solution_file")]
    solution: String,
    reference: KernelReference,
    grid: Vec<Product>,
    tolerance: Option<f64>,
    #[serde(default)]
    matrix_cores: bool,
    binding: Vec<KernelBinding>,
}

/// A solution that is to be refused, as `wrong.toml` has it.
#[derive(Deserialize)]
struct WrongToml {
    /// The learner's file that it stands for, if not the first.
    file: Option<String>,
    /// Words of the message.
    refused: String,
    /// Words of the solution, and what stands there instead.
    change: BTreeMap<String, String>,
}

fn starter_file() -> String {
    "starter.wgsl".to_owned()
}

fn solution_file() -> String {
    "kernel.wgsl".to_owned()
}

/// Reads the folder `exercises/kNN-name`, `cNN-name` or `dNN-name`.
pub fn read(loader: &Loader<'_>, folder: &str) -> Option<Exercise> {
    #[derive(Deserialize)]
    struct KindToml {
        kind: Kind,
    }
    let path = format!("exercises/{folder}");
    // A file that cannot be read is reported below.
    let raw = loader.source.read(&format!("{path}/exercise.toml"));
    match toml::from_str(&raw.unwrap_or_default()).map(|found: KindToml| found.kind) {
        Ok(Kind::Kernel) => of_kind(loader, &path, |reader, toml| reader.kernels(toml)),
        Ok(Kind::Config) => of_kind(loader, &path, |reader, toml| reader.configs(toml)),
        Ok(Kind::Detective) => of_kind(loader, &path, |reader, toml| reader.detective(toml)),
        // It has no kind: only the other problems are of interest.
        Err(_) => of_kind::<IgnoredAny>(loader, &path, |_, _| None),
    }
}

fn of_kind<C: DeserializeOwned>(
    loader: &Loader<'_>,
    path: &str,
    body: impl Fn(&Reader<'_>, &mut ExerciseToml<C>) -> Option<ExerciseKind>,
) -> Option<Exercise> {
    let toml = format!("{path}/exercise.toml");
    TomlFile::read(loader, &toml, |file, mut found: ExerciseToml<C>| {
        check_head(file, (&found.id, "swiglu"), &found.hints, &found.quiz);
        let body = body(&Reader { loader, path, file }, &mut found)?;
        Some(Exercise {
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
    })?
}

struct Reader<'a> {
    loader: &'a Loader<'a>,
    path: &'a str,
    file: &'a TomlFile<'a>,
}

impl Reader<'_> {
    fn kernels(&self, found: &mut ExerciseToml<KernelCheck>) -> Option<ExerciseKind> {
        let file = self.file;
        let shapes = std::mem::take(&mut found.shape).into_iter().enumerate();
        let shapes: Vec<KernelShape> = shapes
            .map(|(at, raw)| self.shape(&format!("shape.{at}"), raw))
            .collect();
        if shapes.is_empty() {
            let what = "has no shape; write at least one `[[shape]]` with a label and its sizes";
            file.fail("shape", what);
        }
        if found.kernel.is_empty() {
            file.fail("kernel", "has no kernel; write at least one `[[kernel]]`");
        }
        for (at, check) in found.check.iter().enumerate() {
            let limited = matches!(
                check.metric,
                KernelMetric::Speed | KernelMetric::Invocations | KernelMetric::Neighbours
            );
            if limited && check.at_least == 0.0 {
                file.missing(&format!("check.{at}.at-least"), "1.5");
            }
            if check.metric == KernelMetric::Fetches && check.at_most == 0.0 {
                file.missing(&format!("check.{at}.at-most"), "8");
            }
        }
        let fails = |check: &KernelCheck| check.starter == KernelStarter::Fails;
        if !found.check.iter().any(fails) {
            let what = "no check fails on the starter; leave out `starter` on one";
            file.fail("check", what);
        }
        let kernels = std::mem::take(&mut found.kernel).into_iter().enumerate();
        let kernels: Vec<Option<Kernel>> = kernels
            .map(|(at, raw)| self.kernel(&format!("kernel.{at}"), raw, &shapes))
            .collect();
        let kernels: Vec<Kernel> = kernels.into_iter().collect::<Option<_>>()?;
        let bindings = kernels.iter().flat_map(|kernel| &kernel.spec.bindings);
        let read = bindings.filter(|binding| binding.role != KernelRole::Out);
        let read: Vec<&str> = read.map(|binding| binding.name.as_str()).collect();
        for (at, shape) in shapes.iter().enumerate() {
            for name in shape
                .fill
                .keys()
                .filter(|name| !read.contains(&name.as_str()))
            {
                let near = nearest(name, read.iter().copied());
                let what = format!("`{name}` is no buffer that is read; the nearest is `{near}`");
                file.fail(&format!("shape.{at}.fill"), what);
            }
        }
        Some(ExerciseKind::Kernel(Kernels {
            wrong: self.wrong(&kernels),
            kernels,
            shapes,
            replaces: found.replaces.take(),
            checks: std::mem::take(&mut found.check),
        }))
    }

    fn shape(&self, path: &str, raw: BTreeMap<String, ShapeValue>) -> KernelShape {
        let (mut label, mut shape) = (None, KernelShape::default());
        for (key, value) in raw {
            let fail = |what: String| self.file.fail(&format!("{path}.{key}"), what);
            match (key.as_str(), value) {
                ("label", ShapeValue::Text(text)) => label = Some(text),
                ("idea", ShapeValue::Text(text)) => shape.idea = Some(text),
                ("fill", ShapeValue::Fill(fill)) => shape.fill = fill,
                ("tolerance", ShapeValue::Tolerance(most)) => shape.tolerance = Some(most),
                ("label", _) => {
                    fail("`label` is no text; it takes a quoted text".to_owned());
                    label = Some(String::new());
                }
                ("idea", _) => fail("`idea` is no text; it takes a quoted text".to_owned()),
                ("fill", _) => fail("`fill` takes a table, such as { x = \"large\" }".to_owned()),
                ("tolerance", _) => fail("`tolerance` takes a number, such as 1e-6".to_owned()),
                _ if !is_size_name(&key) => {
                    let what = "is not a size; name sizes in capitals, such as N";
                    fail(format!("`{key}` {what}"));
                }
                (_, ShapeValue::Size(n)) if (1..=MAX_SIZE as i64).contains(&n) => {
                    shape.sizes.insert(key, n as u64);
                }
                (_, wrong) => {
                    let wrong = match wrong {
                        ShapeValue::Size(n) => n.to_string(),
                        ShapeValue::Tolerance(x) => x.to_string(),
                        ShapeValue::Text(_) => "a text".to_owned(),
                        ShapeValue::Fill(_) => "a table".to_owned(),
                    };
                    let what = format!("it takes a whole number from 1 to {MAX_SIZE}");
                    fail(format!("`{key}` is {wrong}; {what}"));
                    shape.sizes.insert(key, 1);
                }
            }
        }
        if label.is_none() {
            self.file.missing(&format!("{path}.label"), "\"…\"");
        }
        shape.label = label.unwrap_or_default();
        shape
    }

    /// What `wrong.toml` makes of the solutions: each with a change that misses an idea.
    fn wrong(&self, kernels: &[Kernel]) -> Vec<WrongSolution> {
        let path = format!("{}/wrong.toml", self.path);
        if !self.loader.source.exists(&path) {
            return Vec::new();
        }
        type All = BTreeMap<String, WrongToml>;
        let read = TomlFile::read(self.loader, &path, |file, found: All| {
            let all = found.into_iter();
            all.filter_map(|(name, raw)| changed(file, &name, raw, kernels))
                .collect()
        });
        read.unwrap_or_default()
    }

    fn kernel(&self, path: &str, raw: KernelToml, shapes: &[KernelShape]) -> Option<Kernel> {
        let file = self.file;
        let mut named = true;
        for (key, name) in [("starter", &raw.starter), ("solution", &raw.solution)] {
            if !plain_file(name, &["wgsl"]) {
                named = false;
                let what = format!("`{key}` is `{name}`; name a .wgsl file beside exercise.toml");
                file.fail(&format!("{path}.{key}"), what);
            }
        }
        let mut bindings = raw.binding.iter();
        if bindings.all(|binding| binding.role == KernelRole::In) {
            let what = "writes no buffer; give one `[[kernel.binding]]` the role \"out\"";
            file.fail(path, what);
        }
        for (at, binding) in raw.binding.iter().enumerate() {
            let at = format!("{path}.binding.{at}.count");
            fits(file, &at, &binding.count, shapes, &[]);
        }
        for (at, product) in raw.grid.iter().enumerate() {
            let at = format!("{path}.grid.{at}");
            fits(file, &at, product, shapes, &["WX", "WY", "WZ"]);
        }
        if !named {
            return None;
        }
        let starter = self.text(&raw.starter);
        let solution = self.text(&format!("solution/{}", raw.solution));
        Some(Kernel {
            file: StageFile {
                name: raw.starter,
                starter: starter?,
                solution: solution?,
            },
            spec: KernelSpec {
                reference: raw.reference,
                bindings: raw.binding,
                grid: raw.grid.into_iter().take(3).collect(),
                tolerance: raw.tolerance.unwrap_or(1e-4),
                matrix_cores: raw.matrix_cores,
            },
        })
    }

    fn configs(&self, found: &mut ExerciseToml<ConfigCheckToml>) -> Option<ExerciseKind> {
        let file = self.file;
        let (text, answers) = (self.text("config.toml"), self.text(ANSWERS));
        let text = text?;
        let path = format!("{}/config.toml", self.path);
        let config = self.loader.config(&path, &text)?;
        let try_set = |path: &str, assignment: &str| {
            if let Err(what) = apply(&config, assignment) {
                file.fail(path, what);
            }
        };
        let (sweep, rank) = (found.sweep.take(), std::mem::take(&mut found.rank));
        if let Some(sweep) = &sweep {
            if sweep.values.len() < 2 {
                let what = "`values` needs at least two values to compare";
                file.fail("sweep.values", what);
            }
            for value in &sweep.values {
                try_set("sweep.values", &format!("{}={value}", sweep.key));
            }
            for set in &sweep.with {
                try_set("sweep.with", set);
            }
            for name in sweep.metrics.iter().filter(|name| !metric::known(name)) {
                let known = metric::METRICS.iter().map(|metric| metric.name);
                file.unknown("sweep.metrics", "metric", name, known);
            }
        } else if rank.is_empty() {
            let what = "varies nothing; write a `[sweep]` or several `[[rank]]`";
            file.fail("sweep", what);
        }
        for (at, change) in rank.iter().enumerate() {
            let at = format!("rank.{at}.set");
            if change.set.is_empty() {
                let what = "`set` changes nothing; write set = [\"model.norm=fused\"]";
                file.fail(&at, what);
            }
            change.set.iter().for_each(|set| try_set(&at, set));
        }
        let mut checks = Vec::new();
        for (at, raw) in std::mem::take(&mut found.check).into_iter().enumerate() {
            let at = format!("check.{at}");
            checks.push(config_check(file, &at, raw, sweep.as_ref(), rank.len()));
        }
        if !file.failed() && checks.iter().all(|check| check.answer.is_none()) {
            let what =
                "no check asks for an answer; give one `answer = \"batch\"` and `ask = \"…\"`";
            file.fail("check", what);
        }
        let answers = answers?;
        if let Err((line, what)) = starter(&answers, &checks) {
            let path = format!("{}/{ANSWERS}", self.path);
            self.loader.fail(&path, line, what);
            return None;
        }
        Some(ExerciseKind::Config(Configs {
            text,
            config,
            answers,
            checks,
            steps: found.steps.unwrap_or(12).max(1),
            sweep,
            rank,
        }))
    }

    fn detective(&self, found: &mut ExerciseToml<IgnoredAny>) -> Option<ExerciseKind> {
        let file = self.file;
        let question = found.question.take();
        match &question {
            Some(question) => check_question(file, "question", question),
            None => file.fail("question", "has no question; write a table `[question]`"),
        }
        if let Some(profile) = found.profile.take() {
            let (device, date) = (found.device.take(), found.date.take());
            let (device, date) = (device.unwrap_or_default(), date.unwrap_or_default());
            let question = question.unwrap_or_default();
            let detective = Detective::of_profile(question, profile, device, date);
            return Some(ExerciseKind::Detective(detective));
        }
        if found.hide.is_empty() {
            file.missing("hide", "[\"model.init\"]");
        }
        check_keys(file, "hide", &found.hide);
        let name = found.recording.as_deref().unwrap_or("run.jsonl");
        if !plain_file(name, &["jsonl"]) {
            let what = "name a .jsonl file beside exercise.toml";
            file.fail("recording", format!("`recording` is `{name}`; {what}"));
            return None;
        }
        let path = format!("{}/{name}", self.path);
        let recording = self.loader.text(&path)?;
        let shown = self.loader.source.shown(&path);
        let hide = std::mem::take(&mut found.hide);
        let detective = Detective::new(question.unwrap_or_default(), hide, recording, shown);
        detective
            .map_err(|(line, what)| self.loader.fail(&path, line, what))
            .ok()
            .map(ExerciseKind::Detective)
    }

    /// The text of a file beside exercise.toml.
    fn text(&self, name: &str) -> Option<String> {
        self.loader.clean(&format!("{}/{name}", self.path))
    }
}

/// A solution with its change; words that do not stand there once are reported.
fn changed(
    file: &TomlFile<'_>,
    name: &str,
    raw: WrongToml,
    kernels: &[Kernel],
) -> Option<WrongSolution> {
    let names = || kernels.iter().map(|kernel| kernel.file.name.as_str());
    let asked = raw.file.as_deref().or(names().next())?;
    let Some(kernel) = names().position(|known| known == asked) else {
        file.unknown(&format!("{name}.file"), "file", asked, names());
        return None;
    };
    let mut text = kernels[kernel].file.solution.clone();
    for (from, to) in &raw.change {
        let found = text.matches(from.as_str()).count();
        if found != 1 {
            let what = "of the solution, not once; quote words that stand there once";
            let what = format!("`{from}` stands in {found} places {what}");
            file.fail(&format!("{name}.change"), one_line(&what));
        }
        text = text.replacen(from.as_str(), to, 1);
    }
    Some(WrongSolution {
        name: one_line(name),
        kernel,
        text,
        refused: raw.refused,
    })
}

/// Reports a product that has no value at one of the shapes; `extra` are names that the engine fills in.
fn fits(
    file: &TomlFile<'_>,
    path: &str,
    product: &Product,
    shapes: &[KernelShape],
    extra: &[&str],
) {
    for shape in shapes {
        let mut sizes = shape.sizes.clone();
        sizes.extend(extra.iter().map(|name| ((*name).to_owned(), 64)));
        if let Err(what) = product.value(&sizes) {
            return file.fail(path, format!("{what}, in shape `{}`", shape.label));
        }
    }
}
