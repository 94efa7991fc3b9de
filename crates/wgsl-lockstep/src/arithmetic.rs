//! Operators, conversions and matrix products on the values of all lanes.

use half::f16;
use naga::{BinaryOperator, RelationalFunction, Scalar, ScalarKind, UnaryOperator};

use super::value::Mask;

/// Returns the `f32` with these bits.
pub(crate) fn f(word: u32) -> f32 {
    f32::from_bits(word)
}

/// Sets `out` to `op(a)` for every lane.
fn map1(out: &mut [u32], a: &[u32], op: fn(u32) -> u32) {
    out.iter_mut().zip(a).for_each(|(out, a)| *out = op(*a));
}

/// Sets `out` to `op(a, b)` for one scalar of each active lane; values of inactive lanes are not specified.
pub(crate) fn map2(
    mask: &Mask,
    out: &mut [u32],
    a: &[u32],
    b: &[u32],
    op: impl Fn(u32, u32) -> u32,
) {
    if mask.is_dense() {
        for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
            *out = op(*a, *b);
        }
    } else {
        for &lane in &mask.lanes {
            out[lane as usize] = op(a[lane as usize], b[lane as usize]);
        }
    }
}

/// Returns one component of a value, for all lanes. A scalar is every component of itself.
pub(crate) fn scalar_lanes(words: &[u32], component: usize, lanes: usize) -> &[u32] {
    let start = if words.len() == lanes {
        0
    } else {
        component * lanes
    };
    words.get(start..start + lanes).unwrap_or_default()
}

/// Returns true if a float is well within the normal numbers of f16.
fn is_normal_half(word: u32) -> bool {
    matches!(word >> 23 & 0xff, 113..=141)
}

/// Rounds a float within the normal numbers of f16 to the ten bits that f16 keeps. Of two numbers that are equally near, the even one is
/// taken.
fn normal_half(word: u32) -> u32 {
    (word + 0xfff + (word >> 13 & 1)) & !0x1fff
}

/// Rounds a float to f16.
pub(crate) fn half(word: u32) -> u32 {
    if is_normal_half(word) {
        normal_half(word)
    } else {
        f16::from_f32(f(word)).to_f32().to_bits()
    }
}

/// Rounds the values of a 16-bit float type; those of other types stay.
pub(crate) fn round(scalar: Scalar, out: &mut [u32]) {
    if scalar.kind == ScalarKind::Float && scalar.width == 2 {
        // Without special cases, the compiler rounds many words at once.
        for words in out.chunks_mut(32) {
            let are_normal = words
                .iter()
                .fold(true, |all, word| all & is_normal_half(*word));
            if are_normal {
                words.iter_mut().for_each(|word| *word = normal_half(*word));
            } else {
                words.iter_mut().for_each(|word| *word = half(*word));
            }
        }
    }
}

/// Applies an operator to every lane.
pub(crate) fn unary(op: UnaryOperator, scalar: Scalar, a: &[u32], out: &mut [u32]) {
    match (op, scalar.kind) {
        (UnaryOperator::Negate, ScalarKind::Float) => map1(out, a, |a| a ^ (1 << 31)),
        (UnaryOperator::Negate, _) => map1(out, a, u32::wrapping_neg),
        (UnaryOperator::LogicalNot, _) => map1(out, a, |a| u32::from(a == 0)),
        (UnaryOperator::BitwiseNot, _) => map1(out, a, |a| !a),
    }
}

/// Applies an operator to each component; a scalar on either side is combined with every component of the other.
pub(crate) fn binary(
    op: BinaryOperator,
    scalar: Scalar,
    a: &[u32],
    b: &[u32],
    out: &mut [u32],
    mask: &Mask,
) {
    let lanes = mask.total;
    for (component, out) in out.chunks_exact_mut(lanes).enumerate() {
        let [a, b] = [a, b].map(|operand| scalar_lanes(operand, component, lanes));
        binary_scalars(op, scalar.kind, a, b, out, mask);
    }
    use BinaryOperator::{Add, Divide, Modulo, Multiply, Subtract};
    if matches!(op, Add | Subtract | Multiply | Divide | Modulo) {
        round(scalar, out);
    }
}

/// Applies an operator to one scalar of each active lane.
fn binary_scalars(
    op: BinaryOperator,
    kind: ScalarKind,
    a: &[u32],
    b: &[u32],
    out: &mut [u32],
    mask: &Mask,
) {
    use BinaryOperator::*;
    match (op, kind) {
        (And | LogicalAnd, _) => map2(mask, out, a, b, |a, b| a & b),
        (InclusiveOr | LogicalOr, _) => map2(mask, out, a, b, |a, b| a | b),
        (ExclusiveOr, _) => map2(mask, out, a, b, |a, b| a ^ b),
        (ShiftLeft, _) => map2(mask, out, a, b, |a, b| a << (b & 31)),
        (ShiftRight, ScalarKind::Sint) => map2(mask, out, a, b, of_signed(|a, b| a >> (b & 31))),
        (ShiftRight, _) => map2(mask, out, a, b, |a, b| a >> (b & 31)),
        (Add, ScalarKind::Float) => map2(mask, out, a, b, of_floats(|a, b| a + b)),
        (Subtract, ScalarKind::Float) => map2(mask, out, a, b, of_floats(|a, b| a - b)),
        (Multiply, ScalarKind::Float) => map2(mask, out, a, b, of_floats(|a, b| a * b)),
        (Divide, ScalarKind::Float) => map2(mask, out, a, b, of_floats(|a, b| a / b)),
        (Modulo, ScalarKind::Float) => map2(mask, out, a, b, of_floats(|a, b| a % b)),
        (Equal, ScalarKind::Float) => map2(mask, out, a, b, test_floats(|a, b| a == b)),
        (NotEqual, ScalarKind::Float) => map2(mask, out, a, b, test_floats(|a, b| a != b)),
        (Less, ScalarKind::Float) => map2(mask, out, a, b, test_floats(|a, b| a < b)),
        (LessEqual, ScalarKind::Float) => map2(mask, out, a, b, test_floats(|a, b| a <= b)),
        (Greater, ScalarKind::Float) => map2(mask, out, a, b, test_floats(|a, b| a > b)),
        (GreaterEqual, ScalarKind::Float) => map2(mask, out, a, b, test_floats(|a, b| a >= b)),
        (Add, _) => map2(mask, out, a, b, u32::wrapping_add),
        (Subtract, _) => map2(mask, out, a, b, u32::wrapping_sub),
        (Multiply, _) => map2(mask, out, a, b, u32::wrapping_mul),
        (Equal, _) => map2(mask, out, a, b, |a, b| u32::from(a == b)),
        (NotEqual, _) => map2(mask, out, a, b, |a, b| u32::from(a != b)),
        // Division by zero gives the dividend, and the remainder is 0.
        (Divide, ScalarKind::Sint) => map2(
            mask,
            out,
            a,
            b,
            of_signed(|a, b| a.checked_div(b).unwrap_or(a)),
        ),
        (Modulo, ScalarKind::Sint) => map2(
            mask,
            out,
            a,
            b,
            of_signed(|a, b| a.checked_rem(b).unwrap_or(0)),
        ),
        (Divide, _) => map2(mask, out, a, b, |a, b| a.checked_div(b).unwrap_or(a)),
        (Modulo, _) => map2(mask, out, a, b, |a, b| a.checked_rem(b).unwrap_or(0)),
        (Less, ScalarKind::Sint) => map2(mask, out, a, b, test_signed(|a, b| a < b)),
        (LessEqual, ScalarKind::Sint) => map2(mask, out, a, b, test_signed(|a, b| a <= b)),
        (Greater, ScalarKind::Sint) => map2(mask, out, a, b, test_signed(|a, b| a > b)),
        (GreaterEqual, ScalarKind::Sint) => map2(mask, out, a, b, test_signed(|a, b| a >= b)),
        (Less, _) => map2(mask, out, a, b, |a, b| u32::from(a < b)),
        (LessEqual, _) => map2(mask, out, a, b, |a, b| u32::from(a <= b)),
        (Greater, _) => map2(mask, out, a, b, |a, b| u32::from(a > b)),
        (GreaterEqual, _) => map2(mask, out, a, b, |a, b| u32::from(a >= b)),
    }
}

fn of_floats(op: impl Fn(f32, f32) -> f32) -> impl Fn(u32, u32) -> u32 {
    move |a, b| op(f(a), f(b)).to_bits()
}

fn test_floats(op: impl Fn(f32, f32) -> bool) -> impl Fn(u32, u32) -> u32 {
    move |a, b| op(f(a), f(b)).into()
}

fn of_signed(op: impl Fn(i32, i32) -> i32) -> impl Fn(u32, u32) -> u32 {
    move |a, b| op(a as i32, b as i32) as u32
}

fn test_signed(op: impl Fn(i32, i32) -> bool) -> impl Fn(u32, u32) -> u32 {
    move |a, b| op(a as i32, b as i32).into()
}

/// Computes the product of the matrices `a` [rows, inner] and `b` [inner, columns], each stored column by column.
pub(crate) fn multiply(
    scalar: Scalar,
    (rows, inner, columns): (usize, usize, usize),
    a: &[u32],
    b: &[u32],
    out: &mut [u32],
    mask: &Mask,
) {
    let lanes = mask.total;
    for column in 0..columns {
        for row in 0..rows {
            for &lane in &mask.lanes {
                let lane = lane as usize;
                let terms = (0..inner).map(|k| {
                    f(a[(k * rows + row) * lanes + lane])
                        * f(b[(column * inner + k) * lanes + lane])
                });
                out[(column * rows + row) * lanes + lane] = terms.sum::<f32>().to_bits();
            }
        }
    }
    round(scalar, out);
}

/// Converts values to another scalar type.
pub(crate) fn convert(from: Scalar, to: Scalar, a: &[u32], out: &mut [u32]) {
    use ScalarKind::{Bool, Float, Sint, Uint};
    match (from.kind, to.kind) {
        (Float, Bool) => map1(out, a, |a| u32::from(f(a) != 0.0)),
        (_, Bool) => map1(out, a, |a| u32::from(a != 0)),
        (Uint | Bool, Float) => map1(out, a, |a| (a as f32).to_bits()),
        (Sint, Float) => map1(out, a, |a| (a as i32 as f32).to_bits()),
        // Larger floats become the largest integer of the type that f32 can represent.
        (Float, Uint) => map1(out, a, |a| match f(a) {
            big if big >= 4_294_967_040.0 => 4_294_967_040,
            a => a as u32,
        }),
        (Float, Sint) => map1(out, a, |a| match f(a) {
            big if big >= 2_147_483_520.0 => 2_147_483_520,
            a => a as i32 as u32,
        }),
        _ => out.copy_from_slice(a),
    }
    round(to, out);
}

/// Applies a function whose result is a `bool`.
pub(crate) fn relational(fun: RelationalFunction, a: &[u32], out: &mut [u32], lanes: usize) {
    let parts = |lane: usize| a.iter().skip(lane).step_by(lanes).map(|word| *word != 0);
    for (lane, out) in out.iter_mut().enumerate() {
        *out = match fun {
            RelationalFunction::All => parts(lane).all(|is_true| is_true),
            RelationalFunction::Any => parts(lane).any(|is_true| is_true),
            RelationalFunction::IsNan => f(a[lane]).is_nan(),
            RelationalFunction::IsInf => f(a[lane]).is_infinite(),
        }
        .into();
    }
}
