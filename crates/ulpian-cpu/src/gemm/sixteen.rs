//! Sixteen chains side by side: sixteen rows of a matrix times one vector, terms ascending. A block of 16 by 16 is
//! transposed in registers, so that every term of the sixteen chains is one fused multiply-add.

use std::arch::asm;

/// `c[i] = (add ? c[i] : nothing) + chain over k of matrix[i][k] * vector[k]`, 16 rows. The layout is known to the assembly.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Sixteen {
    pub matrix: *const f32,
    /// Bytes from row to row.
    pub row: u64,
    pub vector: *const f32,
    /// Sixteens of terms, at least one.
    pub sixteens: u64,
    /// Where the chains start, and where they are left.
    pub chains: *mut f32,
    pub control: u32,
    pub saved: u32,
}

/// Two rows woven, element by element.
macro_rules! pair {
    ($a:literal, $b:literal, $lo:literal, $hi:literal) => {
        concat!(
            "vmovups zmm30, ",
            $a,
            "\n",
            "vunpcklps ",
            $lo,
            ", zmm30, ",
            $b,
            "\n",
            "vunpckhps ",
            $hi,
            ", zmm30, ",
            $b,
        )
    };
}
/// Two woven pairs woven: each quarter of a result is one column of four rows.
macro_rules! quad {
    ($a:literal, $b:literal, $c:literal, $d:literal, $w:literal, $x:literal, $y:literal, $z:literal) => {
        concat!(
            "vunpcklpd ",
            $w,
            ", ",
            $a,
            ", ",
            $c,
            "\n",
            "vunpckhpd ",
            $x,
            ", ",
            $a,
            ", ",
            $c,
            "\n",
            "vunpcklpd ",
            $y,
            ", ",
            $b,
            ", ",
            $d,
            "\n",
            "vunpckhpd ",
            $z,
            ", ",
            $b,
            ", ",
            $d,
        )
    };
}
/// One term onto the chains.
macro_rules! term {
    ($column:literal, $at:literal) => {
        concat!("vfmadd231ps zmm31, ", $column, ", dword ptr [rdx + ", $at, "]{{1to16}}")
    };
}
/// Columns c, c+4, c+8, c+12 of all sixteen rows; the first is used at once.
macro_rules! column {
    ($a:literal, $b:literal, $c:literal, $d:literal, $second:literal, $third:literal, $fourth:literal, $at:literal) => {
        concat!(
            "vshuff32x4 zmm28, ",
            $a,
            ", ",
            $b,
            ", 0x88\n",
            "vshuff32x4 ",
            $a,
            ", ",
            $a,
            ", ",
            $b,
            ", 0xdd\n",
            "vshuff32x4 zmm29, ",
            $c,
            ", ",
            $d,
            ", 0x88\n",
            "vshuff32x4 ",
            $c,
            ", ",
            $c,
            ", ",
            $d,
            ", 0xdd\n",
            "vshuff32x4 zmm30, zmm28, zmm29, 0x88\n",
            "vshuff32x4 ",
            $third,
            ", zmm28, zmm29, 0xdd\n",
            "vshuff32x4 ",
            $second,
            ", ",
            $a,
            ", ",
            $c,
            ", 0x88\n",
            "vshuff32x4 ",
            $fourth,
            ", ",
            $a,
            ", ",
            $c,
            ", 0xdd\n",
            term!("zmm30", $at),
        )
    };
}

/// Runs the chains on, flushing as the control register says.
///
/// # Safety
/// The machine has AVX-512 F; `args` describes memory that may be read and written so.
#[target_feature(enable = "avx512f")]
pub(crate) unsafe fn sixteen(args: &mut Sixteen) {
    // SAFETY: the caller's promise; a prefetch may name any address. The control register leaves as it came, the stack
    // is not touched, and every register used is declared.
    unsafe {
        asm!(
            "stmxcsr [rax + 44]",
            "ldmxcsr [rax + 40]",
            "mov rsi, [rax]",
            "mov r8, [rax + 8]",
            "mov rdx, [rax + 16]",
            "mov rcx, [rax + 24]",
            "mov r9, [rax + 32]",
            "lea r10, [r8 + r8*2]",
            "lea r11, [r8 + r8*4]",
            "lea r12, [r8 + r10*2]",
            "lea rdi, [rsi + r8*8]",
            "vmovups zmm31, [r9]",
            ".p2align 5",
            "2:",
            "prefetcht1 [rsi + 512]",
            "prefetcht1 [rsi + r8 + 512]",
            "prefetcht1 [rsi + r8*2 + 512]",
            "prefetcht1 [rsi + r10 + 512]",
            "prefetcht1 [rsi + r8*4 + 512]",
            "prefetcht1 [rsi + r11 + 512]",
            "prefetcht1 [rsi + r10*2 + 512]",
            "prefetcht1 [rsi + r12 + 512]",
            "prefetcht1 [rdi + 512]",
            "prefetcht1 [rdi + r8 + 512]",
            "prefetcht1 [rdi + r8*2 + 512]",
            "prefetcht1 [rdi + r10 + 512]",
            "prefetcht1 [rdi + r8*4 + 512]",
            "prefetcht1 [rdi + r11 + 512]",
            "prefetcht1 [rdi + r10*2 + 512]",
            "prefetcht1 [rdi + r12 + 512]",
            pair!("[rsi]", "[rsi + r8]", "zmm0", "zmm1"),
            pair!("[rsi + r8*2]", "[rsi + r10]", "zmm2", "zmm3"),
            pair!("[rsi + r8*4]", "[rsi + r11]", "zmm4", "zmm5"),
            pair!("[rsi + r10*2]", "[rsi + r12]", "zmm6", "zmm7"),
            pair!("[rdi]", "[rdi + r8]", "zmm8", "zmm9"),
            pair!("[rdi + r8*2]", "[rdi + r10]", "zmm10", "zmm11"),
            pair!("[rdi + r8*4]", "[rdi + r11]", "zmm12", "zmm13"),
            pair!("[rdi + r10*2]", "[rdi + r12]", "zmm14", "zmm15"),
            quad!("zmm0", "zmm1", "zmm2", "zmm3", "zmm16", "zmm17", "zmm18", "zmm19"),
            quad!("zmm4", "zmm5", "zmm6", "zmm7", "zmm20", "zmm21", "zmm22", "zmm23"),
            quad!("zmm8", "zmm9", "zmm10", "zmm11", "zmm24", "zmm25", "zmm26", "zmm27"),
            quad!("zmm12", "zmm13", "zmm14", "zmm15", "zmm0", "zmm1", "zmm2", "zmm3"),
            column!("zmm16", "zmm20", "zmm24", "zmm0", "zmm4", "zmm8", "zmm12", "0"),
            column!("zmm17", "zmm21", "zmm25", "zmm1", "zmm5", "zmm9", "zmm13", "4"),
            column!("zmm18", "zmm22", "zmm26", "zmm2", "zmm6", "zmm10", "zmm14", "8"),
            column!("zmm19", "zmm23", "zmm27", "zmm3", "zmm7", "zmm11", "zmm15", "12"),
            term!("zmm4", "16"),
            term!("zmm5", "20"),
            term!("zmm6", "24"),
            term!("zmm7", "28"),
            term!("zmm8", "32"),
            term!("zmm9", "36"),
            term!("zmm10", "40"),
            term!("zmm11", "44"),
            term!("zmm12", "48"),
            term!("zmm13", "52"),
            term!("zmm14", "56"),
            term!("zmm15", "60"),
            "add rsi, 64",
            "add rdi, 64",
            "add rdx, 64",
            "dec rcx",
            "jnz 2b",
            "vmovups [r9], zmm31",
            "ldmxcsr [rax + 44]",
            in("rax") args as *mut Sixteen,
            out("rcx") _, out("rdx") _, out("rsi") _, out("rdi") _, out("r8") _, out("r9") _, out("r10") _,
            out("r11") _, out("r12") _,
            out("zmm0") _, out("zmm1") _, out("zmm2") _, out("zmm3") _, out("zmm4") _, out("zmm5") _, out("zmm6") _, out("zmm7") _, out("zmm8") _, out("zmm9") _, out("zmm10") _, out("zmm11") _, out("zmm12") _, out("zmm13") _, out("zmm14") _, out("zmm15") _, out("zmm16") _, out("zmm17") _, out("zmm18") _, out("zmm19") _, out("zmm20") _, out("zmm21") _, out("zmm22") _, out("zmm23") _, out("zmm24") _, out("zmm25") _, out("zmm26") _, out("zmm27") _, out("zmm28") _, out("zmm29") _, out("zmm30") _, out("zmm31") _,
            options(nostack),
        );
    }
}
