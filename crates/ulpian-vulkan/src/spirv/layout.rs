//! How the lanes of a tile are spread over threads and registers.
//!
//! A tile's coordinates are powers of two, so a layout is a list of coordinate *bits*: each bit of row and column is
//! held by one bit of the thread index or by one bit of the register slot. Broadcasting drops bits. Nothing is
//! written here.

use super::caps::Caps;
use std::collections::HashMap;
use ulpian_kernel::ir::{Block, Kernel, Op, Operand, Value};
use ulpian_num::Dtype;

/// One bit of a coordinate: of the row (axis 0) or the column (axis 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Bit {
    pub axis: u8,
    pub bit: u8,
}

/// `regs[i]` is held by bit i of the slot, `threads[i]` by bit i of the thread index; a thread bit that holds
/// nothing separates threads with copies of the same lanes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    pub regs: Vec<Bit>,
    pub threads: Vec<Option<Bit>>,
}

fn bits(axis: u8, extent: u32) -> impl DoubleEndedIterator<Item = Bit> {
    (0..extent.trailing_zeros() as u8).map(move |bit| Bit { axis, bit })
}

impl Layout {
    fn spread(low: Vec<Bit>, middle: Vec<Bit>, high: Vec<Bit>, log_threads: u32) -> Layout {
        // `middle` goes to threads first; what does not fit joins the registers after `low` and `high`.
        let mut threads: Vec<Option<Bit>> =
            middle.iter().take(log_threads as usize).map(|&b| Some(b)).collect();
        threads.resize(log_threads as usize, None);
        let mut regs = low;
        regs.extend(high);
        regs.extend(middle.iter().skip(log_threads as usize));
        Layout { regs, threads }
    }
    /// Runs of four columns (of eight, `long`) in registers, then threads along the row-major index, then registers again.
    pub fn natural(rows: u32, cols: u32, log_threads: u32, long: bool) -> Layout {
        let v = match cols {
            8.. if long => 3,
            4.. => 2,
            _ => 0,
        };
        let all: Vec<Bit> = bits(1, cols).chain(bits(0, rows)).collect();
        Layout::spread(all[..v].to_vec(), all[v..].to_vec(), vec![], log_threads)
    }
    /// For combining along rows: runs of four columns, threads across columns and then the highest rows, and the
    /// lowest rows in registers.
    pub fn columns(rows: u32, cols: u32, log_threads: u32) -> Layout {
        let v = if cols >= 4 { 2 } else { 0 };
        let all: Vec<Bit> = bits(1, cols).collect();
        let mut middle = all[v..].to_vec();
        let room = (log_threads as usize).saturating_sub(middle.len()).min(rows.trailing_zeros() as usize);
        let row_bits: Vec<Bit> = bits(0, rows).collect();
        let split = row_bits.len() - room;
        let beyond = middle.split_off(middle.len().min(log_threads as usize));
        middle.extend(&row_bits[split..]);
        let mut high = row_bits[..split].to_vec();
        high.extend(beyond);
        Layout::spread(all[..v].to_vec(), middle, high, log_threads)
    }
    /// For accumulators of products: a block of rows and columns a thread, in runs of up to four whose halves lie
    /// apart, so that threads side by side read shared memory side by side. A thread with 128 of them has more rows than
    /// columns, and 32 threads a block of their own: the fewest words read for a step.
    pub fn block(rows: u32, cols: u32, log_threads: u32) -> Layout {
        let (r, c) = (rows.trailing_zeros(), cols.trailing_zeros());
        let per = (r + c).saturating_sub(log_threads);
        let tall = per >= 7;
        let tn = if tall { per / 2 } else { per.div_ceil(2).max(2.min(per)) }.min(c);
        let tm = (per - tn).min(r);
        let tn = (per - tm).min(c);
        let split = |axis: u8, n: u32, own: u32| {
            let all: Vec<Bit> = bits(axis, 1 << n).collect();
            let low = own.min(2) as usize;
            let high = n as usize - (own as usize - low);
            (all[..low].to_vec(), all[low..high].to_vec(), all[high..].to_vec())
        };
        let (cl, cm, ch) = split(1, c, tn);
        let (rl, rm, rh) = split(0, r, tm);
        let regs = [cl, ch, rl, rh].concat();
        let (cn, rn) = if tall { (cm.len().min(3), rm.len().min(2)) } else { (cm.len(), rm.len()) };
        let order = [&cm[..cn], &rm[..rn], &cm[cn..], &rm[rn..]].concat();
        let mut threads: Vec<Option<Bit>> = order.into_iter().map(Some).collect();
        threads.resize(log_threads as usize, None);
        Layout { regs, threads }
    }
    /// The layout of a tile that broadcasts to this one: dimensions of extent 1 drop out.
    pub fn project(&self, rows: u32, cols: u32) -> Layout {
        let keep = |b: &Bit| if b.axis == 0 { rows > 1 } else { cols > 1 };
        Layout {
            regs: self.regs.iter().copied().filter(keep).collect(),
            threads: self.threads.iter().map(|b| b.filter(|b| keep(b))).collect(),
        }
    }
    pub fn slots(&self) -> usize {
        1 << self.regs.len()
    }
    /// The part of the coordinate `axis` that the slot holds.
    pub fn slot_coord(&self, slot: usize, axis: u8) -> u32 {
        let mut x = 0;
        for (i, b) in self.regs.iter().enumerate() {
            if b.axis == axis && slot >> i & 1 != 0 {
                x |= 1 << b.bit;
            }
        }
        x
    }
    /// The slot of `part` (a projection or subset of this layout) that slot `slot` reads.
    pub fn slot_in(&self, part: &Layout, slot: usize) -> usize {
        let mut s = 0;
        for (i, b) in part.regs.iter().enumerate() {
            if let Some(j) = self.regs.iter().position(|x| x == b) {
                s |= (slot >> j & 1) << i;
            }
        }
        s
    }
    /// Every four slots are four adjacent columns.
    pub fn four_wide(&self) -> bool {
        self.regs.len() >= 2
            && self.regs[0] == Bit { axis: 1, bit: 0 }
            && self.regs[1] == Bit { axis: 1, bit: 1 }
    }
    /// Every eight slots are eight adjacent columns.
    pub fn eight_wide(&self) -> bool {
        self.four_wide() && self.regs.get(2) == Some(&Bit { axis: 1, bit: 2 })
    }
    /// Mask of the thread bits that hold nothing.
    pub fn idle_threads(&self) -> u32 {
        self.threads.iter().enumerate().filter(|(_, b)| b.is_none()).map(|(i, _)| 1 << i).sum()
    }
    /// `other` can be read from registers of this layout by the same thread.
    pub fn holds(&self, other: &Layout) -> bool {
        let threads = self.threads.iter().zip(&other.threads).all(|(a, b)| a == b);
        threads && other.regs.len() == self.regs.len() && other.regs.iter().all(|b| self.regs.contains(b))
    }
}

/// The home layout of every tile shape of a kernel.
#[derive(Debug)]
pub struct Plan {
    pub threads: u32,
    /// Runs of eight, which suit 16-bit storage, not of four.
    long: bool,
    shapes: HashMap<(u32, u32), Layout>,
    /// Shapes with both dimensions, largest first: vectors along one of them are projections.
    parents: Vec<(u32, u32)>,
}

#[derive(Default)]
struct Survey {
    lanes: u32,
    contract: Option<(u32, u32)>,
    /// It has accumulators of 4 bytes or less, and operands that are read where they lie: no formula shares its registers.
    light: bool,
    blocks: Vec<(u32, u32)>,
    columns: Vec<(u32, u32)>,
    /// Results are looked up.
    looks_up: bool,
}

fn survey(kernel: &Kernel, block: &Block, s: &mut Survey) {
    let shape = |v: Value| (kernel.ty(v).rows, kernel.ty(v).cols);
    for inst in &block.insts {
        match &inst.op {
            Op::Contract(c) => {
                let (m, n) = shape(inst.results[0]);
                let larger = s.contract.is_none_or(|(a, b)| a * b < m * n);
                if larger {
                    s.contract = Some((m, n));
                    let read = |o: &Operand| matches!(o, Operand::Strided { .. });
                    s.light = kernel.ty(inst.results[0]).dtype.size() <= 4 && read(&c.a) && read(&c.b);
                }
                if m > 1 && n > 1 {
                    s.blocks.push((m, n));
                }
            }
            Op::Dot { .. } => s.blocks.push(shape(inst.results[0])),
            Op::Call { a, .. } if kernel.ty(*a).dtype.size() == 2 => s.looks_up = true,
            Op::Reduce { axis: 0, operands, .. } => s.columns.push(shape(operands[0])),
            Op::Loop { body, .. } | Op::If { body, .. } => survey(kernel, body, s),
            Op::While { cond, body, .. } => {
                survey(kernel, cond, s);
                survey(kernel, body, s);
            }
            _ => {}
        }
        for &r in &inst.results {
            let (rows, cols) = shape(r);
            s.lanes = s.lanes.max(if cols >= 4 { rows * cols / 4 } else { rows * cols });
        }
    }
}

impl Plan {
    pub fn new(kernel: &Kernel, caps: &Caps) -> Plan {
        let mut s = Survey::default();
        survey(kernel, &kernel.body, &mut s);
        let most = 1 << caps.max_workgroup_invocations.max(1).ilog2();
        let limit = 256.min(most);
        let threads = match s.contract {
            Some((m, n)) if caps.many_registers && s.light && m * n >= 128 * 128 && m.min(n) >= 64 => {
                (m * n / 128).min(limit)
            }
            Some((m, n)) if m > 1 && n > 1 => (m * n / 16).clamp(32, limit),
            // Matrix times vector is fetched, not computed. Of few lines small groups hide each other's waits best.
            Some((m, n)) => (32 * m.max(n)).clamp(256, 512).min(most),
            // Many lookups of a thread at a time hide each other's waits.
            None if s.looks_up => (s.lanes / 4).clamp(1, limit),
            None => s.lanes.clamp(1, limit),
        };
        let log = threads.trailing_zeros();
        let mut shapes = HashMap::new();
        for &(r, c) in &s.blocks {
            shapes.insert((r, c), Layout::block(r, c, log));
        }
        for &(r, c) in &s.columns {
            shapes.entry((r, c)).or_insert_with(|| Layout::columns(r, c, log));
        }
        let mut parents: Vec<(u32, u32)> =
            kernel.types.iter().map(|t| (t.rows, t.cols)).filter(|&(r, c)| r > 1 && c > 1).collect();
        parents.sort_by_key(|&(r, c)| std::cmp::Reverse((shapes.contains_key(&(r, c)), r * c, r)));
        parents.dedup();
        Plan { threads, long: s.looks_up, shapes, parents }
    }
    pub fn home(&self, rows: u32, cols: u32) -> Layout {
        let log = self.threads.trailing_zeros();
        if let Some(l) = self.shapes.get(&(rows, cols)) {
            return l.clone();
        }
        if rows * cols > 1 && (rows == 1 || cols == 1) {
            let parent = self.parents.iter().find(|&&(r, c)| if rows > 1 { r == rows } else { c == cols });
            if let Some(&(r, c)) = parent {
                return self.home(r, c).project(rows, cols);
            }
        }
        Layout::natural(rows, cols, log, self.long)
    }
}

/// A lane's dtype in shared memory.
pub fn shared_dtype(d: Dtype) -> Dtype {
    match d {
        Dtype::Bool | Dtype::U8 | Dtype::F16 | Dtype::Bf16 | Dtype::I32 => Dtype::U32,
        other => other,
    }
}
