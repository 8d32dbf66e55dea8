//! Which values get a kernel and which are computed inside another's. A decision here may cost time, never bits:
//! every value is rounded to its own dtype wherever it is computed.
//!
//! Rules, each listed where it is applied: outputs are materialised; movements are read through; an elementwise value
//! with one kernel using it is computed there; one with several is materialised once; operands of products and of
//! gathers, and values about to be repeated by an expansion, are materialised; a reduction or product whose only
//! user is one elementwise kernel of the same element count carries that kernel as its epilogue.

use super::graph::{Def, Graph, Id};
use crate::op::Movement;

/// What was decided, per value.
#[derive(Clone, Debug)]
pub struct Fusion {
    /// The value gets memory, and a kernel of its own ([`Fusion::heavy`] may sit inside).
    pub materialised: Vec<bool>,
    /// For a materialised map: the reduction or product whose epilogue it is.
    pub heavy: Vec<Option<Id>>,
    /// The value is computed or read by some kernel.
    pub live: Vec<bool>,
    /// One line per decision, for people.
    pub log: Vec<String>,
}

/// More values than this are not computed inside one kernel.
const MOST_INLINE: usize = 48;

/// Decides. With `fuse` off every value but constants is materialised.
pub fn decide(graph: &Graph, fuse: bool) -> Fusion {
    let n = graph.values.len();
    let mut f =
        Fusion { materialised: vec![false; n], heavy: vec![None; n], live: vec![false; n], log: vec![] };
    let mut users: Vec<Vec<Id>> = vec![vec![]; n];
    for id in 0..n {
        for a in graph.values[id].operands() {
            if !users[a].contains(&id) {
                users[a].push(id);
            }
        }
    }
    let mut output = vec![false; n];
    graph.outputs.iter().for_each(|&o| output[o] = true);
    // The kernels a value is computed in.
    let mut kernels: Vec<Vec<Id>> = vec![vec![]; n];
    // The materialised map reached from here through elementwise values and reshapes alone.
    let mut straight: Vec<Option<Id>> = vec![None; n];
    let mut forced: Vec<Option<&'static str>> = vec![None; n];
    let mut inside = vec![0usize; n];
    for id in (0..n).rev() {
        let v = &graph.values[id];
        if matches!(v.def, Def::Input(_)) || users[id].is_empty() && !output[id] {
            continue;
        }
        f.live[id] = true;
        let mut owners: Vec<Id> = users[id].iter().flat_map(|&u| kernels[u].clone()).collect();
        owners.sort_unstable();
        owners.dedup();
        let through = |how: &Movement| matches!(how, Movement::Reshape(_));
        let reached = {
            let mut all = users[id].iter().map(|&u| match &graph.values[u].def {
                Def::Map { .. } => straight[u],
                Def::Move { how, .. } if through(how) => straight[u],
                _ => None,
            });
            all.next().flatten().filter(|&r| all.all(|s| s == Some(r)))
        };
        let own = |f: &mut Fusion, why: &str| {
            f.materialised[id] = true;
            f.log.push(format!("%{id} {} {}: own kernel: {why}", v.name, v.ty));
        };
        let mut absorbed = None;
        match &v.def {
            Def::Input(_) => {}
            Def::Fill(_) if output[id] => own(&mut f, "an output"),
            Def::Fill(_) => {}
            _ if !fuse => own(&mut f, "fusion is off"),
            _ if output[id] => own(&mut f, "an output"),
            Def::Move { .. } => {}
            Def::Map { .. } | Def::Gather { .. } => {
                if let Some(why) = forced[id] {
                    own(&mut f, why);
                } else if owners.len() > 1 {
                    own(&mut f, &format!("used by {} kernels", owners.len()));
                } else if owners.first().is_some_and(|&r| inside[r] >= MOST_INLINE) {
                    own(&mut f, "the kernel using it is full");
                } else if let Some(&r) = owners.first() {
                    inside[r] += 1;
                    f.log.push(format!("%{id} {} {}: computed inside %{r}", v.name, v.ty));
                }
            }
            Def::Reduce { .. } | Def::Contract { .. } => match reached {
                Some(r) if owners == [r] && f.heavy[r].is_none() && graph.ty(r).len() == v.ty.len() => {
                    f.heavy[r] = Some(id);
                    absorbed = Some(r);
                    f.log.push(format!("%{id} {} {}: carries %{r} as its epilogue", v.name, v.ty));
                }
                _ => own(&mut f, "a reduction or product with other uses than one epilogue"),
            },
        }
        if f.materialised[id] {
            kernels[id] = vec![id];
            straight[id] = matches!(v.def, Def::Map { .. }).then_some(id);
        } else if let Some(r) = absorbed {
            kernels[id] = vec![r];
        } else {
            kernels[id] = owners;
            straight[id] = reached;
        }
        match &v.def {
            Def::Contract { a, b } => {
                force(graph, &mut forced, *a, "an operand of a product");
                force(graph, &mut forced, *b, "an operand of a product");
            }
            Def::Gather { data, index, .. } => {
                force(graph, &mut forced, *data, "read at gathered places");
                force(graph, &mut forced, *index, "an index");
            }
            Def::Move { src, how } => {
                let repeats =
                    matches!(how, Movement::Expand(_) | Movement::Window { .. } | Movement::Unwindow { .. });
                if repeats && v.ty.len() > graph.ty(*src).len() {
                    force(graph, &mut forced, *src, "its elements are used several times");
                }
            }
            _ => {}
        }
    }
    f.log.reverse();
    f
}

fn force(graph: &Graph, forced: &mut [Option<&'static str>], mut id: Id, why: &'static str) {
    while let Def::Move { src, .. } = graph.values[id].def {
        id = src;
    }
    forced[id].get_or_insert(why);
}
