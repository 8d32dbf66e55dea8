//! The plain reading of a graph: node by node, lane by lane, on the host. Slow and obvious: the oracle that planned
//! and fused kernels must match bit for bit. No view, plan or kernel is used here.

use crate::host::HostTensor;
use crate::node::{Leaf, Node, NodeKind};
use crate::op::{Check, Lowering, Movement, TensorType};
use crate::plan::graph::{BuildError, identity};
use crate::program::GraphError;
use crate::view::window_positions;
use std::collections::HashMap;
use ulpian_kernel::ir::{Combine, K_BLOCK};
use ulpian_num::real::{Binary, Real, Unary};
use ulpian_num::{Bf16, Dtype, Element, F16, Float, Native, Num};

type Lane = Native<false>;

/// Evaluates `node`; `inputs` gives the values of placeholders (and of any other node that should not be looked
/// behind), by node.
pub fn evaluate(node: &Node, inputs: &[(Node, HostTensor)]) -> Result<HostTensor, GraphError> {
    let mut done: HashMap<u64, HostTensor> = inputs.iter().map(|(n, t)| (n.id(), t.clone())).collect();
    let mut held: HashMap<u64, Node> = HashMap::new();
    let mut stack = vec![node.clone()];
    while let Some(at) = stack.pop() {
        if done.contains_key(&at.id()) {
            continue;
        }
        let value = match at.kind() {
            NodeKind::Leaf(Leaf::Host(data)) => (**data).clone(),
            NodeKind::Leaf(Leaf::Fill(bits)) => from_bits(at.ty(), &vec![*bits; at.ty().len()]),
            NodeKind::Leaf(Leaf::Placeholder) => {
                return Err(GraphError::Build(BuildError::Unbound { ty: at.ty().to_string() }));
            }
            NodeKind::Apply { op, inputs } => {
                let types: Vec<TensorType> = inputs.iter().map(|n| n.ty().clone()).collect();
                let lowering = op.lowering(&types, at.ty());
                let needed = if let Lowering::Expand = lowering {
                    if let std::collections::hash_map::Entry::Vacant(e) = held.entry(at.id()) {
                        let same = op
                            .expand(inputs)
                            .map_err(|e| e.named(op.name()))?
                            .ok_or(GraphError::Build(BuildError::NoExpansion { op: op.name() }))?;
                        e.insert(same);
                    }
                    vec![held[&at.id()].clone()]
                } else {
                    inputs.clone()
                };
                let missing: Vec<Node> =
                    needed.iter().filter(|n| !done.contains_key(&n.id())).cloned().collect();
                if !missing.is_empty() {
                    stack.push(at.clone());
                    stack.extend(missing);
                    continue;
                }
                let args: Vec<&HostTensor> = needed.iter().map(|n| &done[&n.id()]).collect();
                apply(op.name(), &lowering, &args, at.ty())?
            }
        };
        done.insert(at.id(), value);
    }
    Ok(done[&node.id()].clone())
}

/// Bits of storage as bits of the lane dtype.
pub fn widen(dtype: Dtype, bits: u64) -> u64 {
    match dtype {
        Dtype::F16 => Lane::convert::<F16, f32>(F16(bits as u16)).bits(),
        Dtype::Bf16 => Lane::convert::<Bf16, f32>(Bf16(bits as u16)).bits(),
        Dtype::U8 => bits & 0xff,
        _ => bits,
    }
}

/// Bits of a lane, rounded once to storage.
pub fn narrow(dtype: Dtype, bits: u64) -> u64 {
    match dtype {
        Dtype::F16 => Lane::convert::<f32, F16>(f32::from_bits(bits as u32)).bits(),
        Dtype::Bf16 => Lane::convert::<f32, Bf16>(f32::from_bits(bits as u32)).bits(),
        Dtype::U8 => bits & 0xff,
        Dtype::Bool => bits & 1,
        _ => bits,
    }
}

fn storage(t: &HostTensor) -> Vec<u64> {
    (0..t.ty.len()).map(|i| t.bits(i)).collect()
}

fn lanes(t: &HostTensor) -> Vec<u64> {
    (0..t.ty.len()).map(|i| widen(t.ty.dtype, t.bits(i))).collect()
}

fn from_bits(ty: &TensorType, bits: &[u64]) -> HostTensor {
    let size = ty.dtype.size();
    let bytes = bits.iter().flat_map(|b| b.to_le_bytes()[..size].to_vec()).collect();
    HostTensor { ty: ty.clone(), bytes }
}

fn from_lanes(ty: &TensorType, lanes: Vec<u64>) -> HostTensor {
    let bits: Vec<u64> = lanes.into_iter().map(|b| narrow(ty.dtype, b)).collect();
    from_bits(ty, &bits)
}

fn apply(
    name: &'static str,
    lowering: &Lowering,
    args: &[&HostTensor],
    ty: &TensorType,
) -> Result<HostTensor, GraphError> {
    Ok(match lowering {
        Lowering::Expand => HostTensor { ty: ty.clone(), bytes: args[0].bytes.clone() },
        Lowering::Move(m) => {
            let (_, bits) = move_elements(m, &args[0].ty.shape, &storage(args[0]));
            from_bits(ty, &bits)
        }
        Lowering::Map(body) => {
            let args: Vec<Vec<u64>> = args.iter().map(|a| lanes(a)).collect();
            let out = (0..ty.len())
                .map(|i| body.native(&args.iter().map(|a| a[i]).collect::<Vec<_>>(), i as u64))
                .collect();
            from_lanes(ty, out)
        }
        Lowering::Reduce { combine, axes } => reduce(*combine, axes, args[0], ty),
        Lowering::Contract => {
            let (a, b) = (args[0], args[1]);
            let out = match a.ty.dtype.lane() {
                Dtype::F32 => contract::<f32>(a, b, fma_step::<f32>),
                Dtype::F64 => contract::<f64>(a, b, fma_step::<f64>),
                Dtype::I64 => contract::<i64>(a, b, int_step::<i64>),
                _ => contract::<i32>(a, b, int_step::<i32>),
            };
            from_lanes(ty, out)
        }
        Lowering::Gather { axis, check } => {
            let (data, index) = (args[0], args[1]);
            let shape = &data.ty.shape;
            let (outer, extent): (usize, usize) = (shape[..*axis].iter().product(), shape[*axis]);
            let inner: usize = shape[axis + 1..].iter().product();
            let mut out = vec![];
            for o in 0..outer {
                for i in 0..index.ty.len() {
                    let at = match index.ty.dtype {
                        Dtype::I64 => index.bits(i) as i64,
                        Dtype::I32 => index.bits(i) as u32 as i32 as i64,
                        _ => index.bits(i) as i64,
                    };
                    if at < 0 || at >= extent as i64 {
                        let check = check.unwrap_or(Check { op: name, what: "index" });
                        return Err(GraphError::outside(check, at, Some(i), extent));
                    }
                    let base = (o * extent + at as usize) * inner;
                    out.extend((0..inner).map(|k| data.bits(base + k)));
                }
            }
            from_bits(ty, &out)
        }
    })
}

fn unravel(mut i: usize, shape: &[usize]) -> Vec<usize> {
    let mut c = vec![0; shape.len()];
    for a in (0..shape.len()).rev() {
        c[a] = i % shape[a];
        i /= shape[a];
    }
    c
}

fn ravel(c: &[usize], shape: &[usize]) -> usize {
    c.iter().zip(shape).fold(0, |i, (&c, &s)| i * s + c)
}

/// One movement, element by element: the new shape and elements.
pub fn move_elements(m: &Movement, shape: &[usize], from: &[u64]) -> (Vec<usize>, Vec<u64>) {
    let mut new = shape.to_vec();
    match m {
        Movement::Reshape(s) | Movement::Expand(s) => new = s.clone(),
        Movement::Permute(perm) => new = perm.iter().map(|&p| shape[p]).collect(),
        Movement::Slice { len, .. } => new = len.clone(),
        Movement::Pad { low, high, .. } => {
            (0..new.len()).for_each(|a| new[a] += low[a] + high[a]);
        }
        Movement::Window { axis, size, stride, dilation } => {
            new[*axis] = window_positions(shape[*axis], *size, *stride, *dilation);
            new.push(*size);
        }
        Movement::Unwindow { axis, length, .. } => new[*axis] = *length,
    }
    let n = new.iter().product();
    let out = (0..n)
        .map(|i| {
            let c = unravel(i, &new);
            let mut at = c.clone();
            match m {
                Movement::Reshape(_) => return from[i],
                Movement::Permute(perm) => perm.iter().enumerate().for_each(|(o, &p)| at[p] = c[o]),
                Movement::Expand(_) => {
                    (0..at.len()).filter(|&a| shape[a] == 1).for_each(|a| at[a] = 0);
                }
                Movement::Slice { start, step, .. } => {
                    for a in 0..at.len() {
                        at[a] = (start[a] as i64 + c[a] as i64 * step[a] as i64) as usize;
                    }
                }
                Movement::Pad { low, fill, .. } => {
                    for a in 0..at.len() {
                        if c[a] < low[a] || c[a] >= low[a] + shape[a] {
                            return *fill;
                        }
                        at[a] = c[a] - low[a];
                    }
                }
                Movement::Window { axis, stride, dilation, .. } => {
                    let k = at.pop().unwrap_or(0);
                    at[*axis] = c[*axis] * stride + k * dilation;
                }
                Movement::Unwindow { axis, stride, dilation, .. } => {
                    let k = c[c.len() - 1];
                    match c[*axis].checked_sub(k * dilation) {
                        Some(t) if t % stride == 0 && t / stride < shape[*axis] => at[*axis] = t / stride,
                        _ => return 0,
                    }
                }
            }
            from[ravel(&at, shape)]
        })
        .collect();
    (new, out)
}

fn reduce(combine: Combine, axes: &[usize], t: &HostTensor, ty: &TensorType) -> HostTensor {
    // Lines of elements along the reduced axes' row-major index.
    let shape = &t.ty.shape;
    let mut lines: Vec<Vec<u64>> = vec![vec![]; ty.len()];
    for (i, bits) in lanes(t).into_iter().enumerate() {
        let mut c = unravel(i, shape);
        axes.iter().for_each(|&a| c[a] = 0);
        lines[ravel(&c, &ty.shape)].push(bits);
    }
    let arg = matches!(combine, Combine::ArgMax | Combine::ArgMin);
    let out = lines
        .into_iter()
        .map(|line| {
            if line.is_empty() {
                return if combine == Combine::Sum {
                    0
                } else {
                    widen(ty.dtype, identity(combine, ty.dtype))
                };
            }
            if combine == Combine::Sum {
                return match t.ty.dtype.lane() {
                    Dtype::F32 => tree::<f32>(line),
                    Dtype::F64 => tree::<f64>(line),
                    Dtype::I64 => tree::<i64>(line),
                    _ => tree::<i32>(line),
                };
            }
            let max = matches!(combine, Combine::Max | Combine::ArgMax);
            let best = match t.ty.dtype.lane() {
                Dtype::F32 => extremum(max, &line, |b| f32::from_bits(b as u32) as f64),
                Dtype::F64 => extremum(max, &line, f64::from_bits),
                Dtype::I64 => (1..line.len()).fold(0, |best, i| {
                    let (a, b) = (line[best] as i64, line[i] as i64);
                    if (max && b > a) || (!max && b < a) { i } else { best }
                }),
                // Bool and 32-bit integers.
                _ => (1..line.len()).fold(0, |best, i| {
                    let (a, b) = (line[best] as u32 as i32, line[i] as u32 as i32);
                    if (max && b > a) || (!max && b < a) { i } else { best }
                }),
            };
            if arg { best as u64 } else { line[best] }
        })
        .collect();
    from_lanes(ty, out)
}

/// The position of the extremum: the first NaN, else by value (subnormals as what they are, see [`Combine`]) with −0
/// below +0, lower positions first.
fn extremum(max: bool, line: &[u64], value: impl Fn(u64) -> f64) -> usize {
    (1..line.len()).fold(0, |best, i| {
        let (a, b) = (value(line[best]), value(line[i]));
        let better = if a.is_nan() || b.is_nan() {
            b.is_nan() && !a.is_nan()
        } else if a == b {
            let (a, b) = (a.is_sign_negative(), b.is_sign_negative());
            if max { a && !b } else { !a && b }
        } else {
            (b > a) == max
        };
        if better { i } else { best }
    })
}

fn tree<D: Num>(line: Vec<u64>) -> u64 {
    let mut level: Vec<D> = line.into_iter().map(D::from_bits).collect();
    if D::DTYPE.is_float() {
        level = level.into_iter().map(|x| Lane::unary(Unary::Flush, x)).collect();
    }
    while level.len() > 1 {
        level = level
            .chunks(2)
            .map(|p| if let [a, b] = p { Lane::binary(Binary::Add, *a, *b) } else { p[0] })
            .collect();
    }
    level[0].bits()
}

fn fma_step<D: Float>(a: D, b: D, c: D) -> D {
    Lane::fma(false, a, b, c)
}

fn int_step<D: Num>(a: D, b: D, c: D) -> D {
    Lane::binary(Binary::Add, Lane::binary(Binary::Mul, a, b), c)
}

fn contract<D: Num>(a: &HostTensor, b: &HostTensor, step: impl Fn(D, D, D) -> D) -> Vec<u64> {
    let (sa, sb) = (&a.ty.shape, &b.ty.shape);
    let rank = sa.len();
    let batch: usize = sa[..rank - 2].iter().product();
    let (m, k, n) = (sa[rank - 2], sa[rank - 1], sb[rank - 1]);
    let (a, b): (Vec<D>, Vec<D>) =
        (lanes(a).into_iter().map(D::from_bits).collect(), lanes(b).into_iter().map(D::from_bits).collect());
    let mut out = vec![];
    for z in 0..batch {
        for i in 0..m {
            for j in 0..n {
                let mut sum = None;
                for first in (0..k).step_by(K_BLOCK as usize) {
                    let mut acc = D::default();
                    for t in first..k.min(first + K_BLOCK as usize) {
                        acc = step(a[(z * m + i) * k + t], b[(z * k + t) * n + j], acc);
                    }
                    sum = Some(sum.map_or(acc, |s| Lane::binary(Binary::Add, s, acc)));
                }
                out.push(sum.unwrap_or_default().bits());
            }
        }
    }
    out
}
