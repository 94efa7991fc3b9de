//! Tables that depend on shapes only: rotary angles and, where scores are written to memory, the causal mask.

use burn::tensor::{Device, Tensor, TensorData};

use crate::ops::{attention, rope};
use protocol::config::{Attention, ModelConfig, ROPE_THETA};

/// Tables that depend on shapes only.
#[derive(Clone, Debug)]
pub(super) struct Tables {
    pub rope: [Tensor<2>; 2],
    /// Flash attention has none: a table of context² would be the one thing in its memory that is not linear.
    pub mask: Option<Tensor<2>>,
    pub context: usize,
}

impl Tables {
    pub(super) fn new(config: &ModelConfig, context: usize, device: &Device) -> Self {
        let device = device.clone().inner();
        let head_dim = config.hidden / config.heads;
        let (cos, sin) = rope::tables(context, head_dim, ROPE_THETA);
        let table = |values: Vec<f32>, shape: [usize; 2]| {
            Tensor::<2>::from_data(TensorData::new(values, shape), &device)
        };
        let mask = (config.attention != Attention::Flash)
            .then(|| table(attention::causal_mask(context), [context, context]));
        Self {
            rope: [cos, sin].map(|values| table(values, [context, head_dim / 2])),
            mask,
            context,
        }
    }

    /// Whether these are what the configuration needs over this context.
    pub(super) fn fit(&self, config: &ModelConfig, context: usize) -> bool {
        self.context == context && self.mask.is_some() == (config.attention != Attention::Flash)
    }
}
