//! The kernels that `course check --mutants` makes from the solutions: there are enough of them, all compile, and those that are meant to be
//! right compute what the solution computes.

use std::collections::HashSet;

use perflings::measure::equal::equal;
use protocol::{KernelFile, KernelShape, template};
use wgsl_lockstep::Shader;
use wgsl_lockstep::mutants::{Mutant, make};

use super::{exercises, solution_of};

/// Returns every file of a solution with the shapes of its exercise.
fn solutions() -> Vec<(KernelFile, Vec<KernelShape>)> {
    exercises()
        .map(|(exercise, _)| solution_of(&exercise.id))
        .flat_map(|job| {
            let mut shapes = job.shapes;
            // The shapes that the exercise declares are enough to find a mistake of an operator.
            shapes.retain(|shape| !shape.is_drawn());
            job.files
                .into_iter()
                .map(move |file| (file, shapes.clone()))
        })
        .collect()
}

/// Makes `count` mutants of the solutions, all of which parse.
fn mutants(solutions: &[(KernelFile, Vec<KernelShape>)], right: bool, count: usize) -> Vec<Mutant> {
    let texts: Vec<&str> = solutions
        .iter()
        .map(|(file, _)| file.text.as_str())
        .collect();
    make(&texts, right, count, 1, |kernel, text| {
        let filled = template::fill(text, &solutions[kernel].1[0].sizes);
        filled.is_ok_and(|filled| Shader::parse(&filled.text).is_ok())
    })
}

#[test]
fn there_are_enough_mutants_of_every_solution() {
    let solutions = solutions();
    for (right, count) in [(false, 600), (true, 150)] {
        let all = mutants(&solutions, right, count);
        assert_eq!(all.len(), count);
        let texts: HashSet<&str> = all.iter().map(|mutant| mutant.text.as_str()).collect();
        assert_eq!(texts.len(), count, "no text occurs twice");
        let kernels: HashSet<usize> = all.iter().map(|mutant| mutant.kernel).collect();
        assert_eq!(kernels.len(), solutions.len());
        assert_eq!(
            all,
            mutants(&solutions, right, count),
            "equal seeds make equal kernels"
        );
    }
}

#[test]
fn right_mutants_compute_what_the_solution_does_and_a_wrong_one_does_not() {
    let solutions = solutions();
    for mutant in mutants(&solutions, true, 22) {
        let (file, shapes) = &solutions[mutant.kernel];
        let found = equal(file, shapes, &mutant.text, 1);
        assert_eq!(found, Ok(()), "{}: {}", mutant.operator, mutant.text);
    }
    let (file, shapes) = &solutions[0];
    let wrong = file.text.replace("1.0 + exp", "1.0001 + exp");
    assert!(wrong != file.text && equal(file, shapes, &wrong, 1).is_err());
}
