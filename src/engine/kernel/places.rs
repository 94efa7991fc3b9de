//! Which values come from an invocation's place in the grid: from global_invocation_id and its kin, through expressions,
//! variables and calls. What a buffer holds is taken to say nothing about the place.

use std::collections::HashSet;

use naga::{
    Binding, Block, BuiltIn, Expression, Function, Handle, LocalVariable, Module, Statement,
    TypeInner,
};

use super::tree::{blocks, root, spread};

/// For each argument of the entry point, whether it is one of these built-in values.
pub fn arguments(module: &Module, entry: &Function, built_in: &[BuiltIn]) -> Vec<bool> {
    let is_one =
        |binding: &Binding| matches!(binding, Binding::BuiltIn(found) if built_in.contains(found));
    let arguments = entry.arguments.iter().map(|argument| {
        match (&argument.binding, &module.types[argument.ty].inner) {
            (Some(binding), _) => is_one(binding),
            (None, TypeInner::Struct { members, .. }) => members
                .iter()
                .any(|member| member.binding.as_ref().is_some_and(is_one)),
            _ => false,
        }
    });
    arguments.collect()
}

/// Which values of a function come from the arguments that are marked.
pub struct InvocationDependent<'a> {
    pub function: &'a Function,
    locals: HashSet<Handle<LocalVariable>>,
    /// Results of calls that were given a place.
    results: HashSet<Handle<Expression>>,
    /// For each expression, with what is known so far.
    table: Vec<bool>,
}

impl<'a> InvocationDependent<'a> {
    /// Follows the marks through variables and calls until nothing new is learnt.
    pub fn new(function: &'a Function, arguments: &[bool]) -> Self {
        let mut places = Self {
            function,
            locals: HashSet::new(),
            results: HashSet::new(),
            table: Vec::new(),
        };
        loop {
            places.table = spread(function, |handle, expression| match expression {
                Expression::FunctionArgument(index) => {
                    Some(arguments.get(*index as usize).copied().unwrap_or(false))
                }
                Expression::LocalVariable(local) => Some(places.locals.contains(local)),
                Expression::CallResult(_) => Some(places.results.contains(&handle)),
                // What a buffer holds says nothing about where its end is.
                Expression::Load { pointer }
                    if matches!(root(function, *pointer), Expression::GlobalVariable(_)) =>
                {
                    Some(false)
                }
                _ => None,
            });
            if !places.grow(&function.body, false) {
                return places;
            }
        }
    }

    /// Whether an expression comes from a place.
    pub fn contains(&self, expression: Handle<Expression>) -> bool {
        self.table[expression.index()]
    }

    /// Looks once through a block; says whether anything new was learnt. Inside a branch on a place every variable that
    /// is set tells of the place.
    fn grow(&mut self, block: &Block, inside: bool) -> bool {
        let mut news = false;
        for statement in block {
            let branch = match statement {
                Statement::If { condition, .. } => Some(*condition),
                Statement::Switch { selector, .. } => Some(*selector),
                _ => None,
            };
            let inside = inside || branch.is_some_and(|on| self.contains(on));
            for inner in blocks(statement) {
                news |= self.grow(inner, inside);
            }
            news |= match statement {
                Statement::Store { pointer, value } => match root(self.function, *pointer) {
                    Expression::LocalVariable(local) if inside || self.contains(*value) => {
                        self.locals.insert(*local)
                    }
                    _ => false,
                },
                Statement::Call {
                    arguments,
                    result: Some(result),
                    ..
                } => {
                    arguments.iter().any(|argument| self.contains(*argument))
                        && self.results.insert(*result)
                }
                _ => false,
            };
        }
        news
    }
}
