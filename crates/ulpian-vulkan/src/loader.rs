//! Opens the Vulkan loader at run time, so that a program that holds this crate starts on machines without Vulkan.

use std::path::Path;
use ulpian_kernel::device::DeviceError;

/// The loader's entry points, from `path` or from where the system keeps it.
pub(crate) fn open(path: Option<&Path>) -> Result<ash::Entry, DeviceError> {
    // SAFETY: opening a Vulkan loader runs its initialisers, which is what the user asked for; the entry keeps the
    // library open as long as any function pointer taken from it can be called.
    let opened = unsafe {
        match path {
            Some(path) => ash::Entry::load_from(path),
            None => ash::Entry::load(),
        }
    };
    opened.map_err(|e| {
        let what =
            path.map_or("the Vulkan loader".to_string(), |p| format!("the Vulkan loader `{}`", p.display()));
        DeviceError::NoLoader { loader: format!("{what} could not be opened ({e})") }
    })
}
