//! The WGSL of the kernel exercises: every starter and every solution is valid at every shape, binds what its exercise
//! says, and stays within the limits of any device. Nothing here launches one.

use naga::valid::Capabilities;
use naga::{AddressSpace, ShaderStage, StorageAccess};
use perflings::course::exercise::{Body, Exercise, Kernel, Kernels, substitute};
use perflings::course::{Course, Source};
use perflings::engine::kernel::reference;
use perflings::protocol::{KernelMetric, KernelRole, KernelStarter, Sizes};

/// Limits that every WebGPU device has.
const MAX_GROUPS: u64 = 65_535;
const MAX_INVOCATIONS: u32 = 256;
const MAX_WORKGROUP_BYTES: u32 = 16_384;

fn kernels(course: &Course) -> Vec<(&Exercise, &Kernels)> {
    let bodies = course
        .exercises
        .iter()
        .filter_map(|exercise| match &exercise.body {
            Body::Kernel(kernels) => Some((exercise, kernels)),
            Body::Config(_) | Body::Detective(_) => None,
        });
    bodies.collect()
}

/// What a validator knows of a kernel: invocations of a workgroup and bytes of workgroup memory, or what is wrong.
fn validated(kernel: &Kernel, text: &str, sizes: &Sizes) -> Result<([u32; 3], u32), String> {
    let text = substitute(text, sizes).map_err(|(line, what)| format!("line {line}: {what}"))?;
    let module =
        naga::front::wgsl::parse_str(&text).map_err(|error| error.emit_to_string(&text))?;
    let flags = naga::valid::ValidationFlags::all();
    let capabilities = match kernel.spec.matrix_cores {
        true => Capabilities::SHADER_FLOAT16 | Capabilities::COOPERATIVE_MATRIX,
        false => Capabilities::empty(),
    };
    let info = naga::valid::Validator::new(flags, capabilities)
        .validate(&module)
        .map_err(|error| error.emit_to_string(&text))?;
    let [entry] = module.entry_points.as_slice() else {
        return Err("not one entry point".to_owned());
    };
    if entry.name != "main" || entry.stage != ShaderStage::Compute {
        return Err("the entry point is not `@compute fn main`".to_owned());
    }
    let used = info.get_entry_point(0);
    let mut bound = vec![false; kernel.spec.bindings.len()];
    let mut bytes = 0;
    for (handle, variable) in module.global_variables.iter() {
        match variable.space {
            AddressSpace::WorkGroup => {
                bytes += module.types[variable.ty].inner.size(module.to_ctx())
            }
            AddressSpace::Storage { access } => {
                let at = variable
                    .binding
                    .as_ref()
                    .ok_or("a storage variable without a binding")?;
                let expected = kernel
                    .spec
                    .bindings
                    .get(at.binding as usize)
                    .filter(|_| at.group == 0);
                if expected.is_none_or(|binding| Some(&binding.name) != variable.name.as_ref()) {
                    return Err(format!(
                        "{:?} is not the binding the exercise names",
                        variable.name
                    ));
                }
                if access != StorageAccess::LOAD | StorageAccess::STORE {
                    return Err(format!("{:?} is not read_write", variable.name));
                }
                if used[handle].is_empty() {
                    return Err(format!(
                        "{:?} is never used; the launch would fail",
                        variable.name
                    ));
                }
                bound[at.binding as usize] = true;
            }
            _ => {}
        }
    }
    if bound.contains(&false) {
        return Err("a buffer has no variable".to_owned());
    }
    Ok((entry.workgroup_size, bytes))
}

#[test]
fn every_kernel_is_valid_at_every_shape() {
    let course = Course::builtin("en");
    let mut wrong = Vec::new();
    for (exercise, body) in kernels(&course) {
        for (kernel, shape) in body
            .kernels
            .iter()
            .flat_map(|k| body.shapes.iter().map(move |s| (k, s)))
        {
            for (which, text) in [
                ("starter", &kernel.file.starter),
                ("solution", &kernel.file.solution),
            ] {
                let at = format!(
                    "{} {which} {} at `{}`",
                    exercise.path, kernel.file.name, shape.label
                );
                let (size, bytes) = match validated(kernel, text, &shape.sizes) {
                    Ok(found) => found,
                    Err(what) => {
                        wrong.push(format!("{at}: {what}"));
                        continue;
                    }
                };
                let mut sizes = shape.sizes.clone();
                sizes.extend(
                    ["WX", "WY", "WZ"]
                        .iter()
                        .zip(size)
                        .map(|(name, n)| ((*name).to_owned(), n.into())),
                );
                for product in &kernel.spec.grid {
                    let groups = product.value(&sizes).expect("checked by the loader");
                    if groups == 0 || groups > MAX_GROUPS {
                        wrong.push(format!("{at}: {groups} workgroups along one axis"));
                    }
                }
                if size.iter().product::<u32>() > MAX_INVOCATIONS || bytes > MAX_WORKGROUP_BYTES {
                    wrong.push(format!("{at}: workgroup of {size:?} with {bytes} bytes"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_can_be_checked_without_a_device_tells_starter_from_solution() {
    let course = Course::builtin("en");
    for (exercise, body) in kernels(&course) {
        let sizes = &body.shapes[0].sizes;
        for kernel in &body.kernels {
            assert_ne!(
                kernel.file.starter, kernel.file.solution,
                "{}",
                exercise.path
            );
            assert!(
                kernel.file.starter.contains("FILL ME IN"),
                "{}",
                exercise.path
            );
            let measure =
                |text: &str| validated(kernel, text, sizes).expect("valid, as tested above");
            let (starter, solution) = (
                measure(&kernel.file.starter),
                measure(&kernel.file.solution),
            );
            for check in &body.checks {
                let holds = |(size, bytes): ([u32; 3], u32)| match check.metric {
                    KernelMetric::Invocations => {
                        Some(f64::from(size.iter().product::<u32>()) >= check.at_least)
                    }
                    KernelMetric::Shared => Some(bytes > 0),
                    KernelMetric::Correct
                    | KernelMetric::Speed
                    | KernelMetric::Fetches
                    | KernelMetric::Neighbours
                    | KernelMetric::Cores => None,
                };
                assert_ne!(
                    holds(starter),
                    Some(check.starter == KernelStarter::Fails),
                    "{}: {}",
                    exercise.path,
                    check.name
                );
                assert_ne!(
                    holds(solution),
                    Some(false),
                    "{}: {}",
                    exercise.path,
                    check.name
                );
            }
        }
    }
}

#[test]
fn references_fit_their_bindings() {
    let course = Course::builtin("en");
    assert_eq!(kernels(&course).len(), 10);
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
            let inputs = reference::inputs(&kernel.spec.bindings, shape, 42).expect("sizes");
            let outputs = reference::outputs(kernel.spec.reference, &inputs, &shape.sizes);
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
                outputs.iter().flatten().all(|x| x.is_finite()),
                "{}",
                exercise.path
            );
        }
    }
}

#[test]
fn the_course_holds_its_config_exercises() {
    let course = Course::open(&Source::Embedded, "en");
    let configs = course
        .exercises
        .iter()
        .filter(|exercise| matches!(exercise.body, Body::Config(_)));
    assert_eq!(configs.count(), 4);
}
