//! The table of all keys of a configuration. Files, `--set`, the hash, comparisons, the reference for parity and the ranking of `bench` read
//! this table, and no other place lists keys.

use strum::VariantNames;

use super::run::*;
use super::spelling::{nearest, unknown};

/// A value as a file or the command line gives it.
#[derive(Clone, Debug, PartialEq, strum::Display)]
pub enum KnobValue {
    #[strum(to_string = "\"{0}\"")]
    Text(String),
    #[strum(transparent)]
    Integer(i64),
    #[strum(transparent)]
    Number(f64),
    /// A value that no key takes, in words: `a list`.
    #[strum(transparent)]
    Other(&'static str),
}

impl KnobValue {
    /// Reads an unquoted word: a number if it is one, otherwise a text.
    pub fn from_word(word: &str) -> Self {
        if let Ok(n) = word.parse::<i64>() {
            Self::Integer(n)
        } else if let Ok(x) = word.parse::<f64>() {
            Self::Number(x)
        } else {
            Self::Text(word.trim_matches('"').to_owned())
        }
    }
}

/// The values that a key takes.
#[derive(Clone, Copy, Debug)]
pub enum ValueKind {
    /// One of these words; the first is the default, the plain and correct version.
    Choice(&'static [&'static str]),
    /// A whole number from `least` to `most`; the preset has the default.
    Whole {
        least: u64,
        most: u64,
    },
    Number,
}

/// The effect of a change of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changes {
    /// The amount of work changes. A comparison at two values would compare different work.
    Size,
    /// The data or the number format changes. A comparison at two values would compare different work.
    Task,
    /// The results change: other weights, other gradients, or a fault.
    Results,
    /// The way of computing changes. The results are equal up to rounding.
    Version,
    /// The measurement changes.
    Measuring,
}

/// The effect of a change of the key on the parameters and on the optimizer's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameters {
    /// They stay: the key switches while a run goes on.
    Kept,
    /// They are created again: the run starts over.
    New,
}

/// The value of the key in the reference whose logits a run is checked against.
#[derive(Clone, Copy, Debug)]
pub enum ParityReference {
    /// The run's own value: the reference has the same sizes, parameters, tokens and seed.
    Own,
    /// The default: the first of the values.
    Plain,
    /// Each value on the left is checked against the one on the right, which has parameters of the same shapes.
    Like(&'static [(&'static str, &'static str)]),
}

/// One key of the configuration.
#[derive(Debug)]
pub struct Knob {
    /// `section.key`, or `preset`.
    pub path: &'static str,
    pub kind: ValueKind,
    pub changes: Changes,
    pub parameters: Parameters,
    pub reference: ParityReference,
    /// The value of the faster version, which `bench --knobs` turns on; `None` if there is none.
    pub fast: Option<&'static str>,
    /// The meaning of the key, in one line.
    pub about: &'static str,
    /// Returns the value as a file has it, without quotes.
    pub get: fn(&RunConfig) -> String,
    set: fn(&mut RunConfig, &KnobValue) -> Option<()>,
}

macro_rules! word {
    ($path:literal, $($at:ident).+, $ty:ident, $changes:ident, $parameters:ident, $reference:expr, $fast:expr, $about:literal) => {
        Knob {
            path: $path, kind: ValueKind::Choice($ty::VARIANTS), changes: Changes::$changes, parameters: Parameters::$parameters,
            reference: $reference, fast: $fast, about: $about,
            get: |c| c.$($at).+.to_string(),
            set: |c, v| match v { KnobValue::Text(t) => { c.$($at).+ = t.parse().ok()?; Some(()) } _ => None },
        }
    };
}

macro_rules! whole {
    ($path:literal, $($at:ident).+, $least:literal..=$most:expr, $changes:ident, $parameters:ident, $about:literal) => {
        Knob {
            path: $path, kind: ValueKind::Whole { least: $least, most: $most }, changes: Changes::$changes,
            parameters: Parameters::$parameters, reference: Own, fast: None, about: $about,
            get: |c| c.$($at).+.to_string(),
            set: |c, v| match v { KnobValue::Integer(n) => { c.$($at).+ = (*n).try_into().ok()?; Some(()) } _ => None },
        }
    };
}

macro_rules! number {
    ($path:literal, $($at:ident).+, $changes:ident, $parameters:ident, $about:literal) => {
        Knob {
            path: $path, kind: ValueKind::Number, changes: Changes::$changes, parameters: Parameters::$parameters,
            reference: Own, fast: None, about: $about,
            get: |c| c.$($at).+.to_string(),
            set: |c, v| {
                c.$($at).+ = match v { KnobValue::Number(x) => fifteen_digits(*x), KnobValue::Integer(n) => *n as f64, _ => return None };
                Some(())
            },
        }
    };
}

use ParityReference::{Like, Own, Plain};

/// The references of `model.swiglu`: one with two projections and one with a fused projection, whose parameters have another shape.
const SWIGLU: ParityReference = Like(&[
    ("naive-kernel", "separate"),
    ("fused-activation", "fused-gate-up"),
]);

#[rustfmt::skip] // A table reads best with one line for each key.
/// Every key, in the order of the documentation.
pub static KNOBS: &[Knob] = &[
    Knob { set: set_preset, ..word!("preset", preset, Preset, Size, New, Own, None, "model size: sets hidden, layers, heads, kv-heads, ffn, vocab, batch and context") },
    whole!("model.hidden", model.hidden, 1..=65_536, Size, New, "width of the residual stream"),
    whole!("model.layers", model.layers, 1..=1_024, Size, New, "number of blocks"),
    whole!("model.heads", model.heads, 1..=1_024, Size, New, "query heads; must divide hidden"),
    whole!("model.kv-heads", model.kv_heads, 1..=1_024, Size, New, "key and value heads; must divide heads"),
    whole!("model.ffn", model.ffn, 1..=262_144, Size, New, "width of the feed-forward block"),
    whole!("model.vocab", model.vocab, 2..=1_000_000, Size, New, "number of tokens"),
    word!("model.init", model.init, Init, Results, New, Own, None, "initial weights"),
    word!("model.qkv", model.qkv, Qkv, Version, New, Own, Some("fused"), "three projections, or one"),
    word!("model.kv-layout", model.kv_layout, KvLayout, Results, Kept, Plain, None, "how the attention kernel reads keys and values"),
    word!("model.attention", model.attention, Attention, Version, Kept, Plain, Some("flash"), "scores in memory, or in tiles"),
    word!("model.norm", model.norm, Norm, Version, Kept, Plain, Some("fused"), "RMSNorm from primitives, or one kernel"),
    word!("model.swiglu", model.swiglu, Swiglu, Version, New, SWIGLU, Some("fused-activation"), "gate, up and activation"),
    word!("model.loss", model.loss, Loss, Version, Kept, Plain, Some("fused"), "softmax and cross-entropy from primitives, in one kernel, or with the head in parts"),
    word!("model.gradient", model.gradient, Gradient, Results, Kept, Plain, None, "whether the final norm passes its gradient on"),
    word!("model.matmul", model.matmul, Matmul, Version, Kept, Plain, Some("own"), "matrix products: the library's kernels, this project's, or f32 as two f16 halves on matrix cores"),
    word!("train.data", train.data, Data, Task, Kept, Own, None, "a learnable chain, or noise"),
    word!("train.optimizer", train.optimizer, Optimizer, Version, New, Own, Some("fused"), "AdamW: the library's, or ours in few launches"),
    word!("train.precision", train.precision, Precision, Task, Kept, Plain, None, "number format of matrix products; sums, norms, softmax, loss and weights stay f32"),
    word!("train.loss-scaling", train.loss_scaling, LossScaling, Results, Kept, Own, None, "with f16: whether the loss is scaled so that small gradients are not zero"),
    word!("train.launches", train.launches, Launches, Version, Kept, Plain, None, "on a GPU: every step launched by the host, or recorded once and replayed, as a CUDA graph is"),
    whole!("train.batch", train.batch, 1..=65_536, Size, Kept, "rows per step"),
    whole!("train.context", train.context, 1..=MAX_CONTEXT as u64, Size, Kept, "tokens per row"),
    whole!("train.seed", train.seed, 0..=9_007_199_254_740_992, Task, New, "seed of weights and data"),
    number!("train.learning-rate", train.learning_rate, Task, Kept, "AdamW's learning rate"),
    word!("measure.sync", measure.sync, Sync, Measuring, Kept, Own, None, "where the host waits for the device"),
    whole!("measure.warmup", measure.warmup, 0..=100_000, Measuring, Kept, "steps that count towards no statistic"),
    whole!("measure.profile-every", measure.profile_every, 0..=1_000_000, Measuring, Kept, "one step in this many is profiled"),
];

/// Configurations that `compare` and `bench` know by name, each with the values that it sets over the preset's.
#[rustfmt::skip] // A table reads best with one line for each version.
pub static VERSIONS: &[(&str, &[(&str, &str)])] = &[
    ("v1", &[]),
    ("v2", &[("model.qkv", "fused"), ("model.swiglu", "fused-gate-up")]),
    ("v3", &[("model.norm", "fused"), ("model.attention", "flash"), ("model.swiglu", "fused-activation"), ("model.loss", "fused"), ("model.matmul", "own"), ("train.optimizer", "fused")]),
    ("v4", &[("model.qkv", "fused"), ("model.swiglu", "fused-gate-up"), ("model.attention", "flash")]),
];

fn set_preset(config: &mut RunConfig, value: &KnobValue) -> Option<()> {
    let KnobValue::Text(name) = value else {
        return None;
    };
    config.set_preset(name.parse().ok()?);
    Some(())
}

impl Knob {
    /// Returns the key with this path.
    ///
    /// # Errors
    /// Names the nearest known key.
    pub fn find(path: &str) -> Result<&'static Self, String> {
        Self::known(path).ok_or_else(|| unknown("key", path, KNOBS.iter().map(|knob| knob.path)))
    }

    /// Returns the key with this path; `None` if there is none.
    pub fn known(path: &str) -> Option<&'static Self> {
        KNOBS.iter().find(|knob| knob.path == path)
    }

    /// Returns a sentence on why changing this key has no effect with the other values of `config`; `None` if it has one.
    pub fn why_no_effect(&self, config: &RunConfig) -> Option<&'static str> {
        let flash = config.model.attention == Attention::Flash;
        let follows_strides = !flash && config.model.kv_layout != KvLayout::Contiguous;
        match self.path {
            "model.kv-layout" if flash => {
                Some("No effect now: flash attention does not read this knob.")
            }
            "model.attention" if follows_strides => Some(
                "No effect now: with this kv-layout, \
                 composed and kernel both run the kernel that follows strides.",
            ),
            _ => None,
        }
    }

    /// Returns the keys that `bench --knobs` turns on and off, in the order of the table.
    pub fn with_fast_version() -> impl Iterator<Item = &'static Self> {
        KNOBS.iter().filter(|knob| knob.fast.is_some())
    }

    /// Returns the default of a choice; `None` for a number, whose default is the preset's.
    pub fn plain(&self) -> Option<&'static str> {
        match self.kind {
            ValueKind::Choice(names) => names.first().copied(),
            ValueKind::Whole { .. } | ValueKind::Number => None,
        }
    }

    /// Returns true if runs at two values of this key do different work, so that their times cannot be compared.
    pub fn changes_work(&self) -> bool {
        matches!(self.changes, Changes::Size | Changes::Task)
    }

    /// Returns true if steps at two values of this key train on different numbers of tokens. Their times are compared per token.
    pub fn changes_tokens(&self) -> bool {
        ["train.batch", "train.context"].contains(&self.path)
    }

    /// Writes the value into `config`.
    ///
    /// # Errors
    /// Fails if the key does not take the value. The error lists the values that it takes.
    pub fn set(&self, config: &mut RunConfig, value: &KnobValue) -> Result<(), String> {
        if let KnobValue::Integer(n) = value
            && let Some(problem) = self.out_of_range(i128::from(*n))
        {
            return Err(problem);
        }
        (self.set)(config, value).ok_or_else(|| {
            let path = self.path;
            match (self.kind, value) {
                (ValueKind::Choice(names), KnobValue::Text(text)) => format!(
                    "`{path}` cannot be {value}; did you mean \"{}\"? It takes {}",
                    nearest(text, names.iter().copied()),
                    quoted(names)
                ),
                (ValueKind::Choice(names), _) => {
                    format!(
                        "`{path}` is {value}; it takes a quoted word: {}",
                        quoted(names)
                    )
                }
                (ValueKind::Whole { .. }, _) => {
                    format!("`{path}` is {value}; it takes a whole number")
                }
                (ValueKind::Number, _) => format!("`{path}` is {value}; it takes a number"),
            }
        })
    }

    /// Returns the problem of `n` as the value of this key; `None` if it is in range, or if the key takes no whole number.
    fn out_of_range(&self, n: i128) -> Option<String> {
        let ValueKind::Whole { least, most } = self.kind else {
            return None;
        };
        let path = self.path;
        if n < i128::from(least) {
            Some(format!("{path} is {n}; write {least} or more"))
        } else if n > i128::from(most) {
            Some(format!(
                "{path} is {n}, over the limit of {most}; write {most} or less"
            ))
        } else {
            None
        }
    }

    /// Returns the problem of this key's value in `config`; `None` if it is in range.
    pub(super) fn problem(&self, config: &RunConfig) -> Option<String> {
        self.out_of_range((self.get)(config).parse().ok()?)
    }
}

fn quoted(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    quoted.join(", ")
}

impl ModelConfig {
    /// Returns the model of [`RunConfig::reference`].
    pub fn reference(&self) -> Self {
        let mut run = RunConfig::preset(Preset::Tiny);
        run.model = self.clone();
        run.reference().model
    }
}

impl RunConfig {
    /// Returns one of [`VERSIONS`] by its name, at `tiny`; `None` for an unknown name.
    pub fn version(name: &str) -> Option<Self> {
        let (_, changes) = VERSIONS.iter().find(|(known, _)| *known == name)?;
        let mut config = Self::preset(Preset::Tiny);
        for (path, value) in *changes {
            let value = KnobValue::Text((*value).to_owned());
            Knob::known(path)?.set(&mut config, &value).ok()?;
        }
        Some(config)
    }

    /// Returns the configuration whose logits are the reference for this one. It has these sizes and parameters, and every operation in its
    /// plain version.
    pub fn reference(&self) -> Self {
        let mut plain = self.clone();
        for knob in KNOBS {
            let own = (knob.get)(self);
            let value = match knob.reference {
                ParityReference::Own => continue,
                ParityReference::Plain => knob.plain(),
                ParityReference::Like(pairs) => pairs
                    .iter()
                    .find(|(value, _)| *value == own)
                    .map(|(_, like)| *like),
            };
            if let Some(value) = value {
                // The key takes every word that the table has for it; a test checks that.
                let _ = (knob.set)(&mut plain, &KnobValue::Text(value.to_owned()));
            }
        }
        plain
    }

    /// Returns true if every operation runs in its plain version.
    pub fn is_reference(&self) -> bool {
        self.reference() == *self
    }

    /// Returns a short name for the content: equal configurations have equal hashes, on every machine.
    pub fn hash(&self) -> String {
        let text: String = KNOBS
            .iter()
            .map(|knob| format!("{}={};", knob.path, (knob.get)(self)))
            .collect();
        format!("{:016x}", crate::random::hash(text.bytes()))
    }

    /// Returns the keys in which two configurations differ.
    pub fn differing<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = &'static Knob> + 'a {
        KNOBS
            .iter()
            .filter(|knob| (knob.get)(self) != (knob.get)(other))
    }

    /// Returns the paths of the keys in which two configurations differ.
    pub fn differences(&self, other: &Self) -> Vec<&'static str> {
        self.differing(other).map(|knob| knob.path).collect()
    }

    /// Returns the values of this configuration that differ from another one's, with their keys: `model.norm fused, train.batch 16`.
    pub fn values_unlike(&self, other: &Self) -> String {
        let values: Vec<String> = self
            .differing(other)
            .map(|knob| format!("{} {}", knob.path, (knob.get)(self)))
            .collect();
        values.join(", ")
    }

    /// Returns true if parameters and optimizer state can stay when a run changes from `self` to `other`.
    pub fn keeps_parameters(&self, other: &Self) -> bool {
        self.differing(other)
            .all(|knob| knob.parameters == Parameters::Kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_have_no_problems() {
        for preset in [Preset::Tiny, Preset::Small, Preset::Medium] {
            assert_eq!(RunConfig::preset(preset).problems(), []);
        }
    }

    #[test]
    fn equal_configurations_have_equal_hashes() {
        let [tiny, again, small] = [Preset::Tiny, Preset::Tiny, Preset::Small]
            .map(|preset| RunConfig::preset(preset).hash());
        assert_eq!(tiny, again);
        assert_ne!(tiny, small);
    }

    #[test]
    fn a_key_takes_every_word_of_its_row() {
        for knob in KNOBS {
            let pairs = match knob.reference {
                ParityReference::Like(pairs) => pairs,
                ParityReference::Own | ParityReference::Plain => &[],
            };
            let words = pairs.iter().flat_map(|(value, like)| [*value, *like]);
            for word in words.chain(knob.fast).chain(knob.plain()) {
                let value = KnobValue::Text(word.to_owned());
                let result = knob.set(&mut RunConfig::preset(Preset::Tiny), &value);
                assert_eq!(result, Ok(()), "{}", knob.path);
            }
        }
    }

    #[test]
    fn a_preset_has_the_default_of_every_choice() {
        let config = RunConfig::preset(Preset::Tiny);
        for knob in KNOBS {
            if let Some(word) = knob.plain() {
                assert_eq!((knob.get)(&config), word, "{}", knob.path);
            }
        }
    }

    #[test]
    fn a_version_sets_the_values_of_its_row() {
        let plain = RunConfig::preset(Preset::Tiny);
        for (name, changes) in VERSIONS {
            let version = RunConfig::version(name).expect("its keys take its values");
            assert_eq!(plain.differences(&version).len(), changes.len(), "{name}");
        }
    }

    #[test]
    fn names_of_other_programs_lead_to_ours() {
        for (name, path) in [
            ("train.lr", "train.learning-rate"),
            ("lr", "train.learning-rate"),
            ("rate", "train.learning-rate"),
            ("bs", "train.batch"),
            ("train.batch_size", "train.batch"),
            ("ctx", "train.context"),
            ("model.n_layers", "model.layers"),
            ("optimiser", "train.optimizer"),
            ("wamup", "measure.warmup"),
            ("model.nrom", "model.norm"),
        ] {
            let known = KNOBS.iter().map(|knob| knob.path);
            assert_eq!(nearest(name, known), path, "{name}");
        }
    }

    #[test]
    fn the_reference_is_plain_and_has_parameters_of_the_same_shapes() {
        let mut config = RunConfig::preset(Preset::Small);
        for knob in Knob::with_fast_version() {
            let fast = KnobValue::Text(knob.fast.expect("filtered").to_owned());
            knob.set(&mut config, &fast).expect("a word of the key");
        }
        config.model.gradient = Gradient::DetachedNorm;
        config.model.kv_layout = KvLayout::Assumed;

        let reference = config.reference();

        let mut expected = RunConfig::preset(Preset::Small);
        expected.model.qkv = Qkv::Fused;
        expected.model.swiglu = Swiglu::FusedGateUp;
        expected.train.optimizer = Optimizer::Fused;
        assert_eq!(reference, expected);
        assert!(reference.is_reference() && !config.is_reference());
    }
}
