//! Tiny Llama, written to be read: pre-norm blocks with rotary, causal, grouped-query attention and SwiGLU, no biases,
//! one matrix for embedding and head. Which version of each operation runs is the configuration's choice.

pub mod weights;

use std::sync::Arc;

use burn::tensor::{Device, Int, Tensor, TensorData};

use crate::config::{
    Attention as AttentionVersion, Gradient, KvLayout, Loss, Matmul, ModelConfig, Qkv, ROPE_THETA,
    RunConfig, Swiglu,
};
use crate::data::Batch;
use crate::ops::add::Add;
use crate::ops::attention::{Attention, Packed, Separate};
use crate::ops::cpu::rope::Angles;
use crate::ops::cross_entropy::CrossEntropy;
use crate::ops::embedding::Embedding;
use crate::ops::linear::{Linear, LinearResidual};
use crate::ops::rms_norm::RmsNorm;
use crate::ops::rope::{self, Rope};
use crate::ops::swiglu::{Activation, Naive, PackedActivation};
use crate::ops::{Parameter, Scope, apply};
use weights::Weight;

/// Query, key and value projections.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a handful of these exist, and each is touched every step"
)]
enum Projections {
    Separate {
        q: Parameter,
        k: Parameter,
        v: Parameter,
    },
    Fused(Parameter),
}

/// Gate and up projections.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a handful of these exist, and each is touched every step"
)]
enum GateUp {
    Separate { gate: Parameter, up: Parameter },
    Fused(Parameter),
}

#[derive(Clone, Debug)]
struct Block {
    qkv: Projections,
    o: Parameter,
    gate_up: GateUp,
    down: Parameter,
    norm1: Parameter,
    norm2: Parameter,
}

/// Tables that depend on shapes only.
#[derive(Clone, Debug)]
struct Tables {
    rope: [Tensor<2>; 2],
    angles: Arc<Angles>,
    mask: Tensor<2>,
    context: usize,
}

/// The network on one device.
#[derive(Clone, Debug)]
pub struct Model {
    pub config: ModelConfig,
    embedding: Parameter,
    blocks: Vec<Block>,
    norm: Parameter,
    tables: Tables,
    device: Device,
}

/// What a forward pass saw, beside its result.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The residual stream `[n, hidden]` after the embedding and after each block.
    pub residual: Vec<Tensor<2>>,
}

/// Input and target tokens on the device, `[n]` each.
#[derive(Clone, Debug)]
pub struct Tokens {
    pub inputs: Tensor<1, Int>,
    pub targets: Tensor<1, Int>,
}

impl Tokens {
    /// Copies a batch to the device.
    pub fn new(batch: &Batch, device: &Device) -> Self {
        let device = device.clone().inner();
        let send = |tokens: &[i32]| {
            Tensor::<1, Int>::from_data(
                TensorData::new(tokens.to_vec(), [tokens.len()]),
                (&device, burn::tensor::DType::I32),
            )
        };
        Self {
            inputs: send(&batch.inputs),
            targets: send(&batch.targets),
        }
    }
}

impl Model {
    /// The network with these weights, in the order of [`weights::names`].
    ///
    /// # Errors
    /// When the weights are not those of the configuration.
    pub fn new(run: &RunConfig, initial: &[Weight], device: &Device) -> anyhow::Result<Self> {
        let config = run.model.clone();
        let expected = weights::names(&config);
        anyhow::ensure!(
            initial.len() == expected.len()
                && initial
                    .iter()
                    .zip(&expected)
                    .all(|(have, (name, shape))| have.name == *name && have.shape == *shape),
            "the weights do not fit the configuration's shapes"
        );
        let mut rest = initial.iter();
        let embedding = join(rest.by_ref().take(1), "embedding.weight", device);
        let mut blocks = Vec::new();
        for layer in 0..config.layers {
            let name = |part: &str| format!("layer.{layer}.{part}.weight");
            let mut next =
                |count: usize, part: &str| join(rest.by_ref().take(count), &name(part), device);
            let qkv = match config.qkv {
                Qkv::Separate => Projections::Separate {
                    q: next(1, "attention.q_proj"),
                    k: next(1, "attention.k_proj"),
                    v: next(1, "attention.v_proj"),
                },
                Qkv::Fused => Projections::Fused(next(3, "attention.qkv_proj")),
            };
            let o = next(1, "attention.o_proj");
            let gate_up = match config.swiglu {
                Swiglu::Separate | Swiglu::NaiveKernel => GateUp::Separate {
                    gate: next(1, "mlp.gate_proj"),
                    up: next(1, "mlp.up_proj"),
                },
                Swiglu::FusedGateUp | Swiglu::FusedActivation => {
                    GateUp::Fused(next(2, "mlp.gate_up_proj"))
                }
            };
            let down = next(1, "mlp.down_proj");
            let (norm1, norm2) = (next(1, "norm1"), next(1, "norm2"));
            blocks.push(Block {
                qkv,
                o,
                gate_up,
                down,
                norm1,
                norm2,
            });
        }
        let norm = join(rest.by_ref().take(1), "norm.weight", device);
        let tables = Tables::new(&config, run.train.context, device);
        Ok(Self {
            config,
            embedding,
            blocks,
            norm,
            tables,
            device: device.clone(),
        })
    }

    /// Takes on knobs that keep the parameters, and another context.
    pub fn reconfigure(&mut self, run: &RunConfig) {
        self.config = run.model.clone();
        if self.tables.context != run.train.context {
            self.tables = Tables::new(&self.config, run.train.context, &self.device);
        }
    }

    /// The device the network lives on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Mean cross-entropy `[1, 1]` of a batch.
    pub fn loss(&self, tokens: &Tokens) -> Tensor<2> {
        let logits = self.logits(tokens, None); // [n, vocab]
        let op = CrossEntropy {
            targets: tokens.targets.clone(),
            version: self.config.loss,
        };
        apply(Scope::outside("loss"), op, [logits]) // [1, 1]
    }

    /// Logits `[n, vocab]`; `seen` collects the residual stream on the way.
    pub fn logits(&self, tokens: &Tokens, mut seen: Option<&mut Seen>) -> Tensor<2> {
        let embed = Embedding {
            tokens: tokens.inputs.clone(),
            version: self.config.matmul,
        };
        let mut x = apply(
            Scope::outside("embedding"),
            embed,
            [self.embedding.value.clone()],
        ); // [n, d]
        for (layer, block) in self.blocks.iter().enumerate() {
            if let Some(seen) = seen.as_deref_mut() {
                seen.residual.push(x.clone());
            }
            x = self.attention(layer, block, x); // [n, d]
            x = self.feed_forward(layer, block, x); // [n, d]
        }
        if let Some(seen) = seen {
            seen.residual.push(x.clone());
        }
        let x = self.normed(Scope::outside("norm"), x, &self.norm); // [n, d]
        let x = match self.config.gradient {
            Gradient::Attached => x,
            Gradient::DetachedNorm => x.detach(), // [n, d], without history: nothing below learns
        };
        apply(
            Scope::outside("head"),
            self.linear(),
            [x, self.embedding.value.clone()],
        ) // [n, vocab]
    }

    /// x + o(attention(rope(q), rope(k), v)) of the normed x; x `[n, d]`.
    fn attention(&self, layer: usize, block: &Block, x: Tensor<2>) -> Tensor<2> {
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
            Projections::Separate { q, k, v } => {
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
    fn feed_forward(&self, layer: usize, block: &Block, x: Tensor<2>) -> Tensor<2> {
        let at = |part| Scope::layer(layer, part);
        let h = self.normed(at("norm2"), x.clone(), &block.norm2); // [n, d]
        let active = match (&block.gate_up, self.config.swiglu) {
            (GateUp::Separate { gate, up }, Swiglu::NaiveKernel) => {
                let naive = Naive {
                    matmul: self.config.matmul,
                };
                apply(
                    at("mlp.swiglu"),
                    naive,
                    [h, gate.value.clone(), up.value.clone()],
                ) // [n, ffn]
            }
            (GateUp::Separate { gate, up }, _) => {
                let gate = apply(
                    at("mlp.gate"),
                    self.linear(),
                    [h.clone(), gate.value.clone()],
                ); // [n, ffn]
                let up = apply(at("mlp.up"), self.linear(), [h, up.value.clone()]); // [n, ffn]
                apply(at("mlp.activation"), Activation, [gate, up]) // [n, ffn]
            }
            (GateUp::Fused(both), swiglu) => {
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

    fn normed(&self, scope: Scope, x: Tensor<2>, gain: &Parameter) -> Tensor<2> {
        apply(
            scope,
            RmsNorm {
                version: self.config.norm,
                on_trunk: scope.layer.is_some(),
            },
            [x, gain.value.clone()],
        ) // [n, d]
    }

    fn linear(&self) -> Linear {
        Linear {
            matmul: self.config.matmul,
        }
    }

    fn rope(&self, rotated: usize) -> Rope {
        Rope {
            tables: self.tables.rope.clone(),
            angles: self.tables.angles.clone(),
            context: self.tables.context,
            head_dim: self.config.hidden / self.config.heads,
            rotated,
            fused: self.config.attention == AttentionVersion::Flash,
        }
    }

    /// Strides in elements, of q, k and v as the attention operation reads them.
    pub fn attention_strides(&self) -> Vec<(String, Vec<usize>)> {
        let c = &self.config;
        let head_dim = c.hidden / c.heads;
        let view = |name: &str, heads: usize| {
            let shape = [1, self.tables.context, heads, head_dim];
            let x = Tensor::<4>::zeros(shape, &self.device.clone().inner()); // [b, t, h, dh]
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

    /// Every parameter, in a fixed order.
    pub fn parameters(&self) -> Vec<&Parameter> {
        let mut all = vec![&self.embedding];
        for block in &self.blocks {
            match &block.qkv {
                Projections::Separate { q, k, v } => all.extend([q, k, v]),
                Projections::Fused(qkv) => all.push(qkv),
            }
            all.push(&block.o);
            match &block.gate_up {
                GateUp::Separate { gate, up } => all.extend([gate, up]),
                GateUp::Fused(both) => all.push(both),
            }
            all.extend([&block.down, &block.norm1, &block.norm2]);
        }
        all.push(&self.norm);
        all
    }

    /// The same parameters, to be replaced by an optimizer.
    pub fn parameters_mut(&mut self) -> Vec<&mut Parameter> {
        let mut all = vec![&mut self.embedding];
        for block in &mut self.blocks {
            match &mut block.qkv {
                Projections::Separate { q, k, v } => all.extend([q, k, v]),
                Projections::Fused(qkv) => all.push(qkv),
            }
            all.push(&mut block.o);
            match &mut block.gate_up {
                GateUp::Separate { gate, up } => all.extend([gate, up]),
                GateUp::Fused(both) => all.push(both),
            }
            all.extend([&mut block.down, &mut block.norm1, &mut block.norm2]);
        }
        all.push(&mut self.norm);
        all
    }

    /// The plain reference on the same device with the same weights, without gradients: every operation in its
    /// composed version, contiguous, attached.
    pub fn reference(&self) -> Self {
        let mut plain = self.clone();
        let defaults = RunConfig::preset(crate::config::Preset::Tiny).model;
        plain.config.kv_layout = defaults.kv_layout;
        plain.config.attention = defaults.attention;
        plain.config.norm = defaults.norm;
        plain.config.loss = Loss::Composed;
        plain.config.gradient = defaults.gradient;
        plain.config.matmul = defaults.matmul;
        plain.config.swiglu = match plain.config.swiglu {
            Swiglu::Separate | Swiglu::NaiveKernel => Swiglu::Separate,
            Swiglu::FusedGateUp | Swiglu::FusedActivation => Swiglu::FusedGateUp,
        };
        plain.without_gradients()
    }

    /// The same network on plain tensors: a forward pass keeps nothing for a backward one.
    pub fn without_gradients(&self) -> Self {
        let mut plain = self.clone();
        for parameter in plain.parameters_mut() {
            parameter.value = parameter.value.clone().inner();
        }
        plain
    }
}

impl Tables {
    fn new(config: &ModelConfig, context: usize, device: &Device) -> Self {
        let device = device.clone().inner();
        let head_dim = config.hidden / config.heads;
        let (cos, sin) = rope::tables(context, head_dim, ROPE_THETA);
        let table = |values: Vec<f32>, shape: [usize; 2]| {
            Tensor::<2>::from_data(TensorData::new(values, shape), &device)
        };
        let mask = (0..context * context)
            .map(|index| {
                if index % context > index / context {
                    f32::NEG_INFINITY
                } else {
                    0.0
                }
            })
            .collect();
        Self {
            rope: [cos, sin].map(|values| table(values, [context, head_dim / 2])),
            angles: Arc::new(Angles::new(context, head_dim, ROPE_THETA)),
            mask: table(mask, [context, context]),
            context,
        }
    }
}

/// One parameter from the rows of one or more weights.
fn join<'a>(parts: impl Iterator<Item = &'a Weight>, name: &str, device: &Device) -> Parameter {
    let (mut values, mut rows, mut columns) = (Vec::new(), 0, 0);
    for part in parts {
        values.extend_from_slice(&part.values);
        rows += part.shape[0];
        columns = part.shape[1];
    }
    let data = TensorData::new(values, [rows, columns]);
    Parameter {
        name: name.to_owned(),
        value: Tensor::<2>::from_data(data, device).require_grad(),
    } // [rows, columns]
}
