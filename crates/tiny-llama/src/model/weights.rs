//! Initial weights on the host. Each weight is drawn by a generator of its own, which is seeded with the weight's name. So every device,
//! and both sides of a comparison, start from equal numbers, whether their projections are joined or separate.

use rayon::prelude::*;

use protocol::config::{INIT_STD, Init, ModelConfig};
use protocol::random::Rng;

/// A weight is one matrix `[rows, columns]`; the gain of a norm is `[1, hidden]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Weight {
    pub name: String,
    pub shape: [usize; 2],
    pub values: Vec<f32>,
}

/// Returns the name and the shape of every weight in the model's order. Projections are separate weights here.
pub fn names(m: &ModelConfig) -> Vec<(String, [usize; 2])> {
    let kv = m.hidden / m.heads * m.kv_heads;
    let mut all = vec![("embedding.weight".to_owned(), [m.vocab, m.hidden])];
    for layer in 0..m.layers {
        let mut push =
            |name: &str, shape| all.push((format!("layer.{layer}.{name}.weight"), shape));
        push("attention.q_proj", [m.hidden, m.hidden]);
        push("attention.k_proj", [kv, m.hidden]);
        push("attention.v_proj", [kv, m.hidden]);
        push("attention.o_proj", [m.hidden, m.hidden]);
        push("mlp.gate_proj", [m.ffn, m.hidden]);
        push("mlp.up_proj", [m.ffn, m.hidden]);
        push("mlp.down_proj", [m.hidden, m.ffn]);
        push("norm1", [1, m.hidden]);
        push("norm2", [1, m.hidden]);
    }
    all.push(("norm.weight".to_owned(), [1, m.hidden]));
    all
}

/// Returns the initial weights by the configuration's rule. The rule `library-default` is burn's: the embedding is N(0, 1), linear layers
/// are uniform within ±1/√fan_in (Kaiming with gain 1/√3), and norm gains are 1. Threads draw the weights side by side.
pub fn initial(m: &ModelConfig, seed: u64) -> Vec<Weight> {
    names(m)
        .into_par_iter()
        .map(|(name, shape)| {
            let mut rng = Rng::named(seed, &name, 0);
            let count = shape[0] * shape[1];
            let values = if name.contains("norm") {
                vec![1.0; count]
            } else {
                let draw: Box<dyn FnMut() -> f64> = match m.init {
                    Init::Normal002 => Box::new(move || INIT_STD * rng.normal()),
                    Init::LibraryDefault if name.starts_with("embedding") => {
                        Box::new(move || rng.normal())
                    }
                    Init::LibraryDefault => {
                        let bound = 1.0 / (shape[1] as f64).sqrt();
                        Box::new(move || bound * (2.0 * rng.uniform() - 1.0))
                    }
                };
                std::iter::repeat_with(draw)
                    .take(count)
                    .map(|x| x as f32)
                    .collect()
            };
            Weight {
                name,
                shape,
                values,
            }
        })
        .collect()
}
