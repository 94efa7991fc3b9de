//! Limits of a kernel: of its text, so that parsing and compiling it stays cheap, and of its launch, so that every device can run it.

use std::collections::HashMap;

use naga::valid::ModuleInfo;
use naga::{
    AddressSpace, ArraySize, Block, EntryPoint, Expression, Function, Handle, Module, Span,
    Statement, Type, TypeInner,
};

use super::message::whole;
use super::scan::{longest, nested_deeper};
use super::{Source, bytes_of, functions};
use crate::kernel::{KernelError, KernelSpec};

/// The largest workgroup along x, y and z that every WebGPU device supports.
const MAX_WORKGROUP: [u32; 3] = [256, 256, 64];
/// The most invocations of a workgroup that every WebGPU device supports.
const MAX_INVOCATIONS: u32 = 256;
/// The workgroup memory of every WebGPU device, in bytes.
const MAX_WORKGROUP_BYTES: u64 = 16 * 1024;
/// The workgroup memory of most devices, in bytes: the limit at drawn sizes.
const MAX_DRAWN_BYTES: u64 = 32 * 1024;
/// The most workgroups along each axis that every WebGPU device launches.
const MAX_WORKGROUPS: u64 = 65_535;
/// The most bytes of variables that one invocation may have for itself.
const MAX_PRIVATE_BYTES: u64 = 8 * 1024;
/// The largest array that is compiled, in bytes; larger than any memory except a buffer.
const MAX_TYPE_BYTES: u64 = 64 * 1024;
/// The most expressions and statements of a kernel, with every call replaced by the called function.
const MAX_LENGTH: u64 = 200_000;
/// The most branches and loops of a function: a driver's time to compile grows faster than their number.
const MAX_BRANCHES: u64 = 1000;
/// The most brackets around a bracket.
const MAX_NESTED: usize = 120;
/// The most characters of a number or a name.
const MAX_WORD: usize = 200;

impl Source<'_> {
    /// Refuses text on which a parser would overflow: very long words and deep nesting. `code` is the filled text without its comments.
    pub(super) fn check_readable(&self, code: &str) -> Result<(), KernelError> {
        let word = longest(code, |c| c.is_alphanumeric() || c == '_' || c == '.');
        if word.len() > MAX_WORD {
            let message = format!(
                "a number or a name of {} characters; at most {MAX_WORD} are allowed",
                word.len()
            );
            return Err(self.error(&word, message, "a shorter one"));
        }
        if let Some(bracket) = nested_deeper(code, MAX_NESTED) {
            let message = format!("more than {MAX_NESTED} nested brackets");
            let instead = "less deeply nested expressions and blocks";
            return Err(self.error(&(bracket..bracket + 1), message, instead));
        }
        Ok(())
    }

    /// Refuses a module for which a driver would need gigabytes to compile: large types, and calls that multiply.
    pub(super) fn check_compile_cost(&self, module: &Module) -> Result<(), KernelError> {
        self.check_types(module)?;
        let mut lengths = HashMap::new();
        for (handle, function) in module.functions.iter() {
            let length = self.check_function(module, function, &lengths)?;
            lengths.insert(handle, length);
        }
        for entry in &module.entry_points {
            self.check_function(module, &entry.function, &lengths)?;
        }
        Ok(())
    }

    /// Refuses arrays that are larger than any memory except a buffer.
    fn check_types(&self, module: &Module) -> Result<(), KernelError> {
        for (handle, ty) in module.types.iter() {
            let TypeInner::Array {
                size: ArraySize::Constant(count),
                stride,
                ..
            } = ty.inner
            else {
                continue;
            };
            let bytes = u64::from(count.get()) * u64::from(stride);
            if bytes > MAX_TYPE_BYTES {
                let message = format!(
                    "an array of {count} elements, {bytes} bytes; \
                     at most {MAX_TYPE_BYTES} are compiled, \
                     and the variables of an invocation may have {MAX_PRIVATE_BYTES}"
                );
                let instead = "a smaller array; large data belongs in a buffer";
                let span = module.types.get_span(handle);
                let place = span
                    .to_range()
                    .unwrap_or_else(|| self.first_of(&[&count.to_string(), "array<"]));
                return Err(self.error(&place, message, instead));
            }
        }
        Ok(())
    }

    /// Returns the number of instructions of a function. `lengths` has those of the functions that it may call.
    ///
    /// # Errors
    /// Fails if the function has too many instructions or branches.
    fn check_function(
        &self,
        module: &Module,
        function: &Function,
        lengths: &HashMap<Handle<Function>, u64>,
    ) -> Result<u64, KernelError> {
        let refuse = |message: String, instead: &str| {
            let name = function.name.as_deref().unwrap_or("main");
            Err(self.error(
                &self.first_of(&[&format!("fn {name}"), "fn main"]),
                message,
                instead,
            ))
        };
        let length = function
            .expressions
            .iter()
            .map(|(_, expression)| expression_length(module, expression))
            .fold(block_length(&function.body, lengths), u64::saturating_add);
        if length > MAX_LENGTH {
            let message = format!(
                "this function is {length} instructions long, \
                 because a driver copies every called function and constructor into it; \
                 at most {MAX_LENGTH} are allowed"
            );
            let instead = "a loop instead of calls that multiply, and smaller constructors";
            return refuse(message, instead);
        }
        let branches = branches(&function.body);
        if branches > MAX_BRANCHES {
            let message = format!(
                "this function has {branches} branches, cases and loops; \
                 at most {MAX_BRANCHES} are compiled"
            );
            return refuse(message, "a loop or arithmetic instead of so many cases");
        }
        Ok(length)
    }

    /// Checks that every device supports the size of the workgroup.
    pub(super) fn check_workgroup(&self, entry: &EntryPoint) -> Result<(), KernelError> {
        let [x, y, z] = entry.workgroup_size;
        let total = u128::from(x) * u128::from(y) * u128::from(z);
        let [most_x, most_y, most_z] = MAX_WORKGROUP;
        let too_long = x > most_x || y > most_y || z > most_z;
        if too_long || total > MAX_INVOCATIONS.into() || total == 0 {
            let message = format!(
                "a workgroup of {x} × {y} × {z} = {total} invocations; \
                 every device supports up to {MAX_INVOCATIONS}, \
                 and up to {most_x} × {most_y} × {most_z} along x, y and z"
            );
            let instead = "@workgroup_size(64), or (16, 16) for a matrix";
            return Err(self.error(&self.first_of(&["@workgroup_size"]), message, instead));
        }
        Ok(())
    }

    /// Returns the bytes of workgroup memory.
    ///
    /// # Errors
    /// Fails if a device may have less workgroup memory, or less memory for the variables of an invocation.
    pub(super) fn workgroup_bytes(
        &self,
        module: &Module,
        info: &ModuleInfo,
    ) -> Result<u64, KernelError> {
        let uses = info.get_entry_point(0);
        let mut shared = MemoryUse::default();
        let mut private = MemoryUse::default();
        for (handle, variable) in module.global_variables.iter() {
            let memory = match variable.space {
                _ if uses[handle].is_empty() => continue,
                AddressSpace::WorkGroup => &mut shared,
                AddressSpace::Private => &mut private,
                _ => continue,
            };
            let span = module.global_variables.get_span(handle);
            memory.add(type_bytes(module, variable.ty), span);
        }
        for function in functions(module) {
            for (handle, variable) in function.local_variables.iter() {
                let span = function.local_variables.get_span(handle);
                private.add(type_bytes(module, variable.ty), span);
            }
        }
        let shape = &self.shape.label;
        let (most, devices) = if self.shape.is_drawn() {
            (MAX_DRAWN_BYTES, "most devices have")
        } else {
            (MAX_WORKGROUP_BYTES, "every device has")
        };
        if shared.bytes > most {
            let bytes = shared.bytes;
            let message =
                format!("{bytes} bytes of workgroup memory in shape `{shape}`; {devices} {most}");
            return Err(self.error(&bytes_of(shared.last), message, "smaller tiles"));
        }
        if private.bytes > MAX_PRIVATE_BYTES {
            let bytes = private.bytes;
            let message = format!(
                "{bytes} bytes of variables for each invocation in shape `{shape}`; \
                 up to {MAX_PRIVATE_BYTES} are allowed"
            );
            let instead = "smaller arrays, or workgroup memory";
            return Err(self.error(&bytes_of(private.last), message, instead));
        }
        Ok(shared.bytes)
    }

    /// Returns the number of workgroups along x, y and z.
    ///
    /// # Errors
    /// Fails if a device may not launch that number.
    pub(super) fn grid(
        &self,
        spec: &KernelSpec,
        workgroup: [u32; 3],
    ) -> Result<[u32; 3], KernelError> {
        let counts = spec
            .groups(&self.shape.sizes, workgroup)
            .map_err(|why| whole(why, "another `grid` in exercise.toml"))?;
        for (groups, axis) in counts.into_iter().zip(["x", "y", "z"]) {
            if groups > MAX_WORKGROUPS {
                let shape = &self.shape.label;
                let message = format!(
                    "shape `{shape}` needs {groups} workgroups along {axis}; \
                     every device launches up to {MAX_WORKGROUPS} along each axis"
                );
                let instead = format!("a larger workgroup along {axis}");
                return Err(self.error(&self.first_of(&["@workgroup_size"]), message, instead));
            }
        }
        Ok(counts.map(|groups| groups as u32))
    }
}

/// The memory of all variables of one kind.
#[derive(Default)]
struct MemoryUse {
    bytes: u64,
    /// The last variable. An error names its place.
    last: Span,
}

impl MemoryUse {
    fn add(&mut self, bytes: u64, variable: Span) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.last = variable;
    }
}

fn type_bytes(module: &Module, ty: Handle<Type>) -> u64 {
    module.types[ty].inner.size(module.to_ctx()).into()
}

/// Returns the number of instructions of an expression: one, or one for each four bytes of a constructor's value.
fn expression_length(module: &Module, expression: &Expression) -> u64 {
    let ty = match expression {
        Expression::ZeroValue(ty) | Expression::Compose { ty, .. } => *ty,
        Expression::Constant(constant) => module.constants[*constant].ty,
        _ => return 1,
    };
    (type_bytes(module, ty) / 4).max(1)
}

/// Returns the number of statements of a block. A call counts as the length of the called function, which a driver copies.
fn block_length(block: &Block, lengths: &HashMap<Handle<Function>, u64>) -> u64 {
    block
        .iter()
        .map(|statement| match statement {
            Statement::Call { function, .. } => lengths.get(function).copied().unwrap_or(1),
            _ => match inner_blocks(statement).as_slice() {
                [] => 1,
                inner => inner
                    .iter()
                    .map(|block| block_length(block, lengths))
                    .fold(0, u64::saturating_add),
            },
        })
        .fold(0, u64::saturating_add)
}

/// Counts the branches, cases and loops of a block.
fn branches(block: &Block) -> u64 {
    block
        .iter()
        .map(|statement| {
            let own = match statement {
                Statement::If { .. } | Statement::Loop { .. } => 1,
                Statement::Switch { cases, .. } => cases.len() as u64,
                _ => 0,
            };
            own + inner_blocks(statement)
                .into_iter()
                .map(branches)
                .sum::<u64>()
        })
        .sum()
}

/// Returns the blocks of a statement, in their order.
fn inner_blocks(statement: &Statement) -> Vec<&Block> {
    match statement {
        Statement::Block(inner) => vec![inner],
        Statement::If { accept, reject, .. } => vec![accept, reject],
        Statement::Switch { cases, .. } => cases.iter().map(|case| &case.body).collect(),
        Statement::Loop {
            body, continuing, ..
        } => vec![body, continuing],
        _ => Vec::new(),
    }
}
