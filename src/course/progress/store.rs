//! The file of the progress: read, set aside, locked, written whole.

use std::collections::hash_map::RandomState;
use std::fs::{self, File, TryLockError};
use std::hash::{BuildHasher, Hasher};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;
use toml_edit::{Array, DocumentMut, Item, Table, value};

use super::{MysteryScore, Prediction, Progress, StageProgress, letter};
use crate::config::file::{FileError, line_of, read_text};
use crate::course::text;
use crate::files;

const FILE: &str = "progress.toml";
const MAX_BYTES: u64 = 4 * 1024 * 1024;
const HEADER: &str =
    "# What this learner has done, by stage. Written by perflings; unknown keys are kept.\n";

/// `$XDG_STATE_HOME/perflings/<course>`, or the platform's place for such things.
pub fn directory(course: &str) -> Option<PathBuf> {
    let named = std::env::var_os("XDG_STATE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute());
    let base = named.map(|path| path.join("perflings")).or_else(|| {
        let dirs = directories::ProjectDirs::from("", "", "perflings")?;
        let local = dirs.data_local_dir();
        Some(dirs.state_dir().unwrap_or(local).to_owned())
    })?;
    Some(base.join(course))
}

/// Reads the progress; the second part says what was set aside, or why nothing could be read.
pub fn load(dir: &Path) -> (Progress, Option<FileError>) {
    match read(dir) {
        Ok((document, notice)) => (progress(&document), notice),
        Err(error) => (Progress::default(), Some(error)),
    }
}

/// What the file says after a change; the second part names a file that was set aside.
type Saved = Result<(Progress, Option<FileError>), FileError>;

/// Merges one stage into the file; what another instance recorded for it stays.
pub fn save_stage(dir: &Path, id: &str, stage: &StageProgress) -> Saved {
    edit(dir, |document| {
        let merged = progress(document).stage(id).merge(stage);
        write_stage(stage_table(document, id), &merged);
    })
}

/// Records the score of a mystery; the best of all sessions stays.
pub fn save_mystery(dir: &Path, name: &str, score: MysteryScore) -> Saved {
    edit(dir, |document| {
        let known = progress(document).mysteries.get(name).copied();
        let best = known.map_or(score.best, |known| known.best.max(score.best));
        let mut both = toml_edit::InlineTable::new();
        both.insert("last", i64::from(score.last).into());
        both.insert("best", i64::from(best).into());
        let all = &mut document["mystery"];
        if !all.is_table_like() {
            *all = Item::Table(Table::new());
        }
        all[name] = value(both);
    })
}

/// Records where the learner is.
pub fn save_current(dir: &Path, id: &str) -> Saved {
    edit(dir, |document| document["current"] = value(id))
}

/// Records that the welcome was shown.
pub fn save_welcomed(dir: &Path) -> Saved {
    edit(dir, |document| document["welcomed"] = value(true))
}

/// Draws the seed of the order of choices, if the file has none.
pub fn save_seed(dir: &Path) -> Saved {
    edit(dir, |document| {
        if progress(document).seed.is_none() {
            // The standard library's own source of randomness; 32 bits, because TOML's integers have a sign.
            let drawn = RandomState::new().build_hasher().finish() >> 32;
            document["seed"] = value(drawn as i64);
        }
    })
}

/// Forgets one stage; the only way back.
pub fn reset_stage(dir: &Path, id: &str) -> Saved {
    edit(dir, |document| {
        if let Some(stages) = document.get_mut("stage").and_then(Item::as_table_like_mut) {
            stages.remove(id);
        }
    })
}

fn edit(dir: &Path, change: impl FnOnce(&mut DocumentMut)) -> Saved {
    let failed = |what: &str, error: &std::io::Error| {
        let path = text::one_line(&dir.display().to_string());
        FileError::new(path, 0, format!("{what}: {error}; progress is not saved"))
    };
    fs::create_dir_all(dir).map_err(|error| failed("cannot be made", &error))?;
    let _lock = lock(dir).map_err(|error| failed("cannot be locked", &error))?;
    let (mut document, notice) = read(dir)?;
    change(&mut document);
    write(dir, &document).map_err(|error| failed("cannot be written", &error))?;
    Ok((progress(&document), notice))
}

/// Waits up to a second for another instance; then goes on without, since each write is whole anyway.
fn lock(dir: &Path) -> std::io::Result<File> {
    let file = files::own(&dir.join("progress.lock"))?;
    for _ in 0..50 {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(20)),
            // Locked; or a file system that knows no locks.
            Ok(()) | Err(TryLockError::Error(_)) => return Ok(file),
        }
    }
    Ok(file)
}

/// The document as it is; an unreadable one is moved aside first, and named.
fn read(dir: &Path) -> Result<(DocumentMut, Option<FileError>), FileError> {
    let path = dir.join(FILE);
    if !files::is_taken(&path) {
        return Ok((DocumentMut::new(), None));
    }
    let damage = match read_text(&path, MAX_BYTES) {
        // What is no file is not ours to set aside.
        Err(error) if error.what.starts_with("cannot be read") || !path.is_file() => {
            return Err(error);
        }
        Err(error) => error,
        Ok(text) => match parse(&text) {
            Ok(document) => return Ok((document, None)),
            Err((line, what)) => FileError::new(path.display().to_string(), line, what),
        },
    };
    let what = match files::set_aside(&path, "damaged-") {
        Ok(aside) => format!(
            "{}; it was set aside as {}, and progress starts from zero",
            damage.what,
            aside.display()
        ),
        Err(error) => {
            let what = format!("{}; it could not be set aside: {error}", damage.what);
            return Err(FileError { what, ..damage });
        }
    };
    Ok((DocumentMut::new(), Some(FileError { what, ..damage })))
}

fn parse(text: &str) -> Result<DocumentMut, (usize, String)> {
    let document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
        let line = error.span().map_or(0, |span| line_of(text, span.start));
        let what = text::one_line(error.message());
        (line, format!("is not valid TOML: {what}"))
    })?;
    let right = document.get("stage").is_none_or(|item| {
        let table = item.as_table_like();
        table.is_some_and(|table| table.iter().all(|(_, stage)| stage.is_table_like()))
    });
    let wrong = || (0, "has a `stage` that is not a table".to_owned());
    right.then_some(document).ok_or_else(wrong)
}

fn write(dir: &Path, document: &DocumentMut) -> std::io::Result<()> {
    let mut text = document.to_string();
    if !text.starts_with('#') {
        text.insert_str(0, HEADER);
    }
    files::write(&dir.join(FILE), text.as_bytes())?;
    Ok(())
}

fn progress(document: &DocumentMut) -> Progress {
    let root: toml::Table = document.to_string().parse().unwrap_or_default();
    let stages: toml::Table = value_of(&root, "stage").unwrap_or_default();
    let stages = stages.into_iter();
    Progress {
        current: value_of(&root, "current").map(|id: String| text::one_line(&id)),
        welcomed: value_of(&root, "welcomed").unwrap_or(false),
        seed: value_of(&root, "seed"),
        stages: stages
            .filter_map(|(id, table)| Some((id, stage(table.as_table()?))))
            .collect(),
        mysteries: value_of::<toml::Table>(&root, "mystery")
            .unwrap_or_default()
            .into_iter()
            .filter_map(|(name, score)| {
                let points = |key| value_of(score.as_table()?, key);
                let (last, best) = (points("last")?, points("best")?);
                Some((name, MysteryScore { last, best }))
            })
            .collect(),
    }
}

fn stage(table: &toml::Table) -> StageProgress {
    let prediction: Option<String> = value_of(table, "prediction");
    StageProgress {
        state: value_of(table, "state").unwrap_or_default(),
        prediction: match prediction.as_deref().map(str::as_bytes) {
            Some(b"skipped") => Some(Prediction::Skipped),
            Some([letter @ b'a'..=b'd']) => Some(Prediction::Choice {
                choice: usize::from(letter - b'a'),
                right: value_of(table, "prediction-right").unwrap_or(false),
            }),
            _ => None,
        },
        estimate: value_of(table, "estimate").filter(|(low, high): &(f64, f64)| low <= high),
        measured: value_of(table, "measured").filter(|it: &f64| it.is_finite()),
        ratio: value_of(table, "ratio")
            .filter(|it: &[f64; 3]| it.iter().all(|x| x.is_finite() && *x > 0.0)),
        found: value_of(table, "found").map(|it: String| text::one_line(&it)),
        hints: value_of(table, "hints").unwrap_or(0).min(3),
        solution_shown: value_of(table, "solution-shown").unwrap_or(false),
        answers: value_of(table, "quiz-answers").map_or_else(Vec::new, answers),
        quiz: value_of(table, "quiz-right").unwrap_or_default(),
    }
}

/// Answers by their letters, up to the first that is none.
fn answers(letters: Vec<toml::Value>) -> Vec<usize> {
    let answer = |it: toml::Value| match it.as_str()?.as_bytes() {
        [letter @ b'a'..=b'd'] => Some(usize::from(letter - b'a')),
        _ => None,
    };
    letters.into_iter().map_while(answer).collect()
}

/// The value of a key; a value of another type counts as missing.
fn value_of<T: DeserializeOwned>(table: &toml::Table, key: &str) -> Option<T> {
    table.get(key)?.clone().try_into().ok()
}

/// The table `[stage.<id>]`, made where it is missing.
fn stage_table<'a>(document: &'a mut DocumentMut, id: &str) -> &'a mut dyn toml_edit::TableLike {
    let stages = document.entry("stage").or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    // `parse` refuses a `stage` of any other form.
    let item = &mut stages[id];
    if !item.is_table_like() {
        *item = Item::Table(Table::new());
    }
    item.as_table_like_mut().expect("a table was put here")
}

/// Writes the keys this version knows; others in the table stay.
fn write_stage(table: &mut dyn toml_edit::TableLike, stage: &StageProgress) {
    table.insert("state", value(stage.state.name()));
    match stage.prediction {
        Some(Prediction::Skipped) => drop(table.insert("prediction", value("skipped"))),
        Some(Prediction::Choice { choice, right }) => {
            table.insert("prediction", value(letter(choice)));
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
    if let Some(ratio) = stage.ratio {
        table.insert("ratio", value(Array::from_iter(ratio)));
    }
    if let Some(found) = &stage.found {
        table.insert("found", value(found));
    }
    table.insert("hints", value(i64::from(stage.hints)));
    table.insert("solution-shown", value(stage.solution_shown));
    if !stage.answers.is_empty() {
        let letters = stage.answers.iter().map(|it| letter(*it));
        table.insert("quiz-answers", value(letters.collect::<Array>()));
    }
    if !stage.quiz.is_empty() {
        let list = stage.quiz.iter().filter_map(|n| i64::try_from(*n).ok());
        table.insert("quiz-right", value(list.collect::<Array>()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::course::progress::{State, order};

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("a temporary folder")
    }

    fn passed() -> StageProgress {
        StageProgress {
            state: State::Passed,
            prediction: Some(Prediction::Choice {
                choice: 1,
                right: true,
            }),
            estimate: Some((2.0, 4.0)),
            measured: Some(3.0),
            ratio: Some([3.0, 2.5, 3.5]),
            found: Some("6.93".to_owned()),
            hints: 2,
            answers: vec![1, 3, 0],
            quiz: vec![0, 2],
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
        assert_eq!(
            (score.answered, score.right, score.ranges, score.held),
            (1, 1, 1, 1)
        );
        assert_eq!(progress.stage("unknown"), StageProgress::default());
    }

    #[test]
    fn the_best_score_of_a_mystery_stays() {
        let dir = folder();
        for (last, best) in [(180, 180), (90, 90)] {
            let score = MysteryScore { last, best };
            save_mystery(dir.path(), "7-2", score).expect("saved");
        }
        save_stage(dir.path(), "a", &passed()).expect("saved");
        let (progress, notice) = load(dir.path());
        assert_eq!(notice, None);
        let kept = MysteryScore {
            last: 90,
            best: 180,
        };
        assert_eq!(progress.mysteries.get("7-2"), Some(&kept));
    }

    #[test]
    fn the_welcome_comes_once() {
        let dir = folder();
        assert!(load(dir.path()).0.is_first());
        let (progress, _) = save_welcomed(dir.path()).expect("saved");
        assert!(progress.welcomed && !progress.is_first());
        // A reset of a stage does not bring it back, and a learner with progress does not get it.
        reset_stage(dir.path(), "a").expect("reset");
        assert!(!load(dir.path()).0.is_first());
        let elsewhere = folder();
        save_stage(elsewhere.path(), "a", &passed()).expect("saved");
        assert!(!load(elsewhere.path()).0.is_first());
    }

    #[test]
    fn unknown_keys_and_stages_stay() {
        let dir = folder();
        let file = dir.path().join(FILE);
        let text = "# mine\nfuture = 7\n[stage.broken-init]\nstate = \"seen\"\nmood = \"good\"\n[stage.later]\nx = 1\n";
        fs::write(&file, text).expect("written");
        save_stage(dir.path(), "broken-init", &passed()).expect("saved");
        let after = fs::read_to_string(&file).expect("read");
        let kept = text.lines().filter(|line| !line.starts_with("state"));
        for line in kept.chain(["state = \"passed\""]) {
            assert!(after.contains(line), "{line} is gone from:\n{after}");
        }
    }

    #[test]
    fn only_a_reset_takes_progress_back() {
        let dir = folder();
        save_stage(dir.path(), "a", &passed()).expect("saved");
        let worse = StageProgress {
            state: State::Seen,
            prediction: Some(Prediction::Skipped),
            estimate: Some((7.0, 9.0)),
            measured: Some(8.0),
            ratio: Some([1.0, 0.9, 1.1]),
            answers: vec![2, 2, 2, 2],
            ..StageProgress::default()
        };
        let (progress, _) = save_stage(dir.path(), "a", &worse).expect("saved");
        let first = StageProgress {
            answers: vec![1, 3, 0, 2],
            ..passed()
        };
        assert_eq!(
            progress.stage("a"),
            first,
            "only the fourth question was open"
        );
        let (progress, _) = reset_stage(dir.path(), "a").expect("reset");
        assert_eq!(progress.stage("a"), StageProgress::default());
    }

    #[test]
    fn damaged_and_older_values_count_as_missing() {
        let dir = folder();
        let text = "seed = \"x\"\n[stage.a]\nstate = \"passed\"\nquiz-right = [0, 1]\nmeasured = nan\n\
                    estimate = [4.0, 2.0]\nratio = [1.0]\nquiz-answers = [\"b\", \"z\", \"a\"]\n\
                    [stage.b]\nquiz-answers = \"b\"\nratio = [0.0, 1.0, inf]\nfound = 3\n";
        fs::write(dir.path().join(FILE), text).expect("written");
        let (progress, notice) = load(dir.path());
        assert_eq!((notice, progress.seed), (None, None));
        let known = StageProgress {
            state: State::Passed,
            answers: vec![1],
            quiz: vec![0, 1],
            ..StageProgress::default()
        };
        assert_eq!(progress.stage("a"), known);
        assert_eq!(progress.stage("b"), StageProgress::default());
    }

    #[test]
    fn the_seed_is_drawn_once_and_gives_every_learner_an_order() {
        let (dir, elsewhere) = (folder(), folder());
        let seed = save_seed(dir.path()).expect("saved").0.seed;
        assert!(seed.is_some());
        assert_eq!(save_seed(dir.path()).expect("saved").0.seed, seed);
        reset_stage(dir.path(), "a").expect("reset");
        assert_eq!(load(dir.path()).0.seed, seed, "a reset keeps it");
        assert_ne!(save_seed(elsewhere.path()).expect("saved").0.seed, None);
        // Each place gets each choice about equally often, over learners.
        let mut first = [0; 4];
        for seed in 0..4000 {
            let order = order(Some(seed), "strides", None, 4);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3]);
            first[order[0]] += 1;
        }
        assert!(first.iter().all(|n| (850..1150).contains(n)), "{first:?}");
        assert_eq!(order(None, "strides", Some(1), 4), [0, 1, 2, 3]);
        let by_question = |at| order(Some(7), "strides", at, 4);
        let all: Vec<_> = (0..8).map(|at| by_question(Some(at))).collect();
        assert!(all.iter().any(|it| *it != all[0]), "questions differ");
    }

    #[test]
    fn a_damaged_file_is_set_aside_and_named() {
        let dir = folder();
        for (n, damage) in [&b"state = ["[..], b"\xff\xfe\x00", b"stage = 5\n"]
            .into_iter()
            .enumerate()
        {
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
        let link = dir.path().join(FILE).symlink_metadata();
        assert!(link.expect("there").is_symlink());
        let text = fs::read_to_string(real).expect("read");
        assert!(text.contains("current = \"b\""));
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_one_message() {
        let dir = folder();
        fs::write(dir.path().join("file"), "x").expect("written");
        let error = save_current(&dir.path().join("file/state"), "a").expect_err("refused");
        assert!(error.what.contains("progress is not saved"), "{error}");
    }
}
