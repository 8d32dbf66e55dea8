//! 16-bit arguments whose nearest f32 result is half-way between two 16-bit numbers: the step that shows the side.
//!
//! Written by `cargo run --release -p ulpian-verify --example half_way`; change the generator, not this file.

use crate::functions::half::{Nudge, down, up};

/// Function, steps of f16, steps of bf16. Functions that need none are left out.
pub const ROWS: &[(&str, &[Nudge], &[Nudge])] = &[
    ("cbrt", &[up(0x007fffff, 0x002a2000)], &[]),
    ("exp", &[down(0xf8a93fff, 0x38a92000)], &[]),
    ("exp2", &[up(0xffffffff, 0x3a38a000)], &[]),
    ("exp10", &[], &[down(0xffffffff, 0xbc950000)]),
    ("expm1", &[up(0xffffffff, 0x3a350000)], &[]),
    ("log", &[down(0xffffffff, 0x3baf0000)], &[]),
    ("log10", &[up(0x84baffff, 0x043a0000), down(0x83303fff, 0x02302000)], &[]),
    ("log1p", &[up(0xffffffff, 0x3bc06000), down(0xffffffff, 0xbbbfa000)], &[]),
    ("sin", &[up(0x7fffffff, 0x3e566000), down(0x7fffffff, 0x43960000)], &[]),
    ("cos", &[up(0x7fffffff, 0x3d6f8000)], &[]),
    ("tan", &[up(0x04043fff, 0x04000000), down(0x7fffffff, 0x42bda000)], &[]),
    ("acos", &[up(0xf6677fff, 0xb6060000), down(0xffffffff, 0xbd95e000)], &[]),
    ("atan", &[up(0x01409fff, 0x00408000)], &[]),
    ("sinh", &[up(0x7fffffff, 0x401e4000)], &[]),
    ("cosh", &[up(0x7fffffff, 0x3d000000)], &[]),
    ("asinh", &[up(0x7fffffff, 0x3e57a000), down(0x7fffffff, 0x4163e000)], &[]),
    ("acosh", &[up(0xffffffff, 0x3f9c8000)], &[]),
    ("erf", &[down(0x7fffffff, 0x3ac24000)], &[]),
    ("erfc", &[up(0xffffffff, 0xb9e2e000), down(0xffffffff, 0x3962e000)], &[]),
    ("erfinv", &[down(0x7fffffff, 0x3f4e4000)], &[]),
    ("lgamma", &[up(0x04115fff, 0x00004000), down(0xffffffff, 0x4010e000)], &[]),
    (
        "digamma",
        &[
            up(0x7bea5fff, 0x3ac84000),
            up(0x7ba9bfff, 0x41280000),
            down(0x7a557fff, 0x38150000),
            down(0x81471fff, 0x01410000),
        ],
        &[],
    ),
    ("sigmoid", &[up(0xfe0fffff, 0xba000000), down(0xf80fffff, 0x38000000)], &[]),
    ("logsigmoid", &[down(0xffffffff, 0x38860000)], &[]),
    ("softplus", &[down(0xffffffff, 0xb8860000)], &[]),
    (
        "silu",
        &[up(0xffffffff, 0x33800000), down(0xffffffff, 0xc02e6000)],
        &[up(0xff03ffff, 0x00010000), down(0xff03ffff, 0x80030000)],
    ),
    (
        "gelu",
        &[up(0xffffffff, 0x33800000), up(0xffffffff, 0xbaaf8000), down(0xffffffff, 0x3aaf8000)],
        &[up(0xff03ffff, 0x00010000), down(0xff03ffff, 0x80030000)],
    ),
    (
        "gelu_tanh",
        &[
            up(0xf2cb1fff, 0x32800000),
            up(0xffffffff, 0xbaaf8000),
            down(0xffffffff, 0x3aaf8000),
            down(0xffffffff, 0xbeb4e000),
        ],
        &[up(0xff03ffff, 0x00010000), down(0xff03ffff, 0x80030000)],
    ),
    (
        "quick_gelu",
        &[up(0xffffffff, 0x33800000)],
        &[up(0xff03ffff, 0x00010000), down(0xff03ffff, 0x80030000)],
    ),
    ("mish", &[up(0x00227fff, 0x00002000), down(0xfc281fff, 0xb8200000)], &[]),
];
