//! What can go wrong around the program: disks, locks, signals, keys and sizes. Linux only: processes are found through
//! `/proc`.
#![cfg(target_os = "linux")]

#[path = "pty/terminal.rs"]
mod pty;

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use perflings::course::progress::{self, Prediction};
use pty::{Terminal, state, wait};

const UNSAVED: &str = "Progress is not saved: ";

/// Answers the question of the first stage, which is something to save.
fn predict(terminal: &mut Terminal) {
    terminal.press("\r");
    terminal.see(&["Answer the question: a to d"]);
    terminal.press("b");
}

fn predicted(terminal: &Terminal) -> bool {
    let stage = progress::load(&state(&terminal.home))
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
    wait("the place", || progress::load(&folder).0.current.is_some());
    fs::remove_dir_all(&folder).expect("removed");
    fs::write(&folder, "in its place").expect("written");
    predict(&mut terminal);
    see_unsaved(&mut terminal, "");
    fs::remove_file(&folder).expect("removed");
    terminal.see_that("saved progress", |text| !text.contains(UNSAVED));
    let (kept, problem) = progress::load(&folder);
    assert!(
        kept.welcomed && kept.seed.is_some() && problem.is_none(),
        "{kept:?}"
    );
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
    wait("the place", || progress::load(&folder).0.current.is_some());
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
