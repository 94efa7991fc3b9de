//! The log of a class has everything that was answered, however the board ends; and phones vote.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Duration;

use perflings::class::handle::RoomHandle;
use perflings::class::link::ParticipantLink;
use perflings::class::log::{LOG, read};
use perflings::class::record::InstructorRequest;
use perflings::course::Course;
use serde_json::{Value, json};

use super::learner::Learner;
use super::network::{Room, room};
use super::participant;

const STAGE: &str = "broken-init";

fn id(n: usize) -> String {
    format!("{n:032x}")
}

/// Sends a request of a phone, whose id is a number here, and returns the status and the body of the answer.
fn phone(room: &Room, mut request: Value) -> (u16, Value) {
    if let Some(number) = request["id"].as_u64() {
        request["id"] = id(number as usize).into();
    }
    let (status, answer) = room.post("/phone", "learners", request.to_string().as_bytes());
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (status, serde_json::from_str(body).unwrap_or(body.into()))
}

fn order(room: &Room, order: &InstructorRequest) {
    room.handle.order(order).expect("carried out");
}

#[test]
fn a_phone_votes_and_sees_only_what_counts() {
    use InstructorRequest as Order;
    let room = room();
    let (status, view) = phone(&room, json!({"id": 1}));
    assert_eq!((status, &view["vote"]), (200, &Value::Null));
    assert_eq!(view["now"], "The next question appears here.");
    order(&room, &Order::OpenVote(STAGE.to_owned()));
    let (_, view) = phone(&room, json!({"id": 1}));
    let round = view["vote"]["round"].clone();
    assert_eq!(
        (&view["vote"]["open"], &view["vote"]["mine"]),
        (&true.into(), &Value::Null)
    );
    // Neither another round nor a choice that does not exist counts; then the first vote counts, and a second one does not.
    for (round, choice, mine) in [
        (json!(999), 1, Value::Null),
        (round.clone(), 99, Value::Null),
        (round.clone(), 1, json!(1)),
        (round.clone(), 1, json!(1)),
        (round.clone(), 0, json!(1)),
    ] {
        let (_, view) = phone(&room, json!({"id": 1, "ballot": [round, choice]}));
        assert_eq!(view["vote"]["mine"], mine);
        assert_eq!(view["vote"]["counts"], json!([]), "hidden while it is open");
    }
    phone(&room, json!({"id": 2, "name": "\u{1b}[2JBo"}));
    order(&room, &Order::CloseVote);
    let (_, late) = phone(&room, json!({"id": 2, "ballot": [round, 0]}));
    assert_eq!(
        (&late["vote"]["mine"], &late["name"]),
        (&Value::Null, &json!("·[2JBo"))
    );
    assert_eq!(late["vote"]["counts"][1], 1);
    assert_eq!(
        room.handle
            .board()
            .vote
            .map(|vote| vote.turnout())
            .as_deref(),
        Some("1 of 2 here")
    );
    // After a reload, with the next question open, the phone shows its own past choices.
    let asked = perflings::class::record::Question::read("ask Seen? yes no").expect("whole");
    order(&room, &Order::Ask(asked));
    let (_, view) = phone(&room, json!({"id": 1}));
    assert_eq!(
        (&view["vote"]["prompt"], &view["past"][0]["mine"]),
        (&json!("Seen?"), &json!(1))
    );
    // The log alone gives equal counts.
    let again = RoomHandle::read(room.dir.path().to_owned(), &Course::builtin()).expect("read");
    let vote = &again.class.votes[STAGE];
    assert_eq!(again.round(vote, vote.asked[0]).counts[..2], [0, 1]);
}

#[test]
fn a_phone_gets_into_no_locked_or_closed_room() {
    use InstructorRequest as Order;
    let room = room();
    for garbage in [&b""[..], b"{}", b"{\"id\":7}", b"\xff", b"[1]"] {
        assert_eq!(room.post("/phone", "learners", garbage).0, 400);
    }
    let (status, page) = room.send(b"GET /learners HTTP/1.1\r\nconnection: close\r\n\r\n");
    assert!(status == 200 && page.contains("<title>perflings: vote"));
    let (status, page) = room.send(b"GET / HTTP/1.1\r\nconnection: close\r\n\r\n");
    assert!(status == 200 && page.contains("The code of the room"));
    assert_eq!(
        room.send(b"GET /wrong HTTP/1.1\r\nconnection: close\r\n\r\n")
            .0,
        403
    );
    assert_eq!(
        room.send(b"GET /favicon.ico HTTP/1.1\r\nconnection: close\r\n\r\n")
            .0,
        404
    );
    order(&room, &Order::RequireNames(true));
    assert_eq!(phone(&room, json!({"id": 1})).0, 409);
    assert_eq!(phone(&room, json!({"id": 1, "name": "Ana"})).0, 200);
    order(&room, &Order::Lock(true));
    assert_eq!(phone(&room, json!({"id": 2, "name": "Bo"})).0, 423);
    assert_eq!(phone(&room, json!({"id": 1})).0, 200, "who is in stays in");
    order(&room, &Order::Lock(false));
    order(&room, &Order::Close(true));
    assert_eq!(phone(&room, json!({"id": 2, "name": "Bo"})).0, 423);
    assert_eq!(
        phone(&room, json!({"id": 3, "name": "Cy", "seat": "nobody"})).0,
        422
    );
}

#[test]
fn sixty_from_one_address_are_let_in_and_one_key_removes_them() {
    let room = room();
    room.guest("learners")
        .share(&participant('a', "Ana"))
        .expect("shared");
    for n in 1..60 {
        assert_eq!(phone(&room, json!({"id": n})).0, 200);
    }
    let crowd = room.handle.board().crowd.expect("told");
    assert_eq!((crowd.people, crowd.address.as_str()), (60, "127.0.0.1"));
    order(&room, &InstructorRequest::RemoveFrom(crowd.address));
    assert_eq!(
        (
            room.handle.board().rows.len(),
            phone(&room, json!({"id": 7})).0
        ),
        (0, 403)
    );
    order(&room, &InstructorRequest::Undo);
    assert_eq!(
        (
            room.handle.board().rows.len(),
            phone(&room, json!({"id": 7})).0
        ),
        (60, 200)
    );
}

#[test]
fn a_participant_has_another_id_in_a_folder_than_over_the_network() {
    use perflings::class::member::identity;
    let dir = tempfile::tempdir().expect("a folder");
    let in_folder = identity(Some(dir.path()), false);
    let over_network = identity(Some(dir.path()), true);
    assert_ne!(in_folder, over_network);
    assert_eq!(identity(Some(dir.path()), false), in_folder);
    assert_eq!(identity(Some(dir.path()), true), over_network);
}

/// A room that another process serves.
struct Served {
    child: Child,
    at: String,
    code: String,
    key: String,
}

impl Served {
    /// Serves a room with its log in a folder below `base`. `limit` is the longest file that the process may write, in bytes.
    fn open(learner: &Learner, base: &str, more: &[&str], limit: Option<u32>) -> Self {
        let args = ["room", "--listen", "127.0.0.1:0", "--json", "--dir", base];
        let mut command = learner.process(&args);
        command
            .args(more)
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        if let Some(bytes) = limit {
            use std::os::unix::process::CommandExt;
            let limit = move || {
                use rustix::process::{Resource, Rlimit, setrlimit};
                let most = Some(u64::from(bytes));
                let limit = Rlimit {
                    current: most,
                    maximum: most,
                };
                setrlimit(Resource::Fsize, limit)?;
                Ok(())
            };
            // SAFETY: the closure only makes a system call, which is allowed between fork and exec.
            unsafe { command.pre_exec(limit) };
        }
        let mut child = command.spawn().expect("perflings starts");
        let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        let mut next = || lines.next().expect("a line").expect("text");
        let (place, own) = (next(), next());
        let (at, code) = place.rsplit_once('/').expect("a code");
        let at = at.rsplit_once('/').expect("an address").1.to_owned();
        let key = own.rsplit_once('/').expect("a key").1.to_owned();
        let code = code.to_owned();
        // Later lines are read, too, so that the room never waits for a full pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Self {
            child,
            at,
            code,
            key,
        }
    }

    /// Posts a request, and returns the status and the body of the answer; the status is 0 without an answer.
    fn post(&self, path: &str, code: &str, body: &str) -> (u16, String) {
        let ask = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect(&self.at)?;
            stream.set_read_timeout(Some(Duration::from_secs(10)))?;
            write!(
                stream,
                "POST {path} HTTP/1.1\r\nauthorization: Bearer {code}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            )?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        };
        let answer = ask().unwrap_or_default();
        let status = answer
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        (status.unwrap_or(0), body.to_owned())
    }

    /// Votes with the phone of this number, and returns true if the answer says that the vote counts.
    fn vote(&self, n: usize, round: u64) -> bool {
        let request = json!({"id": id(n), "ballot": [round, n % 3]}).to_string();
        let (status, body) = self.post("/phone", &self.code, &request);
        let view: Value = serde_json::from_str(&body).unwrap_or_default();
        status == 200 && view["vote"]["mine"] == json!(n % 3)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the lines of the log of the only room in a folder of rooms.
fn log_in(base: &std::path::Path) -> Vec<Value> {
    let mut rooms = std::fs::read_dir(base).expect("rooms");
    let room = rooms.next().expect("a room").expect("an entry").path();
    let found = read(&room.join(LOG)).expect("read");
    assert_eq!(found.damaged, None);
    let value = |line| serde_json::to_value(line).expect("plain data");
    found.lines.iter().map(value).collect()
}

#[test]
fn a_killed_room_loses_nothing_that_was_answered() {
    let learner = Learner::new();
    let dir = tempfile::tempdir().expect("a folder");
    let base = dir.path().display().to_string();
    let mut served = Served::open(&learner, &base, &[], None);
    let open = json!({"open-vote": STAGE}).to_string();
    let (status, board) = served.post("/order", &served.key, &open);
    assert!(status == 200, "{board}");
    let opened = log_in(dir.path()).pop().expect("a line");
    let round = opened["vote-opened"]["round"].as_u64().expect("a round");
    let mut counted = Vec::new();
    for kill in 0..3_u64 {
        let mut child = std::mem::replace(
            &mut served.child,
            Learner::new()
                .process(&["--version"])
                .stdout(Stdio::null())
                .spawn()
                .expect("started"),
        );
        let ends = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(150 + 37 * kill));
            child.kill().expect("killed");
            child.wait().expect("ended");
        });
        for n in 1.. {
            let voter = 1000 * kill as usize + n;
            if !served.vote(voter, round) {
                break;
            }
            counted.push(voter);
        }
        ends.join().expect("ended");
        served = Served::open(&learner, &base, &["--resume"], None);
        let (_, board) = served.post("/board", &served.key, "");
        let board: Value = serde_json::from_str(&board).expect("the board");
        assert_eq!(board["vote"]["open"], true, "an open vote is still open");
        let lines = log_in(dir.path());
        let ballots = lines.iter().filter(|line| line.get("ballot").is_some());
        let voters: Vec<&str> = ballots
            .filter_map(|line| line["ballot"]["who"].as_str())
            .collect();
        for voter in &counted {
            assert!(
                voters.contains(&id(*voter).as_str()),
                "the answer to {voter} said that the vote counts"
            );
        }
        assert_eq!(board["vote"]["voted"], voters.len());
    }
    assert!(counted.len() > 3, "{counted:?}");
}

#[test]
fn a_full_disk_counts_nothing_and_says_so() {
    let learner = Learner::new();
    let dir = tempfile::tempdir().expect("a folder");
    let base = dir.path().display().to_string();
    let served = Served::open(&learner, &base, &[], Some(2048));
    let mut counted = 0;
    for n in 1..40 {
        let request = json!({"id": id(n)}).to_string();
        let (status, body) = served.post("/phone", &served.code, &request);
        if status == 200 {
            counted += 1;
        } else {
            assert_eq!(status, 500);
            assert!(body.contains("log could not be written"), "{body}");
        }
    }
    let joined = log_in(dir.path())
        .iter()
        .filter(|line| line.get("joined").is_some())
        .count();
    assert!((3..30).contains(&counted), "{counted}");
    assert_eq!(
        joined, counted,
        "the log has exactly those who were answered"
    );
    let (_, board) = served.post("/board", &served.key, "");
    let board: Value = serde_json::from_str(&board).expect("the board");
    assert_eq!(board["rows"].as_array().map(Vec::len), Some(counted));
    assert!(
        board["faults"][0]
            .as_str()
            .is_some_and(|sentence| sentence.contains("could not be written"))
    );
}
