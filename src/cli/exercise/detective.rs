//! Exercises about a recorded run with a hidden fault. `perflings check d01` prints the question and the command that shows the run. With
//! an answer, it says if the answer is right, and why.

use std::path::Path;

use anyhow::Result;
use serde_json::json;

use super::{CheckRequest, CheckSession, Commands, Trials, trial};
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
    fn check(&self, request: CheckRequest<'_>) -> Result<Exit> {
        let CheckRequest { exercise, args, .. } = request;
        let (id, label, title) = (&exercise.id, exercise.label(), &exercise.title);
        let question = &self.question;
        let (truth, why) = (letter(question.answer), explanation(self));
        let chosen = choice(&args.answer)?;
        let known = progress_of(request.context).stage(id);
        let Some(choice) = chosen else {
            // An answer given on the screen, or here before, still counts.
            let passed = known.state == StageState::Passed;
            let mut told = json!({ "exercise": id, "passed": passed, "answered": passed });
            if passed {
                told["answer"] = json!(truth);
                told["right"] = json!(truth);
                told["why"] = json!(why);
            }
            let named = &question.choices[question.answer];
            out::json_or_text(args.json, &told, || {
                if passed {
                    format!("{label} {title}: passed, you named it: {truth} {named}")
                } else {
                    task(exercise, self)
                }
            })?;
            return Ok(Exit::passed_if(passed));
        };
        let right = choice == question.answer;
        // After the first wrong answer the right one is not revealed yet.
        let told = right || known.prediction.is_some();
        let passed = known.clone().record_answer(choice, right);
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
        change(request.context, id, |known| {
            known.record_answer(choice, right);
        });
        Ok(Exit::passed_if(passed && right))
    }

    /// Tries the recording: the hidden keys must differ from the preset, and the explanation must have all its figures.
    fn try_shipped(&self, exercise: &Exercise, _: &mut CheckSession<'_>) -> Trials {
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

/// Reads the letter of the flags `--answer` as the index of a choice. `None` without the flag.
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

/// Returns the explanation of the fault, with the figures of the recorded run.
fn explanation(detective: &Detective) -> String {
    let text = detective.question.explanation.trim();
    let Some(config) = detective.config() else {
        return text.to_owned();
    };
    let figures = FigureSources {
        slots: [detective.finished(), None],
        ..FigureSources::none(&config)
    };
    fill(text, &figures)
}

/// Refuses a name of the course in the place of a file. The message names the command that takes it, or the recorded runs of the course.
pub(crate) fn refuse_as_file(path: &Path, course: &CourseArgs) -> Result<()> {
    if files::is_taken(path) {
        return Ok(());
    }
    let name: &str = &path.to_string_lossy();
    let context = course.load()?;
    if let Some((what, instead)) = meaning(name, &context) {
        return Err(refused(name, what, "a file", &instead));
    }
    if !names_exercise(name) {
        return Ok(());
    }
    let exercises = context.course.exercises.iter();
    let recorded = exercises.filter(|exercise| exercise.detective().is_some());
    let labels: Vec<&str> = recorded.map(Exercise::label).collect();
    let known = match labels.join(", ") {
        none if none.is_empty() => "the course has none".to_owned(),
        all => format!("recorded runs are {all}"),
    };
    Err(usage(format!(
        "`{name}` is neither a file nor a recorded run; {known}"
    )))
}

/// Returns the question with its choices, and the commands that show the run and take an answer.
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
