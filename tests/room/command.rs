//! `perflings room` and `--room`: one line for each mistake, and what is written down of a class.

use perflings::room::folder::Folder;
use perflings::room::handle::RoomHandle;
use perflings::room::link::ParticipantLink;

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
}

#[test]
fn a_class_is_exported() {
    let learner = Learner::new();
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().display().to_string();
    drop(RoomHandle::open(dir.path().to_owned(), true).expect("opened"));
    Folder::new(dir.path().to_owned())
        .share(&participant('a', "Ana"))
        .expect("shared");
    for (name, holds) in [
        ("class.json", "\"shown\": \"Ana\""),
        ("class.csv", "name,device,stage"),
        ("class.html", "<td>Ana</td>"),
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
