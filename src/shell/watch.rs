//! Notices saved files by looking at their dates seven times a second. A few files cost some microseconds that way, and it works on
//! network and container file systems, too, which do not notify of changes.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// How long a file must stay unchanged to count as saved; also the time between two looks.
const INTERVAL: Duration = Duration::from_millis(150);

/// When it was written, how long it is, and which file it is: an editor's new file may have the old one's date.
type Stamp = Option<(SystemTime, u64, u64)>;

#[derive(Debug)]
struct WatchedFile {
    path: PathBuf,
    reported: Stamp,
    seen: Stamp,
}

/// A few files that are watched.
#[derive(Debug)]
pub(super) struct FileWatch {
    files: Vec<WatchedFile>,
    polled_at: Instant,
}

impl FileWatch {
    /// Watches these files from now on; what they hold now is known.
    pub(super) fn new(paths: Vec<PathBuf>) -> Self {
        let watched = |path: PathBuf| {
            let now = stamp(&path);
            WatchedFile {
                path,
                reported: now,
                seen: now,
            }
        };
        Self {
            files: paths.into_iter().map(watched).collect(),
            polled_at: Instant::now(),
        }
    }

    /// A file that was saved since the last call, if it is time to look.
    pub(super) fn saved(&mut self) -> Option<PathBuf> {
        if self.polled_at.elapsed() < INTERVAL {
            return None;
        }
        self.polled_at = Instant::now();
        self.poll()
    }

    fn poll(&mut self) -> Option<PathBuf> {
        let mut found = None;
        for file in &mut self.files {
            let now = stamp(&file.path);
            // A file that is gone may be on its way back: editors save by renaming.
            let settled = now.is_some() && now == file.seen && now != file.reported;
            if settled && found.is_none() {
                file.reported = now;
                found = Some(file.path.clone());
            }
            file.seen = now;
        }
        found
    }

    /// We changed the file ourselves: that is not reported.
    pub(super) fn acknowledge(&mut self, path: &Path) {
        for file in self.files.iter_mut().filter(|file| file.path == path) {
            let now = stamp(path);
            (file.reported, file.seen) = (now, now);
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
        assert_eq!(watch.poll(), None, "said once");
        std::fs::remove_file(&path).expect("removed");
        assert_eq!((watch.poll(), watch.poll()), (None, None));
        std::fs::write(&path, "by rename").expect("written");
        watch.acknowledge(&path);
        assert_eq!((watch.poll(), watch.poll()), (None, None));
    }
}
