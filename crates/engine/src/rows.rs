//! Kernel rows of one profiled step: spans and launches, summed over layers.
//!
//! # The work of a row
//!
//! FLOPs and bytes follow from the shapes, and each operand is moved once (compulsory traffic), so that a share of the roof shows waste. Attention
//! counts all pairs of tokens; flash attention counts those that the mask leaves, as `RunConfig::forward_flops` does. Its row counts the
//! backward pass as 2.5 forward passes, because it computes the scores again. A step's FLOP/s count it as 2, like every other product's.
//!
//! Where a norm's kernel adds the parts of the product before it (`ops::shared_work`), the norm's row counts the sum: the residual and the product
//! are read, x is written. Where the operations around a norm do its work, their rows count it, and the norm has none in the forward pass. Where
//! an operation launches several kernels, the row of the longest one carries the work, and its rates divide by the time of all of them (`work_ms`).
//! A row without work says why (`no_work`).
//!
//! A share above 100 % below the ridge means that a cache served the reads, because the slope is that of memory. Where arithmetic binds, a
//! share above 105 % is not shown: that roof is too low.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use protocol::KernelRow;
use tiny_llama::ops::cost::{Phase, Span, SpanRow};

/// How the names of kernels end that multiply on matrix cores.
const ON_MATRIX_CORES: &str = "matrix_cores";

/// A kernel that ran inside a span.
#[derive(Clone, Debug)]
pub(crate) struct TimedLaunch {
    /// Index of its span; `None` when it was issued outside every operation.
    pub span: Option<usize>,
    pub kernel: String,
    pub took: Took,
}

/// When something ran.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Took {
    /// On any clock that all of a profile share.
    pub start: Option<Duration>,
    pub length: Duration,
}

/// The rows of a profile. An operation's work by shape is counted once, in the row of the kernel
/// that took longest inside that span; that row's `work_ms` is the time of all kernels of the operation there.
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
                let carries = launch.span.and_then(|span| longest.get(&span)) == Some(&index);
                rows.add(&span.row, &launch.kernel, launch.took, carries);
            }
            None => rows.outside(&launch.kernel, launch.took),
        }
    }
    rows.sorted()
}

#[derive(Default)]
struct Rows {
    found: BTreeMap<[String; 4], (KernelRow, BTreeSet<Option<u16>>)>,
    /// When some call began is not known.
    untimed: bool,
}

impl Rows {
    fn add(&mut self, row: &SpanRow, kernel: &str, took: Took, counts_work: bool) {
        let key = [row.scope.part, row.phase.into_str(), row.op, kernel].map(str::to_owned);
        let (sum, layers) = self.entry(key, took);
        match row.cost.nothing {
            Some(why) => sum.no_work = Some(why.to_owned()),
            None if counts_work => {
                *sum.flops.get_or_insert(0.0) += row.cost.flops;
                *sum.bytes.get_or_insert(0.0) += row.cost.bytes;
            }
            None => {}
        }
        layers.insert(row.scope.layer);
    }

    /// A launch that no operation of ours issued: burn's own glue, such as adding up two gradients of one tensor.
    fn outside(&mut self, kernel: &str, took: Took) {
        let key = ["glue", "backward", "library", kernel].map(str::to_owned);
        let (sum, _) = self.entry(key, took);
        sum.no_work =
            Some("issued by the library between operations; its shapes are not seen".to_owned());
    }

    /// The row of a call, with the call added.
    fn entry(&mut self, key: [String; 4], took: Took) -> &mut (KernelRow, BTreeSet<Option<u16>>) {
        let found = self.found.entry(key.clone()).or_insert_with(|| {
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
        let sum = &mut found.0;
        sum.calls += 1;
        sum.ms += took.length.as_secs_f64() * 1e3;
        match took.start {
            Some(start) => {
                let slice = (start.as_nanos() as u64, took.length.as_nanos() as u64);
                sum.slices.push(slice);
            }
            None => self.untimed = true,
        }
        found
    }

    fn sorted(self) -> Vec<KernelRow> {
        let finish = |(mut row, layers): (KernelRow, BTreeSet<Option<u16>>)| {
            row.layers = layers.len() as u32;
            row
        };
        let mut rows: Vec<KernelRow> = self.found.into_values().map(finish).collect();
        for phase in [Phase::Forward, Phase::Backward, Phase::Optimizer] {
            let of = |row: &KernelRow| row.phase == phase.into_str();
            let starts = rows
                .iter()
                .filter(|row| of(row))
                .flat_map(|row| &row.slices);
            let first = starts.map(|it| it.0).min().unwrap_or(0);
            for row in rows.iter_mut().filter(|row| of(row)) {
                row.slices.iter_mut().for_each(|it| it.0 -= first);
                if self.untimed {
                    row.slices.clear();
                }
            }
        }
        complete_work(&mut rows);
        rows.sort_by(|a, b| b.ms.total_cmp(&a.ms));
        rows
    }
}

/// Where an operation has several kernels at one place, gives the row that carries the work the time of all of them, and
/// tells the other rows where their work is counted.
fn complete_work(rows: &mut [KernelRow]) {
    let mut whole: BTreeMap<[String; 3], (f64, bool, Option<String>)> = BTreeMap::new();
    let place = |row: &KernelRow| [&row.part, &row.phase, &row.op].map(Clone::clone);
    for row in rows.iter() {
        let (ms, cores, carrier) = whole.entry(place(row)).or_default();
        *ms += row.ms;
        *cores |= row.kernel.ends_with(ON_MATRIX_CORES);
        if row.flops.is_some() && carrier.is_none() {
            *carrier = Some(row.kernel.clone());
        }
    }
    for row in rows.iter_mut() {
        let Some((ms, cores, carrier)) = whole.get(&place(row)) else {
            continue;
        };
        row.matrix_cores = *cores;
        if row.flops.is_some() {
            row.work_ms = (*ms > row.ms).then_some(*ms);
        } else if let (None, Some(carrier)) = (&row.no_work, carrier) {
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

    fn took(start: Option<u64>, ms: u64) -> Took {
        Took {
            start: start.map(Duration::from_millis),
            length: Duration::from_millis(ms),
        }
    }

    #[test]
    fn calls_have_their_times_within_the_phase_where_the_device_tells_them() {
        let launch = |kernel: &str, start| TimedLaunch {
            span: Some(0),
            kernel: kernel.to_owned(),
            took: took(start, 2),
        };
        let spans = [span(0, 9)];
        let slices = |launches: &[TimedLaunch]| -> Vec<Vec<(u64, u64)>> {
            let rows = from_launches(&spans, launches);
            rows.into_iter().map(|row| row.slices).collect()
        };
        let (a, b) = (launch("a", Some(7)), launch("b", Some(10)));
        let ms = 1_000_000;
        let expected = [vec![(0, 2 * ms)], vec![(3 * ms, 2 * ms)]];
        assert_eq!(slices(&[a.clone(), b]), expected);
        let untimed = slices(&[a, launch("b", None)]);
        assert!(untimed.iter().all(Vec::is_empty), "{untimed:?}");
    }

    #[test]
    fn layers_add_up() {
        let launch = |layer, ms| TimedLaunch {
            span: Some(layer),
            kernel: "library".to_owned(),
            took: took(None, ms),
        };
        let rows = from_launches(&[span(0, 2), span(1, 3)], &[launch(0, 2), launch(1, 3)]);
        assert_eq!(rows.len(), 1);
        assert_eq!(
            (rows[0].layers, rows[0].calls, rows[0].ms, rows[0].flops),
            (2, 2, 5.0, Some(20.0))
        );
    }

    #[test]
    fn every_kernel_of_an_operation_on_matrix_cores_has_their_roof() {
        let launch = |span, kernel: &str| TimedLaunch {
            span,
            kernel: kernel.to_owned(),
            took: took(None, 1),
        };
        let launches = [
            launch(Some(0), "convert_format"),
            launch(Some(0), "matmul_matrix_cores"),
            launch(None, "add"),
        ];
        for row in from_launches(&[span(0, 9)], &launches) {
            assert_eq!(row.matrix_cores, row.part != "glue", "{}", row.kernel);
        }
    }

    #[test]
    fn work_is_counted_once_in_the_longest_kernel_of_an_operation() {
        let launch = |span, kernel: &str, ms| TimedLaunch {
            span,
            kernel: kernel.to_owned(),
            took: took(None, ms),
        };
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
