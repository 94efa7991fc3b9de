//! WGSL's built-in functions on numbers, vectors and matrices.

use half::f16;
use naga::{MathFunction, Scalar, ScalarKind};

use super::arithmetic::{f, round, scalar_lanes};
use super::value::Mask;

/// The largest number of words of an argument or a result: those of a 4 × 4 matrix.
const MOST_WORDS: usize = 16;

/// Applies a function to the arguments of all active lanes. Returns false if the function is not supported.
pub(crate) fn apply(
    fun: MathFunction,
    scalar: Scalar,
    arguments: &[&[u32]],
    out: &mut [u32],
    mask: &Mask,
) -> bool {
    let lanes = mask.total;
    let float = scalar.kind == ScalarKind::Float;
    let argument = |index: usize| arguments.get(index).copied().unwrap_or_default();
    // Applies an operation to each component.
    macro_rules! each {
        (|$($name:ident),+| $value:expr) => {{
            for (component, out) in out.chunks_exact_mut(lanes).enumerate() {
                let mut number = 0..;
                $(let $name = scalar_lanes(argument(number.next().unwrap_or(0)), component, lanes);)+
                for &lane in &mask.lanes {
                    let lane = lane as usize;
                    $(let $name = $name[lane];)+
                    out[lane] = $value;
                }
            }
        }};
    }
    if float && let Some(op) = float1(fun) {
        each!(|a| op(f(a)).to_bits());
    } else if float && let Some(op) = float2(fun) {
        each!(|a, b| op(f(a), f(b)).to_bits());
    } else if float && let Some(op) = float3(fun) {
        each!(|a, b, c| op(f(a), f(b), f(c)).to_bits());
    } else if fun == MathFunction::Ldexp {
        each!(|a, b| ldexp(f(a), b as i32).to_bits());
    } else if !float && let Some(op) = integer1(fun, scalar.kind) {
        each!(|a| op(a));
    } else if !float && let Some(op) = integer2(fun, scalar.kind) {
        each!(|a, b| op(a, b));
    } else if !float && let Some(op) = integer3(fun, scalar.kind) {
        each!(|a, b, c| op(a, b, c));
    } else if fun == MathFunction::InsertBits {
        each!(|a, b, c, d| insert_bits(a, b, c, d));
    } else {
        let words = out.len() / lanes;
        for &lane in &mask.lanes {
            let gather = |index: usize| {
                let words = argument(index).iter().skip(lane as usize).step_by(lanes);
                words.copied().take(MOST_WORDS).collect::<Vec<u32>>()
            };
            let Some(result) = whole(fun, scalar.kind, &gather(0), &gather(1), &gather(2)) else {
                return false;
            };
            for (index, word) in result.into_iter().enumerate().take(words) {
                out[index * lanes + lane as usize] = word;
            }
        }
    }
    use MathFunction::{Frexp, Pack2x16float, Pack2x16snorm, Pack2x16unorm};
    use MathFunction::{Pack4x8snorm, Pack4x8unorm};
    // Not all words of these results are floats.
    if !matches!(
        fun,
        Frexp | Pack4x8snorm | Pack4x8unorm | Pack2x16snorm | Pack2x16unorm | Pack2x16float
    ) {
        round(scalar, out);
    }
    true
}

/// Returns a function of one float.
fn float1(fun: MathFunction) -> Option<fn(f32) -> f32> {
    use MathFunction::*;
    Some(match fun {
        Abs => f32::abs,
        Saturate => |a| a.clamp(0.0, 1.0),
        Cos => f32::cos,
        Cosh => f32::cosh,
        Sin => f32::sin,
        Sinh => f32::sinh,
        Tan => f32::tan,
        Tanh => f32::tanh,
        Acos => f32::acos,
        Asin => f32::asin,
        Atan => f32::atan,
        Asinh => f32::asinh,
        Acosh => f32::acosh,
        Atanh => f32::atanh,
        Radians => f32::to_radians,
        Degrees => f32::to_degrees,
        Ceil => f32::ceil,
        Floor => f32::floor,
        Round => f32::round_ties_even,
        Fract => |a| a - a.floor(),
        Trunc => f32::trunc,
        Exp => f32::exp,
        Exp2 => f32::exp2,
        Log => f32::ln,
        Log2 => f32::log2,
        Sign => |a| f32::from(i8::from(a > 0.0) - i8::from(a < 0.0)),
        Sqrt => f32::sqrt,
        InverseSqrt => |a| 1.0 / a.sqrt(),
        QuantizeToF16 => |a| f16::from_f32(a).to_f32(),
        _ => return None,
    })
}

/// Returns a function of two floats.
fn float2(fun: MathFunction) -> Option<fn(f32, f32) -> f32> {
    use MathFunction::*;
    Some(match fun {
        Min => f32::min,
        Max => f32::max,
        Atan2 => f32::atan2,
        Pow => f32::powf,
        Step => |edge, a| if edge <= a { 1.0 } else { 0.0 },
        _ => return None,
    })
}

/// Returns a function of three floats.
fn float3(fun: MathFunction) -> Option<fn(f32, f32, f32) -> f32> {
    use MathFunction::*;
    Some(match fun {
        Clamp => |a, low, high| a.max(low).min(high),
        Fma => f32::mul_add,
        Mix => |a, b, t| a * (1.0 - t) + b * t,
        SmoothStep => |low, high, a| {
            let t = ((a - low) / (high - low)).clamp(0.0, 1.0);
            t * t * (3.0 - 2.0 * t)
        },
        _ => return None,
    })
}

/// Returns a function of one integer.
fn integer1(fun: MathFunction, kind: ScalarKind) -> Option<fn(u32) -> u32> {
    use MathFunction::*;
    let signed = kind == ScalarKind::Sint;
    Some(match fun {
        Abs if signed => |a| (a as i32).wrapping_abs() as u32,
        Abs => |a| a,
        Sign => |a| (a as i32).signum() as u32,
        CountTrailingZeros => u32::trailing_zeros,
        CountLeadingZeros => u32::leading_zeros,
        CountOneBits => u32::count_ones,
        ReverseBits => u32::reverse_bits,
        FirstTrailingBit => |a| if a == 0 { u32::MAX } else { a.trailing_zeros() },
        FirstLeadingBit if signed => |a| leading_bit(if (a as i32) < 0 { !a } else { a }),
        FirstLeadingBit => leading_bit,
        _ => return None,
    })
}

/// Returns the position of the highest bit that is 1; all ones for 0.
fn leading_bit(a: u32) -> u32 {
    a.checked_ilog2().unwrap_or(u32::MAX)
}

/// Returns a function of two integers.
fn integer2(fun: MathFunction, kind: ScalarKind) -> Option<fn(u32, u32) -> u32> {
    let signed = kind == ScalarKind::Sint;
    Some(match fun {
        MathFunction::Min if signed => |a, b| (a as i32).min(b as i32) as u32,
        MathFunction::Max if signed => |a, b| (a as i32).max(b as i32) as u32,
        MathFunction::Min => u32::min,
        MathFunction::Max => u32::max,
        _ => return None,
    })
}

/// Returns a function of three integers.
fn integer3(fun: MathFunction, kind: ScalarKind) -> Option<fn(u32, u32, u32) -> u32> {
    let signed = kind == ScalarKind::Sint;
    Some(match fun {
        MathFunction::Clamp if signed => {
            |a, low, high| (a as i32).max(low as i32).min(high as i32) as u32
        }
        MathFunction::Clamp => |a, low, high| a.max(low).min(high),
        MathFunction::ExtractBits if signed => |a, offset, count| {
            let (offset, count) = bits(offset, count);
            match count {
                0 => 0,
                _ => ((a << (32 - offset - count)) as i32 >> (32 - count)) as u32,
            }
        },
        MathFunction::ExtractBits => |a, offset, count| {
            let (offset, count) = bits(offset, count);
            match count {
                0 => 0,
                _ => a << (32 - offset - count) >> (32 - count),
            }
        },
        _ => return None,
    })
}

/// Limits a range of bits to the 32 bits of a word.
fn bits(offset: u32, count: u32) -> (u32, u32) {
    let first = offset.min(32);
    (first, count.min(32 - first))
}

fn insert_bits(a: u32, new: u32, offset: u32, count: u32) -> u32 {
    let (offset, count) = bits(offset, count);
    if count == 0 {
        return a;
    }
    let mask = u32::MAX >> (32 - count) << offset;
    (a & !mask) | ((new << offset) & mask)
}

fn ldexp(a: f32, exponent: i32) -> f32 {
    (f64::from(a) * 2f64.powi(exponent.clamp(-300, 300))) as f32
}

/// Applies a function to whole vectors or matrices of one lane; returns `None` for a function that is not supported.
fn whole(fun: MathFunction, kind: ScalarKind, a: &[u32], b: &[u32], c: &[u32]) -> Option<Vec<u32>> {
    use MathFunction::*;
    let floats = |words: &[u32]| words.iter().copied().map(f).collect::<Vec<f32>>();
    let [x, y, z] = [a, b, c].map(floats);
    let words = |all: Vec<f32>| all.into_iter().map(f32::to_bits).collect::<Vec<u32>>();
    let scale = |by: f32, of: &[f32]| of.iter().map(|x| x * by).collect::<Vec<f32>>();
    let bytes = |word: &[u32]| word.first().copied().unwrap_or(0).to_le_bytes();
    let packed = |bits, low, scale| pack(bits, x.iter().map(|x| normed(*x, low, scale)));
    let half = |index: u32| (a.first().copied().unwrap_or(0) >> (16 * index)) as u16;
    Some(match fun {
        Dot if kind == ScalarKind::Float => words(vec![dot(&x, &y)]),
        Dot => {
            let terms = a.iter().zip(b).map(|(a, b)| a.wrapping_mul(*b));
            vec![terms.fold(0, u32::wrapping_add)]
        }
        Dot4I8Packed => {
            let [a, b] = [a, b].map(|packed| bytes(packed).map(|byte| i32::from(byte as i8)));
            vec![a.iter().zip(b).map(|(a, b)| a * b).sum::<i32>() as u32]
        }
        Dot4U8Packed => {
            let [a, b] = [a, b].map(|packed| bytes(packed).map(u32::from));
            vec![a.iter().zip(b).map(|(a, b)| a * b).sum()]
        }
        Cross => {
            let ([a0, a1, a2], [b0, b1, b2]) = (x.try_into().ok()?, y.try_into().ok()?);
            words(vec![
                a1 * b2 - a2 * b1,
                a2 * b0 - a0 * b2,
                a0 * b1 - a1 * b0,
            ])
        }
        Length => words(vec![dot(&x, &x).sqrt()]),
        Distance => {
            let apart: Vec<f32> = x.iter().zip(&y).map(|(x, y)| x - y).collect();
            words(vec![dot(&apart, &apart).sqrt()])
        }
        Normalize => words(scale(1.0 / dot(&x, &x).sqrt(), &x)),
        FaceForward => words(scale(if dot(&y, &z) < 0.0 { 1.0 } else { -1.0 }, &x)),
        Reflect => {
            let twice = 2.0 * dot(&y, &x);
            words(x.iter().zip(&y).map(|(x, y)| x - twice * y).collect())
        }
        Refract => {
            let eta = *z.first()?;
            let along = dot(&y, &x);
            let k = 1.0 - eta * eta * (1.0 - along * along);
            let bend = eta * along + k.max(0.0).sqrt();
            let turned = x.iter().zip(&y).map(|(x, y)| eta * x - bend * y);
            words(turned.map(|x| if k < 0.0 { 0.0 } else { x }).collect())
        }
        Modf => {
            let parts = [f32::fract, f32::trunc]
                .iter()
                .flat_map(|part| x.iter().map(|x| part(*x)));
            words(parts.collect())
        }
        Frexp => {
            let (fractions, exponents): (Vec<f32>, Vec<i32>) = x.iter().map(|x| frexp(*x)).unzip();
            let mut all = words(fractions);
            all.extend(exponents.into_iter().map(|exponent| exponent as u32));
            all
        }
        Determinant => words(vec![determinant(&x)]),
        Pack4x8snorm => packed(8, -1.0, 127.0),
        Pack4x8unorm => packed(8, 0.0, 255.0),
        Pack2x16snorm => packed(16, -1.0, 32767.0),
        Pack2x16unorm => packed(16, 0.0, 65535.0),
        Pack2x16float => pack(16, x.iter().map(|x| f16::from_f32(*x).to_bits().into())),
        Pack4xI8 | Pack4xU8 => pack(8, a.iter().map(|a| *a as i32)),
        Pack4xI8Clamp => pack(8, a.iter().map(|a| (*a as i32).clamp(-128, 127))),
        Pack4xU8Clamp => pack(8, a.iter().map(|a| (*a).min(255) as i32)),
        Unpack4x8snorm => {
            let part = |byte| (f32::from(byte as i8) / 127.0).max(-1.0);
            words(bytes(a).map(part).to_vec())
        }
        Unpack4x8unorm => words(bytes(a).map(|byte| f32::from(byte) / 255.0).to_vec()),
        Unpack2x16snorm => {
            let part = |index| (f32::from(half(index) as i16) / 32767.0).max(-1.0);
            words([0, 1].map(part).to_vec())
        }
        Unpack2x16unorm => words(
            [0, 1]
                .map(|index| f32::from(half(index)) / 65535.0)
                .to_vec(),
        ),
        Unpack2x16float => words(
            [0, 1]
                .map(|index| f16::from_bits(half(index)).to_f32())
                .to_vec(),
        ),
        Unpack4xI8 => bytes(a).map(|byte| byte as i8 as u32).to_vec(),
        Unpack4xU8 => bytes(a).map(u32::from).to_vec(),
        _ => return None,
    })
}

/// Returns one word that holds the parts, each of `bits` bits, the first part lowest.
fn pack(bits: u32, parts: impl DoubleEndedIterator<Item = i32>) -> Vec<u32> {
    let low = |part: i32| part as u32 & ((1 << bits) - 1);
    vec![parts.rev().fold(0, |all, part| all << bits | low(part))]
}

/// Limits a number to the range from `low` to 1, and returns it as an integer: 1 becomes `scale`.
fn normed(x: f32, low: f32, scale: f32) -> i32 {
    (0.5 + scale * x.clamp(low, 1.0)).floor() as i32
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Splits a float into a fraction from 0.5 to 1 and an exponent of 2.
fn frexp(a: f32) -> (f32, i32) {
    if a == 0.0 || !a.is_finite() {
        return (a, 0);
    }
    let wide = f64::from(a).to_bits();
    let exponent = (wide >> 52 & 0x7ff) as i32 - 1022;
    let fraction = f64::from_bits(wide & !(0x7ff << 52) | 1022 << 52);
    (fraction as f32, exponent)
}

/// Returns the determinant of a square matrix, expanded along the first column.
fn determinant(matrix: &[f32]) -> f32 {
    let size = matrix.len().isqrt();
    if size <= 1 {
        return matrix.first().copied().unwrap_or(1.0);
    }
    let minor = |row: usize| {
        let later_columns = matrix[size..].iter().enumerate();
        later_columns
            .filter(move |(index, _)| index % size != row)
            .map(|(_, value)| *value)
            .collect::<Vec<f32>>()
    };
    let sign = |row: usize| if row.is_multiple_of(2) { 1.0 } else { -1.0 };
    (0..size)
        .map(|row| sign(row) * matrix[row] * determinant(&minor(row)))
        .sum()
}

/// Transposes a matrix; `rows` is the length of the argument's columns.
pub(crate) fn transpose(rows: usize, a: &[u32], out: &mut [u32], lanes: usize) {
    let columns = a.len() / lanes / rows;
    for column in 0..columns {
        for row in 0..rows {
            let from = &a[(column * rows + row) * lanes..][..lanes];
            out[(row * columns + column) * lanes..][..lanes].copy_from_slice(from);
        }
    }
}
