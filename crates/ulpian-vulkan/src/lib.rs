//! The Vulkan device.
//!
//! Here live the SPIR-V writer ([`spirv`]), the instance, memory, pipelines, submission and the self-test that decides
//! what a driver's arithmetic is worth. Graphs, op definitions and CPU kernels never live here. The one idea: a
//! shader contains only instructions whose bits are known, so every driver that passes the self-test gives the same
//! bits as the CPU.
//!
//! Nothing is linked against Vulkan: the loader is opened at run time, and [`open`] says what to install where there
//! is none. The environment variables are listed in [`options`].

mod cache;
mod context;
mod device;
mod dump;
pub mod faults;
mod free_list;
mod instance;
mod loader;
mod memory;
pub mod options;
mod pacing;
mod physical;
mod pipeline;
mod ring;
mod selftest;
mod sparse;
pub mod spirv;
mod submit;
mod tables;
mod timeline;

pub use device::{Vulkan, count, list, list_with, open, open_with};
pub use instance::validation_messages;
pub use options::Options;
pub use physical::DeviceSummary;
pub use submit::Between;
