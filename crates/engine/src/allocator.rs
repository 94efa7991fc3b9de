//! The process's allocator: the system's, counted; in an engine large blocks are kept for reuse. A training step frees and asks for
//! the same large buffers again and again; handing them back to the system would cost a page fault per 4 KiB each time.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// Blocks of at least this size are kept.
const LARGE: usize = 128 * 1024;
/// Size classes of kept blocks: four per power of two.
const CLASSES: usize = 128;
/// Blocks kept per class.
const DEPTH: usize = 32;

static CURRENT: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static KEEPS: AtomicBool = AtomicBool::new(false);

struct KeptBlocks {
    blocks: [usize; DEPTH],
    count: usize,
}

impl KeptBlocks {
    fn take(&mut self) -> Option<*mut u8> {
        self.count = self.count.checked_sub(1)?;
        Some(std::ptr::with_exposed_provenance_mut(
            self.blocks[self.count],
        ))
    }

    /// Whether there was room.
    fn put(&mut self, block: *mut u8) -> bool {
        let room = self.count < DEPTH;
        if room {
            self.blocks[self.count] = block.expose_provenance();
            self.count += 1;
        }
        room
    }
}

static KEPT: [Mutex<KeptBlocks>; CLASSES] = [const {
    Mutex::new(KeptBlocks {
        blocks: [0; DEPTH],
        count: 0,
    })
}; CLASSES];

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The class whose blocks hold `size`, and the size of its blocks.
fn class(size: usize) -> Option<(usize, usize)> {
    let power = size.checked_next_power_of_two()?;
    let quarter = power / 8;
    // Blocks of 5/8, 6/8, 7/8 and 8/8 of the power of two above: at most a quarter is wasted.
    let eighths = size.div_ceil(quarter).clamp(5, 8);
    let index =
        (power.trailing_zeros() as usize - LARGE.trailing_zeros() as usize) * 4 + eighths - 5;
    (index < CLASSES).then_some((index, quarter * eighths))
}

/// The class of a large request, and the layout of its blocks.
fn large(layout: Layout) -> Option<(usize, Layout)> {
    if layout.size() < LARGE || layout.align() > 64 {
        return None;
    }
    let (index, size) = class(layout.size())?;
    Some((index, Layout::from_size_align(size, 64).ok()?))
}

#[expect(unsafe_code, reason = "an allocator is an unsafe trait")]
// SAFETY: every block comes from `System` with the alignment asked for and at least the size asked for, and is returned
// to it or kept for a later request of the same class; counting touches no memory of the caller.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = CURRENT.fetch_add(layout.size(), Relaxed) + layout.size();
        PEAK.fetch_max(now, Relaxed);
        let (kept, block) = match large(layout) {
            Some((index, block)) => {
                let kept = KEPT[index].lock().ok();
                (kept.and_then(|mut kept| kept.take()), block)
            }
            None => (None, layout),
        };
        // SAFETY: the caller's contract; a block of a class is not empty.
        kept.unwrap_or_else(|| unsafe { System.alloc(block) })
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        CURRENT.fetch_sub(layout.size(), Relaxed);
        let (kept, block) = match large(layout) {
            Some((index, block)) => {
                let keep = || KEPT[index].lock().is_ok_and(|mut kept| kept.put(pointer));
                (KEEPS.load(Relaxed) && keep(), block)
            }
            None => (false, layout),
        };
        if !kept {
            // SAFETY: the caller's contract; `alloc` took a block of a class from the system with this layout.
            unsafe { System.dealloc(pointer, block) }
        }
    }
}

/// From now on large blocks are kept.
pub fn keep() {
    KEEPS.store(true, Relaxed);
}

/// Bytes in use now, kept blocks not counted.
pub fn current() -> u64 {
    CURRENT.load(Relaxed) as u64
}

/// Most bytes in use at once since the last [`reset_peak`].
pub fn peak() -> u64 {
    PEAK.load(Relaxed) as u64
}

/// Starts a new peak at the present use.
pub fn reset_peak() {
    PEAK.store(CURRENT.load(Relaxed), Relaxed);
}

/// Forgets what was in use since [`peak`] was `before`, but for what still is: looking at a run is not its training.
pub fn forget_since(before: u64) {
    let before = usize::try_from(before).unwrap_or(usize::MAX);
    PEAK.store(before.max(CURRENT.load(Relaxed)), Relaxed);
}

/// Gives all kept blocks back to the system: after a run, and before another of a different size.
pub fn release() {
    for (index, kept) in KEPT.iter().enumerate() {
        let size = (LARGE << (index / 4)) / 8 * (index % 4 + 5);
        let (Ok(mut kept), Ok(block)) = (kept.lock(), Layout::from_size_align(size, 64)) else {
            continue;
        };
        while let Some(pointer) = kept.take() {
            #[expect(unsafe_code, reason = "kept blocks came from the system allocator")]
            // SAFETY: every kept block was taken from the system with its class's layout.
            unsafe {
                System.dealloc(pointer, block);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_what_they_promise() {
        for size in (LARGE..LARGE * 40).step_by(4093) {
            let (index, block) = class(size).expect("in range");
            assert!(
                block >= size && block <= size + size / 3 + 1,
                "{size} in {block}"
            );
            assert_eq!((LARGE << (index / 4)) / 8 * (index % 4 + 5), block);
        }
        assert!(class(usize::MAX).is_none());
    }
}
