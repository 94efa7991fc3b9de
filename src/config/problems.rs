//! Why a configuration cannot run.

use super::{MAX_CONTEXT, RunConfig};

/// One thing wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub key: &'static str,
    pub what: String,
}

impl RunConfig {
    /// Every reason why this cannot run, each with the key at fault, what is wrong and what would be right.
    pub fn problems(&self) -> Vec<Problem> {
        let m = &self.model;
        let t = &self.train;
        let mut found = Vec::new();
        let mut report = |key: &'static str, what: String| found.push(Problem { key, what });
        for (key, value) in [
            ("model.hidden", m.hidden),
            ("model.layers", m.layers),
            ("model.heads", m.heads),
            ("model.kv-heads", m.kv_heads),
            ("model.ffn", m.ffn),
            ("train.batch", t.batch),
            ("train.context", t.context),
        ] {
            if value == 0 {
                report(key, format!("{key} is 0; write 1 or more"));
            }
        }
        if m.vocab < 2 {
            report(
                "model.vocab",
                format!(
                    "model.vocab is {}; a prediction needs at least 2 tokens",
                    m.vocab
                ),
            );
        }
        if m.heads > 0 && !m.hidden.is_multiple_of(m.heads) {
            let near = nearest_divisor(m.hidden, m.heads);
            report(
                "model.heads",
                format!(
                    "{} heads do not divide hidden = {}; write heads = {near}",
                    m.heads, m.hidden
                ),
            );
        } else if m.heads > 0 && m.hidden > 0 && (m.hidden / m.heads) % 2 == 1 {
            let dh = m.hidden / m.heads;
            report(
                "model.heads",
                format!(
                    "the head dimension hidden / heads = {dh} is odd; rotary embedding turns pairs, so make it even"
                ),
            );
        }
        if m.kv_heads > 0 && m.heads > 0 && !m.heads.is_multiple_of(m.kv_heads) {
            let near = nearest_divisor(m.heads, m.kv_heads);
            report(
                "model.kv-heads",
                format!(
                    "{} kv-heads do not divide heads = {}; write kv-heads = {near}",
                    m.kv_heads, m.heads
                ),
            );
        }
        if t.context > MAX_CONTEXT {
            report(
                "train.context",
                format!(
                    "a context of {} is over the limit of {MAX_CONTEXT}",
                    t.context
                ),
            );
        }
        if !(t.learning_rate.is_finite() && t.learning_rate > 0.0) {
            report(
                "train.learning-rate",
                format!(
                    "a learning rate of {} trains nothing; write 3e-4",
                    t.learning_rate
                ),
            );
        }
        found
    }
}

fn nearest_divisor(of: usize, wanted: usize) -> usize {
    (1..=of)
        .filter(|d| of.is_multiple_of(*d))
        .min_by_key(|d| d.abs_diff(wanted))
        .unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Preset;

    #[test]
    fn impossible_shapes_name_the_nearest_right_one() {
        let mut config = RunConfig::preset(Preset::Tiny);
        config.model.heads = 3;
        let problems = config.problems();
        assert_eq!(problems[0].key, "model.heads");
        assert!(
            problems[0].what.contains("write heads = 2"),
            "{}",
            problems[0].what
        );
        config = RunConfig::preset(Preset::Tiny);
        config.model.kv_heads = 3;
        assert!(config.problems()[0].what.contains("write kv-heads = 2"));
        config = RunConfig::preset(Preset::Tiny);
        config.train.batch = 0;
        assert!(config.problems()[0].what.contains("train.batch is 0"));
    }
}
