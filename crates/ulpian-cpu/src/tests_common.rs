//! What both suites of products are tried with: one recorded product of every form, and the devices to run it on.

use crate::{Cpu, Isa, Options};
use ulpian_kernel::device::{Binding, Device};
use ulpian_kernel::ir::{Contract, Operand, Unit, Value};
use ulpian_kernel::record::{Recorder, Traced};
use ulpian_num::Dtype;
use ulpian_num::real::Val;

pub type U = Val<Traced, u32>;

#[derive(Clone, Copy, Debug)]
pub struct Form {
    pub dtype: Dtype,
    pub tile: (u32, u32),
    pub a_transposed: bool,
    pub b_transposed: bool,
    /// Operands are computed lane by lane.
    pub lanes: bool,
    pub keep: bool,
}

pub const PLAIN: Form = Form {
    dtype: Dtype::F32,
    tile: (32, 64),
    a_transposed: false,
    b_transposed: false,
    lanes: false,
    keep: false,
};

impl Form {
    pub fn programs(self, m: usize, n: usize) -> u64 {
        (m.div_ceil(self.tile.0 as usize) * n.div_ceil(self.tile.1 as usize)) as u64
    }
}

/// One tile of `op(A) op(B)` and where it stands in the result.
pub struct Product {
    pub value: Value,
    pub m: U,
    pub n: U,
    pub index: U,
    pub row: U,
    pub column: U,
    pub in_columns: Val<Traced, bool>,
    pub inside: Val<Traced, bool>,
}

/// An operand read where it lies, from its buffer's start.
pub fn strided(buffer: u32, outer0: U, limit: U, outer_stride: U, k_stride: U) -> Operand {
    Operand::Strided {
        buffer,
        base: U::lit(0).0,
        outer0: outer0.0,
        outer_limit: limit.0,
        outer_stride: outer_stride.0,
        k_stride: k_stride.0,
        unit: Unit::Neither,
        aligned: false,
    }
}

/// Records the tile of this program; takes the parameters m, n and k.
pub fn product(r: &mut Recorder, f: Form, a: u32, b: u32) -> Product {
    let (m, n, k) = (r.param(), r.param(), r.param());
    let (tm, tn) = f.tile;
    let tiles_n = (n + U::lit(tn - 1)).quot(U::lit(tn));
    let pid = r.program_id();
    let (i0, j0) = (pid.quot(tiles_n) * U::lit(tm), pid.rem(tiles_n) * U::lit(tn));
    let one = U::lit(1);
    let (am, ak) = if f.a_transposed { (one, m) } else { (k, one) };
    let (bn, bk) = if f.b_transposed { (k, one) } else { (one, n) };
    let (sa, sb) = if f.lanes {
        let sa = r.lanes_operand(0, tm, 8, |r, o, kk| {
            let row = i0 + o;
            r.load(a, row * am + kk * ak, Some(row.lt(m)), 0, false)
        });
        let sb = r.lanes_operand(1, tn, 8, |r, o, kk| {
            let col = j0 + o;
            r.load(b, kk * bk + col * bn, Some(col.lt(n)), 0, false)
        });
        (sa, sb)
    } else {
        (strided(a, i0, m, am, ak), strided(b, j0, n, bn, bk))
    };
    let value = r.contract(f.dtype.lane(), tm, tn, Contract { k: k.0, a: sa, b: sb });
    let (row, column) = (i0 + r.iota(tm, 0), j0 + r.iota(tn, 1));
    let in_columns = column.lt(n);
    let (index, inside) = (row * n + column, row.lt(m).and(in_columns));
    Product { value, m, n, index, row, column, in_columns, inside }
}

/// The CPU with every instruction set that this machine has, on one thread and on three.
pub fn devices() -> Vec<Cpu> {
    let mut all = vec![];
    for isa in Isa::ALL.into_iter().filter(|i| i.available()) {
        for threads in [1, 3] {
            all.push(Cpu::new(Options { threads: Some(threads), isa: Some(isa) }).unwrap());
        }
    }
    all
}

pub fn upload(cpu: &Cpu, data: &[Vec<u8>]) -> Vec<Binding> {
    let bind = |d: &Vec<u8>| {
        let b = Binding { memory: cpu.allocate(d.len() as u64).unwrap(), offset: 0 };
        cpu.upload(&b, d).unwrap();
        b
    };
    data.iter().map(bind).collect()
}
