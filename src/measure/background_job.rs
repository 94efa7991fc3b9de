//! One job behind the screen, in a thread of its own: a measurement, a kernel check, a text to read. The screen polls its messages.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::{Builder, JoinHandle};

/// A job in progress. Dropping it stops the job and waits for the end of its thread, which also ends the job's engine.
pub struct BackgroundJob<M> {
    inbox: Receiver<M>,
    given_up: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// The message that is returned once the thread has ended. `None` after that.
    broke_off: Option<M>,
}

impl<M: Send + 'static> BackgroundJob<M> {
    /// Starts `work` in a thread. `work` receives a stop flag, which it has to check several times a second, and a sender for its messages, of
    /// which the last one is its result. `broke_off` is the message after the thread has ended; a receiver that already has the result drops it.
    ///
    /// # Errors
    /// Returns an error if the thread cannot be started.
    pub fn begin(
        thread: Builder,
        work: impl FnOnce(Arc<AtomicBool>, Sender<M>) + Send + 'static,
        broke_off: M,
    ) -> io::Result<Self> {
        let (outbox, inbox) = channel();
        let given_up = Arc::new(AtomicBool::new(false));
        let stop = given_up.clone();
        let handle = thread.spawn(move || work(stop, outbox))?;
        Ok(Self {
            inbox,
            given_up,
            thread: Some(handle),
            broke_off: Some(broke_off),
        })
    }

    /// Detaches the thread, so that dropping the job does not wait for it. For work that does not check the flag.
    #[must_use]
    pub fn detached(mut self) -> Self {
        self.thread = None;
        self
    }

    /// Returns the next message. `None` if there is none yet, and after the last one.
    pub fn next_message(&mut self) -> Option<M> {
        match self.inbox.try_recv() {
            Ok(message) => Some(message),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => self.broke_off.take(),
        }
    }

    /// Waits for the next message. `None` after the last one.
    pub fn wait(&mut self) -> Option<M> {
        self.inbox.recv().ok().or_else(|| self.broke_off.take())
    }
}

impl<M> Drop for BackgroundJob<M> {
    fn drop(&mut self) {
        self.given_up.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_ends_without_a_result_sends_its_last_message_once() {
        let ends = |_, outbox: Sender<u32>| outbox.send(1).unwrap_or_default();
        let mut job = BackgroundJob::begin(Builder::new(), ends, 2).expect("a thread");
        assert_eq!(job.wait(), Some(1));
        assert_eq!(job.wait(), Some(2));
        assert_eq!(job.wait(), None);
    }

    #[test]
    fn dropping_a_job_stops_it_and_waits_for_its_thread() {
        let (ended, end) = channel();
        let waits = move |stop: Arc<AtomicBool>, _: Sender<u32>| {
            while !stop.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            let _ = ended.send(());
        };
        let mut job = BackgroundJob::begin(Builder::new(), waits, 2).expect("a thread");
        assert_eq!(job.next_message(), None);
        drop(job);
        assert_eq!(end.try_recv(), Ok(()));
    }
}
