//! Beats of presenter mode: each is the same state, whatever was shown before it, and nothing is measured twice.

use std::collections::{BTreeSet, VecDeque};

use perflings::app::beats::{BeatState, VoteState, beats};
use perflings::app::pages::LessonPage;
use perflings::app::source::FromEngine;
use perflings::app::{Action, App, Effect, Message, Options, Panel, update};
use perflings::course::save_file::Progress;
use perflings::course::{BeatChange, Course};
use proptest::prelude::*;
use protocol::{Command, Event, RunSpec, Slot, StreamLine};

use super::session::{act, answer, begin, hear, side, spec, train, wanted};
use super::{begin_with, commands, sample};

fn presented() -> App {
    let (mut app, _) = begin(Course::builtin(), Options::default());
    train(&mut app, 3);
    act(&mut app, Action::Present);
    app
}

fn at(app: &App) -> (usize, usize) {
    let beat = app.beat().expect("a beat");
    (beat.stage, beat.at)
}

fn last_of(app: &App, stage: usize) -> usize {
    app.lesson.course.stages[stage].cues.len() - 1
}

/// An engine that does at once what it is told, and tells of it later.
#[derive(Default)]
struct Engine {
    work: Option<(Work, u64)>,
    resting: bool,
    said: VecDeque<(Event, Option<Asked>)>,
    /// Runs and pairs that were asked for, and those of which the screen has heard enough to keep them.
    asked: Vec<Asked>,
    made: BTreeSet<Asked>,
}

/// A stage, and one of its runs or its pairs.
type Asked = (u32, Option<u8>);

enum Work {
    Run(RunSpec),
    /// The stage, and the number of the request.
    Pairs(u32, u64),
}

impl Engine {
    fn take(&mut self, effects: &[Effect]) {
        for command in commands(effects) {
            match command {
                Command::Start { run, request, .. } | Command::Apply { run, request } => {
                    self.asked.push((run.stage, Some(run.slot as u8)));
                    let started = answer(sample::started(run, 0), *request);
                    self.said.push_back((started, None));
                    self.work = Some((Work::Run(run.clone()), 0));
                    self.resting = false;
                }
                Command::Pair {
                    stage,
                    a,
                    b,
                    request,
                    ..
                } => {
                    self.asked.push((*stage, None));
                    let sides = [a, b].map(|run| (answer(side(run), *request), None));
                    self.said.extend(sides);
                    self.work = Some((Work::Pairs(*stage, *request), 0));
                    self.resting = false;
                }
                Command::Pause => self.resting = true,
                Command::Resume => self.resting = false,
                Command::Stop => self.work = None,
                _ => {}
            }
        }
    }

    /// Works for some steps.
    fn work(&mut self, steps: u64) {
        if let (Some((work, at)), false) = (&mut self.work, self.resting) {
            match work {
                Work::Run(run) => {
                    let of = (run.stage, Some(run.slot as u8));
                    let said = (*at..*at + steps)
                        .map(|step| (sample::step(run, step), (step > 61).then_some(of)));
                    self.said.extend(said);
                }
                Work::Pairs(stage, request) => {
                    let done = *at + steps >= 40;
                    let said = answer(sample::pair(*at as u32, done), *request);
                    self.said.push_back((said, done.then_some((*stage, None))));
                }
            }
            *at += steps;
            if matches!(work, Work::Pairs(..)) && *at >= 40 {
                self.work = None;
            }
        }
    }

    /// Says so much of what there is to say.
    fn say(&mut self, app: &mut App, lines: usize) {
        let lines = lines.min(self.said.len());
        for (event, made) in self.said.drain(..lines) {
            // What the screen no longer waits for does not count.
            let here = app.lesson.study.at as u32 + 1;
            let heard = |it: &Asked| app.bench.is_current() && it.0 == here;
            self.made.extend(made.filter(heard));
            let line = StreamLine { t: 0.0, event };
            update(app, Message::Engine(FromEngine::Line(line)));
        }
    }
}

#[derive(Clone, Debug)]
enum Does {
    Next,
    Previous,
    Jump(usize),
    Work(u64, usize),
}

fn does() -> impl Strategy<Value = Does> {
    prop_oneof![
        5 => Just(Does::Next),
        4 => Just(Does::Previous),
        1 => (0..4_usize).prop_map(Does::Jump),
        6 => (1..90_u64, 0..120_usize).prop_map(|(steps, lines)| Does::Work(steps, lines)),
    ]
}

/// The screen is what the beat declares.
fn holds(app: &App, beat: BeatState) {
    let stage = &app.lesson.course.stages[beat.stage];
    assert_eq!(app.beat(), Some(beat));
    assert_eq!(app.lesson.study.at, beat.stage);
    let view = &app.view;
    assert_eq!((view.focus, view.expanded), (Some(beat.panel), true));
    assert!(!view.knobs && view.overlay.is_none() && view.confirm.is_none());
    assert_eq!(view.lesson_visible(), beat.panel == Panel::Lesson);
    assert_eq!(app.page().0, beat.page);
    assert_eq!(app.hints().0, beat.hints as usize);
    assert_eq!(
        app.lesson.study.prediction_complete(stage),
        beat.vote == VoteState::Closed
    );
    assert_eq!(
        app.lesson.study.revealed(stage),
        beat.vote == VoteState::Closed
    );
    assert_eq!(app.bench.comparison.config_b, stage.fixed);
    assert_eq!(app.cue().map(|cue| cue.show), Some(beat.panel));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_beat_is_the_same_from_every_side(sequence in proptest::collection::vec(does(), 1..80)) {
        let mut app = presented();
        let work = Some((Work::Run(wanted(&app)), 4));
        let mut engine = Engine { work, ..Engine::default() };
        let mut here = (0, 0);
        for one in sequence {
            let last = last_of(&app, here.0);
            let (action, to) = match one {
                Does::Work(steps, lines) => {
                    engine.work(steps);
                    engine.say(&mut app, lines);
                    holds(&app, beats(here.0, &app.lesson.course.stages[here.0])[here.1]);
                    continue;
                }
                Does::Next if here.1 == last => (Action::NextBeat, (here.0 + 1, 0)),
                Does::Next => (Action::NextBeat, (here.0, here.1 + 1)),
                Does::Previous if here == (0, 0) => (Action::PreviousBeat, here),
                Does::Previous if here.1 == 0 => (Action::PreviousBeat, (here.0 - 1, last_of(&app, here.0 - 1))),
                Does::Previous => (Action::PreviousBeat, (here.0, here.1 - 1)),
                Does::Jump(stage) => (Action::Stage(stage as u32 + 1), (stage, 0)),
            };
            here = if to.0 < app.lesson.course.stages.len() { to } else { here };
            let made = engine.made.clone();
            let before = engine.asked.len();
            let effects = act(&mut app, action);
            engine.say(&mut app, usize::MAX);
            engine.take(&effects);
            let again = engine.asked[before..].iter().find(|it| made.contains(it));
            prop_assert_eq!(again, None, "measured before");
            let beat = beats(here.0, &app.lesson.course.stages[here.0])[here.1];
            holds(&app, beat);
            engine.say(&mut app, usize::MAX);
            holds(&app, beat);
            // What is on the screen is the run that the beat names, or nothing yet.
            let number = app.lesson.course.stages[here.0].number;
            prop_assert_eq!(app.bench.run.active, beat.variant);
            let shown = app.bench.run.shown();
            if shown.has_begun() {
                let run = &shown.description;
                prop_assert_eq!((run.stage, run.slot), (number, beat.variant));
            }
            // Entered twice, nothing changes.
            if here.1 == 0 {
                let effects = act(&mut app, Action::Stage(number));
                prop_assert_eq!(commands(&effects), Vec::<&Command>::new());
                holds(&app, beat);
            }
        }
    }
}

#[test]
fn beats_go_forth_and_back_across_stages() {
    let mut app = presented();
    assert_eq!(at(&app), (0, 0));
    act(&mut app, Action::PreviousBeat);
    assert_eq!(at(&app), (0, 0), "there is none before");
    let last = last_of(&app, 0);
    for _ in 0..=last {
        act(&mut app, Action::NextBeat);
    }
    assert_eq!(at(&app), (1, 0));
    act(&mut app, Action::PreviousBeat);
    assert_eq!(at(&app), (0, last), "the last beat of the stage before");
    act(&mut app, Action::NextBeat);
    act(&mut app, Action::NextBeat);
    act(&mut app, Action::Stage(1));
    assert_eq!(at(&app), (0, 0), "a jump starts at the first beat");
    act(&mut app, Action::NextBeat);
    act(&mut app, Action::Stage(1));
    assert_eq!(at(&app), (0, 0), "also to the stage that is shown");
}

#[test]
fn a_run_that_was_made_is_shown_again() {
    let mut app = presented();
    train(&mut app, 80);
    let loss = app.bench.run.slot(Slot::A).loss.last();
    // To the fix, which runs for a while, and back over the vote.
    for _ in 0..4 {
        act(&mut app, Action::NextBeat);
    }
    assert_eq!(wanted(&app).variant, "fixed");
    train(&mut app, 70);
    let effects = act(&mut app, Action::PreviousBeat);
    assert_eq!(commands(&effects), [&Command::Pause]);
    assert_eq!(app.bench.run.active, Slot::A);
    assert_eq!(app.bench.run.slot(Slot::A).loss.last(), loss);
    let effects = act(&mut app, Action::NextBeat);
    assert_eq!(commands(&effects), [&Command::Resume]);
    assert_eq!(app.bench.run.active, Slot::B);
    // Another stage, and back: both runs are still there, and none begins anew.
    act(&mut app, Action::Stage(2));
    train(&mut app, 30);
    let effects = act(&mut app, Action::Stage(1));
    assert_eq!(commands(&effects), [&Command::Stop]);
    assert_eq!(app.bench.run.slot(Slot::A).loss.last(), loss);
    // The other stage's last words do not count.
    let stage = &app.lesson.course.stages[1];
    let late = spec(stage, "broken");
    hear(&mut app, sample::step(&late, 31));
    assert_eq!(app.bench.run.slot(Slot::A).loss.last(), loss);
}

#[test]
fn leaving_gives_the_learner_s_own_stage_back() {
    let mut app = presented();
    for _ in 0..5 {
        act(&mut app, Action::NextBeat);
    }
    act(&mut app, Action::Present);
    let stage = app.stage().expect("a stage").clone();
    assert!(!app.lesson.study.predicted(&stage) && !app.lesson.study.nothing_hidden);
    assert_eq!(app.lesson.study.of(&stage).hints, 0);
    assert_eq!((app.beat(), app.view.expanded), (None, false));
    assert_eq!(wanted(&app).variant, "broken");
}

#[test]
fn every_shipped_stage_has_its_beats_and_others_get_some() {
    for (at, stage) in Course::builtin().stages.iter().enumerate() {
        let all = beats(at, stage);
        assert!(all.len() >= 5, "{}", stage.id);
        let votes = all.iter().filter(|beat| beat.vote == VoteState::Open);
        assert_eq!(votes.count(), 1, "{}", stage.id);
        let does = |wanted| stage.cues.iter().any(|cue| cue.does == wanted);
        assert!(does(BeatChange::Toggle), "{}", stage.id);
        // What is shown before the vote does not answer it.
        let early = all.iter().filter(|beat| beat.vote != VoteState::Closed);
        for beat in early {
            assert_eq!((beat.variant, beat.hints), (Slot::A, 0), "{}", stage.id);
            assert_eq!(beat.page, LessonPage::Start);
        }
    }
    let (mut app, _) = begin_with(Options::default());
    act(&mut app, Action::Present);
    let beat = app.beat().expect("beats made from the stage");
    assert_eq!((beat.panel, beat.at), (Panel::Loss, 0));
    assert!(beat.of >= 4, "symptom, prediction, fix and pairs");
}

#[test]
fn the_curtain_hides_and_freezes_and_no_key_answers() {
    use perflings::app::AudienceScreen;
    let mut app = presented();
    act(&mut app, Action::NextBeat);
    act(&mut app, Action::Answer(1));
    let stage = app.stage().expect("a stage").clone();
    assert!(!app.lesson.study.predicted(&stage), "a room votes");
    act(&mut app, Action::BlankScreen);
    assert!(matches!(app.audience_screen(), AudienceScreen::Blank));
    act(&mut app, Action::NextBeat);
    assert!(
        matches!(app.audience_screen(), AudienceScreen::Live),
        "a beat comes into view"
    );
    act(&mut app, Action::FreezeScreen);
    act(&mut app, Action::NextBeat);
    assert_eq!(app.audience_screen(), AudienceScreen::Frozen);
    let then = app.presenter.frozen.as_deref().expect("what the room sees");
    assert_eq!((at(then), at(&app)), ((0, 2), (0, 3)));
    act(&mut app, Action::FreezeScreen);
    assert!(matches!(app.audience_screen(), AudienceScreen::Live));
    let effects = act(&mut app, Action::AskQuit);
    assert!(effects.is_empty() && app.view.confirm.is_some());
    assert_eq!(act(&mut app, Action::Yes), [Effect::Quit]);
}

#[test]
fn the_next_presentation_goes_on_where_the_last_one_was() {
    let mut app = presented();
    act(&mut app, Action::Stage(3));
    let effects = act(&mut app, Action::NextBeat);
    let kept = effects.iter().find_map(|effect| match effect {
        Effect::SaveBeat { stage, beat } => Some((stage.clone(), *beat)),
        _ => None,
    });
    assert_eq!(kept, Some(("missing-sync".to_owned(), 1)));
    let progress = Progress {
        presented: kept,
        ..Progress::default()
    };
    let options = |stage| Options {
        present: true,
        stage,
        ..Options::default()
    };
    let again = |stage| App::new(Course::builtin(), progress.clone(), options(stage)).0;
    assert_eq!(at(&again(None)), (2, 1));
    assert_eq!(
        at(&again(Some(2))),
        (1, 0),
        "a stage that is named comes first"
    );
    let (mut app, _) = App::new(Course::builtin(), progress.clone(), Options::default());
    act(&mut app, Action::PresentFrom(false));
    assert_eq!(at(&app), (2, 1));
    act(&mut app, Action::PresentFrom(true));
    assert_eq!(at(&app), (0, 0));
}

#[test]
fn the_speaker_reads_notes_and_the_time_used() {
    use perflings::app::notes::{SpeakerNotes, notes};
    let mut app = presented();
    update(&mut app, Message::Tick { now_ms: 90_000 });
    act(&mut app, Action::NextBeat);
    update(&mut app, Message::Tick { now_ms: 100_000 });
    let said = notes(&app).expect("something is presented");
    assert_eq!((said.stage, said.beat, said.used_s), (1, 2, 10));
    assert_eq!((said.agenda[0].used_s, said.agenda[1].used_s), (100, 0));
    assert_eq!(said.vote.len(), 4);
    assert!(!said.notes.is_empty() && !said.next.is_empty());
    let line = serde_json::to_string(&said).expect("plain data");
    assert_eq!(SpeakerNotes::read(&line), Some(said));
    assert_eq!(SpeakerNotes::read("{\"title\":1}"), None);
    for stage in &app.lesson.course.stages {
        for cue in &stage.cues {
            assert!(
                cue.notes.len() > 60 && cue.minutes > 0.0,
                "{}: {}",
                stage.id,
                cue.say
            );
        }
    }
    act(&mut app, Action::Present);
    assert_eq!(notes(&app), None);
    act(&mut app, Action::PresentFrom(false));
    let again = notes(&app).expect("presented again");
    assert_eq!(again.used_in_all_s(), 100, "what was shown before counts");
}

#[test]
fn a_presentation_that_was_left_goes_on_at_the_beat_that_was_shown() {
    let mut app = presented();
    act(&mut app, Action::Stage(2));
    act(&mut app, Action::NextBeat);
    act(&mut app, Action::Present);
    assert_eq!(app.beat(), None);
    act(&mut app, Action::PresentFrom(false));
    assert_eq!(at(&app), (1, 1));
}

#[test]
fn nothing_shows_b_before_the_vote() {
    let mut app = presented();
    for action in [Action::Knobs, Action::Toggle, Action::Pair] {
        let effects = act(&mut app, action);
        assert_eq!(commands(&effects), Vec::<&Command>::new());
        assert!(!app.knobs_open() && app.bench.run.active == Slot::A);
        let said = app.view.notice.as_ref().map(|it| it.text.clone());
        assert!(said.is_some_and(|it| it.contains("after the vote")));
    }
    while app.beat().is_some_and(|it| it.vote != VoteState::Closed) {
        act(&mut app, Action::NextBeat);
    }
    act(&mut app, Action::Toggle);
    assert_eq!(app.bench.run.active, Slot::B);
}

#[test]
fn going_back_before_the_verdict_shows_what_was_shown_and_pairs_go_on() {
    let mut app = presented();
    act(&mut app, Action::Stage(2));
    train(&mut app, 3);
    let pairs = last_of(&app, 1);
    while at(&app).1 + 1 < pairs {
        act(&mut app, Action::NextBeat);
    }
    assert_eq!(wanted(&app).variant, "fixed");
    train(&mut app, 3);
    let shown = app.bench.run.slot(Slot::B).loss.last();
    let effects = act(&mut app, Action::NextBeat);
    assert!(matches!(commands(&effects)[..], [Command::Pair { .. }]));
    for (action, active) in [(Action::PreviousBeat, Slot::B), (Action::NextBeat, Slot::B)] {
        let effects = act(&mut app, action);
        assert_eq!(commands(&effects), Vec::<&Command>::new(), "pairs go on");
        assert!(app.bench.pairing() && app.bench.run.active == active);
        assert_eq!(app.bench.run.slot(Slot::B).loss.last(), shown);
    }
}

#[test]
fn the_answer_is_marked_at_the_beat_of_the_vote() {
    let mut app = presented();
    act(&mut app, Action::ShowAnswer);
    assert!(!app.answer_shown(), "there is no vote yet");
    act(&mut app, Action::NextBeat);
    act(&mut app, Action::ShowAnswer);
    assert!(app.answer_shown());
    let reason = app.reason_of_answer().expect("a reason");
    assert!(
        reason.contains("learning rate") && !reason.contains("not measured"),
        "{reason}"
    );
    act(&mut app, Action::ShowAnswer);
    assert!(!app.answer_shown(), "the same key hides it");
}

#[test]
fn the_speaker_goes_to_beats_and_ends() {
    use perflings::app::notes::{SpeakerRequest, notes};
    let mut app = presented();
    let said = notes(&app).expect("something is presented");
    let last = last_of(&app, 0) + 1;
    assert_eq!(said.beat_from((1, last), 1), Some((2, 1)));
    assert_eq!(said.beat_from((2, 1), -1), Some((1, last)));
    assert_eq!(said.beat_from((1, 1), -1), None);
    for (line, to) in [
        ("go-to 3 2", (2, 1)),
        ("go-to 1 1", (0, 0)),
        ("go-to 77 1", (0, 0)),
    ] {
        let request = SpeakerRequest::parse(line).expect("a request");
        assert_eq!(request.to_string(), line);
        act(&mut app, request.action());
        assert_eq!(at(&app), to);
    }
    assert_eq!(SpeakerRequest::parse("next"), None);
    act(&mut app, SpeakerRequest::End.action());
    assert_eq!(app.beat(), None);
}

#[test]
fn previews_and_agendas_are_complete() {
    use perflings::app::notes::notes;
    let mut app = presented();
    for stage in 0..app.lesson.course.stages.len() {
        for _ in 0..=last_of(&app, stage) {
            let said = notes(&app).expect("something is presented");
            for text in [&said.next, &said.says, &said.notes] {
                assert!(!text.contains("{{"), "{text}");
            }
            act(&mut app, Action::NextBeat);
        }
    }
    let guide = include_str!("../../docs/instructor.md");
    let lengths: Vec<u32> = app
        .lesson
        .course
        .agendas
        .iter()
        .map(|it| it.minutes)
        .collect();
    assert_eq!(lengths, [30, 90, 180]);
    for agenda in &app.lesson.course.agendas {
        let sum: u32 = agenda.parts.iter().map(|it| it.minutes).sum();
        assert_eq!(sum, agenda.minutes);
        for part in &agenda.parts {
            assert!(
                guide.contains(&part.what),
                "docs/instructor.md: {}",
                part.what
            );
            let known = |number: &u32| app.lesson.course.stage(*number).is_some();
            assert!(part.stages.iter().all(known));
        }
    }
}

#[test]
fn every_vote_has_a_beat_that_shows_what_happened() {
    for stage in &Course::builtin().stages {
        let vote = stage
            .cues
            .iter()
            .position(|cue| cue.does == BeatChange::Vote);
        let after = &stage.cues[vote.expect("a vote") + 1..];
        let shows = |cue: &perflings::course::Beat| {
            let figures = [&cue.large, &cue.say].iter().any(|it| it.contains("{{"));
            figures || !cue.row.is_empty() || cue.does == BeatChange::Pair
        };
        assert!(after.iter().any(shows), "stage {}", stage.number);
    }
    // Stage 8 asks for the peak with twice the context.
    let stage = &Course::builtin().stages[7];
    let double = |cue: &perflings::course::Beat| cue.large.contains("peak_composed_double_mib");
    assert!(stage.cues.iter().any(double));
}
