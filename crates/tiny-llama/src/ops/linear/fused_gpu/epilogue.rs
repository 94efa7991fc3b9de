//! What a product does with its result before it stores it, in place of a kernel of its own: the same for products in f32
//! (`matmul`) and on matrix cores (`matrix_cores`).

use crate::ops::gpu::{empty_of, reduce};
use crate::ops::linear::planner::{Parts, Problem};
use crate::ops::shapes::Rotation;
use crate::ops::shared_work::PartialNorm;
use burn::tensor::DType;
use burn_cubecl::tensor::CubeTensor;
use serde::Serialize;

/// An epilogue is the operation after a product, with its inputs; see [`Store`].
#[derive(Clone, Copy)]
pub(crate) enum Epilogue<'a> {
    Plain,
    /// This epilogue adds a matrix. For a norm that follows, it also stores x·gain and each block's sums of squares.
    Onto(&'a CubeTensor, Option<&'a PartialNorm>),
    /// This epilogue rotates by cos and sin.
    Rope([&'a CubeTensor; 2], Rotation),
    Swiglu,
    /// This epilogue reads the output of [`Store::Swiglu`].
    SwigluBackward(&'a CubeTensor),
}

/// A store is what a product does with its result C `[n, m]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub(crate) enum Store {
    /// C is stored as it is.
    Plain,
    /// A matrix of C's shape is added.
    Onto {
        /// This is true if a part of the norm that follows is stored, too.
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
            Self::Onto(one, norm) => {
                let of = |it: &'a PartialNorm| [&it.gain, &it.scaled, &it.squares];
                [one]
                    .into_iter()
                    .chain(norm.into_iter().flat_map(of))
                    .collect()
            }
            Self::SwigluBackward(one) => vec![one],
            Self::Rope(tables, _) => tables.to_vec(),
        }
    }

    /// Returns the number of parts of a product's inner dimension where `wanted` parts would be best. A second launch can add parts only if
    /// the epilogue is linear.
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

    /// Returns what a product in `splits` parts stores itself. A second launch does the rest ([`finish`]).
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
    /// Returns true if the stored sum of two results is the stored result of their sum, with R added to one of them.
    pub(crate) fn is_linear(&self) -> bool {
        matches!(self, Self::Plain | Self::Onto { .. })
    }

    /// Returns the names and elements of the buffers: tables, inputs with the elements `of` of the stored result, and what is written for a
    /// norm.
    pub(crate) fn buffers(&self, of: &'static str) -> Vec<(&'static str, &'static str)> {
        match self {
            Self::Plain | Self::Swiglu => Vec::new(),
            Self::Onto { for_norm: false } => vec![("residual", of)],
            Self::Onto { for_norm: true } => vec![
                ("residual", of),
                ("gain", "vec4<f32>"),
                ("scaled", "vec4<f16>"),
                ("squares", "f32"),
            ],
            Self::Rope(_) => vec![("cos", "vec2<f32>"), ("sin", "vec2<f32>")],
            Self::SwigluBackward => vec![("gated", of)],
        }
    }

    /// Allocates the stored result of a product in `splits` parts, on the device of `like`.
    pub(crate) fn empty(
        &self,
        dtype: DType,
        like: &CubeTensor,
        p: &Problem,
        splits: usize,
    ) -> CubeTensor {
        let shape = match self {
            Self::Plain | Self::Onto { .. } | Self::Rope(_) => [splits * p.rows, p.columns],
            Self::Swiglu => [3 * p.rows, p.columns / 2],
            Self::SwigluBackward => [p.rows, 2 * p.columns],
        };
        empty_of(dtype, like, shape)
    }
}
