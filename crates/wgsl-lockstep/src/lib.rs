//! Runs a WGSL compute shader on the host and examines its memory accesses. The invocations of a workgroup execute naga's validated
//! module together, in lockstep under masks: each expression is evaluated for all active lanes at once. Shadow memory beside the
//! buffers and the workgroup variables detects races and reads of memory that was never written. A barrier under a partial mask is a
//! barrier that some invocations do not reach. Findings do not depend on a driver's schedule: two accesses race if no barrier orders
//! them, whichever came first here.
//!
//! As in WGSL, `workgroupBarrier` orders workgroup memory only and `storageBarrier` orders storage only. No barrier orders the storage
//! accesses of two workgroups, so they race unless they are atomic, even in a kernel that counts its finished workgroups. An
//! invocation that waits for another in a loop waits forever, as on many devices. Workgroup memory starts as zeros, and reading it
//! before writing it is still reported.
//!
//! The subset of WGSL that runs has f32, f16, u32, i32 and bool with their vectors and matrices, structs, arrays, atomics, functions,
//! loops and barriers, overrides, operations of subgroups, and cooperative matrices as naga writes them. Not supported, and refused or
//! reported with the line: textures, samplers and binding arrays, 64-bit numbers and 16-bit integers, cooperative matrices in private
//! memory, ray tracing.
//!
//! An operation whose result WGSL leaves open is a finding ([`OpenResult`]). What a device may do with arithmetic beyond that is a
//! [`Liberty`]: the report says where one would change a number, and a launch can take it.
//!
//! A sum of 64 numbers in workgroup memory that lacks the barrier between two rounds:
//!
//! ```
//! use wgsl_lockstep::{Buffer, FindingKind, Launch, Shader};
//! let shader = Shader::parse(
//!     "@group(0) @binding(0) var<storage, read_write> x: array<f32>;
//!      var<workgroup> sums: array<f32, 64>;
//!      @compute @workgroup_size(64)
//!      fn main(@builtin(local_invocation_index) lane: u32) {
//!          sums[lane] = x[lane];
//!          workgroupBarrier();
//!          for (var half = 32u; half > 0u; half /= 2u) {
//!              if (lane < half) { sums[lane] += sums[lane + half]; }
//!          }
//!          if (lane == 0u) { x[0] = sums[0]; }
//!      }",
//! )?;
//! let mut buffers = [Buffer::from_f32(0, 0, &[1.0; 64])];
//! let report = shader.run(&Launch::new([1, 1, 1]), &mut buffers, &mut ())?;
//! let race = &report.findings[0];
//! assert_eq!((race.kind, race.location.line), (FindingKind::Race, 8));
//! println!("{race}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`lanes`] records what each lane of a workgroup does, step by step. [`mutants`] makes wrong kernels from a right one, to measure how
//! good a check is.
//!
//! [`exact`] runs a plain loop with numbers that carry their error: the bounds within which the results of another kernel are right.
//!
//! The interpreter is one type, in `interpreter`, whose methods are in files that use each other: `prepare` starts it, `execute` runs
//! statements, `evaluate` evaluates expressions, `pointer` finds the part of a variable, `access` loads and stores, `collective` and
//! `subgroup` run operations of several lanes, and `open` checks operations whose result WGSL leaves open. Before a run, `code` works
//! out the types of a function's expressions, and `flow` which values depend on memory.

mod access;
mod arithmetic;
mod code;
mod collective;
mod evaluate;
pub mod exact;
mod execute;
mod finding;
mod flow;
mod interpreter;
pub mod lanes;
mod launch;
mod layout;
mod math;
mod memory;
pub mod mutants;
mod observer;
mod open;
mod pointer;
mod prepare;
mod report;
mod shader;
mod subgroup;
mod value;

pub use finding::{Finding, FindingKind, Invocation, OtherAccess};
pub use launch::{Buffer, Launch, LaunchLimits, RunError, STACK_BYTES, SUBGROUP_SIZES};
pub use observer::{Access, AccessKind, Arrival, OUTSIDE, Observer, Space, StatementStart};
pub use open::{Liberty, OpenResult};
pub use report::{AccessCount, Branch, LaunchReport, Unwritten};
pub use shader::{Location, Shader, SourceError};

/// The example of the README, compiled and run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
