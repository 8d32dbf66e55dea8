//! A device that runs every kernel through the plainest reading of the IR, one lane at a time.

use std::any::Any;
use std::sync::{Arc, Mutex};
use ulpian_kernel::device::{Binding, Device, DeviceError, DeviceFacts, Launch, Memory};
use ulpian_kernel::interp::oracle;
use ulpian_kernel::ir::Access;
use ulpian_num::Dtype;

#[derive(Debug)]
pub struct OracleDevice {
    facts: DeviceFacts,
}

#[derive(Debug)]
struct Bytes(Mutex<Vec<u8>>);

impl Memory for Bytes {
    fn bytes(&self) -> u64 {
        self.0.lock().unwrap().len() as u64
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl OracleDevice {
    pub fn open() -> Arc<dyn Device> {
        Self::with_dtypes(Dtype::TENSOR.to_vec())
    }
    pub fn with_dtypes(dtypes: Vec<Dtype>) -> Arc<dyn Device> {
        let facts = DeviceFacts {
            id: "oracle".into(),
            name: "oracle".into(),
            driver: "none".into(),
            dtypes,
            can_keep_subnormals: false,
            fused_fma: false,
            memory_bytes: 0,
            max_allocation_bytes: 0,
            limits: vec![],
            self_test: vec![],
        };
        Arc::new(OracleDevice { facts })
    }
}

fn bytes(b: &Binding) -> &Mutex<Vec<u8>> {
    &b.memory.as_any().downcast_ref::<Bytes>().expect("memory of this device").0
}

impl Device for OracleDevice {
    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }
    fn allocate(&self, bytes: u64) -> Result<Arc<dyn Memory>, DeviceError> {
        Ok(Arc::new(Bytes(Mutex::new(vec![0; bytes.max(16).next_multiple_of(16) as usize]))))
    }
    /// Filled with a pattern, so that reading what nobody wrote shows.
    fn allocate_unfilled(&self, bytes: u64) -> Result<Arc<dyn Memory>, DeviceError> {
        Ok(Arc::new(Bytes(Mutex::new(vec![0xa5; bytes.max(16).next_multiple_of(16) as usize]))))
    }
    fn upload(&self, to: &Binding, data: &[u8]) -> Result<(), DeviceError> {
        let at = to.offset as usize;
        bytes(to).lock().unwrap()[at..at + data.len()].copy_from_slice(data);
        Ok(())
    }
    fn download(&self, from: &Binding, out: &mut [u8]) -> Result<(), DeviceError> {
        let at = from.offset as usize;
        out.copy_from_slice(&bytes(from).lock().unwrap()[at..at + out.len()]);
        Ok(())
    }
    fn run(&self, launch: &Launch) -> Result<(), DeviceError> {
        let kernel = &launch.kernel.kernel;
        let mut buffers: Vec<Vec<u8>> =
            launch.bindings.iter().map(|b| bytes(b).lock().unwrap()[b.offset as usize..].to_vec()).collect();
        oracle::run(kernel, launch.programs, &mut buffers, &launch.params).map_err(|e| {
            DeviceError::Kernel {
                device: "oracle".into(),
                kernel: kernel.name.clone(),
                detail: e.to_string(),
            }
        })?;
        for ((b, data), declared) in launch.bindings.iter().zip(buffers).zip(&kernel.buffers) {
            if declared.access == Access::Write {
                bytes(b).lock().unwrap()[b.offset as usize..].copy_from_slice(&data);
            }
        }
        Ok(())
    }
    fn synchronize(&self) -> Result<(), DeviceError> {
        Ok(())
    }
}
