//! The parameters as a list, and models made of the same parameters: the reference, and one without gradients.

use burn::tensor::{Device, Tensor, TensorData};

use super::Model;
use super::block::{GateUp, Projections};
use super::tables::Tables;
use super::weights::Weight;
use crate::ops::Parameter;

impl Model {
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

    /// The plain reference over sequences of `context` tokens, on the same device with the same weights, without
    /// gradients: every operation in its composed version, contiguous, attached.
    pub fn reference(&self, context: usize) -> Self {
        let mut plain = self.clone();
        plain.config = self.config.reference();
        if !plain.tables.fit(&plain.config, context) {
            plain.tables = Tables::new(&plain.config, context, &plain.device);
        }
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

/// One parameter from the rows of one or more weights.
pub(super) fn join<'a>(
    parts: impl Iterator<Item = &'a Weight>,
    name: &str,
    device: &Device,
) -> Parameter {
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
