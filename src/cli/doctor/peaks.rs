//! What the devices were measured to do at most: measured anew on request, and shown with its date.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::engine::client::{Client, Heard};
use crate::engine::roof::words::rate;
use crate::measure::runner::engine_command;
use crate::profile::roofline::{ridge, unsteady};
use crate::protocol::{Command, DeviceInfo, Event, Rate, Roof};

/// How long one device may take; a driver that opens slowly is most of it.
const PATIENCE: Duration = Duration::from_secs(60);

/// What came of measuring, a sentence each.
#[derive(Default)]
pub struct Said {
    /// What the engine had to say, such as a peak that lies far from the one on file.
    pub notes: Vec<String>,
    /// What could not be measured.
    pub problems: Vec<String>,
}

/// Measures each device in an engine of its own, so that a driver that falls takes no other along. Devices then have the
/// roofs that are kept.
pub fn measure(engine: Option<&str>, devices: &mut [DeviceInfo]) -> Said {
    let mut said = Said::default();
    for info in devices {
        match one(engine, &info.select) {
            Ok((roof, notices)) => {
                info.roof = Some(roof);
                let named = |text| format!("{}: {text}", info.select);
                said.notes.extend(notices.into_iter().map(named));
            }
            Err(error) => said
                .problems
                .push(format!("{} was not measured: {error:#}", info.select)),
        }
    }
    said
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
    let noisy = if apart(&roof.flops) || apart(&roof.bytes) {
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

/// Whether repeats disagree: their middle half is wide, or the best lies far outside of it.
fn apart(rate: &Rate) -> bool {
    unsteady(rate) || rate.best > 1.25 * rate.p75
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
            "peak 61.2 TFLOP/s (9 repeats, middle half 61.0-61.2), 4.0 TB/s (9 repeats, middle half 4.0-4.0); \
             arithmetic binds from 15.3 FLOP/byte on; device clock, 2026-01-02"
        );
        if let Some(roof) = &mut info.roof {
            roof.bytes = rate(4.01e12, 2e12);
        }
        assert!(words(&info).ends_with("quiet machine"));
        // One repeat that is twice as fast as all others was alone on the machine.
        if let Some(roof) = &mut info.roof {
            roof.bytes = Rate {
                p75: 2.1e12,
                ..rate(4.01e12, 2e12)
            };
        }
        assert!(words(&info).ends_with("quiet machine"));
        assert!(words(&DeviceInfo::default()).contains("--calibrate"));
    }
}
