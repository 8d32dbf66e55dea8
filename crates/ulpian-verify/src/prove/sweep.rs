//! The sweep: block after block is evaluated, hashed, and held to the truth or to another device.

use super::{BLOCK, Block, CHUNK, Entry, Evaluator, Job, KEPT, ProveError, Wrong, pairs};
use crate::truth::{self, Format, Inputs, Tally};
use sha2::{Digest, Sha256};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use ulpian_kernel::device::Device;

/// What a sweep tells as it goes.
#[derive(Debug)]
pub enum Step<'a> {
    /// A block is done (or was done before: `old`).
    Block { number: u64, block: &'a Block, entry: &'a Entry, old: bool },
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
/// are compared with its blocks, which are computed where they are missing; without, they are held to the truth.
/// `each` hears of every block and says whether to go on.
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
    let mut evaluator: Option<Evaluator> = None;
    let mut other: Option<Evaluator> = None;
    let (mut ours, mut theirs) = (vec![], vec![]);
    let mut launched = None;
    let mut outcome = Outcome::default();
    for b in 0..job.blocks() {
        let old = entry.blocks.contains_key(&b);
        if !old {
            let running = match &mut evaluator {
                Some(e) => e,
                None => evaluator.insert(Evaluator::new(device.clone(), job)?),
            };
            if launched != Some(b) {
                running.launch(b)?;
            }
            running.fetch(b, &mut ours)?;
            // The device computes the next block while this one is looked at.
            if b + 1 < job.blocks() && !entry.blocks.contains_key(&(b + 1)) {
                running.launch(b + 1)?;
                launched = Some(b + 1);
            }
            let mut block = match &mut reference {
                None => look(job, b, &mut ours, threads, true, &mut entry.wrong)?,
                Some((cpu, known)) => {
                    let mut block = look(job, b, &mut ours, threads, false, &mut vec![])?;
                    let evaluate = |theirs: &mut Vec<u32>, other: &mut Option<Evaluator>| {
                        let e = match other {
                            Some(e) => e,
                            None => other.insert(Evaluator::new((*cpu).clone(), job)?),
                        };
                        e.launch(b)?;
                        e.fetch(b, theirs)
                    };
                    if !known.blocks.contains_key(&b) {
                        evaluate(&mut theirs, &mut other)?;
                        let found = look(job, b, &mut theirs, threads, true, &mut known.wrong)?;
                        known.blocks.insert(b, found);
                    }
                    if known.blocks.get(&b).is_none_or(|k| k.hash != block.hash) {
                        evaluate(&mut theirs, &mut other)?;
                        let format = job.format()?;
                        theirs.iter_mut().for_each(|t| *t = format.canonical(*t));
                        block = look(job, b, &mut ours, threads, true, &mut entry.wrong)?;
                        let differing = || ours.iter().zip(&theirs).enumerate().filter(|(_, (o, t))| o != t);
                        // A reference that no longer gives its own hash counts as different too.
                        block.differ = (differing().count() as u64).max(1);
                        if let Some((i, (&device, &reference))) = differing().next() {
                            let (a, b) = operands(job, job.block(b).0 + i as u64);
                            each(Step::Differ { a, b, device, reference });
                        }
                    }
                    block
                }
            };
            block.inputs = job.block(b).1 as u64;
            entry.blocks.insert(b, block);
        }
        let block = &entry.blocks[&b];
        outcome.wrong += block.wrong;
        outcome.undecided += block.undecided;
        outcome.differ += block.differ;
        if !each(Step::Block { number: b, block, entry, old }) {
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

/// Makes NaNs canonical, hashes, and (`check`) holds the results to the truth; chunks go over the threads.
fn look(
    job: &Job,
    b: u64,
    ours: &mut [u32],
    threads: usize,
    check: bool,
    wrong: &mut Vec<Wrong>,
) -> Result<Block, ProveError> {
    let (format, f) = (job.format()?, job.truth()?);
    let first = b * BLOCK;
    let chunks = Mutex::new(ours.chunks_mut(CHUNK).enumerate());
    let count = ours_len(job, b).div_ceil(CHUNK);
    let hashes = Mutex::new(vec![[0u8; 32]; count]);
    let found = Mutex::new((Tally::default(), Vec::<(u64, Wrong)>::new()));
    // Past this many only counting goes on.
    let kept = AtomicUsize::new(wrong.len());
    let work = || {
        let mut tally = Tally::default();
        let mut mine: Vec<(u64, Wrong)> = vec![];
        loop {
            let next = chunks.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((n, chunk)) = next else { break };
            let at = first + (n * CHUNK) as u64;
            let hash = hash_chunk(format, chunk);
            hashes.lock().unwrap_or_else(PoisonError::into_inner)[n] = hash;
            if !check {
                continue;
            }
            let mut each = |i: usize, right: Result<u32, truth::Undecided>| {
                if kept.fetch_add(1, Ordering::Relaxed) < KEPT * 4 {
                    let (a, b) = operands(job, at + i as u64);
                    mine.push((at + i as u64, Wrong { a, b, ours: chunk[i], right: right.ok() }));
                }
            };
            let t = match (job.func.arity(), format) {
                (1, Format::F32) => {
                    let inputs = Inputs::Patterns { start: job.pattern(at), step: job.step };
                    truth::check(f, inputs, chunk, format, job.keep_subnormals, &mut each)
                }
                (1, _) => {
                    truth::check(f, Inputs::Halves(format), chunk, format, job.keep_subnormals, &mut each)
                }
                _ => {
                    let (x, y) =
                        pairs::pairs(job.func, job.dtype, at * u64::from(job.step), job.step, chunk.len());
                    truth::check(f, Inputs::Pairs(&x, &y), chunk, format, job.keep_subnormals, &mut each)
                }
            };
            tally.add(t);
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
    let hashes = hashes.into_inner().unwrap_or_else(PoisonError::into_inner);
    let (tally, mut list) = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    list.sort_by_key(|(i, _)| *i);
    let room = KEPT.saturating_sub(wrong.len());
    wrong.extend(list.into_iter().take(room).map(|(_, w)| w));
    let mut whole = Sha256::new();
    hashes.iter().for_each(|h| whole.update(h));
    Ok(Block {
        hash: hex(&whole.finalize()),
        inputs: ours_len(job, b) as u64,
        checked: tally.checked,
        wrong: tally.wrong,
        undecided: tally.undecided,
        hard: tally.hard,
        differ: 0,
    })
}

fn ours_len(job: &Job, b: u64) -> usize {
    job.block(b).1
}

fn hash_chunk(format: Format, chunk: &mut [u32]) -> [u8; 32] {
    let mut sha = Sha256::new();
    let size = if format == Format::F32 { 4 } else { 2 };
    let mut bytes = [0u8; 4096];
    for part in chunk.chunks_mut(bytes.len() / size) {
        for (x, out) in part.iter_mut().zip(bytes.chunks_exact_mut(size)) {
            *x = format.canonical(*x);
            out.copy_from_slice(&x.to_le_bytes()[..size]);
        }
        sha.update(&bytes[..part.len() * size]);
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
