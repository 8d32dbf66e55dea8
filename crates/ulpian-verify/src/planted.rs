//! Faults planted one by one in a function's body, and whether a sample of arguments sees them.
//!
//! Here lives the sample (a sixty-fourth of what the tests of `tests/functions.rs` run, the recorded hard cases, and
//! both sides of every border) and the counting; which faults must be seen is the tests' business. A fault that no
//! argument sees is not a gap as such: a fast path's value only has to be inside its error bound, so that a small
//! coefficient's last unit changes which arguments are in doubt, and the slow path answers them alike.

use crate::prove::pairs;
use crate::tape::{Fault, Id, LANES, Lanes, Tape};
use crate::truth::{Format, Function, Undecided, correct};
use std::collections::BTreeMap;
use ulpian_num::{Dtype, Func};

/// Every so many arguments are in the sample: 64 times the step of the tests on devices, and prime.
const STEP: u64 = 262_337;
/// Arguments in doubt on which the slow path's faults are tried.
const IN_DOUBT: usize = 1024;

/// What became of the faults of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub planted: usize,
    pub caught: usize,
}

/// What became of the faults of one function, by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    pub fast: BTreeMap<&'static str, Count>,
    pub slow: BTreeMap<&'static str, Count>,
    /// Arguments, and how many of them the fast path leaves in doubt.
    pub arguments: usize,
    pub doubts: usize,
    /// Faults of the fast path that no argument saw.
    pub unseen: Vec<Fault>,
}

/// The kind's name.
pub fn kind(fault: Fault) -> &'static str {
    match fault {
        Fault::Unit(_) => "coefficient off by a unit",
        Fault::Integer(_) => "integer off by one",
        Fault::Dropped(_) => "correction dropped",
        Fault::Swapped(_) => "choice swapped",
        Fault::FlushedArgument => "argument flushed",
        Fault::FlushedResult => "result flushed",
    }
}

/// Arguments with their right results.
struct Sample {
    a: Vec<u32>,
    b: Vec<u32>,
    right: Vec<u32>,
}

impl Sample {
    fn chunk(&self, at: usize) -> ([Lanes; 2], &[u32]) {
        let end = self.right.len().min(at + LANES);
        let lanes = |v: &[u32]| {
            let mut out = [v[at]; LANES];
            out[..end - at].copy_from_slice(&v[at..end]);
            out
        };
        ([lanes(&self.a), lanes(&self.b)], &self.right[at..end])
    }
}

fn truth(t: Function, a: u32, b: u32, keep: bool) -> Result<u32, Undecided> {
    correct(t, f32::from_bits(a), f32::from_bits(b), Format::F32, keep)
}

fn word(text: &str) -> Option<u32> {
    u32::from_str_radix(text, 16).ok()
}

fn hard_cases(t: Function) -> impl Iterator<Item = (u32, u32)> {
    include_str!("../data/hard_cases.txt").lines().filter_map(move |line| {
        let mut parts = line.split(' ');
        (parts.next().and_then(Function::named) == Some(t)).then_some(())?;
        Some((word(parts.next()?)?, word(parts.next()?)?))
    })
}

/// Zeros, the ends of the subnormals and of the numbers, 1, and their neighbours.
fn ends() -> Vec<u32> {
    let marks = [0u32, 0x0080_0000, 0x0100_0000, 0x3f80_0000, 0x7f80_0000, 0x7fc0_0000];
    let near = marks.iter().flat_map(|m| [m.saturating_sub(1), *m, m + 1]);
    near.flat_map(|m| [m, m | 1 << 31]).collect()
}

/// Arguments in order of `a` between which the magnitude of the result crosses 2^-125 or 2^-126: both sides, and the middle.
fn crossings(t: Function, keep: bool, known: &[(u32, u32)]) -> Result<Vec<u32>, Undecided> {
    let mut all = vec![];
    let small = |a: u32, least: u32| Ok(truth(t, a, a, keep)? & 0x7fff_ffff < least << 23);
    for pair in known.windows(2) {
        let [(a, ya), (b, yb)] = *pair else { continue };
        for least in [1, 2] {
            let below = |y: u32| y & 0x7fff_ffff < least << 23;
            if (a ^ b) >> 31 == 1 || below(ya) == below(yb) {
                continue;
            }
            let (mut low, mut high) = (a, b);
            while high - low > 1 {
                let middle = low + (high - low) / 2;
                if small(middle, least)? == below(ya) { low = middle } else { high = middle }
            }
            let (under, over) = (low.saturating_sub(1), high.saturating_add(1));
            all.extend([under, low, high, over, low + (b - low) / 2, a + (low - a) / 2]);
            // Well inside the exponent between the two borders.
            all.extend((1..8).flat_map(|k| [low.saturating_sub(k << 10), high.saturating_add(k << 10)]));
        }
    }
    Ok(all)
}

fn sample(f: Func, t: Function, keep: bool) -> Result<Sample, Undecided> {
    let mut all: Vec<(u32, u32)> = hard_cases(t).collect();
    if f.arity() == 2 {
        let ends = ends();
        all.extend(ends.iter().flat_map(|a| ends.iter().map(|b| (*a, *b))));
        let count = pairs::count(Dtype::F32);
        all.extend((0..count).step_by((count / 16_384) as usize).map(|i| pairs::pair(f, Dtype::F32, i)));
    } else {
        all.extend(ends().into_iter().map(|a| (a, a)));
        let strided: Vec<u32> = (0..1 << 32).step_by(STEP as usize).map(|a: u64| a as u32).collect();
        let known: Vec<(u32, u32)> =
            strided.iter().map(|a| Ok((*a, truth(t, *a, *a, keep)?))).collect::<Result<_, Undecided>>()?;
        all.extend(crossings(t, keep, &known)?.into_iter().map(|a| (a, a)));
        all.extend(strided.into_iter().map(|a| (a, a)));
    }
    let right = all.iter().map(|(a, b)| truth(t, *a, *b, keep)).collect::<Result<_, _>>()?;
    let (a, b) = all.into_iter().unzip();
    Ok(Sample { a, b, right })
}

/// Plants every fault of `f`, whose truth is `t`; `borders_only`: those of flushing alone.
///
/// # Errors
/// [`Undecided`] where an argument's right result is not known.
pub fn survey(f: Func, t: Function, keep_subnormals: bool, borders_only: bool) -> Result<Survey, Undecided> {
    let tape = Tape::of(f, keep_subnormals);
    let mut sample = sample(f, t, keep_subnormals)?;
    let mut survey = Survey { arguments: sample.right.len(), ..Survey::default() };
    let planted = |fast: bool| -> Vec<(Fault, Vec<Id>)> {
        let all = tape.faults(fast).into_iter();
        let border = |x: &Fault| matches!(x, Fault::FlushedArgument | Fault::FlushedResult);
        all.filter(|x| border(x) || !borders_only).map(|x| (x, tape.touched(x))).collect()
    };
    let mut doubtful = Sample { a: vec![], b: vec![], right: vec![] };
    let canonical = |x: u32| Format::F32.canonical(x);
    // A flush is a fault only where some right result differs with it.
    let mut left = planted(true);
    left.retain(|(x, _)| match x {
        Fault::FlushedArgument | Fault::FlushedResult => {
            let differs = |i: usize| {
                let wrong = |bits: u32| crate::tape::flushed(bits, keep_subnormals);
                let right = sample.right[i];
                if *x == Fault::FlushedResult {
                    return wrong(right) != right;
                }
                let (a, b) = (sample.a[i], sample.b[i]);
                let moved = (wrong(a), wrong(b)) != (a, b);
                moved && truth(t, wrong(a), wrong(b), keep_subnormals) != Ok(right)
            };
            (0..sample.right.len()).any(differs)
        }
        _ => true,
    });
    for (x, _) in &left {
        survey.fast.entry(kind(*x)).or_default().planted += 1;
    }
    for at in (0..sample.right.len()).step_by(LANES) {
        let (arguments, _) = sample.chunk(at);
        let columns = tape.play(&arguments);
        let (ours, doubts) = (tape.results(&arguments, &columns, None), tape.doubts(&columns));
        let end = sample.right.len().min(at + LANES);
        for (i, j) in (at..end).zip(0..) {
            if doubts[j] != 0 {
                survey.doubts += 1;
                if doubtful.right.len() < IN_DOUBT {
                    doubtful.a.push(sample.a[i]);
                    doubtful.b.push(sample.b[i]);
                    doubtful.right.push(sample.right[i]);
                }
            }
            // Of functions that only have a bound: what is not the nearest float says nothing about a fault.
            if !f.correctly_rounded() {
                sample.right[i] = canonical(ours[j]);
            }
        }
        let (_, right) = sample.chunk(at);
        left.retain(|(x, touched)| {
            let wrong = tape.results(&arguments, &columns, Some((*x, touched)));
            let seen = right.iter().zip(&wrong).any(|(r, w)| *r != canonical(*w));
            survey.fast.entry(kind(*x)).or_default().caught += usize::from(seen);
            !seen
        });
    }
    survey.unseen = left.into_iter().map(|(x, _)| x).collect();
    let mut left = planted(false);
    for (x, _) in &left {
        survey.slow.entry(kind(*x)).or_default().planted += 1;
    }
    for at in (0..doubtful.right.len()).step_by(LANES) {
        let (arguments, right) = doubtful.chunk(at);
        let columns = tape.play(&arguments);
        left.retain(|(x, touched)| {
            let wrong = tape.results(&arguments, &columns, Some((*x, touched)));
            let seen = right.iter().zip(&wrong).any(|(r, w)| *r != canonical(*w));
            survey.slow.entry(kind(*x)).or_default().caught += usize::from(seen);
            !seen
        });
    }
    Ok(survey)
}
