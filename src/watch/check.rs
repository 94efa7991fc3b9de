//! Finds the faults of a file of watched lines, for `perflings watch --check`: lines that cannot be read, steps that come twice or too early,
//! and a file that does not begin with `hello`.

use std::path::Path;

use super::follow::{Followed, FollowedFile};
use super::line::{WatchEvent, WatchStep, read};
use super::rank::not_after;

/// The result of a check.
#[derive(Debug, Default, PartialEq)]
pub struct CheckedFile {
    /// The number of lines.
    pub lines: u64,
    /// The number of steps.
    pub steps: u64,
    /// The faults, each with the number of its line.
    pub faults: Vec<(u64, String)>,
}

/// Reads the whole file and returns its faults.
pub fn check(path: &Path) -> CheckedFile {
    let mut file = FollowedFile::new(path.to_owned());
    let mut checked = CheckedFile::default();
    let mut has_hello = false;
    let mut last_step = None;
    loop {
        for followed in file.poll() {
            let (number, line) = match followed {
                Followed::Line(number, text) => (number, read(&text)),
                Followed::TooLong(number) => (number, Err("is longer than 1 MB".to_owned())),
                Followed::BegunAgain => continue,
            };
            checked.lines = number;
            match line.map(|line| line.event) {
                Err(why) => checked.faults.push((number, why)),
                Ok(WatchEvent::Hello(_)) => {
                    has_hello = true;
                    last_step = None;
                }
                Ok(WatchEvent::Run(run)) => last_step = run.from_step.checked_sub(1),
                Ok(WatchEvent::Step(WatchStep { step, .. })) => {
                    checked.steps += 1;
                    if let Some(last) = last_step.filter(|last| step <= *last) {
                        checked.faults.push((number, not_after(step, last)));
                    }
                    last_step = Some(step);
                }
                Ok(_) => {}
            }
            if number == 1 && !has_hello {
                let why =
                    r#"is not `hello`: write {"event":"hello","protocol":1,"host":"…"} first"#;
                checked.faults.push((1, why.to_owned()));
            }
        }
        if !file.is_behind() {
            return checked;
        }
    }
}
