//! The state of the screen of `perflings open`: the profile's figures, the selected panel and row, and the actions of keys.

use std::sync::Arc;

use super::timeline::{TimelineMove, TimelineView};
use super::view::after;
use crate::course::BackgroundText;
use crate::course::trace_lints::page_of;
use gputrace::figures::{KernelTotals, Summary};
use gputrace::model::{Slice, SliceKind, Trace};
use gputrace::names;

/// A panel of this screen, in the order of `tab`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum OpenedPanel {
    #[default]
    Kernels,
    Ledger,
    Timeline,
    Lints,
}

/// The meaning of a key or a mouse event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OpenedAction {
    Quit,
    /// Selects the panel this many places further on.
    Next(i32),
    Focus(OpenedPanel),
    /// Shows the panel on the whole screen, or all panels again.
    Expand,
    /// Selects the row this many lines further down, or scrolls.
    Move(i32),
    /// Shows or hides the full name of the marked kernel.
    Name,
    /// Shows the course's page about the first lint, then the page about the next one. After the last page, shows the panels.
    Page,
    Help,
    Timeline(TimelineMove),
}

/// The state of the screen.
#[derive(Clone, Debug)]
pub struct Opened {
    pub figures: Summary,
    pub view: TimelineView,
    pub focus: OpenedPanel,
    pub expanded: bool,
    /// The index of the selected kernel.
    pub row: usize,
    /// The scroll offsets of the ledger and of the lints, in lines.
    pub scroll: [u16; 2],
    /// The full name of the selected kernel is shown.
    pub naming: bool,
    /// The help is shown.
    pub help: bool,
    /// The pages of the course about the lints.
    pub pages: Vec<BackgroundText>,
    /// The index of the open page and its first visible line.
    pub page: Option<(usize, u16)>,
}

/// Returns the beginning and end of each step, in nanoseconds of the trace. Empty if the profile marks no steps.
fn steps(trace: &Trace, figures: &Summary) -> Vec<(i64, i64)> {
    if let (Some(steps), None) = (&figures.steps, &trace.counted) {
        return steps.iter().map(|step| step.span).collect();
    }
    let is_step = |slice: &&Slice| {
        let name = trace.name(slice.name);
        names::is_step(name.trim_end_matches(" (profiled)"))
    };
    trace
        .slices_of(SliceKind::Annotation)
        .filter(is_step)
        .map(|slice| (slice.start, slice.end))
        .collect()
}

/// Returns true if a kernel begins within this span, in nanoseconds of the trace.
fn has_kernels(trace: &Trace, (from, to): (i64, i64)) -> bool {
    let first = trace.slices.partition_point(|slice| slice.start < from);
    trace.slices[first..]
        .iter()
        .take_while(|slice| slice.start < to)
        .any(|slice| slice.kind == SliceKind::Kernel)
}

impl Opened {
    /// Makes the state that shows the first step with kernels; in a recording, the last one. `texts` are the course's pages.
    pub fn new(trace: Trace, figures: Summary, texts: &[BackgroundText]) -> Self {
        let steps = steps(&trace, &figures);
        let has_kernels = |step: &(i64, i64)| has_kernels(&trace, *step);
        let shown = match trace.counted {
            // The figures of a recording are those of its latest profile.
            Some(_) => steps.iter().rposition(has_kernels),
            None => steps.iter().position(has_kernels),
        };
        let mut pages: Vec<BackgroundText> = Vec::new();
        for page in figures.lints.iter().filter_map(|lint| page_of(lint.name)) {
            if let Some(text) = texts.iter().find(|text| text.file == page)
                && !pages.contains(text)
            {
                pages.push(text.clone());
            }
        }
        Self {
            view: TimelineView::new(Arc::new(trace), steps, shown.unwrap_or(0)),
            figures,
            focus: OpenedPanel::Kernels,
            expanded: false,
            row: 0,
            scroll: [0; 2],
            naming: false,
            help: false,
            pages,
            page: None,
        }
    }

    /// Returns the selected kernel.
    pub fn kernel(&self) -> Option<&KernelTotals> {
        self.figures.rows().get(self.row)
    }

    /// Carries out an action.
    pub fn act(&mut self, action: OpenedAction) {
        let scrolled = |line: u16, by: i32| line.saturating_add_signed(by.clamp(-999, 999) as i16);
        match action {
            OpenedAction::Quit => {}
            OpenedAction::Help => self.help = !self.help,
            _ if self.help => self.help = false,
            OpenedAction::Page => {
                let next = self.page.map_or(0, |(page, _)| page + 1);
                self.page = (next < self.pages.len()).then_some((next, 0));
            }
            OpenedAction::Move(by) if self.page.is_some() => {
                self.page = self.page.map(|(page, line)| (page, scrolled(line, by)));
            }
            _ if self.page.is_some() => self.page = None,
            OpenedAction::Next(by) => {
                self.focus = after(self.focus, by as isize);
                self.naming = false;
            }
            OpenedAction::Focus(panel) if self.focus == panel => self.expanded = !self.expanded,
            OpenedAction::Focus(panel) => {
                self.focus = panel;
                self.naming = false;
            }
            OpenedAction::Expand => self.expanded = !self.expanded,
            OpenedAction::Name => {
                self.naming = !self.naming;
                self.focus = OpenedPanel::Kernels;
            }
            OpenedAction::Move(by) => match self.focus {
                OpenedPanel::Kernels => {
                    let last = self.figures.rows().len().saturating_sub(1);
                    self.row = self.row.saturating_add_signed(by as isize).min(last);
                }
                OpenedPanel::Ledger => self.scroll[0] = scrolled(self.scroll[0], by),
                OpenedPanel::Timeline => self.view.go(TimelineMove::Row(by)),
                OpenedPanel::Lints => self.scroll[1] = scrolled(self.scroll[1], by),
            },
            OpenedAction::Timeline(to) => {
                self.focus = OpenedPanel::Timeline;
                self.view.go(to);
            }
        }
    }
}
