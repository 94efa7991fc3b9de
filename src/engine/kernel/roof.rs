//! What the device can do at most, measured once: bytes a second of a plain copy, multiply-adds a second on registers.

use super::gpu::{Gpu, Trouble};

/// The device's measured roofs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Roof {
    /// Read and written, each counted.
    pub bytes_per_s: f64,
    pub flops_per_s: f64,
}

/// Numbers copied: 128 MiB each way, more than most caches hold.
const COPIED: usize = 32 << 20;
const GROUPS: u32 = 16_384;
const REPEATS: usize = 5;
/// Sums of four numbers for each invocation, and rounds of the loop over them.
const SUMS: u32 = 8;
const ROUNDS: u32 = 64;

impl Roof {
    /// Measures both; a few hundred milliseconds on a GPU.
    pub fn measure(gpu: &Gpu) -> Result<Self, Trouble> {
        let copied =
            COPIED as f64 * 8.0 / fastest(gpu, &copy(), &[COPIED, COPIED], [GROUPS, 1, 1])?;
        let invocations = f64::from(GROUPS) * 256.0;
        let operations = invocations * f64::from(SUMS * 4 * ROUNDS * 2);
        let multiplied =
            operations / fastest(gpu, &multiply(), &[GROUPS as usize * 256], [GROUPS, 1, 1])?;
        Ok(Self {
            bytes_per_s: copied,
            flops_per_s: multiplied,
        })
    }

    /// Seconds that this much work takes at the least, and whether it is the bytes that take them.
    pub fn least(&self, flops: f64, bytes: f64) -> (f64, bool) {
        let (computing, moving) = (flops / self.flops_per_s, bytes / self.bytes_per_s);
        (computing.max(moving), moving >= computing)
    }
}

fn fastest(gpu: &Gpu, text: &str, counts: &[usize], grid: [u32; 3]) -> Result<f64, Trouble> {
    let pipeline = gpu.compile(text, counts.len())?;
    let buffers = counts
        .iter()
        .map(|count| gpu.storage(*count))
        .collect::<Result<Vec<_>, _>>()?;
    let bound = gpu.bind(&pipeline, &buffers, counts)?;
    let times = gpu.time(&[(&pipeline, &bound, grid); REPEATS])?;
    let best = times.into_iter().fold(f64::INFINITY, f64::min);
    if best > 0.0 {
        Ok(best)
    } else {
        Err(Trouble::Refused(
            "the device's clock stands still".to_owned(),
        ))
    }
}

/// Neighbouring invocations take neighbouring vectors, each several a grid's length apart.
fn copy() -> String {
    let stride = GROUPS * 256;
    let vectors = COPIED / 4;
    format!(
        "@group(0) @binding(0) var<storage, read_write> a: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> b: array<vec4<f32>>;
@compute @workgroup_size(256) fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
    for (var i = id.x; i < {vectors}u; i += {stride}u) {{ b[i] = a[i]; }}
}}"
    )
}

/// Independent sums, so that none waits for another.
fn multiply() -> String {
    let each = |line: &dyn Fn(u32) -> String| (0..SUMS).map(line).collect::<String>();
    let start = each(&|k| format!("    var s{k} = vec4<f32>(f32(id.x + {k}u)) * 1e-9;\n"));
    let round = each(&|k| format!("        s{k} = fma(s{k}, f, t);\n"));
    let sum = each(&|k| format!(" + s{k}"));
    format!(
        "@group(0) @binding(0) var<storage, read_write> out: array<f32>;
@compute @workgroup_size(256) fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
    let f = vec4<f32>(0.999 + f32(id.y));
    let t = vec4<f32>(0.001 + f32(id.y));
{start}    for (var k = 0u; k < {ROUNDS}u; k += 1u) {{
{round}    }}
    let sum = vec4<f32>(0.0){sum};
    out[id.x] = sum.x + sum.y + sum.z + sum.w;
}}"
    )
}
