//! The two roads to the truth agree: what the fast one confirms is what the filter and arbitrary precision say, and
//! it confirms nothing that is off by one unit.

use ulpian_verify::truth::{Format, Function, Inputs, Tally, check, check_each, correct};

/// The verdicts on `ours`, by the fast road or by the other.
fn verdicts(
    fast: bool,
    f: Function,
    start: u32,
    step: u32,
    ours: &[u32],
    keep: bool,
) -> (Tally, Vec<(usize, u32)>) {
    let mut list = vec![];
    let mut each = |i, right: Result<u32, _>| list.push((i, right.unwrap_or(u32::MAX)));
    let inputs = Inputs::Patterns { start, step };
    let tally = match fast {
        true => check(f, inputs, ours, Format::F32, keep, &mut each),
        false => check_each(f, inputs, ours, Format::F32, keep, &mut each),
    };
    list.sort_unstable();
    (tally, list)
}

/// Right values, then each of them one pattern off: all must be confirmed, then all must be named.
#[track_caller]
fn agree(f: Function, start: u32, step: u32, count: usize, keep: bool) {
    let value = |i: usize| {
        let x = f32::from_bits(start.wrapping_add((i as u32).wrapping_mul(step)));
        correct(f, x, x, Format::F32, keep).unwrap()
    };
    let mut ours: Vec<u32> = (0..count).map(value).collect();
    let at = format!("{} from {start:08x} by {step}, subnormals kept: {keep}", f.name());
    let (tally, list) = verdicts(true, f, start, step, &ours, keep);
    assert_eq!((tally.checked, tally.wrong, tally.undecided), (count as u64, 0, 0), "{at}: {list:x?}");
    // A NaN's neighbour is one too.
    ours.iter_mut().enumerate().for_each(|(i, o)| {
        *o = match *o {
            0x7fc0_0000 => 0,
            0x7f80_0000 | 0xff80_0000 => *o - 1,
            // Alternately one up and one down.
            o => o.wrapping_add(if i % 2 == 0 || o & 0x7fff_ffff == 0 { 1 } else { u32::MAX }),
        };
    });
    let (fast, list) = verdicts(true, f, start, step, &ours, keep);
    let (slow, named) = verdicts(false, f, start, step, &ours, keep);
    assert_eq!((fast.wrong, fast.undecided), (slow.wrong, slow.undecided), "{at}");
    assert_eq!(list, named, "{at}");
    assert_eq!(fast.wrong, count as u64, "{at}");
}

fn unary() -> impl Iterator<Item = Function> {
    Function::ALL.iter().copied().filter(|f| f.arity() == 1)
}

#[test]
fn both_roads_agree_on_runs_in_every_exponent() {
    for f in unary() {
        for exponent in 0..512u32 {
            let within = exponent.wrapping_mul(0x9e37_79b9) >> 9;
            let start = exponent << 23 | within.min((1 << 23) - 300);
            agree(f, start, 1, 300, exponent % 2 == 0);
        }
    }
}

#[test]
fn both_roads_agree_across_exponents() {
    for f in unary() {
        for exponent in (0..511u32).step_by(3) {
            // The last floats of one exponent and the first of the next.
            agree(f, (exponent << 23 | 0x7f_ffff) - 99, 1, 200, exponent % 2 == 1);
        }
        agree(f, 0, 16_411, 1 << 17, false);
        agree(f, 0x8000_0000, 16_411, 1 << 17, true);
    }
}

/// Long runs, so that the largest patches are met: around 1, where most functions bend, and where exponentials end.
#[test]
fn both_roads_agree_on_long_runs() {
    for f in unary() {
        for start in [0x3ef0_0000, 0x3f7f_0000, 0xbf7f_0000, 0x4040_0000, 0x42ae_0000, 0xc2ae_0000] {
            agree(f, start, 1, 1 << 17, false);
        }
    }
}

#[test]
fn the_recorded_hard_cases_are_decided_alike_by_both_roads() {
    let word = |s: &str| u32::from_str_radix(s, 16).unwrap();
    for line in include_str!("../data/hard_cases.txt").lines().filter(|l| !l.starts_with('#')) {
        let parts: Vec<&str> = line.split(' ').collect();
        let f = Function::named(parts[0]).unwrap();
        if f.arity() != 1 {
            continue;
        }
        // In the midst of its neighbours, as in a proof.
        let input = word(parts[1]);
        agree(f, (input & !0x1ff).max(input & 0xff80_0000), 1, 512, true);
    }
}
