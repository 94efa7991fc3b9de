//! What is computed: operations, the model, the engine, kernels of exercises.

#[path = "../support/adapter.rs"]
mod adapter;
#[path = "../engine.rs"]
mod engine;
#[path = "../golden.rs"]
mod golden;
#[path = "../half.rs"]
mod half;
#[path = "../kernel.rs"]
mod kernel;
#[path = "../ops.rs"]
mod ops;
