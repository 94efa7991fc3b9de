//! Runs a learner's kernel on the host and records the lanes of one workgroup, for the card of the lanes. No device is needed. The shapes and
//! inputs are those of the check.

use std::io;
use std::sync::mpsc::Sender;
use std::thread::Builder;

use super::background_job::BackgroundJob;
use crate::lanes::{KernelLanes, LanesWanted};
use protocol::reference;
use protocol::validate::{ParsedText, validate};
use protocol::{KernelFile, KernelJob, KernelShape, with_names};
use wgsl_lockstep::lanes::{WorkgroupRun, record as record_run};
use wgsl_lockstep::{Launch, LaunchLimits, Location, STACK_BYTES};

/// The limits of the run, because the card has to appear within seconds.
const LIMITS: LaunchLimits = LaunchLimits {
    steps_per_workgroup: 1_000_000,
    steps: 20_000_000,
    memory: 256 << 20,
    findings: 100,
};

/// The recorded run of a workgroup, or the reason why there is none.
pub type LanesResult = Result<KernelLanes, String>;

/// Starts the run on a thread whose stack is large enough for deep expressions.
///
/// # Errors
/// Returns an error if the thread cannot be started.
pub fn begin(job: KernelJob, wanted: LanesWanted) -> io::Result<BackgroundJob<LanesResult>> {
    // The receiver may be gone, because the learner has closed the card.
    let work = move |_, outbox: Sender<LanesResult>| drop(outbox.send(record(&job, &wanted)));
    let thread = Builder::new().name("lanes".into()).stack_size(STACK_BYTES);
    let broke_off = Err("this kernel broke the interpreter".to_owned());
    Ok(BackgroundJob::begin(thread, work, broke_off)?.detached())
}

/// Records a workgroup at the wanted shape, or else at the first shape with a fault, or else at the shape that shows most.
fn record(job: &KernelJob, wanted: &LanesWanted) -> LanesResult {
    let file = job.files.get(wanted.file).ok_or("there is no such file")?;
    // The last of several shapes is for timing and too large to view.
    let small = match job.shapes.split_last() {
        Some((_, small)) if !small.is_empty() => small,
        _ => &job.shapes[..],
    };
    let is_wanted = |shape: &KernelShape| Some(&shape.label) == wanted.shape.as_ref();
    let offered: Vec<&KernelShape> = small
        .iter()
        .filter(|shape| !shape.is_drawn() || is_wanted(shape))
        .collect();
    let shapes: Vec<String> = offered.iter().map(|shape| shape.label.clone()).collect();
    let tried = match offered.iter().find(|shape| is_wanted(shape)) {
        Some(shape) => vec![(*shape).clone()],
        None => offered.into_iter().cloned().collect(),
    };
    let checked = match &file.unreadable {
        Some(error) => Err(error.clone()),
        None => validate(&file.text, &file.spec, &tried),
    }
    .map_err(|error| match error.line {
        0 => error.message,
        line => format!("line {line}: {}", error.message),
    })?;
    let mut best: Option<KernelLanes> = None;
    for (shape, text) in tried.iter().zip(&checked) {
        let found = KernelLanes {
            file: file.name.clone(),
            shape: shape.label.clone(),
            sizes: with_names(&shape.sizes),
            shapes: shapes.clone(),
            run: at_shape(file, shape, text, job.seed, wanted.group)?,
        };
        if !found.run.faults.is_empty() {
            return Ok(found);
        }
        if best
            .as_ref()
            .is_none_or(|best| rank(&found.run) < rank(&best.run))
        {
            best = Some(found);
        }
    }
    best.ok_or_else(|| "the exercise has no shape".to_owned())
}

/// Returns a key that is smaller for a run that shows more on the card: one of several workgroups, with few idle lanes and few steps.
fn rank(run: &WorkgroupRun) -> (bool, usize, usize) {
    let widest = run
        .steps
        .iter()
        .flat_map(|step| &step.accesses)
        .filter(|access| !access.in_workgroup)
        .map(|access| access.touched.len())
        .max();
    let idle = run.lanes().saturating_sub(widest.unwrap_or(0));
    (run.groups < 2, idle, run.steps.len())
}

/// Records the workgroup with the number `group` at one shape. Without a number the recorder chooses a workgroup.
fn at_shape(
    file: &KernelFile,
    shape: &KernelShape,
    text: &ParsedText,
    seed: u64,
    group: Option<u32>,
) -> Result<WorkgroupRun, String> {
    let values = shape.values.first().copied();
    let inputs = reference::inputs(&file.spec.bindings, shape, values, seed)?;
    let [across, down, _] = text.grid.map(|groups| groups.max(1));
    let position = |number: u32| {
        let x = number % across;
        let y = number / across % down;
        let z = number / across / down;
        [x, y, z]
    };
    let only: Vec<[u32; 3]> = group.into_iter().map(position).collect();
    let launch = Launch {
        only: &only,
        limits: LIMITS,
        ..Launch::new(text.grid)
    };
    let later_starts = file.text.match_indices('\n').map(|(end, _)| end + 1);
    let starts: Vec<usize> = std::iter::once(0).chain(later_starts).collect();
    let line = |location: &Location| {
        let byte = text.filled.origin(&location.span).start;
        starts.partition_point(|start| *start <= byte) as u32
    };
    let mut buffers = reference::buffers(&file.spec, &text.counts, &inputs, 0);
    let run = record_run(&text.shader, &launch, &mut buffers, &file.text, &line);
    run.map_err(|why| why.to_string())?
        .ok_or_else(|| "no workgroup ran".to_owned())
}
