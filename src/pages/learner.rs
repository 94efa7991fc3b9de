//! What a learner did, stage by stage: what was prediction_complete beside what was measured, their own configuration, the score. It
//! reads what was kept; nothing here measures.

use super::report::RunReport;
use super::sheet::{RangeScale, Sheet, SheetBlock, SheetTable};
use crate::course::check::Starter;
use crate::course::journey::LastJourney;
use crate::course::placeholder::{FigureSources, fill_known};
use crate::course::save_file::{Prediction, Progress, StageProgress, StageState};
use crate::course::{Course, Estimate, Exercise, Stage};
use crate::sanitize::one_line;
use protocol::config::{KNOBS, RunConfig};
use protocol::units::{bounds, number};

/// The learner's own configuration of a stage, where there is one.
pub type OwnConfig<'a> = &'a dyn Fn(&Stage) -> Option<RunConfig>;

/// What a learner did, with the last runs of each stage. What the runs of this session showed follows, where there is one.
pub fn sheet(
    course: &Course,
    progress: &Progress,
    mine: OwnConfig<'_>,
    journey: Option<&LastJourney>,
    kept: &RunReport,
    session: Option<&RunReport>,
) -> Sheet {
    let mut blocks = vec![SheetBlock::Title(course.title.clone())];
    if !kept.is_empty() {
        blocks.push(kept.origin());
    }
    blocks.extend(of_course(course, progress, mine, kept));
    blocks.extend(journey.map(of_journey).into_iter().flatten());
    blocks.extend(session.into_iter().flat_map(|it| it.blocks(false)));
    Sheet(blocks)
}

/// The score, each stage that was begun, exercises and mysteries.
fn of_course(
    course: &Course,
    progress: &Progress,
    mine: OwnConfig<'_>,
    kept: &RunReport,
) -> Vec<SheetBlock> {
    let passed = |id: &str| progress.stage(id).state == StageState::Passed;
    let stages = course.stages.iter().filter(|it| passed(&it.id)).count();
    let score = progress.calibration();
    let mut blocks = vec![
        SheetBlock::Heading("Score".to_owned()),
        SheetBlock::Intro(format!(
            "{stages} of {} stages passed. {}",
            course.stages.len(),
            score.said(None)
        )),
    ];
    for stage in &course.stages {
        let known = progress.stage(&stage.id);
        if known.state >= StageState::Predicted {
            blocks.extend(of_stage(stage, &known, mine, kept));
        }
    }
    blocks.extend(exercises(course, progress));
    if !progress.mysteries.is_empty() {
        blocks.push(SheetBlock::Heading("Mysteries".to_owned()));
        let table = SheetTable::filled(
            &progress.mysteries,
            &[
                ("seed-level", &|it| it.0.clone()),
                ("best score", &|it| it.1.best.to_string()),
            ],
        );
        blocks.push(SheetBlock::Table(table));
    }
    blocks
}

fn of_stage(
    stage: &Stage,
    known: &StageProgress,
    mine: OwnConfig<'_>,
    kept: &RunReport,
) -> Vec<SheetBlock> {
    let passed = known.state == StageState::Passed;
    let state = if passed { "passed" } else { "not passed yet" };
    let mut blocks = vec![SheetBlock::Heading(format!(
        "{} {}: {state}",
        stage.number, stage.title
    ))];
    let rows = figures(stage, known, passed);
    blocks.push(SheetBlock::Table(SheetTable::figures(["", ""], rows)));
    if let (Some(of), Some(range)) = (&stage.estimate, known.estimate) {
        blocks.push(SheetBlock::Scale(prediction_complete(
            of,
            range,
            known.measured,
        )));
    }
    if let Some([ratio, low, high]) = known.ratio {
        let (from, to) = (low.min(0.5) * 0.8, high.max(2.0) * 1.25);
        blocks.push(SheetBlock::Scale(RangeScale {
            said: {
                let [ratio, low, high] = [ratio, low, high].map(number);
                format!(
                    "A's time per token over yours, measured in pairs: {ratio}x, 95 % between {low} and {high}; at 1 both are equal"
                )
            },
            from,
            to,
            log: true,
            ranges: vec![(low, high)],
            mark: Some(ratio),
            even: Some(1.0),
        }));
    }
    blocks.extend(kept.of_stage(stage.number));
    let changes = mine(stage).map(|mine| differences(stage, &mine));
    if let Some(changes) = changes.filter(|it| !it.is_empty()) {
        blocks.push(SheetBlock::Table(SheetTable::filled(
            changes,
            &[
                ("knob", &|it| it[0].clone()),
                ("A, as found", &|it| it[1].clone()),
                ("B, yours", &|it| it[2].clone()),
            ],
        )));
    }
    // Before the stage is passed, the text would give it away.
    if passed {
        let measured = FigureSources {
            slots: kept.figures(stage.number),
            ..FigureSources::none(&stage.broken)
        };
        let texts = [
            ("The cause", &stage.fault),
            ("The course's fix", &stage.fix),
        ];
        let told = texts.into_iter().filter(|(_, text)| !text.is_empty());
        blocks.extend(told.map(|(name, text)| {
            let text = one_line(&fill_known(text, &measured));
            SheetBlock::Remark(format!("{name}: {text}"))
        }));
    }
    blocks
}

/// What was said and what was found.
fn figures(stage: &Stage, known: &StageProgress, passed: bool) -> Vec<(&'static str, String)> {
    let question = &stage.prediction;
    let choice = |at: usize| {
        // Without its letter: that is another one on each learner's screen.
        one_line(question.choices.get(at).map_or("", String::as_str))
    };
    let mut rows = vec![("the question", one_line(&question.prompt))];
    match known.prediction {
        Some(Prediction::Choice {
            choice: said,
            right,
        }) => {
            let word = match (passed, right) {
                (false, _) => "",
                (true, true) => " (right)",
                (true, false) => " (not right)",
            };
            rows.push(("you said", choice(said) + word));
            if passed && !right {
                rows.push(("the answer", choice(question.answer)));
            }
        }
        _ => rows.push(("you said", "nothing: it was skipped".to_owned())),
    }
    let key = stage.checks.iter().find(|it| it.starter == Starter::Fails);
    if let (Some(check), Some(found)) = (key, &known.found) {
        rows.push(("measured", format!("{}: {found}", check.name)));
    }
    if !known.answers.is_empty() {
        let answers = stage.quiz.iter().zip(&known.answers);
        let right = answers.filter(|(it, said)| it.answer == **said).count();
        let of = stage.quiz.len();
        rows.push((
            "questions",
            format!("{right} of {of} right at the first answer"),
        ));
    }
    if known.hints > 0 || known.solution_shown {
        let shown = if known.solution_shown {
            ", the solution was shown"
        } else {
            ""
        };
        rows.push(("help", format!("{} hints{shown}", known.hints)));
    }
    rows
}

fn prediction_complete(
    of: &Estimate,
    (low, high): (f64, f64),
    measured: Option<f64>,
) -> RangeScale {
    let unit = match of.unit.as_str() {
        "x" => "x".to_owned(),
        "" => String::new(),
        unit => format!(" {unit}"),
    };
    let [least, most] = bounds(low, high);
    let value = |it: f64| format!("{}{unit}", number(it));
    let found = match measured {
        Some(it) if (low..=high).contains(&it) => format!("measured {}: inside", value(it)),
        Some(it) => format!("measured {}: outside", value(it)),
        None => "not measured yet".to_owned(),
    };
    RangeScale {
        said: format!(
            "{} You said between {least}{unit} and {most}{unit}; {found}",
            one_line(&of.prompt)
        ),
        from: of.from,
        to: of.to,
        log: of.log,
        ranges: vec![(low, high)],
        mark: measured,
        even: None,
    }
}

/// The knobs at which the learner's configuration differs from the stage as found: path, value there, value here.
fn differences(stage: &Stage, mine: &RunConfig) -> Vec<[String; 3]> {
    let found = stage.broken_at(mine.preset);
    let values = KNOBS
        .iter()
        .map(|knob| [knob.path.to_owned(), (knob.get)(&found), (knob.get)(mine)]);
    values.filter(|[_, a, b]| a != b).collect()
}

/// Exercises that were begun, and what those measured that were passed.
fn exercises(course: &Course, progress: &Progress) -> Vec<SheetBlock> {
    let begun: Vec<(&Exercise, StageProgress)> = course
        .exercises
        .iter()
        .map(|it| (it, progress.stage(&it.id)))
        .filter(|(_, known)| known.state >= StageState::Predicted || known.found.is_some())
        .collect();
    if begun.is_empty() {
        return Vec::new();
    }
    let state = |known: &StageProgress| match known.state {
        StageState::Passed if known.solution_shown => "passed, the solution was shown",
        StageState::Passed => "passed",
        _ => "not passed yet",
    };
    let table = SheetTable::filled(
        &begun,
        &[
            ("exercise", &|(it, _)| {
                format!("{} {}", it.label(), it.title)
            }),
            ("", &|(_, known)| state(known).to_owned()),
            ("measured", &|(_, known)| {
                known.found.clone().unwrap_or_default()
            }),
        ],
    );
    vec![
        SheetBlock::Heading("Exercises".to_owned()),
        SheetBlock::Table(table),
    ]
}

/// The table of `perflings run all`.
fn of_journey(journey: &LastJourney) -> [SheetBlock; 3] {
    let (device, preset, date) = (&journey.device, &journey.preset, &journey.date);
    let rows = journey.rows.iter().map(|row| row.cells.clone()).collect();
    [
        SheetBlock::Heading("The whole journey".to_owned()),
        SheetBlock::Intro(format!("On {device}, at {preset}, {date}.")),
        SheetBlock::Table(SheetTable::printed(journey.head.clone(), rows)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::course::context::CourseContext;
    use crate::pages::html;

    /// Nothing is kept of the runs: every cause is told nevertheless, and no figure is invented.
    #[test]
    fn every_passed_stage_tells_its_cause() {
        let course = CourseContext::load(None).expect("the built-in one").course;
        let passed = StageProgress {
            state: StageState::Passed,
            ..StageProgress::default()
        };
        let stages = course.stages.iter();
        let progress = Progress {
            stages: stages
                .map(|stage| (stage.id.clone(), passed.clone()))
                .collect(),
            ..Progress::default()
        };
        let none = RunReport::default();
        let sheet = sheet(&course, &progress, &|_| None, None, &none, None);
        let causes = sheet.0.iter().filter_map(|block| match block {
            SheetBlock::Remark(text) => text.strip_prefix("The cause: "),
            _ => None,
        });
        let causes: Vec<&str> = causes.collect();
        assert_eq!(causes.len(), course.stages.len());
        for (cause, stage) in causes.iter().zip(&course.stages) {
            let whole = cause.split_whitespace().count() >= 12 && cause.ends_with('.');
            let open = ["{{", "not measured"].iter().any(|it| cause.contains(it));
            assert!(whole && !open, "{}: {cause}", stage.id);
        }
    }

    #[test]
    fn a_stage_tells_its_cause_once_it_is_passed() {
        let course = CourseContext::load(None).expect("the built-in one").course;
        let stage = &course.stages[0];
        let mut known = StageProgress {
            state: StageState::Predicted,
            prediction: Some(Prediction::Choice {
                choice: 0,
                right: false,
            }),
            estimate: Some((5.0, 9.0)),
            ..StageProgress::default()
        };
        let page = |known: &StageProgress| {
            let mut progress = Progress::default();
            progress.stages.insert(stage.id.clone(), known.clone());
            let mine = |stage: &Stage| Some(stage.fixed.clone());
            let sheet = sheet(&course, &progress, &mine, None, &RunReport::default(), None);
            [sheet.markdown(), html::page(&sheet)]
        };
        let answer = one_line(&stage.prediction.choices[stage.prediction.answer]);
        for text in page(&known) {
            assert!(text.contains("not passed yet") && text.contains("not measured yet"));
            for hidden in ["The cause", "not right", answer.as_str()] {
                assert!(!text.contains(hidden), "{hidden}: {text}");
            }
        }
        (known.state, known.measured) = (StageState::Passed, Some(6.93));
        known.ratio = Some([1.2, 1.1, 1.3]);
        for text in page(&known) {
            let wanted = [
                "1 of 9 stages",
                "measured 6.93 nats: inside",
                "The cause",
                "not right",
            ];
            for wanted in wanted
                .into_iter()
                .chain([answer.as_str(), "library-default"])
            {
                assert!(text.contains(wanted), "{wanted}: {text}");
            }
        }
    }
}
