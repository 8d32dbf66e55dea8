//! Results for 16 bits, one of each mechanism, in the readings: the whole is run by `ulpian-verify`.

mod common;

use common::Flushing;
use ulpian_num::convert::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
use ulpian_num::readings::{Dual, Interval};
use ulpian_num::shadow::Shadow;
use ulpian_num::{Bf16, Dtype, F16, Func, Native, Real, Val};

/// Function, type, operands, and the nearest result, which narrowing the nearest f32 misses.
const CASES: [(Func, Dtype, u16, u16, u16); 8] = [
    (Func::Exp, Dtype::F16, 0x1f79, 0, 0x3c07),
    (Func::Cbrt, Dtype::F16, 0xf151, 0, 0xcd8b),
    (Func::Exp10, Dtype::Bf16, 0xbc95, 0, 0x3f75),
    (Func::Hypot, Dtype::F16, 0x2173, 0x376c, 0x376d),
    (Func::Pow, Dtype::F16, 0x14cd, 0xb529, 0x4869),
    (Func::Atan2, Dtype::F16, 0x571d, 0x902d, 0x3e49),
    (Func::LogAddExp, Dtype::Bf16, 0xbd00, 0x3c7e, 0x3f2f),
    (Func::Xlogy, Dtype::Bf16, 0x130c, 0x14c1, 0x9601),
];

fn widen(to: Dtype, bits: u16) -> f32 {
    if to == Dtype::F16 { f16_to_f32(F16(bits)) } else { bf16_to_f32(Bf16(bits)) }
}

fn narrow(to: Dtype, x: f32) -> u16 {
    if to == Dtype::F16 { f32_to_f16(x).0 } else { f32_to_bf16(x).0 }
}

fn in_reading<R: Real<Repr<f32> = f32>>(f: Func, to: Dtype, a: u16, b: u16) -> u16 {
    narrow(to, R::call_to(f, to, widen(to, a), widen(to, b)))
}

#[test]
fn the_side_is_seen_where_the_nearest_float_hides_it() {
    for (f, to, a, b, right) in CASES {
        let twice = Native::<false>::call::<f32>(f, widen(to, a), widen(to, b));
        assert_ne!(narrow(to, twice), right, "{} rounded twice", f.name());
        assert_eq!(in_reading::<Native<true>>(f, to, a, b), right, "{}", f.name());
        assert_eq!(in_reading::<Native<false, true>>(f, to, a, b), right, "{} kept", f.name());
        assert_eq!(in_reading::<Flushing>(f, to, a, b), right, "{} flushing", f.name());
    }
}

#[test]
fn readings_that_judge_take_the_function_itself() {
    for (f, to, a, b, right) in CASES {
        let (a, b) = (widen(to, a), widen(to, b));
        let lane = |x: f32| Val::<Shadow, f32>::lit(x).0;
        let y = Shadow::call_to(f, to, lane(a), lane(b));
        assert_eq!(narrow(to, y.value), right, "{}", f.name());
        assert_eq!(y.shadow, Shadow::call::<f32>(f, lane(a), lane(b)).shadow, "{}", f.name());
        let lane = |x: f32| Val::<Interval, f32>::lit(x).0;
        let (low, high) = Interval::call_to(f, to, lane(a), lane(b)).ends();
        assert!(low <= y.shadow && y.shadow <= high && high - low < 1e-10 * y.shadow.abs(), "{}", f.name());
        type Slope = Dual<Native<true>>;
        let lane = |x: f32| Slope::variable(x);
        let (dual, plain) =
            (Slope::call_to(f, to, lane(a), lane(b)), Slope::call::<f32>(f, lane(a), lane(b)));
        assert_eq!((narrow(to, dual.value), dual.slope), (right, plain.slope), "{}", f.name());
    }
}

#[test]
fn f32_and_f64_results_are_the_calls() {
    for to in [Dtype::F32, Dtype::F64] {
        for (f, of, a, b, _) in CASES {
            let (a, b) = (widen(of, a), widen(of, b));
            assert_eq!(Native::<true>::call_to(f, to, a, b), Native::<true>::call::<f32>(f, a, b));
        }
    }
}
