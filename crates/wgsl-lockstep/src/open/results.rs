//! Checks the values of an expression: reports those that WGSL leaves open, and takes the liberties of the launch.

use naga::{Expression, Handle, MathFunction, ScalarKind, Span};

use super::super::arithmetic::{f, scalar_lanes};
use super::super::finding::{FindingKind, NO_VARIABLE};
use super::super::interpreter::Interpreter;
use super::super::value::{LaneValues, Mask};
use super::{Liberty, OpenCheck, OpenResult};

/// The largest argument of `exp` whose result an f32 holds.
const MOST_EXP: f32 = 88.72;
/// The largest argument of `exp2` whose result an f32 holds.
const MOST_EXP2: f32 = 128.0;

fn is_subnormal(word: u32) -> bool {
    word & 0x7f80_0000 == 0 && word & 0x007f_ffff != 0
}

/// Returns true if an active lane holds a number below the smallest normal one.
fn has_subnormal(words: &[u32], mask: &Mask) -> bool {
    // A loop without an early end lets the compiler test many words at once; most values have no such number in any lane.
    let in_any_lane = words
        .iter()
        .fold(false, |found, word| found | is_subnormal(*word));
    let in_active_lane = || {
        words.chunks_exact(mask.total).any(|of_lanes| {
            let mut active = mask.lanes.iter().map(|lane| of_lanes[*lane as usize]);
            active.any(is_subnormal)
        })
    };
    in_any_lane && in_active_lane()
}

impl Interpreter<'_> {
    /// Checks an expression that was just evaluated: reports what WGSL leaves open, and takes the liberties of the launch.
    pub(crate) fn check_open_result(
        &mut self,
        frame: usize,
        handle: Handle<Expression>,
        span: Span,
        mask: &Mask,
        out: &mut LaneValues,
    ) {
        let code = &self.codes[frame];
        let check = code.checks[handle.index()];
        if check == OpenCheck::Arithmetic(None) {
            return self.drop_subnormals(span, mask, out);
        }
        let open = self.open_result(frame, handle, mask, out);
        self.take_liberties(frame, handle, span, mask, out);
        let is_float = code.nodes[handle.index()].scalar.kind == ScalarKind::Float;
        if is_float && matches!(check, OpenCheck::Arithmetic(_) | OpenCheck::Math(_)) {
            self.drop_subnormals(span, mask, out);
        }
        if let Some((open, lane)) = open {
            let finding = self.finding(FindingKind::Open(open), span, lane);
            self.report(finding, NO_VARIABLE);
        }
    }

    /// Returns the kind of an open result among the values of an expression, and the first lane that has it.
    fn open_result(
        &self,
        frame: usize,
        handle: Handle<Expression>,
        mask: &Mask,
        out: &LaneValues,
    ) -> Option<(OpenResult, u32)> {
        let code = &self.codes[frame];
        let values = &self.frames[frame].values;
        let lanes = mask.total;
        let components = out.words.len() / lanes;
        let word = |operand: Handle<Expression>, component: usize, lane: usize| {
            scalar_lanes(&values[operand.index()].words, component, lanes)[lane]
        };
        let float = |operand: Handle<Expression>, component: usize, lane: usize| {
            f(word(operand, component, lane))
        };
        // Finds the first active lane with a component for which the test holds.
        let first = |open: OpenResult, test: &dyn Fn(usize, usize) -> bool| {
            let mut active = mask.lanes.iter().copied();
            let lane = active
                .find(|lane| (0..components).any(|component| test(component, *lane as usize)));
            lane.map(|lane| (open, lane))
        };
        // An exponential that overflowed has its own finding, and may be limited afterwards.
        let overflow = FindingKind::Open(OpenResult::Overflow);
        let mut known = self.findings.list.iter();
        let has_overflow = known.any(|finding| finding.kind == overflow);
        let is_strange = |x: f32| !(x.is_finite() || has_overflow && x == f32::INFINITY);
        match (
            &code.function.expressions[handle],
            code.checks[handle.index()],
        ) {
            (_, OpenCheck::Comparison { same: true }) => first(OpenResult::NanTest, &|_, _| true),
            (Expression::Binary { left, right, .. }, OpenCheck::Comparison { same: false }) => {
                first(OpenResult::NotFinite, &|component, lane| {
                    is_strange(float(*left, component, lane))
                        || is_strange(float(*right, component, lane))
                })
            }
            (Expression::Binary { left, right, .. }, OpenCheck::IntegerDivision) => {
                let is_signed = code.nodes[left.index()].scalar.kind == ScalarKind::Sint;
                first(OpenResult::IntegerDivision, &|component, lane| {
                    let (a, b) = (word(*left, component, lane), word(*right, component, lane));
                    b == 0 || is_signed && a == 1 << 31 && b == u32::MAX
                })
            }
            (Expression::Binary { right, .. }, OpenCheck::Shift) => {
                first(OpenResult::Shift, &|component, lane| {
                    word(*right, component, lane) > 31
                })
            }
            (Expression::As { expr, kind, .. }, OpenCheck::Conversion) => {
                let (low, high) = match kind {
                    ScalarKind::Sint => (-2_147_483_904.0, 2_147_483_648.0),
                    _ => (-1.0, 4_294_967_296.0),
                };
                first(OpenResult::Conversion, &|component, lane| {
                    let x = float(*expr, component, lane);
                    !(x > low && x < high)
                })
            }
            (
                Expression::Math {
                    arg, arg1, arg2, ..
                },
                OpenCheck::Math(fun),
            ) => {
                use MathFunction::*;
                let second = arg1.unwrap_or(*arg);
                let third = arg2.unwrap_or(*arg);
                let found = match fun {
                    Pow => first(OpenResult::PowOfNegative, &|component, lane| {
                        let x = float(*arg, component, lane);
                        x < 0.0 || x == 0.0 && float(second, component, lane) <= 0.0
                    }),
                    Clamp => first(OpenResult::Clamp, &|component, lane| {
                        float(second, component, lane) > float(third, component, lane)
                    }),
                    Exp | Sinh | Cosh | Tanh | Exp2 => {
                        let most = if fun == Exp2 { MOST_EXP2 } else { MOST_EXP };
                        let has_lower_limit = matches!(fun, Sinh | Cosh | Tanh);
                        first(OpenResult::Overflow, &|component, lane| {
                            let x = float(*arg, component, lane);
                            x.is_finite() && (x > most || has_lower_limit && x < -most)
                        })
                    }
                    _ => None,
                };
                let chooses = matches!(fun, Min | Max | Clamp | Sign | Step | Saturate);
                if found.is_some() || !chooses {
                    return found;
                }
                first(OpenResult::NotFinite, &|component, lane| {
                    let mut arguments = [Some(*arg), *arg1, *arg2].into_iter().flatten();
                    f(out.words[component * lanes + lane]).is_finite()
                        && arguments.any(|argument| is_strange(float(argument, component, lane)))
                })
            }
            _ => None,
        }
    }

    /// Records the liberties with which a device would compute other values, and computes the values of those that the launch takes.
    fn take_liberties(
        &mut self,
        frame: usize,
        handle: Handle<Expression>,
        span: Span,
        mask: &Mask,
        out: &mut LaneValues,
    ) {
        let code = &self.codes[frame];
        let values = &self.frames[frame].values;
        let lanes = mask.total;
        let components = out.words.len() / lanes;
        let word = |operand: Handle<Expression>, component: usize, lane: usize| {
            scalar_lanes(&values[operand.index()].words, component, lanes)[lane]
        };
        let liberties = &mut self.liberties;
        let taken = self.launch.liberties;
        let mut takes = |liberty: Liberty, differs: bool| {
            if differs {
                liberties[liberty as usize].get_or_insert(span);
            }
            differs && taken[liberty as usize]
        };
        let active = || {
            let of_component = |component: usize| {
                mask.lanes
                    .iter()
                    .map(move |lane| (component, *lane as usize))
            };
            (0..components).flat_map(of_component)
        };
        match (
            &code.function.expressions[handle],
            code.checks[handle.index()],
        ) {
            (_, OpenCheck::Arithmetic(Some(term))) => {
                for (component, lane) in active() {
                    let [a, b] = term.same.map(|operand| word(operand, component, lane));
                    let left = f(word(term.exact, component, lane));
                    let exact = if term.negative { -left } else { left };
                    let result = &mut out.words[component * lanes + lane];
                    let differs = a == b && f(*result) != exact && exact.is_finite();
                    if takes(Liberty::Reassociation, differs) {
                        *result = exact.to_bits();
                    }
                }
            }
            (
                Expression::Math {
                    arg,
                    arg1: Some(by),
                    arg2: Some(add),
                    ..
                },
                OpenCheck::Math(MathFunction::Fma),
            ) => {
                for (component, lane) in active() {
                    let [a, b, c] =
                        [*arg, *by, *add].map(|operand| f(word(operand, component, lane)));
                    let result = &mut out.words[component * lanes + lane];
                    let rounded = a * b + c;
                    // Where little is left of the product, its rounding is a large part of the result.
                    let differs = (rounded - f(*result)).abs() > 1e-4 * f(*result).abs();
                    if takes(Liberty::Fma, differs) {
                        *result = rounded.to_bits();
                    }
                }
            }
            (Expression::As { expr, .. }, OpenCheck::Bits) => {
                for (component, lane) in active() {
                    if takes(Liberty::ZeroSign, word(*expr, component, lane) == 1 << 31) {
                        out.words[component * lanes + lane] = 0;
                    }
                }
            }
            _ => {}
        }
    }

    /// Records numbers below the smallest normal one, and replaces them by 0 if the launch takes that liberty.
    fn drop_subnormals(&mut self, span: Span, mask: &Mask, out: &mut LaneValues) {
        let liberty = Liberty::Subnormals as usize;
        let drops = self.launch.liberties[liberty];
        let is_known = self.liberties[liberty].is_some();
        if is_known && !drops || !has_subnormal(&out.words, mask) {
            return;
        }
        self.liberties[liberty].get_or_insert(span);
        if drops {
            let small = out.words.iter_mut().filter(|word| is_subnormal(**word));
            small.for_each(|word| *word = 0);
        }
    }
}
