//! Files that spare work: SPIR-V by kernel, the driver's pipeline cache, and self-test verdicts.
//!
//! Every file carries a checksum and its whole key; one that does not fit exactly counts as absent and is replaced.
//! Writes go to a temporary name and are renamed, so a reader sees an old file or a new one. A cache that cannot be
//! written is not an error, but said once: the next run works again for what it could not find. What was not asked for in
//! a season goes.

use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};
use ulpian_kernel::dump::hex;

const MAGIC: &[u8; 8] = b"ULPIANC1";

/// Keys hold a hash of the sources, so a newer build never asks for what an older one kept.
const SEASON: Duration = Duration::from_secs(90 * 24 * 3600);
/// A file's time of change says when it was last used, to a day.
const DAY: Duration = Duration::from_secs(24 * 3600);

/// One device's folder of cache files; without a folder nothing is found and nothing kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cache {
    folder: Option<PathBuf>,
    /// Goes into every key: device, driver and version.
    fingerprint: String,
}

impl Cache {
    pub fn new(root: Option<PathBuf>, fingerprint: String) -> Cache {
        let name = hex(&Sha256::digest(fingerprint.as_bytes())[..8]);
        let cache = Cache { folder: root.map(|r| r.join("vulkan").join(name)), fingerprint };
        cache.forget_older_than(SEASON);
        cache
    }

    /// Removes files that were not used for so long; what cannot be removed stays.
    fn forget_older_than(&self, age: Duration) {
        let Some(entries) = self.folder.as_ref().and_then(|f| std::fs::read_dir(f).ok()) else { return };
        for entry in entries.flatten() {
            if entry.metadata().is_ok_and(|m| m.is_file() && unused_for(&m) > age) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }

    fn file(&self, kind: &str, key: &[u8]) -> Option<(PathBuf, [u8; 32])> {
        let mut h = Sha256::new();
        h.update(self.fingerprint.as_bytes());
        h.update([0]);
        h.update(kind.as_bytes());
        h.update([0]);
        h.update(key);
        let digest: [u8; 32] = h.finalize().into();
        Some((self.folder.as_ref()?.join(format!("{kind}-{}.bin", hex(&digest[..16]))), digest))
    }

    /// What was kept under this key.
    pub fn load(&self, kind: &str, key: &[u8]) -> Option<Vec<u8>> {
        let (path, digest) = self.file(kind, key)?;
        let bytes = std::fs::read(&path).ok()?;
        if std::fs::metadata(&path).is_ok_and(|m| unused_for(&m) > DAY)
            && let Ok(file) = std::fs::File::options().append(true).open(&path)
        {
            let _ = file.set_modified(SystemTime::now());
        }
        let rest = bytes.strip_prefix(MAGIC)?.strip_prefix(&digest)?;
        let (sum, body) = rest.split_at_checked(32)?;
        (sum == Sha256::digest(body).as_slice()).then(|| body.to_vec())
    }

    /// Keeps `body`, if it can.
    pub fn store(&self, kind: &str, key: &[u8], body: &[u8]) {
        static SERIAL: AtomicU64 = AtomicU64::new(0);
        let Some((path, digest)) = self.file(kind, key) else { return };
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&digest);
        bytes.extend_from_slice(&Sha256::digest(body));
        bytes.extend_from_slice(body);
        let temporary = path.with_extension(format!(
            "tmp-{}-{}",
            std::process::id(),
            SERIAL.fetch_add(1, Ordering::Relaxed)
        ));
        let written = path
            .parent()
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| std::fs::write(&temporary, &bytes))
            .and_then(|()| std::fs::rename(&temporary, &path));
        if let Err(e) = written {
            let _ = std::fs::remove_file(&temporary);
            warn_once(&path, &e);
        }
    }
}

/// Says once in a process that nothing is kept: each run will make anew what it could have found.
fn warn_once(path: &Path, e: &std::io::Error) {
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        let folder = path.parent().unwrap_or(path).display();
        eprintln!(
            "ulpian: the cache in {folder} cannot be written ({e}), so kernels are made anew in every run; set \
             ULPIAN_CACHE to a folder, or to 0 for none"
        );
    });
}

fn unused_for(m: &std::fs::Metadata) -> Duration {
    m.modified().ok().and_then(|t| t.elapsed().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let p = std::env::temp_dir().join(format!("ulpian-cache-test-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&p);
        p
    }

    #[test]
    fn what_is_kept_comes_back_and_only_under_its_key() {
        let root = folder("keys");
        let c = Cache::new(Some(root.clone()), "a".into());
        c.store("spv", b"key", b"body");
        assert_eq!(c.load("spv", b"key").as_deref(), Some(&b"body"[..]));
        assert_eq!(c.load("spv", b"other"), None);
        assert_eq!(c.load("pipe", b"key"), None);
        assert_eq!(Cache::new(Some(root.clone()), "b".into()).load("spv", b"key"), None);
        let _ = std::fs::remove_dir_all(root);
    }

    #[test]
    fn what_is_not_asked_for_in_a_season_goes() {
        let root = folder("season");
        let c = Cache::new(Some(root.clone()), "a".into());
        let age = |key: &[u8], by: Duration| {
            let file = std::fs::File::options().append(true).open(c.file("spv", key).unwrap().0).unwrap();
            file.set_modified(SystemTime::now() - by).unwrap();
        };
        for key in [b"used", b"left"] {
            c.store("spv", key, b"body");
            age(key, SEASON - DAY);
        }
        assert!(c.load("spv", b"used").is_some());
        for key in [b"used", b"left"] {
            let (path, _) = c.file("spv", key).unwrap();
            let time = std::fs::metadata(&path).unwrap().modified().unwrap();
            std::fs::File::options().append(true).open(&path).unwrap().set_modified(time - 2 * DAY).unwrap();
        }
        let c = Cache::new(Some(root.clone()), "a".into());
        assert!(c.load("spv", b"used").is_some());
        assert!(c.load("spv", b"left").is_none());
        let _ = std::fs::remove_dir_all(root);
    }

    #[test]
    fn a_changed_or_cut_file_counts_as_absent() {
        let root = folder("corrupt");
        let c = Cache::new(Some(root.clone()), "a".into());
        c.store("spv", b"key", b"some body");
        let (path, _) = c.file("spv", b"key").unwrap();
        let good = std::fs::read(&path).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            std::fs::write(&path, &bad).unwrap();
            assert_eq!(c.load("spv", b"key"), None, "byte {at}");
            std::fs::write(&path, &good[..at]).unwrap();
            assert_eq!(c.load("spv", b"key"), None, "cut at {at}");
        }
        let _ = std::fs::remove_dir_all(root);
    }
}
