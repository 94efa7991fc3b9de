//! Kernel exercises on the screen: what messages change, which effects follow, and how it looks. No terminal, engine or clock takes part.

#[path = "exercises/configs.rs"]
mod configs;

use crate::{sample, screen, session};
use perflings::app::exercise::{ExerciseNews, ExerciseState, InModel};
use perflings::app::{
    Action, App, Confirm, Effect, Markers, Message, Options, Overlay, ThemeName, update,
};
use perflings::course::Course;
use perflings::course::save_file::{ProgressChange, StageState};
use perflings::judge::kernel::{CardLine, KernelChecking, KernelVerdict};
use perflings::judge::{self, Outcome};
use protocol::*;

use configs::{asked, measured, measuring};
use screen::{text, with_styles};
use session::{act, hear, open, resize, train};

fn course() -> Course {
    Course {
        exercises: Course::builtin().exercises,
        ..sample::course()
    }
}

fn begin() -> App {
    begin_on("vulkan-cpu")
}

fn begin_on(device: &str) -> App {
    let options = Options {
        device: Some(device.to_owned()),
        ..Options::default()
    };
    let (mut app, _) = session::begin(course(), options);
    resize(&mut app, 120, 36);
    train(&mut app, 40);
    app
}

/// Sends news about the open exercise to the screen.
fn about(app: &mut App, news: ExerciseNews) -> Vec<Effect> {
    let exercise = app.exercise().expect("open").id.clone();
    update(app, Message::Exercise { exercise, news })
}

/// Returns the open exercise's state.
fn state(app: &App) -> &ExerciseState {
    let exercise = app.exercise().expect("open");
    app.exercise.state(exercise).expect("known")
}

/// Returns the event about a kernel of k01 in the model. `why_not` is the reason why the model does not use it.
fn kernel_used(why_not: Option<&str>) -> Event {
    Event::KernelUsed {
        exercise: "swiglu".to_owned(),
        part: "mlp.activation".to_owned(),
        why_not: why_not.map(str::to_owned),
    }
}

/// Returns the kernels that the engine is asked to use.
fn swaps(effects: &[Effect]) -> Vec<KernelSwap> {
    let mut swaps = Vec::new();
    for effect in effects {
        if let Effect::Send(Command::UseKernel { swap }) = effect {
            swaps.push(swap.clone());
        }
    }
    swaps
}

fn line(good: Option<bool>, text: &str) -> CardLine {
    CardLine {
        good,
        text: text.to_owned(),
    }
}

fn report(passed: bool, card: Vec<CardLine>) -> KernelVerdict {
    KernelVerdict {
        facts: KernelReport {
            exercise: "swiglu".to_owned(),
            device: Some(sample::device()),
            seconds: 0.4,
            ..KernelReport::default()
        },
        card,
        passed,
        ..KernelVerdict::default()
    }
}

/// Returns the verdict on the starter of k01.
fn starter() -> KernelVerdict {
    report(
        false,
        vec![
            line(None, "starter.wgsl"),
            line(Some(true), "compiles: workgroups of 64 × 1 × 1"),
            line(
                Some(false),
                "fails at `one element` (N = 1): `out[0]` is -0.46133 and should be 0.15789; it is the only element",
            ),
            line(Some(false), "every output is right: fails at `one element`"),
            line(None, "this is still the starter"),
        ],
    )
}

/// Returns the verdict on a kernel that does not compile.
fn nonsense() -> KernelVerdict {
    let text = "does not compile: starter.wgsl:13:5 `upp`: no definition in scope for identifier";
    let mut report = report(false, vec![line(Some(false), text)]);
    report.facts.files = vec![KernelResult {
        name: "backward.wgsl".to_owned(),
        error: Some(KernelError {
            line: 13,
            column: 5,
            ..KernelError::default()
        }),
        ..KernelResult::default()
    }];
    report
}

/// Returns the verdict on a kernel that passes.
fn passed() -> KernelVerdict {
    let card = vec![
        line(Some(true), "compiles: workgroups of 64 × 1 × 1"),
        line(
            Some(true),
            "correct at 3 shapes: largest error 9.8e-8 of the largest value, 1e-5 is allowed",
        ),
        line(
            None,
            "time at `small`, device clock: 12.1 µs (12.0 µs to 12.4 µs, n = 40) · 2,080 GB/s · 72 % of this device's measured memory peak",
        ),
        line(
            None,
            "1.04 times as fast as the starter (1.02 to 1.07) (12.6 µs)",
        ),
        line(
            None,
            "1.00 times as fast as the solution (0.98 to 1.02) (12.1 µs)",
        ),
        line(
            Some(true),
            "every output is right: every element of every shape",
        ),
    ];
    KernelVerdict {
        swap: Some(swap()),
        ..report(true, card)
    }
}

fn swap() -> KernelSwap {
    KernelSwap {
        exercise: "swiglu".to_owned(),
        part: "mlp.activation".to_owned(),
        kernels: vec![KernelText::default(), KernelText::default()],
        sizes: Vec::new(),
    }
}

/// Returns the verdict where no device runs kernels.
fn no_adapter() -> KernelVerdict {
    let why = "vulkan-cpu: there is no CPU driver of Vulkan; a CPU driver of Vulkan runs kernels at small sizes: install mesa-vulkan-drivers (Debian, Ubuntu, Fedora) or vulkan-swrast (Arch)";
    let card = vec![line(Some(false), &format!("not checked: {why}"))];
    let mut report = report(false, card);
    report.facts.failed = Some(why.to_owned());
    report.facts.device = None;
    report
}

fn opened() -> App {
    let mut app = begin();
    open(&mut app, "k01");
    let folder = "~/.local/state/perflings/tiny-llama/work/swiglu";
    let files = ["starter.wgsl", "backward.wgsl"].map(|name| format!("{folder}/{name}"));
    about(&mut app, ExerciseNews::Files(files.to_vec()));
    about(&mut app, ExerciseNews::Begun);
    app
}

fn checked(report: KernelVerdict) -> App {
    let mut app = opened();
    about(&mut app, ExerciseNews::Checked(Box::new(report)));
    app
}

fn checking() -> App {
    let mut app = checked(starter());
    about(&mut app, ExerciseNews::Begun);
    let progress = KernelChecking {
        card: vec![line(Some(true), "compiles: workgroups of 64 × 1 × 1")],
        now: "runs starter.wgsl at `odd`".to_owned(),
    };
    about(&mut app, ExerciseNews::Progress(Box::new(progress)));
    let now_ms = app.clock.now_ms + 2_000;
    update(&mut app, Message::Tick { now_ms });
    app
}

fn in_model() -> App {
    let mut app = checked(passed());
    hear(&mut app, kernel_used(None));
    let now_ms = app.clock.now_ms + 60_000;
    update(&mut app, Message::Tick { now_ms });
    app
}

pub(crate) fn states() -> Vec<(&'static str, App)> {
    let mut solved = checked(passed());
    act(&mut solved, Action::Solution);
    let mut list = checked(passed());
    act(&mut list, Action::Open(Overlay::Stages));
    let mut hinted = checked(nonsense());
    for _ in 0..3 {
        act(&mut hinted, Action::Hint);
    }
    vec![
        ("kernel_wrong", checked(starter())),
        ("kernel_checking", checking()),
        ("kernel_not_compiling", hinted),
        ("kernel_passed", in_model()),
        ("kernel_without_a_device", checked(no_adapter())),
        ("kernel_solution", solved),
        ("kernel_in_the_list", list),
        ("config_asked", asked()),
        ("config_measuring", measuring()),
        ("config_measured", measured()),
    ]
}

/// The states that have a picture.
const PICTURED: [&str; 6] = [
    "kernel_wrong",
    "kernel_checking",
    "kernel_not_compiling",
    "kernel_passed",
    "config_asked",
    "config_measured",
];

#[test]
fn the_main_states_look_as_in_their_pictures() {
    for (name, mut app) in states() {
        if !PICTURED.contains(&name) {
            continue;
        }
        app.view.lesson_open = true;
        let buffer = screen::screen(&mut app, 120, 36, ThemeName::Dark, Markers::Braille);
        insta::assert_snapshot!(format!("{name}_120x36"), with_styles(&buffer));
    }
}

/// Returns words that the screen shows in a state.
fn expected_words(name: &str) -> [&'static str; 2] {
    match name {
        "kernel_wrong" => ["── not yet ──", "✗ fails at `one element` (N = 1)"],
        "kernel_checking" => ["── checking ──", "○ runs starter.wgsl at `odd`, 2 s"],
        "kernel_not_compiling" => ["✗ does not compile: starter.wgsl:13:5", "Hint 3/3"],
        "kernel_passed" => ["── passed ──", "✓ compiles: workgroups of 64 × 1 × 1"],
        "kernel_without_a_device" => ["── not checked ──", "✗ not checked: vulkan-cpu"],
        "kernel_solution" => ["╭ solution ─", "@compute @workgroup_size(64)"],
        "kernel_in_the_list" => ["╭ stages and exercises ─", "▸ ✓ k01 intermediate"],
        "config_asked" => ["── predict before you measure ──", "▸1 2 4 8 16 32 64"],
        "config_measuring" => ["── measuring, 3 of 7 ──", "○ train.batch = 4: step 5"],
        "config_measured" => ["── passed ──", "✓ the bend is where you said"],
        _ => panic!("{name}"),
    }
}

#[test]
fn every_state_is_named_on_the_screen_at_every_size() {
    for (width, height) in [(80, 24), (120, 36), (200, 50)] {
        for (name, mut app) in states() {
            // A frame too small for lesson and panels shows the exercise over the panels.
            app.view.lesson_open = true;
            let buffer = screen::screen(&mut app, width, height, ThemeName::Dark, Markers::Braille);
            let shown = text(&buffer);
            for wanted in expected_words(name) {
                let place = format!("{name} at {width}x{height}");
                assert!(shown.contains(wanted), "{wanted}, {place}: {shown}");
            }
        }
    }
}

#[test]
fn good_and_bad_are_told_apart_without_colour() {
    for (markers, marks) in [
        (Markers::Braille, ["✓ ", "✗ "]),
        (Markers::Ascii, ["+ ", "! "]),
    ] {
        let mut app = checked(starter());
        let buffer = screen::screen(&mut app, 120, 36, ThemeName::Mono, markers);
        let shown = text(&buffer);
        for (mark, result) in marks.iter().zip(["compiles: ", "fails at "]) {
            assert!(shown.contains(&format!("{mark}{result}")), "{shown}");
        }
    }
}

#[test]
fn an_open_exercise_pauses_the_run_and_leaving_it_resumes_the_run() {
    let mut app = begin();
    let effects = open(&mut app, "k01");
    let device = "vulkan-cpu".to_owned();
    let exercise = "swiglu".to_owned();
    let opens = Effect::OpenExercise { exercise, device };
    assert!(effects.contains(&opens), "{effects:?}");
    assert!(
        sends(&effects, &Command::Pause),
        "the run waits: {effects:?}"
    );
    assert_eq!(
        app.lesson.learner.progress.stage("swiglu").state,
        StageState::Seen
    );
    // Opening it again begins nothing anew.
    assert_eq!(open(&mut app, "k01"), Vec::new());
    // Keys of the stage do nothing.
    assert_eq!(act(&mut app, Action::Toggle), Vec::new());
    assert_eq!(act(&mut app, Action::Pair), Vec::new());
    let effects = act(&mut app, Action::NextStage);
    assert!(effects.contains(&Effect::LeaveExercise));
    assert_eq!(app.exercise().map(|exercise| exercise.label()), Some("k02"));
    let resume = Effect::Send(Command::Resume);
    let effects = act(&mut app, Action::Stage(1));
    assert_eq!(effects, vec![Effect::LeaveExercise, resume]);
    assert!(app.exercise().is_none());
}

#[test]
fn only_a_passing_kernel_gets_into_the_model_and_the_last_good_one_stays() {
    let mut app = opened();
    let effects = about(&mut app, ExerciseNews::Checked(Box::new(starter())));
    assert_eq!(swaps(&effects), Vec::new());
    let effects = about(&mut app, ExerciseNews::Checked(Box::new(passed())));
    assert_eq!(swaps(&effects), vec![swap()]);
    assert!(effects.iter().any(|effect| matches!(
        effect,
        Effect::Save(ProgressChange::Stage(stage, progress)) if stage == "swiglu" && progress.state == StageState::Passed
    )));
    assert_eq!(state(&app).in_model, InModel::Asked);
    hear(&mut app, kernel_used(None));
    assert_eq!(state(&app).in_model, InModel::Since(app.shown_run().step()));
    // A wrong one afterwards changes nothing in the model.
    let effects = about(&mut app, ExerciseNews::Checked(Box::new(nonsense())));
    assert_eq!(effects, Vec::new());
    assert_eq!(state(&app).in_model, InModel::Since(app.shown_run().step()));
    // A new run may be in another process: it is asked again.
    let run = app.bench.run.wanted.clone().expect("a run");
    act(&mut app, Action::Restart);
    let effects: Vec<Effect> = sample::until(&run, 1)
        .into_iter()
        .flat_map(|event| hear(&mut app, event))
        .collect();
    assert_eq!(swaps(&effects), vec![swap()]);
    hear(&mut app, kernel_used(Some("this run computes on the CPU")));
    assert!(matches!(&state(&app).in_model, InModel::Not(why) if why.contains("CPU")));
    // Leaving gives the model its own back.
    let effects = act(&mut app, Action::LeaveExercise);
    let back = KernelSwap {
        kernels: Vec::new(),
        ..swap()
    };
    assert_eq!(swaps(&effects), vec![back]);
}

#[test]
fn no_model_trains_beside_a_kernel_exercise_unless_its_kernel_computes_there() {
    for device in ["vulkan-cpu", "cpu"] {
        let kernels = course().exercises.into_iter();
        for exercise in kernels.filter(|exercise| exercise.kernels().is_some()) {
            let mut app = begin_on(device);
            let trains = |app: &App| app.bench.run.state.is_moving();
            assert!(trains(&app));
            open(&mut app, exercise.label());
            assert!(!trains(&app), "{}", exercise.id);
            let part = exercise
                .kernels()
                .and_then(|kernels| kernels.replaces.clone());
            let verdict = KernelVerdict {
                swap: part.clone().map(|_| swap()),
                ..passed()
            };
            let checks = [starter(), no_adapter(), nonsense()];
            for report in checks {
                about(&mut app, ExerciseNews::Begun);
                assert!(!trains(&app), "{}", exercise.id);
                about(&mut app, ExerciseNews::Checked(Box::new(report)));
                assert!(!trains(&app), "{}", exercise.id);
            }
            // Another run takes its place.
            act(&mut app, Action::Restart);
            train(&mut app, 3);
            assert!(!trains(&app), "{}", exercise.id);
            act(&mut app, Action::Pause);
            assert!(!trains(&app), "{}", exercise.id);
            // A kernel that is right computes where it replaces a part of a model on a device that runs WGSL.
            let effects = about(&mut app, ExerciseNews::Checked(Box::new(verdict)));
            let takes_over = part.is_some() && device != "cpu";
            assert_eq!(trains(&app), takes_over, "{}", exercise.id);
            assert_eq!(!swaps(&effects).is_empty(), takes_over, "{}", exercise.id);
            if part.is_some() && device == "cpu" {
                let in_model = &state(&app).in_model;
                let names_gpu = matches!(in_model, InModel::Not(why) if why.contains("GPU"));
                assert!(names_gpu, "{in_model:?}");
            }
            if let Some(part) = part.filter(|_| takes_over) {
                let why_not = Some("no such part".to_owned());
                let exercise = exercise.id.clone();
                hear(
                    &mut app,
                    Event::KernelUsed {
                        exercise,
                        part,
                        why_not,
                    },
                );
                assert!(!trains(&app));
            }
            act(&mut app, Action::LeaveExercise);
            assert!(trains(&app), "{}: goes on after it", exercise.id);
        }
    }
}

#[test]
fn a_kernel_is_timed_beside_the_last_one_that_passed() {
    let timed = |ms: f64| {
        let mut report = passed();
        let spread = Spread {
            median: ms,
            ..Spread::default()
        };
        let time = KernelTime {
            shape: "small".to_owned(),
            ms: spread,
            clock: "device".to_owned(),
            ..KernelTime::default()
        };
        report.facts.files = vec![KernelResult {
            name: "starter.wgsl".to_owned(),
            time: Some(time),
            ..KernelResult::default()
        }];
        report
    };
    let mut app = checked(timed(2.0));
    let card = |app: &App| {
        let report = state(app).report.clone().expect("checked");
        report
            .card
            .into_iter()
            .map(|line| line.text)
            .filter(|text| text.contains("last accepted"))
            .collect::<Vec<_>>()
    };
    assert_eq!(card(&app), Vec::<String>::new(), "there is none before it");
    for (ms, told) in [(1.0, ["2.00 ms", "1.00 ms"]), (4.0, ["1.00 ms", "4.00 ms"])] {
        about(&mut app, ExerciseNews::Checked(Box::new(timed(ms))));
        let lines = card(&app);
        assert!(
            lines.len() == 1 && told.iter().all(|time| lines[0].contains(time)),
            "{lines:?}"
        );
    }
}

#[test]
fn a_criterion_that_was_not_checked_is_not_shown_as_met() {
    let mut report = passed();
    let line = |name: &str, outcome| judge::CriterionResult {
        name: name.to_owned(),
        asked: String::new(),
        measured: "not timed: a CPU driver's time says nothing about a GPU".to_owned(),
        outcome,
        optional: false,
    };
    report.criteria = vec![
        line("right", Outcome::Passed),
        line("faster", Outcome::NotMeasured),
    ];
    let mut app = checked(report);
    let notice = app.view.notice.clone().expect("a notice").text;
    for part in ["1 of 2", "`faster`", "not timed"] {
        assert!(notice.contains(part), "{notice}");
    }
    let buffer = screen::screen(&mut app, 120, 36, ThemeName::Dark, Markers::Braille);
    assert!(text(&buffer).contains("── passed, not all was checked ──"));
}

#[test]
fn the_solution_needs_a_yes_before_the_exercise_is_passed_and_is_recorded() {
    let mut app = checked(starter());
    act(&mut app, Action::Solution);
    assert_eq!(app.view.confirm, Some(Confirm::ShowSolution));
    let effects = act(&mut app, Action::Yes);
    assert_eq!(app.view.overlay, Some(Overlay::Solution));
    assert!(
        matches!(&effects[..], [Effect::Save(ProgressChange::Stage(_, progress))] if progress.solution_shown)
    );
    let mut app = checked(passed());
    act(&mut app, Action::Solution);
    assert_eq!(
        (app.view.confirm, app.view.overlay),
        (None, Some(Overlay::Solution))
    );
}

#[test]
fn a_reset_needs_a_yes_and_forgets_progress_and_hints() {
    let mut app = checked(passed());
    act(&mut app, Action::Hint);
    act(&mut app, Action::Reset);
    assert_eq!(app.view.confirm, Some(Confirm::Reset));
    let effects = act(&mut app, Action::Yes);
    assert!(effects.iter().any(
        |effect| matches!(effect, Effect::ResetExercise { exercise, .. } if exercise == "swiglu")
    ));
    assert_eq!(
        app.lesson.learner.progress.stage("swiglu").state,
        StageState::New
    );
    assert_eq!(app.reading().hints().shown, 0);
}

#[test]
fn the_editor_opens_at_the_line_of_the_error() {
    let mut app = checked(nonsense());
    let effects = act(&mut app, Action::OpenEditor);
    assert_eq!(
        effects,
        vec![Effect::OpenEditor {
            stage: "swiglu".to_owned(),
            file: "backward.wgsl".to_owned(),
            line: Some(13),
        }]
    );
}

fn sends(effects: &[Effect], wanted: &Command) -> bool {
    effects
        .iter()
        .any(|effect| matches!(effect, Effect::Send(command) if command == wanted))
}

#[test]
fn control_characters_from_an_engine_become_dots() {
    let mut app = opened();
    let event = Event::KernelUsed {
        exercise: "swiglu\u{1b}[2J".to_owned(),
        part: "\u{202e}".to_owned(),
        why_not: Some("\u{1b}]0;x\u{7}".to_owned()),
    };
    hear(&mut app, event);
    let card = vec![line(Some(false), "\u{1b}[31mred \u{202e}and more")];
    about(
        &mut app,
        ExerciseNews::Checked(Box::new(report(false, card))),
    );
    let buffer = screen::screen(&mut app, 120, 36, ThemeName::Dark, Markers::Braille);
    assert!(
        text(&buffer).contains("·[31mred ·and more"),
        "{}",
        text(&buffer)
    );
}
