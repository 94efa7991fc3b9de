//! Starts an engine process and connects its three pipes.

use std::io;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use anyhow::{Context, Result};

use super::command::{EngineCommand, kill_group};
use super::pipes::{self, FromPipe};
use crate::protocol::{Command, PROTOCOL};

/// Messages held for a reader that is slow; beyond that the engine's pipe fills, which costs no timed step.
const INBOX: usize = 1024;
/// Commands held for an engine that does not read.
const OUTBOX: usize = 64;

/// A child with what it says and what it is told. Its greeting is on its way.
pub(super) fn launch(
    command: &EngineCommand,
) -> Result<(Child, Receiver<FromPipe>, SyncSender<Command>)> {
    let mut child = command
        .prepare()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("Failed to start the engine `{command}`"))?;
    match attach(&mut child) {
        Ok((inbox, outbox)) => Ok((child, inbox, outbox)),
        Err(error) => {
            kill_group(&mut child);
            let _ = child.wait();
            Err(error).context("Failed to start a thread for the engine's pipes")
        }
    }
}

fn attach(child: &mut Child) -> io::Result<(Receiver<FromPipe>, SyncSender<Command>)> {
    let missing = || io::Error::other("a pipe is missing");
    let (to_inbox, inbox) = sync_channel(INBOX);
    let (outbox, commands) = sync_channel(OUTBOX);
    pipes::read_stdout(child.stdout.take().ok_or_else(missing)?, to_inbox.clone())?;
    pipes::read_stderr(child.stderr.take().ok_or_else(missing)?, to_inbox)?;
    pipes::write_stdin(child.stdin.take().ok_or_else(missing)?, commands)?;
    let _ = outbox.try_send(Command::Hello { protocol: PROTOCOL });
    Ok((inbox, outbox))
}
