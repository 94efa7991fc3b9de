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

/// Calls `check` at every beat of the course, after its run or its pairs were measured.
fn each_beat(mut check: impl FnMut(&mut App)) {
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
        check(&mut app);
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
    let mut texts = String::new();
    let mut is_quoted = false;
    let mut letters = code.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if is_quoted => {
                letters.next();
                texts.push(' ');
            }
            '"' => {
                is_quoted = !is_quoted;
                texts.push(' ');
            }
            // A quotation mark as a character.
            '\'' if !is_quoted && letters.peek() == Some(&'"') => drop(letters.next()),
            // A comment.
            '/' if !is_quoted && letters.peek() == Some(&'/') => {
                letters.by_ref().find(|letter| *letter == '\n');
            }
            _ => texts.extend(is_quoted.then_some(letter)),
        }
    }
    texts
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

/// Returns the words on a screen that no text contains: they were cut. Words with a mark of omission are left out.
fn cut_words(shown: &str, known: &BTreeSet<String>) -> Vec<String> {
    let without_omissions: String = shown
        .split_inclusive(char::is_whitespace)
        .filter(|token| !token.contains('…'))
        .collect();
    // Two curves may end beside each other.
    let letters_of_curves = ["ab", "ba"];
    words(&without_omissions)
        .filter(|word| !letters_of_curves.contains(&word.as_str()) && !known.contains(word))
        .collect()
}

/// The cut words, each with the place and the screen where it was found first.
#[derive(Default)]
struct CutWords(BTreeMap<String, (String, String)>);

impl CutWords {
    /// Adds the cut words of a screen.
    fn add(&mut self, place: &str, shown: &str, known: &BTreeSet<String>) {
        for word in cut_words(shown, known) {
            let first = (place.to_owned(), shown.to_owned());
            self.0.entry(word).or_insert(first);
        }
    }

    /// Fails if there is a cut word. The message names each with its place and has the first screen.
    fn assert_none(&self) {
        let places = self
            .0
            .iter()
            .map(|(word, (place, _))| format!("{word}: {place}"));
        let list = places.collect::<Vec<_>>().join("\n");
        let first_screen = self.0.values().next().map_or("", |(_, shown)| shown);
        assert!(self.0.is_empty(), "{list}\n{first_screen}");
    }
}

#[test]
fn no_text_of_a_beat_ends_in_the_middle_of_a_word() {
    let known = vocabulary();
    let mut found = CutWords::default();
    each_beat(|app| {
        let beat = app.beat().expect("a beat");
        for size in BEATS {
            let place = format!("beat {}.{} at {size:?}", beat.stage + 1, beat.at + 1);
            found.add(&place, &text_at(size, app), &known);
        }
    });
    found.assert_none();
}

#[test]
fn no_text_of_a_card_ends_in_the_middle_of_a_word() {
    let known = vocabulary();
    let mut found = CutWords::default();
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
            found.add(&format!("card {name} at {width}x{height}"), &shown, &known);
        }
    }
    found.assert_none();
}

#[test]
fn no_text_of_a_panel_ends_in_the_middle_of_a_word() {
    let known = vocabulary();
    let mut found = CutWords::default();
    // A card cuts the texts that it covers, and the hostile texts of state 7 are no words.
    let is_whole = |(index, app): &(usize, App)| {
        let has_card = matches!(app.bench.run.state, RunState::EngineGone { .. });
        *index != 7 && app.view.overlay.is_none() && !has_card
    };
    for (index, mut app) in all_states().into_iter().enumerate().filter(is_whole) {
        for size in BEATS {
            let place = format!("state {index} at {size:?}");
            found.add(&place, &text_at(size, &mut app), &known);
        }
    }
    found.assert_none();
}

#[test]
fn no_text_of_an_expanded_panel_ends_in_the_middle_of_a_word() {
    let known = vocabulary();
    let mut found = CutWords::default();
    // The letters of the roofline stand beside each other like words.
    let is_text = |panel: &&Panel| **panel != Panel::Roofline;
    for panel in Panel::VARIANTS.iter().filter(is_text) {
        for mut app in [
            b_trains(),
            stage_without_syncs(),
            without_gradients(),
            pairs_measured(),
            b_continues_a(),
        ] {
            act(&mut app, Action::Focus(*panel));
            act(&mut app, Action::Expand);
            for size in BEATS {
                let place = format!("{panel:?} at {size:?}");
                found.add(&place, &text_at(size, &mut app), &known);
            }
        }
    }
    found.assert_none();
}

#[test]
fn rows_that_a_beat_names_are_on_every_screen() {
    each_beat(|app| {
        let beat = app.beat().expect("a beat");
        let cue = app.cue().expect("its text");
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
                let place = format!("beat {}.{} at {size:?}", beat.stage + 1, beat.at + 1);
                let is_shown = shows(app, size, row);
                assert!(is_shown, "{row} in {place}: {}", text_at(size, app));
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
    let throughput = |n: u64, rate: f64| {
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
        hear(&mut app, throughput(n, 100.0 + n as f64));
        assert_eq!(text_at(TYPICAL, &mut app), shown, "{n}");
    }
    hear(&mut app, throughput(80, 161.3));
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

/// Begins the replay of a recording, or a watched training, of a stage or of none.
fn replay(file: &str, stage: Option<u32>, watched: bool) -> App {
    let recording = Replay {
        file: file.to_owned(),
        device: sample::device(),
        date: "2026-11-01".to_owned(),
        stage,
        paused: false,
        speed: 1.0,
        unsolved: false,
        watched,
    };
    let options = Options {
        recording: Some(recording),
        stage,
        ..Options::default()
    };
    session::begin(Course::builtin(), options).0
}

#[test]
fn a_recording_shows_the_lesson_of_its_stage_only() {
    for stage in [None, Some(2)] {
        let mut app = replay("run.jsonl", stage, false);
        act(&mut app, Action::Lesson);
        let stages = app.lesson.course.stages.clone();
        for size in BEATS {
            let shown = text_at(size, &mut app);
            for other in stages.iter().filter(|other| Some(other.number) != stage) {
                assert!(!shown.contains(&other.title), "{}: {shown}", other.title);
            }
            let has_lesson = shown.contains("predict ▸") || shown.contains("✓ predict");
            assert!(stage.is_some() || !has_lesson, "{shown}");
        }
    }
}

/// Returns the state of a process of a watched training. A step of 20 ms has 1 ms of optimizer, and 16 ms of forward and backward together.
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

/// Returns a watched training of two processes. Process 1 is slow in forward, and silent.
fn watched_training() -> App {
    let mut app = replay("python train.py", None, true);
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
    app
}

#[test]
fn a_watched_training_waits_for_its_first_line() {
    let mut app = replay("python train.py", None, true);

    let shown = text_at((160, 45), &mut app);

    assert!(shown.contains("Waiting for the first line"), "{shown}");
}

#[test]
fn a_watched_training_shows_each_process_and_the_figures_that_it_does_not_report() {
    let shown = text_at((200, 50), &mut watched_training());

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
}

#[test]
fn the_smallest_screen_names_the_process_in_trouble() {
    let mut app = watched_training();
    act(&mut app, Action::MarkB);

    let shown = text_at((60, 16), &mut app);

    assert!(shown.contains("rank 1: silent"), "{shown}");
}

#[test]
fn the_latest_profile_of_a_watched_training_can_be_opened() {
    let mut app = watched_training();
    let opened = act(&mut app, Action::OpenProfile);
    assert_eq!(opened, [], "no profile was written yet");

    let profile = StepProfile {
        file: Some("run/trace-3.json.gz".to_owned()),
        ..StepProfile::default()
    };
    hear(&mut app, Event::Kernels(profile));
    let opened = act(&mut app, Action::OpenProfile);

    let [Effect::OpenProfile { file, .. }] = opened.as_slice() else {
        panic!("{opened:?}");
    };
    assert!(file.ends_with("trace-3.json.gz"));
}

#[test]
fn two_watched_trainings_stand_side_by_side_each_with_its_processes() {
    let mut app = replay("before beside after", None, true);
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
        // The panel breaks this sentence here.
        "A and B ran on",
        "different devices.",
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
