//! The loss panel, and the loss in the header.

use super::*;

#[test]
fn a_wrong_first_loss_stays_in_the_header_after_the_loss_has_fallen() {
    let mut app = a_trains();
    let run = app.bench.run.wanted.clone().expect("a run");
    let Event::Step(mut step) = sample::step(&run, 41) else {
        unreachable!()
    };
    // The loss falls below ln V, but the weights began wrong.
    step.loss = Some(5.0.into());

    hear(&mut app, Event::Step(step));

    let narrow = text_at((80, 24), &mut app);
    assert!(narrow.contains("first loss ✗ 12"), "{narrow}");
    let wide = text_at((120, 36), &mut app);
    assert!(wide.contains("/6.91, now 5.00"), "{wide}");
    // In these states the weights of the shown run began right.
    for mut fixed in [b_trains(), b_continues_a()] {
        let header = text_at((80, 24), &mut fixed);
        assert!(header.contains(" loss ✓ 5."), "{header}");
    }
}

#[test]
fn a_curve_that_continues_a_says_from_which_step() {
    for (width, title) in [
        (76, "from step 41 on, A's weights"),
        (110, "from step 41 on, continued from A's weights"),
        (56, "from step 41 on"),
    ] {
        let drawn = panel_text(Panel::Loss, &mut b_continues_a(), (width, 14));
        assert!(drawn.contains(title), "{drawn}");
    }
}

/// Trains the active run for one step for each loss.
fn train_with_losses(app: &mut App, losses: impl Iterator<Item = f64>) {
    let first = app.shown_run().step().map_or(0, |step| step + 1);
    for (step, loss) in (first..).zip(losses) {
        let run = app.bench.run.wanted.clone().expect("a run");
        let Event::Step(mut step) = sample::step(&run, step) else {
            panic!("a step");
        };
        step.loss = Some(loss.into());
        hear(app, Event::Step(step));
    }
}

/// Returns two runs whose curves swing over the whole panel and end at one place.
fn swinging_curves() -> App {
    let mut app = b_trains();
    let swings = [1.5, 150.0].into_iter().cycle().take(90);
    train_with_losses(&mut app, swings.chain([40.0]));
    let steps = app.shown_run().step().map_or(0, |step| step + 1);
    act(&mut app, Action::Toggle);
    let run = app.bench.run.wanted.clone().expect("a run");
    hear(&mut app, sample::started(&run, 0));
    train_with_losses(&mut app, (0..steps).map(|_| 40.5));
    app
}

#[test]
fn the_loss_panel_names_both_reference_lines_at_every_size() {
    for (width, height) in SIZES {
        for (name, mut app) in [
            ("one run", a_trains()),
            ("two runs", b_trains()),
            ("B continues A", b_continues_a()),
            ("swinging curves", swinging_curves()),
        ] {
            for (_, theme, markers) in LOOKS {
                let shown = text(&screen::screen(&mut app, width, height, theme, markers));
                for line in ["ln V 6.91", "entropy 2.31"] {
                    assert!(shown.contains(line), "{line}, {name}: {shown}");
                }
            }
        }
    }
}

#[test]
fn b_has_a_mark_of_its_own_in_every_look() {
    for (_, theme, markers) in LOOKS {
        let buffer = screen::panel(&mut b_trains(), Panel::Loss, 72, 20, theme, markers);
        let shown = text(&buffer);
        let mark = match markers {
            Markers::Braille => '◆',
            Markers::Dots => '•',
            Markers::Ascii => 'x',
        };
        assert!(shown.contains(mark), "{mark}: {shown}");
        assert!(shown.contains("A broken") && shown.contains("B fixed"));
    }
}

#[test]
fn a_nan_is_shown_as_nan_with_its_step() {
    let mut app = ended_by_nan();
    for (width, height) in [(60, 16), (80, 24), (120, 36), (200, 50)] {
        let drawn = text_at((width, height), &mut app);
        assert!(
            drawn.contains("NaN at step 41"),
            "{width}x{height}:\n{drawn}"
        );
    }
}
