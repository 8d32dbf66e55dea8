//! What the readings know of each function: domain, image, where it turns, and its partial derivatives.
//!
//! A new function of the table has its row in [`course`] and in [`partials`], and its value in `dd_functions`; the
//! compiler asks for all three. Derivatives are written in the language of formulas, so that every reading can follow
//! them, and choose forms that do not cancel.

use crate::dtype::{Dtype, Float};
use crate::functions::constants::readings as k;
use crate::real::{Func, Real, Val};

/// How a function of one argument runs over its domain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// Never falls.
    Rising,
    /// Never rises.
    Falling,
    /// Falls to its one least value, then rises: the place and the value, to half a unit of f64 each. To the left it
    /// tends to -0.
    Valley(f64, f64),
    /// 1/x and 1/√x: falls on both sides of its pole at 0.
    Pole,
    /// Turns and poles at multiples of a quarter turn: the interval reading counts them.
    Circular,
    /// digamma and log|Γ|: poles at 0 and below it; between them, and above 0, the one rises and the other is convex.
    Gamma,
    /// Of two arguments: the interval reading has a rule for each.
    Two,
}

/// A function's course, its domain and its image (closed, extended by the infinities).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Course {
    pub shape: Shape,
    pub domain: (f64, f64),
    pub image: (f64, f64),
}

/// See [`Course`].
pub fn course(f: Func) -> Course {
    use Shape::*;
    const INF: f64 = f64::INFINITY;
    const LINE: (f64, f64) = (-INF, INF);
    const ABOVE: (f64, f64) = (0.0, INF);
    let (shape, domain, image) = match f {
        Func::Sqrt => (Rising, (-0.0, INF), (-0.0, INF)),
        Func::Rsqrt => (Pole, (-0.0, INF), ABOVE),
        Func::Reciprocal => (Pole, LINE, LINE),
        Func::Cbrt | Func::Asinh | Func::Sinh => (Rising, LINE, LINE),
        Func::Exp | Func::Exp2 | Func::Exp10 | Func::Softplus => (Rising, LINE, ABOVE),
        Func::Expm1 | Func::Elu | Func::Celu => (Rising, LINE, (-1.0, INF)),
        Func::Selu => (Rising, LINE, (-1.7580993408473773, INF)),
        Func::LogSigmoid => (Rising, LINE, (-INF, 0.0)),
        Func::Log | Func::Log2 | Func::Log10 => (Rising, (-0.0, INF), LINE),
        Func::Log1p => (Rising, (-1.0, INF), LINE),
        Func::Acosh => (Rising, (1.0, INF), ABOVE),
        Func::Atanh => (Rising, (-1.0, 1.0), LINE),
        Func::Tanh | Func::Erf => (Rising, LINE, (-1.0, 1.0)),
        Func::Sigmoid => (Rising, LINE, (0.0, 1.0)),
        Func::Erfc => (Falling, LINE, (0.0, 2.0)),
        Func::Cosh => (Valley(0.0, 1.0), LINE, (1.0, INF)),
        Func::Silu => (Valley(k::SILU_LEAST.0, k::SILU_LEAST.1), LINE, LINE),
        Func::Gelu => (Valley(k::GELU_LEAST.0, k::GELU_LEAST.1), LINE, LINE),
        Func::GeluTanh => (Valley(k::GELU_TANH_LEAST.0, k::GELU_TANH_LEAST.1), LINE, LINE),
        Func::Mish => (Valley(k::MISH_LEAST.0, k::MISH_LEAST.1), LINE, LINE),
        Func::Sin | Func::Cos | Func::SinPi | Func::CosPi => (Circular, LINE, (-1.0, 1.0)),
        Func::Tan => (Circular, LINE, LINE),
        Func::Erfinv => (Rising, (-1.0, 1.0), LINE),
        Func::Lgamma | Func::Digamma => (Gamma, LINE, LINE),
        Func::Atan => (Rising, LINE, (-1.5707963267948968, 1.5707963267948968)),
        Func::Asin => (Rising, (-1.0, 1.0), (-1.5707963267948968, 1.5707963267948968)),
        Func::Acos => (Falling, (-1.0, 1.0), (0.0, 3.1415926535897936)),
        Func::Div | Func::LogAddExp | Func::Xlogy | Func::Fmod | Func::Remainder => (Two, LINE, LINE),
        Func::Pow => (Two, LINE, LINE),
        Func::Hypot => (Two, LINE, ABOVE),
        Func::Atan2 => (Two, LINE, (-3.1415926535897936, 3.1415926535897936)),
        // Another rounding of the same function: no reading rounds.
        Func::PowToHalf | Func::Atan2ToHalf | Func::LogAddExpToHalf | Func::XlogyToHalf => {
            return course(f.whole());
        }
    };
    Course { shape, domain, image }
}

/// How many neighbours out the exact value can lie from the function's f64 body at y: twice the bound that
/// [`crate::functions`] states (a unit below a power of two is half of one above), and one for the subnormals.
pub fn neighbours(f: Func, y: f64) -> u32 {
    match f {
        Func::Div | Func::Sqrt | Func::Remainder => 1,
        Func::Fmod => 0,
        // 0.5 + 2^-7 for each unit of log2 of the result.
        Func::Pow => 3 + (((y.abs().to_bits() >> 52) as i32 - 1023).unsigned_abs() >> 6),
        _ => 3,
    }
}

/// A constant of either float type, rounded from f64.
fn c<R: Real, D: Float>(x: f64) -> Val<R, D> {
    Val::lit(D::from_bits(if D::DTYPE == Dtype::F32 { (x as f32).to_bits().into() } else { x.to_bits() }))
}

/// The derivatives by `a` and by `b` (only for two-place functions), given the value `y`.
///
/// Irrational constants are taken from the functions themselves, so that no reading is held to the digits of an f64.
pub fn partials<R: Real, D: Float>(f: Func, a: Val<R, D>, b: Val<R, D>, y: Val<R, D>) -> [Val<R, D>; 2] {
    let n = |x: f64| c::<R, D>(x);
    let one = n(1.0);
    let pi = || n(-1.0).acos();
    // 1/√((1 - a)(1 + a)) and the like: no cancellation.
    let by_a = match f {
        Func::Div => one / b,
        Func::Sqrt => n(0.5) / y,
        Func::Reciprocal => -(y * y),
        Func::Rsqrt => n(-0.5) * y / a,
        Func::Cbrt => one / (n(3.0) * y * y),
        Func::Exp => y,
        Func::Exp2 => y * n(2.0).log(),
        Func::Exp10 => y * n(10.0).log(),
        Func::Expm1 => a.exp(),
        Func::Log => one / a,
        Func::Log2 => one / (a * n(2.0).log()),
        Func::Log10 => one / (a * n(10.0).log()),
        Func::Log1p => one / (one + a),
        Func::Asinh => (a * a + one).rsqrt(),
        Func::Acosh => ((a - one) * (a + one)).rsqrt(),
        Func::Atanh => one / ((one - a) * (one + a)),
        Func::Softplus => a.sigmoid(),
        Func::LogSigmoid => (-a).sigmoid(),
        Func::LogAddExp => (a - b).sigmoid(),
        Func::Xlogy => b.log(),
        Func::Tanh => sech_square(a),
        Func::Sigmoid => y * (-a).sigmoid(),
        Func::Sinh => a.cosh(),
        Func::Cosh => a.sinh(),
        Func::Silu => a.sigmoid() * (one + a * (-a).sigmoid()),
        Func::GeluTanh => {
            let cube = n(44715.0) / n(1000000.0);
            let slope = n(2.0) * (n(2.0) / pi()).sqrt();
            let z = slope * (a + cube * a * a * a);
            let dz = slope * (one + n(3.0) * cube * a * a);
            z.sigmoid() * (one + a * (-z).sigmoid() * dz)
        }
        Func::Mish => {
            let s = a.softplus();
            s.tanh() + a * sech_square(s) * a.sigmoid()
        }
        Func::Elu | Func::Celu => Val::select(a.gt(n(0.0)), one, a.exp()),
        Func::Selu => {
            let below = call::<R, D>(Func::Selu, n(-1.0)) / n(-1.0).expm1();
            Val::select(a.gt(n(0.0)), call::<R, D>(Func::Selu, one), below * a.exp())
        }
        Func::Erf => n(2.0) / pi().sqrt() * (-(a * a)).exp(),
        Func::Erfc => n(-2.0) / pi().sqrt() * (-(a * a)).exp(),
        Func::Gelu => {
            let half = n(0.5);
            let density = (-(a * a * half)).exp() / (pi() + pi()).sqrt();
            half * (-a * half.sqrt()).erfc() + a * density
        }
        Func::Erfinv => n(0.5) * pi().sqrt() * (y * y).exp(),
        Func::Lgamma => a.digamma(),
        Func::Digamma => trigamma(a),
        Func::SinPi => pi() * a.cos_pi(),
        Func::CosPi => -(pi() * a.sin_pi()),
        Func::Sin => a.cos(),
        Func::Cos => -a.sin(),
        Func::Tan => one + y * y,
        Func::Atan => one / (one + a * a),
        Func::Asin => ((one - a) * (one + a)).rsqrt(),
        Func::Acos => -((one - a) * (one + a)).rsqrt(),
        Func::Atan2 => b / (a * a + b * b),
        Func::Pow => b * Val::new(R::call(Func::Pow, a.0, (b - one).0)),
        Func::Hypot => a / y,
        Func::Fmod | Func::Remainder => one,
        Func::PowToHalf | Func::Atan2ToHalf | Func::LogAddExpToHalf | Func::XlogyToHalf => {
            return partials(f.whole(), a, b, y);
        }
    };
    let by_b = match f {
        Func::Div => -y / b,
        Func::LogAddExp => (b - a).sigmoid(),
        Func::Xlogy => a / b,
        Func::Atan2 => -a / (a * a + b * b),
        Func::Pow => Val::new(R::call(Func::Xlogy, y.0, a.0)),
        Func::Hypot => b / y,
        // Minus the whole quotient.
        Func::Fmod | Func::Remainder => (y - a) / b,
        _ => n(0.0),
    };
    [by_a, by_b]
}

fn call<R: Real, D: Float>(f: Func, x: Val<R, D>) -> Val<R, D> {
    Val::new(R::call(f, x.0, x.0))
}

/// 1/cosh², which is 4·σ(2x)·σ(-2x): right far out, too.
fn sech_square<R: Real, D: Float>(x: Val<R, D>) -> Val<R, D> {
    let twice = x + x;
    c::<R, D>(4.0) * twice.sigmoid() * (-twice).sigmoid()
}

/// digamma's derivative, to 2^-48: Σ 1/(x + n)² up to n = 9, then the asymptotic series; reflected below 0.
fn trigamma<R: Real, D: Float>(x: Val<R, D>) -> Val<R, D> {
    let n = |x: f64| c::<R, D>(x);
    let below = x.lt(n(0.0));
    let y = Val::select(below, n(1.0) - x, x);
    let mut sum = n(0.0);
    for k in 0..10 {
        let z = y + n(f64::from(k));
        sum = sum + n(1.0) / (z * z);
    }
    let over = n(1.0) / (y + n(10.0));
    let w = over * over;
    // 1/z + 1/(2z²) + Σ B_2k/z^(2k + 1)
    const BERNOULLI: [(f64, f64); 7] =
        [(1.0, 6.0), (-1.0, 30.0), (1.0, 42.0), (-1.0, 30.0), (5.0, 66.0), (-691.0, 2730.0), (7.0, 6.0)];
    let tail = BERNOULLI.iter().rev().fold(n(0.0), |s, &(a, b)| (s + n(a) / n(b)) * w);
    let above = sum + over * (n(1.0) + n(0.5) * over + tail);
    let turn = n(-1.0).acos() / x.sin_pi();
    Val::select(below, turn * turn - above, above)
}
