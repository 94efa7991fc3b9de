//! What a kernel has to do, counted from its shape: floating-point operations by its reference's name, and bytes with each
//! operand moved once. `exp`, `sqrt` and a division count as one operation each.

use std::collections::BTreeMap;

use crate::protocol::{KernelFile, KernelRole};

/// Floating-point operations of the reference `name`; `None` for a name nobody counted.
pub fn flops(name: &str, sizes: &BTreeMap<String, u64>) -> Option<f64> {
    let n = |size: &str| sizes.get(size).copied().unwrap_or(1) as f64;
    Some(match name {
        // −g, e^, 1 +, g /, · up
        "swiglu" => 5.0 * n("N"),
        // s: 4; g·s, 1 − s, g·, 1 +, s·: 5; dy·up·slope: 2; dy·(g·s): 1
        "swiglu-backward" => 12.0 * n("N"),
        // x², +, · scale, · gain
        "rms-norm" => 4.0 * n("ROWS") * n("COLS"),
        "heads-first" => 0.0,
        "matmul" => 2.0 * n("M") * n("N") * n("K"),
        // Four products and two sums for each pair.
        "rope" => 3.0 * n("T") * n("H") * n("D"),
        // max, −, e^, +, /
        "softmax" => 5.0 * n("ROWS") * n("COLS"),
        // Each visible pair: q·k and p·v, and max, −, e^, +, / of its score.
        "attention" => n("H") * n("T") * (n("T") + 1.0) / 2.0 * (4.0 * n("D") + 5.0),
        // m: 3, v: 4, corrections: 2, √ + ε and /: 3, decay and update: 5
        "adamw" => 17.0 * n("N"),
        "residual" => n("ROWS") * n("COLS"),
        _ => return None,
    })
}

/// Bytes that the buffers hold at shape number `shape`, twice for those that are read and written.
pub fn bytes(file: &KernelFile, shape: usize) -> f64 {
    let each = file.bindings.iter().map(|binding| {
        let times = if binding.role == KernelRole::InOut {
            8.0
        } else {
            4.0
        };
        times * binding.counts.get(shape).copied().unwrap_or(0) as f64
    });
    each.sum()
}
