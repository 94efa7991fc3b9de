//! A configuration together with the name it was asked for by: a stage's variant, a version, a file.

use std::path::Path;

use anyhow::Result;

use super::Stage;
use crate::course::config_file::load;
use protocol::config::{Preset, RunConfig};
use protocol::{RunSpec, Slot};

/// A configuration and where it came from.
#[derive(Clone, Debug)]
pub struct NamedConfig {
    /// As the command line named it.
    pub name: String,
    /// 0 where it belongs to no stage.
    pub stage: u32,
    pub variant: String,
    pub config: RunConfig,
    /// Keys that the stage offers.
    pub offers: Vec<String>,
}

impl NamedConfig {
    /// The stage as shipped, at another preset if one is given.
    pub fn broken(stage: &Stage, preset: Option<Preset>) -> Self {
        let preset = preset.unwrap_or(stage.broken.preset);
        Self::of(stage, "broken", stage.broken_at(preset))
    }

    /// The stage's solution.
    pub fn fixed(stage: &Stage, preset: Option<Preset>) -> Self {
        let preset = preset.unwrap_or(stage.fixed.preset);
        Self::of(stage, "fixed", stage.fixed_at(preset))
    }

    pub fn of(stage: &Stage, variant: &str, config: RunConfig) -> Self {
        Self {
            name: format!("{}:{variant}", stage.number),
            stage: stage.number,
            variant: variant.to_owned(),
            config,
            offers: stage.offers.clone(),
        }
    }

    /// A configuration file.
    pub fn file(path: &Path, preset: Option<Preset>) -> Result<Self> {
        let mut config = load(path)?;
        if let Some(preset) = preset {
            config.set_preset(preset);
        }
        let name = path.display().to_string();
        Ok(Self::loose(name, "custom", config))
    }

    /// A configuration that belongs to no stage.
    pub fn loose(name: String, variant: &str, config: RunConfig) -> Self {
        Self {
            name,
            stage: 0,
            variant: variant.to_owned(),
            config,
            offers: Vec::new(),
        }
    }

    /// As one side of a comparison.
    pub fn spec(&self, slot: Slot) -> RunSpec {
        RunSpec {
            stage: self.stage,
            slot,
            ..RunSpec::new(&self.variant, &self.config)
        }
    }
}
