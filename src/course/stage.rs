//! A stage as checked data, and how it is read: `stage.toml`, its two configurations and its kernels. A stage with a
//! fault is reported and left out; a removed control character is reported and the stage kept.

use std::str::FromStr;

use serde::{Deserialize, Deserializer};

use super::check::{self, Check, CheckToml};
use super::lesson::Lesson;
use super::placeholder;
use super::source::Loader;
use super::toml_file::{self, TomlFile};
use crate::course::config_file::FileError;
use crate::panel::Panel;
use protocol::config::{KNOBS, Knob, KnobValue, Preset, RunConfig};

/// What a learner is expected to do: look, take apart, write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum StageLevel {
    #[default]
    Beginner,
    Intermediate,
    Advanced,
}

/// One fault: seen, predicted, explained, fixed, measured.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Stage {
    /// Key of the learner's progress; never changes once published.
    pub id: String,
    pub title: String,
    pub level: StageLevel,
    /// One or two sentences: what the panels show, unexplained.
    pub symptom: String,
    /// What is wrong: shown only after the prediction.
    pub fault: String,
    /// One line: what the solution changes.
    pub fix: String,
    /// What a CPU device cannot show of this stage, if anything: shown only after the prediction.
    pub cpu_note: Option<String>,
    /// Paths under study: those at which broken and fixed may differ.
    #[serde(default)]
    pub varies: Vec<String>,
    /// Paths that a learner may change: those under study, and others that could be the fault and are not. Without the
    /// key, `varies`.
    #[serde(default)]
    pub offers: Vec<String>,
    /// Steps that `check` trains before it looks.
    #[serde(default = "few_steps")]
    pub steps: u64,
    /// What the learner edits; `config.toml` is the first.
    #[serde(default)]
    pub files: Vec<StageFile>,
    /// Name of its lesson's file: `01-broken-init.md`.
    #[serde(rename = "lesson", default)]
    pub lesson_file: String,
    /// Exactly three; the last all but gives it away.
    #[serde(default)]
    pub hints: Vec<String>,
    pub prediction: Question,
    /// How much a figure will change, as the learner's own range.
    pub estimate: Option<Estimate>,
    #[serde(default)]
    pub evidence: Vec<PanelPointer>,
    #[serde(default)]
    pub quiz: Vec<Question>,
    /// What the screen keeps to itself until the prediction is made or the vote closed, because it answers it.
    #[serde(default)]
    pub hides: Vec<String>,
    #[serde(rename = "claim", default)]
    pub claims: Vec<PublishedClaim>,
    /// The checks as they are written; `checks` is what they mean.
    #[serde(rename = "check", default)]
    pub checks_toml: Vec<CheckToml>,
    /// The beats of presenter mode.
    #[serde(rename = "beat", default)]
    pub cues: Vec<Beat>,
    // What follows is not in `stage.toml`.
    #[serde(skip)]
    pub number: u32,
    #[serde(skip)]
    pub checks: Vec<Check>,
    #[serde(skip, default = "unread")]
    pub broken: RunConfig,
    #[serde(skip, default = "unread")]
    pub fixed: RunConfig,
    #[serde(skip)]
    pub lesson: Lesson,
    /// Where the stage came from, for messages: `exercises/01-broken-init`.
    #[serde(skip)]
    pub path: String,
    /// Line of the id in `stage.toml`, for messages.
    #[serde(skip)]
    pub id_line: usize,
}

const fn few_steps() -> u64 {
    20
}

fn unread() -> RunConfig {
    RunConfig::preset(Preset::default())
}

/// A question with its choices, a first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    pub prompt: String,
    #[serde(default)]
    pub choices: Vec<String>,
    /// Index into `choices`.
    #[serde(deserialize_with = "letter")]
    pub answer: usize,
    pub explanation: String,
}

/// A figure to guess before it is measured.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
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
    #[serde(default)]
    pub log: bool,
}

impl Estimate {
    /// Where on its scale a value is, from 0 to 1.
    pub fn share(&self, value: f64) -> f64 {
        let share = if self.log {
            (value.max(f64::MIN_POSITIVE) / self.from).ln() / (self.to / self.from).ln()
        } else {
            (value - self.from) / (self.to - self.from)
        };
        if share.is_finite() {
            share.clamp(0.0, 1.0)
        } else {
            0.0
        }
    }

    /// Why a figure can be guessed from the scale alone: it lies at an end, or in the middle.
    pub fn gives_away(&self, truth: f64) -> Option<&'static str> {
        match self.share(truth) {
            share if !(0.08..=0.92).contains(&share) => Some("at an end of its scale"),
            share if (share - 0.5).abs() < 0.03 => Some("in the middle of its scale"),
            _ => None,
        }
    }
}

/// Where to look.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PanelPointer {
    /// Any but the lesson.
    pub panel: Panel,
    /// Which rows show the fault: parts of them with commas between; empty: the panel as a whole.
    #[serde(default)]
    pub row: String,
    /// Whether the fault is seen there at all; else it is looked at because nothing is wrong with it.
    #[serde(default = "yes")]
    pub shows: bool,
    pub text: String,
}

const fn yes() -> bool {
    true
}

impl PanelPointer {
    /// Whether a row is one of those that show the fault.
    pub fn is_row(&self, row: &str) -> bool {
        asks(&self.row.to_lowercase(), &row.to_lowercase())
    }
}

/// Whether a name has one of these words in it, or there are none.
fn asks(words: &str, name: &str) -> bool {
    words.is_empty() || words.split(',').any(|word| name.contains(word.trim()))
}

/// A number somebody published, never ours.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedClaim {
    pub text: String,
    /// Who, on what device, when.
    pub source: String,
}

/// One beat of presenter mode.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Beat {
    /// The panel to look at.
    pub show: Panel,
    /// What the room reads.
    pub say: String,
    #[serde(default)]
    pub does: BeatChange,
    /// One figure to be shown in large glyphs, such as `{{run.loss_first}}`.
    #[serde(default)]
    pub large: String,
    /// What is looked at, with commas between them: parts of names of operations or of figures of the evidence; or words of a
    /// heading in the lesson, whose table is shown.
    #[serde(default)]
    pub row: String,
    /// What of the operations is shown in large glyphs.
    #[serde(default)]
    pub figure: KernelFigure,
    /// The most pairs that it measures; 0: as many as the pace allows.
    #[serde(default)]
    pub pairs: u32,
    /// What the presenter reads.
    #[serde(default)]
    pub notes: String,
    /// How long it is planned to take.
    #[serde(default)]
    pub minutes: f64,
}

impl Beat {
    /// Whether a name is what is looked at: it has one of the words in it, or there are none.
    pub fn asks(&self, name: &str) -> bool {
        asks(&self.row, name)
    }
}

/// What of an operation in the list of kernels is looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelFigure {
    /// Of the step.
    #[default]
    Share,
    Rate,
    Bytes,
    Calls,
    TimeOfACall,
}

/// What a beat adds to those before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BeatChange {
    #[default]
    Nothing,
    /// Asks the stage's prediction; later beats are after the vote.
    Vote,
    /// The solution runs, here and later.
    Toggle,
    /// Measures both in pairs.
    Pair,
    /// Shows one more hint, here and later.
    Hint,
}

/// A file of a stage: what the learner starts from and what passes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub struct StageFile {
    /// `config.toml`, `kernel.wgsl`.
    pub name: String,
    pub starter: String,
    pub solution: String,
}

impl From<String> for StageFile {
    fn from(name: String) -> Self {
        Self {
            name,
            ..Self::default()
        }
    }
}

const CONFIG: &str = "config.toml";

/// What can be hidden beside panels: figures of the header, clocks, strides, and the names of kernels.
const HIDES: [&str; 6] = [
    "trained",
    "unaccounted",
    "peak",
    "clocks",
    "strides",
    "names",
];

/// Most characters of what a beat says: three lines of a small screen.
const LONGEST_BEAT: usize = 210;

fn letter<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Letter {
        A,
        B,
        C,
        D,
    }
    Ok(Letter::deserialize(deserializer)? as usize)
}

/// Reads the folder `exercises/NN-name`, without its lesson. `None`: it cannot be used, and the loader knows why.
pub fn read(loader: &Loader<'_>, folder: &str, number: u32) -> Option<Stage> {
    let path = format!("exercises/{folder}");
    let text = |name: &str| loader.clean(&format!("{path}/{name}"));
    let side = |name: &str| {
        let text = text(name)?;
        let config = loader.config(&format!("{path}/{name}"), &text)?;
        Ok((text, config))
    };
    let toml = format!("{path}/stage.toml");
    let stage = toml_file::read(loader, &toml, |file, mut stage: Stage| {
        check_stage(file, &mut stage, folder)?;
        for file in &mut stage.files[1..] {
            file.starter = text(&file.name)?;
            file.solution = text(&format!("solution/{}", file.name))?;
        }
        Ok(stage)
    });
    let stage = loader.usable(stage);
    let broken = loader.usable(side(CONFIG));
    let fixed = loader.usable(side(&format!("solution/{CONFIG}")));
    let mut stage = stage?;
    (stage.files[0].starter, stage.broken) = broken?;
    (stage.files[0].solution, stage.fixed) = fixed?;
    (stage.number, stage.path) = (number, path);
    let wrong = scope_problems(&stage);
    wrong.iter().for_each(|what| loader.fail(&toml, 0, what));
    wrong.is_empty().then_some(stage)
}

fn check_stage(file: &TomlFile<'_>, stage: &mut Stage, folder: &str) -> Result<(), FileError> {
    let fault = |path: &str, what: String| file.keep(Err(file.fault(path, what)));
    check_head(file, (&stage.id, "broken-init"), &stage.hints, &stage.quiz);
    file.keep(check_question(file, "prediction", &stage.prediction));
    if let Some(estimate) = &stage.estimate {
        if let Some(what) = placeholder::problem(&estimate.of) {
            fault("estimate.of", what);
        }
        if estimate.from >= estimate.to || (estimate.log && estimate.from <= 0.0) {
            let what = "the scale needs `from` below `to`, and above 0 when `log = true`";
            fault("estimate.from", what.to_owned());
        }
    }
    let mut pointers = stage.evidence.iter();
    if let Some(at) = pointers.position(|pointer| pointer.panel == Panel::Lesson) {
        let what = "`panel` cannot be \"lesson\"; name a panel that shows figures";
        fault(&format!("evidence.{at}.panel"), what.to_owned());
    }
    let can_hide = |name: &String| HIDES.contains(&name.as_str()) || Panel::from_str(name).is_ok();
    if let Some(name) = stage.hides.iter().find(|name| !can_hide(name)) {
        let all = HIDES.join(", ");
        let what = format!("`hides` names `{name}`; name a panel, or one of {all}");
        fault("hides", what);
    }
    for (at, cue) in stage.cues.iter().enumerate() {
        let length = cue.say.chars().count();
        if length > LONGEST_BEAT {
            let what = format!("a room reads at most {LONGEST_BEAT}");
            let what = format!("`say` has {length} characters; {what}");
            fault(&format!("beat.{at}.say"), what);
        }
    }
    if stage.varies.is_empty() {
        let what = "`varies` names no key; list the keys under study, such as [\"model.init\"]";
        fault("varies", what.to_owned());
    }
    file.keep(check_keys(file, "varies", &stage.varies));
    file.keep(check_keys(file, "offers", &stage.offers));
    if stage.offers.is_empty() {
        stage.offers.clone_from(&stage.varies);
    }
    let missing = |path: &&String| !stage.offers.contains(path);
    if let Some(path) = stage.varies.iter().find(missing) {
        let what = format!("`offers` lacks `{path}`, which `varies` names; add it");
        fault("offers", what);
    }
    if stage.checks_toml.is_empty() {
        let what = "has no check; write at least one `[[check]]`";
        fault("check", what.to_owned());
    }
    stage.files.retain(|file| file.name != CONFIG);
    stage.files.insert(0, CONFIG.to_owned().into());
    for StageFile { name, .. } in &stage.files {
        if !plain_file(name, &["toml", "wgsl"]) {
            let what = "name files beside stage.toml, such as \"kernel.wgsl\"";
            fault("files", format!("`files` names `{name}`; {what}"));
        }
    }
    let own = format!("{folder}.md");
    if stage.lesson_file.is_empty() {
        stage.lesson_file.clone_from(&own);
    }
    if !plain_file(&stage.lesson_file, &["md"]) {
        let name = &stage.lesson_file;
        let what = format!("`lesson` is `{name}`; name a file of lessons/, such as \"{own}\"");
        fault("lesson", what);
    }
    let checks = std::mem::take(&mut stage.checks_toml)
        .into_iter()
        .enumerate();
    let checks = checks.map(|(at, raw)| check::checked(file, &format!("check.{at}"), raw));
    for checked in checks {
        match checked {
            Ok(check) => stage.checks.push(check),
            Err(fault) => file.keep(Err(fault)),
        }
    }
    stage.id_line = file.line("id");
    Ok(())
}

/// Checks what stages and exercises share: the id is a name for a folder, there are three hints, and each question of the
/// quiz has four choices.
pub fn check_head(
    file: &TomlFile<'_>,
    (id, example): (&str, &str),
    hints: &[String],
    quiz: &[Question],
) {
    file.keep(check_id(file, id, example));
    if hints.len() != 3 {
        let what = "write exactly 3, the last all but gives it away";
        let what = format!("has {} hints; {what}", hints.len());
        file.keep(Err(file.fault("hints", what)));
    }
    for (at, question) in quiz.iter().enumerate() {
        file.keep(check_question(file, &format!("quiz.{at}"), question));
    }
}

/// Refuses an id that could not be the name of a table or a folder.
pub fn check_id(file: &TomlFile<'_>, id: &str, example: &str) -> Result<(), FileError> {
    let what = "`id` takes lower-case letters, digits and `-`, such as";
    let fault = || file.fault("id", format!("{what} \"{example}\""));
    plain_name(id).then_some(()).ok_or_else(fault)
}

pub fn check_question(
    file: &TomlFile<'_>,
    path: &str,
    question: &Question,
) -> Result<(), FileError> {
    let choices = question.choices.len();
    let what = format!("has {choices} choices; write 4, a to d");
    let fault = || file.fault(&format!("{path}.choices"), what);
    (choices == 4).then_some(()).ok_or_else(fault)
}

/// Refuses a path in the list `key` that is not a configuration's.
pub fn check_keys(file: &TomlFile<'_>, key: &str, paths: &[String]) -> Result<(), FileError> {
    let mut found = paths.iter().map(|path| Knob::find(path));
    let unknown = found.find_map(Result::err);
    unknown.map_or(Ok(()), |unknown| {
        Err(file.fault(key, format!("`{key}` names an {unknown}")))
    })
}

/// A stage whose two sides differ in anything else than it says teaches something else than it says.
fn scope_problems(stage: &Stage) -> Vec<String> {
    let differs = stage.broken.differences(&stage.fixed);
    let both = "config.toml and solution/config.toml";
    if differs.is_empty() && stage.files.len() < 2 {
        return vec![format!(
            "{both} say the same; the starter must hold the fault"
        )];
    }
    let outside = differs
        .iter()
        .filter(|path| !stage.varies.iter().any(|it| it == *path));
    let what = "add it to `varies` or make it equal";
    outside
        .map(|path| format!("{both} differ in `{path}`; {what}"))
        .collect()
}

/// Lower-case letters, digits and `-`.
pub fn plain_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 64
        && name
            .bytes()
            .all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-'))
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

/// A configuration at another preset: sizes follow, but for those that it sets itself.
pub fn at_preset(config: &RunConfig, preset: Preset) -> RunConfig {
    if preset == config.preset {
        return config.clone();
    }
    let plain = RunConfig::preset(config.preset);
    let mut moved = RunConfig::preset(preset);
    for knob in KNOBS.iter().filter(|knob| knob.path != "preset") {
        let value = (knob.get)(config);
        if value != (knob.get)(&plain) {
            // A value that a configuration already holds is one its key takes.
            let _ = knob.set(&mut moved, &KnobValue::from_word(&value));
        }
    }
    if !moved.problems().is_empty() {
        moved.clone_from(config);
        moved.set_preset(preset);
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_gives_away_what_lies_in_its_middle_or_at_an_end() {
        let ratio = |from, to| Estimate {
            from,
            to,
            log: true,
            ..Estimate::default()
        };
        let places = [ratio(0.5, 2.0), ratio(0.95, 2.0), ratio(0.2, 2.0)];
        let places = places.map(|of| of.gives_away(1.0));
        let told = ["in the middle of its scale", "at an end of its scale"];
        assert_eq!(places, [Some(told[0]), Some(told[1]), None]);
    }
}
