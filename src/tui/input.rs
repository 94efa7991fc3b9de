//! Reads the terminal's input without blocking, so that nothing waits for the next key.

#[cfg(unix)]
pub(super) use unix::Input;

/// A source of events: keys, clicks, pasted text and changes of size, in their order.
#[cfg(not(unix))]
#[derive(Debug, Default)]
pub(super) struct Input;

#[cfg(not(unix))]
impl Input {
    /// Returns the next event, or `None` if there is none within `wait`.
    pub(super) fn next(
        &mut self,
        wait: std::time::Duration,
    ) -> std::io::Result<Option<crossterm::event::Event>> {
        use crossterm::event::{poll, read};
        poll(wait)?.then(read).transpose()
    }
}

#[cfg(unix)]
mod unix {
    use std::collections::VecDeque;
    use std::io;
    use std::time::{Duration, Instant};

    use crossterm::event::Event;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::io::Errno;
    use rustix::stdio::stdin;

    use crate::tui::keys::decode::Decoder;
    use crate::tui::terminal::columns_and_rows;

    /// The time within which the next byte of a sequence comes, even over a slow connection. After it, an escape byte is the escape key.
    const SEQUENCE_TIMEOUT: Duration = Duration::from_millis(40);
    /// The time within which the next byte of a pasted text comes.
    const PASTE_TIMEOUT: Duration = Duration::from_secs(1);

    /// A source of events: keys, clicks, pasted text and changes of size, in their order.
    #[derive(Debug, Default)]
    pub(in crate::tui) struct Input {
        decoder: Decoder,
        events: VecDeque<Event>,
        /// The time at which the last byte came.
        last_byte: Option<Instant>,
        size: Option<(u16, u16)>,
    }

    impl Input {
        /// Returns the next event, or `None` if there is none within `wait`.
        pub(in crate::tui) fn next(&mut self, wait: Duration) -> io::Result<Option<Event>> {
            let until = Instant::now() + wait;
            loop {
                if let Some(event) = self.events.pop_front() {
                    return Ok(Some(event));
                }
                // The size is read each time, so that no signal handler is needed for it.
                if let Some(size) = columns_and_rows()
                    && self.size.replace(size).is_some_and(|old| old != size)
                {
                    return Ok(Some(Event::Resize(size.0, size.1)));
                }
                let remaining = until.saturating_duration_since(Instant::now());
                let time_for_rest = self.time_for_rest();
                if readable(time_for_rest.map_or(remaining, |rest| rest.min(remaining)))? {
                    self.read()?;
                } else if self.time_for_rest().is_some_and(|rest| rest.is_zero()) {
                    self.decoder
                        .give_up(&mut |event| self.events.push_back(event));
                } else if Instant::now() >= until {
                    return Ok(None);
                }
            }
        }

        /// Returns the time that the rest of an incomplete sequence may still take; `None` if no sequence is incomplete.
        fn time_for_rest(&self) -> Option<Duration> {
            if !self.decoder.is_waiting() {
                return None;
            }
            let limit = if self.decoder.is_pasting() {
                PASTE_TIMEOUT
            } else {
                SEQUENCE_TIMEOUT
            };
            Some(limit.saturating_sub(self.last_byte?.elapsed()))
        }

        fn read(&mut self) -> io::Result<()> {
            let mut buffer = [0; 16 * 1024];
            match rustix::io::read(stdin(), &mut buffer) {
                Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => {
                    self.last_byte = Some(Instant::now());
                    let events = &mut self.events;
                    self.decoder
                        .read(&buffer[..n], &mut |event| events.push_back(event));
                    Ok(())
                }
                Err(Errno::INTR | Errno::AGAIN) => Ok(()),
                Err(error) => Err(error.into()),
            }
        }
    }

    /// Returns true if there are bytes to read or the input has ended; false after `wait` or a signal.
    fn readable(wait: Duration) -> io::Result<bool> {
        let stdin = stdin();
        let mut polled = [PollFd::new(&stdin, PollFlags::IN)];
        let timeout = Timespec::try_from(wait).unwrap_or_default();
        match poll(&mut polled, Some(&timeout)) {
            Ok(n) => Ok(n > 0),
            // A signal came; the caller checks which one.
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}
