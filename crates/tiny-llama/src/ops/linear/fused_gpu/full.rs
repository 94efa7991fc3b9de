//! Matrix products in f32 for every transposition and any sizes, with an epilogue: what fills in `matmul.wgsl`.
//!
//! One text serves every shape and every transposition. RoPE and the fused SwiGLU are part of these products, too (`epilogue`).

use super::epilogue::Store;
use super::products::{Product, Products};
use crate::ops::linear::planner::{Problem, padding};
use minijinja::{Value, context};

/// Names and elements of A, B, the result and the buffers of its store.
pub(super) fn buffers(it: &Product) -> Vec<(&'static str, &'static str)> {
    let of = |width| if width == 4 { "vec4<f32>" } else { "f32" };
    let [a, b, out] = it.problem.lanes().map(of);
    let all = [("a", a), ("b", b), ("out", out)].into_iter();
    all.chain(it.store.buffers(out)).collect()
}

/// An item of the file's `products`.
pub(super) fn values(it: &Product) -> Value {
    let Problem { rows, columns, .. } = it.problem;
    let (a_turned, b_turned) = (!it.problem.a_transposed, it.problem.b_transposed);
    let [a_width, b_width, width] = it.problem.lanes();
    let (height, across) = it.plan.tile;
    let after_a = pitch(it, height, a_turned) * it.plan.step;
    context! {
        // Inner values of a workgroup.
        share => it.plan.share(&it.problem),
        store => it.store,
        // Values of a store.
        width,
        // Whether tiles extend past an edge of the result.
        ragged => it.problem.is_ragged(it.plan.tile),
        // Whether inner values have the order 0, 4, 8, …, 1, 5, 9, …, because an operand is transposed.
        reordered => a_turned || b_turned,
        a => operand(it, ("a", "row"), [height, rows], a_turned, a_width, 0),
        b => operand(it, ("b", "column"), [across, columns], b_turned, b_width, after_a),
        ..Value::from_serialize(it.problem),
    }
}

/// The file's other values, and its bindings.
pub(super) fn values_of_launch(all: &Products) -> Value {
    let plan = &all.0[0].plan;
    let (down, across) = plan.blocks();
    let halves = (1..=plan.slices.ilog2()).map(|i| plan.slices >> i);
    context! {
        bindings => all.bindings(),
        // Vectors of workgroup memory.
        vectors => plan.shared_vectors(),
        threads => plan.threads(),
        tile => plan.tile,
        block => plan.block,
        // Blocks of a tile along each axis, and whether 32 invocations can have 4 × 8 blocks.
        blocks => (down, across),
        in_fours => down.is_multiple_of(4) && across.is_multiple_of(8),
        step => plan.step,
        // Vectors of a step's inner values.
        quads => plan.step / 4,
        unroll => plan.unroll.min(plan.step / plan.slices),
        slices => plan.slices,
        per_slice => plan.slice_threads(),
        // Half of the slices, a quarter, … 1.
        halves => halves.collect::<Vec<_>>(),
    }
}

/// Vectors between lines in workgroup memory.
fn pitch(it: &Product, side: usize, transposed: bool) -> usize {
    side / 4 + usize::from(transposed) * padding(it.plan.step)
}

/// The part of an operand that a workgroup stages in a step: `side` of `whole` rows of A or columns of B from `outer` on, for each of
/// the step's inner values. If these are adjacent in memory (`transposed`), an invocation loads pieces of four lines by four of them.
fn operand(
    it: &Product,
    (name, outer): (&str, &str),
    [side, whole]: [usize; 2],
    transposed: bool,
    width: usize,
    first: usize,
) -> Value {
    let (step, inner) = (it.plan.step, it.problem.inner);
    let gated = name == "b" && it.store == Store::Swiglu;
    let ends = (format!("{whole}u"), "end".to_owned());
    let (stride, (lines, values), vectors) = match transposed {
        true => (inner, ends, 4),
        false => (whole, (ends.1, ends.0), 1),
    };
    let pieces = side / 4 * step / vectors;
    let shares = pieces.div_ceil(it.plan.threads());
    context! {
        name,
        outer,
        transposed,
        // Values of a load, the distance between lines in memory, and the ends of lines and of a line's values.
        width,
        stride,
        lines,
        values,
        // Whether steps and tiles end where the matrix ends.
        even => whole.is_multiple_of(side) && inner.is_multiple_of(it.plan.splits * step),
        // Whether the first half of a tile's lines are gates, and the other half their ups, half of all columns further.
        gated,
        // Vectors of a line in workgroup memory, the distance between lines, and the first line.
        line => side / 4,
        pitch => pitch(it, side, transposed),
        first,
        // Pieces that are loaded in a step, the most that an invocation loads, and their vectors.
        pieces,
        shares,
        held => shares * vectors,
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::cpu::testing::numbers;
    use crate::ops::gpu::check::{self, TestDevice};
    use crate::ops::gpu::wgsl::Wgsl as _;
    use crate::ops::linear::fused_gpu::by_plans;
    use crate::ops::linear::fused_gpu::epilogue::{Epilogue, Store};
    use crate::ops::linear::fused_gpu::products::{Product, Products, Staged};
    use crate::ops::linear::planner::{Limits, Plan, Planner, Problem, SMALLEST};
    use burn_cubecl::tensor::CubeTensor;

    fn multiply<const N: usize>(
        plans: [Plan; N],
        pairs: [[&CubeTensor; 2]; N],
        thens: [Epilogue; N],
        problems: [Problem; N],
    ) -> [CubeTensor; N] {
        assert!(plans.iter().all(Plan::is_sound), "{plans:?}");
        let limits = Limits {
            shared_bytes: 0,
            threads: 0,
            is_cpu: true,
        };
        by_plans(Planner::Full(limits), plans, pairs, thens, problems)
    }

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

    fn check_all(device: &TestDevice, plans: &[Plan], sizes: &[(usize, usize, usize)]) {
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
                for &plan in plans {
                    let name = format!("{plan:?} {problem:?}");
                    let then = Epilogue::Onto(&gextra, None);
                    let [got] = multiply([plan], [[&ga, &gb]], [then], [problem]);
                    check::close(&name, &device.read(&got), &more, 1e-5);
                }
            }
        }
    }

    const SIZES: [(usize, usize, usize); 3] = [(33, 47, 19), (64, 128, 32), (68, 132, 100)];

    #[test]
    fn every_plan_agrees_with_the_definition() {
        let Some(device) = TestDevice::any() else {
            return;
        };
        let plans = [
            SMALLEST,
            Plan::new((32, 64), 16, (4, 8)),
            Plan::new((64, 32), 8, (8, 4)).unroll(1),
            Plan::new((32, 32), 16, (8, 8)).slices(4),
            Plan::new((64, 64), 16, (8, 4)).slices(2).splits(3),
        ];
        check_all(&device, &plans, &SIZES);
    }

    /// Gates beside their ups, and gradients of both, by each tile; sizes with and without edges.
    #[test]
    fn every_plan_has_the_epilogues_of_swiglu() {
        let Some(device) = TestDevice::any() else {
            return;
        };
        let plans = [
            SMALLEST,
            Plan::new((32, 64), 32, (8, 8)).slices(4),
            Plan::new((64, 64), 32, (8, 8)).slices(2),
            Plan::new((128, 128), 32, (8, 8)),
        ];
        for (n, f, inner) in [(33, 48, 20), (128, 128, 64)] {
            let (x, w) = (numbers(1, n * inner), numbers(2, 2 * f * inner));
            let (dy, down) = (numbers(3, n * inner), numbers(4, inner * f));
            let gates = Problem::new([n, 2 * f, inner], false, true);
            let of_active = Problem::new([n, f, inner], false, false);
            let of_down = Problem::new([inner, f, n], true, false);
            let [packed, d] =
                [(&x, &w, gates), (&dy, &down, of_active)].map(|(a, b, p)| reference(a, b, p));
            let (mut stacked, mut slopes) = (vec![0.0; 3 * n * f], vec![0.0; 2 * n * f]);
            for (r, c) in (0..n).flat_map(|r| (0..f).map(move |c| (r, c))) {
                let (at, both) = (r * f + c, r * 2 * f + c);
                let (g, u) = (packed[both], packed[both + f]);
                let s = 1.0 / (1.0 + (-g).exp());
                (stacked[at], stacked[n * f + at], stacked[2 * n * f + at]) = (g, u, g * s * u);
                slopes[both] = d[at] * u * s * (1.0 + g * (1.0 - s));
                slopes[both + f] = d[at] * g * s;
            }
            let [x, w] = [(x, n), (w, 2 * f)].map(|(it, rows)| device.tensor(&it, [rows, inner]));
            let (dy, down) = (
                device.tensor(&dy, [n, inner]),
                device.tensor(&down, [inner, f]),
            );
            for plan in plans {
                let [got] = multiply([plan], [[&x, &w]], [Epilogue::Swiglu], [gates]);
                check::close(&format!("{plan:?}"), &device.read(&got), &stacked, 1e-5);
                let plain = Epilogue::Plain;
                let [active] = multiply([plan], [[&dy, &down]], [plain], [of_active]);
                let pairs = [[&dy, &down], [&dy, &active]];
                let thens = [Epilogue::SwigluBackward(&got), plain];
                let problems = [of_active, of_down];
                let plans = [1, 2].map(|splits| plan.splits(splits));
                let [got, _] = multiply(plans, pairs, thens, problems);
                check::close(
                    &format!("{plan:?}, back"),
                    &device.read(&got),
                    &slopes,
                    1e-5,
                );
            }
        }
    }

    #[test]
    fn every_text_is_valid_wgsl() {
        let limits = [
            (false, 1 << 16),
            (false, 1 << 14),
            (true, 1 << 15),
            (true, 1),
        ];
        for (rows, columns, inner) in SIZES.into_iter().chain([(1024, 4096, 512)]) {
            for (is_cpu, shared_bytes) in limits {
                let limits = Limits {
                    shared_bytes,
                    threads: 256,
                    is_cpu,
                };
                let problems = [(false, true), (true, false)];
                let problems = problems.map(|(a, b)| Problem::new([rows, columns, inner], a, b));
                let plans = Planner::Full(limits).pair(&problems);
                let products = [0, 1].map(|i| Product {
                    problem: problems[i],
                    plan: plans[i],
                    store: if plans[i].splits == 1 {
                        Store::Onto { for_norm: false }
                    } else {
                        Store::Plain
                    },
                    staged: [Staged::Full, Staged::Full],
                    norm_parts: 0,
                });
                check::valid_wgsl(&Products(products.to_vec()).program().text());
            }
        }
    }
}
