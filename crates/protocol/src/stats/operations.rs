//! The operations of one profiled step, as the roofline shows them: the rows of all layers, parts and kernels, added up by operation and
//! phase.

use crate::{KernelRow, StepProfile};

/// Returns the name of a profile's row, as the screen and the command line show it: the operation, the part of the model if it adds
/// something, and the phase in three letters. `linear mlp.gate bwd`, `attention.rope fwd`, `adamw opt`.
pub fn name(op: &str, part: &str, phase: &str) -> String {
    let phase_letters = short(phase);
    let name = if op.is_empty() {
        // Older recordings do not name the operation.
        format!("{part} {phase_letters}")
    } else if part.is_empty() || part == op || part == phase {
        format!("{op} {phase_letters}")
    } else if part.rsplit('.').next() == Some(op) {
        format!("{part} {phase_letters}")
    } else {
        format!("{op} {part} {phase_letters}")
    };
    name.trim().to_owned()
}

/// Returns a phase in three letters.
pub fn short(phase: &str) -> &str {
    match phase {
        "forward" => "fwd",
        "backward" => "bwd",
        "optimizer" => "opt",
        other => other,
    }
}

/// Returns the formula of an operation on one line, with its backward pass where that does not follow from it; empty for an operation that
/// is not ours.
pub fn formula(op: &str) -> &'static str {
    match op {
        "add" => "y = a + b",
        "attention" => "out = softmax(q·kᵀ/√dh + causal mask)·v",
        "adamw" => {
            "m = β₁·m + (1−β₁)·g, v = β₂·v + (1−β₂)·g², \
             p −= lr·(wd·p + (m/(1−β₁ᵗ)) / (√(v/(1−β₂ᵗ)) + ε))"
        }
        "cross-entropy" => "L = mean(log Σ exp(z) − z[target])",
        "embedding" => "y[i] = W[token[i]]",
        "linear" => "y = x·Wᵀ; backward dx = dy·W, dW = dyᵀ·x",
        "linear+cross-entropy" => {
            "L = mean(log Σ exp(z) − z[target]), z = x·Wᵀ, some rows at a time; \
             at once dx = dz·W, dW = dzᵀ·x"
        }
        "linear+residual" => "y = x·Wᵀ + r; backward dx = dy·W, dW = dyᵀ·x",
        "linear+rope" => "y = rope(x·Wᵀ); backward dx = dy·W, dW = dyᵀ·x",
        "linear+swiglu" => "[g, u] = x·Wᵀ, y = g·σ(g)·u; backward dx = dy·W, dW = dyᵀ·x",
        "rms-norm" => "y = x / √(mean(x²) + ε) · γ",
        "rope" => "(a, b) → (a·cos φ − b·sin φ, a·sin φ + b·cos φ), φ = t·θ^(−2i/dh)",
        "swiglu" | "naive-swiglu" => "y = g·σ(g)·u",
        _ => "",
    }
}

/// Returns one row for each operation and phase, without kernel and part of the model, the longest time first.
pub fn operations(profile: &StepProfile) -> Vec<KernelRow> {
    let mut sums: Vec<KernelRow> = Vec::new();
    for row in &profile.rows {
        let known = sums
            .iter()
            .position(|sum| sum.op == row.op && sum.phase == row.phase);
        let index = known.unwrap_or_else(|| {
            sums.push(KernelRow {
                op: row.op.clone(),
                phase: row.phase.clone(),
                ..KernelRow::default()
            });
            sums.len() - 1
        });
        let sum = &mut sums[index];
        sum.ms += row.ms;
        sum.matrix_cores |= row.matrix_cores;
        if let Some((flops, bytes)) = row.flops.zip(row.bytes) {
            *sum.flops.get_or_insert(0.0) += flops;
            *sum.bytes.get_or_insert(0.0) += bytes;
        }
    }
    sums.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::roofline::{RowRates, reached};

    fn row(op: &str, kernel: &str, ms: f64, work: Option<f64>) -> KernelRow {
        KernelRow {
            op: op.to_owned(),
            phase: "forward".to_owned(),
            kernel: kernel.to_owned(),
            ms,
            flops: work,
            bytes: work,
            ..KernelRow::default()
        }
    }

    #[test]
    fn a_name_has_the_part_only_if_it_adds_something() {
        assert_eq!(
            name("linear", "mlp.gate", "backward"),
            "linear mlp.gate bwd"
        );
        assert_eq!(
            name("rope", "attention.rope", "forward"),
            "attention.rope fwd"
        );
        assert_eq!(name("attention", "attention", "forward"), "attention fwd");
        assert_eq!(name("adamw", "optimizer", "optimizer"), "adamw opt");
        assert_eq!(name("", "mlp.gate", "backward"), "mlp.gate bwd");
        assert_eq!(name("", "optimizer", "optimizer"), "optimizer opt");
    }

    #[test]
    fn kernels_and_parts_of_an_operation_add_up() {
        let profile = StepProfile {
            rows: vec![
                row("linear", "matmul", 3.0, Some(6e6)),
                row("linear", "reduce", 1.0, None),
                row("linear", "matmul", 2.0, Some(6e6)),
                row("glue", "add", 9.0, None),
            ],
            ..StepProfile::default()
        };

        let operations = operations(&profile);

        let [glue, linear] = &operations[..] else {
            panic!("{operations:?}");
        };
        assert_eq!(name(&glue.op, &glue.part, &glue.phase), "glue fwd");
        assert_eq!(reached(glue, None), RowRates::default());
        assert_eq!(
            (linear.ms, linear.flops, linear.bytes),
            (6.0, Some(12e6), Some(12e6))
        );
        assert_eq!(reached(linear, None).flops_per_s, Some(2e9));
    }
}
