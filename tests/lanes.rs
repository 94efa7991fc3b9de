//! Lanes: what is recorded of a workgroup, its text, the card, and the keys. No terminal, no engine, no device.

use std::sync::Arc;

use crate::{sample, screen, session};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use perflings::app::exercise::ExerciseNews;
use perflings::app::{Action, App, Effect, Markers, Message, Options, Overlay, ThemeName, update};
use perflings::course::Course;
use perflings::course::exercise::kernel::SEED;
use perflings::judge::kernel::KernelVerdict;
use perflings::lanes::{KernelLanes, LanesWanted};
use perflings::measure::lanes::begin;
use perflings::tui::keys::{BINDINGS, action};
use protocol::{KernelFault, KernelJob, KernelReport, KernelResult};
use wgsl_lockstep::lanes::{LaneState, WorkgroupRun, listing};

use screen::text;
use session::{act, open};

/// An exercise's first solution with some words changed.
fn job(label: &str, changes: &[(&str, &str)]) -> KernelJob {
    let course = Course::builtin();
    let mut all = course.exercises.iter();
    let exercise = all
        .find(|exercise| exercise.label() == label)
        .expect("the course has it");
    let kernels = exercise.kernels().expect("about kernels");
    let mut job = kernels.job(&exercise.id, SEED, |name| {
        let mut own = kernels.kernels.iter();
        let kernel = own
            .find(|kernel| kernel.file.name == name)
            .expect("its file");
        Ok(kernel.file.solution.clone())
    });
    for (from, to) in changes {
        assert!(job.files[0].text.contains(from), "{from}");
        job.files[0].text = job.files[0].text.replacen(from, to, 1);
    }
    job
}

fn record(job: KernelJob, wanted: LanesWanted) -> Result<KernelLanes, String> {
    begin(job, wanted)
        .expect("a thread")
        .wait()
        .expect("an answer")
}

fn recorded(label: &str, changes: &[(&str, &str)]) -> KernelLanes {
    record(job(label, changes), LanesWanted::default()).expect("is interpreted")
}

fn run(label: &str, changes: &[(&str, &str)]) -> WorkgroupRun {
    recorded(label, changes).run
}

/// RMSNorm's sum without the barrier between two rounds.
fn racy() -> KernelLanes {
    recorded("k02", &[("}\n        workgroupBarrier();", "}")])
}

/// The first step of a line that holds these words.
fn step_of(run: &WorkgroupRun, words: &str) -> usize {
    let mut steps = run.steps.iter();
    let found = steps.position(|step| run.source(step.line).contains(words));
    found.unwrap_or_else(|| panic!("no step of `{words}`"))
}

#[test]
fn the_tiled_product_loads_neighbours_and_all_wait() {
    let run = run("k04", &[]);
    assert_eq!((run.faults.len(), run.cut), (0, false));
    assert_eq!((run.lanes(), run.groups > 1), (256, true));
    let load = step_of(&run, "from_b = b[");
    let [access] = run.steps[load].accesses.as_slice() else {
        panic!("{:?}", run.steps[load].accesses);
    };
    assert_eq!((access.variable.as_str(), access.bytes), ("b", 4));
    assert!(access.sentence().contains(" of b"), "{}", access.sentence());
    let barriers = run.steps.iter().filter(|step| step.barrier.is_some());
    assert!(
        barriers
            .clone()
            .all(|step| step.barrier == Some(Vec::new()) && step.lanes.len() == 256)
    );
    assert!(barriers.count() >= 2);
    // Sixteen products a tile, each its own step.
    let tile = run.steps.iter();
    let products = tile
        .filter(|step| run.source(step.line).contains("sum += tile_a"))
        .count();
    assert!(products > 0 && products % 16 == 0, "{products}");
}

#[test]
fn lanes_that_skip_a_branch_are_seen_to_wait_at_its_barrier() {
    let run = run("k02", &[]);
    assert!(run.faults.is_empty());
    let add = step_of(&run, "sums[lane] += sums[lane + half]");
    let (states, line) = run.states(add);
    let count = |wanted| states.iter().filter(|state| **state == wanted).count();
    assert_eq!((count(LaneState::Runs), count(LaneState::Waits)), (32, 32));
    let line = line.expect("a barrier");
    assert_eq!(run.source(line).trim(), "workgroupBarrier();");
    let said = run.sentences(add);
    assert_eq!(
        said[0],
        format!("lanes: 32 run this line, 32 wait at the barrier of line {line}")
    );
    assert_eq!(
        said[2],
        "32 lanes read 32 neighbours of sums, sums[32] to sums[63], in workgroup memory"
    );
}

#[test]
fn a_race_is_shown_as_the_two_accesses_that_make_it() {
    let run = racy().run;
    let fault = run.faults.first().expect("a race");
    let (step, by) = fault.other.expect("the other access");
    let (variable, byte) = fault.place.clone().expect("its place");
    assert_eq!(variable, "sums");
    let touches = |step: usize, lane: u16| {
        let all = run.steps[step].accesses.iter();
        let mut touched = all
            .filter(|access| access.variable == variable)
            .flat_map(|access| &access.touched);
        touched.any(|touch| *touch == (lane, byte))
    };
    assert!(step <= fault.step && by != fault.lanes[0]);
    assert!(touches(step, by) && touches(fault.step, fault.lanes[0]));
    assert_eq!(fault.text.len(), 3, "{:?}", fault.text);
    let access = run.steps[fault.step].accesses.iter();
    let rows = access.filter(|access| access.variable == "sums");
    let mut rows = rows.flat_map(|access| run.rows(fault.step, access));
    assert!(rows.any(|row| row.fought.is_some()));
}

#[test]
fn lanes_that_never_come_to_a_barrier_are_named() {
    let change = (
        "    workgroupBarrier();\n    for (var half",
        "    if (lane < 60u) { workgroupBarrier(); }\n    for (var half",
    );
    let run = run("k02", &[change]);
    let fault = run.faults.first().expect("a barrier that not all reach");
    assert_eq!(fault.lanes, [60, 61, 62, 63]);
    assert!(
        fault.text[0].starts_with("lanes 60 to 63 never reach"),
        "{:?}",
        fault.text
    );
    let (states, _) = run.states(fault.step);
    assert_eq!(
        (states[59], states[60]),
        (LaneState::Waits, LaneState::Faulty)
    );
}

#[test]
fn lines_of_memory_are_counted() {
    let lines = |label: &str, starter: bool| {
        let mut job = job(label, &[]);
        if starter {
            job.files[0].text = job.files[0].starter.clone();
        }
        let wanted = LanesWanted {
            shape: Some("two heads".to_owned()),
            ..LanesWanted::default()
        };
        let run = record(job, wanted).expect("is interpreted").run;
        let step = step_of(&run, "out[(h * T + t) * D + d] =");
        let accesses = &run.steps[step].accesses;
        accesses
            .iter()
            .map(|access| (access.sentence(), access.lines()))
            .collect::<Vec<_>>()
    };
    let (starter, solution) = (lines("k03", true), lines("k03", false));
    assert!(
        solution.iter().all(|(_, lines)| *lines <= 4),
        "{solution:?}"
    );
    assert!(starter.iter().any(|(_, lines)| *lines > 16), "{starter:?}");
    assert!(
        starter
            .iter()
            .any(|(said, _)| said.contains("would suffice")),
        "{starter:?}"
    );
}

#[test]
fn a_run_without_end_is_cut() {
    let run = run("k02", &[("half /= 2u", "half /= 1u")]);
    assert_eq!((run.cut, run.steps.len()), (true, 20_000));
    let said = run.faults.iter().flat_map(|fault| &fault.text);
    assert!(
        said.clone().any(|line| line.contains("does not end")),
        "{:?}",
        run.faults
    );
}

#[test]
fn another_workgroup_is_recorded_alone() {
    let KernelLanes {
        run: whole, shape, ..
    } = recorded("k02", &[]);
    let wanted = LanesWanted {
        group: Some(1),
        shape: Some(shape),
        ..LanesWanted::default()
    };
    let other = record(job("k02", &[]), wanted);
    let other = other.expect("is interpreted").run;
    assert_eq!((other.group, other.groups), (1, whole.groups));
    assert_eq!(other.steps.len(), whole.steps.len());
    // Its rows lie behind those of the first.
    let first = |run: &WorkgroupRun| {
        let step = step_of(run, "let value = x[");
        run.steps[step].accesses[0].touched[0]
    };
    assert!(first(&other).1 > first(&whole).1);
}

#[test]
fn a_file_that_does_not_compile_says_so() {
    for (from, to) in [
        ("let row", "let let"),
        ("{{COLS}}", "{{COL}}"),
        ("sum += value", &*"(".repeat(5000)),
    ] {
        let found = record(job("k02", &[(from, to)]), LanesWanted::default());
        assert!(found.is_err_and(|why| why.starts_with("line ")), "{to}");
    }
}

#[test]
fn every_exercise_can_be_looked_at() {
    let course = Course::builtin();
    for exercise in course
        .exercises
        .iter()
        .filter(|exercise| exercise.kernels().is_some())
    {
        let run = run(exercise.label(), &[]);
        assert!(
            run.faults.is_empty() && !run.steps.is_empty(),
            "{}: {:?}",
            exercise.label(),
            run.faults
        );
        let lines = listing(exercise.label(), &run);
        assert!(lines.len() <= 301, "{}: {}", exercise.label(), lines.len());
    }
}

#[test]
fn the_text_has_the_first_round_of_each_loop_and_what_is_wrong() {
    let right = recorded("k02", &[]);
    let right = listing(&right.title(), &right.run).join("\n");
    let add = "sums[lane] += sums[lane + half];";
    assert_eq!(right.matches(add).count(), 1, "{right}");
    for said in [
        "… 5 more iterations of lines",
        "32 lanes read 32 neighbours of sums",
        "nothing is wrong here",
    ] {
        assert!(right.contains(said), "{right}");
    }
    let racy = listing("racy", &racy().run).join("\n");
    assert_eq!(
        racy.matches("race over sums[").count(),
        racy.matches(": lane ").count() / 2
    );
    assert!(racy.contains("race over sums["), "{racy}");
}

/// The exercise is open, and its last check failed as these threads show.
fn opened() -> App {
    let course = Course {
        exercises: Course::builtin().exercises,
        ..sample::course()
    };
    let (mut app, _) = session::begin(course, Options::default());
    open(&mut app, "k02");
    let fault = KernelFault {
        shape: "odd".to_owned(),
        ..KernelFault::default()
    };
    let report = KernelVerdict {
        facts: KernelReport {
            files: vec![KernelResult {
                fault: Some(fault),
                ..KernelResult::default()
            }],
            ..KernelReport::default()
        },
        ..KernelVerdict::default()
    };
    news(&mut app, ExerciseNews::Checked(Box::new(report)));
    app
}

fn news(app: &mut App, news: ExerciseNews) -> Vec<Effect> {
    let exercise = "rms-norm".to_owned();
    update(app, Message::Exercise { exercise, news })
}

fn press(app: &mut App, key: KeyCode) -> Vec<Effect> {
    let pressed = KeyEvent::new(key, KeyModifiers::NONE);
    let action = action(pressed, app).unwrap_or_else(|| panic!("{key:?} does nothing"));
    act(app, action)
}

fn wanted(effects: &[Effect]) -> LanesWanted {
    let mut all = effects.iter();
    let found = all.find_map(|effect| match effect {
        Effect::RecordLanes { wanted } => Some(wanted.clone()),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("{effects:?}"))
}

/// The card with threads that were recorded.
fn shown(found: KernelLanes) -> App {
    let mut app = opened();
    press(&mut app, KeyCode::Char('t'));
    news(&mut app, ExerciseNews::Lanes(Ok(Arc::new(found))));
    app
}

#[test]
fn the_card_opens_where_the_check_failed_and_keys_step_through_it() {
    let mut app = opened();
    let asked = wanted(&press(&mut app, KeyCode::Char('t')));
    assert_eq!(asked.shape.as_deref(), Some("odd"));
    assert_eq!(app.view.overlay, Some(Overlay::Lanes));
    let found = racy();
    let run = &found.run;
    let (fault, last) = (run.faults[0].clone(), run.steps.len() - 1);
    news(&mut app, ExerciseNews::Lanes(Ok(Arc::new(found.clone()))));
    assert_eq!(app.exercise.lanes.at, fault.step, "it opens at the fault");
    press(&mut app, KeyCode::Home);
    assert_eq!(app.exercise.lanes.at, 0);
    press(&mut app, KeyCode::Left);
    assert_eq!(app.exercise.lanes.at, 0);
    press(&mut app, KeyCode::Right);
    assert_eq!(app.exercise.lanes.at, 1);
    press(&mut app, KeyCode::Char('b'));
    assert!(run.steps[app.exercise.lanes.at].barrier.is_some());
    press(&mut app, KeyCode::Char('f'));
    assert_eq!(app.exercise.lanes.at, fault.step);
    press(&mut app, KeyCode::End);
    assert_eq!(app.exercise.lanes.at, last);
    let next = wanted(&press(&mut app, KeyCode::Char('w')));
    assert_eq!(next.group, Some((run.group + 1) % run.groups));
    news(&mut app, ExerciseNews::Lanes(Ok(Arc::new(found.clone()))));
    let next = wanted(&press(&mut app, KeyCode::Char('s')));
    assert_ne!(next.shape.as_ref(), Some(&found.shape));
    // A save under the open card shows the new text's threads.
    let report = ExerciseNews::Checked(Box::default());
    assert_eq!(wanted(&news(&mut app, report)), LanesWanted::default());
    press(&mut app, KeyCode::Esc);
    assert_eq!(app.view.overlay, None);
    let report = ExerciseNews::Checked(Box::default());
    assert!(news(&mut app, report).is_empty());
}

#[test]
fn in_the_card_and_before_it_no_key_means_two_things() {
    for app in [opened(), shown(racy())] {
        // Esc closes what lies on top, in the order of its rows.
        let keys = BINDINGS.iter().flat_map(|binding| binding.keys);
        for key in keys.filter(|key| **key != KeyCode::Esc) {
            let counts = BINDINGS.iter();
            let counts =
                counts.filter(|binding| binding.keys.contains(key) && binding.applies(&app));
            let mut actions: Vec<Action> = counts.map(|binding| binding.action).collect();
            actions.dedup();
            assert!(actions.len() <= 1, "{key:?} means {actions:?}");
        }
    }
}

#[test]
fn the_card_shows_line_lanes_and_memory_at_every_size() {
    let (right, racy) = (recorded("k02", &[]), racy());
    let add = step_of(&right.run, "sums[lane] += sums[lane + half]");
    let line = right.run.steps[add].line;
    let place = racy.run.faults[0].text[0].clone();
    for (width, height) in [(60, 16), (80, 24), (120, 36)] {
        for (markers, [pointer, runs, waits, bad]) in [
            (Markers::Braille, ["▸", "■■■■■■■■", "││││││││", "✗"]),
            (Markers::Ascii, [">", "########", "||||||||", "!"]),
        ] {
            let mut app = shown(right.clone());
            app.exercise.lanes.at = add;
            let buffer = screen::screen(&mut app, width, height, ThemeName::Mono, markers);
            let drawn = text(&buffer);
            for said in [
                &*format!("{pointer}{line:>4} "),
                runs,
                waits,
                "32 lanes read 32",
            ] {
                assert!(
                    drawn.contains(said),
                    "{said} at {width} × {height}\n{drawn}"
                );
            }
            let mut app = shown(racy.clone());
            let buffer = screen::screen(&mut app, width, height, ThemeName::Mono, markers);
            let drawn = text(&buffer);
            assert!(drawn.contains(&format!("{bad} {place}")), "{drawn}");
        }
    }
}

#[test]
fn no_size_panics() {
    for mut app in [shown(racy()), shown(recorded("k04", &[])), opened()] {
        for (width, height) in [(1, 1), (10, 3), (60, 16), (79, 23), (300, 100)] {
            screen::screen(&mut app, width, height, ThemeName::Auto, Markers::Ascii);
        }
    }
}
