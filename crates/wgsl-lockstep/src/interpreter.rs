//! The interpreter of a launch: its state, the workgroups that it runs one after the other, and the report at the end.

use std::collections::HashMap;

use naga::{AddressSpace, Binding, BuiltIn, EntryPoint, Expression, Handle, Span, TypeInner};

use super::access::Site;
use super::code::Code;
use super::evaluate::Context;
use super::exact::Exact;
use super::finding::{Findings, Invocation};
use super::memory::{Epochs, Shared};
use super::value::{LaneNumbers, LaneValues, Mask};
use super::{AccessKind, Branch, Launch, LaunchReport, Liberty, Observer, RunError, Shader, Space};

/// Why a run ends early.
pub(crate) enum EarlyEnd {
    /// The run reached a limit on steps; the findings so far are reported.
    Limit,
    /// The program cannot run.
    Error(RunError),
}

/// The values of a function, by number of its expressions, and its local variables. No function calls itself, so each needs only one
/// frame.
#[derive(Default)]
pub(crate) struct Frame {
    pub(crate) values: Vec<LaneValues>,
    pub(crate) locals: Vec<Vec<u32>>,
    /// Numbers with their errors, for each word of each local variable.
    pub(crate) numbers: Vec<Vec<LaneNumbers>>,
    /// The number of lanes that called the function.
    pub(crate) called: usize,
    /// The number of them that have not returned.
    pub(crate) running: usize,
    pub(crate) result: LaneValues,
    /// True if the values that never change are set.
    pub(crate) ready: bool,
}

/// A launch that runs.
pub(crate) struct Interpreter<'a> {
    pub(crate) program: &'a Shader,
    pub(crate) context: &'a Context<'a>,
    /// The entry point, then all functions.
    pub(crate) codes: &'a [Code<'a>],
    /// The frame of each code.
    pub(crate) frames: Vec<Frame>,
    /// Buffers and workgroup variables, by number of the global variable.
    pub(crate) shared: Vec<Shared<'a>>,
    /// Words of private variables, by number of the global variable.
    pub(crate) private: Vec<Vec<u32>>,
    /// The number of lanes in a workgroup.
    pub(crate) lanes: usize,
    /// The state of a run whose floats carry their error.
    pub(crate) exact: Option<Exact>,
    /// The number of lanes in a subgroup.
    pub(crate) subgroup: usize,
    /// The first place of an operation on subgroups.
    pub(crate) first_subgroup: Option<Span>,
    /// Where a liberty would first change a number.
    pub(crate) liberties: [Option<Span>; Liberty::ALL.len()],
    /// Conditions on values from buffers, by function and expression: whether they were ever false, and ever true.
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
    pub(crate) sites: Vec<Site>,
    /// The number of each site, by its place and kind of access.
    pub(crate) known_sites: HashMap<(u32, u32, AccessKind), u16>,
    pub(crate) findings: Findings,
    /// Running loops, with their iterations and their active lanes.
    pub(crate) loops: Vec<(Span, u64, Vec<u32>)>,
    /// The number of calls around the present statement.
    pub(crate) depth: usize,
    /// The number of blocks around the present statement.
    pub(crate) nesting: usize,
    /// Steps of all workgroups together.
    pub(crate) steps: u64,
    /// Steps of this workgroup.
    pub(crate) group_steps: u64,
    /// Loop iterations of this workgroup.
    pub(crate) group_rounds: u64,
    /// Loop iterations of the workgroup with the most.
    pub(crate) rounds: u64,
    /// The number of workgroups that ended.
    workgroups: u64,
}

impl<'a> Interpreter<'a> {
    pub(crate) fn new(
        program: &'a Shader,
        context: &'a Context<'a>,
        codes: &'a [Code<'a>],
        launch: &'a Launch<'a>,
        (size, exact): ([u32; 3], Option<Exact>),
        shared: Vec<Shared<'a>>,
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
            program,
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
            group_rounds: 0,
            rounds: 0,
            workgroups: 0,
        }
    }

    /// Runs the workgroups of the launch.
    pub(crate) fn run(&mut self, entry: &'a EntryPoint) -> Result<(), EarlyEnd> {
        if self.exact.is_some() {
            return self.run_exact(entry);
        }
        for group in self.launch.only {
            self.workgroup(entry, *group)?;
        }
        if self.launch.only.is_empty() {
            let [across, down, deep] = self.launch.groups;
            for z in 0..deep {
                for y in 0..down {
                    for x in 0..across {
                        self.workgroup(entry, [x, y, z])?;
                    }
                }
            }
        }
        Ok(())
    }

    fn workgroup(&mut self, entry: &'a EntryPoint, id: [u32; 3]) -> Result<(), EarlyEnd> {
        if self.steps > self.launch.limits.steps {
            return Err(EarlyEnd::Limit);
        }
        self.group = id;
        self.begin(entry)?;
        self.observer.workgroup_start(id, self.lanes as u32);
        let mut mask = Mask::full(self.lanes);
        self.call(0, &mut mask)?;
        self.workgroups += 1;
        self.observer.workgroup_end(id);
        Ok(())
    }

    /// Prepares the memory of a workgroup and the arguments of the entry point.
    pub(crate) fn begin(&mut self, entry: &'a EntryPoint) -> Result<(), EarlyEnd> {
        (self.group_steps, self.group_rounds) = (0, 0);
        self.local_clock.begin();
        self.global_clock.begin();
        self.starts.push((self.global_clock.start, self.group));
        let mut bytes = 0;
        for shared in &mut self.shared {
            if shared.space() == Space::Workgroup {
                bytes += shared.bytes.len();
                // The shadow stays, because stamps older than the workgroup are ignored.
                shared.bytes.fill(0);
            }
        }
        self.tick(1 + bytes as u64 / 1024)?;
        self.reset_private();
        for (at, argument) in entry.function.arguments.iter().enumerate() {
            let mut words = Vec::new();
            let inner = &self.context.module.types[argument.ty].inner;
            match (&argument.binding, inner) {
                (Some(binding), _) => self.input(binding, &mut words)?,
                (None, TypeInner::Struct { members, .. }) => {
                    for binding in members.iter().filter_map(|member| member.binding.as_ref()) {
                        self.input(binding, &mut words)?;
                    }
                }
                _ => {}
            }
            self.set_argument(0, at, |value| value.words.clone_from(&words));
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
    fn input(&self, binding: &Binding, words: &mut Vec<u32>) -> Result<(), EarlyEnd> {
        let Binding::BuiltIn(built_in) = binding else {
            return Err(self.unsupported("this argument of an entry point", Span::UNDEFINED));
        };
        let lanes = (0..self.lanes as u32).map(|lane| self.invocation(lane));
        let lanes: Vec<Invocation> = lanes.collect();
        let mut each = |word: &dyn Fn(&Invocation) -> u32| words.extend(lanes.iter().map(word));
        for axis in 0..3 {
            match built_in {
                BuiltIn::GlobalInvocationId => each(&|lane| lane.global[axis]),
                BuiltIn::LocalInvocationId => each(&|lane| lane.local[axis]),
                BuiltIn::WorkGroupId => each(&|lane| lane.workgroup[axis]),
                BuiltIn::NumWorkGroups => each(&|_| self.launch.groups[axis]),
                BuiltIn::WorkGroupSize => each(&|_| self.size[axis]),
                _ if axis > 0 => break,
                BuiltIn::LocalInvocationIndex => each(&|lane| lane.lane),
                BuiltIn::SubgroupSize => each(&|_| self.subgroup as u32),
                BuiltIn::SubgroupInvocationId => each(&|lane| lane.lane % self.subgroup as u32),
                BuiltIn::SubgroupId => each(&|lane| lane.lane / self.subgroup as u32),
                BuiltIn::NumSubgroups => each(&|_| self.lanes.div_ceil(self.subgroup) as u32),
                _ => {
                    let what = format!("the built-in value {built_in:?}");
                    return Err(self.unsupported(&what, Span::UNDEFINED));
                }
            }
        }
        Ok(())
    }

    /// Returns the invocation of a lane that runs now.
    pub(crate) fn invocation(&self, lane: u32) -> Invocation {
        let Some(exact) = &self.exact else {
            return self.invocation_in(lane, self.group);
        };
        let ([x, y, _], (group, lane)) = (self.launch.groups.map(u64::from), exact.place(lane));
        let group = [group % x, group / x % y, group / (x * y)];
        self.invocation_in(lane, group.map(|at| at as u32))
    }

    fn invocation_in(&self, lane: u32, workgroup: [u32; 3]) -> Invocation {
        // A subgroup that acts as one is numbered after all lanes.
        let lanes = self.size.iter().product::<u32>();
        let subgroup = lane.checked_sub(lanes);
        let lane = subgroup.map_or(lane, |number| number * self.subgroup as u32);
        let [x, y, _] = self.size;
        let local = [lane % x, lane / x % y, lane / (x * y)];
        let place = |axis: usize| {
            workgroup[axis]
                .wrapping_mul(self.size[axis])
                .wrapping_add(local[axis])
        };
        let global = [place(0), place(1), place(2)];
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
        let began = self.starts.partition_point(|(start, _)| *start <= epoch);
        let group = self.starts.get(began.saturating_sub(1));
        self.invocation_in(lane, group.map_or(self.group, |(_, group)| *group))
    }

    /// Returns the clock of one kind of memory.
    pub(crate) fn clock(&self, space: Space) -> Epochs {
        match space {
            Space::Workgroup => self.local_clock,
            _ => self.global_clock,
        }
    }

    /// Returns the report of the run, which reached no limit if it is `complete`.
    pub(crate) fn report(self, complete: bool) -> LaunchReport {
        let locate = |span: Span| self.program.locate(span);
        let liberties = Liberty::ALL.iter().zip(self.liberties);
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
            liberties: liberties
                .filter_map(|(liberty, span)| Some((*liberty, locate(span?))))
                .collect(),
            subgroups: self.first_subgroup.map(locate),
            accesses: self.counts(),
            unwritten: self.unwritten(),
            findings: self.findings.list,
            workgroups: self.workgroups,
            steps: self.steps,
            rounds: self.rounds,
            complete,
        }
    }
}
