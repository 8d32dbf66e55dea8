//! The index-adjacent tree in vectors: four levels at once, from 256 lanes to 16, nothing written in between.

/// Lanes that one step takes.
pub(crate) const STEP: usize = 256;

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

/// `to[i]` = the tree over `from[16i..16i + 16]`, for `n` lanes at `from`, a multiple of [`STEP`].
///
/// The flush is the control register's doing: a sum under FTZ and DAZ is exactly the contract's.
///
/// # Safety
/// The machine has AVX-512 F; `n` lanes at `from`, room for `n / 16` at `to`, apart.
#[target_feature(enable = "avx512f")]
pub(crate) unsafe fn sixteenths(keep: bool, from: *const f32, to: *mut f32, n: usize) {
    if n < STEP {
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
            inout("rcx") n / STEP => _,
            out("zmm16") _, out("zmm17") _, out("zmm18") _, out("zmm19") _, out("zmm20") _, out("zmm21") _,
            out("zmm22") _, out("zmm23") _, out("zmm24") _, out("zmm25") _, out("zmm26") _, out("zmm27") _,
            out("zmm28") _, out("zmm29") _, out("zmm30") _, out("zmm31") _,
            options(nostack),
        );
    }
}
