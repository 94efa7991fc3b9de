//! The embedding table: rows looked up by token number, and their gradients added back in a fixed order.
//! It knows nothing of the head that shares the table; `backward_add` lets the two gradients meet.

use rayon::prelude::*;

use super::rows_per_task;

/// `out[n] = weight[tokens[n]]`: weight is V × D, out N × D.
///
/// # Panics
/// If the lengths do not fit, or a token is not in 0..V.
pub fn forward(out: &mut [f32], weight: &[f32], tokens: &[i32], width: usize) {
    assert_eq!(out.len(), tokens.len() * width);
    let rows = rows_per_task(width);
    out.par_chunks_mut(rows * width)
        .zip(tokens.par_chunks(rows))
        .for_each(|(out, tokens)| {
            for (out, token) in out.chunks_exact_mut(width).zip(tokens) {
                let row = usize::try_from(*token).expect("a token number is not negative");
                out.copy_from_slice(&weight[row * width..][..width]);
            }
        });
}

/// `dw[v] = Σ dy[n]` over the n with `tokens[n] = v`, zero where there are none: dy is N × D, dw V × D.
///
/// # Panics
/// If the lengths do not fit, or a token is not in 0..V.
pub fn backward(dw: &mut [f32], dy: &[f32], tokens: &[i32], width: usize) {
    scatter(dw, dy, tokens, width, true);
}

/// `dw[v] += Σ dy[n]`: the same, added to what `dw` holds, such as the gradient of a head that shares the table.
///
/// # Panics
/// If the lengths do not fit, or a token is not in 0..V.
pub fn backward_add(dw: &mut [f32], dy: &[f32], tokens: &[i32], width: usize) {
    scatter(dw, dy, tokens, width, false);
}

/// Every task owns a range of table rows and looks through all tokens for them, so no two tasks write one row.
fn scatter(dw: &mut [f32], dy: &[f32], tokens: &[i32], width: usize, clear: bool) {
    assert_eq!(dy.len(), tokens.len() * width);
    let vocabulary = dw.len() / width;
    for token in tokens {
        assert!(
            usize::try_from(*token).is_ok_and(|token| token < vocabulary),
            "token {token} of {vocabulary}"
        );
    }
    // Looking through the tokens costs every task the same; larger ranges keep that small beside the adding.
    let rows = rows_per_task(width).max(vocabulary.div_ceil(64));
    dw.par_chunks_mut(rows * width)
        .enumerate()
        .for_each(|(task, dw)| {
            if clear {
                dw.fill(0.0);
            }
            let (first, owned) = (task * rows, dw.len() / width);
            for (token, dy) in tokens.iter().zip(dy.chunks_exact(width)) {
                let row = (*token as usize).wrapping_sub(first);
                if row < owned {
                    add(&mut dw[row * width..][..width], dy);
                }
            }
        });
}

simd! {
    fn add(to: &mut [f32], from: &[f32]) {
        for (to, from) in to.iter_mut().zip(from) {
            *to += *from;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{assert_near, numbers, wide};
    use super::*;

    #[test]
    fn looks_up_and_adds_back() {
        for (n, v, d) in [(1, 1, 1), (7, 5, 3), (300, 997, 33)] {
            let (weight, dy) = (numbers(1, v * d), numbers(2, n * d));
            let tokens: Vec<i32> = (0..n).map(|row| ((row * row * 7 + 1) % v) as i32).collect();
            let mut out = vec![f32::NAN; n * d];
            forward(&mut out, &weight, &tokens, d);
            let mut want = vec![0.0; v * d];
            for (row, token) in tokens.iter().enumerate() {
                let at = *token as usize * d;
                assert_eq!(out[row * d..][..d], weight[at..][..d]);
                for (want, dy) in want[at..][..d].iter_mut().zip(&dy[row * d..]) {
                    *want += f64::from(*dy);
                }
            }
            let mut dw = vec![f32::NAN; v * d];
            backward(&mut dw, &dy, &tokens, d);
            assert_near(&dw, &want, 1e-6);
            let mut added = weight.clone();
            backward_add(&mut added, &dy, &tokens, d);
            let want: Vec<f64> = wide(&weight)
                .iter()
                .zip(&want)
                .map(|(a, b)| a + b)
                .collect();
            assert_near(&added, &want, 1e-6);
        }
    }

    #[test]
    #[should_panic(expected = "token 5 of 5")]
    fn a_token_outside_the_table_is_refused() {
        backward(&mut [0.0; 10], &[0.0; 2], &[5], 2);
    }
}
