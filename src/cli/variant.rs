//! Names on the command line. `named` turns `4:broken` (a stage's variant), `small:v3` (a version of a preset) or a file into a
//! configuration, and applies the changes of `--set`. A name of another kind is refused with the command that takes it.

use std::path::Path;

use anyhow::Result;

use super::args::ChangeArgs;
use super::stage_table::ALL;
use super::values::device;
use crate::course::Stage;
use crate::course::config_file::set;
use crate::course::context::CourseContext;
use crate::course::named::NamedConfig;
use crate::out::usage;
use protocol::config::{Preset, RunConfig};

/// Returns the stage with this number or id. A name of another kind is refused with the command that takes it.
pub(super) fn stage_named<'a>(name: &str, context: &'a CourseContext) -> Result<&'a Stage> {
    let found = context.stage(name);
    if found.is_ok() {
        return found;
    }
    if let Some((what, instead)) = meaning(name, context) {
        return Err(refused(name, what, "a stage", &instead));
    }
    // The error about `99:fixed` names the missing stage 99.
    let stage = name.split(':').next().unwrap_or(name);
    context.stage(stage).and(found)
}

/// Returns the error for a name that means `what` where something else is `wanted`: "`k01` is an exercise, not a stage; …". `instead` is the
/// end of the sentence, with the command that takes the name.
pub(super) fn refused(name: &str, what: &str, wanted: &str, instead: &str) -> anyhow::Error {
    let name = crate::sanitize::line(name);
    usage(format!("`{name}` is {what}, not {wanted}; {instead}"))
}

/// Returns the kind of thing that a name means, such as `a stage`, and a sentence with the command that takes it; `None` if the name means
/// nothing. A name counts as a file only if it has no other meaning.
pub(super) fn meaning(name: &str, context: &CourseContext) -> Option<(&'static str, String)> {
    let (stage, variant) = name.split_once(':').unwrap_or((name, ""));
    if let Some(exercise) = context.exercise(name) {
        return Some(("an exercise", exercise.commands()));
    }
    if context.stage(stage).is_ok() {
        let opens =
            format!("`perflings --stage {stage}` opens it, `perflings run {stage}` trains it");
        let as_shipped = format!("write `{stage}`, or `perflings run {stage} --as {variant}`");
        return match variant {
            "" => Some(("a stage", opens)),
            "broken" | "fixed" => Some(("a variant of a stage", as_shipped)),
            _ => None,
        };
    }
    if version(name).is_some() {
        let preset = name.trim_end_matches(char::is_numeric);
        let other = if name.ends_with('1') { 3 } else { 1 };
        let instead = format!("`perflings compare {preset}{other} {name}` takes it");
        return Some(("a version of a preset", instead));
    }
    if name.parse::<Preset>().is_ok() {
        return Some(("a model size", format!("write `--preset {name}`")));
    }
    if device(name).is_ok() {
        return Some(("a device", format!("write `--device {name}`")));
    }
    if name == ALL {
        let instead = "`perflings run all` takes it; `perflings check` without a name checks all";
        return Some(("every stage", instead.to_owned()));
    }
    Path::new(name).is_file().then(|| {
        let shown = crate::sanitize::line(name);
        let instead = format!(
            "`perflings run --config {shown}` trains a configuration, \
             `perflings replay {shown}` shows a recording"
        );
        ("a file", instead)
    })
}

/// Returns the preset and the configuration of a version such as `v1` or `small:v3`; `None` for another text.
fn version(text: &str) -> Option<(Preset, RunConfig)> {
    let (preset, version) = text.split_once(':').unwrap_or(("tiny", text));
    preset.parse().ok().zip(RunConfig::version(version))
}

/// Returns the configuration with the name `4:broken`, `4:fixed`, `v1`, `small:v3` or the path of a file, after the changes of the command
/// line.
pub(super) fn named(
    text: &str,
    context: &CourseContext,
    change: &ChangeArgs,
) -> Result<NamedConfig> {
    changed(unchanged(text, context, change.preset)?, change)
}

fn unchanged(text: &str, context: &CourseContext, preset: Option<Preset>) -> Result<NamedConfig> {
    match text.split_once(':') {
        Some((stage, "broken")) => return Ok(NamedConfig::broken(context.stage(stage)?, preset)),
        Some((stage, "fixed")) => return Ok(NamedConfig::fixed(context.stage(stage)?, preset)),
        _ => {}
    }
    if let Some((preset_of_version, mut config)) = version(text) {
        config.set_preset(preset.unwrap_or(preset_of_version));
        let version = text.rsplit(':').next().unwrap_or_default();
        return Ok(NamedConfig::loose(text.to_owned(), version, config));
    }
    let path = Path::new(text);
    if path.exists() || text.contains(['/', '\\']) || text.ends_with(".toml") {
        return NamedConfig::file(path, preset);
    }
    let (stage, _) = text.split_once(':').unwrap_or((text, ""));
    if context.stage(stage).is_ok() {
        return Err(usage(format!(
            "`{text}` names no variant of a stage; write {stage}:broken or {stage}:fixed"
        )));
    }
    Err(match meaning(text, context) {
        Some((what, instead)) => refused(text, what, "a configuration", &instead),
        None => usage(format!(
            "`{}` is not a stage variant (4:broken, 4:fixed), \
             a version (v1 to v4, small:v3) or a file",
            crate::sanitize::line(text)
        )),
    })
}

/// Applies each `--set` to a configuration.
///
/// # Errors
/// If a value does not fit its key, or if the configuration has a problem afterwards.
pub(super) fn changed(mut named: NamedConfig, change: &ChangeArgs) -> Result<NamedConfig> {
    for assignment in &change.sets {
        set(&mut named.config, assignment)
            .map_err(|why| usage(format!("--set {assignment}: {why}")))?;
    }
    match named.config.problems().first() {
        None => Ok(named),
        Some(problem) => Err(usage(problem.message.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::Cli;
    use clap::CommandFactory;
    use protocol::config::{Attention, Matmul, Qkv};

    #[test]
    fn a_name_of_another_kind_leads_to_the_command_that_takes_it() {
        let context = CourseContext::load(None).expect("a course");
        let mut names = ["5:fixed", "v1", "small:v3", "small", "gpu", "gpu:1", "all"]
            .map(str::to_owned)
            .to_vec();
        for exercise in &context.course.exercises {
            names.extend([exercise.label(), exercise.folder(), &exercise.id].map(str::to_owned));
        }
        let assert_names_a_command = |name: &str, message: &str| {
            assert!(
                message.contains(name) && !message.contains("did you mean"),
                "{message}"
            );
            let is_command = |text: &&str| text.starts_with("perflings ");
            let mut quoted = message.split('`').skip(1).step_by(2);
            assert!(
                quoted.any(|text| is_command(&text) || text.starts_with("--")),
                "{message}"
            );
            for command in message.split('`').filter(is_command) {
                let parsed = Cli::command().try_get_matches_from(command.split(' '));
                assert!(parsed.is_ok(), "{command}: {parsed:?}");
            }
        };
        for name in names {
            if context.stage(&name).is_ok() {
                continue;
            }
            let error = stage_named(&name, &context).expect_err("no stage");
            assert_names_a_command(&name, &error.to_string());
            if let Err(error) = super::named(&name, &context, &ChangeArgs::default()) {
                assert_names_a_command(&name, &error.to_string());
            }
        }
        for stage in &context.course.stages {
            let (what, instead) = meaning(&stage.id, &context).expect("a stage");
            let error = refused(&stage.id, what, "a file", &instead);
            assert_names_a_command(&stage.id, &error.to_string());
        }
        assert!(meaning("k99", &context).is_none() && meaning("zzz", &context).is_none());
    }

    #[test]
    fn versions_take_their_preset() {
        let context = CourseContext::load(None).expect("a course");
        let no_change = ChangeArgs::default();
        let named = |text| {
            super::named(text, &context, &no_change)
                .expect("known")
                .config
        };
        assert_eq!(named("v1"), RunConfig::preset(Preset::Tiny));
        assert_eq!(named("small:v1"), RunConfig::preset(Preset::Small));
        assert_eq!(named("small:v3").model.matmul, Matmul::Own);
        assert_eq!(
            (named("v4").model.qkv, named("v4").model.attention),
            (Qkv::Fused, Attention::Flash)
        );
        assert!(
            super::named("v5", &context, &no_change)
                .expect_err("unknown")
                .to_string()
                .contains("v1 to v4")
        );
        assert!(super::named("big:v1", &context, &no_change).is_err());
    }
}
