//! One process of a training: its events, its rate, and the time since it fell silent.

use std::collections::VecDeque;

use super::follow::{Followed, FollowedFile};
use super::line::{WatchEvent, WatchStep, read};
use protocol::stats::robust::{StepTimes, typical_phases};
use protocol::{
    Event, ForeignRun, LogMessage, PROTOCOL, PhaseTimes, RankReading, Slot, Throughput,
};

/// Steps whose phases are averaged.
const PHASES_OF: usize = 256;
/// A process that wrote nothing, or made no step, for this long and for this many of its steps is said to be silent, or without a
/// step. It writes every two seconds while it lives.
const LONG_MS: f64 = 10_000.0;
const LONG_STEPS: f64 = 4.0;

/// A trace that a process wrote, to be read.
#[derive(Debug, PartialEq)]
pub(super) struct WrittenProfile {
    pub slot: Slot,
    pub step: u64,
    /// Length of that step in milliseconds, where it is told.
    pub ms: Option<f64>,
    /// Median length of the steps before it in milliseconds, without the profiler.
    pub usual_ms: Option<f64>,
    pub file: String,
}

/// The events, profiles and faults that the new lines of a process hold.
#[derive(Debug, Default)]
pub(super) struct RankNews {
    /// Each with its time in seconds since the program began to write.
    pub events: Vec<(f64, Event)>,
    /// The latest one.
    pub profile: Option<WrittenProfile>,
    /// Lines that could not be read: the place with the reason, and the reason alone.
    pub faults: Vec<(String, String)>,
    /// The file has more that is not read yet.
    pub is_behind: bool,
}

/// A process whose file is followed.
#[derive(Debug, Default)]
pub(super) struct WatchedRank {
    pub number: u32,
    file: FollowedFile,
    /// When it last wrote, and when its last step came, on the reader's clock in milliseconds.
    heard_ms: Option<u64>,
    stepped_ms: Option<u64>,
    host: Option<String>,
    run: ForeignRun,
    /// The slot that its events are about now.
    pub slot: Slot,
    /// Another training is watched beside this one.
    apart: bool,
    step: Option<u64>,
    times: StepTimes,
    /// The milliseconds of a step that the program spends on being watched.
    own: StepTimes,
    phases: VecDeque<PhaseTimes>,
    phase: Option<String>,
    /// Why it ended; empty where its training was over.
    ended: Option<String>,
    /// When its first and its latest step were told, in seconds, and how many there were.
    told_s: Option<(f64, f64)>,
    steps: u64,
    /// Steps came that no `Throughput` has told yet.
    has_new_steps: bool,
}

impl WatchedRank {
    pub(super) fn new(number: u32, file: FollowedFile, slot: Slot, apart: bool) -> Self {
        Self {
            number,
            file,
            slot,
            apart,
            ..Self::default()
        }
    }

    /// Returns what the process wrote since the last call.
    pub(super) fn poll(&mut self, now_ms: u64) -> RankNews {
        let mut news = RankNews::default();
        for followed in self.file.poll() {
            self.heard_ms = Some(now_ms);
            match followed {
                Followed::BegunAgain => self.begin_again(),
                Followed::TooLong(line) => {
                    self.note_fault(line, "is longer than 1 MB".to_owned(), &mut news);
                }
                Followed::Line(line, text) => {
                    let taken = read(&text)
                        .and_then(|read| self.take(read.t, read.event, now_ms, &mut news));
                    if let Err(why) = taken {
                        self.note_fault(line, why, &mut news);
                    }
                }
            }
        }
        news.is_behind = self.file.is_behind();
        news
    }

    fn note_fault(&self, line: u64, why: String, news: &mut RankNews) {
        let mut place = format!("rank {}, line {line}: {why}", self.number);
        if self.apart {
            place.insert_str(0, &format!("{:?}, ", self.slot));
        }
        news.faults.push((place, why));
    }

    /// Takes in what a line says; the error says why it is not shown.
    fn take(
        &mut self,
        t: f64,
        event: WatchEvent,
        now_ms: u64,
        news: &mut RankNews,
    ) -> Result<(), String> {
        let slot = self.slot;
        let told = match event {
            WatchEvent::Hello(hello) => {
                self.begin_again();
                self.host.clone_from(&hello.host);
                let protocol = PROTOCOL;
                Event::Hello(protocol::Hello { protocol, ..hello })
            }
            WatchEvent::Run(run) => {
                self.run = run;
                self.step = self.run.from_step.checked_sub(1);
                self.begins()
            }
            WatchEvent::Step(step) => return self.take_step(t, step, now_ms, news),
            WatchEvent::Gradients(gradients) => {
                Event::Gradients(protocol::Gradients { slot, ..gradients })
            }
            WatchEvent::Memory(memory) => Event::Memory(protocol::Memory { slot, ..memory }),
            WatchEvent::Profile { step, ms, file } => {
                news.profile = Some(WrittenProfile {
                    slot,
                    step,
                    ms,
                    usual_ms: self.times.spread().map(|spread| spread.median),
                    file,
                });
                return Ok(());
            }
            WatchEvent::Alive { phase } => {
                self.phase = phase;
                return Ok(());
            }
            WatchEvent::Log(message) => Event::Log(message),
            WatchEvent::Ended { why } => {
                self.ended = Some(why.clone().unwrap_or_default());
                let Some(why) = why else { return Ok(()) };
                Event::Log(LogMessage {
                    level: "error".to_owned(),
                    text: format!("The training ended: {why}"),
                })
            }
        };
        news.events.push((t, told));
        Ok(())
    }

    fn take_step(
        &mut self,
        t: f64,
        step: WatchStep,
        now_ms: u64,
        news: &mut RankNews,
    ) -> Result<(), String> {
        if let Some(before) = self.step.filter(|before| step.step <= *before) {
            return Err(not_after(step.step, before));
        }
        if self.run.name.is_empty() {
            // It told nothing of its run: this is all that is known.
            self.run.name = format!("rank {}", self.number);
            self.run.from_step = step.step;
            news.events.push((t, self.begins()));
        }
        let own_ms = step.own_ms;
        let step = step.into_step(self.slot);
        self.step = Some(step.step);
        self.stepped_ms = Some(now_ms);
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
            own_ms.into_iter().for_each(|ms| self.own.push(ms));
            if let Some(phases) = step.phases {
                if self.phases.len() == PHASES_OF {
                    self.phases.pop_front();
                }
                self.phases.push_back(phases);
            }
        }
        news.events.push((t, Event::Step(step)));
        Ok(())
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// Notes that its command has ended. The process cannot go on, even if it did not say that it was over.
    pub(super) fn end(&mut self, why: String) {
        self.ended.get_or_insert(why);
    }

    /// Forgets the run, because the job was begun again.
    fn begin_again(&mut self) {
        self.forget_steps();
        self.run = ForeignRun::default();
        self.step = None;
        self.ended = None;
    }

    /// Begins the statistics of steps anew.
    fn forget_steps(&mut self) {
        self.times = StepTimes::default();
        self.own = StepTimes::default();
        self.phases.clear();
        self.told_s = None;
        self.steps = 0;
    }

    /// Makes later events those of B, a run that goes on from the latest step. Returns the event with which it begins.
    pub(super) fn become_b(&mut self) -> Event {
        self.slot = Slot::B;
        self.run.from_step = self.step.map_or(self.run.from_step, |step| step + 1);
        self.forget_steps();
        self.begins()
    }

    /// Returns the event with which its run begins in its slot.
    fn begins(&self) -> Event {
        Event::Run(ForeignRun {
            slot: self.slot,
            apart: self.apart,
            rank: self.run.rank.or(Some(self.number)),
            ..self.run.clone()
        })
    }

    /// Returns the rate so far; `None` if no step came since the last call, or if the program does not tell the samples of a step or when
    /// it was written.
    pub(super) fn throughput(&mut self) -> Option<Throughput> {
        if !std::mem::take(&mut self.has_new_steps) {
            return None;
        }
        let step_ms = self.times.spread()?;
        let samples = self.run.samples? as f64;
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

    /// Returns the line of the screen about this process. `now_ms` is the reader's clock.
    pub(super) fn reading(&self, now_ms: u64) -> RankReading {
        let median = |times: &StepTimes| times.spread().map(|spread| spread.median);
        let step_ms = median(&self.times);
        let long_ms = LONG_MS.max(LONG_STEPS * step_ms.unwrap_or_default());
        let since = |at_ms: Option<u64>| {
            let passed_ms = now_ms.saturating_sub(at_ms.unwrap_or(now_ms));
            let goes_on = self.ended.is_none();
            (goes_on && passed_ms as f64 >= long_ms).then_some(passed_ms / 1000)
        };
        RankReading {
            slot: self.slot,
            rank: self.run.rank.unwrap_or(self.number),
            host: self.host.clone(),
            step: self.step,
            step_ms,
            phases: self.typical_phases(),
            phase: self.phase.clone(),
            own_ms: median(&self.own),
            no_step_s: since(self.stepped_ms),
            silent_s: since(self.heard_ms),
            ended: self.ended.clone(),
        }
    }
}

/// Why a step that does not come after the one before it is not shown.
pub(super) fn not_after(step: u64, before: u64) -> String {
    format!(
        "`step` is {step} after {before}: write {} or more, or `hello` before it",
        before.saturating_add(1)
    )
}
