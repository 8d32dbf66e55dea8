//! The product's inner loops for x86-64: one panel of rows by one panel of columns, chains along k in registers.
//!
//! Each is one `asm!` block, because the flush of subnormals is the control register's doing here, and changing that
//! register is sound only where the compiler can see nothing of it: it is set at the block's first instruction and
//! restored at its last. Under FTZ and DAZ `vfmadd` and `vaddps` give exactly the contract's flushed fma and sum.

use super::Args;
use std::arch::asm;

/// Round to nearest even, exceptions masked, subnormals flushed (FTZ and DAZ) or kept.
pub(crate) const FLUSH: u32 = 0x9fc0;
pub(crate) const KEEP: u32 = 0x1f80;

/// Terms left when the lines of the results are asked for: a microsecond's work or less, so that they come in time and
/// are not gone again.
const LAST: usize = 64;
/// Terms of B asked for ahead where it is copied: rows far apart, which the hardware does not guess.
const AHEAD: usize = 32;

macro_rules! kernel {
    ($(#[$doc:meta])* $name:ident, $feature:literal, $width:literal, [$($reg:tt)*], $b0:literal, $b1:literal, $x:literal, $zero:literal,
     $(($row:literal $lo:literal $hi:literal))*) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// The machine has the instruction set; `args` describes memory that may be read and written so.
        #[target_feature(enable = $feature)]
        pub(crate) unsafe fn $name(args: &mut Args) {
            // SAFETY: the caller's promise. The control register leaves as it came, the stack is not touched, and every
            // register used is declared.
            unsafe {
                asm!(
                    "stmxcsr [rax + 76]",
                    "ldmxcsr [rax + 72]",
                    "mov rcx, [rax]",
                    "mov rdx, [rax + 8]",
                    "mov r8, [rax + 16]",
                    "mov r9, [rax + 24]",
                    "mov rsi, [rax + 32]",
                    "mov r10, [rax + 40]",
                    "lea r11, [r8 + r8*2]",
                    "lea r12, [r8 + r8*4]",
                    "lea r13, [r8 + r11*2]",
                    "add r13, rdx",
                    $(concat!($zero, " ", $lo, ", ", $lo, ", ", $lo), concat!($zero, " ", $hi, ", ", $hi, ", ", $hi),)*
                    "mov r15, [rax + 80]",
                    // The last terms are a loop run of their own: before it the results' lines are asked for.
                    "mov r14, rcx",
                    "mov edi, {last}",
                    "cmp r14, rdi",
                    "cmova r14, rdi",
                    "sub rcx, r14",
                    "jz 5f",
                    "2:",
                    "imul rdi, r10, {ahead}",
                    "add rdi, rsi",
                    ".p2align 5",
                    "3:",
                    concat!("vmovups ", $b0, ", [rsi]"),
                    concat!("vmovups ", $b1, ", [rsi + ", $width, "]"),
                    "test r15, r15",
                    "jz 4f",
                    "prefetcht1 [rdi]",
                    concat!("prefetcht1 [rdi + ", $width, "]"),
                    concat!("vmovups [r15], ", $b0),
                    concat!("vmovups [r15 + ", $width, "], ", $b1),
                    "add rdi, r10",
                    concat!("add r15, 2*", $width),
                    "4:",
                    $(
                        concat!("vbroadcastss ", $x, ", dword ptr ", $row),
                        concat!("vfmadd231ps ", $lo, ", ", $b0, ", ", $x),
                        concat!("vfmadd231ps ", $hi, ", ", $b1, ", ", $x),
                    )*
                    "add rdx, r9",
                    "add r13, r9",
                    "add rsi, r10",
                    "dec rcx",
                    "jnz 3b",
                    "5:",
                    "test r14, r14",
                    "jz 7f",
                    "mov rdi, [rax + 48]",
                    "mov ecx, {rows}",
                    "6:",
                    "prefetchw [rdi]",
                    concat!("prefetchw [rdi + ", $width, "]"),
                    "add rdi, [rax + 56]",
                    "dec ecx",
                    "jnz 6b",
                    "mov rcx, r14",
                    "xor r14d, r14d",
                    "jmp 2b",
                    "7:",
                    "mov rdi, [rax + 48]",
                    "mov r8, [rax + 56]",
                    "cmp qword ptr [rax + 64], 0",
                    "je 8f",
                    $(
                        concat!("vaddps ", $lo, ", ", $lo, ", [rdi]"),
                        concat!("vaddps ", $hi, ", ", $hi, ", [rdi + ", $width, "]"),
                        "add rdi, r8",
                    )*
                    "mov rdi, [rax + 48]",
                    "8:",
                    $(
                        concat!("vmovups [rdi], ", $lo),
                        concat!("vmovups [rdi + ", $width, "], ", $hi),
                        "add rdi, r8",
                    )*
                    "ldmxcsr [rax + 76]",
                    rows = const [$($row),*].len(),
                    last = const LAST,
                    ahead = const AHEAD,
                    in("rax") args as *mut Args,
                    out("rcx") _, out("rdx") _, out("rsi") _, out("rdi") _, out("r8") _, out("r9") _, out("r10") _,
                    out("r11") _, out("r12") _, out("r13") _, out("r14") _, out("r15") _,
                    $(out($reg) _,)*
                    options(nostack),
                );
            }
        }
    };
}

kernel!(
    /// 1 rows by 32 columns with AVX-512.
    avx512_1, "avx512f", "64", ["zmm0" "zmm1" "zmm2" "zmm3" "zmm4" "zmm5" "zmm6" "zmm7" "zmm8" "zmm9" "zmm10" "zmm11" "zmm12" "zmm13" "zmm14" "zmm15" "zmm16" "zmm17" "zmm18" "zmm19" "zmm20" "zmm21" "zmm22" "zmm23" "zmm24" "zmm25" "zmm26" "zmm27" "zmm28" "zmm29" "zmm30" "zmm31"], "zmm28", "zmm29", "zmm30", "vpxord",
    ("[rdx]" "zmm0" "zmm1")
);
kernel!(
    /// 2 rows by 32 columns with AVX-512.
    avx512_2, "avx512f", "64", ["zmm0" "zmm1" "zmm2" "zmm3" "zmm4" "zmm5" "zmm6" "zmm7" "zmm8" "zmm9" "zmm10" "zmm11" "zmm12" "zmm13" "zmm14" "zmm15" "zmm16" "zmm17" "zmm18" "zmm19" "zmm20" "zmm21" "zmm22" "zmm23" "zmm24" "zmm25" "zmm26" "zmm27" "zmm28" "zmm29" "zmm30" "zmm31"], "zmm28", "zmm29", "zmm30", "vpxord",
    ("[rdx]" "zmm0" "zmm1") ("[rdx + r8]" "zmm2" "zmm3")
);
kernel!(
    /// 3 rows by 32 columns with AVX-512.
    avx512_3, "avx512f", "64", ["zmm0" "zmm1" "zmm2" "zmm3" "zmm4" "zmm5" "zmm6" "zmm7" "zmm8" "zmm9" "zmm10" "zmm11" "zmm12" "zmm13" "zmm14" "zmm15" "zmm16" "zmm17" "zmm18" "zmm19" "zmm20" "zmm21" "zmm22" "zmm23" "zmm24" "zmm25" "zmm26" "zmm27" "zmm28" "zmm29" "zmm30" "zmm31"], "zmm28", "zmm29", "zmm30", "vpxord",
    ("[rdx]" "zmm0" "zmm1") ("[rdx + r8]" "zmm2" "zmm3") ("[rdx + r8*2]" "zmm4" "zmm5")
);
kernel!(
    /// 4 rows by 32 columns with AVX-512.
    avx512_4, "avx512f", "64", ["zmm0" "zmm1" "zmm2" "zmm3" "zmm4" "zmm5" "zmm6" "zmm7" "zmm8" "zmm9" "zmm10" "zmm11" "zmm12" "zmm13" "zmm14" "zmm15" "zmm16" "zmm17" "zmm18" "zmm19" "zmm20" "zmm21" "zmm22" "zmm23" "zmm24" "zmm25" "zmm26" "zmm27" "zmm28" "zmm29" "zmm30" "zmm31"], "zmm28", "zmm29", "zmm30", "vpxord",
    ("[rdx]" "zmm0" "zmm1") ("[rdx + r8]" "zmm2" "zmm3") ("[rdx + r8*2]" "zmm4" "zmm5") ("[rdx + r11]" "zmm6" "zmm7")
);
kernel!(
    /// 5 rows by 32 columns with AVX-512.
    avx512_5, "avx512f", "64", ["zmm0" "zmm1" "zmm2" "zmm3" "zmm4" "zmm5" "zmm6" "zmm7" "zmm8" "zmm9" "zmm10" "zmm11" "zmm12" "zmm13" "zmm14" "zmm15" "zmm16" "zmm17" "zmm18" "zmm19" "zmm20" "zmm21" "zmm22" "zmm23" "zmm24" "zmm25" "zmm26" "zmm27" "zmm28" "zmm29" "zmm30" "zmm31"], "zmm28", "zmm29", "zmm30", "vpxord",
    ("[rdx]" "zmm0" "zmm1") ("[rdx + r8]" "zmm2" "zmm3") ("[rdx + r8*2]" "zmm4" "zmm5") ("[rdx + r11]" "zmm6" "zmm7") ("[rdx + r8*4]" "zmm8" "zmm9")
);
kernel!(
    /// 6 rows by 32 columns with AVX-512.
    avx512_6, "avx512f", "64", ["zmm0" "zmm1" "zmm2" "zmm3" "zmm4" "zmm5" "zmm6" "zmm7" "zmm8" "zmm9" "zmm10" "zmm11" "zmm12" "zmm13" "zmm14" "zmm15" "zmm16" "zmm17" "zmm18" "zmm19" "zmm20" "zmm21" "zmm22" "zmm23" "zmm24" "zmm25" "zmm26" "zmm27" "zmm28" "zmm29" "zmm30" "zmm31"], "zmm28", "zmm29", "zmm30", "vpxord",
    ("[rdx]" "zmm0" "zmm1") ("[rdx + r8]" "zmm2" "zmm3") ("[rdx + r8*2]" "zmm4" "zmm5") ("[rdx + r11]" "zmm6" "zmm7") ("[rdx + r8*4]" "zmm8" "zmm9") ("[rdx + r12]" "zmm10" "zmm11")
);
kernel!(
    /// 7 rows by 32 columns with AVX-512.
    avx512_7, "avx512f", "64", ["zmm0" "zmm1" "zmm2" "zmm3" "zmm4" "zmm5" "zmm6" "zmm7" "zmm8" "zmm9" "zmm10" "zmm11" "zmm12" "zmm13" "zmm14" "zmm15" "zmm16" "zmm17" "zmm18" "zmm19" "zmm20" "zmm21" "zmm22" "zmm23" "zmm24" "zmm25" "zmm26" "zmm27" "zmm28" "zmm29" "zmm30" "zmm31"], "zmm28", "zmm29", "zmm30", "vpxord",
    ("[rdx]" "zmm0" "zmm1") ("[rdx + r8]" "zmm2" "zmm3") ("[rdx + r8*2]" "zmm4" "zmm5") ("[rdx + r11]" "zmm6" "zmm7") ("[rdx + r8*4]" "zmm8" "zmm9") ("[rdx + r12]" "zmm10" "zmm11") ("[rdx + r11*2]" "zmm12" "zmm13")
);
kernel!(
    /// 8 rows by 32 columns with AVX-512.
    avx512_8, "avx512f", "64", ["zmm0" "zmm1" "zmm2" "zmm3" "zmm4" "zmm5" "zmm6" "zmm7" "zmm8" "zmm9" "zmm10" "zmm11" "zmm12" "zmm13" "zmm14" "zmm15" "zmm16" "zmm17" "zmm18" "zmm19" "zmm20" "zmm21" "zmm22" "zmm23" "zmm24" "zmm25" "zmm26" "zmm27" "zmm28" "zmm29" "zmm30" "zmm31"], "zmm28", "zmm29", "zmm30", "vpxord",
    ("[rdx]" "zmm0" "zmm1") ("[rdx + r8]" "zmm2" "zmm3") ("[rdx + r8*2]" "zmm4" "zmm5") ("[rdx + r11]" "zmm6" "zmm7") ("[rdx + r8*4]" "zmm8" "zmm9") ("[rdx + r12]" "zmm10" "zmm11") ("[rdx + r11*2]" "zmm12" "zmm13") ("[r13]" "zmm14" "zmm15")
);
kernel!(
    /// 9 rows by 32 columns with AVX-512.
    avx512_9, "avx512f", "64", ["zmm0" "zmm1" "zmm2" "zmm3" "zmm4" "zmm5" "zmm6" "zmm7" "zmm8" "zmm9" "zmm10" "zmm11" "zmm12" "zmm13" "zmm14" "zmm15" "zmm16" "zmm17" "zmm18" "zmm19" "zmm20" "zmm21" "zmm22" "zmm23" "zmm24" "zmm25" "zmm26" "zmm27" "zmm28" "zmm29" "zmm30" "zmm31"], "zmm28", "zmm29", "zmm30", "vpxord",
    ("[rdx]" "zmm0" "zmm1") ("[rdx + r8]" "zmm2" "zmm3") ("[rdx + r8*2]" "zmm4" "zmm5") ("[rdx + r11]" "zmm6" "zmm7") ("[rdx + r8*4]" "zmm8" "zmm9") ("[rdx + r12]" "zmm10" "zmm11") ("[rdx + r11*2]" "zmm12" "zmm13") ("[r13]" "zmm14" "zmm15") ("[r13 + r8]" "zmm16" "zmm17")
);
kernel!(
    /// 10 rows by 32 columns with AVX-512.
    avx512_10, "avx512f", "64", ["zmm0" "zmm1" "zmm2" "zmm3" "zmm4" "zmm5" "zmm6" "zmm7" "zmm8" "zmm9" "zmm10" "zmm11" "zmm12" "zmm13" "zmm14" "zmm15" "zmm16" "zmm17" "zmm18" "zmm19" "zmm20" "zmm21" "zmm22" "zmm23" "zmm24" "zmm25" "zmm26" "zmm27" "zmm28" "zmm29" "zmm30" "zmm31"], "zmm28", "zmm29", "zmm30", "vpxord",
    ("[rdx]" "zmm0" "zmm1") ("[rdx + r8]" "zmm2" "zmm3") ("[rdx + r8*2]" "zmm4" "zmm5") ("[rdx + r11]" "zmm6" "zmm7") ("[rdx + r8*4]" "zmm8" "zmm9") ("[rdx + r12]" "zmm10" "zmm11") ("[rdx + r11*2]" "zmm12" "zmm13") ("[r13]" "zmm14" "zmm15") ("[r13 + r8]" "zmm16" "zmm17") ("[r13 + r8*2]" "zmm18" "zmm19")
);
kernel!(
    /// 11 rows by 32 columns with AVX-512.
    avx512_11, "avx512f", "64", ["zmm0" "zmm1" "zmm2" "zmm3" "zmm4" "zmm5" "zmm6" "zmm7" "zmm8" "zmm9" "zmm10" "zmm11" "zmm12" "zmm13" "zmm14" "zmm15" "zmm16" "zmm17" "zmm18" "zmm19" "zmm20" "zmm21" "zmm22" "zmm23" "zmm24" "zmm25" "zmm26" "zmm27" "zmm28" "zmm29" "zmm30" "zmm31"], "zmm28", "zmm29", "zmm30", "vpxord",
    ("[rdx]" "zmm0" "zmm1") ("[rdx + r8]" "zmm2" "zmm3") ("[rdx + r8*2]" "zmm4" "zmm5") ("[rdx + r11]" "zmm6" "zmm7") ("[rdx + r8*4]" "zmm8" "zmm9") ("[rdx + r12]" "zmm10" "zmm11") ("[rdx + r11*2]" "zmm12" "zmm13") ("[r13]" "zmm14" "zmm15") ("[r13 + r8]" "zmm16" "zmm17") ("[r13 + r8*2]" "zmm18" "zmm19") ("[r13 + r11]" "zmm20" "zmm21")
);
kernel!(
    /// 12 rows by 32 columns with AVX-512.
    avx512_12, "avx512f", "64", ["zmm0" "zmm1" "zmm2" "zmm3" "zmm4" "zmm5" "zmm6" "zmm7" "zmm8" "zmm9" "zmm10" "zmm11" "zmm12" "zmm13" "zmm14" "zmm15" "zmm16" "zmm17" "zmm18" "zmm19" "zmm20" "zmm21" "zmm22" "zmm23" "zmm24" "zmm25" "zmm26" "zmm27" "zmm28" "zmm29" "zmm30" "zmm31"], "zmm28", "zmm29", "zmm30", "vpxord",
    ("[rdx]" "zmm0" "zmm1") ("[rdx + r8]" "zmm2" "zmm3") ("[rdx + r8*2]" "zmm4" "zmm5") ("[rdx + r11]" "zmm6" "zmm7") ("[rdx + r8*4]" "zmm8" "zmm9") ("[rdx + r12]" "zmm10" "zmm11") ("[rdx + r11*2]" "zmm12" "zmm13") ("[r13]" "zmm14" "zmm15") ("[r13 + r8]" "zmm16" "zmm17") ("[r13 + r8*2]" "zmm18" "zmm19") ("[r13 + r11]" "zmm20" "zmm21") ("[r13 + r8*4]" "zmm22" "zmm23")
);
kernel!(
    /// 13 rows by 32 columns with AVX-512.
    avx512_13, "avx512f", "64", ["zmm0" "zmm1" "zmm2" "zmm3" "zmm4" "zmm5" "zmm6" "zmm7" "zmm8" "zmm9" "zmm10" "zmm11" "zmm12" "zmm13" "zmm14" "zmm15" "zmm16" "zmm17" "zmm18" "zmm19" "zmm20" "zmm21" "zmm22" "zmm23" "zmm24" "zmm25" "zmm26" "zmm27" "zmm28" "zmm29" "zmm30" "zmm31"], "zmm28", "zmm29", "zmm30", "vpxord",
    ("[rdx]" "zmm0" "zmm1") ("[rdx + r8]" "zmm2" "zmm3") ("[rdx + r8*2]" "zmm4" "zmm5") ("[rdx + r11]" "zmm6" "zmm7") ("[rdx + r8*4]" "zmm8" "zmm9") ("[rdx + r12]" "zmm10" "zmm11") ("[rdx + r11*2]" "zmm12" "zmm13") ("[r13]" "zmm14" "zmm15") ("[r13 + r8]" "zmm16" "zmm17") ("[r13 + r8*2]" "zmm18" "zmm19") ("[r13 + r11]" "zmm20" "zmm21") ("[r13 + r8*4]" "zmm22" "zmm23") ("[r13 + r12]" "zmm24" "zmm25")
);
kernel!(
    /// 14 rows by 32 columns with AVX-512.
    avx512_14, "avx512f", "64", ["zmm0" "zmm1" "zmm2" "zmm3" "zmm4" "zmm5" "zmm6" "zmm7" "zmm8" "zmm9" "zmm10" "zmm11" "zmm12" "zmm13" "zmm14" "zmm15" "zmm16" "zmm17" "zmm18" "zmm19" "zmm20" "zmm21" "zmm22" "zmm23" "zmm24" "zmm25" "zmm26" "zmm27" "zmm28" "zmm29" "zmm30" "zmm31"], "zmm28", "zmm29", "zmm30", "vpxord",
    ("[rdx]" "zmm0" "zmm1") ("[rdx + r8]" "zmm2" "zmm3") ("[rdx + r8*2]" "zmm4" "zmm5") ("[rdx + r11]" "zmm6" "zmm7") ("[rdx + r8*4]" "zmm8" "zmm9") ("[rdx + r12]" "zmm10" "zmm11") ("[rdx + r11*2]" "zmm12" "zmm13") ("[r13]" "zmm14" "zmm15") ("[r13 + r8]" "zmm16" "zmm17") ("[r13 + r8*2]" "zmm18" "zmm19") ("[r13 + r11]" "zmm20" "zmm21") ("[r13 + r8*4]" "zmm22" "zmm23") ("[r13 + r12]" "zmm24" "zmm25") ("[r13 + r11*2]" "zmm26" "zmm27")
);
kernel!(
    /// 1 rows by 16 columns with AVX2.
    avx2_1, "avx2,fma", "32", ["ymm0" "ymm1" "ymm2" "ymm3" "ymm4" "ymm5" "ymm6" "ymm7" "ymm8" "ymm9" "ymm10" "ymm11" "ymm12" "ymm13" "ymm14" "ymm15"], "ymm12", "ymm13", "ymm14", "vxorps",
    ("[rdx]" "ymm0" "ymm1")
);
kernel!(
    /// 2 rows by 16 columns with AVX2.
    avx2_2, "avx2,fma", "32", ["ymm0" "ymm1" "ymm2" "ymm3" "ymm4" "ymm5" "ymm6" "ymm7" "ymm8" "ymm9" "ymm10" "ymm11" "ymm12" "ymm13" "ymm14" "ymm15"], "ymm12", "ymm13", "ymm14", "vxorps",
    ("[rdx]" "ymm0" "ymm1") ("[rdx + r8]" "ymm2" "ymm3")
);
kernel!(
    /// 3 rows by 16 columns with AVX2.
    avx2_3, "avx2,fma", "32", ["ymm0" "ymm1" "ymm2" "ymm3" "ymm4" "ymm5" "ymm6" "ymm7" "ymm8" "ymm9" "ymm10" "ymm11" "ymm12" "ymm13" "ymm14" "ymm15"], "ymm12", "ymm13", "ymm14", "vxorps",
    ("[rdx]" "ymm0" "ymm1") ("[rdx + r8]" "ymm2" "ymm3") ("[rdx + r8*2]" "ymm4" "ymm5")
);
kernel!(
    /// 4 rows by 16 columns with AVX2.
    avx2_4, "avx2,fma", "32", ["ymm0" "ymm1" "ymm2" "ymm3" "ymm4" "ymm5" "ymm6" "ymm7" "ymm8" "ymm9" "ymm10" "ymm11" "ymm12" "ymm13" "ymm14" "ymm15"], "ymm12", "ymm13", "ymm14", "vxorps",
    ("[rdx]" "ymm0" "ymm1") ("[rdx + r8]" "ymm2" "ymm3") ("[rdx + r8*2]" "ymm4" "ymm5") ("[rdx + r11]" "ymm6" "ymm7")
);
kernel!(
    /// 5 rows by 16 columns with AVX2.
    avx2_5, "avx2,fma", "32", ["ymm0" "ymm1" "ymm2" "ymm3" "ymm4" "ymm5" "ymm6" "ymm7" "ymm8" "ymm9" "ymm10" "ymm11" "ymm12" "ymm13" "ymm14" "ymm15"], "ymm12", "ymm13", "ymm14", "vxorps",
    ("[rdx]" "ymm0" "ymm1") ("[rdx + r8]" "ymm2" "ymm3") ("[rdx + r8*2]" "ymm4" "ymm5") ("[rdx + r11]" "ymm6" "ymm7") ("[rdx + r8*4]" "ymm8" "ymm9")
);
kernel!(
    /// 6 rows by 16 columns with AVX2.
    avx2_6, "avx2,fma", "32", ["ymm0" "ymm1" "ymm2" "ymm3" "ymm4" "ymm5" "ymm6" "ymm7" "ymm8" "ymm9" "ymm10" "ymm11" "ymm12" "ymm13" "ymm14" "ymm15"], "ymm12", "ymm13", "ymm14", "vxorps",
    ("[rdx]" "ymm0" "ymm1") ("[rdx + r8]" "ymm2" "ymm3") ("[rdx + r8*2]" "ymm4" "ymm5") ("[rdx + r11]" "ymm6" "ymm7") ("[rdx + r8*4]" "ymm8" "ymm9") ("[rdx + r12]" "ymm10" "ymm11")
);

type Kernel = unsafe fn(&mut Args);

/// By rows, from 1.
pub(crate) const AVX512: [Kernel; 14] = [
    avx512_1, avx512_2, avx512_3, avx512_4, avx512_5, avx512_6, avx512_7, avx512_8, avx512_9, avx512_10,
    avx512_11, avx512_12, avx512_13, avx512_14,
];
/// By rows, from 1.
pub(crate) const AVX2: [Kernel; 6] = [avx2_1, avx2_2, avx2_3, avx2_4, avx2_5, avx2_6];
