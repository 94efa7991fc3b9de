//! The thresholds that lints, checks of mysteries and marks of panels compare a run with, each with its reason. The limits of stages and
//! exercises are in their course files.

/// The share of a step by which the sum of forward, backward and optimizer may differ from it. The calls of the clock and the loop
/// around the phases take less.
pub const PHASES_MISS_STEP: f64 = 0.05;
/// `PHASES_MISS_STEP` for a step of another program, whose loop may do more than train.
pub const WATCHED_PHASES_MISS_STEP: f64 = 0.15;
/// The share of a step above which waiting for the next batch is reported.
pub const WAITS_FOR_DATA: f64 = 0.10;
/// The percentage of a gradient's elements that may be zero, because a few weights get no gradient in any step.
pub const ZEROS_PERCENT: f64 = 1.0;
/// The smallest plausible duration of a backward pass, in durations of the forward pass. A backward pass has twice the products, so
/// one that is shorter leaves something out.
pub const BACKWARD_SHORT: f64 = 0.5;
/// The share of ln V within which a mean loss counts as guessing.
pub const LOSS_STUCK: f64 = 0.02;
/// Returns the first loss in nats above which the initial weights make confident wrong predictions: those of a standard normal
/// distribution lose several times ln V. Logits of a standard deviation of 1 lose half a nat more than guessing, which is much of ln V
/// where there are few classes; the usual initial weights stay below that.
pub fn highest_first_loss(ln_vocab: f64) -> f64 {
    (1.1 * ln_vocab).max(ln_vocab + 0.5)
}

/// The share of ln V by which the first loss of a mystery's solution may differ from ln V.
pub const FIRST_LOSS_NEAR: f64 = 0.03;
/// The nats by which a loss must be below ln V to count as learning, or below the data's entropy to count as a leak.
pub const LOSS_MOVED: f64 = 0.05;
/// The root mean square of the residual stream that no working model reaches: ordinary ones stay below 100, and f16 ends at 65,504.
pub const STREAM_LARGE: f64 = 1e3;
/// The largest parity that rounding explains, with products of f32: sums in another order differ by about 1e-6 of the largest logit.
pub const PARITY_F32: f64 = 1e-4;
/// The largest parity that rounding explains, with products of f16: ten times the error of an operand, 2⁻¹¹.
pub const PARITY_F16: f64 = 5e-3;
/// The largest parity that rounding explains, with products of bf16: ten times the error of an operand, 2⁻⁸.
pub const PARITY_BF16: f64 = 4e-2;
