//! Writes `crates/ulpian-num/src/functions/constants/half.rs`: the 16-bit arguments whose nearest f32 result lies half-way
//! between two 16-bit numbers and hides on which side the exact value is.
//!
//!     cargo run --release -p ulpian-verify --example half_way > crates/ulpian-num/src/functions/constants/half.rs
//!     cargo fmt -p ulpian-num
//!
//! By the truth alone: no function of `ulpian-num` is called. Each function's arguments are gathered into as few tests
//! of `bits & mask` as a greedy search finds. A test may meet other arguments, where the step it makes changes no
//! 16-bit result in either subnormal mode: that is checked for all 65,536.

use ulpian_num::{Bf16, F16, Func, convert};
use ulpian_verify::truth::{Format, Function, correct};

/// One 16-bit argument, in both subnormal modes (flush, keep).
struct Case {
    /// Its f32 pattern.
    x: u32,
    /// The nearest f32 result, and the nearest 16-bit one.
    y: [u32; 2],
    right: [u32; 2],
}

/// A test and its step.
#[derive(Clone, Copy)]
struct Group {
    mask: u32,
    bits: u32,
}

fn narrowed(y: u32, format: Format) -> u32 {
    let y = f32::from_bits(y);
    let bits = if format == Format::F16 { convert::f32_to_f16(y).0 } else { convert::f32_to_bf16(y).0 };
    format.canonical(u32::from(bits))
}

impl Case {
    fn all(f: Function, format: Format) -> Vec<Case> {
        let case = |pattern: u32| {
            let x = match format {
                Format::F16 => convert::f16_to_f32(F16(pattern as u16)),
                _ => convert::bf16_to_f32(Bf16(pattern as u16)),
            };
            let at = |to, keep| correct(f, x, x, to, keep).unwrap_or_else(|e| panic!("{e}"));
            Case {
                x: x.to_bits(),
                y: [false, true].map(|keep| at(Format::F32, keep)),
                right: [false, true].map(|keep| at(format, keep)),
            }
        };
        (0..1 << 16).map(case).collect()
    }

    /// Whether a step of `by` units gives the right result in the mode; NaNs are left alone in any case.
    fn holds(&self, by: i32, mode: usize, format: Format) -> bool {
        narrowed(self.y[mode].wrapping_add_signed(by), format) == self.right[mode]
    }
}

impl Group {
    fn of(x: u32) -> Group {
        Group { mask: u32::MAX, bits: x }
    }
    fn meets(self, x: u32) -> bool {
        x & self.mask == self.bits
    }
    fn join(self, other: Group) -> Group {
        let mask = self.mask & other.mask & !(self.bits ^ other.bits);
        Group { mask, bits: self.bits & mask }
    }
    /// See `Nudge::only_kept` of `ulpian-num`: such tests apply where subnormals are kept.
    fn only_kept(self) -> bool {
        self.mask & 0x7f00_0000 == 0x7f00_0000 && self.bits & 0x7f00_0000 == 0
    }
}

/// Joins groups for as long as no argument is met that a step of `by` would make wrong.
fn gathered(cases: &[Case], format: Format, by: i32, wanted: Vec<u32>) -> Vec<Group> {
    let harmed: [Vec<u32>; 2] =
        [0, 1].map(|mode| cases.iter().filter(|c| !c.holds(by, mode, format)).map(|c| c.x).collect());
    let harmless = |g: Group| {
        let first = usize::from(g.only_kept());
        (first..2).all(|mode| !harmed[mode].iter().any(|&x| g.meets(x)))
    };
    let whole = wanted.iter().map(|&x| Group::of(x)).reduce(Group::join);
    if let Some(whole) = whole.filter(|&g| harmless(g)) {
        return vec![whole];
    }
    let mut groups: Vec<Group> = wanted.into_iter().map(Group::of).collect();
    assert!(groups.iter().all(|&g| harmless(g)), "one step of an f32 unit is wrong in one of the modes");
    // The closest first: the more a mask keeps, the fewer arguments it meets.
    loop {
        let pairs = (0..groups.len()).flat_map(|i| (0..i).map(move |j| (i, j)));
        let best = pairs
            .map(|(i, j)| (groups[i].join(groups[j]), i, j))
            .filter(|p| harmless(p.0))
            .max_by_key(|p| p.0.mask.count_ones());
        let Some((joined, i, j)) = best else { return groups };
        groups[j] = joined;
        groups.swap_remove(i);
    }
}

fn rows(f: Function, format: Format) -> Vec<(Group, i32)> {
    let cases = Case::all(f, format);
    let wrong = |c: &&Case| (0..2).any(|mode| !c.holds(0, mode, format));
    let step = |by: i32| {
        let mine = |c: &&Case| {
            (0..2).all(|m| c.holds(by, m, format) || c.holds(0, m, format) && Group::of(c.x).only_kept())
        };
        cases.iter().filter(wrong).filter(mine).map(|c| c.x).collect::<Vec<_>>()
    };
    let (up, down) = (step(1), step(-1));
    assert_eq!(up.len() + down.len(), cases.iter().filter(wrong).count(), "{}: no step helps", f.name());
    let with = |by: i32, wanted| gathered(&cases, format, by, wanted).into_iter().map(move |g| (g, by));
    let found: Vec<(Group, i32)> = with(1, up).chain(with(-1, down)).collect();
    // Two tests may meet in one argument; the later one decides there.
    for c in &cases {
        for (mode, keep) in [(0, false), (1, true)] {
            let here = found.iter().rfind(|(g, _)| g.meets(c.x) && (keep || !g.only_kept()));
            assert!(c.holds(here.map_or(0, |h| h.1), mode, format), "{} {:x}", f.name(), c.x);
        }
    }
    found
}

fn main() {
    println!(
        "//! 16-bit arguments whose nearest f32 result is half-way between two 16-bit numbers: the step that shows the side."
    );
    println!("//!");
    println!(
        "//! Written by `cargo run --release -p ulpian-verify --example half_way`; change the generator, not this file."
    );
    println!();
    println!("use crate::functions::half::{{Nudge, down, up}};");
    println!();
    println!("/// Function, steps of f16, steps of bf16. Functions that need none are left out.");
    println!("pub const ROWS: &[(&str, &[Nudge], &[Nudge])] = &[");
    for f in Function::ALL.iter().filter(|f| f.arity() == 1) {
        let both = [Format::F16, Format::Bf16].map(|format| rows(*f, format));
        if both.iter().all(|r| r.is_empty()) {
            continue;
        }
        let name = Func::ALL.iter().map(|g| g.name()).find(|g| Function::named(g) == Some(*f));
        let list = both.map(|r| {
            let one = |(g, by): (Group, i32)| {
                let name = if by > 0 { "up" } else { "down" };
                format!("{name}(0x{:08x}, 0x{:08x})", g.mask, g.bits)
            };
            format!("&[{}]", r.into_iter().map(one).collect::<Vec<_>>().join(", "))
        });
        println!("(\"{}\", {}),", name.unwrap_or(f.name()), list.join(", "));
    }
    println!("];");
}
