//! Embedding rows by token, `wgsl/embedding_forward.wgsl`, and their gradient without atomics, with the same order of additions in
//! every run.

use super::wgsl::{Numbers, launch_file};
use super::{arg, empty, groups, vector_width};
use crate::ops::pending::Scaled;
use burn::cubecl::{self, prelude::*};
use burn_cubecl::tensor::CubeTensor;

const THREADS: usize = 128;
/// Fewest invocations of a workgroup: a subgroup.
const FEWEST: usize = 32;
/// No token has this number.
const NO_TOKEN: u32 = u32::MAX;

/// y\[n\] = weight\[tokens\[n\]\]; weight `[V, D]`, tokens `[N]` of 32-bit integers, y `[N, D]`. For a norm that follows, `scaled` is
/// written as well. 1 launch.
pub fn forward(weight: &CubeTensor, tokens: &CubeTensor, scaled: Option<&Scaled>) -> CubeTensor {
    let rows = tokens.meta.num_elements();
    let [vocab, width] = weight.meta.shape().dims();
    let y = empty(weight, [rows, width]);
    let lanes = vector_width(&[width]);
    let columns = width / lanes;
    let threads = columns.next_power_of_two().clamp(FEWEST, THREADS);
    let mut buffers = vec![("weight", lanes, weight), ("y", lanes, &y)];
    buffers.push(("tokens", 1, tokens));
    if let Some(it) = scaled {
        buffers.extend([("gain", lanes, &it.gain), ("scaled", lanes, &it.values)]);
        buffers.push(("squares", 1, &it.squares));
    }
    let mut own = Numbers::from([("rows", rows), ("vocab", vocab), ("columns", columns)]);
    own.insert("for_norm", usize::from(scaled.is_some()));
    let sizes = [threads, rows, lanes];
    launch_file("embedding_forward.wgsl", sizes, &buffers, own);
    y
}

/// dweight\[v\] = Σ_{n: tokens\[n\]=v} dy\[n\]; dy `[N, D]`, dweight `[V, D]`.
/// One workgroup per vocabulary row searches all tokens, four per comparison. Every invocation takes part in the search, and a
/// workgroup has no more invocations than the row has vectors. 1 launch.
pub fn backward(dy: &CubeTensor, tokens: &CubeTensor, [vocab, width]: [usize; 2]) -> CubeTensor {
    let lanes = vector_width(&[width]);
    let out = empty(dy, [vocab, width]);
    let columns = width / lanes;
    let threads = columns.next_power_of_two().clamp(FEWEST, THREADS);
    unsafe {
        embedding_scatter_add::launch_unchecked(
            &dy.client,
            groups(vocab),
            CubeDim::new_1d(threads as u32),
            lanes,
            arg(dy),
            arg(tokens),
            arg(&out),
            tokens.meta.num_elements(),
            vocab,
            columns,
            threads,
            columns.div_ceil(threads),
        );
    }
    out
}

/// Each invocation stages four tokens at a time and sums `owned` vectors of the row.
#[cube(launch_unchecked)]
fn embedding_scatter_add<N: Size>(
    dy: &[Vector<f32, N>],
    tokens: &[u32],
    out: &mut [Vector<f32, N>],
    count: usize,
    vocab: usize,
    columns: usize,
    #[comptime] threads: usize,
    #[comptime] owned: usize,
) {
    let row = CUBE_POS;
    if row >= vocab {
        terminate!();
    }
    let mut staged = Shared::<[Vector<u32, Const<4>>]>::new_slice(threads);
    let unit = UNIT_POS as usize;
    let mut sums = Array::<Vector<f32, N>>::new(owned);
    #[unroll]
    for i in 0..owned {
        sums[i] = Vector::<f32, N>::new(0.0);
    }
    let mut first = 0usize;
    while first < count {
        let mut four = Vector::<u32, Const<4>>::new(NO_TOKEN);
        #[unroll]
        for i in 0..4usize {
            let at = first + unit * 4 + i;
            if at < count {
                four.insert(i, tokens[at]);
            }
        }
        sync_cube();
        staged[unit] = four;
        sync_cube();
        for group in 0..threads {
            let seen = staged[group];
            #[unroll]
            for i in 0..4usize {
                if seen.extract(i) == row as u32 {
                    let start = (first + group * 4 + i) * columns;
                    #[unroll]
                    for o in 0..owned {
                        let c = unit + o * threads;
                        if c < columns {
                            sums[o] += dy[start + c];
                        }
                    }
                }
            }
        }
        first += comptime!(threads * 4);
    }
    #[unroll]
    for o in 0..owned {
        let c = unit + o * threads;
        if c < columns {
            out[row * columns + c] = sums[o];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::{self, TestDevice};
    use super::super::empty_of;
    use super::super::epilogue::empty_scaled;
    use super::super::format::converted;
    use super::*;
    use crate::ops::cpu::testing::numbers;
    use burn::tensor::DType;

    #[test]
    fn rows_are_copied_and_scaled_for_a_norm() {
        let Some(device) = TestDevice::any() else {
            return;
        };
        for width in [32, 33, 516] {
            let (weight, gain) = (numbers(1, 7 * width), numbers(2, width));
            let (on_device, gains) = (
                device.tensor(&weight, [7, width]),
                device.tensor(&gain, [1, width]),
            );
            let rows = [3, 0, 6, 3, 5];
            let mut tokens = empty_of(DType::I32, &gains, [rows.len()]);
            let bytes: Vec<u8> = rows
                .iter()
                .flat_map(|row| (*row as i32).to_le_bytes())
                .collect();
            tokens.handle = gains.client.create_from_slice(&bytes);
            let want: Vec<f32> = rows
                .iter()
                .flat_map(|row| &weight[row * width..][..width])
                .copied()
                .collect();
            let y = forward(&on_device, &tokens, None);
            assert_eq!(device.read(&y), want);
            if !check::has_matrix_cores() {
                continue;
            }
            let scaled = empty_scaled(gains, 1, [rows.len(), width]);
            assert_eq!(
                device.read(&forward(&on_device, &tokens, Some(&scaled))),
                want
            );
            let products: Vec<f32> = want
                .iter()
                .zip(gain.iter().cycle())
                .map(|(x, g)| x * g)
                .collect();
            let got = device.read(&converted(scaled.values, DType::F32));
            check::close(&format!("scaled, {width}"), &got, &products, 1e-3);
            let squares = want
                .chunks(width)
                .map(|row| row.iter().map(|x| x * x).sum());
            let squares: Vec<f32> = squares.collect();
            check::close(
                &format!("squares, {width}"),
                &device.read(&scaled.squares),
                &squares,
                1e-5,
            );
        }
    }
}
