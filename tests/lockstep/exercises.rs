//! The solutions of the exercises, at small shapes: no finding, results that equal a formula, and no barrier that could be left out.

use std::path::Path;

use wgsl_lockstep::{Buffer, FindingKind, Launch, LaunchReport, Shader};

/// A kernel of an exercise with the sizes of a small run.
#[derive(Clone, Copy)]
struct Case {
    /// The path in the folder of exercises.
    file: &'static str,
    /// The values of the placeholders.
    sizes: &'static [(&'static str, u32)],
    groups: [u32; 3],
    /// The number of elements of each buffer.
    lengths: &'static [usize],
    /// The number of buffers, counted from the last, that the kernel only writes.
    outputs: usize,
}

const SWIGLU: Case = Case {
    file: "k01-swiglu/solution/kernel.wgsl",
    sizes: &[("N", 130)],
    groups: [3, 1, 1],
    lengths: &[130; 3],
    outputs: 1,
};
const RMS_NORM: Case = Case {
    file: "k02-rms-norm/solution/kernel.wgsl",
    sizes: &[("ROWS", 5), ("COLS", 131)],
    groups: [5, 1, 1],
    lengths: &[655, 131, 655],
    outputs: 1,
};
const COPY: Case = Case {
    file: "k03-copy/solution/kernel.wgsl",
    sizes: &[("T", 7), ("H", 3), ("D", 6)],
    groups: [2, 1, 1],
    lengths: &[126; 2],
    outputs: 1,
};
const MATMUL: Case = Case {
    file: "k04-matmul/solution/kernel.wgsl",
    sizes: &[("M", 33), ("N", 19), ("K", 45)],
    groups: [2, 3, 1],
    lengths: &[33 * 45, 45 * 19, 33 * 19],
    outputs: 1,
};
const SOFTMAX: Case = Case {
    file: "k06-softmax/solution/kernel.wgsl",
    sizes: &[("ROWS", 3), ("COLS", 300)],
    groups: [3, 1, 1],
    lengths: &[900; 2],
    outputs: 1,
};
const FLASH: Case = Case {
    file: "k07-flash/solution/kernel.wgsl",
    sizes: &[("H", 2), ("T", 70), ("D", 32)],
    groups: [2, 2, 1],
    lengths: &[2 * 70 * 32; 4],
    outputs: 1,
};
const MATRIX_CORES: Case = Case {
    file: "k10-matrix-cores/solution/kernel.wgsl",
    sizes: &[("M", 32), ("N", 48), ("K", 32)],
    groups: [3, 2, 1],
    lengths: &[32 * 32, 32 * 48, 32 * 48],
    outputs: 1,
};

impl Case {
    /// Returns the kernel's text with the values of its placeholders.
    fn text(&self) -> String {
        let exercises = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/exercises"));
        let mut text = std::fs::read_to_string(exercises.join(self.file))
            .unwrap_or_else(|error| panic!("{}: {error}", self.file));
        for (name, size) in self.sizes {
            text = text.replace(&format!("{{{{{name}}}}}"), &size.to_string());
        }
        text
    }

    /// Runs a text in place of the kernel.
    fn run(&self, text: &str) -> (LaunchReport, Vec<Vec<f32>>) {
        let shader = Shader::parse(text).unwrap_or_else(|error| panic!("{}: {error}", self.file));
        let inputs = self.lengths.len() - self.outputs;
        let mut buffers = Vec::new();
        for (binding, length) in (0..).zip(self.lengths) {
            buffers.push(if (binding as usize) < inputs {
                Buffer::from_f32(0, binding, &numbers(*length, binding))
            } else {
                Buffer::unwritten(0, binding, 4 * length)
            });
        }
        let report = shader
            .run(&Launch::new(self.groups), &mut buffers, &mut ())
            .unwrap_or_else(|error| panic!("{}: {error}", self.file));
        (report, buffers.iter().map(Buffer::to_f32).collect())
    }

    /// Runs the kernel, which has no finding, and returns its buffers.
    #[track_caller]
    fn buffers(&self) -> Vec<Vec<f32>> {
        let (report, buffers) = self.run(&self.text());
        assert!(
            report.findings.is_empty(),
            "{}: {:?}",
            self.file,
            report.findings
        );
        assert!(report.complete, "{}", self.file);
        buffers
    }
}

/// Returns different numbers between −1 and 1.01.
fn numbers(count: usize, seed: u32) -> Vec<f32> {
    let number = |index: usize| {
        ((index as u32).wrapping_mul(7919).wrapping_add(seed * 13) % 1000) as f32 / 500.0 - 0.99
    };
    (0..count).map(number).collect()
}

#[track_caller]
fn assert_close(found: f32, expected: f32) {
    assert!(
        (found - expected).abs() <= 1e-4 * expected.abs().max(1.0),
        "{found}, expected {expected}"
    );
}

#[test]
fn elementwise_solutions_have_no_finding() {
    let backward = Case {
        file: "k01-swiglu/solution/backward.wgsl",
        lengths: &[130; 5],
        outputs: 2,
        ..SWIGLU
    };
    let rope = Case {
        file: "k05-rope/solution/kernel.wgsl",
        ..COPY
    };
    let adamw = Case {
        file: "k08-adamw/solution/kernel.wgsl",
        sizes: &[("N", 97), ("STEP", 3)],
        groups: [2, 1, 1],
        lengths: &[97; 4],
        outputs: 0,
    };
    for case in [SWIGLU, backward, COPY, rope, adamw] {
        case.buffers();
    }
}

#[test]
fn the_block_size_solution_adds_two_matrices() {
    let case = Case {
        file: "k09-block-size/solution/kernel.wgsl",
        sizes: &[("ROWS", 7), ("COLS", 300)],
        groups: [2, 7, 1],
        lengths: &[2100; 3],
        outputs: 1,
    };
    let [x, y, out] = &case.buffers()[..] else {
        panic!("three buffers");
    };
    for index in 0..2100 {
        assert_eq!(out[index], x[index] + y[index]);
    }
}

#[test]
fn the_rms_norm_solution_equals_its_formula() {
    let [x, gain, y] = &RMS_NORM.buffers()[..] else {
        panic!("three buffers");
    };
    for (x, y) in x.chunks(131).zip(y.chunks(131)) {
        let mean = x.iter().map(|x| x * x).sum::<f32>() / 131.0;
        for index in 0..131 {
            assert_close(y[index], x[index] / (mean + 1e-5).sqrt() * gain[index]);
        }
    }
}

#[test]
fn the_softmax_solution_equals_its_formula() {
    let [x, y] = &SOFTMAX.buffers()[..] else {
        panic!("two buffers");
    };
    for (x, y) in x.chunks(300).zip(y.chunks(300)) {
        let sum: f32 = x.iter().map(|x| x.exp()).sum();
        for index in 0..300 {
            assert_close(y[index], x[index].exp() / sum);
        }
    }
}

#[test]
fn the_matmul_solution_equals_its_formula() {
    let [a, b, c] = &MATMUL.buffers()[..] else {
        panic!("three buffers");
    };
    for row in 0..33 {
        for column in 0..19 {
            let terms = (0..45).map(|k| a[row * 45 + k] * b[k * 19 + column]);
            assert_close(c[row * 19 + column], terms.sum());
        }
    }
}

#[test]
fn the_flash_solution_equals_attention() {
    let [q, k, v, out] = &FLASH.buffers()[..] else {
        panic!("four buffers");
    };
    let row = |tensor: &[f32], head: usize, t: usize| -> Vec<f32> {
        let start = (head * 70 + t) * 32;
        tensor[start..start + 32].to_vec()
    };
    for (head, t) in [(0, 0), (1, 69), (0, 33)] {
        let query = row(q, head, t);
        let score = |key: usize| {
            let products = query.iter().zip(row(k, head, key)).map(|(q, k)| q * k);
            products.sum::<f32>() / 32_f32.sqrt()
        };
        let weights: Vec<f32> = (0..=t).map(|key| score(key).exp()).collect();
        let sum: f32 = weights.iter().sum();
        for (d, found) in row(out, head, t).into_iter().enumerate() {
            let terms = weights.iter().enumerate();
            let mixed: f32 = terms
                .map(|(key, weight)| weight * row(v, head, key)[d])
                .sum();
            assert_close(found, mixed / sum);
        }
    }
}

#[test]
fn the_matrix_cores_solution_multiplies_rounded_numbers() {
    let [a, b, c] = &MATRIX_CORES.buffers()[..] else {
        panic!("three buffers");
    };
    let rounded = |x: f32| half::f16::from_f32(x).to_f32();
    for row in 0..32 {
        for column in 0..48 {
            let terms = (0..32).map(|k| rounded(a[row * 32 + k]) * rounded(b[k * 48 + column]));
            assert_close(c[row * 48 + column], terms.sum());
        }
    }
}

#[test]
fn starters_are_interpreted_to_their_end() {
    for (case, starter) in [
        (SWIGLU, "k01-swiglu/starter.wgsl"),
        (RMS_NORM, "k02-rms-norm/starter.wgsl"),
        (COPY, "k03-copy/starter.wgsl"),
        (MATMUL, "k04-matmul/starter.wgsl"),
        (SOFTMAX, "k06-softmax/starter.wgsl"),
        (FLASH, "k07-flash/starter.wgsl"),
        (MATRIX_CORES, "k10-matrix-cores/starter.wgsl"),
    ] {
        let case = Case {
            file: starter,
            ..case
        };
        let (report, _) = case.run(&case.text());
        assert!(report.complete, "{starter}");
    }
}

#[test]
fn a_solution_without_one_of_its_barriers_races() {
    let rms_norm = Case {
        sizes: &[("ROWS", 2), ("COLS", 131)],
        groups: [2, 1, 1],
        lengths: &[262, 131, 262],
        ..RMS_NORM
    };
    let matmul = Case {
        sizes: &[("M", 17), ("N", 17), ("K", 33)],
        groups: [2, 2, 1],
        lengths: &[561, 561, 289],
        ..MATMUL
    };
    let softmax = Case {
        sizes: &[("ROWS", 2), ("COLS", 131)],
        groups: [2, 1, 1],
        lengths: &[262; 2],
        ..SOFTMAX
    };
    let flash = Case {
        sizes: &[("H", 1), ("T", 40), ("D", 4)],
        groups: [1, 1, 1],
        lengths: &[160; 4],
        ..FLASH
    };
    let matrix_cores = Case {
        sizes: &[("M", 16), ("N", 16), ("K", 32)],
        groups: [1, 1, 1],
        lengths: &[512, 512, 256],
        ..MATRIX_CORES
    };
    for case in [rms_norm, matmul, softmax, flash, matrix_cores] {
        let text = case.text();
        for (start, barrier) in text.match_indices("workgroupBarrier();") {
            let mut without = text.clone();
            without.replace_range(start..start + barrier.len(), "");
            let (report, _) = case.run(&without);
            let has_race = report
                .findings
                .iter()
                .any(|finding| finding.kind == FindingKind::Race);
            let line = 1 + text[..start].matches('\n').count();
            assert!(has_race, "{} without line {line}", case.file);
        }
    }
}
