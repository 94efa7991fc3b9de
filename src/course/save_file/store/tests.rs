//! Saving and loading the progress, alone and beside other programs, and files that are damaged, lost or not files at all.

use super::*;
use crate::course::save_file::{Calibration, MysteryScore, Prediction, StageProgress, StageState};

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn save_stage(dir: &Path, id: &str, stage: &StageProgress) -> SaveResult {
    save(
        dir,
        &[ProgressChange::Stage(
            id.to_owned(),
            Box::new(stage.clone()),
        )],
    )
}

fn save_current(dir: &Path, id: &str) -> SaveResult {
    save(dir, &[ProgressChange::Current(id.to_owned())])
}

fn reset_stage(dir: &Path, id: &str) -> SaveResult {
    save(dir, &[ProgressChange::Reset(id.to_owned())])
}

fn passed() -> StageProgress {
    StageProgress {
        state: StageState::Passed,
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
fn saved_progress_is_loaded_again() {
    let dir = folder();
    save_stage(dir.path(), "broken-init", &passed()).expect("saved");
    save_current(dir.path(), "strides").expect("saved");
    let (progress, notice) = load(dir.path());
    assert_eq!(notice, None);
    assert_eq!(progress.stage("broken-init"), passed());
    assert_eq!(progress.current.as_deref(), Some("strides"));
    let expected = Calibration {
        answered: 1,
        right: 1,
        ranges: 1,
        held: 1,
        ..Calibration::default()
    };
    assert_eq!(progress.calibration(), expected);
    assert_eq!(progress.stage("unknown"), StageProgress::default());
}

#[test]
fn the_time_of_a_first_answer_is_kept() {
    let dir = folder();
    let mut stage = StageProgress::default();
    save_stage(dir.path(), "strides", &stage).expect("saved");
    assert_eq!(times(dir.path(), "strides"), Times::default());
    stage.prediction = passed().prediction;
    stage.answers = vec![1];
    save_stage(dir.path(), "strides", &stage).expect("saved");
    // The first answers are moved back to second 7 of 1970, so that later ones cannot have the same time.
    let file = dir.path().join(FILE);
    let text = fs::read_to_string(&file).expect("written");
    let now = times(dir.path(), "strides").predicted.expect("a time");
    fs::write(&file, text.replace(&now.to_string(), "7")).expect("changed");

    stage.answers = vec![1, 0];
    stage.estimate = Some((1.0, 2.0));
    save_stage(dir.path(), "strides", &stage).expect("saved");

    let saved = times(dir.path(), "strides");
    assert_eq!((saved.predicted, saved.answered[0]), (Some(7), 7));
    assert!(saved.estimated >= Some(now), "{saved:?}");
    assert!(saved.answered[1] >= now, "{saved:?}");
    assert_eq!(times(dir.path(), "nowhere"), Times::default());
}

#[test]
fn the_best_score_of_a_mystery_stays() {
    let dir = folder();
    for (last, best) in [(180, 180), (90, 90)] {
        let score = MysteryScore { last, best };
        save(
            dir.path(),
            &[ProgressChange::Mystery("7-2".to_owned(), score)],
        )
        .expect("saved");
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
fn the_welcome_is_shown_once() {
    let dir = folder();
    assert!(load(dir.path()).0.is_first());
    let (progress, _) = save(dir.path(), &[ProgressChange::Welcomed]).expect("saved");
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
    let text = "future = 7\n[stage.broken-init]\nstate = \"seen\"\nmood = \"good\"\n[stage.later]\nx = 1\n";
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
        state: StageState::Seen,
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
fn values_out_of_their_bounds_count_as_missing() {
    let dir = folder();
    let text = "[stage.a]\nstate = \"passed\"\nquiz-right = [0, 1]\nmeasured = nan\nhints = 9\n\
                estimate = [4.0, 2.0]\nquiz-answers = [\"b\", \"z\", \"a\"]\nprediction = \"x\"\n";
    fs::write(dir.path().join(FILE), text).expect("written");
    let (progress, notice) = load(dir.path());
    let known = StageProgress {
        state: StageState::Passed,
        hints: 3,
        answers: vec![1],
        quiz: vec![0, 1],
        ..StageProgress::default()
    };
    assert_eq!((progress.stage("a"), notice), (known, None));
}

#[test]
fn a_file_of_which_nothing_can_be_read_is_set_aside_and_named() {
    let dir = folder();
    let damages = [&b"state = ["[..], b"\xff\xfe\x00", b"stage = 5\n"];
    for (number, damage) in (1..).zip(damages) {
        fs::write(dir.path().join(FILE), damage).expect("written");
        let (progress, notice) = load(dir.path());
        let aside = format!("progress.toml.damaged-{number}");
        assert_eq!(progress, Progress::default());
        let message = notice.expect("a notice").message;
        assert!(message.contains(&aside), "{message}");
        assert!(message.ends_with("starts from zero"), "{message}");
        assert_eq!(fs::read(dir.path().join(&aside)).expect("kept"), damage);
        let (_, notice) = save_stage(dir.path(), "a", &passed()).expect("saved");
        assert_eq!(notice, None);
    }
}

#[test]
fn the_previous_copy_takes_the_place_of_a_damaged_file() {
    type Damage = fn(String) -> Vec<u8>;
    let damages: [Damage; 6] = [
        |text| text.replacen("\"b\"", "\"b", 1).into(),
        |text| text.replace("[stage.b]", "[stage.b").into(),
        |text| format!("{text}[stage.a]\nhints = 0\n").into(),
        |text| text.replacen("hints = 2", "hints = \"two\"", 1).into(),
        |text| [text.as_bytes(), &[0xff, 0xfe]].concat(),
        // After a loss of power, a file may contain only zeros.
        |text| vec![0; text.len()],
    ];
    for damage in damages {
        let dir = folder();
        let path = dir.path().join(FILE);
        save_stage(dir.path(), "a", &passed()).expect("saved");
        save_stage(dir.path(), "b", &passed()).expect("saved");
        save_current(dir.path(), "b").expect("saved");
        let bytes = damage(fs::read_to_string(&path).expect("read"));
        fs::write(&path, &bytes).expect("written");
        let (progress, notice) = load(dir.path());
        assert_eq!(
            progress.current, None,
            "it is the copy before the last change"
        );
        for id in ["a", "b"] {
            assert_eq!(progress.stage(id), passed());
        }
        let message = notice.expect("a notice").to_string();
        for part in [
            "progress.toml.damaged-1",
            "as it was before the last change",
        ] {
            assert!(message.contains(part), "{part}: {message}");
        }
        let aside = dir.path().join("progress.toml.damaged-1");
        assert_eq!(fs::read(aside).expect("set aside"), bytes);
        assert_eq!(load(dir.path()), (progress, None), "it is written anew");
    }
}

#[test]
fn progress_that_a_session_knows_is_written_again_into_a_lost_file() {
    let dir = folder();
    let (known, _) = save_stage(dir.path(), "a", &passed()).expect("saved");
    fs::remove_dir_all(dir.path()).expect("removed");
    let change = [ProgressChange::Current("b".to_owned())];
    let (progress, notice) =
        save_or_restore(dir.path(), &known, &change, Busy::Refuse).expect("saved");
    assert_eq!((progress.stage("a"), notice), (passed(), None));
    fs::write(dir.path().join(FILE), "[[[").expect("written");
    let (progress, notice) =
        save_or_restore(dir.path(), &progress, &change, Busy::Refuse).expect("saved");
    assert!(notice.is_some());
    assert_eq!(progress.stage("a"), passed());
}

#[test]
fn a_lock_of_another_program_is_waited_for() {
    let dir = folder();
    save_current(dir.path(), "a").expect("saved");
    let other = File::options()
        .write(true)
        .open(dir.path().join(LOCK))
        .expect("there");
    other.lock().expect("locked");
    let change = [ProgressChange::Current("b".to_owned())];
    let refused = save_or_restore(dir.path(), &Progress::default(), &change, Busy::Refuse);
    assert_eq!(
        refused.expect_err("locked").message,
        "another program holds progress.lock"
    );
    assert_eq!(load(dir.path()).0.current.as_deref(), Some("a"));
    // The last attempt of a session saves without the lock.
    save_current(dir.path(), "b").expect("saved");
    assert_eq!(load(dir.path()).0.current.as_deref(), Some("b"));
}

#[test]
fn a_folder_in_the_place_of_a_file_is_an_error_at_once() {
    let dir = folder();
    fs::create_dir(dir.path().join(FILE)).expect("made");
    let (progress, notice) = load(dir.path());
    assert_eq!(progress, Progress::default());
    assert_eq!(
        notice.expect("a notice").message,
        "is a folder; name a file"
    );
    fs::remove_dir(dir.path().join(FILE)).expect("removed");
    fs::create_dir(dir.path().join(LOCK)).expect("made");
    let error = save_current(dir.path(), "a").expect_err("refused");
    assert_eq!(error.message, "something else is in the place of its file");
}

#[test]
fn a_later_change_of_the_same_thing_replaces_an_earlier_one() {
    let stage = |id: &str| ProgressChange::Stage(id.to_owned(), Box::default());
    let reset = ProgressChange::Reset("a".to_owned());
    assert!(stage("a").replaces(&stage("a")) && !stage("a").replaces(&stage("b")));
    assert!(reset.replaces(&stage("a")) && !stage("a").replaces(&reset));
    let welcomed = ProgressChange::Welcomed;
    assert!(welcomed.replaces(&welcomed) && !welcomed.replaces(&reset));
}

#[test]
fn two_instances_do_not_destroy_each_other() {
    let dir = folder();
    let path = dir.path();
    std::thread::scope(|scope| {
        for worker in 0..4 {
            scope.spawn(move || {
                let known = Progress::default();
                for n in 0..10 {
                    let id = format!("s{worker}-{n}");
                    let change = [ProgressChange::Stage(id, Box::new(passed()))];
                    // On a busy machine the others may hold the lock for longer than a second.
                    while let Err(error) = save_or_restore(path, &known, &change, Busy::Refuse) {
                        assert_eq!(error.message, "another program holds progress.lock");
                    }
                }
            });
        }
    });
    assert_eq!(load(path).0.stages.len(), 40);
}

#[cfg(unix)]
#[test]
fn a_link_stays_a_link() {
    let dir = folder();
    let elsewhere = folder();
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
    assert_eq!(error.message, "Not a directory (os error 20)", "{error}");
}
