//! The WGSL of the kernel exercises. Every starter and every solution is valid at every shape, has the bindings of its exercise, and stays
//! within the limits of any device. No test here launches a kernel.

use perflings::course::Course;
use perflings::course::exercise::{Exercise, Kernel, Kernels};
use protocol::reference::{self, Reference};
use protocol::validate::{self, validate};
use protocol::{KernelCheck, KernelError, KernelFacts, KernelMetric, KernelRole, KernelStarter};

fn kernel_exercises(course: &Course) -> Vec<(&Exercise, &Kernels)> {
    course
        .exercises
        .iter()
        .filter_map(|exercise| Some((exercise, exercise.kernels()?)))
        .collect()
}

/// Returns the facts about a text that are known without a device.
fn facts(body: &Kernels, kernel: &Kernel, text: &str) -> Result<KernelFacts, KernelError> {
    validate(text, &kernel.spec, &body.shapes).map(|texts| validate::facts(&texts))
}

/// Returns true if a kernel passes a check; `None` if only a device can tell.
fn passes(check: &KernelCheck, facts: &KernelFacts) -> Option<bool> {
    match check.metric {
        KernelMetric::Invocations => {
            let lanes: u32 = facts.workgroup.iter().product();
            Some(f64::from(lanes) >= check.at_least)
        }
        KernelMetric::Shared => Some(facts.workgroup_bytes > 0),
        KernelMetric::Correct
        | KernelMetric::Speed
        | KernelMetric::Fetches
        | KernelMetric::Neighbours
        | KernelMetric::Cores => None,
    }
}

#[test]
fn every_starter_differs_from_its_solution_and_asks_to_be_filled_in() {
    let course = Course::builtin();
    for (exercise, body) in kernel_exercises(&course) {
        for kernel in &body.kernels {
            let starter = &kernel.file.starter;
            assert_ne!(*starter, kernel.file.solution, "{}", exercise.path);
            assert!(starter.contains("FILL ME IN"), "{}", exercise.path);
        }
    }
}

#[test]
fn checks_without_a_device_pass_solutions_and_fail_starters_that_must_fail() {
    let course = Course::builtin();
    for (exercise, body) in kernel_exercises(&course) {
        for kernel in &body.kernels {
            let starter = facts(body, kernel, &kernel.file.starter).expect("valid");
            let solution = facts(body, kernel, &kernel.file.solution).expect("valid");
            for check in &body.checks {
                let place = format!("{}: {}", exercise.path, check.name);
                let must_fail = check.starter == KernelStarter::Fails;
                assert_ne!(passes(check, &starter), Some(must_fail), "{place}");
                assert_ne!(passes(check, &solution), Some(false), "{place}");
            }
        }
    }
}

#[test]
fn every_kernel_exercise_has_three_shapes_and_an_odd_size_unless_it_uses_matrix_cores() {
    let course = Course::builtin();
    assert_eq!(kernel_exercises(&course).len(), 11);
    for (exercise, body) in kernel_exercises(&course) {
        assert!(body.shapes.len() >= 3, "{}", exercise.path);
        let has_odd_size = body
            .shapes
            .iter()
            .any(|shape| shape.sizes.values().any(|size| size % 2 == 1));
        // A tile of matrix cores has 16 rows.
        let mut kernels = body.kernels.iter();
        let uses_matrix_cores = kernels.any(|kernel| kernel.spec.matrix_cores);
        assert!(has_odd_size || uses_matrix_cores, "{}", exercise.path);
    }
}

#[test]
fn the_references_of_kernels_write_as_many_finite_numbers_as_their_bindings_hold() {
    let course = Course::builtin();
    for (exercise, body) in kernel_exercises(&course) {
        for kernel in &body.kernels {
            for shape in body.shapes.iter().take(2) {
                let bindings = &kernel.spec.bindings;
                let inputs = reference::inputs(bindings, shape, None, 42).expect("sizes");
                let spec = &kernel.spec;
                let reference = Reference::parse(spec, &shape.sizes).expect("parses");
                let outputs = reference
                    .outputs(spec, &shape.sizes, &inputs, false)
                    .unwrap_or_else(|why| panic!("{}: {why}", exercise.path));
                let lengths: Vec<u64> = outputs.iter().map(|out| out.len() as u64).collect();
                let counts: Vec<u64> = bindings
                    .iter()
                    .filter(|binding| binding.role != KernelRole::In)
                    .map(|binding| binding.count.value(&shape.sizes).expect("sizes"))
                    .collect();
                assert_eq!(lengths, counts, "{}", exercise.path);
                let mut numbers = outputs.iter().flatten();
                assert!(numbers.all(|x| x.value.is_finite()), "{}", exercise.path);
            }
        }
    }
}
