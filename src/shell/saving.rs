//! Keeps progress on a thread of its own, so that neither a lock nor a slow disk holds up the screen. What cannot be saved
//! is tried again until it can.
//!
//! This thread knows what the file said last, and writes it again where the file is lost. A damaged file is set aside, and the copy from before the
//! last change takes its place.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use crate::app::Message;
use crate::course::save_file::{Busy, Progress, ProgressChange, save_knowing};

/// How long to wait before another attempt.
pub(super) const AGAIN: Duration = Duration::from_secs(1);

/// The progress of this session on its way to the disk.
pub(super) struct Saving {
    changes: Sender<ProgressChange>,
    news: Receiver<Message>,
    thread: JoinHandle<Option<String>>,
}

impl Saving {
    /// Saves into a course's state folder; `known` is what it holds.
    pub(super) fn begin(dir: PathBuf, known: Progress) -> std::io::Result<Self> {
        let (changes, wanted) = channel();
        let (teller, news) = channel();
        let mut saver = SavingThread {
            dir,
            known,
            unsaved: Vec::new(),
            why: None,
            news: teller,
        };
        let thread = Builder::new().name("saving".to_owned());
        let thread = thread.spawn(move || saver.run(&wanted))?;
        Ok(Self {
            changes,
            news,
            thread,
        })
    }

    pub(super) fn keep(&self, change: ProgressChange) {
        // The thread ends after its sender only.
        let _ = self.changes.send(change);
    }

    /// What the screen is told next.
    pub(super) fn next_message(&self) -> Option<Message> {
        self.news.try_recv().ok()
    }

    /// Saves what is left; the result says why that was not possible.
    pub(super) fn close(self) -> Option<String> {
        drop(self.changes);
        self.thread.join().ok().flatten()
    }
}

struct SavingThread {
    dir: PathBuf,
    /// What the file said last, for the case that it is lost.
    known: Progress,
    unsaved: Vec<ProgressChange>,
    /// Why the last attempt failed.
    why: Option<String>,
    news: Sender<Message>,
}

impl SavingThread {
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

    fn save(&mut self, busy: Busy) {
        let saved = save_knowing(&self.dir, &self.known, &self.unsaved, busy);
        let why = match saved {
            Ok((progress, damage)) => {
                self.known = progress;
                self.unsaved.clear();
                if let Some(damage) = damage {
                    let text = damage.to_string();
                    self.tell(Message::Notice {
                        text,
                        warning: true,
                    });
                }
                None
            }
            Err(error) => Some(error.what),
        };
        if why != self.why {
            let why = why.clone();
            self.tell(Message::ProgressUnsaved { why });
        }
        self.why = why;
    }

    fn tell(&self, message: Message) {
        // The screen is gone before this thread.
        let _ = self.news.send(message);
    }
}
