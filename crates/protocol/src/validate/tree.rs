//! Small helpers on naga's tree of a module.

use naga::{Block, Function, Module, Statement};

/// The blocks of a statement, in their order.
pub(super) fn blocks(statement: &Statement) -> Vec<&Block> {
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

/// Every function of a module, the entry points last.
pub(super) fn functions(module: &Module) -> impl Iterator<Item = &Function> {
    let plain = module.functions.iter().map(|(_, function)| function);
    plain.chain(module.entry_points.iter().map(|entry| &entry.function))
}
