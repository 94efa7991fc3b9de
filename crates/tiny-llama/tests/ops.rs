//! Every version of every operation, run as the model runs it (`ops::apply` on tensors with autodiff). Outputs are compared with the formula in
//! double precision, gradients with those of the composed version and with central differences of the formula. Each test runs on the CPU
//! device and through wgpu, on a CPU driver of Vulkan or else on a GPU; without an adapter, the second run is skipped.

#[path = "ops/attention.rs"]
mod attention;
#[path = "ops/case.rs"]
pub(crate) mod case;
#[path = "ops/embedding.rs"]
mod embedding;
#[path = "ops/formula.rs"]
mod formula;
#[path = "ops/lengths.rs"]
mod lengths;
#[path = "ops/linear.rs"]
mod linear;
#[path = "ops/long.rs"]
mod long;
#[path = "ops/loss.rs"]
mod loss;
#[path = "ops/matrix.rs"]
mod matrix;
#[path = "ops/norm.rs"]
mod norm;
#[path = "ops/optimizer.rs"]
mod optimizer;
#[path = "ops/rope.rs"]
mod rope;
#[path = "ops/swiglu.rs"]
mod swiglu;

/// Makes two tests of each function: one on the CPU device and one through wgpu.
macro_rules! on_both_devices {
    ($($test:ident),+ $(,)?) => {
        mod cpu {
            $(#[test] fn $test() { super::$test(&crate::ops::case::cpu()); })+
        }
        mod wgpu {
            $(#[test] fn $test() {
                if let Some(held) = crate::ops::case::wgpu() { super::$test(&held.device); }
            })+
        }
    };
}
pub(crate) use on_both_devices;
