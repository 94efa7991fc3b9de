//! The kinds of slices and the directions of copies, which follow from the categories and names in the files.

use crate::names;

/// The kind of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SliceKind {
    /// One execution of a kernel on a device.
    Kernel,
    /// A whole graph on a device, if the profiler did not record its kernels.
    Graph,
    /// A copy between or within memories, done by a device.
    Copy,
    /// A memory region filled by a device (CUDA only; in HIP this is a kernel).
    Memset,
    /// A call of the host that launches a kernel.
    Launch,
    /// A call of the host that launches a graph.
    GraphLaunch,
    /// A call in which the host waits for a device.
    Sync,
    /// Any other call of a runtime or driver.
    Api,
    /// An operation of the framework, on the host.
    Op,
    /// A function of Python, as the profiler records it with stacks.
    Frame,
    /// A range named by the program, on the host: a step, a phase.
    Annotation,
    /// A range named by the program, which the profiler projected onto a device.
    DeviceAnnotation,
    /// Overhead of the profiler.
    Overhead,
    /// Anything else.
    Other,
}

impl SliceKind {
    /// Returns true for work that a device does.
    pub fn on_device(self) -> bool {
        matches!(self, Self::Kernel | Self::Graph | Self::Copy | Self::Memset)
    }

    /// Returns true for calls of a runtime or driver.
    pub fn is_call(self) -> bool {
        matches!(
            self,
            Self::Launch | Self::GraphLaunch | Self::Sync | Self::Api
        )
    }

    /// Returns the kind of an event, from its category as named by Kineto, rocprofv3 and this crate, and from its name.
    pub(crate) fn from_category(category: &str, name: &str) -> Self {
        match category {
            "" => Self::from_name(name),
            "cpu_op" | "operator" => Self::Op,
            "python_function" => Self::Frame,
            "kernel" | "gpu_kernel" | "kernel_dispatch" | "concurrent_kernel" => Self::Kernel,
            "graph" => Self::Graph,
            "gpu_memcpy" | "memcpy" | "memory_copy" => Self::Copy,
            "gpu_memset" | "memset" => Self::Memset,
            "user_annotation" | "nvtx" | "roctx" | "marker_api" | "annotation" | "step"
            | "phase" => Self::Annotation,
            "gpu_user_annotation" => Self::DeviceAnnotation,
            "overhead" => Self::Overhead,
            _ if ["runtime", "driver", "hip_api", "cuda_api", "hsa_api"]
                .into_iter()
                .any(|part| category.contains(part)) =>
            {
                Self::from_call(name)
            }
            _ if names::is_step(name) => Self::Annotation,
            // Older versions begin a category with a capital, rocprof-sys with `rocm_`, and an event may have several categories.
            _ => category
                .split(',')
                .map(|part| part.trim().trim_start_matches("rocm_").to_ascii_lowercase())
                .filter(|spelled| spelled != category)
                .map(|spelled| Self::from_category(&spelled, name))
                .find(|kind| *kind != Self::Other)
                .unwrap_or(Self::Other),
        }
    }

    /// Returns the kind of an event without a category, from its name.
    fn from_name(name: &str) -> Self {
        let is_call_of = |runtime: &str| {
            let rest = name.strip_prefix(runtime).unwrap_or("");
            rest.starts_with(|c: char| c.is_ascii_uppercase())
        };
        if names::is_step(name) || names::phase(name).is_some() {
            Self::Annotation
        } else if name.starts_with("Memcpy") {
            Self::Copy
        } else if name.starts_with("Memset") {
            Self::Memset
        } else if name.starts_with("aten::") {
            Self::Op
        } else if ["cuda", "cu", "hip"].into_iter().any(is_call_of) {
            Self::from_call(name)
        } else {
            Self::Other
        }
    }

    /// Returns a category that `from_category` maps to this kind.
    pub(crate) fn category(self) -> &'static str {
        match self {
            Self::Kernel => "kernel_dispatch",
            Self::Graph => "graph",
            Self::Copy => "memory_copy",
            Self::Memset => "memset",
            Self::Launch | Self::GraphLaunch | Self::Sync | Self::Api => "runtime_api",
            Self::Op => "cpu_op",
            Self::Frame => "python_function",
            Self::Annotation => "annotation",
            Self::DeviceAnnotation => "gpu_user_annotation",
            Self::Overhead => "overhead",
            Self::Other => "other",
        }
    }

    /// Returns the kind of a call of CUDA, HIP or a driver, from its name; a version such as `_v7000` at its end does not matter.
    pub(crate) fn from_call(name: &str) -> Self {
        let function = match name.rfind("_v") {
            Some(at) if name[at + 2..].bytes().all(|b| b.is_ascii_digit()) => &name[..at],
            _ => name,
        };
        let has = |part: &str| function.contains(part);
        if has("GraphLaunch") {
            Self::GraphLaunch
        } else if has("Synchronize")
            && ["Device", "Stream", "Event", "Context", "Ctx"]
                .into_iter()
                .any(has)
        {
            Self::Sync
        } else if has("Launch")
            && (has("Kernel")
                || has("LaunchByPtr")
                || has("LaunchGrid")
                || matches!(function, "cudaLaunch" | "cuLaunch"))
            && !has("HostFunc")
        {
            Self::Launch
        } else {
            Self::Api
        }
    }
}

/// The direction of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// From the host to a device.
    H2D,
    /// From a device to the host.
    D2H,
    /// Within a device.
    D2D,
    /// Within the host.
    H2H,
    /// From one device to another.
    P2P,
    /// The direction is not in the file, or the copy uses another memory, such as an array.
    Other,
}

impl Direction {
    /// Returns true if host and device exchange data.
    pub(crate) fn is_between_host_and_device(self) -> bool {
        matches!(self, Self::H2D | Self::D2H)
    }

    /// Returns the direction in a name: `Memcpy HtoD (…)`, `MEMORY_COPY_HOST_TO_DEVICE`, `Host-to-Device`.
    pub(crate) fn from_name(name: &str) -> Self {
        let letters: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        let lower = letters.to_ascii_lowercase();
        DIRECTIONS
            .iter()
            .find(|(_, parts)| parts.iter().any(|part| lower.contains(part)))
            .map_or(Self::Other, |(direction, _)| *direction)
    }

    /// Returns the name in the JSON: `H2D`.
    pub(crate) fn label(self) -> &'static str {
        ["H2D", "D2H", "D2D", "H2H", "P2P", "other"][self as usize]
    }
}

/// The parts of names that stand for a direction, in lower case and without punctuation.
const DIRECTIONS: [(Direction, [&str; 3]); 5] = [
    (Direction::H2D, ["htod", "hosttodevice", "h2d"]),
    (Direction::D2H, ["dtoh", "devicetohost", "d2h"]),
    (Direction::D2D, ["dtod", "devicetodevice", "d2d"]),
    (Direction::H2H, ["htoh", "hosttohost", "h2h"]),
    (Direction::P2P, ["ptop", "peertopeer", "p2p"]),
];
