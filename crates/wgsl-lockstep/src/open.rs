//! What WGSL leaves open: operations whose result differs from device to device, and liberties that a device may take with
//! arithmetic. The interpreter reports the former as findings. A launch that takes the latter shows whether a result depends on them.

use naga::{Arena, BinaryOperator, Expression, Handle, MathFunction, Scalar, ScalarKind, Span};

use super::arithmetic::{f, part};
use super::execute::Interpreter;
use super::finding::FindingKind;
use super::value::{LaneValues, Mask};

/// An operation whose result WGSL does not fix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpenResult {
    /// `pow` of a number below 0, or of 0 with an exponent that is not above 0.
    PowOfNegative,
    /// A shift by as many bits as the number has, or more.
    Shift,
    /// A conversion of a float that the integer type cannot hold.
    Conversion,
    /// An integer division by 0, or of the smallest i32 by −1.
    IntegerDivision,
    /// `clamp` whose lower limit is above its upper one.
    Clamp,
    /// An infinity or a NaN is compared, or decides which value is chosen.
    NotFinite,
    /// A float is compared with itself.
    NanTest,
    /// `exp`, `sinh`, `cosh` or `tanh` of a number whose exponential no f32 holds. Most devices give the limit.
    Overflow,
    /// A barrier is under a condition that depends on memory which other invocations may write.
    Barrier,
    /// A subgroup operation reads a lane that does not take part.
    InactiveLane,
    /// The result depends on the size of a subgroup.
    SubgroupSize,
}

/// What a device may do with arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Liberty {
    /// Numbers below the smallest normal one become 0.
    Subnormals,
    /// −0 becomes 0.
    ZeroSign,
    /// `fma` rounds its product.
    Fma,
    /// `(a + b) - a` becomes `b`.
    Reassociation,
}

impl OpenResult {
    /// What is left open, and what to write instead.
    const fn words(self) -> [&'static str; 2] {
        match self {
            Self::PowOfNegative => [
                "`pow` of a number that is not above 0: WGSL leaves the result open",
                "`x * x` for a square, or `pow(abs(x), y)`",
            ],
            Self::Shift => [
                "a shift by all bits of the number or more: devices differ",
                "`x << (n & 31u)`, or a condition on `n`",
            ],
            Self::Conversion => [
                "a float that this integer type cannot hold: devices differ",
                "`u32(clamp(x, 0.0, 4e9))`, or `i32(clamp(x, -2e9, 2e9))`",
            ],
            Self::IntegerDivision => [
                "an integer division by 0, or one that overflows: devices differ",
                "`x / max(n, 1u)`, or a condition on `n`",
            ],
            Self::Clamp => [
                "the lower limit of `clamp` is above the upper one: devices differ",
                "`clamp(x, min(a, b), max(a, b))`",
            ],
            Self::NotFinite => [
                "an infinity or a NaN is used as a value: WGSL promises neither",
                "a large finite number, such as -3.4e38 where a maximum begins, and a condition before a division by 0",
            ],
            Self::NanTest => [
                "a float is compared with itself: a device may take it for equal, also a NaN",
                "a condition on what makes the NaN, before it is made",
            ],
            Self::Overflow => [
                "the exponential overflows here: WGSL does not promise its limit",
                "a limit inside: `exp(min(x, 80.0))`, `tanh(clamp(x, -15.0, 15.0))`",
            ],
            Self::Barrier => [
                "the barrier is under a condition on a value from memory that others may write: browsers refuse it, \
                 even where all invocations agree",
                "`workgroupUniformLoad(&flag)` for the value, or the barrier outside of the condition",
            ],
            Self::InactiveLane => [
                "a lane that does not take part is read: its value is left open",
                "a lane below the size of the subgroup, outside of conditions",
            ],
            Self::SubgroupSize => [
                "the result depends on the size of a subgroup, and devices differ",
                "`subgroup_size` in place of a number",
            ],
        }
    }

    /// What is left open.
    pub const fn says(self) -> &'static str {
        self.words()[0]
    }

    /// What to write instead.
    pub const fn instead(self) -> &'static str {
        self.words()[1]
    }
}

impl Liberty {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::Subnormals,
        Self::ZeroSign,
        Self::Fma,
        Self::Reassociation,
    ];

    /// What a device may do, and what to write instead.
    const fn words(self) -> [&'static str; 2] {
        match self {
            Self::Subnormals => [
                "a device may replace numbers below 1.2e-38 by 0",
                "numbers scaled to about 1",
            ],
            Self::ZeroSign => [
                "a device may drop the sign of a zero",
                "a comparison with 0",
            ],
            Self::Fma => [
                "a device may round the product of `fma`",
                "a formula that needs no exact product",
            ],
            Self::Reassociation => [
                "a device may simplify `(a + b) - a` to `b`, so that nothing is left of the rounding error",
                "`round(x)` for a whole number, or a sum of fewer terms in each variable",
            ],
        }
    }

    /// What a device may do.
    pub const fn says(self) -> &'static str {
        self.words()[0]
    }

    /// What to write instead.
    pub const fn instead(self) -> &'static str {
        self.words()[1]
    }
}

/// What is looked at after an expression was evaluated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum OpenCheck {
    Nothing,
    Comparison {
        same: bool,
    },
    IntegerDivision,
    Shift,
    Conversion,
    /// A bitcast of a float.
    Bits,
    /// Float arithmetic, with the exact result of an error term and the two values that are equal in one.
    Arithmetic(Option<ErrorTerm>),
    Math(MathFunction),
}

/// `(a + b) - a`: without rounding it is `b`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ErrorTerm {
    same: [Handle<Expression>; 2],
    exact: Handle<Expression>,
    negative: bool,
}

/// Finds out what is looked at; `stored` is the only value that is ever stored in a local variable.
pub(crate) fn watch(
    expressions: &Arena<Expression>,
    handle: Handle<Expression>,
    scalar: impl Fn(Handle<Expression>) -> Scalar,
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
            (Op::Divide | Op::Modulo, ScalarKind::Sint | ScalarKind::Uint) => {
                OpenCheck::IntegerDivision
            }
            (Op::ShiftLeft | Op::ShiftRight, _) => OpenCheck::Shift,
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

fn error_term(
    all: &Arena<Expression>,
    op: BinaryOperator,
    [left, right]: [Handle<Expression>; 2],
    stored: &dyn Fn(Handle<Expression>) -> Option<Handle<Expression>>,
) -> Option<ErrorTerm> {
    use BinaryOperator::{Add, Subtract};
    let parts = |of: Handle<Expression>| match all[stored(of).unwrap_or(of)] {
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

/// The argument above which `exp` overflows, and `exp2`.
const MOST_EXP: f32 = 88.72;
const MOST_EXP2: f32 = 128.0;

fn is_subnormal(word: u32) -> bool {
    word & 0x7f80_0000 == 0 && word & 0x007f_ffff != 0
}

impl Interpreter<'_> {
    /// Reports what WGSL leaves open about an expression that was just evaluated, and takes the liberties of the launch.
    pub(crate) fn look(
        &mut self,
        frame: usize,
        handle: Handle<Expression>,
        span: Span,
        mask: &Mask,
        out: &mut LaneValues,
    ) {
        let code = &self.codes[frame];
        if code.watches[handle.index()] == OpenCheck::Arithmetic(None) {
            return self.drop_subnormals(span, out);
        }
        let node = &code.nodes[handle.index()];
        let values = &self.frames[frame].values;
        let lanes = mask.total;
        let components = out.words.len() / lanes;
        // The first active lane for which a test of one component holds.
        let first = |test: &dyn Fn(usize, usize) -> bool| {
            let mut all = mask.lanes.iter().copied();
            all.find(|lane| (0..components).any(|at| test(at, *lane as usize)))
        };
        let word = |of: Handle<Expression>, at: usize, lane: usize| {
            part(&values[of.index()].words, at, lanes)[lane]
        };
        let float = |of: Handle<Expression>, at: usize, lane: usize| f(word(of, at, lane));
        // An exponential that overflowed has its own finding, and may be limited afterwards.
        let overflow = FindingKind::Open(OpenResult::Overflow);
        let mut known = self.findings.list.iter();
        let overflowed = known.any(|finding| finding.kind == overflow);
        let strange = |x: f32| !(x.is_finite() || overflowed && x == f32::INFINITY);
        let open = match (
            &code.function.expressions[handle],
            code.watches[handle.index()],
        ) {
            (Expression::Binary { left, right, .. }, OpenCheck::Comparison { same }) => {
                let bad =
                    |at, lane| strange(float(*left, at, lane)) || strange(float(*right, at, lane));
                if same {
                    let mut lanes = mask.lanes.iter();
                    lanes.next().map(|lane| (OpenResult::NanTest, *lane))
                } else {
                    first(&bad).map(|lane| (OpenResult::NotFinite, lane))
                }
            }
            (Expression::Binary { left, right, .. }, OpenCheck::IntegerDivision) => {
                let signed = code.nodes[left.index()].scalar.kind == ScalarKind::Sint;
                let bad = |at, lane| {
                    let (a, b) = (word(*left, at, lane), word(*right, at, lane));
                    b == 0 || signed && a == 1 << 31 && b == u32::MAX
                };
                first(&bad).map(|lane| (OpenResult::IntegerDivision, lane))
            }
            (Expression::Binary { right, .. }, OpenCheck::Shift) => {
                let far = first(&|at, lane| word(*right, at, lane) > 31);
                far.map(|lane| (OpenResult::Shift, lane))
            }
            (Expression::As { expr, kind, .. }, OpenCheck::Conversion) => {
                let (low, high) = match kind {
                    ScalarKind::Sint => (-2_147_483_904.0, 2_147_483_648.0),
                    _ => (-1.0, 4_294_967_296.0),
                };
                let fits = |x: f32| x > low && x < high;
                let bad = first(&|at, lane| !fits(float(*expr, at, lane)));
                bad.map(|lane| (OpenResult::Conversion, lane))
            }
            (
                Expression::Math {
                    arg, arg1, arg2, ..
                },
                OpenCheck::Math(fun),
            ) => {
                let second = arg1.unwrap_or(*arg);
                let third = arg2.unwrap_or(*arg);
                use MathFunction::*;
                let found = match fun {
                    Pow => {
                        let bad = |at, lane| {
                            let x = float(*arg, at, lane);
                            x < 0.0 || x == 0.0 && float(second, at, lane) <= 0.0
                        };
                        first(&bad).map(|lane| (OpenResult::PowOfNegative, lane))
                    }
                    Clamp => {
                        let bad = |at, lane| float(second, at, lane) > float(third, at, lane);
                        first(&bad).map(|lane| (OpenResult::Clamp, lane))
                    }
                    Exp | Sinh | Cosh | Tanh | Exp2 => {
                        let most = if fun == Exp2 { MOST_EXP2 } else { MOST_EXP };
                        let far = |x: f32| x > most || fun != Exp && fun != Exp2 && x < -most;
                        let bad = first(&|at, lane| {
                            let x = float(*arg, at, lane);
                            x.is_finite() && far(x)
                        });
                        bad.map(|lane| (OpenResult::Overflow, lane))
                    }
                    _ => None,
                };
                let chooses = matches!(fun, Min | Max | Clamp | Sign | Step | Saturate);
                let each = [Some(*arg), *arg1, *arg2];
                let bad = |at, lane| {
                    let mut each = each.iter().flatten();
                    f(out.words[at * lanes + lane]).is_finite()
                        && each.any(|arg| strange(float(*arg, at, lane)))
                };
                let choice = || chooses.then(|| first(&bad)).flatten();
                found.or_else(|| choice().map(|lane| (OpenResult::NotFinite, lane)))
            }
            _ => None,
        };
        let mut met = [false; Liberty::ALL.len()];
        let taken = self.launch.liberties;
        let mut takes = |liberty: Liberty, does: bool| {
            met[liberty as usize] |= does;
            does && taken[liberty as usize]
        };
        match (
            &code.function.expressions[handle],
            code.watches[handle.index()],
        ) {
            (_, OpenCheck::Arithmetic(Some(term))) => {
                for at in 0..components {
                    for &lane in &mask.lanes {
                        let lane = lane as usize;
                        let [a, b] = term.same.map(|of| word(of, at, lane));
                        let exact = float(term.exact, at, lane);
                        let exact = if term.negative { -exact } else { exact };
                        let here = &mut out.words[at * lanes + lane];
                        let differs = a == b && f(*here) != exact && exact.is_finite();
                        if takes(Liberty::Reassociation, differs) {
                            *here = exact.to_bits();
                        }
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
                for at in 0..components {
                    for &lane in &mask.lanes {
                        let lane = lane as usize;
                        let [a, b, c] = [*arg, *by, *add].map(|of| float(of, at, lane));
                        let here = &mut out.words[at * lanes + lane];
                        let rounded = a * b + c;
                        // Where little is left of the product, its rounding is a large part of the result.
                        let differs = (rounded - f(*here)).abs() > 1e-4 * f(*here).abs();
                        if takes(Liberty::Fma, differs) {
                            *here = rounded.to_bits();
                        }
                    }
                }
            }
            (Expression::As { expr, .. }, OpenCheck::Bits) => {
                let from = &values[expr.index()].words;
                for (out, from) in out.words.iter_mut().zip(from) {
                    if takes(Liberty::ZeroSign, *from == 1 << 31) {
                        *out = 0;
                    }
                }
            }
            _ => {}
        }
        for liberty in Liberty::ALL {
            let known = &mut self.liberties[liberty as usize];
            if met[liberty as usize] && known.is_none() {
                *known = Some(span);
            }
        }
        let is_float = node.scalar.kind == ScalarKind::Float;
        if is_float
            && matches!(
                code.watches[handle.index()],
                OpenCheck::Arithmetic(_) | OpenCheck::Math(_)
            )
        {
            self.drop_subnormals(span, out);
        }
        if let Some((open, lane)) = open {
            let finding = self.finding(FindingKind::Open(open), span, lane);
            self.find(finding, usize::MAX);
        }
    }

    /// Notes numbers below the smallest normal one, and drops them if the launch takes that liberty.
    fn drop_subnormals(&mut self, span: Span, out: &mut LaneValues) {
        let liberty = Liberty::Subnormals as usize;
        let drops = self.launch.liberties[liberty];
        let is_known = self.liberties[liberty].is_some();
        if is_known && !drops || !out.words.iter().any(|word| is_subnormal(*word)) {
            return;
        }
        self.liberties[liberty].get_or_insert(span);
        if drops {
            let small = out.words.iter_mut().filter(|word| is_subnormal(**word));
            small.for_each(|word| *word = 0);
        }
    }
}
