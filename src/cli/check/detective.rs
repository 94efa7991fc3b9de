//! `perflings check d01`: a recorded run with a hidden fault. Without an answer it prints the question and how to look at the run; with
//! one, whether it is right, and why.

use anyhow::Result;
use serde_json::json;

use crate::cli::args::CheckArgs;
use crate::cli::progress::{note_answer, progress_of};
use crate::course::context::CourseContext;
use crate::course::exercise::config::split;
use crate::course::exercise::{Detective, Exercise};
use crate::course::placeholder::{FigureSources, fill};
use crate::course::progress::StageState;
use crate::out::{self, Exit, notice, result, usage};

const LETTERS: [&str; 4] = ["a", "b", "c", "d"];

pub fn check(
    context: &CourseContext,
    exercise: &Exercise,
    detective: &Detective,
    args: &CheckArgs,
) -> Result<Exit> {
    let (id, label, title) = (&exercise.id, exercise.label(), &exercise.title);
    let Some(choice) = choice(&args.answer)? else {
        // An answer given on the screen, or here before, still counts.
        let passed = progress_of(context).stage(id).state == StageState::Passed;
        let right = LETTERS[detective.question.answer.min(3)];
        match (passed, args.json) {
            (true, true) => out::json(&json!({
                "exercise": id, "answered": true, "passed": true, "answer": right,
                "right": right, "why": explanation(detective),
            }))?,
            (true, false) => {
                let named = &detective.question.choices[detective.question.answer];
                result(&format!(
                    "{label} {title}: passed, you named it: {right} {named}"
                ))?;
            }
            (false, true) => {
                out::json(&json!({ "exercise": id, "passed": false, "answered": false }))?;
            }
            (false, false) => result(&asked(exercise, detective))?,
        }
        return Ok(if passed { Exit::Ok } else { Exit::Failed });
    };
    let question = &detective.question;
    let right = choice == question.answer;
    let known = progress_of(context).stage(&exercise.id);
    // After the first wrong answer the right one is not revealed yet.
    let told = right || known.prediction.is_some();
    let passed = known.clone().note_finding(choice, right);
    let truth = LETTERS[question.answer.min(3)];
    let why = explanation(detective);
    if args.json {
        out::json(&json!({
            "exercise": exercise.id, "answered": true, "passed": passed, "answer": LETTERS[choice],
            "right": told.then_some(truth), "why": told.then_some(why),
        }))?;
    } else {
        if known.state == StageState::New {
            notice(&format!(
                "you have not looked at this recording yet: `perflings {} {label}`, or {label} in the workshop's list",
                shows(detective)
            ));
        }
        let (verdict, mark) = match (passed, right) {
            (true, true) => ("passed", "pass"),
            (_, true) => ("seen, not passed: an earlier answer was wrong", "    "),
            (_, false) => ("not passed", "FAIL"),
        };
        let (given, answer) = (LETTERS[choice], &question.choices[question.answer]);
        let said = match (right, told) {
            (true, _) => format!("you said {truth}, which is right: {answer}\n\n{why}"),
            (false, true) => format!("you said {given}; the answer is {truth}: {answer}\n\n{why}"),
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
    note_answer(context, exercise, choice, right);
    Ok(if passed && right {
        Exit::Ok
    } else {
        Exit::Failed
    })
}

fn choice(given: &[String]) -> Result<Option<usize>> {
    let words: Vec<String> = given.iter().flat_map(|text| split(text)).collect();
    match words.as_slice() {
        [] => Ok(None),
        [word] => match LETTERS.iter().position(|letter| letter == word) {
            Some(choice) => Ok(Some(choice)),
            None => {
                let word = crate::clean::line(word);
                Err(usage(format!("--answer {word}: write a, b, c or d")))
            }
        },
        _ => Err(usage("--answer: one letter, a, b, c or d")),
    }
}

/// The explanation with the figures of the recorded run.
pub fn explanation(detective: &Detective) -> String {
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

/// The command that shows it.
fn shows(detective: &Detective) -> &'static str {
    match detective.profile {
        Some(_) => "open",
        None => "replay",
    }
}

fn asked(exercise: &Exercise, detective: &Detective) -> String {
    let mut lines = vec![
        format!("{} {}: not answered yet", exercise.label(), exercise.title),
        exercise.task.trim().to_owned(),
        format!("Recorded on {}.", detective.badge()),
        String::new(),
        detective.question.prompt.trim().to_owned(),
    ];
    for (letter, choice) in LETTERS.iter().zip(&detective.question.choices) {
        lines.push(format!("  {letter}  {choice}"));
    }
    lines.push(String::new());
    lines.push(format!(
        "Look at it with `perflings {1} {0}`; answer with `perflings check {0} --answer b`.",
        exercise.label(),
        shows(detective)
    ));
    lines.join("\n")
}
