//! A buffer larger than any single allocation, if the device can: filled, read and written by shaders at its ends, in
//! its middle and around each multiple of 4 GiB, checked on the host.
//!
//! `big_buffer [DEVICE [GIB]]`: `vulkan:DEVICE`, twice GIB (default 6) gibibytes are used.

use std::error::Error;
use ulpian_kernel::device::{Binding, Device, Launch, Prepared};
use ulpian_kernel::ir::Access;
use ulpian_kernel::record::{Traced, record};
use ulpian_num::{Dtype, Val};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let index = args.next().map_or(Ok(0), |s| s.parse())?;
    let gib: u64 = args.next().map_or(Ok(6), |s| s.parse())?;
    let d = ulpian_vulkan::open(index)?;
    for (name, value) in &d.facts().limits {
        if name.contains("largest") || name.contains("several") {
            println!("{name}: {value}");
        }
    }
    let elements = gib << 28;
    let n = u32::try_from(elements).map_err(|_| "a kernel counts elements in 32 bits: at most 15 GiB")?;
    let kernel = Prepared::new(record("add and mix", false, |r| {
        let (from, to) = (r.buffer(Dtype::U32, Access::Read), r.buffer(Dtype::U32, Access::Write));
        let n = r.param();
        let i = r.program_id() * Val::lit(1024u32) + r.iota(1024, 1);
        let mask = i.lt(n);
        let x: Val<Traced, u32> = Val::new(r.load(from, i, Some(mask), 0, true));
        r.store(to, i, Some(mask), (x + i * Val::lit(2_654_435_761u32)).0, true);
    })?);
    let a = Binding { memory: d.allocate(elements * 4)?, offset: 0 };
    let b = Binding { memory: d.allocate_unfilled(elements * 4)?, offset: 0 };
    println!("two buffers of {gib} GiB allocated");
    let planted = 1 << 20;
    let ends = (0..=gib / 4).flat_map(|g| [(g << 32).saturating_sub(4 * planted), g << 32]);
    let mut places: Vec<u64> = ends
        .chain([elements * 2, elements * 4 - 4 * planted])
        .filter(|p| p + 4 * planted <= elements * 4)
        .collect();
    places.sort_unstable();
    places.dedup();
    let value = |byte: u64, i: u64| (byte / 4 + i) as u32 ^ 0x5a5a_5a5a;
    for &p in &places {
        let data: Vec<u8> = (0..planted).flat_map(|i| value(p, i).to_le_bytes()).collect();
        d.upload(&Binding { memory: a.memory.clone(), offset: p }, &data)?;
    }
    d.run(&Launch {
        kernel,
        bindings: vec![a.clone(), b.clone()],
        params: vec![n],
        programs: elements.div_ceil(1024),
    })?;
    let mut wrong = 0u64;
    for &p in &places {
        let mut out = vec![0u8; 4 * planted as usize];
        d.download(&Binding { memory: b.memory.clone(), offset: p }, &mut out)?;
        for (i, word) in out.chunks_exact(4).enumerate() {
            let at = p / 4 + i as u64;
            // What a later place planted over an earlier one has the same value.
            let expected = value(p, i as u64).wrapping_add((at as u32).wrapping_mul(2_654_435_761));
            wrong += u64::from(u32::from_le_bytes([word[0], word[1], word[2], word[3]]) != expected);
        }
        println!("byte {p:#x}: {wrong} wrong so far");
    }
    // All of it, in one call that a 32-bit size would cut short.
    let mut all = vec![0u8; (elements * 4) as usize];
    d.download(&b, &mut all)?;
    let inside = |at: u64| places.iter().any(|p| (*p..p + 4 * planted).contains(&(4 * at)));
    for (at, word) in all.chunks_exact(4).enumerate().step_by(4099) {
        let at = at as u64;
        let start = if inside(at) { at as u32 ^ 0x5a5a_5a5a } else { 0 };
        let expected = start.wrapping_add((at as u32).wrapping_mul(2_654_435_761));
        wrong += u64::from(u32::from_le_bytes([word[0], word[1], word[2], word[3]]) != expected);
    }
    println!("validation messages: {}", ulpian_vulkan::validation_messages());
    if wrong > 0 {
        return Err(format!("{wrong} elements are wrong").into());
    }
    println!("every element looked at is right");
    Ok(())
}
