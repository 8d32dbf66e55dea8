//! What the writer must know of a device. Holds no Vulkan types and asks no driver: the device fills it in.

/// Part of every cache key: the sources of this crate, of the kernels' meaning (the length of a product's blocks is
/// theirs) and of the functions it writes out.
pub fn writer_version() -> String {
    format!("{}-{}-{}", env!("SOURCE_HASH"), ulpian_kernel::SOURCE_HASH, ulpian_num::SOURCE_HASH)
}

/// Device facts that shape a shader; equal caps give equal words.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Caps {
    /// 64-bit integers in shaders (`shaderInt64`).
    pub int64: bool,
    /// Doubles in shaders (`shaderFloat64`), sound by the self-test.
    pub float64: bool,
    /// Doubles at a quarter of the rate of f32 or better, by the self-test, or [`Options::doubles`](crate::Options).
    pub fast_float64: bool,
    /// 16-bit storage through physical pointers (`storageBuffer16BitAccess`).
    pub storage16: bool,
    /// 8-bit storage through physical pointers (`storageBuffer8BitAccess`).
    pub storage8: bool,
    /// `GLSL.std.450 Fma` on f32 rounds once, by the self-test.
    pub fused_fma: bool,
    /// f32 arithmetic flushes subnormal operands and results as the contract says, by the self-test.
    pub flushes_f32: bool,
    /// Execution mode RoundingModeRTE is offered for 32 and 64 bits.
    pub rte32: bool,
    pub rte64: bool,
    /// Execution mode SignedZeroInfNanPreserve is offered for 32 and 64 bits.
    pub szinp32: bool,
    pub szinp64: bool,
    pub max_workgroup_invocations: u32,
    pub max_shared_bytes: u32,
    pub subgroup_size: u32,
    /// A thread's registers hold 128 accumulators of a product, and as many products run at once as with half of them.
    pub many_registers: bool,
}
