//! The bytes that a training step needs at longer contexts. These tests have a process of their own and run one at a time, because the counters
//! include every thread.

use std::sync::{Mutex, PoisonError};

use burn::tensor::Device;
use engine::allocator;
use protocol::config::{Attention, Loss, Matmul, Norm, Preset, Qkv, RunConfig, Swiglu};
use tiny_llama::data::BatchSource;
use tiny_llama::model::{Model, Tokens, weights};

/// Held by the test that counts bytes.
static COUNTING: Mutex<()> = Mutex::new(());

/// Returns a model of one small block with our own kernels and this attention, on one row.
fn config(context: usize, attention: Attention) -> RunConfig {
    let mut config = RunConfig::preset(Preset::Tiny);
    let m = &mut config.model;
    m.hidden = 32;
    m.layers = 1;
    m.heads = 4;
    m.kv_heads = 2;
    m.ffn = 64;
    m.vocab = 50;
    m.qkv = Qkv::Fused;
    m.norm = Norm::Fused;
    m.swiglu = Swiglu::FusedActivation;
    m.loss = Loss::Fused;
    m.matmul = Matmul::Own;
    m.attention = attention;
    config.train.batch = 1;
    config.train.context = context;
    config
}

/// Returns the peak of the bytes in use during forward and backward, without those of the model and its tokens.
fn activations(config: &RunConfig) -> f64 {
    assert!(config.problems().is_empty());
    let device = Device::flex().autodiff();
    let initial = weights::initial(&config.model, config.train.seed);
    let model = Model::new(config, &initial, &device).expect("weights fit");
    let tokens = Tokens::new(&BatchSource::new(config).batch(0), &device);
    // The first step of a size allocates tables and threads.
    drop(model.loss(&tokens, None).backward());
    // The median of five, because another thread may still free what the step before held.
    let mut peaks = [0; 5].map(|_: i32| {
        let before = allocator::current();
        allocator::reset_peak();
        drop(model.loss(&tokens, None).backward());
        allocator::peak().saturating_sub(before)
    });
    peaks.sort_unstable();
    peaks[2] as f64
}

/// All rows of logits at once take 2·4·n·V bytes with their gradient. In parts they take 2·4·r·V bytes, and one more matrix of the weights' size,
/// in which a part's dW is added to the others.
#[test]
fn logits_in_parts_do_not_grow_with_the_context() {
    let _counting = COUNTING.lock().unwrap_or_else(PoisonError::into_inner);
    let vocab = 4000;
    let hidden = 32;
    let peak = |loss: Loss, context: usize| {
        let mut config = config(context, Attention::Flash);
        config.model.loss = loss;
        config.model.vocab = vocab;
        activations(&config)
    };
    let mut all = Vec::new();
    for context in [1024, 2048] {
        let [whole, parts] = [Loss::Fused, Loss::InParts].map(|loss| peak(loss, context));
        let rows = Loss::InParts.rows_at_once(context, hidden, vocab);
        assert_eq!(rows, 256);
        let saved = 8.0 * ((context - rows) * vocab) as f64;
        println!("{context} tokens: {whole} bytes whole, {parts} in parts; {saved} by shape");
        assert!(((whole - parts) / saved - 1.0).abs() < 0.05);
        all.push(parts);
    }
    // What other operations keep of a token takes some kilobytes, its logits 16.
    let token = (all[1] - all[0]) / 1024.0;
    assert!(token < 4.0 * vocab as f64 / 2.0, "{token} bytes a token");
}

/// If S tokens take a + b·S + c·S² bytes, a doubling of S adds b·S + 3c·S² bytes. The next doubling adds twice as much if c is 0, and up to four
/// times as much if it is not.
#[test]
fn flash_is_linear_in_the_context_and_composed_is_quadratic() {
    let _counting = COUNTING.lock().unwrap_or_else(PoisonError::into_inner);
    let growth = |attention: Attention| {
        let [short, middle, long] =
            [512, 1024, 2048].map(|context| activations(&config(context, attention)));
        println!("{attention}: {short} {middle} {long} bytes over 512, 1024, 2048 tokens");
        (long - middle) / (middle - short)
    };
    let flash = growth(Attention::Flash);
    assert!((1.9..2.1).contains(&flash), "flash grows by {flash}");
    let composed = growth(Attention::Composed);
    assert!(
        (3.5..4.1).contains(&composed),
        "composed grows by {composed}"
    );
    // At 4096 tokens each copy of the scores would take 4·4096²·4 bytes = 256 MiB.
    let long = activations(&config(4096, Attention::Flash));
    assert!(
        long < 64.0 * 1024.0 * 1024.0,
        "flash over 4096 tokens: {long} bytes"
    );
}
