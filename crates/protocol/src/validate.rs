//! Validates a kernel's text without running it: it has to be valid WGSL, and to keep the rules of its exercise and the limits of
//! plain WebGPU.

mod explain;
pub mod message;
pub mod scan;
mod tree;

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};

use naga::valid::{Capabilities, ModuleInfo, ValidationFlags, Validator};
use naga::{
    AddressSpace, ArraySize, Block, EntryPoint, Expression, Function, Handle, Module, Scalar,
    ShaderStage, Span, Statement, StorageAccess, Type, TypeInner,
};

use super::kernel::{KernelBinding, KernelError, KernelFacts, KernelRole, KernelShape, KernelSpec};
use super::reference::Reference;
use super::size::Sizes;
use super::template::{self, FilledTemplate, UnknownSize};
use crate::config::nearest;
use message::whole;
use scan::{MAX_BYTES, longest, nested_deeper, too_large, without_comments};
use tree::{blocks, functions};
use wgsl_lockstep::Shader;

/// Limits that every WebGPU device supports.
const MAX_WORKGROUP: [u32; 3] = [256, 256, 64];
const MAX_INVOCATIONS: u32 = 256;
const MAX_WORKGROUP_BYTES: u64 = 16 * 1024;
/// Workgroup memory at drawn sizes: what most devices support.
const MAX_DRAWN_BYTES: u64 = 32 * 1024;
const MAX_WORKGROUPS: u64 = 65_535;
const MAX_PRIVATE_BYTES: u64 = 8 * 1024;
/// Largest array that is compiled, in bytes; larger than any memory except a buffer.
const MAX_TYPE_BYTES: u64 = 64 * 1024;
/// Most expressions and statements of a kernel, with every call replaced by the called function.
const MAX_LENGTH: u64 = 200_000;

/// Most branches and loops of a kernel: a driver's time to compile grows faster than their number.
const MAX_BRANCHES: u64 = 1000;
/// Most nested brackets, and most characters of a number or a name.
const MAX_NESTED: usize = 120;
const MAX_WORD: usize = 200;

/// A text with the sizes of one shape put in, parsed once for all that is done with it.
#[derive(Debug)]
pub struct ParsedText {
    pub filled: FilledTemplate,
    pub facts: KernelFacts,
    pub shader: Shader,
    /// Workgroups along each axis.
    pub grid: [u32; 3],
    /// Elements of each buffer.
    pub counts: Vec<usize>,
    /// The exercise's plain loop at this shape.
    reference: OnceCell<Reference>,
}

impl ParsedText {
    /// Parses a text at a shape and checks it against its exercise.
    ///
    /// # Errors
    /// With the first fault.
    pub fn parse(text: &str, spec: &KernelSpec, shape: &KernelShape) -> Result<Self, KernelError> {
        if text.len() as u64 > MAX_BYTES {
            return Err(too_large(text.len() as u64));
        }
        if text.trim().is_empty() {
            let instead = "reset the exercise to get the starter back";
            return Err(whole("the file is empty", instead));
        }
        let filled = template::fill(text, &shape.sizes)
            .map_err(|unknown| no_size(text, &unknown, &shape.sizes))?;
        let source = Source {
            text,
            filled: &filled,
            shape,
        };
        let (facts, module, info) = source.validate(spec).map_err(|error| error.at(shape))?;
        let grid = source.grid(spec, facts.workgroup).map_err(not_launched)?;
        let counts = spec.counts(&shape.sizes);
        let counts = counts.map_err(|what| whole(what, "another `count` in exercise.toml"))?;
        Ok(Self {
            shader: Shader::new(module, info, &filled.text),
            filled,
            facts,
            grid,
            counts,
            reference: OnceCell::new(),
        })
    }

    /// The exercise's plain loop at the shape of this text, parsed when it is first asked for.
    ///
    /// # Errors
    /// When it cannot be parsed.
    pub fn reference(&self, spec: &KernelSpec, sizes: &Sizes) -> Result<&Reference, String> {
        match self.reference.get() {
            Some(reference) => Ok(reference),
            None => {
                let parsed = Reference::parse(spec, sizes)?;
                Ok(self.reference.get_or_init(|| parsed))
            }
        }
    }
}

/// Parses a text at every shape.
///
/// # Errors
/// With the first fault.
pub fn validate(
    text: &str,
    spec: &KernelSpec,
    shapes: &[KernelShape],
) -> Result<Vec<ParsedText>, KernelError> {
    let all = shapes
        .iter()
        .map(|shape| ParsedText::parse(text, spec, shape));
    all.collect()
}

/// What texts at several shapes say about themselves together.
pub fn facts<'a>(texts: impl IntoIterator<Item = &'a ParsedText>) -> KernelFacts {
    let all = texts.into_iter().map(|text| text.facts);
    all.fold(KernelFacts::default(), |all, facts| KernelFacts {
        workgroup_bytes: facts.workgroup_bytes.max(all.workgroup_bytes),
        ..facts
    })
}

/// The error of a placeholder that names no size of the exercise.
fn no_size(text: &str, unknown: &UnknownSize, sizes: &BTreeMap<String, u64>) -> KernelError {
    let UnknownSize { name, place } = unknown;
    let names = sizes.keys().map(String::as_str);
    let all = names.clone().map(|name| format!("{{{{{name}}}}}"));
    let (all, near) = (all.collect::<Vec<_>>().join(", "), nearest(name, names));
    message::error(
        text,
        place,
        format!("`{name}` is not a size of this exercise"),
        format!("one of {all}; the nearest is {{{{{near}}}}}"),
    )
}

/// A text with the sizes of one shape put in, before it is validated.
struct Source<'a> {
    text: &'a str,
    filled: &'a FilledTemplate,
    shape: &'a KernelShape,
}

impl Source<'_> {
    /// An error about a span of the text.
    fn spanned(
        &self,
        span: Span,
        message: impl Into<String>,
        instead: impl Into<String>,
    ) -> KernelError {
        let place = self.filled.origin(&span.to_range().unwrap_or(0..0));
        message::error(self.text, &place, message.into(), instead.into())
    }

    /// An error at the first occurrence of one of `words` outside of comments.
    fn near(
        &self,
        words: &[&str],
        message: impl Into<String>,
        instead: impl Into<String>,
    ) -> KernelError {
        let text = without_comments(&self.filled.text);
        let place = |word: &&str| text.find(word).map(|at| at..at + word.len());
        let range = words.iter().find_map(place).unwrap_or(0..0);
        let span = Span::new(range.start as u32, range.end as u32);
        self.spanned(span, message, instead)
    }

    fn validate(
        &self,
        spec: &KernelSpec,
    ) -> Result<(KernelFacts, Module, ModuleInfo), KernelError> {
        let code = without_comments(&self.filled.text);
        let (extensions, capabilities): (&[&str], _) = match spec.matrix_cores {
            true => (
                &["f16", "wgpu_cooperative_matrix"],
                Capabilities::SHADER_FLOAT16 | Capabilities::COOPERATIVE_MATRIX,
            ),
            false => (&[], Capabilities::empty()),
        };
        let directives = code.split(';').map(str::trim_start);
        let enabled =
            directives.filter_map(|it| it.strip_prefix("enable")?.split_once(char::is_whitespace));
        let mut names = enabled.flat_map(|(_, names)| names.split(',').map(str::trim));
        if let Some(name) = names.find(|name| !extensions.contains(name)) {
            let message = format!("`{name}` is an extension that not every device has");
            return Err(self.near(&[name], message, "plain WGSL with f32"));
        }
        self.readable(&code)?;
        let module = naga::front::wgsl::parse_str(&self.filled.text)
            .map_err(|e| explain::parse(self.text, self.filled, &e))?;
        self.sizes(&module)?;
        let entry = self.entry(&module)?;
        self.workgroup(entry).map_err(not_launched)?;
        self.declared(&module, spec)?;
        let mut validator = Validator::new(ValidationFlags::all(), capabilities);
        let info = validator
            .validate(&module)
            .map_err(|e| explain::invalid(self.text, self.filled, &e))?;
        self.used(&module, &info, spec)?;
        let workgroup_bytes = self.memory(&module, &info).map_err(not_launched)?;
        let has = |is_one: fn(&Expression) -> bool| {
            let mut all = functions(&module).flat_map(|it| it.expressions.iter());
            all.any(|(_, expression)| is_one(expression))
        };
        let facts = KernelFacts {
            matrix_cores: has(|it| matches!(it, Expression::CooperativeMultiplyAdd { .. })),
            workgroup: entry.workgroup_size,
            workgroup_bytes,
            array_length: has(|it| matches!(it, Expression::ArrayLength(_))),
        };
        Ok((facts, module, info))
    }

    /// Refuses text on which a parser would overflow: very long words and deep nesting.
    fn readable(&self, code: &str) -> Result<(), KernelError> {
        let at = |range: std::ops::Range<usize>| Span::new(range.start as u32, range.end as u32);
        let word = longest(code, |c| c.is_alphanumeric() || c == '_' || c == '.');
        if word.len() > MAX_WORD {
            let message = format!(
                "a number or a name of {} characters; at most {MAX_WORD} are allowed",
                word.len()
            );
            return Err(self.spanned(at(word), message, "a shorter one"));
        }
        if let Some(bracket) = nested_deeper(code, MAX_NESTED) {
            let message = format!("more than {MAX_NESTED} nested brackets");
            let instead = "less deeply nested expressions and blocks";
            return Err(self.spanned(at(bracket..bracket + 1), message, instead));
        }
        Ok(())
    }

    /// Refuses text for which a driver would need gigabytes to compile: large types, and calls that multiply.
    fn sizes(&self, module: &Module) -> Result<(), KernelError> {
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
                    "an array of {count} elements, {bytes} bytes; at most {MAX_TYPE_BYTES} are compiled, and the variables of an invocation may have {MAX_PRIVATE_BYTES}"
                );
                let instead = "a smaller array; large data belongs in a buffer";
                let span = module.types.get_span(handle);
                return Err(match span.is_defined() {
                    true => self.spanned(span, message, instead),
                    false => self.near(&[&count.to_string(), "array<"], message, instead),
                });
            }
        }
        let mut written: HashMap<Handle<Function>, u64> = HashMap::new();
        let plain = module.functions.iter();
        let plain = plain.map(|(handle, function)| (Some(handle), function));
        let entries = module.entry_points.iter();
        for (handle, function) in plain.chain(entries.map(|entry| (None, &entry.function))) {
            let refuse = |message: String, instead: &str| {
                let name = function.name.as_deref().unwrap_or("main");
                Err(self.near(&[&format!("fn {name}"), "fn main"], message, instead))
            };
            let own = function.expressions.iter();
            let own = own.map(|(_, expression)| spelled_out(module, expression));
            let own = own.fold(0, u64::saturating_add);
            let length = own.saturating_add(inlined(&function.body, &written));
            if length > MAX_LENGTH {
                let message = format!(
                    "this function is {length} instructions long, because a driver copies every called function and constructor into it; at most {MAX_LENGTH} are allowed"
                );
                let instead = "a loop instead of calls that multiply, and smaller constructors";
                return refuse(message, instead);
            }
            let branches = branches(&function.body);
            if branches > MAX_BRANCHES {
                let message = format!(
                    "this function has {branches} branches, cases and loops; at most {MAX_BRANCHES} are compiled"
                );
                return refuse(message, "a loop or arithmetic instead of so many cases");
            }
            if let Some(handle) = handle {
                written.insert(handle, length);
            }
        }
        Ok(())
    }

    fn entry<'m>(&self, module: &'m Module) -> Result<&'m EntryPoint, KernelError> {
        const MAIN: &str = "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) { … }";
        const ONE: &str = "one @compute fn main, and plain functions that it calls";
        let entry = match module.entry_points.as_slice() {
            [entry] => entry,
            [] => {
                let message = "there is no entry point: no function is marked @compute";
                return Err(self.near(&["fn main"], message, MAIN));
            }
            several => {
                let names: Vec<_> = several.iter().map(|e| format!("`{}`", e.name)).collect();
                let (count, names) = (several.len(), names.join(" and "));
                let message =
                    format!("there are {count} entry points, {names}; only one can be launched");
                let second = format!("fn {}", several[1].name);
                return Err(self.near(&[&second], message, ONE));
            }
        };
        let declared = format!("fn {}", entry.name);
        if entry.stage != ShaderStage::Compute {
            let words = ["@vertex", "@fragment", &declared];
            return Err(self.near(&words, "the entry point is not a compute kernel", MAIN));
        }
        let name = &entry.name;
        if name != "main" {
            let message = format!("the entry point is called `{name}`; only `main` is launched");
            return Err(self.near(&[&declared], message, "fn main"));
        }
        if let Some((_, constant)) = module.overrides.iter().next() {
            let name = constant.name.as_deref().unwrap_or("override");
            let message = format!("`{name}` is an override, and overrides are not set here");
            return Err(self.near(&["override "], message, "`const`"));
        }
        Ok(entry)
    }

    /// Checks that the bindings are declared as in the exercise.
    fn declared(&self, module: &Module, spec: &KernelSpec) -> Result<(), KernelError> {
        let expected = |index: usize| {
            let KernelBinding { name, element, .. } = &spec.bindings[index];
            let element = element.into_str();
            format!(
                "@group(0) @binding({index}) var<storage, read_write> {name}: array<{element}>;"
            )
        };
        let last = spec.bindings.len().saturating_sub(1);
        let mut found = vec![None; spec.bindings.len()];
        for (handle, variable) in module.global_variables.iter() {
            let Some(place) = variable.binding else {
                continue;
            };
            let span = module.global_variables.get_span(handle);
            let name = variable.name.clone().unwrap_or_default();
            let index = place.binding as usize;
            let wrong =
                |message: String, instead: String| Err(self.spanned(span, message, instead));
            let group = place.group;
            if group != 0 || index > last {
                let message = format!(
                    "`{name}` is @group({group}) @binding({index}); this exercise has @group(0) and bindings 0 to {last}"
                );
                return wrong(message, expected(index.min(last)));
            }
            if let Some(other) = found[index].replace(name.clone()) {
                let message = format!("`{other}` and `{name}` are both @binding({index})");
                return wrong(message, format!("a different number for each, 0 to {last}"));
            }
            let both = StorageAccess::LOAD | StorageAccess::STORE;
            if !matches!(variable.space, AddressSpace::Storage { access } if access.contains(both))
            {
                let message = format!(
                    "`{name}` is not var<storage, read_write>: buffers share memory here, so every buffer is bound that way"
                );
                return wrong(message, expected(index));
            }
            let element = spec.bindings[index].element;
            if !is_array_of(module, variable.ty, element.into()) {
                let message = format!("`{name}` is not array<{}>", element.into_str());
                return wrong(message, expected(index));
            }
        }
        match found.iter().position(Option::is_none) {
            Some(missing) => Err(whole(
                format!("@binding({missing}) is not declared"),
                expected(missing),
            )),
            None => Ok(()),
        }
    }

    fn used(
        &self,
        module: &Module,
        info: &ModuleInfo,
        spec: &KernelSpec,
    ) -> Result<(), KernelError> {
        let uses = info.get_entry_point(0);
        for (handle, variable) in module.global_variables.iter() {
            let place = variable.binding.map(|place| place.binding as usize);
            let binding = place.and_then(|place| spec.bindings.get(place));
            let Some(binding) = binding.filter(|_| uses[handle].is_empty()) else {
                continue;
            };
            let name = variable.name.as_deref().unwrap_or_default();
            let what = match binding.role {
                KernelRole::In => "read",
                _ => "written",
            };
            let message = format!(
                "`{name}` is never {what}: an unused binding is removed, and the buffers no longer match"
            );
            let count = spec.bindings.len();
            let instead = format!("a kernel that uses each of its {count} buffers");
            let span = module.global_variables.get_span(handle);
            return Err(self.spanned(span, message, instead));
        }
        Ok(())
    }

    /// Checks that every device supports the size of the workgroup.
    fn workgroup(&self, entry: &EntryPoint) -> Result<(), KernelError> {
        let [x, y, z] = entry.workgroup_size;
        let total = u128::from(x) * u128::from(y) * u128::from(z);
        let [most_x, most_y, most_z] = MAX_WORKGROUP;
        let too_long = x > most_x || y > most_y || z > most_z;
        if too_long || total > MAX_INVOCATIONS.into() || total == 0 {
            let message = format!(
                "a workgroup of {x} × {y} × {z} = {total} invocations; every device supports up to {MAX_INVOCATIONS}, and up to {most_x} × {most_y} × {most_z} along x, y and z"
            );
            let instead = "@workgroup_size(64), or (16, 16) for a matrix";
            return Err(self.near(&["@workgroup_size"], message, instead));
        }
        Ok(())
    }

    /// Bytes of workgroup memory.
    fn memory(&self, module: &Module, info: &ModuleInfo) -> Result<u64, KernelError> {
        let uses = info.get_entry_point(0);
        let bytes = |ty: Handle<Type>| u64::from(module.types[ty].inner.size(module.to_ctx()));
        let (mut shared, mut private) = (0_u64, 0_u64);
        let mut last = [Span::UNDEFINED; 2];
        let globals = module.global_variables.iter();
        for (handle, variable) in globals.filter(|(handle, _)| !uses[*handle].is_empty()) {
            let (sum, which) = match variable.space {
                AddressSpace::WorkGroup => (&mut shared, 0),
                AddressSpace::Private => (&mut private, 1),
                _ => continue,
            };
            *sum = sum.saturating_add(bytes(variable.ty));
            last[which] = module.global_variables.get_span(handle);
        }
        for function in functions(module) {
            for (handle, variable) in function.local_variables.iter() {
                private = private.saturating_add(bytes(variable.ty));
                last[1] = function.local_variables.get_span(handle);
            }
        }
        let shape = &self.shape.label;
        let (most, who) = match self.shape.is_drawn() {
            true => (MAX_DRAWN_BYTES, "most devices have"),
            false => (MAX_WORKGROUP_BYTES, "every device has"),
        };
        if shared > most {
            let message =
                format!("{shared} bytes of workgroup memory in shape `{shape}`; {who} {most}");
            return Err(self.spanned(last[0], message, "smaller tiles"));
        }
        if private > MAX_PRIVATE_BYTES {
            let message = format!(
                "{private} bytes of variables for each invocation in shape `{shape}`; up to {MAX_PRIVATE_BYTES} are allowed"
            );
            return Err(self.spanned(last[1], message, "smaller arrays, or workgroup memory"));
        }
        Ok(shared)
    }

    /// Workgroups along each axis.
    fn grid(&self, spec: &KernelSpec, workgroup: [u32; 3]) -> Result<[u32; 3], KernelError> {
        let counts = spec.groups(&self.shape.sizes, workgroup);
        let counts = counts.map_err(|what| whole(what, "another `grid` in exercise.toml"))?;
        for (groups, axis) in counts.into_iter().zip(["x", "y", "z"]) {
            if groups > MAX_WORKGROUPS {
                let shape = &self.shape.label;
                let message = format!(
                    "shape `{shape}` needs {groups} workgroups along {axis}; every device launches up to {MAX_WORKGROUPS} along each axis"
                );
                let instead = format!("a larger workgroup along {axis}");
                return Err(self.near(&["@workgroup_size"], message, instead));
            }
        }
        Ok(counts.map(|groups| groups as u32))
    }
}

/// Marks an error of a text that is valid WGSL.
fn not_launched(error: KernelError) -> KernelError {
    KernelError {
        launch: true,
        ..error
    }
}

/// Instructions of an expression: one, or as many as a constructor has elements.
fn spelled_out(module: &Module, expression: &Expression) -> u64 {
    let elements = |ty: Handle<Type>| u64::from(module.types[ty].inner.size(module.to_ctx())) / 4;
    match expression {
        Expression::ZeroValue(ty) | Expression::Compose { ty, .. } => elements(*ty).max(1),
        Expression::Constant(constant) => elements(module.constants[*constant].ty).max(1),
        _ => 1,
    }
}

/// Length of a block: its own statements, and the length (`written`) of each function it calls.
fn inlined(block: &Block, written: &HashMap<Handle<Function>, u64>) -> u64 {
    let lengths = block.iter().map(|statement| match statement {
        Statement::Call { function, .. } => written.get(function).copied().unwrap_or(1),
        Statement::Block(_)
        | Statement::If { .. }
        | Statement::Switch { .. }
        | Statement::Loop { .. } => {
            let inner = blocks(statement).into_iter();
            let inner = inner.map(|block| inlined(block, written));
            inner.fold(0, u64::saturating_add)
        }
        _ => 1,
    });
    lengths.fold(0, u64::saturating_add)
}

/// Branches, cases and loops of a block.
fn branches(block: &Block) -> u64 {
    let each = block.iter().map(|statement| {
        let own = match statement {
            Statement::If { .. } | Statement::Loop { .. } => 1,
            Statement::Switch { cases, .. } => cases.len() as u64,
            _ => 0,
        };
        own + blocks(statement).into_iter().map(branches).sum::<u64>()
    });
    each.sum()
}

fn is_array_of(module: &Module, ty: Handle<Type>, element: Scalar) -> bool {
    match module.types[ty].inner {
        TypeInner::Array {
            base,
            size: ArraySize::Dynamic,
            ..
        } => module.types[base].inner == TypeInner::Scalar(element),
        _ => false,
    }
}
