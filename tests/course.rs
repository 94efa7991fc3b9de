//! The course as data. Everything that is shipped loads and refers to things that exist, and each fault of a course file gives one message with file
//! and line. Nothing here trains.
//!
//! The files of a folder in `tests/courses/invalid` or `unsound` are copied over `example`; its `expected.txt` holds the messages.

use crate::readme;

#[path = "courses/exercises.rs"]
mod exercises;
#[path = "courses/kernels.rs"]
mod kernels;
#[path = "courses/sums.rs"]
mod sums;

use std::fs;
use std::path::{Path, PathBuf};

use perflings::course::check::{Check, Metric, Target, Test};
use perflings::course::config_file::rewritten;
use perflings::course::exercise::config::OWN_METRICS;
use perflings::course::formula::FORMULAS;
use perflings::course::metric::{self, METRICS, RunMetric};
use perflings::course::validate::{Vocabulary, structure};
use perflings::course::{
    Course, CourseFiles, SectionKind, Stage, StageLevel, TextBlock, TextSpan, lesson,
};
use perflings::judge::Outcome;
use perflings::judge::course::behaviour;
use perflings::judge::stage::{StageFacts, evaluate, line};
use perflings::sanitize::without_escapes;
use proptest::prelude::*;
use protocol::config::{Data, KNOBS, Knob, RunConfig};
use protocol::{Finished, KernelMetric, Pair, PhaseTimes, Verdict};

/// The keys that a lesson may name.
const KEYS: &str =
    "v PgDn PgUp 1 2 3 4 5 6 n p a b c d f t space r T h s l tab e y m C o x w g ? q";
/// The commands that a lesson may name.
const COMMANDS: &str =
    "run compare check course list hint reset init doctor replay watch export bench open";

/// Returns all problems of a course, one in each line.
fn problems(source: &CourseFiles) -> Vec<String> {
    let keys: Vec<String> = KEYS.split_whitespace().map(str::to_owned).collect();
    let names = protocol::lints::names().chain(gputrace::lints::names());
    let lints: Vec<String> = names.map(str::to_owned).collect();
    let command = |line: &str| {
        let name = line.split_whitespace().nth(1).unwrap_or_default();
        if COMMANDS.split_whitespace().any(|known| known == name) {
            Ok(())
        } else {
            Err(format!("unknown command `{name}`"))
        }
    };
    let vocabulary = Vocabulary {
        keys: &keys,
        lints: &lints,
        command: &command,
    };
    let course = Course::open(source);
    structure(source, &course, &vocabulary)
        .iter()
        .map(ToString::to_string)
        .collect()
}

/// Returns the path of a folder in `tests/courses`.
fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/courses")
        .join(name)
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a fixture").flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("copied");
        }
    }
}

/// A copy of the example course that a test may change. It has the stages `nothing-to-learn` and `too-fast`.
struct ExampleCourse {
    /// The folder around the course, which is removed when this is dropped.
    outside: tempfile::TempDir,
}

impl ExampleCourse {
    fn new() -> Self {
        let outside = tempfile::tempdir().expect("a folder");
        let example = Self { outside };
        copy_folder(&fixture("example"), &example.folder());
        example
    }

    fn folder(&self) -> PathBuf {
        self.outside.path().join("course")
    }

    /// Returns the path of one of its files.
    fn file(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).expect("a file of the course")
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.file(name), content).expect("written");
    }

    fn remove(&self, name: &str) {
        fs::remove_file(self.file(name)).expect("removed");
    }

    /// Replaces a text in one of its files.
    fn replace(&self, name: &str, from: &str, to: &str) {
        self.write(name, self.read(name).replace(from, to));
    }

    /// Copies the files of a folder in `tests/courses` over those of the course.
    fn overlay(&self, name: &str) {
        copy_folder(&fixture(name), &self.folder());
    }

    /// Copies one exercise of a course in `tests/courses` into the course.
    fn add_exercise(&self, from: &str, folder: &str) {
        let exercise = fixture(from).join("exercises").join(folder);
        copy_folder(&exercise, &self.file("exercises").join(folder));
    }

    fn open(&self) -> Course {
        Course::open(&CourseFiles::folder(&self.folder()).expect("a course folder"))
    }

    fn messages(&self) -> Vec<String> {
        messages(&self.folder())
    }
}

/// Returns the problems that a course had when it was opened.
fn opening_problems(course: &Course) -> Vec<String> {
    course.problems.iter().map(ToString::to_string).collect()
}

/// Returns the problems of a course folder, without the path of the folder.
fn messages(folder: &Path) -> Vec<String> {
    let prefix = format!("{}/", folder.display());
    problems(&CourseFiles::folder(folder).expect("a course folder"))
        .into_iter()
        .map(|line| line.replace(&prefix, ""))
        .collect()
}

/// Returns true if tests write the files that they would compare.
fn writes_expected_files() -> bool {
    std::env::var_os("BLESS").is_some()
}

#[test]
fn the_shipped_course_is_complete() {
    assert_eq!(problems(&CourseFiles::Embedded), Vec::<String>::new());
    let course = Course::builtin();
    let numbers: Vec<u32> = course.stages.iter().map(|stage| stage.number).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert!(course.glossary.is_some());
}

#[test]
fn lessons_and_readme_call_those_stages_advanced_whose_files_do() {
    let course = Course::builtin();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |file: &str| fs::read_to_string(root.join(file)).expect("a page");
    let mut advanced = Vec::new();
    for stage in &course.stages {
        let is_advanced = stage.level == StageLevel::Advanced;
        let lesson = read(&format!("lessons/{}", stage.lesson_file));
        assert_eq!(
            lesson.contains("*Advanced; the course is complete without it.*"),
            is_advanced,
            "{}",
            stage.lesson_file
        );
        advanced.extend(is_advanced.then_some(stage));
    }
    let [first, .., last] = advanced.as_slice() else {
        panic!("fewer than two are advanced");
    };
    let sentence = format!("Stages {} to {} are advanced", first.number, last.number);
    assert!(read("README.md").contains(&sentence), "{sentence}");
    let from_first_to_last = last.number - first.number + 1;
    assert_eq!(advanced.len() as u32, from_first_to_last, "{sentence}");
}

#[test]
fn every_lesson_ends_with_a_link_to_the_next_one() {
    let course = Course::builtin();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("lessons");
    for neighbours in course.stages.windows(2) {
        let [stage, next] = neighbours else {
            unreachable!()
        };
        let lesson = fs::read_to_string(root.join(&stage.lesson_file)).expect("a lesson");
        let (_, last_paragraph) = lesson.rsplit_once("\n\n").expect("paragraphs");
        let link = format!("]({})", next.lesson_file);
        assert!(last_paragraph.contains(&link), "{}", stage.lesson_file);
    }
}

#[test]
fn every_stage_has_all_its_parts() {
    for stage in Course::builtin().stages {
        let id = &stage.id;
        for kind in [
            SectionKind::Symptom,
            SectionKind::Evidence,
            SectionKind::Why,
            SectionKind::Debrief,
        ] {
            let mut sections = stage.lesson.sections.iter();
            assert!(
                sections.any(|section| section.kind == kind),
                "{id}: {kind:?}"
            );
        }
        assert_eq!(stage.hints.len(), 3, "{id}");
        assert!(stage.offers.len() >= 6, "{id} offers too few knobs");
        assert!(stage.offers.len() > stage.varies.len(), "{id}");
        assert!(stage.quiz.len() >= 3, "{id}");
        assert!(!stage.claims.is_empty(), "{id}");
        assert!(stage.estimate.is_some(), "{id}");
        let first_answer = stage.quiz[0].answer;
        let has_other_answer = stage
            .quiz
            .iter()
            .any(|question| question.answer != first_answer);
        assert!(has_other_answer, "{id}: every answer has one letter");
        assert_eq!(stage.broken.problems(), [], "{id}");
        assert_eq!(stage.fixed.problems(), [], "{id}");
    }
}

/// `BLESS=1` writes the starters.
#[test]
fn every_starter_has_the_knobs_of_the_panel_and_lists_their_values() {
    for stage in Course::builtin().stages {
        let is_offered = |knob: &&Knob| stage.offers.iter().any(|path| path == knob.path);
        let knobs: Vec<&Knob> = KNOBS.iter().filter(is_offered).collect();
        let starter = &stage.files[0].starter;
        let complete = rewritten(starter, &stage.path, &stage.broken, &knobs).expect("a starter");
        if writes_expected_files() {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(&stage.path);
            fs::write(folder.join("config.toml"), &complete).expect("written");
        } else {
            assert_eq!(*starter, complete, "{}", stage.path);
        }
    }
}

#[test]
fn a_stage_keeps_its_own_sizes_at_another_preset() {
    use protocol::config::Preset;
    let course = Course::builtin();
    let strides = course.stage_by_id("strides").expect("stage 2");
    let small_strides = strides.broken_at(Preset::Small);
    assert_eq!(small_strides.model.hidden, 512);
    assert_eq!(small_strides.model.layers, 2);
    assert_eq!(small_strides.train.context, 256);
    let init = course.stage(1).expect("stage 1");
    let small_init = init.broken_at(Preset::Small);
    assert_eq!(small_init.model.hidden, 512);
    assert_eq!(small_init.model.layers, 8);
    assert_eq!(small_init.train.batch, 8);
}

/// `BLESS=1` writes the expected messages.
#[test]
fn each_fault_of_a_course_gives_one_message() {
    assert_eq!(messages(&fixture("example")), Vec::<String>::new());
    let mut wrong = Vec::new();
    for group in ["invalid", "unsound"] {
        for faulty in fs::read_dir(fixture(group)).expect("fixtures").flatten() {
            let course = ExampleCourse::new();
            copy_folder(&faulty.path(), &course.folder());
            let found = course.messages().join("\n") + "\n";
            let file = faulty.path().join("expected.txt");
            if writes_expected_files() {
                fs::write(&file, &found).expect("written");
            }
            let expected = fs::read_to_string(&file).unwrap_or_default();
            if found != expected {
                let folder = faulty.path();
                wrong.push(format!(
                    "{}:\n{found}expected:\n{expected}",
                    folder.display()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_first_fault_of_a_file_is_reported_with_its_line_and_column() {
    let course = ExampleCourse::new();
    course.overlay("invalid/wrong-change");
    course.remove("exercises/k01-x/wrong.toml");
    course.overlay("invalid/taken-exercise-id");
    let stage = "exercises/01-nothing-to-learn/stage.toml";
    let kernel = "exercises/k01-x/exercise.toml";
    let config = "exercises/c01-lr/exercise.toml";
    // The exercise has the id of a stage. With an id of its own the course has no fault.
    course.write(config, course.read(config).replacen("too-fast", "lr", 1));
    assert_eq!(course.messages(), Vec::<String>::new());
    for (file, from, to, message) in [
        (
            stage,
            "The loss that will not fall",
            "",
            "2:9: `title` is empty; write a text",
        ),
        (
            stage,
            "beginner",
            "easy",
            "3:9: `level` cannot be \"easy\"; did you mean \"beginner\"? It takes \"beginner\", \"intermediate\", \"advanced\"",
        ),
        (
            stage,
            "[\"train.data\"]",
            "[\"train.data\", 7]",
            "7:25: `varies`: invalid type: integer `7`, expected a string",
        ),
        (
            stage,
            "= 40",
            "= -1",
            "8:9: `steps`: invalid value: integer `-1`, expected u64",
        ),
        (
            stage,
            "= 40",
            "= 1e999",
            "8:9: `steps` is not finite; write a number",
        ),
        (
            stage,
            "explanation = \"Every",
            "explain = \"Every",
            "29:1: unknown key `explain`; the nearest known key is `explanation`",
        ),
        (
            stage,
            "explanation = \"Every",
            "# \"Every",
            "25:1: `explanation` is missing; write it here",
        ),
        (
            stage,
            "\"ln_vocab\"",
            "true",
            "34:9: `below`: it takes a number or the quoted name of a figure",
        ),
        (
            config,
            "\nask =",
            "\n# ",
            "15:1: `ask` is missing; write `ask = \"…\"`",
        ),
        (
            config,
            "\"0.001\"",
            "\"0.002\"",
            "18:1: `of` names `0.002`, which is not in the sweep's `values`; the nearest there is `0.001`",
        ),
        (
            kernel,
            "\"x\"",
            "\"X\"",
            "1:1: `id` takes lower-case letters, digits and `-`, such as \"swiglu\"",
        ),
        (
            kernel,
            "N = 1",
            "N = 0",
            "11:1: `N` takes a whole number from 1 to 1073741824",
        ),
        (
            kernel,
            "N = 1",
            "n = 1",
            "11:1: `n` is not a size; name sizes in capitals, such as N",
        ),
        (
            kernel,
            "label =",
            "# ",
            "9:1: `label` is missing; write `label = \"…\"`",
        ),
        (
            kernel,
            "\"N\"",
            "\"n\"",
            "20:9: `count`: `n` is neither a number nor a size; write a product such as `N * M / 64`",
        ),
        (
            kernel,
            "role = \"out\"",
            "role = \"in\"",
            "13:1: writes no buffer; give one `[[kernel.binding]]` the role \"out\"",
        ),
        (
            kernel,
            "\"correct\"",
            "\"speed\"",
            "22:1: `at-least` is missing; write `at-least = 1.5`",
        ),
    ] {
        let before = course.read(file);
        course.write(file, before.replacen(from, to, 1));
        let expected = format!("{file}:{message}");
        assert_eq!(course.messages().first(), Some(&expected), "{from} -> {to}");
        course.write(file, before);
    }
}

#[test]
fn a_stage_with_a_fault_does_not_keep_others_from_loading() {
    let example = ExampleCourse::new();
    example.remove("exercises/01-nothing-to-learn/config.toml");
    let course = example.open();
    let stages: Vec<&str> = course
        .stages
        .iter()
        .map(|stage| stage.id.as_str())
        .collect();
    assert_eq!(stages, ["too-fast"]);
    let problems = opening_problems(&course);
    let [problem] = problems.as_slice() else {
        panic!("{problems:?}")
    };
    assert!(
        problem.ends_with("exercises/01-nothing-to-learn/config.toml: is missing"),
        "{problem}"
    );
}

#[test]
fn a_stage_without_its_lesson_loads_with_a_problem() {
    let example = ExampleCourse::new();
    example.remove("lessons/02-too-fast.md");
    let course = example.open();
    assert_eq!(course.stages.len(), 2);
    let problem = &opening_problems(&course)[0];
    assert!(
        problem.ends_with("lessons/02-too-fast.md: is missing"),
        "{problem}"
    );
}

#[test]
fn unreadable_files_are_named() {
    let example = ExampleCourse::new();
    let not_utf8 = b"id = \"a\"\ntitle = \"\xff\"\n";
    example.write("exercises/01-nothing-to-learn/stage.toml", not_utf8);
    example.write("lessons/02-too-fast.md", "x".repeat(300 * 1024));
    let problems = opening_problems(&example.open());
    assert!(
        problems[0].ends_with("stage.toml:2: is not UTF-8 text; save it as UTF-8"),
        "{problems:?}"
    );
    assert!(
        problems[1].ends_with("02-too-fast.md: has 307200 bytes; the limit is 262144"),
        "{problems:?}"
    );
}

/// Writes a byte order mark before the text of each file in a folder.
fn add_byte_order_marks(folder: &Path) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            add_byte_order_marks(&path);
        } else {
            let text = fs::read_to_string(&path).expect("text");
            fs::write(path, format!("\u{feff}{text}")).expect("written");
        }
    }
}

#[test]
fn files_may_begin_with_a_byte_order_mark() {
    let course = ExampleCourse::new();
    add_byte_order_marks(&course.folder());
    assert_eq!(course.messages(), Vec::<String>::new());
}

#[cfg(unix)]
#[test]
fn a_link_that_leads_out_of_the_course_is_refused() {
    use std::os::unix::fs::symlink;
    let example = ExampleCourse::new();
    let outside_file = example.outside.path().join("secret.md");
    let outside_folder = example.outside.path().join("elsewhere");
    fs::write(&outside_file, "# Secret\n").expect("written");
    fs::create_dir(&outside_folder).expect("made");
    let stage = example.read("exercises/02-too-fast/stage.toml");
    fs::write(outside_folder.join("stage.toml"), stage).expect("written");
    let lesson = "lessons/01-nothing-to-learn.md";
    example.remove(lesson);
    symlink(&outside_file, example.file(lesson)).expect("linked");
    symlink(&outside_folder, example.file("exercises/03-linked")).expect("linked");

    let course = example.open();
    let problems = opening_problems(&course);
    for file in ["01-nothing-to-learn.md", "03-linked/stage.toml"] {
        let expected =
            format!("{file}: is a link that leads out of the course folder; copy the file into it");
        let is_named = problems.iter().any(|problem| problem.ends_with(&expected));
        assert!(is_named, "{problems:?}");
    }
    assert_eq!(course.stages.len(), 2);
    assert!(course.stages[0].lesson.sections.is_empty());
}

#[cfg(unix)]
#[test]
fn a_pipe_in_place_of_a_lesson_is_not_waited_for() {
    let example = ExampleCourse::new();
    let lesson = "lessons/01-nothing-to-learn.md";
    example.remove(lesson);
    let made = std::process::Command::new("mkfifo")
        .arg(example.file(lesson))
        .status()
        .is_ok_and(|status| status.success());
    if made {
        let problems = opening_problems(&example.open());
        assert!(
            problems[0].ends_with("is a pipe; name a file"),
            "{problems:?}"
        );
    }
}

#[test]
fn a_folder_that_is_no_course_is_an_error() {
    let empty = tempfile::tempdir().expect("a folder");
    let error = CourseFiles::folder(empty.path())
        .expect_err("no course")
        .to_string();
    assert!(
        error.ends_with(
            "has no folder exercises/; name the folder that holds exercises/ and lessons/"
        ),
        "{error}"
    );
    assert!(CourseFiles::folder(&empty.path().join("missing")).is_err());
}

/// Pretends to train. The loss falls unless the configuration has a fault of the example course.
fn pretend_to_train(config: &RunConfig, steps: u64) -> Result<Finished, String> {
    let learns = config.train.data == Data::Markov && config.train.learning_rate < 0.1;
    let loss_last = if learns { 6.2 } else { 6.94 };
    Ok(Finished {
        steps,
        loss_first: 6.93.into(),
        loss_last: loss_last.into(),
        ln_vocab: config.ln_vocab(),
        ..Finished::default()
    })
}

#[test]
fn course_check_passes_starters_that_fail_and_solutions_that_pass() {
    let example = ExampleCourse::new();
    let results = behaviour(&example.open(), &mut pretend_to_train, None);
    assert_eq!(results.len(), 4);
    for result in &results {
        assert_eq!(result.passed, Some(true), "{results:#?}");
    }
    assert!(results[0].detail.contains("`the model learns`"));
}

#[test]
fn course_check_names_a_starter_that_passes_and_a_solution_that_fails() {
    let example = ExampleCourse::new();
    let stage = "exercises/01-nothing-to-learn";
    let learns = "[train]\ndata = \"markov\"\nseed = 43\n";
    let does_not_learn = "[train]\ndata = \"noise\"\nseed = 43\n";
    example.write(&format!("{stage}/config.toml"), learns);
    example.write(&format!("{stage}/solution/config.toml"), does_not_learn);
    let results = behaviour(&example.open(), &mut pretend_to_train, None);
    let passed: Vec<Option<bool>> = results.iter().map(|result| result.passed).collect();
    assert_eq!(passed, [false, false, true, true].map(Some));
    assert_eq!(results[0].what, "1 nothing-to-learn, starter");
    for (result, detail) in [
        (&results[0], "must fail: `the model learns`"),
        (&results[1], "must pass: `the model learns`"),
    ] {
        assert!(result.detail.starts_with(detail), "{result:#?}");
    }
}

/// Returns a run of stage 1 that meets its criteria.
fn good_run_of_broken_init(stage: &Stage) -> Finished {
    let mut run = Finished {
        steps: 60,
        loss_first: 6.93.into(),
        loss_last: 6.1.into(),
        ln_vocab: stage.fixed.ln_vocab(),
        ..Finished::default()
    };
    run.grad.tensors = 38;
    run.grad.with_grad = 38;
    run.grad.params_pct = 100.0;
    run
}

#[test]
fn a_good_run_passes_each_criterion_and_leaves_the_quiz_unmeasured() {
    let course = Course::builtin();
    let stage = course.stage_by_id("broken-init").expect("stage 1");
    let run = good_run_of_broken_init(stage);
    let facts = StageFacts {
        config: Some(&stage.fixed),
        finished: Some(&run),
        ..StageFacts::default()
    };
    let report = evaluate(stage, facts);
    assert!(report.passed(), "{report:#?}");
    let first_loss = "loss_first within 3 % of 6.93 (formula.first_loss)";
    assert_eq!(report.lines[1].asked, first_loss);
    let quiz = report.lines.last().expect("the quiz");
    assert_eq!(quiz.outcome, Outcome::NotMeasured);
}

#[test]
fn criteria_are_not_measured_without_a_run() {
    let course = Course::builtin();
    let stage = course.stage_by_id("broken-init").expect("stage 1");
    let facts = StageFacts {
        config: Some(&stage.fixed),
        ..StageFacts::default()
    };
    assert_eq!(evaluate(stage, facts).outcome(), Outcome::NotMeasured);
}

#[test]
fn a_changed_seed_fails_the_stage() {
    let course = Course::builtin();
    let stage = course.stage_by_id("broken-init").expect("stage 1");
    let run = good_run_of_broken_init(stage);
    let mut other_seed = stage.fixed.clone();
    other_seed.train.seed = 7;
    let facts = StageFacts {
        config: Some(&other_seed),
        finished: Some(&run),
        ..StageFacts::default()
    };
    let report = evaluate(stage, facts);
    assert_eq!(report.outcome(), Outcome::Failed);
    assert_eq!(report.lines[0].measured, "train.seed differs");
}

#[test]
fn an_unclear_ratio_passes_only_if_its_whole_interval_does() {
    let course = Course::builtin();
    let stage = course.stage_by_id("naive-swiglu").expect("stage 4");
    for (low, verdict, expected) in [
        (Some(0.97), Verdict::Unclear, Outcome::NotMeasured),
        (Some(2.5), Verdict::Unclear, Outcome::Passed),
        (Some(2.5), Verdict::Faster, Outcome::Passed),
        (Some(0.98), Verdict::Same, Outcome::Failed),
        (None, Verdict::Unclear, Outcome::NotMeasured),
    ] {
        let pair = Pair {
            n: 30,
            ratio: 3.0,
            low,
            high: Some(3.5),
            verdict,
            ..Pair::default()
        };
        let facts = StageFacts {
            pair: Some(&pair),
            ..StageFacts::default()
        };
        let report = evaluate(stage, facts);
        let mut lines = report.lines.iter();
        let ratio = lines.find(|line| line.asked.starts_with("ratio"));
        assert_eq!(ratio.expect("a ratio").outcome, expected, "{pair:?}");
    }
}

#[test]
fn a_ratio_that_must_be_small_is_judged_by_its_high_end() {
    let course = Course::builtin();
    let stage = course.stage_by_id("naive-swiglu").expect("stage 4");
    let mut checks = stage.checks.iter();
    let ratio = checks.find(|check| check.metric == Metric::Ratio);
    let below_1 = Check {
        test: Test::Below(Target::Number(1.0)),
        ..ratio.expect("a ratio").clone()
    };
    for (high, outcome) in [(1.2, Outcome::Failed), (0.9, Outcome::Passed)] {
        let pair = Pair {
            n: 30,
            ratio: 0.8,
            low: Some(0.7),
            high: Some(high),
            verdict: Verdict::Slower,
            ..Pair::default()
        };
        let facts = StageFacts {
            pair: Some(&pair),
            ..StageFacts::default()
        };
        assert_eq!(line(stage, &below_1, facts).outcome, outcome);
    }
}

#[test]
fn a_share_misses_by_percentage_points_and_a_figure_by_its_unit() {
    let course = Course::builtin();
    let stage = course.stage_by_id("missing-sync").expect("stage 3");
    let run = Finished {
        steps: 60,
        phases_ms: Some(PhaseTimes::from_parts([0.1, 0.1, 0.1], 300.0)),
        ..Finished::default()
    };
    let measured = StageFacts {
        config: Some(&stage.fixed),
        finished: Some(&run),
        ..StageFacts::default()
    };
    let report = evaluate(stage, measured);
    let (shares, figures): (Vec<_>, Vec<_>) = report
        .lines
        .iter()
        .filter(|line| line.outcome == Outcome::Failed)
        .partition(|line| line.asked.contains("_pct"));
    let share = &shares[0].measured;
    assert!(
        share.contains("99.9 %, 94.9 percentage points too high"),
        "{share}"
    );
    for figure in figures {
        assert!(!figure.measured.contains("points"), "{figure:?}");
    }
}

#[test]
fn a_beat_says_whether_memory_is_measured_or_by_formula() {
    for stage in Course::builtin().stages {
        for cue in &stage.cues {
            let sentence = &cue.say;
            for (figure, word) in [("memory.peak", "measured"), ("formula.peak", "by formula")] {
                if sentence.contains(figure) {
                    assert!(sentence.contains(word), "{}: {sentence}", stage.id);
                }
            }
        }
    }
}

#[test]
fn texts_call_time_in_no_phase_unaccounted_and_use_residual_for_the_stream() {
    for folder in ["lessons", "exercises"] {
        for (path, text) in texts(Path::new(folder)) {
            let without_figures = text.replace("phases.residual", "");
            for after in without_figures.split("residual").skip(1) {
                let next = after.trim_start_matches(['*', ' ', '\n']);
                let is_known = ["stream", "sums", ", adamw", "\"\n"]
                    .iter()
                    .any(|known| next.starts_with(known));
                assert!(is_known, "{}: residual{after}", path.display());
            }
        }
    }
}

/// Returns the Markdown and TOML files in a folder and the folders below it.
fn texts(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder of the course") {
        let path = entry.expect("an entry").path();
        let extension = path.extension().and_then(|extension| extension.to_str());
        if path.is_dir() {
            found.extend(texts(&path));
        } else if matches!(extension, Some("md" | "toml")) {
            let text = fs::read_to_string(&path).expect("text");
            found.push((path, text));
        }
    }
    found
}

#[test]
fn memory_is_counted_in_mib() {
    let mut run = Finished::default();
    run.memory.weights = 3 << 20;
    assert_eq!(metric::value("memory.weights_mib", &run), Some(3.0));
    run.memory.peak_bytes = Some(1 << 30);
    assert_eq!(metric::value("memory.peak_mib", &run), Some(1024.0));
}

#[test]
fn markdown_becomes_blocks() {
    let source = "# T\n\n## Why <!-- why -->\n\nA **b** *c* `d` {{run.loss_first}} [e](f.md) <kbd>t</kbd>\n\n- one\n  - two\n\n1. x\n2. y\n\n```text\nz\n```\n\n> q\n\n| a | b |\n|---|---|\n| 1 | {{ln_vocab}} |\n\n---\n";
    let parsed = lesson::parse(source, "x.md");
    assert_eq!(parsed.problems, []);
    let section = &parsed.lesson.sections[0];
    assert_eq!(
        (section.title.as_str(), section.kind),
        ("Why", SectionKind::Why)
    );
    let TextBlock::Paragraph(spans) = &section.blocks[0] else {
        panic!("{:?}", section.blocks[0])
    };
    assert!(
        spans.contains(&TextSpan::Strong("b".into()))
            && spans.contains(&TextSpan::Emphasis("c".into()))
    );
    assert!(
        spans.contains(&TextSpan::Code("d".into())) && spans.contains(&TextSpan::Code("t".into()))
    );
    assert!(spans.contains(&TextSpan::Placeholder("run.loss_first".into())));
    assert!(spans.contains(&TextSpan::Link {
        text: "e".into(),
        to: "f.md".into()
    }));
    let markers: Vec<(u8, &str)> = section
        .blocks
        .iter()
        .filter_map(|block| match block {
            TextBlock::Item { depth, marker, .. } => Some((*depth, marker.as_str())),
            _ => None,
        })
        .collect();
    assert_eq!(markers, [(0, "•"), (1, "•"), (0, "1."), (0, "2.")]);
    assert!(
        section
            .blocks
            .contains(&TextBlock::Code { text: "z".into() })
    );
    assert!(
        section
            .blocks
            .contains(&TextBlock::Quote(vec![TextSpan::Text("q".into())]))
    );
    assert!(matches!(section.blocks.last(), Some(TextBlock::Rule)));
    let table = section.blocks.iter().find_map(|block| match block {
        TextBlock::Table { head, rows } => Some((head.len(), rows)),
        _ => None,
    });
    assert_eq!(
        table.expect("a table").1[0][1],
        [TextSpan::Placeholder("ln_vocab".into())]
    );
}

proptest! {
    #[test]
    fn any_text_is_a_lesson_without_escapes(source in ".{0,400}", tail in "[-#>*`|\\[\\]{}<! a\\n\u{1b}\u{9b}\u{7}]{0,200}") {
        let parsed = lesson::parse(&format!("{source}\n{tail}"), "x.md");
        for section in &parsed.lesson.sections {
            let shown = format!("{section:?}");
            prop_assert!(!shown.contains("\\u{1b}") && !shown.contains("\\u{9b}"), "{shown}");
        }
    }

    #[test]
    fn cleaned_text_stays_clean(source in "(?s).{0,300}") {
        let (once, _) = without_escapes(&source);
        prop_assert!(once.chars().all(|c| c == '\n' || !c.is_control()));
        prop_assert_eq!(without_escapes(&once), (once.clone(), Vec::new()));
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_stage_file_is_answered(source in "(?s)[a-z\\[\\]=\" \\n0-9.{}#-]{0,300}") {
        let example = ExampleCourse::new();
        example.write("exercises/01-nothing-to-learn/stage.toml", source);
        let course = example.open();
        prop_assert!(course.stages.len() == 1 && !course.problems.is_empty());
    }
}

#[test]
fn the_guide_for_authors_lists_every_key_figure_and_formula() {
    let mut keys = "| key | what it does | values |\n|---|---|---|\n".to_owned();
    for knob in KNOBS {
        keys += &format!(
            "| `{}` | {} | {} |\n",
            knob.path,
            knob.about,
            knob.allowed()
        );
    }
    readme::holds("exercises/README.md", "configuration", &keys);
    let mut figures = "| figure | unit | what it is |\n|---|---|---|\n".to_owned();
    for RunMetric {
        name, unit, about, ..
    } in METRICS
    {
        figures += &format!("| `{name}` | {unit} | {about} |\n");
    }
    readme::holds("exercises/README.md", "figures", &figures);
    let mut formulas = String::new();
    for formula in FORMULAS {
        formulas += &format!("`formula.{}`\n", formula.name);
    }
    readme::holds("exercises/README.md", "formulas", &formulas);
}

#[test]
fn the_guide_for_authors_lists_the_metrics_of_exercises_and_no_others() {
    assert_eq!(names_in_guide("config-metrics"), OWN_METRICS);
    let error = serde_json::from_str::<KernelMetric>("\"?\"").expect_err("no metric");
    let sentence = error.to_string();
    let (_, list) = sentence
        .split_once("expected one of ")
        .expect("serde lists them");
    let kernel_metrics: Vec<&str> = list.split('`').skip(1).step_by(2).collect();
    assert_eq!(names_in_guide("kernel-metrics"), kernel_metrics);
}

/// Returns the names in the first column of a table of the guide for authors.
fn names_in_guide(table: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("exercises/README.md");
    let text = fs::read_to_string(path).expect("the guide");
    let (_, from_table) = text.split_once(&format!("<!-- {table}")).expect("a mark");
    let (rows, _) = from_table.split_once("<!-- end of").expect("a mark");
    rows.lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(name, _)| name.to_owned())
        .collect()
}
