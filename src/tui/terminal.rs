//! Takes the terminal over and gives it back: at the end, on a panic of this thread, before a suspend. Nothing else
//! changes terminal modes. It also asks, once, what the terminal can do.

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

use super::theme::{Background, Colours, Terminal as Abilities};

/// Reports of clicks, the wheel and dragging. The library's own switch would report every motion as well.
const CLICKS_AND_WHEEL: &str = "\u{1b}[?1002h\u{1b}[?1006h";

/// Whether the terminal is ours at the moment.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Messages of panics in other threads, for the log: printed, they would garble the screen.
static PANIC_MESSAGES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Takes the messages of panics in other threads.
pub fn panic_messages() -> Vec<String> {
    PANIC_MESSAGES
        .lock()
        .map(|mut all| std::mem::take(&mut *all))
        .unwrap_or_default()
}

/// The terminal, as long as this lives.
pub struct Screen {
    terminal: ratatui::Terminal<CrosstermBackend<BufWriter<Stdout>>>,
    /// Somebody else may have written on the screen: the next frame is drawn whole.
    is_foreign: bool,
}

/// Columns and rows of the terminal, where there is one.
#[cfg(unix)]
pub fn columns_and_rows() -> Option<(u16, u16)> {
    let size = rustix::termios::tcgetwinsize(rustix::stdio::stdout()).ok()?;
    Some((size.ws_col, size.ws_row))
}

/// Columns and rows of the terminal, where there is one.
#[cfg(not(unix))]
pub fn columns_and_rows() -> Option<(u16, u16)> {
    crossterm::terminal::size().ok()
}

/// The most columns and rows that are drawn on: a terminal may claim any size, and each cell takes memory.
const MOST: (u16, u16) = (1000, 400);

/// The part of a terminal of this size that is drawn on.
pub fn drawn(width: u16, height: u16) -> (u16, u16) {
    (width.min(MOST.0), height.min(MOST.1))
}

impl Screen {
    /// Takes the terminal over. A panic of this thread gives it back before it is told.
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

    /// Draws a frame in one piece.
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

    /// Columns and rows that are drawn on.
    pub fn size(&self) -> io::Result<(u16, u16)> {
        let size = self.terminal.size()?;
        Ok(drawn(size.width, size.height))
    }

    /// Gives the terminal to somebody else for a while, and takes it back.
    pub fn lend<T>(&mut self, to: impl FnOnce() -> T) -> io::Result<T> {
        leave();
        let result = to();
        enter()?;
        // The library's own way to clear asks the terminal where its cursor is, and not every terminal answers.
        self.is_foreign = true;
        Ok(result)
    }

    /// Draws everything anew: somebody else may have written on the screen.
    pub fn refresh(&mut self) -> io::Result<()> {
        // A shell may have changed the modes meanwhile, which the library does not know.
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

/// Gives the terminal back. Errors mean that the terminal is gone, and are ignored.
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

/// The stock hook would drop the screen when any thread panics; this one acts for the thread that draws.
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

/// Whether there is a terminal to draw on and to read keys from.
pub fn is_present() -> bool {
    io::stdout().is_terminal() && io::stdin().is_terminal()
}

/// What the terminal can do, by what it says in the environment.
pub fn abilities(variable: impl Fn(&str) -> Option<String>) -> Abilities {
    let said = |name: &str| variable(name).filter(|value| !value.is_empty());
    let term = said("TERM").unwrap_or_default();
    let colours = if said("NO_COLOR").is_some() || term == "dumb" {
        Colours::None
    } else if said("COLORTERM").is_some() || term.contains("256color") || term.contains("direct") {
        Colours::Indexed
    } else {
        Colours::Sixteen
    };
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .find_map(&said)
        .unwrap_or_default()
        .to_ascii_lowercase();
    let utf8 = locale.contains("utf-8") || locale.contains("utf8") || cfg!(windows);
    let ascii = said("PERFLINGS_ASCII").is_some_and(|value| value != "0")
        || !utf8
        || term == "linux"
        || term == "dumb";
    // `15;0`: foreground; background. 7 and 15 are the light ones.
    let background = said("COLORFGBG").and_then(|value| {
        let last = value.rsplit(';').next()?.parse::<u8>().ok()?;
        Some(match last {
            7 | 15 => Background::Light,
            _ => Background::Dark,
        })
    });
    Abilities {
        colours,
        background,
        ascii,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn abilities_follow_the_environment() {
        let asked = |variables: &[(&str, &str)]| {
            let variables: HashMap<_, _> = variables.iter().copied().collect();
            abilities(|name| variables.get(name).map(|value| (*value).to_owned()))
        };
        let term = ("TERM", "xterm-256color");
        let good = asked(&[term, ("LANG", "de_DE.UTF-8")]);
        let (colours, background, ascii) = (Colours::Indexed, None, false);
        assert_eq!(
            good,
            Abilities {
                colours,
                background,
                ascii
            }
        );
        assert_eq!(asked(&[("TERM", "xterm")]).colours, Colours::Sixteen);
        assert_eq!(asked(&[("NO_COLOR", "1"), term]).colours, Colours::None);
        assert_eq!(asked(&[("NO_COLOR", ""), term]).colours, Colours::Indexed);
        assert!(asked(&[("LANG", "C")]).ascii);
        assert!(asked(&[("LANG", "C.UTF-8"), ("PERFLINGS_ASCII", "1")]).ascii);
        let background = |value| asked(&[("COLORFGBG", value)]).background;
        assert_eq!(background("0;15"), Some(Background::Light));
        assert_eq!(background("15;default;0"), Some(Background::Dark));
    }
}
