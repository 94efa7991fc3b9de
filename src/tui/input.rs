//! Input from the terminal, read as long as there is any, so that nothing waits for the next key.

#[cfg(unix)]
pub(super) use unix::Input;

/// Keys, clicks, pasted text and changes of size, in their order.
#[cfg(not(unix))]
#[derive(Debug, Default)]
pub(super) struct Input;

#[cfg(not(unix))]
impl Input {
    /// The next event, waiting for it at most so long.
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

    /// How long the rest of a sequence may take, even over a slow connection. After that, an escape is the escape key.
    const REST: Duration = Duration::from_millis(40);
    /// The same for the rest of a pasted text.
    const REST_OF_PASTE: Duration = Duration::from_secs(1);

    /// Keys, clicks, pasted text and changes of size, in their order.
    #[derive(Debug, Default)]
    pub(in crate::tui) struct Input {
        decoder: Decoder,
        events: VecDeque<Event>,
        /// When the last byte came.
        last_byte: Option<Instant>,
        size: Option<(u16, u16)>,
    }

    impl Input {
        /// The next event, waiting for it at most so long.
        pub(in crate::tui) fn next(&mut self, wait: Duration) -> io::Result<Option<Event>> {
            let until = Instant::now() + wait;
            loop {
                if let Some(event) = self.events.pop_front() {
                    return Ok(Some(event));
                }
                // Asked each time, so that no signal is needed for a change.
                if let Some(size) = columns_and_rows()
                    && self.size.replace(size).is_some_and(|before| before != size)
                {
                    return Ok(Some(Event::Resize(size.0, size.1)));
                }
                let left = until.saturating_duration_since(Instant::now());
                let rest = self.rest();
                if readable(rest.map_or(left, |rest| rest.min(left)))? {
                    self.read()?;
                } else if self.rest().is_some_and(|rest| rest.is_zero()) {
                    self.decoder
                        .give_up(&mut |event| self.events.push_back(event));
                } else if Instant::now() >= until {
                    return Ok(None);
                }
            }
        }

        /// How long the rest of an incomplete sequence may still take; none if there is none.
        fn rest(&self) -> Option<Duration> {
            let limit = match self.decoder.is_pasting() {
                true => REST_OF_PASTE,
                false => REST,
            };
            let at = self.last_byte.filter(|_| self.decoder.is_waiting())?;
            Some(limit.saturating_sub(at.elapsed()))
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

    /// Whether there is something to read, or an end to notice.
    fn readable(wait: Duration) -> io::Result<bool> {
        let stdin = stdin();
        let mut asked = [PollFd::new(&stdin, PollFlags::IN)];
        let wait = Timespec::try_from(wait).unwrap_or_default();
        match poll(&mut asked, Some(&wait)) {
            Ok(n) => Ok(n > 0),
            // A signal: the caller checks which one.
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}
