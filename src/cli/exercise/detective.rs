//! A recorded run with a hidden fault. `perflings check d01`: without an answer it prints the question and how to look at the run; with
//! one, whether it is right, and why.

use std::path::Path;

use anyhow::Result;
use serde_json::json;

use super::{Asked, CheckSession, Commands, Tried, trial};
use crate::cli::args::CourseArgs;
use crate::cli::saved::{change, progress_of};
use crate::cli::variant::{meaning, refused};
use crate::course::exercise::config::split;
use crate::course::exercise::{Detective, Exercise, names_exercise};
use crate::course::placeholder::{FigureSources, NOT_MEASURED, fill};
use crate::course::save_file::{StageState, choice_of, letter};
use crate::files;
use crate::out::{self, Exit, notice, result, usage};

impl Commands for Detective {
    fn check(&self, (context, exercise, args): Asked<'_>) -> Result<Exit> {
        let (id, label, title) = (&exercise.id, exercise.label(), &exercise.title);
        let question = &self.question;
        let (truth, why) = (letter(question.answer), explanation(self));
        let chosen = choice(&args.answer)?;
        let known = progress_of(context).stage(id);
        let Some(choice) = chosen else {
            // An answer given on the screen, or here before, still counts.
            let passed = known.state == StageState::Passed;
            let mut told = json!({ "exercise": id, "passed": passed, "answered": passed });
            if passed {
                (told["answer"], told["right"]) = (json!(truth), json!(truth));
                told["why"] = json!(why);
            }
            let named = &question.choices[question.answer];
            out::json_or_text(args.json, &told, || match passed {
                true => format!("{label} {title}: passed, you named it: {truth} {named}"),
                false => task(exercise, self),
            })?;
            return Ok(Exit::passed_if(passed));
        };
        let right = choice == question.answer;
        // After the first wrong answer the right one is not revealed yet.
        let told = right || known.prediction.is_some();
        let passed = known.clone().note_finding(choice, right);
        if args.json {
            out::json(&json!({
                "exercise": exercise.id, "answered": true, "passed": passed, "answer": letter(choice),
                "right": told.then_some(truth), "why": told.then_some(why),
            }))?;
        } else {
            if known.state == StageState::New {
                notice(&format!(
                    "you have not looked at this recording yet: `perflings {} {label}`, or {label} in the workshop's list",
                    self.command()
                ));
            }
            let (verdict, mark) = match (passed, right) {
                (true, true) => ("passed", "pass"),
                (_, true) => ("seen, not passed: an earlier answer was wrong", "    "),
                (_, false) => ("not passed", "FAIL"),
            };
            let (given, answer) = (letter(choice), &question.choices[question.answer]);
            let said = match (right, told) {
                (true, _) => format!("you said {truth}, which is right: {answer}\n\n{why}"),
                (false, true) => {
                    format!("you said {given}; the answer is {truth}: {answer}\n\n{why}")
                }
                (false, false) => {
                    let hint = exercise.hints.first().map_or("", String::as_str);
                    format!("you said {given}, which is not right\n\nLook again: {hint}")
                }
            };
            let prompt = question.prompt.trim();
            result(&format!(
                "{label} {title}: {verdict}\n  {mark}  {prompt} {said}"
            ))?;
        }
        // The first answer stays. An answer does not count as a look at the recording.
        change(context, id, |known| {
            known.note_finding(choice, right);
        });
        Ok(Exit::passed_if(passed && right))
    }

    /// The recorded run shows its fault: the hidden keys differ from the preset, and the explanation has all its figures.
    fn try_out(&self, exercise: &Exercise, _: &mut CheckSession<'_>) -> Tried {
        let why = explanation(self);
        let missing = why.contains(NOT_MEASURED) || why.contains("{{");
        let problem = self.problem();
        let sound = problem.is_none() && !missing;
        let detail = match problem {
            Some(problem) => problem.to_string(),
            None if missing => format!("the explanation lacks a figure: {why}"),
            None => format!(
                "recorded on {}; the answer is {}",
                self.badge(),
                self.question.choices[self.question.answer]
            ),
        };
        let tried = trial(exercise, "answer", (Some(sound), detail));
        Ok(Some(vec![tried]))
    }
}

fn choice(given: &[String]) -> Result<Option<usize>> {
    let words: Vec<String> = given.iter().flat_map(|text| split(text)).collect();
    match words.as_slice() {
        [] => Ok(None),
        [word] => choice_of(word).map(Some).ok_or_else(|| {
            let word = crate::sanitize::line(word);
            usage(format!("--answer {word}: write a, b, c or d"))
        }),
        _ => Err(usage("--answer: one letter, a, b, c or d")),
    }
}

/// The explanation with the figures of the recorded run.
fn explanation(detective: &Detective) -> String {
    let text = detective.question.explanation.trim();
    let (finished, config) = (detective.finished(), detective.config());
    match &config {
        Some(config) => {
            let figures = FigureSources {
                slots: [finished, None],
                ..FigureSources::none(config)
            };
            fill(text, &figures)
        }
        None => text.to_owned(),
    }
}

/// Refuses a name of the course where a file is read: says which command takes it, or which recorded runs there are.
pub(crate) fn refuse_as_file(path: &Path, course: &CourseArgs) -> Result<()> {
    let Some(name) = path.to_str().filter(|_| !files::is_taken(path)) else {
        return Ok(());
    };
    let context = course.load()?;
    if let Some((what, instead)) = meaning(name, &context) {
        return Err(refused(name, what, "a file", &instead));
    }
    if !names_exercise(name) {
        return Ok(());
    }
    let exercises = context.course.exercises.iter();
    let recorded = exercises.filter(|it| it.detective().is_some());
    let labels: Vec<&str> = recorded.map(Exercise::label).collect();
    let known = match labels.join(", ") {
        none if none.is_empty() => "the course has none".to_owned(),
        all => format!("recorded runs are {all}"),
    };
    Err(usage(format!(
        "`{name}` is neither a file nor a recorded run; {known}"
    )))
}

fn task(exercise: &Exercise, detective: &Detective) -> String {
    let mut lines = vec![
        format!("{} {}: not answered yet", exercise.label(), exercise.title),
        exercise.task.trim().to_owned(),
        format!("Recorded on {}.", detective.badge()),
        String::new(),
        detective.question.prompt.trim().to_owned(),
    ];
    for (at, choice) in detective.question.choices.iter().enumerate() {
        lines.push(format!("  {}  {choice}", letter(at)));
    }
    lines.push(String::new());
    lines.push(format!(
        "Look at it with `perflings {1} {0}`; answer with `perflings check {0} --answer b`.",
        exercise.label(),
        detective.command()
    ));
    lines.join("\n")
}
