//! The trainable matrices of the model, each named after the weights that it joins.

use burn::tensor::{Device, Tensor, TensorData};

use super::weights::{self, Weight};
use crate::ops::Parameter;
use protocol::config::{ModelConfig, Qkv, Swiglu};

/// Every parameter of the model.
#[derive(Clone, Debug)]
pub(super) struct Parameters {
    /// `[vocab, hidden]`; also the head.
    pub embedding: Parameter,
    pub blocks: Vec<Block>,
    /// `[1, hidden]`
    pub norm: Parameter,
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

impl Parameters {
    /// From weights in the order of [`weights::names`].
    ///
    /// # Errors
    /// When the weights are not those of the configuration.
    pub(super) fn new(
        config: &ModelConfig,
        initial: &[Weight],
        device: &Device,
    ) -> anyhow::Result<Self> {
        let have = initial.iter().map(|it| (&it.name, &it.shape));
        let expected = weights::names(config);
        anyhow::ensure!(
            have.eq(expected.iter().map(|(name, shape)| (name, shape))),
            "the weights do not fit the configuration's shapes"
        );
        let mut rest = initial.iter();
        let mut next = |count: usize, name: &str| join(rest.by_ref().take(count), name, device);
        let embedding = next(1, "embedding.weight");
        let block = |layer: usize| {
            let mut next =
                |count: usize, part: &str| next(count, &format!("layer.{layer}.{part}.weight"));
            Block {
                qkv: match config.qkv {
                    Qkv::Separate => Projections::Separate(
                        ["q_proj", "k_proj", "v_proj"]
                            .map(|it| next(1, &format!("attention.{it}"))),
                    ),
                    Qkv::Fused => Projections::Fused(next(3, "attention.qkv_proj")),
                },
                o: next(1, "attention.o_proj"),
                gate_up: match config.swiglu {
                    Swiglu::Separate | Swiglu::NaiveKernel => Projections::Separate(
                        ["gate_proj", "up_proj"].map(|it| next(1, &format!("mlp.{it}"))),
                    ),
                    Swiglu::FusedGateUp | Swiglu::FusedActivation => {
                        Projections::Fused(next(2, "mlp.gate_up_proj"))
                    }
                },
                down: next(1, "mlp.down_proj"),
                norm1: next(1, "norm1"),
                norm2: next(1, "norm2"),
            }
        };
        let blocks = (0..config.layers).map(block).collect();
        let norm = next(1, "norm.weight");
        Ok(Self {
            embedding,
            blocks,
            norm,
        })
    }

    /// In the order of the weights.
    pub(super) fn all(&self) -> Vec<&Parameter> {
        let mut all = vec![&self.embedding];
        for block in &self.blocks {
            all.extend(block.qkv.all());
            all.push(&block.o);
            all.extend(block.gate_up.all());
            all.extend([&block.down, &block.norm1, &block.norm2]);
        }
        all.push(&self.norm);
        all
    }

    /// The same, to be replaced.
    pub(super) fn all_mut(&mut self) -> Vec<&mut Parameter> {
        let mut all = vec![&mut self.embedding];
        for block in &mut self.blocks {
            all.extend(block.qkv.all_mut());
            all.push(&mut block.o);
            all.extend(block.gate_up.all_mut());
            all.extend([&mut block.down, &mut block.norm1, &mut block.norm2]);
        }
        all.push(&mut self.norm);
        all
    }
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
