//! What the screen knows and how it changes: keys, engine lines and ticks become a `Message`, `update` changes `App`
//! and returns `Effect`s. It knows no colour, no key and no clock, and it waits for nothing.

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
mod kernel_card;
pub mod kernel_rows;
mod lane_card;
pub mod lane_view;
mod lanes;
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
mod runs;
mod silence;
pub mod source;
pub mod study;
pub mod timeline;
pub mod view;
mod view_actions;

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
pub use lesson::Lesson;
use member::{JoinSettings, Membership};
use study::Study;

/// What the command line decides.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// `auto`, `cpu`, `gpu`, `gpu:N` or `vulkan-cpu`; `auto` where none is named.
    pub device: Option<String>,
    /// Model size for every stage, instead of the stage's own.
    pub preset: Option<Preset>,
    /// The stage to begin with, instead of where the learner was.
    pub stage: Option<u32>,
    /// A configuration to run without a stage, with every knob offered.
    pub free: Option<RunConfig>,
    /// A mystery instead of a stage: its seed, if one was named, and its level.
    pub mystery: Option<(Option<u64>, u8)>,
    pub theme: ThemeName,
    pub markers: Markers,
    /// Shown instead of a live engine.
    pub recording: Option<Replay>,
    /// Presenter mode from the start.
    pub present: bool,
    /// The program runs for the first time: the welcome card comes first.
    pub welcome: bool,
    /// The room that the learner joins.
    pub room: Option<JoinSettings>,
    /// A sentence for the first screen, about progress that was set aside or a recording that is cut.
    pub notice: Option<String>,
}

/// Everything the screen shows, in parts.
#[derive(Clone, Debug)]
pub struct App {
    /// The course, and where the learner is in it.
    pub lesson: Lesson,
    /// A and B, and the run that was asked for.
    pub bench: Bench,
    pub exercise: Exercises,
    /// The class that the learner is in.
    pub class: Option<Box<Membership>>,
    /// Stages shown to an audience.
    pub presenter: Presenter,
    pub devices: Devices,
    pub view: View,
    pub mode: Mode,
    pub clock: Clock,
    /// Effects of the message that is being processed.
    effects: Vec<Effect>,
}

/// The time, in milliseconds since the program began.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock {
    pub now_ms: u64,
    /// When the last action came.
    pub(crate) touched_ms: u64,
}

/// A run pauses when no key was pressed for this long.
const IDLE_MS: u64 = 600_000;
/// Two ticks further apart than this mean that the program was suspended and has just been resumed.
const ASLEEP_MS: u64 = 10_000;

/// How long a notice stays.
const NOTICE_MS: u64 = 8_000;

impl App {
    /// The state before the first message, and what to do first.
    pub fn new(course: Course, progress: Progress, options: Options) -> (Self, Vec<Effect>) {
        let resumed = progress.current.clone();
        let replayed = options.recording.is_some();
        let mode = options.recording.map_or(Mode::Stage, Mode::Replay);
        let mut app = Self {
            lesson: Lesson {
                course: Arc::new(course),
                study: Study::new(progress, replayed),
                journey: None,
            },
            bench: Bench {
                preset: options.preset,
                ..Bench::default()
            },
            exercise: Exercises::default(),
            class: options.room.map(|me| {
                let mut member = Box::<Membership>::default();
                member.me = me;
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
            mode,
            clock: Clock::default(),
            effects: Vec::new(),
        };
        if let Some(text) = options.notice {
            app.tell(&text, true);
        }
        if !app.lesson.course.problems.is_empty() {
            app.view.overlay = Some(Overlay::Problems);
        }
        let at = match (options.stage, resumed) {
            (Some(number), _) => app.lesson.place_of_number(number),
            (None, Some(id)) => app.lesson.place_of(&id),
            (None, None) => None,
        };
        if let (Some(number), None) = (options.stage, at) {
            app.tell(
                &format!("There is no stage {number}; showing the first one"),
                true,
            );
        }
        let at = at.unwrap_or(0);
        match (options.mystery, options.free) {
            (Some((seed, level)), _) => {
                app.lesson.study.at = at;
                let seed =
                    seed.unwrap_or_else(|| mystery::unsolved(&app.lesson.study.progress, level));
                app.run_mystery(seed, level);
            }
            (None, Some(config)) => {
                app.lesson.study.at = at;
                app.run_free(config);
            }
            // The learner's own run begins when the presentation is left.
            (None, None) if options.present && !replayed => app.lesson.study.at = at,
            (None, None) => {
                if !options.present {
                    let skipped = app.lesson.mark_skipped(at, &app.mode);
                    app.carry_out(skipped);
                }
                app.enter(at);
                if options.stage.is_some() && app.has_card(Overlay::Skipped) {
                    app.tell("M shows what the skipped stages were about", false);
                }
            }
        }
        if options.present {
            // A presentation goes on where the last one was.
            let last = app.lesson.presented().filter(|_| options.stage.is_none());
            let (at, beat) = last.unwrap_or((at, 0));
            app.begin_presentation(at, beat);
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

    /// The stage the learner is in; none in an empty course and in a run without a stage.
    pub fn stage(&self) -> Option<&Stage> {
        self.lesson.stage(&self.mode)
    }

    /// Shows a sentence for a while.
    pub fn tell(&mut self, text: &str, warning: bool) {
        let text = sanitize::line(text);
        self.view.notice = Some(Notice {
            text,
            warning,
            until_ms: self.clock.now_ms + NOTICE_MS,
        });
    }

    /// Whether pairs were measured to their end, and nothing has run since.
    pub fn pairs_ended(&self) -> bool {
        let pair = self.shown_pair();
        self.shown_run().state == RunState::Finished && pair.is_some_and(|pair| pair.done)
    }
}

/// The only way in which the state changes.
pub fn update(app: &mut App, message: Message) -> Vec<Effect> {
    app.view.revision += 1;
    app.take(message);
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
    fn take(&mut self, message: Message) {
        match message {
            Message::Action(action) => self.act(action),
            Message::Engine(report) => self.hear_engine(report),
            // The recording of an exercise. It may have been left meanwhile.
            Message::Recorded(report) if self.mode.is_watching() => self.hear(report),
            Message::Recorded(_) => {}
            Message::Tick { now_ms } => self.tick(now_ms),
            Message::Resized { width, height } => self.view.size = (width, height),
            Message::Drawn(limits) => {
                self.view.overlay_scroll = self.view.overlay_scroll.min(limits.overlay);
                let panels = limits.panels.into_iter().collect();
                let before = std::mem::replace(&mut self.view.limits, panels);
                self.view.rows = limits.rows;
                // The guidance and the footer were drawn with the limits before.
                if before == self.view.limits {
                    self.view.revision -= 1;
                }
            }
            Message::FileSaved { config } => self.file_saved(config),
            Message::FileRead { stage, config } if self.presenter.presentation.is_none() => {
                let follows = self.bench.take_file_at_entry(&stage, config);
                self.carry_out(follows);
            }
            Message::FileRead { .. } => {}
            Message::KernelsRead {
                device,
                config,
                texts,
            } => self.view.kernels_read(device, config, texts),
            Message::Journey(journey) => {
                self.lesson.journey = journey.map(|it| bounds::journey(*it))
            }
            Message::Exercise { exercise, news } => {
                let at = self.lesson.place_of_exercise(&exercise);
                self.in_exercise(at, |it, context| it.hear(news, context));
            }
            Message::Room(news) => {
                self.in_class(|member, context| member.hear(news, context));
            }
            Message::ProgressUnsaved { why } => {
                if why.is_none() {
                    self.tell("Progress is saved again", false);
                }
                self.view.unsaved = why.map(|why| sanitize::line(&why));
            }
            Message::Notice { text, warning } => self.tell(&text, warning),
        }
        // Whatever came may have paused the run for which a measurement waits, or let it go on beside a kernel exercise.
        self.in_open_exercise(ExerciseState::settle);
    }

    /// Pauses the run when no key was pressed for a while, except in a presentation.
    fn pause_when_idle(&mut self, before_ms: u64) {
        if self.clock.now_ms.saturating_sub(before_ms) > ASLEEP_MS {
            self.clock.touched_ms = self.clock.now_ms;
        }
        let idle = self.clock.now_ms.saturating_sub(self.clock.touched_ms) >= IDLE_MS;
        let forgotten = self.presenter.presentation.is_none();
        if idle && forgotten && self.bench.run.state == RunState::Running && !self.bench.pairing() {
            self.pause();
            let text = "No key was pressed for ten minutes: the run is paused; space resumes it";
            self.tell(text, false);
            if let Some(notice) = &mut self.view.notice {
                notice.until_ms = u64::MAX;
            }
        }
    }

    fn tick(&mut self, now_ms: u64) {
        let second_passed = now_ms / 1000 != self.clock.now_ms / 1000;
        let before_ms = std::mem::replace(&mut self.clock.now_ms, now_ms);
        let shown_ms = now_ms.saturating_sub(before_ms);
        self.presenter.count_beat(self.lesson.study.at, shown_ms);
        self.watch_silence(before_ms);
        self.run_when_due();
        self.tick_in_mode(before_ms);
        self.in_class(Membership::share);
        let waiting = matches!(
            self.bench.run.state,
            RunState::Starting | RunState::Warming | RunState::Pausing
        ) || self.stalled_s().is_some()
            || self.device_silent_s().is_some()
            || self.checking().is_some()
            || self.measuring().is_some();
        let expired = self.view.notice.take_if(|notice| notice.until_ms <= now_ms);
        if !(expired.is_some() || second_passed && waiting) {
            self.view.revision -= 1;
        }
    }
}
