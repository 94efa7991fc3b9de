//! The idle share of a trace: `cargo run --example idle_share trace.json`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).ok_or("name a trace")?;
    let trace = gputrace::open(file.as_ref(), &mut |_| {})?;
    let figures = gputrace::summary::summary(&trace);
    match figures.idle_share {
        Some(idle) => println!("idle {:.1} % of the time", 100.0 * idle),
        None => println!("the file has no times of kernels"),
    }
    Ok(())
}
