//! Matrix products on matrix cores: f16 operands, f32 sums, as WGSL with cooperative matrices. A subgroup holds a block of
//! 16×16 tiles of the result; a workgroup stages what its subgroups share. Measured on an H200 over Vulkan
//! (`docs/notes/gpu.md`). The text is `matmul_matrix_cores.wgsl`, with `matmul_matrix_cores_body.wgsl` for each product of a launch;
//! loops and choices are made here, and fill in their named parts.
//!
//! An f32 operand is split into two f16, x·s = high + low, where s is a power of two that brings the tensor's largest value just
//! below f16's. A·B is then high·high + high·low + low·high; the omitted term is below 2⁻²² of a product. Matrix cores round sums
//! towards zero, so each step's products start from zero and are added to the sums with an f32 addition
//! (Ootomo and Yokota, 2022, arXiv 2203.03341).

mod operand;
#[cfg(test)]
mod tests;

use super::epilogue::Store;
use super::products::{Product, Products, Staged};
use crate::ops::gpu::wgsl::{Binding, filled, flowed};
use crate::ops::linear::planner::Problem;
use minijinja::{Error, Value, context};
use operand::Operand;

pub(super) const FILE: &str = "linear/matmul_matrix_cores.wgsl";

/// One instruction multiplies matrices of this side.
const TILE: usize = 16;
/// A load reads a vector of this many values.
const LANES: usize = 4;
/// Rows in workgroup memory are this many values apart, against bank conflicts.
const PADDING: usize = 8;

/// Returns true if the operands' rows start at whole vectors.
pub(super) fn fits(problem: &Problem) -> bool {
    problem.lanes().iter().all(|lanes| *lanes == LANES)
}

/// Returns the WGSL type of four values of an operand in memory.
fn vector(staged: &Staged) -> &'static str {
    match staged {
        Staged::Short => "vec4<f16>",
        Staged::Full | Staged::Rounded | Staged::Halves(_) => "vec4<f32>",
    }
}

/// Returns the names and elements of A, B, the result, the buffers of the store, and the buffers of a norm: squares, 1/rms and output.
pub(super) fn buffers(product: &Product) -> Vec<(&'static str, &'static str)> {
    let [a, b] = product.staged.each_ref().map(vector);
    let out = match (product.store.is_linear(), by_vectors(product)) {
        (true, false) => "f32",
        (true, true) => "vec4<f32>",
        (false, _) => "vec4<f16>",
    };
    let mut all = vec![("a", a), ("b", b), ("out", out)];
    all.extend(product.store.buffers(out));
    if product.norm_parts > 0 {
        all.extend([("squares_of_a", "f32"), ("inverse", "f32")]);
        all.push(("normed", "vec4<f16>"));
    }
    all
}

/// Returns true if results pass through workgroup memory, where an invocation reads four adjacent values of a row.
fn by_vectors(product: &Product) -> bool {
    let sums = product.plan.slices > 1 || product.store == Store::Onto { for_norm: true };
    let ragged = product.problem.is_ragged(product.plan.tile);
    ragged || !product.store.is_linear() || sums || product.norm_parts > 0
}

/// Returns the values that fill in the file. The largest magnitudes of f32 operands are the last binding.
///
/// # Errors
/// When a file does not fit its values.
pub(super) fn values(all: &Products) -> Result<Value, Error> {
    let texts: Vec<ProductText> = all.0.iter().enumerate().map(ProductText::new).collect();
    let halves = texts[0].halves;
    let mut functions = functions_of_launch(&texts)?;
    let mut bodies = Vec::new();
    for text in &texts {
        functions += &text.functions()?;
        bodies.push(text.body()?);
    }
    let mut bindings = all.bindings();
    bindings.extend(halves.then(|| Binding {
        name: "largest".to_owned(),
        element: "f32",
    }));
    Ok(context! {
        notes => notes(&texts),
        bindings,
        staged => workgroup_memory(&texts),
        functions,
        threads => texts[0].threads,
        products => all.dispatched(&bodies),
    })
}

/// Returns the notes on what only some products do.
fn notes(texts: &[ProductText]) -> String {
    let any = |of: fn(&ProductText) -> bool| texts.iter().any(of);
    let notes = [
        (
            any(|text| text.sliced),
            "Slices. Two groups of subgroups compute a block from different inner values of each step. Their sums are added.",
        ),
        (
            any(|text| text.product.norm_parts > 0),
            "Norm. A is x·gain. A block multiplies its rows by r = 1/rms of x, and stores a share of the norm, x·gain·r.",
        ),
        (
            any(|text| text.halves),
            "Halves. An f32 operand becomes two f16, x·scale = high + low, and A·B = high·high + high·low + low·high.",
        ),
    ];
    let notes = notes.into_iter().filter(|(applies, _)| *applies);
    let numbered = notes
        .enumerate()
        .map(|(i, (_, note))| format!("\n// {}. {note}", i + 5));
    numbered.collect()
}

/// Returns the variables in workgroup memory. The product that needs the most determines the sizes.
fn workgroup_memory(texts: &[ProductText]) -> String {
    let first = &texts[0];
    let mut variables =
        "// A step's rows of A and columns of B, padded against bank conflicts.".to_owned();
    for (i, name) in ["a", "b"].into_iter().enumerate() {
        let sizes = texts.iter().map(|text| text.operands[i].vectors());
        let size = sizes.max().unwrap_or(0);
        for part in first.parts() {
            variables += &format!("\nvar<workgroup> {name}_{part}: array<vec4<f16>, {size}>;");
        }
    }
    if first.halves {
        variables += "
// The largest magnitudes of A and of B, as bits. Two of the four elements are padding: the matrices after this array
// then start at multiples of 16 bytes, which their loads need.
var<workgroup> bits: array<atomic<u32>, 4>;";
    }
    if texts.iter().any(|text| text.by_vectors) {
        let before = if texts.iter().any(|text| text.product.norm_parts > 0) {
            "; before, 1/rms of the block's rows"
        } else {
            ""
        };
        let size = 64 * first.threads / 32;
        variables += &format!("\n// A tile of C for each subgroup{before}.");
        variables += &format!("\nvar<workgroup> tiles: array<vec4<f32>, {size}>;");
    }
    variables
}

/// Returns the functions that all products of a launch share.
fn functions_of_launch(texts: &[ProductText]) -> Result<String, Error> {
    let any = |of: fn(&Store) -> bool| texts.iter().any(|text| of(&text.product.store));
    let rotates = any(|store| matches!(store, Store::Rope(_)));
    let files = [
        (rotates, "rope/rotated.wgsl"),
        (
            any(|store| *store == Store::Swiglu),
            "swiglu/activation.wgsl",
        ),
        (
            any(|store| *store == Store::SwigluBackward),
            "swiglu/gradients.wgsl",
        ),
        (any(|store| *store == FOR_NORM), "rms_norm/in_f16.wgsl"),
        (texts[0].halves, "linear/matmul_matrix_cores_halves.wgsl"),
    ];
    let mut functions = String::new();
    for (_, file) in files.into_iter().filter(|(applies, _)| *applies) {
        functions += "\n\n";
        functions += &filled(file, &())?;
    }
    Ok(functions)
}

/// The text of a product on matrix cores, with the product's number `n` in the launch.
struct ProductText<'a> {
    product: &'a Product,
    n: usize,
    /// A subgroup has this many tiles down and across, and a slice this many subgroups.
    tiles: (usize, usize),
    subgroups: (usize, usize),
    threads: usize,
    /// This is true if two groups of subgroups compute the block.
    sliced: bool,
    halves: bool,
    by_vectors: bool,
    ragged: bool,
    operands: [Operand; 2],
}

/// This store adds a matrix and does a part of the norm that follows.
const FOR_NORM: Store = Store::Onto { for_norm: true };

impl<'a> ProductText<'a> {
    fn new((n, product): (usize, &'a Product)) -> Self {
        let (problem, plan) = (&product.problem, &product.plan);
        // In an untransposed A and a transposed B, the inner values of a row or column are adjacent.
        let (height, width) = plan.tile;
        let a = Operand::new(
            product,
            "a",
            problem.a_transposed,
            ("row", height, problem.rows),
        );
        let of_b = ("column", width, problem.columns);
        let b = Operand::new(product, "b", !problem.b_transposed, of_b);
        Self {
            product,
            n,
            tiles: (plan.block.0 / TILE, plan.block.1 / TILE),
            subgroups: plan.blocks(),
            threads: plan.threads(),
            sliced: plan.slices > 1,
            halves: matches!(product.staged, [Staged::Halves(_), _]),
            by_vectors: by_vectors(product),
            ragged: problem.is_ragged(plan.tile),
            operands: [a, b],
        }
    }

    /// Returns the names of an operand's staged matrices.
    fn parts(&self) -> &'static [&'static str] {
        if self.halves {
            &["high", "low"]
        } else {
            &["staged"]
        }
    }

    fn body(&self) -> Result<String, Error> {
        let (plan, problem) = (&self.product.plan, &self.product.problem);
        let [a, b] = &self.operands;
        let in_slice = plan.slice_threads();
        let inners = if self.halves { 2 * TILE } else { TILE };
        let (subgroup, first) = if self.sliced {
            (
                format!(
                    "let subgroup = lane / 32u % {}u;\n  let team = lane / {in_slice}u;",
                    in_slice / 32
                ),
                format!("team * {inners}u"),
            )
        } else {
            ("let subgroup = lane / 32u;".to_owned(), "0u".to_owned())
        };
        let store = if self.by_vectors {
            self.store_vectors()?
        } else {
            self.store_matrices()
        };
        let values = context! {
            block => plan.tile,
            subgroup,
            subgroups => self.subgroups,
            tiles => self.tiles,
            scales => if self.halves { self.scales()? } else { String::new() },
            sums => flowed(self.grid(|i, j| format!("var sum{i}{j} = Sum();")), "", 2),
            // Inner values of a workgroup.
            share => plan.share(problem),
            inner => problem.inner,
            step => plan.step,
            hints => self.hints(),
            a => a.values(self),
            b => b.values(self),
            norm => match self.product.norm_parts {
                0 => String::new(),
                _ => self.norm()?,
            },
            next_loads => self.next_loads(),
            first,
            stride => inners * plan.slices,
            multiply => self.multiply(),
            store,
        };
        filled("linear/matmul_matrix_cores_body.wgsl", &values)
    }

    /// Returns comments that say why invocations read and stage lines in their order.
    fn hints(&self) -> String {
        let [a, b] = &self.operands;
        let far = "\n  // Lines of 64 bytes that are stored together are four apart, because neighbours share banks.";
        let turns = "\n  // 16 gates of B, then the 16 ups that belong to them, and so on: a subgroup has both.";
        let far = if a.across == 8 || b.across == 8 {
            far
        } else {
            ""
        };
        [far, if b.in_turns { turns } else { "" }].concat()
    }

    /// Returns a text for each tile of a subgroup, row by row.
    fn grid(&self, text: impl Fn(usize, usize) -> String) -> Vec<String> {
        let (down, across) = self.tiles;
        let all = 0..down * across;
        all.map(|at| text(at / across, at % across)).collect()
    }

    /// Returns the next step's loads, and the barrier after which workgroup memory is read.
    fn next_loads(&self) -> String {
        let step = self.product.plan.step;
        let [a, b] = self
            .operands
            .each_ref()
            .map(|operand| operand.loads(self.n, ""));
        let loads = format!(
            "next = select(begin, next + {step}u, next + {step}u < end);\n    {a}\n    {b}"
        );
        let what = "// Loads the next step's values, in the last step the first one's again, while";
        if self.threads == 128 && !self.halves {
            format!("{what} another workgroup may multiply.\n    {loads}\n    workgroupBarrier();")
        } else {
            format!("workgroupBarrier();\n    {what} this step is multiplied.\n    {loads}")
        }
    }

    /// Returns the text that computes the scales of halves.
    fn scales(&self) -> Result<String, Error> {
        let [a, b] = self.operands.each_ref().map(|operand| &operand.largest);
        let values = context! { a, b, threads => self.threads };
        filled("linear/matmul_matrix_cores_scales.wgsl", &values)
    }

    /// Returns the text that loads a step's matrices and multiplies each of B with all of A.
    fn multiply(&self) -> String {
        let (down, across) = self.tiles;
        let [a, b] = &self.operands;
        let mut lines: Vec<String> = (0..down).flat_map(|i| a.matrices(self, i)).collect();
        for j in 0..across {
            lines.extend(b.matrices(self, j));
            let products = (0..down).map(|i| {
                if self.halves {
                    return format!(
                        "sum{i}{j} = sum{i}{j} + coopMultiplyAdd(a_high{i}_16, b_high{j}_16, \
                         coopMultiplyAdd(a_high{i}_16, b_low{j}_16,
        coopMultiplyAdd(a_low{i}_16, b_high{j}_16, coopMultiplyAdd(a_high{i}_0, b_high{j}_0,
        coopMultiplyAdd(a_high{i}_0, b_low{j}_0, coopMultiplyAdd(a_low{i}_0, b_high{j}_0, Sum()))))));"
                    );
                }
                format!("sum{i}{j} = coopMultiplyAdd(rows{i}, columns{j}, sum{i}{j});")
            });
            lines.push(flowed(products, "", 6));
        }
        lines.join("\n      ")
    }

    /// Returns how many vectors of a row of the norm's output a block writes.
    fn share_of_norm(&self) -> usize {
        let [blocks, ..] = self.product.groups();
        (self.product.problem.inner / LANES).div_ceil(blocks)
    }

    /// Returns the text for the norm before the product: 1/rms of the block's rows, and the block's share of the norm's output.
    fn norm(&self) -> Result<String, Error> {
        let (n, rows, (height, _)) = (self.n, self.product.problem.rows, self.product.plan.tile);
        let loads = 0..(height * self.share_of_norm()).div_ceil(self.threads);
        let place = |load| format!("{}, row, group.x", plus("lane", load * self.threads));
        let read = |load| format!("let y{load} = read_scaled{n}({});", place(load));
        let store = |load| format!("store_normed{n}({}, y{load});", place(load));
        let inverse = |i: usize| {
            let row = plus("a_first", i * TILE);
            let of = |half| format!("tiles[{row}{half} + lane % 32u / 4u].x");
            if self.sliced {
                format!("let r{i} = {};", of(" + team * 8u"))
            } else {
                format!("let r{i} = vec2<f32>({}, {});", of(""), of(" + 8u"))
            }
        };
        let squares = |part| format!("squares_of_a{n}[{}]", plus("of_row", part * rows));
        let values = context! {
            n,
            squares => flowed((0..self.product.norm_parts).map(squares), " +", 18),
            inner => self.product.problem.inner,
            reads => flowed(loads.clone().map(read), "", 2),
            stores => flowed(loads.map(store), "", 2),
            rows => height,
            row => if self.ragged { format!("min(row + lane, {}u)", rows - 1) } else { "row + lane".to_owned() },
            inside => self.row_inside(),
            inverses => flowed((0..self.tiles.0).map(inverse), "", 2),
        };
        filled("linear/matmul_matrix_cores_inverse.wgsl", &values)
    }

    /// Returns the condition for a block's rows if blocks extend past the end.
    fn row_inside(&self) -> String {
        if self.ragged {
            format!(" && row + lane < {}u", self.product.problem.rows)
        } else {
            String::new()
        }
    }

    /// Returns the functions that load operands with edges, apply the norm before the product, and store the result.
    fn functions(&self) -> Result<String, Error> {
        let edges = self
            .operands
            .each_ref()
            .map(|operand| operand.function(self.n));
        let mut text = edges.concat();
        if self.product.norm_parts > 0 {
            text += &self.norm_functions()?;
        }
        if self.by_vectors {
            text += &self.store_functions()?;
        }
        Ok(text)
    }

    fn norm_functions(&self) -> Result<String, Error> {
        let (n, problem) = (self.n, &self.product.problem);
        let (rows, width) = (problem.rows, problem.inner / LANES);
        let [blocks, ..] = self.product.groups();
        let ((height, _), share) = (self.product.plan.tile, self.share_of_norm());
        let whole = (height * share).is_multiple_of(self.threads);
        let limits = [
            (!whole, format!("i / {share}u < {height}u")),
            (
                share * blocks > width,
                format!("block * {share}u + i % {share}u < {width}u"),
            ),
            (self.ragged, format!("row + i / {share}u < {rows}u")),
        ];
        let limits = limits.into_iter().filter(|(applies, _)| *applies);
        let inside = limits
            .map(|(_, limit)| limit)
            .collect::<Vec<_>>()
            .join(" && ");
        let read = read(
            "vec4<f16>",
            &format!("a{n}[place_in_share{n}(i, row, block)]"),
            &inside,
        );
        let [inside, end] = block(&inside);
        let values = context! { n, share, width, read, inside, end };
        filled("linear/matmul_matrix_cores_norm.wgsl", &values)
    }

    /// Returns a text for each row of a tile of which an invocation has four values. If two slices share a tile, an invocation has one row
    /// of it, otherwise two. `{row}` becomes the row, `[h]` the index of its values, and `[gate]` and `[up]` the indices of its gates and
    /// ups.
    fn by_row(&self, text: &str, between: &str) -> String {
        let row = |row: &str, [h, gate, up]: [&str; 3]| {
            let text = text.replace("{row}", row).replace("[h]", h);
            text.replace("[gate]", gate).replace("[up]", up)
        };
        if self.sliced {
            row("row", ["", "[0]", "[1]"])
        } else {
            let [first, second] = [["[0]", "[0]", "[1]"], ["[1]", "[2]", "[3]"]];
            row("row", first) + between + &row("row + 8u", second)
        }
    }

    /// Returns the functions of the epilogue for a tile of sums and for a row of a tile.
    fn store_functions(&self) -> Result<String, Error> {
        let (n, problem, store) = (self.n, &self.product.problem, &self.product.store);
        let of_slice = self.subgroups.0 * self.subgroups.1;
        let (values, squares, count) = if self.sliced {
            ("vec4<f32>", "f32", 2)
        } else {
            ("mat2x4<f32>", "vec2<f32>", 4)
        };
        let normed = self.product.norm_parts > 0;
        let parameter = if normed {
            format!(", r: {squares}")
        } else {
            String::new()
        };
        let r = if normed { ", r" } else { "" };
        let width = match store {
            Store::Swiglu => problem.columns / 2,
            _ => problem.columns,
        };
        let inside = if self.ragged {
            format!("row < {}u && column < {width}u", problem.rows)
        } else {
            String::new()
        };
        let (file, more, stored) = match store {
            Store::Plain => ("plain", ", part: u32", "value[h], part"),
            Store::Onto { for_norm: false } => (
                "plain",
                ", part: u32, added: VALUES",
                "value[h] + added[h], part",
            ),
            Store::Onto { for_norm: true } => (
                "for_norm",
                ", added: VALUES, gain: vec4<f32>",
                "value[h] + added[h], gain",
            ),
            Store::Rope(_) => ("rope", "", "value[h]"),
            Store::Swiglu => ("swiglu", "", "value[h], up[h]"),
            Store::SwigluBackward => {
                let gated = ", gated: array<vec4<f16>, COUNT>";
                ("swiglu_backward", gated, "value[h], gated[gate], gated[up]")
            }
        };
        let more = more
            .replace("VALUES", values)
            .replace("COUNT", &count.to_string());
        let stored = format!("store_row{n}({{row}}, column, {stored})");
        let (result, stored) = if self.for_norm() {
            let all = self.by_row(&stored, ",\n                   ");
            (
                format!(" -> {squares}"),
                format!("return {squares}({all});"),
            )
        } else {
            (String::new(), self.by_row(&stored, ";\n  ") + ";")
        };
        let (sums, first, up) = match store {
            Store::Swiglu => {
                let up = format!("let up = tile_values{n}(ups, lane{r});\n  ");
                ("gates: Sum, ups: Sum", "gates", up)
            }
            _ => ("sum: Sum", "sum", String::new()),
        };
        let size = problem.rows * width / LANES;
        let both = format!("tiles[at] + tiles[at + {}u]", 64 * of_slice);
        let of_tile = match (self.sliced, normed) {
            (true, true) => format!("({both}) * r"),
            (true, false) => both,
            (false, true) => "tiles[at] * r[0], tiles[at + 32u] * r[1]".to_owned(),
            (false, false) => "tiles[at], tiles[at + 32u]".to_owned(),
        };
        let own_tile = if self.sliced {
            let of_team = format!("lane / {}u * 32u", 32 * of_slice);
            format!("lane / 32u % {of_slice}u * 64u + {of_team}")
        } else {
            "lane / 32u * 64u".to_owned()
        };
        let gated = |first| format!("gated_row{n}({first}u, {{row}}, column)");
        let at = format!("(row * {width}u + column) / 4u");
        let [open, end] = block(&inside);
        let zero = if self.for_norm() && self.ragged {
            "\n  return 0.0;"
        } else {
            ""
        };
        let rotation = match store {
            Store::Rope(rotation) => Value::from_serialize(rotation),
            _ => context! {},
        };
        let of = context! {
            n, values, width, size, count,
            r => parameter,
            what => if self.sliced { "a row: the sums of both slices" } else { "each of two rows, eight apart" },
            at => own_tile,
            read => of_tile,
            residual => self.by_row(&format!("residual_row{n}({{row}}, column)"), ", "),
            read_residual => read("vec4<f32>", &format!("residual{n}[{at}]"), &inside),
            gated => self.by_row(&[gated(0), gated(size)].join(", "), ",\n    "),
            read_gated => read("vec4<f16>", &format!("gated{n}[first + {at}]"), &inside),
            inside => open,
            end => end + zero,
            ..rotation
        };
        let residual = matches!(store, Store::Onto { .. }).then_some("residual");
        let mut text = String::new();
        for file in ["tile"].into_iter().chain(residual).chain([file]) {
            text += &filled(&format!("linear/matmul_matrix_cores_{file}.wgsl"), &of)?;
        }
        text += &format!(
            "\nfn store_tile{n}({sums}, lane: u32, row: u32, column: u32{more}{parameter}){result} {{
  let value = tile_values{n}({first}, lane{r});
  {up}{stored}\n}}"
        );
        Ok(text)
    }

    /// Returns true if the sums of squares of rows are stored for a norm that follows.
    fn for_norm(&self) -> bool {
        self.product.store == FOR_NORM
    }

    /// Returns the text that passes tiles of sums to the epilogue.
    fn store_vectors(&self) -> Result<String, Error> {
        let (n, store, (down, across)) = (self.n, &self.product.store, self.tiles);
        let columns = self.product.problem.columns;
        let place =
            |i: usize, j: usize| format!("{}, {}", plus("top", i * TILE), plus("left", j * TILE));
        let team = if self.sliced { " + team * 8u" } else { "" };
        let column = match store {
            Store::Swiglu => "(column + b_first) / 2u",
            _ => "column + b_first",
        };
        let mut lines = vec![
            "// Stores the sums in C. An invocation has four adjacent values of a row of a tile, from `top` and `left` on.".to_owned(),
            format!("let top = row + a_first + lane % 32u / 4u{team};"),
            format!("let left = {column} + lane % 4u * 4u;"),
        ];
        if self.for_norm() {
            let zero = if self.sliced { "0.0" } else { "vec2<f32>()" };
            let squares = |i| format!("var own_squares{i} = {zero};");
            let gains = |j| match (plus("gain_at", j * TILE / LANES), self.ragged) {
                (at, true) => format!(
                    "let gains{j} = gain{n}[min({at}, {}u)];",
                    columns / LANES - 1
                ),
                (at, false) => format!("let gains{j} = gain{n}[{at}];"),
            };
            lines.push(flowed((0..down).map(squares), "", 2));
            lines.push("let gain_at = (column + b_first) / 4u + lane % 4u;".to_owned());
            lines.push(flowed((0..across).map(gains), "", 2));
        }
        // What a row of tiles is stored with. While one row is stored, the next one's values are on their way.
        let read = match store {
            Store::Onto { .. } => Some(("added", "residual_tile")),
            Store::SwigluBackward => Some(("gated", "gated_tile")),
            Store::Plain | Store::Rope(_) | Store::Swiglu => None,
        };
        let reads = |i: usize| {
            let (name, function) = read?;
            let tile = |j| format!("let {name}{i}{j} = {function}{n}({});", place(i, j));
            (i < down).then(|| flowed((0..across).map(tile), "", 2))
        };
        let sum = |i: usize, j: usize| {
            if self.halves {
                format!("sum{i}{j} * a_inverse * b_inverse")
            } else {
                format!("sum{i}{j}")
            }
        };
        let stored = |i: usize, j: usize| {
            let (before, more) = match store {
                Store::Plain => (String::new(), ", group.z".to_owned()),
                Store::Onto { for_norm: false } => {
                    (String::new(), format!(", group.z, added{i}{j}"))
                }
                Store::Onto { for_norm: true } => (
                    format!("own_squares{i} += "),
                    format!(", added{i}{j}, gains{j}"),
                ),
                Store::Rope(_) | Store::Swiglu => (String::new(), String::new()),
                Store::SwigluBackward => (String::new(), format!(", gated{i}{j}")),
            };
            let sums = match store {
                Store::Swiglu => format!("{}, {}", sum(i, 2 * j), sum(i, 2 * j + 1)),
                _ => sum(i, j),
            };
            let r = if self.product.norm_parts > 0 {
                format!(", r{i}")
            } else {
                String::new()
            };
            let place = place(i, j);
            format!("{before}store_tile{n}({sums}, lane, {place}{more}{r});")
        };
        // Gates are stored with their ups.
        let across = if *store == Store::Swiglu {
            across / 2
        } else {
            across
        };
        lines.extend(reads(0));
        for i in 0..down {
            lines.extend(reads(i + 1));
            lines.push(flowed((0..across).map(|j| stored(i, j)), "", 2));
        }
        let squares = if self.for_norm() {
            self.squares()?
        } else {
            String::new()
        };
        Ok(lines.join("\n  ") + &squares)
    }

    /// Returns the text that stores the sums in C where C has whole tiles.
    fn store_matrices(&self) -> String {
        let (n, problem) = (self.n, &self.product.problem);
        let (rows, columns) = (problem.rows, problem.columns);
        let tiles = self.grid(|i, j| {
            let at = plus("first", i * TILE * columns + j * TILE);
            let mut text = if self.halves {
                format!("sum{i}{j} = sum{i}{j} * a_inverse * b_inverse; ")
            } else {
                String::new()
            };
            if let Store::Onto { .. } = self.product.store {
                let added = format!("coopLoadT<Sum>(&residual{n}[{at}], {columns}u)");
                text += &format!("sum{i}{j} = sum{i}{j} + {added};\n  ");
            }
            text + &format!("coopStoreT(sum{i}{j}, &out{n}[{at}], {columns}u);")
        });
        let first = format!(
            "group.z * {}u + (row + a_first) * {columns}u",
            rows * columns
        );
        let tiles = flowed(tiles, "", 2);
        format!("// Stores the sums in C.\n  let first = {first} + column + b_first;\n  {tiles}")
    }

    /// Returns the text that stores the sums of squares of the block's rows for the norm that follows.
    fn squares(&self) -> Result<String, Error> {
        let ((down, _), (_, across)) = (self.tiles, self.subgroups);
        let rows_of_subgroup = TILE * down;
        let (each, zero, which, half) = if self.sliced {
            (
                4,
                "0.0",
                "",
                format!("(half * {}u + ", self.subgroups.0 * across),
            )
        } else {
            (2, "vec2<f32>()", " * 2u + half", "(".to_owned())
        };
        let put = (0..down).step_by(each).map(|first| {
            let squares = (first..first + each).map(|i| {
                if i < down {
                    format!("own_squares{i}")
                } else {
                    zero.to_owned()
                }
            });
            let at = plus("lane", first / each * self.threads);
            format!("tiles[{at}] = vec4<f32>({});", flowed(squares, ",", 0))
        });
        let values = context! {
            n => self.n,
            across,
            rows => self.product.plan.tile.0,
            height => self.product.problem.rows,
            inside => self.row_inside(),
            threads => self.threads,
            put => flowed(put, "", 2),
            which => format!("lane % {rows_of_subgroup}u / 16u{which}"),
            first => format!("{half}lane / {rows_of_subgroup}u * {across}u)"),
        };
        filled("linear/matmul_matrix_cores_squares.wgsl", &values)
    }
}

/// Returns statements that return the vector at `place`, or zero if the condition `inside` is false. An empty condition is always true.
fn read(vector: &str, place: &str, inside: &str) -> String {
    if inside.is_empty() {
        format!("return {place};")
    } else {
        format!("var value = {vector}();\n  if {inside} {{ value = {place}; }}\n  return value;")
    }
}

/// Returns the beginning and the end of statements under a condition. An empty condition is always true.
fn block(inside: &str) -> [String; 2] {
    if inside.is_empty() {
        [String::new(), String::new()]
    } else {
        [format!("if {inside} {{\n    "), "\n  }".to_owned()]
    }
}

/// Returns a place `more` values further.
fn plus(at: &str, more: usize) -> String {
    match more {
        0 => at.to_owned(),
        _ => format!("{at} + {more}u"),
    }
}
