//! Chrome trace JSON, also as written by PyTorch's profiler (Kineto). The array of events is read as a stream; a bare array may end
//! without its bracket, as the format allows.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;
use serde_json::value::{RawValue, Value};

use super::json::{self, Scanner, ValueEnd};
use super::model::{Detail, Direction, LaneKind, NONE, Slice, SliceKind, Trace, TraceBuilder};
use super::source::{FileHead, OpenError, TraceSource};

/// Members at the top of a Kineto file.
const KINETO: [&str; 4] = [
    "schemaVersion",
    "deviceProperties",
    "trace_id",
    "baseTimeNanoseconds",
];

/// Devices whose records have categories of their own, as beginnings of categories and as words of processes' names.
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

/// Most bytes that are searched again for the next event after a damaged one.
const SEARCHED: usize = 1 << 30;
/// Longest event that is repaired, in bytes.
const REPAIRED: usize = 64 * 1024;

/// Whether this is JSON that can be a trace.
pub(crate) fn recognises(head: &FileHead) -> bool {
    let first = head.bytes.iter().find(|b| !b.is_ascii_whitespace());
    matches!(first, Some(b'{' | b'[')) && !is_rocprof(&head.bytes)
}

/// Whether this is rocprofv3's JSON, which has other members.
pub(crate) fn is_rocprof(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(&head[..head.len().min(4096)]);
    let start = text.trim_start().strip_prefix('{').map(str::trim_start);
    start.is_some_and(|start| start.starts_with("\"rocprofiler-sdk-tool\""))
}

/// The fields of an event that are read.
#[derive(Deserialize)]
struct ChromeEvent<'a> {
    #[serde(borrow, default)]
    ph: Cow<'a, str>,
    cat: Option<Cow<'a, str>>,
    name: Option<Cow<'a, str>>,
    pid: Option<&'a RawValue>,
    tid: Option<&'a RawValue>,
    ts: Option<&'a RawValue>,
    dur: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
    args: Option<&'a RawValue>,
}

/// The arguments of an event that are read.
#[derive(Default, Deserialize)]
struct Args<'a> {
    #[serde(borrow)]
    correlation: Option<&'a RawValue>,
    device: Option<&'a RawValue>,
    stream: Option<&'a RawValue>,
    bytes: Option<&'a RawValue>,
    grid: Option<&'a RawValue>,
    kernel_details: Option<&'a RawValue>,
    block: Option<&'a RawValue>,
    name: Option<&'a RawValue>,
    labels: Option<&'a RawValue>,
    #[serde(rename = "Seq")]
    sequence: Option<&'a RawValue>,
    #[serde(rename = "Collective name")]
    collective: Option<&'a RawValue>,
    #[serde(rename = "Process Group Name")]
    group: Option<&'a RawValue>,
    #[serde(rename = "Process Group Ranks")]
    ranks: Option<&'a RawValue>,
}

/// What a file of a distributed run says of itself.
#[derive(Deserialize)]
struct Distributed {
    rank: Option<u64>,
    world_size: Option<u64>,
}

/// A number or a text as an identifier: `7`, `"7"`, `"Spans"`.
fn label(raw: Option<&RawValue>) -> Cow<'_, str> {
    let Some(raw) = raw else {
        return Cow::Borrowed("");
    };
    match raw.get().strip_prefix('"') {
        None => Cow::Borrowed(raw.get()),
        Some(inner) if !inner.contains('\\') => {
            Cow::Borrowed(inner.strip_suffix('"').unwrap_or(inner))
        }
        Some(_) => Cow::Owned(serde_json::from_str(raw.get()).unwrap_or_default()),
    }
}

fn whole(raw: Option<&RawValue>) -> Option<u64> {
    let text = label(raw);
    let text = text.strip_suffix(".0").unwrap_or(&text);
    text.parse()
        .ok()
        .or_else(|| text.parse::<i64>().ok().map(|it| it as u64))
}

fn three(raw: Option<&RawValue>) -> Option<[u32; 3]> {
    let sizes: Vec<f64> = serde_json::from_str(raw?.get()).ok()?;
    let [x, y, z] = sizes[..] else { return None };
    Some([x as u32, y as u32, z as u32])
}

/// Converts decimal microseconds to whole nanoseconds, rounded half up, without floating point.
fn nanoseconds(text: &str) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let plain = |text: &str| text.len() < 30 && text.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !plain(whole) || !part.bytes().all(|b| b.is_ascii_digit()) {
        let micros: f64 = text.parse().ok()?;
        return (micros.abs() < 1e25).then(|| (micros * 1e3).round() as i128);
    }
    let digit = |i: usize| part.as_bytes().get(i).map_or(0, |b| i128::from(b - b'0'));
    let mut nanos = whole.parse::<i128>().ok()? * 1000 + digit(0) * 100 + digit(1) * 10 + digit(2);
    if digit(3) >= 5 {
        nanos += 1;
    }
    Some(if negative { -nanos } else { nanos })
}

/// A beginning or an end of a slice.
struct Edge {
    time: i128,
    /// The slice that begins; `NONE` for an end.
    slice: u32,
    /// The slice's name; an end may lack it.
    name: Option<u32>,
    /// Number of its event.
    event: u64,
}

#[derive(Default)]
struct ChromeReader {
    out: TraceBuilder,
    /// Lanes by process, then by thread.
    lanes: HashMap<String, HashMap<String, u32>>,
    /// For each lane with Python's frames, the lane of its thread.
    frames: HashMap<u32, u32>,
    /// Beginnings and ends by lane, `B` and `E`.
    edges: BTreeMap<u32, Vec<Edge>>,
    /// The same of ranges, `b` and `e`, by identifier, category and name.
    ranges: BTreeMap<String, Vec<Edge>>,
    /// Names of processes.
    processes: HashMap<String, String>,
    counters: HashMap<String, usize>,
    events: u64,
    /// Bytes that were searched again for the next event after a damaged one.
    searched: usize,
    damaged: bool,
    kineto: bool,
}

/// Reads a trace.
pub(crate) fn read(source: &mut TraceSource<'_>) -> Result<Trace, OpenError> {
    let mut reader = ChromeReader {
        out: TraceBuilder::new(source.name(), "chrome json", false),
        ..ChromeReader::default()
    };
    let mut scanner = Scanner::new(&mut *source);
    let array = scanner.skip_blanks() == Some(b'[');
    let mut found = array;
    scanner.skip();
    let cut = match array {
        true => reader.events(&mut scanner, true),
        false => reader.object(&mut scanner, &mut found),
    };
    let end = scanner.offset();
    if !found || (reader.events == 0 && reader.out.trace().unread_count() > 0) {
        return Err(OpenError::new(
            format!("is JSON without a readable event in \"traceEvents\" ({end} bytes read)."),
            "Export it with `prof.export_chrome_trace(\"trace.json\")`, with rocprofv3 as csv, pftrace or rocpd.",
        ));
    }
    if cut {
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
    /// Reads the members of the top object. Returns true if it ends too early.
    fn object(&mut self, scanner: &mut Scanner<&mut TraceSource<'_>>, found: &mut bool) -> bool {
        loop {
            match scanner.skip_blanks() {
                None => return true,
                Some(b'}') => return false,
                Some(b',' | b':') => scanner.skip(),
                Some(b'"') => {
                    let (key, ended) = scanner.value(json::EVENT);
                    let key: String = serde_json::from_slice(key).unwrap_or_default();
                    if ended != ValueEnd::Whole || scanner.skip_blanks() != Some(b':') {
                        return ended == ValueEnd::Cut || scanner.peek().is_none();
                    }
                    scanner.skip();
                    if key == "traceEvents" && scanner.skip_blanks() == Some(b'[') {
                        scanner.skip();
                        *found = true;
                        if self.events(scanner, false) {
                            return true;
                        }
                        if self.damaged && scanner.skip_blanks().is_none() {
                            return false;
                        }
                        continue;
                    }
                    self.kineto |= KINETO.contains(&key.as_str());
                    scanner.skip_blanks();
                    let (value, ended) = scanner.value(json::VALUE);
                    if ended != ValueEnd::Whole {
                        return true;
                    }
                    if key == "distributedInfo" {
                        let told = serde_json::from_slice::<Distributed>(value).ok();
                        let trace = self.out.trace();
                        trace.rank = told.as_ref().and_then(|it| it.rank);
                        trace.world = told.and_then(|it| it.world_size);
                    }
                }
                Some(_) => {
                    // This is not JSON, so nothing after it is reliable.
                    return true;
                }
            }
        }
    }

    /// Reads the events up to the end of the array. Returns true if it ends too early; `open` arrays may end after any event.
    fn events(&mut self, scanner: &mut Scanner<&mut TraceSource<'_>>, open: bool) -> bool {
        // After damage, any bracket may be the array's: only the end of the data decides.
        let (mut closed, mut noise) = (false, false);
        loop {
            let at = scanner.offset();
            match scanner.skip_blanks() {
                None => return !(open || closed),
                Some(b']') => {
                    scanner.skip();
                    if !self.damaged {
                        return false;
                    }
                    closed = true;
                }
                Some(b',') => scanner.skip(),
                Some(b'{') => {
                    let (bytes, ended) = scanner.value(json::EVENT);
                    let place = || format!("byte {at}");
                    if self.event(bytes) {
                        self.events += 1;
                        (closed, noise) = (false, false);
                        continue;
                    }
                    // A missing quote hides what follows: continue with the next event that starts inside.
                    let next = bytes
                        .windows(6)
                        .skip(1)
                        .position(|w| w.starts_with(b"},") && w[2..].contains(&b'{'));
                    let next = next.filter(|_| self.searched < SEARCHED);
                    let next = next.map(|n| bytes.len() - n - 3);
                    self.searched += next.unwrap_or(0);
                    self.damaged = true;
                    match next {
                        Some(left) => scanner.back(left),
                        None if ended == ValueEnd::Cut => {
                            self.out.unread("the event is cut off", place);
                            return true;
                        }
                        None => {}
                    }
                    self.out.unread("no readable event", place);
                }
                Some(_) => {
                    let (_, ended) = scanner.value(json::EVENT);
                    self.damaged = true;
                    if !std::mem::replace(&mut noise, true) && !closed {
                        self.out.unread("not an event", || format!("byte {at}"));
                    }
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
    fn event(&mut self, bytes: &[u8]) -> bool {
        if let Some(event) = std::str::from_utf8(bytes)
            .ok()
            .and_then(|text| serde_json::from_str(text).ok())
        {
            self.take(&event);
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
        let event = serde_json::from_str(&text);
        event.is_ok_and(|event| {
            self.take(&event);
            true
        })
    }

    fn take(&mut self, event: &ChromeEvent<'_>) {
        let number = self.events + 1;
        let place = || format!("event {number}");
        let name = event.name.as_deref().unwrap_or("");
        let cat = event.cat.as_deref().unwrap_or("");
        let phase = event.ph.as_ref();
        match phase {
            "M" => return self.metadata(event, name),
            "X" | "B" | "E" | "b" | "e" | "C" => {}
            // Instants, flows and similar events are not used.
            _ => return,
        }
        let Some(start) = nanoseconds(&label(event.ts)) else {
            return self.out.unread("an event without a time", place);
        };
        if phase == "C" {
            return self.counter(event, name, start);
        }
        let (process, thread) = (label(event.pid), label(event.tid));
        let range = matches!(phase, "b" | "e");
        let key = || format!("{}\n{cat}\n{name}", label(event.id));
        let mut lane = self.lane(&process, &thread);
        let base = lane;
        if matches!(phase, "e" | "E") {
            let edge = Edge {
                time: start,
                slice: NONE,
                name: event.name.as_ref().map(|name| self.out.name(name)),
                event: number,
            };
            match range {
                true => self.ranges.entry(key()).or_default().push(edge),
                false => self.edges.entry(base).or_default().push(edge),
            }
            return;
        }
        let mut end = start;
        if phase == "X" {
            let Some(length) = nanoseconds(&label(event.dur)) else {
                return self.out.unread("an event without a length", place);
            };
            end += length;
        }
        let mut kind = SliceKind::of_category(cat, if range { "" } else { name });
        let unknown = kind == SliceKind::Other && cat.is_empty() && !range;
        let mut args = Args::default();
        if let Some(raw) = event.args
            && (kind.on_device() || kind.is_call() || unknown)
        {
            args = serde_json::from_str(raw.get()).unwrap_or_default();
        }
        // PyTorch's arguments of a kernel, and JAX's.
        let launched = args.grid.or(args.kernel_details).is_some();
        if unknown && (launched || args.stream.and(args.correlation).is_some()) {
            kind = SliceKind::Kernel;
        }
        self.kineto |= matches!(cat, "cpu_op" | "cuda_runtime" | "gpu_user_annotation");
        if kind == SliceKind::Frame {
            lane = self.lane(&process, &format!("{thread} frames"));
            self.frames.insert(lane, base);
        } else if kind == SliceKind::Other || kind.is_call() {
            self.unknown_device(cat);
        }
        let id = self.out.name(name);
        let Some(slice) = self.out.slice(kind, lane, id, (start, end), place) else {
            return;
        };
        if phase != "X" {
            let edge = Edge {
                time: start,
                slice,
                name: Some(id),
                event: number,
            };
            match range {
                true => self.ranges.entry(key()).or_default().push(edge),
                false => self.edges.entry(base).or_default().push(edge),
            }
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
            let named = args.device.map_or(process, |_| label(args.device));
            let device = self.out.device(&named);
            let lane = &mut self.out.trace().lanes[lane as usize];
            (lane.device, lane.process) = (Some(device), None);
        }
        self.out.trace().serial |= args.stream.is_some();
        let sequence = whole(args.sequence).filter(|_| kind == SliceKind::Kernel);
        let collective = sequence.map(|sequence| {
            let of = [args.collective, args.group, args.ranks].map(label);
            (self.out.name(&of.join(" ")), sequence)
        });
        let detail = Detail {
            bytes: whole(args.bytes),
            direction: (kind == SliceKind::Copy).then(|| Direction::of_name(name)),
            grid: three(args.grid),
            block: three(args.block),
            collective,
        };
        self.out.detail(slice, detail);
    }

    /// The lane of a thread.
    fn lane(&mut self, process: &str, thread: &str) -> u32 {
        if let Some(lane) = self.lanes.get(process).and_then(|lanes| lanes.get(thread)) {
            return *lane;
        }
        let lane = self.out.lane(LaneKind::Host, process, thread, None);
        self.out.of_process(lane, process);
        let lanes = self.lanes.entry(process.to_owned()).or_default();
        lanes.insert(thread.to_owned(), lane);
        lane
    }

    fn metadata(&mut self, event: &ChromeEvent<'_>, name: &str) {
        let process = label(event.pid);
        let args: Args<'_> = event
            .args
            .and_then(|raw| serde_json::from_str(raw.get()).ok())
            .unwrap_or_default();
        match name {
            "process_name" => {
                let name = label(args.name).into_owned();
                self.unknown_device(&name);
                let known = self.processes.entry(process.into_owned());
                known.or_insert(name);
            }
            "process_labels" => {
                let labels = label(args.labels);
                self.unknown_device(&labels);
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

    fn counter(&mut self, event: &ChromeEvent<'_>, name: &str, at: i128) {
        let Some(time) = self.out.time(at) else {
            return;
        };
        let values = event
            .args
            .and_then(|raw| serde_json::from_str::<HashMap<String, Value>>(raw.get()).ok());
        let numbers = values.unwrap_or_default().into_iter();
        for (key, value) in numbers.filter_map(|(key, it)| Some((key, it.as_f64()?))) {
            let name = match key == "value" || key == name {
                true => name.to_owned(),
                false => format!("{name} {key}"),
            };
            let known = self.counters.entry(name);
            let at = *known.or_insert_with_key(|name| self.out.counter(name, ""));
            self.out.trace().counters[at].samples.push((time, value));
        }
    }

    /// Notes the kind of a device that is not known here, from the first word of a category or from the words of a process's name.
    fn unknown_device(&mut self, text: &str) {
        let mut words = text.split(|c: char| !c.is_ascii_alphanumeric());
        let known = |word: &str| {
            UNKNOWN_DEVICES
                .into_iter()
                .find(|it| word.eq_ignore_ascii_case(it))
        };
        if let Some(found) = words.find_map(known) {
            let told = &mut self.out.trace().unknown_device;
            told.get_or_insert_with(|| found.to_uppercase());
        }
    }

    /// Joins beginnings and ends, which may come in any order: time orders them. Those of one time are ambiguous: the order of a file in
    /// order counts; otherwise an end closes first what began before.
    fn join(&mut self, mut edges: Vec<Edge>) {
        let in_order = edges.is_sorted_by_key(|edge| edge.time);
        edges.sort_by_key(|edge| edge.time);
        let mut open: Vec<Edge> = Vec::new();
        let mut late: Vec<Edge> = Vec::new();
        let (mut now, mut before) = (None, 0);
        for edge in edges {
            if now != Some(edge.time) {
                late.drain(..).for_each(|end| self.end(&mut open, &end));
                (now, before) = (Some(edge.time), open.len());
            }
            if edge.slice != NONE {
                open.push(edge);
                continue;
            }
            let earlier = open[..before].iter();
            let same = |it: &Edge| edge.name.is_none_or(|name| it.name == Some(name));
            match earlier.clone().rposition(same) {
                _ if in_order => self.end(&mut open, &edge),
                Some(at) => {
                    self.out.close(open.remove(at).slice, edge.time);
                    before -= 1;
                }
                None => late.push(edge),
            }
        }
        late.drain(..).for_each(|end| self.end(&mut open, &end));
        let place = || "the end of the file".to_owned();
        self.out
            .unread_many("a beginning without an end", open.len() as u64, place);
    }

    /// Ends the last open slice of an end's name, or else the last one.
    fn end(&mut self, open: &mut Vec<Edge>, end: &Edge) {
        let named = open
            .iter()
            .rposition(|it| end.name.is_some() && it.name == end.name);
        match named.or(open.len().checked_sub(1)) {
            Some(at) => drop(self.out.close(open.remove(at).slice, end.time)),
            None => {
                let place = || format!("event {}", end.event);
                self.out.unread("an end without a beginning", place);
            }
        }
    }

    fn finish(mut self) -> Trace {
        let edges = std::mem::take(&mut self.edges).into_values();
        let all: Vec<Vec<Edge>> = edges
            .chain(std::mem::take(&mut self.ranges).into_values())
            .collect();
        for edges in all {
            self.join(edges);
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
        let work = trace.slices.iter().any(|slice| slice.kind.on_device());
        if self.kineto {
            trace.format = "kineto json";
            // The profiler records copies and memsets together with kernels: if none were found, there were none.
            trace.holds.copies = work;
            // In HIP, a memset is a kernel.
            let hip = |it: &Slice| it.kind.is_call() && trace.name(it.name).starts_with("hip");
            trace.holds.memsets = work && !trace.slices.iter().any(hip);
        }
        self.out.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::nanoseconds;

    #[test]
    fn microseconds_become_whole_nanoseconds_exactly() {
        for (text, expected) in [
            ("4456641320622.455", Some(4_456_641_320_622_455)),
            ("1790857026000000.001", Some(1_790_857_026_000_000_001)),
            ("0.0005", Some(1)),
            ("-1.5", Some(-1500)),
            ("7", Some(7000)),
            ("1.5e3", Some(1_500_000)),
            ("", None),
            ("x", None),
            ("1e300", None),
            ("NaN", None),
        ] {
            assert_eq!(nanoseconds(text), expected, "{text}");
        }
    }
}
