//! The bottom line: every sentence that it can hold is reached here, and at every size it is on the screen, whole.

use crate::{sample, screen, session};
use std::collections::BTreeSet;

use perflings::app::bench::Asked;
use perflings::app::exercise::ExerciseNews;
use perflings::app::exercise::measuring::{AnswerFile, Measurement};
use perflings::app::guide::{SentencePart, confirmation, next_move};
use perflings::app::mystery::JudgeStep;
use perflings::app::source::FromEngine;
use perflings::app::{
    Action, App, Confirm, Markers, Message, Mode, Options, Overlay, Panel, Replay, ThemeName,
    update,
};
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

/// What was said so far, with `{}` for each key.
#[derive(Default)]
struct Said(BTreeSet<String>);

impl Said {
    /// Draws the state at every size: what the bottom line says has to be there.
    fn look(&mut self, app: &App) {
        // On small screens the lesson lies over the panels, or not.
        let small = SIZES[..2].iter().map(|size| (*size, true));
        for ((width, height), open) in SIZES.iter().map(|size| (*size, false)).chain(small) {
            let mut app = app.clone();
            app.view.lesson_open = open;
            // How far panels scroll is known after a frame.
            let _ = screen::screen(&mut app, width, height, ThemeName::Dark, Markers::Braille);
            let pieces = app.view.confirm.map(|it| confirmation(it, &app));
            let pieces = pieces.unwrap_or_else(|| next_move(&app));
            self.0.insert(
                pieces
                    .iter()
                    .map(|it| written(it, |_| "{}".to_owned()))
                    .collect(),
            );
            let drawn = screen::screen(&mut app, width, height, ThemeName::Dark, Markers::Braille);
            let key = |action| keys::label(action, &app);
            let mut wanted: Vec<String> = vec![pieces.iter().map(|it| written(it, key)).collect()];
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
            let rows = screen::text(&drawn);
            let rows = rows.lines().skip(usize::from(guide.y));
            let rows: Vec<&str> = rows.take(usize::from(guide.height)).collect();
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

    fn did(&mut self, app: &mut App, action: Action) {
        act(app, action);
        self.look(app);
    }

    fn heard(&mut self, app: &mut App, event: Event) {
        hear(app, event);
        self.look(app);
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

fn at(stage: u32) -> App {
    let options = Options {
        stage: Some(stage),
        ..Options::default()
    };
    begin(Course::builtin(), options).0
}

/// A stage from its beginning to its end.
fn stage(said: &mut Said, number: u32) {
    let mut app = at(number);
    let of = app.stage().expect("a stage").clone();
    said.look(&app);
    train(&mut app, 10);
    said.look(&app);
    for action in [
        Action::Toggle,
        Action::No,
        Action::Pair,
        Action::No,
        Action::Knobs,
        Action::No,
    ] {
        said.did(&mut app, action);
    }
    said.did(&mut app, Action::Lesson);
    for _ in 0..6 {
        said.did(&mut app, Action::TurnPage(1));
    }
    app.view.notice = None;
    said.look(&app);
    let mut small = app.clone();
    session::resize(&mut small, 80, 24);
    small.view.lesson_open = true;
    for by in [-9, 1, 1, 1] {
        said.did(&mut small, Action::TurnPage(by));
        small.view.notice = None;
        said.look(&small);
    }
    said.did(&mut app, Action::Question);
    said.did(&mut app, Action::Answer(0));
    let mut leaves = app.clone();
    said.did(&mut leaves, Action::NextStage);
    app.view.notice = None;
    said.look(&app);
    said.did(&mut app, Action::Lesson);
    said.did(&mut app, Action::Lesson);
    said.did(&mut app, Action::RangeKeep);
    app.view.notice = None;
    said.look(&app);
    said.did(&mut app, Action::RangeShift(1));
    app.view.notice = None;
    said.look(&app);
    said.did(&mut app, Action::RangeKeep);
    app.view.notice = None;
    said.look(&app);
    // Without an answer it is asked whether to go on.
    said.did(&mut app, Action::NextPointer);
    said.look(&app);
    said.did(&mut app, Action::No);
    // Which panel shows it? The lints show nothing yet; the loss does or does not, and after a wrong answer there is a second try.
    for panel in [Panel::Lints, Panel::Loss, Panel::Loss] {
        said.did(&mut app, Action::Focus(panel));
        app.view.notice = None;
        said.look(&app);
        said.did(&mut app, Action::Locate);
        app.view.notice = None;
        said.look(&app);
    }
    said.did(&mut app, Action::Close);
    app.view.notice = None;
    said.look(&app);
    said.did(&mut app, Action::Lesson);
    said.did(&mut app, Action::Lesson);
    for _ in 0..=of.evidence.len() {
        said.did(&mut app, Action::NextPointer);
        app.view.notice = None;
        said.look(&app);
    }
    // The background comes before the cause.
    for _ in 0..20 {
        said.did(&mut app, Action::TurnPage(1));
        app.view.notice = None;
        said.look(&app);
    }
    said.did(&mut app, Action::Lesson);
    for action in [
        Action::Knobs,
        Action::KnobTurn(1),
        Action::KnobTurn(-1),
        Action::Knobs,
        Action::Solution,
    ] {
        said.did(&mut app, action);
        app.view.notice = None;
        said.look(&app);
    }
    app.view.confirm = None;
    let known = app.lesson.study.progress.stages.get_mut(&of.id);
    known.expect("seen").state = StageState::Predicted;
    check(said, app.clone());
    // Passed; pairs may still be wanted for the range.
    app.lesson.study.of_mut(&of.id).state = StageState::Passed;
    app.view.notice = None;
    said.look(&app);
    app.bench.comparison.set_b(of.fixed.clone(), false);
    act(&mut app, Action::Toggle);
    train(&mut app, 5);
    said.did(&mut app, Action::Pair);
    begin_pairs(&mut app);
    said.heard(&mut app, sample::pair(40, true));
    for _ in 0..3 {
        app.view.notice = None;
        said.look(&app);
        said.did(&mut app, Action::Lesson);
        said.did(&mut app, Action::TurnPage(1));
    }
    act(&mut app, Action::Knobs);
    app.view.notice = None;
    said.look(&app);
    act(&mut app, Action::Knobs);
    for (state, prediction) in [
        (StageState::Passed, Some(Prediction::Skipped)),
        (StageState::Predicted, Some(Prediction::Skipped)),
        (StageState::Predicted, None),
    ] {
        let mut leaves = app.clone();
        let known = leaves.lesson.study.of_mut(&of.id);
        (known.state, known.prediction) = (state, prediction);
        leaves.view.confirm = Some(Confirm::Leave { to: 2 });
        said.look(&leaves);
        leaves.lesson.study.pair = None;
        leaves.lesson.study.report = None;
        said.look(&leaves);
    }
    app.lesson.study.of_mut(&of.id).measured = Some(1.0);
    for _ in 0..of.quiz.len() {
        said.did(&mut app, Action::Question);
        said.did(&mut app, Action::Answer(0));
        app.view.notice = None;
        said.look(&app);
    }
    said.did(&mut app, Action::Reset);
}

/// The learner's B is checked: whatever it still lacks is named.
fn check(said: &mut Said, mut app: App) {
    let of = app.stage().expect("a stage").clone();
    let now_ms = app.clock.now_ms + 1000;
    update(&mut app, Message::Tick { now_ms });
    train(&mut app, 3);
    app.lesson.study.note_fix_tried(&of);
    (app.view.notice, app.view.knobs) = (None, false);
    said.look(&app);
    app.bench.comparison.set_b(of.fixed.clone(), false);
    said.look(&app);
    act(&mut app, Action::Toggle);
    app.view.notice = None;
    said.look(&app);
    let run = wanted(&app);
    for steps in [3, of.steps + 1] {
        train(&mut app, steps);
        app.view.notice = None;
        said.look(&app);
        lines(said, &app);
    }
    let end = Event::Finished(Box::new(Finished {
        slot: run.slot,
        steps: of.steps + 1,
        ..Finished::default()
    }));
    said.heard(&mut app, end);
    app.view.notice = None;
    said.look(&app);
    lines(said, &app);
    said.did(&mut app, Action::Pair);
    app.view.notice = None;
    said.look(&app);
    said.did(&mut app, Action::Knobs);
    app.view.notice = None;
    said.look(&app);
    app.bench.pending.asked = Asked::Nothing;
    for active in [Slot::A, Slot::B] {
        app.bench.run.active = active;
        said.look(&app);
    }
}

/// Each check alone, not met and not measured; and all of them met.
fn lines(said: &mut Said, app: &App) {
    let Some(report) = app.lesson.study.report.clone() else {
        return;
    };
    let with = |name: &str, outcome: Outcome| {
        let mut report = report.clone();
        for it in &mut report.lines {
            it.outcome = if it.name == name {
                outcome
            } else {
                Outcome::Passed
            };
            it.measured = "412.7 million tokens/s at 1,024 tokens".to_owned();
        }
        report
    };
    let required = report.lines.iter().filter(|line| !line.optional);
    let names = required.map(|line| line.name.as_str()).chain([""]);
    for (name, outcome) in names.flat_map(|it| [(it, Outcome::Failed), (it, Outcome::NotMeasured)])
    {
        for active in [Slot::A, Slot::B] {
            let mut app = app.clone();
            app.lesson.study.report = Some(with(name, outcome));
            app.bench.run.active = active;
            said.look(&app);
        }
    }
}

fn news(app: &mut App, news: ExerciseNews) {
    let at = app.mode.exercise().expect("open");
    let exercise = app.lesson.course.exercises[at].id.clone();
    update(app, Message::Exercise { exercise, news });
    app.view.notice = None;
}

fn exercises(said: &mut Said) {
    let labels: Vec<String> = at(1)
        .lesson
        .course
        .exercises
        .iter()
        .map(|it| it.label().to_owned())
        .collect();
    for label in &labels {
        let mut app = at(1);
        train(&mut app, 5);
        open(&mut app, label);
        said.look(&app);
        app.view.notice = None;
        said.look(&app);
        said.did(&mut app, Action::Lesson);
        said.did(&mut app, Action::Lesson);
        said.did(&mut app, Action::Reset);
        app.view.confirm = None;
        if let Some(detective) = app.detective() {
            if detective.profile.is_none() {
                play_recording(&mut app);
            }
            app.view.notice = None;
            said.look(&app);
            said.did(&mut app, Action::Lesson);
            said.did(&mut app, Action::Answer(0));
            app.view.notice = None;
            said.look(&app);
            said.did(&mut app, Action::Lesson);
            continue;
        }
        said.did(&mut app, Action::Knobs);
        app.view.notice = None;
        for passed in [false, true] {
            let answer = AnswerFile::Given(vec![("batch".to_owned(), "8".to_owned())]);
            let kept = ExerciseNews::Answers {
                answer: answer.clone(),
                saved: false,
            };
            news(&mut app, kept);
            said.look(&app);
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
                said.look(&app);
            }
            act(&mut app, Action::Answer(0));
            app.view.notice = None;
            said.look(&app);
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
                said.look(&app);
                act(&mut app, Action::Lesson);
            }
        }
        news(&mut app, ExerciseNews::Checked(Box::default()));
        for _ in 0..8 {
            act(&mut app, Action::Hint);
        }
        app.view.notice = None;
        app.view.lesson_open = true;
        said.look(&app);
    }
}

fn mysteries(said: &mut Said) {
    let options = Options {
        mystery: Some((Some(14), 1)),
        ..Options::default()
    };
    let (mut app, _) = begin(Course::builtin(), options);
    train(&mut app, 20);
    said.look(&app);
    said.did(&mut app, Action::Knobs);
    said.did(&mut app, Action::KnobTurn(1));
    let run = wanted(&app);
    app.view.notice = None;
    said.heard(&mut app, sample::started(&run, 21));
    said.did(&mut app, Action::Knobs);
    app.view.notice = None;
    said.look(&app);
    said.did(&mut app, Action::Pair);
    let run = wanted(&app);
    hear(&mut app, sample::started(&run, 0));
    app.view.notice = None;
    said.look(&app);
    let mut pairs = app.clone();
    if let Mode::Mystery(mystery) = &mut pairs.mode {
        mystery.judging = Some(JudgeStep::Pairs(Box::default()));
    }
    said.look(&pairs);
    let end = Finished {
        slot: Slot::B,
        steps: 60,
        ..Finished::default()
    };
    said.heard(&mut app, Event::Finished(Box::new(end)));
    app.view.notice = None;
    said.look(&app);
    let mut leaves = app.clone();
    said.did(&mut leaves, Action::Stage(1));
    said.did(&mut app, Action::Solution);
    said.did(&mut app, Action::Yes);
    app.view.notice = None;
    said.look(&app);
}

fn the_rest(said: &mut Said) {
    let free = Options {
        free: Some(RunConfig::preset(Preset::Tiny)),
        ..Options::default()
    };
    let (mut app, _) = begin(Course::builtin(), free);
    train(&mut app, 5);
    said.look(&app);
    app.view.knobs = false;
    said.look(&app);
    said.look(&begin(Course::default(), Options::default()).0);
    // What lies under a card waits.
    for overlay in [
        Overlay::Welcome,
        Overlay::Skipped,
        Overlay::Vote,
        Overlay::Stages,
        Overlay::Glossary,
    ] {
        let mut covered = at(3);
        covered.view.notice = None;
        covered.view.overlay = Some(overlay);
        said.look(&covered);
    }
    let mut typed = at(3);
    typed.view.notice = None;
    (typed.view.knobs, typed.view.value) = (true, Some(String::new()));
    said.look(&typed);
    let mut gone = at(1);
    let reason = "ended by signal 9 (killed)".to_owned();
    update(&mut gone, Message::Engine(FromEngine::Gone { reason }));
    said.look(&gone);
    gone.view.notice = None;
    said.look(&gone);
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
    short.view.notice = None;
    said.look(&short);
    let mut failed = at(1);
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
    failed.view.notice = None;
    said.look(&failed);
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
        said.look(&begin(Course::builtin(), recording).0);
    }
    for confirm in [Confirm::ShowSolution, Confirm::Reset, Confirm::GiveUp] {
        let mut app = at(1);
        app.view.confirm = Some(confirm);
        said.look(&app);
    }
    // The room of a presenter.
    for number in 1..=9 {
        let mut app = at(number);
        act(&mut app, Action::Present);
        train(&mut app, 20);
        app.view.confirm = Some(Confirm::Quit);
        said.look(&app);
        app.view.confirm = None;
        for _ in 0..12 {
            app.view.notice = None;
            said.look(&app);
            act(&mut app, Action::NextBeat);
        }
    }
}

/// The sentences of `guide.rs`, with `{}` for each key.
fn sentences() -> Vec<String> {
    let code = include_str!("../src/app/guide.rs")
        .split("#[cfg(test)]")
        .next();
    let (_, code) = code
        .and_then(|it| it.split_once("pub fn next_move"))
        .expect("sentences");
    let (before, rest) = code
        .split_once("pub fn gpu_warm_up")
        .expect("the header's line");
    let (_, after) = rest
        .split_once("/// The next move in a recorded run")
        .expect("more sentences");
    let texts = [before, after]
        .into_iter()
        .flat_map(|code| code.split('"').skip(1).step_by(2));
    // One that is put together with a figure is not among the sentences as they are said.
    let texts = texts.filter(|text| !text.contains("{{"));
    let texts = texts.map(|text| {
        let parts = text.split(['{', '}']).enumerate();
        parts
            .map(|(at, part)| if at % 2 == 0 { part } else { "{}" })
            .collect()
    });
    texts.collect()
}

#[test]
fn every_sentence_is_reached_and_shown_whole() {
    let mut said = Said::default();
    for number in 1..=9 {
        stage(&mut said, number);
    }
    exercises(&mut said);
    mysteries(&mut said);
    the_rest(&mut said);
    let mut never: Vec<String> = sentences();
    never.retain(|text| !said.0.contains(text));
    let missing = [
        "is as the stage was found",
        "Not met so far",
        "Not met: ",
        "{} measures A and B in pairs",
        "It runs on",
        "runs it again from step 0",
        "{} runs it",
    ];
    let unsaid = missing
        .iter()
        .filter(|text| !said.0.iter().any(|it| it.contains(**text)));
    never.extend(unsaid.map(|it| (*it).to_owned()));
    assert!(never.is_empty(), "never reached: {never:#?}");
}
