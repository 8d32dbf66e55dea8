//! What users import.
//!
//! Here live data sets and the files that tensors are kept in. Kernels, drivers and the rules of ops never live here.
//! The one idea: everything that comes from outside (a file, a folder, a disk that may be full) is checked before it
//! is believed, and a failure is a typed error that leaves nothing half-done.

pub mod data;
pub mod io;
