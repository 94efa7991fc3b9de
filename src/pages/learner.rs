//! Writes a page about a learner's work, stage by stage: predictions and measurements, the learner's own configuration, the score. It reads
//! saved files; nothing here measures.

use super::report::RunReport;
use super::sheet::{RangeScale, Sheet, SheetBlock, SheetTable};
use crate::course::check::{Check, Starter};
use crate::course::journey::LastJourney;
use crate::course::placeholder::{FigureSources, fill_known};
use crate::course::save_file::{Prediction, Progress, StageProgress, StageState};
use crate::course::{Course, Estimate, Exercise, Stage};
use crate::sanitize::one_line;
use crate::scale::Scale;
use protocol::config::{KNOBS, RunConfig};
use protocol::units::{bounds, number};

/// A function that returns the learner's own configuration of a stage; `None` if the learner has none.
pub type OwnConfig<'a> = &'a dyn Fn(&Stage) -> Option<RunConfig>;

/// Returns the page about a learner. `kept` has the last runs of each stage. The runs of the current session follow, if there is one.
pub fn sheet(
    course: &Course,
    progress: &Progress,
    own_config: OwnConfig<'_>,
    journey: Option<&LastJourney>,
    kept: &RunReport,
    session: Option<&RunReport>,
) -> Sheet {
    let mut blocks = vec![SheetBlock::Title(course.title.clone())];
    if !kept.is_empty() {
        blocks.push(kept.origin());
    }
    blocks.extend(course_blocks(course, progress, own_config, kept));
    blocks.extend(journey.map(journey_blocks).into_iter().flatten());
    if let Some(session) = session {
        blocks.extend(session.blocks(false));
    }
    Sheet(blocks)
}

/// Returns the score, each stage that was begun, the exercises and the mysteries.
fn course_blocks(
    course: &Course,
    progress: &Progress,
    own_config: OwnConfig<'_>,
    kept: &RunReport,
) -> Vec<SheetBlock> {
    let is_passed = |stage: &&Stage| progress.stage(&stage.id).state == StageState::Passed;
    let passed = course.stages.iter().filter(is_passed).count();
    let score = progress.calibration();
    let mut blocks = vec![
        SheetBlock::Heading("Score".to_owned()),
        SheetBlock::Intro(format!(
            "{passed} of {} stages passed. {}",
            course.stages.len(),
            score.sentence(None)
        )),
    ];
    for stage in &course.stages {
        let work = progress.stage(&stage.id);
        if work.state >= StageState::Predicted {
            blocks.extend(stage_blocks(stage, &work, own_config, kept));
        }
    }
    blocks.extend(exercise_blocks(course, progress));
    if !progress.mysteries.is_empty() {
        blocks.push(SheetBlock::Heading("Mysteries".to_owned()));
        let table = SheetTable::filled(
            &progress.mysteries,
            &[
                ("seed-level", &|(name, _)| (*name).clone()),
                ("best score", &|(_, score)| score.best.to_string()),
            ],
        );
        blocks.push(SheetBlock::Table(table));
    }
    blocks
}

fn stage_blocks(
    stage: &Stage,
    work: &StageProgress,
    own_config: OwnConfig<'_>,
    kept: &RunReport,
) -> Vec<SheetBlock> {
    let passed = work.state == StageState::Passed;
    let state = if passed { "passed" } else { "not passed yet" };
    let mut blocks = vec![SheetBlock::Heading(format!(
        "{} {}: {state}",
        stage.number, stage.title
    ))];
    let rows = figures(stage, work, passed);
    blocks.push(SheetBlock::Table(SheetTable::figures(["", ""], rows)));
    if let (Some(estimate), Some(range)) = (&stage.estimate, work.estimate) {
        let scale = scale_of_estimate(estimate, range, work.measured);
        blocks.push(SheetBlock::Scale(scale));
    }
    if let Some([ratio, low, high]) = work.ratio {
        blocks.push(SheetBlock::Scale(RangeScale {
            caption: format!(
                "A's time per token over yours, measured in pairs: {}x, 95 % between {} and {}; \
                 at 1 both are equal",
                number(ratio),
                number(low),
                number(high)
            ),
            scale: Scale {
                low: low.min(0.5) * 0.8,
                high: high.max(2.0) * 1.25,
                log: true,
            },
            ranges: vec![[low, high]],
            mark: Some(ratio),
            even: Some(1.0),
        }));
    }
    blocks.extend(kept.curves_of_stage(stage.number));
    let changes = own_config(stage).map_or_else(Vec::new, |config| differences(stage, &config));
    if !changes.is_empty() {
        blocks.push(SheetBlock::Table(SheetTable::filled(
            changes,
            &[
                ("knob", &|[path, _, _]| path.clone()),
                ("A, as found", &|[_, found, _]| found.clone()),
                ("B, yours", &|[_, _, mine]| mine.clone()),
            ],
        )));
    }
    // Before the stage is passed, these texts would give the answer away.
    if passed {
        let measured = FigureSources {
            slots: kept.figures(stage.number),
            ..FigureSources::none(&stage.broken)
        };
        for (name, text) in [
            ("The cause", &stage.fault),
            ("The course's fix", &stage.fix),
        ] {
            if !text.is_empty() {
                let filled = one_line(&fill_known(text, &measured));
                blocks.push(SheetBlock::Remark(format!("{name}: {filled}")));
            }
        }
    }
    blocks
}

/// Returns the learner's answers and the measurements as rows of a name and a text.
fn figures(stage: &Stage, work: &StageProgress, passed: bool) -> Vec<(&'static str, String)> {
    let question = &stage.prediction;
    // The letter is left out, because each learner's screen shows the choices in another order.
    let choice = |index: usize| one_line(question.choices.get(index).map_or("", |text| text));
    let mut rows = vec![("the question", one_line(&question.prompt))];
    match work.prediction {
        Some(Prediction::Choice {
            choice: given,
            right,
        }) => {
            let said = choice(given);
            if !passed {
                rows.push(("you said", said));
            } else if right {
                rows.push(("you said", said + " (right)"));
            } else {
                rows.push(("you said", said + " (not right)"));
                rows.push(("the answer", choice(question.answer)));
            }
        }
        _ => rows.push(("you said", "nothing: it was skipped".to_owned())),
    }
    let fails = |check: &&Check| check.starter == Starter::Fails;
    if let (Some(check), Some(found)) = (stage.checks.iter().find(fails), &work.found) {
        rows.push(("measured", format!("{}: {found}", check.name)));
    }
    if !work.answers.is_empty() {
        let right = stage
            .quiz
            .iter()
            .zip(&work.answers)
            .filter(|(question, answer)| question.answer == **answer)
            .count();
        let all = stage.quiz.len();
        rows.push((
            "questions",
            format!("{right} of {all} right at the first answer"),
        ));
    }
    if work.hints > 0 || work.solution_shown {
        let shown = if work.solution_shown {
            ", the solution was shown"
        } else {
            ""
        };
        rows.push(("help", format!("{} hints{shown}", work.hints)));
    }
    rows
}

/// Returns the scale of an estimate with the learner's range and the measured figure.
fn scale_of_estimate(
    estimate: &Estimate,
    (low, high): (f64, f64),
    measured: Option<f64>,
) -> RangeScale {
    let unit = match estimate.unit.as_str() {
        "x" => "x".to_owned(),
        "" => String::new(),
        unit => format!(" {unit}"),
    };
    let found = match measured {
        Some(figure) => {
            let is_inside = (low..=high).contains(&figure);
            let place = if is_inside { "inside" } else { "outside" };
            format!("measured {}{unit}: {place}", number(figure))
        }
        None => "not measured yet".to_owned(),
    };
    let [low_text, high_text] = bounds(low, high);
    RangeScale {
        caption: format!(
            "{} You said between {low_text}{unit} and {high_text}{unit}; {found}",
            one_line(&estimate.prompt)
        ),
        scale: estimate.scale(),
        ranges: vec![[low, high]],
        mark: measured,
        even: None,
    }
}

/// Returns the knobs in which the learner's configuration differs from the stage as found: the knob's path, the value as found, and the
/// learner's value.
fn differences(stage: &Stage, own: &RunConfig) -> Vec<[String; 3]> {
    let found = stage.broken_at(own.preset);
    KNOBS
        .iter()
        .map(|knob| [knob.path.to_owned(), (knob.get)(&found), (knob.get)(own)])
        .filter(|[_, found, own]| found != own)
        .collect()
}

/// Returns the exercises that were begun, each with its result.
fn exercise_blocks(course: &Course, progress: &Progress) -> Vec<SheetBlock> {
    let begun: Vec<(&Exercise, StageProgress)> = course
        .exercises
        .iter()
        .map(|exercise| (exercise, progress.stage(&exercise.id)))
        .filter(|(_, work)| work.state >= StageState::Predicted || work.found.is_some())
        .collect();
    if begun.is_empty() {
        return Vec::new();
    }
    let state = |work: &StageProgress| match work.state {
        StageState::Passed if work.solution_shown => "passed, the solution was shown",
        StageState::Passed => "passed",
        _ => "not passed yet",
    };
    let table = SheetTable::filled(
        &begun,
        &[
            ("exercise", &|(exercise, _)| {
                format!("{} {}", exercise.label(), exercise.title)
            }),
            ("", &|(_, work)| state(work).to_owned()),
            ("measured", &|(_, work)| {
                work.found.clone().unwrap_or_default()
            }),
        ],
    );
    vec![
        SheetBlock::Heading("Exercises".to_owned()),
        SheetBlock::Table(table),
    ]
}

/// Returns the table of `perflings run all`.
fn journey_blocks(journey: &LastJourney) -> [SheetBlock; 3] {
    let place = format!("On {}, at {}", journey.device, journey.preset);
    let head = journey.head.clone();
    let rows = journey.rows.iter().map(|row| row.cells.clone()).collect();
    [
        SheetBlock::Heading("The whole journey".to_owned()),
        SheetBlock::Intro(format!("{place}, {}.", journey.date)),
        SheetBlock::Table(SheetTable { head, rows }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::course::context::CourseContext;
    use crate::pages::html;

    #[test]
    fn every_passed_stage_shows_its_whole_cause_without_invented_figures_where_no_run_is_saved() {
        let course = CourseContext::load(None).expect("the built-in one").course;
        let passed = StageProgress {
            state: StageState::Passed,
            ..StageProgress::default()
        };
        let progress = Progress {
            stages: course
                .stages
                .iter()
                .map(|stage| (stage.id.clone(), passed.clone()))
                .collect(),
            ..Progress::default()
        };
        let no_runs = RunReport::default();
        let sheet = sheet(&course, &progress, &|_| None, None, &no_runs, None);
        let mut causes: Vec<&str> = Vec::new();
        for block in &sheet.0 {
            if let SheetBlock::Remark(text) = block {
                causes.extend(text.strip_prefix("The cause: "));
            }
        }
        assert_eq!(causes.len(), course.stages.len());
        for (cause, stage) in causes.iter().zip(&course.stages) {
            let is_whole = cause.split_whitespace().count() >= 12 && cause.ends_with('.');
            let is_filled = !cause.contains("{{") && !cause.contains("not measured");
            assert!(is_whole && is_filled, "{}: {cause}", stage.id);
        }
    }

    #[test]
    fn a_stage_shows_its_cause_and_its_answer_once_it_is_passed() {
        let course = CourseContext::load(None).expect("the built-in one").course;
        let stage = &course.stages[0];
        let mut work = StageProgress {
            state: StageState::Predicted,
            prediction: Some(Prediction::Choice {
                choice: 0,
                right: false,
            }),
            estimate: Some((5.0, 9.0)),
            ..StageProgress::default()
        };
        let pages = |work: &StageProgress| {
            let mut progress = Progress::default();
            progress.stages.insert(stage.id.clone(), work.clone());
            let solution = |stage: &Stage| Some(stage.fixed.clone());
            let no_runs = RunReport::default();
            let sheet = sheet(&course, &progress, &solution, None, &no_runs, None);
            [sheet.markdown(), html::page(&sheet)]
        };
        let answer = one_line(&stage.prediction.choices[stage.prediction.answer]);
        for text in pages(&work) {
            assert!(text.contains("not passed yet") && text.contains("not measured yet"));
            for hidden in ["The cause", "not right", answer.as_str()] {
                assert!(!text.contains(hidden), "{hidden}: {text}");
            }
        }
        work.state = StageState::Passed;
        work.measured = Some(6.93);
        work.ratio = Some([1.2, 1.1, 1.3]);
        for text in pages(&work) {
            for wanted in [
                "1 of 9 stages",
                "measured 6.93 nats: inside",
                "The cause",
                "not right",
                answer.as_str(),
                "library-default",
            ] {
                assert!(text.contains(wanted), "{wanted}: {text}");
            }
        }
    }
}
