//! Products on matrix cores against products in f64, and their texts.

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
use protocol::config::{Precision, Preset, RunConfig};

/// Computes A·B on matrix cores, in f16 or with f32 as two halves.
fn multiply(pair: [&CubeTensor; 2], then: Epilogue, problem: Problem, halves: bool) -> CubeTensor {
    let format = if halves {
        Format::Split
    } else {
        Format::Native
    };
    product(pair, then, problem, format)
}

#[test]
fn every_text_is_valid_wgsl() {
    let heads =
        [[1024, 1000, 512], [4096, 1000, 1024]].map(|sizes| Problem::new(sizes, false, true));
    for problem in problems().into_iter().chain(heads) {
        let split = [Staged::Halves(0..1), Staged::Halves(1..300)];
        let short = [Staged::Short, Staged::Short];
        let mixed = [Staged::Short, Staged::Rounded];
        let all = [(split, 0), (short.clone(), 0), (mixed, 0), (short, 3)];
        for (staged, norm_parts) in all {
            let halves = matches!(staged, [Staged::Halves(_), _]);
            let planner = Planner::Cores { halves };
            let plan = planner.one(&problem, Parts::Launch);
            let mut stores = vec![(1, Store::Onto { for_norm: false }), (3, Store::Plain)];
            if !halves {
                stores.extend([
                    (1, Store::Onto { for_norm: true }),
                    (1, Store::Rope(rotation(&problem))),
                    (1, Store::Swiglu),
                    (1, Store::SwigluBackward),
                ]);
            }
            for (splits, store) in stores {
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
            let pair = planner
                .pair(&[problem, transposed])
                .into_iter()
                .zip([problem, transposed])
                .map(|(plan, problem)| Product {
                    problem,
                    plan,
                    store: Store::Plain,
                    staged: staged.clone(),
                    norm_parts: 0,
                });
            check::valid_wgsl(&Products(pair.collect()).program().text());
        }
    }
}

/// Returns the forward products of each preset in f16: name, problem, store, and whether the product applies the norm before it.
fn shipped() -> Vec<(String, Problem, Store, bool)> {
    let mut all = Vec::new();
    for preset in [Preset::Tiny, Preset::Small, Preset::Medium] {
        let RunConfig { model, train, .. } = RunConfig::preset(preset);
        let n = train.batch * train.context;
        let d = model.hidden;
        let ffn = model.ffn;
        let head_dim = d / model.heads;
        let keys = head_dim * model.kv_heads;
        let rope = |columns, rotated| {
            Store::Rope(Rotation {
                width: columns,
                rotated,
                head_dim,
                context: train.context,
                inverse: false,
            })
        };
        let onto = Store::Onto { for_norm: false };
        let for_norm = Store::Onto { for_norm: true };
        let qkv = d + 2 * keys;
        let products = [
            ("q", d, d, rope(d, d), false),
            ("qkv", qkv, d, rope(qkv, d + keys), true),
            ("o", d, d, for_norm, false),
            ("gate-up alone", 2 * ffn, d, Store::Swiglu, false),
            ("gate-up", 2 * ffn, d, Store::Swiglu, true),
            ("down", d, ffn, for_norm, false),
            ("last down", d, ffn, onto, false),
            ("head alone", model.vocab, d, Store::Plain, false),
            ("head", model.vocab, d, Store::Plain, true),
        ];
        all.extend(products.map(|(name, columns, inner, store, with_norm)| {
            let problem = Problem::new([n, columns, inner], false, true);
            (format!("{preset:?} {name}"), problem, store, with_norm)
        }));
    }
    all
}

#[test]
fn the_text_of_a_shipped_product_is_as_long_as_one_written_by_hand() {
    for (name, problem, store, with_norm) in shipped() {
        let product = Product {
            problem,
            plan: CORES.one(&problem, Parts::Launch).splits(1),
            store,
            staged: [Staged::Short, Staged::Short],
            norm_parts: if with_norm { 8 } else { 0 },
        };
        let has_edges = problem.is_ragged(product.plan.tile);
        let text = Products(vec![product]).program().text();
        check::valid_wgsl(&text);
        // A norm before or behind the product, and loads past its edges, need more lines.
        let norm = with_norm || store == Store::Onto { for_norm: true };
        let most = 150 + if norm { 55 } else { 0 } + if has_edges { 30 } else { 0 };
        let lines = text.lines().count();
        assert!(lines <= most, "{name}: {lines} lines\n{text}");
        let fits = |line: &str| line.chars().count() <= 120;
        assert!(text.lines().all(fits), "{name}\n{text}");
    }
}

/// Returns a rotation of three quarters of the columns, with heads of 4.
fn rotation(problem: &Problem) -> Rotation {
    Rotation {
        width: problem.columns,
        rotated: problem.columns / 16 * 12,
        head_dim: 4,
        context: 50,
        inverse: false,
    }
}

/// Returns problems with whole blocks and with edges, in all transpositions that a training has.
fn problems() -> Vec<Problem> {
    let sizes = [
        [128, 128, 64],
        [256, 384, 512],
        [100, 72, 68],
        [300, 1000, 200],
        [2048, 1024, 64],
    ];
    let transposed = [(false, true), (false, false), (true, false)];
    sizes
        .iter()
        .flat_map(|size| transposed.map(|(a, b)| Problem::new(*size, a, b)))
        .collect()
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
        let a = numbers(1, rows * inner);
        let b = numbers(2, inner * columns);
        // The values are as small as gradients, and larger than any f16. The scale of halves brings them into the range of f16.
        let small: Vec<f32> = a.iter().map(|x| x * 1e-9).collect();
        let large: Vec<f32> = b.iter().map(|x| x * 1e7).collect();
        let residual = numbers(3, rows * columns);
        let added = device.tensor(&residual, [rows, columns]);
        let want = |a: &[f32], b: &[f32]| -> Vec<f32> {
            check::product(&problem, a, b)
                .into_iter()
                .zip(&residual)
                .map(|(x, r)| (x + f64::from(*r)) as f32)
                .collect()
        };
        let on_device =
            |a: &[f32], b: &[f32]| [a, b].map(|values| device.tensor(values, [values.len()]));

        let [a16, b16] = [&a, &b]
            .map(|all| -> Vec<f32> { all.iter().map(|x| nearest(*x, Precision::F16)).collect() });
        let [x32, y32] = on_device(&a16, &b16);
        let [x, y] = [&x32, &y32].map(|tensor| converted(tensor.clone(), DType::F16));
        for pair in [[&x, &y32], [&x32, &y]] {
            let got = multiply(pair, Epilogue::Onto(&added, None), problem, false);
            let want = want(&a16, &b16);
            check::close(&format!("{problem:?}"), &device.read(&got), &want, 1e-5);
        }
        let plan = CORES.one(&problem, Parts::Launch);
        if plan.splits == 1 {
            let gain = numbers(4, columns);
            let gain_tensor = device.tensor(&gain, [1, columns]);
            let [blocks, ..] = plan.groups(&problem);
            let partial = PartialNorm::empty(gain_tensor, blocks, [rows, columns]);
            let then = Epilogue::Onto(&added, Some(&partial));
            multiply([&x, &y], then, problem, false);
            let stored = want(&a16, &b16);
            let want: Vec<f32> = stored
                .iter()
                .zip(gain.iter().cycle())
                .map(|(x, g)| x * g)
                .collect();
            let PartialNorm {
                scaled, squares, ..
            } = partial;
            let got = device.read(&converted(scaled, DType::F32));
            check::close(&format!("{problem:?}, scaled"), &got, &want, 1e-3);
            let want: Vec<f32> = stored
                .chunks(columns)
                .map(|row| row.iter().map(|x| x * x).sum())
                .collect();
            let got = sum_of_parts(&device.read(&squares), rows);
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
                check_pairs(&device, [&x, &y], true, problem, 1e-6);
            }
        }
        check_pairs(&device, [&x, &y], false, problem, 1e-5);
    }
}

/// Returns the sum of parts of `size` values each.
fn sum_of_parts(parts: &[f32], size: usize) -> Vec<f32> {
    assert!(parts.len().is_multiple_of(size));
    (0..size)
        .map(|index| parts.iter().skip(index).step_by(size).sum())
        .collect()
}

/// Asserts that each of two products in one launch, in parts or whole, gives the result of the product alone, within `off`.
fn check_pairs(
    device: &TestDevice,
    pair: [&CubeTensor; 2],
    halves: bool,
    problem: Problem,
    off: f32,
) {
    let alone = device.read(&multiply(pair, Epilogue::Plain, problem, halves));
    // Of the plans for matrix cores, those of halves have no slices.
    let fits_format = |plan: &Plan| plan.subgroup > 1 && (plan.slices == 1) == halves;
    let [middle, small] = [(64, 128), (64, 64)].map(|tile| {
        plans()
            .find(|plan| plan.tile == tile && fits_format(plan))
            .expect("the tile is in the table")
    });
    let large = plans().find(|plan| plan.block == (64, 64) && plan.subgroup > 1);
    let in_parts = |plan: Plan| plan.in_parts(2, &problem);
    let mut pairs_of_plans = vec![[small, in_parts(small)], [small, in_parts(middle)]];
    if !halves && let Some(large) = large {
        pairs_of_plans.push([large, in_parts(large)]);
    }
    for [first, second] in pairs_of_plans {
        for plans in [[first, second], [second, first]] {
            let planner = Planner::Cores { halves };
            let thens = [Epilogue::Plain; 2];
            for got in by_plans(planner, plans, [pair; 2], thens, [problem; 2]) {
                let name = format!("{problem:?} {plans:?}");
                check::close(&name, &device.read(&got), &alone, off);
            }
        }
    }
}
