//! Planted faults: the ways a device or a disk fails, on demand, so that tests and users can see what ulpian does then.
//!
//! `ULPIAN_FAULT` is a comma-separated list of
//! - `oom:N`: the N-th allocation (counted from 1) of an opened device fails for lack of memory; a buffer that is too
//!   large for one counts as many as it takes;
//! - `lost:N`: a device that can be lost is, at its N-th submission;
//! - `selftest:NAME`: the self-test whose name contains NAME fails, on devices that test by name;
//! - `disk:N`: writing a file fails after N bytes, as on a full disk.
//!
//! Here the list is read, whole: whoever can fail asks for its own entries, and refuses a list that is malformed
//! anywhere. Nothing is made to fail here.

use crate::device::DeviceError;

/// The variable's name.
pub const VARIABLE: &str = "ULPIAN_FAULT";

/// Faults to plant; none by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultPlan {
    /// This allocation fails, counted from 1.
    pub oom: Option<u64>,
    /// The device is lost at this submission, counted from 1.
    pub lost: Option<u64>,
    /// The self-test whose name contains this fails.
    pub selftest: Option<String>,
    /// Writing a file fails after so many bytes.
    pub disk: Option<u64>,
}

impl FaultPlan {
    /// The plan in `ULPIAN_FAULT`; none where it is not set.
    ///
    /// # Errors
    /// [`DeviceError::Setting`] for a malformed list.
    pub fn from_env() -> Result<FaultPlan, DeviceError> {
        let text = std::env::var_os(VARIABLE).unwrap_or_default();
        FaultPlan::parse(&text.to_string_lossy())
    }

    /// Reads the grammar in the module's head.
    ///
    /// # Errors
    /// As [`FaultPlan::from_env`].
    pub fn parse(text: &str) -> Result<FaultPlan, DeviceError> {
        let mut plan = FaultPlan::default();
        let bad = |item: &str| DeviceError::Setting {
            variable: VARIABLE.into(),
            value: text.into(),
            wanted: format!(
                "`{item}` is no fault; wanted a comma-separated list of oom:N, lost:N, selftest:NAME (N from 1) and \
                 disk:BYTES"
            ),
        };
        for item in text.split(',').map(str::trim).filter(|s| !s.is_empty()) {
            let (kind, value) = item.split_once(':').ok_or_else(|| bad(item))?;
            let number = || value.parse::<u64>().map_err(|_| bad(item));
            let count = || number().and_then(|n| if n > 0 { Ok(n) } else { Err(bad(item)) });
            match kind {
                "oom" => plan.oom = Some(count()?),
                "lost" => plan.lost = Some(count()?),
                "disk" => plan.disk = Some(number()?),
                "selftest" if !value.is_empty() => plan.selftest = Some(value.to_string()),
                _ => return Err(bad(item)),
            }
        }
        Ok(plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fault_text_is_read_and_nonsense_refused_by_name() {
        let plan = FaultPlan::parse("oom:3, disk:0, lost:2,selftest:fma").unwrap();
        let expected = FaultPlan { oom: Some(3), lost: Some(2), selftest: Some("fma".into()), disk: Some(0) };
        assert_eq!(plan, expected);
        assert_eq!(FaultPlan::parse(" , ").unwrap(), FaultPlan::default());
        for bad in
            ["oom", "oom:0", "oom:x", "oom:-1", "lost:0", "selftest:", "disk:x", "disk:", "fire:1", ":"]
        {
            let list = format!("disk:5,{bad}");
            let text = FaultPlan::parse(&list).unwrap_err().to_string();
            for part in [format!("ULPIAN_FAULT={list}: `{bad}`"), "oom:N".into(), "disk:BYTES".into()] {
                assert!(text.contains(&part), "{text} lacks {part}");
            }
        }
    }
}
