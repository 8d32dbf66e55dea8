//! Runs the command as a user does.
#![allow(dead_code, reason = "each test binary uses a part")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// True when the machine's owner said that there is no Vulkan here; nothing else skips a test.
pub fn no_vulkan() -> bool {
    let absent = std::env::var_os("ULPIAN_NO_VULKAN").is_some_and(|v| v == "1");
    if absent {
        println!("skipped: ULPIAN_NO_VULKAN=1 says that this machine has no Vulkan device");
    }
    absent
}

/// An empty folder of this test's own, removed when the test ends well.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(test: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("ulpian-command-{}-{test}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
    pub fn path(&self) -> &Path {
        &self.0
    }
    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
    /// Names of what lies in it, sorted.
    pub fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<String> =
            entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

/// What a run printed, and whether it said that all went well.
pub struct Run {
    pub ok: bool,
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Run {
    #[track_caller]
    pub fn succeeded(self) -> Run {
        assert!(self.ok, "exit {:?}\n{}\n{}", self.code, self.out, self.err);
        self
    }
    /// A failure is a message on standard error and a status of 1 or 2, never a panic or a signal.
    #[track_caller]
    pub fn failed_naming(self, words: &[&str]) -> Run {
        assert!(matches!(self.code, Some(1 | 2)), "exit {:?}\n{}\n{}", self.code, self.out, self.err);
        for word in words {
            assert!(self.err.contains(word), "no `{word}` in:\n{}", self.err);
        }
        assert!(!self.out.contains("weights sha256:"), "{}", self.out);
        self
    }
    /// The hash and the accuracy of the last line.
    #[track_caller]
    pub fn weights(&self) -> (String, f64) {
        let last = self.out.lines().last().unwrap_or_default();
        let fields: Vec<&str> = last.split(' ').collect();
        let ["weights", hash, "accuracy", accuracy] = fields[..] else { panic!("last line: {last}") };
        let hex = hash.strip_prefix("sha256:").unwrap_or_else(|| panic!("last line: {last}"));
        assert!(hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit()), "last line: {last}");
        (hex.to_string(), accuracy.parse().unwrap())
    }
}

/// Runs `ulpian ARGS` in `folder` with these variables set.
pub fn ulpian(folder: &Folder, args: &[&str], variables: &[(&str, &str)]) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ulpian"));
    command.args(args).current_dir(folder.path());
    for name in ["ULPIAN_FAULT", "ULPIAN_ISA", "ULPIAN_THREADS", "ULPIAN_VULKAN_LOADER"] {
        command.env_remove(name);
    }
    let output = command.envs(variables.iter().copied()).output().unwrap();
    Run {
        ok: output.status.success(),
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}
