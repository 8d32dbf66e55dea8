//! The transforms over a few tiny ops, evaluated in f64 by the ops' own references.

use super::{Algebra, grad, jvp, vjp, vmap};
use crate::host::{HostTensor, RefTensor};
use crate::node::{Leaf, Node, NodeKind};
use crate::op::{BatchRule, Differentiation, Lowering, Op, OpError, Sample, Tangent, TensorType, Tolerance};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use ulpian_num::Dtype;

#[derive(Clone, Copy, Debug, PartialEq)]
enum T {
    Add,
    Mul,
    Sin,
    Cos,
    Neg,
    /// Over all but the first `0 or 1` axes, which a batched sum keeps.
    Sum {
        keep: usize,
    },
    /// Its transpose: `[lead.., ] -> [lead.., tail..]`.
    Spread {
        tail: [usize; 1],
    },
    /// `x * sin(x)`, known to `batch` by its expansion only.
    Composite,
    /// To i64, refusing differentiation.
    Count,
    /// From i64 to f64.
    Float,
    Floor,
    Lead {
        extent: usize,
    },
}

fn ap(t: T, inputs: &[&Node]) -> Result<Node, OpError> {
    Node::apply(Arc::new(t), &inputs.iter().map(|n| (*n).clone()).collect::<Vec<_>>())
}

impl Op for T {
    fn name(&self) -> &'static str {
        match self {
            T::Count => "count",
            _ => "tiny",
        }
    }
    fn attributes(&self) -> String {
        format!("{self:?}")
    }
    fn torch(&self) -> &'static str {
        ""
    }
    fn infer(&self, x: &[TensorType]) -> Result<TensorType, OpError> {
        let mut t = x[0].clone();
        if matches!(self, T::Add | T::Mul) && x[0] != x[1] {
            return Err(OpError::Shape {
                op: "tiny".into(),
                given: vec![x[0].shape.clone(), x[1].shape.clone()],
                need: "equal".into(),
                remedy: String::new(),
            });
        }
        match *self {
            T::Sum { keep } => t.shape.truncate(keep),
            T::Spread { tail } => t.shape.extend(tail),
            T::Count => t.dtype = Dtype::I64,
            T::Float => t.dtype = Dtype::F64,
            T::Lead { extent } => t.shape.insert(0, extent),
            _ => {}
        }
        Ok(t)
    }
    fn reference(&self, x: &[RefTensor], y: &TensorType) -> RefTensor {
        let a = x[0].to_f64();
        let map = |f: fn(f64) -> f64| a.iter().map(|&v| f(v)).collect::<Vec<_>>();
        let out: Vec<f64> = match self {
            T::Add => a.iter().zip(x[1].to_f64()).map(|(a, b)| a + b).collect(),
            T::Mul => a.iter().zip(x[1].to_f64()).map(|(a, b)| a * b).collect(),
            T::Sin => map(f64::sin),
            T::Cos => map(f64::cos),
            T::Neg => map(|v| -v),
            T::Composite => map(|v| v * v.sin()),
            T::Floor | T::Count => map(f64::floor),
            T::Float => a,
            T::Sum { .. } => {
                let n = y.len();
                let each = a.len().checked_div(n).unwrap_or(0);
                (0..n).map(|i| a[i * each..(i + 1) * each].iter().sum()).collect()
            }
            T::Spread { tail } => a.iter().flat_map(|&v| vec![v; tail[0]]).collect(),
            T::Lead { extent } => (0..*extent).flat_map(|_| a.clone()).collect(),
        };
        match y.dtype {
            Dtype::I64 => RefTensor::int(&y.shape, out.iter().map(|&v| v as i64).collect()),
            _ => RefTensor::float(&y.shape, out),
        }
    }
    fn differentiation(&self) -> Differentiation {
        match self {
            T::Add | T::Mul => Differentiation::Rule { linear: &[true, true] },
            T::Sin | T::Cos | T::Composite => Differentiation::Rule { linear: &[false] },
            T::Floor => Differentiation::Zero { reason: "flat" },
            T::Count => Differentiation::NoGrad { reason: "it counts" },
            _ => Differentiation::Rule { linear: &[true] },
        }
    }
    fn jvp(&self, x: &[Node], _: &Node, t: &[Option<Node>]) -> Result<Tangent, OpError> {
        let node = match self {
            T::Add => match (&t[0], &t[1]) {
                (Some(a), Some(b)) => ap(T::Add, &[a, b])?,
                (a, b) => return Ok(a.clone().or(b.clone()).map_or(Tangent::Zero, Tangent::Node)),
            },
            T::Mul => {
                let a = t[0].as_ref().map(|t| ap(T::Mul, &[t, &x[1]])).transpose()?;
                let b = t[1].as_ref().map(|t| ap(T::Mul, &[&x[0], t])).transpose()?;
                match (a, b) {
                    (Some(a), Some(b)) => ap(T::Add, &[&a, &b])?,
                    (a, b) => return Ok(a.or(b).map_or(Tangent::Zero, Tangent::Node)),
                }
            }
            _ => {
                let Some(t) = &t[0] else { return Ok(Tangent::Zero) };
                match self {
                    T::Sin => ap(T::Mul, &[t, &ap(T::Cos, &[&x[0]])?])?,
                    T::Cos => ap(T::Mul, &[t, &ap(T::Neg, &[&ap(T::Sin, &[&x[0]])?])?])?,
                    T::Composite => {
                        let s = ap(T::Sin, &[&x[0]])?;
                        let c = ap(T::Mul, &[&x[0], &ap(T::Cos, &[&x[0]])?])?;
                        ap(T::Mul, &[t, &ap(T::Add, &[&s, &c])?])?
                    }
                    linear => ap(*linear, &[t])?,
                }
            }
        };
        Ok(Tangent::Node(node))
    }
    fn transpose(&self, x: &[Node], which: usize, ct: &Node) -> Result<Node, OpError> {
        match *self {
            T::Add => Ok(ct.clone()),
            T::Mul => ap(T::Mul, &[ct, &x[1 - which]]),
            T::Neg => ap(T::Neg, &[ct]),
            T::Sum { keep } => match x[0].shape()[keep..] {
                [] => Ok(ct.clone()),
                [n] => ap(T::Spread { tail: [n] }, &[ct]),
                [..] => unreachable!("the tests sum one axis"),
            },
            T::Spread { .. } => ap(T::Sum { keep: ct.shape().len() - 1 }, &[ct]),
            other => unreachable!("{other:?} is not linear"),
        }
    }
    fn batch(&self, x: &[Node], mapped: &[bool]) -> Result<BatchRule, OpError> {
        let extent = x[mapped.iter().position(|m| *m).unwrap()].shape()[0];
        let full: Vec<Node> = x
            .iter()
            .zip(mapped)
            .map(|(x, m)| if *m { Ok(x.clone()) } else { ap(T::Lead { extent }, &[x]) })
            .collect::<Result<_, _>>()?;
        let op = match *self {
            T::Composite => return Ok(BatchRule::Expand),
            T::Sum { keep } => T::Sum { keep: keep + 1 },
            other => other,
        };
        Ok(BatchRule::Node(Node::apply(Arc::new(op), &full)?))
    }
    fn lowering(&self, _: &[TensorType], _: &TensorType) -> Lowering {
        Lowering::Expand
    }
    fn expand(&self, x: &[Node]) -> Result<Option<Node>, OpError> {
        match self {
            T::Composite => Ok(Some(ap(T::Mul, &[&x[0], &ap(T::Sin, &[&x[0]])?])?)),
            _ => Ok(None),
        }
    }
    fn tolerance(&self, _: &[RefTensor], _: &TensorType) -> Tolerance {
        Tolerance::Exact { source: "test" }
    }
    fn negative_control(&self, reference: f64, _: &Tolerance, _: usize, _: Dtype) -> f64 {
        reference + 1.0
    }
    fn samples(&self) -> Vec<Sample> {
        vec![]
    }
}

struct Tiny;
impl Algebra for Tiny {
    fn add(&self, a: &Node, b: &Node) -> Result<Node, OpError> {
        ap(T::Add, &[a, b])
    }
    fn expand_leading(&self, x: &Node, extent: usize) -> Result<Node, OpError> {
        ap(T::Lead { extent }, &[x])
    }
}

fn value(values: &[f64]) -> Node {
    Node::host(HostTensor::new(&[values.len()], values).unwrap())
}
fn scalar(v: f64) -> Node {
    Node::host(HostTensor::new(&[], &[v]).unwrap())
}

fn eval(out: &Node) -> Vec<f64> {
    let mut done: HashMap<u64, RefTensor> = HashMap::new();
    for n in super::walk::post_order(std::slice::from_ref(out), &HashSet::new()) {
        let v = match n.kind() {
            NodeKind::Leaf(Leaf::Host(h)) => RefTensor::from_host(h, false),
            NodeKind::Leaf(Leaf::Fill(bits)) => {
                RefTensor::float(n.shape(), vec![f64::from_bits(*bits); n.ty().len()])
            }
            NodeKind::Leaf(Leaf::Placeholder) => panic!("an unbound placeholder {n:?}"),
            NodeKind::Apply { op, inputs } => {
                let x: Vec<RefTensor> = inputs.iter().map(|i| done[&i.id()].clone()).collect();
                op.reference(&x, n.ty())
            }
        };
        done.insert(n.id(), v);
    }
    done[&out.id()].to_f64()
}

fn total(x: &Node) -> Node {
    ap(T::Sum { keep: 0 }, &[x]).unwrap()
}
/// sum(sin(x) * x * x).
fn f(x: &Node) -> Node {
    let s = ap(T::Sin, &[x]).unwrap();
    total(&ap(T::Mul, &[&ap(T::Mul, &[&s, x]).unwrap(), x]).unwrap())
}
fn close(a: &[f64], b: &[f64]) {
    assert_eq!(a.len(), b.len());
    for (a, b) in a.iter().zip(b) {
        assert!((a - b).abs() < 1e-12 * b.abs().max(1.0), "{a} is not {b}");
    }
}

#[test]
fn reverse_and_forward_give_the_derivative() {
    let points = [0.3, -1.2, 2.0];
    let x = value(&points);
    let y = f(&x);
    let want: Vec<f64> = points.iter().map(|x| x.cos() * x * x + 2.0 * x * x.sin()).collect();
    close(&eval(&grad(&Tiny, &y, std::slice::from_ref(&x)).unwrap()[0]), &want);
    let along = jvp(&Tiny, &[y], &[x], &[value(&[1.0, 10.0, 100.0])]).unwrap();
    close(&eval(&along[0]), &[want[0] + 10.0 * want[1] + 100.0 * want[2]]);
}

#[test]
fn gradients_of_gradients_and_forward_over_reverse_agree() {
    let points = [0.3, -1.2, 2.0];
    let x = value(&points);
    let wrt = std::slice::from_ref(&x);
    let g = grad(&Tiny, &f(&x), wrt).unwrap().swap_remove(0);
    let want: Vec<f64> = points.iter().map(|x| 2.0 * x.sin() + 4.0 * x * x.cos() - x * x * x.sin()).collect();
    // Each lane of the gradient depends on its own lane alone, so the Hessian is its diagonal.
    let h = grad(&Tiny, &total(&g), wrt).unwrap().swap_remove(0);
    close(&eval(&h), &want);
    let ones = value(&[1.0; 3]);
    close(&eval(&jvp(&Tiny, std::slice::from_ref(&g), wrt, &[ones]).unwrap()[0]), &want);
    let third: Vec<f64> =
        points.iter().map(|x| 6.0 * x.cos() - 6.0 * x * x.sin() - x * x * x.cos()).collect();
    close(&eval(&grad(&Tiny, &total(&h), wrt).unwrap()[0]), &third);
}

#[test]
fn vmap_is_a_loop_and_composes_with_grad() {
    let rows = [[0.3, -1.2], [2.0, 0.7], [-0.1, 1.5]];
    let x = Node::placeholder(TensorType::new(Dtype::F64, &[2]));
    let shared = value(&[0.5, -2.0]);
    let body = ap(T::Mul, &[&ap(T::Composite, &[&x]).unwrap(), &shared]).unwrap();
    let y = total(&body);
    let g = grad(&Tiny, &y, std::slice::from_ref(&x)).unwrap().swap_remove(0);
    let batch = Node::host(HostTensor::new(&[3, 2], &rows.concat()).unwrap());
    let mapped = vmap(&Tiny, &[y, g.clone(), shared.clone()], &[x], std::slice::from_ref(&batch)).unwrap();
    assert_eq!(mapped[1].shape(), [3, 2]);
    for (i, row) in rows.iter().enumerate() {
        let x = value(row);
        let y = total(&ap(T::Mul, &[&ap(T::Composite, &[&x]).unwrap(), &shared]).unwrap());
        let g = grad(&Tiny, &y, std::slice::from_ref(&x)).unwrap().swap_remove(0);
        assert_eq!(eval(&mapped[0])[i].to_bits(), eval(&y)[0].to_bits());
        assert_eq!(eval(&mapped[1])[2 * i..2 * i + 2], eval(&g)[..]);
    }
    // An output that no mapped input reaches is repeated.
    assert_eq!(eval(&mapped[2]), [0.5, -2.0].repeat(3));
    // The gradient through the batched graph is the batch of gradients.
    let through = grad(&Tiny, &total(&ap(T::Sum { keep: 1 }, &[&batch]).unwrap()), &[batch]);
    // Two sums of one axis each stand here for the two-axis sum that the tiny op lacks.
    assert_eq!(eval(&through.unwrap()[0]), [1.0; 6]);
}

#[test]
fn unreached_inputs_get_zeros_and_inner_ones_the_total_derivative() {
    let (x, other) = (scalar(3.0), value(&[1.0, 2.0]));
    let square = ap(T::Mul, &[&x, &x]).unwrap();
    let y = ap(T::Mul, &[&square, &x]).unwrap();
    let g = grad(&Tiny, &y, &[x.clone(), square, other, y.clone(), x]).unwrap();
    assert_eq!(eval(&g[0]), [27.0]);
    assert_eq!(eval(&g[1]), [3.0]);
    assert_eq!(eval(&g[2]), [0.0, 0.0]);
    assert_eq!(eval(&g[3]), [1.0]);
    assert_eq!(eval(&g[4]), [27.0]);
}

#[test]
fn cotangents_are_given_and_summed_over_outputs() {
    let x = value(&[2.0, 5.0]);
    let outputs = [ap(T::Mul, &[&x, &x]).unwrap(), ap(T::Neg, &[&x]).unwrap()];
    let cotangents = [value(&[1.0, 10.0]), value(&[100.0, 1000.0])];
    let g = vjp(&Tiny, &outputs, &cotangents, &[x]).unwrap();
    assert_eq!(eval(&g[0]), [4.0 - 100.0, 100.0 - 1000.0]);
}

#[test]
fn refusals_name_the_op_and_flat_ops_stop_tangents() {
    let x = scalar(1.5);
    let wrt = std::slice::from_ref(&x);
    let number = ap(T::Float, &[&ap(T::Count, &[&x]).unwrap()]).unwrap();
    let refused = OpError::NoGradient { op: "count".into(), reason: "it counts".into() };
    assert_eq!(grad(&Tiny, &number, wrt).unwrap_err(), refused);
    // Beside a tangent the number is a constant factor, and where nothing is perturbed nothing is refused.
    assert_eq!(eval(&grad(&Tiny, &ap(T::Mul, &[&x, &number]).unwrap(), wrt).unwrap()[0]), [1.0]);
    assert_eq!(eval(&grad(&Tiny, &number, &[scalar(0.0)]).unwrap()[0]), [0.0]);
    assert_eq!(eval(&grad(&Tiny, &ap(T::Floor, &[&x]).unwrap(), wrt).unwrap()[0]), [0.0]);
    let integer = ap(T::Count, &[&x]).unwrap();
    let not_floating = |op: &str| OpError::NotFloating { op: op.into(), dtype: Dtype::I64 };
    assert_eq!(grad(&Tiny, &integer, wrt).unwrap_err(), not_floating("grad"));
    assert_eq!(grad(&Tiny, &x, std::slice::from_ref(&integer)).unwrap_err(), not_floating("grad"));
    let wide = grad(&Tiny, &value(&[1.0, 2.0]), wrt).unwrap_err().to_string();
    assert!(wide.contains("sum or mean") && wide.contains("vjp"), "{wide}");
    assert!(matches!(jvp(&Tiny, &[], wrt, &[]), Err(OpError::Attribute { .. })));
    assert!(matches!(jvp(&Tiny, &[], wrt, &[value(&[1.0])]), Err(OpError::Shape { .. })));
}

#[test]
fn ill_fitting_batches_are_refused() {
    let x = Node::placeholder(TensorType::new(Dtype::F64, &[2]));
    let two = Node::placeholder(TensorType::new(Dtype::F64, &[3, 2]));
    let odd = Node::placeholder(TensorType::new(Dtype::F64, &[4, 2]));
    let other = Node::placeholder(TensorType::new(Dtype::F32, &[3, 2]));
    let xs = std::slice::from_ref(&x);
    assert!(matches!(vmap(&Tiny, xs, xs, &[]), Err(OpError::Attribute { .. })));
    assert!(matches!(vmap(&Tiny, xs, &[], &[]), Err(OpError::Attribute { .. })));
    assert!(matches!(vmap(&Tiny, xs, &[x.clone(), x.clone()], &[two, odd]), Err(OpError::Shape { .. })));
    assert!(matches!(vmap(&Tiny, xs, xs, &[other]), Err(OpError::Dtype { .. })));
}

#[test]
fn deep_graphs_need_no_stack() {
    // A thread's 2 MiB would hold some ten thousand frames; this chain has 200,000 links.
    let x = scalar(1.0);
    let mut y = x.clone();
    for _ in 0..200_000 {
        y = ap(T::Neg, &[&y]).unwrap();
    }
    let g = grad(&Tiny, &y, std::slice::from_ref(&x)).unwrap();
    assert_eq!(eval(&g[0]), [1.0]);
    let mapped = vmap(&Tiny, &[y], &[x], &[value(&[1.0, 2.0])]).unwrap();
    assert_eq!(eval(&mapped[0]), [1.0, 2.0]);
}
