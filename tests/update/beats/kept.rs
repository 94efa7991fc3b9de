//! A beat keeps the figures that it showed and shows no figures of later beats. A presentation leaves the learner's own state as it was.

use super::*;

#[test]
fn a_run_that_was_measured_is_shown_again() {
    let mut app = presented();
    train(&mut app, 80);
    let loss = app.shown_bench().run.slot(Slot::A).loss.last();
    // The presenter goes on to the fix, which runs for a while, and back.
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
    // After a visit of another stage both runs are still there, and none restarts.
    act(&mut app, Action::Stage(2));
    train(&mut app, 30);
    let effects = act(&mut app, Action::Stage(1));
    assert_eq!(commands(&effects), [&Command::Stop]);
    assert_eq!(app.shown_bench().run.slot(Slot::A).loss.last(), loss);
    // Late events of the other stage change nothing.
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
    let pairs = last_beat(&app, 1);
    while place(&app).1 + 1 < pairs {
        act(&mut app, Action::NextBeat);
    }
    assert_eq!(wanted(&app).variant, "fixed");
    train(&mut app, 3);
    let shown = app.bench.run.slot(Slot::B).loss.last();
    let effects = act(&mut app, Action::NextBeat);
    assert!(matches!(commands(&effects)[..], [Command::Pair { .. }]));
    for action in [Action::PreviousBeat, Action::NextBeat] {
        let effects = act(&mut app, action);
        assert_eq!(commands(&effects), Vec::<&Command>::new(), "pairs go on");
        let run = app.shown_run();
        assert!(app.bench.pairing() && run.active == Slot::B);
        assert_eq!(run.slot(Slot::B).loss.last(), shown);
    }
}

/// The content of the screen at a beat.
#[derive(Debug, PartialEq)]
struct BeatScreen {
    /// The runs of A and B: the name, the points of the curve, and the last step.
    runs: Vec<(String, usize, Option<u64>)>,
    /// The number of pairs.
    pairs: Option<u32>,
    /// The active slot, the vote, the page, the hints and the sentence, as text.
    rest: String,
}

impl BeatScreen {
    fn of(app: &App) -> Self {
        let bench = app.shown_bench();
        let runs = bench.run.story.slots.iter().map(|slot| {
            let last = slot.last.as_ref().map(|step| step.step);
            (
                slot.description.name.clone(),
                slot.loss.recent().len(),
                last,
            )
        });
        let beat = app.beat().expect("a beat");
        Self {
            runs: runs.collect(),
            pairs: app.shown_pair().map(|pair| pair.n),
            rest: format!(
                "{:?} {:?} {:?} {:?} {} {:?}",
                bench.run.active,
                beat.vote,
                app.reading().page(),
                app.reading().page_number(),
                app.reading().hints().shown,
                app.cue().map(|cue| cue.say)
            ),
        }
    }

    fn last_step_of_a(&self) -> Option<u64> {
        self.runs[0].2
    }

    fn last_step_of_b(&self) -> Option<u64> {
        self.runs[1].2
    }
}

/// Takes the waiting events of the engine, lets it make this many steps, and takes their events.
fn measure(app: &mut App, engine: &mut Engine, steps: u64) {
    engine.report(app, usize::MAX);
    engine.work(steps);
    engine.report(app, usize::MAX);
}

#[test]
fn every_visit_of_a_beat_shows_its_first_figures() {
    let (mut app, _) = begin(Course::builtin(), Options::default());
    let mut engine = Engine::default();
    engine.carry_out(&act(&mut app, Action::PresentFrom(true)));
    let all: Vec<(usize, usize)> = (0..app.lesson.course.stages.len())
        .flat_map(|stage| (0..=last_beat(&app, stage)).map(move |beat| (stage, beat)))
        .collect();
    let mut seen = Vec::new();
    for expected in &all {
        assert_eq!(place(&app), *expected);
        measure(&mut app, &mut engine, 90);
        let beat = app.beat().expect("a beat");
        let shown = BeatScreen::of(&app);
        assert!(shown.last_step_of_a().is_some(), "{shown:?}");
        if beat.variant == Slot::A {
            assert_eq!(shown.last_step_of_b(), None, "{shown:?}");
        }
        assert_eq!(shown.pairs.is_some(), beat.paired, "{shown:?}");
        seen.push(shown);
        engine.carry_out(&act(&mut app, Action::NextBeat));
    }
    let asked = engine.requested.len();
    let mut index = all.len() - 1;
    // Back to the first beat, forward to the last, and jumps to each stage.
    for back in [true, false, true] {
        for _ in 1..all.len() {
            let (action, to) = if back {
                (Action::PreviousBeat, index - 1)
            } else {
                (Action::NextBeat, index + 1)
            };
            engine.carry_out(&act(&mut app, action));
            index = to;
            // The last beat was never left for a later beat, so its run goes on.
            let is_last = index + 1 == all.len();
            measure(&mut app, &mut engine, if is_last { 0 } else { 30 });
            assert_eq!(place(&app), all[index]);
            assert_eq!(BeatScreen::of(&app), seen[index], "{:?}", all[index]);
        }
    }
    for (index, (stage, _)) in all.iter().enumerate().filter(|(_, beat)| beat.1 == 0) {
        engine.carry_out(&act(&mut app, Action::Stage(*stage as u32 + 1)));
        measure(&mut app, &mut engine, 30);
        assert_eq!(BeatScreen::of(&app), seen[index]);
    }
    assert_eq!(engine.requested.len(), asked, "nothing is measured twice");
    // The next presentation begins empty.
    engine.carry_out(&act(&mut app, Action::PresentFrom(true)));
    assert_eq!(BeatScreen::of(&app).last_step_of_a(), None);
    assert_eq!(wanted(&app).variant, "broken");
    measure(&mut app, &mut engine, 5);
    assert_eq!(BeatScreen::of(&app).last_step_of_a(), Some(4));
}

#[test]
fn a_skipped_beat_shows_no_figures_of_later_beats() {
    let mut app = presented();
    let mut engine = Engine::default();
    let last = last_beat(&app, 0);
    let without_pairs = [last, 4, 0, last, 2, 1, 3].map(|beat| (1, beat, 7));
    // At the return to the second stage, pairs are in progress, and the first beat of the stage has shown a few steps of A.
    let pairs = last_beat(&app, 1);
    let toggle = pairs - 1;
    let with_pairs = [(2, 0, 7), (2, toggle, 90), (1, 0, 7), (2, pairs, 7)];
    let again = [(2, 0, 7), (2, pairs, 7), (2, toggle, 7)];
    let all = without_pairs.into_iter().chain(with_pairs).chain(again);
    for (stage, beat, steps) in all {
        engine.carry_out(&act(&mut app, Action::GoToBeat { stage, beat }));
        measure(&mut app, &mut engine, steps);
        let state = app.beat().expect("a beat");
        let shown = BeatScreen::of(&app);
        let hides_b = state.variant == Slot::B || shown.last_step_of_b().is_none();
        assert!(hides_b, "{stage}, {beat}: {shown:?}");
        let hides_pairs = state.paired || shown.pairs.is_none();
        assert!(hides_pairs, "{stage}, {beat}: {shown:?}");
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
        for beat in 0..=last_beat(&app, stage) {
            let mut engine = Engine::default();
            engine.carry_out(&act(&mut app, Action::PresentFrom(true)));
            let stage = stage as u32 + 1;
            engine.carry_out(&act(&mut app, Action::GoToBeat { stage, beat }));
            measure(&mut app, &mut engine, 3);
            engine.carry_out(&act(&mut app, Action::NextBeat));
            measure(&mut app, &mut engine, 3);
            engine.carry_out(&act(&mut app, Action::Present));
            assert!(app.beat().is_none());
            // Late events of the engine do not change it either.
            measure(&mut app, &mut engine, 3);
            assert_eq!(learner_state(&app), before, "stage {stage}, beat {beat}");
        }
    }
    // A file that the learner saves meanwhile becomes B when the presentation ends. The audience never sees it.
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
    // The learner's run restarts at their request.
    let effects = act(&mut app, Action::Restart);
    assert!(matches!(commands(&effects)[..], [Command::Start { .. }]));
}
