//! A block's parts: what it holds, and how x flows through its two halves.

use burn::tensor::{Device, Tensor};

use super::tables::Tables;
use crate::config::{Attention as AttentionVersion, KvLayout, Matmul, ModelConfig, Swiglu};
use crate::ops::add::Add;
use crate::ops::attention::{Attention, Packed, Separate};
use crate::ops::linear::{Linear, LinearResidual};
use crate::ops::rms_norm::RmsNorm;
use crate::ops::rope::Rope;
use crate::ops::swiglu::{Activation, Naive, PackedActivation};
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
pub(super) struct Setting {
    pub config: ModelConfig,
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

impl Setting {
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
            mask: self.tables.mask.clone(),
        };
        let h = self.normed(at("norm1"), x.clone(), &block.norm1); // [n, d]
        let mixed = match &block.qkv {
            Projections::Separate([q, k, v]) => {
                let q = apply(
                    at("attention.q"),
                    self.linear(),
                    [h.clone(), q.value.clone()],
                ); // [n, d]
                let k = apply(
                    at("attention.k"),
                    self.linear(),
                    [h.clone(), k.value.clone()],
                ); // [n, kv]
                let v = apply(at("attention.v"), self.linear(), [h, v.value.clone()]); // [n, kv]
                let q = apply(at("attention.rope"), self.rope(wide), [q]); // [n, d]
                let k = apply(at("attention.rope"), self.rope(narrow), [k]); // [n, kv]
                apply(at("attention"), Separate(attention), [q, k, v]) // [n, d]
            }
            Projections::Fused(qkv) => {
                let packed = apply(at("attention.qkv"), self.linear(), [h, qkv.value.clone()]); // [n, d + 2·kv]
                let packed = apply(at("attention.rope"), self.rope(wide + narrow), [packed]); // [n, d + 2·kv]
                apply(at("attention"), Packed(attention), [packed]) // [n, d]
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
                let naive = Naive {
                    matmul: self.config.matmul,
                };
                apply(
                    at("mlp.swiglu"),
                    naive,
                    [h, gate.value.clone(), up.value.clone()],
                ) // [n, ffn]
            }
            (Projections::Separate([gate, up]), _) => {
                let gate = apply(
                    at("mlp.gate"),
                    self.linear(),
                    [h.clone(), gate.value.clone()],
                ); // [n, ffn]
                let up = apply(at("mlp.up"), self.linear(), [h, up.value.clone()]); // [n, ffn]
                apply(at("mlp.activation"), Activation, [gate, up]) // [n, ffn]
            }
            (Projections::Fused(both), swiglu) => {
                let packed = apply(at("mlp.gate-up"), self.linear(), [h, both.value.clone()]); // [n, 2·ffn]
                let fused = swiglu == Swiglu::FusedActivation;
                apply(at("mlp.activation"), PackedActivation { fused }, [packed]) // [n, ffn]
            }
        };
        self.onto(at("mlp.down"), x, active, &block.down) // [n, d]
    }

    /// residual + y·Wᵀ, in one operation where our own product stores it. `[n, d]`.
    fn onto(&self, scope: Scope, residual: Tensor<2>, y: Tensor<2>, w: &Parameter) -> Tensor<2> {
        match self.config.matmul {
            Matmul::Own => apply(scope, LinearResidual, [y, w.value.clone(), residual]), // [n, d]
            Matmul::Library => {
                let y = apply(scope, self.linear(), [y, w.value.clone()]); // [n, d]
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
        apply(
            scope,
            RmsNorm {
                version: self.config.norm,
                on_trunk: scope.layer.is_some(),
            },
            [x, gain.value.clone()],
        ) // [n, d]
    }

    pub(super) fn linear(&self) -> Linear {
        Linear {
            matmul: self.config.matmul,
        }
    }

    fn rope(&self, rotated: usize) -> Rope {
        Rope {
            tables: self.tables.rope.clone(),
            context: self.tables.context,
            head_dim: self.config.hidden / self.config.heads,
            rotated,
            fused: self.config.attention == AttentionVersion::Flash,
        }
    }

    /// Strides in elements, of q, k and v as the attention operation reads them.
    pub fn attention_strides(&self, device: &Device) -> Vec<(String, Vec<usize>)> {
        let c = &self.config;
        let head_dim = c.hidden / c.heads;
        let view = |name: &str, heads: usize| {
            let shape = [1, self.tables.context, heads, head_dim];
            let x = Tensor::<4>::zeros(shape, &device.clone().inner()); // [b, t, h, dh]
            let x = x.swap_dims(1, 2); // [b, h, t, dh]
            let copied =
                c.kv_layout == KvLayout::Contiguous && c.attention == AttentionVersion::Kernel;
            let strides = if copied {
                vec![
                    heads * self.tables.context * head_dim,
                    self.tables.context * head_dim,
                    head_dim,
                    1,
                ]
            } else {
                crate::ops::kernels::strides(x)
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
