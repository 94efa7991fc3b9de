//! The child process that trains. It reads commands from stdin and writes events to stdout, one JSON object on each line. It exits at the end of
//! its input, so no engine outlives its reader. It knows nothing of the screen.
//!
//! Only the engine waits for a device. Its threads are main (`session`), `device` (the CPU's queue), `writer`, `reader` and `heartbeat`. On a GPU
//! there are also `compile-ahead` threads, one for each core, until the first step was taken. The heartbeat shows that the process is alive, and
//! has the time since the work on its device made progress.

pub(crate) mod adapters;
pub mod allocator;
pub mod audit;
mod compile_ahead;
pub mod devices;
mod host;
pub mod kernel_check;
mod observer;
mod pair;
pub mod peaks;
mod queue;
mod rows;
mod session;
#[cfg(test)]
mod testing;
mod texts;
mod trainer;
mod wire;
mod worker;

use anyhow::Result;

use protocol::Event;

/// Serves one reader until the input ends or the command `quit` comes. With `kernel_texts` the engine also sends the text of each kernel that it
/// compiles.
///
/// # Errors
/// Fails when the streams cannot be set up.
pub fn serve(kernel_texts: bool) -> Result<()> {
    if kernel_texts {
        texts::log_texts();
    }
    let (outlet, commands, writer) = wire::open()?;
    if kernel_texts {
        let outlet_of_texts = outlet.clone();
        texts::send_rows(move |kernel| outlet_of_texts.send(Event::CompiledKernel(kernel)));
    }
    session::run(&outlet, &commands);
    outlet.close(writer);
    Ok(())
}
