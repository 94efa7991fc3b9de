//! `perflings room` and `--room`: each mistake is one line, and a class can be exported and resumed.

use perflings::class::folder::RoomFolder;
use perflings::class::handle::RoomHandle;
use perflings::class::link::ParticipantLink;
use perflings::course::Course;

use super::learner::Learner;
use super::participant;

#[test]
fn mistakes_are_one_line() {
    let learner = Learner::new();
    learner.run(&["room"]).fails(2, &["--dir", "--listen"]);
    learner
        .run(&["room", "--listen", "nowhere"])
        .fails(2, &["--listen nowhere: "]);
    let file = learner.write("file", String::new());
    learner
        .run(&["room", "--dir", &format!("{file}/inside")])
        .fails(2, &["inside: "]);
    learner
        .run(&["room", "--dir", "/proc/self"])
        .fails(2, &["/proc/self: "]);
    learner
        .run(&["room", "--dir", "/nowhere", "--export", "class.json"])
        .fails(2, &["no room is open in /nowhere"]);
    learner.run(&["--name", "Ana"]).fails(2, &["--room"]);
    let dir = tempfile::tempdir().expect("a folder");
    let base = dir.path().display().to_string();
    let resume = [
        "room",
        "--listen",
        "127.0.0.1:0",
        "--resume",
        "--dir",
        &base,
    ];
    learner
        .run(&resume)
        .fails(2, &["no room in", "leave it out"]);
    learner
        .run(&["room", "--dir", &base, "--resume"])
        .fails(2, &["--listen"]);
}

#[test]
fn a_class_is_exported() {
    let learner = Learner::new();
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().display().to_string();
    let course = Course::builtin();
    drop(RoomHandle::open(dir.path().to_owned(), true, course).expect("opened"));
    // A record that came after the board has ended is exported, too.
    RoomFolder::new(dir.path().to_owned())
        .share(&participant('a', "Ana"))
        .expect("shared");
    for (name, holds) in [
        ("class.json", "\"shown\": \"Ana\""),
        ("class.csv", "name,device,stage"),
        ("class.html", "<td>Ana"),
    ] {
        let file = dir.path().join(name);
        let out = file.display().to_string();
        learner
            .run(&["room", "--dir", &path, "--export", &out])
            .succeeds(&[]);
        let text = std::fs::read_to_string(&file).expect("written");
        assert!(
            text.contains(holds) && !text.contains(&"a".repeat(32)),
            "{text}"
        );
    }
    let wrong = dir.path().join("class.txt").display().to_string();
    learner
        .run(&["room", "--dir", &path, "--export", &wrong])
        .fails(2, &[".html, .json or .csv"]);
}

/// Serves a room for a moment, and returns the learners' code from the first line that it prints.
fn code_of_served_room(learner: &Learner, base: &str, more: &[&str]) -> String {
    use std::io::{BufRead, BufReader};
    let mut command =
        learner.process(&["room", "--listen", "127.0.0.1:0", "--json", "--dir", base]);
    command.args(more).stdout(std::process::Stdio::null());
    let mut child = command
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("perflings starts");
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    let line = lines.next().expect("a line").expect("text");
    child.kill().expect("ended");
    child.wait().expect("ended");
    line.rsplit_once('/').expect("a code").1.to_owned()
}

#[test]
fn a_served_room_is_a_new_one_unless_it_is_resumed() {
    let learner = Learner::new();
    let dir = tempfile::tempdir().expect("a folder");
    let base = dir.path().display().to_string();
    let first = code_of_served_room(&learner, &base, &[]);
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let second = code_of_served_room(&learner, &base, &[]);
    assert_ne!(first, second, "a class of another day does not get in");
    assert_eq!(code_of_served_room(&learner, &base, &["--resume"]), second);
    let rooms = std::fs::read_dir(dir.path()).expect("there").count();
    assert_eq!(rooms, 2);
}
