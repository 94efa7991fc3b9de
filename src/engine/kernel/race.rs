//! Probes for races in workgroup memory. Each element keeps which invocations read and wrote it since the last barrier: one
//! that is written belongs to one invocation alone until the next. Whether the lanes of a device run together or apart makes
//! no difference to what is found. Arrays of one axis or two are watched, and single numbers; atomics are not.

use std::collections::HashMap;
use std::ops::Range;

use naga::{
    AddressSpace, ArraySize, Barrier, Block, Expression, Function, GlobalVariable, Handle, Module,
    Scalar, Statement, Type, TypeInner,
};

use super::tree::{blocks, functions};

/// Numbers that each element keeps: its readers with the highest and the lowest number, and its writers.
const CELL: usize = 4;
/// The first workgroup and the last are watched.
const GROUPS: usize = 2;

const READ: u32 = 1;
const WRITE: u32 = 2;
/// Touched in a way that is not followed.
const OTHER: u32 = 4;

/// What a place in the text takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// A row of so many elements; the index into it follows.
    Row(u32),
    Element {
        /// Number of the array's first element among all elements.
        first: u32,
        in_row: bool,
        /// `READ`, `WRITE` or both.
        kind: u32,
    },
}

/// A single number that is read, as this type, or written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Single {
    first: u32,
    read: Option<&'static str>,
}

impl Single {
    /// What to put before and behind it, as site `number`.
    pub fn pieces(&self, number: usize) -> (String, String) {
        let first = self.first;
        match self.read {
            Some(ty) => (
                format!("perflings_single_{ty}("),
                format!(", {number}u, {first}u)"),
            ),
            // `+=` reads as well, and what it reads is its own.
            None => (
                format!("perflings_single({number}u, {first}u, {WRITE}u); "),
                String::new(),
            ),
        }
    }
}

/// The arrays in workgroup memory.
#[derive(Default)]
pub struct Watch {
    first: HashMap<Handle<GlobalVariable>, u32>,
    elements: u32,
}

impl Watch {
    /// Every array there is; none where a barrier may be hidden in a load.
    pub fn new(module: &Module) -> Self {
        let mut watch = Self::default();
        if functions(module).any(|function| loads_uniformly(&function.body)) {
            return watch;
        }
        for (handle, variable) in module.global_variables.iter() {
            if variable.space != AddressSpace::WorkGroup {
                continue;
            }
            let count = match row(module, variable.ty) {
                Some((count, element)) if is_plain(module, element) => count,
                Some((count, element)) => match row(module, element) {
                    Some((inner, element)) if is_plain(module, element) => {
                        count.saturating_mul(inner)
                    }
                    _ => continue,
                },
                None if scalar(module, variable.ty).is_some() => 1,
                None => continue,
            };
            watch.first.insert(handle, watch.elements);
            watch.elements = watch.elements.saturating_add(count);
        }
        watch
    }

    /// Numbers in the probe's buffer.
    pub fn words(&self) -> usize {
        GROUPS * CELL * self.elements as usize
    }

    /// What `handle` takes, an element of `base`.
    pub fn cell(
        &self,
        module: &Module,
        function: &Function,
        touched: &HashMap<Handle<Expression>, u32>,
        base: Handle<Expression>,
        handle: Handle<Expression>,
    ) -> Option<Cell> {
        let (variable, in_row) = match function.expressions[base] {
            Expression::GlobalVariable(variable) => (variable, false),
            Expression::Access { base, .. } | Expression::AccessIndex { base, .. } => {
                match function.expressions[base] {
                    Expression::GlobalVariable(variable) => (variable, true),
                    _ => return None,
                }
            }
            _ => return None,
        };
        let first = *self.first.get(&variable)?;
        let (_, element) = row(module, module.global_variables[variable].ty)?;
        match row(module, element) {
            Some((inner, _)) if !in_row => Some(Cell::Row(inner)),
            // A component of a vector.
            None if in_row => None,
            _ => {
                let kind = touched.get(&handle).copied().unwrap_or(OTHER);
                (kind & OTHER == 0).then_some(Cell::Element {
                    first,
                    in_row,
                    kind,
                })
            }
        }
    }

    /// Where single numbers in workgroup memory are read and written: the text of each, and what kind it is.
    pub fn singles(&self, module: &Module, function: &Function) -> Vec<(Range<usize>, Single)> {
        let first = |pointer: &Handle<Expression>| match function.expressions[*pointer] {
            Expression::GlobalVariable(variable) => {
                let ty = scalar(module, module.global_variables[variable].ty)?;
                Some((*self.first.get(&variable)?, ty))
            }
            _ => None,
        };
        let mut found = Vec::new();
        written(&function.body, &mut |pointer, range| {
            if let Some((first, _)) = first(pointer) {
                found.push((range, Single { first, read: None }));
            }
        });
        let writes: Vec<usize> = found.iter().map(|(range, _)| range.start).collect();
        for (handle, expression) in function.expressions.iter() {
            if let Expression::Load { pointer } = expression
                && let Some((first, ty)) = first(pointer)
                && let Some(range) = function.expressions.get_span(handle).to_range()
                // The left side of `+=`.
                && !writes.contains(&range.start)
                && found.iter().all(|(known, _)| *known != range)
            {
                let read = Some(ty);
                found.push((range, Single { first, read }));
            }
        }
        found
    }

    /// The functions that take note, and the variables that they need. `words` of the buffer are used otherwise.
    pub fn functions(&self, words: usize) -> String {
        let elements = self.elements;
        format!(
            "
var<private> perflings_me: u32;
var<private> perflings_watched: u32;
var<private> perflings_phase: u32 = 1u;
var<private> perflings_row: u32;
fn perflings_row_of(site: u32, count: u32, index: u32, inner: u32) -> u32 {{
    perflings_row = index * inner;
    return perflings_shared(site, count, index);
}}
fn perflings_cell(site: u32, count: u32, index: u32, first: u32, kind: u32) -> u32 {{
    if (perflings_watched > 0u && index < count) {{
        let at = {words}u + {CELL}u * ((perflings_watched - 1u) * {elements}u + first + index);
        let high = perflings_phase * 512u + perflings_me;
        let low = perflings_phase * 512u + 511u - perflings_me;
        if ((kind & {READ}u) != 0u) {{
            atomicMax(&perflings_seen[at], high);
            atomicMax(&perflings_seen[at + 1u], low);
        }}
        if ((kind & {WRITE}u) != 0u) {{
            atomicMax(&perflings_seen[at + 2u], high);
            atomicMax(&perflings_seen[at + 3u], low);
        }}
        let races = perflings_others(at + 2u) || ((kind & {WRITE}u) != 0u && perflings_others(at));
        if (races && atomicAdd(&perflings_seen[5], 1u) == 0u) {{
            atomicStore(&perflings_seen[6], site);
            atomicStore(&perflings_seen[7], index);
        }}
    }}
    return perflings_shared(site, count, index);
}}
fn perflings_single(site: u32, first: u32, kind: u32) {{
    _ = perflings_cell(site, 1u, 0u, first, kind);
}}
fn perflings_single_f32(value: f32, site: u32, first: u32) -> f32 {{
    perflings_single(site, first, {READ}u);
    return value;
}}
fn perflings_single_u32(value: u32, site: u32, first: u32) -> u32 {{
    perflings_single(site, first, {READ}u);
    return value;
}}
fn perflings_single_i32(value: i32, site: u32, first: u32) -> i32 {{
    perflings_single(site, first, {READ}u);
    return value;
}}
fn perflings_others(at: u32) -> bool {{
    let high = atomicLoad(&perflings_seen[at]);
    let low = atomicLoad(&perflings_seen[at + 1u]);
    return (high / 512u == perflings_phase && high % 512u != perflings_me)
        || (low / 512u == perflings_phase && low % 512u != 511u - perflings_me);
}}
"
        )
    }
}

/// Put before a barrier.
pub const BARRIER: &str = "perflings_phase += 1u; ";

/// Put at the beginning of `main`: who this is, and whether its workgroup is watched.
pub fn begin(index: &str, group: &str, grid: [u32; 3]) -> String {
    let [x, y, z] = grid.map(|count| count.saturating_sub(1));
    format!(
        "perflings_me = {index} + 1u; if ({group}.x == {x}u && {group}.y == {y}u && {group}.z == {z}u) {{ perflings_watched = 2u; }} if ({group}.x == 0u && {group}.y == 0u && {group}.z == 0u) {{ perflings_watched = 1u; }} "
    )
}

/// Where the barriers are, each as the byte at which it begins.
pub fn barriers(block: &Block, found: &mut Vec<usize>) {
    for (statement, span) in block.span_iter() {
        if let Statement::ControlBarrier(flags) = statement
            && flags.contains(Barrier::WORK_GROUP)
            && let Some(range) = span.to_range()
        {
            found.push(range.start);
        }
        for inner in blocks(statement) {
            barriers(inner, found);
        }
    }
}

/// How the function touches what each of its pointers leads to.
pub fn touched(function: &Function) -> HashMap<Handle<Expression>, u32> {
    let mut kinds = HashMap::new();
    for (_, expression) in function.expressions.iter() {
        if let Expression::Load { pointer } = expression {
            mark(function, *pointer, READ, &mut kinds);
        }
    }
    stores(function, &function.body, &mut kinds);
    kinds
}

fn stores(function: &Function, block: &Block, kinds: &mut HashMap<Handle<Expression>, u32>) {
    for statement in block {
        match statement {
            Statement::Store { pointer, .. } => mark(function, *pointer, WRITE, kinds),
            Statement::Atomic { pointer, .. } => mark(function, *pointer, OTHER, kinds),
            Statement::Call { arguments, .. } => {
                for argument in arguments {
                    mark(function, *argument, OTHER, kinds);
                }
            }
            _ => {}
        }
        for inner in blocks(statement) {
            stores(function, inner, kinds);
        }
    }
}

fn mark(
    function: &Function,
    mut pointer: Handle<Expression>,
    kind: u32,
    kinds: &mut HashMap<Handle<Expression>, u32>,
) {
    loop {
        *kinds.entry(pointer).or_default() |= kind;
        match function.expressions[pointer] {
            Expression::Access { base, .. } | Expression::AccessIndex { base, .. } => {
                pointer = base;
            }
            _ => return,
        }
    }
}

fn loads_uniformly(block: &Block) -> bool {
    block.iter().any(|statement| {
        matches!(statement, Statement::WorkGroupUniformLoad { .. })
            || blocks(statement).into_iter().any(loads_uniformly)
    })
}

fn written(block: &Block, found: &mut impl FnMut(&Handle<Expression>, Range<usize>)) {
    for (statement, span) in block.span_iter() {
        if let Statement::Store { pointer, .. } = statement
            && let Some(range) = span.to_range()
        {
            found(pointer, range);
        }
        for inner in blocks(statement) {
            written(inner, found);
        }
    }
}

/// The name of a number's type.
fn scalar(module: &Module, ty: Handle<Type>) -> Option<&'static str> {
    match module.types[ty].inner {
        TypeInner::Scalar(Scalar::F32) => Some("f32"),
        TypeInner::Scalar(Scalar::U32) => Some("u32"),
        TypeInner::Scalar(Scalar::I32) => Some("i32"),
        _ => None,
    }
}

/// Length and element of an array.
fn row(module: &Module, ty: Handle<Type>) -> Option<(u32, Handle<Type>)> {
    match module.types[ty].inner {
        TypeInner::Array {
            base,
            size: ArraySize::Constant(count),
            ..
        } => Some((count.get(), base)),
        _ => None,
    }
}

fn is_plain(module: &Module, ty: Handle<Type>) -> bool {
    matches!(
        module.types[ty].inner,
        TypeInner::Scalar(_) | TypeInner::Vector { .. }
    )
}
