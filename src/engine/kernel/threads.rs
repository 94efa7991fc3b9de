//! Runs a learner's kernel on the host and records what the lanes of one workgroup do, for the threads view. It needs no device.
//! Shapes and inputs are the same as in the check.

use std::sync::mpsc::{Receiver, channel};
use std::thread::Builder;

use super::check::STACK;
use super::interpret::is_fault;
use super::trial::KernelTrial;
use super::validate::validate;
use crate::lockstep::{
    Access, AccessKind, Arrival, Finding, FindingKind, Launch, LaunchLimits, Location, OUTSIDE,
    Observer, Shader, Space, StatementStart,
};
use crate::protocol::{KernelJob, KernelShape, with_names};
use crate::template::FilledTemplate;
use crate::threads::{
    AccessVerb, ThreadsWanted, WorkgroupAccess, WorkgroupFault, WorkgroupRun, WorkgroupStep,
    lanes_in_words,
};

/// Most steps that are recorded, and most elements that lanes access in them.
const MOST_STEPS: usize = 20_000;
const MOST_TOUCHED: usize = 2_000_000;
/// Limits of the run: the threads view has to appear within seconds.
const LIMITS: LaunchLimits = LaunchLimits {
    steps_per_workgroup: 1_000_000,
    steps: 20_000_000,
    memory: 256 << 20,
    findings: 100,
};
/// The run of a workgroup, or why there is none.
pub type WorkgroupResult = Result<WorkgroupRun, String>;

/// Starts the run on a thread whose stack is large enough for deep expressions. A closed receiver means that the thread panicked.
///
/// # Errors
/// When the thread cannot be started.
pub fn begin(job: KernelJob, wanted: ThreadsWanted) -> std::io::Result<Receiver<WorkgroupResult>> {
    let (outbox, inbox) = channel();
    let work = move || {
        // The receiver may be closed.
        let _ = outbox.send(record(&job, &wanted));
    };
    let thread = Builder::new().name("threads".into()).stack_size(STACK);
    thread.spawn(work)?;
    Ok(inbox)
}

fn record(job: &KernelJob, wanted: &ThreadsWanted) -> WorkgroupResult {
    let file = job.files.get(wanted.file).ok_or("there is no such file")?;
    // The last of several shapes is for timing: it is too large to view.
    let small = match job.shapes.split_last() {
        Some((_, small)) if !small.is_empty() => small,
        _ => &job.shapes[..],
    };
    let is_wanted = |shape: &&KernelShape| Some(&shape.label) == wanted.shape.as_ref();
    let small = small.iter();
    let small: Vec<&KernelShape> = small.filter(|it| !it.is_drawn() || is_wanted(it)).collect();
    let shapes: Vec<String> = small.iter().map(|shape| shape.label.clone()).collect();
    let tried = match small.iter().find(|it| is_wanted(it)) {
        Some(shape) => vec![(*shape).clone()],
        None => small.into_iter().cloned().collect(),
    };
    let checked = match &file.unreadable {
        Some(error) => Err(error.clone()),
        None => validate(&file.text, &file.spec, &tried),
    };
    let checked = checked.map_err(|it| match it.line {
        0 => it.message,
        line => format!("line {line}: {}", it.message),
    })?;
    let mut best: Option<WorkgroupRun> = None;
    for (shape, text) in tried.iter().zip(&checked.texts) {
        let blank = WorkgroupRun {
            shapes: shapes.clone(),
            size: checked.facts.workgroup,
            ..WorkgroupRun::default()
        };
        let trial = KernelTrial {
            file,
            shape,
            text,
            values: shape.values.first().copied(),
            seed: job.seed,
        };
        let run = at_shape(&trial, wanted.group, blank)?;
        if !run.faults.is_empty() {
            return Ok(run);
        }
        // Best to view: several workgroups, all lanes active, and few steps.
        let rank = |it: &WorkgroupRun| {
            let accesses = it.steps.iter().flat_map(|step| &step.accesses);
            let buffers = accesses.filter(|access| !access.in_workgroup);
            let widest = buffers.map(|access| access.touched.len()).max();
            let idle = it.lanes().saturating_sub(widest.unwrap_or(0));
            (it.groups < 2, idle, it.steps.len())
        };
        if best.as_ref().is_none_or(|best| rank(&run) < rank(best)) {
            best = Some(run);
        }
    }
    best.ok_or_else(|| "the exercise has no shape".to_owned())
}

fn at_shape(trial: &KernelTrial<'_>, group: Option<u32>, blank: WorkgroupRun) -> WorkgroupResult {
    let (file, text) = (trial.file, trial.text);
    let inputs = trial.inputs().map_err(|why| format!("{why:?}"))?;
    let program = Shader::parse(&text.filled.text).map_err(|why| why.to_string())?;
    let [x, y, z] = text.grid;
    let mut recorder = Recorder {
        filled: &text.filled,
        starts: starts(&file.text),
        x_and_y: [x, y],
        blank: WorkgroupRun {
            file: file.name.clone(),
            text: file.text.clone(),
            shape: trial.shape.label.clone(),
            sizes: with_names(&trial.shape.sizes),
            groups: x.saturating_mul(y).saturating_mul(z),
            ..blank
        },
        now: None,
        kept: None,
        seen: Vec::new(),
        statements: 0,
        touched: 0,
        pending: Vec::new(),
    };
    let (across, down) = (x.max(1), y.max(1));
    let launch = Launch {
        only: group.map(|it| [it % across, it / across % down, it / across / down]),
        limits: LIMITS,
        ..Launch::new(text.grid)
    };
    let mut buffers = trial.host_buffers(&inputs, 0);
    let ended = program.run(&launch, &mut buffers, &mut recorder);
    recorder.keep();
    ended.map_err(|why| why.to_string())?;
    recorder.kept.ok_or_else(|| "no workgroup ran".to_owned())
}

/// Where each line begins.
fn starts(text: &str) -> Vec<usize> {
    let others = text.match_indices('\n').map(|(at, _)| at + 1);
    std::iter::once(0).chain(others).collect()
}

/// Keeps the steps of the first workgroup with a fault, or of the first workgroup if none has one.
struct Recorder<'a> {
    filled: &'a FilledTemplate,
    /// Where each line of the learner's file begins.
    starts: Vec<usize>,
    x_and_y: [u32; 2],
    blank: WorkgroupRun,
    now: Option<WorkgroupRun>,
    kept: Option<WorkgroupRun>,
    /// Accesses of the present step: place in the text, kind, and variable.
    seen: Vec<(usize, AccessKind, String)>,
    /// Statements of the present step.
    statements: usize,
    touched: usize,
    /// Findings whose access or barrier has not been observed yet.
    pending: Vec<Finding>,
}

impl Recorder<'_> {
    fn line(&self, location: &Location) -> u32 {
        let at = self.filled.origin(&location.span).start;
        self.starts.partition_point(|start| *start <= at) as u32
    }

    /// Begins a step.
    fn push(&mut self, step: WorkgroupStep) {
        (self.seen, self.statements) = (Vec::new(), 0);
        let full = self.touched >= MOST_TOUCHED;
        let Some(run) = &mut self.now else { return };
        run.cut |= full || run.steps.len() >= MOST_STEPS;
        if !run.cut {
            run.steps.push(step);
        }
    }

    fn last(&mut self) -> Option<&mut WorkgroupStep> {
        let run = self.now.as_mut().filter(|run| !run.cut)?;
        run.steps.last_mut()
    }

    /// Adds the pending findings to the present step, as faults about the memory `space`.
    fn settle(&mut self, space: Space) {
        let mut found = std::mem::take(&mut self.pending);
        found.retain(|it| is_fault(it.kind, space));
        for finding in found {
            let fault = self.fault(&finding);
            if let (Some(run), Some(fault)) = (&mut self.now, fault) {
                run.faults.push(fault);
            }
        }
    }

    fn fault(&self, finding: &Finding) -> Option<WorkgroupFault> {
        let run = self.now.as_ref()?;
        let step = run.steps.len().checked_sub(1)?;
        let lane = finding.invocation.lane as u8;
        let lanes: Vec<u8> = finding.invocations.iter().map(|it| it.lane as u8).collect();
        let line = self.line(&finding.location);
        let what = finding.element.as_deref().unwrap_or("memory");
        let name = finding.variable.as_ref();
        let accesses = |step: usize| {
            let all = run.steps[step].accesses.iter();
            all.filter(move |it| Some(&it.variable) == name)
        };
        // A finding belongs to the last observed access.
        let by_lane = |it: &WorkgroupAccess| it.touched.iter().find(|it| it.0 == lane).copied();
        let here = accesses(step).next_back().and_then(by_lane);
        let here = here.map(|(_, byte)| byte);
        let mut fault = WorkgroupFault {
            step,
            lanes: if lanes.is_empty() { vec![lane] } else { lanes },
            place: name.cloned().zip(here),
            ..WorkgroupFault::default()
        };
        let said = finding.to_string();
        let said = said.split_once(": ").map_or(&*said, |(_, said)| said);
        fault.text.push(match finding.kind {
            FindingKind::Race => format!("race over {what}: no barrier orders these two"),
            FindingKind::DivergentBarrier => {
                let who = lanes_in_words(&fault.lanes);
                format!("{who} never reach this barrier, and the others wait forever")
            }
            _ => said.to_owned(),
        });
        if let (FindingKind::Race, Some(other)) = (finding.kind, &finding.other) {
            let (from, by) = (self.line(&other.location), other.invocation.lane as u8);
            let own = other.invocation.workgroup == finding.invocation.workgroup;
            let mut earlier = (0..=step).rev().filter(|_| own);
            let earlier = earlier.find(|at| {
                let touched = accesses(*at).flat_map(|it| &it.touched);
                let mut own = touched.filter(|it| it.0 == by);
                run.steps[*at].line == from && own.any(|it| Some(it.1) == here)
            });
            fault.other = earlier.map(|at| (at, by));
            let verb = |kind: AccessKind| match kind.is_write() {
                true => "writes",
                false => "reads",
            };
            let whose = match own {
                true => String::new(),
                false => format!(" of workgroup {}", self.number(other.invocation.workgroup)),
            };
            let at = |step: Option<usize>| {
                step.map_or_else(String::new, |it| format!("step {}, ", it + 1))
            };
            fault.text.push(format!(
                "  {}line {from}: lane {by}{whose} {} it",
                at(earlier),
                verb(other.access)
            ));
            fault.text.push(format!(
                "  {}line {line}: lane {lane} {} it",
                at(Some(step)),
                finding.access.map_or("touches", verb)
            ));
        }
        Some(fault)
    }

    fn number(&self, [x, y, z]: [u32; 3]) -> u32 {
        let [across, down] = self.x_and_y;
        x + across * (y + down * z)
    }

    /// Ends a workgroup.
    fn keep(&mut self) {
        self.settle(Space::Workgroup);
        if let Some(run) = self.now.take()
            && (self.kept.is_none() || !run.faults.is_empty())
        {
            self.kept = Some(run);
        }
    }
}

impl Observer for Recorder<'_> {
    fn workgroup_start(&mut self, id: [u32; 3], _: u32) {
        if self.kept.as_ref().is_some_and(|it| !it.faults.is_empty()) {
            return;
        }
        self.touched = 0;
        self.now = Some(WorkgroupRun {
            group: self.number(id),
            ..self.blank.clone()
        });
    }

    fn workgroup_end(&mut self, _: [u32; 3]) {
        self.keep();
    }

    fn statement(&mut self, step: &StatementStart<'_>) {
        if self.now.is_none() {
            return;
        }
        self.settle(Space::Workgroup);
        let (line, depth) = (self.line(&step.location), step.depth);
        let lanes = step.lanes.iter().map(|lane| *lane as u8);
        // Some lanes may leave a line early, such as the head of a loop.
        let goes_on = self.last().is_some_and(|last| {
            last.barrier.is_none()
                && (last.line, last.depth) == (line, depth)
                && lanes
                    .clone()
                    .all(|it| last.lanes.binary_search(&it).is_ok())
        });
        if !goes_on {
            self.push(WorkgroupStep {
                line,
                depth,
                lanes: lanes.collect(),
                ..WorkgroupStep::default()
            });
        }
        self.statements += 1;
    }

    fn access(&mut self, access: &Access<'_>) {
        if self.now.is_none() {
            return;
        }
        let inside = access.lanes.iter().filter_map(|lane| {
            let byte = *access.offsets.get(*lane as usize)?;
            (byte != OUTSIDE).then_some((*lane as u8, byte))
        });
        let touched: Vec<(u8, u32)> = inside.collect();
        let place = access.location.span.start;
        let same = |it: &(usize, AccessKind, String)| {
            it.0 == place && it.1 == access.kind && it.2 == access.variable
        };
        if let Some(at) = self.seen.iter().position(same) {
            let Some(step) = self.last() else { return };
            let known = &mut step.accesses[at].touched;
            // Other lanes make the same access, since subgroups run one after the other; the same lanes again mean a loop on one line.
            if touched.iter().all(|it| known.iter().all(|by| by.0 != it.0)) {
                known.extend(touched);
                return self.settle(access.space);
            }
            let (line, depth) = (step.line, step.depth);
            self.push(WorkgroupStep {
                line,
                depth,
                lanes: access.lanes.iter().map(|lane| *lane as u8).collect(),
                ..WorkgroupStep::default()
            });
        }
        let end = |it: Option<&(u8, u32)>| {
            it.map_or_else(String::new, |(lane, _)| access.path(u32::from(*lane)))
        };
        let ends = [
            end(touched.iter().min_by_key(|it| it.1)),
            end(touched.iter().max_by_key(|it| it.1)),
        ];
        self.touched += touched.len();
        if let Some(step) = self.last() {
            step.accesses.push(WorkgroupAccess {
                verb: match access.kind {
                    AccessKind::Load | AccessKind::AtomicLoad => AccessVerb::Read,
                    AccessKind::Store | AccessKind::AtomicStore => AccessVerb::Write,
                    AccessKind::Atomic => AccessVerb::Update,
                },
                variable: access.variable.to_owned(),
                in_workgroup: access.space == Space::Workgroup,
                bytes: access.bytes,
                touched,
                ends,
            });
            let variable = access.variable.to_owned();
            self.seen.push((place, access.kind, variable));
        }
        self.settle(access.space);
    }

    fn barrier(&mut self, arrival: &Arrival<'_>) {
        let (line, alone) = (self.line(&arrival.location), self.statements <= 1);
        let Some(last) = self.last() else { return };
        let depth = last.depth;
        if !alone || last.line != line {
            self.push(WorkgroupStep {
                line,
                depth,
                lanes: arrival.lanes.iter().map(|lane| *lane as u8).collect(),
                ..WorkgroupStep::default()
            });
        }
        if let Some(step) = self.last() {
            let missing = arrival.missing.iter().map(|lane| *lane as u8);
            step.barrier = Some(missing.collect());
        }
        self.settle(Space::Workgroup);
    }

    fn finding(&mut self, finding: &Finding) {
        if self.now.is_some() {
            self.pending.push(finding.clone());
        }
    }
}
