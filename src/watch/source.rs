//! The trainings of other programs as a source of events. The events are the lines of the first process of each training, the output of the
//! command, the profiles of steps, and the rates and lints that are computed from them. Of the other processes only their state is shown.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::mpsc::Sender;
use std::thread::Builder;
use std::time::{Duration, Instant};

use super::follow::{Followed, FollowedFile};
use super::job::{Job, OUTPUT};
use super::profile::{self, ReadProfile};
use super::rank::{NewLines, WatchedRank, WrittenProfile};
use crate::app::source::{EventSource, FromEngine, ReplayControl};
use crate::measure::background_job::BackgroundJob;
use protocol::lints::lints;
use protocol::story::StreamStory;
use protocol::{Command, Event, Lint, LogMessage, RankReading, Slot, StreamLine};

/// The time between two polls of the files, because a file on a network must not be asked more often.
const POLL_EVERY: Duration = Duration::from_millis(100);
/// The time between two reports of rates and lints.
const REPORT_EVERY: Duration = Duration::from_secs(1);
/// The most lines of the command's output that one poll shows.
const MAX_PRINTED: usize = 100;

/// The place of the lines of a training.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchPlace {
    /// A folder with one file for each process.
    Folder(PathBuf),
    /// The file of one process.
    File(PathBuf),
}

/// One training: the files of its processes, of which the first is shown.
struct Training {
    place: WatchPlace,
    /// The slot of the training's events. The learner can mark a moment from which on the training is B.
    slot: Slot,
    /// True if another training is watched beside this one.
    apart: bool,
    /// The processes, sorted by number.
    ranks: Vec<WatchedRank>,
    /// The latest profile that is not read yet.
    unread: Option<WrittenProfile>,
}

/// The trainings that are watched: one, or two side by side.
pub struct WatchSource {
    trainings: Vec<Training>,
    /// The story of the processes that are shown.
    story: StreamStory,
    /// The output of the command.
    output: Option<FollowedFile>,
    /// The command, if this program started one. It writes to the place of the last training.
    job: Option<Job>,
    began: Instant,
    /// The time of the last poll. `None` if the next poll may begin at once.
    polled: Option<Instant>,
    /// The time of the last report of rates and lints.
    reported: Instant,
    /// The messages that the screen has not received yet.
    messages: VecDeque<FromEngine>,
    /// The thread that reads a profile. Its message is `None` if it broke off.
    profile_job: Option<BackgroundJob<Option<ReadProfile>>>,
    /// The lints of the latest profile, by slot.
    profile_lints: [Vec<Lint>; 2],
    /// True once the end was reported.
    over: bool,
}

impl Training {
    /// Reads the new lines of all processes. Returns the faults of all, and the events of the first one.
    fn poll(&mut self, now_ms: u64) -> NewLines {
        self.find_ranks();
        let mut all = NewLines::default();
        for (index, rank) in self.ranks.iter_mut().enumerate() {
            let found = rank.poll(now_ms);
            all.faults.extend(found.faults);
            all.is_behind |= found.is_behind;
            if index == 0 {
                all.events = found.events;
                self.unread = found.profile.or(self.unread.take());
            }
        }
        all
    }

    /// Adds the processes whose files are new.
    fn find_ranks(&mut self) {
        let paths: Vec<(u32, PathBuf)> = match &self.place {
            WatchPlace::File(path) => vec![(0, path.clone())],
            WatchPlace::Folder(folder) => std::fs::read_dir(folder)
                .into_iter()
                .flatten()
                .filter_map(|entry| Some(entry.ok()?.path()))
                .filter_map(|path| Some((rank_of(&path)?, path)))
                .collect(),
        };
        for (number, path) in paths {
            let search = self.ranks.binary_search_by_key(&number, |rank| rank.number);
            if let Err(index) = search {
                let file = FollowedFile::new(path);
                let rank = WatchedRank::new(number, file, self.slot, self.apart);
                self.ranks.insert(index, rank);
            }
        }
    }

    /// Returns true if each process has ended. A silent process of one of two trainings counts as ended, so that the comparison can end.
    fn is_over(&self, now_ms: u64) -> bool {
        let is_over = |rank: &WatchedRank| {
            rank.has_ended() || self.apart && rank.reading(now_ms).silent_s.is_some()
        };
        !self.ranks.is_empty() && self.ranks.iter().all(is_over)
    }
}

impl WatchSource {
    /// Follows one place, or two places, of which the first is A and the second B. `job` is the command that writes to the last one, if this
    /// program started it.
    pub fn new(places: Vec<WatchPlace>, job: Option<Job>) -> Self {
        let apart = places.len() > 1;
        let now = Instant::now();
        let slots = [Slot::A, Slot::B];
        let trainings = places.into_iter().zip(slots).map(|(place, slot)| Training {
            place,
            slot,
            apart,
            ranks: Vec::new(),
            unread: None,
        });
        let mut source = Self {
            trainings: trainings.collect(),
            story: StreamStory::default(),
            output: None,
            job,
            began: now,
            polled: None,
            reported: now,
            messages: VecDeque::new(),
            profile_job: None,
            profile_lints: Default::default(),
            over: false,
        };
        source.output = source.output_file().map(FollowedFile::output);
        source
    }

    /// Returns the file that the command writes its output to. `None` without a command.
    fn output_file(&self) -> Option<PathBuf> {
        self.job.as_ref()?;
        Some(self.trainings.last()?.place.folder().join(OUTPUT))
    }

    /// Returns the story of the processes that are shown.
    pub fn story(&self) -> &StreamStory {
        &self.story
    }

    /// Returns the names of the trainings: each place, or the command, as it was typed.
    pub fn name(&self) -> String {
        let mut names: Vec<String> = self
            .trainings
            .iter()
            .map(|training| training.place.name())
            .collect();
        if let (Some(job), Some(last)) = (&self.job, names.last_mut()) {
            last.clone_from(&job.command);
        }
        names.join(" beside ")
    }

    /// Returns the command, if this program started one.
    pub fn job_mut(&mut self) -> Option<&mut Job> {
        self.job.as_mut()
    }

    fn now_ms(&self) -> u64 {
        self.began.elapsed().as_millis() as u64
    }

    /// Sends an event to the screen with the present time.
    fn send_event(&mut self, event: Event) {
        let t = self.began.elapsed().as_secs_f64();
        self.send_event_at(t, event);
    }

    /// Sends an event to the screen with the time `t` of the program that wrote it, in seconds.
    fn send_event_at(&mut self, t: f64, event: Event) {
        self.story.on_event(&event, self.now_ms());
        self.messages
            .push_back(FromEngine::Line(StreamLine { t, event }));
    }

    fn log(&mut self, level: &str, text: String) {
        self.send_event(Event::Log(LogMessage {
            level: level.to_owned(),
            text,
        }));
    }

    /// Reads everything that is new, and reports the end of the trainings.
    fn poll(&mut self) {
        // If the command has ended by now, this poll reads its last lines.
        let ended = self.job.as_mut().and_then(Job::ended);
        let now_ms = self.now_ms();
        let mut is_behind = false;
        for index in 0..self.trainings.len() {
            let found = self.trainings[index].poll(now_ms);
            is_behind |= found.is_behind;
            for (line, why) in found.faults {
                self.messages.push_back(FromEngine::Malformed { line, why });
            }
            for (t, event) in found.events {
                self.send_event_at(t, event);
            }
        }
        self.read_output();
        is_behind |= self.output.as_ref().is_some_and(FollowedFile::is_behind);
        self.polled = (!is_behind).then(Instant::now);
        self.read_profiles();
        if self.reported.elapsed() >= REPORT_EVERY {
            self.reported = Instant::now();
            self.report();
        }
        let trainings = &self.trainings;
        let all_over = trainings.iter().all(|training| training.is_over(now_ms));
        let has_unread = trainings.iter().any(|training| training.unread.is_some());
        let is_reading = is_behind || has_unread || self.profile_job.is_some();
        if !(self.over || is_reading) && (ended.is_some() || self.job.is_none() && all_over) {
            self.end(ended);
        }
        if self.over && self.job.is_none() && !all_over {
            // A process has begun again.
            self.over = false;
        }
    }

    /// Reports the end. `status` is the exit status of the command; without a command each process has written that it ended.
    fn end(&mut self, status: Option<ExitStatus>) {
        self.over = true;
        let reason = match status {
            Some(status) => format!("the command ended: {status}"),
            None => "each process said that it is over".to_owned(),
        };
        if let (Some(status), Some(training)) = (status, self.trainings.last_mut()) {
            let why = if status.success() { "" } else { &reason };
            for rank in &mut training.ranks {
                rank.end(why.to_owned());
            }
        }
        self.report();
        for slot in [Slot::A, Slot::B] {
            if let Some(finished) = self.story.slot(slot).summary() {
                self.send_event(Event::Finished(Box::new(finished)));
            }
        }
        self.messages.push_back(FromEngine::Gone { reason });
    }

    /// Sends the new lines of the command's output, at most `MAX_PRINTED` of them.
    fn read_output(&mut self) {
        let Some(output) = &mut self.output else {
            return;
        };
        let mut lines: Vec<String> = output
            .poll()
            .into_iter()
            .filter_map(|followed| match followed {
                Followed::Line(_, text) => Some(text),
                Followed::TooLong(line) => Some(format!("(line {line} is longer than 1 MB)")),
                Followed::BegunAgain => None,
            })
            .collect();
        let more = lines.len().saturating_sub(MAX_PRINTED);
        lines.drain(..more);
        if more > 0
            && let Some(file) = self.output_file()
        {
            let text = format!("{more} more lines are in {}", file.display());
            self.log("info", text);
        }
        self.messages
            .extend(lines.into_iter().map(FromEngine::Stray));
    }

    /// Sends the profile that was read, and starts to read the next one. One profile at a time is read, on a thread of its own.
    fn read_profiles(&mut self) {
        if let Some(job) = &mut self.profile_job {
            let Some(read) = job.next_message() else {
                return;
            };
            self.profile_job = None;
            if let Some(ReadProfile { profile, lints }) = read {
                self.profile_lints[profile.slot as usize] = lints;
                self.send_event(Event::Kernels(profile));
            }
        }
        let unread = self.trainings.iter_mut().find_map(|training| {
            let written = training.unread.take()?;
            Some((training.place.folder(), written))
        });
        let Some((folder, written)) = unread else {
            return;
        };
        let file = written.file.as_str();
        // The line may come from another host, so only a plain name of a file in this folder is opened.
        let is_plain = Path::new(file).file_name().is_some_and(|name| name == file);
        if !is_plain {
            let text = format!("the profile `{file}` is no name of a file in the folder");
            self.log("warn", text);
            return;
        }
        let on_cpu = self.story.slot(written.slot).description.on_cpu();
        let path = folder.join(file);
        let read = move |_, outbox: Sender<_>| {
            let _ = outbox.send(Some(profile::read(&path, &written, on_cpu)));
        };
        let builder = Builder::new().name("profile".to_owned());
        let job = BackgroundJob::begin(builder, read, None);
        self.profile_job = job.ok().map(BackgroundJob::detached);
    }

    /// Sends the state of each process, and the rates and lints of the processes that are shown.
    fn report(&mut self) {
        let now_ms = self.now_ms();
        let ranks: Vec<RankReading> = self
            .trainings
            .iter()
            .flat_map(|training| &training.ranks)
            .map(|rank| rank.reading(now_ms))
            .collect();
        if ranks != self.story.ranks {
            self.send_event(Event::Ranks { ranks });
        }
        for index in 0..self.trainings.len() {
            let Some(shown) = self.trainings[index].ranks.first_mut() else {
                continue;
            };
            let slot = shown.slot;
            if let Some(throughput) = shown.throughput() {
                self.send_event(Event::Throughput(throughput));
            }
            let run = self.story.slot(slot);
            let mut lints = lints(run);
            lints.extend(self.profile_lints[slot as usize].iter().cloned());
            if run.has_begun() && lints != run.lints {
                self.send_event(Event::Lints { slot, lints });
            }
        }
    }
}

impl WatchPlace {
    /// Returns the folder of the profiles and the output.
    pub fn folder(&self) -> &Path {
        match self {
            Self::Folder(folder) => folder,
            Self::File(file) => crate::files::folder(file),
        }
    }

    fn name(&self) -> String {
        let (Self::Folder(path) | Self::File(path)) = self;
        path.display().to_string()
    }
}

/// Returns the number of the process that writes a file, such as 7 for `rank-7.jsonl`. `None` for a file with another name.
fn rank_of(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?;
    let number = name.strip_prefix("rank-")?.strip_suffix(".jsonl")?;
    number.parse().ok()
}

impl EventSource for WatchSource {
    fn send(&mut self, _command: Command) {}

    fn try_recv(&mut self) -> Option<FromEngine> {
        let is_due = self
            .polled
            .is_none_or(|polled| polled.elapsed() >= POLL_EVERY);
        if self.messages.is_empty() && is_due {
            self.poll();
        }
        self.messages.pop_front()
    }

    fn restart(&mut self) {}

    fn kill(&mut self) {}

    fn replay(&mut self, control: ReplayControl) {
        if control == ReplayControl::MarkB
            && let [training] = self.trainings.as_mut_slice()
        {
            training.slot = Slot::B;
            let starts_of_b: Vec<Event> = training
                .ranks
                .iter_mut()
                .map(WatchedRank::become_b)
                .collect();
            // Only the first process is shown.
            if let Some(first) = starts_of_b.into_iter().next() {
                self.send_event(first);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write;

    use super::*;

    /// Appends lines to the file of a process.
    fn write(folder: &Path, rank: u32, lines: &[&str]) {
        let path = folder.join(format!("rank-{rank}.jsonl"));
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .expect("opened");
        for line in lines {
            writeln!(file, "{line}").expect("written");
        }
    }

    const HELLO: &str = r#"{"event":"hello","protocol":1,"host":"box"}"#;
    const RUN: &str = r#"{"event":"run","name":"train.py","classes":1000}"#;
    const ENDED: &str = r#"{"event":"ended"}"#;

    /// Returns the line of a step of 20 ms.
    fn step(step: u64, loss: f64) -> String {
        format!(r#"{{"event":"step","step":{step},"loss":{loss},"ms":20}}"#)
    }

    /// Follows these folders.
    fn follow(folders: &[&Path]) -> WatchSource {
        let places = folders
            .iter()
            .map(|folder| WatchPlace::Folder(folder.to_path_buf()));
        WatchSource::new(places.collect(), None)
    }

    /// Reads the new lines and returns the messages that the screen receives.
    fn poll(source: &mut WatchSource) -> Vec<FromEngine> {
        source.poll();
        source.messages.drain(..).collect()
    }

    #[test]
    fn a_folder_of_two_processes_shows_the_first_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut source = follow(&[folder.path()]);
        assert_eq!(poll(&mut source), [], "nobody has written yet");

        let not_a_number = r#"{"event":"step","step":1,"loss":"NaN","ms":20}"#;
        write(folder.path(), 0, &[HELLO, RUN, &step(0, 6.9), not_a_number]);
        write(folder.path(), 1, &[HELLO, r#"{"event":"step","step":7}"#]);
        poll(&mut source);
        source.report();

        let run = source.story().slot(Slot::A);
        assert_eq!((run.first_loss(), run.steps()), (Some(6.9), 2));
        assert_eq!(run.loss.not_finite.map(|(step, _)| step), Some(1));
        let ranks = source.story().ranks.iter();
        let steps: Vec<Option<u64>> = ranks.map(|rank| rank.step).collect();
        assert_eq!(steps, [Some(1), Some(7)]);
    }

    #[test]
    fn a_line_that_cannot_be_read_is_reported_and_left_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut source = follow(&[folder.path()]);
        write(folder.path(), 3, &[HELLO, RUN, "no JSON", &step(0, 6.9)]);

        let messages = poll(&mut source);

        let faults: Vec<&str> = messages
            .iter()
            .filter_map(|message| match message {
                FromEngine::Malformed { line, .. } => Some(line.as_str()),
                _ => None,
            })
            .collect();
        assert!(
            faults.len() == 1 && faults[0].starts_with("rank 3, line 3: "),
            "{faults:?}"
        );
        assert_eq!(source.story().slot(Slot::A).steps(), 1);
    }

    #[test]
    fn the_end_of_the_last_process_ends_the_training_with_its_lints() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut source = follow(&[folder.path()]);
        let gradients =
            r#"{"event":"gradients","step":0,"tensors":4,"with_grad":1,"params_pct":1.6}"#;
        write(
            folder.path(),
            0,
            &[HELLO, RUN, &step(0, 123.0), gradients, ENDED],
        );
        write(folder.path(), 1, &[HELLO, r#"{"event":"step","step":7}"#]);
        poll(&mut source);
        assert!(!source.over, "the other process goes on");

        write(folder.path(), 1, &[ENDED]);
        let messages = poll(&mut source);

        assert!(source.over);
        assert!(matches!(messages.last(), Some(FromEngine::Gone { .. })));
        let run = source.story().slot(Slot::A);
        let finished = run.finished.as_ref().expect("a summary");
        for expected in ["first-loss", "gradient-coverage"] {
            let found = finished.lints.iter().any(|lint| lint.name == expected);
            assert!(found, "{expected}: {:?}", finished.lints);
        }
    }

    #[test]
    fn steps_after_the_mark_are_a_run_of_b_that_goes_on() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut source = follow(&[folder.path()]);
        write(folder.path(), 0, &[HELLO, RUN, &step(0, 6.9)]);
        poll(&mut source);

        source.replay(ReplayControl::MarkB);
        write(folder.path(), 0, &[&step(1, 6.8)]);
        poll(&mut source);

        let [a, b] = [Slot::A, Slot::B].map(|slot| source.story().slot(slot));
        assert_eq!(
            [a, b].map(|run| run.loss.last().map(|(_, loss)| loss)),
            [Some(6.9), Some(6.8)]
        );
        assert_eq!(b.description.from_step, 1);
    }

    #[test]
    fn a_profile_of_another_folder_is_not_opened() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut source = follow(&[folder.path()]);
        let profile = r#"{"event":"profile","step":3,"file":"../secret.json"}"#;
        write(folder.path(), 0, &[HELLO, RUN, profile]);

        let messages = poll(&mut source);

        let is_warning = |message: &FromEngine| match message {
            FromEngine::Line(line) => matches!(&line.event, Event::Log(log) if log.level == "warn"),
            _ => false,
        };
        assert!(messages.iter().any(is_warning));
        assert!(source.profile_job.is_none());
    }

    #[test]
    fn a_second_folder_is_b_and_does_not_go_on_from_a() {
        let folders = [(), ()].map(|()| tempfile::tempdir().expect("a folder"));
        let [first, second] = folders.each_ref().map(|folder| folder.path());
        let mut source = follow(&[first, second]);
        let resumed = r#"{"event":"run","name":"train.py","classes":1000,"from_step":500}"#;
        write(first, 0, &[HELLO, RUN, &step(0, 6.9), &step(1, 6.8)]);
        write(second, 0, &[HELLO, resumed, &step(500, 3.5)]);
        poll(&mut source);

        write(first, 0, &[&step(600, 3.1)]);
        poll(&mut source);
        source.report();

        let [a, b] = [Slot::A, Slot::B].map(|slot| source.story().slot(slot));
        assert_eq!((a.own_loss(), a.was_left()), (Some((600, 3.1)), false));
        assert_eq!((b.own_loss(), b.went_on_from), (Some((500, 3.5)), None));
        let ranks = source.story().ranks.iter();
        let steps: Vec<(Slot, Option<u64>)> = ranks.map(|rank| (rank.slot, rank.step)).collect();
        assert_eq!(steps, [(Slot::A, Some(600)), (Slot::B, Some(500))]);
    }

    #[test]
    fn a_mark_does_nothing_while_b_is_another_folder() {
        let folders = [(), ()].map(|()| tempfile::tempdir().expect("a folder"));
        let [first, second] = folders.each_ref().map(|folder| folder.path());
        let mut source = follow(&[first, second]);
        write(first, 0, &[HELLO, RUN, &step(0, 6.9)]);
        write(second, 0, &[HELLO, RUN, &step(0, 3.5)]);
        poll(&mut source);
        let number = source.story().slot(Slot::B).number;

        source.replay(ReplayControl::MarkB);

        assert_eq!(source.story().slot(Slot::B).number, number);
    }

    #[test]
    fn two_folders_end_with_the_later_of_both() {
        let folders = [(), ()].map(|()| tempfile::tempdir().expect("a folder"));
        let [first, second] = folders.each_ref().map(|folder| folder.path());
        let mut source = follow(&[first, second]);
        write(first, 0, &[HELLO, RUN, &step(0, 6.9)]);
        write(second, 0, &[HELLO, RUN, &step(0, 3.5), ENDED]);
        poll(&mut source);
        assert!(!source.over, "A goes on");

        write(first, 0, &[ENDED]);
        poll(&mut source);

        assert!(source.over);
        for slot in [Slot::A, Slot::B] {
            assert!(source.story().slot(slot).finished.is_some(), "{slot:?}");
        }
    }
}
