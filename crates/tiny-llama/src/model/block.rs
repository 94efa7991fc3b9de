//! A block's parts: what it holds, and how x flows through its two halves.

use burn::tensor::{Device, Tensor};

use super::tables::Tables;
use crate::ops::add::Add;
use crate::ops::attention::Attention;
use crate::ops::backend;
use crate::ops::format::Format;
use crate::ops::learner_kernel;
use crate::ops::linear::{Linear, LinearResidual, NextOperation, takes_swiglu};
use crate::ops::pending::{AfterNorm, ForNorm, Pending};
use crate::ops::rms_norm::RmsNorm;
use crate::ops::rope::Rope;
use crate::ops::swiglu::{Activation, NaiveSwiglu, PackedActivation};
use crate::ops::{Parameter, Scope, apply};
use protocol::config::{
    Attention as AttentionVersion, KvLayout, Matmul, ModelConfig, Norm, Swiglu,
};

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

    /// The matrix with the rows of all, if there is one.
    fn one(&self) -> Option<&Parameter> {
        match self {
            Self::Separate(_) => None,
            Self::Fused(one) => Some(one),
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

/// A norm of the residual stream.
#[derive(Clone, Copy)]
pub(super) struct StreamNorm<'a> {
    pub scope: Scope,
    pub gain: &'a Parameter,
    /// The projection that reads its output, if nothing else does.
    pub reader: Option<&'a Parameter>,
}

/// What every block works with: the versions of the operations, and tables by shape.
#[derive(Clone, Debug)]
pub(super) struct BlockContext {
    pub config: ModelConfig,
    pub format: Format,
    pub tables: Tables,
}

/// The residual stream x `[n, d]` between two operations, what is left to the norm that reads it, and what that leaves in the backward
/// pass.
pub(super) struct ResidualStream {
    pub x: Tensor<2>,
    pub pending: Option<ForNorm>,
    pub gradient: Option<Pending<Tensor<2>>>,
}

impl Block {
    /// The norm before attention.
    pub(super) fn norm1(&self, layer: usize) -> StreamNorm<'_> {
        StreamNorm {
            scope: Scope::layer(layer, "norm1"),
            gain: &self.norm1,
            reader: self.qkv.one(),
        }
    }

    /// The norm before the feed-forward half.
    fn norm2(&self, layer: usize) -> StreamNorm<'_> {
        StreamNorm {
            scope: Scope::layer(layer, "norm2"),
            gain: &self.norm2,
            reader: self.gate_up.one(),
        }
    }

    /// In the order of the weights.
    pub(super) fn parameters(&self) -> impl Iterator<Item = &Parameter> {
        let rest = [&self.down, &self.norm1, &self.norm2];
        let attention = self.qkv.all().iter().chain([&self.o]);
        attention.chain(self.gate_up.all()).chain(rest)
    }

    /// The same, to be replaced.
    pub(super) fn parameters_mut(&mut self) -> impl Iterator<Item = &mut Parameter> {
        let rest = [&mut self.down, &mut self.norm1, &mut self.norm2];
        let attention = self.qkv.all_mut().iter_mut().chain([&mut self.o]);
        attention.chain(self.gate_up.all_mut()).chain(rest)
    }
}

impl BlockContext {
    /// x + o(attention(rope(q), rope(k), v)) of the normed x; x `[n, d]`.
    pub(super) fn attention(
        &self,
        layer: usize,
        block: &Block,
        stream: ResidualStream,
    ) -> ResidualStream {
        let at = |part| Scope::layer(layer, part);
        let c = &self.config;
        let head_dim = c.hidden / c.heads;
        let (wide, narrow) = (c.hidden, c.kv_heads * head_dim);
        let mut attention = Attention {
            context: self.tables.context,
            heads: c.heads,
            kv_heads: c.kv_heads,
            head_dim,
            version: c.attention,
            layout: c.kv_layout,
            format: self.format,
            mask: self.tables.mask.clone(),
            rope: None,
        };
        // A learner's rotation is an operation of its own.
        let own = self.config.matmul != Matmul::Library;
        if own
            && attention.takes_rotated(&stream.x)
            && learner_kernel::of("attention.rope").is_none()
        {
            attention.rope = Some(self.rope(wide));
        }
        let in_product = attention.rope.is_some();
        let (x, h, after) = self.normed(stream, block.norm1(layer)); // [n, d] twice
        let mixed = match &block.qkv {
            Projections::Separate(qkv) => {
                let parts = [
                    ("attention.q", wide),
                    ("attention.k", narrow),
                    ("attention.v", 0),
                ];
                // [n, d], [n, kv] and [n, kv]
                let [q, k, v] = [0, 1, 2].map(|i| {
                    let (part, turned) = parts[i];
                    let after = AfterNorm::default();
                    self.rotated(at(part), h.clone(), &qkv[i], turned, in_product, after)
                });
                apply(at("attention"), attention, [q, k, v]) // [n, d]
            }
            Projections::Fused(qkv) => {
                let (scope, turned) = (at("attention.qkv"), wide + narrow);
                let packed = self.rotated(scope, h, qkv, turned, in_product, after); // [n, d + 2·kv]
                apply(at("attention"), attention, [packed]) // [n, d]
            }
        };
        self.onto(at("attention.o"), x, mixed, &block.o, block.norm2(layer))
    }

    /// x + down(silu(gate)·up) of the normed x, which the norm `next` reads; x `[n, d]`.
    pub(super) fn feed_forward(
        &self,
        layer: usize,
        block: &Block,
        stream: ResidualStream,
        next: StreamNorm,
    ) -> ResidualStream {
        let at = |part| Scope::layer(layer, part);
        let (x, h, after) = self.normed(stream, block.norm2(layer)); // [n, d] twice
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
            (Projections::Fused(both), Swiglu::FusedActivation) if self.swiglu_in_product(&x) => {
                let op = Linear {
                    after,
                    then: NextOperation::Swiglu,
                    ..self.linear(both)
                };
                apply(at("mlp.gate-up"), op, [h, both.value.clone()]) // [3n, ffn]
            }
            (Projections::Fused(both), swiglu) => {
                let packed = self.of_normed(at("mlp.gate-up"), h, both, after); // [n, 2·ffn]
                let op = PackedActivation {
                    fused: swiglu == Swiglu::FusedActivation,
                    format: self.format,
                };
                apply(at("mlp.activation"), op, [packed]) // [n, ffn]
            }
        };
        self.onto(at("mlp.down"), x, active, &block.down, next)
    }

    /// residual + y·Wᵀ `[n, d]`, which the norm `next` reads, in one operation where our own product stores it. Our own also takes y as
    /// the last third of `[3n, in]`, as [`NextOperation::Swiglu`] leaves it.
    fn onto(
        &self,
        scope: Scope,
        residual: Tensor<2>,
        y: Tensor<2>,
        w: &Parameter,
        next: StreamNorm,
    ) -> ResidualStream {
        let pending = self.pending(next, &residual, w);
        let op = LinearResidual {
            format: self.format,
            operand: w.operand.clone(),
            pending: pending.clone(),
            gated: y.dims()[0] > residual.dims()[0],
            ..LinearResidual::default()
        };
        let gradient = op.gradient(residual.shape().num_elements());
        let x = match self.config.matmul {
            Matmul::Own | Matmul::Split => {
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
        };
        ResidualStream {
            x,
            pending,
            gradient,
        }
    }

    /// What the sum of x `[n, d]` and a product with W leaves to the norm that follows: parts if the product is in parts, otherwise
    /// what the norm's reader needs to do the rest.
    fn pending(&self, next: StreamNorm, x: &Tensor<2>, w: &Parameter) -> Option<ForNorm> {
        let [_, inner] = w.value.dims();
        let in_parts = backend::in_parts(x, inner, self.format);
        let sum = || ForNorm::Sum(Pending::default());
        let in_parts = (in_parts && self.own_norm(next.scope.part)).then(sum);
        if in_parts.is_some() || !inner.is_multiple_of(4) {
            // Matrix cores, which do a part of the norm, read whole vectors.
            return in_parts;
        }
        self.for_norm(next, &x.device(), x.dims())
    }

    /// The part of a norm of x `[n, d]` that the operation before it does, if the product that reads its output may do the rest.
    pub(super) fn for_norm(&self, it: StreamNorm, on: &Device, x: [usize; 2]) -> Option<ForNorm> {
        let reads = |w: &Parameter| backend::applies_norm(on, x, w.value.dims()[0], self.format);
        let applied = it.reader.is_some_and(reads) && self.own_norm(it.scope.part);
        let gain = || Box::new(it.gain.value.clone().without_autodiff()); // [1, d]
        applied.then(|| ForNorm::Partial(gain(), Pending::default()))
    }

    /// Whether the norm and the products around it are our own kernels.
    fn own_norm(&self, part: &str) -> bool {
        let own = self.config.matmul != Matmul::Library && self.config.norm == Norm::Fused;
        own && learner_kernel::of(part).is_none()
    }

    /// Whether the products around the activation of x `[n, d]` do its work. A learner's activation is an operation of its own.
    fn swiglu_in_product(&self, x: &Tensor<2>) -> bool {
        let c = &self.config;
        let fits = match self.format {
            Format::Native => true,
            Format::Full => c.matmul != Matmul::Library && !backend::is_cpu(&x.device()),
            Format::Split | Format::Emulated(_) => false,
        };
        fits && takes_swiglu(c.hidden, c.ffn) && learner_kernel::of("mlp.activation").is_none()
    }

    /// x·Wᵀ with its first `rotated` columns rotated, `[n, out]`; `in_product` by the product itself. `after` as in [`Linear`].
    fn rotated(
        &self,
        scope: Scope,
        x: Tensor<2>,
        w: &Parameter,
        rotated: usize,
        in_product: bool,
        after: AfterNorm,
    ) -> Tensor<2> {
        let rope = self.rope(rotated);
        if in_product {
            let op = Linear {
                after,
                then: NextOperation::Rope(Box::new(rope)),
                ..self.linear(w)
            };
            return apply(scope, op, [x, w.value.clone()]); // [n, out]
        }
        let y = self.of_normed(scope, x, w, after); // [n, out]
        if rotated == 0 {
            return y;
        }
        let part = "attention.rope";
        apply(Scope { part, ..scope }, rope, [y]) // [n, out]
    }

    /// x and the normed x, `[n, d]` each, and what the norm and the product that reads its output do for each other.
    pub(super) fn normed(
        &self,
        ResidualStream {
            x,
            pending,
            gradient,
        }: ResidualStream,
        StreamNorm {
            scope,
            gain,
            reader,
        }: StreamNorm,
    ) -> (Tensor<2>, Tensor<2>, AfterNorm) {
        let applied = matches!(pending, Some(ForNorm::Partial(..)));
        let unfinished = applied.then(Pending::default);
        let norm = RmsNorm {
            version: self.config.norm,
            on_trunk: scope.layer.is_some(),
            format: self.format,
            pending,
            unfinished: unfinished.clone(),
            gradient,
        };
        let h = apply(scope, norm, [x.clone(), gain.value.clone()]); // [n, d]
        let after = AfterNorm {
            adds_parts: self.config.norm == Norm::Fused && reader.is_some(),
            unfinished,
        };
        (x, h, after)
    }

    /// x·Wᵀ, `[n, out]`.
    pub(super) fn project(&self, scope: Scope, x: Tensor<2>, w: &Parameter) -> Tensor<2> {
        apply(scope, self.linear(w), [x, w.value.clone()]) // [n, out]
    }

    /// The same of the output of a norm; `after` as in [`Linear`].
    pub(super) fn of_normed(
        &self,
        scope: Scope,
        x: Tensor<2>,
        w: &Parameter,
        after: AfterNorm,
    ) -> Tensor<2> {
        let op = Linear {
            after,
            ..self.linear(w)
        };
        apply(scope, op, [x, w.value.clone()]) // [n, out]
    }

    pub(super) fn linear(&self, w: &Parameter) -> Linear {
        Linear {
            matmul: self.config.matmul,
            format: self.format,
            operand: w.operand.clone(),
            ..Linear::default()
        }
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
    pub(super) fn attention_strides(&self, device: &Device) -> Vec<(String, Vec<usize>)> {
        let c = &self.config;
        let head_dim = c.hidden / c.heads;
        let copied = c.kv_layout == KvLayout::Contiguous && c.attention == AttentionVersion::Kernel;
        let view = |name: &str, heads: usize| {
            let (t, dh) = (self.tables.context, head_dim);
            let x = Tensor::<4>::zeros([1, t, heads, dh], &device.clone().inner()); // [b, t, h, dh]
            let strides = if copied {
                vec![heads * t * dh, t * dh, dh, 1]
            } else {
                crate::ops::backend::strides(x.swap_dims(1, 2)) // [b, h, t, dh]
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
