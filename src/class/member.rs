//! A learner's membership: shares the newest record on a separate thread and returns news of the class. Nothing here delays the
//! learner; a record that could not be shared is replaced by the next one, because each record is the whole state. A presenter gets
//! the board instead, and sends the instructor's requests.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::Builder;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::link::{InstructorLink, ParticipantLink, RoomError};
use super::news::RoomNews;
use super::record::{ClassState, InstructorRequest, Participant, VERSION};

/// How often the member asks the class for news.
const ASK: Duration = Duration::from_secs(2);
/// How often a participant sends a heartbeat when nothing changed.
const ALIVE: Duration = Duration::from_secs(15);
/// Wait after a failure; it doubles with each failure up to the second value.
const AGAIN: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(16)];
/// How often a presenter reads the board.
const LOOK: Duration = Duration::from_millis(500);
/// How long quitting may wait for the room.
const FAREWELL: Duration = Duration::from_millis(700);

/// A membership; dropping it tells the room that the learner left.
pub struct Member {
    records: Option<Sender<Participant>>,
    orders: Option<Sender<InstructorRequest>>,
    news: Receiver<RoomNews>,
    ended: Receiver<()>,
}

impl Member {
    pub fn join(place: Box<dyn ParticipantLink>) -> std::io::Result<Self> {
        let (records, wanted) = channel();
        let (teller, news) = channel();
        let (ending, ended) = channel();
        let thread = Builder::new().name("room-member".to_owned());
        thread.spawn(move || {
            Sharer::new(place, teller).go_on(&wanted);
            let _ = ending.send(());
        })?;
        Ok(Self {
            records: Some(records),
            orders: None,
            news,
            ended,
        })
    }

    /// Joins the room as its instructor's presenter.
    pub fn teach(seat: Box<dyn InstructorLink>) -> std::io::Result<Self> {
        let (orders, wanted) = channel();
        let (teller, news) = channel();
        let (ending, ended) = channel();
        let thread = Builder::new().name("room-presenter".to_owned());
        thread.spawn(move || {
            look(seat, &wanted, &teller);
            let _ = ending.send(());
        })?;
        Ok(Self {
            records: None,
            orders: Some(orders),
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

    pub fn next_news(&self) -> Option<RoomNews> {
        self.news.try_recv().ok()
    }

    /// Leaves without waiting for the room.
    pub fn leave(mut self) {
        (self.records, self.orders) = (None, None);
        self.ended = channel().1;
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        (self.records, self.orders) = (None, None);
        let _ = self.ended.recv_timeout(FAREWELL);
    }
}

/// Sends requests to the room and returns its board.
fn look(
    mut seat: Box<dyn InstructorLink>,
    wanted: &Receiver<InstructorRequest>,
    teller: &Sender<RoomNews>,
) {
    let mut told = None;
    loop {
        let done = match wanted.recv_timeout(LOOK) {
            Ok(order) => seat.order(&order).and_then(|()| seat.board()),
            Err(RecvTimeoutError::Timeout) => seat.board(),
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let again = !matches!(done, Err(RoomError::Never(_)));
        let news = match done {
            Ok(board) => RoomNews::Board(Box::new(board)),
            Err(RoomError::Later(why) | RoomError::Never(why)) => RoomNews::Lost { why, again },
        };
        if told.as_ref() != Some(&news) {
            let _ = teller.send(news.clone());
            told = Some(news);
        }
        if !again {
            return;
        }
    }
}

struct Sharer {
    place: Box<dyn ParticipantLink>,
    teller: Sender<RoomNews>,
    /// The shared record, and when it changed; then the time of the last heartbeat.
    record: Option<(Participant, Instant)>,
    said: Instant,
    sequence: u64,
    /// The last news sent to the screen.
    told: Option<RoomNews>,
    wait: Duration,
}

impl Sharer {
    fn new(place: Box<dyn ParticipantLink>, teller: Sender<RoomNews>) -> Self {
        // The sequence continues when the program starts again.
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            place,
            teller,
            record: None,
            said: Instant::now(),
            sequence: since.map_or(0, |it| it.as_millis() as u64),
            told: None,
            wait: Duration::ZERO,
        }
    }

    fn go_on(&mut self, wanted: &Receiver<Participant>) {
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
                    self.say_anew();
                    // A new record does not shorten the wait for a room that does not answer.
                    if self.failing() {
                        continue;
                    }
                }
                Err(RecvTimeoutError::Timeout) if self.record.is_none() => continue,
                Err(RecvTimeoutError::Timeout) if self.said.elapsed() > ALIVE => self.say_anew(),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.leave(),
            }
            match self.share() {
                Ok(class) => {
                    self.wait = ASK;
                    self.tell(RoomNews::Class(Box::new(class)));
                }
                Err(RoomError::Later(why)) => {
                    self.wait = match self.failing() {
                        true => (self.wait * 2).min(AGAIN[1]),
                        false => AGAIN[0],
                    };
                    self.tell(RoomNews::Lost { why, again: true });
                }
                Err(RoomError::Never(why)) => {
                    return self.tell(RoomNews::Lost { why, again: false });
                }
            }
            due = Instant::now() + self.wait;
        }
    }

    fn failing(&self) -> bool {
        matches!(self.told, Some(RoomNews::Lost { .. }))
    }

    fn say_anew(&mut self) {
        self.sequence += 1;
        self.said = Instant::now();
    }

    fn share(&mut self) -> Result<ClassState, RoomError> {
        let Some((record, since)) = &self.record else {
            return Err(RoomError::Later("nothing to share yet".to_owned()));
        };
        let mut record = record.clone();
        record.version = VERSION;
        record.sequence = self.sequence;
        // The duration counts up to the last heartbeat, so the record does not change until the next one.
        let later = self.said.saturating_duration_since(*since);
        record.here_s += later.as_secs();
        self.place.share(&record)
    }

    fn leave(&mut self) {
        if let Some((record, _)) = &mut self.record
            && matches!(self.told, Some(RoomNews::Class(_)))
        {
            (record.left, record.raised) = (true, false);
            self.say_anew();
            let _ = self.share();
        }
    }

    fn tell(&mut self, news: RoomNews) {
        if self.told.as_ref() != Some(&news) {
            // The screen may have ended before this thread.
            let _ = self.teller.send(news.clone());
            self.told = Some(news);
        }
    }
}

/// The participant's id, which is drawn once and kept in the course's state folder. Over the network knowing it permits to speak for
/// the participant; in a folder everybody reads it in a file's name, so it is another one there.
pub fn identity(state: Option<&std::path::Path>, network: bool) -> String {
    let name = match network {
        true => "participant-network",
        false => "participant",
    };
    let path = state.map(|dir| dir.join(name));
    let kept = path
        .as_ref()
        .and_then(|path| crate::files::read(path, 64).ok());
    let kept = kept.and_then(|bytes| String::from_utf8(bytes).ok());
    let is_one = |id: &String| id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit());
    if let Some(id) = kept.filter(is_one) {
        return id;
    }
    let id = super::server::drawn(16)
        .bytes()
        .map(|b| format!("{b:02x}"))
        .collect::<String>();
    // If the id cannot be written, the next start is another participant.
    if let Some(path) = path {
        let _ = std::fs::create_dir_all(crate::files::folder(&path));
        let _ = crate::files::write(&path, id.as_bytes());
    }
    id
}
