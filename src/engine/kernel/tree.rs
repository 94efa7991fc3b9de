//! Small helpers on naga's tree of a function: what an expression is made of, what a pointer points into.

use naga::{Expression, Function, Handle};

/// Calls `each` on every expression that `expression` is computed from.
pub fn operands(expression: &Expression, each: &mut dyn FnMut(Handle<Expression>)) {
    match expression {
        Expression::Load { pointer } => each(*pointer),
        Expression::Access { base, index } => [*base, *index].into_iter().for_each(each),
        Expression::AccessIndex { base, .. } => each(*base),
        Expression::Splat { value, .. } => each(*value),
        Expression::Swizzle { vector, .. } => each(*vector),
        Expression::Compose { components, .. } => components.iter().copied().for_each(each),
        Expression::Unary { expr, .. } | Expression::As { expr, .. } => each(*expr),
        Expression::Binary { left, right, .. } => [*left, *right].into_iter().for_each(each),
        Expression::Select {
            condition,
            accept,
            reject,
        } => [*condition, *accept, *reject].into_iter().for_each(each),
        Expression::Relational { argument, .. } => each(*argument),
        Expression::Math {
            arg,
            arg1,
            arg2,
            arg3,
            ..
        } => {
            each(*arg);
            [arg1, arg2, arg3]
                .into_iter()
                .flatten()
                .copied()
                .for_each(each);
        }
        _ => {}
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
        let yes = decide(handle, expression).unwrap_or_else(|| {
            let mut any = false;
            operands(expression, &mut |operand| {
                any |= table.get(operand.index()).copied().unwrap_or(false)
            });
            any
        });
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
