//! A configuration together with the name that a learner used for it: a variant of a stage such as `3:fixed`, a version such as `v2`, or a
//! file such as `my.toml`.

use std::path::Path;

use anyhow::Result;

use super::Stage;
use crate::course::config_file::load;
use protocol::config::{Preset, RunConfig};
use protocol::{RunSpec, Slot};

/// A configuration and its origin.
#[derive(Clone, Debug)]
pub struct NamedConfig {
    /// The name on the command line: `3:fixed`, `my.toml`.
    pub name: String,
    /// The number of the stage; 0 for a configuration that belongs to no stage.
    pub stage: u32,
    /// `broken`, `fixed` or `custom`, or the name of a version.
    pub variant: String,
    pub config: RunConfig,
    /// The keys that the stage offers to change; empty without a stage.
    pub offers: Vec<String>,
}

impl NamedConfig {
    /// Returns the starter of a stage, at another preset if one is given.
    pub fn broken(stage: &Stage, preset: Option<Preset>) -> Self {
        let config = stage.broken_at(preset.unwrap_or(stage.broken.preset));
        Self::of_stage(stage, "broken", config)
    }

    /// Returns the solution of a stage, at another preset if one is given.
    pub fn fixed(stage: &Stage, preset: Option<Preset>) -> Self {
        let config = stage.fixed_at(preset.unwrap_or(stage.fixed.preset));
        Self::of_stage(stage, "fixed", config)
    }

    /// Returns a variant of a stage with this configuration.
    pub fn of_stage(stage: &Stage, variant: &str, config: RunConfig) -> Self {
        Self {
            name: format!("{}:{variant}", stage.number),
            stage: stage.number,
            variant: variant.to_owned(),
            config,
            offers: stage.offers.clone(),
        }
    }

    /// Reads a configuration file, and moves it to another preset if one is given.
    pub fn file(path: &Path, preset: Option<Preset>) -> Result<Self> {
        let mut config = load(path)?;
        if let Some(preset) = preset {
            config.set_preset(preset);
        }
        let name = path.display().to_string();
        Ok(Self::loose(name, "custom", config))
    }

    /// Returns a configuration that belongs to no stage.
    pub fn loose(name: String, variant: &str, config: RunConfig) -> Self {
        Self {
            name,
            stage: 0,
            variant: variant.to_owned(),
            config,
            offers: Vec::new(),
        }
    }

    /// Returns the run of this configuration as one side of a comparison.
    pub fn spec(&self, slot: Slot) -> RunSpec {
        RunSpec {
            stage: self.stage,
            slot,
            ..RunSpec::new(&self.variant, &self.config)
        }
    }
}
