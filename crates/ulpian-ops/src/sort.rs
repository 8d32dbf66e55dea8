//! Sorted order, and reading a value at another place, from movements, selections and gathers alone.
//!
//! Here lives what ops with an order of their own are built from; no op that people call lives here. The one idea: the
//! rows that are sorted are all different, so there is one sorted order, and how it is found shows in no bit. It is
//! found by Batcher's bitonic merges: log2(n)·(log2(n) + 1)/2 passes over n rows, the same ones whatever the rows hold.

use crate::compare::{eq, logical_and, logical_or, logical_xor, lt};
use crate::create::{iota, positions};
use crate::gather::gather_at;
use crate::movement::{flip, narrow, pad, reshape};
use crate::select::select;
use ulpian_graph::{Node, OpError};
use ulpian_num::Dtype;

/// Up to here an order is found by counting, n² comparisons in two or three kernels: quicker than the passes.
pub(crate) const COUNTED: usize = 256;

/// `v` with its elements along `axis` at the places that `to` makes of 0, 1, 2, …, which stay inside. By a gather,
/// whose source has memory: what a pass reads twice is not computed anew in every later pass, twice as often in each.
pub(crate) fn from_places(
    v: &Node,
    axis: usize,
    to: impl FnOnce(&Node) -> Result<Node, OpError>,
) -> Result<Node, OpError> {
    gather_at(v, &to(&iota(Dtype::I32, v.shape()[axis])?)?, axis, None)
}

/// The elements `step` places further along `axis`, the first one where there is none.
pub(crate) fn ahead(v: &Node, axis: usize, step: usize) -> Result<Node, OpError> {
    let n = v.shape()[axis];
    from_places(v, axis, |at| pad(&narrow(at, 0, step, n - step)?, &[0], &[step], 0.0))
}

/// The elements `step` places before along `axis`, the first one where there is none.
pub(crate) fn behind(v: &Node, axis: usize, step: usize) -> Result<Node, OpError> {
    let n = v.shape()[axis];
    from_places(v, axis, |at| pad(&narrow(at, 0, 0, n - step)?, &[step], &[0], 0.0))
}

/// Rows in ascending order, the first column counting most. Columns are i32 \[n\], n at least 1; the last one holds no
/// number twice, and never `i32::MAX`.
pub(crate) fn sorted(columns: &[Node]) -> Result<Vec<Node>, OpError> {
    let n = columns[0].shape()[0];
    // Rows past the end are greater than all others, and equal to each other.
    let m = n.next_power_of_two();
    let mut rows = columns
        .iter()
        .map(|c| pad(c, &[0], &[m - n], i32::MAX.into()))
        .collect::<Result<Vec<Node>, OpError>>()?;
    let mut run = 1;
    while run < m {
        // Of two ascending runs the second is met backwards, so that each half of the outcome needs no more than
        // merges of its own.
        let blocks = [m / (2 * run), 2 * run];
        rows = exchanged(&rows, run, |at| reshape(&flip(&reshape(at, &blocks)?, 1)?, &[m]))?;
        let mut step = run / 2;
        while step > 0 {
            let pairs = [m / (2 * step), 2, step];
            rows = exchanged(&rows, step, |at| reshape(&flip(&reshape(at, &pairs)?, 1)?, &[m]))?;
            step /= 2;
        }
        run *= 2;
    }
    rows.iter().map(|c| narrow(c, 0, 0, n)).collect()
}

/// One pass: of a row and its partner, the one whose place has the bit `step` takes the greater.
fn exchanged(
    rows: &[Node],
    step: usize,
    partner: impl Fn(&Node) -> Result<Node, OpError>,
) -> Result<Vec<Node>, OpError> {
    let m = rows[0].shape()[0];
    let others = rows.iter().map(|c| from_places(c, 0, &partner)).collect::<Result<Vec<Node>, OpError>>()?;
    let bit = reshape(&positions(Dtype::I32, &[m / (2 * step), 2, step], 1)?, &[m])?;
    let takes_greater = eq(&bit, &crate::create::like(&bit, 1.0))?;
    let mut less: Option<Node> = None;
    for (mine, other) in rows.iter().zip(&others).rev() {
        let here = lt(mine, other)?;
        less = Some(match less {
            Some(rest) => logical_or(&here, &logical_and(&eq(mine, other)?, &rest)?)?,
            None => here,
        });
    }
    let Some(less) = less else { return Ok(vec![]) };
    let stays = logical_xor(&less, &takes_greater)?;
    rows.iter().zip(&others).map(|(mine, other)| select(&stays, mine, other)).collect()
}
