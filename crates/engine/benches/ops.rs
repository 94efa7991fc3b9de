//! Times every version of every operation on a device, forward and backward. Versions take turns, and each figure is a median with its
//! quartiles. FLOPs and bytes follow from the shapes, peaks from the device's calibration.
//! `cargo bench --bench ops -- [FILTER] [--device cpu,vulkan-cpu] [--preset tiny] [--rounds N]`

#[path = "ops/cases.rs"]
mod cases;
#[path = "ops/comparison.rs"]
mod comparison;

use std::num::NonZeroUsize;

use clap::Parser;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use engine::{devices, peaks};
use protocol::config::{Preset, RunConfig};
use protocol::stats::roofline;
use strum::VariantNames;

/// Times every version of every operation on a device.
#[derive(Parser)]
struct Args {
    /// Measures only operations whose name contains one of these words.
    filters: Vec<String>,
    #[arg(long, alias = "devices", value_delimiter = ',', default_value = "cpu")]
    device: Vec<String>,
    #[arg(long, default_value = "tiny", value_parser = PossibleValuesParser::new(Preset::VARIANTS).try_map(|name| name.parse::<Preset>()))]
    preset: Preset,
    #[arg(long, default_value = "15")]
    rounds: NonZeroUsize,
    /// The flag that `cargo bench` passes. Without it, as in `cargo test --all-targets`, nothing is measured.
    #[arg(long, hide = true)]
    bench: bool,
}

impl Args {
    fn wants(&self, name: &str) -> bool {
        self.filters.is_empty() || self.filters.iter().any(|word| name.contains(word))
    }
}

fn main() {
    let args = Args::parse();
    if !args.bench {
        println!("ops: nothing is measured here; cargo bench --bench ops");
        return;
    }
    for device in &args.device {
        if let Err(why) = measure(&args, device) {
            println!("\n{device} is skipped: {why:#}");
        }
    }
}

fn measure(args: &Args, select: &str) -> anyhow::Result<()> {
    let opened = devices::open(select)?;
    let measured = peaks::known_or_measured(&opened, |warning| eprintln!("ops: {warning}"));
    let config = RunConfig::preset(args.preset);
    let batch = config.train.batch;
    let context = config.train.context;
    println!(
        "\n{} on {select}: {}, batch {batch}, context {context}, {} rounds",
        args.preset, opened.info.name, args.rounds
    );
    match &measured {
        Ok(peaks) => println!("{} ({})", roofline::describe(peaks), peaks.date),
        Err(why) => println!("peaks: not measured: {why:#}"),
    }
    // The engine's device thread runs its tasks inside the thread pool too.
    rayon::scope(|_| {
        comparison::print_head();
        for comparison in cases::all(&config, &opened.device, &|name| args.wants(name)) {
            comparison.run(args.rounds.get(), measured.as_ref().ok());
        }
    });
    Ok(())
}
