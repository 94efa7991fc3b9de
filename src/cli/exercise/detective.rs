//! Exercises about a recorded run with a hidden fault, or about a profile. `perflings check d01` prints the question and the command that
//! shows the recording; `perflings check d01 --answer b` judges the answer and explains it.

use std::path::Path;

use anyhow::Result;
use serde_json::json;

use super::{CheckRequest, CheckSession, Commands, Trials, trial};
use crate::cli::args::CourseArgs;
use crate::cli::saved::{change_progress, progress_of};
use crate::cli::variant::{meaning, refused};
use crate::course::exercise::config::split;
use crate::course::exercise::{Detective, Exercise, names_exercise};
use crate::course::placeholder::{FigureSources, NOT_MEASURED, fill};
use crate::course::save_file::{StageState, choice_of, letter};
use crate::files;
use crate::out::{self, Exit, notice, result, usage};

impl Commands for Detective {
    fn check(&self, request: CheckRequest<'_>) -> Result<Exit> {
        match choice(&request.args.answer)? {
            None => show_question(self, request),
            Some(choice) => judge_answer(self, request, choice),
        }
    }

    /// Tries the recording: the hidden keys must differ from the preset, and the explanation must have all its figures.
    fn try_shipped(&self, exercise: &Exercise, _: &mut CheckSession<'_>) -> Trials {
        let explanation = explanation(self);
        let lacks_figure = explanation.contains(NOT_MEASURED) || explanation.contains("{{");
        let problem = self.problem();
        let passed = problem.is_none() && !lacks_figure;
        let detail = match problem {
            Some(problem) => problem.to_string(),
            None if lacks_figure => format!("the explanation lacks a figure: {explanation}"),
            None => format!(
                "recorded on {}; the answer is {}",
                self.badge(),
                self.question.choices[self.question.answer]
            ),
        };
        let found = (Some(passed), detail);
        Ok(Some(vec![trial(exercise, "answer", found)]))
    }
}

/// Prints the question, or the right answer if the learner has given it before, here or on the screen.
fn show_question(detective: &Detective, request: CheckRequest<'_>) -> Result<Exit> {
    let CheckRequest { exercise, args, .. } = request;
    let question = &detective.question;
    let right = letter(question.answer);
    let progress = progress_of(request.context).stage(&exercise.id);
    let passed = progress.state == StageState::Passed;
    let mut object = json!({ "exercise": exercise.id, "passed": passed, "answered": passed });
    if passed {
        object["answer"] = json!(right);
        object["right"] = json!(right);
        object["why"] = json!(explanation(detective));
    }
    out::json_or_text(args.json, &object, || {
        if !passed {
            return task(exercise, detective);
        }
        let title = format!("{} {}", exercise.label(), exercise.title);
        let answer = &question.choices[question.answer];
        format!("{title}: passed, you named it: {right} {answer}")
    })?;
    Ok(Exit::passed_if(passed))
}

/// Prints the verdict on the learner's choice, and saves it.
fn judge_answer(detective: &Detective, request: CheckRequest<'_>, choice: usize) -> Result<Exit> {
    let CheckRequest { exercise, args, .. } = request;
    let id = &exercise.id;
    let label = exercise.label();
    let question = &detective.question;
    let right = letter(question.answer);
    let explanation = explanation(detective);
    let progress = progress_of(request.context).stage(id);
    let is_right = choice == question.answer;
    // The first wrong answer does not reveal the right one, so that the learner can look again.
    let reveals = is_right || progress.prediction.is_some();
    let passed = progress.clone().record_answer(choice, is_right);
    if args.json {
        out::json(&json!({
            "exercise": id, "answered": true, "passed": passed, "answer": letter(choice),
            "right": reveals.then_some(right), "why": reveals.then_some(explanation),
        }))?;
    } else {
        if progress.state == StageState::New {
            notice(&format!(
                "you have not looked at this recording yet: `perflings {} {label}`, \
                 or {label} in the workshop's list",
                detective.command()
            ));
        }
        let (verdict, mark) = if !is_right {
            ("not passed", "FAIL")
        } else if passed {
            ("passed", "pass")
        } else {
            ("seen, not passed: an earlier answer was wrong", "    ")
        };
        let answer = &question.choices[question.answer];
        let given = letter(choice);
        let comment = if is_right {
            format!("you said {right}, which is right: {answer}\n\n{explanation}")
        } else if reveals {
            format!("you said {given}; the answer is {right}: {answer}\n\n{explanation}")
        } else {
            let hint = exercise.hints.first().map_or("", String::as_str);
            format!("you said {given}, which is not right\n\nLook again: {hint}")
        };
        result(&format!(
            "{label} {}: {verdict}\n  {mark}  {} {comment}",
            exercise.title,
            question.prompt.trim()
        ))?;
    }
    // The first answer stays. An answer does not count as a look at the recording.
    change_progress(request.context, id, |progress| {
        progress.record_answer(choice, is_right);
    });
    Ok(Exit::passed_if(passed && is_right))
}

/// Reads the index of a choice from the values of `--answer`, which must be one letter; `None` without the flag.
fn choice(answers: &[String]) -> Result<Option<usize>> {
    let words: Vec<String> = answers.iter().flat_map(|text| split(text)).collect();
    match words.as_slice() {
        [] => Ok(None),
        [word] => choice_of(word).map(Some).ok_or_else(|| {
            usage(format!(
                "--answer {}: write a, b, c or d",
                crate::sanitize::line(word)
            ))
        }),
        _ => Err(usage("--answer: one letter, a, b, c or d")),
    }
}

/// Returns the explanation of the right answer, with the figures of the recorded run.
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

/// Refuses a name of the course where a file is wanted. The error names the command that takes this name, or the recorded runs of the
/// course. A text that does not look like a name of the course is accepted: reading it as a file fails with a better error.
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
    let labels: Vec<&str> = context
        .course
        .exercises
        .iter()
        .filter(|exercise| exercise.detective().is_some())
        .map(Exercise::label)
        .collect();
    let known = if labels.is_empty() {
        "the course has none".to_owned()
    } else {
        format!("recorded runs are {}", labels.join(", "))
    };
    Err(usage(format!(
        "`{name}` is neither a file nor a recorded run; {known}"
    )))
}

/// Returns the question with its choices, and the commands that show the recording and take an answer.
fn task(exercise: &Exercise, detective: &Detective) -> String {
    let mut lines = vec![
        format!("{} {}: not answered yet", exercise.label(), exercise.title),
        exercise.task.trim().to_owned(),
        format!("Recorded on {}.", detective.badge()),
        String::new(),
        detective.question.prompt.trim().to_owned(),
    ];
    for (index, choice) in detective.question.choices.iter().enumerate() {
        lines.push(format!("  {}  {choice}", letter(index)));
    }
    lines.push(String::new());
    lines.push(format!(
        "Look at it with `perflings {1} {0}`; answer with `perflings check {0} --answer b`.",
        exercise.label(),
        detective.command()
    ));
    lines.join("\n")
}
