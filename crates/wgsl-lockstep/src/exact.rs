//! Runs a shader with numbers that carry their error, so that a plain loop says which results of another kernel are right. A number is
//! its value in f64, and how far f32 arithmetic in WGSL's accuracy may take it. A sum also carries its terms: they may be added in any
//! order. Conditions are decided by the values.
//!
//! Every invocation is on its own here: the invocations of all workgroups run together, some hundred at a time, without workgroup
//! memory, barriers, and vectors of floats.

mod real;

use naga::{
    AddressSpace, BinaryOperator, Expression, Handle, Literal, MathFunction, Scalar, ScalarKind,
    TypeInner, UnaryOperator,
};

use super::arithmetic::f;
use super::execute::{EarlyEnd, Frame, Interpreter};
use super::value::{LaneValues, Mask, Root};
use super::{Buffer, Launch, LaunchLimits, OUTSIDE, RunError, Shader, prepare};
pub(crate) use real::Number;
pub use real::{Accuracy, Real};

/// Invocations that run together.
const LANES: u64 = 512;

/// The state of such a run.
pub(crate) struct Exact {
    accuracy: Accuracy,
    /// Number of all invocations, and of those in a workgroup.
    total: u64,
    in_group: u64,
    /// Number of the first invocation that runs now.
    first: u64,
    /// By number of the global variable: what was stored in each element of four bytes; empty where nothing was.
    stored: Vec<Vec<Real>>,
}

impl Exact {
    pub(crate) fn lanes(&self) -> u64 {
        self.total.min(LANES)
    }

    /// The workgroup of a lane, counted in their order, and its number there.
    pub(crate) fn place(&self, lane: u32) -> (u64, u32) {
        let number = self.first + u64::from(lane);
        (number / self.in_group, (number % self.in_group) as u32)
    }
}

impl Shader {
    /// Runs all invocations of a launch with numbers that carry their error. Returns for each buffer the elements of four bytes that it
    /// holds afterwards, or none if nothing was stored in it.
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
        let product = |it: [u32; 3]| it.map(u64::from).iter().product::<u64>();
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
        let each = buffers.iter().map(|buffer| {
            let found = self.variable(buffer);
            let values = found.map(|(handle, _)| std::mem::take(&mut stored[handle.index()]));
            let values = values.unwrap_or_default();
            match values.iter().position(|value| *value == Real::MISSING) {
                Some(at) => {
                    let binding = buffer.binding;
                    Err(misfit(&format!(
                        "it never writes element {at} of binding {binding}"
                    )))
                }
                None => Ok(values),
            }
        });
        each.collect()
    }
}

impl Shader {
    /// Returns true if numbers may be less exact on a device than on the host.
    pub fn is_less_exact_on_a_device(&self) -> bool {
        use MathFunction::{Cos, Log, Log2, Pow, Sin, Tanh};
        let plain = self.module.functions.iter().map(|(_, function)| function);
        let entries = self.module.entry_points.iter().map(|entry| &entry.function);
        let mut all = plain.chain(entries).flat_map(|it| it.expressions.iter());
        all.any(|(_, expression)| match expression {
            Expression::Math { fun, .. } => matches!(fun, Cos | Log | Log2 | Pow | Sin | Tanh),
            _ => false,
        })
    }
}

/// The number of one lane; without numbers, values are exact.
fn number(value: &LaneValues, at: usize) -> Number {
    match value.numbers.get(at) {
        Some(number) => *number,
        None => Number::exact(f(value.words[at]).into()),
    }
}

impl<'a> Interpreter<'a> {
    /// Runs all invocations, at each time as many as there are lanes.
    pub(crate) fn run_exact(&mut self, entry: &'a naga::EntryPoint) -> Result<(), EarlyEnd> {
        let lanes = self.lanes as u64;
        let total = self.exact.as_ref().map_or(0, |exact| exact.total);
        for first in (0..total).step_by(self.lanes) {
            if let Some(exact) = &mut self.exact {
                exact.first = first;
            }
            let mut mask = Mask::full(self.lanes);
            mask.lanes.truncate((total - first).min(lanes) as usize);
            self.begin(entry)?;
            self.call(0, &mut mask)?;
        }
        Ok(())
    }

    /// Evaluates an expression with floats. Returns whether it was one; any other is evaluated as in every run.
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
        let (node, expressions) = (&code.nodes[handle.index()], &code.function.expressions);
        let is_float =
            |of: Handle<Expression>| code.nodes[of.index()].scalar.kind == ScalarKind::Float;
        let value = |of: Handle<Expression>| &self.frames[frame].values[of.index()];
        let span = expressions.get_span(handle);
        let refuse = |what: &str| Err(self.unsupported(&format!("{what} in a reference"), span));
        let gives_float = is_float(handle) && node.pointee.is_none();
        let is_plain =
            |of: Handle<Expression>| matches!(code.nodes[of.index()].ty, TypeInner::Scalar(_));
        out.numbers.clear();
        match expressions[handle] {
            Expression::Load { .. } => return Ok(false),
            Expression::Literal(Literal::F32(_)) | Expression::Constant(_) if gives_float => {
                if !is_plain(handle) {
                    return refuse("a vector of floats");
                }
                let code = &self.codes[frame];
                let parts = (
                    &code.function.expressions,
                    code.nodes.as_slice(),
                    self.frames[frame].values.as_slice(),
                );
                let result = self.context.evaluate(parts, handle, mask, out);
                result.map_err(|what| self.unsupported(&what, span))?;
                let written = Number::written(f(out.words[0]));
                if !written.is_exact() {
                    out.numbers.resize(mask.total, written);
                }
            }
            Expression::Unary { op, expr } if gives_float => match op {
                UnaryOperator::Negate => map(mask, out, |lane| number(value(expr), lane).negated()),
                _ => return refuse("this operator"),
            },
            Expression::Binary { op, left, right } if is_float(left) => {
                use BinaryOperator::*;
                if !is_plain(left) || !is_plain(right) {
                    return refuse("a vector of floats");
                }
                let (a, b) = (value(left), value(right));
                let test: fn(f64, f64) -> bool = match op {
                    Add => {
                        zip(mask, out, [a, b], Number::plus);
                        return Ok(true);
                    }
                    Subtract => {
                        zip(mask, out, [a, b], |a, b| a.plus(b.negated()));
                        return Ok(true);
                    }
                    Multiply => {
                        zip(mask, out, [a, b], |a, b| a.times(b, accuracy));
                        return Ok(true);
                    }
                    Divide => {
                        zip(mask, out, [a, b], |a, b| a.over(b, accuracy));
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
                    let lane = lane as usize;
                    words[lane] = test(number(a, lane).value, number(b, lane).value).into();
                }
            }
            Expression::Select {
                condition,
                accept,
                reject,
            } if gives_float => {
                let [condition, yes, no] = [condition, accept, reject].map(value);
                map(mask, out, |lane| {
                    let chosen = if condition.words[lane] != 0 { yes } else { no };
                    number(chosen, lane)
                });
            }
            Expression::Math {
                fun,
                arg,
                arg1,
                arg2,
                ..
            } if is_float(arg) => {
                if !is_plain(arg) {
                    return refuse("a vector of floats");
                }
                let [second, third] = [arg1, arg2].map(|of| value(of.unwrap_or(arg)));
                let first = value(arg);
                let Some(apply) = function(fun) else {
                    return refuse(&format!("the function {fun:?}"));
                };
                // Lanes often have the same arguments.
                let mut last = None;
                map(mask, out, |lane| {
                    let all = [first, second, third].map(|of| number(of, lane));
                    match last {
                        Some((arguments, result)) if arguments == all => result,
                        _ => {
                            let result = apply(all, accuracy);
                            last = Some((all, result));
                            result
                        }
                    }
                });
            }
            Expression::As { expr, convert, .. } if gives_float || is_float(expr) => {
                if convert.is_none() || !is_plain(expr) {
                    return refuse("the bits of a float");
                }
                let from = value(expr);
                if from.numbers.is_empty() && gives_float && is_float(expr) {
                    // An exact number is rounded as in any kernel.
                    return Ok(false);
                }
                let signed = code.nodes[expr.index()].scalar.kind == ScalarKind::Sint;
                match node.scalar.kind {
                    ScalarKind::Float if !is_float(expr) => map(mask, out, |lane| {
                        let word = from.words[lane];
                        Number::whole(if signed {
                            f64::from(word as i32)
                        } else {
                            f64::from(word)
                        })
                    }),
                    ScalarKind::Float if node.scalar.width == 2 => {
                        map(mask, out, |lane| number(from, lane).to_half(accuracy));
                    }
                    ScalarKind::Float => out.copy(from),
                    kind => {
                        let words = out.resize(mask.total);
                        for &lane in &mask.lanes {
                            let value = number(from, lane as usize).value;
                            words[lane as usize] = match kind {
                                ScalarKind::Sint => value as i32 as u32,
                                ScalarKind::Bool => u32::from(value != 0.0),
                                _ => value as u32,
                            };
                        }
                    }
                }
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
    pub(crate) fn load_numbers(
        &self,
        scalar: Scalar,
        from: &LaneValues,
        mask: &Mask,
        out: &mut LaneValues,
    ) {
        let (lanes, words) = (self.lanes, out.words.len());
        let known: &[Real] = match (from.root, &self.exact) {
            (Some(Root::Shared(variable)), Some(exact)) => &exact.stored[variable],
            _ => &[],
        };
        out.numbers.clear();
        if scalar.kind != ScalarKind::Float {
            return;
        }
        if !known.is_empty() {
            return map(mask, out, |lane| match from.words[lane] {
                OUTSIDE => Number::exact(0.0),
                offset => Number::from(known[offset as usize / 4]),
            });
        }
        let Some(Root::Local(of, local)) = from.root else {
            return;
        };
        let kept = &self.frames[of].numbers[local.index()];
        match from.common(mask) {
            _ if kept.is_empty() => {}
            Some(first) => out
                .numbers
                .extend_from_slice(&kept[first * lanes..first * lanes + words]),
            None => map(mask, out, |lane| match from.words[lane] {
                OUTSIDE => Number::exact(0.0),
                offset => kept[offset as usize * lanes + lane],
            }),
        }
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
        let places = mask.lanes.iter().map(|lane| *lane as usize);
        let places = places.filter(|lane| to.words[*lane] != OUTSIDE);
        match (to.root, &mut self.exact) {
            (Some(Root::Shared(variable)), Some(exact)) => {
                let (shared, stored) = (&self.shared[variable], &mut exact.stored[variable]);
                if stored.is_empty() {
                    let (words, _) = shared.bytes.as_chunks();
                    let real = |word: &[u8; 4]| {
                        if shared.is_initialized() {
                            Real::of(scalar, u32::from_le_bytes(*word))
                        } else {
                            Real::MISSING
                        }
                    };
                    stored.extend(words.iter().map(real));
                }
                for lane in places {
                    stored[to.words[lane] as usize / 4] = match scalar.kind {
                        ScalarKind::Float => number(from, lane).closed(exact.accuracy),
                        _ => Real::of(scalar, from.words[lane]),
                    };
                }
            }
            (Some(Root::Local(of, local)), Some(_)) if scalar.kind == ScalarKind::Float => {
                let Frame {
                    locals, numbers, ..
                } = &mut self.frames[of];
                let (own, kept) = (&locals[local.index()], &mut numbers[local.index()]);
                if mask.is_full() && own.len() == from.words.len() {
                    return kept.clone_from(&from.numbers);
                }
                if kept.is_empty() && !from.numbers.is_empty() {
                    kept.extend(own.iter().map(|word| Number::exact(f(*word).into())));
                }
                for lane in places {
                    let place = to.words[lane] as usize * lanes + lane;
                    if let Some(kept) = kept.get_mut(place) {
                        *kept = number(from, lane);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Sets the number of each active lane.
fn map(mask: &Mask, out: &mut LaneValues, mut of: impl FnMut(usize) -> Number) {
    out.words.resize(mask.total, 0);
    out.numbers.resize(mask.total, Number::default());
    for &lane in &mask.lanes {
        out.numbers[lane as usize] = of(lane as usize);
    }
}

/// Sets the number of each lane to `op` of the numbers that it has in two values; those of inactive lanes are not specified.
fn zip(
    mask: &Mask,
    out: &mut LaneValues,
    [a, b]: [&LaneValues; 2],
    op: impl Fn(Number, Number) -> Number,
) {
    if !mask.is_dense() {
        return map(mask, out, |lane| op(number(a, lane), number(b, lane)));
    }
    out.words.resize(mask.total, 0);
    out.numbers.resize(mask.total, Number::default());
    let out = out.numbers.iter_mut();
    let exact = |word: &u32| Number::exact(f(*word).into());
    match (a.numbers.as_slice(), b.numbers.as_slice()) {
        ([], []) => out
            .zip(a.words.iter().zip(&b.words))
            .for_each(|(out, (a, b))| *out = op(exact(a), exact(b))),
        (a, []) => out
            .zip(a.iter().zip(&b.words))
            .for_each(|(out, (a, b))| *out = op(*a, exact(b))),
        ([], b) => out
            .zip(a.words.iter().zip(b))
            .for_each(|(out, (a, b))| *out = op(exact(a), *b)),
        (a, b) => out
            .zip(a.iter().zip(b))
            .for_each(|(out, (a, b))| *out = op(*a, *b)),
    }
}

/// A function of up to three numbers.
type Apply = fn([Number; 3], Accuracy) -> Number;

fn function(fun: MathFunction) -> Option<Apply> {
    use MathFunction::*;
    Some(match fun {
        Abs => |[x, ..], of| x.closed(of).abs().into(),
        Min => |[x, y, _], of| x.closed(of).min(y.closed(of)).into(),
        Max => |[x, y, _], of| x.closed(of).max(y.closed(of)).into(),
        Clamp => |[x, low, high], of| x.closed(of).max(low.closed(of)).min(high.closed(of)).into(),
        Floor => |[x, ..], of| x.closed(of).step(f64::floor).into(),
        Ceil => |[x, ..], of| x.closed(of).step(f64::ceil).into(),
        Round => |[x, ..], of| x.closed(of).step(f64::round_ties_even).into(),
        Trunc => |[x, ..], of| x.closed(of).step(f64::trunc).into(),
        Sign => |[x, ..], of| {
            x.closed(of)
                .step(|x| if x == 0.0 { x } else { x.signum() })
                .into()
        },
        Fma => |[x, y, z], of| x.times(y, of).plus(z),
        Exp => |[x, ..], of| x.closed(of).exp().into(),
        Exp2 => |[x, ..], of| x.closed(of).exp2().into(),
        Log => |[x, ..], of| x.closed(of).log(std::f64::consts::E, of).into(),
        Log2 => |[x, ..], of| x.closed(of).log(2.0, of).into(),
        Pow => |[x, y, _], of| x.closed(of).power(y.closed(of), of).into(),
        Sqrt => |[x, ..], of| x.closed(of).sqrt().into(),
        InverseSqrt => |[x, ..], of| x.closed(of).inverse_sqrt().into(),
        Sin => |[x, ..], of| x.closed(of).wave(f64::sin, of).into(),
        Cos => |[x, ..], of| x.closed(of).wave(f64::cos, of).into(),
        Tanh => |[x, ..], of| x.closed(of).tanh(of).into(),
        _ => return None,
    })
}
