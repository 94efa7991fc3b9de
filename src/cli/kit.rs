//! `perflings kit DIR`: writes everything that a class needs into a folder, for a USB stick or a shared drive: this program, the course,
//! recordings, and a script that starts the program.

use std::path::Path;

use anyhow::{Context, Result};
use clap::{Command, CommandFactory as _};

use super::args::Cli;
use super::args::exercises::KitArgs;
use super::list::ensure_new;
use crate::course::workspace::write;
use crate::files;
use crate::out::{Exit, notice, result};
use crate::record::Recording;

/// The largest size of this program and of a recording, in bytes.
const MAX_BYTES: u64 = 1 << 30;

/// The script that starts the program from the kit.
struct StartScript {
    /// The name of the program's file.
    program: &'static str,
    /// The name of the script's file.
    file: &'static str,
    /// The command that runs the script.
    command: &'static str,
    text: &'static str,
    /// The separator between the names of commands in the text.
    separator: &'static str,
}

#[cfg(not(windows))]
const START: StartScript = StartScript {
    program: "perflings",
    file: "start.sh",
    command: "sh start.sh",
    text: include_str!("kit/start.sh"),
    separator: " | ",
};
#[cfg(windows)]
const START: StartScript = StartScript {
    program: "perflings.exe",
    file: "start.cmd",
    command: "start.cmd",
    text: include_str!("kit/start.cmd"),
    separator: " ",
};

pub(super) fn kit(args: &KitArgs) -> Result<Exit> {
    let dir = &args.dir;
    ensure_new(dir)?;
    let context = args.course.load()?;
    let system = format!("{} on {}", std::env::consts::OS, std::env::consts::ARCH);
    let filled = |text: &str| {
        text.replace("{SYSTEM}", &system)
            .replace("{VERSION}", env!("CARGO_PKG_VERSION"))
            .replace("{START}", START.command)
            .replace("{COMMANDS}", &commands_with_course().join(START.separator))
    };
    for (path, text) in context.source.files()? {
        write(&dir.join("course").join(path), &text)?;
    }
    for path in &args.recordings {
        Recording::read(path)?;
        let name = path.file_name().context("a recording has a name")?;
        copy(path, &dir.join("recordings").join(name))?;
    }
    write(
        &dir.join("README.txt"),
        filled(include_str!("kit/README.txt")),
    )?;
    write(&dir.join(START.file), filled(START.text))?;
    let this_program = std::env::current_exe().context("Failed to find this program")?;
    let program = dir.join(START.program);
    copy(&this_program, &program)?;
    // Some sticks keep no permissions. The script says what to do then.
    #[cfg(unix)]
    let _ = std::fs::set_permissions(
        &program,
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    );
    result(&format!("wrote a kit for {system} into {}", dir.display()))?;
    notice(&format!(
        "try it on a machine of the class: {} doctor --room",
        START.command
    ));
    Ok(Exit::Ok)
}

/// Returns the names of the commands that take `--course`, themselves or in a subcommand.
fn commands_with_course() -> Vec<String> {
    fn takes_course(command: &Command) -> bool {
        command.get_arguments().any(|arg| arg.get_id() == "course")
            || command.get_subcommands().any(takes_course)
    }
    Cli::command()
        .get_subcommands()
        .filter(|command| takes_course(command))
        .map(|command| command.get_name().to_owned())
        .collect()
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let bytes = files::read(from, MAX_BYTES)
        .with_context(|| format!("Failed to read {}", from.display()))?;
    write(to, bytes)
}

#[cfg(test)]
mod tests {
    use super::commands_with_course;

    #[test]
    fn a_kit_gives_its_course_to_the_commands_that_take_one() {
        let all = commands_with_course();
        let takes = |name: &str| all.iter().any(|command| command == name);
        assert!(["check", "course", "kit", "run"].into_iter().all(takes));
        assert!(
            !["doctor", "config", "bench"].into_iter().any(takes),
            "{all:?}"
        );
    }
}
