//! How a room bears a large class: participants on the loopback against `perflings room`, and a folder of many files on a file
//! system that takes its time for every call.
//!
//! `cargo bench --bench room -- [PARTICIPANTS] [SECONDS]`, 500 and 300 without. It prints how long an update takes to the board,
//! and the memory of the room.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use perflings::class::client::Http;
use perflings::class::folder::RoomFolder;
use perflings::class::link::ParticipantLink;
use perflings::class::record::{Participant, SharedWork, VERSION};

/// How often a participant says something new, as a member asks for news.
const EVERY: Duration = Duration::from_secs(2);
/// Threads that play the participants.
const PLAYERS: usize = 20;
const STAGE: &str = "broken-init";

fn main() {
    let numbers = std::env::args().filter_map(|it| it.parse::<u64>().ok());
    let numbers: Vec<u64> = numbers.collect();
    let participants = numbers.first().map_or(500, |n| *n as usize);
    let seconds = numbers.get(1).map_or(300, |n| *n);
    network(participants, Duration::from_secs(seconds));
    folder(200);
}

/// The room, ended with the benchmark.
struct Room {
    child: Child,
    address: String,
    key: String,
    code: String,
}

impl Drop for Room {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn open(dir: &std::path::Path) -> Room {
    let mut command = Command::new(env!("CARGO_BIN_EXE_perflings"));
    command.args(["room", "--listen", "127.0.0.1:0", "--json", "--dir"]);
    command
        .arg(dir)
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("perflings starts");
    let mut said = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    let mut after = |what: &str| {
        let line = said.next().expect("an address").expect("text");
        let (_, rest) = line.split_once(what).expect("an address");
        rest.rsplit_once('/')
            .map(|(at, word)| (at.to_owned(), word.to_owned()))
            .expect("a code")
    };
    let (address, code) = after("http://");
    let (_, key) = after("http://");
    Room {
        child,
        address,
        key,
        code,
    }
}

/// What each participant said and the board has not shown: the number of the update, and when it was sent.
type Sent = Vec<Mutex<VecDeque<(u32, Instant)>>>;

fn network(participants: usize, time: Duration) {
    let dir = tempfile::tempdir().expect("a folder");
    let room = open(dir.path());
    let sent: Sent = (0..participants).map(|_| Mutex::default()).collect();
    let (over, failed, updates) = (
        AtomicBool::new(false),
        AtomicUsize::new(0),
        AtomicUsize::new(0),
    );
    let delays = Mutex::new(Vec::new());
    let began = Instant::now();
    std::thread::scope(|scope| {
        let (room, sent, over, failed, updates, delays) =
            (&room, &sent, &over, &failed, &updates, &delays);
        scope.spawn(move || watch(room, sent, over, delays));
        for player in 0..PLAYERS {
            scope.spawn(move || {
                let mine = (player..participants).step_by(PLAYERS);
                let place =
                    |_| Http::new(&format!("{}/{}", room.address, room.code)).expect("an address");
                let mut mine: Vec<(usize, Http)> = mine.map(|at| (at, place(at))).collect();
                let share = EVERY / mine.len().max(1) as u32;
                let mut next = Instant::now();
                for update in 1.. {
                    for (at, place) in &mut mine {
                        std::thread::sleep(next.saturating_duration_since(Instant::now()));
                        next += share;
                        if began.elapsed() > time {
                            return;
                        }
                        sent[*at]
                            .lock()
                            .expect("whole")
                            .push_back((update, Instant::now()));
                        updates.fetch_add(1, Ordering::Relaxed);
                        if place.share(&record(*at, update)).is_err() {
                            failed.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }
            });
        }
        std::thread::sleep(time + EVERY);
        over.store(true, Ordering::Relaxed);
    });
    let mut delays = delays.into_inner().expect("whole");
    delays.sort_unstable();
    let at = |share: f64| delays[((delays.len() - 1) as f64 * share) as usize].as_millis();
    let missing: usize = sent.iter().map(|it| it.lock().expect("whole").len()).sum();
    println!(
        "network: {participants} participants, {} s, {} updates, {} failed, {missing} never shown",
        time.as_secs(),
        updates.load(Ordering::Relaxed),
        failed.load(Ordering::Relaxed),
    );
    println!(
        "  from sending to the board: median {} ms, 99th percentile {} ms, longest {} ms",
        at(0.5),
        at(0.99),
        at(1.0)
    );
    println!("  memory of the room at most: {}", memory(room.child.id()));
}

/// Follows the board's events as the page does, and notes how long each update took.
fn watch(room: &Room, sent: &Sent, over: &AtomicBool, delays: &Mutex<Vec<Duration>>) {
    let mut stream = TcpStream::connect(&room.address).expect("the room");
    let limit = Some(Duration::from_secs(15));
    stream.set_read_timeout(limit).expect("set");
    write!(
        stream,
        "GET /events/{} HTTP/1.1\r\nhost: x\r\n\r\n",
        room.key
    )
    .expect("asked");
    for line in BufReader::new(stream).lines() {
        let line = line.expect("the room answers");
        if over.load(Ordering::Relaxed) {
            return;
        }
        let Some(data) = line.strip_prefix("data: ") else {
            continue;
        };
        let now = Instant::now();
        let board: serde_json::Value = serde_json::from_str(data).expect("a board");
        for row in board["rows"].as_array().expect("rows") {
            let at: usize = row["name"]
                .as_str()
                .and_then(|it| it.parse().ok())
                .expect("a name");
            let shown = row["checks"][0].as_u64().unwrap_or(0) as u32;
            let mut sent = sent[at].lock().expect("whole");
            while sent.front().is_some_and(|(update, _)| *update <= shown) {
                if let Some((_, since)) = sent.pop_front() {
                    delays.lock().expect("whole").push(now - since);
                }
            }
        }
    }
}

fn record(at: usize, update: u32) -> Participant {
    let shared = SharedWork {
        state: "predicted".to_owned(),
        vote: Some(at % 4),
        checks: Some([update, 0]),
        ..SharedWork::default()
    };
    Participant {
        version: VERSION,
        id: format!("{at:032x}"),
        name: at.to_string(),
        sequence: u64::from(update),
        device: "cpu: a simulated one, 2 threads".to_owned(),
        here: STAGE.to_owned(),
        stages: [(STAGE.to_owned(), shared)].into(),
        ..Participant::default()
    }
}

/// The most that a process had resident.
fn memory(id: u32) -> String {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.map_or_else(|| "not known here".to_owned(), |it| it.trim().to_owned())
}

fn folder(files: usize) {
    let dir = tempfile::tempdir().expect("a folder");
    let mut folder = RoomFolder::new(dir.path().to_owned());
    let fast = RoomFolder::new(dir.path().to_owned());
    fast.open().expect("opened");
    let write = |update: u32| {
        for at in 0..files {
            fast.write_participant(&record(at, update))
                .expect("written");
        }
    };
    println!("folder: {files} files");
    let mut read = |what: &str, expected: usize| {
        let began = Instant::now();
        assert_eq!(folder.read_changed().expect("read").len(), expected);
        println!(
            "  reading with {what}: {:.2} s",
            began.elapsed().as_secs_f64()
        );
    };
    write(1);
    read("every file new", files);
    read("nothing new", 0);
    fast.write_participant(&record(0, 100)).expect("written");
    read("one file changed", 1);
    write(20);
    read("every file changed", files);
    let mut learner = RoomFolder::new(dir.path().to_owned());
    let began = Instant::now();
    learner.share(&record(3, 3)).expect("shared");
    println!(
        "  a learner's share, on a thread of its own: {:.2} s",
        began.elapsed().as_secs_f64()
    );
}
