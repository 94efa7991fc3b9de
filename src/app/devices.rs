//! Which device computes, which others there are, and the offer to move from the CPU to a GPU that has warmed up.
//! It opens nothing: devices are known from events only.

use super::log::Log;
use protocol::{Device, DeviceInfo, Load};

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

    /// Notes the devices that the probe found; returns one to warm up.
    pub fn take_probed(&mut self, devices: Vec<DeviceInfo>) -> Option<String> {
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
    pub fn note_opened(&mut self, device: Device) {
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
