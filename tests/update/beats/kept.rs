//! A beat keeps the figures that it showed, shows none of later beats, and leaves the learner's own state as it was.

use super::*;

#[test]
fn a_run_that_was_measured_is_shown_again() {
    let mut app = presented();
    train(&mut app, 80);
    let loss = app.shown_bench().run.slot(Slot::A).loss.last();
    // To the fix, which runs for a while, and back over the vote.
    for _ in 0..4 {
        act(&mut app, Action::NextBeat);
    }
    assert_eq!(wanted(&app).variant, "fixed");
    train(&mut app, 70);
    let effects = act(&mut app, Action::PreviousBeat);
    assert_eq!(commands(&effects), [&Command::Pause]);
    assert_eq!(app.shown_bench().run.active, Slot::A);
    assert_eq!(app.shown_bench().run.slot(Slot::A).loss.last(), loss);
    let effects = act(&mut app, Action::NextBeat);
    assert_eq!(commands(&effects), [&Command::Resume]);
    assert_eq!(app.shown_bench().run.active, Slot::B);
    // Another stage, and back: both runs are still there, and none begins anew.
    act(&mut app, Action::Stage(2));
    train(&mut app, 30);
    let effects = act(&mut app, Action::Stage(1));
    assert_eq!(commands(&effects), [&Command::Stop]);
    assert_eq!(app.shown_bench().run.slot(Slot::A).loss.last(), loss);
    // The other stage's last words do not count.
    let stage = &app.lesson.course.stages[1];
    let late = spec(stage, "broken");
    hear(&mut app, sample::step(&late, 31));
    assert_eq!(app.shown_bench().run.slot(Slot::A).loss.last(), loss);
}

#[test]
fn pairs_continue_while_an_earlier_beat_shows_its_kept_figures() {
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
        let run = app.shown_run();
        assert!(app.bench.pairing() && run.active == active);
        assert_eq!(run.slot(Slot::B).loss.last(), shown);
    }
}

/// The runs of A and B (variant, points of the curve, last step), the pairs, the vote and the page.
type Drawn = (Vec<(String, usize, Option<u64>)>, Option<u32>, String);

/// Returns the measurements that the screen shows.
fn drawn(app: &App) -> Drawn {
    let bench = app.shown_bench();
    let slots = bench.run.story.slots.iter().map(|slot| {
        let last = slot.last.as_ref().map(|step| step.step);
        (slot.description.name.clone(), slot.loss.held(), last)
    });
    let pair = app.shown_pair().map(|pair| pair.n);
    let beat = app.beat().expect("a beat");
    let said = format!(
        "{:?} {:?} {:?} {} {:?}",
        bench.run.active,
        beat.vote,
        app.reading().page(),
        app.reading().hints().0,
        app.cue().map(|cue| cue.say)
    );
    (slots.collect(), pair, said)
}

/// Takes the waiting events of the engine, lets it make this many steps, and takes their events.
fn measure(app: &mut App, engine: &mut Engine, steps: u64) {
    engine.say(app, usize::MAX);
    engine.work(steps);
    engine.say(app, usize::MAX);
}

#[test]
fn every_visit_of_a_beat_shows_its_first_figures() {
    let (mut app, _) = begin(Course::builtin(), Options::default());
    let mut engine = Engine::default();
    engine.take(&act(&mut app, Action::PresentFrom(true)));
    let all: Vec<(usize, usize)> = (0..app.lesson.course.stages.len())
        .flat_map(|stage| (0..=last_of(&app, stage)).map(move |beat| (stage, beat)))
        .collect();
    let mut seen = Vec::new();
    for here in &all {
        assert_eq!(at(&app), *here);
        measure(&mut app, &mut engine, 90);
        let beat = app.beat().expect("a beat");
        let shown = drawn(&app);
        assert!(shown.0[0].2.is_some(), "A was measured: {shown:?}");
        if beat.variant == Slot::A {
            assert_eq!(shown.0[1].2, None, "B before its beat: {shown:?}");
        }
        assert_eq!(shown.1.is_some(), beat.paired, "{shown:?}");
        seen.push(shown);
        engine.take(&act(&mut app, Action::NextBeat));
    }
    let asked = engine.asked.len();
    let mut at_place = all.len() - 1;
    // Back to the first beat, forward to the last, and jumps to each stage.
    for back in [true, false, true] {
        for _ in 1..all.len() {
            let (action, to) = if back {
                (Action::PreviousBeat, at_place - 1)
            } else {
                (Action::NextBeat, at_place + 1)
            };
            engine.take(&act(&mut app, action));
            at_place = to;
            // The last beat was never left for a later one: its run goes on.
            let is_last = at_place + 1 == all.len();
            measure(&mut app, &mut engine, if is_last { 0 } else { 30 });
            assert_eq!(at(&app), all[at_place]);
            assert_eq!(drawn(&app), seen[at_place], "at {:?}", all[at_place]);
        }
    }
    for (place, (stage, _)) in all.iter().enumerate().filter(|(_, beat)| beat.1 == 0) {
        engine.take(&act(&mut app, Action::Stage(*stage as u32 + 1)));
        measure(&mut app, &mut engine, 30);
        assert_eq!(drawn(&app), seen[place]);
    }
    assert_eq!(engine.asked.len(), asked, "nothing is measured twice");
    // The next presentation begins empty.
    engine.take(&act(&mut app, Action::PresentFrom(true)));
    assert_eq!(drawn(&app).0[0].2, None);
    assert_eq!(wanted(&app).variant, "broken");
    measure(&mut app, &mut engine, 5);
    assert_eq!(drawn(&app).0[0].2, Some(4));
}

#[test]
fn a_skipped_beat_shows_no_figures_of_later_beats() {
    let mut app = presented();
    let mut engine = Engine::default();
    let last = last_of(&app, 0);
    let without_pairs = [last, 4, 0, last, 2, 1, 3].map(|beat| (1, beat, 7));
    // Back in the second stage, pairs are in progress and its first beat has shown a few steps of A.
    let pairs = last_of(&app, 1);
    let toggle = pairs - 1;
    let with_pairs = [(2, 0, 7), (2, toggle, 90), (1, 0, 7), (2, pairs, 7)];
    let again = [(2, 0, 7), (2, pairs, 7), (2, toggle, 7)];
    let all = without_pairs.into_iter().chain(with_pairs).chain(again);
    for (stage, beat, steps) in all {
        engine.take(&act(&mut app, Action::GoToBeat { stage, beat }));
        measure(&mut app, &mut engine, steps);
        let here = app.beat().expect("a beat");
        let shown = drawn(&app);
        let hidden = here.variant == Slot::B || shown.0[1].2.is_none();
        assert!(hidden, "{stage}, {beat}: {shown:?}");
        let paired = here.paired || shown.1.is_none();
        assert!(paired, "{stage}, {beat}: {shown:?}");
    }
}

/// Returns the learner's state as text: progress, A and B with their curves and pairs, and the view.
fn learner_state(app: &App) -> String {
    let mut view = app.view.clone();
    view.revision = 0;
    view.notice = None;
    let mut progress = app.lesson.learner.progress.clone();
    progress.presented = None;
    let learner = &app.lesson.learner;
    let run = &app.bench.run;
    format!(
        "{progress:?} {} {:?} {:?} {view:?} {:?} {:?} {:?} {:?}",
        learner.at,
        learner.pair,
        learner.pointer,
        app.bench.comparison,
        run.story.slots,
        run.active,
        run.wanted
    )
}

#[test]
fn a_presentation_changes_nothing_of_the_learner_s_state() {
    let (mut app, _) = begin(Course::builtin(), Options::default());
    train(&mut app, 30);
    act(&mut app, Action::Lesson);
    act(&mut app, Action::Answer(1));
    act(&mut app, Action::Focus(Panel::Gradients));
    let before = learner_state(&app);
    for stage in 0..app.lesson.course.stages.len() {
        for beat in 0..=last_of(&app, stage) {
            let mut engine = Engine::default();
            engine.take(&act(&mut app, Action::PresentFrom(true)));
            let stage = stage as u32 + 1;
            engine.take(&act(&mut app, Action::GoToBeat { stage, beat }));
            measure(&mut app, &mut engine, 3);
            engine.take(&act(&mut app, Action::NextBeat));
            measure(&mut app, &mut engine, 3);
            engine.take(&act(&mut app, Action::Present));
            assert!(app.beat().is_none());
            // What the engine says late is not the learner's either.
            measure(&mut app, &mut engine, 3);
            assert_eq!(learner_state(&app), before, "stage {stage}, beat {beat}");
        }
    }
    // What they save meanwhile is their B once the presentation is left, and never the room's.
    act(&mut app, Action::PresentFrom(true));
    let mut mine = app.lesson.course.stages[0].broken.clone();
    mine.train.batch = 2;
    let config = Ok(Box::new(mine.clone()));
    update(&mut app, Message::FileSaved { config });
    assert_eq!(
        app.bench.comparison.config_b,
        app.lesson.course.stages[0].fixed
    );
    act(&mut app, Action::Present);
    assert_eq!(app.bench.comparison.config_b, mine);
    // Their run begins again when they ask for it.
    let effects = act(&mut app, Action::Restart);
    assert!(matches!(commands(&effects)[..], [Command::Start { .. }]));
}
