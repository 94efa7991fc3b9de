//! The part of an operand that a workgroup stages in a step: where an invocation finds its pieces, and the lines that load and stage them.

use super::super::epilogue::Store;
use super::super::products::Product;
use super::{FullProduct, is_reordered};
use crate::ops::gpu::wgsl::{filled, flowed};
use crate::ops::linear::planner::padding;
use minijinja::{Error, context};

/// The part of an operand that a workgroup stages in a step: `line` vectors of rows of A or columns of B from `outer` on, for each of
/// the step's inner values. If these are adjacent in memory (`transposed`), an invocation loads pieces of four lines by four of them.
pub(super) struct StagedOperand {
    name: &'static str,
    outer: &'static str,
    transposed: bool,
    /// Values of a load.
    width: usize,
    /// True if steps and tiles end where the matrix ends.
    is_even: bool,
    /// The distance between lines in memory.
    stride: usize,
    /// The ends of lines and of a line's values.
    ends: [String; 2],
    /// The distance between gates and ups, if the first half of a tile's lines are gates and the other half their ups.
    ups: Option<usize>,
    /// Vectors of a line in workgroup memory.
    line: usize,
    /// The distance between lines in workgroup memory.
    pub pitch: usize,
    /// The place of the first line in workgroup memory.
    pub first: usize,
    /// Pieces that are loaded in a step.
    pieces: usize,
    /// Invocations of a workgroup, of which each loads a piece at a time.
    threads: usize,
    /// Pieces of a line that is transposed.
    quads: usize,
}

impl StagedOperand {
    pub(super) fn new(
        product: &Product,
        [name, outer]: [&'static str; 2],
        [side, whole]: [usize; 2],
        transposed: bool,
        first: usize,
    ) -> Self {
        let (plan, problem) = (&product.plan, &product.problem);
        let (all, inner) = (format!("{whole}u"), "end".to_owned());
        let (stride, ends, vectors) = if transposed {
            (problem.inner, [all, inner], 4)
        } else {
            (whole, [inner, all], 1)
        };
        let is_b = name == "b";
        Self {
            name,
            outer,
            transposed,
            width: problem.lanes()[usize::from(is_b)],
            is_even: whole.is_multiple_of(side)
                && problem.inner.is_multiple_of(plan.splits * plan.step),
            stride,
            ends,
            ups: (is_b && product.store == Store::Swiglu).then_some(problem.columns / 2),
            line: side / 4,
            pitch: side / 4 + usize::from(transposed) * padding(plan.step),
            first,
            pieces: side / 4 * plan.step / vectors,
            threads: plan.threads(),
            quads: plan.step / 4,
        }
    }

    /// Returns true if every load is of four values that are inside of the matrix.
    fn is_whole(&self) -> bool {
        self.width == 4 && self.is_even
    }

    /// Returns the number of pieces that an invocation loads in a step, and the vectors of a piece.
    fn held(&self) -> (usize, usize) {
        let vectors = if self.transposed { 4 } else { 1 };
        (self.pieces.div_ceil(self.threads), vectors)
    }

    /// Returns the lines that say where an invocation's first piece is, in memory and in workgroup memory.
    pub(super) fn begin(&self) -> String {
        let Self {
            name,
            outer,
            line,
            quads,
            first,
            pitch,
            ..
        } = self;
        let four = format!("lane / {quads}u * 4u");
        let half = line * 2;
        let line_in_memory = match (self.ups, self.transposed) {
            (Some(ups), _) => {
                format!("{outer} / 2u + {four} % {half}u + {four} / {half}u * {ups}u")
            }
            (None, true) => format!("{outer} + {four}"),
            (None, false) => format!("lane / {line}u"),
        };
        let (vector, to) = if self.transposed {
            (
                format!("lane % {quads}u"),
                format!("{first}u + lane % {quads}u * {pitch}u + lane / {quads}u"),
            )
        } else {
            (
                format!("{outer} / 4u + lane % {line}u"),
                format!("{first}u + lane % {line}u"),
            )
        };
        let from = match self.is_whole() {
            true => format!(
                "\n  let {name}_from = {name}_line * {}u + {name}_vector;",
                self.stride / 4
            ),
            false => String::new(),
        };
        format!(
            "let {name}_line = {line_in_memory};\n  let {name}_vector = {vector};{from}\n  let {name}_to = {to};"
        )
    }

    /// Returns a register for each vector of an invocation.
    pub(super) fn declarations(&self) -> impl Iterator<Item = String> {
        let (pieces, vectors) = self.held();
        let name = self.name;
        (0..pieces * vectors).map(move |at| format!("var {name}_next{at} = vec4<f32>();"))
    }

    /// Joins a text for each piece of an invocation, with a condition where not every invocation has the piece.
    fn each_piece(&self, text: impl Fn(usize) -> Vec<String>) -> String {
        let mut lines = Vec::new();
        for piece in 0..self.held().0 {
            let rest = self.pieces - piece * self.threads;
            if rest < self.threads {
                lines.push(format!(
                    "if lane < {rest}u {{ {} }}",
                    flowed(text(piece), "", 6)
                ));
            } else {
                lines.extend(text(piece));
            }
        }
        flowed(lines, "", 4)
    }

    /// Returns the lines that load an invocation's pieces of the step at `next` into its registers.
    pub(super) fn load(&self, product: &FullProduct) -> String {
        let (_, vectors) = self.held();
        self.each_piece(|piece| {
            let of_piece = vectors * piece..vectors * (piece + 1);
            of_piece.map(|at| self.load_vector(product, at)).collect()
        })
    }

    fn load_vector(&self, product: &FullProduct, at: usize) -> String {
        let (name, n, far) = (self.name, product.n, self.lines_to(at));
        if self.is_whole() {
            let step = match self.transposed {
                true => "next / 4u".to_owned(),
                false => format!("next * {}u", self.stride / 4),
            };
            let far = far * self.stride / 4;
            return format!("{name}_next{at} = {name}{n}[{name}_from + {step} + {far}u];");
        }
        let place = match self.transposed {
            true => format!("{name}_line + {far}u, {name}_vector + next / 4u"),
            false => format!("{name}_line + next + {far}u, {name}_vector"),
        };
        format!("{name}_next{at} = read_{name}{n}({place}, end);")
    }

    /// Returns the number of lines between an invocation's first vector and the vector `at`.
    fn lines_to(&self, at: usize) -> usize {
        let far = match self.transposed {
            true => at / 4 * self.threads / self.quads * 4 + at % 4,
            false => at * self.threads / self.line,
        };
        let half = self.line * 2;
        match self.ups {
            Some(ups) => far % half + far / half * ups,
            None => far,
        }
    }

    /// Returns the lines that copy an invocation's registers to workgroup memory.
    pub(super) fn stage(&self, product: &FullProduct) -> String {
        let (name, pitch, quads) = (self.name, self.pitch, self.quads);
        self.each_piece(|piece| {
            if self.transposed {
                let one = |(value, component): (usize, &str)| {
                    let four =
                        [0, 1, 2, 3].map(|i| format!("{name}_next{}.{component}", 4 * piece + i));
                    let place = piece * self.threads / quads + value * quads * pitch;
                    format!(
                        "staged[{name}_to + {place}u] = vec4<f32>({});",
                        four.join(", ")
                    )
                };
                return ["x", "y", "z", "w"]
                    .into_iter()
                    .enumerate()
                    .map(one)
                    .collect();
            }
            let inner = format!(
                "lane / {}u + {}u",
                self.line,
                piece * self.threads / self.line
            );
            let line = match is_reordered(&product.product.problem) {
                true => format!("line_of({inner})"),
                false => format!("({inner})"),
            };
            vec![format!(
                "staged[{name}_to + {line} * {pitch}u] = {name}_next{piece};"
            )]
        })
    }

    /// Returns the function that reads four values of an operand with edges; an empty text for others.
    pub(super) fn function(&self, n: usize) -> Result<String, Error> {
        let Self {
            name, stride, ends, ..
        } = self;
        if self.is_whole() {
            return Ok(String::new());
        }
        let [lines, values] = ends;
        let four = if self.width == 4 {
            let from = format!("{name}{n}[line * {}u + vector]", stride / 4);
            format!("if line < {lines} && vector * 4u < {values} {{ four = {from}; }}")
        } else {
            let each = (0..4).map(|value| {
                let at = format!("vector * 4u + {value}u");
                let inside = format!("line < {lines} && {at} < {values}");
                format!("if {inside} {{ four[{value}] = {name}{n}[line * {stride}u + {at}]; }}")
            });
            flowed(each, "", 2)
        };
        filled("linear/matmul_read.wgsl", &context! { n, name, four })
    }
}
