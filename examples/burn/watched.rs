//! A training with burn in the panels of `perflings watch`: loss and rate. Everything else is "not reported".
//!
//! For burn 0.22. Copy this file into your program, add `serde_json` to its dependencies, and give the logger to the training. burn leaves
//! its own file logger out once there is another one, so this one keeps burn's files in the folder of artifacts as well:
//!
//! ```ignore
//! let training = SupervisedTraining::new(artifacts, train, valid)
//!     .metric_train_numeric(LossMetric::new())
//!     .with_metric_logger(watched::WatchLogger::new(artifacts, "text classification", batch_size, classes));
//! ```
//!
//! It writes no lines unless `perflings watch -- cargo run --release` started the program. Of burn's own examples, the text
//! classification needs these three changes: the dependency, `pub mod watched;` and the line above.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use burn::train::logger::{FileMetricLogger, MetricLogger};
use burn::train::metric::store::{EpochSummary, MetricsUpdate, Split};
use burn::train::metric::{MetricDefinition, MetricId, NumericEntry};
use serde_json::{Value, json};

/// Writes the loss of each batch and the time since the one before as the lines of `docs/watch.md`.
pub struct WatchLogger {
    /// Burn's own logger. Checkpoints by a metric and early stopping read from it.
    burn: FileMetricLogger,
    /// `None` where nobody watches, and once the disk is full.
    file: Option<File>,
    began: Instant,
    last: Option<Instant>,
    step: u64,
    loss: Option<MetricId>,
}

impl WatchLogger {
    /// `artifacts` is the folder that the training was given. `classes` is the number of classes that the loss chooses from; the first
    /// loss is judged by it.
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
        logger.say(json!({"event": "hello", "protocol": 1, "version": "burn 0.22", "pid": std::process::id()}));
        logger.say(json!({"event": "run", "name": name, "samples": batch, "classes": classes}));
        logger
    }

    fn say(&mut self, mut line: Value) {
        line["t"] = json!(self.began.elapsed().as_secs_f64());
        let written = self.file.as_mut().map(|file| writeln!(file, "{line}"));
        if matches!(written, Some(Err(_))) {
            self.file = None;
        }
    }

    fn say_step(&mut self, update: &MetricsUpdate) {
        let mut metrics = update.entries_numeric.iter();
        let found = metrics.find(|metric| Some(&metric.entry.metric_id) == self.loss.as_ref());
        let loss = found.and_then(|metric| metric.numeric_entry.as_ref()).map(NumericEntry::current);
        let now = Instant::now();
        let ms = self.last.replace(now).map(|last| 1e3 * now.duration_since(last).as_secs_f64());
        // JSON has no NaN.
        let loss = loss.map(|loss| if loss.is_finite() { json!(loss) } else { json!(loss.to_string()) });
        self.say(json!({"event": "step", "step": self.step, "loss": loss, "ms": ms}));
        self.step += 1;
    }
}

impl MetricLogger for WatchLogger {
    fn log(&mut self, update: MetricsUpdate, epoch: usize, split: &Split) {
        if matches!(split, Split::Train) {
            self.say_step(&update);
        } else {
            // The time of a validation belongs to no step.
            self.last = None;
        }
        self.burn.log(update, epoch, split);
    }

    fn read_numeric(&mut self, name: &str, epoch: usize, split: &Split) -> Result<Vec<NumericEntry>, String> {
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
        self.say(json!({"event": "ended"}));
    }
}
