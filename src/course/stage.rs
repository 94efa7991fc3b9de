//! A stage as checked data: `stage.toml`, and the configuration that the learner edits, as starter and as solution. A stage with a fault is
//! reported and left out. A control character in its texts is removed and reported, and the stage is kept.

mod read;

pub use read::{CONFIG, plain_name};
pub(super) use read::{check_head, check_id, check_keys, check_question, plain_file, read};

use serde::{Deserialize, Deserializer};

use super::check::{Check, CheckToml};
use super::lesson::Lesson;
use crate::panel::Panel;
use crate::scale::Scale;
use protocol::config::{KNOBS, KnobValue, Preset, RunConfig};

/// The difficulty of a stage: a beginner looks, an intermediate learner takes apart, an advanced one writes.
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

/// One numbered fault, which a learner sees, predicts, explains, fixes and measures.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Stage {
    /// The key of the learner's progress. It never changes once it is published.
    pub id: String,
    /// The title in the list of stages.
    pub title: String,
    pub level: StageLevel,
    /// One or two sentences that say what the panels show, without an explanation.
    pub symptom: String,
    /// The explanation of the fault, shown only after the prediction.
    pub fault: String,
    /// One line that says what the solution changes.
    pub fix: String,
    /// A note on what a CPU device cannot show of this stage, shown only after the prediction.
    pub cpu_note: Option<String>,
    /// The keys in which the broken and the fixed configuration may differ.
    #[serde(default)]
    pub varies: Vec<String>,
    /// The keys that a learner may change: those in `varies`, and others that could be the fault but are not. If the file has no such list,
    /// it is `varies`.
    #[serde(default)]
    pub offers: Vec<String>,
    /// The number of steps that `check` trains before it judges.
    #[serde(default = "default_steps")]
    pub steps: u64,
    /// The name of the lesson's file: `01-broken-init.md`.
    #[serde(rename = "lesson", default)]
    pub lesson_file: String,
    /// Exactly three hints; the last one nearly tells the answer.
    #[serde(default)]
    pub hints: Vec<String>,
    /// The question that the learner answers before anything is explained.
    pub prediction: Question,
    /// A figure for which the learner guesses a range.
    pub estimate: Option<Estimate>,
    /// The panels to look at.
    #[serde(default)]
    pub evidence: Vec<PanelPointer>,
    /// Questions about the lesson.
    #[serde(default)]
    pub quiz: Vec<Question>,
    /// Panels and figures that answer the prediction. The screen hides them until the prediction is made or the vote is closed.
    #[serde(default)]
    pub hides: Vec<String>,
    #[serde(rename = "claim", default)]
    pub claims: Vec<PublishedClaim>,
    /// The tables `[[check]]` of the file. Reading the stage moves them into `checks`.
    #[serde(rename = "check", default)]
    pub checks_toml: Vec<CheckToml>,
    /// The beats of presenter mode.
    #[serde(rename = "beat", default)]
    pub cues: Vec<Beat>,
    // The fields below are not keys of `stage.toml`.
    /// The number in the name of the stage's folder.
    #[serde(skip)]
    pub number: u32,
    /// The criteria that a solution has to meet.
    #[serde(skip)]
    pub checks: Vec<Check>,
    /// The file `config.toml`, which the learner edits.
    #[serde(skip)]
    pub file: StageFile,
    /// The configuration that the learner starts from.
    #[serde(skip, default = "unread")]
    pub broken: RunConfig,
    /// The configuration of the solution.
    #[serde(skip, default = "unread")]
    pub fixed: RunConfig,
    #[serde(skip)]
    pub lesson: Lesson,
    /// The folder of the stage, for messages: `exercises/01-broken-init`.
    #[serde(skip)]
    pub path: String,
    /// The line of the id in `stage.toml`, for messages.
    #[serde(skip)]
    pub id_line: usize,
}

const fn default_steps() -> u64 {
    20
}

fn unread() -> RunConfig {
    RunConfig::preset(Preset::default())
}

/// A question with its choices; the first choice is `a`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    pub prompt: String,
    #[serde(default)]
    pub choices: Vec<String>,
    /// The index of the right choice. The file has its letter.
    #[serde(deserialize_with = "index_of_letter")]
    pub answer: usize,
    pub explanation: String,
}

/// A figure whose range a learner guesses before it is measured.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Estimate {
    pub prompt: String,
    /// The placeholder of the measured figure, such as `pair.ratio`.
    pub of: String,
    /// The unit of the figure.
    #[serde(default)]
    pub unit: String,
    /// The first value of the scale on which the range is drawn.
    pub from: f64,
    /// The last value of the scale.
    pub to: f64,
    /// True if the scale is logarithmic.
    #[serde(default)]
    pub log: bool,
}

impl Estimate {
    /// Returns the scale on which the range is drawn.
    pub const fn scale(&self) -> Scale {
        Scale {
            low: self.from,
            high: self.to,
            log: self.log,
        }
    }

    /// Returns the place of a figure on the scale, in words, if a learner could guess the figure from the scale alone: at an end, or in the
    /// middle.
    pub fn gives_away(&self, truth: f64) -> Option<&'static str> {
        match self.scale().share(truth) {
            share if !(0.08..=0.92).contains(&share) => Some("at an end of its scale"),
            share if (share - 0.5).abs() < 0.03 => Some("in the middle of its scale"),
            _ => None,
        }
    }
}

/// A panel to look at, and what is to be seen there.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PanelPointer {
    /// Any panel but the lesson.
    pub panel: Panel,
    /// Words in the rows that show the fault, separated by commas. If empty, the whole panel shows it.
    #[serde(default)]
    pub row: String,
    /// True if the panel shows the fault. Some panels are looked at because nothing is wrong there.
    #[serde(default = "yes")]
    pub shows: bool,
    /// A sentence about what is to be seen.
    pub text: String,
}

const fn yes() -> bool {
    true
}

impl PanelPointer {
    /// Returns true if a row is one of the rows that show the fault.
    pub fn is_row(&self, row: &str) -> bool {
        contains_any(&row.to_lowercase(), &self.row.to_lowercase())
    }
}

/// Returns true if a name contains one of the words, or if there are no words. `words` is a list with commas.
fn contains_any(name: &str, words: &str) -> bool {
    words.is_empty() || words.split(',').any(|word| name.contains(word.trim()))
}

/// A figure published by someone else. Figures that we measured do not belong here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedClaim {
    /// The claim in a sentence.
    pub text: String,
    /// The author, the device and the date.
    pub source: String,
}

/// One beat of presenter mode.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Beat {
    /// The panel to look at.
    pub show: Panel,
    /// The text that the audience reads.
    pub say: String,
    #[serde(default)]
    pub does: BeatChange,
    /// A figure to show in large glyphs, such as `{{run.loss_first}}`.
    #[serde(default)]
    pub large: String,
    /// Words that select the rows to look at, separated by commas: parts of names of operations or figures, or words of a heading in the
    /// lesson, whose table is shown.
    #[serde(default)]
    pub row: String,
    /// The figure of an operation that is shown in large glyphs.
    #[serde(default)]
    pub figure: KernelFigure,
    /// The largest number of pairs that this beat measures; 0 means that the pace decides.
    #[serde(default)]
    pub pairs: u32,
    /// The text that only the presenter reads.
    #[serde(default)]
    pub notes: String,
    /// The planned length in minutes.
    #[serde(default)]
    pub minutes: f64,
}

impl Beat {
    /// Returns true if the audience is to look at a row with this name: it contains one of the words in `row`, or `row` is empty.
    pub fn asks(&self, name: &str) -> bool {
        contains_any(name, &self.row)
    }
}

/// A figure of an operation in the list of kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelFigure {
    /// The share of the step.
    #[default]
    Share,
    Rate,
    Bytes,
    Calls,
    TimeOfACall,
}

/// The change that a beat of a presentation makes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BeatChange {
    #[default]
    Nothing,
    /// The audience votes on the stage's prediction. Later beats come after the vote.
    Vote,
    /// The solution runs in this beat and all later ones.
    Toggle,
    /// The beat measures broken and fixed in pairs.
    Pair,
    /// One more hint is shown in this beat and all later ones.
    Hint,
}

/// A file that the learner edits, with its text in the starter and in the solution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StageFile {
    /// The name: `config.toml`, `kernel.wgsl`.
    pub name: String,
    pub starter: String,
    pub solution: String,
}

/// The letter of a choice in a file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ChoiceLetter {
    A,
    B,
    C,
    D,
}

fn index_of_letter<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    Ok(ChoiceLetter::deserialize(deserializer)? as usize)
}

impl Stage {
    /// Returns the starter at another preset. Sizes follow the preset, except for those that the stage sets itself.
    pub fn broken_at(&self, preset: Preset) -> RunConfig {
        at_preset(&self.broken, preset)
    }

    /// Returns the solution at another preset.
    pub fn fixed_at(&self, preset: Preset) -> RunConfig {
        at_preset(&self.fixed, preset)
    }
}

/// Returns a configuration at another preset. Sizes follow the preset, except for those that the configuration sets itself.
pub fn at_preset(config: &RunConfig, preset: Preset) -> RunConfig {
    if preset == config.preset {
        return config.clone();
    }
    let plain = RunConfig::preset(config.preset);
    let mut moved = RunConfig::preset(preset);
    for knob in KNOBS.iter().filter(|knob| knob.path != "preset") {
        let value = (knob.get)(config);
        if value != (knob.get)(&plain) {
            // A key takes every value that a configuration holds already.
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
    fn a_scale_gives_away_a_figure_in_its_middle_or_at_an_end() {
        for (from, to, place) in [
            (0.5, 2.0, Some("in the middle of its scale")),
            (0.95, 2.0, Some("at an end of its scale")),
            (0.2, 2.0, None),
        ] {
            let ratio = Estimate {
                from,
                to,
                log: true,
                ..Estimate::default()
            };
            assert_eq!(ratio.gives_away(1.0), place);
        }
    }
}
