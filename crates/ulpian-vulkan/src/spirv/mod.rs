//! The SPIR-V reading of a kernel: one compute shader for one recorded kernel and one device's [`Caps`].
//!
//! # Host interface
//! SPIR-V 1.5 for Vulkan 1.2, entry point `main`, local size [`Shader::workgroup`] x 1 x 1. **One workgroup runs one
//! program**: its linear index is `WorkgroupId.x + WorkgroupId.y * NumWorkgroups.x`; groups whose index is not below
//! `programs` do nothing, the others run program `index + program_base`.
//!
//! There are no descriptors. Push constants (or, when [`Shader::indirect`], a block in device memory):
//!
//! | offset | content |
//! | --- | --- |
//! | 0 | u32 `programs` |
//! | 4 | u32 `program_base` |
//! | 8 + 8i | address of buffer i |
//! | then | addresses of the [`Shader::tables`] |
//! | then | address of scratch memory, only when [`Shader::scratch_bytes_per_program`] is not 0 |
//! | then | the u32 launch parameters |
//!
//! When that exceeds 128 bytes the shader is `indirect`: push constants hold `programs`, `program_base` and, at
//! offset 8, the address of a block that holds the addresses from byte 0 on and then the parameters.
//!
//! Scratch memory needs `scratch_bytes_per_program` for every program of one *dispatch* (it is indexed without
//! `program_base`), 16-byte aligned, contents unspecified; dispatches that share it must be ordered by a memory
//! barrier. Buffer addresses are multiples of 16.
//!
//! No driver is called here and nothing is measured; see [`audit`] for the rules every shader obeys.

mod arith;
pub mod asm;
mod audit;
mod build;
mod caps;
mod contract;
mod control;
#[cfg(test)]
mod device_tests;
mod dot;
mod layout;
mod lower;
mod memory;
mod operand;
mod real;
mod reduce;
mod sixteen;
mod skinny;
mod soft_fma;
#[cfg(test)]
mod tests;

pub use audit::audit;
pub use build::WriteError;
pub use caps::{Caps, writer_version};

use asm::{Id, capability, class, op};
use build::Builder;
use layout::Plan;
use lower::Lower;
use ulpian_kernel::ir::Kernel;
use ulpian_num::{Dtype, Func};

/// A written shader and what the host must know to launch it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shader {
    pub words: Vec<u32>,
    /// Local size.
    pub workgroup: u32,
    pub shared_bytes: u32,
    /// See the module's head; 0 for most kernels.
    pub scratch_bytes_per_program: u32,
    /// The tables of functions it reads, [`ulpian_kernel::sixteen`]'s in the kernel's subnormal mode.
    pub tables: Vec<(Func, Dtype)>,
    /// Bytes of push constants that are used.
    pub push_bytes: u32,
    /// Addresses and parameters are in a block in device memory.
    pub indirect: bool,
}

const PUSH_LIMIT: u32 = 128;

/// Writes `kernel` for a device.
///
/// # Errors
/// [`WriteError`] when the device lacks what the kernel needs, or the kernel breaks a rule of the IR.
pub fn write(kernel: &Kernel, caps: &Caps) -> Result<Shader, WriteError> {
    let plan = Plan::new(kernel, caps);
    let threads = plan.threads;
    let mut b = Builder::new(caps, kernel.keep_subnormals, threads);
    let scratch = contract::scratch_bytes(kernel, &plan);
    let tables = sixteen::tables(kernel);
    let slots = kernel.buffers.len() as u32 + (scratch > 0) as u32 + tables.len() as u32;
    let indirect = 8 + 8 * slots + 4 * kernel.params > PUSH_LIMIT;
    let interface = Interface::declare(&mut b, slots, kernel.params, indirect);

    let main = b.m.id();
    let void = b.t_void();
    let mut lower = Lower::new(kernel, plan, b);
    lower.survey(&kernel.body);
    let Lower { b: builder, .. } = &mut lower;
    let outer = std::mem::take(&mut builder.f);
    let label = builder.m.id();
    let fn_type = builder.m.ty(op::TYPE_FUNCTION, &[void], 0).0;
    asm::emit(&mut builder.f.head, op::FUNCTION, &[void, main, 0, fn_type]);
    builder.f.block = label;
    builder.at_entry(|b| interface.load_thread(b));
    let args = interface.load(builder);
    let (buffers, rest) = args.addresses.split_at(kernel.buffers.len());
    lower.addresses = buffers.to_vec();
    lower.tables = tables.iter().copied().zip(rest.iter().copied()).collect();
    lower.scratch = rest.get(tables.len()).copied();
    lower.params = args.params;
    lower.program = args.program;
    lower.local_program = args.linear;
    lower.when(args.inside, |me| me.block(&kernel.body));
    let b = &mut lower.b;
    b.effect(op::RETURN, &[]);
    let f = std::mem::replace(&mut b.f, outer);
    b.m.append(f, label);
    b.write_routines();
    let shared_bytes = b.declare_shared();
    if shared_bytes > caps.max_shared_bytes {
        b.fail(WriteError::SharedMemory { bytes: shared_bytes, limit: caps.max_shared_bytes });
    }
    let mut b = lower.b;
    if let Some(e) = b.error.take() {
        return Err(e);
    }
    let words = finish(b, main, threads);
    let push_bytes = if indirect { 16 } else { 8 + 8 * slots + 4 * kernel.params };
    Ok(Shader {
        words,
        workgroup: threads,
        shared_bytes,
        scratch_bytes_per_program: scratch,
        tables,
        push_bytes,
        indirect,
    })
}

fn finish(mut b: Builder, main: Id, threads: u32) -> Vec<u32> {
    let mut modes = vec![vec![asm::MODE_LOCAL_SIZE, threads, 1, 1]];
    let caps = b.caps.clone();
    b.ty(ulpian_num::Dtype::F32);
    let double = b.m.capabilities.contains(&capability::FLOAT64);
    let widths = [(32, true, caps.rte32, caps.szinp32), (64, double, caps.rte64, caps.szinp64)];
    for (width, used, rte, szinp) in widths {
        if used && rte {
            modes.push(vec![asm::MODE_RTE, width]);
            b.m.capabilities.insert(capability::ROUNDING_MODE_RTE);
            b.m.extensions.insert("SPV_KHR_float_controls");
        }
        if used && szinp {
            modes.push(vec![asm::MODE_SZINP, width]);
            b.m.capabilities.insert(capability::SIGNED_ZERO_INF_NAN_PRESERVE);
            b.m.extensions.insert("SPV_KHR_float_controls");
        }
    }
    b.m.finish(main, &modes)
}

/// The shader's arguments as declared.
struct Interface {
    group: Id,
    groups: Id,
    local: Id,
    push: Id,
    /// Type of the block behind the one address, when indirect.
    block: Option<Id>,
    slots: u32,
    params: u32,
}

struct Arguments {
    addresses: Vec<Id>,
    params: Vec<Id>,
    linear: Id,
    program: Id,
    inside: Id,
}

impl Interface {
    fn declare(b: &mut Builder, slots: u32, params: u32, indirect: bool) -> Interface {
        let u = b.t_u32();
        let u3 = b.t_vec(u, 3);
        let input = |b: &mut Builder, ty: Id, builtin: u32| {
            let p = b.t_ptr(class::INPUT, ty);
            let var = b.m.id();
            asm::emit(&mut b.m.globals, op::VARIABLE, &[p, var, class::INPUT]);
            b.m.decorate(var, &[asm::DECORATION_BUILT_IN, builtin]);
            b.m.interface.push(var);
            var
        };
        // WorkgroupId, NumWorkgroups, LocalInvocationIndex
        let (group, groups, local) = (input(b, u3, 26), input(b, u3, 24), input(b, u, 29));
        let u2 = b.t_vec(u, 2);
        let block = indirect.then(|| {
            let ty = Interface::structure(b, &[], slots, params);
            b.t_ptr(class::PHYSICAL, ty)
        });
        let ty = if indirect {
            Interface::structure(b, &[(u, 0), (u, 4), (u2, 8)], 0, 0)
        } else {
            Interface::structure(b, &[(u, 0), (u, 4)], slots, params)
        };
        let p = b.t_ptr(class::PUSH_CONSTANT, ty);
        let push = b.m.id();
        asm::emit(&mut b.m.globals, op::VARIABLE, &[p, push, class::PUSH_CONSTANT]);
        b.m.interface.push(push);
        Interface { group, groups, local, push, block, slots, params }
    }

    fn structure(b: &mut Builder, head: &[(Id, u32)], slots: u32, params: u32) -> Id {
        let u = b.t_u32();
        let u2 = b.t_vec(u, 2);
        let mut members: Vec<(Id, u32)> = head.to_vec();
        let first = 4 * head.len() as u32;
        members.extend((0..slots).map(|i| (u2, first + 8 * i)));
        members.extend((0..params).map(|i| (u, first + 8 * slots + 4 * i)));
        let types: Vec<Id> = members.iter().map(|m| m.0).collect();
        let (ty, _) = b.m.ty(op::TYPE_STRUCT, &types, 1 + first);
        b.m.decorate(ty, &[asm::DECORATION_BLOCK]);
        for (i, &(_, offset)) in members.iter().enumerate() {
            b.m.member_offset(ty, i as u32, offset);
        }
        ty
    }

    fn load_thread(&self, b: &mut Builder) {
        let u = b.t_u32();
        b.tid = b.op(op::LOAD, u, &[self.local]);
    }

    fn load(&self, b: &mut Builder) -> Arguments {
        let u = b.t_u32();
        let u2 = b.t_vec(u, 2);
        let u3 = b.t_vec(u, 3);
        let push = |b: &mut Builder, ty: Id, member: u32| {
            let p = b.t_ptr(class::PUSH_CONSTANT, ty);
            let m = b.cu(member);
            let at = b.op(op::ACCESS_CHAIN, p, &[self.push, m]);
            b.op(op::LOAD, ty, &[at])
        };
        let programs = push(b, u, 0);
        let base = push(b, u, 1);
        let block = self.block.map(|ty| {
            let address = push(b, u2, 2);
            b.bitcast(ty, address)
        });
        let member = |b: &mut Builder, ty: Id, i: u32, align: u32| match block {
            None => push(b, ty, 2 + i),
            Some(block) => {
                let p = b.t_ptr(class::PHYSICAL, ty);
                let m = b.cu(i);
                let at = b.op(op::ACCESS_CHAIN, p, &[block, m]);
                b.read(ty, at, align)
            }
        };
        let addresses = (0..self.slots).map(|i| member(b, u2, i, 8)).collect();
        let params = (0..self.params).map(|i| member(b, u, self.slots + i, 4)).collect();
        let group = b.op(op::LOAD, u3, &[self.group]);
        let groups = b.op(op::LOAD, u3, &[self.groups]);
        let x = b.op(op::COMPOSITE_EXTRACT, u, &[group, 0]);
        let y = b.op(op::COMPOSITE_EXTRACT, u, &[group, 1]);
        let width = b.op(op::COMPOSITE_EXTRACT, u, &[groups, 0]);
        let row = b.u(op::I_MUL, y, width);
        let linear = b.u(op::I_ADD, x, row);
        let program = b.u(op::I_ADD, linear, base);
        let inside = b.test(op::U_LESS_THAN, linear, programs);
        Arguments { addresses, params, linear, program, inside }
    }
}
