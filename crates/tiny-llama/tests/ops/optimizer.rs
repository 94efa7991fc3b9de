//! AdamW over several steps against its formula in double precision. A parameter without a gradient does not change.

use burn::tensor::Device;
use protocol::config;
use tiny_llama::ops::Parameter;
use tiny_llama::ops::optimizer::{BETA_1, BETA_2, EPSILON, Optimizer, WEIGHT_DECAY};

use crate::ops::matrix::Matrix;

const RATE: f64 = 3e-3;
const STEPS: i32 = 6;
/// The shapes: one value, odd sizes, more values than a workgroup has invocations, the gain of a norm, multiples of four.
const SHAPES: [[usize; 2]; 5] = [[1, 1], [7, 33], [51, 997], [1, 129], [16, 64]];

fn gradient(step: i32, index: usize) -> Matrix {
    let [rows, columns] = SHAPES[index];
    Matrix::random(10 * step as u64 + index as u64, rows, columns, 0.1)
}

/// Parameter 3 gets its first gradient in step 3 and none in step 5. Parameter 0 gets none in step 4.
fn has_gradient(step: i32, index: usize) -> bool {
    match index {
        3 => matches!(step, 3 | 4 | 6),
        0 => step != 4,
        _ => true,
    }
}

/// Returns parameter `index` after all steps, computed in double precision with its own count of updates.
fn expected(index: usize) -> Matrix {
    let [rows, columns] = SHAPES[index];
    let mut p = Matrix::random(100 + index as u64, rows, columns, 1.0);
    let mut moments = vec![[0.0; 2]; rows * columns];
    let mut time = 0;
    for step in (1..=STEPS).filter(|step| has_gradient(*step, index)) {
        time += 1;
        let gradient = gradient(step, index);
        for ((p, [m, v]), g) in p.values.iter_mut().zip(&mut moments).zip(&gradient.values) {
            *p -= RATE * WEIGHT_DECAY * *p;
            *m = BETA_1 * *m + (1.0 - BETA_1) * g;
            *v = BETA_2 * *v + (1.0 - BETA_2) * g * g;
            let mean = *m / (1.0 - BETA_1.powi(time));
            let square = *v / (1.0 - BETA_2.powi(time));
            *p -= RATE * mean / (square.sqrt() + EPSILON);
        }
    }
    p
}

fn several_steps(device: &Device) {
    for version in [config::Optimizer::Library, config::Optimizer::Fused] {
        let start = |i: usize| Matrix::random(100 + i as u64, SHAPES[i][0], SHAPES[i][1], 1.0);
        let mut parameters: Vec<Parameter> = (0..SHAPES.len())
            .map(|i| Parameter {
                name: format!("p{i}"),
                value: start(i).on(device).require_grad(), // [rows, columns]
                operand: None,
            })
            .collect();
        let mut optimizer = Optimizer::new(version, SHAPES.len());
        for step in 1..=STEPS {
            let gradients = (0..SHAPES.len())
                .map(|i| {
                    has_gradient(step, i).then(|| gradient(step, i).on(&device.clone().inner()))
                })
                .collect();
            optimizer.step(parameters.iter_mut().collect(), gradients, RATE, None);
            if step == 1 {
                let late = Matrix::read(parameters[3].value.clone().inner());
                assert_eq!(late, start(3), "{version}: moved without a gradient");
            }
        }
        for (i, parameter) in parameters.iter().enumerate() {
            let end = Matrix::read(parameter.value.clone().inner());
            let update = minus(&end, &start(i));
            let want = minus(&expected(i), &start(i));
            update.assert_near(&want, 1e-3, &format!("{version}: update of p{i}"));
        }
    }
}

fn minus(a: &Matrix, b: &Matrix) -> Matrix {
    crate::ops::formula::exact(a.rows, a.columns, |r, c| a.at(r, c) - b.at(r, c))
}

crate::ops::on_both_devices!(several_steps);
