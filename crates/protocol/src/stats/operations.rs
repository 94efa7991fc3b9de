//! The operations of one profiled step: rows of all layers, parts and kernels added up by operation and phase, as the
//! roofline shows them.

use super::roofline::{RowRates, bounding, rates};
use crate::{Roof, StepProfile};

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

/// What an operation computes, in one line; its backward pass follows from it.
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

/// One operation in one phase.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OperationRow {
    /// `linear`, `attention`…
    pub op: String,
    pub phase: String,
    pub ms: f64,
    /// FLOP and bytes by shape.
    pub work: Option<(f64, f64)>,
    pub matrix_cores: bool,
    /// Why the work is not known.
    pub no_work: Option<String>,
}

impl OperationRow {
    pub fn name(&self) -> String {
        name(&self.op, "", &self.phase)
    }

    /// What it reached against the roofs.
    pub fn reached(&self, roof: Option<&Roof>) -> RowRates {
        let work = self.work.filter(|(flops, bytes)| flops + bytes > 0.0);
        let roof = roof.and_then(|roof| bounding(roof, self.matrix_cores));
        rates(work, self.ms * 1e-3, roof.as_ref())
    }
}

/// Longest first.
pub fn operations(kernels: &StepProfile) -> Vec<OperationRow> {
    let mut found: Vec<OperationRow> = Vec::new();
    for row in &kernels.rows {
        let known = found
            .iter()
            .position(|it| it.op == row.op && it.phase == row.phase);
        let at = known.unwrap_or_else(|| {
            found.push(OperationRow {
                op: row.op.clone(),
                phase: row.phase.clone(),
                ..OperationRow::default()
            });
            found.len() - 1
        });
        let it = &mut found[at];
        it.ms += row.ms;
        it.matrix_cores |= row.matrix_cores;
        if let Some((flops, bytes)) = row.flops.zip(row.bytes) {
            let sum = it.work.get_or_insert((0.0, 0.0));
            (sum.0, sum.1) = (sum.0 + flops, sum.1 + bytes);
        } else if it.no_work.is_none() {
            it.no_work.clone_from(&row.no_work);
        }
    }
    for it in found.iter_mut().filter(|it| it.work.is_some()) {
        it.no_work = None;
    }
    found.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KernelRow;

    fn row(op: &str, kernel: &str, ms: f64, work: Option<f64>) -> KernelRow {
        KernelRow {
            op: op.to_owned(),
            phase: "forward".to_owned(),
            kernel: kernel.to_owned(),
            ms,
            flops: work,
            bytes: work,
            no_work: work.is_none().then(|| "counted elsewhere".to_owned()),
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
        assert_eq!(found[0].name(), "glue fwd");
        assert_eq!(found[0].no_work.as_deref(), Some("counted elsewhere"));
        assert_eq!(found[0].reached(None), RowRates::default());
        assert_eq!(
            (found[1].ms, found[1].work, &found[1].no_work),
            (6.0, Some((12e6, 12e6)), &None)
        );
        assert_eq!(found[1].reached(None).flops_per_s, Some(2e9));
    }
}
