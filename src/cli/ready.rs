//! `perflings doctor --room`: prints one line about whether this machine is ready for a class: `pass`, `MISSING` with what is missing, or
//! `BUSY` if other programs keep the machine busy.

use anyhow::Result;
use serde::Serialize;

use super::args::machine::DoctorArgs;
use super::doctor::{DoctorReport, TerminalReport, measure_peaks, probe};
use crate::class::handle::host_name;
use crate::measure::runner::{EngineTask, Runner, engine_command};
use crate::out::{self, Exit};
use protocol::config::{Preset, RunConfig};
use protocol::handle::EngineCommand;
use protocol::units::show;

/// The device of the check. Every machine has it, and the workshop begins on it.
const DEVICE: &str = "cpu";
/// The longest time that a class may wait for the first loss, in seconds.
const MAX_WAIT_S: f64 = 10.0;

/// The result for this machine, as `--json` writes it.
#[derive(Default, Serialize)]
struct Ready {
    host: String,
    version: &'static str,
    ready: bool,
    /// What is missing, and what to do about it.
    missing: Vec<String>,
    /// The problems that other programs cause.
    busy: Vec<String>,
    terminal: TerminalReport,
    /// The value of `--device` for each device that was found.
    devices: Vec<String>,
    /// The name of the CPU.
    cpu: Option<String>,
    /// The peak of the CPU's arithmetic, in GFLOP/s.
    gflops: Option<f64>,
    /// The seconds from an engine's start to its first loss.
    first_loss_s: Option<f64>,
}

pub(super) fn ready(args: &DoctorArgs) -> Result<Exit> {
    let command = engine_command(args.engine.as_deref())?;
    let mut found = probe(&command)?;
    let mut ready = Ready {
        host: host_name(),
        version: found.version,
        missing: missing(&found),
        devices: found
            .devices
            .iter()
            .map(|info| info.select.clone())
            .collect(),
        ..Ready::default()
    };
    if let Some(cpu) = found.devices.iter().find(|info| info.select == DEVICE) {
        ready.cpu = Some(cpu.device.name.clone());
        match measure_peaks(&command, DEVICE, &mut found.notes) {
            Ok(peaks) => {
                ready.gflops = Some(peaks.flops.best / 1e9);
                if let Some(load) = peaks.load() {
                    let percent = 100.0 * load;
                    ready.busy.push(format!(
                        "other programs use {percent:.0} % of this machine: end them"
                    ));
                }
            }
            Err(error) => ready.missing.push(format!("no peak: {error:#}")),
        }
        match first_loss(command) {
            Ok(Some(seconds)) => {
                ready.first_loss_s = Some(seconds);
                if seconds > MAX_WAIT_S {
                    ready.busy.push(format!(
                        "the first loss took {seconds:.0} s: end other programs"
                    ));
                }
            }
            Ok(None) => return Ok(Exit::Interrupted),
            Err(error) => ready.missing.push(format!("no loss: {error:#}")),
        }
    }
    ready.terminal = found.terminal;
    ready.ready = ready.missing.is_empty() && ready.busy.is_empty();
    out::json_or_text(args.json, &ready, || ready.line())?;
    Ok(Exit::passed_if(ready.ready))
}

/// Returns everything that is missing by the report of `perflings doctor`, before anything is measured.
fn missing(found: &DoctorReport) -> Vec<String> {
    let mut missing = Vec::new();
    let terminal = &found.terminal;
    match (terminal.width, terminal.height) {
        _ if !terminal.is_terminal => missing.push("no terminal: start this in one".to_owned()),
        (Some(width), Some(height)) if width < 60 || height < 16 => {
            missing.push(format!(
                "the terminal is {width}x{height}: make it 60x16 or larger"
            ));
        }
        _ => {}
    }
    if !terminal.utf8 {
        missing.push("no UTF-8: set LANG=C.UTF-8".to_owned());
    }
    if terminal.colours == "none" {
        missing.push("no colours: unset NO_COLOR, or set TERM to what this terminal is".to_owned());
    }
    if let Some(problem) = &found.problem {
        missing.push(format!("no device: {problem}"));
    }
    for folder in found.folders.iter().filter(|folder| !folder.writable) {
        missing.push(format!("{} cannot be written", folder.path.display()));
    }
    missing
}

/// Measures the seconds from an engine's start to its first loss; `None` if the user interrupts it.
fn first_loss(command: EngineCommand) -> Result<Option<f64>> {
    let work = EngineTask::run("v3", &RunConfig::preset(Preset::Tiny), 1);
    let measured = Runner::new(command, None)?.measure(DEVICE, &work, |_, _| Ok(()))?;
    Ok(measured.first_loss_s)
}

impl Ready {
    /// Returns the line that is printed.
    fn line(&self) -> String {
        let mut facts = Vec::new();
        let terminal = &self.terminal;
        if let (Some(width), Some(height)) = (terminal.width, terminal.height) {
            let encoding = if terminal.utf8 { "UTF-8" } else { "ASCII" };
            let colours = terminal.colours;
            facts.push(format!("{width}x{height}, {encoding}, colours: {colours}"));
        }
        facts.extend(self.cpu.clone());
        if let Some(gflops) = self.gflops {
            facts.push(format!("{} GFLOP/s", show(gflops, 0)));
        }
        if let Some(seconds) = self.first_loss_s {
            facts.push(format!("first loss after {seconds:.1} s"));
        }
        let others = self.devices.iter().filter(|device| *device != DEVICE);
        facts.extend(others.map(|device| format!("also {device}")));
        let host = &self.host;
        let all_facts = facts.join("; ");
        if self.ready {
            return format!("pass     {host}: {all_facts}");
        }
        let verdict = if self.missing.is_empty() {
            "BUSY   "
        } else {
            "MISSING"
        };
        let problems = [self.missing.as_slice(), &self.busy].concat().join("; ");
        format!("{verdict}  {host}: {problems} ({all_facts})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_pass_or_missing_or_busy() {
        let terminal = || TerminalReport {
            is_terminal: true,
            width: Some(50),
            height: Some(14),
            colours: "256",
            ..TerminalReport::default()
        };
        let found = DoctorReport {
            terminal: terminal(),
            ..DoctorReport::default()
        };
        let mut ready = Ready {
            host: "seat-7".to_owned(),
            missing: missing(&found),
            terminal: terminal(),
            devices: vec!["cpu".to_owned(), "gpu".to_owned()],
            gflops: Some(61.2),
            first_loss_s: Some(0.94),
            ..Ready::default()
        };
        assert_eq!(
            ready.line(),
            "MISSING  seat-7: the terminal is 50x14: make it 60x16 or larger; no UTF-8: set LANG=C.UTF-8 \
             (50x14, ASCII, colours: 256; 61 GFLOP/s; first loss after 0.9 s; also gpu)"
        );
        ready.missing.clear();
        ready
            .busy
            .push("other programs use 80 % of this machine: end them".to_owned());
        assert!(
            ready
                .line()
                .starts_with("BUSY     seat-7: other programs use 80 %")
        );
        ready.ready = true;
        assert!(ready.line().starts_with("pass     seat-7: 50x14"));
    }
}
