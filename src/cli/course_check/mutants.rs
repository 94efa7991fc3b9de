//! `perflings course check --mutants N`: tells how good the checks of the kernel exercises are. Wrong kernels and right variants are
//! made from the solutions and checked as a learner's are, without timing. A wrong kernel that passes is compared with its solution at
//! many sizes; if both compute the same, it is not counted.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::Serialize;

use crate::cli::args::CourseCheckArgs;
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
const MAY_PASS: f64 = 2.0;
/// The number of right variants for ten wrong kernels.
const RIGHT: usize = 3;
/// The number of times that sizes are drawn to compare a kernel that passes with its solution.
const DRAWN: u64 = 6;

/// The results of the kernels that one operator made for an exercise.
#[derive(Default, Serialize)]
struct Outcomes {
    made: usize,
    /// The number of wrong kernels that compute the same as the solution.
    equal: usize,
    refused: usize,
    passed: usize,
    /// The kernels with the wrong result.
    unexpected: Vec<Unexpected>,
}

/// A wrong kernel that passed, or a right one that was refused.
#[derive(Serialize)]
struct Unexpected {
    seed: u64,
    /// The index among the kernels that the seed makes.
    number: usize,
    file: String,
    line: usize,
    was: String,
    is: String,
    why: String,
    text: String,
}

/// A line of the output: the kernels of one operator for an exercise.
#[derive(Serialize)]
struct OutcomeRow<'a> {
    #[serde(flatten)]
    trial: CourseTrial,
    #[serde(flatten)]
    outcomes: &'a Outcomes,
}

/// One file of an exercise.
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

    /// Returns the sizes at which a kernel is compared with the solution: those of the exercise without the last one, which is timed,
    /// and drawn ones.
    fn shapes(&self, seed: u64) -> Vec<KernelShape> {
        let jobs = (0..DRAWN).map(|more| {
            let seed = seed.wrapping_add(more);
            self.kernels
                .job(&self.exercise.id, seed, |_| Ok(String::new()))
        });
        let but_last = |job: KernelJob| job.shapes.into_iter().rev().skip(1);
        jobs.flat_map(but_last).collect()
    }

    fn solution(&self) -> &str {
        &self.kernels.kernels[self.number].file.solution
    }

    /// Returns true if naga takes a text at the first size of the exercise.
    fn is_program(&self, text: &str) -> bool {
        let shape = self.kernels.shapes.first();
        let filled = shape.and_then(|shape| template::fill(text, &shape.sizes).ok());
        filled.is_some_and(|filled| Shader::parse(&filled.text).is_ok())
    }
}

/// Makes kernels and checks them. Fails if too many wrong ones pass, or a right one is refused.
pub(super) fn check(count: usize, context: &CourseContext, args: &CourseCheckArgs) -> Result<Exit> {
    let (device, seed) = (args.engine.device.as_str(), args.seed);
    let mut checker = Checker::new(args.engine.command()?);
    let mut subjects = Vec::new();
    for exercise in &context.course.exercises {
        let Some(kernels) = exercise.kernels() else {
            continue;
        };
        let mut job = job(exercise, kernels, Text::Solution);
        job.timed = false;
        // What this device cannot run is left out.
        if let Some(why) = check_kernel(&mut checker, device, &job).facts.failed {
            let what = format!("{} {}", exercise.label(), exercise.id);
            super::print(&CourseTrial::new(what, (None, why)), args.json)?;
            continue;
        }
        subjects.extend((0..kernels.kernels.len()).map(|number| Subject {
            exercise,
            kernels,
            number,
        }));
    }
    let texts: Vec<&str> = subjects.iter().map(Subject::solution).collect();
    let accepts = |kernel: usize, text: &str| subjects[kernel].is_program(text);
    let meter = ProgressMeter::begin();
    // The sums of wrong kernels and of right variants.
    let mut sums = [Outcomes::default(), Outcomes::default()];
    let mut done = 0;
    for (right, count) in [(true, (count * RIGHT).div_ceil(10)), (false, count)] {
        let made = make(&texts, right, count, seed, accepts);
        let mut rows: BTreeMap<(usize, &str), Outcomes> = BTreeMap::new();
        for (number, mutant) in made.iter().enumerate() {
            let subject = &subjects[mutant.kernel];
            let what = format!("{}, {}", subject.exercise.label(), mutant.operator);
            meter.at(done + number, done + made.len());
            meter.doing(what);
            let row = rows.entry((mutant.kernel, mutant.operator)).or_default();
            try_one(subject, mutant, right, (seed, number), row, |job| {
                let report = check_kernel(&mut checker, device, &job);
                (!report.passed).then(|| report.reason().unwrap_or_default().to_owned())
            });
        }
        done += made.len();
        for ((kernel, operator), outcomes) in &rows {
            print_row(&subjects[*kernel], operator, right, outcomes, args.json)?;
            sums[usize::from(right)].add(outcomes);
        }
    }
    checker.end();
    drop(meter);
    let [wrong, right] = &sums;
    let differ = wrong.made - wrong.equal;
    let share = 100.0 * wrong.passed as f64 / differ.max(1) as f64;
    let good = right.refused == 0 && share <= MAY_PASS && differ > 0;
    let said = format!(
        "{}: {} of {differ} wrong kernels pass ({share:.1} %; at most {MAY_PASS} % may pass), {} more compute the same as their solution; \
         {} of {} right variants are refused; seed {seed}",
        if good { "passed" } else { "not passed" },
        wrong.passed,
        wrong.equal,
        right.refused,
        right.made
    );
    if !args.json {
        result(&said)?;
    }
    Ok(Exit::passed_if(good))
}

impl Outcomes {
    fn add(&mut self, other: &Self) {
        self.made += other.made;
        self.equal += other.equal;
        self.refused += other.refused;
        self.passed += other.passed;
    }
}

/// Checks a kernel and counts the result. `refusal` returns why a job is refused; `None` if it passes.
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
    let why = match (refused, right) {
        (Some(_), false) | (None, true) => return,
        (Some(why), true) => why,
        (None, false) => match equal(&file, &subject.shapes(seed), &mutant.text, seed) {
            Ok(()) => {
                row.passed -= 1;
                row.equal += 1;
                return;
            }
            Err(sizes) => format!("passes, and differs from the solution at {sizes}"),
        },
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

/// Prints the outcomes of one operator for an exercise.
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
    let (label, id) = (subject.exercise.label(), &subject.exercise.id);
    let what = format!("{label} {id}, {kind}: {operator}");
    let trial = CourseTrial::new(what, (Some(outcomes.unexpected.is_empty()), detail));
    if as_json {
        out::json(&OutcomeRow { trial, outcomes })
    } else {
        super::print(&trial, false)
    }
}
