//! The stage of a check on the host: interprets a file at every shape except the last, real one, and some workgroups at that one.

use super::access::HostRun;
use super::check::{CheckWorker, FileEnd, Interpreted};
use super::interpret::{HostLaunch, Remarks, STEPS, STEPS_ALONE, STEPS_DRAWN, too_long};
use super::trial::KernelTrial;
use protocol::random::Rng;
use protocol::validate::ParsedText;
use protocol::{KernelAccess, KernelFault, KernelFill, KernelShape};

/// The steps of some workgroups at the last, real shape.
const STEPS_REAL: u64 = 2 * STEPS;
/// The iterations of a loop after which llvmpipe, the CPU driver, ends an invocation without an error.
const CPU_ROUNDS: u64 = 65_000;
/// The floating-point operations up to which a drawn shape is tried with every kind of numbers. A larger one is tried with the first kind.
const EVERY_KIND: f64 = 1e7;

/// The runs of one file on the host, and the steps that are left for further ones. Each shape may take steps for its first kind of numbers; the
/// other runs share the steps below.
#[derive(Default)]
struct HostStage {
    /// True if no device will run the file. The host then runs more steps.
    alone: bool,
    /// The steps left for further kinds of numbers.
    for_kinds: u64,
    /// The steps left for sizes that were taken from the learner's text.
    for_text_sizes: u64,
    /// The steps left for single workgroups at large sizes of the learner's text.
    for_workgroups: u64,
    /// True once the kernel ended at a shape.
    ends: bool,
    access: Vec<KernelAccess>,
    remarks: Remarks,
    interpreted: Interpreted,
}

impl CheckWorker<'_> {
    /// Runs every shape of a file except the last, real one on the host. If `alone` is true, no device will run the file, and the host runs
    /// more steps.
    pub(super) fn interpret(
        &mut self,
        index: usize,
        texts: &[ParsedText],
        alone: bool,
    ) -> Result<Interpreted, FileEnd> {
        let mut host = HostStage {
            alone,
            for_kinds: STEPS_DRAWN,
            for_text_sizes: STEPS_DRAWN,
            for_workgroups: STEPS_DRAWN,
            ..HostStage::default()
        };
        let small_shapes = self.job.shapes.len().saturating_sub(1).max(1);
        for (number, text) in texts.iter().enumerate().take(small_shapes) {
            self.interpret_shape((index, number), text, &mut host)?;
        }
        if !host.ends {
            return Err(Box::new(too_long(&self.news.state.shape)).into());
        }
        self.count_real(index, texts, &mut host.access)?;
        let remarks = host.remarks.list(&self.job.files[index].text);
        let result = self.news.result(index);
        result.access = host.access;
        result.remarks = remarks;
        Ok(host.interpreted)
    }

    /// Runs a file at one shape with each kind of numbers, until a run does not end within its steps.
    fn interpret_shape(
        &mut self,
        (index, number): (usize, usize),
        text: &ParsedText,
        host: &mut HostStage,
    ) -> Result<(), FileEnd> {
        let job = self.job;
        let shape = &job.shapes[number];
        self.news.report_try(Some(index), &shape.label, false);
        let most = if shape.is_of_text() {
            STEPS
        } else if shape.is_drawn() {
            STEPS_DRAWN
        } else if host.alone {
            STEPS_ALONE
        } else {
            STEPS
        };
        let mut trial = self.trial(index, number, text);
        for (nth, values) in self.kinds(index, shape).into_iter().enumerate() {
            trial.values = values;
            let inputs = trial.inputs()?;
            let shared = match nth {
                _ if shape.is_of_text() => Some(&mut host.for_text_sizes),
                0 => None,
                _ => Some(&mut host.for_kinds),
            };
            let launch = HostLaunch {
                steps: shared.as_deref().map_or(most, |left| most.min(*left)),
                ends: host.ends,
                counted: shape.counted && nth == 0,
                ..HostLaunch::default()
            };
            let run = trial.interpret(&inputs, 0, launch)?;
            if let Some(left) = shared {
                *left = left.saturating_sub(run.report.steps);
            }
            if run.report.iterations > CPU_ROUNDS {
                host.interpreted.long.push(number);
            }
            if !run.report.complete {
                if nth == 0 && shape.is_of_text() {
                    let steps = STEPS.min(host.for_workgroups);
                    let some = self.some_workgroups(index, &trial, &inputs, steps)?;
                    host.for_workgroups = host.for_workgroups.saturating_sub(some.report.steps);
                } else if nth == 0 && shape.is_drawn() {
                    self.some_workgroups(index, &trial, &inputs, STEPS)?;
                }
                break;
            }
            let expected = trial.expected(&inputs, false)?;
            let matched = trial.judge_on_host(&run, &inputs, &expected, launch)?;
            host.remarks.add_run(&trial, &run.report);
            trial.take_liberties(&run, &inputs, &expected, launch, &mut host.remarks)?;
            self.news.add_match(index, matched);
            if !shape.is_drawn() && trial.is_same_on_device()? {
                host.interpreted.expected.insert(number, expected);
            }
            host.ends = true;
            if launch.counted {
                trial.merge_accesses(&run, &mut host.access);
                self.find_matrix_products(index, &trial, &inputs, &run, launch)?;
            }
        }
        Ok(())
    }

    /// Runs a kernel that is meant for matrix cores again without matrix products. If most of the outputs change, it does use matrix cores.
    fn find_matrix_products(
        &mut self,
        index: usize,
        trial: &KernelTrial<'_>,
        inputs: &[Vec<u32>],
        run: &HostRun,
        launch: HostLaunch<'_>,
    ) -> Result<(), FileEnd> {
        if !trial.file.spec.matrix_cores {
            return Ok(());
        }
        let without_products = HostLaunch {
            without_products: true,
            ..launch
        };
        let without = trial.interpret(inputs, 0, without_products)?;
        if let Some(facts) = &mut self.news.result(index).facts {
            facts.matrix_cores = most_differ(&run.found, &without.found);
        }
        Ok(())
    }

    /// Counts the accesses of some workgroups at the last, real shape.
    fn count_real(
        &mut self,
        index: usize,
        texts: &[ParsedText],
        access: &mut Vec<KernelAccess>,
    ) -> Result<(), FileEnd> {
        let last = self.job.shapes.len().saturating_sub(1);
        let trial = self.trial(index, last, &texts[last]);
        self.news.report_try(Some(index), &trial.shape.label, false);
        let inputs = trial.inputs()?;
        let run = self.some_workgroups(index, &trial, &inputs, STEPS_REAL)?;
        trial.merge_accesses(&run, access);
        self.real_inputs = Some((index, inputs));
        Ok(())
    }

    /// Runs some workgroups of a launch on the host: one that the seed chooses, the last one and the first one, and for each axis the chosen one
    /// moved to the last and to the first place along this axis.
    fn some_workgroups(
        &self,
        index: usize,
        trial: &KernelTrial<'_>,
        inputs: &[Vec<u32>],
        steps: u64,
    ) -> Result<HostRun, Box<KernelFault>> {
        let mut rng = Rng::named(self.job.seed, "workgroup", index as u64);
        let last = trial.text.grid.map(|groups| groups.saturating_sub(1));
        let chosen = last.map(|last| rng.below(last as usize + 1) as u32);
        let mut wanted = vec![chosen, last, [0; 3]];
        for axis in 0..3 {
            for end in [last[axis], 0] {
                let mut moved = chosen;
                moved[axis] = end;
                wanted.push(moved);
            }
        }
        let mut groups: Vec<[u32; 3]> = Vec::new();
        for group in wanted {
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
        let launch = HostLaunch {
            steps,
            ends: true,
            only: &groups,
            counted: true,
            ..HostLaunch::default()
        };
        trial.interpret(inputs, 0, launch)
    }

    /// Returns the kinds of numbers that a shape is tried with. A kind of `None` means the numbers that the exercise names.
    fn kinds(&self, index: usize, shape: &KernelShape) -> Vec<Option<KernelFill>> {
        if !shape.is_drawn() {
            return vec![None];
        }
        let most = if self.flops(index, shape) <= EVERY_KIND {
            shape.values.len()
        } else {
            1
        };
        shape.values.iter().copied().take(most).map(Some).collect()
    }
}

/// Returns true if most elements differ between two runs. Only buffers with a difference count.
fn most_differ(one: &[Vec<u32>], other: &[Vec<u32>]) -> bool {
    let mut changed = 0;
    let mut all = 0;
    for (one, other) in one.iter().zip(other) {
        if one != other {
            changed += one.iter().zip(other).filter(|(a, b)| a != b).count();
            all += one.len();
        }
    }
    2 * changed > all
}
