//! Kernels as files for people: where they go, how they are called, and the file of the IR that every device writes.
//!
//! `ULPIAN_DUMP=DIR` receives `NAME-HASH.ir` of each kernel that a device makes ready; a device that makes something else
//! of it (a shader, say) puts that beside it. Nothing is read back here.

use crate::device::{DeviceError, Prepared};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The variable's name.
pub const VARIABLE: &str = "ULPIAN_DUMP";

/// The folder that `ULPIAN_DUMP` names; it need not be there yet.
///
/// # Errors
/// [`DeviceError::Setting`] where something else stands at that path.
pub fn folder() -> Result<Option<PathBuf>, DeviceError> {
    let Some(value) = std::env::var_os(VARIABLE).filter(|v| !v.is_empty()) else { return Ok(None) };
    let path = PathBuf::from(value);
    if path.exists() && !path.is_dir() {
        return Err(DeviceError::Setting {
            variable: VARIABLE.into(),
            value: path.to_string_lossy().into_owned(),
            wanted: "not a folder; wanted one to write kernels to, new or there".into(),
        });
    }
    Ok(Some(path))
}

/// Writes a kernel's IR; the folder is made if need be. Returns the path without its ending, for what goes beside it.
///
/// # Errors
/// Those of the file system.
pub fn write_ir(folder: &Path, kernel: &Prepared) -> std::io::Result<PathBuf> {
    std::fs::create_dir_all(folder)?;
    let letter = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let safe: String = kernel.kernel.name.chars().map(letter).take(80).collect();
    let base = folder.join(format!("{safe}-{}", hex(&kernel.hash)));
    std::fs::write(base.with_extension("ir"), format!("; sha256 {}\n{}", hex(&kernel.hash), kernel.kernel))?;
    Ok(base)
}

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut s, b| {
        let _ = write!(s, "{b:02x}");
        s
    })
}
