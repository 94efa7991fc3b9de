//! A stage as checked data, and how it is read: `stage.toml`, its two configurations and its kernels. A stage with a
//! fault is reported and left out; a removed control character is reported and the stage kept.

use serde::{Deserialize, Deserializer};

use super::check::{self, Check, CheckToml};
use super::lesson::Lesson;
use super::source::Source;
use super::toml_file::{TomlFile, one_of};
use super::{placeholder, text};
use crate::config::file::{self, FileError};
use crate::config::{KNOBS, Preset, RunConfig, Value, nearest};
use crate::panel::Panel;

/// What a learner is expected to do: look, take apart, write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    #[default]
    Beginner,
    Intermediate,
    Advanced,
}

impl Level {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Beginner => "beginner",
            Self::Intermediate => "intermediate",
            Self::Advanced => "advanced",
        }
    }
}

/// One fault: seen, predicted, explained, fixed, measured.
#[derive(Clone, Debug)]
pub struct Stage {
    /// Key of the learner's progress; never changes once published.
    pub id: String,
    pub number: u32,
    pub title: String,
    pub level: Level,
    /// One or two sentences: what the panels show, unexplained.
    pub symptom: String,
    pub prediction: Question,
    /// How much a figure will change, as the learner's own range.
    pub estimate: Option<Estimate>,
    pub evidence: Vec<Pointer>,
    /// Exactly three; the last all but gives it away.
    pub hints: Vec<String>,
    pub quiz: Vec<Question>,
    pub broken: RunConfig,
    pub fixed: RunConfig,
    /// Paths at which broken and fixed may differ.
    pub varies: Vec<String>,
    pub claims: Vec<Claim>,
    pub checks: Vec<Check>,
    pub lesson: Lesson,
    /// What is wrong: shown only after the prediction.
    pub fault: String,
    /// One line: what `t` toggles.
    pub fix: String,
    /// What a CPU device cannot show of this stage, if anything: shown only after the prediction.
    pub cpu_note: Option<String>,
    /// What the learner edits.
    pub files: Vec<StageFile>,
    /// Steps that `check` trains before it looks.
    pub steps: u64,
    /// The beats of presenter mode.
    pub cues: Vec<Cue>,
    /// Name of its lesson's file: `01-broken-init.md`.
    pub lesson_file: String,
    /// Language of the lesson that was found.
    pub language: String,
    /// Where the stage came from, for messages: `exercises/01-broken-init`.
    pub path: String,
    /// Line of the id in `stage.toml`, for messages.
    pub id_line: usize,
}

/// A question with its choices, a first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Question {
    pub prompt: String,
    pub choices: Vec<String>,
    /// Index into `choices`.
    #[serde(deserialize_with = "letter")]
    pub answer: usize,
    pub explanation: String,
}

/// A figure to guess before it is measured.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Estimate {
    pub prompt: String,
    /// The placeholder name that holds the truth, such as `pair.ratio`.
    pub of: String,
    #[serde(default)]
    pub unit: String,
    /// The scale on which the range is drawn.
    pub from: f64,
    pub to: f64,
    /// Draw the scale logarithmically.
    pub log: bool,
}

/// Where to look.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Pointer {
    /// One of [`Panel::NAMES`] but the first, `lesson`.
    #[serde(deserialize_with = "panel")]
    pub panel: String,
    pub text: String,
}

/// A number somebody published, never ours.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Claim {
    pub text: String,
    /// Who, on what device, when.
    pub source: String,
}

/// One beat of presenter mode.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Cue {
    /// The panel to look at: one of [`Panel::NAMES`].
    #[serde(deserialize_with = "panel_or_lesson")]
    pub show: String,
    /// What the room reads.
    pub say: String,
    #[serde(default)]
    pub does: CueDoes,
}

/// What a beat does when it is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CueDoes {
    #[default]
    Nothing,
    /// Switches to the solution, while the run goes on.
    Toggle,
    /// Measures both in pairs.
    Pair,
    /// Shows the next hint.
    Hint,
}

/// A file of a stage: what the learner starts from and what passes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StageFile {
    /// `config.toml`, `kernel.wgsl`.
    pub name: String,
    pub starter: String,
    pub solution: String,
}

/// Most characters of what a beat says: three lines of a small screen.
const LONGEST_BEAT: usize = 210;

fn letter<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    const LETTERS: &[&str] = &["a", "b", "c", "d"];
    let found = one_of(deserializer, LETTERS)?;
    Ok(LETTERS
        .iter()
        .position(|letter| *letter == found)
        .unwrap_or(0))
}

fn panel<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    one_of(deserializer, &Panel::NAMES[1..])
}

fn panel_or_lesson<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    one_of(deserializer, Panel::NAMES)
}

/// `stage.toml` as it is written.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct StageToml {
    id: String,
    title: String,
    level: Level,
    symptom: String,
    fault: String,
    fix: String,
    cpu_note: Option<String>,
    varies: Vec<String>,
    steps: Option<u64>,
    files: Vec<String>,
    lesson: Option<String>,
    hints: Vec<String>,
    prediction: Question,
    estimate: Option<Estimate>,
    evidence: Vec<Pointer>,
    quiz: Vec<Question>,
    claim: Vec<Claim>,
    check: Vec<CheckToml>,
    beat: Vec<Cue>,
}

/// Reads the folder `exercises/NN-name`, without its lesson. `None`: it cannot be used, and `problems` says why.
pub fn read(
    source: &Source,
    folder: &str,
    number: u32,
    problems: &mut Vec<FileError>,
) -> Option<Stage> {
    let path = format!("exercises/{folder}");
    let toml_path = format!("{path}/stage.toml");
    let toml = source.text(&toml_path, problems)?;
    let (file, found) = TomlFile::read::<StageToml>(&toml, &source.shown(&toml_path));
    let stage = found.map(|found| checked(&file, found, folder, number));
    let usable = file.finish(problems);
    let mut stage = stage?;

    let broken = config(source, &format!("{path}/config.toml"), problems);
    let fixed = config(source, &format!("{path}/solution/config.toml"), problems);
    let mut missing = false;
    for file in stage.files.iter_mut().skip(1) {
        let starter = source.clean(&format!("{path}/{}", file.name), problems);
        let solution = source.clean(&format!("{path}/solution/{}", file.name), problems);
        missing |= starter.is_none() || solution.is_none();
        file.starter = starter.unwrap_or_default();
        file.solution = solution.unwrap_or_default();
    }
    let ((starter, broken), (solution, fixed)) = (broken?, fixed?);
    if missing || !usable {
        return None;
    }
    (stage.files[0].starter, stage.files[0].solution) = (starter, solution);
    (stage.broken, stage.fixed, stage.path) = (broken, fixed, path);
    let wrong = scope_problems(&stage);
    let usable = wrong.is_empty();
    problems.extend(wrong.into_iter().map(|what| FileError {
        path: source.shown(&toml_path),
        line: 0,
        what,
    }));
    usable.then_some(stage)
}

fn checked(file: &TomlFile<'_>, found: StageToml, folder: &str, number: u32) -> Stage {
    check_head(file, (&found.id, "broken-init"), &found.hints, &found.quiz);
    check_question(file, "prediction", &found.prediction);
    if let Some(estimate) = &found.estimate {
        if let Some(what) = placeholder::problem(&estimate.of) {
            file.fail("estimate.of", what);
        }
        if estimate.from >= estimate.to || (estimate.log && estimate.from <= 0.0) {
            file.fail(
                "estimate.from",
                "the scale needs `from` below `to`, and above 0 when `log = true`",
            );
        }
    }
    for (at, cue) in found.beat.iter().enumerate() {
        let length = cue.say.chars().count();
        if length > LONGEST_BEAT {
            file.fail(
                &format!("beat.{at}.say"),
                format!("`say` has {length} characters; a room reads at most {LONGEST_BEAT}"),
            );
        }
    }
    if found.varies.is_empty() {
        file.fail(
            "varies",
            "`varies` names no key; list the keys under study, such as [\"model.init\"]",
        );
    }
    check_keys(file, "varies", &found.varies);
    if found.check.is_empty() {
        file.fail("check", "has no check; write at least one `[[check]]`");
    }
    for name in found
        .files
        .iter()
        .filter(|name| !plain_file(name, &["toml", "wgsl"]))
    {
        file.fail(
            "files",
            format!(
                "`files` names `{name}`; name files beside stage.toml, such as \"kernel.wgsl\""
            ),
        );
    }
    let lesson_file = found.lesson.unwrap_or_else(|| format!("{folder}.md"));
    if !plain_file(&lesson_file, &["md"]) {
        file.fail(
            "lesson",
            format!(
                "`lesson` is `{lesson_file}`; name a file of lessons/, such as \"{folder}.md\""
            ),
        );
    }
    let mut files = found.files;
    files.retain(|name| name != "config.toml");
    files.insert(0, "config.toml".to_owned());
    let checks = found.check.into_iter().enumerate();
    Stage {
        number,
        title: found.title,
        level: found.level,
        symptom: found.symptom,
        prediction: found.prediction,
        estimate: found.estimate,
        evidence: found.evidence,
        hints: found.hints,
        quiz: found.quiz,
        broken: RunConfig::preset(Preset::default()),
        fixed: RunConfig::preset(Preset::default()),
        varies: found.varies,
        claims: found.claim,
        checks: checks
            .map(|(at, raw)| check::checked(file, &format!("check.{at}"), raw))
            .collect(),
        lesson: Lesson::default(),
        fault: found.fault,
        fix: found.fix,
        cpu_note: found.cpu_note,
        files: files
            .into_iter()
            .map(|name| StageFile {
                name,
                ..StageFile::default()
            })
            .collect(),
        steps: found.steps.unwrap_or(20),
        cues: found.beat,
        lesson_file,
        language: "en".to_owned(),
        path: String::new(),
        id_line: file.line("id"),
        id: found.id,
    }
}

/// Checks what stages and exercises share: the id is a name for a folder, there are three hints, and each question of the
/// quiz has four choices.
pub fn check_head(
    file: &TomlFile<'_>,
    (id, example): (&str, &str),
    hints: &[String],
    quiz: &[Question],
) {
    check_id(file, id, example);
    if hints.len() != 3 {
        let what = "write exactly 3, the last all but gives it away";
        file.fail("hints", format!("has {} hints; {what}", hints.len()));
    }
    for (at, question) in quiz.iter().enumerate() {
        check_question(file, &format!("quiz.{at}"), question);
    }
}

/// Reports an id that could not be the name of a table or a folder.
pub fn check_id(file: &TomlFile<'_>, id: &str, example: &str) {
    if !plain_name(id) {
        let what = "`id` takes lower-case letters, digits and `-`, such as";
        file.fail("id", format!("{what} \"{example}\""));
    }
}

pub fn check_question(file: &TomlFile<'_>, path: &str, question: &Question) {
    let choices = question.choices.len();
    if choices != 4 {
        file.fail(
            &format!("{path}.choices"),
            format!("has {choices} choices; write 4, a to d"),
        );
    }
}

/// Reports every path in the list `key` that is not a configuration's.
pub fn check_keys(file: &TomlFile<'_>, key: &str, paths: &[String]) {
    for path in paths {
        if !KNOBS.iter().any(|knob| knob.path == path) {
            let near = nearest(path, KNOBS.iter().map(|knob| knob.path));
            file.fail(
                key,
                format!("`{key}` names an unknown key `{path}`; the nearest known key is `{near}`"),
            );
        }
    }
}

/// A configuration of the stage and its text.
fn config(
    source: &Source,
    path: &str,
    problems: &mut Vec<FileError>,
) -> Option<(String, RunConfig)> {
    let raw = source.text(path, problems)?;
    let shown = source.shown(path);
    let text = text::cleaned(&raw, &shown, problems);
    match file::parse(&raw, &shown) {
        Ok(config) => Some((text, config)),
        Err(mut error) => {
            error.what = text::one_line(&error.what);
            problems.push(error);
            None
        }
    }
}

/// A stage whose two sides differ in anything else than it says teaches something else than it says.
fn scope_problems(stage: &Stage) -> Vec<String> {
    let differs = stage.broken.differences(&stage.fixed);
    let mut found: Vec<String> = differs
        .iter()
        .filter(|path| !stage.varies.iter().any(|v| v == *path))
        .map(|path| format!("config.toml and solution/config.toml differ in `{path}`; add it to `varies` or make it equal"))
        .collect();
    if differs.is_empty() && stage.files.len() < 2 {
        found.push(
            "config.toml and solution/config.toml say the same; the starter must hold the fault"
                .to_owned(),
        );
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
