//! The scripts that lead back to PyTorch: they are Python, and where torch is installed each shows its symptom and its remedy.

use std::path::Path;
use std::process::Command;

#[test]
fn every_script_shows_symptom_and_remedy() {
    let python = |arguments: &[&str]| Command::new("python3").args(arguments).output();
    if python(&["--version"]).is_err() {
        println!("skipped: no python3");
        return;
    }
    let torch = python(&["-c", "import torch"]).unwrap().status.success();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/bridge");
    let place = tempfile::tempdir().unwrap();
    let mut scripts = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|it| it != "py") {
            continue;
        }
        scripts += 1;
        let name = path.to_str().unwrap();
        let parse = "import ast, sys; ast.parse(open(sys.argv[1]).read())";
        let mut run = Command::new("python3");
        match torch {
            true => run.arg(name),
            false => run.args(["-c", parse, name]),
        };
        let said = run.current_dir(place.path()).output().unwrap();
        assert!(
            said.status.success(),
            "{name}: {}",
            String::from_utf8_lossy(&said.stderr)
        );
    }
    assert_eq!(scripts, 9, "one for each stage");
}

#[test]
fn the_trace_that_is_shipped_is_small_and_keeps_its_figures() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/bridge/eager.json.gz");
    assert!(std::fs::metadata(&path).unwrap().len() < 150_000);
    let it = perflings::trace::summary::summary(&super::open(&path, &mut |_| {}).unwrap());
    assert_eq!(
        (it.kernels, it.distinct_names, it.kernel_ns),
        (3620, 48, 18_445_605)
    );
    let steps: Vec<u64> = it
        .steps
        .unwrap()
        .iter()
        .map(|step| step.dur_ns / 1000)
        .collect();
    assert_eq!(steps, [55_487, 48_002]);
    assert!(it.lints.iter().any(|lint| lint.name == "launch-bound"));
}
