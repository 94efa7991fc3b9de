//! The running workshop: the screen, where its events come from, and what it asks of the world: the learner's files, their
//! editor, checks and measurements behind the screen.

mod editor;
pub mod exercise;
mod host;
mod last_resort;
pub mod live;
pub mod replay;
mod sweep;
mod watch;

use std::cell::RefCell;
use std::rc::Rc;

use anyhow::Result;

use crate::app::source::Source;
use crate::app::{App, Options};
use crate::course::context::CourseContext;
use crate::course::progress::Progress;
use crate::engine::client::EngineCommand;
use crate::export::report::Collector;
use crate::tui::{self, Outcome, terminal};

use host::Host;

/// Shows what a source tells until the learner quits. Exercises are checked and measured by engines of their own, started
/// by `command`.
pub fn show(
    source: &mut dyn Source,
    shelf: CourseContext,
    collector: Rc<RefCell<Collector>>,
    command: EngineCommand,
    progress: Progress,
    options: Options,
) -> Result<Outcome> {
    let replaying = options.recording.is_some();
    let (mut app, first) = App::new(shelf.course.clone(), progress, options);
    let mut host = Host::new(shelf, collector, replaying, command);
    last_resort::watch();
    let abilities = terminal::abilities(|name| std::env::var(name).ok());
    tui::run(source, &mut host, &mut app, first, abilities)
}
