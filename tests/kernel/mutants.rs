//! What `course check --mutants` makes from the solutions: enough kernels, all of them programs; the right ones compute the same.

use std::collections::HashSet;

use perflings::measure::equal::equal;
use protocol::{KernelFile, KernelShape, template};
use wgsl_lockstep::Shader;
use wgsl_lockstep::mutants::{Mutant, make};

use super::{exercises, job_of};

/// Every solution with the sizes of its exercise.
fn solutions() -> Vec<(KernelFile, Vec<KernelShape>)> {
    let jobs = exercises()
        .map(|(exercise, _)| job_of(&exercise.id, |_, _, solution| Ok(solution.to_owned())));
    let all = jobs.flat_map(|job| {
        let mut shapes = job.shapes;
        // Those of the exercise are enough to find a mistake of an operator.
        shapes.retain(|shape| !shape.is_drawn());
        job.files
            .into_iter()
            .map(move |file| (file, shapes.clone()))
    });
    all.collect()
}

fn made(solutions: &[(KernelFile, Vec<KernelShape>)], right: bool, count: usize) -> Vec<Mutant> {
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
fn there_are_enough_of_them_for_every_exercise() {
    let solutions = solutions();
    for (right, count) in [(false, 600), (true, 150)] {
        let all = made(&solutions, right, count);
        assert_eq!(all.len(), count);
        let texts: HashSet<&str> = all.iter().map(|mutant| mutant.text.as_str()).collect();
        assert_eq!(texts.len(), count, "each once");
        let kernels: HashSet<usize> = all.iter().map(|mutant| mutant.kernel).collect();
        assert_eq!(kernels.len(), solutions.len());
        assert_eq!(
            all,
            made(&solutions, right, count),
            "equal seeds make equal kernels"
        );
    }
}

#[test]
fn right_variants_compute_what_the_solution_does_and_a_wrong_one_does_not() {
    let solutions = solutions();
    for mutant in made(&solutions, true, 22) {
        let (file, shapes) = &solutions[mutant.kernel];
        let found = equal(file, shapes, &mutant.text, 1);
        assert_eq!(found, Ok(()), "{}: {}", mutant.operator, mutant.text);
    }
    let (file, shapes) = &solutions[0];
    let wrong = file.text.replace("1.0 + exp", "1.0001 + exp");
    assert!(wrong != file.text && equal(file, shapes, &wrong, 1).is_err());
}
