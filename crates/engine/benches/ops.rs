//! Times every version of every operation on a device, forward and backward. Versions take turns; each figure is a median
//! with its quartiles. FLOPs and bytes follow from the shapes, peaks from the device's calibration. `cargo bench --bench ops -- [FILTER] [--device cpu,vulkan-cpu] [--preset tiny] [--rounds N]`

#[path = "ops/cases.rs"]
mod cases;
#[path = "ops/comparison.rs"]
mod comparison;

use engine::{devices, roof};
use protocol::config::{Preset, RunConfig};
use strum::VariantNames;

struct Args {
    /// Measures operations whose name contains one of these; all of them where this is empty.
    filters: Vec<String>,
    devices: Vec<String>,
    preset: Preset,
    rounds: usize,
}

fn main() {
    // `cargo test --all-targets` runs this without the flag: it measures nothing there.
    if !std::env::args().any(|arg| arg == "--bench") {
        println!("ops: nothing is measured here; cargo bench --bench ops");
        return;
    }
    let args = match Args::parse(std::env::args().skip(1)) {
        Ok(args) => args,
        Err(why) => {
            eprintln!("ops: {why}");
            std::process::exit(2);
        }
    };
    for device in &args.devices {
        if let Err(why) = measure(&args, device) {
            println!("\n{device} is skipped: {why:#}");
        }
    }
}

impl Args {
    fn parse(words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut args = Self {
            filters: Vec::new(),
            devices: vec!["cpu".to_owned()],
            preset: Preset::Tiny,
            rounds: 15,
        };
        let mut words = words.filter(|word| word != "--bench");
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} needs a value"));
            match word.as_str() {
                "--device" | "--devices" => {
                    args.devices = value()?.split(',').map(str::to_owned).collect();
                }
                "--preset" => {
                    let name = value()?;
                    args.preset = name.parse().map_err(|_| {
                        let all = Preset::VARIANTS.join(", ");
                        format!("unknown preset `{name}`; there are {all}")
                    })?;
                }
                "--rounds" => {
                    let count = value()?;
                    args.rounds = count
                        .parse()
                        .ok()
                        .filter(|n| *n > 0)
                        .ok_or(format!("--rounds {count}: write 1 or more"))?;
                }
                flag if flag.starts_with('-') => {
                    return Err(format!(
                        "unknown flag {flag}; there are --device, --preset and --rounds"
                    ));
                }
                _ => args.filters.push(word),
            }
        }
        Ok(args)
    }

    fn wants(&self, name: &str) -> bool {
        self.filters.is_empty() || self.filters.iter().any(|f| name.contains(f.as_str()))
    }
}

fn measure(args: &Args, select: &str) -> anyhow::Result<()> {
    let opened = devices::open(select)?;
    let roof = roof::known_or_measured(&opened, |note| eprintln!("ops: {note}"));
    let config = RunConfig::preset(args.preset);
    let (batch, context) = (config.train.batch, config.train.context);
    println!(
        "\n{} on {select}: {}, batch {batch}, context {context}, {} rounds",
        args.preset, opened.info.name, args.rounds
    );
    match &roof {
        Ok(roof) => println!(
            "peaks: {:.0} GFLOP/s, {:.1} GB/s ({})",
            roof.flops.best / 1e9,
            roof.bytes.best / 1e9,
            roof.date
        ),
        Err(why) => println!("peaks: not measured: {why:#}"),
    }
    let roof = roof.ok();
    // Inside the thread pool, as the engine's device thread runs its tasks.
    rayon::scope(|_| {
        comparison::print_head();
        for comparison in cases::all(&config, &opened.device, &|name| args.wants(name)) {
            comparison.run(args.rounds, roof.as_ref());
        }
    });
    Ok(())
}
