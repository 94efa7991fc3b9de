//! A learner's membership: shares the newest record on a separate thread and returns news of the class. Nothing here delays the
//! learner; a record that could not be shared is replaced by the next one, because each record is the whole state. A presenter gets
//! the board instead, and sends the instructor's requests.

use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::Builder;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::link::{InstructorLink, ParticipantLink, RoomError, RoomNews};
use super::record::{ClassState, InstructorRequest, Participant, VERSION, is_id};
use super::secrets::drawn;
use crate::files;

/// The interval at which a participant asks the class for news.
const ASK: Duration = Duration::from_secs(2);
/// The interval at which a participant sends a heartbeat when nothing changed.
const ALIVE: Duration = Duration::from_secs(15);
/// The wait after the first failure. It doubles with each further failure.
const FIRST_WAIT: Duration = Duration::from_secs(2);
/// The longest wait after a failure.
const LONGEST_WAIT: Duration = Duration::from_secs(16);
/// The interval at which a presenter reads the board.
const LOOK: Duration = Duration::from_millis(500);
/// The time for which quitting may wait for the room.
const FAREWELL: Duration = Duration::from_millis(700);

/// A membership; dropping it tells the room that the learner left.
pub struct Member {
    records: Option<Sender<Participant>>,
    orders: Option<Sender<InstructorRequest>>,
    news: Receiver<RoomNews>,
    /// Hears when the thread has ended.
    ended: Receiver<()>,
}

impl Member {
    /// Joins the room as a participant.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn join(link: Box<dyn ParticipantLink>) -> std::io::Result<Self> {
        let (records, wanted) = channel();
        let mut member = Self::start("room-member", move |news| {
            Sharer::new(link, news).run(&wanted);
        })?;
        member.records = Some(records);
        Ok(member)
    }

    /// Joins the room as its instructor's presenter.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn teach(link: Box<dyn InstructorLink>) -> std::io::Result<Self> {
        let (orders, wanted) = channel();
        let mut member = Self::start("room-presenter", move |news| present(link, &wanted, news))?;
        member.orders = Some(orders);
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

    /// Sends a request of the instructor.
    pub fn order(&self, order: InstructorRequest) {
        if let Some(orders) = &self.orders {
            let _ = orders.send(order);
        }
    }

    /// Shares this record from now on.
    pub fn share(&self, record: Participant) {
        if let Some(records) = &self.records {
            // The thread has ended if the room is unusable; the learner continues alone.
            let _ = records.send(record);
        }
    }

    /// Returns the next news; `None` if there are none.
    pub fn next_news(&self) -> Option<RoomNews> {
        self.news.try_recv().ok()
    }

    /// Leaves without waiting for the room.
    pub fn leave(mut self) {
        self.end();
        self.ended = channel().1;
    }

    /// Lets the thread end.
    fn end(&mut self) {
        self.records = None;
        self.orders = None;
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.end();
        let _ = self.ended.recv_timeout(FAREWELL);
    }
}

/// Sends news to the screen, each once.
struct NewsSender {
    sender: Sender<RoomNews>,
    last: Option<RoomNews>,
}

impl NewsSender {
    fn tell(&mut self, news: RoomNews) {
        if self.last.as_ref() != Some(&news) {
            // The screen may have ended before this thread.
            let _ = self.sender.send(news.clone());
            self.last = Some(news);
        }
    }
}

/// Sends orders to the room, and returns its board as news.
fn present(
    mut link: Box<dyn InstructorLink>,
    wanted: &Receiver<InstructorRequest>,
    mut news: NewsSender,
) {
    loop {
        let board = match wanted.recv_timeout(LOOK) {
            Ok(order) => link.order(&order).and_then(|()| link.board()),
            Err(RecvTimeoutError::Timeout) => link.board(),
            Err(RecvTimeoutError::Disconnected) => return,
        };
        match board {
            Ok(board) => news.tell(RoomNews::Board(Box::new(board))),
            Err(error @ RoomError::Later(_)) => news.tell(error.into()),
            Err(error @ RoomError::Never(_)) => return news.tell(error.into()),
        }
    }
}

/// Shares the record of a participant.
struct Sharer {
    link: Box<dyn ParticipantLink>,
    news: NewsSender,
    /// The shared record, and the time at which it changed.
    record: Option<(Participant, Instant)>,
    /// The time of the last heartbeat.
    beat: Instant,
    /// The number of the last heartbeat.
    sequence: u64,
    /// The time until the record is shared again.
    wait: Duration,
}

impl Sharer {
    fn new(link: Box<dyn ParticipantLink>, news: NewsSender) -> Self {
        // The sequence continues when the program starts again.
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            link,
            news,
            record: None,
            beat: Instant::now(),
            sequence: now.map_or(0, |since_1970| since_1970.as_millis() as u64),
            wait: Duration::ZERO,
        }
    }

    fn run(&mut self, wanted: &Receiver<Participant>) {
        let mut due = Instant::now();
        loop {
            let wait = match self.record {
                Some(_) => due.saturating_duration_since(Instant::now()),
                None => ASK,
            };
            match wanted.recv_timeout(wait) {
                Ok(first) => {
                    let newest = wanted.try_iter().last().unwrap_or(first);
                    self.record = Some((newest, Instant::now()));
                    self.beat();
                    // A new record does not shorten the wait for a room that does not answer.
                    if self.is_failing() {
                        continue;
                    }
                }
                Err(RecvTimeoutError::Timeout) if self.record.is_none() => continue,
                Err(RecvTimeoutError::Timeout) if self.beat.elapsed() > ALIVE => self.beat(),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.leave(),
            }
            match self.share() {
                Ok(class) => {
                    self.wait = ASK;
                    self.news.tell(RoomNews::Class(Box::new(class)));
                }
                Err(error @ RoomError::Later(_)) => {
                    self.wait = if self.is_failing() {
                        (self.wait * 2).min(LONGEST_WAIT)
                    } else {
                        FIRST_WAIT
                    };
                    self.news.tell(error.into());
                }
                Err(error @ RoomError::Never(_)) => return self.news.tell(error.into()),
            }
            due = Instant::now() + self.wait;
        }
    }

    fn is_failing(&self) -> bool {
        matches!(self.news.last, Some(RoomNews::Lost { .. }))
    }

    /// Makes the next record a new heartbeat.
    fn beat(&mut self) {
        self.sequence += 1;
        self.beat = Instant::now();
    }

    fn share(&mut self) -> Result<ClassState, RoomError> {
        let Some((record, changed)) = &self.record else {
            return Err(RoomError::Later("nothing to share yet".to_owned()));
        };
        let mut record = record.clone();
        record.version = VERSION;
        record.sequence = self.sequence;
        // The duration counts up to the last heartbeat, so the record does not change until the next one.
        let unchanged = self.beat.saturating_duration_since(*changed);
        record.here_s += unchanged.as_secs();
        self.link.share(&record)
    }

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

/// Returns the id of the participant, which is drawn once and kept in the course's state folder. Over the network knowing it permits
/// to speak for the participant; in a folder everybody reads it in a file's name, so it is another one there.
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
    let word = drawn(16);
    let id: String = word.bytes().map(|byte| format!("{byte:02x}")).collect();
    // If the id cannot be written, the next start is another participant.
    if let Some(path) = path {
        let _ = std::fs::create_dir_all(files::folder(&path));
        let _ = files::write(&path, id.as_bytes());
    }
    id
}
