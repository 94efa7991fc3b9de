//! Matrix products on matrix cores: f16 operands, f32 sums, as WGSL with cooperative matrices. A subgroup holds a block of
//! 16×16 tiles of the result; a workgroup stages what its subgroups share. Measured on an H200 over Vulkan
//! (`docs/notes/gpu.md`).
//!
//! An f32 operand is split into two f16, x·s = high + low, where s is a power of two that brings the tensor's largest value just
//! below f16's. A·B is then high·high + high·low + low·high; the omitted term is below 2⁻²² of a product. Matrix cores round sums
//! towards zero, so each step's products start from zero and are added to the sums with an f32 addition
//! (Ootomo and Yokota, 2022, arXiv 2203.03341).

use crate::ops::gpu::is_f16;
use crate::ops::grad_norm::fused_gpu::reduced;
use crate::ops::linear::fused_gpu::epilogue::Epilogue;
use crate::ops::linear::fused_gpu::matrix_cores_blocks::{
    BlockPlan, BlockedProduct, LANES, Staged,
};
use crate::ops::linear::fused_gpu::products::multiply;
use crate::ops::linear::planner::Problem;
use crate::ops::shared_work::PartialNorm;
use burn_cubecl::tensor::CubeTensor;

/// Workgroups that keep a large GPU busy.
const FULL: usize = 128;
/// The smallest share of the inner dimension for one workgroup.
const SHORTEST: usize = 256;
/// An inner dimension that is not worth a second launch.
const SHORT: usize = 2 * SHORTEST;
/// Longest inner dimension for blocks that are not large, which read the operands more often; in f16 small ones take twice as many.
const LONG: usize = 1024;

/// For results with enough tiles for a large GPU. NVIDIA's driver gives the workgroups of a multiprocessor 48 KiB together, so two of
/// these share it and hide each other's latency.
const LARGE: BlockPlan = BlockPlan {
    tiles: (4, 4),
    subgroups: (2, 2),
    slices: 1,
    step: 32,
    splits: 1,
};

/// For results with too few tiles for a large GPU: twice the invocations of a large block, so that one workgroup keeps a multiprocessor
/// busy.
const SMALL: BlockPlan = BlockPlan {
    tiles: (2, 2),
    subgroups: (2, 2),
    slices: 2,
    step: 64,
    splits: 1,
};

/// Between the two.
const MIDDLE: BlockPlan = BlockPlan {
    tiles: (2, 4),
    ..SMALL
};

/// Blocks from large to small. f32 operands are staged as halves, which take twice the workgroup memory, and more registers.
fn blocks(halves: bool) -> [BlockPlan; 3] {
    if !halves {
        return [LARGE, MIDDLE, SMALL];
    }
    let large = BlockPlan {
        tiles: (2, 4),
        subgroups: (4, 2),
        ..LARGE
    };
    let whole = |plan| BlockPlan {
        slices: 1,
        step: 32,
        ..plan
    };
    [large, whole(MIDDLE), whole(SMALL)]
}

/// Chooses blocks that need no second launch and keep a large GPU busy, otherwise large blocks with a split inner dimension, otherwise
/// small blocks. `halves` means f32 operands. With `adds_parts` the next kernel adds the parts, which then may also be of the blocks
/// between: f16 is in parts only where it has to be, because a norm whose input is there needs no launch.
fn choose(problem: &Problem, halves: bool, adds_parts: bool) -> BlockPlan {
    let [_, middle, small] = blocks(halves).map(|plan| filling(plan, problem));
    let whole = whole(problem, halves).filter(|_| !(halves && adds_parts));
    let large = large_blocks(problem, halves).map(|plan| filling(plan, problem));
    let wide = large.into_iter().chain(adds_parts.then_some(middle));
    let wide = || wide.into_iter().find(|plan| fills(plan, problem));
    in_long_steps(whole.or_else(wide).unwrap_or(small), problem)
}

/// The largest blocks that keep a large GPU busy without parts of the inner dimension. f16 with a short one is never in parts, because
/// a launch that adds them costs more.
fn whole(problem: &Problem, halves: bool) -> Option<BlockPlan> {
    let [_, middle, small] = blocks(halves);
    let large = large_blocks(problem, halves).map(|plan| (plan, usize::MAX));
    let longest = if halves { LONG } else { 2 * LONG };
    let mut plans = large.into_iter().chain([(middle, LONG), (small, longest)]);
    let found = plans.find(|(plan, longest)| problem.inner <= *longest && fills(plan, problem));
    let short = !halves && problem.inner <= SHORT;
    found.map(|(plan, _)| plan).or(short.then_some(small))
}

/// Large blocks of halves leave no workgroup memory for edges.
fn large_blocks(problem: &Problem, halves: bool) -> Option<BlockPlan> {
    let [large, ..] = blocks(halves);
    Some(large).filter(|plan| !(halves && problem.is_ragged(plan.block())))
}

/// The plan with fewer barriers, if it has small blocks of f16 and a long inner dimension.
fn in_long_steps(plan: BlockPlan, problem: &Problem) -> BlockPlan {
    let is_small = plan.tiles == SMALL.tiles && plan.step == SMALL.step;
    if !is_small || problem.inner / plan.splits <= SHORT {
        return plan;
    }
    let step = 2 * plan.step;
    BlockPlan { step, ..plan }.in_parts(plan.splits, problem)
}

/// Blocks along a row of an f16 product that is not in parts.
pub(crate) fn blocks_across(problem: &Problem) -> usize {
    let (_, width) = choose(problem, false, false).block();
    problem.columns.div_ceil(width)
}

/// The number of parts that [`Epilogue::Parts`] leaves.
pub(crate) fn number_of_parts(problem: &Problem, halves: bool) -> usize {
    choose(problem, halves, true).splits
}

/// The plan with as many parts as a large GPU needs.
fn filling(plan: BlockPlan, problem: &Problem) -> BlockPlan {
    let wanted = FULL.div_ceil(plan.groups(problem));
    let splits = wanted.min(problem.inner / SHORTEST).clamp(1, 8);
    plan.in_parts(splits, problem)
}

fn fills(plan: &BlockPlan, problem: &Problem) -> bool {
    4 * plan.groups(problem) * plan.splits >= 3 * FULL
}

/// Plans for two products in one launch. An inner dimension is split if its blocks would still be at work after the others: into parts
/// as long as all the work takes the workgroups that a large GPU has at once, or as long as the other's. Half a block is taken where it
/// spares the second launch. `parts_are_free` means that the next kernel adds the parts of the first product, which then has two where
/// there are few blocks.
fn choose_pair(problems: &[Problem; 2], halves: bool, parts_are_free: bool) -> [BlockPlan; 2] {
    let inner = problems.map(|it| it.inner);
    let shortest = inner[0].min(inner[1]).max(1);
    let by = |plan: BlockPlan| {
        let at_once = if plan == LARGE { 2 * FULL } else { FULL };
        let all: usize = problems.iter().map(|it| plan.groups(it) * it.inner).sum();
        let longest = (all / at_once).max(shortest);
        problems.map(|it| plan.in_parts((it.inner / longest).clamp(1, 8), &it))
    };
    let groups = |plans: &[BlockPlan; 2]| -> usize {
        let each = plans.iter().zip(problems);
        each.map(|(plan, it)| plan.groups(it) * plan.splits).sum()
    };
    let ragged = |plan: &BlockPlan| problems.iter().any(|it| it.is_ragged(plan.block()));
    let [large, middle, small] = blocks(halves);
    // Splitting costs a second launch. In f16, large blocks are faster although there are half as many.
    let whole = [middle; 2];
    if inner[0].max(inner[1]) <= LONG && (3 * FULL..4 * FULL).contains(&groups(&whole)) {
        return if halves { whole } else { [large; 2] };
    }
    let of_large = by(large);
    let count = groups(&of_large);
    if !(halves && ragged(&large)) && 2 * count >= 3 * FULL {
        return of_large;
    }
    // Half a block has as much work as half of the inner dimension, and needs no launch that adds it.
    let plans = [0, 1].map(|i| match by(middle)[i] {
        plan if plan.splits == 2 && inner[i] <= LONG => small,
        plan => plan,
    });
    // Twice as many workgroups hide each other's latency.
    let few = plans == whole && groups(&plans) < 2 * FULL;
    let plans = if parts_are_free && few && inner[1] <= LONG {
        [middle.in_parts(2, &problems[0]), small]
    } else {
        plans
    };
    let of_middle = Some(plans).filter(|plans| 4 * groups(plans) >= 3 * FULL);
    let plans = of_middle.unwrap_or_else(|| by(small));
    [0, 1].map(|i| in_long_steps(plans[i], &problems[i]))
}

/// Whether the operands' rows start at whole vectors.
pub(crate) fn fits(problem: &Problem) -> bool {
    problem.lanes().iter().all(|lanes| *lanes == LANES)
}

/// A·B, stored by the epilogue `then`. 1 launch, or 2 if the inner dimension is split; `[parts·rows, columns]` for
/// [`Epilogue::Parts`]. `halves` as in [`choose`]: their largest magnitudes need another launch.
pub(crate) fn matmul(
    pair: [&CubeTensor; 2],
    then: Epilogue,
    problem: Problem,
    halves: bool,
) -> CubeTensor {
    let mut plan = choose(&problem, halves, matches!(then, Epilogue::Parts));
    plan.splits = then.splits(plan.splits);
    let [out] = matmul_by([plan], [pair], [then], [problem], halves);
    out
}

/// As [`matmul`] of the output of a norm. The product reads x·gain, and also writes that output to `a` `[n, d]` in f16. 1 launch.
pub(crate) fn matmul_of_norm(
    [a, b]: [&CubeTensor; 2],
    norm: &PartialNorm,
    then: Epilogue,
    problem: Problem,
) -> CubeTensor {
    let PartialNorm {
        scaled, squares, ..
    } = norm;
    let plan = choose(&problem, false, false);
    let product = |_, store| BlockedProduct {
        problem,
        plan: BlockPlan { splits: 1, ..plan },
        store,
        staged: [Staged::Short, as_f16(b)],
        norm_parts: squares.meta.num_elements() / problem.rows,
    };
    let of_norm = [squares, &norm.inverse, a];
    let [out] = multiply([[scaled, b]], [then], [1], product, &of_norm);
    out
}

/// A·B, stored by the epilogue `then`, and a second product of A, which may be transposed there, in f32: 1 launch, or 2 if an inner
/// dimension is split. With [`Epilogue::Parts`] A·B is `[parts·rows, columns]`; `halves` as in [`matmul`].
pub(crate) fn matmul_pair(
    pairs: [[&CubeTensor; 2]; 2],
    then: Epilogue,
    problems: [Problem; 2],
    halves: bool,
) -> [CubeTensor; 2] {
    let in_parts = matches!(then, Epilogue::Parts);
    let mut plans = choose_pair(&problems, halves, in_parts);
    plans[0].splits = then.splits(plans[0].splits);
    matmul_by(plans, pairs, [then, Epilogue::Plain], problems, halves)
}

/// Products of one A with given plans.
fn matmul_by<const N: usize>(
    plans: [BlockPlan; N],
    pairs: [[&CubeTensor; 2]; N],
    thens: [Epilogue; N],
    problems: [Problem; N],
    halves: bool,
) -> [CubeTensor; N] {
    let operands = [pairs[0][0]].into_iter().chain(pairs.map(|[_, b]| b));
    let operands: Vec<CubeTensor> = operands.cloned().collect();
    // The largest magnitudes of A and of each B, as several values of which the largest counts.
    let largest = halves.then(|| reduced(&operands, true));
    let mut end = 0;
    let staged: Vec<Staged> = match &largest {
        None => operands.iter().map(as_f16).collect(),
        Some((_, counts)) => {
            let range = |count: &usize| {
                end += count;
                Staged::Halves(end - count..end)
            };
            counts.iter().map(range).collect()
        }
    };
    let product = |i: usize, store| BlockedProduct {
        problem: problems[i],
        plan: plans[i],
        store,
        staged: [staged[0].clone(), staged[i + 1].clone()],
        norm_parts: 0,
    };
    let largest: Vec<&CubeTensor> = largest.iter().map(|(values, _)| values).collect();
    multiply(
        pairs,
        thens,
        plans.map(|plan| plan.splits),
        product,
        &largest,
    )
}

/// f32 is rounded when it is staged.
fn as_f16(operand: &CubeTensor) -> Staged {
    if is_f16(operand) {
        Staged::Short
    } else {
        Staged::Rounded
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::cpu::format::nearest;
    use crate::ops::cpu::testing::numbers;
    use crate::ops::gpu::check::{self, TestDevice};
    use crate::ops::gpu::format::converted;
    use crate::ops::gpu::wgsl::Wgsl as _;
    use crate::ops::linear::fused_gpu::epilogue::Store;
    use crate::ops::linear::fused_gpu::products::{Product as _, Products};
    use crate::ops::shapes::Rotation;
    use burn::tensor::DType;
    use protocol::config::Precision;

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
                let plan = choose(&problem, halves, false);
                let onto = [(1, Store::Onto { for_norm: false }), (3, Store::Plain)];
                let for_norm = (1, Store::Onto { for_norm: true });
                let stores = onto.into_iter().chain((!halves).then_some(for_norm));
                let rope = Store::Rope(rotation(&problem));
                let fused = [(1, rope), (1, Store::Swiglu), (1, Store::SwigluBackward)];
                for (splits, store) in stores.chain(fused.into_iter().filter(|_| !halves)) {
                    let product = BlockedProduct {
                        problem,
                        plan: BlockPlan { splits, ..plan },
                        store,
                        staged: staged.clone(),
                        norm_parts,
                    };
                    let program = BlockedProduct::program(Products(vec![product]));
                    let bytes = check::valid_wgsl(&program.text());
                    if !halves && plan.tiles == LARGE.tiles {
                        assert!(2 * bytes <= check::WORKGROUP_MEMORY, "{bytes}, {store:?}");
                    }
                }
                let transposed = Problem {
                    a_transposed: true,
                    b_transposed: false,
                    ..problem
                };
                let plans = choose_pair(&[problem, transposed], halves, true);
                let products = plans.into_iter().zip([problem, transposed]);
                let products = products.map(|(plan, problem)| BlockedProduct {
                    problem,
                    plan,
                    store: Store::Plain,
                    staged: staged.clone(),
                    norm_parts: 0,
                });
                let program = BlockedProduct::program(Products(products.collect()));
                check::valid_wgsl(&program.text());
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
                let got = matmul(pair, Epilogue::Onto(&added, None), problem, false);
                let want = want(&a16, &b16);
                check::close(&format!("{problem:?}"), &device.read(&got), &want, 1e-5);
            }
            if choose(&problem, false, false).splits == 1 {
                let gain = numbers(4, columns);
                let on_gpu = device.tensor(&gain, [1, columns]);
                let partial = PartialNorm::empty(on_gpu, blocks_across(&problem), [rows, columns]);
                let then = Epilogue::Onto(&added, Some(&partial));
                matmul([&x, &y], then, problem, false);
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
            for then in [Epilogue::Onto(&added, None), Epilogue::Parts] {
                let got = device.read(&matmul([&x, &y], then, problem, false));
                let mut got = sum(&got, rows * columns);
                if matches!(then, Epilogue::Parts) {
                    got.iter_mut().zip(&residual).for_each(|(x, r)| *x += r);
                }
                check::close(&format!("{problem:?}"), &got, &want(&a16, &b16), 1e-5);
            }

            for (a, b) in [(&a, &b), (&small, &large), (&vec![0.0; a.len()], &b)] {
                let [x, y] = on_device(a, b);
                let then = Epilogue::Onto(&added, None);
                let got = device.read(&matmul([&x, &y], then, problem, true));
                check::close(&format!("{problem:?}, split"), &got, &want(a, b), 1e-6);
                if b == &large {
                    alike(&device, [&x, &y], true, problem, 1e-6);
                }
            }
            alike(&device, [&x, &y], false, problem, 1e-5);
        }
    }

    #[test]
    fn f16_is_in_parts_only_where_it_has_to_be() {
        let of = |sizes| {
            let plan = choose(&Problem::new(sizes, false, true), false, true);
            (plan.block(), plan.splits)
        };
        assert_eq!(of([1024, 512, 512]), ((64, 64), 1));
        assert_eq!(of([1024, 512, 2048]), ((64, 64), 1));
        assert_eq!(of([1024, 512, 4096]), ((128, 128), 4));
        assert_eq!(of([4096, 1024, 1024]), ((128, 128), 1));
        assert_eq!(of([100, 72, 68]), ((64, 64), 1));
    }

    /// dx and dW of every layer of `small`: 1,024 tokens, k inputs and m outputs.
    #[test]
    fn pairs_need_no_sums_but_those_of_dx_that_a_norm_adds() {
        let of = |m, k, free| {
            let dx = Problem::new([1024, k, m], false, false);
            let dw = Problem::new([m, k, 1024], true, false);
            choose_pair(&[dx, dw], false, free).map(|plan| (plan.block(), plan.splits))
        };
        let [square, wide, half] = [(128, 128), (64, 128), (64, 64)];
        assert_eq!(of(1024, 512, true), [(wide, 2), (half, 1)]);
        assert_eq!(of(512, 512, false), [(wide, 1), (half, 1)]);
        assert_eq!(of(4096, 512, true), [(square, 4), (square, 1)]);
        assert_eq!(of(512, 2048, false), [(square, 1); 2]);
    }

    #[test]
    fn no_part_begins_past_the_end() {
        let within = |plan: BlockPlan, problem: &Problem| {
            let begins = plan.share(problem) * (plan.splits - 1);
            assert!(begins < problem.inner, "{problem:?} {plan:?}");
        };
        for halves in [false, true] {
            for [n, m, k] in [[16, 128, 128], [288, 40, 128], [1024, 1024, 512]] {
                let problems = [
                    Problem::new([n, k, m], false, false),
                    Problem::new([m, k, n], true, false),
                ];
                for (plan, problem) in choose_pair(&problems, halves, true).iter().zip(&problems) {
                    within(*plan, problem);
                }
            }
            for inner in (4..=4096).step_by(4) {
                let problem = Problem::new([512, 512, inner], false, true);
                for adds_parts in [false, true] {
                    within(choose(&problem, halves, adds_parts), &problem);
                }
            }
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
        let alone = device.read(&matmul(pair, Epilogue::Plain, problem, halves));
        let [_, middle, small] = blocks(halves);
        let others = [LARGE].into_iter().filter(|_| !halves);
        let in_parts = |plan: BlockPlan| plan.in_parts(2, &problem);
        let alike = others.chain([small]).map(|plan| [plan, in_parts(plan)]);
        for plans in alike.chain([[small, in_parts(middle)]]) {
            let swapped = [plans[1], plans[0]];
            for (plans, then) in [(plans, Epilogue::Plain), (swapped, Epilogue::Parts)] {
                let thens = [then, Epilogue::Plain];
                for got in matmul_by(plans, [pair; 2], thens, [problem; 2], halves) {
                    let got = sum(&device.read(&got), alone.len());
                    check::close(&format!("{problem:?} {plans:?}"), &got, &alone, off);
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
