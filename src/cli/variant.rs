//! What a command line names: a stage's variant, a version of a preset, a file; as a configuration with its changes.

use std::path::Path;

use anyhow::Result;

use super::ChangeArgs;
use super::out::usage;
use super::shelf::Shelf;
use crate::config::file::{load, set};
use crate::config::{
    Attention, KNOBS, Loss, Matmul, Norm, Optimizer, Preset, Qkv, RunConfig, Swiglu, nearest,
};
use crate::course::Stage;

/// A configuration and where it came from.
#[derive(Clone, Debug)]
pub struct Subject {
    /// As the command line named it.
    pub name: String,
    /// 0 where it belongs to no stage.
    pub stage: u32,
    pub variant: String,
    pub config: RunConfig,
    /// Keys that the stage studies.
    pub varies: Vec<String>,
}

impl Subject {
    /// The stage as shipped, at another preset if one is given.
    pub fn broken(stage: &Stage, preset: Option<Preset>) -> Self {
        Self::of(
            stage,
            "broken",
            stage.broken_at(preset.unwrap_or(stage.broken.preset)),
        )
    }

    /// The stage's solution.
    pub fn fixed(stage: &Stage, preset: Option<Preset>) -> Self {
        Self::of(
            stage,
            "fixed",
            stage.fixed_at(preset.unwrap_or(stage.fixed.preset)),
        )
    }

    pub fn of(stage: &Stage, variant: &str, config: RunConfig) -> Self {
        Self {
            name: format!("{}:{variant}", stage.number),
            stage: stage.number,
            variant: variant.to_owned(),
            config,
            varies: stage.varies.clone(),
        }
    }

    /// A configuration file.
    pub fn file(path: &Path, preset: Option<Preset>) -> Result<Self> {
        let mut config = load(path)?;
        if let Some(preset) = preset {
            config.set_preset(preset);
        }
        let name = path.display().to_string();
        Ok(Self {
            name,
            stage: 0,
            variant: "custom".to_owned(),
            config,
            varies: Vec::new(),
        })
    }

    /// `4:broken`, `4:fixed`, `v1`, `small:v3`, or a path.
    pub fn named(text: &str, shelf: &Shelf, preset: Option<Preset>) -> Result<Self> {
        match text.split_once(':') {
            Some((stage, "broken")) => return Ok(Self::broken(shelf.stage(stage)?, preset)),
            Some((stage, "fixed")) => return Ok(Self::fixed(shelf.stage(stage)?, preset)),
            _ => {}
        }
        let (named, version) = text.split_once(':').unwrap_or(("tiny", text));
        if let (Some(named), Some(mut config)) = (Preset::parse(named), version_of(version)) {
            config.set_preset(preset.unwrap_or(named));
            return Ok(Self {
                name: text.to_owned(),
                stage: 0,
                variant: version.to_owned(),
                config,
                varies: Vec::new(),
            });
        }
        let path = Path::new(text);
        if path.exists() || text.contains(['/', '\\']) || text.ends_with(".toml") {
            return Self::file(path, preset);
        }
        Err(usage(format!(
            "`{text}` is no stage variant (4:broken, 4:fixed), no version (v1 to v4, small:v3) and no file"
        )))
    }

    /// Applies every `--set`, then checks the result.
    pub fn change(&mut self, change: &ChangeArgs) -> Result<()> {
        for assignment in &change.sets {
            set(&mut self.config, assignment)
                .map_err(|why| usage(format!("--set {assignment}: {why}")))?;
        }
        match self.config.problems().first() {
            None => Ok(()),
            Some(problem) => Err(usage(problem.what.clone())),
        }
    }

    /// The value at a path, as a file would write it.
    pub fn value(&self, path: &str) -> String {
        KNOBS
            .iter()
            .find(|knob| knob.path == path)
            .map(|knob| (knob.get)(&self.config))
            .unwrap_or_default()
    }
}

/// The four versions that `compare` and `bench` know by name, at `tiny`.
pub fn version_of(name: &str) -> Option<RunConfig> {
    let mut config = RunConfig::preset(Preset::Tiny);
    let m = &mut config.model;
    match name {
        "v1" => {}
        "v2" | "v4" => {
            m.qkv = Qkv::Fused;
            m.swiglu = Swiglu::FusedGateUp;
            if name == "v4" {
                m.attention = Attention::Flash;
                m.matmul = Matmul::Library;
            }
        }
        "v3" => {
            m.norm = Norm::Fused;
            m.attention = Attention::Flash;
            m.swiglu = Swiglu::FusedActivation;
            m.loss = Loss::Fused;
            m.matmul = Matmul::Own;
            config.train.optimizer = Optimizer::Fused;
        }
        _ => return None,
    }
    Some(config)
}

/// The preset that `--preset` names.
pub fn preset_of(change: &ChangeArgs) -> Result<Option<Preset>> {
    let Some(name) = &change.preset else {
        return Ok(None);
    };
    let unknown = || {
        let near = nearest(name, Preset::NAMES.iter().copied());
        let all = Preset::NAMES.join(", ");
        usage(format!(
            "--preset: unknown preset `{}`; did you mean `{near}`? There are {all}",
            name.escape_debug()
        ))
    };
    Preset::parse(name).map(Some).ok_or_else(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_take_their_preset() {
        let shelf = Shelf::empty();
        let named = |text| Subject::named(text, &shelf, None).expect("known").config;
        assert_eq!(named("v1"), RunConfig::preset(Preset::Tiny));
        assert_eq!(named("small:v1"), RunConfig::preset(Preset::Small));
        assert_eq!(named("small:v3").model.matmul, Matmul::Own);
        assert_eq!(
            (named("v4").model.qkv, named("v4").model.attention),
            (Qkv::Fused, Attention::Flash)
        );
        assert!(
            Subject::named("v5", &shelf, None)
                .expect_err("unknown")
                .to_string()
                .contains("v1 to v4")
        );
        assert!(Subject::named("big:v1", &shelf, None).is_err());
    }
}
