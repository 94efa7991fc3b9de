//! The open exercise behind the screen: the learner's files, the process that checks kernels, and the runs of a configuration exercise.

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

/// Checks and measures the open exercise. At most one exercise is open.
pub struct ExerciseRunner {
    /// The command that starts engines.
    pub(super) command: EngineCommand,
    checker: Arc<Mutex<Checker>>,
    /// The check of kernels or the measurement of configurations in progress.
    work: Option<BackgroundJob<Message>>,
    /// The kernels of the last check.
    job: KernelJob,
    /// The recording of a workgroup in progress.
    lanes: Option<BackgroundJob<LanesResult>>,
    /// The configuration that the stage trains. A kernel that shall compute in this model is checked at the sizes of the model.
    model: Option<RunConfig>,
    open: Option<OpenExercise>,
    news: VecDeque<Message>,
}

/// The open exercise.
struct OpenExercise {
    id: String,
    device: String,
    /// The folders that may hold the learner's files. New files are made in the first one.
    folders: Vec<PathBuf>,
    /// The folder in which a file was saved last.
    folder: PathBuf,
    /// The names of the learner's files.
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

    /// Looks at a command before it goes to the engine. If it changes the sizes of the model, the open kernel is checked at the new sizes.
    pub fn before_send(&mut self, context: &CourseContext, command: &Command) -> Result<()> {
        let (Command::Start { run, .. }
        | Command::Apply { run, .. }
        | Command::Pair { b: run, .. }) = command
        else {
            return Ok(());
        };
        let before = self.model.replace(run.config.clone());
        let Some(open) = &self.open else {
            return Ok(());
        };
        let exercise = find_exercise(context, &open.id).ok();
        let Some(kernels) = exercise.and_then(Exercise::kernels) else {
            return Ok(());
        };
        let checked_shapes = at_sizes(kernels, before.as_ref()).shapes;
        if at_sizes(kernels, Some(&run.config)).shapes == checked_shapes {
            return Ok(());
        }
        self.read_files(context, false)
    }

    /// Makes the learner's files where there are none, and begins a check of them.
    pub fn open(&mut self, context: &CourseContext, id: &str, device: &str) -> Result<()> {
        let exercise = find_exercise(context, id)?;
        let work = context.workspace()?;
        for file in exercise.files() {
            work.open_file(id, file)?;
        }
        let folder = work.folder(id);
        let mut folders = vec![folder.clone()];
        folders.extend(context.folder_in_copy(exercise));
        // The first folder with an edited file is used.
        let is_edited = |folder: &&PathBuf| {
            exercise.files().iter().any(|file| {
                let path = folder.join(&file.name);
                let is_starter = kernel_file::read(&path).is_ok_and(|text| text == file.starter);
                files::is_taken(&path) && !is_starter
            })
        };
        let edited = folders.iter().find(is_edited).cloned();
        let names = exercise.files().into_iter().map(|file| file.name.clone());
        self.open = Some(OpenExercise {
            id: id.to_owned(),
            device: device.to_owned(),
            folder: edited.unwrap_or(folder),
            files: names.collect(),
            folders,
        });
        self.send_paths();
        self.read_files(context, false)
    }

    /// Closes the exercise and cancels a check or a measurement in progress, whose process ends.
    pub fn leave(&mut self) {
        self.open = None;
        self.work = None;
        self.lanes = None;
        let checker = self.checker.lock();
        checker.unwrap_or_else(PoisonError::into_inner).end();
    }

    /// Puts the starters back and opens the exercise again. Returns a sentence for the screen.
    pub fn reset(&mut self, context: &CourseContext, id: &str, device: &str) -> Result<String> {
        let exercise = find_exercise(context, id)?;
        self.work = None;
        let mut folders: Vec<PathBuf> = context.folder_in_copy(exercise).into_iter().collect();
        folders.push(context.workspace()?.folder(id));
        let kept = restore_files(&folders, exercise)?;
        self.open(context, id, device)?;
        Ok(as_it_began("exercise", kept.first()))
    }

    /// Returns the paths at which the files of the open exercise may be.
    pub fn watched(&self) -> Vec<PathBuf> {
        let Some(open) = &self.open else {
            return Vec::new();
        };
        open.folders
            .iter()
            .flat_map(|folder| open.files.iter().map(|name| folder.join(name)))
            .collect()
    }

    /// Returns the path of a file of the open exercise, or `None` if that exercise is not open or has no such file.
    pub fn path(&self, id: &str, file: &str) -> Option<PathBuf> {
        let open = self.open.as_ref().filter(|open| open.id == id)?;
        let has_file = open.files.iter().any(|name| name == file);
        has_file.then(|| open.folder.join(file))
    }

    /// Begins a check after a file was saved. Returns false if the file does not belong to the open exercise.
    pub fn saved(&mut self, context: &CourseContext, path: &Path) -> bool {
        let Some(open) = &mut self.open else {
            return false;
        };
        let folder = path.parent().unwrap_or(Path::new(""));
        if !open.folders.iter().any(|known| known == folder) {
            return false;
        }
        if open.folder != folder {
            open.folder = folder.to_owned();
            self.send_paths();
        }
        if let Err(error) = self.read_files(context, true) {
            self.news.push_back(Message::Notice {
                text: format!("{error:#}"),
                warning: true,
            });
        }
        true
    }

    /// Returns the next message about the open exercise, or `None` if nothing happened.
    pub fn next_message(&mut self) -> Option<Message> {
        if let Some(message) = self.news.pop_front() {
            return Some(message);
        }
        let id = self.open.as_ref()?.id.clone();
        if let Some(message) = self.work.as_mut().and_then(BackgroundJob::next_message) {
            if let Message::Exercise { news, .. } = &message
                && matches!(news, ExerciseNews::Measured(_) | ExerciseNews::Checked(_))
            {
                self.work = None;
            }
            return Some(message);
        }
        let result = self.lanes.as_mut()?.next_message()?;
        self.lanes = None;
        Some(Message::Exercise {
            exercise: id,
            news: ExerciseNews::Lanes(result.map(Arc::new)),
        })
    }

    /// Begins the runs of the open exercise. Messages report the progress and the result, or the reason why the runs cannot begin.
    pub fn measure(&mut self, context: &CourseContext, id: &str, device: &str) {
        self.work = match self.begin_measuring(context, id, device) {
            Ok(job) => Some(job),
            Err(error) => {
                let failed = Measurement::failed(&format!("{error:#}"));
                self.send_news(ExerciseNews::Measured(Box::new(failed)));
                None
            }
        };
    }

    fn begin_measuring(
        &self,
        context: &CourseContext,
        id: &str,
        device: &str,
    ) -> Result<BackgroundJob<Message>> {
        let (configs, path) = self.answering(context, id)?;
        let (answer, answers) = read_answers(configs, &path);
        if let AnswerFile::Open(problems) = answer {
            bail!("{}", problems.join("; "));
        }
        let command = self.command.clone();
        Ok(jobs::measure(command, id, device, configs, answers)?)
    }

    /// Cancels a measurement in progress; its engine ends.
    pub fn stop_measuring(&mut self) {
        self.work = None;
    }

    /// Writes answers to the learner's file, as if the learner had saved them there. Returns the path of the file.
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
        self.read_files(context, true)?;
        Ok(path)
    }

    /// Returns the open exercise's configurations and the path of the learner's answers.
    fn answering<'a>(
        &self,
        context: &'a CourseContext,
        id: &str,
    ) -> Result<(&'a Configs, PathBuf)> {
        let configs = find_exercise(context, id)?.configs();
        match (configs, &self.open) {
            (Some(configs), Some(open)) if open.id == id => {
                Ok((configs, open.folder.join(ANSWERS)))
            }
            _ => bail!("`{}` is not open", crate::sanitize::line(id)),
        }
    }

    /// Sends the paths of the learner's files to the screen.
    fn send_paths(&mut self) {
        if let Some(open) = &self.open {
            let files = open
                .files
                .iter()
                .map(|name| with_tilde(&open.folder.join(name)))
                .collect();
            self.send_news(ExerciseNews::Files(files));
        }
    }

    /// Sends news about the open exercise to the screen. Does nothing if none is open.
    fn send_news(&mut self, news: ExerciseNews) {
        if let Some(open) = &self.open {
            self.news.push_back(Message::Exercise {
                exercise: open.id.clone(),
                news,
            });
        }
    }

    /// Reads the files after they were opened or `saved`: begins a check of kernels, or sends the answers to the screen.
    fn read_files(&mut self, context: &CourseContext, saved: bool) -> Result<()> {
        let Some(open) = &self.open else {
            return Ok(());
        };
        let exercise = find_exercise(context, &open.id)?;
        if let Some(configs) = exercise.configs() {
            let (answer, _) = read_answers(configs, &open.folder.join(ANSWERS));
            self.send_news(ExerciseNews::Answers { answer, saved });
            return Ok(());
        }
        self.job = self.job(exercise, open, random::unpredictable_seed())?;
        let device = open.device.clone();
        // A check in progress is given up, because the file was saved again.
        self.work = None;
        let checker = Arc::clone(&self.checker);
        self.work = Some(jobs::check(checker, device, self.job.clone())?);
        self.send_news(ExerciseNews::Begun);
        Ok(())
    }

    /// Returns the job that checks the kernels in the learner's files, with the numbers of a seed.
    fn job(&self, exercise: &Exercise, open: &OpenExercise, seed: u64) -> Result<KernelJob> {
        let kernels = exercise
            .kernels()
            .ok_or_else(|| anyhow!("{} has nothing to check", exercise.label()))?;
        let kernels = at_sizes(kernels, self.model.as_ref());
        Ok(in_folder(exercise, &kernels, &open.folder, seed))
    }

    /// Runs the open exercise's kernel on the host and records one workgroup. A message brings the recording, or the reason why there is
    /// none.
    pub fn record_lanes(&mut self, context: &CourseContext, wanted: LanesWanted) {
        match self.begin_recording(context, wanted) {
            Ok(job) => self.lanes = Some(job),
            Err(error) => self.send_news(ExerciseNews::Lanes(Err(format!("{error:#}")))),
        }
    }

    fn begin_recording(
        &self,
        context: &CourseContext,
        wanted: LanesWanted,
    ) -> Result<BackgroundJob<LanesResult>> {
        let open = self.open.as_ref().context("No exercise is open")?;
        let exercise = find_exercise(context, &open.id)?;
        // The recording uses the numbers of the last check.
        let job = self.job(exercise, open, self.job.seed)?;
        Ok(lanes::begin(job, wanted)?)
    }
}

/// Puts the starters of an exercise back. Returns the paths under which the learner's files are kept.
///
/// # Errors
/// Fails where a file cannot be moved or written.
pub fn restore_files(folders: &[PathBuf], exercise: &Exercise) -> Result<Vec<PathBuf>> {
    let mut kept = Vec::new();
    for folder in folders {
        for file in exercise.files() {
            kept.extend(workspace::restore(&folder.join(&file.name), &file.starter)?);
        }
    }
    Ok(kept)
}

/// Returns the sentence after a reset. `kind` is `stage` or `exercise`; `kept` is the path under which the learner's file is kept.
pub fn as_it_began(kind: &str, kept: Option<&PathBuf>) -> String {
    let mut sentence = format!("The {kind} is reset");
    if let Some(name) = kept.and_then(|path| path.file_name()) {
        sentence += &format!("; your file is kept beside it as {}", name.display());
    }
    sentence
}

/// Returns kernels at the sizes of the model that trains, or at their own sizes while no model has been started.
fn at_sizes(kernels: &Kernels, model: Option<&RunConfig>) -> Kernels {
    match model {
        Some(config) => kernels.clone().in_model(config),
        None => kernels.clone(),
    }
}

/// Reads the learner's answers. If some are missing or not allowed, the file is `Open` with the lines to write.
fn read_answers(configs: &Configs, path: &Path) -> (AnswerFile, Answers) {
    let parsed = read_text(path, MAX_BYTES).and_then(|raw| Ok((answers(&raw, ANSWERS)?, raw)));
    let (answers, raw) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return (AnswerFile::Open(vec![error.to_string()]), Answers::new()),
    };
    let problems: Vec<String> = judge::unusable_answers(configs, &answers)
        .into_iter()
        .map(|(check, why)| {
            let key = check.answer.as_ref().map_or("", |(key, _)| key);
            let line = line_of_key(&raw, key).unwrap_or(0);
            FileError::new(ANSWERS, line, why).to_string()
        })
        .collect();
    if !problems.is_empty() {
        return (AnswerFile::Open(problems), answers);
    }
    let given = configs
        .checks
        .iter()
        .filter_map(|check| check.answer.as_ref())
        .map(|(key, _)| {
            let words = answers.get(key).map_or(&[][..], Vec::as_slice);
            (key.clone(), words.join(", "))
        })
        .collect();
    (AnswerFile::Given(given), answers)
}

/// Returns a path as a learner would type it, with `~` for the home folder.
fn with_tilde(path: &Path) -> String {
    if let Some(dirs) = directories::BaseDirs::new()
        && let Ok(below_home) = path.strip_prefix(dirs.home_dir())
    {
        return format!("~/{}", below_home.display());
    }
    path.display().to_string()
}

/// Returns the job that checks the files in a folder, with the numbers of a seed. A missing file is replaced by its starter.
pub fn in_folder(exercise: &Exercise, kernels: &Kernels, folder: &Path, seed: u64) -> KernelJob {
    let read = |name: &str| {
        let path = folder.join(name);
        let kernel = kernels
            .kernels
            .iter()
            .find(|kernel| kernel.file.name == name);
        match kernel {
            Some(kernel) if !files::is_taken(&path) => {
                kernel_file::text(kernel.file.starter.clone().into_bytes())
            }
            _ => kernel_file::read(&path),
        }
    };
    kernels.job(&exercise.id, seed, read)
}

fn find_exercise<'a>(context: &'a CourseContext, id: &str) -> Result<&'a Exercise> {
    let exercise = context.course.exercise_by_id(id);
    exercise.ok_or_else(|| anyhow!("there is no exercise `{}`", crate::sanitize::line(id)))
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

    /// A configuration with other sizes begins a check of the open kernel at these sizes, before the kernel computes there. A configuration
    /// with equal sizes begins no check. tests/swap.rs shows that a kernel is never launched at a size at which it was not checked.
    #[test]
    fn a_kernel_is_checked_anew_at_the_sizes_of_a_changed_model() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut context = CourseContext::load_as_author(None).expect("the course");
        context.state = Some(folder.path().to_owned());
        let mut runner = ExerciseRunner::new(EngineCommand::new("sh", ["-c", SILENT]));
        let apply = |batch: usize, rate: f64| {
            let mut config = RunConfig::preset(Preset::Tiny);
            config.train.batch = batch;
            config.train.learning_rate = rate;
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
        runner
            .before_send(&context, &apply(2, 1e-3))
            .expect("is taken");
        runner.open(&context, "swiglu", "auto").expect("opens");
        let checked = |runner: &ExerciseRunner| {
            let sizes: Vec<u64> = runner
                .job
                .shapes
                .iter()
                .map(|shape| shape.sizes["N"])
                .collect();
            (runner.job.seed, sizes)
        };
        let (first, sizes) = checked(&runner);
        assert!(sizes.contains(&tokens_ffn(2)), "{sizes:?}");
        runner
            .before_send(&context, &apply(2, 1e-4))
            .expect("is taken");
        assert_eq!(checked(&runner).0, first, "no size changed");
        runner
            .before_send(&context, &apply(3, 1e-4))
            .expect("is taken");
        let (second, sizes) = checked(&runner);
        assert_ne!(second, first, "each check has numbers of its own");
        assert!(sizes.contains(&tokens_ffn(3)) && !sizes.contains(&tokens_ffn(2)));
        runner.leave();
    }
}
