//! The question which panel and which row show the fault: keys mark a panel and a row, and the row is judged.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use perflings::tui::keys;

use super::*;

struct Play {
    app: App,
    size: (u16, u16),
}

impl Play {
    /// A stage of the built-in course after the prediction.
    fn of_stage(number: u32, size: (u16, u16)) -> Self {
        let options = Options {
            stage: Some(number),
            ..Options::default()
        };
        let mut app = session::begin(Course::builtin(), options).0;
        train(&mut app, 40);
        act(&mut app, Action::Answer(0));
        if app.reading().asked_here() {
            act(&mut app, Action::RangeShift(1));
            act(&mut app, Action::RangeKeep);
        }
        assert!(app.reading().asks_where());
        let mut play = Self { app, size };
        play.draw();
        play
    }

    fn draw(&mut self) -> String {
        let (width, height) = self.size;
        let theme = ThemeName::Dark;
        text(&screen::screen(
            &mut self.app,
            width,
            height,
            theme,
            Markers::Braille,
        ))
    }

    fn key(&mut self, code: KeyCode) {
        let event = KeyEvent::new(code, KeyModifiers::NONE);
        let action = keys::action(event, &self.app).expect("bound");
        act(&mut self.app, action);
        self.draw();
    }

    /// Marks a panel and its first row with these words, and answers that the fault shows there. Returns whether the answer was right, and
    /// the notice.
    fn answer(&mut self, panel: Panel, row: &str) -> (Option<bool>, String) {
        while self.app.view.focus != Some(panel) {
            self.key(KeyCode::Tab);
        }
        for _ in 0..60 {
            let marked = self.app.reading().marked_row();
            if marked.contains(row) {
                break;
            }
            self.key(KeyCode::Down);
        }
        self.key(KeyCode::Enter);
        let stage = self.app.stage().expect("a stage").clone();
        let said = self
            .app
            .view
            .notice
            .as_ref()
            .map(|notice| notice.text.clone());
        (
            self.app.lesson.learner.progress_of(&stage).located,
            said.unwrap_or_default(),
        )
    }
}

#[test]
fn the_answer_needs_the_right_row_if_the_evidence_names_one() {
    for size in [(80, 24), (120, 36), (200, 50)] {
        for (stage, panel, row, right, says) in [
            (1, Panel::Evidence, "rms", true, "you can see it"),
            (
                1,
                Panel::Evidence,
                "parity",
                false,
                "another row: rms or logits",
            ),
            (1, Panel::Memory, "weights", false, "does not show it"),
            (2, Panel::Evidence, "parity", true, "you can see it"),
            // The evidence names this panel because it shows no fault.
            (2, Panel::Loss, "", false, "does not show it"),
            (6, Panel::Ledger, "backward", true, "you can see it"),
            (
                6,
                Panel::Ledger,
                "optimizer",
                false,
                "another row: backward",
            ),
            (5, Panel::Kernels, "norm", true, "you can see it"),
            (5, Panel::Kernels, "linear", false, "another row: norm or"),
            (7, Panel::Kernels, "gate", true, "you can see it"),
            (7, Panel::Kernels, "adamw", false, "another row: gate"),
            (8, Panel::Memory, "the rest", true, "you can see it"),
        ] {
            let mut play = Play::of_stage(stage, size);
            let (found, said) = play.answer(panel, row);
            assert_eq!(found, Some(right), "{stage} {row} at {size:?}: {said}");
            if right {
                assert!(said.contains(says), "{said}");
            } else {
                assert!(said.contains("Try once more"), "{said}");
                assert!(play.app.reading().asks_where());
                let (found, said) = play.answer(panel, row);
                assert_eq!(found, Some(false), "the first answer counts");
                assert!(said.contains(says), "{said}");
            }
            let reason = play
                .app
                .lesson
                .learner
                .pointer
                .expect("the reason is shown");
            let pointer = &play.app.stage().expect("a stage").evidence[reason];
            assert!(pointer.shows, "what is shown next shows the fault");
            assert!(!play.app.reading().asks_where(), "asked twice at most");
        }
    }
}

/// Issue 41, f.
#[test]
fn a_panel_without_figures_is_no_answer_and_the_walk_begins_at_the_first_panel() {
    for size in [(80, 24), (120, 36)] {
        for stage in 1..=9 {
            for panel in Panel::VARIANTS
                .iter()
                .filter(|panel| **panel != Panel::Lesson)
            {
                let mut play = Play::of_stage(stage, size);
                let (found, said) = play.answer(*panel, "");
                let case = format!("stage {stage}, {panel:?}, {size:?}: {said}");
                if found.is_none() {
                    assert!(said.contains("shows no figure now"), "{case}");
                    assert!(play.app.reading().asks_where(), "{case}");
                    continue;
                }
                assert_ne!(*panel, Panel::Lints, "{case}");
                if found == Some(false) {
                    assert!(play.app.reading().asks_where(), "{case}");
                    let row = play.app.reading().marked_row();
                    assert!(!said.contains("another row") || !row.is_empty(), "{case}");
                    play.answer(*panel, "");
                }
                assert_eq!(play.app.lesson.learner.pointer, Some(0), "{case}");
                let evidence = play.app.stage().expect("a stage").evidence.clone();
                for pointer in &evidence[1..] {
                    play.key(KeyCode::Enter);
                    assert_eq!(play.app.view.focus, Some(pointer.panel), "{case}");
                    assert!(play.app.view.notice.is_none(), "the answer stays: {case}");
                }
                play.key(KeyCode::Enter);
                assert!(play.app.lesson.learner.pointer.is_none(), "{case}");
            }
        }
    }
}

#[test]
fn the_question_does_not_give_the_answer_away() {
    let mut play = Play::of_stage(6, (120, 36));
    let event = KeyEvent::new(KeyCode::Char('E'), KeyModifiers::NONE);
    assert_eq!(
        keys::action(event, &play.app),
        None,
        "it shows the evidence"
    );
    assert!(!play.draw().contains("Compare the proportions"));
}

/// Issue 25: at 120x36 the third panel was the one that shows the fault.
#[test]
fn the_order_of_the_panels_does_not_give_the_answer_away() {
    let neutral = [
        "lesson",
        "loss",
        "throughput",
        "kernels",
        "ledger",
        "evidence",
    ];
    for size in [(80, 24), (120, 36)] {
        for stage in 1..=9 {
            let mut play = Play::of_stage(stage, size);
            if size.0 == 80 {
                play.key(KeyCode::Esc);
            }
            let drawn = play.draw();
            for panel in Panel::VARIANTS.iter().map(Panel::into_str) {
                let there = [format!("╭ {panel} ─"), format!("\n {panel} ─")];
                let shown = there.iter().any(|row| drawn.contains(row));
                assert!(!shown || neutral.contains(&panel), "stage {stage}: {panel}");
                let first = panel == "kernels";
                assert!(shown || !first, "stage {stage} at {size:?}:\n{drawn}");
            }
        }
    }
}
