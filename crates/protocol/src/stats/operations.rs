//! The operations of one profiled step: rows of all layers, parts and kernels added up by operation and phase, as the
//! roofline shows them.

use crate::{KernelRow, StepProfile};

/// A row of a profile as people read it, on the screen and on the command line: the operation, its place where that says
/// more, the phase in short. `linear mlp.gate bwd`, `attention.rope fwd`, `adamw opt`.
pub fn name(op: &str, part: &str, phase: &str) -> String {
    let own = part.rsplit('.').next().unwrap_or(part);
    let words = match () {
        () if part.is_empty() || part == op || part == phase => op.to_owned(),
        () if op.is_empty() || own == op => part.to_owned(),
        () => format!("{op} {part}"),
    };
    let words = if words.is_empty() { part } else { &words };
    format!("{words} {}", short(phase)).trim().to_owned()
}

/// A phase in three letters.
pub fn short(phase: &str) -> &str {
    match phase {
        "forward" => "fwd",
        "backward" => "bwd",
        "optimizer" => "opt",
        other => other,
    }
}

/// Returns one line about the computation of an operation. Its backward pass follows from it.
pub fn formula(op: &str) -> &'static str {
    match op {
        "add" => "y = a + b",
        "attention" => "out = softmax(q·kᵀ/√dh + causal mask)·v",
        "adamw" => {
            "m = β₁·m + (1−β₁)·g, v = β₂·v + (1−β₂)·g², p −= lr·(wd·p + (m/(1−β₁ᵗ)) / (√(v/(1−β₂ᵗ)) + ε))"
        }
        "cross-entropy" => "L = mean(log Σ exp(z) − z[target])",
        "embedding" => "y[i] = W[token[i]]",
        "linear" => "y = x·Wᵀ; backward dx = dy·W, dW = dyᵀ·x",
        "linear+cross-entropy" => {
            "L = mean(log Σ exp(z) − z[target]), z = x·Wᵀ, some rows at a time; at once dx = dz·W, dW = dzᵀ·x"
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

/// One row for each operation and phase, without kernel and place, the longest first.
pub fn operations(kernels: &StepProfile) -> Vec<KernelRow> {
    let mut found: Vec<KernelRow> = Vec::new();
    for row in &kernels.rows {
        let known = found
            .iter()
            .position(|it| it.op == row.op && it.phase == row.phase);
        let at = known.unwrap_or_else(|| {
            found.push(KernelRow {
                op: row.op.clone(),
                phase: row.phase.clone(),
                ..KernelRow::default()
            });
            found.len() - 1
        });
        let it = &mut found[at];
        it.ms += row.ms;
        it.matrix_cores |= row.matrix_cores;
        if let Some((flops, bytes)) = row.flops.zip(row.bytes) {
            *it.flops.get_or_insert(0.0) += flops;
            *it.bytes.get_or_insert(0.0) += bytes;
        }
    }
    found.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    found
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
    fn a_name_says_everything_once() {
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
        // Older recordings do not name the operation.
        assert_eq!(name("", "mlp.gate", "backward"), "mlp.gate bwd");
        assert_eq!(name("", "optimizer", "optimizer"), "optimizer opt");
    }

    #[test]
    fn kernels_and_places_of_an_operation_add_up() {
        let kernels = StepProfile {
            rows: vec![
                row("linear", "matmul", 3.0, Some(6e6)),
                row("linear", "reduce", 1.0, None),
                row("linear", "matmul", 2.0, Some(6e6)),
                row("glue", "add", 9.0, None),
            ],
            ..StepProfile::default()
        };
        let found = operations(&kernels);
        let [glue, linear] = &found[..] else {
            panic!("{found:?}");
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
