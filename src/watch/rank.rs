//! One process of a training. Its lines become events, its steps a rate, and the time since its last line shows if it is silent.

use std::collections::VecDeque;

use super::follow::{Followed, FollowedFile};
use super::line::{WatchEvent, WatchStep, read};
use protocol::stats::robust::{StepTimes, typical_phases};
use protocol::{
    Event, ForeignRun, LogMessage, PROTOCOL, PhaseTimes, RankReading, Slot, Throughput,
};

/// The number of steps whose phases are averaged.
const PHASE_STEPS: usize = 256;
/// The least time without a line, or without a step, after which a process is silent, or makes no step. A living process writes every two
/// seconds.
const MIN_SILENCE_MS: f64 = 10_000.0;
/// The least of these times in steps of the process.
const MIN_SILENCE_STEPS: f64 = 4.0;

/// A trace that a process wrote and that is not read yet.
#[derive(Debug, PartialEq)]
pub(super) struct WrittenProfile {
    pub slot: Slot,
    pub step: u64,
    /// The length of the profiled step in milliseconds. `None` if the program did not report it.
    pub ms: Option<f64>,
    /// The median length in milliseconds of the steps before, without the profiler.
    pub usual_ms: Option<f64>,
    /// The name of the file in the folder of the process.
    pub file: String,
}

/// What the new lines of a process hold.
#[derive(Debug, Default)]
pub(super) struct NewLines {
    /// The events, each with its time in seconds since the program began to write.
    pub events: Vec<(f64, Event)>,
    /// The latest profile.
    pub profile: Option<WrittenProfile>,
    /// The lines that could not be read, each as its place with the reason, and as the reason alone.
    pub faults: Vec<(String, String)>,
    /// True if the file has more lines that are not read yet.
    pub is_behind: bool,
}

/// A process whose file is followed.
#[derive(Debug, Default)]
pub(super) struct WatchedRank {
    pub number: u32,
    file: FollowedFile,
    /// The time of the last line on the reader's clock, in milliseconds.
    wrote_ms: Option<u64>,
    /// The time of the last step on the reader's clock, in milliseconds.
    stepped_ms: Option<u64>,
    host: Option<String>,
    run: ForeignRun,
    /// The slot of the process's next events.
    pub slot: Slot,
    /// True if another training is watched beside this one.
    apart: bool,
    /// The number of the latest step.
    step: Option<u64>,
    times: StepTimes,
    /// The times that the program spends on being watched, one for each step.
    own_times: StepTimes,
    phases: VecDeque<PhaseTimes>,
    /// The phase that the process is in.
    phase: Option<String>,
    /// The reason why the process ended. Empty if its training is complete.
    ended: Option<String>,
    /// The times of the first and the latest step on the program's clock, in seconds.
    step_span_s: Option<(f64, f64)>,
    /// The number of steps so far.
    steps: u64,
    /// True if there are steps since the last `Throughput`.
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

    /// Reads the lines that the process wrote since the last call. `now_ms` is the reader's clock.
    pub(super) fn poll(&mut self, now_ms: u64) -> NewLines {
        let mut found = NewLines::default();
        for followed in self.file.poll() {
            self.wrote_ms = Some(now_ms);
            let (number, line) = match followed {
                Followed::Line(number, text) => (number, read(&text)),
                Followed::TooLong(number) => (number, Err("is longer than 1 MB".to_owned())),
                Followed::BegunAgain => {
                    self.forget_run();
                    continue;
                }
            };
            let result = line.and_then(|line| self.on_event(line.t, line.event, &mut found));
            if let Err(why) = result {
                found.faults.push(self.fault(number, why));
            }
        }
        found.is_behind = self.file.is_behind();
        found
    }

    /// Returns a fault as its place with the reason, and as the reason alone.
    fn fault(&self, line: u64, why: String) -> (String, String) {
        let place = format!("rank {}, line {line}: {why}", self.number);
        if self.apart {
            (format!("{:?}, {place}", self.slot), why)
        } else {
            (place, why)
        }
    }

    /// Applies an event of the program and adds the event that the screen receives for it.
    ///
    /// # Errors
    /// Returns the reason if the line does not fit the lines before it.
    fn on_event(&mut self, t: f64, event: WatchEvent, found: &mut NewLines) -> Result<(), String> {
        let slot = self.slot;
        let shown = match event {
            WatchEvent::Hello(hello) => {
                self.forget_run();
                self.host.clone_from(&hello.host);
                let protocol = PROTOCOL;
                Event::Hello(protocol::Hello { protocol, ..hello })
            }
            WatchEvent::Run(run) => {
                self.run = run;
                self.step = self.run.from_step.checked_sub(1);
                self.run_event()
            }
            WatchEvent::Step(step) => return self.on_step(t, step, found),
            WatchEvent::Gradients(gradients) => {
                Event::Gradients(protocol::Gradients { slot, ..gradients })
            }
            WatchEvent::Memory(memory) => Event::Memory(protocol::Memory { slot, ..memory }),
            WatchEvent::Profile { step, ms, file } => {
                found.profile = Some(WrittenProfile {
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
        found.events.push((t, shown));
        Ok(())
    }

    /// Applies a step of the program. A step before the run's description begins a run that has only a name.
    fn on_step(&mut self, t: f64, new: WatchStep, found: &mut NewLines) -> Result<(), String> {
        if let Some(before) = self.step.filter(|before| new.step <= *before) {
            return Err(not_after(new.step, before));
        }
        if self.run.name.is_empty() {
            self.run.name = format!("rank {}", self.number);
            self.run.from_step = new.step;
            found.events.push((t, self.run_event()));
        }
        let own_ms = new.own_ms;
        let step = new.into_step(self.slot);
        self.step = Some(step.step);
        self.stepped_ms = self.wrote_ms;
        self.steps += 1;
        let (first_s, latest_s) = self.step_span_s.unwrap_or((t, t));
        self.step_span_s = Some((first_s, if t > first_s { t } else { latest_s }));
        self.phase = None;
        if !step.profiled && step.ms > 0.0 {
            self.has_new_steps = true;
            self.times.push(step.ms);
            own_ms.into_iter().for_each(|ms| self.own_times.push(ms));
            if let Some(phases) = step.phases {
                if self.phases.len() == PHASE_STEPS {
                    self.phases.pop_front();
                }
                self.phases.push_back(phases);
            }
        }
        found.events.push((t, Event::Step(step)));
        Ok(())
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// Ends the process, because its command has ended. A reason that the process wrote itself stays.
    pub(super) fn end(&mut self, why: String) {
        self.ended.get_or_insert(why);
    }

    /// Forgets the run, because the process writes a new one.
    fn forget_run(&mut self) {
        self.forget_steps();
        self.run = ForeignRun::default();
        self.step = None;
        self.ended = None;
    }

    /// Forgets the statistics of the steps.
    fn forget_steps(&mut self) {
        self.times = StepTimes::default();
        self.own_times = StepTimes::default();
        self.phases.clear();
        self.step_span_s = None;
        self.steps = 0;
    }

    /// Makes the process's next steps a run in slot B, which goes on from the latest step. Returns the event that begins this run.
    pub(super) fn become_b(&mut self) -> Event {
        self.slot = Slot::B;
        self.run.from_step = self.step.map_or(self.run.from_step, |step| step + 1);
        self.forget_steps();
        self.run_event()
    }

    /// Returns the event that begins the run in its slot.
    fn run_event(&self) -> Event {
        Event::Run(ForeignRun {
            slot: self.slot,
            apart: self.apart,
            rank: self.run.rank.or(Some(self.number)),
            ..self.run.clone()
        })
    }

    /// Returns the rate so far. `None` if no step came since the last call, or if the program does not report the samples of a step or the
    /// times of its lines.
    pub(super) fn throughput(&mut self) -> Option<Throughput> {
        if !std::mem::take(&mut self.has_new_steps) {
            return None;
        }
        let step_ms = self.times.spread()?;
        let samples = self.run.samples? as f64;
        let (first_s, last_s) = self.step_span_s.filter(|(first, last)| last > first)?;
        let per_s = 1e3 / step_ms.median;
        Some(Throughput {
            slot: self.slot,
            step: self.step?,
            state: self.times.state(),
            step_ms,
            samples_per_s: samples * per_s,
            tokens_per_s: self.run.tokens.unwrap_or_default() as f64 * per_s,
            wall_samples_per_s: samples * (self.steps - 1) as f64 / (last_s - first_s),
            phases: self.typical_phases(),
            clock: "host".to_owned(),
            ..Throughput::default()
        })
    }

    fn typical_phases(&self) -> Option<PhaseTimes> {
        let phases: Vec<PhaseTimes> = self.phases.iter().copied().collect();
        typical_phases(&phases)
    }

    /// Returns the state of this process for the screen. `now_ms` is the reader's clock.
    pub(super) fn reading(&self, now_ms: u64) -> RankReading {
        let median = |times: &StepTimes| times.spread().map(|spread| spread.median);
        let step_ms = median(&self.times);
        let silence_ms = MIN_SILENCE_MS.max(MIN_SILENCE_STEPS * step_ms.unwrap_or_default());
        let long_since_s = |last_ms: Option<u64>| {
            let passed_ms = now_ms.saturating_sub(last_ms.unwrap_or(now_ms));
            let is_long = passed_ms as f64 >= silence_ms;
            (self.ended.is_none() && is_long).then_some(passed_ms / 1000)
        };
        RankReading {
            slot: self.slot,
            rank: self.run.rank.unwrap_or(self.number),
            host: self.host.clone(),
            step: self.step,
            step_ms,
            phases: self.typical_phases(),
            phase: self.phase.clone(),
            own_ms: median(&self.own_times),
            no_step_s: long_since_s(self.stepped_ms),
            silent_s: long_since_s(self.wrote_ms),
            ended: self.ended.clone(),
        }
    }
}

/// Returns the fault of a step whose number is not above the number of the step before.
pub(super) fn not_after(step: u64, before: u64) -> String {
    format!(
        "`step` is {step} after {before}: write {} or more, or `hello` before it",
        before.saturating_add(1)
    )
}
