//! `perflings doctor`: what works on this machine and what to do where something is missing. Devices are probed by
//! the engine child within a time limit, so a driver that hangs or crashes is a line in the answer.

mod peaks;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::{Value, json};

use super::DoctorArgs;
use crate::drivers::harmless;
use crate::engine::client::{Client, Heard};
use crate::measure::runner::engine_command;
use crate::out::{self, Exit, result};
use crate::protocol::{Command, DeviceInfo, Event, Hello, PROTOCOL};

/// How long drivers may take to list their devices.
const PROBE: Duration = Duration::from_secs(30);

pub fn doctor(args: &DoctorArgs) -> Result<Exit> {
    let mut probed = probe(args.engine.as_deref())?;
    let said = if args.calibrate {
        peaks::measure(args.engine.as_deref(), &mut probed.devices)
    } else {
        peaks::Said::default()
    };
    probed.notes.extend(said.notes);
    let terminal = terminal();
    let folders = folders();
    let mut advice = advice(&probed, &terminal, &folders);
    advice.extend(said.problems);
    if args.json {
        out::json(&as_json(&probed, &terminal, &folders, &advice))?;
    } else {
        result(&as_text(&probed, &terminal, &folders, &advice))?;
    }
    // A machine without a working engine cannot run anything; a missing GPU is no fault.
    Ok(if probed.devices.is_empty() {
        Exit::Failed
    } else {
        Exit::Ok
    })
}

struct Probed {
    hello: Option<Hello>,
    devices: Vec<DeviceInfo>,
    problem: Option<String>,
    /// What drivers wrote beside the stream.
    stray: Vec<String>,
    /// What needs no doing: lines of drivers that are known to mean nothing, peaks that lie apart.
    notes: Vec<String>,
}

fn probe(engine: Option<&str>) -> Result<Probed> {
    let mut client =
        Client::spawn(engine_command(engine)?).map_err(|error| out::usage(format!("{error:#}")))?;
    client.send(Command::Probe);
    let until = Instant::now() + PROBE;
    let mut found = Probed {
        hello: None,
        devices: Vec::new(),
        problem: None,
        stray: Vec::new(),
        notes: Vec::new(),
    };
    while found.devices.is_empty() && found.problem.is_none() {
        if Instant::now() >= until {
            found.problem = Some(format!(
                "the drivers listed no device within {} s",
                PROBE.as_secs()
            ));
        }
        match client.next(Duration::from_millis(100)) {
            Some(Heard::Line(line, _)) => match line.event {
                Event::Devices { devices } if devices.is_empty() => {
                    found.problem = Some("the engine found no device at all".to_owned())
                }
                Event::Devices { devices } => found.devices = devices,
                Event::Failed(failed) => found.problem = Some(failed.reason),
                Event::Log(log) => found.notes.push(log.text),
                _ => {}
            },
            Some(Heard::Over(over)) => found.problem = Some(over.reason().to_owned()),
            Some(Heard::Stray(text)) => found.wrote(text),
            _ => {}
        }
    }
    found.hello = client.hello().cloned();
    Ok(found)
}

/// Lines of drivers that are shown.
const LINES: usize = 20;

impl Probed {
    /// Takes a line of a driver in, once.
    fn wrote(&mut self, text: String) {
        let (list, text) = match harmless(&text) {
            Some(why) => (
                &mut self.notes,
                format!("{} ({why})", text.trim_end_matches('.')),
            ),
            None => (&mut self.stray, text),
        };
        if list.len() < LINES && !list.contains(&text) {
            list.push(text);
        }
    }
}

struct Terminal {
    is_terminal: bool,
    size: Option<(u16, u16)>,
    term: String,
    colours: &'static str,
    utf8: bool,
    /// `tmux`, `screen`, `zellij` or nothing.
    inside: Option<&'static str>,
}

fn terminal() -> Terminal {
    let var = |name: &str| std::env::var(name).unwrap_or_default();
    let term = var("TERM");
    let set = |name: &str| !var(name).is_empty();
    let colours = if set("NO_COLOR") {
        "none (NO_COLOR is set)"
    } else if matches!(var("COLORTERM").as_str(), "truecolor" | "24bit") {
        "24 bit"
    } else if term.contains("256color") {
        "256"
    } else if term.is_empty() || term == "dumb" {
        "none"
    } else {
        "16"
    };
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .map(var)
        .find(|v| !v.is_empty())
        .unwrap_or_default();
    let utf8 = cfg!(windows) || locale.to_lowercase().replace('-', "").contains("utf8");
    let inside = [("TMUX", "tmux"), ("ZELLIJ", "zellij"), ("STY", "screen")]
        .into_iter()
        .find_map(|(key, name)| set(key).then_some(name));
    Terminal {
        is_terminal: std::io::stdout().is_terminal(),
        size: crossterm::terminal::size().ok(),
        term,
        colours,
        utf8,
        inside,
    }
}

struct Folder {
    what: &'static str,
    path: PathBuf,
    writable: bool,
}

fn folders() -> Vec<Folder> {
    let Some(base) = directories::BaseDirs::new() else {
        return Vec::new();
    };
    let own = |what, root: &Path| {
        let path = root.join("perflings");
        let writable = is_writable(&path);
        Folder {
            what,
            path,
            writable,
        }
    };
    vec![
        own(
            "progress",
            base.state_dir().unwrap_or_else(|| base.data_local_dir()),
        ),
        own("recordings", base.data_dir()),
        own("settings", base.config_dir()),
        own("caches", base.cache_dir()),
    ]
}

/// Whether a file could be made here: in the folder, or in the nearest one above that exists.
fn is_writable(path: &Path) -> bool {
    path.ancestors()
        .find(|p| p.is_dir())
        .is_some_and(|dir| tempfile::tempfile_in(dir).is_ok())
}

/// What to do, one sentence each. Empty: nothing.
fn advice(probed: &Probed, terminal: &Terminal, folders: &[Folder]) -> Vec<String> {
    let mut found = Vec::new();
    let has = |kind: &str| probed.devices.iter().any(|d| d.device.kind == kind);
    if let Some(problem) = &probed.problem {
        found.push(format!("The engine did not answer: {problem}. Try `perflings run 1 --device cpu` and read its message."));
    }
    if !probed.devices.is_empty() && !has("gpu") {
        found.push(
            "No GPU was found; everything runs on the CPU. If there is one: install its driver with Vulkan (Debian, Ubuntu: \
             mesa-vulkan-drivers for AMD and Intel, nvidia-driver with libvulkan1 for NVIDIA), then `vulkaninfo --summary` must list it."
                .to_owned(),
        );
    }
    if !probed.devices.is_empty() && !has("vulkan-cpu") && cfg!(target_os = "linux") {
        found.push(
            "No lavapipe was found; it runs GPU kernels on the CPU, for correctness. Debian, Ubuntu: apt install mesa-vulkan-drivers; \
             Fedora: dnf install mesa-vulkan-drivers; Arch: pacman -S vulkan-swrast."
                .to_owned(),
        );
    }
    for device in probed
        .devices
        .iter()
        .filter(|d| d.device.kind != "cpu" && !d.timestamps)
    {
        found.push(format!(
            "{} has no timestamps: its kernels are timed with the host's clock.",
            device.device.name
        ));
    }
    if !terminal.utf8 {
        found.push("The locale is not UTF-8; press m in the workshop for ASCII charts, or set LANG=C.UTF-8.".to_owned());
    }
    if terminal.size.is_some_and(|(w, h)| w < 60 || h < 16) {
        found.push("The terminal is smaller than 60x16: it shows numbers without charts. 80x24 shows the workshop, 160x45 all of it.".to_owned());
    }
    if terminal.inside == Some("tmux") && terminal.colours == "16" {
        found.push("tmux shows 16 colours; `set -g default-terminal tmux-256color` in ~/.tmux.conf gives 256.".to_owned());
    }
    for folder in folders.iter().filter(|f| !f.writable) {
        found.push(format!(
            "{} cannot be written: {} will not be kept.",
            folder.path.display(),
            folder.what
        ));
    }
    found
}

fn as_text(probed: &Probed, terminal: &Terminal, folders: &[Folder], advice: &[String]) -> String {
    let mut lines = vec![format!(
        "perflings {} (protocol {PROTOCOL})",
        env!("CARGO_PKG_VERSION")
    )];
    if let Some(hello) = &probed.hello {
        lines.push(format!(
            "engine     {} on {}, {} cores",
            hello.version, hello.os, hello.cores
        ));
    }
    for info in &probed.devices {
        let clock = if info.timestamps {
            "kernels timed on the device's clock"
        } else {
            "kernels timed on the host's clock"
        };
        let note = if info.note.is_empty() {
            String::new()
        } else {
            format!("; {}", info.note)
        };
        let driver = [info.backend.as_str(), info.driver.as_str()]
            .into_iter()
            .filter(|s| !s.is_empty())
            .collect::<Vec<_>>()
            .join(", ");
        lines.push(format!(
            "device     {:<11} {} ({driver}), {clock}{note}",
            info.select, info.device.name
        ));
        lines.push(format!("{:<22} {}", "", peaks::words(info)));
    }
    let size = terminal
        .size
        .map_or("size unknown".to_owned(), |(w, h)| format!("{w}x{h}"));
    let kind = if terminal.is_terminal {
        ""
    } else {
        "; stdout is no terminal"
    };
    let inside = terminal
        .inside
        .map(|name| format!(", inside {name}"))
        .unwrap_or_default();
    let text = if terminal.utf8 { "UTF-8" } else { "not UTF-8" };
    lines.push(format!(
        "terminal   {size}, TERM={}, colours: {}, {text}{inside}{kind}",
        terminal.term, terminal.colours
    ));
    for folder in folders {
        let state = if folder.writable {
            ""
        } else {
            " (cannot be written)"
        };
        lines.push(format!(
            "{:<10} {}{state}",
            folder.what,
            folder.path.display()
        ));
    }
    lines.extend(probed.stray.iter().map(|text| format!("driver     {text}")));
    lines.extend(probed.notes.iter().map(|text| format!("note       {text}")));
    lines.extend(advice.iter().map(|text| format!("to do      {text}")));
    lines.join("\n")
}

fn as_json(probed: &Probed, terminal: &Terminal, folders: &[Folder], advice: &[String]) -> Value {
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "protocol": PROTOCOL,
        "engine": probed.hello,
        "devices": probed.devices,
        "problem": probed.problem,
        "driver_output": probed.stray,
        "notes": probed.notes,
        "terminal": {
            "is_terminal": terminal.is_terminal,
            "width": terminal.size.map(|s| s.0),
            "height": terminal.size.map(|s| s.1),
            "term": terminal.term,
            "colours": terminal.colours,
            "utf8": terminal.utf8,
            "inside": terminal.inside,
        },
        "folders": folders.iter().map(|f| json!({"what": f.what, "path": f.path, "writable": f.writable})).collect::<Vec<_>>(),
        "to_do": advice,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_s_habit_is_a_note_and_anything_else_is_shown() {
        let mut probed = Probed {
            hello: None,
            devices: Vec::new(),
            problem: None,
            stray: Vec::new(),
            notes: Vec::new(),
        };
        for text in [
            "error: XDG_RUNTIME_DIR is invalid or not set in the environment.",
            "error: XDG_RUNTIME_DIR is invalid or not set in the environment.",
            "vulkan: device lost",
        ] {
            probed.wrote(text.to_owned());
        }
        let shown = as_text(&probed, &terminal(), &[], &[]);
        let of = |kind: &str| {
            let lines = shown.lines().filter(|line| line.starts_with(kind));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(of("driver "), ["driver     vulkan: device lost"]);
        let notes = of("note ");
        assert_eq!(notes.len(), 1, "{shown}");
        assert!(notes[0].ends_with("in the environment (the Wayland library looked for a display; no window is opened here)"));
    }
}
