//! Rotary position embedding on the CPU: each pair of elements (2i, 2i+1) of a head is rotated by an angle that grows with the position.

use super::FusedRope;
use crate::ops::Float;
use crate::ops::cpu::{filled, rows_per_task, tensor, values};
use crate::ops::format::Format;
use crate::ops::shapes::Rotation;
use burn::backend::{Flex, TensorMetadata as _};

type T = Float<Flex>;

impl FusedRope for Flex {
    /// Rotates each pair (a, b) to (a·cos - b·sin, a·sin + b·cos), with `-sin` for the inverse. Row n has position `n % context`.
    fn forward(x: T, tables: [T; 2], rotation: Rotation, _: Format) -> T {
        let Rotation { width, rotated, .. } = rotation;
        let [cos, sin] = tables.each_ref().map(values);
        let half = rotation.head_dim / 2;
        let sign = if rotation.inverse { -1.0 } else { 1.0 };
        let input = values(&x);
        let rows = rows_per_task(width);
        let y = filled(input.len(), rows * width, |task, y| {
            let task_input = input[task * rows * width..].chunks_exact(width);
            let lines = y.chunks_exact_mut(width).zip(task_input);
            for (row, (y, x)) in lines.enumerate() {
                y.copy_from_slice(x);
                let first_angle = (task * rows + row) % rotation.context * half;
                let [cos, sin] = [cos, sin].map(|table| &table[first_angle..][..half]);
                rotate_row(&mut y[..rotated], cos, sin, sign);
            }
        });
        tensor(y, x.shape())
    }
}

simd! {
    /// Rotates one row of heads.
    fn rotate_row(row: &mut [f32], cos: &[f32], sin: &[f32], sign: f32) {
        for head in row.chunks_exact_mut(2 * cos.len()) {
            let (pairs, _) = head.as_chunks_mut::<2>();
            for (([a, b], cos), sin) in pairs.iter_mut().zip(cos).zip(sin) {
                let signed_sin = sin * sign;
                (*a, *b) = (*a * cos - *b * signed_sin, *a * signed_sin + *b * cos);
            }
        }
    }
}
