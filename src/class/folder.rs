//! A room in a shared folder, which needs no server. Each participant writes a small file, `p-ID.json`. Another program of the
//! instructor leaves each order as a file, `order-TIME-WORD.json`. The board reads these files, and writes `room.json`, which everybody
//! reads. Every file is replaced as a whole, so nobody reads half of one.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use serde::Serialize;

use super::link::{ParticipantLink, RoomError};
use super::log::LOG;
use super::record::{ClassState, InstructorRequest, MOST_BYTES, Participant, RecordError};
use super::secrets::random_word;
use super::state::JoinError;
use crate::course::save_file::explain_write_error;
use crate::files;
use crate::sanitize;

/// The file with the state of the class.
const CLASS_FILE: &str = "room.json";
/// The longest file of the class that is read, in bytes.
const MOST_CLASS_BYTES: u64 = 1024 * 1024;
/// The names of participants' files begin with this.
const PARTICIPANT_PREFIX: &str = "p-";
/// The names of the files with orders begin with this.
const ORDER_PREFIX: &str = "order-";
/// The number of threads that read participants' files. On a network file system a thread mostly waits.
const READERS: usize = 32;

/// The modification time and the length of a file. As long as both stay, the file counts as unchanged.
type Stamp = (SystemTime, u64);

/// The record in a participant's file, or the reason why it cannot be read.
pub type RecordFile = Result<Participant, String>;

/// Returns true if there is a room in this folder.
pub fn is_room(dir: &Path) -> bool {
    dir.join(LOG).is_file()
}

/// The folder of a room, for its board or for a participant.
#[derive(Default)]
pub struct RoomFolder {
    dir: PathBuf,
    /// The record that this participant has written last.
    written: Option<Participant>,
    /// The record that an earlier run of this participant's program has left.
    earlier: Option<Participant>,
    /// The stamps of the participants' files when the board read them last, by the name of the file.
    seen: BTreeMap<String, Stamp>,
    /// The state of the class that the board has written last.
    written_class: Option<ClassState>,
    /// The group and the permissions of the folder when `access_changed` read them last.
    access: (u32, u32),
}

impl RoomFolder {
    pub fn new(dir: PathBuf) -> Self {
        Self {
            dir,
            ..Self::default()
        }
    }

    /// Creates the folder unless it exists. Nobody but this user may open a private folder.
    ///
    /// # Errors
    /// If the folder cannot be created.
    pub fn create(&self, private: bool) -> Result<(), String> {
        let mut folders = fs::DirBuilder::new();
        folders.recursive(true);
        #[cfg(unix)]
        if private {
            std::os::unix::fs::DirBuilderExt::mode(&mut folders, 0o700);
        }
        let _ = private;
        folders
            .create(&self.dir)
            .map_err(|error| self.failed(&error))
    }

    /// Checks that the folder has no room of another version of the program.
    ///
    /// # Errors
    /// If it has one; the error names both versions.
    pub fn check_version(&self) -> Result<(), String> {
        match self.class() {
            Err(RoomError::Never(why)) => Err(why),
            _ => Ok(()),
        }
    }

    /// Returns a warning with the commands to type if nobody but this user can write to the folder; `None` if others can.
    pub fn closed_to_others(&self) -> Option<String> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            let mode = fs::metadata(&self.dir).ok()?.mode();
            let dir = self.shown();
            (mode & 0o022 == 0).then(|| {
                format!(
                    "nobody else can write here, so nobody can join: type chgrp GROUP {dir} && chmod 3770 {dir} for a group, \
                     chmod 1777 {dir} for everybody on this system"
                )
            })
        }
        #[cfg(not(unix))]
        None
    }

    /// Reads the file of the class.
    ///
    /// # Errors
    /// `RoomError::Later` if there is no room, or if its file cannot be read now; `RoomError::Never` if the room is of another version.
    pub fn class(&self) -> Result<ClassState, RoomError> {
        let path = self.dir.join(CLASS_FILE);
        let shown = sanitize::line(&path.display().to_string());
        let bytes = files::read(&path, MOST_CLASS_BYTES).map_err(|error| {
            RoomError::Later(match error.kind() {
                io::ErrorKind::NotFound => self.no_room(),
                _ => format!("{shown}: {}", explain_write_error(&error)),
            })
        })?;
        ClassState::read(&bytes).map_err(|fault| {
            let why = format!("{shown} {fault}");
            match fault {
                RecordError::Version(_) => RoomError::Never(why),
                RecordError::Garbage(_) => RoomError::Later(why),
            }
        })
    }

    /// Writes the file of the class if the class has changed since the last call. The file is also written again if the permissions of
    /// the folder have changed, because its own permissions follow from them.
    pub fn write_class(&mut self, class: &ClassState) -> io::Result<()> {
        if self.access_changed() || self.written_class.as_ref() != Some(class) {
            self.write(CLASS_FILE, class)?;
            self.written_class = Some(class.clone());
        }
        Ok(())
    }

    /// Reads the file of the participant with this id. Returns an empty record if there is no readable one.
    fn read_record(&self, id: &str) -> Participant {
        let bytes = files::read(&self.dir.join(file_name(id)), MOST_BYTES as u64);
        match bytes.map(|bytes| Participant::read(&bytes)) {
            Ok(Ok(record)) if record.id == id => record,
            _ => Participant::default(),
        }
    }

    /// Leaves an order for the board.
    pub fn leave_order(&self, order: &InstructorRequest) -> io::Result<()> {
        // Files are read in the order of their names, so the time comes first.
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now_ms = since_1970.map_or(0, |duration| duration.as_millis());
        let word = random_word(8);
        self.write(&format!("{ORDER_PREFIX}{now_ms:015}-{word}.json"), order)
    }

    /// Returns the orders that this user's other programs have left, each with the name of its file, the oldest first.
    pub fn orders(&self) -> Vec<(String, InstructorRequest)> {
        let mut orders = Vec::new();
        for name in self.names(ORDER_PREFIX).unwrap_or_default() {
            if self.is_own(&name)
                && let Ok(bytes) = files::read(&self.dir.join(&name), MOST_BYTES as u64)
                && let Ok(order) = serde_json::from_slice(&bytes)
            {
                orders.push((name, order));
            }
        }
        orders
    }

    /// Removes the files of orders that were carried out.
    pub fn remove_orders(&self, orders: &[(String, InstructorRequest)]) {
        for (name, _) in orders {
            let _ = fs::remove_file(self.dir.join(name));
        }
    }

    /// Returns true if a file belongs to the user of this program. Nobody else may give orders.
    fn is_own(&self, name: &str) -> bool {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            let meta = self.dir.join(name).symlink_metadata();
            meta.is_ok_and(|meta| meta.uid() == rustix::process::geteuid().as_raw())
        }
        #[cfg(not(unix))]
        {
            let _ = name;
            true
        }
    }

    /// Writes a file that the class may read, even if other people may not read this user's files elsewhere.
    fn write(&self, name: &str, value: &impl Serialize) -> io::Result<()> {
        let path = self.dir.join(name);
        files::write(&path, &serde_json::to_vec(value)?)?;
        #[cfg(unix)]
        {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(self.mode_for(&path)?);
            fs::set_permissions(&path, mode)?;
        }
        Ok(())
    }

    /// Returns true if the group or the permissions of the folder have changed since the last call.
    fn access_changed(&mut self) -> bool {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            let meta = fs::metadata(&self.dir);
            let access = meta.map_or((0, 0), |meta| (meta.gid(), meta.mode()));
            std::mem::replace(&mut self.access, access) != access
        }
        #[cfg(not(unix))]
        false
    }

    /// Returns the permissions for a file of this folder. If everybody may write to the folder, everybody may read the file. Otherwise
    /// the file is given to the folder's group, which may read it.
    #[cfg(unix)]
    fn mode_for(&self, path: &Path) -> io::Result<u32> {
        use std::os::unix::fs::{MetadataExt, chown};
        let folder = fs::metadata(&self.dir)?;
        let is_public = folder.mode() & 0o002 != 0;
        let is_for_group = !is_public && chown(path, None, Some(folder.gid())).is_ok();
        Ok(if is_for_group { 0o640 } else { 0o644 })
    }

    /// Returns the sorted names of the JSON files that begin with a prefix.
    fn names(&self, prefix: &str) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name.starts_with(prefix) && name.ends_with(".json") {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Makes the next `read_changed` read every file again. The board calls this if it could not log what it had read.
    pub fn forget(&mut self) {
        self.seen.clear();
    }

    /// Reads the participants' files that have changed since the last call, and returns each with its name.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn read_changed(&mut self) -> Result<Vec<(String, RecordFile)>, String> {
        let names = self
            .names(PARTICIPANT_PREFIX)
            .map_err(|error| self.failed(&error))?;
        self.seen
            .retain(|name, _| names.binary_search(name).is_ok());
        let next = AtomicUsize::new(0);
        let found = Mutex::new(Vec::new());
        let read_next = || {
            while let Some(name) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
                if let Some((stamp, record)) = self.read_if_changed(name)
                    && let Ok(mut found) = found.lock()
                {
                    found.push((name.clone(), stamp, record));
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..names.len().min(READERS) {
                scope.spawn(read_next);
            }
            read_next();
        });
        let mut records = Vec::new();
        for (name, stamp, record) in found.into_inner().unwrap_or_default() {
            self.seen.insert(name.clone(), stamp);
            records.push((name, record));
        }
        Ok(records)
    }

    /// Reads a participant's file; `None` if the file has not changed or does not exist.
    fn read_if_changed(&self, name: &str) -> Option<(Stamp, RecordFile)> {
        let path = self.dir.join(name);
        let meta = fs::metadata(&path).ok()?;
        let stamp = (meta.modified().ok()?, meta.len());
        if self.seen.get(name) == Some(&stamp) {
            return None;
        }
        let record = match files::read(&path, MOST_BYTES as u64) {
            Ok(bytes) => match Participant::read(&bytes) {
                Ok(record) if file_name(&record.id) == name => Ok(record),
                Ok(_) => Err("is the record of another participant".to_owned()),
                Err(fault) => Err(fault.to_string()),
            },
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                Err("may not be read".to_owned())
            }
            Err(error) => Err(sanitize::line(&error.to_string())),
        };
        Some((stamp, record))
    }

    /// Returns true if this file existed when the folder was last read.
    pub fn has(&self, name: &str) -> bool {
        self.seen.contains_key(name)
    }

    /// Returns the error for a folder without a room.
    pub fn no_room(&self) -> String {
        format!("no room is open in {}", self.shown())
    }

    /// Returns an error of the file system as a sentence that begins with this folder.
    pub fn failed(&self, error: &io::Error) -> String {
        format!("{}: {}", self.shown(), explain_write_error(error))
    }

    /// Returns the path of the folder for a message.
    fn shown(&self) -> String {
        sanitize::line(&self.dir.display().to_string())
    }
}

impl ParticipantLink for RoomFolder {
    fn share(&mut self, me: &Participant) -> Result<ClassState, RoomError> {
        // If there is no room, the participant leaves no file in the folder.
        let class = self.class()?;
        if class.removed.contains(&me.id) {
            return Err(RoomError::Never(JoinError::Removed.to_string()));
        }
        if self.written.as_ref() != Some(me) {
            let earlier = self
                .earlier
                .take()
                .unwrap_or_else(|| self.read_record(&me.id));
            let mut record = me.clone();
            record.add_earlier(&earlier);
            self.earlier = Some(earlier);
            self.write(&file_name(&record.id), &record)
                .map_err(|error| RoomError::Later(self.failed(&error)))?;
            self.written = Some(me.clone());
        }
        match class.refused.get(&me.id) {
            Some(why) => Err(RoomError::Later(why.clone())),
            None => Ok(class),
        }
    }
}

fn file_name(id: &str) -> String {
    format!("{PARTICIPANT_PREFIX}{id}.json")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::record::VERSION;

    fn me(digit: char, sequence: u64) -> Participant {
        Participant {
            version: VERSION,
            id: digit.to_string().repeat(32),
            name: "Ana".to_owned(),
            sequence,
            ..Participant::default()
        }
    }

    fn class() -> ClassState {
        ClassState {
            version: VERSION,
            ..ClassState::default()
        }
    }

    #[test]
    fn a_record_goes_through_the_folder() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut learner = RoomFolder::new(dir.path().to_owned());
        let mut folder = RoomFolder::new(dir.path().to_owned());
        let before = learner.share(&me('a', 1)).expect_err("no room yet");
        assert!(
            before.to_string().starts_with("no room is open in"),
            "{before}"
        );
        assert_eq!(fs::read_dir(dir.path()).expect("there").count(), 0);
        folder.write_class(&class()).expect("opened");
        learner.share(&me('a', 1)).expect("shared");
        let found = folder.read_changed().expect("read");
        assert_eq!(found.len(), 1);
        assert_eq!(
            found[0].1.as_ref().map(|record| record.name.as_str()),
            Ok("Ana")
        );
        assert!(
            folder.read_changed().expect("read").is_empty(),
            "nothing new"
        );
        learner.share(&me('a', 22)).expect("shared");
        assert_eq!(folder.read_changed().expect("read").len(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn files_are_read_by_the_group_where_it_suffices() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().expect("a folder");
        let mut folder = RoomFolder::new(dir.path().to_owned());
        // The folder's permissions may change after the room was opened.
        for (folder_mode, file_mode, is_closed) in [
            (0o755, 0o640, true),
            (0o777, 0o644, false),
            (0o1777, 0o644, false),
            (0o2770, 0o640, false),
        ] {
            let permissions = fs::Permissions::from_mode(folder_mode);
            fs::set_permissions(dir.path(), permissions).expect("set");
            folder.write_class(&class()).expect("written");
            folder.share(&me('a', folder_mode.into())).expect("shared");
            for file in fs::read_dir(dir.path()).expect("there") {
                let metadata = file.and_then(|file| file.metadata()).expect("a file");
                let mode = metadata.permissions().mode() & 0o777;
                assert_eq!(mode, file_mode, "in a folder of {folder_mode:o}");
            }
            let warning = folder.closed_to_others().unwrap_or_default();
            assert_eq!(warning.contains("chmod 3770"), is_closed);
        }
        let inside = dir.path().join("rooms/today");
        RoomFolder::new(inside.clone()).create(true).expect("made");
        let mode = fs::metadata(inside).expect("made").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn orders_are_left_for_the_board_and_read_in_their_order() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = RoomFolder::new(dir.path().to_owned());
        let given = [InstructorRequest::CloseVote, InstructorRequest::LetIn];
        for order in &given {
            folder.leave_order(order).expect("written");
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        let found = folder.orders();
        let orders: Vec<_> = found.iter().map(|(_, order)| order.clone()).collect();
        assert_eq!(orders, given);
        folder.remove_orders(&found);
        assert!(folder.orders().is_empty());
    }

    #[test]
    fn each_bad_file_has_its_reason_and_good_files_are_read() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut folder = RoomFolder::new(dir.path().to_owned());
        folder.write_class(&class()).expect("opened");
        let put =
            |name: &str, text: &[u8]| fs::write(dir.path().join(name), text).expect("written");
        put("p-garbage.json", b"\x1b[2J\xff");
        put("p-huge.json", &vec![b'x'; 10 * 1024 * 1024]);
        put("p-old.json", b"{\"version\":0}");
        put(
            "p-other.json",
            &serde_json::to_vec(&me('b', 1)).expect("plain data"),
        );
        put("notes.txt", b"not ours");
        fs::create_dir(dir.path().join("p-folder.json")).expect("made");
        RoomFolder::new(dir.path().to_owned())
            .share(&me('a', 1))
            .expect("shared");
        let mut found = folder.read_changed().expect("read");
        found.sort_by(|a, b| a.0.cmp(&b.0));
        let names_and_reasons: Vec<&str> = found
            .iter()
            .map(|(_, record)| match record {
                Ok(record) => record.name.as_str(),
                Err(why) => why,
            })
            .collect();
        let expected = [
            "Ana",
            "is a folder",
            "is not a participant's record",
            "limit",
            "another version",
            "another participant",
        ];
        assert_eq!(names_and_reasons.len(), expected.len());
        for (text, part) in names_and_reasons.iter().zip(expected) {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn another_version_and_a_folder_that_cannot_be_made_are_one_line() {
        let dir = tempfile::tempdir().expect("a folder");
        fs::write(dir.path().join(CLASS_FILE), "{\"version\":99}").expect("written");
        let mut folder = RoomFolder::new(dir.path().to_owned());
        let refused = folder.share(&me('a', 1)).expect_err("another version");
        assert!(
            matches!(&refused, RoomError::Never(why) if why.contains("another version")),
            "{refused}"
        );
        assert!(folder.check_version().is_err());
        let inside = RoomFolder::new(dir.path().join(CLASS_FILE).join("x"));
        assert!(inside.create(false).is_err());
    }
}
