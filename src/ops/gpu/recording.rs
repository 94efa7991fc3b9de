//! A step's launches, recorded once and replayed: what CUDA calls a graph. A replay finds no pipeline, binds no buffer and
//! allocates nothing again; the host only encodes the dispatches. Kernels read and write the buffers they were recorded with.

use anyhow::{Result, anyhow};
use burn::cubecl::bytes::Bytes;
use burn::cubecl::client::Graph;
use burn_cubecl::tensor::CubeTensor;

/// Recorded launches. Every page of memory that they were given stays theirs.
pub struct Recording(Graph);

impl Recording {
    /// Runs `work` on the device of `like`, which leaves the memory behind that it takes, and then records what it launches
    /// without running it.
    ///
    /// # Errors
    /// When `work` does anything besides launching: writing to the device, reading or waiting.
    pub fn new(like: &CubeTensor, mut work: impl FnMut()) -> Result<Self> {
        let failed = |error| anyhow!("{error:?}");
        like.client.graph_prepare().map_err(failed)?;
        work();
        like.client.start_capture().map_err(failed)?;
        work();
        like.client.stop_capture().map(Self).map_err(failed)
    }

    /// Launches it all again.
    ///
    /// # Errors
    /// When the device refuses.
    pub fn replay(&self) -> Result<()> {
        // SAFETY: the recording guards the memory of every buffer it was given, so none is given to another tensor; one
        // thread launches, on the stream of the recording.
        unsafe { self.0.replay() }.map_err(|error| anyhow!("{error:?}"))
    }
}

/// Overwrites a contiguous tensor of 32-bit integers, such as a recording's input.
pub fn write(tensor: &CubeTensor, values: &[i32]) {
    debug_assert_eq!(tensor.meta.num_elements(), values.len());
    let bytes = Bytes::from_elems(values.to_vec());
    tensor.client.write(&tensor.handle, bytes);
}
