//! Tiny Llama, written to be read from top to bottom: pre-norm blocks with rotary, causal, grouped-query attention and SwiGLU, no biases,
//! one matrix for embedding and head. Which version of each operation runs is the configuration's choice (`ops::versions`).
//!
//! n is the number of tokens of a batch, d the hidden size, kv the width of all key heads.

mod parameters;
mod record;
pub mod weights;

pub use record::{ForwardRecord, Tokens};

use burn::tensor::{Device, Tensor};

use crate::ops::cross_entropy::CrossEntropy;
use crate::ops::format::Format;
use crate::ops::head_loss::HeadLoss;
use crate::ops::linear;
use crate::ops::loss_scale::LossScale;
use crate::ops::residual::Residual;
use crate::ops::swiglu::{Activation, NaiveSwiglu};
use crate::ops::versions::{Input, Versions};
use crate::ops::{Parameter, Scope, apply};
use parameters::{Block, Parameters, Projections};
use protocol::config::{Gradient, Loss, ModelConfig, RunConfig, Swiglu};
use weights::Weight;

/// The network on one device.
#[derive(Clone, Debug)]
pub struct Model {
    versions: Versions,
    parameters: Parameters,
    device: Device,
    /// True if f16 products may use the device's matrix cores.
    matrix_cores: bool,
}

impl Model {
    /// Returns the mean cross-entropy `[1, 1]` of a batch, the root of its graph. Gradients are those of the loss times the factor of
    /// `scale`.
    pub fn loss(&self, tokens: &Tokens, scale: Option<&LossScale>) -> Tensor<2> {
        let loss = CrossEntropy {
            targets: tokens.targets.clone(),
            version: self.config().loss,
            scale: scale.map(|scale| scale.factor(&self.device.clone().inner())), // [1, 1]
        };
        if loss.version == Loss::InParts {
            return self.head_and_loss(tokens, loss); // [1, 1]
        }
        let logits = self.logits(tokens, None); // [n, vocab]
        apply(Scope::outside("loss"), loss, [logits]) // [1, 1]
    }

    /// Returns the logits `[n, vocab]`. `seen` collects the residual stream on the way.
    pub fn logits(&self, tokens: &Tokens, mut seen: Option<&mut ForwardRecord>) -> Tensor<2> {
        let head = self.parameters.embedding(); // [vocab, d]
        let mut x = self.blocks(tokens, seen.as_deref_mut()); // [n, d]
        let h = x.norm(Scope::outside("norm"), self.parameters.norm()); // [n, d]
        let h = self.attached(h.for_product(head)); // [n, d]
        if let Some(seen) = seen {
            seen.residual.extend(x.read().cloned());
        }
        self.versions.linear(Scope::outside("head"), h, head) // [n, vocab]
    }

    /// Computes the loss `[1, 1]` in one operation with the head, so that the logits of the whole batch never exist.
    fn head_and_loss(&self, tokens: &Tokens, loss: CrossEntropy) -> Tensor<2> {
        let head = self.parameters.embedding(); // [vocab, d]
        let mut x = self.blocks(tokens, None); // [n, d]
        let h = x.norm(Scope::outside("norm"), self.parameters.norm()); // [n, d]
        let h = self.attached(h.value().into()).x; // [n, d]
        let op = HeadLoss {
            head: self.versions.product(head),
            loss,
            with_gradients: h.device().is_autodiff(),
        };
        apply(Scope::outside("head"), op, [h, head.value.clone()]) // [1, 1]
    }

    /// Returns the residual stream `[n, d]` after the last block.
    fn blocks(&self, tokens: &Tokens, mut seen: Option<&mut ForwardRecord>) -> Residual<'_> {
        let table = self.parameters.embedding(); // [vocab, d]
        let inputs = tokens.inputs.clone(); // [n]
        let mut x = Residual::embedding(&self.versions, table, inputs); // [n, d]
        for (layer, block) in self.parameters.blocks().enumerate() {
            self.attention(layer, block, &mut x); // [n, d]
            if let Some(seen) = seen.as_deref_mut() {
                seen.residual.extend(x.read().cloned()); // [n, d], before the block
            }
            self.feed_forward(layer, block, &mut x); // [n, d]
        }
        x
    }

    /// x += o(attention(rope(q), rope(k), v)) of the normed x; x `[n, d]`.
    fn attention<'a>(&self, layer: usize, block: Block<'a>, x: &mut Residual<'a>) {
        let at = |part| Scope::layer(layer, part);
        let c = self.config();
        let ops = &self.versions;
        let d = c.hidden;
        let kv = c.hidden / c.heads * c.kv_heads;
        let h = x.norm(at("norm1"), block.norm1); // [n, d]
        let y = match block.qkv {
            Projections::Separate([q, k, v]) => {
                let h = h.value(); // [n, d]
                let q = ops.rotated(at("attention.q"), h.clone(), q, d); // [n, d]
                let k = ops.rotated(at("attention.k"), h.clone(), k, kv); // [n, kv]
                let v = ops.rotated(at("attention.v"), h, v, 0); // [n, kv]
                ops.attend(at("attention"), [q, k, v]) // [n, d]
            }
            Projections::Fused(w) => {
                let h = h.for_product(w); // [n, d]
                let qkv = ops.rotated(at("attention.qkv"), h, w, d + kv); // [n, d + 2·kv]
                ops.attend(at("attention"), [qkv]) // [n, d]
            }
        };
        x.add(at("attention.o"), y, block.o); // [n, d]
    }

    /// x += down(silu(gate)·up) of the normed x; x `[n, d]`.
    fn feed_forward<'a>(&self, layer: usize, block: Block<'a>, x: &mut Residual<'a>) {
        let at = |part| Scope::layer(layer, part);
        let c = self.config();
        let ops = &self.versions;
        let h = x.norm(at("norm2"), block.norm2); // [n, d]
        let y = match block.gate_up {
            Projections::Separate([gate, up]) if c.swiglu == Swiglu::NaiveKernel => {
                let naive = NaiveSwiglu { matmul: c.matmul };
                let inputs = [h.value(), gate.value.clone(), up.value.clone()]; // [n, d], [ffn, d], [ffn, d]
                apply(at("mlp.swiglu"), naive, inputs) // [n, ffn]
            }
            Projections::Separate([gate, up]) => {
                let h = h.value(); // [n, d]
                let gate = ops.linear(at("mlp.gate"), h.clone(), gate); // [n, ffn]
                let up = ops.linear(at("mlp.up"), h, up); // [n, ffn]
                apply(at("mlp.activation"), Activation, [gate, up]) // [n, ffn]
            }
            Projections::Fused(w) => ops.gated(at("mlp.gate-up"), h.for_product(w), w), // [n, ffn]
        };
        x.add(at("mlp.down"), y, block.down); // [n, d]
    }

    /// Returns the output of the last norm. A detached norm's output has no history, so that nothing below it learns.
    fn attached(&self, h: Input) -> Input {
        match self.config().gradient {
            Gradient::Attached => h,
            Gradient::DetachedNorm => Input {
                x: h.x.detach(), // [n, d]
                ..h
            },
        }
    }
}

impl Model {
    /// Makes the network with these weights, which are in the order of [`weights::names`].
    ///
    /// # Errors
    /// When the weights are not those of the configuration.
    pub fn new(run: &RunConfig, initial: &[Weight], device: &Device) -> anyhow::Result<Self> {
        let config = run.model.clone();
        let format = Format::for_run(run, false);
        Ok(Self {
            parameters: Parameters::new(&config, initial, device)?,
            versions: Versions::new(config, format, run.train.context, device),
            device: device.clone(),
            matrix_cores: false,
        })
    }

    /// Lets f16 products use the device's matrix cores.
    pub fn with_matrix_cores(mut self, run: &RunConfig) -> Self {
        self.matrix_cores = true;
        self.set_format(Format::for_run(run, true));
        self
    }

    /// Takes over the run's knobs and context. The parameters stay.
    pub fn reconfigure(&mut self, run: &RunConfig) {
        self.versions.set(run.model.clone(), run.train.context);
        self.set_format(Format::for_run(run, self.matrix_cores));
    }

    /// Sets the format of products. Products on matrix cores read f16 copies of the parameters, which the optimizer keeps up to date.
    fn set_format(&mut self, format: Format) {
        self.versions.format = format;
        if format != Format::Native {
            for parameter in self.parameters_mut() {
                parameter.operand = None;
            }
        } else if self.parameters.embedding().operand.is_none() {
            linear::copy_operands(self.parameters_mut());
        }
    }

    /// Returns the number format of the model's products.
    pub fn format(&self) -> Format {
        self.versions.format
    }

    /// Returns the model's sizes, and which version of each operation runs.
    pub fn config(&self) -> &ModelConfig {
        &self.versions.config
    }

    /// Returns the number of tokens of one sequence.
    pub fn context(&self) -> usize {
        self.versions.context
    }

    /// Returns every parameter, in the order of [`weights::names`].
    pub fn parameters(&self) -> Vec<&Parameter> {
        self.parameters.all.iter().collect()
    }

    /// Returns every parameter, so that an optimizer can replace its value.
    pub fn parameters_mut(&mut self) -> Vec<&mut Parameter> {
        self.parameters.all.iter_mut().collect()
    }

    /// Returns the plain reference over sequences of `context` tokens: this model on the same device with the same weights, without
    /// gradients. Every operation has the version that the table of knobs names for the reference, and computes in f32.
    pub fn reference(&self, context: usize) -> Self {
        let mut plain = self.without_gradients();
        plain.versions.set(self.config().reference(), context);
        plain.set_format(Format::Full);
        plain
    }

    /// Returns this network on plain tensors, whose forward pass keeps nothing for a backward pass.
    pub fn without_gradients(&self) -> Self {
        let mut plain = self.clone();
        for parameter in plain.parameters_mut() {
            parameter.value = parameter.value.clone().inner(); // [rows, columns]
        }
        plain
    }

    /// Returns the strides of q, k and v, in elements, with which the attention operation reads them.
    pub fn attention_strides(&self) -> Vec<(String, Vec<usize>)> {
        self.versions.attention_strides()
    }
}
