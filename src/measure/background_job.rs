//! One job behind the screen, in a thread of its own.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::{Builder, JoinHandle};

/// A job in progress. Dropping it gives it up, and waits until its thread has ended the engine that it has.
pub struct BackgroundJob<M> {
    inbox: Receiver<M>,
    given_up: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// Says that the job ended without a result.
    broke_off: Option<M>,
}

impl<M: Send + 'static> BackgroundJob<M> {
    /// Begins. `work` gets the flag that tells it to stop, at which it looks several times a second, and sends its messages; the last one is
    /// its result.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn begin(
        thread: Builder,
        work: impl FnOnce(Arc<AtomicBool>, Sender<M>) + Send + 'static,
        broke_off: M,
    ) -> io::Result<Self> {
        let (outbox, inbox) = channel();
        let given_up = Arc::new(AtomicBool::new(false));
        let stop = given_up.clone();
        let thread = thread.spawn(move || work(stop, outbox))?;
        Ok(Self {
            inbox,
            given_up,
            thread: Some(thread),
            broke_off: Some(broke_off),
        })
    }

    /// Nobody waits for its end: it does not look at the flag.
    #[must_use]
    pub fn detached(mut self) -> Self {
        self.thread = None;
        self
    }

    /// What is new.
    pub fn next_message(&mut self) -> Option<M> {
        match self.inbox.try_recv() {
            Ok(message) => Some(message),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => self.broke_off.take(),
        }
    }

    /// The next message, waiting for it; none after the last one.
    pub fn wait(&mut self) -> Option<M> {
        let heard = self.inbox.recv().ok();
        heard.or_else(|| self.broke_off.take())
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
    fn a_job_that_breaks_off_says_so_once_and_one_that_is_dropped_is_told_to_stop() {
        let thread = || Builder::new().name("job".to_owned());
        let ends = |_, outbox: Sender<u32>| outbox.send(1).unwrap_or_default();
        let mut job = BackgroundJob::begin(thread(), ends, 2).expect("a thread");
        let heard = [(); 3].map(|()| job.wait());
        assert_eq!(heard, [Some(1), Some(2), None]);

        let (ended, told) = channel();
        let waits = move |stop: Arc<AtomicBool>, _: Sender<u32>| {
            while !stop.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            let _ = ended.send(());
        };
        let mut job = BackgroundJob::begin(thread(), waits, 2).expect("a thread");
        assert_eq!(job.next_message(), None);
        drop(job);
        assert_eq!(told.try_recv(), Ok(()), "dropping it waits for its thread");
    }
}
