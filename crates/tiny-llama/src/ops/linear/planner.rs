//! The planner of products on a GPU. It chooses the tile that a workgroup computes, and the number of parts of the inner dimension. Each
//! class of devices has a table of tiles, and rules choose from it. The sizes were measured on an H100 and an H200 over Vulkan for the
//! products of a `small` step (`docs/notes/gpu.md`). `benches/tiles.rs` measures them again.

/// The sizes of a product, out `[rows, columns]` = A · B over `inner`. A is `[rows, inner]`, or `[inner, rows]` if transposed. B is
/// `[inner, columns]`, or `[columns, inner]` if transposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Problem {
    pub rows: usize,
    pub columns: usize,
    pub inner: usize,
    pub a_transposed: bool,
    pub b_transposed: bool,
}

impl Problem {
    pub(crate) const fn new(
        [rows, columns, inner]: [usize; 3],
        a_transposed: bool,
        b_transposed: bool,
    ) -> Self {
        Self {
            rows,
            columns,
            inner,
            a_transposed,
            b_transposed,
        }
    }

    /// Returns true if tiles of this size extend past an edge of the result.
    pub(crate) fn is_ragged(&self, (height, width): (usize, usize)) -> bool {
        !self.rows.is_multiple_of(height) || !self.columns.is_multiple_of(width)
    }

    /// Returns how many values one load from A, one load from B and one store may take: 4 or 1.
    pub(crate) fn lanes(&self) -> [usize; 3] {
        let Self {
            rows,
            columns,
            inner,
            ..
        } = *self;
        let a = if self.a_transposed { rows } else { inner };
        let b = if self.b_transposed { inner } else { columns };
        [a, b, columns].map(|size| crate::ops::gpu::vector_width(&[size]))
    }
}

/// The plan by which a product is computed. A workgroup stages its rows of A and columns of B for some inner values at a time. Each of its
/// invocations, or each subgroup on matrix cores, keeps a block of outputs in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Plan {
    /// The outputs of one workgroup, rows by columns.
    pub tile: (usize, usize),
    /// The outputs of a block, rows by columns: multiples of 4, on matrix cores of 16.
    pub block: (usize, usize),
    /// The number of invocations that compute a block together: 1, or a subgroup on matrix cores.
    pub subgroup: usize,
    /// The number of inner values that are staged together.
    pub step: usize,
    /// The number of groups of invocations that compute one tile from different inner values of each step, a power of two. Their sums are
    /// added at the end.
    pub slices: usize,
    /// The number of parts of the inner dimension, each computed by a workgroup of its own. A second launch adds their results.
    pub splits: usize,
    /// The number of inner values whose products are written out in the loop. More of them take longer to compile. Matrix cores do not use
    /// this.
    pub unroll: usize,
}

impl Plan {
    /// Makes a plan in which each block is computed by one invocation.
    pub(crate) const fn new(tile: (usize, usize), step: usize, block: (usize, usize)) -> Self {
        Self {
            tile,
            block,
            subgroup: 1,
            step,
            slices: 1,
            splits: 1,
            unroll: 16,
        }
    }

    /// Makes a plan in which each block is computed by a subgroup on matrix cores.
    const fn cores(tile: (usize, usize), step: usize, block: (usize, usize)) -> Self {
        Self {
            subgroup: SUBGROUP,
            ..Self::new(tile, step, block)
        }
    }

    pub(crate) const fn slices(self, slices: usize) -> Self {
        Self { slices, ..self }
    }

    pub(crate) const fn splits(self, splits: usize) -> Self {
        Self { splits, ..self }
    }

    pub(crate) const fn unroll(self, unroll: usize) -> Self {
        Self { unroll, ..self }
    }

    /// Returns the number of blocks of a tile along each axis.
    pub(crate) const fn blocks(&self) -> (usize, usize) {
        (self.tile.0 / self.block.0, self.tile.1 / self.block.1)
    }

    /// Returns the number of invocations of one slice.
    pub(crate) const fn slice_threads(&self) -> usize {
        let (down, across) = self.blocks();
        down * across * self.subgroup
    }

    pub(crate) const fn threads(&self) -> usize {
        self.slice_threads() * self.slices
    }

    /// Returns the number of vectors in workgroup memory, which holds the staged tiles and later the sums of slices. On matrix cores the
    /// number has no meaning.
    pub(crate) const fn shared_vectors(&self) -> usize {
        let pitch = self.tile.0 / 4 + self.tile.1 / 4 + 2 * padding(self.step);
        let staged = self.step * pitch;
        let results = (self.slices / 2) * self.tile.0 * self.tile.1 / 4;
        if staged > results { staged } else { results }
    }

    /// Returns the number of workgroups along each axis.
    pub(crate) fn groups(&self, problem: &Problem) -> [usize; 3] {
        let (height, width) = self.tile;
        let down = problem.rows.div_ceil(height);
        [problem.columns.div_ceil(width), down, self.splits]
    }

    /// Returns the number of tiles of a problem.
    fn tiles(&self, problem: &Problem) -> usize {
        self.splits(1).groups(problem).iter().product()
    }

    /// Returns the number of inner values of one part, a whole number of steps.
    pub(crate) fn share(&self, problem: &Problem) -> usize {
        let inner_values = problem.inner.div_ceil(self.splits);
        inner_values.next_multiple_of(self.step)
    }

    /// Returns the plan with the inner dimension in about `splits` parts of whole steps. No part begins past the end.
    pub(crate) fn in_parts(self, splits: usize, problem: &Problem) -> Self {
        let share = self.splits(splits).share(problem);
        self.splits(problem.inner.div_ceil(share))
    }
}

/// The number of invocations of a subgroup.
const SUBGROUP: usize = 32;

/// Returns the vectors of padding between the lines of an operand that is transposed when it is staged. Consecutive writes then use
/// different banks.
pub(crate) const fn padding(step: usize) -> usize {
    let quads = step / 4;
    if quads >= 8 { 1 } else { 8 / quads }
}

/// A plan with its tile, and the longest inner dimension that one workgroup computes with it. A smaller tile reads the operands more often.
type Row = (Plan, usize);

/// The tiles of a class of devices, the largest first. A large tile reads least per product, but idle processors cost more than it saves.
struct TileTable {
    rows: &'static [Row],
    /// A tile that gives at least this number of workgroups is chosen without parts.
    enough: usize,
    /// The number of workgroups that run at once. The inner dimension is split until there are as many.
    full: usize,
    /// The shortest part of an inner dimension.
    shortest: usize,
}

/// The longest inner dimension of a tile that is used for every length.
const ANY: usize = usize::MAX;

/// The tiles for a CPU driver. Compiling takes longer there than running, so tiles are few and large, and programs short.
static CPU: TileTable = TileTable {
    rows: &[
        (Plan::new((128, 64), 16, (8, 8)).unroll(1), ANY),
        (Plan::new((32, 32), 16, (8, 8)).unroll(1), 1023),
    ],
    enough: 4,
    full: 4,
    shortest: 128,
};

/// The tiles for f32 on a GPU. An H100 has 132 multiprocessors.
static GPU: TileTable = TileTable {
    rows: &[
        (LARGE, ANY),
        // This tile has as many invocations as `LARGE` for a quarter of its outputs: each half of them multiplies half of a step.
        (Plan::new((64, 64), 32, (8, 8)).slices(2), 1023),
        (Plan::new((32, 64), 32, (8, 8)).slices(4), 1023),
        // The smallest results have few rows to share, so their blocks are 4 × 4.
        (Plan::new((32, 32), 32, (4, 4)).slices(4), 1023),
    ],
    enough: 120,
    full: 120,
    shortest: 128,
};
const LARGE: Plan = Plan::new((128, 128), 32, (8, 8));

/// The tile for pairs with many tiles. Three of its workgroups fit the workgroup memory of a large GPU's multiprocessor. Its short step reads
/// only 64 bytes of a line whose inner values are adjacent. In a pair only one operand, dy of dx, has such lines.
const NARROW: Plan = Plan::new((128, 64), 16, (8, 8));

/// The tile for a device that allows no other. It needs 2 KiB of workgroup memory and 8 invocations.
pub(crate) const SMALLEST: Plan = Plan::new((16, 16), 8, (4, 8)).unroll(1);

/// The tiles for f16 on matrix cores.
static CORES: TileTable = TileTable {
    rows: &[
        // NVIDIA's driver gives the workgroups of a multiprocessor 48 KiB together, so two of these share it and hide each other's latency.
        (Plan::cores((128, 128), 32, (64, 64)), ANY),
        // Results with too few tiles have twice the invocations, so that one workgroup keeps a multiprocessor busy.
        (Plan::cores((64, 128), 64, (32, 64)).slices(2), 1024),
        (Plan::cores((64, 64), 64, (32, 32)).slices(2), 2048),
    ],
    enough: 96,
    full: 128,
    shortest: 256,
};

/// The tiles for f32 as two f16 on matrix cores. Two f16 need twice the workgroup memory and more registers, so steps are short and blocks
/// small.
static SPLIT: TileTable = TileTable {
    rows: &[
        (Plan::cores((128, 128), 32, (32, 64)), ANY),
        (Plan::cores((64, 128), 32, (32, 64)), 1024),
        (Plan::cores((64, 64), 32, (32, 32)), 1024),
    ],
    ..CORES
};

/// The longest inner dimension that is not worth a second launch.
const SHORT: usize = 512;
/// The longest inner dimension that a pair computes in one part with blocks that are not large.
const LONG: usize = 1024;

/// The planner for the units that compute the products.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Planner {
    /// Invocations compute in f32, within the limits of the device.
    Full(Limits),
    /// Matrix cores compute with f16, or with f32 as two halves.
    Cores { halves: bool },
}

/// The limits of a device for one workgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    pub shared_bytes: usize,
    pub threads: usize,
    /// True if the driver runs on a CPU.
    pub is_cpu: bool,
}

/// The parts of an inner dimension that a caller of the planner allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parts {
    /// Any number of parts. A second launch adds their results.
    Launch,
    /// No parts, because the epilogue needs the whole result. An invocation then has two vectors of a row, one in each half of the tile,
    /// which may be a gate and its up projection.
    Never,
}

impl Planner {
    fn table(self) -> &'static TileTable {
        match self {
            Self::Full(limits) if limits.is_cpu => &CPU,
            Self::Full(_) => &GPU,
            Self::Cores { halves: false } => &CORES,
            Self::Cores { halves: true } => &SPLIT,
        }
    }

    /// Returns the rows that the device allows for these problems, the largest tile first. There is at least one row.
    fn rows(self, problems: &[Problem]) -> Vec<Row> {
        let allows = |(plan, _): &&Row| match self {
            Self::Full(limits) => {
                plan.shared_vectors() * 16 <= limits.shared_bytes
                    && plan.threads() <= limits.threads
            }
            // Large blocks of halves leave no workgroup memory for edges.
            Self::Cores { halves } => {
                let ragged = problems.iter().any(|problem| problem.is_ragged(plan.tile));
                !(halves && ragged && *plan == self.table().rows[0].0)
            }
        };
        let mut rows: Vec<Row> = self.table().rows.iter().filter(allows).copied().collect();
        match (self, rows.first_mut()) {
            // The largest tile that a device allows computes any inner dimension.
            (Self::Full(_), Some((_, longest))) => *longest = ANY,
            (Self::Cores { .. }, Some(_)) => {}
            (_, None) => rows.push((SMALLEST, ANY)),
        }
        rows
    }

    /// Returns the plan of one product: the largest tile that keeps the device busy without parts of the inner dimension, otherwise a large
    /// tile in parts, otherwise the smallest tile.
    pub(crate) fn one(self, problem: &Problem, parts: Parts) -> Plan {
        match self {
            Self::Full(_) if parts == Parts::Never => self.whole_with_two_vectors(problem),
            Self::Full(_) => self.one_of_invocations(problem),
            Self::Cores { halves } => {
                self.in_long_steps(self.one_on_cores(problem, halves), problem)
            }
        }
    }

    /// Returns the plan of a product in a training step. The products of two gradients are in one launch; the rows of one are the inner
    /// values of the other.
    pub(crate) fn planned(self, problem: &Problem) -> Plan {
        if problem.b_transposed {
            return self.one(problem, Parts::Launch);
        }
        let sizes = [problem.inner, problem.columns, problem.rows];
        let other = Problem::new(sizes, !problem.a_transposed, false);
        if problem.a_transposed {
            self.pair(&[other, *problem])[1]
        } else {
            self.pair(&[*problem, other])[0]
        }
    }

    /// Returns every plan that a product could have: each tile of the table, in few parts or none.
    pub(crate) fn candidates(self, problem: &Problem) -> Vec<Plan> {
        let most = (problem.inner / self.table().shortest).max(1);
        let mut plans = vec![self.planned(problem)];
        for (tile_plan, _) in self.rows(&[*problem]) {
            for splits in [1, 2, 4, 8].into_iter().filter(|parts| *parts <= most) {
                let plan = self.in_long_steps(tile_plan.in_parts(splits, problem), problem);
                if !plans.contains(&plan) {
                    plans.push(plan);
                }
            }
        }
        plans
    }

    /// Returns true if a plan gives enough workgroups without parts.
    fn has_enough_groups(self, plan: &Plan, problem: &Problem) -> bool {
        plan.tiles(problem) >= self.table().enough
    }

    /// Returns the first tile with enough workgroups among those that compute this inner dimension whole; `None` if there is no such tile.
    fn whole(self, problem: &Problem) -> Option<Plan> {
        self.rows(&[*problem])
            .into_iter()
            .find(|(plan, longest)| {
                problem.inner <= *longest && self.has_enough_groups(plan, problem)
            })
            .map(|(plan, _)| plan)
    }

    /// Returns the plan of a product in f32 that may be in parts.
    fn one_of_invocations(self, problem: &Problem) -> Plan {
        self.whole(problem).unwrap_or_else(|| {
            let rows = self.rows(&[*problem]);
            let enough = |(plan, _): &Row| self.has_enough_groups(plan, problem);
            let (plan, _) = if rows.iter().any(enough) {
                rows[0]
            } else {
                rows[rows.len() - 1]
            };
            let [splits] = self.balanced_splits(&[*problem], &plan);
            plan.splits(splits)
        })
    }

    /// Returns the plan of a product in f32 without parts, in which an invocation has two vectors of a row.
    fn whole_with_two_vectors(self, problem: &Problem) -> Plan {
        let mut rows = self.rows(&[*problem]);
        rows.retain(|(plan, _)| plan.block.1 == 8);
        let enough = |(plan, _): &&Row| self.has_enough_groups(plan, problem);
        let found = rows.iter().find(enough).or(rows.last());
        found.map_or(SMALLEST, |(plan, _)| *plan)
    }

    /// Returns the plan of a product on matrix cores, in parts only where they are needed. The norm after a product without parts
    /// needs no launch, and a launch that adds parts costs more than a short inner dimension.
    fn one_on_cores(self, problem: &Problem, halves: bool) -> Plan {
        let [_, _, small] = self.cores();
        let short = !halves && problem.inner <= SHORT;
        if let Some(plan) = self.whole(problem).or(short.then_some(small)) {
            return plan;
        }
        let large = self.filling(self.rows(&[*problem])[0].0, problem);
        let fills = large.tiles(problem) * large.splits >= self.table().enough;
        if large.tile == (128, 128) && fills {
            large
        } else {
            self.filling(small, problem)
        }
    }

    /// Returns the three tiles of matrix cores, the largest first.
    fn cores(self) -> [Plan; 3] {
        let rows = self.table().rows;
        [0, 1, 2].map(|i| rows[i].0)
    }

    /// Returns the plan with as many parts as fill the device, at most 8.
    fn filling(self, plan: Plan, problem: &Problem) -> Plan {
        let wanted = self.table().full.div_ceil(plan.tiles(problem));
        let most = problem.inner / self.table().shortest;
        plan.in_parts(wanted.min(most).clamp(1, 8), problem)
    }

    /// Returns the plan with longer steps, and so fewer barriers, if it has small blocks of f16 and a long inner dimension.
    fn in_long_steps(self, plan: Plan, problem: &Problem) -> Plan {
        let is_small = plan.tile == (64, 64) && plan.slices == 2;
        if !is_small || problem.inner / plan.splits <= SHORT {
            return plan;
        }
        let step = 2 * plan.step;
        Plan { step, ..plan }.in_parts(plan.splits, problem)
    }

    /// Returns the plans of two products in one launch, which differ in the number of parts.
    pub(crate) fn pair(self, problems: &[Problem; 2]) -> [Plan; 2] {
        let Self::Cores { halves } = self else {
            let many = |problem| NARROW.tiles(problem) >= 2 * self.table().full;
            let plan = match self.rows(problems)[0].0 {
                LARGE if problems.iter().all(many) => NARROW,
                largest => largest,
            };
            return self
                .balanced_splits(problems, &plan)
                .map(|splits| plan.splits(splits));
        };
        let plans = self.pair_on_cores(problems, halves);
        [0, 1].map(|i| self.in_long_steps(plans[i], &problems[i]))
    }

    /// Returns the plans of a pair on matrix cores. If one product would finish much later than the other, its inner dimension is split. A
    /// part is as long as a workgroup's share of all work on a large GPU, or as long as the other inner dimension if that is longer. Where
    /// half a block makes the second launch unnecessary, it is taken instead.
    fn pair_on_cores(self, problems: &[Problem; 2], halves: bool) -> [Plan; 2] {
        let full = self.table().full;
        let inner = problems.map(|problem| problem.inner);
        let shortest = inner[0].min(inner[1]).max(1);
        let [large, middle, small] = self.cores();
        let balanced = |plan: Plan| {
            // Two large blocks of f16 share a multiprocessor.
            let at_once = if plan == large && !halves {
                2 * full
            } else {
                full
            };
            let work: usize = problems
                .iter()
                .map(|problem| plan.tiles(problem) * problem.inner)
                .sum();
            let longest = (work / at_once).max(shortest);
            problems.map(|problem| plan.in_parts((problem.inner / longest).clamp(1, 8), &problem))
        };
        let groups = |plans: &[Plan; 2]| -> usize {
            plans
                .iter()
                .zip(problems)
                .map(|(plan, problem)| plan.tiles(problem) * plan.splits)
                .sum()
        };
        // Splitting costs a second launch. In f16, large blocks are faster although there are half as many.
        let whole = [middle; 2];
        if inner[0].max(inner[1]) <= LONG && (3 * full..4 * full).contains(&groups(&whole)) {
            return if halves { whole } else { [large; 2] };
        }
        let large_plans = balanced(large);
        if self.rows(problems)[0].0 == large && 2 * groups(&large_plans) >= 3 * full {
            return large_plans;
        }
        // Half a block has as much work as half of the inner dimension, and needs no launch that adds it.
        let middle_plans = [0, 1].map(|i| match balanced(middle)[i] {
            plan if plan.splits == 2 && inner[i] <= LONG => small,
            plan => plan,
        });
        if groups(&middle_plans) >= self.table().enough {
            middle_plans
        } else {
            balanced(small)
        }
    }

    /// Returns the numbers of parts of the inner dimensions with which workgroups fill the device and no workgroup has much more work than
    /// the others.
    fn balanced_splits<const N: usize>(self, problems: &[Problem; N], plan: &Plan) -> [usize; N] {
        let TileTable { full, shortest, .. } = self.table();
        let work: usize = problems
            .iter()
            .map(|problem| plan.tiles(problem) * problem.inner)
            .sum();
        let mut splits = [1; N];
        loop {
            // This splits the product whose workgroups have the most work, as long as it exceeds the average by more than a quarter.
            let share = |i: &usize| problems[*i].inner / splits[*i];
            let Some(first) = (0..N).rev().max_by_key(share) else {
                return splits;
            };
            let longest = share(&first);
            if 4 * longest * full <= 5 * work || longest < 2 * shortest || splits[first] >= 8 {
                return splits;
            }
            splits[first] *= 2;
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
