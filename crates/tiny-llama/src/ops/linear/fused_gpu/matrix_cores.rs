//! Matrix products on matrix cores: f16 operands, f32 sums, as WGSL with cooperative matrices. A subgroup holds a block of
//! 16×16 tiles of the result; a workgroup stages what its subgroups share. Measured on an H200 over Vulkan
//! (`docs/notes/gpu.md`).
//!
//! An f32 operand is split into two f16, x·s = high + low, where s is a power of two that brings the tensor's largest value just
//! below f16's. A·B is then high·high + high·low + low·high; the omitted term is below 2⁻²² of a product. Matrix cores round sums
//! towards zero, so each step's products start from zero and are added to the sums with an f32 addition
//! (Ootomo and Yokota, 2022, arXiv 2203.03341).

use super::epilogue::Store;
use super::products::{Product, Products, Staged};
use crate::ops::gpu::wgsl::Binding;
use crate::ops::linear::planner::Problem;
use minijinja::{Value, context};

pub(super) const FILE: &str = "linear/matmul_matrix_cores.wgsl";

/// Side of the matrices that one instruction multiplies.
const TILE: usize = 16;
/// Values per vector of a load.
const LANES: usize = 4;
/// Padding between rows of workgroup memory, in values, against bank conflicts.
const PADDING: usize = 8;

/// Returns true if the operands' rows start at whole vectors.
pub(super) fn fits(problem: &Problem) -> bool {
    problem.lanes().iter().all(|lanes| *lanes == LANES)
}

/// Four values of an operand in memory.
fn vector(staged: &Staged) -> &'static str {
    match staged {
        Staged::Short => "vec4<f16>",
        Staged::Full | Staged::Rounded | Staged::Halves(_) => "vec4<f32>",
    }
}

/// Names and elements of A, B, the result, the buffers of its store, and those of a norm: squares, 1/rms and its output.
pub(super) fn buffers(it: &Product) -> Vec<(&'static str, &'static str)> {
    let [a, b] = it.staged.each_ref().map(vector);
    let out = match (it.store.is_linear(), by_vectors(it)) {
        (true, false) => "f32",
        (true, true) => "vec4<f32>",
        (false, _) => "vec4<f16>",
    };
    let mut all = vec![("a", a), ("b", b), ("out", out)];
    all.extend(it.store.buffers(out));
    if it.norm_parts > 0 {
        all.extend([("squares_of_a", "f32"), ("inverse", "f32")]);
        all.push(("normed", "vec4<f16>"));
    }
    all
}

/// An item of the file's `products`.
pub(super) fn values(it: &Product) -> Value {
    let (problem, plan) = (&it.problem, &it.plan);
    let (height, width) = plan.tile;
    // In an untransposed A and a transposed B, the inner values of a row or column are adjacent.
    let (a_lines, b_lines) = (problem.a_transposed, !problem.b_transposed);
    context! {
        tiles => (plan.block.0 / TILE, plan.block.1 / TILE),
        subgroups => plan.blocks(),
        slices => plan.slices,
        step => plan.step,
        block => plan.tile,
        // Inner values of a workgroup.
        share => plan.share(problem),
        store => it.store,
        norm_parts => it.norm_parts,
        by_vectors => by_vectors(it),
        ragged => problem.is_ragged(plan.tile),
        a => operand(it, "a", a_lines, ("row", height, problem.rows)),
        b => operand(it, "b", b_lines, ("column", width, problem.columns)),
        ..Value::from_serialize(problem),
    }
}

/// The file's other values, and its bindings. The largest magnitudes of f32 operands are the last binding.
pub(super) fn values_of_launch(all: &Products) -> Value {
    let mut bindings = all.bindings();
    let halves = are_halves(&all.0[0]);
    bindings.extend(halves.then(|| Binding {
        name: "largest".to_owned(),
        of: "f32",
    }));
    context! {
        bindings,
        halves,
        by_vectors => all.0.iter().any(by_vectors),
        threads => all.0[0].plan.threads(),
    }
}

/// Returns true if results pass through workgroup memory, where an invocation reads four adjacent values of a row.
fn by_vectors(it: &Product) -> bool {
    let sums = it.plan.slices > 1 || it.store == Store::Onto { for_norm: true };
    let ragged = it.problem.is_ragged(it.plan.tile);
    ragged || !it.store.is_linear() || sums || it.norm_parts > 0
}

fn are_halves(it: &Product) -> bool {
    matches!(it.staged, [Staged::Halves(_), _])
}

/// An operand in memory: lines of adjacent values, which are copied to workgroup memory in this layout. A line belongs to one inner
/// value (`inner_lines`), or to one row of A or column of B.
fn operand(
    it: &Product,
    name: &str,
    inner_lines: bool,
    (outer, block, whole): (&str, usize, usize),
) -> Value {
    let is_b = name == "b";
    let staged = &it.staged[usize::from(is_b)];
    // Each with the number in a step and in the whole operand.
    let (of_outer, of_inner) = ((block, whole), (it.plan.step, it.problem.inner));
    let [lines, values] = if inner_lines {
        [of_inner, of_outer]
    } else {
        [of_outer, of_inner]
    };
    let invocations = it.plan.threads();
    let pitch = (values.0 + PADDING) / LANES;
    context! {
        name,
        // The matrix's role in an instruction, and whether the matrix's rows are lines.
        role => if is_b { "B" } else { "A" },
        by_rows => inner_lines == is_b,
        // Vector of four values in memory.
        vector => vector(staged),
        inner_lines,
        // Vectors of a line, and in workgroup memory the distance between lines in vectors and the vectors of all.
        across => values.0 / LANES,
        pitch,
        vectors => lines.0 * pitch,
        // Vectors that each invocation loads, and lines between one and the next.
        loads => lines.0 * values.0 / LANES / invocations,
        lines_of_load => invocations * LANES / values.0,
        // First row of A or column of B.
        outer,
        whole => [lines.1, values.1],
        // Whether the operand is whole steps.
        even => lines.1.is_multiple_of(lines.0) && values.1.is_multiple_of(values.0),
        // Whether its lines are gates and ups, which are interleaved.
        in_turns => is_b && it.store == Store::Swiglu,
        // The largest magnitude is the largest of these values.
        largest => match staged {
            Staged::Halves(range) => range.clone(),
            _ => 0..0,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::cpu::format::nearest;
    use crate::ops::cpu::testing::numbers;
    use crate::ops::format::Format;
    use crate::ops::gpu::check::{self, TestDevice};
    use crate::ops::gpu::format::converted;
    use crate::ops::gpu::wgsl::Wgsl as _;
    use crate::ops::linear::fused_gpu::epilogue::Epilogue;
    use crate::ops::linear::fused_gpu::{CORES, by_plans, product};
    use crate::ops::linear::planner::{Parts, Plan, Planner, tests::plans};
    use crate::ops::shapes::Rotation;
    use crate::ops::shared_work::PartialNorm;
    use burn::tensor::DType;
    use burn_cubecl::tensor::CubeTensor;
    use protocol::config::Precision;

    fn multiply(
        pair: [&CubeTensor; 2],
        then: Epilogue,
        problem: Problem,
        halves: bool,
    ) -> CubeTensor {
        let format = if halves {
            Format::Split
        } else {
            Format::Native
        };
        product(pair, then, problem, format)
    }

    #[test]
    fn every_text_is_valid_wgsl() {
        let heads = [[1024, 1000, 512], [4096, 1000, 1024]];
        let heads = heads.map(|sizes| Problem::new(sizes, false, true));
        for problem in problems().into_iter().chain(heads) {
            let split = [Staged::Halves(0..1), Staged::Halves(1..300)];
            let short = [Staged::Short, Staged::Short];
            let mixed = [Staged::Short, Staged::Rounded];
            let all = [(split, 0), (short.clone(), 0), (mixed, 0), (short, 3)];
            for (staged, norm_parts) in all {
                let halves = matches!(staged, [Staged::Halves(_), _]);
                let planner = Planner::Cores { halves };
                let plan = planner.one(&problem, Parts::Launch);
                let onto = [(1, Store::Onto { for_norm: false }), (3, Store::Plain)];
                let for_norm = (1, Store::Onto { for_norm: true });
                let stores = onto.into_iter().chain((!halves).then_some(for_norm));
                let rope = Store::Rope(rotation(&problem));
                let fused = [(1, rope), (1, Store::Swiglu), (1, Store::SwigluBackward)];
                for (splits, store) in stores.chain(fused.into_iter().filter(|_| !halves)) {
                    let product = Product {
                        problem,
                        plan: plan.splits(splits),
                        store,
                        staged: staged.clone(),
                        norm_parts,
                    };
                    let bytes = check::valid_wgsl(&Products(vec![product]).program().text());
                    if !halves && plan.tile == (128, 128) {
                        assert!(2 * bytes <= check::WORKGROUP_MEMORY, "{bytes}, {store:?}");
                    }
                }
                let transposed = Problem {
                    a_transposed: true,
                    b_transposed: false,
                    ..problem
                };
                let plans = planner.pair(&[problem, transposed]);
                let products = plans.into_iter().zip([problem, transposed]);
                let products = products.map(|(plan, problem)| Product {
                    problem,
                    plan,
                    store: Store::Plain,
                    staged: staged.clone(),
                    norm_parts: 0,
                });
                check::valid_wgsl(&Products(products.collect()).program().text());
            }
        }
    }

    /// Rotation of three quarters of the columns, with heads of 4.
    fn rotation(problem: &Problem) -> Rotation {
        Rotation {
            width: problem.columns,
            rotated: problem.columns / 16 * 12,
            head_dim: 4,
            context: 50,
            inverse: false,
        }
    }

    fn problems() -> Vec<Problem> {
        let sizes = [
            [128, 128, 64],
            [256, 384, 512],
            [100, 72, 68],
            [300, 1000, 200],
            [2048, 1024, 64],
        ];
        let transposed = [(false, true), (false, false), (true, false)];
        let all = sizes
            .iter()
            .flat_map(|size| transposed.map(|(a, b)| Problem::new(*size, a, b)));
        all.collect()
    }

    #[test]
    fn products_agree_with_the_definition() {
        let Some(device) = TestDevice::any() else {
            return;
        };
        if !check::has_matrix_cores() {
            return println!("skipped: no matrix cores of 16x16x16 f16 to f32");
        }
        for problem in problems() {
            let Problem {
                rows,
                columns,
                inner,
                ..
            } = problem;
            let (a, b) = (numbers(1, rows * inner), numbers(2, inner * columns));
            // Values as small as gradients, and larger than any f16: the scale brings them into f16's range.
            let small: Vec<f32> = a.iter().map(|x| x * 1e-9).collect();
            let large: Vec<f32> = b.iter().map(|x| x * 1e7).collect();
            let residual = numbers(3, rows * columns);
            let added = device.tensor(&residual, [rows, columns]);
            let want = |a: &[f32], b: &[f32]| -> Vec<f32> {
                let product = definition(&problem, a, b).into_iter().zip(&residual);
                product.map(|(x, r)| (x + f64::from(*r)) as f32).collect()
            };
            let on_device =
                |a: &[f32], b: &[f32]| [a, b].map(|values| device.tensor(values, [values.len()]));

            let [a16, b16] = [&a, &b].map(|all| -> Vec<f32> {
                all.iter().map(|x| nearest(*x, Precision::F16)).collect()
            });
            let [x32, y32] = on_device(&a16, &b16);
            let [x, y] = [&x32, &y32].map(|it| converted(it.clone(), DType::F16));
            for pair in [[&x, &y32], [&x32, &y]] {
                let got = multiply(pair, Epilogue::Onto(&added, None), problem, false);
                let want = want(&a16, &b16);
                check::close(&format!("{problem:?}"), &device.read(&got), &want, 1e-5);
            }
            let plan = CORES.one(&problem, Parts::Launch);
            if plan.splits == 1 {
                let gain = numbers(4, columns);
                let on_gpu = device.tensor(&gain, [1, columns]);
                let [blocks, ..] = plan.groups(&problem);
                let partial = PartialNorm::empty(on_gpu, blocks, [rows, columns]);
                let then = Epilogue::Onto(&added, Some(&partial));
                multiply([&x, &y], then, problem, false);
                let stored = want(&a16, &b16);
                let gains = gain.iter().cycle();
                let want: Vec<f32> = stored.iter().zip(gains).map(|(x, g)| x * g).collect();
                let PartialNorm {
                    scaled, squares, ..
                } = partial;
                let got = device.read(&converted(scaled, DType::F32));
                check::close(&format!("{problem:?}, scaled"), &got, &want, 1e-3);
                let of_row = |row: &[f32]| row.iter().map(|x| x * x).sum();
                let want: Vec<f32> = stored.chunks(columns).map(of_row).collect();
                let got = sum(&device.read(&squares), rows);
                check::close(&format!("{problem:?}, squares"), &got, &want, 1e-4);
            }
            let then = Epilogue::Onto(&added, None);
            let got = device.read(&multiply([&x, &y], then, problem, false));
            check::close(&format!("{problem:?}"), &got, &want(&a16, &b16), 1e-5);

            for (a, b) in [(&a, &b), (&small, &large), (&vec![0.0; a.len()], &b)] {
                let [x, y] = on_device(a, b);
                let then = Epilogue::Onto(&added, None);
                let got = device.read(&multiply([&x, &y], then, problem, true));
                check::close(&format!("{problem:?}, split"), &got, &want(a, b), 1e-6);
                if b == &large {
                    alike(&device, [&x, &y], true, problem, 1e-6);
                }
            }
            alike(&device, [&x, &y], false, problem, 1e-5);
        }
    }

    /// The sum of matrices of `size` values.
    fn sum(parts: &[f32], size: usize) -> Vec<f32> {
        assert!(parts.len().is_multiple_of(size));
        let of = |at: usize| parts.iter().skip(at).step_by(size).sum();
        (0..size).map(of).collect()
    }

    /// Two products in one launch, split or whole, give the same as each alone.
    fn alike(
        device: &TestDevice,
        pair: [&CubeTensor; 2],
        halves: bool,
        problem: Problem,
        off: f32,
    ) {
        let alone = device.read(&multiply(pair, Epilogue::Plain, problem, halves));
        let of_halves = |plan: &Plan| plan.subgroup > 1 && (plan.slices == 1) == halves;
        let of = |tile| plans().find(|plan| plan.tile == tile && of_halves(plan));
        let [middle, small] = [(64, 128), (64, 64)].map(|tile| of(tile).expect("in the table"));
        let large = plans().find(|plan| plan.block == (64, 64) && plan.subgroup > 1);
        let in_parts = |plan: Plan| plan.in_parts(2, &problem);
        let others = large.into_iter().filter(|_| !halves).chain([small]);
        let alike = others.map(|plan| [plan, in_parts(plan)]);
        for plans in alike.chain([[small, in_parts(middle)]]) {
            for plans in [plans, [plans[1], plans[0]]] {
                let planner = Planner::Cores { halves };
                let thens = [Epilogue::Plain; 2];
                for got in by_plans(planner, plans, [pair; 2], thens, [problem; 2]) {
                    let name = format!("{problem:?} {plans:?}");
                    check::close(&name, &device.read(&got), &alone, off);
                }
            }
        }
    }

    /// A·B, summed in f64.
    fn definition(problem: &Problem, a: &[f32], b: &[f32]) -> Vec<f64> {
        let Problem {
            rows,
            columns,
            inner,
            a_transposed,
            b_transposed,
        } = *problem;
        let x = |i: usize, k: usize| {
            a[if a_transposed {
                k * rows + i
            } else {
                i * inner + k
            }]
        };
        let y = |k: usize, j: usize| {
            b[if b_transposed {
                j * inner + k
            } else {
                k * columns + j
            }]
        };
        let places = (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j)));
        places
            .map(|(i, j)| {
                let products = (0..inner).map(|k| f64::from(x(i, k)) * f64::from(y(k, j)));
                products.sum()
            })
            .collect()
    }
}
