//! Where the learner is: `progress.toml` in the course's state folder, keyed by stage id. Written whole, by a temporary
//! file and a rename, under a lock; only the keys of one stage change, so two instances and newer versions lose nothing.
//!
//! Functions take the folder; the one that finds it is `directory`. A file that cannot be read as progress is set
//! aside as `progress.toml.damaged-1`, named, and never overwritten.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use toml_edit::{Array, DocumentMut, Item, Table, value};

use super::text;
use crate::config::file::{FileError, read_text};

const FILE: &str = "progress.toml";
const MAX_BYTES: u64 = 4 * 1024 * 1024;
const HEADER: &str = "# What this learner has done, by stage. Written by perflings; unknown keys are kept.\n";

/// How far a stage has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    #[default]
    New,
    Seen,
    /// The prediction was answered or skipped.
    Predicted,
    /// Jumped over in a correct state; never counts as passed.
    Skipped,
    Passed,
}

impl State {
    const ALL: &'static [(&'static str, Self)] = &[
        ("new", Self::New),
        ("seen", Self::Seen),
        ("predicted", Self::Predicted),
        ("skipped", Self::Skipped),
        ("passed", Self::Passed),
    ];

    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, state)| *state == self).map_or("new", |(name, _)| name)
    }

    fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(name, _)| *name == word).map(|(_, state)| *state)
    }
}

/// What the learner said would happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prediction {
    /// Index of the choice, and whether it was right.
    Choice { choice: usize, right: bool },
    Skipped,
}

/// One stage.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StageProgress {
    pub state: State,
    /// The first answer stays.
    pub prediction: Option<Prediction>,
    /// The learner's range for the stage's estimate, and what was measured.
    pub estimate: Option<(f64, f64)>,
    pub measured: Option<f64>,
    pub hints: u32,
    pub solution_shown: bool,
    /// Questions of the quiz answered rightly.
    pub quiz: Vec<usize>,
    /// Best figures by metric: the largest, or the smallest of a time.
    pub best: BTreeMap<String, f64>,
}

/// The whole course.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// Id of the stage the learner was at.
    pub current: Option<String>,
    pub stages: BTreeMap<String, StageProgress>,
}

/// How good the predictions are so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Calibration {
    /// Choices made, and how many were right.
    pub answered: u32,
    pub right: u32,
    /// Ranges whose truth was measured, and how many held it.
    pub ranges: u32,
    pub held: u32,
}

impl Progress {
    pub fn stage(&self, id: &str) -> StageProgress {
        self.stages.get(id).cloned().unwrap_or_default()
    }

    pub fn calibration(&self) -> Calibration {
        let mut score = Calibration::default();
        for stage in self.stages.values() {
            if let Some(Prediction::Choice { right, .. }) = stage.prediction {
                score.answered += 1;
                score.right += u32::from(right);
            }
            if let (Some((low, high)), Some(truth)) = (stage.estimate, stage.measured) {
                score.ranges += 1;
                score.held += u32::from((low..=high).contains(&truth));
            }
        }
        score
    }
}

/// `$XDG_STATE_HOME/perflings/<course>`, or the platform's place for such things.
pub fn directory(course: &str) -> Option<PathBuf> {
    let named = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let base = named.map(|path| path.join("perflings")).or_else(|| {
        let dirs = directories::ProjectDirs::from("", "", "perflings")?;
        Some(dirs.state_dir().unwrap_or_else(|| dirs.data_local_dir()).to_owned())
    })?;
    Some(base.join(course))
}

/// Reads the progress; the second part says what was set aside, or why nothing could be read.
pub fn load(dir: &Path) -> (Progress, Option<FileError>) {
    match read(dir) {
        Ok((document, notice)) => (from_document(&document), notice),
        Err(error) => (Progress::default(), Some(error)),
    }
}

/// Merges one stage into the file: nothing another instance has achieved in it is taken back.
/// The returned progress is what the file now says; the second part names a file that was set aside.
pub fn save_stage(dir: &Path, id: &str, stage: &StageProgress) -> Result<(Progress, Option<FileError>), FileError> {
    edit(dir, |document| {
        let merged = merge(read_stage(stage_table(document, id)), stage);
        write_stage(stage_table(document, id), &merged);
    })
}

/// Records where the learner is.
pub fn save_current(dir: &Path, id: &str) -> Result<(Progress, Option<FileError>), FileError> {
    edit(dir, |document| document["current"] = value(id))
}

/// Forgets one stage; the only way back.
pub fn reset_stage(dir: &Path, id: &str) -> Result<(Progress, Option<FileError>), FileError> {
    edit(dir, |document| {
        if let Some(stages) = document.get_mut("stage").and_then(Item::as_table_like_mut) {
            stages.remove(id);
        }
    })
}

fn edit(dir: &Path, change: impl FnOnce(&mut DocumentMut)) -> Result<(Progress, Option<FileError>), FileError> {
    let failed = |what: &str, error: &std::io::Error| FileError {
        path: text::one_line(&dir.display().to_string()),
        line: 0,
        what: format!("{what}: {error}; progress is not saved"),
    };
    fs::create_dir_all(dir).map_err(|error| failed("cannot be made", &error))?;
    let _lock = lock(dir).map_err(|error| failed("cannot be locked", &error))?;
    let (mut document, notice) = read(dir)?;
    change(&mut document);
    write(dir, &document).map_err(|error| failed("cannot be written", &error))?;
    Ok((from_document(&document), notice))
}

/// Waits up to a second for another instance; then goes on without, since each write is whole anyway.
fn lock(dir: &Path) -> std::io::Result<File> {
    let file = File::options().create(true).truncate(false).write(true).open(dir.join("progress.lock"))?;
    for _ in 0..50 {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(20)),
            // File systems without locks.
            Err(TryLockError::Error(_)) => return Ok(file),
        }
    }
    Ok(file)
}

/// The document as it is; an unreadable one is moved aside first, and named.
fn read(dir: &Path) -> Result<(DocumentMut, Option<FileError>), FileError> {
    let path = dir.join(FILE);
    match fs::metadata(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok((DocumentMut::new(), None)),
        _ => {}
    }
    let damage = match read_text(&path, MAX_BYTES) {
        Err(error) if error.what.starts_with("cannot be read") => return Err(error),
        Err(error) => error,
        Ok(text) => match parse(&text) {
            Ok(document) => return Ok((document, None)),
            Err((line, what)) => FileError { path: path.display().to_string(), line, what },
        },
    };
    let aside = (1..1000)
        .map(|n| dir.join(format!("{FILE}.damaged-{n}")))
        .find(|aside| aside.symlink_metadata().is_err())
        .ok_or_else(|| damage.clone())?;
    let what = match fs::rename(&path, &aside) {
        Ok(()) => format!("{}; it was set aside as {}, and progress begins anew", damage.what, aside.display()),
        Err(error) => {
            let what = format!("{}; it could not be set aside: {error}", damage.what);
            return Err(FileError { what, ..damage });
        }
    };
    Ok((DocumentMut::new(), Some(FileError { what, ..damage })))
}

fn parse(text: &str) -> Result<DocumentMut, (usize, String)> {
    let document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
        let line = error.span().map_or(0, |span| crate::config::file::line_of(text, span.start));
        (line, format!("is not valid TOML: {}", text::one_line(error.message())))
    })?;
    let stages = document.get("stage");
    let right = stages.is_none_or(|item| {
        item.as_table_like().is_some_and(|table| table.iter().all(|(_, stage)| stage.is_table_like()))
    });
    if right { Ok(document) } else { Err((0, "has a `stage` that is no table".to_owned())) }
}

fn write(dir: &Path, document: &DocumentMut) -> std::io::Result<()> {
    // A link, as from a folder of dot files, stays a link.
    let path = dir.join(FILE).canonicalize().unwrap_or_else(|_| dir.join(FILE));
    let mut text = document.to_string();
    if !text.starts_with('#') {
        text.insert_str(0, HEADER);
    }
    let mut file = tempfile::NamedTempFile::new_in(path.parent().unwrap_or(dir))?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(&path).map_err(|error| error.error)?;
    Ok(())
}

fn from_document(document: &DocumentMut) -> Progress {
    let stages = document.get("stage").and_then(Item::as_table_like);
    Progress {
        current: document.get("current").and_then(Item::as_str).map(text::one_line),
        stages: stages
            .into_iter()
            .flat_map(|table| table.iter())
            .filter_map(|(id, item)| Some((id.to_owned(), read_stage(item.as_table_like()?))))
            .collect(),
    }
}

/// The table `[stage.<id>]`, made where it is missing.
fn stage_table<'a>(document: &'a mut DocumentMut, id: &str) -> &'a mut dyn toml_edit::TableLike {
    let stages = document.entry("stage").or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    // `parse` refuses any other form of both.
    let item = &mut stages[id];
    if !item.is_table_like() {
        *item = Item::Table(Table::new());
    }
    item.as_table_like_mut().expect("a table was put here")
}

fn read_stage(table: &(impl toml_edit::TableLike + ?Sized)) -> StageProgress {
    let text = |key: &str| table.get(key).and_then(Item::as_str);
    let number = |item: &Item| item.as_float().or_else(|| item.as_integer().map(|n| n as f64));
    let letter = |word: &str| match word.as_bytes() {
        [letter @ b'a'..=b'd'] => Some(usize::from(letter - b'a')),
        _ => None,
    };
    let right = table.get("prediction-right").and_then(Item::as_bool).unwrap_or(false);
    StageProgress {
        state: text("state").and_then(State::parse).unwrap_or_default(),
        prediction: text("prediction").and_then(|word| match word {
            "skipped" => Some(Prediction::Skipped),
            word => letter(word).map(|choice| Prediction::Choice { choice, right }),
        }),
        estimate: table.get("estimate").and_then(Item::as_array).and_then(|pair| {
            let ends: Vec<f64> = pair.iter().filter_map(|x| x.as_float().or_else(|| x.as_integer().map(|n| n as f64))).collect();
            (ends.len() == 2).then(|| (ends[0], ends[1]))
        }),
        measured: table.get("measured").and_then(number),
        hints: table.get("hints").and_then(Item::as_integer).and_then(|n| u32::try_from(n).ok()).unwrap_or(0).min(3),
        solution_shown: table.get("solution-shown").and_then(Item::as_bool).unwrap_or(false),
        quiz: table
            .get("quiz-right")
            .and_then(Item::as_array)
            .map(|list| list.iter().filter_map(|n| usize::try_from(n.as_integer()?).ok()).collect())
            .unwrap_or_default(),
        best: table
            .get("best")
            .and_then(Item::as_table_like)
            .into_iter()
            .flat_map(|best| best.iter())
            .filter_map(|(name, item)| Some((name.to_owned(), number(item)?)))
            .collect(),
    }
}

/// Writes the keys this version knows; others in the table stay.
fn write_stage(table: &mut dyn toml_edit::TableLike, stage: &StageProgress) {
    table.insert("state", value(stage.state.name()));
    match stage.prediction {
        Some(Prediction::Skipped) => drop(table.insert("prediction", value("skipped"))),
        Some(Prediction::Choice { choice, right }) => {
            let letter = char::from(b'a' + u8::try_from(choice.min(3)).unwrap_or(3));
            table.insert("prediction", value(letter.to_string()));
            table.insert("prediction-right", value(right));
        }
        None => {}
    }
    if let Some((low, high)) = stage.estimate {
        table.insert("estimate", value(Array::from_iter([low, high])));
    }
    if let Some(measured) = stage.measured {
        table.insert("measured", value(measured));
    }
    table.insert("hints", value(i64::from(stage.hints)));
    table.insert("solution-shown", value(stage.solution_shown));
    if !stage.quiz.is_empty() {
        let list = stage.quiz.iter().filter_map(|n| i64::try_from(*n).ok());
        table.insert("quiz-right", value(Array::from_iter(list)));
    }
    if !stage.best.is_empty() {
        if !table.get("best").is_some_and(Item::is_table_like) {
            table.insert("best", Item::Table(Table::new()));
        }
        if let Some(best) = table.get_mut("best").and_then(Item::as_table_like_mut) {
            for (name, number) in &stage.best {
                best.insert(name, value(*number));
            }
        }
    }
}

/// The further of two records of one stage.
fn merge(old: StageProgress, new: &StageProgress) -> StageProgress {
    let mut quiz: Vec<usize> = old.quiz.iter().chain(&new.quiz).copied().collect();
    quiz.sort_unstable();
    quiz.dedup();
    let mut best = old.best;
    for (name, &number) in &new.best {
        let time = name.ends_with("_ms") || name.ends_with(".ms");
        let place = best.entry(name.clone()).or_insert(number);
        let better = if time { number < *place } else { number > *place };
        if better || !place.is_finite() {
            *place = number;
        }
    }
    StageProgress {
        state: old.state.max(new.state),
        prediction: old.prediction.or(new.prediction),
        estimate: old.estimate.or(new.estimate),
        measured: new.measured.or(old.measured),
        hints: old.hints.max(new.hints),
        solution_shown: old.solution_shown || new.solution_shown,
        quiz,
        best,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("a temporary folder")
    }

    fn passed() -> StageProgress {
        StageProgress {
            state: State::Passed,
            prediction: Some(Prediction::Choice { choice: 1, right: true }),
            estimate: Some((2.0, 4.0)),
            measured: Some(3.0),
            hints: 2,
            quiz: vec![0, 2],
            best: BTreeMap::from([("samples_per_s".to_owned(), 44.0), ("step_ms".to_owned(), 180.0)]),
            ..StageProgress::default()
        }
    }

    #[test]
    fn what_was_saved_is_loaded() {
        let dir = folder();
        save_stage(dir.path(), "broken-init", &passed()).expect("saved");
        save_current(dir.path(), "strides").expect("saved");
        let (progress, notice) = load(dir.path());
        assert_eq!(notice, None);
        assert_eq!(progress.stage("broken-init"), passed());
        assert_eq!(progress.current.as_deref(), Some("strides"));
        let score = progress.calibration();
        assert_eq!((score.answered, score.right, score.ranges, score.held), (1, 1, 1, 1));
        assert_eq!(progress.stage("unknown"), StageProgress::default());
    }

    #[test]
    fn unknown_keys_and_stages_stay() {
        let dir = folder();
        let file = dir.path().join(FILE);
        let text = "# mine\nfuture = 7\n[stage.broken-init]\nstate = \"seen\"\nmood = \"good\"\n[stage.later]\nx = 1\n";
        fs::write(&file, text).expect("written");
        save_stage(dir.path(), "broken-init", &passed()).expect("saved");
        let after = fs::read_to_string(&file).expect("read");
        for kept in ["# mine", "future = 7", "mood = \"good\"", "[stage.later]", "x = 1", "state = \"passed\""] {
            assert!(after.contains(kept), "{kept} is gone from:\n{after}");
        }
    }

    #[test]
    fn nothing_is_taken_back_but_by_a_reset() {
        let dir = folder();
        save_stage(dir.path(), "a", &passed()).expect("saved");
        let worse = StageProgress {
            state: State::Seen,
            prediction: Some(Prediction::Skipped),
            best: BTreeMap::from([("samples_per_s".to_owned(), 10.0), ("step_ms".to_owned(), 90.0)]),
            ..StageProgress::default()
        };
        let (progress, _) = save_stage(dir.path(), "a", &worse).expect("saved");
        let stage = progress.stage("a");
        assert_eq!((stage.state, stage.prediction, stage.hints), (State::Passed, passed().prediction, 2));
        assert_eq!((stage.best["samples_per_s"], stage.best["step_ms"]), (44.0, 90.0));
        let (progress, _) = reset_stage(dir.path(), "a").expect("reset");
        assert_eq!(progress.stage("a"), StageProgress::default());
    }

    #[test]
    fn a_damaged_file_is_set_aside_and_named() {
        let dir = folder();
        for (n, damage) in [&b"state = ["[..], b"\xff\xfe\x00", b"stage = 5\n"].into_iter().enumerate() {
            fs::write(dir.path().join(FILE), damage).expect("written");
            let (progress, notice) = load(dir.path());
            let aside = format!("progress.toml.damaged-{}", n + 1);
            assert_eq!(progress, Progress::default());
            assert!(notice.expect("a notice").what.contains(&aside));
            assert_eq!(fs::read(dir.path().join(&aside)).expect("kept"), damage);
            let (_, notice) = save_stage(dir.path(), "a", &passed()).expect("saved");
            assert_eq!(notice, None);
        }
    }

    #[test]
    fn two_instances_do_not_destroy_each_other() {
        let dir = folder();
        let path = dir.path();
        std::thread::scope(|scope| {
            for worker in 0..4 {
                scope.spawn(move || {
                    for n in 0..10 {
                        save_stage(path, &format!("s{worker}-{n}"), &passed()).expect("saved");
                    }
                });
            }
        });
        assert_eq!(load(path).0.stages.len(), 40);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link() {
        let (dir, elsewhere) = (folder(), folder());
        let real = elsewhere.path().join("mine.toml");
        fs::write(&real, "current = \"a\"\n").expect("written");
        std::os::unix::fs::symlink(&real, dir.path().join(FILE)).expect("linked");
        save_current(dir.path(), "b").expect("saved");
        assert!(dir.path().join(FILE).symlink_metadata().expect("there").is_symlink());
        assert!(fs::read_to_string(real).expect("read").contains("current = \"b\""));
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_one_message() {
        let dir = folder();
        fs::write(dir.path().join("file"), "x").expect("written");
        let error = save_current(&dir.path().join("file/state"), "a").expect_err("refused");
        assert!(error.what.contains("progress is not saved"), "{error}");
    }
}
