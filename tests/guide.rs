//! The line with the learner's next move. The tests reach every sentence that it can hold, and check that each one is on the screen at
//! every size without being cut.

use crate::{sample, screen, session};
use std::collections::BTreeSet;

use perflings::app::bench::Asked;
use perflings::app::exercise::ExerciseNews;
use perflings::app::exercise::measuring::{AnswerFile, Measurement};
use perflings::app::guide::{SentencePart, confirmation, next_move};
use perflings::app::member::JoinSettings;
use perflings::app::mystery::JudgeStep;
use perflings::app::source::FromEngine;
use perflings::app::{
    Action, App, Confirm, Markers, Message, Mode, Options, Overlay, Panel, Replay, RunState,
    ThemeName, update,
};
use perflings::class::link::RoomNews;
use perflings::class::record::{InstructorRequest, Question};
use perflings::class::state::RoomState;
use perflings::course::Course;
use perflings::course::save_file::{Prediction, StageState};
use perflings::judge::Outcome;
use perflings::judge::kernel::KernelVerdict;
use perflings::tui::keys;
use perflings::tui::layout::arrange;
use perflings::tui::panels::status;
use perflings::tui::theme::Theme;
use protocol::config::{Precision, Preset, RunConfig};
use protocol::*;

use session::{act, begin, begin_pairs, hear, open, play_recording, train, wanted};

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
                .map(|piece| written(piece, |_| "{}".to_owned()));
            self.0.insert(pattern.collect());
            let drawn = screen::screen(&mut app, width, height, ThemeName::Dark, Markers::Braille);
            let key = |action| keys::label(action, &app);
            let sentence: String = pieces.iter().map(|piece| written(piece, key)).collect();
            let mut wanted = vec![sentence];
            if app.view.confirm.is_none()
                && let Some(notice) = &app.view.notice
            {
                wanted = vec![notice.text.clone()];
            }
            if app.view.confirm.is_none() && app.cue().is_some() {
                wanted.clear();
            }
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
            for text in wanted {
                assert!(
                    joined(&rows.join(" ")).contains(&joined(&text)),
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

fn written(piece: &SentencePart, key: impl Fn(Action) -> String) -> String {
    match piece {
        SentencePart::Text(text) => text.clone(),
        SentencePart::Key(action) => key(*action),
    }
}

fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn at_stage(stage: u32) -> App {
    let options = Options {
        stage: Some(stage),
        ..Options::default()
    };
    begin(Course::builtin(), options).0
}

/// Plays a stage from its beginning to its end.
fn stage(reached: &mut ReachedSentences, number: u32) {
    let mut app = at_stage(number);
    let of = app.stage().expect("a stage").clone();
    reached.check(&app);
    train(&mut app, 10);
    reached.check(&app);
    for action in [
        Action::Toggle,
        Action::No,
        Action::Pair,
        Action::No,
        Action::Knobs,
        Action::No,
    ] {
        reached.act(&mut app, action);
    }
    reached.act(&mut app, Action::Lesson);
    for _ in 0..6 {
        reached.act(&mut app, Action::TurnPage(1));
    }
    reached.check_without_notice(&mut app);
    let mut small = app.clone();
    session::resize(&mut small, 80, 24);
    small.view.lesson_open = true;
    for by in [-9, 1, 1, 1] {
        reached.act(&mut small, Action::TurnPage(by));
        reached.check_without_notice(&mut small);
    }
    reached.act(&mut app, Action::Question);
    reached.act(&mut app, Action::Answer(0));
    let mut leaves = app.clone();
    reached.act(&mut leaves, Action::NextStage);
    reached.check_without_notice(&mut app);
    reached.act(&mut app, Action::Lesson);
    reached.act(&mut app, Action::Lesson);
    reached.act(&mut app, Action::RangeKeep);
    reached.check_without_notice(&mut app);
    reached.act(&mut app, Action::RangeShift(1));
    reached.check_without_notice(&mut app);
    reached.act(&mut app, Action::RangeKeep);
    reached.check_without_notice(&mut app);
    // Continuing without an answer asks for confirmation.
    reached.act(&mut app, Action::NextPointer);
    reached.check(&app);
    reached.act(&mut app, Action::No);
    // The learner is asked which panel shows the fault. The lints are hidden, and after a wrong answer there is a second try.
    for panel in [Panel::Lints, Panel::Loss, Panel::Loss] {
        reached.act(&mut app, Action::Focus(panel));
        reached.check_without_notice(&mut app);
        reached.act(&mut app, Action::Locate);
        reached.check_without_notice(&mut app);
    }
    reached.act(&mut app, Action::Close);
    reached.check_without_notice(&mut app);
    reached.act(&mut app, Action::Lesson);
    reached.act(&mut app, Action::Lesson);
    for _ in 0..=of.evidence.len() {
        reached.act(&mut app, Action::NextPointer);
        reached.check_without_notice(&mut app);
    }
    // The background comes before the cause.
    for _ in 0..20 {
        reached.act(&mut app, Action::TurnPage(1));
        reached.check_without_notice(&mut app);
    }
    reached.act(&mut app, Action::Lesson);
    for action in [
        Action::Knobs,
        Action::KnobTurn(1),
        Action::KnobTurn(-1),
        Action::Knobs,
        Action::Solution,
    ] {
        reached.act(&mut app, action);
        reached.check_without_notice(&mut app);
    }
    app.view.confirm = None;
    let known = app.lesson.learner.progress.stages.get_mut(&of.id);
    known.expect("seen").state = StageState::Predicted;
    check(reached, app.clone());
    // The stage is passed, but its range may still wait for pairs.
    app.lesson.learner.progress_mut(&of.id).state = StageState::Passed;
    reached.check_without_notice(&mut app);
    app.bench.comparison.set_b(of.fixed.clone(), false);
    act(&mut app, Action::Toggle);
    train(&mut app, 5);
    reached.act(&mut app, Action::Pair);
    begin_pairs(&mut app);
    reached.hear(&mut app, sample::pair(40, true));
    for _ in 0..3 {
        reached.check_without_notice(&mut app);
        reached.act(&mut app, Action::Lesson);
        reached.act(&mut app, Action::TurnPage(1));
    }
    act(&mut app, Action::Knobs);
    reached.check_without_notice(&mut app);
    act(&mut app, Action::Knobs);
    for (state, prediction) in [
        (StageState::Passed, Some(Prediction::Skipped)),
        (StageState::Predicted, Some(Prediction::Skipped)),
        (StageState::Predicted, None),
    ] {
        let mut leaves = app.clone();
        let known = leaves.lesson.learner.progress_mut(&of.id);
        known.state = state;
        known.prediction = prediction;
        leaves.view.confirm = Some(Confirm::Leave { to: 2 });
        reached.check(&leaves);
        leaves.lesson.learner.pair = None;
        leaves.lesson.learner.report = None;
        reached.check(&leaves);
    }
    app.lesson.learner.progress_mut(&of.id).measured = Some(1.0);
    for _ in 0..of.quiz.len() {
        reached.act(&mut app, Action::Question);
        reached.act(&mut app, Action::Answer(0));
        reached.check_without_notice(&mut app);
    }
    reached.act(&mut app, Action::Reset);
}

/// Checks the sentences that name the unmet checks of the learner's B.
fn check(reached: &mut ReachedSentences, mut app: App) {
    let of = app.stage().expect("a stage").clone();
    let now_ms = app.clock.now_ms + 1000;
    update(&mut app, Message::Tick { now_ms });
    train(&mut app, 3);
    app.lesson.learner.note_fix_tried(&of);
    app.view.knobs = false;
    reached.check_without_notice(&mut app);
    app.bench.comparison.set_b(of.fixed.clone(), false);
    reached.check(&app);
    act(&mut app, Action::Toggle);
    reached.check_without_notice(&mut app);
    let run = wanted(&app);
    for steps in [3, of.steps + 1] {
        train(&mut app, steps);
        reached.check_without_notice(&mut app);
        unmet_checks(reached, &app);
    }
    let end = Event::Finished(Box::new(Finished {
        slot: run.slot,
        steps: of.steps + 1,
        ..Finished::default()
    }));
    reached.hear(&mut app, end);
    reached.check_without_notice(&mut app);
    unmet_checks(reached, &app);
    reached.act(&mut app, Action::Pair);
    reached.check_without_notice(&mut app);
    reached.act(&mut app, Action::Knobs);
    reached.check_without_notice(&mut app);
    app.bench.pending.asked = Asked::Nothing;
    for active in [Slot::A, Slot::B] {
        app.bench.run.active = active;
        reached.check(&app);
    }
}

/// Checks the sentences if a single check fails or was not measured, and if all are met.
fn unmet_checks(reached: &mut ReachedSentences, app: &App) {
    let Some(report) = app.lesson.learner.report.clone() else {
        return;
    };
    let with = |name: &str, outcome: Outcome| {
        let mut report = report.clone();
        for line in &mut report.lines {
            line.outcome = if line.name == name {
                outcome
            } else {
                Outcome::Passed
            };
            line.measured = "412.7 million tokens/s at 1,024 tokens".to_owned();
        }
        report
    };
    let required = report.lines.iter().filter(|line| !line.optional);
    // No check has an empty name, so that with it all are met.
    for name in required.map(|line| line.name.as_str()).chain([""]) {
        for outcome in [Outcome::Failed, Outcome::NotMeasured] {
            for active in [Slot::A, Slot::B] {
                let mut app = app.clone();
                app.lesson.learner.report = Some(with(name, outcome));
                app.bench.run.active = active;
                reached.check(&app);
            }
        }
    }
}

fn news(app: &mut App, news: ExerciseNews) {
    let at = app.mode.exercise().expect("open");
    let exercise = app.lesson.course.exercises[at].id.clone();
    update(app, Message::Exercise { exercise, news });
    app.view.notice = None;
}

fn exercises(reached: &mut ReachedSentences) {
    for exercise in &at_stage(1).lesson.course.exercises {
        let mut app = at_stage(1);
        train(&mut app, 5);
        open(&mut app, exercise.label());
        reached.check(&app);
        reached.check_without_notice(&mut app);
        reached.act(&mut app, Action::Lesson);
        reached.act(&mut app, Action::Lesson);
        reached.act(&mut app, Action::Reset);
        app.view.confirm = None;
        if let Some(detective) = app.detective() {
            if detective.profile.is_none() {
                play_recording(&mut app);
            }
            reached.check_without_notice(&mut app);
            reached.act(&mut app, Action::Lesson);
            reached.act(&mut app, Action::Answer(0));
            reached.check_without_notice(&mut app);
            reached.act(&mut app, Action::Lesson);
            continue;
        }
        reached.act(&mut app, Action::Knobs);
        app.view.notice = None;
        for passed in [false, true] {
            let answer = AnswerFile::Given(vec![("batch".to_owned(), "8".to_owned())]);
            let kept = ExerciseNews::Answers {
                answer: answer.clone(),
                saved: false,
            };
            news(&mut app, kept);
            reached.check(&app);
            let saved = true;
            news(&mut app, ExerciseNews::Answers { answer, saved });
            hear(&mut app, Event::Paused { slot: Slot::A });
            for found in [
                ExerciseNews::Measuring(Box::default()),
                ExerciseNews::Measured(Box::new(Measurement {
                    passed,
                    ..Measurement::default()
                })),
            ] {
                news(&mut app, found);
                reached.check(&app);
            }
            act(&mut app, Action::Answer(0));
            reached.check_without_notice(&mut app);
        }
        for found in [
            ExerciseNews::Begun,
            ExerciseNews::Checked(Box::new(KernelVerdict {
                facts: KernelReport {
                    failed: Some("no device".to_owned()),
                    ..KernelReport::default()
                },
                ..KernelVerdict::default()
            })),
            ExerciseNews::Checked(Box::default()),
            ExerciseNews::Checked(Box::new(KernelVerdict {
                passed: true,
                ..KernelVerdict::default()
            })),
        ] {
            news(&mut app, found);
            for _ in 0..2 {
                reached.check(&app);
                act(&mut app, Action::Lesson);
            }
        }
        news(&mut app, ExerciseNews::Checked(Box::default()));
        for _ in 0..8 {
            act(&mut app, Action::Hint);
        }
        app.view.notice = None;
        app.view.lesson_open = true;
        reached.check(&app);
    }
}

fn mysteries(reached: &mut ReachedSentences) {
    let options = Options {
        mystery: Some((Some(14), 1)),
        ..Options::default()
    };
    let (mut app, _) = begin(Course::builtin(), options);
    train(&mut app, 20);
    reached.check(&app);
    reached.act(&mut app, Action::Knobs);
    reached.act(&mut app, Action::KnobTurn(1));
    let run = wanted(&app);
    app.view.notice = None;
    reached.hear(&mut app, sample::started(&run, 21));
    reached.act(&mut app, Action::Knobs);
    reached.check_without_notice(&mut app);
    reached.act(&mut app, Action::Pair);
    let run = wanted(&app);
    hear(&mut app, sample::started(&run, 0));
    reached.check_without_notice(&mut app);
    let mut pairs = app.clone();
    if let Mode::Mystery(mystery) = &mut pairs.mode {
        mystery.judging = Some(JudgeStep::Pairs(Box::default()));
    }
    reached.check(&pairs);
    let end = Finished {
        slot: Slot::B,
        steps: 60,
        ..Finished::default()
    };
    reached.hear(&mut app, Event::Finished(Box::new(end)));
    reached.check_without_notice(&mut app);
    let mut leaves = app.clone();
    reached.act(&mut leaves, Action::Stage(1));
    reached.act(&mut app, Action::Solution);
    reached.act(&mut app, Action::Yes);
    reached.check_without_notice(&mut app);
}

fn the_rest(reached: &mut ReachedSentences) {
    let free = Options {
        free: Some(RunConfig::preset(Preset::Tiny)),
        ..Options::default()
    };
    let (mut app, _) = begin(Course::builtin(), free);
    train(&mut app, 5);
    reached.check(&app);
    app.view.knobs = false;
    reached.check(&app);
    reached.check(&begin(Course::default(), Options::default()).0);
    // Under an open card the line is about the card.
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
    let mut gone = at_stage(1);
    let reason = "ended by signal 9 (killed)".to_owned();
    update(&mut gone, Message::Engine(FromEngine::Gone { reason }));
    reached.check(&gone);
    reached.check_without_notice(&mut gone);
    let mut config = RunConfig::preset(Preset::Tiny);
    config.train.precision = Precision::F16;
    let free = Options {
        free: Some(config),
        ..Options::default()
    };
    let (mut short, _) = begin(Course::builtin(), free);
    let run = short.bench.run.wanted.clone().expect("a free run");
    let mut started = sample::started(&run, 0);
    if let Event::Started(started) = &mut started {
        started.matrix_cores = true;
    }
    hear(&mut short, started);
    hear(&mut short, Event::Failed(Failed::default()));
    reached.check_without_notice(&mut short);
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
    let badge = Replay {
        file: "h100.jsonl".to_owned(),
        device: sample::device(),
        date: "2026-11-01".to_owned(),
        stage: Some(1),
        paused: false,
        speed: 1.0,
        unsolved: false,
        watched: false,
    };
    let training = Replay {
        stage: None,
        watched: true,
        ..badge.clone()
    };
    for shown in [badge, training] {
        let recording = Options {
            recording: Some(shown),
            ..Options::default()
        };
        let mut watching = begin(Course::builtin(), recording).0;
        reached.check(&watching);
        watching.bench.run.state = RunState::Finished;
        reached.check_without_notice(&mut watching);
    }
    for confirm in [Confirm::ShowSolution, Confirm::Reset, Confirm::GiveUp] {
        let mut app = at_stage(1);
        app.view.confirm = Some(confirm);
        reached.check(&app);
    }
    asked_by_the_room(reached);
    // All beats of all stages.
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
    room.obey(&InstructorRequest::Ask(question), &app.lesson.course, 0)
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

/// The sentences of `guide.rs`, with `{}` for each key.
fn sentences() -> Vec<String> {
    let file = include_str!("../src/app/guide.rs");
    let (code, _) = file.split_once("#[cfg(test)]").expect("its tests");
    let (_, sentences) = code
        .split_once("pub fn next_move")
        .expect("the first sentences");
    // The sentence about a GPU is in the header.
    let (before, rest) = sentences
        .split_once("pub fn gpu_warm_up")
        .expect("the sentence of the header");
    let (_, after) = rest
        .split_once("/// Returns the next move in a recorded run")
        .expect("the last sentences");
    [before, after]
        .into_iter()
        .flat_map(|code| code.split('"').skip(1).step_by(2))
        // Texts with doubled braces are formats, which contain figures on the screen.
        .filter(|text| !text.contains("{{"))
        .map(|text| {
            text.split(['{', '}'])
                .enumerate()
                .map(|(at, part)| if at % 2 == 0 { part } else { "{}" })
                .collect()
        })
        .collect()
}

#[test]
fn every_sentence_is_reached_and_is_not_cut() {
    let mut reached = ReachedSentences::default();
    for number in 1..=9 {
        stage(&mut reached, number);
    }
    exercises(&mut reached);
    mysteries(&mut reached);
    the_rest(&mut reached);
    let mut never: Vec<String> = sentences();
    never.retain(|text| !reached.0.contains(text));
    let missing = [
        "is still the stage as found",
        "Not met so far",
        "Not met: ",
        "{}: measure A and B in pairs",
        "B is still running",
        "run B again from step 0",
        "{}: run B",
    ];
    for part in missing {
        if !reached.0.iter().any(|sentence| sentence.contains(part)) {
            never.push(part.to_owned());
        }
    }
    assert!(never.is_empty(), "never reached: {never:#?}");
}
