//! One process of a training: what it says, how fast it is, and since when it is silent.

use std::collections::VecDeque;

use super::follow::{Followed, FollowedFile};
use super::line::{WatchEvent, WatchStep, read};
use protocol::stats::robust::{StepTimes, typical_phases};
use protocol::{Event, ForeignRun, LogMessage, PhaseTimes, Slot, Throughput};

/// Steps whose phases are averaged.
const PHASES_OF: usize = 256;
/// A process that wrote nothing for this long is called silent; it writes every two seconds while it lives.
const SILENT_MS: u64 = 10_000;

/// What a process of the training does.
#[derive(Clone, Debug, PartialEq)]
pub enum RankState {
    Running,
    /// It wrote nothing for so many milliseconds.
    Silent(u64),
    /// It said that it is over, and why where that was early.
    Ended(Option<String>),
}

/// What is shown of a process. Times are medians in milliseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct RankReading {
    pub rank: u32,
    pub host: Option<String>,
    /// Its latest step; `None` before the first.
    pub step: Option<u64>,
    /// Median length of a step in milliseconds.
    pub step_ms: Option<f64>,
    pub phases: Option<PhaseTimes>,
    /// The phase that it was in when it last said so.
    pub phase: Option<String>,
    pub state: RankState,
}

/// A trace that a process wrote, to be read.
#[derive(Debug, PartialEq)]
pub(super) struct WrittenProfile {
    pub slot: Slot,
    pub step: u64,
    /// Length of that step in milliseconds, where it is told.
    pub ms: Option<f64>,
    pub file: String,
}

/// What the lines of a process came to.
#[derive(Debug, Default)]
pub(super) struct RankNews {
    /// Each with its time in seconds since the program began to write.
    pub events: Vec<(f64, Event)>,
    pub profiles: Vec<WrittenProfile>,
    /// Lines that could not be read: number, and why.
    pub faults: Vec<(u64, String)>,
    pub ended: bool,
}

/// A process whose file is followed.
#[derive(Debug)]
pub(super) struct WatchedRank {
    pub number: u32,
    file: FollowedFile,
    /// When it last wrote, on the reader's clock in milliseconds.
    heard_ms: Option<u64>,
    host: Option<String>,
    pub run: ForeignRun,
    /// The slot that its events are about now.
    pub slot: Slot,
    step: Option<u64>,
    times: StepTimes,
    phases: VecDeque<PhaseTimes>,
    phase: Option<String>,
    ended: Option<Option<String>>,
    /// When its first and its latest step were told, in seconds, and how many there were.
    told_s: Option<(f64, f64)>,
    steps: u64,
    /// Steps came that no `Throughput` has told yet.
    has_new_steps: bool,
}

impl WatchedRank {
    pub(super) fn new(number: u32, file: FollowedFile) -> Self {
        Self {
            number,
            file,
            heard_ms: None,
            host: None,
            run: ForeignRun::default(),
            slot: Slot::A,
            step: None,
            times: StepTimes::default(),
            phases: VecDeque::new(),
            phase: None,
            ended: None,
            told_s: None,
            steps: 0,
            has_new_steps: false,
        }
    }

    /// What it wrote since the last call.
    pub(super) fn poll(&mut self, now_ms: u64) -> RankNews {
        let mut news = RankNews::default();
        for followed in self.file.poll() {
            self.heard_ms = Some(now_ms);
            match followed {
                Followed::BegunAgain => self.ended = None,
                Followed::TooLong(line) => {
                    news.faults.push((line, "is longer than 1 MB".to_owned()));
                }
                Followed::Line(line, text) => match read(&text) {
                    Ok(line) => self.take(line.t, line.event, &mut news),
                    Err(why) => news.faults.push((line, why)),
                },
            }
        }
        news
    }

    fn take(&mut self, t: f64, event: WatchEvent, news: &mut RankNews) {
        let slot = self.slot;
        match event {
            WatchEvent::Hello(hello) => {
                self.ended = None;
                self.host.clone_from(&hello.host);
                news.events.push((t, Event::Hello(hello.into())));
            }
            WatchEvent::Run(run) => {
                self.run = ForeignRun { slot, ..run };
                self.run.rank.get_or_insert(self.number);
                news.events.push((t, Event::Run(self.run.clone())));
            }
            WatchEvent::Step(step) => self.take_step(t, step, news),
            WatchEvent::Gradients(it) => {
                news.events
                    .push((t, Event::Gradients(protocol::Gradients { slot, ..it })));
            }
            WatchEvent::Memory(it) => {
                news.events
                    .push((t, Event::Memory(protocol::Memory { slot, ..it })));
            }
            WatchEvent::Profile { step, ms, file } => {
                news.profiles.push(WrittenProfile {
                    slot,
                    step,
                    ms,
                    file,
                });
            }
            WatchEvent::Alive { phase } => self.phase = phase,
            WatchEvent::Log(message) => news.events.push((t, Event::Log(message))),
            WatchEvent::Ended { why } => {
                news.ended = true;
                if let Some(why) = &why {
                    let (level, text) = ("error".to_owned(), format!("The training ended: {why}"));
                    news.events
                        .push((t, Event::Log(LogMessage { level, text })));
                }
                self.ended = Some(why);
            }
        }
    }

    fn take_step(&mut self, t: f64, step: WatchStep, news: &mut RankNews) {
        if self.step.is_none() && self.run.name.is_empty() {
            // It told nothing of its run: this is all that is known.
            self.run.name = format!("rank {}", self.number);
            (self.run.slot, self.run.from_step) = (self.slot, step.step);
            news.events.push((t, Event::Run(self.run.clone())));
        }
        let step = step.into_step(self.slot);
        self.step = Some(step.step);
        self.steps += 1;
        self.told_s = match self.told_s {
            Some((first, _)) if t > first => Some((first, t)),
            Some(told) => Some(told),
            None => Some((t, t)),
        };
        self.phase = None;
        if !step.profiled && step.ms > 0.0 {
            self.has_new_steps = true;
            self.times.push(step.ms);
            if let Some(phases) = step.phases {
                if self.phases.len() == PHASES_OF {
                    self.phases.pop_front();
                }
                self.phases.push_back(phases);
            }
        }
        news.events.push((t, Event::Step(step)));
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// Begins to be B: what it says from now on is of a run that goes on from here.
    pub(super) fn become_b(&mut self) -> Event {
        self.slot = Slot::B;
        self.run.slot = Slot::B;
        self.run.from_step = self.step.map_or(self.run.from_step, |step| step + 1);
        (self.times, self.phases) = (StepTimes::default(), VecDeque::new());
        (self.told_s, self.steps) = (None, 0);
        Event::Run(self.run.clone())
    }

    /// Its rate so far, where steps came since it was asked last; `None` where it does not tell how many samples a step has, or when.
    pub(super) fn throughput(&mut self) -> Option<Throughput> {
        if !std::mem::take(&mut self.has_new_steps) {
            return None;
        }
        let (step_ms, samples) = (self.times.spread()?, self.run.samples? as f64);
        let (first, last) = self.told_s.filter(|(first, last)| last > first)?;
        let per_s = 1e3 / step_ms.median;
        Some(Throughput {
            slot: self.slot,
            step: self.step?,
            state: self.times.state(),
            step_ms,
            samples_per_s: samples * per_s,
            tokens_per_s: self.run.tokens.unwrap_or_default() as f64 * per_s,
            wall_samples_per_s: samples * (self.steps - 1) as f64 / (last - first),
            phases: self.typical_phases(),
            clock: "host".to_owned(),
            ..Throughput::default()
        })
    }

    fn typical_phases(&self) -> Option<PhaseTimes> {
        let phases: Vec<PhaseTimes> = self.phases.iter().copied().collect();
        typical_phases(&phases)
    }

    /// What is shown of it.
    pub(super) fn reading(&self, now_ms: u64) -> RankReading {
        let quiet_ms = now_ms.saturating_sub(self.heard_ms.unwrap_or(now_ms));
        let state = match &self.ended {
            Some(why) => RankState::Ended(why.clone()),
            None if quiet_ms >= SILENT_MS => RankState::Silent(quiet_ms),
            None => RankState::Running,
        };
        RankReading {
            rank: self.run.rank.unwrap_or(self.number),
            host: self.host.clone(),
            step: self.step,
            step_ms: self.times.spread().map(|spread| spread.median),
            phases: self.typical_phases(),
            phase: self.phase.clone(),
            state,
        }
    }
}
