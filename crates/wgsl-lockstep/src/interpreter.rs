//! The interpreter of a launch: its state, the workgroups that it runs one after the other, and the report at the end.

use std::collections::HashMap;

use naga::{AddressSpace, Binding, BuiltIn, EntryPoint, Expression, Handle, Span, TypeInner};

use super::access::Site;
use super::code::Code;
use super::evaluate::Context;
use super::exact::Exact;
use super::finding::{Findings, Invocation};
use super::memory::{Epochs, SharedVariable};
use super::value::{LaneNumbers, LaneValues, Mask};
use super::{AccessKind, Branch, Launch, LaunchReport, Liberty, Observer, RunError, Shader, Space};

/// Why a run ends early.
pub(crate) enum EarlyEnd {
    /// The run reached a limit on steps; the findings so far are reported.
    Limit,
    /// The shader cannot run.
    Error(RunError),
}

/// The values of a running function. No function calls itself, so each needs only one frame.
#[derive(Default)]
pub(crate) struct Frame {
    /// The value of each expression.
    pub(crate) values: Vec<LaneValues>,
    /// The words of each local variable, for all lanes.
    pub(crate) locals: Vec<Vec<u32>>,
    /// In an exact run, the numbers with their errors for each word of each local variable.
    pub(crate) numbers: Vec<Vec<LaneNumbers>>,
    /// The number of lanes that called the function.
    pub(crate) called: usize,
    /// The number of these lanes that have not returned.
    pub(crate) running: usize,
    /// The value that the function returns.
    pub(crate) result: LaneValues,
    /// True once the values that never change are set.
    pub(crate) ready: bool,
}

/// A loop that runs.
pub(crate) struct RunningLoop {
    pub(crate) span: Span,
    /// The number of iterations so far.
    pub(crate) iterations: u64,
    /// The lanes in the present iteration.
    pub(crate) lanes: Vec<u32>,
}

/// A launch that runs.
pub(crate) struct Interpreter<'a> {
    pub(crate) shader: &'a Shader,
    pub(crate) context: &'a Context<'a>,
    /// The entry point, then all functions.
    pub(crate) codes: &'a [Code<'a>],
    /// The frame of each function, in the order of `codes`.
    pub(crate) frames: Vec<Frame>,
    /// Buffers and workgroup variables, by number of the global variable.
    pub(crate) shared: Vec<SharedVariable<'a>>,
    /// Words of private variables, by number of the global variable.
    pub(crate) private: Vec<Vec<u32>>,
    /// The number of lanes in a workgroup.
    pub(crate) lanes: usize,
    /// The state of a run whose floats carry their error.
    pub(crate) exact: Option<Exact>,
    /// The number of lanes in a subgroup.
    pub(crate) subgroup: usize,
    /// The first operation of a subgroup that ran.
    pub(crate) first_subgroup: Option<Span>,
    /// For each liberty, the first expression whose number it would change.
    pub(crate) liberties: [Option<Span>; Liberty::ALL.len()],
    /// Conditions on values from buffers, by function and expression: true if the condition was ever false, and true if it was ever true.
    pub(crate) branches: HashMap<(usize, Handle<Expression>), [bool; 2]>,
    /// The size of a workgroup along each axis.
    size: [u32; 3],
    pub(crate) launch: &'a Launch<'a>,
    /// The id of the workgroup that runs.
    pub(crate) group: [u32; 3],
    pub(crate) observer: &'a mut dyn Observer,
    /// True if the observer sees statements, accesses and barriers.
    pub(crate) watched: bool,
    /// The clock of workgroup memory.
    pub(crate) local_clock: Epochs,
    /// The clock of storage.
    pub(crate) global_clock: Epochs,
    /// The storage epoch in which each workgroup began, and its id.
    starts: Vec<(u32, [u32; 3])>,
    /// The places of accesses. A stamp in the shadow memory has the index of its place.
    pub(crate) sites: Vec<Site>,
    /// The index of each site, by its span and kind of access.
    pub(crate) known_sites: HashMap<(u32, u32, AccessKind), u16>,
    pub(crate) findings: Findings,
    /// Running loops, the innermost last.
    pub(crate) loops: Vec<RunningLoop>,
    /// The number of calls around the present statement.
    pub(crate) depth: usize,
    /// The number of blocks around the present statement.
    pub(crate) nesting: usize,
    /// Steps of all workgroups together.
    pub(crate) steps: u64,
    /// Steps of this workgroup.
    pub(crate) group_steps: u64,
    /// Loop iterations of this workgroup.
    pub(crate) group_iterations: u64,
    /// Loop iterations of the workgroup with the most.
    pub(crate) most_iterations: u64,
    /// The number of workgroups that ended.
    workgroups: u64,
}

impl<'a> Interpreter<'a> {
    pub(crate) fn new(
        shader: &'a Shader,
        context: &'a Context<'a>,
        codes: &'a [Code<'a>],
        launch: &'a Launch<'a>,
        (size, exact): ([u32; 3], Option<Exact>),
        shared: Vec<SharedVariable<'a>>,
        observer: &'a mut dyn Observer,
    ) -> Self {
        let lanes = match &exact {
            Some(exact) => exact.lanes() as usize,
            None => size.iter().product::<u32>() as usize,
        };
        let frame = |code: &Code<'_>| Frame {
            values: vec![LaneValues::default(); code.nodes.len()],
            locals: vec![Vec::new(); code.function.local_variables.len()],
            numbers: vec![Vec::new(); code.function.local_variables.len()],
            ..Frame::default()
        };
        Self {
            shader,
            context,
            codes,
            frames: codes.iter().map(frame).collect(),
            private: vec![Vec::new(); shared.len()],
            shared,
            lanes,
            exact,
            subgroup: launch.subgroup_size.clamp(1, 128) as usize,
            first_subgroup: None,
            liberties: [None; Liberty::ALL.len()],
            branches: HashMap::new(),
            size,
            launch,
            group: [0; 3],
            watched: observer.watches(),
            observer,
            local_clock: Epochs::default(),
            global_clock: Epochs::default(),
            starts: Vec::new(),
            sites: Vec::new(),
            known_sites: HashMap::new(),
            findings: Findings::new(launch.limits.findings),
            loops: Vec::new(),
            depth: 0,
            nesting: 0,
            steps: 0,
            group_steps: 0,
            group_iterations: 0,
            most_iterations: 0,
            workgroups: 0,
        }
    }

    /// Runs the workgroups of the launch.
    pub(crate) fn run(&mut self, entry: &'a EntryPoint) -> Result<(), EarlyEnd> {
        if self.exact.is_some() {
            return self.run_exact(entry);
        }
        for group in self.launch.only {
            self.run_workgroup(entry, *group)?;
        }
        if self.launch.only.is_empty() {
            let [across, down, deep] = self.launch.groups;
            for z in 0..deep {
                for y in 0..down {
                    for x in 0..across {
                        self.run_workgroup(entry, [x, y, z])?;
                    }
                }
            }
        }
        Ok(())
    }

    fn run_workgroup(&mut self, entry: &'a EntryPoint, id: [u32; 3]) -> Result<(), EarlyEnd> {
        if self.steps > self.launch.limits.steps {
            return Err(EarlyEnd::Limit);
        }
        self.group = id;
        self.begin_workgroup(entry)?;
        self.observer.workgroup_start(id, self.lanes as u32);
        let mut mask = Mask::full(self.lanes);
        self.call(0, &mut mask)?;
        self.workgroups += 1;
        self.observer.workgroup_end(id);
        Ok(())
    }

    /// Prepares the memory of a workgroup and the arguments of the entry point.
    pub(crate) fn begin_workgroup(&mut self, entry: &'a EntryPoint) -> Result<(), EarlyEnd> {
        self.group_steps = 0;
        self.group_iterations = 0;
        self.local_clock.begin();
        self.global_clock.begin();
        self.starts.push((self.global_clock.start, self.group));
        let mut bytes = 0;
        for shared in &mut self.shared {
            if shared.space == Space::Workgroup {
                bytes += shared.bytes.len();
                // The shadow stays, because stamps older than the workgroup are ignored.
                shared.bytes.fill(0);
            }
        }
        self.count_steps(1 + bytes as u64 / 1024)?;
        self.reset_private();
        for (index, argument) in entry.function.arguments.iter().enumerate() {
            let mut words = Vec::new();
            let inner = &self.context.module.types[argument.ty].inner;
            match (&argument.binding, inner) {
                (Some(binding), _) => self.append_built_in(binding, &mut words)?,
                (None, TypeInner::Struct { members, .. }) => {
                    for binding in members.iter().filter_map(|member| member.binding.as_ref()) {
                        self.append_built_in(binding, &mut words)?;
                    }
                }
                _ => {}
            }
            self.set_argument(0, index, |value| value.words.clone_from(&words));
        }
        Ok(())
    }

    /// Sets private variables to their initial values.
    fn reset_private(&mut self) {
        for (handle, variable) in self.context.module.global_variables.iter() {
            if variable.space == AddressSpace::Private {
                let mut value = LaneValues::default();
                match variable.init {
                    Some(init) => value.splat(&self.context.constants[init.index()], self.lanes),
                    None => {
                        let words = self.context.layout.size(variable.ty).words as usize;
                        // An unused variable may be larger than the memory limit.
                        if words as u64 * 4 * self.lanes as u64 <= self.launch.limits.memory {
                            value.words.resize(words * self.lanes, 0);
                        }
                    }
                }
                self.private[handle.index()] = value.words;
            }
        }
    }

    /// Appends the words of a built-in value, for all lanes.
    fn append_built_in(&self, binding: &Binding, words: &mut Vec<u32>) -> Result<(), EarlyEnd> {
        let Binding::BuiltIn(built_in) = binding else {
            return Err(self.unsupported("this argument of an entry point", Span::UNDEFINED));
        };
        let invocations: Vec<Invocation> = (0..self.lanes as u32)
            .map(|lane| self.invocation(lane))
            .collect();
        let mut append = |word: &dyn Fn(&Invocation) -> u32| {
            words.extend(invocations.iter().map(word));
        };
        for axis in 0..3 {
            match built_in {
                BuiltIn::GlobalInvocationId => append(&|lane| lane.global[axis]),
                BuiltIn::LocalInvocationId => append(&|lane| lane.local[axis]),
                BuiltIn::WorkGroupId => append(&|lane| lane.workgroup[axis]),
                BuiltIn::NumWorkGroups => append(&|_| self.launch.groups[axis]),
                BuiltIn::WorkGroupSize => append(&|_| self.size[axis]),
                _ if axis > 0 => break,
                BuiltIn::LocalInvocationIndex => append(&|lane| lane.lane),
                BuiltIn::SubgroupSize => append(&|_| self.subgroup as u32),
                BuiltIn::SubgroupInvocationId => append(&|lane| lane.lane % self.subgroup as u32),
                BuiltIn::SubgroupId => append(&|lane| lane.lane / self.subgroup as u32),
                BuiltIn::NumSubgroups => append(&|_| self.lanes.div_ceil(self.subgroup) as u32),
                _ => {
                    let what = format!("the built-in value {built_in:?}");
                    return Err(self.unsupported(&what, Span::UNDEFINED));
                }
            }
        }
        Ok(())
    }

    /// Returns the invocation that runs now in a lane.
    pub(crate) fn invocation(&self, lane: u32) -> Invocation {
        let Some(exact) = &self.exact else {
            return self.invocation_in(lane, self.group);
        };
        let [x, y, _] = self.launch.groups.map(u64::from);
        let (number, lane) = exact.place(lane);
        let workgroup = [number % x, number / x % y, number / (x * y)];
        self.invocation_in(lane, workgroup.map(|id| id as u32))
    }

    /// Returns the invocation of a lane in a workgroup. Lanes past the last one are subgroups that act together.
    fn invocation_in(&self, lane: u32, workgroup: [u32; 3]) -> Invocation {
        let lanes = self.size.iter().product::<u32>();
        let subgroup = lane.checked_sub(lanes);
        let lane = subgroup.map_or(lane, |number| number * self.subgroup as u32);
        let [x, y, _] = self.size;
        let local = [lane % x, lane / x % y, lane / (x * y)];
        let global = [0, 1, 2].map(|axis| {
            workgroup[axis]
                .wrapping_mul(self.size[axis])
                .wrapping_add(local[axis])
        });
        Invocation {
            lane,
            local,
            global,
            workgroup,
            subgroup,
        }
    }

    /// Returns the invocation that made an access in an epoch.
    pub(crate) fn invocation_at(&self, space: Space, epoch: u32, lane: u32) -> Invocation {
        if space == Space::Workgroup {
            return self.invocation(lane);
        }
        let started = self.starts.partition_point(|(start, _)| *start <= epoch);
        let last = self.starts.get(started.saturating_sub(1));
        self.invocation_in(lane, last.map_or(self.group, |(_, group)| *group))
    }

    /// Returns the clock of one kind of memory.
    pub(crate) fn clock(&self, space: Space) -> Epochs {
        match space {
            Space::Workgroup => self.local_clock,
            _ => self.global_clock,
        }
    }

    /// Returns the report of the run. `complete` is false if a limit ended the run.
    pub(crate) fn into_report(self, complete: bool) -> LaunchReport {
        let locate = |span: Span| self.shader.locate(span);
        let mut branches: Vec<Branch> = Vec::new();
        for ((frame, handle), taken) in &self.branches {
            let span = self.codes[*frame].function.expressions.get_span(*handle);
            branches.push(Branch {
                location: locate(span),
                taken: *taken,
            });
        }
        branches.sort_by_key(|branch| (branch.location.span.start, branch.location.span.end));
        LaunchReport {
            branches,
            liberties: Liberty::ALL
                .into_iter()
                .zip(self.liberties)
                .filter_map(|(liberty, span)| Some((liberty, locate(span?))))
                .collect(),
            subgroups: self.first_subgroup.map(locate),
            accesses: self.counts(),
            unwritten: self.unwritten(),
            findings: self.findings.list,
            workgroups: self.workgroups,
            steps: self.steps,
            iterations: self.most_iterations,
            complete,
        }
    }
}
