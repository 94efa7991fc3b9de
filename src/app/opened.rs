//! The state of the screen of `perflings open`: the profile's figures, the selected panel and row, and the effects of keys.

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

/// An action of a key or of the mouse.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OpenedAction {
    Quit,
    /// Selects another panel.
    Next(i32),
    Focus(OpenedPanel),
    /// Shows the panel on the whole screen, or all panels again.
    Expand,
    /// Selects another row, or scrolls.
    Move(i32),
    /// Shows or hides the full name of the marked kernel.
    Name,
    /// Shows the course's page about the first lint, then about the next, then none.
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
    /// The selected kernel.
    pub row: usize,
    /// Scroll offsets of the ledger and of the lints, in lines.
    pub scroll: [u16; 2],
    pub naming: bool,
    pub help: bool,
    /// Pages of the course about the lints, the open page, and its first visible line.
    pub pages: Vec<BackgroundText>,
    pub page: Option<(usize, u16)>,
}

/// The annotated steps.
fn spans(trace: &Trace, figures: &Summary) -> Vec<(i64, i64)> {
    if let (Some(steps), None) = (&figures.steps, &trace.counted) {
        return steps.iter().map(|step| step.span).collect();
    }
    let ranges = trace.slices_of(SliceKind::Annotation);
    let named = |slice: &&Slice| trace.name(slice.name).trim_end_matches(" (profiled)");
    let steps = ranges.filter(|slice| names::is_step(named(slice)));
    steps.map(|slice| (slice.start, slice.end)).collect()
}

impl Opened {
    /// Starts at the first step that has kernels, and keeps the course's pages about the lints.
    pub fn new(trace: Trace, figures: Summary, texts: &[BackgroundText]) -> Self {
        let spans = spans(&trace, &figures);
        let runs = |&(from, to): &(i64, i64)| {
            let first = trace.slices.partition_point(|slice| slice.start < from);
            let within = trace.slices[first..].iter();
            let mut within = within.take_while(|slice| slice.start < to);
            within.any(|slice| slice.kind == SliceKind::Kernel)
        };
        let first = match trace.counted {
            // In a recording, the latest profile counts.
            Some(_) => spans.iter().rposition(runs),
            None => spans.iter().position(runs),
        }
        .unwrap_or(0);
        let mut pages: Vec<BackgroundText> = Vec::new();
        for page in figures.lints.iter().filter_map(|lint| page_of(lint.name)) {
            if let Some(text) = texts.iter().find(|text| text.file == page)
                && !pages.contains(text)
            {
                pages.push(text.clone());
            }
        }
        Self {
            view: TimelineView::new(Arc::new(trace), spans, first),
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

    /// The marked kernel.
    pub fn kernel(&self) -> Option<&KernelTotals> {
        self.figures.rows().get(self.row)
    }

    /// Carries out an action.
    pub fn act(&mut self, action: OpenedAction) {
        let step = |at: u16, by: i32| at.saturating_add_signed(by.clamp(-999, 999) as i16);
        match action {
            OpenedAction::Quit => {}
            OpenedAction::Help => self.help = !self.help,
            _ if self.help => self.help = false,
            OpenedAction::Page => {
                let next = self.page.map_or(0, |(page, _)| page + 1);
                self.page = (next < self.pages.len()).then_some((next, 0));
            }
            OpenedAction::Move(by) if self.page.is_some() => {
                self.page = self.page.map(|(page, line)| (page, step(line, by)));
            }
            _ if self.page.is_some() => self.page = None,
            OpenedAction::Next(by) => {
                self.focus = after(self.focus, by as isize);
                self.naming = false;
            }
            OpenedAction::Focus(panel) if self.focus == panel => self.expanded = !self.expanded,
            OpenedAction::Focus(panel) => (self.focus, self.naming) = (panel, false),
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
                OpenedPanel::Ledger => self.scroll[0] = step(self.scroll[0], by),
                OpenedPanel::Timeline => self.view.go(TimelineMove::Row(by)),
                OpenedPanel::Lints => self.scroll[1] = step(self.scroll[1], by),
            },
            OpenedAction::Timeline(to) => {
                self.focus = OpenedPanel::Timeline;
                self.view.go(to);
            }
        }
    }
}
