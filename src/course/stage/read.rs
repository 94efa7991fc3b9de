//! Reads the folder of a stage, and checks what serde cannot know: that names exist, and that texts fit.

use std::str::FromStr;

use super::{Question, Stage, StageFile};
use crate::course::check;
use crate::course::config_file::FileError;
use crate::course::placeholder;
use crate::course::source::Loader;
use crate::course::toml_file::{self, TomlFile};
use crate::panel::Panel;
use protocol::config::Knob;

const CONFIG: &str = "config.toml";

/// The names that `hides` may have besides panels: figures of the header, clocks, strides, and the names of kernels.
const HIDES: [&str; 6] = [
    "trained",
    "unaccounted",
    "peak",
    "clocks",
    "strides",
    "names",
];

/// The largest number of characters of the text of a beat: three lines of a small screen.
const LONGEST_BEAT: usize = 210;

/// Reads the folder `exercises/NN-name`, without its lesson. If the stage cannot be used, the problem is reported to the loader and the
/// result is `None`.
pub(in crate::course) fn read(loader: &Loader<'_>, folder: &str, number: u32) -> Option<Stage> {
    let path = format!("exercises/{folder}");
    let text = |name: &str| loader.clean(&format!("{path}/{name}"));
    let side = |name: &str| {
        let text = text(name)?;
        let config = loader.config(&format!("{path}/{name}"), &text)?;
        Ok((text, config))
    };
    let toml = format!("{path}/stage.toml");
    let read = toml_file::read(loader, &toml, |file, mut stage: Stage| {
        check_stage(file, &mut stage, folder)?;
        for file in &mut stage.files[1..] {
            file.starter = text(&file.name)?;
            file.solution = text(&format!("solution/{}", file.name))?;
        }
        Ok(stage)
    });
    // All three are read before one of them ends the reading, so that every problem is reported.
    let stage = loader.usable(read);
    let broken = loader.usable(side(CONFIG));
    let fixed = loader.usable(side(&format!("solution/{CONFIG}")));
    let mut stage = stage?;
    (stage.files[0].starter, stage.broken) = broken?;
    (stage.files[0].solution, stage.fixed) = fixed?;
    stage.number = number;
    stage.path = path;
    let problems = scope_problems(&stage);
    for what in &problems {
        loader.fail(&toml, 0, what);
    }
    problems.is_empty().then_some(stage)
}

/// Checks the values of a `stage.toml`, and fills in those that may be left out. All faults are reported, not only the first.
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
    let mut panels = stage.evidence.iter().map(|pointer| pointer.panel);
    if let Some(at) = panels.position(|panel| panel == Panel::Lesson) {
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
            let what =
                format!("`say` has {length} characters; a room reads at most {LONGEST_BEAT}");
            fault(&format!("beat.{at}.say"), what);
        }
    }
    if stage.varies.is_empty() {
        let what = "`varies` names no key; list the keys under learner, such as [\"model.init\"]";
        fault("varies", what.to_owned());
    }
    file.keep(check_keys(file, "varies", &stage.varies));
    file.keep(check_keys(file, "offers", &stage.offers));
    if stage.offers.is_empty() {
        stage.offers.clone_from(&stage.varies);
    }
    let is_missing = |path: &&String| !stage.offers.contains(path);
    if let Some(path) = stage.varies.iter().find(is_missing) {
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
    for (at, raw) in std::mem::take(&mut stage.checks_toml)
        .into_iter()
        .enumerate()
    {
        match check::checked(file, &format!("check.{at}"), raw) {
            Ok(check) => stage.checks.push(check),
            Err(fault) => file.keep(Err(fault)),
        }
    }
    stage.id_line = file.line("id");
    Ok(())
}

/// Checks the values that stages and exercises share: the id can name a folder, there are three hints, and each question of the quiz
/// has four choices.
pub(in crate::course) fn check_head(
    file: &TomlFile<'_>,
    (id, example): (&str, &str),
    hints: &[String],
    quiz: &[Question],
) {
    file.keep(check_id(file, id, example));
    if hints.len() != 3 {
        let what = "write exactly 3; the last one nearly gives the answer";
        let what = format!("has {} hints; {what}", hints.len());
        file.keep(Err(file.fault("hints", what)));
    }
    for (at, question) in quiz.iter().enumerate() {
        file.keep(check_question(file, &format!("quiz.{at}"), question));
    }
}

/// Refuses an id that could not be the name of a table or a folder.
pub(in crate::course) fn check_id(
    file: &TomlFile<'_>,
    id: &str,
    example: &str,
) -> Result<(), FileError> {
    if plain_name(id) {
        return Ok(());
    }
    let what = "`id` takes lower-case letters, digits and `-`, such as";
    Err(file.fault("id", format!("{what} \"{example}\"")))
}

/// Refuses a question without exactly four choices. `path` is the key of the question.
pub(in crate::course) fn check_question(
    file: &TomlFile<'_>,
    path: &str,
    question: &Question,
) -> Result<(), FileError> {
    let choices = question.choices.len();
    if choices == 4 {
        return Ok(());
    }
    let what = format!("has {choices} choices; write 4, a to d");
    Err(file.fault(&format!("{path}.choices"), what))
}

/// Refuses a path in the list `key` that is not a key of a configuration.
pub(in crate::course) fn check_keys(
    file: &TomlFile<'_>,
    key: &str,
    paths: &[String],
) -> Result<(), FileError> {
    for path in paths {
        if let Err(unknown) = Knob::find(path) {
            return Err(file.fault(key, format!("`{key}` names an {unknown}")));
        }
    }
    Ok(())
}

/// Returns a problem for each key in which the broken and the fixed configuration differ although `varies` does not list it, or one
/// problem if they do not differ at all.
fn scope_problems(stage: &Stage) -> Vec<String> {
    let differs = stage.broken.differences(&stage.fixed);
    let both = "config.toml and solution/config.toml";
    if differs.is_empty() && stage.files.len() < 2 {
        return vec![format!(
            "{both} say the same; the starter must hold the fault"
        )];
    }
    let what = "add it to `varies` or make it equal";
    differs
        .iter()
        .filter(|path| !stage.varies.iter().any(|varied| varied == *path))
        .map(|path| format!("{both} differ in `{path}`; {what}"))
        .collect()
}

/// Returns true for a name of lower-case letters, digits and `-`, with at most 64 characters.
pub fn plain_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 64
        && name
            .bytes()
            .all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-'))
}

/// Returns true for a file name without a folder, with one of these endings.
pub(in crate::course) fn plain_file(name: &str, endings: &[&str]) -> bool {
    name.rsplit_once('.')
        .is_some_and(|(stem, ending)| plain_name(stem) && endings.contains(&ending))
}
