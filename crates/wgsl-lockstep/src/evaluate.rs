//! Evaluates expressions for all active lanes at once. [`Context`] evaluates those that access no memory, [`Interpreter`] all others.

use naga::{
    AddressSpace, Arena, BinaryOperator, Expression, Handle, MathFunction, Module, Scalar,
    ScalarKind, Span, TypeInner,
};

use super::arithmetic::{self, scalar_lanes};
use super::code::{ExpressionInfo, literal, operands};
use super::interpreter::{EarlyEnd, Interpreter};
use super::layout::Layout;
use super::math;
use super::open::OpenCheck;
use super::value::{LaneValues, Mask, Outside, Root};
use super::{AccessKind, RunError};

/// The name of the types that are not supported, for messages.
pub(crate) const ODD: &str = "16-bit integers and 64-bit numbers";

/// The parts of a module that all its functions share.
pub(crate) struct Context<'a> {
    pub(crate) module: &'a Module,
    pub(crate) layout: Layout<'a>,
    /// The words of each global expression, one for each scalar.
    pub(crate) constants: Vec<Vec<u32>>,
}

impl Context<'_> {
    /// Evaluates an expression without memory access. A lane whose index is past the end is added to `out.outside`.
    ///
    /// # Errors
    /// Returns the name of an expression that is not supported.
    pub(crate) fn evaluate(
        &self,
        (expressions, nodes, values): (&Arena<Expression>, &[ExpressionInfo<'_>], &[LaneValues]),
        handle: Handle<Expression>,
        mask: &Mask,
        out: &mut LaneValues,
    ) -> Result<(), String> {
        let lanes = mask.total;
        let node = &nodes[handle.index()];
        let value = |of: Handle<Expression>| values[of.index()].words.as_slice();
        let expression = &expressions[handle];
        if node.size.odd {
            return Err(ODD.to_owned());
        }
        let words = node.words() * lanes;
        if let Expression::Access { base, index } = *expression {
            return self.element(
                (&nodes[base.index()], value(base)),
                (nodes[index.index()].scalar, value(index)),
                mask,
                out,
                words,
            );
        }
        let out = out.resize(words);
        match *expression {
            Expression::Literal(number) => {
                out.fill(literal(number).ok_or("numbers of this width")?);
            }
            Expression::Constant(constant) => {
                let init = self.module.constants[constant].init;
                let scalars = &self.constants[init.index()];
                for (out, scalar) in out.chunks_exact_mut(lanes).zip(scalars) {
                    out.fill(*scalar);
                }
            }
            Expression::ZeroValue(_) => out.fill(0),
            Expression::Compose { ref components, .. } => {
                let mut rest = out;
                for component in components {
                    let words = value(*component);
                    let (part, after) = rest.split_at_mut(words.len().min(rest.len()));
                    part.copy_from_slice(&words[..part.len()]);
                    rest = after;
                }
            }
            Expression::AccessIndex { base, index } => {
                let inner = nodes[base.index()].ty;
                let start = match self.layout.member(inner, index) {
                    Some((_, words)) => words,
                    None => index * self.layout.stride(inner).ok_or("this access")?.words,
                } as usize;
                let part = value(base).get(start * lanes..start * lanes + words);
                out.copy_from_slice(part.ok_or("this access")?);
            }
            Expression::Splat { value: scalar, .. } => {
                out.chunks_exact_mut(lanes)
                    .for_each(|out| out.copy_from_slice(value(scalar)));
            }
            Expression::Swizzle {
                vector, pattern, ..
            } => {
                for (out, from) in out.chunks_exact_mut(lanes).zip(pattern) {
                    out.copy_from_slice(scalar_lanes(value(vector), from as usize, lanes));
                }
            }
            Expression::Unary { op, expr } => arithmetic::unary(op, node.scalar, value(expr), out),
            Expression::Binary { op, left, right } => {
                let (a, b) = (&nodes[left.index()], &nodes[right.index()]);
                match product_sizes(op, a, b) {
                    Some(sizes) => {
                        arithmetic::multiply(a.scalar, sizes, value(left), value(right), out, mask)
                    }
                    None => arithmetic::binary(op, a.scalar, value(left), value(right), out, mask),
                }
            }
            Expression::Select {
                condition,
                accept,
                reject,
            } => {
                for (component, out) in out.chunks_exact_mut(lanes).enumerate() {
                    let [yes, no] = [accept, reject].map(|side| &value(side)[component * lanes..]);
                    let choices = scalar_lanes(value(condition), component, lanes);
                    for (lane, out) in out.iter_mut().enumerate() {
                        let side = if choices[lane] != 0 { yes } else { no };
                        *out = side[lane];
                    }
                }
            }
            Expression::Relational { fun, argument } => {
                arithmetic::relational(fun, value(argument), out, lanes)
            }
            Expression::Math {
                fun,
                arg,
                arg1,
                arg2,
                arg3,
            } => {
                let argument = &nodes[arg.index()];
                if let (MathFunction::Transpose, TypeInner::Matrix { rows, .. }) =
                    (fun, argument.ty)
                {
                    math::transpose(*rows as usize, value(arg), out, lanes);
                    return Ok(());
                }
                let all =
                    [Some(arg), arg1, arg2, arg3].map(|operand| operand.map_or(&[][..], value));
                if !math::apply(fun, argument.scalar, &all, out, mask) {
                    return Err(format!("the function {fun:?}"));
                }
            }
            Expression::As { expr, convert, .. } => {
                let from = nodes[expr.index()].scalar;
                match convert {
                    Some(_) => arithmetic::convert(from, node.scalar, value(expr), out),
                    // The widths are the same.
                    None => out.copy_from_slice(value(expr)),
                }
            }
            _ => return Err(expression_name(expression)),
        }
        Ok(())
    }

    /// Evaluates the indexing of a value that is not in memory.
    fn element(
        &self,
        (base, values): (&ExpressionInfo<'_>, &[u32]),
        (scalar, indices): (Scalar, &[u32]),
        mask: &Mask,
        out: &mut LaneValues,
        words: usize,
    ) -> Result<(), String> {
        let lanes = mask.total;
        let stride = self.layout.stride(base.ty).ok_or("this access")?;
        let count = stride.count.unwrap_or(0);
        out.outside.clear();
        out.resize(words);
        for &lane in &mask.lanes {
            let index = indices[lane as usize];
            let outside = index >= count;
            if outside {
                out.outside.push(Outside {
                    lane,
                    index: index_value(scalar, index),
                    count,
                    base: 0,
                    bytes: 0,
                });
            }
            for word in 0..stride.words as usize {
                let from = (index as usize * stride.words as usize + word) * lanes + lane as usize;
                out.words[word * lanes + lane as usize] = if outside { 0 } else { values[from] };
            }
        }
        Ok(())
    }
}

/// Returns the sizes of a matrix product `[rows, inner] · [inner, columns]`, in which a vector is a row or a column; `None` for an operation
/// on each component.
fn product_sizes(
    op: BinaryOperator,
    left: &ExpressionInfo<'_>,
    right: &ExpressionInfo<'_>,
) -> Option<(usize, usize, usize)> {
    if op != BinaryOperator::Multiply {
        return None;
    }
    match (left.ty, right.ty) {
        (
            TypeInner::Matrix {
                rows,
                columns: inner,
                ..
            },
            TypeInner::Matrix { columns, .. },
        ) => Some((*rows as usize, *inner as usize, *columns as usize)),
        (TypeInner::Matrix { rows, columns, .. }, TypeInner::Vector { .. }) => {
            Some((*rows as usize, *columns as usize, 1))
        }
        (TypeInner::Vector { .. }, TypeInner::Matrix { rows, columns, .. }) => {
            Some((1, *rows as usize, *columns as usize))
        }
        _ => None,
    }
}

/// Returns the value of an index.
pub(crate) fn index_value(scalar: Scalar, word: u32) -> i64 {
    match scalar.kind {
        ScalarKind::Sint => (word as i32).into(),
        _ => word.into(),
    }
}

/// Returns the name of a kind of expression that is not supported.
fn expression_name(expression: &Expression) -> String {
    let text = format!("{expression:?}");
    let word = text.split(|c: char| !c.is_alphanumeric()).next();
    match word.unwrap_or_default() {
        "ImageSample" | "ImageLoad" | "ImageQuery" => "textures".to_owned(),
        word => format!("the expression {word}"),
    }
}

impl Interpreter<'_> {
    /// Evaluates an expression of a function, for the lanes in `mask`.
    pub(super) fn evaluate(
        &mut self,
        frame: usize,
        handle: Handle<Expression>,
        mask: &Mask,
    ) -> Result<(), EarlyEnd> {
        let mut out = std::mem::take(&mut self.frames[frame].values[handle.index()]);
        let result = self.evaluate_into(frame, handle, mask, &mut out);
        self.frames[frame].values[handle.index()] = out;
        result
    }

    fn evaluate_into(
        &mut self,
        frame: usize,
        handle: Handle<Expression>,
        mask: &Mask,
        out: &mut LaneValues,
    ) -> Result<(), EarlyEnd> {
        let code = &self.codes[frame];
        let span = code.function.expressions.get_span(handle);
        let node = &code.nodes[handle.index()];
        if self.exact.is_some() && self.evaluate_exact(frame, handle, mask, out)? {
            return Ok(());
        }
        match code.function.expressions[handle] {
            Expression::Load { pointer } => self.load(frame, pointer, span, mask, out),
            Expression::Access { base, .. } | Expression::AccessIndex { base, .. }
                if code.nodes[base.index()].pointee.is_some() =>
            {
                self.point(frame, handle, base, mask, out)
                    .ok_or_else(|| self.unsupported("this access", span))
            }
            Expression::ArrayLength(array) => {
                let stride = code.nodes[array.index()]
                    .pointee
                    .as_deref()
                    .and_then(|inner| self.context.layout.stride(inner));
                let length = stride.map_or(0, |stride| self.length(frame, array, stride.bytes));
                out.splat(&[length], mask.total);
                Ok(())
            }
            Expression::CooperativeLoad { ref data, .. } => {
                let words = out.resize(node.words() * self.lanes);
                self.transfer_matrix(frame, node, data, (span, AccessKind::Load), mask, words)
            }
            Expression::CooperativeMultiplyAdd { a, b, c } => {
                self.multiply_add(frame, [a, b, c], span, mask, out)
            }
            ref expression => {
                self.evaluate_plain(frame, handle, mask, out)?;
                if matches!(expression, Expression::Access { .. }) && !out.outside.is_empty() {
                    let outside = std::mem::take(&mut out.outside);
                    self.report_outside(None, &outside, AccessKind::Load, span, mask);
                }
                if let Expression::Select { condition, .. } = *expression {
                    self.record_branch(frame, condition, handle, mask);
                }
                if code.checks[handle.index()] != OpenCheck::Nothing && self.exact.is_none() {
                    self.check_open_result(frame, handle, span, mask, out);
                }
                Ok(())
            }
        }
    }

    /// Evaluates an expression without memory access.
    pub(crate) fn evaluate_plain(
        &self,
        frame: usize,
        handle: Handle<Expression>,
        mask: &Mask,
        out: &mut LaneValues,
    ) -> Result<(), EarlyEnd> {
        let code = &self.codes[frame];
        let expressions = &code.function.expressions;
        let parts = (expressions, &code.nodes[..], &self.frames[frame].values[..]);
        let result = self.context.evaluate(parts, handle, mask, out);
        result.map_err(|what| self.unsupported(&what, expressions.get_span(handle)))
    }

    /// Sets the values that do not change while a function runs: constants, arguments, and pointers to variables.
    pub(super) fn set_fixed_values(&mut self, frame: usize) -> Result<(), EarlyEnd> {
        let code = &self.codes[frame];
        let expressions = &code.function.expressions;
        let mask = Mask::full(self.lanes);
        let mut constant = vec![false; expressions.len()];
        for (_, variable) in code.function.local_variables.iter() {
            let mut wanted: Vec<_> = variable.init.into_iter().collect();
            while let Some(handle) = wanted.pop() {
                constant[handle.index()] = true;
                wanted.extend(operands(&expressions[handle]));
            }
        }
        for (handle, expression) in expressions.iter() {
            let out = &mut self.frames[frame].values[handle.index()];
            // Arguments are already set; every other expression gets room for its value.
            if out.words.is_empty() {
                out.resize(code.nodes[handle.index()].words() * self.lanes);
            }
            match *expression {
                Expression::LocalVariable(variable) => {
                    out.point(Root::Local(frame, variable), self.lanes)
                }
                Expression::GlobalVariable(variable) => {
                    let root = match self.context.module.global_variables[variable].space {
                        AddressSpace::Private => Root::Private,
                        _ => Root::Shared,
                    };
                    out.point(root(variable.index()), self.lanes);
                }
                Expression::Literal(_) | Expression::Constant(_) | Expression::ZeroValue(_) => {
                    // An unsupported value is an error only where it is used.
                    let _ = self.evaluate(frame, handle, &mask);
                }
                _ if constant[handle.index()] => self.evaluate(frame, handle, &mask)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns the error about a part of the language that is not supported.
    pub(super) fn unsupported(&self, what: &str, span: Span) -> EarlyEnd {
        EarlyEnd::Error(RunError::NotSupported {
            what: what.to_owned(),
            location: self.shader.locate(span),
        })
    }
}
