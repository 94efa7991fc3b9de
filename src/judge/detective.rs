//! Checks that the declared answer of a detective exercise follows from its recording. Under `[[shows.a]]` to `[[shows.d]]` the author writes
//! the conditions that a recording meets if that choice is right; the recording must meet those of the answer, and no others.

use super::{CriterionResult, Outcome, stage};
use crate::course::config_file::FileError;
use crate::course::exercise::Detective;
use crate::course::save_file::letter;
use protocol::Finished;
use protocol::config::{Preset, RunConfig};

/// Returns the faults of the declared answer. `toml` is the name of the exercise's file in messages. `recorded` is the summary of the
/// recorded run; for a profile it has only lints.
pub fn problems(detective: &Detective, toml: &str, recorded: &Finished) -> Vec<FileError> {
    let mut problems = Vec::new();
    let mut report =
        |line: usize, message: String| problems.push(FileError::new(toml, line, message));
    let config = detective
        .config()
        .unwrap_or_else(|| RunConfig::preset(Preset::default()));
    let answer = detective.question.answer;
    // The letters of choices without conditions, and the choices whose conditions the recording meets.
    let mut without: Vec<String> = Vec::new();
    let mut shown = Vec::new();
    for (choice, checks) in detective.shows.iter().enumerate() {
        let mut outcome = Outcome::Passed;
        for check in checks {
            let result = stage::recorded(check, &config, recorded);
            outcome = outcome.max(result.outcome);
            if result.outcome == Outcome::NotMeasured {
                let message = "write a condition on a figure that the recording has";
                report(check.line, format!("{}; {message}", describe(&result)));
            } else if choice == answer && result.outcome == Outcome::Failed {
                let message = format!("`answer` is \"{}\": {}", letter(choice), describe(&result));
                report(detective.answer_line, message);
            }
        }
        if checks.is_empty() {
            without.push(letter(choice));
        } else if outcome == Outcome::Passed {
            shown.push(choice);
        }
    }
    if let Some(first) = without.first() {
        let message = format!(
            "no condition says what a recording shows if {} is right; \
             write a table `[[shows.{first}]]` with a metric and a condition",
            without.join(", ")
        );
        report(detective.answer_line, message);
    }
    let others: Vec<String> = shown
        .iter()
        .filter(|choice| **choice != answer)
        .map(|choice| letter(*choice))
        .collect();
    if let Some(first) = others.first() {
        let all = others.join(", ");
        let message = if shown.contains(&answer) {
            format!(
                "the recording shows {all} as well as the answer; \
                 write a condition under `[[shows.{first}]]` that it does not meet"
            )
        } else {
            format!("the recording shows {all}; write `answer = \"{first}\"`")
        };
        report(detective.answer_line, message);
    }
    problems
}

/// Returns a sentence with the demand of a criterion and the figure of the recording.
fn describe(result: &CriterionResult) -> String {
    let CriterionResult {
        name,
        asked,
        measured,
        ..
    } = result;
    format!("`{name}` asks for {asked}, and the recording gives {measured}")
}
