//! Matrix products on the CPU, over strided views. A product is split into tiles that run in parallel.

mod product;
mod tiles;

pub(crate) use product::multiply;
use tiles::Tiles;

use super::{FusedLinear, NextOperation};
use crate::ops::Float;
use crate::ops::cpu::transpose::transpose;
use crate::ops::cpu::{SharedSlice, for_each, tensor, values};
use crate::ops::format::Format;
use crate::ops::shared_work::{PartialNorm, SharedWork};
use burn::backend::{Flex, TensorMetadata as _};
use std::cell::Cell;

type T = Float<Flex>;

/// On the CPU, operands of a short format are rounded before they get here, and no product does the work of another operation.
impl FusedLinear for Flex {
    fn forward([x, w]: [T; 2], _: Format, _: Option<PartialNorm>, then: &NextOperation) -> T {
        let is_plain = matches!(then, NextOperation::Nothing);
        debug_assert!(is_plain, "{then:?} on the CPU");
        let product = matmul(None, matrix(&x), matrix(&w).transposed());
        tensor(product, [x.shape()[0], w.shape()[0]])
    }

    fn forward_onto([x, w, residual]: [T; 3], _: Format, _: &SharedWork) -> T {
        let a = matrix(&x);
        let b = matrix(&w).transposed();
        tensor(matmul(Some(values(&residual)), a, b), residual.shape())
    }

    fn backward([x, w, dy]: [T; 3], _: Format, gated: Option<T>) -> [T; 2] {
        debug_assert!(gated.is_none(), "no product has gates on the CPU");
        let a = matrix(&x);
        let b = matrix(&w);
        let d = matrix(&dy);
        let [dx, dw] = matmuls([(None, d, b), (None, d.transposed(), a)]);
        [tensor(dx, x.shape()), tensor(dw, w.shape())]
    }
}

/// Returns a tensor `[rows, columns]` as a matrix.
fn matrix(x: &T) -> Matrix<'_> {
    let [rows, columns] = x.shape().dims();
    Matrix::new(values(x), rows, columns)
}

/// A matrix inside a slice. Element (row, column) is `data[row * row_stride + column * column_stride]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matrix<'a> {
    data: &'a [f32],
    rows: usize,
    columns: usize,
    row_stride: usize,
    column_stride: usize,
}

impl<'a> Matrix<'a> {
    /// Returns a row-major matrix of rows × columns that fills `data`.
    pub(crate) fn new(data: &'a [f32], rows: usize, columns: usize) -> Self {
        assert_eq!(
            data.len(),
            rows * columns,
            "a matrix of {rows} rows and {columns} columns"
        );
        Self {
            data,
            rows,
            columns,
            row_stride: columns,
            column_stride: 1,
        }
    }

    /// Returns the transposed view; nothing is copied.
    pub(crate) fn transposed(self) -> Self {
        Self {
            data: self.data,
            rows: self.columns,
            columns: self.rows,
            row_stride: self.column_stride,
            column_stride: self.row_stride,
        }
    }

    /// Returns the address of element `start`, and the strides.
    fn place(&self, start: usize) -> (*const f32, (usize, usize)) {
        let strides = (self.row_stride, self.column_stride);
        (self.data.as_ptr().wrapping_add(start), strides)
    }

    /// Returns this matrix with adjacent columns: either `self`, or a copy in `scratch`. The copy is worth its time for the right operand of a
    /// product, which would otherwise gather its columns element by element for every tile.
    fn along_rows<'b>(self, scratch: &'b mut Vec<f32>) -> Matrix<'b>
    where
        'a: 'b,
    {
        if self.row_stride != 1 || self.column_stride < self.rows {
            return self;
        }
        // A stride that is not a power of two spreads the rows over all cache sets.
        let row_stride = self.columns + 16;
        let len = self.rows * row_stride;
        if scratch.len() < len {
            scratch.resize(len, 0.0);
        }
        let size = [self.columns, self.rows];
        transpose(scratch, row_stride, self.data, self.column_stride, size);
        Matrix {
            data: scratch,
            row_stride,
            column_stride: 1,
            ..self
        }
    }
}

/// Returns `a · b` plus `base`, if there is one. Base and result are row-major, a.rows × b.columns.
pub(crate) fn matmul(base: Option<&[f32]>, a: Matrix, b: Matrix) -> Vec<f32> {
    let [product] = matmuls([(base, a, b)]);
    product
}

/// Computes several products `(base, a, b)` of [`matmul`] at once. Threads that finish one continue with the next.
pub(crate) fn matmuls<const N: usize>(
    products: [(Option<&[f32]>, Matrix, Matrix); N],
) -> [Vec<f32>; N] {
    let mut results = products.map(|(_, a, b)| Vec::with_capacity(a.rows * b.columns));
    let mut scratch = products.map(|_| Scratch::take());
    let threads = rayon::current_num_threads();
    let jobs: Vec<Job> = products
        .into_iter()
        .zip(&mut results)
        .zip(&mut scratch)
        .map(|(((base, a, b), result), scratch)| {
            let m = a.rows;
            let n = b.columns;
            let k = a.columns;
            assert_eq!(k, b.rows, "{m} × {k} times {} × {n}", b.rows);
            assert!(base.is_none_or(|base| base.len() == m * n));
            Job {
                base,
                a,
                b: b.along_rows(&mut scratch.0),
                out: SharedSlice::unwritten(result, m * n),
                tiles: Tiles::new(m, n, k, threads),
            }
        })
        .collect();
    for_each(
        jobs.iter().map(|job| job.tiles.count()).sum(),
        |mut tile| {
            for job in &jobs {
                let count = job.tiles.count();
                if tile < count {
                    job.run(tile);
                    return;
                }
                tile -= count;
            }
        },
    );
    for (result, (_, a, b)) in results.iter_mut().zip(products) {
        // SAFETY: the tiles cover the output, and each of them was written.
        unsafe { result.set_len(a.rows * b.columns) };
    }
    results
}

/// One product, cut into tiles.
struct Job<'a> {
    base: Option<&'a [f32]>,
    a: Matrix<'a>,
    b: Matrix<'a>,
    out: SharedSlice<'a>,
    tiles: Tiles,
}

impl Job<'_> {
    /// Computes one tile. Each tile has to be computed once.
    fn run(&self, tile: usize) {
        let Self {
            base, a, b, out, ..
        } = self;
        let [rows, columns] = self.tiles.range(tile);
        let width = b.columns;
        let start = rows.start * width + columns.start;
        let sizes = [rows.len(), columns.len(), a.columns];
        let tile_rows = a.place(rows.start * a.row_stride);
        let tile_columns = b.place(columns.start * b.column_stride);
        let to = (out.pointer(start), width);
        // SAFETY: `Matrix` checked that a and b are in bounds, `matmuls` that out is; tiles do not overlap.
        unsafe {
            if let Some(base) = base {
                for row in rows {
                    let start = row * width + columns.start;
                    let base = &base[start..][..columns.len()];
                    out.pointer(start)
                        .copy_from_nonoverlapping(base.as_ptr(), columns.len());
                }
            }
            multiply(sizes, tile_rows, tile_columns, to, base.is_some());
        }
    }
}

thread_local! {
    /// Memory for transposed copies. It is kept between products, because new memory costs more than the copy.
    static SCRATCH: Cell<Vec<f32>> = const { Cell::new(Vec::new()) };
}

/// The thread's scratch memory, lent to one product. Another product that starts on this thread meanwhile allocates its own.
struct Scratch(Vec<f32>);

impl Scratch {
    fn take() -> Self {
        Self(SCRATCH.take())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        SCRATCH.set(std::mem::take(&mut self.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::cpu::testing::{numbers, on_threads};

    #[test]
    fn the_number_of_threads_does_not_change_a_bit() {
        for (m, n, k) in [(301, 997, 515), (1030, 130, 70), (1025, 33, 129)] {
            let a = numbers(1, m * k);
            let b = numbers(2, k * n);
            for b in [Matrix::new(&b, k, n), Matrix::new(&b, n, k).transposed()] {
                let run = |threads| {
                    let a = Matrix::new(&a, m, k);
                    on_threads(threads, move || matmul(None, a, b))
                };
                let one = run(1);
                for threads in [2, 3, 16] {
                    assert!(one == run(threads), "{m} × {n} × {k}, {threads} threads");
                }
            }
        }
    }
}
