//! The screen of a profile: every panel at several sizes, keys, and names that do no harm.

use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use gputrace::Trace;
use gputrace::summary::summary;
use perflings::app::opened::{Opened, OpenedAction, OpenedPanel};
use perflings::app::timeline::TimelineMove;
use perflings::app::{Markers, ThemeName};
use perflings::course::Course;
use perflings::course::trace_lints::page_of;
use perflings::tui::opened::{draw, mouse};
use perflings::tui::theme::{Terminal, Theme};
use ratatui::backend::TestBackend;
use ratatui::layout::Rect;
use strum::VariantArray;

use super::fixtures::{self, bytes};

fn shown(profile: &Opened, size: (u16, u16), markers: Markers) -> String {
    let mut terminal = ratatui::Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
    let theme = Theme::new(ThemeName::Dark, markers, Terminal::default());
    terminal.draw(|frame| draw(frame, profile, &theme)).unwrap();
    terminal.backend().to_string()
}

fn opened() -> Opened {
    let trace = bytes("a.json", fixtures::kineto(&fixtures::run(3, 700, 250))).unwrap();
    let figures = summary(&trace);
    let course = Course::builtin();
    Opened::new(trace, figures, &course.readings)
}

/// All panels of a trace on one large screen.
pub(crate) fn shown_at_once(trace: Trace) -> String {
    let figures = summary(&trace);
    let profile = Opened::new(trace, figures, &[]);
    shown(&profile, (250, 80), Markers::Braille)
}

#[test]
fn every_panel_is_drawn_at_every_size() {
    let mut profile = opened();
    for size in [(1, 1), (20, 6), (60, 16), (80, 24), (140, 40), (250, 80)] {
        for panel in OpenedPanel::VARIANTS {
            profile.focus = *panel;
            for markers in Markers::VARIANTS {
                shown(&profile, size, *markers);
            }
        }
    }
    profile.focus = OpenedPanel::Timeline;
    let screen = shown(&profile, (80, 24), Markers::Braille);
    for wanted in [
        "step 1",
        "forward",
        "backward",
        "wide",
        "longest gap in this lane",
    ] {
        assert!(screen.contains(wanted), "{wanted}: {screen}");
    }
    profile.focus = OpenedPanel::Kernels;
    let screen = shown(&profile, (80, 24), Markers::Braille);
    for wanted in ["cutlass_80_simt_sgemm_nt", "calls", "30 kernels of 5 names"] {
        assert!(screen.contains(wanted), "{wanted}: {screen}");
    }
    let screen = shown(&profile, (160, 50), Markers::Braille);
    for wanted in ["kernels", "host-bound", "timeline", "why:"] {
        assert!(screen.contains(wanted), "{wanted}: {screen}");
    }
    assert!(shown(&profile, (160, 50), Markers::Ascii).is_ascii());
}

#[test]
fn the_mouse_marks_zooms_and_drags() {
    let mut profile = opened();
    profile.focus = OpenedPanel::Timeline;
    let area = Rect::new(0, 0, 80, 24);
    let does = |profile: &mut Opened, kind, column, row| {
        let modifiers = KeyModifiers::NONE;
        let event = MouseEvent {
            kind,
            column,
            row,
            modifiers,
        };
        let asked = mouse(event, profile, area).expect("the timeline is under the pointer");
        profile.act(asked);
    };
    let left = MouseButton::Left;
    let before = profile.view.seen;
    // Below the lanes there is time, too.
    does(&mut profile, MouseEventKind::ScrollUp, 40, 17);
    let near = profile.view.seen;
    assert!(
        near.0 > before.0 && near.1 < before.1,
        "{before:?} {near:?}"
    );
    does(&mut profile, MouseEventKind::Down(left), 50, 3);
    let marked = profile.view.slice;
    assert!(marked.is_some());
    does(&mut profile, MouseEventKind::Drag(left), 40, 17);
    let column = (near.1 - near.0) / 64;
    let moved = profile.view.seen.0 - near.0;
    assert!(
        (9 * column..=11 * column).contains(&moved),
        "{moved} {column}"
    );
    assert_eq!(
        (
            profile.view.slice,
            profile.view.seen.1 - profile.view.seen.0
        ),
        (marked, near.1 - near.0)
    );
}

#[test]
fn a_lint_leads_to_its_page_of_the_course() {
    let mut profile = opened();
    let page = profile
        .figures
        .lints
        .iter()
        .find_map(|lint| page_of(lint.name));
    assert_eq!(profile.pages.first().map(|text| text.file.as_str()), page);
    let pages = profile.pages.clone();
    for text in &pages {
        profile.act(OpenedAction::Page);
        for by in [0, 999] {
            profile.act(OpenedAction::Move(by));
            let screen = shown(&profile, (80, 24), Markers::Braille);
            assert!(screen.contains(&text.title), "{screen}");
        }
    }
    profile.act(OpenedAction::Page);
    assert!(!shown(&profile, (80, 24), Markers::Braille).contains("In PyTorch"));
}

#[test]
fn keys_lead_to_the_full_name_and_from_a_kernel_to_its_launch() {
    let mut profile = opened();
    profile.act(OpenedAction::Name);
    let screen = shown(&profile, (120, 30), Markers::Braille);
    assert!(
        screen.contains("full name") && screen.contains("void at::native::vectorized"),
        "{screen}"
    );
    profile.act(OpenedAction::Name);
    // The first is a copy that has no launch in this file.
    profile.act(OpenedAction::Timeline(TimelineMove::Slice(1)));
    profile.act(OpenedAction::Timeline(TimelineMove::Slice(1)));
    let screen = shown(&profile, (80, 24), Markers::Braille);
    assert!(screen.contains("before by "), "{screen}");
    profile.act(OpenedAction::Timeline(TimelineMove::Link));
    let screen = shown(&profile, (80, 24), Markers::Braille);
    assert!(screen.contains("what it launched begins"), "{screen}");
    profile.act(OpenedAction::Help);
    assert!(shown(&profile, (120, 40), Markers::Braille).contains("the previous step"));
}
