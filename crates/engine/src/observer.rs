//! Profiles one step: spans of our operations everywhere, and on CubeCL devices every launch with its device time.
//!
//! # Coverage
//!
//! On the CPU the timers around operations and the step use one clock, so rows are compared with the profiled step: they cover 98 to 99 %. On a
//! GPU the profiler keeps launches from following each other directly, so rows are compared with an unprofiled step that waits for the device
//! only at its end. What is not covered there is time in which the device waits for the host, because every launch is observed. On lavapipe the
//! device is the host: they take cores from each other, so the figure scatters around 100 %, or lies far below it when thousands of launches are
//! issued.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use burn::cubecl::logging::{
    LaunchObservation, LaunchObserver, ProfileDuration, TimingMethod, TimingRequest,
};

use super::rows::{self, TimedLaunch, Took};
use super::texts::short;
use super::wire::EventSender;
use protocol::{Event, KernelRow};
use tiny_llama::ops::cost::{self, Phase, Span};

/// A profile in progress: of the launches on this thread, or of spans alone on the CPU device.
pub(crate) struct Profile {
    observed: Option<Observed>,
}

/// A finished profile.
#[derive(Clone, Debug, Default)]
pub struct Profiled {
    pub rows: Vec<KernelRow>,
    pub launches: u32,
    pub launches_by_phase: [u32; 3],
    pub unique: u32,
    /// `device`, `system` or `host`.
    pub clock: String,
}

/// Starts a profile on this thread.
pub(crate) fn start(cpu: bool) -> Profile {
    cost::start();
    Profile {
        observed: (!cpu).then(start_launches),
    }
}

/// Times launches on this thread and nothing else.
pub(crate) fn start_launches() -> Observed {
    let launches = Arc::new(Launches::default());
    let observation = LaunchObservation::new(launches.clone());
    // The device's clock may be a little behind.
    let now = Instant::now();
    let began = now.checked_sub(Duration::from_secs(1)).unwrap_or(now);
    Observed {
        launches,
        observation,
        began,
    }
}

/// Launches being timed.
pub(crate) struct Observed {
    launches: Arc<Launches>,
    observation: LaunchObservation,
    began: Instant,
}

impl Observed {
    /// The launches in order, and the clock that timed them: `device` or `system`. Call after a sync.
    fn read(self) -> (Vec<TimedLaunch>, &'static str) {
        drop(self.observation);
        let mut clock = "device";
        let seen = std::mem::take(&mut *self.launches.seen());
        let read = seen.into_iter().map(|(span, kernel, timing)| {
            let (took, method) = timing.read(self.began);
            if method == TimingMethod::System {
                clock = "system";
            }
            let kernel = short(kernel);
            TimedLaunch { span, kernel, took }
        });
        (read.collect(), clock)
    }

    /// How long each took, in order, and on which clock. Call after a sync.
    pub(crate) fn lengths(self) -> (Vec<Duration>, &'static str) {
        let (launches, clock) = self.read();
        let lengths = launches.into_iter().map(|launch| launch.took.length);
        (lengths.collect(), clock)
    }
}

impl Profile {
    /// Runs work that is not part of the step, and keeps it out of the profile.
    pub(crate) fn excluding<R>(&self, work: impl FnOnce() -> R) -> R {
        let before = self.observed.as_ref().map(|it| it.launches.seen().len());
        let result = work();
        if let (Some(observed), Some(count)) = (&self.observed, before) {
            observed.launches.seen().truncate(count);
        }
        result
    }

    /// Ends it. Call after the closing sync.
    pub(crate) fn stop(self) -> Profiled {
        let spans = cost::stop();
        let on_host = self.observed.is_none();
        let (launches, clock) = match self.observed {
            Some(observed) => observed.read(),
            None => (timed_by_spans(&spans), "host"),
        };
        let span_of = |launch: &TimedLaunch| launch.span.and_then(|span| spans.get(span));
        let mut launches_by_phase = [0; 3];
        // A launch between two operations belongs to the phase of the one before.
        let mut last = Phase::Backward;
        for launch in &launches {
            last = span_of(launch).map_or(last, |span| span.row.phase);
            launches_by_phase[last as usize] += 1;
        }
        let kinds = launches.iter().map(|launch| {
            // On the host the versions of different operations have the same names.
            let span = span_of(launch).filter(|_| on_host);
            let operation = span.map(|span| (span.row.op, span.row.phase.into_str()));
            (operation, &launch.kernel)
        });
        let unique: BTreeSet<_> = kinds.collect();
        Profiled {
            unique: unique.len() as u32,
            rows: rows::from_launches(&spans, &launches),
            launches: launches.len() as u32,
            launches_by_phase,
            clock: clock.to_owned(),
        }
    }
}

/// The launches of a device whose work is timed by the spans themselves: one for each.
fn timed_by_spans(spans: &[Span]) -> Vec<TimedLaunch> {
    let launch = |(index, span): (usize, &Span)| TimedLaunch {
        span: Some(index),
        kernel: span.row.version.to_owned(),
        took: Took {
            start: Some(span.start),
            length: span.length,
        },
    };
    spans.iter().enumerate().map(launch).collect()
}

enum Timing {
    Unread(ProfileDuration),
    Read(Duration, TimingMethod),
}

impl Timing {
    /// When it ran, counted from `began`, and its clock; waits for the device if it is not finished.
    fn read(self, began: Instant) -> (Took, TimingMethod) {
        match self {
            Self::Unread(profile) => {
                let method = profile.timing_method();
                let ticks = burn::cubecl::future::block_on(profile.resolve());
                let took = Took {
                    start: ticks.as_ref().map(|it| it.start_duration_since(began)),
                    length: ticks.map_or(Duration::ZERO, |ticks| ticks.duration()),
                };
                (took, method)
            }
            Self::Read(length, method) => {
                let start = None;
                (Took { start, length }, method)
            }
        }
    }
}

/// A launch: the span it belongs to, its kernel, its time.
type Seen = (Option<usize>, &'static str, Timing);

#[derive(Default)]
struct Launches {
    seen: Mutex<Vec<Seen>>,
}

impl Launches {
    fn seen(&self) -> MutexGuard<'_, Vec<Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, kernel: &'static str, timing: Timing) {
        self.seen().push((cost::current(), kernel, timing));
    }
}

impl LaunchObserver for Launches {
    fn launched(&self, _: &'static str) {}

    fn timing(&self) -> TimingRequest {
        TimingRequest::Deferred
    }

    fn profiled(&self, kernel: &'static str, profile: ProfileDuration) {
        self.push(kernel, Timing::Unread(profile));
    }

    fn timed(&self, kernel: &'static str, length: Duration, method: TimingMethod) {
        self.push(kernel, Timing::Read(length, method));
    }
}

/// Reports each kernel when it is first used. A step that compiles may take a minute, so this cannot wait for the step's
/// end, and how many kernels will be compiled is not known in advance.
pub(crate) struct Compiling {
    outlet: EventSender,
    seen: Mutex<BTreeSet<&'static str>>,
}

impl Compiling {
    pub(crate) fn new(outlet: EventSender) -> Self {
        Self {
            outlet,
            seen: Mutex::default(),
        }
    }

    /// Watches launches until the guard drops.
    pub(crate) fn watch(self: &Arc<Self>) -> LaunchObservation {
        LaunchObservation::new(self.clone())
    }
}

impl LaunchObserver for Compiling {
    fn launched(&self, kernel: &'static str) {
        if let Ok(mut seen) = self.seen.lock()
            && seen.insert(kernel)
        {
            self.outlet.send(Event::Compiling {
                kernels: seen.len() as u32,
                latest: short(kernel),
            });
        }
    }
}
