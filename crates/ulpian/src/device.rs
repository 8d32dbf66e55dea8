//! Names of devices, and how one is opened.
//!
//! Here live the list and the names: `cpu`, always there, and `vulkan:N` where a Vulkan loader is installed. What a
//! device does lives in its own crate. The one idea: nothing falls back; a name that cannot be had is an error that
//! says what can.

use crate::error::Result;
use std::sync::Arc;
use ulpian_kernel::device::{Device, DeviceError};

pub use ulpian_cpu::{Isa, Options as CpuOptions};
pub use ulpian_vulkan::Options as VulkanOptions;

/// How devices are opened.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// Threads and instruction set of the CPU.
    pub cpu: CpuOptions,
    /// Loader, validation, caches of Vulkan; from the environment when `None`.
    pub vulkan: Option<VulkanOptions>,
}

/// A device that can be asked for by `id`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// What [`open`] takes.
    pub id: String,
    /// The vendor's name of it.
    pub name: String,
    /// `CPU`, `discrete GPU`, `integrated GPU`, `virtual GPU` or `other`; a Vulkan driver that computes on the CPU says
    /// `CPU` too.
    pub kind: &'static str,
}

/// Every device of this machine: the CPU first. The second value says why there are no Vulkan devices, when there is a
/// reason; that is no error, since a machine may have none.
pub fn devices(options: &OpenOptions) -> (Vec<Listed>, Option<DeviceError>) {
    let mut all = vec![Listed { id: "cpu".into(), name: "this machine's CPU".into(), kind: "CPU" }];
    let found = match &options.vulkan {
        Some(o) => ulpian_vulkan::list_with(o),
        None => ulpian_vulkan::list(),
    };
    match found {
        Ok(found) if found.is_empty() => {
            let remedy = "a Vulkan loader is here, but no driver that it finds has a device; install one (Debian and Ubuntu: \
                          `apt install mesa-vulkan-drivers`, or the GPU vendor's), or see what VK_DRIVER_FILES names";
            (all, Some(DeviceError::NotFound { asked: "any Vulkan device".into(), remedy: remedy.into() }))
        }
        Ok(found) => {
            all.extend(found.into_iter().map(|d| Listed { id: d.id, name: d.name, kind: d.kind }));
            (all, None)
        }
        Err(e) => (all, Some(e)),
    }
}

/// Opens `cpu` or `vulkan:N`.
///
/// # Errors
/// [`DeviceError::NotFound`] for another name or an index that is not there, [`DeviceError::NoLoader`] where Vulkan is
/// not installed, [`DeviceError::Refused`] for a device that fails the self-test.
pub fn open(id: &str) -> Result<Arc<dyn Device>> {
    open_with(id, &OpenOptions::default())
}

/// As [`open`], with options.
pub fn open_with(id: &str, options: &OpenOptions) -> Result<Arc<dyn Device>> {
    // A device that was closed should leave its memory to the one that takes its place.
    ulpian_graph::program_cache::forget_closed_devices();
    let unknown = || DeviceError::NotFound {
        asked: id.into(),
        remedy:
            "devices are called cpu or vulkan:0, vulkan:1, …; `ulpian devices` lists those of this machine"
                .into(),
    };
    if id == "cpu" {
        return Ok(Arc::new(ulpian_cpu::Cpu::new(options.cpu)?));
    }
    let index = id.strip_prefix("vulkan:").filter(|n| n.bytes().all(|b| b.is_ascii_digit()));
    let index: usize = index.and_then(|n| n.parse().ok()).ok_or_else(unknown)?;
    Ok(match &options.vulkan {
        Some(o) => ulpian_vulkan::open_with(index, o)?,
        None => ulpian_vulkan::open(index)?,
    })
}

/// The device that work should go to when nobody says: the first Vulkan device that does not compute on the CPU and
/// passes its self-test, else the CPU.
pub fn best(options: &OpenOptions) -> Result<Arc<dyn Device>> {
    let (all, _) = devices(options);
    for d in all.iter().filter(|d| d.kind != "CPU") {
        if let Ok(device) = open_with(&d.id, options) {
            return Ok(device);
        }
    }
    open_with("cpu", options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn bad_names_are_named() {
        for bad in ["", "gpu", "cpu:0", "vulkan", "vulkan:", "vulkan:-1", "vulkan:x", "vulkan:+1"] {
            match open(bad) {
                Err(Error::Device(DeviceError::NotFound { asked, .. })) => assert_eq!(asked, bad),
                other => panic!("{bad:?} gave {other:?}"),
            }
        }
    }

    #[test]
    fn the_cpu_is_always_there() {
        let (all, _) = devices(&OpenOptions::default());
        assert_eq!(all[0].id, "cpu");
        assert_eq!(open("cpu").unwrap().facts().id, "cpu");
    }
}
