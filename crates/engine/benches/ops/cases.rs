//! The operations of a step at a preset's shapes, each with all its versions.

use burn::backend::{Cube, DispatchKindConversion, DispatchTensor, Flex};
use burn::tensor::{Device, Int, Tensor, TensorData};
use protocol::config::{
    self, Attention as AttentionVersion, KvLayout, Loss, Matmul, Norm, ROPE_THETA, RunConfig,
};
use protocol::random::Rng;
use tiny_llama::data::BatchSource;
use tiny_llama::ops::add::Add;
use tiny_llama::ops::attention::{Attention, causal_mask};
use tiny_llama::ops::backend::is_cpu;
use tiny_llama::ops::cross_entropy::CrossEntropy;
use tiny_llama::ops::embedding::Embedding;
use tiny_llama::ops::format::Format;
use tiny_llama::ops::linear::{Linear, LinearResidual};
use tiny_llama::ops::optimizer::Optimizer;
use tiny_llama::ops::rms_norm::RmsNorm;
use tiny_llama::ops::rope::{Rope, tables};
use tiny_llama::ops::shared_work::SharedWork;
use tiny_llama::ops::swiglu::{Activation, NaiveSwiglu, PackedActivation};
use tiny_llama::ops::{Cost, Float, Kernels, Operation, Parameter};

use crate::comparison::{Comparison, Version};

/// Returns the comparisons of every operation whose name is wanted, on this device.
pub(crate) fn all(
    config: &RunConfig,
    device: &Device,
    wanted: &dyn Fn(&str) -> bool,
) -> Vec<Comparison> {
    if is_cpu(device) {
        Bench::<Flex>::new(config, device, wanted).all()
    } else {
        Bench::<Cube>::new(config, device, wanted).all()
    }
}

struct Bench<'a, B: Kernels> {
    config: &'a RunConfig,
    device: &'a Device,
    wanted: &'a dyn Fn(&str) -> bool,
    comparisons: Vec<Comparison>,
    backend: std::marker::PhantomData<B>,
}

impl<'a, B: Kernels> Bench<'a, B>
where
    DispatchTensor: DispatchKindConversion<B>,
{
    fn new(config: &'a RunConfig, device: &'a Device, wanted: &'a dyn Fn(&str) -> bool) -> Self {
        Self {
            config,
            device,
            wanted,
            comparisons: Vec::new(),
            backend: std::marker::PhantomData,
        }
    }

    fn all(mut self) -> Vec<Comparison> {
        let m = &self.config.model;
        let n = self.config.tokens_per_step();
        let d = m.hidden;
        let ffn = m.ffn;
        let vocab = m.vocab;
        let kv = d / m.heads * m.kv_heads;
        let batch = BatchSource::new(self.config).batch(0);
        let [inputs, targets] = [&batch.inputs, &batch.targets].map(|t| self.tokens(t));
        let both = [Matmul::Library, Matmul::Own];

        let embeddings = both.map(|version| Embedding {
            tokens: inputs.clone(),
            version,
            shared: SharedWork::default(),
        });
        self.add("embedding", &embeddings, [[vocab, d]], [n, d]);
        let norms = [Norm::Composed, Norm::Fused].map(|version| RmsNorm {
            version,
            ..RmsNorm::default()
        });
        self.add("rms-norm", &norms, [[n, d], [1, d]], [n, d]);
        let linear = both.map(|matmul| Linear {
            matmul,
            ..Linear::default()
        });
        for (part, out, inner) in [
            ("q", d, d),
            ("k", kv, d),
            ("qkv", d + 2 * kv, d),
            ("gate", ffn, d),
            ("gate-up", 2 * ffn, d),
            ("down", d, ffn),
            ("head", vocab, d),
        ] {
            let name = format!("linear {part}");
            self.add(&name, &linear, [[n, inner], [out, inner]], [n, out]);
        }
        for (part, inner) in [("o", d), ("down", ffn)] {
            let name = format!("linear+residual {part}");
            let shapes = [[n, inner], [d, inner], [n, d]];
            self.add(&name, &[LinearResidual::default()], shapes, [n, d]);
        }
        self.add("add", &[Add], [[n, d]; 2], [n, d]);
        self.add("rope q", &self.ropes(d), [[n, d]], [n, d]);
        let packed = [n, d + 2 * kv];
        self.add("rope packed", &self.ropes(d + kv), [packed], packed);
        let attentions = self.attentions();
        let shapes = [[n, d], [n, kv], [n, kv]];
        self.add("attention", &attentions, shapes, [n, d]);
        self.add("attention packed", &attentions, [packed], [n, d]);
        self.add("swiglu", &[Activation], [[n, ffn]; 2], [n, ffn]);
        let activations = [false, true].map(|fused| PackedActivation {
            fused,
            format: Format::Full,
        });
        self.add("swiglu packed", &activations, [[n, 2 * ffn]], [n, ffn]);
        let naive = both.map(|matmul| NaiveSwiglu { matmul });
        let shapes = [[n, d], [ffn, d], [ffn, d]];
        self.add("naive-swiglu", &naive[..1], shapes, [n, ffn]);
        let losses = [Loss::Composed, Loss::Fused].map(|version| CrossEntropy {
            targets: targets.clone(),
            version,
            scale: None,
        });
        self.add("cross-entropy", &losses, [[n, vocab]], [1, 1]);
        self.optimizers();
        self.comparisons
    }

    /// Adds a comparison of the versions of one operation forward, and one backward. The first version is the plain one.
    fn add<O: Operation<N>, const N: usize>(
        &mut self,
        name: &str,
        versions: &[O],
        shapes: [[usize; 2]; N],
        out: [usize; 2],
    ) {
        let sizes = shapes.map(|[rows, columns]| format!("{rows}×{columns}"));
        let [forward, backward] =
            ["forward", "backward"].map(|pass| format!("{name} {pass} {}", sizes.join(" ")));
        let mut comparisons = [forward, backward].map(|name| Comparison {
            name,
            versions: Vec::new(),
        });
        for op in versions {
            let (forward_cost, backward_cost) = op.cost(&shapes.map(Vec::from));
            let name = op.version();
            if (self.wanted)(&comparisons[0].name) {
                let inputs = self.inputs(shapes);
                let op = op.clone();
                let version = self.version(name, forward_cost, move || {
                    drop(op.forward::<B>(inputs.clone()));
                });
                comparisons[0].versions.push(version);
            }
            // A backward pass that moves no bytes has nothing to time.
            if backward_cost.bytes > 0.0 && (self.wanted)(&comparisons[1].name) {
                let saved = op.forward::<B>(self.inputs(shapes)).1;
                let gradient = self.numbers(99, out);
                let op = op.clone();
                let version = self.version(name, backward_cost, move || {
                    drop(op.backward::<B>(saved.clone(), gradient.clone()));
                });
                comparisons[1].versions.push(version);
            }
        }
        self.comparisons.extend(
            comparisons
                .into_iter()
                .filter(|comparison| !comparison.versions.is_empty()),
        );
    }

    /// Returns a version that does `work` for each call.
    fn version(&self, name: &str, cost: Cost, mut work: impl FnMut() + Send + 'static) -> Version {
        let device = self.device.clone();
        Version {
            name: name.to_owned(),
            cost,
            run: Box::new(move |calls| {
                for _ in 0..calls {
                    work();
                }
                device.sync().expect("the device answers");
            }),
        }
    }

    fn tensor(&self, seed: u64, [rows, columns]: [usize; 2]) -> Tensor<2> {
        // The values are random, because the processor's branch prediction would learn signs that follow a pattern.
        let mut random = Rng::new(seed);
        let values: Vec<f32> = (0..rows * columns)
            .map(|_| (2.0 * random.uniform() - 1.0) as f32)
            .collect();
        Tensor::from_data(TensorData::new(values, [rows, columns]), self.device)
    }

    fn numbers(&self, seed: u64, shape: [usize; 2]) -> Float<B> {
        self.tensor(seed, shape)
            .try_into_primitive::<B>()
            .expect("the device is this backend's")
    }

    fn inputs<const N: usize>(&self, shapes: [[usize; 2]; N]) -> [Float<B>; N] {
        let mut seed = 0;
        shapes.map(|shape| {
            seed += 1;
            self.numbers(seed, shape)
        })
    }

    fn tokens(&self, tokens: &[i32]) -> Tensor<1, Int> {
        let data = TensorData::new(tokens.to_vec(), [tokens.len()]);
        Tensor::from_data(data, (self.device, burn::tensor::DType::I32))
    }

    /// Returns both versions of the rotation of the first `rotated` columns.
    fn ropes(&self, rotated: usize) -> [Rope; 2] {
        let context = self.config.train.context;
        let m = &self.config.model;
        let head_dim = m.hidden / m.heads;
        let (cos, sin) = tables(context, head_dim, ROPE_THETA);
        let table = |values: Vec<f32>| {
            let data = TensorData::new(values, [context, head_dim / 2]);
            Tensor::<2>::from_data(data, self.device)
        };
        let tables = [cos, sin].map(table);
        [false, true].map(|fused| Rope {
            tables: tables.clone(),
            context,
            head_dim,
            rotated,
            fused,
            format: Format::Full,
        })
    }

    fn attentions(&self) -> Vec<Attention> {
        let context = self.config.train.context;
        let m = &self.config.model;
        let hidden = TensorData::new(causal_mask(context), [context, context]);
        let mask = Tensor::<2>::from_data(hidden, self.device);
        [
            (AttentionVersion::Composed, KvLayout::Contiguous),
            (AttentionVersion::Kernel, KvLayout::Contiguous),
            (AttentionVersion::Kernel, KvLayout::Strided),
            (AttentionVersion::Flash, KvLayout::Contiguous),
        ]
        .map(|(version, layout)| Attention {
            context,
            heads: m.heads,
            kv_heads: m.kv_heads,
            head_dim: m.hidden / m.heads,
            version,
            layout,
            format: Format::Full,
            mask: Some(mask.clone()),
            rope: None,
        })
        .into()
    }

    /// Adds a comparison of AdamW over every parameter of the preset.
    fn optimizers(&mut self) {
        let name = format!("adamw, {} parameters", self.config.parameters());
        if !(self.wanted)(&name) {
            return;
        }
        let n = self.config.parameters() as f64;
        let shapes: Vec<[usize; 2]> = tiny_llama::model::weights::names(&self.config.model)
            .into_iter()
            .map(|(_, shape)| shape)
            .collect();
        let versions = [config::Optimizer::Library, config::Optimizer::Fused].map(|version| {
            let autodiff = self.device.clone().autodiff();
            let mut parameters: Vec<Parameter> = shapes
                .iter()
                .map(|shape| Parameter {
                    name: String::new(),
                    value: Tensor::from_inner(self.tensor(1, *shape))
                        .to_device(&autodiff)
                        .require_grad(),
                    operand: None,
                })
                .collect();
            let gradients: Vec<_> = shapes.iter().map(|s| Some(self.tensor(2, *s))).collect();
            let mut optimizer = Optimizer::new(version, shapes.len());
            let name = match version {
                config::Optimizer::Library => "library",
                config::Optimizer::Fused => "own",
            };
            self.version(name, Cost::new(12.0 * n, 7.0 * n), move || {
                let all = parameters.iter_mut().collect();
                optimizer.step(all, gradients.clone(), 1e-6, None);
            })
        });
        self.comparisons.push(Comparison {
            name,
            versions: versions.into(),
        });
    }
}
