//! Which plans the planner chooses for products of known sizes, and the rules that every plan keeps.

use super::*;

const LARGE_DEVICE: Limits = Limits {
    shared_bytes: 49_152,
    threads: 1024,
    is_cpu: false,
};

const INVOCATIONS: Planner = Planner::Full(LARGE_DEVICE);
const NATIVE: Planner = Planner::Cores { halves: false };
const HALVES: Planner = Planner::Cores { halves: true };

impl Plan {
    /// Returns true if the fields have values that the kernels can run.
    pub(crate) fn is_sound(&self) -> bool {
        let sides = [self.tile.0, self.tile.1, self.block.0, self.block.1];
        let slice = self.step / self.slices;
        let is_whole = sides.iter().all(|side| side.is_multiple_of(4))
            && self.tile.0.is_multiple_of(self.block.0)
            && self.tile.1.is_multiple_of(self.block.1)
            && self.slices.is_power_of_two()
            && self.step.is_power_of_two();
        let loads = [self.step, self.tile.0, self.tile.1];
        let loads_are_even = self.step >= 8.max(4 * self.slices)
            && slice.is_multiple_of(self.unroll.min(slice))
            && loads
                .iter()
                .all(|side| self.threads().is_multiple_of(side / 4));
        is_whole && (self.subgroup > 1 || loads_are_even)
    }
}

/// Returns every plan of every table.
pub(crate) fn plans() -> impl Iterator<Item = Plan> {
    [&CPU, &GPU, &CORES, &SPLIT]
        .into_iter()
        .flat_map(|table| table.rows)
        .map(|(plan, _)| *plan)
        .chain([NARROW, SMALLEST])
}

fn problem(rows: usize, columns: usize, inner: usize) -> Problem {
    Problem::new([rows, columns, inner], false, false)
}

#[test]
fn large_products_take_large_tiles_and_long_ones_are_split() {
    let chosen =
        |rows, columns, inner| INVOCATIONS.one(&problem(rows, columns, inner), Parts::Launch);
    assert_eq!(chosen(1024, 4096, 512), LARGE);
    assert_eq!(chosen(1024, 512, 2048), LARGE.splits(4));
    let plan = chosen(1024, 512, 512);
    assert_eq!((plan.tile, plan.splits), ((64, 64), 1));
}

#[test]
fn pairs_are_split_until_their_workgroups_have_about_equal_work() {
    let splits = |dx, dw| INVOCATIONS.pair(&[dx, dw]).map(|plan| plan.splits);
    let square = [problem(1024, 512, 512), problem(512, 512, 1024)];
    assert_eq!(splits(square[0], square[1]), [2, 4]);
    let gates = [problem(1024, 512, 4096), problem(4096, 512, 1024)];
    assert_eq!(splits(gates[0], gates[1]), [2, 1]);
    let down = [problem(1024, 2048, 512), problem(512, 2048, 1024)];
    assert_eq!(splits(down[0], down[1]), [1, 1]);
    assert_eq!(splits(problem(7, 9, 11), problem(9, 9, 7)), [1, 1]);
}

#[test]
fn pairs_with_many_tiles_take_narrow_ones() {
    let qkv = [problem(4096, 1024, 2048), problem(2048, 1024, 4096)];
    assert_eq!(INVOCATIONS.pair(&qkv), [NARROW; 2]);
    let o = [problem(4096, 1024, 1024), problem(1024, 1024, 4096)];
    assert_eq!(INVOCATIONS.pair(&o), [LARGE; 2]);
}

#[test]
fn a_device_that_allows_no_tile_of_its_table_takes_the_smallest() {
    let limits = Limits {
        shared_bytes: 1,
        ..LARGE_DEVICE
    };
    let plan = Planner::Full(limits).one(&problem(1024, 4096, 512), Parts::Launch);
    assert_eq!(plan, SMALLEST);
}

#[test]
fn every_plan_keeps_the_rules_of_its_fields() {
    for plan in plans() {
        assert!(plan.is_sound(), "{plan:?}");
        let bytes = plan.shared_vectors() * 16;
        assert!(
            plan.subgroup > 1 || bytes <= LARGE_DEVICE.shared_bytes,
            "{plan:?}"
        );
    }
}

#[test]
fn f16_is_in_parts_only_where_it_has_to_be() {
    let chosen = |sizes| {
        let plan = NATIVE.one(&Problem::new(sizes, false, true), Parts::Launch);
        (plan.tile, plan.splits)
    };
    assert_eq!(chosen([1024, 512, 512]), ((64, 64), 1));
    assert_eq!(chosen([1024, 512, 2048]), ((64, 64), 1));
    assert_eq!(chosen([1024, 512, 4096]), ((128, 128), 4));
    assert_eq!(chosen([4096, 1024, 1024]), ((128, 128), 1));
    assert_eq!(chosen([100, 72, 68]), ((64, 64), 1));
}

/// dx and dW of every layer of `small`: 1,024 tokens, k inputs and m outputs.
#[test]
fn a_pair_of_small_has_parts_only_if_the_inner_dimension_of_dx_is_long() {
    let chosen = |m, k| {
        let dx = Problem::new([1024, k, m], false, false);
        let dw = Problem::new([m, k, 1024], true, false);
        NATIVE.pair(&[dx, dw]).map(|plan| (plan.tile, plan.splits))
    };
    let [square, wide, half] = [(128, 128), (64, 128), (64, 64)];
    assert_eq!(chosen(1024, 512), [(wide, 1); 2]);
    assert_eq!(chosen(512, 512), [(wide, 1), (half, 1)]);
    assert_eq!(chosen(4096, 512), [(square, 4), (square, 1)]);
    assert_eq!(chosen(512, 2048), [(square, 1); 2]);
}

#[test]
fn no_part_begins_past_the_end() {
    let assert_last_part_begins_inside = |plan: Plan, problem: &Problem| {
        let begin = plan.share(problem) * (plan.splits - 1);
        assert!(begin < problem.inner, "{problem:?} {plan:?}");
    };
    for planner in [NATIVE, HALVES] {
        for [n, m, k] in [[16, 128, 128], [288, 40, 128], [1024, 1024, 512]] {
            let problems = [
                Problem::new([n, k, m], false, false),
                Problem::new([m, k, n], true, false),
            ];
            for (plan, problem) in planner.pair(&problems).iter().zip(&problems) {
                assert_last_part_begins_inside(*plan, problem);
            }
        }
        for inner in (4..=4096).step_by(4) {
            let problem = Problem::new([512, 512, inner], false, true);
            assert_last_part_begins_inside(planner.one(&problem, Parts::Launch), &problem);
        }
    }
}
