//! Prepares a run: evaluates constants, and checks that the launch fits the shader and its limits.

use naga::valid::GlobalUse;
use naga::{AddressSpace, EntryPoint, GlobalVariable, Handle, ShaderStage};

use super::code::{Code, ExpressionInfo};
use super::evaluate::Context;
use super::exact::Exact;
use super::interpreter::{EarlyEnd, Interpreter};
use super::layout::Layout;
use super::memory::SharedVariable;
use super::value::{LaneValues, Mask};
use super::{Buffer, Launch, LaunchReport, Observer, RunError, Shader, Space};

/// The largest number of lanes in a workgroup; the lane number of a stamp also has to hold subgroups.
const MOST_LANES: u64 = 1 << 14;

/// Runs a shader: with `exact`, floats carry their error. The buffers hold what the shader wrote, even if the run fails.
pub(crate) fn run(
    shader: &Shader,
    launch: &Launch<'_>,
    buffers: &mut [Buffer],
    observer: &mut dyn Observer,
    exact: Option<Exact>,
) -> Result<(LaunchReport, Option<Exact>), RunError> {
    let module = &shader.module;
    let is_wanted = |entry: &EntryPoint| {
        entry.stage == ShaderStage::Compute && launch.entry.is_none_or(|name| name == entry.name)
    };
    let mut entries = module.entry_points.iter().enumerate();
    let Some((index, entry)) = entries.find(|(_, entry)| is_wanted(entry)) else {
        let name = launch.entry.map(|name| format!(" {name}"));
        let why = format!("no compute entry point{}", name.unwrap_or_default());
        return Err(RunError::Misfit(why));
    };
    let info = shader.info.get_entry_point(index);
    let is_used = |handle: Handle<GlobalVariable>| !info[handle].is_empty();

    let mut context = Context {
        module,
        layout: Layout::new(module),
        constants: Vec::new(),
    };
    evaluate_constants(shader, &mut context);
    let size = entry.workgroup_size;
    // The entry points are numbered after the functions.
    let entry_number = module.functions.len() + index;
    let with_flow = exact.is_none();
    let is_data = |handle| with_flow && shader.flow().is_data(entry_number, handle);
    let mut codes = vec![Code::new(&context, &entry.function, info, is_data)];
    for (handle, function) in module.functions.iter() {
        let is_data = |expression| with_flow && shader.flow().is_data(handle.index(), expression);
        codes.push(Code::new(&context, function, &shader.info[handle], is_data));
    }
    let lanes = match &exact {
        Some(exact) => exact.lanes(),
        None => size.map(u64::from).into_iter().fold(1, u64::saturating_mul),
    };
    // Untouched shadow memory takes no memory, and a few workgroups touch little of it.
    let with_shadow = launch.only.is_empty() && exact.is_none();
    let needed = memory_bytes(&context, &codes, buffers, (lanes, with_shadow), is_used);
    if needed > launch.limits.memory || lanes > MOST_LANES {
        let limit = launch.limits.memory;
        return Err(RunError::Memory { needed, limit });
    }
    let shared = bind(&context, buffers, exact.is_none(), |handle| info[handle])?;
    let mut interpreter = Interpreter::new(
        shader,
        &context,
        &codes,
        launch,
        (size, exact),
        shared,
        observer,
    );
    let result = interpreter.run(entry);
    for (handle, variable) in module.global_variables.iter() {
        if is_used(handle)
            && let Some(index) = bound_buffer(buffers, variable)
        {
            buffers[index].bytes = std::mem::take(&mut interpreter.shared[handle.index()].bytes);
        }
    }
    let exact = interpreter.exact.take();
    match result {
        Ok(()) => Ok((interpreter.into_report(true), exact)),
        Err(EarlyEnd::Limit) => Ok((interpreter.into_report(false), exact)),
        Err(EarlyEnd::Error(error)) => Err(error),
    }
}

/// Computes the words of all global expressions.
fn evaluate_constants(shader: &Shader, context: &mut Context<'_>) {
    let module = &shader.module;
    let expressions = &module.global_expressions;
    let handles = || expressions.iter().map(|(handle, _)| handle);
    let node = |handle| ExpressionInfo::new(module, &context.layout, &shader.info[handle]);
    let nodes: Vec<ExpressionInfo<'_>> = handles().map(node).collect();
    let mask = Mask::full(1);
    let mut values = vec![LaneValues::default(); expressions.len()];
    context.constants = vec![Vec::new(); expressions.len()];
    for handle in handles() {
        let mut out = LaneValues::default();
        let parts = (expressions, nodes.as_slice(), values.as_slice());
        // An unsupported expression is an error only if a function uses it.
        if context.evaluate(parts, handle, &mask, &mut out).is_err() {
            out.words = vec![0; nodes[handle.index()].words()];
        }
        context.constants[handle.index()].clone_from(&out.words);
        values[handle.index()] = out;
    }
}

/// Returns the number of bytes that buffers, shadow memory and values take.
fn memory_bytes(
    context: &Context<'_>,
    codes: &[Code<'_>],
    buffers: &[Buffer],
    (lanes, with_shadow): (u64, bool),
    is_used: impl Fn(Handle<GlobalVariable>) -> bool,
) -> u64 {
    let mut words = 0_u64;
    for code in codes {
        let values = code.nodes.iter().map(|node| match &node.pointee {
            Some(_) => 1,
            None => node.size.words,
        });
        let locals = code
            .function
            .local_variables
            .iter()
            .map(|(_, variable)| context.layout.size(variable.ty).words);
        words = values.chain(locals).fold(words, u64::saturating_add);
    }
    let mut bytes = 0_u64;
    for (handle, variable) in context.module.global_variables.iter() {
        let size = context.layout.size(variable.ty);
        match (bound_buffer(buffers, variable), variable.space) {
            _ if !is_used(handle) => {}
            (_, AddressSpace::Private) => words = words.saturating_add(size.words),
            (Some(index), _) => {
                let length = buffers[index].bytes.len() as u64;
                let cost = if with_shadow {
                    SharedVariable::cost(length, size.granule)
                } else {
                    length
                };
                bytes = bytes.saturating_add(cost);
            }
            (None, _) => {
                bytes = bytes.saturating_add(SharedVariable::cost(size.bytes, size.granule))
            }
        }
    }
    let values = words.saturating_mul(4).saturating_mul(lanes);
    values.saturating_add(bytes)
}

/// Returns the index of the buffer that is bound to a variable.
fn bound_buffer(buffers: &[Buffer], variable: &GlobalVariable) -> Option<usize> {
    let binding = variable.binding?;
    buffers
        .iter()
        .position(|buffer| (buffer.group, buffer.binding) == (binding.group, binding.binding))
}

/// Returns the global variables with their bytes, which are taken from the buffers.
///
/// # Errors
/// When a buffer is missing, too small or too large.
fn bind<'a>(
    context: &Context<'a>,
    buffers: &mut [Buffer],
    with_shadow: bool,
    uses: impl Fn(Handle<GlobalVariable>) -> GlobalUse,
) -> Result<Vec<SharedVariable<'a>>, RunError> {
    let is_used = |handle| !uses(handle).is_empty();
    let all = &context.module.global_variables;
    for (_, variable) in all.iter().filter(|(handle, _)| is_used(*handle)) {
        let name = variable.name.as_deref().unwrap_or_default();
        let is_buffer = matches!(
            variable.space,
            AddressSpace::Uniform | AddressSpace::Storage { .. }
        );
        let Some(binding) = variable.binding.filter(|_| is_buffer) else {
            continue;
        };
        let Some(index) = bound_buffer(buffers, variable) else {
            let why = format!(
                "no buffer for {name}, @group({}) @binding({})",
                binding.group, binding.binding
            );
            return Err(RunError::Misfit(why));
        };
        let bytes = buffers[index].bytes.len();
        // The size of a runtime-sized array is the size of one element.
        let inner = &context.module.types[variable.ty].inner;
        let needed = inner.size(context.module.to_ctx()) as usize;
        if bytes > u32::MAX as usize / 2 {
            return Err(RunError::Memory {
                needed: bytes as u64,
                limit: u64::from(u32::MAX / 2),
            });
        }
        if bytes < needed {
            let why = format!("{name} needs {needed} bytes, its buffer has {bytes}");
            return Err(RunError::Misfit(why));
        }
    }
    let shared = all.iter().map(|(handle, variable)| {
        let size = context.layout.size(variable.ty);
        let space = match variable.space {
            AddressSpace::WorkGroup => Space::Workgroup,
            AddressSpace::Uniform => Space::Uniform,
            _ => Space::Storage,
        };
        let (bytes, initialized) =
            match bound_buffer(buffers, variable).map(|index| &mut buffers[index]) {
                _ if !is_used(handle) => (Vec::new(), true),
                Some(buffer) => (
                    std::mem::take(&mut buffer.bytes),
                    buffer.initialized || space == Space::Uniform,
                ),
                None if space == Space::Workgroup => (vec![0; size.bytes as usize], false),
                None => (Vec::new(), true),
            };
        // Memory that is only read needs no shadow: loads do not race.
        let written = uses(handle).contains(GlobalUse::WRITE);
        let shadowed = with_shadow && (written || !initialized);
        SharedVariable::new(variable, bytes, size.granule, space, shadowed, initialized)
    });
    Ok(shared.collect())
}
