//! Reads Chrome trace JSON, also as written by PyTorch's profiler (Kineto). The array of events is read as a stream; a bare array may end
//! without its bracket, as the format allows.

mod edges;
mod event;

use std::collections::{BTreeMap, HashMap};

use serde_json::value::Value;

use super::json::{self, Scanner, ValueEnd};
use super::model::{Detail, Direction, LaneKind, NONE, Slice, SliceKind, Trace, TraceBuilder};
use super::source::{FileHead, OpenError, TraceSource};
use edges::{Edge, join};
use event::{Args, ChromeEvent, Distributed, label, nanoseconds, three, whole};

/// The members at the top of a Kineto file.
const KINETO: [&str; 4] = [
    "schemaVersion",
    "deviceProperties",
    "trace_id",
    "baseTimeNanoseconds",
];

/// Devices whose records have categories that this crate does not know. Their names are words of categories and of processes' names.
const UNKNOWN_DEVICES: [&str; 9] = [
    "mtia",
    "xpu",
    "hpu",
    "npu",
    "ascend",
    "cann",
    "tpu",
    "mlu",
    "privateuse1",
];

/// The largest number of bytes that are searched again for the next event after a damaged one.
const SEARCHED: usize = 1 << 30;
/// The longest event that is repaired, in bytes.
const REPAIRED: usize = 64 * 1024;

/// Returns true for JSON that can be a trace.
pub(crate) fn recognises(head: &FileHead) -> bool {
    let first = head.bytes.iter().find(|b| !b.is_ascii_whitespace());
    matches!(first, Some(b'{' | b'[')) && !is_rocprof(&head.bytes)
}

/// Returns true for rocprofv3's JSON, which has other members.
pub(crate) fn is_rocprof(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(&head[..head.len().min(4096)]);
    let start = text.trim_start().strip_prefix('{').map(str::trim_start);
    start.is_some_and(|start| start.starts_with("\"rocprofiler-sdk-tool\""))
}

/// The trace that is being built, and the state of the events read so far.
#[derive(Default)]
struct ChromeReader {
    out: TraceBuilder,
    /// Lanes by process, then by thread.
    lanes: HashMap<String, HashMap<String, u32>>,
    /// For each lane with Python's frames, the lane of its thread.
    frames: HashMap<u32, u32>,
    /// Beginnings and ends of slices of threads (`B` and `E`), by lane.
    edges: BTreeMap<u32, Vec<Edge>>,
    /// Beginnings and ends of asynchronous ranges (`b` and `e`), by identifier, category and name.
    ranges: BTreeMap<String, Vec<Edge>>,
    /// Names of processes by identifier.
    processes: HashMap<String, String>,
    /// Counters by name.
    counters: HashMap<String, usize>,
    /// The number of events read so far.
    events: u64,
    /// The number of bytes that were searched again for the next event after a damaged one.
    searched: usize,
    /// True after an event that could not be read.
    is_damaged: bool,
    /// True if the file was written by PyTorch's profiler.
    is_kineto: bool,
}

/// Reads a trace.
pub(crate) fn read(source: &mut TraceSource<'_>) -> Result<Trace, OpenError> {
    let mut reader = ChromeReader {
        out: TraceBuilder::new(source.name(), "chrome json", false),
        ..ChromeReader::default()
    };
    let mut scanner = Scanner::new(&mut *source);
    let is_array = scanner.skip_blanks() == Some(b'[');
    let mut has_events = is_array;
    scanner.skip();
    let is_cut = if is_array {
        reader.read_events(&mut scanner, true)
    } else {
        reader.read_object(&mut scanner, &mut has_events)
    };
    let end = scanner.offset();
    if !has_events || (reader.events == 0 && reader.out.trace().unread_count() > 0) {
        return Err(OpenError::new(
            format!("is JSON without a readable event in \"traceEvents\" ({end} bytes read)."),
            "Export it with `prof.export_chrome_trace(\"trace.json\")`, with rocprofv3 as csv, \
             pftrace or rocpd.",
        ));
    }
    if is_cut {
        let why = format!(
            "The JSON ends early, at byte {end}, after {} events.",
            reader.events
        );
        reader.out.trace().truncated = Some(why);
    }
    source.done();
    Ok(reader.finish())
}

impl ChromeReader {
    /// Reads the members of the top object. Returns true if it ends too early, and sets `has_events` if it has an array of events.
    fn read_object(
        &mut self,
        scanner: &mut Scanner<&mut TraceSource<'_>>,
        has_events: &mut bool,
    ) -> bool {
        loop {
            match scanner.skip_blanks() {
                None => return true,
                Some(b'}') => return false,
                Some(b',' | b':') => scanner.skip(),
                Some(b'"') => {
                    let (quoted, ended) = scanner.value(json::EVENT);
                    let key: String = serde_json::from_slice(quoted).unwrap_or_default();
                    if ended != ValueEnd::Whole || scanner.skip_blanks() != Some(b':') {
                        return ended == ValueEnd::Cut || scanner.peek().is_none();
                    }
                    scanner.skip();
                    if key == "traceEvents" && scanner.skip_blanks() == Some(b'[') {
                        scanner.skip();
                        *has_events = true;
                        if self.read_events(scanner, false) {
                            return true;
                        }
                        if self.is_damaged && scanner.skip_blanks().is_none() {
                            return false;
                        }
                        continue;
                    }
                    self.is_kineto |= KINETO.contains(&key.as_str());
                    scanner.skip_blanks();
                    let (value, ended) = scanner.value(json::VALUE);
                    if ended != ValueEnd::Whole {
                        return true;
                    }
                    if key == "distributedInfo"
                        && let Ok(info) = serde_json::from_slice::<Distributed>(value)
                    {
                        self.out.trace().rank = info.rank;
                        self.out.trace().world = info.world_size;
                    }
                }
                Some(_) => {
                    // This is not JSON, so nothing after it is reliable.
                    return true;
                }
            }
        }
    }

    /// Reads the events up to the end of the array. Returns true if it ends too early; an array with `may_end_open` may end after any
    /// event.
    fn read_events(
        &mut self,
        scanner: &mut Scanner<&mut TraceSource<'_>>,
        may_end_open: bool,
    ) -> bool {
        // After damage, any bracket may be that of the array: only the end of the data decides.
        let mut is_closed = false;
        let mut is_noise = false;
        loop {
            let at = scanner.offset();
            match scanner.skip_blanks() {
                None => return !(may_end_open || is_closed),
                Some(b']') => {
                    scanner.skip();
                    if !self.is_damaged {
                        return false;
                    }
                    is_closed = true;
                }
                Some(b',') => scanner.skip(),
                Some(b'{') => {
                    let (bytes, ended) = scanner.value(json::EVENT);
                    let place = || format!("byte {at}");
                    if self.read_event(bytes) {
                        self.events += 1;
                        is_closed = false;
                        is_noise = false;
                        continue;
                    }
                    self.is_damaged = true;
                    // A missing quote hides the events behind it: reading continues at the next event that starts inside.
                    let inner = bytes
                        .windows(6)
                        .skip(1)
                        .position(|w| w.starts_with(b"},") && w[2..].contains(&b'{'));
                    if let Some(position) = inner
                        && self.searched < SEARCHED
                    {
                        let unused = bytes.len() - position - 3;
                        self.searched += unused;
                        scanner.back(unused);
                    } else if ended == ValueEnd::Cut {
                        self.out.unread("the event is cut off", place);
                        return true;
                    }
                    self.out.unread("no readable event", place);
                }
                Some(_) => {
                    let (_, ended) = scanner.value(json::EVENT);
                    self.is_damaged = true;
                    if !is_noise && !is_closed {
                        self.out.unread("not an event", || format!("byte {at}"));
                    }
                    is_noise = true;
                    if ended == ValueEnd::Cut {
                        return true;
                    }
                    if scanner.offset() == at {
                        scanner.skip();
                    }
                }
            }
        }
    }

    /// Reads one event. Returns false if it cannot be read.
    fn read_event(&mut self, bytes: &[u8]) -> bool {
        if let Some(event) = std::str::from_utf8(bytes)
            .ok()
            .and_then(|text| serde_json::from_str(text).ok())
        {
            self.add_event(&event);
            return true;
        }
        if bytes.len() > REPAIRED {
            return false;
        }
        // Python writes NaN; some exporters write raw control characters, or a key twice.
        let Ok(value) = serde_json::from_str::<Value>(&json::repaired(bytes)) else {
            return false;
        };
        let text = value.to_string();
        let Ok(event) = serde_json::from_str(&text) else {
            return false;
        };
        self.add_event(&event);
        true
    }

    /// Adds an event to the trace.
    fn add_event(&mut self, event: &ChromeEvent<'_>) {
        let number = self.events + 1;
        let place = || format!("event {number}");
        let name = event.name.as_deref().unwrap_or("");
        let cat = event.cat.as_deref().unwrap_or("");
        let phase = event.ph.as_ref();
        match phase {
            "M" => return self.read_metadata(event, name),
            "X" | "B" | "E" | "b" | "e" | "C" => {}
            // Instants, flows and similar events are not used.
            _ => return,
        }
        let Some(start) = nanoseconds(&label(event.ts)) else {
            return self.out.unread("an event without a time", place);
        };
        if phase == "C" {
            return self.add_samples(event, name, start);
        }
        let process = label(event.pid);
        let thread = label(event.tid);
        let is_async = matches!(phase, "b" | "e");
        let range = is_async.then(|| format!("{}\n{cat}\n{name}", label(event.id)));
        let mut lane = self.lane(&process, &thread);
        let base = lane;
        let edge = |slice: u32, name: Option<u32>| Edge {
            time: start,
            slice,
            name,
            event: number,
        };
        if matches!(phase, "e" | "E") {
            let id = event.name.as_ref().map(|name| self.out.name(name));
            return self.add_edge(range, base, edge(NONE, id));
        }
        let mut end = start;
        if phase == "X" {
            let Some(length) = nanoseconds(&label(event.dur)) else {
                return self.out.unread("an event without a length", place);
            };
            end += length;
        }
        let mut kind = SliceKind::from_category(cat, if is_async { "" } else { name });
        let is_unknown = kind == SliceKind::Other && cat.is_empty() && !is_async;
        let mut args = Args::default();
        if let Some(raw) = event.args
            && (kind.on_device() || kind.is_call() || is_unknown)
        {
            args = serde_json::from_str(raw.get()).unwrap_or_default();
        }
        // These are arguments of a kernel in PyTorch's files, and in JAX's.
        let has_launch = args.grid.or(args.kernel_details).is_some();
        if is_unknown && (has_launch || args.stream.and(args.correlation).is_some()) {
            kind = SliceKind::Kernel;
        }
        self.is_kineto |= matches!(cat, "cpu_op" | "cuda_runtime" | "gpu_user_annotation");
        if kind == SliceKind::Frame {
            lane = self.lane(&process, &format!("{thread} frames"));
            self.frames.insert(lane, base);
        } else if kind == SliceKind::Other || kind.is_call() {
            self.find_unknown_device(cat);
        }
        let id = self.out.name(name);
        let Some(slice) = self.out.slice(kind, lane, id, (start, end), place) else {
            return;
        };
        if phase != "X" {
            self.add_edge(range, base, edge(slice, Some(id)));
        }
        let correlation = whole(args.correlation);
        if !kind.on_device() {
            let process = self.out.trace().lanes[lane as usize].process;
            self.out
                .link(slice, process.unwrap_or(0).into(), correlation);
            return;
        }
        self.out.link_in_any(slice, correlation);
        if self.out.trace().lanes[lane as usize].device.is_none() {
            let device = if args.device.is_some() {
                self.out.device(&label(args.device))
            } else {
                self.out.device(&process)
            };
            let lane = &mut self.out.trace().lanes[lane as usize];
            lane.device = Some(device);
            lane.process = None;
        }
        self.out.trace().serial |= args.stream.is_some();
        let mut collective = None;
        if let Some(sequence) = whole(args.sequence)
            && kind == SliceKind::Kernel
        {
            let parts = [args.collective, args.group, args.ranks].map(label);
            collective = Some((self.out.name(&parts.join(" ")), sequence));
        }
        let detail = Detail {
            bytes: whole(args.bytes),
            direction: (kind == SliceKind::Copy).then(|| Direction::from_name(name)),
            grid: three(args.grid),
            block: three(args.block),
            collective,
        };
        self.out.detail(slice, detail);
    }

    /// Keeps a beginning or an end until all are known. `range` identifies an asynchronous range; `None` is a slice of a thread.
    fn add_edge(&mut self, range: Option<String>, lane: u32, edge: Edge) {
        let edges = match range {
            Some(range) => self.ranges.entry(range).or_default(),
            None => self.edges.entry(lane).or_default(),
        };
        edges.push(edge);
    }

    /// Returns the lane of a thread.
    fn lane(&mut self, process: &str, thread: &str) -> u32 {
        if let Some(lane) = self.lanes.get(process).and_then(|lanes| lanes.get(thread)) {
            return *lane;
        }
        let lane = self.out.lane(LaneKind::Host, process, thread, None);
        self.out.assign_process(lane, process);
        let lanes = self.lanes.entry(process.to_owned()).or_default();
        lanes.insert(thread.to_owned(), lane);
        lane
    }

    /// Reads a name of a process or a thread.
    fn read_metadata(&mut self, event: &ChromeEvent<'_>, name: &str) {
        let process = label(event.pid);
        let args: Args<'_> = event
            .args
            .and_then(|raw| serde_json::from_str(raw.get()).ok())
            .unwrap_or_default();
        match name {
            "process_name" => {
                let name = label(args.name).into_owned();
                self.find_unknown_device(&name);
                let known = self.processes.entry(process.into_owned());
                known.or_insert(name);
            }
            "process_labels" => {
                let labels = label(args.labels);
                self.find_unknown_device(&labels);
                if labels.starts_with("GPU") {
                    self.processes
                        .insert(process.into_owned(), labels.into_owned());
                }
            }
            "thread_name" => {
                let lane = self.lane(&process, &label(event.tid));
                self.out.trace().lanes[lane as usize].name = label(args.name).trim().to_owned();
            }
            _ => {}
        }
    }

    /// Adds a sample to each counter that an event has.
    fn add_samples(&mut self, event: &ChromeEvent<'_>, name: &str, at: i128) {
        let Some(time) = self.out.time(at) else {
            return;
        };
        let values: HashMap<String, Value> = event
            .args
            .and_then(|raw| serde_json::from_str(raw.get()).ok())
            .unwrap_or_default();
        for (key, value) in values {
            let Some(number) = value.as_f64() else {
                continue;
            };
            let counter = if key == "value" || key == name {
                name.to_owned()
            } else {
                format!("{name} {key}")
            };
            let known = self.counters.entry(counter);
            let at = *known.or_insert_with_key(|name| self.out.counter(name, ""));
            self.out.trace().counters[at].samples.push((time, number));
        }
    }

    /// Stores the kind of a device whose records are not known, if a word of a text is one of them. The text is a category or the name of a
    /// process.
    fn find_unknown_device(&mut self, text: &str) {
        let mut words = text.split(|c: char| !c.is_ascii_alphanumeric());
        let device_of = |word: &str| {
            UNKNOWN_DEVICES
                .into_iter()
                .find(|device| word.eq_ignore_ascii_case(device))
        };
        if let Some(device) = words.find_map(device_of) {
            let known = &mut self.out.trace().unknown_device;
            known.get_or_insert_with(|| device.to_uppercase());
        }
    }

    fn finish(mut self) -> Trace {
        let slices = std::mem::take(&mut self.edges).into_values();
        let ranges = std::mem::take(&mut self.ranges).into_values();
        for edges in slices.chain(ranges) {
            join(&mut self.out, edges);
        }
        let trace = self.out.trace();
        for (lane, base) in &self.frames {
            let name = format!("{} frames", trace.lanes[*base as usize].name);
            trace.lanes[*lane as usize].name = name;
        }
        trace.holds.kernels = true;
        for lane in &mut trace.lanes {
            if let Some(name) = self.processes.get(&lane.group) {
                lane.group = match lane.kind {
                    LaneKind::Device => name.clone(),
                    LaneKind::Host => format!("{name} {}", lane.group),
                };
            }
        }
        for process in &mut trace.processes {
            if !process.label.contains(char::is_alphabetic) {
                process.label = format!("process {}", process.label);
            }
        }
        if self.is_kineto {
            trace.format = "kineto json";
            // The profiler records copies and memsets together with kernels: if none were found, there were none.
            let has_work = trace.slices.iter().any(|slice| slice.kind.on_device());
            // In HIP, a memset is a kernel.
            let is_hip =
                |slice: &Slice| slice.kind.is_call() && trace.name(slice.name).starts_with("hip");
            let uses_hip = trace.slices.iter().any(is_hip);
            trace.holds.copies = has_work;
            trace.holds.memsets = has_work && !uses_hip;
        }
        self.out.finish()
    }
}
