//! Cards and lists over the panels, and questions to confirm.

use super::*;

#[test]
fn failures_and_questions_have_a_picture() {
    let mut gone = a_trains();
    update(
        &mut gone,
        Message::Engine(FromEngine::Gone {
            reason: "ended by signal 9 (killed)".to_owned(),
        }),
    );
    let mut failed = before_any_event();
    let reason = "no adapter of kind gpu; looked for Vulkan, Metal, DX12".to_owned();
    hear(
        &mut failed,
        Event::Failed(Failed {
            kind: FailedKind::Device,
            reason,
            request: 0,
        }),
    );
    let mut confirm = a_trains();
    solve(&mut confirm);
    act(&mut confirm, Action::Toggle);
    let mut lesson = a_trains();
    session::resize(&mut lesson, 80, 24);
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

#[test]
fn a_search_of_the_glossary_shows_the_entries_with_the_word() {
    let mut app = built_in_course();
    act(&mut app, Action::Search);
    for letter in "warp".chars() {
        act(&mut app, Action::Type(letter));
    }

    let found = ["/ warp_  1 entry", "lock-step group", "esc shows all"];
    assert_says(&[(80, 24)], &app, &found);
}

#[test]
fn the_help_begins_with_the_keys_of_the_stage_and_ends_with_quit() {
    let mut app = built_in_course();
    act(&mut app, Action::Open(Overlay::Help));
    assert_says(&[(80, 24)], &app, &["F5 shift-F5 present"]);

    text_at((80, 24), &mut app);
    act(&mut app, Action::ScrollToEnd);

    assert_says(&[(80, 24)], &app, &["ctrl-c quit at once"]);
}

#[test]
fn every_card_has_a_picture_at_80x24() {
    for (name, mut app) in open_cards() {
        // These two have a picture with more content in other tests.
        match name.as_str() {
            "attempts" => assert_says(&[(80, 24)], &app, &["A     as found"]),
            "summary" => assert_says(&[(80, 24)], &app, &["0 of 9 stages passed."]),
            _ => picture(&format!("card_{name}"), &mut app, (80, 24)),
        }
    }
}

#[test]
fn every_card_has_a_border_a_title_and_the_key_that_closes_it() {
    for (name, mut app) in open_cards() {
        for (width, height) in [
            (60, 16),
            (60, 18),
            (80, 24),
            (120, 36),
            (200, 50),
            (240, 60),
        ] {
            for (_, theme, markers) in LOOKS {
                let shown = text(&screen::screen(&mut app, width, height, theme, markers));
                let corner = match markers {
                    Markers::Braille => '╭',
                    Markers::Dots => '┌',
                    Markers::Ascii => '+',
                };
                let head = shown
                    .lines()
                    .find(|line| line.contains(" closes "))
                    .unwrap_or_else(|| panic!("{name} at {width}x{height}:\n{shown}"));
                // The card begins at the edge, or leaves at least six columns of a panel and a space.
                let before: String = head.chars().take_while(|c| *c != corner).collect();
                let has_place = before.chars().count() >= 6 && before.ends_with(' ');
                assert!(before.is_empty() || has_place, "{name}: {head}");
            }
        }
    }
}

#[test]
fn the_welcome_fits_one_page_and_the_help_two() {
    for (name, mut app) in open_cards() {
        let pages = match name.as_str() {
            "welcome" => 1,
            "help" => 2,
            _ => continue,
        };
        session::resize(&mut app, 80, 24);
        screen::screen(&mut app, 80, 24, ThemeName::Dark, Markers::Braille);
        act(&mut app, Action::ScrollToEnd);
        screen::screen(&mut app, 80, 24, ThemeName::Dark, Markers::Braille);
        // A card has 17 lines.
        assert!(
            app.view.overlay_scroll <= 17 * (pages - 1),
            "{name}: {}",
            app.view.overlay_scroll
        );
    }
}

#[test]
fn the_summary_shows_the_last_table_of_all_stages() {
    let journey = saved_journey();
    for (width, height) in [(60, 16), (80, 24), (120, 36), (200, 50)] {
        let mut app = built_in_course();
        let effects = act(&mut app, Action::Open(Overlay::Summary));
        assert!(effects.contains(&Effect::ReadJourney), "{effects:?}");
        let fourth = app.lesson.course.stages[3].id.clone();
        app.lesson.learner.progress_mut(&fourth).prediction = Some(Prediction::Skipped);
        update(&mut app, Message::Journey(Some(Box::new(journey.clone()))));
        let mut shown = String::new();
        for _ in 0..12 {
            shown += &text_at((width, height), &mut app);
            act(&mut app, Action::Scroll(i32::from(height) / 2));
        }
        for expected in [
            "3 days ago",
            "rows are missing",
            "4 fixed",
            "0.1017 [0.09758, 0.1095]",
            "301.5 ms",
        ] {
            let size = format!("{width}x{height}");
            assert!(shown.contains(expected), "{expected} at {size}: {shown}");
        }
        if (width, height) == TYPICAL {
            act(&mut app, Action::ScrollToEnd);
            picture("card_summary_of_a_journey", &mut app, TYPICAL);
        }
    }
}

#[test]
fn the_summary_leaves_out_rows_of_stages_that_are_not_predicted() {
    let mut app = built_in_course();
    act(&mut app, Action::Open(Overlay::Summary));
    update(&mut app, Message::Journey(Some(Box::new(saved_journey()))));
    act(&mut app, Action::ScrollToEnd);

    let shown = text_at((200, 50), &mut app);

    assert!(shown.contains("not predicted yet"), "{shown}");
    assert!(!shown.contains("4 broken"), "{shown}");
}

/// Returns a saved table of `perflings run all`, which was interrupted after stage 4.
fn saved_journey() -> LastJourney {
    let cells = |line: &str| line.split('|').map(str::to_owned).collect::<Vec<_>>();
    let head = "stage|first loss|last|samples/s|ratio|launches|device ms|memory|trained|top kernel\
                |what it is";
    let rows = [
        "v1|6.908|6.412|210.5 [201.1, 214.9]|1|1204|37.82|61.2 MB|100 %|attention scores 9.411 ms\
         |every operation in its plain version",
        "4 broken|6.908|6.410|21.40 [20.97, 22.03]|0.1017 [0.09758, 0.1095]|1090|371.2|52.4 MB|100 %\
         |SwiGLU gate and up 301.5 ms|the feed-forward block computes each element in one thread, \
         which reads both matrices for it",
        "4 fixed|6.908|6.412|244.0 [240.1, 247.6]|1.159 [1.117, 1.231]|1010|32.01|52.1 MB|100 %\
         |attention scores 9.402 ms|one kernel for the activation",
    ];
    LastJourney {
        device: "AMD EPYC 9V74 80-Core Processor".to_owned(),
        preset: "tiny".to_owned(),
        date: "2026-08-01".to_owned(),
        interrupted: true,
        head: cells(head),
        rows: rows
            .map(|line| JourneyRow {
                stage: line[..1].parse().unwrap_or(0),
                cells: cells(line),
            })
            .to_vec(),
        days: 3,
    }
}

/// Returns a stage with A and two attempts B, of which the first was measured in pairs.
fn two_attempts() -> App {
    let mut app = at_the_knobs();
    act(&mut app, Action::Pair);
    pair(&mut app, 40, true);
    act(&mut app, Action::KnobTurn(1));
    act(&mut app, Action::Restart);
    train(&mut app, 30);
    app
}

#[test]
fn the_log_of_attempts_cuts_no_figure() {
    let mut app = two_attempts();
    act(&mut app, Action::Open(Overlay::Attempts));
    let figures = |shown: &str| -> Vec<String> {
        shown
            .split(['│', '\n'])
            .filter(|line| line.contains("first loss 120.6"))
            .flat_map(|line| line.trim().split(" · ").map(str::to_owned))
            .collect()
    };
    let whole = figures(&text_at(TYPICAL, &mut app.clone()));
    assert!(whole.len() > 9, "{whole:?}");
    for size in [(60, 16), (80, 24)] {
        let shown = text_at(size, &mut app.clone());
        let fitting = figures(&shown);
        assert!(fitting.len() >= 5, "{shown}");
        for figure in fitting {
            assert!(whole.contains(&figure), "{figure}: {shown}");
        }
    }
    picture("card_attempts", &mut app, TYPICAL);
}

#[test]
fn the_log_of_attempts_names_every_changed_knob() {
    let mut app = two_attempts();
    let run = &mut app.bench.run.story.slots[1].description;
    let train = &mut run.config.as_mut().expect("B ran").train;
    train.batch = 16;
    train.seed = 1234;
    train.context = 96;
    act(&mut app, Action::Open(Overlay::Attempts));

    let shown = text_at((80, 24), &mut app);

    for knob in ["train.batch 16", "train.seed 1234", "train.context 96"] {
        assert!(shown.contains(knob), "{knob}: {shown}");
    }
}

#[test]
fn the_list_names_an_exercise_that_cannot_be_loaded() {
    let mut course = sample::course();
    course.broken.push(UnusableContent {
        folder: "k01-swiglu".to_owned(),
        why: FileError::new("exercises/k01-swiglu/exercise.toml", 3, HOSTILE),
    });
    let (mut app, _) = App::new(course, Progress::default(), Options::default());
    act(&mut app, Action::Open(Overlay::Stages));
    for (width, height) in [(80, 24), (120, 36)] {
        let (_, theme, markers) = LOOKS[0];
        let shown = text(&screen::screen(&mut app, width, height, theme, markers));
        let line = shown.lines().find(|line| line.contains("k01 "));
        let line = line.unwrap_or_else(|| panic!("{shown}"));
        for expected in ["broken", "exercise.toml:3"] {
            assert!(line.contains(expected), "{line}");
        }
        assert!(!line.contains(perflings::sanitize::harmful), "{line:?}");
    }
}

#[test]
fn a_kernel_row_opens_its_own_texts_and_wraps_long_lines() {
    let mut app = b_trains();
    for run in &mut app.bench.run.story.slots {
        if let Some(device) = &mut run.description.device {
            device.kind = "vulkan".to_owned();
        }
    }
    let row = app
        .view
        .selected_kernel(app.shown_run())
        .expect("a profile");
    let kernel = |text: &str, rows: &[&str]| CompiledKernel {
        kernel: row.kernel.clone(),
        text: text.to_owned(),
        rows: rows.iter().map(|row| (*row).to_owned()).collect(),
        ..CompiledKernel::default()
    };
    let long = format!("  // 1. {} end", "word ".repeat(40).trim_end());
    let name = perflings::app::kernel_rows::name(&row);
    let shown = |app: &mut App, texts| {
        app.view.overlay = Some(Overlay::Kernel);
        app.view.kernel_texts.row = row.clone();
        app.view.kernel_texts.read = Some(Ok(texts));
        text_at((80, 24), app)
    };
    let of_other_row = kernel("let other = 1;", &["head fwd"]);
    let of_this_row = kernel(&long, &["x", &name]);

    let own_text = shown(&mut app, vec![of_other_row.clone(), of_this_row]);

    assert!(!own_text.contains("let other"), "{own_text}");
    assert_eq!(own_text.matches("word").count(), 40, "{own_text}");
    let wrapped = own_text.lines().filter(|line| line.contains("// word"));
    assert!(
        wrapped.count() > 1 && own_text.contains("word end"),
        "{own_text}"
    );

    // If no text names the row, all texts of the kernel are shown.
    let all_texts = shown(&mut app, vec![of_other_row, kernel("let more = 2;", &[])]);

    assert!(
        all_texts.contains("let other") && all_texts.contains("(2 of 2)"),
        "{all_texts}"
    );
}
