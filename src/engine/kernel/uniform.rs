//! Whether every invocation of a workgroup reaches the same barriers. A heuristic on naga's tree, which knows no such rule
//! of its own: no barrier may stand inside, or after a partial `return`, of a branch on the invocation's own place.

use naga::{Block, BuiltIn, Function, Module, Span, Statement};

use super::places::{self, InvocationDependent};

/// The first barrier that some invocations of a workgroup may not reach.
pub fn divergent_barrier(module: &Module) -> Option<Span> {
    let entry = &module.entry_points.first()?.function;
    let own = [
        BuiltIn::GlobalInvocationId,
        BuiltIn::LocalInvocationId,
        BuiltIn::LocalInvocationIndex,
    ];
    let arguments = places::arguments(module, entry, &own);
    Walk {
        module,
        found: None,
    }
    .function(entry, &arguments, false)
}

struct Walk<'a> {
    module: &'a Module,
    found: Option<Span>,
}

/// Whether all invocations are still on the same path.
#[derive(Clone, Copy, Default)]
struct Convergence {
    /// Some have returned.
    returned: bool,
    /// Some have left this loop, or this round of it.
    left: bool,
}

impl Convergence {
    /// At the start of a loop or a case: nobody has left it yet.
    fn entering(self) -> Self {
        Self {
            left: false,
            ..self
        }
    }
}

impl Walk<'_> {
    fn function(mut self, function: &Function, arguments: &[bool], apart: bool) -> Option<Span> {
        let places = InvocationDependent::new(function, arguments);
        self.block(&places, &function.body, apart, &mut Convergence::default());
        self.found
    }

    /// Walks a block; `apart`: a condition around it holds for some only.
    fn block(
        &mut self,
        places: &InvocationDependent<'_>,
        block: &Block,
        apart: bool,
        state: &mut Convergence,
    ) {
        for (statement, span) in block.span_iter() {
            let apart_here = apart || state.returned || state.left;
            match statement {
                Statement::ControlBarrier(_)
                | Statement::MemoryBarrier(_)
                | Statement::WorkGroupUniformLoad { .. }
                    if apart_here =>
                {
                    self.found.get_or_insert(*span);
                }
                Statement::Return { .. } | Statement::Kill if apart => state.returned = true,
                Statement::Break | Statement::Continue if apart => state.left = true,
                Statement::Block(inner) => self.block(places, inner, apart, state),
                Statement::If {
                    condition,
                    accept,
                    reject,
                } => {
                    let apart = apart || places.contains(*condition);
                    self.block(places, accept, apart, state);
                    self.block(places, reject, apart, state);
                }
                Statement::Switch { selector, cases } => {
                    let apart = apart || places.contains(*selector);
                    for case in cases {
                        let mut inner = state.entering();
                        self.block(places, &case.body, apart, &mut inner);
                        state.returned |= inner.returned;
                    }
                }
                Statement::Loop {
                    body,
                    continuing,
                    break_if,
                } => {
                    let mut inner = state.entering();
                    // The second round starts with the invocations that remain from the first.
                    for _ in 0..2 {
                        self.block(places, body, apart, &mut inner);
                        self.block(places, continuing, apart, &mut inner);
                        inner.left |= break_if.is_some_and(|condition| places.contains(condition));
                    }
                    state.returned |= inner.returned;
                }
                Statement::Call {
                    function,
                    arguments,
                    ..
                } => {
                    let arguments = arguments.iter().map(|it| places.contains(*it));
                    let arguments: Vec<bool> = arguments.collect();
                    let inner = Walk {
                        module: self.module,
                        found: None,
                    };
                    let found =
                        inner.function(&self.module.functions[*function], &arguments, apart_here);
                    self.found = self.found.or(found.map(|_| *span));
                }
                _ => {}
            }
        }
    }
}
