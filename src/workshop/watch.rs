//! Notices saved files. The system notifies us when something in their folders changed; the files' dates then say which file it
//! was, and when writing has ended. Network and container file systems do not notify: slow polling in between finds that out,
//! and from then on the files are polled.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use notify::{RecommendedWatcher, RecursiveMode, Watcher};

/// How long a file must stay unchanged to count as saved; also the time between two polls.
const REST: Duration = Duration::from_millis(150);
/// The time between two polls while the system notifies.
const SELDOM: Duration = Duration::from_millis(700);
/// How late a notification of a change may be that polling has found.
const LATE: Duration = Duration::from_millis(1500);

/// When it was written, how long it is, and which file it is: an editor's new file may have the old one's date.
type Stamp = Option<(SystemTime, u64, u64)>;

#[derive(Debug)]
struct Watched {
    path: PathBuf,
    reported: Stamp,
    seen: Stamp,
    /// The system watches its folder.
    covered: bool,
}

/// A few files that are watched.
#[derive(Debug)]
pub struct Watch {
    files: Vec<Watched>,
    polled_at: Instant,
    /// Something changed and may still be written to.
    unsettled: bool,
    /// The system notified us since the last poll.
    notified: Arc<AtomicBool>,
    last_notified: Option<Instant>,
    watcher: Option<RecommendedWatcher>,
    /// When polling found a change without a notification.
    missed_since: Option<Instant>,
    /// Why files are only polled, and whether the learner was told.
    polling: Option<(String, bool)>,
}

impl Watch {
    /// Watches these files from now on; what they hold now is known.
    pub fn new(paths: Vec<PathBuf>) -> Self {
        let notified = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&notified);
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // Reading a file does not change it, and we read it.
            if !event.is_ok_and(|event| event.kind.is_access()) {
                flag.store(true, Ordering::Release);
            }
        });
        let (watcher, polling) = match watcher {
            Ok(watcher) => (Some(watcher), None),
            Err(error) => {
                let why = format!("the system cannot watch files ({error})");
                (None, Some((polling_because(&why), false)))
            }
        };
        let mut it = Self {
            files: Vec::new(),
            polled_at: Instant::now(),
            unsettled: false,
            notified,
            last_notified: None,
            watcher,
            missed_since: None,
            polling,
        };
        it.files = paths
            .into_iter()
            .map(|path| {
                let now = stamp(&path);
                Watched {
                    path,
                    reported: now,
                    seen: now,
                    covered: false,
                }
            })
            .collect();
        it.cover();
        it
    }

    /// Other files from now on; it is known already where the system does not notify.
    pub fn instead(&self, paths: Vec<PathBuf>) -> Self {
        let mut it = Self::new(paths);
        if let Some(polling) = &self.polling {
            (it.polling, it.watcher) = (Some(polling.clone()), None);
        }
        it
    }

    /// Once: why files are polled instead of watched.
    pub fn polling(&mut self) -> Option<String> {
        let (why, said) = self.polling.as_mut()?;
        (!std::mem::replace(said, true)).then(|| why.clone())
    }

    /// A file that was saved since the last call, if it is time to poll.
    pub fn saved(&mut self) -> Option<PathBuf> {
        if self.notified.swap(false, Ordering::AcqRel) {
            (self.unsettled, self.missed_since) = (true, None);
            self.last_notified = Some(Instant::now());
        }
        let every = if self.unsettled || self.polling.is_some() {
            REST
        } else {
            SELDOM
        };
        if self.polled_at.elapsed() < every {
            return None;
        }
        self.polled_at = Instant::now();
        self.cover();
        let found = self.poll();
        self.notice_silence();
        found
    }

    fn poll(&mut self) -> Option<PathBuf> {
        let mut found = None;
        self.unsettled = false;
        let notified = self.last_notified.is_some_and(|at| at.elapsed() < LATE);
        for file in &mut self.files {
            let now = stamp(&file.path);
            // A file that is gone may be on its way back: editors save by renaming.
            if now.is_some() && now == file.seen && now != file.reported {
                if found.is_some() {
                    self.unsettled = true;
                    continue;
                }
                file.reported = now;
                found = Some(file.path.clone());
            }
            if now != file.seen {
                self.unsettled = true;
                if file.covered && !notified && self.missed_since.is_none() {
                    self.missed_since = Some(Instant::now());
                }
            }
            file.seen = now;
        }
        found
    }

    /// A change without a notification in time: there will be none.
    fn notice_silence(&mut self) {
        let late = self
            .missed_since
            .is_some_and(|since| since.elapsed() > LATE);
        if late && self.polling.is_none() {
            self.polling = Some((
                polling_because("this file system does not notify of changes"),
                false,
            ));
            self.watcher = None;
        }
        self.unsettled |= self.missed_since.is_some() && self.polling.is_none();
    }

    /// Asks the system to watch the folders that are there now.
    fn cover(&mut self) {
        let Some(watcher) = &mut self.watcher else {
            return;
        };
        for at in 0..self.files.len() {
            if self.files[at].covered {
                continue;
            }
            let Some(folder) = self.files[at].path.parent().map(Path::to_owned) else {
                continue;
            };
            if !folder.is_dir() {
                continue;
            }
            match watcher.watch(&folder, RecursiveMode::NonRecursive) {
                Ok(()) => {
                    let beside = |file: &&mut Watched| file.path.parent() == Some(&folder);
                    self.files
                        .iter_mut()
                        .filter(beside)
                        .for_each(|file| file.covered = true);
                }
                Err(error) => {
                    let why = format!("{} cannot be watched ({error})", folder.display());
                    self.polling.get_or_insert((polling_because(&why), false));
                }
            }
        }
    }

    /// We changed the file ourselves: that is not reported.
    pub fn acknowledge(&mut self, path: &Path) {
        for file in self.files.iter_mut().filter(|file| file.path == path) {
            let now = stamp(path);
            (file.reported, file.seen) = (now, now);
        }
    }
}

fn polling_because(why: &str) -> String {
    format!("Files are checked for changes seven times a second: {why}")
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
        let path = dir.path().join("config.toml");
        let mut watch = Watch::new(vec![path.clone()]);
        assert_eq!(watch.poll(), None);
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

    /// Waits for what will come, however slow the machine is.
    fn wait(watch: &mut Watch) -> PathBuf {
        loop {
            if let Some(path) = watch.saved() {
                return path;
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_file_renamed_into_place_counts_and_the_system_notifies() {
        let dir = tempfile::tempdir().expect("a folder");
        let [path, new] = ["kernel.wgsl", "kernel.wgsl~"].map(|name| dir.path().join(name));
        std::fs::write(&path, "old").expect("written");
        let mut watch = Watch::new(vec![path.clone()]);
        assert!(watch.watcher.is_some() && watch.files[0].covered);
        std::fs::write(&new, "new").expect("written");
        std::fs::rename(&new, &path).expect("renamed");
        assert_eq!(wait(&mut watch), path);
        assert_eq!(watch.polling(), None, "events came");
    }

    #[test]
    fn a_folder_made_later_is_watched_too() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("later/config.toml");
        let mut watch = Watch::new(vec![path.clone()]);
        assert!(!watch.files[0].covered);
        std::fs::create_dir(dir.path().join("later")).expect("made");
        std::fs::write(&path, "text").expect("written");
        assert_eq!(wait(&mut watch), path);
        assert!(watch.files[0].covered);
        assert_eq!(watch.polling(), None);
    }

    #[test]
    fn a_system_that_does_not_notify_is_detected_and_named() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("config.toml");
        std::fs::write(&path, "old").expect("written");
        let mut watch = Watch::new(vec![path.clone()]);
        // As on a network file system: the folder counts as watched, and no event ever comes.
        watch.notified = Arc::default();
        watch.watcher = None;
        watch.files[0].covered = true;
        std::fs::write(&path, "new text").expect("written");
        assert_eq!(wait(&mut watch), path, "slow polling finds it");
        let said = loop {
            watch.saved();
            if let Some(said) = watch.polling() {
                break said;
            }
        };
        assert!(said.contains("does not notify of changes"), "{said}");
        assert_eq!(watch.polling(), None, "said once");
        std::fs::write(&path, "and again").expect("written");
        assert_eq!(wait(&mut watch), path);
    }
}
