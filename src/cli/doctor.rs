//! `perflings doctor`: reports what works on this machine, and what to do about the rest. An engine process opens the devices within a time
//! limit, so a driver that hangs or crashes becomes a line of the report.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;

use super::args::machine::DoctorArgs;
use crate::measure::runner::engine_command;
use crate::out::{self, Exit, usage};
use crate::table;
use crate::tui::terminal;
use protocol::handle::driver_noise::harmless;
use protocol::handle::{EngineCommand, EngineHandle, EngineLimits, EngineMessage};
use protocol::machine;
use protocol::stats::roofline::repeats;
use protocol::stats::roofline::{ridge, unsteady};
use protocol::{Command, DeviceInfo, Event, Hello, PROTOCOL, Peaks, Rate};

/// The time that drivers may take to list their devices.
const PROBE_TIMEOUT: Duration = Duration::from_secs(30);
/// The time that the peaks of one device may take. Most of it is for a driver that opens slowly.
const CALIBRATE_TIMEOUT: Duration = Duration::from_secs(60);
/// The time during which the load of other programs is measured.
const LOAD_INTERVAL: Duration = Duration::from_millis(300);
/// The most lines of drivers that are shown.
const MAX_LINES: usize = 20;

pub(super) fn doctor(args: &DoctorArgs) -> Result<Exit> {
    let command = engine_command(args.engine.as_deref())?;
    let mut found = probe(&command)?;
    if args.calibrate {
        found.calibrate(&command);
    }
    found.others = machine::others_within(LOAD_INTERVAL);
    found.advise();
    out::json_or_text(args.json, &found, || found.as_text())?;
    // A machine without any device cannot run anything. A missing GPU is no fault.
    Ok(Exit::passed_if(!found.devices.is_empty()))
}

/// The report about this machine, as `--json` writes it.
#[derive(Default, Serialize)]
pub(super) struct DoctorReport {
    pub version: &'static str,
    pub protocol: u32,
    pub engine: Option<Hello>,
    pub devices: Vec<DeviceInfo>,
    /// The reason why the engine found no device.
    pub problem: Option<String>,
    /// The share of this machine's cores that other programs use now, 0 to 1; `None` if it is not known.
    pub others: Option<f64>,
    /// Lines that drivers have printed into the engine's stream.
    pub driver_output: Vec<String>,
    /// Remarks that need no action: messages of drivers that are known to be harmless, and the engine's log.
    pub notes: Vec<String>,
    pub terminal: TerminalReport,
    pub folders: Vec<FolderReport>,
    /// Advice, a sentence each.
    pub to_do: Vec<String>,
}

#[derive(Default, Serialize)]
pub(super) struct TerminalReport {
    pub is_terminal: bool,
    pub width: Option<u16>,
    pub height: Option<u16>,
    pub term: String,
    pub colours: &'static str,
    pub utf8: bool,
    /// The terminal multiplexer: `tmux`, `screen` or `zellij`.
    pub inside: Option<&'static str>,
}

#[derive(Serialize)]
pub(super) struct FolderReport {
    pub what: &'static str,
    pub path: PathBuf,
    pub writable: bool,
}

/// Returns the report with everything that is known without a measurement.
///
/// # Errors
/// If the engine cannot be started.
pub(super) fn probe(command: &EngineCommand) -> Result<DoctorReport> {
    let mut engine =
        start_engine(command, PROBE_TIMEOUT).map_err(|error| usage(format!("{error:#}")))?;
    let mut found = DoctorReport {
        version: env!("CARGO_PKG_VERSION"),
        protocol: PROTOCOL,
        terminal: terminal(),
        folders: folders(),
        ..DoctorReport::default()
    };
    let on_message = |message: &EngineMessage| {
        match message {
            EngineMessage::Line(line, _) => match &line.event {
                Event::Devices { devices } => found.devices.clone_from(devices),
                Event::Log(log) => found.notes.push(log.text.clone()),
                _ => {}
            },
            EngineMessage::Stray(text) => found.add_driver_line(text.clone()),
            _ => {}
        }
        Ok(())
    };
    let outcome = engine.drive(Command::Probe, None, on_message)?;
    found.engine = engine.hello().cloned();
    found.problem = match outcome.answered() {
        Ok(()) if found.devices.is_empty() => Some("the engine found no device at all".to_owned()),
        Ok(()) => None,
        Err(error) => Some(error.to_string()),
    };
    Ok(found)
}

/// Starts an engine that must answer a command within `timeout`.
fn start_engine(command: &EngineCommand, timeout: Duration) -> Result<EngineHandle> {
    let limits = EngineLimits {
        task: timeout,
        ..EngineLimits::default()
    };
    EngineHandle::start(command.clone(), limits)
}

/// Measures the peaks of a device in a new engine, so that a driver that fails does not affect the other devices. The engine's log is added
/// to `notes`.
pub(super) fn measure_peaks(
    command: &EngineCommand,
    select: &str,
    notes: &mut Vec<String>,
) -> Result<Peaks> {
    let calibrate = Command::Calibrate {
        device: select.to_owned(),
    };
    let mut measured = None;
    let on_message = |message: &EngineMessage| {
        if let EngineMessage::Line(line, _) = message {
            match &line.event {
                Event::Calibrated { peaks, .. } => measured = Some(peaks.clone()),
                Event::Log(log) => notes.push(format!("{select}: {}", log.text)),
                _ => {}
            }
        }
        Ok(())
    };
    let mut engine = start_engine(command, CALIBRATE_TIMEOUT)?;
    engine.drive(calibrate, None, on_message)?.answered()?;
    measured.context("The engine measured no peaks")
}

fn terminal() -> TerminalReport {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let abilities = terminal::abilities(variable);
    let (width, height) = terminal::columns_and_rows().unzip();
    let multiplexers = [("TMUX", "tmux"), ("ZELLIJ", "zellij"), ("STY", "screen")];
    TerminalReport {
        is_terminal: terminal::is_present(),
        width,
        height,
        term: variable("TERM").unwrap_or_default(),
        colours: abilities.colours.into_str(),
        utf8: !abilities.ascii,
        inside: multiplexers
            .into_iter()
            .find_map(|(key, name)| variable(key).map(|_| name)),
    }
}

fn folders() -> Vec<FolderReport> {
    let Some(base) = directories::BaseDirs::new() else {
        return Vec::new();
    };
    let state = base.state_dir().unwrap_or_else(|| base.data_local_dir());
    [
        ("progress", state),
        ("recordings", base.data_dir()),
        ("caches", base.cache_dir()),
    ]
    .map(|(what, root)| {
        let path = root.join("perflings");
        FolderReport {
            what,
            writable: is_writable(&path),
            path,
        }
    })
    .into()
}

/// Returns true if a file can be created in the folder, or, if it does not exist, in the nearest folder above it.
fn is_writable(path: &Path) -> bool {
    path.ancestors()
        .find(|folder| folder.is_dir())
        .is_some_and(|dir| tempfile::tempfile_in(dir).is_ok())
}

impl DoctorReport {
    /// Adds a line of a driver. A line that is known to be harmless becomes a note. Repeated lines are added once.
    fn add_driver_line(&mut self, text: String) {
        let (list, shown) = match harmless(&text) {
            Some(why) => (
                &mut self.notes,
                format!("{} ({why})", text.trim_end_matches('.')),
            ),
            None => (&mut self.driver_output, text),
        };
        if list.len() < MAX_LINES && !list.contains(&shown) {
            list.push(shown);
        }
    }

    /// Measures the peaks of every device.
    fn calibrate(&mut self, command: &EngineCommand) {
        for info in &mut self.devices {
            match measure_peaks(command, &info.select, &mut self.notes) {
                Ok(peaks) => info.peaks = Some(peaks),
                Err(error) => {
                    let select = &info.select;
                    self.to_do
                        .push(format!("{select} was not measured: {error:#}"));
                }
            }
        }
    }

    /// Puts advice about devices, the load, the terminal and the folders before what there is to do already.
    fn advise(&mut self) {
        let mut advice = self.device_advice();
        advice.extend(self.terminal_advice());
        for folder in self.folders.iter().filter(|folder| !folder.writable) {
            advice.push(format!(
                "{} cannot be written: {} will not be kept.",
                folder.path.display(),
                folder.what
            ));
        }
        self.to_do.splice(0..0, advice);
    }

    /// Returns advice about the engine, its devices and the programs that disturb them.
    fn device_advice(&self) -> Vec<String> {
        let mut advice = Vec::new();
        let has = |kind: &str| self.devices.iter().any(|info| info.device.kind == kind);
        if let Some(problem) = &self.problem {
            advice.push(format!(
                "The engine did not answer: {problem}. \
                 Try `perflings run 1 --device cpu` and read its message."
            ));
        }
        if !self.devices.is_empty() && !has("gpu") {
            let how = if cfg!(target_os = "linux") {
                " with Vulkan (Debian, Ubuntu: mesa-vulkan-drivers for AMD and Intel, \
                 nvidia-driver with libvulkan1 for NVIDIA), \
                 then `vulkaninfo --summary` must list it"
            } else {
                ""
            };
            advice.push(format!(
                "No GPU was found; everything runs on the CPU. \
                 If there is one: install its driver{how}."
            ));
        }
        if !self.devices.is_empty() && !has("vulkan-cpu") && cfg!(target_os = "linux") {
            advice.push(
                "No lavapipe was found; it runs GPU kernels on the CPU, for correctness. \
                 Debian, Ubuntu: apt install mesa-vulkan-drivers; \
                 Fedora: dnf install mesa-vulkan-drivers; Arch: pacman -S vulkan-swrast."
                    .to_owned(),
            );
        }
        for info in &self.devices {
            if info.device.kind != "cpu" && !info.timestamps {
                advice.push(format!(
                    "{} has no timestamps: its kernels are timed with the host's clock.",
                    info.device.name
                ));
            }
        }
        if let Some(share) = self.others.filter(|share| machine::disturbs(*share)) {
            advice.push(format!(
                "Other programs use {:.0} % of this machine: \
                 end them, or times are longer than necessary.",
                100.0 * share
            ));
        }
        for info in &self.devices {
            if info
                .peaks
                .as_ref()
                .is_some_and(|peaks| peaks.load().is_some())
            {
                advice.push(format!(
                    "The peaks of {} were measured while other programs were busy: \
                     end them, then `perflings doctor --calibrate` measures again; \
                     so does the next run on an idle machine.",
                    info.select
                ));
            }
        }
        advice
    }

    fn terminal_advice(&self) -> impl Iterator<Item = String> {
        let terminal = &self.terminal;
        let is_narrow = terminal.width.is_some_and(|width| width < 60);
        let is_low = terminal.height.is_some_and(|height| height < 16);
        let has_few_colours = terminal.inside == Some("tmux") && terminal.colours == "16";
        let ascii = "Charts are drawn in ASCII: this terminal or its locale has no UTF-8. \
            Set LANG=C.UTF-8 where it can show it.";
        let small = "The terminal is smaller than 60x16: it shows numbers without charts. \
            80x24 shows the workshop, 160x45 all of it.";
        let tmux = "tmux shows 16 colours; \
            `set -g default-terminal tmux-256color` in ~/.tmux.conf gives 256.";
        [
            (!terminal.utf8, ascii),
            (is_narrow || is_low, small),
            (has_few_colours, tmux),
        ]
        .into_iter()
        .filter(|(applies, _)| *applies)
        .map(|(_, advice)| advice.to_owned())
    }

    /// Returns the report as a table of labels and lines.
    fn as_text(&self) -> String {
        let mut rows = Vec::new();
        let mut add = |label: &str, text: String| rows.push(vec![label.to_owned(), text]);
        if let Some(hello) = &self.engine {
            let about = format!("{} on {}, {} cores", hello.version, hello.os, hello.cores);
            add("engine", about);
        }
        let load = match self.others {
            Some(others) => format!(
                "other programs use {:.0} % of this machine's cores",
                100.0 * others
            ),
            None => "what other programs use is not known: this system has no /proc/stat".into(),
        };
        add("load", load);
        let mut devices = Vec::new();
        for info in &self.devices {
            devices.push(vec![info.select.clone(), device_in_words(info)]);
            devices.push(vec![String::new(), describe_peaks(info)]);
        }
        for (index, line) in table::lines(&devices, false).into_iter().enumerate() {
            // Each device has two lines: its name and its peaks.
            add(if index % 2 == 0 { "device" } else { "" }, line);
        }
        let terminal = &self.terminal;
        let size = match (terminal.width, terminal.height) {
            (Some(width), Some(height)) => format!("{width}x{height}"),
            _ => "size unknown".to_owned(),
        };
        let encoding = if terminal.utf8 { "UTF-8" } else { "ASCII" };
        let inside = terminal.inside.map(|name| format!(", inside {name}"));
        let remark = if terminal.is_terminal {
            ""
        } else {
            "; input or output is not a terminal here"
        };
        let line = format!(
            "{size}, TERM={}, colours: {}, {encoding}{}{remark}",
            terminal.term,
            terminal.colours,
            inside.unwrap_or_default()
        );
        add("terminal", line);
        for folder in &self.folders {
            let state = if folder.writable {
                ""
            } else {
                " (cannot be written)"
            };
            add(folder.what, format!("{}{state}", folder.path.display()));
        }
        let texts = [
            ("driver", &self.driver_output),
            ("note", &self.notes),
            ("to do", &self.to_do),
        ];
        for (label, texts) in texts {
            for text in texts {
                add(label, text.clone());
            }
        }
        let version = env!("CARGO_PKG_VERSION");
        let mut lines = vec![format!("perflings {version} (protocol {PROTOCOL})")];
        lines.extend(table::lines(&rows, false));
        lines.join("\n")
    }
}

/// Returns the name of a device, its driver and the clock of its kernels in one line.
fn device_in_words(info: &DeviceInfo) -> String {
    let clock = if info.timestamps { "device" } else { "host" };
    let note = match info.note.as_str() {
        "" => String::new(),
        note => format!("; {note}"),
    };
    let mut driver = vec![info.backend.as_str(), info.driver.as_str()];
    driver.retain(|part| !part.is_empty());
    format!(
        "{} ({}), kernels timed on the {clock}'s clock{note}",
        info.device.name,
        driver.join(", ")
    )
}

/// Returns the peaks of a device in one line: the most arithmetic and the most memory traffic in a second.
fn describe_peaks(info: &DeviceInfo) -> String {
    let Some(peaks) = &info.peaks else {
        return "peaks not measured yet; the first run does, or `perflings doctor --calibrate`"
            .to_owned();
    };
    let rates = [Some(peaks.flops), peaks.matrix_cores, Some(peaks.bytes)];
    let warning = match peaks.load() {
        Some(load) => format!(
            "; measured while other programs used {:.0} % of this machine: \
             measure again on an idle one",
            100.0 * load
        ),
        None if rates.iter().flatten().any(repeats_disagree) => {
            "; the repeats differ widely: measure again on an idle machine".to_owned()
        }
        None => String::new(),
    };
    let cores = match peaks.matrix_cores {
        Some(rate) => format!(" (matrix cores, f16: {})", repeats(&rate, "FLOP/s")),
        None => String::new(),
    };
    format!(
        "peak {}{cores}, {}; arithmetic binds from {:.1} FLOP/byte on; {} clock, {}{warning}",
        repeats(&peaks.flops, "FLOP/s"),
        repeats(&peaks.bytes, "B/s"),
        ridge(peaks),
        peaks.clock,
        peaks.date
    )
}

/// Returns true if the repeats of a measurement disagree: their middle half is wide, or the best one is far outside it.
fn repeats_disagree(rate: &Rate) -> bool {
    unsteady(rate) || rate.best > 1.25 * rate.p75
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_harmless_line_of_a_driver_is_a_note_and_any_other_is_shown() {
        let mut found = DoctorReport::default();
        for text in [
            "error: XDG_RUNTIME_DIR is invalid or not set in the environment.",
            "error: XDG_RUNTIME_DIR is invalid or not set in the environment.",
            "vulkan: device lost",
        ] {
            found.add_driver_line(text.to_owned());
        }
        let shown = found.as_text();
        let lines = |kind: &str| -> Vec<String> {
            let lines = shown.lines().filter(|line| line.starts_with(kind));
            lines.map(str::to_owned).collect()
        };
        assert_eq!(lines("driver "), ["driver    vulkan: device lost"]);
        let notes = lines("note ");
        assert_eq!(notes.len(), 1, "{shown}");
        assert!(notes[0].ends_with("in the environment (the Wayland library looked for a display; no window is opened here)"));
    }

    #[test]
    fn peaks_have_their_spread_clock_and_date() {
        let rate = |best: f64, p25: f64| Rate {
            best,
            median: best,
            p25,
            p75: best,
            n: 9,
            load: None,
        };
        let peaks = Peaks {
            matrix_cores: None,
            flops: rate(61.23e12, 61e12),
            bytes: rate(4.01e12, 4e12),
            clock: "device".to_owned(),
            date: "2026-01-02".to_owned(),
        };
        let mut info = DeviceInfo {
            peaks: Some(peaks),
            ..DeviceInfo::default()
        };
        assert_eq!(
            describe_peaks(&info),
            "peak 61.2 TFLOP/s (9 repeats, middle half 61.0-61.2), 4.0 TB/s (9 repeats, middle half 4.0-4.0); \
             arithmetic binds from 15.3 FLOP/byte on; device clock, 2026-01-02"
        );
        // One repeat that is twice as fast as all others was alone on the machine.
        if let Some(peaks) = &mut info.peaks {
            peaks.bytes.p25 = 2e12;
            peaks.bytes.p75 = 2.1e12;
        }
        assert!(describe_peaks(&info).ends_with("idle machine"));
        if let Some(peaks) = &mut info.peaks {
            peaks.flops.load = Some(0.6);
        }
        assert!(describe_peaks(&info).contains("while other programs used 60 % of this machine"));
        assert!(describe_peaks(&DeviceInfo::default()).contains("--calibrate"));
    }
}
