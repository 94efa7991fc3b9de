//! The kernel rows of one profiled step. A row sums the launches of a kernel over all layers.
//!
//! # The work of a row
//!
//! FLOPs and bytes follow from the shapes, and each operand is moved once (compulsory traffic), so that a share of the peak shows waste. Attention
//! counts all pairs of tokens; flash attention counts those that the mask allows, as `RunConfig::forward_flops` does. Its row counts the
//! backward pass as 2.5 forward passes, because it computes the scores again. A step's FLOP/s count it as 2, as for every other product.
//!
//! If a norm's kernel adds the parts of the product before it (`ops::shared_work`), the norm's row counts the sum: the residual and the product
//! are read, x is written. If the operations around a norm do its work, their rows count it, and the norm has none in the forward pass. If
//! an operation launches several kernels, the row of the longest one carries the work, and its rates divide by the time of all of them (`work_ms`).
//! A row without work has the reason for that (`no_work`).
//!
//! A share above 100 % below the ridge means that a cache served the reads, because the slope is that of memory. If arithmetic binds, a
//! share above 105 % is not shown, because the peak must be too low.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use protocol::KernelRow;
use tiny_llama::ops::cost::{Phase, Span, SpanRow};

/// The names of kernels that multiply on matrix cores end with this.
const ON_MATRIX_CORES: &str = "matrix_cores";

/// A launch of a kernel, with its time.
#[derive(Clone, Debug)]
pub(crate) struct TimedLaunch {
    /// The index of the span that the launch belongs to; `None` if it was issued outside every operation.
    pub span: Option<usize>,
    pub kernel: String,
    pub took: LaunchTime,
}

/// The time at which a launch ran.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaunchTime {
    /// The start on a clock that all launches of a profile share; `None` if the device does not report it.
    pub start: Option<Duration>,
    pub length: Duration,
}

/// Sums the launches of a profile up in rows. The work of an operation is counted once, in the row of the kernel that took longest inside its
/// span. The `work_ms` of that row is the time of all kernels of the operation.
pub(crate) fn from_launches(spans: &[Span], launches: &[TimedLaunch]) -> Vec<KernelRow> {
    let mut longest: BTreeMap<usize, usize> = BTreeMap::new();
    for (index, launch) in launches.iter().enumerate() {
        if let Some(span) = launch.span {
            let best = longest.entry(span).or_insert(index);
            if launch.took.length > launches[*best].took.length {
                *best = index;
            }
        }
    }
    let mut rows = Rows::default();
    for (index, launch) in launches.iter().enumerate() {
        match launch.span.and_then(|span| spans.get(span)) {
            Some(span) => {
                let is_longest = launch.span.and_then(|span| longest.get(&span)) == Some(&index);
                rows.add(&span.row, &launch.kernel, launch.took, is_longest);
            }
            None => rows.add_glue(&launch.kernel, launch.took),
        }
    }
    rows.sorted()
}

/// A row, and the layers that its launches belong to.
type RowWithLayers = (KernelRow, BTreeSet<Option<u16>>);

#[derive(Default)]
struct Rows {
    /// The rows by part, phase, operation and kernel.
    by_kernel: BTreeMap<[String; 4], RowWithLayers>,
    /// True if the start of some launch is not known.
    untimed: bool,
}

impl Rows {
    /// Adds a launch inside an operation. `counts_work` is true if this launch carries the operation's work.
    fn add(&mut self, row: &SpanRow, kernel: &str, took: LaunchTime, counts_work: bool) {
        let key = [row.scope.part, row.phase.into_str(), row.op, kernel].map(str::to_owned);
        let (sum, layers) = self.add_call(key, took);
        if let Some(why) = row.cost.nothing {
            sum.no_work = Some(why.to_owned());
        } else if counts_work {
            *sum.flops.get_or_insert(0.0) += row.cost.flops;
            *sum.bytes.get_or_insert(0.0) += row.cost.bytes;
        }
        layers.insert(row.scope.layer);
    }

    /// Adds a launch that the library issued between operations, such as the sum of two gradients of one tensor.
    fn add_glue(&mut self, kernel: &str, took: LaunchTime) {
        let key = ["glue", "backward", "library", kernel].map(str::to_owned);
        let (sum, _) = self.add_call(key, took);
        sum.no_work =
            Some("issued by the library between operations; its shapes are not seen".to_owned());
    }

    /// Adds a call to its row, and returns the row.
    fn add_call(&mut self, key: [String; 4], took: LaunchTime) -> &mut RowWithLayers {
        let row_with_layers = self.by_kernel.entry(key.clone()).or_insert_with(|| {
            let [part, phase, op, kernel] = key;
            (
                KernelRow {
                    part,
                    phase,
                    op,
                    kernel,
                    ..KernelRow::default()
                },
                BTreeSet::new(),
            )
        });
        let sum = &mut row_with_layers.0;
        sum.calls += 1;
        sum.ms += took.length.as_secs_f64() * 1e3;
        match took.start {
            Some(start) => {
                let slice = (start.as_nanos() as u64, took.length.as_nanos() as u64);
                sum.slices.push(slice);
            }
            None => self.untimed = true,
        }
        row_with_layers
    }

    /// Returns the rows, the longest first. Their slices begin with their phase.
    fn sorted(self) -> Vec<KernelRow> {
        let mut rows = Vec::new();
        for (mut row, layers) in self.by_kernel.into_values() {
            row.layers = layers.len() as u32;
            if self.untimed {
                row.slices.clear();
            }
            rows.push(row);
        }
        for phase in [Phase::Forward, Phase::Backward, Phase::Optimizer] {
            let is_in_phase = |row: &KernelRow| row.phase == phase.into_str();
            let first_start = rows
                .iter()
                .filter(|row| is_in_phase(row))
                .flat_map(|row| &row.slices)
                .map(|(start, _)| *start)
                .min();
            for row in rows.iter_mut().filter(|row| is_in_phase(row)) {
                for (start, _) in &mut row.slices {
                    *start -= first_start.unwrap_or(0);
                }
            }
        }
        complete_work(&mut rows);
        rows.sort_by(|a, b| b.ms.total_cmp(&a.ms));
        rows
    }
}

/// The kernels of one operation in one part and phase.
#[derive(Default)]
struct OperationTotals {
    ms: f64,
    on_matrix_cores: bool,
    /// The kernel whose row carries the work.
    carrier: Option<String>,
}

/// Completes the rows of operations with several kernels: the row that carries the work gets the time of all of them, and the other rows name
/// the kernel whose row counts their work.
fn complete_work(rows: &mut [KernelRow]) {
    let mut totals: BTreeMap<[String; 3], OperationTotals> = BTreeMap::new();
    let operation = |row: &KernelRow| [&row.part, &row.phase, &row.op].map(Clone::clone);
    for row in rows.iter() {
        let total = totals.entry(operation(row)).or_default();
        total.ms += row.ms;
        total.on_matrix_cores |= row.kernel.ends_with(ON_MATRIX_CORES);
        if row.flops.is_some() && total.carrier.is_none() {
            total.carrier = Some(row.kernel.clone());
        }
    }
    for row in rows.iter_mut() {
        let Some(total) = totals.get(&operation(row)) else {
            continue;
        };
        row.matrix_cores = total.on_matrix_cores;
        if row.flops.is_some() {
            row.work_ms = (total.ms > row.ms).then_some(total.ms);
        } else if let (None, Some(carrier)) = (&row.no_work, &total.carrier) {
            row.no_work = Some(format!("counted with {carrier}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiny_llama::ops::cost::{Cost, Scope};

    fn span(layer: usize, ms: u64) -> Span {
        let row = SpanRow {
            scope: Scope::layer(layer, "mlp.up"),
            phase: Phase::Forward,
            op: "linear",
            version: "library",
            cost: Cost::new(10.0, 1.0),
        };
        Span {
            row,
            start: Duration::ZERO,
            length: Duration::from_millis(ms),
        }
    }

    /// Returns a launch of some milliseconds whose start is not known.
    fn launch(span: Option<usize>, kernel: &str, ms: u64) -> TimedLaunch {
        TimedLaunch {
            span,
            kernel: kernel.to_owned(),
            took: LaunchTime {
                start: None,
                length: Duration::from_millis(ms),
            },
        }
    }

    fn starting_at(start_ms: u64, mut launch: TimedLaunch) -> TimedLaunch {
        launch.took.start = Some(Duration::from_millis(start_ms));
        launch
    }

    fn slices(launches: &[TimedLaunch]) -> Vec<Vec<(u64, u64)>> {
        let rows = from_launches(&[span(0, 9)], launches);
        rows.into_iter().map(|row| row.slices).collect()
    }

    #[test]
    fn the_slices_of_a_row_count_from_the_start_of_its_phase() {
        let a = starting_at(7, launch(Some(0), "a", 2));
        let b = starting_at(10, launch(Some(0), "b", 2));
        let ms = 1_000_000;
        let expected = [vec![(0, 2 * ms)], vec![(3 * ms, 2 * ms)]];
        assert_eq!(slices(&[a, b]), expected);
    }

    #[test]
    fn no_row_has_slices_if_the_start_of_one_launch_is_unknown() {
        let a = starting_at(7, launch(Some(0), "a", 2));
        let b = launch(Some(0), "b", 2);
        let slices = slices(&[a, b]);
        assert!(slices.iter().all(Vec::is_empty), "{slices:?}");
    }

    #[test]
    fn launches_of_one_kernel_in_two_layers_are_one_row() {
        let launches = [launch(Some(0), "library", 2), launch(Some(1), "library", 3)];
        let rows = from_launches(&[span(0, 2), span(1, 3)], &launches);
        assert_eq!(rows.len(), 1);
        assert_eq!(
            (rows[0].layers, rows[0].calls, rows[0].ms, rows[0].flops),
            (2, 2, 5.0, Some(20.0))
        );
    }

    #[test]
    fn every_kernel_of_an_operation_on_matrix_cores_is_compared_with_their_peak() {
        let launches = [
            launch(Some(0), "convert_format", 1),
            launch(Some(0), "matmul_matrix_cores", 1),
            launch(None, "add", 1),
        ];
        for row in from_launches(&[span(0, 9)], &launches) {
            assert_eq!(row.matrix_cores, row.part != "glue", "{}", row.kernel);
        }
    }

    #[test]
    fn work_is_counted_once_in_the_longest_kernel_of_an_operation() {
        let rows = from_launches(
            &[span(0, 9)],
            &[
                launch(Some(0), "copy", 1),
                launch(Some(0), "matmul", 4),
                launch(None, "add", 2),
            ],
        );
        let total: f64 = rows.iter().filter_map(|row| row.flops).sum();
        assert_eq!(total, 10.0);
        assert_eq!(
            (rows[0].kernel.as_str(), rows[0].flops, rows[0].work_ms),
            ("matmul", Some(10.0), Some(5.0))
        );
        let reason = |kernel: &str| {
            let row = rows.iter().find(|row| row.kernel == kernel).expect("a row");
            assert_eq!((row.flops, row.bytes), (None, None));
            row.no_work.clone().expect("a reason")
        };
        assert_eq!(reason("copy"), "counted with matmul");
        assert!(reason("add").contains("library"));
        assert!(
            rows.iter()
                .any(|row| row.part == "glue" && row.kernel == "add")
        );
    }
}
