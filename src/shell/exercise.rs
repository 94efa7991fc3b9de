//! The open exercise outside the screen: the learner's files, the process that checks kernels, and the runs of a config
//! exercise.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, anyhow, bail};

use super::{jobs, kernel_file};
use crate::app::Message;
use crate::app::exercise::ExerciseNews;
use crate::app::exercise::measuring::{AnswerFile, Measurement};
use crate::course::config_file::{FileError, MAX_BYTES, read_text};
use crate::course::context::CourseContext;
use crate::course::exercise::config::{ANSWERS, Answers, answers};
use crate::course::exercise::config::{line_of_key, written};
use crate::course::exercise::{Configs, Exercise, Kernels};
use crate::course::workspace;
use crate::files;
use crate::judge::configs as judge;
use crate::lanes::LanesWanted;
use crate::measure::background_job::BackgroundJob;
use crate::measure::kernel_checker::Checker;
use crate::measure::lanes::{self, LanesResult};
use protocol::config::RunConfig;
use protocol::handle::EngineCommand;
use protocol::random;
use protocol::{Command, KernelJob};

/// At most one exercise is open.
pub struct ExerciseRunner {
    /// How engines are started.
    pub(super) command: EngineCommand,
    checker: Arc<Mutex<Checker>>,
    /// A check of kernels, or a measurement of configurations.
    work: Option<BackgroundJob<Message>>,
    /// The kernels of the last check.
    job: KernelJob,
    /// A workgroup that is recorded.
    lanes: Option<BackgroundJob<LanesResult>>,
    /// What the stage trains: a kernel that is to compute for it is checked at its sizes.
    model: Option<RunConfig>,
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

impl ExerciseRunner {
    pub fn new(command: EngineCommand) -> Self {
        Self {
            checker: Arc::new(Mutex::new(Checker::new(command.clone()))),
            command,
            work: None,
            job: KernelJob::default(),
            lanes: None,
            model: None,
            open: None,
            news: VecDeque::new(),
        }
    }

    /// A command goes to the engine. Where it changes the sizes of the model, the open kernel is checked at the new ones.
    pub fn heard(&mut self, context: &CourseContext, command: &Command) -> Result<()> {
        let (Command::Start { run, .. }
        | Command::Apply { run, .. }
        | Command::Pair { b: run, .. }) = command
        else {
            return Ok(());
        };
        let before = self.model.replace(run.config.clone());
        let open = self.open.as_ref().map(|open| open.id.clone());
        let Some(kernels) = open.and_then(|id| known(context, &id).ok()?.kernels()) else {
            return Ok(());
        };
        let checked = at_sizes(kernels, before.as_ref()).shapes;
        if at_sizes(kernels, Some(&run.config)).shapes == checked {
            Ok(())
        } else {
            self.look(context, false)
        }
    }

    /// Makes the learner's files where there are none, and begins a check of what they hold.
    pub fn open(&mut self, context: &CourseContext, id: &str, device: &str) -> Result<()> {
        let exercise = known(context, id)?;
        let work = context.workspace()?;
        for file in exercise.files() {
            work.open_file(id, file)?;
        }
        let folder = work.folder(id);
        let mut folders = vec![folder.clone()];
        folders.extend(context.copy_of(exercise));
        // Where something was written already, if that is not here.
        let edited = |folder: &&PathBuf| {
            exercise.files().iter().any(|file| {
                let path = folder.join(&file.name);
                let same = kernel_file::read(&path).is_ok_and(|text| text == file.starter);
                files::is_taken(&path) && !same
            })
        };
        let folder = folders.iter().find(edited).cloned().unwrap_or(folder);
        let files = exercise.files().into_iter();
        self.open = Some(Open {
            id: id.to_owned(),
            device: device.to_owned(),
            folders,
            folder,
            files: files.map(|file| file.name.clone()).collect(),
        });
        self.say_files();
        self.look(context, false)
    }

    /// Cancels a check or a measurement in progress; its process ends.
    pub fn leave(&mut self) {
        self.open = None;
        self.work = None;
        self.lanes = None;
        let checker = self.checker.lock();
        checker.unwrap_or_else(PoisonError::into_inner).end();
    }

    /// Puts the starters back, and begins anew.
    pub fn reset(&mut self, context: &CourseContext, id: &str, device: &str) -> Result<String> {
        let exercise = known(context, id)?;
        self.work = None;
        let mut folders: Vec<PathBuf> = context.copy_of(exercise).into_iter().collect();
        folders.push(context.workspace()?.folder(id));
        let kept = restore_files(&folders, exercise)?;
        self.open(context, id, device)?;
        Ok(as_it_began("exercise", kept.first()))
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
    pub fn saved(&mut self, context: &CourseContext, path: &Path) -> bool {
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
        if let Err(error) = self.look(context, true) {
            self.news.push_back(Message::Notice {
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
        if let Some(message) = self.work.as_mut().and_then(BackgroundJob::next_message) {
            if let Message::Exercise {
                news: ExerciseNews::Measured(_) | ExerciseNews::Checked(_),
                ..
            } = message
            {
                self.work = None;
            }
            return Some(message);
        }
        let found = self.lanes.as_mut()?.next_message()?;
        self.lanes = None;
        Some(Message::Exercise {
            exercise: id,
            news: ExerciseNews::Lanes(found.map(Arc::new)),
        })
    }

    /// Makes the runs of the open exercise. Messages report its progress and its result, also where it cannot begin.
    pub fn measure(&mut self, context: &CourseContext, id: &str, device: &str) {
        let begun = self.begin(context, id, device);
        if let Err(error) = &begun {
            let failed = Measurement::failed(&format!("{error:#}"));
            self.tell(ExerciseNews::Measured(Box::new(failed)));
        }
        self.work = begun.ok();
    }

    fn begin(
        &self,
        context: &CourseContext,
        id: &str,
        device: &str,
    ) -> Result<BackgroundJob<Message>> {
        let (configs, path) = self.answering(context, id)?;
        let (answer, said) = read_answers(configs, &path);
        if let AnswerFile::Open(problems) = answer {
            bail!("{}", problems.join("; "));
        }
        Ok(jobs::measure(
            self.command.clone(),
            id,
            device,
            configs,
            said,
        )?)
    }

    /// Cancels a measurement in progress; its engine ends.
    pub fn stop_measuring(&mut self) {
        self.work = None;
    }

    /// Writes answers to the learner's file. It counts as saved.
    pub fn write_answers(
        &mut self,
        context: &CourseContext,
        id: &str,
        answers: &Answers,
    ) -> Result<PathBuf> {
        let (configs, path) = self.answering(context, id)?;
        let raw = if files::is_taken(&path) {
            read_text(&path, MAX_BYTES)?
        } else {
            String::new()
        };
        workspace::write(&path, written(&raw, &configs.file.starter, answers))?;
        self.look(context, true)?;
        Ok(path)
    }

    /// The open exercise's configurations, and where the learner's answers are.
    fn answering<'a>(
        &self,
        context: &'a CourseContext,
        id: &str,
    ) -> Result<(&'a Configs, PathBuf)> {
        let configs = known(context, id)?.configs();
        match (configs, &self.open) {
            (Some(configs), Some(open)) if open.id == id => {
                Ok((configs, open.folder.join(ANSWERS)))
            }
            _ => bail!("`{}` is not open", crate::sanitize::line(id)),
        }
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

    /// Looks at what the files hold, as they are opened or saved: checks kernels, reads answers.
    fn look(&mut self, context: &CourseContext, saved: bool) -> Result<()> {
        let Some(open) = &self.open else {
            return Ok(());
        };
        let exercise = known(context, &open.id)?;
        if let Some(configs) = exercise.configs() {
            let (answer, _) = read_answers(configs, &open.folder.join(ANSWERS));
            self.tell(ExerciseNews::Answers { answer, saved });
            return Ok(());
        }
        self.job = self.job(exercise, open, random::fresh())?;
        let device = open.device.clone();
        // The file was saved again: the check in progress is given up before another begins.
        self.work = None;
        let checker = Arc::clone(&self.checker);
        self.work = Some(jobs::check(checker, device, self.job.clone())?);
        self.tell(ExerciseNews::Begun);
        Ok(())
    }

    /// The open exercise's kernels as they are in the learner's files.
    fn job(&self, exercise: &Exercise, open: &Open, seed: u64) -> Result<KernelJob> {
        let kernels = exercise
            .kernels()
            .ok_or_else(|| anyhow!("{} has nothing to check", exercise.label()))?;
        let kernels = at_sizes(kernels, self.model.as_ref());
        Ok(in_folder(exercise, &kernels, &open.folder, seed))
    }

    /// Runs the open exercise's kernel on the host and keeps what one workgroup does. A message brings it, or why there is none.
    pub fn record_lanes(&mut self, context: &CourseContext, wanted: LanesWanted) {
        let begin = || {
            let open = self.open.as_ref().context("No exercise is open")?;
            // The numbers of the last check.
            let seed = self.job.seed;
            let job = self.job(known(context, &open.id)?, open, seed)?;
            Ok::<_, anyhow::Error>(lanes::begin(job, wanted)?)
        };
        match begin() {
            Ok(job) => self.lanes = Some(job),
            Err(error) => self.tell(ExerciseNews::Lanes(Err(format!("{error:#}")))),
        }
    }
}

/// Puts the learner's files of an exercise back as they began; the result names those that were kept beside them.
///
/// # Errors
/// Where a file cannot be moved or written.
pub fn restore_files(folders: &[PathBuf], exercise: &Exercise) -> Result<Vec<PathBuf>> {
    let mut kept = Vec::new();
    for folder in folders {
        for file in exercise.files() {
            kept.extend(workspace::restore(&folder.join(&file.name), &file.starter)?);
        }
    }
    Ok(kept)
}

/// Says that a stage or an exercise was reset, and under which name a file of the learner's was kept.
pub fn as_it_began(what: &str, kept: Option<&PathBuf>) -> String {
    let said = format!("The {what} is as it began");
    match kept.and_then(|path| path.file_name()) {
        None => said,
        Some(name) => format!("{said}; your file is kept beside it as {}", name.display()),
    }
}

/// Kernels at the sizes of a model, or at their own where nothing was started yet.
fn at_sizes(kernels: &Kernels, model: Option<&RunConfig>) -> Kernels {
    match model {
        Some(config) => kernels.clone().in_model(config),
        None => kernels.clone(),
    }
}

/// What the learner's file says: every answer, or what to write where.
fn read_answers(configs: &Configs, path: &Path) -> (AnswerFile, Answers) {
    let open = |problem: String| (AnswerFile::Open(vec![problem]), Answers::new());
    let read = read_text(path, MAX_BYTES).and_then(|raw| Ok((answers(&raw, ANSWERS)?, raw)));
    let (said, raw) = match read {
        Ok(read) => read,
        Err(error) => return open(error.to_string()),
    };
    let problems: Vec<String> = judge::wanting(configs, &said)
        .into_iter()
        .map(|(check, why)| {
            let key = check.answer.as_ref().map_or("", |(key, _)| key);
            let line = line_of_key(&raw, key).unwrap_or(0);
            FileError::new(ANSWERS, line, why).to_string()
        })
        .collect();
    if !problems.is_empty() {
        return (AnswerFile::Open(problems), said);
    }
    let asked = configs.checks.iter().filter_map(|it| it.answer.as_ref());
    let given = asked.map(|(key, _)| {
        let words = said.get(key).map_or(&[][..], Vec::as_slice);
        (key.clone(), words.join(", "))
    });
    (AnswerFile::Given(given.collect()), said)
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

/// The job for the files in a folder, with the numbers of a seed; the starter stands for one that is not there.
pub fn in_folder(exercise: &Exercise, kernels: &Kernels, folder: &Path, seed: u64) -> KernelJob {
    let read = |name: &str| {
        let path = folder.join(name);
        let there = files::is_taken(&path);
        let starter = kernels.kernels.iter().find(|it| it.file.name == name);
        match starter {
            Some(kernel) if !there => kernel_file::text(kernel.file.starter.clone().into_bytes()),
            _ => kernel_file::read(&path),
        }
    };
    kernels.job_of_seed(&exercise.id, seed, read)
}

fn known<'a>(context: &'a CourseContext, id: &str) -> Result<&'a Exercise> {
    let found = context.course.exercise_by_id(id);
    found.ok_or_else(|| anyhow!("there is no exercise `{}`", crate::sanitize::line(id)))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use protocol::config::Preset;
    use protocol::{RunSpec, Slot};

    /// An engine that takes every job and never answers.
    const SILENT: &str = r#"read hello
echo '{"t":0,"event":"hello","protocol":1,"version":"0","pid":1,"os":"","cores":1,"date":""}'
exec sleep 1000"#;

    /// A configuration with other sizes has the open kernel checked anew, at these sizes and before it computes there; one with the
    /// same sizes has not. What was not checked at a size is never launched at it: tests/swap.rs.
    #[test]
    fn a_kernel_is_checked_anew_at_the_sizes_of_a_changed_model() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut context = CourseContext::load_as_author(None).expect("the course");
        context.state = Some(folder.path().to_owned());
        let mut runner = ExerciseRunner::new(EngineCommand::new("sh", ["-c", SILENT]));
        let apply = |batch: usize, rate: f64| {
            let mut config = RunConfig::preset(Preset::Tiny);
            (config.train.batch, config.train.learning_rate) = (batch, rate);
            let run = RunSpec {
                stage: 4,
                variant: "custom".to_owned(),
                slot: Slot::A,
                config,
                steps: None,
                sealed: false,
            };
            Command::Apply { run, request: 0 }
        };
        let tokens_ffn = |batch: usize| {
            let config = RunConfig::preset(Preset::Tiny);
            (batch * config.train.context * config.model.ffn) as u64
        };
        runner.heard(&context, &apply(2, 1e-3)).expect("is taken");
        runner.open(&context, "swiglu", "auto").expect("opens");
        let checked = |runner: &ExerciseRunner| {
            let shapes = runner.job.shapes.iter();
            let sizes = shapes.map(|shape| shape.sizes["N"]).collect::<Vec<_>>();
            (runner.job.seed, sizes)
        };
        let (first, sizes) = checked(&runner);
        assert!(sizes.contains(&tokens_ffn(2)), "{sizes:?}");
        runner.heard(&context, &apply(2, 1e-4)).expect("is taken");
        assert_eq!(checked(&runner).0, first, "no size changed");
        runner.heard(&context, &apply(3, 1e-4)).expect("is taken");
        let (second, sizes) = checked(&runner);
        assert_ne!(second, first, "each check has numbers of its own");
        assert!(sizes.contains(&tokens_ffn(3)) && !sizes.contains(&tokens_ffn(2)));
        runner.leave();
    }
}
