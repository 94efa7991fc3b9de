//! The course as data: everything shipped loads and refers to things that exist, and every fault of a course file is
//! one message with file and line. Nothing here trains.
//!
//! A folder of `tests/courses/invalid` or `unsound` lies over `example`; its `expected.txt` holds the messages.

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
    Course, CourseFiles, SectionKind, StageLevel, TextBlock, TextSpan, lesson,
};
use perflings::judge::Outcome;
use perflings::judge::course::behaviour;
use perflings::judge::stage::{StageFacts, evaluate, line};
use perflings::sanitize::without_escapes;
use proptest::prelude::*;
use protocol::config::{Data, KNOBS, Knob, RunConfig};
use protocol::{Finished, KernelMetric, Pair, PhaseTimes, Verdict};

const KEYS: &str =
    "v PgDn PgUp 1 2 3 4 5 6 n p a b c d f t space r T h s l tab e y m C o x w g ? q";
const COMMANDS: &str =
    "run compare check course list hint reset init doctor replay export bench open";

/// All problems of a course, as lines.
fn findings(source: &CourseFiles) -> Vec<String> {
    let words = |list: &str| {
        list.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let (keys, commands) = (words(KEYS), words(COMMANDS));
    let lints: Vec<String> = protocol::lints::names().map(str::to_owned).collect();
    let command = |line: &str| {
        let name = line.split_whitespace().nth(1).unwrap_or_default();
        if commands.iter().any(|c| c == name) {
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

fn courses(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/courses")
        .join(name)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a fixture").flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("copied");
        }
    }
}

/// A copy of the example course.
fn example() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a folder");
    let course = dir.path().join("course");
    copy(&courses("example"), &course);
    (dir, course)
}

fn open(course: &Path) -> (CourseFiles, Course) {
    let source = CourseFiles::folder(course).expect("a course folder");
    let loaded = Course::open(&source);
    (source, loaded)
}

/// Messages of a folder, its own path taken out.
fn messages(course: &Path) -> Vec<String> {
    let prefix = format!("{}/", course.display());
    findings(&CourseFiles::folder(course).expect("a course folder"))
        .into_iter()
        .map(|line| line.replace(&prefix, ""))
        .collect()
}

#[test]
fn the_shipped_course_is_whole() {
    assert_eq!(findings(&CourseFiles::Embedded), Vec::<String>::new());
    let course = Course::builtin();
    assert_eq!(
        course
            .stages
            .iter()
            .map(|stage| stage.number)
            .collect::<Vec<_>>(),
        [1, 2, 3, 4, 5, 6, 7, 8, 9]
    );
    assert!(course.glossary.is_some());
}

/// A stage's file says how hard it is; the pages that speak of the advanced ones follow it.
#[test]
fn one_place_says_which_stages_are_advanced() {
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
    assert_eq!(
        advanced.len() as u32,
        last.number - first.number + 1,
        "{sentence}"
    );
}

/// Each lesson leads on to the next stage, and to no earlier one as the next.
#[test]
fn every_lesson_leads_to_the_next_stage() {
    let course = Course::builtin();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("lessons");
    for pair in course.stages.windows(2) {
        let lesson = fs::read_to_string(root.join(&pair[0].lesson_file)).expect("a lesson");
        let (_, ends) = lesson.rsplit_once("\n\n").expect("paragraphs");
        let next = format!("]({})", pair[1].lesson_file);
        assert!(ends.contains(&next), "{}: {ends}", pair[0].lesson_file);
    }
}

#[test]
fn every_stage_has_all_its_parts() {
    for stage in Course::builtin().stages {
        let kinds: Vec<SectionKind> = stage
            .lesson
            .sections
            .iter()
            .map(|section| section.kind)
            .collect();
        for kind in [
            SectionKind::Symptom,
            SectionKind::Evidence,
            SectionKind::Why,
            SectionKind::Debrief,
        ] {
            assert!(kinds.contains(&kind), "{}: no {kind:?}", stage.id);
        }
        assert_eq!(stage.hints.len(), 3);
        let offered = stage.offers.len();
        assert!(
            offered >= 6 && offered > stage.varies.len(),
            "{} offers {offered} knobs: too few to decide between",
            stage.id
        );
        assert!(
            stage.quiz.len() >= 3 && !stage.claims.is_empty() && stage.estimate.is_some(),
            "{}",
            stage.id
        );
        let answers: Vec<usize> = stage.quiz.iter().map(|question| question.answer).collect();
        assert!(
            answers.iter().any(|a| *a != answers[0]),
            "{}: every answer has the same letter",
            stage.id
        );
        assert!(stage.broken.problems().is_empty() && stage.fixed.problems().is_empty());
    }
}

/// The learner decides between the knobs of the panel; the file that they edit has the same ones. `BLESS=1` writes the files.
#[test]
fn every_starter_says_what_each_offered_knob_takes() {
    for stage in Course::builtin().stages {
        let offered = |knob: &&Knob| stage.offers.iter().any(|path| path == knob.path);
        let knobs: Vec<&Knob> = KNOBS.iter().filter(offered).collect();
        let starter = &stage.files[0].starter;
        let whole = rewritten(starter, &stage.path, &stage.broken, &knobs).expect("a starter");
        if std::env::var_os("BLESS").is_some() {
            let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(&stage.path);
            fs::write(file.join("config.toml"), &whole).expect("written");
            continue;
        }
        assert_eq!(*starter, whole, "{}", stage.path);
    }
}

#[test]
fn a_stage_keeps_its_own_shape_at_another_preset() {
    use protocol::config::Preset;
    let course = Course::builtin();
    let strides = course
        .stage_by_id("strides")
        .expect("stage 2")
        .broken_at(Preset::Small);
    assert_eq!(
        (
            strides.model.hidden,
            strides.model.layers,
            strides.train.context
        ),
        (512, 2, 256)
    );
    let init = course.stage(1).expect("stage 1").broken_at(Preset::Small);
    assert_eq!(
        (init.model.hidden, init.model.layers, init.train.batch),
        (512, 8, 8)
    );
}

#[test]
fn each_fault_of_a_course_is_one_message() {
    assert_eq!(messages(&courses("example")), Vec::<String>::new());
    let mut wrong = Vec::new();
    for group in ["invalid", "unsound"] {
        for fixture in fs::read_dir(courses(group)).expect("fixtures").flatten() {
            let (_dir, course) = example();
            copy(&fixture.path(), &course);
            let found = messages(&course).join("\n") + "\n";
            let file = fixture.path().join("expected.txt");
            if std::env::var_os("BLESS").is_some() {
                fs::write(&file, &found).expect("written");
            }
            let expected = fs::read_to_string(&file).unwrap_or_default();
            if found != expected {
                wrong.push(format!(
                    "{}:\n{found}expected:\n{expected}",
                    fixture.path().display()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_first_fault_of_a_file_is_told_with_its_place() {
    let (_dir, course) = example();
    copy(&courses("invalid/wrong-change"), &course);
    fs::remove_file(course.join("exercises/k01-x/wrong.toml")).expect("removed");
    copy(&courses("invalid/taken-exercise-id"), &course);
    let [stage, kernel, config] = [
        "01-nothing-to-learn/stage",
        "k01-x/exercise",
        "c01-lr/exercise",
    ];
    let levels = "\"beginner\", \"intermediate\", \"advanced\"";
    let levels =
        format!("3:9: `level` cannot be \"easy\"; did you mean \"beginner\"? It takes {levels}");
    for (file, from, to, told) in [
        (config, "too-fast", "lr", ""),
        (
            stage,
            "The loss that will not fall",
            "",
            "2:9: `title` is empty; write a text",
        ),
        (stage, "beginner", "easy", &levels),
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
        let path = course.join(format!("exercises/{file}.toml"));
        let before = fs::read_to_string(&path).expect("read");
        fs::write(&path, before.replacen(from, to, 1)).expect("written");
        let found = messages(&course);
        let told = match told {
            "" => None,
            told => Some(format!("exercises/{file}.toml:{told}")),
        };
        assert_eq!(found.first(), told.as_ref(), "{from} -> {to}");
        if told.is_some() {
            fs::write(&path, before).expect("written");
        }
    }
}

#[test]
fn a_bad_stage_leaves_the_others() {
    let (_dir, course) = example();
    fs::remove_file(course.join("exercises/01-nothing-to-learn/config.toml")).expect("removed");
    let (_, loaded) = open(&course);
    assert_eq!(
        loaded
            .stages
            .iter()
            .map(|stage| stage.id.as_str())
            .collect::<Vec<_>>(),
        ["too-fast"]
    );
    let shown = loaded
        .problems
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>();
    assert_eq!(shown.len(), 1);
    assert!(
        shown[0].ends_with("exercises/01-nothing-to-learn/config.toml: is missing"),
        "{shown:?}"
    );

    let (_dir, course) = example();
    fs::remove_file(course.join("lessons/02-too-fast.md")).expect("removed");
    let (_, loaded) = open(&course);
    assert_eq!(loaded.stages.len(), 2);
    assert!(
        loaded.problems[0]
            .to_string()
            .ends_with("lessons/02-too-fast.md: is missing")
    );
}

#[test]
fn unreadable_files_are_named() {
    let (_dir, course) = example();
    let stage = course.join("exercises/01-nothing-to-learn/stage.toml");
    fs::write(&stage, b"id = \"a\"\ntitle = \"\xff\"\n").expect("written");
    fs::write(
        course.join("lessons/02-too-fast.md"),
        "x".repeat(300 * 1024),
    )
    .expect("written");
    let shown: Vec<String> = open(&course)
        .1
        .problems
        .iter()
        .map(ToString::to_string)
        .collect();
    assert!(
        shown[0].ends_with("stage.toml:2: is not UTF-8 text; save it as UTF-8"),
        "{shown:?}"
    );
    assert!(
        shown[1].ends_with("02-too-fast.md: has 307200 bytes; the limit is 262144"),
        "{shown:?}"
    );
}

#[test]
fn files_may_begin_with_a_byte_order_mark() {
    fn mark(folder: &Path) {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            match entry.path() {
                path if path.is_dir() => mark(&path),
                path => {
                    let text = fs::read_to_string(&path).expect("text");
                    fs::write(path, format!("\u{feff}{text}")).expect("written");
                }
            }
        }
    }
    let (_dir, course) = example();
    mark(&course);
    assert_eq!(messages(&course), Vec::<String>::new());
}

#[cfg(unix)]
#[test]
fn nothing_leads_out_of_the_folder() {
    let (dir, course) = example();
    let secret = dir.path().join("secret.md");
    fs::write(&secret, "# Secret\n").expect("written");
    let lesson = course.join("lessons/01-nothing-to-learn.md");
    fs::remove_file(&lesson).expect("removed");
    std::os::unix::fs::symlink(&secret, &lesson).expect("linked");
    fs::create_dir(dir.path().join("elsewhere")).expect("made");
    fs::copy(
        course.join("exercises/02-too-fast/stage.toml"),
        dir.path().join("elsewhere/stage.toml"),
    )
    .expect("copied");
    std::os::unix::fs::symlink(
        dir.path().join("elsewhere"),
        course.join("exercises/03-linked"),
    )
    .expect("linked");
    let (_, loaded) = open(&course);
    let shown: Vec<String> = loaded.problems.iter().map(ToString::to_string).collect();
    let what = "is a link that leads out of the course folder; copy the file into it";
    assert!(
        shown
            .iter()
            .any(|line| line.ends_with(&format!("01-nothing-to-learn.md: {what}"))),
        "{shown:?}"
    );
    assert!(
        shown
            .iter()
            .any(|line| line.ends_with(&format!("03-linked/stage.toml: {what}"))),
        "{shown:?}"
    );
    assert_eq!(loaded.stages.len(), 2);
    assert!(loaded.stages[0].lesson.sections.is_empty());
}

#[cfg(unix)]
#[test]
fn a_pipe_is_not_waited_for() {
    let (_dir, course) = example();
    let path = course.join("lessons/01-nothing-to-learn.md");
    fs::remove_file(&path).expect("removed");
    let made = std::process::Command::new("mkfifo")
        .arg(&path)
        .status()
        .is_ok_and(|status| status.success());
    if made {
        assert!(
            open(&course).1.problems[0]
                .to_string()
                .ends_with("is a pipe; name a file")
        );
    }
}

#[test]
fn a_folder_that_is_no_course_is_an_error() {
    let dir = tempfile::tempdir().expect("a folder");
    let error = CourseFiles::folder(dir.path())
        .expect_err("no course")
        .to_string();
    assert!(
        error.ends_with(
            "has no folder exercises/; name the folder that holds exercises/ and lessons/"
        ),
        "{error}"
    );
    assert!(CourseFiles::folder(&dir.path().join("missing")).is_err());
}

/// A fake trainer that knows the effect of the example's two faults.
fn fake(config: &RunConfig, steps: u64) -> Result<Finished, String> {
    let learns = config.train.data == Data::Markov && config.train.learning_rate < 0.1;
    let last = if learns { 6.2 } else { 6.94 };
    Ok(Finished {
        steps,
        loss_first: 6.93.into(),
        loss_last: last.into(),
        ln_vocab: config.ln_vocab(),
        ..Finished::default()
    })
}

#[test]
fn course_check_tells_starters_from_solutions() {
    let (_dir, course) = example();
    let (_, loaded) = open(&course);
    let tried = behaviour(&loaded, &mut fake, None);
    assert_eq!(tried.len(), 4);
    assert!(tried.iter().all(|t| t.passed == Some(true)), "{tried:#?}");
    assert!(tried[0].detail.contains("`the model learns`"), "{tried:#?}");

    let stage = course.join("exercises/01-nothing-to-learn");
    fs::write(
        stage.join("config.toml"),
        "[train]\ndata = \"markov\"\nseed = 43\n",
    )
    .expect("written");
    fs::write(
        stage.join("solution/config.toml"),
        "[train]\ndata = \"noise\"\nseed = 43\n",
    )
    .expect("written");
    let tried = behaviour(&open(&course).1, &mut fake, None);
    assert_eq!(
        tried.iter().map(|t| t.passed).collect::<Vec<_>>(),
        [false, false, true, true].map(Some)
    );
    assert_eq!(tried[0].what, "1 nothing-to-learn, starter");
    assert!(
        tried[0].detail.starts_with("must fail: `the model learns`"),
        "{tried:#?}"
    );
    assert!(
        tried[1].detail.starts_with("must pass: `the model learns`"),
        "{tried:#?}"
    );
}

#[test]
fn checks_answer_line_by_line() {
    let course = Course::builtin();
    let stage = course.stage_by_id("broken-init").expect("stage 1");
    let mut run = Finished {
        steps: 60,
        loss_first: 6.93.into(),
        loss_last: 6.1.into(),
        ..Finished::default()
    };
    run.ln_vocab = stage.fixed.ln_vocab();
    (run.grad.tensors, run.grad.with_grad, run.grad.params_pct) = (38, 38, 100.0);
    let measured = StageFacts {
        config: Some(&stage.fixed),
        finished: Some(&run),
        pair: None,
        quiz_right: None,
    };
    let report = evaluate(stage, measured);
    assert!(report.passed(), "{report:#?}");
    assert_eq!(
        report.lines[1].asked,
        "loss_first within 3 % of 6.93 (formula.first_loss)"
    );
    assert_eq!(
        report.lines.last().expect("the quiz").outcome,
        Outcome::NotMeasured
    );

    let nothing = evaluate(
        stage,
        StageFacts {
            config: Some(&stage.fixed),
            ..StageFacts::default()
        },
    );
    assert_eq!(nothing.outcome(), Outcome::NotMeasured);

    let mut cheat = stage.fixed.clone();
    cheat.train.seed = 7;
    let report = evaluate(
        stage,
        StageFacts {
            config: Some(&cheat),
            finished: Some(&run),
            ..StageFacts::default()
        },
    );
    assert_eq!(report.outcome(), Outcome::Failed);
    assert_eq!(report.lines[0].measured, "train.seed differs");
}

#[test]
fn an_unclear_ratio_passes_by_its_whole_interval_alone() {
    let course = Course::builtin();
    let stage = course.stage_by_id("naive-swiglu").expect("stage 4");
    let ratio = |pair: &Pair| {
        let report = evaluate(
            stage,
            StageFacts {
                pair: Some(pair),
                ..StageFacts::default()
            },
        );
        report
            .lines
            .iter()
            .find(|line| line.asked.starts_with("ratio"))
            .expect("a ratio")
            .outcome
    };
    let mut pair = Pair {
        n: 30,
        ratio: 3.0,
        low: Some(0.97),
        high: Some(3.5),
        verdict: Verdict::Unclear,
        ..Pair::default()
    };
    assert_eq!(ratio(&pair), Outcome::NotMeasured);
    pair.low = Some(2.5);
    assert_eq!(ratio(&pair), Outcome::Passed);
    pair.verdict = Verdict::Faster;
    assert_eq!(ratio(&pair), Outcome::Passed);
    (pair.low, pair.verdict) = (Some(0.98), Verdict::Same);
    assert_eq!(ratio(&pair), Outcome::Failed);
    (pair.low, pair.verdict) = (None, Verdict::Unclear);
    assert_eq!(ratio(&pair), Outcome::NotMeasured);
}

#[test]
fn a_ratio_that_must_be_small_is_judged_by_its_high_end() {
    let course = Course::builtin();
    let stage = course.stage_by_id("naive-swiglu").expect("stage 4");
    let mut checks = stage.checks.iter();
    let ratio = checks.find(|check| check.metric == Metric::Ratio);
    let check = Check {
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
        assert_eq!(line(stage, &check, facts).outcome, outcome);
    }
}

#[test]
fn a_share_is_off_by_percentage_points_and_a_figure_by_its_unit() {
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
    let lines = evaluate(stage, measured).lines.into_iter();
    let failed: Vec<_> = lines.filter(|it| it.outcome == Outcome::Failed).collect();
    let of_share = failed.iter().find(|it| it.asked.contains("_pct"));
    let said = &of_share.expect("most of the step is unaccounted").measured;
    assert!(
        said.contains("99.9 %, 94.9 percentage points too high"),
        "{said}"
    );
    let others = failed.iter().filter(|it| !it.asked.contains("_pct"));
    assert!(others.clone().all(|it| !it.measured.contains("points")));
}

/// Each figure of the peak says in its sentence which of the two it is.
#[test]
fn a_beat_says_whether_memory_is_measured_or_by_formula() {
    for stage in Course::builtin().stages {
        for cue in &stage.cues {
            let (id, said) = (&stage.id, &cue.say);
            for (figure, word) in [("memory.peak", "measured"), ("formula.peak", "by formula")] {
                let told = !said.contains(figure) || said.contains(word);
                assert!(
                    told,
                    "{id}: `{said}` shows {figure} and does not say \"{word}\""
                );
            }
        }
    }
}

#[test]
fn time_in_no_phase_is_unaccounted_and_residual_is_what_blocks_add_to() {
    let files = ["lessons", "exercises"].map(Path::new).into_iter();
    let files = files.flat_map(texts);
    for (path, text) in files {
        let words = text.replace("phases.residual", "");
        let mut after = words.split("residual").skip(1);
        let other = after.find(|it| {
            let next = it.trim_start_matches(['*', ' ', '\n']);
            !["stream", "sums", ", adamw", "\"\n"]
                .iter()
                .any(|known| next.starts_with(known))
        });
        assert_eq!(
            other.map(|it| &it[..it.len().min(40)]),
            None,
            "{}",
            path.display()
        );
    }
}

/// Markdown and TOML in a folder and those below it.
fn texts(folder: &Path) -> Vec<(PathBuf, String)> {
    let entries = std::fs::read_dir(folder).expect("a folder of the course");
    let paths = entries.map(|it| it.expect("an entry").path());
    let read = |path: PathBuf| match path.extension().and_then(|it| it.to_str()) {
        _ if path.is_dir() => texts(&path),
        Some("md" | "toml") => {
            let text = std::fs::read_to_string(&path).expect("text");
            vec![(path, text)]
        }
        _ => Vec::new(),
    };
    paths.flat_map(read).collect()
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
        let (_dir, course) = example();
        fs::write(course.join("exercises/01-nothing-to-learn/stage.toml"), source).expect("written");
        let (_, loaded) = open(&course);
        prop_assert!(loaded.stages.len() == 1 && !loaded.problems.is_empty());
    }
}

/// The guide for authors lists every key and every figure of the tables, and names what else a check may ask for.
#[test]
fn the_guide_lists_every_key_and_metric() {
    let mut keys = "| key | what it does | values |\n|---|---|---|\n".to_owned();
    for knob in KNOBS {
        let (path, about, values) = (knob.path, knob.about, knob.allowed());
        keys += &format!("| `{path}` | {about} | {values} |\n");
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
    let formulas = FORMULAS.iter().map(|it| format!("`formula.{}`", it.name));
    let formulas = formulas.collect::<Vec<_>>().join("\n");
    readme::holds("exercises/README.md", "formulas", &(formulas + "\n"));

    // The reader knows the names of both tables and no others.
    assert_eq!(names_in_guide("config-metrics"), OWN_METRICS);
    let error = serde_json::from_str::<KernelMetric>("\"?\"").expect_err("no metric");
    let error = error.to_string();
    let (_, names) = error
        .split_once("expected one of ")
        .expect("serde lists them");
    let names: Vec<&str> = names.split('`').skip(1).step_by(2).collect();
    assert_eq!(names_in_guide("kernel-metrics"), names);
}

/// The names in the first column of a table of the guide for authors.
fn names_in_guide(table: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("exercises/README.md");
    let text = fs::read_to_string(path).expect("the guide");
    let (_, rest) = text.split_once(&format!("<!-- {table}")).expect("a mark");
    let (rows, _) = rest.split_once("<!-- end of").expect("a mark");
    let rows = rows.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| Some(row.split_once('`')?.0.to_owned()))
        .collect()
}
