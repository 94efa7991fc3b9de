//! The parent's side of kernel checks. They run in a separate engine process, and training continues whatever a kernel does.
//! Every job is answered by exactly one report, even if that process ends, hangs or cannot be started.

use std::time::{Duration, Instant};

use protocol::handle::{Client, ClientEvent, EngineCommand, EngineEnd};
use protocol::{Command, Event, KernelJob, KernelProgress, KernelReport};

/// Longest wait for news of a check; the process itself gives up single launches much earlier.
const CHECK_TIMEOUT: Duration = Duration::from_secs(180);

/// Checks kernels in a separate process, one job after the other.
#[derive(Debug)]
pub struct Checker {
    command: EngineCommand,
    client: Option<Client>,
    /// The present job, or the last one.
    job: KernelJob,
    /// When the last news of the check in progress came; `None` if there is no check.
    running: Option<Instant>,
    /// An answer that needs no process.
    ready: Option<KernelReport>,
    last_id: u64,
    /// Progress that `news` has not returned yet.
    news: Option<KernelProgress>,
}

impl Checker {
    /// Starts no process yet. `command` is the one that started the training engine.
    pub fn new(command: EngineCommand) -> Self {
        Self {
            command,
            client: None,
            job: KernelJob::default(),
            running: None,
            ready: None,
            last_id: 0,
            news: None,
        }
    }

    /// Begins a check on `device` and returns the id of its report. A check in progress is given up, because the file was saved again.
    pub fn start(&mut self, device: &str, mut job: KernelJob) -> u64 {
        self.last_id += 1;
        job.id = self.last_id;
        (self.ready, self.news) = (None, None);
        if self.running.take().is_some() || self.client.as_ref().is_some_and(Client::is_over) {
            self.end();
        }
        let client = match self.client.take() {
            Some(client) => Ok(client),
            None => Client::spawn(self.command.clone()),
        };
        match client {
            Ok(mut client) => {
                client.send(Command::CheckKernel {
                    device: device.to_owned(),
                    job: Box::new(job.clone()),
                });
                self.client = Some(client);
                self.running = Some(Instant::now());
            }
            Err(error) => {
                let why =
                    format!("the process that checks kernels could not be started: {error:#}");
                self.ready = Some(job.failed(why));
            }
        }
        self.job = job;
        self.last_id
    }

    /// The present job, or the last one.
    pub fn job(&self) -> &KernelJob {
        &self.job
    }

    /// Whether a report is still to come.
    pub fn is_busy(&self) -> bool {
        self.running.is_some() || self.ready.is_some()
    }

    /// Progress of the check, if it is new.
    pub fn news(&mut self) -> Option<KernelProgress> {
        self.news.take()
    }

    /// The report, if it comes within `wait`.
    pub fn poll(&mut self, wait: Duration) -> Option<KernelReport> {
        if let Some(report) = self.ready.take() {
            return Some(report);
        }
        let began = Instant::now();
        while let Some(since) = self.running {
            let id = self.job.id;
            let left = wait.saturating_sub(began.elapsed());
            let answer = match self.client.as_mut()?.next(left) {
                Some(ClientEvent::Line(line, _)) => match line.event {
                    Event::KernelChecked { report } if report.id == id => {
                        if report.restart {
                            self.end();
                        }
                        self.running = None;
                        return Some(*report);
                    }
                    Event::KernelChecking { progress } if progress.id == id => {
                        self.news = Some(*progress);
                        self.running = Some(Instant::now());
                        None
                    }
                    Event::Failed(failed) => Some(format!(
                        "the process that checks kernels refused: {}",
                        failed.reason
                    )),
                    _ => None,
                },
                // A separate thread sends the heartbeats: a silent process has stopped as a whole.
                Some(ClientEvent::Silent(since)) => Some(format!(
                    "the process that checks kernels has been silent for {:.0} s",
                    since.as_secs_f64()
                )),
                Some(ClientEvent::Over(EngineEnd::Ended(why) | EngineEnd::Refused(why))) => {
                    Some(format!("the process that checks kernels ended: {why}"))
                }
                _ => None,
            };
            let late = since.elapsed() > CHECK_TIMEOUT;
            let no_answer = || format!("no answer within {} s", CHECK_TIMEOUT.as_secs());
            let answer = answer.or_else(|| late.then(no_answer));
            if let Some(why) = answer {
                self.end();
                self.running = None;
                return Some(KernelReport {
                    restart: true,
                    ..self.job.failed(why)
                });
            }
            if began.elapsed() >= wait {
                return None;
            }
        }
        None
    }

    /// Checks and waits.
    pub fn check(&mut self, device: &str, job: KernelJob) -> KernelReport {
        self.check_with_progress(device, job, |_, _| ())
    }

    /// As `check`, and reports its progress.
    pub fn check_with_progress(
        &mut self,
        device: &str,
        job: KernelJob,
        tell: impl Fn(&KernelJob, &KernelProgress),
    ) -> KernelReport {
        self.start(device, job);
        loop {
            if let Some(report) = self.poll(Duration::from_millis(200)) {
                return report;
            }
            if let Some(progress) = self.news() {
                tell(&self.job, &progress);
            }
        }
    }

    /// Ends the process at once; the next check starts another.
    pub fn end(&mut self) {
        if let Some(mut client) = self.client.take() {
            client.kill();
        }
    }
}
