//! The panels of the screen by name: stage files, the state and the drawing share this list. How a panel is drawn is
//! in `tui::panels`.

use serde::Deserialize;

/// A part of the screen with a subject of its own, in the order of `tab`.
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
    /// Whether a row of it can be marked; the kernels have a selected row of their own.
    pub fn has_rows(self) -> bool {
        !matches!(self, Self::Lesson | Self::Kernels)
    }
}
