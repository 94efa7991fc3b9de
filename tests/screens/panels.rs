//! Each panel by itself: its picture, and the line that describes its state.

use super::*;

#[test]
fn a_ledger_shows_the_figures_of_one_step() {
    let mut app = stage_without_syncs();
    session::skip_locating(&mut app);
    app.view.focus = Some(Panel::Ledger);

    let shown = panel_text(Panel::Ledger, &mut app, (76, 18));

    // Step 0 is the first step with clocks. It stays for a second, and no figure of a later step is mixed into it.
    assert!(shown.contains("A broken · step 0 "), "{shown}");
    for (part, time) in [
        ("forward", "0.200 ms"),
        ("host, submitting", "0.800 ms"),
        ("device, computing", "174.3 ms"),
        ("host, to the sync", "177.0 ms"),
    ] {
        let is_shown = |line: &str| line.contains(part) && line.contains(time);
        assert!(shown.lines().any(is_shown), "{part}, {time}: {shown}");
    }
}

#[test]
fn one_key_opens_the_panel_that_the_stage_points_at() {
    let mut app = stage_without_syncs();
    session::skip_locating(&mut app);
    act(&mut app, Action::Focus(Panel::Lesson));
    act(&mut app, Action::Close);
    session::resize(&mut app, 80, 24);

    act(&mut app, Action::Evidence);

    let shown = text_at((80, 24), &mut app);
    assert!(shown.contains("▸ evidence"), "{shown}");
}

#[test]
fn every_panel_has_a_picture() {
    let states: [(Panel, &str, Make, u16); 11] = [
        (Panel::Lesson, "asks_how_much", range_asked, 20),
        (Panel::Loss, "nan", ended_by_nan, 20),
        (Panel::Throughput, "in_pairs", pairs_measured, 20),
        (Panel::Kernels, "two_runs", b_trains, 14),
        (Panel::Timeline, "one_step", b_trains, 14),
        (Panel::Ledger, "not_closing", stage_without_syncs, 20),
        (Panel::Evidence, "two_runs", b_trains, 14),
        (Panel::Gradients, "missing", without_gradients, 20),
        (Panel::Exponents, "zeros", b_trains, 14),
        (Panel::Memory, "two_runs", b_trains, 14),
        (Panel::Lints, "nothing_implausible", b_trains, 14),
    ];
    for (panel, state, app, height) in states {
        picture_of_panel(panel, state, &mut app(), (72, height));
    }
    for panel in Panel::VARIANTS {
        // The roofline has its pictures in `roofline.rs`.
        let pictured = states.iter().any(|(pictured, ..)| pictured == panel);
        assert!(pictured || *panel == Panel::Roofline, "{panel:?}");
    }
}

#[test]
fn panels_describe_their_state() {
    let states: [(Panel, Make, &[&str]); 17] = [
        (
            Panel::Lesson,
            a_trains,
            &["predict ▸ evidence ▸ fix ▸ check ▸ look back"],
        ),
        (Panel::Loss, a_trains, &["● A broken 120.6 → 77.42"]),
        (
            Panel::Loss,
            b_trains,
            &["○ A broken 120.6 → 77.42   ● B fixed 6.86 → 5.52"],
        ),
        (
            Panel::Throughput,
            a_trains,
            &["● A broken     44.35    180.4    178.0–183.1    40     steady"],
        ),
        (
            Panel::Throughput,
            b_trains,
            &["○ A broken     44.35", "● B fixed      44.35"],
        ),
        (
            Panel::Throughput,
            stage_without_syncs,
            &[
                "no sync",
                "these step times end at no sync: submitted at 221.7 samples/s",
            ],
        ),
        (
            Panel::Kernels,
            a_trains,
            &["398 launches · 21 kernels · covers 93.7 % of 144.9 ms"],
        ),
        (
            Panel::Timeline,
            a_trains,
            &["A broken · step 0, profile of step 25"],
        ),
        (
            Panel::Ledger,
            a_trains,
            &["✓ the phases add up to the step: 176.1 ms of 177.0 ms"],
        ),
        (
            Panel::Ledger,
            b_trains,
            &["B fixed · step 0", "○ A broken, step 0"],
        ),
        (Panel::Evidence, a_trains, &["predicts its input A 98 %"]),
        (
            Panel::Gradients,
            a_trains,
            &["● A broken  ✓ 100 % of parameters"],
        ),
        (
            Panel::Gradients,
            b_trains,
            &["○ A broken  ✓ 100 %", "● B fixed  ✓ 100 %"],
        ),
        (Panel::Memory, a_trains, &["● A broken  peak 29.7 MiB"]),
        (
            Panel::Lints,
            a_trains,
            &["Shown once you have answered what this stage asks."],
        ),
        (
            Panel::Lints,
            stage_without_syncs,
            &["Shown once you have answered what this stage asks."],
        ),
        (
            Panel::Roofline,
            b_trains,
            &["c-z: A broken   C-Z: B fixed", "memory 21.00 GB/s"],
        ),
    ];
    for (panel, make, texts) in states {
        let shown = panel_text(panel, &mut make(), (72, 14));
        for wanted in texts {
            assert!(shown.contains(wanted), "{wanted}: {shown}");
        }
    }
}

#[test]
fn a_missing_figure_is_not_shown_as_0() {
    for panel in [
        Panel::Loss,
        Panel::Throughput,
        Panel::Kernels,
        Panel::Roofline,
        Panel::Ledger,
        Panel::Gradients,
        Panel::Memory,
        Panel::Evidence,
    ] {
        let shown = panel_text(panel, &mut before_any_event(), (60, 10));
        assert!(shown.contains("not measured: "), "{panel:?}: {shown}");
        assert!(!shown.contains(" 0 "), "{panel:?}: {shown}");
    }
}
