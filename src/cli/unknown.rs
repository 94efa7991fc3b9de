//! A first word that is not a command: a stage or an exercise that was meant, or a typing error.

use std::ffi::OsString;

use clap::Command;
use clap::error::ErrorKind;

use crate::app::{Action, Overlay};
use crate::config::close;
use crate::course::{Course, Exercise};
use crate::tui::keys;

/// Whether the first argument is what clap does not know.
pub fn is_of(error: &clap::Error, args: &[OsString]) -> bool {
    let word = args.get(1).and_then(|word| word.to_str());
    error.kind() == ErrorKind::InvalidSubcommand
        && word.is_some_and(|word| !word.starts_with('-') && word != "course")
}

/// What to write instead.
pub fn answer(word: &str, course: &Course, commands: &Command) -> String {
    let shown = word.escape_debug();
    let by_number = word.parse().ok().and_then(|number| course.stage(number));
    if let Some(stage) = by_number.or_else(|| course.stage_by_id(word)) {
        return format!(
            "error: `{shown}` is a stage, not a command: {}\n\n{}",
            stage.title,
            of_stage(stage.number)
        );
    }
    let mut exercises = course.exercises.iter();
    if let Some(exercise) = exercises.find(|exercise| exercise.answers_to(word)) {
        return format!(
            "error: `{shown}` is an exercise, not a command: {}\n\n{}",
            exercise.title,
            of_exercise(exercise.label())
        );
    }
    let mut lines = vec![
        format!("error: there is no command `{shown}`"),
        String::new(),
    ];
    if word.parse::<u32>().is_ok() {
        let numbers = course.stages.iter().map(|stage| stage.number);
        let (first, last) = (numbers.clone().min(), numbers.max());
        if let (Some(first), Some(last)) = (first, last) {
            lines.push(format!(
                "  Stages go from {first} to {last}: perflings --stage {first}"
            ));
        }
    } else if let Some(near) = near(word, course, commands) {
        lines.push(format!("  Did you mean: {near}"));
    }
    lines.push("  perflings          opens the workshop".to_owned());
    lines.push("  perflings list     shows the stages and exercises".to_owned());
    lines.push("  perflings --help   shows every command".to_owned());
    lines.join("\n")
}

fn of_stage(number: u32) -> String {
    format!(
        "  perflings --stage {number}   opens the workshop there\n  \
         perflings run {number}       trains it without a screen\n  \
         perflings check {number}     checks what you have"
    )
}

fn of_exercise(label: &str) -> String {
    let list = keys::name(Action::Open(Overlay::Stages)).unwrap_or_default();
    format!(
        "  perflings              opens the workshop, where {list} lists it\n  \
         perflings check {label}    checks what you have\n  \
         perflings hint {label}     gives a hint"
    )
}

/// The command line that was probably meant.
fn near(word: &str, course: &Course, commands: &Command) -> Option<String> {
    let names = || {
        let hidden = |name: &&str| *name != "help";
        commands
            .get_subcommands()
            .map(Command::get_name)
            .filter(hidden)
    };
    let stages = course.stages.iter().map(|stage| stage.id.as_str());
    let ids = course.exercises.iter().map(|it| it.id.as_str());
    let labels = course.exercises.iter().map(Exercise::label);
    let found = close(word, names().chain(stages).chain(ids).chain(labels))?;
    Some(if names().any(|name| name == found) {
        format!("perflings {found}")
    } else if let Some(stage) = course.stage_by_id(found) {
        format!("perflings --stage {}", stage.number)
    } else {
        format!("perflings check {found}")
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::args::Cli;

    fn said(word: &str) -> String {
        answer(word, &Course::builtin("en"), &Cli::command())
    }

    #[test]
    fn each_slip_is_answered_with_what_was_meant() {
        for (word, wanted) in [
            ("3", "perflings --stage 3 "),
            ("broken-init", "perflings --stage 1 "),
            ("k01", "perflings check k01 "),
            ("k01-swiglu", "perflings check k01 "),
            ("chek", "Did you mean: perflings check\n"),
            ("brokn-init", "Did you mean: perflings --stage 1\n"),
            ("k010", "Did you mean: perflings check k01\n"),
            ("99", "Stages go from 1 to 6: perflings --stage 1"),
            ("foo", "perflings list     shows"),
        ] {
            let said = said(word);
            assert!(
                said.starts_with("error: ") && said.contains(wanted),
                "{word}:\n{said}"
            );
            // The first line holds a title, as long as that is.
            assert!(said.lines().skip(1).all(|line| line.len() <= 80), "{said}");
        }
        assert!(!said("foo").contains("Did you mean"));
        assert!(!said("\u{1b}[2J").contains('\u{1b}'));
    }
}
