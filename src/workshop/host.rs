//! What the screen cannot do itself: keep progress, put starters back, write reports, open editors, notice saved
//! files.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::{Context, Result, bail};

use super::editor::Editor;
use super::exercise::Desk;
use super::replay::Replay;
use super::watch::Watch;
use crate::app::source::{ReplayControl, Source as _};
use crate::app::{App, Message};
use crate::config::file::{FileError, load};
use crate::course::context::CourseContext;
use crate::course::exercise::Body;
use crate::course::exercise::config::{ANSWERS, Answers};
use crate::course::progress::{self, Progress, StageProgress};
use crate::course::workspace;
use crate::course::{Source, Stage};
use crate::engine::client::EngineCommand;
use crate::export::report::Collector;
use crate::record::Recording;
use crate::tui::{self, terminal};

/// The learner's files and programs.
pub struct Host {
    shelf: CourseContext,
    collector: Rc<RefCell<Collector>>,
    editor: Option<Editor>,
    watch: Watch,
    desk: Desk,
    /// The recorded run of the open exercise.
    replay: Option<Replay>,
    /// The stage the learner is in.
    current: Option<String>,
    /// Where reports go.
    reports: Option<PathBuf>,
    /// A recording is looked at: nothing of it is the learner's progress.
    replaying: bool,
}

impl Host {
    pub fn new(
        shelf: CourseContext,
        collector: Rc<RefCell<Collector>>,
        replaying: bool,
        engine: EngineCommand,
    ) -> Self {
        let reports = directories::ProjectDirs::from("", "", "perflings")
            .map(|dirs| dirs.data_dir().join("reports"));
        Self {
            shelf,
            collector,
            editor: Editor::find(|name| std::env::var(name).ok()),
            watch: Watch::new(Vec::new()),
            desk: Desk::new(engine),
            replay: None,
            current: None,
            reports,
            replaying,
        }
    }

    /// Watches what concerns the present stage and the open exercise.
    fn rewatch(&mut self) {
        let stage = self.current.as_deref();
        let mut files = stage.map_or_else(Vec::new, |id| self.watched(id));
        files.extend(self.desk.watched());
        self.watch = self.watch.instead(files);
    }

    fn stage(&self, id: &str) -> Result<&Stage> {
        self.shelf
            .course
            .stage_by_id(id)
            .with_context(|| format!("there is no stage `{id}`"))
    }

    fn state(&self) -> Result<&PathBuf> {
        self.shelf
            .state
            .as_ref()
            .context("progress is not kept: this system names no folder for it; set XDG_STATE_HOME")
    }

    /// Where the learner may edit this stage's configuration: their copy, and the course folder if there is one.
    fn watched(&self, id: &str) -> Vec<PathBuf> {
        let Ok(stage) = self.stage(id) else {
            return Vec::new();
        };
        let copy = self
            .shelf
            .workspace()
            .ok()
            .map(|work| work.path(stage, "config.toml"));
        let inside = match &self.shelf.source {
            Source::Embedded => None,
            Source::Folder { root, .. } => Some(root.join(&stage.path).join("config.toml")),
        };
        copy.into_iter().chain(inside).collect()
    }
}

impl tui::Host for Host {
    fn save_stage(&mut self, stage: &str, progress: &StageProgress) -> Result<()> {
        if self.replaying {
            return Ok(());
        }
        kept(progress::save_stage(self.state()?, stage, progress))
    }

    fn save_current(&mut self, stage: &str) -> Result<()> {
        if self.replaying {
            return Ok(());
        }
        self.current = Some(stage.to_owned());
        self.rewatch();
        kept(progress::save_current(self.state()?, stage))
    }

    fn save_welcomed(&mut self) -> Result<()> {
        kept(progress::save_welcomed(self.state()?))
    }

    fn reset_stage(&mut self, id: &str) -> Result<String> {
        let stage = self.stage(id)?;
        let aside = self.shelf.reset(stage)?;
        kept(progress::reset_stage(self.state()?, id))?;
        for path in self.watched(id) {
            self.watch.acknowledge(&path);
        }
        Ok(match aside.first() {
            None => "The stage is as it began".to_owned(),
            Some(path) => format!(
                "The stage is as it began; your file is kept beside it as {}",
                name_of(path)
            ),
        })
    }

    fn write_report(&mut self, _app: &App) -> Result<PathBuf> {
        let folder = self
            .reports
            .as_ref()
            .context("this system names no folder for a program's data; set XDG_DATA_HOME")?;
        let collector = self.collector.borrow();
        let date = if collector.date().is_empty() {
            "undated"
        } else {
            collector.date()
        };
        let name = |n: u32| folder.join(format!("report-{date}-{n}.md"));
        let Some(path) = (1..10_000).map(name).find(|path| !path.exists()) else {
            bail!("{} is full of reports", folder.display());
        };
        workspace::write(&path, &collector.markdown())?;
        Ok(path)
    }

    fn open_exercise(&mut self, exercise: &str, device: &str) -> Result<()> {
        let opened = self.desk.open(&self.shelf, exercise, device);
        self.rewatch();
        opened
    }

    fn leave_exercise(&mut self) {
        self.desk.leave();
        self.rewatch();
    }

    fn measure(&mut self, exercise: &str, device: &str) {
        self.desk.measure(&self.shelf, exercise, device);
    }

    fn stop_measuring(&mut self) {
        self.desk.stop_measuring();
    }

    fn write_answers(&mut self, exercise: &str, answers: &Answers) -> Result<()> {
        let path = self.desk.write_answers(&self.shelf, exercise, answers)?;
        self.watch.acknowledge(&path);
        Ok(())
    }

    fn show_recording(&mut self, exercise: &str) -> Result<()> {
        let known = self.shelf.course.exercises.iter();
        let found = known
            .filter(|known| known.id == exercise)
            .find_map(|known| match &known.body {
                Body::Detective(detective) => Some(detective),
                _ => None,
            });
        let detective = found.with_context(|| format!("{exercise} has no recording"))?;
        let path = PathBuf::from(&detective.file);
        let recording = Recording::from_text(detective.shown(), &path)?;
        self.replay = Some(Replay::new(recording, 1.0));
        Ok(())
    }

    fn hide_recording(&mut self) {
        self.replay = None;
    }

    fn steer(&mut self, control: ReplayControl) {
        if let Some(replay) = &mut self.replay {
            replay.replay(control);
        }
    }

    fn reset_exercise(&mut self, exercise: &str, device: &str) -> Result<String> {
        let said = self.desk.reset(&self.shelf, exercise, device);
        self.rewatch();
        said
    }

    fn open_editor(&mut self, id: &str, file: &str, line: Option<u32>) -> Result<String> {
        let (path, does) = match self.desk.path(id, file) {
            Some(path) if file == ANSWERS => (path, "is measured"),
            Some(path) => (path, "is checked"),
            None => {
                let path = self.shelf.workspace()?.open(self.stage(id)?, file)?;
                self.watch.acknowledge(&path);
                (path, "runs")
            }
        };
        let Some(editor) = &self.editor else {
            bail!(
                "EDITOR is not set; this file {does} when you save it: {}",
                path.display()
            );
        };
        editor.open(&path, line, terminal::columns_and_rows())?;
        Ok(format!("{file} {does} when you save it"))
    }

    fn needs_terminal(&self) -> bool {
        self.editor
            .as_ref()
            .is_some_and(|editor| editor.needs_terminal)
    }

    fn next_message(&mut self) -> Option<Message> {
        if let Some(why) = self.watch.looking() {
            return Some(Message::Looking { why });
        }
        if let Some(message) = self.desk.next_message() {
            return Some(message);
        }
        if let Some(line) = self.replay.as_mut().and_then(Replay::try_recv) {
            return Some(Message::Recorded(line));
        }
        let path = self.watch.saved()?;
        if self.desk.saved(&self.shelf, &path) {
            return self.desk.next_message();
        }
        // The screen has one line for it, and there is one file that it can be about.
        let short = |error: FileError| {
            FileError {
                path: name_of(&path),
                ..error
            }
            .to_string()
        };
        let config = load(&path).map(Box::new).map_err(short);
        Some(Message::Saved { config })
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().map_or_else(
        || path.display().to_string(),
        |name| name.to_string_lossy().into_owned(),
    )
}

/// A file that was set aside is worth a sentence, even though the progress is saved.
fn kept(saved: Result<(Progress, Option<FileError>), FileError>) -> Result<()> {
    match saved {
        Ok((_, None)) => Ok(()),
        Ok((_, Some(problem))) | Err(problem) => Err(problem.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::exercise::ExerciseNews;
    use crate::course::Course;
    use crate::tui::Host as _;

    fn host(dir: &std::path::Path) -> Host {
        let mut shelf = CourseContext::load(None, None).expect("the built-in course");
        shelf.state = Some(dir.join("state"));
        // Ends at once: what a check says of that is enough here.
        let engine = EngineCommand::parse("true").expect("a command");
        let mut host = Host::new(shelf, Rc::default(), false, engine);
        (host.editor, host.reports) = (None, Some(dir.join("reports")));
        host
    }

    #[test]
    fn a_learner_s_file_is_made_watched_and_reset() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut host = host(dir.path());
        let id = host.shelf.course.stages[0].id.clone();
        host.save_current(&id).expect("saved");
        let said = host
            .open_editor(&id, "config.toml", None)
            .expect_err("no editor is named")
            .to_string();
        assert!(
            said.contains("EDITOR is not set; this file runs") && said.contains("config.toml"),
            "{said}"
        );
        let file = dir.path().join("state/work").join(&id).join("config.toml");
        assert!(file.is_file(), "the starter was copied");
        std::fs::write(&file, "preset = \"tiny\"\n").expect("edited");
        let said = host.reset_stage(&id).expect("reset");
        assert!(said.contains("config.toml.1"), "{said}");
        assert!(
            host.open_editor(&id, "../../x", None)
                .expect_err("not a file of the stage")
                .to_string()
                .contains("has no file")
        );
        assert!(host.reset_stage("nowhere").is_err());
    }

    #[test]
    fn an_exercise_s_files_are_made_checked_and_reset() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut host = host(dir.path());
        let news = |host: &mut Host| loop {
            if let Some(Message::Exercise { exercise, news }) = host.next_message() {
                assert_eq!(exercise, "swiglu");
                return news;
            }
            std::thread::yield_now();
        };
        host.open_exercise("swiglu", "cpu").expect("opened");
        let ExerciseNews::Files(files) = news(&mut host) else {
            panic!("the files come first");
        };
        assert!(files[0].ends_with("work/swiglu/starter.wgsl"), "{files:?}");
        assert!(matches!(news(&mut host), ExerciseNews::Begun));
        let ExerciseNews::Checked(report) = news(&mut host) else {
            panic!("an answer comes whatever the process does");
        };
        assert!(report.failed.is_some() && !report.passed);
        // Saving begins another check; a reset keeps what was saved.
        let file = dir.path().join("state/work/swiglu/starter.wgsl");
        let starter = std::fs::read_to_string(&file).expect("made");
        std::fs::write(&file, "mine").expect("written");
        assert!(matches!(news(&mut host), ExerciseNews::Begun));
        let said = host.reset_exercise("swiglu", "cpu").expect("reset");
        assert!(said.contains("starter.wgsl.1"), "{said}");
        assert_eq!(std::fs::read_to_string(&file).expect("back"), starter);
        let aside = file.with_file_name("starter.wgsl.1");
        assert_eq!(std::fs::read_to_string(aside).expect("kept"), "mine");
        host.leave_exercise();
        assert!(host.open_exercise("nowhere", "cpu").is_err());
    }

    #[test]
    fn reports_do_not_replace_each_other() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut host = host(dir.path());
        let (app, _) = App::new(
            Course::default(),
            Progress::default(),
            crate::app::Options::default(),
        );
        let paths = [
            host.write_report(&app).expect("written"),
            host.write_report(&app).expect("written"),
        ];
        assert_ne!(paths[0], paths[1]);
        assert!(
            std::fs::read_to_string(&paths[0])
                .expect("a report")
                .starts_with("# perflings report")
        );
    }
}
