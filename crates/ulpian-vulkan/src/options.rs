//! How a device is opened: what the environment says, as a value that tests can make without touching it.
//!
//! | variable | meaning |
//! | --- | --- |
//! | `ULPIAN_VULKAN_LOADER` | path of the Vulkan loader to open instead of the system's |
//! | `ULPIAN_VALIDATE` | `1`: run under the Khronos validation layer and count its messages |
//! | `ULPIAN_CACHE` | cache folder; else `$XDG_CACHE_HOME/ulpian`, else `~/.cache/ulpian`; `0`, `off` or empty: no disk cache |
//! | `ULPIAN_DUMP` | folder that receives IR, SPIR-V and disassembly of each kernel |
//! | `ULPIAN_KERNELS` | folder whose `HASH.spv` files replace kernels' SPIR-V |
//! | `ULPIAN_FAULT` | planted faults, see [`crate::faults`] |

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
    pub faults: FaultPlan,
}

impl Options {
    /// Reads the environment. Fails only on a malformed `ULPIAN_FAULT`.
    pub fn from_env() -> Result<Options, DeviceError> {
        let path = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let cache = match std::env::var_os("ULPIAN_CACHE") {
            Some(v) if v.is_empty() || v == "0" || v == "off" => None,
            Some(v) => Some(PathBuf::from(v)),
            None => path("XDG_CACHE_HOME")
                .or_else(|| path("HOME").map(|h| h.join(".cache")))
                .map(|c| c.join("ulpian")),
        };
        Ok(Options {
            loader: path("ULPIAN_VULKAN_LOADER"),
            validate: std::env::var_os("ULPIAN_VALIDATE").is_some_and(|v| v == "1"),
            cache,
            dump: path("ULPIAN_DUMP"),
            kernels: path("ULPIAN_KERNELS"),
            faults: FaultPlan::parse(&std::env::var("ULPIAN_FAULT").unwrap_or_default())?,
        })
    }
}
