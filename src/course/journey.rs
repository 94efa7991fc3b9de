//! Saves the table that `perflings run all` prints, in the course's state folder. The ending of the course shows it again.

use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::course::config_file::read_text;
use crate::course::workspace::write;

const FILE: &str = "last-journey.json";
const MAX_BYTES: u64 = 1024 * 1024;

/// The table, and the device and settings of its measurement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastJourney {
    pub device: String,
    pub preset: String,
    /// The date of the measurement, `YYYY-MM-DD` in UTC.
    pub date: String,
    /// True if the measurement was interrupted before it was complete.
    pub interrupted: bool,
    /// The heads of the columns.
    pub head: Vec<String>,
    pub rows: Vec<JourneyRow>,
    /// The number of whole days since the table was written.
    #[serde(skip)]
    pub days: u64,
}

/// A row of the table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JourneyRow {
    /// The number of the stage; 0 for a baseline.
    pub stage: u32,
    pub cells: Vec<String>,
}

/// Saves a table, and returns true if it was saved. An interrupted measurement does not replace an earlier table.
///
/// # Errors
/// If the folder or the file cannot be written.
pub fn save(dir: &Path, journey: &LastJourney) -> Result<bool> {
    let path = dir.join(FILE);
    if journey.rows.is_empty() || journey.interrupted && path.exists() {
        return Ok(false);
    }
    write(&path, serde_json::to_string(journey)?)
        .with_context(|| format!("{}: the table is not kept", path.display()))?;
    Ok(true)
}

/// Loads the saved table; `None` if there is none.
///
/// # Errors
/// If the file cannot be read, or is not such a table.
pub fn load(dir: &Path) -> Result<Option<LastJourney>> {
    let path = dir.join(FILE);
    let Ok(file) = path.metadata() else {
        return Ok(None);
    };
    let mut journey: LastJourney = serde_json::from_str(&read_text(&path, MAX_BYTES)?)
        .with_context(|| format!("{}: not a table; remove the file", path.display()))?;
    let age = file.modified().ok().and_then(|time| time.elapsed().ok());
    journey.days = age.map_or(0, |age| age.as_secs() / 86_400);
    Ok(Some(journey))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_whole_table_is_kept() {
        let dir = tempfile::tempdir().expect("a folder");
        assert_eq!(load(dir.path()).expect("none yet"), None);
        let whole = LastJourney {
            device: "cpu".to_owned(),
            head: vec!["stage".to_owned()],
            rows: vec![JourneyRow {
                stage: 0,
                cells: vec!["v1".to_owned()],
            }],
            ..LastJourney::default()
        };
        assert!(save(dir.path(), &whole).expect("written"));
        let part = LastJourney {
            interrupted: true,
            ..whole.clone()
        };
        let nothing = LastJourney::default();
        for other in [part, nothing] {
            assert!(!save(dir.path(), &other).expect("left out"));
        }
        assert_eq!(load(dir.path()).expect("read"), Some(whole));
        std::fs::write(dir.path().join(FILE), "{").expect("written");
        let error = load(dir.path()).expect_err("damaged");
        assert!(format!("{error:#}").contains("remove the file"));
    }
}
