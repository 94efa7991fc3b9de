//! Finds the race in a sum of 64 numbers that lacks a barrier: `cargo run --example race`.

use wgsl_lockstep::{Buffer, Launch, Shader};

const SUM: &str = "@group(0) @binding(0) var<storage, read_write> x: array<f32>;
var<workgroup> sums: array<f32, 64>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) lane: u32) {
    sums[lane] = x[lane];
    workgroupBarrier();
    for (var half = 32u; half > 0u; half /= 2u) {
        if (lane < half) { sums[lane] += sums[lane + half]; }
    }
    if (lane == 0u) { x[0] = sums[0]; }
}";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut buffers = [Buffer::from_f32(0, 0, &[1.0; 64])];
    let report = Shader::parse(SUM)?.run(&Launch::new([1, 1, 1]), &mut buffers, &mut ())?;
    report.faults().for_each(|fault| println!("{fault}"));
    Ok(())
}
