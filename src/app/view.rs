//! What the learner looks at: size, focus, overlays, scroll positions and the choices that change the drawing.
//! It names no colour and draws nothing.

use std::collections::BTreeMap;

use strum::{EnumString, IntoStaticStr, VariantArray};

use super::kernel_rows::KernelTexts;
use super::study::LessonPage;
use super::timeline::TimelineSeen;
use crate::panel::Panel;
use crate::sanitize::harmful;

/// What curves and borders are drawn with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum Markers {
    #[default]
    Braille,
    Dots,
    Ascii,
}

/// A set of colours, by purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case", const_into_str)]
pub enum ThemeName {
    /// Dark or light, as the terminal says.
    #[default]
    Auto,
    Dark,
    Light,
    HighContrast,
    ColourBlind,
    /// No colour at all: bold, dim, underlined and reversed only.
    Mono,
    Projector,
}

/// The scale of the loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Axis {
    /// Logarithmic when the values span more than a factor of ten.
    #[default]
    Auto,
    Linear,
    Log,
}

/// Steps that a curve shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase", suffix = " steps", const_into_str)]
pub enum Window {
    #[default]
    All,
    Recent,
}

/// How the loss is drawn: as it was measured, or as an exponential average with the raw points behind it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum Smoothing {
    #[default]
    Raw,
    Smoothed,
    #[strum(serialize = "smoothed strongly")]
    Strongly,
}

/// Order of the kernel rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum Sort {
    #[default]
    Time,
    Calls,
    #[strum(serialize = "GFLOP/s")]
    Rate,
    Name,
}

/// The value so many places after another one; the first follows the last.
pub fn after<T: VariantArray + PartialEq + Copy>(from: T, by: isize) -> T {
    let at = T::VARIANTS.iter().position(|one| *one == from).unwrap_or(0);
    T::VARIANTS[(at as isize + by).rem_euclid(T::VARIANTS.len() as isize) as usize]
}

/// Something that lies over the panels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlay {
    Help,
    Stages,
    Devices,
    Log,
    Glossary,
    /// A solution, as files side by side.
    Solution,
    /// What could not be loaded.
    Problems,
    /// What this is, before the very first stage.
    Welcome,
    /// What the learner has done, and where to go on.
    Summary,
    /// What is shared with the room.
    Room,
    /// The question that the room votes on.
    Vote,
    /// What the stages were about that were jumped over.
    Skipped,
    /// The text of a kernel.
    Kernel,
    /// What the lanes of a workgroup do in the learner's kernel.
    Lanes,
    /// Each B that ran, with what it measured.
    Attempts,
}

/// A question to be answered with yes or no.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confirm {
    /// Toggle before the prediction is made: it will count as skipped.
    SkipPrediction(AfterSkip),
    /// Go on without saying which panel shows the fault: it will count as not found.
    SkipLocating,
    ShowSolution,
    Reset,
    /// Leave what is under way, or a question that is open, for the stage at this place.
    Leave {
        to: usize,
    },
    /// The same for a mystery that is not solved; the place is one of the list.
    LeaveMystery {
        to: usize,
    },
    /// End the presentation and the program.
    Quit,
    /// End the mystery and show its faults.
    GiveUp,
}

/// What follows when a prediction is skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterSkip {
    Toggle,
    Pair,
    Knobs,
}

/// How much room there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ScreenSize {
    /// Below 60 × 16: numbers only.
    Numbers,
    /// Strips, with the lesson laid over them.
    Compact,
    /// From 120 × 36: lesson left, three panels right.
    Split,
    /// From 160 × 45: every panel.
    Full,
}

/// A word that is looked up in the glossary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Search {
    pub text: String,
    /// Letters go into the text instead of being keys.
    pub typing: bool,
}

/// Letters of a search that are kept.
const LETTERS: usize = 32;

impl Search {
    /// Adds a letter.
    pub fn push(&mut self, letter: char) {
        if !harmful(letter) && self.text.chars().count() < LETTERS {
            self.text.push(letter);
        }
    }

    /// Whether a search is typed or shown.
    pub fn is_open(&self) -> bool {
        self.typing || !self.text.is_empty()
    }

    /// Whether a text contains what is searched for, ignoring case.
    pub fn finds(&self, text: &str) -> bool {
        text.to_lowercase()
            .contains(self.text.trim().to_lowercase().as_str())
    }
}

/// A sentence shown for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub text: String,
    pub warning: bool,
    pub until_ms: u64,
}

/// What the learner looks at.
#[derive(Clone, Debug, Default)]
pub struct View {
    pub size: (u16, u16),
    pub focus: Option<Panel>,
    /// The panel that the learner brought up last where not all have room.
    pub third: Option<Panel>,
    /// One panel over all others.
    pub expanded: bool,
    /// In a compact layout: the lesson lies over the strips.
    pub lesson_open: bool,
    /// The knobs stand in the lesson's place.
    pub knobs: bool,
    pub overlay: Option<Overlay>,
    pub confirm: Option<Confirm>,
    /// Page of the glossary: 0 its words, then the background texts.
    pub page: usize,
    /// Page of the stage's text.
    pub lesson_page: LessonPage,
    pub search: Search,
    /// What is typed as the value of the selected knob.
    pub value: Option<String>,
    /// Selected line of the open list.
    pub selected: usize,
    /// The card of a skipped stage shows its fault and fix: the learner asked for them.
    pub fault_shown: bool,
    /// First line shown of the open overlay.
    pub overlay_scroll: u16,
    pub scroll: BTreeMap<Panel, u16>,
    pub limits: BTreeMap<Panel, u16>,
    pub axis: Axis,
    pub window: Window,
    pub smoothing: Smoothing,
    pub markers: Markers,
    pub theme: ThemeName,
    pub sort: Sort,
    /// Selected row of the kernels panel.
    pub kernel: usize,
    /// Marked row of another panel, where it is asked which one shows the fault; and its rows, by the last frame.
    pub row: usize,
    pub rows: Vec<String>,
    /// What is seen of the timeline.
    pub timeline: TimelineSeen,
    /// The open card fills the screen.
    pub card_expanded: bool,
    /// The texts of the kernels that were asked for last.
    pub kernel_texts: KernelTexts,
    pub notice: Option<Notice>,
    /// Why progress is not saved: shown before anything else until it is.
    pub unsaved: Option<String>,
    /// Grows whenever there is something new to draw.
    pub revision: u64,
}

impl Smoothing {
    /// Steps after which a point counts a third of what it counted; none without an average.
    pub const fn steps(self) -> Option<f64> {
        match self {
            Self::Raw => None,
            Self::Smoothed => Some(10.0),
            Self::Strongly => Some(50.0),
        }
    }
}

impl View {
    /// The class of the present size.
    pub fn screen_size(&self) -> ScreenSize {
        match self.size {
            // On a projector no more than three panels can be read.
            (w, h) if w >= 160 && h >= 45 && self.theme != ThemeName::Projector => ScreenSize::Full,
            (w, h) if w >= 120 && h >= 36 => ScreenSize::Split,
            (w, h) if w >= 60 && h >= 16 => ScreenSize::Compact,
            _ => ScreenSize::Numbers,
        }
    }

    /// Whether a panel stands on a screen of this size without being asked for.
    pub fn always_shows(&self, panel: Panel) -> bool {
        match self.screen_size() {
            ScreenSize::Full => {
                !matches!(panel, Panel::Roofline | Panel::Exponents | Panel::Timeline)
            }
            _ => matches!(panel, Panel::Lesson | Panel::Loss | Panel::Throughput),
        }
    }

    /// Whether the lesson, and with it the question, can be read now.
    pub fn lesson_visible(&self) -> bool {
        match self.screen_size() {
            _ if self.knobs => false,
            _ if self.expanded => self.focus == Some(Panel::Lesson),
            ScreenSize::Numbers => false,
            ScreenSize::Compact => self.lesson_open,
            ScreenSize::Split | ScreenSize::Full => true,
        }
    }

    /// Letters go into the search of the open card, or into the value of a knob.
    pub fn typing(&self) -> bool {
        let searched = matches!(self.overlay, Some(Overlay::Glossary | Overlay::Kernel));
        searched && self.search.typing || self.types_value()
    }

    /// The value of a knob is typed.
    pub fn types_value(&self) -> bool {
        self.value.is_some() && self.knobs && self.overlay.is_none()
    }

    /// First line shown of a panel.
    pub fn scroll_of(&self, panel: Panel) -> u16 {
        self.scroll.get(&panel).copied().unwrap_or(0)
    }

    /// How far a panel's text can move, by the last frame.
    pub fn limit_of(&self, panel: Panel) -> u16 {
        self.limits.get(&panel).copied().unwrap_or(0)
    }

    /// Lines of the lesson that are left below what is seen, or above it.
    pub(super) fn lines_left(&self, by: i32) -> u16 {
        let limit = self.limit_of(Panel::Lesson);
        let before = self.scroll_of(Panel::Lesson).min(limit);
        if by > 0 { limit - before } else { before }
    }

    /// What stands in the marked row of a panel other than the kernels.
    pub(super) fn marked_row(&self) -> Option<&String> {
        let last = self.rows.len().saturating_sub(1);
        self.rows.get(self.row.min(last))
    }

    /// Shows every panel from its first line or row.
    pub fn to_top(&mut self) {
        self.scroll.clear();
        self.kernel = 0;
    }

    /// Moves a panel's text, as far as the last frame allows.
    pub fn scroll_by(&mut self, panel: Panel, lines: i32) {
        let limit = self.limits.get(&panel).copied().unwrap_or(u16::MAX);
        let from = self.scroll_of(panel).min(limit);
        let to = i32::from(from)
            .saturating_add(lines)
            .clamp(0, i32::from(limit));
        self.scroll
            .insert(panel, u16::try_from(to).unwrap_or(u16::MAX));
    }
}
