//! Config exercises and recorded runs as data, courses by strangers, and what a swapped file does to a course.

use std::fs;
use std::path::Path;

use perflings::course::exercise::config::answers;
use perflings::course::exercise::{Detective, Exercise};
use perflings::course::{Course, CourseFiles};
use perflings::record::Recording;
use protocol::{Event, StreamLine};

use super::{courses, example, messages, open};

fn detectives(course: &Course) -> Vec<(&Exercise, &Detective)> {
    let all = course.exercises.iter();
    all.filter_map(|one| Some((one, one.recording()?)))
        .collect()
}

#[test]
fn config_exercises_begin_without_answers() {
    let course = Course::builtin();
    let mut seen = 0;
    for exercise in &course.exercises {
        let Some(configs) = exercise.configs() else {
            continue;
        };
        seen += 1;
        assert_eq!(answers(&configs.file.starter, ""), Ok(Default::default()));
        assert!(configs.checks.iter().any(|check| check.answer.is_some()));
        assert!(
            configs.sweep.is_some() || !configs.rank.is_empty(),
            "{}",
            exercise.id
        );
        assert_eq!(exercise.files()[0].name, "answer.toml");
    }
    assert_eq!(seen, 4);
}

#[test]
fn five_recorded_runs_hide_their_fault_and_show_it() {
    let course = Course::builtin();
    let all = detectives(&course);
    assert_eq!(all.len(), 5);
    for (exercise, detective) in &all {
        assert_eq!(detective.problem(), None, "{}", exercise.id);
        assert!(detective.recording.len() < 100_000, "{}", exercise.id);
        assert!(!detective.device.name.is_empty() && detective.date.len() == 10);
        let recorded = detective.config().expect("a run");
        let shown = Recording::from_text(detective.shown(), Path::new("run.jsonl")).expect("one");
        for StreamLine { event, .. } in shown.iter() {
            match event {
                Event::Lints { .. } => panic!("{}: lints are shown", exercise.id),
                Event::Started(started) => {
                    let differs = recorded.differences(&started.run.config);
                    assert_eq!(differs, detective.hide, "{}", exercise.id);
                    assert_eq!(started.run.stage, 0);
                }
                Event::Finished(finished) => assert!(finished.lints.is_empty()),
                _ => {}
            }
        }
        assert_eq!(
            shown.notice, None,
            "{}: the recording is whole",
            exercise.id
        );
    }
    let letters: Vec<usize> = all.iter().map(|(_, one)| one.question.answer).collect();
    assert!(letters.iter().any(|letter| *letter != letters[0]));
}

/// The course inside the program, written out, with one file over another; what is wrong with it.
fn swapped(from: &str, to: &str) -> Vec<String> {
    let dir = tempfile::tempdir().expect("a folder");
    for (path, bytes) in CourseFiles::Embedded.files().expect("read") {
        let target = dir.path().join(&path);
        fs::create_dir_all(target.parent().expect("a folder")).expect("made");
        fs::write(target, bytes).expect("written");
    }
    fs::copy(dir.path().join(from), dir.path().join(to)).expect("copied");
    messages(dir.path())
}

#[test]
fn a_starter_and_its_solution_cannot_stand_for_each_other() {
    let stage = "exercises/02-strides/config.toml";
    let its = "exercises/02-strides/solution/config.toml";
    let kernel = "exercises/k06-softmax/starter.wgsl";
    let solved = "exercises/k06-softmax/solution/kernel.wgsl";
    for (from, to, named) in [
        (
            its,
            stage,
            "exercises/02-strides/stage.toml: config.toml and solution/config.toml say the same",
        ),
        (
            stage,
            its,
            "exercises/02-strides/stage.toml: config.toml and solution/config.toml say the same",
        ),
        (
            solved,
            kernel,
            "exercises/k06-softmax/exercise.toml: starter.wgsl and its solution say the same",
        ),
        (
            kernel,
            solved,
            "exercises/k06-softmax/exercise.toml: starter.wgsl and its solution say the same",
        ),
    ] {
        let found = swapped(from, to);
        assert!(
            found.iter().any(|line| line.starts_with(named)),
            "{from} over {to}: {found:#?}"
        );
    }
}

#[test]
fn texts_of_a_course_bring_no_escape_sequences_to_the_screen() {
    let (_dir, course) = example();
    let exercise = course.join("exercises/c01-lr");
    super::copy(
        &courses("invalid/answered-starter/exercises/c01-lr"),
        &exercise,
    );
    fs::write(exercise.join("answer.toml"), "rate = \"?\" # \x1b[2J\n").expect("written");
    let toml = fs::read_to_string(exercise.join("exercise.toml")).expect("read");
    let toml = toml.replace("Try some.", "Try \\u001b[31msome\\u0007.");
    fs::write(exercise.join("exercise.toml"), toml).expect("written");
    let reading = "# Tit\x1b]0;mine\x07le\n\n## A\n\nText\u{202e} \x1b[5mblinks.\n";
    fs::write(course.join("lessons/reading.md"), reading).expect("written");
    let stage = course.join("exercises/01-nothing-to-learn/stage.toml");
    let text = fs::read_to_string(&stage).expect("read");
    let beat = "\n[[beat]]\nshow = \"loss\"\nsay = \"Look\\u009b31m.\"\n";
    fs::write(&stage, text + beat).expect("written");
    let (_, loaded) = open(&course);
    assert_eq!((loaded.exercises.len(), loaded.readings.len()), (1, 1));
    let shown = format!(
        "{:?}{:?}{:?}",
        loaded.stages, loaded.exercises, loaded.readings
    );
    for bad in ["\\u{1b}", "\\u{7}", "\\u{9b}", "\\u{202e}", "mine"] {
        assert!(!shown.contains(bad), "{bad} is in {shown}");
    }
    let told = messages(&course);
    assert!(
        told.iter()
            .filter(|line| line.contains("terminal escape"))
            .count()
            >= 4,
        "{told:#?}"
    );
}

#[cfg(unix)]
#[test]
fn links_in_a_course_do_not_lead_out_of_it() {
    let (dir, course) = example();
    let secret = dir.path().join("secret.jsonl");
    fs::write(&secret, "{}").expect("written");
    let exercise = course.join("exercises/d01-run");
    super::copy(
        &courses("invalid/recording-leads-out/exercises/d01-run"),
        &exercise,
    );
    let toml = fs::read_to_string(exercise.join("exercise.toml")).expect("read");
    let toml = toml.replace("../../../Cargo.toml", "run.jsonl");
    fs::write(exercise.join("exercise.toml"), toml).expect("written");
    std::os::unix::fs::symlink(&secret, exercise.join("run.jsonl")).expect("linked");
    std::os::unix::fs::symlink("/etc/passwd", course.join("lessons/passwords.md")).expect("linked");
    let what = "is a link that leads out of the course folder; copy the file into it";
    let told = messages(&course);
    for file in ["exercises/d01-run/run.jsonl", "lessons/passwords.md"] {
        assert!(
            told.contains(&format!("{file}: {what}")),
            "{file}: {told:#?}"
        );
    }
    let (_, loaded) = open(&course);
    assert!(loaded.exercises.is_empty() && loaded.readings.is_empty());
}

#[test]
fn a_course_cannot_choose_the_folder_of_its_progress() {
    let (_dir, course) = example();
    for id in ["../../home", "/tmp/x", "a/b", "..", "A"] {
        let head = format!("id = \"{id}\"\ntitle = \"X\"\n");
        fs::write(course.join("exercises/course.toml"), head).expect("written");
        let (_, loaded) = open(&course);
        assert_eq!(loaded.id, "course", "{id} is not taken");
        assert!(!loaded.problems.is_empty());
    }
    let stage = course.join("exercises/01-nothing-to-learn/stage.toml");
    let text = fs::read_to_string(&stage).expect("read");
    let text = text.replace("id = \"nothing-to-learn\"", "id = \"../x\"");
    fs::write(&stage, text).expect("written");
    assert!(
        open(&course)
            .1
            .stages
            .iter()
            .all(|stage| stage.id != "../x")
    );
}

#[test]
fn with_measure_a_ratio_decides_and_unclear_never_passes() {
    use perflings::course::check::{Check, Metric};
    use perflings::judge::course::{WITH_MEASURE, behaviour};
    use protocol::{Finished, Pair, Verdict};

    let mut course = Course::builtin();
    course.stages.retain(|stage| stage.id == "naive-swiglu");
    let mut run = |_: &_, steps| {
        Ok(Finished {
            steps,
            ..Finished::default()
        })
    };
    let ratio = "`the step must be faster than it was`";
    for (verdict, low, passes) in [
        (Verdict::Faster, 2.5, true),
        (Verdict::Same, 0.99, false),
        (Verdict::Unclear, 0.97, false),
    ] {
        let pair = Pair {
            n: 30,
            ratio: 3.0,
            low: Some(low),
            high: Some(3.5),
            verdict,
            ..Pair::default()
        };
        let mut compare = |_: &_, _: &_| Ok(pair.clone());
        let tried = behaviour(&course, &mut run, Some(&mut compare));
        let solution = tried.last().expect("a solution");
        let complained = solution.detail.contains(&format!("must pass: {ratio}"));
        assert_eq!(complained, !passes, "{verdict:?}: {}", solution.detail);
    }
    let tried = behaviour(&course, &mut run, None);
    assert!(
        tried.iter().all(|one| !one.detail.contains(ratio)),
        "without it nothing is said"
    );
    let is_ratio = |check: &Check| check.metric == Metric::Ratio;
    course.stages[0].checks.retain(is_ratio);
    let tried = behaviour(&course, &mut run, None);
    let solution = tried.last().expect("a solution");
    assert_eq!(
        (solution.passed, solution.detail.as_str()),
        (None, WITH_MEASURE)
    );
}
