//! Notices saved files by looking at their dates: that works on every file system and with every way of saving.
//! A file counts as saved when two looks in a row find it the same.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// Between two looks.
const EVERY: Duration = Duration::from_millis(200);

type Stamp = Option<(SystemTime, u64)>;

#[derive(Debug)]
struct Watched {
    path: PathBuf,
    told: Stamp,
    seen: Stamp,
}

/// A few files that are looked at.
#[derive(Debug)]
pub struct Watch {
    files: Vec<Watched>,
    looked: Instant,
}

impl Watch {
    /// Looks at these files from now on; what they hold now is known.
    pub fn new(paths: Vec<PathBuf>) -> Self {
        let known = |path: PathBuf| {
            let now = stamp(&path);
            Watched {
                path,
                told: now,
                seen: now,
            }
        };
        Self {
            files: paths.into_iter().map(known).collect(),
            looked: Instant::now(),
        }
    }

    /// A file that was saved since the last call, if it is time to look.
    pub fn saved(&mut self) -> Option<PathBuf> {
        if self.looked.elapsed() < EVERY {
            return None;
        }
        self.looked = Instant::now();
        self.look()
    }

    fn look(&mut self) -> Option<PathBuf> {
        let mut found = None;
        for file in &mut self.files {
            let now = stamp(&file.path);
            // A file that is gone may be on its way back: editors save by renaming.
            if now.is_some() && now == file.seen && now != file.told && found.is_none() {
                file.told = now;
                found = Some(file.path.clone());
            }
            file.seen = now;
        }
        found
    }

    /// The file changed by our own hand.
    pub fn acknowledge(&mut self, path: &Path) {
        for file in self.files.iter_mut().filter(|file| file.path == path) {
            let now = stamp(path);
            (file.told, file.seen) = (now, now);
        }
    }
}

fn stamp(path: &Path) -> Stamp {
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.modified().ok()?, meta.len()))
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
}
