//! Prepares a function before it runs: the types of its expressions, and what is checked after each of them.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::rc::Rc;

use naga::proc::TypeResolution;
use naga::valid::FunctionInfo;
use naga::{Block, Expression, Function, Handle, Literal, Module, Scalar, Statement, TypeInner};

use super::evaluate::Context;
use super::layout::{Layout, Leaf, TypeSize};
use super::open::{OpenCheck, open_check};

/// The type and the size of an expression's value.
pub(crate) struct ExpressionInfo<'a> {
    pub(crate) ty: &'a TypeInner,
    /// The type that a pointer points to; `None` for other values.
    pub(crate) pointee: Option<Cow<'a, TypeInner>>,
    /// The scalar type of the value or, for a pointer, of what it points to. Types of several scalar types have u32 here.
    pub(crate) scalar: Scalar,
    /// The size of the value or, for a pointer, of what it points to.
    pub(crate) size: TypeSize,
    leaves: OnceCell<Rc<[Leaf]>>,
}

/// A function that is ready to run.
pub(crate) struct Code<'a> {
    pub(crate) function: &'a Function,
    /// The type and the size of each expression.
    pub(crate) nodes: Vec<ExpressionInfo<'a>>,
    /// What is checked after each expression.
    pub(crate) checks: Vec<OpenCheck>,
    /// For each expression, true if it depends on the contents of a buffer.
    pub(crate) is_data: Vec<bool>,
    /// For each argument, the expressions that name it.
    pub(crate) arguments: Vec<Vec<Handle<Expression>>>,
}

impl<'a> ExpressionInfo<'a> {
    pub(crate) fn new(module: &'a Module, layout: &Layout<'_>, ty: &'a TypeResolution) -> Self {
        let inner = ty.inner_with(&module.types);
        let pointee = match inner {
            TypeInner::Pointer { base, .. } => Some(Cow::Borrowed(&module.types[*base].inner)),
            TypeInner::ValuePointer { size, scalar, .. } => {
                let scalar = *scalar;
                let vector = |size| TypeInner::Vector { size, scalar };
                Some(Cow::Owned(size.map_or(TypeInner::Scalar(scalar), vector)))
            }
            _ => None,
        };
        let value = pointee.as_deref().unwrap_or(inner);
        Self {
            ty: inner,
            scalar: match value {
                TypeInner::Atomic(scalar) => *scalar,
                _ => value.scalar().unwrap_or(Scalar::U32),
            },
            size: layout.size_of(value),
            pointee,
            leaves: OnceCell::new(),
        }
    }

    /// Returns the number of words that the value has in each lane.
    pub(crate) fn words(&self) -> usize {
        if self.pointee.is_some() {
            1
        } else {
            self.size.words as usize
        }
    }

    /// Returns the scalars of the value or, for a pointer, of what it points to.
    pub(crate) fn leaves(&self, layout: &Layout<'_>) -> Rc<[Leaf]> {
        let inner = self.pointee.as_deref().unwrap_or(self.ty);
        let leaves = self.leaves.get_or_init(|| layout.leaves(inner).into());
        Rc::clone(leaves)
    }

    pub(crate) fn is_atomic(&self) -> bool {
        matches!(self.pointee.as_deref(), Some(TypeInner::Atomic(_)))
    }
}

impl<'a> Code<'a> {
    pub(crate) fn new(
        context: &Context<'a>,
        function: &'a Function,
        info: &'a FunctionInfo,
        is_data: impl Fn(Handle<Expression>) -> bool,
    ) -> Self {
        let all = || function.expressions.iter();
        let node = |handle: Handle<Expression>| {
            ExpressionInfo::new(context.module, &context.layout, &info[handle].ty)
        };
        let mut arguments = vec![Vec::new(); function.arguments.len()];
        for (handle, expression) in all() {
            if let Expression::FunctionArgument(index) = *expression {
                arguments[index as usize].push(handle);
            }
        }
        let nodes: Vec<_> = all().map(|(handle, _)| node(handle)).collect();
        // For each local variable, the values that are stored in it.
        let mut stored = vec![Vec::new(); function.local_variables.len()];
        visit_stores(&function.body, &mut |pointer, value| {
            if let Expression::LocalVariable(local) = function.expressions[pointer] {
                stored[local.index()].push(value);
            }
        });
        let only_value = |load: Handle<Expression>| {
            let Expression::Load { pointer } = function.expressions[load] else {
                return None;
            };
            let Expression::LocalVariable(local) = function.expressions[pointer] else {
                return None;
            };
            let [value] = stored[local.index()][..] else {
                return None;
            };
            Some(value)
        };
        let scalar = |handle: Handle<Expression>| nodes[handle.index()].scalar;
        let known = |handle: Handle<Expression>| match function.expressions[handle] {
            Expression::Literal(value) => literal(value),
            Expression::Constant(constant) => {
                let init = context.module.constants[constant].init;
                match context.constants[init.index()][..] {
                    [word] => Some(word),
                    _ => None,
                }
            }
            _ => None,
        };
        let check = |handle| open_check(&function.expressions, handle, scalar, known, &only_value);
        let checks: Vec<OpenCheck> = all().map(|(handle, _)| check(handle)).collect();
        Self {
            function,
            checks,
            is_data: all().map(|(handle, _)| is_data(handle)).collect(),
            nodes,
            arguments,
        }
    }
}

/// Calls `visit` with the pointer and the value of each store in a block.
fn visit_stores(block: &Block, visit: &mut dyn FnMut(Handle<Expression>, Handle<Expression>)) {
    for statement in block {
        match statement {
            Statement::Store { pointer, value } => visit(*pointer, *value),
            Statement::Block(inner) => visit_stores(inner, visit),
            Statement::If { accept, reject, .. } => {
                visit_stores(accept, visit);
                visit_stores(reject, visit);
            }
            Statement::Switch { cases, .. } => {
                cases
                    .iter()
                    .for_each(|case| visit_stores(&case.body, visit));
            }
            Statement::Loop {
                body, continuing, ..
            } => {
                visit_stores(body, visit);
                visit_stores(continuing, visit);
            }
            _ => {}
        }
    }
}

/// Returns a literal as a word, floats as an f32; `None` for 64-bit numbers and 16-bit integers.
pub(crate) fn literal(literal: Literal) -> Option<u32> {
    Some(match literal {
        Literal::F32(value) => value.to_bits(),
        Literal::F16(value) => value.to_f32().to_bits(),
        Literal::U32(value) => value,
        Literal::I32(value) => value as u32,
        Literal::Bool(value) => value.into(),
        // Abstract numbers occur in unused constants only.
        Literal::AbstractInt(value) => value as u32,
        Literal::AbstractFloat(value) => (value as f32).to_bits(),
        _ => return None,
    })
}

/// Returns the operands of an expression that is allowed in a constant.
pub(crate) fn operands(expression: &Expression) -> Vec<Handle<Expression>> {
    match expression {
        Expression::Compose { components, .. } => components.clone(),
        Expression::Access { base, index } => vec![*base, *index],
        Expression::AccessIndex { base, .. } => vec![*base],
        Expression::Splat { value, .. } => vec![*value],
        Expression::Swizzle { vector, .. } => vec![*vector],
        Expression::Unary { expr, .. } | Expression::As { expr, .. } => vec![*expr],
        Expression::Binary { left, right, .. } => vec![*left, *right],
        Expression::Select {
            condition,
            accept,
            reject,
        } => vec![*condition, *accept, *reject],
        Expression::Relational { argument, .. } => vec![*argument],
        Expression::Math {
            arg,
            arg1,
            arg2,
            arg3,
            ..
        } => [Some(*arg), *arg1, *arg2, *arg3]
            .into_iter()
            .flatten()
            .collect(),
        _ => Vec::new(),
    }
}
