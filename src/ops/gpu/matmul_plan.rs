//! Which matmul version and which tile for which shape: plain data and one table, to be changed from measurements.

/// out `[rows, columns]` = A · B over `inner`; A is `[rows, inner]`, or `[inner, rows]` when transposed, B is `[inner, columns]`,
/// or `[columns, inner]` when transposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Problem {
    pub rows: usize,
    pub columns: usize,
    pub inner: usize,
    pub a_transposed: bool,
    pub b_transposed: bool,
}

impl Problem {
    pub fn flops(&self) -> f64 {
        2.0 * self.rows as f64 * self.columns as f64 * self.inner as f64
    }
}

/// The versions, each adding one idea to the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// One invocation per output value, reading its row and column by itself.
    OneOutputEach,
    /// A workgroup of 16×16 stages the values it shares in workgroup memory.
    SharedTile,
    /// Each invocation keeps a block of outputs in registers, so that one staged value feeds several products.
    RegisterTile(Plan),
}

/// When the next step's values leave global memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Buffering {
    /// At the step's start; other workgroups hide the wait.
    Single,
    /// During the step before, into registers.
    Prefetch,
    /// During the step before, into registers and then a second half of workgroup memory: one barrier per step.
    Double,
}

/// The blocking of [`Version::RegisterTile`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Plan {
    /// Outputs of one workgroup, rows by columns; multiples of 4.
    pub tile: (usize, usize),
    /// Inner values staged per step: a power of two, at least 8 and 4 · `slices`.
    pub step: usize,
    /// Outputs of one invocation, rows by columns; multiples of 4.
    pub block: (usize, usize),
    /// Groups of invocations that compute the same tile from different parts of each step, added at the end: more
    /// invocations for a tile without more outputs. A power of two.
    pub slices: usize,
    /// Workgroups along `inner`, whose results a second launch adds: more workgroups for a small output.
    pub splits: usize,
    pub buffering: Buffering,
    /// Write the inner loop out instead of leaving that to the driver.
    pub unroll: bool,
    /// Order neighbouring invocations so that pairs of them share rows or columns alternately.
    pub interleaved: bool,
}

impl Plan {
    pub const fn new(tile: (usize, usize), step: usize, block: (usize, usize)) -> Self {
        Self {
            tile,
            step,
            block,
            slices: 1,
            splits: 1,
            buffering: Buffering::Prefetch,
            unroll: true,
            interleaved: true,
        }
    }

    pub const fn slices(self, slices: usize) -> Self {
        Self { slices, ..self }
    }

    pub const fn splits(self, splits: usize) -> Self {
        Self { splits, ..self }
    }

    pub const fn buffering(self, buffering: Buffering) -> Self {
        Self { buffering, ..self }
    }

    pub const fn unroll(self, unroll: bool) -> Self {
        Self { unroll, ..self }
    }

    pub const fn interleaved(self, interleaved: bool) -> Self {
        Self {
            interleaved,
            ..self
        }
    }

    /// Whether the fields keep to what their comments ask.
    pub fn is_sound(&self) -> bool {
        let fours = [self.tile.0, self.tile.1, self.block.0, self.block.1];
        fours.iter().all(|side| side.is_multiple_of(4))
            && self.tile.0.is_multiple_of(self.block.0)
            && self.tile.1.is_multiple_of(self.block.1)
            && self.slices.is_power_of_two()
            && self.step.is_power_of_two()
            && self.step >= 8.max(4 * self.slices)
    }

    /// Invocations of one slice.
    pub const fn slice_threads(&self) -> usize {
        (self.tile.0 / self.block.0) * (self.tile.1 / self.block.1)
    }

    pub const fn threads(&self) -> usize {
        self.slice_threads() * self.slices
    }

    /// Vectors of four in workgroup memory: the staged tiles, and later the slices' results in the same place.
    pub const fn shared_vectors(&self) -> usize {
        let buffers = if matches!(self.buffering, Buffering::Double) {
            2
        } else {
            1
        };
        let staged = buffers * self.step * (self.tile.0 + self.tile.1) / 4;
        let results = (self.slices / 2) * self.tile.0 * self.tile.1 / 4;
        if staged > results { staged } else { results }
    }

    pub const fn shared_bytes(&self) -> usize {
        self.shared_vectors() * 16
    }

    /// Workgroups for a problem.
    pub fn groups(&self, problem: &Problem) -> usize {
        problem.rows.div_ceil(self.tile.0) * problem.columns.div_ceil(self.tile.1) * self.splits
    }
}

/// What a device allows a workgroup, and how many workgroups it takes to keep it busy.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub shared_bytes: usize,
    pub threads: usize,
    pub full: usize,
}

impl Limits {
    /// A device that a handful of workgroups fill: a CPU.
    fn small(&self) -> bool {
        self.full < 16
    }

    fn allow(&self, plan: &Plan) -> bool {
        plan.shared_bytes() <= self.shared_bytes && plan.threads() <= self.threads
    }
}

/// Candidates from the largest tile to the smallest. The first that fills the device is taken: a large tile reads
/// least per product, but a device with idle processors loses more than that. Measured on an H200 over Vulkan, for every
/// shape of a `small` step (`docs/performance.md`).
const LADDER: [Plan; 4] = [
    Plan::new((64, 128), 16, (8, 8)).buffering(Buffering::Double),
    Plan::new((64, 64), 32, (8, 8))
        .slices(2)
        .buffering(Buffering::Double),
    Plan::new((32, 64), 32, (8, 8))
        .slices(4)
        .buffering(Buffering::Double),
    Plan::new((32, 32), 32, (4, 4))
        .slices(4)
        .buffering(Buffering::Double),
];

/// The smallest tile worth taking: below it, splitting the inner dimension fills the device better.
const SMALLEST: usize = 32 * 64;

/// The same for two products in one launch; the larger tile pays only where it fills the device twice over.
const PAIR_LADDER: [Plan; 2] = [
    Plan::new((128, 64), 32, (8, 8)).slices(2),
    Plan::new((64, 64), 32, (8, 8))
        .slices(4)
        .buffering(Buffering::Single),
];

/// On a CPU: few, large tiles, and short programs, since compiling takes longer than running.
const SMALL_LADDER: [Plan; 2] = [
    Plan::new((128, 64), 16, (8, 8)).unroll(false),
    Plan::new((32, 32), 16, (8, 8)).unroll(false),
];

/// Where one device measured differently from the ladder: (rows, columns, inner, plan).
const MEASURED: [(usize, usize, usize, Plan); 0] = [];

/// The version for a shape.
pub fn choose(problem: &Problem, limits: Limits) -> Version {
    let sizes = (problem.rows, problem.columns, problem.inner);
    let measured = MEASURED
        .iter()
        .find(|m| (m.0, m.1, m.2) == sizes && limits.allow(&m.3));
    if let Some((_, _, _, plan)) = measured {
        return Version::RegisterTile(*plan);
    }
    let ladder: &[Plan] = if limits.small() {
        &SMALL_LADDER
    } else {
        &LADDER
    };
    let Some(mut plan) = climb(ladder, limits, |plan| plan.groups(problem)) else {
        return Version::SharedTile;
    };
    // Too few tiles even so, and a long inner dimension: let several workgroups share it.
    while plan.groups(problem) < limits.full
        && problem.inner / (plan.splits * 2) >= 128
        && plan.splits < 8
    {
        plan.splits *= 2;
    }
    Version::RegisterTile(plan)
}

/// The plan for two products in one launch, or `None` when the device has too little memory for any.
pub fn choose_pair(problems: [&Problem; 2], limits: Limits) -> Option<Plan> {
    let (ladder, times): (&[Plan], usize) = if limits.small() {
        (&SMALL_LADDER, 1)
    } else {
        (&PAIR_LADDER, 2)
    };
    let limits = Limits {
        full: times * limits.full,
        ..limits
    };
    climb(ladder, limits, |plan| {
        problems.iter().map(|p| plan.groups(p)).sum()
    })
}

/// The first plan that fills the device, else the smallest tile worth taking, else the last that fits.
fn climb(ladder: &[Plan], limits: Limits, groups: impl Fn(&Plan) -> usize) -> Option<Plan> {
    let fitting = || ladder.iter().filter(|plan| limits.allow(plan));
    let full = fitting().find(|plan| groups(plan) >= limits.full);
    let small = || fitting().find(|plan| plan.tile.0 * plan.tile.1 <= SMALLEST);
    full.or_else(small)
        .or_else(|| fitting().next_back())
        .copied()
}
