//! From the course back into PyTorch: each stage has a page and a script. If torch is installed, each script shows the symptom and the
//! remedy.

use std::path::{Path, PathBuf};
use std::process::Command;

use gputrace::lints;
use perflings::course::trace_lints::page_of;
use perflings::course::{Course, Stage, TextBlock};

/// Runs python3 in a folder of its own. Returns its errors if it fails, and `None` if there is no python3.
fn python(arguments: &[&str]) -> Option<Result<(), String>> {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new("python3")
        .args(arguments)
        .current_dir(folder.path())
        .output()
        .ok()?;
    Some(if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    })
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the path of a stage's script.
fn script(stage: &Stage) -> PathBuf {
    root().join(&stage.path).join("pytorch.py")
}

#[test]
fn each_lesson_links_to_its_page_and_each_page_begins_with_code() {
    let course = Course::builtin();
    let page = |file: &str| course.readings.iter().find(|page| page.file == file);
    for stage in &course.stages {
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
        let script = script(stage);
        let text = std::fs::read_to_string(&script).unwrap();
        let start = format!("\"\"\"Stage {} in PyTorch", stage.number);
        assert!(text.starts_with(&start), "{script:?}");
    }
    // Seven of the nine lints have a page.
    let explained: Vec<&str> = lints::names().filter_map(page_of).collect();
    assert_eq!(explained.len(), 7);
    for file in explained {
        assert!(page(file).is_some(), "{file}");
    }
}

#[test]
fn every_script_is_valid_python() {
    let parse = "import ast, sys; [ast.parse(open(path).read()) for path in sys.argv[1:]]";
    let scripts: Vec<PathBuf> = Course::builtin().stages.iter().map(script).collect();
    let mut arguments = vec!["-c", parse];
    arguments.extend(scripts.iter().map(|script| script.to_str().unwrap()));
    match python(&arguments) {
        Some(result) => result.unwrap(),
        None => println!("skipped: no python3"),
    }
}

#[test]
#[ignore = "needs torch, and times it"]
fn every_script_shows_symptom_and_remedy() {
    for stage in &Course::builtin().stages {
        python(&[script(stage).to_str().unwrap()]).unwrap().unwrap();
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
