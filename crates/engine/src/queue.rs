//! The queue between the host and a worker. A GPU is asynchronous by itself, so its worker runs inline and `sync` waits for the device. The
//! CPU device gets a queue of ours: one device thread owns the worker, and the host enqueues work ahead of it. A missing sync therefore shows on
//! a laptop as well. On both the host is at most two steps ahead.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use super::worker::{PhaseTasks, STEPS_AHEAD, Worker};
use tiny_llama::ops::device_progress;

/// The largest number of tasks that wait. The host may be [`STEPS_AHEAD`] steps ahead, and a step has four tasks: batch, forward, backward, update.
const MAX_WAITING: usize = 4 * STEPS_AHEAD;

type Task = Box<dyn FnOnce(&mut Worker) + Send>;

/// A worker, and the way in which tasks reach it.
pub(crate) enum Queue {
    /// The worker of a GPU, which runs on the host's thread.
    Inline(Box<Worker>),
    /// The worker of the CPU device, which a thread of its own owns.
    Queued {
        /// The device thread and the channel to it; `None` while the queue is dropped.
        device: Option<(SyncSender<Task>, JoinHandle<()>)>,
        /// Nanoseconds that submitted work has taken so far.
        busy: Arc<AtomicU64>,
    },
}

impl Queue {
    /// Makes the worker in the thread that will run it.
    ///
    /// # Errors
    /// Fails when `make` fails or panics, with its error or the text of its panic.
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
        made.recv().map_err(|_| thread_ended())??;
        Ok(Self::Queued {
            device: Some((tasks, thread)),
            busy,
        })
    }

    /// Returns the time that the device thread has worked on submitted tasks since it began. The figure is up to date after a `sync`. It is `None`
    /// on a GPU, whose time is known under the profiler only.
    pub(crate) fn busy(&self) -> Option<Duration> {
        match self {
            Self::Inline(_) => None,
            Self::Queued { busy, .. } => Some(Duration::from_nanos(busy.load(Ordering::Acquire))),
        }
    }

    /// Submits a task without waiting for it. This blocks only while two steps are outstanding.
    ///
    /// # Errors
    /// Fails when the device thread ended, or inline work panicked.
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
                let (tasks, _) = device.as_ref().ok_or_else(thread_ended)?;
                tasks.send(Box::new(task)).map_err(|_| thread_ended())
            }
        }
    }

    /// Submits a task and waits for its answer. The task does not count as busy time.
    ///
    /// # Errors
    /// Fails when the device thread ended, or inline work panicked.
    pub(crate) fn ask<R: Send + 'static>(
        &mut self,
        task: impl FnOnce(&mut Worker) -> R + Send + 'static,
    ) -> Result<R> {
        match self {
            Self::Inline(worker) => {
                let answer = guard(AssertUnwindSafe(|| task(worker)));
                device_progress::DEVICE.step();
                answer
            }
            Self::Queued { .. } => {
                let (sender, answer) = channel();
                self.dispatch(move |worker| drop(sender.send(task(worker))))?;
                answer.recv().map_err(|_| thread_ended())
            }
        }
    }

    /// Waits until the device is at most [`STEPS_AHEAD`] steps behind. Call it after a step that the host does not wait for. The queue of the CPU
    /// device limits its tasks by itself.
    pub(crate) fn keep_pace(&mut self) -> Result<()> {
        match self {
            Self::Inline(worker) => guard(AssertUnwindSafe(|| worker.keep_pace()))?,
            Self::Queued { .. } => Ok(()),
        }
    }

    /// Takes a step whose batch was loaded, and returns its milliseconds and its loss. The step begins and ends with a sync; `between_tasks` adds
    /// one after each task. The loss is read after the clock has stopped.
    ///
    /// # Errors
    /// Fails when the device was lost or the device thread ended.
    pub(crate) fn bracketed_step(
        &mut self,
        tasks: PhaseTasks,
        between_tasks: bool,
    ) -> Result<(f64, f64)> {
        self.sync()?;
        let began = Instant::now();
        for task in tasks {
            self.submit(*task)?;
            if between_tasks {
                self.sync()?;
            }
        }
        self.sync()?;
        let ms = began.elapsed().as_secs_f64() * 1e3;
        Ok((ms, self.last_loss()?))
    }

    /// Waits for the loss of the latest step, and returns it; NaN if there was none.
    ///
    /// # Errors
    /// Fails when the device was lost or the device thread ended.
    pub(crate) fn last_loss(&mut self) -> Result<f64> {
        let losses = self.ask(Worker::losses)??;
        Ok(losses.last().copied().unwrap_or(f64::NAN))
    }

    /// Waits until all submitted work is done.
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

/// Runs tasks until one panics or the sender is dropped. A panic ends the thread, and the host's next call returns an error.
fn serve(mut worker: Worker, inbox: &Receiver<Task>) {
    while let Ok(task) = inbox.recv() {
        // Each task runs inside the pool, because handing parallel work over to the pool costs a tenth of a step at `tiny`.
        // The thread waits for tasks outside the pool, because a waiting device would occupy one of the pool's threads.
        let in_pool = || rayon::scope(|_| task(&mut worker));
        if catch_unwind(AssertUnwindSafe(in_pool)).is_err() {
            return;
        }
        device_progress::DEVICE.step();
    }
}

/// Runs `work` and turns a panic into an error with its text.
fn guard<R>(work: impl FnOnce() -> R) -> Result<R> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        if let Some(text) = panic.downcast_ref::<String>() {
            anyhow!("{text}")
        } else if let Some(text) = panic.downcast_ref::<&str>() {
            anyhow!("{text}")
        } else {
            anyhow!("a panic without text")
        }
    })
}

fn thread_ended() -> anyhow::Error {
    anyhow!("the device thread ended; the log says why")
}
