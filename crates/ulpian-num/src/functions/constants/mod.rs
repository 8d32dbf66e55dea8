//! The functions' constants, all written by `tools/generate.py`, but for `half`, which names its own generator.
// First halves of pairs look like shorter spellings of the standard library's constants, and are exact as they are.
#![allow(clippy::approx_constant)]

pub(super) mod activation;
pub(super) mod arc;
pub(super) mod doubles_erf;
pub(super) mod doubles_erfinv;
pub(super) mod doubles_exp;
pub(super) mod doubles_log;
pub(super) mod doubles_quotient;
pub(super) mod doubles_trig;
pub(super) mod erf;
pub(super) mod erfinv;
pub(super) mod exp;
pub(super) mod gamma;
pub(super) mod half;
pub(super) mod log;
pub(super) mod pow;
pub(crate) mod readings;
pub(crate) mod trig;
