//! The work of the operation after a product that the product does when it stores its result, which saves a launch. Products in f32 (`full`) and
//! on matrix cores (`matrix_cores`) have the same epilogues.

use crate::ops::gpu::{empty_of, reduce};
use crate::ops::linear::planner::{Parts, Problem};
use crate::ops::shapes::Rotation;
use crate::ops::shared_work::PartialNorm;
use burn::tensor::DType;
use burn_cubecl::tensor::CubeTensor;
use serde::Serialize;

/// The operation after a product, with its inputs; see [`Store`].
#[derive(Clone, Copy)]
pub(crate) enum Epilogue<'a> {
    Plain,
    /// Adds a matrix. For a norm that follows, x·gain and the sums of squares of each block are stored, too.
    Onto(&'a CubeTensor, Option<&'a PartialNorm>),
    /// Rotates by cos and sin.
    Rope([&'a CubeTensor; 2], Rotation),
    Swiglu,
    /// Does the backward pass of SwiGLU. The tensor is the output of [`Store::Swiglu`].
    SwigluBackward(&'a CubeTensor),
}

/// How a product stores its result C `[n, m]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub(crate) enum Store {
    /// C is stored as it is.
    Plain,
    /// A matrix of C's shape is added.
    Onto {
        /// True if a part of the norm that follows is stored, too.
        for_norm: bool,
    },
    /// The columns of C are rotated.
    Rope(Rotation),
    /// C holds gates and ups side by side. Gates, ups and silu(gate)·up are stored one below the other, `[3n, m / 2]`.
    Swiglu,
    /// C is the gradient of silu(gate)·up. The gradients of gates and ups are stored side by side, `[n, 2m]`.
    SwigluBackward,
}

impl<'a> Epilogue<'a> {
    /// Returns how the product stores its result.
    pub(crate) fn store(self) -> Store {
        match self {
            Self::Plain => Store::Plain,
            Self::Onto(_, norm) => Store::Onto {
                for_norm: norm.is_some(),
            },
            Self::Rope(_, rotation) => Store::Rope(rotation),
            Self::Swiglu => Store::Swiglu,
            Self::SwigluBackward(_) => Store::SwigluBackward,
        }
    }

    /// Returns the epilogue's inputs, and the buffers that it writes for a norm.
    pub(crate) fn buffers(self) -> Vec<&'a CubeTensor> {
        match self {
            Self::Plain | Self::Swiglu => Vec::new(),
            Self::Onto(added, None) => vec![added],
            Self::Onto(added, Some(norm)) => {
                vec![added, &norm.gain, &norm.scaled, &norm.squares]
            }
            Self::SwigluBackward(gated) => vec![gated],
            Self::Rope(tables, _) => tables.to_vec(),
        }
    }

    /// Returns the number of parts of a product's inner dimension if `wanted` parts would be best. A second launch can add parts only if the
    /// epilogue is linear and stores nothing for a norm.
    pub(crate) fn splits(self, wanted: usize) -> usize {
        match self.store() {
            Store::Plain | Store::Onto { for_norm: false } => wanted,
            _ => 1,
        }
    }

    /// Returns what happens to parts of a product's inner dimension.
    pub(crate) fn parts(self) -> Parts {
        if self.store().is_linear() {
            Parts::Launch
        } else {
            Parts::Never
        }
    }

    /// Returns the epilogue that a product in `splits` parts applies itself. A second launch does the rest ([`finish`]).
    pub(crate) fn of_parts(self, splits: usize) -> Self {
        if splits == 1 { self } else { Self::Plain }
    }
}

/// Applies these epilogues to the stored results of [`Epilogue::of_parts`]. Only the first epilogue may add a matrix. This takes 1 launch
/// if parts have to be added, otherwise none.
pub(crate) fn finish<const N: usize>(
    outs: [CubeTensor; N],
    thens: [Epilogue; N],
    splits: [usize; N],
) -> [CubeTensor; N] {
    let add = match thens[0] {
        Epilogue::Onto(added, _) => Some(added),
        _ => None,
    };
    reduce::sum_parts(outs, splits, add)
}

impl Store {
    /// Returns true if parts of the result may be stored and added later, with R added once.
    pub(crate) fn is_linear(&self) -> bool {
        matches!(self, Self::Plain | Self::Onto { .. })
    }

    /// Returns the names and the WGSL types of the elements of the store's buffers, apart from the result, whose elements are `element`.
    pub(crate) fn buffers(&self, element: &'static str) -> Vec<(&'static str, &'static str)> {
        match self {
            Self::Plain | Self::Swiglu => Vec::new(),
            Self::Onto { for_norm: false } => vec![("residual", element)],
            Self::Onto { for_norm: true } => vec![
                ("residual", element),
                ("gain", "vec4<f32>"),
                ("scaled", "vec4<f16>"),
                ("squares", "f32"),
            ],
            Self::Rope(_) => vec![("cos", "vec2<f32>"), ("sin", "vec2<f32>")],
            Self::SwigluBackward => vec![("gated", element)],
        }
    }

    /// Allocates the stored result of a product in `splits` parts, on the device of `like`.
    pub(crate) fn empty(
        &self,
        dtype: DType,
        like: &CubeTensor,
        problem: &Problem,
        splits: usize,
    ) -> CubeTensor {
        let Problem { rows, columns, .. } = *problem;
        let shape = match self {
            Self::Plain | Self::Onto { .. } | Self::Rope(_) => [splits * rows, columns],
            Self::Swiglu => [3 * rows, columns / 2],
            Self::SwigluBackward => [rows, 2 * columns],
        };
        empty_of(dtype, like, shape)
    }
}
