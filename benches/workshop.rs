//! Measures what the workshop itself costs: start, first loss, keys, watching, memory, recordings, a large profile. Each figure is printed
//! beside its target; nothing fails here. `cargo bench --bench workshop`, with `-- --quick` for a short version.

#[path = "../tests/pty/terminal.rs"]
mod pty;

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command as Process, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use perflings::course::save_file::{self, ProgressChange};
use protocol::config::{Preset, RunConfig};
use protocol::stats::robust;
use protocol::{Command, Event, PROTOCOL, RunSpec, Slot, StreamLine};
use pty_process::Size;
use pty_process::blocking::Pty;
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_perflings");
/// Far above what a healthy program needs.
const HANG_TIMEOUT: Duration = Duration::from_secs(60);

/// What only the help shows, and how a recording marks a step.
const HELP: &str = "a to d: answer";
const STEP: &str = "\"event\":\"step\"";

/// What the terminal received. Without a parser where parsing would take time from what is measured.
struct Shown {
    frames: usize,
    parser: Option<vt100::Parser>,
    /// The last few bytes, because the end of a frame may arrive in two parts.
    tail: Vec<u8>,
}

/// The program in a terminal of its own, with an empty home.
struct Terminal {
    child: Child,
    pty: Arc<Pty>,
    shown: Arc<(Mutex<Shown>, Condvar)>,
    begun: Instant,
    _home: TempDir,
}

impl Terminal {
    fn start(args: &[&str], parse: bool) -> Self {
        Self::run(&[&["--stage", "1"], args].concat(), parse)
    }

    fn run(args: &[&str], parse: bool) -> Self {
        let home = tempfile::tempdir().expect("a folder");
        // The welcome of a first start would take the first key.
        save_file::save(&pty::state(&home), &[ProgressChange::Welcomed]).expect("written");
        let begun = Instant::now();
        let (child, pty) = pty::launch(&home, Size::new(36, 120), args, &[]);
        let shown = Shown {
            frames: 0,
            parser: parse.then(|| vt100::Parser::new(36, 120, 0)),
            tail: Vec::new(),
        };
        let shown = Arc::new((Mutex::new(shown), Condvar::new()));
        std::thread::spawn({
            let (shown, pty) = (Arc::clone(&shown), Arc::clone(&pty));
            move || {
                let mut buffer = [0; 16 * 1024];
                while let Ok(n @ 1..) = (&*pty).read(&mut buffer) {
                    shown.0.lock().expect("not poisoned").take(&buffer[..n]);
                    shown.1.notify_all();
                }
            }
        });
        Self {
            child,
            pty,
            shown,
            begun,
            _home: home,
        }
    }

    /// Waits until what the terminal shows meets the condition; returns the time since `since`.
    fn see(&self, since: Instant, met: impl Fn(&Shown) -> bool) -> Duration {
        let (lock, changed) = &*self.shown;
        let shown = lock.lock().expect("not poisoned");
        let waited = changed.wait_timeout_while(shown, HANG_TIMEOUT, |shown| !met(shown));
        let took = since.elapsed();
        assert!(
            !waited.expect("not poisoned").1.timed_out(),
            "the program hangs"
        );
        took
    }

    fn press(&mut self, key: &str) {
        (&*self.pty).write_all(key.as_bytes()).expect("typed");
    }

    fn quit(mut self) {
        self.press("q");
        self.child.wait().expect("it ends");
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

impl Shown {
    fn take(&mut self, bytes: &[u8]) {
        const END_OF_FRAME: &[u8] = b"\x1b[?2026l";
        self.tail.extend_from_slice(bytes);
        let windows = self.tail.windows(END_OF_FRAME.len());
        self.frames += windows.filter(|w| *w == END_OF_FRAME).count();
        // One byte less than the mark, so that no frame is counted twice.
        let keep = self.tail.len().min(END_OF_FRAME.len() - 1);
        self.tail.drain(..self.tail.len() - keep);
        if let Some(parser) = &mut self.parser {
            parser.process(bytes);
        }
    }

    fn shows(&self, text: &str) -> bool {
        let parser = self.parser.as_ref().expect("parsed");
        parser.screen().contents().contains(text)
    }
}

fn training(shown: &Shown) -> bool {
    shown.shows("running A broken") && shown.shows("samples/s")
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn report(name: &str, target: &str, mut values: Vec<f64>) {
    values.sort_by(f64::total_cmp);
    let q = |share| robust::quantile(&values, share);
    println!(
        "{name:<44} n {:>3}  median {:.3}, middle half {:.3} to {:.3}, p95 {:.3}, p99 {:.3}, largest {:.3}  [target: {target}]",
        values.len(),
        q(0.5),
        q(0.25),
        q(0.75),
        q(0.95),
        q(0.99),
        q(1.0)
    );
}

fn first_frame(runs: usize) {
    let one = |_| {
        let terminal = Terminal::start(&[], false);
        let took = terminal.see(terminal.begun, |shown| shown.frames > 0);
        terminal.quit();
        ms(took)
    };
    let values = (0..runs).map(one).collect();
    report("start to first frame, ms", "100 ms", values);
}

fn first_loss(runs: usize) {
    let (mut engine, mut wall) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        let begun = Instant::now();
        let mut child = Process::new(PROGRAM)
            .args("run 1 --as broken --device cpu --steps 1 --json".split(' '))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("perflings starts");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        for line in output.lines().map_while(Result::ok) {
            let line: StreamLine = serde_json::from_str(&line).expect("an event");
            if let (Event::Step(_), true) = (&line.event, wall.len() == engine.len()) {
                wall.push(ms(begun.elapsed()));
                engine.push(line.t * 1e3);
                break;
            }
        }
        let _ = child.kill();
        let _ = child.wait();
    }
    report("first loss, engine's clock, ms", "1,000 ms", engine);
    report("first loss, from the command, ms", "1,000 ms", wall);
}

/// Keys, memory and a recording, from one session.
fn session(keys: usize, seconds: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("run.jsonl");
    let mut terminal = Terminal::start(&["--record", &file.display().to_string()], true);
    terminal.see(terminal.begun, training);
    let (mut opened, mut closed) = (Vec::new(), Vec::new());
    for at in 0..keys as u64 {
        // Uneven pauses, so that keys do not synchronise with the frames.
        std::thread::sleep(Duration::from_millis(60 + at * 37 % 149));
        let since = Instant::now();
        terminal.press("?");
        opened.push(ms(terminal.see(since, |shown| shown.shows(HELP))));
        std::thread::sleep(Duration::from_millis(60 + at * 53 % 149));
        let since = Instant::now();
        terminal.press("\u{1b}");
        closed.push(ms(terminal.see(since, |shown| !shown.shows(HELP))));
    }
    report("key to frame, open help, ms", "p99 50 ms", opened);
    report("key to frame, close help, ms", "p99 50 ms", closed);
    std::thread::sleep(
        Duration::from_secs(seconds as u64).saturating_sub(terminal.begun.elapsed()),
    );
    let age = terminal.begun.elapsed().as_secs();
    let [now, most] = memory(terminal.child.id());
    println!(
        "{:<44} n   1  VmRSS {now:.1} MB, VmHWM {most:.1} MB, after {age} s  [target: 50 MB]",
        "memory of the UI process"
    );
    terminal.quit();
    recording(&file);
}

/// Extrapolates the size of an hour: the first minute as recorded, the others at the rate seen after it, where the session
/// was long enough.
fn recording(file: &Path) {
    let text = std::fs::read_to_string(file).expect("recorded");
    let (mut early, mut late, mut end) = (0_usize, 0_usize, 0.0_f64);
    for line in text.lines() {
        let t = serde_json::from_str::<StreamLine>(line).map_or(end, |line| line.t);
        *(if t < 60.0 { &mut early } else { &mut late }) += line.len() + 1;
        end = end.max(t);
    }
    let mb = |bytes: f64| bytes / 1e6;
    let whole = early as f64 / end.min(60.0) * 60.0;
    let name = "recording of an hour at tiny, extrapolated";
    if end > 70.0 {
        let later = late as f64 / (end - 60.0) * 60.0;
        println!(
            "{name:<44} n   1  {:.2} MB the first minute, {:.3} MB each later one ({:.0} s of them seen): {:.1} MB  [target: 50 MB]",
            mb(whole),
            mb(later),
            end - 60.0,
            mb(whole + 59.0 * later)
        );
    } else {
        println!(
            "{name:<44} n   1  {:.2} MB the first minute, from {end:.0} s; the later, thinned ones were not seen  [target: 50 MB]",
            mb(whole)
        );
    }
}

/// Samples a second over the wall time of steps 10 to `steps` of a recording.
fn rate(file: &Path, steps: usize) -> f64 {
    let text = std::fs::read_to_string(file).expect("recorded");
    let lines = text
        .lines()
        .filter_map(|line| serde_json::from_str::<StreamLine>(line).ok());
    let times: Vec<f64> = lines
        .filter(|line| matches!(line.event, Event::Step(_)))
        .map(|line| line.t)
        .take(steps)
        .collect();
    assert!(times.len() == steps, "{} steps", times.len());
    let batch = f64::from(RunConfig::preset(Preset::Tiny).train.batch as u32);
    batch * (steps - 10) as f64 / (times[steps - 1] - times[9])
}

fn watching(pairs: usize, steps: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("run.jsonl");
    let path = file.display().to_string();
    let with_screen = || {
        let terminal = Terminal::start(&["--record", &path], false);
        // The file has another name until it is done.
        let part = folder.path().join("run.jsonl.part");
        let seen = || std::fs::read_to_string(&part).map_or(0, |t| t.matches(STEP).count());
        while seen() <= steps {
            assert!(terminal.begun.elapsed() < HANG_TIMEOUT, "the program hangs");
            std::thread::sleep(Duration::from_millis(500));
        }
        terminal.quit();
        rate(&file, steps)
    };
    let headless = || {
        let more = (steps + 20).to_string();
        let status = Process::new(PROGRAM)
            .args("run 1 --as broken --device cpu --steps".split(' '))
            .args([&more, "--record", &path])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        assert!(status.expect("perflings starts").success());
        rate(&file, steps)
    };
    let (mut losses, mut shown, mut hidden) = (Vec::new(), Vec::new(), Vec::new());
    for pair in 0..pairs {
        let (with, without) = if pair % 2 == 0 {
            let with = with_screen();
            (with, headless())
        } else {
            let without = headless();
            (with_screen(), without)
        };
        losses.push((1.0 - with / without) * 100.0);
        shown.push(with);
        hidden.push(without);
    }
    report("throughput, screen on, samples/s", "-", shown);
    report("throughput, screen off, samples/s", "-", hidden);
    report("cost of watching, paired, %", "1 %", losses);
}

/// Resident memory of a process now and at most, in MB.
fn memory(pid: u32) -> [f64; 2] {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    ["VmRSS:", "VmHWM:"].map(|name| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kb = line.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
        kb.expect("a number") * 1024.0 / 1e6
    })
}

fn growth(early: u64, late: u64) {
    let mut child = Process::new(PROGRAM)
        .arg("engine")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the engine starts");
    let mut input = child.stdin.take().expect("piped");
    let run = RunSpec {
        stage: 0,
        variant: "custom".into(),
        slot: Slot::A,
        config: RunConfig::preset(Preset::Tiny),
        steps: Some(late + 1),
        sealed: false,
    };
    let device = "cpu".into();
    for command in [
        Command::Hello {
            protocol: PROTOCOL,
            threads: None,
        },
        Command::Start { device, run },
    ] {
        let text = serde_json::to_string(&command).expect("plain data");
        writeln!(input, "{text}").expect("the engine reads");
    }
    let output = BufReader::new(child.stdout.take().expect("piped"));
    let mut at_early = None;
    for line in output.lines().map_while(Result::ok) {
        let line: StreamLine = serde_json::from_str(&line).expect("an event");
        match line.event {
            Event::Step(step) if step.step == early => at_early = Some(memory(child.id())[0]),
            Event::Step(step) if step.step == late => {
                let ([now, most], before) = (memory(child.id()), at_early.expect("passed"));
                println!(
                    "{:<44} n   1  VmRSS {before:.1} MB at step {early}, {now:.1} MB at step {late} ({:+.1} MB), VmHWM {most:.1} MB  [target: no growth]",
                    "memory of the engine at tiny",
                    now - before
                );
                break;
            }
            _ => {}
        }
    }
    drop(input);
    let _ = child.wait();
}

/// Writes a trace as PyTorch's profiler does, of at least so many bytes: steps of operations, their launches and kernels.
fn kineto(file: &Path, bytes: usize) {
    let mut out = String::from("{\"schemaVersion\":1,\"deviceProperties\":[],\"traceEvents\":[\n");
    let (mut at, mut number) = (0, 0);
    while out.len() < bytes {
        let (begin, step) = (at, number / 500);
        for _ in 0..500 {
            let name = number % 48;
            out += &format!(
                "{{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::operation_{name}\",\"pid\":1,\"tid\":1,\"ts\":{at}.125,\"dur\":18.5,\"args\":{{\"External id\":{number},\"Sequence number\":{number},\"Fwd thread id\":0,\"Record function id\":0,\"Ev Idx\":{number}}}}},\n\
                 {{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":1,\"tid\":1,\"ts\":{}.25,\"dur\":5.5,\"args\":{{\"External id\":{number},\"cbid\":211,\"correlation\":{number}}}}},\n\
                 {{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"void at::native::vectorized_elementwise_kernel<4, at::native::Functor_{name}<float> >(int, float)\",\"pid\":0,\"tid\":7,\"ts\":{}.75,\"dur\":3.25,\"args\":{{\"External id\":{number},\"device\":0,\"context\":1,\"stream\":7,\"correlation\":{number},\"registers per thread\":32,\"shared memory\":0,\"blocks per SM\":1.5,\"warps per SM\":12.0,\"grid\":[128,1,1],\"block\":[128,1,1],\"est. achieved occupancy %\":19}}}},\n",
                at + 6,
                at + 13
            );
            (at, number) = (at + 20, number + 1);
        }
        out += &format!(
            "{{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#{step}\",\"pid\":1,\"tid\":1,\"ts\":{begin},\"dur\":{}}},\n",
            at - begin
        );
    }
    out.truncate(out.len() - 2);
    out += "\n]}\n";
    std::fs::write(file, out).expect("written");
}

/// A large profile of PyTorch: from the command to its JSON and to its screen, memory, and panning on the timeline.
fn profile(runs: usize, keys: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("trace.json");
    kineto(&file, 100_000_000);
    let path = file.display().to_string();
    let json = |_| {
        let begun = Instant::now();
        let mut command = Process::new(PROGRAM);
        command
            .args(["open", &path, "--json"])
            .stdout(Stdio::null());
        assert!(command.status().expect("perflings starts").success());
        begun.elapsed().as_secs_f64()
    };
    let values = (0..runs).map(json).collect();
    report("a profile of 100 MB as JSON, s", "5 s", values);
    let mut terminal = Terminal::run(&["open", &path], false);
    let took = terminal.see(terminal.begun, |shown| shown.frames > 0);
    report("the same on the screen, s", "5 s", vec![took.as_secs_f64()]);
    let [_, most] = memory(terminal.child.id());
    println!(
        "{:<44} n   1  VmHWM {most:.1} MB  [target: 500 MB]",
        "its memory"
    );
    // The whole trace, then closer and closer, with every operation of the host.
    for key in ["t", "z", "a", "0"] {
        terminal.press(key);
        std::thread::sleep(Duration::from_millis(1000));
    }
    let mut panned = Vec::new();
    for at in 0..keys as u64 {
        std::thread::sleep(Duration::from_millis(20 + at * 37 % 149));
        let before = terminal.shown.0.lock().expect("not poisoned").frames;
        let since = Instant::now();
        let right = if at % 40 < 20 { "\u{1b}[C" } else { "\u{1b}[D" };
        terminal.press(if at % 10 == 0 && at < 100 { "+" } else { right });
        panned.push(ms(terminal.see(since, |shown| shown.frames > before)));
    }
    report("panning its timeline, ms", "p99 50 ms", panned);
    terminal.quit();
}

fn main() {
    let short = std::env::args().any(|arg| arg == "--quick");
    let times = |full, quick| if short { quick } else { full };
    if !cfg!(target_os = "linux") {
        println!("this benchmark reads /proc, which only Linux has");
        return;
    }
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    println!("stage 1 as broken, tiny, device cpu, {cores} threads; terminal of 120x36");
    profile(times(5, 2), times(300, 100));
    first_frame(times(20, 5));
    first_loss(times(10, 3));
    session(times(60, 15), times(90, 0));
    watching(times(6, 2), times(125, 50));
    growth(times(200, 50) as u64, times(2000, 200) as u64);
}
