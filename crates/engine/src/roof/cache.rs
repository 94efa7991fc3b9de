//! The file of measured roofs. Everything read from it is checked; a damaged file is set aside, and the device is measured
//! again. It is written as a whole.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use protocol::stats::roofline;
use protocol::{Device, Roof, files};

const FILE: &str = "roofs.json";
/// Changes when roofs are measured in another way: older entries are then measured again.
const VERSION: u32 = 3;
const MAX_BYTES: u64 = 1 << 20;
/// Entries that are kept; the oldest are dropped.
const MAX_ENTRIES: usize = 64;

/// A roof with what it was measured on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct CachedRoof {
    pub device: Device,
    pub driver: String,
    pub roof: Roof,
    /// How often it was measured.
    pub tries: u32,
}

impl CachedRoof {
    /// Whether it is of this device under this driver.
    pub(super) fn is(&self, device: &Device, driver: &str) -> bool {
        self.device == *device && self.driver == driver
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Kept {
    version: u32,
    roofs: Vec<CachedRoof>,
}

/// What is on file; with a sentence where the file was damaged and set aside. Impossible numbers are left out.
pub(super) fn read(folder: &Path) -> (Vec<CachedRoof>, Option<String>) {
    match kept(&folder.join(FILE)) {
        Ok(Kept { version, roofs }) if version == VERSION => {
            let plausible = |it: &CachedRoof| roofline::plausible(&it.roof).is_ok();
            (roofs.into_iter().filter(plausible).collect(), None)
        }
        // No file, or another version's: written over at the next measuring.
        Ok(_) => (Vec::new(), None),
        Err(why) => (Vec::new(), Some(set_aside(folder, &why))),
    }
}

fn kept(path: &Path) -> Result<Kept, String> {
    let bytes = match files::read(path, MAX_BYTES) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Kept::default()),
        read => read.map_err(|error| error.to_string())?,
    };
    serde_json::from_slice(&bytes).map_err(|error| error.to_string())
}

fn set_aside(folder: &Path, why: &str) -> String {
    let path = folder.join(FILE);
    let moved = match files::set_aside(&path, "damaged-") {
        Ok(aside) => format!("it was set aside as {}, and ", aside.display()),
        Err(_) => String::new(),
    };
    let path = path.display();
    format!("{path} cannot be used ({why}); {moved}the device is measured again")
}

/// Where the roofs are.
pub(super) fn file(folder: &Path) -> PathBuf {
    folder.join(FILE)
}

/// Puts an entry on file, in place of one for the same device and driver.
pub(super) fn keep(folder: &Path, entry: CachedRoof) -> Result<(), String> {
    let said = |what: &str, error: &dyn std::fmt::Display| {
        format!("{} {what}: {error}", folder.join(FILE).display())
    };
    fs::create_dir_all(folder).map_err(|error| said("has no folder", &error))?;
    let (mut roofs, _) = read(folder);
    roofs.retain(|it| !it.is(&entry.device, &entry.driver));
    roofs.insert(0, entry);
    roofs.truncate(MAX_ENTRIES);
    let kept = Kept {
        version: VERSION,
        roofs,
    };
    let text =
        serde_json::to_string_pretty(&kept).map_err(|error| said("cannot be made", &error))?;
    let written = files::write(&file(folder), text.as_bytes());
    written.map_err(|error| said("cannot be written", &error))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::Rate;

    fn entry(name: &str, driver: &str, peak: f64) -> CachedRoof {
        let rate = |best: f64| Rate {
            best,
            median: best,
            p25: best,
            p75: best,
            n: 5,
            load: None,
        };
        CachedRoof {
            device: Device {
                kind: "gpu".to_owned(),
                name: name.to_owned(),
            },
            driver: driver.to_owned(),
            tries: 1,
            roof: Roof {
                flops: rate(peak),
                bytes: rate(1e12),
                matrix_cores: None,
                clock: "device".to_owned(),
                date: "2026-01-02".to_owned(),
            },
        }
    }

    #[test]
    fn what_is_kept_is_read_again_by_device_and_driver() {
        let home = tempfile::tempdir().expect("a folder");
        let folder = home.path().join("made");
        assert_eq!(read(&folder), (vec![], None));
        for it in [
            entry("x", "1", 1e12),
            entry("x", "2", 2e12),
            entry("x", "1", 3e12),
        ] {
            keep(&folder, it).expect("kept");
        }
        let (found, notice) = read(&folder);
        assert_eq!(found, [entry("x", "1", 3e12), entry("x", "2", 2e12)]);
        assert_eq!(notice, None);
        assert!(found[0].is(&entry("x", "", 1.0).device, "1"));
        assert!(!found[0].is(&entry("y", "", 1.0).device, "1"));
    }

    #[test]
    fn impossible_numbers_and_other_versions_are_not_used() {
        let home = tempfile::tempdir().expect("a folder");
        for peak in [1e18, 0.0, f64::NAN] {
            let text = serde_json::json!({"version": VERSION, "roofs": [entry("x", "1", peak)]});
            fs::write(home.path().join(FILE), text.to_string()).expect("written");
            assert!(read(home.path()).0.is_empty(), "{peak}");
        }
        let text = serde_json::json!({"version": VERSION + 1, "roofs": [entry("x", "1", 1e12)]});
        fs::write(home.path().join(FILE), text.to_string()).expect("written");
        assert_eq!(read(home.path()), (vec![], None));
    }

    #[test]
    #[cfg(unix)]
    fn a_pipe_in_the_place_of_the_file_holds_nothing_up() {
        use rustix::fs::{CWD, Mode, mkfifoat};
        let home = tempfile::tempdir().expect("a folder");
        mkfifoat(CWD, home.path().join(FILE), Mode::RUSR | Mode::WUSR).expect("a pipe");
        let (found, notice) = read(home.path());
        let notice = notice.expect("told");
        assert!(found.is_empty() && notice.contains("is a pipe"), "{notice}");
        keep(home.path(), entry("x", "1", 1e12)).expect("the pipe is set aside");
        assert_eq!(read(home.path()).0.len(), 1);
    }
}
