//! The proof over every input: a device's results, held to the truth and to another device's.
//!
//! Here live the kernels that evaluate a function over a run of bit patterns, the sweep over blocks of 2^24 of them,
//! its hashes, and the record of what was found, from which a stopped proof goes on and evidence is written. How right
//! results are known lives in [`crate::truth`]; printing and files live in the command. The one idea: a device runs
//! the kernel that any user's kernel would be, on inputs it makes itself, and only results cross to the host.
//!
//! A block's hash is the SHA-256 over the SHA-256s of its chunks of 2^16 results (little-endian, every NaN canonical); a
//! function's is the SHA-256 over its block hashes.

mod evaluate;
mod evidence;
pub(crate) mod pairs;
mod record;
mod sweep;

pub use evaluate::{Evaluator, evaluate, patterns};
pub use evidence::{Reference, header, lines};
pub use pairs::pairs;
pub use record::{Block, Entry, Record, Wrong};
pub use sweep::{Outcome, Step, file_hash, sweep};

use crate::truth::{Format, Function};
use ulpian_kernel::device::DeviceError;
use ulpian_num::{Dtype, Func};

/// Inputs in a block.
pub const BLOCK: u64 = 1 << 24;
/// Results under one inner hash.
pub const CHUNK: usize = 1 << 16;
/// Wrong results kept for printing; the rest are counted.
pub const KEPT: usize = 200;

/// What is to be proven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    pub func: Func,
    pub dtype: Dtype,
    pub keep_subnormals: bool,
    /// f32 patterns, the end excluded; of the 16-bit types all 65,536 are taken, of two-argument functions the pairs.
    pub range: (u64, u64),
    /// Every `step`-th of them (of the pairs too).
    pub step: u32,
}

/// Why a proof could not be run.
#[derive(Debug, thiserror::Error)]
pub enum ProveError {
    #[error(transparent)]
    Device(#[from] DeviceError),
    #[error(transparent)]
    Record(#[from] ulpian_kernel::record::RecordError),
    #[error("prove {func}: its right values are not known here; add it to ulpian_verify::truth")]
    NoTruth { func: &'static str },
    #[error("prove: {dtype} is not proven; use f32, f16 or bf16")]
    Dtype { dtype: Dtype },
    #[error("prove: the range {low:#x}..{high:#x} is empty or beyond 0x100000000; give LO..HI with LO < HI")]
    Range { low: u64, high: u64 },
    #[error("prove: the step is 0; give 1 or more")]
    Step,
    #[error("the record of an earlier proof: {detail}; give another file with --state, or remove it")]
    State { detail: String },
}

impl Job {
    /// # Errors
    /// [`ProveError`] where the job makes no sense or the function has no truth.
    pub fn check(&self) -> Result<(), ProveError> {
        self.truth()?;
        self.format()?;
        let (low, high) = self.range;
        if low >= high || high > 1 << 32 {
            return Err(ProveError::Range { low, high });
        }
        if self.step == 0 { Err(ProveError::Step) } else { Ok(()) }
    }
    pub fn truth(&self) -> Result<Function, ProveError> {
        let func = self.func.name();
        let found = Function::named(func).filter(|f| f.arity() == self.func.arity());
        found.ok_or(ProveError::NoTruth { func })
    }
    pub fn format(&self) -> Result<Format, ProveError> {
        match self.dtype {
            Dtype::F32 => Ok(Format::F32),
            Dtype::F16 => Ok(Format::F16),
            Dtype::Bf16 => Ok(Format::Bf16),
            dtype => Err(ProveError::Dtype { dtype }),
        }
    }
    /// How many inputs there are.
    pub fn inputs(&self) -> u64 {
        match (self.func.arity(), self.dtype) {
            (1, Dtype::F32) => (self.range.1 - self.range.0).div_ceil(u64::from(self.step)),
            (1, _) => 1 << 16,
            _ => pairs::count(self.dtype).div_ceil(u64::from(self.step)),
        }
    }
    pub fn blocks(&self) -> u64 {
        self.inputs().div_ceil(BLOCK)
    }
    /// What block `b` holds: the place of its first input, and how many.
    pub fn block(&self, b: u64) -> (u64, usize) {
        let first = b * BLOCK;
        (first, (self.inputs() - first).min(BLOCK) as usize)
    }
    /// The f32 pattern of the `i`-th input.
    pub fn pattern(&self, i: u64) -> u32 {
        (self.range.0 + i * u64::from(self.step)) as u32
    }
    /// Inputs in words.
    pub fn inputs_text(&self) -> String {
        let step = if self.step == 1 { String::new() } else { format!(" step {}", self.step) };
        match (self.func.arity(), self.dtype) {
            (1, Dtype::F32) if self.range == (0, 1 << 32) && self.step == 1 => "all 2^32".into(),
            (1, Dtype::F32) => format!("{:08x}..{:x}{step}", self.range.0, self.range.1),
            (1, _) => "all 2^16".into(),
            _ => format!("{} pairs{step}", self.inputs()),
        }
    }
    pub fn mode(&self) -> &'static str {
        if self.keep_subnormals { "preserve" } else { "flush" }
    }
    /// The job without the device: equal for results that must be equal.
    pub fn key(&self) -> String {
        format!("{} {} {} {}", self.func.name(), self.dtype, self.mode(), self.inputs_text())
    }
}
