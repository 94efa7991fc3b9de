//! A first word that is not a command: a stage or an exercise that was meant, or a misspelt one. Misspelt commands are
//! clap's to answer.

use std::ffi::OsString;

use clap::error::{ContextKind, ErrorKind};

use crate::app::{Action, Overlay};
use crate::config::close;
use crate::course::{Course, Exercise};
use crate::tui::keys;

/// What to write instead, where the first argument names a part of the course, or nearly.
pub fn answer(error: &clap::Error, args: &[OsString], course: &Course) -> Option<String> {
    let word = args.get(1)?.to_str()?;
    if error.kind() != ErrorKind::InvalidSubcommand || word == "course" {
        return None;
    }
    let exercises = || course.exercises.iter();
    let known = word.parse::<u32>().is_ok()
        || course.stage_by_id(word).is_some()
        || exercises().any(|exercise| exercise.answers_to(word));
    if !known && error.get(ContextKind::SuggestedSubcommand).is_some() {
        return None;
    }
    let stages = course.stages.iter().map(|stage| stage.id.as_str());
    let ids = exercises().map(|exercise| exercise.id.as_str());
    let near = close(
        word,
        stages.chain(ids).chain(exercises().map(Exercise::label)),
    );
    let numbered = word.parse().ok().and_then(|number| course.stage(number));
    let near = near.unwrap_or(word);
    let (shown, near_shown) = (word.escape_debug(), near.escape_debug());
    let first = |what: &str, title: &str| match near == word {
        true => format!("error: `{shown}` is {what}, not a command: {title}"),
        false => format!("error: there is no command `{shown}`; `{near_shown}` is {what}: {title}"),
    };
    if let Some(stage) = numbered.or_else(|| course.stage_by_id(near)) {
        let (first, number) = (first("a stage", &stage.title), stage.number);
        return Some(format!(
            "{first}\n\n  perflings --stage {number}   opens the workshop there\n  \
             perflings run {number}       trains it without a screen\n  \
             perflings check {number}     checks what you have"
        ));
    }
    if let Some(exercise) = exercises().find(|exercise| exercise.answers_to(near)) {
        let (first, label) = (first("an exercise", &exercise.title), exercise.label());
        let list = keys::name(Action::Open(Overlay::Stages)).unwrap_or_default();
        return Some(format!(
            "{first}\n\n  perflings              opens the workshop, where {list} lists it\n  \
             perflings check {label}    checks what you have\n  \
             perflings hint {label}     gives a hint"
        ));
    }
    let number = word.parse::<u32>().ok()?;
    let last = course.stages.iter().map(|stage| stage.number).max()?;
    Some(format!(
        "error: there is no command and no stage {number}; stages go from 1 to {last}: perflings --stage 1"
    ))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::args::Cli;

    fn said(word: &str) -> Option<String> {
        let args = ["perflings", word];
        let error = Cli::try_parse_from(args).expect_err("no command");
        answer(&error, &args.map(OsString::from), &Course::builtin("en"))
    }

    #[test]
    fn each_slip_is_answered_with_what_was_meant() {
        for (word, wanted) in [
            ("3", "perflings --stage 3 "),
            ("broken-init", "perflings --stage 1 "),
            ("k01", "perflings check k01 "),
            ("k01-swiglu", "perflings check k01 "),
            ("brokn-init", "`broken-init` is a stage"),
            // clap takes this for `report`.
            ("rope", "`rope` is an exercise"),
            ("k010", "perflings check k01 "),
            ("99", "stages go from 1 to 9"),
        ] {
            let said = said(word).expect(word);
            assert!(
                said.starts_with("error: ") && said.contains(wanted),
                "{said}"
            );
        }
        // clap answers these.
        assert_eq!(
            [said("foo"), said("chek"), said("--stag")],
            [None, None, None]
        );
    }
}
