//! The figures that follow from a configuration's sizes: parameters, operations, bytes.

use super::run::{Attention, Loss, RunConfig};
use crate::Peaks;

/// The number of times that a step moves each byte of activations, measured with composed operations on a CPU at `tiny` and at the batches
/// of stage 7.
const ACTIVATION_MOVES: f64 = 25.0;

impl Attention {
    /// Returns the number of tokens that a token is multiplied with, on average. Flash attention skips those that the mask hides; the other
    /// versions multiply all of them.
    pub fn keys(self, context: usize) -> f64 {
        let all = context as f64;
        if self == Self::Flash {
            (all + 1.0) / 2.0
        } else {
            all
        }
    }
}

impl Loss {
    /// Returns the number of rows of logits, of `rows` in all, that exist at a time. In parts, the logits take about as much memory as the
    /// head's input `[rows, hidden]` or its weights `[vocab, hidden]`, whichever is larger. A part has at least 256 rows, so that its products
    /// stay long, and a multiple of 64 rows, so that it starts where a GPU can bind it without a copy. (The rule of Hsu et al., 2024, Liger
    /// Kernel, arXiv 2410.10989, section 3.2, compares with the input alone, and a long vocabulary makes its products short.)
    pub fn rows_at_once(self, rows: usize, hidden: usize, vocab: usize) -> usize {
        if self != Self::InParts {
            return rows;
        }
        let most = (rows * hidden / vocab).max(hidden).max(256);
        rows.div_ceil(rows.div_ceil(most))
            .next_multiple_of(64)
            .min(rows)
    }
}

impl RunConfig {
    /// Returns the number of trainable parameters: d·(2d + 2d·kv/H + 3·ffn + 2)·L + V·d + d. The tied head counts once.
    pub fn parameters(&self) -> u64 {
        let m = &self.model;
        let d = m.hidden as u64;
        let ffn = m.ffn as u64;
        let kv = d * m.kv_heads as u64 / (m.heads as u64).max(1);
        d * (2 * d + 2 * kv + 3 * ffn + 2) * m.layers as u64 + m.vocab as u64 * d + d
    }

    /// Returns the number of tokens in one step.
    pub fn tokens_per_step(&self) -> usize {
        self.train.batch * self.train.context
    }

    /// Returns ln(vocab), the loss in nats of a model that knows nothing.
    pub fn ln_vocab(&self) -> f64 {
        (self.model.vocab as f64).ln()
    }

    /// Returns the number of rows of logits that exist at a time.
    pub fn logit_rows(&self) -> usize {
        let m = &self.model;
        m.loss
            .rows_at_once(self.tokens_per_step(), m.hidden, m.vocab)
    }

    /// Returns the floating-point operations of one forward pass: matrix products, 2·M·K·N each, and attention.
    pub fn forward_flops(&self) -> f64 {
        let m = &self.model;
        let n = self.tokens_per_step() as f64;
        let d = m.hidden as f64;
        let ffn = m.ffn as f64;
        let kv = d * m.kv_heads as f64 / (m.heads as f64).max(1.0);
        let layer = 2.0 * n * d * (2.0 * d + 2.0 * kv + 3.0 * ffn);
        layer * m.layers as f64 + self.attention_flops() + self.head_flops()
    }

    /// Returns the floating-point operations of the forward product that gives the logits.
    pub fn head_flops(&self) -> f64 {
        2.0 * self.tokens_per_step() as f64 * (self.model.hidden * self.model.vocab) as f64
    }

    /// Returns the floating-point operations of attention in all layers of one forward pass: 4·hidden for each pair of tokens.
    pub fn attention_flops(&self) -> f64 {
        let m = &self.model;
        let pairs = self.tokens_per_step() as f64 * m.attention.keys(self.train.context);
        4.0 * pairs * (m.hidden * m.layers) as f64
    }

    /// Returns the fewest bytes that a training step needs: weights, gradients, two moments, and the activations that it keeps.
    pub fn memory_estimate(&self) -> u64 {
        // The conversion saturates at the largest u64.
        (16.0 * self.parameters() as f64 + self.activation_bytes()) as u64
    }

    /// Returns a rough forecast of a step's seconds on a device with these peaks, which can be wrong by a few times: all operations at the
    /// peak of arithmetic, and each activation moved [`ACTIVATION_MOVES`] times.
    pub fn forecast_s(&self, peaks: &Peaks) -> f64 {
        let computing = 3.0 * self.forward_flops() / peaks.flops.best;
        computing + ACTIVATION_MOVES * self.activation_bytes() / peaks.bytes.best
    }

    /// Returns an estimate of the bytes of activations that a step keeps for its backward pass: about 14 values of width hidden and 5 of
    /// width ffn for each token and layer, the scores of composed attention, and the logits.
    fn activation_bytes(&self) -> f64 {
        let m = &self.model;
        let n = self.train.batch as f64 * self.train.context as f64;
        let scores = match m.attention {
            Attention::Composed | Attention::Kernel => {
                3.0 * n * (m.heads * self.train.context) as f64
            }
            Attention::Flash => 0.0,
        };
        let layer = n * (14 * m.hidden + 5 * m.ffn) as f64 + scores;
        let logits = self.logit_rows() as f64 * m.vocab as f64;
        4.0 * (layer * m.layers as f64 + 3.0 * logits)
    }

    /// Returns the bytes that several models need together if they take their steps in turns. The model whose turn it is needs its
    /// [estimate](Self::memory_estimate), each other model its weights and two moments.
    pub fn memory_in_turns(models: &[&Self]) -> u64 {
        let kept = |model: &Self| 12 * model.parameters();
        let all: u64 = models.iter().map(|model| kept(model)).sum();
        models
            .iter()
            .map(|model| model.memory_estimate().saturating_add(all - kept(model)))
            .max()
            .unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Preset;

    #[test]
    fn a_part_of_the_logits_is_as_large_as_the_weights_or_the_input() {
        let as_large_as_weights = Loss::InParts.rows_at_once(8192, 1024, 50_000);
        let as_large_as_input = Loss::InParts.rows_at_once(8192, 1024, 4000);
        let fewest = Loss::InParts.rows_at_once(1536, 128, 1000);
        assert_eq!(
            [as_large_as_weights, as_large_as_input, fewest],
            [1024, 2048, 256]
        );
    }

    #[test]
    fn parts_of_the_logits_are_about_equally_long() {
        assert_eq!(Loss::InParts.rows_at_once(300, 12, 33), 192);
    }

    #[test]
    fn few_rows_of_logits_are_one_part() {
        assert_eq!(Loss::InParts.rows_at_once(100, 12, 33), 100);
        assert_eq!(Loss::InParts.rows_at_once(1, 1, 1_000_000), 1);
        assert_eq!(Loss::Fused.rows_at_once(512, 128, 1000), 512);
    }

    #[test]
    fn small_has_the_published_number_of_parameters() {
        assert_eq!(RunConfig::preset(Preset::Small).parameters(), 31_977_984);
        assert_eq!(RunConfig::preset(Preset::Medium).parameters(), 189_793_280);
    }

    #[test]
    fn models_in_turns_need_one_set_of_activations() {
        let tiny = RunConfig::preset(Preset::Tiny);
        let small = RunConfig::preset(Preset::Small);
        let both = small.memory_estimate() + 12 * tiny.parameters();
        for (models, bytes) in [
            (&[&tiny][..], tiny.memory_estimate()),
            (&[&tiny, &small], both),
            (&[&small, &tiny], both),
            (&[], 0),
        ] {
            assert_eq!(RunConfig::memory_in_turns(models), bytes);
        }
    }

    #[test]
    fn flash_attention_multiplies_the_pairs_that_the_mask_leaves() {
        let mut config = RunConfig::preset(Preset::Tiny);
        config.train.batch = 2;
        config.train.context = 3;
        assert_eq!(config.attention_flops(), (4 * 2 * 9 * 128 * 4) as f64);

        config.model.attention = Attention::Flash;

        // Of 9 pairs in each of 2 sequences, 6 are on and below the diagonal.
        assert_eq!(config.attention_flops(), (4 * 2 * 6 * 128 * 4) as f64);
    }
}
