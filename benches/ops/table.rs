//! The figures as lines.

use perflings::protocol::Roof;

use crate::duel::Measured;

pub fn head() {
    println!(
        "\n  {:<20} {:>9} {:>20} {:>8} {:>7} {:>9}  share of peak",
        "version", "ms", "[p25, p75]", "GFLOP/s", "GB/s", "speed-up"
    );
}

/// The operation's name, then one line for each version; the first is what the speed-up is over.
pub fn rows(measured: &Measured, roof: Option<&Roof>) {
    println!("{}", measured.name);
    let first = measured.versions.first().map(|(.., ms)| ms.median);
    for (version, cost, ms) in &measured.versions {
        let per_s = 1e3 / ms.median;
        let (flops, bytes) = (cost.flops * per_s, cost.bytes * per_s);
        println!(
            "  {version:<20} {:>9.4} {:>20} {:>8.1} {:>7.1} {:>9.2}  {}",
            ms.median,
            format!("[{:.4}, {:.4}]", ms.p25, ms.p75),
            flops / 1e9,
            bytes / 1e9,
            first.map_or(1.0, |first| first / ms.median),
            share(flops, bytes, roof),
        );
    }
}

/// Of the roof it is nearer to. Over 100 % of bytes/s the operands were in a cache; over 100 % of FLOP/s the roof was
/// measured on a busier machine.
fn share(flops: f64, bytes: f64, roof: Option<&Roof>) -> String {
    let Some(roof) = roof else {
        return "not measured".to_owned();
    };
    let (compute, memory) = (flops / roof.flops.best, bytes / roof.bytes.best);
    if compute > memory {
        format!("{:.0} % of FLOP/s", 100.0 * compute)
    } else {
        format!("{:.0} % of bytes/s", 100.0 * memory)
    }
}
