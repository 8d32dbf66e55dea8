//! Two-dimensional convolution and its two gradients: three ops, each linear in both inputs, each the transpose of
//! the others, so derivatives of any order stay among them.
//!
//! All three are matrix products over windows, and their orders along K are those of the products: forward (channel
//! in group, kernel row, kernel column); input gradient (output channel, kernel row, kernel column); weight gradient
//! (batch, output row, output column). Taps outside the image count as products with +0.

use crate::arithmetic::add_tangents;
use crate::bounds::just_outside;
use crate::contract::{matmul, product_bound};
use crate::error::{arity, attribute_error, dtype_error, shape_error};
use crate::movement::{expand, narrow, pad, permute, reshape, size, unwindow, window};
use crate::sample::{FLOATS, sample, wave};
use std::sync::Arc;
use ulpian_graph::{
    BatchRule, Differentiation, Lowering, Node, Op, OpError, RefTensor, Sample, Tangent, TensorType,
    Tolerance,
};
use ulpian_num::Dtype;

/// How the kernel meets the image; pairs are (rows, columns).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Geometry {
    pub stride: [usize; 2],
    pub padding: [usize; 2],
    pub dilation: [usize; 2],
    pub groups: usize,
}

impl Default for Geometry {
    fn default() -> Self {
        Geometry { stride: [1; 2], padding: [0; 2], dilation: [1; 2], groups: 1 }
    }
}

/// Positions of a window of `size` along `extent`; `None` where it does not fit.
pub(crate) fn positions_along(
    extent: usize,
    size: usize,
    stride: usize,
    padding: usize,
    dilation: usize,
) -> Option<usize> {
    let reach = size.checked_sub(1)?.checked_mul(dilation)?.checked_add(1)?;
    let padded = padding.checked_mul(2)?.checked_add(extent)?;
    Some(padded.checked_sub(reach)?.checked_div(stride)? + 1)
}

/// Which of the three.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// (image `[N, C, H, W]`, weight `[O, C/G, KH, KW]`) to `[N, O, OH, OW]`.
    Forward,
    /// (cotangent, weight) to the image's cotangent, of these rows and columns.
    InputGrad([usize; 2]),
    /// (image, cotangent) to the weight's cotangent, of these rows and columns.
    WeightGrad([usize; 2]),
}

/// Convolution or one of its gradients.
#[derive(Clone, Copy, Debug)]
pub struct Conv2d {
    pub geometry: Geometry,
    pub part: Part,
}

/// The shapes of image, weight and result of the forward op.
struct Shapes {
    x: [usize; 4],
    w: [usize; 4],
    y: [usize; 4],
}

fn four(s: &[usize]) -> Option<[usize; 4]> {
    s.try_into().ok()
}

impl Conv2d {
    fn shapes(&self, inputs: &[&[usize]]) -> Option<Shapes> {
        let (first, second) = (four(inputs[0])?, four(inputs[1])?);
        let g = self.geometry;
        let out = |extent: [usize; 2], kernel: [usize; 2]| {
            let at =
                |i: usize| positions_along(extent[i], kernel[i], g.stride[i], g.padding[i], g.dilation[i]);
            Some([at(0)?, at(1)?])
        };
        let (x, w, y) = match self.part {
            Part::Forward => {
                let [oh, ow] = out([first[2], first[3]], [second[2], second[3]])?;
                (first, second, [first[0], second[0], oh, ow])
            }
            Part::InputGrad([h, w]) => {
                let (y, k) = (first, second);
                let x = [y[0], k[1].checked_mul(g.groups)?, h, w];
                (out([h, w], [k[2], k[3]])? == [y[2], y[3]]).then_some(())?;
                (x, k, y)
            }
            Part::WeightGrad([kh, kw]) => {
                let (x, y) = (first, second);
                let w = [y[1], x[1].checked_div(g.groups)?, kh, kw];
                (out([x[2], x[3]], [kh, kw])? == [y[2], y[3]]).then_some(())?;
                (x, w, y)
            }
        };
        let fits =
            x[0] == y[0] && w[0] == y[1] && w[1].checked_mul(g.groups) == Some(x[1]) && y[1] % g.groups == 0;
        fits.then_some(Shapes { x, w, y })
    }

    fn of_nodes(&self, inputs: &[Node]) -> Result<Shapes, OpError> {
        let types: Vec<TensorType> = inputs.iter().map(|n| n.ty().clone()).collect();
        self.of_types(&types)
    }

    fn of_types(&self, types: &[TensorType]) -> Result<Shapes, OpError> {
        arity(self.name(), types, 2)?;
        let g = self.geometry;
        if g.groups == 0 || [g.stride, g.dilation].concat().contains(&0) {
            return Err(attribute_error(
                self.name(),
                "geometry",
                g,
                "stride, dilation and groups must be positive",
            ));
        }
        let shapes: Vec<&[usize]> = types.iter().map(|t| &t.shape[..]).collect();
        self.shapes(&shapes).ok_or_else(|| {
            let need =
                "image [N, C, H, W] and weight [O, C/groups, KH, KW], the kernel inside the padded image";
            shape_error(self.name(), types, need, "check the order of axes, the groups and the padding")
        })
    }

    fn make(&self, part: Part, a: &Node, b: &Node) -> Result<Node, OpError> {
        Node::apply(Arc::new(Conv2d { geometry: self.geometry, part }), &[a.clone(), b.clone()])
    }

    /// Calls `f(image element, weight element, result element)` for each tap inside the image, in the order of K.
    fn taps(&self, s: &Shapes, mut f: impl FnMut(usize, usize, usize)) {
        let g = self.geometry;
        let ([n, _, h, w], [o, cg, kh, kw], [_, _, oh, ow]) = (s.x, s.w, s.y);
        let per_group = (o / g.groups).max(1);
        for (ni, oi) in (0..n).flat_map(|ni| (0..o).map(move |oi| (ni, oi))) {
            for (yi, yj) in (0..oh).flat_map(|i| (0..ow).map(move |j| (i, j))) {
                for (c, (ki, kj)) in
                    (0..cg).flat_map(|c| (0..kh).flat_map(move |i| (0..kw).map(move |j| (c, (i, j)))))
                {
                    let row =
                        (yi * g.stride[0] + ki * g.dilation[0]).checked_sub(g.padding[0]).filter(|&r| r < h);
                    let col =
                        (yj * g.stride[1] + kj * g.dilation[1]).checked_sub(g.padding[1]).filter(|&c| c < w);
                    let (Some(row), Some(col)) = (row, col) else { continue };
                    let channel = oi / per_group * cg + c;
                    let x = ((ni * s.x[1] + channel) * h + row) * w + col;
                    f(x, ((oi * cg + c) * kh + ki) * kw + kj, ((ni * o + oi) * oh + yi) * ow + yj);
                }
            }
        }
    }

    fn accumulate(
        &self,
        inputs: &[RefTensor],
        len: usize,
        product: impl Fn(f64, f64) -> f64,
    ) -> Option<Vec<f64>> {
        let s = self.shapes(&[&inputs[0].shape, &inputs[1].shape])?;
        let (a, b) = (inputs[0].to_f64(), inputs[1].to_f64());
        let mut out = vec![0.0; len];
        self.taps(&s, |x, w, y| match self.part {
            Part::Forward => out[y] += product(a[x], b[w]),
            Part::InputGrad(_) => out[x] += product(a[y], b[w]),
            Part::WeightGrad(_) => out[w] += product(a[x], b[y]),
        });
        Some(out)
    }

    /// The windows of an image: `[N, G, C/G, OH, OW, KH, KW]`.
    fn windows(&self, x: &Node, s: &Shapes) -> Result<Node, OpError> {
        let (g, [ph, pw]) = (self.geometry, self.geometry.padding);
        let padded = pad(x, &[0, 0, ph, pw], &[0, 0, ph, pw], 0.0)?;
        let rows = window(&padded, 2, s.w[2], g.stride[0], g.dilation[0])?;
        let both = window(&rows, 3, s.w[3], g.stride[1], g.dilation[1])?;
        reshape(&both, &[s.x[0], g.groups, s.w[1], s.y[2], s.y[3], s.w[2], s.w[3]])
    }
}

impl Op for Conv2d {
    fn name(&self) -> &'static str {
        match self.part {
            Part::Forward => "conv2d",
            Part::InputGrad(_) => "conv2d_input_grad",
            Part::WeightGrad(_) => "conv2d_weight_grad",
        }
    }
    fn attributes(&self) -> String {
        format!("{:?} {:?}", self.geometry, self.part)
    }
    fn torch(&self) -> &'static str {
        match self.part {
            Part::Forward => "torch.nn.functional.conv2d(x, w, None, stride, padding, dilation, groups)",
            Part::InputGrad(_) => {
                "torch.nn.grad.conv2d_input(shape, w, y, stride, padding, dilation, groups)"
            }
            Part::WeightGrad(_) => {
                "torch.nn.grad.conv2d_weight(x, shape, y, stride, padding, dilation, groups)"
            }
        }
    }
    fn infer(&self, inputs: &[TensorType]) -> Result<TensorType, OpError> {
        let s = self.of_types(inputs)?;
        let dtype = inputs[0].dtype;
        if !dtype.is_float() || inputs[1].dtype != dtype {
            return Err(dtype_error(self.name(), inputs, "one floating dtype for both", "cast one of them"));
        }
        let shape = match self.part {
            Part::Forward => s.y,
            Part::InputGrad(_) => s.x,
            Part::WeightGrad(_) => s.w,
        };
        Ok(TensorType::new(dtype, &shape))
    }
    fn reference(&self, inputs: &[RefTensor], output: &TensorType) -> RefTensor {
        let out = self.accumulate(inputs, output.len(), |a, b| a * b);
        RefTensor::float(&output.shape, out.unwrap_or_else(|| vec![0.0; output.len()]))
    }
    fn differentiation(&self) -> Differentiation {
        Differentiation::Rule { linear: &[true, true] }
    }
    fn jvp(&self, x: &[Node], _: &Node, t: &[Option<Node>]) -> Result<Tangent, OpError> {
        let a = t[0].as_ref().map(|t| self.make(self.part, t, &x[1])).transpose()?;
        let b = t[1].as_ref().map(|t| self.make(self.part, &x[0], t)).transpose()?;
        add_tangents(a, b)
    }
    fn transpose(&self, x: &[Node], which: usize, ct: &Node) -> Result<Node, OpError> {
        let s = self.of_nodes(x)?;
        let (image, kernel) = ([s.x[2], s.x[3]], [s.w[2], s.w[3]]);
        match (self.part, which) {
            (Part::Forward, 0) => self.make(Part::InputGrad(image), ct, &x[1]),
            (Part::Forward, _) => self.make(Part::WeightGrad(kernel), &x[0], ct),
            (Part::InputGrad(_), 0) => self.make(Part::Forward, ct, &x[1]),
            (Part::InputGrad(_), _) => self.make(Part::WeightGrad(kernel), ct, &x[0]),
            (Part::WeightGrad(_), 0) => self.make(Part::InputGrad(image), &x[1], ct),
            (Part::WeightGrad(_), _) => self.make(Part::Forward, &x[0], ct),
        }
    }
    fn batch(&self, _: &[Node], _: &[bool]) -> Result<BatchRule, OpError> {
        Ok(BatchRule::Expand)
    }
    fn lowering(&self, _: &[TensorType], _: &TensorType) -> Lowering {
        Lowering::Expand
    }
    fn expand(&self, inputs: &[Node]) -> Result<Option<Node>, OpError> {
        let s = self.of_nodes(inputs)?;
        let g = self.geometry.groups;
        let ([n, c, h, w], [o, cg, kh, kw], [_, _, oh, ow]) = (s.x, s.w, s.y);
        let og = o / g;
        let y = match self.part {
            Part::Forward => {
                let windows = permute(&self.windows(&inputs[0], &s)?, &[1, 2, 5, 6, 0, 3, 4])?;
                let windows = reshape(&windows, &[g, size(&[cg, kh, kw]), size(&[n, oh, ow])])?;
                let y = matmul(&reshape(&inputs[1], &[g, og, size(&[cg, kh, kw])])?, &windows)?;
                permute(&reshape(&y, &[o, n, oh, ow])?, &[1, 0, 2, 3])?
            }
            Part::InputGrad(_) => {
                let Geometry { stride, padding, dilation, .. } = self.geometry;
                let rows = expand(&reshape(&inputs[0], &[n, o, oh, ow, 1])?, &[n, o, oh, ow, kh])?;
                let rows = unwindow(
                    &rows,
                    2,
                    h.saturating_add(padding[0].saturating_mul(2)),
                    stride[0],
                    dilation[0],
                )?;
                let rows = narrow(&rows, 2, padding[0], h)?;
                let both = expand(&reshape(&rows, &[n, o, h, ow, kh, 1])?, &[n, o, h, ow, kh, kw])?;
                let both = unwindow(
                    &both,
                    3,
                    w.saturating_add(padding[1].saturating_mul(2)),
                    stride[1],
                    dilation[1],
                )?;
                let both = narrow(&both, 3, padding[1], w)?;
                let taps = permute(&reshape(&both, &[n, g, og, h, w, kh, kw])?, &[1, 2, 5, 6, 0, 3, 4])?;
                let taps = reshape(&taps, &[g, size(&[og, kh, kw]), size(&[n, h, w])])?;
                let weight = permute(&reshape(&inputs[1], &[g, og, cg, kh, kw])?, &[0, 2, 1, 3, 4])?;
                let x = matmul(&reshape(&weight, &[g, cg, size(&[og, kh, kw])])?, &taps)?;
                permute(&reshape(&x, &[c, n, h, w])?, &[1, 0, 2, 3])?
            }
            Part::WeightGrad(_) => {
                let windows = permute(&self.windows(&inputs[0], &s)?, &[1, 0, 3, 4, 2, 5, 6])?;
                let windows = reshape(&windows, &[g, size(&[n, oh, ow]), size(&[cg, kh, kw])])?;
                let ct = permute(&reshape(&inputs[1], &[n, g, og, oh, ow])?, &[1, 2, 0, 3, 4])?;
                reshape(&matmul(&reshape(&ct, &[g, og, size(&[n, oh, ow])])?, &windows)?, &s.w)?
            }
        };
        Ok(Some(y))
    }
    fn tolerance(&self, inputs: &[RefTensor], output: &TensorType) -> Tolerance {
        let k = self.shapes(&[&inputs[0].shape, &inputs[1].shape]).map_or(0, |s| match self.part {
            Part::Forward => s.w[1] * s.w[2] * s.w[3],
            Part::InputGrad(_) => s.w[0] / self.geometry.groups * s.w[2] * s.w[3],
            Part::WeightGrad(_) => s.y[0] * s.y[2] * s.y[3],
        });
        let scale = self.accumulate(inputs, output.len(), |a, b| (a * b).abs());
        product_bound(k, scale.unwrap_or_else(|| vec![0.0; output.len()]), output.dtype)
    }
    fn negative_control(&self, reference: f64, tolerance: &Tolerance, i: usize, output: Dtype) -> f64 {
        just_outside(reference, tolerance, i, output)
    }
    fn samples(&self) -> Vec<Sample> {
        let one = Geometry::default();
        let cases = [
            ([1, 1, 3, 3], [1, 1, 2, 2], one),
            ([2, 3, 5, 4], [4, 3, 3, 2], Geometry { padding: [1, 1], ..one }),
            ([1, 2, 7, 6], [3, 2, 3, 3], Geometry { stride: [2, 2], padding: [1, 0], ..one }),
            ([1, 2, 7, 7], [2, 2, 2, 3], Geometry { dilation: [2, 3], stride: [1, 2], ..one }),
            ([2, 4, 4, 4], [6, 2, 2, 2], Geometry { groups: 2, ..one }),
            ([1, 3, 4, 4], [3, 1, 3, 3], Geometry { groups: 3, padding: [1, 1], ..one }),
            ([0, 2, 4, 4], [3, 2, 3, 3], one),
        ];
        let mut out = vec![];
        for (i, (x, w, geometry)) in cases.into_iter().enumerate() {
            let forward = Conv2d { geometry, part: Part::Forward };
            let Some(s) = forward.shapes(&[&x, &w]) else { continue };
            let (part, a, b) = match self.part {
                Part::Forward => (Part::Forward, s.x, s.w),
                Part::InputGrad(_) => (Part::InputGrad([x[2], x[3]]), s.y, s.w),
                Part::WeightGrad(_) => (Part::WeightGrad([w[2], w[3]]), s.x, s.y),
            };
            let op: Arc<dyn Op> = Arc::new(Conv2d { geometry, part });
            for d in if i == 1 { &FLOATS[..] } else { &FLOATS[..1] } {
                let smooth = *d == Dtype::F32 && x[0] > 0;
                out.push(sample(&op, vec![wave(*d, &a, 1, false), wave(*d, &b, 2, false)], smooth));
            }
        }
        out
    }
}

/// Convolution (cross-correlation, as PyTorch's) of `[N, C, H, W]` by `[O, C/groups, KH, KW]`. Bound:
/// (min(K, 1024) + ceil(K/1024))·u·Σ|x||w| with K = C/groups·KH·KW.
pub fn conv2d(x: &Node, weight: &Node, geometry: Geometry) -> Result<Node, OpError> {
    Conv2d { geometry, part: Part::Forward }.make(Part::Forward, x, weight)
}
