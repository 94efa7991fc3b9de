//! Small helpers on naga's tree of a function: what an expression is made of, what a pointer points into.

use naga::{Block, Expression, Function, Handle, Module, Statement};

/// Every expression that `expression` is computed from.
fn operands(expression: &Expression) -> Vec<Handle<Expression>> {
    match *expression {
        Expression::Load { pointer } => vec![pointer],
        Expression::Access { base, index } => vec![base, index],
        Expression::AccessIndex { base, .. } => vec![base],
        Expression::Splat { value, .. } => vec![value],
        Expression::Swizzle { vector, .. } => vec![vector],
        Expression::Compose { ref components, .. } => components.clone(),
        Expression::Unary { expr, .. } | Expression::As { expr, .. } => vec![expr],
        Expression::Binary { left, right, .. } => vec![left, right],
        Expression::Select {
            condition,
            accept,
            reject,
        } => vec![condition, accept, reject],
        Expression::Relational { argument, .. } => vec![argument],
        Expression::Math {
            arg,
            arg1,
            arg2,
            arg3,
            ..
        } => [Some(arg), arg1, arg2, arg3]
            .into_iter()
            .flatten()
            .collect(),
        _ => Vec::new(),
    }
}

/// A yes or no for each of the function's expressions: as `decide` says or, where it says nothing, yes when it is yes for
/// anything the expression is computed from. Operands come before what uses them, so one pass does.
pub fn spread(
    function: &Function,
    mut decide: impl FnMut(Handle<Expression>, &Expression) -> Option<bool>,
) -> Vec<bool> {
    let mut table: Vec<bool> = Vec::with_capacity(function.expressions.len());
    for (handle, expression) in function.expressions.iter() {
        let any = || operands(expression).iter().any(|it| table[it.index()]);
        let yes = decide(handle, expression).unwrap_or_else(any);
        table.push(yes);
    }
    table
}

/// The variable or argument that a pointer points into.
pub fn root(function: &Function, mut pointer: Handle<Expression>) -> &Expression {
    loop {
        match &function.expressions[pointer] {
            Expression::Access { base, .. } | Expression::AccessIndex { base, .. } => {
                pointer = *base
            }
            other => return other,
        }
    }
}

/// The blocks of a statement, in their order.
pub fn blocks(statement: &Statement) -> Vec<&Block> {
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
pub fn functions(module: &Module) -> impl Iterator<Item = &Function> {
    let plain = module.functions.iter().map(|(_, function)| function);
    plain.chain(module.entry_points.iter().map(|entry| &entry.function))
}
