//! How the operands of products on matrix cores come to workgroup memory, and from there to a subgroup's matrices.

use super::wgsl::line;
use std::fmt::Write as _;
use std::ops::Range;

/// Side of the matrices that one instruction multiplies.
pub const TILE: usize = 16;
/// Values per vector of a load.
pub const LANES: usize = 4;
/// Values between the rows of workgroup memory, against bank conflicts.
const PADDING: usize = 8;

/// How an operand comes to workgroup memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Staged {
    /// f16 as it is.
    Short,
    /// f32 rounded to f16.
    Rounded,
    /// f32 as two f16; which values its largest magnitude is the largest of.
    Halves(Range<usize>),
}

/// An operand as it lies in memory: lines of neighbouring values, which go to workgroup memory as they are.
pub struct Operand<'a> {
    pub name: char,
    pub staged: &'a Staged,
    /// Whether a line belongs to one inner value, and not to one row of A or column of B.
    pub inner_lines: bool,
    /// Lines and values that a workgroup stages in a step.
    pub part: (usize, usize),
    /// Lines and values of the whole operand.
    pub whole: (usize, usize),
    /// Where the staged part begins.
    pub at: (&'static str, &'static str),
}

impl Operand<'_> {
    /// Vectors from line to line in workgroup memory.
    pub fn pitch(&self) -> usize {
        (self.part.1 + PADDING) / LANES
    }

    /// Loads of a vector for each invocation.
    pub fn loads(&self, invocations: usize) -> usize {
        self.part.0 * self.part.1 / LANES / invocations
    }

    /// Reads this invocation's share of the step at `next` into registers, from the bindings numbered `number`; zeros past
    /// the operand's ends.
    pub fn fetch(&self, text: &mut String, number: usize, invocations: usize) {
        let (across, name) = (self.part.1 / LANES, self.name);
        let (lines, values) = self.whole;
        let whole = lines.is_multiple_of(self.part.0) && values.is_multiple_of(self.part.1);
        for load in 0..self.loads(invocations) {
            let at = format!("(lane + {}u)", load * invocations);
            let of_line = format!("{} + {at} / {across}u", self.at.0);
            let value = format!("{} + {at} % {across}u * {LANES}u", self.at.1);
            let read = format!("{name}{number}[(({of_line}) * {values}u + {value}) / {LANES}u]");
            if whole {
                line!(text, "    {name}_{load} = {read};");
            } else {
                line!(text, "    {name}_{load} = {}();", self.vector());
                line!(
                    text,
                    "    if {of_line} < {lines}u && {value} < {values}u {{ {name}_{load} = {read}; }}"
                );
            }
        }
    }

    /// The matrices that it becomes: one, or two halves.
    pub fn parts(&self) -> impl Iterator<Item = (&Self, &'static str)> {
        let low = self.is_halved().then_some((self, "low"));
        [(self, "high")].into_iter().chain(low)
    }

    fn is_halved(&self) -> bool {
        matches!(self.staged, Staged::Halves(_))
    }

    /// Four values as they lie in memory.
    pub fn vector(&self) -> &'static str {
        match self.staged {
            Staged::Short => "vec4<f16>",
            Staged::Rounded | Staged::Halves(_) => "vec4<f32>",
        }
    }

    /// Writes the registers to workgroup memory.
    pub fn stage(&self, text: &mut String, invocations: usize) {
        let (across, pitch, name) = (self.part.1 / LANES, self.pitch(), self.name);
        for load in 0..self.loads(invocations) {
            let at = format!("(lane + {}u)", load * invocations);
            let to = format!("{at} / {across}u * {pitch}u + {at} % {across}u");
            if !self.is_halved() {
                line!(text, "    {name}_high[{to}] = vec4<f16>({name}_{load});");
                continue;
            }
            // The 11 leading bits of the significand are f16's. Written as a conversion there and back, drivers leave them out.
            line!(
                text,
                "    {{ let value = {name}_{load} * {name}_scale;\n      let high = bitcast<vec4<f32>>(bitcast<vec4<u32>>(value) & vec4<u32>(0xffffe000u));"
            );
            line!(
                text,
                "      {name}_high[{to}] = vec4<f16>(high);\n      {name}_low[{to}] = vec4<f16>(value - high); }}"
            );
        }
    }

    /// Loads the subgroup's matrix `index` of the 16 inner values from `inner` + slice on. A matrix whose lines are its rows is
    /// loaded by `coopLoadT`, one whose lines are its columns by `coopLoad`.
    pub fn load(&self, text: &mut String, half: &str, index: usize, inner: usize) {
        let (name, pitch) = (self.name, self.pitch());
        let role = name.to_ascii_uppercase();
        let by_rows = self.inner_lines == (name == 'b');
        let load = if by_rows { "coopLoadT" } else { "coopLoad" };
        let outer = format!("({name}_first + {}u)", index * TILE);
        let place = if self.inner_lines {
            format!("({inner}u + slice) * {pitch}u + {outer} / {LANES}u")
        } else {
            format!("{outer} * {pitch}u + ({inner}u + slice) / {LANES}u")
        };
        line!(
            text,
            "      let {name}_{half}{index}_{inner} = {load}<coop_mat16x16<f16, {role}>>(&{name}_{half}[{place}], {pitch}u);"
        );
    }
}
