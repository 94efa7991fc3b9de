//! An operand of a product on matrix cores: its layout in memory and in workgroup memory, and the lines that load, stage and multiply it.

use super::super::epilogue::Store;
use super::super::products::{Product, Staged};
use super::{LANES, PADDING, ProductText, TILE, plus, vector};
use crate::ops::gpu::wgsl::flowed;
use minijinja::{Value, context};
use std::ops::Range;

/// An operand in memory has lines of adjacent values, and is copied to workgroup memory in this layout. A line belongs to one inner value
/// (`inner_lines`), or to one row of A or column of B.
pub(super) struct Operand {
    pub name: &'static str,
    /// This variable holds the block's first row of A or column of B.
    pub outer: &'static str,
    pub inner_lines: bool,
    pub vector: &'static str,
    /// A line has `across` vectors, and lines in workgroup memory are `pitch` vectors apart.
    pub across: usize,
    pub pitch: usize,
    /// A step has `lines` lines, and the vectors of one invocation are `lines_of_load` lines apart.
    pub lines: usize,
    pub lines_of_load: usize,
    /// The whole operand has this many lines, and a line this many values.
    pub whole: [usize; 2],
    /// This is true if the operand consists of whole steps.
    pub even: bool,
    /// This is true if the lines are gates and ups, which are interleaved.
    pub in_turns: bool,
    /// The operand's largest magnitude is the largest of these values.
    pub largest: Range<usize>,
}

impl Operand {
    pub(super) fn new(
        product: &Product,
        name: &'static str,
        inner_lines: bool,
        (outer, block, whole): (&'static str, usize, usize),
    ) -> Self {
        let is_b = name == "b";
        let staged = &product.staged[usize::from(is_b)];
        // Each with the number in a step and in the whole operand.
        let (of_outer, of_inner) = ((block, whole), (product.plan.step, product.problem.inner));
        let [lines, values] = if inner_lines {
            [of_inner, of_outer]
        } else {
            [of_outer, of_inner]
        };
        Self {
            name,
            outer,
            inner_lines,
            vector: vector(staged),
            across: values.0 / LANES,
            pitch: (values.0 + PADDING) / LANES,
            lines: lines.0,
            lines_of_load: product.plan.threads() * LANES / values.0,
            whole: [lines.1, values.1],
            even: lines.1.is_multiple_of(lines.0) && values.1.is_multiple_of(values.0),
            in_turns: is_b && product.store == Store::Swiglu,
            largest: match staged {
                Staged::Halves(range) => range.clone(),
                _ => 0..0,
            },
        }
    }

    /// Returns the number of vectors in workgroup memory.
    pub(super) fn vectors(&self) -> usize {
        self.lines * self.pitch
    }

    /// Returns the values that fill in the body of a product.
    pub(super) fn values(&self, product: &ProductText) -> Value {
        let Self {
            name,
            outer,
            across,
            pitch,
            inner_lines,
            ..
        } = self;
        let line = format!("{name}_line");
        let mut value = format!("lane % {across}u * 4u");
        let mut first = match (self.in_turns, inner_lines) {
            (true, _) => {
                let ups = self.whole[0] / 2;
                format!("({outer} / 2u + {line} % 16u + {line} / 16u % 2u * {ups}u)")
            }
            (false, true) => line,
            (false, false) => format!("({outer} + {line})"),
        };
        if *inner_lines {
            value = format!("{outer} + {value}");
        }
        let mut edges = String::new();
        if !self.even {
            edges = format!("\n  let {name}_first_line = {first};\n  let {name}_value = {value};");
            first = format!("{name}_first_line");
            value = format!("{name}_value");
        }
        // The place of a subgroup's first matrix at inner value `inner` of a step.
        let from = if *inner_lines {
            format!("inner * {pitch}u + {name}_first / 4u")
        } else {
            format!("{name}_first * {pitch}u + inner / 4u")
        };
        context! {
            line => match across {
                8 => "lane / 64u * 8u + lane / 16u % 4u + lane / 8u % 2u * 4u".to_owned(),
                _ => format!("lane / {across}u"),
            },
            edges,
            first,
            value,
            width => self.whole[1],
            pitch,
            across,
            first_loads => self.loads(product.n, "var "),
            stages => self.stages(product.halves),
            from,
        }
    }

    /// Returns the number of vectors that an invocation loads in a step.
    pub(super) fn count(&self) -> usize {
        self.lines / self.lines_of_load
    }

    /// Returns the text that loads this invocation's vectors of the step at `next` into registers.
    pub(super) fn loads(&self, n: usize, declared: &str) -> String {
        let Self {
            name,
            inner_lines,
            whole,
            ..
        } = self;
        let step = if *inner_lines {
            format!("{name}_at + next * {}u", whole[1] / LANES)
        } else {
            format!("{name}_at + next / 4u")
        };
        let load = |load: usize| {
            let far = load * self.lines_of_load;
            let further = if self.in_turns {
                far / 32 * 16 + far % 16 + far / 16 % 2 * (whole[0] / 2)
            } else {
                far
            };
            let at = plus(&step, further * whole[1] / LANES);
            let line = plus(&format!("{name}_first_line"), further);
            let vector = match (self.even, inner_lines) {
                (true, _) => format!("{name}{n}[{at}]"),
                (false, true) => format!("read_{name}{n}({at}, {line} + next, {name}_value)"),
                (false, false) => format!("read_{name}{n}({at}, {line}, {name}_value + next)"),
            };
            format!("{declared}{name}_next{load} = {vector};")
        };
        let indent = if declared.is_empty() { 4 } else { 2 };
        flowed((0..self.count()).map(load), "", indent)
    }

    /// Returns the function that reads a vector, if the operand has edges.
    pub(super) fn function(&self, n: usize) -> String {
        let Self {
            name,
            vector,
            whole: [lines, values],
            ..
        } = self;
        if self.even {
            return String::new();
        }
        let inside = format!("line < {lines}u && value < {values}u");
        format!(
            "\n\n// Reads four values of a line of {}; zeros past its ends.
fn read_{name}{n}(at: u32, line: u32, value: u32) -> {vector} {{
  var four = {vector}();
  if {inside} {{ four = {name}{n}[at]; }}
  return four;\n}}",
            name.to_uppercase()
        )
    }

    /// Returns the text that copies what was loaded to workgroup memory.
    pub(super) fn stages(&self, halves: bool) -> String {
        let name = self.name;
        let stage = |load: usize| {
            let to = plus(
                &format!("{name}_to"),
                load * self.lines_of_load * self.pitch,
            );
            match (halves, self.vector) {
                (true, _) => format!("stage_{name}({to}, {name}_next{load} * {name}_scale);"),
                (false, "vec4<f16>") => format!("{name}_staged[{to}] = {name}_next{load};"),
                (false, _) => format!("{name}_staged[{to}] = vec4<f16>({name}_next{load});"),
            }
        };
        flowed((0..self.count()).map(stage), "", 4)
    }

    /// Returns the texts that load the subgroup's matrices with number `index`. `coopLoadT` loads a matrix that is stored row by row.
    pub(super) fn matrices(&self, product: &ProductText, index: usize) -> Vec<String> {
        let Self {
            name,
            pitch,
            inner_lines,
            ..
        } = self;
        let is_b = *name == "b";
        let (role, variable) = if is_b {
            ("MatrixB", "columns")
        } else {
            ("MatrixA", "rows")
        };
        let load = if *inner_lines == is_b {
            "coopLoadT"
        } else {
            "coopLoad"
        };
        let inners: &[usize] = if product.halves { &[0, TILE] } else { &[0] };
        let matrix = |part: &str, inner: usize| {
            let variable = if product.halves {
                format!("{name}_{part}{index}_{inner}")
            } else {
                format!("{variable}{index}")
            };
            let far = if *inner_lines {
                inner * pitch + index * TILE / LANES
            } else {
                index * TILE * pitch + inner / LANES
            };
            let at = plus(&format!("{name}_from"), far);
            format!("let {variable} = {load}<{role}>(&{name}_{part}[{at}], {pitch}u);")
        };
        let parts = product.parts().iter();
        parts
            .flat_map(|part| inners.iter().map(move |inner| matrix(part, *inner)))
            .collect()
    }
}
