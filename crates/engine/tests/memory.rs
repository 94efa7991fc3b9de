//! How many bytes a training step needs at longer contexts. One test in a process of its own, because the counters include
//! every thread.

use burn::tensor::Device;
use engine::allocator;
use protocol::config::{Attention, Loss, Matmul, Norm, Preset, Qkv, RunConfig, Swiglu};
use tiny_llama::data::BatchSource;
use tiny_llama::model::{Model, Tokens, weights};

/// One small block with our own kernels and this attention, on one row.
fn config(context: usize, attention: Attention) -> RunConfig {
    let mut config = RunConfig::preset(Preset::Tiny);
    let m = &mut config.model;
    (m.hidden, m.layers, m.heads, m.kv_heads) = (32, 1, 4, 2);
    (m.ffn, m.vocab) = (64, 50);
    (m.qkv, m.norm, m.swiglu) = (Qkv::Fused, Norm::Fused, Swiglu::FusedActivation);
    (m.loss, m.matmul, m.attention) = (Loss::Fused, Matmul::Own, attention);
    (config.train.batch, config.train.context) = (1, context);
    config
}

/// The peak of bytes in use during forward and backward, without what the model and its tokens hold.
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

/// One test, because two at a time would count each other's bytes.
#[test]
fn bytes_of_a_step() {
    flash_is_linear_in_the_context_and_composed_is_quadratic();
    in_parts_the_logits_do_not_grow_with_the_context();
}

/// All rows at once: logits and their gradient, 2·4·n·V bytes. In parts: 2·4·r·V, and there is one matrix of the weights' size more,
/// in which a part's dW is added to the others.
fn in_parts_the_logits_do_not_grow_with_the_context() {
    let (vocab, hidden) = (4000, 32);
    let peak = |loss: Loss, context: usize| {
        let mut config = config(context, Attention::Flash);
        (config.model.loss, config.model.vocab) = (loss, vocab);
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

/// With bytes a + b·S + c·S², doublings of S add b·S + 3c·S²: twice as much each time where c is 0, up to four times
/// as much where it is not.
fn flash_is_linear_in_the_context_and_composed_is_quadratic() {
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
    let far = activations(&config(4096, Attention::Flash));
    assert!(
        far < 64.0 * 1024.0 * 1024.0,
        "flash over 4096 tokens: {far} bytes"
    );
}
