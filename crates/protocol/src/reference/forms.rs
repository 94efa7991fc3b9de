//! Tests of the bounds with f32 kernels on the host: several forms of right kernels stay within them for every kind of values, and
//! kernels with small errors do not.

use super::*;
use crate::SizeProduct;

type Kernel = fn(&[Vec<f32>], &Sizes) -> Vec<Vec<f32>>;

/// Seeds, each with different numbers.
const SEEDS: std::ops::Range<u64> = 1..6;

/// The largest error over the error that rounding explains, for all kinds of values.
fn share(
    reference: KernelReference,
    buffers: &[(&str, KernelFill)],
    sizes: &[(&str, u64)],
    kernel: Kernel,
) -> f64 {
    let bindings = buffers.iter().map(|(count, fill)| KernelBinding {
        count: SizeProduct::parse(count).expect("a count"),
        fill: *fill,
        ..KernelBinding::default()
    });
    let bindings: Vec<KernelBinding> = bindings.collect();
    let sizes = sizes.iter().map(|(name, n)| ((*name).to_owned(), *n));
    let shape = KernelShape {
        sizes: sizes.collect(),
        ..KernelShape::default()
    };
    let mut most = 0.0_f64;
    for seed in SEEDS {
        for values in KernelFill::DRAWN {
            let inputs = inputs(&bindings, &shape, Some(values), seed).expect("they fit");
            let expected = outputs(reference, &inputs, &shape.sizes, Functions::Host);
            for (expected, found) in expected.iter().zip(kernel(&inputs, &shape.sizes)) {
                let all = differences(expected, &found, f64::INFINITY).expect("equal lengths");
                let worst = all.fold(0.0_f64, |most, it| most.max(it.share));
                println!("{} by seed {seed}: {worst}", values.into_str());
                most = most.max(worst);
            }
        }
    }
    most
}

#[track_caller]
fn holds(share: f64) {
    assert!(share <= 1.0, "{share} of what rounding explains");
}

#[track_caller]
fn fails(share: f64) {
    assert!(share > 1.0, "only {share} of what rounding explains");
}

fn by_element(x: &[Vec<f32>], silu: impl Fn(f32) -> f32) -> Vec<Vec<f32>> {
    vec![x[0].iter().zip(&x[1]).map(|(g, u)| silu(*g) * u).collect()]
}

#[test]
fn swiglu_in_f32() {
    let share = |kernel: Kernel| {
        let buffers = [("N", KernelFill::Normal); 2];
        share(KernelReference::Swiglu, &buffers, &[("N", 2381)], kernel)
    };
    holds(share(|x, _| by_element(x, |g| g / (1.0 + (-g).exp()))));
    holds(share(|x, _| {
        by_element(x, |g| g * (0.5 + 0.5 * (0.5 * g).tanh()))
    }));
    // An error of 2.7e-3 where values are in the hundreds.
    fails(share(|x, _| {
        by_element(x, |g| if g > 8.0 { g } else { g / (1.0 + (-g).exp()) })
    }));
}

fn by_row(x: &[Vec<f32>], sizes: &Sizes, row: impl Fn(&[f32]) -> Vec<f32>) -> Vec<Vec<f32>> {
    vec![x[0].chunks(sizes["COLS"] as usize).flat_map(row).collect()]
}

fn normalized(powers: Vec<f32>, total: f32) -> Vec<f32> {
    powers.into_iter().map(|x| x / total).collect()
}

fn powers_f32(row: &[f32], most: f32) -> Vec<f32> {
    row.iter().map(|x| (x - most).exp()).collect()
}

fn most_f32(row: &[f32], start: f32) -> f32 {
    row.iter().fold(start, |most, x| most.max(*x))
}

#[test]
fn softmax_in_f32() {
    let share = |kernel: Kernel| {
        let sizes = [("ROWS", 7), ("COLS", 3001)];
        let buffers = [("ROWS * COLS", KernelFill::Large)];
        share(KernelReference::Softmax, &buffers, &sizes, kernel)
    };
    holds(share(|x, sizes| {
        by_row(x, sizes, |row| {
            let powers = powers_f32(row, most_f32(row, f32::MIN));
            let total = powers.iter().sum();
            normalized(powers, total)
        })
    }));
    // Subtracts the logarithm of the sum, to base 2.
    holds(share(|x, sizes| {
        by_row(x, sizes, |row| {
            let (most, unit) = (most_f32(row, f32::MIN), std::f32::consts::LOG2_E);
            let sum: f32 = row.iter().rev().map(|x| ((x - most) * unit).exp2()).sum();
            let all = most + sum.ln();
            row.iter().map(|x| ((x - all) * unit).exp2()).collect()
        })
    }));
    // One pass with a running maximum.
    holds(share(|x, sizes| {
        by_row(x, sizes, |row| {
            let (most, total) = row.iter().fold((f32::MIN, 0.0), |(most, total), x| {
                let next = most_f32(&[*x], most);
                (next, total * (most - next).exp() + (x - next).exp())
            });
            normalized(powers_f32(row, most), total)
        })
    }));
    fails(share(|x, sizes| {
        by_row(x, sizes, |row| {
            let powers = powers_f32(row, most_f32(row, -1e4));
            let total = powers.iter().sum();
            normalized(powers, total)
        })
    }));
    fails(share(|x, sizes| {
        by_row(x, sizes, |row| {
            let powers = powers_f32(row, most_f32(row, f32::MIN));
            let total = powers.iter().sum::<f32>().min(4.0);
            normalized(powers, total)
        })
    }));
    // Sums in fixed point: with 16 bits, rounded, and with 20 bits, truncated.
    fails(share(|x, sizes| {
        by_row(x, sizes, |row| in_fixed_point(row, 65_536.0, 0.5))
    }));
    fails(share(|x, sizes| {
        by_row(x, sizes, |row| in_fixed_point(row, 1_048_576.0, 0.0))
    }));
}

fn in_fixed_point(row: &[f32], unit: f32, round: f32) -> Vec<f32> {
    let powers = powers_f32(row, most_f32(row, f32::MIN));
    let total: u64 = powers.iter().map(|x| (x * unit + round) as u64).sum();
    normalized(powers, total as f32 / unit)
}

fn rotated(x: &[Vec<f32>], sizes: &Sizes, turn: impl Fn(f32) -> f32) -> Vec<Vec<f32>> {
    let [h, d] = ["H", "D"].map(|name| sizes[name] as usize);
    let pairs = x[0].as_chunks::<2>().0.iter().enumerate();
    let rotated = pairs.flat_map(|(pair, [x, y])| {
        let (token, i) = (pair * 2 / (h * d), pair % (d / 2));
        let speed = 10_000_f32.powf(-2.0 * i as f32 / d as f32);
        let (sin, cos) = turn(token as f32 * speed).sin_cos();
        [x * cos - y * sin, x * sin + y * cos]
    });
    vec![rotated.collect()]
}

#[test]
fn rope_in_f32() {
    let share = |kernel: Kernel| {
        let sizes = [("T", 6151), ("H", 1), ("D", 10)];
        let buffers = [("T * H * D", KernelFill::Normal)];
        share(KernelReference::Rope, &buffers, &sizes, kernel)
    };
    let turn = std::f32::consts::TAU;
    assert_eq!(turn, 6.283_185_5);
    holds(share(|x, sizes| rotated(x, sizes, |angle| angle)));
    holds(share(|x, sizes| {
        rotated(x, sizes, |angle| {
            angle - std::f32::consts::TAU * (angle / std::f32::consts::TAU).floor()
        })
    }));
    holds(share(|x, sizes| {
        rotated(x, sizes, |angle| {
            (angle / std::f32::consts::TAU).fract() * std::f32::consts::TAU
        })
    }));
    let short_turn: Kernel = |x, sizes| {
        let turn = 628_318.0 / 1e5;
        rotated(x, sizes, |angle| angle - turn * (angle / turn).floor())
    };
    fails(share(short_turn));
}

/// AdamW with this weight decay, and the last step at which the moments are corrected.
fn stepped(
    x: &[Vec<f32>],
    sizes: &Sizes,
    decay: impl Fn(f32) -> f32,
    corrected: f32,
) -> Vec<Vec<f32>> {
    let step = sizes["STEP"] as f32;
    let correct = |beta: f32| match step <= corrected {
        true => 1.0 - beta.powf(step),
        false => 1.0,
    };
    let (first, second) = (correct(0.9), correct(0.999));
    let mut out = vec![Vec::new(); 3];
    for (((g, w), m), v) in x[0].iter().zip(&x[1]).zip(&x[2]).zip(&x[3]) {
        let m = 0.9 * m + (1.0 - 0.9) * g;
        let v = 0.999 * v + (1.0 - 0.999) * g * g;
        let update = (m / first) / ((v / second).sqrt() + 1e-8);
        out[0].push(decay(*w) - 3e-4 * update);
        out[1].push(m);
        out[2].push(v);
    }
    out
}

#[test]
fn adamw_in_f32() {
    let share = |kernel: Kernel, step: u64| {
        let mut buffers = [("N", KernelFill::Normal); 4];
        buffers[3].1 = KernelFill::Positive;
        let sizes = [("N", 1999), ("STEP", step)];
        share(KernelReference::Adamw, &buffers, &sizes, kernel)
    };
    for step in [1, 97, 2203] {
        let subtracted: Kernel =
            |x, sizes| stepped(x, sizes, |w| w - 3e-4 * 0.01 * w, f32::INFINITY);
        holds(share(subtracted, step));
        let scaled: Kernel =
            |x, sizes| stepped(x, sizes, |w| w * (1.0 - 3e-4 * 0.01), f32::INFINITY);
        holds(share(scaled, step));
        let weak: Kernel = |x, sizes| stepped(x, sizes, |w| w - 3e-4 * 0.0095 * w, f32::INFINITY);
        fails(share(weak, step));
    }
    let uncorrected: Kernel = |x, sizes| stepped(x, sizes, |w| w - 3e-4 * 0.01 * w, 100.0);
    fails(share(uncorrected, 2203));
}

#[test]
fn sums_of_products_in_f32() {
    let norm = |kernel: Kernel| {
        let buffers = [
            ("ROWS * COLS", KernelFill::Normal),
            ("COLS", KernelFill::Normal),
        ];
        let sizes = [("ROWS", 5), ("COLS", 2999)];
        share(KernelReference::RmsNorm, &buffers, &sizes, kernel)
    };
    holds(norm(|x, sizes| scaled(x, sizes, 1e-5)));
    fails(norm(|x, sizes| scaled(x, sizes, 1.02e-5)));
    let product = |kernel: Kernel| {
        let buffers = [("M * K", KernelFill::Normal), ("K * N", KernelFill::Normal)];
        let sizes = [("M", 11), ("N", 13), ("K", 2749)];
        share(KernelReference::Matmul, &buffers, &sizes, kernel)
    };
    holds(product(|x, sizes| multiplied(x, sizes, |x| x)));
    let weak: Kernel = |x, sizes| multiplied(x, sizes, |x| half::bf16::from_f32(x).to_f32());
    fails(product(weak));
}

fn scaled(x: &[Vec<f32>], sizes: &Sizes, epsilon: f32) -> Vec<Vec<f32>> {
    by_row(x, sizes, |row| {
        let mean = row.iter().map(|x| x * x).sum::<f32>() / row.len() as f32;
        let scale = 1.0 / (mean + epsilon).sqrt();
        let pairs = row.iter().zip(&x[1]);
        pairs.map(|(x, gain)| x * scale * gain).collect()
    })
}

fn multiplied(x: &[Vec<f32>], sizes: &Sizes, weaken: impl Fn(f32) -> f32) -> Vec<Vec<f32>> {
    let [m, n, k] = ["M", "N", "K"].map(|name| sizes[name] as usize);
    let at = |at: usize| {
        let products = (0..k).map(|p| weaken(x[0][at / n * k + p]) * x[1][p * n + at % n]);
        products.sum::<f32>()
    };
    vec![(0..m * n).map(at).collect()]
}

/// Flash attention with a running maximum, key by key.
#[test]
fn attention_in_f32() {
    let found = share(
        KernelReference::Attention,
        &[("H * T * D", KernelFill::Normal); 3],
        &[("H", 2), ("T", 131), ("D", 17)],
        |x, sizes| {
            let [h, t, d] = ["H", "T", "D"].map(|name| sizes[name] as usize);
            let mut out = Vec::new();
            for row in 0..h * t {
                let row_of = |buffer: usize, row: usize| &x[buffer][row * d..(row + 1) * d];
                let (mut most, mut total, mut sums) = (-1e30_f32, 0.0, vec![0.0; d]);
                for key in row / t * t..=row {
                    let pairs = row_of(0, row).iter().zip(row_of(1, key));
                    let score: f32 = pairs.map(|(q, k)| q / (d as f32).sqrt() * k).sum();
                    let next = most.max(score);
                    let (p, shrink) = ((score - next).exp(), (most - next).exp());
                    total = total * shrink + p;
                    for (sum, v) in sums.iter_mut().zip(row_of(2, key)) {
                        *sum = *sum * shrink + p * v;
                    }
                    most = next;
                }
                out.extend(sums.into_iter().map(|sum| sum / total));
            }
            vec![out]
        },
    );
    holds(found);
}
