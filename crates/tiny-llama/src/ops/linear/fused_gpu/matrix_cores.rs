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

/// Side of the matrices that one instruction multiplies.
const TILE: usize = 16;
/// Values per vector of a load.
const LANES: usize = 4;
/// Padding between rows of workgroup memory, in values, against bank conflicts.
const PADDING: usize = 8;

/// Returns true if the operands' rows start at whole vectors.
pub(super) fn fits(problem: &Problem) -> bool {
    problem.lanes().iter().all(|lanes| *lanes == LANES)
}

/// The WGSL type of four values of an operand in memory.
fn vector(staged: &Staged) -> &'static str {
    match staged {
        Staged::Short => "vec4<f16>",
        Staged::Full | Staged::Rounded | Staged::Halves(_) => "vec4<f32>",
    }
}

/// Names and elements of A, B, the result, the buffers of its store, and those of a norm: squares, 1/rms and its output.
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

fn are_halves(product: &Product) -> bool {
    matches!(product.staged, [Staged::Halves(_), _])
}

/// The values that fill in the file. The largest magnitudes of f32 operands are the last binding.
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

/// The notes on what only some products do.
fn notes(products: &[CoresProduct]) -> String {
    let any = |of: fn(&CoresProduct) -> bool| products.iter().any(of);
    let slices = "Slices. Two groups of subgroups compute a block from different inner values of each step. Their sums are added.";
    let norm = "Norm. A is x·gain. A block multiplies its rows by r = 1/rms of x, and stores a share of the norm, x·gain·r.";
    let halves = "Halves. An f32 operand becomes two f16, x·scale = high + low, and A·B = high·high + high·low + low·high.";
    let notes = [
        (any(|product| product.sliced), slices),
        (any(|product| product.it.norm_parts > 0), norm),
        (any(|product| product.halves), halves),
    ];
    let notes = notes.into_iter().filter(|(applies, _)| *applies);
    let numbered = notes
        .enumerate()
        .map(|(i, (_, note))| format!("\n// {}. {note}", i + 5));
    numbered.collect()
}

/// The variables in workgroup memory. The product that needs the most determines the sizes.
fn workgroup_memory(products: &[CoresProduct]) -> String {
    let first = &products[0];
    let what = "// A step's rows of A and columns of B, padded against bank conflicts.";
    let mut lines = vec![what.to_owned()];
    for (i, name) in ["a", "b"].into_iter().enumerate() {
        let vectors = products
            .iter()
            .map(|product| product.operands[i].vectors())
            .max();
        for part in first.parts() {
            let size = vectors.unwrap_or(0);
            lines.push(format!(
                "var<workgroup> {name}_{part}: array<vec4<f16>, {size}>;"
            ));
        }
    }
    if first.halves {
        lines.push(
            "// The largest magnitudes of A and of B, as bits. Two of the four elements are padding: the matrices after this array
// then start at multiples of 16 bytes, which their loads need.
var<workgroup> bits: array<atomic<u32>, 4>;"
                .to_owned(),
        );
    }
    if products.iter().any(|product| product.by_vectors) {
        let norm = products.iter().any(|product| product.it.norm_parts > 0);
        let before = if norm {
            "; before, 1/rms of the block's rows"
        } else {
            ""
        };
        let size = 64 * first.threads / 32;
        lines.push(format!(
            "// A tile of C for each subgroup{before}.\nvar<workgroup> tiles: array<vec4<f32>, {size}>;"
        ));
    }
    lines.join("\n")
}

/// The functions that all products of a launch share.
fn functions_of_launch(products: &[CoresProduct]) -> Result<String, Error> {
    let any = |of: fn(&Store) -> bool| products.iter().any(|product| of(&product.it.store));
    let files = [
        (
            any(|store| matches!(store, Store::Rope(_))),
            "rope/rotated.wgsl",
        ),
        (
            any(|store| *store == Store::Swiglu),
            "swiglu/activation.wgsl",
        ),
        (
            any(|store| *store == Store::SwigluBackward),
            "swiglu/gradients.wgsl",
        ),
        (
            any(|store| *store == Store::Onto { for_norm: true }),
            "rms_norm/in_f16.wgsl",
        ),
    ];
    let mut text = String::new();
    for (_, file) in files.into_iter().filter(|(applies, _)| *applies) {
        text += &["\n\n", &filled(file, &())?].concat();
    }
    if products[0].halves {
        text += "\n\n// 2^(biased - 127).\nfn power_of_two(biased: u32) -> f32 { return bitcast<f32>(biased << 23u); }

// The 11 leading bits of each significand, as many as f16 has. Drivers would remove a conversion to f16 and back.
fn high_part(value: vec4<f32>) -> vec4<f32> {
  return bitcast<vec4<f32>>(bitcast<vec4<u32>>(value) & vec4<u32>(0xffffe000u));
}";
        for name in ["a", "b"] {
            text += &format!(
                "\nfn stage_{name}(at: u32, value: vec4<f32>) {{
  let high = high_part(value);
  {name}_high[at] = vec4<f16>(high);
  {name}_low[at] = vec4<f16>(value - high);
}}"
            );
        }
    }
    Ok(text)
}

/// A product on matrix cores, and its number in the launch.
struct CoresProduct<'a> {
    it: &'a Product,
    n: usize,
    /// Tiles of a subgroup, down and across, and subgroups of a slice.
    tiles: (usize, usize),
    subgroups: (usize, usize),
    threads: usize,
    /// True if two groups of subgroups compute the block.
    sliced: bool,
    halves: bool,
    by_vectors: bool,
    ragged: bool,
    operands: [Operand; 2],
}

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
            halves: are_halves(it),
            by_vectors: by_vectors(it),
            ragged: problem.is_ragged(plan.tile),
            operands: [a, b],
        }
    }

    /// The names of the staged matrices of an operand.
    fn parts(&self) -> &'static [&'static str] {
        if self.halves {
            &["high", "low"]
        } else {
            &["staged"]
        }
    }

    /// Subgroups that compute the block from the same inner values.
    fn subgroups_of_slice(&self) -> usize {
        self.subgroups.0 * self.subgroups.1
    }

    /// Columns of what the product stores.
    fn width(&self) -> usize {
        match self.it.store {
            Store::Swiglu => self.it.problem.columns / 2,
            _ => self.it.problem.columns,
        }
    }

    fn body(&self) -> Result<String, Error> {
        let (plan, problem) = (&self.it.plan, &self.it.problem);
        let [a, b] = &self.operands;
        let of_slice = self.subgroups_of_slice();
        let inners = if self.halves { 2 } else { 1 };
        let of = |operand: &Operand| {
            context! {
                first_loads => operand.loads(self.n, "var "),
                stage => operand.stages(self.halves),
                from => operand.from(),
            }
        };
        let loads = [a, b].map(|operand| operand.loads(self.n, ""));
        let values = context! {
            block => plan.tile,
            subgroup => match self.sliced {
                true => format!(
                    "let subgroup = lane / 32u % {of_slice}u;\n  let team = lane / {}u;",
                    32 * of_slice
                ),
                false => "let subgroup = lane / 32u;".to_owned(),
            },
            subgroups => self.subgroups,
            tiles => self.tiles,
            scales => self.scales()?,
            sums => flowed(self.grid(|i, j| format!("var sum{i}{j} = Sum();")), "", 2),
            // Inner values of a workgroup.
            share => plan.share(problem),
            inner => problem.inner,
            step => plan.step,
            places => self.places(),
            a => of(a),
            b => of(b),
            norm => self.norm()?,
            load => self.load(&loads.join("\n    ")),
            first => match self.sliced {
                true => format!("team * {}u", TILE * inners),
                false => "0u".to_owned(),
            },
            stride => TILE * inners * plan.slices,
            multiply => self.multiply(),
            store => self.store()?,
        };
        filled("linear/matmul_matrix_cores_body.wgsl", &values)
    }

    /// Where an invocation reads and stages vectors.
    fn places(&self) -> String {
        let [a, b] = &self.operands;
        let far = "// Lines of 64 bytes that are stored together are four apart, because neighbours share banks.";
        let turns = "// 16 gates of B, then the 16 ups that belong to them, and so on: a subgroup has both.";
        let mut lines = Vec::new();
        lines.extend((a.across == 8 || b.across == 8).then(|| far.to_owned()));
        lines.extend(b.in_turns.then(|| turns.to_owned()));
        lines.extend([a.place(), b.place()]);
        lines.join("\n  ")
    }

    /// A text for each tile of a subgroup, row by row.
    fn grid(&self, text: impl Fn(usize, usize) -> String) -> Vec<String> {
        let (down, across) = self.tiles;
        let all = 0..down * across;
        all.map(|at| text(at / across, at % across)).collect()
    }

    /// The next step's loads, and the barrier after which workgroup memory is read.
    fn load(&self, loads: &str) -> String {
        let step = self.it.plan.step;
        let next =
            format!("next = select(begin, next + {step}u, next + {step}u < end);\n    {loads}");
        if self.threads == 128 && !self.halves {
            let why = "// Loads the next step's values, in the last step the first one's again, while another workgroup may multiply.";
            format!("    {why}\n    {next}\n    workgroupBarrier();\n")
        } else {
            let why = "// Loads the next step's values, in the last step the first one's again, while this step is multiplied.";
            format!("    workgroupBarrier();\n    {why}\n    {next}\n")
        }
    }

    /// The scales of halves.
    fn scales(&self) -> Result<String, Error> {
        if !self.halves {
            return Ok(String::new());
        }
        let threads = self.threads;
        let largest = self.operands.iter().enumerate().map(|(i, operand)| {
            let (start, end) = (operand.largest.start, operand.largest.end);
            format!("for (var i = {start}u + lane; i < {end}u; i += {threads}u) {{ atomicMax(&bits[{i}], bitcast<u32>(largest[i])); }}")
        });
        let factors = self
            .operands
            .iter()
            .enumerate()
            .map(|(i, Operand { name, .. })| {
                format!(
                    "let {name}_exponent = clamp(atomicLoad(&bits[{i}]) >> 23u, 15u, 254u);
  let {name}_scale = power_of_two(268u - {name}_exponent);
  let {name}_inverse = power_of_two({name}_exponent - 14u);"
                )
            });
        let values = context! {
            largest => largest.collect::<Vec<_>>().join("\n  "),
            factors => factors.collect::<Vec<_>>().join("\n  "),
        };
        filled("linear/matmul_matrix_cores_scales.wgsl", &values)
    }

    /// Loads a step's matrices and multiplies them: those of B one after the other, each with all of A.
    fn multiply(&self) -> String {
        let (down, across) = self.tiles;
        let [a, b] = &self.operands;
        let inners: &[usize] = if self.halves { &[0, TILE] } else { &[0] };
        let matrices = |operand: &Operand, i: usize| -> Vec<String> {
            let parts = self.parts().iter();
            let each = parts.flat_map(|part| inners.iter().map(move |inner| (part, inner)));
            each.map(|(part, inner)| operand.matrix(part, i, *inner))
                .collect()
        };
        let mut lines: Vec<String> = (0..down).flat_map(|i| matrices(a, i)).collect();
        for j in 0..across {
            lines.extend(matrices(b, j));
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

    /// The norm before the product: 1/rms of the block's rows, and the block's share of the norm's output.
    fn norm(&self) -> Result<String, Error> {
        let (n, problem) = (self.n, &self.it.problem);
        let rows = problem.rows;
        if self.it.norm_parts == 0 {
            return Ok(String::new());
        }
        let (height, _) = self.it.plan.tile;
        let share = self.share_of_norm();
        let loads = 0..(height * share).div_ceil(self.threads);
        let at = |load| format!("{}, row, group.x", plus("lane", load * self.threads));
        let reads = loads
            .clone()
            .map(|load| format!("let y{load} = read_scaled{n}({});", at(load)));
        let stores = loads.map(|load| format!("store_normed{n}({}, y{load});", at(load)));
        let factor = |i: usize| {
            let of = |half: &str| {
                format!(
                    "tiles[{}{half} + lane % 32u / 4u].x",
                    plus("a_first", i * TILE)
                )
            };
            match self.sliced {
                true => format!("let r{i} = {};", of(" + team * 8u")),
                false => format!("let r{i} = vec2<f32>({}, {});", of(""), of(" + 8u")),
            }
        };
        let parts = (0..self.it.norm_parts).map(|part| match part {
            0 => format!("squares_of_a{n}[of_row]"),
            _ => format!("squares_of_a{n}[of_row + {}u]", part * rows),
        });
        let values = context! {
            n,
            squares => flowed(parts, " +", 18),
            inner => problem.inner,
            reads => flowed(reads, "", 2),
            stores => flowed(stores, "", 2),
            rows => height,
            row => match self.ragged {
                true => format!("min(row + lane, {}u)", rows - 1),
                false => "row + lane".to_owned(),
            },
            inside => self.row_inside(),
            factors => flowed((0..self.tiles.0).map(factor), "", 2),
        };
        filled("linear/matmul_matrix_cores_inverse.wgsl", &values)
    }

    /// The vectors of a row of the norm's output that a block writes.
    fn share_of_norm(&self) -> usize {
        let [blocks, ..] = self.it.groups();
        (self.it.problem.inner / LANES).div_ceil(blocks)
    }

    /// What limits a block's rows, if blocks extend past the end.
    fn row_inside(&self) -> String {
        match self.ragged {
            true => format!(" && row + lane < {}u", self.it.problem.rows),
            false => String::new(),
        }
    }

    /// The functions that load operands with edges, apply the norm before the product, and store the result.
    fn functions(&self) -> Result<String, Error> {
        let mut text = String::new();
        for operand in &self.operands {
            text += &operand.function(self.n);
        }
        if self.it.norm_parts > 0 {
            text += &self.norm_functions()?;
        }
        if self.by_vectors {
            text += &self.store_functions();
        }
        Ok(text)
    }

    fn norm_functions(&self) -> Result<String, Error> {
        let (n, problem) = (self.n, &self.it.problem);
        let (rows, width) = (problem.rows, problem.inner / LANES);
        let [blocks, ..] = self.it.groups();
        let ((height, _), share) = (self.it.plan.tile, self.share_of_norm());
        let limits = [
            (
                !(height * share).is_multiple_of(self.threads),
                format!("i / {share}u < {height}u"),
            ),
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
        let place = format!("place_in_share{n}(i, row, block)");
        let read = match inside.is_empty() {
            true => format!("return a{n}[{place}];"),
            false => format!(
                "var value = vec4<f16>();\n  if {inside} {{ value = a{n}[{place}]; }}\n  return value;"
            ),
        };
        let put =
            format!("normed{n}[{place}] = vec4<f16>(vec4<f32>(value) * tiles[i / {share}u].x);");
        let put = guarded(&inside, &[put]);
        let values = context! {
            n, share, width, read, put
        };
        filled("linear/matmul_matrix_cores_norm.wgsl", &values)
    }

    /// What limits the stored values to C, if blocks extend past its edges.
    fn inside(&self) -> String {
        match self.ragged {
            true => format!(
                "row < {}u && column < {}u",
                self.it.problem.rows,
                self.width()
            ),
            false => String::new(),
        }
    }

    /// True if the sums of squares of rows are stored for a norm that follows.
    fn for_norm(&self) -> bool {
        self.it.store == Store::Onto { for_norm: true }
    }

    /// The functions of the epilogue: for a tile of sums, and for a row of it. If two slices share a tile, an invocation has one row of
    /// it, otherwise two.
    fn store_functions(&self) -> String {
        let n = self.n;
        let place = "lane: u32, row: u32, column: u32";
        let [r, by_r] = match (self.it.norm_parts, self.sliced) {
            (0, _) => ["", ""],
            (_, true) => [", r: f32", ", r"],
            (_, false) => [", r: vec2<f32>", ", r"],
        };
        let of_row = if self.sliced {
            "vec4<f32>"
        } else {
            "mat2x4<f32>"
        };
        let values = |sum: &str| format!("tile_values{n}({sum}, lane{by_r})");
        let (parameters, value, before, each) = match &self.it.store {
            Store::Plain => (
                format!("sum: Sum, {place}, part: u32{r}"),
                values("sum"),
                "part, ",
                vec!["value"],
            ),
            Store::Onto { for_norm: false } => (
                format!("sum: Sum, {place}, part: u32, added: {of_row}{r}"),
                values("sum") + " + added",
                "part, ",
                vec!["value"],
            ),
            Store::Onto { for_norm: true } => (
                format!("sum: Sum, {place}, added: {of_row}, gain: vec4<f32>{r}"),
                values("sum") + " + added",
                "",
                vec!["value", "gain"],
            ),
            Store::Rope(_) => (
                format!("sum: Sum, {place}{r}"),
                values("sum"),
                "",
                vec!["value"],
            ),
            Store::Swiglu => (
                format!("gates: Sum, ups: Sum, {place}{r}"),
                values("gates"),
                "",
                vec!["value", "up"],
            ),
            Store::SwigluBackward => {
                let of_tile = if self.sliced { 2 } else { 4 };
                let gated = format!("gated: array<vec4<f16>, {of_tile}>");
                (
                    format!("sum: Sum, {place}, {gated}{r}"),
                    values("sum"),
                    "",
                    vec!["value", "gated"],
                )
            }
        };
        let row = |row: usize| {
            let arguments = each.iter().map(|name| match (*name, self.sliced) {
                ("gain", _) => "gain".to_owned(),
                ("gated", _) => format!("gated[{}], gated[{}]", 2 * row, 2 * row + 1),
                (name, true) => name.to_owned(),
                (name, false) => format!("{name}[{row}]"),
            });
            let arguments = arguments.collect::<Vec<_>>().join(", ");
            format!(
                "store_row{n}({before}{}, column, {arguments})",
                plus("row", 8 * row)
            )
        };
        let mut lines = vec![format!("let value = {value};")];
        if self.it.store == Store::Swiglu {
            lines.push(format!("let up = {};", values("ups")));
        }
        let result = match (self.for_norm(), self.sliced) {
            (true, true) => {
                lines.push(format!("return {};", row(0)));
                " -> f32"
            }
            (true, false) => {
                lines.push(format!("return vec2<f32>({}, {});", row(0), row(1)));
                " -> vec2<f32>"
            }
            (false, _) => {
                let rows = if self.sliced { 1 } else { 2 };
                lines.extend((0..rows).map(|at| row(at) + ";"));
                ""
            }
        };
        let of_tile = format!(
            "\nfn store_tile{n}({parameters}){result} {{\n  {}\n}}",
            lines.join("\n  ")
        );
        self.tile_values() + &self.loads_of_store() + &self.store_row() + &of_tile
    }

    /// The function that passes a tile of sums through workgroup memory.
    fn tile_values(&self) -> String {
        let (n, normed) = (self.n, self.it.norm_parts > 0);
        let of_slice = self.subgroups_of_slice();
        let (what, result, at, [first, second]) = if self.sliced {
            (
                "four values of a row: the sum of both slices",
                "vec4<f32>",
                format!(
                    "lane / 32u % {of_slice}u * 64u + lane / {}u * 32u",
                    32 * of_slice
                ),
                [
                    "tiles[at]".to_owned(),
                    format!("tiles[at + {}u]", 64 * of_slice),
                ],
            )
        } else {
            (
                "four values of each of two rows, eight apart",
                "mat2x4<f32>",
                "lane / 32u * 64u".to_owned(),
                ["tiles[at]".to_owned(), "tiles[at + 32u]".to_owned()],
            )
        };
        let (parameter, values) = match (self.sliced, normed) {
            (true, false) => ("", format!("{first} + {second}")),
            (true, true) => (", r: f32", format!("({first} + {second}) * r")),
            (false, false) => ("", format!("mat2x4<f32>({first}, {second})")),
            (false, true) => (
                ", r: vec2<f32>",
                format!("mat2x4<f32>({first} * r.x, {second} * r.y)"),
            ),
        };
        format!(
            "\n\n// Passes a tile of sums through workgroup memory. An invocation gets {what}.
fn tile_values{n}(sum: Sum, lane: u32{parameter}) -> {result} {{
  coopStoreT(sum, &tiles[lane / 32u * 64u], 4u);
  workgroupBarrier();
  let at = {at} + lane % 32u;
  let values = {values};
  workgroupBarrier();
  return values;
}}"
        )
    }

    /// The functions that load what the epilogue needs for a tile.
    fn loads_of_store(&self) -> String {
        let (n, width) = (self.n, self.width());
        let at = format!("(row * {width}u + column) / 4u");
        // Zero past the edges.
        let read = |of: &str, buffer: &str, at: &str| match self.inside() {
            inside if inside.is_empty() => format!("return {buffer}{n}[{at}];"),
            inside => {
                let read = format!("if {inside} {{ value = {buffer}{n}[{at}]; }}");
                format!("var value = {of}();\n  {read}\n  return value;")
            }
        };
        match self.it.store {
            Store::Onto { .. } => {
                let read = read("vec4<f32>", "residual", &at);
                let of_tile = format!(
                    "\nfn residual_tile{n}(row: u32, column: u32) -> mat2x4<f32> {{
  return mat2x4<f32>(residual_row{n}(row, column), residual_row{n}(row + 8u, column));
}}"
                );
                let of_tile = if self.sliced { "" } else { &of_tile };
                format!(
                    "\n\n// Four values of R.\nfn residual_row{n}(row: u32, column: u32) -> vec4<f32> {{\n  {read}\n}}{of_tile}"
                )
            }
            Store::SwigluBackward => {
                let read = read("vec4<f16>", "gated", &format!("first + {at}"));
                let ups = self.it.problem.rows * width / 4;
                let rows = if self.sliced {
                    vec!["row"]
                } else {
                    vec!["row", "row + 8u"]
                };
                let values = rows.iter().flat_map(|row| {
                    ["0".to_owned(), ups.to_string()]
                        .map(|first| format!("gated_row{n}({first}u, {row}, column)"))
                });
                let count = 2 * rows.len();
                let values = flowed(values, ",", 4);
                format!(
                    "\n\n// Four gates or ups, whose matrix begins at `first`; the gates and ups of a tile.
fn gated_row{n}(first: u32, row: u32, column: u32) -> vec4<f16> {{\n  {read}\n}}
fn gated_tile{n}(row: u32, column: u32) -> array<vec4<f16>, {count}> {{
  return array<vec4<f16>, {count}>(\n    {values});\n}}"
                )
            }
            Store::Plain | Store::Rope(_) | Store::Swiglu => String::new(),
        }
    }

    /// The function that stores four values of a row.
    fn store_row(&self) -> String {
        let (n, width, inside) = (self.n, self.width(), self.inside());
        let size = self.it.problem.rows * width / 4;
        let at = format!("(row * {width}u + column) / 4u");
        let out = |at: &str, value: &str| format!("out{n}[{at}] = {value};");
        let row = "row: u32, column: u32";
        let (what, parameters, lines) = match &self.it.store {
            Store::Plain | Store::Onto { for_norm: false } => (
                "Stores four values of a row of C, or of a part of it",
                format!("part: u32, {row}, value: vec4<f32>"),
                vec![out(&format!("part * {size}u + {at}"), "value")],
            ),
            Store::Rope(of) => {
                let (context, head, half) = (of.context, of.head_dim, of.head_dim / 2);
                let angle = format!("(row % {context}u * {half}u + column % {head}u / 2u) / 2u");
                let turn = format!("turned = rotated(value, cos{n}[angle], sin{n}[angle]);");
                let lines = vec![
                    "var turned = value;".to_owned(),
                    format!("if column < {}u {{", of.rotated),
                    format!("  let angle = {angle};"),
                    format!("  {turn}"),
                    "}".to_owned(),
                    out(&at, "vec4<f16>(turned)"),
                ];
                let what = "Rotates four values of a row of C and stores them";
                (what, format!("{row}, value: vec4<f32>"), lines)
            }
            Store::Swiglu => {
                let lines = vec![
                    format!("let at = {at};"),
                    out("at", "vec4<f16>(gate)"),
                    out(&format!("at + {size}u"), "vec4<f16>(up)"),
                    out(
                        &format!("at + {}u", 2 * size),
                        "vec4<f16>(swiglu(gate, up))",
                    ),
                ];
                let what =
                    "Stores four gates, their ups and activations: one matrix after the other";
                (
                    what,
                    format!("{row}, gate: vec4<f32>, up: vec4<f32>"),
                    lines,
                )
            }
            Store::SwigluBackward => {
                let gradient = "vec4<f16>(gate_gradient(d, vec4<f32>(gate), vec4<f32>(up)))";
                let lines = vec![
                    format!("let at = (row * {}u + column) / 4u;", 2 * width),
                    out("at", gradient),
                    out(
                        &format!("at + {}u", width / 4),
                        "vec4<f16>(up_gradient(d, vec4<f32>(gate)))",
                    ),
                ];
                let what = "Stores the gradients of four gates and of their ups, from those of the activations";
                let parameters = format!("{row}, d: vec4<f32>, gate: vec4<f16>, up: vec4<f16>");
                (what, parameters, lines)
            }
            Store::Onto { for_norm: true } => {
                let lines = vec![
                    format!("let at = {at};"),
                    out("at", "value"),
                    format!("scaled{n}[at] = in_f16(value * gain);"),
                    "return dot(value, value);".to_owned(),
                ];
                let what = "Stores four values of a row of C, also times the next norm's gain; returns the sum of their squares";
                (
                    what,
                    format!("{row}, value: vec4<f32>, gain: vec4<f32>"),
                    lines,
                )
            }
        };
        let (result, past) = match self.for_norm() {
            true if self.ragged => (" -> f32", "\n  return 0.0;"),
            true => (" -> f32", ""),
            false => ("", ""),
        };
        let body = guarded(&inside, &lines);
        format!("\n\n// {what}.\nfn store_row{n}({parameters}){result} {{\n  {body}{past}\n}}")
    }

    /// Stores the sums in C.
    fn store(&self) -> Result<String, Error> {
        if !self.by_vectors {
            return Ok(self.store_matrices());
        }
        let (n, store) = (self.n, &self.it.store);
        let (down, across) = self.tiles;
        let problem = &self.it.problem;
        let place = |i: usize, j: usize| {
            let column = plus("left", j * TILE);
            format!("{}, {column}", plus("top", i * TILE))
        };
        let row_of_team = if self.sliced { " + team * 8u" } else { "" };
        let block_column = match store {
            Store::Swiglu => "(column + b_first) / 2u",
            _ => "column + b_first",
        };
        let mut lines = vec![
            "// Stores the sums in C. An invocation has four adjacent values of a row of a tile, from `top` and `left` on.".to_owned(),
            format!("let top = row + a_first + lane % 32u / 4u{row_of_team};"),
            format!("let left = {block_column} + lane % 4u * 4u;"),
        ];
        if self.for_norm() {
            let zero = if self.sliced { "0.0" } else { "vec2<f32>()" };
            let squares = (0..down).map(|i| format!("var own_squares{i} = {zero};"));
            lines.push(flowed(squares, "", 2));
            lines.push("let gain_at = (column + b_first) / 4u + lane % 4u;".to_owned());
            let last = problem.columns / LANES - 1;
            let gains = (0..across).map(|j| {
                let at = plus("gain_at", j * TILE / LANES);
                match self.ragged {
                    true => format!("let gains{j} = gain{n}[min({at}, {last}u)];"),
                    false => format!("let gains{j} = gain{n}[{at}];"),
                }
            });
            lines.push(flowed(gains, "", 2));
        }
        // What a row of tiles is stored with. While one row is stored, the next one's values are on their way.
        let kind = match (store, self.sliced) {
            (Store::Onto { .. }, true) => Some(("added", "residual_row")),
            (Store::Onto { .. }, false) => Some(("added", "residual_tile")),
            (Store::SwigluBackward, _) => Some(("gated", "gated_tile")),
            (Store::Plain | Store::Rope(_) | Store::Swiglu, _) => None,
        };
        let loads = |i: usize| {
            let (name, function) = kind.filter(|_| i < down)?;
            let each =
                (0..across).map(|j| format!("let {name}{i}{j} = {function}{n}({});", place(i, j)));
            Some(flowed(each, "", 2))
        };
        let r = |i: usize| match self.it.norm_parts {
            0 => String::new(),
            _ => format!(", r{i}"),
        };
        let sum = |i: usize, j: usize| match self.halves {
            true => format!("sum{i}{j} * a_inverse * b_inverse"),
            false => format!("sum{i}{j}"),
        };
        lines.extend(loads(0));
        for i in 0..down {
            lines.extend(loads(i + 1));
            let tiles = (0..across).filter_map(|j| {
                let (at, r) = (format!("{}, lane, {}", sum(i, j), place(i, j)), r(i));
                Some(match store {
                    // The gates are stored with the ups.
                    Store::Swiglu if j % 2 == 0 => return None,
                    Store::Swiglu => {
                        let sums = format!("{}, {}", sum(i, j - 1), sum(i, j));
                        format!("store_tile{n}({sums}, lane, {}{r});", place(i, j / 2))
                    }
                    Store::SwigluBackward => format!("store_tile{n}({at}, gated{i}{j}{r});"),
                    Store::Rope(_) => format!("store_tile{n}({at}{r});"),
                    Store::Plain => format!("store_tile{n}({at}, group.z{r});"),
                    Store::Onto { for_norm: false } => {
                        format!("store_tile{n}({at}, group.z, added{i}{j}{r});")
                    }
                    Store::Onto { for_norm: true } => {
                        format!("own_squares{i} += store_tile{n}({at}, added{i}{j}, gains{j}{r});")
                    }
                })
            });
            lines.push(flowed(tiles, "", 2));
        }
        let squares = if self.for_norm() {
            self.squares()?
        } else {
            String::new()
        };
        Ok(lines.join("\n  ") + &squares)
    }

    /// Stores the sums in C where it has whole tiles, which can be stored as they are.
    fn store_matrices(&self) -> String {
        let (n, problem) = (self.n, &self.it.problem);
        let (rows, columns) = (problem.rows, problem.columns);
        let tiles = self.grid(|i, j| {
            let at = plus("first", i * TILE * columns + j * TILE);
            let scaled = match self.halves {
                true => format!("sum{i}{j} = sum{i}{j} * a_inverse * b_inverse; "),
                false => String::new(),
            };
            let stored = format!("coopStoreT(sum{i}{j}, &out{n}[{at}], {columns}u);");
            match self.it.store {
                Store::Onto { .. } => format!(
                    "{scaled}sum{i}{j} = sum{i}{j} + coopLoadT<Sum>(&residual{n}[{at}], {columns}u);\n  {stored}"
                ),
                _ => scaled + &stored,
            }
        });
        let first = format!(
            "let first = group.z * {}u + (row + a_first) * {columns}u + column + b_first;",
            rows * columns
        );
        format!(
            "// Stores the sums in C.\n  {first}\n  {}",
            flowed(tiles, "", 2)
        )
    }

    /// Sums of squares of the block's rows for the norm that follows.
    fn squares(&self) -> Result<String, Error> {
        let ((down, _), (_, across)) = (self.tiles, self.subgroups);
        let rows_of_subgroup = TILE * down;
        let (each, which, half) = match self.sliced {
            true => (4, "", format!("(half * {}u + ", self.subgroups_of_slice())),
            false => (2, " * 2u + half", "(".to_owned()),
        };
        let put = (0..down).step_by(each).map(|first| {
            let squares = (first..first + each).map(|i| match i < down {
                true => format!("own_squares{i}"),
                false if self.sliced => "0.0".to_owned(),
                false => "vec2<f32>()".to_owned(),
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

/// Statements under a condition; an empty one is no condition.
fn guarded(condition: &str, lines: &[String]) -> String {
    match condition.is_empty() {
        true => lines.join("\n  "),
        false => format!("if {condition} {{\n    {}\n  }}", lines.join("\n    ")),
    }
}

/// A place some values further.
fn plus(at: &str, more: usize) -> String {
    match more {
        0 => at.to_owned(),
        _ => format!("{at} + {more}u"),
    }
}

/// An operand in memory: lines of adjacent values, which are copied to workgroup memory in this layout. A line belongs to one inner
/// value (`inner_lines`), or to one row of A or column of B.
struct Operand {
    name: &'static str,
    /// The variable that holds the block's first row of A or column of B.
    outer: &'static str,
    inner_lines: bool,
    vector: &'static str,
    /// Vectors of a line, and the distance between lines in workgroup memory in vectors.
    across: usize,
    pitch: usize,
    /// Lines of a step.
    lines: usize,
    /// Vectors that each invocation loads, and lines between one and the next.
    count: usize,
    lines_of_load: usize,
    /// Lines and values of the whole operand.
    whole: [usize; 2],
    /// True if the operand is whole steps.
    even: bool,
    /// True if its lines are gates and ups, which are interleaved.
    in_turns: bool,
    /// The largest magnitude is the largest of these values.
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
        let threads = of.plan.threads();
        Self {
            name,
            outer,
            inner_lines,
            vector: vector(staged),
            across: values.0 / LANES,
            pitch: (values.0 + PADDING) / LANES,
            lines: lines.0,
            count: lines.0 * values.0 / LANES / threads,
            lines_of_load: threads * LANES / values.0,
            whole: [lines.1, values.1],
            even: lines.1.is_multiple_of(lines.0) && values.1.is_multiple_of(values.0),
            in_turns: is_b && of.store == Store::Swiglu,
            largest: match staged {
                Staged::Halves(range) => range.clone(),
                _ => 0..0,
            },
        }
    }

    /// Vectors in workgroup memory.
    fn vectors(&self) -> usize {
        self.lines * self.pitch
    }

    /// The place of an invocation's first vector in a step.
    fn place(&self) -> String {
        let Self {
            name,
            outer,
            across,
            pitch,
            ..
        } = self;
        let staged = match across {
            8 => "lane / 64u * 8u + lane / 16u % 4u + lane / 8u % 2u * 4u".to_owned(),
            _ => format!("lane / {across}u"),
        };
        let mut lines = vec![format!("let {name}_line = {staged};")];
        let mut value = format!("lane % {across}u * 4u");
        let mut line = format!("{name}_line");
        if self.in_turns {
            let ups = self.whole[0] / 2;
            line = format!("({outer} / 2u + {line} % 16u + {line} / 16u % 2u * {ups}u)");
        } else if self.inner_lines {
            value = format!("{outer} + {value}");
        } else {
            line = format!("({outer} + {line})");
        }
        if !self.even {
            lines.push(format!("let {name}_first_line = {line};"));
            lines.push(format!("let {name}_value = {value};"));
            line = format!("{name}_first_line");
            value = format!("{name}_value");
        }
        lines.push(format!(
            "let {name}_at = ({line} * {}u + {value}) / 4u;",
            self.whole[1]
        ));
        lines.push(format!(
            "let {name}_to = {name}_line * {pitch}u + lane % {across}u;"
        ));
        lines.join("\n  ")
    }

    /// Loads this invocation's vectors of the step at `next` into registers.
    fn loads(&self, n: usize, declared: &str) -> String {
        let Self {
            name,
            inner_lines,
            whole,
            ..
        } = self;
        let step = match inner_lines {
            true => format!("{name}_at + next * {}u", whole[1] / 4),
            false => format!("{name}_at + next / 4u"),
        };
        let loads = (0..self.count).map(|load| {
            let far = load * self.lines_of_load;
            let further = match self.in_turns {
                true => far / 32 * 16 + far % 16 + far / 16 % 2 * (whole[0] / 2),
                false => far,
            };
            let at = plus(&step, further * whole[1] / 4);
            let line = plus(&format!("{name}_first_line"), further);
            let vector = match (self.even, inner_lines) {
                (true, _) => format!("{name}{n}[{at}]"),
                (false, true) => format!("read_{name}{n}({at}, {line} + next, {name}_value)"),
                (false, false) => format!("read_{name}{n}({at}, {line}, {name}_value + next)"),
            };
            format!("{declared}{name}_next{load} = {vector};")
        });
        flowed(loads, "", if declared.is_empty() { 4 } else { 2 })
    }

    /// The function that reads a vector, if there are edges.
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
        format!(
            "\n\n// Reads four values of a line of {}; zeros past its ends.
fn read_{name}{n}(at: u32, line: u32, value: u32) -> {vector} {{
  var four = {vector}();
  if line < {lines}u && value < {values}u {{ four = {name}{n}[at]; }}
  return four;
}}",
            name.to_uppercase()
        )
    }

    /// Copies what was loaded to workgroup memory.
    fn stages(&self, halves: bool) -> String {
        let name = self.name;
        let stages = (0..self.count).map(|load| {
            let to = plus(
                &format!("{name}_to"),
                load * self.lines_of_load * self.pitch,
            );
            match halves {
                true => format!("stage_{name}({to}, {name}_next{load} * {name}_scale);"),
                false if self.vector == "vec4<f16>" => {
                    format!("{name}_staged[{to}] = {name}_next{load};")
                }
                false => format!("{name}_staged[{to}] = vec4<f16>({name}_next{load});"),
            }
        });
        flowed(stages, "", 4)
    }

    /// The place of a subgroup's first matrix at inner value `inner` of a step.
    fn from(&self) -> String {
        let Self { name, pitch, .. } = self;
        match self.inner_lines {
            true => format!("inner * {pitch}u + {name}_first / 4u"),
            false => format!("{name}_first * {pitch}u + inner / 4u"),
        }
    }

    /// Loads the matrix with number `index` of the subgroup, `inner` values further. `coopLoadT` loads a matrix stored row by row.
    fn matrix(&self, part: &str, index: usize, inner: usize) -> String {
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
        let variable = match part {
            "staged" => format!("{variable}{index}"),
            _ => format!("{name}_{part}{index}_{inner}"),
        };
        let load = if *inner_lines == is_b {
            "coopLoadT"
        } else {
            "coopLoad"
        };
        let far = match inner_lines {
            true => inner * pitch + index * TILE / 4,
            false => index * TILE * pitch + inner / 4,
        };
        let at = plus(&format!("{name}_from"), far);
        format!("let {variable} = {load}<{role}>(&{name}_{part}[{at}], {pitch}u);")
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

    /// The forward products of each preset in f16: their names, problems, stores, and whether they apply the norm before them.
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

    /// Rotation of three quarters of the columns, with heads of 4.
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

    /// The sum of matrices of `size` values.
    fn sum(parts: &[f32], size: usize) -> Vec<f32> {
        assert!(parts.len().is_multiple_of(size));
        let of = |at: usize| parts.iter().skip(at).step_by(size).sum();
        (0..size).map(of).collect()
    }

    /// Two products in one launch, split or whole, give the same as each alone.
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

    /// A·B, summed in f64.
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
