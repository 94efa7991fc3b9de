//! The open exercise outside the screen: the learner's files, and the process that checks them.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, anyhow};

use crate::app::Message;
use crate::app::exercise::ExerciseNews;
use crate::cli::shelf::Shelf;
use crate::course::exercise::{Exercise, Kernels};
use crate::course::progress;
use crate::engine::client::EngineCommand;
use crate::engine::kernel::checker::Checker;
use crate::engine::kernel::{job, source};

/// Lines of the checking process that are taken in before the screen has its turn.
const AT_ONCE: usize = 256;

/// At most one exercise is open.
pub struct Desk {
    checker: Checker,
    open: Option<Open>,
    news: VecDeque<Message>,
}

struct Open {
    id: String,
    device: String,
    /// Where the learner's files may be; the first one is where they are made.
    folders: Vec<PathBuf>,
    /// Where they are: the folder in which something was saved last.
    folder: PathBuf,
    files: Vec<String>,
}

impl Desk {
    pub fn new(command: EngineCommand) -> Self {
        Self {
            checker: Checker::new(command),
            open: None,
            news: VecDeque::new(),
        }
    }

    /// Makes the learner's files where there are none, and begins a check of what they hold.
    pub fn open(&mut self, shelf: &Shelf, id: &str, device: &str) -> Result<()> {
        let (exercise, kernels) = kernels(shelf, id)?;
        let work = shelf.workspace()?;
        for kernel in &kernels.kernels {
            work.open_file(id, &kernel.file)?;
        }
        let folder = work.folder(id);
        let mut folders = vec![folder.clone()];
        folders.extend(shelf.copy_of(exercise));
        // Where something was written already, if that is not here.
        let edited = |folder: &&PathBuf| {
            kernels.kernels.iter().any(|kernel| {
                let path = folder.join(&kernel.file.name);
                let same = source::read(&path).is_ok_and(|text| text == kernel.file.starter);
                path.is_file() && !same
            })
        };
        let folder = folders.iter().find(edited).cloned().unwrap_or(folder);
        let files = kernels.kernels.iter();
        self.open = Some(Open {
            id: id.to_owned(),
            device: device.to_owned(),
            folders,
            folder,
            files: files.map(|kernel| kernel.file.name.clone()).collect(),
        });
        self.say_files();
        self.check(shelf)
    }

    /// Gives a check in progress up; its process ends.
    pub fn leave(&mut self) {
        self.open = None;
        self.checker.end();
    }

    /// Puts the starters back, and begins anew.
    pub fn reset(&mut self, shelf: &Shelf, id: &str, device: &str) -> Result<String> {
        let (exercise, kernels) = kernels(shelf, id)?;
        let files = kernels.kernels.iter().map(|kernel| &kernel.file);
        let mut kept = Vec::new();
        for folder in shelf
            .copy_of(exercise)
            .into_iter()
            .chain([shelf.workspace()?.folder(id)])
        {
            for file in files.clone() {
                kept.extend(crate::cli::workspace::restore(
                    &folder.join(&file.name),
                    &file.starter,
                )?);
            }
        }
        if let Some(state) = &shelf.state {
            progress::reset_stage(state, id)?;
        }
        self.open(shelf, id, device)?;
        Ok(match kept.first().and_then(|path| path.file_name()) {
            None => "The exercise is as it began".to_owned(),
            Some(name) => format!(
                "The exercise is as it began; your file is kept beside it as {}",
                name.to_string_lossy()
            ),
        })
    }

    /// Files that concern the open exercise.
    pub fn watched(&self) -> Vec<PathBuf> {
        let Some(open) = &self.open else {
            return Vec::new();
        };
        let in_folder = |folder: &PathBuf| {
            let files = open.files.iter().map(|name| folder.join(name));
            files.collect::<Vec<_>>()
        };
        open.folders.iter().flat_map(in_folder).collect()
    }

    /// Where a file of the open exercise is.
    pub fn path(&self, id: &str, file: &str) -> Option<PathBuf> {
        let open = self.open.as_ref().filter(|open| open.id == id)?;
        let known = open.files.iter().any(|name| name == file);
        known.then(|| open.folder.join(file))
    }

    /// One of them was saved: begins a check. Says whether it is one of them.
    pub fn saved(&mut self, shelf: &Shelf, path: &Path) -> bool {
        let Some(open) = &mut self.open else {
            return false;
        };
        let Some(folder) = path
            .parent()
            .filter(|folder| open.folders.iter().any(|known| known == folder))
        else {
            return false;
        };
        if open.folder != folder {
            open.folder = folder.to_owned();
            self.say_files();
        }
        if let Err(error) = self.check(shelf) {
            self.news.push_back(Message::Told {
                text: format!("{error:#}"),
                warning: true,
            });
        }
        true
    }

    /// What happened since the last call, one after the other.
    pub fn next_message(&mut self) -> Option<Message> {
        if let Some(message) = self.news.pop_front() {
            return Some(message);
        }
        let id = self.open.as_ref()?.id.clone();
        let mut report = None;
        for _ in 0..AT_ONCE {
            if !self.checker.is_busy() || report.is_some() {
                break;
            }
            report = self.checker.poll(Duration::ZERO);
        }
        let news = match (report, self.checker.news()) {
            (Some(report), _) => ExerciseNews::Checked(Box::new(report)),
            (None, Some(progress)) => ExerciseNews::Progress(Box::new(progress)),
            (None, None) => return None,
        };
        Some(Message::Exercise { exercise: id, news })
    }

    fn say_files(&mut self) {
        if let Some(open) = &self.open {
            let paths = open.files.iter().map(|name| open.folder.join(name));
            let files = paths.map(|path| short(&path)).collect();
            self.tell(ExerciseNews::Files(files));
        }
    }

    fn tell(&mut self, news: ExerciseNews) {
        if let Some(open) = &self.open {
            self.news.push_back(Message::Exercise {
                exercise: open.id.clone(),
                news,
            });
        }
    }

    fn check(&mut self, shelf: &Shelf) -> Result<()> {
        let Some(open) = &self.open else {
            return Ok(());
        };
        let (exercise, kernels) = kernels(shelf, &open.id)?;
        let job = in_folder(exercise, kernels, &open.folder)?;
        let device = open.device.clone();
        self.checker.start(&device, job);
        self.tell(ExerciseNews::Begun);
        Ok(())
    }
}

/// A path as a learner would type it.
fn short(path: &Path) -> String {
    let home = directories::BaseDirs::new().map(|dirs| dirs.home_dir().to_owned());
    let below = home.and_then(|home| path.strip_prefix(home).ok().map(Path::to_owned));
    match below {
        Some(below) => format!("~/{}", below.display()),
        None => path.display().to_string(),
    }
}

/// The job for the files in a folder; the starter stands for one that is not there.
pub fn in_folder(
    exercise: &Exercise,
    kernels: &Kernels,
    folder: &Path,
) -> Result<crate::protocol::KernelJob> {
    let read = |name: &str| {
        let path = folder.join(name);
        let there = path.symlink_metadata().is_ok();
        let starter = kernels.kernels.iter().find(|it| it.file.name == name);
        match starter {
            Some(kernel) if !there => source::text(kernel.file.starter.clone().into_bytes()),
            _ => source::read(&path),
        }
    };
    job::job(exercise, kernels, read).map_err(|why| anyhow!("{}: {why}", exercise.path))
}

fn kernels<'a>(shelf: &'a Shelf, id: &str) -> Result<(&'a Exercise, &'a Kernels)> {
    let found = shelf.course.exercises.iter().find(|it| it.id == id);
    let exercise = found.ok_or_else(|| anyhow!("there is no exercise `{}`", id.escape_debug()))?;
    let kernels = exercise
        .kernels()
        .ok_or_else(|| anyhow!("{} has no kernel to check", exercise.label()))?;
    Ok((exercise, kernels))
}
