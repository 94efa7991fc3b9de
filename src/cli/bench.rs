//! `perflings bench`: versions of presets on devices, each a finite run of a fresh engine, as a table, JSON or
//! Markdown; against an earlier result, knob by knob, or over sizes. Figures come from the runs and from nowhere else.

mod ablate;
mod args;
mod figures;
mod gate;
mod matrix;
mod missing;
mod plan;
mod rank;
mod rig;
mod sheet;
mod sweep;
mod target;

use anyhow::Result;

pub use args::BenchArgs;

use crate::config::RunConfig;
use crate::measure::drive::engine_command;
use crate::measure::machine;
use crate::out::Exit;
use rig::Rig;
use target::Target;

pub fn bench(args: &BenchArgs) -> Result<Exit> {
    args.check()?;
    let target = Target::open(args)?;
    if args.ablate.is_some() {
        ablate::ablate(args, target)
    } else if args.sweep.is_some() {
        sweep::sweep(args, target)
    } else {
        matrix::matrix(args, target)
    }
}

/// An engine for these configurations; what cannot fit into this machine is refused before anything starts.
fn rig(args: &BenchArgs, devices: &[String], configs: &[Vec<&RunConfig>]) -> Result<Rig> {
    let command = engine_command(args.engine.as_deref())?;
    if command.is_own() {
        for device in devices {
            for together in configs {
                machine::check_memory(device, together)?;
            }
        }
    }
    Rig::new(command)
}
