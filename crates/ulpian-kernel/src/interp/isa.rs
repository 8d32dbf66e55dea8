//! Which instruction set the lane loops run on. The bits never depend on it.

/// An instruction set that the lane loops are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Isa {
    /// The baseline of the target, without a fused multiply-add.
    Scalar,
    /// x86-64 with AVX2, FMA and F16C.
    Avx2,
    /// x86-64 with AVX-512 F, BW, DQ and VL.
    Avx512,
    /// aarch64's baseline.
    Neon,
}

impl Isa {
    /// All of them, whatever this machine offers.
    pub const ALL: [Isa; 4] = [Isa::Scalar, Isa::Avx2, Isa::Avx512, Isa::Neon];

    /// The best that this machine offers.
    pub fn best() -> Isa {
        [Isa::Avx512, Isa::Avx2, Isa::Neon].into_iter().find(|i| i.available()).unwrap_or(Isa::Scalar)
    }

    /// Whether this machine can run it.
    pub fn available(self) -> bool {
        match self {
            Isa::Scalar => true,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("fma")
                    && is_x86_feature_detected!("f16c")
            }
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => {
                Isa::Avx2.available()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            }
            Isa::Neon => cfg!(target_arch = "aarch64"),
            #[cfg(not(target_arch = "x86_64"))]
            Isa::Avx2 | Isa::Avx512 => false,
        }
    }

    /// The name that `ULPIAN_ISA` takes.
    pub const fn name(self) -> &'static str {
        match self {
            Isa::Scalar => "scalar",
            Isa::Avx2 => "avx2",
            Isa::Avx512 => "avx512",
            Isa::Neon => "neon",
        }
    }

    /// The inverse of [`Isa::name`].
    pub fn parse(name: &str) -> Option<Isa> {
        Isa::ALL.into_iter().find(|i| i.name() == name)
    }
}

/// Writes, for a body generic over `<const FMA: bool, const KEEP: bool>`, its copies for each instruction set and a
/// dispatcher with the given name.
macro_rules! per_isa {
    ($(#[$doc:meta])* $name:ident = $body:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)?) => {
        $(#[$doc])*
        #[inline]
        pub(crate) unsafe fn $name(isa: $crate::interp::Isa, keep: bool, $($arg: $ty),*) $(-> $ret)? {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
            unsafe fn avx512<const KEEP: bool>($($arg: $ty),*) $(-> $ret)? {
                // SAFETY: the caller's promise is passed on.
                unsafe { $body::<true, KEEP>($($arg),*) }
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
            unsafe fn avx2<const KEEP: bool>($($arg: $ty),*) $(-> $ret)? {
                // SAFETY: as above.
                unsafe { $body::<true, KEEP>($($arg),*) }
            }
            #[cfg(target_arch = "aarch64")]
            unsafe fn neon<const KEEP: bool>($($arg: $ty),*) $(-> $ret)? {
                // SAFETY: as above.
                unsafe { $body::<true, KEEP>($($arg),*) }
            }
            unsafe fn scalar<const KEEP: bool>($($arg: $ty),*) $(-> $ret)? {
                // SAFETY: as above.
                unsafe { $body::<false, KEEP>($($arg),*) }
            }
            use $crate::interp::Isa;
            // SAFETY: the caller promises that `isa` is available and the body's own conditions.
            unsafe {
                match (isa, keep) {
                    #[cfg(target_arch = "x86_64")]
                    (Isa::Avx512, false) => avx512::<false>($($arg),*),
                    #[cfg(target_arch = "x86_64")]
                    (Isa::Avx512, true) => avx512::<true>($($arg),*),
                    #[cfg(target_arch = "x86_64")]
                    (Isa::Avx2, false) => avx2::<false>($($arg),*),
                    #[cfg(target_arch = "x86_64")]
                    (Isa::Avx2, true) => avx2::<true>($($arg),*),
                    #[cfg(target_arch = "aarch64")]
                    (Isa::Neon, false) => neon::<false>($($arg),*),
                    #[cfg(target_arch = "aarch64")]
                    (Isa::Neon, true) => neon::<true>($($arg),*),
                    (_, false) => scalar::<false>($($arg),*),
                    (_, true) => scalar::<true>($($arg),*),
                }
            }
        }
    };
}
pub(crate) use per_isa;
