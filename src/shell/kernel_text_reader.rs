//! Reads the texts of kernels behind the screen, in a thread and with an engine of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread::Builder;

use anyhow::{Context, Result};

use crate::app::Message;
use crate::measure::launched_kernels::read_kernels;
use crate::measure::runner::Runner;
use protocol::config::RunConfig;
use protocol::handle::EngineCommand;

/// A reading in progress. Dropping it ends its engine.
pub(super) struct KernelReader {
    device: String,
    config: Box<RunConfig>,
    inbox: Receiver<Message>,
    given_up: Arc<AtomicBool>,
}

impl KernelReader {
    /// Begins. `command` starts an engine that sends texts.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(super) fn begin(
        command: EngineCommand,
        device: String,
        config: Box<RunConfig>,
    ) -> Result<Self> {
        let (outbox, inbox) = channel();
        let given_up = Arc::new(AtomicBool::new(false));
        let stop = given_up.clone();
        let (on, of) = (device.clone(), config.clone());
        let work = move || {
            let mut runner = Runner::in_background(command, stop, Box::new(|_: &str| {}));
            let texts = read_kernels(&mut runner, &on, &of);
            let texts = texts.map_err(|error| format!("{error:#}"));
            // Nobody listens any more where the reading was given up.
            let _ = outbox.send(Message::KernelsRead {
                device: on,
                config: of,
                texts,
            });
        };
        Builder::new()
            .name("kernels".to_owned())
            .spawn(work)
            .context("Failed to begin reading the kernels")?;
        Ok(Self {
            device,
            config,
            inbox,
            given_up,
        })
    }

    /// What was read, once it is.
    pub(super) fn next_message(&self) -> Option<Message> {
        match self.inbox.try_recv() {
            Ok(message) => Some(message),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Message::KernelsRead {
                device: self.device.clone(),
                config: self.config.clone(),
                texts: Err("reading the kernels broke off; the log may say why".to_owned()),
            }),
        }
    }
}

impl Drop for KernelReader {
    fn drop(&mut self) {
        self.given_up.store(true, Ordering::Relaxed);
    }
}
