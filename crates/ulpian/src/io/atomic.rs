//! Writing a file whole or not at all.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use ulpian_kernel::device::DeviceError;
use ulpian_kernel::faults::FaultPlan;

/// Why a file was not written. What stood at its path before stands there still.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error("{}: the disk is full after {written} of {total} bytes; nothing was changed there: free space or choose another path", path.display())]
    DiskFull { path: PathBuf, written: u64, total: u64 },
    #[error("{}: its folder is not there; make it first", path.display())]
    NoFolder { path: PathBuf },
    #[error("{}: not an ordinary file, and will not be replaced by one; choose another path", path.display())]
    NotAFile { path: PathBuf },
    /// A malformed `ULPIAN_FAULT`.
    #[error(transparent)]
    Fault(#[from] DeviceError),
    #[error("{}: cannot be written ({step}: {source}); nothing was changed there", path.display())]
    Io { path: PathBuf, step: &'static str, source: io::Error },
}

/// Writes `bytes` to `path` through a temporary file beside it that is flushed to the disk and then renamed. On any
/// error the temporary file is removed and `path` is as it was. A symbolic link is followed, a device or folder refused.
/// What killed runs that wrote to the same path left beside it is removed.
///
/// The environment variable `ULPIAN_FAULT=disk:N` makes every write fail as a full disk does after N bytes: for tests
/// of what a program does then. (The variable's other entries are faults of devices: [`ulpian_kernel::faults`].)
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    write_limited(path, bytes, FaultPlan::from_env()?.disk)
}

const CHUNK: usize = 1 << 20;

/// Whether [`write_atomic`] could begin: an ordinary file, or none yet, in a folder that is there and takes files (an
/// empty one is made in it and removed). Long work whose result goes to `path` asks this first.
pub fn check_target(path: &Path) -> Result<(), WriteError> {
    let (target, folder, _) = target(path)?;
    temporary(path, &target, &folder).map(|_| ())
}

/// The file to replace, links followed, its folder, and the permissions of what stands there.
fn target(path: &Path) -> Result<(PathBuf, PathBuf, Option<Permissions>), WriteError> {
    let fail =
        |step: &'static str| move |source: io::Error| WriteError::Io { path: path.into(), step, source };
    let (target, permissions) = match std::fs::metadata(path) {
        Ok(meta) if !meta.is_file() => return Err(WriteError::NotAFile { path: path.into() }),
        Ok(meta) => (path.canonicalize().map_err(fail("resolve"))?, Some(meta.permissions())),
        Err(e) if e.kind() == io::ErrorKind::NotFound => (path.to_path_buf(), None),
        Err(e) => return Err(fail("look")(e)),
    };
    if target.file_name().is_none() {
        return Err(WriteError::NotAFile { path: path.into() });
    }
    let folder = match target.parent() {
        Some(p) if !p.as_os_str().is_empty() => p.to_path_buf(),
        _ => PathBuf::from("."),
    };
    if !folder.is_dir() {
        return Err(WriteError::NoFolder { path: path.into() });
    }
    Ok((target, folder, permissions))
}

fn write_limited(path: &Path, bytes: &[u8], limit: Option<u64>) -> Result<(), WriteError> {
    let fail =
        |step: &'static str| move |source: io::Error| WriteError::Io { path: path.into(), step, source };
    let (target, folder, permissions) = target(path)?;
    remove_leftovers(&target, &folder);
    let (mut file, temporary) = temporary(path, &target, &folder)?;
    let temporary_path = temporary.0.as_deref().unwrap_or(&folder);
    let mut written = 0u64;
    for chunk in bytes.chunks(CHUNK) {
        let room = limit.map_or(chunk.len() as u64, |l| l.saturating_sub(written)).min(chunk.len() as u64);
        let result = file.write_all(&chunk[..room as usize]).and_then(|()| {
            if room < chunk.len() as u64 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
        });
        match result {
            Ok(()) => written += chunk.len() as u64,
            Err(e) if is_full(&e) => {
                return Err(WriteError::DiskFull { path: path.into(), written, total: bytes.len() as u64 });
            }
            Err(e) => return Err(fail("write")(e)),
        }
    }
    if let Some(permissions) = permissions {
        file.set_permissions(permissions).map_err(fail("set permissions"))?;
    }
    // Some file systems (network ones above all) report a full disk only now.
    file.sync_all().map_err(|e| {
        if is_full(&e) {
            WriteError::DiskFull { path: path.into(), written, total: bytes.len() as u64 }
        } else {
            fail("flush")(e)
        }
    })?;
    drop(file);
    std::fs::rename(temporary_path, &target).map_err(fail("rename"))?;
    temporary.keep();
    // The new name outlives a power cut only when its folder is flushed too. Where folders cannot be opened, so be it:
    // the file itself is whole either way.
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
    Ok(())
}

/// Leftovers of this process's number that are passed over before the folder is given up.
const LEFTOVERS: usize = 10_000;

/// A new file in `folder`, beside `target`.
///
/// The process and a counter make its name unique in this machine's life only: where numbers of processes come again
/// (a container's is always 1), a killed run's leftover may bear it. That one is passed over, never written to.
fn temporary(path: &Path, target: &Path, folder: &Path) -> Result<(File, Temporary), WriteError> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let name = target.file_name().unwrap_or_default();
    let mut last = None;
    for _ in 0..LEFTOVERS {
        let end = format!(".{}-{}.tmp", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed));
        let mut file = std::ffi::OsString::from(".");
        // Names end at 255 bytes on common file systems; a long one is left out rather than cut inside a character.
        file.push(if name.len() + end.len() < 255 { name } else { "ulpian".as_ref() });
        file.push(end);
        let at = folder.join(file);
        match OpenOptions::new().write(true).create_new(true).open(&at) {
            Ok(file) => {
                // Says that the file has an owner, to whom looks; without locks its process number says it alone.
                let _ = file.try_lock();
                return Ok((file, Temporary(Some(at))));
            }
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => last = Some(e),
            Err(e) => {
                last = Some(e);
                break;
            }
        }
    }
    let source = last.unwrap_or_else(|| io::ErrorKind::AlreadyExists.into());
    Err(WriteError::Io { path: path.into(), step: "create a file in its folder", source })
}

/// Removes the temporary files beside `target` whose processes are gone: those of its name, and none else. A process is
/// gone when the machine has none of that number and nobody holds the file's lock, which a process in another container
/// or on another machine would; where neither can be known the file stays. A failure is no error: there is a next time.
fn remove_leftovers(target: &Path, folder: &Path) {
    let (Some(name), Ok(entries)) = (target.file_name(), std::fs::read_dir(folder)) else { return };
    for entry in entries.flatten() {
        let file = entry.file_name();
        let Some(process) = owner(file.as_encoded_bytes(), name.as_encoded_bytes()) else { continue };
        // Where processes are listed as files. Elsewhere none can be told from one that is gone.
        let listed = Path::new("/proc/self").exists();
        if !listed || Path::new("/proc").join(process.to_string()).exists() {
            continue;
        }
        let ordinary = entry.file_type().is_ok_and(|t| t.is_file());
        let left = ordinary && File::open(entry.path()).is_ok_and(|f| f.try_lock().is_ok());
        if left {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// The process in the name of a temporary file for `target`: `.TARGET.PROCESS-COUNT.tmp`.
fn owner(file: &[u8], target: &[u8]) -> Option<u32> {
    let end = file.strip_prefix(b".")?.strip_prefix(target)?.strip_prefix(b".")?.strip_suffix(b".tmp")?;
    let (process, count) = std::str::from_utf8(end).ok()?.split_once('-')?;
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    (digits(process) && digits(count)).then(|| process.parse().ok())?
}

fn is_full(e: &io::Error) -> bool {
    matches!(
        e.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

/// A file that is removed when an error leaves it behind.
struct Temporary(Option<PathBuf>);

impl Temporary {
    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // Nothing can be done about a failure here, and the error on its way to the caller matters more.
            let _ = std::fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);
    impl Folder {
        fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("ulpian-atomic-{}-{name}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Folder(path)
        }
        fn names(&self) -> Vec<String> {
            let entries = std::fs::read_dir(&self.0).unwrap();
            let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        }
    }
    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_full_disk_leaves_the_old_file_and_nothing_else() {
        let folder = Folder::new("full");
        let path = folder.0.join("weights");
        let new = vec![7u8; 3 * CHUNK + 5];
        for limit in [0, 1, CHUNK as u64, CHUNK as u64 + 1, new.len() as u64 - 1] {
            write_limited(&path, b"old", None).unwrap();
            let error = write_limited(&path, &new, Some(limit)).unwrap_err();
            assert!(matches!(error, WriteError::DiskFull { .. }), "{error}");
            assert_eq!(std::fs::read(&path).unwrap(), b"old");
            assert_eq!(folder.names(), ["weights"], "limit {limit}");
        }
        write_limited(&path, &new, Some(new.len() as u64)).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), new);
        assert_eq!(folder.names(), ["weights"]);
    }

    #[test]
    fn a_full_disk_before_the_first_file_leaves_an_empty_folder() {
        let folder = Folder::new("first");
        assert!(write_limited(&folder.0.join("a"), b"12345", Some(2)).is_err());
        assert!(folder.names().is_empty());
    }

    #[test]
    fn leftovers_of_a_killed_run_with_this_number_are_passed_over() {
        let folder = Folder::new("leftovers");
        let names: Vec<String> =
            (0..2000).map(|i| format!(".weights.{}-{i}.tmp", std::process::id())).collect();
        for name in &names {
            std::fs::write(folder.0.join(name), b"left").unwrap();
        }
        check_target(&folder.0.join("weights")).unwrap();
        write_limited(&folder.0.join("weights"), b"new", None).unwrap();
        assert_eq!(std::fs::read(folder.0.join("weights")).unwrap(), b"new");
        assert_eq!(folder.names().len(), names.len() + 1);
        assert!(names.iter().all(|n| std::fs::read(folder.0.join(n)).unwrap() == b"left"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_killed_runs_left_is_removed_and_what_has_an_owner_stays() {
        let folder = Folder::new("stale");
        // Above every number that the kernel gives to a process.
        let gone = 1u32 << 23;
        let (left, other) = (format!(".weights.{gone}-0.tmp"), format!(".others.{gone}-0.tmp"));
        let (mine, odd) = (format!(".weights.{}-7.tmp", std::process::id()), format!(".weights.{gone}.tmp"));
        let held = format!(".weights.{gone}-1.tmp");
        for name in [&left, &other, &mine, &odd, &held] {
            std::fs::write(folder.0.join(name), b"left").unwrap();
        }
        let lock = File::open(folder.0.join(&held)).unwrap();
        lock.try_lock().unwrap();
        write_limited(&folder.0.join("weights"), b"new", None).unwrap();
        let mut stay = vec![other, mine, odd, held.clone(), "weights".into()];
        stay.sort();
        assert_eq!(folder.names(), stay);
        drop(lock);
        write_limited(&folder.0.join("weights"), b"newer", None).unwrap();
        assert!(!folder.0.join(held).exists());
        assert_eq!(folder.names().len(), 4);
    }

    #[test]
    fn the_longest_names_can_be_written() {
        let folder = Folder::new("long");
        for name in ["n".repeat(255), "n".repeat(240), "\u{e9}".repeat(120)] {
            let path = folder.0.join(&name);
            check_target(&path).unwrap();
            write_limited(&path, b"new", None).unwrap();
            assert_eq!(folder.names(), [name]);
            std::fs::remove_file(path).unwrap();
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_folder_that_takes_no_files_is_known_before_the_work() {
        // Whoever runs this, root too, cannot make files there.
        let error = check_target(Path::new("/proc/self/weights")).unwrap_err();
        assert!(error.to_string().contains("create a file in its folder"), "{error}");
    }

    #[test]
    fn an_empty_file_can_be_written() {
        let folder = Folder::new("empty");
        write_limited(&folder.0.join("a"), b"", None).unwrap();
        assert_eq!(std::fs::read(folder.0.join("a")).unwrap(), b"");
    }

    #[cfg(unix)]
    #[test]
    fn devices_and_folders_are_not_replaced() {
        let folder = Folder::new("device");
        for path in
            [Path::new("/dev/full"), Path::new("/dev/null"), &folder.0, Path::new("/"), Path::new("..")]
        {
            let error = write_limited(path, b"x", None).unwrap_err();
            assert!(matches!(error, WriteError::NotAFile { .. }), "{}: {error}", path.display());
        }
    }

    #[test]
    fn a_missing_folder_is_named() {
        let folder = Folder::new("missing");
        let error = write_limited(&folder.0.join("no/such/file"), b"x", None).unwrap_err();
        assert!(matches!(error, WriteError::NoFolder { .. }), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_followed_and_permissions_are_kept() {
        use std::os::unix::fs::PermissionsExt;
        let folder = Folder::new("link");
        let (real, link) = (folder.0.join("real"), folder.0.join("link"));
        write_limited(&real, b"old", None).unwrap();
        std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        write_limited(&link, b"new", None).unwrap();
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_eq!(std::fs::read(&real).unwrap(), b"new");
        assert_eq!(real.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    }
}
