//! What is computed: operations, the model, golden values of PyTorch, f16.

#[path = "support/adapter.rs"]
mod adapter;
#[path = "golden.rs"]
mod golden;
#[path = "half.rs"]
mod half;
#[path = "ops.rs"]
mod ops;
