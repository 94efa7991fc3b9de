//! A logger that shows the loss and the rate of a training with burn in `perflings watch`. The other panels say "not reported".
//!
//! It is written for burn 0.22. Copy this file into your program, add `serde_json` to its dependencies, and give the logger to the training.
//! burn drops its own file logger once a training has another one, so this logger writes burn's files in the folder of artifacts, too:
//!
//! ```ignore
//! let training = SupervisedTraining::new(artifacts, train, valid)
//!     .metric_train_numeric(LossMetric::new())
//!     .with_metric_logger(watched::WatchLogger::new(artifacts, "text classification", batch_size, classes));
//! ```
//!
//! The logger writes lines only if `perflings watch -- cargo run --release` started the program. burn's own text classification needs three
//! changes: the dependency, `pub mod watched;` and the line above.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use burn::train::logger::{FileMetricLogger, MetricLogger};
use burn::train::metric::store::{EpochSummary, MetricsUpdate, Split};
use burn::train::metric::{MetricDefinition, MetricId, NumericEntry};
use serde_json::{Value, json};

/// Writes the loss of each batch and the time since the batch before as the lines of `docs/watch.md`.
pub struct WatchLogger {
    /// burn's own logger. Checkpoints by a metric and early stopping read from it.
    burn: FileMetricLogger,
    /// The file of the lines. `None` if nobody watches, and after a failed write.
    file: Option<File>,
    began: Instant,
    /// The end of the batch before.
    last: Option<Instant>,
    step: u64,
    /// The metric that is the loss.
    loss: Option<MetricId>,
}

impl WatchLogger {
    /// Begins the lines of a training. `artifacts` is the training's own folder. `classes` is the number of classes that the loss chooses from,
    /// by which the first loss is judged.
    pub fn new(artifacts: &str, name: &str, batch: usize, classes: usize) -> Self {
        let folder = std::env::var_os("PERFLINGS_WATCH");
        let path = folder.map(|folder| Path::new(&folder).join("rank-0.jsonl"));
        let mut logger = Self {
            burn: FileMetricLogger::new(artifacts),
            file: path.and_then(|path| File::create(path).ok()),
            began: Instant::now(),
            last: None,
            step: 0,
            loss: None,
        };
        let pid = std::process::id();
        logger.write(json!({"event": "hello", "protocol": 1, "version": "burn 0.22", "pid": pid}));
        logger.write(json!({"event": "run", "name": name, "samples": batch, "classes": classes}));
        logger
    }

    /// Writes a line with the present time.
    fn write(&mut self, mut line: Value) {
        line["t"] = json!(self.began.elapsed().as_secs_f64());
        let written = self.file.as_mut().map(|file| writeln!(file, "{line}"));
        if matches!(written, Some(Err(_))) {
            self.file = None;
        }
    }

    /// Writes the line of a step. A loss that is not finite is written as text, because JSON has no NaN.
    fn write_step(&mut self, update: &MetricsUpdate) {
        let metric = update
            .entries_numeric
            .iter()
            .find(|metric| Some(&metric.entry.metric_id) == self.loss.as_ref());
        let entry = metric.and_then(|metric| metric.numeric_entry.as_ref());
        let loss = entry.map(|entry| match entry.current() {
            loss if loss.is_finite() => json!(loss),
            loss => json!(loss.to_string()),
        });
        let now = Instant::now();
        let last = self.last.replace(now);
        let ms = last.map(|last| 1e3 * now.duration_since(last).as_secs_f64());
        self.write(json!({"event": "step", "step": self.step, "loss": loss, "ms": ms}));
        self.step += 1;
    }
}

impl MetricLogger for WatchLogger {
    fn log(&mut self, update: MetricsUpdate, epoch: usize, split: &Split) {
        if matches!(split, Split::Train) {
            self.write_step(&update);
        } else {
            // The time of a validation belongs to no step.
            self.last = None;
        }
        self.burn.log(update, epoch, split);
    }

    fn read_numeric(
        &mut self,
        name: &str,
        epoch: usize,
        split: &Split,
    ) -> Result<Vec<NumericEntry>, String> {
        self.burn.read_numeric(name, epoch, split)
    }

    fn log_metric_definition(&mut self, definition: MetricDefinition) {
        if definition.name.as_str() == "Loss" {
            self.loss = Some(definition.metric_id.clone());
        }
        self.burn.log_metric_definition(definition);
    }

    fn log_epoch_summary(&mut self, summary: EpochSummary) {
        self.burn.log_epoch_summary(summary);
    }
}

impl Drop for WatchLogger {
    fn drop(&mut self) {
        self.write(json!({"event": "ended"}));
    }
}
