//! The figures that follow from a configuration's sizes: parameters, operations, bytes.

use super::run::{Attention, Loss, RunConfig};
use crate::Roof;

/// How often a step moves a byte of activations, with composed operations on a CPU: tiny and the batches of stage 7 were measured.
const MOVED: f64 = 25.0;

impl Attention {
    /// Tokens that a token is multiplied with, on average: flash attention leaves out those that the mask hides. The others
    /// are counted as the full T × T product that composed attention is.
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
    /// Rows of logits that exist at a time, of `rows`. In parts: about as many that they take no more memory than the head's input
    /// `[rows, hidden]` or its weights `[vocab, hidden]`, whichever is larger, but not fewer than 256, so that products stay long.
    /// A multiple of 64 lets each part of a tensor start where a GPU can bind it without a copy. (The rule of Hsu et al., 2024,
    /// Liger Kernel, arXiv 2410.10989, section 3.2, counts the input alone: long vocabularies make its products short.)
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
    /// Number of trainable parameters: d·(2d + 2d·kv/H + 3·ffn + 2)·L + V·d + d, the tied head counted once.
    pub fn parameters(&self) -> u64 {
        let m = &self.model;
        let (d, ffn) = (m.hidden as u64, m.ffn as u64);
        let kv = d * m.kv_heads as u64 / (m.heads as u64).max(1);
        d * (2 * d + 2 * kv + 3 * ffn + 2) * m.layers as u64 + m.vocab as u64 * d + d
    }

    /// Tokens in one step.
    pub fn tokens_per_step(&self) -> usize {
        self.train.batch * self.train.context
    }

    /// ln(vocab): the loss of a model that knows nothing.
    pub fn ln_vocab(&self) -> f64 {
        (self.model.vocab as f64).ln()
    }

    /// Rows of logits that exist at a time.
    pub fn logit_rows(&self) -> usize {
        let m = &self.model;
        m.loss
            .rows_at_once(self.tokens_per_step(), m.hidden, m.vocab)
    }

    /// Floating-point operations of one forward pass: matrix products (2·M·K·N each) and attention, as in the model's shapes.
    pub fn forward_flops(&self) -> f64 {
        let m = &self.model;
        let n = self.tokens_per_step() as f64;
        let (d, ffn) = (m.hidden as f64, m.ffn as f64);
        let kv = d * m.kv_heads as f64 / (m.heads as f64).max(1.0);
        let layer = 2.0 * n * d * (2.0 * d + 2.0 * kv + 3.0 * ffn);
        layer * m.layers as f64 + self.attention_flops() + self.head_flops()
    }

    /// Those of the product that gives the logits.
    pub fn head_flops(&self) -> f64 {
        2.0 * self.tokens_per_step() as f64 * (self.model.hidden * self.model.vocab) as f64
    }

    /// Those of attention in all layers: 4·hidden for each pair of tokens.
    pub fn attention_flops(&self) -> f64 {
        let m = &self.model;
        let pairs = self.tokens_per_step() as f64 * m.attention.keys(self.train.context);
        4.0 * pairs * (m.hidden * m.layers) as f64
    }

    /// Bytes a training step needs at least: weights, gradients, two moments, and the activations that it keeps.
    pub fn memory_estimate(&self) -> u64 {
        // Saturates at the largest u64.
        (16.0 * self.parameters() as f64 + self.activation_bytes()) as u64
    }

    /// Seconds that a step takes on a device with these peaks, to within a few times: all of its operations at the peak of arithmetic, and
    /// each activation moved [`MOVED`] times.
    pub fn forecast_s(&self, roof: &Roof) -> f64 {
        let computing = 3.0 * self.forward_flops() / roof.flops.best;
        computing + MOVED * self.activation_bytes() / roof.bytes.best
    }

    /// Bytes of activations that a step keeps for its backward pass (an estimate by shape: about 14 values of width hidden and 5 of width
    /// ffn per token and layer, composed attention's scores, the logits).
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

    /// Bytes that models need which are kept at once and take their steps in turns: the one whose step it is its
    /// [estimate](Self::memory_estimate), each of the others its weights and two moments.
    pub fn memory_in_turns(models: &[&Self]) -> u64 {
        let kept = |model: &Self| 12 * model.parameters();
        let all: u64 = models.iter().map(|model| kept(model)).sum();
        let steps = models.iter();
        let steps = steps.map(|it| it.memory_estimate().saturating_add(all - kept(it)));
        steps.max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Preset;

    #[test]
    fn a_part_of_the_logits_is_no_larger_than_what_is_there_anyway() {
        let rows = |rows, hidden, vocab| Loss::InParts.rows_at_once(rows, hidden, vocab);
        assert_eq!(Loss::Fused.rows_at_once(512, 128, 1000), 512);
        // As large as the weights, as the input, and the least.
        assert_eq!(rows(8192, 1024, 50_000), 1024);
        assert_eq!(rows(8192, 1024, 4000), 2048);
        assert_eq!(rows(1536, 128, 1000), 256);
        // Parts of equal length, whole below a multiple of 64.
        assert_eq!([rows(300, 12, 33), rows(100, 12, 33)], [192, 100]);
        assert_eq!(rows(1, 1, 1_000_000), 1);
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
        let need = |models: &[&RunConfig]| RunConfig::memory_in_turns(models);
        assert_eq!(need(&[&tiny]), tiny.memory_estimate());
        let both = small.memory_estimate() + 12 * tiny.parameters();
        assert_eq!([need(&[&tiny, &small]), need(&[&small, &tiny])], [both; 2]);
        assert_eq!(need(&[]), 0);
    }

    #[test]
    fn flash_attention_multiplies_the_pairs_that_the_mask_leaves() {
        let mut config = RunConfig::preset(Preset::Tiny);
        (config.train.batch, config.train.context) = (2, 3);
        // Of 9 pairs in each of 2 sequences, 6 are on and below the diagonal.
        assert_eq!(config.attention_flops(), (4 * 2 * 9 * 128 * 4) as f64);
        config.model.attention = Attention::Flash;
        assert_eq!(config.attention_flops(), (4 * 2 * 6 * 128 * 4) as f64);
    }
}
