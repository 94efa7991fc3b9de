//! Chooses, before a run, what is checked after each expression of a function.

use naga::{Arena, BinaryOperator, Expression, Handle, MathFunction, Scalar, ScalarKind};

/// What is checked after an expression was evaluated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum OpenCheck {
    Nothing,
    /// A comparison of floats. `same` is true for two expressions that are written the same.
    Comparison {
        same: bool,
    },
    IntegerDivision,
    Shift,
    /// A conversion of a float to an integer.
    Conversion,
    /// A bitcast of a float.
    Bits,
    /// Arithmetic of floats, which a device may simplify if it is an error term.
    Arithmetic(Option<ErrorTerm>),
    /// A built-in function of floats.
    Math(MathFunction),
}

/// An expression such as `(a + b) - a`, which is `b` without rounding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ErrorTerm {
    /// The two expressions that cancel out where they are equal.
    pub(super) same: [Handle<Expression>; 2],
    /// The expression that is left.
    pub(super) exact: Handle<Expression>,
    /// True if the result is the negative of the expression that is left.
    pub(super) negative: bool,
}

/// Returns what is checked after an expression. `known` returns the word of a constant. `stored` returns, for a load of a local variable,
/// the only value that is ever stored in it.
pub(crate) fn open_check(
    expressions: &Arena<Expression>,
    handle: Handle<Expression>,
    scalar: impl Fn(Handle<Expression>) -> Scalar,
    known: impl Fn(Handle<Expression>) -> Option<u32>,
    stored: &dyn Fn(Handle<Expression>) -> Option<Handle<Expression>>,
) -> OpenCheck {
    use BinaryOperator as Op;
    match expressions[handle] {
        Expression::Binary { op, left, right } => match (op, scalar(left).kind) {
            (
                Op::Equal
                | Op::NotEqual
                | Op::Less
                | Op::LessEqual
                | Op::Greater
                | Op::GreaterEqual,
                ScalarKind::Float,
            ) => OpenCheck::Comparison {
                same: same(expressions, left, right),
            },
            (Op::Add | Op::Subtract, ScalarKind::Float) => {
                OpenCheck::Arithmetic(error_term(expressions, op, [left, right], stored))
            }
            (Op::Multiply | Op::Divide, ScalarKind::Float) => OpenCheck::Arithmetic(None),
            (Op::Divide | Op::Modulo, ScalarKind::Sint | ScalarKind::Uint) => match known(right) {
                None | Some(0 | u32::MAX) => OpenCheck::IntegerDivision,
                Some(_) => OpenCheck::Nothing,
            },
            (Op::ShiftLeft | Op::ShiftRight, _) => match known(right) {
                Some(0..=31) => OpenCheck::Nothing,
                _ => OpenCheck::Shift,
            },
            _ => OpenCheck::Nothing,
        },
        Expression::Unary { .. } if scalar(handle).kind == ScalarKind::Float => {
            OpenCheck::Arithmetic(None)
        }
        Expression::As {
            expr,
            convert,
            kind,
        } if scalar(expr).kind == ScalarKind::Float => match (convert, kind) {
            (Some(_), ScalarKind::Sint | ScalarKind::Uint) => OpenCheck::Conversion,
            (None, ScalarKind::Sint | ScalarKind::Uint) => OpenCheck::Bits,
            _ => OpenCheck::Nothing,
        },
        Expression::Math { fun, arg, .. } if scalar(arg).kind == ScalarKind::Float => {
            OpenCheck::Math(fun)
        }
        _ => OpenCheck::Nothing,
    }
}

/// Returns true if two expressions are written the same, loads of one variable included.
fn same(all: &Arena<Expression>, a: Handle<Expression>, b: Handle<Expression>) -> bool {
    let pair = (&all[a], &all[b]);
    a == b
        || match pair {
            (Expression::Literal(a), Expression::Literal(b)) => a == b,
            (Expression::Constant(a), Expression::Constant(b)) => a == b,
            (Expression::FunctionArgument(a), Expression::FunctionArgument(b)) => a == b,
            (Expression::LocalVariable(a), Expression::LocalVariable(b)) => a == b,
            (Expression::GlobalVariable(a), Expression::GlobalVariable(b)) => a == b,
            (Expression::Load { pointer: a }, Expression::Load { pointer: b }) => same(all, *a, *b),
            (
                Expression::Access { base: a, index: i },
                Expression::Access { base: b, index: j },
            ) => same(all, *a, *b) && same(all, *i, *j),
            (
                Expression::AccessIndex { base: a, index: i },
                Expression::AccessIndex { base: b, index: j },
            ) => i == j && same(all, *a, *b),
            _ => false,
        }
}

/// Returns a sum or a difference as an error term, if it can be simplified.
fn error_term(
    all: &Arena<Expression>,
    op: BinaryOperator,
    [left, right]: [Handle<Expression>; 2],
    stored: &dyn Fn(Handle<Expression>) -> Option<Handle<Expression>>,
) -> Option<ErrorTerm> {
    use BinaryOperator::{Add, Subtract};
    let parts = |operand: Handle<Expression>| match all[stored(operand).unwrap_or(operand)] {
        Expression::Binary { op, left, right } => Some((op, left, right)),
        _ => None,
    };
    let term = |one, other, exact, negative| {
        same(all, one, other).then_some(ErrorTerm {
            same: [one, other],
            exact,
            negative,
        })
    };
    let of_left = match (op, parts(left)) {
        // (p + q) - p, (p + q) - q, (p - q) - p
        (Subtract, Some((Add, p, q))) => {
            term(p, right, q, false).or_else(|| term(q, right, p, false))
        }
        (Subtract, Some((Subtract, p, q))) => term(p, right, q, true),
        // (p - q) + q
        (Add, Some((Subtract, p, q))) => term(q, right, p, false),
        _ => None,
    };
    of_left.or_else(|| match (op, parts(right)) {
        // p - (p + q), q - (p + q), p - (p - q)
        (Subtract, Some((Add, p, q))) => term(p, left, q, true).or_else(|| term(q, left, p, true)),
        (Subtract, Some((Subtract, p, q))) => term(p, left, q, false),
        // q + (p - q)
        (Add, Some((Subtract, p, q))) => term(q, left, p, false),
        _ => None,
    })
}
