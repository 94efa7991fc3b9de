//! Config exercises and recorded runs as data, hostile courses, and courses in which one file is copied over another.

use std::fs;
use std::path::Path;

use perflings::course::check::{Check, Metric};
use perflings::course::exercise::config::answers;
use perflings::course::exercise::{Detective, Exercise};
use perflings::course::{Course, CourseFiles};
use perflings::judge::course::{WITH_MEASURE, stage_trials};
use perflings::judge::detective::problems;
use perflings::record::Recording;
use protocol::{Event, Finished, Pair, StreamLine, Verdict};

use super::{ExampleCourse, messages};

fn detectives(course: &Course) -> Vec<(&Exercise, &Detective)> {
    course
        .exercises
        .iter()
        .filter_map(|exercise| Some((exercise, exercise.recording()?)))
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
    let first_answer = all[0].1.question.answer;
    let mut questions = all.iter().map(|(_, detective)| &detective.question);
    assert!(questions.any(|question| question.answer != first_answer));
}

/// Returns the problems of a recorded run whose declared answer is `answer`.
fn problems_of_answer(detective: &Detective, answer: usize) -> Vec<String> {
    let mut declared = detective.clone();
    declared.question.answer = answer;
    let recorded = detective.finished().expect("a whole recording");
    let problems = problems(&declared, "exercise.toml", &recorded);
    problems.iter().map(ToString::to_string).collect()
}

#[test]
fn only_the_declared_answer_follows_from_a_recorded_run() {
    let course = Course::builtin();
    for (exercise, detective) in detectives(&course) {
        let right = detective.question.answer;
        for answer in 0..4 {
            let problems = problems_of_answer(detective, answer);
            if answer == right {
                assert_eq!(problems, [""; 0], "{}", exercise.id);
                continue;
            }
            let text = problems.join("\n");
            let letter = ["a", "b", "c", "d"][right];
            for part in [
                format!("exercise.toml:{}", detective.answer_line),
                "asks for ".to_owned(),
                "the recording gives ".to_owned(),
                format!("write `answer = \"{letter}\"`"),
            ] {
                assert!(text.contains(&part), "{} {answer}: {text}", exercise.id);
            }
        }
    }
}

#[test]
fn an_answer_that_a_recording_cannot_decide_is_reported() {
    let course = Course::builtin();
    let (_, sprint) = detectives(&course)[1];
    let answer = sprint.question.answer;
    let mut without_condition = sprint.clone();
    without_condition.shows[0].clear();
    let mut two_answers = sprint.clone();
    two_answers.shows[1] = sprint.shows[answer].clone();
    let mut not_measured = sprint.clone();
    not_measured.shows[answer][0].metric = Metric::Figure("grad.loss_scale".to_owned());
    for (detective, message) in [
        (
            without_condition,
            "if a is right; write a table `[[shows.a]]`",
        ),
        (two_answers, "shows b as well as the answer"),
        (not_measured, "did not measure it; write a condition"),
    ] {
        let problems = problems_of_answer(&detective, answer).join("\n");
        assert!(problems.contains(message), "{problems}");
    }
}

/// Writes the built-in course into a folder, which is removed when the result is dropped.
fn built_in_course() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (path, bytes) in CourseFiles::Embedded.files().expect("read") {
        let target = folder.path().join(&path);
        fs::create_dir_all(target.parent().expect("a folder")).expect("made");
        fs::write(target, bytes).expect("written");
    }
    folder
}

#[test]
fn a_condition_on_an_unknown_lint_is_reported() {
    let folder = built_in_course();
    let file = folder.path().join("exercises/d01-still/exercise.toml");
    let text = fs::read_to_string(&file).expect("there");
    fs::write(&file, text.replace("\"first-loss\"", "\"first-los\"")).expect("written");
    let problems = messages(folder.path()).join("\n");
    assert!(problems.contains("d01-still/exercise.toml:"), "{problems}");
    assert!(problems.contains("unknown lint `first-los`"), "{problems}");
}

/// Copies one file of the built-in course over another, and returns the problems of that course.
fn problems_with_file_over(from: &str, to: &str) -> Vec<String> {
    let folder = built_in_course();
    fs::copy(folder.path().join(from), folder.path().join(to)).expect("copied");
    messages(folder.path())
}

#[test]
fn a_starter_that_equals_its_solution_is_a_fault() {
    for (starter, solution, message) in [
        (
            "exercises/02-strides/config.toml",
            "exercises/02-strides/solution/config.toml",
            "exercises/02-strides/stage.toml: config.toml and solution/config.toml say the same",
        ),
        (
            "exercises/k06-softmax/starter.wgsl",
            "exercises/k06-softmax/solution/kernel.wgsl",
            "exercises/k06-softmax/exercise.toml: starter.wgsl and its solution say the same",
        ),
    ] {
        for (from, to) in [(starter, solution), (solution, starter)] {
            let problems = problems_with_file_over(from, to);
            let is_named = problems.iter().any(|problem| problem.starts_with(message));
            assert!(is_named, "{from} over {to}: {problems:#?}");
        }
    }
}

#[test]
fn texts_of_a_course_bring_no_escape_sequences_to_the_screen() {
    let example = ExampleCourse::new();
    example.add_exercise("invalid/answered-starter", "c01-lr");
    example.write("exercises/c01-lr/answer.toml", "rate = \"?\" # \x1b[2J\n");
    example.replace(
        "exercises/c01-lr/exercise.toml",
        "Try some.",
        "Try \\u001b[31msome\\u0007.",
    );
    let reading = "# Tit\x1b]0;mine\x07le\n\n## A\n\nText\u{202e} \x1b[5mblinks.\n";
    example.write("lessons/reading.md", reading);
    let stage = "exercises/01-nothing-to-learn/stage.toml";
    let beat = "\n[[beat]]\nshow = \"loss\"\nsay = \"Look\\u009b31m.\"\n";
    example.write(stage, example.read(stage) + beat);

    let course = example.open();
    assert_eq!((course.exercises.len(), course.readings.len()), (1, 1));
    let content = format!(
        "{:?}{:?}{:?}",
        course.stages, course.exercises, course.readings
    );
    for bad in ["\\u{1b}", "\\u{7}", "\\u{9b}", "\\u{202e}", "mine"] {
        assert!(!content.contains(bad), "{bad} is in {content}");
    }
    let mut problems = example.messages();
    problems.retain(|problem| problem.contains("terminal escape"));
    assert!(problems.len() >= 4, "{problems:#?}");
}

#[cfg(unix)]
#[test]
fn links_in_a_course_do_not_lead_out_of_it() {
    use std::os::unix::fs::symlink;
    let example = ExampleCourse::new();
    let outside_file = example.outside.path().join("secret.jsonl");
    fs::write(&outside_file, "{}").expect("written");
    example.add_exercise("invalid/recording-leads-out", "d01-run");
    example.replace(
        "exercises/d01-run/exercise.toml",
        "../../../Cargo.toml",
        "run.jsonl",
    );
    let run = "exercises/d01-run/run.jsonl";
    let lesson = "lessons/passwords.md";
    symlink(&outside_file, example.file(run)).expect("linked");
    symlink("/etc/passwd", example.file(lesson)).expect("linked");

    let problems = example.messages();
    for file in [run, lesson] {
        let expected =
            format!("{file}: is a link that leads out of the course folder; copy the file into it");
        assert!(problems.contains(&expected), "{problems:#?}");
    }
    let course = example.open();
    assert!(course.exercises.is_empty() && course.readings.is_empty());
}

#[test]
fn a_course_cannot_choose_the_folder_of_its_progress() {
    let example = ExampleCourse::new();
    for id in ["../../home", "/tmp/x", "a/b", "..", "A"] {
        let head = format!("id = \"{id}\"\ntitle = \"X\"\n");
        example.write("exercises/course.toml", head);
        let course = example.open();
        assert_eq!(course.id, "course", "{id} is not used");
        assert!(!course.problems.is_empty());
    }
}

#[test]
fn a_stage_cannot_choose_the_folder_of_its_files() {
    let example = ExampleCourse::new();
    example.replace(
        "exercises/01-nothing-to-learn/stage.toml",
        "id = \"nothing-to-learn\"",
        "id = \"../x\"",
    );
    let course = example.open();
    assert!(course.stages.iter().all(|stage| stage.id != "../x"));
}

#[test]
fn with_measure_a_ratio_decides_and_unclear_never_passes() {
    let mut course = Course::builtin();
    course.stages.retain(|stage| stage.id == "naive-swiglu");
    let mut run = |_: &_, steps| {
        Ok(Finished {
            steps,
            ..Finished::default()
        })
    };
    let criterion = "`the step must be faster than it was`";
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
        let results = stage_trials(&course, &mut run, Some(&mut compare));
        let solution = results.last().expect("a solution");
        let is_faulted = solution.detail.contains(&format!("must pass: {criterion}"));
        assert_eq!(is_faulted, !passes, "{verdict:?}: {}", solution.detail);
    }
    for result in stage_trials(&course, &mut run, None) {
        assert!(
            !result.detail.contains(criterion),
            "not measured: {result:?}"
        );
    }
    let is_ratio = |check: &Check| check.metric == Metric::Ratio;
    course.stages[0].checks.retain(is_ratio);
    let results = stage_trials(&course, &mut run, None);
    let solution = results.last().expect("a solution");
    assert_eq!(solution.passed, None);
    assert_eq!(solution.detail, WITH_MEASURE);
}
