//! Tiny Llama, written to be read: pre-norm blocks with rotary, causal, grouped-query attention and SwiGLU, no biases,
//! one matrix for embedding and head. Which version of each operation runs is the configuration's choice.

mod block;
mod tables;
pub mod weights;

use burn::tensor::{Device, Int, Tensor, TensorData};

use crate::data::Batch;
use crate::ops::cross_entropy::CrossEntropy;
use crate::ops::embedding::Embedding;
use crate::ops::format::Format;
use crate::ops::head_loss::HeadLoss;
use crate::ops::linear;
use crate::ops::loss_scale::LossScale;
use crate::ops::pending::AfterNorm;
use crate::ops::{Parameter, Scope, apply};
use block::{Block, BlockContext, Projections, ResidualStream, StreamNorm};
use protocol::config::{Gradient, Loss, ModelConfig, Qkv, RunConfig, Swiglu};
use tables::Tables;
use weights::Weight;

/// The network on one device.
#[derive(Clone, Debug)]
pub struct Model {
    setting: BlockContext,
    embedding: Parameter,
    blocks: Vec<Block>,
    norm: Parameter,
    device: Device,
    /// Whether f16 products may use them.
    matrix_cores: bool,
}

/// What a forward pass saw, beside its result.
#[derive(Clone, Debug, Default)]
pub struct ForwardRecord {
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

    /// The first `count` of them.
    pub fn first(&self, count: usize) -> Self {
        Self {
            inputs: self.inputs.clone().slice(0..count), // [count]
            targets: self.targets.clone().slice(0..count),
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
                Qkv::Separate => Projections::Separate([
                    next(1, "attention.q_proj"),
                    next(1, "attention.k_proj"),
                    next(1, "attention.v_proj"),
                ]),
                Qkv::Fused => Projections::Fused(next(3, "attention.qkv_proj")),
            };
            let o = next(1, "attention.o_proj");
            let gate_up = match config.swiglu {
                Swiglu::Separate | Swiglu::NaiveKernel => {
                    Projections::Separate([next(1, "mlp.gate_proj"), next(1, "mlp.up_proj")])
                }
                Swiglu::FusedGateUp | Swiglu::FusedActivation => {
                    Projections::Fused(next(2, "mlp.gate_up_proj"))
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
            setting: BlockContext {
                config,
                format: Format::of(run, false),
                tables,
            },
            embedding,
            blocks,
            norm,
            device: device.clone(),
            matrix_cores: false,
        })
    }

    /// Lets f16 products use the device's matrix cores.
    pub fn with_matrix_cores(mut self, run: &RunConfig) -> Self {
        self.matrix_cores = true;
        self.set_format(Format::of(run, true));
        self
    }

    /// Takes on knobs that keep the parameters, and another context.
    pub fn reconfigure(&mut self, run: &RunConfig) {
        self.set(run.model.clone(), run.train.context);
        self.set_format(Format::of(run, self.matrix_cores));
    }

    /// Products on matrix cores read f16 copies of the parameters, which the optimizer keeps up to date.
    fn set_format(&mut self, format: Format) {
        self.setting.format = format;
        if format != Format::Native {
            for parameter in self.parameters_mut() {
                parameter.operand = None;
            }
        } else if self.embedding.operand.is_none() {
            linear::copy_operands(self.parameters_mut());
        }
    }

    /// The number format of its products.
    pub fn format(&self) -> Format {
        self.setting.format
    }

    fn set(&mut self, config: ModelConfig, context: usize) {
        if !self.setting.tables.fit(&config, context) {
            self.setting.tables = Tables::new(&config, context, &self.device);
        }
        self.setting.config = config;
    }

    /// Sizes, and which version of each operation runs.
    pub fn config(&self) -> &ModelConfig {
        &self.setting.config
    }

    /// Tokens of one sequence.
    pub fn context(&self) -> usize {
        self.setting.tables.context
    }

    /// Mean cross-entropy `[1, 1]` of a batch, the root of its graph. Gradients are those of the loss times the factor of `scale`.
    pub fn loss(&self, tokens: &Tokens, scale: Option<&LossScale>) -> Tensor<2> {
        let loss = CrossEntropy {
            targets: tokens.targets.clone(),
            version: self.config().loss,
            scale: scale.map(|it| it.factor(&self.device.clone().inner())), // [1, 1]
        };
        if loss.version == Loss::InParts {
            let (x, _) = self.states(tokens, None, None); // [n, d]
            let op = HeadLoss {
                head: self.setting.linear(&self.embedding),
                loss,
                with_gradients: x.device().is_autodiff(),
            };
            let w = self.embedding.value.clone(); // [vocab, d]
            return apply(Scope::outside("head"), op, [x, w]); // [1, 1]
        }
        let logits = self.logits(tokens, None); // [n, vocab]
        apply(Scope::outside("loss"), loss, [logits]) // [1, 1]
    }

    /// Logits `[n, vocab]`; `seen` collects the residual stream on the way.
    pub fn logits(&self, tokens: &Tokens, seen: Option<&mut ForwardRecord>) -> Tensor<2> {
        let (x, after) = self.states(tokens, seen, Some(&self.embedding)); // [n, d]
        let head = Scope::outside("head");
        self.setting.of_normed(head, x, &self.embedding, after) // [n, vocab]
    }

    /// What the head reads, `[n, d]`, and what the norm and `head` do for each other, if that is all that reads it.
    fn states(
        &self,
        tokens: &Tokens,
        mut seen: Option<&mut ForwardRecord>,
        head: Option<&Parameter>,
    ) -> (Tensor<2>, AfterNorm) {
        let table = self.embedding.value.clone(); // [vocab, d]
        let sizes = [tokens.inputs.dims()[0], table.dims()[1]];
        let last = StreamNorm {
            scope: Scope::outside("norm"),
            gain: &self.norm,
            reader: head,
        };
        let before = |layer: usize| match self.blocks.get(layer) {
            Some(block) => block.norm1(layer),
            None => last,
        };
        let pending = self.setting.for_norm(before(0), &self.device, sizes);
        let embed = Embedding {
            tokens: tokens.inputs.clone(),
            version: self.config().matmul,
            pending: pending.clone(),
        };
        let mut stream = ResidualStream {
            x: apply(Scope::outside("embedding"), embed, [table]), // [n, d]
            pending,
            gradient: None,
        };
        for (layer, block) in self.blocks.iter().enumerate() {
            if let Some(seen) = seen.as_deref_mut() {
                seen.residual.push(stream.x.clone());
            }
            stream = self.setting.attention(layer, block, stream);
            let next = before(layer + 1);
            stream = self.setting.feed_forward(layer, block, stream, next);
        }
        if let Some(seen) = seen {
            seen.residual.push(stream.x.clone());
        }
        let (_, x, after) = self.setting.normed(stream, last); // [n, d]
        let x = match self.config().gradient {
            Gradient::Attached => x,
            Gradient::DetachedNorm => x.detach(), // [n, d], without history: nothing below learns
        };
        (x, after)
    }

    /// Every parameter, in a fixed order.
    pub fn parameters(&self) -> Vec<&Parameter> {
        let blocks = self.blocks.iter().flat_map(Block::parameters);
        let all = std::iter::once(&self.embedding).chain(blocks);
        all.chain([&self.norm]).collect()
    }

    /// The same parameters, to be replaced by an optimizer.
    pub fn parameters_mut(&mut self) -> Vec<&mut Parameter> {
        let blocks = self.blocks.iter_mut().flat_map(Block::parameters_mut);
        let all = std::iter::once(&mut self.embedding).chain(blocks);
        all.chain([&mut self.norm]).collect()
    }

    /// The plain reference over sequences of `context` tokens, on the same device with the same weights, without
    /// gradients: every operation in the version that the table of knobs names, contiguous, attached, in f32.
    pub fn reference(&self, context: usize) -> Self {
        let mut plain = self.without_gradients();
        plain.set(self.config().reference(), context);
        plain.set_format(Format::Full);
        plain
    }

    /// The same network on plain tensors: a forward pass keeps nothing for a backward one.
    pub fn without_gradients(&self) -> Self {
        let mut plain = self.clone();
        for parameter in plain.parameters_mut() {
            parameter.value = parameter.value.clone().inner(); // [rows, columns]
        }
        plain
    }

    /// Strides in elements, of q, k and v as the attention operation reads them.
    pub fn attention_strides(&self) -> Vec<(String, Vec<usize>)> {
        self.setting.attention_strides(&self.device)
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
        value: Tensor::<2>::from_data(data, device).require_grad(), // [rows, columns]
        operand: None,
    }
}
