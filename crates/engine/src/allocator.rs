//! The allocator of the process. It counts the bytes that the system's allocator hands out, and in an engine it keeps large blocks for reuse. Each
//! training step frees large buffers and asks for them again; if they went back to the system, each would cost a page fault per 4 KiB.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// The size from which a block is kept.
const LARGE: usize = 128 * 1024;
/// The number of size classes of kept blocks, four for each power of two.
const CLASSES: usize = 128;
/// The most blocks that are kept of one class.
const DEPTH: usize = 32;

/// The bytes in use.
static CURRENT: AtomicUsize = AtomicUsize::new(0);
/// The most bytes in use at once since [`reset_peak`].
static PEAK: AtomicUsize = AtomicUsize::new(0);
/// True once large blocks are kept.
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

    /// Keeps a block; returns false if there is no room for it.
    fn put(&mut self, block: *mut u8) -> bool {
        let has_room = self.count < DEPTH;
        if has_room {
            self.blocks[self.count] = block.expose_provenance();
            self.count += 1;
        }
        has_room
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

/// Returns the class whose blocks hold `size` bytes, and the size of its blocks; `None` if the size is larger than every class.
fn class(size: usize) -> Option<(usize, usize)> {
    let power = size.checked_next_power_of_two()?;
    let quarter = power / 8;
    // Blocks of 5/8, 6/8, 7/8 and 8/8 of the power of two above: at most a quarter is wasted.
    let eighths = size.div_ceil(quarter).clamp(5, 8);
    let index =
        (power.trailing_zeros() as usize - LARGE.trailing_zeros() as usize) * 4 + eighths - 5;
    (index < CLASSES).then_some((index, quarter * eighths))
}

/// Returns the class of a large request, and the layout of its blocks; `None` if the block is not kept.
fn large(layout: Layout) -> Option<(usize, Layout)> {
    if layout.size() < LARGE || layout.align() > 64 {
        return None;
    }
    let (index, size) = class(layout.size())?;
    Some((index, Layout::from_size_align(size, 64).ok()?))
}

/// Returns the size in bytes of the blocks of a class.
fn block_size(class: usize) -> usize {
    (LARGE << (class / 4)) / 8 * (class % 4 + 5)
}

#[expect(unsafe_code, reason = "an allocator is an unsafe trait")]
// SAFETY: every block comes from `System` with the alignment asked for and at least the size asked for, and is returned
// to it or kept for a later request of its class; counting touches no memory of the caller.
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

/// Keeps large blocks for reuse from now on.
pub fn keep() {
    KEEPS.store(true, Relaxed);
}

/// Returns the bytes in use now, without the kept blocks.
pub fn current() -> u64 {
    CURRENT.load(Relaxed) as u64
}

/// Returns the most bytes in use at once since the last [`reset_peak`].
pub fn peak() -> u64 {
    PEAK.load(Relaxed) as u64
}

/// Begins a new peak at the bytes in use now.
pub fn reset_peak() {
    PEAK.store(CURRENT.load(Relaxed), Relaxed);
}

/// Sets the peak back to an earlier value, or to the bytes in use now if these are more. Call it after looking at a run, because the memory that
/// this took is not the training's.
pub fn forget_since(earlier_peak: u64) {
    let earlier = usize::try_from(earlier_peak).unwrap_or(usize::MAX);
    PEAK.store(earlier.max(CURRENT.load(Relaxed)), Relaxed);
}

/// Gives all kept blocks back to the system, because the next run may need other sizes.
pub fn release() {
    for (index, kept) in KEPT.iter().enumerate() {
        let layout = Layout::from_size_align(block_size(index), 64);
        let (Ok(mut kept), Ok(block)) = (kept.lock(), layout) else {
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
    fn a_block_holds_the_requested_size_and_wastes_at_most_a_quarter() {
        for size in (LARGE..LARGE * 40).step_by(4093) {
            let (index, block) = class(size).expect("in range");
            let wasted = block.checked_sub(size).expect("the block holds the size");
            assert!(wasted <= block / 4, "{size} in {block}");
            assert_eq!(block_size(index), block);
        }
        assert!(class(usize::MAX).is_none());
    }
}
