//! Random input: no sequence of keys, clicks, events and sizes makes the state or the drawing panic.

use crate::{sample, screen, session};
use std::sync::OnceLock;

use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use perflings::app::exercise::ExerciseNews;
use perflings::app::exercise::measuring::{AnswerFile, Measurement};
use perflings::app::source::FromEngine;
use perflings::app::{Action, App, Message, Options, update};
use perflings::course::Course;
use perflings::course::save_file::Progress;
use perflings::judge::kernel::{CardLine, KernelVerdict};
use perflings::tui::keys::BINDINGS;
use perflings::tui::mouse;
use proptest::prelude::*;
use protocol::*;

/// One random input.
#[derive(Clone, Debug)]
enum Happens {
    /// A row of the table of keys, if it is active now.
    Key(usize),
    /// The same action even where no key offers it.
    Action(usize),
    Click(u16, u16, bool),
    Event(u8, u8, u64),
    Gone,
    Silent,
    Nonsense(String),
    /// An exercise is chosen, or something is heard about one.
    Exercise(u8, u8),
    Tick(u64),
    Size(u16, u16),
}

/// Columns or rows, often those at which the layout changes.
fn size(most: u16) -> impl Strategy<Value = u16> {
    let edges = [1, 2, 15, 16, 35, 36, 44, 45, 59, 60, 119, 120, 159, 160];
    prop_oneof![
        1..=most,
        proptest::sample::select(edges.as_slice().to_vec()),
    ]
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        6 => (0..BINDINGS.len()).prop_map(Happens::Key),
        2 => (0..BINDINGS.len()).prop_map(Happens::Action),
        1 => (0..260_u16, 0..90_u16, any::<bool>()).prop_map(|(x, y, wheel)| Happens::Click(x, y, wheel)),
        8 => (0..16_u8, 0..4_u8, 0..200_u64).prop_map(|(kind, run, step)| Happens::Event(kind, run, step)),
        1 => Just(Happens::Gone),
        1 => Just(Happens::Silent),
        1 => ".{0,80}".prop_map(Happens::Nonsense),
        3 => (0..6_u8, any::<u8>()).prop_map(|(kind, which)| Happens::Exercise(kind, which)),
        1 => (0..100_000_u64).prop_map(Happens::Tick),
        2 => (size(250), size(80)).prop_map(|(width, height)| Happens::Size(width, height)),
    ]
}

fn event(app: &App, kind: u8, run: u8, step: u64) -> Option<Event> {
    // One of the states has an empty course.
    let stages = &app.lesson.course.stages;
    let stage = &stages[usize::from(run / 2).checked_rem(stages.len())?];
    let variant = if run.is_multiple_of(2) {
        "broken"
    } else {
        "fixed"
    };
    // Mostly the run that the app asked for, sometimes another one.
    let run = app
        .bench
        .run
        .wanted
        .clone()
        .filter(|_| step > 20)
        .unwrap_or_else(|| session::spec(stage, variant));
    let slot = run.slot;
    Some(match kind {
        0 => sample::started(&run, step / 50),
        1..=4 => sample::step(&run, step),
        5 => sample::throughput(&run, step),
        6 => sample::kernels(&run, step),
        7 => sample::gradients(&run, step, step.is_multiple_of(2)),
        8 => sample::evidence(&run, step),
        9 => sample::lints(&run),
        10 => sample::pair(step as u32 % 31, step % 31 == 30),
        11 => Event::Paused { slot },
        12 => Event::Resumed { slot },
        13 => Event::Finished(Box::new(Finished {
            slot,
            steps: step,
            ..Finished::default()
        })),
        14 => Event::Failed(Failed {
            kind: FailedKind::Internal,
            reason: "no".to_owned(),
            request: 0,
        }),
        _ => Event::Compiling {
            kernels: step as u32,
            latest: "matmul".to_owned(),
        },
    })
}

fn exercise(app: &App, kind: u8, which: u8) -> Option<Message> {
    let at = usize::from(which).checked_rem(app.lesson.course.exercises.len())?;
    let id = app.lesson.course.exercises[at].id.clone();
    let news = match kind {
        0 => {
            let entry = app.lesson.course.stages.len() + at;
            return Some(Message::Action(Action::ChooseLine(entry)));
        }
        1 => {
            return Some(Message::Engine(FromEngine::Line(StreamLine {
                t: 0.0,
                event: Event::KernelUsed {
                    exercise: id,
                    part: "norm1".to_owned(),
                    why_not: which.is_multiple_of(2).then(|| "no".to_owned()),
                },
            })));
        }
        2 => ExerciseNews::Files(vec!["~/a.wgsl".to_owned(); usize::from(which % 3)]),
        3 => ExerciseNews::Begun,
        4 => ExerciseNews::Progress(Box::default()),
        5 => ExerciseNews::Answers {
            answer: match which % 3 {
                0 => AnswerFile::Unread,
                1 => AnswerFile::Open(vec!["answer.toml:1".to_owned()]),
                _ => AnswerFile::Given(vec![("batch".to_owned(), "8".to_owned())]),
            },
            saved: which.is_multiple_of(2),
        },
        6 => ExerciseNews::Measuring(Box::default()),
        7 => ExerciseNews::Measured(Box::new(Measurement {
            passed: which.is_multiple_of(2),
            failed: which.is_multiple_of(3).then(|| "no device".to_owned()),
            ..Measurement::default()
        })),
        _ => ExerciseNews::Checked(Box::new(KernelVerdict {
            passed: which.is_multiple_of(3),
            facts: KernelReport {
                failed: which.is_multiple_of(5).then(|| "no device".to_owned()),
                ..KernelReport::default()
            },
            swap: which.is_multiple_of(2).then(KernelSwap::default),
            card: vec![CardLine::default(); usize::from(which % 70)],
            ..KernelVerdict::default()
        })),
    };
    Some(Message::Exercise { exercise: id, news })
}

fn message(app: &App, happens: Happens) -> Option<Message> {
    Some(match happens {
        Happens::Key(at) => Message::Action(
            BINDINGS
                .get(at)
                .filter(|binding| binding.applies(app))?
                .action,
        ),
        Happens::Action(at) => Message::Action(BINDINGS.get(at)?.action),
        Happens::Click(column, row, wheel) => {
            let kind = if wheel {
                MouseEventKind::ScrollDown
            } else {
                MouseEventKind::Down(MouseButton::Left)
            };
            let modifiers = KeyModifiers::NONE;
            Message::Action(mouse::action(
                MouseEvent {
                    kind,
                    column,
                    row,
                    modifiers,
                },
                app,
            )?)
        }
        Happens::Event(kind, run, step) => Message::Engine(FromEngine::Line(StreamLine {
            t: 0.0,
            event: event(app, kind, run, step)?,
        })),
        Happens::Gone => Message::Engine(FromEngine::Gone {
            reason: "ended".to_owned(),
        }),
        Happens::Silent => Message::Engine(FromEngine::Silent),
        Happens::Nonsense(line) => Message::Engine(FromEngine::Malformed {
            why: line.clone(),
            line,
        }),
        Happens::Exercise(kind, which) => exercise(app, kind, which)?,
        Happens::Tick(ms) => Message::Tick {
            now_ms: app.clock.now_ms + ms,
        },
        Happens::Size(width, height) => Message::Resized { width, height },
    })
}

/// Where a sequence begins: with the exercises of the built-in course, or in one of the states that the snapshots show.
fn states() -> &'static [App] {
    static ALL: OnceLock<Vec<App>> = OnceLock::new();
    ALL.get_or_init(|| {
        let exercises = Course::builtin().exercises;
        let course = Course {
            exercises,
            ..sample::course()
        };
        let (app, _) = App::new(course, Progress::default(), Options::default());
        let mut all = vec![app];
        all.extend(crate::screens::all_states());
        all.extend(crate::exercises::states().into_iter().map(|(_, app)| app));
        all
    })
}

fn draw(app: &mut App) {
    let (width, height) = app.view.size;
    let (theme, markers) = (app.view.theme, app.view.markers);
    screen::screen(app, width, height, theme, markers);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_input_panics(from in any::<prop::sample::Index>(), sequence in proptest::collection::vec(happens(), 1..120)) {
        let mut app = from.get(states()).clone();
        for (at, one) in sequence.into_iter().enumerate() {
            let resized = matches!(one, Happens::Size(..));
            if let Some(message) = message(&app, one) {
                update(&mut app, message);
            }
            if resized || at % 8 == 0 {
                draw(&mut app);
            }
        }
    }
}
