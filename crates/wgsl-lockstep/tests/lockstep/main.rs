//! The interpreter of WGSL: what it computes and what it finds.

mod exact;
mod findings;
mod language;
mod observer;
mod open;
mod properties;
