//! What is drawn: a picture of each state at one size and of one state at each size, and what must hold in every frame.
//! No terminal is needed.

#[path = "screens/figures.rs"]
mod figures;
#[path = "screens/footer.rs"]
mod footer;
#[path = "screens/located.rs"]
mod located;
#[path = "screens/whole.rs"]
mod whole;

use crate::{sample, screen, session};
use perflings::app::figures::truth;
use perflings::app::mystery::MysteryEnd;
use perflings::app::source::FromEngine;
use perflings::app::{
    Action, App, Effect, Markers, Message, Mode, Options, Overlay, Panel, RunState, ThemeName,
    update,
};
use perflings::course::config_file::FileError;
use perflings::course::journey::{JourneyRow, LastJourney};
use perflings::course::save_file::{Prediction, Progress};
use perflings::course::{Course, TextBlock, TextSpan, UnusableContent};
use perflings::judge::Outcome;
use perflings::tui::digits;
use perflings::tui::panels::CARDS;
use protocol::config::{Preset, RunConfig};
use protocol::*;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use strum::VariantArray;

use screen::{LOOKS, text, with_styles};
use session::{act, hear, open, pair, play_recording, skip_locating, solve, train};

/// Makes a state.
type Make = fn() -> App;

fn begin(course: Course) -> App {
    session::begin(course, Options::default()).0
}

/// Before anything was heard.
fn empty() -> App {
    begin(sample::course())
}

/// A trains; nothing was predicted.
fn first() -> App {
    let mut app = empty();
    train(&mut app, 40);
    app
}

/// Predicted; the size of the change is asked.
fn guessing() -> App {
    let mut app = first();
    act(&mut app, Action::Answer(1));
    app
}

/// Predicted and toggled: B trains beside what A showed.
fn toggled() -> App {
    let mut app = first();
    act(&mut app, Action::Answer(1));
    act(&mut app, Action::RangeShift(1));
    act(&mut app, Action::RangeKeep);
    solve(&mut app);
    act(&mut app, Action::Toggle);
    train(&mut app, 60);
    app
}

/// Stage 3, whose ledger does not close.
fn unsynced() -> App {
    let mut app = empty();
    act(&mut app, Action::Stage(3));
    act(&mut app, Action::Lesson);
    act(&mut app, Action::Answer(0));
    train(&mut app, 30);
    app
}

/// Measured in pairs.
fn paired() -> App {
    let mut app = toggled();
    solve(&mut app);
    act(&mut app, Action::Pair);
    pair(&mut app, 40, true);
    app
}

/// Beside other programs; the peaks were measured then.
fn busy() -> App {
    let mut app = first();
    let load = Load {
        others: Some(0.62),
        busy: true,
        reason: None,
    };
    hear(&mut app, Event::Load(load));
    let run = &mut app.bench.run.story.slots[0].description;
    run.roof.as_mut().expect("peaks").flops.load = Some(0.5);
    app
}

/// 11.5 % of the parameters have a gradient.
fn detached() -> App {
    let mut app = first();
    let run = app.bench.run.wanted.clone().expect("a run");
    hear(&mut app, sample::gradients(&run, 40, true));
    app
}

/// A NaN ended the run.
fn not_finite() -> App {
    let mut app = first();
    let run = app.bench.run.wanted.clone().expect("a run");
    let Event::Step(mut step) = sample::step(&run, 41) else {
        unreachable!()
    };
    step.loss = Some(f64::NAN.into());
    hear(&mut app, Event::Step(step));
    app
}

/// Stage 2, toggled: B goes on with A's weights, and its own steps begin at 41.
fn went_on() -> App {
    let mut app = empty();
    act(&mut app, Action::Stage(2));
    train(&mut app, 40);
    act(&mut app, Action::Answer(1));
    solve(&mut app);
    act(&mut app, Action::Toggle);
    let run = app.bench.run.wanted.clone().expect("a run");
    hear(&mut app, sample::started(&run, 41));
    for at in 41..80 {
        for event in sample::at_step(&run, at) {
            hear(&mut app, event);
        }
    }
    app
}

#[test]
fn a_first_loss_that_was_wrong_stays_wrong() {
    let mut app = first();
    let run = app.bench.run.wanted.clone().expect("a run");
    let Event::Step(mut step) = sample::step(&run, 41) else {
        unreachable!()
    };
    // The loss came down below ln V: the weights began wrong all the same.
    step.loss = Some(5.0.into());
    hear(&mut app, Event::Step(step));
    let drawn = |app: &mut App, width, height| {
        text(&screen::screen(
            app,
            width,
            height,
            ThemeName::Dark,
            Markers::Braille,
        ))
    };
    let narrow = drawn(&mut app, 80, 24);
    assert!(narrow.contains("first loss ✗ 12"), "{narrow}");
    let wide = drawn(&mut app, 120, 36);
    assert!(wide.contains("/6.91, now 5.00"), "{wide}");
    // Fixed from the start, or while it trained: the first loss was right.
    for mut app in [toggled(), went_on()] {
        let narrow = drawn(&mut app, 80, 24);
        assert!(narrow.contains(" loss ✓ 5."), "{narrow}");
    }
}

#[test]
fn a_curve_that_went_on_says_from_where() {
    for (width, says) in [
        (76, "from step 41 on, A's weights"),
        (110, "from step 41 on, continued from A's weights"),
        (56, "from step 41 on"),
    ] {
        let drawn = text(&screen::panel(
            &mut went_on(),
            Panel::Loss,
            width,
            14,
            ThemeName::Dark,
            Markers::Braille,
        ));
        assert!(drawn.contains(says), "{drawn}");
    }
}

#[test]
fn every_line_of_the_loss_panel_has_its_name_and_both_curves_their_letter() {
    /// Steps of the active run with these losses.
    fn losses(app: &mut App, losses: impl Iterator<Item = f64>) {
        let base = app.shown_run().step().map_or(0, |step| step + 1);
        for (at, loss) in losses.enumerate() {
            let run = app.bench.run.wanted.clone().expect("a run");
            let Event::Step(mut step) = sample::step(&run, base + at as u64) else {
                panic!("a step");
            };
            step.loss = Some(loss.into());
            hear(app, Event::Step(step));
        }
    }
    // Curves that swing over the whole panel, and end at one place.
    let both = || {
        let mut app = toggled();
        losses(
            &mut app,
            (0..90)
                .map(|at| if at % 2 == 0 { 1.5 } else { 150.0 })
                .chain([40.0]),
        );
        let steps = app.shown_run().step().map_or(0, |step| step + 1);
        act(&mut app, Action::Toggle);
        let run = app.bench.run.wanted.clone().expect("a run");
        hear(&mut app, sample::started(&run, 0));
        losses(&mut app, (0..steps).map(|_| 40.5));
        app
    };
    for (width, height) in SIZES {
        for (name, mut app) in [
            ("first", first()),
            ("toggled", toggled()),
            ("went on", went_on()),
            ("swings", both()),
        ] {
            for (_, theme, markers) in LOOKS {
                let drawn = text(&screen::screen(&mut app, width, height, theme, markers));
                for says in ["ln V 6.91", "entropy 2.31"] {
                    assert!(drawn.contains(says), "{says}, {name}: {drawn}");
                }
            }
        }
    }
}

#[test]
fn a_ledger_is_of_one_step() {
    let mut app = unsynced();
    session::skip_locating(&mut app);
    let drawn = |app: &mut App| {
        act(app, Action::Focus(Panel::Lesson));
        act(app, Action::Close);
        update(
            app,
            Message::Resized {
                width: 80,
                height: 24,
            },
        );
        act(app, Action::Evidence);
        text(&screen::screen(
            app,
            80,
            24,
            ThemeName::Dark,
            Markers::Braille,
        ))
    };
    app.view.focus = Some(Panel::Ledger);
    let shown = text(&screen::panel(
        &mut app,
        Panel::Ledger,
        76,
        18,
        ThemeName::Dark,
        Markers::Braille,
    ));
    // The first step with clocks stays for a second; what came in that second is not mixed into it.
    assert!(shown.contains("A broken · step 0 "), "{shown}");
    let at = |needle: &str| {
        let line = shown.lines().find(|line| line.contains(needle));
        line.unwrap_or_else(|| panic!("no {needle}\n{shown}"))
            .to_owned()
    };
    assert!(at("forward").contains("0.200 ms"), "{shown}");
    assert!(at("host, submitting").contains("0.800 ms"), "{shown}");
    assert!(at("device, computing").contains("174.3 ms"), "{shown}");
    assert!(at("host, to the sync").contains("177.0 ms"), "{shown}");
    // One key brings up what the stage points at.
    let first = drawn(&mut app);
    assert!(first.contains("▸ evidence"), "{first}");
}

/// The sizes of a screen whose layouts differ most.
const SIZES: [(u16, u16); 4] = [(60, 16), (80, 24), (120, 36), (200, 50)];

/// The size of a picture that is not about a size.
const TYPICAL: (u16, u16) = (120, 36);

/// The text of the whole screen in the dark look.
fn text_at((width, height): (u16, u16), app: &mut App) -> String {
    let buffer = screen::screen(app, width, height, ThemeName::Dark, Markers::Braille);
    text(&buffer)
}

/// Keeps a picture of the whole screen in the dark look: its text, and its styles where they fit beside it.
fn picture(name: &str, app: &mut App, (width, height): (u16, u16)) {
    let buffer = screen::screen(app, width, height, ThemeName::Dark, Markers::Braille);
    let drawn = match width {
        200.. => text(&buffer),
        _ => with_styles(&buffer),
    };
    insta::assert_snapshot!(format!("{name}_{width}x{height}"), drawn);
}

/// Fails where the whole screen at one of these sizes lacks one of these texts.
fn says_at(sizes: &[(u16, u16)], app: &App, texts: &[&str]) {
    for size in sizes {
        let shown = text_at(*size, &mut app.clone());
        for wanted in texts {
            assert!(shown.contains(wanted), "{wanted} at {size:?}: {shown}");
        }
    }
}

#[test]
fn one_state_at_each_size() {
    // The notice on a screen that is too small, and a size between the others, have a picture, too.
    for size in SIZES.into_iter().chain([(59, 15), (160, 45)]) {
        picture("two_runs", &mut toggled(), size);
    }
}

#[test]
fn whole_screens() {
    picture("stage_1_before_the_prediction", &mut first(), TYPICAL);
    picture("busy_machine", &mut busy(), TYPICAL);
    let a = "A broken 120.6 → 77.42";
    let one_run = [a, "ln V 6.91", "entropy 2.31", "running A broken · step 40"];
    says_at(&SIZES, &first(), &one_run);
    says_at(&SIZES, &busy(), &one_run);
    says_at(&SIZES, &busy(), &["▲ Other", "use 60 %"]);
    let two_runs = [a, "B fixed 6.86 → 5.52", "running B fixed · step 60"];
    says_at(&SIZES, &toggled(), &two_runs);
}

/// A mystery whose B was judged and is not right yet.
fn riddled() -> App {
    let options = Options {
        mystery: Some((Some(14), 1)),
        ..Options::default()
    };
    let mut app = session::begin(sample::course(), options).0;
    train(&mut app, 40);
    act(&mut app, Action::Knobs);
    act(&mut app, Action::KnobRow(4));
    act(&mut app, Action::KnobTurn(1));
    let run = app.bench.run.wanted.clone().expect("a run");
    hear(&mut app, sample::started(&run, 41));
    act(&mut app, Action::Pair);
    train(&mut app, 59);
    let finished = Finished {
        slot: Slot::B,
        steps: 60,
        loss_first: 6.93.into(),
        loss_last: 6.94.into(),
        ln_vocab: 6.908,
        step_ms: Some(Spread::default()),
        clock: "host-sync".to_owned(),
        ..Finished::default()
    };
    hear(&mut app, Event::Finished(Box::new(finished)));
    app
}

#[test]
fn a_mystery_hides_its_fault_until_it_has_ended() {
    let mut knobs = riddled();
    act(&mut knobs, Action::Knobs);
    let mut ended = riddled();
    act(&mut ended, Action::Solution);
    act(&mut ended, Action::Yes);
    let hidden = "The checks are shown here once the mystery has ended";
    let states: [(&str, App, &[&str]); 3] = [
        (
            "mystery",
            riddled(),
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
    for (name, mut app, says) in states {
        says_at(&SIZES, &app, says);
        for size in SIZES {
            let shown = text_at(size, &mut app.clone());
            assert_eq!(
                shown.contains("0.0000001"),
                name == "mystery_given_up",
                "{shown}"
            );
        }
        picture(name, &mut app, TYPICAL);
    }
}

/// What the panel says of these pairs: its lines without the frame.
fn said_of_pairs(pair: &Pair, panel: Panel, width: u16) -> String {
    let mut app = paired();
    app.lesson.study.pair = Some(pair.clone());
    app.view.expanded = true;
    app.view.focus = Some(panel);
    let buffer = screen::screen(&mut app, width, 44, ThemeName::Dark, Markers::Braille);
    let lines = text(&buffer);
    let lines = lines.lines().map(|line| line.trim_matches(['│', ' ']));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_line_of_the_pairs_takes_the_longest_form_that_fits_and_loses_nothing() {
    let Event::Pair(mut pair) = sample::pair(40, true) else {
        unreachable!()
    };
    (pair.verdict, pair.low, pair.high) = (Verdict::Unclear, Some(0.906), Some(1.036));
    pair.tokens = Some([512, 4096]);
    let forms = [
        "40 pairs; medians A 205.0 ms for 512 tokens, B 180.1 ms for 4096 tokens; a difference above 9.4 % is ruled out",
        "40 pairs; medians A 205.0 ms, B 180.1 ms; 512 and 4096 tokens; at most 9.4 % apart",
        "40 pairs; A 205.0 ms, B 180.1 ms; 512 and 4096 tokens; at most 9.4 % apart",
    ];
    // A frame takes four columns.
    let [long, short, shorter] = forms.map(|form| form.len() as u16 + 4);
    let widths = [
        (200, 0),
        (long, 0),
        (long - 1, 1),
        (short, 1),
        (short - 1, 2),
        (shorter, 2),
    ];
    for (width, wanted) in widths {
        let said = said_of_pairs(&pair, Panel::Throughput, width);
        let found: Vec<&str> = forms
            .into_iter()
            .filter(|form| said.lines().any(|it| it == *form))
            .collect();
        assert_eq!(found, [forms[wanted]], "{width}: {said}");
        assert!(said.contains("0.906"), "{width}: {said}");
    }
    // Beside the panels the lesson is narrower than the shortest form, and goes on in the next line.
    let mut app = paired();
    app.lesson.study.pair = Some(pair);
    let buffer = screen::screen(&mut app, 120, 36, ThemeName::Dark, Markers::Braille);
    let said = text(&buffer);
    let column = said.lines().filter_map(|line| line.split('│').nth(1));
    let column: String = column.map(|line| format!("{} ", line.trim())).collect();
    let head = "no clear difference (n=40) 1.138x per token 95 %: 0.906–1.036";
    for whole in [forms[2], head] {
        assert!(column.contains(whole), "{whole}: {column}");
    }
}

#[test]
fn an_interval_beside_one_is_not_called_no_difference() {
    let said = |low, high| {
        let Event::Pair(mut pair) = sample::pair(40, true) else {
            unreachable!()
        };
        (pair.verdict, pair.low, pair.high) = (Verdict::Unclear, Some(low), Some(high));
        said_of_pairs(&pair, Panel::Throughput, 120)
    };
    assert!(said(0.906, 1.036).contains("no clear difference"));
    assert!(said(1.007, 1.113).contains("B may be faster"));
    assert!(said(0.871, 0.994).contains("B may be slower"));
}

#[test]
fn what_was_measured_since_is_told_while_b_passes() {
    let since = |passes: bool| {
        let mut app = toggled();
        solve(&mut app);
        train(&mut app, 30);
        act(&mut app, Action::Pair);
        pair(&mut app, 40, true);
        let stage = app.stage().expect("a stage").clone();
        assert!(truth(&app, &stage).is_some_and(|it| it > 6.6));
        let known = app.lesson.study.of_mut(&stage.id);
        (known.estimate, known.measured) = (Some((5.0, 9.0)), Some(6.5));
        let report = app.lesson.study.report.as_mut().expect("judged");
        for line in &mut report.lines {
            line.outcome = if passes {
                Outcome::Passed
            } else {
                Outcome::Failed
            };
        }
        let buffer = screen::screen(&mut app, 120, 60, ThemeName::Dark, Markers::Braille);
        text(&buffer).contains("Measured since")
    };
    assert!(since(true) && !since(false));
}

#[test]
fn a_solved_mystery_whose_fault_cost_nothing_says_so() {
    for (width, height) in [(80, 24), (120, 36)] {
        let mut app = riddled();
        let broken = app.mode.mystery().expect("open").mystery.broken.clone();
        app.bench.comparison.set_b(broken, false);
        let Mode::Mystery(mystery) = &mut app.mode else {
            unreachable!()
        };
        mystery.end = Some(MysteryEnd::Solved {
            points: 90,
            seconds: 60,
        });
        let buffer = screen::screen(&mut app, width, height, ThemeName::Dark, Markers::Braille);
        let said = text(&buffer);
        let words: Vec<&str> = said.split_whitespace().collect();
        let said = words.join(" ").replace("│ │ ", "");
        assert!(
            said.contains("B still has this fault. The pairs did not measure"),
            "{said}"
        );
    }
}

/// Keeps a picture of one panel alone in the dark look.
fn picture_of(panel: Panel, state: &str, app: &mut App, (width, height): (u16, u16)) {
    let buffer = screen::panel(app, panel, width, height, ThemeName::Dark, Markers::Braille);
    let name = format!("panel_{}_{state}_{width}x{height}", panel.into_str());
    insta::assert_snapshot!(name, with_styles(&buffer));
}

/// One picture of each panel; the roofline has its own in `roofline.rs`.
#[test]
fn every_panel() {
    let states: [(Panel, &str, Make, u16); 11] = [
        (Panel::Lesson, "asks_how_much", guessing, 20),
        (Panel::Loss, "nan", not_finite, 20),
        (Panel::Throughput, "in_pairs", paired, 20),
        (Panel::Kernels, "two_runs", toggled, 14),
        (Panel::Timeline, "one_step", toggled, 14),
        (Panel::Ledger, "not_closing", unsynced, 20),
        (Panel::Evidence, "two_runs", toggled, 14),
        (Panel::Gradients, "missing", detached, 20),
        (Panel::Exponents, "zeros", toggled, 14),
        (Panel::Memory, "two_runs", toggled, 14),
        (Panel::Lints, "nothing_implausible", toggled, 14),
    ];
    for (panel, state, app, height) in states {
        picture_of(panel, state, &mut app(), (72, height));
    }
    let mut left = Panel::VARIANTS.iter().copied();
    let missing = left.find(|panel| {
        *panel != Panel::Roofline && states.iter().all(|(pictured, ..)| pictured != panel)
    });
    assert_eq!(missing, None, "a panel without a picture");
}

/// What a panel says with one run, with two, and in the states that have no picture.
#[test]
fn panels_say_what_their_state_is() {
    let states: [(Panel, Make, &[&str]); 17] = [
        (
            Panel::Lesson,
            first,
            &["predict ▸ evidence ▸ fix ▸ check ▸ look back"],
        ),
        (Panel::Loss, first, &["● A broken 120.6 → 77.42"]),
        (
            Panel::Loss,
            toggled,
            &["○ A broken 120.6 → 77.42   ● B fixed 6.86 → 5.52"],
        ),
        (
            Panel::Throughput,
            first,
            &["● A broken     44.35    180.4    178.0–183.1    40     steady"],
        ),
        (
            Panel::Throughput,
            toggled,
            &["○ A broken     44.35", "● B fixed      44.35"],
        ),
        (
            Panel::Throughput,
            unsynced,
            &[
                "no sync",
                "these step times end at no sync: submitted at 221.7 samples/s",
            ],
        ),
        (
            Panel::Kernels,
            first,
            &["398 launches · 21 kernels · covers 93.7 % of 144.9 ms"],
        ),
        (
            Panel::Timeline,
            first,
            &["A broken · step 0, profile of step 25"],
        ),
        (
            Panel::Ledger,
            first,
            &["✓ the phases add up to the step: 176.1 ms of 177.0 ms"],
        ),
        (
            Panel::Ledger,
            toggled,
            &["B fixed · step 0", "○ A broken, step 0"],
        ),
        (Panel::Evidence, first, &["predicts its input A 98 %"]),
        (
            Panel::Gradients,
            first,
            &["● A broken  ✓ 100 % of parameters"],
        ),
        (
            Panel::Gradients,
            toggled,
            &["○ A broken  ✓ 100 %", "● B fixed  ✓ 100 %"],
        ),
        (Panel::Memory, first, &["● A broken  peak 29.7 MiB"]),
        (
            Panel::Lints,
            first,
            &["Shown once you have answered what this stage asks."],
        ),
        (
            Panel::Lints,
            unsynced,
            &["Shown once you have answered what this stage asks."],
        ),
        (
            Panel::Roofline,
            toggled,
            &["c-z: A broken   C-Z: B fixed", "memory 21.00 GB/s"],
        ),
    ];
    for (panel, make, texts) in states {
        let buffer = screen::panel(
            &mut make(),
            panel,
            72,
            14,
            ThemeName::Dark,
            Markers::Braille,
        );
        let shown = text(&buffer);
        for wanted in texts {
            assert!(shown.contains(wanted), "{wanted}: {shown}");
        }
    }
}

#[test]
fn the_other_looks() {
    let (width, height) = TYPICAL;
    let bars = [["█████", "▓▓▓▓▓", "▒▒"], ["fffff", "bbbbb", "oo"]];
    for ((look, theme, markers), bars) in LOOKS[1..].iter().zip(bars) {
        let ledger = screen::panel(&mut toggled(), Panel::Ledger, 72, 14, *theme, *markers);
        let ledger = text(&ledger);
        for bar in bars {
            assert!(ledger.contains(bar), "{bar}: {ledger}");
        }
        let mut stages = toggled();
        act(&mut stages, Action::Open(Overlay::Stages));
        let buffer = screen::screen(&mut stages, width, height, *theme, *markers);
        let name = format!("card_stages_{look}_{width}x{height}");
        insta::assert_snapshot!(name, with_styles(&buffer));
    }
}

#[test]
fn cards_and_questions() {
    let mut gone = first();
    update(
        &mut gone,
        Message::Engine(FromEngine::Gone {
            reason: "ended by signal 9 (killed)".to_owned(),
        }),
    );
    let mut failed = empty();
    let reason = "no adapter of kind gpu; looked for Vulkan, Metal, DX12".to_owned();
    hear(
        &mut failed,
        Event::Failed(Failed {
            kind: FailedKind::Device,
            reason,
            request: 0,
        }),
    );
    let mut confirm = first();
    solve(&mut confirm);
    act(&mut confirm, Action::Toggle);
    let mut lesson = first();
    update(
        &mut lesson,
        Message::Resized {
            width: 80,
            height: 24,
        },
    );
    act(&mut lesson, Action::Lesson);
    for (name, mut app) in [
        ("engine_gone", gone),
        ("no_such_device", failed),
        ("stage_1_asks_before_a_skip", confirm),
        ("lesson_over_the_panels", lesson),
    ] {
        picture(name, &mut app, (80, 24));
    }
}

/// Everything that can lie on top, over the course inside the program.
fn overlays() -> Vec<(String, App)> {
    let mut apps = Vec::new();
    // Threads are shown in a kernel exercise only: `lanes.rs` looks at their card.
    for card in CARDS.iter().filter(|it| it.overlay != Overlay::Lanes) {
        let mut app = shipped();
        let line = "error: XDG_RUNTIME_DIR is invalid or not set in the environment.";
        for line in [line, "vulkan: device lost"] {
            update(
                &mut app,
                Message::Engine(FromEngine::Stray(line.to_owned())),
            );
        }
        act(&mut app, Action::Open(card.overlay));
        // Also where the learner's key opens nothing, because nothing was skipped or tried.
        app.view.overlay = Some(card.overlay);
        apps.push((format!("{:?}", card.overlay).to_lowercase(), app));
    }
    apps
}

#[test]
fn what_lies_on_top_in_the_smallest_frame() {
    let mut search = shipped();
    act(&mut search, Action::Search);
    "warp"
        .chars()
        .for_each(|letter| drop(act(&mut search, Action::Type(letter))));
    let found = ["/ warp_  1 entry", "lock-step group", "esc shows all"];
    says_at(&[(80, 24)], &search, &found);
    let (_, mut help) = overlays().remove(0);
    let begins = text_at((80, 24), &mut help);
    act(&mut help, Action::ScrollToEnd);
    let ends = text_at((80, 24), &mut help);
    for (page, said) in [
        (begins, "F5 shift-F5 present"),
        (ends, "ctrl-c quit at once"),
    ] {
        assert!(page.contains(said), "{said}: {page}");
    }
    for (name, mut app) in overlays() {
        // These two are pictured with more in them.
        match name.as_str() {
            "attempts" => says_at(&[(80, 24)], &app, &["A     as found"]),
            "summary" => says_at(&[(80, 24)], &app, &["0 of 9 stages passed."]),
            _ => picture(&format!("card_{name}"), &mut app, (80, 24)),
        }
    }
}

#[test]
fn what_lies_on_top_has_one_border_a_title_and_a_way_out() {
    for (name, mut app) in overlays() {
        for (width, height) in [
            (60, 16),
            (60, 18),
            (80, 24),
            (120, 36),
            (200, 50),
            (240, 60),
        ] {
            for (_, theme, markers) in LOOKS {
                let drawn = text(&screen::screen(&mut app, width, height, theme, markers));
                let corner = match markers {
                    Markers::Braille => '╭',
                    Markers::Dots => '┌',
                    Markers::Ascii => '+',
                };
                let head = drawn.lines().find(|line| line.contains(" closes "));
                let head = head.unwrap_or_else(|| panic!("{name} at {width}x{height}:\n{drawn}"));
                let before: String = head.chars().take_while(|c| *c != corner).collect();
                // Beside the card: nothing, or enough of a panel to be one, with air between.
                let beside = before.chars().count();
                assert!(
                    beside == 0 || beside >= 6 && before.ends_with(' '),
                    "{name}: {head}"
                );
            }
        }
    }
}

#[test]
fn the_first_card_fits_and_the_help_has_two_pages_at_most() {
    for (name, mut app) in overlays() {
        let pages = match name.as_str() {
            "welcome" => 1,
            "help" => 2,
            _ => continue,
        };
        update(
            &mut app,
            Message::Resized {
                width: 80,
                height: 24,
            },
        );
        screen::screen(&mut app, 80, 24, ThemeName::Dark, Markers::Braille);
        act(&mut app, Action::ScrollToEnd);
        screen::screen(&mut app, 80, 24, ThemeName::Dark, Markers::Braille);
        // 17 lines inside the card.
        assert!(
            app.view.overlay_scroll <= 17 * (pages - 1),
            "{name}: {}",
            app.view.overlay_scroll
        );
    }
}

#[test]
fn the_ending_shows_the_table_of_the_last_journey() {
    let words = |line: &str| line.split('|').map(str::to_owned).collect::<Vec<_>>();
    let journey = LastJourney {
        device: "AMD EPYC 9V74 80-Core Processor".to_owned(),
        preset: "tiny".to_owned(),
        date: "2026-08-01".to_owned(),
        interrupted: true,
        head: words("stage|first loss|last|samples/s|ratio|launches|device ms|memory|trained|top kernel|what it is"),
        rows: [
            "v1|6.908|6.412|210.5 [201.1, 214.9]|1|1204|37.82|61.2 MB|100 %|attention scores 9.411 ms|every operation in its plain version",
            "4 broken|6.908|6.410|21.40 [20.97, 22.03]|0.1017 [0.09758, 0.1095]|1090|371.2|52.4 MB|100 %|SwiGLU gate and up 301.5 ms|the feed-forward block computes each element in one thread, which reads both matrices for it",
            "4 fixed|6.908|6.412|244.0 [240.1, 247.6]|1.159 [1.117, 1.231]|1010|32.01|52.1 MB|100 %|attention scores 9.402 ms|one kernel for the activation",
        ]
        .map(|line| JourneyRow {
            stage: line[..1].parse().unwrap_or(0),
            cells: words(line),
        })
        .to_vec(),
        days: 3,
    };
    for (width, height) in [(60, 16), (80, 24), (120, 36), (200, 50)] {
        let mut app = shipped();
        let asked = act(&mut app, Action::Open(Overlay::Summary));
        let mut early = app.clone();
        update(
            &mut early,
            Message::Journey(Some(Box::new(journey.clone()))),
        );
        act(&mut early, Action::ScrollToEnd);
        let early = text(&screen::screen(
            &mut early,
            200,
            50,
            ThemeName::Dark,
            Markers::Braille,
        ));
        assert!(
            early.contains("not predicted yet") && !early.contains("4 broken"),
            "{early}"
        );
        let fourth = app.lesson.course.stages[3].id.clone();
        app.lesson.study.of_mut(&fourth).prediction = Some(Prediction::Skipped);
        assert!(asked.contains(&Effect::ReadJourney), "{asked:?}");
        update(&mut app, Message::Journey(Some(Box::new(journey.clone()))));
        let mut seen = String::new();
        // Every page of it.
        for page in 0..12 {
            let buffer = screen::screen(&mut app, width, height, ThemeName::Dark, Markers::Braille);
            seen += &text(&buffer);
            if page == 0 {
                act(&mut app, Action::ScrollToEnd);
                if (width, height) == TYPICAL {
                    picture("card_summary_of_a_journey", &mut app, TYPICAL);
                }
                act(&mut app, Action::ScrollToTop);
            }
            act(&mut app, Action::Scroll(i32::from(height) / 2));
        }
        for says in [
            "3 days ago",
            "rows are missing",
            "4 fixed",
            "0.1017 [0.09758, 0.1095]",
            "301.5 ms",
        ] {
            assert!(seen.contains(says), "{says} at {width}x{height}: {seen}");
        }
    }
}

/// The course inside the program, at 80 columns.
fn shipped() -> App {
    let mut app = begin(Course::builtin());
    let (width, height) = (80, 24);
    update(&mut app, Message::Resized { width, height });
    train(&mut app, 40);
    app
}

/// A recorded run, played to its end.
fn recorded(label: &str) -> App {
    let mut app = shipped();
    open(&mut app, label);
    play_recording(&mut app);
    app
}

#[test]
fn beats_recorded_runs_and_pages() {
    let mut beat = shipped();
    act(&mut beat, Action::Present);
    train(&mut beat, 40);
    let mut asked = beat.clone();
    act(&mut asked, Action::NextBeat);
    let mystery = recorded("d01");
    let mut named = mystery.clone();
    act(&mut named, Action::Answer(0));
    let mut page = shipped();
    act(&mut page, Action::Open(Overlay::Glossary));
    act(&mut page, Action::TurnPage(2));
    let mut fixed = beat.clone();
    (0..4).for_each(|_| drop(act(&mut fixed, Action::NextBeat)));
    train(&mut fixed, 60);
    picture("beat_curve", &mut beat, TYPICAL);
    picture("beat_vote", &mut asked, TYPICAL);
    let mut pairs = shipped();
    act(&mut pairs, Action::Stage(4));
    act(&mut pairs, Action::Present);
    train(&mut pairs, 40);
    let mut clocks = pairs.clone();
    act(&mut clocks, Action::Stage(3));
    train(&mut clocks, 40);
    let row = pairs.clone();
    (0..6).for_each(|_| drop(act(&mut pairs, Action::NextBeat)));
    pair(&mut pairs, 20, false);
    let both = ["A broken 120.6 → 77.42   ● B fixed 6.86 → 5.52"];
    says_at(&[(80, 24)], &fixed, &both);
    let asks = ["RECORDING 2026-11-21", "Why does this loss not fall?"];
    says_at(&[(80, 24)], &mystery, &asks);
    let heads = ["╭ Flash attention, step by step ─", "← → turn, esc closes"];
    says_at(&[(80, 24)], &page, &heads);
    for (name, mut app) in [
        ("beat_ledger", clocks),
        ("beat_kernels", row),
        ("beat_pairs", pairs),
        ("recording_named_wrongly", named),
    ] {
        picture(name, &mut app, (80, 24));
    }
}

#[test]
fn the_evidence_is_walked_through_and_the_quiz_has_a_page() {
    let mut prediction_complete = shipped();
    act(&mut prediction_complete, Action::Lesson);
    act(&mut prediction_complete, Action::Answer(1));
    act(&mut prediction_complete, Action::RangeShift(1));
    act(&mut prediction_complete, Action::RangeKeep);
    let mut walking = prediction_complete.clone();
    skip_locating(&mut walking);
    let mut evidence = walking.clone();
    act(&mut evidence, Action::NextPointer);
    let mut cause = evidence.clone();
    for _ in 0..3 {
        act(&mut cause, Action::NextPointer);
    }
    let mut result = cause.clone();
    solve(&mut result);
    act(&mut result, Action::Toggle);
    train(&mut result, 60);
    act(&mut result, Action::Lesson);
    let mut quiz = result.clone();
    act(&mut quiz, Action::Pair);
    pair(&mut quiz, 40, true);
    act(&mut quiz, Action::Lesson);
    act(&mut quiz, Action::TurnPage(2));
    act(&mut quiz, Action::Answer(0));
    let next = [
        "▸ evidence ─",
        "2/4 evidence The rms after each layer: where does it grow?",
    ];
    says_at(&[(80, 24), TYPICAL], &evidence, &next);
    let states: [(&str, App, &[&str]); 5] = [
        (
            "asks_which_panel_shows_it",
            prediction_complete,
            &[
                "You said b: The head:",
                "Which panel shows it, and which number?",
            ],
        ),
        (
            "at_the_evidence",
            walking,
            &["1/4 loss Compare the first point with the line at ln V."],
        ),
        (
            "at_the_background",
            cause,
            &[
                "Why ln V is the line to watch",
                "enter reads on, to the cause",
            ],
        ),
        (
            "checked",
            result,
            &[
                "measured",
                "✓ Correct. The loss of step 0 is taken",
                "Measured checks",
            ],
        ),
        (
            "looks_back",
            quiz,
            &[
                "Questions: 1 of 4 answered, 1 right",
                "✓ a: It about doubles.",
            ],
        ),
    ];
    for (name, mut app, says) in states {
        says_at(&[(80, 24), TYPICAL], &app, says);
        picture(&format!("stage_1_{name}"), &mut app, TYPICAL);
    }
}

#[test]
fn the_log_of_attempts_has_each_figure_whole() {
    let mut app = knobs();
    act(&mut app, Action::Pair);
    pair(&mut app, 40, true);
    act(&mut app, Action::KnobTurn(1));
    act(&mut app, Action::Restart);
    train(&mut app, 30);
    let mut many = app.clone();
    act(&mut app, Action::Open(perflings::app::Overlay::Attempts));
    let figures = |shown: &str| {
        let fields = shown.split(['│', '\n']);
        let lines = fields.filter(|field| field.contains("first loss 120.6"));
        let figures = lines.flat_map(|line| line.trim().split(" · ").map(str::to_owned));
        figures.collect::<Vec<_>>()
    };
    let all = figures(&text_at(TYPICAL, &mut app.clone()));
    assert!(all.len() > 9, "{all:?}");
    for size in [(60, 16), (80, 24)] {
        let shown = text_at(size, &mut app.clone());
        let some = figures(&shown);
        let whole = some.iter().all(|figure| all.contains(figure));
        assert!(whole && some.len() >= 5, "{some:?} of {all:?}: {shown}");
    }
    picture("card_attempts", &mut app, TYPICAL);
    // Attempts may differ in the last of many knobs.
    let run = &mut many.bench.run.story.slots[1].description;
    let train = &mut run.config.as_mut().expect("B ran").train;
    (train.batch, train.seed, train.context) = (16, 1234, 96);
    act(&mut many, Action::Open(perflings::app::Overlay::Attempts));
    let drawn = text(&screen::screen(
        &mut many,
        80,
        24,
        ThemeName::Dark,
        Markers::Braille,
    ));
    for knob in ["train.batch 16", "train.seed 1234", "train.context 96"] {
        assert!(drawn.contains(knob), "{drawn}");
    }
}

/// At the knobs: one was changed and runs, another one is selected, a third could not be.
fn knobs() -> App {
    let mut app = first();
    act(&mut app, Action::Answer(1));
    act(&mut app, Action::RangeShift(1));
    act(&mut app, Action::RangeKeep);
    act(&mut app, Action::Knobs);
    act(&mut app, Action::KnobRow(2));
    act(&mut app, Action::KnobTurn(1));
    train(&mut app, 50);
    act(&mut app, Action::KnobRow(3));
    app
}

/// A run without a stage, with a value that cannot be.
fn free() -> App {
    let options = Options {
        free: Some(RunConfig::preset(Preset::Tiny)),
        ..Options::default()
    };
    let mut app = session::begin(sample::course(), options).0;
    train(&mut app, 40);
    let heads = app
        .bench
        .comparison
        .offers
        .iter()
        .position(|it| it.path == "model.kv-heads");
    app.bench.comparison.select(heads.expect("a knob"));
    act(&mut app, Action::KnobTurn(1));
    act(&mut app, Action::KnobTurn(1));
    app
}

#[test]
fn the_knobs_stand_beside_the_panels_or_over_them() {
    let mut broken = knobs();
    let config = Err(
        "config.toml:5: unknown key `model.nrom`; the nearest known key is `model.norm`".to_owned(),
    );
    update(&mut broken, Message::FileSaved { config });
    let unknown = "config.toml:5: unknown key `model.nrom`; the nearest";
    let states: [(&str, App, &[&str]); 3] = [
        (
            "knobs",
            knobs(),
            &["6 of 6 · 1 differs", "▸ learning-rate "],
        ),
        ("knobs_broken_file", broken, &[unknown, "▸ learning-rate "]),
        (
            "free_run",
            free(),
            &["▸ kv-heads ", "▲ 8 kv-heads do not divide heads = 4"],
        ),
    ];
    for (name, mut app, says) in states {
        says_at(&SIZES, &app, says);
        picture(name, &mut app, TYPICAL);
    }
}

/// Nothing of what a knob takes is cut, on any screen.
#[test]
fn what_a_knob_takes_stands_on_every_screen() {
    for (width, height) in [(60, 16), (80, 24), (120, 36), (200, 50)] {
        let mut app = free();
        for at in 0..app.bench.comparison.offers.len() {
            app.bench.comparison.select(at);
            let knob = app.bench.comparison.offers[at];
            let shown = text(&screen::screen(
                &mut app,
                width,
                height,
                ThemeName::Dark,
                Markers::Braille,
            ));
            let flat: String = shown
                .split(['│', '\n'])
                .map(str::trim)
                .collect::<Vec<_>>()
                .join(" ");
            let words: Vec<&str> = flat.split_whitespace().collect();
            let flat = words.join(" ");
            let wanted = knob.allowed();
            let last = wanted.split_whitespace().last().expect("words");
            assert!(
                flat.contains(last) && flat.contains(knob.name()),
                "{}: {shown}",
                knob.path
            );
        }
    }
}

/// The least screen shows knobs, not sentences about them: most have one line, none more than two beside what was refused.
#[test]
fn the_least_screen_leaves_its_rows_to_the_knobs() {
    let mut app = free();
    let offers = app.bench.comparison.offers.clone();
    let mut short = 0;
    for (at, knob) in offers.iter().enumerate() {
        app.bench.comparison.select(at);
        let (theme, markers) = (ThemeName::Dark, Markers::Braille);
        let shown = text(&screen::screen(&mut app, 60, 16, theme, markers));
        let about = format!("{}: ", knob.name());
        let below = shown.lines().skip_while(|line| !line.contains(&about));
        let lines = below.take_while(|line| !line.starts_with('╰')).count();
        assert!((1..=2).contains(&lines), "{}: {shown}", knob.path);
        short += usize::from(lines == 1);
    }
    assert!(short * 2 >= offers.len(), "{short} of {}", offers.len());
}

/// States in which something is missing, wrong or too much.
/// States that differ most, for inputs in any order.
pub(crate) fn all_states() -> Vec<App> {
    let mut states = vec![
        empty(),
        first(),
        guessing(),
        toggled(),
        unsynced(),
        paired(),
        not_finite(),
        hostile(),
        begin(Course::default()),
        shipped(),
        recorded("d03"),
        knobs(),
        free(),
    ];
    for card in &CARDS {
        let mut app = toggled();
        act(&mut app, Action::Open(card.overlay));
        states.push(app);
    }
    let mut gone = first();
    update(
        &mut gone,
        Message::Engine(FromEngine::Gone {
            reason: "x".repeat(3000),
        }),
    );
    states.push(gone);
    let mut expanded = toggled();
    act(&mut expanded, Action::Focus(Panel::Kernels));
    act(&mut expanded, Action::Expand);
    states.push(expanded);
    let mut open = first();
    (open.view.lesson_open, open.view.confirm) = (true, Some(perflings::app::Confirm::Reset));
    states.push(open);
    states
}

const HOSTILE: &str =
    "\u{1b}[2J\u{1b}]0;title\u{7}\r\n\t\u{202e}reversed\u{200b} 表示 👩‍👩‍👧 e\u{301} ";

/// Every text is hostile, every number absurd.
fn hostile() -> App {
    let mut course = sample::course();
    for stage in &mut course.stages {
        for text in [
            &mut stage.title,
            &mut stage.symptom,
            &mut stage.fault,
            &mut stage.fix,
            &mut stage.prediction.prompt,
        ] {
            *text = HOSTILE.repeat(5);
        }
        stage.prediction.choices = vec![HOSTILE.to_owned(); 4];
        let spans = vec![
            TextSpan::Text(HOSTILE.repeat(20)),
            TextSpan::Code("x".repeat(500)),
            TextSpan::Placeholder("no.such".to_owned()),
        ];
        stage.lesson.sections[0].blocks = vec![
            TextBlock::Heading(1, spans.clone()),
            TextBlock::Item {
                depth: 200,
                marker: HOSTILE.to_owned(),
                spans: spans.clone(),
            },
            TextBlock::Code {
                text: HOSTILE.repeat(9),
            },
            TextBlock::Table {
                head: vec![spans.clone(); 9],
                rows: vec![vec![spans; 12]; 2],
            },
            TextBlock::Rule,
        ];
    }
    let mut app = begin(course);
    let run = app.bench.run.wanted.clone().expect("a run");
    train(&mut app, 3);
    let absurd = [
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::MAX,
        f64::MIN,
        0.0,
        -0.0,
        1e-300,
    ];
    for (at, value) in absurd.into_iter().enumerate() {
        let phases = PhaseTimes {
            forward: value,
            backward: -value,
            optimizer: value,
            residual: value,
            step: value,
            ..PhaseTimes::default()
        };
        let spread = Spread {
            median: value,
            p25: value,
            p75: value,
            p95: value,
            n: u64::MAX,
        };
        hear(
            &mut app,
            Event::Step(Step {
                slot: run.slot,
                step: u64::MAX - 9 + at as u64,
                loss: Some(value.into()),
                ms: value,
                synced: true,
                profiled: false,
                phases: Some(phases),
                clocks: Some(StepClocks {
                    enqueue: value,
                    host_sync: value,
                    device: Some(value),
                }),
            }),
        );
        hear(
            &mut app,
            Event::Throughput(Throughput {
                slot: run.slot,
                step_ms: spread,
                samples_per_s: value,
                tokens_per_s: value,
                wall_samples_per_s: value,
                phases: Some(phases),
                flops: Some(value),
                peak_flops: Some(value),
                clock: HOSTILE.to_owned(),
                ..Throughput::default()
            }),
        );
        let row = KernelRow {
            part: HOSTILE.to_owned(),
            op: HOSTILE.to_owned(),
            ms: value,
            flops: Some(value),
            bytes: Some(value),
            no_work: Some(HOSTILE.to_owned()),
            calls: u32::MAX,
            layers: u32::MAX,
            ..KernelRow::default()
        };
        hear(
            &mut app,
            Event::Kernels(StepProfile {
                slot: run.slot,
                rows: vec![row; 3],
                device_ms: value,
                coverage: value,
                unbracketed_ms: value,
                ..StepProfile::default()
            }),
        );
        let row = GradientRow {
            name: HOSTILE.to_owned(),
            parameters: u64::MAX,
            norm: Some(value.into()),
            zero_pct: Some(value),
        };
        hear(
            &mut app,
            Event::Gradients(Gradients {
                slot: run.slot,
                params_pct: value,
                norm: value.into(),
                rows: vec![row; 3],
                ..Gradients::default()
            }),
        );
        hear(
            &mut app,
            Event::Evidence(Evidence {
                slot: run.slot,
                logit_std: Some(value.into()),
                logit_min: Some(value.into()),
                logit_max: Some(value.into()),
                argmax_is_input: Some(value),
                rms: vec![value.into(); 200],
                parity: Some(value.into()),
                strides: vec![(HOSTILE.to_owned(), vec![usize::MAX; 8])],
                clocks: Some(StepClocks {
                    enqueue: value,
                    host_sync: value,
                    device: Some(value),
                }),
                ..Evidence::default()
            }),
        );
        hear(
            &mut app,
            Event::Memory(Memory {
                slot: run.slot,
                peak_bytes: Some(u64::MAX),
                weights: u64::MAX / 4,
                reason: Some(HOSTILE.to_owned()),
                ..Memory::default()
            }),
        );
        hear(
            &mut app,
            Event::Lints {
                slot: run.slot,
                lints: vec![
                    Lint {
                        name: HOSTILE.to_owned(),
                        why: HOSTILE.repeat(9),
                        next: String::new()
                    };
                    40
                ],
            },
        );
        app.lesson.study.pair = Some(Pair {
            n: u32::MAX,
            wanted: 1,
            ratio: value,
            low: Some(value),
            high: Some(value),
            remaining_s: value,
            ..Pair::default()
        });
    }
    update(
        &mut app,
        Message::Engine(FromEngine::Stray(HOSTILE.repeat(50))),
    );
    app
}

#[test]
fn what_cannot_be_used_stands_in_the_list() {
    let mut course = sample::course();
    course.broken.push(UnusableContent {
        folder: "k01-swiglu".to_owned(),
        why: FileError::new("exercises/k01-swiglu/exercise.toml", 3, HOSTILE),
    });
    let (mut app, _) = App::new(course, Progress::default(), Options::default());
    act(&mut app, Action::Open(Overlay::Stages));
    for (width, height) in [(80, 24), (120, 36)] {
        let (_, theme, markers) = LOOKS[0];
        let drawn = text(&screen::screen(&mut app, width, height, theme, markers));
        let line = drawn.lines().find(|line| line.contains("k01 "));
        let line = line.unwrap_or_else(|| panic!("{drawn}"));
        assert!(
            line.contains("broken") && line.contains("exercise.toml:3"),
            "{line}"
        );
        assert!(!line.contains(perflings::sanitize::harmful), "{line:?}");
    }
}

#[test]
fn nothing_hostile_reaches_the_screen() {
    let mut app = hostile();
    for (width, height) in [(20, 5), (80, 24), (120, 36), (200, 50)] {
        for (_, theme, markers) in LOOKS {
            let drawn = text(&screen::screen(&mut app, width, height, theme, markers));
            let harmful: Vec<char> = drawn
                .chars()
                .filter(|c| *c != '\n' && perflings::sanitize::harmful(*c))
                .collect();
            assert!(harmful.is_empty(), "{width}x{height}: {harmful:?}");
        }
    }
}

#[test]
fn without_colour_there_is_no_colour_and_still_a_selection() {
    let mut app = toggled();
    act(&mut app, Action::Open(Overlay::Stages));
    let buffer = screen::screen(&mut app, 100, 30, ThemeName::Mono, Markers::Braille);
    assert!(
        buffer
            .content
            .iter()
            .all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset)
    );
    assert!(
        buffer
            .content
            .iter()
            .any(|cell| cell.modifier.contains(ratatui::style::Modifier::REVERSED))
    );
}

#[test]
fn in_ascii_there_is_nothing_else() {
    for mut app in all_states() {
        for (width, height) in [(30, 8), (60, 16), (80, 24), (120, 36), (200, 50)] {
            let drawn = text(&screen::screen(
                &mut app,
                width,
                height,
                ThemeName::Dark,
                Markers::Ascii,
            ));
            assert!(
                drawn.is_ascii(),
                "{width}x{height}: {}",
                drawn.chars().filter(|c| !c.is_ascii()).collect::<String>()
            );
        }
    }
}

#[test]
fn a_and_b_are_told_apart_without_colour() {
    for (_, theme, markers) in LOOKS {
        let drawn = text(&screen::panel(
            &mut toggled(),
            Panel::Loss,
            72,
            20,
            theme,
            markers,
        ));
        let mark = if markers == Markers::Ascii {
            'x'
        } else if markers == Markers::Dots {
            '•'
        } else {
            '◆'
        };
        assert!(drawn.contains(mark), "B carries its own mark:\n{drawn}");
        assert!(drawn.contains("A broken") && drawn.contains("B fixed"));
    }
}

#[test]
fn what_is_missing_is_not_zero() {
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
        let drawn = text(&screen::panel(
            &mut empty(),
            panel,
            60,
            10,
            ThemeName::Dark,
            Markers::Braille,
        ));
        assert!(
            drawn.contains("not measured: "),
            "{}:\n{drawn}",
            panel.into_str()
        );
        assert!(!drawn.contains(" 0 "), "{}:\n{drawn}", panel.into_str());
    }
}

#[test]
fn a_nan_is_shown_as_nan_with_its_step() {
    let mut app = not_finite();
    for (width, height) in [(60, 16), (80, 24), (120, 36), (200, 50)] {
        let drawn = text(&screen::screen(
            &mut app,
            width,
            height,
            ThemeName::Dark,
            Markers::Braille,
        ));
        assert!(
            drawn.contains("NaN at step 41"),
            "{width}x{height}:\n{drawn}"
        );
    }
}

#[test]
fn the_cause_is_hidden_until_the_prediction() {
    for (width, height) in [(80, 24), (120, 36), (200, 50)] {
        let mut app = first();
        update(&mut app, Message::Resized { width, height });
        app.view.lesson_open = true;
        app.view.focus = Some(Panel::Lesson);
        let whole = |app: &mut App| {
            (0..30)
                .map(|_| {
                    act(app, Action::Scroll(10));
                    text(&screen::screen(
                        app,
                        width,
                        height,
                        ThemeName::Dark,
                        Markers::Braille,
                    ))
                })
                .collect::<String>()
        };
        assert!(!whole(&mut app).contains("tied head multiplies"));
        while app.reading().page().1 > 1 {
            act(&mut app, Action::TurnPage(-1));
        }
        act(&mut app, Action::Answer(0));
        assert!(
            !whole(&mut app).contains("tied head multiplies"),
            "how much is still open"
        );
        act(&mut app, Action::RangeShift(1));
        act(&mut app, Action::RangeKeep);
        assert!(
            !whole(&mut app).contains("tied head multiplies"),
            "the evidence is still to be looked at"
        );
        skip_locating(&mut app);
        for _ in 0..app.stage().expect("a stage").evidence.len() {
            act(&mut app, Action::NextPointer);
        }
        assert!(whole(&mut app).contains("tied head multiplies"));
    }
}

#[test]
fn a_row_opens_the_texts_that_it_launches_and_their_lines_are_whole() {
    let mut app = toggled();
    for run in &mut app.bench.run.story.slots {
        if let Some(device) = &mut run.description.device {
            device.kind = "vulkan".to_owned();
        }
    }
    let row = app
        .view
        .selected_kernel(app.shown_run())
        .expect("a profile");
    let of = |text: &str, rows: &[&str]| CompiledKernel {
        kernel: row.kernel.clone(),
        text: text.to_owned(),
        rows: rows.iter().map(|it| (*it).to_owned()).collect(),
        ..CompiledKernel::default()
    };
    let long = format!("  // 1. {} end", "word ".repeat(40).trim_end());
    let name = perflings::app::kernel_rows::name(&row);
    let shown = |app: &mut App, texts| {
        app.view.overlay = Some(Overlay::Kernel);
        app.view.kernel_texts.row = row.clone();
        app.view.kernel_texts.read = Some(Ok(texts));
        text(&screen::screen(
            app,
            80,
            24,
            ThemeName::Dark,
            Markers::Braille,
        ))
    };
    let (others, own) = (
        of("let other = 1;", &["head fwd"]),
        of(&long, &["x", &name]),
    );
    let drawn = shown(&mut app, vec![others.clone(), own]);
    assert!(!drawn.contains("let other"), "{drawn}");
    assert_eq!(drawn.matches("word").count(), 40, "{drawn}");
    let behind = drawn.lines().filter(|line| line.contains("// word"));
    assert!(behind.count() > 1 && drawn.contains("word end"), "{drawn}");
    // Where nothing says which row launches a text, all of the name are shown.
    let drawn = shown(&mut app, vec![others, of("let more = 2;", &[])]);
    assert!(
        drawn.contains("let other") && drawn.contains("(2 of 2)"),
        "{drawn}"
    );
}

#[test]
fn a_first_frame_needs_no_engine() {
    let mut app = empty();
    assert_eq!(app.bench.run.state, RunState::Starting);
    let drawn = text(&screen::screen(
        &mut app,
        80,
        24,
        ThemeName::Dark,
        Markers::Braille,
    ));
    assert!(
        drawn.contains("Broken initialisation") && drawn.contains("starting"),
        "{drawn}"
    );
}

/// Whether a word stands on the screen in large glyphs of any size.
fn has_large(screen: &Buffer, word: &str) -> bool {
    let found = |size: u16| {
        let (wide, high) = (digits::width(word)? * size, digits::rows(size));
        let mut glyphs = Buffer::empty(Rect::new(0, 0, wide, high));
        digits::draw(&mut glyphs, (0, 0), word, size, Style::new());
        let rows = 0..=screen.area.height.checked_sub(high)?;
        let mut places = rows.flat_map(|y| (0..screen.area.width).map(move |x| (x, y)));
        let same = |x: u16, y: u16| {
            // The gap after the last glyph may be cut.
            let cells = (0..high).flat_map(|row| (0..wide - size).map(move |at| (at, row)));
            cells.into_iter().all(|(at, row)| {
                let shown = screen.cell((x + at, y + row));
                shown.is_some_and(|cell| cell.symbol() == glyphs[(at, row)].symbol())
            })
        };
        places.any(|(x, y)| same(x, y)).then_some(())
    };
    (1..=5).any(|size| found(size).is_some())
}

/// A frozen screen stays as it was, whatever the presenter does, and says which key goes on.
#[test]
fn a_frozen_screen_is_the_last_frame() {
    use perflings::tui::{theme::Theme, view_frozen};
    use ratatui::{Terminal, backend::TestBackend};
    let mut app = shipped();
    act(&mut app, Action::Present);
    train(&mut app, 40);
    let draw = |app: &mut App| screen::screen(app, 80, 24, ThemeName::Dark, Markers::Braille);
    let last = draw(&mut app);
    act(&mut app, Action::FreezeScreen);
    act(&mut app, Action::NextBeat);
    assert_ne!(text(&draw(&mut app)), text(&last), "the presenter goes on");
    for (width, height) in [(80, 24), (60, 16), (120, 36)] {
        let theme = Theme::new(ThemeName::Dark, Markers::Braille, screen::ABLE);
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
        let frozen = |frame: &mut ratatui::Frame<'_>| view_frozen(frame, &last, &app, &theme);
        terminal.draw(frozen).expect("drawn");
        let shown = text(terminal.backend().buffer());
        assert!(shown.contains("frozen: F goes on"), "{shown}");
        let same = |(a, b): (&str, &str)| a.trim_end().starts_with(b.trim_end());
        let rows = usize::from(height).min(24) - 1;
        let lines = text(&last)
            .lines()
            .take(rows)
            .map(str::to_owned)
            .collect::<Vec<_>>();
        for (was, now) in lines.iter().zip(shown.lines()) {
            let cut: String = was.chars().take(usize::from(width)).collect();
            assert!(same((now, &cut)), "{cut}: {now}");
        }
    }
}

/// On every screen a beat is whole: its sentence, and on a vote the question with all its choices.
#[test]
fn nothing_of_a_beat_is_cut() {
    let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for (width, height) in [(60, 16), (80, 24), (120, 36), (200, 50)] {
        let mut app = shipped();
        update(&mut app, Message::Resized { width, height });
        act(&mut app, Action::Present);
        train(&mut app, 40);
        let beats: usize = app
            .lesson
            .course
            .stages
            .iter()
            .map(|it| it.cues.len())
            .sum();
        for _ in 0..beats {
            let stage = app.stage().expect("a stage").clone();
            let (beat, cue) = (app.beat().expect("a beat"), app.cue().expect("its text"));
            let drawn = screen::screen(
                &mut app,
                width,
                height,
                ThemeName::Projector,
                Markers::Braille,
            );
            let shown = squeezed(&text(&drawn));
            let mut whole = vec![cue.say.clone()];
            if beat.vote == perflings::app::beats::VoteState::Open {
                whole.push(stage.prediction.prompt.clone());
                whole.extend(stage.prediction.choices.clone());
            }
            for text in whole.iter().filter(|text| !text.contains("{{")) {
                let last = text.split_whitespace().rev().take(3).collect::<Vec<_>>();
                for word in last {
                    let whole = shown.contains(word) || has_large(&drawn, word);
                    assert!(whole, "{word} of {text} at {width}x{height}: {shown}");
                }
            }
            act(&mut app, Action::NextBeat);
        }
    }
}

/// Where nothing but ASCII can be drawn, every glyph of beats and panels has a form.
#[test]
fn nothing_becomes_a_question_mark_in_ascii() {
    let mut app = shipped();
    act(&mut app, Action::Present);
    for _ in 0..30 {
        train(&mut app, 30);
        for (width, height) in [(60, 16), (200, 50)] {
            update(&mut app, Message::Resized { width, height });
            let plain = text(&screen::screen(
                &mut app,
                width,
                height,
                ThemeName::Dark,
                Markers::Braille,
            ));
            let folded = text(&screen::screen(
                &mut app,
                width,
                height,
                ThemeName::Dark,
                Markers::Ascii,
            ));
            assert!(folded.is_ascii());
            let marks = |text: &str| text.matches('?').count();
            assert_eq!(marks(&folded), marks(&plain), "{folded}");
        }
        act(&mut app, Action::NextBeat);
    }
}
