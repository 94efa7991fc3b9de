//! The membership of a running program in a room. A learner's program shares its newest record, and gets the state of the class as news.
//! A presenter's program sends the instructor's orders, and gets the board as news. A thread talks to the room, so a slow network delays
//! nobody. A record that could not be shared is replaced by the next one, because each record is the whole state.

use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::Builder;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::link::{InstructorLink, ParticipantLink, RoomError, RoomNews};
use super::record::{ClassState, InstructorRequest, Participant, VERSION, is_id};
use super::secrets::random_word;
use crate::files;

/// The interval at which a participant shares the record again, to get the state of the class. After the first failure the interval doubles
/// with each further one.
const SHARE_INTERVAL: Duration = Duration::from_secs(2);
/// The interval at which a record that has not changed counts as a new heartbeat.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);
/// The longest wait after a failure.
const LONGEST_WAIT: Duration = Duration::from_secs(16);
/// The interval at which a presenter reads the board.
const BOARD_INTERVAL: Duration = Duration::from_millis(500);
/// The longest time that quitting waits for the room.
const FAREWELL_TIMEOUT: Duration = Duration::from_millis(700);

/// A membership in a room. Dropping it tells the room that the learner has left.
pub struct Member {
    /// The way to the thread of a participant; `None` for a presenter.
    records: Option<Sender<Participant>>,
    /// The way to the thread of a presenter; `None` for a participant.
    orders: Option<Sender<InstructorRequest>>,
    news: Receiver<RoomNews>,
    /// Receives a value when the thread has ended.
    ended: Receiver<()>,
}

impl Member {
    /// Joins the room as a participant.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn join(link: Box<dyn ParticipantLink>) -> std::io::Result<Self> {
        let (sender, records) = channel();
        let mut member = Self::start("room-member", move |news| {
            Sharer::new(link, news).run(&records);
        })?;
        member.records = Some(sender);
        Ok(member)
    }

    /// Joins the room as the instructor's presenter, which sees the board and sends orders.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn teach(link: Box<dyn InstructorLink>) -> std::io::Result<Self> {
        let (sender, orders) = channel();
        let mut member = Self::start("room-presenter", move |news| present(link, &orders, news))?;
        member.orders = Some(sender);
        Ok(member)
    }

    fn start(name: &str, run: impl FnOnce(NewsSender) + Send + 'static) -> std::io::Result<Self> {
        let (sender, news) = channel();
        let (ending, ended) = channel();
        let thread = Builder::new().name(name.to_owned());
        thread.spawn(move || {
            run(NewsSender { sender, last: None });
            let _ = ending.send(());
        })?;
        Ok(Self {
            records: None,
            orders: None,
            news,
            ended,
        })
    }

    /// Sends an order of the instructor. A participant's membership sends none.
    pub fn order(&self, order: InstructorRequest) {
        if let Some(orders) = &self.orders {
            let _ = orders.send(order);
        }
    }

    /// Shares this record from now on. A presenter's membership shares none.
    pub fn share(&self, record: Participant) {
        if let Some(records) = &self.records {
            // The thread has ended if the room cannot be used. The learner goes on without it.
            let _ = records.send(record);
        }
    }

    /// Returns the next news; `None` if there are none at present.
    pub fn next_news(&self) -> Option<RoomNews> {
        self.news.try_recv().ok()
    }

    /// Leaves without waiting for the room.
    pub fn leave(mut self) {
        self.end();
        self.ended = channel().1;
    }

    /// Makes the thread end, by closing the ways to it.
    fn end(&mut self) {
        self.records = None;
        self.orders = None;
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.end();
        let _ = self.ended.recv_timeout(FAREWELL_TIMEOUT);
    }
}

/// Sends news to the screen. News that equal the last ones are not sent.
struct NewsSender {
    sender: Sender<RoomNews>,
    last: Option<RoomNews>,
}

impl NewsSender {
    fn send(&mut self, news: RoomNews) {
        if self.last.as_ref() != Some(&news) {
            // The screen may have ended before this thread.
            let _ = self.sender.send(news.clone());
            self.last = Some(news);
        }
    }
}

/// Sends each of the `orders` to the room and its board to the screen, until the orders end or the room cannot be used.
fn present(
    mut link: Box<dyn InstructorLink>,
    orders: &Receiver<InstructorRequest>,
    mut news: NewsSender,
) {
    loop {
        let board = match orders.recv_timeout(BOARD_INTERVAL) {
            Ok(order) => link.order(&order).and_then(|()| link.board()),
            Err(RecvTimeoutError::Timeout) => link.board(),
            Err(RecvTimeoutError::Disconnected) => return,
        };
        match board {
            Ok(board) => news.send(RoomNews::Board(Box::new(board))),
            Err(error @ RoomError::Later(_)) => news.send(RoomNews::Lost(error)),
            Err(error @ RoomError::Never(_)) => return news.send(RoomNews::Lost(error)),
        }
    }
}

/// Shares the record of a participant again and again.
struct Sharer {
    link: Box<dyn ParticipantLink>,
    news: NewsSender,
    /// The newest record, and the time at which it came; `None` before the first one.
    record: Option<(Participant, Instant)>,
    /// The time of the last heartbeat.
    last_beat: Instant,
    /// The number of the last heartbeat.
    sequence: u64,
    /// The time from one share to the next; it grows while the room cannot be reached.
    wait: Duration,
}

impl Sharer {
    fn new(link: Box<dyn ParticipantLink>, news: NewsSender) -> Self {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            link,
            news,
            record: None,
            last_beat: Instant::now(),
            // The time, so that the numbers keep growing when the program starts again.
            sequence: since_1970.map_or(0, |duration| duration.as_millis() as u64),
            wait: SHARE_INTERVAL,
        }
    }

    /// Shares the newest of the `records` until they end or the room cannot be used.
    fn run(&mut self, records: &Receiver<Participant>) {
        let mut due = Instant::now();
        loop {
            let wait = match self.record {
                Some(_) => due.saturating_duration_since(Instant::now()),
                None => SHARE_INTERVAL,
            };
            match records.recv_timeout(wait) {
                Ok(first) => {
                    let newest = records.try_iter().last().unwrap_or(first);
                    self.record = Some((newest, Instant::now()));
                    self.beat();
                    // A new record does not shorten the wait for a room that does not answer.
                    if self.is_failing() {
                        continue;
                    }
                }
                Err(RecvTimeoutError::Timeout) if self.record.is_none() => continue,
                Err(RecvTimeoutError::Timeout) => {
                    if self.last_beat.elapsed() > HEARTBEAT_INTERVAL {
                        self.beat();
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return self.leave(),
            }
            match self.share() {
                Ok(class) => {
                    self.wait = SHARE_INTERVAL;
                    self.news.send(RoomNews::Class(Box::new(class)));
                }
                Err(error @ RoomError::Later(_)) => {
                    if self.is_failing() {
                        self.wait = (self.wait * 2).min(LONGEST_WAIT);
                    }
                    self.news.send(RoomNews::Lost(error));
                }
                Err(error @ RoomError::Never(_)) => return self.news.send(RoomNews::Lost(error)),
            }
            due = Instant::now() + self.wait;
        }
    }

    /// Returns true if the room could not be reached last time.
    fn is_failing(&self) -> bool {
        matches!(self.news.last, Some(RoomNews::Lost(_)))
    }

    /// Makes the next record a new heartbeat.
    fn beat(&mut self) {
        self.sequence += 1;
        self.last_beat = Instant::now();
    }

    /// Sends the newest record once.
    fn share(&mut self) -> Result<ClassState, RoomError> {
        let Some((record, changed)) = &self.record else {
            return Err(RoomError::Later("nothing to share yet".to_owned()));
        };
        // The duration counts up to the last heartbeat, so the record does not change until the next one.
        let unchanged = self.last_beat.saturating_duration_since(*changed);
        self.link.share(&Participant {
            version: VERSION,
            sequence: self.sequence,
            open_s: record.open_s + unchanged.as_secs(),
            ..record.clone()
        })
    }

    /// Tells the room that the participant has left, if the room could be reached last time.
    fn leave(&mut self) {
        if let Some((record, _)) = &mut self.record
            && matches!(self.news.last, Some(RoomNews::Class(_)))
        {
            record.left = true;
            record.raised = false;
            self.beat();
            let _ = self.share();
        }
    }
}

/// Returns the id of this participant, which is drawn at random once and then kept in `state`, the course's state folder. Whoever knows
/// the id can replace the participant's record over the network. In a shared folder everybody can read the id in the name of a file, so a
/// participant has another id there.
pub fn identity(state: Option<&Path>, network: bool) -> String {
    let name = if network {
        "participant-network"
    } else {
        "participant"
    };
    let path = state.map(|dir| dir.join(name));
    if let Some(path) = &path
        && let Ok(bytes) = files::read(path, 64)
        && let Ok(id) = String::from_utf8(bytes)
        && is_id(&id)
    {
        return id;
    }
    let id: String = random_word(16)
        .bytes()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    // If the file cannot be written, the program is another participant when it starts again.
    if let Some(path) = path {
        let _ = std::fs::create_dir_all(files::folder(&path));
        let _ = files::write(&path, id.as_bytes());
    }
    id
}
