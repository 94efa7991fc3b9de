//! `perflings course check --mutants N`: measures how good the checks of the kernel exercises are. It changes the solutions into N wrong
//! kernels and some right variants, and checks them like a learner's kernels, but without timing. Wrong kernels should be refused, and
//! right variants should pass. A wrong kernel that passes is compared with its solution at many sizes; if both compute equal numbers, the
//! kernel is not wrong after all and is not counted.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::Serialize;

use crate::cli::args::exercises::CourseCheckArgs;
use crate::cli::exercise::kernels::{Text, check as check_kernel, job};
use crate::cli::meter::ProgressMeter;
use crate::course::context::CourseContext;
use crate::course::exercise::{Exercise, Kernels, WrongSolution};
use crate::judge::course::CourseTrial;
use crate::measure::equal::equal;
use crate::measure::kernel_checker::Checker;
use crate::out::{self, Exit, result};
use protocol::{KernelJob, KernelShape, template};
use wgsl_lockstep::Shader;
use wgsl_lockstep::mutants::{Mutant, first_change, make};

/// The percentage of the wrong kernels that may pass.
const MAY_PASS_PCT: f64 = 2.0;
/// The number of right variants that are made for ten wrong kernels.
const RIGHT_FOR_TEN: usize = 3;
/// The number of seeds from which sizes are drawn to compare a kernel that passes with its solution.
const DRAWN_SEEDS: u64 = 6;

/// The results of the kernels that one operator made for an exercise.
#[derive(Default, Serialize)]
struct Outcomes {
    made: usize,
    /// The number of kernels that were meant to be wrong, and compute the numbers of the solution.
    equal: usize,
    refused: usize,
    passed: usize,
    unexpected: Vec<Unexpected>,
}

/// A wrong kernel that passed, or a right one that was refused.
#[derive(Serialize)]
struct Unexpected {
    seed: u64,
    /// The index among the kernels that were made from the seed.
    number: usize,
    file: String,
    /// The number of the changed line.
    line: usize,
    was: String,
    is: String,
    why: String,
    /// The whole text of the kernel.
    text: String,
}

/// A line of the output: the outcomes for one exercise and one way of changing a kernel, which is called an operator.
#[derive(Serialize)]
struct OutcomeRow<'a> {
    #[serde(flatten)]
    trial: CourseTrial,
    #[serde(flatten)]
    outcomes: &'a Outcomes,
}

/// A file of an exercise whose solution is changed.
struct Subject<'a> {
    exercise: &'a Exercise,
    kernels: &'a Kernels,
    /// The index of the file among the kernels of the exercise.
    number: usize,
}

impl Subject<'_> {
    /// Returns the job that checks a text in the place of this file.
    fn job(&self, text: &str) -> KernelJob {
        let changed = WrongSolution {
            name: String::new(),
            kernel: self.number,
            text: text.to_owned(),
            refused: String::new(),
        };
        let mut job = job(self.exercise, self.kernels, Text::Wrong(&changed));
        job.timed = false;
        job
    }

    /// Returns the sizes at which a kernel is compared with the solution: for some seeds all sizes of a check, except the last one, which
    /// is for timing.
    fn shapes(&self, seed: u64) -> Vec<KernelShape> {
        let no_text = |_: &str| Ok(String::new());
        let mut shapes = Vec::new();
        for offset in 0..DRAWN_SEEDS {
            let seed_of_job = seed.wrapping_add(offset);
            let id = &self.exercise.id;
            let job = self.kernels.job(id, seed_of_job, no_text);
            shapes.extend(job.shapes.into_iter().rev().skip(1));
        }
        shapes
    }

    fn solution(&self) -> &str {
        &self.kernels.kernels[self.number].file.solution
    }

    /// Returns true if a text is valid WGSL at the first size of the exercise.
    fn is_valid(&self, text: &str) -> bool {
        let shape = self.kernels.shapes.first();
        let filled = shape.and_then(|shape| template::fill(text, &shape.sizes).ok());
        filled.is_some_and(|filled| Shader::parse(&filled.text).is_ok())
    }
}

/// Makes kernels and checks them. The exit code is a failure if too many wrong kernels pass, or if a right variant is refused.
pub(super) fn check(count: usize, context: &CourseContext, args: &CourseCheckArgs) -> Result<Exit> {
    let device = args.engine.device.as_str();
    let seed = args.seed;
    let mut checker = Checker::new(args.engine.command()?);
    let subjects = subjects(&mut checker, context, args)?;
    let texts: Vec<&str> = subjects.iter().map(Subject::solution).collect();
    let is_valid = |kernel: usize, text: &str| subjects[kernel].is_valid(text);
    let meter = ProgressMeter::begin();
    let mut right_total = Outcomes::default();
    let mut wrong_total = Outcomes::default();
    let mut done = 0;
    for (right, count, total) in [
        (true, (count * RIGHT_FOR_TEN).div_ceil(10), &mut right_total),
        (false, count, &mut wrong_total),
    ] {
        let made = make(&texts, right, count, seed, is_valid);
        let mut rows: BTreeMap<(usize, &str), Outcomes> = BTreeMap::new();
        for (number, mutant) in made.iter().enumerate() {
            let subject = &subjects[mutant.kernel];
            let label = subject.exercise.label();
            meter.set_done(done + number, done + made.len());
            meter.set_work(format!("{label}, {}", mutant.operator));
            let row = rows.entry((mutant.kernel, mutant.operator)).or_default();
            try_one(subject, mutant, right, (seed, number), row, |job| {
                let report = check_kernel(&mut checker, device, &job);
                (!report.passed).then(|| report.reason().unwrap_or_default().to_owned())
            });
        }
        done += made.len();
        for ((kernel, operator), outcomes) in &rows {
            print_row(&subjects[*kernel], operator, right, outcomes, args.json)?;
            total.add(outcomes);
        }
    }
    checker.end();
    drop(meter);
    let wrong = wrong_total.made - wrong_total.equal;
    let pass_pct = 100.0 * wrong_total.passed as f64 / wrong.max(1) as f64;
    let is_good = right_total.refused == 0 && pass_pct <= MAY_PASS_PCT && wrong > 0;
    if !args.json {
        let verdict = if is_good { "passed" } else { "not passed" };
        let Outcomes { passed, equal, .. } = wrong_total;
        let Outcomes { refused, made, .. } = right_total;
        result(&format!(
            "{verdict}: {passed} of {wrong} wrong kernels pass ({pass_pct:.1} %; \
             at most {MAY_PASS_PCT} % may pass), {equal} more compute the same as their solution; \
             {refused} of {made} right variants are refused; seed {seed}"
        ))?;
    }
    Ok(Exit::passed_if(is_good))
}

/// Returns the files of all kernel exercises. An exercise whose solution this device cannot run is left out, and a line says why.
fn subjects<'a>(
    checker: &mut Checker,
    context: &'a CourseContext,
    args: &CourseCheckArgs,
) -> Result<Vec<Subject<'a>>> {
    let mut subjects = Vec::new();
    for exercise in &context.course.exercises {
        let Some(kernels) = exercise.kernels() else {
            continue;
        };
        let mut job = job(exercise, kernels, Text::Solution);
        job.timed = false;
        if let Some(why) = check_kernel(checker, &args.engine.device, &job)
            .facts
            .failed
        {
            let name = format!("{} {}", exercise.label(), exercise.id);
            super::print(&CourseTrial::new(name, (None, why)), args.json)?;
            continue;
        }
        subjects.extend((0..kernels.kernels.len()).map(|number| Subject {
            exercise,
            kernels,
            number,
        }));
    }
    Ok(subjects)
}

impl Outcomes {
    fn add(&mut self, other: &Self) {
        self.made += other.made;
        self.equal += other.equal;
        self.refused += other.refused;
        self.passed += other.passed;
    }
}

/// Checks a kernel and counts the result in `row`. `refusal` checks a job and returns the reason if it is refused.
fn try_one(
    subject: &Subject<'_>,
    mutant: &Mutant,
    right: bool,
    (seed, number): (u64, usize),
    row: &mut Outcomes,
    refusal: impl FnOnce(KernelJob) -> Option<String>,
) {
    row.made += 1;
    let job = subject.job(&mutant.text);
    let file = job.files[subject.number].clone();
    let refused = refusal(job);
    let count = if refused.is_some() {
        &mut row.refused
    } else {
        &mut row.passed
    };
    *count += 1;
    let why = match refused {
        Some(why) if right => why,
        None if !right => match equal(&file, &subject.shapes(seed), &mutant.text, seed) {
            Ok(()) => {
                row.passed -= 1;
                row.equal += 1;
                return;
            }
            Err(sizes) => format!("passes, and differs from the solution at {sizes}"),
        },
        _ => return,
    };
    let (line, was, is) = first_change(subject.solution(), &mutant.text);
    row.unexpected.push(Unexpected {
        seed,
        number,
        file: file.name,
        line,
        was,
        is,
        why,
        text: mutant.text.clone(),
    });
}

/// Prints the outcomes for one exercise and one operator.
fn print_row(
    subject: &Subject<'_>,
    operator: &str,
    right: bool,
    outcomes: &Outcomes,
    as_json: bool,
) -> Result<()> {
    let mut detail = format!(
        "{} made, {} equal, {} refused, {} passed",
        outcomes.made, outcomes.equal, outcomes.refused, outcomes.passed
    );
    for kernel in &outcomes.unexpected {
        detail += &format!(
            "\n{}:{}: {} → {}\n  number {}: {}",
            kernel.file, kernel.line, kernel.was, kernel.is, kernel.number, kernel.why
        );
    }
    let kind = if right { "right" } else { "wrong" };
    let label = subject.exercise.label();
    let id = &subject.exercise.id;
    let name = format!("{label} {id}, {kind}: {operator}");
    let trial = CourseTrial::new(name, (Some(outcomes.unexpected.is_empty()), detail));
    if as_json {
        out::json(&OutcomeRow { trial, outcomes })
    } else {
        super::print(&trial, false)
    }
}
