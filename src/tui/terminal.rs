//! Takes the terminal over and gives it back: at the end, on a panic of this thread, before a suspend. No other file changes terminal modes.
//! This one also reads from the environment what the terminal can show.

use std::io::{self, BufWriter, IsTerminal, Stdout, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ThreadId;

use anyhow::{Context, Result};
use crossterm::cursor::{Hide, Show};
use crossterm::event::{DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste};
use crossterm::style::Print;
use crossterm::terminal::{
    BeginSynchronizedUpdate, DisableLineWrap, EnableLineWrap, EndSynchronizedUpdate,
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use crossterm::{execute, queue};
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{Frame, TerminalOptions, Viewport};

use super::theme::{Background, Colours, TerminalAbilities};

/// Turns on reports of clicks, the wheel and dragging. The library's own switch would report every motion as well.
const CLICKS_AND_WHEEL: &str = "\u{1b}[?1002h\u{1b}[?1006h";

/// True while this program has the terminal.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Messages of panics in other threads. They go to the log, because printing them would garble the screen.
static PANIC_MESSAGES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Takes the messages of panics that happened in other threads since the last call.
pub fn panic_messages() -> Vec<String> {
    PANIC_MESSAGES
        .lock()
        .map(|mut all| std::mem::take(&mut *all))
        .unwrap_or_default()
}

/// Holds the terminal, and gives it back when dropped.
pub struct Screen {
    terminal: ratatui::Terminal<CrosstermBackend<BufWriter<Stdout>>>,
    /// True if another program may have written on the screen. The next frame is then drawn whole.
    is_foreign: bool,
}

/// Returns the columns and rows of the terminal, or `None` without a terminal.
#[cfg(unix)]
pub fn columns_and_rows() -> Option<(u16, u16)> {
    let size = rustix::termios::tcgetwinsize(rustix::stdio::stdout()).ok()?;
    Some((size.ws_col, size.ws_row))
}

/// Returns the columns and rows of the terminal, or `None` without a terminal.
#[cfg(not(unix))]
pub fn columns_and_rows() -> Option<(u16, u16)> {
    crossterm::terminal::size().ok()
}

/// The most columns and rows that are drawn. A terminal may report any size, and each cell takes memory.
const MAX_SIZE: (u16, u16) = (1000, 400);

/// Returns the columns and rows that are drawn on a terminal of this size.
pub fn drawn_size(width: u16, height: u16) -> (u16, u16) {
    (width.min(MAX_SIZE.0), height.min(MAX_SIZE.1))
}

impl Screen {
    /// Enters raw mode and the alternate screen. On a panic of this thread the terminal is given back before the message is printed.
    pub fn take() -> Result<Self> {
        let backend = CrosstermBackend::new(BufWriter::with_capacity(64 * 1024, io::stdout()));
        restore_on_panic(std::thread::current().id());
        enter().context("Failed to take the terminal over")?;
        // `draw` follows the terminal's size by itself, up to a limit.
        let viewport = Viewport::Fixed(Rect::default());
        let terminal = ratatui::Terminal::with_options(backend, TerminalOptions { viewport })
            .inspect_err(|_| leave())
            .context("Failed to ask the terminal's size")?;
        Ok(Self {
            terminal,
            is_foreign: false,
        })
    }

    /// Draws a frame; the terminal shows it in one piece. Returns what `view` returned.
    pub fn draw<T>(&mut self, view: impl FnOnce(&mut Frame<'_>) -> T) -> io::Result<T> {
        let mut result = None;
        let (width, height) = self.size()?;
        let area = Rect::new(0, 0, width, height);
        if self.is_foreign || self.terminal.get_frame().area() != area {
            self.terminal.resize(area)?;
            self.is_foreign = false;
        }
        queue!(self.terminal.backend_mut(), BeginSynchronizedUpdate)?;
        self.terminal.draw(|frame| result = Some(view(frame)))?;
        execute!(self.terminal.backend_mut(), EndSynchronizedUpdate)?;
        result.ok_or_else(|| io::Error::other("nothing was drawn"))
    }

    /// Returns the columns and rows that are drawn on.
    pub fn size(&self) -> io::Result<(u16, u16)> {
        let size = self.terminal.size()?;
        Ok(drawn_size(size.width, size.height))
    }

    /// Gives the terminal back while `work` runs, then takes it again. Returns what `work` returned.
    pub fn lend<T>(&mut self, work: impl FnOnce() -> T) -> io::Result<T> {
        leave();
        let result = work();
        enter()?;
        // The library's own way to clear asks the terminal where its cursor is, and not every terminal answers.
        self.is_foreign = true;
        Ok(result)
    }

    /// Sets the terminal's modes again and has the next frame drawn whole, after another program may have changed both.
    pub fn refresh(&mut self) -> io::Result<()> {
        // The library must forget that it is in raw mode, because a shell may have changed the modes meanwhile.
        disable_raw_mode()?;
        enter()?;
        self.is_foreign = true;
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

fn enter() -> io::Result<()> {
    enable_raw_mode()?;
    TAKEN.store(true, Ordering::SeqCst);
    execute!(
        io::stdout(),
        EnterAlternateScreen,
        Print(CLICKS_AND_WHEEL),
        EnableBracketedPaste,
        DisableLineWrap,
        Hide
    )
}

/// Gives the terminal back. Errors mean that the terminal is gone and are ignored.
pub(super) fn leave() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        let _ = execute!(
            io::stdout(),
            EndSynchronizedUpdate,
            DisableBracketedPaste,
            DisableMouseCapture,
            EnableLineWrap,
            LeaveAlternateScreen,
            Show
        );
        let _ = disable_raw_mode();
        let _ = io::stdout().flush();
    }
}

/// Installs a panic hook that gives the terminal back when the drawing thread panics. Messages of other threads are kept for the log.
fn restore_on_panic(drawing: ThreadId) {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if std::thread::current().id() == drawing {
            leave();
        }
        if std::thread::current().id() == drawing || !TAKEN.load(Ordering::SeqCst) {
            before(info);
        } else if let Ok(mut panic_messages) = PANIC_MESSAGES.lock() {
            panic_messages.push(info.to_string());
        }
    }));
}

/// Returns true if there is a terminal for both the screen and the keys.
pub fn is_present() -> bool {
    io::stdout().is_terminal() && io::stdin().is_terminal()
}

/// Returns what the terminal can show, by the environment variables that `variable` reads.
pub fn abilities(variable: impl Fn(&str) -> Option<String>) -> TerminalAbilities {
    let non_empty = |name: &str| variable(name).filter(|value| !value.is_empty());
    let term = non_empty("TERM").unwrap_or_default();
    let colours = if non_empty("NO_COLOR").is_some() || term == "dumb" {
        Colours::None
    } else if non_empty("COLORTERM").is_some()
        || term.contains("256color")
        || term.contains("direct")
    {
        Colours::Indexed
    } else {
        Colours::Sixteen
    };
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .find_map(&non_empty)
        .unwrap_or_default()
        .to_ascii_lowercase();
    let utf8 = locale.contains("utf-8") || locale.contains("utf8") || cfg!(windows);
    let ascii = non_empty("PERFLINGS_ASCII").is_some_and(|value| value != "0")
        || !utf8
        || term == "linux"
        || term == "dumb";
    // The value `15;0` has the foreground and the background. The backgrounds 7 and 15 are light.
    let background = non_empty("COLORFGBG").and_then(|value| {
        let last = value.rsplit(';').next()?.parse::<u8>().ok()?;
        Some(match last {
            7 | 15 => Background::Light,
            _ => Background::Dark,
        })
    });
    TerminalAbilities {
        colours,
        background,
        ascii,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn abilities_follow_the_environment() {
        let abilities_with = |variables: &[(&str, &str)]| {
            abilities(|name| {
                let (_, value) = variables.iter().find(|(other, _)| *other == name)?;
                Some((*value).to_owned())
            })
        };
        let term = ("TERM", "xterm-256color");
        let good = abilities_with(&[term, ("LANG", "de_DE.UTF-8")]);
        assert_eq!(
            good,
            TerminalAbilities {
                colours: Colours::Indexed,
                background: None,
                ascii: false,
            }
        );
        assert_eq!(
            abilities_with(&[("TERM", "xterm")]).colours,
            Colours::Sixteen
        );
        assert_eq!(
            abilities_with(&[("NO_COLOR", "1"), term]).colours,
            Colours::None
        );
        assert_eq!(
            abilities_with(&[("NO_COLOR", ""), term]).colours,
            Colours::Indexed
        );
        assert!(abilities_with(&[("LANG", "C")]).ascii);
        assert!(abilities_with(&[("LANG", "C.UTF-8"), ("PERFLINGS_ASCII", "1")]).ascii);
        let background = |value| abilities_with(&[("COLORFGBG", value)]).background;
        assert_eq!(background("0;15"), Some(Background::Light));
        assert_eq!(background("15;default;0"), Some(Background::Dark));
    }
}
