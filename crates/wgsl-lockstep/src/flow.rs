//! Finds the values that depend on memory, and the barriers under conditions that depend on memory. Like a browser's analysis, it
//! follows the source and not what the lanes happen to do: a barrier inside `if (x[0] > 0.0)` is found although all lanes read one
//! element.

use std::collections::HashSet;

use naga::{
    AddressSpace, Block, Expression, Function, GlobalVariable, Handle, LocalVariable, Module, Span,
    Statement, StorageAccess,
};

use super::code::operands;

/// Marks a value that comes from a buffer.
const FROM_BUFFER: u8 = 1;
/// Marks a value that comes from memory which another invocation may write.
const FROM_WRITABLE: u8 = 2;

/// The marks of a module's values, and its barriers under conditions on memory. A `u8` holds the marks of a value.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    /// The marks of each function's values, the entry points last.
    functions: Vec<FunctionMarks>,
    /// The marks of each global variable.
    globals: Vec<u8>,
    /// Spans of barriers under conditions on memory that another invocation may write.
    barriers: HashSet<(u32, u32)>,
}

/// The marks of a function's values. The function is followed statement by statement.
#[derive(Clone, Debug, Default, PartialEq)]
struct FunctionMarks {
    /// The marks of each expression where it was evaluated last.
    values: Vec<u8>,
    /// The marks of each expression wherever it was evaluated.
    values_ever: Vec<u8>,
    /// The marks of each local variable at the present statement.
    locals: Vec<u8>,
    /// The number of loops around the present statement.
    loops: usize,
    /// The marks of each argument.
    arguments: Vec<u8>,
    /// The marks of the values that are stored through pointers among the arguments.
    stored_through_arguments: u8,
    /// The marks of the result.
    result: u8,
    /// The marks of the conditions under which the function is called.
    called_under: u8,
}

/// The marks of the conditions under which invocations have left a function, a loop or an iteration.
#[derive(Clone, Copy, Default, PartialEq)]
struct Exits {
    function: u8,
    broken: u8,
    continued: u8,
}

impl Exits {
    const fn all(self) -> u8 {
        self.function | self.broken | self.continued
    }
}

/// The function that is followed, with its number.
#[derive(Clone, Copy)]
struct Walk<'a> {
    module: &'a Module,
    function: &'a Function,
    number: usize,
}

/// The variable that a pointer points into.
enum Variable {
    Global(Handle<GlobalVariable>),
    Local(Handle<LocalVariable>),
    Argument(u32),
    None,
}

/// Returns the variable that a pointer points into.
fn variable(function: &Function, mut pointer: Handle<Expression>) -> Variable {
    loop {
        match function.expressions[pointer] {
            Expression::Access { base, .. } | Expression::AccessIndex { base, .. } => {
                pointer = base
            }
            Expression::GlobalVariable(handle) => return Variable::Global(handle),
            Expression::LocalVariable(handle) => return Variable::Local(handle),
            Expression::FunctionArgument(index) => return Variable::Argument(index),
            _ => return Variable::None,
        }
    }
}

/// Returns the first and the last byte of a span.
fn span_key(span: Span) -> (u32, u32) {
    let range = span.to_range().unwrap_or_default();
    (range.start as u32, range.end as u32)
}

impl Flow {
    pub(crate) fn new(module: &Module) -> Self {
        let plain = module.functions.iter().map(|(_, function)| function);
        let entries = module.entry_points.iter().map(|entry| &entry.function);
        let all: Vec<&Function> = plain.chain(entries).collect();
        let marks = |function: &&Function| FunctionMarks {
            values: vec![0; function.expressions.len()],
            values_ever: vec![0; function.expressions.len()],
            locals: vec![0; function.local_variables.len()],
            arguments: vec![0; function.arguments.len()],
            ..FunctionMarks::default()
        };
        let mut flow = Self {
            functions: all.iter().map(marks).collect(),
            globals: vec![0; module.global_variables.len()],
            barriers: HashSet::new(),
        };
        loop {
            let before = (flow.functions.clone(), flow.globals.clone());
            for (number, function) in all.iter().enumerate() {
                let walk = Walk {
                    module,
                    function,
                    number,
                };
                flow.functions[number].locals.fill(0);
                // Arguments and constants are evaluated by no statement.
                for (handle, _) in function.expressions.iter() {
                    flow.evaluate(walk, handle);
                }
                let called_under = flow.functions[number].called_under;
                flow.block(walk, &function.body, called_under, &mut Exits::default());
            }
            if before == (flow.functions.clone(), flow.globals.clone()) {
                return flow;
            }
        }
    }

    /// Returns true if an expression of a function depends on the contents of a buffer. Functions are numbered as in the module, the entry
    /// points after them.
    pub(crate) fn is_data(&self, function: usize, handle: Handle<Expression>) -> bool {
        self.functions[function].values_ever[handle.index()] & FROM_BUFFER != 0
    }

    /// Returns true if a barrier is under a condition on memory that another invocation may write.
    pub(crate) fn depends_on_writable_memory(&self, barrier: Span) -> bool {
        self.barriers.contains(&span_key(barrier))
    }

    /// Returns the marks of a value that is loaded through a pointer.
    fn memory(&self, walk: Walk<'_>, pointer: Handle<Expression>) -> u8 {
        let marks = &self.functions[walk.number];
        match variable(walk.function, pointer) {
            Variable::Global(handle) => match walk.module.global_variables[handle].space {
                AddressSpace::Uniform => FROM_BUFFER,
                AddressSpace::Storage { access } if access.contains(StorageAccess::STORE) => {
                    FROM_BUFFER | FROM_WRITABLE
                }
                AddressSpace::Storage { .. } => FROM_BUFFER,
                AddressSpace::WorkGroup => FROM_WRITABLE | self.globals[handle.index()],
                _ => self.globals[handle.index()],
            },
            Variable::Local(handle) => marks.locals[handle.index()],
            Variable::Argument(index) => marks.arguments[index as usize],
            Variable::None => 0,
        }
    }

    /// Sets the marks of an expression: those of its operands, or of the memory that it loads.
    fn evaluate(&mut self, walk: Walk<'_>, handle: Handle<Expression>) {
        let marks = &self.functions[walk.number];
        let expression = &walk.function.expressions[handle];
        let value = match *expression {
            Expression::Load { pointer } => {
                marks.values[pointer.index()] | self.memory(walk, pointer)
            }
            Expression::FunctionArgument(index) => marks.arguments[index as usize],
            // The statement that makes a result sets it.
            Expression::AtomicResult { .. }
            | Expression::CallResult(_)
            | Expression::WorkGroupUniformLoadResult { .. }
            | Expression::SubgroupBallotResult
            | Expression::SubgroupOperationResult { .. } => marks.values[handle.index()],
            _ => {
                let parts = operands(expression).into_iter();
                parts.fold(0, |all, part| all | marks.values[part.index()])
            }
        };
        self.set(walk.number, handle, value);
    }

    fn set(&mut self, number: usize, handle: Handle<Expression>, value: u8) {
        let marks = &mut self.functions[number];
        marks.values[handle.index()] = value;
        marks.values_ever[handle.index()] |= value;
    }

    /// Adds the marks of a stored value to those of the variable.
    fn store(&mut self, walk: Walk<'_>, pointer: Handle<Expression>, value: u8) {
        let marks = &mut self.functions[walk.number];
        match variable(walk.function, pointer) {
            Variable::Global(handle) => self.globals[handle.index()] |= value,
            Variable::Local(handle) => {
                let local = &mut marks.locals[handle.index()];
                let whole = matches!(
                    walk.function.expressions[pointer],
                    Expression::LocalVariable(_)
                );
                // In a loop, the value of an earlier iteration may still be there.
                *local = if whole && marks.loops == 0 {
                    value
                } else {
                    *local | value
                };
            }
            Variable::Argument(_) => marks.stored_through_arguments |= value,
            Variable::None => {}
        }
    }

    /// Adds the marks of the local variables at the end of another branch.
    fn join(&mut self, number: usize, other: &[u8]) {
        let locals = self.functions[number].locals.iter_mut().zip(other);
        locals.for_each(|(local, other)| *local |= other);
    }

    /// Follows a block that runs under conditions with these marks.
    fn block(&mut self, walk: Walk<'_>, block: &Block, under: u8, exits: &mut Exits) {
        let number = walk.number;
        for (statement, span) in block.span_iter() {
            let now = under | exits.all();
            let marks_of = |flow: &Self, operand: Handle<Expression>| {
                flow.functions[number].values[operand.index()]
            };
            match statement {
                Statement::Emit(range) => {
                    for handle in range.clone() {
                        self.evaluate(walk, handle);
                    }
                }
                Statement::Block(inner) => self.block(walk, inner, under, exits),
                Statement::If {
                    condition,
                    accept,
                    reject,
                } => {
                    let under = now | marks_of(self, *condition);
                    let mut other = *exits;
                    let before = self.functions[number].locals.clone();
                    self.block(walk, accept, under, exits);
                    let after = std::mem::replace(&mut self.functions[number].locals, before);
                    self.block(walk, reject, under, &mut other);
                    self.join(number, &after);
                    exits.join(other);
                }
                Statement::Switch { selector, cases } => {
                    let under = now | marks_of(self, *selector);
                    let mut inner = *exits;
                    let before = self.functions[number].locals.clone();
                    let mut after = before.clone();
                    for case in cases {
                        self.join(number, &before);
                        self.block(walk, &case.body, under, &mut inner);
                        let locals = after.iter_mut().zip(&self.functions[number].locals);
                        locals.for_each(|(all, local)| *all |= local);
                    }
                    self.functions[number].locals = after;
                    exits.function = inner.function;
                    exits.continued = inner.continued;
                }
                Statement::Loop {
                    body,
                    continuing,
                    break_if,
                } => {
                    let mut inner = Exits {
                        function: exits.function,
                        ..Exits::default()
                    };
                    self.functions[number].loops += 1;
                    // The lanes that leave an iteration and the values that variables keep decide about the next one, so this goes on until
                    // nothing changes.
                    loop {
                        let before = (inner, self.functions[number].locals.clone());
                        self.block(walk, body, now, &mut inner);
                        inner.continued = 0;
                        self.block(walk, continuing, now, &mut inner);
                        if let Some(condition) = break_if {
                            inner.broken |= marks_of(self, *condition);
                        }
                        if before == (inner, self.functions[number].locals.clone()) {
                            break;
                        }
                    }
                    self.functions[number].loops -= 1;
                    exits.function = inner.function;
                }
                Statement::Break => exits.broken |= now,
                Statement::Continue => exits.continued |= now,
                Statement::Return { value: result } => {
                    exits.function |= now;
                    let returned = result.map_or(0, |result| marks_of(self, result));
                    self.functions[number].result |= returned | now;
                }
                Statement::ControlBarrier(_) if now & FROM_WRITABLE != 0 => {
                    self.barriers.insert(span_key(*span));
                }
                Statement::WorkGroupUniformLoad { pointer, result } => {
                    if now & FROM_WRITABLE != 0 {
                        self.barriers.insert(span_key(*span));
                    }
                    let marks = match variable(walk.function, *pointer) {
                        Variable::Global(handle) => self.globals[handle.index()] & FROM_BUFFER,
                        _ => 0,
                    };
                    self.set(number, *result, marks);
                }
                Statement::Store {
                    pointer,
                    value: stored,
                } => {
                    let marks = marks_of(self, *stored) | marks_of(self, *pointer) | now;
                    self.store(walk, *pointer, marks);
                }
                Statement::Atomic {
                    pointer,
                    value: stored,
                    result,
                    ..
                } => {
                    let marks = marks_of(self, *stored) | now;
                    self.store(walk, *pointer, marks);
                    if let Some(result) = result {
                        self.set(number, *result, FROM_BUFFER | FROM_WRITABLE);
                    }
                }
                Statement::SubgroupGather {
                    argument, result, ..
                }
                | Statement::SubgroupCollectiveOperation {
                    argument, result, ..
                } => self.set(number, *result, marks_of(self, *argument)),
                Statement::Call {
                    function: callee,
                    arguments,
                    result,
                } => {
                    self.functions[callee.index()].called_under |= now;
                    let FunctionMarks {
                        stored_through_arguments,
                        result: gives,
                        ..
                    } = self.functions[callee.index()];
                    for (index, argument) in arguments.iter().enumerate() {
                        let mut marks = marks_of(self, *argument);
                        if let Variable::Local(handle) = variable(walk.function, *argument) {
                            marks |= self.functions[number].locals[handle.index()];
                            self.functions[number].locals[handle.index()] |=
                                stored_through_arguments;
                        }
                        self.functions[callee.index()].arguments[index] |= marks;
                    }
                    if let Some(result) = result {
                        self.set(number, *result, gives);
                    }
                }
                _ => {}
            }
        }
    }
}

impl Exits {
    fn join(&mut self, other: Self) {
        self.function |= other.function;
        self.broken |= other.broken;
        self.continued |= other.continued;
    }
}
