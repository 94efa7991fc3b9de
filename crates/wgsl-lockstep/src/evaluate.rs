//! Evaluates expressions: without memory for constants and functions, loads and pointers for a machine.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::rc::Rc;

use naga::proc::TypeResolution;
use naga::{
    Arena, BinaryOperator, Expression, Function, Handle, Literal, MathFunction, Module, Scalar,
    ScalarKind, Span, TypeInner,
};

use super::arithmetic::{self, part};
use super::execute::{EarlyEnd, Interpreter};
use super::layout::{Layout, Leaf, TypeSize};
use super::math;
use super::open::OpenCheck;
use super::value::{LaneValues, Mask, Outside, Root};
use super::{AccessKind, OUTSIDE};

/// Unsupported types of values.
pub(crate) const ODD: &str = "16-bit integers and 64-bit numbers";

/// What is known about an expression before a run.
pub(crate) struct ExpressionInfo<'a> {
    pub(crate) ty: &'a TypeInner,
    /// For a pointer, the type it points to.
    pub(crate) pointee: Option<Cow<'a, TypeInner>>,
    /// Scalar type of the value or, for a pointer, of the type it points to.
    pub(crate) scalar: Scalar,
    pub(crate) size: TypeSize,
    leaves: OnceCell<Rc<[Leaf]>>,
}

/// A function ready to run.
pub(crate) struct Code<'a> {
    pub(crate) function: &'a Function,
    pub(crate) nodes: Vec<ExpressionInfo<'a>>,
    /// What is looked at after each expression.
    pub(crate) watches: Vec<OpenCheck>,
    /// True if each expression depends on the contents of a buffer.
    pub(crate) is_data: Vec<bool>,
    /// The expressions that stand for each argument.
    pub(crate) arguments: Vec<Vec<Handle<Expression>>>,
}

/// What the functions of a module share.
pub(crate) struct Context<'a> {
    pub(crate) module: &'a Module,
    pub(crate) layout: Layout<'a>,
    /// Scalars of each global expression.
    pub(crate) constants: Vec<Vec<u32>>,
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

    /// Words of the value for each lane.
    pub(crate) fn words(&self) -> usize {
        if self.pointee.is_some() {
            1
        } else {
            self.size.words as usize
        }
    }

    /// The scalars that a pointer points to.
    pub(crate) fn leaves(&self, layout: &Layout<'_>) -> Rc<[Leaf]> {
        let inner = self.pointee.as_deref().unwrap_or(self.ty);
        let leaves = self.leaves.get_or_init(|| layout.leaves(inner).into());
        Rc::clone(leaves)
    }

    pub(crate) fn is_atomic(&self) -> bool {
        matches!(self.pointee.as_deref(), Some(TypeInner::Atomic(_)))
    }
}

fn literal(literal: Literal) -> Option<u32> {
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

/// Operands of an expression that is allowed in a constant.
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

impl Context<'_> {
    /// Evaluates an expression without memory access. An index past the end adds its lane to `out.outside`.
    ///
    /// # Errors
    /// With the name of an unsupported expression.
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
            return self.access(
                (&nodes[base.index()], value(base)),
                (nodes[index.index()].scalar, value(index)),
                mask,
                out,
                words,
            );
        }
        let out = out.resize(words);
        match *expression {
            Expression::Literal(it) => out.fill(literal(it).ok_or("numbers of this width")?),
            Expression::Constant(it) => {
                let init = self.module.constants[it].init;
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
                    let (here, after) = rest.split_at_mut(words.len().min(rest.len()));
                    here.copy_from_slice(&words[..here.len()]);
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
            Expression::Splat { value: it, .. } => {
                out.chunks_exact_mut(lanes)
                    .for_each(|out| out.copy_from_slice(value(it)));
            }
            Expression::Swizzle {
                vector, pattern, ..
            } => {
                for (out, from) in out.chunks_exact_mut(lanes).zip(pattern) {
                    out.copy_from_slice(part(value(vector), from as usize, lanes));
                }
            }
            Expression::Unary { op, expr } => arithmetic::unary(op, node.scalar, value(expr), out),
            Expression::Binary { op, left, right } => {
                let (a, b) = (&nodes[left.index()], &nodes[right.index()]);
                let matrix = |it: &ExpressionInfo<'_>| match it.ty {
                    TypeInner::Matrix { columns, rows, .. } => {
                        Some((*rows as usize, *columns as usize))
                    }
                    _ => None,
                };
                let vector = |it: &ExpressionInfo<'_>| matches!(it.ty, TypeInner::Vector { .. });
                let sizes = match (matrix(a), matrix(b)) {
                    _ if op != BinaryOperator::Multiply => None,
                    (Some((rows, inner)), Some((_, columns))) => Some((rows, inner, columns)),
                    (Some((rows, inner)), None) if vector(b) => Some((rows, inner, 1)),
                    (None, Some((inner, columns))) if vector(a) => Some((1, inner, columns)),
                    _ => None,
                };
                match sizes {
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
                for (at, out) in out.chunks_exact_mut(lanes).enumerate() {
                    let [yes, no] = [accept, reject].map(|it| &value(it)[at * lanes..]);
                    let choices = part(value(condition), at, lanes);
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
                let all = [Some(arg), arg1, arg2, arg3].map(|it| it.map_or(&[][..], value));
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
            _ => return Err(name(expression)),
        }
        Ok(())
    }

    /// An element of a value that is not in memory.
    fn access(
        &self,
        (base, values): (&ExpressionInfo<'_>, &[u32]),
        (scalar, index): (Scalar, &[u32]),
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
            let at = index[lane as usize];
            let outside = at >= count;
            if outside {
                out.outside.push(Outside {
                    lane,
                    index: number(scalar, at),
                    count,
                    base: 0,
                    bytes: 0,
                });
            }
            for word in 0..stride.words as usize {
                let from = (at as usize * stride.words as usize + word) * lanes + lane as usize;
                out.words[word * lanes + lane as usize] = if outside { 0 } else { values[from] };
            }
        }
        Ok(())
    }
}

/// The value of an index.
fn number(scalar: Scalar, word: u32) -> i64 {
    match scalar.kind {
        ScalarKind::Sint => (word as i32).into(),
        _ => word.into(),
    }
}

/// The name of a kind of expression, for messages.
fn name(expression: &Expression) -> String {
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
                    .and_then(|it| self.context.layout.stride(it));
                let length = stride.map_or(0, |stride| self.length(frame, array, stride.bytes));
                out.splat(&[length], mask.total);
                Ok(())
            }
            Expression::CooperativeLoad { ref data, .. } => {
                let words = out.resize(node.words() * self.lanes);
                self.transfer(frame, node, data, (span, AccessKind::Load), mask, words)
            }
            Expression::CooperativeMultiplyAdd { a, b, c } => {
                self.multiply_add(frame, [a, b, c], span, mask, out)
            }
            ref expression => {
                let parts = (
                    &code.function.expressions,
                    code.nodes.as_slice(),
                    self.frames[frame].values.as_slice(),
                );
                let result = self.context.evaluate(parts, handle, mask, out);
                result.map_err(|what| self.unsupported(&what, span))?;
                if matches!(expression, Expression::Access { .. }) && !out.outside.is_empty() {
                    let outside = std::mem::take(&mut out.outside);
                    self.report_outside(None, &outside, AccessKind::Load, span, mask);
                }
                if let Expression::Select { condition, .. } = *expression {
                    self.branch(frame, condition, handle, mask);
                }
                if code.watches[handle.index()] != OpenCheck::Nothing && self.exact.is_none() {
                    self.look(frame, handle, span, mask, out);
                }
                Ok(())
            }
        }
    }

    /// Sets the values that do not change while a function runs: constants, arguments, and pointers to variables.
    pub(super) fn prepare(&mut self, frame: usize) -> Result<(), EarlyEnd> {
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
                        naga::AddressSpace::Private => Root::Private,
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

    /// A pointer to a part of what another pointer points to.
    fn point(
        &self,
        frame: usize,
        handle: Handle<Expression>,
        base: Handle<Expression>,
        mask: &Mask,
        out: &mut LaneValues,
    ) -> Option<()> {
        let code = &self.codes[frame];
        let from = &self.frames[frame].values[base.index()];
        let inner = code.nodes[base.index()].pointee.as_deref()?;
        let root = from.root?;
        let shared = matches!(root, Root::Shared(_));
        out.root = Some(root);
        out.outside.clone_from(&from.outside);
        out.resize(self.lanes);
        let expression = &code.function.expressions[handle];
        if let Expression::AccessIndex { index, .. } = *expression
            && let Some((bytes, words)) = self.context.layout.member(inner, index)
        {
            let add = if shared { bytes } else { words };
            for (out, from) in out.words.iter_mut().zip(&from.words) {
                let inside = *from != OUTSIDE;
                *out = if inside {
                    from.wrapping_add(add)
                } else {
                    OUTSIDE
                };
            }
            out.uniform = from.uniform;
            return Some(());
        }
        let stride = self.context.layout.stride(inner)?;
        let step = if shared { stride.bytes } else { stride.words };
        let (scalar, indices, fixed) = match *expression {
            Expression::Access { index, .. } => (
                code.nodes[index.index()].scalar,
                self.frames[frame].values[index.index()].words.as_slice(),
                0,
            ),
            Expression::AccessIndex { index, .. } => (Scalar::U32, &[][..], index),
            _ => return None,
        };
        let whole = match (stride.count, root) {
            (Some(_), _) => 0,
            (None, Root::Shared(at)) => self.shared_bytes(at),
            _ => return None,
        };
        let count_at = |start: u32| {
            let rest = || whole.saturating_sub(start) / stride.bytes.max(1);
            stride.count.unwrap_or_else(rest)
        };
        let common = from.common(mask).map(|start| count_at(start as u32));
        let place = |lane: usize| {
            let (start, index) = (
                from.words[lane],
                indices.get(lane).copied().unwrap_or(fixed),
            );
            let count = common.unwrap_or_else(|| count_at(start));
            let inside = start != OUTSIDE && index < count;
            (start, index, count, inside)
        };
        let mut all_inside = true;
        match (common.and(from.common(mask)), mask.is_dense()) {
            // All lanes, also inactive ones: their places are not specified.
            (Some(start), true) if indices.len() == self.lanes => {
                let (start, count) = (start as u32, common.unwrap_or(0));
                for (out, index) in out.words.iter_mut().zip(indices) {
                    let inside = *index < count;
                    all_inside &= inside;
                    *out = if inside {
                        start + index * step
                    } else {
                        OUTSIDE
                    };
                }
            }
            _ => {
                for &lane in &mask.lanes {
                    let (start, index, _, inside) = place(lane as usize);
                    all_inside &= inside;
                    out.words[lane as usize] = if inside {
                        start + index * step
                    } else {
                        OUTSIDE
                    };
                }
            }
        }
        if !all_inside {
            for &lane in &mask.lanes {
                let (start, index, count, inside) = place(lane as usize);
                let all = stride.count.map(|count| count * stride.bytes);
                if !inside && start != OUTSIDE {
                    out.outside.push(Outside {
                        lane,
                        index: number(scalar, index),
                        count,
                        base: start,
                        bytes: all.unwrap_or(u32::MAX),
                    });
                }
            }
        }
        let word = |lane: &u32| out.words[*lane as usize];
        let mut lanes = mask.lanes.iter().map(word);
        let first = lanes.next();
        out.uniform = lanes.all(|word| Some(word) == first);
        Some(())
    }

    /// The number of elements of a runtime-sized array.
    fn length(&self, frame: usize, array: Handle<Expression>, stride: u32) -> u32 {
        let value = &self.frames[frame].values[array.index()];
        let start = value.words.first().copied().unwrap_or(0);
        match value.root {
            Some(Root::Shared(at)) => self.shared_bytes(at).saturating_sub(start) / stride.max(1),
            _ => 0,
        }
    }

    fn shared_bytes(&self, variable: usize) -> u32 {
        self.shared[variable].bytes.len() as u32
    }

    pub(super) fn unsupported(&self, what: &str, span: Span) -> EarlyEnd {
        EarlyEnd::Error(super::RunError::NotSupported {
            what: what.to_owned(),
            location: self.program.locate(span),
        })
    }
}
