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
fn every_card_has_a_picture_at_80x24() {
    let mut search = built_in_course();
    act(&mut search, Action::Search);
    for letter in "warp".chars() {
        act(&mut search, Action::Type(letter));
    }
    let found = ["/ warp_  1 entry", "lock-step group", "esc shows all"];
    assert_says(&[(80, 24)], &search, &found);
    let (_, mut help) = open_cards().remove(0);
    let first_page = text_at((80, 24), &mut help);
    act(&mut help, Action::ScrollToEnd);
    let last_page = text_at((80, 24), &mut help);
    for (page, key) in [
        (first_page, "F5 shift-F5 present"),
        (last_page, "ctrl-c quit at once"),
    ] {
        assert!(page.contains(key), "{key}: {page}");
    }
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
                let drawn = text(&screen::screen(&mut app, width, height, theme, markers));
                let corner = match markers {
                    Markers::Braille => '╭',
                    Markers::Dots => '┌',
                    Markers::Ascii => '+',
                };
                let head = drawn
                    .lines()
                    .find(|line| line.contains(" closes "))
                    .unwrap_or_else(|| panic!("{name} at {width}x{height}:\n{drawn}"));
                // The card begins at the edge, or leaves at least six columns of a panel and a space.
                let before: String = head.chars().take_while(|c| *c != corner).collect();
                let columns = before.chars().count();
                assert!(
                    columns == 0 || columns >= 6 && before.ends_with(' '),
                    "{name}: {head}"
                );
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
        let mut app = built_in_course();
        let asked = act(&mut app, Action::Open(Overlay::Summary));
        let mut early = app.clone();
        update(
            &mut early,
            Message::Journey(Some(Box::new(journey.clone()))),
        );
        act(&mut early, Action::ScrollToEnd);
        let early = text_at((200, 50), &mut early);
        assert!(
            early.contains("not predicted yet") && !early.contains("4 broken"),
            "{early}"
        );
        let fourth = app.lesson.course.stages[3].id.clone();
        app.lesson.learner.progress_mut(&fourth).prediction = Some(Prediction::Skipped);
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

#[test]
fn the_log_of_attempts_cuts_no_figure() {
    let mut app = at_the_knobs();
    act(&mut app, Action::Pair);
    pair(&mut app, 40, true);
    act(&mut app, Action::KnobTurn(1));
    act(&mut app, Action::Restart);
    train(&mut app, 30);
    let mut many = app.clone();
    act(&mut app, Action::Open(perflings::app::Overlay::Attempts));
    let figures = |shown: &str| -> Vec<String> {
        shown
            .split(['│', '\n'])
            .filter(|line| line.contains("first loss 120.6"))
            .flat_map(|line| line.trim().split(" · ").map(str::to_owned))
            .collect()
    };
    let all = figures(&text_at(TYPICAL, &mut app.clone()));
    assert!(all.len() > 9, "{all:?}");
    for size in [(60, 16), (80, 24)] {
        let shown = text_at(size, &mut app.clone());
        let fitting = figures(&shown);
        let uncut = fitting.iter().all(|figure| all.contains(figure));
        assert!(uncut && fitting.len() >= 5, "{fitting:?}: {shown}");
    }
    picture("card_attempts", &mut app, TYPICAL);
    // Every changed knob is shown, because two attempts may differ in the last one.
    let run = &mut many.bench.run.story.slots[1].description;
    let train = &mut run.config.as_mut().expect("B ran").train;
    train.batch = 16;
    train.seed = 1234;
    train.context = 96;
    act(&mut many, Action::Open(perflings::app::Overlay::Attempts));
    let drawn = text_at((80, 24), &mut many);
    for knob in ["train.batch 16", "train.seed 1234", "train.context 96"] {
        assert!(drawn.contains(knob), "{drawn}");
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
        let drawn = text(&screen::screen(&mut app, width, height, theme, markers));
        let line = drawn
            .lines()
            .find(|line| line.contains("k01 "))
            .unwrap_or_else(|| panic!("{drawn}"));
        assert!(
            line.contains("broken") && line.contains("exercise.toml:3"),
            "{line}"
        );
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
