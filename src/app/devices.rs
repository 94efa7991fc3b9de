//! Which device computes, which others there are, and the offer to move from the CPU to a GPU that has warmed up.
//! It opens nothing: devices are known from events only.

use super::log::{Log, LogLevel};
use super::part::{Follow, Follows};
use super::{Action, Bench, Overlay, View, busy};
use protocol::{Command, Device, DeviceInfo, Event, Failed, FailedKind, Load};

/// A GPU that warms up while the CPU runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum GpuWarmUp {
    /// There is nothing to wait for.
    #[default]
    None,
    /// Asked for; kernels compile in a second engine.
    Warming { select: String, kernels: u32 },
    /// Open and ready: the learner can move there.
    Ready { select: String, device: Device },
    /// It could not be opened.
    Failed { reason: String },
}

#[derive(Clone, Debug, Default)]
pub struct Devices {
    /// What was asked for on the command line.
    pub asked: String,
    /// What runs are started on.
    pub using: String,
    /// Empty until the probe has answered.
    pub known: Vec<DeviceInfo>,
    pub probed: bool,
    pub gpu_warm_up: GpuWarmUp,
    /// The share of the machine that other programs use, as the engine last reported it.
    pub load: Option<Load>,
    /// What drivers, libraries and the engine wrote.
    pub log: Log,
}

impl Devices {
    /// `auto` begins on the CPU, so that nobody waits in front of an empty screen.
    pub fn new(asked: &str) -> Self {
        let using = if asked == "auto" { "cpu" } else { asked };
        Self {
            asked: asked.to_owned(),
            using: using.to_owned(),
            ..Self::default()
        }
    }

    /// Carries out an action on the devices.
    pub(super) fn update(&mut self, action: Action, view: &View) -> Option<Follows> {
        let line = match action {
            Action::SwitchDevice => return Some(vec![Follow::Use(self.offer()?.to_owned())]),
            Action::Choose if view.overlay == Some(Overlay::Devices) => view.selected,
            Action::ChooseLine(line) if view.overlay == Some(Overlay::Devices) => line,
            _ => return None,
        };
        let chosen = &self.known.get(line)?.select;
        let moves = (*chosen != self.using).then(|| Follow::Use(chosen.clone()));
        Some([Follow::Card(None)].into_iter().chain(moves).collect())
    }

    /// Takes in what the engine says of itself, of its machine and of devices; any other event is about a run.
    pub(super) fn hear(&mut self, event: &Event, bench: &Bench) -> Option<Follows> {
        match event {
            Event::Heartbeat { .. } => return Some(vec![Follow::Unseen]),
            Event::Load(load) => {
                let seen = busy::changes(self.load.as_ref(), load);
                self.load = Some(load.clone());
                return Some(Vec::from_iter((!seen).then_some(Follow::Unseen)));
            }
            Event::Hello(hello) => {
                let (version, os, cores) = (&hello.version, &hello.os, hello.cores);
                let text = format!("Engine {version} on {os}, {cores} cores");
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
                let device = self.take_probed(devices.clone());
                let open = device.map(|device| Follow::send(Command::Open { device }));
                return Some(Vec::from_iter(open));
            }
            Event::DeviceReady { device } => {
                if bench.run.device() != Some(device) {
                    self.note_opened(device.clone());
                }
            }
            Event::Failed(failed) => return self.failed(failed, bench),
            // The CPU compiles nothing, so these are kernels of the GPU that warms up beside the run.
            Event::Compiling { kernels, .. } => match &mut self.gpu_warm_up {
                GpuWarmUp::Warming { kernels: known, .. } => *known = *kernels,
                _ => return None,
            },
            _ => return None,
        }
        Some(Vec::new())
    }

    /// A failure goes to the log. It is about the GPU that warms up, or about a run.
    fn failed(&mut self, failed: &Failed, bench: &Bench) -> Option<Follows> {
        self.log.add(LogLevel::Error, &failed.reason);
        let of_device = failed.kind == FailedKind::Device && failed.request == 0;
        if !(self.warms_up() && of_device && bench.run.state.is_active()) {
            return None;
        }
        self.gpu_warm_up = GpuWarmUp::Failed {
            reason: failed.reason.clone(),
        };
        let text = "The GPU could not be opened; the run stays on the CPU, the log says why";
        Some(vec![Follow::Warn(text.to_owned())])
    }

    /// The engine sent a line that is not an event; the first one is told.
    pub(super) fn hear_malformed(&mut self, line: &str, why: &str) -> Follows {
        self.log.malformed += 1;
        let text = format!("Not an event ({why}): {line}");
        self.log.add(LogLevel::Warning, &text);
        let told = "The engine sent a line that is not an event; the log has it";
        let first = self.log.malformed == 1;
        Vec::from_iter(first.then(|| Follow::Warn(told.to_owned())))
    }

    /// The engine has ended, and with it what it had opened.
    pub(super) fn engine_gone(&mut self, reason: &str) {
        self.load = None;
        let text = format!("The engine is gone: {reason}");
        self.log.add(LogLevel::Error, &text);
        if let GpuWarmUp::Warming { .. } | GpuWarmUp::Ready { .. } = self.gpu_warm_up {
            self.gpu_warm_up = GpuWarmUp::None;
        }
    }

    /// Notes the devices that the probe found; returns one to warm up.
    fn take_probed(&mut self, devices: Vec<DeviceInfo>) -> Option<String> {
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

    /// Notes that a device was opened.
    fn note_opened(&mut self, device: Device) {
        if let GpuWarmUp::Warming { select, .. } = &self.gpu_warm_up
            && device.kind != "cpu"
        {
            self.gpu_warm_up = GpuWarmUp::Ready {
                select: select.clone(),
                device,
            };
        }
    }

    /// Where learners' kernels are checked: where the run computes; a run on the CPU leaves it to a GPU if that was not
    /// ruled out on the command line.
    pub fn for_kernels(&self) -> &str {
        if self.using == "cpu" {
            &self.asked
        } else {
            &self.using
        }
    }

    /// Why a model on the device in use computes with no kernel of a learner's; none where it can.
    pub fn keeps_own_kernels(&self) -> Option<&'static str> {
        let why = "it trains on the CPU; WGSL takes over on a GPU or on vulkan-cpu";
        (self.using == "cpu").then_some(why)
    }

    /// Whether a GPU warms up beside the run.
    pub fn warms_up(&self) -> bool {
        matches!(self.gpu_warm_up, GpuWarmUp::Warming { .. })
    }

    /// The device that the learner can move to.
    pub fn offer(&self) -> Option<&str> {
        match &self.gpu_warm_up {
            GpuWarmUp::Ready { select, .. } => Some(select),
            _ => None,
        }
    }

    /// Runs go there from now on.
    pub fn switch_to(&mut self, select: &str) {
        select.clone_into(&mut self.using);
        self.gpu_warm_up = GpuWarmUp::None;
    }
}
