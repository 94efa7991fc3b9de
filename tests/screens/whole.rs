//! No text on a screen is cut in the middle of a word, and the rows that a beat names are on every screen.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::*;
use perflings::app::Replay;
use perflings::tui::panels;
use perflings::tui::theme::Theme;
use ratatui::backend::TestBackend;
use ratatui::{Frame, Terminal};

/// The sizes at which every beat is drawn.
const BEATS: [(u16, u16); 5] = [(60, 16), (80, 24), (120, 36), (160, 45), (200, 50)];

/// Calls `look` at every beat of the course, after its run or its pairs were measured.
fn each_beat(mut look: impl FnMut(&mut App)) {
    let mut app = built_in_course();
    act(&mut app, Action::Present);
    let all = app.lesson.course.stages.iter();
    let beats: usize = all.map(|stage| stage.cues.len()).sum();
    for _ in 0..beats {
        let beat = app.beat().expect("a beat");
        if beat.pairs {
            pair(&mut app, 20, true);
        } else {
            train(&mut app, 60);
        }
        look(&mut app);
        act(&mut app, Action::NextBeat);
    }
}

/// Returns the words of a text, without figures and signs.
fn words(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| !c.is_alphabetic());
    words.filter(|word| word.len() > 1).map(str::to_lowercase)
}

/// Returns the texts in quotes of a source file.
fn quoted(code: &str) -> String {
    let (mut out, mut inside) = (String::new(), false);
    let mut letters = code.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if inside => {
                letters.next();
                out.push(' ');
            }
            '"' => {
                inside = !inside;
                out.push(' ');
            }
            '\'' if !inside && letters.peek() == Some(&'"') => drop(letters.next()),
            '/' if !inside && letters.peek() == Some(&'/') => {
                letters.by_ref().find(|letter| *letter == '\n');
            }
            _ => out.extend(inside.then_some(letter)),
        }
    }
    out
}

/// Returns all words that a screen may show: those of the course, and those in quotes in the source.
fn vocabulary() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders: Vec<PathBuf> = ["src", "crates", "tests/sample", "lessons", "exercises"]
        .map(|folder| root.join(folder))
        .to_vec();
    let mut known = BTreeSet::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(text) = std::fs::read_to_string(&path) {
                let is_code = path.extension().is_some_and(|extension| extension == "rs");
                let text = if is_code { quoted(&text) } else { text };
                known.extend(words(&text));
            }
        }
    }
    known.extend(words(&quoted(include_str!("../screens.rs"))));
    known
}

/// Returns the words on a screen that are only the beginning or the end of a known word. A word with a mark of omission may be cut.
fn pieces(shown: &str, known: &BTreeSet<String>) -> Vec<String> {
    let shown: String = shown
        .split_inclusive(char::is_whitespace)
        .filter(|token| !token.contains('…'))
        .collect();
    // The letters of two curves that end beside each other.
    let letters = ["ab", "ba"];
    let words = words(&shown).filter(|word| !letters.contains(&word.as_str()));
    words.filter(|word| !known.contains(word)).collect()
}

#[test]
fn no_text_of_a_beat_ends_in_the_middle_of_a_word() {
    let known = vocabulary();
    let mut found = BTreeMap::new();
    each_beat(|app| {
        let beat = app.beat().expect("a beat");
        for size in BEATS {
            let shown = text_at(size, app);
            for piece in pieces(&shown, &known) {
                let place = format!("beat {}.{} at {size:?}", beat.stage + 1, beat.at + 1);
                found.entry(piece).or_insert((place, shown.clone()));
            }
        }
    });
    assert!(found.is_empty(), "{}", listed(&found));
}

#[test]
fn no_text_of_a_panel_or_a_card_ends_in_the_middle_of_a_word() {
    let known = vocabulary();
    let mut found = BTreeMap::new();
    // What a card covers is cut, hostile texts are no words, and the letters of the roofline stand beside each other.
    let states = all_states().into_iter().enumerate();
    let states = states.filter(|(at, app)| {
        let failed = matches!(app.bench.run.state, RunState::EngineGone { .. });
        *at != 7 && app.view.overlay.is_none() && !failed
    });
    let states = states.map(|(at, app)| (format!("state {at}"), app));
    let expanded = Panel::VARIANTS
        .iter()
        .filter(|panel| **panel != Panel::Roofline);
    let expanded = expanded.flat_map(|panel| {
        [
            b_trains(),
            stage_without_syncs(),
            without_gradients(),
            pairs_measured(),
            b_continues_a(),
        ]
        .map(|mut app| {
            act(&mut app, Action::Focus(*panel));
            act(&mut app, Action::Expand);
            (format!("{panel:?}"), app)
        })
    });
    for (name, app) in open_cards() {
        for (width, height) in BEATS {
            let theme = Theme::new(ThemeName::Dark, Markers::Braille, screen::ABLE);
            let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
            let overlay = app.view.overlay.expect("a card");
            let draw = |frame: &mut Frame<'_>| {
                panels::draw_card(overlay, frame.area(), &app, &theme, frame);
            };
            terminal.draw(draw).expect("drawn");
            let shown = text(terminal.backend().buffer());
            for piece in pieces(&shown, &known) {
                let place = format!("card {name} at {width}x{height}");
                found.entry(piece).or_insert((place, shown.clone()));
            }
        }
    }
    for (name, mut app) in states.chain(expanded) {
        for size in BEATS {
            let shown = text_at(size, &mut app);
            for piece in pieces(&shown, &known) {
                found
                    .entry(piece)
                    .or_insert((format!("{name} at {size:?}"), shown.clone()));
            }
        }
    }
    assert!(found.is_empty(), "{}", listed(&found));
}

/// Describes each cut word with its place, and the first screen.
fn listed(found: &BTreeMap<String, (String, String)>) -> String {
    let all: Vec<String> = found
        .iter()
        .map(|(piece, (place, _))| format!("{piece}: {place}"))
        .collect();
    let first = found.values().next().map_or("", |(_, shown)| shown);
    format!("{}\n{first}", all.join("\n"))
}

#[test]
fn rows_that_a_beat_names_are_on_every_screen() {
    each_beat(|app| {
        let (beat, cue) = (app.beat().expect("a beat"), app.cue().expect("its text"));
        let shows = |app: &mut App, size: (u16, u16), row: &str| {
            let buffer = screen::screen(app, size.0, size.1, ThemeName::Dark, Markers::Braille);
            let shown = text(&buffer).to_lowercase();
            let mut words = row.split_whitespace();
            words.all(|word| shown.contains(&word.to_lowercase()) || has_large(&buffer, word))
        };
        let mut named: Vec<&str> = match beat.panel {
            Panel::Lesson => return,
            Panel::Memory => ["weights", "gradients", "moments", "the rest"].to_vec(),
            _ => cue.row.split(", ").filter(|row| !row.is_empty()).collect(),
        };
        // Rows of a profile that the sample has.
        named.retain(|row| beat.panel == Panel::Memory || shows(app, (200, 50), row));
        for size in BEATS {
            for row in named.iter().filter(|row| cue.asks(row)) {
                let (stage, at) = (beat.stage + 1, beat.at + 1);
                let shown = shows(app, size, row);
                let screen = text_at(size, app);
                assert!(shown, "{row} in beat {stage}.{at} at {size:?}: {screen}");
            }
        }
    });
}

#[test]
fn rows_that_a_lesson_names_are_on_every_screen() {
    let stages = built_in_course().lesson.course.stages.clone();
    for stage in &stages {
        let mut app = built_in_course();
        act(&mut app, Action::Stage(stage.number));
        act(&mut app, Action::Yes);
        train(&mut app, 60);
        act(&mut app, Action::Lesson);
        act(&mut app, Action::Answer(0));
        act(&mut app, Action::RangeShift(1));
        act(&mut app, Action::RangeKeep);
        skip_locating(&mut app);
        for pointer in &stage.evidence {
            let shows = |size: (u16, u16), row: &str| {
                let shown = text_at(size, &mut app.clone()).to_lowercase();
                // A low ledger has its clocks in one line, in words of its own.
                let in_short = row == "host" && shown.contains("submitted");
                let mut words = row.split_whitespace();
                in_short || words.all(|word| shown.contains(&word.to_lowercase()))
            };
            // The learner goes through the rows of a profile, of which there are more than lines.
            let scrolls = pointer.panel == Panel::Kernels;
            let rows = pointer.row.split(", ").filter(|row| !row.is_empty());
            for row in rows.filter(|row| !scrolls && shows((200, 50), row)) {
                for size in BEATS {
                    let screen = text_at(size, &mut app.clone());
                    assert!(
                        shows(size, row),
                        "{row} in stage {} at {size:?}: {screen}",
                        stage.number
                    );
                }
            }
            act(&mut app, Action::NextPointer);
        }
    }
}

#[test]
fn the_choices_of_a_vote_have_large_letters_on_a_large_screen() {
    let mut large = BTreeMap::new();
    each_beat(|app| {
        if app.beat().expect("a beat").vote == perflings::app::beats::VoteState::Open {
            let stage = app.stage().expect("a stage").clone();
            for size in BEATS {
                let buffer = screen::screen(app, size.0, size.1, ThemeName::Dark, Markers::Braille);
                let mut choices = stage.prediction.choices.iter();
                let first_word = |choice: &String| choice.split(' ').next().map(str::to_owned);
                let all = choices
                    .all(|choice| first_word(choice).is_some_and(|word| has_large(&buffer, &word)));
                *large.entry(size).or_insert(0) += usize::from(all);
            }
        }
    });
    let counts = BEATS.map(|size| large[&size]);
    assert_eq!((counts[4], counts[2] >= 5), (9, true), "{large:?}");
}

#[test]
fn a_term_is_explained_only_if_it_is_on_the_screen() {
    for make in [
        a_trains as Make,
        b_trains,
        stage_without_syncs,
        pairs_measured,
        without_gradients,
        b_continues_a,
    ] {
        for panel in Panel::VARIANTS {
            for width in [40, 60, 72, 100, 140] {
                for height in [8, 12, 20, 40] {
                    let (dark, dots) = (ThemeName::Dark, Markers::Braille);
                    let drawn = screen::panel(&mut make(), *panel, width, height, dark, dots);
                    let drawn = text(&drawn).to_lowercase();
                    for term in [
                        "wall average",
                        "by wall time",
                        "middle half",
                        "the rest",
                        "zero",
                        "parity",
                    ] {
                        let explained = drawn.contains(&format!("{term}: "));
                        let times = drawn.matches(term).count();
                        assert!(!explained || times > 1, "{term}: {drawn}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_rate_for_an_audience_changes_only_after_twice_as_many_steps() {
    let mut app = built_in_course();
    act(&mut app, Action::Stage(6));
    act(&mut app, Action::Present);
    train(&mut app, 40);
    let shown = text_at(TYPICAL, &mut app);
    let run = app.bench.run.wanted.clone().expect("a run");
    let told = |n: u64, rate: f64| {
        let step_ms = Spread {
            median: 1e3 / rate,
            n,
            ..Spread::default()
        };
        Event::Throughput(Throughput {
            slot: run.slot,
            step_ms,
            samples_per_s: rate,
            ..Throughput::default()
        })
    };
    for n in 41..80 {
        hear(&mut app, told(n, 100.0 + n as f64));
        assert_eq!(text_at(TYPICAL, &mut app), shown, "{n}");
    }
    hear(&mut app, told(80, 161.3));
    let (dark, dots) = (ThemeName::Dark, Markers::Braille);
    let later = screen::screen(&mut app, 80, 24, dark, dots);
    assert!(has_large(&later, "161.3"), "{}", text(&later));
    assert!(text(&later).contains("161.3 samples/s"));
}

#[test]
fn the_legend_the_chart_and_the_notice_name_the_same_step_of_a_nan() {
    let mut app = b_continues_a();
    let run = app.bench.run.wanted.clone().expect("a run");
    for at in 80..120 {
        let Event::Step(mut step) = sample::step(&run, at) else {
            unreachable!()
        };
        step.loss = Some(if at < 90 { 5.0 } else { f64::NAN }.into());
        hear(&mut app, Event::Step(step));
    }
    for size in BEATS {
        let shown = text_at(size, &mut app.clone());
        let steps: BTreeSet<&str> = shown
            .split("NaN at step ")
            .skip(1)
            .filter_map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next())
            .collect();
        assert_eq!(steps, BTreeSet::from(["90"]), "{size:?}: {shown}");
        assert!(!shown.contains("from step 41"), "{shown}");
    }
}

#[test]
fn a_recording_of_a_free_run_has_no_lesson() {
    for stage in [None, Some(2)] {
        let recording = Replay {
            file: "run.jsonl".to_owned(),
            device: sample::device(),
            date: "2026-11-01".to_owned(),
            stage,
            paused: false,
            speed: 1.0,
            unsolved: false,
            watched: false,
        };
        let options = Options {
            recording: Some(recording),
            stage,
            ..Options::default()
        };
        let mut app = session::begin(Course::builtin(), options).0;
        act(&mut app, Action::Lesson);
        let titles = app.lesson.course.stages.clone();
        for size in BEATS {
            let shown = text_at(size, &mut app);
            for one in titles.iter().filter(|one| Some(one.number) != stage) {
                assert!(!shown.contains(&one.title), "{}: {shown}", one.title);
            }
            let heads = shown.contains("predict ▸") || shown.contains("✓ predict");
            assert!(stage.is_some() || !heads, "{shown}");
        }
    }
}

/// A process of a watched training.
fn rank(number: u32, forward: f64, silent_s: Option<u64>) -> RankReading {
    RankReading {
        rank: number,
        step: Some(20),
        step_ms: Some(20.0),
        phases: Some(PhaseTimes::from_parts([forward, 16.0 - forward, 1.0], 20.0)),
        own_ms: Some(0.1),
        silent_s,
        ..RankReading::default()
    }
}

#[test]
fn a_watched_training_shows_each_process_and_what_it_does_not_report() {
    let recording = Replay {
        file: "python train.py".to_owned(),
        device: Device::default(),
        date: String::new(),
        stage: None,
        paused: false,
        speed: 1.0,
        unsolved: false,
        watched: true,
    };
    let options = Options {
        recording: Some(recording),
        ..Options::default()
    };
    let mut app = session::begin(Course::builtin(), options).0;
    let waiting = text_at((160, 45), &mut app);
    assert!(waiting.contains("Waiting for the first line"), "{waiting}");
    let run = ForeignRun {
        name: "train.py".to_owned(),
        ..ForeignRun::default()
    };
    let step = Step {
        loss: Some(Num(4.0)),
        ms: 20.0,
        ..Step::default()
    };
    let ranks = vec![rank(0, 5.0, None), rank(1, 9.0, Some(34))];
    for event in [Event::Run(run), Event::Step(step), Event::Ranks { ranks }] {
        hear(&mut app, event);
    }
    let shown = text_at((200, 50), &mut app);
    for text in [
        "silent for 34 s: it may be gone",
        "rank 1: silent for 34 s",
        "The others wait for rank 1 in forward.",
        "0.100 ms of a step",
        "perflings.watch(model, optimizer, samples=32)",
        "not reported:",
    ] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    assert!(!shown.contains("running train.py"), "{shown}");
    assert!(!shown.contains("n next"), "no stage follows: {shown}");
    act(&mut app, Action::MarkB);
    let small = text_at((60, 16), &mut app);
    assert!(small.contains("rank 1: silent"), "{small}");
    assert_eq!(
        act(&mut app, Action::OpenProfile),
        [],
        "no profile was written"
    );
    let profile = StepProfile {
        file: Some("run/trace-3.json.gz".to_owned()),
        ..StepProfile::default()
    };
    hear(&mut app, Event::Kernels(profile));
    let opened = act(&mut app, Action::OpenProfile);
    assert!(
        matches!(opened.as_slice(), [Effect::OpenProfile { file, .. }] if file.ends_with("trace-3.json.gz")),
        "{opened:?}"
    );
}

#[test]
fn two_watched_trainings_stand_side_by_side_each_with_its_processes() {
    let recording = Replay {
        file: "before beside after".to_owned(),
        device: Device::default(),
        date: String::new(),
        stage: None,
        paused: false,
        speed: 1.0,
        unsolved: false,
        watched: true,
    };
    let options = Options {
        recording: Some(recording),
        ..Options::default()
    };
    let mut app = session::begin(Course::builtin(), options).0;
    for (slot, ms) in [(Slot::A, 20.0), (Slot::B, 15.0)] {
        let run = ForeignRun {
            slot,
            name: "train.py".to_owned(),
            device: Some(Device {
                kind: "gpu".to_owned(),
                name: format!("GPU of {slot:?}"),
            }),
            apart: true,
            ..ForeignRun::default()
        };
        hear(&mut app, Event::Run(run));
        for step in 0..64 {
            let step = Step {
                slot,
                step,
                ms,
                loss: Some(Num(4.0)),
                ..Step::default()
            };
            hear(&mut app, Event::Step(step));
        }
    }
    let of_b = |number, forward| RankReading {
        slot: Slot::B,
        ..rank(number, forward, None)
    };
    let ranks = vec![rank(0, 9.0, Some(34)), of_b(0, 5.0), of_b(1, 5.0)];
    hear(&mut app, Event::Ranks { ranks });
    let shown = text_at((200, 50), &mut app);
    for text in [
        "A: train.py on an unnamed host: GPU of A",
        "B: train.py on an unnamed host: GPU of B",
        "Processes of A",
        "Processes of B",
        "A step of B takes 25.0 % less time than one of A.",
        "A and B ran on different devices.",
    ] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    assert!(
        !shown.contains("The others wait"),
        "A is no process of B: {shown}"
    );
    assert!(!shown.contains("rank 0: silent"), "B goes on: {shown}");
    assert_eq!(act(&mut app, Action::MarkB), [], "B is taken");
}
