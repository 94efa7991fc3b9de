//! A tiny Llama: training data, operations with every version and their backward passes, kernels for CPU and GPU, the model.

pub mod data;
pub mod model;
pub mod ops;
