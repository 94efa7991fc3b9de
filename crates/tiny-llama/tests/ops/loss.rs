//! Cross-entropy, alone and in one operation with the head. Some tests multiply gradients by three, as loss scaling does.

use burn::tensor::{Device, Tensor};
use protocol::config::{Loss, Matmul, Precision};
use tiny_llama::ops::cross_entropy::CrossEntropy;
use tiny_llama::ops::format::Format;
use tiny_llama::ops::head_loss::HeadLoss;
use tiny_llama::ops::linear::Linear;
use tiny_llama::ops::{Scope, apply};

use crate::ops::case::{Case, run};
use crate::ops::embedding::tokens_on;
use crate::ops::formula;
use crate::ops::matrix::Matrix;

fn versions(targets: &[i32], device: &Device, scale: f32) -> [CrossEntropy; 2] {
    [Loss::Composed, Loss::Fused].map(|version| CrossEntropy {
        targets: tokens_on(targets, device),
        version,
        scale: Some(Tensor::full([1, 1], scale, &device.clone().inner())),
    })
}

fn one() -> Matrix {
    Matrix::from_function(1, 1, |_, _| 1.0)
}

fn classes_of_any_number(device: &Device) {
    for (n, vocab, scale) in [
        (1, 2, 1.0),
        (7, 997, 3.0),
        (65, 33, 10.0),
        (1, 1030, 1.0),
        (9, 64, 2.0),
    ] {
        let targets = targets(n, vocab);
        Case {
            name: &format!("{n} rows of {vocab}"),
            inputs: [Matrix::random(1, n, vocab, scale)],
            dy: Matrix::from_function(1, 1, |_, _| 3.0),
            formula: &|[logits]| formula::cross_entropy(logits, &targets),
        }
        .check(device, &versions(&targets, device, 3.0));
    }
}

/// Row 0 is right with probability near 1, row 1 is wrong with probability near 1, row 2 has two logits of 1e4, and row 3 has only −1e4.
fn logits_of_ten_thousand(device: &Device) {
    let vocab = 37;
    let logits = Matrix::from_function(4, vocab, |row, column| match (row, column) {
        (0, 5) | (1, 6) | (2, 1 | 2) => 1e4,
        (0..=2, 9) => 9.9e3,
        _ => -1e4,
    });
    let targets = [5, 7, 1, 3];
    let share = 1.0 / vocab as f64;
    let slopes = Matrix::from_function(4, vocab, |row, column| {
        0.25 * match (row, column) {
            (1, 6) => 1.0,
            (1, 7) => -1.0,
            (2, 1) => -0.5,
            (2, 2) => 0.5,
            (3, 3) => share - 1.0,
            (3, _) => share,
            _ => 0.0,
        }
    });
    for op in versions(&targets, device, 1.0) {
        let name = format!("cross-entropy ({:?})", op.version);
        let found = run(device, op, std::array::from_ref(&logits), &one());
        let want = formula::cross_entropy(&logits, &targets);
        found.output.assert_near(&want, 1e-6, &name);
        let gradient = found.gradients[0].as_ref().expect("a gradient");
        gradient.assert_near(&slopes, 1e-6, &name);
    }
}

/// The loss of a row that is right with probability near 1 is small compared with its logits, and must keep its digits.
fn small_losses_of_large_logits(device: &Device) {
    let logits = Matrix::from_function(3, 33, |row, column| {
        if column == 4 {
            5e3
        } else {
            5e3 - 4.0 - row as f64
        }
    });
    let targets = [4, 4, 4];
    for op in versions(&targets, device, 1.0) {
        let name = format!("cross-entropy ({:?})", op.version);
        let found = run(device, op, std::array::from_ref(&logits), &one());
        let want = formula::cross_entropy(&logits, &targets);
        found.output.assert_near(&want, 1e-5, &name);
    }
}

/// A logit of −∞ gives its class no probability and no gradient.
fn classes_ruled_out(device: &Device) {
    let ruled_out = |column: usize| column % 3 == 1;
    let logits = Matrix::from_function(5, 33, |row, column| {
        if ruled_out(column) {
            f64::NEG_INFINITY
        } else {
            (row as f64 + column as f64).sin()
        }
    });
    let targets = [0, 2, 3, 5, 6];
    for op in versions(&targets, device, 1.0) {
        let name = format!("cross-entropy ({:?})", op.version);
        let found = run(device, op, std::array::from_ref(&logits), &one());
        let want = formula::cross_entropy(&logits, &targets);
        found.output.assert_near(&want, 1e-6, &name);
        let gradient = found.gradients[0].as_ref().expect("a gradient");
        for row in 0..5 {
            assert!(gradient.row(row).iter().all(|g| g.is_finite()), "{name}");
            for column in (0..33).filter(|c| ruled_out(*c)) {
                assert_eq!(gradient.at(row, column), 0.0, "{name}");
            }
            let sum: f64 = gradient.row(row).iter().sum();
            assert!(sum.abs() < 1e-6, "{name}: a row's gradient sums to {sum:e}");
        }
    }
}

/// Returns the head's product with the loss, all rows at once and in parts, first with the library's products and then with ours.
fn with_the_head(targets: &[i32], device: &Device, scale: f32, format: Format) -> Vec<HeadLoss> {
    let head_loss = |matmul, version| HeadLoss {
        head: Linear {
            matmul,
            format,
            ..Linear::default()
        },
        loss: CrossEntropy {
            version,
            ..versions(targets, device, scale)[0].clone()
        },
        with_gradients: true,
    };
    [Matmul::Library, Matmul::Own]
        .into_iter()
        .flat_map(|matmul| [Loss::Fused, Loss::InParts].map(|loss| head_loss(matmul, loss)))
        .collect()
}

/// Rows, width and classes. They give one row, one part, two parts of which the last is shorter, and three parts whose tensors start at no
/// multiple of 256 bytes.
const HEADS: [[usize; 3]; 4] = [[1, 5, 2], [65, 12, 33], [300, 12, 33], [700, 7, 97]];

fn targets(n: usize, vocab: usize) -> Vec<i32> {
    (0..n)
        .map(|i| ((i * 31 + vocab - 1) % vocab) as i32)
        .collect()
}

fn heads_in_parts(device: &Device) {
    for [n, d, vocab] in HEADS {
        let targets = targets(n, vocab);
        let all = with_the_head(&targets, device, 3.0, Format::Full);
        Case {
            name: &format!("{n} rows of {d}, {vocab} classes"),
            inputs: [
                Matrix::random(1, n, d, 1.0),
                Matrix::random(2, vocab, d, 1.0),
            ],
            dy: Matrix::from_function(1, 1, |_, _| 3.0),
            formula: &|[x, w]| formula::cross_entropy(&formula::linear(x, w), &targets),
        }
        .check(device, &all);
    }
}

/// In a short format, parts give the loss and the gradients of the whole. Without gradients the loss does not change.
fn short_formats_and_no_gradients_in_parts(device: &Device) {
    let [n, d, vocab] = HEADS[2];
    let targets = targets(n, vocab);
    let inputs = [
        Matrix::random(1, n, d, 1.0),
        Matrix::random(2, vocab, d, 1.0),
    ];
    for short in [Precision::F16, Precision::Bf16] {
        let all = with_the_head(&targets, device, 1.0, Format::Emulated(short));
        let found: Vec<_> = all
            .iter()
            .map(|op| run(device, op.clone(), &inputs, &one()))
            .collect();
        // The library's product whole and in parts, then ours.
        for (whole, parts) in [(0, 1), (2, 3)] {
            let name = format!("{short} in parts");
            found[parts]
                .output
                .assert_near(&found[whole].output, 1e-6, &name);
            for gradients in found[parts].gradients.iter().zip(&found[whole].gradients) {
                let (Some(got), Some(want)) = gradients else {
                    panic!("{name}: no gradient")
                };
                got.assert_near(want, 1e-5, &name);
            }
        }
        let plain = device.clone().inner();
        for (with_gradients, found) in all.into_iter().zip(&found) {
            let op = HeadLoss {
                with_gradients: false,
                ..with_gradients
            };
            let inputs = inputs.each_ref().map(|input| input.on(&plain)); // [rows, columns]
            let loss = Matrix::read(apply(Scope::outside("test"), op, inputs));
            assert_eq!(loss.values, found.output.values);
        }
    }
}

crate::ops::on_both_devices!(
    heads_in_parts,
    short_formats_and_no_gradients_in_parts,
    classes_of_any_number,
    logits_of_ten_thousand,
    small_losses_of_large_logits,
    classes_ruled_out,
);
