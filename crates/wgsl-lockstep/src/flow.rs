//! Which values depend on memory, and which barriers are under conditions that do. Like a browser's analysis it follows what is
//! written, not what the lanes happen to do.

use std::collections::HashSet;

use naga::{
    AddressSpace, Block, Expression, Function, GlobalVariable, Handle, LocalVariable, Module, Span,
    Statement, StorageAccess,
};

use super::evaluate::operands;

/// A value comes from a buffer.
const DATA: u8 = 1;
/// A value comes from memory that another invocation may write.
const OPEN: u8 = 2;

/// What is known about a module before it runs.
#[derive(Default)]
pub(crate) struct Flow {
    /// By function, the entry points last; for each expression, whether it depends on the contents of a buffer.
    functions: Vec<Facts>,
    globals: Vec<u8>,
    /// Places of barriers under conditions on memory that another invocation may write.
    barriers: HashSet<(u32, u32)>,
}

#[derive(Clone, Default, PartialEq)]
struct Facts {
    values: Vec<u8>,
    locals: Vec<u8>,
    arguments: Vec<u8>,
    /// Stored through pointers that are arguments.
    given: u8,
    result: u8,
    /// The conditions under which the function is called.
    called: u8,
}

/// The conditions under which invocations have left a function, a loop or an iteration.
#[derive(Clone, Copy, Default)]
struct Left {
    function: u8,
    broken: u8,
    continued: u8,
}

impl Left {
    const fn all(self) -> u8 {
        self.function | self.broken | self.continued
    }
}

/// The variable that a pointer points into.
enum Variable {
    Global(Handle<GlobalVariable>),
    Local(Handle<LocalVariable>),
    Argument(u32),
    None,
}

fn variable(function: &Function, mut pointer: Handle<Expression>) -> Variable {
    loop {
        match function.expressions[pointer] {
            Expression::Access { base, .. } | Expression::AccessIndex { base, .. } => {
                pointer = base
            }
            Expression::GlobalVariable(handle) => return Variable::Global(handle),
            Expression::LocalVariable(handle) => return Variable::Local(handle),
            Expression::FunctionArgument(at) => return Variable::Argument(at),
            _ => return Variable::None,
        }
    }
}

fn key(span: Span) -> (u32, u32) {
    let range = span.to_range().unwrap_or_default();
    (range.start as u32, range.end as u32)
}

impl Flow {
    pub(crate) fn new(module: &Module) -> Self {
        let plain = module.functions.iter().map(|(_, function)| function);
        let entries = module.entry_points.iter().map(|entry| &entry.function);
        let all: Vec<&Function> = plain.chain(entries).collect();
        let facts = |function: &&Function| Facts {
            values: vec![0; function.expressions.len()],
            locals: vec![0; function.local_variables.len()],
            arguments: vec![0; function.arguments.len()],
            ..Facts::default()
        };
        let mut flow = Self {
            functions: all.iter().map(facts).collect(),
            globals: vec![0; module.global_variables.len()],
            barriers: HashSet::new(),
        };
        loop {
            let before = (flow.functions.clone(), flow.globals.clone());
            for (number, function) in all.iter().enumerate() {
                flow.expressions(module, function, number);
                let called = flow.functions[number].called;
                flow.block(
                    function,
                    number,
                    &function.body,
                    called,
                    &mut Left::default(),
                );
            }
            if before == (flow.functions.clone(), flow.globals.clone()) {
                return flow;
            }
        }
    }

    /// Whether an expression of a function depends on the contents of a buffer. Functions are numbered as in the module, the entry
    /// points after them.
    pub(crate) fn is_data(&self, function: usize, handle: Handle<Expression>) -> bool {
        self.functions[function].values[handle.index()] & DATA != 0
    }

    /// Whether a barrier is under a condition on memory that another invocation may write.
    pub(crate) fn is_open(&self, barrier: Span) -> bool {
        self.barriers.contains(&key(barrier))
    }

    fn memory(
        &self,
        module: &Module,
        function: &Function,
        number: usize,
        pointer: Handle<Expression>,
    ) -> u8 {
        let facts = &self.functions[number];
        match variable(function, pointer) {
            Variable::Global(handle) => match module.global_variables[handle].space {
                AddressSpace::Uniform => DATA,
                AddressSpace::Storage { access } if access.contains(StorageAccess::STORE) => {
                    DATA | OPEN
                }
                AddressSpace::Storage { .. } => DATA,
                AddressSpace::WorkGroup => OPEN | self.globals[handle.index()],
                _ => self.globals[handle.index()],
            },
            Variable::Local(handle) => facts.locals[handle.index()],
            Variable::Argument(at) => facts.arguments[at as usize],
            Variable::None => 0,
        }
    }

    fn expressions(&mut self, module: &Module, function: &Function, number: usize) {
        for (handle, expression) in function.expressions.iter() {
            let known = &self.functions[number].values;
            let own = match *expression {
                Expression::Load { pointer } => {
                    known[pointer.index()] | self.memory(module, function, number, pointer)
                }
                Expression::FunctionArgument(at) => self.functions[number].arguments[at as usize],
                Expression::AtomicResult { .. } => DATA | OPEN,
                Expression::CallResult(callee) => self.functions[callee.index()].result,
                _ => {
                    let parts = operands(expression).into_iter();
                    parts.fold(0, |all, part| all | known[part.index()])
                }
            };
            self.functions[number].values[handle.index()] |= own;
        }
    }

    fn store(
        &mut self,
        function: &Function,
        number: usize,
        pointer: Handle<Expression>,
        value: u8,
    ) {
        let facts = &mut self.functions[number];
        match variable(function, pointer) {
            Variable::Global(handle) => self.globals[handle.index()] |= value,
            Variable::Local(handle) => facts.locals[handle.index()] |= value,
            Variable::Argument(_) => facts.given |= value,
            Variable::None => {}
        }
    }

    /// Follows a block that runs `under` conditions.
    fn block(
        &mut self,
        function: &Function,
        number: usize,
        block: &Block,
        under: u8,
        left: &mut Left,
    ) {
        for (statement, span) in block.span_iter() {
            let now = under | left.all();
            let value =
                |flow: &Self, of: Handle<Expression>| flow.functions[number].values[of.index()];
            match statement {
                Statement::Block(inner) => self.block(function, number, inner, under, left),
                Statement::If {
                    condition,
                    accept,
                    reject,
                } => {
                    let under = now | value(self, *condition);
                    let mut other = *left;
                    self.block(function, number, accept, under, left);
                    self.block(function, number, reject, under, &mut other);
                    left.join(other);
                }
                Statement::Switch { selector, cases } => {
                    let under = now | value(self, *selector);
                    let mut inner = *left;
                    for case in cases {
                        self.block(function, number, &case.body, under, &mut inner);
                    }
                    (left.function, left.continued) = (inner.function, inner.continued);
                }
                Statement::Loop {
                    body,
                    continuing,
                    break_if,
                } => {
                    let mut inner = Left {
                        function: left.function,
                        ..Left::default()
                    };
                    // What leaves an iteration at its end decides about the beginning of the next.
                    for _ in 0..2 {
                        self.block(function, number, body, now, &mut inner);
                        inner.continued = 0;
                        self.block(function, number, continuing, now, &mut inner);
                        if let Some(condition) = break_if {
                            inner.broken |= value(self, *condition);
                        }
                    }
                    left.function = inner.function;
                }
                Statement::Break => left.broken |= now,
                Statement::Continue => left.continued |= now,
                Statement::Return { value: result } => {
                    left.function |= now;
                    let result = result.map_or(0, |result| value(self, result));
                    self.functions[number].result |= result | now;
                }
                Statement::ControlBarrier(_) if now & OPEN != 0 => {
                    self.barriers.insert(key(*span));
                }
                Statement::WorkGroupUniformLoad { pointer, result } => {
                    if now & OPEN != 0 {
                        self.barriers.insert(key(*span));
                    }
                    let of = match variable(function, *pointer) {
                        Variable::Global(handle) => self.globals[handle.index()] & DATA,
                        _ => 0,
                    };
                    self.functions[number].values[result.index()] |= of;
                }
                Statement::Store { pointer, value: of } => {
                    let of = value(self, *of) | value(self, *pointer) | now;
                    self.store(function, number, *pointer, of);
                }
                Statement::Atomic {
                    pointer, value: of, ..
                } => {
                    let of = value(self, *of) | now;
                    self.store(function, number, *pointer, of);
                }
                Statement::SubgroupGather {
                    argument, result, ..
                }
                | Statement::SubgroupCollectiveOperation {
                    argument, result, ..
                } => {
                    let of = value(self, *argument);
                    self.functions[number].values[result.index()] |= of;
                }
                Statement::Call {
                    function: callee,
                    arguments,
                    ..
                } => {
                    self.functions[callee.index()].called |= now;
                    let given = self.functions[callee.index()].given;
                    for (at, argument) in arguments.iter().enumerate() {
                        let mut of = value(self, *argument);
                        if let Variable::Local(handle) = variable(function, *argument) {
                            of |= self.functions[number].locals[handle.index()];
                        }
                        self.functions[callee.index()].arguments[at] |= of;
                        self.store(function, number, *argument, given);
                    }
                }
                _ => {}
            }
        }
    }
}

impl Left {
    fn join(&mut self, other: Self) {
        self.function |= other.function;
        self.broken |= other.broken;
        self.continued |= other.continued;
    }
}
