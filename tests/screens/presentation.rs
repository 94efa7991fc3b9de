//! A presentation as the audience sees it.

use super::*;

#[test]
fn a_frozen_screen_shows_the_last_frame_and_the_key_that_continues() {
    use perflings::tui::{theme::Theme, view_frozen};
    use ratatui::{Terminal, backend::TestBackend};
    let mut app = built_in_course();
    act(&mut app, Action::Present);
    train(&mut app, 40);
    let draw = |app: &mut App| screen::screen(app, 80, 24, ThemeName::Dark, Markers::Braille);
    let last = draw(&mut app);
    act(&mut app, Action::FreezeScreen);
    act(&mut app, Action::NextBeat);
    assert_ne!(text(&draw(&mut app)), text(&last), "the next beat differs");
    for (width, height) in [(80, 24), (60, 16), (120, 36)] {
        let theme = Theme::new(ThemeName::Dark, Markers::Braille, screen::ABLE);
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
        let frozen = |frame: &mut ratatui::Frame<'_>| view_frozen(frame, &last, &app, &theme);
        terminal.draw(frozen).expect("drawn");
        let shown = text(terminal.backend().buffer());
        assert!(shown.contains("frozen: F goes on"), "{shown}");
        // The last row of the screen has the key that continues.
        let rows = usize::from(height).min(24) - 1;
        for (before, now) in text(&last).lines().take(rows).zip(shown.lines()) {
            let visible: String = before.chars().take(usize::from(width)).collect();
            assert!(
                now.trim_end().starts_with(visible.trim_end()),
                "{visible}: {now}"
            );
        }
    }
}

#[test]
fn the_sentence_and_the_question_of_a_beat_are_not_cut() {
    let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for (width, height) in [(60, 16), (80, 24), (120, 36), (200, 50)] {
        let mut app = built_in_course();
        session::resize(&mut app, width, height);
        act(&mut app, Action::Present);
        train(&mut app, 40);
        let beats: usize = app
            .lesson
            .course
            .stages
            .iter()
            .map(|stage| stage.cues.len())
            .sum();
        for _ in 0..beats {
            let stage = app.stage().expect("a stage").clone();
            let beat = app.beat().expect("a beat");
            let cue = app.cue().expect("its text");
            let drawn = screen::screen(
                &mut app,
                width,
                height,
                ThemeName::Projector,
                Markers::Braille,
            );
            let shown = squeezed(&text(&drawn));
            let mut texts = vec![cue.say.clone()];
            if beat.vote == perflings::app::beats::VoteState::Open {
                texts.push(stage.prediction.prompt.clone());
                texts.extend(stage.prediction.choices.clone());
            }
            // Texts with placeholders are filled with figures.
            for text in texts.iter().filter(|text| !text.contains("{{")) {
                for word in text.split_whitespace().rev().take(3) {
                    let visible = shown.contains(word) || has_large(&drawn, word);
                    assert!(visible, "{word} of {text} at {width}x{height}: {shown}");
                }
            }
            act(&mut app, Action::NextBeat);
        }
    }
}
