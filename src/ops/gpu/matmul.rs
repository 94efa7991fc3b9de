//! Matrix products of every transposition, with an optional matrix added to the result.
//! The versions and the choice among them are data in `matmul_plan`.

pub use super::matmul_plan::{Limits, Plan, Problem, Version, choose, choose_pair};
use super::{arg, empty, matmul_register, reduce, shaped};
use burn::cubecl::ir::features::Plane;
use burn::cubecl::{self, prelude::*};
use burn_cubecl::tensor::CubeTensor;

/// Workgroups that keep a large GPU busy: an H100 has 132 processors.
const LARGE_DEVICE: usize = 120;
/// The same for a CPU.
const SMALL_DEVICE: usize = 4;
/// Side of [`Version::SharedTile`]'s tile.
const TILE: u32 = 16;

/// A·B (+ `residual`), `[rows, columns]`, by the version that [`choose`] names. 1 launch, or 2 when the plan splits the
/// inner dimension.
pub fn matmul(
    a: &CubeTensor,
    b: &CubeTensor,
    residual: Option<&CubeTensor>,
    problem: Problem,
) -> CubeTensor {
    matmul_as(choose(&problem, limits(a)), a, b, residual, problem)
}

/// What the tensor's device allows. Devices that offer no operations across a subgroup are taken for small ones: the CPU.
pub fn limits(tensor: &CubeTensor) -> Limits {
    let properties = tensor.client.properties();
    let small = !properties.features.plane.contains(Plane::Ops);
    Limits {
        shared_bytes: properties.hardware.max_shared_memory_size,
        threads: properties.hardware.max_units_per_cube as usize,
        full: if small { SMALL_DEVICE } else { LARGE_DEVICE },
    }
}

/// [`matmul`] by a given version.
fn matmul_as(
    version: Version,
    a: &CubeTensor,
    b: &CubeTensor,
    residual: Option<&CubeTensor>,
    problem: Problem,
) -> CubeTensor {
    let Problem {
        rows,
        columns,
        inner,
        a_transposed,
        b_transposed,
    } = problem;
    if let Version::RegisterTile(plan) = version
        && plan.splits > 1
    {
        let partial = empty(a, [plan.splits, rows, columns]);
        matmul_register::launch(a, b, None, &partial, problem, plan);
        let out = reduce::sum_rows(&partial, plan.splits, rows * columns, residual);
        return shaped(out, [rows, columns]);
    }
    let out = empty(a, [rows, columns]);
    if let Version::RegisterTile(plan) = version {
        matmul_register::launch(a, b, residual, &out, problem, plan);
        return out;
    }
    let grid = CubeCount::Static(
        (columns as u32).div_ceil(TILE),
        (rows as u32).div_ceil(TILE),
        1,
    );
    unsafe {
        matmul_shared_tile::launch_unchecked(
            &a.client,
            grid,
            CubeDim::new_2d(TILE, TILE),
            arg(a),
            arg(b),
            arg(residual.unwrap_or(a)),
            arg(&out),
            rows,
            columns,
            inner,
            a_transposed,
            b_transposed,
            residual.is_some(),
        );
    }
    out
}

#[cube]
fn value_of_a(
    a: &[f32],
    row: usize,
    k: usize,
    rows: usize,
    inner: usize,
    #[comptime] transposed: bool,
) -> f32 {
    if transposed {
        a[k * rows + row]
    } else {
        a[row * inner + k]
    }
}

#[cube]
fn value_of_b(
    b: &[f32],
    k: usize,
    column: usize,
    columns: usize,
    inner: usize,
    #[comptime] transposed: bool,
) -> f32 {
    if transposed {
        b[column * inner + k]
    } else {
        b[k * columns + column]
    }
}

/// One invocation per output: a 16×16 tile of each operand is read into workgroup memory once for 16 outputs' use.
#[cube(launch_unchecked)]
fn matmul_shared_tile(
    a: &[f32],
    b: &[f32],
    residual: &[f32],
    out: &mut [f32],
    rows: usize,
    columns: usize,
    inner: usize,
    #[comptime] a_transposed: bool,
    #[comptime] b_transposed: bool,
    #[comptime] has_residual: bool,
) {
    let side = comptime!(TILE as usize);
    let mut tile_a = Shared::<[f32]>::new_slice(comptime!(side * side));
    let mut tile_b = Shared::<[f32]>::new_slice(comptime!(side * side));
    let (x, y) = (UNIT_POS_X as usize, UNIT_POS_Y as usize);
    let column = ABSOLUTE_POS_X as usize;
    let row = ABSOLUTE_POS_Y as usize;
    let mut sum = 0.0f32;
    let mut from = 0usize;
    while from < inner {
        let mut left = 0.0f32;
        if row < rows && from + x < inner {
            left = value_of_a(a, row, from + x, rows, inner, a_transposed);
        }
        let mut right = 0.0f32;
        if column < columns && from + y < inner {
            right = value_of_b(b, from + y, column, columns, inner, b_transposed);
        }
        tile_a[y * side + x] = left;
        tile_b[y * side + x] = right;
        sync_cube();
        #[unroll]
        for k in 0..side {
            sum += tile_a[y * side + k] * tile_b[k * side + x];
        }
        sync_cube();
        from += side;
    }
    if row < rows && column < columns {
        if has_residual {
            sum += residual[row * columns + column];
        }
        out[row * columns + column] = sum;
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::{self, Device};
    use super::super::matmul_plan::Buffering;
    use super::*;
    use crate::ops::cpu::testing::numbers;

    fn reference(a: &[f32], b: &[f32], p: Problem) -> Vec<f32> {
        let mut out = vec![];
        for (row, column) in (0..p.rows).flat_map(|r| (0..p.columns).map(move |c| (r, c))) {
            let product = |k: usize| {
                let left = a[if p.a_transposed {
                    k * p.rows + row
                } else {
                    row * p.inner + k
                }];
                let right = b[if p.b_transposed {
                    column * p.inner + k
                } else {
                    k * p.columns + column
                }];
                f64::from(left) * f64::from(right)
            };
            out.push((0..p.inner).map(product).sum::<f64>() as f32);
        }
        out
    }

    fn check_all(device: &Device, versions: &[Version], sizes: &[(usize, usize, usize)]) {
        for &(rows, columns, inner) in sizes {
            let (a, b) = (numbers(1, rows * inner), numbers(2, inner * columns));
            let extra = numbers(3, rows * columns);
            let (ga, gb) = (
                device.tensor(&a, [rows * inner]),
                device.tensor(&b, [inner * columns]),
            );
            let gextra = device.tensor(&extra, [rows, columns]);
            for (a_transposed, b_transposed) in
                [(false, true), (false, false), (true, false), (true, true)]
            {
                let problem = Problem::new([rows, columns, inner], a_transposed, b_transposed);
                let plain = reference(&a, &b, problem);
                let more: Vec<f32> = plain.iter().zip(&extra).map(|(x, y)| x + y).collect();
                for &version in versions {
                    let name = format!("{version:?} {problem:?}");
                    let got = matmul_as(version, &ga, &gb, Some(&gextra), problem);
                    check::close(&name, &device.read(&got), &more, 1e-5);
                }
            }
        }
    }

    const SIZES: [(usize, usize, usize); 3] = [(33, 47, 19), (64, 128, 32), (68, 132, 100)];

    #[test]
    fn every_version_agrees_with_the_definition() {
        let Some(device) = Device::any() else { return };
        let plans = [
            Plan::new((32, 64), 16, (4, 8)),
            Plan::new((64, 32), 8, (8, 4))
                .buffering(Buffering::Single)
                .unroll(1),
            Plan::new((32, 32), 16, (8, 8))
                .slices(4)
                .buffering(Buffering::Double),
            Plan::new((64, 64), 16, (8, 4)).slices(2).splits(3),
        ];
        let mut versions = vec![Version::SharedTile];
        versions.extend(plans.map(Version::RegisterTile));
        check_all(&device, &versions, &SIZES);
    }
}
