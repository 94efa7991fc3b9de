//! Beats of presenter mode. The state of a beat does not depend on the beats shown before it, and nothing is measured twice.

#[path = "beats/kept.rs"]
mod kept;

use std::collections::{BTreeSet, VecDeque};

use perflings::app::beats::{BeatState, VoteState, beats};
use perflings::app::figures::reason_of_answer;
use perflings::app::notes::{SpeakerNotes, SpeakerRequest, notes};
use perflings::app::pages::LessonPage;
use perflings::app::source::FromEngine;
use perflings::app::{Action, App, AudienceScreen, Effect, Message, Options, Panel, update};
use perflings::course::save_file::{Progress, ProgressChange};
use perflings::course::{Beat, BeatChange, Course};
use proptest::prelude::*;
use protocol::{Command, Event, RunSpec, Slot, StreamLine};

use super::session::{act, answer, begin, hear, side, spec, train, wanted};
use super::{begin_with, commands, sample};

/// A presentation of the built-in course at its first beat. A has trained a few steps.
fn presented() -> App {
    let (mut app, _) = begin(Course::builtin(), Options::default());
    train(&mut app, 3);
    act(&mut app, Action::Present);
    train(&mut app, 3);
    app
}

/// Returns the index of the stage and of the beat on the screen.
fn place(app: &App) -> (usize, usize) {
    let beat = app.beat().expect("a beat");
    (beat.stage, beat.at)
}

/// Returns the index of the last beat of the stage at this index.
fn last_beat(app: &App, stage: usize) -> usize {
    app.lesson.course.stages[stage].cues.len() - 1
}

/// An engine that carries out commands at once and reports later.
#[derive(Default)]
struct Engine {
    /// The work in progress, and the number of its steps or pairs so far.
    work: Option<(Work, u64)>,
    paused: bool,
    /// The events that are not reported yet. An event with which a run or pairs are measured to their end names them.
    reports: VecDeque<(Event, Option<Requested>)>,
    /// The requested runs and pairs.
    requested: Vec<Requested>,
    /// The runs and pairs that were reported long enough for the screen to keep them.
    measured: BTreeSet<Requested>,
}

/// A run of a stage, by the stage's number and the slot. The slot of pairs is `None`.
type Requested = (u32, Option<u8>);

enum Work {
    Run(RunSpec),
    /// Pairs of a stage, by its number and the number of the request.
    Pairs(u32, u64),
}

impl Engine {
    /// Carries out the commands among these effects.
    fn carry_out(&mut self, effects: &[Effect]) {
        for command in commands(effects) {
            match command {
                Command::Start { run, request, .. } | Command::Apply { run, request } => {
                    self.requested.push((run.stage, Some(run.slot as u8)));
                    let started = answer(sample::started(run, 0), *request);
                    self.reports.push_back((started, None));
                    self.work = Some((Work::Run(run.clone()), 0));
                    self.paused = false;
                }
                Command::Pair {
                    stage,
                    a,
                    b,
                    request,
                    ..
                } => {
                    self.requested.push((*stage, None));
                    let sides = [a, b].map(|run| (answer(side(run), *request), None));
                    self.reports.extend(sides);
                    self.work = Some((Work::Pairs(*stage, *request), 0));
                    self.paused = false;
                }
                Command::Pause => self.paused = true,
                Command::Resume => self.paused = false,
                Command::Stop => self.work = None,
                _ => {}
            }
        }
    }

    /// Makes this many steps or pairs.
    fn work(&mut self, steps: u64) {
        if let (Some((work, at)), false) = (&mut self.work, self.paused) {
            match work {
                Work::Run(run) => {
                    let requested = (run.stage, Some(run.slot as u8));
                    for step in *at..*at + steps {
                        // The stages of the course need at most 60 steps.
                        let measured = (step > 61).then_some(requested);
                        self.reports.push_back((sample::step(run, step), measured));
                    }
                }
                Work::Pairs(stage, request) => {
                    let n = *at + steps;
                    let done = n >= 40;
                    let result = answer(sample::pair(n as u32, done), *request);
                    let measured = done.then_some((*stage, None));
                    self.reports.push_back((result, measured));
                }
            }
            *at += steps;
            if matches!(work, Work::Pairs(..)) && *at >= 40 {
                self.work = None;
            }
        }
    }

    /// Reports at most this many events.
    fn report(&mut self, app: &mut App, lines: usize) {
        let lines = lines.min(self.reports.len());
        for (event, measured) in self.reports.drain(..lines) {
            // Events that the screen no longer waits for do not count.
            let present_stage = app.lesson.learner.at as u32 + 1;
            if let Some(run) = measured
                && app.bench.is_current()
                && run.0 == present_stage
            {
                self.measured.insert(run);
            }
            let line = StreamLine { t: 0.0, event };
            update(app, Message::Engine(FromEngine::Line(line)));
        }
    }
}

/// A turn of the presenter or of the engine.
#[derive(Clone, Debug)]
enum Turn {
    Next,
    Previous,
    /// Goes to the first beat of the stage at this index.
    Jump(usize),
    /// The engine makes this many steps or pairs and reports at most this many events.
    Work(u64, usize),
}

fn turns() -> impl Strategy<Value = Turn> {
    prop_oneof![
        5 => Just(Turn::Next),
        4 => Just(Turn::Previous),
        1 => (0..4_usize).prop_map(Turn::Jump),
        6 => (1..90_u64, 0..120_usize).prop_map(|(steps, lines)| Turn::Work(steps, lines)),
    ]
}

/// Returns the state of the beat at this place, the index of the stage and of the beat.
fn beat_at(app: &App, (stage, beat): (usize, usize)) -> BeatState {
    beats(stage, &app.lesson.course.stages[stage])[beat]
}

/// Returns the presenter's action of a turn, and the place to which it leads. Past either end of the course the place stays.
fn go(app: &App, turn: &Turn, here: (usize, usize)) -> (Action, (usize, usize)) {
    let (stage, beat) = here;
    let stages = app.lesson.course.stages.len();
    match turn {
        Turn::Next if beat < last_beat(app, stage) => (Action::NextBeat, (stage, beat + 1)),
        Turn::Next if stage + 1 < stages => (Action::NextBeat, (stage + 1, 0)),
        Turn::Next => (Action::NextBeat, here),
        Turn::Previous if beat > 0 => (Action::PreviousBeat, (stage, beat - 1)),
        Turn::Previous if stage > 0 => {
            let before = (stage - 1, last_beat(app, stage - 1));
            (Action::PreviousBeat, before)
        }
        Turn::Previous => (Action::PreviousBeat, here),
        Turn::Jump(stage) => (Action::Stage(*stage as u32 + 1), (*stage, 0)),
        Turn::Work(..) => unreachable!("the engine's turn"),
    }
}

/// Checks that the screen is in the state of the beat.
fn assert_shows(app: &App, beat: BeatState) {
    let stage = &app.lesson.course.stages[beat.stage];
    assert_eq!(app.beat(), Some(beat));
    assert_eq!(app.lesson.learner.at, beat.stage);
    let view = &app.view;
    assert_eq!((view.focus, view.expanded), (Some(beat.panel), true));
    assert!(!view.knobs && view.overlay.is_none() && view.confirm.is_none());
    assert_eq!(view.lesson_visible(), beat.panel == Panel::Lesson);
    assert_eq!(app.reading().page().0, beat.page);
    assert_eq!(app.reading().hints().0, beat.hints as usize);
    assert_eq!(
        app.lesson.learner.prediction_complete(stage),
        beat.vote == VoteState::Closed
    );
    assert_eq!(
        app.lesson.learner.revealed(stage),
        beat.vote == VoteState::Closed
    );
    assert_eq!(app.bench.comparison.config_b, stage.fixed);
    assert_eq!(app.cue().map(|cue| cue.show), Some(beat.panel));
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 96,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_beat_looks_alike_after_any_way_to_it(
        sequence in proptest::collection::vec(turns(), 1..80),
    ) {
        let mut app = presented();
        let work = Some((Work::Run(wanted(&app)), 4));
        let mut engine = Engine { work, ..Engine::default() };
        let mut here = (0, 0);
        for turn in sequence {
            if let Turn::Work(steps, lines) = turn {
                engine.work(steps);
                engine.report(&mut app, lines);
                assert_shows(&app, beat_at(&app, here));
                continue;
            }
            let action;
            (action, here) = go(&app, &turn, here);
            let measured = engine.measured.clone();
            let before = engine.requested.len();
            let effects = act(&mut app, action);
            engine.report(&mut app, usize::MAX);
            engine.carry_out(&effects);
            let again = engine.requested[before..].iter().find(|run| measured.contains(run));
            prop_assert_eq!(again, None, "measured before");
            let beat = beat_at(&app, here);
            assert_shows(&app, beat);
            engine.report(&mut app, usize::MAX);
            assert_shows(&app, beat);
            // The screen shows the run that the beat names, or no run yet.
            let number = app.lesson.course.stages[here.0].number;
            let run = app.shown_run();
            prop_assert_eq!(run.active, beat.variant);
            let shown = run.shown();
            if shown.has_begun() {
                let description = &shown.description;
                prop_assert_eq!((description.stage, description.slot), (number, beat.variant));
            }
            if beat.variant == Slot::A {
                prop_assert!(!run.slot(Slot::B).has_begun(), "B comes later");
            }
            prop_assert!(beat.paired || app.shown_pair().is_none(), "pairs come later");
            // A second visit changes nothing.
            if here.1 == 0 {
                let effects = act(&mut app, Action::Stage(number));
                prop_assert_eq!(commands(&effects), Vec::<&Command>::new());
                assert_shows(&app, beat);
            }
        }
    }
}

#[test]
fn beats_go_forward_and_back_across_stages() {
    let mut app = presented();
    assert_eq!(place(&app), (0, 0));
    act(&mut app, Action::PreviousBeat);
    assert_eq!(place(&app), (0, 0), "there is no beat before it");
    let last = last_beat(&app, 0);
    for _ in 0..=last {
        act(&mut app, Action::NextBeat);
    }
    assert_eq!(place(&app), (1, 0));
    act(&mut app, Action::PreviousBeat);
    assert_eq!(place(&app), (0, last), "the last beat of the stage before");
    act(&mut app, Action::NextBeat);
    act(&mut app, Action::NextBeat);
    act(&mut app, Action::Stage(1));
    assert_eq!(place(&app), (0, 0), "a jump starts at the first beat");
    act(&mut app, Action::NextBeat);
    act(&mut app, Action::Stage(1));
    assert_eq!(place(&app), (0, 0), "also to the stage that is shown");
}

#[test]
fn the_end_of_a_presentation_brings_the_learner_s_stage_back() {
    let mut app = presented();
    for _ in 0..5 {
        act(&mut app, Action::NextBeat);
    }
    act(&mut app, Action::Present);
    let stage = app.stage().expect("a stage").clone();
    assert!(!app.lesson.learner.predicted(&stage) && !app.lesson.learner.nothing_hidden);
    assert_eq!(app.lesson.learner.progress_of(&stage).hints, 0);
    assert_eq!((app.beat(), app.view.expanded), (None, false));
    assert_eq!(wanted(&app).variant, "broken");
}

#[test]
fn every_built_in_stage_has_beats_and_other_stages_get_default_ones() {
    for (at, stage) in Course::builtin().stages.iter().enumerate() {
        let all = beats(at, stage);
        assert!(all.len() >= 5, "{}", stage.id);
        let votes = all.iter().filter(|beat| beat.vote == VoteState::Open);
        assert_eq!(votes.count(), 1, "{}", stage.id);
        let toggles = stage.cues.iter().any(|cue| cue.does == BeatChange::Toggle);
        assert!(toggles, "{}", stage.id);
        // The beats before the vote do not answer it.
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
fn the_audience_s_screen_can_be_blank_or_frozen_and_the_presenter_does_not_vote() {
    let mut app = presented();
    act(&mut app, Action::NextBeat);
    act(&mut app, Action::Answer(1));
    let stage = app.stage().expect("a stage").clone();
    assert!(!app.lesson.learner.predicted(&stage), "a room votes");
    act(&mut app, Action::BlankScreen);
    assert_eq!(
        app.presenter.audience_screen(app.beat()),
        AudienceScreen::Blank
    );
    act(&mut app, Action::NextBeat);
    assert_eq!(
        app.presenter.audience_screen(app.beat()),
        AudienceScreen::Live,
        "the next beat comes into view"
    );
    act(&mut app, Action::FreezeScreen);
    act(&mut app, Action::NextBeat);
    assert_eq!(
        app.presenter.audience_screen(app.beat()),
        AudienceScreen::Frozen
    );
    assert_eq!(place(&app), (0, 3), "the presenter goes on");
    act(&mut app, Action::FreezeScreen);
    assert_eq!(
        app.presenter.audience_screen(app.beat()),
        AudienceScreen::Live
    );
    let effects = act(&mut app, Action::AskQuit);
    assert!(effects.is_empty() && app.view.confirm.is_some());
    assert_eq!(act(&mut app, Action::Yes), [Effect::Quit]);
}

#[test]
fn the_next_presentation_continues_at_the_last_beat() {
    let mut app = presented();
    act(&mut app, Action::Stage(3));
    let effects = act(&mut app, Action::NextBeat);
    let kept = effects.iter().find_map(|effect| match effect {
        Effect::Save(ProgressChange::Presented(stage, beat)) => Some((stage.clone(), *beat)),
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
    let next_session = |stage| App::new(Course::builtin(), progress.clone(), options(stage)).0;
    assert_eq!(place(&next_session(None)), (2, 1));
    assert_eq!(
        place(&next_session(Some(2))),
        (1, 0),
        "a stage that is named comes first"
    );
    let (mut app, _) = App::new(Course::builtin(), progress.clone(), Options::default());
    act(&mut app, Action::PresentFrom(false));
    assert_eq!(place(&app), (2, 1));
    act(&mut app, Action::PresentFrom(true));
    assert_eq!(place(&app), (0, 0));
}

#[test]
fn the_speaker_view_has_notes_and_times() {
    let mut app = presented();
    update(&mut app, Message::Tick { now_ms: 90_000 });
    act(&mut app, Action::NextBeat);
    update(&mut app, Message::Tick { now_ms: 100_000 });
    let shown = notes(&app).expect("something is presented");
    // The first beat was shown for 90 s, the second one for 10 s.
    assert_eq!((shown.stage, shown.beat, shown.used_s), (1, 2, 10));
    assert_eq!((shown.agenda[0].used_s, shown.agenda[1].used_s), (100, 0));
    assert_eq!(shown.vote.len(), 4);
    assert!(!shown.notes.is_empty() && !shown.next.is_empty());
    let line = serde_json::to_string(&shown).expect("plain data");
    assert_eq!(SpeakerNotes::read(&line), Some(shown));
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
    assert_eq!(again.used_in_all_s(), 100, "earlier presentations count");
}

#[test]
fn a_presentation_continues_at_the_beat_where_it_was_left() {
    let mut app = presented();
    act(&mut app, Action::Stage(2));
    act(&mut app, Action::NextBeat);
    act(&mut app, Action::Present);
    assert_eq!(app.beat(), None);
    act(&mut app, Action::PresentFrom(false));
    assert_eq!(place(&app), (1, 1));
}

#[test]
fn nothing_shows_b_before_the_vote() {
    let mut app = presented();
    for action in [Action::Knobs, Action::Toggle, Action::Pair] {
        let effects = act(&mut app, action);
        assert_eq!(commands(&effects), Vec::<&Command>::new());
        assert!(!app.knobs_open() && app.bench.run.active == Slot::A);
        assert!(super::notice(&app).contains("after the vote"));
    }
    while app
        .beat()
        .is_some_and(|beat| beat.vote != VoteState::Closed)
    {
        act(&mut app, Action::NextBeat);
    }
    act(&mut app, Action::Toggle);
    assert_eq!(app.bench.run.active, Slot::B);
}

#[test]
fn a_beat_measures_at_most_the_pairs_that_its_file_names() {
    // Stage 2 names no limit (0), stage 3 a limit of 40 pairs.
    for (number, limit) in [(2, 0), (3, 40)] {
        let mut app = presented();
        act(&mut app, Action::Stage(number));
        train(&mut app, 3);
        let last = last_beat(&app, number as usize - 1);
        while place(&app).1 + 1 < last {
            act(&mut app, Action::NextBeat);
        }
        train(&mut app, 3);
        let effects = act(&mut app, Action::NextBeat);
        let [Command::Pair { pairs, .. }] = commands(&effects)[..] else {
            panic!("stage {number}: {effects:?}");
        };
        assert_eq!(*pairs, limit, "stage {number}");
    }
}

#[test]
fn the_right_choice_is_marked_at_the_beat_of_the_vote() {
    let mut app = presented();
    act(&mut app, Action::ShowAnswer);
    assert!(
        !app.presenter.answer_shown(app.lesson.learner.at),
        "there is no vote yet"
    );
    act(&mut app, Action::NextBeat);
    act(&mut app, Action::ShowAnswer);
    assert!(app.presenter.answer_shown(app.lesson.learner.at));
    let reason = reason_of_answer(&app).expect("a reason");
    assert!(
        reason.contains("learning rate") && !reason.contains("not measured"),
        "{reason}"
    );
    act(&mut app, Action::ShowAnswer);
    assert!(
        !app.presenter.answer_shown(app.lesson.learner.at),
        "the same key hides it"
    );
}

#[test]
fn the_speaker_can_go_to_a_beat_and_end_the_presentation() {
    let mut app = presented();
    let shown = notes(&app).expect("something is presented");
    let last = last_beat(&app, 0) + 1;
    assert_eq!(shown.beat_from((1, last), 1), Some((2, 1)));
    assert_eq!(shown.beat_from((2, 1), -1), Some((1, last)));
    assert_eq!(shown.beat_from((1, 1), -1), None);
    for (line, to) in [
        ("go-to 3 2", (2, 1)),
        ("go-to 1 1", (0, 0)),
        ("go-to 77 1", (0, 0)),
    ] {
        let request = SpeakerRequest::parse(line).expect("a request");
        assert_eq!(request.to_string(), line);
        act(&mut app, request.action());
        assert_eq!(place(&app), to);
    }
    assert_eq!(SpeakerRequest::parse("next"), None);
    act(&mut app, SpeakerRequest::End.action());
    assert_eq!(app.beat(), None);
}

#[test]
fn the_notes_of_every_beat_have_their_figures() {
    let mut app = presented();
    for stage in 0..app.lesson.course.stages.len() {
        for _ in 0..=last_beat(&app, stage) {
            let shown = notes(&app).expect("something is presented");
            for text in [&shown.next, &shown.says, &shown.notes] {
                assert!(!text.contains("{{"), "{text}");
            }
            act(&mut app, Action::NextBeat);
        }
    }
}

#[test]
fn the_agendas_of_the_instructor_s_guide_add_up() {
    let course = Course::builtin();
    let guide = include_str!("../../docs/instructor.md");
    let lengths: Vec<u32> = course.agendas.iter().map(|agenda| agenda.minutes).collect();
    assert_eq!(lengths, [30, 90, 180]);
    for agenda in &course.agendas {
        let sum: u32 = agenda.parts.iter().map(|part| part.minutes).sum();
        assert_eq!(sum, agenda.minutes);
        for part in &agenda.parts {
            assert!(
                guide.contains(&part.topic),
                "docs/instructor.md: {}",
                part.topic
            );
            let exists = |number: &u32| course.stage(*number).is_some();
            assert!(part.stages.iter().all(exists));
        }
    }
}

#[test]
fn every_vote_is_followed_by_a_beat_with_its_figures() {
    for stage in &Course::builtin().stages {
        let vote = stage
            .cues
            .iter()
            .position(|cue| cue.does == BeatChange::Vote);
        let after = &stage.cues[vote.expect("a vote") + 1..];
        let shows_figures = |cue: &Beat| {
            let has_placeholder = cue.large.contains("{{") || cue.say.contains("{{");
            has_placeholder || !cue.row.is_empty() || cue.does == BeatChange::Pair
        };
        assert!(after.iter().any(shows_figures), "stage {}", stage.number);
    }
    // Stage 8 asks for the peak with twice the context.
    let stage = &Course::builtin().stages[7];
    let shows_peak = |cue: &Beat| cue.large.contains("peak_composed_double_mib");
    assert!(stage.cues.iter().any(shows_peak));
}
