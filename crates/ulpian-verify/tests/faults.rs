//! Faults planted one by one in the body of every function are seen by a sixty-fourth of the arguments that the fast
//! tests run: a coefficient off by a unit, a dropped correction, a swapped choice (of a quadrant, of a half), a flush at
//! the border of the subnormals.

use ulpian_num::Func;
use ulpian_verify::planted::{Count, Survey, survey};
use ulpian_verify::truth::Function;

fn surveys(keep: bool, borders_only: bool) -> Vec<(Func, Survey)> {
    let proven = Func::ALL.iter().copied().filter(|f| f.correctly_rounded());
    let each = |f: Func| Some((f, survey(f, Function::named(f.name())?, keep, borders_only).unwrap()));
    proven.filter_map(each).collect()
}

fn count(s: &Survey, kind: &str) -> Count {
    s.fast.get(kind).copied().unwrap_or_default()
}

/// Their literals are the first guess of an iteration or of a quotient, which the steps after it put right; that they do
/// is what the exhaustive tests of `ulpian-num` check.
const GUESSES: [Func; 7] =
    [Func::Div, Func::Sqrt, Func::Rsqrt, Func::Cbrt, Func::Hypot, Func::Fmod, Func::Remainder];

#[test]
fn planted_faults_are_caught_in_every_function() {
    let mut failures = vec![];
    for (f, s) in surveys(false, false) {
        let mut ask = |holds: bool, what: &str| {
            if !holds {
                failures.push(format!("{}: {what}; {:?}, unseen {:?}", f.name(), s.fast, s.unseen));
            }
        };
        let unit = count(&s, "coefficient off by a unit");
        // The leading coefficients: of the others a unit is less than the error bound allows for.
        ask(
            unit.caught * 10 > unit.planted || GUESSES.contains(&f),
            "coefficients off by a unit are not seen",
        );
        let dropped = count(&s, "correction dropped");
        let swapped = count(&s, "choice swapped");
        // The software quotient's choices near the ends of the exponents, which `software_division.rs` goes through, and
        // lgamma's between the small coefficients of two ranges.
        let equal = match f {
            Func::Div => 3,
            Func::Lgamma => 5,
            _ => 0,
        };
        ask(swapped.caught + equal >= swapped.planted, "a swapped choice is not seen");
        let enough = dropped.caught * 2 > dropped.planted || dropped.planted == 0;
        ask(enough || f == Func::Div && dropped.caught > 0, "dropped corrections are not seen");
        for border in ["argument flushed", "result flushed"] {
            let c = count(&s, border);
            ask(c.caught == c.planted, "a flush at the border is not seen");
        }
        let slow = |kind: &str| s.slow.get(kind).is_none_or(|c| c.caught > 0);
        ask(slow("integer off by one") && slow("choice swapped"), "none of the slow path's faults is seen");
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// With subnormals kept the borders are those of the subnormals themselves.
#[test]
fn a_flush_of_kept_subnormals_is_caught_in_every_function() {
    for (f, s) in surveys(true, true) {
        for border in ["argument flushed", "result flushed"] {
            let c = count(&s, border);
            assert_eq!(c.caught, c.planted, "{}: {border}, unseen {:?}", f.name(), s.unseen);
        }
    }
}
