//! The tests of what the model computes: each operation, PyTorch's golden values, and training in f16.

#[path = "support/adapter.rs"]
mod adapter;
#[path = "golden.rs"]
mod golden;
#[path = "half.rs"]
mod half;
#[path = "ops.rs"]
mod ops;
