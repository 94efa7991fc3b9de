//! Runs a shader with numbers that carry their error. A plain loop then decides which results of another kernel are right: a number
//! has a value in f64 and a bound on the error of f32 arithmetic with WGSL's accuracy. For a sum, the bound allows any order of its
//! terms. Conditions are decided by the values.
//!
//! The invocations of such a shader share nothing. Those of all workgroups run together, some hundred at a time, without workgroup
//! memory, barriers and vectors of floats.

mod real;

use std::f64::consts::E;
use std::rc::Rc;

use naga::{
    AddressSpace, BinaryOperator, Expression, Handle, Literal, MathFunction, Scalar, ScalarKind,
    Span, TypeInner,
};

use super::arithmetic::f;
use super::interpreter::{EarlyEnd, Frame, Interpreter};
use super::value::{LaneValues, Mask, Root, numbers_mut};
use super::{Buffer, Launch, LaunchLimits, OUTSIDE, RunError, Shader, prepare};
pub(crate) use real::Number;
pub use real::{Accuracy, Real};

/// The number of invocations that run together.
const LANES: u64 = 512;

/// The state of a run with numbers that carry their error.
pub(crate) struct Exact {
    accuracy: Accuracy,
    /// The number of all invocations.
    total: u64,
    /// The number of invocations in a workgroup.
    in_group: u64,
    /// The number of the first invocation that runs now.
    first: u64,
    /// For each global variable, the numbers in its elements of four bytes; empty if nothing was stored in it.
    stored: Vec<Vec<Real>>,
}

impl Exact {
    /// Returns the number of invocations that run together.
    pub(crate) fn lanes(&self) -> u64 {
        self.total.min(LANES)
    }

    /// Returns the number of a lane's workgroup, in the order of workgroups, and the lane's number in that workgroup.
    pub(crate) fn place(&self, lane: u32) -> (u64, u32) {
        let number = self.first + u64::from(lane);
        (number / self.in_group, (number % self.in_group) as u32)
    }
}

impl Shader {
    /// Runs all invocations of a launch with numbers that carry their error. Returns the elements of four bytes that each buffer holds
    /// afterwards; none if nothing was stored in it.
    ///
    /// # Errors
    /// When the launch does not fit the shader, when the shader is no plain loop, does not end within the limits, accesses an element
    /// out of bounds, or leaves out an element of a buffer that is not `initialized`.
    pub fn exact(
        &self,
        groups: [u32; 3],
        buffers: &[Buffer],
        accuracy: Accuracy,
        limits: LaunchLimits,
    ) -> Result<Vec<Vec<Real>>, RunError> {
        let misfit = |why: &str| RunError::Misfit(why.to_owned());
        let Some((_, size)) = self.entry_points().next() else {
            return Err(misfit("no compute entry point"));
        };
        let variables = &self.module.global_variables;
        for (handle, variable) in variables.iter() {
            if matches!(
                variable.space,
                AddressSpace::WorkGroup | AddressSpace::Private
            ) {
                return Err(RunError::NotSupported {
                    what: "a variable outside of functions in a reference".to_owned(),
                    location: self.locate(variables.get_span(handle)),
                });
            }
        }
        let product = |sizes: [u32; 3]| sizes.map(u64::from).iter().product::<u64>();
        let exact = Exact {
            accuracy,
            total: product(groups) * product(size),
            in_group: product(size),
            first: 0,
            stored: vec![Vec::new(); variables.len()],
        };
        let launch = Launch {
            limits: LaunchLimits {
                steps_per_workgroup: limits.steps,
                ..limits
            },
            ..Launch::new(groups)
        };
        let mut copies = buffers.to_vec();
        let (report, exact) = prepare::run(self, &launch, &mut copies, &mut (), Some(exact))?;
        if let Some(finding) = report.findings.first() {
            return Err(misfit(&finding.to_string()));
        }
        if !report.complete {
            return Err(misfit("it does not end within the limit of steps"));
        }
        let mut stored = exact.map(|exact| exact.stored).unwrap_or_default();
        let mut results = Vec::new();
        for buffer in buffers {
            let values = match self.variable(buffer) {
                Some((variable, _)) => std::mem::take(&mut stored[variable.index()]),
                None => Vec::new(),
            };
            if let Some(index) = values.iter().position(|value| *value == Real::MISSING) {
                let binding = buffer.binding;
                return Err(misfit(&format!(
                    "it never writes element {index} of binding {binding}"
                )));
            }
            results.push(values);
        }
        Ok(results)
    }

    /// Returns true if the shader uses a function that a device may compute less exactly than the host.
    pub fn is_less_exact_on_a_device(&self) -> bool {
        use MathFunction::{Cos, Log, Log2, Pow, Sin, Tanh};
        let mut all = self
            .functions()
            .flat_map(|function| function.expressions.iter());
        all.any(|(_, expression)| match expression {
            Expression::Math { fun, .. } => matches!(fun, Cos | Log | Log2 | Pow | Sin | Tanh),
            _ => false,
        })
    }
}

impl<'a> Interpreter<'a> {
    /// Runs all invocations in batches, each of as many as there are lanes.
    pub(crate) fn run_exact(&mut self, entry: &'a naga::EntryPoint) -> Result<(), EarlyEnd> {
        let lanes = self.lanes as u64;
        let total = self.exact.as_ref().map_or(0, |exact| exact.total);
        for first in (0..total).step_by(self.lanes) {
            if let Some(exact) = &mut self.exact {
                exact.first = first;
            }
            let mut mask = Mask::full(self.lanes);
            mask.lanes.truncate((total - first).min(lanes) as usize);
            self.begin_workgroup(entry)?;
            self.call(0, &mut mask)?;
        }
        Ok(())
    }

    /// Evaluates an expression of floats. Returns false for any other expression, which the caller evaluates as in every run.
    ///
    /// # Errors
    /// When plain loops cannot have this expression of floats.
    pub(crate) fn evaluate_exact(
        &mut self,
        frame: usize,
        handle: Handle<Expression>,
        mask: &Mask,
        out: &mut LaneValues,
    ) -> Result<bool, EarlyEnd> {
        let Some(Exact { accuracy, .. }) = self.exact else {
            return Ok(false);
        };
        let code = &self.codes[frame];
        let node = &code.nodes[handle.index()];
        let expressions = &code.function.expressions;
        let scalar = |operand: Handle<Expression>| code.nodes[operand.index()].scalar;
        let is_float = |operand: Handle<Expression>| scalar(operand).kind == ScalarKind::Float;
        let value = |operand: Handle<Expression>| &self.frames[frame].values[operand.index()];
        let span = expressions.get_span(handle);
        let refuse = |what: &str| Err(self.unsupported(&format!("{what} in a reference"), span));
        let gives_float = is_float(handle) && node.pointee.is_none();
        let is_scalar = |operand: Handle<Expression>| {
            matches!(code.nodes[operand.index()].ty, TypeInner::Scalar(_))
        };
        out.numbers = None;
        match expressions[handle] {
            Expression::Load { .. } => return Ok(false),
            Expression::Literal(Literal::F32(_)) | Expression::Constant(_) if gives_float => {
                if !is_scalar(handle) {
                    return refuse("a vector of floats");
                }
                self.evaluate_plain(frame, handle, mask, out)?;
                let written = Number::of_literal(f(out.words[0]));
                if !written.is_exact() {
                    out.numbers = Some(Rc::new(vec![written; mask.total]));
                }
            }
            Expression::Unary { expr, .. } if gives_float => {
                // Floats have no other unary operator than the minus.
                let from = value(expr);
                set_numbers(mask, out, |lane| from.number(lane).negated());
            }
            Expression::Binary { op, left, right } if is_float(left) => {
                use BinaryOperator::*;
                if !is_scalar(left) || !is_scalar(right) {
                    return refuse("a vector of floats");
                }
                let operands = [value(left), value(right)];
                let test: fn(f64, f64) -> bool = match op {
                    Add => {
                        set_combined(mask, out, operands, Number::plus);
                        return Ok(true);
                    }
                    Subtract => {
                        set_combined(mask, out, operands, |a, b| a.plus(b.negated()));
                        return Ok(true);
                    }
                    Multiply => {
                        set_combined(mask, out, operands, |a, b| a.times(b, accuracy));
                        return Ok(true);
                    }
                    Divide => {
                        set_combined(mask, out, operands, |a, b| a.divided_by(b, accuracy));
                        return Ok(true);
                    }
                    Equal => |a, b| a == b,
                    NotEqual => |a, b| a != b,
                    Less => |a, b| a < b,
                    LessEqual => |a, b| a <= b,
                    Greater => |a, b| a > b,
                    GreaterEqual => |a, b| a >= b,
                    _ => return refuse("this operator"),
                };
                let words = out.resize(mask.total);
                for &lane in &mask.lanes {
                    let [a, b] = operands.map(|operand| operand.number(lane as usize).value);
                    words[lane as usize] = test(a, b).into();
                }
            }
            Expression::Select {
                condition,
                accept,
                reject,
            } if gives_float => {
                let [condition, yes, no] = [condition, accept, reject].map(value);
                set_numbers(mask, out, |lane| {
                    let chosen = if condition.words[lane] != 0 { yes } else { no };
                    chosen.number(lane)
                });
            }
            Expression::Math {
                fun,
                arg,
                arg1,
                arg2,
                ..
            } if is_float(arg) => {
                if !is_scalar(arg) {
                    return refuse("a vector of floats");
                }
                let arguments = [Some(arg), arg1, arg2].map(|operand| operand.map(value));
                let numbers = |lane: usize| {
                    let number = |argument: &LaneValues| argument.number(lane);
                    arguments.map(|argument| argument.map_or(Number::default(), number))
                };
                if fun == MathFunction::Fma {
                    set_numbers(mask, out, |lane| {
                        let [a, b, c] = numbers(lane);
                        a.times(b, accuracy).plus(c)
                    });
                    return Ok(true);
                }
                let Some(apply) = real_function(fun) else {
                    return refuse(&format!("the function {fun:?}"));
                };
                // Lanes often have the same arguments.
                let mut last_arguments = [Real::MISSING; 3];
                let mut result = Number::default();
                set_numbers(mask, out, |lane| {
                    let arguments = numbers(lane).map(|number| number.to_real(accuracy));
                    if arguments != last_arguments {
                        last_arguments = arguments;
                        result = apply(arguments, accuracy).into();
                    }
                    result
                });
            }
            Expression::As { expr, convert, .. } if gives_float || is_float(expr) => {
                if convert.is_none() || !is_scalar(expr) {
                    return refuse("the bits of a float");
                }
                let from = value(expr);
                if from.numbers.is_none() && gives_float && is_float(expr) {
                    // An exact number is rounded as in any kernel.
                    return Ok(false);
                }
                convert_numbers(from, scalar(expr), node.scalar, accuracy, mask, out);
            }
            Expression::ZeroValue(_)
            | Expression::CallResult(_)
            | Expression::FunctionArgument(_)
            | Expression::Literal(_) => return Ok(false),
            _ if gives_float && node.pointee.is_none() => {
                return refuse("this expression of floats");
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Adds the numbers to a loaded value, whose words are loaded already.
    ///
    /// # Errors
    /// When the value is a whole vector or array that holds numbers with errors.
    pub(crate) fn load_numbers(
        &self,
        (scalar, span): (Scalar, Span),
        from: &LaneValues,
        mask: &Mask,
        out: &mut LaneValues,
    ) -> Result<(), EarlyEnd> {
        out.numbers = None;
        let is_scalar = out.words.len() == self.lanes;
        if is_scalar && scalar.kind != ScalarKind::Float {
            return Ok(());
        }
        let refuse = || Err(self.unsupported("a whole vector or array in a reference", span));
        match (from.root, &self.exact) {
            (Some(Root::Shared(variable)), Some(exact)) => {
                let stored = &exact.stored[variable];
                if stored.is_empty() {
                    return Ok(());
                }
                if !is_scalar {
                    return refuse();
                }
                set_numbers(mask, out, |lane| match from.words[lane] {
                    OUTSIDE => Number::exact(0.0),
                    offset => Number::from(stored[offset as usize / 4]),
                });
            }
            (Some(Root::Local(frame, local)), _) => {
                let frame = &self.frames[frame];
                let own = &frame.locals[local.index()];
                let kept = &frame.numbers[local.index()];
                match from.common(mask) {
                    Some(word) if is_scalar => out.numbers.clone_from(&kept[word]),
                    _ if kept.iter().all(Option::is_none) => {}
                    _ if !is_scalar => return refuse(),
                    _ => set_numbers(mask, out, |lane| match from.words[lane] {
                        OUTSIDE => Number::exact(0.0),
                        word => match &kept[word as usize] {
                            Some(numbers) => numbers[lane],
                            None => Number::of_word(own[word as usize * self.lanes + lane]),
                        },
                    }),
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Stores the numbers of a value, whose words are stored already.
    pub(crate) fn store_numbers(
        &mut self,
        scalar: Scalar,
        to: &LaneValues,
        from: &LaneValues,
        mask: &Mask,
    ) {
        let lanes = self.lanes;
        match (to.root, &mut self.exact) {
            (Some(Root::Shared(variable)), Some(exact)) => {
                let shared = &self.shared[variable];
                let stored = &mut exact.stored[variable];
                if stored.is_empty() {
                    let (words, _) = shared.bytes.as_chunks();
                    let real = |word: &[u8; 4]| {
                        if shared.initialized {
                            Real::from_word(scalar, u32::from_le_bytes(*word))
                        } else {
                            Real::MISSING
                        }
                    };
                    stored.extend(words.iter().map(real));
                }
                let lanes = mask.lanes.iter().map(|lane| *lane as usize);
                for lane in lanes.filter(|lane| to.words[*lane] != OUTSIDE) {
                    stored[to.words[lane] as usize / 4] = match scalar.kind {
                        ScalarKind::Float => from.number(lane).to_real(exact.accuracy),
                        _ => Real::from_word(scalar, from.words[lane]),
                    };
                }
            }
            // Integers are exact.
            _ if from.words.len() == lanes && scalar.kind != ScalarKind::Float => {}
            (Some(Root::Local(frame, local)), Some(_)) => {
                let all = self.covers(to.root, mask);
                let Frame {
                    locals, numbers, ..
                } = &mut self.frames[frame];
                let own = &locals[local.index()];
                let kept = &mut numbers[local.index()];
                let common = to.common(mask);
                for (index, values) in from.words.chunks_exact(lanes).enumerate() {
                    let mut set = |word: usize, changed: &[u32]| {
                        let kept = &mut kept[word];
                        if kept.is_some() || from.numbers.is_some() {
                            let numbers = numbers_mut(kept, &own[word * lanes..][..lanes]);
                            for lane in changed.iter().map(|lane| *lane as usize) {
                                numbers[lane] = match &from.numbers {
                                    Some(numbers) => numbers[lane],
                                    None => Number::of_word(values[lane]),
                                };
                            }
                        }
                    };
                    match common {
                        Some(first) if all => kept[first + index].clone_from(&from.numbers),
                        Some(first) => set(first + index, &mask.lanes),
                        None => {
                            for lane in &mask.lanes {
                                let first = to.words[*lane as usize];
                                if first != OUTSIDE {
                                    set(first as usize + index, std::slice::from_ref(lane));
                                }
                            }
                        }
                    }
                }
            }
            _ => {}
        }
    }
}

/// Sets the number of each active lane.
fn set_numbers(mask: &Mask, out: &mut LaneValues, mut number_of: impl FnMut(usize) -> Number) {
    out.words.resize(mask.total, 0);
    let numbers = if mask.is_full() {
        (0..mask.total).map(number_of).collect()
    } else {
        let mut numbers = vec![Number::default(); mask.total];
        for &lane in &mask.lanes {
            numbers[lane as usize] = number_of(lane as usize);
        }
        numbers
    };
    out.numbers = Some(Rc::new(numbers));
}

/// Converts numbers between floats and integers, or floats to another width.
fn convert_numbers(
    from: &LaneValues,
    old: Scalar,
    new: Scalar,
    accuracy: Accuracy,
    mask: &Mask,
    out: &mut LaneValues,
) {
    match (old.kind, new.kind) {
        (ScalarKind::Float, ScalarKind::Float) if new.width == 2 => {
            set_numbers(mask, out, |lane| from.number(lane).to_half(accuracy));
        }
        (ScalarKind::Float, ScalarKind::Float) => out.copy(from),
        (ScalarKind::Sint, ScalarKind::Float) => set_numbers(mask, out, |lane| {
            Number::of_integer((from.words[lane] as i32).into())
        }),
        (_, ScalarKind::Float) => set_numbers(mask, out, |lane| {
            Number::of_integer(from.words[lane].into())
        }),
        (_, kind) => {
            let words = out.resize(mask.total);
            for &lane in &mask.lanes {
                let value = from.number(lane as usize).value;
                words[lane as usize] = match kind {
                    ScalarKind::Sint => value as i32 as u32,
                    ScalarKind::Bool => u32::from(value != 0.0),
                    _ => value as u32,
                };
            }
        }
    }
}

/// Applies an operation to the numbers of two values, lane by lane. The results of inactive lanes are not specified.
fn set_combined(
    mask: &Mask,
    out: &mut LaneValues,
    [a, b]: [&LaneValues; 2],
    op: impl Fn(Number, Number) -> Number,
) {
    if !mask.is_dense() {
        return set_numbers(mask, out, |lane| op(a.number(lane), b.number(lane)));
    }
    out.words.resize(mask.total, 0);
    let number = |word: &u32| Number::of_word(*word);
    let left = a.words.iter().map(number);
    let right = b.words.iter().map(number);
    let numbers = match (&a.numbers, &b.numbers) {
        (None, None) => left.zip(right).map(|(a, b)| op(a, b)).collect(),
        (Some(a), None) => a.iter().zip(right).map(|(a, b)| op(*a, b)).collect(),
        (None, Some(b)) => left.zip(b.iter()).map(|(a, b)| op(a, *b)).collect(),
        (Some(a), Some(b)) => a.iter().zip(b.iter()).map(|(a, b)| op(*a, *b)).collect(),
    };
    out.numbers = Some(Rc::new(numbers));
}

/// Returns a built-in function of up to three numbers; `None` if it is not supported.
fn real_function(fun: MathFunction) -> Option<fn([Real; 3], Accuracy) -> Real> {
    use MathFunction::*;
    Some(match fun {
        Abs => |[x, ..], _| x.abs(),
        Min => |[x, y, _], _| x.min(y),
        Max => |[x, y, _], _| x.max(y),
        Clamp => |[x, low, high], _| x.max(low).min(high),
        Floor => |[x, ..], _| x.apply_steps(f64::floor),
        Ceil => |[x, ..], _| x.apply_steps(f64::ceil),
        Round => |[x, ..], _| x.apply_steps(f64::round_ties_even),
        Trunc => |[x, ..], _| x.apply_steps(f64::trunc),
        Sign => |[x, ..], _| x.apply_steps(|x| if x == 0.0 { x } else { x.signum() }),
        Exp => |[x, ..], _| x.exp(),
        Exp2 => |[x, ..], _| x.exp2(),
        Log => |[x, ..], accuracy| x.log(E, accuracy),
        Log2 => |[x, ..], accuracy| x.log(2.0, accuracy),
        Pow => |[x, y, _], accuracy| x.power(y, accuracy),
        Sqrt => |[x, ..], _| x.sqrt(),
        InverseSqrt => |[x, ..], _| x.inverse_sqrt(),
        Sin => |[x, ..], accuracy| x.sine_or_cosine(f64::sin, accuracy),
        Cos => |[x, ..], accuracy| x.sine_or_cosine(f64::cos, accuracy),
        Tanh => |[x, ..], accuracy| x.tanh(accuracy),
        _ => return None,
    })
}
