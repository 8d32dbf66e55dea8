//! Evidence: one line for each function, fit for a file that is read by people and by the next proof.
//!
//! A file's own lines begin with `#` (date, device, driver, command). A line is `key = value` pairs apart by two spaces:
//! function, dtype, mode, inputs, then counts, then the hash of hashes; `block N HASH` lines may follow it.

use super::sweep::hex;
use super::{Block, Entry, Job};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use ulpian_kernel::device::DeviceFacts;

/// What opens a file. `date` is the caller's, since nothing here reads a clock.
pub fn header(facts: &DeviceFacts, date: &str, command: &str) -> String {
    format!(
        "# Results held to the correctly rounded value, and their hashes.\n# made by: {command}\n# date: {date}\n\
         # device: {} ({}), driver {}\n# ulpian {}\n\
         # hash: SHA-256 over the block hashes (blocks of 2^24 results; each SHA-256 over those of chunks of 2^16)\n",
        facts.id,
        facts.name,
        facts.driver,
        env!("CARGO_PKG_VERSION"),
    )
}

/// The hash of an entry's block hashes.
fn hash_of_hashes(entry: &Entry) -> String {
    let mut sha = Sha256::new();
    entry.blocks.values().for_each(|b| sha.update(b.hash.as_bytes()));
    hex(&sha.finalize())
}

/// An entry's lines; `full` adds one for each block. `against` says whose blocks it was compared with.
pub fn lines(job: &Job, entry: &Entry, against: Option<&str>, full: bool) -> String {
    let (wrong, undecided) = (entry.total(|b| b.wrong), entry.total(|b| b.undecided));
    let held = match against {
        Some(device) => {
            let differ = entry.total(|b| b.differ);
            format!("differ from {device} = {differ}  wrong = {wrong}  undecided = {undecided}")
        }
        None => format!("wrong = {wrong}  undecided = {undecided}  hard = {}", entry.total(|b| b.hard)),
    };
    let done = entry.total(|b| b.inputs);
    let whole = if done == job.inputs() { String::new() } else { format!("  UNFINISHED after {done}") };
    let mut text = format!("{}  {held}  hash = {}{whole}\n", job.key(), hash_of_hashes(entry));
    if full {
        for (n, b) in &entry.blocks {
            text += &format!("  block {n} {}\n", b.hash);
        }
    }
    text
}

/// Block hashes read from a file of evidence, by [`Job::key`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reference {
    entries: BTreeMap<String, Entry>,
}

impl Reference {
    /// Takes what was held to the truth itself, lists its blocks and has nothing wrong or undecided; other lines are left
    /// out.
    pub fn parse(text: &str) -> Reference {
        let mut all = Reference::default();
        let mut current: Option<String> = None;
        for line in text.lines().filter(|l| !l.starts_with('#')) {
            if let Some(rest) = line.strip_prefix("  block ") {
                let (Some(key), Some((n, hash))) = (&current, rest.split_once(' ')) else { continue };
                if let Ok(n) = n.parse() {
                    let block = Block { hash: hash.trim().into(), ..Block::default() };
                    all.entries.entry(key.clone()).or_default().blocks.insert(n, block);
                }
            } else {
                let right = |rest: &str| {
                    rest.starts_with("wrong = 0  undecided = 0  ") && !rest.contains("UNFINISHED")
                };
                current = line.split_once("  ").filter(|l| right(l.1)).map(|(key, _)| key.to_string());
            }
        }
        all
    }

    /// The blocks of `job`, where the file lists them all.
    pub fn entry(&self, job: &Job) -> Option<&Entry> {
        self.entries.get(&job.key()).filter(|e| e.blocks.len() as u64 == job.blocks())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ulpian_num::{Dtype, Func};

    #[test]
    fn block_hashes_read_back_from_evidence_and_only_where_nothing_is_wrong() {
        let job =
            Job { func: Func::Sqrt, dtype: Dtype::F32, keep_subnormals: false, range: (0, 1 << 25), step: 1 };
        let block = |wrong| Block { hash: "0a".into(), inputs: 1 << 24, wrong, ..Block::default() };
        let entry =
            |wrong| Entry { blocks: BTreeMap::from([(0, block(wrong)), (1, block(0))]), wrong: vec![] };
        let read = Reference::parse(&lines(&job, &entry(0), None, true));
        assert_eq!(read.entry(&job).map(|e| e.blocks[&1].hash.as_str()), Some("0a"));
        assert_eq!(Reference::parse(&lines(&job, &entry(1), None, true)).entry(&job), None);
        let mut undecided = entry(0);
        undecided.blocks.entry(1).and_modify(|b| b.undecided = 1);
        assert_eq!(Reference::parse(&lines(&job, &undecided, None, true)).entry(&job), None);
        // Of another device's, which are no measure.
        assert_eq!(Reference::parse(&lines(&job, &entry(0), Some("cpu"), true)).entry(&job), None);
        assert_eq!(Reference::parse(&lines(&job, &entry(0), None, false)).entry(&job), None);
    }
}
