//! The values that a configuration's choices may have, in the words of its files.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Declares a kebab-case choice: its serde form, its text form and the list of all its values come from one place.
macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum $name {
            #[default]
            $($(#[$vdoc])* #[serde(rename = $text)] $variant),+
        }

        impl $name {
            /// Every value as it is written in a file.
            pub const NAMES: &'static [&'static str] = &[$($text),+];

            /// The value written as `text`, if there is one.
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)+ _ => None }
            }

            /// How the value is written in a file.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

choice!(
    /// A named model size.
    Preset { Tiny = "tiny", Small = "small", Medium = "medium" }
);
choice!(
    /// How weights start.
    Init {
        /// Every matrix N(0, 0.02), norm gains 1.
        Normal002 = "normal-0.02",
        /// burn's own defaults: embedding N(0, 1), linear layers uniform within ±1/√fan_in.
        LibraryDefault = "library-default",
    }
);
choice!(
    /// Query, key and value projections.
    Qkv { Separate = "separate", Fused = "fused" }
);
choice!(
    /// How the attention kernel finds keys and values in memory.
    KvLayout {
        /// One copy makes the rows it reads contiguous.
        Contiguous = "contiguous",
        /// Views as they come; the kernel follows their strides.
        Strided = "strided",
        /// Views as they come; the kernel takes them for contiguous. Silently wrong.
        Assumed = "assumed",
    }
);
choice!(
    /// Attention: scores written to memory, or kept in tiles.
    Attention {
        Composed = "composed",
        /// One kernel that follows the strides it is given: see `kv-layout`.
        Kernel = "kernel",
        Flash = "flash",
    }
);
choice!(
    /// RMSNorm: one primitive after the other, or one kernel.
    Norm { Composed = "composed", Fused = "fused" }
);
choice!(
    /// The gate, up and activation part of the feed-forward block.
    Swiglu {
        Separate = "separate",
        NaiveKernel = "naive-kernel",
        FusedGateUp = "fused-gate-up",
        FusedActivation = "fused-activation",
    }
);
choice!(
    /// Softmax and cross-entropy.
    Loss { Composed = "composed", Fused = "fused" }
);
choice!(
    /// Whether the final norm stays in the autodiff graph.
    Gradient {
        Attached = "attached",
        /// The source workshop's fault: the final norm's output has no history.
        DetachedNorm = "detached-norm",
    }
);
choice!(
    /// Where matrix products are computed: the library's kernels, or this project's own.
    Matmul { Library = "library", Own = "own" }
);
choice!(
    /// Training tokens.
    Data {
        /// A seeded chain without self-transitions; its entropy rate is known.
        Markov = "markov",
        /// Uniform, independent tokens: nothing to learn.
        Noise = "noise",
    }
);
choice!(
    /// AdamW: the library's, or one of ours in few launches.
    Optimizer { Library = "library", Fused = "fused" }
);
choice!(
    /// Number format of the computation.
    Precision { F32 = "f32", F16 = "f16", Bf16 = "bf16" }
);
choice!(
    /// Where the host waits for the device.
    Sync { PerPhase = "per-phase", PerStep = "per-step", Never = "never" }
);
