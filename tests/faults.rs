//! Faults around the program: disks, locks, signals, keys and sizes. These tests run on Linux only, because they find processes through `/proc`.
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

/// Answers the question of the first stage, so that there is progress to save.
fn predict(terminal: &mut Terminal) {
    terminal.press("\r");
    terminal.see(&["Answer the question: a to d"]);
    terminal.press("b");
}

/// Returns true if the answer is in the progress file.
fn is_answer_saved(terminal: &Terminal) -> bool {
    let stage = save_file::load(&state(&terminal.home))
        .0
        .stage("broken-init");
    matches!(stage.prediction, Some(Prediction::Choice { .. }))
}

/// Waits until the first line reports that progress is not saved, and why.
fn see_unsaved(terminal: &mut Terminal, why: &str) {
    let wanted = format!("{UNSAVED}{why}");
    terminal.see_that(&wanted, |text| {
        text.lines()
            .next()
            .is_some_and(|line| line.contains(&wanted))
    });
}

/// Waits until the first line no longer reports unsaved progress, checks that it is saved, and quits.
fn see_saved(terminal: &mut Terminal) {
    terminal.see_that("saved progress", |text| !text.contains(UNSAVED));
    assert!(is_answer_saved(terminal));
    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
}

/// Waits until the learner's place is saved, so that the state folder exists.
fn wait_for_saved_place(terminal: &Terminal) {
    let folder = state(&terminal.home);
    wait("the place", || save_file::load(&folder).0.current.is_some());
}

/// A file system of 256 KiB that is mounted at a folder until this is dropped.
struct SmallDisk<'a>(&'a Path);

impl<'a> SmallDisk<'a> {
    /// Mounts the file system; `None` if this user may not mount.
    fn mount(folder: &'a Path) -> Option<Self> {
        let status = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"])
            .arg(folder)
            .status()
            .ok()?;
        status.success().then_some(Self(folder))
    }

    fn fill(&self) {
        let filler = fs::write(self.0.join("filler"), vec![0; 512 * 1024]);
        assert!(filler.is_err(), "the disk has no room for this file");
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

#[test]
fn a_full_disk_is_named_in_the_first_line_until_there_is_room() {
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
    // The line stays when a page is opened or the size changes.
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
fn a_lost_state_folder_is_made_again_with_the_whole_progress() {
    let mut terminal = Terminal::start(&[]);
    terminal.see_training();
    wait_for_saved_place(&terminal);
    let folder = state(&terminal.home);
    fs::remove_dir_all(&folder).expect("removed");
    fs::write(&folder, "a file in place of the folder").expect("written");
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
    let path = state(&terminal.home).join("progress.lock");
    let held_lock = File::options().write(true).open(path).expect("a lock file");
    held_lock.lock().expect("locked");
    predict(&mut terminal);
    terminal.see(&["── how much ──"]);
    let pressed = Instant::now();
    terminal.press("\u{1b}");
    terminal.see_that("panels", |text| !text.contains("── how much ──"));
    let took = pressed.elapsed();
    assert!(took < Duration::from_millis(700), "{took:?}");
    see_unsaved(&mut terminal, "another program holds progress.lock");
    assert!(!is_answer_saved(&terminal));
    drop(held_lock);
    see_saved(&mut terminal);
}

#[test]
fn progress_that_cannot_be_saved_is_reported_after_the_screen_was_left() {
    let mut terminal = Terminal::start(&[]);
    terminal.see_training();
    wait_for_saved_place(&terminal);
    let folder = state(&terminal.home);
    fs::remove_dir_all(&folder).expect("removed");
    fs::write(&folder, "a file in place of the folder").expect("written");
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
fn ctrl_c_ends_the_program_after_thousands_of_keys_and_after_unfinished_sequences() {
    for keys in [
        "j".repeat(3000),
        "\u{1b}".repeat(5000),
        "\u{1b}[".to_owned(),
        "\u{1b}]11;rgb:".to_owned(),
    ] {
        let mut terminal = Terminal::start(&[]);
        terminal.see_training();
        terminal.press(&keys);
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
    // A paste without an end lasts a second.
    terminal.press("\u{1b}[200~q");
    std::thread::sleep(Duration::from_millis(1500));
    quit_and_check_terminal(terminal);
}

#[test]
fn a_stopped_program_goes_on_although_the_terminal_answers_no_query() {
    let mut terminal = Terminal::start(&[]);
    terminal.see_training();
    let program = terminal.program();
    terminal.press("\u{1a}");
    std::thread::sleep(Duration::from_millis(500));
    // The test continues the program, because there is no shell that could.
    signal(program, Signal::CONT);
    terminal.see(&["running A broken"]);
    for stop_or_continue in [Signal::STOP, Signal::CONT] {
        signal(program, stop_or_continue);
        std::thread::sleep(Duration::from_millis(300));
    }
    terminal.see(&["running A broken"]);
    quit_and_check_terminal(terminal);
}

#[test]
fn a_limit_on_file_sizes_is_reported_as_a_full_disk_is() {
    use rustix::process::{Resource, Rlimit, prlimit};
    let mut terminal = Terminal::start(&[]);
    terminal.see_training();
    wait_for_saved_place(&terminal);
    let program = Pid::from_raw(terminal.program().cast_signed());
    let no_growth = Rlimit {
        current: Some(0),
        maximum: None,
    };
    let before = prlimit(program, Resource::Fsize, no_growth).expect("our process");
    predict(&mut terminal);
    see_unsaved(&mut terminal, "files may not grow any more here");
    prlimit(program, Resource::Fsize, before).expect("our process");
    see_saved(&mut terminal);
}

/// Returns the number of times that a test repeats something. `PERFLINGS_FAULTS=50` makes it 50 times `usual`.
fn repetitions(usual: u32) -> u32 {
    let factor = std::env::var("PERFLINGS_FAULTS").ok();
    usual * factor.and_then(|factor| factor.parse().ok()).unwrap_or(1)
}

fn signal(pid: u32, signal: Signal) {
    let process = Pid::from_raw(pid.cast_signed()).expect("not 0");
    kill_process(process, signal).expect("our process");
}

/// Quits with `q`, and checks that the terminal has the modes of one in which no program ran.
fn quit_and_check_terminal(mut terminal: Terminal) {
    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
    let before = modes_of_new_terminal();
    let after = tcgetattr(terminal.pty()).expect("a terminal");
    assert_eq!(after.local_modes, before.local_modes);
    assert_eq!(after.output_modes, before.output_modes);
    assert_eq!(after.input_modes, before.input_modes);
    let shown = terminal.shown();
    let screen = shown.parser.screen();
    assert!(!screen.alternate_screen() && !screen.hide_cursor());
}

fn modes_of_new_terminal() -> rustix::termios::Termios {
    let (pty, slave) = pty_process::blocking::open().expect("a terminal opens");
    pty.resize(Size::new(24, 80)).expect("resizes");
    let modes = tcgetattr(&pty).expect("a terminal");
    drop(slave);
    modes
}

#[test]
fn a_learner_can_restart_an_engine_that_is_killed_again_and_again() {
    let mut terminal = Terminal::start(&[]);
    terminal.see_training();
    predict(&mut terminal);
    wait("the answer on the disk", || is_answer_saved(&terminal));
    terminal.press("\u{1b}");
    for _ in 0..repetitions(3) {
        let engine = terminal.engine();
        signal(engine, Signal::KILL);
        terminal.see(&["✗ engine gone", "r restart"]);
        assert!(!is_engine(engine) && is_answer_saved(&terminal));
        terminal.press("r");
        terminal.see(&["running A broken"]);
    }
    quit_and_check_terminal(terminal);
}

#[test]
fn a_screen_that_is_killed_again_and_again_loses_nothing() {
    let mut terminal = Terminal::start(&[]);
    terminal.see_training();
    predict(&mut terminal);
    wait("the answer on the disk", || is_answer_saved(&terminal));
    for _ in 0..repetitions(3) {
        let engine = terminal.engine();
        // This kills the program in the midst of its work and starts another one.
        terminal = terminal.again(&[]);
        wait("the engine's end", || !is_engine(engine));
        let (_, problem) = save_file::load(&state(&terminal.home));
        assert!(
            is_answer_saved(&terminal) && problem.is_none(),
            "{problem:?}"
        );
        terminal.see(&["running A broken"]);
    }
    quit_and_check_terminal(terminal);
}

/// The characters that a terminal sends for keys, without the keys that end the program, start an editor or leave for a shell.
const KEYS: &str = "abcdfghijklmnprstvxyz?123456789ABCDEFHJLPRSTW.<>[]+-=/! \r\t\u{7f}é\0";
/// The sequences that a terminal sends for other keys, the mouse, and an answer to a query.
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

/// Presses a random key; sometimes it changes the size of the terminal before.
fn press_at_random(terminal: &mut Terminal, rng: &mut Rng) {
    if rng.below(6) == 0 {
        terminal.resize(1 + rng.below(220) as u16, 1 + rng.below(70) as u16);
    }
    let keys: Vec<char> = KEYS.chars().collect();
    if rng.below(3) == 0 {
        terminal.press(SEQUENCES[rng.below(SEQUENCES.len())]);
    } else {
        terminal.press(&keys[rng.below(keys.len())].to_string());
    }
}

#[test]
fn random_keys_and_sizes_neither_end_the_program_nor_harm_progress() {
    let mut terminal = Terminal::start(&[]);
    terminal.see_training();
    let mut rng = Rng::new(1);
    for _ in 0..repetitions(300) {
        press_at_random(&mut terminal, &mut rng);
        std::thread::sleep(Duration::from_millis(10));
    }
    terminal.resize(80, 24);
    terminal.wait_for_output();
    let engine = terminal.engine();
    assert!(terminal.shown().parser.screen().alternate_screen());
    // The keys may have opened any page, so a signal ends the program.
    signal(terminal.program(), Signal::TERM);
    assert_eq!(terminal.ended(), 130);
    assert!(!terminal.shown().parser.screen().alternate_screen());
    wait("the engine's end", || !is_engine(engine));
    let (_, problem) = save_file::load(&state(&terminal.home));
    assert_eq!(problem, None);
}

/// The least resources that a process held in one part of the test, at several looks.
#[derive(Clone, Copy, Debug)]
struct LeastHeld {
    bytes: u64,
    descriptors: usize,
    threads: u64,
}

impl LeastHeld {
    const UNKNOWN: Self = Self {
        bytes: u64::MAX,
        descriptors: usize::MAX,
        threads: u64::MAX,
    };

    /// Looks at a process. Only resources that it never gives back raise the least.
    fn look_at(&mut self, pid: u32) {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
        let field = |name: &str| {
            status
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .and_then(|line| line.split_whitespace().next()?.parse().ok())
                .unwrap_or(0_u64)
        };
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).expect("it runs");
        self.bytes = self.bytes.min(field("VmRSS:") * 1024);
        self.descriptors = self.descriptors.min(descriptors.count());
        self.threads = self.threads.min(field("Threads:"));
    }
}

/// Presses keys, changes sizes and begins runs for `PERFLINGS_SOAK_MINUTES`, or 30 minutes without it.
#[test]
#[ignore = "takes half an hour"]
fn screen_and_engine_hold_no_more_in_the_last_third_of_a_long_session_than_in_the_second() {
    let minutes = std::env::var("PERFLINGS_SOAK_MINUTES")
        .map_or(30.0, |minutes| minutes.parse().expect("minutes"));
    let mut terminal = Terminal::start(&[]);
    terminal.see_training();
    let engine = terminal.engine();
    let mut rng = Rng::new(2);
    let began = Instant::now();
    let share_done = || began.elapsed().as_secs_f64() / (60.0 * minutes);
    let mut screen_held = [LeastHeld::UNKNOWN; 3];
    let mut engine_held = [LeastHeld::UNKNOWN; 3];
    while share_done() < 1.0 {
        for _ in 0..100 {
            press_at_random(&mut terminal, &mut rng);
            std::thread::sleep(Duration::from_millis(25));
        }
        // Close whatever is open, and begin another run.
        terminal.resize(120, 36);
        for key in ["\u{1b}", "\u{1b}", "\u{1b}", "r"] {
            terminal.press(key);
            std::thread::sleep(Duration::from_millis(250));
        }
        let third = (3.0 * share_done()) as usize;
        screen_held[third.min(2)].look_at(terminal.program());
        engine_held[third.min(2)].look_at(engine);
    }
    assert_eq!(terminal.engine(), engine, "the engine was replaced");
    for held in [screen_held, engine_held] {
        println!("{held:?}");
        let [_, second, last] = held;
        assert!(last.bytes <= second.bytes + second.bytes / 8 + (8 << 20));
        assert!(last.descriptors <= second.descriptors);
        assert!(last.threads <= second.threads);
    }
    quit_and_check_terminal(terminal);
}
