//! Carries out the effects of the screen: keeps progress, puts starters back, writes reports, opens editors, runs exercises. It also tells
//! the screen when a file was saved.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::thread::Builder;

use anyhow::{Context, Result, anyhow, bail};

use super::editor::Editor;
use super::exercise::{ExerciseRunner, as_it_began};
use super::jobs;
use super::kernel_file::name_of;
use super::knobs::Knobs;
use super::replay::ReplaySource;
use super::runs;
use super::saving::Saving;
use super::watch::FileWatch;
use crate::app::opened::Opened;
use crate::app::source::EventSource as _;
use crate::app::{Effect, Message, source};
use crate::class::member::Member;
use crate::course::config_file::{FileError, load};
use crate::course::context::CourseContext;
use crate::course::exercise::config::ANSWERS;
use crate::course::journey;
use crate::course::save_file::{Progress, ProgressChange, StageState};
use crate::course::workspace;
use crate::course::{CourseFiles, Exercise, Stage};
use crate::files;
use crate::measure::background_job::BackgroundJob;
use crate::out::notice;
use crate::pages::html;
use crate::pages::report::RunReport;
use crate::record::Recording;
use crate::sanitize;
use crate::settings;
use crate::tui::theme::Theme;
use crate::tui::{self, terminal};
use protocol::handle::EngineCommand;
use protocol::story::StreamStory;

/// The workshop beside the screen: the learner's files, which are watched, the editor, and the open exercise.
pub(super) struct Workshop {
    context: CourseContext,
    /// `None` where progress is not kept.
    saving: Option<Saving>,
    knobs: Knobs,
    /// The reason why progress is not on the disk.
    unsaved: Option<String>,
    /// What the stream showed so far, for a report.
    story: Rc<RefCell<StreamStory>>,
    editor: Option<Editor>,
    watch: FileWatch,
    exercise: ExerciseRunner,
    /// The recorded run of the open exercise.
    replay: Option<ReplaySource>,
    /// The id of the present stage.
    current: Option<String>,
    /// Messages that wait for the screen.
    news: VecDeque<Message>,
    /// The folder for reports.
    reports: Option<PathBuf>,
    /// The job that reads the texts of kernels.
    kernels: Option<BackgroundJob<Message>>,
    /// The room that the learner is in.
    pub member: Option<Member>,
}

impl Workshop {
    pub(super) fn new(
        context: CourseContext,
        story: Rc<RefCell<StreamStory>>,
        engine: EngineCommand,
        progress: Progress,
    ) -> Self {
        let state = context.state.clone();
        let saving = state.and_then(|state| Saving::begin(state, progress).ok());
        let reports = directories::ProjectDirs::from("", "", "perflings")
            .map(|dirs| dirs.data_dir().join("reports"));
        Self {
            context,
            saving,
            knobs: Knobs::default(),
            unsaved: None,
            story,
            editor: Editor::find(|name| {
                // The editor in the settings comes before the environment.
                let chosen = || settings::load().ok()?.get("editor");
                let first = (name == "VISUAL").then(chosen).flatten();
                first.or_else(|| std::env::var(name).ok())
            }),
            watch: FileWatch::new(Vec::new()),
            exercise: ExerciseRunner::new(engine),
            replay: None,
            current: None,
            news: VecDeque::new(),
            reports,
            kernels: None,
            member: None,
        }
    }

    /// Returns true if the effect opens an editor or a screen that draws on this terminal.
    pub(super) fn needs_terminal(&self, effect: &Effect) -> bool {
        match effect {
            Effect::OpenProfile { .. } => true,
            Effect::OpenEditor { .. } => self.editor.as_ref().is_some_and(Editor::needs_terminal),
            _ => false,
        }
    }

    /// Carries out an effect. The result and the error are sentences for the screen; `None` if there is nothing to say.
    pub(super) fn carry_out(
        &mut self,
        effect: Effect,
        source: &mut dyn source::EventSource,
    ) -> Result<Option<String>> {
        match effect {
            Effect::Send(command) => {
                let checked = self.exercise.before_send(&self.context, &command);
                source.send(command);
                checked?;
            }
            Effect::Restart => source.restart(),
            Effect::Kill => source.kill(),
            Effect::Replay(control) => match &mut self.replay {
                Some(replay) => replay.replay(control),
                None => source.replay(control),
            },
            Effect::Save(change) => {
                match &change {
                    ProgressChange::Stage(_, progress) if progress.state == StageState::Passed => {
                        self.keep_runs();
                    }
                    ProgressChange::Current(stage) => {
                        self.keep_runs();
                        self.current = Some(stage.clone());
                        self.watch_files();
                        self.read_learner_file(stage);
                    }
                    _ => {}
                }
                self.keep(change)?;
            }
            Effect::WriteKnobs {
                stage,
                config,
                offers,
            } => {
                self.knobs.add(stage, config, offers);
                self.write_knobs()?;
            }
            Effect::ReadJourney => {
                let state = self.context.state.as_deref();
                let found = state.map(journey::load).transpose()?.flatten();
                self.news.push_back(Message::Journey(found.map(Box::new)));
            }
            Effect::ReadKernels { device, config } => {
                let command = self.exercise.command.clone().with_kernel_texts();
                self.kernels = Some(jobs::read_kernels(command, device, config)?);
            }
            Effect::SaveSetting { key, value } => {
                settings::keep(key, Some(value)).context("This choice is not kept")?;
            }
            Effect::ResetStage { stage } => return self.reset_stage(&stage).map(Some),
            Effect::WriteReport(progress) => {
                let [text, page] = self.write_report(&progress)?;
                return Ok(Some(format!(
                    "The report is in {}, and beside it {}",
                    text.display(),
                    page.file_name().unwrap_or_default().display()
                )));
            }
            Effect::OpenProfile {
                file,
                theme,
                markers,
            } => {
                // A large trace takes seconds, and the panels are not on the screen meanwhile.
                let name = sanitize::line(&file.display().to_string());
                notice(&format!("reading {name}"));
                let trace = gputrace::open(&file, &mut |_| {})
                    .map_err(|error| anyhow!("{} {}", error.what, error.next))?;
                let figures = gputrace::summary::summary(&trace);
                let opened = Opened::new(trace, figures, &self.context.course.readings);
                let abilities = terminal::abilities(|name| std::env::var(name).ok());
                tui::opened::show(opened, &Theme::new(theme, markers, abilities))?;
            }
            Effect::OpenEditor { stage, file, line } => {
                return self.open_editor(&stage, &file, line).map(Some);
            }
            Effect::RecordLanes { wanted } => {
                self.exercise.record_lanes(&self.context, wanted);
            }
            Effect::OpenExercise { exercise, device } => {
                let opened = self.exercise.open(&self.context, &exercise, &device);
                self.watch_files();
                opened?;
            }
            Effect::LeaveExercise => {
                self.exercise.leave();
                self.watch_files();
            }
            Effect::Measure { exercise, device } => {
                self.exercise.measure(&self.context, &exercise, &device);
            }
            Effect::StopMeasuring => self.exercise.stop_measuring(),
            Effect::WriteAnswers { exercise, answers } => {
                let context = &self.context;
                let path = self.exercise.write_answers(context, &exercise, &answers)?;
                self.watch.acknowledge(&path);
            }
            Effect::ShowRecording { exercise } => self.show_recording(&exercise)?,
            Effect::HideRecording => self.replay = None,
            Effect::ResetExercise { exercise, device } => {
                let reset = self.exercise.reset(&self.context, &exercise, &device);
                self.watch_files();
                let text = reset?;
                self.keep(ProgressChange::Reset(exercise))?;
                return Ok(Some(text));
            }
            Effect::Share(record) => {
                if let Some(member) = &self.member {
                    member.share(*record);
                }
            }
            Effect::Order(order) => {
                if let Some(member) = &self.member {
                    member.order(order);
                }
            }
            Effect::LeaveRoom => {
                if let Some(member) = self.member.take() {
                    member.leave();
                }
            }
            // The loop carries these out itself.
            Effect::Suspend | Effect::Quit => {}
        }
        Ok(None)
    }

    /// Watches the files of the present stage and of the open exercise.
    fn watch_files(&mut self) {
        let stage = self.current.as_deref();
        let mut files = stage.map_or_else(Vec::new, |id| self.watched(id));
        files.extend(self.exercise.watched());
        self.watch = FileWatch::new(files);
    }

    fn stage(&self, id: &str) -> Result<&Stage> {
        self.context
            .course
            .stage_by_id(id)
            .with_context(|| format!("there is no stage `{id}`"))
    }

    /// Hands a change to the thread that saves.
    fn keep(&self, change: ProgressChange) -> Result<()> {
        let saving = self.saving.as_ref().context(
            "progress is not kept: this system names no folder for it; set XDG_STATE_HOME",
        )?;
        saving.keep(change);
        Ok(())
    }

    /// Saves the curves so far in a thread, in case this program is killed. At the end of the program they are saved anyway.
    fn keep_runs(&self) {
        let session = RunReport::from_story(&self.story.borrow()).kept(&RunReport::default());
        if !session.is_empty()
            && let Some(dir) = self.context.state.clone()
        {
            let save = move || drop(runs::save(&dir, &session));
            let _ = Builder::new().name("runs".to_owned()).spawn(save);
        }
    }

    /// Saves the changes that are left. Returns the reason if that was not possible.
    pub(super) fn close(self) -> Option<String> {
        let progress = self.saving.and_then(Saving::close);
        progress.or_else(|| self.knobs.why().map(str::to_owned))
    }

    /// Returns the files in which the learner may edit a stage's configuration: the learner's copy and, in a course folder, the file there.
    fn watched(&self, id: &str) -> Vec<PathBuf> {
        let Ok(stage) = self.stage(id) else {
            return Vec::new();
        };
        let copy = self.context.workspace().ok().map(|work| work.config(stage));
        let inside = match &self.context.source {
            CourseFiles::Embedded => None,
            CourseFiles::Folder { root, .. } => Some(root.join(&stage.path).join("config.toml")),
        };
        copy.into_iter().chain(inside).collect()
    }

    /// Reads the learner's file of a stage, if there is one, and tells the screen what it contains.
    fn read_learner_file(&mut self, id: &str) {
        let Ok(stage) = self.stage(id) else {
            return;
        };
        let config = match self.context.learner_config(stage, None) {
            Ok((_, None)) => return,
            Ok((named, Some(_))) => Ok(Box::new(named.config)),
            Err(error) => Err(match error.downcast::<FileError>() {
                Ok(error) => in_short(error),
                Err(error) => format!("{error:#}"),
            }),
        };
        let stage = id.to_owned();
        self.news.push_back(Message::FileRead { stage, config });
    }

    /// Writes the knobs that are not written yet. Tells the screen when this becomes possible or impossible.
    fn write_knobs(&mut self) -> Result<()> {
        let before = self.knobs.why().map(str::to_owned);
        let written = self.knobs.write(&self.context);
        for path in written.paths {
            self.watch.acknowledge(&path);
        }
        for problem in written.unreadable {
            let config = Err(in_short(problem));
            self.news.push_back(Message::FileSaved { config });
        }
        if self.knobs.why() != before.as_deref() {
            self.news.push_back(self.unsaved_message());
        }
        written.result
    }

    fn unsaved_message(&self) -> Message {
        let why = self.unsaved.as_deref().or(self.knobs.why());
        Message::ProgressUnsaved {
            why: why.map(str::to_owned),
        }
    }

    fn reset_stage(&mut self, id: &str) -> Result<String> {
        let stage = self.stage(id)?;
        let aside = self.context.reset(stage)?;
        self.keep(ProgressChange::Reset(id.to_owned()))?;
        for path in self.watched(id) {
            self.watch.acknowledge(&path);
        }
        Ok(as_it_began("stage", aside.first()))
    }

    /// Writes a report as Markdown and as an HTML page. Returns the paths of both.
    fn write_report(&self, progress: &Progress) -> Result<[PathBuf; 2]> {
        let folder = self
            .reports
            .as_ref()
            .context("this system names no folder for a program's data; set XDG_DATA_HOME")?;
        let story = self.story.borrow();
        let date = match &*story.hello.date {
            "" => "undated",
            date => date,
        };
        let paths_with_number = |number: u32| {
            ["md", "html"].map(|kind| folder.join(format!("report-{date}-{number}.{kind}")))
        };
        let are_free = |paths: &[PathBuf; 2]| !paths.iter().any(|path| files::is_taken(path));
        let Some(paths) = (1..10_000).map(paths_with_number).find(are_free) else {
            bail!("{} is full of reports", folder.display());
        };
        let sheet = runs::learner_sheet(&self.context, progress, Some(&story))?;
        let [text, page] = &paths;
        workspace::write(text, sheet.markdown())?;
        workspace::write(page, html::page(&sheet))?;
        Ok(paths)
    }

    fn show_recording(&mut self, id: &str) -> Result<()> {
        let detective = self
            .context
            .course
            .exercise_by_id(id)
            .and_then(Exercise::recording)
            .with_context(|| format!("{id} has no recording"))?;
        let path = PathBuf::from(&detective.file);
        let recording = Recording::from_text(detective.shown(), &path)?;
        self.replay = Some(ReplaySource::new(recording, 1.0));
        Ok(())
    }

    fn open_editor(&mut self, id: &str, file: &str, line: Option<u32>) -> Result<String> {
        let (path, consequence) = match self.exercise.path(id, file) {
            Some(path) if file == ANSWERS => (path, "is measured"),
            Some(path) => (path, "is checked"),
            None => {
                let workspace = self.context.workspace()?;
                let path = workspace.open_file(id, &self.stage(id)?.file)?;
                self.watch.acknowledge(&path);
                (path, "runs")
            }
        };
        let Some(editor) = &self.editor else {
            bail!(
                "EDITOR is not set; this file {consequence} when you save it: {}",
                path.display()
            );
        };
        editor.open(&path, line, terminal::columns_and_rows())?;
        Ok(format!("{file} {consequence} when you save it"))
    }

    /// Returns the next message about files, exercises or the recording, or `None` if nothing happened.
    pub(super) fn next_message(&mut self) -> Option<Message> {
        if self.knobs.are_due() {
            // A failure that is not one of the disk was reported at the first attempt.
            let _ = self.write_knobs();
        }
        let mut message = self.news.pop_front();
        if message.is_none() {
            message = self.saving.as_ref().and_then(Saving::next_message);
            if let Some(Message::ProgressUnsaved { why }) = message {
                self.unsaved = why;
                message = Some(self.unsaved_message());
            }
        }
        if let Some(read) = self.kernels.as_mut().and_then(BackgroundJob::next_message) {
            self.kernels = None;
            return Some(read);
        }
        let news = || self.member.as_ref()?.next_news().map(Message::Room);
        let message = message.or_else(news);
        if let Some(message) = message.or_else(|| self.exercise.next_message()) {
            return Some(message);
        }
        if let Some(line) = self.replay.as_mut().and_then(ReplaySource::try_recv) {
            return Some(Message::Recorded(line));
        }
        let path = self.watch.saved()?;
        if self.exercise.saved(&self.context, &path) {
            return self.exercise.next_message();
        }
        // The values that the learner wrote replace the knobs that were not written yet.
        self.knobs.forget();
        let config = load(&path).map(Box::new).map_err(in_short);
        Some(Message::FileSaved { config })
    }
}

/// Returns the error with the file's name instead of its path, because the screen has one line for it.
fn in_short(error: FileError) -> String {
    let path = name_of(Path::new(&error.path));
    FileError { path, ..error }.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::exercise::ExerciseNews;
    use crate::app::source::FromEngine;
    use protocol::Command;

    struct NoEngine;

    impl source::EventSource for NoEngine {
        fn send(&mut self, _: Command) {}
        fn try_recv(&mut self) -> Option<FromEngine> {
            None
        }
        fn restart(&mut self) {}
        fn kill(&mut self) {}
    }

    impl Workshop {
        fn does(&mut self, effect: Effect) -> Result<Option<String>> {
            self.carry_out(effect, &mut NoEngine)
        }

        fn says(&mut self, effect: Effect) -> String {
            let text = self.does(effect).expect("carried out");
            text.expect("a sentence")
        }

        fn fails(&mut self, effect: Effect) -> String {
            self.does(effect).expect_err("refused").to_string()
        }
    }

    fn workshop(dir: &std::path::Path) -> Workshop {
        let mut context = CourseContext::load(None).expect("the built-in course");
        context.state = Some(dir.join("state"));
        // This engine ends at once; the text of the failed check is enough here.
        let engine = EngineCommand::parse("true").expect("a command");
        let mut workshop = Workshop::new(context, Rc::default(), engine, Progress::default());
        workshop.editor = None;
        workshop.reports = Some(dir.join("reports"));
        workshop
    }

    #[test]
    fn a_learner_s_file_is_made_watched_and_reset() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut workshop = workshop(dir.path());
        let stage = workshop.context.course.stages[0].id.clone();
        let edit = |file: &str| Effect::OpenEditor {
            stage: stage.clone(),
            file: file.to_owned(),
            line: None,
        };
        let reset = |stage: &str| Effect::ResetStage {
            stage: stage.to_owned(),
        };
        let current = Effect::Save(ProgressChange::Current(stage.clone()));
        workshop.does(current).expect("saved");
        let text = workshop.fails(edit("config.toml"));
        assert!(
            text.contains("EDITOR is not set; this file runs") && text.contains("config.toml"),
            "{text}"
        );
        let file = dir
            .path()
            .join("state/work")
            .join(&stage)
            .join("config.toml");
        assert!(file.is_file(), "the starter was copied");
        std::fs::write(&file, "preset = \"tiny\"\n").expect("edited");
        let text = workshop.says(reset(&stage));
        assert!(text.contains("config.toml.1"), "{text}");
        assert!(workshop.fails(edit("../../x")).contains("has no file"));
        assert!(workshop.does(reset("nowhere")).is_err());
    }

    #[test]
    fn an_exercise_s_files_are_made_checked_and_reset() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut workshop = workshop(dir.path());
        let open = |exercise: &str| Effect::OpenExercise {
            exercise: exercise.to_owned(),
            device: "cpu".to_owned(),
        };
        let news = |workshop: &mut Workshop| loop {
            if let Some(Message::Exercise { exercise, news }) = workshop.next_message() {
                assert_eq!(exercise, "swiglu");
                return news;
            }
            std::thread::yield_now();
        };
        workshop.does(open("swiglu")).expect("opened");
        let ExerciseNews::Files(files) = news(&mut workshop) else {
            panic!("the files come first");
        };
        assert!(files[0].ends_with("work/swiglu/starter.wgsl"), "{files:?}");
        assert!(matches!(news(&mut workshop), ExerciseNews::Begun));
        let ExerciseNews::Checked(report) = news(&mut workshop) else {
            panic!("an answer comes whatever the process does");
        };
        assert!(report.facts.failed.is_some() && !report.passed);
        // Saving begins another check; a reset keeps what was saved.
        let file = dir.path().join("state/work/swiglu/starter.wgsl");
        let starter = std::fs::read_to_string(&file).expect("made");
        std::fs::write(&file, "mine").expect("written");
        assert!(matches!(news(&mut workshop), ExerciseNews::Begun));
        let text = workshop.says(Effect::ResetExercise {
            exercise: "swiglu".to_owned(),
            device: "cpu".to_owned(),
        });
        assert!(text.contains("starter.wgsl.1"), "{text}");
        assert_eq!(std::fs::read_to_string(&file).expect("back"), starter);
        let aside = file.with_file_name("starter.wgsl.1");
        assert_eq!(std::fs::read_to_string(aside).expect("kept"), "mine");
        workshop.does(Effect::LeaveExercise).expect("left");
        assert!(workshop.does(open("nowhere")).is_err());
    }

    #[test]
    fn reports_do_not_replace_each_other() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut workshop = workshop(dir.path());
        let report = || Effect::WriteReport(Box::default());
        let texts = [(); 2].map(|()| workshop.says(report()));
        assert_ne!(texts[0], texts[1]);
        let path = texts[0].strip_prefix("The report is in ").expect("a path");
        let path = PathBuf::from(path.split(", ").next().expect("a path"));
        let read = |path: &Path| std::fs::read_to_string(path).expect("a report");
        let text = read(&path);
        let title = text
            .lines()
            .next()
            .expect("a title")
            .trim_start_matches("# ");
        assert_eq!(title, workshop.context.course.title);
        let page = read(&path.with_extension("html"));
        assert!(page.starts_with("<!doctype html>") && page.contains("<h2>Score</h2>"));
    }
}
