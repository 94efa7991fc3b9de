//! What a command line names: a stage, its variant, a version of a preset, a file; as a configuration with its changes.

use std::path::Path;

use anyhow::Result;

use super::args::ChangeArgs;
use crate::course::Stage;
use crate::course::config_file::set;
use crate::course::context::CourseContext;
use crate::course::named::NamedConfig;
use crate::out::usage;
use protocol::config::{Preset, RunConfig};

/// The stage of this number or id, where no variant may stand.
pub(super) fn stage_named<'a>(name: &str, context: &'a CourseContext) -> Result<&'a Stage> {
    if let Some((stage, variant @ ("broken" | "fixed"))) = name.split_once(':') {
        context.stage(stage)?;
        return Err(usage(format!(
            "`{name}` is a variant of a stage, which `compare` takes; write `{stage}`, or `perflings run {stage} --as {variant}`"
        )));
    }
    context.stage(name)
}

/// `4:broken`, `4:fixed`, `v1`, `small:v3`, or a path, with its changes.
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
    let (named, version) = text.split_once(':').unwrap_or(("tiny", text));
    if let (Some(named), Some(mut config)) = (named.parse().ok(), RunConfig::version(version)) {
        config.set_preset(preset.unwrap_or(named));
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
    Err(usage(format!(
        "`{text}` is not a stage variant (4:broken, 4:fixed), a version (v1 to v4, small:v3) or a file"
    )))
}

/// Applies every `--set`, then checks the result.
pub(super) fn changed(mut named: NamedConfig, change: &ChangeArgs) -> Result<NamedConfig> {
    for assignment in &change.sets {
        set(&mut named.config, assignment)
            .map_err(|why| usage(format!("--set {assignment}: {why}")))?;
    }
    match named.config.problems().first() {
        None => Ok(named),
        Some(problem) => Err(usage(problem.what.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::config::{Attention, Matmul, Qkv};

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
