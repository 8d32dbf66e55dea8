//! What lazy graphs leave behind on a device: nothing once the device is gone, and no more than a share of its memory
//! before.

use std::sync::{Arc, Mutex, Weak};
use ulpian_graph::program_cache::forget_closed_devices;
use ulpian_graph::{HostTensor, Node, Options, read};
use ulpian_kernel::device::{Binding, Device, DeviceError, DeviceFacts, Launch, Memory};
use ulpian_ops::{amax, mul, sum};

type Given = Arc<Mutex<Vec<Weak<dyn Memory>>>>;

/// The CPU under another name, which remembers what it gave out.
#[derive(Debug)]
struct Counting {
    inner: ulpian_cpu::Cpu,
    facts: DeviceFacts,
    given: Given,
}

impl Counting {
    fn open(name: &str, memory_bytes: u64) -> (Arc<dyn Device>, Given) {
        let inner = ulpian_cpu::Cpu::new(Default::default()).expect("the CPU is always there");
        let facts = DeviceFacts { id: name.into(), memory_bytes, ..inner.facts().clone() };
        let given = Arc::new(Mutex::new(vec![]));
        (Arc::new(Counting { inner, facts, given: given.clone() }), given)
    }
}

fn held(given: &Given) -> u64 {
    given.lock().unwrap().iter().filter_map(Weak::upgrade).map(|m| m.bytes()).sum()
}

impl Device for Counting {
    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }
    fn allocate(&self, bytes: u64) -> Result<Arc<dyn Memory>, DeviceError> {
        let memory = self.inner.allocate(bytes)?;
        self.given.lock().unwrap().push(Arc::downgrade(&memory));
        Ok(memory)
    }
    fn upload(&self, to: &Binding, data: &[u8]) -> Result<(), DeviceError> {
        self.inner.upload(to, data)
    }
    fn download(&self, from: &Binding, out: &mut [u8]) -> Result<(), DeviceError> {
        self.inner.download(from, out)
    }
    fn run(&self, launch: &Launch) -> Result<(), DeviceError> {
        self.inner.run(launch)
    }
    fn synchronize(&self) -> Result<(), DeviceError> {
        self.inner.synchronize()
    }
}

/// A graph of its own for each `n`, with an intermediate of 4n bytes.
fn sum_of_squares(device: &Arc<dyn Device>, n: usize) -> f32 {
    let x = Node::host(HostTensor::new(&[n], &vec![1f32; n]).unwrap());
    // Used by two kernels, so that it has memory.
    let y = mul(&x, &sum(&x, &[], false).unwrap()).unwrap();
    let top = amax(&y, &[], false).unwrap();
    let z = sum(&mul(&y, &top).unwrap(), &[], false).unwrap();
    read(&z, device, Options::default()).unwrap().values::<f32>().unwrap()[0]
}

#[test]
fn a_closed_device_leaves_no_memory_in_use() {
    let (device, given) = Counting::open("test:closed", 0);
    let n = 1 << 12;
    assert_eq!(sum_of_squares(&device, n), (n as f32).powi(3));
    assert!(held(&given) > 0, "its programs hold their intermediates");
    drop(device);
    forget_closed_devices();
    assert_eq!(held(&given), 0);
}

#[test]
fn work_on_another_device_is_enough_to_let_go() {
    let (device, given) = Counting::open("test:first", 0);
    let (other, _) = Counting::open("test:second", 0);
    sum_of_squares(&device, 1 << 12);
    drop(device);
    sum_of_squares(&other, 1 << 10);
    assert_eq!(held(&given), 0);
}

#[test]
fn programs_of_many_shapes_hold_a_share_of_the_memory_at_most() {
    let memory = 1 << 20;
    let (device, given) = Counting::open("test:small", memory);
    for i in 0..100 {
        let n = 10_000 + i;
        sum_of_squares(&device, n);
        assert!(held(&given) <= memory / 4 + 4 * n as u64 + 4096, "{} bytes after {i}", held(&given));
    }
    // One program alone may need more than its share, and runs all the same.
    let n = 1 << 17;
    assert_eq!(sum_of_squares(&device, n), (n as f32).powi(3));
    sum_of_squares(&device, 10_000);
    assert!(held(&given) <= memory / 4, "{} bytes", held(&given));
}
