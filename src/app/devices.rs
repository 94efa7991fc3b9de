//! The device that computes, the other devices, and the offer to move from the CPU to a GPU that has warmed up.
//! This module opens no device; it knows them only from events.

use super::log::{Log, LogLevel};
use super::part::{FollowUp, FollowUps};
use super::{Action, Bench, Overlay, View, busy};
use protocol::{Command, Device, DeviceInfo, Event, Failed, FailedKind, Load};

/// The state of a GPU that warms up while the CPU runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum GpuWarmUp {
    /// No GPU warms up.
    #[default]
    None,
    /// A second engine compiles the kernels of the GPU; `kernels` are done.
    Warming { select: String, kernels: u32 },
    /// The GPU is ready, and the learner can move the run there.
    Ready { select: String, device: Device },
    /// The GPU could not be opened.
    Failed { reason: String },
}

/// The devices of this machine, and the log of the engine.
#[derive(Clone, Debug, Default)]
pub struct Devices {
    /// The device named on the command line, or `auto`.
    pub asked: String,
    /// The device on which runs start, as the command line names it.
    pub using: String,
    /// The devices found by the probe. Empty until it has answered.
    pub known: Vec<DeviceInfo>,
    pub probed: bool,
    pub gpu_warm_up: GpuWarmUp,
    /// The share of the machine that other programs use, from the engine's last report.
    pub load: Option<Load>,
    /// The lines that drivers, libraries and the engine wrote.
    pub log: Log,
}

impl Devices {
    /// Makes the state before the probe. `auto` starts on the CPU, so that nobody waits in front of an empty screen.
    pub fn new(asked: &str) -> Self {
        let using = if asked == "auto" { "cpu" } else { asked };
        Self {
            asked: asked.to_owned(),
            using: using.to_owned(),
            ..Self::default()
        }
    }

    /// Carries out an action on the devices. `None` for any other action.
    pub(super) fn update(&mut self, action: Action, view: &View) -> Option<FollowUps> {
        let line = match action {
            Action::SwitchDevice => return Some(vec![FollowUp::Use(self.offer()?.to_owned())]),
            Action::Choose if view.overlay == Some(Overlay::Devices) => view.selected,
            Action::ChooseLine(line) if view.overlay == Some(Overlay::Devices) => line,
            _ => return None,
        };
        let chosen = &self.known.get(line)?.select;
        let mut follows = vec![FollowUp::Card(None)];
        if *chosen != self.using {
            follows.push(FollowUp::Use(chosen.clone()));
        }
        Some(follows)
    }

    /// Handles an event about the engine, its machine or its devices. `None` if the event is about a run.
    pub(super) fn on_event(&mut self, event: &Event, bench: &Bench) -> Option<FollowUps> {
        match event {
            Event::Heartbeat { .. } => return Some(vec![FollowUp::Unseen]),
            Event::Load(load) => {
                let changed = busy::changes(self.load.as_ref(), load);
                self.load = Some(load.clone());
                return Some(Vec::from_iter((!changed).then_some(FollowUp::Unseen)));
            }
            Event::Hello(hello) => {
                let text = format!(
                    "Engine {} on {}, {} cores",
                    hello.version, hello.os, hello.cores
                );
                self.log.add(LogLevel::Info, &text);
            }
            Event::Log(log) => {
                let level = match log.level.as_str() {
                    "error" => LogLevel::Error,
                    "warn" => LogLevel::Warning,
                    _ => LogLevel::Info,
                };
                self.log.add(level, &log.text);
            }
            Event::Devices { devices } => {
                let device = self.on_probed(devices.clone());
                let open = device.map(|device| FollowUp::send(Command::Open { device }));
                return Some(Vec::from_iter(open));
            }
            Event::DeviceReady { device } => {
                if bench.run.device() != Some(device) {
                    self.on_opened(device.clone());
                }
            }
            Event::Failed(failed) => return self.on_failed(failed, bench),
            // The CPU compiles nothing, so these are kernels of the GPU that warms up beside the run.
            Event::Compiling {
                kernels: compiled, ..
            } => match &mut self.gpu_warm_up {
                GpuWarmUp::Warming { kernels, .. } => *kernels = *compiled,
                _ => return None,
            },
            _ => return None,
        }
        Some(Vec::new())
    }

    /// Logs a failure, and handles it if it is about the GPU that warms up. `None` if it is about a run.
    fn on_failed(&mut self, failed: &Failed, bench: &Bench) -> Option<FollowUps> {
        self.log.add(LogLevel::Error, &failed.reason);
        let is_about_device = failed.kind == FailedKind::Device && failed.request == 0;
        if !(self.warms_up() && is_about_device && bench.run.state.is_active()) {
            return None;
        }
        self.gpu_warm_up = GpuWarmUp::Failed {
            reason: failed.reason.clone(),
        };
        let text = "The GPU could not be opened; the run stays on the CPU, the log says why";
        Some(vec![FollowUp::Warn(text.to_owned())])
    }

    /// Logs a line of the engine that is not an event. The first such line also leads to a notice.
    pub(super) fn on_malformed(&mut self, line: &str, why: &str) -> FollowUps {
        self.log.malformed += 1;
        let text = format!("Not an event ({why}): {line}");
        self.log.add(LogLevel::Warning, &text);
        let warning = "The engine sent a line that is not an event; the log has it";
        let is_first = self.log.malformed == 1;
        Vec::from_iter(is_first.then(|| FollowUp::Warn(warning.to_owned())))
    }

    /// Handles the end of the engine. The devices that it had opened are closed.
    pub(super) fn on_engine_gone(&mut self, reason: &str) {
        self.load = None;
        let text = format!("The engine is gone: {reason}");
        self.log.add(LogLevel::Error, &text);
        if let GpuWarmUp::Warming { .. } | GpuWarmUp::Ready { .. } = self.gpu_warm_up {
            self.gpu_warm_up = GpuWarmUp::None;
        }
    }

    /// Takes the devices that the probe found. Returns the one to warm up, if any.
    fn on_probed(&mut self, devices: Vec<DeviceInfo>) -> Option<String> {
        self.known = devices;
        self.probed = true;
        if self.asked != "auto" || self.using != "cpu" || self.gpu_warm_up != GpuWarmUp::None {
            return None;
        }
        let gpu = self.known.iter().find(|info| info.device.kind == "gpu")?;
        self.gpu_warm_up = GpuWarmUp::Warming {
            select: gpu.select.clone(),
            kernels: 0,
        };
        Some(gpu.select.clone())
    }

    /// Handles an opened device. If it is the GPU that warms up, the GPU is ready.
    fn on_opened(&mut self, device: Device) {
        if let GpuWarmUp::Warming { select, .. } = &self.gpu_warm_up
            && device.kind != "cpu"
        {
            self.gpu_warm_up = GpuWarmUp::Ready {
                select: select.clone(),
                device,
            };
        }
    }

    /// Returns the device on which learners' kernels are checked: the device of the run. If the run is on the CPU, it is the device named
    /// on the command line, where `auto` may find a GPU.
    pub fn for_kernels(&self) -> &str {
        if self.using == "cpu" {
            &self.asked
        } else {
            &self.using
        }
    }

    /// Returns why the model cannot use a learner's kernel on the device in use. `None` if it can.
    pub fn keeps_own_kernels(&self) -> Option<&'static str> {
        let why = "it trains on the CPU; WGSL takes over on a GPU or on vulkan-cpu";
        (self.using == "cpu").then_some(why)
    }

    /// Returns true while a GPU warms up during the run.
    pub fn warms_up(&self) -> bool {
        matches!(self.gpu_warm_up, GpuWarmUp::Warming { .. })
    }

    /// Returns the device that the learner can move the run to.
    pub fn offer(&self) -> Option<&str> {
        match &self.gpu_warm_up {
            GpuWarmUp::Ready { select, .. } => Some(select),
            _ => None,
        }
    }

    /// Starts all later runs on this device.
    pub fn switch_to(&mut self, select: &str) {
        select.clone_into(&mut self.using);
        self.gpu_warm_up = GpuWarmUp::None;
    }
}
