//! The course as data: each fault of a course file gives one message with file and line. Nothing here trains.
//!
//! The files of a folder in `tests/courses/invalid` or `unsound` are copied over `example`; its `expected.txt` holds the messages.

#[path = "courses/checks.rs"]
mod checks;
#[path = "courses/exercises.rs"]
mod exercises;
#[path = "courses/kernels.rs"]
mod kernels;
#[path = "courses/markdown.rs"]
mod markdown;
#[path = "courses/shipped.rs"]
mod shipped;
#[path = "courses/sums.rs"]
mod sums;

use std::fs;
use std::path::{Path, PathBuf};

use perflings::course::validate::{Vocabulary, structure};
use perflings::course::{Course, CourseFiles, lesson};
use perflings::sanitize::without_escapes;
use proptest::prelude::*;

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
    fn any_text_in_a_stage_file_gives_problems_and_keeps_the_other_stage(source in "(?s)[a-z\\[\\]=\" \\n0-9.{}#-]{0,300}") {
        let example = ExampleCourse::new();
        example.write("exercises/01-nothing-to-learn/stage.toml", source);
        let course = example.open();
        prop_assert!(course.stages.len() == 1 && !course.problems.is_empty());
    }
}
