//! What can go wrong around the program: disks, locks, signals, keys and sizes. Linux only: processes are found through
//! `/proc`.
#![cfg(target_os = "linux")]

use crate::pty;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use perflings::course::save_file::{self, Prediction};
use protocol::random::Rng;
use pty::{Terminal, is_engine, state, wait};
use pty_process::Size;
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::tcgetattr;

const UNSAVED: &str = "Progress is not saved: ";

/// Answers the question of the first stage, which is something to save.
fn predict(terminal: &mut Terminal) {
    terminal.press("\r");
    terminal.see(&["Answer the question: a to d"]);
    terminal.press("b");
}

fn predicted(terminal: &Terminal) -> bool {
    let stage = save_file::load(&state(&terminal.home))
        .0
        .stage("broken-init");
    matches!(stage.prediction, Some(Prediction::Choice { .. }))
}

/// The reason stands above everything else; once it is gone, everything is on the disk.
fn see_unsaved(terminal: &mut Terminal, why: &str) {
    let wanted = format!("{UNSAVED}{why}");
    terminal.see_that(&wanted, |text| {
        text.lines()
            .next()
            .is_some_and(|line| line.contains(&wanted))
    });
}

fn see_saved(terminal: &mut Terminal) {
    terminal.see_that("saved progress", |text| !text.contains(UNSAVED));
    assert!(predicted(terminal));
    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
}

/// A file system of 256 KiB at a folder, as long as this lives.
struct SmallDisk<'a>(&'a Path);

impl<'a> SmallDisk<'a> {
    fn mount(at: &'a Path) -> Option<Self> {
        let mount = ["-t", "tmpfs", "-o", "size=256k", "tmpfs"];
        let mut mount = Command::new("mount").args(mount).arg(at).spawn().ok()?;
        let mounted = mount.wait().is_ok_and(|status| status.success());
        mounted.then_some(Self(at))
    }

    fn fill(&self) {
        let filler = fs::write(self.0.join("filler"), vec![0; 512 * 1024]);
        assert!(filler.is_err(), "it is full before that");
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

#[test]
fn a_full_disk_is_told_first_and_everything_is_saved_when_there_is_room() {
    let mut terminal = Terminal::start(&[]);
    terminal.see_training();
    let folder = state(&terminal.home);
    let Some(disk) = SmallDisk::mount(&folder) else {
        eprintln!("skipped: no disk can be mounted here");
        return;
    };
    disk.fill();
    predict(&mut terminal);
    see_unsaved(&mut terminal, "the disk is full");
    // It stays, whatever is told below it.
    terminal.press("?");
    see_unsaved(&mut terminal, "the disk is full");
    terminal.press("\u{1b}");
    for (cols, rows) in [(60, 16), (50, 12), (120, 36), (80, 24)] {
        terminal.resize(cols, rows);
        see_unsaved(&mut terminal, "the disk is full");
    }
    fs::remove_file(folder.join("filler")).expect("removed");
    see_saved(&mut terminal);
}

#[test]
fn a_lost_state_folder_is_made_again_with_all_that_was_in_it() {
    let mut terminal = Terminal::start(&[]);
    terminal.see_training();
    let folder = state(&terminal.home);
    wait("the place", || save_file::load(&folder).0.current.is_some());
    fs::remove_dir_all(&folder).expect("removed");
    fs::write(&folder, "in its place").expect("written");
    predict(&mut terminal);
    see_unsaved(&mut terminal, "");
    fs::remove_file(&folder).expect("removed");
    terminal.see_that("saved progress", |text| !text.contains(UNSAVED));
    let (kept, problem) = save_file::load(&folder);
    assert!(kept.welcomed && problem.is_none(), "{kept:?}");
    see_saved(&mut terminal);
}

#[test]
fn a_lock_of_another_program_does_not_hold_up_the_screen() {
    let mut terminal = Terminal::start(&[]);
    terminal.see_training();
    let lock = state(&terminal.home).join("progress.lock");
    let other = File::options().write(true).open(lock).expect("there");
    other.lock().expect("locked");
    predict(&mut terminal);
    terminal.see(&["── how much ──"]);
    let asked = Instant::now();
    terminal.press("\u{1b}");
    terminal.see_that("panels", |text| !text.contains("── how much ──"));
    assert!(
        asked.elapsed() < Duration::from_millis(700),
        "{:?}",
        asked.elapsed()
    );
    see_unsaved(&mut terminal, "another program holds progress.lock");
    assert!(!predicted(&terminal));
    drop(other);
    see_saved(&mut terminal);
}

#[test]
fn progress_that_cannot_be_saved_is_told_after_the_end() {
    let mut terminal = Terminal::start(&[]);
    terminal.see_training();
    let folder = state(&terminal.home);
    wait("the place", || save_file::load(&folder).0.current.is_some());
    fs::remove_dir_all(&folder).expect("removed");
    fs::write(&folder, "in its place").expect("written");
    predict(&mut terminal);
    see_unsaved(&mut terminal, "");
    terminal.press("\u{1b}");
    terminal.see_that("panels", |text| !text.contains("── how much ──"));
    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
    let output = String::from_utf8_lossy(&terminal.all_output()).into_owned();
    let (_, after) = output
        .rsplit_once("\u{1b}[?1049l")
        .expect("the screen was left");
    assert!(after.contains("progress is not saved: "), "{after:?}");
}

#[test]
fn keys_by_the_thousand_are_read_and_nothing_begun_holds_up_a_ctrl_c() {
    for begun in [
        "j".repeat(3000),
        "\u{1b}".repeat(5000),
        "\u{1b}[".to_owned(),
        "\u{1b}]11;rgb:".to_owned(),
    ] {
        let mut terminal = Terminal::start(&[]);
        terminal.see_training();
        terminal.press(&begun);
        terminal.press("\u{3}");
        assert_eq!(terminal.ended(), 130);
    }
}

#[test]
fn pasted_text_presses_no_key() {
    let mut terminal = Terminal::start(&[]);
    terminal.see_training();
    terminal.press("\u{1b}[200~q\r\u{3}q\u{1b}[201~");
    terminal.see(&["Pasted text does nothing here"]);
    // One without an end lasts a second.
    terminal.press("\u{1b}[200~q");
    std::thread::sleep(Duration::from_millis(1500));
    quits(terminal, &plain_terminal());
}

/// This terminal answers no query.
#[test]
fn a_stop_needs_no_answer_of_the_terminal() {
    let mut terminal = Terminal::start(&[]);
    terminal.see_training();
    let program = Pid::from_raw(terminal.program().cast_signed()).expect("not 0");
    // No shell is there to say `fg`.
    terminal.press("\u{1a}");
    std::thread::sleep(Duration::from_millis(500));
    kill_process(program, Signal::CONT).expect("it is ours");
    terminal.see(&["running A broken"]);
    for signal in [Signal::STOP, Signal::CONT] {
        kill_process(program, signal).expect("it is ours");
        std::thread::sleep(Duration::from_millis(300));
    }
    terminal.see(&["running A broken"]);
    quits(terminal, &plain_terminal());
}

#[test]
fn a_limit_for_files_is_told_like_a_full_disk() {
    use rustix::process::{Resource, Rlimit, prlimit};
    let mut terminal = Terminal::start(&[]);
    terminal.see_training();
    wait("the place", || {
        save_file::load(&state(&terminal.home)).0.current.is_some()
    });
    let program = Pid::from_raw(terminal.program().cast_signed());
    let none = Rlimit {
        current: Some(0),
        maximum: None,
    };
    let before = prlimit(program, Resource::Fsize, none).expect("it is ours");
    predict(&mut terminal);
    see_unsaved(&mut terminal, "files may not grow any more here");
    prlimit(program, Resource::Fsize, before).expect("it is ours");
    see_saved(&mut terminal);
}

/// How often something is done again: `PERFLINGS_FAULTS=50` does it fifty times as often.
fn times(n: u32) -> u32 {
    let factor = std::env::var("PERFLINGS_FAULTS").ok();
    n * factor.and_then(|it| it.parse().ok()).unwrap_or(1)
}

fn kill(pid: u32) {
    let pid = Pid::from_raw(pid.cast_signed()).expect("not 0");
    kill_process(pid, Signal::KILL).expect("it is ours");
}

/// Ends with `q`, and holds that the terminal is as it was before the program: `pty` is another handle on it.
fn quits(mut terminal: Terminal, before: &rustix::termios::Termios) {
    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
    let after = tcgetattr(terminal.pty()).expect("a terminal");
    assert_eq!(after.local_modes, before.local_modes);
    assert_eq!(after.output_modes, before.output_modes);
    assert_eq!(after.input_modes, before.input_modes);
    let shown = terminal.shown();
    let screen = shown.parser.screen();
    assert!(!screen.alternate_screen() && !screen.hide_cursor());
}

fn plain_terminal() -> rustix::termios::Termios {
    let (pty, slave) = pty_process::blocking::open().expect("a terminal opens");
    pty.resize(Size::new(24, 80)).expect("resizes");
    let modes = tcgetattr(&pty).expect("a terminal");
    drop(slave);
    modes
}

#[test]
fn an_engine_that_is_killed_again_and_again_costs_nothing() {
    let mut terminal = Terminal::start(&[]);
    terminal.see_training();
    predict(&mut terminal);
    wait("the answer on the disk", || predicted(&terminal));
    terminal.press("\u{1b}");
    for _ in 0..times(3) {
        let engine = terminal.engine();
        kill(engine);
        terminal.see(&["✗ engine gone", "r restart"]);
        assert!(!is_engine(engine) && predicted(&terminal));
        terminal.press("r");
        terminal.see(&["running A broken"]);
    }
    quits(terminal, &plain_terminal());
}

#[test]
fn a_screen_that_is_killed_again_and_again_loses_nothing() {
    let mut terminal = Terminal::start(&[]);
    terminal.see_training();
    predict(&mut terminal);
    wait("the answer on the disk", || predicted(&terminal));
    for _ in 0..times(3) {
        let engine = terminal.engine();
        // It is killed in the middle of whatever it does.
        terminal = terminal.again(&[]);
        wait("the engine's end", || !is_engine(engine));
        let (_, problem) = save_file::load(&state(&terminal.home));
        assert!(predicted(&terminal) && problem.is_none(), "{problem:?}");
        terminal.see(&["running A broken"]);
    }
    quits(terminal, &plain_terminal());
}

/// What a terminal sends for keys, but for those that end the program, start an editor or leave for a shell.
const KEYS: &str = "abcdfghijklmnprstvxyz?123456789ABCDEFHJLPRSTW.<>[]+-=/! \r\t\u{7f}é\0";
const SEQUENCES: &[&str] = &[
    "\u{1b}",
    "\u{1b}[A",
    "\u{1b}[B",
    "\u{1b}[C",
    "\u{1b}[D",
    "\u{1b}[5~",
    "\u{1b}[6~",
    "\u{1b}[H",
    "\u{1b}[F",
    "\u{1b}[Z",
    "\u{1b}[<0;9;9M",
    "\u{1b}[<65;40;9M",
    "\u{1b}[<0;999;999M",
    "\u{1b}[99~",
    "\u{1b}]11;rgb:0/0/0\u{7}",
];

/// A key, and sometimes another size.
fn press_at_random(terminal: &mut Terminal, rng: &mut Rng) {
    if rng.below(6) == 0 {
        terminal.resize(1 + rng.below(220) as u16, 1 + rng.below(70) as u16);
    }
    let keys: Vec<char> = KEYS.chars().collect();
    match rng.below(3) {
        0 => terminal.press(SEQUENCES[rng.below(SEQUENCES.len())]),
        _ => terminal.press(&keys[rng.below(keys.len())].to_string()),
    }
}

#[test]
fn random_keys_and_sizes_neither_end_the_program_nor_harm_progress() {
    let mut terminal = Terminal::start(&[]);
    terminal.see_training();
    let mut rng = Rng::new(1);
    for _ in 0..times(300) {
        press_at_random(&mut terminal, &mut rng);
        std::thread::sleep(Duration::from_millis(10));
    }
    terminal.resize(80, 24);
    terminal.wait_for_output();
    let engine = terminal.engine();
    assert!(terminal.shown().parser.screen().alternate_screen());
    // Wherever the keys have led.
    let program = Pid::from_raw(terminal.program().cast_signed()).expect("not 0");
    kill_process(program, Signal::TERM).expect("it is ours");
    assert_eq!(terminal.ended(), 130);
    assert!(!terminal.shown().parser.screen().alternate_screen());
    wait("the engine's end", || !is_engine(engine));
    let (_, problem) = save_file::load(&state(&terminal.home));
    assert_eq!(problem, None);
}

/// What a process holds: bytes of memory, descriptors, threads.
#[derive(Clone, Copy, Debug)]
struct Held([u64; 3]);

impl Held {
    fn by(pid: u32) -> Self {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
            number.unwrap_or(0_u64)
        };
        let open = fs::read_dir(format!("/proc/{pid}/fd"))
            .expect("it runs")
            .count();
        Self([field("VmRSS:") * 1024, open as u64, field("Threads:")])
    }

    /// The least of each: what is never given back raises it.
    fn least(all: &[Self]) -> Self {
        Self([0, 1, 2].map(|at| all.iter().map(|held| held.0[at]).min().unwrap_or(0)))
    }
}

/// Keys, sizes and new runs for `PERFLINGS_SOAK_MINUTES`, 30 without it. Screen and engine may not hold more in the last third
/// than in the second one.
#[test]
#[ignore = "takes half an hour"]
fn soak() {
    let minutes = std::env::var("PERFLINGS_SOAK_MINUTES").ok();
    let minutes: f64 = minutes.map_or(30.0, |it| it.parse().expect("minutes"));
    let mut terminal = Terminal::start(&[]);
    terminal.see_training();
    let engine = terminal.engine();
    let (mut rng, begun) = (Rng::new(2), Instant::now());
    let share = |begun: Instant| begun.elapsed().as_secs_f64() / (60.0 * minutes);
    let mut held: [Vec<[Held; 2]>; 3] = Default::default();
    while share(begun) < 1.0 {
        for _ in 0..100 {
            press_at_random(&mut terminal, &mut rng);
            std::thread::sleep(Duration::from_millis(25));
        }
        // Whatever is open is closed, and a run begins anew.
        terminal.resize(120, 36);
        for key in ["\u{1b}", "\u{1b}", "\u{1b}", "r"] {
            terminal.press(key);
            std::thread::sleep(Duration::from_millis(250));
        }
        let third = (3.0 * share(begun)) as usize;
        let both = [terminal.program(), engine].map(Held::by);
        held[third.min(2)].push(both);
    }
    assert_eq!(terminal.engine(), engine, "it was replaced");
    for (at, who) in ["screen", "engine"].into_iter().enumerate() {
        let [first, second, third] = held.each_ref().map(|all| {
            let of: Vec<Held> = all.iter().map(|both| both[at]).collect();
            Held::least(&of)
        });
        for (what, at) in [("bytes", 0), ("descriptors", 1), ("threads", 2)] {
            let [first, second, third] = [first, second, third].map(|held| held.0[at]);
            println!("{who}: {what} {first}, {second}, {third}");
            let spare = [second / 8 + (8 << 20), 0, 0][at];
            assert!(third <= second + spare, "{who}: {what} {second} to {third}");
        }
    }
    quits(terminal, &plain_terminal());
}
