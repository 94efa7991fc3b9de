//! Runs a kernel on the host before any device does: finds its faults with their lines, and its outputs. The result depends on no
//! driver's schedule and needs no adapter.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::access::{self, HostRun};
use super::trial::{ExpectedOutputs, GUARD, KernelTrial, TrialResult, first_difference, unwritten};
use protocol::reference::{self, cost};
use protocol::units::bytes;
use protocol::validate::message;
use protocol::{KernelAccess, KernelError, KernelFault, KernelFaultKind as Kind};
use wgsl_lockstep::{
    AccessKind, Buffer, Finding, FindingKind, Invocation, Launch, LaunchLimits, LaunchReport,
    Liberty, Location, Observer, OpenResult, RunError, Space,
};

/// Steps of a workgroup after which its longest loop counts as endless: about two seconds.
const WORKGROUP_STEPS: u64 = 10_000_000;
/// Steps after which a size is too large for the host: about half a second, and about four where no device runs the size afterwards.
pub(super) const STEPS: u64 = 2_000_000;
pub(super) const STEPS_ALONE: u64 = 20_000_000;
/// Steps for a drawn shape, for all drawn shapes with further kinds of values, and for all sizes taken from the text: about 1.5 s each.
pub(super) const STEPS_DRAWN: u64 = 6_000_000;
/// Steps up to which a run is repeated because of numbers so small that a device may drop them; many kernels have some.
const STEPS_SUBNORMAL: u64 = 200_000;
/// Iterations after which a loop counts as endless at any size.
const ROUNDS: u64 = 1 << 16;
/// Bytes of the buffers and of the records about their elements.
const MEMORY: u64 = 512 << 20;
const PLAIN: &str = "loads, stores, arithmetic on f32, u32, i32 and bool, loops and barriers";

/// Which part of a kernel runs on the host, and for how many steps.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HostLaunch<'a> {
    pub steps: u64,
    /// True if the kernel ended at another size: then it may only be slow, and a device decides.
    pub ends: bool,
    /// Run only these workgroups; with none, all.
    pub only: &'a [[u32; 3]],
    /// What the device may do with arithmetic, by number of the liberty.
    pub liberties: [bool; Liberty::ALL.len()],
    /// True if the pattern of the accesses is recorded.
    pub counted: bool,
    /// Matrix products add nothing to their sums.
    pub without_products: bool,
}

/// What all runs of a file say about lines that are no faults.
#[derive(Default)]
pub(super) struct Remarks {
    /// Conditions on values from buffers, by their place in the learner's file: whether they were ever false, and ever true.
    branches: BTreeMap<(usize, usize), [bool; 2]>,
    /// Exponentials that overflow.
    overflows: BTreeSet<(usize, usize)>,
    /// Steps of the longest run that was repeated with a liberty.
    repeated: [u64; Liberty::ALL.len()],
}

impl Remarks {
    /// Adds what a run says.
    pub(super) fn note(&mut self, trial: &KernelTrial<'_>, report: &LaunchReport) {
        let place = |location: &Location| {
            let range = trial.text.filled.origin(&location.span);
            (range.start, range.end)
        };
        for branch in report
            .branches
            .iter()
            .filter(|branch| branch.location.line > 0)
        {
            let known = self.branches.entry(place(&branch.location)).or_default();
            for (known, taken) in known.iter_mut().zip(branch.taken) {
                *known |= taken;
            }
        }
        let overflow = FindingKind::Open(OpenResult::Overflow);
        let overflows = report.findings.iter().filter(|one| one.kind == overflow);
        self.overflows
            .extend(overflows.map(|one| place(&one.location)));
    }

    /// The remarks about a text, in the order of its lines.
    pub(super) fn list(&self, text: &str) -> Vec<KernelError> {
        let at = |(start, end): (usize, usize), message: &str, instead: &str| {
            let range: Range<usize> = start..end;
            message::error(text, &range, message.to_owned(), instead.to_owned())
        };
        let branches = self.branches.iter().filter_map(|(place, taken)| {
            let message = match taken {
                [true, true] => return None,
                [false, _] => {
                    "was true for every value that was tried: the check never saw a value that it refuses"
                }
                [_, false] => {
                    "was false for every value that was tried: the code that it guards never ran"
                }
            };
            Some(at(*place, message, "nothing, if no input can change that"))
        });
        let open = OpenResult::Overflow;
        let overflows = self.overflows.iter();
        let overflows = overflows.map(|place| at(*place, open.says(), open.instead()));
        let mut all: Vec<KernelError> = branches.chain(overflows).collect();
        all.sort_by_key(|remark| (remark.line, remark.column));
        all
    }
}

impl KernelTrial<'_> {
    /// Runs a right kernel again as a device does that takes a liberty with which the numbers of `run` would be others.
    ///
    /// # Errors
    /// With the fault, if the outputs are wrong then.
    pub(super) fn take_liberties(
        &self,
        run: &HostRun,
        inputs: &[Vec<u32>],
        expected: &ExpectedOutputs,
        launch: HostLaunch<'_>,
        remarks: &mut Remarks,
    ) -> Result<(), Box<KernelFault>> {
        for (liberty, location) in &run.report.liberties {
            let repeated = &mut remarks.repeated[*liberty as usize];
            let steps = run.report.steps;
            let may_be_long = matches!(liberty, Liberty::Fma | Liberty::Reassociation);
            if steps < 2 * *repeated || !may_be_long && steps > STEPS_SUBNORMAL {
                continue;
            }
            *repeated = steps;
            let mut liberties = [false; Liberty::ALL.len()];
            liberties[*liberty as usize] = true;
            let launch = HostLaunch {
                liberties,
                counted: false,
                ..launch
            };
            let other = self.interpret(inputs, 0, launch)?;
            if other.report.complete && self.compare(&other.found, expected).is_err() {
                let (says, instead) = (liberty.says(), liberty.instead());
                let reason = format!("the result relies on this: {says}; write {instead}");
                return Err(Box::new(self.fault_at(Kind::Open, location, reason)));
            }
        }
        Ok(())
    }

    /// Judges a complete run.
    ///
    /// # Errors
    /// With the fault.
    pub(super) fn judge_on_host(
        &self,
        run: &HostRun,
        inputs: &[Vec<u32>],
        expected: &ExpectedOutputs,
        launch: HostLaunch<'_>,
    ) -> TrialResult {
        // Only a kernel that uses arrayLength notices that a buffer may be longer than its tensor.
        if self.text.filled.text.contains("arrayLength") {
            let launch = HostLaunch {
                ends: true,
                ..launch
            };
            let guarded = self.interpret(inputs, GUARD, launch)?;
            let changed = || {
                let (binding, at) = first_difference(&run.found, &guarded.found)?;
                let name = &self.file.spec.bindings[binding].name;
                Some(self.fault(Kind::ReadsPastEnd, name, at))
            };
            if guarded.report.complete
                && let Some(fault) = self.wrote_past_end(&guarded.found).or_else(changed)
            {
                return Err(Box::new(fault));
            }
        }
        self.compare(&run.found, expected)
    }

    /// Runs the kernel with `guard` elements past the end of each buffer. A run that needs too much memory does not start.
    ///
    /// # Errors
    /// With what the kernel does wrong regardless of its numbers, or what the interpreter does not support.
    pub(super) fn interpret(
        &self,
        inputs: &[Vec<u32>],
        guard: usize,
        launch: HostLaunch<'_>,
    ) -> Result<HostRun, Box<KernelFault>> {
        let not_understood = |what: &str, location: &Location| {
            let reason = format!("the check does not support {what}; write {PLAIN}");
            Box::new(self.fault_at(Kind::NotUnderstood, location, reason))
        };
        let program = &self.text.shader;
        let size = program.entry_points().next();
        let size = size.map_or([1; 3], |(_, size)| size);
        let mut buffers = reference::buffers(&self.file.spec, &self.text.counts, inputs, guard);
        let mut run = HostRun {
            invocations: size.map(u64::from).iter().product(),
            ..HostRun::default()
        };
        let grid = Launch {
            limits: LaunchLimits {
                steps_per_workgroup: WORKGROUP_STEPS,
                steps: launch.steps,
                memory: MEMORY,
                ..LaunchLimits::default()
            },
            only: launch.only,
            liberties: launch.liberties,
            without_products: launch.without_products,
            ..Launch::new(self.text.grid)
        };
        let observer: &mut dyn Observer = match launch.counted {
            true => &mut run.pattern,
            false => &mut (),
        };
        run.report = match program.run(&grid, &mut buffers, observer) {
            Ok(report) => report,
            Err(RunError::Memory { .. }) => return Ok(run),
            Err(RunError::NotSupported { what, location }) => {
                return Err(not_understood(&what, &location));
            }
            Err(error) => return Err(not_understood(&error.to_string(), &Location::default())),
        };
        let report = &run.report;
        let may_end = |it: &Finding| {
            launch.ends
                && it.kind == FindingKind::Endless
                && (!launch.only.is_empty() || it.count < ROUNDS)
        };
        // Past the end of a buffer lie markers that are no numbers.
        let marker = |finding: &Finding| guard > 0 && matches!(finding.kind, FindingKind::Open(_));
        let faults = report
            .faults()
            .filter(|finding| !may_end(finding) && !marker(finding));
        // The first of the most informative findings.
        let worst = faults.min_by_key(|it| match it.kind {
            FindingKind::Endless => 0,
            FindingKind::UnwrittenRead => 2,
            FindingKind::Open(_) => 3,
            _ => 1,
        });
        if let Some(finding) = worst {
            return Err(Box::new(self.found(finding, report)));
        }
        run.found = buffers.iter().map(Buffer::to_u32).collect();
        if guard == 0
            && let Some(fault) = self.wrote_input(inputs, &run.found)
        {
            let mut names = self.file.spec.bindings.iter().map(|it| &it.name);
            let number = names.position(|name| *name == fault.buffer);
            let number = number.map(|number| (0, number as u32));
            let mut stores = report.accesses.iter().filter(|it| it.stores > 0);
            let store = stores.find(|it| it.binding == number);
            let place = store.map(|it| self.place(&it.location));
            return Err(Box::new(KernelFault { place, ..fault }));
        }
        Ok(run)
    }

    /// Adds the accesses of a run to `known`.
    pub(super) fn count(&self, run: &HostRun, known: &mut Vec<KernelAccess>) {
        access::count(self, run, self.uses(run), known);
    }

    /// How often the written outputs need an element of an input: M·N·K for a whole product.
    fn uses(&self, run: &HostRun) -> f64 {
        let all = cost::flops(&self.file.spec, &self.shape.sizes) / 2.0;
        let outputs = self.outputs(&run.found);
        let (numbers, left) = outputs.fold((0, 0), |(numbers, left), (_, found)| {
            (numbers + found.len(), left + unwritten(found))
        });
        all * (numbers - left) as f64 / numbers.max(1) as f64
    }

    fn place(&self, location: &Location) -> KernelError {
        let range = self.text.filled.origin(&location.span);
        message::error(&self.file.text, &range, String::new(), String::new())
    }

    fn fault_at(&self, kind: Kind, location: &Location, reason: String) -> KernelFault {
        KernelFault {
            kind,
            shape: self.shape.label.clone(),
            place: (location.line > 0).then(|| self.place(location)),
            reason,
            ..KernelFault::default()
        }
    }

    /// A finding as a fault, with what to write instead.
    fn found(&self, finding: &Finding, report: &LaunchReport) -> KernelFault {
        let element = finding.element.clone().unwrap_or_default();
        let missing = finding.invocations.len();
        let at = |kind, reason: &str| self.fault_at(kind, &finding.location, reason.to_owned());
        match finding.kind {
            FindingKind::Endless => {
                let mut head = finding.location.clone();
                let text = self.text.filled.text.get(head.span.clone());
                if let Some(brace) = text.and_then(|text| text.find('{')) {
                    head.span.end = head.span.start + brace + 1;
                }
                KernelFault {
                    limit: finding.count as f64,
                    ..self.fault_at(Kind::Endless, &head, String::new())
                }
            }
            FindingKind::OutOfBounds => {
                let (index, count) = finding.index.unwrap_or_default();
                // An index above the largest i32 is a negative number that was converted to unsigned.
                let index = u32::try_from(index).map_or(index, |index| i64::from(index as i32));
                let array = element.rsplit_once('[').map_or("", |(array, _)| array);
                KernelFault {
                    buffer: array.to_owned(),
                    at: Some(index),
                    of: count.into(),
                    ..at(Kind::OutOfBounds, "")
                }
            }
            FindingKind::DivergentBarrier => at(
                Kind::Barrier,
                &format!(
                    "{missing} invocations of a workgroup do not reach this barrier, and the others wait for them; move it out \
                     of every `if` and loop that depends on the invocation's id, and behind no `return` of a part of the workgroup"
                ),
            ),
            FindingKind::DivergentSubgroup => at(
                Kind::Barrier,
                &format!(
                    "{missing} invocations of a subgroup do not get here, and a matrix belongs to all of them together; move this out \
                     of every `if` and loop that depends on the invocation's id"
                ),
            ),
            FindingKind::NonUniformValue => at(
                Kind::Barrier,
                "this value must be the same for all invocations of the workgroup, and is not; let all of them read the same element",
            ),
            FindingKind::Open(open) => at(
                Kind::Open,
                &format!("{}; write {}", open.says(), open.instead()),
            ),
            FindingKind::UnwrittenRead => at(
                Kind::ReadsUnwritten,
                &format!(
                    "reads `{element}` before any invocation has written it, and an output holds arbitrary numbers until then; sum in a \
                     variable of the invocation, and store the sum once"
                ),
            ),
            _ => {
                let name = finding.variable.clone();
                let buffer = name.filter(|_| report.space(finding) != Space::Workgroup);
                KernelFault {
                    buffer: buffer.unwrap_or_default(),
                    ..at(Kind::Races, &self.race(finding, &element, report))
                }
            }
        }
    }

    /// Which two accesses race, and how to keep them apart.
    fn race(&self, finding: &Finding, element: &str, report: &LaunchReport) -> String {
        let Some(other) = &finding.other else {
            return String::new();
        };
        let apart = other.invocation.workgroup != finding.invocation.workgroup;
        let who = |it: Invocation| match (it.subgroup, apart) {
            (None, true) => {
                let [x, y, z] = it.workgroup;
                format!("invocation {} of workgroup ({x}, {y}, {z})", it.lane)
            }
            _ => it.to_string(),
        };
        let does = |writes: bool| if writes { "writes" } else { "reads" };
        let writes = finding.access.is_some_and(AccessKind::is_write);
        let ends = match (apart, report.space(finding)) {
            (true, _) => {
                "and no barrier orders two workgroups; let only one invocation write the element"
            }
            _ if writes && other.access.is_write() && other.location == finding.location => {
                "with no barrier between them; let only one invocation write the element"
            }
            (_, Space::Workgroup) => {
                "with no barrier between them; put a workgroupBarrier() between the two, or let only one invocation write the element"
            }
            _ => {
                "with no barrier between them; put a storageBarrier() between the two, or let only one invocation write the element"
            }
        };
        format!(
            "{} {} `{element}`, and {} {} it on line {}, {ends}",
            who(finding.invocation),
            does(writes),
            who(other.invocation),
            does(other.access.is_write()),
            self.place(&other.location).line,
        )
    }
}

/// The fault of a kernel that ended at no size.
pub(super) fn too_long(shape: &str) -> KernelFault {
    let (steps, memory) = (WORKGROUP_STEPS / 1_000_000, bytes(MEMORY));
    KernelFault {
        kind: Kind::NotUnderstood,
        shape: shape.to_owned(),
        reason: format!(
            "the kernel did not end at any size on the host, within {steps} million steps of a workgroup and {memory}; write it with as \
             few loop iterations and as few variables of an invocation as the starter"
        ),
        ..KernelFault::default()
    }
}
