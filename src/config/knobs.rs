//! The table of every key of a configuration: its path, what it takes, what changing it keeps.
//! Files, `--set`, the hash, comparisons and the documentation read this table; nothing else lists keys.

use super::*;

/// A value as a file or the command line gives it.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Text(String),
    Integer(i64),
    Number(f64),
    Other(&'static str),
}

impl Value {
    /// The reading of an unquoted word: a number if it is one, else text.
    pub fn from_word(word: &str) -> Self {
        if let Ok(n) = word.parse::<i64>() {
            Self::Integer(n)
        } else if let Ok(x) = word.parse::<f64>() {
            Self::Number(x)
        } else {
            Self::Text(word.trim_matches('"').to_owned())
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::Text(text) => format!("\"{}\"", text.escape_debug()),
            Self::Integer(n) => n.to_string(),
            Self::Number(x) => x.to_string(),
            Self::Other(kind) => (*kind).to_owned(),
        }
    }
}

/// What a key takes.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Choice(&'static [&'static str]),
    /// A whole number from 0 to this limit.
    Whole(u64),
    Number,
}

/// One key of the configuration.
pub struct Knob {
    /// `section.key`, or `preset`.
    pub path: &'static str,
    pub kind: Kind,
    /// Parameters and optimizer state survive a change of this key.
    pub keeps_parameters: bool,
    /// Outputs and gradients stay the same, up to rounding, whatever the value.
    pub keeps_mathematics: bool,
    pub doc: &'static str,
    pub get: fn(&RunConfig) -> String,
    set: fn(&mut RunConfig, &Value) -> Option<()>,
}

impl Knob {
    /// The key with this path, or the nearest one as an error message.
    pub fn find(path: &str) -> Result<&'static Self, String> {
        KNOBS.iter().find(|knob| knob.path == path).ok_or_else(|| {
            let near = nearest(path, KNOBS.iter().map(|knob| knob.path));
            format!(
                "unknown key `{}`; the nearest known key is `{near}`",
                path.escape_debug()
            )
        })
    }

    /// Writes the value into `config`, or says what it should have been.
    pub fn set(&self, config: &mut RunConfig, value: &Value) -> Result<(), String> {
        if let (Kind::Whole(limit), Value::Integer(n)) = (self.kind, value)
            && !(0..=limit as i64).contains(n)
        {
            return Err(format!(
                "`{}` is {n}; it takes a whole number from 0 to {limit}",
                self.path
            ));
        }
        (self.set)(config, value).ok_or_else(|| match (self.kind, value) {
            (Kind::Choice(names), Value::Text(text)) => {
                let near = nearest(text, names.iter().copied());
                let all = names
                    .iter()
                    .map(|n| format!("\"{n}\""))
                    .collect::<Vec<_>>()
                    .join(", ");
                format!(
                    "`{}` cannot be {}; did you mean \"{near}\"? It takes {all}",
                    self.path,
                    value.describe()
                )
            }
            (Kind::Choice(names), _) => {
                let all = names
                    .iter()
                    .map(|n| format!("\"{n}\""))
                    .collect::<Vec<_>>()
                    .join(", ");
                format!(
                    "`{}` is {}; it takes a quoted word: {all}",
                    self.path,
                    value.describe()
                )
            }
            (Kind::Whole(_), _) => format!(
                "`{}` is {}; it takes a whole number",
                self.path,
                value.describe()
            ),
            (Kind::Number, _) => {
                format!("`{}` is {}; it takes a number", self.path, value.describe())
            }
        })
    }
}

macro_rules! word {
    ($path:literal, $ty:ident, $($field:ident).+, $params:literal, $maths:literal, $doc:literal) => {
        Knob {
            path: $path, kind: Kind::Choice($ty::NAMES), keeps_parameters: $params, keeps_mathematics: $maths, doc: $doc,
            get: |c| c.$($field).+.to_string(),
            set: |c, v| match v { Value::Text(t) => { c.$($field).+ = $ty::parse(t)?; Some(()) } _ => None },
        }
    };
}

macro_rules! whole {
    ($path:literal, $($field:ident).+, $limit:literal, $params:literal, $maths:literal, $doc:literal) => {
        Knob {
            path: $path, kind: Kind::Whole($limit), keeps_parameters: $params, keeps_mathematics: $maths, doc: $doc,
            get: |c| c.$($field).+.to_string(),
            set: |c, v| match v { Value::Integer(n) => { c.$($field).+ = (*n).try_into().ok()?; Some(()) } _ => None },
        }
    };
}

/// Every key, in the order of the documentation.
pub static KNOBS: &[Knob] = &[
    Knob {
        path: "preset",
        kind: Kind::Choice(Preset::NAMES),
        keeps_parameters: false,
        keeps_mathematics: false,
        doc: "model size: sets hidden, layers, heads, kv-heads, ffn, vocab, batch and context",
        get: |c| c.preset.to_string(),
        set: |c, v| match v {
            Value::Text(t) => {
                c.set_preset(Preset::parse(t)?);
                Some(())
            }
            _ => None,
        },
    },
    whole!(
        "model.hidden",
        model.hidden,
        65_536,
        false,
        false,
        "width of the residual stream"
    ),
    whole!(
        "model.layers",
        model.layers,
        1_024,
        false,
        false,
        "number of blocks"
    ),
    whole!(
        "model.heads",
        model.heads,
        1_024,
        false,
        false,
        "query heads; must divide hidden"
    ),
    whole!(
        "model.kv-heads",
        model.kv_heads,
        1_024,
        false,
        false,
        "key and value heads; must divide heads"
    ),
    whole!(
        "model.ffn",
        model.ffn,
        262_144,
        false,
        false,
        "width of the feed-forward block"
    ),
    whole!(
        "model.vocab",
        model.vocab,
        1_000_000,
        false,
        false,
        "number of tokens"
    ),
    word!(
        "model.init",
        Init,
        model.init,
        false,
        false,
        "initial weights"
    ),
    word!(
        "model.qkv",
        Qkv,
        model.qkv,
        false,
        true,
        "three projections, or one"
    ),
    word!(
        "model.kv-layout",
        KvLayout,
        model.kv_layout,
        true,
        false,
        "how the attention kernel reads keys and values"
    ),
    word!(
        "model.attention",
        Attention,
        model.attention,
        true,
        true,
        "scores in memory, or in tiles"
    ),
    word!(
        "model.norm",
        Norm,
        model.norm,
        true,
        true,
        "RMSNorm from primitives, or one kernel"
    ),
    word!(
        "model.swiglu",
        Swiglu,
        model.swiglu,
        false,
        true,
        "gate, up and activation"
    ),
    word!(
        "model.loss",
        Loss,
        model.loss,
        true,
        true,
        "softmax and cross-entropy from primitives, or one kernel"
    ),
    word!(
        "model.gradient",
        Gradient,
        model.gradient,
        true,
        false,
        "whether the final norm passes its gradient on"
    ),
    word!(
        "model.matmul",
        Matmul,
        model.matmul,
        true,
        true,
        "matrix products: the library's kernels, or this project's"
    ),
    word!(
        "train.data",
        Data,
        train.data,
        true,
        false,
        "a learnable chain, or noise"
    ),
    word!(
        "train.optimizer",
        Optimizer,
        train.optimizer,
        false,
        true,
        "AdamW: the library's, or ours in few launches"
    ),
    word!(
        "train.precision",
        Precision,
        train.precision,
        false,
        false,
        "number format"
    ),
    whole!(
        "train.batch",
        train.batch,
        65_536,
        true,
        false,
        "rows per step"
    ),
    whole!(
        "train.context",
        train.context,
        1_048_576,
        true,
        false,
        "tokens per row"
    ),
    whole!(
        "train.seed",
        train.seed,
        9_007_199_254_740_992,
        false,
        false,
        "seed of weights and data"
    ),
    Knob {
        path: "train.learning-rate",
        kind: Kind::Number,
        keeps_parameters: true,
        keeps_mathematics: false,
        doc: "AdamW's learning rate",
        get: |c| c.train.learning_rate.to_string(),
        set: |c, v| match v {
            Value::Number(x) => {
                c.train.learning_rate = fifteen_digits(*x);
                Some(())
            }
            Value::Integer(n) => {
                c.train.learning_rate = *n as f64;
                Some(())
            }
            _ => None,
        },
    },
    word!(
        "measure.sync",
        Sync,
        measure.sync,
        true,
        true,
        "where the host waits for the device"
    ),
    whole!(
        "measure.warmup",
        measure.warmup,
        100_000,
        true,
        true,
        "steps that count towards no statistic"
    ),
    whole!(
        "measure.profile-every",
        measure.profile_every,
        1_000_000,
        true,
        true,
        "one step in this many is profiled"
    ),
];
