//! The line with the learner's next move. The tests reach every sentence that it can hold, and check that each one is on the screen at
//! every size without being cut.

#[path = "guide/exercises.rs"]
mod exercises;
#[path = "guide/stages.rs"]
mod stages;

use crate::{sample, screen, session};
use std::collections::BTreeSet;

use perflings::app::guide::{Sentence, SentencePart, confirmation, next_move};
use perflings::app::member::JoinSettings;
use perflings::app::source::FromEngine;
use perflings::app::{
    Action, App, Confirm, Markers, Message, Options, Overlay, Replay, RunState, ThemeName, update,
};
use perflings::class::link::RoomNews;
use perflings::class::record::{InstructorRequest, Question};
use perflings::class::state::RoomState;
use perflings::course::Course;
use perflings::tui::keys;
use perflings::tui::layout::arrange;
use perflings::tui::panels::status;
use perflings::tui::theme::Theme;
use protocol::config::{Precision, Preset, RunConfig};
use protocol::*;
use strum::VariantArray;

use session::{act, begin, hear, open, train, wanted};

const SIZES: [(u16, u16); 4] = [(60, 16), (80, 24), (120, 36), (200, 50)];

/// The sentences reached so far, with `{}` for each key.
#[derive(Default)]
struct ReachedSentences(BTreeSet<String>);

impl ReachedSentences {
    /// Draws the state at every size, and checks that the sentence of the line is on the screen.
    fn check(&mut self, app: &App) {
        // On small screens the lesson may cover the panels.
        let small = SIZES[..2].iter().map(|size| (*size, true));
        for ((width, height), open) in SIZES.iter().map(|size| (*size, false)).chain(small) {
            let mut app = app.clone();
            app.view.lesson_open = open;
            // The first frame reports how far the panels can scroll.
            let _ = screen::screen(&mut app, width, height, ThemeName::Dark, Markers::Braille);
            let pieces = match app.view.confirm {
                Some(confirm) => confirmation(confirm, &app),
                None => next_move(&app),
            };
            let pattern = pieces
                .iter()
                .map(|piece| text_of(piece, |_| "{}".to_owned()));
            self.0.insert(pattern.collect());
            let drawn = screen::screen(&mut app, width, height, ThemeName::Dark, Markers::Braille);
            let key = |action| keys::label(action, &app);
            let sentence: String = pieces.iter().map(|piece| text_of(piece, key)).collect();
            let guide = arrange(drawn.area, &app).guide;
            let theme = Theme::new(ThemeName::Dark, Markers::Braille, screen::ABLE);
            let needs = status::rows(&app, &theme, width);
            let shown = screen::text(&drawn);
            let rows: Vec<&str> = shown
                .lines()
                .skip(usize::from(guide.y))
                .take(usize::from(guide.height))
                .collect();
            assert!(
                needs <= guide.height,
                "{width}x{height}: {needs} rows, not {}: {rows:#?}",
                guide.height
            );
            if let Some(text) = expected_text(&app, sentence) {
                assert!(
                    single_spaced(&rows.join(" ")).contains(&single_spaced(&text)),
                    "{width}x{height}: `{text}` in {rows:#?}"
                );
            }
        }
    }

    /// Removes the notice, which covers the line, and checks the state.
    fn check_without_notice(&mut self, app: &mut App) {
        app.view.notice = None;
        self.check(app);
    }

    fn act(&mut self, app: &mut App, action: Action) {
        act(app, action);
        self.check(app);
    }

    fn hear(&mut self, app: &mut App, event: Event) {
        hear(app, event);
        self.check(app);
    }
}

/// Returns the text that the line has to show: a notice covers the sentence, and a beat shows its own text instead.
fn expected_text(app: &App, sentence: String) -> Option<String> {
    if app.view.confirm.is_some() {
        return Some(sentence);
    }
    if app.cue().is_some() {
        return None;
    }
    let notice = app.view.notice.as_ref();
    Some(notice.map_or(sentence, |notice| notice.text.clone()))
}

/// Returns the text of a piece. `key` returns the label of an action's key.
fn text_of(piece: &SentencePart, key: impl Fn(Action) -> String) -> String {
    match piece {
        SentencePart::Text(text) => text.clone(),
        SentencePart::Key(action) => key(*action),
    }
}

fn single_spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The built-in course at the stage with this number.
fn at_stage(stage: u32) -> App {
    let options = Options {
        stage: Some(stage),
        ..Options::default()
    };
    begin(Course::builtin(), options).0
}

/// A run without a stage that trains this configuration.
fn free_run(config: RunConfig) -> App {
    let options = Options {
        free: Some(config),
        ..Options::default()
    };
    begin(Course::builtin(), options).0
}

fn runs_without_a_stage(reached: &mut ReachedSentences) {
    let mut app = free_run(RunConfig::preset(Preset::Tiny));
    train(&mut app, 5);
    reached.check(&app);
    app.view.knobs = false;
    reached.check(&app);
    reached.check(&begin(Course::default(), Options::default()).0);
}

fn cards_and_typed_values(reached: &mut ReachedSentences) {
    for overlay in [
        Overlay::Welcome,
        Overlay::Skipped,
        Overlay::Vote,
        Overlay::Stages,
        Overlay::Glossary,
    ] {
        let mut covered = at_stage(3);
        covered.view.notice = None;
        covered.view.overlay = Some(overlay);
        reached.check(&covered);
    }
    let mut typed = at_stage(3);
    typed.view.notice = None;
    typed.view.knobs = true;
    typed.view.value = Some(String::new());
    reached.check(&typed);
    for confirm in [Confirm::ShowSolution, Confirm::Reset, Confirm::GiveUp] {
        let mut app = at_stage(1);
        app.view.confirm = Some(confirm);
        reached.check(&app);
    }
}

fn failures(reached: &mut ReachedSentences) {
    let mut gone = at_stage(1);
    let reason = "ended by signal 9 (killed)".to_owned();
    update(&mut gone, Message::Engine(FromEngine::Gone { reason }));
    reached.check(&gone);
    reached.check_without_notice(&mut gone);
    let mut config = RunConfig::preset(Preset::Tiny);
    config.train.precision = Precision::F16;
    let mut lost = free_run(config);
    let mut started = sample::started(&wanted(&lost), 0);
    if let Event::Started(started) = &mut started {
        started.matrix_cores = true;
    }
    hear(&mut lost, started);
    hear(&mut lost, Event::Failed(Failed::default()));
    reached.check_without_notice(&mut lost);
    let mut failed = at_stage(1);
    let kind = FailedKind::Device;
    let reason = "no adapter of kind gpu; looked for Vulkan, Metal, DX12".to_owned();
    hear(
        &mut failed,
        Event::Failed(Failed {
            kind,
            reason,
            request: 0,
        }),
    );
    reached.check_without_notice(&mut failed);
}

fn recordings(reached: &mut ReachedSentences) {
    let recorded = Replay {
        file: "h100.jsonl".to_owned(),
        device: sample::device(),
        date: "2026-11-01".to_owned(),
        stage: Some(1),
        speed: 1.0,
        ..Replay::default()
    };
    let training = Replay {
        stage: None,
        watched: true,
        ..recorded.clone()
    };
    for shown in [recorded, training] {
        let recording = Options {
            recording: Some(shown),
            ..Options::default()
        };
        let mut watching = begin(Course::builtin(), recording).0;
        reached.check(&watching);
        let second = ForeignRun {
            slot: Slot::B,
            apart: true,
            ..ForeignRun::default()
        };
        hear(&mut watching, Event::Run(second));
        reached.check_without_notice(&mut watching);
        watching.bench.run.state = RunState::Finished;
        reached.check_without_notice(&mut watching);
    }
}

/// All beats of all stages.
fn presentations(reached: &mut ReachedSentences) {
    for number in 1..=9 {
        let mut app = at_stage(number);
        act(&mut app, Action::Present);
        train(&mut app, 20);
        app.view.confirm = Some(Confirm::Quit);
        reached.check(&app);
        app.view.confirm = None;
        for _ in 0..12 {
            reached.check_without_notice(&mut app);
            act(&mut app, Action::NextBeat);
        }
    }
}

/// The instructor asks the class a free question, and asks it again.
fn asked_by_the_room(reached: &mut ReachedSentences) {
    let options = Options {
        room: Some(JoinSettings {
            id: "a".repeat(32),
            name: "Ana".to_owned(),
            at: "class".to_owned(),
            instructor: false,
        }),
        ..Options::default()
    };
    let (mut app, _) = begin(Course::builtin(), options);
    train(&mut app, 3);
    let question = Question {
        prompt: "Who has seen this?".to_owned(),
        choices: vec!["yes".to_owned(), "no".to_owned()],
    };
    let mut room = RoomState::default();
    room.carry_out(&InstructorRequest::Ask(question), &app.lesson.course, 0)
        .expect("obeyed");
    for round in [0, 1] {
        for vote in room.class.votes.values_mut() {
            vote.round = round;
        }
        let news = RoomNews::Class(Box::new(room.class.clone()));
        update(&mut app, Message::Room(news));
        reached.check_without_notice(&mut app);
    }
}

/// Returns a sentence of the program with `{}` for each key.
fn pattern(sentence: Sentence) -> String {
    sentence
        .into_str()
        .split(['{', '}'])
        .enumerate()
        .map(|(index, part)| if index % 2 == 0 { part } else { "{}" })
        .collect()
}

#[test]
fn every_sentence_is_reached_and_is_not_cut() {
    let mut reached = ReachedSentences::default();
    for number in 1..=9 {
        stages::stage(&mut reached, number);
    }
    exercises::exercises(&mut reached);
    exercises::mysteries(&mut reached);
    runs_without_a_stage(&mut reached);
    cards_and_typed_values(&mut reached);
    failures(&mut reached);
    recordings(&mut reached);
    asked_by_the_room(&mut reached);
    presentations(&mut reached);
    let fixed = Sentence::VARIANTS.iter().map(|sentence| pattern(*sentence));
    let mut never: Vec<String> = fixed.filter(|text| !reached.0.contains(text)).collect();
    // These parts belong to sentences that name a check of the stage.
    let parts_about_checks = [
        "is still the stage as found",
        "Not met so far",
        "Not met: ",
        "{}: measure A and B in pairs",
        "B is still running",
        "run B again from step 0",
        "{}: run B",
    ];
    for part in parts_about_checks {
        if !reached.0.iter().any(|sentence| sentence.contains(part)) {
            never.push(part.to_owned());
        }
    }
    assert!(never.is_empty(), "never reached: {never:#?}");
}
