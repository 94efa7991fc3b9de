//! The tokens that go into a forward pass, and its intermediate results.

use burn::tensor::{DType, Device, Int, Tensor, TensorData};

use crate::data::Batch;

/// The intermediate results of a forward pass.
#[derive(Clone, Debug, Default)]
pub struct ForwardRecord {
    /// The residual streams `[n, hidden]` after the embedding and after each block.
    pub residual: Vec<Tensor<2>>,
}

/// The input tokens and the target tokens of a batch on the device, `[n]` each.
#[derive(Clone, Debug)]
pub struct Tokens {
    pub inputs: Tensor<1, Int>,
    pub targets: Tensor<1, Int>,
}

impl Tokens {
    /// Copies a batch to the device.
    pub fn new(batch: &Batch, device: &Device) -> Self {
        let plain_device = device.clone().inner();
        let [inputs, targets] = [&batch.inputs, &batch.targets].map(|tokens| {
            let data = TensorData::new(tokens.clone(), [tokens.len()]);
            Tensor::<1, Int>::from_data(data, (&plain_device, DType::I32)) // [n]
        });
        Self { inputs, targets }
    }

    /// Returns the first `count` inputs and targets.
    pub fn first(&self, count: usize) -> Self {
        Self {
            inputs: self.inputs.clone().slice(0..count), // [count]
            targets: self.targets.clone().slice(0..count),
        }
    }
}
