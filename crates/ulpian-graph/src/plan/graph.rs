//! The graph as the planner sees it: composites expanded, equal nodes made one, constants folded; numbered so that
//! operands come before their users. Nothing here decides what is fused.

use crate::host::HostTensor;
use crate::node::{Leaf, Node, NodeKind};
use crate::op::{Check, Lowering, MapBody, Movement, OpError, TensorType};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use ulpian_kernel::ir::Combine;
use ulpian_num::Dtype;

/// A value's number.
pub type Id = usize;

/// No machine addresses more, and all arithmetic on sizes and strides up to it fits 64 bits.
const MOST_BYTES: u128 = 1 << 48;

/// How a value is made.
#[derive(Clone, Debug)]
pub enum Def {
    /// The i-th of [`Graph::inputs`].
    Input(usize),
    Fill(u64),
    Move {
        src: Id,
        how: Movement,
    },
    Map {
        body: Arc<dyn MapBody>,
        args: Vec<Id>,
    },
    Reduce {
        combine: Combine,
        axes: Vec<usize>,
        src: Id,
    },
    Contract {
        a: Id,
        b: Id,
    },
    Gather {
        axis: usize,
        data: Id,
        index: Id,
    },
}

/// A value of the graph.
#[derive(Clone, Debug)]
pub struct Value {
    pub ty: TensorType,
    pub def: Def,
    /// The op's name, for people.
    pub name: &'static str,
    /// The op that was asked for: of a composite's inner ops the composite.
    pub asked: &'static str,
    /// Of a gather: its indices are checked, and named so.
    pub check: Option<Check>,
}

/// Where an input's memory comes from.
#[derive(Clone, Debug)]
pub enum Source {
    /// Given at each run, in this position.
    Given(usize),
    /// Uploaded once per device.
    Host(Node, Arc<HostTensor>),
}

/// See the module's head.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    pub values: Vec<Value>,
    pub inputs: Vec<(Id, Source)>,
    pub outputs: Vec<Id>,
    /// Gathers with a check that no output needs, since what they were for has no elements. Their indices are checked
    /// all the same: whether an index is an error does not depend on what becomes of the element it names.
    pub unread: Vec<Id>,
}

/// What went wrong while reading the graph.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    #[error(transparent)]
    Op(#[from] OpError),
    #[error(
        "a placeholder of type {ty} is used but not among the program's inputs; pass it to `Program::compile`"
    )]
    Unbound { ty: String },
    #[error("{op} has no kernel: it says `Expand` but expands to nothing; give it a lowering")]
    NoExpansion { op: &'static str },
    #[error("{op} of {shapes:?} to {ty} is too large: {why}; split its tensors along an axis")]
    TooLarge { op: &'static str, shapes: Vec<String>, ty: String, why: String },
}

impl Value {
    /// The values this one is made from.
    pub fn operands(&self) -> Vec<Id> {
        match &self.def {
            Def::Input(_) | Def::Fill(_) => vec![],
            Def::Move { src, .. } | Def::Reduce { src, .. } => vec![*src],
            Def::Map { args, .. } => args.clone(),
            Def::Contract { a, b } => vec![*a, *b],
            Def::Gather { data, index, .. } => vec![*data, *index],
        }
    }
}

enum Visit {
    Enter(Node),
    Apply(Node, Lowering),
    Alias(Node, Node),
}

impl Graph {
    /// Reads the graph behind `outputs`. `given` says which nodes are inputs; they are not looked behind.
    pub fn build(outputs: &[Node], given: &HashMap<u64, usize>) -> Result<Graph, BuildError> {
        let mut b = Builder {
            graph: Graph::default(),
            known: HashMap::new(),
            of: HashMap::new(),
            expansions: vec![],
            asked: "",
        };
        let mut stack: Vec<Visit> = outputs.iter().rev().cloned().map(Visit::Enter).collect();
        // Keeps nodes made by `expand` alive, so that no id is used twice.
        let mut held = vec![];
        while let Some(visit) = stack.pop() {
            match visit {
                Visit::Enter(node) if b.of.contains_key(&node.id()) => {}
                Visit::Enter(node) => {
                    if let Some(&i) = given.get(&node.id()) {
                        let id = b.input(&node, Source::Given(i));
                        b.of.insert(node.id(), id);
                        continue;
                    }
                    match node.kind() {
                        NodeKind::Leaf(Leaf::Placeholder) => {
                            return Err(BuildError::Unbound { ty: node.ty().to_string() });
                        }
                        NodeKind::Leaf(Leaf::Fill(bits)) => {
                            b.asked = b.asked_for(&node, "fill");
                            let id = b.fill(node.ty(), *bits);
                            b.of.insert(node.id(), id);
                        }
                        NodeKind::Leaf(Leaf::Host(data)) => {
                            let id = b.input(&node, Source::Host(node.clone(), data.clone()));
                            b.of.insert(node.id(), id);
                        }
                        NodeKind::Apply { op, inputs } => {
                            let types: Vec<TensorType> = inputs.iter().map(|n| n.ty().clone()).collect();
                            let lowering = op.lowering(&types, node.ty());
                            if let Lowering::Expand = lowering {
                                let asked = b.asked_for(&node, op.name());
                                b.expansions.push((Node::next_id(), asked));
                                let Some(same) = op.expand(inputs).map_err(|e| e.named(asked))? else {
                                    return Err(BuildError::NoExpansion { op: op.name() });
                                };
                                held.push(same.clone());
                                stack.push(Visit::Alias(node, same.clone()));
                                stack.push(Visit::Enter(same));
                            } else {
                                let inputs = inputs.clone();
                                stack.push(Visit::Apply(node, lowering));
                                stack.extend(inputs.into_iter().rev().map(Visit::Enter));
                            }
                        }
                    }
                }
                Visit::Alias(node, same) => {
                    let id = b.of[&same.id()];
                    b.of.insert(node.id(), id);
                }
                Visit::Apply(node, lowering) => {
                    if b.of.contains_key(&node.id()) {
                        continue;
                    }
                    if let NodeKind::Apply { op, inputs } = node.kind() {
                        let args: Vec<Id> = inputs.iter().map(|n| b.of[&n.id()]).collect();
                        let key = format!("{}|{}|{args:?}|{:?}", op.name(), op.attributes(), node.ty());
                        b.asked = b.asked_for(&node, op.name());
                        let id = b.add(op.name(), node.ty(), lowering, args, key);
                        b.of.insert(node.id(), id);
                    }
                }
            }
        }
        b.graph.outputs = outputs.iter().map(|n| b.graph.behind_reshapes(b.of[&n.id()])).collect();
        b.graph.turn_products();
        b.graph.unread = b.graph.unread_checks();
        for v in &b.graph.values {
            let bytes =
                v.ty.shape.iter().fold(v.ty.dtype.size() as u128, |n, &e| n.saturating_mul(e as u128));
            if bytes > MOST_BYTES {
                let shapes = v.operands().into_iter().map(|a| b.graph.ty(a).to_string()).collect();
                let why = "it has more than 2^48 bytes".into();
                return Err(BuildError::TooLarge { op: v.asked, shapes, ty: v.ty.to_string(), why });
            }
        }
        Ok(b.graph)
    }
    fn unread_checks(&self) -> Vec<Id> {
        if self.values.iter().all(|v| v.check.is_none()) {
            return vec![];
        }
        let mut needed = vec![false; self.values.len()];
        self.outputs.iter().for_each(|&o| needed[o] = true);
        // Operands come before their users; what an unread gather reads is needed too.
        let mut unread = vec![];
        for (id, v) in self.values.iter().enumerate().rev() {
            if !needed[id] && v.check.is_some() {
                unread.push(id);
                needed[id] = true;
            }
            if needed[id] {
                v.operands().into_iter().for_each(|a| needed[a] = true);
            }
        }
        unread.reverse();
        unread
    }
    /// Elements of the largest value.
    pub fn largest(&self) -> u64 {
        self.values.iter().map(|v| v.ty.len() as u64).max().unwrap_or(0)
    }
    /// The value whose memory serves for `id` as well.
    fn behind_reshapes(&self, mut id: Id) -> Id {
        while let Def::Move { src, how: Movement::Reshape(_) } = self.values[id].def {
            id = src;
        }
        id
    }
    /// A product of which only the transpose is used becomes the product of the transposes: the same terms in the
    /// same order, so the same bits, and what follows can be its epilogue.
    fn turn_products(&mut self) {
        let mut uses = vec![0usize; self.values.len()];
        let operands = self.values.iter().flat_map(|v| v.operands()).chain(self.outputs.iter().copied());
        operands.for_each(|a| uses[a] += 1);
        let turned = |id: Id| match &self.values[id].def {
            Def::Move { src, how: Movement::Permute(perm) } if uses[*src] == 1 => {
                let last = perm.len() - 1;
                let swap =
                    (0..perm.len()).all(|i| perm[i] == if i + 1 < last { i } else { 2 * last - 1 - i });
                match self.values[*src].def {
                    Def::Contract { a, b } if swap => Some((*src, a, b)),
                    _ => None,
                }
            }
            _ => None,
        };
        let found: Vec<Option<(Id, Id, Id)>> = (0..self.values.len()).map(turned).collect();
        if found.iter().all(Option::is_none) {
            return;
        }
        let gone: HashSet<Id> = found.iter().flatten().map(|t| t.0).collect();
        let mut at: Vec<Id> = vec![0; self.values.len()];
        let mut values: Vec<Value> = vec![];
        for (id, old) in std::mem::take(&mut self.values).into_iter().enumerate() {
            if gone.contains(&id) {
                continue;
            }
            let mut v = old;
            match (&mut v.def, found[id]) {
                (def, Some((_, a, b))) => {
                    let transposed = |x: Id, values: &mut Vec<Value>| {
                        let mut ty = values[at[x]].ty.clone();
                        let rank = ty.shape.len();
                        ty.shape.swap(rank - 2, rank - 1);
                        let mut perm: Vec<usize> = (0..rank).collect();
                        perm.swap(rank - 2, rank - 1);
                        let def = Def::Move { src: at[x], how: Movement::Permute(perm) };
                        values.push(Value { ty, def, name: "transpose", asked: "matmul", check: None });
                        values.len() - 1
                    };
                    let (b, a) = (transposed(b, &mut values), transposed(a, &mut values));
                    *def = Def::Contract { a: b, b: a };
                    v.name = "matmul";
                }
                (Def::Move { src, .. } | Def::Reduce { src, .. }, _) => *src = at[*src],
                (Def::Map { args, .. }, _) => args.iter_mut().for_each(|a| *a = at[*a]),
                (Def::Contract { a, b } | Def::Gather { data: a, index: b, .. }, _) => {
                    (*a, *b) = (at[*a], at[*b]);
                }
                (Def::Input(_) | Def::Fill(_), _) => {}
            }
            at[id] = values.len();
            values.push(v);
        }
        self.values = values;
        self.inputs.iter_mut().for_each(|i| i.0 = at[i.0]);
        self.outputs.iter_mut().for_each(|o| *o = at[*o]);
    }
    pub fn ty(&self, id: Id) -> &TensorType {
        &self.values[id].ty
    }
    pub fn shape(&self, id: Id) -> &[usize] {
        &self.values[id].ty.shape
    }
    pub fn dtype(&self, id: Id) -> Dtype {
        self.values[id].ty.dtype
    }
}

struct Builder {
    graph: Graph,
    /// Equal values, by text.
    known: HashMap<String, Id>,
    of: HashMap<u64, Id>,
    /// The first node id that each expansion may have made, ascending, and the op that was asked for.
    expansions: Vec<(u64, &'static str)>,
    /// What [`Value::asked`] is for the values now made.
    asked: &'static str,
}

impl Builder {
    /// The op that `node`, of op `name`, was made for. Ids only grow, and while a graph is built only expansions make
    /// its nodes: each is of the last expansion that began before it, or of none.
    fn asked_for(&self, node: &Node, name: &'static str) -> &'static str {
        let before = self.expansions.partition_point(|e| e.0 <= node.id());
        before.checked_sub(1).map_or(name, |i| self.expansions[i].1)
    }
    fn push(&mut self, name: &'static str, ty: &TensorType, def: Def) -> Id {
        let asked = if self.asked.is_empty() { name } else { self.asked };
        self.graph.values.push(Value { ty: ty.clone(), def, name, asked, check: None });
        self.graph.values.len() - 1
    }
    fn input(&mut self, node: &Node, source: Source) -> Id {
        self.asked = "";
        let id = self.push("input", node.ty(), Def::Input(self.graph.inputs.len()));
        self.graph.inputs.push((id, source));
        id
    }
    fn fill(&mut self, ty: &TensorType, bits: u64) -> Id {
        let key = format!("fill {bits} {ty:?}");
        if let Some(&id) = self.known.get(&key) {
            return id;
        }
        let id = self.push("fill", ty, Def::Fill(bits));
        self.known.insert(key, id);
        id
    }
    fn add(
        &mut self,
        name: &'static str,
        ty: &TensorType,
        lowering: Lowering,
        args: Vec<Id>,
        key: String,
    ) -> Id {
        if let Some(&id) = self.known.get(&key) {
            return id;
        }
        let id = match lowering {
            Lowering::Move(how) => self.movement(name, ty, how, args[0]),
            Lowering::Map(body) => self.push(name, ty, Def::Map { body, args }),
            Lowering::Reduce { combine, axes } => {
                let src = args[0];
                if self.graph.ty(src).is_empty() && !ty.is_empty() {
                    self.fill(ty, if combine == Combine::Sum { 0 } else { identity(combine, ty.dtype) })
                } else {
                    self.push(name, ty, Def::Reduce { combine, axes, src })
                }
            }
            Lowering::Contract => self.push(name, ty, Def::Contract { a: args[0], b: args[1] }),
            Lowering::Gather { axis, check } => {
                let id = self.push(name, ty, Def::Gather { axis, data: args[0], index: args[1] });
                self.graph.values[id].check = check;
                id
            }
            // `build` has expanded it already.
            Lowering::Expand => args[0],
        };
        self.known.insert(key, id);
        id
    }
    fn movement(&mut self, name: &'static str, ty: &TensorType, how: Movement, src: Id) -> Id {
        let from = self.graph.ty(src).clone();
        let same = match &how {
            Movement::Reshape(_) | Movement::Expand(_) => from.shape == ty.shape,
            Movement::Permute(perm) => perm.iter().enumerate().all(|(i, &p)| i == p),
            Movement::Slice { start, step, .. } => {
                from.shape == ty.shape && start.iter().all(|&s| s == 0) && step.iter().all(|&s| s == 1)
            }
            Movement::Pad { .. } => from.shape == ty.shape,
            Movement::Window { .. } | Movement::Unwindow { .. } => false,
        };
        if same {
            return src;
        }
        let foreign = match &how {
            Movement::Pad { fill, .. } => Some(*fill),
            Movement::Unwindow { .. } => Some(0),
            _ => None,
        };
        if from.is_empty() && !ty.is_empty() {
            return self.fill(ty, foreign.unwrap_or(0));
        }
        if let Def::Fill(bits) = self.graph.values[src].def
            && foreign.is_none_or(|f| f == bits)
        {
            return self.fill(ty, bits);
        }
        self.push(name, ty, Def::Move { src, how })
    }
}

/// The value (bits of `dtype`) that a reduction starts from: combining with it changes nothing but −0's absence.
pub fn identity(combine: Combine, dtype: Dtype) -> u64 {
    let low = matches!(combine, Combine::Max | Combine::ArgMax);
    match (combine, dtype) {
        (Combine::Sum, Dtype::F32) => 0x8000_0000,
        (Combine::Sum, Dtype::F64) => 1 << 63,
        (Combine::Sum, Dtype::F16 | Dtype::Bf16) => 0x8000,
        (Combine::Sum, _) => 0,
        (_, Dtype::F32) => (if low { f32::NEG_INFINITY } else { f32::INFINITY }).to_bits() as u64,
        (_, Dtype::F64) => (if low { f64::NEG_INFINITY } else { f64::INFINITY }).to_bits(),
        (_, Dtype::F16) => {
            if low {
                0xfc00
            } else {
                0x7c00
            }
        }
        (_, Dtype::Bf16) => {
            if low {
                0xff80
            } else {
                0x7f80
            }
        }
        (_, Dtype::I32) => {
            if low {
                i32::MIN as u32 as u64
            } else {
                i32::MAX as u64
            }
        }
        (_, Dtype::I64) => {
            if low {
                i64::MIN as u64
            } else {
                i64::MAX as u64
            }
        }
        (_, Dtype::U32) => {
            if low {
                0
            } else {
                u32::MAX as u64
            }
        }
        (_, Dtype::U8) => {
            if low {
                0
            } else {
                255
            }
        }
        (_, Dtype::Bool) => {
            if low {
                0
            } else {
                1
            }
        }
    }
}
