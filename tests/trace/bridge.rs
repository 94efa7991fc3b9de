//! The way back into PyTorch: a page and a script for each stage. Where torch is installed, each script shows symptom and remedy.

use std::path::{Path, PathBuf};
use std::process::Command;

use gputrace::lints;
use perflings::course::trace_lints::page_of;
use perflings::course::{Course, TextBlock};

/// Runs python3 in a folder of its own; what it says on stderr where it fails, `None` where there is none.
fn python(arguments: &[&str]) -> Option<Result<(), String>> {
    let place = tempfile::tempdir().unwrap();
    let mut python = Command::new("python3");
    let said = python
        .args(arguments)
        .current_dir(place.path())
        .output()
        .ok()?;
    let failed = || String::from_utf8_lossy(&said.stderr).into_owned();
    Some(said.status.success().then_some(()).ok_or_else(failed))
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The course, and the scripts of its stages.
fn course() -> (Course, Vec<PathBuf>) {
    let course = Course::builtin();
    let script = |stage: &perflings::course::Stage| root().join(&stage.path).join("pytorch.py");
    let scripts = course.stages.iter().map(script).collect();
    (course, scripts)
}

#[test]
fn each_stage_leads_to_its_page_and_each_page_to_its_script() {
    let (course, scripts) = course();
    let page = |file: &str| course.readings.iter().find(|page| page.file == file);
    for (stage, script) in course.stages.iter().zip(&scripts) {
        let file = format!("pytorch-{}.md", stage.number);
        let lesson = root().join("lessons").join(&stage.lesson_file);
        let lesson = std::fs::read_to_string(lesson).unwrap();
        assert!(
            lesson.contains(&format!("]({file})")),
            "{}",
            stage.lesson_file
        );
        assert!(page(&file).is_some(), "{file}");
        let Some(TextBlock::Code { text: lines }) = course.in_pytorch(stage) else {
            panic!("{file} begins with no code");
        };
        let widest = lines.lines().map(str::len).max();
        assert!(
            widest.is_some_and(|columns| columns < 44),
            "{file}: the lesson's panel cuts {lines}"
        );
        let text = std::fs::read_to_string(script).unwrap();
        let begins = format!("\"\"\"Stage {} in PyTorch", stage.number);
        assert!(text.starts_with(&begins), "{script:?}");
    }
    let explained: Vec<&str> = lints::names().filter_map(page_of).collect();
    assert_eq!(explained.len(), 7, "a lint has another name");
    for file in explained {
        assert!(page(file).is_some(), "{file}");
    }
}

#[test]
fn every_script_is_python() {
    let parse = "import ast, sys; [ast.parse(open(it).read()) for it in sys.argv[1:]]";
    let (_, scripts) = course();
    let mut arguments = vec!["-c", parse];
    arguments.extend(scripts.iter().map(|script| script.to_str().unwrap()));
    match python(&arguments) {
        Some(said) => said.unwrap(),
        None => println!("skipped: no python3"),
    }
}

#[test]
#[ignore = "needs torch, and times it"]
fn every_script_shows_symptom_and_remedy() {
    for script in course().1 {
        python(&[script.to_str().unwrap()]).unwrap().unwrap();
    }
}

#[test]
fn the_trace_that_is_shipped_is_small_and_keeps_its_figures() {
    let path = root().join("assets/eager.json.gz");
    assert!(std::fs::metadata(&path).unwrap().len() < 150_000);
    let figures = gputrace::summary::summary(&gputrace::open(&path, &mut |_| {}).unwrap());
    assert_eq!(
        (figures.kernels, figures.distinct_names, figures.kernel_ns),
        (3620, 48, 18_445_605)
    );
    let steps: Vec<u64> = figures
        .steps
        .unwrap()
        .iter()
        .map(|step| step.dur_ns / 1000)
        .collect();
    assert_eq!(steps, [55_487, 48_002]);
    assert!(figures.lints.iter().any(|lint| lint.name == "launch-bound"));
}
