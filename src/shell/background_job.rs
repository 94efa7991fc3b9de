//! One job behind the screen, in a thread and with an engine of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::{Builder, JoinHandle};

use anyhow::{Context, Result};

use crate::app::Message;
use crate::measure::launched_kernels::read_kernels;
use crate::measure::runner::Runner;
use protocol::config::RunConfig;
use protocol::handle::EngineCommand;

/// A job in progress. Dropping it gives it up, which ends its engine.
pub(super) struct BackgroundJob {
    inbox: Receiver<Message>,
    given_up: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// Makes the message that says that the job ended without a result.
    broke_off: Box<dyn Fn() -> Message>,
}

impl BackgroundJob {
    /// Begins. `work` gets the flag that tells it to stop, and sends its messages; the last one is its result.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(super) fn begin(
        name: &str,
        work: impl FnOnce(Arc<AtomicBool>, Sender<Message>) + Send + 'static,
        broke_off: impl Fn() -> Message + 'static,
    ) -> Result<Self> {
        let (outbox, inbox) = channel();
        let given_up = Arc::new(AtomicBool::new(false));
        let stop = given_up.clone();
        let thread = Builder::new()
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

    /// Begins to read the texts of the kernels that a configuration launches. `command` starts an engine that sends texts.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(super) fn read_kernels(
        command: EngineCommand,
        device: String,
        config: Box<RunConfig>,
    ) -> Result<Self> {
        let (on, of) = (device.clone(), config.clone());
        let read = move |texts| Message::KernelsRead {
            device: device.clone(),
            config: config.clone(),
            texts,
        };
        let broke_off = read.clone();
        let work = move |stop, outbox: Sender<Message>| {
            let mut runner = Runner::in_background(command, stop, Box::new(|_: &str| {}));
            let texts = read_kernels(&mut runner, &on, &of);
            // The engine ends first: whoever hears the result waits for this thread.
            drop(runner);
            // Nobody listens any more where the reading was given up.
            let _ = outbox.send(read(texts.map_err(|error| format!("{error:#}"))));
        };
        Self::begin("kernels", work, move || {
            broke_off(Err(
                "reading the kernels broke off; the log may say why".to_owned()
            ))
        })
    }

    /// What is new.
    pub(super) fn next_message(&self) -> Option<Message> {
        match self.inbox.try_recv() {
            Ok(message) => Some(message),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some((self.broke_off)()),
        }
    }
}

impl Drop for BackgroundJob {
    fn drop(&mut self) {
        self.given_up.store(true, Ordering::Relaxed);
        // The thread looks at the flag several times a second, and ends its engine.
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
