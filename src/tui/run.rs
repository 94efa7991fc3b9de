//! The loop: take in what the engine said, draw if something changed, wait for a key until the next frame is due.
//! Data is drawn seven times a second at most, keys at once; watching must not cost the run its cores.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use crossterm::event::{Event, poll, read};

use super::terminal::{Screen, complaints};
use super::theme::{Terminal, Theme};
use super::{keys, mouse, view};
use crate::app::source::{FromEngine, ReplayControl, Source};
use crate::app::{Action, App, Effect, Message, update};
use crate::course::exercise::config::Answers;
use crate::course::progress::StageProgress;

/// What only the caller can do: files and other programs.
pub trait Host {
    /// Keeps what the learner did. An error is one sentence for the screen.
    fn save_stage(&mut self, stage: &str, progress: &StageProgress) -> Result<()>;
    /// Keeps where the learner is.
    fn save_current(&mut self, stage: &str) -> Result<()>;
    /// Keeps that the welcome was shown.
    fn save_welcomed(&mut self) -> Result<()>;
    /// Forgets a stage and puts its starter back; says what became of the learner's file.
    fn reset_stage(&mut self, stage: &str) -> Result<String>;
    /// Writes a report of what the screen shows; the result is where it is.
    fn write_report(&mut self, app: &App) -> Result<PathBuf>;
    /// Makes the learner's copies of an exercise's files, watches and checks them; messages say what comes of it.
    fn open_exercise(&mut self, exercise: &str, device: &str) -> Result<()>;
    /// Watches them no more.
    fn leave_exercise(&mut self);
    /// Makes the runs of a config exercise; messages say how far they are and what they show.
    fn measure(&mut self, exercise: &str, device: &str);
    /// Gives them up.
    fn stop_measuring(&mut self);
    /// Writes answers to the learner's file of a config exercise.
    fn write_answers(&mut self, exercise: &str, answers: &Answers) -> Result<()>;
    /// Begins to show an exercise's recorded run; its lines come as messages.
    fn show_recording(&mut self, exercise: &str) -> Result<()>;
    /// Shows it no more.
    fn hide_recording(&mut self);
    /// Steers it.
    fn steer(&mut self, control: ReplayControl);
    /// Forgets an exercise and puts its starters back; says what became of the learner's files.
    fn reset_exercise(&mut self, exercise: &str, device: &str) -> Result<String>;
    /// Opens a file of a stage or exercise in the learner's editor, at this line. Called while the terminal is given back when the editor
    /// `needs_terminal`.
    fn open_editor(&mut self, stage: &str, file: &str, line: Option<u32>) -> Result<String>;
    /// Whether that editor draws on this terminal.
    fn needs_terminal(&self) -> bool;
    /// A message of the caller's own: a saved file, a check.
    fn next_message(&mut self) -> Option<Message> {
        None
    }
}

/// Why the loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The learner asked for it.
    Quit,
    /// A signal asked for it: SIGTERM, SIGHUP or SIGINT.
    Signal,
}

/// Frames that only show new data, and frames that answer a key, are at least this far apart.
const DATA_FRAME: Duration = Duration::from_millis(150);
const KEY_FRAME: Duration = Duration::from_millis(34);
/// How long the loop may take to end after a signal.
const GRACE: Duration = Duration::from_millis(700);
/// How long nothing may happen before the engine is listened to again.
const IDLE: Duration = Duration::from_millis(50);
/// Reports taken in before a frame is due again, so that a flood cannot keep the screen from drawing.
const AT_ONCE: usize = 4096;

/// Shows the state until the learner quits. `first` are the effects of the state's beginning.
pub fn run(
    source: &mut dyn Source,
    host: &mut dyn Host,
    app: &mut App,
    first: Vec<Effect>,
    terminal: Terminal,
) -> Result<Outcome> {
    let signals = Signals::watch()?;
    let mut screen = Screen::take()?;
    let begun = Instant::now();
    let (width, height) = screen.size().context("Failed to ask the terminal's size")?;
    update(app, Message::Resized { width, height });
    let mut drawing = Drawing {
        drawn: 0,
        at: begun,
        urgent: true,
    };
    drawing.draw(&mut screen, app, terminal)?;
    let mut waiting = first;
    loop {
        for effect in std::mem::take(&mut waiting) {
            match effect {
                Effect::Quit => return Ok(Outcome::Quit),
                Effect::Suspend => {
                    screen
                        .lend(suspend)
                        .context("Failed to take the terminal back")?;
                    drawing.urgent = true;
                    app.revision += 1;
                }
                other => waiting.extend(carry_out(other, source, host, app, &mut screen)?),
            }
        }
        if signals.end.load(Ordering::SeqCst) {
            return Ok(Outcome::Signal);
        }
        if signals.stop.swap(false, Ordering::SeqCst) {
            waiting.push(Effect::Suspend);
        }
        if signals.resumed.swap(false, Ordering::SeqCst) {
            screen
                .refresh()
                .context("Failed to take the terminal back")?;
            app.revision += 1;
            drawing.urgent = true;
        }
        if !waiting.is_empty() {
            continue;
        }
        waiting.extend(update(
            app,
            Message::Tick {
                now_ms: begun.elapsed().as_millis() as u64,
            },
        ));
        for _ in 0..AT_ONCE {
            let Some(report) = source.try_recv() else {
                break;
            };
            waiting.extend(update(app, Message::Engine(report)));
        }
        for text in complaints() {
            waiting.extend(update(app, Message::Engine(FromEngine::Stray(text))));
        }
        while let Some(message) = host.next_message() {
            waiting.extend(update(app, message));
        }
        drawing.draw_if_due(&mut screen, app, terminal)?;
        if !waiting.is_empty() {
            continue;
        }
        let mut wait = drawing.wait(app);
        // Everything that was typed is taken in before the next frame.
        while poll(wait).context("The terminal is gone")? {
            wait = Duration::ZERO;
            let message = match read().context("The terminal is gone")? {
                Event::Key(key) => keys::action(key, app).map(Message::Did),
                Event::Mouse(event) => mouse::action(event, app).map(Message::Did),
                Event::Resize(width, height) => Some(Message::Resized { width, height }),
                _ => None,
            };
            if let Some(message) = message {
                drawing.urgent = true;
                let ends = matches!(message, Message::Did(Action::Quit | Action::Suspend));
                waiting.extend(update(app, message));
                if ends {
                    break;
                }
            }
        }
    }
}

/// What was drawn last, and whether a key waits for its answer.
struct Drawing {
    drawn: u64,
    at: Instant,
    urgent: bool,
}

impl Drawing {
    fn due_in(&self) -> Duration {
        let gap = if self.urgent { KEY_FRAME } else { DATA_FRAME };
        gap.saturating_sub(self.at.elapsed())
    }

    fn wait(&self, app: &App) -> Duration {
        if app.revision == self.drawn {
            IDLE
        } else {
            self.due_in()
        }
    }

    fn draw_if_due(
        &mut self,
        screen: &mut Screen,
        app: &mut App,
        terminal: Terminal,
    ) -> Result<()> {
        if app.revision != self.drawn && self.due_in().is_zero() {
            self.draw(screen, app, terminal)?;
        }
        Ok(())
    }

    fn draw(&mut self, screen: &mut Screen, app: &mut App, terminal: Terminal) -> Result<()> {
        let theme = Theme::new(app.view.theme, app.view.markers, terminal);
        let limits = screen
            .draw(|frame| view(frame, app, &theme))
            .context("The terminal is gone")?;
        update(app, Message::Drawn(limits));
        *self = Self {
            drawn: app.revision,
            at: Instant::now(),
            urgent: false,
        };
        Ok(())
    }
}

/// Carries out what needs neither the loop nor its end. Failures become a sentence on the screen.
fn carry_out(
    effect: Effect,
    source: &mut dyn Source,
    host: &mut dyn Host,
    app: &mut App,
    screen: &mut Screen,
) -> Result<Vec<Effect>> {
    let told = match effect {
        Effect::Send(command) => {
            source.send(command);
            None
        }
        Effect::Restart => {
            source.restart();
            None
        }
        Effect::Kill => {
            source.kill();
            None
        }
        Effect::Replay(control) => {
            source.replay(control);
            host.steer(control);
            None
        }
        Effect::SaveStage { stage, progress } => host.save_stage(&stage, &progress).err().map(Err),
        Effect::SaveCurrent { stage } => host.save_current(&stage).err().map(Err),
        Effect::SaveWelcomed => host.save_welcomed().err().map(Err),
        Effect::ResetStage { stage } => Some(host.reset_stage(&stage)),
        Effect::WriteReport => Some(
            host.write_report(app)
                .map(|path| format!("The report is in {}", path.display())),
        ),
        Effect::OpenEditor { stage, file, line } => Some(if host.needs_terminal() {
            screen
                .lend(|| host.open_editor(&stage, &file, line))
                .context("Failed to take the terminal back")?
        } else {
            host.open_editor(&stage, &file, line)
        }),
        Effect::OpenExercise { exercise, device } => {
            host.open_exercise(&exercise, &device).err().map(Err)
        }
        Effect::LeaveExercise => {
            host.leave_exercise();
            None
        }
        Effect::Measure { exercise, device } => {
            host.measure(&exercise, &device);
            None
        }
        Effect::StopMeasuring => {
            host.stop_measuring();
            None
        }
        Effect::WriteAnswers { exercise, answers } => {
            host.write_answers(&exercise, &answers).err().map(Err)
        }
        Effect::ShowRecording { exercise } => host.show_recording(&exercise).err().map(Err),
        Effect::HideRecording => {
            host.hide_recording();
            None
        }
        Effect::ResetExercise { exercise, device } => Some(host.reset_exercise(&exercise, &device)),
        Effect::Suspend | Effect::Quit => None,
    };
    Ok(match told {
        None => Vec::new(),
        Some(Ok(text)) if text.is_empty() => Vec::new(),
        Some(Ok(text)) => update(
            app,
            Message::Told {
                text,
                warning: false,
            },
        ),
        Some(Err(error)) => update(
            app,
            Message::Told {
                text: format!("{error:#}"),
                warning: true,
            },
        ),
    })
}

/// What signals ask for.
struct Signals {
    end: Arc<AtomicBool>,
    /// Somebody else than the learner suspends the process.
    stop: Arc<AtomicBool>,
    /// The process was stopped and goes on.
    resumed: Arc<AtomicBool>,
}

#[cfg(unix)]
impl Signals {
    fn watch() -> Result<Self> {
        use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGTSTP};
        let it = Self {
            end: Arc::default(),
            stop: Arc::default(),
            resumed: Arc::default(),
        };
        for (signal, flag) in [(SIGTSTP, &it.stop), (SIGCONT, &it.resumed)] {
            signal_hook::flag::register(signal, Arc::clone(flag))
                .context("Failed to watch for signals")?;
        }
        let end = Arc::clone(&it.end);
        let mut signals = signal_hook::iterator::Signals::new([SIGTERM, SIGHUP, SIGINT])
            .context("Failed to watch for signals")?;
        std::thread::Builder::new()
            .name("signals".into())
            .spawn(move || {
                if signals.forever().next().is_none() {
                    return;
                }
                end.store(true, Ordering::SeqCst);
                // A terminal that hung up can keep the loop inside the library's read for ever.
                std::thread::sleep(GRACE);
                super::terminal::leave();
                std::process::exit(130);
            })
            .context("Failed to watch for signals")?;
        Ok(it)
    }
}

#[cfg(not(unix))]
impl Signals {
    fn watch() -> Result<Self> {
        Ok(Self {
            end: Arc::default(),
            stop: Arc::default(),
            resumed: Arc::default(),
        })
    }
}

/// Stops this process as ctrl-z does everywhere; returns when it goes on.
fn suspend() {
    #[cfg(unix)]
    let _ = signal_hook::low_level::emulate_default_handler(signal_hook::consts::SIGTSTP);
}
