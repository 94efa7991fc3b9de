//! Damaged files: whatever is in a file, its reader does not panic, answers soon, names the line of the fault, and loads what it has saved.
//! Each run of the tests tries equal inputs; `PROPTEST_CASES=20000 PROPTEST_RNG_SEED=2` tries others.
//!
//! Inputs on which a reader has once failed are kept under `fuzz/kept`, in a folder for each reader, and tried first.

#[path = "fuzz/mutate.rs"]
mod mutate;

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mutate::{Input, damaged};
use perflings::course::config_file::{self as file, FileError, MAX_BYTES, read_text};
use perflings::course::exercise::Kernels;
use perflings::course::save_file::{self, ProgressChange, StageState};
use perflings::course::validate::{Vocabulary, structure};
use perflings::course::{Course, CourseFiles};
use perflings::pages::{csv, perfetto, report::RunReport};
use perflings::record::Recording;
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestError, TestRunner};
use protocol::config::{KNOBS, Knob, Preset, RunConfig};
use protocol::validate::validate;
use protocol::{Command, PROTOCOL, RunSpec, Slot, StreamLine, read};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tempfile::TempDir;

/// The longest time that inputs may take on average, also on a busy machine.
const MEAN_TIME: Duration = Duration::from_millis(100);
/// The stack of a check, in bytes, which deeply nested expressions need.
const STACK_BYTES: usize = 256 << 20;

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Makes an input for a reader that needs no name.
fn unnamed(bytes: impl Into<Vec<u8>>) -> Input {
    Input {
        name: String::new(),
        bytes: bytes.into(),
    }
}

/// Returns a file of the repository as an input.
fn shipped(path: &str) -> Input {
    unnamed(fs::read(repository(path)).expect("a file"))
}

/// Checks a property with every kept input of a reader, and then with damaged files, `share` for each case of proptest. If an input fails,
/// proptest makes it smaller, and the message names the file in which it is written.
fn check_inputs(reader: &str, share: f64, files: Vec<Input>, property: impl Fn(&Input) + Sync) {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
        let run = || try_all(reader, share, files, &property);
        let running = thread.spawn_scoped(scope, run).expect("a thread");
        if let Err(panic) = running.join() {
            std::panic::resume_unwind(panic);
        }
    });
}

fn try_all(reader: &str, share: f64, files: Vec<Input>, property: &impl Fn(&Input)) {
    for input in kept_inputs(reader) {
        property(&input);
    }
    let mut config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    if config.rng_seed == RngSeed::Random {
        config.rng_seed = RngSeed::Fixed(1);
    }
    config.cases = (f64::from(config.cases) * share).ceil() as u32;
    let cases = config.cases;
    // The input is written first, because a stack overflow or an endless loop leaves no message.
    let latest = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-{reader}"));
    let slowest = Cell::new(Duration::ZERO);
    let begun = Instant::now();
    let result = TestRunner::new(config).run(&damaged(files), |input| {
        fs::write(&latest, &input.bytes).expect("written");
        let begun = Instant::now();
        property(&input);
        if begun.elapsed() > slowest.get() {
            slowest.set(begun.elapsed());
            fs::write(latest.with_extension("slowest"), &input.bytes).expect("written");
        }
        Ok(())
    });
    if let Err(TestError::Fail(why, input)) = &result {
        fs::write(&latest, &input.bytes).expect("written");
        panic!("{}: {why}\n{input:?}", latest.display());
    }
    result.expect("every input was tried");
    let took = begun.elapsed();
    println!(
        "{reader}: {cases} inputs in {took:?}, the slowest in {:?}",
        slowest.get()
    );
    assert!(took < MEAN_TIME * (cases + 50), "{took:?}");
}

/// Returns the inputs on which a reader has once failed, from files `fuzz/kept/READER/NAME/FAULT`. NAME is the name of the damaged file.
fn kept_inputs(reader: &str) -> Vec<Input> {
    let folder = repository("tests/fuzz/kept").join(reader);
    let mut folders = vec![folder.clone()];
    let mut found = Vec::new();
    while let Some(current) = folders.pop() {
        for path in fs::read_dir(&current)
            .expect("a folder")
            .map(|entry| entry.expect("read").path())
        {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = current
                .strip_prefix(&folder)
                .expect("below")
                .to_str()
                .expect("text")
                .to_owned();
            let bytes = fs::read(path).expect("read");
            found.push(Input { name, bytes });
        }
    }
    assert!(!found.is_empty(), "{reader}");
    found
}

/// Checks that an error has a text, and that it is not too long to read.
fn assert_short(error: &FileError) {
    let text = error.to_string();
    assert!(
        !error.message.is_empty() && text.chars().count() < 3500,
        "{text}"
    );
}

/// Creates a temporary folder, in memory if possible, because a disk is slow for thousands of inputs.
fn temporary_folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .expect("a folder")
}

/// Checks that the error about a text file names one of its lines. Only an error about the whole file names none.
fn assert_names_a_line(error: &FileError, bytes: &[u8]) {
    let lines = bytes.split(|byte| *byte == b'\n').count();
    assert!(error.line <= lines, "{error}");
    assert_short(error);
    let whole = ["is larger", "is empty", "cannot be read"];
    assert!(
        error.line > 0 || whole.iter().any(|part| error.message.contains(part)),
        "no line: {error}"
    );
}

#[test]
fn a_damaged_configuration_is_read_back_or_refused_with_a_line() {
    let stages = [
        "01-broken-init",
        "02-strides",
        "05-hybrid",
        "08-out-of-memory",
    ];
    let files = stages.map(|stage| shipped(&format!("exercises/{stage}/config.toml")));
    let home = temporary_folder();
    let path = home.path().join("config.toml");
    let knobs: Vec<&Knob> = KNOBS.iter().collect();
    check_inputs("config", 8.0, files.into(), |input| {
        fs::write(&path, &input.bytes).expect("written");
        match file::load(&path) {
            Err(error) => assert_names_a_line(&error, &input.bytes),
            Ok(config) => {
                let text = read_text(&path, MAX_BYTES).expect("read before");
                let written = file::rewritten(&text, "", &config, &knobs).expect("read before");
                assert_eq!(file::parse(&written, "").expect("own text"), config);
            }
        }
    });
}

/// Returns the first lines and the last lines of an exercise's recorded run.
fn recording(name: &str) -> Vec<u8> {
    let text =
        fs::read_to_string(repository(&format!("exercises/{name}/run.jsonl"))).expect("there");
    let lines: Vec<&str> = text.lines().collect();
    let mut some = lines[..40].to_vec();
    some.extend(&lines[lines.len() - 3..]);
    some.join("\n").into_bytes()
}

#[test]
fn a_damaged_recording_is_read_or_refused_with_a_line() {
    let runs = ["d01-still", "d03-missing-time", "d05-one-row"];
    let files = runs.map(|name| unnamed(recording(name)));
    let home = temporary_folder();
    let path = home.path().join("run.jsonl");
    check_inputs("recording", 4.0, files.into(), |input| {
        fs::write(&path, &input.bytes).expect("written");
        match Recording::read(&path) {
            Err(error) => assert_names_a_line(&error, &input.bytes),
            Ok(recording) => {
                assert_eq!(recording.iter().count(), recording.line_count());
                let sizes = [
                    perflings::pages::html::page(&RunReport::from_story(&recording.story).sheet())
                        .len(),
                    csv::steps(recording.iter()).len(),
                    csv::kernels(recording.iter()).len(),
                    csv::gradients(recording.iter()).len(),
                    perfetto::trace(recording.iter(), &recording.badge()).len(),
                ];
                let most = 100_000 + 20 * input.bytes.len();
                assert!(sizes.into_iter().all(|size| size < most), "{sizes:?}");
            }
        }
    });
}

#[test]
fn a_damaged_line_of_the_stream_is_read_back_or_refused_in_few_words() {
    let events = recording("d01-still");
    let mut files: Vec<Input> = events.split(|byte| *byte == b'\n').map(unnamed).collect();
    for command in commands() {
        files.push(unnamed(serde_json::to_vec(&command).expect("plain data")));
    }
    check_inputs("line", 16.0, files, |input| {
        let text = String::from_utf8_lossy(&input.bytes);
        check_line::<StreamLine>(&text);
        check_line::<Command>(&text);
    });
}

/// Reads a line of the stream. If it can be read, it is written and read again; otherwise the error must be short.
fn check_line<T: DeserializeOwned + Serialize>(text: &str) {
    match read::<T>(text) {
        // The two values are not compared, because the last digit of a number may differ.
        Ok(value) => {
            drop(read::<T>(&serde_json::to_string(&value).expect("plain data")).expect("own text"))
        }
        Err(why) => assert!(why.len() < 300 + text.len(), "{} bytes: {why}", why.len()),
    }
}

fn commands() -> Vec<Command> {
    let device = || "cpu".to_owned();
    let run = || RunSpec {
        stage: 1,
        variant: "broken".to_owned(),
        slot: Slot::A,
        config: RunConfig::preset(Preset::Tiny),
        steps: Some(3),
        sealed: false,
    };
    vec![
        Command::Hello {
            protocol: PROTOCOL,
            threads: None,
        },
        Command::Open { device: device() },
        Command::Start {
            device: device(),
            run: run(),
            request: 1,
        },
        Command::Pair {
            device: device(),
            stage: 1,
            a: run(),
            b: run(),
            pairs: 10,
            request: 2,
        },
    ]
}

#[test]
fn damaged_progress_is_set_aside_and_saves_what_is_left() {
    let files = vec![
        unnamed(include_str!("fuzz/progress.toml")),
        unnamed(
            "# by hand\ncurrent = \"strides\"\nseed = 3\nstage.strides = { state = \"passed\", hints = 1 }\n",
        ),
    ];
    check_inputs("progress", 8.0, files, |input| {
        let home = temporary_folder();
        fs::write(home.path().join("progress.toml"), &input.bytes).expect("written");
        let (first, problem) = save_file::load(home.path());
        if let Some(problem) = problem {
            let aside = home.path().join("progress.toml.damaged-1");
            assert_eq!(
                fs::read(aside).expect("set aside"),
                input.bytes,
                "{problem}"
            );
            assert_short(&problem);
        }
        let (second, problem) = save_file::load(home.path());
        assert_eq!(problem, None);
        assert_eq!(second, first);
        let mut stage = first.stage("strides");
        stage.state = StageState::Passed;
        let change = ProgressChange::Stage("strides".to_owned(), Box::new(stage));
        let (saved, problem) = save_file::save(home.path(), &[change]).expect("saved");
        assert_eq!(problem, None);
        assert_eq!(save_file::load(home.path()), (saved.clone(), None));
        assert_eq!(saved.stage("strides").state, StageState::Passed);
        let others = |id: &&String| *id != "strides";
        for id in first.stages.keys().filter(others) {
            assert_eq!(saved.stage(id), first.stage(id), "{id}");
        }
    });
}

/// Copies a folder with everything in it.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder").flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("copied");
        }
    }
}

/// Adds the paths of all files in `folder/under` to `found`, relative to `folder`.
fn names(folder: &Path, under: &str, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder.join(under))
        .expect("a folder")
        .flatten()
    {
        let name = entry.file_name().into_string().expect("text");
        let path = if under.is_empty() {
            name
        } else {
            format!("{under}/{name}")
        };
        if entry.path().is_dir() {
            names(folder, &path, found);
        } else {
            found.push(path);
        }
    }
}

#[test]
fn a_damaged_file_of_a_course_gives_short_problems_with_lines() {
    let home = temporary_folder();
    let course = home.path().join("course");
    copy(&repository("tests/courses/example"), &course);
    for id in ["c01-batch", "d05-one-row", "k06-softmax"] {
        copy(
            &repository("exercises").join(id),
            &course.join("exercises").join(id),
        );
    }
    let mut files = Vec::new();
    names(&course, "", &mut files);
    files.sort();
    let whole: Vec<Input> = files
        .into_iter()
        .map(|name| {
            let bytes = fs::read(course.join(&name)).expect("read");
            Input { name, bytes }
        })
        .collect();
    let words: Vec<String> = ["q", "m", "run", "check"].map(str::to_owned).into();
    check_inputs("course", 2.0, whole.clone(), |input| {
        let path = course.join(&input.name);
        fs::write(&path, &input.bytes).expect("written");
        let source = CourseFiles::folder(&course).expect("a course");
        let opened = Course::open(&source);
        let command = |_: &str| Ok(());
        let vocabulary = Vocabulary {
            keys: &words,
            lints: &words,
            command: &command,
        };
        let mut problems = structure(&source, &opened, &vocabulary);
        problems.retain(|problem| problem.path == path.display().to_string());
        let lines = input.bytes.split(|byte| *byte == b'\n').count();
        for problem in problems {
            assert!(problem.line <= lines, "{problem}");
            assert_short(&problem);
        }
        let before = whole
            .iter()
            .find(|known| known.name == input.name)
            .expect("one of them");
        fs::write(&path, &before.bytes).expect("written");
    });
}

#[test]
fn a_damaged_kernel_is_read_or_refused_with_a_line() {
    let course = Course::builtin();
    let exercises: Vec<(&str, &Kernels)> = course
        .exercises
        .iter()
        .filter_map(|exercise| Some((exercise.id.as_str(), exercise.kernels()?)))
        .collect();
    let mut files = Vec::new();
    for (id, kernels) in &exercises {
        let file = &kernels.kernels[0].file;
        for text in [&file.starter, &file.solution] {
            files.push(Input {
                name: (*id).to_owned(),
                bytes: text.clone().into_bytes(),
            });
        }
    }
    check_inputs("kernel", 2.0, files, |input| {
        let (_, kernels) = exercises
            .iter()
            .find(|(id, _)| *id == input.name)
            .expect("an exercise");
        let text = String::from_utf8_lossy(&input.bytes);
        let Err(error) = validate(&text, &kernels.kernels[0].spec, &kernels.shapes) else {
            return;
        };
        let lines = text.split('\n').count();
        assert!(error.line as usize <= lines, "{error:?}");
        assert!(
            error.message.len() < 4000 && error.text.len() < 4000,
            "{error:?}"
        );
    });
}
