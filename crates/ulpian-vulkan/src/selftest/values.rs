//! Operands for the self-test: the borders of each format and of the flush rule, then bits at random.

/// Rows of three operands.
pub(crate) const ROWS: usize = 1024;

/// f32 magnitudes at every border that the contract names; each is used with both signs.
const F32: [u32; 22] = [
    0x0000_0000, // 0
    0x0000_0001, // smallest subnormal
    0x0040_0000, // 2^-127
    0x007f_ffff, // largest subnormal
    0x0080_0000, // 2^-126
    0x0080_0001,
    0x0100_0000, // 2^-125
    0x1fff_ffff, // products of these two end near 2^-126
    0x2000_0001, // (1 + 2^-23) 2^-63
    0x1fff_fffe, // (1 - 2^-23) 2^-63
    0x3f7f_ffff, // 1 - 2^-24
    0x3f80_0000, // 1
    0x3f80_0001, // 1 + 2^-23
    0x3fc0_0000, // 1.5
    0x3f00_0000, // 0.5
    0x3eaa_aaab, // 1/3
    0x4b80_0000, // 2^24
    0x4b00_0001, // 2^23 + 1
    0x7f7f_ffff, // largest
    0x7f00_0000, // 2^127
    0x7f80_0000, // infinity
    0x7fc0_0000, // NaN
];

/// Triples whose fused and unfused results differ, or that sit on the flush rule's border.
const F32_TRIPLES: [[u32; 3]; 8] = [
    [0x3f80_0001, 0x3f80_0001, 0xbf80_0002], // residual of a square: 2^-46
    [0x3f7f_ffff, 0x3f7f_ffff, 0xbf7f_fffe], // residual 2^-48
    [0x3f7f_ffff, 0x0080_0000, 0x8000_0000], // (1 - 2^-24) 2^-126: below T, flushed
    [0x2000_0001, 0x1fff_fffe, 0x8000_0000], // (1 + 2^-23)(1 - 2^-23) 2^-126: at least T, rounds up and stays
    [0x2000_0001, 0x1fff_fffe, 0x0000_0001], // the same with a subnormal addend, which counts as zero
    [0x5f7f_ffff, 0x5f7f_ffff, 0xfe80_0000], // large product against a large addend
    [0x3eaa_aaab, 0x4040_0000, 0xbf80_0000], // (1/3) 3 - 1
    [0x7f7f_ffff, 0x4000_0000, 0xff80_0000], // an exact product beyond the range, minus infinity
];

/// A small linear generator: the same operands on every device and every run.
pub(crate) struct Random(pub u64);

impl Random {
    pub fn word(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 32) as u32
    }
}

/// `ROWS` triples of f32 bits.
pub(crate) fn f32_triples() -> Vec<[u32; 3]> {
    let mut random = Random(2024);
    let signed: Vec<u32> = F32.iter().flat_map(|b| [*b, *b | 0x8000_0000]).collect();
    let mut rows: Vec<[u32; 3]> = F32_TRIPLES.to_vec();
    // Every pair of magnitudes, with signs and a third operand at random.
    for a in F32 {
        for b in F32 {
            let signs = random.word();
            let c = signed[random.word() as usize % signed.len()];
            rows.push([a | signs & 0x8000_0000, b | signs << 1 & 0x8000_0000, c]);
        }
    }
    while rows.len() < ROWS {
        // Exponents near each other, or near the bottom, so that sums round and products go subnormal.
        let (a, b, c) = (random.word(), random.word(), random.word());
        rows.push(match rows.len() % 3 {
            0 => [a, b, c],
            1 => {
                [a & 0x83ff_ffff | 0x3c00_0000, b & 0x83ff_ffff | 0x3c00_0000, c & 0x83ff_ffff | 0x3c00_0000]
            }
            _ => [a & 0x80ff_ffff | 0x1f80_0000, b & 0x80ff_ffff | 0x1f80_0000, c & 0x81ff_ffff],
        });
    }
    rows.truncate(ROWS);
    rows
}

/// `ROWS` triples of 32-bit integers; the second is never zero.
pub(crate) fn u32_triples() -> Vec<[u32; 3]> {
    const EDGES: [u32; 12] =
        [0, 1, 2, 3, 31, 32, 0xffff, 0x1_0000, 0x7fff_ffff, 0x8000_0000, 0xffff_fffe, u32::MAX];
    let mut random = Random(7);
    let mut rows = Vec::new();
    for a in EDGES {
        for b in EDGES {
            rows.push([a, b.max(1), random.word()]);
        }
    }
    while rows.len() < ROWS {
        let b = random.word();
        rows.push([random.word(), (b >> (random.word() % 32)).max(1), random.word()]);
    }
    rows
}

/// `ROWS` triples of f64 bits.
pub(crate) fn f64_triples() -> Vec<[u64; 3]> {
    const EDGES: [u64; 14] = [
        0,
        1,
        0x000f_ffff_ffff_ffff,
        0x0010_0000_0000_0000,
        0x0020_0000_0000_0001,
        0x1ff0_0000_0000_0001,
        0x1ff8_0000_0000_0003,
        0x3fef_ffff_ffff_ffff,
        0x3ff0_0000_0000_0000,
        0x3ff0_0000_0000_0001,
        0x4340_0000_0000_0001,
        0x7fef_ffff_ffff_ffff,
        0x7ff0_0000_0000_0000,
        0x7ff8_0000_0000_0000,
    ];
    let mut random = Random(99);
    let mut wide = || u64::from(random.word()) << 32 | u64::from(random.word());
    let mut rows = Vec::new();
    for a in EDGES {
        for b in EDGES {
            let r = wide();
            rows.push([a | r & 1 << 63, b | r << 1 & 1 << 63, wide()]);
        }
    }
    while rows.len() < ROWS {
        let near = |x: u64| x & 0x803f_ffff_ffff_ffff | 0x3fc0_0000_0000_0000;
        let low = |x: u64| x & 0x801f_ffff_ffff_ffff | 0x1fe0_0000_0000_0000;
        let (a, b, c) = (wide(), wide(), wide());
        rows.push(match rows.len() % 3 {
            0 => [a, b, c],
            1 => [near(a), near(b), near(c)],
            _ => [low(a), low(b), c & 0x801f_ffff_ffff_ffff],
        });
    }
    rows
}

/// `ROWS` triples of 64-bit integers.
pub(crate) fn i64_triples() -> Vec<[u64; 3]> {
    const EDGES: [u64; 8] = [0, 1, 0xffff_ffff, 0x1_0000_0000, i64::MAX as u64, 1 << 63, u64::MAX, 63];
    let mut random = Random(5);
    let mut wide = || u64::from(random.word()) << 32 | u64::from(random.word());
    let mut rows = Vec::new();
    for a in EDGES {
        for b in EDGES {
            rows.push([a, b, wide()]);
        }
    }
    while rows.len() < ROWS {
        rows.push([wide(), wide(), wide()]);
    }
    rows
}
