//! Profiles one step. On every device the operations report their spans; on a GPU each launch is timed as well.
//!
//! # Coverage
//!
//! On the CPU the timers around operations and the step use one clock, so rows are compared with the profiled step: they cover 98 to 99 %.
//! On a GPU the profiler keeps launches from following each other directly, so rows are compared with an unprofiled step that waits for the
//! device only at its end. Every launch is observed, so the uncovered time is time in which the device waits for the host. On lavapipe the
//! device is the host, and both take cores from each other. The figure then scatters around 100 %, or is far below it if there are thousands
//! of launches.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use burn::cubecl::logging::{
    LaunchObservation, LaunchObserver, ProfileDuration, TimingMethod, TimingRequest,
};

use super::rows::{self, LaunchTime, TimedLaunch};
use super::texts::short_name;
use super::wire::EventSender;
use protocol::{Event, KernelRow};
use tiny_llama::ops::cost::{self, Phase, Span};

/// A profile in progress. It records spans, and on a GPU also the launches of this thread.
pub(crate) struct Profile {
    observed: Option<Observed>,
}

/// A finished profile.
#[derive(Clone, Debug, Default)]
pub struct Profiled {
    pub rows: Vec<KernelRow>,
    pub launches: u32,
    /// The numbers of launches in forward, backward and optimizer.
    pub launches_by_phase: [u32; 3],
    /// The number of different kernels; on the CPU, of different operations with their phase and version.
    pub unique: u32,
    /// The clock that timed the launches: `device`, `system` or `host`.
    pub clock: String,
}

impl Profiled {
    /// Returns the sum of all rows in milliseconds.
    pub(crate) fn device_ms(&self) -> f64 {
        self.rows.iter().map(|row| row.ms).sum()
    }
}

/// Starts a profile on this thread.
pub(crate) fn start(on_cpu: bool) -> Profile {
    cost::start();
    Profile {
        observed: (!on_cpu).then(start_launches),
    }
}

/// Starts to time launches on this thread, without spans.
pub(crate) fn start_launches() -> Observed {
    let launches = Arc::new(Launches::default());
    let observation = LaunchObservation::new(launches.clone());
    // The device's clock may be a little behind the host's.
    let now = Instant::now();
    let began = now.checked_sub(Duration::from_secs(1)).unwrap_or(now);
    Observed {
        launches,
        observation,
        began,
    }
}

/// An observation in progress: the launches of this thread are timed until it is read.
pub(crate) struct Observed {
    launches: Arc<Launches>,
    observation: LaunchObservation,
    began: Instant,
}

impl Observed {
    /// Returns the launches in order, and the clock that timed them: `device` or `system`. Call it after a sync.
    fn read(self) -> (Vec<TimedLaunch>, &'static str) {
        drop(self.observation);
        let mut clock = "device";
        let mut launches = Vec::new();
        for (span, kernel, timing) in std::mem::take(&mut *self.launches.seen()) {
            let (took, method) = timing.read(self.began);
            if method == TimingMethod::System {
                clock = "system";
            }
            launches.push(TimedLaunch {
                span,
                kernel: short_name(kernel),
                took,
            });
        }
        (launches, clock)
    }

    /// Returns the length of each launch in order, and the clock that timed them: `device` or `system`. Call it after a sync.
    pub(crate) fn lengths(self) -> (Vec<Duration>, &'static str) {
        let (launches, clock) = self.read();
        let lengths = launches.into_iter().map(|launch| launch.took.length);
        (lengths.collect(), clock)
    }
}

impl Profile {
    /// Runs `work`, which is not part of the step, and keeps its launches out of the profile.
    pub(crate) fn excluding<R>(&self, work: impl FnOnce() -> R) -> R {
        let Some(observed) = &self.observed else {
            return work();
        };
        let launches_before = observed.launches.seen().len();
        let result = work();
        observed.launches.seen().truncate(launches_before);
        result
    }

    /// Ends the profile and reads it. Call it after the closing sync.
    pub(crate) fn stop(self) -> Profiled {
        let spans = cost::stop();
        let on_host = self.observed.is_none();
        let (launches, clock) = match self.observed {
            Some(observed) => observed.read(),
            None => (timed_by_spans(&spans), "host"),
        };
        let span_of = |launch: &TimedLaunch| launch.span.and_then(|span| spans.get(span));
        let mut launches_by_phase = [0; 3];
        let mut unique = BTreeSet::new();
        // A launch between two operations belongs to the phase of the earlier one.
        let mut phase = Phase::Backward;
        for launch in &launches {
            let row = span_of(launch).map(|span| &span.row);
            phase = row.map_or(phase, |row| row.phase);
            launches_by_phase[phase as usize] += 1;
            let operation = row.map(|row| (row.op, row.phase.into_str()));
            // On the host a kernel has the name of a version, which several operations share.
            unique.insert((if on_host { operation } else { None }, &launch.kernel));
        }
        Profiled {
            unique: unique.len() as u32,
            rows: rows::from_launches(&spans, &launches),
            launches: launches.len() as u32,
            launches_by_phase,
            clock: clock.to_owned(),
        }
    }
}

/// Returns one launch for each span, for a device whose work the spans themselves time.
fn timed_by_spans(spans: &[Span]) -> Vec<TimedLaunch> {
    let launch = |(index, span): (usize, &Span)| TimedLaunch {
        span: Some(index),
        kernel: span.row.version.to_owned(),
        took: LaunchTime {
            start: Some(span.start),
            length: span.length,
        },
    };
    spans.iter().enumerate().map(launch).collect()
}

/// The time of a launch, which may still have to be read from the device.
enum Timing {
    Unread(ProfileDuration),
    Read(Duration, TimingMethod),
}

impl Timing {
    /// Returns the time at which the launch ran, counted from `began`, and the clock that measured it. Waits for the end of the launch.
    fn read(self, began: Instant) -> (LaunchTime, TimingMethod) {
        match self {
            Self::Unread(profile) => {
                let method = profile.timing_method();
                let ticks = burn::cubecl::future::block_on(profile.resolve());
                let took = LaunchTime {
                    start: ticks
                        .as_ref()
                        .map(|ticks| ticks.start_duration_since(began)),
                    length: ticks.map_or(Duration::ZERO, |ticks| ticks.duration()),
                };
                (took, method)
            }
            Self::Read(length, method) => {
                let took = LaunchTime {
                    start: None,
                    length,
                };
                (took, method)
            }
        }
    }
}

/// A launch: the index of its span, the name of its kernel, and its time.
type SeenLaunch = (Option<usize>, &'static str, Timing);

#[derive(Default)]
struct Launches {
    seen: Mutex<Vec<SeenLaunch>>,
}

impl Launches {
    fn seen(&self) -> MutexGuard<'_, Vec<SeenLaunch>> {
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

/// Reports each kernel when it is first used, because a step that compiles may take a minute. The number of kernels that will be compiled is
/// not known in advance.
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

    /// Watches the launches of this thread until the returned guard is dropped.
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
                latest: short_name(kernel),
            });
        }
    }
}
