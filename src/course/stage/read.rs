//! Reads the folder of a stage, and checks what serde cannot know: that names exist, and that texts fit.

use std::str::FromStr;

use super::{PanelPointer, Question, Stage, StageFile};
use crate::course::check::read_check;
use crate::course::config_file::FileError;
use crate::course::placeholder;
use crate::course::source::Loader;
use crate::course::toml_file::{self, TomlFile};
use crate::panel::Panel;
use protocol::config::Knob;

/// The name of the file that the learner edits.
pub const CONFIG: &str = "config.toml";

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
    let read_text = |name: &str| loader.clean(&format!("{path}/{name}"));
    let read_config = |name: &str| {
        let text = read_text(name)?;
        let config = loader.config(&format!("{path}/{name}"), &text)?;
        Ok((text, config))
    };
    let toml = format!("{path}/stage.toml");
    let read = toml_file::read(loader, &toml, |file, mut stage: Stage| {
        check_stage(file, &mut stage, folder);
        Ok(stage)
    });
    // The three files are read before the first `?`, so that the problems of all of them are reported.
    let found = loader.ok_or_report(read);
    let starter_and_config = loader.ok_or_report(read_config(CONFIG));
    let solution_and_config = loader.ok_or_report(read_config(&format!("solution/{CONFIG}")));
    let (starter, broken) = starter_and_config?;
    let (solution, fixed) = solution_and_config?;
    let stage = Stage {
        number,
        broken,
        fixed,
        file: StageFile {
            name: CONFIG.to_owned(),
            starter,
            solution,
        },
        path: path.clone(),
        ..found?
    };
    let problems = scope_problems(&stage);
    for message in &problems {
        loader.report_at(&toml, 0, message);
    }
    problems.is_empty().then_some(stage)
}

/// Checks the values of a `stage.toml`, and fills in those that may be left out. All faults are reported, not only the first.
fn check_stage(file: &TomlFile<'_>, stage: &mut Stage, folder: &str) {
    check_head(file, (&stage.id, "broken-init"), &stage.hints, &stage.quiz);
    file.ok_or_report(check_question(file, "prediction", &stage.prediction));
    check_screen(file, stage);
    check_knobs(file, stage);
    check_lesson(file, stage, folder);
    if stage.checks_toml.is_empty() {
        let message = "has no check; write at least one `[[check]]`";
        file.report(file.fault("check", message));
    }
    for (index, raw) in std::mem::take(&mut stage.checks_toml)
        .into_iter()
        .enumerate()
    {
        let check = read_check(file, &format!("check.{index}"), raw);
        stage.checks.extend(file.ok_or_report(check));
    }
    stage.id_line = file.line("id");
}

/// Checks what the screen shows of a stage: the estimate, the panels, and the beats of a presentation.
fn check_screen(file: &TomlFile<'_>, stage: &Stage) {
    let fault = |path: &str, message: String| file.report(file.fault(path, message));
    if let Some(estimate) = &stage.estimate {
        if let Some(message) = placeholder::problem(&estimate.of) {
            fault("estimate.of", message);
        }
        if estimate.from >= estimate.to || (estimate.log && estimate.from <= 0.0) {
            let message = "write a `from` below `to`, and above 0 if `log = true`";
            fault("estimate.from", message.to_owned());
        }
    }
    let points_at_lesson = |pointer: &PanelPointer| pointer.panel == Panel::Lesson;
    if let Some(index) = stage.evidence.iter().position(points_at_lesson) {
        let message = "`panel` cannot be \"lesson\"; name a panel that shows figures";
        fault(&format!("evidence.{index}.panel"), message.to_owned());
    }
    let can_hide = |name: &String| HIDES.contains(&name.as_str()) || Panel::from_str(name).is_ok();
    if let Some(name) = stage.hides.iter().find(|name| !can_hide(name)) {
        let all = HIDES.join(", ");
        let message = format!("`hides` names `{name}`; name a panel, or one of {all}");
        fault("hides", message);
    }
    for (index, cue) in stage.cues.iter().enumerate() {
        let length = cue.say.chars().count();
        if length > LONGEST_BEAT {
            let message = format!("`say` has {length} characters; write at most {LONGEST_BEAT}");
            fault(&format!("beat.{index}.say"), message);
        }
    }
}

/// Checks the keys of the configuration that a stage names.
fn check_knobs(file: &TomlFile<'_>, stage: &mut Stage) {
    if stage.varies.is_empty() {
        let message = "`varies` names no key; \
                       list the keys that the solution changes, such as [\"model.init\"]";
        file.report(file.fault("varies", message));
    }
    file.ok_or_report(check_keys(file, "varies", &stage.varies));
    file.ok_or_report(check_keys(file, "offers", &stage.offers));
    if stage.offers.is_empty() {
        stage.offers.clone_from(&stage.varies);
    }
    let is_missing = |path: &&String| !stage.offers.contains(path);
    if let Some(path) = stage.varies.iter().find(is_missing) {
        let message = format!("`offers` lacks `{path}`, which `varies` names; add it");
        file.report(file.fault("offers", message));
    }
}

/// Checks the name of the lesson, and fills it in if `stage.toml` leaves it out.
fn check_lesson(file: &TomlFile<'_>, stage: &mut Stage, folder: &str) {
    let usual = format!("{folder}.md");
    let lesson = &mut stage.lesson_file;
    if lesson.is_empty() {
        lesson.clone_from(&usual);
    }
    if !plain_file(lesson, &["md"]) {
        let message =
            format!("`lesson` is `{lesson}`; name a file of lessons/, such as \"{usual}\"");
        file.report(file.fault("lesson", message));
    }
}

/// Checks the values that stages and exercises share: the id can name a folder, there are three hints, and each question of the quiz
/// has four choices.
pub(in crate::course) fn check_head(
    file: &TomlFile<'_>,
    (id, example): (&str, &str),
    hints: &[String],
    quiz: &[Question],
) {
    file.ok_or_report(check_id(file, id, example));
    if hints.len() != 3 {
        let message = format!(
            "has {} hints; write exactly 3, of which the last nearly tells the answer",
            hints.len()
        );
        file.report(file.fault("hints", message));
    }
    for (index, question) in quiz.iter().enumerate() {
        file.ok_or_report(check_question(file, &format!("quiz.{index}"), question));
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
    let message = format!("`id` takes lower-case letters, digits and `-`, such as \"{example}\"");
    Err(file.fault("id", message))
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
    let message = format!("has {choices} choices; write 4, a to d");
    Err(file.fault(&format!("{path}.choices"), message))
}

/// Refuses an entry in the list `key` that is not a key of a configuration.
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
    if differs.is_empty() {
        let message = format!("{both} say the same; the starter must hold the fault");
        return vec![message];
    }
    differs
        .iter()
        .filter(|path| !stage.varies.iter().any(|varied| varied == *path))
        .map(|path| format!("{both} differ in `{path}`; add it to `varies` or make it equal"))
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
