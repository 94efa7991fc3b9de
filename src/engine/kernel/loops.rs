//! Loops that cannot end, as far as the text alone shows it. The rest is left to the clock.

use std::collections::HashSet;

use naga::{
    AddressSpace, Block, Expression, Function, GlobalVariable, Handle, Literal, LocalVariable,
    Module, Span, Statement, UnaryOperator,
};

use super::tree::{root, spread};

/// The first endless loop, and why it is one.
pub fn endless(module: &Module) -> Option<(Span, &'static str)> {
    let functions = module
        .functions
        .iter()
        .map(|(_, f)| f)
        .chain(module.entry_points.iter().map(|e| &e.function));
    functions
        .into_iter()
        .find_map(|function| look(module, function, &function.body))
}

fn look(module: &Module, function: &Function, block: &Block) -> Option<(Span, &'static str)> {
    block
        .span_iter()
        .find_map(|(statement, span)| match statement {
            Statement::Block(inner) => look(module, function, inner),
            Statement::If { accept, reject, .. } => {
                look(module, function, accept).or_else(|| look(module, function, reject))
            }
            Statement::Switch { cases, .. } => cases
                .iter()
                .find_map(|case| look(module, function, &case.body)),
            Statement::Loop {
                body,
                continuing,
                break_if,
            } => {
                let inner =
                    look(module, function, body).or_else(|| look(module, function, continuing));
                inner.or_else(|| {
                    Round::new(module, function, body, continuing)
                        .verdict(body, *break_if)
                        .map(|why| (*span, why))
                })
            }
            _ => None,
        })
}

/// What happens in one round of a loop.
struct Round<'a> {
    module: &'a Module,
    function: &'a Function,
    /// Expressions evaluated anew in each round.
    evaluated: HashSet<Handle<Expression>>,
    locals: HashSet<Handle<LocalVariable>>,
    globals: HashSet<Handle<GlobalVariable>>,
    /// Exits that can be taken: the conditions on the way to each.
    exits: Vec<Vec<Handle<Expression>>>,
}

impl<'a> Round<'a> {
    fn new(module: &'a Module, function: &'a Function, body: &Block, continuing: &Block) -> Self {
        let (evaluated, locals, globals) = (HashSet::new(), HashSet::new(), HashSet::new());
        let mut round = Self {
            module,
            function,
            evaluated,
            locals,
            globals,
            exits: Vec::new(),
        };
        round.collect(body);
        round.collect(continuing);
        round.exits(body, &mut Vec::new(), true);
        round
    }

    fn verdict(
        mut self,
        body: &Block,
        break_if: Option<Handle<Expression>>,
    ) -> Option<&'static str> {
        if let Some(condition) =
            break_if.filter(|condition| self.constant(*condition) != Some(false))
        {
            self.exits.push(if self.constant(condition) == Some(true) {
                Vec::new()
            } else {
                vec![condition]
            });
        }
        if self.exits.is_empty() {
            return Some("this loop never ends: no `break` or `return` in it can be reached");
        }
        let varying = self.varying();
        let fixed = |way: &Vec<Handle<Expression>>| {
            !way.is_empty() && !way.iter().any(|condition| varying[condition.index()])
        };
        (self.exits.iter().all(fixed) && !always_leaves(body)).then_some(
            "this loop never ends once it has begun: nothing in it changes what its end depends on",
        )
    }

    fn collect(&mut self, block: &Block) {
        for statement in block {
            match statement {
                Statement::Emit(range) => self.evaluated.extend(range.clone()),
                Statement::Block(inner) => self.collect(inner),
                Statement::If { accept, reject, .. } => {
                    self.collect(accept);
                    self.collect(reject);
                }
                Statement::Switch { cases, .. } => {
                    cases.iter().for_each(|case| self.collect(&case.body))
                }
                Statement::Loop {
                    body, continuing, ..
                } => {
                    self.collect(body);
                    self.collect(continuing);
                }
                Statement::Store { pointer, .. } => self.changed(*pointer),
                Statement::Call {
                    arguments, result, ..
                } => {
                    self.evaluated.extend(*result);
                    arguments
                        .iter()
                        .for_each(|argument| self.changed(*argument));
                }
                Statement::Atomic { result, .. } => self.evaluated.extend(*result),
                Statement::WorkGroupUniformLoad { result, .. } => {
                    self.evaluated.insert(*result);
                }
                _ => {}
            }
        }
    }

    fn changed(&mut self, pointer: Handle<Expression>) {
        match root(self.function, pointer) {
            Expression::LocalVariable(local) => drop(self.locals.insert(*local)),
            Expression::GlobalVariable(global) => drop(self.globals.insert(*global)),
            _ => {}
        }
    }

    /// Collects ways out of the loop. `own`: whether a `break` here belongs to this loop.
    fn exits(&mut self, block: &Block, way: &mut Vec<Handle<Expression>>, own: bool) {
        for statement in block {
            match statement {
                Statement::Break if own => self.exits.push(way.clone()),
                Statement::Return { .. } | Statement::Kill => self.exits.push(way.clone()),
                Statement::Block(inner) => self.exits(inner, way, own),
                Statement::If {
                    condition,
                    accept,
                    reject,
                } => {
                    for (arm, taken) in [(accept, true), (reject, false)] {
                        match self.constant(*condition) {
                            Some(known) if known != taken => {}
                            Some(_) => self.exits(arm, way, own),
                            None => {
                                way.push(*condition);
                                self.exits(arm, way, own);
                                way.pop();
                            }
                        }
                    }
                }
                Statement::Switch { selector, cases } => {
                    way.push(*selector);
                    cases
                        .iter()
                        .for_each(|case| self.exits(&case.body, way, false));
                    way.pop();
                }
                Statement::Loop { body, .. } => self.exits(body, way, false),
                _ => {}
            }
        }
    }

    fn constant(&self, condition: Handle<Expression>) -> Option<bool> {
        match &self.function.expressions[condition] {
            Expression::Literal(Literal::Bool(value)) => Some(*value),
            Expression::Unary {
                op: UnaryOperator::LogicalNot,
                expr,
            } => self.constant(*expr).map(|value| !value),
            Expression::Constant(constant) => {
                match &self.module.global_expressions[self.module.constants[*constant].init] {
                    Expression::Literal(Literal::Bool(value)) => Some(*value),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Which expressions can differ from one round to the next. Buffers and workgroup memory belong to others, too.
    fn varying(&self) -> Vec<bool> {
        spread(self.function, |handle, expression| match expression {
            // A `let` from before the loop keeps its value.
            Expression::Load { .. } if !self.evaluated.contains(&handle) => Some(false),
            Expression::Load { pointer } => match root(self.function, *pointer) {
                Expression::LocalVariable(local) => self.locals.contains(local).then_some(true),
                Expression::GlobalVariable(global) => {
                    let own = matches!(
                        self.module.global_variables[*global].space,
                        AddressSpace::Private
                    );
                    (!own || self.globals.contains(global)).then_some(true)
                }
                _ => Some(true),
            },
            Expression::CallResult(_)
            | Expression::AtomicResult { .. }
            | Expression::WorkGroupUniformLoadResult { .. } => {
                Some(self.evaluated.contains(&handle))
            }
            _ => None,
        })
    }
}

/// Whether a block leaves its loop whichever way it takes.
fn always_leaves(block: &Block) -> bool {
    block.iter().any(|statement| match statement {
        Statement::Break | Statement::Return { .. } | Statement::Kill => true,
        Statement::Block(inner) => always_leaves(inner),
        Statement::If { accept, reject, .. } => always_leaves(accept) && always_leaves(reject),
        _ => false,
    })
}
