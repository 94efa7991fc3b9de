//! `perflings watch --check`: reads a file of watched lines and says what is wrong with it.

use std::path::Path;

use super::follow::{Followed, FollowedFile};
use super::line::{WatchEvent, read};
use super::rank::not_after;

/// A file of watched lines: the number of its lines and of its steps, and its faults with their line numbers.
#[derive(Debug, Default, PartialEq)]
pub struct CheckedFile {
    pub lines: u64,
    pub steps: u64,
    pub faults: Vec<(u64, String)>,
}

/// Reads the whole file.
pub fn check(path: &Path) -> CheckedFile {
    let mut file = FollowedFile::new(path.to_owned());
    let mut out = CheckedFile::default();
    let mut greeted = false;
    let mut last = None;
    loop {
        for piece in file.poll() {
            let (number, found) = match piece {
                Followed::Line(number, text) => (number, read(&text)),
                Followed::TooLong(number) => (number, Err("is longer than 1 MB".to_owned())),
                Followed::BegunAgain => continue,
            };
            out.lines = number;
            match found {
                Err(why) => out.faults.push((number, why)),
                Ok(line) => match line.event {
                    WatchEvent::Hello(_) => {
                        greeted = true;
                        last = None;
                    }
                    WatchEvent::Run(run) => last = run.from_step.checked_sub(1),
                    WatchEvent::Step(step) => {
                        out.steps += 1;
                        if let Some(before) = last.filter(|last| step.step <= *last) {
                            out.faults.push((number, not_after(step.step, before)));
                        }
                        last = Some(step.step);
                    }
                    _ => {}
                },
            }
            if number == 1 && !greeted {
                let why = "is not `hello`: write {\"event\":\"hello\",\"protocol\":1,\"host\":\"…\"} first";
                out.faults.push((1, why.to_owned()));
            }
        }
        if !file.is_behind() {
            return out;
        }
    }
}
