//! The question which panel and which row show the fault. The learner marks a panel and a row with keys, and the row is judged.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use perflings::tui::keys;

use super::*;

/// A learner who is asked where the fault of a stage shows.
struct Learner {
    app: App,
    size: (u16, u16),
}

/// The result of an answer.
struct Answered {
    /// True for a right answer. `None` if the row is no answer.
    right: Option<bool>,
    notice: String,
}

impl Learner {
    /// Begins a stage of the built-in course and predicts.
    fn at_stage(number: u32, size: (u16, u16)) -> Self {
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
        let mut learner = Self { app, size };
        learner.draw();
        learner
    }

    fn draw(&mut self) -> String {
        text_at(self.size, &mut self.app)
    }

    fn press(&mut self, code: KeyCode) {
        let event = KeyEvent::new(code, KeyModifiers::NONE);
        let action = keys::action(event, &self.app).expect("bound");
        act(&mut self.app, action);
        self.draw();
    }

    /// Marks a panel and its first row that contains `row`, and answers that the fault shows there.
    fn answer(&mut self, panel: Panel, row: &str) -> Answered {
        while self.app.view.focus != Some(panel) {
            self.press(KeyCode::Tab);
        }
        for _ in 0..60 {
            if self.app.reading().marked_row().contains(row) {
                break;
            }
            self.press(KeyCode::Down);
        }
        self.press(KeyCode::Enter);
        let stage = self.app.stage().expect("a stage");
        let notice = self.app.view.notice.as_ref();
        Answered {
            right: self.app.lesson.learner.progress_of(stage).located,
            notice: notice.map_or_else(String::new, |notice| notice.text.clone()),
        }
    }
}

#[test]
fn the_answer_needs_the_right_row_if_the_evidence_names_one() {
    for size in [(80, 24), (120, 36), (200, 50)] {
        for (stage, panel, row, right, notice) in [
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
            let mut learner = Learner::at_stage(stage, size);
            let mut answered = learner.answer(panel, row);
            let case = format!("stage {stage}, {row} at {size:?}: {}", answered.notice);
            assert_eq!(answered.right, Some(right), "{case}");
            if !right {
                assert!(answered.notice.contains("Try once more"), "{case}");
                assert!(learner.app.reading().asks_where(), "{case}");
                answered = learner.answer(panel, row);
                assert_eq!(answered.right, Some(false), "the first answer counts");
            }
            assert!(answered.notice.contains(notice), "{}", answered.notice);
            let pointer = learner.app.lesson.learner.pointer.expect("the evidence");
            let stage = learner.app.stage().expect("a stage");
            assert!(
                stage.evidence[pointer].shows,
                "a panel with the fault is next"
            );
            assert!(!learner.app.reading().asks_where(), "asked twice at most");
        }
    }
}

#[test]
fn a_panel_without_figures_is_no_answer_and_the_walk_begins_at_the_first_panel() {
    for size in [(80, 24), (120, 36)] {
        for stage in 1..=9 {
            for panel in Panel::VARIANTS
                .iter()
                .filter(|panel| **panel != Panel::Lesson)
            {
                let mut learner = Learner::at_stage(stage, size);
                let Answered { right, notice } = learner.answer(*panel, "");
                let case = format!("stage {stage}, {panel:?}, {size:?}: {notice}");
                if right.is_none() {
                    assert!(notice.contains("shows no figure now"), "{case}");
                    assert!(learner.app.reading().asks_where(), "{case}");
                    continue;
                }
                assert_ne!(*panel, Panel::Lints, "{case}");
                if right == Some(false) {
                    assert!(learner.app.reading().asks_where(), "{case}");
                    let row = learner.app.reading().marked_row();
                    let names_row = notice.contains("another row");
                    assert!(!names_row || !row.is_empty(), "{case}");
                    learner.answer(*panel, "");
                }
                assert_eq!(learner.app.lesson.learner.pointer, Some(0), "{case}");
                let evidence = learner.app.stage().expect("a stage").evidence.clone();
                for pointer in &evidence[1..] {
                    learner.press(KeyCode::Enter);
                    assert_eq!(learner.app.view.focus, Some(pointer.panel), "{case}");
                    assert!(learner.app.view.notice.is_none(), "{case}");
                }
                learner.press(KeyCode::Enter);
                assert!(learner.app.lesson.learner.pointer.is_none(), "{case}");
            }
        }
    }
}

#[test]
fn neither_a_key_nor_a_text_gives_the_answer_away() {
    let mut learner = Learner::at_stage(6, (120, 36));

    let evidence_key = KeyEvent::new(KeyCode::Char('E'), KeyModifiers::NONE);
    assert_eq!(keys::action(evidence_key, &learner.app), None);
    let text_of_evidence = "Compare the proportions";
    assert!(!learner.draw().contains(text_of_evidence));
}

/// At 120x36 the third panel used to be the one that shows the fault.
#[test]
fn the_order_of_the_panels_does_not_give_the_answer_away() {
    // These panels are on the screen of every stage.
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
            let mut learner = Learner::at_stage(stage, size);
            if size.0 == 80 {
                learner.press(KeyCode::Esc);
            }
            let screen = learner.draw();
            for panel in Panel::VARIANTS.iter().map(Panel::into_str) {
                let titles = [format!("╭ {panel} ─"), format!("\n {panel} ─")];
                let is_shown = titles.iter().any(|title| screen.contains(title));
                let case = format!("stage {stage} at {size:?}, {panel}: {screen}");
                assert!(!is_shown || neutral.contains(&panel), "{case}");
                assert!(is_shown || panel != "kernels", "{case}");
            }
        }
    }
}
