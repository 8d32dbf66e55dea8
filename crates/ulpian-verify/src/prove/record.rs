//! What a proof has found so far: plain data, written as JSON and read back to go on.

use super::{Job, ProveError};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// One block's findings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// In hexadecimal.
    pub hash: String,
    pub inputs: u64,
    /// Results held to the truth; 0 where equality with another device's stands for it, whose wrong and undecided ones
    /// are then these.
    pub checked: u64,
    pub wrong: u64,
    pub undecided: u64,
    /// Decided in arbitrary precision.
    pub hard: u64,
    /// Results that differ from the other device's.
    pub differ: u64,
}

/// One wrong result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// Operands, as patterns of the job's type.
    pub a: u32,
    pub b: u32,
    pub ours: u32,
    /// `None` where the truth is undecided.
    pub right: Option<u32>,
}

/// One job on one device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    pub blocks: BTreeMap<u64, Block>,
    /// The first of the wrong results.
    pub wrong: Vec<Wrong>,
}

impl Entry {
    pub fn total(&self, of: impl Fn(&Block) -> u64) -> u64 {
        self.blocks.values().map(of).sum()
    }
}

/// Entries by [`Record::key`], of one build of the program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Hash of the program that found it: another build computes other bits.
    pub build: String,
    pub entries: BTreeMap<String, Entry>,
}

impl Record {
    pub fn key(job: &Job, device: &str) -> String {
        format!("{} on {device}", job.key())
    }

    pub fn to_json(&self) -> String {
        let block = |(n, b): (&u64, &Block)| {
            let counts = [b.inputs, b.checked, b.wrong, b.undecided, b.hard, b.differ];
            (n.to_string(), json!([b.hash, counts]))
        };
        let entry = |(key, e): (&String, &Entry)| {
            let wrong: Vec<Value> = e.wrong.iter().map(|w| json!([w.a, w.b, w.ours, w.right])).collect();
            let blocks: Map<String, Value> = e.blocks.iter().map(block).collect();
            (key.clone(), json!({"blocks": blocks, "wrong": wrong}))
        };
        let entries: Map<String, Value> = self.entries.iter().map(entry).collect();
        json!({"version": 1, "build": self.build, "entries": entries}).to_string()
    }

    /// # Errors
    /// [`ProveError::State`] for anything that [`Record::to_json`] did not write.
    pub fn from_json(text: &str) -> Result<Record, ProveError> {
        let bad = |detail: &str| ProveError::State { detail: detail.into() };
        let v: Value = serde_json::from_str(text).map_err(|e| bad(&e.to_string()))?;
        if v["version"] != 1 {
            return Err(bad("not a version that is known here"));
        }
        let mut record = Record {
            build: v["build"].as_str().ok_or_else(|| bad("no build"))?.into(),
            entries: BTreeMap::new(),
        };
        for (key, e) in v["entries"].as_object().ok_or_else(|| bad("no entries"))? {
            let mut entry = Entry::default();
            for (n, b) in e["blocks"].as_object().ok_or_else(|| bad("an entry without blocks"))? {
                let n = n.parse().map_err(|_| bad("a block without a number"))?;
                let counts: Vec<u64> =
                    b[1].as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
                let (Some(hash), &[inputs, checked, wrong, undecided, hard, differ]) =
                    (b[0].as_str(), &counts[..])
                else {
                    return Err(bad("a block that is not one"));
                };
                let hex = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
                let whole = hash.len() == 64 && hash.bytes().all(hex);
                let parts = [checked, wrong, undecided, hard, differ];
                if !whole || inputs > 1 << 32 || parts.iter().any(|p| *p > inputs) {
                    return Err(bad("a block whose hash or counts cannot be"));
                }
                let hash = hash.into();
                entry.blocks.insert(n, Block { hash, inputs, checked, wrong, undecided, hard, differ });
            }
            for w in e["wrong"].as_array().into_iter().flatten() {
                let word = |i: usize| w[i].as_u64().and_then(|x| u32::try_from(x).ok());
                let (Some(a), Some(b), Some(ours)) = (word(0), word(1), word(2)) else {
                    return Err(bad("a wrong result that is not one"));
                };
                entry.wrong.push(Wrong { a, b, ours, right: word(3) });
            }
            record.entries.insert(key.clone(), entry);
        }
        Ok(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_reads_back_as_it_was_written() {
        let block = Block {
            hash: "ab".repeat(32),
            inputs: 9,
            checked: 8,
            wrong: 1,
            undecided: 1,
            hard: 3,
            differ: 2,
        };
        let wrong = vec![
            Wrong { a: 1, b: 1, ours: 2, right: Some(3) },
            Wrong { a: u32::MAX, b: 0, ours: 0, right: None },
        ];
        let entry = Entry { blocks: BTreeMap::from([(7, block)]), wrong };
        let record = Record { build: "b".into(), entries: BTreeMap::from([("exp".into(), entry)]) };
        assert_eq!(Record::from_json(&record.to_json()).unwrap(), record);
    }

    fn cell(counts: &str) -> String {
        let hash = "0".repeat(64);
        format!(r#"{{"version":1,"build":"x","entries":{{"a":{{"blocks":{{"0":["{hash}",[{counts}]]}}}}}}}}"#)
    }

    #[test]
    fn a_broken_record_is_an_error_and_no_panic() {
        for text in [
            "",
            "{}",
            "[]",
            r#"{"version":1}"#,
            r#"{"version":1,"build":"x","entries":{"a":{"blocks":{"0":3}}}}"#,
            r#"{"version":1,"build":"x","entries":{"a":{"blocks":{"0":["00",[1,1,0,0,0,0]]}}}}"#,
            &cell("1,2,0,0,0,0"),
            &cell("18446744073709551615,0,0,0,0,0"),
        ] {
            assert!(Record::from_json(text).is_err(), "{text}");
        }
    }
}
