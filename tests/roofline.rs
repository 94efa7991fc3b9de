//! The roofline on the screen: one picture, the parts that it has at every size and in every look, and the reason when it is empty.

use crate::{sample, screen, session};
use perflings::app::{Action, App, Markers, Message, Options, Panel, ThemeName, update};
use protocol::{Event, Started};

use screen::{LOOKS, text, with_styles};
use session::{act, hear, solve};

fn begin() -> App {
    session::begin(sample::course(), Options::default()).0
}

fn train(app: &mut App, steps: u64, change: fn(Event) -> Event) {
    let run = app.bench.run.wanted.clone().expect("a run");
    for event in sample::until(&run, steps) {
        hear(app, change(event));
    }
}

/// Returns a screen on which A has run, and B runs.
fn both() -> App {
    let mut app = begin();
    train(&mut app, 40, |event| event);
    act(&mut app, Action::Answer(1));
    act(&mut app, Action::RangeShift(1));
    act(&mut app, Action::RangeKeep);
    solve(&mut app);
    act(&mut app, Action::Toggle);
    train(&mut app, 60, faster);
    app
}

/// Changes a profile to that of B: operations take a third of the time, and the fused norm moves half the bytes.
fn faster(event: Event) -> Event {
    match event {
        Event::Kernels(mut kernels) => {
            for row in &mut kernels.rows {
                row.ms /= 3.0;
                if row.op == "rms-norm" {
                    row.bytes = row.bytes.map(|bytes| bytes / 2.0);
                }
            }
            Event::Kernels(kernels)
        }
        other => other,
    }
}

#[test]
fn the_roofline_names_operations_and_peaks_at_every_size_in_every_look() {
    let mut app = both();
    act(&mut app, Action::Roofline);
    for (width, height) in [(80, 24), (120, 36), (200, 50)] {
        for (look, theme, markers) in LOOKS {
            let buffer = screen::screen(&mut app, width, height, theme, markers);
            let shown = text(&buffer);
            for wanted in [
                "c linear bwd",
                "C linear bwd",
                "memory 21.00 GB/s",
                "compute 98.00 GFLOP/s",
                "FLOP/byte",
            ] {
                assert!(
                    shown.contains(wanted),
                    "{wanted} at {width}x{height}: {shown}"
                );
            }
            if (width, look) == (120, "dark") {
                insta::assert_snapshot!("expanded_120x36", with_styles(&buffer));
            }
        }
    }
}

#[test]
fn the_roofline_stands_beside_other_panels_where_there_is_room() {
    for (width, height) in [(120, 36), (200, 50)] {
        let mut app = both();
        update(&mut app, Message::Resized { width, height });
        act(&mut app, Action::Focus(Panel::Roofline));
        let buffer = screen::screen(&mut app, width, height, ThemeName::Dark, Markers::Braille);
        let shown = text(&buffer);
        for wanted in [
            "╭ lesson ─",
            "╭ loss ─",
            "╭ ▸ roofline ─",
            "memory 21.00 GB/s",
            "compute 98.00 GFLOP/s",
            "c linear bwd",
        ] {
            assert!(
                shown.contains(wanted),
                "{wanted} at {width}x{height}: {shown}"
            );
        }
    }
}

#[test]
fn products_on_matrix_cores_have_a_roof_above_that_of_f32() {
    let mut app = begin();
    train(&mut app, 40, |event| match event {
        Event::Started(mut started) => {
            if let Some(peaks) = &mut started.peaks {
                let cores = protocol::Rate {
                    best: 10.0 * peaks.flops.best,
                    ..peaks.flops
                };
                peaks.matrix_cores = Some(cores);
            }
            Event::Started(started)
        }
        Event::Kernels(mut kernels) => {
            for row in kernels.rows.iter_mut().filter(|row| row.op == "linear") {
                row.matrix_cores = true;
                row.ms /= 30.0;
            }
            Event::Kernels(kernels)
        }
        other => other,
    });
    act(&mut app, Action::Roofline);
    let buffer = screen::screen(&mut app, 120, 36, ThemeName::Dark, Markers::Braille);
    let shown = text(&buffer);
    for wanted in [
        "compute 98.00 GFLOP/s (f32) · matrix cores 980.0 GFLOP/s (f16)",
        "g linear bwd           2.34    462.2 47.2 % compute",
    ] {
        assert!(shown.contains(wanted), "{wanted}: {shown}");
    }
    // From above: the roof of matrix cores, the letters of the products, the roof of f32.
    let line = |words: &str| shown.lines().skip(5).position(|line| line.contains(words));
    let [cores, products, compute] = ["matrix cores 980.0", " hg ", "compute 98.00"].map(line);
    assert!(cores < products && products < compute, "{shown}");
}

#[test]
fn the_key_opens_and_closes_the_roofline() {
    let mut app = both();
    for (width, height) in [(80, 24), (200, 50)] {
        update(&mut app, Message::Resized { width, height });
        act(&mut app, Action::Roofline);
        assert!(app.view.expanded && app.view.focus == Some(Panel::Roofline));
        act(&mut app, Action::Roofline);
        assert!(!app.view.expanded);
    }
}

#[test]
fn letters_of_a_and_b_differ_without_colour() {
    let mut app = both();
    for (width, height) in [(76, 17), (140, 20)] {
        for markers in [Markers::Braille, Markers::Ascii] {
            let drawn = text(&screen::panel(
                &mut app,
                Panel::Roofline,
                width,
                height,
                ThemeName::Mono,
                markers,
            ));
            // The longest operation has the first letter: small in A, a capital in B, in the list and in the chart.
            for line in [
                "c linear bwd",
                "C linear bwd",
                "c-z: A broken",
                "C-Z: B fixed",
            ] {
                assert!(drawn.contains(line), "{drawn}");
            }
            for letter in ['c', 'C', 'd', 'D'] {
                let is_in_chart = drawn
                    .lines()
                    .skip(3)
                    .map(|line| line.chars().skip(10).take(usize::from(width) / 2 - 12))
                    .any(|mut plot| plot.any(|c| c == letter));
                assert!(is_in_chart, "no {letter} in the chart\n{drawn}");
            }
            for words in ["memory 21.00 GB/s", "compute 98.00 GFLOP/s", "FLOP/byte"] {
                assert!(drawn.contains(words), "{drawn}");
            }
        }
    }
}

#[test]
fn an_empty_roofline_has_the_reason() {
    let draw = |app: &mut App| {
        text(&screen::panel(
            app,
            Panel::Roofline,
            70,
            12,
            ThemeName::Dark,
            Markers::Braille,
        ))
    };
    assert!(draw(&mut begin()).contains("not measured: nothing has run yet"));

    let mut app = begin();
    let run = app.bench.run.wanted.clone().expect("a run");
    hear(&mut app, sample::started(&run, 0));
    assert!(draw(&mut app).contains("not measured: no step was profiled yet"));

    let mut app = begin();
    train(&mut app, 40, |event| match event {
        Event::Started(started) => Event::Started(Started {
            peaks: None,
            ..started
        }),
        other => other,
    });
    let drawn = draw(&mut app);
    assert!(
        drawn.contains("not measured: this device's peaks"),
        "{drawn}"
    );
    assert!(drawn.contains("doctor --calibrate"), "{drawn}");
}

#[test]
fn work_that_is_not_known_is_a_dash_and_no_mark() {
    let mut app = begin();
    train(&mut app, 40, |event| match event {
        Event::Kernels(mut kernels) => {
            for row in kernels.rows.iter_mut().filter(|row| row.op == "rms-norm") {
                row.flops = None;
                row.bytes = None;
                row.no_work = Some("counted elsewhere".to_owned());
            }
            Event::Kernels(kernels)
        }
        other => other,
    });
    let drawn = text(&screen::panel(
        &mut app,
        Panel::Roofline,
        140,
        20,
        ThemeName::Dark,
        Markers::Braille,
    ));
    let line = drawn
        .lines()
        .find(|line| line.contains("h rms-norm bwd"))
        .unwrap_or_else(|| panic!("{drawn}"));
    assert!(line.contains(" - ") && !line.contains(" 0 "), "{line}");
}

#[test]
fn absurd_numbers_cause_no_panic() {
    for value in [f64::NAN, f64::INFINITY, 0.0, -1.0, 1e300, 1e-300] {
        let mut app = both();
        let run = app.bench.run.wanted.clone().expect("a run");
        let Event::Started(mut started) = sample::started(&run, 1) else {
            unreachable!()
        };
        if let Some(peaks) = &mut started.peaks {
            peaks.flops.best = value;
            peaks.bytes.best = value;
        }
        hear(&mut app, Event::Started(started));
        let Event::Kernels(mut kernels) = sample::kernels(&run, 50) else {
            unreachable!()
        };
        for row in &mut kernels.rows {
            row.ms = value;
            row.flops = Some(value);
            row.bytes = Some(value);
        }
        hear(&mut app, Event::Kernels(kernels));
        for (width, height) in [(20, 4), (70, 14), (150, 30)] {
            let markers = Markers::Braille;
            screen::panel(
                &mut app,
                Panel::Roofline,
                width,
                height,
                ThemeName::Dark,
                markers,
            );
        }
    }
}
