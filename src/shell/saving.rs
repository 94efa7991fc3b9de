//! Saves progress on a thread of its own, so that neither a lock nor a slow disk holds up the screen. The thread tries to save a change again
//! until it succeeds.
//!
//! The thread knows the last contents of the file and writes them again if the file is lost. A damaged file is set aside, and the copy
//! from before the last change takes its place.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use crate::app::Message;
use crate::course::save_file::{Busy, Progress, ProgressChange, save_or_restore};

/// The time to wait before another attempt.
pub(super) const AGAIN: Duration = Duration::from_secs(1);

/// The screen's end of the thread that saves progress.
pub(super) struct Saving {
    changes: Sender<ProgressChange>,
    news: Receiver<Message>,
    thread: JoinHandle<Option<String>>,
}

impl Saving {
    /// Starts the thread. It saves into a course's state folder, in which `known` is the present progress.
    pub(super) fn begin(dir: PathBuf, known: Progress) -> std::io::Result<Self> {
        let (changes, wanted) = channel();
        let (outbox, news) = channel();
        let mut saver = SavingThread {
            dir,
            known,
            unsaved: Vec::new(),
            why: None,
            news: outbox,
        };
        let thread = Builder::new()
            .name("saving".to_owned())
            .spawn(move || saver.run(&wanted))?;
        Ok(Self {
            changes,
            news,
            thread,
        })
    }

    /// Hands a change to the thread.
    pub(super) fn keep(&self, change: ProgressChange) {
        // The thread outlives this sender, so sending cannot fail.
        let _ = self.changes.send(change);
    }

    /// Returns the next message for the screen, or `None` if there is none.
    pub(super) fn next_message(&self) -> Option<Message> {
        self.news.try_recv().ok()
    }

    /// Saves the changes that are left. Returns the reason if that was not possible.
    pub(super) fn close(self) -> Option<String> {
        drop(self.changes);
        self.thread.join().ok().flatten()
    }
}

/// The state of the thread.
struct SavingThread {
    /// The state folder of the course.
    dir: PathBuf,
    /// The last contents of the file, in case it is lost.
    known: Progress,
    /// The changes that are not in the file yet, in their order.
    unsaved: Vec<ProgressChange>,
    /// The reason why the last attempt failed.
    why: Option<String>,
    news: Sender<Message>,
}

impl SavingThread {
    /// Saves changes until the screen's end is closed. Returns the reason why the last changes could not be saved.
    fn run(&mut self, wanted: &Receiver<ProgressChange>) -> Option<String> {
        loop {
            let next = if self.unsaved.is_empty() {
                wanted.recv().map_err(|_| RecvTimeoutError::Disconnected)
            } else {
                wanted.recv_timeout(AGAIN)
            };
            match next {
                Ok(change) => {
                    for change in std::iter::once(change).chain(wanted.try_iter()) {
                        self.unsaved.retain(|earlier| !change.replaces(earlier));
                        self.unsaved.push(change);
                    }
                    self.save(Busy::Refuse);
                }
                Err(RecvTimeoutError::Timeout) => self.save(Busy::Refuse),
                Err(RecvTimeoutError::Disconnected) => {
                    if !self.unsaved.is_empty() {
                        self.save(Busy::GoOn);
                    }
                    return self.why.take();
                }
            }
        }
    }

    /// Tries to save all changes, and sends a message if progress has become unsaved or saved.
    fn save(&mut self, busy: Busy) {
        let saved = save_or_restore(&self.dir, &self.known, &self.unsaved, busy);
        let why = match saved {
            Ok((progress, damage)) => {
                self.known = progress;
                self.unsaved.clear();
                if let Some(damage) = damage {
                    let text = damage.to_string();
                    self.send(Message::Notice {
                        text,
                        warning: true,
                    });
                }
                None
            }
            Err(error) => Some(error.message),
        };
        if why != self.why {
            self.send(Message::ProgressUnsaved { why: why.clone() });
        }
        self.why = why;
    }

    fn send(&self, message: Message) {
        // At the end of the program the screen may be gone before this thread.
        let _ = self.news.send(message);
    }
}
