//! Flash attention on a GPU: in f32 (`full`), and with f16 operands on matrix cores (`matrix_cores`).

pub(crate) mod full;
mod launch;
pub(crate) mod matrix_cores;

use super::FusedAttention;
use crate::ops::gpu::is_f16;
use crate::ops::shapes::{Heads, QkvRows};
use burn::backend::Cube;
use burn_cubecl::tensor::CubeTensor;

type T = CubeTensor;

impl FusedAttention for Cube {
    fn forward(rows: &QkvRows<T>, sizes: Heads, half: bool) -> Option<[T; 2]> {
        if half {
            return Some(matrix_cores::forward(rows, sizes));
        }
        full::forward(rows, sizes)
    }

    fn backward(
        rows: &QkvRows<T>,
        [out, lse, dy]: [T; 3],
        sizes: Heads,
        tables: Option<[T; 2]>,
    ) -> QkvRows<T> {
        match tables.as_ref() {
            Some([cos, sin]) if is_f16(rows.first()) => {
                matrix_cores::backward(&dy, rows, &out, &lse, [cos, sin], sizes)
            }
            tables => full::backward(&dy, rows, &out, &lse, tables, sizes),
        }
    }
}
