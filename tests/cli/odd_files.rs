//! Pipes, devices, sockets, folders and links where a file should be: nothing waits for them, nothing replaces them.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::*;

/// The things that stand where a file should be; `put` creates them.
const KINDS: [&str; 6] = [
    "pipe",
    "socket",
    "folder",
    "to-pipe",
    "to-device",
    "to-nothing",
];

/// Creates one of `KINDS` at `path`, in place of what is there.
fn put(kind: &str, path: &Path) {
    let _ = fs::remove_file(path);
    let _ = fs::remove_dir_all(path);
    fs::create_dir_all(path.parent().expect("a folder")).expect("made");
    let pipe = |path: &Path| {
        use rustix::fs::{CWD, Mode};
        rustix::fs::mkfifoat(CWD, path, Mode::RUSR | Mode::WUSR).expect("a pipe");
    };
    let link = |to: PathBuf| std::os::unix::fs::symlink(to, path).expect("a link");
    match kind {
        "pipe" => pipe(path),
        "socket" => drop(std::os::unix::net::UnixListener::bind(path).expect("a socket")),
        "folder" => fs::create_dir(path).expect("a folder"),
        "to-pipe" => {
            let other = path.with_file_name("pipe-behind");
            if !other.exists() {
                pipe(&other);
            }
            link(other);
        }
        "to-device" => link("/dev/zero".into()),
        _ => link("nowhere/at-all".into()),
    }
}

/// Runs a command like `Learner::run`, and fails if it takes more than half a minute.
#[track_caller]
fn run(learner: &Learner, args: &[&str]) -> learner::Output {
    let mut child = learner
        .process(args)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("starts");
    let began = Instant::now();
    while child.try_wait().expect("a child").is_none() {
        if began.elapsed() > Duration::from_secs(30) {
            let _ = child.kill();
            panic!("{args:?} waits");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let output = child.wait_with_output().expect("ended");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    learner::Output {
        code: output.status.code(),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

#[test]
fn files_that_are_named_are_not_waited_for() {
    let learner = Learner::new();
    let path = learner.path("it.toml");
    let shown = path.display().to_string();
    for kind in KINDS {
        put(kind, &path);
        #[rustfmt::skip]
        let lines: [&[&str]; 8] = [
            &["run", "--config", &shown], &["compare", &shown, "v1"], &["replay", &shown], &["report", &shown],
            &["export", &shown, "--format", "csv"], &["bench", "--baseline", &shown], &["list", "--course", &shown],
            &["init", &shown],
        ];
        for line in lines {
            let output = run(&learner, line);
            // A folder is what `init` takes.
            if !(line[0] == "init" && kind == "folder") {
                assert_eq!(output.code, Some(2), "{kind} {line:?}: {}", output.err);
                assert!(
                    output.err.contains("it.toml"),
                    "{kind} {line:?}: {}",
                    output.err
                );
            }
            assert!(path.symlink_metadata().is_ok(), "{kind} {line:?}");
        }
        put(kind, &path);
    }
    for device in ["/dev/zero", "/dev/null", "/dev/tty"] {
        let output = run(&learner, &["run", "--config", device]);
        output.fails(2, &[device, "is a device; name a file"]);
    }
}

#[test]
fn the_learner_s_own_files_are_not_waited_for() {
    for kind in KINDS {
        let learner = Learner::new();
        let state = learner.path("perflings/tiny-llama");
        put(kind, &state.join("progress.toml"));
        let output = run(&learner, &["list"]);
        output.succeeds(&["broken-init"]);
        assert!(
            output.err.contains("progress.toml"),
            "{kind}: {}",
            output.err
        );
        run(&learner, &["hint", "1"]).succeeds(&["hint 1/3"]);
        let left = state.join("progress.toml").symlink_metadata();
        assert!(
            !left.expect("still there").is_file(),
            "{kind}: it was replaced"
        );

        let learner = Learner::new();
        let state = learner.path("perflings/tiny-llama");
        put(kind, &state.join("progress.lock"));
        let output = run(&learner, &["hint", "1"]);
        output.succeeds(&["hint 1/3"]);
        assert!(output.err.contains("not saved"), "{kind}: {}", output.err);

        let work = state.join("work");
        put(kind, &work.join("broken-init/config.toml"));
        let output = run(&learner, &["run", "1"]);
        output.fails(2, &["config.toml"]);
        put(kind, &work.join("swiglu/starter.wgsl"));
        put(kind, &work.join("swiglu/backward.wgsl"));
        let output = run(&learner, &["check", "k01", "--device", "vulkan-cpu"]);
        assert_ne!(output.code, Some(0), "{kind}: {}", output.out);
        put(kind, &work.join("batch/answer.toml"));
        run(&learner, &["check", "c01"]).fails(2, &["answer.toml"]);
    }
}

#[test]
fn outputs_replace_nothing_but_files() {
    let learner = Learner::new();
    let engine = learner.engine(&a_run());
    let recording = learner.path("run.jsonl").display().to_string();
    let path = learner.path("out");
    let out = path.display().to_string();
    let first = ["run", "1", "--engine", &engine, "--record", &recording];
    let output = run(&learner, &first);
    assert!(output.err.ends_with("run.jsonl\n"), "{}", output.err);
    let output = run(&learner, &first);
    assert!(
        output.err.contains("in place of an older file"),
        "{}",
        output.err
    );
    let bench = ["bench", "--versions", "v1", "--steps", "3", "--rounds", "1"];
    for kind in KINDS {
        put(kind, &path);
        let was = path.symlink_metadata().expect("there").file_type();
        #[rustfmt::skip]
        let lines: [Vec<&str>; 4] = [
            vec!["run", "1", "--engine", &engine, "--record", &out],
            vec!["compare", "v1", "v3", "--engine", &engine, "--record", &out],
            vec!["export", &recording, "--format", "csv", "--out", &out],
            [&bench[..], &["--engine", &engine, "--output", &out]].concat(),
        ];
        for line in lines {
            let output = run(&learner, &line);
            assert!(
                matches!(output.code, Some(1 | 2)),
                "{kind} {line:?}: {}",
                output.err
            );
            assert!(
                output.err.contains("name a file"),
                "{kind} {line:?}: {}",
                output.err
            );
            let now = path.symlink_metadata().expect("there").file_type();
            assert_eq!(now, was, "{kind} {line:?}");
        }
        // What is written beside the recording until it is complete.
        let _ = fs::remove_file(&path);
        let _ = fs::remove_dir_all(&path);
        let part = learner.path("out.part");
        put(kind, &part);
        let output = run(
            &learner,
            &["run", "1", "--engine", &engine, "--record", &out],
        );
        output.fails(2, &["out.part", "name a file"]);
        let _ = fs::remove_file(&part);
        let _ = fs::remove_dir_all(&part);
    }
    for device in ["/dev/null", "/dev/zero"] {
        let output = run(
            &learner,
            &["run", "1", "--engine", &engine, "--record", device],
        );
        output.fails(2, &[device, "is a device; name a file"]);
        let output = run(
            &learner,
            &["export", &recording, "--format", "csv", "--out", device],
        );
        output.fails(1, &[device, "is a device; name a file"]);
        let kind = fs::metadata(device).expect("there").file_type();
        assert!(kind.is_char_device());
    }
}

#[test]
fn an_export_says_whether_it_replaced_a_file() {
    let learner = Learner::new();
    let mut events = vec![hello(1)];
    events.extend(a_run());
    let recording = learner.write("run.jsonl", stream(&events));
    let export = [
        "export",
        &recording,
        "--format",
        "csv",
        "--out",
        "steps.csv",
    ];
    assert!(run(&learner, &export).err.contains("wrote steps.csv"));
    let old = fs::read(learner.path("steps.csv")).expect("written");
    std::os::unix::fs::symlink("steps.csv", learner.path("link")).expect("a link");
    assert!(run(&learner, &export).err.contains("replaced steps.csv"));
    let export = ["export", &recording, "--format", "csv", "--out", "link"];
    assert!(run(&learner, &export).err.contains("replaced link"));
    assert!(learner.path("link").is_symlink());
    assert_eq!(fs::read(learner.path("steps.csv")).expect("written"), old);
}
