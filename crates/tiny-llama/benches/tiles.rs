//! Measures the planner's table of tiles again. `cargo bench --bench tiles -- small f16` prints for each product of a step which tile is fastest,
//! and which one the planner takes. The arguments are presets and formats (`f32`, `f16`, `split`); without any, it measures `small` in all
//! formats of the device.

use std::time::Instant;

use burn::tensor::{Device, DeviceKind};
use protocol::config::{Preset, RunConfig};
use tiny_llama::ops::adapter;
use tiny_llama::ops::format::Format;
use tiny_llama::ops::linear::{TileRun, tile_runs};

/// The number of launches that are measured together.
const LAUNCHES: u32 = 20;
/// The number of measurements, of which the median counts.
const ROUNDS: usize = 5;

fn main() {
    let named: Vec<String> = std::env::args().skip(1).collect();
    // `cargo test --all-targets` runs this file without the flag.
    if !named.iter().any(|argument| argument == "--bench") {
        return println!("tiles: nothing is measured here; cargo bench --bench tiles");
    }
    let is_named = |name: &str| named.iter().any(|argument| argument == name);
    let options = Device::wgpu_options().device_kind(DeviceKind::DefaultDevice);
    let device = match options.init() {
        Ok(device) => device,
        Err(error) => return eprintln!("no adapter: {error:?}"),
    };
    let formats = [
        ("f32", Format::Full),
        ("f16", Format::Native),
        ("split", Format::Split),
    ];
    let names_no_format = !formats.iter().any(|(name, _)| is_named(name));
    let is_measured = |(name, format): &(&str, Format)| {
        (is_named(name) || names_no_format)
            && (adapter::is_any_with_matrix_cores() || !format.on_matrix_cores())
    };
    let mut presets: Vec<Preset> = named
        .iter()
        .filter_map(|argument| argument.parse().ok())
        .collect();
    if presets.is_empty() {
        presets.push(Preset::Small);
    }
    for preset in presets {
        for (name, format) in formats.iter().filter(|format| is_measured(format)) {
            for (product, sizes, transposed) in products(preset) {
                let [rows, columns, inner] = sizes;
                println!("\n{preset:?} {name}, {product}: {rows} × {columns} over {inner}");
                report(&device, tile_runs(&device, *format, sizes, transposed));
            }
        }
    }
}

/// Prints the times of tiles, the fastest first.
fn report(device: &Device, tiles: Vec<TileRun>) {
    let mut timed: Vec<(f64, TileRun)> = tiles
        .into_iter()
        .map(|tile| (microseconds(device, &tile), tile))
        .collect();
    timed.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    for (i, (time, tile)) in timed.iter().enumerate() {
        let wins = if i == 0 { "  fastest" } else { "" };
        let planned = if tile.planned { "  planned" } else { "" };
        println!("  {time:9.1} µs  {}{wins}{planned}", tile.name);
    }
}

/// Returns the median time of a launch in µs. The first launch, which compiles, does not count.
fn microseconds(device: &Device, tile: &TileRun) -> f64 {
    let wait = || device.sync().expect("the device works");
    tile.launch();
    wait();
    let mut times = [(); ROUNDS].map(|()| {
        let start = Instant::now();
        (0..LAUNCHES).for_each(|_| tile.launch());
        wait();
        start.elapsed().as_secs_f64() * 1e6 / f64::from(LAUNCHES)
    });
    times.sort_by(f64::total_cmp);
    times[ROUNDS / 2]
}

/// The name of a product; its rows, columns and inner dimension; and whether A and B are stored transposed.
type NamedProduct = (String, [usize; 3], [bool; 2]);

/// Returns the products of a block and of the head, forward and backward.
fn products(preset: Preset) -> Vec<NamedProduct> {
    let config = RunConfig::preset(preset);
    let model = &config.model;
    let n = config.train.batch * config.train.context;
    let d = model.hidden;
    let kv = d / model.heads * model.kv_heads;
    let layers = [
        ("qkv", d, d + 2 * kv),
        ("o", d, d),
        ("gate-up", d, 2 * model.ffn),
        ("down", model.ffn, d),
        ("head", d, model.vocab),
    ];
    let by_layer = layers.map(|(name, inputs, outputs)| {
        [
            (name.to_owned(), [n, outputs, inputs], [false, true]),
            (
                format!("dx of {name}"),
                [n, inputs, outputs],
                [false, false],
            ),
            (format!("dW of {name}"), [outputs, inputs, n], [true, false]),
        ]
    });
    by_layer.concat()
}
