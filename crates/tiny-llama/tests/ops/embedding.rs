//! The embedding, with tokens that repeat and tokens that never occur.

use burn::tensor::{Device, Int, Tensor, TensorData};
use protocol::config::Matmul;
use tiny_llama::ops::embedding::Embedding;
use tiny_llama::ops::shared_work::SharedWork;

use crate::ops::case::Case;
use crate::ops::formula;
use crate::ops::matrix::Matrix;

/// Copies tokens to the device, as the model does.
pub(super) fn tokens_on(tokens: &[i32], device: &Device) -> Tensor<1, Int> {
    let data = TensorData::new(tokens.to_vec(), [tokens.len()]);
    Tensor::from_data(data, (&device.clone().inner(), burn::tensor::DType::I32))
}

fn rows_by_token(device: &Device) {
    for (vocab, d, tokens) in [
        (2, 1, vec![1]),
        (997, 33, vec![996, 0, 996, 5, 5, 5, 996]),
        (11, 130, (0..70).map(|i| (i * i) % 7).collect()),
        (50, 64, (0..1300).map(|i| (i * i * 7 + 3) % 50).collect()),
    ] {
        let n = tokens.len();
        let versions = [Matmul::Library, Matmul::Own].map(|version| Embedding {
            tokens: tokens_on(&tokens, device),
            version,
            shared: SharedWork::default(),
        });
        Case {
            name: &format!("{n} of {vocab} tokens, width {d}"),
            inputs: [Matrix::random(1, vocab, d, 1.0)],
            dy: Matrix::random(2, n, d, 1.0),
            formula: &|[w]| formula::embedding(w, &tokens),
        }
        .check(device, &versions);
    }
}

crate::ops::on_both_devices!(rows_by_token);
