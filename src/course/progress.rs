//! Where the learner is: `progress.toml` in the course's state folder, keyed by stage id. Written whole, by a temporary
//! file and a rename, under a lock; only the keys of one stage change, so two instances and newer versions lose nothing.
//!
//! Functions take the folder; the one that finds it is `directory`. A file that cannot be read as progress is set
//! aside as `progress.toml.damaged-1`, named, and never overwritten.

mod store;
mod table;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml_edit::{Item, value};

use crate::config::file::FileError;
use store::{edit, read};
use table::{read_stage, stage_table, write_stage};

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
        Self::ALL
            .iter()
            .find(|(_, state)| *state == self)
            .map_or("new", |(name, _)| name)
    }

    fn parse(word: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .find(|(name, _)| *name == word)
            .map(|(_, state)| *state)
    }
}

/// What the learner said would happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prediction {
    /// Index of the choice, and whether it was right.
    Choice {
        choice: usize,
        right: bool,
    },
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
    /// The welcome was shown.
    pub welcomed: bool,
    pub stages: BTreeMap<String, StageProgress>,
}

/// How good the predictions are so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Calibration {
    /// Choices made in stages that are passed, and how many were right: before that the score would tell.
    pub answered: u32,
    pub right: u32,
    /// Ranges whose truth was measured, and how many held it.
    pub ranges: u32,
    pub held: u32,
}

impl Progress {
    /// Whether nobody was here before: no welcome was shown, and no stage was more than looked at.
    pub fn is_first(&self) -> bool {
        let untouched = |stage: &StageProgress| stage.state <= State::Seen;
        !self.welcomed && self.current.is_none() && self.stages.values().all(untouched)
    }

    pub fn stage(&self, id: &str) -> StageProgress {
        self.stages.get(id).cloned().unwrap_or_default()
    }

    pub fn calibration(&self) -> Calibration {
        let mut score = Calibration::default();
        for stage in self.stages.values() {
            if stage.state == State::Passed
                && let Some(Prediction::Choice { right, .. }) = stage.prediction
            {
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
    let named = std::env::var_os("XDG_STATE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute());
    let base = named.map(|path| path.join("perflings")).or_else(|| {
        let dirs = directories::ProjectDirs::from("", "", "perflings")?;
        Some(
            dirs.state_dir()
                .unwrap_or_else(|| dirs.data_local_dir())
                .to_owned(),
        )
    })?;
    Some(base.join(course))
}

/// Reads the progress; the second part says what was set aside, or why nothing could be read.
pub fn load(dir: &Path) -> (Progress, Option<FileError>) {
    match read(dir) {
        Ok((document, notice)) => (table::progress(&document), notice),
        Err(error) => (Progress::default(), Some(error)),
    }
}

/// Merges one stage into the file: nothing another instance has achieved in it is taken back.
/// The returned progress is what the file now says; the second part names a file that was set aside.
pub fn save_stage(
    dir: &Path,
    id: &str,
    stage: &StageProgress,
) -> Result<(Progress, Option<FileError>), FileError> {
    edit(dir, |document| {
        let merged = merge(read_stage(stage_table(document, id)), stage);
        write_stage(stage_table(document, id), &merged);
    })
}

/// Records where the learner is.
pub fn save_current(dir: &Path, id: &str) -> Result<(Progress, Option<FileError>), FileError> {
    edit(dir, |document| document["current"] = value(id))
}

/// Records that the welcome was shown.
pub fn save_welcomed(dir: &Path) -> Result<(Progress, Option<FileError>), FileError> {
    edit(dir, |document| document["welcomed"] = value(true))
}

/// Forgets one stage; the only way back.
pub fn reset_stage(dir: &Path, id: &str) -> Result<(Progress, Option<FileError>), FileError> {
    edit(dir, |document| {
        if let Some(stages) = document.get_mut("stage").and_then(Item::as_table_like_mut) {
            stages.remove(id);
        }
    })
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
        let better = if time {
            number < *place
        } else {
            number > *place
        };
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
    use std::fs;

    use super::store::FILE;
    use super::*;

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
            hints: 2,
            quiz: vec![0, 2],
            best: BTreeMap::from([
                ("samples_per_s".to_owned(), 44.0),
                ("step_ms".to_owned(), 180.0),
            ]),
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
    fn the_welcome_comes_once() {
        let dir = folder();
        assert!(load(dir.path()).0.is_first());
        let (progress, _) = save_welcomed(dir.path()).expect("saved");
        assert!(progress.welcomed && !progress.is_first());
        // It is not forgotten with a stage, and whoever was here without it needs none.
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
        for kept in [
            "# mine",
            "future = 7",
            "mood = \"good\"",
            "[stage.later]",
            "x = 1",
            "state = \"passed\"",
        ] {
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
            best: BTreeMap::from([
                ("samples_per_s".to_owned(), 10.0),
                ("step_ms".to_owned(), 90.0),
            ]),
            ..StageProgress::default()
        };
        let (progress, _) = save_stage(dir.path(), "a", &worse).expect("saved");
        let stage = progress.stage("a");
        assert_eq!(
            (stage.state, stage.prediction, stage.hints),
            (State::Passed, passed().prediction, 2)
        );
        assert_eq!(
            (stage.best["samples_per_s"], stage.best["step_ms"]),
            (44.0, 90.0)
        );
        let (progress, _) = reset_stage(dir.path(), "a").expect("reset");
        assert_eq!(progress.stage("a"), StageProgress::default());
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
        assert!(
            dir.path()
                .join(FILE)
                .symlink_metadata()
                .expect("there")
                .is_symlink()
        );
        assert!(
            fs::read_to_string(real)
                .expect("read")
                .contains("current = \"b\"")
        );
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_one_message() {
        let dir = folder();
        fs::write(dir.path().join("file"), "x").expect("written");
        let error = save_current(&dir.path().join("file/state"), "a").expect_err("refused");
        assert!(error.what.contains("progress is not saved"), "{error}");
    }
}
