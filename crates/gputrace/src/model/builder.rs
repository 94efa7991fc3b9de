//! Builds a [`Trace`]: collects slices, links calls with the work that they launched, and sorts.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::{
    Counter, Detail, Lane, LaneKind, NONE, NameId, Process, Slice, SliceKind, Trace, Unread,
};
use crate::{doubts, owners};

/// The longest name that is kept, in bytes.
const NAME_BYTES: usize = 16 * 1024;
/// The largest number of slices that are kept: about 1.3 GB while they are sorted.
const SLICES: usize = 16_000_000;
/// The largest number of reasons that are kept for rows that could not be read.
const REASONS: usize = 32;

/// Builds a trace from plain data, for readers of files and for other sources. Lanes, devices, names and slices are numbered from 0.
#[derive(Default)]
pub struct TraceBuilder {
    trace: Trace,
    ids: HashMap<Arc<str>, NameId>,
    details: HashMap<Detail, u32>,
    /// The numbers of devices by label.
    devices: HashMap<String, u32>,
    /// The slices of calls by scope (a process, or a kind of number) and correlation.
    calls: HashMap<(u64, u64), u32>,
    /// Slices of work of devices, each with its scope and correlation.
    work: Vec<(u32, u64, u64)>,
    /// Slices of work of devices, each with its correlation, from files without the process of such work.
    work_of_any_process: Vec<(u32, u64)>,
    /// The numbers of processes by label.
    processes: HashMap<String, u32>,
}

impl TraceBuilder {
    /// Returns a builder for a trace of the file `source`. `unsigned` means that times come from an unsigned 64-bit clock.
    pub fn new(source: &str, format: &'static str, unsigned: bool) -> Self {
        // Unsigned times do not fit into the signed times of slices: they are stored relative to the middle of their range.
        let bias = if unsigned { 1 << 63 } else { 0 };
        Self {
            trace: Trace {
                source: source.to_owned(),
                format,
                bias,
                ..Trace::default()
            },
            ..Self::default()
        }
    }

    /// Returns the trace built so far, to set fields that have no function here.
    pub fn trace(&mut self) -> &mut Trace {
        &mut self.trace
    }

    /// Returns the number of a name. A name longer than 16 KiB is cut.
    pub fn name(&mut self, text: &str) -> NameId {
        let cut = &text[..text.floor_char_boundary(NAME_BYTES)];
        if let Some(id) = self.ids.get(cut) {
            return *id;
        }
        let id = self.trace.names.len() as NameId;
        let name: Arc<str> = cut.into();
        self.trace.names.push(name.clone());
        self.ids.insert(name, id);
        id
    }

    /// Returns the number of the device with this label.
    pub fn device(&mut self, label: &str) -> u32 {
        let next = self.trace.devices.len() as u32;
        let id = *self.devices.entry(label.to_owned()).or_insert(next);
        if id == next {
            self.trace.devices.push(label.to_owned());
        }
        id
    }

    /// Adds a lane, and returns its number.
    pub fn lane(&mut self, kind: LaneKind, group: &str, name: &str, device: Option<u32>) -> u32 {
        self.trace.lanes.push(Lane {
            kind,
            group: group.to_owned(),
            name: name.to_owned(),
            device,
            process: None,
        });
        self.trace.lanes.len() as u32 - 1
    }

    /// Assigns a lane to the process with this label.
    pub(crate) fn assign_process(&mut self, lane: u32, label: &str) {
        let next = self.trace.processes.len() as u32;
        let id = *self.processes.entry(label.to_owned()).or_insert(next);
        if id == next {
            self.trace.processes.push(Process {
                label: label.to_owned(),
                ..Process::default()
            });
        }
        self.trace.lanes[lane as usize].process = Some(id);
    }

    /// Adds a lane of the device with this label, and returns the lane's number.
    pub(crate) fn device_lane(&mut self, device: &str, name: &str) -> u32 {
        let id = Some(self.device(device));
        self.lane(LaneKind::Device, &format!("GPU {device}"), name, id)
    }

    /// Adds a counter without samples, and returns its number.
    pub(crate) fn counter(&mut self, name: &str, unit: &str) -> usize {
        self.trace.counters.push(Counter {
            name: name.to_owned(),
            unit: unit.to_owned(),
            samples: Vec::new(),
        });
        self.trace.counters.len() - 1
    }

    /// Converts a time of the file's clock, in nanoseconds, to the stored form; `None` if it does not fit.
    pub(crate) fn time(&self, clock: i128) -> Option<i64> {
        i64::try_from(clock.checked_sub(self.trace.bias)?).ok()
    }

    /// Adds a slice and returns its number, which is valid until `finish`. Start and end are nanoseconds of the file's clock. A slice with
    /// impossible times, or one too many, is counted as unread at the place that `place` returns; the result is then `None`.
    pub fn slice(
        &mut self,
        kind: SliceKind,
        lane: u32,
        name: NameId,
        (start, end): (i128, i128),
        place: impl FnOnce() -> String,
    ) -> Option<u32> {
        let (Some(start), Some(end)) = (self.time(start), self.time(end)) else {
            self.unread("a time is beyond 64 bits", place);
            return None;
        };
        if end < start {
            self.unread("the end is before the start", place);
            return None;
        }
        if self.is_full() {
            self.unread(
                "more events than fit in memory: the first 16 million are shown",
                place,
            );
            return None;
        }
        if kind.on_device() {
            self.trace.lanes[lane as usize].kind = LaneKind::Device;
        }
        self.trace.slices.push(Slice {
            start,
            end,
            lane,
            name,
            link: NONE,
            detail: NONE,
            kind,
        });
        Some(self.trace.slices.len() as u32 - 1)
    }

    /// Sets the further data of a slice.
    pub fn detail(&mut self, slice: u32, detail: Detail) {
        let next = self.trace.details.len() as u32;
        let id = *self.details.entry(detail).or_insert(next);
        if id == next {
            self.trace.details.push(detail);
        }
        self.trace.slices[slice as usize].detail = id;
    }

    /// Sets the end of an open slice, in nanoseconds of the file's clock. Returns false, and changes nothing, if the end is before the start.
    pub(crate) fn close(&mut self, slice: u32, end: i128) -> bool {
        let stored = self.time(end);
        let open = &mut self.trace.slices[slice as usize];
        match stored {
            Some(end) if end >= open.start => {
                open.end = end;
                true
            }
            _ => false,
        }
    }

    /// Links calls and work of devices that have the same correlation within a scope, such as a process.
    pub fn link(&mut self, slice: u32, scope: u64, correlation: Option<u64>) {
        let Some(correlation) = correlation else {
            return;
        };
        let kind = self.trace.slices[slice as usize].kind;
        if kind.is_call() {
            self.index_call(slice, scope, correlation);
        } else if kind.on_device() {
            self.work.push((slice, scope, correlation));
        }
    }

    /// Stores a call by its correlation. If several calls have one, the first launch among them counts.
    fn index_call(&mut self, slice: u32, scope: u64, correlation: u64) {
        let slices = &self.trace.slices;
        let is_launch = |call: u32| {
            matches!(
                slices[call as usize].kind,
                SliceKind::Launch | SliceKind::GraphLaunch
            )
        };
        let known = self.calls.entry((scope, correlation)).or_insert(slice);
        if is_launch(slice) && !is_launch(*known) {
            *known = slice;
        }
    }

    /// Links work of a device with the call of the same correlation in any process. Calls must then have the number of their process as
    /// their scope.
    pub(crate) fn link_in_any(&mut self, slice: u32, correlation: Option<u64>) {
        if let Some(number) = correlation {
            self.work_of_any_process.push((slice, number));
        }
    }

    /// Returns true if the trace accepts no more slices.
    pub(crate) fn is_full(&self) -> bool {
        self.trace.slices.len() >= SLICES
    }

    /// Counts a row, an event or a packet that could not be read.
    pub(crate) fn unread(&mut self, why: &str, place: impl FnOnce() -> String) {
        self.unread_many(why, 1, place);
    }

    /// Counts rows, events or packets that could not be read for one reason. `place` returns the place of the first one.
    pub(crate) fn unread_many(&mut self, why: &str, count: u64, place: impl FnOnce() -> String) {
        if count == 0 {
            return;
        }
        let reasons = &mut self.trace.unread;
        let known = reasons.iter().position(|unread| unread.why == why);
        let last = (reasons.len() >= REASONS).then_some(REASONS - 1);
        match known.or(last) {
            Some(at) => reasons[at].count += count,
            None => reasons.push(Unread {
                count,
                why: why.to_owned(),
                first: place(),
            }),
        }
    }

    /// Finishes the trace: links and sorts its slices, tells its processes apart, and removes impossible times.
    pub fn finish(mut self) -> Trace {
        let (calls, unlinked) = owners::calls(&self.trace, &self.calls, &self.work_of_any_process);
        let known = self
            .work
            .into_iter()
            .filter_map(|(work, scope, correlation)| {
                Some((work, *self.calls.get(&(scope, correlation))?))
            });
        let slices = &mut self.trace.slices;
        for (work, call) in known.chain(calls) {
            slices[work as usize].link = call;
            let kind = slices[work as usize].kind;
            let call = &mut slices[call as usize];
            if call.link == NONE && (kind != SliceKind::Memset || call.kind != SliceKind::Launch) {
                call.link = work;
            }
        }
        owners::tell_apart(&mut self.trace, &unlinked);
        let order = order_of(&self.trace.slices);
        let kept = doubts::set_aside_outliers(&mut self.trace, &order);
        arrange(&mut self.trace, order, kept);
        doubts::shorten(&mut self.trace);
        self.trace.completed()
    }

    /// Finishes a trace that was joined from finished traces: their slices are linked already, and need only be sorted.
    pub(crate) fn finish_joined(mut self) -> Trace {
        let order = order_of(&self.trace.slices);
        let kept = 0..order.len();
        arrange(&mut self.trace, order, kept);
        self.trace.completed()
    }
}

/// Returns the numbers of slices in the order of a trace: by start, longer ones first.
fn order_of(slices: &[Slice]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..slices.len() as u32).collect();
    order.sort_by_key(|&i| {
        let slice = &slices[i as usize];
        (slice.start, std::cmp::Reverse(slice.end), i)
    });
    order
}

/// Puts slices into an order, keeps the range `kept` of it, and drops all others.
fn arrange(trace: &mut Trace, order: Vec<u32>, kept: Range<usize>) {
    let slices = &mut trace.slices;
    let before = &order[..kept.start];
    let after = &order[kept.end..];
    // Dropped slices come last, so that they can be cut off.
    let mut place = vec![0_u32; order.len()];
    for (new, old) in (0..).zip(order[kept.clone()].iter().chain(before).chain(after)) {
        place[*old as usize] = new;
    }
    drop(order);
    for slice in slices.iter_mut().filter(|slice| slice.link != NONE) {
        let link = place[slice.link as usize];
        slice.link = if (link as usize) < kept.len() {
            link
        } else {
            NONE
        };
    }
    // Sorts in place, because a second copy of all slices would need too much memory.
    for at in 0..place.len() {
        while place[at] as usize != at {
            let to = place[at] as usize;
            slices.swap(at, to);
            place.swap(at, to);
        }
    }
    slices.truncate(kept.len());
}

impl Trace {
    /// Fills in the kinds of records and the families, which follow from the sorted slices.
    fn completed(mut self) -> Self {
        let holds = &mut self.holds;
        for slice in &self.slices {
            match slice.kind {
                SliceKind::Kernel => holds.kernels = true,
                SliceKind::Copy => holds.copies = true,
                SliceKind::Memset => holds.memsets = true,
                SliceKind::Annotation => holds.annotations = true,
                SliceKind::Graph => holds.graphs = true,
                kind => holds.calls |= kind.is_call(),
            }
        }
        for counter in &mut self.counters {
            counter.samples.sort_by_key(|sample| sample.0);
        }
        self.families = self.families_of_work();
        self
    }
}
