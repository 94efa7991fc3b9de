//! Which version of each operation runs in a model, and the tables that they share.

use burn::tensor::{Device, Tensor, TensorData};

use super::attention::{Attention, causal_mask};
use super::backend::{is_cpu, strides};
use super::format::Format;
use super::fusion::Fusion;
use super::linear::{Linear, NextOperation, takes_swiglu};
use super::rope::{Rope, tables};
use super::shared_work::SharedWork;
use super::swiglu::PackedActivation;
use super::{Parameter, Scope, apply, learner_kernel};
use protocol::config::{
    Attention as AttentionVersion, KvLayout, Matmul, ModelConfig, Norm, ROPE_THETA, Swiglu,
};

/// The versions of a model's operations. The scope that a method gets names the place in the model.
#[derive(Clone, Debug)]
pub struct Versions {
    pub config: ModelConfig,
    pub format: Format,
    /// The number of tokens of a sequence.
    pub context: usize,
    /// cos and sin of the rotary angles, `[context, head_dim / 2]` each.
    rope: [Tensor<2>; 2],
    /// The causal mask `[context, context]`. Flash attention has none, because its memory grows with the context only.
    mask: Option<Tensor<2>>,
}

/// The input of a product: the output of a norm with the work that norm and product share, or any tensor without shared work.
#[derive(Clone, Debug)]
pub struct Input {
    pub x: Tensor<2>,
    pub shared: SharedWork,
}

impl From<Tensor<2>> for Input {
    fn from(x: Tensor<2>) -> Self {
        let shared = SharedWork::default();
        Self { x, shared }
    }
}

impl Versions {
    /// Chooses the versions of a configuration, with tables for this context on the device.
    pub fn new(config: ModelConfig, format: Format, context: usize, device: &Device) -> Self {
        let plain_device = device.clone().inner();
        let table = |values: Vec<f32>, columns: usize| {
            let data = TensorData::new(values, [context, columns]);
            Tensor::<2>::from_data(data, &plain_device)
        };
        let head_dim = config.hidden / config.heads;
        let (cos, sin) = tables(context, head_dim, ROPE_THETA);
        let in_memory = config.attention != AttentionVersion::Flash;
        Self {
            rope: [cos, sin].map(|values| table(values, head_dim / 2)),
            mask: in_memory.then(|| table(causal_mask(context), context)),
            config,
            format,
            context,
        }
    }

    /// Takes over another configuration of the same sizes, and another context.
    pub fn set(&mut self, config: ModelConfig, context: usize) {
        let in_memory = config.attention != AttentionVersion::Flash;
        if self.context == context && self.mask.is_some() == in_memory {
            self.config = config;
        } else {
            *self = Self::new(config, self.format, context, &self.rope[0].device());
        }
    }

    /// Computes x·Wᵀ, `[n, out]`.
    pub fn linear(&self, scope: Scope, x: impl Into<Input>, w: &Parameter) -> Tensor<2> {
        self.linear_then(scope, x.into(), w, NextOperation::Nothing)
    }

    fn linear_then(
        &self,
        scope: Scope,
        Input { x, shared }: Input,
        w: &Parameter,
        then: NextOperation,
    ) -> Tensor<2> {
        let op = Linear {
            shared,
            then,
            ..self.product(w)
        };
        apply(scope, op, [x, w.value.clone()]) // [n, out]
    }

    /// Returns the operation x·Wᵀ.
    pub fn product(&self, w: &Parameter) -> Linear {
        Linear {
            matmul: self.config.matmul,
            format: self.format,
            operand: w.operand.clone(),
            ..Linear::default()
        }
    }

    /// Computes x·Wᵀ `[n, out]` with its first `columns` columns rotated as heads. The product itself rotates where attention accepts
    /// rotated keys and queries. Values, of which no column is rotated, then have the format of keys.
    pub fn rotated(
        &self,
        scope: Scope,
        x: impl Into<Input>,
        w: &Parameter,
        columns: usize,
    ) -> Tensor<2> {
        let x = x.into();
        let rope = self.rope(columns);
        if self.attention(&x.x).rope.is_some() {
            let then = NextOperation::Rope(Box::new(rope));
            return self.linear_then(scope, x, w, then); // [n, out]
        }
        let y = self.linear(scope, x, w); // [n, out]
        if columns == 0 {
            return y;
        }
        let part = "attention.rope";
        apply(Scope { part, ..scope }, rope, [y]) // [n, out]
    }

    /// Computes silu(gate)·up of the gates and ups x·Wᵀ `[n, 2·ffn]`. The result is `[n, ffn]`. Where the product computes the activation,
    /// the result is `[3n, ffn]` with the activations in the last third.
    pub fn gated(&self, scope: Scope, x: impl Into<Input>, w: &Parameter) -> Tensor<2> {
        let x = x.into();
        let fused = self.config.swiglu == Swiglu::FusedActivation;
        if fused && self.swiglu_in_product(&x.x) {
            return self.linear_then(scope, x, w, NextOperation::Swiglu); // [3n, ffn]
        }
        let packed = self.linear(scope, x, w); // [n, 2·ffn]
        let op = PackedActivation {
            fused,
            format: self.format,
        };
        let part = "mlp.activation";
        apply(Scope { part, ..scope }, op, [packed]) // [n, ffn]
    }

    /// Computes attention `[n, d]` of rotated q `[n, d]`, k and v `[n, kv]`, or of one tensor that holds the three side by side.
    pub fn attend<const N: usize>(&self, scope: Scope, qkv: [Tensor<2>; N]) -> Tensor<2> {
        let attention = self.attention(&qkv[0]);
        apply(scope, attention, qkv) // [n, d]
    }

    /// Returns the attention over the rows of x. A learner's rotation is an operation of its own.
    fn attention(&self, x: &Tensor<2>) -> Attention {
        let c = &self.config;
        let plain = Attention {
            context: self.context,
            heads: c.heads,
            kv_heads: c.kv_heads,
            head_dim: c.hidden / c.heads,
            version: c.attention,
            layout: c.kv_layout,
            format: self.format,
            mask: self.mask.clone(),
            rope: None,
        };
        let own =
            c.matmul != Matmul::Library && learner_kernel::part_in_use("attention.rope").is_none();
        let in_product = own && plain.takes_rotated(x);
        let rope = in_product.then(|| self.rope(c.hidden));
        Attention { rope, ..plain }
    }

    fn rope(&self, rotated: usize) -> Rope {
        Rope {
            tables: self.rope.clone(),
            context: self.context,
            head_dim: self.config.hidden / self.config.heads,
            rotated,
            fused: self.config.attention == AttentionVersion::Flash,
            format: self.format,
        }
    }

    /// Returns true if the products around the activation of x `[n, d]` do its work. A learner's activation is an operation of its own.
    fn swiglu_in_product(&self, x: &Tensor<2>) -> bool {
        let c = &self.config;
        let fits = match self.format {
            Format::Native => true,
            Format::Full => c.matmul != Matmul::Library && !is_cpu(&x.device()),
            Format::Split | Format::Emulated(_) => false,
        };
        fits && takes_swiglu(c.hidden, c.ffn)
            && Fusion::SwigluInProduct.is_on()
            && learner_kernel::part_in_use("mlp.activation").is_none()
    }

    /// Returns true if the norm of a part and the products around it are our own kernels.
    pub(super) fn own_norm(&self, part: &str) -> bool {
        let own = self.config.matmul != Matmul::Library && self.config.norm == Norm::Fused;
        own && learner_kernel::part_in_use(part).is_none()
    }

    /// Returns the strides of q, k and v, in elements, with which the attention operation reads them.
    pub fn attention_strides(&self) -> Vec<(String, Vec<usize>)> {
        let c = &self.config;
        let t = self.context;
        let dh = c.hidden / c.heads;
        let is_copied =
            c.kv_layout == KvLayout::Contiguous && c.attention == AttentionVersion::Kernel;
        let heads = [("q", c.heads), ("k", c.kv_heads), ("v", c.kv_heads)];
        let view = |(name, heads): (&str, usize)| {
            let x = Tensor::<4>::zeros([1, t, heads, dh], &self.rope[0].device()); // [b, t, h, dh]
            let strides = if is_copied {
                vec![heads * t * dh, t * dh, dh, 1]
            } else {
                strides(x.swap_dims(1, 2)) // [b, h, t, dh]
            };
            (name.to_owned(), strides)
        };
        heads.map(view).to_vec()
    }
}
