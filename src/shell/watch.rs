//! Finds out when the learner has saved a file, from the dates of a few files, which are read seven times a second. This costs some
//! microseconds, and it also works on network and container file systems, which do not notify of changes.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// The time between two polls. A file that stays unchanged for this long counts as saved.
const INTERVAL: Duration = Duration::from_millis(150);

/// The date of a file, its length and its inode number, because a file that an editor writes anew may keep the date of the old one. `None`
/// for a missing file.
type Stamp = Option<(SystemTime, u64, u64)>;

#[derive(Debug)]
struct WatchedFile {
    path: PathBuf,
    /// The stamp of the content that was reported last.
    reported: Stamp,
    /// The stamp at the last poll.
    seen: Stamp,
}

/// Watches a few files.
#[derive(Debug)]
pub(super) struct FileWatch {
    files: Vec<WatchedFile>,
    polled_at: Instant,
}

impl FileWatch {
    /// Watches these files from now on. Their present contents are not reported.
    pub(super) fn new(paths: Vec<PathBuf>) -> Self {
        let files = paths.into_iter().map(|path| {
            let now = stamp(&path);
            WatchedFile {
                path,
                reported: now,
                seen: now,
            }
        });
        Self {
            files: files.collect(),
            polled_at: Instant::now(),
        }
    }

    /// Returns a file that was saved since the last call. `None` if there is none, or if the next poll is not due.
    pub(super) fn saved(&mut self) -> Option<PathBuf> {
        if self.polled_at.elapsed() < INTERVAL {
            return None;
        }
        self.polled_at = Instant::now();
        self.poll()
    }

    /// Reads the stamps of all files. Returns the first file with a new content that is complete.
    fn poll(&mut self) -> Option<PathBuf> {
        let mut saved = None;
        for file in &mut self.files {
            let now = stamp(&file.path);
            // A missing file is not reported, because editors save by renaming and it may come back.
            let is_complete = now.is_some() && now == file.seen && now != file.reported;
            if is_complete && saved.is_none() {
                file.reported = now;
                saved = Some(file.path.clone());
            }
            file.seen = now;
        }
        saved
    }

    /// Marks the present contents of a file as known, after this program has written it.
    pub(super) fn acknowledge(&mut self, path: &Path) {
        for file in self.files.iter_mut().filter(|file| file.path == path) {
            let now = stamp(path);
            file.reported = now;
            file.seen = now;
        }
    }
}

fn stamp(path: &Path) -> Stamp {
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.modified().ok()?, meta.len(), number(&meta)))
}

#[cfg(unix)]
fn number(meta: &std::fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(meta)
}

#[cfg(not(unix))]
fn number(_: &std::fs::Metadata) -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_saved_when_writing_has_ended() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("later/config.toml");
        let mut watch = FileWatch::new(vec![path.clone()]);
        assert_eq!(watch.poll(), None);
        std::fs::create_dir(dir.path().join("later")).expect("made");
        std::fs::write(&path, "half").expect("written");
        assert_eq!(watch.poll(), None, "just changed");
        std::fs::write(&path, "the whole of it").expect("written");
        assert_eq!(watch.poll(), None, "changed again");
        assert_eq!(watch.poll(), Some(path.clone()));
        assert_eq!(watch.poll(), None, "reported once");
        std::fs::remove_file(&path).expect("removed");
        assert_eq!((watch.poll(), watch.poll()), (None, None));
        std::fs::write(&path, "by rename").expect("written");
        watch.acknowledge(&path);
        assert_eq!((watch.poll(), watch.poll()), (None, None));
    }
}
