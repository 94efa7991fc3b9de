//! The loop of the running program: it passes messages to `app::update`, carries out the effects that come back, draws, and reads keys.

mod editor;
mod effects;
pub mod engine_link;
pub mod exercise;
mod jobs;
pub mod kernel_file;
mod knobs;
pub mod replay;
pub mod runs;
mod saving;
pub mod speaker;
mod watch;

use std::cell::RefCell;
use std::rc::Rc;

use anyhow::Result;

use crate::app::source::{EventSource, FromEngine};
use crate::app::{App, Effect, Message, Options, update};
use crate::class::member::Member;
use crate::course::context::CourseContext;
use crate::course::save_file::Progress;
use crate::out::notice;
use crate::tui::{SessionEnd, TerminalSession, terminal};
use protocol::handle::EngineCommand;
use protocol::story::StreamStory;

use effects::Workshop;
use speaker::SpeakerServer;

/// The largest number of reports that are handled before the next frame. A flood of reports must not keep the screen from drawing.
const REPORTS_AT_ONCE: usize = 4096;

/// Shows the reports of a source until the learner quits. Exercises are checked and measured by engines of their own, which `command`
/// starts. `story` collects the runs of the session for a report. A `member` shares the learner's progress with a room.
pub fn show(
    source: &mut dyn EventSource,
    context: CourseContext,
    story: Rc<RefCell<StreamStory>>,
    command: EngineCommand,
    progress: Progress,
    options: Options,
    member: Option<Member>,
) -> Result<SessionEnd> {
    let course = context.course.clone();
    let mut workshop = Workshop::new(context, story, command, progress.clone());
    workshop.member = member;
    let (mut app, effects) = App::new(course, progress, options);
    let outcome = run_loop(source, &mut app, &mut workshop, effects);
    // The terminal is restored by now, so the sentence can be printed.
    if let Some(why) = workshop.close() {
        notice(&format!("progress is not saved: {why}"));
    }
    outcome
}

/// Runs the loop until the learner quits or a signal ends the program.
fn run_loop(
    source: &mut dyn EventSource,
    app: &mut App,
    workshop: &mut Workshop,
    mut effects: Vec<Effect>,
) -> Result<SessionEnd> {
    let abilities = terminal::abilities(|name| std::env::var(name).ok());
    let mut session = TerminalSession::begin(app, abilities)?;
    let mut speaker = SpeakerServer::default();
    loop {
        for effect in std::mem::take(&mut effects) {
            let done = match effect {
                Effect::Quit => return Ok(SessionEnd::Quit),
                Effect::Suspend => session.suspend(app).map(|()| Ok(None)),
                effect if workshop.needs_terminal(&effect) => {
                    session.lend(|| workshop.carry_out(effect, source))
                }
                effect => Ok(workshop.carry_out(effect, source)),
            }?;
            let (text, warning) = match done {
                Ok(None) => continue,
                Ok(Some(text)) => (text, false),
                Err(error) => (format!("{error:#}"), true),
            };
            effects.extend(update(app, Message::Notice { text, warning }));
        }
        if session.handle_signals(app)? {
            return Ok(SessionEnd::Signal);
        }
        if !effects.is_empty() {
            continue;
        }
        effects.extend(update(app, session.tick()));
        for _ in 0..REPORTS_AT_ONCE {
            let Some(report) = source.try_recv() else {
                break;
            };
            effects.extend(update(app, Message::Engine(report)));
        }
        for text in terminal::panic_messages() {
            let stray = FromEngine::Stray(text);
            effects.extend(update(app, Message::Engine(stray)));
        }
        while let Some(message) = workshop.next_message() {
            effects.extend(update(app, message));
        }
        while let Some(message) = speaker.serve(app) {
            effects.extend(update(app, message));
        }
        session.draw_if_due(app)?;
        if effects.is_empty() {
            effects.extend(session.take_input(app)?);
        }
    }
}
