//! A block's parts: what it holds, and how x flows through its two halves.

use burn::tensor::{Device, Tensor};

use super::tables::Tables;
use crate::config::{Attention as AttentionVersion, KvLayout, Matmul, ModelConfig, Swiglu};
use crate::ops::add::Add;
use crate::ops::attention::{Attention, PackedAttention, SeparateAttention};
use crate::ops::format::Format;
use crate::ops::linear::{Linear, LinearResidual};
use crate::ops::rms_norm::RmsNorm;
use crate::ops::rope::Rope;
use crate::ops::swiglu::{Activation, NaiveSwiglu, PackedActivation};
use crate::ops::{Parameter, Scope, apply};

/// Projections of one input: `N` matrices, or one with the rows of all.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a handful of these exist, and each is touched every step"
)]
pub(super) enum Projections<const N: usize> {
    Separate([Parameter; N]),
    Fused(Parameter),
}

impl<const N: usize> Projections<N> {
    fn all(&self) -> &[Parameter] {
        match self {
            Self::Separate(all) => all,
            Self::Fused(one) => std::slice::from_ref(one),
        }
    }

    fn all_mut(&mut self) -> &mut [Parameter] {
        match self {
            Self::Separate(all) => all,
            Self::Fused(one) => std::slice::from_mut(one),
        }
    }
}

/// The parameters of one block.
#[derive(Clone, Debug)]
pub(super) struct Block {
    /// Query, key and value.
    pub qkv: Projections<3>,
    pub o: Parameter,
    pub gate_up: Projections<2>,
    pub down: Parameter,
    pub norm1: Parameter,
    pub norm2: Parameter,
}

/// What every block works with: the versions of the operations, and tables by shape.
#[derive(Clone, Debug)]
pub(super) struct BlockContext {
    pub config: ModelConfig,
    pub format: Format,
    /// Whether the backward pass begins with another dL than 1.
    pub scales_loss: bool,
    pub tables: Tables,
}

impl Block {
    /// In the order of the weights.
    pub fn parameters(&self) -> impl Iterator<Item = &Parameter> {
        let rest = [&self.down, &self.norm1, &self.norm2];
        let attention = self.qkv.all().iter().chain([&self.o]);
        attention.chain(self.gate_up.all()).chain(rest)
    }

    /// The same, to be replaced.
    pub fn parameters_mut(&mut self) -> impl Iterator<Item = &mut Parameter> {
        let rest = [&mut self.down, &mut self.norm1, &mut self.norm2];
        let attention = self.qkv.all_mut().iter_mut().chain([&mut self.o]);
        attention.chain(self.gate_up.all_mut()).chain(rest)
    }
}

impl BlockContext {
    /// x + o(attention(rope(q), rope(k), v)) of the normed x; x `[n, d]`.
    pub(super) fn attention(&self, layer: usize, block: &Block, x: Tensor<2>) -> Tensor<2> {
        let at = |part| Scope::layer(layer, part);
        let c = &self.config;
        let head_dim = c.hidden / c.heads;
        let (wide, narrow) = (c.hidden, c.kv_heads * head_dim);
        let attention = Attention {
            context: self.tables.context,
            heads: c.heads,
            kv_heads: c.kv_heads,
            head_dim,
            version: c.attention,
            layout: c.kv_layout,
            format: self.format,
            mask: self.tables.mask.clone(),
        };
        let h = self.normed(at("norm1"), x.clone(), &block.norm1); // [n, d]
        let mixed = match &block.qkv {
            Projections::Separate([q, k, v]) => {
                let q = self.project(at("attention.q"), h.clone(), q); // [n, d]
                let k = self.project(at("attention.k"), h.clone(), k); // [n, kv]
                let v = self.project(at("attention.v"), h, v); // [n, kv]
                let q = apply(at("attention.rope"), self.rope(wide), [q]); // [n, d]
                let k = apply(at("attention.rope"), self.rope(narrow), [k]); // [n, kv]
                apply(at("attention"), SeparateAttention(attention), [q, k, v]) // [n, d]
            }
            Projections::Fused(qkv) => {
                let packed = self.project(at("attention.qkv"), h, qkv); // [n, d + 2·kv]
                let packed = apply(at("attention.rope"), self.rope(wide + narrow), [packed]); // [n, d + 2·kv]
                apply(at("attention"), PackedAttention(attention), [packed]) // [n, d]
            }
        };
        self.onto(at("attention.o"), x, mixed, &block.o) // [n, d]
    }

    /// x + down(silu(gate)·up) of the normed x; x `[n, d]`.
    pub(super) fn feed_forward(&self, layer: usize, block: &Block, x: Tensor<2>) -> Tensor<2> {
        let at = |part| Scope::layer(layer, part);
        let h = self.normed(at("norm2"), x.clone(), &block.norm2); // [n, d]
        let active = match (&block.gate_up, self.config.swiglu) {
            (Projections::Separate([gate, up]), Swiglu::NaiveKernel) => {
                let naive = NaiveSwiglu {
                    matmul: self.config.matmul,
                };
                let inputs = [h, gate.value.clone(), up.value.clone()];
                apply(at("mlp.swiglu"), naive, inputs) // [n, ffn]
            }
            (Projections::Separate([gate, up]), _) => {
                let gate = self.project(at("mlp.gate"), h.clone(), gate); // [n, ffn]
                let up = self.project(at("mlp.up"), h, up); // [n, ffn]
                apply(at("mlp.activation"), Activation, [gate, up]) // [n, ffn]
            }
            (Projections::Fused(both), swiglu) => {
                let packed = self.project(at("mlp.gate-up"), h, both); // [n, 2·ffn]
                let op = PackedActivation {
                    fused: swiglu == Swiglu::FusedActivation,
                    format: self.format,
                };
                apply(at("mlp.activation"), op, [packed]) // [n, ffn]
            }
        };
        self.onto(at("mlp.down"), x, active, &block.down) // [n, d]
    }

    /// residual + y·Wᵀ, in one operation where our own product stores it. `[n, d]`.
    fn onto(&self, scope: Scope, residual: Tensor<2>, y: Tensor<2>, w: &Parameter) -> Tensor<2> {
        match self.config.matmul {
            Matmul::Own | Matmul::Split => {
                let op = LinearResidual {
                    format: self.format,
                    operand: w.operand.clone(),
                };
                apply(scope, op, [y, w.value.clone(), residual]) // [n, d]
            }
            Matmul::Library => {
                let y = self.project(scope, y, w); // [n, d]
                let part = if scope.part == "mlp.down" {
                    "mlp.residual"
                } else {
                    "attention.residual"
                };
                apply(Scope { part, ..scope }, Add, [residual, y]) // [n, d]
            }
        }
    }

    pub(super) fn normed(&self, scope: Scope, x: Tensor<2>, gain: &Parameter) -> Tensor<2> {
        let norm = RmsNorm {
            version: self.config.norm,
            on_trunk: scope.layer.is_some(),
            format: self.format,
        };
        apply(scope, norm, [x, gain.value.clone()]) // [n, d]
    }

    /// x·Wᵀ, `[n, out]`.
    pub(super) fn project(&self, scope: Scope, x: Tensor<2>, w: &Parameter) -> Tensor<2> {
        let op = Linear {
            matmul: self.config.matmul,
            format: self.format,
            operand: w.operand.clone(),
        };
        apply(scope, op, [x, w.value.clone()]) // [n, out]
    }

    fn rope(&self, rotated: usize) -> Rope {
        Rope {
            tables: self.tables.rope.clone(),
            context: self.tables.context,
            head_dim: self.config.hidden / self.config.heads,
            rotated,
            fused: self.config.attention == AttentionVersion::Flash,
            format: self.format,
        }
    }

    /// Strides in elements, of q, k and v as the attention operation reads them.
    pub fn attention_strides(&self, device: &Device) -> Vec<(String, Vec<usize>)> {
        let c = &self.config;
        let head_dim = c.hidden / c.heads;
        let copied = c.kv_layout == KvLayout::Contiguous && c.attention == AttentionVersion::Kernel;
        let view = |name: &str, heads: usize| {
            let (t, dh) = (self.tables.context, head_dim);
            let x = Tensor::<4>::zeros([1, t, heads, dh], &device.clone().inner()); // [b, t, h, dh]
            let strides = if copied {
                vec![heads * t * dh, t * dh, dh, 1]
            } else {
                crate::ops::kernels::strides(x.swap_dims(1, 2)) // [b, h, t, dh]
            };
            (name.to_owned(), strides)
        };
        vec![
            view("q", c.heads),
            view("k", c.kv_heads),
            view("v", c.kv_heads),
        ]
    }
}
