//! The panels of the screen by name: stage files, the state and the drawing share this list. How a panel is drawn is
//! in `tui::panels`.

use serde::Deserialize;

macro_rules! panels {
    ($($panel:ident = $name:literal),+ $(,)?) => {
        /// A part of the screen with a subject of its own.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
        #[serde(rename_all = "lowercase")]
        pub enum Panel { $($panel),+ }

        impl Panel {
            /// In the order of `tab`.
            pub const ALL: [Self; Self::NAMES.len()] = [$(Self::$panel),+];
            /// Their names in the same order.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// As lessons and stage files write it.
            pub const fn name(self) -> &'static str {
                Self::NAMES[self as usize]
            }
        }
    };
}

panels! {
    Lesson = "lesson",
    Loss = "loss",
    Throughput = "throughput",
    Kernels = "kernels",
    Roofline = "roofline",
    Ledger = "ledger",
    Gradients = "gradients",
    Exponents = "exponents",
    Memory = "memory",
    Evidence = "evidence",
    Lints = "lints",
    Timeline = "timeline",
}
