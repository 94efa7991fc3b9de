//! Training tokens: a seeded Markov chain whose entropy rate is known, or uniform noise. The entropy rate is the lowest loss that a model can
//! reach, so the screen can show how far a loss is above it.
//!
//! Every batch is fresh and depends only on seed and step, so two runs of one seed see the same tokens.

use protocol::config::{Data, RunConfig};
use protocol::random::Rng;

/// Each token of the chain has at most this many successors.
const SUCCESSORS: usize = 8;
/// The power iteration for the stationary distribution has this many sweeps; the chain mixes in far fewer.
const SWEEPS: usize = 200;

/// A batch of inputs and of the tokens that follow them, `[batch, context]` each, row-major.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    pub inputs: Vec<i32>,
    pub targets: Vec<i32>,
}

/// The source of a run's batches.
#[derive(Clone, Debug)]
pub struct BatchSource {
    /// `None` if the data is noise.
    chain: Option<Chain>,
    batch: usize,
    context: usize,
    vocab: usize,
    seed: u64,
}

/// A chain in which no token follows itself.
#[derive(Clone, Debug)]
struct Chain {
    /// The successors of each token, with their cumulative probabilities.
    next: Vec<Vec<(i32, f64)>>,
    /// The cumulative probabilities of the stationary distribution, from which the first token of a row is drawn.
    stationary: Vec<f64>,
    /// The entropy rate in nats.
    entropy: f64,
}

impl BatchSource {
    /// Makes the source that a configuration asks for.
    pub fn new(config: &RunConfig) -> Self {
        let chain = || Chain::new(config.model.vocab, config.train.seed);
        Self {
            chain: (config.train.data == Data::Markov).then(chain),
            batch: config.train.batch,
            context: config.train.context,
            vocab: config.model.vocab,
            seed: config.train.seed,
        }
    }

    /// Returns the entropy rate in nats. No model can have a lower expected loss.
    pub fn entropy(&self) -> f64 {
        let uniform = || (self.vocab as f64).ln();
        self.chain
            .as_ref()
            .map_or_else(uniform, |chain| chain.entropy)
    }

    /// Returns the batch of one step.
    pub fn batch(&self, step: u64) -> Batch {
        let mut rng = Rng::named(self.seed, "batch", step);
        let mut inputs = Vec::with_capacity(self.batch * self.context);
        let mut targets = Vec::with_capacity(self.batch * self.context);
        for _ in 0..self.batch {
            let mut token = self.first_token(&mut rng);
            for _ in 0..self.context {
                inputs.push(token);
                token = self.token_after(token, &mut rng);
                targets.push(token);
            }
        }
        Batch { inputs, targets }
    }

    fn first_token(&self, rng: &mut Rng) -> i32 {
        match &self.chain {
            Some(chain) => chosen(&chain.stationary, rng.uniform()) as i32,
            None => rng.below(self.vocab) as i32,
        }
    }

    fn token_after(&self, token: i32, rng: &mut Rng) -> i32 {
        match &self.chain {
            Some(chain) => {
                let choices = &chain.next[token as usize];
                let draw = rng.uniform();
                let found = choices.iter().find(|(_, sum)| draw < *sum);
                found.or(choices.last()).map_or(token, |choice| choice.0)
            }
            None => rng.below(self.vocab) as i32,
        }
    }
}

/// Returns the index that a draw from 0..1 chooses among these cumulative probabilities.
fn chosen(cumulative: &[f64], draw: f64) -> usize {
    let index = cumulative.partition_point(|sum| *sum <= draw);
    index.min(cumulative.len() - 1)
}

impl Chain {
    fn new(vocab: usize, seed: u64) -> Self {
        let mut rng = Rng::named(seed, "chain", 0);
        let rows: Vec<Vec<(usize, f64)>> = (0..vocab)
            .map(|token| successors(token, vocab, &mut rng))
            .collect();
        let stationary = stationary(&rows);
        // H = −Σ π(i) Σ P(i,j) ln P(i,j) (Cover and Thomas, Elements of Information Theory, 4.2).
        let row_sum = |row: &[(usize, f64)]| row.iter().map(|(_, p)| p * p.ln()).sum::<f64>();
        Self {
            entropy: rows
                .iter()
                .zip(&stationary)
                .map(|(row, share)| -share * row_sum(row))
                .sum(),
            stationary: cumulative(stationary),
            next: rows
                .into_iter()
                .map(|row| {
                    let (tokens, probabilities): (Vec<_>, Vec<_>) = row.into_iter().unzip();
                    tokens
                        .into_iter()
                        .map(|token| token as i32)
                        .zip(cumulative(probabilities))
                        .collect()
                })
                .collect(),
        }
    }
}

/// Draws the successors of a token with their probabilities, which add to 1.
fn successors(token: usize, vocab: usize, rng: &mut Rng) -> Vec<(usize, f64)> {
    let mut successors: Vec<(usize, f64)> = Vec::new();
    while successors.len() < SUCCESSORS.min(vocab - 1) {
        let next = rng.below(vocab);
        if next != token && successors.iter().all(|(seen, _)| *seen != next) {
            successors.push((next, 0.1 + rng.uniform()));
        }
    }
    let total: f64 = successors.iter().map(|(_, weight)| weight).sum();
    for (_, weight) in &mut successors {
        *weight /= total;
    }
    successors
}

/// Returns the share that each token has of an endless sequence, by power iteration: π ← (π + πP) / 2. The mean of π and πP has the
/// stationary distribution of P and, unlike πP, cannot oscillate.
fn stationary(rows: &[Vec<(usize, f64)>]) -> Vec<f64> {
    let mut share = vec![1.0 / rows.len() as f64; rows.len()];
    for _ in 0..SWEEPS {
        let mut moved: Vec<f64> = share.iter().map(|p| p / 2.0).collect();
        for (token, row) in rows.iter().enumerate() {
            for (next, p) in row {
                moved[*next] += share[token] * p / 2.0;
            }
        }
        share = moved;
    }
    share
}

/// Returns the sums of the first 1, 2, 3… probabilities.
fn cumulative(probabilities: Vec<f64>) -> Vec<f64> {
    let mut sum = 0.0;
    let add = |p| {
        sum += p;
        sum
    };
    probabilities.into_iter().map(add).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::config::Preset;

    #[test]
    fn batches_depend_on_seed_and_step_alone() {
        let mut config = RunConfig::preset(Preset::Tiny);
        let source = BatchSource::new(&config);
        assert_eq!(source.batch(3), BatchSource::new(&config).batch(3));
        assert_ne!(source.batch(3), source.batch(4));
        config.train.seed = 43;
        assert_ne!(source.batch(3), BatchSource::new(&config).batch(3));
    }

    #[test]
    fn the_chain_never_stays_and_its_measured_entropy_is_the_stated_one() {
        let mut config = RunConfig::preset(Preset::Tiny);
        config.model.vocab = 20;
        config.train.context = 5000;
        let source = BatchSource::new(&config);
        let batch = source.batch(0);
        assert!(batch.inputs.iter().zip(&batch.targets).all(|(a, b)| a != b));
        // Plug-in estimate from 40,000 transitions of a chain with 160 of them: biased low by about 140/80,000 nats.
        let mut counts = vec![[0.0_f64; 20]; 20];
        for (a, b) in batch.inputs.iter().zip(&batch.targets) {
            counts[*a as usize][*b as usize] += 1.0;
        }
        let total = batch.inputs.len() as f64;
        let measured: f64 = counts
            .iter()
            .map(|row| {
                let sum: f64 = row.iter().sum();
                row.iter()
                    .filter(|n| **n > 0.0)
                    .map(|n| -(n / total) * (n / sum).ln())
                    .sum::<f64>()
            })
            .sum();
        assert!(
            (measured - source.entropy()).abs() < 0.02,
            "{measured} against {}",
            source.entropy()
        );
    }

    #[test]
    fn two_tokens_alternate() {
        let mut config = RunConfig::preset(Preset::Tiny);
        config.model.vocab = 2;
        let source = BatchSource::new(&config);
        assert!(source.entropy().abs() < 1e-12);
        assert!(source.batch(0).inputs.iter().all(|t| (0..2).contains(t)));
    }
}
