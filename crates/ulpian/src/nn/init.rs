//! First values of parameters.

use crate::error::Result;
use crate::tensor::Tensor;
use std::sync::Arc;
use ulpian_kernel::device::Device;
use ulpian_num::Dtype;

/// Makes parameters one after another, each from its own Philox stream (0, 1, 2, … in order of definition), so that
/// first weights depend on the seed and the model alone: never on the device.
#[derive(Debug)]
pub struct Init {
    device: Arc<dyn Device>,
    dtype: Dtype,
    seed: u64,
    stream: u64,
}

impl Init {
    pub fn new(device: &Arc<dyn Device>, dtype: Dtype, seed: u64) -> Init {
        Init { device: device.clone(), dtype, seed, stream: 0 }
    }
    /// Uniform in ±1/√`fan_in`, rounded once: what PyTorch's `kaiming_uniform_(a=√5)` gives for weights and what its
    /// layers use for biases. The distribution is PyTorch's, the random numbers are not.
    pub fn kaiming(&mut self, shape: &[usize], fan_in: usize) -> Result<Tensor> {
        let bound = if fan_in == 0 { 0.0 } else { 1.0 / (fan_in as f64).sqrt() };
        let stream = self.stream;
        self.stream += 1;
        Tensor::uniform(&self.device, self.dtype, shape, (-bound, bound), self.seed, stream)
    }
}
