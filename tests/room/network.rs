//! Rooms over HTTP: codes, hostile participants, and members whose room ends and comes back.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use perflings::class::client::Http;
use perflings::class::handle::RoomHandle;
use perflings::class::link::{ParticipantLink, RoomError, RoomNews};
use perflings::class::member::Member;
use perflings::class::record::{
    ClassState, InstructorRequest, MOST_BYTES, Participant, RaceResult,
};
use perflings::class::secrets::RoomSecrets;
use perflings::class::server::{bind, host};
use perflings::course::Course;

use super::{news, participant, wait};

/// A room that this process serves.
pub(super) struct Room {
    pub(super) dir: tempfile::TempDir,
    pub(super) handle: RoomHandle,
    at: SocketAddr,
}

fn codes() -> RoomSecrets {
    RoomSecrets {
        code: "learners".to_owned(),
        key: "instructors".to_owned(),
    }
}

fn room_at(listener: TcpListener, dir: tempfile::TempDir) -> Room {
    let course = Course::builtin();
    let handle = RoomHandle::open(dir.path().to_owned(), false, course).expect("opened");
    let at = host(listener, handle.clone(), codes()).expect("served");
    Room { dir, handle, at }
}

pub(super) fn room() -> Room {
    let dir = tempfile::tempdir().expect("a folder");
    room_at(bind("127.0.0.1:0").expect("a port"), dir)
}

impl Room {
    /// Returns a participant's link to the room.
    pub(super) fn guest(&self, code: &str) -> Http {
        Http::new(&format!("{}/{code}", self.at)).expect("an address")
    }

    /// Sends text as it is, and returns the status and the text of the answer; the status is 0 without an answer. Fails after 15 seconds.
    pub(super) fn send(&self, text: &[u8]) -> (u16, String) {
        let mut stream = TcpStream::connect(self.at).expect("connected");
        stream
            .set_read_timeout(Some(Duration::from_secs(15)))
            .expect("set");
        // The room may have answered and closed before all was sent.
        let _ = stream.write_all(text);
        let mut answer = Vec::new();
        let mut part = [0; 4096];
        while let Ok(n @ 1..) = stream.read(&mut part) {
            answer.extend_from_slice(&part[..n]);
        }
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        (status.unwrap_or(0), answer)
    }

    pub(super) fn post(&self, path: &str, code: &str, body: &[u8]) -> (u16, String) {
        let head = format!(
            "POST {path} HTTP/1.1\r\nauthorization: Bearer {code}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            body.len()
        );
        self.send(&[head.as_bytes(), body].concat())
    }

    fn names(&self) -> Vec<String> {
        let board = self.handle.board();
        board.rows.into_iter().map(|row| row.name).collect()
    }
}

fn json(participant: &Participant) -> Vec<u8> {
    serde_json::to_vec(participant).expect("plain data")
}

#[test]
fn a_code_opens_what_it_is_for() {
    let room = room();
    let shared = room.guest("learners").share(&participant('a', "Ana"));
    assert_eq!(shared.map(|class| class.closed), Ok(false));
    let loud = room.guest("LEARNERS").share(&participant('a', "Ana"));
    assert!(loud.is_ok(), "a code in capitals is the same");
    for wrong in ["learner", "learnerss", "x"] {
        let refused = room.guest(wrong).share(&participant('b', "Bo"));
        assert_eq!(
            refused,
            Err(RoomError::Never("the room code is wrong".to_owned()))
        );
    }
    assert_eq!(room.names(), ["Ana"]);
    let order = serde_json::to_vec(&InstructorRequest::Close(true)).expect("plain data");
    assert_eq!(room.post("/order", "learners", &order).0, 403);
    assert_eq!(room.post("/board", "", b"").0, 403);
    assert!(!room.handle.state().class.closed);
    let (status, board) = room.post("/order", "instructors", &order);
    assert!(
        status == 200 && board.contains("\"closed\":true"),
        "{board}"
    );
    let class = room.guest("learners").share(&participant('a', "Ana"));
    assert!(class.expect("shared").closed);
}

#[test]
fn guessing_codes_is_slowed_down() {
    let room = room();
    let statuses = std::thread::scope(|scope| {
        let tries: Vec<_> = (0..60)
            .map(|n| {
                scope.spawn({
                    let room = &room;
                    move || room.post("/join", &format!("guess{n}"), b"").0
                })
            })
            .collect();
        tries
            .into_iter()
            .map(|thread| thread.join().expect("answered"))
            .collect::<Vec<_>>()
    });
    let forbidden = statuses.iter().filter(|status| **status == 403).count();
    assert!((15..50).contains(&forbidden), "{statuses:?}");
    assert!(statuses.contains(&429));
    assert!(
        room.guest("learners")
            .share(&participant('a', "Ana"))
            .is_ok()
    );
}

#[test]
fn the_second_of_two_equal_names_gets_a_number_and_nobody_sees_ids() {
    let room = room();
    let (mut first, mut second) = (room.guest("learners"), room.guest("learners"));
    first.share(&participant('a', "Ana")).expect("shared");
    let class: ClassState = second.share(&participant('b', "Ana")).expect("shared");
    assert_eq!(class.renamed.values().collect::<Vec<_>>(), ["Ana (2)"]);
    let class = first.share(&participant('a', "Ana")).expect("shared");
    assert!(class.renamed.is_empty());
    let (_, board) = room.post("/board", "instructors", b"");
    assert!(
        board.contains("Ana (2)") && !board.contains(&"b".repeat(32)),
        "{board}"
    );
}

#[test]
fn a_hostile_guest_gets_nothing_but_short_answers() {
    let room = room();
    let mut hostile = participant('e', "\u{1b}[2J\u{202e}<script>alert(1)</script>");
    hostile.open_task = "</script><img src=x onerror=alert(1)>".repeat(50);
    assert_eq!(room.post("/join", "learners", &json(&hostile)).0, 200);
    let name = room.names().remove(0);
    assert_eq!(name, "·[2J·<script>alert(1)</s…");
    // A request that is too long is refused before it is read, even if all of its 10 MB are sent.
    assert_eq!(
        room.post("/join", "learners", &vec![b'x'; 10 * 1024 * 1024])
            .0
            / 100
            % 5,
        4
    );
    assert_eq!(
        room.post("/join", "learners", &vec![b'x'; MOST_BYTES + 1])
            .0,
        413
    );
    for (sent, status) in [
        (&b"\x1b]0;x\x07\r\n\r\n"[..], 400),
        (
            b"POST /join HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n",
            411,
        ),
        (b"POST /join HTTP/1.1\r\ncontent-length: -5\r\n\r\n", 413),
        (
            b"GET /../../etc/passwd HTTP/1.1\r\nconnection: close\r\n\r\n",
            404,
        ),
    ] {
        assert_eq!(
            room.send(sent).0,
            status,
            "{}",
            String::from_utf8_lossy(sent)
        );
    }
    let head = format!("GET / HTTP/1.1\r\n{}", "x: y\r\n".repeat(4000));
    assert!(matches!(room.send(head.as_bytes()).0, 0 | 400 | 431));
    for garbage in [
        &b""[..],
        b"{",
        b"[1,2]",
        b"\xff\xfe",
        b"{\"version\":2,\"id\":7}",
    ] {
        assert_eq!(room.post("/join", "learners", garbage).0, 400);
    }
    let old = room.post("/join", "learners", b"{\"version\":0}");
    assert!(
        old.0 == 426 && old.1.contains("another version of perflings"),
        "{}",
        old.1
    );
    assert_eq!(room.names().len(), 1);
}

#[test]
fn a_thousand_requests_a_second_are_turned_away_and_the_others_served() {
    let room = room();
    let mut flood = TcpStream::connect(room.at).expect("connected");
    let body = json(&participant('e', "Eve"));
    let head = format!(
        "POST /join HTTP/1.1\r\nauthorization: Bearer learners\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let request = [head.as_bytes(), &body].concat();
    let mut answers = BufReader::new(flood.try_clone().expect("one more handle"));
    let reader = std::thread::spawn(move || {
        let mut statuses = (0, 0);
        let mut line = String::new();
        while statuses.0 + statuses.1 < 1000 && answers.read_line(&mut line).is_ok_and(|n| n > 0) {
            statuses.0 += usize::from(line.contains("HTTP/1.1 200"));
            statuses.1 += usize::from(line.contains("HTTP/1.1 429"));
            line.clear();
        }
        statuses
    });
    let began = Instant::now();
    let mut ana = room.guest("learners");
    for n in 0..1000 {
        flood.write_all(&request).expect("sent");
        if n % 250 == 0 {
            let asked = Instant::now();
            ana.share(&participant('a', "Ana")).expect("shared");
            assert!(asked.elapsed() < Duration::from_secs(2));
        }
    }
    let (taken, refused) = reader.join().expect("answered");
    let most = 25 + 5 * began.elapsed().as_secs() as usize;
    assert!(
        taken <= most && taken + refused == 1000,
        "{taken} {refused}"
    );
    assert_eq!(room.names(), ["Ana", "Eve"]);
}

#[test]
fn the_page_is_served_and_follows_the_board() {
    let room = room();
    let (status, page) = room.send(b"GET /instructors HTTP/1.1\r\nconnection: close\r\n\r\n");
    assert!(
        status == 200 && page.contains("default-src 'none'") && page.contains("<!doctype html>")
    );
    let mut stream = TcpStream::connect(room.at).expect("connected");
    stream
        .set_read_timeout(Some(Duration::from_secs(15)))
        .expect("set");
    stream
        .write_all(b"GET /events/instructors HTTP/1.1\r\n\r\n")
        .expect("asked");
    room.guest("learners")
        .share(&participant('a', "</script>Ana"))
        .expect("shared");
    let mut lines = BufReader::new(stream)
        .lines()
        .map(|line| line.expect("an event"));
    let data = lines.find(|line| line.contains("Ana")).expect("the board");
    assert!(data.starts_with("data: {"), "{data}");
    assert_eq!(room.send(b"GET /events/learners HTTP/1.1\r\n\r\n").0, 403);
}

#[test]
fn a_port_that_is_taken_is_one_line() {
    let room = room();
    let taken = bind(&room.at.to_string()).expect_err("taken");
    assert!(taken.contains("another program uses this port"), "{taken}");
    for wrong in ["nonsense", "127.0.0.1", "127.0.0.1:99999"] {
        let why = bind(wrong).expect_err("no address");
        assert!(
            why.starts_with(&format!("--listen {wrong}: ")) && !why.contains('\n'),
            "{why}"
        );
    }
}

#[test]
fn a_member_outlives_its_room() {
    // A port that nobody listens at yet.
    let free = bind("127.0.0.1:0").expect("a port");
    let at = free.local_addr().expect("an address");
    drop(free);
    let place = Http::new(&format!("{at}/learners")).expect("an address");
    let member = Member::join(Box::new(place)).expect("a thread");
    let mut me = participant('a', "Ana");
    member.share(me.clone());
    let RoomNews::Lost(RoomError::Later(why)) = news(&member) else {
        panic!("nobody is there");
    };
    assert!(why.contains("is the room open?"), "{why}");
    // Of the records that the room misses, the newest one is shared later.
    for hints in 1..50 {
        me.open_task = "broken-init".to_owned();
        me.open_s = 10 * hints;
        me.raised = hints == 49;
        member.share(me.clone());
    }
    let dir = tempfile::tempdir().expect("a folder");
    let room = room_at(bind(&at.to_string()).expect("the same port"), dir);
    assert!(matches!(news(&member), RoomNews::Class(_)));
    let state = room.handle.state();
    let known = state.people.values().next().expect("Ana");
    assert!(known.record.raised && known.record.open_task == "broken-init");
    drop(state);
    let row = room.handle.board().rows.remove(0);
    assert!((490..590).contains(&row.open_s), "{}", row.open_s);
    // An order of the instructor is news.
    room.handle
        .order(&InstructorRequest::Offer(Some("broken-init".to_owned())))
        .expect("written");
    let RoomNews::Class(class) = news(&member) else {
        panic!("the room is there");
    };
    assert_eq!(class.offer.as_deref(), Some("broken-init"));
    drop(member);
    wait("the farewell", || {
        room.handle
            .state()
            .people
            .values()
            .next()?
            .record
            .left
            .then_some(())
    });
    // The log in the folder has what came over the network.
    let kept = || {
        RoomHandle::read(room.dir.path().to_owned(), &Course::builtin())
            .ok()?
            .people
            .values()
            .next()?
            .record
            .left
            .then_some(())
    };
    wait("the file", kept);
}

#[test]
fn a_removed_participant_stays_out() {
    let room = room();
    let mut ana = room.guest("learners");
    ana.share(&participant('a', "Ana")).expect("shared");
    room.guest("learners")
        .share(&participant('b', "Bo"))
        .expect("shared");
    room.handle
        .order(&InstructorRequest::Remove(["a".repeat(32)].into()))
        .expect("carried out");
    assert_eq!(room.names(), ["Bo"]);
    let refused = ana.share(&participant('a', "Ana")).expect_err("out");
    assert!(
        matches!(&refused, RoomError::Never(why) if why.contains("removed")),
        "{refused}"
    );
    // Others do not learn of it, and the log keeps it.
    let class = room
        .guest("learners")
        .share(&participant('b', "Bo"))
        .expect("shared");
    assert!(class.removed.is_empty());
    let again = RoomHandle::read(room.dir.path().to_owned(), &Course::builtin()).expect("read");
    assert_eq!(again.class.removed.len(), 1);
}

#[test]
fn idle_connections_keep_nobody_out() {
    let room = room();
    let mut ana = room.guest("learners");
    ana.share(&participant('a', "Ana")).expect("shared");
    // More connections than the room keeps open, if this process may have open files for both ends of each.
    let mut idle = Vec::new();
    for _ in 0..3000 {
        match TcpStream::connect(room.at) {
            Ok(stream) => idle.push(stream),
            Err(_) => break,
        }
    }
    let began = Instant::now();
    let bo = room.guest("learners").share(&participant('b', "Bo"));
    // If this process may not open enough files, the test shows nothing.
    if idle.len() >= 3000 {
        bo.expect("shared");
        ana.share(&participant('a', "Ana")).expect("shared");
        assert!(began.elapsed() < Duration::from_secs(4));
    }
}

#[test]
fn an_implausible_result_is_left_out_and_is_a_fault_on_the_board() {
    let room = room();
    let mut hostile = participant('e', "Eve");
    let result = RaceResult {
        ratio: Some([51.0, 48.0, 54.0]),
        mystery: None,
    };
    hostile.races.insert("k04-matmul".to_owned(), result);
    let class = room.guest("learners").share(&hostile);
    assert!(class.is_ok(), "the others' fun is not over for a mistake");
    let faults = room.handle.board().faults;
    assert!(
        faults[0].starts_with("Eve shared a result of 51.00x in k04-matmul"),
        "{faults:?}"
    );
    hostile.races.clear();
    hostile.sequence += 1;
    room.guest("learners").share(&hostile).expect("shared");
    assert!(room.handle.board().faults.is_empty());
}
