//! Whether a kernel asks if it is inside before it writes. A heuristic on naga's tree: every write to a buffer has to
//! stand inside, or after, a branch on something that comes from global_invocation_id or workgroup_id.

use naga::valid::{GlobalUse, ModuleInfo};
use naga::{AddressSpace, Block, BuiltIn, Expression, Function, Handle, Module, Span, Statement};

use super::places::{self, Places};
use super::tree::root;

/// The first write that no branch guards, and the buffer's name.
pub fn unchecked(module: &Module, info: &ModuleInfo) -> Option<(Span, String)> {
    let entry = &module.entry_points.first()?.function;
    let arguments = places::arguments(
        module,
        entry,
        &[BuiltIn::GlobalInvocationId, BuiltIn::WorkGroupId],
    );
    Walk {
        module,
        info,
        found: None,
    }
    .function(entry, &arguments, false)
}

struct Walk<'a> {
    module: &'a Module,
    info: &'a ModuleInfo,
    found: Option<(Span, String)>,
}

impl Walk<'_> {
    fn function(
        mut self,
        function: &Function,
        arguments: &[bool],
        guarded: bool,
    ) -> Option<(Span, String)> {
        let places = Places::new(function, arguments);
        self.block(&places, &function.body, guarded);
        self.found
    }

    /// Whether what follows the block is guarded.
    fn block(&mut self, places: &Places<'_>, block: &Block, mut guarded: bool) -> bool {
        for (statement, span) in block.span_iter() {
            match statement {
                Statement::Block(inner) => guarded = self.block(places, inner, guarded),
                Statement::If {
                    condition,
                    accept,
                    reject,
                } => {
                    let inside = guarded || places.holds(*condition);
                    self.block(places, accept, inside);
                    self.block(places, reject, inside);
                    guarded |= inside && (leaves(accept) || leaves(reject));
                }
                Statement::Switch { selector, cases } => {
                    let inside = guarded || places.holds(*selector);
                    cases.iter().for_each(|case| {
                        self.block(places, &case.body, inside);
                    });
                }
                Statement::Loop {
                    body, continuing, ..
                } => {
                    let inside = self.block(places, body, guarded);
                    self.block(places, continuing, inside);
                }
                Statement::Store { pointer, .. } if !guarded => {
                    self.store(places.function, *pointer, *span)
                }
                Statement::Call {
                    function,
                    arguments,
                    ..
                } if !guarded && self.writes(*function) => {
                    let arguments: Vec<bool> = arguments
                        .iter()
                        .map(|argument| places.holds(*argument))
                        .collect();
                    let inner = Walk {
                        module: self.module,
                        info: self.info,
                        found: None,
                    };
                    let found =
                        inner.function(&self.module.functions[*function], &arguments, false);
                    self.found = self.found.take().or(found);
                }
                _ => {}
            }
        }
        guarded
    }

    fn store(&mut self, function: &Function, pointer: Handle<Expression>, span: Span) {
        if let Expression::GlobalVariable(variable) = root(function, pointer)
            && let AddressSpace::Storage { .. } = self.module.global_variables[*variable].space
        {
            let name = self.module.global_variables[*variable]
                .name
                .clone()
                .unwrap_or_default();
            self.found.get_or_insert((span, name));
        }
    }

    /// Whether a function writes to a buffer.
    fn writes(&self, function: Handle<Function>) -> bool {
        let uses = &self.info[function];
        self.module
            .global_variables
            .iter()
            .any(|(handle, variable)| {
                matches!(variable.space, AddressSpace::Storage { .. })
                    && uses[handle].contains(GlobalUse::WRITE)
            })
    }
}

/// Whether a block ends by leaving the function, the loop or the round.
fn leaves(block: &Block) -> bool {
    block.iter().any(|statement| match statement {
        Statement::Return { .. } | Statement::Break | Statement::Continue | Statement::Kill => true,
        Statement::Block(inner) => leaves(inner),
        Statement::If { accept, reject, .. } => leaves(accept) && leaves(reject),
        _ => false,
    })
}
