//! The screen of a profile: every panel at several sizes, the mouse, keys, and pages of the course.

use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use gputrace::Trace;
use gputrace::summary::summary;
use perflings::app::opened::{Opened, OpenedAction, OpenedPanel};
use perflings::app::timeline::TimelineMove;
use perflings::app::{Markers, ThemeName};
use perflings::course::Course;
use perflings::course::trace_lints::page_of;
use perflings::tui::opened::{draw, mouse};
use perflings::tui::theme::{TerminalAbilities, Theme};
use ratatui::backend::TestBackend;
use ratatui::layout::Rect;
use strum::VariantArray;

use super::fixtures::{self, bytes};

/// Returns the screen as text.
fn shown(viewer: &Opened, size: (u16, u16), markers: Markers) -> String {
    let mut terminal = ratatui::Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
    let theme = Theme::new(ThemeName::Dark, markers, TerminalAbilities::default());
    terminal.draw(|frame| draw(frame, viewer, &theme)).unwrap();
    terminal.backend().to_string()
}

/// Returns the screen's state for a run of three steps.
fn opened() -> Opened {
    let trace = bytes("a.json", fixtures::kineto(&fixtures::run(3, 700, 250))).unwrap();
    let figures = summary(&trace);
    let course = Course::builtin();
    Opened::new(trace, figures, &course.readings)
}

/// Returns all panels of a trace on one large screen.
pub(crate) fn shown_at_once(trace: Trace) -> String {
    let figures = summary(&trace);
    let viewer = Opened::new(trace, figures, &[]);
    shown(&viewer, (250, 80), Markers::Braille)
}

#[test]
fn every_panel_is_drawn_at_every_size() {
    let mut viewer = opened();
    for size in [(1, 1), (20, 6), (60, 16), (80, 24), (140, 40), (250, 80)] {
        for panel in OpenedPanel::VARIANTS {
            viewer.focus = *panel;
            for markers in Markers::VARIANTS {
                shown(&viewer, size, *markers);
            }
        }
    }
    viewer.focus = OpenedPanel::Timeline;
    let screen = shown(&viewer, (80, 24), Markers::Braille);
    for part in [
        "step 1",
        "forward",
        "backward",
        "wide",
        "longest gap in this lane",
    ] {
        assert!(screen.contains(part), "{part}: {screen}");
    }
    viewer.focus = OpenedPanel::Kernels;
    let screen = shown(&viewer, (80, 24), Markers::Braille);
    for part in ["cutlass_80_simt_sgemm_nt", "calls", "30 kernels of 5 names"] {
        assert!(screen.contains(part), "{part}: {screen}");
    }
    let screen = shown(&viewer, (160, 50), Markers::Braille);
    for part in ["kernels", "host-bound", "timeline", "why:"] {
        assert!(screen.contains(part), "{part}: {screen}");
    }
    assert!(shown(&viewer, (160, 50), Markers::Ascii).is_ascii());
}

#[test]
fn the_mouse_marks_zooms_and_drags() {
    let mut viewer = opened();
    viewer.focus = OpenedPanel::Timeline;
    let area = Rect::new(0, 0, 80, 24);
    let act = |viewer: &mut Opened, kind, column, row| {
        let modifiers = KeyModifiers::NONE;
        let event = MouseEvent {
            kind,
            column,
            row,
            modifiers,
        };
        let action = mouse(event, viewer, area).expect("the timeline is under the pointer");
        viewer.act(action);
    };
    let left = MouseButton::Left;
    let before = viewer.view.seen;
    // The rows below the lanes belong to the timeline, too.
    act(&mut viewer, MouseEventKind::ScrollUp, 40, 17);
    let near = viewer.view.seen;
    assert!(
        near.0 > before.0 && near.1 < before.1,
        "{before:?} {near:?}"
    );
    act(&mut viewer, MouseEventKind::Down(left), 50, 3);
    let marked = viewer.view.slice;
    assert!(marked.is_some());
    act(&mut viewer, MouseEventKind::Drag(left), 40, 17);
    // The pointer moved by ten of 64 columns.
    let column = (near.1 - near.0) / 64;
    let moved = viewer.view.seen.0 - near.0;
    assert!(
        (9 * column..=11 * column).contains(&moved),
        "{moved} {column}"
    );
    assert_eq!(viewer.view.slice, marked);
    assert_eq!(viewer.view.seen.1 - viewer.view.seen.0, near.1 - near.0);
}

#[test]
fn a_lint_leads_to_its_page_of_the_course() {
    let mut viewer = opened();
    let page = viewer
        .figures
        .lints
        .iter()
        .find_map(|lint| page_of(lint.name));
    assert_eq!(viewer.pages.first().map(|page| page.file.as_str()), page);
    let pages = viewer.pages.clone();
    for text in &pages {
        viewer.act(OpenedAction::Page);
        for by in [0, 999] {
            viewer.act(OpenedAction::Move(by));
            let screen = shown(&viewer, (80, 24), Markers::Braille);
            assert!(screen.contains(&text.title), "{screen}");
        }
    }
    viewer.act(OpenedAction::Page);
    assert!(!shown(&viewer, (80, 24), Markers::Braille).contains("In PyTorch"));
}

#[test]
fn keys_lead_to_the_full_name_and_from_a_kernel_to_its_launch() {
    let mut viewer = opened();
    viewer.act(OpenedAction::Name);
    let screen = shown(&viewer, (120, 30), Markers::Braille);
    assert!(
        screen.contains("full name") && screen.contains("void at::native::vectorized"),
        "{screen}"
    );
    viewer.act(OpenedAction::Name);
    // The first slice is a copy that has no launch in this file.
    viewer.act(OpenedAction::Timeline(TimelineMove::Slice(1)));
    viewer.act(OpenedAction::Timeline(TimelineMove::Slice(1)));
    let screen = shown(&viewer, (80, 24), Markers::Braille);
    assert!(screen.contains("before by "), "{screen}");
    viewer.act(OpenedAction::Timeline(TimelineMove::Link));
    let screen = shown(&viewer, (80, 24), Markers::Braille);
    assert!(screen.contains("what it launched begins"), "{screen}");
    viewer.act(OpenedAction::Help);
    assert!(shown(&viewer, (120, 40), Markers::Braille).contains("the previous step"));
}
