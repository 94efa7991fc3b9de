//! One job behind the screen, in a thread of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::{Builder, JoinHandle};

use anyhow::{Context, Result};

/// A job in progress. Dropping it gives it up, and waits until its thread has ended the engine that it has.
pub struct Job<M> {
    inbox: Receiver<M>,
    given_up: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// Makes the message that says that the job ended without a result.
    broke_off: Box<dyn Fn() -> M>,
}

impl<M: Send + 'static> Job<M> {
    /// Begins. `work` gets the flag that tells it to stop, at which it looks several times a second, and sends its messages; the last one is
    /// its result.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn begin(
        name: &str,
        work: impl FnOnce(Arc<AtomicBool>, Sender<M>) + Send + 'static,
        broke_off: impl Fn() -> M + 'static,
    ) -> Result<Self> {
        Self::on(Builder::new(), name, work, broke_off)
    }

    /// Begins a job that deep expressions need a large stack for, and that does not look at the flag: nobody waits for its end.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn begin_deep(
        name: &str,
        stack: usize,
        work: impl FnOnce(Sender<M>) + Send + 'static,
        broke_off: impl Fn() -> M + 'static,
    ) -> Result<Self> {
        let thread = Builder::new().stack_size(stack);
        let mut job = Self::on(thread, name, |_, outbox| work(outbox), broke_off)?;
        job.thread = None;
        Ok(job)
    }

    fn on(
        thread: Builder,
        name: &str,
        work: impl FnOnce(Arc<AtomicBool>, Sender<M>) + Send + 'static,
        broke_off: impl Fn() -> M + 'static,
    ) -> Result<Self> {
        let (outbox, inbox) = channel();
        let given_up = Arc::new(AtomicBool::new(false));
        let stop = given_up.clone();
        let thread = thread
            .name(name.to_owned())
            .spawn(move || work(stop, outbox))
            .with_context(|| format!("Failed to start the thread `{name}`"))?;
        Ok(Self {
            inbox,
            given_up,
            thread: Some(thread),
            broke_off: Box::new(broke_off),
        })
    }
}

impl<M> Job<M> {
    /// What is new.
    pub fn next_message(&self) -> Option<M> {
        match self.inbox.try_recv() {
            Ok(message) => Some(message),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some((self.broke_off)()),
        }
    }

    /// The next message, waiting for it.
    pub fn wait(&self) -> M {
        self.inbox.recv().unwrap_or_else(|_| (self.broke_off)())
    }
}

impl<M> Drop for Job<M> {
    fn drop(&mut self) {
        self.given_up.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
