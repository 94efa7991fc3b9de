//! A learner's membership: shares the newest record on a thread of its own and brings news of the class. Nothing here holds the
//! learner up; what could not be shared is shared later, because each record is the whole state. A presenter has a seat in the room
//! instead: it brings the board and takes orders there.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::Builder;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::link::{InstructorLink, ParticipantLink, RoomError};
use super::news::RoomNews;
use super::record::{ClassState, InstructorRequest, Participant, VERSION};

/// How often the class is asked for news.
const ASK: Duration = Duration::from_secs(2);
/// How often a participant gives a sign of life although nothing changed.
const ALIVE: Duration = Duration::from_secs(15);
/// How long to wait after a failure; twice as long after each, up to the second.
const AGAIN: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(16)];
/// How often a presenter looks at the board.
const LOOK: Duration = Duration::from_millis(500);
/// How long quitting may take to tell the room.
const FAREWELL: Duration = Duration::from_millis(700);

/// The membership as long as this lives; dropped, it tells the room that the learner left.
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

    /// Takes a seat in the room as its instructor's presenter.
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

    /// Asks the class for something.
    pub fn order(&self, order: InstructorRequest) {
        if let Some(orders) = &self.orders {
            let _ = orders.send(order);
        }
    }

    /// Shares this from now on.
    pub fn share(&self, record: Participant) {
        if let Some(records) = &self.records {
            // The thread ends where the room is of no use; the learner goes on alone.
            let _ = records.send(record);
        }
    }

    pub fn next_news(&self) -> Option<RoomNews> {
        self.news.try_recv().ok()
    }

    /// Leaves without waiting for the room to hear it.
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

/// Takes orders to the room and brings its board.
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
    /// What is shared, when it came, and when it was last said anew.
    record: Option<(Participant, Instant)>,
    said: Instant,
    sequence: u64,
    /// What the screen was told last.
    told: Option<RoomNews>,
    wait: Duration,
}

impl Sharer {
    fn new(place: Box<dyn ParticipantLink>, teller: Sender<RoomNews>) -> Self {
        // A program that is started again goes on counting.
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
                    // A room that does not answer is not asked more often because there is more to say.
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
        // The time is that of the last sign of life, so that a record says the same until the next one.
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
            // The screen is gone before this thread.
            let _ = self.teller.send(news.clone());
            self.told = Some(news);
        }
    }
}

/// The participant's id, drawn at the first time and kept in the course's state folder.
pub fn identity(state: Option<&std::path::Path>) -> String {
    let path = state.map(|dir| dir.join("participant"));
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
    // Where it cannot be kept, the next start is another participant.
    if let Some(path) = path {
        let _ = std::fs::create_dir_all(crate::files::folder(&path));
        let _ = crate::files::write(&path, id.as_bytes());
    }
    id
}
