//! Transposes a matrix, so that a product can read it along its rows. The copy goes in blocks that suit caches and address translation.

use crate::ops::cpu::{SharedSlice, for_each};

/// The side of a block that is copied at once. The addresses of its rows and of its columns stay in the translation cache.
const BLOCK: usize = 64;

/// The largest number of elements that a single thread copies.
const SERIAL: usize = 16 * 1024;

/// Sets `to[c · to_stride + r] = from[r · from_stride + c]` for every r below `rows` and c below `columns`, on all threads.
pub fn transpose(
    to: &mut [f32],
    to_stride: usize,
    from: &[f32],
    from_stride: usize,
    [rows, columns]: [usize; 2],
) {
    assert!(rows <= to_stride && columns <= from_stride);
    if rows * columns <= SERIAL {
        transpose_serial(to, to_stride, from, from_stride, [rows, columns]);
        return;
    }
    // A cache line holds 16 numbers; narrower strips would read lines more than once.
    let strip = (columns / rayon::current_num_threads())
        .next_multiple_of(16)
        .clamp(16, BLOCK);
    let to = SharedSlice::new(&mut to[..columns * to_stride]);
    for_each(columns.div_ceil(strip), |index| {
        let first = index * strip;
        let size = [rows, strip.min(columns - first)];
        // SAFETY: strips do not overlap.
        let to = unsafe { to.part(first * to_stride, size[1] * to_stride) };
        transpose_serial(to, to_stride, &from[first..], from_stride, size);
    });
}

/// Does [`transpose`] on the calling thread.
pub(crate) fn transpose_serial(
    to: &mut [f32],
    to_stride: usize,
    from: &[f32],
    from_stride: usize,
    [rows, columns]: [usize; 2],
) {
    if rows == 0 || columns == 0 {
        return;
    }
    for row in (0..rows).step_by(BLOCK) {
        for column in (0..columns).step_by(BLOCK) {
            let size = [BLOCK.min(rows - row), BLOCK.min(columns - column)];
            let to = &mut to[column * to_stride + row..];
            let from = &from[row * from_stride + column..];
            transpose_block(to, to_stride, from, from_stride, size);
        }
    }
}

/// Transposes one block, in squares of 8 × 8 where the machine has AVX2.
fn transpose_block(
    to: &mut [f32],
    to_stride: usize,
    from: &[f32],
    from_stride: usize,
    [rows, columns]: [usize; 2],
) {
    #[cfg(target_arch = "x86_64")]
    if crate::ops::cpu::Instructions::detect() != crate::ops::cpu::Instructions::Baseline {
        let whole_rows = rows / 8 * 8;
        let whole_columns = columns / 8 * 8;
        for column in (0..whole_columns).step_by(8) {
            for row in (0..whole_rows).step_by(8) {
                let to = &mut to[column * to_stride + row..];
                let from = &from[row * from_stride + column..];
                // SAFETY: AVX2 was found.
                unsafe {
                    transpose_8(to, to_stride, from, from_stride);
                }
            }
        }
        for places in [
            [0..whole_rows, whole_columns..columns],
            [whole_rows..rows, 0..columns],
        ] {
            transpose_plainly(to, to_stride, from, from_stride, places);
        }
        return;
    }
    transpose_plainly(to, to_stride, from, from_stride, [0..rows, 0..columns]);
}

/// Transposes element by element.
fn transpose_plainly(
    to: &mut [f32],
    to_stride: usize,
    from: &[f32],
    from_stride: usize,
    [rows, columns]: [std::ops::Range<usize>; 2],
) {
    for column in columns {
        for row in rows.clone() {
            to[column * to_stride + row] = from[row * from_stride + column];
        }
    }
}

/// Transposes 8 × 8 elements. The compiler turns the plain loop into 64 single moves; this is three to five times as fast.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn transpose_8(to: &mut [f32], to_stride: usize, from: &[f32], from_stride: usize) {
    use std::arch::x86_64::{
        __m256, _mm256_loadu_ps, _mm256_permute2f128_ps, _mm256_shuffle_ps, _mm256_storeu_ps,
        _mm256_unpackhi_ps, _mm256_unpacklo_ps,
    };
    let rows: [__m256; 8] = std::array::from_fn(|row| {
        let row = &from[row * from_stride..][..8];
        // SAFETY: the row has eight elements.
        unsafe { _mm256_loadu_ps(row.as_ptr()) }
    });
    // First pairs of rows, then quads, each within the halves of a register; then the halves are exchanged.
    let low: [__m256; 4] =
        std::array::from_fn(|i| _mm256_unpacklo_ps(rows[2 * i], rows[2 * i + 1]));
    let high: [__m256; 4] =
        std::array::from_fn(|i| _mm256_unpackhi_ps(rows[2 * i], rows[2 * i + 1]));
    let quads = |half: usize| {
        let low = &low[half..half + 2];
        let high = &high[half..half + 2];
        [
            _mm256_shuffle_ps::<0b01_00_01_00>(low[0], low[1]),
            _mm256_shuffle_ps::<0b11_10_11_10>(low[0], low[1]),
            _mm256_shuffle_ps::<0b01_00_01_00>(high[0], high[1]),
            _mm256_shuffle_ps::<0b11_10_11_10>(high[0], high[1]),
        ]
    };
    let upper_rows = quads(0);
    let lower_rows = quads(2);
    for column in 0..8 {
        let upper = upper_rows[column % 4];
        let lower = lower_rows[column % 4];
        let values = if column < 4 {
            _mm256_permute2f128_ps::<0x20>(upper, lower)
        } else {
            _mm256_permute2f128_ps::<0x31>(upper, lower)
        };
        let to = &mut to[column * to_stride..][..8];
        // SAFETY: the slice has eight elements.
        unsafe {
            _mm256_storeu_ps(to.as_mut_ptr(), values);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_moves_and_nothing_else() {
        for [rows, columns] in [[1, 1], [8, 8], [7, 19], [65, 71], [130, 16], [300, 301]] {
            let from_stride = columns + 3;
            let to_stride = rows + 5;
            let from: Vec<f32> = (0..rows * from_stride).map(|x| x as f32).collect();
            let mut to = vec![-1.0; columns * to_stride];
            transpose(&mut to, to_stride, &from, from_stride, [rows, columns]);
            for (index, value) in to.iter().enumerate() {
                let column = index / to_stride;
                let row = index % to_stride;
                let want = if row < rows {
                    from[row * from_stride + column]
                } else {
                    -1.0
                };
                assert_eq!(*value, want);
            }
        }
    }
}
