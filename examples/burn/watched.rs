//! A training with burn in the panels of `perflings watch`: loss and rate. Everything else is "not reported".
//!
//! For burn 0.22. Copy this file into your program, add `serde_json` to its dependencies, and give the logger to the training, which keeps
//! its other loggers:
//!
//! ```ignore
//! let training = SupervisedTraining::new(artifacts, train, valid)
//!     .metric_train_numeric(LossMetric::new())
//!     .with_metric_logger(watched::WatchLogger::new("text classification", batch_size, classes));
//! ```
//!
//! It writes nothing unless `perflings watch -- cargo run --release` started the program.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use burn::train::logger::MetricLogger;
use burn::train::metric::store::{EpochSummary, MetricsUpdate, Split};
use burn::train::metric::{MetricDefinition, MetricId, NumericEntry};
use serde_json::{Value, json};

/// Writes the loss of each batch and the time since the one before as the lines of `docs/watch.md`.
pub struct WatchLogger {
    /// None where nobody watches, and once the disk is full.
    file: Option<File>,
    began: Instant,
    last: Option<Instant>,
    step: u64,
    loss: Option<MetricId>,
}

impl WatchLogger {
    /// `classes` is the number of classes that the loss chooses from; the first loss is judged by it.
    pub fn new(name: &str, batch: usize, classes: usize) -> Self {
        let folder = std::env::var_os("PERFLINGS_WATCH");
        let file = folder.and_then(|it| File::create(Path::new(&it).join("rank-0.jsonl")).ok());
        let mut it = Self {
            file,
            began: Instant::now(),
            last: None,
            step: 0,
            loss: None,
        };
        it.say(json!({"event": "hello", "protocol": 1, "version": "burn 0.22", "pid": std::process::id()}));
        it.say(json!({"event": "run", "name": name, "samples": batch, "classes": classes}));
        it
    }

    fn say(&mut self, mut line: Value) {
        line["t"] = json!(self.began.elapsed().as_secs_f64());
        let written = self.file.as_mut().map(|file| writeln!(file, "{line}"));
        if matches!(written, Some(Err(_))) {
            self.file = None;
        }
    }
}

impl MetricLogger for WatchLogger {
    fn log(&mut self, update: MetricsUpdate, _epoch: usize, split: &Split) {
        if !matches!(split, Split::Train) {
            // The time of a validation belongs to no step.
            self.last = None;
            return;
        }
        let found = update.entries_numeric.iter().find(|it| Some(&it.entry.metric_id) == self.loss.as_ref());
        let loss = found.and_then(|it| it.numeric_entry.as_ref()).map(NumericEntry::current);
        let now = Instant::now();
        let ms = self.last.replace(now).map(|last| 1e3 * now.duration_since(last).as_secs_f64());
        // JSON has no NaN.
        let loss = loss.map(|loss| if loss.is_finite() { json!(loss) } else { json!(loss.to_string()) });
        self.say(json!({"event": "step", "step": self.step, "loss": loss, "ms": ms}));
        self.step += 1;
    }

    fn read_numeric(&mut self, _name: &str, _epoch: usize, _split: &Split) -> Result<Vec<NumericEntry>, String> {
        Err("it writes and does not read".to_owned())
    }

    fn log_metric_definition(&mut self, definition: MetricDefinition) {
        if definition.name.as_str() == "Loss" {
            self.loss = Some(definition.metric_id);
        }
    }

    fn log_epoch_summary(&mut self, _summary: EpochSummary) {}
}

impl Drop for WatchLogger {
    fn drop(&mut self) {
        self.say(json!({"event": "ended"}));
    }
}
