//! Carries out the effects of the screen: saves progress, starts engines, runs exercises, shows profiles. `effects/files.rs` works on the
//! learner's files. `Workshop::next_message` returns the messages that follow, for example when a file was saved.

mod files;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::thread::Builder;

use anyhow::{Context, Result, anyhow};

use super::editor::Editor;
use super::exercise::ExerciseRunner;
use super::jobs;
use super::knobs::Knobs;
use super::replay::ReplaySource;
use super::runs;
use super::saving::Saving;
use super::watch::FileWatch;
use crate::app::opened::Opened;
use crate::app::source::EventSource;
use crate::app::view::{Markers, ThemeName};
use crate::app::{Effect, Message};
use crate::class::member::Member;
use crate::course::config_file::load;
use crate::course::context::CourseContext;
use crate::course::journey;
use crate::course::save_file::{Progress, ProgressChange, StageState};
use crate::measure::background_job::BackgroundJob;
use crate::out::notice;
use crate::pages::report::RunReport;
use crate::sanitize;
use crate::settings;
use crate::tui::theme::Theme;
use crate::tui::{self, terminal};
use protocol::handle::EngineCommand;
use protocol::story::StreamStory;

/// Everything beside the screen that effects work on: the learner's files, the editor, the open exercise and the room.
pub(super) struct Workshop {
    context: CourseContext,
    /// The thread that saves progress. `None` where the system names no folder for it.
    saving: Option<Saving>,
    knobs: Knobs,
    /// The reason why progress is not on the disk.
    unsaved: Option<String>,
    /// The runs of this session, for a report.
    story: Rc<RefCell<StreamStory>>,
    /// The learner's editor. `None` if the environment names none.
    editor: Option<Editor>,
    /// The files whose changes are reported: those of the present stage and of the open exercise.
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

    /// Carries out an effect. Returns a sentence for the screen, or `None` if the effect needs none.
    pub(super) fn carry_out(
        &mut self,
        effect: Effect,
        source: &mut dyn EventSource,
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
                let table = state.map(journey::load).transpose()?.flatten();
                self.news.push_back(Message::Journey(table.map(Box::new)));
            }
            Effect::ReadKernels { device, config } => {
                let command = self.exercise.command.clone().with_kernel_texts();
                self.kernels = Some(jobs::read_kernels(command, device, config)?);
            }
            Effect::SaveSetting { key, value } => {
                settings::save(key, Some(value)).context("This choice is not kept")?;
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
            } => self.open_profile(&file, theme, markers)?,
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

    /// Shows a trace of another program until the learner leaves it.
    fn open_profile(&self, file: &Path, theme: ThemeName, markers: Markers) -> Result<()> {
        // A large trace takes seconds, and the panels are not on the screen meanwhile.
        let name = sanitize::line(&file.display().to_string());
        notice(&format!("reading {name}"));
        let trace = gputrace::open(file, &mut |_| {})
            .map_err(|error| anyhow!("{} {}", error.what, error.next))?;
        let figures = gputrace::summary::summary(&trace);
        let opened = Opened::new(trace, figures, &self.context.course.readings);
        let abilities = terminal::abilities(|name| std::env::var(name).ok());
        tui::opened::show(opened, &Theme::new(theme, markers, abilities))?;
        Ok(())
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

    /// Returns the next message about files, exercises or the recording, or `None` if nothing happened.
    pub(super) fn next_message(&mut self) -> Option<Message> {
        if self.knobs.are_due() {
            // A failure that has nothing to do with the disk was reported at the first attempt.
            let _ = self.write_knobs();
        }
        self.news
            .pop_front()
            .or_else(|| self.saving_message())
            .or_else(|| self.kernels_message())
            .or_else(|| self.member.as_ref()?.next_news().map(Message::Room))
            .or_else(|| self.exercise.next_message())
            .or_else(|| self.replay.as_mut()?.try_recv().map(Message::Recorded))
            .or_else(|| self.saved_message())
    }

    /// Returns the next message of the thread that saves. Progress counts as unsaved until the knobs are saved, too.
    fn saving_message(&mut self) -> Option<Message> {
        let message = self.saving.as_ref()?.next_message()?;
        if let Message::ProgressUnsaved { why } = message {
            self.unsaved = why;
            return Some(self.unsaved_message());
        }
        Some(message)
    }

    /// Returns the texts of kernels once they are read.
    fn kernels_message(&mut self) -> Option<Message> {
        let message = self.kernels.as_mut()?.next_message()?;
        self.kernels = None;
        Some(message)
    }

    /// Returns the message about a file that the learner has just saved.
    fn saved_message(&mut self) -> Option<Message> {
        let path = self.watch.saved()?;
        if self.exercise.saved(&self.context, &path) {
            return self.exercise.next_message();
        }
        // The values that the learner wrote replace the knobs that were not written yet.
        self.knobs.forget();
        let config = load(&path).map(Box::new).map_err(files::in_short);
        Some(Message::FileSaved { config })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::Sender;
    use std::time::Duration;

    use super::*;
    use crate::app::exercise::ExerciseNews;
    use crate::app::source::FromEngine;
    use protocol::Command;

    struct NoEngine;

    impl EventSource for NoEngine {
        fn send(&mut self, _: Command) {}
        fn try_recv(&mut self) -> Option<FromEngine> {
            None
        }
        fn restart(&mut self) {}
        fn kill(&mut self) {}
    }

    impl Workshop {
        /// Carries out an effect without an engine.
        fn perform(&mut self, effect: Effect) -> Result<Option<String>> {
            self.carry_out(effect, &mut NoEngine)
        }

        /// Carries out an effect that ends with a sentence.
        fn sentence_of(&mut self, effect: Effect) -> String {
            let text = self.perform(effect).expect("carried out");
            text.expect("a sentence")
        }

        /// Carries out an effect that fails. Returns the error.
        fn error_of(&mut self, effect: Effect) -> String {
            self.perform(effect).expect_err("refused").to_string()
        }
    }

    /// A workshop for the built-in course, whose files are in this folder. It has no editor.
    fn workshop(dir: &Path) -> Workshop {
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
        let edit = Effect::OpenEditor {
            stage: stage.clone(),
            file: "config.toml".to_owned(),
            line: None,
        };
        let reset = |stage: &str| Effect::ResetStage {
            stage: stage.to_owned(),
        };
        let current = Effect::Save(ProgressChange::Current(stage.clone()));
        workshop.perform(current).expect("saved");
        let text = workshop.error_of(edit);
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
        let text = workshop.sentence_of(reset(&stage));
        assert!(text.contains("config.toml.1"), "{text}");
        assert!(workshop.perform(reset("nowhere")).is_err());
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
        workshop.perform(open("swiglu")).expect("opened");
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
        let text = workshop.sentence_of(Effect::ResetExercise {
            exercise: "swiglu".to_owned(),
            device: "cpu".to_owned(),
        });
        assert!(text.contains("starter.wgsl.1"), "{text}");
        assert_eq!(std::fs::read_to_string(&file).expect("back"), starter);
        let aside = file.with_file_name("starter.wgsl.1");
        assert_eq!(std::fs::read_to_string(aside).expect("kept"), "mine");
        workshop.perform(Effect::LeaveExercise).expect("left");
        assert!(workshop.perform(open("nowhere")).is_err());
    }

    #[test]
    fn reports_do_not_replace_each_other() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut workshop = workshop(dir.path());
        let report = || Effect::WriteReport(Box::default());
        let texts = [(); 2].map(|()| workshop.sentence_of(report()));
        assert_ne!(texts[0], texts[1]);
        let (path, _) = texts[0]
            .strip_prefix("The report is in ")
            .and_then(|places| places.split_once(", "))
            .expect("two paths");
        let text = std::fs::read_to_string(path).expect("a report");
        let title = text.lines().next().expect("a title");
        let expected = format!("# {}", workshop.context.course.title);
        assert_eq!(title, expected);
        let page_path = Path::new(path).with_extension("html");
        let page = std::fs::read_to_string(page_path).expect("a page");
        assert!(page.starts_with("<!doctype html>") && page.contains("<h2>Score</h2>"));
    }

    #[test]
    fn messages_that_arrive_together_are_all_returned() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut workshop = workshop(dir.path());
        let work = |_, outbox: Sender<Message>| {
            outbox
                .send(Message::Journey(None))
                .expect("the workshop listens");
        };
        let job = BackgroundJob::begin(Builder::new(), work, Message::Journey(None));
        workshop.kernels = Some(job.expect("a thread"));
        workshop.news.push_back(Message::Notice {
            text: "saved".to_owned(),
            warning: false,
        });
        // Both messages are there now.
        std::thread::sleep(Duration::from_millis(50));
        let first = workshop.next_message();
        assert!(matches!(first, Some(Message::Notice { .. })), "{first:?}");
        let second = loop {
            if let Some(message) = workshop.next_message() {
                break message;
            }
            std::thread::yield_now();
        };
        assert!(matches!(second, Message::Journey(None)), "{second:?}");
    }
}
