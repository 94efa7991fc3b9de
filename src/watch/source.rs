//! The trainings of other programs as a source of events: the lines of the first process of each, the output of the command, the profiles
//! of steps, and the rates and lints that follow from them.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use super::follow::{Followed, FollowedFile};
use super::job::{Job, OUTPUT};
use super::profile::{self, ReadProfile};
use super::rank::{RankNews, WatchedRank, WrittenProfile};
use crate::app::source::{EventSource, FromEngine, ReplayControl};
use protocol::lints::lints;
use protocol::story::StreamStory;
use protocol::{Command, Event, Lint, LogMessage, RankReading, Slot, StreamLine};

/// How often files are looked at: a file on a network is not asked more often.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How often rates and lints are worked out.
const TELL_EVERY: Duration = Duration::from_secs(1);
/// Lines that the command printed and that are shown at a time; of more only their number.
const PRINTED_AT_ONCE: usize = 100;

/// Where the lines of a training are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchPlace {
    /// One file for each process.
    Folder(PathBuf),
    /// The file of one process.
    File(PathBuf),
}

/// One training: the files of its processes, of which the first is shown.
struct Training {
    place: WatchPlace,
    /// The slot that its events are about until the learner marks a moment as B.
    slot: Slot,
    /// Another training is watched beside it.
    apart: bool,
    ranks: Vec<WatchedRank>,
    /// The latest profile that is not read yet.
    waiting: Option<WrittenProfile>,
}

/// The trainings that are watched: one, or two side by side.
pub struct WatchSource {
    trainings: Vec<Training>,
    /// The story of the processes that are shown.
    story: StreamStory,
    output: Option<FollowedFile>,
    /// The command that we started. It writes to the place of the last training.
    job: Option<Job>,
    began: Instant,
    looked: Option<Instant>,
    told: Instant,
    news: VecDeque<FromEngine>,
    profiles: (Sender<ReadProfile>, Receiver<ReadProfile>),
    reading_profile: bool,
    /// The lints of the latest profile, by slot.
    profile_lints: [Vec<Lint>; 2],
    over: bool,
}

impl Training {
    /// Returns what its processes wrote since the last call. Events and profiles are those of the first process.
    fn poll(&mut self, now_ms: u64) -> RankNews {
        self.find_ranks();
        let mut all = RankNews::default();
        for (at, rank) in self.ranks.iter_mut().enumerate() {
            let news = rank.poll(now_ms);
            all.faults.extend(news.faults);
            all.is_behind |= news.is_behind;
            if at == 0 {
                all.events = news.events;
                self.waiting = news.profile.or(self.waiting.take());
            }
        }
        all
    }

    /// Takes in files of processes that were not there before.
    fn find_ranks(&mut self) {
        let paths: Vec<(u32, PathBuf)> = match &self.place {
            WatchPlace::File(path) => vec![(0, path.clone())],
            WatchPlace::Folder(folder) => {
                let entries = std::fs::read_dir(folder).into_iter().flatten();
                let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
                paths
                    .filter_map(|path| Some((rank_of(&path)?, path)))
                    .collect()
            }
        };
        for (number, path) in paths {
            // The first one is shown: a lower number may come only while nothing was shown.
            let at = self.ranks.partition_point(|rank| rank.number < number);
            if self.ranks.get(at).is_none_or(|rank| rank.number != number) {
                let file = FollowedFile::new(path);
                let rank = WatchedRank::new(number, file, self.slot, self.apart);
                self.ranks.insert(at, rank);
            }
        }
    }

    /// Returns true if nothing more will come: each process said that it is over. Beside another training, one that fell silent does not
    /// keep the comparison from its end.
    fn is_over(&self, now_ms: u64) -> bool {
        let is_over = |rank: &WatchedRank| {
            rank.has_ended() || self.apart && rank.reading(now_ms).silent_s.is_some()
        };
        !self.ranks.is_empty() && self.ranks.iter().all(is_over)
    }
}

impl WatchSource {
    /// Follows a place, or two, of which the first is A and the second B. `job` is the command that writes to the last one, if we started
    /// it.
    pub fn new(places: Vec<WatchPlace>, job: Option<Job>) -> Self {
        let apart = places.len() > 1;
        let now = Instant::now();
        let slots = [Slot::A, Slot::B];
        let trainings = places.into_iter().zip(slots).map(|(place, slot)| Training {
            place,
            slot,
            apart,
            ranks: Vec::new(),
            waiting: None,
        });
        let mut source = Self {
            trainings: trainings.collect(),
            story: StreamStory::default(),
            output: None,
            job,
            began: now,
            looked: None,
            told: now,
            news: VecDeque::new(),
            profiles: channel(),
            reading_profile: false,
            profile_lints: Default::default(),
            over: false,
        };
        source.output = source.output_file().map(FollowedFile::output);
        source
    }

    /// Returns the file that the command writes its output to, if we started one.
    fn output_file(&self) -> Option<PathBuf> {
        self.job.as_ref()?;
        Some(self.trainings.last()?.place.folder().join(OUTPUT))
    }

    /// Returns the story of the processes that are shown.
    pub fn story(&self) -> &StreamStory {
        &self.story
    }

    /// Returns the names of what is watched, as they were typed.
    pub fn name(&self) -> String {
        let places = self.trainings.iter().map(|training| &training.place);
        let mut names: Vec<String> = places.map(WatchPlace::name).collect();
        if let (Some(job), Some(last)) = (&self.job, names.last_mut()) {
            last.clone_from(&job.command);
        }
        names.join(" beside ")
    }

    /// Returns the command, if we started one.
    pub fn job_mut(&mut self) -> Option<&mut Job> {
        self.job.as_mut()
    }

    fn now_ms(&self) -> u64 {
        self.began.elapsed().as_millis() as u64
    }

    fn tell(&mut self, event: Event) {
        let t = self.began.elapsed().as_secs_f64();
        self.tell_at(t, event);
    }

    fn tell_at(&mut self, t: f64, event: Event) {
        self.story.on_event(&event, self.now_ms());
        self.news
            .push_back(FromEngine::Line(StreamLine { t, event }));
    }

    fn log(&mut self, level: &str, text: String) {
        let level = level.to_owned();
        self.tell(Event::Log(LogMessage { level, text }));
    }

    fn look(&mut self) {
        // The command's end is asked for first, so that what it wrote last is read.
        let ended = self.job.as_mut().and_then(Job::ended);
        let now_ms = self.now_ms();
        let mut is_behind = false;
        for at in 0..self.trainings.len() {
            let news = self.trainings[at].poll(now_ms);
            is_behind |= news.is_behind;
            for (line, why) in news.faults {
                self.news.push_back(FromEngine::Malformed { line, why });
            }
            for (t, event) in news.events {
                self.tell_at(t, event);
            }
        }
        self.read_output();
        is_behind |= self.output.as_ref().is_some_and(FollowedFile::is_behind);
        self.looked = (!is_behind).then(Instant::now);
        self.read_profiles();
        if self.told.elapsed() >= TELL_EVERY {
            self.told = Instant::now();
            self.tell_rates();
        }
        let mut trainings = self.trainings.iter();
        let all_over = trainings.clone().all(|training| training.is_over(now_ms));
        let waits = trainings.any(|training| training.waiting.is_some());
        let is_reading = is_behind || waits || self.reading_profile;
        if !(self.over || is_reading) && (ended.is_some() || self.job.is_none() && all_over) {
            self.end(ended);
        }
        if self.over && self.job.is_none() && !all_over {
            // The job was begun again.
            self.over = false;
        }
    }

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
        self.tell_rates();
        for slot in [Slot::A, Slot::B] {
            if let Some(finished) = self.story.slot(slot).summary() {
                self.tell(Event::Finished(Box::new(finished)));
            }
        }
        self.news.push_back(FromEngine::Gone { reason });
    }

    fn read_output(&mut self) {
        let Some(output) = &mut self.output else {
            return;
        };
        let lines = output.poll().into_iter().filter_map(|piece| match piece {
            Followed::Line(_, text) => Some(text),
            Followed::TooLong(line) => Some(format!("(line {line} is longer than 1 MB)")),
            Followed::BegunAgain => None,
        });
        let mut printed: Vec<String> = lines.collect();
        let more = printed.len().saturating_sub(PRINTED_AT_ONCE);
        printed.drain(..more);
        if more > 0
            && let Some(file) = self.output_file()
        {
            let text = format!("{more} more lines are in {}", file.display());
            self.log("info", text);
        }
        self.news.extend(printed.into_iter().map(FromEngine::Stray));
    }

    /// Reads one trace at a time, on a thread of its own.
    fn read_profiles(&mut self) {
        while let Ok(read) = self.profiles.1.try_recv() {
            self.reading_profile = false;
            let slot = read.profile.slot;
            self.profile_lints[slot as usize] = read.lints;
            self.tell(Event::Kernels(read.profile));
        }
        if self.reading_profile {
            return;
        }
        let mut trainings = self.trainings.iter_mut();
        let Some((folder, written)) = trainings
            .find_map(|training| Some((training.place.folder(), training.waiting.take()?)))
        else {
            return;
        };
        let file = written.file.as_str();
        // The line may come from another host: only a plain name of this folder is opened.
        let is_plain = Path::new(file).file_name().is_some_and(|name| name == file);
        if !is_plain {
            let text = format!("the profile `{file}` is no name of a file in the folder");
            self.log("warn", text);
            return;
        }
        let on_cpu = self.story.slot(written.slot).description.on_cpu();
        let (path, answer) = (folder.join(file), self.profiles.0.clone());
        let thread = std::thread::Builder::new().name("profile".to_owned());
        let begun = thread.spawn(move || {
            let _ = answer.send(profile::read(&path, &written, on_cpu));
        });
        self.reading_profile = begun.is_ok();
    }

    /// Tells what each process does, and the rates and the lints of those that are shown.
    fn tell_rates(&mut self) {
        let now_ms = self.now_ms();
        let all = self.trainings.iter().flat_map(|training| &training.ranks);
        let ranks: Vec<RankReading> = all.map(|rank| rank.reading(now_ms)).collect();
        if ranks != self.story.ranks {
            self.tell(Event::Ranks { ranks });
        }
        for at in 0..self.trainings.len() {
            let Some(shown) = self.trainings[at].ranks.first_mut() else {
                continue;
            };
            let slot = shown.slot;
            if let Some(throughput) = shown.throughput() {
                self.tell(Event::Throughput(throughput));
            }
            let run = self.story.slot(slot);
            let mut found = lints(run);
            found.extend(self.profile_lints[slot as usize].iter().cloned());
            if run.has_begun() && found != run.lints {
                self.tell(Event::Lints { slot, lints: found });
            }
        }
    }
}

impl WatchPlace {
    /// Returns the folder that profiles and output are in.
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

/// Returns the number of the process that writes `rank-7.jsonl`; `None` for another file.
fn rank_of(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?;
    let number = name.strip_prefix("rank-")?.strip_suffix(".jsonl")?;
    number.parse().ok()
}

impl EventSource for WatchSource {
    fn send(&mut self, _command: Command) {}

    fn try_recv(&mut self) -> Option<FromEngine> {
        if self.news.is_empty() && self.looked.is_none_or(|at| at.elapsed() >= LOOK_EVERY) {
            self.look();
        }
        self.news.pop_front()
    }

    fn restart(&mut self) {}

    fn kill(&mut self) {}

    fn replay(&mut self, control: ReplayControl) {
        if control == ReplayControl::MarkB
            && let [training] = self.trainings.as_mut_slice()
        {
            training.slot = Slot::B;
            let begins: Vec<Event> = training
                .ranks
                .iter_mut()
                .map(WatchedRank::become_b)
                .collect();
            if let Some(first) = begins.into_iter().next() {
                self.tell(first);
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

    /// Follows these folders.
    fn follow(folders: &[&Path]) -> WatchSource {
        let places = folders
            .iter()
            .map(|folder| WatchPlace::Folder(folder.to_path_buf()));
        WatchSource::new(places.collect(), None)
    }

    /// Everything that comes now; files are looked at once more than is needed.
    fn heard(source: &mut WatchSource) -> Vec<FromEngine> {
        source.look();
        source.news.drain(..).collect()
    }

    #[test]
    fn a_folder_of_two_processes_shows_the_first_one_and_its_lints() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut source = follow(&[folder.path()]);
        assert_eq!(heard(&mut source), [], "nobody has written yet");
        write(
            folder.path(),
            0,
            &[
                HELLO,
                RUN,
                r#"{"event":"step","step":0,"loss":123.0,"ms":20,"phases":{"forward":7,"backward":12}}"#,
                r#"{"event":"gradients","step":0,"tensors":4,"with_grad":1,"params_pct":1.6}"#,
                r#"{"event":"step","step":1,"loss":"NaN","ms":20}"#,
                "no JSON",
            ],
        );
        write(folder.path(), 1, &[HELLO, r#"{"event":"step","step":7}"#]);
        let news = heard(&mut source);
        let faults = news
            .iter()
            .filter(|news| matches!(news, FromEngine::Malformed { .. }));
        assert_eq!(faults.count(), 1);
        let run = source.story().slot(Slot::A);
        assert_eq!((run.first_loss(), run.steps()), (Some(123.0), 2));
        assert_eq!(run.loss.not_finite.map(|(step, _)| step), Some(1));
        source.tell_rates();
        let ranks = source.story().ranks.iter();
        let steps: Vec<Option<u64>> = ranks.map(|rank| rank.step).collect();
        assert_eq!(steps, [Some(1), Some(7)]);
        write(folder.path(), 0, &[ENDED]);
        assert!(!source.over, "the other process goes on");
        write(folder.path(), 1, &[ENDED]);
        let news = heard(&mut source);
        assert!(matches!(news.last(), Some(FromEngine::Gone { .. })) && source.over);
        let finished = source
            .story()
            .slot(Slot::A)
            .finished
            .as_ref()
            .expect("a summary");
        let lints: Vec<&str> = finished
            .lints
            .iter()
            .map(|lint| lint.name.as_str())
            .collect();
        assert!(
            lints.contains(&"first-loss") && lints.contains(&"gradient-coverage"),
            "{lints:?}"
        );
    }

    #[test]
    fn what_comes_after_the_mark_is_a_run_of_b_that_goes_on() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut source = follow(&[folder.path()]);
        write(
            folder.path(),
            0,
            &[
                HELLO,
                RUN,
                r#"{"event":"step","step":0,"loss":6.9,"ms":20}"#,
            ],
        );
        heard(&mut source);
        source.replay(ReplayControl::MarkB);
        write(
            folder.path(),
            0,
            &[r#"{"event":"step","step":1,"loss":6.8,"ms":10}"#],
        );
        heard(&mut source);
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
        let news = heard(&mut source);
        let warned = news.iter().any(|one| match one {
            FromEngine::Line(line) => matches!(&line.event, Event::Log(log) if log.level == "warn"),
            _ => false,
        });
        assert!(warned && !source.reading_profile);
    }

    #[test]
    fn a_second_folder_is_b_and_goes_on_with_no_weights_of_a() {
        let folders = [(), ()].map(|()| tempfile::tempdir().expect("a folder"));
        let [first, second] = folders.each_ref().map(|folder| folder.path());
        let mut source = follow(&[first, second]);
        let resumed = r#"{"event":"run","name":"train.py","classes":1000,"from_step":500}"#;
        write(
            first,
            0,
            &[
                HELLO,
                RUN,
                r#"{"event":"step","step":0,"loss":6.9,"ms":20}"#,
            ],
        );
        write(
            second,
            0,
            &[
                HELLO,
                resumed,
                r#"{"event":"step","step":500,"loss":3.5,"ms":10}"#,
            ],
        );
        write(
            first,
            0,
            &[r#"{"event":"step","step":1,"loss":6.8,"ms":20}"#],
        );
        heard(&mut source);
        write(
            first,
            0,
            &[r#"{"event":"step","step":600,"loss":3.1,"ms":20}"#],
        );
        heard(&mut source);
        let [a, b] = [Slot::A, Slot::B].map(|slot| source.story().slot(slot));
        assert_eq!((a.own_loss(), a.was_left()), (Some((600, 3.1)), false));
        assert_eq!((b.own_loss(), b.went_on_from), (Some((500, 3.5)), None));
        source.tell_rates();
        let ranks = source.story().ranks.iter();
        let slots: Vec<(Slot, Option<u64>)> = ranks.map(|rank| (rank.slot, rank.step)).collect();
        assert_eq!(slots, [(Slot::A, Some(600)), (Slot::B, Some(500))]);
        let before = source.story().clone();
        source.replay(ReplayControl::MarkB);
        assert_eq!(
            before.slot(Slot::B).number,
            source.story().slot(Slot::B).number,
            "B is taken"
        );
        write(second, 0, &[ENDED]);
        heard(&mut source);
        assert!(!source.over, "A goes on");
        write(first, 0, &[ENDED]);
        heard(&mut source);
        let finished = [Slot::A, Slot::B].map(|slot| source.story().slot(slot).finished.is_some());
        assert_eq!((finished, source.over), ([true, true], true));
    }
}
