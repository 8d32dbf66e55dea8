//! Forward mode: tangents pushed from the primals to the outputs.

use super::walk::post_order;
use super::{Algebra, count, floating, same_type, zeros};
use crate::node::{Node, NodeKind};
use crate::op::{Differentiation, OpError, Tangent};
use std::collections::{HashMap, HashSet};
use ulpian_num::Dtype;

/// What reaches a node from the perturbed primals. Absent: nothing.
#[derive(Clone)]
enum Flow {
    Tangent(Node),
    /// The value is a number made from perturbed ones by an op that refuses to be differentiated.
    Refused {
        op: &'static str,
        reason: &'static str,
    },
}

/// The tangents of `outputs` when each of `primals` moves along its tangent.
///
/// Primals may be any floating nodes, inner ones included: each is perturbed by its tangent in addition to what flows
/// into it from other primals. An output that no primal reaches has a zero tangent.
///
/// Tangents stop where the derivative is zero almost everywhere: at [`Differentiation::Zero`], and where an op that
/// refuses differentiation ([`Differentiation::NoGrad`]) makes a bool or an index that only chooses among values (a
/// comparison before a select, an argmax before a gather). Where such an op's *number* reaches an output and no
/// tangent does, that is [`OpError::NoGradient`] with the op's reason. Integer and bool outputs and primals are
/// [`OpError::NotFloating`].
pub fn jvp(
    algebra: &dyn Algebra,
    outputs: &[Node],
    primals: &[Node],
    tangents: &[Node],
) -> Result<Vec<Node>, OpError> {
    count("jvp", "tangents", tangents.len(), primals.len())?;
    for (p, t) in primals.iter().zip(tangents) {
        floating("jvp", p)?;
        same_type("jvp", "tangent", p, t)?;
    }
    let flows = push(algebra, "jvp", outputs, primals, tangents)?;
    Ok(outputs.iter().zip(flows).map(|(o, t)| t.unwrap_or_else(|| zeros(o.ty()))).collect())
}

/// The tangents of `outputs`; `None` where nothing flows.
pub(super) fn push(
    algebra: &dyn Algebra,
    transform: &str,
    outputs: &[Node],
    primals: &[Node],
    tangents: &[Node],
) -> Result<Vec<Option<Node>>, OpError> {
    for output in outputs {
        floating(transform, output)?;
    }
    let mut flows: HashMap<u64, Flow> = HashMap::new();
    for (primal, tangent) in primals.iter().zip(tangents) {
        let sum = match flows.get(&primal.id()) {
            Some(Flow::Tangent(t)) => algebra.add(t, tangent)?,
            _ => tangent.clone(),
        };
        flows.insert(primal.id(), Flow::Tangent(sum));
    }
    for node in post_order(outputs, &HashSet::new()) {
        let Some(flow) = through(&node, &flows)? else { continue };
        let flow = match (flows.remove(&node.id()), flow) {
            // A primal that other primals reach: its own tangent comes first.
            (Some(Flow::Tangent(own)), Flow::Tangent(t)) => Flow::Tangent(algebra.add(&own, &t)?),
            (Some(own), Flow::Refused { .. }) => own,
            (_, flow) => flow,
        };
        flows.insert(node.id(), flow);
    }
    outputs
        .iter()
        .map(|o| match flows.get(&o.id()) {
            None => Ok(None),
            Some(Flow::Tangent(t)) => Ok(Some(t.clone())),
            Some(Flow::Refused { op, reason }) => {
                Err(OpError::NoGradient { op: (*op).into(), reason: (*reason).into() })
            }
        })
        .collect()
}

/// What flows out of a node by what flows into it.
fn through(node: &Node, flows: &HashMap<u64, Flow>) -> Result<Option<Flow>, OpError> {
    let NodeKind::Apply { op, inputs } = node.kind() else { return Ok(None) };
    let into: Vec<Option<&Flow>> = inputs.iter().map(|i| flows.get(&i.id())).collect();
    // A truth value only ever chooses: what it chooses among carries the tangents.
    if node.ty().dtype == Dtype::Bool || into.iter().all(Option::is_none) {
        return Ok(None);
    }
    let refused = || {
        into.iter().find_map(|f| match f {
            Some(Flow::Refused { op, reason }) => Some(Flow::Refused { op, reason }),
            _ => None,
        })
    };
    match op.differentiation() {
        Differentiation::NoGrad { reason } => {
            Ok(Some(refused().unwrap_or(Flow::Refused { op: op.name(), reason })))
        }
        Differentiation::Zero { .. } => Ok(refused()),
        Differentiation::Rule { .. } => {
            let tangents: Vec<Option<Node>> = into
                .iter()
                .map(|f| match f {
                    Some(Flow::Tangent(t)) => Some(t.clone()),
                    _ => None,
                })
                .collect();
            if tangents.iter().all(Option::is_none) {
                // A refused integer beside floats is an index: it chooses.
                let floats = inputs.iter().any(|i| i.ty().dtype.is_float());
                let counts = |i: &Node| i.ty().dtype.is_float() || !floats;
                let number = inputs
                    .iter()
                    .any(|i| counts(i) && matches!(flows.get(&i.id()), Some(Flow::Refused { .. })));
                return Ok(if number { refused() } else { None });
            }
            match op.jvp(inputs, node, &tangents)? {
                Tangent::Zero => Ok(None),
                Tangent::Node(t) => {
                    same_type(op.name(), "tangent", node, &t)?;
                    Ok(Some(Flow::Tangent(t)))
                }
            }
        }
    }
}
