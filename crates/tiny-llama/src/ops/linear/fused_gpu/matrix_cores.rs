//! Matrix products on matrix cores: f16 operands, f32 sums, as WGSL with cooperative matrices. A subgroup holds a block of
//! 16×16 tiles of the result; a workgroup stages what its subgroups share. Measured on an H200 over Vulkan
//! (`docs/notes/gpu.md`). The text is `matmul_matrix_cores.wgsl`, with `matmul_matrix_cores_body.wgsl` for each product of a launch;
//! loops and choices are made here, and fill in their named parts.
//!
//! An f32 operand is split into two f16, x·s = high + low, where s is a power of two that brings the tensor's largest value just
//! below f16's. A·B is then high·high + high·low + low·high; the omitted term is below 2⁻²² of a product. Matrix cores round sums
//! towards zero, so each step's products start from zero and are added to the sums with an f32 addition
//! (Ootomo and Yokota, 2022, arXiv 2203.03341).

use super::epilogue::Store;
use super::full::flowed;
use super::products::{Product, Products, Staged};
use crate::ops::gpu::wgsl::{Binding, filled};
use crate::ops::linear::planner::Problem;
use minijinja::{Error, Value, context};
use std::ops::Range;

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
    let products: Vec<CoresProduct> = all.0.iter().enumerate().map(CoresProduct::new).collect();
    let halves = products[0].halves;
    let mut functions = functions_of_launch(&products)?;
    let mut bodies = Vec::new();
    for product in &products {
        functions += &product.functions()?;
        bodies.push(product.body()?);
    }
    let mut bindings = all.bindings();
    bindings.extend(halves.then(|| Binding {
        name: "largest".to_owned(),
        of: "f32",
    }));
    Ok(context! {
        notes => notes(&products),
        bindings,
        staged => workgroup_memory(&products),
        functions,
        threads => products[0].threads,
        products => all.dispatched(&bodies),
    })
}

/// Returns the notes on what only some products do.
fn notes(products: &[CoresProduct]) -> String {
    let any = |of: fn(&CoresProduct) -> bool| products.iter().any(of);
    let notes = [
        (
            any(|product| product.sliced),
            "Slices. Two groups of subgroups compute a block from different inner values of each step. Their sums are added.",
        ),
        (
            any(|product| product.it.norm_parts > 0),
            "Norm. A is x·gain. A block multiplies its rows by r = 1/rms of x, and stores a share of the norm, x·gain·r.",
        ),
        (
            any(|product| product.halves),
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
fn workgroup_memory(products: &[CoresProduct]) -> String {
    let first = &products[0];
    let mut text =
        "// A step's rows of A and columns of B, padded against bank conflicts.".to_owned();
    for (i, name) in ["a", "b"].into_iter().enumerate() {
        let sizes = products.iter().map(|product| product.operands[i].vectors());
        let size = sizes.max().unwrap_or(0);
        for part in first.parts() {
            text += &format!("\nvar<workgroup> {name}_{part}: array<vec4<f16>, {size}>;");
        }
    }
    if first.halves {
        text += "
// The largest magnitudes of A and of B, as bits. Two of the four elements are padding: the matrices after this array
// then start at multiples of 16 bytes, which their loads need.
var<workgroup> bits: array<atomic<u32>, 4>;";
    }
    if products.iter().any(|product| product.by_vectors) {
        let before = match products.iter().any(|product| product.it.norm_parts > 0) {
            true => "; before, 1/rms of the block's rows",
            false => "",
        };
        let size = 64 * first.threads / 32;
        text += &format!("\n// A tile of C for each subgroup{before}.");
        text += &format!("\nvar<workgroup> tiles: array<vec4<f32>, {size}>;");
    }
    text
}

/// Returns the functions that all products of a launch share.
fn functions_of_launch(products: &[CoresProduct]) -> Result<String, Error> {
    let any = |of: fn(&Store) -> bool| products.iter().any(|product| of(&product.it.store));
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
        (products[0].halves, "linear/matmul_matrix_cores_halves.wgsl"),
    ];
    let mut text = String::new();
    for (_, file) in files.into_iter().filter(|(applies, _)| *applies) {
        text += "\n\n";
        text += &filled(file, &())?;
    }
    Ok(text)
}

/// A product on matrix cores, with its number `n` in the launch.
struct CoresProduct<'a> {
    it: &'a Product,
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

impl<'a> CoresProduct<'a> {
    fn new((n, it): (usize, &'a Product)) -> Self {
        let (problem, plan) = (&it.problem, &it.plan);
        // In an untransposed A and a transposed B, the inner values of a row or column are adjacent.
        let (height, width) = plan.tile;
        let a = Operand::new(it, "a", problem.a_transposed, ("row", height, problem.rows));
        let of_b = ("column", width, problem.columns);
        let b = Operand::new(it, "b", !problem.b_transposed, of_b);
        Self {
            it,
            n,
            tiles: (plan.block.0 / TILE, plan.block.1 / TILE),
            subgroups: plan.blocks(),
            threads: plan.threads(),
            sliced: plan.slices > 1,
            halves: matches!(it.staged, [Staged::Halves(_), _]),
            by_vectors: by_vectors(it),
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
        let (plan, problem) = (&self.it.plan, &self.it.problem);
        let [a, b] = &self.operands;
        let in_slice = plan.slice_threads();
        let inners = if self.halves { 2 * TILE } else { TILE };
        let (subgroup, first) = match self.sliced {
            true => (
                format!(
                    "let subgroup = lane / 32u % {}u;\n  let team = lane / {in_slice}u;",
                    in_slice / 32
                ),
                format!("team * {inners}u"),
            ),
            false => ("let subgroup = lane / 32u;".to_owned(), "0u".to_owned()),
        };
        let store = match self.by_vectors {
            true => self.store_vectors()?,
            false => self.store_matrices(),
        };
        let values = context! {
            block => plan.tile,
            subgroup,
            subgroups => self.subgroups,
            tiles => self.tiles,
            scales => match self.halves {
                true => self.scales()?,
                false => String::new(),
            },
            sums => flowed(self.grid(|i, j| format!("var sum{i}{j} = Sum();")), "", 2),
            // Inner values of a workgroup.
            share => plan.share(problem),
            inner => problem.inner,
            step => plan.step,
            hints => self.hints(),
            a => a.values(self),
            b => b.values(self),
            norm => match self.it.norm_parts {
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
        let step = self.it.plan.step;
        let [a, b] = self
            .operands
            .each_ref()
            .map(|operand| operand.loads(self.n, ""));
        let loads = format!(
            "next = select(begin, next + {step}u, next + {step}u < end);\n    {a}\n    {b}"
        );
        let what = "// Loads the next step's values, in the last step the first one's again, while";
        match self.threads == 128 && !self.halves {
            true => format!(
                "{what} another workgroup may multiply.\n    {loads}\n    workgroupBarrier();"
            ),
            false => {
                format!("workgroupBarrier();\n    {what} this step is multiplied.\n    {loads}")
            }
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
            let products = (0..down).map(|i| match self.halves {
                true => format!(
                    "sum{i}{j} = sum{i}{j} + coopMultiplyAdd(a_high{i}_16, b_high{j}_16, coopMultiplyAdd(a_high{i}_16, b_low{j}_16,
        coopMultiplyAdd(a_low{i}_16, b_high{j}_16, coopMultiplyAdd(a_high{i}_0, b_high{j}_0,
        coopMultiplyAdd(a_high{i}_0, b_low{j}_0, coopMultiplyAdd(a_low{i}_0, b_high{j}_0, Sum()))))));"
                ),
                false => format!("sum{i}{j} = coopMultiplyAdd(rows{i}, columns{j}, sum{i}{j});"),
            });
            lines.push(flowed(products, "", 6));
        }
        lines.join("\n      ")
    }

    /// Returns how many vectors of a row of the norm's output a block writes.
    fn share_of_norm(&self) -> usize {
        let [blocks, ..] = self.it.groups();
        (self.it.problem.inner / LANES).div_ceil(blocks)
    }

    /// Returns the text for the norm before the product: 1/rms of the block's rows, and the block's share of the norm's output.
    fn norm(&self) -> Result<String, Error> {
        let (n, rows, (height, _)) = (self.n, self.it.problem.rows, self.it.plan.tile);
        let loads = 0..(height * self.share_of_norm()).div_ceil(self.threads);
        let place = |load| format!("{}, row, group.x", plus("lane", load * self.threads));
        let read = |load| format!("let y{load} = read_scaled{n}({});", place(load));
        let store = |load| format!("store_normed{n}({}, y{load});", place(load));
        let inverse = |i: usize| {
            let row = plus("a_first", i * TILE);
            let of = |half| format!("tiles[{row}{half} + lane % 32u / 4u].x");
            match self.sliced {
                true => format!("let r{i} = {};", of(" + team * 8u")),
                false => format!("let r{i} = vec2<f32>({}, {});", of(""), of(" + 8u")),
            }
        };
        let squares = |part| format!("squares_of_a{n}[{}]", plus("of_row", part * rows));
        let values = context! {
            n,
            squares => flowed((0..self.it.norm_parts).map(squares), " +", 18),
            inner => self.it.problem.inner,
            reads => flowed(loads.clone().map(read), "", 2),
            stores => flowed(loads.map(store), "", 2),
            rows => height,
            row => match self.ragged {
                true => format!("min(row + lane, {}u)", rows - 1),
                false => "row + lane".to_owned(),
            },
            inside => self.row_inside(),
            inverses => flowed((0..self.tiles.0).map(inverse), "", 2),
        };
        filled("linear/matmul_matrix_cores_inverse.wgsl", &values)
    }

    /// Returns the condition for a block's rows if blocks extend past the end.
    fn row_inside(&self) -> String {
        match self.ragged {
            true => format!(" && row + lane < {}u", self.it.problem.rows),
            false => String::new(),
        }
    }

    /// Returns the functions that load operands with edges, apply the norm before the product, and store the result.
    fn functions(&self) -> Result<String, Error> {
        let edges = self
            .operands
            .each_ref()
            .map(|operand| operand.function(self.n));
        let mut text = edges.concat();
        if self.it.norm_parts > 0 {
            text += &self.norm_functions()?;
        }
        if self.by_vectors {
            text += &self.store_functions()?;
        }
        Ok(text)
    }

    fn norm_functions(&self) -> Result<String, Error> {
        let (n, problem) = (self.n, &self.it.problem);
        let (rows, width) = (problem.rows, problem.inner / LANES);
        let [blocks, ..] = self.it.groups();
        let ((height, _), share) = (self.it.plan.tile, self.share_of_norm());
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
        match self.sliced {
            true => row("row", ["", "[0]", "[1]"]),
            false => {
                let [first, second] = [["[0]", "[0]", "[1]"], ["[1]", "[2]", "[3]"]];
                row("row", first) + between + &row("row + 8u", second)
            }
        }
    }

    /// Returns the functions of the epilogue for a tile of sums and for a row of a tile.
    fn store_functions(&self) -> Result<String, Error> {
        let (n, problem, store) = (self.n, &self.it.problem, &self.it.store);
        let of_slice = self.subgroups.0 * self.subgroups.1;
        let (values, squares, count) = match self.sliced {
            true => ("vec4<f32>", "f32", 2),
            false => ("mat2x4<f32>", "vec2<f32>", 4),
        };
        let normed = self.it.norm_parts > 0;
        let parameter = if normed {
            format!(", r: {squares}")
        } else {
            String::new()
        };
        let (r, times_r) = if normed { (", r", " * r[h]") } else { ("", "") };
        let width = match store {
            Store::Swiglu => problem.columns / 2,
            _ => problem.columns,
        };
        let inside = match self.ragged {
            true => format!("row < {}u && column < {width}u", problem.rows),
            false => String::new(),
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
        let (result, stored) = match self.for_norm() {
            true => {
                let all = self.by_row(&stored, ",\n                   ");
                (
                    format!(" -> {squares}"),
                    format!("return {squares}({all});"),
                )
            }
            false => (String::new(), self.by_row(&stored, ";\n  ") + ";"),
        };
        let (sums, first, up) = match store {
            Store::Swiglu => {
                let up = format!("let up = tile_values{n}(ups, lane{r});\n  ");
                ("gates: Sum, ups: Sum", "gates", up)
            }
            _ => ("sum: Sum", "sum", String::new()),
        };
        let size = problem.rows * width / LANES;
        let of_tile = match self.sliced {
            true if normed => format!("(tiles[at] + tiles[at + {}u]) * r", 64 * of_slice),
            true => format!("tiles[at] + tiles[at + {}u]", 64 * of_slice),
            false => format!(
                "tiles[at]{times_r}, tiles[at + 32u]{}",
                times_r.replace('h', "1")
            )
            .replace("[h]", "[0]"),
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
            what => match self.sliced {
                true => "a row: the sums of both slices",
                false => "each of two rows, eight apart",
            },
            at => match self.sliced {
                true => format!("lane / 32u % {of_slice}u * 64u + lane / {}u * 32u", 32 * of_slice),
                false => "lane / 32u * 64u".to_owned(),
            },
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
        self.it.store == FOR_NORM
    }

    /// Returns the text that passes tiles of sums to the epilogue.
    fn store_vectors(&self) -> Result<String, Error> {
        let (n, store, (down, across)) = (self.n, &self.it.store, self.tiles);
        let columns = self.it.problem.columns;
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
        let sum = |i: usize, j: usize| match self.halves {
            true => format!("sum{i}{j} * a_inverse * b_inverse"),
            false => format!("sum{i}{j}"),
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
            let r = if self.it.norm_parts > 0 {
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
        let (n, problem) = (self.n, &self.it.problem);
        let (rows, columns) = (problem.rows, problem.columns);
        let tiles = self.grid(|i, j| {
            let at = plus("first", i * TILE * columns + j * TILE);
            let mut text = match self.halves {
                true => format!("sum{i}{j} = sum{i}{j} * a_inverse * b_inverse; "),
                false => String::new(),
            };
            if let Store::Onto { .. } = self.it.store {
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
        let (each, zero, which, half) = match self.sliced {
            true => (
                4,
                "0.0",
                "",
                format!("(half * {}u + ", self.subgroups.0 * across),
            ),
            false => (2, "vec2<f32>()", " * 2u + half", "(".to_owned()),
        };
        let put = (0..down).step_by(each).map(|first| {
            let squares = (first..first + each).map(|i| match i < down {
                true => format!("own_squares{i}"),
                false => zero.to_owned(),
            });
            let at = plus("lane", first / each * self.threads);
            format!("tiles[{at}] = vec4<f32>({});", flowed(squares, ",", 0))
        });
        let values = context! {
            n => self.n,
            across,
            rows => self.it.plan.tile.0,
            height => self.it.problem.rows,
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
    match inside.is_empty() {
        true => format!("return {place};"),
        false => format!(
            "var value = {vector}();\n  if {inside} {{ value = {place}; }}\n  return value;"
        ),
    }
}

/// Returns the beginning and the end of statements under a condition. An empty condition is always true.
fn block(inside: &str) -> [String; 2] {
    match inside.is_empty() {
        true => [String::new(), String::new()],
        false => [format!("if {inside} {{\n    "), "\n  }".to_owned()],
    }
}

/// Returns a place `more` values further.
fn plus(at: &str, more: usize) -> String {
    match more {
        0 => at.to_owned(),
        _ => format!("{at} + {more}u"),
    }
}

/// An operand in memory has lines of adjacent values, and is copied to workgroup memory in this layout. A line belongs to one inner value
/// (`inner_lines`), or to one row of A or column of B.
struct Operand {
    name: &'static str,
    /// This variable holds the block's first row of A or column of B.
    outer: &'static str,
    inner_lines: bool,
    vector: &'static str,
    /// A line has `across` vectors, and lines in workgroup memory are `pitch` vectors apart.
    across: usize,
    pitch: usize,
    /// A step has `lines` lines, and the vectors of one invocation are `lines_of_load` lines apart.
    lines: usize,
    lines_of_load: usize,
    /// The whole operand has this many lines, and a line this many values.
    whole: [usize; 2],
    /// This is true if the operand consists of whole steps.
    even: bool,
    /// This is true if the lines are gates and ups, which are interleaved.
    in_turns: bool,
    /// The operand's largest magnitude is the largest of these values.
    largest: Range<usize>,
}

impl Operand {
    fn new(
        of: &Product,
        name: &'static str,
        inner_lines: bool,
        (outer, block, whole): (&'static str, usize, usize),
    ) -> Self {
        let is_b = name == "b";
        let staged = &of.staged[usize::from(is_b)];
        // Each with the number in a step and in the whole operand.
        let (of_outer, of_inner) = ((block, whole), (of.plan.step, of.problem.inner));
        let [lines, values] = match inner_lines {
            true => [of_inner, of_outer],
            false => [of_outer, of_inner],
        };
        Self {
            name,
            outer,
            inner_lines,
            vector: vector(staged),
            across: values.0 / LANES,
            pitch: (values.0 + PADDING) / LANES,
            lines: lines.0,
            lines_of_load: of.plan.threads() * LANES / values.0,
            whole: [lines.1, values.1],
            even: lines.1.is_multiple_of(lines.0) && values.1.is_multiple_of(values.0),
            in_turns: is_b && of.store == Store::Swiglu,
            largest: match staged {
                Staged::Halves(range) => range.clone(),
                _ => 0..0,
            },
        }
    }

    /// Returns the number of vectors in workgroup memory.
    fn vectors(&self) -> usize {
        self.lines * self.pitch
    }

    /// Returns the values that fill in the body of a product.
    fn values(&self, of: &CoresProduct) -> Value {
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
            first_loads => self.loads(of.n, "var "),
            stages => self.stages(of.halves),
            // The place of a subgroup's first matrix at inner value `inner` of a step.
            from => match inner_lines {
                true => format!("inner * {pitch}u + {name}_first / 4u"),
                false => format!("{name}_first * {pitch}u + inner / 4u"),
            },
        }
    }

    /// Returns the number of vectors that an invocation loads in a step.
    fn count(&self) -> usize {
        self.lines / self.lines_of_load
    }

    /// Returns the text that loads this invocation's vectors of the step at `next` into registers.
    fn loads(&self, n: usize, declared: &str) -> String {
        let Self {
            name,
            inner_lines,
            whole,
            ..
        } = self;
        let step = match inner_lines {
            true => format!("{name}_at + next * {}u", whole[1] / LANES),
            false => format!("{name}_at + next / 4u"),
        };
        let load = |load: usize| {
            let far = load * self.lines_of_load;
            let further = match self.in_turns {
                true => far / 32 * 16 + far % 16 + far / 16 % 2 * (whole[0] / 2),
                false => far,
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
    fn function(&self, n: usize) -> String {
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
    fn stages(&self, halves: bool) -> String {
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
    fn matrices(&self, of: &CoresProduct, index: usize) -> Vec<String> {
        let Self {
            name,
            pitch,
            inner_lines,
            ..
        } = self;
        let is_b = *name == "b";
        let (role, variable) = match is_b {
            true => ("MatrixB", "columns"),
            false => ("MatrixA", "rows"),
        };
        let load = if *inner_lines == is_b {
            "coopLoadT"
        } else {
            "coopLoad"
        };
        let inners: &[usize] = if of.halves { &[0, TILE] } else { &[0] };
        let matrix = |part: &str, inner: usize| {
            let variable = match of.halves {
                true => format!("{name}_{part}{index}_{inner}"),
                false => format!("{variable}{index}"),
            };
            let far = match inner_lines {
                true => inner * pitch + index * TILE / LANES,
                false => index * TILE * pitch + inner / LANES,
            };
            let at = plus(&format!("{name}_from"), far);
            format!("let {variable} = {load}<{role}>(&{name}_{part}[{at}], {pitch}u);")
        };
        let parts = of.parts().iter();
        parts
            .flat_map(|part| inners.iter().map(move |inner| matrix(part, *inner)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::cpu::format::nearest;
    use crate::ops::cpu::testing::numbers;
    use crate::ops::format::Format;
    use crate::ops::gpu::check::{self, TestDevice};
    use crate::ops::gpu::format::converted;
    use crate::ops::gpu::wgsl::Wgsl as _;
    use crate::ops::linear::fused_gpu::epilogue::Epilogue;
    use crate::ops::linear::fused_gpu::{CORES, by_plans, product};
    use crate::ops::linear::planner::{Parts, Plan, Planner, tests::plans};
    use crate::ops::shapes::Rotation;
    use crate::ops::shared_work::PartialNorm;
    use burn::tensor::DType;
    use burn_cubecl::tensor::CubeTensor;
    use protocol::config::{Precision, Preset, RunConfig};

    fn multiply(
        pair: [&CubeTensor; 2],
        then: Epilogue,
        problem: Problem,
        halves: bool,
    ) -> CubeTensor {
        let format = if halves {
            Format::Split
        } else {
            Format::Native
        };
        product(pair, then, problem, format)
    }

    #[test]
    fn every_text_is_valid_wgsl() {
        let heads = [[1024, 1000, 512], [4096, 1000, 1024]];
        let heads = heads.map(|sizes| Problem::new(sizes, false, true));
        for problem in problems().into_iter().chain(heads) {
            let split = [Staged::Halves(0..1), Staged::Halves(1..300)];
            let short = [Staged::Short, Staged::Short];
            let mixed = [Staged::Short, Staged::Rounded];
            let all = [(split, 0), (short.clone(), 0), (mixed, 0), (short, 3)];
            for (staged, norm_parts) in all {
                let halves = matches!(staged, [Staged::Halves(_), _]);
                let planner = Planner::Cores { halves };
                let plan = planner.one(&problem, Parts::Launch);
                let onto = [(1, Store::Onto { for_norm: false }), (3, Store::Plain)];
                let for_norm = (1, Store::Onto { for_norm: true });
                let stores = onto.into_iter().chain((!halves).then_some(for_norm));
                let rope = Store::Rope(rotation(&problem));
                let fused = [(1, rope), (1, Store::Swiglu), (1, Store::SwigluBackward)];
                for (splits, store) in stores.chain(fused.into_iter().filter(|_| !halves)) {
                    let product = Product {
                        problem,
                        plan: plan.splits(splits),
                        store,
                        staged: staged.clone(),
                        norm_parts,
                    };
                    let bytes = check::valid_wgsl(&Products(vec![product]).program().text());
                    if !halves && plan.tile == (128, 128) {
                        assert!(2 * bytes <= check::WORKGROUP_MEMORY, "{bytes}, {store:?}");
                    }
                }
                let transposed = Problem {
                    a_transposed: true,
                    b_transposed: false,
                    ..problem
                };
                let plans = planner.pair(&[problem, transposed]);
                let products = plans.into_iter().zip([problem, transposed]);
                let products = products.map(|(plan, problem)| Product {
                    problem,
                    plan,
                    store: Store::Plain,
                    staged: staged.clone(),
                    norm_parts: 0,
                });
                check::valid_wgsl(&Products(products.collect()).program().text());
            }
        }
    }

    /// Returns the forward products of each preset in f16: name, problem, store, and whether the product applies the norm before it.
    fn shipped() -> Vec<(String, Problem, Store, bool)> {
        let mut all = Vec::new();
        for preset in [Preset::Tiny, Preset::Small, Preset::Medium] {
            let RunConfig { model, train, .. } = RunConfig::preset(preset);
            let (n, d, ffn) = (train.batch * train.context, model.hidden, model.ffn);
            let head_dim = d / model.heads;
            let keys = head_dim * model.kv_heads;
            let rope = |columns, rotated| {
                Store::Rope(Rotation {
                    width: columns,
                    rotated,
                    head_dim,
                    context: train.context,
                    inverse: false,
                })
            };
            let onto = Store::Onto { for_norm: false };
            let for_norm = Store::Onto { for_norm: true };
            let qkv = d + 2 * keys;
            let products = [
                ("q", d, d, rope(d, d), false),
                ("qkv", qkv, d, rope(qkv, d + keys), true),
                ("o", d, d, for_norm, false),
                ("gate-up alone", 2 * ffn, d, Store::Swiglu, false),
                ("gate-up", 2 * ffn, d, Store::Swiglu, true),
                ("down", d, ffn, for_norm, false),
                ("last down", d, ffn, onto, false),
                ("head alone", model.vocab, d, Store::Plain, false),
                ("head", model.vocab, d, Store::Plain, true),
            ];
            all.extend(products.map(|(name, columns, inner, store, with_norm)| {
                let problem = Problem::new([n, columns, inner], false, true);
                (format!("{preset:?} {name}"), problem, store, with_norm)
            }));
        }
        all
    }

    #[test]
    fn the_text_of_a_shipped_product_is_as_long_as_one_written_by_hand() {
        for (name, problem, store, with_norm) in shipped() {
            let product = Product {
                problem,
                plan: CORES.one(&problem, Parts::Launch).splits(1),
                store,
                staged: [Staged::Short, Staged::Short],
                norm_parts: if with_norm { 8 } else { 0 },
            };
            let has_edges = problem.is_ragged(product.plan.tile);
            let text = Products(vec![product]).program().text();
            check::valid_wgsl(&text);
            // The work of a norm before or behind the product and loads past its edges come with lines of their own.
            let norm = with_norm || store == Store::Onto { for_norm: true };
            let most = 150 + if norm { 55 } else { 0 } + if has_edges { 30 } else { 0 };
            let lines = text.lines().count();
            assert!(lines <= most, "{name}: {lines} lines\n{text}");
            let fits = |line: &str| line.chars().count() <= 120;
            assert!(text.lines().all(fits), "{name}\n{text}");
        }
    }

    /// Returns a rotation of three quarters of the columns, with heads of 4.
    fn rotation(problem: &Problem) -> Rotation {
        Rotation {
            width: problem.columns,
            rotated: problem.columns / 16 * 12,
            head_dim: 4,
            context: 50,
            inverse: false,
        }
    }

    fn problems() -> Vec<Problem> {
        let sizes = [
            [128, 128, 64],
            [256, 384, 512],
            [100, 72, 68],
            [300, 1000, 200],
            [2048, 1024, 64],
        ];
        let transposed = [(false, true), (false, false), (true, false)];
        let all = sizes
            .iter()
            .flat_map(|size| transposed.map(|(a, b)| Problem::new(*size, a, b)));
        all.collect()
    }

    #[test]
    fn products_agree_with_the_definition() {
        let Some(device) = TestDevice::any() else {
            return;
        };
        if !check::has_matrix_cores() {
            return println!("skipped: no matrix cores of 16x16x16 f16 to f32");
        }
        for problem in problems() {
            let Problem {
                rows,
                columns,
                inner,
                ..
            } = problem;
            let (a, b) = (numbers(1, rows * inner), numbers(2, inner * columns));
            // Values as small as gradients, and larger than any f16: the scale brings them into f16's range.
            let small: Vec<f32> = a.iter().map(|x| x * 1e-9).collect();
            let large: Vec<f32> = b.iter().map(|x| x * 1e7).collect();
            let residual = numbers(3, rows * columns);
            let added = device.tensor(&residual, [rows, columns]);
            let want = |a: &[f32], b: &[f32]| -> Vec<f32> {
                let product = definition(&problem, a, b).into_iter().zip(&residual);
                product.map(|(x, r)| (x + f64::from(*r)) as f32).collect()
            };
            let on_device =
                |a: &[f32], b: &[f32]| [a, b].map(|values| device.tensor(values, [values.len()]));

            let [a16, b16] = [&a, &b].map(|all| -> Vec<f32> {
                all.iter().map(|x| nearest(*x, Precision::F16)).collect()
            });
            let [x32, y32] = on_device(&a16, &b16);
            let [x, y] = [&x32, &y32].map(|it| converted(it.clone(), DType::F16));
            for pair in [[&x, &y32], [&x32, &y]] {
                let got = multiply(pair, Epilogue::Onto(&added, None), problem, false);
                let want = want(&a16, &b16);
                check::close(&format!("{problem:?}"), &device.read(&got), &want, 1e-5);
            }
            let plan = CORES.one(&problem, Parts::Launch);
            if plan.splits == 1 {
                let gain = numbers(4, columns);
                let on_gpu = device.tensor(&gain, [1, columns]);
                let [blocks, ..] = plan.groups(&problem);
                let partial = PartialNorm::empty(on_gpu, blocks, [rows, columns]);
                let then = Epilogue::Onto(&added, Some(&partial));
                multiply([&x, &y], then, problem, false);
                let stored = want(&a16, &b16);
                let gains = gain.iter().cycle();
                let want: Vec<f32> = stored.iter().zip(gains).map(|(x, g)| x * g).collect();
                let PartialNorm {
                    scaled, squares, ..
                } = partial;
                let got = device.read(&converted(scaled, DType::F32));
                check::close(&format!("{problem:?}, scaled"), &got, &want, 1e-3);
                let of_row = |row: &[f32]| row.iter().map(|x| x * x).sum();
                let want: Vec<f32> = stored.chunks(columns).map(of_row).collect();
                let got = sum(&device.read(&squares), rows);
                check::close(&format!("{problem:?}, squares"), &got, &want, 1e-4);
            }
            let then = Epilogue::Onto(&added, None);
            let got = device.read(&multiply([&x, &y], then, problem, false));
            check::close(&format!("{problem:?}"), &got, &want(&a16, &b16), 1e-5);

            for (a, b) in [(&a, &b), (&small, &large), (&vec![0.0; a.len()], &b)] {
                let [x, y] = on_device(a, b);
                let then = Epilogue::Onto(&added, None);
                let got = device.read(&multiply([&x, &y], then, problem, true));
                check::close(&format!("{problem:?}, split"), &got, &want(a, b), 1e-6);
                if b == &large {
                    alike(&device, [&x, &y], true, problem, 1e-6);
                }
            }
            alike(&device, [&x, &y], false, problem, 1e-5);
        }
    }

    /// Returns the sum of matrices of `size` values.
    fn sum(parts: &[f32], size: usize) -> Vec<f32> {
        assert!(parts.len().is_multiple_of(size));
        let of = |at: usize| parts.iter().skip(at).step_by(size).sum();
        (0..size).map(of).collect()
    }

    /// Asserts that two products in one launch, split or whole, give what each gives alone.
    fn alike(
        device: &TestDevice,
        pair: [&CubeTensor; 2],
        halves: bool,
        problem: Problem,
        off: f32,
    ) {
        let alone = device.read(&multiply(pair, Epilogue::Plain, problem, halves));
        let of_halves = |plan: &Plan| plan.subgroup > 1 && (plan.slices == 1) == halves;
        let of = |tile| plans().find(|plan| plan.tile == tile && of_halves(plan));
        let [middle, small] = [(64, 128), (64, 64)].map(|tile| of(tile).expect("in the table"));
        let large = plans().find(|plan| plan.block == (64, 64) && plan.subgroup > 1);
        let in_parts = |plan: Plan| plan.in_parts(2, &problem);
        let others = large.into_iter().filter(|_| !halves).chain([small]);
        let alike = others.map(|plan| [plan, in_parts(plan)]);
        for plans in alike.chain([[small, in_parts(middle)]]) {
            for plans in [plans, [plans[1], plans[0]]] {
                let planner = Planner::Cores { halves };
                let thens = [Epilogue::Plain; 2];
                for got in by_plans(planner, plans, [pair; 2], thens, [problem; 2]) {
                    let name = format!("{problem:?} {plans:?}");
                    check::close(&name, &device.read(&got), &alone, off);
                }
            }
        }
    }

    /// Returns A·B, summed in f64.
    fn definition(problem: &Problem, a: &[f32], b: &[f32]) -> Vec<f64> {
        let Problem {
            rows,
            columns,
            inner,
            a_transposed,
            b_transposed,
        } = *problem;
        let x = |i: usize, k: usize| {
            a[if a_transposed {
                k * rows + i
            } else {
                i * inner + k
            }]
        };
        let y = |k: usize, j: usize| {
            b[if b_transposed {
                j * inner + k
            } else {
                k * columns + j
            }]
        };
        let places = (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j)));
        places
            .map(|(i, j)| {
                let products = (0..inner).map(|k| f64::from(x(i, k)) * f64::from(y(k, j)));
                products.sum()
            })
            .collect()
    }
}
