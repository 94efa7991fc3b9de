//! Records what the lanes of one workgroup do while a shader runs.

use super::super::{
    Access, AccessKind, Arrival, Buffer, Finding, FindingKind, Launch, Location, OUTSIDE, Observer,
    RunError, Shader, Space, StatementStart,
};
use super::{WorkgroupAccess, WorkgroupFault, WorkgroupRun, WorkgroupStep, lanes_in_words};

/// The largest number of recorded steps.
const MOST_STEPS: usize = 20_000;
/// The largest number of elements that lanes access in the recorded steps.
const MOST_TOUCHED: usize = 2_000_000;

/// Runs the shader and keeps what one workgroup did: the first with a fault, or the first of all if none has one. `text` is the
/// source as a person wrote it, and `line` tells which of its lines a place in the shader's source stands for. The result is `None`
/// if no workgroup ran.
///
/// # Errors
/// When the shader does not run.
pub fn record(
    shader: &Shader,
    launch: &Launch<'_>,
    buffers: &mut [Buffer],
    text: &str,
    line: &dyn Fn(&Location) -> u32,
) -> Result<Option<WorkgroupRun>, RunError> {
    let mut entries = shader.entry_points();
    let entry = entries.find(|(name, _)| launch.entry.is_none_or(|wanted| wanted == *name));
    let [x, y, z] = launch.groups;
    let mut recorder = Recorder {
        line,
        x_and_y: [x, y],
        blank: WorkgroupRun {
            text: text.to_owned(),
            groups: x.saturating_mul(y).saturating_mul(z),
            size: entry.map_or([1; 3], |(_, size)| size),
            ..WorkgroupRun::default()
        },
        now: None,
        kept: None,
        seen: Vec::new(),
        statements: 0,
        touched: 0,
        pending: Vec::new(),
    };
    shader.run(launch, buffers, &mut recorder)?;
    recorder.keep();
    Ok(recorder.kept)
}

/// Records each workgroup, and keeps the first one with a fault, or the first of all if none has one.
struct Recorder<'a> {
    /// Returns the line of the shown text for a place in the shader's source.
    line: &'a dyn Fn(&Location) -> u32,
    /// The number of workgroups along x and y.
    x_and_y: [u32; 2],
    /// A workgroup's run before its first step.
    blank: WorkgroupRun,
    /// The workgroup that runs, if it is recorded.
    now: Option<WorkgroupRun>,
    kept: Option<WorkgroupRun>,
    /// The accesses of the present step: their places in the source, their kinds and variables.
    seen: Vec<(usize, AccessKind, String)>,
    /// The number of statements of the present step.
    statements: usize,
    /// The number of elements that lanes have accessed in this workgroup.
    touched: usize,
    /// Findings whose access or barrier has not been observed yet.
    pending: Vec<Finding>,
}

impl Recorder<'_> {
    /// Begins a step.
    fn push(&mut self, line: u32, depth: usize, lanes: &[u32]) {
        (self.seen, self.statements) = (Vec::new(), 0);
        let full = self.touched >= MOST_TOUCHED;
        let Some(run) = &mut self.now else { return };
        run.cut |= full || run.steps.len() >= MOST_STEPS;
        if !run.cut {
            run.steps.push(WorkgroupStep {
                line,
                depth,
                lanes: lanes.iter().map(|lane| *lane as u16).collect(),
                ..WorkgroupStep::default()
            });
        }
    }

    /// Returns the present step, if it is recorded.
    fn last(&mut self) -> Option<&mut WorkgroupStep> {
        let run = self.now.as_mut().filter(|run| !run.cut)?;
        run.steps.last_mut()
    }

    /// Adds the pending findings to the present step, as faults about the memory `space`.
    fn settle(&mut self, space: Space) {
        let mut found = std::mem::take(&mut self.pending);
        found.retain(|finding| finding.kind.is_fault(space));
        for finding in found {
            let fault = self.fault(&finding);
            if let (Some(run), Some(fault)) = (&mut self.now, fault) {
                run.faults.push(fault);
            }
        }
    }

    /// Returns a finding as a fault of the present step.
    fn fault(&self, finding: &Finding) -> Option<WorkgroupFault> {
        let run = self.now.as_ref()?;
        let step = run.steps.len().checked_sub(1)?;
        let lane = finding.invocation.lane as u16;
        let lanes: Vec<u16> = finding
            .invocations
            .iter()
            .map(|invocation| invocation.lane as u16)
            .collect();
        let line = (self.line)(&finding.location);
        let what = finding.element.as_deref().unwrap_or("memory");
        let name = finding.variable.as_ref();
        let accesses = |step: usize| {
            let all = run.steps[step].accesses.iter();
            all.filter(move |access| Some(&access.variable) == name)
        };
        // A finding belongs to the last observed access.
        let here = accesses(step).next_back().and_then(|access| {
            let mut elements = access.touched.iter();
            elements.find(|(by, _)| *by == lane).map(|(_, byte)| *byte)
        });
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
            let (from, by) = ((self.line)(&other.location), other.invocation.lane as u16);
            let own = other.invocation.workgroup == finding.invocation.workgroup;
            let mut earlier = (0..=step).rev().filter(|_| own);
            let earlier = earlier.find(|at| {
                let touched = accesses(*at).flat_map(|access| &access.touched);
                let mut own = touched.filter(|element| element.0 == by);
                run.steps[*at].line == from && own.any(|element| Some(element.1) == here)
            });
            fault.other = earlier.map(|at| (at, by));
            let whose = if own {
                String::new()
            } else {
                format!(" of workgroup {}", self.number(other.invocation.workgroup))
            };
            let at = |step: Option<usize>| {
                step.map_or_else(String::new, |step| format!("step {}, ", step + 1))
            };
            fault.text.push(format!(
                "  {}line {from}: lane {by}{whose} {} it",
                at(earlier),
                other.access.verb()
            ));
            fault.text.push(format!(
                "  {}line {line}: lane {lane} {} it",
                at(Some(step)),
                finding.access.map_or("touches", AccessKind::verb)
            ));
        }
        Some(fault)
    }

    /// Returns the number of a workgroup, from 0.
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
        if self.kept.as_ref().is_some_and(|run| !run.faults.is_empty()) {
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
        let (line, depth) = ((self.line)(&step.location), step.depth);
        let mut lanes = step.lanes.iter().map(|lane| *lane as u16);
        // Some lanes may leave a line early, such as the head of a loop.
        let goes_on = self.last().is_some_and(|last| {
            last.barrier.is_none()
                && (last.line, last.depth) == (line, depth)
                && lanes.all(|lane| last.lanes.contains(&lane))
        });
        if !goes_on {
            self.push(line, depth, step.lanes);
        }
        self.statements += 1;
    }

    fn access(&mut self, access: &Access<'_>) {
        if self.now.is_none() {
            return;
        }
        let inside = access.lanes.iter().filter_map(|lane| {
            let byte = *access.offsets.get(*lane as usize)?;
            (byte != OUTSIDE).then_some((*lane as u16, byte))
        });
        let touched: Vec<(u16, u32)> = inside.collect();
        let place = access.location.span.start;
        let known = (place, access.kind, access.variable.to_owned());
        if let Some(at) = self.seen.iter().position(|seen| *seen == known) {
            let Some(step) = self.last() else { return };
            let elements = &mut step.accesses[at].touched;
            // Other lanes make the same access, since subgroups run one after the other; the same lanes again mean a loop on one line.
            let is_new = |lane: u16| elements.iter().all(|(by, _)| *by != lane);
            if touched.iter().all(|(lane, _)| is_new(*lane)) {
                elements.extend(touched);
                return self.settle(access.space);
            }
            let (line, depth) = (step.line, step.depth);
            self.push(line, depth, access.lanes);
        }
        let end = |element: Option<&(u16, u32)>| match element {
            Some((lane, _)) => access.path(u32::from(*lane)),
            None => String::new(),
        };
        let ends = [
            end(touched.iter().min_by_key(|element| element.1)),
            end(touched.iter().max_by_key(|element| element.1)),
        ];
        self.touched += touched.len();
        if let Some(step) = self.last() {
            step.accesses.push(WorkgroupAccess {
                kind: access.kind,
                variable: access.variable.to_owned(),
                in_workgroup: access.space == Space::Workgroup,
                bytes: access.bytes,
                touched,
                ends,
            });
            self.seen.push(known);
        }
        self.settle(access.space);
    }

    fn barrier(&mut self, arrival: &Arrival<'_>) {
        let (line, alone) = ((self.line)(&arrival.location), self.statements <= 1);
        let Some(last) = self.last() else { return };
        let depth = last.depth;
        if !alone || last.line != line {
            self.push(line, depth, arrival.lanes);
        }
        if let Some(step) = self.last() {
            let missing = arrival.missing.iter().map(|lane| *lane as u16);
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
