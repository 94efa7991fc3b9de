//! Runs a kernel on the host before any device does, and finds its faults, with their lines, and its outputs. The result does not depend on
//! a driver's schedule, and it needs no adapter.

use std::collections::{BTreeMap, BTreeSet};

use super::access::{self, HostRun};
use super::trial::{
    ExpectedOutputs, GUARD, KernelTrial, TrialResult, count_unwritten, first_difference,
};
use protocol::reference::{self, cost};
use protocol::units::bytes;
use protocol::validate::message;
use protocol::{KernelAccess, KernelError, KernelFault, KernelFaultKind as Kind};
use wgsl_lockstep::{
    AccessKind, Buffer, Finding, FindingKind, Invocation, Launch, LaunchLimits, LaunchReport,
    Liberty, Location, Observer, OpenResult, RunError, Space,
};

/// The steps of a workgroup after which its longest loop counts as endless: about two seconds.
const WORKGROUP_STEPS: u64 = 10_000_000;
/// The steps after which a size is too large for the host if a device runs it too: about half a second.
pub(super) const STEPS: u64 = 2_000_000;
/// The steps after which a size is too large for the host if no device runs it: about four seconds.
pub(super) const STEPS_ALONE: u64 = 20_000_000;
/// The steps for a drawn shape, for all drawn shapes with further kinds of numbers, and for all sizes of the text: about 1.5 s each.
pub(super) const STEPS_DRAWN: u64 = 6_000_000;
/// The steps up to which a run is repeated because of numbers so small that a device may treat them as 0. Many kernels have such numbers.
const STEPS_SUBNORMAL: u64 = 200_000;
/// The iterations after which a loop counts as endless at any size.
const ROUNDS: u64 = 1 << 16;
/// The bytes of the buffers and of the records about their elements.
const MEMORY: u64 = 512 << 20;
/// The parts of WGSL that every check supports.
const PLAIN: &str = "loads, stores, arithmetic on f32, u32, i32 and bool, loops and barriers";

/// The part of a launch that runs on the host, and its limits.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HostLaunch<'a> {
    /// The largest number of steps.
    pub steps: u64,
    /// True if the kernel ended at another size. Then a long loop may only be slow, and a device decides.
    pub ends: bool,
    /// The workgroups to run; empty for all.
    pub only: &'a [[u32; 3]],
    /// The liberties that the run takes with arithmetic, as a device may.
    pub liberties: [bool; Liberty::ALL.len()],
    /// True if the accesses are recorded.
    pub counted: bool,
    /// True if matrix products add nothing to their sums.
    pub without_products: bool,
}

/// Lines of a file that deserve a remark although they are no faults, from all runs of the file. Places are ranges of the learner's file.
#[derive(Default)]
pub(super) struct Remarks {
    /// The conditions on values from buffers: true if a condition was ever false, and true if it was ever true.
    branches: BTreeMap<(usize, usize), [bool; 2]>,
    /// The exponentials that overflow.
    overflows: BTreeSet<(usize, usize)>,
    /// The steps of the longest run that was repeated with each liberty.
    repeated: [u64; Liberty::ALL.len()],
}

impl Remarks {
    /// Adds the remarks of a run.
    pub(super) fn add_run(&mut self, trial: &KernelTrial<'_>, report: &LaunchReport) {
        let place = |location: &Location| {
            let range = trial.text.filled.origin(&location.span);
            (range.start, range.end)
        };
        for branch in &report.branches {
            if branch.location.line > 0 {
                let taken = self.branches.entry(place(&branch.location)).or_default();
                taken[0] |= branch.taken[0];
                taken[1] |= branch.taken[1];
            }
        }
        for finding in &report.findings {
            if finding.kind == FindingKind::Open(OpenResult::Overflow) {
                self.overflows.insert(place(&finding.location));
            }
        }
    }

    /// Returns the remarks about a text, in the order of its lines.
    pub(super) fn list(&self, text: &str) -> Vec<KernelError> {
        let mut remarks = Vec::new();
        for ((start, end), taken) in &self.branches {
            let message = match taken {
                [true, true] => continue,
                [false, _] => {
                    "was true for every value that was tried: \
                     the check never saw a value that it refuses"
                }
                [_, false] => {
                    "was false for every value that was tried: the code that it guards never ran"
                }
            };
            let instead = "nothing, if no input can change that";
            remarks.push(message::error(text, &(*start..*end), message, instead));
        }
        let overflow = OpenResult::Overflow;
        for (start, end) in &self.overflows {
            let place = *start..*end;
            remarks.push(message::error(
                text,
                &place,
                overflow.description(),
                overflow.alternative(),
            ));
        }
        remarks.sort_by_key(|remark| (remark.line, remark.column));
        remarks
    }
}

impl KernelTrial<'_> {
    /// Runs a right kernel again, once with each liberty that a device may take and that would change the numbers of `run`.
    ///
    /// # Errors
    /// Returns the fault if the outputs are wrong then.
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
            let with_liberty = HostLaunch {
                liberties,
                counted: false,
                ..launch
            };
            let other = self.interpret(inputs, 0, with_liberty)?;
            if other.report.complete && self.compare(&other.found, expected).is_err() {
                let reason = format!(
                    "the result relies on this: {}; write {}",
                    liberty.description(),
                    liberty.alternative()
                );
                return Err(Box::new(self.fault_at(Kind::Open, location, reason)));
            }
        }
        Ok(())
    }

    /// Judges a complete run.
    ///
    /// # Errors
    /// Returns the fault.
    pub(super) fn judge_on_host(
        &self,
        run: &HostRun,
        inputs: &[Vec<u32>],
        expected: &ExpectedOutputs,
        launch: HostLaunch<'_>,
    ) -> TrialResult {
        // Only a kernel that uses arrayLength notices that a buffer is longer than its tensor.
        if self.text.filled.text.contains("arrayLength") {
            let with_guard = HostLaunch {
                ends: true,
                ..launch
            };
            let guarded = self.interpret(inputs, GUARD, with_guard)?;
            let reads_past_end = || {
                let (binding, element) = first_difference(&run.found, &guarded.found)?;
                let name = &self.file.spec.bindings[binding].name;
                Some(self.fault(Kind::ReadsPastEnd, name, element))
            };
            if guarded.report.complete
                && let Some(fault) = self.wrote_past_end(&guarded.found).or_else(reads_past_end)
            {
                return Err(Box::new(fault));
            }
        }
        self.compare(&run.found, expected)
    }

    /// Runs the kernel with `guard` elements past the end of each buffer. A run that needs too much memory does not start.
    ///
    /// # Errors
    /// Returns a fault that does not depend on the kernel's numbers, or one about something that the interpreter does not support.
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
        let mut buffers = reference::buffers(&self.file.spec, &self.text.counts, inputs, guard);
        let workgroup = self.text.facts.workgroup;
        let mut run = HostRun {
            invocations: workgroup.map(u64::from).iter().product(),
            ..HostRun::default()
        };
        let whole_launch = Launch {
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
        let observer: &mut dyn Observer = if launch.counted {
            &mut run.pattern
        } else {
            &mut ()
        };
        run.report = match self.text.shader.run(&whole_launch, &mut buffers, observer) {
            Ok(report) => report,
            Err(RunError::Memory { .. }) => return Ok(run),
            Err(RunError::NotSupported { what, location }) => {
                return Err(not_understood(&what, &location));
            }
            Err(error) => return Err(not_understood(&error.to_string(), &Location::default())),
        };
        if let Some(finding) = most_informative(&run.report, guard, launch) {
            return Err(Box::new(self.fault_of(finding, &run.report)));
        }
        run.found = buffers.iter().map(Buffer::to_u32).collect();
        if guard == 0
            && let Some(fault) = self.wrote_input(inputs, &run.found)
        {
            let place = self.first_store(&fault.buffer, &run.report);
            return Err(Box::new(KernelFault { place, ..fault }));
        }
        Ok(run)
    }

    /// Returns the place of the first store to a buffer; `None` if the report has none.
    fn first_store(&self, buffer: &str, report: &LaunchReport) -> Option<KernelError> {
        let bindings = &self.file.spec.bindings;
        let number = bindings.iter().position(|binding| binding.name == buffer)?;
        report
            .accesses
            .iter()
            .find(|access| access.stores > 0 && access.binding == Some((0, number as u32)))
            .map(|store| self.place(&store.location))
    }

    /// Adds the accesses of a run to `known`.
    pub(super) fn merge_accesses(&self, run: &HostRun, known: &mut Vec<KernelAccess>) {
        access::merge(self, run, self.uses(run), known);
    }

    /// Returns the number of times that the written outputs need an element of an input: M·N·K for a whole matrix product.
    fn uses(&self, run: &HostRun) -> f64 {
        let all = cost::flops(&self.file.spec, &self.shape.sizes) / 2.0;
        let mut elements = 0;
        let mut written = 0;
        for (_, words) in self.outputs(&run.found) {
            elements += words.len();
            written += words.len() - count_unwritten(words);
        }
        all * written as f64 / elements.max(1) as f64
    }

    /// Returns a place in the learner's file.
    fn place(&self, location: &Location) -> KernelError {
        let range = self.text.filled.origin(&location.span);
        message::error(&self.file.text, &range, "", "")
    }

    /// Returns a fault at a place of the learner's file. The fault has no place if the interpreter does not know the line.
    fn fault_at(&self, kind: Kind, location: &Location, reason: String) -> KernelFault {
        KernelFault {
            kind,
            shape: self.shape.label.clone(),
            place: (location.line > 0).then(|| self.place(location)),
            reason,
            ..KernelFault::default()
        }
    }

    /// Returns the fault for a finding of the interpreter, with what to write instead.
    fn fault_of(&self, finding: &Finding, report: &LaunchReport) -> KernelFault {
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
                let array = element.rsplit_once('[').map_or("", |(array, _)| array);
                KernelFault {
                    buffer: array.to_owned(),
                    // An index above the largest i32 is a negative number that was converted to unsigned.
                    at: Some(u32::try_from(index).map_or(index, |index| (index as i32).into())),
                    of: count.into(),
                    ..at(Kind::OutOfBounds, "")
                }
            }
            FindingKind::DivergentBarrier => at(
                Kind::Barrier,
                &format!(
                    "{missing} invocations of a workgroup do not reach this barrier, \
                     and the others wait for them; \
                     move it out of every `if` and loop that depends on the invocation's id, \
                     and behind no `return` of a part of the workgroup"
                ),
            ),
            FindingKind::DivergentSubgroup => at(
                Kind::Barrier,
                &format!(
                    "{missing} invocations of a subgroup do not get here, \
                     and a matrix belongs to all of them together; \
                     move this out of every `if` and loop that depends on the invocation's id"
                ),
            ),
            FindingKind::NonUniformValue => at(
                Kind::Barrier,
                "this value must be the same for all invocations of the workgroup, and is not; \
                 let all of them read the same element",
            ),
            FindingKind::Open(open) => at(
                Kind::Open,
                &format!("{}; write {}", open.description(), open.alternative()),
            ),
            FindingKind::UnwrittenRead => at(
                Kind::ReadsUnwritten,
                &format!(
                    "reads `{element}` before any invocation has written it, \
                     and an output holds arbitrary numbers until then; \
                     sum in a variable of the invocation, and store the sum once"
                ),
            ),
            _ => {
                let buffer = match report.space(finding) {
                    Space::Workgroup => String::new(),
                    _ => finding.variable.clone().unwrap_or_default(),
                };
                KernelFault {
                    buffer,
                    ..at(Kind::Races, &self.race(finding, &element, report))
                }
            }
        }
    }

    /// Returns a sentence about the two accesses that race, and how to keep them apart.
    fn race(&self, finding: &Finding, element: &str, report: &LaunchReport) -> String {
        let Some(other) = &finding.other else {
            return String::new();
        };
        let in_two_workgroups = other.invocation.workgroup != finding.invocation.workgroup;
        let who = |invocation: Invocation| {
            if invocation.subgroup.is_none() && in_two_workgroups {
                let [x, y, z] = invocation.workgroup;
                let lane = invocation.lane;
                format!("invocation {lane} of workgroup ({x}, {y}, {z})")
            } else {
                invocation.to_string()
            }
        };
        let does = |writes: bool| if writes { "writes" } else { "reads" };
        let writes = finding.access.is_some_and(AccessKind::is_write);
        let is_one_store = writes && other.access.is_write() && other.location == finding.location;
        let order = if in_two_workgroups {
            "and no barrier orders two workgroups;"
        } else if is_one_store {
            "with no barrier between them;"
        } else if report.space(finding) == Space::Workgroup {
            "with no barrier between them; put a workgroupBarrier() between the two, or"
        } else {
            "with no barrier between them; put a storageBarrier() between the two, or"
        };
        format!(
            "{} {} `{element}`, and {} {} it on line {}, {order} let only one invocation write the element",
            who(finding.invocation),
            does(writes),
            who(other.invocation),
            does(other.access.is_write()),
            self.place(&other.location).line,
        )
    }
}

/// Returns the finding that becomes the fault of a run: the first of the most informative kind. `guard` is the number of elements past the end of
/// each buffer.
fn most_informative<'a>(
    report: &'a LaunchReport,
    guard: usize,
    launch: HostLaunch<'_>,
) -> Option<&'a Finding> {
    report
        .faults()
        .filter(|finding| match finding.kind {
            FindingKind::Endless => {
                let may_only_be_slow = !launch.only.is_empty() || finding.count < ROUNDS;
                !(launch.ends && may_only_be_slow)
            }
            // The markers past the end of a buffer are no numbers, so arithmetic on them is no fault.
            FindingKind::Open(_) => guard == 0,
            _ => true,
        })
        .min_by_key(|finding| match finding.kind {
            FindingKind::Endless => 0,
            FindingKind::UnwrittenRead => 2,
            FindingKind::Open(_) => 3,
            _ => 1,
        })
}

/// Returns the fault of a kernel that ended at no size.
pub(super) fn too_long(shape: &str) -> KernelFault {
    let steps = WORKGROUP_STEPS / 1_000_000;
    let memory = bytes(MEMORY);
    KernelFault {
        kind: Kind::NotUnderstood,
        shape: shape.to_owned(),
        reason: format!(
            "the kernel did not end at any size on the host, \
             within {steps} million steps of a workgroup and {memory}; write it with \
             as few loop iterations and as few variables of an invocation as the starter"
        ),
        ..KernelFault::default()
    }
}
