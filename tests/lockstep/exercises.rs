//! Right kernels: every solution of the exercises, at small shapes, has no finding.

use std::path::Path;
use std::time::Instant;

use wgsl_lockstep::{Buffer, FindingKind, Launch, LaunchReport, Shader};

const EXERCISES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/exercises");

fn fill(text: &str, sizes: &[(&str, u32)]) -> String {
    let mut text = text.to_owned();
    for (name, value) in sizes {
        text = text.replace(&format!("{{{{{name}}}}}"), &value.to_string());
    }
    text
}

fn numbers(count: usize, seed: u32) -> Vec<f32> {
    let number = |at: usize| {
        ((at as u32).wrapping_mul(7919).wrapping_add(seed * 13) % 1000) as f32 / 500.0 - 0.99
    };
    (0..count).map(number).collect()
}

/// Runs a kernel; the last buffers are outputs.
fn run(
    file: &str,
    sizes: &[(&str, u32)],
    groups: [u32; 3],
    lengths: &[usize],
    outputs: usize,
) -> Option<(LaunchReport, Vec<Vec<f32>>)> {
    let path = Path::new(EXERCISES).join(file);
    let text = std::fs::read_to_string(&path).ok()?;
    let program =
        Shader::parse(&fill(&text, sizes)).unwrap_or_else(|error| panic!("{file}: {error}"));
    let mut buffers = Vec::new();
    for (at, count) in lengths.iter().enumerate() {
        buffers.push(match at + outputs >= lengths.len() {
            true => Buffer::unwritten(0, at as u32, 4 * count),
            false => Buffer::from_f32(0, at as u32, &numbers(*count, at as u32)),
        });
    }
    let times: usize = std::env::var("TIMES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1);
    let mut least = f64::INFINITY;
    let before = buffers.clone();
    let mut report = LaunchReport::default();
    for _ in 0..times {
        buffers.clone_from(&before);
        let began = Instant::now();
        let result = program.run(&Launch::new(groups), &mut buffers, &mut ());
        report = result.unwrap_or_else(|error| panic!("{file}: {error}"));
        least = least.min(began.elapsed().as_secs_f64() * 1e3);
    }
    let accesses: u64 = report
        .accesses
        .iter()
        .map(|access| access.loads + access.stores)
        .sum();
    println!(
        "{file} {sizes:?}: {least:.2} ms, {} steps, {accesses} accesses",
        report.steps
    );
    for finding in &report.findings {
        println!("  {finding} ({} times)", finding.count);
    }
    Some((report, buffers.iter().map(Buffer::to_f32).collect()))
}

fn right(
    file: &str,
    sizes: &[(&str, u32)],
    groups: [u32; 3],
    lengths: &[usize],
    outputs: usize,
) -> Vec<Vec<f32>> {
    let Some((report, buffers)) = run(file, sizes, groups, lengths, outputs) else {
        return Vec::new();
    };
    assert!(report.findings.is_empty(), "{file}");
    assert!(report.complete, "{file}");
    buffers
}

fn close(found: f32, expected: f32) {
    assert!(
        (found - expected).abs() <= 1e-4 * expected.abs().max(1.0),
        "{found} for {expected}"
    );
}

#[test]
fn elementwise() {
    right(
        "k01-swiglu/solution/kernel.wgsl",
        &[("N", 130)],
        [3, 1, 1],
        &[130, 130, 130],
        1,
    );
    right(
        "k01-swiglu/solution/backward.wgsl",
        &[("N", 130)],
        [3, 1, 1],
        &[130; 5],
        2,
    );
    right(
        "k03-copy/solution/kernel.wgsl",
        &[("T", 7), ("H", 3), ("D", 6)],
        [2, 1, 1],
        &[126, 126],
        1,
    );
    right(
        "k05-rope/solution/kernel.wgsl",
        &[("T", 7), ("H", 3), ("D", 6)],
        [2, 1, 1],
        &[126, 126],
        1,
    );
    right(
        "k08-adamw/solution/kernel.wgsl",
        &[("N", 97), ("STEP", 3)],
        [2, 1, 1],
        &[97; 4],
        0,
    );
    let all = right(
        "k09-block-size/solution/kernel.wgsl",
        &[("ROWS", 7), ("COLS", 300)],
        [2, 7, 1],
        &[2100; 3],
        1,
    );
    if let [x, y, out] = all.as_slice() {
        (0..2100).for_each(|at| assert_eq!(out[at], x[at] + y[at]));
    }
}

#[test]
fn rms_norm() {
    let all = right(
        "k02-rms-norm/solution/kernel.wgsl",
        &[("ROWS", 5), ("COLS", 131)],
        [5, 1, 1],
        &[655, 131, 655],
        1,
    );
    if let [x, gain, y] = all.as_slice() {
        for (x, y) in x.chunks(131).zip(y.chunks(131)) {
            let mean = x.iter().map(|x| x * x).sum::<f32>() / 131.0;
            for at in 0..131 {
                close(y[at], x[at] / (mean + 1e-5).sqrt() * gain[at]);
            }
        }
    }
}

#[test]
fn softmax() {
    let all = right(
        "k06-softmax/solution/kernel.wgsl",
        &[("ROWS", 3), ("COLS", 300)],
        [3, 1, 1],
        &[900, 900],
        1,
    );
    if let [x, y] = all.as_slice() {
        for (x, y) in x.chunks(300).zip(y.chunks(300)) {
            let sum: f32 = x.iter().map(|x| x.exp()).sum();
            (0..300).for_each(|at| close(y[at], x[at].exp() / sum));
        }
    }
}

#[test]
fn matmul() {
    let sizes = [("M", 33), ("N", 19), ("K", 45)];
    let all = right(
        "k04-matmul/solution/kernel.wgsl",
        &sizes,
        [2, 3, 1],
        &[33 * 45, 45 * 19, 33 * 19],
        1,
    );
    if let [a, b, c] = all.as_slice() {
        for row in 0..33 {
            for col in 0..19 {
                close(
                    c[row * 19 + col],
                    (0..45).map(|k| a[row * 45 + k] * b[k * 19 + col]).sum(),
                );
            }
        }
    }
}

#[test]
fn flash() {
    let sizes = [("H", 2), ("T", 70), ("D", 32)];
    let all = right(
        "k07-flash/solution/kernel.wgsl",
        &sizes,
        [2, 2, 1],
        &[2 * 70 * 32; 4],
        1,
    );
    if let [q, k, v, out] = all.as_slice() {
        let row = |of: &[f32], head: usize, t: usize, d: usize| of[(head * 70 + t) * 32 + d];
        for (head, t) in [(0, 0), (1, 69), (0, 33)] {
            let score = |key| {
                (0..32)
                    .map(|d| row(q, head, t, d) * row(k, head, key, d))
                    .sum::<f32>()
                    / 32_f32.sqrt()
            };
            let weights: Vec<f32> = (0..=t).map(|key| score(key).exp()).collect();
            let sum: f32 = weights.iter().sum();
            for d in 0..32 {
                let mixed: f32 = weights
                    .iter()
                    .enumerate()
                    .map(|(key, w)| w * row(v, head, key, d))
                    .sum();
                close(row(out, head, t, d), mixed / sum);
            }
        }
    }
}

#[test]
fn matrix_cores() {
    let sizes = [("M", 32), ("N", 48), ("K", 32)];
    let all = right(
        "k10-matrix-cores/solution/kernel.wgsl",
        &sizes,
        [3, 2, 1],
        &[32 * 32, 32 * 48, 32 * 48],
        1,
    );
    if let [a, b, c] = all.as_slice() {
        let half = |x: f32| half::f16::from_f32(x).to_f32();
        for row in 0..32 {
            for col in 0..48 {
                close(
                    c[row * 48 + col],
                    (0..32)
                        .map(|k| half(a[row * 32 + k]) * half(b[k * 48 + col]))
                        .sum(),
                );
            }
        }
    }
}

/// The starters run, whatever is found in them.
#[test]
fn starters() {
    run(
        "k01-swiglu/starter.wgsl",
        &[("N", 130)],
        [3, 1, 1],
        &[130, 130, 130],
        1,
    );
    run(
        "k02-rms-norm/starter.wgsl",
        &[("ROWS", 5), ("COLS", 131)],
        [5, 1, 1],
        &[655, 131, 655],
        1,
    );
    run(
        "k03-copy/starter.wgsl",
        &[("T", 7), ("H", 3), ("D", 6)],
        [2, 1, 1],
        &[126, 126],
        1,
    );
    run(
        "k04-matmul/starter.wgsl",
        &[("M", 33), ("N", 19), ("K", 45)],
        [2, 3, 1],
        &[33 * 45, 45 * 19, 33 * 19],
        1,
    );
    run(
        "k06-softmax/starter.wgsl",
        &[("ROWS", 3), ("COLS", 300)],
        [3, 1, 1],
        &[900, 900],
        1,
    );
    run(
        "k07-flash/starter.wgsl",
        &[("H", 2), ("T", 70), ("D", 32)],
        [2, 2, 1],
        &[2 * 70 * 32; 4],
        1,
    );
    run(
        "k10-matrix-cores/starter.wgsl",
        &[("M", 32), ("N", 48), ("K", 32)],
        [3, 2, 1],
        &[1024, 1536, 1536],
        1,
    );
}

/// An exercise, sizes, workgroups, and numbers in its buffers.
type Case = (
    &'static str,
    &'static [(&'static str, u32)],
    [u32; 3],
    &'static [usize],
);

/// Without any one of their barriers, all of them race.
#[test]
fn every_barrier_is_needed() {
    let kernels: [Case; 5] = [
        (
            "k02-rms-norm",
            &[("ROWS", 2), ("COLS", 131)],
            [2, 1, 1],
            &[262, 131, 262],
        ),
        (
            "k04-matmul",
            &[("M", 17), ("N", 17), ("K", 33)],
            [2, 2, 1],
            &[561, 561, 289],
        ),
        (
            "k06-softmax",
            &[("ROWS", 2), ("COLS", 131)],
            [2, 1, 1],
            &[262, 262],
        ),
        (
            "k07-flash",
            &[("H", 1), ("T", 40), ("D", 4)],
            [1, 1, 1],
            &[160; 4],
        ),
        (
            "k10-matrix-cores",
            &[("M", 16), ("N", 16), ("K", 32)],
            [1, 1, 1],
            &[512, 512, 256],
        ),
    ];
    for (exercise, sizes, groups, lengths) in kernels {
        let path = Path::new(EXERCISES)
            .join(exercise)
            .join("solution/kernel.wgsl");
        let Ok(text) = std::fs::read_to_string(path) else {
            continue;
        };
        let text = fill(&text, sizes);
        for (at, barrier) in text.match_indices("workgroupBarrier();") {
            let mut changed = text.clone();
            changed.replace_range(at..at + barrier.len(), "");
            let program = Shader::parse(&changed).expect("is right");
            let all = lengths.iter().enumerate();
            let buffers =
                all.map(|(at, count)| Buffer::from_f32(0, at as u32, &numbers(*count, 3)));
            let mut buffers: Vec<Buffer> = buffers.collect();
            let report = program
                .run(&Launch::new(groups), &mut buffers, &mut ())
                .expect("runs");
            let line = text[..at].matches('\n').count() + 1;
            let first = report.findings.first().map(ToString::to_string);
            println!(
                "{exercise} without line {line}: {}",
                first.unwrap_or_default()
            );
            assert!(
                report
                    .findings
                    .iter()
                    .any(|finding| finding.kind == FindingKind::Race),
                "{exercise} {line}"
            );
        }
    }
}
