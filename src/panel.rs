//! The names of the panels of the screen, which stage files, the state and the drawing share. `tui::panels` draws the panels.

use serde::Deserialize;

/// A part of the screen with a subject of its own. The order is that of the key `tab`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::EnumString, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum Panel {
    #[default]
    Lesson,
    Loss,
    Throughput,
    Kernels,
    Roofline,
    Ledger,
    Gradients,
    Exponents,
    Memory,
    Evidence,
    Lints,
    Timeline,
}

impl Panel {
    /// Returns true if a learner can mark a row of the panel. The kernels have a selected row of their own.
    pub fn has_rows(self) -> bool {
        !matches!(self, Self::Lesson | Self::Kernels)
    }
}
