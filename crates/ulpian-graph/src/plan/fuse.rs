//! Which values get a kernel and which are computed inside another's. A decision here may cost time, never bits:
//! every value is rounded to its own dtype wherever it is computed.
//!
//! Rules, each listed where it is applied: outputs are materialised; movements are read through; an elementwise value
//! with one kernel using it is computed there; one with several is materialised once; operands of products and of
//! gathers, and values about to be repeated by an expansion, are materialised; a reduction or product whose only
//! user is one elementwise kernel of the same element count carries that kernel as its epilogue; a kernel and an
//! elementwise kernel that reads its result lane for lane become one that stores both.

use super::graph::{Def, Graph, Id};
use crate::op::Movement;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// What was decided, per value.
#[derive(Clone, Debug)]
pub struct Fusion {
    /// The value gets memory, and a kernel of its own ([`Group::heavy`] may sit inside).
    pub materialised: Vec<bool>,
    /// The kernels, in an order in which they can run.
    pub kernels: Vec<Group>,
    /// The value is computed or read by some kernel.
    pub live: Vec<bool>,
    /// One line per decision, for people.
    pub log: Vec<String>,
}

/// What one kernel computes.
#[derive(Clone, Debug)]
pub struct Group {
    /// Values it writes, operands first; all of one element count.
    pub stores: Vec<Id>,
    /// The reduction or product that it is built around; among `stores` or computed on the way to them.
    pub heavy: Option<Id>,
}

/// More values than this are not computed inside one kernel.
const MOST_INLINE: usize = 48;
/// Ops on constants that are computed anew wherever they are used.
const MOST_REPEATED: usize = 24;
/// Movements in a row that are read through; the next one is carried out.
const MOST_MOVES: usize = 32;
/// Groups looked at before a merge is given up.
const MOST_SEARCHED: usize = 512;
/// Results that one kernel may write.
const MOST_STORES: usize = 6;

/// Decides. With `fuse` off every value but constants is materialised.
pub fn decide(graph: &Graph, fuse: bool) -> Fusion {
    let n = graph.values.len();
    let mut f = Fusion { materialised: vec![false; n], kernels: vec![], live: vec![false; n], log: vec![] };
    let mut users: Vec<Vec<Id>> = vec![vec![]; n];
    for id in 0..n {
        for a in graph.values[id].operands() {
            // Users are met in order, one after the other.
            if users[a].last() != Some(&id) {
                users[a].push(id);
            }
        }
    }
    let mut output = vec![false; n];
    graph.outputs.iter().for_each(|&o| output[o] = true);
    let mut unread = vec![false; n];
    graph.unread.iter().for_each(|&g| unread[g] = true);
    let mut epilogue_of: Vec<Option<Id>> = vec![None; n];
    // The kernels a value is computed in.
    let mut kernels: Vec<Vec<Id>> = vec![vec![]; n];
    // The materialised map reached from here through elementwise values and reshapes alone.
    let mut straight: Vec<Option<Id>> = vec![None; n];
    let mut forced: Vec<Option<&'static str>> = vec![None; n];
    let mut inside = vec![0usize; n];
    // Made from constants alone (counters among them): cheaper to compute anywhere than to read.
    let mut constant = vec![false; n];
    // Ops that computing it there repeats.
    let mut repeated = vec![0usize; n];
    let mut moves = vec![0usize; n];
    for id in 0..n {
        let v = &graph.values[id];
        if let Def::Move { src, .. } = v.def {
            moves[id] = moves[src] % MOST_MOVES + 1;
        }
        let operands = v.operands();
        let most = if matches!(v.def, Def::Map { .. }) { 2 } else { 1 };
        repeated[id] = operands.iter().fold(1, |sum, &a| sum + repeated[a]).min(MOST_REPEATED + 1);
        constant[id] = match &v.def {
            Def::Fill(_) => true,
            Def::Map { .. } | Def::Move { .. } => {
                operands.len() <= most
                    && operands.iter().all(|&a| constant[a])
                    && repeated[id] <= MOST_REPEATED
            }
            _ => false,
        };
    }
    for id in (0..n).rev() {
        let v = &graph.values[id];
        if matches!(v.def, Def::Input(_)) || users[id].is_empty() && !output[id] && !unread[id] {
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
            _ if unread[id] => own(&mut f, "nothing reads it, but its indices are checked"),
            Def::Move { .. } if moves[id] == MOST_MOVES => own(&mut f, "a long row of movements"),
            Def::Move { .. } => {}
            Def::Map { .. } if fuse && constant[id] => {
                f.log.push(format!(
                    "%{id} {} {}: computed wherever it is used: constants alone",
                    v.name, v.ty
                ));
            }
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
                Some(r) if owners == [r] && epilogue_of[r].is_none() && graph.ty(r).len() == v.ty.len() => {
                    epilogue_of[r] = Some(id);
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
    group(graph, fuse, &epilogue_of, &mut f);
    f
}

/// What a group reads: values of others, and whether each is read only at the lane it is used for.
fn reads(graph: &Graph, f: &Fusion, group: &Group) -> BTreeMap<Id, bool> {
    let mut found = BTreeMap::new();
    let mut seen: HashSet<(Id, bool)> = HashSet::new();
    let mut stack: Vec<(Id, bool)> = group.stores.iter().map(|&s| (s, true)).collect();
    while let Some((id, straight)) = stack.pop() {
        if !seen.insert((id, straight)) {
            continue;
        }
        if f.materialised[id] && !group.stores.contains(&id) {
            let entry = found.entry(id).or_insert(true);
            *entry &= straight;
            continue;
        }
        let v = &graph.values[id];
        let same = straight
            && match &v.def {
                Def::Map { .. } => true,
                Def::Move { how, .. } => matches!(how, Movement::Reshape(_)),
                _ => false,
            };
        stack.extend(v.operands().into_iter().map(|a| (a, same)));
    }
    found
}

/// Makes groups of the materialised values, merges them where that is allowed, and puts them in order.
fn group(graph: &Graph, fuse: bool, epilogue_of: &[Option<Id>], f: &mut Fusion) {
    let ids: Vec<Id> = (0..graph.values.len()).filter(|&id| f.materialised[id]).collect();
    let mut groups: Vec<Option<Group>> = vec![];
    let mut home: HashMap<Id, usize> = HashMap::new();
    for &id in &ids {
        let itself = matches!(graph.values[id].def, Def::Reduce { .. } | Def::Contract { .. }).then_some(id);
        home.insert(id, groups.len());
        groups.push(Some(Group { stores: vec![id], heavy: epilogue_of[id].or(itself) }));
    }
    let mut inputs: Vec<BTreeMap<Id, bool>> = groups.iter().flatten().map(|g| reads(graph, f, g)).collect();
    for &r in ids.iter().filter(|&&r| fuse && matches!(graph.values[r].def, Def::Map { .. })) {
        let straight: Vec<Id> = inputs[home[&r]].iter().filter(|e| *e.1).map(|e| *e.0).collect();
        for p in straight.into_iter().rev() {
            let (from, to) = (home[&p], home[&r]);
            let (Some(a), Some(b)) = (&groups[from], &groups[to]) else { continue };
            let fits = from != to
                && !matches!(graph.values[p].def, Def::Move { .. } | Def::Fill(_))
                && graph.ty(p).len() == graph.ty(r).len()
                && !graph.ty(r).is_empty()
                && a.stores.len() + b.stores.len() <= MOST_STORES
                && (a.heavy.is_none() || b.heavy.is_none())
                && a.stores.iter().all(|s| inputs[to].get(s) != Some(&false))
                && !detour(&groups, &inputs, &home, from, to);
            if !fits {
                continue;
            }
            let mut stores = [a.stores.clone(), b.stores.clone()].concat();
            stores.sort_unstable();
            f.log.push(format!(
                "%{p} {}: its kernel also computes %{r} {}",
                graph.values[p].name, graph.values[r].name
            ));
            let merged = Group { heavy: a.heavy.or(b.heavy), stores };
            merged.stores.iter().for_each(|&s| {
                home.insert(s, to);
            });
            inputs[to] = reads(graph, f, &merged);
            inputs[from].clear();
            groups[from] = None;
            groups[to] = Some(merged);
        }
    }
    // In order: a group is ready when the groups it reads have run; the one with the lowest values goes first.
    let needs =
        |g: usize| inputs[g].keys().filter_map(|id| home.get(id)).copied().collect::<BTreeSet<usize>>();
    let mut waiting: BTreeMap<usize, BTreeSet<usize>> =
        (0..groups.len()).filter(|&g| groups[g].is_some()).map(|g| (g, needs(g))).collect();
    let mut ready: BTreeSet<(Id, usize)> = BTreeSet::new();
    let first =
        |groups: &[Option<Group>], g: usize| groups[g].as_ref().map_or(0, |g| g.stores[g.stores.len() - 1]);
    let mut users: HashMap<usize, Vec<usize>> = HashMap::new();
    for (&g, needs) in &waiting {
        needs.iter().for_each(|&n| users.entry(n).or_default().push(g));
        if needs.is_empty() {
            ready.insert((first(&groups, g), g));
        }
    }
    while let Some((_, g)) = ready.pop_first() {
        waiting.remove(&g);
        for &u in users.get(&g).map(Vec::as_slice).unwrap_or_default() {
            if let Some(needs) = waiting.get_mut(&u) {
                needs.remove(&g);
                if needs.is_empty() {
                    ready.insert((first(&groups, u), u));
                }
            }
        }
        f.kernels.extend(groups[g].clone());
    }
}

/// Whether `to` also depends on `from` through a third group, so that they cannot be one. Such a group has values
/// after the first of `from`, so earlier ones are not entered; the earliest of the others come first, where a way back
/// is shortest. Past [`MOST_SEARCHED`] groups the answer is yes, which costs a merge and never a bit.
fn detour(
    groups: &[Option<Group>],
    inputs: &[BTreeMap<Id, bool>],
    home: &HashMap<Id, usize>,
    from: usize,
    to: usize,
) -> bool {
    let start = groups[from].as_ref().and_then(|g| g.stores.first());
    let last = |g: usize| groups[g].as_ref().and_then(|g| g.stores.last().copied());
    let reach = |g: usize| {
        let read = inputs[g].keys().filter_map(|id| home.get(id)).copied();
        read.filter_map(|g| last(g).filter(|l| Some(l) > start).map(|l| (l, g)))
    };
    let mut seen = HashSet::new();
    let mut next: BTreeSet<(Id, usize)> = reach(to).filter(|&(_, g)| g != from).collect();
    while let Some((_, g)) = next.pop_first() {
        if g == from || seen.len() >= MOST_SEARCHED {
            return true;
        }
        if seen.insert(g) {
            // `from` itself may end where it starts.
            if inputs[g].keys().any(|id| home.get(id) == Some(&from)) {
                return true;
            }
            next.extend(reach(g));
        }
    }
    false
}

fn force(graph: &Graph, forced: &mut [Option<&'static str>], mut id: Id, why: &'static str) {
    while let Def::Move { src, .. } = graph.values[id].def {
        id = src;
    }
    forced[id].get_or_insert(why);
}
