//! Comparison, the sweep over the catalogue, and its reports.
//!
//! Here lives what decides whether a number is right: per-element comparison under an op's own bound, and the sweep
//! that runs every op over every surface. No op, no bound and no device is defined here, so a test can never bring
//! its own tolerance. The one idea: bits between devices are compared by equality, values against references by the
//! op's stated bound, and each bound must be seen to reject something.

pub mod compare;
pub mod page;
pub mod planted;
pub mod prove;
pub mod sweep;
pub mod tape;
pub mod truth;
