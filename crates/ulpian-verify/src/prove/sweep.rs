//! The sweep: block after block is evaluated, hashed, and held to the truth or to another device.

use super::evaluate::patterns;
use super::{BLOCK, Block, CHUNK, Entry, Evaluator, Job, KEPT, ProveError, Wrong, pairs};
use crate::truth::{self, Format, Inputs, Tally};
use sha2::{Digest, Sha256};
use std::sync::{Arc, Mutex, PoisonError};
use ulpian_kernel::device::Device;

/// What a sweep tells as it goes.
#[derive(Debug)]
pub enum Step<'a> {
    /// A block is done (or was done before: `old`). `reference` is what was found of the reference so far.
    Block { number: u64, block: &'a Block, entry: &'a Entry, reference: Option<&'a Entry>, old: bool },
    /// The first input of a block on which the device differs from the reference.
    Differ { a: u32, b: u32, device: u32, reference: u32 },
}

/// How a sweep ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    pub wrong: u64,
    pub undecided: u64,
    pub differ: u64,
    /// `each` asked for it.
    pub stopped: bool,
}

/// Runs `job` on `device`, leaving out what `entry` holds already. With a `reference` (the CPU and its entry) results
/// are compared with its blocks, which are computed where they are missing, and what is equal is as right as they are;
/// without, results are held to the truth. A block that was compared with another reference than this one is not left
/// out. `each` hears of every block and says whether to go on.
///
/// # Errors
/// [`ProveError`] from either device.
pub fn sweep(
    job: &Job,
    device: &Arc<dyn Device>,
    threads: usize,
    entry: &mut Entry,
    mut reference: Option<(&Arc<dyn Device>, &mut Entry)>,
    each: &mut dyn FnMut(Step<'_>) -> bool,
) -> Result<Outcome, ProveError> {
    job.check()?;
    let format = job.format()?;
    let mut evaluator: Option<Evaluator> = None;
    let mut other: Option<Evaluator> = None;
    let mut ours = vec![];
    let mut launched = None;
    let mut outcome = Outcome::default();
    for b in 0..job.blocks() {
        let known = reference.as_ref().map(|(_, known)| known.blocks.get(&b));
        let old = entry.blocks.get(&b).is_some_and(|ours| match known {
            None => true,
            Some(theirs) => theirs.is_some_and(|theirs| (theirs.hash == ours.hash) == (ours.differ == 0)),
        });
        if !old {
            let running = match &mut evaluator {
                Some(e) => e,
                None => evaluator.insert(Evaluator::new(device.clone(), job, reference.is_some())?),
            };
            let mut seen = Seen::default();
            let portions = BLOCK / running.portion();
            for n in b * portions..(b + 1) * portions {
                let Some((first, _)) = running.inputs_of(n) else { break };
                if launched != Some(n) {
                    running.launch(n)?;
                }
                running.fetch(n, &mut ours)?;
                // The device computes the next portion while this one is looked at.
                if n + 1 < (b + 1) * portions || !entry.blocks.contains_key(&(b + 1)) {
                    running.launch(n + 1)?;
                    launched = Some(n + 1);
                }
                seen.look(job, first, &ours, threads, reference.is_none())?;
            }
            let mut block = seen.block(&mut entry.wrong);
            if let Some((cpu, known)) = &mut reference {
                let evaluate = |other: &mut Option<Evaluator>| {
                    let e = match other {
                        Some(e) => e,
                        None => other.insert(Evaluator::new((*cpu).clone(), job, true)?),
                    };
                    let mut theirs = vec![];
                    e.launch(b)?;
                    e.fetch(b, &mut theirs)?;
                    Ok::<_, ProveError>(theirs)
                };
                let first = job.block(b).0;
                if !known.blocks.contains_key(&b) {
                    let mut seen = Seen::default();
                    seen.look(job, first, &evaluate(&mut other)?, threads, true)?;
                    let found = seen.block(&mut known.wrong);
                    known.blocks.insert(b, found);
                }
                if let Some(equal) = known.blocks.get(&b).filter(|k| k.hash == block.hash) {
                    (block.wrong, block.undecided) = (equal.wrong, equal.undecided);
                } else {
                    let (mut left, mut right) = (vec![], vec![]);
                    patterns(format, &ours, &mut left);
                    patterns(format, &evaluate(&mut other)?, &mut right);
                    let mut seen = Seen::default();
                    seen.look(job, first, &ours, threads, true)?;
                    block = seen.block(&mut entry.wrong);
                    let differing = || left.iter().zip(&right).enumerate().filter(|(_, (o, t))| o != t);
                    // A reference that no longer gives its own hash counts as different too.
                    block.differ = (differing().count() as u64).max(1);
                    if let Some((i, (&device, &reference))) = differing().next() {
                        let (a, b) = operands(job, first + i as u64);
                        each(Step::Differ { a, b, device, reference });
                    }
                }
            }
            entry.blocks.insert(b, block);
        }
        let block = &entry.blocks[&b];
        outcome.wrong += block.wrong;
        outcome.undecided += block.undecided;
        outcome.differ += block.differ;
        let reference = reference.as_ref().map(|(_, known)| &**known);
        if !each(Step::Block { number: b, block, entry, reference, old }) {
            outcome.stopped = true;
            break;
        }
    }
    Ok(outcome)
}

/// The operands of the `i`-th input, as patterns of the job's type.
fn operands(job: &Job, i: u64) -> (u32, u32) {
    match (job.func.arity(), job.dtype) {
        (1, ulpian_num::Dtype::F32) => (job.pattern(i), job.pattern(i)),
        (1, _) => (i as u32, i as u32),
        _ => pairs::pair(job.func, job.dtype, i * u64::from(job.step)),
    }
}

/// What was seen of a block so far, in the order of its inputs.
#[derive(Default)]
struct Seen {
    hashes: Vec<[u8; 32]>,
    inputs: u64,
    tally: Tally,
    /// By place: the first [`KEPT`], whatever the threads.
    wrong: Vec<(u64, Wrong)>,
}

impl Seen {
    /// Makes NaNs canonical, hashes, and (`check`) holds the results from place `first` on to the truth; chunks go over
    /// the threads.
    fn look(
        &mut self,
        job: &Job,
        first: u64,
        bytes: &[u8],
        threads: usize,
        check: bool,
    ) -> Result<(), ProveError> {
        let (format, f, size) = (job.format()?, job.truth()?, job.dtype.size());
        let chunks = Mutex::new(bytes.chunks(CHUNK * size).enumerate());
        let count = bytes.len().div_ceil(CHUNK * size);
        let hashes = Mutex::new(vec![[0u8; 32]; count]);
        let found = Mutex::new((Tally::default(), Vec::<(u64, Wrong)>::new()));
        let work = || {
            let mut tally = Tally::default();
            let mut mine: Vec<(u64, Wrong)> = vec![];
            let mut ours = vec![];
            loop {
                let next = chunks.lock().unwrap_or_else(PoisonError::into_inner).next();
                let Some((n, chunk)) = next else { break };
                let at = first + (n * CHUNK) as u64;
                let hash = match patterns(format, chunk, &mut ours) {
                    false => Sha256::digest(chunk).into(),
                    true => hash_of(format, &ours),
                };
                hashes.lock().unwrap_or_else(PoisonError::into_inner)[n] = hash;
                if !check {
                    continue;
                }
                let mut here = vec![];
                let mut each = |i: usize, right: Result<u32, truth::Undecided>| {
                    let (a, b) = operands(job, at + i as u64);
                    here.push((at + i as u64, Wrong { a, b, ours: ours[i], right: right.ok() }));
                };
                let keep = job.keep_subnormals;
                let t = match (job.func.arity(), format) {
                    (1, Format::F32) => {
                        let inputs = Inputs::Patterns { start: job.pattern(at), step: job.step };
                        truth::check(f, inputs, &ours, format, keep, &mut each)
                    }
                    (1, _) => truth::check(f, Inputs::Halves(format), &ours, format, keep, &mut each),
                    _ => {
                        let from = at * u64::from(job.step);
                        let (x, y) = pairs::pairs(job.func, job.dtype, from, job.step, ours.len());
                        truth::check(f, Inputs::Pairs(&x, &y), &ours, format, keep, &mut each)
                    }
                };
                tally.add(t);
                // The first of the block are among the first of its chunks.
                here.sort_by_key(|(i, _)| *i);
                here.truncate(KEPT);
                mine.append(&mut here);
            }
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            found.0.add(tally);
            found.1.append(&mut mine);
        };
        std::thread::scope(|s| {
            for _ in 1..threads.min(count) {
                s.spawn(work);
            }
            work();
        });
        let (tally, mut list) = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.hashes.extend(hashes.into_inner().unwrap_or_else(PoisonError::into_inner));
        self.inputs += (bytes.len() / size) as u64;
        self.tally.add(tally);
        list.sort_by_key(|(i, _)| *i);
        self.wrong.append(&mut list);
        self.wrong.truncate(KEPT);
        Ok(())
    }

    /// The block's findings; its first wrong results go to `wrong` while there is room.
    fn block(self, wrong: &mut Vec<Wrong>) -> Block {
        for (_, w) in self.wrong {
            // A block that is looked at again finds its own.
            if wrong.len() < KEPT && !wrong.contains(&w) {
                wrong.push(w);
            }
        }
        let mut whole = Sha256::new();
        self.hashes.iter().for_each(|h| whole.update(h));
        Block {
            hash: hex(&whole.finalize()),
            inputs: self.inputs,
            checked: self.tally.checked,
            wrong: self.tally.wrong,
            undecided: self.tally.undecided,
            hard: self.tally.hard,
            differ: 0,
        }
    }
}

/// The hash of patterns as little-endian bytes.
fn hash_of(format: Format, patterns: &[u32]) -> [u8; 32] {
    let size = if format == Format::F32 { 4 } else { 2 };
    let mut sha = Sha256::new();
    let mut buffer = [0u8; 4096];
    for part in patterns.chunks(buffer.len() / size) {
        for (x, out) in part.iter().zip(buffer.chunks_exact_mut(size)) {
            out.copy_from_slice(&x.to_le_bytes()[..size]);
        }
        sha.update(&buffer[..part.len() * size]);
    }
    sha.finalize().into()
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// The SHA-256 of a file: which build of a program wrote a record.
///
/// # Errors
/// Those of reading it.
pub fn file_hash(path: &std::path::Path) -> std::io::Result<String> {
    let mut sha = Sha256::new();
    std::io::copy(&mut std::fs::File::open(path)?, &mut sha)?;
    Ok(hex(&sha.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ulpian_num::{Dtype, Func};

    #[test]
    fn the_wrong_results_that_are_kept_are_the_first_ones_however_many_threads_look() {
        // Three chunks of arguments around 1, whose results are never 0.
        let first = 0x3f80_0000u64;
        let count = 2 * CHUNK + 100;
        let range = (first, first + count as u64);
        let job = Job { func: Func::Exp, dtype: Dtype::F32, keep_subnormals: false, range, step: 1 };
        let results = vec![0u8; 4 * count];
        for threads in [1, 2, 5] {
            let mut seen = Seen::default();
            seen.look(&job, 0, &results, threads, true).unwrap();
            let mut wrong = vec![];
            let block = seen.block(&mut wrong);
            assert_eq!(block.wrong, count as u64);
            let kept: Vec<u64> = wrong.iter().map(|w| u64::from(w.a)).collect();
            assert!(kept.into_iter().eq(first..first + KEPT as u64), "{threads} threads");
        }
    }
}
