//! Chooses the tile for the shape of a product: plain data and one table, based on measurements.

use serde::Serialize;

/// out `[rows, columns]` = A · B over `inner`; A is `[rows, inner]`, or `[inner, rows]` if transposed, B is `[inner, columns]`, or
/// `[columns, inner]` if transposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
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

    /// Workgroups along each axis: one for each block of the result, rows by columns, and each of `splits` parts.
    pub(crate) fn groups(&self, (height, width): (usize, usize), splits: usize) -> [usize; 3] {
        [
            self.columns.div_ceil(width),
            self.rows.div_ceil(height),
            splits,
        ]
    }

    /// Whether blocks extend past an edge of the result.
    pub(crate) fn is_ragged(&self, (height, width): (usize, usize)) -> bool {
        !self.rows.is_multiple_of(height) || !self.columns.is_multiple_of(width)
    }

    /// Widths of the widest loads from A and from B, and of stores.
    pub(crate) fn lanes(&self) -> [usize; 3] {
        let (rows, columns, inner) = (self.rows, self.columns, self.inner);
        let a = if self.a_transposed { rows } else { inner };
        let b = if self.b_transposed { inner } else { columns };
        [a, b, columns].map(|size| crate::ops::gpu::vector_width(&[size]))
    }
}

/// The blocking of a product: each invocation keeps a block of outputs in registers and uses each value from workgroup memory for
/// several products.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TilePlan {
    /// Outputs of one workgroup, rows by columns; multiples of 4.
    pub tile: (usize, usize),
    /// Inner values staged per step: a power of two, at least 8 and 4 · `slices`.
    pub step: usize,
    /// Outputs of one invocation, rows by columns; multiples of 4.
    pub block: (usize, usize),
    /// Groups of invocations that compute the same tile from different parts of each step and are added at the end: more invocations
    /// per tile with the same outputs. A power of two.
    pub slices: usize,
    /// Workgroups along `inner`, whose results a second launch or the next kernel adds: more workgroups for a small output.
    pub splits: usize,
    /// Inner values whose products are written out; the driver may unroll the loop around them. More of them take longer to compile.
    pub unroll: usize,
}

impl TilePlan {
    pub(crate) const fn new(tile: (usize, usize), step: usize, block: (usize, usize)) -> Self {
        Self {
            tile,
            step,
            block,
            slices: 1,
            splits: 1,
            unroll: 16,
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

    /// Whether the fields have the values that their comments require.
    pub(crate) fn is_sound(&self) -> bool {
        let fours = [self.tile.0, self.tile.1, self.block.0, self.block.1];
        fours.iter().all(|side| side.is_multiple_of(4))
            && self.tile.0.is_multiple_of(self.block.0)
            && self.tile.1.is_multiple_of(self.block.1)
            && self.slices.is_power_of_two()
            && self.step.is_power_of_two()
            && self.step >= 8.max(4 * self.slices)
            && (self.step / self.slices).is_multiple_of(self.unroll.min(self.step / self.slices))
            && [self.step, self.tile.0, self.tile.1]
                .iter()
                .all(|side| self.threads().is_multiple_of(side / 4))
    }

    /// Invocations of one slice.
    pub(crate) const fn slice_threads(&self) -> usize {
        (self.tile.0 / self.block.0) * (self.tile.1 / self.block.1)
    }

    pub(crate) const fn threads(&self) -> usize {
        self.slice_threads() * self.slices
    }

    /// Vectors of four in workgroup memory, which holds the staged tiles and later the slices' results.
    pub(crate) const fn shared_vectors(&self) -> usize {
        let pitch = self.tile.0 / 4 + self.tile.1 / 4 + 2 * padding(self.step);
        let staged = self.step * pitch;
        let results = (self.slices / 2) * self.tile.0 * self.tile.1 / 4;
        if staged > results { staged } else { results }
    }

    pub(crate) const fn shared_bytes(&self) -> usize {
        self.shared_vectors() * 16
    }

    /// Workgroups for a problem.
    pub(crate) fn groups(&self, problem: &Problem) -> usize {
        problem.groups(self.tile, self.splits).iter().product()
    }
}

/// Padding in vectors between the lines of an operand that is transposed when it is staged: consecutive writes then use different
/// banks.
pub(crate) const fn padding(step: usize) -> usize {
    let quads = step / 4;
    if quads >= 8 { 1 } else { 8 / quads }
}

/// A device's limits for a workgroup, and the number of workgroups that keeps it busy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub shared_bytes: usize,
    pub threads: usize,
    pub full: usize,
}

impl Limits {
    /// The plans that this device allows, the largest tile first; never empty. A device that a few workgroups keep busy is a CPU.
    fn plans(&self) -> Vec<TilePlan> {
        let ladder: &[TilePlan] = if self.full < 16 {
            &SMALL_LADDER
        } else {
            &LADDER
        };
        let fits = |plan: &TilePlan| {
            plan.shared_bytes() <= self.shared_bytes && plan.threads() <= self.threads
        };
        let fitting: Vec<TilePlan> = ladder.iter().copied().filter(fits).collect();
        if fitting.is_empty() {
            vec![SMALLEST]
        } else {
            fitting
        }
    }
}

/// Candidates from the largest tile to the smallest. A large tile reads least per product, but idle processors cost more than it
/// saves. Measured on an H100 over Vulkan for the shapes of a `small` step (`docs/notes/gpu.md`).
static LADDER: [TilePlan; 4] = [
    LARGE,
    TilePlan::new((64, 64), 32, (8, 8)).slices(2),
    TilePlan::new((32, 64), 32, (8, 8)).slices(4),
    TilePlan::new((32, 32), 32, (4, 4)).slices(4),
];

const LARGE: TilePlan = TilePlan::new((128, 128), 32, (8, 8));

/// For pairs with many tiles: by their workgroup memory, three share a multiprocessor of a large GPU. Of an operand whose inner values are
/// adjacent, a step reads 64 bytes of each line; in a pair only dy of dx is one.
const NARROW: TilePlan = TilePlan::new((128, 64), 16, (8, 8));

/// The smallest share of the inner dimension for one workgroup.
const SHORTEST: usize = 128;

/// Inner size from which a large tile with several workgroups along the inner dimension is faster than a smaller tile.
const LONG: usize = 1024;

/// For a CPU: few, large tiles and short programs, because compiling takes longer than running.
static SMALL_LADDER: [TilePlan; 2] = [
    TilePlan::new((128, 64), 16, (8, 8)).unroll(1),
    TilePlan::new((32, 32), 16, (8, 8)).unroll(1),
];

/// For a device that allows none of these: 2 KiB of workgroup memory and 8 invocations.
pub(crate) const SMALLEST: TilePlan = TilePlan::new((16, 16), 8, (4, 8)).unroll(1);

/// The plan for a shape.
pub(crate) fn choose(problem: &Problem, limits: Limits) -> TilePlan {
    let plans = limits.plans();
    let (largest, smallest) = (plans[0], plans[plans.len() - 1]);
    let full = plans
        .into_iter()
        .find(|plan| plan.groups(problem) >= limits.full);
    match full {
        Some(plan) if plan == largest || problem.inner < LONG => plan,
        _ => {
            let plan = full.map_or(smallest, |_| largest);
            let [splits] = even(&[*problem], &plan, limits.full);
            plan.splits(splits)
        }
    }
}

/// The plan for a product whose inner dimension cannot be split: the largest tile with enough workgroups. An invocation has two vectors
/// of a row, one in each half of the tile, which may be a gate and its up.
pub(crate) fn choose_whole(problem: &Problem, limits: Limits) -> TilePlan {
    let mut plans = limits.plans();
    plans.retain(|plan| plan.block.1 == 8);
    let full = plans
        .iter()
        .find(|plan| plan.groups(problem) >= limits.full);
    *full.or(plans.last()).unwrap_or(&SMALLEST)
}

/// The plans for two products in one launch, which differ in the number of parts.
pub(crate) fn choose_pair(problems: &[Problem; 2], limits: Limits) -> [TilePlan; 2] {
    let many = |it| NARROW.groups(it) >= 2 * limits.full;
    let plan = match limits.plans()[0] {
        LARGE if problems.iter().all(many) => NARROW,
        largest => largest,
    };
    even(problems, &plan, limits.full).map(|splits| plan.splits(splits))
}

/// Splits the inner dimensions into parts: workgroups fill the device, and none has much more work than the others.
fn even<const N: usize>(problems: &[Problem; N], plan: &TilePlan, full: usize) -> [usize; N] {
    let work: usize = problems
        .iter()
        .map(|problem| plan.groups(problem) * problem.inner)
        .sum();
    let mut splits = [1; N];
    loop {
        // Splits the product whose workgroups have the most work, as long as it exceeds the average by more than a quarter.
        let share = |i: &usize| problems[*i].inner / splits[*i];
        let Some(first) = (0..N).rev().max_by_key(share) else {
            return splits;
        };
        let longest = share(&first);
        if 4 * longest * full <= 5 * work || longest < 2 * SHORTEST || splits[first] >= 8 {
            return splits;
        }
        splits[first] *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGE_DEVICE: Limits = Limits {
        shared_bytes: 49_152,
        threads: 1024,
        full: 120,
    };

    fn problem(rows: usize, columns: usize, inner: usize) -> Problem {
        Problem::new([rows, columns, inner], false, false)
    }

    #[test]
    fn large_products_take_large_tiles_and_long_ones_are_split() {
        let chosen = |rows, columns, inner| choose(&problem(rows, columns, inner), LARGE_DEVICE);
        assert_eq!(chosen(1024, 4096, 512), LARGE);
        assert_eq!(chosen(1024, 512, 2048), LARGE.splits(4));
        let plan = chosen(1024, 512, 512);
        assert_eq!((plan.tile, plan.splits), ((64, 64), 1));
    }

    #[test]
    fn pairs_are_split_until_their_workgroups_have_like_amounts_of_work() {
        let of = |dx, dw| choose_pair(&[dx, dw], LARGE_DEVICE).map(|plan| plan.splits);
        assert_eq!(of(problem(1024, 512, 512), problem(512, 512, 1024)), [2, 4]);
        assert_eq!(
            of(problem(1024, 512, 4096), problem(4096, 512, 1024)),
            [2, 1]
        );
        assert_eq!(
            of(problem(1024, 2048, 512), problem(512, 2048, 1024)),
            [1, 1]
        );
        assert_eq!(of(problem(7, 9, 11), problem(9, 9, 7)), [1, 1]);
    }

    #[test]
    fn pairs_with_many_tiles_take_narrow_ones() {
        let of = |dx, dw| choose_pair(&[dx, dw], LARGE_DEVICE);
        let of_qkv = of(problem(4096, 1024, 2048), problem(2048, 1024, 4096));
        assert_eq!(of_qkv, [NARROW; 2]);
        let of_o = of(problem(4096, 1024, 1024), problem(1024, 1024, 4096));
        assert_eq!(of_o, [LARGE; 2]);
    }

    #[test]
    fn every_plan_keeps_the_rules_of_its_fields() {
        for plan in LADDER
            .iter()
            .chain(&SMALL_LADDER)
            .chain([&NARROW, &SMALLEST])
        {
            assert!(plan.is_sound(), "{plan:?}");
            assert!(plan.shared_bytes() <= LARGE_DEVICE.shared_bytes, "{plan:?}");
        }
    }
}
