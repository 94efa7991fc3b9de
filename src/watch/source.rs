//! A training of another program as a source of events: the lines of one of its processes, what the command printed, the profiles of
//! its steps, and what follows from them: rates and lints.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use super::follow::{Followed, FollowedFile};
use super::job::{Job, OUTPUT};
use super::profile::{self, ReadProfile};
use super::rank::{WatchedRank, WrittenProfile};
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

/// A training that is followed.
pub struct WatchSource {
    place: WatchPlace,
    ranks: Vec<WatchedRank>,
    /// What was heard of the process that is shown.
    story: StreamStory,
    output: Option<FollowedFile>,
    job: Option<Job>,
    began: Instant,
    looked: Option<Instant>,
    told: Instant,
    news: VecDeque<FromEngine>,
    profiles: (Sender<ReadProfile>, Receiver<ReadProfile>),
    reading_profile: bool,
    waiting: Option<WrittenProfile>,
    /// What the latest profile showed to be wrong, by slot.
    profile_lints: [Vec<Lint>; 2],
    over: bool,
}

impl WatchSource {
    /// Follows a place; with the command that writes there, if we started it.
    pub fn new(place: WatchPlace, job: Option<Job>) -> Self {
        let folder = place.folder().to_owned();
        let now = Instant::now();
        Self {
            output: job
                .as_ref()
                .map(|_| FollowedFile::output(folder.join(OUTPUT))),
            place,
            ranks: Vec::new(),
            story: StreamStory::default(),
            job,
            began: now,
            looked: None,
            told: now,
            news: VecDeque::new(),
            profiles: channel(),
            reading_profile: false,
            waiting: None,
            profile_lints: Default::default(),
            over: false,
        }
    }

    /// What was heard of the process that is shown.
    pub fn story(&self) -> &StreamStory {
        &self.story
    }

    /// What is watched, as it was named.
    pub fn name(&self) -> String {
        match (&self.job, &self.place) {
            (Some(job), _) => job.command.clone(),
            (None, WatchPlace::Folder(place) | WatchPlace::File(place)) => {
                place.display().to_string()
            }
        }
    }

    /// The command, if we started one.
    pub fn job_mut(&mut self) -> Option<&mut Job> {
        self.job.as_mut()
    }

    /// Returns true if nothing more will come: the command ended, or each process said that it is over.
    pub fn is_over(&self) -> bool {
        self.over
    }

    fn now_ms(&self) -> u64 {
        self.began.elapsed().as_millis() as u64
    }

    fn tell(&mut self, event: Event) {
        let t = self.began.elapsed().as_secs_f64();
        self.tell_at(t, event);
    }

    fn tell_at(&mut self, t: f64, event: Event) {
        self.story
            .hear(&event, self.began.elapsed().as_millis() as u64);
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
        self.find_ranks();
        let now_ms = self.now_ms();
        for at in 0..self.ranks.len() {
            let news = self.ranks[at].poll(now_ms);
            let number = self.ranks[at].number;
            for (line, why) in news.faults {
                let text = format!("rank {number}, line {line}: {why}");
                self.news
                    .push_back(FromEngine::Malformed { line: text, why });
            }
            if at > 0 {
                continue;
            }
            for (t, event) in news.events {
                self.tell_at(t, event);
            }
            self.waiting = news
                .profiles
                .into_iter()
                .next_back()
                .or(self.waiting.take());
        }
        self.read_output();
        self.read_profiles();
        if self.told.elapsed() >= TELL_EVERY {
            self.told = Instant::now();
            self.tell_rates();
        }
        let all_ended = !self.ranks.is_empty() && self.ranks.iter().all(WatchedRank::has_ended);
        let reads = self.reading_profile || self.waiting.is_some();
        if !(self.over || reads) && (ended.is_some() || self.job.is_none() && all_ended) {
            self.end(ended);
        }
        if self.over && self.job.is_none() && !all_ended {
            // The job was begun again.
            self.over = false;
        }
    }

    fn end(&mut self, status: Option<std::process::ExitStatus>) {
        self.over = true;
        if let Some(status) = status {
            let why = match status.success() {
                true => String::new(),
                false => format!("the command ended: {status}"),
            };
            let ranks = self.ranks.iter_mut();
            ranks.for_each(|rank| rank.end(why.clone()));
        }
        self.tell_rates();
        let slot = self.ranks.first().map_or(Slot::A, |rank| rank.slot);
        let shown = self.story.slot(slot);
        if let Some(finished) = shown.summary() {
            self.tell(Event::Finished(Box::new(finished)));
        }
        let reason = match status {
            Some(status) => format!("the command ended: {status}"),
            None => "each process said that it is over".to_owned(),
        };
        self.news.push_back(FromEngine::Gone { reason });
    }

    /// Files of processes that were not there before.
    fn find_ranks(&mut self) {
        let WatchPlace::Folder(folder) = &self.place else {
            if let (WatchPlace::File(path), true) = (&self.place, self.ranks.is_empty()) {
                self.ranks
                    .push(WatchedRank::new(0, FollowedFile::new(path.clone())));
            }
            return;
        };
        let Ok(entries) = std::fs::read_dir(folder) else {
            return;
        };
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            let Some(number) = rank_of(&path) else {
                continue;
            };
            let at = self.ranks.partition_point(|rank| rank.number < number);
            if self.ranks.get(at).is_none_or(|rank| rank.number != number) {
                // The first one is shown: a lower number may come only while nothing was shown.
                self.ranks
                    .insert(at, WatchedRank::new(number, FollowedFile::new(path)));
            }
        }
    }

    fn read_output(&mut self) {
        let Some(output) = &mut self.output else {
            return;
        };
        let mut printed: Vec<String> = output
            .poll()
            .into_iter()
            .filter_map(|piece| match piece {
                Followed::Line(_, text) => Some(text),
                Followed::TooLong(line) => Some(format!("(line {line} is longer than 1 MB)")),
                Followed::BegunAgain => None,
            })
            .collect();
        let more = printed.len().saturating_sub(PRINTED_AT_ONCE);
        printed.drain(..more);
        if more > 0 {
            let file = self.place.folder().join(OUTPUT);
            self.log(
                "info",
                format!("{more} more lines are in {}", file.display()),
            );
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
        let Some(written) = self.waiting.take() else {
            return;
        };
        let file = written.file.as_str();
        // The line may come from another host: only a plain name of this folder is opened.
        let is_plain = Path::new(&file)
            .file_name()
            .is_some_and(|name| name == file);
        if !is_plain {
            self.log(
                "warn",
                format!("the profile `{file}` is no name of a file in the folder"),
            );
            return;
        }
        let on_cpu = self.story.slot(written.slot).description.on_cpu();
        let (path, answer) = (self.place.folder().join(file), self.profiles.0.clone());
        let thread = std::thread::Builder::new().name("profile".to_owned());
        let begun = thread.spawn(move || {
            let _ = answer.send(profile::read(&path, &written, on_cpu));
        });
        self.reading_profile = begun.is_ok();
    }

    /// Tells what each process does, and the rate and the lints of the one that is shown.
    fn tell_rates(&mut self) {
        let now_ms = self.now_ms();
        let ranks: Vec<RankReading> = self.ranks.iter().map(|it| it.reading(now_ms)).collect();
        if ranks != self.story.ranks {
            self.tell(Event::Ranks { ranks });
        }
        let Some(shown) = self.ranks.first_mut() else {
            return;
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

impl WatchPlace {
    /// The folder that profiles and output are in.
    pub fn folder(&self) -> &Path {
        match self {
            Self::Folder(folder) => folder,
            Self::File(file) => crate::files::folder(file),
        }
    }
}

/// The number of the process that writes `rank-7.jsonl`.
fn rank_of(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?;
    name.strip_prefix("rank-")?
        .strip_suffix(".jsonl")?
        .parse()
        .ok()
}

impl EventSource for WatchSource {
    fn send(&mut self, _command: Command) {}

    fn try_recv(&mut self) -> Option<FromEngine> {
        if self.news.is_empty() && self.looked.is_none_or(|at| at.elapsed() >= LOOK_EVERY) {
            self.looked = Some(Instant::now());
            self.look();
        }
        self.news.pop_front()
    }

    fn restart(&mut self) {}

    fn kill(&mut self) {}

    fn replay(&mut self, control: ReplayControl) {
        if control == ReplayControl::MarkB
            && let Some(shown) = self.ranks.first_mut()
        {
            let begins = shown.become_b();
            self.tell(begins);
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

    /// Everything that comes now; files are looked at once more than is needed.
    fn heard(source: &mut WatchSource) -> Vec<FromEngine> {
        source.look();
        source.news.drain(..).collect()
    }

    #[test]
    fn a_folder_of_two_processes_shows_the_first_one_and_its_lints() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut source = WatchSource::new(WatchPlace::Folder(folder.path().to_owned()), None);
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
            .filter(|it| matches!(it, FromEngine::Malformed { .. }));
        assert_eq!(faults.count(), 1);
        let run = source.story().slot(Slot::A);
        assert_eq!((run.first_loss(), run.steps()), (Some(123.0), 2));
        assert_eq!(run.loss.not_finite.map(|(step, _)| step), Some(1));
        source.tell_rates();
        let ranks = source.story().ranks.iter();
        let steps: Vec<Option<u64>> = ranks.map(|rank| rank.step).collect();
        assert_eq!(steps, [Some(1), Some(7)]);
        write(folder.path(), 0, &[ENDED]);
        assert!(!source.is_over(), "the other process goes on");
        write(folder.path(), 1, &[ENDED]);
        let news = heard(&mut source);
        assert!(matches!(news.last(), Some(FromEngine::Gone { .. })) && source.is_over());
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
        let mut source = WatchSource::new(WatchPlace::Folder(folder.path().to_owned()), None);
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
        assert_eq!((a.latest_loss(), b.latest_loss()), (Some(6.9), Some(6.8)));
        assert_eq!(b.description.from_step, 1);
    }

    #[test]
    fn a_profile_of_another_folder_is_not_opened() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut source = WatchSource::new(WatchPlace::Folder(folder.path().to_owned()), None);
        let profile = r#"{"event":"profile","step":3,"file":"../secret.json"}"#;
        write(folder.path(), 0, &[HELLO, RUN, profile]);
        let news = heard(&mut source);
        let warned = news.iter().any(|it| match it {
            FromEngine::Line(line) => matches!(&line.event, Event::Log(log) if log.level == "warn"),
            _ => false,
        });
        assert!(warned && !source.reading_profile);
    }
}
