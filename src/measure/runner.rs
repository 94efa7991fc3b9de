//! An engine that measures one job after the other. It is started when the first job needs it, its stream is recorded
//! where that was asked for, and ctrl-c becomes `stop`.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::machine;
use crate::out::{Exit, ExitError, notice, usage};
use crate::record::RecordingWriter;
use protocol::config::RunConfig;
use protocol::handle::driver_noise::harmless;
use protocol::handle::{Client, ClientEvent, EngineCommand, EngineEnd, EngineTimeouts};
use protocol::{Command, Event, Finished, Hello, Pair, RunSpec, Slot, StreamLine};

/// How long an engine on this machine may stay silent after the first notice of it: a busy machine is waited for. A cut line is
/// waited for once more as long as until that notice.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the device of an engine that is alive may make no progress.
const DEVICE_TIMEOUT: Duration = Duration::from_secs(120);
/// How long an engine that is alive may bring its task no further, whatever else it says.
const TASK_TIMEOUT: Duration = Duration::from_secs(600);
/// When it is said that it will be given up.
const TASK_NOTICE: Duration = Duration::from_secs(120);
/// Steps beyond those asked for: warm-up and profiles.
const MORE_STEPS: u64 = 1000;
/// How long a stopped run may take to send its summary.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an engine may take to end when it is no longer needed; it may still be writing its caches.
const QUIT_TIMEOUT: Duration = Duration::from_secs(5);

/// What an engine is asked to do.
#[derive(Clone, Debug)]
pub enum EngineTask {
    Run(RunSpec),
    /// Time of `a` over time of `b`. With 0 `pairs` it goes on until the verdict is clear.
    Pair {
        a: RunSpec,
        b: RunSpec,
        pairs: u32,
    },
}

impl EngineTask {
    /// A run that belongs to no stage.
    pub fn run(variant: &str, config: &RunConfig, steps: u64) -> Self {
        Self::Run(RunSpec {
            steps: Some(steps),
            ..RunSpec::new(variant, config)
        })
    }

    /// A comparison of two variants, each with its name, that belong to no stage.
    pub fn pair(a: (&str, &RunConfig), b: (&str, &RunConfig), pairs: u32) -> Self {
        let (a, b) = (RunSpec::new(a.0, a.1), RunSpec::new(b.0, b.1));
        let b = RunSpec { slot: Slot::B, ..b };
        Self::Pair { a, b, pairs }
    }

    /// The same as part of a stage.
    #[must_use]
    pub fn of_stage(mut self, number: u32) -> Self {
        match &mut self {
            Self::Run(run) => run.stage = number,
            Self::Pair { a, b, .. } => (a.stage, b.stage) = (number, number),
        }
        self
    }

    /// The configurations that are in memory together.
    pub fn configs(&self) -> Vec<&RunConfig> {
        match self {
            Self::Run(run) => vec![&run.config],
            Self::Pair { a, b, .. } => vec![&a.config, &b.config],
        }
    }

    fn command(&self, device: &str) -> Command {
        let device = device.to_owned();
        match self.clone() {
            Self::Run(run) => Command::Start {
                device,
                run,
                request: 0,
            },
            Self::Pair { a, b, pairs } => Command::Pair {
                device,
                stage: if a.stage == b.stage { a.stage } else { 0 },
                a,
                b,
                pairs,
                request: 0,
            },
        }
    }
}

/// What came of one piece of work.
#[derive(Clone, Debug, Default)]
pub struct TaskResult {
    /// The summary; none where an interrupted engine did not send it.
    pub finished: Option<Finished>,
    /// The comparison, as far as it came.
    pub pair: Option<Pair>,
    /// Seconds from the engine's start to its first loss.
    pub first_loss_s: Option<f64>,
    pub interrupted: bool,
}

/// How far a task has come, by what no engine can repeat for ever.
struct TaskProgress {
    at: Instant,
    noticed: bool,
    /// The largest number of a step, of kernels compiled and of pairs.
    most: [u64; 3],
    /// Steps, and pairs, after which there is nothing more to do.
    limits: [u64; 2],
}

impl TaskProgress {
    fn begin(task: &EngineTask) -> Self {
        let (steps, pairs) = match task {
            EngineTask::Run(run) => (run.steps.unwrap_or(u64::MAX), 0),
            // The engine says how many there are at most.
            EngineTask::Pair { pairs: 0, .. } => (u64::MAX, u64::MAX),
            EngineTask::Pair { pairs, .. } => (u64::MAX, u64::from(*pairs)),
        };
        let more = |n: u64| n.saturating_mul(10).saturating_add(MORE_STEPS);
        Self {
            at: Instant::now(),
            noticed: false,
            most: [0; 3],
            limits: [more(steps), more(pairs)],
        }
    }

    fn note(&mut self, event: &Event) {
        let (which, number) = match event {
            Event::Step(step) => (0, step.step + 1),
            Event::Compiling { kernels, .. } => (1, u64::from(*kernels)),
            Event::Pair(pair) => {
                if pair.limit_pairs > 0 {
                    self.limits[1] = u64::from(pair.limit_pairs).saturating_add(MORE_STEPS);
                }
                (2, u64::from(pair.n))
            }
            _ => return,
        };
        if number > self.most[which] {
            self.most[which] = number;
            self.at = Instant::now();
        }
    }

    /// Why the engine is given up.
    fn overdue(&self, limit: Duration) -> Option<String> {
        let [steps, _, pairs] = self.most;
        if steps > self.limits[0] || pairs > self.limits[1] {
            return Some(
                "the engine goes on far beyond the steps it was asked for, so it was ended"
                    .to_owned(),
            );
        }
        let seconds = self.at.elapsed();
        (seconds > limit).then(|| {
            let seconds = seconds.as_secs();
            format!("the engine is alive, but came no step further in {seconds} s, so it was ended")
        })
    }
}

/// Takes a notice: something about the engine that is worth a sentence.
pub type NoticeHandler = Box<dyn FnMut(&str) + Send>;

pub struct Runner {
    command: EngineCommand,
    client: Option<Client>,
    recorder: Option<RecordingWriter>,
    interrupted: Arc<AtomicBool>,
    /// An interruption ends the engine, instead of asking it to stop and to send its summary.
    kill_at_once: bool,
    notify: NoticeHandler,
    hello: Option<Hello>,
    /// How long the device may make no progress.
    pub patience: Duration,
    /// How long it may stay silent until that is noticed.
    pub silence: Duration,
    /// How long an engine that is alive may bring its task no further.
    pub task_limit: Duration,
}

/// The engine command that `--engine` names, or this program's own.
pub fn engine_command(named: Option<&str>) -> Result<EngineCommand> {
    match named {
        None => EngineCommand::own(),
        Some(line) => EngineCommand::parse(line).map_err(|why| usage(format!("--engine: {why}"))),
    }
}

impl Runner {
    /// For a command: ctrl-c asks the engine to stop, notices go to stderr, the stream into the file `record`.
    pub fn new(command: EngineCommand, record: Option<&Path>) -> Result<Self> {
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            // The second one ends the process as usual; the engine follows when its input closes.
            signal_hook::flag::register_conditional_default(signal, Arc::clone(&interrupted))
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&interrupted)))
                .context("Failed to watch for ctrl-c")?;
        }
        let recorder = record
            .map(RecordingWriter::create)
            .transpose()
            .map_err(|error| usage(format!("--record: {error:#}")))?;
        Ok(Self {
            recorder,
            kill_at_once: false,
            ..Self::in_background(command, interrupted, Box::new(notice))
        })
    }

    /// For a screen: `stop` ends the engine at once, and notices go to `notify`.
    pub fn in_background(
        command: EngineCommand,
        stop: Arc<AtomicBool>,
        notify: NoticeHandler,
    ) -> Self {
        Self {
            command,
            client: None,
            recorder: None,
            interrupted: stop,
            kill_at_once: true,
            notify,
            hello: None,
            patience: DEVICE_TIMEOUT,
            silence: EngineTimeouts::default().silence,
            task_limit: TASK_TIMEOUT,
        }
    }

    /// What the engine said of itself, once one was started.
    pub fn hello(&self) -> Option<&Hello> {
        self.hello.as_ref()
    }

    /// Whether someone asked to end.
    pub fn interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Refuses work that does not fit into the memory of this machine, where the engine runs on it.
    pub fn check_memory(&self, device: &str, work: &EngineTask) -> Result<()> {
        if self.command.is_own() {
            machine::check_memory(device, &work.configs())
        } else {
            Ok(())
        }
    }

    /// Lets the engine end in its own time: the next work begins with a fresh one.
    pub fn restart(&mut self) {
        if let Some(mut client) = self.client.take()
            && self.kill_at_once
            && self.interrupted()
        {
            client.kill();
        }
    }

    /// Does one piece of work and hands every line of the stream to `hear`, as an event and as text.
    ///
    /// Errors are [`ExitError`]s where the engine refused the work, the device is not here, or the engine broke.
    pub fn measure(
        &mut self,
        device: &str,
        work: &EngineTask,
        mut hear: impl FnMut(&StreamLine, &str) -> Result<()>,
    ) -> Result<TaskResult> {
        self.check_memory(device, work)?;
        let mut found = TaskResult::default();
        if self.interrupted() {
            found.interrupted = true;
            return Ok(found);
        }
        let mut client = match self.client.take().filter(|client| !client.is_over()) {
            Some(client) => client,
            None => self.spawn()?,
        };
        client.send(work.command(device));
        let progress = TaskProgress::begin(work);
        let ended = self.listen(&mut client, progress, &mut found, &mut hear);
        self.client = Some(client);
        ended?;
        self.save()?;
        Ok(found)
    }

    fn save(&mut self) -> Result<()> {
        if let Some(recorder) = self.recorder.take() {
            (self.notify)(&recorder.finish()?.to_string());
        }
        Ok(())
    }

    /// Takes lines in until the summary, an interruption or a failure.
    fn listen(
        &mut self,
        client: &mut Client,
        mut progress: TaskProgress,
        found: &mut TaskResult,
        hear: &mut dyn FnMut(&StreamLine, &str) -> Result<()>,
    ) -> Result<()> {
        let failed = |text: String| {
            let exit = Exit::Failed;
            Err(ExitError { exit, text }.into())
        };
        let began = Instant::now();
        let mut silent_since: Option<Instant> = None;
        let mut stopped_at: Option<Instant> = None;
        let mut last_stray = None;
        loop {
            if self.interrupted() {
                found.interrupted = true;
                if self.kill_at_once {
                    client.kill();
                    return Ok(());
                }
                if stopped_at.is_none() {
                    stopped_at = Some(Instant::now());
                    client.send(Command::Stop);
                }
            }
            if stopped_at.is_some_and(|since| since.elapsed() > STOP_TIMEOUT) {
                (self.notify)("the engine did not stop in time and was ended");
                return Ok(());
            }
            let command = client.command();
            let (limit, text) = match command.is_own() {
                true => (
                    SILENCE_TIMEOUT,
                    "the engine stays silent and was ended".to_owned(),
                ),
                false => (
                    self.silence,
                    format!(
                        "nothing more comes from `{command}`: its connection is cut, or its machine is gone; see that it answers and run this again"
                    ),
                ),
            };
            if silent_since.is_some_and(|since| since.elapsed() > limit) {
                return failed(text);
            }
            if let Some(text) = progress.overdue(self.task_limit) {
                client.kill();
                return failed(text);
            }
            if !progress.noticed && progress.at.elapsed() > TASK_NOTICE {
                progress.noticed = true;
                let (so_far, limit) = (TASK_NOTICE.as_secs(), self.task_limit.as_secs());
                (self.notify)(&format!(
                    "no step for {so_far} s; after {limit} s the engine is given up"
                ));
            }
            let idle = client.idle().min(began.elapsed());
            if idle > self.patience && silent_since.is_none() {
                client.kill();
                let seconds = idle.as_secs();
                return failed(format!(
                    "the engine is alive, but its device made no progress for {seconds} s, so it was ended"
                ));
            }
            match client.next(Duration::from_millis(50)) {
                None | Some(ClientEvent::Awake) => {}
                Some(ClientEvent::Line(line, text)) => {
                    silent_since = None;
                    progress.note(&line.event);
                    if let Some(recorder) = &mut self.recorder {
                        recorder.add(&line, &text)?;
                    }
                    hear(&line, &text)?;
                    match &line.event {
                        Event::Hello(hello) => self.hello = Some(hello.clone()),
                        Event::Step(_) => {
                            found.first_loss_s.get_or_insert(line.t);
                        }
                        Event::Pair(pair) => found.pair = Some(pair.clone()),
                        Event::Finished(finished) => {
                            found.pair = finished.pair.clone().or(found.pair.take());
                            found.finished = Some((**finished).clone());
                            return Ok(());
                        }
                        Event::Failed(failed) => {
                            self.save()?;
                            return Err(ExitError::from(failed).into());
                        }
                        _ => {}
                    }
                }
                Some(ClientEvent::Stray(text)) => {
                    // Drivers repeat themselves, once for each adapter they look at. `doctor` lists the lines that
                    // are known to mean nothing, with the reason.
                    if last_stray.as_ref() != Some(&text) && harmless(&text).is_none() {
                        (self.notify)(&format!("engine: {text}"));
                    }
                    last_stray = Some(text);
                }
                Some(ClientEvent::Malformed { line, why }) => (self.notify)(&format!(
                    "the engine wrote a line that is not an event ({why}): {line}"
                )),
                Some(ClientEvent::Silent(after)) => {
                    let seconds = after.as_secs_f64();
                    (self.notify)(&format!(
                        "nothing from the engine for {seconds:.0} s; waiting"
                    ));
                    silent_since = Some(Instant::now());
                }
                Some(ClientEvent::Over(over)) => {
                    let exit = match over {
                        EngineEnd::Refused(_) => Exit::Usage,
                        EngineEnd::Ended(_) => Exit::Failed,
                    };
                    let text = over.reason().to_owned();
                    return Err(ExitError { exit, text }.into());
                }
            }
        }
    }

    fn spawn(&self) -> Result<Client> {
        let limits = EngineTimeouts {
            silence: self.silence,
            shutdown: QUIT_TIMEOUT,
            ..EngineTimeouts::default()
        };
        let client = Client::spawn_within(self.command.clone(), limits);
        client.map_err(|error| usage(format!("{error:#}")))
    }
}
