//! A course reads nothing outside its folder, and what is broken in it is shown as broken.

use std::fs;
use std::os::unix::fs::symlink;

use super::*;

const SECRET: &str = "root-colon-x";

/// Returns a learner with a copy of the course in the folder `copy`, and a file `secret` outside it.
fn learner() -> Learner {
    let learner = Learner::new();
    learner.run(&["init", "copy"]).succeeds(&[]);
    learner.write("secret", format!("{SECRET}\n"));
    learner
}

/// Replaces a part of a file in the copy of the course.
fn edit(learner: &Learner, file: &str, from: &str, to: &str) {
    let path = learner.path(&format!("copy/exercises/{file}"));
    let text = fs::read_to_string(&path).expect("in the copy");
    assert!(text.contains(from), "{file} has no {from}");
    fs::write(path, text.replacen(from, to, 1)).expect("written");
}

#[test]
fn no_link_and_no_name_leads_out_of_a_course() {
    let linked = [
        "k01-swiglu/starter.wgsl",
        "k01-swiglu/backward.wgsl",
        "k01-swiglu/solution/kernel.wgsl",
        "k01-swiglu/exercise.toml",
        "k01-swiglu/wrong.toml",
        "c01-batch/answer.toml",
        "d01-still/run.jsonl",
        "01-broken-init/config.toml",
        "01-broken-init/solution/config.toml",
        "01-broken-init/stage.toml",
        "../lessons/01-broken-init.md",
    ];
    for file in linked {
        let learner = learner();
        let path = learner.path(&format!("copy/exercises/{file}"));
        fs::remove_file(&path).expect("in the copy");
        symlink(learner.path("secret"), &path).expect("a link");
        let name = match file.split('-').next().expect("a name") {
            "01" | "../lessons/01" => "1",
            name => name,
        };
        let shown = file.trim_start_matches("../");
        let list = learner.run(&["list", "--course", "copy"]);
        let says = format!("{shown}: is a link that leads out of the course folder");
        assert!(list.err.contains(&says), "{file}: {}", list.err);
        let engine = learner.engine(&a_run());
        for line in [
            &["check", name, "--engine", &engine][..],
            &["check", name],
            &["hint", name],
            &["reset", name],
            &["replay", name],
            &["run", name, "--engine", &engine],
        ] {
            let output = learner.run(&[line, &["--course", "copy"]].concat());
            let all = output.out + &output.err;
            assert!(!all.contains(SECRET), "{file} {line:?}: {all}");
        }
        let secret = fs::read_to_string(learner.path("secret")).expect("still there");
        assert_eq!(secret, format!("{SECRET}\n"));
    }
}

#[test]
fn no_linked_folder_leads_out_of_a_course() {
    for folder in ["k01-swiglu", "k01-swiglu/solution", "01-broken-init"] {
        let learner = learner();
        let path = learner.path(&format!("copy/exercises/{folder}"));
        let moved = learner.path("moved");
        fs::rename(&path, &moved).expect("moved out");
        fs::write(moved.join(format!("{SECRET}.wgsl")), SECRET).expect("written");
        symlink(&moved, &path).expect("a link");
        let name = if folder.starts_with('k') { "k01" } else { "1" };
        for line in [
            &["list"][..],
            &["check", name],
            &["hint", name],
            &["reset", name],
        ] {
            let output = learner.run(&[line, &["--course", "copy"]].concat());
            let all = output.out + &output.err;
            assert!(!all.contains(SECRET), "{folder} {line:?}: {all}");
        }
        assert!(moved.join(format!("{SECRET}.wgsl")).is_file());
    }
}

#[test]
fn keys_name_no_file_outside() {
    for name in [
        "../../../secret",
        "/etc/passwd",
        "..",
        "a/../../secret",
        "solution/../starter.wgsl",
    ] {
        let learner = learner();
        for (file, key) in [
            ("k01-swiglu/exercise.toml", "starter = \"starter.wgsl\""),
            ("d01-still/exercise.toml", "recording = \"run.jsonl\""),
        ] {
            let (word, _) = key.split_once(' ').expect("a key");
            let path = learner.path(&format!("copy/exercises/{file}"));
            let text = fs::read_to_string(&path).expect("in the copy");
            let assignment = format!("{word} = \"{name}\"");
            let changed = if text.contains(key) {
                text.replacen(key, &assignment, 1)
            } else {
                // The file does not name the key, because it has its default value.
                text.replacen("[[kernel]]", &format!("[[kernel]]\n{assignment}"), 1)
            };
            fs::write(path, changed).expect("written");
        }
        let output = learner.run(&["list", "--course", "copy"]);
        assert!(
            output.err.contains("k01-swiglu/exercise.toml:"),
            "{name}: {}",
            output.err
        );
        assert!(output.out.contains("k01  broken"), "{name}: {}", output.out);
        for exercise in ["k01", "d01"] {
            let output = learner.run(&["check", exercise, "--course", "copy"]);
            let all = output.out + &output.err;
            assert!(
                !all.contains(SECRET) && !all.contains("root:"),
                "{name}: {all}"
            );
        }
    }
}

#[test]
fn a_broken_stage_or_exercise_is_shown_as_broken() {
    let cases = [
        ("k01-swiglu/exercise.toml", "kind = ", "knid = ", "k01"),
        ("k01-swiglu/exercise.toml", "kind = ", "[[[", "k01"),
        ("c01-batch/exercise.toml", "title = ", "tittle = ", "c01"),
        (
            "d01-still/exercise.toml",
            "hints = [",
            "hints = [\"one more\",",
            "d01",
        ),
        ("01-broken-init/stage.toml", "title = ", "tittle = ", "1"),
        ("01-broken-init/config.toml", "preset", "presett", "1"),
    ];
    for (file, from, to, name) in cases {
        let learner = learner();
        let (folder, _) = file.split_once('/').expect("a folder");
        // The learner's own answers do not hide what is broken.
        if name != "1" {
            for own in ["starter.wgsl", "answer.toml"] {
                let path = learner.path(&format!("copy/exercises/{folder}/{own}"));
                if let Ok(text) = fs::read_to_string(&path) {
                    let comment = if own == "answer.toml" {
                        "# mine"
                    } else {
                        "// mine"
                    };
                    fs::write(&path, format!("{text}\n{comment}\n")).expect("written");
                }
            }
        } else if !file.ends_with("config.toml") {
            let solution = learner.path("copy/exercises/01-broken-init/solution/config.toml");
            fs::copy(
                solution,
                learner.path("copy/exercises/01-broken-init/config.toml"),
            )
            .expect("saved over the starter");
        }
        edit(&learner, file, from, to);
        let output = learner.run(&["list", "--course", "copy"]);
        let broken = |line: &&str| line.split_whitespace().take(2).eq([name, "broken"]);
        let line = output.out.lines().find(broken);
        let line = line.unwrap_or_else(|| panic!("{file}: {}\n{}", output.out, output.err));
        assert!(line.contains(file), "{line}");
        let output = learner.run(&["list", "--json", "--course", "copy"]);
        assert!(
            output.out.contains("\"state\":\"broken\""),
            "{}",
            output.out
        );
        for command in ["check", "hint", "reset", "run"] {
            if command == "run" && name != "1" {
                continue;
            }
            let cannot = format!("{folder} cannot be used: copy/exercises/{file}");
            learner
                .run(&[command, name, "--course", "copy"])
                .fails(2, &[&cannot]);
        }
        // The others are there.
        learner
            .run(&["hint", "k02", "--course", "copy"])
            .succeeds(&["hint 1/3"]);
    }
}

#[test]
fn a_copy_that_is_not_named_is_not_taken_for_the_course_silently() {
    let learner = learner();
    let mut process = learner.process(&["list"]);
    let output = process.current_dir(learner.path("copy")).output();
    let same = output.expect("ran").stderr;
    assert!(same.is_empty(), "{}", String::from_utf8_lossy(&same));
    edit(&learner, "k01-swiglu/exercise.toml", "kind = ", "knid = ");
    let starter = learner.path("copy/exercises/k02-rms-norm/starter.wgsl");
    fs::remove_file(&starter).expect("in the copy");
    symlink(learner.path("secret"), &starter).expect("a link");
    for args in [&["list"][..], &["check", "k01"], &["check", "k02"]] {
        let mut process = learner.process(args);
        let output = process.current_dir(learner.path("copy")).output();
        let output = output.expect("ran");
        let err = String::from_utf8(output.stderr).expect("UTF-8");
        for says in [
            "k01-swiglu/exercise.toml: differs from the file inside the program",
            "write `--course .`",
            "k02-rms-norm/starter.wgsl: is a link that leads out of the course folder",
        ] {
            assert!(err.contains(says), "{args:?}: {err}");
        }
        let out = String::from_utf8(output.stdout).expect("UTF-8");
        assert!(!out.contains(SECRET) && !err.contains(SECRET), "{out}{err}");
    }
}
