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

impl CheckWorker<'_> {
    /// Runs every shape of a file except the last, real one on the host. If `alone` is true, no device will run the file, and the host runs
    /// more steps.
    pub(super) fn interpret(
        &mut self,
        index: usize,
        texts: &[ParsedText],
        alone: bool,
    ) -> Result<Interpreted, FileEnd> {
        let job = self.job;
        let small = job.shapes.len().saturating_sub(1).max(1);
        let (mut access, mut interpreted) = (Vec::new(), Interpreted::default());
        // Besides the steps of each shape's first kind of numbers, all further kinds, all sizes of the text, and single workgroups at large
        // sizes of the text share these steps.
        let mut for_kinds = STEPS_DRAWN;
        let mut for_text_sizes = STEPS_DRAWN;
        let mut for_workgroups = STEPS_DRAWN;
        let mut ends = false;
        let mut remarks = Remarks::default();
        for (number, shape) in job.shapes.iter().enumerate().take(small) {
            self.news.tries(Some(index), &shape.label, false);
            let mut trial = self.trial(index, number, &texts[number]);
            for (nth, values) in self.kinds(index, shape).into_iter().enumerate() {
                trial.values = values;
                let inputs = trial.inputs()?;
                let mut for_shape = if shape.is_of_text() {
                    STEPS
                } else if shape.is_drawn() {
                    STEPS_DRAWN
                } else if alone {
                    STEPS_ALONE
                } else {
                    STEPS
                };
                let most = for_shape;
                let left = match nth {
                    _ if shape.is_of_text() => &mut for_text_sizes,
                    0 => &mut for_shape,
                    _ => &mut for_kinds,
                };
                let launch = HostLaunch {
                    steps: most.min(*left),
                    ends,
                    counted: shape.counted && nth == 0,
                    ..HostLaunch::default()
                };
                let run = trial.interpret(&inputs, 0, launch)?;
                *left = left.saturating_sub(run.report.steps);
                if run.report.iterations > CPU_ROUNDS {
                    interpreted.long.push(number);
                }
                if !run.report.complete {
                    if nth == 0 && shape.is_drawn() {
                        let mut for_drawn = STEPS_DRAWN;
                        let left = if shape.is_of_text() {
                            &mut for_workgroups
                        } else {
                            &mut for_drawn
                        };
                        let steps = STEPS.min(*left);
                        let some = self.some_workgroups(index, &trial, &inputs, steps)?;
                        *left = left.saturating_sub(some.report.steps);
                    }
                    break;
                }
                let expected = trial.expected(&inputs, false)?;
                let matched = trial.judge_on_host(&run, &inputs, &expected, launch)?;
                remarks.note(&trial, &run.report);
                trial.take_liberties(&run, &inputs, &expected, launch, &mut remarks)?;
                self.news.matched(index, matched);
                if !shape.is_drawn() && trial.is_same_on_device()? {
                    interpreted.expected.insert(number, expected);
                }
                ends = true;
                if launch.counted {
                    trial.count(&run, &mut access);
                    if trial.file.spec.matrix_cores {
                        let without_products = HostLaunch {
                            without_products: true,
                            ..launch
                        };
                        let without = trial.interpret(&inputs, 0, without_products)?;
                        if let Some(facts) = &mut self.news.result(index).facts {
                            facts.matrix_cores = most_differ(&run.found, &without.found);
                        }
                    }
                }
            }
        }
        if !ends {
            return Err(Box::new(too_long(&self.news.state.shape)).into());
        }
        self.count_real(index, texts, &mut access)?;
        let result = self.news.result(index);
        result.access = access;
        result.remarks = remarks.list(&job.files[index].text);
        Ok(interpreted)
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
        self.news.tries(Some(index), &trial.shape.label, false);
        let inputs = trial.inputs()?;
        let run = self.some_workgroups(index, &trial, &inputs, STEPS_REAL)?;
        trial.count(&run, access);
        self.real_inputs = Some((index, inputs));
        Ok(())
    }

    /// Runs some workgroups of a launch on the host: one that the seed chooses, the last and the first of all, and for each axis the
    /// chosen one moved to the last and to the first place along it.
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

    /// Returns the kinds of numbers that a shape is tried with; `None` stands for the kinds that the exercise names.
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

/// Returns true if most elements of the buffers that differ at all are different.
fn most_differ(one: &[Vec<u32>], other: &[Vec<u32>]) -> bool {
    let (mut changed, mut all) = (0, 0);
    for (one, other) in one.iter().zip(other) {
        if one != other {
            changed += one.iter().zip(other).filter(|(a, b)| a != b).count();
            all += one.len();
        }
    }
    2 * changed > all
}
