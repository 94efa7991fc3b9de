//! Where a worker runs. A GPU is asynchronous by itself: its worker runs inline and `sync` waits for the device. The
//! CPU device gets a queue of ours: one device thread owns the worker, and the host enqueues work ahead of it. So the effect of
//! a missing sync shows on a laptop as well. On either the host is at most two steps ahead.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use super::worker::{STEPS_AHEAD, Worker};
use tiny_llama::ops::compile_progress;

/// Tasks that may wait: the steps that the host may be ahead, of four tasks each (batch, forward, backward, update).
const MAX_WAITING: usize = 4 * STEPS_AHEAD;

type Task = Box<dyn FnOnce(&mut Worker) + Send>;

/// A worker, and how work gets to it.
pub(crate) enum Queue {
    Inline(Box<Worker>),
    Queued {
        /// None once it ends.
        device: Option<(SyncSender<Task>, JoinHandle<()>)>,
        /// Nanoseconds that submitted work has taken so far.
        busy: Arc<AtomicU64>,
    },
}

impl Queue {
    /// Makes the worker where it will live.
    ///
    /// # Errors
    /// What `make` reports, or the text of its panic.
    pub(crate) fn new(
        queued: bool,
        make: impl FnOnce() -> Result<Worker> + Send + 'static,
    ) -> Result<Self> {
        if !queued {
            return Ok(Self::Inline(Box::new(guard(make)??)));
        }
        let (tasks, inbox) = sync_channel::<Task>(MAX_WAITING);
        let (answer, made) = channel();
        let busy = Arc::new(AtomicU64::new(0));
        let thread = Builder::new().name("device".into()).spawn(move || {
            match guard(make).and_then(|worker| worker) {
                Ok(worker) => {
                    let _ = answer.send(Ok(()));
                    serve(worker, &inbox);
                }
                Err(error) => drop(answer.send(Err(error))),
            }
        })?;
        made.recv().map_err(|_| gone())??;
        Ok(Self::Queued {
            device: Some((tasks, thread)),
            busy,
        })
    }

    /// How long the device thread has spent on what was submitted, since it began; up to date after a `sync`. `None` where
    /// the device tells its time under the profiler only.
    pub(crate) fn busy(&self) -> Option<Duration> {
        match self {
            Self::Inline(_) => None,
            Self::Queued { busy, .. } => Some(Duration::from_nanos(busy.load(Ordering::Acquire))),
        }
    }

    /// Submits work without waiting for it; blocks only while two steps are outstanding.
    pub(crate) fn submit(&mut self, task: impl FnOnce(&mut Worker) + Send + 'static) -> Result<()> {
        let Self::Queued { busy, .. } = self else {
            return self.dispatch(task);
        };
        let busy = Arc::clone(busy);
        self.dispatch(move |worker| {
            let began = Instant::now();
            task(worker);
            let took = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
            busy.fetch_add(took, Ordering::AcqRel);
        })
    }

    fn dispatch(&mut self, task: impl FnOnce(&mut Worker) + Send + 'static) -> Result<()> {
        match self {
            Self::Inline(worker) => guard(AssertUnwindSafe(|| task(worker))),
            Self::Queued { device, .. } => {
                let (tasks, _) = device.as_ref().ok_or_else(gone)?;
                tasks.send(Box::new(task)).map_err(|_| gone())
            }
        }
    }

    /// Submits work and waits for its answer; the wait does not count as busy time.
    pub(crate) fn ask<R: Send + 'static>(
        &mut self,
        task: impl FnOnce(&mut Worker) -> R + Send + 'static,
    ) -> Result<R> {
        match self {
            Self::Inline(worker) => {
                let answer = guard(AssertUnwindSafe(|| task(worker)));
                compile_progress::DEVICE.step();
                answer
            }
            Self::Queued { .. } => {
                let (sender, answer) = channel();
                self.dispatch(move |worker| drop(sender.send(task(worker))))?;
                answer.recv().map_err(|_| gone())
            }
        }
    }

    /// After a step that the host does not wait for: keeps a GPU from falling behind further than [`STEPS_AHEAD`] steps. A queue of
    /// ours takes no more tasks than these.
    pub(crate) fn keep_pace(&mut self) -> Result<()> {
        match self {
            Self::Inline(worker) => guard(AssertUnwindSafe(|| worker.keep_pace()))?,
            Self::Queued { .. } => Ok(()),
        }
    }

    /// Waits until everything submitted is done.
    pub(crate) fn sync(&mut self) -> Result<()> {
        self.ask(Worker::sync)?
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        if let Self::Queued { device, .. } = self
            && let Some((tasks, thread)) = device.take()
        {
            drop(tasks);
            let _ = thread.join();
        }
    }
}

/// Runs tasks until one panics or no more can come. A panic ends the thread; the host learns of it at its next call.
fn serve(mut worker: Worker, inbox: &Receiver<Task>) {
    while let Ok(task) = inbox.recv() {
        // Each task runs inside the pool: parallel work that starts there needs no hand-over, a tenth of a step at `tiny`.
        // Waiting for a task happens outside, or a device would hold on to one of the pool's threads.
        let here = &mut worker;
        if catch_unwind(AssertUnwindSafe(move || rayon::scope(move |_| task(here)))).is_err() {
            return;
        }
        compile_progress::DEVICE.step();
    }
}

/// Runs `work`; a panic becomes an error with its text.
fn guard<R>(work: impl FnOnce() -> R) -> Result<R> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        anyhow!("{}", text.unwrap_or("a panic without text"))
    })
}

fn gone() -> anyhow::Error {
    anyhow!("the device thread ended; the log says why")
}
