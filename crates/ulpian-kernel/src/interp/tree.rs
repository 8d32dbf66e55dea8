//! The index-adjacent tree in vectors: several levels at once, from a vector of lanes to one sum, nothing written in
//! between.

use super::Isa;

/// Lanes that one step of each takes.
const STEP_512: usize = 256;
const STEP_256: usize = 64;

/// The tree's inner loop of an instruction set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tree {
    isa: Isa,
    /// Neighbours that become one sum.
    pub leaves: usize,
}

impl Tree {
    /// `None` where sums go level by level.
    pub fn of(isa: Isa) -> Option<Tree> {
        match isa {
            Isa::Avx512 => Some(Tree { isa, leaves: 16 }),
            Isa::Avx2 => Some(Tree { isa, leaves: 8 }),
            Isa::Scalar | Isa::Neon => None,
        }
    }

    /// Lanes come in multiples of this.
    pub fn step(self) -> usize {
        self.leaves * self.leaves
    }

    /// `to[i]` = the tree over `leaves` lanes from `from[leaves * i]` on, for `n` lanes at `from`.
    ///
    /// # Safety
    /// The instruction set is available; `n`, a multiple of [`Tree::step`], lanes at `from`, room for the sums at `to`,
    /// apart.
    pub unsafe fn sums(self, keep: bool, from: *const f32, to: *mut f32, n: usize) {
        // SAFETY: passed on.
        unsafe {
            match self.isa {
                Isa::Avx512 => sixteenths(keep, from, to, n),
                _ => eighths(keep, from, to, n),
            }
        }
    }
}

/// Round to nearest even, exceptions masked, subnormals flushed (FTZ and DAZ) or kept.
const FLUSH: u32 = 0x9fc0;
const KEEP: u32 = 0x1f80;

/// Sums of neighbours inside each quarter: `[x0+x1, x2+x3, y0+y1, y2+y3]`.
macro_rules! near {
    ($to:literal, $x:literal, $y:literal, $spare:literal) => {
        concat!(
            "vshufps ", $spare, ", ", $x, ", ", $y, ", 0xdd\n", "vshufps ", $to, ", ", $x, ", ", $y,
            ", 0x88\n", "vaddps ", $to, ", ", $to, ", ", $spare,
        )
    };
}
/// Sums of neighbouring quarters: `[X0+X1, X2+X3, Y0+Y1, Y2+Y3]`.
macro_rules! far {
    ($to:literal, $x:literal, $y:literal, $spare:literal) => {
        concat!(
            "vshuff32x4 ",
            $spare,
            ", ",
            $x,
            ", ",
            $y,
            ", 0xdd\n",
            "vshuff32x4 ",
            $to,
            ", ",
            $x,
            ", ",
            $y,
            ", 0x88\n",
            "vaddps ",
            $to,
            ", ",
            $to,
            ", ",
            $spare,
        )
    };
}
/// Four vectors from `at` on: lane j of quarter q is the sum of quarter q of vector j.
macro_rules! quad {
    ($to:literal, $a:literal, $b:literal, $c:literal, $d:literal) => {
        concat!(
            "vmovups zmm16, [rsi + ",
            $a,
            "]\n",
            "vmovups zmm17, [rsi + ",
            $b,
            "]\n",
            "vmovups zmm18, [rsi + ",
            $c,
            "]\n",
            "vmovups zmm19, [rsi + ",
            $d,
            "]\n",
            near!("zmm20", "zmm16", "zmm17", "zmm21"),
            "\n",
            near!("zmm22", "zmm18", "zmm19", "zmm23"),
            "\n",
            near!($to, "zmm20", "zmm22", "zmm21"),
        )
    };
}

/// `to[i]` = the tree over `from[16i..16i + 16]`, for `n` lanes at `from`, a multiple of [`STEP_512`].
///
/// The flush is the control register's doing: a sum under FTZ and DAZ is exactly the contract's.
///
/// # Safety
/// The machine has AVX-512 F; `n` lanes at `from`, room for `n / 16` at `to`, apart.
#[target_feature(enable = "avx512f")]
unsafe fn sixteenths(keep: bool, from: *const f32, to: *mut f32, n: usize) {
    if n < STEP_512 {
        return;
    }
    let mut control = [if keep { KEEP } else { FLUSH }, 0u32];
    // SAFETY: the caller's promise. The control register leaves as it came, the stack
    // is not touched, and every register used is declared.
    unsafe {
        std::arch::asm!(
            "stmxcsr [rax + 4]",
            "ldmxcsr [rax]",
            ".p2align 5",
            "2:",
            quad!("zmm24", "0", "64", "128", "192"),
            quad!("zmm25", "256", "320", "384", "448"),
            quad!("zmm26", "512", "576", "640", "704"),
            quad!("zmm27", "768", "832", "896", "960"),
            far!("zmm28", "zmm24", "zmm25", "zmm30"),
            far!("zmm29", "zmm26", "zmm27", "zmm31"),
            // Quarter p, lane j: the sum of vector 4p+j.
            far!("zmm24", "zmm28", "zmm29", "zmm30"),
            "vmovups [rdi], zmm24",
            "add rsi, 1024",
            "add rdi, 64",
            "dec rcx",
            "jnz 2b",
            "ldmxcsr [rax + 4]",
            in("rax") control.as_mut_ptr(),
            inout("rsi") from => _,
            inout("rdi") to => _,
            inout("rcx") n / STEP_512 => _,
            out("zmm16") _, out("zmm17") _, out("zmm18") _, out("zmm19") _, out("zmm20") _, out("zmm21") _,
            out("zmm22") _, out("zmm23") _, out("zmm24") _, out("zmm25") _, out("zmm26") _, out("zmm27") _,
            out("zmm28") _, out("zmm29") _, out("zmm30") _, out("zmm31") _,
            options(nostack),
        );
    }
}

/// `to[i]` = the tree over `from[8i..8i + 8]`, for `n` lanes at `from`, a multiple of [`STEP_256`].
///
/// # Safety
/// The machine has AVX; `n` lanes at `from`, room for `n / 8` at `to`, apart.
#[target_feature(enable = "avx")]
unsafe fn eighths(keep: bool, from: *const f32, to: *mut f32, n: usize) {
    if n < STEP_256 {
        return;
    }
    let mut control = [if keep { KEEP } else { FLUSH }, 0u32];
    // SAFETY: as in `sixteenths`.
    unsafe {
        std::arch::asm!(
            "stmxcsr [rax + 4]",
            "ldmxcsr [rax]",
            ".p2align 5",
            "2:",
            "vmovups ymm0, [rsi]",
            "vmovups ymm1, [rsi + 64]",
            "vmovups ymm2, [rsi + 128]",
            "vmovups ymm3, [rsi + 192]",
            // Sums of neighbours inside each half.
            "vhaddps ymm0, ymm0, [rsi + 32]",
            "vhaddps ymm1, ymm1, [rsi + 96]",
            "vhaddps ymm2, ymm2, [rsi + 160]",
            "vhaddps ymm3, ymm3, [rsi + 224]",
            "vhaddps ymm0, ymm0, ymm1",
            "vhaddps ymm2, ymm2, ymm3",
            // Lane j: half of vector j; first halves together, then second ones.
            "vperm2f128 ymm1, ymm0, ymm2, 0x20",
            "vperm2f128 ymm3, ymm0, ymm2, 0x31",
            "vaddps ymm0, ymm1, ymm3",
            "vmovups [rdi], ymm0",
            "add rsi, 256",
            "add rdi, 32",
            "dec rcx",
            "jnz 2b",
            "ldmxcsr [rax + 4]",
            in("rax") control.as_mut_ptr(),
            inout("rsi") from => _,
            inout("rdi") to => _,
            inout("rcx") n / STEP_256 => _,
            out("ymm0") _, out("ymm1") _, out("ymm2") _, out("ymm3") _,
            options(nostack),
        );
    }
}
