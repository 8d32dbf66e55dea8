//! Matrix products, with batch axes and transposes by views.
//!
//! Every output element is a sum along K in one order that depends on K alone: chains (f32: fused multiply-add from
//! +0; f64 and integers: a product, then a sum) over blocks of 1,024, block results added in ascending order. Halves
//! accumulate in f32 and are narrowed once.

use crate::arithmetic::add_tangents;
use crate::bounds::{exact, flush_loss, just_outside, unit};
use crate::error::{arity, dtype_error, shape_error};
use crate::movement::{broadcast_shapes, broadcast_to, lead_all, reshape, transpose};
use crate::reduce::accurate_sum;
use crate::sample::{FLOATS, host, sample, wave};
use std::sync::Arc;
use ulpian_graph::host::RefData;
use ulpian_graph::{
    BatchRule, Differentiation, Lowering, Node, Op, OpError, RefTensor, Sample, Tangent, TensorType,
    Tolerance,
};
use ulpian_kernel::ir::K_BLOCK;
use ulpian_num::Dtype;

/// `[B.., M, K] x [B.., K, N] -> [B.., M, N]`.
#[derive(Clone, Debug)]
pub struct Matmul;

/// Calls `f(output element, pairs of (a element, b element) in K order)`.
fn each(a: &[usize], b: &[usize], mut f: impl FnMut(usize, &mut dyn Iterator<Item = (usize, usize)>)) {
    let r = a.len();
    let (m, k, n) = (a[r - 2], a[r - 1], b[r - 1]);
    let batches: usize = a[..r - 2].iter().product();
    for z in 0..batches {
        for i in 0..m {
            for j in 0..n {
                let mut pairs = (0..k).map(|l| ((z * m + i) * k + l, (z * k + l) * n + j));
                f((z * m + i) * n + j, &mut pairs);
            }
        }
    }
}

/// The bound of one contraction of `k` terms, `scale` being Σ|a||b| by element.
///
/// A term passes at most min(k, 1024) roundings in its chain and one per block after; each step may flush.
pub(crate) fn product_bound(k: usize, mut scale: Vec<f64>, output: Dtype) -> Tolerance {
    if !output.is_float() {
        return exact();
    }
    let block = K_BLOCK as usize;
    // f64 rounds the product and the sum.
    let units = (k.min(block) + k.div_ceil(block)) as f64 + if output == Dtype::F64 { 1.0 } else { 0.0 };
    let flush = k as f64 * flush_loss(output) / unit(output);
    scale.iter_mut().for_each(|s| *s += flush);
    Tolerance::Backward {
        units,
        scale,
        source: "Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., 3.1 (inner products)",
    }
}

impl Op for Matmul {
    fn name(&self) -> &'static str {
        "matmul"
    }
    fn attributes(&self) -> String {
        String::new()
    }
    fn torch(&self) -> &'static str {
        "a @ b"
    }
    fn infer(&self, inputs: &[TensorType]) -> Result<TensorType, OpError> {
        arity("matmul", inputs, 2)?;
        let (a, b) = (&inputs[0], &inputs[1]);
        let r = a.shape.len();
        let number = a.dtype.is_float() || matches!(a.dtype, Dtype::I32 | Dtype::I64);
        if a.dtype != b.dtype || !number {
            let need = "one dtype for both of f16, bf16, f32, f64, i32, i64";
            return Err(dtype_error("matmul", inputs, need, "cast one of them"));
        }
        if r < 2 || b.shape.len() != r || a.shape[..r - 2] != b.shape[..r - 2] {
            let need = "equal ranks of 2 or more and equal batch axes";
            return Err(shape_error(
                "matmul",
                inputs,
                need,
                "use the function `matmul`, which broadcasts them",
            ));
        }
        if a.shape[r - 1] != b.shape[r - 2] {
            let need =
                format!("the first's last extent {} is not the second's {}", a.shape[r - 1], b.shape[r - 2]);
            return Err(shape_error("matmul", inputs, &need, "transpose one of them"));
        }
        let mut shape = a.shape.clone();
        shape[r - 1] = b.shape[r - 1];
        Ok(TensorType { dtype: a.dtype, shape })
    }
    fn reference(&self, inputs: &[RefTensor], output: &TensorType) -> RefTensor {
        let shapes = (&inputs[0].shape, &inputs[1].shape);
        match (&inputs[0].data, &inputs[1].data) {
            (RefData::Int(a), RefData::Int(b)) => {
                let mut out = vec![0i64; output.len()];
                each(shapes.0, shapes.1, |i, pairs| {
                    let sum = pairs.fold(0i64, |s, (p, q)| s.wrapping_add(a[p].wrapping_mul(b[q])));
                    out[i] = crate::pointwise::wrap(sum, output.dtype);
                });
                RefTensor::int(&output.shape, out)
            }
            _ => {
                let (a, b) = (inputs[0].to_f64(), inputs[1].to_f64());
                let mut out = vec![0.0; output.len()];
                each(shapes.0, shapes.1, |i, pairs| out[i] = accurate_sum(pairs.map(|(p, q)| a[p] * b[q])));
                RefTensor::float(&output.shape, out)
            }
        }
    }
    fn differentiation(&self) -> Differentiation {
        Differentiation::Rule { linear: &[true, true] }
    }
    fn jvp(&self, x: &[Node], _: &Node, t: &[Option<Node>]) -> Result<Tangent, OpError> {
        let a = t[0].as_ref().map(|t| matmul(t, &x[1])).transpose()?;
        let b = t[1].as_ref().map(|t| matmul(&x[0], t)).transpose()?;
        add_tangents(a, b)
    }
    fn transpose(&self, x: &[Node], which: usize, cotangent: &Node) -> Result<Node, OpError> {
        if which == 0 {
            matmul(cotangent, &transpose(&x[1], -1, -2)?)
        } else {
            matmul(&transpose(&x[0], -1, -2)?, cotangent)
        }
    }
    fn batch(&self, inputs: &[Node], mapped: &[bool]) -> Result<BatchRule, OpError> {
        Ok(BatchRule::Node(Node::apply(Arc::new(Matmul), &lead_all(inputs, mapped)?)?))
    }
    fn lowering(&self, _: &[TensorType], _: &TensorType) -> Lowering {
        Lowering::Contract
    }
    fn expand(&self, _: &[Node]) -> Result<Option<Node>, OpError> {
        Ok(None)
    }
    fn tolerance(&self, inputs: &[RefTensor], output: &TensorType) -> Tolerance {
        let (a, b) = (inputs[0].to_f64(), inputs[1].to_f64());
        let mut scale = vec![0.0; output.len()];
        each(&inputs[0].shape, &inputs[1].shape, |i, pairs| {
            scale[i] = pairs.map(|(p, q)| (a[p] * b[q]).abs()).sum()
        });
        product_bound(inputs[0].shape.last().copied().unwrap_or(0), scale, output.dtype)
    }
    fn negative_control(&self, reference: f64, tolerance: &Tolerance, i: usize, output: Dtype) -> f64 {
        just_outside(reference, tolerance, i, output)
    }
    fn samples(&self) -> Vec<Sample> {
        let op: Arc<dyn Op> = Arc::new(Matmul);
        let f = Dtype::F32;
        let mut out = vec![];
        let mut put = |d, a: &[usize], b: &[usize], smooth| {
            out.push(sample(&op, vec![wave(d, a, 1, false), wave(d, b, 2, false)], smooth));
        };
        put(f, &[3, 5], &[5, 4], true);
        put(f, &[1, 7], &[7, 1], true);
        put(f, &[2, 3, 4], &[2, 4, 2], true);
        put(f, &[2, 1, 2, 3], &[2, 1, 3, 5], true);
        put(f, &[17, 33], &[33, 19], false);
        put(f, &[2, 1025], &[1025, 3], false);
        put(f, &[1, 2100], &[2100, 2], false);
        put(f, &[2, 0], &[0, 3], false);
        put(f, &[0, 3], &[3, 2], false);
        put(f, &[0, 2, 2], &[0, 2, 2], false);
        for d in FLOATS {
            put(d, &[5, 9], &[9, 6], false);
        }
        for d in [Dtype::I32, Dtype::I64] {
            put(d, &[3, 4], &[4, 2], false);
        }
        let odd = [f64::INFINITY, 1.0, f64::NAN, 0.0, -0.0, -1.0, 1e-30, 2.0, 1e-20];
        out.push(sample(
            &op,
            vec![host(f, &[3, 3], &odd), host(f, &[3, 3], &[1.0, -0.0, 1e-18, 0.5, 2.0])],
            false,
        ));
        out
    }
}

/// The matrix product as PyTorch's `a @ b`: vectors count as a row (left) or column (right), batch axes broadcast.
///
/// Bound: (min(K, 1024) + ceil(K/1024))·u·Σ|a||b|. Integers wrap.
pub fn matmul(a: &Node, b: &Node) -> Result<Node, OpError> {
    let types = [a.ty().clone(), b.ty().clone()];
    let (ra, rb) = (a.shape().len(), b.shape().len());
    if ra == 0 || rb == 0 {
        return Err(shape_error(
            "matmul",
            &types,
            "both need at least one axis",
            "multiply scalars with `mul`",
        ));
    }
    if ra == 1 || rb == 1 {
        let left = if ra == 1 { reshape(a, &[1, a.shape()[0]])? } else { a.clone() };
        let right = if rb == 1 { reshape(b, &[b.shape()[0], 1])? } else { b.clone() };
        let y = matmul(&left, &right)?;
        let mut shape = y.shape().to_vec();
        if rb == 1 {
            shape.pop();
        }
        if ra == 1 {
            shape.remove(shape.len() - if rb == 1 { 1 } else { 2 });
        }
        return reshape(&y, &shape);
    }
    let batch = broadcast_shapes("matmul", &[&a.shape()[..ra - 2], &b.shape()[..rb - 2]])?;
    let full = |x: &Node, r: usize| broadcast_to(x, &[&batch[..], &x.shape()[r - 2..]].concat());
    Node::apply(Arc::new(Matmul), &[full(a, ra)?, full(b, rb)?])
}
