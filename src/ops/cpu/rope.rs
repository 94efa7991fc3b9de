//! Rotary position embedding over rows of heads, with neighbouring elements (2i, 2i + 1) as the pairs.
//! Not the other convention, which pairs element i with i + dh / 2. Su et al., "`RoFormer`", 2021.

use rayon::prelude::*;

use super::rows_per_task;

/// The cosines and sines of every position's angles, each T × dh / 2.
#[derive(Clone, Debug)]
pub struct Angles {
    cos: Vec<f32>,
    sin: Vec<f32>,
    head_dim: usize,
}

impl Angles {
    /// Position t turns pair i by `t · theta^(-2i / dh)`; angles are formed in double precision.
    ///
    /// # Panics
    /// If `head_dim` is odd.
    #[must_use]
    pub fn new(positions: usize, head_dim: usize, theta: f64) -> Self {
        assert!(
            head_dim.is_multiple_of(2) && head_dim > 0,
            "pairs need an even head dimension, not {head_dim}"
        );
        let half = head_dim / 2;
        let angle = |index: usize| {
            let frequency = theta.powf(-2.0 * (index % half) as f64 / head_dim as f64);
            (index / half) as f64 * frequency
        };
        Self {
            cos: (0..positions * half)
                .map(|i| angle(i).cos() as f32)
                .collect(),
            sin: (0..positions * half)
                .map(|i| angle(i).sin() as f32)
                .collect(),
            head_dim,
        }
    }

    /// How many positions the tables hold.
    #[must_use]
    pub fn positions(&self) -> usize {
        self.cos.len() * 2 / self.head_dim
    }
}

/// Which way to turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The forward pass.
    Forward,
    /// Back by the same angles: the gradient of the forward pass.
    Inverse,
}

/// Rotates the first `rotated` columns of every row of `x` (N × W) as heads, and copies the other columns.
///
/// Row n is position `n % time`. Each pair (a, b) becomes (a·cos - b·sin, a·sin + b·cos).
///
/// # Panics
/// If the shapes do not fit, or the tables are shorter than `time`.
pub fn rotate(
    y: &mut [f32],
    x: &[f32],
    width: usize,
    rotated: usize,
    time: usize,
    angles: &Angles,
    turn: Turn,
) {
    assert_eq!(y.len(), x.len());
    check(y.len(), width, rotated, time, angles);
    let rows = rows_per_task(width);
    let tasks = y
        .par_chunks_mut(rows * width)
        .zip(x.par_chunks(rows * width))
        .enumerate();
    tasks.for_each(|(task, (y, x))| {
        for (row, (y, x)) in y
            .chunks_exact_mut(width)
            .zip(x.chunks_exact(width))
            .enumerate()
        {
            y.copy_from_slice(x);
            let (cos, sin) = tables(angles, (task * rows + row) % time);
            turn_row(&mut y[..rotated], cos, sin, turn);
        }
    });
}

fn check(len: usize, width: usize, rotated: usize, time: usize, angles: &Angles) {
    assert!(
        len.is_multiple_of(width.max(1)),
        "{len} elements in rows of {width}"
    );
    assert!(
        rotated <= width && rotated.is_multiple_of(angles.head_dim),
        "{rotated} of {width} columns to rotate"
    );
    assert!(
        time > 0 && time <= angles.positions(),
        "{time} positions, tables for {}",
        angles.positions()
    );
}

/// The cosines and sines of one position.
fn tables(angles: &Angles, position: usize) -> (&[f32], &[f32]) {
    let half = angles.head_dim / 2;
    (
        &angles.cos[position * half..][..half],
        &angles.sin[position * half..][..half],
    )
}

simd! {
    /// Turns one row of heads.
    fn turn_row(row: &mut [f32], cos: &[f32], sin: &[f32], turn: Turn) {
        let sign = if turn == Turn::Inverse { -1.0 } else { 1.0 };
        for head in row.chunks_exact_mut(2 * cos.len()) {
            let (pairs, _) = head.as_chunks_mut::<2>();
            for (([a, b], cos), sin) in pairs.iter_mut().zip(cos).zip(sin) {
                let sin = sin * sign;
                (*a, *b) = (*a * cos - *b * sin, *a * sin + *b * cos);
            }
        }
    }
}
