//! The recorded run of a workgroup, its text, the card of lanes, and the card's keys. No terminal, engine or device is used.

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

/// Returns the check of an exercise's solution, in whose first file some texts are replaced.
fn job(label: &str, changes: &[(&str, &str)]) -> KernelJob {
    let course = Course::builtin();
    let mut all = course.exercises.iter();
    let exercise = all
        .find(|exercise| exercise.label() == label)
        .unwrap_or_else(|| panic!("no exercise {label}"));
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

/// Returns the lanes of RMSNorm's sum without the barrier between two rounds.
fn racy_lanes() -> KernelLanes {
    recorded("k02", &[("}\n        workgroupBarrier();", "}")])
}

/// Returns the first step of a line that contains this code.
fn step_of(run: &WorkgroupRun, code: &str) -> usize {
    let mut steps = run.steps.iter();
    let found = steps.position(|step| run.source(step.line).contains(code));
    found.unwrap_or_else(|| panic!("no step of `{code}`"))
}

#[test]
fn all_lanes_of_the_tiled_product_wait_at_its_barriers() {
    let run = run("k04", &[]);
    assert_eq!((run.faults.len(), run.cut), (0, false));
    assert_eq!((run.lanes(), run.groups > 1), (256, true));
    let load = step_of(&run, "from_b = b[");
    let [access] = run.steps[load].accesses.as_slice() else {
        panic!("{:?}", run.steps[load].accesses);
    };
    assert_eq!((access.variable.as_str(), access.bytes), ("b", 4));
    assert!(access.sentence().contains(" of b"), "{}", access.sentence());
    let barriers: Vec<_> = run
        .steps
        .iter()
        .filter(|step| step.barrier.is_some())
        .collect();
    assert!(barriers.len() >= 2);
    for step in barriers {
        assert_eq!((&step.barrier, step.lanes.len()), (&Some(Vec::new()), 256));
    }
    // Each of the sixteen products of a tile is a step.
    let products = run
        .steps
        .iter()
        .filter(|step| run.source(step.line).contains("sum += tile_a"))
        .count();
    assert!(products > 0 && products % 16 == 0, "{products}");
}

#[test]
fn lanes_that_skip_a_branch_wait_at_the_next_barrier() {
    let run = run("k02", &[]);
    assert!(run.faults.is_empty());
    let add = step_of(&run, "sums[lane] += sums[lane + half]");
    let (states, line) = run.states(add);
    let count = |wanted| states.iter().filter(|state| **state == wanted).count();
    assert_eq!((count(LaneState::Runs), count(LaneState::Waits)), (32, 32));
    let line = line.expect("a barrier");
    assert_eq!(run.source(line).trim(), "workgroupBarrier();");
    let sentences = run.sentences(add);
    assert_eq!(
        sentences[0],
        format!("lanes: 32 run this line, 32 wait at the barrier of line {line}")
    );
    assert_eq!(
        sentences[2],
        "32 lanes read 32 neighbours of sums, sums[32] to sums[63], in workgroup memory"
    );
}

#[test]
fn a_race_is_shown_as_the_two_accesses_that_make_it() {
    let run = racy_lanes().run;
    let fault = run.faults.first().expect("a race");
    let (step, other_lane) = fault.other.expect("the other access");
    let (variable, byte) = fault.place.clone().expect("its place");
    assert_eq!(variable, "sums");
    let touches = |step: usize, lane: u16| {
        let all = run.steps[step].accesses.iter();
        let mut touched = all
            .filter(|access| access.variable == variable)
            .flat_map(|access| &access.touched);
        touched.any(|touch| *touch == (lane, byte))
    };
    assert!(step <= fault.step && other_lane != fault.lanes[0]);
    assert!(touches(step, other_lane) && touches(fault.step, fault.lanes[0]));
    assert_eq!(fault.text.len(), 3, "{:?}", fault.text);
    let mut rows = run.steps[fault.step]
        .accesses
        .iter()
        .filter(|access| access.variable == "sums")
        .flat_map(|access| run.rows(fault.step, access));
    assert!(rows.any(|row| row.faulty_cell.is_some()));
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
fn the_copy_solution_touches_fewer_lines_of_memory_than_its_starter() {
    // Returns the sentence and the number of lines of each access in the copy's line.
    let accesses_of = |job: KernelJob| {
        let wanted = LanesWanted {
            shape: Some("two heads".to_owned()),
            ..LanesWanted::default()
        };
        let run = record(job, wanted).expect("is interpreted").run;
        let step = step_of(&run, "out[(h * T + t) * D + d] =");
        let accesses = run.steps[step].accesses.iter();
        let described = accesses.map(|access| (access.sentence(), access.lines()));
        described.collect::<Vec<_>>()
    };
    let mut starter = job("k03", &[]);
    starter.files[0].text = starter.files[0].starter.clone();
    let starter = accesses_of(starter);
    let solution = accesses_of(job("k03", &[]));
    assert!(
        solution.iter().all(|(_, lines)| *lines <= 4),
        "{solution:?}"
    );
    assert!(starter.iter().any(|(_, lines)| *lines > 16), "{starter:?}");
    assert!(
        starter
            .iter()
            .any(|(sentence, _)| sentence.contains("would suffice")),
        "{starter:?}"
    );
}

#[test]
fn a_run_without_end_is_cut_after_20_000_steps() {
    let run = run("k02", &[("half /= 2u", "half /= 1u")]);
    assert_eq!((run.cut, run.steps.len()), (true, 20_000));
    let mut texts = run.faults.iter().flat_map(|fault| &fault.text);
    assert!(
        texts.any(|line| line.contains("does not end")),
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
    // The rows of the second workgroup follow those of the first.
    let first_access = |run: &WorkgroupRun| {
        let step = step_of(run, "let value = x[");
        run.steps[step].accesses[0].touched[0]
    };
    assert!(first_access(&other).1 > first_access(&whole).1);
}

#[test]
fn a_file_that_does_not_compile_is_an_error_with_its_line() {
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
fn every_solution_can_be_recorded_and_listed() {
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
fn the_text_has_the_first_iteration_of_each_loop_and_the_races() {
    let lanes = recorded("k02", &[]);
    let right = listing(&lanes.title(), &lanes.run).join("\n");
    let add = "sums[lane] += sums[lane + half];";
    assert_eq!(right.matches(add).count(), 1, "{right}");
    for part in [
        "… 5 more iterations of lines",
        "32 lanes read 32 neighbours of sums",
        "nothing is wrong here",
    ] {
        assert!(right.contains(part), "{right}");
    }
    let racy = listing("racy", &racy_lanes().run).join("\n");
    assert_eq!(
        racy.matches("race over sums[").count(),
        racy.matches(": lane ").count() / 2
    );
    assert!(racy.contains("race over sums["), "{racy}");
}

/// Returns the screen with an open exercise whose last check failed at the shape "odd".
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

/// Returns the lanes that the screen asks for.
#[track_caller]
fn wanted(effects: &[Effect]) -> LanesWanted {
    let found = effects.iter().find_map(|effect| match effect {
        Effect::RecordLanes { wanted } => Some(wanted.clone()),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("{effects:?}"))
}

/// Returns the screen with the card of these lanes.
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
    let found = racy_lanes();
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
    // After a save, the open card shows the lanes of the new text.
    let report = ExerciseNews::Checked(Box::default());
    assert_eq!(wanted(&news(&mut app, report)), LanesWanted::default());
    press(&mut app, KeyCode::Esc);
    assert_eq!(app.view.overlay, None);
    let report = ExerciseNews::Checked(Box::default());
    assert!(news(&mut app, report).is_empty());
}

#[test]
fn in_the_card_and_before_it_no_key_means_two_things() {
    for app in [opened(), shown(racy_lanes())] {
        // Esc has several bindings: it closes whatever is on top.
        let keys = BINDINGS.iter().flat_map(|binding| binding.keys);
        for key in keys.filter(|key| **key != KeyCode::Esc) {
            let mut actions: Vec<Action> = BINDINGS
                .iter()
                .filter(|binding| binding.keys.contains(key) && binding.applies(&app))
                .map(|binding| binding.action)
                .collect();
            actions.dedup();
            assert!(actions.len() <= 1, "{key:?} means {actions:?}");
        }
    }
}

#[test]
fn the_card_shows_line_lanes_and_memory_at_every_size() {
    let right = recorded("k02", &[]);
    let racy = racy_lanes();
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
            for part in [
                &*format!("{pointer}{line:>4} "),
                runs,
                waits,
                "32 lanes read 32",
            ] {
                assert!(
                    drawn.contains(part),
                    "{part} at {width} × {height}\n{drawn}"
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
fn the_card_is_drawn_at_any_size_without_panic() {
    for mut app in [shown(racy_lanes()), shown(recorded("k04", &[])), opened()] {
        for (width, height) in [(1, 1), (10, 3), (60, 16), (79, 23), (300, 100)] {
            screen::screen(&mut app, width, height, ThemeName::Auto, Markers::Ascii);
        }
    }
}
