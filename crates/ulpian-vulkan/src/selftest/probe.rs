//! Raw probes: f32 instructions as the hardware has them, with nothing of the writer's around them.
//!
//! One small module computes a+b, a*b, fma(a,b,c) and a<b of each row. What it gives is compared with three models:
//! subnormals flushed by the contract, kept, or fma rounded twice.

use super::values::{self, ROWS};
use crate::device::Vulkan;
use crate::spirv::asm::{self, Function, Module, capability, class, emit, op};
use ulpian_kernel::device::{Binding, Device, DeviceError};
use ulpian_num::{Binary, Compare, Native, Real};

const WORKGROUP: u32 = 64;
/// Words of one row in and out.
const IN: u32 = 3;
const OUT: u32 = 4;

/// How f32 behaves here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Raw {
    pub fused_fma: bool,
    /// By the contract's rule, operands and results of sum, product and (if it is used) fma.
    pub flushes: bool,
    pub keeps: bool,
    /// The first row that is not flushed by the contract, for people.
    pub differs: Option<String>,
}

/// Runs the probe, asking for rounding to nearest even or leaving it to the driver's default.
pub(crate) fn run(device: &Vulkan, rte: bool) -> Result<Raw, DeviceError> {
    let rows = values::f32_triples();
    let input: Vec<u8> = rows.iter().flatten().flat_map(|w| w.to_le_bytes()).collect();
    let bytes = u64::from(OUT) * 4 * ROWS as u64;
    let buffers = [
        Binding { memory: device.allocate_unfilled(input.len() as u64)?, offset: 0 },
        Binding { memory: device.allocate(bytes)?, offset: 0 },
    ];
    device.upload(&buffers[0], &input)?;
    let words = module(rte, device.context().physical.features.szinp32);
    device.run_probe("self-test probe", &words, WORKGROUP, &buffers, u64::from(ROWS as u32 / WORKGROUP))?;
    let mut out = vec![0u8; bytes as usize];
    device.download(&buffers[1], &mut out)?;
    let got: Vec<u32> = out.as_chunks::<4>().0.iter().map(|c| u32::from_le_bytes(*c)).collect();
    Ok(judge(&rows, &got))
}

fn normal(bits: u32) -> bool {
    let e = bits >> 23 & 0xff;
    e != 0 && e != 0xff
}

fn same(a: u32, b: u32) -> bool {
    let nan = |x: u32| x & 0x7fff_ffff > 0x7f80_0000;
    a == b || nan(a) && nan(b)
}

fn judge(rows: &[[u32; 3]], got: &[u32]) -> Raw {
    let mut raw = Raw { fused_fma: true, flushes: true, keeps: true, differs: None };
    let model = |flush: bool, [a, b, c]: [f32; 3]| -> [u32; 4] {
        type Flush = Native<false, false>;
        type Keep = Native<false, true>;
        if flush {
            [
                Flush::binary(Binary::Add, a, b).to_bits(),
                Flush::binary(Binary::Mul, a, b).to_bits(),
                Flush::fma(false, a, b, c).to_bits(),
                u32::from(Flush::compare(Compare::Lt, a, b)),
            ]
        } else {
            [
                Keep::binary(Binary::Add, a, b).to_bits(),
                Keep::binary(Binary::Mul, a, b).to_bits(),
                Keep::fma(false, a, b, c).to_bits(),
                u32::from(Keep::compare(Compare::Lt, a, b)),
            ]
        }
    };
    // Fusedness is judged where no rule about subnormals can reach.
    for (row, out) in rows.iter().zip(got.chunks_exact(OUT as usize)) {
        let x = row.map(f32::from_bits);
        let fused = model(false, x)[2];
        if row.iter().all(|w| normal(*w))
            && normal(fused)
            && normal((x[0] * x[1]).to_bits())
            && out[2] != fused
        {
            raw.fused_fma = false;
        }
    }
    for (row, out) in rows.iter().zip(got.chunks_exact(OUT as usize)) {
        let x = row.map(f32::from_bits);
        let (flushed, kept) = (model(true, x), model(false, x));
        for i in [0, 1, 2, 3] {
            // An fma that is not fused is never used, so its subnormals do not matter.
            if i != 2 || raw.fused_fma {
                let as_contract = same(out[i], flushed[i]);
                // Comparisons may have a rule of their own; real kernels show whether the writer copes.
                raw.flushes &= i == 3 || as_contract;
                raw.keeps &= same(out[i], kept[i]);
                if !as_contract && raw.differs.is_none() {
                    let (op, [a, b, c]) = (["a + b", "a * b", "fma(a, b, c)", "a < b"][i], *row);
                    raw.differs = Some(format!(
                        "{op} of {a:#x}, {b:#x}, {c:#x} gave {:#x}, not {:#x}",
                        out[i], flushed[i]
                    ));
                }
            }
        }
    }
    raw
}

/// The module: push constants as every kernel's (programs, base, input address, output address).
fn module(rte: bool, szinp: bool) -> Vec<u32> {
    let mut m = Module::default();
    m.capabilities.extend([capability::SHADER, capability::PHYSICAL_STORAGE_BUFFER]);
    m.extensions.insert("SPV_KHR_physical_storage_buffer");
    let void = m.ty(op::TYPE_VOID, &[], 0).0;
    let boolean = m.ty(op::TYPE_BOOL, &[], 0).0;
    let u32t = m.ty(op::TYPE_INT, &[32, 0], 0).0;
    let f32t = m.ty(op::TYPE_FLOAT, &[32], 0).0;
    let uvec2 = m.ty(op::TYPE_VECTOR, &[u32t, 2], 0).0;
    let uvec3 = m.ty(op::TYPE_VECTOR, &[u32t, 3], 0).0;
    let constants = m.ty(op::TYPE_STRUCT, &[u32t, u32t, uvec2, uvec2], 0).0;
    m.decorate(constants, &[asm::DECORATION_BLOCK]);
    for (member, offset) in [0, 4, 8, 16].into_iter().enumerate() {
        m.member_offset(constants, member as u32, offset);
    }
    let array = m.ty(op::TYPE_RUNTIME_ARRAY, &[u32t], 0).0;
    m.decorate(array, &[asm::DECORATION_ARRAY_STRIDE, 4]);
    let block = m.ty(op::TYPE_STRUCT, &[array], 1).0;
    m.decorate(block, &[asm::DECORATION_BLOCK]);
    m.member_offset(block, 0, 0);
    let to_block = m.ty(op::TYPE_POINTER, &[class::PHYSICAL, block], 0).0;
    let to_word = m.ty(op::TYPE_POINTER, &[class::PHYSICAL, u32t], 0).0;
    let to_constants = m.ty(op::TYPE_POINTER, &[class::PUSH_CONSTANT, constants], 0).0;
    let to_pair = m.ty(op::TYPE_POINTER, &[class::PUSH_CONSTANT, uvec2], 0).0;
    let to_uvec3 = m.ty(op::TYPE_POINTER, &[class::INPUT, uvec3], 0).0;
    let function_type = m.ty(op::TYPE_FUNCTION, &[void], 0).0;
    let words: Vec<u32> = (0..5).map(|x| m.constant(op::CONSTANT, u32t, &[x])).collect();
    let push = m.id();
    emit(&mut m.globals, op::VARIABLE, &[to_constants, push, class::PUSH_CONSTANT]);
    let global_id = m.id();
    emit(&mut m.globals, op::VARIABLE, &[to_uvec3, global_id, class::INPUT]);
    // BuiltIn GlobalInvocationId
    m.decorate(global_id, &[asm::DECORATION_BUILT_IN, 28]);
    m.interface.extend([push, global_id]);

    let main = m.id();
    let entry = m.id();
    let mut f = Function::default();
    emit(&mut f.head, op::FUNCTION, &[void, main, 0, function_type]);
    let body = &mut f.body;
    let mut value = |m: &mut Module, opcode: u16, ty: u32, operands: &[u32]| {
        let id = m.id();
        let mut all = vec![ty, id];
        all.extend_from_slice(operands);
        emit(body, opcode, &all);
        id
    };
    let ids = value(&mut m, op::LOAD, uvec3, &[global_id]);
    let row = value(&mut m, op::COMPOSITE_EXTRACT, u32t, &[ids, 0]);
    let mut pointers = [0; 2];
    for (p, member) in pointers.iter_mut().zip([2, 3]) {
        let at = value(&mut m, op::ACCESS_CHAIN, to_pair, &[push, words[member]]);
        let pair = value(&mut m, op::LOAD, uvec2, &[at]);
        *p = value(&mut m, op::BITCAST, to_block, &[pair]);
    }
    let mut lanes = [0; IN as usize];
    let first = value(&mut m, op::I_MUL, u32t, &[row, words[IN as usize]]);
    for (i, lane) in lanes.iter_mut().enumerate() {
        let index = value(&mut m, op::I_ADD, u32t, &[first, words[i]]);
        let at = value(&mut m, op::ACCESS_CHAIN, to_word, &[pointers[0], words[0], index]);
        let word = value(&mut m, op::LOAD, u32t, &[at, 2, 4]);
        *lane = value(&mut m, op::BITCAST, f32t, &[word]);
    }
    let [a, b, c] = lanes;
    let sum = value(&mut m, op::F_ADD, f32t, &[a, b]);
    let product = value(&mut m, op::F_MUL, f32t, &[a, b]);
    let glsl = m.glsl;
    let fma = value(&mut m, op::EXT_INST, f32t, &[glsl, asm::GLSL_FMA, a, b, c]);
    for id in [sum, product, fma] {
        m.decorate(id, &[asm::DECORATION_NO_CONTRACTION]);
    }
    let below = value(&mut m, op::F_ORD_LESS_THAN, boolean, &[a, b]);
    let mut results: Vec<u32> = [sum, product, fma].map(|x| value(&mut m, op::BITCAST, u32t, &[x])).to_vec();
    results.push(value(&mut m, op::SELECT, u32t, &[below, words[1], words[0]]));
    let first = value(&mut m, op::I_MUL, u32t, &[row, words[OUT as usize]]);
    let mut stores = Vec::new();
    for (i, result) in results.into_iter().enumerate() {
        let index = value(&mut m, op::I_ADD, u32t, &[first, words[i]]);
        stores.push([value(&mut m, op::ACCESS_CHAIN, to_word, &[pointers[1], words[0], index]), result]);
    }
    for [at, result] in stores {
        emit(&mut f.body, op::STORE, &[at, result, 2, 4]);
    }
    emit(&mut f.body, op::RETURN, &[]);
    m.append(f, entry);

    let mut modes = vec![vec![asm::MODE_LOCAL_SIZE, WORKGROUP, 1, 1]];
    if rte {
        m.capabilities.insert(capability::ROUNDING_MODE_RTE);
        modes.push(vec![asm::MODE_RTE, 32]);
    }
    if szinp {
        m.capabilities.insert(capability::SIGNED_ZERO_INF_NAN_PRESERVE);
        modes.push(vec![asm::MODE_SZINP, 32]);
    }
    if rte || szinp {
        m.extensions.insert("SPV_KHR_float_controls");
    }
    m.finish(main, &modes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pretend(model: impl Fn([f32; 3]) -> [u32; 4]) -> Raw {
        let rows = values::f32_triples();
        let got: Vec<u32> = rows.iter().flat_map(|r| model(r.map(f32::from_bits))).collect();
        judge(&rows, &got)
    }

    #[test]
    fn a_device_that_rounds_twice_is_found_out() {
        let raw = pretend(|[a, b, c]| {
            [(a + b).to_bits(), (a * b).to_bits(), (a * b + c).to_bits(), u32::from(a < b)]
        });
        assert!(!raw.fused_fma && !raw.flushes && raw.keeps && raw.differs.is_some());
    }

    #[test]
    fn a_device_that_flushes_by_the_contract_is_told_from_one_that_flushes_before_rounding() {
        type Flush = Native<false, false>;
        let contract = |[a, b, c]: [f32; 3]| {
            [
                Flush::binary(Binary::Add, a, b).to_bits(),
                Flush::binary(Binary::Mul, a, b).to_bits(),
                Flush::fma(false, a, b, c).to_bits(),
                u32::from(Flush::compare(Compare::Lt, a, b)),
            ]
        };
        assert_eq!(pretend(contract), Raw { fused_fma: true, flushes: true, keeps: false, differs: None });
        // Tininess before rounding: what rounds up to 2^-126 is flushed too.
        let before = pretend(|x| {
            let mut y = contract(x);
            let exact = f64::from(x[0]) * f64::from(x[1]);
            if exact != 0.0 && exact.abs() < 2f64.powi(-126) {
                y[1] &= 0x8000_0000;
            }
            y
        });
        assert!(!before.flushes && !before.keeps);
    }
}
