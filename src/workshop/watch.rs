//! Notices saved files. The system tells when something in their folders changed; a look at the files' dates says
//! what, and that they have come to rest. Where the system stays silent, as on network and container file systems, a
//! slow look in between finds out, and from then on looking is all there is.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use notify::{RecommendedWatcher, RecursiveMode, Watcher};

/// How long a file has to be at rest; also the time between two looks where the system does not tell.
const REST: Duration = Duration::from_millis(150);
/// Between two looks without a word from the system.
const SELDOM: Duration = Duration::from_millis(700);
/// How long the system may take to tell of a change that a look has found.
const LATE: Duration = Duration::from_millis(1500);

/// When it was written, how long it is, and which file it is: an editor's new file may have the old one's date.
type Stamp = Option<(SystemTime, u64, u64)>;

#[derive(Debug)]
struct Watched {
    path: PathBuf,
    told: Stamp,
    seen: Stamp,
    /// The system watches its folder.
    covered: bool,
}

/// A few files that are watched.
#[derive(Debug)]
pub struct Watch {
    files: Vec<Watched>,
    looked: Instant,
    /// Something changed and may not have come to rest.
    stirring: bool,
    /// The system said so since the last look.
    told: Arc<AtomicBool>,
    last_told: Option<Instant>,
    watcher: Option<RecommendedWatcher>,
    /// A change that the system has not told of, since then.
    untold: Option<Instant>,
    /// Why files are looked at all the time, and whether that was said.
    looking: Option<(String, bool)>,
}

impl Watch {
    /// Watches these files from now on; what they hold now is known.
    pub fn new(paths: Vec<PathBuf>) -> Self {
        let told = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&told);
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // Being read is no change, and we read.
            if !event.is_ok_and(|event| event.kind.is_access()) {
                flag.store(true, Ordering::Release);
            }
        });
        let (watcher, looking) = match watcher {
            Ok(watcher) => (Some(watcher), None),
            Err(error) => {
                let why = format!("the system cannot watch files ({error})");
                (None, Some((said(&why), false)))
            }
        };
        let mut it = Self {
            files: Vec::new(),
            looked: Instant::now(),
            stirring: false,
            told,
            last_told: None,
            watcher,
            untold: None,
            looking,
        };
        it.files = paths
            .into_iter()
            .map(|path| {
                let now = stamp(&path);
                Watched {
                    path,
                    told: now,
                    seen: now,
                    covered: false,
                }
            })
            .collect();
        it.cover();
        it
    }

    /// Other files from now on; that the system does not tell is known already.
    pub fn instead(&self, paths: Vec<PathBuf>) -> Self {
        let mut it = Self::new(paths);
        if let Some(looking) = &self.looking {
            (it.looking, it.watcher) = (Some(looking.clone()), None);
        }
        it
    }

    /// Once: why files are looked at all the time instead of watched.
    pub fn looking(&mut self) -> Option<String> {
        let (why, said) = self.looking.as_mut()?;
        (!std::mem::replace(said, true)).then(|| why.clone())
    }

    /// A file that was saved since the last call, if it is time to look.
    pub fn saved(&mut self) -> Option<PathBuf> {
        if self.told.swap(false, Ordering::AcqRel) {
            (self.stirring, self.untold) = (true, None);
            self.last_told = Some(Instant::now());
        }
        let every = if self.stirring || self.looking.is_some() {
            REST
        } else {
            SELDOM
        };
        if self.looked.elapsed() < every {
            return None;
        }
        self.looked = Instant::now();
        self.cover();
        let found = self.look();
        self.listen();
        found
    }

    fn look(&mut self) -> Option<PathBuf> {
        let mut found = None;
        self.stirring = false;
        let told = self.last_told.is_some_and(|at| at.elapsed() < LATE);
        for file in &mut self.files {
            let now = stamp(&file.path);
            // A file that is gone may be on its way back: editors save by renaming.
            if now.is_some() && now == file.seen && now != file.told {
                if found.is_some() {
                    self.stirring = true;
                    continue;
                }
                file.told = now;
                found = Some(file.path.clone());
            }
            if now != file.seen {
                self.stirring = true;
                if file.covered && !told && self.untold.is_none() {
                    self.untold = Some(Instant::now());
                }
            }
            file.seen = now;
        }
        found
    }

    /// A change that nobody told of in time: nobody will.
    fn listen(&mut self) {
        let late = self.untold.is_some_and(|since| since.elapsed() > LATE);
        if late && self.looking.is_none() {
            self.looking = Some((said("this file system does not tell of changes"), false));
            self.watcher = None;
        }
        self.stirring |= self.untold.is_some() && self.looking.is_none();
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
                    self.looking.get_or_insert((said(&why), false));
                }
            }
        }
    }

    /// The file changed by our own hand.
    pub fn acknowledge(&mut self, path: &Path) {
        for file in self.files.iter_mut().filter(|file| file.path == path) {
            let now = stamp(path);
            (file.told, file.seen) = (now, now);
        }
    }
}

fn said(why: &str) -> String {
    format!("Saved files are looked for seven times a second: {why}")
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
    fn a_file_is_saved_when_it_has_come_to_rest() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("config.toml");
        let mut watch = Watch::new(vec![path.clone()]);
        assert_eq!(watch.look(), None);
        std::fs::write(&path, "half").expect("written");
        assert_eq!(watch.look(), None, "just changed");
        std::fs::write(&path, "the whole of it").expect("written");
        assert_eq!(watch.look(), None, "changed again");
        assert_eq!(watch.look(), Some(path.clone()));
        assert_eq!(watch.look(), None, "said once");
        std::fs::remove_file(&path).expect("removed");
        assert_eq!((watch.look(), watch.look()), (None, None));
        std::fs::write(&path, "by rename").expect("written");
        watch.acknowledge(&path);
        assert_eq!((watch.look(), watch.look()), (None, None));
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
    fn a_file_put_in_place_by_a_rename_counts_and_the_system_tells() {
        let dir = tempfile::tempdir().expect("a folder");
        let [path, new] = ["kernel.wgsl", "kernel.wgsl~"].map(|name| dir.path().join(name));
        std::fs::write(&path, "old").expect("written");
        let mut watch = Watch::new(vec![path.clone()]);
        assert!(watch.watcher.is_some() && watch.files[0].covered);
        std::fs::write(&new, "new").expect("written");
        std::fs::rename(&new, &path).expect("renamed");
        assert_eq!(wait(&mut watch), path);
        assert_eq!(watch.looking(), None, "events came");
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
        assert_eq!(watch.looking(), None);
    }

    #[test]
    fn a_system_that_does_not_tell_is_found_out_and_named() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("config.toml");
        std::fs::write(&path, "old").expect("written");
        let mut watch = Watch::new(vec![path.clone()]);
        // As on a network file system: the folder counts as watched, and no event ever comes.
        watch.told = Arc::default();
        watch.watcher = None;
        watch.files[0].covered = true;
        std::fs::write(&path, "new text").expect("written");
        assert_eq!(wait(&mut watch), path, "the slow look finds it");
        let said = loop {
            watch.saved();
            if let Some(said) = watch.looking() {
                break said;
            }
        };
        assert!(said.contains("does not tell of changes"), "{said}");
        assert_eq!(watch.looking(), None, "said once");
        std::fs::write(&path, "and again").expect("written");
        assert_eq!(wait(&mut watch), path);
    }
}
