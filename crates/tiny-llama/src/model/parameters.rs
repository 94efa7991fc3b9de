//! The trainable matrices of the model, each named after the weights that it joins.

use burn::tensor::{Device, Tensor, TensorData};

use super::weights::{self, Weight};
use crate::ops::Parameter;
use protocol::config::{ModelConfig, Qkv, Swiglu};

/// The parameters of a model, in the order of [`weights::names`]. Where one product reads several weights, they are joined.
#[derive(Clone, Debug)]
pub(super) struct Parameters {
    pub all: Vec<Parameter>,
    /// The number of matrices of a block that give query, key and value: 3, or 1 if they are joined.
    qkv: usize,
    /// The number of matrices of a block that give gate and up: 2, or 1 if they are joined.
    gate_up: usize,
}

/// The parameters of one block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block<'a> {
    pub qkv: Projections<'a, 3>,
    pub o: &'a Parameter,
    pub gate_up: Projections<'a, 2>,
    pub down: &'a Parameter,
    pub norm1: &'a Parameter,
    pub norm2: &'a Parameter,
}

/// `N` projections of one input: `N` matrices, or one matrix with the rows of all `N`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Projections<'a, const N: usize> {
    Separate(&'a [Parameter; N]),
    Fused(&'a Parameter),
}

impl Parameters {
    /// Makes the parameters from weights in the order of [`weights::names`].
    ///
    /// # Errors
    /// When the weights are not those of the configuration.
    pub(super) fn new(
        config: &ModelConfig,
        initial: &[Weight],
        device: &Device,
    ) -> anyhow::Result<Self> {
        let given = initial.iter().map(|weight| (&weight.name, &weight.shape));
        let expected = weights::names(config);
        anyhow::ensure!(
            given.eq(expected.iter().map(|(name, shape)| (name, shape))),
            "the weights do not fit the configuration's shapes"
        );
        let qkv = match config.qkv {
            Qkv::Separate => 3,
            Qkv::Fused => 1,
        };
        let gate_up = match config.swiglu {
            Swiglu::Separate | Swiglu::NaiveKernel => 2,
            Swiglu::FusedGateUp | Swiglu::FusedActivation => 1,
        };
        let mut all = Vec::new();
        let mut rest = initial;
        while let Some(first) = rest.first() {
            let (count, name) = match &first.name {
                q if qkv == 1 && q.contains("q_proj") => (3, q.replace("q_proj", "qkv_proj")),
                gate if gate_up == 1 && gate.contains("gate_proj") => {
                    (2, gate.replace("gate_proj", "gate_up_proj"))
                }
                name => (1, name.clone()),
            };
            let (parts, others) = rest.split_at(count);
            all.push(joined(parts, name, device));
            rest = others;
        }
        Ok(Self { all, qkv, gate_up })
    }

    /// Returns the table of the embedding `[vocab, hidden]`, which is also the matrix of the head.
    pub(super) fn embedding(&self) -> &Parameter {
        &self.all[0]
    }

    /// Returns the gain of the last norm, `[1, hidden]`.
    pub(super) fn norm(&self) -> &Parameter {
        &self.all[self.all.len() - 1]
    }

    /// Returns the parameters of each block, from the first block to the last.
    pub(super) fn blocks(&self) -> impl Iterator<Item = Block<'_>> {
        let in_blocks = &self.all[1..self.all.len() - 1];
        let blocks = in_blocks.chunks_exact(self.qkv + self.gate_up + 4);
        blocks.map(|block| {
            let (qkv, after_qkv) = block.split_at(self.qkv);
            let (gate_up, last) = after_qkv[1..].split_at(self.gate_up);
            Block {
                qkv: Projections::from_parameters(qkv),
                o: &after_qkv[0],
                gate_up: Projections::from_parameters(gate_up),
                down: &last[0],
                norm1: &last[1],
                norm2: &last[2],
            }
        })
    }
}

impl<'a, const N: usize> Projections<'a, N> {
    fn from_parameters(matrices: &'a [Parameter]) -> Self {
        let separate = matrices.try_into();
        separate.map_or_else(|_| Self::Fused(&matrices[0]), Self::Separate)
    }
}

/// Makes one parameter from the rows of one or more weights.
fn joined(parts: &[Weight], name: String, device: &Device) -> Parameter {
    let values: Vec<f32> = parts
        .iter()
        .flat_map(|part| &part.values)
        .copied()
        .collect();
    let rows = parts.iter().map(|part| part.shape[0]).sum();
    let data = TensorData::new(values, [rows, parts[0].shape[1]]);
    Parameter {
        name,
        value: Tensor::<2>::from_data(data, device).require_grad(), // [rows, columns]
        operand: None,
    }
}
