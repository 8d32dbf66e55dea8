//! Storage types, and the traits that bound what a kernel may do with them.
//!
//! [`Element`] (data movement) ⊃ [`Num`] (arithmetic) ⊃ [`Float`] / [`Int`]; [`Bool`] stands apart. [`F16`] and
//! [`Bf16`] are storage only: they are `Element` but not `Num`, so nobody can accumulate in 16 bits by accident.

use std::fmt;

/// A run-time name for a storage type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dtype {
    Bool,
    U8,
    U32,
    I32,
    I64,
    F16,
    Bf16,
    F32,
    F64,
}

impl Dtype {
    /// The dtypes a tensor may have. `U32` is for lanes and random bits inside kernels only.
    pub const TENSOR: [Dtype; 8] =
        [Dtype::Bool, Dtype::U8, Dtype::I32, Dtype::I64, Dtype::F16, Dtype::Bf16, Dtype::F32, Dtype::F64];

    /// Bytes of one element in memory.
    pub const fn size(self) -> usize {
        match self {
            Dtype::Bool | Dtype::U8 => 1,
            Dtype::F16 | Dtype::Bf16 => 2,
            Dtype::U32 | Dtype::I32 | Dtype::F32 => 4,
            Dtype::I64 | Dtype::F64 => 8,
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Dtype::Bool => "bool",
            Dtype::U8 => "u8",
            Dtype::U32 => "u32",
            Dtype::I32 => "i32",
            Dtype::I64 => "i64",
            Dtype::F16 => "f16",
            Dtype::Bf16 => "bf16",
            Dtype::F32 => "f32",
            Dtype::F64 => "f64",
        }
    }

    /// The dtype a lane of this storage type computes in: halves widen to f32, u8 to i32, the rest stay.
    pub const fn lane(self) -> Dtype {
        match self {
            Dtype::F16 | Dtype::Bf16 => Dtype::F32,
            Dtype::U8 => Dtype::I32,
            other => other,
        }
    }

    pub const fn is_float(self) -> bool {
        matches!(self, Dtype::F16 | Dtype::Bf16 | Dtype::F32 | Dtype::F64)
    }

    pub const fn is_int(self) -> bool {
        matches!(self, Dtype::U8 | Dtype::U32 | Dtype::I32 | Dtype::I64)
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// IEEE binary16, as bits. Widen it to compute.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct F16(pub u16);

/// bfloat16, as bits. Widen it to compute.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Bf16(pub u16);

mod sealed {
    pub trait Sealed {}
}

/// A type that can stand in memory and in a lane: it can be moved, selected and compared for bits.
pub trait Element: sealed::Sealed + Copy + Default + Send + Sync + 'static {
    const DTYPE: Dtype;
    /// The type its lanes compute in.
    type Lane: Element;
    /// The bits, zero-extended.
    fn bits(self) -> u64;
    /// From the low bits.
    fn from_bits(bits: u64) -> Self;
}

/// A lane type with arithmetic.
pub trait Num: Element<Lane = Self> + PartialOrd {}
/// A floating lane type: f32 or f64.
pub trait Float: Num {}
/// An integer lane type; arithmetic wraps.
pub trait Int: Num {}
/// The truth type.
pub trait Bool: Element<Lane = Self> {}

macro_rules! element {
    ($t:ty, $d:ident, $lane:ty, $to:expr, $from:expr) => {
        impl sealed::Sealed for $t {}
        impl Element for $t {
            const DTYPE: Dtype = Dtype::$d;
            type Lane = $lane;
            #[inline(always)]
            fn bits(self) -> u64 {
                ($to)(self)
            }
            #[inline(always)]
            fn from_bits(bits: u64) -> Self {
                ($from)(bits)
            }
        }
    };
}
element!(bool, Bool, bool, |x| x as u64, |b| b & 1 != 0);
element!(u8, U8, i32, |x| x as u64, |b| b as u8);
element!(u32, U32, u32, |x| x as u64, |b| b as u32);
element!(i32, I32, i32, |x| x as u32 as u64, |b| b as u32 as i32);
element!(i64, I64, i64, |x| x as u64, |b| b as i64);
element!(F16, F16, f32, |x: F16| x.0 as u64, |b| F16(b as u16));
element!(Bf16, Bf16, f32, |x: Bf16| x.0 as u64, |b| Bf16(b as u16));
element!(f32, F32, f32, |x: f32| x.to_bits() as u64, |b| f32::from_bits(b as u32));
element!(f64, F64, f64, f64::to_bits, f64::from_bits);

impl Num for u32 {}
impl Num for i32 {}
impl Num for i64 {}
impl Num for f32 {}
impl Num for f64 {}
impl Float for f32 {}
impl Float for f64 {}
impl Int for u32 {}
impl Int for i32 {}
impl Int for i64 {}
impl Bool for bool {}
