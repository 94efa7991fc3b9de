//! The state behind the screen. Each key, engine line and tick arrives as a `Message`; `update` changes `App` and returns
//! the `Effect`s that the shell has to carry out. Nothing here knows a colour, a key or a clock, and nothing waits.

mod actions;
mod attempts;
pub mod beats;
pub mod bench;
mod bounds;
pub mod busy;
pub mod comparison;
pub mod devices;
mod edit;
pub mod estimate;
mod events;
pub mod exercise;
pub mod figures;
pub mod guide;
pub mod kernel_rows;
pub mod lane_view;
pub mod learner;
mod lesson;
pub mod log;
mod may;
pub mod member;
pub mod message;
pub mod mode;
pub mod mystery;
pub mod notes;
pub mod opened;
pub mod pages;
mod part;
pub mod presenter;
pub mod run;
mod run_timeline;
mod runs;
pub mod source;
pub mod timeline;
pub mod view;
mod view_actions;
mod watchdog;

use std::sync::Arc;

use crate::course::save_file::{Progress, ProgressChange};
use crate::course::{Course, Stage};
use crate::sanitize;
use protocol::config::{Preset, RunConfig};

pub use crate::panel::Panel;
pub use may::Refusal;
pub use message::{Action, DrawnFrame, Effect, Message};
pub use mode::{Mode, Replay};
pub use presenter::{AudienceScreen, Presenter};
pub use run::{RequestedRun, RunState};
pub use view::{
    AfterSkip, Axis, Confirm, Markers, Notice, Overlay, ScreenSize, Smoothing, Sort, ThemeName,
    View, Window,
};

use bench::Bench;
use devices::Devices;
use exercise::{ExerciseState, Exercises};
use learner::LearnerState;
pub use lesson::Lesson;
use member::{JoinSettings, Membership};

/// The options of the command line that the screen starts with.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// `auto`, `cpu`, `gpu`, `gpu:N` or `vulkan-cpu`. `None` means `auto`.
    pub device: Option<String>,
    /// The model size for every stage. `None` leaves each stage its own size.
    pub preset: Option<Preset>,
    /// The number of the stage to begin with. `None` begins where the learner was.
    pub stage: Option<u32>,
    /// A configuration to run without a stage, with every knob offered.
    pub free: Option<RunConfig>,
    /// The seed, if one was named, and the level of a mystery to play instead of a stage.
    pub mystery: Option<(Option<u64>, u8)>,
    pub theme: ThemeName,
    pub markers: Markers,
    /// A recording to show instead of a live engine.
    pub recording: Option<Replay>,
    /// Starts in presenter mode.
    pub present: bool,
    /// Shows the welcome card first, because the program runs for the first time.
    pub welcome: bool,
    /// The class that the learner joins.
    pub room: Option<JoinSettings>,
    /// A sentence for the first screen, for example that progress was set aside or that a recording is incomplete.
    pub notice: Option<String>,
}

/// Everything that the screen shows, in parts.
#[derive(Clone, Debug)]
pub struct App {
    /// The course, and where the learner is in it.
    pub lesson: Lesson,
    /// A and B, and the requested run.
    pub bench: Bench,
    pub exercise: Exercises,
    /// The class that the learner is in. `None` while they learn alone.
    pub class: Option<Box<Membership>>,
    /// Stages shown to an audience.
    pub presenter: Presenter,
    pub devices: Devices,
    pub view: View,
    pub mode: Mode,
    pub clock: Clock,
    /// The effects collected so far for the message in progress.
    effects: Vec<Effect>,
}

/// The time, in milliseconds since the program began.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock {
    pub now_ms: u64,
    /// The time of the last action.
    pub(crate) touched_ms: u64,
}

/// A run pauses after this many milliseconds without a key.
const IDLE_MS: u64 = 600_000;
/// A gap between two ticks longer than this means that the program was suspended and has just been resumed.
const ASLEEP_MS: u64 = 10_000;

/// How long a notice stays on the screen.
const NOTICE_MS: u64 = 8_000;

impl App {
    /// Returns the state before the first message, and the effects to begin with.
    pub fn new(course: Course, progress: Progress, options: Options) -> (Self, Vec<Effect>) {
        let mut app = Self::unstarted(course, progress, &options);
        if let Some(text) = &options.notice {
            app.tell(text, true);
        }
        if !app.lesson.course.problems.is_empty() {
            app.view.overlay = Some(Overlay::Problems);
        }
        let at = app.first_stage(options.stage);
        app.lesson.learner.at = at;
        let replayed = options.recording.is_some();
        if let Some((seed, level)) = options.mystery {
            let unsolved = mystery::unsolved(&app.lesson.learner.progress, level);
            app.run_mystery(seed.unwrap_or(unsolved), level);
        } else if let Some(config) = options.free {
            app.run_free(config);
        } else if !options.present || replayed {
            // In a live presentation, the learner's own run begins when the presentation is left.
            let skipped = app.lesson.mark_skipped(at, &app.mode);
            app.carry_out(skipped);
            app.enter(at);
            if options.stage.is_some() && app.has_card(Overlay::Skipped) {
                app.tell("M shows what the skipped stages were about", false);
            }
        }
        if options.present {
            // A presentation continues at the beat where the last one ended.
            match (options.stage, app.lesson.presented()) {
                (None, Some((last_at, beat))) => app.begin_presentation(last_at, beat),
                _ => app.begin_presentation(at, 0),
            }
            app.probe_devices();
        } else if options.welcome && !replayed && app.view.overlay.is_none() {
            app.view.overlay = Some(Overlay::Welcome);
            app.effects.push(Effect::Save(ProgressChange::Welcomed));
        } else if options.stage.is_some() && !replayed {
            app.catch_up();
        }
        let effects = std::mem::take(&mut app.effects);
        (app, effects)
    }

    /// Makes the state in which nothing has begun.
    fn unstarted(course: Course, progress: Progress, options: &Options) -> Self {
        let recording = options.recording.clone();
        Self {
            lesson: Lesson {
                course: Arc::new(course),
                learner: LearnerState::new(progress, recording.is_some()),
                journey: None,
            },
            bench: Bench {
                preset: options.preset,
                ..Bench::default()
            },
            exercise: Exercises::default(),
            class: options.room.clone().map(|settings| {
                let mut member = Box::<Membership>::default();
                member.me = settings;
                member
            }),
            presenter: Presenter::default(),
            devices: Devices::new(options.device.as_deref().unwrap_or("auto")),
            view: View {
                size: (80, 24),
                focus: Some(Panel::Lesson),
                theme: options.theme,
                markers: options.markers,
                revision: 1,
                ..View::default()
            },
            mode: recording.map_or(Mode::Stage, Mode::Replay),
            clock: Clock::default(),
            effects: Vec::new(),
        }
    }

    /// Returns the index of the stage to begin with: the one with this number, else the one where the learner was, else the first one.
    fn first_stage(&mut self, number: Option<u32>) -> usize {
        let place = match (number, &self.lesson.learner.progress.current) {
            (Some(number), _) => self.lesson.place_of_number(number),
            (None, Some(id)) => self.lesson.place_of(id),
            (None, None) => None,
        };
        if let (Some(number), None) = (number, place) {
            let text = format!("There is no stage {number}; showing the first one");
            self.tell(&text, true);
        }
        place.unwrap_or(0)
    }

    /// Returns the stage that the learner is in. `None` in an empty course and in a run without a stage.
    pub fn stage(&self) -> Option<&Stage> {
        self.lesson.stage(&self.mode)
    }

    /// Shows a sentence on the screen for a few seconds. A warning stands out.
    pub fn tell(&mut self, text: &str, warning: bool) {
        self.view.notice = Some(Notice {
            text: sanitize::line(text),
            warning,
            until_ms: self.clock.now_ms + NOTICE_MS,
        });
    }

    /// Returns true if pairs were measured to their end and nothing has run since.
    pub fn pairs_ended(&self) -> bool {
        let pair = self.shown_pair();
        self.shown_run().state == RunState::Finished && pair.is_some_and(|pair| pair.done)
    }
}

/// Applies one message and returns the effects that the shell has to carry out. The state changes nowhere else.
pub fn update(app: &mut App, message: Message) -> Vec<Effect> {
    app.view.revision += 1;
    app.handle(message);
    let mut effects = std::mem::take(&mut app.effects);
    if !app.keeps_progress() {
        effects.retain(|effect| {
            !matches!(
                effect,
                Effect::Save(ProgressChange::Stage(..) | ProgressChange::Current(_))
                    | Effect::WriteKnobs { .. }
            )
        });
    }
    effects
}

impl App {
    fn handle(&mut self, message: Message) {
        match message {
            Message::Action(action) => self.act(action),
            Message::Engine(report) => self.on_engine_report(report),
            // The learner may have left the exercise since its recording sent this.
            Message::Recorded(report) if self.mode.is_watching() => self.on_report(report),
            Message::Recorded(_) => {}
            Message::Tick { now_ms } => self.tick(now_ms),
            Message::Resized { width, height } => self.view.size = (width, height),
            Message::Drawn(limits) => {
                self.view.overlay_scroll = self.view.overlay_scroll.min(limits.overlay);
                let panels = limits.panels.into_iter().collect();
                let last_limits = std::mem::replace(&mut self.view.limits, panels);
                self.view.rows = limits.rows;
                // The guidance and the footer were drawn with the old limits, so only new limits need another frame.
                if last_limits == self.view.limits {
                    self.view.revision -= 1;
                }
            }
            Message::FileSaved { config } => self.on_file_saved(config),
            Message::FileRead { stage, config } if self.presenter.presentation.is_none() => {
                let follows = self.bench.on_file_read(&stage, config);
                self.carry_out(follows);
            }
            Message::FileRead { .. } => {}
            Message::KernelsRead {
                device,
                config,
                texts,
            } => self.view.on_kernels_read(device, config, texts),
            Message::Journey(journey) => {
                self.lesson.journey = journey.map(|table| bounds::journey(*table))
            }
            Message::Exercise { exercise, news } => {
                let at = self.lesson.place_of_exercise(&exercise);
                self.in_exercise(at, |exercises, context| exercises.on_news(news, context));
            }
            Message::Room(news) => {
                self.in_class(|member, app| member.on_news(news, app));
            }
            Message::ProgressUnsaved { why } => {
                if why.is_none() {
                    self.tell("Progress is saved again", false);
                }
                self.view.unsaved = why.map(|why| sanitize::line(&why));
            }
            Message::Notice { text, warning } => self.tell(&text, warning),
        }
        // The message may have paused the run that a measurement waits for, or resumed it during a kernel exercise.
        self.in_open_exercise(ExerciseState::settle);
    }

    /// Pauses the run after `IDLE_MS` without a key, except in a presentation. `before_ms` is the time of the last tick.
    fn pause_when_idle(&mut self, before_ms: u64) {
        if self.clock.now_ms.saturating_sub(before_ms) > ASLEEP_MS {
            self.clock.touched_ms = self.clock.now_ms;
        }
        let is_idle = self.clock.now_ms.saturating_sub(self.clock.touched_ms) >= IDLE_MS;
        let runs = self.bench.run.state == RunState::Running && !self.bench.pairing();
        if is_idle && runs && self.presenter.presentation.is_none() {
            self.pause();
            let text = "No key was pressed for ten minutes: the run is paused; space resumes it";
            self.tell(text, false);
            if let Some(notice) = &mut self.view.notice {
                notice.until_ms = u64::MAX;
            }
        }
    }

    /// Handles a tick of the clock: adds to the time of the beat, replaces an engine that hangs, runs a changed B, and shares the record.
    fn tick(&mut self, now_ms: u64) {
        let second_passed = now_ms / 1000 != self.clock.now_ms / 1000;
        let before_ms = std::mem::replace(&mut self.clock.now_ms, now_ms);
        let shown_ms = now_ms.saturating_sub(before_ms);
        self.presenter.count_beat(self.lesson.learner.at, shown_ms);
        self.replace_silent_engine(before_ms);
        self.run_when_due();
        self.tick_in_mode(before_ms);
        self.in_class(Membership::share);
        // The screen shows how many seconds these states have lasted.
        let counts_seconds = matches!(
            self.bench.run.state,
            RunState::Starting | RunState::Warming | RunState::Pausing
        ) || self.stalled_s().is_some()
            || self.device_silent_s().is_some()
            || self.checking().is_some()
            || self.measuring().is_some();
        let expired = self.view.notice.take_if(|notice| notice.until_ms <= now_ms);
        if !(expired.is_some() || second_passed && counts_seconds) {
            self.view.revision -= 1;
        }
    }
}
