//! Executes statements: a machine runs the workgroups of a launch one after the other, all lanes of a workgroup together.

use std::collections::HashMap;

use naga::{
    Barrier, Binding, Block, BuiltIn, EntryPoint, Expression, Function, Handle, Span, Statement,
    SwitchCase, SwitchValue, TypeInner,
};

use super::access::Site;
use super::evaluate::{Code, Context};
use super::exact::{Exact, Number};
use super::finding::{FindingKind, Findings, Invocation};
use super::memory::{Epochs, Shared};
use super::open::{Liberty, OpenCheck, OpenResult, watch};
use super::value::{LaneValues, Mask};
use super::{
    AccessKind, Arrival, Branch, Launch, LaunchReport, Observer, RunError, Shader, Space,
    StatementStart,
};

/// Most nested blocks and calls.
const MOST_NESTED: usize = 250;

/// Why a run ends early.
pub(crate) enum EarlyEnd {
    /// A limit on steps; the findings so far are reported.
    Limit,
    Error(RunError),
}

/// The values of a function. No function calls itself, so each needs only one frame.
#[derive(Default)]
pub(crate) struct Frame {
    pub(crate) values: Vec<LaneValues>,
    pub(crate) locals: Vec<Vec<u32>>,
    /// As in `LaneValues`, for each local variable.
    pub(crate) numbers: Vec<Vec<Number>>,
    result: LaneValues,
    /// True if its constants are set.
    ready: bool,
}

/// Lanes that left a loop or a switch, and lanes that left an iteration of a loop.
struct Jumps {
    broken: Mask,
    continued: Mask,
}

pub(crate) struct Interpreter<'a> {
    pub(crate) program: &'a Shader,
    pub(crate) context: &'a Context<'a>,
    /// The entry point, then all functions.
    pub(crate) codes: &'a [Code<'a>],
    pub(crate) frames: Vec<Frame>,
    /// By number of the global variable; so are the private variables.
    pub(crate) shared: Vec<Shared<'a>>,
    pub(crate) private: Vec<Vec<u32>>,
    /// Lanes in a workgroup.
    pub(crate) lanes: usize,
    /// Floats carry their error.
    pub(crate) exact: Option<Exact>,
    /// Lanes in a subgroup.
    pub(crate) subgroup: usize,
    pub(crate) first_subgroup: Option<Span>,
    /// Where a liberty would first change a number.
    pub(crate) liberties: [Option<Span>; Liberty::ALL.len()],
    /// Conditions on values from buffers, by function and expression: whether they were ever false, and ever true.
    pub(crate) branches: HashMap<(usize, Handle<Expression>), [bool; 2]>,
    size: [u32; 3],
    pub(crate) launch: &'a Launch<'a>,
    pub(crate) group: [u32; 3],
    pub(crate) observer: &'a mut dyn Observer,
    pub(crate) watched: bool,
    /// Clock of workgroup memory.
    local_clock: Epochs,
    /// Clock of storage.
    global_clock: Epochs,
    /// The storage epoch in which each workgroup began, and its id.
    starts: Vec<(u32, [u32; 3])>,
    pub(crate) sites: Vec<Site>,
    pub(crate) known_sites: HashMap<(u32, u32, AccessKind), u16>,
    pub(crate) findings: Findings,
    /// Running loops, with their iterations and their active lanes.
    loops: Vec<(Span, u64, Vec<u32>)>,
    /// Depth of calls, and of nested blocks.
    depth: usize,
    nesting: usize,
    steps: u64,
    group_steps: u64,
    /// Loop iterations of this workgroup, and the most of any workgroup.
    group_rounds: u64,
    rounds: u64,
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
        let own = || size.iter().product::<u32>() as usize;
        let lanes = exact
            .as_ref()
            .map_or_else(own, |exact| exact.lanes() as usize);
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

    pub(crate) fn run(&mut self, entry: &'a EntryPoint) -> Result<(), EarlyEnd> {
        if self.exact.is_some() {
            return self.run_exact(entry);
        }
        let [x, y, z] = self.launch.groups;
        let only = self.launch.only;
        let rows = (0..z).flat_map(move |z| (0..y).map(move |y| (y, z)));
        let all = rows.flat_map(move |(y, z)| (0..x).map(move |x| [x, y, z]));
        for group in all.filter(|_| only.is_empty()).chain(only.iter().copied()) {
            self.group = group;
            if self.steps > self.launch.limits.steps {
                return Err(EarlyEnd::Limit);
            }
            self.workgroup(entry)?;
        }
        Ok(())
    }

    fn workgroup(&mut self, entry: &'a EntryPoint) -> Result<(), EarlyEnd> {
        self.begin(entry)?;
        self.observer.workgroup_start(self.group, self.lanes as u32);
        let mut mask = Mask::full(self.lanes);
        self.call(0, &mut mask)?;
        self.workgroups += 1;
        self.observer.workgroup_end(self.group);
        Ok(())
    }

    /// Sets the memory of a workgroup, and the arguments of the entry point.
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
            if variable.space == naga::AddressSpace::Private {
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

    /// Appends a built-in value of all lanes.
    fn input(&self, binding: &Binding, words: &mut Vec<u32>) -> Result<(), EarlyEnd> {
        let Binding::BuiltIn(built_in) = binding else {
            return Err(self.unsupported("this argument of an entry point", Span::UNDEFINED));
        };
        let lanes = (0..self.lanes as u32).map(|lane| self.invocation(lane));
        let lanes: Vec<Invocation> = lanes.collect();
        let mut each = |of: &dyn Fn(&Invocation) -> u32| words.extend(lanes.iter().map(of));
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

    /// Sets all expressions that stand for an argument.
    fn set_argument(&mut self, frame: usize, argument: usize, set: impl Fn(&mut LaneValues)) {
        let code = &self.codes[frame];
        for handle in &code.arguments[argument] {
            set(&mut self.frames[frame].values[handle.index()]);
        }
    }

    /// A lane of this workgroup.
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
        let lane = subgroup.map_or(lane, |it| it * self.subgroup as u32);
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

    /// The invocation that made a stamped access.
    pub(crate) fn invocation_at(&self, space: Space, epoch: u32, lane: u32) -> Invocation {
        if space == Space::Workgroup {
            return self.invocation(lane);
        }
        let began = self.starts.partition_point(|(start, _)| *start <= epoch);
        let group = self.starts.get(began.saturating_sub(1));
        self.invocation_in(lane, group.map_or(self.group, |(_, group)| *group))
    }

    pub(crate) fn clock(&self, space: Space) -> Epochs {
        match space {
            Space::Workgroup => self.local_clock,
            _ => self.global_clock,
        }
    }

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

    /// Counts steps, and ends the run at a limit.
    fn tick(&mut self, steps: u64) -> Result<(), EarlyEnd> {
        self.steps += steps;
        self.group_steps += steps;
        if self.group_steps <= self.launch.limits.steps_per_workgroup {
            return Ok(());
        }
        if let Some((span, rounds, lanes)) = self.loops.iter().max_by_key(|it| it.1) {
            let first = lanes.first().copied().unwrap_or(0);
            let mut finding = self.finding(FindingKind::Endless, *span, first);
            let lanes = lanes.iter().map(|lane| self.invocation(*lane));
            (finding.invocations, finding.count) = (lanes.collect(), *rounds);
            self.find(finding, usize::MAX);
        }
        Err(EarlyEnd::Limit)
    }

    /// Runs a function's body; its arguments are set.
    pub(crate) fn call(&mut self, frame: usize, mask: &mut Mask) -> Result<(), EarlyEnd> {
        let code = &self.codes[frame];
        if !std::mem::replace(&mut self.frames[frame].ready, true) {
            self.prepare(frame)?;
        }
        for (handle, variable) in code.function.local_variables.iter() {
            let Frame {
                values,
                locals,
                numbers,
                ..
            } = &mut self.frames[frame];
            let local = &mut locals[handle.index()];
            numbers[handle.index()].clear();
            match variable.init {
                Some(init) => {
                    local.clone_from(&values[init.index()].words);
                    numbers[handle.index()].clone_from(&values[init.index()].numbers);
                }
                None => {
                    let words = self.context.layout.size(variable.ty).words as usize;
                    local.clear();
                    local.resize(words * self.lanes, 0);
                }
            }
            let steps = local.len() as u64 / 1024;
            self.tick(steps)?;
        }
        let mut jumps = Jumps::new(self.lanes);
        self.block(frame, &code.function.body, mask, &mut jumps)
    }

    /// Runs a block for these lanes; the lanes that reach its end remain in `mask`.
    fn block(
        &mut self,
        frame: usize,
        block: &'a Block,
        mask: &mut Mask,
        jumps: &mut Jumps,
    ) -> Result<(), EarlyEnd> {
        if mask.is_empty() {
            return Ok(());
        }
        self.nesting += 1;
        for (statement, span) in block.span_iter() {
            if self.nesting > MOST_NESTED {
                return Err(self.unsupported("blocks and calls nested this deeply", *span));
            }
            if !mask.is_empty() {
                self.statement(frame, statement, *span, mask, jumps)?;
            }
        }
        self.nesting -= 1;
        Ok(())
    }

    fn statement(
        &mut self,
        frame: usize,
        statement: &'a Statement,
        span: Span,
        mask: &mut Mask,
        jumps: &mut Jumps,
    ) -> Result<(), EarlyEnd> {
        if !matches!(statement, Statement::Block(_)) {
            self.tick(1 + mask.lanes.len() as u64 / 64)?;
            // Statements that naga added have no place.
            if self.watched && span.is_defined() {
                self.observer.statement(&StatementStart {
                    location: self.program.locate(span),
                    depth: self.depth,
                    lanes: &mask.lanes,
                });
            }
        }
        match statement {
            Statement::Emit(range) => {
                for handle in range.clone() {
                    let words = self.codes[frame].nodes[handle.index()].words();
                    self.tick(1 + (mask.lanes.len() * words) as u64 / 64)?;
                    self.evaluate(frame, handle, mask)?;
                }
            }
            Statement::Block(block) => self.block(frame, block, mask, jumps)?,
            Statement::If {
                condition,
                accept,
                reject,
            } => {
                self.branch(frame, *condition, *condition, mask);
                let condition = &self.frames[frame].values[condition.index()].words;
                let mut no = mask.split(|lane| condition[lane as usize] == 0);
                self.block(frame, accept, mask, jumps)?;
                self.block(frame, reject, &mut no, jumps)?;
                mask.merge(&mut no);
            }
            Statement::Switch { selector, cases } => {
                self.switch(frame, *selector, cases, mask, jumps)?
            }
            Statement::Loop {
                body,
                continuing,
                break_if,
            } => {
                self.repeat(frame, (body, continuing, *break_if), span, mask)?;
            }
            Statement::Break => jumps.broken.merge(mask),
            Statement::Continue => jumps.continued.merge(mask),
            Statement::Return { value } => {
                if let Some(value) = value {
                    let frame = &mut self.frames[frame];
                    let value = &frame.values[value.index()];
                    frame.result.take_numbers(value, mask);
                    let result = frame.result.resize(value.words.len());
                    copy_lanes(result, &value.words, mask);
                }
                mask.lanes.clear();
            }
            Statement::ControlBarrier(flags) => self.barrier(*flags, span, mask),
            Statement::MemoryBarrier(_) => {}
            Statement::Store { pointer, value } => {
                let span = self.place(frame, *pointer, span);
                self.store(frame, *pointer, *value, span, mask)?;
            }
            Statement::Atomic {
                pointer,
                fun,
                value,
                result,
            } => {
                self.atomic(frame, *pointer, (fun, *value), *result, span, mask)?;
            }
            Statement::WorkGroupUniformLoad { pointer, result } => {
                self.barrier(Barrier::WORK_GROUP, span, mask);
                let mut out = std::mem::take(&mut self.frames[frame].values[result.index()]);
                self.check_uniform(frame, *pointer, span, mask);
                let loaded = self.load(frame, *pointer, span, mask, &mut out);
                self.frames[frame].values[result.index()] = out;
                loaded?;
                self.local_clock.tick();
            }
            Statement::Call {
                function,
                arguments,
                result,
            } => {
                let callee = 1 + function.index();
                for (at, argument) in arguments.iter().enumerate() {
                    let value = std::mem::take(&mut self.frames[frame].values[argument.index()]);
                    self.set_argument(callee, at, |out| out.copy(&value));
                    self.frames[frame].values[argument.index()] = value;
                }
                self.depth += 1;
                let mut inside = mask.clone();
                self.call(callee, &mut inside)?;
                self.depth -= 1;
                if let Some(result) = result {
                    let value = std::mem::take(&mut self.frames[callee].result);
                    self.frames[frame].values[result.index()].copy(&value);
                    self.frames[callee].result = value;
                }
            }
            Statement::SubgroupBallot { result, predicate } => {
                self.ballot(frame, (*predicate, *result), span, mask);
            }
            Statement::SubgroupGather {
                mode,
                argument,
                result,
            } => self.gather(frame, *mode, [*argument, *result], span, mask),
            Statement::SubgroupCollectiveOperation {
                op,
                collective_op,
                argument,
                result,
            } => {
                let of = [*argument, *result];
                self.combine(frame, (*op, *collective_op), of, span, mask);
            }
            Statement::CooperativeStore { target, data } => {
                let node = &self.codes[frame].nodes[target.index()];
                let mut value = std::mem::take(&mut self.frames[frame].values[target.index()]);
                let kind = AccessKind::Store;
                let stored = self.transfer(frame, node, data, (span, kind), mask, &mut value.words);
                self.frames[frame].values[target.index()] = value;
                stored?;
            }
            Statement::ImageStore { .. } | Statement::ImageAtomic { .. } => {
                return Err(self.unsupported("textures", span));
            }
            Statement::Kill => return Err(self.unsupported("discard", span)),
            Statement::RayQuery { .. } | Statement::RayPipelineFunction(_) => {
                return Err(self.unsupported("ray tracing", span));
            }
        }
        Ok(())
    }

    /// The place of a store's target in the source: `out[i]` of `out[i] = 1.0;`.
    fn place(&self, frame: usize, pointer: Handle<Expression>, statement: Span) -> Span {
        let expressions = &self.codes[frame].function.expressions;
        match expressions[pointer] {
            Expression::Access { .. } | Expression::AccessIndex { .. } => {
                expressions.get_span(pointer)
            }
            _ => statement,
        }
    }

    fn switch(
        &mut self,
        frame: usize,
        selector: Handle<Expression>,
        cases: &'a [SwitchCase],
        mask: &mut Mask,
        jumps: &mut Jumps,
    ) -> Result<(), EarlyEnd> {
        let selected = self.frames[frame].values[selector.index()].words.clone();
        let value = |case: &SwitchCase| match case.value {
            SwitchValue::I32(value) => Some(value as u32),
            SwitchValue::U32(value) => Some(value),
            SwitchValue::Default => None,
        };
        let is = |case: &SwitchCase, lane: u32| value(case) == Some(selected[lane as usize]);
        let others = |lane: u32| !cases.iter().any(|case| is(case, lane));
        let mut inner = Jumps::new(self.lanes);
        // Lanes that fall through into the next case.
        let mut falling = Mask::empty(self.lanes);
        for case in cases {
            let mut here = match value(case) {
                Some(value) => mask.split(|lane| selected[lane as usize] == value),
                None => mask.split(others),
            };
            here.merge(&mut falling);
            self.block(frame, &case.body, &mut here, &mut inner)?;
            match case.fall_through {
                true => falling = here,
                false => inner.broken.merge(&mut here),
            }
        }
        mask.merge(&mut falling);
        mask.merge(&mut inner.broken);
        jumps.continued.merge(&mut inner.continued);
        Ok(())
    }

    fn repeat(
        &mut self,
        frame: usize,
        (body, continuing, break_if): (&'a Block, &'a Block, Option<Handle<Expression>>),
        span: Span,
        mask: &mut Mask,
    ) -> Result<(), EarlyEnd> {
        let mut jumps = Jumps::new(self.lanes);
        self.loops.push((span, 0, Vec::new()));
        while !mask.is_empty() {
            self.group_rounds += 1;
            self.rounds = self.rounds.max(self.group_rounds);
            if let Some((_, rounds, lanes)) = self.loops.last_mut() {
                *rounds += 1;
                lanes.clone_from(&mask.lanes);
            }
            self.tick(1)?;
            self.block(frame, body, mask, &mut jumps)?;
            mask.merge(&mut jumps.continued);
            self.block(frame, continuing, mask, &mut jumps)?;
            if let Some(condition) = break_if {
                let condition = &self.frames[frame].values[condition.index()].words;
                let mut done = mask.split(|lane| condition[lane as usize] != 0);
                jumps.broken.merge(&mut done);
            }
        }
        self.loops.pop();
        mask.merge(&mut jumps.broken);
        Ok(())
    }

    /// Notes which ways a condition on values from buffers goes. `place` stands for it in the report.
    pub(crate) fn branch(
        &mut self,
        frame: usize,
        condition: Handle<Expression>,
        place: Handle<Expression>,
        mask: &Mask,
    ) {
        if self.codes[frame].is_data[condition.index()] {
            let words = &self.frames[frame].values[condition.index()].words;
            let taken = self.branches.entry((frame, place)).or_default();
            for &lane in &mask.lanes {
                // Each component of a vector chooses.
                let components = words.iter().skip(lane as usize).step_by(mask.total);
                components.for_each(|word| taken[usize::from(*word != 0)] = true);
            }
        }
    }

    fn barrier(&mut self, flags: Barrier, span: Span, mask: &Mask) {
        if self.program.flow().is_open(span) {
            let first = mask.lanes.first().copied().unwrap_or(0);
            let open = FindingKind::Open(OpenResult::Barrier);
            let finding = self.finding(open, span, first);
            self.find(finding, usize::MAX);
        }
        if flags == Barrier::SUB_GROUP {
            return;
        }
        let missing = match mask.is_full() {
            true => Vec::new(),
            false => mask.missing(),
        };
        if !missing.is_empty() {
            let first = mask.lanes.first().copied().unwrap_or(0);
            let mut finding = self.finding(FindingKind::DivergentBarrier, span, first);
            finding.invocations = missing.iter().map(|lane| self.invocation(*lane)).collect();
            self.find(finding, usize::MAX);
        }
        let [local, global] = [Barrier::WORK_GROUP, Barrier::STORAGE].map(|it| flags.contains(it));
        if local {
            self.local_clock.tick();
        }
        if global {
            self.global_clock.tick();
        }
        if self.watched {
            self.observer.barrier(&Arrival {
                location: self.program.locate(span),
                lanes: &mask.lanes,
                missing: &missing,
                workgroup_memory: local,
                storage: global,
            });
        }
    }
}

impl Jumps {
    fn new(lanes: usize) -> Self {
        Self {
            broken: Mask::empty(lanes),
            continued: Mask::empty(lanes),
        }
    }
}

impl<'a> Code<'a> {
    pub(crate) fn new(
        context: &Context<'a>,
        function: &'a Function,
        info: &'a naga::valid::FunctionInfo,
        is_data: impl Fn(Handle<Expression>) -> bool,
    ) -> Self {
        let all = || function.expressions.iter();
        let node = |handle: Handle<Expression>| {
            super::evaluate::ExpressionInfo::new(context.module, &context.layout, &info[handle].ty)
        };
        let mut arguments = vec![Vec::new(); function.arguments.len()];
        for (handle, expression) in all() {
            if let Expression::FunctionArgument(at) = *expression {
                arguments[at as usize].push(handle);
            }
        }
        let nodes: Vec<_> = all().map(|(handle, _)| node(handle)).collect();
        // For each local variable, the values that are stored in it.
        let mut stored = vec![Vec::new(); function.local_variables.len()];
        stores(&function.body, &mut |pointer, value| {
            if let Expression::LocalVariable(local) = function.expressions[pointer] {
                stored[local.index()].push(value);
            }
        });
        let only_value = |of: Handle<Expression>| {
            let Expression::Load { pointer } = function.expressions[of] else {
                return None;
            };
            let Expression::LocalVariable(local) = function.expressions[pointer] else {
                return None;
            };
            let [value] = stored[local.index()][..] else {
                return None;
            };
            Some(value)
        };
        let scalar = |of: Handle<Expression>| nodes[of.index()].scalar;
        let watched = |handle| watch(&function.expressions, handle, scalar, &only_value);
        let watches: Vec<OpenCheck> = all().map(|(handle, _)| watched(handle)).collect();
        Self {
            function,
            watches,
            is_data: all().map(|(handle, _)| is_data(handle)).collect(),
            nodes,
            arguments,
        }
    }
}

/// Calls `with` for each store of a block: its pointer and its value.
fn stores(block: &Block, with: &mut dyn FnMut(Handle<Expression>, Handle<Expression>)) {
    for statement in block {
        match statement {
            Statement::Store { pointer, value } => with(*pointer, *value),
            Statement::Block(inner) => stores(inner, with),
            Statement::If { accept, reject, .. } => {
                stores(accept, with);
                stores(reject, with);
            }
            Statement::Switch { cases, .. } => {
                cases.iter().for_each(|case| stores(&case.body, with));
            }
            Statement::Loop {
                body, continuing, ..
            } => {
                stores(body, with);
                stores(continuing, with);
            }
            _ => {}
        }
    }
}

/// Copies the active lanes of each word.
pub(crate) fn copy_lanes(to: &mut [u32], from: &[u32], mask: &Mask) {
    if mask.is_full() {
        return to.copy_from_slice(from);
    }
    for (to, from) in to
        .chunks_exact_mut(mask.total)
        .zip(from.chunks_exact(mask.total))
    {
        for &lane in &mask.lanes {
            to[lane as usize] = from[lane as usize];
        }
    }
}
