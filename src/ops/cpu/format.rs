//! Rounding to short number formats: the values that products of mixed precision take, kept in f32.

use rayon::prelude::*;

use super::GRAIN;
use crate::config::Precision;
use crate::ops::format::nearest;

/// Every value at the nearest number of `format`.
pub fn rounded(x: &[f32], format: Precision) -> Vec<f32> {
    let mut out = vec![0.0; x.len()];
    out.par_chunks_mut(GRAIN)
        .zip(x.par_chunks(GRAIN))
        .for_each(|(out, x)| match format {
            Precision::F32 => out.copy_from_slice(x),
            Precision::F16 => to_f16(out, x),
            Precision::Bf16 => to_bf16(out, x),
        });
    out
}

simd! {
    fn to_f16(out: &mut [f32], x: &[f32]) {
        for (out, x) in out.iter_mut().zip(x) {
            *out = nearest(*x, Precision::F16);
        }
    }
}

simd! {
    fn to_bf16(out: &mut [f32], x: &[f32]) {
        for (out, x) in out.iter_mut().zip(x) {
            *out = nearest(*x, Precision::Bf16);
        }
    }
}
