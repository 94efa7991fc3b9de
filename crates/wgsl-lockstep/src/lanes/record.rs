//! Records what the lanes of one workgroup do while a shader runs.

use super::super::{
    Access, AccessKind, Arrival, Buffer, Finding, FindingKind, Launch, Location, OUTSIDE, Observer,
    OtherAccess, RunError, Shader, Space, StatementStart,
};
use super::{WorkgroupAccess, WorkgroupFault, WorkgroupRun, WorkgroupStep, lanes_in_words};

/// The largest number of recorded steps.
const MOST_STEPS: usize = 20_000;
/// The largest number of elements that lanes access in the recorded steps.
const MOST_TOUCHED: usize = 2_000_000;

/// Runs the shader and returns the run of one workgroup: of the first with a fault, or of the first of all if none has a fault. `text` is
/// the source as a person wrote it, and `line` returns the line of this text for a location in the shader's source. The result is
/// `None` if no workgroup ran.
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

/// Records each workgroup, and keeps the first one with a fault, or the first of all if none has a fault.
struct Recorder<'a> {
    /// Returns the line of the shown text for a location in the shader's source.
    line: &'a dyn Fn(&Location) -> u32,
    /// The number of workgroups along x and y.
    x_and_y: [u32; 2],
    /// The run of a workgroup before its first step.
    blank: WorkgroupRun,
    /// The workgroup that runs now, if it is recorded.
    now: Option<WorkgroupRun>,
    /// The workgroup that is returned unless one with a fault follows.
    kept: Option<WorkgroupRun>,
    /// For each access of the present step: the first byte of its span, its kind and its variable.
    seen: Vec<(usize, AccessKind, String)>,
    /// The number of statements of the present step.
    statements: usize,
    /// The number of elements that lanes have accessed in this workgroup.
    touched: usize,
    /// Findings whose access or barrier has not been observed yet, since a finding is reported first.
    pending: Vec<Finding>,
}

impl Recorder<'_> {
    /// Begins a step.
    fn begin_step(&mut self, line: u32, depth: usize, lanes: &[u32]) {
        self.seen.clear();
        self.statements = 0;
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
    fn present_step(&mut self) -> Option<&mut WorkgroupStep> {
        let run = self.now.as_mut().filter(|run| !run.cut)?;
        run.steps.last_mut()
    }

    /// Adds the pending findings to the present step, as faults about the memory `space`.
    fn add_pending(&mut self, space: Space) {
        for finding in std::mem::take(&mut self.pending) {
            if finding.kind.is_fault(space)
                && let Some(fault) = self.fault(&finding)
                && let Some(run) = &mut self.now
            {
                run.faults.push(fault);
            }
        }
    }

    /// Returns a finding as a fault of the present step; `None` if no step is recorded.
    fn fault(&self, finding: &Finding) -> Option<WorkgroupFault> {
        let run = self.now.as_ref()?;
        let step = run.steps.len().checked_sub(1)?;
        let lane = finding.invocation.lane as u16;
        let lanes = match &finding.invocations[..] {
            [] => vec![lane],
            all => all
                .iter()
                .map(|invocation| invocation.lane as u16)
                .collect(),
        };
        let name = finding.variable.as_ref();
        // A finding belongs to the last observed access.
        let last = accesses(&run.steps[step], name).next_back();
        let mut touched = last.into_iter().flat_map(|access| &access.touched);
        let element = touched.find(|(other, _)| *other == lane);
        let byte = element.map(|(_, byte)| *byte);
        let text = match finding.kind {
            FindingKind::Race => {
                let element = finding.element.as_deref().unwrap_or("memory");
                format!("race over {element}: no barrier orders these two")
            }
            FindingKind::DivergentBarrier => {
                let lanes = lanes_in_words(&lanes);
                format!("{lanes} never reach this barrier, and the others wait forever")
            }
            _ => {
                let sentence = finding.to_string();
                match sentence.split_once(": ") {
                    Some((_, without_line)) => without_line.to_owned(),
                    None => sentence,
                }
            }
        };
        let mut fault = WorkgroupFault {
            step,
            lanes,
            place: name.cloned().zip(byte),
            other: None,
            text: vec![text],
        };
        if let (FindingKind::Race, Some(other)) = (finding.kind, &finding.other) {
            self.add_race(run, finding, other, &mut fault);
        }
        Some(fault)
    }

    /// Adds the two accesses of a race to a fault.
    fn add_race(
        &self,
        run: &WorkgroupRun,
        finding: &Finding,
        other: &OtherAccess,
        fault: &mut WorkgroupFault,
    ) {
        let other_line = (self.line)(&other.location);
        let other_lane = other.invocation.lane as u16;
        let byte = fault.place.as_ref().map(|(_, byte)| *byte);
        let is_same_workgroup = other.invocation.workgroup == finding.invocation.workgroup;
        let earlier = (0..=fault.step).rev().find(|index| {
            let step = &run.steps[*index];
            let mut elements =
                accesses(step, finding.variable.as_ref()).flat_map(|access| &access.touched);
            is_same_workgroup
                && step.line == other_line
                && elements.any(|(lane, first)| *lane == other_lane && Some(*first) == byte)
        });
        fault.other = earlier.map(|step| (step, other_lane));
        let step_of = |step: Option<usize>| {
            step.map_or_else(String::new, |step| format!("step {}, ", step + 1))
        };
        let group = if is_same_workgroup {
            String::new()
        } else {
            format!(" of workgroup {}", self.number(other.invocation.workgroup))
        };
        fault.text.push(format!(
            "  {}line {other_line}: lane {other_lane}{group} {} it",
            step_of(earlier),
            other.access.verb()
        ));
        fault.text.push(format!(
            "  {}line {}: lane {} {} it",
            step_of(Some(fault.step)),
            (self.line)(&finding.location),
            finding.invocation.lane,
            finding.access.map_or("touches", AccessKind::verb)
        ));
    }

    /// Returns the number of a workgroup, from 0.
    fn number(&self, [x, y, z]: [u32; 3]) -> u32 {
        let [across, down] = self.x_and_y;
        x + across * (y + down * z)
    }

    /// Ends a workgroup.
    fn keep(&mut self) {
        self.add_pending(Space::Workgroup);
        if let Some(run) = self.now.take()
            && (self.kept.is_none() || !run.faults.is_empty())
        {
            self.kept = Some(run);
        }
    }
}

/// Returns the accesses of a variable in a step.
fn accesses<'a>(
    step: &'a WorkgroupStep,
    variable: Option<&'a String>,
) -> impl DoubleEndedIterator<Item = &'a WorkgroupAccess> {
    step.accesses
        .iter()
        .filter(move |access| Some(&access.variable) == variable)
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
        self.add_pending(Space::Workgroup);
        let line = (self.line)(&step.location);
        let depth = step.depth;
        let mut lanes = step.lanes.iter().map(|lane| *lane as u16);
        // A step goes on with fewer lanes if some leave its line early, such as the head of a loop.
        let goes_on = self.present_step().is_some_and(|step| {
            step.barrier.is_none()
                && (step.line, step.depth) == (line, depth)
                && lanes.all(|lane| step.lanes.contains(&lane))
        });
        if !goes_on {
            self.begin_step(line, depth, step.lanes);
        }
        self.statements += 1;
    }

    fn access(&mut self, access: &Access<'_>) {
        if self.now.is_none() {
            return;
        }
        let touched: Vec<(u16, u32)> = access
            .lanes
            .iter()
            .filter_map(|lane| {
                let byte = *access.offsets.get(*lane as usize)?;
                (byte != OUTSIDE).then_some((*lane as u16, byte))
            })
            .collect();
        let place = access.location.span.start;
        let key = (place, access.kind, access.variable.to_owned());
        if let Some(index) = self.seen.iter().position(|seen| *seen == key) {
            let Some(step) = self.present_step() else {
                return;
            };
            let elements = &mut step.accesses[index].touched;
            // If other lanes make the access, they are another subgroup; the same lanes again mean a loop on one line.
            let is_new = |lane: u16| elements.iter().all(|(other, _)| *other != lane);
            if touched.iter().all(|(lane, _)| is_new(*lane)) {
                elements.extend(touched);
                return self.add_pending(access.space);
            }
            let WorkgroupStep { line, depth, .. } = *step;
            self.begin_step(line, depth, access.lanes);
        }
        let ends = [
            touched.iter().min_by_key(|(_, byte)| *byte),
            touched.iter().max_by_key(|(_, byte)| *byte),
        ]
        .map(|end| end.map_or_else(String::new, |(lane, _)| access.path(u32::from(*lane))));
        self.touched += touched.len();
        if let Some(step) = self.present_step() {
            step.accesses.push(WorkgroupAccess {
                kind: access.kind,
                variable: access.variable.to_owned(),
                in_workgroup: access.space == Space::Workgroup,
                bytes: access.bytes,
                touched,
                ends,
            });
            self.seen.push(key);
        }
        self.add_pending(access.space);
    }

    fn barrier(&mut self, arrival: &Arrival<'_>) {
        let line = (self.line)(&arrival.location);
        let is_alone = self.statements <= 1;
        let Some(step) = self.present_step() else {
            return;
        };
        let depth = step.depth;
        if !is_alone || step.line != line {
            self.begin_step(line, depth, arrival.lanes);
        }
        if let Some(step) = self.present_step() {
            let missing = arrival.missing.iter().map(|lane| *lane as u16);
            step.barrier = Some(missing.collect());
        }
        self.add_pending(Space::Workgroup);
    }

    fn finding(&mut self, finding: &Finding) {
        if self.now.is_some() {
            self.pending.push(finding.clone());
        }
    }
}
