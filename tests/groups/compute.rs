//! What is computed: operations, the model, the engine, golden values.

#[path = "../support/adapter.rs"]
mod adapter;
#[path = "../engine.rs"]
mod engine;
#[path = "../golden.rs"]
mod golden;
#[path = "../half.rs"]
mod half;
#[path = "../ops.rs"]
mod ops;
