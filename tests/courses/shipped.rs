//! The shipped course: it is complete, its texts use one word for one thing, and the guide for authors lists what the program reads.

use std::fs;
use std::path::{Path, PathBuf};

use perflings::course::config_file::rewritten;
use perflings::course::exercise::config::OWN_METRICS;
use perflings::course::formula::FORMULAS;
use perflings::course::metric::{METRICS, RunMetric};
use perflings::course::{Course, CourseFiles, SectionKind, StageLevel};
use protocol::KernelMetric;
use protocol::config::{KNOBS, Knob, Preset};

use super::{problems, writes_expected_files};
use crate::readme;

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
        let starter = &stage.file.starter;
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
