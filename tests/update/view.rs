//! Focus, scrolling and notices.

use super::*;

#[test]
fn a_notice_disappears_after_eight_seconds() {
    let mut app = running(1);
    update(
        &mut app,
        Message::Notice {
            text: "written".to_owned(),
            warning: false,
        },
    );
    update(&mut app, Message::Tick { now_ms: 7_000 });
    assert!(app.view.notice.is_some());
    let before = app.view.revision;
    update(&mut app, Message::Tick { now_ms: 8_001 });
    assert!(app.view.notice.is_none() && app.view.revision > before);
}

#[test]
fn the_focus_goes_round_all_panels_and_expands_one() {
    let mut app = running(1);
    assert_eq!(app.view.focus, Some(Panel::Lesson));
    for panel in Panel::VARIANTS
        .iter()
        .copied()
        .cycle()
        .skip(1)
        .take(Panel::VARIANTS.len())
    {
        act(&mut app, Action::FocusNext);
        assert_eq!(app.view.focus, Some(panel));
    }
    act(&mut app, Action::FocusPrevious);
    let last = Panel::VARIANTS.last().copied();
    assert_eq!((app.view.focus, app.view.third), (last, last));
    act(&mut app, Action::Expand);
    assert!(app.view.expanded);
    act(&mut app, Action::Close);
    assert!(!app.view.expanded);
}

#[test]
fn scrolling_stops_where_the_text_ends() {
    let mut app = running(1);
    update(
        &mut app,
        Message::Drawn(DrawnFrame {
            panels: vec![(Panel::Lesson, 7)],
            overlay: 0,
            rows: Vec::new(),
        }),
    );
    act(&mut app, Action::Scroll(50));
    assert_eq!(app.view.scroll_of(Panel::Lesson), 7);
    act(&mut app, Action::Scroll(-1));
    assert_eq!(app.view.scroll_of(Panel::Lesson), 6);
    act(&mut app, Action::ScrollToTop);
    assert_eq!(app.view.scroll_of(Panel::Lesson), 0);
}
