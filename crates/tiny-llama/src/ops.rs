//! The operations of the model: what each computes forward and backward, in versions that can be compared.
//!
//! An operation is plain data with two functions, which are written once for all backends. Its folder has its versions: `reference` is its
//! formula in burn's primitives, `fused_cpu` and `fused_gpu` are our kernels, and `naive_cpu` and `naive_gpu` are slow kernels with which a
//! stage teaches. Each has the functions `forward` and, if it has a backward pass of its own, `backward`. Its tests are in `tests/ops`.
//! Running an operation through `apply` puts it into burn's autodiff graph and, while a step is profiled, into the trace, forward and
//! backward.
//!
//! Every operation of the model is our own, and so is its backward pass. So the same timers are around the broken and the fixed version, and
//! around the versions that use the library; burn's autodiff only orders the calls. Every operation carries its scope in its backward state, so no
//! marker operations are needed. The addition of two gradients of one tensor, which burn does by itself, shows as `glue`.
#![allow(
    unsafe_code,
    clippy::inline_always,
    reason = "GPU kernels bound their own indices, so they are launched without a second check; \
              CPU kernels choose vector instructions at run time, and their tasks write disjoint \
              parts of one buffer"
)]

#[macro_use]
pub mod cpu;

pub mod adapter;
pub mod add;
pub mod attention;
pub mod backend;
pub mod cost;
pub mod cross_entropy;
pub mod device_progress;
pub mod embedding;
pub mod format;
pub mod fusion;
pub mod gpu;
pub mod grad_norm;
pub mod head_loss;
pub mod learner_kernel;
pub mod linear;
pub mod loss_scale;
pub mod optimizer;
pub mod residual;
pub mod rms_norm;
pub mod rope;
mod shapes;
pub mod shared_work;
pub mod swiglu;
pub mod versions;

use std::fmt::Debug;
use std::marker::PhantomData;

use burn::backend::{Cube, Flex};
use burn::cubecl::future::block_on;
use burn::tensor::Tensor;
use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::base::Checkpointer;
use burn_autodiff::checkpoint::strategy::NoCheckpointing;
use burn_autodiff::grads::Gradients as Graph;
use burn_autodiff::ops::{Backward, Ops, OpsKind};

pub use backend::primitive;
pub use backend::{Float, Kernels};
pub use cost::{Cost, Phase, Scope};
use learner_kernel::LivePart;

type AutodiffTensor<B> = Float<Autodiff<B>>;

/// Returns true if the outputs of a learner's kernels agree with those of the part's own kernels, and then marks the span as the learner's.
/// Only the first launches are compared; later ones count as right.
fn agrees<B: Kernels, const N: usize>(
    live: &LivePart,
    found: &[Float<B>],
    own: impl FnOnce() -> [Float<B>; N],
) -> bool {
    let values = |tensor: Float<B>| -> Option<Vec<f32>> {
        let read = block_on(B::float_into_data(tensor)).ok()?;
        Some(read.iter::<f32>().collect())
    };
    // A tensor that cannot be read means a lost device, which the step itself reports.
    let agree = |(found, own): (&Float<B>, Float<B>)| {
        let both = values(found.clone()).zip(values(own));
        both.is_none_or(|(found, own)| live.agrees(&found, &own))
    };
    let agrees = !live.is_new() || found.iter().zip(own()).all(agree);
    if agrees {
        cost::mark_learners_kernel();
    }
    agrees
}

/// A differentiable operation with `N` float inputs and one output.
pub trait Operation<const N: usize>: Clone + Debug + Send + Sync + 'static {
    /// The operation's name in the kernel table: `linear`, `rms-norm`…
    const NAME: &'static str;

    /// The values that the forward pass keeps for the backward pass.
    type Saved<B: Kernels>: Clone + Debug + Send + 'static;

    /// Returns [`Self::NAME`], or the name of several operations in one launch.
    fn name(&self) -> &'static str {
        Self::NAME
    }

    /// Returns the version that computes: `library` for burn's primitives, or the name of one of ours.
    fn version(&self) -> &'static str;

    /// Returns the output, and what the backward pass needs.
    fn forward<B: Kernels>(&self, inputs: [Float<B>; N]) -> (Float<B>, Self::Saved<B>);

    /// Returns the gradients of the inputs from what `forward` saved and the gradient of the output.
    fn backward<B: Kernels>(&self, saved: Self::Saved<B>, dy: Float<B>) -> [Float<B>; N];

    /// Does the forward pass with a learner's kernel that has replaced this part; `None` if the kernel does not fit.
    fn forward_live<B: Kernels>(
        &self,
        _live: &LivePart,
        _inputs: &[Float<B>; N],
    ) -> Option<(Float<B>, Self::Saved<B>)> {
        None
    }

    /// Does the backward pass with a learner's kernel that has replaced this part; `None` if the kernel does not fit.
    fn backward_live<B: Kernels>(
        &self,
        _live: &LivePart,
        _saved: &Self::Saved<B>,
        _dy: &Float<B>,
    ) -> Option<[Float<B>; N]> {
        None
    }

    /// Returns the input whose gradient from another reader is there before this operation's own. [`Self::backward_onto`] adds the two,
    /// which saves a pass over memory. Most operations return `None`.
    fn adds_onto(&self) -> Option<usize> {
        None
    }

    /// Does [`Self::backward`] and adds `earlier` to the gradient of the input that [`Self::adds_onto`] names.
    fn backward_onto<B: Kernels>(
        &self,
        saved: Self::Saved<B>,
        dy: Float<B>,
        earlier: Option<Float<B>>,
    ) -> [Float<B>; N] {
        debug_assert!(earlier.is_none(), "asked for by `adds_onto` alone");
        self.backward::<B>(saved, dy)
    }

    /// Returns the floating-point operations and compulsory bytes of both directions, from the shapes of the inputs.
    fn cost(&self, shapes: &[Vec<usize>; N]) -> (Cost, Cost);
}

/// A trainable matrix with its name. Norm gains are `[1, hidden]`.
#[derive(Clone, Debug)]
pub struct Parameter {
    pub name: String,
    pub value: Tensor<2>,
    /// A copy of the value in f16, if products on matrix cores read it. Code that changes the value changes this copy, too.
    pub operand: Option<Tensor<2>>,
}

/// Runs an operation on high-level tensors and returns its output, `[rows, columns]`.
///
/// # Panics
/// When the inputs live on different devices, or on a backend this project does not use; the model never does that.
pub fn apply<O: Operation<N>, const N: usize>(
    scope: Scope,
    op: O,
    inputs: [Tensor<2>; N],
) -> Tensor<2> {
    let device = inputs[0].device();
    let shapes = inputs.each_ref().map(|tensor| tensor.dims().to_vec());
    let (forward, backward) = op.cost(&shapes);
    let row = |phase, cost| cost::SpanRow {
        scope,
        phase,
        op: op.name(),
        version: op.version(),
        cost,
    };
    let rows = [row(Phase::Forward, forward), row(Phase::Backward, backward)];
    let call = Call { op, rows };
    match (backend::is_cpu(&device), device.is_autodiff()) {
        (true, true) => Tensor::from_primitive::<Autodiff<Flex>>(
            call.tracked(inputs.map(primitive::<Autodiff<Flex>>)),
        ),
        (true, false) => {
            Tensor::from_primitive::<Flex>(call.forward::<Flex, N>(inputs.map(primitive::<Flex>)).0)
        }
        (false, true) => Tensor::from_primitive::<Autodiff<Cube>>(
            call.tracked(inputs.map(primitive::<Autodiff<Cube>>)),
        ),
        (false, false) => {
            Tensor::from_primitive::<Cube>(call.forward::<Cube, N>(inputs.map(primitive::<Cube>)).0)
        }
    }
}

/// One use of an operation at one place of the model.
#[derive(Clone, Debug)]
struct Call<O> {
    op: O,
    /// The rows of the operation's spans in a profile, forward and backward.
    rows: [cost::SpanRow; 2],
}

impl<O> Call<O> {
    fn forward<B: Kernels, const N: usize>(&self, inputs: [Float<B>; N]) -> (Float<B>, O::Saved<B>)
    where
        O: Operation<N>,
    {
        let [row, _] = self.rows;
        let live = learner_kernel::part_in_use(row.scope.part);
        cost::span(row, || {
            let contiguous = inputs.map(B::contiguous);
            let learner = live.and_then(|live| {
                let found = self.op.forward_live::<B>(&live, &contiguous)?;
                let own = || [self.op.forward::<B>(contiguous.clone()).0];
                agrees::<B, 1>(&live, std::slice::from_ref(&found.0), own).then_some(found)
            });
            learner.unwrap_or_else(|| self.op.forward::<B>(contiguous))
        })
    }

    fn tracked<B: Kernels, const N: usize>(
        self,
        inputs: [AutodiffTensor<B>; N],
    ) -> AutodiffTensor<B>
    where
        O: Operation<N>,
    {
        let nodes = inputs.each_ref().map(|tensor| tensor.node());
        let primitives = inputs.map(|tensor| tensor.into_primitive());
        match Node::<O>(PhantomData)
            .prepare::<NoCheckpointing>(nodes)
            .compute_bound()
            .stateful()
        {
            OpsKind::Tracked(prep) => {
                let (output, saved) = self.forward::<B, N>(primitives);
                prep.finish((self, saved), output)
            }
            OpsKind::UnTracked(prep) => prep.finish(self.forward::<B, N>(primitives).0),
        }
    }
}

/// The backward step of an operation in burn's graph.
#[derive(Debug)]
struct Node<O>(PhantomData<O>);

impl<B: Kernels, O: Operation<N>, const N: usize> Backward<B, N> for Node<O> {
    type State = (Call<O>, O::Saved<B>);

    fn backward(self, ops: Ops<Self::State, N>, grads: &mut Graph, _: &mut Checkpointer) {
        let dy = grads.consume::<B>(&ops.node);
        let (call, saved) = ops.state;
        let [_, row] = call.rows;
        let live = learner_kernel::part_in_use(row.scope.part);
        let onto = call
            .op
            .adds_onto()
            .and_then(|input| ops.parents[input].clone());
        let gradients = cost::span(row, || {
            let dy = B::contiguous(dy);
            let learner = live.and_then(|live| {
                let found = call.op.backward_live::<B>(&live, &saved, &dy)?;
                let own = || call.op.backward::<B>(saved.clone(), dy.clone());
                agrees::<B, N>(&live, &found, own).then_some(found)
            });
            learner.unwrap_or_else(|| {
                let earlier = onto.map(|parent| B::contiguous(grads.consume::<B>(&parent)));
                call.op.backward_onto::<B>(saved, dy, earlier)
            })
        });
        for (parent, gradient) in ops.parents.into_iter().zip(gradients) {
            if let Some(parent) = parent {
                grads.register::<B>(parent.id, gradient);
            }
        }
    }
}
