//! Gives the screen random input: no sequence of keys, clicks, events and sizes may make the state or the drawing panic.

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
enum RandomInput {
    /// The action of this row of the table of keys, if the key has this meaning now.
    Key(usize),
    /// The action of this row, even where no key gives it.
    Action(usize),
    /// A click at a column and a row, or a turn of the wheel where the last value is true.
    Click(u16, u16, bool),
    /// An event of the engine: its kind, the run that it is about, and the step.
    Event(u8, u8, u64),
    /// The engine ended.
    Gone,
    /// The engine stopped answering.
    Silent,
    /// The engine sent a line that is not an event.
    Nonsense(String),
    /// An exercise is chosen or there is news about one: the kind of news, and a number that chooses the exercise and the content.
    Exercise(u8, u8),
    /// Milliseconds pass.
    Tick(u64),
    Size(u16, u16),
}

/// Returns columns or rows up to `max`, often those at number the layout changes.
fn size(max: u16) -> impl Strategy<Value = u16> {
    let edges = [1, 2, 15, 16, 35, 36, 44, 45, 59, 60, 119, 120, 159, 160];
    prop_oneof![1..=max, proptest::sample::select(edges.as_slice().to_vec()),]
}

fn random_input() -> impl Strategy<Value = RandomInput> {
    prop_oneof![
        6 => (0..BINDINGS.len()).prop_map(RandomInput::Key),
        2 => (0..BINDINGS.len()).prop_map(RandomInput::Action),
        1 => (0..260_u16, 0..90_u16, any::<bool>()).prop_map(|(x, y, wheel)| RandomInput::Click(x, y, wheel)),
        8 => (0..16_u8, 0..4_u8, 0..200_u64).prop_map(|(kind, run, step)| RandomInput::Event(kind, run, step)),
        1 => Just(RandomInput::Gone),
        1 => Just(RandomInput::Silent),
        1 => ".{0,80}".prop_map(RandomInput::Nonsense),
        3 => (0..6_u8, any::<u8>()).prop_map(|(kind, number)| RandomInput::Exercise(kind, number)),
        1 => (0..100_000_u64).prop_map(RandomInput::Tick),
        2 => (size(250), size(80)).prop_map(|(width, height)| RandomInput::Size(width, height)),
    ]
}

/// Returns an event of the engine; `None` in the state that has an empty course.
fn event(app: &App, kind: u8, run: u8, step: u64) -> Option<Event> {
    let stages = &app.lesson.course.stages;
    let stage = &stages[usize::from(run / 2).checked_rem(stages.len())?];
    let variant = if run.is_multiple_of(2) {
        "broken"
    } else {
        "fixed"
    };
    // Most events are about the run that the app asked for, some about another one.
    let wanted = app.bench.run.wanted.clone();
    let run = match wanted {
        Some(wanted) if step > 20 => wanted,
        _ => session::spec(stage, variant),
    };
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

/// Returns the choice of an exercise, or news about one. `number` chooses the exercise and the content of the news.
fn exercise(app: &App, kind: u8, number: u8) -> Option<Message> {
    let index = usize::from(number).checked_rem(app.lesson.course.exercises.len())?;
    let id = app.lesson.course.exercises[index].id.clone();
    let news = match kind {
        0 => {
            let entry = app.lesson.course.stages.len() + index;
            return Some(Message::Action(Action::ChooseLine(entry)));
        }
        1 => {
            return Some(Message::Engine(FromEngine::Line(StreamLine {
                t: 0.0,
                event: Event::KernelUsed {
                    exercise: id,
                    part: "norm1".to_owned(),
                    why_not: number.is_multiple_of(2).then(|| "no".to_owned()),
                },
            })));
        }
        2 => ExerciseNews::Files(vec!["~/a.wgsl".to_owned(); usize::from(number % 3)]),
        3 => ExerciseNews::Begun,
        4 => ExerciseNews::Progress(Box::default()),
        5 => ExerciseNews::Answers {
            answer: match number % 3 {
                0 => AnswerFile::Unread,
                1 => AnswerFile::Open(vec!["answer.toml:1".to_owned()]),
                _ => AnswerFile::Given(vec![("batch".to_owned(), "8".to_owned())]),
            },
            saved: number.is_multiple_of(2),
        },
        6 => ExerciseNews::Measuring(Box::default()),
        7 => ExerciseNews::Measured(Box::new(Measurement {
            passed: number.is_multiple_of(2),
            failed: number.is_multiple_of(3).then(|| "no device".to_owned()),
            ..Measurement::default()
        })),
        _ => ExerciseNews::Checked(Box::new(KernelVerdict {
            passed: number.is_multiple_of(3),
            facts: KernelReport {
                failed: number.is_multiple_of(5).then(|| "no device".to_owned()),
                ..KernelReport::default()
            },
            swap: number.is_multiple_of(2).then(KernelSwap::default),
            card: vec![CardLine::default(); usize::from(number % 70)],
            ..KernelVerdict::default()
        })),
    };
    Some(Message::Exercise { exercise: id, news })
}

/// Returns the message of an input; `None` if the input means nothing now.
fn message(app: &App, input: RandomInput) -> Option<Message> {
    Some(match input {
        RandomInput::Key(row) => {
            let binding = BINDINGS.get(row)?;
            Message::Action(binding.applies(app).then_some(binding.action)?)
        }
        RandomInput::Action(row) => Message::Action(BINDINGS.get(row)?.action),
        RandomInput::Click(column, row, is_wheel) => {
            let kind = if is_wheel {
                MouseEventKind::ScrollDown
            } else {
                MouseEventKind::Down(MouseButton::Left)
            };
            let event = MouseEvent {
                kind,
                column,
                row,
                modifiers: KeyModifiers::NONE,
            };
            Message::Action(mouse::action(event, app)?)
        }
        RandomInput::Event(kind, run, step) => Message::Engine(FromEngine::Line(StreamLine {
            t: 0.0,
            event: event(app, kind, run, step)?,
        })),
        RandomInput::Gone => Message::Engine(FromEngine::Gone {
            reason: "ended".to_owned(),
        }),
        RandomInput::Silent => Message::Engine(FromEngine::Silent),
        RandomInput::Nonsense(line) => Message::Engine(FromEngine::Malformed {
            why: line.clone(),
            line,
        }),
        RandomInput::Exercise(kind, number) => exercise(app, kind, number)?,
        RandomInput::Tick(ms) => Message::Tick {
            now_ms: app.clock.now_ms + ms,
        },
        RandomInput::Size(width, height) => Message::Resized { width, height },
    })
}

/// Returns the states in number a sequence may begin: one with the exercises of the built-in course, and all that the snapshots show.
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
    screen::screen(app, width, height, app.view.theme, app.view.markers);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_input_panics(from in any::<prop::sample::Index>(), sequence in proptest::collection::vec(random_input(), 1..120)) {
        let mut app = from.get(states()).clone();
        for (index, input) in sequence.into_iter().enumerate() {
            let resizes = matches!(input, RandomInput::Size(..));
            if let Some(message) = message(&app, input) {
                update(&mut app, message);
            }
            if resizes || index % 8 == 0 {
                draw(&mut app);
            }
        }
    }
}
