//! The source of the screen when it shows a recording. Its lines come at their recorded pace, or step by step. Commands to an engine have no
//! effect.

use std::time::Instant;

use crate::app::source::{EventSource, FromEngine, ReplayControl};
use crate::record::Recording;
use protocol::{Command, Event, StreamLine};

/// A recording that is shown.
pub struct ReplaySource {
    recording: Recording,
    /// The index of the next line.
    at: usize,
    /// The present time, in seconds of the recording.
    clock: f64,
    /// The time of the last poll.
    polled_at: Instant,
    paused: bool,
    /// True while lines come at once, up to and including the next step.
    stepping: bool,
    /// The speed as a multiple of the recorded pace.
    speed: f64,
    /// True once the end was reported.
    has_ended: bool,
}

impl ReplaySource {
    pub fn new(recording: Recording, speed: f64) -> Self {
        let clock = recording.time(0).unwrap_or(0.0);
        Self {
            recording,
            at: 0,
            clock,
            polled_at: Instant::now(),
            paused: false,
            stepping: false,
            speed,
            has_ended: false,
        }
    }

    /// Moves on by some seconds of the viewer's time.
    fn advance(&mut self, seconds: f64) {
        if !self.paused {
            self.clock += seconds * self.speed;
        }
    }

    /// Returns the next line if it is due, or the end of the recording once.
    fn next_due(&mut self) -> Option<FromEngine> {
        let Some(time) = self.recording.time(self.at) else {
            let end = FromEngine::Gone {
                reason: "the recording ends here".to_owned(),
            };
            return (!std::mem::replace(&mut self.has_ended, true)).then_some(end);
        };
        if !self.stepping && time > self.clock {
            return None;
        }
        let line: StreamLine = self.recording.line(self.at)?;
        self.at += 1;
        if self.stepping && matches!(line.event, Event::Step(_)) {
            self.stepping = false;
            self.clock = time;
        }
        Some(FromEngine::Line(line))
    }
}

impl EventSource for ReplaySource {
    fn send(&mut self, _command: Command) {}

    fn try_recv(&mut self) -> Option<FromEngine> {
        let now = Instant::now();
        self.advance(now.duration_since(self.polled_at).as_secs_f64());
        self.polled_at = now;
        self.next_due()
    }

    fn restart(&mut self) {
        self.at = 0;
        self.has_ended = false;
        self.stepping = false;
        self.clock = self.recording.time(0).unwrap_or(0.0);
    }

    fn kill(&mut self) {}

    fn replay(&mut self, control: ReplayControl) {
        match control {
            ReplayControl::Pause => self.paused = true,
            ReplayControl::Resume => {
                self.paused = false;
                self.stepping = false;
            }
            ReplayControl::Step => {
                self.paused = true;
                self.stepping = true;
            }
            ReplayControl::Speed(times) if times.is_finite() && times > 0.0 => self.speed = times,
            ReplayControl::Speed(_) | ReplayControl::MarkB => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A recording of a greeting at 10 s and of three steps, one a second after it.
    fn recording() -> Recording {
        let mut lines = vec![
            concat!(
                r#"{"t":10.0,"event":"hello","protocol":1,"version":"0.1.0","pid":1,"#,
                r#""os":"linux","cores":2,"date":"2026-11-21"}"#,
            )
            .to_owned(),
        ];
        for (step, t) in [(0, 11.0), (1, 12.0), (2, 13.0)] {
            lines.push(format!(
                concat!(
                    r#"{{"t":{},"event":"step","slot":"a","step":{},"loss":6.9,"ms":3.0,"#,
                    r#""synced":true,"profiled":false,"phases":null}}"#,
                ),
                t, step
            ));
        }
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), lines.join("\n") + "\n").expect("written");
        Recording::read(file.path()).expect("a recording")
    }

    /// Takes all reports that are due and returns their number.
    fn drain(replay: &mut ReplaySource) -> usize {
        std::iter::from_fn(|| replay.next_due()).count()
    }

    #[test]
    fn lines_come_at_their_pace_and_the_end_is_reported_once() {
        let mut replay = ReplaySource::new(recording(), 2.0);
        assert_eq!(drain(&mut replay), 1, "the greeting at once");
        replay.advance(0.4);
        assert_eq!(drain(&mut replay), 0);
        replay.advance(0.2);
        assert_eq!(
            drain(&mut replay),
            1,
            "a second of the recording passes in half a second"
        );
        replay.advance(100.0);
        assert_eq!(drain(&mut replay), 3, "two steps and the end");
        replay.restart();
        assert_eq!(drain(&mut replay), 1);
    }

    #[test]
    fn a_paused_recording_goes_step_by_step() {
        let mut replay = ReplaySource::new(recording(), 1.0);
        replay.replay(ReplayControl::Pause);
        drain(&mut replay);
        replay.advance(100.0);
        assert_eq!(drain(&mut replay), 0);
        replay.replay(ReplayControl::Step);
        assert_eq!(drain(&mut replay), 1);
        replay.replay(ReplayControl::Resume);
        assert_eq!(drain(&mut replay), 0, "time did not pass during the pause");
        replay.advance(1.0);
        assert_eq!(drain(&mut replay), 1);
    }
}
