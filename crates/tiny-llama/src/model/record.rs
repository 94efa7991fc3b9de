//! What goes into a forward pass, and what it saw.

use burn::tensor::{DType, Device, Int, Tensor, TensorData};

use crate::data::Batch;

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
        let [inputs, targets] = [&batch.inputs, &batch.targets].map(|tokens| {
            let data = TensorData::new(tokens.clone(), [tokens.len()]);
            Tensor::<1, Int>::from_data(data, (&device, DType::I32)) // [n]
        });
        Self { inputs, targets }
    }

    /// The first `count` of them.
    pub fn first(&self, count: usize) -> Self {
        Self {
            inputs: self.inputs.clone().slice(0..count), // [count]
            targets: self.targets.clone().slice(0..count),
        }
    }
}
