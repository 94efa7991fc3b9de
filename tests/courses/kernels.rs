//! The WGSL of the kernel exercises: every starter and every solution is valid at every shape, binds what its exercise
//! says, and stays within the limits of any device. Nothing here launches one.

use perflings::course::Course;
use perflings::course::exercise::{Exercise, Kernel, Kernels};
use protocol::reference::{self, Reference};
use protocol::validate::{self, validate};
use protocol::{KernelError, KernelFacts, KernelMetric, KernelRole, KernelStarter};

fn kernels(course: &Course) -> Vec<(&Exercise, &Kernels)> {
    let all = course.exercises.iter();
    all.filter_map(|exercise| Some((exercise, exercise.kernels()?)))
        .collect()
}

/// What is known of a text without a device, at every shape.
fn facts(body: &Kernels, kernel: &Kernel, text: &str) -> Result<KernelFacts, KernelError> {
    validate(text, &kernel.spec, &body.shapes).map(|texts| validate::facts(&texts))
}

#[test]
fn what_can_be_checked_without_a_device_tells_starter_from_solution() {
    let course = Course::builtin();
    for (exercise, body) in kernels(&course) {
        for kernel in &body.kernels {
            let (starter, solution) = (&kernel.file.starter, &kernel.file.solution);
            assert_ne!(starter, solution, "{}", exercise.path);
            assert!(starter.contains("FILL ME IN"), "{}", exercise.path);
            let [starter, solution] = [starter, solution].map(|text| {
                let found = facts(body, kernel, text);
                found.unwrap_or_else(|error| panic!("{}: {error:?}", exercise.path))
            });
            for check in &body.checks {
                let holds = |facts: KernelFacts| match check.metric {
                    KernelMetric::Invocations => {
                        let size: u32 = facts.workgroup.iter().product();
                        Some(f64::from(size) >= check.at_least)
                    }
                    KernelMetric::Shared => Some(facts.workgroup_bytes > 0),
                    KernelMetric::Correct
                    | KernelMetric::Speed
                    | KernelMetric::Fetches
                    | KernelMetric::Neighbours
                    | KernelMetric::Cores => None,
                };
                let at = format!("{}: {}", exercise.path, check.name);
                let fails = check.starter == KernelStarter::Fails;
                assert_ne!(holds(starter), Some(fails), "{at}");
                assert_ne!(holds(solution), Some(false), "{at}");
            }
        }
    }
}

#[test]
fn references_fit_their_bindings() {
    let course = Course::builtin();
    assert_eq!(kernels(&course).len(), 11);
    for (exercise, body) in kernels(&course) {
        assert!(
            body.shapes.len() >= 3,
            "{}: odd shapes are missing",
            exercise.path
        );
        for (kernel, shape) in body
            .kernels
            .iter()
            .flat_map(|k| body.shapes.iter().take(2).map(move |s| (k, s)))
        {
            let inputs = reference::inputs(&kernel.spec.bindings, shape, None, 42).expect("sizes");
            let (spec, sizes) = (&kernel.spec, &shape.sizes);
            let reference = Reference::parse(spec, sizes).expect("parses");
            let outputs = reference.outputs(spec, sizes, &inputs, false);
            let outputs = outputs.unwrap_or_else(|why| panic!("{}: {why}", exercise.path));
            let written: Vec<u64> = kernel
                .spec
                .bindings
                .iter()
                .filter(|binding| binding.role != KernelRole::In)
                .map(|binding| binding.count.value(&shape.sizes).expect("sizes"))
                .collect();
            assert_eq!(
                outputs
                    .iter()
                    .map(|out| out.len() as u64)
                    .collect::<Vec<_>>(),
                written,
                "{}",
                exercise.path
            );
            assert!(
                outputs.iter().flatten().all(|x| x.value.is_finite()),
                "{}",
                exercise.path
            );
        }
    }
}

#[test]
fn the_course_holds_its_config_exercises() {
    let course = Course::builtin();
    let configs = course.exercises.iter().filter_map(Exercise::configs);
    assert_eq!(configs.count(), 4);
}
