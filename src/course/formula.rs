//! Figures that follow from a configuration alone, each with its formula. Lessons use them, so that no lesson states a number that
//! another preset would make false.

use protocol::config::{Attention, INIT_STD, RunConfig};

/// A computed figure.
pub struct Formula {
    /// The name: `first_loss` is written `{{formula.first_loss}}` in texts, and `of = "formula.first_loss"` in checks.
    pub name: &'static str,
    /// The number of digits after the point.
    pub decimals: usize,
    /// Computes the figure.
    pub value: fn(&RunConfig) -> f64,
}

/// Returns the formula with this name.
pub fn find(name: &str) -> Option<&'static Formula> {
    FORMULAS.iter().find(|formula| formula.name == name)
}

const MIB: f64 = 1024.0 * 1024.0;

macro_rules! formulas {
    ($($name:literal $decimals:literal $value:expr;)+) => {
        /// Every computed figure.
        pub static FORMULAS: &[Formula] =
            &[$(Formula { name: $name, decimals: $decimals, value: $value }),+];
    };
}

formulas! {
    // The logits of small random weights have the variance hidden·σ².
    "first_loss" 3 |c| c.ln_vocab() + hidden(c) * INIT_STD * INIT_STD / 2.0;
    // This is approximate: an embedding row of N(0, 1) has |e|² ≈ hidden, which the final norm divides.
    "broken_loss" 0 |c| hidden(c) / broken_rms(c);
    "broken_rms" 3 broken_rms;
    // This is approximate: products of random unit vectors, and in one row of V the product of a token with itself.
    "broken_logit_std" 1 |c| (hidden(c) + (hidden(c) / broken_rms(c)).powi(2) / vocab(c)).sqrt();
    "sqrt_hidden" 1 |c| hidden(c).sqrt();
    "fixed_logit_std" 2 |c| INIT_STD * hidden(c).sqrt();
    "parameters" 0 parameters;
    "head_parameters" 0 |c| vocab(c) * hidden(c);
    "head_pct" 1 |c| 100.0 * vocab(c) * hidden(c) / parameters(c);
    // AdamW keeps two numbers for each parameter.
    "moments_mib" 1 |c| 8.0 * parameters(c) / MIB;
    // Weights and gradients take 4 bytes for each parameter, and two moments take 8.
    "training_mib" 1 |c| 16.0 * parameters(c) / MIB;
    "missing_moments_mib" 1 |c| 8.0 * (parameters(c) - vocab(c) * hidden(c)) / MIB;
    // The attention scores of one layer.
    "scores_mib" 2 |c| scores(c) / MIB;
    // The logits of all tokens. Their gradient takes as much again.
    "logits_mib" 1 |c| 4.0 * tokens(c) * vocab(c) / MIB;
    // The values that the backward pass needs, without attention scores.
    "activations_mib" 1 |c| activations(c) / MIB;
    // The memory at its peak, with attention scores in memory (composed) and without (linear). Half and double are lengths of the context.
    "peak_composed_half_mib" 1 |c| peak_composed(&with_context(c, c.train.context / 2)) / MIB;
    "peak_composed_mib" 1 |c| peak_composed(c) / MIB;
    "peak_composed_double_mib" 1 |c| peak_composed(&with_context(c, c.train.context * 2)) / MIB;
    "peak_linear_half_mib" 1 |c| peak_linear(&with_context(c, c.train.context / 2)) / MIB;
    "peak_linear_mib" 1 |c| peak_linear(c) / MIB;
    "peak_linear_double_mib" 1 |c| peak_linear(&with_context(c, c.train.context * 2)) / MIB;
    // The goal leaves room for values that the passes need only for a moment.
    "memory_goal_mib" 0 |c| (16.0 * parameters(c) + 2.5 * activations(c)) / MIB;
    // The engine's estimate before a run, which is on the safe side: for this configuration, and for a context of 8,192 with 1 and 64 rows.
    "need_composed_gib" 2 |c| need(c, Attention::Composed);
    "need_flash_gib" 2 |c| need(c, Attention::Flash);
    "need_8192_composed_gib" 1 |c| need(&sized(c, 8192, 1), Attention::Composed);
    "need_8192_flash_gib" 1 |c| need(&sized(c, 8192, 1), Attention::Flash);
    "need_8192x64_composed_gib" 1 |c| need(&sized(c, 8192, 64), Attention::Composed);
    "need_8192x64_flash_gib" 1 |c| need(&sized(c, 8192, 64), Attention::Flash);
    "tokens" 0 tokens;
    // Every matrix product takes 2·M·K·N operations, and attention takes 4·hidden for each pair of tokens.
    "forward_gflop" 2 |c| c.forward_flops() / 1e9;
    // The backward pass computes two products for each product of the forward pass.
    "step_gflop" 2 |c| 3.0 * c.forward_flops() / 1e9;
    "step_mflop" 1 |c| 3.0 * c.forward_flops() / 1e6;
    "attention_flops_pct" 1 |c| 100.0 * c.attention_flops() / c.forward_flops();
    // The largest speed-up of a step if attention cost nothing and time followed FLOPs.
    "attention_limit" 2 |c| 1.0 / (1.0 - c.attention_flops() / c.forward_flops());
    "ffn_flops_pct" 1 |c| 600.0 * tokens(c) * hidden(c) * ffn(c) * layers(c) / c.forward_flops();
    "head_dim" 0 head_dim;
    // The keys of one token in all heads.
    "kv_row" 0 |c| c.model.kv_heads as f64 * head_dim(c);
    // The gradient of a logit is its probability, which is 1/V at the start, divided by the tokens of a step. The figure is its power of two.
    "logit_gradient_exponent" 0 |c| -(vocab(c) * tokens(c)).log2();
    // A gradient below 2⁻²⁵, half of f16's smallest number, becomes zero. The figure is the probability for it, as a multiple of 1/V.
    "f16_floor" 1 |c| vocab(c) * tokens(c) / 2f64.powi(25);
    // The share of tokens that come next nowhere in a step if all tokens are equally frequent: (1 − 1/V)^n.
    "unseen_pct" 0 |c| 100.0 * (1.0 - 1.0 / vocab(c)).powf(tokens(c));
    // The naive kernel has one invocation for each output.
    "swiglu_outputs" 0 |c| tokens(c) * ffn(c);
    // A layer has two products.
    "swiglu_gflop" 2 |c| 4.0 * tokens(c) * hidden(c) * ffn(c) / 1e9;
    // Each output of the naive kernel loads a row of x and a column of both weights.
    "swiglu_naive_mb" 0 |c| swiglu_naive(c) / 1e6;
    // Each operand is loaded once.
    "swiglu_needed_mb" 1 |c| swiglu_needed(c) / 1e6;
    "swiglu_excess" 0 |c| swiglu_naive(c) / swiglu_needed(c);
    "swiglu_naive_intensity" 2 |c| 4.0 * hidden(c) / (12.0 * hidden(c));
    "swiglu_best_intensity" 0 |c| 4.0 * tokens(c) * hidden(c) * ffn(c) / swiglu_needed(c);
    // A layer has nine operations forward and about twice as many backward; the loss and the optimizer have a few.
    "launches_goal" 0 |c| 27.0 * layers(c) + 4.0;
    // Weights and outputs are counted, too.
    "qkv_saving_pct" 0 |c| saving_of_fusion(c, 3.0, hidden(c) * (1.0 + 2.0 * kv_share(c)));
    "gate_up_saving_pct" 0 |c| saving_of_fusion(c, 2.0, 2.0 * ffn(c));
}

macro_rules! sizes {
    ($($name:ident: $section:ident.$field:ident;)+) => {
        $(fn $name(c: &RunConfig) -> f64 {
            c.$section.$field as f64
        })+
    };
}

sizes! {
    hidden: model.hidden;
    layers: model.layers;
    heads: model.heads;
    ffn: model.ffn;
    vocab: model.vocab;
    batch: train.batch;
    context: train.context;
}

fn tokens(c: &RunConfig) -> f64 {
    c.tokens_per_step() as f64
}

fn parameters(c: &RunConfig) -> f64 {
    c.parameters() as f64
}

fn sized(c: &RunConfig, context: usize, batch: usize) -> RunConfig {
    let mut sized = c.clone();
    sized.train.context = context;
    sized.train.batch = batch;
    sized
}

fn with_context(c: &RunConfig, context: usize) -> RunConfig {
    sized(c, context, c.train.batch)
}

fn scores(c: &RunConfig) -> f64 {
    4.0 * batch(c) * heads(c) * context(c) * context(c)
}

/// Returns the bytes that are kept for the backward pass if no scores are kept. For each token, a layer keeps 7 rows of the residual
/// stream's width and 3 of the feed-forward block's; each row of logits is kept twice. This was fitted to peaks of flash attention on
/// the CPU, and is right within 10 % at tiny.
fn activations(c: &RunConfig) -> f64 {
    let layer = 7.0 * hidden(c) + 3.0 * ffn(c);
    4.0 * (tokens(c) * layers(c) * layer + 2.0 * c.logit_rows() as f64 * vocab(c))
}

fn peak_linear(c: &RunConfig) -> f64 {
    16.0 * parameters(c) + activations(c)
}

/// Returns the peak in bytes if scores are in memory: each layer keeps the softmax of its scores, and the backward pass of one layer has
/// two more matrices of this size.
fn peak_composed(c: &RunConfig) -> f64 {
    peak_linear(c) + (layers(c) + 2.0) * scores(c)
}

/// Returns the memory that the engine estimates before a run, in GiB.
fn need(c: &RunConfig, attention: Attention) -> f64 {
    let mut changed = c.clone();
    changed.model.attention = attention;
    changed.memory_estimate() as f64 / 1024.0 / MIB
}

fn head_dim(c: &RunConfig) -> f64 {
    hidden(c) / heads(c).max(1.0)
}

fn kv_share(c: &RunConfig) -> f64 {
    c.model.kv_heads as f64 / heads(c).max(1.0)
}

/// Returns the percentage of memory traffic that a fused product saves: it reads x once, instead of once for each of `products`. `out` is
/// the number of its output columns.
fn saving_of_fusion(c: &RunConfig, products: f64, out: f64) -> f64 {
    let x = tokens(c) * hidden(c);
    let rest = hidden(c) * out + tokens(c) * out;
    100.0 * (1.0 - (x + rest) / (products * x + rest))
}

fn swiglu_naive(c: &RunConfig) -> f64 {
    12.0 * tokens(c) * ffn(c) * hidden(c)
}

fn swiglu_needed(c: &RunConfig) -> f64 {
    4.0 * (tokens(c) * hidden(c) + 2.0 * hidden(c) * ffn(c) + tokens(c) * ffn(c))
}

/// Returns the root mean square of the residual stream after the last layer, with N(0, 1) embeddings and linear layers uniform within
/// ±1/√(inputs). Such a layer turns unit variance into 1/3. Feed-forward: E(silu(g)²)·E(u²)/3 = 0.011. Attention:
/// near-uniform weights over t positions leave about (1/9)/t, a mean of H(T)/(9·T); later layers average inputs that
/// share their past, which raises 1/9 to 0.16 (fitted to simulations at tiny, small and medium; within 1 %).
fn broken_rms(c: &RunConfig) -> f64 {
    let positions = c.train.context.max(1);
    let harmonic: f64 = (1..=positions).map(|t| 1.0 / t as f64).sum();
    (1.0 + layers(c) * (0.0112 + 0.16 * harmonic / positions as f64)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::config::Preset;

    /// Fails if a figure differs from the wanted one by more than this share of it.
    #[track_caller]
    fn assert_near(found: f64, wanted: f64, share: f64) {
        assert!(
            (found / wanted - 1.0).abs() <= share,
            "{found} is not within {share} of {wanted}"
        );
    }

    #[test]
    fn the_formulas_give_the_figures_measured_elsewhere() {
        for (preset, name, wanted, share) in [
            // These three losses were computed with PyTorch and numpy.
            (Preset::Small, "broken_loss", 478.0, 0.02),
            (Preset::Tiny, "broken_loss", 122.0, 0.02),
            (Preset::Medium, "broken_loss", 946.5, 0.02),
            (Preset::Small, "broken_logit_std", 27.2, 0.01),
            (Preset::Small, "first_loss", 7.0102, 0.0001),
            (Preset::Small, "head_pct", 1.601, 0.001),
            (Preset::Tiny, "head_pct", 11.5, 0.01),
            (Preset::Small, "missing_moments_mib", 240.07, 0.001),
            (Preset::Small, "step_gflop", 202.9, 0.001),
            (Preset::Small, "attention_flops_pct", 3.2, 0.02),
            (Preset::Small, "swiglu_naive_mb", 12_885.0, 0.001),
            (Preset::Small, "swiglu_needed_mb", 18.9, 0.01),
            (Preset::Small, "swiglu_excess", 682.0, 0.01),
            (Preset::Small, "qkv_saving_pct", 33.3, 0.01),
            (Preset::Small, "gate_up_saving_pct", 7.1, 0.02),
        ] {
            let formula = find(name).expect("a known formula");
            assert_near((formula.value)(&RunConfig::preset(preset)), wanted, share);
        }
    }

    #[test]
    fn the_memory_formulas_give_the_measured_peaks_within_15_percent() {
        // Peaks in bytes of runs on the CPU at tiny with one row, 2026-11-22: layers, context, composed, flash.
        let measured = [
            (2, 768, 62.22e6, 32.03e6),
            (2, 1536, 193.27e6, 54.05e6),
            (2, 3072, 696.03e6, 98.09e6),
            (4, 1024, 156.50e6, 65.35e6),
        ];
        for (layers, context, composed, flash) in measured {
            let mut config = with_context(&RunConfig::preset(Preset::Tiny), context);
            config.model.layers = layers;
            config.train.batch = 1;
            assert_near(peak_composed(&config), composed, 0.15);
            assert_near(peak_linear(&config), flash, 0.15);
        }
    }
}
