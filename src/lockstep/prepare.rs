//! Prepares a run: overrides and constants, sizes, and checks that the launch fits the program and its limits.

use naga::{
    AddressSpace, EntryPoint, Expression, GlobalVariable, Handle, Override, Scalar, ScalarKind,
    ShaderStage, StorageAccess, TypeInner,
};

use super::evaluate::{Code, Context, ExpressionInfo};
use super::execute::{EarlyEnd, Interpreter};
use super::layout::Layout;
use super::memory::Shared;
use super::value::{LaneValues, Mask};
use super::{Buffer, Launch, LaunchReport, Observer, RunError, Shader, Space};

/// Most lanes of a workgroup; the lane number of a stamp also has to hold subgroups.
const MOST_LANES: u64 = 1 << 14;

/// Runs a program. The buffers hold what it wrote, even if the run fails.
pub fn run(
    program: &Shader,
    launch: &Launch<'_>,
    buffers: &mut [Buffer],
    observer: &mut dyn Observer,
) -> Result<LaunchReport, RunError> {
    let module = &program.module;
    let wanted = |entry: &EntryPoint| {
        entry.stage == ShaderStage::Compute && launch.entry.is_none_or(|name| name == entry.name)
    };
    let mut entries = module.entry_points.iter().enumerate();
    let Some((index, entry)) = entries.find(|(_, entry)| wanted(entry)) else {
        return Err(RunError::NoEntryPoint(
            launch.entry.unwrap_or_default().to_owned(),
        ));
    };
    let info = program.info.get_entry_point(index);
    let used = |handle: Handle<GlobalVariable>| !info[handle].is_empty();

    let mut context = Context {
        module,
        layout: Layout::new(module, |_| None),
        constants: Vec::new(),
        overrides: vec![0; module.overrides.len()],
    };
    evaluate_constants(program, launch, &mut context)?;
    let size = workgroup_size(entry, &context)?;
    let counts = context.overrides.clone();
    context.layout = Layout::new(module, |handle| counts.get(handle.index()).copied());

    let mut codes = vec![Code::new(&context, &entry.function, info, &entry.name)];
    for (handle, function) in module.functions.iter() {
        let name = function.name.as_deref().unwrap_or("function");
        codes.push(Code::new(&context, function, &program.info[handle], name));
    }
    let lanes = size
        .iter()
        .map(|it| u64::from(*it))
        .fold(1, u64::saturating_mul);
    let needed = memory(&context, &codes, buffers, lanes, used);
    if needed > launch.limits.memory || lanes > MOST_LANES {
        let limit = launch.limits.memory;
        return Err(RunError::Memory { needed, limit });
    }
    let shared = bind(&context, buffers, used)?;
    let mut machine = Interpreter::new(program, &context, &codes, launch, size, shared, observer);
    let result = machine.launch(entry);
    for (handle, variable) in module.global_variables.iter() {
        if let (Some(buffer), Some(shared)) =
            (find(buffers, variable), &mut machine.shared[handle.index()])
        {
            buffers[buffer].bytes = std::mem::take(&mut shared.bytes);
        }
    }
    match result {
        Ok(()) => Ok(machine.report(true)),
        Err(EarlyEnd::Limit) => Ok(machine.report(false)),
        Err(EarlyEnd::Error(error)) => Err(error),
    }
}

/// Computes the words of all overrides and global expressions.
fn evaluate_constants(
    program: &Shader,
    launch: &Launch<'_>,
    context: &mut Context<'_>,
) -> Result<(), RunError> {
    let module = &program.module;
    let expressions = &module.global_expressions;
    for name in launch.overrides.keys() {
        if !module.overrides.iter().any(|(_, it)| is_called(it, name)) {
            return Err(RunError::Override(format!(
                "the program has no override {name}"
            )));
        }
    }
    let handles = expressions.iter().map(|(handle, _)| handle);
    let node = |handle| ExpressionInfo::new(module, &context.layout, &program.info[handle]);
    let nodes: Vec<ExpressionInfo<'_>> = handles.map(node).collect();
    let mask = Mask::full(1);
    let mut values = vec![LaneValues::default(); expressions.len()];
    context.constants = vec![Vec::new(); expressions.len()];
    for (handle, expression) in expressions.iter() {
        if let Expression::Override(it) = *expression {
            context.overrides[it.index()] = override_word(launch, context, &module.overrides[it])?;
        }
        let mut out = LaneValues::default();
        let parts = (expressions, nodes.as_slice(), values.as_slice());
        // An unsupported expression is an error only if a function uses it.
        if context.evaluate(parts, handle, &mask, &mut out).is_err() {
            out.words = vec![0; nodes[handle.index()].words()];
        }
        context.constants[handle.index()].clone_from(&out.words);
        values[handle.index()] = out;
    }
    // Overrides that only functions use.
    for (handle, it) in module.overrides.iter() {
        context.overrides[handle.index()] = override_word(launch, context, it)?;
    }
    Ok(())
}

/// The value of an override: from the launch, otherwise its default.
fn override_word(
    launch: &Launch<'_>,
    context: &Context<'_>,
    it: &Override,
) -> Result<u32, RunError> {
    let name = it.name.as_deref().unwrap_or("without a name");
    let given = launch
        .overrides
        .iter()
        .find(|(name, _)| is_called(it, name));
    if let Some((_, value)) = given {
        let scalar = context.module.types[it.ty]
            .inner
            .scalar()
            .unwrap_or(Scalar::F32);
        let word = word(scalar, *value);
        return word.ok_or_else(|| RunError::Override(format!("{name} cannot be {value}")));
    }
    let own = it
        .init
        .and_then(|init| context.constants[init.index()].first().copied());
    own.ok_or_else(|| RunError::Override(format!("{name} has no value")))
}

fn is_called(it: &Override, name: &str) -> bool {
    match it.id {
        Some(id) => name.parse() == Ok(id),
        None => it.name.as_deref() == Some(name),
    }
}

/// A number as a scalar of this type, if it can be one.
fn word(scalar: Scalar, value: f64) -> Option<u32> {
    let whole = value.fract() == 0.0;
    match scalar.kind {
        ScalarKind::Bool => Some((value != 0.0).into()),
        ScalarKind::Float => value.is_finite().then_some((value as f32).to_bits()),
        ScalarKind::Sint => (whole && value >= f64::from(i32::MIN) && value <= f64::from(i32::MAX))
            .then_some(value as i32 as u32),
        _ => (whole && value >= 0.0 && value <= f64::from(u32::MAX)).then_some(value as u32),
    }
}

fn workgroup_size(entry: &EntryPoint, context: &Context<'_>) -> Result<[u32; 3], RunError> {
    let mut size = entry.workgroup_size;
    for (at, handle) in entry
        .workgroup_size_overrides
        .into_iter()
        .flatten()
        .enumerate()
    {
        if let Some(handle) = handle {
            size[at] = context.constants[handle.index()]
                .first()
                .copied()
                .unwrap_or(0);
        }
    }
    match size.contains(&0) {
        true => Err(RunError::Override(
            "of the workgroup's size is not above 0".to_owned(),
        )),
        false => Ok(size),
    }
}

/// Bytes of buffers, shadow memory and values.
fn memory(
    context: &Context<'_>,
    codes: &[Code<'_>],
    buffers: &[Buffer],
    lanes: u64,
    used: impl Fn(Handle<GlobalVariable>) -> bool,
) -> u64 {
    let mut words = 0_u64;
    for code in codes {
        let values = code.nodes.iter().map(|node| match &node.pointee {
            Some(_) => 1,
            None => node.size.words,
        });
        let locals = code.function.local_variables.iter();
        let locals = locals.map(|(_, variable)| context.layout.size(variable.ty).words);
        words = values.chain(locals).fold(words, u64::saturating_add);
    }
    let mut bytes = 0_u64;
    for (handle, variable) in context.module.global_variables.iter() {
        let size = context.layout.size(variable.ty);
        match (find(buffers, variable), variable.space) {
            _ if !used(handle) => {}
            (_, AddressSpace::Private) => words = words.saturating_add(size.words),
            (Some(at), _) => {
                let length = buffers[at].bytes.len() as u64;
                bytes = bytes.saturating_add(Shared::cost(length, size.granule));
            }
            (None, _) => bytes = bytes.saturating_add(Shared::cost(size.bytes, size.granule)),
        }
    }
    words
        .saturating_mul(4)
        .saturating_mul(lanes)
        .saturating_add(bytes)
}

fn find(buffers: &[Buffer], variable: &GlobalVariable) -> Option<usize> {
    let binding = variable.binding?;
    let is = |buffer: &Buffer| (buffer.group, buffer.binding) == (binding.group, binding.binding);
    buffers.iter().position(is)
}

/// Takes the bytes of the buffers after checking that none is missing.
fn bind(
    context: &Context<'_>,
    buffers: &mut [Buffer],
    used: impl Fn(Handle<GlobalVariable>) -> bool,
) -> Result<Vec<Option<Shared>>, RunError> {
    let variables = || {
        context
            .module
            .global_variables
            .iter()
            .filter(|(handle, _)| used(*handle))
    };
    for (_, variable) in variables() {
        let name = variable.name.clone().unwrap_or_default();
        let Some(binding) = variable.binding.filter(|_| is_buffer(variable.space)) else {
            continue;
        };
        let Some(at) = find(buffers, variable) else {
            let (group, binding) = (binding.group, binding.binding);
            return Err(RunError::MissingBuffer {
                name,
                group,
                binding,
            });
        };
        let (bytes, needed) = (
            buffers[at].bytes.len(),
            least(context, &context.module.types[variable.ty].inner),
        );
        if bytes > u32::MAX as usize / 2 {
            let (needed, limit) = (bytes as u64, u64::from(u32::MAX / 2));
            return Err(RunError::Memory { needed, limit });
        }
        if bytes < needed {
            return Err(RunError::SmallBuffer {
                name,
                bytes,
                needed,
            });
        }
    }
    let mut shared: Vec<Option<Shared>> = Vec::new();
    shared.resize_with(context.module.global_variables.len(), || None);
    for (handle, variable) in variables() {
        let size = context.layout.size(variable.ty);
        shared[handle.index()] = match (find(buffers, variable), variable.space) {
            (_, AddressSpace::WorkGroup) => {
                let bytes = vec![0; size.bytes as usize];
                Some(Shared::new(
                    bytes,
                    size.granule,
                    Space::Workgroup,
                    true,
                    false,
                ))
            }
            (Some(at), AddressSpace::Uniform) => {
                let bytes = std::mem::take(&mut buffers[at].bytes);
                Some(Shared::new(
                    bytes,
                    size.granule,
                    Space::Uniform,
                    false,
                    true,
                ))
            }
            (Some(at), AddressSpace::Storage { access }) => {
                let bytes = std::mem::take(&mut buffers[at].bytes);
                let written = access.contains(StorageAccess::STORE);
                Some(Shared::new(
                    bytes,
                    size.granule,
                    Space::Storage,
                    written,
                    buffers[at].initialized,
                ))
            }
            _ => None,
        };
    }
    Ok(shared)
}

fn is_buffer(space: AddressSpace) -> bool {
    matches!(space, AddressSpace::Uniform | AddressSpace::Storage { .. })
}

/// Smallest size of a buffer in bytes, with one element of a runtime-sized array.
fn least(context: &Context<'_>, inner: &TypeInner) -> usize {
    match inner {
        TypeInner::Array { stride, .. }
            if context
                .layout
                .stride(inner)
                .is_some_and(|it| it.count.is_none()) =>
        {
            *stride as usize
        }
        TypeInner::Struct { members, span } => {
            let last = members.last().map_or(0, |it| {
                it.offset as usize + least(context, &context.module.types[it.ty].inner)
            });
            last.max(*span as usize)
        }
        _ => context.layout.size_of(inner).bytes as usize,
    }
}
