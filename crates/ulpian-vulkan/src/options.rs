//! How a device is opened: what the environment says, as a value that tests can make without touching it.
//!
//! | variable | meaning |
//! | --- | --- |
//! | `ULPIAN_VULKAN_LOADER` | path of the Vulkan loader to open instead of the system's |
//! | `ULPIAN_VALIDATE` | `1`: run under the Khronos validation layer and count its messages; `0` or empty: do not |
//! | `ULPIAN_CACHE` | cache folder; else `$XDG_CACHE_HOME/ulpian`, else `~/.cache/ulpian`; `0`, `off` or empty: no disk cache |
//! | `ULPIAN_DUMP` | folder, made if need be, that receives IR, SPIR-V and disassembly of each kernel |
//! | `ULPIAN_KERNELS` | folder, which must be there, whose `HASH.spv` files replace kernels' SPIR-V |
//! | `ULPIAN_DOUBLES` | `1` or `0`: f32 functions take their fast paths through doubles, or not; else by the self-test. Speed alone |
//! | `ULPIAN_FAULT` | planted faults, see [`ulpian_kernel::faults`] |

use crate::faults::FaultPlan;
use std::path::PathBuf;
use ulpian_kernel::device::DeviceError;

/// See the module's table.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub loader: Option<PathBuf>,
    pub validate: bool,
    /// None: nothing is read from or written to disk.
    pub cache: Option<PathBuf>,
    pub dump: Option<PathBuf>,
    pub kernels: Option<PathBuf>,
    /// Whether f32 functions go through doubles; None: as the self-test measures. Changes no bit of any result.
    pub doubles: Option<bool>,
    pub faults: FaultPlan,
    /// Bytes of one allocation at most, where the driver allows more: shows on small buffers how large ones are
    /// treated.
    pub largest_allocation: Option<u64>,
    /// Invocations in a group at most, where the device offers more (128 are needed): shows that bits do not depend on
    /// it, and what it costs.
    pub largest_group: Option<u32>,
    /// Whether a thread may hold 128 accumulators of a product; None: as is known of the vendor's devices. Changes no bit.
    pub many_registers: Option<bool>,
    /// Another queue family than the device's main one: shows what the choice costs.
    pub queue_family: Option<u32>,
}

fn path(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from)
}

/// The folder that `ULPIAN_CACHE` names, or the user's own for ulpian; `None` where nothing is to be kept on disk.
pub fn cache_folder() -> Option<PathBuf> {
    match std::env::var_os("ULPIAN_CACHE") {
        Some(v) if v.is_empty() || v == "0" || v == "off" => None,
        Some(v) => Some(PathBuf::from(v)),
        None => path("XDG_CACHE_HOME")
            .or_else(|| path("HOME").map(|h| h.join(".cache")))
            .map(|c| c.join("ulpian")),
    }
}

impl Options {
    /// Reads the environment.
    ///
    /// # Errors
    /// [`DeviceError::Setting`] for a variable whose value means nothing.
    pub fn from_env() -> Result<Options, DeviceError> {
        let wrong = |variable: &str, wanted: &str| {
            let value = std::env::var_os(variable).unwrap_or_default().to_string_lossy().into_owned();
            DeviceError::Setting { variable: variable.into(), value, wanted: wanted.into() }
        };
        let validate = match std::env::var_os("ULPIAN_VALIDATE") {
            None => false,
            Some(v) if v.is_empty() || v == "0" => false,
            Some(v) if v == "1" => true,
            Some(_) => {
                return Err(wrong(
                    "ULPIAN_VALIDATE",
                    "wanted 1 (run under the validation layer) or 0 (do not)",
                ));
            }
        };
        let (dump, kernels) = (ulpian_kernel::dump::folder()?, path("ULPIAN_KERNELS"));
        if kernels.as_ref().is_some_and(|p| !p.is_dir()) {
            return Err(wrong(
                "ULPIAN_KERNELS",
                "no such folder; wanted one with HASH.spv files (HASH as ULPIAN_DUMP names them)",
            ));
        }
        let doubles = match std::env::var_os("ULPIAN_DOUBLES") {
            None => None,
            Some(v) if v.is_empty() => None,
            Some(v) if v == "0" || v == "1" => Some(v == "1"),
            Some(_) => {
                return Err(wrong(
                    "ULPIAN_DOUBLES",
                    "wanted 1 (f32 functions go through doubles) or 0 (do not)",
                ));
            }
        };
        Ok(Options {
            doubles,
            loader: path("ULPIAN_VULKAN_LOADER"),
            validate,
            cache: cache_folder(),
            dump,
            kernels,
            faults: FaultPlan::from_env()?,
            ..Options::default()
        })
    }
}
