//! A training of another program as a source of events: the lines of one of its processes, what the command printed, the profiles of
//! its steps, and what follows from them: rates and lints.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use super::follow::{Followed, FollowedFile};
use super::job::{Job, OUTPUT};
use super::profile::{self, ReadProfile};
use super::rank::{RankReading, WatchedRank, WrittenProfile};
use crate::app::source::{EventSource, FromEngine, ReplayControl};
use protocol::lints::lints;
use protocol::story::StreamStory;
use protocol::{Command, Event, Lint, LogMessage, Slot, StreamLine};

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

    /// Every process, in the order of their numbers.
    pub fn ranks(&self) -> Vec<RankReading> {
        let now_ms = self.now_ms();
        self.ranks.iter().map(|rank| rank.reading(now_ms)).collect()
    }

    /// Whether nothing more will come: the command ended, or each process said that it is over.
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
        if !self.over && (ended.is_some() || self.job.is_none() && all_ended) {
            self.end(ended);
        }
        if self.over && self.job.is_none() && !all_ended {
            // The job was begun again.
            self.over = false;
        }
    }

    fn end(&mut self, status: Option<std::process::ExitStatus>) {
        self.over = true;
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
        let Some(WrittenProfile { slot, step, file }) = self.waiting.take() else {
            return;
        };
        // The line may come from another host: only a plain name of this folder is opened.
        let is_plain = Path::new(&file)
            .file_name()
            .is_some_and(|name| name == file.as_str());
        if !is_plain {
            self.log(
                "warn",
                format!("the profile `{file}` is no name of a file in the folder"),
            );
            return;
        }
        let (path, answer) = (self.place.folder().join(file), self.profiles.0.clone());
        let thread = std::thread::Builder::new().name("profile".to_owned());
        let begun = thread.spawn(move || {
            let _ = answer.send(profile::read(&path, slot, step));
        });
        self.reading_profile = begun.is_ok();
    }

    fn tell_rates(&mut self) {
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
