//! A session on the terminal draws the state when it has changed, and turns keys, the mouse and signals into messages. New data is drawn at
//! most seven times a second, because drawing must not take cores from the run; the answer to a key is drawn at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use crossterm::event::Event;
use ratatui::Frame;
use ratatui::buffer::Buffer;

use super::input::Input;
use super::terminal::{Screen, drawn_size};
use super::theme::{TerminalAbilities, Theme};
use super::{keys, mouse, view, view_frozen};
use crate::app::{Action, App, AudienceScreen, Effect, Message, update};

/// The reason why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionEnd {
    /// The learner asked for it.
    Quit,
    /// A signal asked for it, such as SIGTERM or SIGHUP, or ctrl-c.
    Signal,
}

/// The shortest time between two frames that only show new data.
const DATA_FRAME: Duration = Duration::from_millis(150);
/// The shortest time between two frames that answer a key.
const KEY_FRAME: Duration = Duration::from_millis(34);
/// The most letters of a pasted text that are typed; the rest is ignored.
const MAX_PASTED: usize = 100;
/// The time to wait for a key when there is nothing to draw.
const IDLE: Duration = Duration::from_millis(50);

/// The screen and the keys, from the moment the terminal is taken until it is given back.
pub struct TerminalSession {
    screen: Screen,
    input: Input,
    signals: Signals,
    abilities: TerminalAbilities,
    began: Instant,
    /// The revision of the state that was drawn last.
    drawn_revision: u64,
    drawn_at: Instant,
    /// True after a key was pressed, until its result is drawn.
    urgent: bool,
    /// The last frame of a beat. The audience sees it while the screen is frozen.
    last_beat: Option<Buffer>,
}

impl TerminalSession {
    /// Takes the terminal and draws the first frame.
    pub fn begin(app: &mut App, abilities: TerminalAbilities) -> Result<Self> {
        let signals = Signals::watch().context("Failed to watch for signals")?;
        let screen = Screen::take()?;
        let (width, height) = screen.size().context("Failed to ask the terminal's size")?;
        update(app, Message::Resized { width, height });
        let now = Instant::now();
        let mut session = Self {
            screen,
            input: Input::default(),
            signals,
            abilities,
            began: now,
            drawn_revision: 0,
            drawn_at: now,
            urgent: true,
            last_beat: None,
        };
        session.draw(app)?;
        Ok(session)
    }

    /// Gives the terminal to `work`, such as an editor, until that returns.
    pub fn lend<T>(&mut self, work: impl FnOnce() -> T) -> Result<T> {
        self.screen
            .lend(work)
            .context("Failed to take the terminal back")
    }

    /// Stops this process as ctrl-z does everywhere. Returns when the process is continued.
    pub fn suspend(&mut self, app: &mut App) -> Result<()> {
        self.lend(|| {
            #[cfg(unix)]
            let _ = signal_hook::low_level::emulate_default_handler(signal_hook::consts::SIGTSTP);
        })?;
        self.redraw(app);
        Ok(())
    }

    /// Handles the signals since the last call. Returns true when the program must end.
    pub fn handle_signals(&mut self, app: &mut App) -> Result<bool> {
        if self.signals.ends() {
            return Ok(true);
        }
        if self.signals.stop.swap(false, Ordering::SeqCst) {
            self.suspend(app)?;
        }
        if self.signals.resumed.swap(false, Ordering::SeqCst) {
            self.screen
                .refresh()
                .context("Failed to take the terminal back")?;
            self.redraw(app);
        }
        Ok(false)
    }

    fn redraw(&mut self, app: &mut App) {
        app.view.revision += 1;
        self.urgent = true;
    }

    /// Returns a tick with the time since the session began.
    pub fn tick(&self) -> Message {
        Message::Tick {
            now_ms: self.began.elapsed().as_millis() as u64,
        }
    }

    fn due_in(&self) -> Duration {
        let gap = if self.urgent { KEY_FRAME } else { DATA_FRAME };
        gap.saturating_sub(self.drawn_at.elapsed())
    }

    /// Draws the state if it changed and it is time for a frame.
    pub fn draw_if_due(&mut self, app: &mut App) -> Result<()> {
        if app.view.revision != self.drawn_revision && self.due_in().is_zero() {
            self.draw(app)?;
        }
        Ok(())
    }

    fn draw(&mut self, app: &mut App) -> Result<()> {
        let theme = Theme::new(app.view.theme, app.view.markers, self.abilities);
        let audience_screen = app.presenter.audience_screen(app.beat());
        let last_beat = &mut self.last_beat;
        let limits = self.screen.draw(|frame| {
            if let (AudienceScreen::Frozen, Some(last)) = (audience_screen, &last_beat) {
                view_frozen(frame, last, app, &theme);
                return None;
            }
            let limits = view(frame, app, &theme);
            if audience_screen != AudienceScreen::Blank {
                *last_beat = app.beat().map(|_| frame.buffer_mut().clone());
            }
            Some(limits)
        });
        self.drawn_revision = app.view.revision;
        if let Some(limits) = limits.context("The terminal is gone")? {
            update(app, Message::Drawn(limits));
        }
        self.drawn_at = Instant::now();
        self.urgent = false;
        Ok(())
    }

    /// Waits for input until the next frame is due, and returns the effects of the input. All waiting input is read before that frame, but a
    /// steady flow of keys does not delay it.
    pub fn take_input(&mut self, app: &mut App) -> Result<Vec<Effect>> {
        let mut effects = Vec::new();
        let idle = app.view.revision == self.drawn_revision;
        let mut wait = if idle { IDLE } else { self.due_in() };
        let mut first_event = None;
        let as_messages =
            |action: Option<Action>| action.map(Message::Action).into_iter().collect();
        while let Some(event) = self.input.next(wait).context("The terminal is gone")? {
            wait = Duration::ZERO;
            let messages = match event {
                Event::Key(key) if keys::interrupts(key) => {
                    self.signals.end.store(true, Ordering::SeqCst);
                    break;
                }
                Event::Key(key) => as_messages(keys::action(key, app)),
                Event::Mouse(event) => as_messages(mouse::action(event, app)),
                Event::Paste(text) => pasted(&text, app),
                Event::Resize(width, height) => {
                    let (width, height) = drawn_size(width, height);
                    vec![Message::Resized { width, height }]
                }
                _ => Vec::new(),
            };
            let began = first_event.get_or_insert_with(Instant::now);
            let mut ends = began.elapsed() > KEY_FRAME;
            for message in messages {
                self.urgent = true;
                ends |= matches!(message, Message::Action(Action::Quit | Action::Suspend));
                effects.extend(update(app, message));
            }
            if ends {
                break;
            }
        }
        Ok(effects)
    }
}

/// Returns the messages of a pasted text: its letters where a word is typed, else a notice that it does nothing.
fn pasted(text: &str, app: &App) -> Vec<Message> {
    let typed: Vec<Message> = text
        .chars()
        .take(MAX_PASTED)
        .filter_map(|letter| keys::typed(letter, app))
        .map(Message::Action)
        .collect();
    if !typed.is_empty() {
        return typed;
    }
    vec![Message::Notice {
        text: "Pasted text does nothing here".to_owned(),
        warning: false,
    }]
}

/// Shows a screen outside the workshop until `draw` or `act` returns a result. A signal or ctrl-c ends the screen with the result
/// `interrupted`. A frame is drawn at least every `wait`. All waiting input is read before the next frame, but a steady flow of input does
/// not delay it.
pub(super) fn show<S, E>(
    state: &mut S,
    wait: Duration,
    interrupted: E,
    mut draw: impl FnMut(&mut S, &mut Frame<'_>) -> Option<E>,
    mut act: impl FnMut(&mut S, Event) -> Option<E>,
) -> Result<E> {
    let signals = Signals::watch().context("Failed to watch for signals")?;
    let mut screen = Screen::take()?;
    let mut input = Input::default();
    while !signals.ends() {
        let ended = screen.draw(|frame| draw(state, frame));
        if let Some(end) = ended.context("The terminal is gone")? {
            return Ok(end);
        }
        let drawn = Instant::now();
        let mut next_wait = wait;
        while drawn.elapsed() < 2 * wait
            && let Some(event) = input.next(next_wait).context("The terminal is gone")?
        {
            next_wait = Duration::ZERO;
            if matches!(event, Event::Key(key) if keys::interrupts(key)) {
                return Ok(interrupted);
            }
            if let Some(end) = act(state, event) {
                return Ok(end);
            }
        }
    }
    Ok(interrupted)
}

/// Flags for the signals that have arrived and are not handled yet.
#[derive(Default)]
struct Signals {
    /// A signal asked for the end of the program.
    end: Arc<AtomicBool>,
    /// Another process asked this one to stop; ctrl-z comes as a key.
    stop: Arc<AtomicBool>,
    /// The process was stopped and is continued.
    resumed: Arc<AtomicBool>,
    /// The terminal was given back, so nothing blocks the program's end any more.
    over: Arc<AtomicBool>,
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
    }
}

impl Signals {
    /// Returns true if the program must end.
    fn ends(&self) -> bool {
        self.end.load(Ordering::SeqCst)
    }

    #[cfg(unix)]
    fn watch() -> std::io::Result<Self> {
        use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGXCPU};
        /// The time that the program has to end after a signal.
        const GRACE: Duration = Duration::from_millis(700);
        let signals = Self::default();
        signal_hook::flag::register(SIGTSTP, Arc::clone(&signals.stop))?;
        signal_hook::flag::register(SIGCONT, Arc::clone(&signals.resumed))?;
        let end = Arc::clone(&signals.end);
        let over = Arc::clone(&signals.over);
        let mut ending =
            signal_hook::iterator::Signals::new([SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGXCPU])?;
        let wait = move || {
            if ending.forever().next().is_none() {
                return;
            }
            end.store(true, Ordering::SeqCst);
            // If the terminal accepts no more output, the drawing thread hangs in a write and cannot end the program.
            std::thread::sleep(GRACE);
            if over.load(Ordering::SeqCst) {
                return;
            }
            super::terminal::leave();
            std::process::exit(130);
        };
        std::thread::Builder::new()
            .name("signals".into())
            .spawn(wait)?;
        Ok(signals)
    }

    #[cfg(not(unix))]
    fn watch() -> std::io::Result<Self> {
        Ok(Self::default())
    }
}
