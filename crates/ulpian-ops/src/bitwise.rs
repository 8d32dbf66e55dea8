//! Bits of integers: and, or, xor, not, shifts. Exact. Bools take the first four, as their logic.

use crate::arithmetic::same_number;
use crate::bounds::exact;
use crate::lane::{Lane, int};
use crate::pointwise::{Number, pointwise, still};
use crate::sample::{self, INTS, host, nasty, sample};
use std::sync::Arc;
use ulpian_graph::{Op, Sample};
use ulpian_num::{Dtype, Val};

const INTEGERS: &str = "integers carry no tangent";
const BITS: &str = "one dtype of u8, i32, i64 and bool for all inputs";
const WHOLE: &str = "one integer dtype (u8, i32, i64) for both inputs";

fn integer(given: &[Dtype]) -> Option<Dtype> {
    same_number(given).filter(|d| d.is_int())
}
fn bits(given: &[Dtype]) -> Option<Dtype> {
    integer(given).or(given.iter().all(|&d| d == Dtype::Bool).then_some(Dtype::Bool))
}
fn pairs(op: Arc<dyn Op>) -> Vec<Sample> {
    sample::binary(op, &[&INTS[..], &[Dtype::Bool]].concat(), false)
}
/// Nasty values by every amount around 0 and the widths.
fn shifts(op: Arc<dyn Op>) -> Vec<Sample> {
    let mut out = vec![];
    for d in INTS {
        let v = nasty(d);
        let amounts =
            [0.0, 1.0, 4.0, 7.0, 8.0, 9.0, 30.0, 31.0, 32.0, 33.0, 62.0, 63.0, 64.0, 65.0, -1.0, -64.0];
        let (n, m) = (v.len(), amounts.len());
        let left: Vec<f64> = (0..n * m).map(|i| v[i / m]).collect();
        out.push(sample(&op, vec![host(d, &[n, m], &left), host(d, &[n, m], &amounts)], false));
    }
    out.push(sample(&op, vec![host(Dtype::I32, &[0], &[0.0]), host(Dtype::I32, &[0], &[0.0])], false));
    out
}

pointwise! {
    /// Bits that both have, broadcasting. Exact.
    BitAnd bitwise_and(a, b) torch "a & b" takes BITS;
    dtype |given| bits(given);
    lanes |x, _output| match (x[0], x[1]) {
        (Lane::Bool(a), Lane::Bool(b)) => Lane::Bool(a.and(b)),
        (a, b) => int!(Val::bit_and, a, b),
    };
    point |p, _output| Number::Int(p[0].int() & p[1].int());
    tolerance |_| exact();
    samples pairs;
    { still!("bitwise_and", INTEGERS); }

    /// Bits that either has, broadcasting. Exact.
    BitOr bitwise_or(a, b) torch "a | b" takes BITS;
    dtype |given| bits(given);
    lanes |x, _output| match (x[0], x[1]) {
        (Lane::Bool(a), Lane::Bool(b)) => Lane::Bool(a.or(b)),
        (a, b) => int!(Val::bit_or, a, b),
    };
    point |p, _output| Number::Int(p[0].int() | p[1].int());
    tolerance |_| exact();
    samples pairs;
    { still!("bitwise_or", INTEGERS); }

    /// Bits that one of two has, broadcasting. Exact.
    BitXor bitwise_xor(a, b) torch "a ^ b" takes BITS;
    dtype |given| bits(given);
    lanes |x, _output| match (x[0], x[1]) {
        (Lane::Bool(a), Lane::Bool(b)) => Lane::Bool(a.xor(b)),
        (a, b) => int!(Val::bit_xor, a, b),
    };
    point |p, _output| Number::Int(p[0].int() ^ p[1].int());
    tolerance |_| exact();
    samples pairs;
    { still!("bitwise_xor", INTEGERS); }

    /// All bits turned. Exact.
    BitNot bitwise_not(x) torch "~x" takes BITS;
    dtype |given| bits(given);
    lanes |x, _output| match x[0] {
        Lane::Bool(x) => Lane::Bool(x.negate()),
        x => int!(|x: Val<R, _>, _| x.bit_not(), x, x),
    };
    point |p, _output| Number::Int(!p[0].int());
    tolerance |_| exact();
    samples |op| sample::unary(op, &[&INTS[..], &[Dtype::Bool]].concat(), false, false);
    { still!("bitwise_not", INTEGERS); }

    /// `a·2^b`, broadcasting, wrapped to the dtype; 0 for a `b` below 0 or from the width up, as in PyTorch. Exact.
    ShiftLeft bitwise_left_shift(a, b) torch "a << b" takes WHOLE;
    dtype |given| integer(given);
    lanes |x, _output| int!(Val::shift_left, x[0], x[1]);
    point |p, _output| {
        let (a, b) = (p[0].int(), p[1].int());
        // What leaves a narrower dtype is cut off after.
        Number::Int(if (0..64).contains(&b) { a << b } else { 0 })
    };
    tolerance |_| exact();
    samples shifts;
    { still!("bitwise_left_shift", INTEGERS); }

    /// `a/2^b` downward, broadcasting; the sign (0 or −1) for a `b` below 0 or from the width up, as in PyTorch. Exact.
    ShiftRight bitwise_right_shift(a, b) torch "a >> b" takes WHOLE;
    dtype |given| integer(given);
    lanes |x, _output| int!(Val::shift_right, x[0], x[1]);
    point |p, _output| {
        let (a, b) = (p[0].int(), p[1].int());
        Number::Int(a >> if (0..64).contains(&b) { b } else { 63 })
    };
    tolerance |_| exact();
    samples shifts;
    { still!("bitwise_right_shift", INTEGERS); }
}
