//! What the devices were measured to do at most: measured anew on request, and shown with its date.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::super::drive::engine_command;
use crate::engine::client::{Client, Heard};
use crate::profile::roofline::{ridge, unsteady};
use crate::protocol::{Command, DeviceInfo, Event, Rate, Roof};

/// How long one device may take; a driver that opens slowly is most of it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Measures each device in an engine of its own, so that a driver that falls takes no other along. The roofs replace those
/// of before; the result is what went wrong, a sentence each.
pub fn measure(engine: Option<&str>, devices: &mut [DeviceInfo]) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for info in devices {
        match one(engine, &info.select) {
            Ok((roof, notices)) => {
                info.roof = Some(roof);
                problems.extend(notices);
            }
            Err(error) => problems.push(format!("{} was not measured: {error:#}", info.select)),
        }
    }
    Ok(problems)
}

fn one(engine: Option<&str>, select: &str) -> Result<(Roof, Vec<String>)> {
    let mut client = Client::spawn(engine_command(engine)?)?;
    client.send(Command::Calibrate {
        device: select.to_owned(),
    });
    let until = Instant::now() + PATIENCE;
    let mut notices = Vec::new();
    while Instant::now() < until {
        match client.next(Duration::from_millis(100)) {
            Some(Heard::Line(line, _)) => match line.event {
                Event::Calibrated { roof, .. } => return Ok((roof, notices)),
                Event::Failed(failed) => bail!("{}", failed.reason),
                Event::Log(log) => notices.push(log.text),
                _ => {}
            },
            Some(Heard::Over(over)) => bail!("{}", over.reason()),
            _ => {}
        }
    }
    bail!("no answer within {} s", PATIENCE.as_secs())
}

/// A device's peaks in words, one line.
pub fn words(info: &DeviceInfo) -> String {
    let Some(roof) = &info.roof else {
        return "peaks not measured yet; the first run does, or `perflings doctor --calibrate`"
            .to_owned();
    };
    let noisy = if unsteady(&roof.flops) || unsteady(&roof.bytes) {
        "; the repeats lie far apart: measure again on a quiet machine"
    } else {
        ""
    };
    format!(
        "peak {}, {}; arithmetic binds from {:.1} FLOP/byte on; {} clock, {}{noisy}",
        rate(&roof.flops, "FLOP/s"),
        rate(&roof.bytes, "B/s"),
        ridge(roof),
        roof.clock,
        roof.date
    )
}

/// `61.2 TFLOP/s [60.8-61.1, n 9]`: the best, and the middle half of the repeats.
fn rate(it: &Rate, unit: &str) -> String {
    let (divisor, prefix) = match it.best {
        best if best >= 1e12 => (1e12, "T"),
        best if best >= 1e9 => (1e9, "G"),
        _ => (1e6, "M"),
    };
    let [best, p25, p75] = [it.best, it.p25, it.p75].map(|x| x / divisor);
    format!("{best:.1} {prefix}{unit} [{p25:.1}-{p75:.1}, n {}]", it.n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_are_told_with_spread_clock_and_date() {
        let rate = |best: f64, low: f64| Rate {
            best,
            median: best,
            p25: low,
            p75: best,
            n: 9,
        };
        let roof = Roof {
            flops: rate(61.23e12, 61e12),
            bytes: rate(4.01e12, 4e12),
            clock: "device".to_owned(),
            date: "2026-01-02".to_owned(),
        };
        let mut info = DeviceInfo {
            roof: Some(roof),
            ..DeviceInfo::default()
        };
        assert_eq!(
            words(&info),
            "peak 61.2 TFLOP/s [61.0-61.2, n 9], 4.0 TB/s [4.0-4.0, n 9]; arithmetic binds from 15.3 FLOP/byte on; \
             device clock, 2026-01-02"
        );
        if let Some(roof) = &mut info.roof {
            roof.bytes = rate(4.01e12, 2e12);
        }
        assert!(words(&info).ends_with("quiet machine"));
        assert!(words(&DeviceInfo::default()).contains("--calibrate"));
    }
}
