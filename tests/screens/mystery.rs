//! A mystery on the screen.

use super::*;

#[test]
fn a_mystery_hides_its_fault_until_it_has_ended() {
    let mut knobs = mystery_not_solved();
    act(&mut knobs, Action::Knobs);
    let mut ended = mystery_not_solved();
    act(&mut ended, Action::Solution);
    act(&mut ended, Action::Yes);
    let hidden = "The checks are shown here once the mystery has ended";
    let states: [(&str, App, &[&str]); 3] = [
        (
            "mystery",
            mystery_not_solved(),
            &[
                hidden,
                "The verdict: not yet",
                "▲ the loss must fall",
                "6.940 after",
            ],
        ),
        (
            "mystery_knobs",
            knobs,
            &[hidden, "▸ norm           ?  < composed >"],
        ),
        (
            "mystery_given_up",
            ended,
            &[
                "Given up: no points for this one.",
                "train.learning-rate was 0.0000001",
            ],
        ),
    ];
    for (name, mut app, texts) in states {
        assert_says(&SIZES, &app, texts);
        let has_ended = name == "mystery_given_up";
        for size in SIZES {
            let shown = text_at(size, &mut app.clone());
            let names_fault = shown.contains("0.0000001");
            assert_eq!(names_fault, has_ended, "{name}: {shown}");
        }
        picture(name, &mut app, TYPICAL);
    }
}

#[test]
fn a_solved_mystery_names_a_fault_that_remains_without_a_slowdown() {
    for (width, height) in [(80, 24), (120, 36)] {
        let mut app = mystery_not_solved();
        let broken = app.mode.mystery().expect("open").mystery.broken.clone();
        app.bench.comparison.set_b(broken, false);
        let Mode::Mystery(mystery) = &mut app.mode else {
            unreachable!()
        };
        mystery.end = Some(MysteryEnd::Solved {
            points: 90,
            seconds: 60,
        });
        let shown = text_at((width, height), &mut app);
        let words: Vec<&str> = shown.split_whitespace().collect();
        let sentences = words.join(" ").replace("│ │ ", "");
        let remains = "B still has this fault. The pairs did not";
        assert!(sentences.contains(remains), "{sentences}");
    }
}
