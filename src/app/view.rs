//! The state of the view: size, focus, open card, scroll positions and the settings of the drawing. `tui` draws it.

use std::collections::BTreeMap;

use strum::{EnumString, IntoStaticStr, VariantArray};

use super::kernel_rows::KernelTexts;
use super::learner::LessonPage;
use super::timeline::TimelineSeen;
use crate::panel::Panel;
use crate::sanitize::harmful;

/// The characters with which curves and borders are drawn.
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
    /// Dark or light, following the terminal.
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

/// The part of the steps that a curve shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase", suffix = " steps", const_into_str)]
pub enum Window {
    #[default]
    All,
    Recent,
}

/// The drawing of the loss: as it was measured, or as an exponential average with the raw points behind it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum Smoothing {
    #[default]
    Raw,
    Smoothed,
    #[strum(serialize = "smoothed strongly")]
    Strongly,
}

/// The order of the rows in the kernels panel.
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

/// Returns the value `by` places after `from`, wrapping around.
pub fn after<T: VariantArray + PartialEq + Copy>(from: T, by: isize) -> T {
    let values = T::VARIANTS;
    let index = values.iter().position(|value| *value == from).unwrap_or(0);
    values[(index as isize + by).rem_euclid(values.len() as isize) as usize]
}

/// A card over the panels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlay {
    Help,
    Stages,
    Devices,
    Log,
    Glossary,
    /// A solution, as files side by side.
    Solution,
    /// The parts of the course that could not be loaded.
    Problems,
    /// An introduction, before the very first stage.
    Welcome,
    /// The learner's results, and where to continue.
    Summary,
    /// The record that is shared with the class.
    Room,
    /// The question that the class votes on.
    Vote,
    /// The skipped stages and their topics.
    Skipped,
    /// The text of a kernel.
    Kernel,
    /// The lanes of a workgroup in the learner's kernel.
    Lanes,
    /// The log of attempts with their figures.
    Attempts,
}

/// An action that the learner has to confirm with yes or no.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confirm {
    /// Toggle before the prediction is made: it will count as skipped.
    SkipPrediction(AfterSkip),
    /// Go on without saying which panel shows the fault: it will count as not found.
    SkipLocating,
    ShowSolution,
    Reset,
    /// Leave an unfinished stage for the stage at this index.
    Leave {
        to: usize,
    },
    /// Leave an unsolved mystery for this line of the list.
    LeaveMystery {
        to: usize,
    },
    /// End the presentation and the program.
    Quit,
    /// End the mystery and show its faults.
    GiveUp,
}

/// The action that follows after a skipped prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterSkip {
    Toggle,
    Pair,
    Knobs,
}

/// The layout for the size of the terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ScreenSize {
    /// Only numbers, below 60 × 16.
    #[default]
    Numbers,
    /// Panels as strips, with the lesson over them.
    Compact,
    /// The lesson on the left and three panels on the right, from 120 × 36.
    Split,
    /// Every panel, from 160 × 45.
    Full,
}

/// The search in the glossary or in a kernel's text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Search {
    pub text: String,
    /// Letters are added to the text instead of being keys.
    pub typing: bool,
}

/// The longest text of a search, in letters.
const MAX_SEARCH_LETTERS: usize = 32;

impl Search {
    /// Adds a letter, unless it is a control character or the text is full.
    pub fn push(&mut self, letter: char) {
        if !harmful(letter) && self.text.chars().count() < MAX_SEARCH_LETTERS {
            self.text.push(letter);
        }
    }

    /// Returns true if a search is being typed or shown.
    pub fn is_open(&self) -> bool {
        self.typing || !self.text.is_empty()
    }

    /// Returns true if `text` contains the search, ignoring case.
    pub fn finds(&self, text: &str) -> bool {
        let wanted = self.text.trim().to_lowercase();
        text.to_lowercase().contains(&wanted)
    }
}

/// A sentence that is shown for a few seconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub text: String,
    pub warning: bool,
    /// The time at which it disappears, in milliseconds since the program began. `u64::MAX` keeps it until the next key.
    pub until_ms: u64,
}

/// The state of the view.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// The width and height of the terminal, in characters.
    pub size: (u16, u16),
    pub focus: Option<Panel>,
    /// The panel that the learner marked last, for layouts without room for all panels.
    pub third: Option<Panel>,
    /// The panel with the focus covers all others.
    pub expanded: bool,
    /// The lesson covers the strips of a compact layout.
    pub lesson_open: bool,
    /// The knobs are shown instead of the lesson.
    pub knobs: bool,
    pub overlay: Option<Overlay>,
    pub confirm: Option<Confirm>,
    /// The page of the glossary: 0 for its words, then the background texts.
    pub page: usize,
    /// The page of the stage's text.
    pub lesson_page: LessonPage,
    pub search: Search,
    /// The text typed so far as the value of the selected knob. `None` while none is typed.
    pub value: Option<String>,
    /// The index of the selected line in the open list.
    pub selected: usize,
    /// The card of a skipped stage shows its fault and fix, at the learner's request.
    pub fault_shown: bool,
    /// The first visible line of the open card.
    pub overlay_scroll: u16,
    /// The first visible line of each panel.
    pub scroll: BTreeMap<Panel, u16>,
    /// The largest first line of each panel, from the last frame.
    pub limits: BTreeMap<Panel, u16>,
    pub axis: Axis,
    pub window: Window,
    pub smoothing: Smoothing,
    pub markers: Markers,
    pub theme: ThemeName,
    pub sort: Sort,
    /// The index of the selected row in the kernels panel.
    pub kernel: usize,
    /// The index of the marked row in another panel, while the learner is asked which row shows the fault.
    pub row: usize,
    /// The rows of that panel, from the last frame.
    pub rows: Vec<String>,
    /// The visible part of the timeline.
    pub timeline: TimelineSeen,
    /// The open card fills the screen.
    pub card_expanded: bool,
    /// The texts of the kernels that were requested last.
    pub kernel_texts: KernelTexts,
    pub notice: Option<Notice>,
    /// The reason why progress is not saved. It is shown instead of notices until progress is saved again.
    pub unsaved: Option<String>,
    /// A number that changes whenever there is something new to draw.
    pub revision: u64,
}

impl Smoothing {
    /// Returns the length of the average, in steps after which the weight of a point has fallen to a third. `None` without an average.
    pub const fn steps(self) -> Option<f64> {
        match self {
            Self::Raw => None,
            Self::Smoothed => Some(10.0),
            Self::Strongly => Some(50.0),
        }
    }
}

impl View {
    /// Returns the layout for the present size.
    pub fn screen_size(&self) -> ScreenSize {
        match self.size {
            // On a projector no more than three panels can be read.
            (w, h) if w >= 160 && h >= 45 && self.theme != ThemeName::Projector => ScreenSize::Full,
            (w, h) if w >= 120 && h >= 36 => ScreenSize::Split,
            (w, h) if w >= 60 && h >= 16 => ScreenSize::Compact,
            _ => ScreenSize::Numbers,
        }
    }

    /// Returns true if the layout shows this panel without the learner bringing it up.
    pub fn always_shows(&self, panel: Panel) -> bool {
        match self.screen_size() {
            ScreenSize::Full => {
                !matches!(panel, Panel::Roofline | Panel::Exponents | Panel::Timeline)
            }
            _ => matches!(panel, Panel::Lesson | Panel::Loss | Panel::Throughput),
        }
    }

    /// Returns true if the lesson, and with it the question, is on the screen.
    pub fn lesson_visible(&self) -> bool {
        match self.screen_size() {
            _ if self.knobs => false,
            _ if self.expanded => self.focus == Some(Panel::Lesson),
            ScreenSize::Numbers => false,
            ScreenSize::Compact => self.lesson_open,
            ScreenSize::Split | ScreenSize::Full => true,
        }
    }

    /// Returns true if letters are added to the search of the open card or to the value of a knob.
    pub fn typing(&self) -> bool {
        let can_search = matches!(self.overlay, Some(Overlay::Glossary | Overlay::Kernel));
        can_search && self.search.typing || self.types_value()
    }

    /// Returns true if the value of a knob is being typed.
    pub fn types_value(&self) -> bool {
        self.value.is_some() && self.knobs && self.overlay.is_none()
    }

    /// Returns the first visible line of a panel.
    pub fn scroll_of(&self, panel: Panel) -> u16 {
        self.scroll.get(&panel).copied().unwrap_or(0)
    }

    /// Returns the number of hidden lines of the lesson below the visible part for a positive `by`, else above it.
    pub(super) fn lines_left(&self, by: i32) -> u16 {
        let limit = self.limits.get(&Panel::Lesson).copied().unwrap_or(0);
        let before = self.scroll_of(Panel::Lesson).min(limit);
        if by > 0 { limit - before } else { before }
    }

    /// Returns the text of the marked row of a panel other than the kernels.
    pub(super) fn marked_row(&self) -> Option<&String> {
        let last = self.rows.len().saturating_sub(1);
        self.rows.get(self.row.min(last))
    }

    /// Shows every panel from its first line or row.
    pub fn to_top(&mut self) {
        self.scroll.clear();
        self.kernel = 0;
    }

    /// Scrolls a panel's text by this many lines, within the limits of the last frame.
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
