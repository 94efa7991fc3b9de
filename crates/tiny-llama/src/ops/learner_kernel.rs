//! The learner's kernels that compute in the running model: for each part that can be replaced, the last text that passed its check. An
//! operation asks here before it launches its own kernel. No kernel is launched at a size at which it was not checked, and the results of
//! its first launches are compared with those of the part's own kernel.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use burn::cubecl::prelude::ExecutionMode;
use burn::cubecl::server::KernelArguments;
use burn_cubecl::tensor::CubeTensor;

use super::gpu::wgsl::{self, MAX_GROUPS, Wgsl};
use protocol::{KernelSwap, Sizes, template, with_names};

/// The number of first launches, forward and backward, that are compared with the part's own kernel. They take some steps.
const COMPARED: u64 = 32;
/// The largest difference between the two, relative to the largest value, with which they agree.
const TOLERANCE: f32 = 5e-3;
/// The alignment in bytes of a binding that begins inside a buffer; it suits every device.
const ALIGNMENT: u64 = 256;

/// The parts that can be replaced.
pub const PARTS: &[Part] = &[
    Part {
        name: "mlp.activation",
        kernels: 2,
        sizes: &["N"],
    },
    Part {
        name: "norm1",
        kernels: 1,
        sizes: &["ROWS", "COLS"],
    },
    Part {
        name: "attention.rope",
        kernels: 1,
        sizes: &["T", "H", "D"],
    },
];

/// The learner's kernels that compute in models, and those that were removed. The code that adopts kernels holds this value. Every thread
/// whose models use the kernels has called [`LearnerKernels::enter`].
#[derive(Clone, Debug, Default)]
pub struct LearnerKernels(Arc<Mutex<KernelsNow>>);

#[derive(Debug, Default)]
struct KernelsNow {
    parts: BTreeMap<&'static str, Arc<LivePart>>,
    dropped: Vec<DroppedKernel>,
}

thread_local! {
    /// The kernels that compute in the models of this thread.
    static ENTERED: RefCell<LearnerKernels> = RefCell::default();
}

/// A learner's kernels that were removed because their results differed from the part's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DroppedKernel {
    pub exercise: String,
    pub part: &'static str,
    pub why: String,
}

/// A learner's kernels for one part.
#[derive(Debug)]
pub struct LivePart {
    name: &'static str,
    pub swap: KernelSwap,
    /// The number of launches so far.
    launches: AtomicU64,
    /// Why the part's own kernel ran instead, at the last launch that was refused.
    refused: Mutex<Option<String>>,
}

/// One use of a learner's kernel.
#[derive(Clone, Copy, Debug)]
pub struct LiveKernel<'a> {
    pub live: &'a LivePart,
    /// 0 for the forward kernel, 1 for the backward kernel.
    pub which: usize,
    pub sizes: &'a [(&'a str, u64)],
    /// The number of workgroups along x. The other axes have one.
    pub cover: WorkgroupCount,
    /// The number of launches, each on its own share of every buffer. A kernel that handles a single sequence is launched once for each
    /// sequence.
    pub shares: u64,
}

/// The number of workgroups of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkgroupCount {
    Groups(u64),
    /// As many workgroups as are needed for this number of invocations.
    Invocations(u64),
}

/// Locks a mutex, even if a thread panicked while it held the mutex.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the sizes that texts of a part may name.
///
/// # Errors
/// When no part has this name.
pub fn sizes(part: &str) -> Result<&'static [&'static str], String> {
    find(part).map(|part| part.sizes)
}

/// A part of the model that a learner's kernels can replace.
#[derive(Debug)]
pub struct Part {
    pub name: &'static str,
    /// 1 for a forward kernel alone, 2 with a backward kernel.
    pub kernels: usize,
    /// The sizes that the texts may name.
    pub sizes: &'static [&'static str],
}

fn find(part: &str) -> Result<&'static Part, String> {
    let found = PARTS.iter().find(|known| known.name == part);
    found.ok_or_else(|| {
        let names: Vec<_> = PARTS.iter().map(|known| known.name).collect();
        format!(
            "no part of the model is called `{part}`; these can be replaced: {}",
            names.join(", ")
        )
    })
}

impl LearnerKernels {
    /// Lets these kernels, and kernels that are adopted later, compute in the models of this thread.
    pub fn enter(&self) {
        ENTERED.set(self.clone());
    }

    /// Replaces a part with kernels from the next launch on, at the sizes at which they were right.
    ///
    /// # Errors
    /// When no part has this name, or the part needs another number of kernels. The previous kernels then stay.
    pub fn install(&self, swap: KernelSwap) -> Result<(), String> {
        let Part { name, kernels, .. } = find(&swap.part)?;
        if swap.kernels.len() != *kernels {
            return Err(format!(
                "`{name}` needs {kernels} kernels, and there are {}",
                swap.kernels.len()
            ));
        }
        let live = LivePart {
            name,
            swap,
            launches: AtomicU64::new(0),
            refused: Mutex::new(None),
        };
        locked(&self.0).parts.insert(name, Arc::new(live));
        Ok(())
    }

    /// Restores a part's own kernel, or those of all parts.
    pub fn clear(&self, part: Option<&str>) {
        let parts = &mut locked(&self.0).parts;
        parts.retain(|name, _| part.is_some_and(|part| part != *name));
    }

    /// Returns the learner's kernels for a part, if there are any.
    pub fn part_in_use(&self, part: &str) -> Option<Arc<LivePart>> {
        locked(&self.0).parts.get(part).cloned()
    }

    /// Returns the kernels that were removed since the last call.
    pub fn take_dropped(&self) -> Vec<DroppedKernel> {
        std::mem::take(&mut locked(&self.0).dropped)
    }
}

/// Returns true if a learner's kernel computes in the models of this thread.
pub fn any() -> bool {
    ENTERED.with_borrow(|kernels| !locked(&kernels.0).parts.is_empty())
}

/// Returns the learner's kernels for a part in the models of this thread, if there are any.
pub fn part_in_use(part: &str) -> Option<Arc<LivePart>> {
    ENTERED.with_borrow(|kernels| kernels.part_in_use(part))
}

/// Runs `work` on this thread with the program's own kernels, which the reference of parity requires.
pub fn without<R>(work: impl FnOnce() -> R) -> R {
    let before = ENTERED.take();
    let result = work();
    before.enter();
    result
}

impl LivePart {
    /// Returns true if results are still compared with those of the part's own kernel.
    pub fn is_new(&self) -> bool {
        self.launches() <= COMPARED
    }

    /// Returns true if a launch agrees with the part's own kernel. If not, the kernels are removed.
    pub fn agrees(&self, found: &[f32], own: &[f32]) -> bool {
        let largest = own
            .iter()
            .fold(f32::MIN_POSITIVE, |most, x| most.max(x.abs()));
        // A NaN agrees only with a NaN of equal bits.
        let agree = |(found, own): (&f32, &f32)| {
            found.to_bits() == own.to_bits() || (found - own).abs() <= TOLERANCE * largest
        };
        let Some(index) = found.iter().zip(own).position(|pair| !agree(pair)) else {
            return true;
        };
        let kernels = ENTERED.with_borrow(LearnerKernels::clone);
        let mut now = locked(&kernels.0);
        let current = now.parts.get(self.name);
        if current.is_some_and(|live| std::ptr::eq(&**live, self)) {
            now.parts.remove(self.name);
            now.dropped.push(DroppedKernel {
                exercise: self.swap.exercise.clone(),
                part: self.name,
                why: format!(
                    "at launch {} element {index} was {}, but the model's own kernel gives {}; \
                     your kernel was removed",
                    self.launches(),
                    found[index],
                    own[index],
                ),
            });
        }
        false
    }

    /// Returns the number of launches so far.
    pub fn launches(&self) -> u64 {
        self.launches.load(Ordering::Acquire)
    }

    /// Returns why the part's own kernel ran instead of the last launch that was refused; `None` if none was refused.
    pub fn refused(&self) -> Option<String> {
        locked(&self.refused).clone()
    }
}

impl LiveKernel<'_> {
    /// Launches the kernel on contiguous f32 buffers in the order of its bindings, one share of every buffer after the other. Returns
    /// false if this device or grid does not support the kernel: the caller then launches the part's own.
    pub fn launch(self, buffers: &[&CubeTensor]) -> bool {
        match self.try_launch(buffers) {
            Ok(()) => {
                self.live.launches.fetch_add(1, Ordering::Release);
                true
            }
            Err(why) => {
                *locked(&self.live.refused) = Some(why);
                false
            }
        }
    }

    fn try_launch(self, buffers: &[&CubeTensor]) -> Result<(), String> {
        let kernel = self.live.swap.kernels.get(self.which);
        let (Some(kernel), Some(first)) = (kernel, buffers.first()) else {
            return Err("there is no kernel for this direction".to_owned());
        };
        let sizes: Sizes = self
            .sizes
            .iter()
            .map(|(name, n)| ((*name).to_owned(), *n))
            .collect();
        if !self.live.swap.sizes.contains(&sizes) {
            return Err(format!(
                "the kernel was not checked at this model's {}; \
                 save the file again to check it there",
                with_names(&sizes)
            ));
        }
        let runtime = first.client.name();
        if !runtime.contains("wgsl") {
            return Err(format!(
                "this device runs {runtime}, which does not run WGSL"
            ));
        }
        let groups = match self.cover {
            WorkgroupCount::Groups(count) => count,
            WorkgroupCount::Invocations(count) => {
                count.div_ceil(u64::from(kernel.workgroup[0].max(1)))
            }
        };
        if groups > MAX_GROUPS as u64 {
            return Err(format!(
                "the kernel would need {groups} workgroups along one axis; \
                 at most {MAX_GROUPS} are possible"
            ));
        }
        let shares = self.shares.max(1);
        let bytes = |buffer: &CubeTensor| 4 * buffer.meta.num_elements() as u64;
        for buffer in buffers {
            let misaligned = shares > 1 && !(bytes(buffer) / shares).is_multiple_of(ALIGNMENT);
            if misaligned || !bytes(buffer).is_multiple_of(4 * shares) {
                return Err(format!(
                    "the buffers of one sequence do not start at multiples of {ALIGNMENT} bytes"
                ));
            }
        }
        for share in 0..shares {
            let arguments = buffers.iter().fold(KernelArguments::new(), |all, buffer| {
                let part = bytes(buffer) / shares;
                let handle = buffer
                    .handle
                    .clone()
                    .offset_start(share * part)
                    .offset_end((shares - 1 - share) * part);
                all.with_buffer(handle.binding())
            });
            let program = LearnerText {
                name: self.live.name,
                text: kernel.text.clone(),
                workgroup: kernel.workgroup,
                sizes: sizes.clone(),
            };
            wgsl::launch_with(program, [groups as usize, 1, 1], first, arguments);
        }
        Ok(())
    }
}

/// A learner's text with its sizes, which are put in when the text is compiled.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct LearnerText {
    name: &'static str,
    text: String,
    workgroup: [u32; 3],
    sizes: Sizes,
}

impl Wgsl for LearnerText {
    const MODE: ExecutionMode = ExecutionMode::Checked;

    fn name(&self) -> &'static str {
        self.name
    }

    fn text(&self) -> String {
        // The check has filled the text in at these sizes before, so filling it in does not fail here.
        template::fill(&self.text, &self.sizes)
            .map_or_else(|_| self.text.clone(), |filled| filled.text)
    }

    fn workgroup(&self) -> [u32; 3] {
        self.workgroup
    }
}
