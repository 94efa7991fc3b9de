//! What a bench was asked for and has no figures of: a device that is not here, a run that was refused or broke off.

use serde::{Deserialize, Serialize};

use super::plan::Job;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The device is not here.
    NoDevice,
    /// The engine would not run it.
    Refused,
    /// The run broke off.
    Failed,
    Interrupted,
}

/// What was asked for and has no figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    pub kind: Kind,
    pub device: String,
    /// None: all of this device.
    pub preset: Option<String>,
    pub version: Option<String>,
    pub value: Option<u64>,
    pub reason: String,
}

impl Missing {
    pub fn device(device: &str, reason: String) -> Self {
        Self {
            kind: Kind::NoDevice,
            device: device.to_owned(),
            preset: None,
            version: None,
            value: None,
            reason,
        }
    }

    pub fn of(job: &Job, kind: Kind, reason: String) -> Self {
        Self {
            kind,
            device: job.device.clone(),
            preset: Some(job.preset.to_string()),
            version: Some(job.version.clone()),
            value: job.value,
            reason,
        }
    }

    pub fn covers(&self, job: &Job) -> bool {
        let all = self.preset.is_none();
        self.device == job.device
            && (all
                || self.preset.as_deref() == Some(job.preset.name())
                    && self.version.as_deref() == Some(&job.version)
                    && self.value == job.value)
    }

    /// `gpu is skipped: …`.
    pub fn text(&self) -> String {
        let value = self.value.map(|v| format!(" {v}")).unwrap_or_default();
        let what = match (&self.preset, &self.version) {
            (Some(preset), Some(version)) => {
                format!("{preset} {version}{value} on {}", self.device)
            }
            _ => self.device.clone(),
        };
        let became = match self.kind {
            Kind::NoDevice => "is skipped",
            Kind::Refused => "was refused",
            Kind::Failed => "failed",
            Kind::Interrupted => "was not measured",
        };
        format!("{what} {became}: {}", self.reason)
    }
}
