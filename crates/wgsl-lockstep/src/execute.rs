//! Executes statements, for all active lanes at once.

use naga::{Barrier, Block, Expression, Handle, Span, Statement, SwitchCase, SwitchValue};

use super::finding::{FindingKind, NO_VARIABLE};
use super::interpreter::{EarlyEnd, Frame, Interpreter, RunningLoop};
use super::open::OpenResult;
use super::value::{LaneValues, Mask};
use super::{AccessKind, Arrival, StatementStart};

/// The largest number of nested blocks and calls: they are run by recursion.
const MOST_NESTED: usize = 250;

/// Lanes that jumped out of the innermost loop, and wait where it ends or goes on.
#[derive(Default)]
struct Jumps {
    /// Lanes that left the innermost loop or switch.
    broken: Mask,
    /// Lanes that left an iteration of the innermost loop.
    continued: Mask,
}

impl<'a> Interpreter<'a> {
    /// Sets the values of all expressions that name an argument of a function.
    pub(crate) fn set_argument(
        &mut self,
        frame: usize,
        argument: usize,
        set: impl Fn(&mut LaneValues),
    ) {
        let code = &self.codes[frame];
        for handle in &code.arguments[argument] {
            set(&mut self.frames[frame].values[handle.index()]);
        }
    }

    /// Counts steps of the workgroup.
    ///
    /// # Errors
    /// Past the limit of a workgroup's steps. The running loop with the most iterations is then reported as endless.
    pub(crate) fn count_steps(&mut self, steps: u64) -> Result<(), EarlyEnd> {
        self.steps += steps;
        self.group_steps += steps;
        if self.group_steps <= self.launch.limits.steps_per_workgroup {
            return Ok(());
        }
        let longest = self.loops.iter().max_by_key(|running| running.iterations);
        if let Some(RunningLoop {
            span,
            iterations,
            lanes,
        }) = longest
        {
            let first = lanes.first().copied().unwrap_or(0);
            let mut finding = self.finding(FindingKind::Endless, *span, first);
            finding.invocations = lanes.iter().map(|lane| self.invocation(*lane)).collect();
            finding.count = *iterations;
            self.report(finding, NO_VARIABLE);
        }
        Err(EarlyEnd::Limit)
    }

    /// Runs a function's body for these lanes. The caller has set the values of its arguments.
    pub(crate) fn call(&mut self, frame: usize, mask: &mut Mask) -> Result<(), EarlyEnd> {
        let code = &self.codes[frame];
        let called = mask.lanes.len();
        let own = &mut self.frames[frame];
        own.called = called;
        own.running = called;
        if !std::mem::replace(&mut own.ready, true) {
            self.set_fixed_values(frame)?;
        }
        for (handle, variable) in code.function.local_variables.iter() {
            let Frame {
                values,
                locals,
                numbers,
                ..
            } = &mut self.frames[frame];
            let local = &mut locals[handle.index()];
            let numbers = &mut numbers[handle.index()];
            numbers.clear();
            match variable.init {
                Some(init) => {
                    let value = &values[init.index()];
                    local.clone_from(&value.words);
                    numbers.resize(local.len() / self.lanes, value.numbers.clone());
                }
                None => {
                    let words = self.context.layout.size(variable.ty).words as usize;
                    local.clear();
                    local.resize(words * self.lanes, 0);
                    numbers.resize(words, None);
                }
            }
            let steps = local.len() as u64 / 1024;
            self.count_steps(steps)?;
        }
        let mut jumps = Jumps::default();
        self.run_block(frame, &code.function.body, mask, &mut jumps)
    }

    /// Runs a block for the lanes in `mask`, in which the lanes that reach its end remain.
    fn run_block(
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
                self.run_statement(frame, statement, *span, mask, jumps)?;
            }
        }
        self.nesting -= 1;
        Ok(())
    }

    fn run_statement(
        &mut self,
        frame: usize,
        statement: &'a Statement,
        span: Span,
        mask: &mut Mask,
        jumps: &mut Jumps,
    ) -> Result<(), EarlyEnd> {
        if !matches!(statement, Statement::Block(_)) {
            self.count_steps(1 + mask.lanes.len() as u64 / 64)?;
            // Statements that naga added have no place.
            if self.watched && span.is_defined() {
                self.observer.statement(&StatementStart {
                    location: self.shader.locate(span),
                    depth: self.depth,
                    lanes: &mask.lanes,
                });
            }
        }
        match statement {
            Statement::Emit(range) => {
                for handle in range.clone() {
                    let words = self.codes[frame].nodes[handle.index()].words();
                    self.count_steps(1 + (mask.lanes.len() * words) as u64 / 64)?;
                    self.evaluate(frame, handle, mask)?;
                }
            }
            Statement::Block(block) => self.run_block(frame, block, mask, jumps)?,
            Statement::If {
                condition,
                accept,
                reject,
            } => {
                self.record_branch(frame, *condition, *condition, mask);
                let condition = &self.frames[frame].values[condition.index()].words;
                let mut no = mask.split(|lane| condition[lane as usize] == 0);
                self.run_block(frame, accept, mask, jumps)?;
                self.run_block(frame, reject, &mut no, jumps)?;
                mask.merge(&mut no);
            }
            Statement::Switch { selector, cases } => {
                self.run_switch(frame, *selector, cases, mask, jumps)?
            }
            Statement::Loop {
                body,
                continuing,
                break_if,
            } => {
                self.run_loop(frame, (body, continuing, *break_if), span, mask)?;
            }
            Statement::Break => jumps.broken.merge(mask),
            Statement::Continue => jumps.continued.merge(mask),
            Statement::Return { value } => self.run_return(frame, *value, mask),
            Statement::ControlBarrier(flags) => self.barrier(*flags, span, mask),
            Statement::MemoryBarrier(_) => {}
            Statement::Store { pointer, value } => {
                let span = self.target_span(frame, *pointer, span);
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
                self.uniform_load(frame, *pointer, *result, span, mask)?;
            }
            Statement::Call {
                function,
                arguments,
                result,
            } => self.run_call(frame, 1 + function.index(), arguments, *result, mask)?,
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
                let values = [*argument, *result];
                self.combine(frame, (*op, *collective_op), values, span, mask);
            }
            Statement::CooperativeStore { target, data } => {
                let node = &self.codes[frame].nodes[target.index()];
                let mut value = std::mem::take(&mut self.frames[frame].values[target.index()]);
                let kind = AccessKind::Store;
                let stored =
                    self.transfer_matrix(frame, node, data, (span, kind), mask, &mut value.words);
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

    /// Ends the function for the lanes in `mask`, and keeps the values that they return.
    fn run_return(&mut self, frame: usize, value: Option<Handle<Expression>>, mask: &mut Mask) {
        let frame = &mut self.frames[frame];
        let all = mask.lanes.len() == frame.called;
        frame.running -= mask.lanes.len();
        if let Some(value) = value {
            let value = &frame.values[value.index()];
            frame.result.take_numbers(value, mask, all);
            let result = frame.result.resize(value.words.len());
            copy_lanes(result, &value.words, mask);
        }
        mask.lanes.clear();
    }

    /// Runs `workgroupUniformLoad`: a barrier, a load of the same place by all lanes, and a second barrier.
    fn uniform_load(
        &mut self,
        frame: usize,
        pointer: Handle<Expression>,
        result: Handle<Expression>,
        span: Span,
        mask: &Mask,
    ) -> Result<(), EarlyEnd> {
        self.barrier(Barrier::WORK_GROUP, span, mask);
        let mut out = std::mem::take(&mut self.frames[frame].values[result.index()]);
        self.check_uniform(frame, pointer, span, mask);
        let loaded = self.load(frame, pointer, span, mask, &mut out);
        self.frames[frame].values[result.index()] = out;
        self.local_clock.advance();
        loaded
    }

    /// Calls a function with the frame `callee`, and takes its result.
    fn run_call(
        &mut self,
        frame: usize,
        callee: usize,
        arguments: &[Handle<Expression>],
        result: Option<Handle<Expression>>,
        mask: &Mask,
    ) -> Result<(), EarlyEnd> {
        for (index, argument) in arguments.iter().enumerate() {
            let value = std::mem::take(&mut self.frames[frame].values[argument.index()]);
            self.set_argument(callee, index, |out| out.copy(&value));
            self.frames[frame].values[argument.index()] = value;
        }
        self.depth += 1;
        self.call(callee, &mut mask.clone())?;
        self.depth -= 1;
        if let Some(result) = result {
            let value = std::mem::take(&mut self.frames[callee].result);
            self.frames[frame].values[result.index()].copy(&value);
            self.frames[callee].result = value;
        }
        Ok(())
    }

    /// Returns the span of a store's target: `out[i]` in `out[i] = 1.0;`.
    fn target_span(&self, frame: usize, pointer: Handle<Expression>, statement: Span) -> Span {
        let expressions = &self.codes[frame].function.expressions;
        match expressions[pointer] {
            Expression::Access { .. } | Expression::AccessIndex { .. } => {
                expressions.get_span(pointer)
            }
            _ => statement,
        }
    }

    fn run_switch(
        &mut self,
        frame: usize,
        selector: Handle<Expression>,
        cases: &'a [SwitchCase],
        mask: &mut Mask,
        jumps: &mut Jumps,
    ) -> Result<(), EarlyEnd> {
        let selected = self.frames[frame].values[selector.index()].words.clone();
        let word = |case: &SwitchCase| match case.value {
            SwitchValue::I32(value) => Some(value as u32),
            SwitchValue::U32(value) => Some(value),
            SwitchValue::Default => None,
        };
        let named: Vec<u32> = cases.iter().filter_map(word).collect();
        let mut inner = Jumps::default();
        // Lanes that fall through into the next case.
        let mut falling = Mask::empty(self.lanes);
        for case in cases {
            let mut entering = match word(case) {
                Some(word) => mask.split(|lane| selected[lane as usize] == word),
                None => mask.split(|lane| !named.contains(&selected[lane as usize])),
            };
            entering.merge(&mut falling);
            self.run_block(frame, &case.body, &mut entering, &mut inner)?;
            if case.fall_through {
                falling = entering;
            } else {
                inner.broken.merge(&mut entering);
            }
        }
        mask.merge(&mut falling);
        mask.merge(&mut inner.broken);
        jumps.continued.merge(&mut inner.continued);
        Ok(())
    }

    fn run_loop(
        &mut self,
        frame: usize,
        (body, continuing, break_if): (&'a Block, &'a Block, Option<Handle<Expression>>),
        span: Span,
        mask: &mut Mask,
    ) -> Result<(), EarlyEnd> {
        let mut jumps = Jumps::default();
        self.loops.push(RunningLoop {
            span,
            iterations: 0,
            lanes: Vec::new(),
        });
        while !mask.is_empty() {
            self.group_iterations += 1;
            self.most_iterations = self.most_iterations.max(self.group_iterations);
            if let Some(running) = self.loops.last_mut() {
                running.iterations += 1;
                running.lanes.clone_from(&mask.lanes);
            }
            self.count_steps(1)?;
            self.run_block(frame, body, mask, &mut jumps)?;
            mask.merge(&mut jumps.continued);
            self.run_block(frame, continuing, mask, &mut jumps)?;
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

    /// Records whether a condition on values from buffers is true or false for the active lanes. The report shows the location of `place`.
    pub(crate) fn record_branch(
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

    /// Reports the lanes that do not reach a barrier, and starts the epochs after it.
    fn barrier(&mut self, flags: Barrier, span: Span, mask: &Mask) {
        let first = mask.lanes.first().copied().unwrap_or(0);
        if self.shader.flow().depends_on_writable_memory(span) {
            let open = FindingKind::Open(OpenResult::Barrier);
            let finding = self.finding(open, span, first);
            self.report(finding, NO_VARIABLE);
        }
        if flags == Barrier::SUB_GROUP {
            return;
        }
        let missing = mask.missing();
        if !missing.is_empty() {
            let mut finding = self.finding(FindingKind::DivergentBarrier, span, first);
            finding.invocations = missing.iter().map(|lane| self.invocation(*lane)).collect();
            self.report(finding, NO_VARIABLE);
        }
        let workgroup_memory = flags.contains(Barrier::WORK_GROUP);
        let storage = flags.contains(Barrier::STORAGE);
        if workgroup_memory {
            self.local_clock.advance();
        }
        if storage {
            self.global_clock.advance();
        }
        if self.watched {
            self.observer.barrier(&Arrival {
                location: self.shader.locate(span),
                lanes: &mask.lanes,
                missing: &missing,
                workgroup_memory,
                storage,
            });
        }
    }
}

/// Copies the words of the active lanes.
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
