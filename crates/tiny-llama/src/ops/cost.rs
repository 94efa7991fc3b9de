//! Time inside a step: spans around operations on the device thread while a step is profiled. Without profiling, an operation costs
//! one thread-local read.

use std::cell::RefCell;
use std::time::{Duration, Instant};

/// The layer and the part of the model to which work belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scope {
    /// Layers are counted from 0; `None` is outside the blocks.
    pub layer: Option<u16>,
    pub part: &'static str,
}

impl Scope {
    /// Returns a scope inside block `layer`.
    pub fn layer(layer: usize, part: &'static str) -> Self {
        Self {
            layer: u16::try_from(layer).ok(),
            part,
        }
    }

    /// Returns a scope outside the blocks.
    pub const fn outside(part: &'static str) -> Self {
        Self { layer: None, part }
    }
}

/// The phase of a training step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum Phase {
    Forward,
    Backward,
    Optimizer,
}

/// The work that follows from the shapes: floating-point operations, and bytes if every operand moves once.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    pub flops: f64,
    pub bytes: f64,
    /// The reason why the operation has no cost, if it does no work that can be counted.
    pub nothing: Option<&'static str>,
}

impl Cost {
    /// Returns the cost of `flops` operations over `elements` values of four bytes.
    pub fn new(flops: f64, elements: f64) -> Self {
        Self {
            flops,
            bytes: 4.0 * elements,
            nothing: None,
        }
    }

    /// Returns the cost of no work, with the reason.
    pub const fn nothing(why: &'static str) -> Self {
        Self {
            flops: 0.0,
            bytes: 0.0,
            nothing: Some(why),
        }
    }
}

/// The operation that a span measures.
#[derive(Clone, Copy, Debug)]
pub struct SpanRow {
    pub scope: Scope,
    pub phase: Phase,
    pub op: &'static str,
    pub version: &'static str,
    pub cost: Cost,
}

/// A finished span. `start` counts from the beginning of the recording.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub row: SpanRow,
    pub start: Duration,
    pub length: Duration,
}

struct Recorder {
    began: Instant,
    spans: Vec<Span>,
    /// The index of the span whose work runs now.
    open: Option<usize>,
}

thread_local! {
    static RECORDER: RefCell<Option<Recorder>> = const { RefCell::new(None) };
}

/// Starts recording on this thread.
pub fn start() {
    RECORDER.with_borrow_mut(|slot| {
        *slot = Some(Recorder {
            began: Instant::now(),
            spans: Vec::with_capacity(1024),
            open: None,
        })
    });
}

/// Ends recording on this thread and returns its spans in order.
pub fn stop() -> Vec<Span> {
    RECORDER
        .with_borrow_mut(Option::take)
        .map_or_else(Vec::new, |recorder| recorder.spans)
}

/// Returns the index of this thread's open span; `None` outside spans and while nothing is recorded. A launch that happens now belongs to
/// this span.
pub fn current() -> Option<usize> {
    RECORDER.with_borrow(|slot| slot.as_ref().and_then(|recorder| recorder.open))
}

/// Returns the operation of this thread's open span; `None` as for [`current`].
pub fn current_row() -> Option<SpanRow> {
    RECORDER.with_borrow(|slot| {
        let recorder = slot.as_ref()?;
        Some(recorder.spans[recorder.open?].row)
    })
}

/// Marks the open span as the work of a learner's kernel.
pub fn mark_learners_kernel() {
    RECORDER.with_borrow_mut(|slot| {
        if let Some(recorder) = slot.as_mut()
            && let Some(index) = recorder.open
        {
            recorder.spans[index].row.version = "yours";
        }
    });
}

/// Runs `work` inside a span. A span inside another one counts as part of the outer one.
pub fn span<R>(row: SpanRow, work: impl FnOnce() -> R) -> R {
    let opened = RECORDER.with_borrow_mut(|slot| {
        let recorder = slot.as_mut()?;
        if recorder.open.is_some() {
            return None;
        }
        recorder.spans.push(Span {
            row,
            start: recorder.began.elapsed(),
            length: Duration::ZERO,
        });
        recorder.open = Some(recorder.spans.len() - 1);
        recorder.open
    });
    let result = work();
    super::device_progress::DEVICE.step();
    if let Some(index) = opened {
        RECORDER.with_borrow_mut(|slot| {
            if let Some(recorder) = slot.as_mut() {
                let end = recorder.began.elapsed();
                let span = &mut recorder.spans[index];
                span.length = end.saturating_sub(span.start);
                recorder.open = None;
            }
        });
    }
    result
}
