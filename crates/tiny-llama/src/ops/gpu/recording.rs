//! A step's launches, recorded once and replayed, like a CUDA graph. A replay looks up no pipeline, binds no buffer and allocates
//! nothing; the host only encodes the dispatches. Kernels read and write the buffers with which they were recorded.

use anyhow::{Result, anyhow};
use burn::cubecl::bytes::Bytes;
use burn::cubecl::client::Graph;
use burn_cubecl::tensor::CubeTensor;

/// Recorded launches. The recording keeps every page of memory that they use.
pub struct LaunchRecording(Graph);

impl LaunchRecording {
    /// Runs `work` twice on the device of `like`: first to allocate its memory, then to record its launches without running them.
    ///
    /// # Errors
    /// When `work` does anything other than launching: writing to the device, reading or waiting.
    pub fn new(like: &CubeTensor, mut work: impl FnMut()) -> Result<Self> {
        let failed = |error| anyhow!("{error:?}");
        like.client.graph_prepare().map_err(failed)?;
        work();
        if let Err(error) = like.client.start_capture() {
            // A capture that was prepared must also be ended.
            drop(like.client.stop_capture());
            return Err(failed(error));
        }
        work();
        like.client.stop_capture().map(Self).map_err(failed)
    }

    /// Runs all launches again.
    ///
    /// # Errors
    /// When the device reports an error.
    pub fn replay(&self) -> Result<()> {
        // SAFETY: the recording keeps the memory of all its buffers, so no other tensor gets it; one thread launches, on the stream
        // of the recording.
        unsafe { self.0.replay() }.map_err(|error| anyhow!("{error:?}"))
    }
}

/// Overwrites a contiguous tensor of 32-bit integers, such as a recording's input.
pub fn write(tensor: &CubeTensor, values: &[i32]) {
    debug_assert_eq!(tensor.meta.num_elements(), values.len());
    let bytes = Bytes::from_elems(values.to_vec());
    tensor.client.write(&tensor.handle, bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::gpu::check::TestDevice;
    use crate::ops::gpu::reduce::sum_parts;
    use burn::tensor::{DType, Int, Tensor, TensorData};

    #[test]
    fn a_replay_reads_values_that_were_written_after_the_recording() {
        let Some(device) = TestDevice::any() else {
            return;
        };
        let x = device.tensor(&[1.0, 2.0, 3.0, 4.0], [2, 2]);
        let mut sum = None;
        let work = || sum = Some(sum_parts([x.clone()], [2], None));
        let recording = LaunchRecording::new(&x, work).expect("one launch");
        let [sum] = sum.expect("it worked");
        recording.replay().expect("the device works");
        assert_eq!(device.read(&sum), [4.0, 6.0]);
        let bits = [5.0_f32, 6.0, 7.0, 8.0].map(|value| value.to_bits() as i32);
        write(&x, &bits);
        recording.replay().expect("the device works");
        assert_eq!(device.read(&sum), [12.0, 14.0]);
    }

    #[test]
    fn work_that_copies_to_the_device_is_refused_and_the_next_recording_works() {
        let Some(device) = TestDevice::any() else {
            return;
        };
        let x = device.tensor(&[1.0, 2.0, 3.0, 4.0], [2, 2]);
        let copies = || {
            let data = TensorData::new(vec![1, 2, 3, 4], [4]);
            drop(Tensor::<1, Int>::from_data(
                data,
                (&device.burn(), DType::I32),
            ));
            drop(sum_parts([x.clone()], [2], None));
        };
        assert!(LaunchRecording::new(&x, copies).is_err());
        assert!(LaunchRecording::new(&x, || drop(sum_parts([x.clone()], [2], None))).is_ok());
    }
}
