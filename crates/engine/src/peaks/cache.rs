//! The file of measured peaks. Everything read from it is checked. A damaged file is set aside, and the device is measured again. The file is
//! always written as a whole.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use protocol::stats::roofline;
use protocol::{Device, Peaks, files};

const FILE: &str = "roofs.json";
/// The version of the file. It changes when peaks are measured in another way, so that older entries are measured again.
const VERSION: u32 = 3;
/// The largest file in bytes; a larger one is damaged.
const MAX_BYTES: u64 = 1 << 20;
/// The largest number of entries in the file. The oldest ones are dropped.
const MAX_ENTRIES: usize = 64;

/// The peaks of a device under a driver.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct CachedPeaks {
    pub device: Device,
    pub driver: String,
    #[serde(rename = "roof")]
    pub peaks: Peaks,
    /// The number of times that the device was measured.
    pub tries: u32,
}

impl CachedPeaks {
    /// Returns true if the peaks belong to this device under this driver.
    pub(super) fn is_for(&self, device: &Device, driver: &str) -> bool {
        self.device == *device && self.driver == driver
    }
}

/// The content of the file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct PeaksFile {
    version: u32,
    #[serde(rename = "roofs")]
    entries: Vec<CachedPeaks>,
}

/// Returns the entries of the file, without those with impossible numbers. If the file is damaged, sets it aside and returns a sentence about it.
pub(super) fn read(folder: &Path) -> (Vec<CachedPeaks>, Option<String>) {
    match parse(&file(folder)) {
        Ok(PeaksFile { version, entries }) if version == VERSION => {
            let plausible = |entry: &CachedPeaks| roofline::plausible(&entry.peaks).is_ok();
            (entries.into_iter().filter(plausible).collect(), None)
        }
        // A missing file, or one of another version, is written over at the next measurement.
        Ok(_) => (Vec::new(), None),
        Err(why) => (Vec::new(), Some(set_aside(folder, &why))),
    }
}

/// Reads the file; a missing one is an empty one.
///
/// # Errors
/// Fails when the file cannot be read, or is damaged.
fn parse(path: &Path) -> Result<PeaksFile, String> {
    let bytes = match files::read(path, MAX_BYTES) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(PeaksFile::default()),
        read => read.map_err(|error| error.to_string())?,
    };
    serde_json::from_slice(&bytes).map_err(|error| error.to_string())
}

/// Sets the damaged file aside, and returns a sentence about it.
fn set_aside(folder: &Path, why: &str) -> String {
    let path = file(folder);
    let moved = match files::set_aside(&path, "damaged-") {
        Ok(aside) => format!("it was set aside as {}, and ", aside.display()),
        Err(_) => String::new(),
    };
    format!(
        "{} cannot be used ({why}); {moved}the device is measured again",
        path.display()
    )
}

/// Returns the path of the file.
pub(super) fn file(folder: &Path) -> PathBuf {
    folder.join(FILE)
}

/// Writes an entry to the file. It replaces the entry of that device and driver.
///
/// # Errors
/// Fails when the file cannot be written, with a sentence that names it.
pub(super) fn keep(folder: &Path, entry: CachedPeaks) -> Result<(), String> {
    let failed = |problem: &str, error: &dyn std::fmt::Display| {
        format!("{} {problem}: {error}", file(folder).display())
    };
    fs::create_dir_all(folder).map_err(|error| failed("has no folder", &error))?;
    let (mut entries, _) = read(folder);
    entries.retain(|kept| !kept.is_for(&entry.device, &entry.driver));
    entries.insert(0, entry);
    entries.truncate(MAX_ENTRIES);
    let content = PeaksFile {
        version: VERSION,
        entries,
    };
    let text =
        serde_json::to_string_pretty(&content).map_err(|error| failed("cannot be made", &error))?;
    files::write(&file(folder), text.as_bytes())
        .map_err(|error| failed("cannot be written", &error))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::Rate;

    fn entry(name: &str, driver: &str, peak: f64) -> CachedPeaks {
        let rate = |best: f64| Rate {
            best,
            median: best,
            p25: best,
            p75: best,
            n: 5,
            load: None,
        };
        CachedPeaks {
            device: Device {
                kind: "gpu".to_owned(),
                name: name.to_owned(),
            },
            driver: driver.to_owned(),
            tries: 1,
            peaks: Peaks {
                flops: rate(peak),
                bytes: rate(1e12),
                matrix_cores: None,
                clock: "device".to_owned(),
                date: "2026-01-02".to_owned(),
            },
        }
    }

    #[test]
    fn kept_peaks_are_read_again_by_device_and_driver() {
        let home = tempfile::tempdir().expect("a folder");
        let folder = home.path().join("made");
        assert_eq!(read(&folder), (vec![], None));
        for entry in [
            entry("x", "1", 1e12),
            entry("x", "2", 2e12),
            entry("x", "1", 3e12),
        ] {
            keep(&folder, entry).expect("kept");
        }
        let (found, notice) = read(&folder);
        assert_eq!(found, [entry("x", "1", 3e12), entry("x", "2", 2e12)]);
        assert_eq!(notice, None);
        assert!(found[0].is_for(&entry("x", "", 1.0).device, "1"));
        assert!(!found[0].is_for(&entry("y", "", 1.0).device, "1"));
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
    fn a_pipe_in_place_of_the_file_is_not_waited_for() {
        use rustix::fs::{CWD, Mode, mkfifoat};
        let home = tempfile::tempdir().expect("a folder");
        mkfifoat(CWD, home.path().join(FILE), Mode::RUSR | Mode::WUSR).expect("a pipe");
        let (found, notice) = read(home.path());
        assert!(found.is_empty());
        assert!(
            notice
                .as_deref()
                .is_some_and(|notice| notice.contains("is a pipe")),
            "{notice:?}"
        );
        keep(home.path(), entry("x", "1", 1e12)).expect("the pipe is set aside");
        assert_eq!(read(home.path()).0.len(), 1);
    }
}
