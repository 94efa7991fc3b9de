//! Mean cross-entropy of logits against class numbers, forward and backward, apart or in one pass.
//! Logits are used as they are: no label smoothing, no ignored classes.

use rayon::prelude::*;

use super::{exp, max, rows_per_task, sum};

/// The mean over rows of `lse - logits[target]`, with `lse = ln Σ exp(logits)`: logits are N × V; writes `lse`, N.
///
/// The largest logit of a row is subtracted first, so nothing overflows. Rows are averaged in double precision.
///
/// # Panics
/// If the lengths do not fit, or a target is not in 0..V.
#[must_use]
pub fn forward(lse: &mut [f32], logits: &[f32], targets: &[i32]) -> f32 {
    let width = check(logits, targets);
    assert_eq!(lse.len(), targets.len());
    let rows = rows_per_task(width);
    let inputs = logits
        .par_chunks(rows * width)
        .zip(targets.par_chunks(rows));
    let tasks = lse.par_chunks_mut(rows).zip(inputs);
    mean(
        tasks.map(|(lse, (logits, targets))| loss_rows(lse, logits, targets)),
        targets.len(),
    )
}

/// `dlogits = dloss · (softmax(logits) - onehot(target)) / N`, from the `lse` that [`forward`] wrote.
///
/// # Panics
/// If the lengths do not fit, or a target is not in 0..V.
pub fn backward(dlogits: &mut [f32], dloss: f32, logits: &[f32], targets: &[i32], lse: &[f32]) {
    let width = check(logits, targets);
    assert_eq!((dlogits.len(), lse.len()), (logits.len(), targets.len()));
    let scale = dloss / targets.len() as f32;
    let rows = rows_per_task(width);
    let inputs = logits
        .par_chunks(rows * width)
        .zip(targets.par_chunks(rows))
        .zip(lse.par_chunks(rows));
    let tasks = dlogits.par_chunks_mut(rows * width).zip(inputs);
    tasks.for_each(|(dlogits, ((logits, targets), lse))| {
        backward_rows(dlogits, logits, targets, lse, scale);
    });
}

/// [`forward`] and [`backward`] with `dloss` 1 in one pass over the logits; also writes `lse`.
///
/// # Panics
/// If the lengths do not fit, or a target is not in 0..V.
#[must_use]
pub fn forward_backward(
    dlogits: &mut [f32],
    lse: &mut [f32],
    logits: &[f32],
    targets: &[i32],
) -> f32 {
    let width = check(logits, targets);
    assert_eq!((dlogits.len(), lse.len()), (logits.len(), targets.len()));
    let scale = 1.0 / targets.len() as f32;
    let rows = rows_per_task(width);
    let inputs = logits
        .par_chunks(rows * width)
        .zip(targets.par_chunks(rows));
    let tasks = dlogits
        .par_chunks_mut(rows * width)
        .zip(lse.par_chunks_mut(rows))
        .zip(inputs);
    let losses = tasks
        .map(|((dlogits, lse), (logits, targets))| both_rows(dlogits, lse, logits, targets, scale));
    mean(losses, targets.len())
}

/// The number of classes.
fn check(logits: &[f32], targets: &[i32]) -> usize {
    assert!(!targets.is_empty(), "no rows to average");
    let width = logits.len() / targets.len();
    assert_eq!(logits.len(), width * targets.len());
    for target in targets {
        assert!(
            usize::try_from(*target).is_ok_and(|target| target < width),
            "target {target} of {width} classes"
        );
    }
    width
}

/// The mean of losses that tasks have summed, added in the tasks' order.
fn mean(totals: impl IndexedParallelIterator<Item = f64>, rows: usize) -> f32 {
    let totals: Vec<f64> = totals.collect();
    (totals.iter().sum::<f64>() / rows as f64) as f32
}

simd! {
    /// Returns the sum of the rows' losses. `lse - logit` would lose digits where both are large.
    fn loss_rows(lse: &mut [f32], logits: &[f32], targets: &[i32]) -> f64 {
        let width = logits.len() / targets.len();
        let mut losses = 0.0;
        for ((lse, logits), target) in lse.iter_mut().zip(logits.chunks_exact(width)).zip(targets) {
            let most = max::<L>(logits);
            let log_total = sum::<L>(logits, |x| exp(x - most)).ln();
            *lse = most + log_total;
            losses += f64::from(log_total) - f64::from(logits[*target as usize] - most);
        }
        losses
    }
}

simd! {
    fn backward_rows(dlogits: &mut [f32], logits: &[f32], targets: &[i32], lse: &[f32], scale: f32) {
        let width = logits.len() / targets.len();
        let rows = dlogits.chunks_exact_mut(width).zip(logits.chunks_exact(width)).zip(targets).zip(lse);
        for (((dlogits, logits), target), lse) in rows {
            for (dlogit, logit) in dlogits.iter_mut().zip(logits) {
                *dlogit = exp(*logit - *lse) * scale;
            }
            dlogits[*target as usize] -= scale;
        }
    }
}

simd! {
    fn both_rows(dlogits: &mut [f32], lse: &mut [f32], logits: &[f32], targets: &[i32], scale: f32) -> f64 {
        let width = logits.len() / targets.len();
        let mut losses = 0.0;
        let rows = dlogits.chunks_exact_mut(width).zip(logits.chunks_exact(width)).zip(targets).zip(lse);
        for (((dlogits, logits), target), lse) in rows {
            let most = max::<L>(logits);
            for (dlogit, logit) in dlogits.iter_mut().zip(logits) {
                *dlogit = exp(*logit - most);
            }
            let total = sum::<L>(dlogits, |x| x);
            let log_total = total.ln();
            *lse = most + log_total;
            losses += f64::from(log_total) - f64::from(logits[*target as usize] - most);
            let scale_row = scale / total;
            for dlogit in dlogits.iter_mut() {
                *dlogit *= scale_row;
            }
            dlogits[*target as usize] -= scale;
        }
        losses
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{assert_gradient, assert_near, numbers, wide};
    use super::*;

    fn reference(logits: &[f64], targets: &[i32]) -> f64 {
        let width = logits.len() / targets.len();
        let rows = logits.chunks(width).zip(targets);
        let losses = rows.map(|(row, target)| {
            let most = row.iter().fold(f64::NEG_INFINITY, |most, x| most.max(*x));
            most + row.iter().map(|x| (x - most).exp()).sum::<f64>().ln() - row[*target as usize]
        });
        losses.sum::<f64>() / targets.len() as f64
    }

    #[test]
    fn loss_and_gradient_in_both_forms() {
        for (n, v, size) in [(1, 1, 1.0), (7, 13, 3.0), (5, 97, 30.0)] {
            let logits: Vec<f32> = numbers(1, n * v).iter().map(|x| x * size).collect();
            let targets: Vec<i32> = (0..n).map(|row| ((row * 31 + 5) % v) as i32).collect();
            let (mut lse, mut dlogits) = (vec![f32::NAN; n], vec![f32::NAN; n * v]);
            let want = [reference(&wide(&logits), &targets)];
            let loss = forward(&mut lse, &logits, &targets);
            assert_near(&[loss], &want, 1e-5);
            backward(&mut dlogits, 1.0, &logits, &targets, &lse);
            if v > 1 {
                assert_gradient(&wide(&logits), &dlogits, |logits| {
                    reference(logits, &targets)
                });
            }
            let (separate, apart) = (lse.clone(), dlogits.clone());
            let fused = forward_backward(&mut dlogits, &mut lse, &logits, &targets);
            assert_near(&[fused], &want, 1e-5);
            assert_near(&lse, &wide(&separate), 1e-6);
            assert!(
                dlogits
                    .iter()
                    .zip(&apart)
                    .all(|(a, b)| (a - b).abs() < 1e-5)
            );
        }
    }

    #[test]
    fn huge_logits_do_not_overflow() {
        let logits = [1e4, -1e4, 0.0, -1e4, -1e4, -1e4];
        let (mut lse, mut dlogits) = ([f32::NAN; 2], [f32::NAN; 6]);
        let loss = forward_backward(&mut dlogits, &mut lse, &logits, &[1, 1]);
        assert_near(&[loss], &[1e4 + 3_f64.ln() / 2.0], 1e-6);
        assert_near(
            &dlogits,
            &[0.5, -0.5, 0.0, 1.0 / 6.0, -1.0 / 3.0, 1.0 / 6.0],
            1e-6,
        );
        assert_near(
            &[forward(&mut lse, &logits, &[0, 0])],
            &[3_f64.ln() / 2.0],
            1e-6,
        );
    }

    #[test]
    #[should_panic(expected = "target 3 of 3 classes")]
    fn a_target_outside_the_classes_is_refused() {
        let _ = forward(&mut [0.0], &[0.0; 3], &[3]);
    }
}
